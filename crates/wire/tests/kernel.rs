//! Packets captured from Linux 6.18, read and written again. The captures' README describes them.

mod common;

use anabranch_units::{Dsn, Key, SubflowSeq, Token, add_addr_hmac, join_hmac, same_mac};
use anabranch_wire::{
    ChecksumStatus, Checksums, DataSeq, Flags, FlowKey, MpOption, Segment, TcpChecksum, dss_checksum, emit,
    emit_headers, parse, parse_captured, parse_parts,
};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

const ADD_ADDR_JOIN: &str = "v4-add-addr-join.pcap";
const CSUM_PRIO: &str = "v4-csum-prio-rm-fastclose.pcap";
const V6: &str = "v6-add-addr-port.pcap";

/// Every packet of every capture that is there.
fn all() -> impl Iterator<Item = Bytes> {
    [ADD_ADDR_JOIN, CSUM_PRIO, V6].into_iter().filter_map(common::capture).flatten()
}

fn segments(capture: &str) -> Option<Vec<Segment>> {
    let good = |packet: &Bytes| parse(packet, Checksums::Verify).expect("the kernel sends good packets");
    Some(common::capture(capture)?.iter().map(good).collect())
}

#[test]
fn every_packet_is_written_again_byte_for_byte() {
    let mut out = BytesMut::new();
    for packet in all() {
        let segment = parse(&packet, Checksums::Verify).expect("the kernel sends good packets");
        assert!(segment.options.foreign().is_empty(), "all understood: {segment:?}");
        out.clear();
        emit(&segment, &mut out).expect("what was read can be written");
        assert_eq!(out, packet, "{segment:?}");
        assert_eq!(segment.wire_length().get(), packet.len() as u64);

        out.clear();
        emit_headers(&segment, TcpChecksum::Full, &mut out).expect("what was read can be written");
        assert_eq!(out, packet[..packet.len() - segment.payload.len()]);
        let parts = parse_parts(&out, segment.payload.clone(), Checksums::Verify);
        assert_eq!(parts.as_ref(), Ok(&segment), "headers and payload apart");

        let captured = parse_captured(&packet).expect("the kernel sends good packets");
        assert_eq!((captured.checksum, captured.options_cut), (ChecksumStatus::Good, false));
        assert_eq!(captured.payload_length, segment.payload.len());
        assert_eq!(captured.segment, segment);
    }
}

/// DSS and MP_CAPABLE lengths as the README counts them.
#[test]
fn the_option_census_is_that_of_the_readme() {
    for (capture, packets, census) in [
        (ADD_ADDR_JOIN, 217, vec![("dss", 12, 99), ("dss", 26, 108), ("dss", 22, 1), ("dss", 8, 1)]),
        (CSUM_PRIO, 171, vec![("dss", 12, 70), ("dss", 28, 70), ("capable", 24, 2)]),
        (V6, 112, vec![("dss", 12, 46), ("dss", 26, 56), ("dss", 22, 1), ("dss", 8, 1)]),
    ] {
        let Some(segments) = segments(capture) else { continue };
        assert_eq!(segments.len(), packets);
        let mut counted = BTreeMap::new();
        for segment in &segments {
            if let Some(dss) = segment.options.dss() {
                *counted.entry(("dss", dss.wire_length())).or_insert(0) += 1;
            }
            for option in segment.options.mptcp() {
                if let MpOption::Capable(capable) = option
                    && capable.data.is_some()
                {
                    *counted.entry(("capable", option.wire_length())).or_insert(0) += 1;
                }
            }
        }
        let expected: BTreeMap<_, _> =
            census.into_iter().map(|(option, length, count)| ((option, length), count)).collect();
        assert_eq!(counted, expected, "{capture}");
    }
}

/// Client key, client token, server key, server token of each MPTCP connection, in the README's order.
#[test]
fn keys_tokens_and_hmacs_are_those_of_the_readme() {
    for (capture, connections) in [
        (ADD_ADDR_JOIN, vec![(0x152f_6026_7130_9fcc, 0x5be5_a7c6, 0xb005_68f9_d735_ef6b, 0x7261_156d)]),
        (
            CSUM_PRIO,
            vec![
                (0x75e3_931e_390c_d816, 0x4f34_86a8, 0x4350_0ac6_717b_0959, 0x5206_60bb),
                (0xf002_4bfb_d049_4d58, 0x602e_e69e, 0xe9e6_ee38_d46b_5938, 0x3aff_f087),
            ],
        ),
        (V6, vec![(0x6879_c4b7_cbd6_0145, 0xde39_ae60, 0xe302_942b_860b_9f23, 0x987e_ef24)]),
    ] {
        let Some(segments) = segments(capture) else { continue };
        let mut seen = Vec::new();
        let (mut hmacs, mut joins) = (0, BTreeMap::new());
        for segment in &segments {
            for option in segment.options.mptcp() {
                match option {
                    MpOption::Capable(capable) => {
                        assert_eq!((capable.version, capable.hmac_sha256, capable.other_flags), (1, true, 0));
                        if let (Some(client), Some(server), None) =
                            (capable.sender_key, capable.receiver_key, capable.data)
                        {
                            seen.push((client, client.token(), server, server.token()));
                        }
                    }
                    MpOption::AddAddr(add) if add.hmac.is_some() => {
                        let &(client, _, server, _) = seen.last().expect("keys come before addresses");
                        let mac = add_addr_hmac(server, client, add.id, add.address, add.port);
                        assert!(same_mac(&mac.last_8(), &add.hmac.unwrap_or_default()));
                        hmacs += 1;
                    }
                    MpOption::JoinSyn(join) => {
                        let &(client, token, server, server_token) = seen.last().expect("keys come before joins");
                        assert!(join.token == token || join.token == server_token, "a join names its connection");
                        let (joining, joined) = if join.token == token { (server, client) } else { (client, server) };
                        joins.insert(segment.flow, (joining, joined, join.nonce, None));
                    }
                    MpOption::JoinSynAck(join) => {
                        let (joining, joined, nonce, answer) =
                            joins.get_mut(&segment.flow.reversed()).expect("a SYN/ACK answers a SYN");
                        let mac = join_hmac(*joined, *joining, join.nonce, *nonce);
                        assert!(same_mac(&mac.first_8(), &join.hmac));
                        *answer = Some(join.nonce);
                        hmacs += 1;
                    }
                    MpOption::JoinAck(join) => {
                        let (joining, joined, nonce, answer) = joins[&segment.flow];
                        let answer = answer.expect("a third ACK follows a SYN/ACK");
                        assert!(same_mac(&join_hmac(joining, joined, nonce, answer).first_20(), &join.hmac));
                        hmacs += 1;
                    }
                    MpOption::FastClose { receiver_key } => {
                        let &(client, _, server, _) = seen.last().expect("keys come first");
                        assert!(*receiver_key == client || *receiver_key == server);
                    }
                    _ => {}
                }
            }
        }
        let expected: Vec<_> =
            connections.into_iter().map(|(c, ct, s, st)| (Key::new(c), Token(ct), Key::new(s), Token(st))).collect();
        assert_eq!(seen, expected, "{capture}");
        assert!(hmacs >= 2, "{capture}: {hmacs} HMACs verified");
    }
}

/// Every mapping of the capture with checksums, reassembled from the segments that it spans.
#[test]
fn every_dss_checksum_verifies() {
    let Some(segments) = segments(CSUM_PRIO) else { return };
    // Per flow and start of the mapping: DSN, length with DATA_FIN, checksum; per flow the bytes and where they begin.
    let mut maps = BTreeMap::new();
    let mut starts: BTreeMap<FlowKey, SubflowSeq> = BTreeMap::new();
    let mut streams: BTreeMap<FlowKey, Vec<u8>> = BTreeMap::new();
    let mut lone = 0;
    for segment in &segments {
        if segment.flags.has(Flags::SYN) {
            starts.insert(segment.flow, segment.seq);
            continue;
        }
        let Some(&start) = starts.get(&segment.flow) else { continue };
        let stream = streams.entry(segment.flow).or_default();
        let at = segment.seq.distance(start + 1) as usize;
        if !segment.payload.is_empty() {
            assert!(at <= stream.len(), "nothing is lost in the capture");
            stream.truncate(at);
            stream.extend_from_slice(&segment.payload);
        }
        if let Some(map) = segment.options.dss().and_then(|dss| Some((dss.map?, dss.data_fin))) {
            let (map, data_fin) = map;
            let DataSeq::Long(dsn) = map.dsn else { panic!("the kernel sends 8-byte DSNs") };
            let checksum = map.checksum.expect("checksums were negotiated");
            if map.subflow_seq == 0 {
                assert_eq!(dss_checksum(dsn, 0, map.length, []), checksum);
                lone += 1;
            } else {
                maps.insert((segment.flow, map.subflow_seq), (dsn, map.length, data_fin, checksum));
            }
        }
        let capable = segment.options.mptcp().iter().find_map(|option| match option {
            MpOption::Capable(capable) => Some((capable.sender_key?, capable.data?)),
            _ => None,
        });
        if let Some((key, (length, checksum))) = capable {
            let dsn: Dsn = key.idsn() + 1;
            maps.insert((segment.flow, 1), (dsn, length, false, checksum.expect("checksums were negotiated")));
        }
    }
    for ((flow, subflow_seq), (dsn, length, data_fin, checksum)) in &maps {
        let from = *subflow_seq as usize - 1;
        let bytes = &streams[flow][from..from + usize::from(*length) - usize::from(*data_fin)];
        // In odd pieces, as they may come.
        assert_eq!(dss_checksum(*dsn, *subflow_seq, *length, bytes.chunks(7)), *checksum, "{flow} {subflow_seq}");
    }
    assert_eq!((maps.len(), lone), (6, 4), "mappings and lone DATA_FINs, as counted in the capture");
}
