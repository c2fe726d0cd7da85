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
    Inquiry::new(&scenario, alternatives, 1, repeat).run(2, &load, &|| {}).unwrap()
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
    says(&answer, &["receiver", "32 KiB", "With buffers of ", "less."]);
    assert!(share(&answer, Limit::PeerWindow) + share(&answer, Limit::HeadOfLine) > 0.5, "{:?}", answer.shares);
}

#[test]
fn a_tiny_send_buffer() {
    let answer = ask(&format!("{TWO}[server]\nsend-buffer = \"32KiB\"\n"), 3);
    says(&answer, &["the send buffer of 32 KiB was full", "With buffers of "]);
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
    says(&answer, &["lte carried nothing: the server answered without MP_CAPABLE."]);
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
