//! pcapng (draft-ietf-opsawg-pcapng): blocks in sections; interfaces with their own link type and clock resolution.

use super::source::Source;
use super::{CapturedAt, LONGEST_PACKET, ReadError, Record};
use crate::LinkType;
use anabranch_units::Instant;
use bytes::Bytes;

/// The section that is being read.
pub(super) struct Section {
    big: bool,
    /// The interfaces of this section.
    clocks: Vec<Clock>,
    /// Index of the first among the interfaces of all sections.
    first: usize,
}

/// Clock of an interface.
#[derive(Clone, Copy)]
struct Clock {
    resolution: u8,
    /// Seconds to add.
    offset: i64,
    snap_length: u32,
}

/// A block as it stands in the file.
struct Block {
    kind: u32,
    /// Offset in the file, in bytes.
    at: u64,
    /// Bytes of its body.
    length: u32,
}

impl Section {
    /// Begins the first section, behind the block type.
    pub fn begin(source: &mut Source) -> Result<Self, ReadError> {
        let mut section = Section { big: false, clocks: Vec::new(), first: 0 };
        section.header(source, source.at() - 4, 0)?;
        Ok(section)
    }

    /// Reads a section header from behind its block type on. `first` interfaces are known from sections before.
    fn header(&mut self, source: &mut Source, at: u64, first: usize) -> Result<(), ReadError> {
        const WHAT: &str = "a section header";
        let mut start = [0; 8];
        source.exact(&mut start, WHAT, at)?;
        let magic = [start[4], start[5], start[6], start[7]];
        self.big = match u32::from_be_bytes(magic) {
            BYTE_ORDER => true,
            n if n.swap_bytes() == BYTE_ORDER => false,
            n => return Err(ReadError::Damaged { at, what: format!("byte-order magic 0x{n:08x}") }),
        };
        let length = self.word(&start);
        if length < 28 || !length.is_multiple_of(4) {
            return Err(ReadError::Damaged { at, what: format!("a section header of {length} bytes") });
        }
        source.skip(u64::from(length) - 12, WHAT, at)?;
        self.clocks.clear();
        self.first = first;
        Ok(())
    }

    /// The next packet, past everything else.
    pub fn record(
        &mut self,
        source: &mut Source,
        interfaces: &mut Vec<CapturedAt>,
        strays: &mut u64,
    ) -> Result<Option<Record>, ReadError> {
        while let Some(block) = self.block(source, interfaces.len())? {
            let record = match block.kind {
                INTERFACE if interfaces.len() < MOST_INTERFACES => {
                    self.interface(&self.body(source, &block, "an interface description")?, &block, interfaces)?;
                    None
                }
                ENHANCED_PACKET | PACKET | SIMPLE_PACKET => {
                    let body = self.body(source, &block, "a packet")?;
                    let record = match block.kind {
                        SIMPLE_PACKET => self.simple(body, &block)?,
                        _ => self.packet(body, &block)?,
                    };
                    *strays += u64::from(record.is_none());
                    record
                }
                STATISTICS if block.length <= LONGEST_STATISTICS => {
                    self.statistics(&self.body(source, &block, "interface statistics")?, interfaces);
                    None
                }
                SECTION => None,
                _ => {
                    source.skip(u64::from(block.length), "a block", block.at)?;
                    None
                }
            };
            if block.kind != SECTION {
                self.end(source, &block)?;
            }
            if record.is_some() {
                return Ok(record);
            }
        }
        Ok(None)
    }

    /// Reads the head of the next block; all of it, if a new section begins.
    fn block(&mut self, source: &mut Source, interfaces: usize) -> Result<Option<Block>, ReadError> {
        let at = source.at();
        let mut kind = [0; 4];
        match source.read(&mut kind)? {
            0 => return Ok(None),
            4 => {}
            n => return Err(ReadError::Cut { what: "a block", at, have: n as u64, need: 12 }),
        }
        if kind == SECTION_HEADER {
            self.header(source, at, interfaces)?;
            return Ok(Some(Block { kind: SECTION, at, length: 0 }));
        }
        let kind = self.word(&kind);
        let mut length = [0; 4];
        source.exact(&mut length, "a block", at)?;
        let length = self.word(&length);
        if length < 12 || !length.is_multiple_of(4) {
            let what = format!("a block of type 0x{kind:08x} and {length} bytes");
            return Err(ReadError::Damaged { at, what });
        }
        Ok(Some(Block { kind, at, length: length - 12 }))
    }

    /// Returns the offset in `bytes` at which blocks resume after damage: a block of a known type with the same length
    /// at both ends.
    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        let plausible = |at: &usize| {
            let head = bytes.get(*at..*at + 8)?;
            let kind = if head[..4] == SECTION_HEADER { SECTION } else { self.word(head) };
            let length = self.word(&head[4..]);
            let known = matches!(kind, SECTION | INTERFACE | PACKET | SIMPLE_PACKET | STATISTICS | ENHANCED_PACKET);
            let fits = (12..LONGEST_PACKET).contains(&length) && length.is_multiple_of(4);
            let end = bytes.get(*at + (length as usize).checked_sub(4)?..)?.get(..4)?;
            (known && fits && self.word(end) == length).then_some(())
        };
        (0..bytes.len()).find(|at| plausible(at).is_some())
    }

    fn body(&self, source: &mut Source, block: &Block, what: &'static str) -> Result<Bytes, ReadError> {
        if block.length > LONGEST_PACKET + 64 * 1024 {
            let what = format!("a block of type 0x{:08x} and {} bytes", block.kind, u64::from(block.length) + 12);
            return Err(ReadError::Damaged { at: block.at, what });
        }
        Ok(source.vec(block.length, what, block.at)?.into())
    }

    /// The length that closes a block must be the one that opened it.
    fn end(&self, source: &mut Source, block: &Block) -> Result<(), ReadError> {
        let mut end = [0; 4];
        source.exact(&mut end, "a block", block.at)?;
        let (opened, closed) = (u64::from(block.length) + 12, self.word(&end));
        if opened == u64::from(closed) {
            return Ok(());
        }
        Err(ReadError::Damaged {
            at: block.at,
            what: format!("a block of {opened} bytes that ends as one of {closed}"),
        })
    }

    fn interface(&mut self, body: &[u8], block: &Block, all: &mut Vec<CapturedAt>) -> Result<(), ReadError> {
        if body.len() < 8 {
            return Err(ReadError::Damaged { at: block.at, what: "an interface description that is too short".into() });
        }
        let mut clock = Clock { resolution: MICROSECONDS, offset: 0, snap_length: self.word(&body[4..]) };
        let mut name = None;
        for (code, value) in self.options(&body[8..]) {
            match (code, value) {
                (IF_NAME, text) => name = Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()),
                (IF_TSRESOL, [resolution]) => clock.resolution = *resolution,
                (IF_TSOFFSET, value) => clock.offset = self.double(value).map_or(0, u64::cast_signed),
                _ => {}
            }
        }
        self.clocks.push(clock);
        all.push(CapturedAt { name, link: LinkType(self.half(body)), dropped: 0 });
        Ok(())
    }

    /// An enhanced packet, or the older packet block, whose interface has 16 bits and shares a word with a drop count.
    fn packet(&self, body: Bytes, block: &Block) -> Result<Option<Record>, ReadError> {
        if body.len() < 20 {
            return Err(ReadError::Damaged { at: block.at, what: "a packet without room for its fields".into() });
        }
        let interface = if block.kind == PACKET { u32::from(self.half(&body)) } else { self.word(&body) };
        let time = u64::from(self.word(&body[4..])) << 32 | u64::from(self.word(&body[8..]));
        let (length, original_length) = (self.word(&body[12..]), self.word(&body[16..]));
        if length as usize > body.len() - 20 {
            let what = format!("a packet of {length} bytes in a block of {}", body.len() + 12);
            return Err(ReadError::Damaged { at: block.at, what });
        }
        let Some(clock) = self.clocks.get(interface as usize) else { return Ok(None) };
        Ok(Some(Record {
            at: Some(clock.instant(time)),
            interface: self.first as u32 + interface,
            original_length: original_length.max(length),
            bytes: body.slice(20..20 + length as usize),
        }))
    }

    /// A simple packet: of the first interface, without a time, cut at its snap length.
    fn simple(&self, body: Bytes, block: &Block) -> Result<Option<Record>, ReadError> {
        if body.len() < 4 {
            return Err(ReadError::Damaged { at: block.at, what: "a packet without room for its fields".into() });
        }
        let original_length = self.word(&body);
        let Some(clock) = self.clocks.first() else { return Ok(None) };
        let snap = if clock.snap_length == 0 { u32::MAX } else { clock.snap_length };
        let length = (original_length.min(snap) as usize).min(body.len() - 4);
        let bytes = body.slice(4..4 + length);
        Ok(Some(Record { at: None, interface: self.first as u32, original_length, bytes }))
    }

    /// Reads the number of packets that the capturing program lost; a later block has the newer count.
    fn statistics(&self, body: &[u8], interfaces: &mut [CapturedAt]) {
        if body.len() < 12 {
            return;
        }
        let interface = self.first.saturating_add(self.word(body) as usize);
        let Some(interface) = interfaces.get_mut(interface) else { return };
        let lost = self.options(&body[12..]).filter(|(code, _)| matches!(*code, ISB_IFDROP | ISB_OSDROP));
        interface.dropped = lost.filter_map(|(_, value)| self.double(value)).fold(0, u64::saturating_add);
    }

    /// The options in `bytes`, as far as they make sense.
    fn options<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_at_checked(4)?;
            let (code, length) = (self.half(head), usize::from(self.half(&head[2..])));
            let value = behind.get(..length)?;
            rest = behind.get(length.next_multiple_of(4)..).unwrap_or_default();
            (code != END_OF_OPTIONS).then_some((code, value))
        })
    }

    fn half(&self, bytes: &[u8]) -> u16 {
        let two = [bytes[0], bytes[1]];
        if self.big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    }

    fn word(&self, bytes: &[u8]) -> u32 {
        let four = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self.big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }

    fn double(&self, bytes: &[u8]) -> Option<u64> {
        let eight = bytes.try_into().ok()?;
        Some(if self.big { u64::from_be_bytes(eight) } else { u64::from_le_bytes(eight) })
    }
}

impl Clock {
    /// Nanoseconds since 1970; before that, and beyond what 64 bits hold, the nearest that there is.
    fn instant(self, ticks: u64) -> Instant {
        let exponent = u32::from(self.resolution & 0x7f);
        let ticks = u128::from(ticks) * 1_000_000_000;
        let nanos = if self.resolution & 0x80 != 0 {
            ticks >> exponent.min(127)
        } else {
            10_u128.checked_pow(exponent).map_or(0, |unit| ticks / unit)
        };
        let nanos = nanos.cast_signed().saturating_add(i128::from(self.offset) * 1_000_000_000);
        Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

/// The type of a section header, the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const SECTION: u32 = u32::from_be_bytes(SECTION_HEADER);
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
/// The default `if_tsresol`.
const MICROSECONDS: u8 = 6;
/// Against files that do nothing but describe interfaces.
const MOST_INTERFACES: usize = 65_536;
const LONGEST_STATISTICS: u32 = 64 * 1024;
