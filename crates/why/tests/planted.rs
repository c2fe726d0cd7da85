//! Planted causes: the answer names each without being told.
#![allow(clippy::unwrap_used)]

use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use anabranch_why::{Alternatives, Answer, Inquiry, Limit, Others, Reason};
use std::sync::Arc;

/// Two equal paths without loss, and a download.
const TWO: &str = "[path.wlan]\nrate = \"20mbit\"\nrtt = \"20ms\"\nqueue = \"100p\"\n\
                   [path.lte]\nrate = \"20mbit\"\nrtt = \"40ms\"\nqueue = \"100p\"\n\
                   [[workload]]\nkind = \"files\"\nsize = \"4MB\"\n";

fn load(text: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "planted.toml".to_owned(), sets: sets.to_vec() };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    Scenario::read(&Arc::new(Catalogue::default()), "planted", "planted.toml", text, origin, &none)
}

fn ask(text: &str, repeat: usize) -> Answer {
    let (scenario, catalogue) = (load(text, &[]).unwrap(), Arc::new(Catalogue::default()));
    let load = |more: &[String]| load(text, more);
    let alternatives = Alternatives::of(&scenario, &catalogue, &Others::default(), &load);
    Inquiry::new(&scenario, alternatives, 1, repeat).run(2, &load, &|_, _| {}).unwrap()
}

/// The share of a limit, on whatever path.
fn share(answer: &Answer, limit: Limit) -> f64 {
    answer.shares.iter().filter(|share| share.limit == limit).map(|share| share.share).sum()
}

#[track_caller]
fn says(answer: &Answer, words: &[&str]) {
    for word in words {
        assert!(answer.sentence.contains(word), "`{word}` is missing: {}", answer.sentence);
    }
}

#[test]
fn a_tiny_receive_buffer() {
    let answer = ask(&format!("{TWO}[client]\nreceive-buffer = \"32KiB\"\n"), 3);
    says(&answer, &["receiver", "32 KiB", "With a receive buffer of ", "less (--set"]);
    assert!(share(&answer, Limit::PeerWindow) + share(&answer, Limit::HeadOfLine) > 0.5, "{:?}", answer.shares);
}

#[test]
fn a_tiny_send_buffer() {
    let answer = ask(&format!("{TWO}[server]\nsend-buffer = \"32KiB\"\n"), 3);
    says(&answer, &["the send buffer of 32 KiB was full", "With a send buffer of "]);
    assert!(share(&answer, Limit::SendBuffer) > 0.5, "{:?}", answer.shares);
}

#[test]
fn a_path_that_loses() {
    let lossy = TWO.replacen("queue = \"100p\"\n", "queue = \"100p\"\nloss = \"3%\"\n", 1);
    let answer = ask(&lossy, 5);
    says(&answer, &["the congestion window of wlan was full"]);
    let saved = answer.counterfactuals.iter().find(|tried| tried.what == "no random loss").unwrap();
    assert!(saved.difference.unwrap().mean < 0.0);
}

/// The queue is never empty, so that neither window is named, and no counterfactual brings much.
#[test]
fn a_bloated_queue() {
    let text = TWO.replace("100p", "2000p").replace("20mbit", "2mbit");
    let answer = ask(&text, 1);
    says(&answer, &["all paths in use carried all that they can"]);
    assert!(share(&answer, Limit::PathFull) > 0.5, "{:?}", answer.shares);
}

#[test]
fn a_backup_path() {
    let answer = ask(&TWO.replacen("rtt = \"40ms\"\n", "rtt = \"40ms\"\nbackup = true\n", 1), 3);
    says(&answer, &["lte carried nothing: it is marked as a backup.", "With lte as a regular path"]);
    assert_eq!(answer.idle_paths[0].reason, Reason::Backup);
}

#[test]
fn options_stripped_on_the_way() {
    let strip = "[[path.wlan.middlebox]]\nkind = \"strip\"\nfrom = \"syn\"\n";
    let answer = ask(&format!("{TWO}{strip}[host]\nfirst-path = \"as-listed\"\n"), 1);
    says(&answer, &["lte carried nothing: the connection went on as plain TCP"]);
    assert_eq!(answer.idle_paths[0].reason, Reason::PlainTcp);
}

#[test]
fn a_plain_server() {
    let answer = ask(&format!("{TWO}[server]\nmultipath = false\n[host]\nfirst-path = \"as-listed\"\n"), 1);
    says(
        &answer,
        &["lte carried nothing: the server answered without MP_CAPABLE.", "With MPTCP on both hosts it would"],
    );
}

#[test]
fn a_join_that_is_refused() {
    let drop = "[[path.lte.middlebox]]\nkind = \"drop-syn\"\noption = \"mp-join\"\n";
    let answer = ask(&format!("{TWO}{drop}[host]\nfirst-path = \"as-listed\"\n"), 1);
    says(&answer, &["lte carried nothing: its join was never completed.", "lte was still being joined"]);
    assert_eq!(answer.idle_paths[0].reason, Reason::JoinFailed);
    assert!(share(&answer, Limit::Join) > 0.3, "{:?}", answer.shares);
}

/// Large packets do not pass: the sender waits for one timeout after the other.
#[test]
fn a_black_hole_for_large_packets() {
    let hole = "[[path.wlan.middlebox]]\nkind = \"mtu-blackhole\"\n[[path.lte.middlebox]]\nkind = \"mtu-blackhole\"\n";
    let answer = ask(&format!("{TWO}{hole}"), 1);
    assert!(share(&answer, Limit::Timeout) > 0.1, "{} {:?}", answer.sentence, answer.shares);
}

/// The last segments of a small file are lost: only a timeout repairs them without probes and copies.
#[test]
fn a_lost_tail() {
    let text = "[path.only]\nrate = \"20mbit\"\nrtt = \"20ms\"\n[[path.only.middlebox]]\nkind = \"faults\"\n\
                drop = [7, 8, 9]\ndirection = \"down\"\n[[workload]]\nkind = \"files\"\nsize = \"10kB\"\n\
                [host]\ntlp = false\nreinjection = \"none\"\nmultipath = false\n";
    let answer = ask(text, 1);
    says(&answer, &["the sender waited for a retransmission timeout on only"]);
}

#[test]
fn a_scheduler_that_waits() {
    let answer = ask(&format!("{TWO}[host]\nscheduler = \"single\"\n"), 3);
    says(&answer, &["had room, and the scheduler did not use it", "With scheduler "]);
}

/// Pacing: a model-based control that leaves room in its window.
#[test]
fn a_paced_sender() {
    let text = "[path.only]\nrate = \"20mbit\"\nrtt = \"100ms\"\n[[workload]]\nkind = \"files\"\nsize = \"4MB\"\n\
                [host]\ncongestion = \"bbr\"\nmultipath = false\n";
    let answer = ask(text, 1);
    assert!(share(&answer, Limit::Pacing) > 0.01, "{:?}", answer.shares);
}

#[test]
fn a_short_flow() {
    let text = TWO.replace("4MB", "20kB").replace("20ms", "200ms").replace("40ms", "200ms");
    let answer = ask(&text, 1);
    for limit in [Limit::Handshake, Limit::Request, Limit::SlowStart, Limit::InFlight] {
        assert!(share(&answer, limit) > 0.0, "{limit:?}: {:?}", answer.shares);
    }
    assert!(share(&answer, Limit::Handshake) > 0.2, "{:?}", answer.shares);
}

/// The window is why the second path carried nothing, and the buffer is that of the host that receives.
#[test]
fn a_window_that_the_other_path_uses_up() {
    let answer = ask(&format!("{TWO}[client]\nreceive-buffer = \"64KiB\"\n[server]\nreceive-buffer = \"32KiB\"\n"), 2);
    says(&answer, &["lte carried nothing: most of the time data on other paths used up the receiver's window."]);
    says(&answer, &["the receiver's window, from a buffer of 64 KiB, was used up", "With a receive buffer of "]);
    assert_eq!(answer.idle_paths[0].reason, Reason::WindowUsedUp);
}

#[test]
fn a_buffer_that_tunes_itself() {
    let text = format!("{TWO}[client]\nreceive-buffer = {{ initial = \"16KiB\", max = \"32KiB\" }}\n");
    says(&ask(&text, 1), &["from a buffer of 16 KiB that grows to 32 KiB"]);
}

#[test]
fn a_transfer_too_short_for_a_join() {
    let answer = ask(&TWO.replace("4MB", "20kB"), 1);
    says(&answer, &["lte carried nothing: the transfers ended before its join was complete."]);
    assert_eq!(answer.idle_paths[0].reason, Reason::JoinUnfinished);
}

#[test]
fn more_paths_than_subflows() {
    let paths: String = (0..3).map(|n| format!("[path.p{n}]\nrate = \"5mbit\"\nrtt = \"20ms\"\n")).collect();
    let text = format!("{paths}[[workload]]\nkind = \"files\"\nsize = \"4MB\"\n[host]\nmax-subflows = 2\n");
    let answer = ask(&text, 1);
    says(&answer, &["carried nothing: each connection had the 2 subflows that `max-subflows` admits."]);
    says(&answer, &["With up to 3 subflows it would have taken", "less, on this one seed"]);
}

/// The only path of plain TCP dies: MPTCP is the change that lets the transfer finish.
#[test]
fn plain_tcp_on_a_path_that_dies() {
    let dies = "[[change]]\nat = \"0.3s\"\npath = \"wlan\"\nstate = \"blackhole\"\n[run]\nstop = \"10s\"\n";
    let answer = ask(&format!("{TWO}[client]\nmultipath = false\n[host]\nfirst-path = \"as-listed\"\n{dies}"), 2);
    says(
        &answer,
        &["lte carried nothing: the client is set to plain TCP.", "In 2 of 2 runs transfers did not finish."],
    );
    says(&answer, &["With MPTCP on both hosts all of them would have finished"]);
}

#[test]
fn a_run_that_is_too_short_for_all() {
    let answer = ask(&format!("{}[run]\nstop = \"1s\"\n", TWO.replace("4MB", "40MB")), 1);
    says(&answer, &["In 1 of 1 runs transfers did not finish.", "No change that was tried lets all of them finish."]);
}

/// Goodput: more is better, and the sentence says of what. Names in JSON are kebab-case.
#[test]
fn a_bulk_transfer() {
    let bulk = TWO.replace("\"files\"\nsize = \"4MB\"", "\"bulk\"\nduration = \"3s\"");
    let answer = ask(&format!("{bulk}[client]\nreceive-buffer = \"64KiB\"\n"), 2);
    says(&answer, &["goodput would have been ", " Mbit/s higher"]);
    let page = "[path.only]\nrate = \"20mbit\"\nrtt = \"20ms\"\n[[workload]]\nkind = \"files\"\nsize = \"10kB\"\n";
    let one = ask(page, 1);
    assert_eq!((answer.measure.as_str(), one.measure.as_str()), ("goodput", "completion-time"));
    assert!(one.left_out.iter().any(|left| left.because == "there is one path only"), "{:?}", one.left_out);
}

/// Others keep the link busy. The cause is what keeps this connection from its share, and a full link only where that
/// is its window.
#[test]
fn causes_beside_competing_traffic() {
    let beside = |host: &str| {
        format!(
            "[link.shared]\nrate = \"20mbit\"\ndelay = \"5ms\"\nqueue = \"64KiB\"\n[host]\ncongestion = \"lia\"\n\
             [path.a]\nrate = \"100mbit\"\ndelay = \"5ms\"\nvia = \"shared\"\n\
             [path.b]\nrate = \"100mbit\"\ndelay = \"10ms\"\nvia = \"shared\"\n\
             [[workload]]\nkind = \"bulk\"\nduration = \"5s\"\n\
             [[workload]]\nkind = \"tcp\"\npath = \"a\"\nduration = \"8s\"\ncongestion = \"reno\"\n{host}"
        )
    };
    let plain = ask(&beside(""), 2);
    assert!(share(&plain, Limit::PathFull) > 0.8, "{}", plain.sentence);
    says(
        &ask(&beside("[client]\nreceive-buffer = \"16KiB\"\n"), 2),
        &["the receiver's window, from a buffer of 16 KiB"],
    );
    let small = ask(&beside("[server]\nsend-buffer = \"16KiB\"\n"), 2);
    assert!(share(&small, Limit::SendBuffer) > 0.8, "{}", small.sentence);
}

#[test]
fn a_hole_on_the_slow_path() {
    let text = "[path.fast]\nrate = \"50mbit\"\nrtt = \"10ms\"\n[path.slow]\nrate = \"1mbit\"\nrtt = \"300ms\"\n\
                [[workload]]\nkind = \"files\"\nsize = \"8MB\"\n[host]\nreceive-buffer = \"128KiB\"\n\
                scheduler = \"round-robin\"\nreinjection = \"none\"\nfirst-path = \"as-listed\"\n";
    let answer = ask(text, 3);
    says(&answer, &["the receiver held data behind a hole on slow", "128 KiB"]);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let text = format!("{TWO}[client]\nreceive-buffer = \"64KiB\"\n");
    assert_eq!(ask(&text, 2), ask(&text, 2));
}
