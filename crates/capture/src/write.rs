//! Capture files in pcapng (draft-ietf-opsawg-pcapng): a section header, interface descriptions, enhanced packets.

use crate::backlog::Packet;
use crate::block::Block;
use crate::pending::PendingFile;
use anabranch_units::Duration;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Wall-clock time at which every run begins, in 2001. It is round, so that the date of a packet shows the time since
/// the beginning, and fixed, so that the same run gives the same file.
pub const EPOCH: Duration = Duration::from_secs(1_000_000_000);

/// Description of a file, in its section header.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Program that wrote it, with version.
    pub application: String,
    /// Origin of the packets.
    pub comment: String,
}

/// Interface that packets pass.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// For instance `client/wlan`.
    pub name: String,
    /// For people.
    pub description: String,
}

/// Direction in which a packet passes its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the host.
    Inbound,
    /// Out of it.
    Outbound,
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", path.display())]
pub struct WriteError {
    /// Path of the file.
    pub path: PathBuf,
    /// Error of the operating system.
    pub error: io::Error,
}

/// One capture file. It appears under its name with [`Writer::finish`]; until then it is called `NAME.part`, and is
/// removed if the writer is dropped.
pub struct Writer {
    out: PendingFile,
    path: PathBuf,
    interfaces: usize,
    block: Block,
}

impl Writer {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be created or written to.
    pub fn create(path: &Path, section: &Section, interfaces: &[Interface]) -> Result<Self, WriteError> {
        let file = PendingFile::create(path).map_err(|error| WriteError { path: path.to_owned(), error })?;
        let mut writer =
            Writer { out: file, path: path.to_owned(), interfaces: interfaces.len(), block: Block::default() };
        writer.block.begin(SECTION_HEADER).word(BYTE_ORDER).words16([1, 0]);
        writer.block.word(UNKNOWN_LENGTH).word(UNKNOWN_LENGTH);
        writer.block.option(USER_APPLICATION, text(&section.application)).option(COMMENT, text(&section.comment));
        writer.write()?;
        for Interface { name, description } in interfaces {
            writer.block.begin(INTERFACE_DESCRIPTION).words16([LINKTYPE_RAW, 0]).word(NO_SNAP_LENGTH);
            writer.block.option(NAME, text(name)).option(DESCRIPTION, text(description));
            writer.block.option(TIME_RESOLUTION, &[NANOSECONDS]);
            writer.write()?;
        }
        Ok(writer)
    }

    /// Appends a packet. Its interface counts from 0 in the order of [`Writer::create`].
    ///
    /// # Errors
    /// If the file cannot be written to; it is then of no use any more.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn packet(&mut self, packet: &Packet) -> Result<(), WriteError> {
        assert!((packet.interface as usize) < self.interfaces, "a packet passes an interface that there is");
        let time = EPOCH.as_nanos() + packet.at.as_nanos();
        let length = packet.bytes.len() as u32;
        self.block.begin(ENHANCED_PACKET).word(packet.interface).word((time >> 32) as u32).word(time as u32);
        self.block.word(length).word(length).padded(&packet.bytes);
        let flags = if packet.direction == Direction::Inbound { INBOUND } else { OUTBOUND };
        self.block.option(FLAGS, &flags.to_le_bytes());
        for comment in &packet.comments {
            self.block.option(COMMENT, text(comment));
        }
        self.write()
    }

    /// Completes the file and gives it its name, in place of any file of that name.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn finish(self) -> Result<(), WriteError> {
        self.out.commit().map_err(|error| WriteError { path: self.path, error })
    }

    fn write(&mut self) -> Result<(), WriteError> {
        let written = self.out.write_all(self.block.end());
        written.map_err(|error| WriteError { path: self.path.clone(), error })
    }
}

/// An option holds 65535 bytes; no more is written of longer texts.
fn text(text: &str) -> &[u8] {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// A multiple of four, so that padding does not add to it.
const LONGEST: usize = 65_532;

// Types of blocks (draft sections 4.1 to 4.3) and what stands in them.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Tells a reader the order of bytes.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Both halves of the length of a section that is not known when it begins.
const UNKNOWN_LENGTH: u32 = u32::MAX;
/// A packet begins with its IP header.
const LINKTYPE_RAW: u16 = 101;
/// Packets are whole, however long.
const NO_SNAP_LENGTH: u32 = 0;

// Codes of options.
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const TIME_RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;

/// `if_tsresol`: units of 10⁻⁹ seconds.
const NANOSECONDS: u8 = 9;
/// `epb_flags`, bits 0 and 1.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::Instant;
    use std::fs;

    fn packet(at: u64) -> Packet {
        Packet {
            interface: 0,
            direction: Direction::Outbound,
            at: Instant::from_nanos(at),
            bytes: vec![0x45, 1, 2, 3, 4],
            comments: vec!["lost".to_owned()],
        }
    }

    fn directory(test: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("anabranch-capture-{}-{test}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn create(path: &Path) -> Writer {
        let section = Section { application: "test 1".to_owned(), comment: "why".to_owned() };
        let interface = Interface { name: "a".to_owned(), description: "b".to_owned() };
        Writer::create(path, &section, &[interface]).unwrap()
    }

    /// Each field at its place, from the layouts of the draft's sections 4.1, 4.2 and 4.3.
    #[test]
    fn bytes_are_those_of_the_format() {
        let directory = directory("bytes");
        let path = directory.join("x.pcapng");
        let mut writer = create(&path);
        writer.packet(&packet(7)).unwrap();
        writer.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(8)), (0x0a0d_0d0a, 0x1a2b_3c4d));
        let idb = word(4) as usize;
        assert_eq!((word(idb), word(idb + 8)), (1, 101), "LINKTYPE_RAW");
        let epb = idb + word(idb + 4) as usize;
        // Options of the interface: name, description, resolution, end.
        assert_eq!(bytes[idb + 16..epb - 4], *b"\x02\0\x01\0a\0\0\0\x03\0\x01\0b\0\0\0\x09\0\x01\0\x09\0\0\0\0\0\0\0");
        let time = 1_000_000_000_000_000_007_u64;
        assert_eq!((word(epb), word(epb + 8)), (6, 0));
        assert_eq!((word(epb + 12), word(epb + 16)), ((time >> 32) as u32, time as u32));
        assert_eq!((word(epb + 20), word(epb + 24)), (5, 5));
        let options = b"\x02\0\x04\0\x02\0\0\0\x01\0\x04\0lost\0\0\0\0";
        assert_eq!(bytes[epb + 36..bytes.len() - 4], *options);
        assert_eq!(word(bytes.len() - 4) as usize, bytes.len() - epb);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_appears_when_it_is_whole_and_leaves_nothing_otherwise() {
        let directory = directory("whole");
        let path = directory.join("x.pcapng");
        let mut writer = create(&path);
        writer.packet(&packet(0)).unwrap();
        assert!(!path.exists());
        drop(writer);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        create(&path).finish().unwrap();
        assert!(path.exists());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_said_with_its_name() {
        let section = Section::default();
        let error = Writer::create(Path::new("/no/such/directory/x.pcapng"), &section, &[]).err().unwrap();
        assert!(error.to_string().starts_with("cannot write /no/such/directory/x.pcapng: "), "{error}");
    }

    #[test]
    fn a_text_too_long_for_an_option_is_cut_between_characters() {
        let long = "é".repeat(40_000);
        assert_eq!(text(&long).len(), LONGEST);
        assert_eq!(text("short"), b"short");
    }
}
