//! Distance that a packet may go, and its payload.

use std::net::Ipv6Addr;

/// Scope of a packet's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The sender's own network. A router between hosts and links does not forward these packets, so they neither take
    /// room on a link nor draw from its loss.
    Link,
    /// Behind routers.
    Beyond,
}

/// The scope of an IP packet; `None` if these bytes do not begin as one does. What is wrong with it beyond that, the
/// receiving host will say.
///
/// Of link scope are multicast of that scope (RFC 5771 §4, RFC 4291 §2.7), and what comes from or goes to an address
/// that means nothing elsewhere (RFC 4291 §2.5.2, §2.5.6).
#[inline]
pub(super) fn scope(packet: &[u8]) -> Option<Scope> {
    let address = |at: usize| -> Option<Ipv6Addr> { Some(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?.into()) };
    let near = match packet.first()? >> 4 {
        4 => packet.get(16..20)?[..3] == [224, 0, 0],
        6 => {
            let (source, destination) = (address(8)?, address(24)?);
            source.is_unspecified()
                || source.is_unicast_link_local()
                || destination.is_unicast_link_local()
                || (destination.is_multicast() && destination.octets()[1] & 0x0f <= LINK_LOCAL)
        }
        _ => return None,
    };
    Some(if near { Scope::Link } else { Scope::Beyond })
}

/// Multicast scope (RFC 4291 §2.7).
const LINK_LOCAL: u8 = 2;

/// Bytes behind the headers of an IP packet, those of TCP and UDP included; IPv6 extension headers count as payload.
#[inline]
pub(super) fn payload(packet: &[u8]) -> usize {
    let (header, protocol) = match packet.first().map(|first| first >> 4) {
        Some(4) => (usize::from(packet[0] & 0x0f) * 4, packet.get(9)),
        Some(6) => (40, packet.get(6)),
        _ => return 0,
    };
    let transport = match protocol {
        Some(&TCP) => packet.get(header + 12).map_or(0, |offset| usize::from(offset >> 4) * 4),
        Some(&UDP) => 8,
        _ => 0,
    };
    packet.len().saturating_sub(header + transport)
}

const TCP: u8 = 6;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn v4(destination: &str) -> Option<Scope> {
        let mut packet = [0; 20];
        packet[0] = 0x45;
        packet[16..].copy_from_slice(&destination.parse::<Ipv4Addr>().expect("an address").octets());
        scope(&packet)
    }

    fn v6(source: &str, destination: &str) -> Option<Scope> {
        let mut packet = [0; 40];
        packet[0] = 0x60;
        for (at, address) in [(8, source), (24, destination)] {
            packet[at..at + 16].copy_from_slice(&address.parse::<Ipv6Addr>().expect("an address").octets());
        }
        scope(&packet)
    }

    #[test]
    fn what_a_router_forwards() {
        let (link, beyond) = (Some(Scope::Link), Some(Scope::Beyond));
        assert_eq!([v4("224.0.0.22"), v4("224.0.1.1"), v4("10.78.0.1")], [link, beyond, beyond]);
        assert_eq!([v6("::", "ff02::16"), v6("fd77::1", "ff02::2"), v6("fd77::1", "ff05::2")], [link, link, beyond]);
        assert_eq!([v6("fe80::1", "fd78::1"), v6("fd77::1", "fe80::1"), v6("::", "fd78::1")], [link; 3]);
        assert_eq!(v6("fd77::1", "fd78::1"), beyond);
    }

    #[test]
    fn payload_is_what_stands_behind_the_headers() {
        let packet = |first: u8, protocol_at: usize, protocol: u8, length: usize| {
            let mut packet = vec![0; length];
            (packet[0], packet[protocol_at]) = (first, protocol);
            packet
        };
        let mut tcp4 = packet(0x45, 9, TCP, 60);
        tcp4[32] = 0xa0; // 40 bytes of header.
        let mut tcp6 = packet(0x60, 6, TCP, 73);
        tcp6[52] = 0x50;
        assert_eq!((payload(&tcp4), payload(&tcp6)), (0, 13));
        assert_eq!((payload(&packet(0x45, 9, UDP, 30)), payload(&packet(0x60, 6, 58, 44))), (2, 4));
        assert_eq!((payload(&packet(0x4f, 9, TCP, 20)), payload(&[0x60]), payload(&[])), (0, 0, 0));
    }

    #[test]
    fn what_is_no_ip_packet_has_none() {
        for packet in [&[][..], &[0x45; 19], &[0x60; 39], &[0x75; 60]] {
            assert_eq!(scope(packet), None, "{packet:?}");
        }
    }
}
