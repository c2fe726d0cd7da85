//! Echo requests and replies of ICMP (RFC 792) and ICMPv6 (RFC 4443 §4), without data: how a host asks whether a path
//! is there, and how long it takes.

use crate::Checksum;
use anabranch_units::Bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One echo request or reply in its IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// A reply; a request otherwise.
    pub reply: bool,
    /// Identifier of the process that sends requests.
    pub identifier: u16,
    /// Number of the request.
    pub sequence: u16,
}

impl Echo {
    /// The answer of the host that was asked.
    #[must_use]
    pub fn answer(self) -> Self {
        Echo { source: self.destination, destination: self.source, reply: true, ..self }
    }

    /// Size of the IP packet.
    pub fn wire_length(&self) -> Bytes {
        Bytes::new((ICMP + if self.source.is_ipv4() { V4 } else { V6 }) as u64)
    }

    /// The packet; `None` if its addresses are of two families.
    pub fn emit(&self) -> Option<Vec<u8>> {
        let mut packet = vec![0; self.wire_length().get() as usize];
        let header = packet.len() - ICMP;
        let (ip, icmp) = packet.split_at_mut(header);
        icmp[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        icmp[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        let mut checksum = Checksum::new();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                icmp[0] = if self.reply { REPLY } else { REQUEST };
                ip[0] = 0x45; // Version 4, five words of header.
                ip[3] = (V4 + ICMP) as u8;
                ip[6] = 0x40; // Don't fragment.
                ip[8] = TTL;
                ip[9] = PROTOCOL_V4;
                ip[12..16].copy_from_slice(&source.octets());
                ip[16..20].copy_from_slice(&destination.octets());
                let mut header = Checksum::new();
                header.add(ip);
                ip[10..12].copy_from_slice(&header.value().to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                icmp[0] = if self.reply { REPLY_V6 } else { REQUEST_V6 };
                ip[0] = 0x60; // Version 6.
                ip[5] = ICMP as u8;
                ip[6] = PROTOCOL_V6;
                ip[7] = TTL;
                ip[8..24].copy_from_slice(&source.octets());
                ip[24..40].copy_from_slice(&destination.octets());
                pseudo_header(&mut checksum, ip);
            }
            _ => return None,
        }
        checksum.add(icmp);
        icmp[2..4].copy_from_slice(&checksum.value().to_be_bytes());
        Some(packet)
    }

    /// Reads an echo request or reply. Returns `None` if `packet` is anything else, carries options, or a checksum is
    /// wrong. Data behind the header are ignored.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let good = |mut checksum: Checksum, bytes: &[u8]| {
            checksum.add(bytes);
            checksum.sum() == 0xffff
        };
        let (source, destination, icmp, kinds): (IpAddr, IpAddr, _, _) = match packet.first()? {
            0x45 => {
                let (ip, rest) = packet.split_first_chunk::<V4>()?;
                let length = usize::from(u16::from_be_bytes([ip[2], ip[3]])).checked_sub(V4)?;
                let whole = u16::from_be_bytes([ip[6], ip[7]]) & !DONT_FRAGMENT == 0;
                if ip[9] != PROTOCOL_V4 || !whole || !good(Checksum::new(), ip) {
                    return None;
                }
                let icmp = rest.get(..length)?;
                if !good(Checksum::new(), icmp) {
                    return None;
                }
                let source = Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]);
                let destination = Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]);
                (source.into(), destination.into(), icmp, [REQUEST, REPLY])
            }
            first if first >> 4 == 6 => {
                let (ip, rest) = packet.split_first_chunk::<V6>()?;
                let icmp = rest.get(..usize::from(u16::from_be_bytes([ip[4], ip[5]])))?;
                let mut checksum = Checksum::new();
                pseudo_header(&mut checksum, ip);
                if ip[6] != PROTOCOL_V6 || !good(checksum, icmp) {
                    return None;
                }
                let address = |at: usize| ip[at..at + 16].try_into().ok().map(<[u8; 16] as Into<Ipv6Addr>>::into);
                (address(8)?.into(), address(24)?.into(), icmp, [REQUEST_V6, REPLY_V6])
            }
            _ => return None,
        };
        let [kind, 0, _, _, i0, i1, s0, s1] = *icmp.first_chunk::<ICMP>()? else { return None };
        kinds.contains(&kind).then_some(Echo {
            source,
            destination,
            reply: kind == kinds[1],
            identifier: u16::from_be_bytes([i0, i1]),
            sequence: u16::from_be_bytes([s0, s1]),
        })
    }
}

/// Addresses, length and protocol (RFC 8200 §8.1), of an IPv6 header.
pub(crate) fn pseudo_header(checksum: &mut Checksum, ip: &[u8]) {
    checksum.add(&ip[8..40]);
    checksum.add(&ip[4..6]);
    checksum.add_u16(u16::from(PROTOCOL_V6));
}

const V4: usize = 20;
const V6: usize = 40;
const ICMP: usize = 8;
const TTL: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
pub(crate) const PROTOCOL_V4: u8 = 1;
pub(crate) const PROTOCOL_V6: u8 = 58;
const REPLY: u8 = 0;
const REQUEST: u8 = 8;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::hex;

    fn ask(source: &str, destination: &str) -> Echo {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        Echo { source, destination, reply: false, identifier: 0x1234, sequence: 0x0007 }
    }

    /// The bytes of both were put together and summed by hand (throw-away Python).
    #[test]
    fn bytes_are_as_another_hand_writes_them() {
        let v4 = ask("10.0.0.1", "10.1.0.1").emit().unwrap();
        let expected = "4500001c000040004001 26df 0a000001 0a010001 0800 e5c4 1234 0007";
        assert_eq!(hex(&v4), expected.replace(' ', ""));
        let v6 = ask("fd00::1", "fd00:1::1").answer().emit().unwrap();
        assert_eq!(&hex(&v6)[..16], "6000000000083a40");
        assert_eq!(&hex(&v6)[80..], "8100727d12340007");
    }

    #[test]
    fn what_is_read_is_what_was_written_and_no_damage_passes() {
        for echo in [ask("10.0.0.1", "10.1.0.1"), ask("fd00::1", "fd00:1::1")] {
            for echo in [echo, echo.answer()] {
                let packet = echo.emit().unwrap();
                assert_eq!(packet.len() as u64, echo.wire_length().get());
                assert_eq!(Echo::parse(&packet), Some(echo));
                for cut in 0..packet.len() {
                    assert_eq!(Echo::parse(&packet[..cut]), None, "cut at {cut}");
                }
                for at in 0..packet.len() {
                    let mut damaged = packet.clone();
                    damaged[at] ^= 0x41;
                    let unguarded = echo.source.is_ipv6() && (at < 4 || at == 7); // Class, flow label, hop limit.
                    assert!(unguarded || Echo::parse(&damaged).is_none(), "damaged at {at}");
                }
            }
        }
        assert_eq!(ask("10.0.0.1", "fd00::1").emit(), None);
    }
}
