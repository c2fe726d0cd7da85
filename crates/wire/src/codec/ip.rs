//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use super::writer::Writer;
use crate::error::{EmitError, Layer, MOST_EXTENSIONS, ParseError};
use crate::{Checksum, FlowKey, IpHeader};
use anabranch_units::Ecn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP header as read: what it says and where its payload lies.
pub(super) struct Ip {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub header: IpHeader,
    /// Offset of the TCP header.
    pub start: usize,
    /// End of the packet by its length field; bytes behind it are link padding. May lie beyond a snapped capture.
    pub end: usize,
}

/// Reads the IP header and whatever extension headers follow. With `offload`, a length of zero means as much as there
/// is, as in captures of packets that the network card was to cut.
#[inline]
pub(super) fn read(packet: &[u8], offload: bool) -> Result<Ip, ParseError> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => read_v4(packet, offload),
        Some(6) => read_v6(packet, offload),
        Some(version) => Err(ParseError::Version(version)),
        None => Err(ParseError::Truncated { layer: Layer::Ip, need: V4_HEADER, have: 0 }),
    }
}

#[inline]
fn read_v4(packet: &[u8], offload: bool) -> Result<Ip, ParseError> {
    let Some(fixed) = packet.first_chunk::<V4_HEADER>() else {
        return Err(ParseError::Truncated { layer: Layer::Ip, need: V4_HEADER, have: packet.len() });
    };
    let start = usize::from(fixed[0] & 0x0f) * 4;
    if start < V4_HEADER {
        return Err(ParseError::HeaderLength { layer: Layer::Ip, length: start });
    }
    let mut end = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if offload && end == 0 {
        end = packet.len();
    }
    if end < start || packet.len() < start {
        return Err(ParseError::Truncated { layer: Layer::Ip, need: start, have: end.min(packet.len()) });
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    if fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
        return Err(ParseError::Fragment);
    }
    if fixed[9] != TCP {
        return Err(ParseError::NotTcp(fixed[9]));
    }
    let header = IpHeader {
        id: u32::from(u16::from_be_bytes([fixed[4], fixed[5]])),
        ttl: fixed[8],
        dscp: fixed[1] >> 2,
        ecn: Ecn::from_bits(fixed[1]),
        dont_fragment: fragment & DONT_FRAGMENT != 0,
    };
    Ok(Ip {
        src: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]).into(),
        dst: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]).into(),
        header,
        start,
        end,
    })
}

#[inline]
fn read_v6(packet: &[u8], offload: bool) -> Result<Ip, ParseError> {
    let Some(fixed) = packet.first_chunk::<V6_HEADER>() else {
        return Err(ParseError::Truncated { layer: Layer::Ip, need: V6_HEADER, have: packet.len() });
    };
    let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
    let payload = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let end = if offload && payload == 0 { packet.len() } else { V6_HEADER + payload };
    let start = if fixed[6] == TCP { V6_HEADER } else { walk(&packet[..end.min(packet.len())], fixed[6])? };
    let class = (first >> 20) as u8;
    let header = IpHeader {
        id: first & FLOW_LABEL,
        ttl: fixed[7],
        dscp: class >> 2,
        ecn: Ecn::from_bits(class),
        dont_fragment: true,
    };
    let address = |at: usize| -> IpAddr {
        let octets: [u8; 16] = fixed[at..at + 16].try_into().expect("an IPv6 header has room for two addresses");
        Ipv6Addr::from(octets).into()
    };
    Ok(Ip { src: address(8), dst: address(24), header, start, end })
}

/// Walks the extension headers from the fixed header on to where TCP begins.
#[cold]
fn walk(packet: &[u8], mut next: u8) -> Result<usize, ParseError> {
    let mut at = V6_HEADER;
    for _ in 0..MOST_EXTENSIONS {
        if next == TCP {
            return Ok(at);
        }
        // Hop-by-hop options stand first or not at all (RFC 8200 §4).
        let is_misplaced = next == HOP_BY_HOP && at != V6_HEADER;
        if is_misplaced || !matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            return Err(ParseError::NotTcp(next));
        }
        let cut = |need: usize| ParseError::Truncated { layer: Layer::Extension, need, have: packet.len() };
        let header = packet[at..].first_chunk::<8>().ok_or(cut(at + 8))?;
        let length = match next {
            ROUTING if header[3] != 0 => return Err(ParseError::SourceRoute),
            // An atomic fragment, offset 0 and none to follow, is whole (RFC 6946).
            FRAGMENT if u16::from_be_bytes([header[2], header[3]]) & !0b110 != 0 => return Err(ParseError::Fragment),
            FRAGMENT => 8,
            _ => 8 * (usize::from(header[1]) + 1),
        };
        if at + length > packet.len() {
            return Err(cut(at + length));
        }
        next = header[0];
        at += length;
    }
    if next == TCP { Ok(at) } else { Err(ParseError::Extensions) }
}

/// Writes the IP header of a TCP segment of `length` bytes. Linux sends no IPv4 options and no extension headers.
#[inline]
pub(super) fn write(flow: &FlowKey, ip: &IpHeader, length: usize, out: &mut Writer) -> Result<(), EmitError> {
    if ip.dscp > 0x3f {
        return Err(EmitError::FieldTooWide { field: "the DSCP", bits: 6 });
    }
    let class = ip.dscp << 2 | ip.ecn as u8;
    match (flow.src, flow.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = V4_HEADER + length;
            let total = u16::try_from(total).map_err(|_| EmitError::PacketTooLong { length: total })?;
            let id = u16::try_from(ip.id)
                .map_err(|_| EmitError::FieldTooWide { field: "the IPv4 identification", bits: 16 })?;
            let mut header = [0; V4_HEADER];
            header[0] = 0x45;
            header[1] = class;
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[6..8].copy_from_slice(&if ip.dont_fragment { DONT_FRAGMENT } else { 0 }.to_be_bytes());
            header[8] = ip.ttl;
            header[9] = TCP;
            header[12..16].copy_from_slice(&src.octets());
            header[16..20].copy_from_slice(&dst.octets());
            // The checksum counts as zero in its own sum (RFC 791 §3.1), which the header still has here.
            let mut checksum = Checksum::new();
            checksum.add(&header);
            header[10..12].copy_from_slice(&checksum.value().to_be_bytes());
            out.put(&header);
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let payload = u16::try_from(length).map_err(|_| EmitError::PacketTooLong { length })?;
            if ip.id > FLOW_LABEL {
                return Err(EmitError::FieldTooWide { field: "the IPv6 flow label", bits: 20 });
            }
            let mut header = [0; V6_HEADER];
            header[..4].copy_from_slice(&(6 << 28 | u32::from(class) << 20 | ip.id).to_be_bytes());
            header[4..6].copy_from_slice(&payload.to_be_bytes());
            header[6] = TCP;
            header[7] = ip.ttl;
            header[8..24].copy_from_slice(&src.octets());
            header[24..40].copy_from_slice(&dst.octets());
            out.put(&header);
        }
        _ => return Err(EmitError::MixedFamilies),
    }
    Ok(())
}

/// The sum over the pseudo-header of a TCP segment of `length` bytes (RFC 9293 §3.1, RFC 8200 §8.1).
#[inline]
pub(super) fn pseudo_header(src: IpAddr, dst: IpAddr, length: usize) -> Checksum {
    let mut checksum = Checksum::new();
    let mut address = |address: IpAddr| match address {
        IpAddr::V4(v4) => checksum.add_u32(v4.to_bits()),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            checksum.add_u64((bits >> 64) as u64);
            checksum.add_u64(bits as u64);
        }
    };
    address(src);
    address(dst);
    checksum.add_u32(length as u32);
    checksum.add_u16(u16::from(TCP));
    checksum
}

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// IP protocol number (RFC 9293 §3.1).
const TCP: u8 = 6;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const FLOW_LABEL: u32 = 0xf_ffff;
/// Extension headers of RFC 8200 §4 that may stand before TCP.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with these extension headers, each its kind, its length beyond 8 bytes and its bytes 2 and 3.
    fn packet(chain: &[(u8, u8, [u8; 2])]) -> Vec<u8> {
        let mut packet = vec![0; V6_HEADER];
        (packet[0], packet[6]) = (0x60, chain.first().map_or(TCP, |first| first.0));
        for (n, (_, length, bytes)) in chain.iter().enumerate() {
            let next = chain.get(n + 1).map_or(TCP, |header| header.0);
            packet.extend_from_slice(&[next, *length, bytes[0], bytes[1], 0, 0, 0, 0]);
            packet.resize(packet.len() + 8 * usize::from(*length), 0);
        }
        packet[5] = (packet.len() - V6_HEADER) as u8;
        packet
    }

    #[test]
    fn extension_headers_are_walked_as_rfc_8200_says() {
        let options = |kind| (kind, 1, [0, 0]);
        for (chain, expected) in [
            (vec![], Ok(40)),
            (vec![options(HOP_BY_HOP), options(DESTINATION), options(ROUTING), options(DESTINATION)], Ok(104)),
            (vec![options(DESTINATION), options(HOP_BY_HOP)], Err(ParseError::NotTcp(HOP_BY_HOP))),
            (vec![(ROUTING, 0, [0, 1])], Err(ParseError::SourceRoute)),
            // An atomic fragment, whatever its reserved bits; a first one; one that is not the first.
            (vec![(FRAGMENT, 0, [0, 0b110])], Ok(48)),
            (vec![(FRAGMENT, 0, [0, 1])], Err(ParseError::Fragment)),
            (vec![(FRAGMENT, 0, [0, 8])], Err(ParseError::Fragment)),
            // The second byte of a fragment header is no length.
            (vec![(FRAGMENT, 0, [0, 0]), options(DESTINATION)], Ok(64)),
            (vec![options(DESTINATION); MOST_EXTENSIONS], Ok(40 + 16 * MOST_EXTENSIONS)),
            (vec![options(DESTINATION); MOST_EXTENSIONS + 1], Err(ParseError::Extensions)),
            (vec![(51, 1, [0, 0])], Err(ParseError::NotTcp(51))),
            (vec![(DESTINATION, 0, [0, 0]), (50, 0, [0, 0])], Err(ParseError::NotTcp(50))),
        ] {
            assert_eq!(read(&packet(&chain), false).map(|ip| ip.start), expected, "{chain:?}");
        }
        let mut cut = packet(&[options(DESTINATION)]);
        cut.truncate(50);
        let error = ParseError::Truncated { layer: Layer::Extension, need: 56, have: 50 };
        assert_eq!(read(&cut, false).map(|ip| ip.start), Err(error));
    }
}
