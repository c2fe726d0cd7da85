//! Link-layer headers in front of the IP header (LINKTYPE values of tcpdump.org).

use bytes::Bytes;
use std::fmt;

/// A link-layer header type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkType(pub u16);

/// Why a frame yields no IP packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// ARP and the like.
    #[error("no IP packet")]
    NotIp,
    /// Cut before the IP header.
    #[error("cut before its IP header")]
    Cut,
    /// Link type that this crate does not know.
    #[error("link type {0} is not understood")]
    Unknown(LinkType),
}

impl LinkType {
    /// The IP packet in a frame, without what is before it. Padding behind it stays.
    ///
    /// # Errors
    /// If there is none.
    pub fn ip_packet(self, frame: &Bytes) -> Result<Bytes, LinkError> {
        let start = self.ip_start(frame, MOST_LAYERS)?;
        match frame.get(start).map(|byte| byte >> 4) {
            Some(4 | 6) => Ok(frame.slice(start..)),
            Some(_) => Err(LinkError::NotIp),
            None => Err(LinkError::Cut),
        }
    }

    /// Returns the offset of the IP header in `frame`.
    fn ip_start(self, frame: &[u8], layers: u8) -> Result<usize, LinkError> {
        match self.0 {
            RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => Ok(0),
            NULL | LOOP => family(frame),
            ETHERNET => ether_type(frame, 12, 14, layers),
            PPP | PPP_HDLC => ppp(frame, 0),
            PPP_ETHER => ppp(frame, 6),
            C_HDLC => ether_type(frame, 2, 4, layers),
            LINUX_SLL => ether_type(frame, 14, 16, layers),
            LINUX_SLL2 => ether_type(frame, 0, 20, layers),
            PKTAP if layers > 0 => {
                // Apple's: lengths in the byte order of the host, little-endian on all that are left.
                let field = |at: usize| Some(u32::from_le_bytes(*frame.get(at..)?.first_chunk()?));
                let (length, link) = (field(0).ok_or(LinkError::Cut)? as usize, field(8).ok_or(LinkError::Cut)?);
                let inner = LinkType(u16::try_from(link).map_err(|_| LinkError::NotIp)?);
                Ok(length + inner.ip_start(frame.get(length..).ok_or(LinkError::Cut)?, layers - 1)?)
            }
            _ => Err(LinkError::Unknown(self)),
        }
    }
}

/// The EtherType at `at`, with what it names at `start`, through VLAN tags and PPPoE.
fn ether_type(frame: &[u8], at: usize, start: usize, layers: u8) -> Result<usize, LinkError> {
    match half(frame, at)? {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(start),
        VLAN | PROVIDER_VLAN | OLD_QINQ if layers > 0 => ether_type(frame, start + 2, start + 4, layers - 1),
        PPPOE_SESSION => ppp(frame, start + 6),
        // IEEE 802.3: a length, then LLC; SNAP with the zero organisation carries an EtherType.
        0..=1500 if frame.get(start..start + 6) == Some(&[0xaa, 0xaa, 3, 0, 0, 0]) && layers > 0 => {
            ether_type(frame, start + 6, start + 8, layers - 1)
        }
        _ => Err(LinkError::NotIp),
    }
}

/// PPP at `at`, with or without its HDLC-like framing, the protocol in one byte or two (RFC 1661 §2, RFC 1662 §3.1).
fn ppp(frame: &[u8], mut at: usize) -> Result<usize, LinkError> {
    if half(frame, at)? == 0xff03 {
        at += 2;
    }
    let first = *frame.get(at).ok_or(LinkError::Cut)?;
    let (protocol, start) = if first & 1 == 1 { (u16::from(first), at + 1) } else { (half(frame, at)?, at + 2) };
    if matches!(protocol, 0x21 | 0x57) { Ok(start) } else { Err(LinkError::NotIp) }
}

/// BSD loopback: an address family in the byte order of the capturing host. IPv6 has a different number on each system.
fn family(frame: &[u8]) -> Result<usize, LinkError> {
    let four: [u8; 4] = *frame.first_chunk().ok_or(LinkError::Cut)?;
    let number = u32::from_be_bytes(four);
    match if number > 0xffff { number.swap_bytes() } else { number } {
        2 | 10 | 24 | 28 | 30 => Ok(4),
        _ => Err(LinkError::NotIp),
    }
}

fn half(frame: &[u8], at: usize) -> Result<u16, LinkError> {
    let two = frame.get(at..).and_then(|rest| rest.first_chunk()).ok_or(LinkError::Cut)?;
    Ok(u16::from_be_bytes(*two))
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            NULL => "BSD loopback",
            ETHERNET => "Ethernet",
            PPP | PPP_HDLC => "PPP",
            PPP_ETHER => "PPPoE",
            RAW | RAW_BSD | RAW_OPENBSD => "raw IP",
            C_HDLC => "Cisco HDLC",
            105 => "IEEE 802.11",
            LOOP => "OpenBSD loopback",
            LINUX_SLL => "Linux cooked",
            127 => "IEEE 802.11 with radiotap",
            189 | 220 => "USB",
            195 | 230 => "IEEE 802.15.4",
            187 | 201 | 251 => "Bluetooth",
            IPV4 => "IPv4",
            IPV6 => "IPv6",
            239 => "NFLOG",
            252 => "Wireshark upper PDU",
            PKTAP => "Apple PKTAP",
            LINUX_SLL2 => "Linux cooked v2",
            _ => return write!(f, "{}", self.0),
        };
        write!(f, "{} ({name})", self.0)
    }
}

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
/// Raw IP in files written on BSDs; 12 elsewhere.
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const PPP_HDLC: u16 = 50;
const PPP_ETHER: u16 = 51;
const RAW: u16 = 101;
const C_HDLC: u16 = 104;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const PKTAP: u16 = 258;
const LINUX_SLL2: u16 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const PROVIDER_VLAN: u16 = 0x88a8;
const OLD_QINQ: u16 = 0x9100;
const PPPOE_SESSION: u16 = 0x8864;
/// Tags and wrappers looked through.
const MOST_LAYERS: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn start(link: u16, hex: &[u8]) -> Result<usize, LinkError> {
        let frame = Bytes::from([hex, &[0x45, 0, 0, 20]].concat());
        LinkType(link).ip_packet(&frame).map(|packet| frame.len() - packet.len())
    }

    #[test]
    fn the_ip_header_is_found_on_each_link() {
        let mac = [2u8; 12];
        let ethernet = |rest: &[u8]| [&mac[..], rest].concat();
        for (link, header) in [
            (101, vec![]),
            (12, vec![]),
            (228, vec![]),
            (0, vec![2, 0, 0, 0]),
            (0, vec![0, 0, 0, 30]),
            (108, vec![0, 0, 0, 2]),
            (1, ethernet(&[8, 0])),
            (1, ethernet(&[0x81, 0, 0, 5, 8, 0])),
            (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0])),
            (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21])),
            (1, ethernet(&[0, 28, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0])),
            (9, vec![0xff, 3, 0, 0x21]),
            (9, vec![0x21]),
            (113, [&[0u8; 14][..], &[8, 0]].concat()),
            (113, [&[0u8; 14][..], &[0x81, 0, 0, 5, 8, 0]].concat()),
            (276, [&[8, 0][..], &[0; 18]].concat()),
            (258, [&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 96], &mac, &[8, 0]].concat()),
        ] {
            assert_eq!(start(link, &header), Ok(header.len()), "{link} {header:?}");
        }
    }

    #[test]
    fn what_is_no_ip_packet_is_named() {
        assert_eq!(start(1, &[[2u8; 12].as_slice(), &[8, 6]].concat()), Err(LinkError::NotIp), "ARP");
        assert_eq!(LinkType(1).ip_packet(&Bytes::from_static(&[0; 13])), Err(LinkError::Cut));
        assert_eq!(LinkType(101).ip_packet(&Bytes::new()), Err(LinkError::Cut));
        let error = start(127, &[]).expect_err("802.11 is not understood");
        assert_eq!(error.to_string(), "link type 127 (IEEE 802.11 with radiotap) is not understood");
        // A PKTAP that claims to hold itself, over and over.
        assert!(start(258, &[12, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0].repeat(40)).is_err());
    }
}
