//! UDP in IPv4 (RFC 768, RFC 791), as bytes: what a UDP workload sends.

use anabranch_wire::Checksum;
use std::net::SocketAddrV4;

/// A packet of `size` bytes from its IP header on, from 28 (headers alone) to 65535: sizes beyond are taken as the
/// nearest of these. The payload is zeros, the checksums are right.
pub fn udp(source: SocketAddrV4, destination: SocketAddrV4, size: u64) -> Vec<u8> {
    let size = size.clamp((IP + UDP) as u64, u64::from(u16::MAX)) as u16;
    let length = size - IP as u16;
    let mut packet = vec![0; usize::from(size)];
    let (ip, udp) = packet.split_at_mut(IP);
    ip[0] = 0x45; // Version 4, five words of header.
    ip[2..4].copy_from_slice(&size.to_be_bytes());
    ip[6] = 0x40; // Don't fragment.
    ip[8] = 64; // Time to live, as Linux sets it.
    ip[9] = PROTOCOL;
    ip[12..16].copy_from_slice(&source.ip().octets());
    ip[16..20].copy_from_slice(&destination.ip().octets());
    udp[0..2].copy_from_slice(&source.port().to_be_bytes());
    udp[2..4].copy_from_slice(&destination.port().to_be_bytes());
    udp[4..6].copy_from_slice(&length.to_be_bytes());
    // The pseudo-header: addresses, protocol, length. Payload of zeros adds nothing.
    let mut checksum = Checksum::new();
    checksum.add(&ip[12..20]);
    checksum.add_u16(u16::from(PROTOCOL));
    checksum.add_u16(length);
    checksum.add(&udp[..UDP]);
    let checksum = match checksum.value() {
        0 => 0xffff, // 0 would mean that there is none.
        other => other,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    let mut checksum = Checksum::new();
    checksum.add(ip);
    ip[10..12].copy_from_slice(&checksum.value().to_be_bytes());
    packet
}

const IP: usize = 20;
const UDP: usize = 8;
const PROTOCOL: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// The sum of RFC 1071 word by word: another way than the one under test.
    fn sum(bytes: &[u8]) -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
    }

    fn is_right(sum: u32) -> bool {
        (sum >> 16) + (sum & 0xffff) == 0xffff
    }

    #[test]
    fn lengths_and_checksums_hold() {
        let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 50_000);
        let to = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 1), 50_001);
        for (asked, got) in [(0, 28), (28, 28), (29, 29), (1500, 1500), (1 << 40, 65_535)] {
            let packet = udp(from, to, asked);
            assert_eq!(packet.len(), got);
            assert!(is_right(sum(&packet[..IP])), "a right checksum makes the sum all ones");
            let pseudo = sum(&packet[12..20]) + 17 + (got - IP) as u32;
            assert!(is_right(pseudo + sum(&packet[IP..])));
            assert_eq!(packet[2..4], (got as u16).to_be_bytes());
        }
    }
}
