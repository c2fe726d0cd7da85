//! An IP packet as routers see it: its flow, and its ECN field, whatever it carries.

use crate::FlowKey;
use anabranch_units::Ecn;
use std::net::IpAddr;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Returns a hash of addresses, protocol and, of TCP and UDP, ports: the same for each packet of a flow in one
/// direction. Fragments and packets with extension headers count without ports; bytes that are no IP packet give 0.
pub fn flow_of(packet: &[u8]) -> u64 {
    let (addresses, protocol, payload) = match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= V4_HEADER => {
            let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
            let start = if fragment { packet.len() } else { usize::from(packet[0] & 0x0f) * 4 };
            (&packet[12..20], packet[9], start)
        }
        Some(6) if packet.len() >= V6_HEADER => (&packet[8..40], packet[6], V6_HEADER),
        _ => return 0,
    };
    let ports = match packet.get(payload..payload + 4) {
        Some(ports) if matches!(protocol, TCP | UDP) => ports,
        _ => &[],
    };
    hash([addresses, &[protocol], ports])
}

/// Returns hashes of the sending and the receiving address; zeros for bytes that are no IP packet.
pub fn hosts_of(packet: &[u8]) -> [u64; 2] {
    let addresses = match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= V4_HEADER => &packet[12..20],
        Some(6) if packet.len() >= V6_HEADER => &packet[8..40],
        _ => return [0, 0],
    };
    let (from, to) = addresses.split_at(addresses.len() / 2);
    [hash([from]), hash([to])]
}

/// Returns addresses, ports and the length of the payload of a UDP packet; `None` for other packets and for fragments.
pub fn datagram_of(packet: &[u8]) -> Option<(FlowKey, usize)> {
    let address = |at: usize, v6: bool| -> Option<IpAddr> {
        Some(match v6 {
            false => IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?),
            true => IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?),
        })
    };
    let (src, dst, protocol, start) = match packet.first()? >> 4 {
        4 if u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff == 0 => {
            (address(12, false)?, address(16, false)?, *packet.get(9)?, usize::from(packet[0] & 0x0f) * 4)
        }
        6 => (address(8, true)?, address(24, true)?, *packet.get(6)?, V6_HEADER),
        _ => return None,
    };
    let header = packet.get(start..start + UDP_HEADER).filter(|_| protocol == UDP)?;
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let length = usize::from(port(4)).checked_sub(UDP_HEADER)?;
    Some((FlowKey { src, dst, src_port: port(0), dst_port: port(2) }, length))
}

/// Returns the ECN field; not-ECT for bytes that are no IP packet.
pub fn ecn_of(packet: &[u8]) -> Ecn {
    match packet {
        [first, second, ..] if first >> 4 == 4 => Ecn::from_bits(*second),
        [first, second, ..] if first >> 4 == 6 => Ecn::from_bits(second >> 4),
        _ => Ecn::NotEct,
    }
}

/// Marks a packet: sets its ECN field to CE.
pub fn mark(packet: &mut [u8]) {
    match packet {
        [first, second, ..] if *first >> 4 == 6 => *second |= 0x30,
        [first, ..] if *first >> 4 == 4 && packet.len() >= V4_HEADER => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= Ecn::Ce.bits();
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            // HC' = ~(~HC + ~m + m') (RFC 1624 §3).
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        _ => {}
    }
}

impl FlowKey {
    /// Returns what [`hosts_of`] says of a packet with these addresses.
    pub fn hosts(&self) -> [u64; 2] {
        [self.src, self.dst].map(|address| match address {
            IpAddr::V4(address) => hash([&address.octets()]),
            IpAddr::V6(address) => hash([&address.octets()]),
        })
    }

    /// Returns what [`flow_of`] says of a packet of TCP with these addresses and ports.
    pub fn digest(&self) -> u64 {
        let [a, b] = self.src_port.to_be_bytes();
        let [c, d] = self.dst_port.to_be_bytes();
        let ports = [a, b, c, d];
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => hash([&src.octets(), &dst.octets(), &[TCP], &ports]),
            (IpAddr::V6(src), IpAddr::V6(dst)) => hash([&src.octets(), &dst.octets(), &[TCP], &ports]),
            _ => 0,
        }
    }
}

/// Hash FNV-1a of 64 bits (Fowler, Noll and Vo): the same on every platform.
fn hash<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Checksums, Flags, Segment, emit, parse};
    use anabranch_units::SubflowSeq;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn packet(v6: bool, ecn: Ecn) -> (FlowKey, Vec<u8>) {
        let (src, dst): (IpAddr, IpAddr) = match v6 {
            true => (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::UNSPECIFIED.into()),
            false => (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 1, 0, 1).into()),
        };
        let flow = FlowKey { src, dst, src_port: 40_000, dst_port: 443 };
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.ip.ecn = ecn;
        let mut bytes = bytes::BytesMut::new();
        emit(&segment, &mut bytes).unwrap();
        (flow, bytes.to_vec())
    }

    #[test]
    fn a_datagram_tells_its_addresses_and_its_length() {
        let mut datagram = vec![0x45, 0, 0, 33, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        datagram.extend([0x14, 0x51, 0x9c, 0x40, 0, 13, 0, 0, 1, 2, 3, 4, 5]);
        let (flow, length) = datagram_of(&datagram).unwrap();
        assert_eq!((flow.source().to_string(), length), ("10.0.0.1:5201".to_owned(), 5));
        assert_eq!(flow.destination().to_string(), "10.0.0.2:40000");
        datagram[6] = 0x20;
        assert_eq!(datagram_of(&datagram), None, "a fragment");
        let (_, segment) = packet(true, Ecn::NotEct);
        assert_eq!((datagram_of(&segment), datagram_of(&[])), (None, None));
    }

    #[test]
    fn a_mark_is_seen_and_leaves_the_packet_valid() {
        for v6 in [false, true] {
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let (flow, mut bytes) = packet(v6, ecn);
                assert_eq!((flow_of(&bytes), ecn_of(&bytes)), (flow.digest(), ecn));
                assert_eq!(hosts_of(&bytes), flow.hosts());
                mark(&mut bytes);
                assert_eq!((flow_of(&bytes), ecn_of(&bytes)), (flow.digest(), Ecn::Ce));
                let read = parse(&bytes::Bytes::from(bytes), Checksums::Verify).unwrap();
                assert_eq!((read.flow, read.ip.ecn), (flow, Ecn::Ce));
            }
        }
    }

    #[test]
    fn what_is_no_packet_has_no_flow() {
        for bytes in [&[][..], &[0x45], &[0x60; 39], &[0x12; 60]] {
            assert_eq!((flow_of(bytes), ecn_of(bytes)), (0, ecn_of(bytes)));
            assert_eq!(hosts_of(bytes), [0, 0]);
            let mut copy = bytes.to_vec();
            mark(&mut copy);
            assert_eq!(copy.len(), bytes.len());
        }
        let (flow, bytes) = packet(false, Ecn::NotEct);
        assert_ne!(flow.digest(), FlowKey { src_port: 1, ..flow }.digest());
        assert_eq!(flow_of(&bytes[..24]), flow.digest(), "the ports are enough");
    }
}
