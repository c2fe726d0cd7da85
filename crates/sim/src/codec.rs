//! Segments as the bytes of packets, between the hosts and through the links.
//!
//! Headers are written into buffers that are used again; the payload stays where it is, since copying it would test
//! nothing. As on a network card that computes checksums, the payload is summed only where that can matter: for packets
//! that are damaged, whose checksum must find it, and in audited runs for all.

use anabranch_units::{Seed, Stream};
use anabranch_wire::{Checksums, ParseError, Segment, TcpChecksum, emit_headers, parse_parts};
use bytes::{Bytes, BytesMut};

/// Writes and reads packets.
pub(crate) struct Codec {
    /// Buffers for headers that no packet has now.
    spare: Vec<BytesMut>,
    /// Read back what was written, at once.
    audit: bool,
    /// Which bits of a damaged packet are flipped.
    damage: Stream,
}

/// One packet.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    headers: BytesMut,
    payload: Bytes,
}

impl Codec {
    pub(crate) fn new(seed: Seed, audit: bool) -> Self {
        Codec { spare: Vec::new(), audit, damage: seed.stream("codec/damage") }
    }

    /// The packet of a segment.
    ///
    /// # Panics
    /// If the segment holds what the wire cannot carry: too many options, or a number too large for its field. What sent
    /// it has a bug.
    #[inline]
    pub(crate) fn write(&mut self, segment: Segment) -> Frame {
        let mut headers = self.spare.pop().unwrap_or_else(|| BytesMut::with_capacity(LONGEST_HEADERS));
        let checksum = if self.audit { TcpChecksum::Full } else { TcpChecksum::Offload };
        emit(&segment, checksum, &mut headers);
        if self.audit {
            let length = headers.len() + segment.payload.len();
            assert_eq!(length as u64, segment.wire_length().get(), "a segment knows its length: {segment:?}");
            let read = parse_parts(&headers, segment.payload.clone(), Checksums::Verify);
            assert_eq!(read.as_ref(), Ok(&segment), "what is read is what was written");
        }
        Frame { headers, payload: segment.payload }
    }

    /// The segment of a packet that arrived undamaged.
    ///
    /// # Panics
    /// If it has none: what was written cannot be read.
    #[inline]
    pub(crate) fn read(&mut self, frame: Frame) -> Segment {
        let Frame { mut headers, payload } = frame;
        let checksums = if self.audit { Checksums::Verify } else { Checksums::Ignore };
        let read = parse_parts(&headers, payload, checksums);
        headers.clear();
        self.spare.push(headers);
        match read {
            Ok(segment) => segment,
            Err(error) => panic!("what was written can be read: {error}"),
        }
    }

    /// A packet that was damaged on its way: flips up to eight bits of one of its bytes, which no Internet checksum misses
    /// (RFC 1071), and has it read by a host that does not know.
    ///
    /// # Panics
    /// If that is not found out.
    #[cold]
    pub(crate) fn read_damaged(&mut self, segment: &Segment) -> ParseError {
        let (mut headers, payload) = (BytesMut::with_capacity(LONGEST_HEADERS), segment.payload.clone());
        emit(segment, TcpChecksum::Full, &mut headers);
        let at = self.damage.below((headers.len() + payload.len()) as u64) as usize;
        let flipped = self.damage.between(1, 0xff) as u8;
        let payload = match at.checked_sub(headers.len()) {
            None => {
                headers[at] ^= flipped;
                payload
            }
            Some(at) => {
                let mut payload = BytesMut::from(&payload[..]);
                payload[at] ^= flipped;
                payload.freeze()
            }
        };
        match parse_parts(&headers, payload, Checksums::Verify) {
            Err(error) => error,
            Ok(segment) => panic!("a checksum finds byte {at} changed by {flipped:#04x}: {segment:?}"),
        }
    }
}

#[inline]
fn emit(segment: &Segment, checksum: TcpChecksum, headers: &mut BytesMut) {
    if let Err(error) = emit_headers(segment, checksum, headers) {
        panic!("a segment has bytes: {error}: {segment:?}");
    }
}

/// IPv6 and TCP with all options; longer ones would only cost a second allocation.
const LONGEST_HEADERS: usize = 40 + 60;
