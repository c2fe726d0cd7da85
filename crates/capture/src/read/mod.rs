//! Captures of strangers: pcap and pcapng, in either byte order, gzipped or not.
//!
//! By hand rather than with a library, because a foreign file may be cut, damaged or written by a program with its own
//! ideas, and what could be read before the damage must still be there. A [`Reader`] streams: one record is in memory
//! at a time, and no length in a file makes it allocate more than the file really holds.

mod pcap;
mod pcapng;
mod source;

use crate::LinkType;
use anabranch_units::{Instant, input};
use bytes::Bytes;
use source::Source;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// One captured packet.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Record {
    /// Nanoseconds since 1970. `None` for a simple packet block of pcapng, which has no time.
    pub at: Option<Instant>,
    /// Index into [`Reader::interfaces`].
    pub interface: u32,
    /// Bytes that the packet had on its link.
    pub original_length: u32,
    /// Bytes that were captured, from the link header on.
    pub bytes: Bytes,
}

/// Interface on which packets were captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedAt {
    /// Name in the file.
    pub name: Option<String>,
    /// Link layer of its packets.
    pub link: LinkType,
    /// Packets that the capturing program says it lost here.
    pub dropped: u64,
}

/// Why a capture, or the rest of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system, or damaged compression.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No byte.
    #[error("the file is empty")]
    Empty,
    /// Something else.
    #[error("this is neither pcap nor pcapng: it begins with {}", begins(.0))]
    NotACapture(Vec<u8>),
    /// The file ends too early.
    #[error("the file ends within {what}, at byte {at}: {have} of {need} bytes are there")]
    Cut {
        /// Name of the part that is cut.
        what: &'static str,
        /// Offset of that part from the beginning of the (uncompressed) file, in bytes.
        at: u64,
        /// Bytes there are.
        have: u64,
        /// Bytes that it should have.
        need: u64,
    },
    /// A length or a field that cannot be.
    #[error("damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the damaged record, in bytes.
        at: u64,
        /// Description of the fault.
        what: String,
    },
}

fn begins(bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => format!("the text {text:?}"),
        _ => hex.join(" "),
    }
}

/// Reads a capture record by record.
pub struct Reader {
    source: Source,
    format: Format,
    interfaces: Vec<CapturedAt>,
    /// Packets of interfaces that were never described.
    strays: u64,
    damages: Damages,
    ended: bool,
}

/// Places where records could not be read, and those behind them could.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Damages {
    /// Number of damaged places.
    pub count: u64,
    /// Bytes passed over, from each damaged record on.
    pub bytes: u64,
    /// Fault of the first.
    pub first: Option<String>,
}

enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be opened, is empty, or is no capture.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(input::open(path)?)
    }

    /// Reads from anything, for instance standard input.
    ///
    /// # Errors
    /// If it is empty or no capture.
    pub fn new(input: impl Read + 'static) -> Result<Self, ReadError> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        let input: Box<dyn BufRead> = if input.fill_buf()?.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(input)))
        } else {
            Box::new(input)
        };
        let mut source = Source::new(input);
        let mut magic = [0; 4];
        match source.read(&mut magic)? {
            0 => return Err(ReadError::Empty),
            4 => {}
            n => return Err(ReadError::NotACapture(magic[..n].to_vec())),
        }
        let mut interfaces = Vec::new();
        let format = if magic == pcapng::SECTION_HEADER {
            Format::Pcapng(pcapng::Section::begin(&mut source)?)
        } else if let Some(header) = pcap::Header::read(magic, &mut source)? {
            interfaces.push(CapturedAt { name: None, link: header.link, dropped: 0 });
            Format::Pcap(header)
        } else {
            let mut bytes = magic.to_vec();
            source.some(12, &mut bytes)?;
            return Err(ReadError::NotACapture(bytes));
        };
        Ok(Reader { source, format, interfaces, strays: 0, damages: Damages::default(), ended: false })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// Once, if the rest cannot be read; the next call answers `None`. Damage behind which records go on is no error
    /// and stands in [`Reader::damages`].
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let record = loop {
            let record = match &mut self.format {
                Format::Pcap(header) => header.record(&mut self.source),
                Format::Pcapng(section) => section.record(&mut self.source, &mut self.interfaces, &mut self.strays),
            };
            match record {
                Err(ReadError::Damaged { at, what }) => {
                    if !self.go_on(at, &what)? {
                        break Err(ReadError::Damaged { at, what });
                    }
                }
                other => break other,
            }
        };
        self.ended = !matches!(record, Ok(Some(_)));
        record
    }

    /// Looks for records behind damage at byte `at`; false if there are none within reach.
    fn go_on(&mut self, at: u64, what: &str) -> Result<bool, ReadError> {
        self.ended = true;
        let mut bytes = Vec::new();
        self.source.some(REACH, &mut bytes)?;
        let found = match &self.format {
            Format::Pcap(header) => header.find(&bytes),
            Format::Pcapng(section) => section.find(&bytes),
        };
        let Some(found) = found.filter(|_| self.damages.count < MOST_DAMAGES) else {
            return Ok(false);
        };
        self.ended = false;
        self.source.give_back(bytes.split_off(found));
        self.damages.count += 1;
        self.damages.bytes += self.source.at() - at;
        self.damages.first.get_or_insert_with(|| format!("at byte {at}: {what}"));
        Ok(true)
    }

    /// Damage that reading skipped.
    pub fn damages(&self) -> &Damages {
        &self.damages
    }

    /// The interfaces described so far, those of all sections in the order of the file.
    pub fn interfaces(&self) -> &[CapturedAt] {
        &self.interfaces
    }

    /// Packets skipped because their interface was never described.
    pub fn strays(&self) -> u64 {
        self.strays
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 256 * 1024;
/// No packet is longer: the largest snap length that `tcpdump` knows is 256 KiB, the largest super-packet of Linux 512
/// KiB.
const LONGEST_PACKET: u32 = 16 << 20;
/// Damage is looked past as far as this.
const REACH: u64 = 1 << 20;
/// Each costs a search; a file with more is damage throughout.
const MOST_DAMAGES: u64 = 100;
