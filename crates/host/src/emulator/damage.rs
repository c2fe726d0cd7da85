//! Damage that a receiver notices.
//!
//! A link that corrupts hands over a packet with flipped bits, and the host's own checksum is what discards it. So the
//! bits must lie where a checksum looks: no Internet checksum misses up to eight flipped bits of one byte (RFC 1071),
//! but IPv6 has none over its header, and UDP over IPv4 may have none at all.

use anabranch_units::Stream;

/// Flips bits of one byte that a checksum covers; `false` if there is none, and the packet is as it was.
pub(super) fn damage(packet: &mut [u8], chance: &mut Stream) -> bool {
    let Some((start, end)) = summed(packet) else {
        return false;
    };
    let at = start + chance.below((end - start) as u64) as usize;
    packet[at] ^= chance.between(1, 0xff) as u8;
    true
}

/// The bytes whose change the receiver notices without being led to another protocol, length or address by it.
fn summed(packet: &[u8]) -> Option<(usize, usize)> {
    let (protocol, start, total) = match packet.first()? >> 4 {
        4 if packet.len() >= V4_HEADER => {
            let header = usize::from(packet[0] & 0x0f) * 4;
            (packet[9], header, usize::from(u16::from_be_bytes([packet[2], packet[3]])))
        }
        6 if packet.len() >= V6_HEADER => {
            (packet[6], V6_HEADER, V6_HEADER + usize::from(u16::from_be_bytes([packet[4], packet[5]])))
        }
        _ => return None,
    };
    let end = total.min(packet.len());
    let is_v4 = packet[0] >> 4 == 4;
    let is_fragment = is_v4 && u16::from_be_bytes([packet[6], packet[7]]) & MORE_OR_OFFSET != 0;
    let is_summed = match protocol {
        _ if is_fragment => false,
        TCP => end >= start + TCP_HEADER,
        UDP => end >= start + UDP_HEADER && packet[start + UDP_CHECKSUM..][..2] != [0, 0],
        ICMP => is_v4 && end >= start + ICMP_HEADER,
        ICMPV6 => !is_v4 && end >= start + ICMP_HEADER,
        _ => false,
    };
    match (is_summed, protocol) {
        // A changed length or checksum field of UDP could come to mean something else: zero is "no checksum".
        (true, UDP) if end > start + UDP_HEADER => Some((start + UDP_HEADER, end)),
        (true, UDP) => Some((start, start + 4)),
        (true, _) => Some((start, end)),
        // The identification, which the IPv4 header's checksum covers.
        (false, _) if is_v4 => Some((4, 6)),
        (false, _) => None,
    }
}

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const UDP_CHECKSUM: usize = 6;
const ICMP_HEADER: usize = 8;
const MORE_OR_OFFSET: u16 = 0x3fff;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::{Seed, SubflowSeq};
    use anabranch_wire::{Checksums, Flags, FlowKey, Segment};
    use bytes::{Bytes, BytesMut};

    #[test]
    fn the_checksum_of_tcp_finds_every_damage() {
        let mut chance = Seed(1).stream("damage");
        for (from, to) in [("10.0.0.1:1", "10.0.0.2:2"), ("[fd00::1]:1", "[fd00::2]:2")] {
            let flow = FlowKey::new(from.parse().unwrap(), to.parse().unwrap());
            let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
            segment.payload = Bytes::from_static(b"payload").into();
            let mut packet = BytesMut::new();
            anabranch_wire::emit(&segment, &mut packet).unwrap();
            for _ in 0..1000 {
                let mut hit = packet.to_vec();
                assert!(damage(&mut hit, &mut chance));
                assert!(anabranch_wire::parse(&Bytes::from(hit), Checksums::Verify).is_err());
            }
        }
    }

    #[test]
    fn what_no_checksum_covers_is_not_touched() {
        let mut chance = Seed(1).stream("damage");
        let mut unsummed_v6 = vec![0; 60];
        (unsummed_v6[0], unsummed_v6[5], unsummed_v6[6]) = (0x60, 20, 59);
        for packet in [vec![], vec![0x45], vec![0x60; 39], vec![0x12; 100], unsummed_v6] {
            let mut hit = packet.clone();
            assert!(!damage(&mut hit, &mut chance));
            assert_eq!(hit, packet);
        }
        // UDP over IPv4 without a checksum: the header's own finds it.
        let mut bare = vec![0; 48];
        (bare[0], bare[3], bare[9]) = (0x45, 48, UDP);
        let mut hit = bare.clone();
        assert!(damage(&mut hit, &mut chance));
        assert!(hit[..20] != bare[..20] && hit[20..] == bare[20..]);
    }

    #[test]
    fn headers_that_lie_are_no_trouble() {
        let mut chance = Seed(2).stream("damage");
        for round in 0..20_000u64 {
            let length = chance.below(90) as usize;
            let mut packet: Vec<u8> = (0..length).map(|_| chance.below(256) as u8).collect();
            if let Some(first) = packet.first_mut() {
                *first = if round % 2 == 0 { 0x40 | *first & 0xf } else { 0x60 };
            }
            damage(&mut packet, &mut chance);
        }
    }
}
