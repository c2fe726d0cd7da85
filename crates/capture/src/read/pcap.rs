//! pcap (draft-ietf-opsawg-pcap): a file header, then records; microseconds or nanoseconds, either byte order.

use super::source::Source;
use super::{LONGEST_PACKET, ReadError, Record};
use crate::LinkType;
use anabranch_units::Instant;

/// Content of the file header.
pub(super) struct Header {
    pub link: LinkType,
    big: bool,
    nanoseconds: bool,
    /// No packet is longer.
    longest: u32,
    /// Seconds of the latest record, which the next is not far from.
    seconds: u32,
    /// Bytes of a record's header: 16, or 24 in a variant of old Linux distributions.
    record_header: usize,
}

impl Header {
    /// Reads what follows the magic number; `None` if it is no magic number of pcap.
    pub fn read(magic: [u8; 4], source: &mut Source) -> Result<Option<Self>, ReadError> {
        let (big, number) = match u32::from_be_bytes(magic) {
            n @ (MICRO | NANO | MODIFIED) => (true, n),
            n => (false, n.swap_bytes()),
        };
        if !matches!(number, MICRO | NANO | MODIFIED) {
            return Ok(None);
        }
        let mut rest = [0; 20];
        source.exact(&mut rest, "the file header", 0)?;
        // The upper half may say how long the frame check sequence is.
        let link = word(&rest[16..], big) & 0xffff;
        let snap = word(&rest[12..], big);
        Ok(Some(Header {
            link: LinkType(link as u16),
            big,
            nanoseconds: number == NANO,
            longest: if snap <= LONGEST_PACKET { snap.max(USUAL_SNAP) } else { USUAL_SNAP },
            seconds: 0,
            record_header: if number == MODIFIED { 24 } else { 16 },
        }))
    }

    /// The next record.
    pub fn record(&mut self, source: &mut Source) -> Result<Option<Record>, ReadError> {
        let begin = source.at();
        let mut header = [0; 24];
        let header = &mut header[..self.record_header];
        match source.read(header)? {
            0 => return Ok(None),
            n if n < header.len() => {
                let (have, need) = (n as u64, header.len() as u64);
                return Err(ReadError::Cut { what: "a record's header", at: begin, have, need });
            }
            _ => {}
        }
        let field = |at: usize| word(&header[at..], self.big);
        let (seconds, fraction, length, original_length) = (field(0), field(4), field(8), field(12));
        if length > self.longest {
            let what = format!("a packet of {length} bytes");
            return Err(ReadError::Damaged { at: begin, what });
        }
        self.seconds = seconds;
        let unit = if self.nanoseconds { 1 } else { 1_000 };
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
        let bytes = source.vec(length, "a packet", begin)?;
        // Some programs leave the original length 0, or write the captured length into the wrong field.
        let original_length = original_length.max(length);
        Ok(Some(Record { at: Some(Instant::from_nanos(at)), interface: 0, original_length, bytes: bytes.into() }))
    }
}

impl Header {
    /// Returns the offset in `bytes` at which records resume after damage: two consecutive headers (or one whose record
    /// ends the file) with plausible lengths and times.
    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        let plausible = |at: usize| {
            let header = bytes.get(at..at + self.record_header)?;
            let field = |at: usize| word(&header[at..], self.big);
            let (seconds, fraction, length, original) = (field(0), field(4), field(8), field(12));
            let near = seconds.abs_diff(self.seconds) < NEAR;
            let whole = if self.nanoseconds { 1_000_000_000 } else { 1_000_000 };
            let fits = length > 0 && length <= original && length <= self.longest && original <= LONGEST_PACKET;
            (near && fraction < whole && fits).then_some(at + self.record_header + length as usize)
        };
        (0..bytes.len()).find(|&at| plausible(at).is_some_and(|next| next == bytes.len() || plausible(next).is_some()))
    }
}

fn word(bytes: &[u8], big: bool) -> u32 {
    let four = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
}

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;
/// The snap length of `tcpdump` and Wireshark unless told otherwise.
const USUAL_SNAP: u32 = 256 * 1024;
/// Seconds that a capture may pause.
const NEAR: u32 = 86_400;
