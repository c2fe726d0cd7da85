//! Reports that a packet was too big for a link on its way: ICMP "fragmentation needed" (RFC 792, RFC 1191 §4) and
//! ICMPv6 "packet too big" (RFC 4443 §3.2).

use crate::echo::{PROTOCOL_V4, PROTOCOL_V6, pseudo_header};
use crate::{Checksum, FlowKey};
use anabranch_units::SubflowSeq;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A router's report that a TCP packet is too big. Reports can be forged: check that the quoted packet was sent before
/// acting on one (RFC 5927).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooBig {
    /// The flow as the packet's sender sent it, who is the one told.
    pub flow: FlowKey,
    /// The packet's sequence number.
    pub seq: SubflowSeq,
    /// MTU of the next link, in bytes.
    pub mtu: u32,
}

impl TooBig {
    /// Reads a report. Returns `None` if `packet` is anything else, its checksum is wrong, or the quoted packet is not
    /// a TCP packet sent by the report's destination.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (told, report) = match packet.first()? >> 4 {
            4 => icmp(packet)?,
            6 => icmp_v6(packet)?,
            _ => return None,
        };
        (report.flow.src == told).then_some(report)
    }
}

fn icmp(packet: &[u8]) -> Option<(IpAddr, TooBig)> {
    let (ip, rest) = split_v4(packet)?;
    let fragment = u16::from_be_bytes([ip[6], ip[7]]) & !DONT_FRAGMENT != 0;
    let length = usize::from(u16::from_be_bytes([ip[2], ip[3]])).checked_sub(ip.len())?;
    let message = rest.get(..length)?;
    if ip[9] != PROTOCOL_V4 || fragment || !adds_up(Checksum::new(), ip) || !adds_up(Checksum::new(), message) {
        return None;
    }
    let ([3, 4, _, _, _, _, high, low], quoted) = message.split_first_chunk::<8>()? else { return None };
    let (header, quoted_rest) = split_v4(quoted)?;
    if header[9] != TCP || u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_OFFSET != 0 {
        return None;
    }
    let address = |ip: &[u8], at: usize| IpAddr::from(Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]));
    let mtu = match u16::from_be_bytes([*high, *low]) {
        // A router from before RFC 1191: the next smaller size that links have (its §7).
        0 => plateau(u16::from_be_bytes([header[2], header[3]])),
        mtu => mtu,
    };
    let report = quoted_tcp(address(header, 12), address(header, 16), quoted_rest, u32::from(mtu))?;
    Some((address(ip, 16), report))
}

fn icmp_v6(packet: &[u8]) -> Option<(IpAddr, TooBig)> {
    let (ip, rest) = packet.split_first_chunk::<40>()?;
    let message = rest.get(..usize::from(u16::from_be_bytes([ip[4], ip[5]])))?;
    let mut checksum = Checksum::new();
    pseudo_header(&mut checksum, ip);
    if ip[6] != PROTOCOL_V6 || !adds_up(checksum, message) {
        return None;
    }
    let ([2, 0, _, _, mtu @ ..], quoted) = message.split_first_chunk::<8>()? else { return None };
    let (header, quoted_rest) = quoted.split_first_chunk::<40>()?;
    if header[0] >> 4 != 6 || header[6] != TCP {
        return None;
    }
    let address = |ip: &[u8; 40], at: usize| {
        ip[at..at + 16].try_into().ok().map(|octets: [u8; 16]| IpAddr::from(Ipv6Addr::from(octets)))
    };
    let report = quoted_tcp(address(header, 8)?, address(header, 24)?, quoted_rest, u32::from_be_bytes(*mtu))?;
    Some((address(ip, 24)?, report))
}

/// Reads the flow and sequence number of the quoted packet. Requires only the first eight bytes of the TCP header.
fn quoted_tcp(src: IpAddr, dst: IpAddr, tcp: &[u8], mtu: u32) -> Option<TooBig> {
    let [s0, s1, d0, d1, seq @ ..] = *tcp.first_chunk::<8>()?;
    let source = SocketAddr::new(src, u16::from_be_bytes([s0, s1]));
    let flow = FlowKey::new(source, SocketAddr::new(dst, u16::from_be_bytes([d0, d1])));
    Some(TooBig { flow, seq: SubflowSeq::new(u32::from_be_bytes(seq)), mtu })
}

/// An IPv4 header with its options, and what follows.
fn split_v4(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = *packet.first()?;
    let length = usize::from(first & 0xf) * 4;
    (first >> 4 == 4 && length >= 20).then(|| packet.split_at_checked(length))?
}

fn adds_up(mut checksum: Checksum, bytes: &[u8]) -> bool {
    checksum.add(bytes);
    checksum.sum() == 0xffff
}

fn plateau(length: u16) -> u16 {
    PLATEAUS.iter().copied().find(|plateau| *plateau < length).unwrap_or(68)
}

/// RFC 1191 §7.1, table 7-1.
const PLATEAUS: [u16; 9] = [32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296];
const TCP: u8 = 6;
const DONT_FRAGMENT: u16 = 0x4000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Payload, Segment, emit};
    use bytes::BytesMut;

    fn quoted(v6: bool) -> (FlowKey, Vec<u8>) {
        let host =
            |n: u8| if v6 { IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n)]) } else { [10, 0, 0, n].into() };
        let flow = FlowKey::new(SocketAddr::new(host(1), 4000), SocketAddr::new(host(2), 80));
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(0x0102_0304), SubflowSeq::new(9));
        segment.payload = Payload::from(vec![7; 1400]);
        let mut bytes = BytesMut::new();
        emit(&segment, &mut bytes).expect("it can be written");
        (flow, bytes.to_vec())
    }

    /// Builds a router's report about `quoted`, of which it includes at most `most` bytes.
    fn report(quoted: &[u8], most: usize, mtu: u32) -> Vec<u8> {
        let part = &quoted[..quoted.len().min(most)];
        let v6 = quoted[0] >> 4 == 6;
        let mut message = if v6 { vec![2, 0, 0, 0] } else { vec![3, 4, 0, 0] };
        message.extend(mtu.to_be_bytes());
        message.extend(part);
        let mut packet = vec![0; if v6 { 40 } else { 20 }];
        let mut checksum = Checksum::new();
        if v6 {
            packet[0] = 0x60;
            packet[4..6].copy_from_slice(&(message.len() as u16).to_be_bytes());
            packet[6] = PROTOCOL_V6;
            packet[8] = 0xfe;
            packet[24..40].copy_from_slice(&quoted[8..24]);
            pseudo_header(&mut checksum, packet.as_slice());
        } else {
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&(20 + message.len() as u16).to_be_bytes());
            packet[9] = PROTOCOL_V4;
            packet[12..16].copy_from_slice(&[192, 0, 2, 1]);
            packet[16..20].copy_from_slice(&quoted[12..16]);
            let mut header = Checksum::new();
            header.add(&packet);
            packet[10..12].copy_from_slice(&header.value().to_be_bytes());
        }
        checksum.add(&message);
        message[2..4].copy_from_slice(&checksum.value().to_be_bytes());
        packet.extend(message);
        packet
    }

    #[test]
    fn a_report_names_flow_sequence_and_size() {
        for v6 in [false, true] {
            let (flow, packet) = quoted(v6);
            let seq = SubflowSeq::new(0x0102_0304);
            let least = if v6 { 48 } else { 28 };
            for most in [least, 576] {
                let parsed = TooBig::parse(&report(&packet, most, 1300));
                assert_eq!(parsed, Some(TooBig { flow, seq, mtu: 1300 }), "IPv6: {v6}, {most} bytes");
            }
            assert_eq!(TooBig::parse(&report(&packet, least - 1, 1300)), None, "the sequence number is cut off");
        }
        // 1440 bytes did not fit: 1006 is the next size that links have.
        let (_, packet) = quoted(false);
        assert_eq!(TooBig::parse(&report(&packet, 64, 0)).map(|report| report.mtu), Some(1006));
    }

    #[test]
    fn anything_else_is_no_report() {
        for v6 in [false, true] {
            let (_, packet) = quoted(v6);
            let good = report(&packet, 64, 1300);
            assert!(TooBig::parse(&packet).is_none());
            for cut in 0..good.len() {
                assert!(TooBig::parse(&good[..cut]).is_none(), "{cut}");
            }
            // Every bit is covered by a checksum, apart from some of IPv6's header.
            for bit in if v6 { 40 * 8 } else { 0 }..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(TooBig::parse(&bad).is_none(), "bit {bit}");
            }
        }
    }
}
