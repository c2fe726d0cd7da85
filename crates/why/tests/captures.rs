//! Planted causes in captures of runs, and captures that are cut, shuffled, one-sided, snapped or empty: the sentence
//! is true of each.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_lab::timeline::Copied;
use anabranch_lab::{Keep, run};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use anabranch_why::{CaptureAnswer, CaptureInquiry, Confidence, FaultKind, JudgedConnection, Limit};
use common::{Record, pcap, records};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Two equal paths without loss, and a download.
const TWO: &str = "[path.wlan]\nrate = \"20mbit\"\nrtt = \"20ms\"\nqueue = \"100p\"\n\
                   [path.lte]\nrate = \"20mbit\"\nrtt = \"40ms\"\nqueue = \"100p\"\n\
                   [[workload]]\nkind = \"files\"\nsize = \"4MB\"\n";

/// A run that was captured at both ends.
struct Captured {
    directory: PathBuf,
}

impl Captured {
    fn of(test: &str, text: &str) -> Self {
        let origin = Origin { scenario: "planted.toml".to_owned(), sets: Vec::new() };
        let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        let catalogue = Arc::new(Catalogue::default());
        let scenario = Scenario::read(&catalogue, "planted", "planted.toml", text, origin, &none).unwrap();
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("captures-{test}"));
        let keep = Keep { captures: Some(directory.clone()), ..Keep::default() };
        run(&scenario, 1, &keep).unwrap();
        Captured { directory }
    }

    fn ask(&self, hosts: &[&str]) -> CaptureAnswer {
        let files: Vec<PathBuf> = hosts.iter().map(|host| self.file(host)).collect();
        CaptureInquiry::read(&files).answer(None)
    }

    fn file(&self, host: &str) -> PathBuf {
        self.directory.join(format!("{host}.pcapng"))
    }

    /// Records of a host's file: nanoseconds, bytes.
    fn records(&self, host: &str) -> Vec<Record> {
        records(&self.file(host))
    }
}

/// Asks about a pcap file of these records, of which at most `snap` bytes were captured.
fn ask_of(test: &str, records: &[Record], snap: usize) -> CaptureAnswer {
    CaptureInquiry::read(&[written(test, &pcap(records, snap))]).answer(None)
}

fn ask_bytes(test: &str, bytes: &[u8]) -> CaptureAnswer {
    CaptureInquiry::read(&[written(test, bytes)]).answer(None)
}

fn written(test: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("captures-{test}.pcap"));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn connection(answer: &CaptureAnswer) -> &JudgedConnection {
    answer.connection.as_ref().unwrap()
}

/// The share of a limit in the main direction, on whatever path.
fn share(answer: &CaptureAnswer, limit: Limit) -> f64 {
    let shares = &connection(answer).directions[0].shares;
    shares.iter().filter(|share| share.limit == limit).map(|share| share.share).sum()
}

fn has(answer: &CaptureAnswer, kind: FaultKind) -> bool {
    connection(answer).faults.iter().any(|fault| fault.kind == kind)
}

#[track_caller]
fn says(answer: &CaptureAnswer, words: &[&str]) {
    for word in words {
        assert!(answer.sentence.contains(word), "`{word}` is missing: {}", answer.sentence);
    }
}

/// Intervals add up, for the connection and each path.
#[track_caller]
fn adds_up(answer: &CaptureAnswer) {
    for direction in &connection(answer).directions {
        let rows = direction.paths.iter().map(|path| &path.intervals).chain([&direction.intervals]);
        for intervals in rows {
            let sum: u64 = intervals.iter().map(|it| it.to_ns - it.from_ns).sum();
            assert_eq!(sum, direction.time_ns);
            assert!(intervals.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        }
        assert_eq!(direction.shares.iter().map(|it| it.time_ns).sum::<u64>(), direction.time_ns);
    }
}

/// The capture of the client and that of the server, the former by a clock that is ahead by `lead` of the time since it
/// began \[ns\].
fn with_clock(captured: &Captured, name: &str, lead: impl Fn(u64) -> i64) -> CaptureAnswer {
    let files = ["client", "server"].map(|host| {
        let mut records = captured.records(host);
        let begin = records[0].0;
        if host == "client" {
            records.iter_mut().for_each(|(at, _)| *at = at.checked_add_signed(lead(*at - begin)).unwrap());
        }
        written(&format!("clock-{name}-{host}"), &pcap(&records, usize::MAX))
    });
    CaptureInquiry::read(&files).answer(None)
}

/// Two files are those of the two ends only where one is at each and their clocks agree all the time: otherwise that of
/// the sender is judged alone, and the answer says so.
#[test]
fn captures_that_do_not_fit_are_not_taken_for_two_ends() {
    let captured = Captured::of("misfit", TWO);
    let alone = captured.ask(&["server"]);
    let twice = captured.ask(&["server", "server"]);
    let set = with_clock(&captured, "set", |at| if at < 300_000_000 { 0 } else { 100_000_000 });
    for (what, answer) in [("twice", twice), ("set", set)] {
        let unknown = connection(&answer).unknown.join(" ");
        assert!(unknown.contains("do not fit together"), "{what}: {unknown}");
        assert_eq!(connection(&answer).directions[0].confidence, Confidence::Low, "{what}");
        let off = (share(&answer, Limit::PathFull) - share(&alone, Limit::PathFull)).abs();
        assert!(off < 0.02, "{what}: {} and {}", answer.sentence, alone.sentence);
    }
    let both = captured.ask(BOTH);
    assert_eq!(connection(&both).directions[0].confidence, Confidence::High);
}

/// Clocks that cannot be right are made to agree: the answer is that of clocks that do.
#[test]
fn clocks_that_differ_are_made_to_agree() {
    let captured = Captured::of("clocks", TWO);
    let right = with_clock(&captured, "right", |_| 0);
    assert!(right.files.iter().all(|file| file.clock.is_none()));
    for seconds in [0.1, -0.1, 7200.5, -7200.5] {
        let answer = with_clock(&captured, "wrong", |_| (seconds * 1e9) as i64);
        let clock = answer.files[1].clock.as_ref().unwrap();
        assert!((clock.ahead_s + seconds).abs() < clock.within_s && clock.within_s < 0.011, "{clock:?}");
        assert_eq!(answer.sentence, right.sentence);
        assert_eq!(connection(&answer).directions[0].confidence, Confidence::High);
        let unknown = connection(&answer).unknown.join(" ");
        assert!(unknown.contains(&format!("{:.3} s apart", clock.ahead_s.abs())), "{unknown}");
        for entry in anabranch_why::LIMITS {
            let [found, true_one] = [&answer, &right].map(|it| share(it, entry.limit));
            assert!((found - true_one).abs() < 0.01, "{seconds} s, {}: {found} and {true_one}", entry.name);
        }
    }
}

const BOTH: &[&str] = &["client", "server"];
const EACH: [&[&str]; 3] = [BOTH, &["server"], &["client"]];

#[test]
fn a_tiny_receive_buffer() {
    let captured = Captured::of("rmem", &format!("{TWO}[client]\nreceive-buffer = \"32KiB\"\n"));
    for hosts in [BOTH, &["server"]] {
        let answer = captured.ask(hosts);
        adds_up(&answer);
        says(&answer, &["the client's window, of 32 KiB at most, was used up", "net.ipv4.tcp_rmem"]);
        assert!(share(&answer, Limit::PeerWindow) + share(&answer, Limit::HeadOfLine) > 0.5);
    }
}

#[test]
fn a_tiny_send_buffer() {
    let captured = Captured::of("wmem", &format!("{TWO}[server]\nsend-buffer = \"32KiB\"\n"));
    for hosts in [BOTH, &["server"]] {
        says(&captured.ask(hosts), &["the send buffer of the server was full", "net.ipv4.tcp_wmem"]);
    }
}

#[test]
fn a_path_that_loses() {
    let lossy = TWO.replace("queue = \"100p\"\n", "queue = \"100p\"\nloss = \"3%\"\n");
    let answer = Captured::of("loss", &lossy).ask(BOTH);
    says(&answer, &["the congestion window of ", " was full and left it idle, after losses: "]);
}

#[test]
fn a_bloated_queue() {
    let text = TWO.replace("100p", "2000p").replace("20mbit", "2mbit");
    let captured = Captured::of("bloat", &text);
    for hosts in EACH {
        says(&captured.ask(hosts), &["all paths in use carried all that they can", "(bufferbloat)"]);
    }
}

/// A path that lets some packets overtake others: senders take the late ones for lost.
#[test]
fn a_path_that_reorders() {
    let reorder = "rtt = \"20ms\"\nreorder = { probability = \"5%\", delay = \"30ms\" }\n";
    let answer = Captured::of("reorder", &TWO.replacen("rtt = \"20ms\"\n", reorder, 1)).ask(BOTH);
    assert!(answer.sentence.starts_with("On wlan packets overtook each other ("), "{}", answer.sentence);
    assert!(!has(&Captured::of("in-order", TWO).ask(BOTH), FaultKind::Reordering));
}

#[test]
fn a_backup_path() {
    let text = TWO.replacen("rtt = \"40ms\"\n", "rtt = \"40ms\"\nbackup = true\n", 1);
    let captured = Captured::of("backup", &text);
    for hosts in EACH {
        let answer = captured.ask(hosts);
        says(&answer, &["lte carried nothing: it is marked as a backup.", "nobackup"]);
        assert!(has(&answer, FaultKind::Backup));
    }
}

#[test]
fn a_plain_server() {
    let text = format!("{TWO}[server]\nmultipath = false\n[host]\nfirst-path = \"as-listed\"\n");
    let captured = Captured::of("plain", &text);
    let answer = captured.ask(BOTH);
    says(
        &answer,
        &["Only 10.0.0.1 carried data: the server answered without MP_CAPABLE. Start the server with `mptcpize"],
    );
    let answer = captured.ask(&["client"]);
    says(
        &answer,
        &["answered without MP_CAPABLE (or a box on the way removed it: a capture at the server would tell)."],
    );
}

/// A capture at both ends tells a box from a plain server; one at the client does not, and says so.
#[test]
fn options_stripped_on_the_way() {
    let strip = "[[path.wlan.middlebox]]\nkind = \"strip\"\nfrom = \"syn\"\n[host]\nfirst-path = \"as-listed\"\n";
    let captured = Captured::of("strip", &format!("{TWO}{strip}"));
    let answer = captured.ask(BOTH);
    says(&answer, &["MP_CAPABLE was removed from the SYN on its way, by a box."]);
    assert!(has(&answer, FaultKind::OptionRemoved));
    says(&captured.ask(&["client"]), &["a box on the way removed it"]);
}

#[test]
fn a_join_that_is_not_answered() {
    let drop =
        "[[path.lte.middlebox]]\nkind = \"drop-syn\"\noption = \"mp-join\"\n[host]\nfirst-path = \"as-listed\"\n";
    let answer = Captured::of("join", &format!("{TWO}{drop}")).ask(&["client"]);
    says(&answer, &["lte carried nothing: its join was never answered", "Check the route of this address"]);
    assert!(has(&answer, FaultKind::JoinUnanswered));
}

/// The transfer ends before the second path can carry anything: that is no fault of the path, wherever it is seen.
#[test]
fn a_transfer_too_short_for_a_join() {
    let captured = Captured::of("short", &TWO.replace("4MB", "20kB"));
    for hosts in EACH {
        let answer = captured.ask(hosts);
        let kinds: Vec<FaultKind> = connection(&answer).faults.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [FaultKind::JoinLate], "{}", answer.sentence);
        assert!(!answer.sentence.starts_with("lte"), "{}", answer.sentence);
    }
}

#[test]
fn a_black_hole_for_large_packets() {
    let hole = "[[path.lte.middlebox]]\nkind = \"mtu-blackhole\"\n[host]\nfirst-path = \"as-listed\"\n";
    let answer = Captured::of("mtu", &format!("{TWO}{hole}")).ask(BOTH);
    says(&answer, &["On lte segments of up to ", " bytes never arrived"]);
}

/// A real host takes some microseconds from its acknowledgment to the data that it sends for the same reason.
#[test]
fn a_black_hole_of_a_host_that_takes_its_time() {
    let hole = "[[path.lte.middlebox]]\nkind = \"mtu-blackhole\"\n[host]\nfirst-path = \"as-listed\"\n";
    let captured = Captured::of("mtu-late", &format!("{TWO}{hole}"));
    let files = ["client", "server"].map(|host| {
        let mut records = captured.records(host);
        for (at, bytes) in &mut records {
            let headers = 20 + usize::from(bytes[32] >> 4) * 4;
            if bytes[12..14] == [10, 1] && bytes.len() == headers {
                *at -= 3000;
            }
        }
        records.sort_by_key(|(at, _)| *at);
        written(&format!("mtu-late-{host}"), &pcap(&records, usize::MAX))
    });
    let answer = CaptureInquiry::read(&files).answer(None);
    says(&answer, &["On 10.0.1.1 segments of up to ", " bytes never arrived"]);
}

#[test]
fn a_path_that_is_down() {
    let dies =
        "[[change]]\nat = \"0.3s\"\npath = \"wlan\"\nstate = \"blackhole\"\n[host]\nfirst-path = \"as-listed\"\n";
    let captured = Captured::of("down", &format!("{}{dies}", TWO.replace("4MB", "8MB")));
    let answer = captured.ask(BOTH);
    says(&answer, &["nothing that was sent on wlan arrived, as if it were down."]);
    assert!(share(&answer, Limit::PathDown) > 0.5, "{:?}", connection(&answer).directions[0].shares);
}

#[test]
fn a_capture_that_is_cut_or_begins_in_the_middle() {
    let captured = Captured::of("cut", TWO);
    let records = captured.records("server");
    let answer = ask_of("cut-end", &records[..records.len() / 2], usize::MAX);
    adds_up(&answer);
    says(&answer, &["The capture ends before the last of the data arrived."]);
    let answer = ask_of("cut-begin", &records[records.len() / 2..], usize::MAX);
    adds_up(&answer);
    let judged = connection(&answer);
    assert_eq!(judged.directions[0].confidence, Confidence::Low);
    assert!(judged.unknown.iter().any(|line| line.contains("misses a handshake")), "{:?}", judged.unknown);
    let bytes = std::fs::read(captured.file("server")).unwrap();
    let answer = ask_bytes("cut-bytes", &bytes[..bytes.len() * 2 / 3]);
    adds_up(&answer);
    assert!(answer.files[0].error.as_ref().unwrap().contains("the file ends within"), "{:?}", answer.files);
}

/// Packets that the capture itself missed have arrived if the receiver says so.
#[test]
fn a_capture_with_gaps() {
    let captured = Captured::of("gaps", TWO);
    let records = captured.records("client");
    let whole = ask_of("gapless", &records, usize::MAX);
    let some: Vec<Record> = (records.iter().enumerate().filter(|(index, _)| *index < 20 || index % 50 != 0))
        .map(|(_, record)| record.clone())
        .collect();
    let answer = ask_of("gaps", &some, usize::MAX);
    adds_up(&answer);
    assert!(connection(&answer).directions[0].finished, "{}", answer.sentence);
    assert!(!answer.sentence.contains("The capture ends before"), "{}", answer.sentence);
    let [with, without] = [&answer, &whole].map(|it| share(it, Limit::Scheduler));
    assert!((with - without).abs() < 0.05, "scheduler: {with} with gaps, {without} without");
}

/// Without a handshake, who answers at once is beside the capture: what comes late there was lost, and not overtaken.
#[test]
fn a_capture_at_the_receiver_that_begins_in_the_middle() {
    let lossy = TWO.replace("20ms\"\nqueue = \"100p\"", "20ms\"\nqueue = \"40p\"");
    let records = Captured::of("middle", &lossy).records("client");
    let answer = ask_of("middle", &records[records.len() / 3..], usize::MAX);
    adds_up(&answer);
    assert!(!has(&answer, FaultKind::Reordering), "{}", answer.sentence);
}

/// Records out of order by a little are put in order: the answer is the same. Those of one instant stay in the order of
/// the file. A burst that is turned round looks like a loss, which ends slow start; nothing else changes much.
#[test]
fn a_shuffled_capture() {
    let records = Captured::of("shuffled", TWO).records("server");
    let plain = ask_of("ordered", &records, usize::MAX);
    let mut reversed = records;
    reversed.chunks_mut(97).for_each(<[_]>::reverse);
    let mut shuffled = reversed.clone();
    shuffled.chunks_mut(97).for_each(|chunk| chunk.chunk_by_mut(|a, b| a.0 == b.0).for_each(<[_]>::reverse));
    let answer = ask_of("shuffled", &shuffled, usize::MAX);
    adds_up(&answer);
    assert_eq!(answer.sentence, plain.sentence);
    let answer = ask_of("reversed", &reversed, usize::MAX);
    adds_up(&answer);
    let windows = [Limit::SlowStart, Limit::CongestionWindow];
    let of = |limits: &[Limit]| [&answer, &plain].map(|it| limits.iter().map(|limit| share(it, *limit)).sum::<f64>());
    let others = anabranch_why::LIMITS.iter().map(|entry| entry.limit).filter(|limit| !windows.contains(limit));
    for limits in others.map(|limit| vec![limit]).chain([windows.to_vec()]) {
        let [turned, right] = of(&limits);
        assert!((turned - right).abs() < 0.03, "{limits:?}: {turned} and {right}");
    }
}

/// Only one direction was captured: nothing tells what arrived, or what was sent.
#[test]
fn one_direction_only() {
    let records = Captured::of("one-way", TWO).records("server");
    let from_server = |bytes: &[u8]| bytes[12..14] == [10, 1];
    for (name, wanted) in [("data", true), ("acks", false)] {
        let one: Vec<_> = records.iter().filter(|(_, bytes)| from_server(bytes) == wanted).cloned().collect();
        let answer = ask_of(&format!("one-way-{name}"), &one, usize::MAX);
        says(&answer, &["Packets of one side only are in the capture"]);
        assert!(connection(&answer).directions.is_empty());
    }
}

/// 60 bytes have the addresses and the fixed header, and not all options.
#[test]
fn a_snapped_capture() {
    let records = Captured::of("snapped", TWO).records("server");
    let whole = ask_of("whole", &records, usize::MAX);
    let answer = ask_of("headers", &records, 100);
    adds_up(&answer);
    assert_eq!(answer.sentence, whole.sentence, "headers alone say the same");
    let answer = ask_of("options-cut", &records, 60);
    adds_up(&answer);
    let judged = connection(&answer);
    assert!(judged.unknown.iter().any(|line| line.contains("Options of packets were cut")), "{:?}", judged.unknown);
    assert!(judged.directions.iter().all(|it| it.confidence == Confidence::Low));
}

#[test]
fn a_capture_without_times() {
    let records = Captured::of("timeless", TWO).records("server");
    let timeless: Vec<Record> = records.into_iter().map(|(_, bytes)| (1_000_000_000, bytes)).collect();
    says(&ask_of("timeless", &timeless, usize::MAX), &["All packets of this transfer have one time"]);
}

#[test]
fn plain_tcp() {
    let text = format!("{TWO}[host]\nmultipath = false\nfirst-path = \"as-listed\"\n");
    let answer = Captured::of("no-mptcp", &text).ask(BOTH);
    adds_up(&answer);
    says(&answer, &["the client asked for plain TCP", "of the time"]);
    assert!(!connection(&answer).multipath);
}

#[test]
fn captures_of_nothing() {
    says(&ask_of("no-packet", &[], usize::MAX), &["The capture holds no packet."]);
    let udp = anabranch_capture::udp("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap(), 100);
    says(&ask_of("udp", &[(1, udp)], usize::MAX), &["The capture holds 1 packet and no TCP connection"]);
    let syn_only = &Captured::of("syn", TWO).records("client")[..1];
    let answer = ask_of("syn-only", syn_only, usize::MAX);
    says(&answer, &["The capture has no data of this connection: there is nothing to judge."]);
    assert!(ask_bytes("text", b"no capture").connection.is_none());
}

/// The drawing of a transfer names packets by their numbers in the files, and has every byte once as new data.
#[test]
fn a_trace_names_the_packets_of_the_captures() {
    let captured = Captured::of("trace", &TWO.replace("queue = \"100p\"\n", "queue = \"100p\"\nloss = \"1%\"\n"));
    let files = ["client", "server"].map(|host| captured.file(host));
    let inquiry = CaptureInquiry::read(&files);
    let answer = inquiry.answer(None);
    let traces = inquiry.traces(None);
    let trace = traces.first().unwrap();
    assert_eq!((trace.from, connection(&answer).directions[0].from), (1, 1), "the server sends");
    assert_eq!(trace.paths, ["wlan", "lte"]);
    // The data stands at the end of each record that its number names, at both ends.
    let records = ["client", "server"].map(|host| captured.records(host));
    let origin = connection(&answer).begin_unix_ns;
    let mut at_both = 0;
    for it in trace.sent.iter().filter(|it| it.length > 0) {
        let ends = trace.subflows[it.subflow].files.map(Option::unwrap);
        let record = |end: usize| records[ends[end]].get(it.numbers[end].checked_sub(1)? as usize);
        let left = record(0).unwrap();
        assert_eq!(left.0, it.at, "packet {} of the server left then", it.numbers[0]);
        assert!(left.1.len() as u64 > it.length && it.at >= origin);
        if let Some(arrived) = it.arrived {
            let came = record(1).unwrap();
            assert_eq!((came.0, &came.1), (arrived, &left.1), "packet {} of the client is the same", it.numbers[1]);
            at_both += 1;
        }
        assert!(!(it.lost && it.arrived.is_some()));
    }
    assert!(at_both > 2500, "{at_both}");
    let new = trace.sent.iter().filter(|it| it.copy == Copied::New).map(|it| it.length).sum::<u64>();
    assert_eq!(new, 4_000_000);
    assert!(trace.sent.iter().any(|it| it.copy == Copied::Retransmitted) && trace.sent.iter().any(|it| it.lost));
    // The same from one end, where the other's numbers are not known.
    let alone = CaptureInquiry::read(&files[1..]).traces(None);
    assert!(alone[0].sent.iter().all(|it| it.numbers[1] == 0 && it.numbers[0] > 0));
    let [server, client] = trace.subflows[1].ends.each_ref().map(|end| end.parse().unwrap());
    assert_eq!(inquiry.traces_between(client, server), traces, "the second subflow is one of its own");
    assert!(inquiry.traces_between(client, client).is_empty() && inquiry.traces(Some(2)).is_empty());
    assert!(trace.flight.iter().any(|it| it.in_flight > 20_000 && it.window > 20_000));
}
