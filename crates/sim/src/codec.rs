//! Segments as the bytes of packets, between the hosts and through the links.
//!
//! Headers are written into buffers that are used again, and read into segments that were written; the payload stays
//! where it is, since copying it would test nothing. As on a network card that computes checksums, the payload is
//! summed only where that can matter: for packets that are damaged, whose checksum must find it, and in audited runs
//! for all.

use anabranch_units::{Seed, Stream};
use anabranch_wire::{Checksums, ParseError, Payload, Segment, TcpChecksum, emit_headers, parse_parts};
use bytes::BytesMut;

/// Writes and reads packets.
pub(crate) struct Codec {
    /// Frames that no packet has now: empty.
    #[expect(clippy::vec_box, reason = "the boxes are what is handed out again")]
    frames: Vec<Box<Frame>>,
    /// Segments that have been written.
    #[expect(clippy::vec_box, reason = "the boxes are what is handed out again")]
    segments: Vec<Box<Segment>>,
    /// Read back what was written, at once.
    audit: bool,
    /// Stream that chooses the bits flipped in a damaged packet.
    damage: Stream,
}

/// One packet.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    headers: BytesMut,
    payload: Payload,
}

impl Frame {
    fn empty() -> Box<Self> {
        Box::new(Frame { headers: BytesMut::with_capacity(LONGEST_HEADERS), payload: Payload::new() })
    }

    pub(crate) fn headers(&self) -> &[u8] {
        &self.headers
    }

    pub(crate) fn headers_mut(&mut self) -> &mut [u8] {
        &mut self.headers
    }
}

/// Segments whose memory is kept for those to come.
const MOST_SPARE: usize = 4096;

impl Codec {
    pub(crate) fn new(seed: Seed, audit: bool) -> Self {
        Codec { frames: Vec::new(), segments: Vec::new(), audit, damage: seed.stream("codec/damage") }
    }

    /// The packet of a segment.
    ///
    /// # Panics
    /// If the segment holds what the wire cannot carry: too many options, or a number too large for its field. What
    /// sent it has a bug.
    #[inline]
    pub(crate) fn write(&mut self, mut segment: Box<Segment>) -> Box<Frame> {
        let mut frame = self.frames.pop().unwrap_or_else(Frame::empty);
        let checksum = if self.audit { TcpChecksum::Full } else { TcpChecksum::Offload };
        emit(&segment, checksum, &mut frame.headers);
        if self.audit {
            let length = frame.headers.len() + segment.payload.len();
            assert_eq!(length as u64, segment.wire_length().get(), "a segment knows its length: {segment:?}");
            let read = parse_parts(&frame.headers, segment.payload.clone(), Checksums::Verify);
            assert_eq!(read.as_ref(), Ok(&*segment), "what is read is what was written");
        }
        frame.payload = std::mem::take(&mut segment.payload);
        // Frames that are lost give none back.
        if self.segments.len() < MOST_SPARE {
            self.segments.push(segment);
        }
        frame
    }

    /// The segment of a packet that arrived undamaged.
    ///
    /// # Panics
    /// If it has none: what was written cannot be read.
    #[inline]
    pub(crate) fn read(&mut self, mut frame: Box<Frame>) -> Box<Segment> {
        let checksums = if self.audit { Checksums::Verify } else { Checksums::Ignore };
        let read = parse_parts(&frame.headers, std::mem::take(&mut frame.payload), checksums);
        frame.headers.clear();
        self.frames.push(frame);
        match (read, self.segments.pop()) {
            (Ok(read), Some(mut segment)) => {
                *segment = read;
                segment
            }
            (Ok(read), None) => Box::new(read),
            (Err(error), _) => panic!("what was written can be read: {error}"),
        }
    }

    /// A packet that was damaged on its way: flips up to eight bits of one of its bytes, which no Internet checksum
    /// misses (RFC 1071), and has it read by a host that does not know.
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
                payload.freeze().into()
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
