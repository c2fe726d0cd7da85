//! Reserved bits of the options of RFC 8684: sent as zero, and ignored when received. Each test names its ids in
//! docs/conformance.md.
#![allow(clippy::unwrap_used)]

use anabranch_units::{AddressId, Dsn, Key, Nonce, SubflowSeq, Token};
use anabranch_wire::{
    AddAddr, Checksums, DataSeq, Dss, Flags, FlowKey, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption,
    RemoveAddr, ResetReason, Segment, emit, parse,
};
use bytes::{Bytes, BytesMut};
use std::net::SocketAddr;

/// Offset of a lone MPTCP option: 20 bytes of IPv4 header and 20 of TCP precede it.
const OPTION: usize = 40;

fn segment(flags: Flags) -> Segment {
    let flow = FlowKey::new(SocketAddr::from(([10, 0, 0, 1], 1000)), SocketAddr::from(([10, 0, 0, 2], 80)));
    Segment::new(flow, flags, SubflowSeq::new(1), SubflowSeq::new(2))
}

fn bytes(segment: &Segment) -> Vec<u8> {
    let mut out = BytesMut::new();
    emit(segment, &mut out).unwrap();
    out.to_vec()
}

/// A segment with one option, the bytes of that option that have reserved bits, and which bits those are.
fn options() -> Vec<(Segment, Vec<(usize, u8)>)> {
    let with = |flags: Flags, option: MpOption| {
        let mut segment = segment(flags);
        segment.options.push_mptcp(option);
        segment
    };
    let hmac = Some([0xff; 8]);
    let v4 = AddAddr { id: AddressId(1), address: [1, 2, 3, 4].into(), port: None, hmac };
    let ack = Dss { data_ack: Some(DataSeq::Long(Dsn::new(u64::MAX))), ..Dss::default() };
    let map = Map { dsn: DataSeq::Long(Dsn::new(u64::MAX)), subflow_seq: u32::MAX, length: 2, checksum: None };
    let mut dss = segment(Flags::ACK);
    dss.options.set_dss(Some(Dss { map: Some(map), data_fin: true, ..ack }));
    dss.payload = Bytes::from_static(b"x").into();
    let mut lone = segment(Flags::ACK);
    lone.options.set_dss(Some(ack));
    let (token, nonce) = (Token(u32::MAX), Nonce(u32::MAX));
    let join = |backup| JoinSyn { backup, address: AddressId(255), token, nonce };
    let join_ack = |backup| JoinSynAck { backup, address: AddressId(255), hmac: [255; 8], nonce };
    vec![
        (with(Flags::SYN, MpOption::JoinSyn(join(true))), vec![(2, 0x0e)]),
        (with(Flags::SYN, MpOption::JoinSyn(join(false))), vec![(2, 0x0e)]),
        (with(Flags::SYN.with(Flags::ACK), MpOption::JoinSynAck(join_ack(true))), vec![(2, 0x0e)]),
        (with(Flags::SYN.with(Flags::ACK), MpOption::JoinSynAck(join_ack(false))), vec![(2, 0x0e)]),
        (with(Flags::ACK, MpOption::JoinAck(JoinAck { hmac: [255; 20] })), vec![(2, 0x0f), (3, 0xff)]),
        (dss, vec![(2, 0x0f), (3, 0xe0)]),
        (lone, vec![(2, 0x0f), (3, 0xe0)]),
        (with(Flags::ACK, MpOption::AddAddr(v4)), vec![(2, 0x0e)]),
        (with(Flags::ACK, MpOption::AddAddr(AddAddr { port: Some(80), ..v4 })), vec![(2, 0x0e)]),
        (with(Flags::ACK, MpOption::AddAddr(AddAddr { hmac: None, ..v4 })), vec![(2, 0x0e)]),
        (with(Flags::ACK, MpOption::RemoveAddr(RemoveAddr { ids: vec![AddressId(255)] })), vec![(2, 0x0f)]),
        (with(Flags::ACK, MpOption::Prio { backup: true }), vec![(2, 0x0e)]),
        (with(Flags::ACK, MpOption::Fail { dsn: Dsn::new(u64::MAX) }), vec![(2, 0x0f), (3, 0xff)]),
        (with(Flags::ACK, MpOption::FastClose { receiver_key: Key::new(u64::MAX) }), vec![(2, 0x0f), (3, 0xff)]),
        (with(Flags::RST, MpOption::TcpReset { transient: true, reason: ResetReason::Middlebox }), vec![(2, 0x0e)]),
    ]
}

/// 3.2-2, 3.2-5, 3.3-1, 3.4.1-4, 3.6-1.
#[test]
fn reserved_bits_are_sent_as_zero() {
    for (segment, reserved) in options() {
        let packet = bytes(&segment);
        assert_eq!(packet[OPTION], 30, "{segment:?}");
        for (at, bits) in reserved {
            assert_eq!(packet[OPTION + at] & bits, 0, "byte {at} of {:?}", segment.options);
        }
    }
}

/// 3.4.1-5, 3.6-2, and for all other options alike.
#[test]
fn reserved_bits_are_ignored() {
    for (segment, reserved) in options() {
        let mut packet = bytes(&segment);
        for (at, bits) in reserved {
            packet[OPTION + at] |= bits;
        }
        let read = parse(&Bytes::from(packet), Checksums::Ignore).unwrap();
        assert_eq!(read.options, segment.options);
    }
}

/// 3.1-8, 3.1-11: the flags byte of MP_CAPABLE, bit by bit: A, B, C, D to G, H.
#[test]
fn flags_of_mp_capable_are_where_they_belong() {
    let none = MpCapable {
        version: 1,
        checksum_required: false,
        extensibility: false,
        no_join_to_source: false,
        other_flags: 0,
        hmac_sha256: false,
        sender_key: None,
        receiver_key: None,
        data: None,
    };
    for (capable, flags) in [
        (none, 0x00),
        (MpCapable { checksum_required: true, ..none }, 0x80),
        (MpCapable { extensibility: true, ..none }, 0x40),
        (MpCapable { no_join_to_source: true, ..none }, 0x20),
        (MpCapable { other_flags: 0xf, ..none }, 0x1e),
        (MpCapable { hmac_sha256: true, ..none }, 0x01),
    ] {
        let mut syn = segment(Flags::SYN);
        syn.options.push_mptcp(MpOption::Capable(capable));
        assert_eq!(bytes(&syn)[OPTION..OPTION + 4], [30, 4, 0x01, flags]);
    }
}
