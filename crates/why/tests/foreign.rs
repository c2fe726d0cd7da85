//! Small captures of other stacks and habits, remade packet by packet: their verdicts, and that `inspect`, `why` and
//! `twin` agree about each.
//!
//! `ANABRANCH_FOREIGN_PCAPS` names a folder with captures of others, such as those of tcpdump's and ptcpdump's tests:
//! the commands have to agree about these as well.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "foreign/pen.rs"]
mod pen;

use anabranch_inspect::{Limits, Report, inspect_bytes};
use anabranch_why::{CaptureInquiry, FaultKind, JudgedDirection, Limit};
use anabranch_wire::{Flags, MpOption, ResetReason};
use pen::{CLIENT, KEYS, Pen, SERVER};

/// A capture with the right values.
struct Case {
    name: &'static str,
    capture: Vec<u8>,
    /// MPTCP connections, other TCP connections.
    connections: [usize; 2],
    /// Bytes of the main direction; 0 if there is none to judge.
    bytes: u64,
    /// Limits that may have more than a tenth of its time.
    limits: &'static [Limit],
    says: &'static [&'static str],
}

/// A case of one MPTCP connection whose application was silent most of the time.
fn silent(name: &'static str, pen: &Pen, bytes: u64) -> Case {
    let says = &["had written nothing more to send"];
    Case {
        name,
        capture: common::pcap(&pen.records, 65_535),
        connections: [1, 0],
        bytes,
        limits: &[Limit::ApplicationSends],
        says,
    }
}

/// Five pieces of 100 bytes from the server, each acknowledged in 1 ms, 0.1 s apart.
fn pieces(version: u8) -> Pen {
    let mut pen = Pen::mptcp(version);
    pen.open([0, 1_000, 1_100]);
    for piece in 0..5 {
        let at = 20_000 + 100_000 * piece;
        pen.data(at, SERVER, 100);
        pen.ack(at + 1_000, CLIENT, true);
    }
    pen
}

/// Segments of 16 bytes that TCP acknowledges at once and MPTCP late: the server says each again with new numbers of
/// the subflow.
fn late_data_acks() -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.open([0, 300, 500]);
    for piece in 0..3 {
        let at = 10_000 + 1_000_000 * piece;
        pen.data(at, CLIENT, 16);
        pen.ack(at + 300, SERVER, false);
        pen.again(at + 200_000, CLIENT, 1 + 16 * piece, 16);
        pen.ack(at + 200_300, SERVER, true);
        pen.data(at + 300_000, SERVER, 16);
        pen.ack(at + 300_200, CLIENT, false);
        pen.again(at + 500_000, SERVER, 1 + 16 * piece, 16);
        pen.ack(at + 500_200, CLIENT, true);
    }
    pen
}

/// Somebody types twice, the first time long after the handshake.
fn idle_before_data(pen: Pen) -> Pen {
    let mut pen = pen;
    pen.open([0, 1_000, 1_100]);
    for (at, length) in [(2_800_000, 5), (4_300_000, 4)] {
        pen.data(at, CLIENT, length);
        pen.ack(at + 1_000, SERVER, true);
    }
    pen
}

/// Pieces that leave alone, 0.3 s apart; the first is acknowledged at once, and the others after as long as Linux holds
/// an acknowledgment back.
fn late_acks() -> Pen {
    let mut pen = Pen::plain();
    pen.open([0, 1_000, 1_100]);
    for piece in 0..6 {
        let at = 20_000 + 300_000 * piece;
        pen.data(at, CLIENT, 100);
        pen.ack(at + if piece == 0 { 1_000 } else { 41_000 }, SERVER, true);
    }
    pen
}

/// A server that answers in two pieces, of which the second leaves before the first is acknowledged.
fn two_pieces() -> Pen {
    let mut pen = Pen::plain();
    pen.open([0, 923, 1_011]);
    pen.data(1_092, CLIENT, 72);
    pen.ack(2_715, SERVER, true);
    pen.data(4_113, SERVER, 23);
    pen.ack(4_150, CLIENT, true);
    pen.data(5_335, SERVER, 355);
    pen.ack(5_654, CLIENT, true);
    pen
}

/// Requests with pauses between them; each answer leaves `think` microseconds after its request.
fn requests(pen: Pen, think: u64, pause: u64, answer: u16) -> Pen {
    let mut pen = pen;
    pen.open([0, 1_000, 1_100]);
    let mut at = 2_000;
    for _ in 0..6 {
        pen.data(at, CLIENT, 40);
        pen.ack(at + 1_000, SERVER, true);
        pen.data(at + 1_000 + think, SERVER, answer);
        pen.ack(at + 1_100 + think, CLIENT, true);
        at += 2_000 + think + pause;
    }
    pen
}

/// Two neighbours exchange ten kilobytes in half a millisecond, in pieces that one initial window has room for.
fn neighbours() -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.open([0, 43, 113]);
    for (at, length, acked) in [(254, 7100, 268), (285, 1092, 300), (328, 1420, 343), (362, 656, 376)] {
        pen.data(at, CLIENT, length);
        pen.ack(acked, SERVER, true);
    }
    pen
}

/// Each piece leaves as soon as the one before is acknowledged, as a program writes that waits for nothing else; the
/// capture was made at the end that is named.
fn lock_step(sender: usize) -> Pen {
    let mut pen = Pen::mptcp(1);
    let steps = [[0, 20_000, 20_050], [0, 50, 20_050]][usize::from(sender == SERVER)];
    pen.open(steps);
    for piece in 0..20 {
        let at = 25_000 + 20_100 * piece;
        pen.data(at, sender, 1400);
        pen.ack(at + 20_000, 1 - sender, true);
    }
    pen
}

/// Eight segments that leave at once.
fn one_window() -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.open([0, 50_000, 50_100]);
    pen.data(50_200, CLIENT, 100);
    for segment in 0..8 {
        pen.data(100_300 + 120 * segment, SERVER, 1400);
        pen.ack(100_310 + 120 * segment, CLIENT, true);
    }
    pen
}

fn fast_close() -> Pen {
    let mut pen = Pen::mptcp(0);
    pen.open([0, 300, 600]);
    pen.data(1_012_000, SERVER, 1);
    pen.ack(1_012_200, CLIENT, true);
    let close = MpOption::FastClose { receiver_key: KEYS[SERVER] };
    pen.option(5_012_000, CLIENT, Flags::ACK, close);
    pen.reset(5_012_200, SERVER, ResetReason::Unspecified, false);
    pen
}

fn orphan_resets() -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.reset(0, SERVER, ResetReason::Prohibited, false);
    pen.reset(1_000, SERVER, ResetReason::Middlebox, true);
    pen
}

fn orphan_addresses() -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.add_addr(0, SERVER, Some(false));
    pen.add_addr(1_000, CLIENT, None);
    pen
}

fn leftmost_hmac() -> Pen {
    let mut pen = pieces(1);
    pen.add_addr(600_000, SERVER, Some(true));
    pen
}

fn cases() -> Vec<Case> {
    let nothing = |case: Case, connections, says| Case { connections, bytes: 0, limits: &[], says, ..case };
    let in_step = |name, sender| Case {
        limits: &[Limit::ApplicationSends, Limit::InFlight],
        ..silent(name, &lock_step(sender), 28_000)
    };
    let snapped = pieces(1);
    let mut middle = pieces(1);
    middle.records.drain(..5);
    vec![
        silent("version 0", &pieces(0), 500),
        silent("version 1", &pieces(1), 500),
        silent("late DATA_ACKs", &late_data_acks(), 48),
        silent("idle before data", &idle_before_data(Pen::mptcp(1)), 9),
        silent("nc on loopback", &idle_before_data(Pen::mptcp(1).at_home()), 9),
        silent("idle between requests", &requests(Pen::mptcp(1), 0, 700_000, 900), 5400),
        silent("a server that thinks", &requests(Pen::mptcp(1), 400_000, 1_000, 900), 5400),
        silent("a small ssh session", &requests(Pen::mptcp(0), 2_000, 150_000, 52), 312),
        Case { connections: [0, 1], ..silent("late acknowledgments", &late_acks(), 600) },
        Case {
            connections: [0, 1],
            limits: &[Limit::ApplicationSends, Limit::Handshake, Limit::Request, Limit::InFlight],
            ..silent("two pieces", &two_pieces(), 378)
        },
        Case {
            connections: [0, 1],
            says: &["had written nothing more to send", "the client asked for plain TCP"],
            ..silent("plain TCP", &requests(Pen::plain(), 0, 300_000, 900), 5400)
        },
        silent("fast close", &fast_close(), 1),
        silent("leftmost bits of an HMAC", &leftmost_hmac(), 500),
        Case {
            limits: &[Limit::ApplicationSends, Limit::Handshake, Limit::InFlight],
            ..silent("ten kilobytes between neighbours", &neighbours(), 10_268)
        },
        in_step("in step, at the client", CLIENT),
        in_step("in step, at the server", SERVER),
        Case {
            limits: &[Limit::Handshake, Limit::Request, Limit::InFlight],
            says: &["the connection was being set up"],
            ..silent("within one window", &one_window(), 11_200)
        },
        silent("begun in the middle", &middle, 400),
        Case { capture: common::pcap(&snapped.records, 96), ..silent("cut behind the headers", &snapped, 500) },
        nothing(
            silent("one direction", &pieces(1).without(CLIENT), 0),
            [1, 0],
            &["Packets of one side only are in the capture"],
        ),
        nothing(
            silent("RSTs alone", &orphan_resets(), 0),
            [0, 1],
            &[
                "MPTCP handshake is not in the capture",
                "administratively prohibited (3)",
                "middlebox interference (6), trying again later may help",
            ],
        ),
        nothing(
            silent("addresses alone", &orphan_addresses(), 0),
            [0, 1],
            &["MPTCP handshake is not in the capture", "ADD_ADDR from 198.51.100.20:443: address 3 is 198.51.100.21"],
        ),
    ]
}

fn report(name: &str, capture: &[u8]) -> Report {
    inspect_bytes(vec![(name.to_owned(), capture.to_vec())], Limits::default(), &mut |_| ()).findings.report
}

fn inquiry(name: &str, capture: &[u8]) -> CaptureInquiry {
    CaptureInquiry::read_bytes(vec![(name.to_owned(), capture.to_vec())])
}

#[test]
fn no_cause_is_invented() {
    for case in cases() {
        let name = case.name;
        let answer = inquiry(name, &case.capture).answer(None);
        let connection = answer.connection.as_ref().unwrap();
        for words in case.says {
            assert!(answer.sentence.contains(words), "{name}: `{words}` is missing: {}", answer.sentence);
        }
        for words in ["MTU", "behind a hole", "window", "pacing", "buffer"] {
            assert!(!answer.sentence.contains(words), "{name}: {words}: {}", answer.sentence);
        }
        let main = connection.directions.first();
        assert_eq!(main.map_or(0, |direction| direction.bytes), case.bytes, "{name}");
        for share in main.into_iter().flat_map(|direction| &direction.shares) {
            let may = case.limits.contains(&share.limit);
            assert!(may || share.share <= 0.1, "{name}: {} in {:.2}", share.limit.name(), share.share);
        }
        let alone = case.limits.is_empty();
        let claims = connection.captured == "at both ends" || connection.unknown.join(" ").contains("two captures");
        assert!(!claims, "{name}: {}", connection.captured);
        let tells = connection.captured != "at a place that its packets do not tell";
        assert!(alone || tells, "{name}: {}", connection.captured);
    }
}

/// The facts that several commands tell are the same in each.
fn agree(name: &str, capture: &[u8]) -> [usize; 2] {
    let report = report(name, capture);
    let inquiry = inquiry(name, capture);
    let counts = [report.connections.len(), report.plain_tcp.len()];
    assert_eq!(inquiry.connections(), counts[0] + counts[1], "{name}");
    for number in 1..=inquiry.connections() {
        let connection = inquiry.answer(Some(number)).connection.unwrap();
        assert_eq!(connection.multipath, number <= counts[0], "{name}");
        let version = report.connections.get(number - 1).and_then(|it| it.version);
        assert_eq!(connection.version, version, "{name}");
        for direction in &connection.directions {
            same_direction(name, &report, number, direction);
        }
        let Ok(twin) = inquiry.twin(Some(number)) else { continue };
        let from = connection.directions.iter().find(|direction| direction.bytes == twin.bytes);
        assert!(from.is_some() || connection.directions.is_empty(), "{name}: {} bytes in the twin", twin.bytes);
        assert_eq!((twin.multipath, &twin.endpoints), (connection.multipath, &connection.endpoints), "{name}");
        assert_eq!(twin.mptcp_version, version, "{name}");
    }
    counts
}

fn same_direction(name: &str, report: &Report, number: usize, direction: &JudgedDirection) {
    let side = direction.from;
    let (bytes, in_order) = match report.connections.get(number - 1) {
        Some(connection) => {
            let facts = &connection.directions[side];
            let again = connection.subflows.iter().map(|it| it.sent[side].retransmitted_segments).sum::<u64>();
            let unseen = connection.subflows.iter().map(|it| it.sent[side].retransmitted_unseen_segments).sum::<u64>();
            (facts.bytes + facts.unmapped_bytes, facts.gaps + facts.out_of_order_segments + again + unseen == 0)
        }
        None => {
            let plain = &report.plain_tcp[number - 1 - report.connections.len()];
            (plain.bytes[side], false)
        }
    };
    assert_eq!(direction.bytes, bytes, "{name}, connection {number}");
    let behind = |limit| direction.shares.iter().any(|share| share.limit == limit);
    if in_order {
        let lost: u64 = direction.measured.iter().map(|path| path.lost).sum();
        assert_eq!(lost, 0, "{name}, connection {number}: lost, and nothing was out of order or sent again");
        let hole = behind(Limit::HeadOfLine) && direction.measured.len() < 2;
        assert!(!hole, "{name}, connection {number}: a hole where nothing was out of order");
    }
}

#[test]
fn the_commands_agree() {
    for case in cases() {
        assert_eq!(agree(case.name, &case.capture), case.connections, "{}", case.name);
    }
    for version in [0, 1] {
        let capture = common::pcap(&pieces(version).records, 65_535);
        let judged = inquiry("version", &capture).answer(None).connection.unwrap();
        assert_eq!(judged.version, Some(version));
    }
    let Some(folder) = std::env::var_os("ANABRANCH_FOREIGN_PCAPS") else {
        eprintln!("SKIPPED: captures of others; ANABRANCH_FOREIGN_PCAPS names a folder with some");
        return;
    };
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == "pcap" || it == "pcapng") {
            agree(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
}

/// An authenticator that begins where early kernels began it is told from one that is merely wrong.
#[test]
fn an_early_kernels_authenticator_is_named() {
    let told = |leftmost: bool| {
        let mut pen = pieces(1);
        pen.add_addr(600_000, SERVER, Some(leftmost));
        let report = report("address", &common::pcap(&pen.records, 65_535));
        let signal = &report.connections[0].signals[0];
        (signal.verified, signal.text.contains("leftmost bits of the HMAC"))
    };
    assert_eq!(told(true), (Some("bad"), true));
    assert_eq!(told(false), (Some("good"), false));
}

/// Twenty writes of a full segment and a rest; each rest leaves `delay` microseconds later, right after the
/// acknowledgment, or with the full segment if it is not held back.
fn rests(held: bool, delay: u64) -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.stamps = false;
    pen.open([0, 1_000, 1_100]);
    for write in 0..20 {
        let at = 10_000 + 10_000 * write + write * delay;
        pen.data(at, CLIENT, 1400);
        if !held {
            pen.data(at + 10, CLIENT, 100);
        }
        pen.ack(at + delay, SERVER, true);
        if held {
            pen.data(at + delay + 50, CLIENT, 100);
        }
        pen.ack(at + delay + 1_050, SERVER, true);
    }
    pen
}

/// Small segments that wait for acknowledgments are told from those that do not, and prompt acknowledgments from late
/// ones.
#[test]
fn small_segments_that_are_held_back_are_named() {
    let sentence = |held: bool, delay: u64| {
        let capture = common::pcap(&rests(held, delay).records, 65_535);
        inquiry("rests", &capture).answer(None).sentence
    };
    let prompt = sentence(true, 8_000);
    assert!(prompt.starts_with("On 192.0.2.10 the sender held 20 small segments back"), "{prompt}");
    let late = sentence(true, 60_000);
    assert!(late.starts_with("On 192.0.2.10 the sender waited 20 times for an acknowledgment"), "{late}");
    for delay in [8_000, 60_000] {
        let free = sentence(false, delay);
        assert!(!free.contains("Nagle") && !free.contains("TCP_NODELAY"), "{free}");
    }
}

/// A server that refuses a join says nothing of limits once all data has been sent: the join was too late.
#[test]
fn a_join_refused_after_the_transfer_is_late() {
    let refused = |at: u64| {
        let mut pen = Pen::mptcp(1);
        pen.open([0, 1_000, 1_100]);
        for piece in 0..20 {
            pen.data(2_000 + 2_000 * piece, SERVER, 1400);
            pen.ack(3_000 + 2_000 * piece, CLIENT, true);
        }
        pen.refused_join([at, at + 1_000], ResetReason::Prohibited);
        pen.records.sort_by_key(|(at, _)| *at);
        let answer = inquiry("refused", &common::pcap(&pen.records, 65_535)).answer(None);
        (answer.connection.unwrap().faults[0].kind, answer.sentence)
    };
    for at in [39_900, 45_000, 2_000_000] {
        let (kind, late) = refused(at);
        assert_eq!(kind, FaultKind::JoinLate, "{late}");
        assert!(!late.contains("limits") && !late.starts_with("192.0.2.11"), "{late}");
        assert!(
            late.ends_with("192.0.2.11 carried nothing: all data had been sent before its join could be complete.")
        );
    }
    let (kind, early) = refused(5_000);
    assert_eq!(kind, FaultKind::JoinRefused);
    assert!(early.contains("ip mptcp limits"), "{early}");
}

/// A reader that takes a full segment and a rest only every 60 ms, and whose kernel acknowledges the full segment when
/// there is room again; the capture was made at the end that is named. `window` is the room that it leaves meanwhile.
fn slow_reader(window: u16, sender: usize) -> Pen {
    let mut pen = Pen::mptcp(1);
    pen.stamps = false;
    // Time from the capture to the server and back to the sender [µs].
    let there = [1_000, 0][usize::from(sender == SERVER)];
    pen.open([0, there, 1_100]);
    pen.windows[SERVER] = window;
    pen.ack(5_000, SERVER, true);
    for write in 0..20 {
        let at = 10_000 + 70_000 * write;
        pen.pushes = false;
        pen.data(at, CLIENT, 1400);
        pen.ack(at + 60_000, SERVER, true);
        pen.pushes = true;
        // The rest arrives right after the acknowledgment where the sender was captured, else a round trip later.
        let rest = at + 60_000 + if there > 0 { 50 } else { 1_050 };
        pen.data(rest, CLIENT, 100);
        pen.ack(rest + there + 10, SERVER, true);
    }
    pen
}

/// An acknowledgment that comes when a window opens again is late for want of room.
#[test]
fn a_closed_window_is_no_delayed_acknowledgment() {
    let answer = |window, sender| {
        let capture = common::pcap(&slow_reader(window, sender).records, 65_535);
        let answer = inquiry("slow reader", &capture).answer(None);
        let late = answer.connection.unwrap().faults.iter().any(|it| it.kind == FaultKind::DelayedAck);
        (late, answer.sentence)
    };
    for sender in [CLIENT, SERVER] {
        let (late, sentence) = answer(1400, sender);
        assert!(!late && !sentence.contains("TCP_NODELAY"), "{sender}: {sentence}");
        assert!(sentence.contains("the server's window, of 1400 B at most, was used up"), "{sender}: {sentence}");
        let (late, sentence) = answer(60_000, sender);
        assert!(late, "with room it is one, captured at {sender}: {sentence}");
    }
}
