//! Compares our reading of a packet with that of `etherparse` and `smoltcp`. Where they differ, the test names the
//! reason and checks that it applies.

mod common;

use anabranch_wire::{Checksums, Layer, ParseError, Segment, emit, parse};
use bytes::{Bytes, BytesMut};
use common::segments::segment;
use etherparse::err::ip::SliceError;
use etherparse::{IpSlice, TcpOptionElement, TcpOptionsIterator, TcpSlice};
use proptest::collection::vec;
use proptest::prelude::*;
use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpOption, TcpPacket};
use std::net::IpAddr;

/// TCP options as someone read them. Neither oracle knows MPTCP, and both know three SACK blocks only.
#[derive(PartialEq, Debug, Default)]
struct Seen {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: Option<()>,
    timestamps: Option<(u32, u32)>,
    sack: Option<Vec<(u32, u32)>>,
    /// Kind and data of what was not understood, MPTCP apart.
    unknown: Vec<(u8, Vec<u8>)>,
    /// Options of kind 30.
    mptcp: usize,
    broken: Vec<u8>,
}

impl Seen {
    fn by_us(segment: &Segment) -> Self {
        let options = &segment.options;
        let (unknown, foreign): (Vec<_>, Vec<_>) = options.unknown().iter().partition(|option| option.kind != MPTCP);
        let sack = options.sack();
        let blocks = sack.as_slice().iter().take(3).map(|block| (block.start.get(), block.end.get()));
        Seen {
            mss: options.handshake().mss,
            window_scale: options.handshake().window_scale,
            sack_permitted: options.handshake().sack_permitted.then_some(()),
            timestamps: options.timestamps().map(|timestamps| (timestamps.value, timestamps.echo)),
            sack: Some(blocks.collect::<Vec<_>>()).filter(|blocks| !blocks.is_empty()),
            unknown: unknown.into_iter().map(|option| (option.kind, option.data.clone())).collect(),
            mptcp: usize::from(options.has_dss()) + options.mptcp().len() + foreign.len(),
            broken: options.broken().to_vec(),
        }
    }

    /// Each oracle reads one option at a time; both stop at one they refuse, where we keep it and go on behind it.
    fn by(bytes: &[u8], mut one: impl FnMut(&[u8], &mut Seen) -> bool) -> Self {
        let mut seen = Seen::default();
        let mut rest = bytes;
        while let [kind, ..] = *rest {
            match (kind, rest.get(1).map(|&length| usize::from(length))) {
                (0, _) => break,
                (1, _) => {
                    assert!(one(rest, &mut seen), "an oracle knows NOP");
                    rest = &rest[1..];
                    continue;
                }
                (_, Some(length)) if length >= 2 && length <= rest.len() => {
                    let (option, behind) = rest.split_at(length);
                    if kind == MPTCP {
                        seen.mptcp += 1;
                    } else if !one(option, &mut seen) {
                        seen.unknown.push((kind, option[2..].to_vec()));
                    }
                    rest = behind;
                }
                _ => {
                    assert!(!one(rest, &mut seen), "an oracle refuses a broken option as well");
                    seen.broken = rest.to_vec();
                    break;
                }
            }
        }
        seen
    }

    fn by_etherparse(bytes: &[u8]) -> Self {
        Self::by(bytes, |option, seen| match TcpOptionsIterator::from_slice(option).next() {
            Some(Ok(TcpOptionElement::Noop)) => true,
            Some(Ok(TcpOptionElement::MaximumSegmentSize(mss))) => first(&mut seen.mss, mss),
            Some(Ok(TcpOptionElement::WindowScale(shift))) => first(&mut seen.window_scale, shift),
            Some(Ok(TcpOptionElement::SelectiveAcknowledgementPermitted)) => first(&mut seen.sack_permitted, ()),
            Some(Ok(TcpOptionElement::Timestamp(value, echo))) => first(&mut seen.timestamps, (value, echo)),
            Some(Ok(TcpOptionElement::SelectiveAcknowledgement(one, more))) => {
                first(&mut seen.sack, [Some(one)].into_iter().chain(more).flatten().take(3).collect())
            }
            Some(Err(_)) | None => false,
        })
    }

    fn by_smoltcp(bytes: &[u8]) -> Self {
        Self::by(bytes, |option, seen| match TcpOption::parse(option).map(|(_, option)| option) {
            Ok(TcpOption::NoOperation) => true,
            Ok(TcpOption::MaxSegmentSize(mss)) => first(&mut seen.mss, mss),
            Ok(TcpOption::WindowScale(shift)) => first(&mut seen.window_scale, shift),
            Ok(TcpOption::SackPermitted) => first(&mut seen.sack_permitted, ()),
            Ok(TcpOption::TimeStamp { tsval, tsecr }) => first(&mut seen.timestamps, (tsval, tsecr)),
            Ok(TcpOption::SackRange(blocks)) => first(&mut seen.sack, blocks.into_iter().flatten().collect()),
            Ok(TcpOption::Unknown { .. } | TcpOption::EndOfList) | Err(_) => false,
        })
    }
}

/// We let the first of its kind count and keep a second one as it is.
fn first<T>(slot: &mut Option<T>, value: T) -> bool {
    let is_first = slot.is_none();
    slot.get_or_insert(value);
    is_first
}

fn against_etherparse(packet: &Bytes) {
    let ours = parse(packet, Checksums::Ignore);
    let is_jumbo = packet.first().is_some_and(|byte| byte >> 4 == 6) && packet.len() > 40 && packet[4..6] == [0, 0];
    if is_jumbo {
        // A length of zero: it assumes a jumbogram and reads to the end; we have no room for TCP in zero bytes.
        assert!(ours.is_err());
        return;
    }
    let theirs = IpSlice::from_slice(packet);
    let tcp = |ip: &IpSlice<'_>| ip.payload_ip_number().0 == 6 && !ip.is_fragmenting_payload();
    match ours {
        Ok(segment) => {
            let ip = theirs.expect("etherparse reads what we read");
            assert!(tcp(&ip));
            assert_eq!((ip.source_addr(), ip.destination_addr()), (segment.flow.src, segment.flow.dst));
            let class = segment.ip.dscp << 2 | segment.ip.ecn as u8;
            match &ip {
                IpSlice::Ipv4(v4) => {
                    let header = v4.header();
                    assert_eq!((header.ttl(), u32::from(header.identification())), (segment.ip.ttl, segment.ip.id));
                    assert_eq!(header.dont_fragment(), segment.ip.dont_fragment);
                    assert_eq!(header.dcp().value() << 2 | header.ecn().value(), class);
                }
                IpSlice::Ipv6(v6) => {
                    let header = v6.header();
                    assert_eq!((header.hop_limit(), header.flow_label().value()), (segment.ip.ttl, segment.ip.id));
                    assert_eq!(header.traffic_class(), class);
                }
            }
            let slice = TcpSlice::from_slice(ip.payload().payload).expect("etherparse reads what we read");
            let header = slice.to_header();
            assert_eq!((header.source_port, header.destination_port), (segment.flow.src_port, segment.flow.dst_port));
            assert_eq!((header.sequence_number, header.acknowledgment_number), (segment.seq.get(), segment.ack.get()));
            assert_eq!((header.window_size, header.urgent_pointer), (segment.window, segment.urgent));
            let bits = [header.fin, header.syn, header.rst, header.psh, header.ack, header.urg, header.ece, header.cwr];
            let flags = bits.iter().enumerate().map(|(n, &bit)| u8::from(bit) << n).sum::<u8>();
            assert_eq!(flags, segment.flags.0);
            // The lowest of the reserved bits was once called NS.
            assert_eq!(header.ns, segment.reserved & 1 == 1);
            assert_eq!(slice.payload(), &segment.payload[..]);
            assert_eq!(Seen::by_etherparse(slice.options()), Seen::by_us(&segment));

            let (ip_checksum, tcp_checksum) = match &ip {
                // It computes from the fields it keeps, and the reserved bit of the fragment field is none of them.
                IpSlice::Ipv4(_) if packet[6] & 0x80 != 0 => return,
                IpSlice::Ipv4(v4) => {
                    let (header, fields) = (v4.header(), v4.header().to_header());
                    let tcp = slice.calc_checksum_ipv4(header.source(), header.destination());
                    (same_sum(fields.calc_header_checksum(), header.header_checksum()), tcp)
                }
                IpSlice::Ipv6(v6) => (true, slice.calc_checksum_ipv6(v6.header().source(), v6.header().destination())),
            };
            let tcp_checksum = tcp_checksum.expect("a packet is shorter than what it can sum");
            let good = ip_checksum && same_sum(tcp_checksum, slice.checksum());
            assert_eq!(parse(packet, Checksums::Verify).is_ok(), good);
        }
        Err(ParseError::Truncated { layer: Layer::Tcp, .. } | ParseError::HeaderLength { layer: Layer::Tcp, .. }) => {
            let ip = theirs.expect("etherparse finds the fault where we do");
            assert!(tcp(&ip) && TcpSlice::from_slice(ip.payload().payload).is_err());
        }
        Err(ParseError::Truncated { layer: Layer::Ip | Layer::Extension, .. } | ParseError::Version(_)) => {
            assert!(theirs.is_err());
        }
        Err(ParseError::HeaderLength { .. }) => assert!(theirs.is_err()),
        // We stop at the first fault; it reads on, and may find another one behind.
        Err(ParseError::Fragment) => assert!(theirs.is_err() || theirs.is_ok_and(|ip| ip.is_fragmenting_payload())),
        Err(ParseError::NotTcp(protocol)) => match theirs {
            // It walks more headers than we do: authentication, mobility, HIP, Shim6.
            Ok(ip) => assert!(ip.payload_ip_number().0 == protocol || matches!(protocol, 51 | 135 | 139 | 140)),
            // We need not know how long a packet is that is not for us.
            Err(SliceError::Len(_)) => {}
            Err(_) => assert!(matches!(protocol, 0 | 51 | 135 | 139 | 140), "{protocol}"),
        },
        // It does not ask whether a route has ended, nor does it mind long chains.
        Err(ParseError::SourceRoute | ParseError::Extensions) => assert!(packet[0] >> 4 == 6),
        // Checksums are ignored.
        Err(error) => panic!("no fault that is looked for here: {error}"),
    }
}

/// `etherparse` compares with the checksum it computes, we check the sum of everything: both zeros of ones-complement
/// arithmetic are valid.
fn same_sum(computed: u16, carried: u16) -> bool {
    computed == carried || (computed, carried) == (0, 0xffff)
}

fn against_smoltcp(packet: &Bytes) {
    let ours = parse(packet, Checksums::Ignore);
    // It reads extension headers one by one, in code of its own; etherparse is the oracle for those.
    let (theirs, ip_good) = match packet.first().map(|byte| byte >> 4) {
        Some(4) => match Ipv4Packet::new_checked(&packet[..]) {
            Ok(v4) if v4.header_len() < 20 => {
                // It does not refuse a header below 20 bytes.
                assert!(matches!(ours, Err(ParseError::HeaderLength { layer: Layer::Ip, .. })));
                return;
            }
            Ok(v4) if v4.more_frags() || v4.frag_offset() != 0 => {
                assert_eq!(ours, Err(ParseError::Fragment));
                return;
            }
            Ok(v4) if v4.next_header() != IpProtocol::Tcp => {
                assert_eq!(ours, Err(ParseError::NotTcp(v4.next_header().into())));
                return;
            }
            Ok(v4) => {
                if let Ok(segment) = &ours {
                    assert_eq!(
                        (IpAddr::V4(v4.src_addr()), IpAddr::V4(v4.dst_addr())),
                        (segment.flow.src, segment.flow.dst)
                    );
                    assert_eq!((v4.hop_limit(), u32::from(v4.ident())), (segment.ip.ttl, segment.ip.id));
                    assert_eq!((v4.dscp(), v4.ecn()), (segment.ip.dscp, segment.ip.ecn as u8));
                    assert_eq!(v4.dont_frag(), segment.ip.dont_fragment);
                }
                let good = v4.verify_checksum();
                let ends = (IpAddress::from(v4.src_addr()), IpAddress::from(v4.dst_addr()));
                (Some((v4.into_inner(), ends)), good)
            }
            Err(_) => (None, false),
        },
        Some(6) => match Ipv6Packet::new_checked(&packet[..]) {
            Ok(v6) if v6.next_header() != IpProtocol::Tcp => return,
            Ok(v6) => {
                if let Ok(segment) = &ours {
                    assert_eq!(
                        (IpAddr::V6(v6.src_addr()), IpAddr::V6(v6.dst_addr())),
                        (segment.flow.src, segment.flow.dst)
                    );
                    assert_eq!((v6.hop_limit(), v6.flow_label()), (segment.ip.ttl, segment.ip.id));
                    assert_eq!(v6.traffic_class(), segment.ip.dscp << 2 | segment.ip.ecn as u8);
                }
                let ends = (IpAddress::from(v6.src_addr()), IpAddress::from(v6.dst_addr()));
                (Some((v6.into_inner(), ends)), true)
            }
            Err(_) => (None, false),
        },
        _ => {
            assert!(ours.is_err());
            return;
        }
    };
    let Some((bytes, (src, dst))) = theirs else {
        // It compares lengths first, we look at fragments and protocol on the way.
        assert!(ours.is_err());
        return;
    };
    let payload = if bytes[0] >> 4 == 4 {
        &bytes[usize::from(bytes[0] & 15) * 4..usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))]
    } else {
        &bytes[40..40 + usize::from(u16::from_be_bytes([bytes[4], bytes[5]]))]
    };
    let Ok(tcp) = TcpPacket::new_checked(payload) else {
        assert!(matches!(
            ours,
            Err(ParseError::Truncated { layer: Layer::Tcp, .. } | ParseError::HeaderLength { layer: Layer::Tcp, .. })
        ));
        return;
    };
    let segment = ours.expect("we read what smoltcp reads");
    assert_eq!((tcp.src_port(), tcp.dst_port()), (segment.flow.src_port, segment.flow.dst_port));
    assert_eq!((tcp.seq_number().0 as u32, tcp.ack_number().0 as u32), (segment.seq.get(), segment.ack.get()));
    assert_eq!((tcp.window_len(), tcp.urgent_at()), (segment.window, segment.urgent));
    let bits = [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr()];
    assert_eq!(bits.iter().enumerate().map(|(n, &bit)| u8::from(bit) << n).sum::<u8>(), segment.flags.0);
    assert_eq!(tcp.payload(), &segment.payload[..]);
    assert_eq!(Seen::by_smoltcp(tcp.options()), Seen::by_us(&segment));
    assert_eq!(parse(packet, Checksums::Verify).is_ok(), ip_good && tcp.verify_checksum(&src, &dst));
}

/// A packet of ours with a few bytes changed, cut or extended; IPv6 with extension headers before TCP at times.
fn packets() -> impl Strategy<Value = Bytes> {
    let mutations = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    // Next header, length and third byte of extension headers, with more likely values first.
    let kind = prop_oneof![4 => prop::sample::select(vec![0u8, 43, 44, 60]), 1 => any::<u8>()];
    let extensions = prop_oneof![2 => Just(vec![]), 1 => vec((kind, 0u8..3, 0u8..2, any::<[u8; 2]>()), 1..11)];
    (segment(32), extensions, mutations, prop::option::of(any::<prop::sample::Index>()), vec(any::<u8>(), 0..6))
        .prop_map(|(segment, extensions, mutations, cut, trailer)| {
            let mut out = BytesMut::new();
            emit(&segment, &mut out).expect("the strategy draws what can be written");
            let mut packet = out.to_vec();
            if segment.flow.src.is_ipv6() && !extensions.is_empty() {
                packet = with_extensions(&packet, &extensions);
            }
            packet.extend(trailer);
            for (at, value) in mutations {
                let at = at.index(packet.len());
                packet[at] = value;
            }
            if let Some(cut) = cut {
                packet.truncate(cut.index(packet.len() + 1));
            }
            packet.into()
        })
}

fn with_extensions(packet: &[u8], extensions: &[(u8, u8, u8, [u8; 2])]) -> Vec<u8> {
    let mut chain = Vec::new();
    for (n, (kind, length, third, bytes)) in extensions.iter().enumerate() {
        let next = extensions.get(n + 1).map_or(6, |following| following.0);
        let length = if *kind == 44 { 0 } else { *length };
        // Whole in most fragments headers: offset and M are zero.
        let bytes = if third % 2 == 0 { [0, bytes[1] & 6] } else { *bytes };
        let header = if *kind == 44 { [bytes[0], bytes[1]] } else { [bytes[1], third & bytes[0]] };
        chain.extend_from_slice(&[next, length, header[0], header[1], 0, 0, 0, 0]);
        chain.resize(chain.len() + 8 * usize::from(length), 0);
    }
    let payload = (packet.len() - 40 + chain.len()) as u16;
    let mut all = [&packet[..40], &chain, &packet[40..]].concat();
    all[4..6].copy_from_slice(&payload.to_be_bytes());
    all[6] = extensions[0].0;
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_changed_on_the_way_read_alike(packet in packets()) {
        against_etherparse(&packet);
        against_smoltcp(&packet);
    }

    #[test]
    fn arbitrary_bytes_read_alike(bytes in vec(any::<u8>(), 0..120), version in prop::option::of(0u8..2)) {
        let mut bytes = bytes;
        if let (Some(version), Some(first)) = (version, bytes.first_mut()) {
            *first = if version == 0 { 0x45 } else { 0x60 };
        }
        against_etherparse(&bytes.clone().into());
        against_smoltcp(&bytes.into());
    }
}

const MPTCP: u8 = 30;
