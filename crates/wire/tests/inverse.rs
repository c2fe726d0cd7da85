//! `parse` and `emit` are inverses on everything that can be written.

mod common;

use anabranch_wire::{
    Checksums, EmitError, ParseError, TcpChecksum, emit, emit_headers, emit_train, parse, parse_captured, parse_parts,
};
use bytes::{Bytes, BytesMut};
use common::segments::segment;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_and_written_again(
        segment in segment(64),
        trailer in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut out = BytesMut::new();
        emit(&segment, &mut out).expect("the strategy draws what can be written");
        prop_assert_eq!(out.len() as u64, segment.wire_length().get());
        let packet = out.clone().freeze();
        prop_assert_eq!(parse(&packet, Checksums::Verify), Ok(segment.clone()));

        // A link pads short frames.
        out.extend_from_slice(&trailer);
        let padded = parse(&out.freeze(), Checksums::Verify);
        prop_assert_eq!(padded.as_ref(), Ok(&segment));

        let mut again = BytesMut::new();
        emit(&padded.expect("just compared"), &mut again).expect("what was read can be written");
        prop_assert_eq!(again.freeze(), packet);
    }

    #[test]
    fn headers_and_payload_apart_are_the_same_packet(segment in segment(64)) {
        let (mut whole, mut headers) = (BytesMut::new(), BytesMut::new());
        emit(&segment, &mut whole).expect("the strategy draws what can be written");
        emit_headers(&segment, TcpChecksum::Full, &mut headers).expect("the strategy draws what can be written");
        prop_assert_eq!(&whole[..], &[&headers[..], &segment.payload].concat()[..]);
        prop_assert_eq!(parse_parts(&headers, segment.payload.clone(), Checksums::Verify), Ok(segment));
    }

    /// A network card sums from the TCP header on, the pseudo-header's sum standing in the checksum field.
    #[test]
    fn an_offloaded_checksum_can_be_completed(segment in segment(64)) {
        let (mut whole, mut offloaded) = (BytesMut::new(), BytesMut::new());
        emit(&segment, &mut whole).expect("the strategy draws what can be written");
        emit_headers(&segment, TcpChecksum::Offload, &mut offloaded).expect("the strategy draws what can be written");
        offloaded.extend_from_slice(&segment.payload);
        let start = if segment.flow.src.is_ipv4() { 20 } else { 40 };
        let mut card = anabranch_wire::Checksum::new();
        card.add(&offloaded[start..]);
        offloaded[start + 16..start + 18].copy_from_slice(&card.value().to_be_bytes());
        prop_assert_eq!(offloaded, whole);
    }

    /// The headers before a train of segments are those of one segment with all their payload.
    #[test]
    fn a_train_has_the_headers_of_one_long_segment(segment in segment(64), behind in 0usize..50_000) {
        let (mut train, mut whole) = (BytesMut::new(), BytesMut::new());
        let length = segment.payload.len() + behind;
        emit_train(&segment, length, &mut train).expect("the strategy draws what can be written");
        let whole_segment = anabranch_wire::Segment { payload: vec![0; length].into(), ..segment };
        emit_headers(&whole_segment, TcpChecksum::Offload, &mut whole).expect("it is short enough");
        prop_assert_eq!(train, whole);
    }

    /// One wrong bit anywhere but where the checksums do not look is found.
    #[test]
    fn a_flipped_bit_fails_a_checksum(segment in segment(8), at: prop::sample::Index, bit in 0u8..8) {
        let mut out = BytesMut::new();
        emit(&segment, &mut out).expect("the strategy draws what can be written");
        let at = at.index(out.len());
        out[at] ^= 1 << bit;
        let is_v6 = segment.flow.src.is_ipv6();
        // Traffic class, flow label and hop limit of IPv6 are in no checksum.
        prop_assume!(!is_v6 || !(at < 4 || at == 7));
        prop_assert!(parse(&out.freeze(), Checksums::Verify).is_err());
    }

    #[test]
    fn a_capture_cut_anywhere_shows_what_is_left(segment in segment(40), keep: prop::sample::Index) {
        let mut out = BytesMut::new();
        emit(&segment, &mut out).expect("the strategy draws what can be written");
        let whole = out.freeze();
        let keep = keep.index(whole.len() + 1);
        let fixed = 20 + if segment.flow.src.is_ipv4() { 20 } else { 40 };
        let headers = whole.len() - segment.payload.len();
        match parse_captured(&whole.slice(..keep)) {
            Err(ParseError::Truncated { .. }) => prop_assert!(keep < fixed),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(captured) => {
                prop_assert!(keep >= fixed);
                prop_assert_eq!(captured.payload_length, segment.payload.len());
                prop_assert_eq!(captured.options_cut, keep < headers);
                let good = captured.checksum == anabranch_wire::ChecksumStatus::Good;
                prop_assert_eq!(good, keep == whole.len());
                if keep >= headers {
                    prop_assert_eq!(&captured.segment.payload, &segment.payload.slice(..keep - headers));
                    prop_assert_eq!(&captured.segment.options, &segment.options);
                } else {
                    let there = captured.segment.options;
                    prop_assert!(there.timestamps().is_none() || there.timestamps() == segment.options.timestamps());
                    prop_assert!(there.dss().is_none() || there.dss() == segment.options.dss());
                    prop_assert!(segment.options.mptcp().starts_with(there.mptcp()));
                    prop_assert!(segment.options.unknown().starts_with(there.unknown()));
                    // Damage is blamed on the sender only where the capture is whole.
                    prop_assert!(there.broken().is_empty() || !segment.options.broken().is_empty());
                }
            }
        }
    }
}

/// The longest packets that IP can carry, and one byte more.
#[test]
fn lengths_end_where_ip_ends() {
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Flags, FlowKey, Segment};
    let v4 = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
    let v6 = FlowKey::new(([1; 16], 1).into(), ([2; 16], 2).into());
    for (flow, most) in [(v4, 65_535 - 40), (v6, 65_535 - 20)] {
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.payload = Bytes::from(vec![0x5a; most]).into();
        let mut out = BytesMut::from(&b"before"[..]);
        emit(&segment, &mut out).expect("as long as IP permits");
        assert_eq!(parse(&out.split_off(6).freeze(), Checksums::Verify), Ok(segment.clone()));
        segment.payload = Bytes::from(vec![0x5a; most + 1]).into();
        assert_eq!(emit(&segment, &mut out), Err(EmitError::PacketTooLong { length: 65_536 }));
        assert_eq!(out, b"before"[..], "an error writes nothing");
    }
}

/// Values that no packet can hold are refused by name.
#[test]
fn what_has_no_layout_is_refused() {
    use anabranch_units::{Key, SubflowSeq};
    use anabranch_wire::{Flags, FlowKey, MpCapable, MpOption, RemoveAddr, Segment, UnknownOption};
    let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
    let capable = MpCapable::OFFER;
    type Spoil = fn(&mut Segment, MpCapable);
    let cases: [(&str, Spoil); 11] = [
        ("different families", |s, _| s.flow.dst = [9; 16].into()),
        ("the DSCP is wider than its 6 bits", |s, _| s.ip.dscp = 64),
        ("identification is wider than its 16 bits", |s, _| s.ip.id = 1 << 16),
        ("flow label is wider than its 20 bits", |s, _| {
            (s.flow.src, s.flow.dst, s.ip.id) = ([1; 16].into(), [2; 16].into(), 1 << 20);
        }),
        ("reserved bits of TCP", |s, _| s.reserved = 16),
        ("MPTCP version", |s, c| s.options.push_mptcp(MpOption::Capable(MpCapable { version: 16, ..c }))),
        ("flags D to G", |s, c| s.options.push_mptcp(MpOption::Capable(MpCapable { other_flags: 16, ..c }))),
        ("keys in order", |s, c| {
            s.options.push_mptcp(MpOption::Capable(MpCapable { receiver_key: Some(Key::new(1)), ..c }));
        }),
        ("at least one address", |s, _| s.options.push_mptcp(MpOption::RemoveAddr(RemoveAddr { ids: vec![] }))),
        ("have no length", |s, _| {
            s.options.foreign_mut().unknown.push(UnknownOption { kind: 1, data: vec![] });
        }),
        ("options take 44 bytes", |s, _| s.options.foreign_mut().broken = vec![9; 41]),
    ];
    for (fault, spoil) in cases {
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
        let mut out = BytesMut::new();
        emit(&segment, &mut out).expect("nothing is wrong yet");
        spoil(&mut segment, capable);
        out.clear();
        let error = emit(&segment, &mut out).expect_err(fault);
        assert!(error.to_string().contains(fault), "{fault}: {error}");
        assert!(out.is_empty(), "an error writes nothing");
    }
}
