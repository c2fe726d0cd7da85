//! No packet makes the codec panic, and every packet it reads it can write and read again.

mod common;

use anabranch_units::{AddressId, Dsn, Key, Nonce, SubflowSeq, Token};
use anabranch_wire::{
    AddAddr, Checksums, DataSeq, Dss, Flags, FlowKey, JoinAck, Map, MpOption, ParseError, Segment, Timestamps, emit,
    parse, parse_captured, parse_parts,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Reads `packet` in every way there is. What can be read can be written, and is then read as the same.
fn survives(packet: &Bytes, out: &mut BytesMut) {
    let verified = parse(packet, Checksums::Verify);
    let captured = parse_captured(packet);
    let Ok(segment) = parse(packet, Checksums::Ignore) else {
        assert!(verified.is_err());
        if let Ok(captured) = captured {
            rewritten(&captured.segment, out);
        }
        return;
    };
    assert!(verified.is_err() || verified.as_ref() == Ok(&segment));
    assert_eq!(captured.map(|captured| captured.segment).as_ref(), Ok(&segment));
    rewritten(&segment, out);
}

fn rewritten(segment: &Segment, out: &mut BytesMut) {
    out.clear();
    out.reserve(segment.wire_length().get() as usize);
    emit(segment, out).expect("what was read can be written");
    assert!(segment.options.wire_length() <= 40);
    let again = parse(&out.split().freeze(), Checksums::Verify);
    assert_eq!(again.as_ref(), Ok(segment), "written and read again");
}

/// One packet of ours in each layout that Linux sends, so that there is something to spoil without the captures.
fn ours() -> Vec<Bytes> {
    let (v4, v6) = (
        FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into()),
        FlowKey::new(([0xfd; 16], 1).into(), ([0xfe; 16], 2).into()),
    );
    let map = Map { dsn: DataSeq::Long(Dsn::new(9)), subflow_seq: 1, length: 4, checksum: Some(7) };
    let long = Some(DataSeq::Long(Dsn::new(3)));
    let dss = |data_ack, map, data_fin| Some(Dss { data_ack, map, data_fin });
    let add = |address, port, hmac| MpOption::AddAddr(AddAddr { id: AddressId(1), address, port, hmac });
    let mut packets = Vec::new();
    for (flow, timestamps) in [(v4, Some(Timestamps { value: 1, echo: 2 })), (v6, None)] {
        for (dss, others) in [
            (dss(long, Some(map), true), vec![]),
            (dss(Some(DataSeq::Short(3)), Some(Map { dsn: DataSeq::Short(9), checksum: None, ..map }), false), vec![]),
            (dss(long, None, false), vec![MpOption::Prio { backup: true }]),
            (None, vec![add([10, 9, 8, 7].into(), Some(80), Some([5; 8]))]),
            (None, vec![add([9; 16].into(), None, None)]),
            (None, vec![MpOption::JoinAck(JoinAck { hmac: [6; 20] })]),
            (None, vec![MpOption::FastClose { receiver_key: Key::new(1) }, MpOption::Fail { dsn: Dsn::new(2) }]),
            (
                None,
                vec![MpOption::JoinSyn(anabranch_wire::JoinSyn {
                    backup: true,
                    address: AddressId(2),
                    token: Token(3),
                    nonce: Nonce(4),
                })],
            ),
        ] {
            let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(7), SubflowSeq::new(8));
            segment.options.set_timestamps(timestamps);
            segment.options.set_dss(dss);
            others.into_iter().for_each(|option| segment.options.push_mptcp(option));
            segment.payload = Bytes::from_static(b"data").into();
            let mut out = BytesMut::new();
            emit(&segment, &mut out).expect("each layout fits");
            packets.push(out.freeze());
        }
    }
    packets
}

/// Ours and every packet of the captures that are there.
fn golden() -> Vec<Bytes> {
    let captures = ["v4-add-addr-join.pcap", "v4-csum-prio-rm-fastclose.pcap", "v6-add-addr-port.pcap"];
    ours().into_iter().chain(captures.into_iter().filter_map(common::capture).flatten()).collect()
}

#[test]
fn every_packet_cut_anywhere() {
    let mut out = BytesMut::new();
    for packet in golden() {
        for length in 0..packet.len() {
            let cut = packet.slice(..length);
            let error = parse(&cut, Checksums::Ignore).expect_err("a packet is as long as it says");
            assert!(matches!(error, ParseError::Truncated { .. }), "{error}");
            if let Ok(captured) = parse_captured(&cut) {
                rewritten(&captured.segment, &mut out);
            }
            assert!(parse_parts(&cut, Default::default(), Checksums::Ignore).is_err());
        }
    }
}

/// Every value in every byte of the options, in every packet whose options look different.
#[test]
fn every_option_byte_changed_to_everything() {
    let (mut out, mut tried) = (BytesMut::new(), BTreeSet::new());
    for packet in golden() {
        let ip = if packet[0] >> 4 == 4 { 20 } else { 40 };
        let options = ip + 20..ip + usize::from(packet[ip + 12] >> 4) * 4;
        // Numbers may differ; what matters is which kinds, lengths, subtypes and flags stand where.
        let segment = parse(&packet, Checksums::Verify).expect("golden packets are good");
        let kind = |option: &MpOption| (format!("{:?}", std::mem::discriminant(option)), option.wire_length());
        let kinds: Vec<_> = segment.options.mptcp().iter().map(kind).collect();
        let dss = segment.options.dss().map(|dss| (dss.wire_length(), dss.data_fin, dss.map.map(|map| map.length)));
        if !tried.insert((ip, options.len(), kinds, dss, segment.options.timestamps().is_some())) {
            continue;
        }
        for at in options {
            for value in 0..=u8::MAX {
                let mut spoiled = BytesMut::from(&packet[..]);
                spoiled[at] = value;
                survives(&spoiled.freeze(), &mut out);
            }
        }
    }
    assert!(tried.len() >= 16, "{} layouts", tried.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes.into(), &mut BytesMut::new());
    }

    /// Arbitrary options behind good headers: any length, kinds that exist more often than not.
    #[test]
    fn arbitrary_options(
        words in 0usize..11,
        bytes in prop::collection::vec(prop_oneof![
            2 => prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 8, 30, 10, 12, 16, 18, 20, 0x20, 0x30, 0x40]),
            1 => any::<u8>(),
        ], 40),
        v6: bool,
    ) {
        let flow = match v6 {
            true => (([1; 16], 1).into(), ([2; 16], 2).into()),
            false => (([1; 4], 1).into(), ([2; 4], 2).into()),
        };
        let segment = Segment::new(FlowKey::new(flow.0, flow.1), Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
        let mut out = BytesMut::new();
        emit(&segment, &mut out).expect("a bare header can be written");
        let ip = if v6 { 40 } else { 20 };
        out[ip + 12] = (5 + words as u8) << 4;
        out.extend_from_slice(&bytes[..4 * words]);
        let length = (if v6 { 20 } else { 40 } + 4 * words) as u16;
        let at = if v6 { 4 } else { 2 };
        out[at..at + 2].copy_from_slice(&length.to_be_bytes());
        let packet = out.split().freeze();
        prop_assert!(parse(&packet, Checksums::Ignore).is_ok(), "options never fail a segment");
        survives(&packet, &mut out);
    }
}
