//! IP packets from segments and back.
//!
//! The writer uses one canonical layout, that of Linux: no IPv4 options, no extension headers, options in a fixed order
//! and each padded to a multiple of four. The reader accepts any layout. Padding is left out only if the options do not
//! fit 40 bytes with it, so that every segment read can be written again. The round trip loses only bits without
//! meaning: IPv4 options, extension headers, reserved bits of MPTCP options, bytes behind an end-of-options, padding.

mod ip;
pub(crate) mod mptcp;
mod options;
mod writer;

use crate::error::{EmitError, Layer, ParseError};
use crate::options::OPTION_SPACE;
use crate::{Checksum, Flags, FlowKey, Options, Payload, Segment};
use anabranch_units::SubflowSeq;
use bytes::{BufMut, Bytes, BytesMut};
use std::ops::Range;
use writer::Writer;

/// Verification of checksums on reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// A wrong IPv4 header or TCP checksum is an error.
    Verify,
    /// Someone else has verified them: a network card, or a simulator that cannot corrupt.
    Ignore,
}

/// Party that computes the TCP checksum of a packet sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpChecksum {
    /// We do.
    Full,
    /// The device. The field holds the sum of the pseudo-header, not complemented, as Linux expects of a TUN device
    /// with checksum offload (`VIRTIO_NET_HDR_F_NEEDS_CSUM`) and as many network cards do.
    Offload,
}

/// Appends the whole IP packet to `out`. On an error `out` is as it was.
#[inline]
pub fn emit(segment: &Segment, out: &mut BytesMut) -> Result<(), EmitError> {
    let headers = headers(segment, segment.payload.len(), TcpChecksum::Full)?;
    out.reserve(headers.len() + segment.payload.len());
    out.put_slice(headers.as_slice());
    out.put_slice(&segment.payload);
    Ok(())
}

/// Appends the IP and TCP headers only, for drivers that send the payload from where it is. The lengths and a full
/// checksum count the payload. On an error `out` is as it was.
#[inline]
pub fn emit_headers(segment: &Segment, checksum: TcpChecksum, out: &mut BytesMut) -> Result<(), EmitError> {
    let headers = headers(segment, segment.payload.len(), checksum)?;
    out.put_slice(headers.as_slice());
    Ok(())
}

/// Appends the IP and TCP headers of a packet with `payload` bytes that the device will cut into segments (TCP
/// segmentation offload). `segment` holds the first of these bytes. The checksum is left open as with
/// [`TcpChecksum::Offload`]. On an error `out` is unchanged.
#[inline]
pub fn emit_train(segment: &Segment, payload: usize, out: &mut BytesMut) -> Result<(), EmitError> {
    let headers = headers(segment, payload, TcpChecksum::Offload)?;
    out.put_slice(headers.as_slice());
    Ok(())
}

/// Writes the headers. With `TcpChecksum::Full`, `payload` must equal the length of the segment's payload.
#[inline]
fn headers(segment: &Segment, payload: usize, checksum: TcpChecksum) -> Result<Writer, EmitError> {
    let (options, packed) = segment.options.layout();
    if options > OPTION_SPACE {
        return Err(EmitError::OptionsTooLong { length: options });
    }
    if segment.reserved > 0x0f {
        return Err(EmitError::FieldTooWide { field: "the reserved bits of TCP", bits: 4 });
    }
    let header = TCP_HEADER + options as usize;
    let length = header + payload;
    let mut out = Writer::new(packed);
    ip::write(&segment.flow, &segment.ip, length, &mut out)?;
    let start = out.len();
    let mut fixed = [0; TCP_HEADER];
    fixed[..2].copy_from_slice(&segment.flow.src_port.to_be_bytes());
    fixed[2..4].copy_from_slice(&segment.flow.dst_port.to_be_bytes());
    fixed[4..8].copy_from_slice(&segment.seq.get().to_be_bytes());
    fixed[8..12].copy_from_slice(&segment.ack.get().to_be_bytes());
    fixed[12] = (header as u8 / 4) << 4 | segment.reserved;
    fixed[13] = segment.flags.0;
    fixed[14..16].copy_from_slice(&segment.window.to_be_bytes());
    fixed[18..].copy_from_slice(&segment.urgent.to_be_bytes());
    out.put(&fixed);
    options::write(&segment.options, &mut out)?;
    assert_eq!(out.len(), start + header, "options take the space they were said to take");

    let mut sum = ip::pseudo_header(segment.flow.src, segment.flow.dst, length);
    let field = match checksum {
        TcpChecksum::Offload => sum.sum(),
        TcpChecksum::Full => {
            sum.add(&out.as_slice()[start..]);
            sum.add(&segment.payload);
            sum.value()
        }
    };
    out.set_u16(start + CHECKSUM_AT, field);
    Ok(out)
}

/// Parses one IP packet. The payload is a slice of `packet`: nothing is copied, and nothing allocated unless there are
/// options that only handshakes and control messages carry. What follows the packet's own length is ignored.
///
/// An option that is unknown, malformed (its length does not fit what it says about itself) or there a second time is
/// kept as it came, in [`Options::unknown`](crate::Options::unknown), and otherwise ignored. An option whose length is
/// below two or leads beyond the header ends the options, as in every stack in use; the segment stands, and
/// [`Options::broken`](crate::Options::broken) shows what could not be read.
#[inline]
pub fn parse(packet: &Bytes, checksums: Checksums) -> Result<Segment, ParseError> {
    let (mut segment, payload) = parse_headers(packet, checksums)?;
    segment.payload = packet.slice(payload).into();
    Ok(segment)
}

/// Parses one IP packet as [`parse`] does, and leaves the payload where it is: the segment has none, and the range says
/// where in `packet` it lies.
#[inline]
pub fn parse_headers(packet: &[u8], checksums: Checksums) -> Result<(Segment, Range<usize>), ParseError> {
    Outline::of(packet)?.parse(checksums)
}

/// A packet of which only the fixed headers are read, not the options or checksums: enough to decide whether it
/// concerns this host.
pub struct Outline<'a> {
    packet: &'a [u8],
    ip: ip::Ip,
    tcp: Tcp<'a>,
}

impl<'a> Outline<'a> {
    /// Reads the fixed headers.
    ///
    /// # Errors
    /// As [`parse`], but for a wrong checksum.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Result<Self, ParseError> {
        let ip = ip::read(packet, false)?;
        if ip.end > packet.len() {
            return Err(ParseError::Truncated { layer: Layer::Ip, need: ip.end, have: packet.len() });
        }
        let tcp = read_tcp(&packet[..ip.end], &ip)?;
        Ok(Outline { packet, ip, tcp })
    }

    /// Addresses and ports.
    #[inline]
    pub fn flow(&self) -> FlowKey {
        self.tcp.flow(&self.ip)
    }

    /// The control bits.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags(self.tcp.fixed[13])
    }

    /// Reads the rest, as [`parse_headers`] does.
    ///
    /// # Errors
    /// A wrong checksum, if they are looked at.
    #[inline]
    pub fn parse(self, checksums: Checksums) -> Result<(Segment, Range<usize>), ParseError> {
        let Outline { packet, ip, tcp } = self;
        if checksums == Checksums::Verify {
            verify(&ip, &packet[..ip.start], &[&packet[ip.start..ip.end]])?;
        }
        let mut segment = tcp.segment(&ip, Payload::new());
        options::read(tcp.options, false, &mut segment.options);
        Ok((segment, tcp.payload..ip.end))
    }
}

/// Parses a packet whose payload lies apart from its headers, as [`emit_headers`] leaves it. `headers` and `payload`
/// together must be as long as the headers say.
#[inline]
pub fn parse_parts(headers: &[u8], payload: Payload, checksums: Checksums) -> Result<Segment, ParseError> {
    let ip = ip::read(headers, false)?;
    let have = headers.len() + payload.len();
    if ip.end != have {
        return Err(ParseError::Truncated { layer: Layer::Ip, need: ip.end, have });
    }
    let tcp = read_tcp(headers, &ip)?;
    if tcp.payload != headers.len() {
        return Err(ParseError::Truncated { layer: Layer::Tcp, need: tcp.payload, have: headers.len() });
    }
    if checksums == Checksums::Verify {
        verify(&ip, &headers[..ip.start], &[&headers[ip.start..], &payload])?;
    }
    let mut segment = tcp.segment(&ip, payload);
    options::read(tcp.options, false, &mut segment.options);
    Ok(segment)
}

/// Verdict on a captured packet's checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumStatus {
    /// IPv4 header checksum and TCP checksum are right.
    Good,
    /// One of them is wrong; on the sending host that is usual, where the network card computes them later.
    Bad,
    /// The capture cut the packet short.
    Unknown,
}

/// A packet out of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// The segment; its payload is as much as was captured.
    pub segment: Segment,
    /// Bytes of payload that the packet had, as its IP header says.
    pub payload_length: usize,
    /// The checksums.
    pub checksum: ChecksumStatus,
    /// True if the capture ends within the options: those behind are missing from the segment.
    pub options_cut: bool,
}

/// Parses an IP packet out of a capture, which may have cut it short (snap length) and may hold packets that were never
/// on a wire: a wrong checksum is no error, and an IP length of zero (before segmentation offload) means what was
/// captured. The fixed TCP header must be there.
pub fn parse_captured(captured: &Bytes) -> Result<Captured, ParseError> {
    let ip = ip::read(captured, true)?;
    let end = ip.end.min(captured.len());
    let tcp = read_tcp(&captured[..end], &ip)?;
    let checksum = if ip.end > captured.len() {
        ChecksumStatus::Unknown
    } else if verify(&ip, &captured[..ip.start], &[&captured[ip.start..ip.end]]).is_ok() {
        ChecksumStatus::Good
    } else {
        ChecksumStatus::Bad
    };
    let options_cut = tcp.payload > end;
    let mut segment = tcp.segment(&ip, captured.slice(tcp.payload.min(end)..end).into());
    options::read(tcp.options, options_cut, &mut segment.options);
    Ok(Captured { segment, payload_length: ip.end - tcp.payload, checksum, options_cut })
}

/// A TCP header whose lengths are right.
struct Tcp<'a> {
    fixed: &'a [u8; TCP_HEADER],
    /// The options, as far as they are there.
    options: &'a [u8],
    /// Offset of the payload in the packet; beyond its captured part if the options were cut.
    payload: usize,
}

/// Finds the parts of the TCP header. `packet` ends with the packet, or where it was cut.
#[inline]
fn read_tcp<'a>(packet: &'a [u8], ip: &ip::Ip) -> Result<Tcp<'a>, ParseError> {
    let cut = |need: usize, have: usize| ParseError::Truncated { layer: Layer::Tcp, need, have };
    let tcp = packet.get(ip.start..).unwrap_or_default();
    let Some((fixed, rest)) = tcp.split_first_chunk::<TCP_HEADER>() else {
        return Err(cut(TCP_HEADER, tcp.len()));
    };
    let header = usize::from(fixed[12] >> 4) * 4;
    let Some(options) = header.checked_sub(TCP_HEADER) else {
        return Err(ParseError::HeaderLength { layer: Layer::Tcp, length: header });
    };
    if ip.start + header > ip.end {
        return Err(cut(header, ip.end - ip.start));
    }
    Ok(Tcp { fixed, options: &rest[..options.min(rest.len())], payload: ip.start + header })
}

impl Tcp<'_> {
    #[inline]
    fn flow(&self, ip: &ip::Ip) -> FlowKey {
        let port = |at: usize| u16::from_be_bytes([self.fixed[at], self.fixed[at + 1]]);
        FlowKey { src: ip.src, dst: ip.dst, src_port: port(0), dst_port: port(2) }
    }

    /// The segment without its options, which are read into it: a segment is large, and moving it costs.
    #[inline]
    fn segment(&self, ip: &ip::Ip, payload: Payload) -> Segment {
        let u16_at = |at: usize| u16::from_be_bytes([self.fixed[at], self.fixed[at + 1]]);
        let seq_at = |at: usize| {
            let field = [self.fixed[at], self.fixed[at + 1], self.fixed[at + 2], self.fixed[at + 3]];
            SubflowSeq::new(u32::from_be_bytes(field))
        };
        Segment {
            flow: self.flow(ip),
            ip: ip.header,
            flags: Flags(self.fixed[13]),
            reserved: self.fixed[12] & 0x0f,
            window: u16_at(14),
            urgent: u16_at(18),
            seq: seq_at(4),
            ack: seq_at(8),
            options: Options::default(),
            payload,
        }
    }
}

/// Checks the IPv4 header checksum and the TCP checksum over `pieces`, header and payload.
#[inline]
fn verify(ip: &ip::Ip, ip_header: &[u8], pieces: &[&[u8]]) -> Result<(), ParseError> {
    if ip.src.is_ipv4() {
        let mut sum = Checksum::new();
        sum.add(ip_header);
        if sum.sum() != 0xffff {
            return Err(ParseError::IpChecksum);
        }
    }
    let length = pieces.iter().map(|piece| piece.len()).sum();
    let mut sum = ip::pseudo_header(ip.src, ip.dst, length);
    pieces.iter().for_each(|piece| sum.add(piece));
    if sum.sum() == 0xffff { Ok(()) } else { Err(ParseError::TcpChecksum) }
}

const TCP_HEADER: usize = 20;
/// Offset of the checksum in the TCP header.
const CHECKSUM_AT: usize = 16;
