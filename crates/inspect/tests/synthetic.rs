//! Packets made by hand, so that every number in the report can be checked with pencil and paper.
#![allow(clippy::unwrap_used)]

use anabranch_inspect::{Inspector, Limits, Report};
use anabranch_units::{AddressId, Dsn, Duration, Instant, Key, Nonce, SubflowSeq, add_addr_hmac, join_hmac};
use anabranch_wire::{
    AddAddr, DataSeq, Dss, Flags, FlowKey, Foreign, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption,
    ResetReason, Segment, UnknownOption, dss_checksum, emit, parse_captured,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

const CLIENT: Key = Key::new(0x1111_2222_3333_4444);
const SERVER: Key = Key::new(0x5555_6666_7777_8888);
/// Close to the wrap, so that every subflow wraps.
const ISN: [u32; 2] = [u32::MAX - 50, u32::MAX - 80];

/// Writes packets on two paths between a client and a server and has them inspected.
struct Lab {
    inspector: Inspector,
    id: u32,
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_700_000_000_000_000_000) + Duration::from_millis(ms)
}

/// Flow from side 0 (client) or 1 (server) of a path.
fn flow(path: u8, side: usize) -> FlowKey {
    let key = FlowKey::new(([10, 0, path, 1], 40_000).into(), ([10, 0, path, 2], 443).into());
    if side == 0 { key } else { key.reversed() }
}

/// The sequence number of the byte at `offset` of what `side` sends; 1 is the first.
fn seq(side: usize, offset: u64) -> SubflowSeq {
    SubflowSeq::new(ISN[side]) + offset
}

fn capable(sender_key: Option<Key>, receiver_key: Option<Key>) -> MpOption {
    MpOption::Capable(MpCapable { sender_key, receiver_key, ..MpCapable::OFFER })
}

impl Lab {
    fn new() -> Self {
        Lab { inspector: Inspector::new(Limits::default()), id: 0 }
    }

    /// Through the bytes, as a capture would have it.
    fn send(&mut self, ms: u64, mut segment: Segment) {
        self.id += 1;
        segment.ip.id = self.id;
        segment.window = 1000;
        let mut bytes = BytesMut::new();
        emit(&segment, &mut bytes).unwrap();
        self.inspector.packet(Some(at(ms)), 0, &parse_captured(&bytes.freeze()).unwrap());
    }

    fn control(&mut self, ms: u64, path: u8, side: usize, flags: Flags, at: [u64; 2], option: Option<MpOption>) {
        let mut segment = Segment::new(flow(path, side), flags, seq(side, at[0]), seq(1 - side, at[1]));
        if let Some(option) = option {
            segment.options.push_mptcp(option);
        }
        self.send(ms, segment);
    }

    /// Both handshakes, ten and twenty milliseconds.
    fn open(&mut self) {
        self.open_but_for_the_last_ack();
        let join = JoinAck { hmac: join_hmac(CLIENT, SERVER, Nonce(7), Nonce(8)).first_20() };
        self.control(40, 2, 0, Flags::ACK, [1, 1], Some(MpOption::JoinAck(join)));
    }

    fn open_but_for_the_last_ack(&mut self) {
        let syn_ack = Flags::SYN.with(Flags::ACK);
        self.control(0, 1, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
        self.control(10, 1, 1, syn_ack, [0, 1], Some(capable(Some(SERVER), None)));
        self.control(10, 1, 0, Flags::ACK, [1, 1], Some(capable(Some(CLIENT), Some(SERVER))));
        let (a, b) = (Nonce(7), Nonce(8));
        let join = JoinSyn { backup: true, address: AddressId(3), token: SERVER.token(), nonce: a };
        self.control(20, 2, 0, Flags::SYN, [0, 0], Some(MpOption::JoinSyn(join)));
        let hmac = join_hmac(SERVER, CLIENT, b, a).first_8();
        let join = JoinSynAck { backup: false, address: AddressId(4), hmac, nonce: b };
        self.control(40, 2, 1, syn_ack, [0, 1], Some(MpOption::JoinSynAck(join)));
    }

    /// The server sends `length` bytes of the connection from relative DSN `dsn` on, at `offset` of a path.
    fn data(&mut self, ms: u64, path: u8, dsn: u64, offset: u64, length: u16) {
        let mut segment = Segment::new(flow(path, 1), Flags::ACK, seq(1, offset), seq(0, 1));
        let full = SERVER.idsn() + dsn;
        let payload = Bytes::from((0..length).map(|n| (dsn as u8).wrapping_add(n as u8)).collect::<Vec<u8>>());
        let checksum = Some(dss_checksum(full, offset as u32, length, [&payload[..]]));
        let map = Map { dsn: DataSeq::Long(full), subflow_seq: offset as u32, length, checksum };
        segment.options.set_dss(Some(Dss { data_ack: None, map: Some(map), data_fin: false }));
        segment.payload = payload.into();
        self.send(ms, segment);
    }

    /// The client acknowledges, on the subflow up to `offset`, at the data level up to `dsn`.
    fn ack(&mut self, ms: u64, path: u8, offset: u64, dsn: u64) {
        let mut segment = Segment::new(flow(path, 0), Flags::ACK, seq(0, 1), seq(1, offset));
        let data_ack = Some(DataSeq::Short((SERVER.idsn() + dsn).low()));
        segment.options.set_dss(Some(Dss { data_ack, map: None, data_fin: false }));
        self.send(ms, segment);
    }

    fn finish(self) -> Report {
        self.inspector.finish()
    }
}

/// Bytes 1-100 and 101-200 on path 1, 201-300 on path 2. 101-200 is lost before the capture, reinjected on path 2, and
/// retransmitted on path 1 after the peer has acknowledged it.
#[test]
fn reinjection_order_and_gaps_add_up() {
    let mut lab = Lab::new();
    lab.open();
    lab.data(100, 1, 1, 1, 100);
    lab.data(103, 2, 201, 1, 100);
    lab.data(140, 2, 101, 101, 100);
    lab.ack(150, 2, 201, 301);
    lab.data(160, 1, 101, 101, 100);
    // Once more, with the same subflow sequence number, and the first bytes on the other path.
    lab.data(170, 1, 101, 101, 100);
    lab.data(180, 2, 1, 201, 100);
    let report = lab.finish();
    let connection = &report.connections[0];
    let direction = &connection.directions[1];
    assert_eq!((direction.bytes, direction.missing_bytes, direction.segments), (300, 0, 3));
    assert_eq!((direction.out_of_order_segments, direction.out_of_order_bytes), (1, 100));
    assert_eq!(direction.reorder_depth_max_bytes, 200, "from 101 to 300");
    assert_eq!(direction.held_max_bytes, 100);
    assert_eq!((direction.gaps, direction.longest_gaps.len()), (1, 1));
    let gap = &direction.longest_gaps[0];
    assert_eq!((gap.dsn, gap.bytes, gap.filled_by, gap.end), (101, 100, Some(1), "filled"));
    assert!((gap.duration_ms - 37.0).abs() < 1e-6 && (gap.at_s - 0.103).abs() < 1e-9);
    assert!((direction.hol_blocked_s - 0.037).abs() < 1e-9);
    let found: Vec<_> = direction.reinjections.iter().map(|r| (r.first_on, r.again_on, r.bytes, r.segments)).collect();
    assert_eq!(found, [(Some(0), 1, 100, 1), (Some(1), 0, 100, 1)]);
    let [late, early] = [&direction.reinjections[0], &direction.reinjections[1]];
    assert!((late.mean_delay_ms - 80.0).abs() < 1e-6 && (early.mean_delay_ms - 20.0).abs() < 1e-6);
    assert_eq!((late.already_acknowledged_bytes, early.already_acknowledged_bytes), (100, 100));

    let [first, second] = [&connection.subflows[0].sent[1], &connection.subflows[1].sent[1]];
    assert_eq!((first.data_bytes, first.repeated_data_bytes, first.bytes), (100, 100, 200));
    assert_eq!((second.data_bytes, second.repeated_data_bytes, second.bytes), (200, 100, 300));
    assert_eq!((first.retransmitted_segments, first.retransmitted_bytes), (1, 100));
    assert_eq!(second.retransmitted_segments, 0);
    assert!((second.share.unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!((first.dss_checksums_good, second.dss_checksums_good), (2, 3));
    assert_eq!(connection.subflows[1].hmac, [Some("good"), Some("good")]);
    assert_eq!(connection.subflows[1].address_ids, [Some(3), Some(4)]);
    assert_eq!(connection.subflows[1].backup, [Some(true), Some(false)]);
    assert!((connection.subflows[1].handshake_rtt_ms.unwrap() - 20.0).abs() < 1e-6);
    assert_eq!(connection.captured.as_deref(), Some("near the client"));
}

/// The capture has missed the third ACK of the join. The next ACK comes much later, and says nothing about the
/// handshake.
#[test]
fn a_later_ack_is_not_taken_for_the_third() {
    let mut lab = Lab::new();
    lab.open_but_for_the_last_ack();
    lab.data(1500, 2, 1, 1, 100);
    lab.ack(1510, 2, 1, 1);
    lab.ack(1520, 2, 101, 101);
    let report = lab.finish();
    let subflow = &report.connections[0].subflows[1];
    assert_eq!(subflow.handshake_rtt_ms, None);
    assert_eq!(subflow.hmac, [Some("not captured"), Some("good")]);
}

/// The client asks on path 2 as well, from port 40,001: answered after 15 ms or not at all, and reset then or not.
fn ask_on_path_2(lab: &mut Lab, ms: u64, answered: bool, reset: bool) {
    let from = |side: usize| {
        let key = FlowKey::new(([10, 0, 2, 1], 40_001).into(), ([10, 0, 2, 2], 443).into());
        if side == 0 { key } else { key.reversed() }
    };
    let mut syn = Segment::new(from(0), Flags::SYN, seq(0, 0), SubflowSeq::new(0));
    syn.options.push_mptcp(capable(None, None));
    lab.send(ms, syn);
    if answered {
        let mut answer = Segment::new(from(1), Flags::SYN.with(Flags::ACK), seq(1, 0), seq(0, 1));
        answer.options.push_mptcp(capable(Some(Key::new(3)), None));
        lab.send(ms + 15, answer);
    }
    if reset {
        lab.send(ms + 15, Segment::new(from(0), Flags::RST, seq(0, 1), SubflowSeq::new(0)));
    }
}

#[test]
fn a_syn_that_lost_the_race_belongs_to_the_connection_that_won() {
    for answered in [true, false] {
        let mut lab = Lab::new();
        ask_on_path_2(&mut lab, 0, answered, answered);
        lab.open();
        lab.data(100, 1, 1, 1, 100);
        let report = lab.finish();
        assert_eq!((report.connections.len(), report.plain_tcp.len()), (1, 0));
        assert_eq!((report.connections[0].number, report.connections[0].subflows.len()), (1, 2));
        let [attempt] = report.connections[0].lost_races.as_slice() else { panic!("{:?}", report.connections[0]) };
        assert_eq!(attempt.endpoints, ["10.0.2.1:40001", "10.0.2.2:443"]);
        assert_eq!(attempt.answered_after_ms.map(f64::round), answered.then_some(15.0));
        assert_eq!(attempt.reset_s.map(|at| (at * 1e3).round()), answered.then_some(15.0));
    }
}

/// Two seconds apart it is no race, a path that was never joined may be another client's, and one that is answered may
/// still be confirmed where it is not reset.
#[test]
fn other_attempts_stay_connections_of_their_own() {
    let mut late = Lab::new();
    late.open();
    ask_on_path_2(&mut late, 2000, true, true);
    let mut alone = Lab::new();
    alone.control(0, 1, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    ask_on_path_2(&mut alone, 1, true, true);
    alone.control(10, 1, 1, Flags::SYN.with(Flags::ACK), [0, 1], Some(capable(Some(SERVER), None)));
    alone.control(10, 1, 0, Flags::ACK, [1, 1], Some(capable(Some(CLIENT), Some(SERVER))));
    let mut open = Lab::new();
    ask_on_path_2(&mut open, 0, true, false);
    open.open();
    for lab in [late, alone, open] {
        let report = lab.finish();
        assert_eq!(report.connections.len(), 2);
        assert!(report.connections.iter().all(|connection| connection.lost_races.is_empty()));
    }
}

/// A subflow that loses its second packet before the capture: the third shows the hole, the second fills it late.
#[test]
fn losses_before_the_capture_are_retransmissions_unseen() {
    let mut lab = Lab::new();
    lab.open();
    for (ms, n) in [(100, 0u64), (101, 2), (150, 1), (151, 4), (152, 3)] {
        lab.data(ms, 1, 1 + n * 100, 1 + n * 100, 100);
    }
    let report = lab.finish();
    let sent = &report.connections[0].subflows[0].sent[1];
    assert_eq!((sent.retransmitted_segments, sent.retransmitted_unseen_segments, sent.reordered_segments), (0, 1, 1));
}

#[test]
fn a_bad_hmac_a_refusal_and_an_unknown_token() {
    let mut lab = Lab::new();
    lab.open();
    let syn_ack = Flags::SYN.with(Flags::ACK);
    let join = |token| MpOption::JoinSyn(JoinSyn { backup: false, address: AddressId(5), token, nonce: Nonce(1) });
    lab.control(100, 3, 0, Flags::SYN, [0, 0], Some(join(SERVER.token())));
    let answer = JoinSynAck { backup: false, address: AddressId(6), hmac: [9; 8], nonce: Nonce(2) };
    lab.control(110, 3, 1, syn_ack, [0, 1], Some(MpOption::JoinSynAck(answer)));
    let reset = MpOption::TcpReset { transient: false, reason: ResetReason::MptcpError };
    lab.control(110, 3, 0, Flags::RST.with(Flags::ACK), [1, 1], Some(reset));
    lab.control(200, 4, 0, Flags::SYN, [0, 0], Some(join(anabranch_units::Token(0xdead_beef))));
    let reset = MpOption::TcpReset { transient: true, reason: ResetReason::LackOfResources };
    lab.control(210, 4, 1, Flags::RST.with(Flags::ACK), [0, 1], Some(reset));
    // The server announces an address, once rightly and once not.
    let address = std::net::IpAddr::from([10, 9, 9, 9]);
    let good = add_addr_hmac(SERVER, CLIENT, AddressId(9), address, None).last_8();
    for hmac in [good, [0; 8]] {
        let add = AddAddr { id: AddressId(9), address, port: None, hmac: Some(hmac) };
        lab.control(300, 1, 1, Flags::ACK, [1, 1], Some(MpOption::AddAddr(add)));
    }
    let report = lab.finish();
    assert_eq!(report.connections.len(), 2);
    let refused = &report.connections[0].subflows[2];
    assert_eq!(refused.hmac, [None, Some("bad")]);
    assert_eq!(refused.outcome, "reset by the client: MPTCP-specific error (1)");
    let verdicts: Vec<_> = report.connections[0].signals.iter().map(|signal| signal.verified).collect();
    assert_eq!(verdicts, [Some("good"), Some("bad")]);
    let stray = &report.connections[1];
    assert_eq!(stray.keys[1].token.as_deref(), Some("deadbeef"));
    assert_eq!(stray.subflows[0].outcome, "refused with RST: lack of resources (2)");
    assert!(stray.unknown[0].contains("MP_CAPABLE handshake is not in the capture"));
}

/// Reports the step at which MPTCP is given up.
#[test]
fn fallbacks_are_told_apart() {
    let syn_ack = Flags::SYN.with(Flags::ACK);
    let plain_data = |lab: &mut Lab, side: usize, offset: u64| {
        let mut segment = Segment::new(flow(1, side), Flags::ACK, seq(side, offset), seq(1 - side, 1));
        segment.payload = Bytes::from_static(b"plain").into();
        lab.send(50, segment);
    };
    // The SYN/ACK has no option; SYNs had no answer and one without did; no answer at all.
    let mut lab = Lab::new();
    lab.control(0, 1, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    lab.control(10, 1, 1, syn_ack, [0, 1], None);
    lab.control(11, 2, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    lab.control(12, 2, 0, Flags::SYN, [0, 0], None);
    lab.control(13, 2, 1, syn_ack, [0, 1], None);
    lab.control(14, 3, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    let report = lab.finish();
    let steps: Vec<_> = report.plain_tcp.iter().map(|plain| plain.fallback.as_ref().unwrap()).collect();
    assert_eq!(steps.iter().map(|fallback| fallback.step).collect::<Vec<_>>(), ["SYN/ACK", "SYN", "SYN/ACK"]);
    assert_eq!(steps[2].reason, "unknown: no answer was captured");

    // The third ACK has none, and nothing after it has.
    let mut lab = Lab::new();
    lab.control(0, 1, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    lab.control(10, 1, 1, syn_ack, [0, 1], Some(capable(Some(SERVER), None)));
    lab.control(10, 1, 0, Flags::ACK, [1, 1], None);
    plain_data(&mut lab, 0, 1);
    let report = lab.finish();
    assert_eq!(report.connections[0].fallback.as_ref().unwrap().step, "third ACK");

    // The handshake is whole; the server's data has no DSS.
    let mut lab = Lab::new();
    lab.control(0, 1, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    lab.control(10, 1, 1, syn_ack, [0, 1], Some(capable(Some(SERVER), None)));
    lab.control(10, 1, 0, Flags::ACK, [1, 1], Some(capable(Some(CLIENT), Some(SERVER))));
    plain_data(&mut lab, 1, 1);
    let report = lab.finish();
    let fallback = report.connections[0].fallback.as_ref().unwrap();
    assert_eq!((fallback.step, fallback.reason.as_str()), ("first data", "the server's data has no DSS"));

    // A checksum fails: MP_FAIL, then an infinite mapping, and data without options.
    let mut lab = Lab::new();
    lab.control(0, 1, 0, Flags::SYN, [0, 0], Some(capable(None, None)));
    lab.control(10, 1, 1, syn_ack, [0, 1], Some(capable(Some(SERVER), None)));
    lab.control(10, 1, 0, Flags::ACK, [1, 1], Some(capable(Some(CLIENT), Some(SERVER))));
    lab.data(20, 1, 1, 1, 100);
    lab.control(30, 1, 0, Flags::ACK, [1, 1], Some(MpOption::Fail { dsn: SERVER.idsn() + 1 }));
    let mut segment = Segment::new(flow(1, 1), Flags::ACK, seq(1, 101), seq(0, 1));
    let map = Map { dsn: DataSeq::Long(SERVER.idsn() + 101), subflow_seq: 101, length: 0, checksum: None };
    segment.options.set_dss(Some(Dss { data_ack: None, map: Some(map), data_fin: false }));
    segment.payload = Bytes::from_static(&[1; 100]).into();
    lab.send(40, segment);
    plain_data(&mut lab, 1, 201);
    let report = lab.finish();
    let connection = &report.connections[0];
    let fallback = connection.fallback.as_ref().unwrap();
    assert!(fallback.step == "data" && fallback.reason.starts_with("MP_FAIL"), "{fallback:?}");
    assert_eq!(connection.directions[1].bytes, 205, "the infinite mapping covers what has no option");
    let fail = connection.signals.iter().find(|signal| signal.kind == "MP_FAIL").unwrap();
    assert_eq!(fail.text, "at relative DSN 1");
}

/// Version 0 (RFC 6824): the key is in the SYN, and all hashes are SHA-1.
#[test]
fn version_0_is_recognised() {
    let v0 = |sender: Key, receiver| match capable(Some(sender), receiver) {
        MpOption::Capable(capable) => MpOption::Capable(MpCapable { version: 0, checksum_required: true, ..capable }),
        other => other,
    };
    let mut lab = Lab::new();
    let syn_ack = Flags::SYN.with(Flags::ACK);
    lab.control(0, 1, 0, Flags::SYN, [0, 0], Some(v0(CLIENT, None)));
    lab.control(10, 1, 1, syn_ack, [0, 1], Some(v0(SERVER, None)));
    lab.control(10, 1, 0, Flags::ACK, [1, 1], Some(v0(CLIENT, Some(SERVER))));
    // SHA-1 of the server's key, from Python's hashlib.
    const TOKEN: u32 = 0x796c_a109;
    let join = JoinSyn { backup: false, address: AddressId(2), token: anabranch_units::Token(TOKEN), nonce: Nonce(1) };
    lab.control(20, 2, 0, Flags::SYN, [0, 0], Some(MpOption::JoinSyn(join)));
    // From Python's hmac: SHA-1 over both nonces with both keys, the server's first, and the client's first.
    let hmac = [0x4b, 0x16, 0x5f, 0x2c, 0x10, 0x9b, 0xe8, 0x0d];
    let join = JoinSynAck { backup: false, address: AddressId(0), hmac, nonce: Nonce(2) };
    lab.control(40, 2, 1, syn_ack, [0, 1], Some(MpOption::JoinSynAck(join)));
    let hmac = [
        0xbe, 0x6a, 0x30, 0x29, 0xf9, 0x6f, 0x84, 0xc1, 0x9d, 0x94, 0xd8, 0x9c, 0xa5, 0xe7, 0x43, 0x36, 0x9e, 0x31,
        0x0f, 0xcf,
    ];
    lab.control(40, 2, 0, Flags::ACK, [1, 1], Some(MpOption::JoinAck(JoinAck { hmac })));
    // The first bytes of the server with the lower half of their number, as version 0 mostly has them, and a checksum
    // over the whole number: the last 8 bytes of SHA-1(key), and one.
    let first = Dsn::new(0x3324e82bb44e8cc9) + 1;
    let mut segment = Segment::new(flow(2, 1), Flags::ACK, seq(1, 1), seq(0, 1));
    segment.payload = Bytes::from_static(b"version 0").into();
    let checksum = Some(dss_checksum(first, 1, 9, [&segment.payload[..]]));
    let map = Map { dsn: DataSeq::Short(first.low()), subflow_seq: 1, length: 9, checksum };
    segment.options.set_dss(Some(Dss { data_ack: None, map: Some(map), data_fin: false }));
    lab.send(50, segment);
    // ADD_ADDR of version 0 has the IP version where version 1 has its echo flag, and no authenticator.
    let mut segment = Segment::new(flow(1, 1), Flags::ACK, seq(1, 1), seq(0, 1));
    let add = UnknownOption { kind: 30, data: vec![0x34, 7, 10, 1, 2, 3] };
    *segment.options.foreign_mut() = Foreign { unknown: vec![add], broken: Vec::new() };
    lab.send(60, segment);
    let report = lab.finish();
    assert_eq!(report.connections.len(), 1);
    let connection = &report.connections[0];
    assert_eq!((connection.version, connection.dss_checksum), (Some(0), Some(true)));
    assert_eq!(connection.keys[1].token.as_deref(), Some(format!("{TOKEN:08x}").as_str()));
    assert_eq!(connection.subflows.len(), 2, "the join found its connection");
    assert_eq!(connection.subflows[1].hmac, [Some("good"), Some("good")]);
    let sent = &connection.subflows[1].sent[1];
    assert_eq!((sent.data_bytes, sent.dss_checksums_good), (9, 1));
    assert_eq!(connection.directions[1].gaps, 0, "it is where the stream begins");
    assert_eq!(
        (connection.signals[0].kind, connection.signals[0].text.as_str()),
        ("ADD_ADDR", "address 7 is 10.1.2.3")
    );
    assert!(connection.unknown.is_empty(), "{:?}", connection.unknown);
}

/// The server joins: the token is the client's, and the sides of that subflow are the other way round.
#[test]
fn a_join_from_the_server() {
    let mut lab = Lab::new();
    lab.open();
    let syn_ack = Flags::SYN.with(Flags::ACK);
    let join = JoinSyn { backup: false, address: AddressId(8), token: CLIENT.token(), nonce: Nonce(1) };
    lab.control(50, 3, 1, Flags::SYN, [0, 0], Some(MpOption::JoinSyn(join)));
    let hmac = join_hmac(CLIENT, SERVER, Nonce(2), Nonce(1)).first_8();
    let join = JoinSynAck { backup: false, address: AddressId(9), hmac, nonce: Nonce(2) };
    lab.control(60, 3, 0, syn_ack, [0, 1], Some(MpOption::JoinSynAck(join)));
    let hmac = join_hmac(SERVER, CLIENT, Nonce(1), Nonce(2)).first_20();
    lab.control(60, 3, 1, Flags::ACK, [1, 1], Some(MpOption::JoinAck(JoinAck { hmac })));
    lab.data(70, 3, 1, 1, 100);
    let report = lab.finish();
    assert_eq!(report.connections.len(), 1);
    let subflow = &report.connections[0].subflows[2];
    assert_eq!((subflow.opened_by, subflow.address_ids), (Some(1), [Some(9), Some(8)]));
    assert_eq!(subflow.hmac, [Some("good"), Some("good")]);
    assert_eq!(subflow.endpoints, ["10.0.3.1:40000", "10.0.3.2:443"]);
    assert_eq!((subflow.sent[0].data_bytes, subflow.sent[1].data_bytes), (0, 100));
}

/// Two connections between the same hosts, from the middle on. Their 32-bit DATA_ACKs are near each other, which
/// happens to one pair in 128; the whole numbers that follow are not.
#[test]
fn one_short_number_makes_no_kinship() {
    let mut lab = Lab::new();
    for n in 0..12u64 {
        let mut key = flow(1, 1);
        key.dst_port += (n % 2) as u16;
        let mut segment = Segment::new(key, Flags::ACK, seq(1, 5_001), seq(0, 701));
        let data_ack = Some(DataSeq::Short(1000 + n as u32));
        let map = (n >= 10).then(|| {
            let dsn = DataSeq::Long(Dsn::new((n % 2) << 40 | 0x7000_0000));
            segment.payload = Bytes::from(vec![7; 100]).into();
            Map { dsn, subflow_seq: 5_001, length: 100, checksum: None }
        });
        segment.options.set_dss(Some(Dss { data_ack, map, data_fin: false }));
        lab.send(n, segment);
    }
    let report = lab.finish();
    let subflows: Vec<_> = report.connections.iter().map(|connection| connection.subflows.len()).collect();
    assert_eq!(subflows, [1, 1]);
}

/// Two subflows with 32-bit numbers only, from the middle on.
#[test]
fn subflows_in_the_middle_with_short_numbers() {
    let mut lab = Lab::new();
    for n in 0..6u64 {
        let path = 1 + (n % 2) as u8;
        let mut segment = Segment::new(flow(path, 1), Flags::ACK, seq(1, 5_001 + n / 2 * 100), seq(0, 701));
        let low = (Dsn::new(0xffff_ff80) + n * 100).low();
        let map =
            Map { dsn: DataSeq::Short(low), subflow_seq: 5_001 + (n / 2) as u32 * 100, length: 100, checksum: None };
        let data_ack = Some(DataSeq::Short(77));
        segment.options.set_dss(Some(Dss { data_ack, map: Some(map), data_fin: false }));
        segment.payload = Bytes::from(vec![7; 100]).into();
        lab.send(n, segment);
    }
    let report = lab.finish();
    assert_eq!(report.connections.len(), 1);
    let connection = &report.connections[0];
    assert_eq!(connection.subflows.len(), 2);
    assert_eq!(connection.directions[0].bytes + connection.directions[1].bytes, 600);
    let said = connection.unknown.join("\n");
    assert!(said.contains("Only the lower half"), "{said}");
    assert!(said.contains("no packet from 10.0.1.1:40000"), "{said}");
}

/// Mappings of 300 bytes, repeated on each of their segments as segmentation offload does it; the capture begins with
/// the second segment of the first. Where the subflow's numbers begin shows only in the second mapping.
#[test]
fn a_capture_that_begins_inside_a_mapping() {
    // The second time without the end of the first mapping, and without a third.
    for (segments, bytes, mappings, gaps) in [(&[1u64, 2, 3, 4, 5, 6, 7, 8][..], 800, 3, 0), (&[1, 3, 4, 5], 400, 2, 1)]
    {
        let mut lab = Lab::new();
        for &n in segments {
            let mapping = n / 3;
            let mut segment = Segment::new(flow(1, 1), Flags::ACK, seq(1, 7_001 + n * 100), seq(0, 1));
            let map = Map {
                dsn: DataSeq::Long(Dsn::new(u64::MAX - 400) + mapping * 300),
                subflow_seq: 7_001 + mapping as u32 * 300,
                length: 300,
                checksum: None,
            };
            segment.options.set_dss(Some(Dss { data_ack: None, map: Some(map), data_fin: false }));
            segment.payload = Bytes::from(vec![7; 100]).into();
            lab.send(n, segment);
        }
        let report = lab.finish();
        let connection = &report.connections[0];
        let direction = &connection.directions[0];
        assert_eq!((direction.bytes, direction.gaps, direction.unmapped_bytes), (bytes, gaps, 0), "{segments:?}");
        assert_eq!(direction.reinjections.len(), 0);
        let sent = &connection.subflows[0].sent[0];
        assert_eq!((sent.mappings, sent.conflicting_mappings, sent.data_bytes), (mappings, 0, bytes));
    }
}

#[test]
fn limits_hold_and_are_said() {
    let mut inspector = Inspector::new(Limits { flows: 3, connections: 1, pieces: 10 });
    for path in 0..6u8 {
        let mut segment = Segment::new(flow(path, 1), Flags::SYN.with(Flags::ACK), seq(1, 0), seq(0, 1));
        segment.options.push_mptcp(capable(Some(Key::new(u64::from(path))), None));
        let mut bytes = BytesMut::new();
        emit(&segment, &mut bytes).unwrap();
        inspector.packet(None, 0, &parse_captured(&bytes.freeze()).unwrap());
    }
    let report = inspector.finish();
    assert_eq!((report.connections.len(), report.plain_tcp.len()), (1, 2));
    let said = report.capture.notes.join("\n");
    assert!(said.contains("3 packets belong to TCP connections beyond the limit"), "{said}");
    assert!(said.contains("2 MPTCP connections are beyond the limit"), "{said}");
    assert!(said.contains("6 packets have no time"), "{said}");
}

/// A field of a packet, mutated.
#[derive(Debug, Clone)]
struct Noise {
    packet: usize,
    byte: usize,
    value: u8,
}

proptest! {
    /// A whole connection with bytes changed, packets repeated and in any order: whatever it is, it is reported, and no
    /// more bytes than the packets hold.
    #[test]
    fn damaged_and_disordered_packets_never_panic(
        noise in proptest::collection::vec(
            (0usize..20, 20usize..100, any::<u8>())
                .prop_map(|(packet, byte, value)| Noise { packet, byte, value }),
            0..40,
        ),
        order in proptest::collection::vec((0usize..20, 0u64..2000), 1..60),
        cut in 40usize..200,
    ) {
        let mut packets: Vec<Bytes> = Vec::new();
        let make = |segment: &Segment| {
            let mut bytes = BytesMut::new();
            emit(segment, &mut bytes).unwrap();
            bytes.freeze()
        };
        let mut syn = Segment::new(flow(1, 0), Flags::SYN, seq(0, 0), seq(1, 0));
        syn.options.push_mptcp(capable(None, None));
        let mut syn_ack = Segment::new(flow(1, 1), Flags::SYN.with(Flags::ACK), seq(1, 0), seq(0, 1));
        syn_ack.options.push_mptcp(capable(Some(SERVER), None));
        let mut ack = Segment::new(flow(1, 0), Flags::ACK, seq(0, 1), seq(1, 1));
        ack.options.push_mptcp(capable(Some(CLIENT), Some(SERVER)));
        packets.extend([&syn, &syn_ack, &ack].map(make));
        for n in 0..17u64 {
            let (path, dsn) = (1 + (n % 3) as u8, SERVER.idsn() + 1 + n * 50);
            let mut segment = Segment::new(flow(path, 1), Flags::ACK, seq(1, 1 + n / 3 * 50), seq(0, 1));
            let subflow_seq = 1 + (n / 3) as u32 * 50;
            let map = Map { dsn: DataSeq::Long(dsn), subflow_seq, length: 51, checksum: Some(3) };
            let data_ack = Some(DataSeq::Short(n as u32 * 77));
            segment.options.set_dss(Some(Dss { data_ack, map: Some(map), data_fin: n % 5 == 0 }));
            segment.payload = Bytes::from(vec![7; 50]).into();
            packets.push(make(&segment));
        }
        for Noise { packet, byte, value } in noise {
            let mut bytes = packets[packet].to_vec();
            if let Some(place) = bytes.get_mut(byte) {
                *place = value;
            }
            packets[packet] = bytes.into();
        }
        let mut inspector = Inspector::new(Limits { flows: 8, connections: 3, pieces: 32 });
        let mut offered = 0;
        for (packet, ms) in order {
            let packet = packets[packet].slice(..cut.min(packets[packet].len()));
            if let Ok(captured) = parse_captured(&packet) {
                offered += captured.payload_length as u64;
                inspector.packet(Some(at(ms)), 0, &captured);
            }
        }
        let report = inspector.finish();
        let bytes: u64 = report.connections.iter().flat_map(|c| &c.directions).map(|direction| direction.bytes).sum();
        prop_assert!(bytes <= offered, "{} of {}", bytes, offered);
    }
}
