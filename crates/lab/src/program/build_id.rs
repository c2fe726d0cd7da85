//! Build id that the linker wrote into a program: in ELF the note `NT_GNU_BUILD_ID`, in Mach-O the command `LC_UUID`.
//!
//! Linkers compute it from all that they write, code and constants included, so another program has another id, and the
//! same program linked again has the same. Reading it takes a few hundred bytes of the file. PE files have none.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

/// Longest table that is read, of headers or of notes \[bytes\]. Those of our programs have less than a kilobyte.
const LONGEST: u64 = 64 << 10;
/// Shortest id that tells builds apart \[bytes\]: what [`super::build`] shows of it.
const SHORTEST: usize = 8;

/// Segment of notes.
const PT_NOTE: u64 = 4;
/// Note of the owner `GNU`.
const NT_GNU_BUILD_ID: u64 = 3;
/// Load command with 16 bytes.
const LC_UUID: u64 = 0x1b;

/// Reads the id; `None` in a file that has none, or of a kind that is not known.
pub fn read(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let Some(head) = part(file, 0, 64)? else { return Ok(None) };
    let id = match head[..] {
        [0x7f, b'E', b'L', b'F', class @ (1 | 2), order @ (1 | 2), ..] => {
            let layout = Layout { wide: class == 2, big: order == 2 };
            layout.elf(file, &head)?
        }
        // Only the order of all processors that Mach-O is still made for.
        [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => Layout { wide: head[0] == 0xcf, big: false }.mach_o(file, &head)?,
        _ => None,
    };
    Ok(id.filter(|id| id.len() >= SHORTEST))
}

/// Width of addresses and order of bytes.
#[derive(Clone, Copy)]
struct Layout {
    wide: bool,
    big: bool,
}

impl Layout {
    /// Looks through the notes of an ELF file, which its program headers lead to.
    fn elf(self, file: &mut (impl Read + Seek), head: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let (table, size, count) = if self.wide { (0x20, 0x36, 0x38) } else { (0x1c, 0x2a, 0x2c) };
        let (table, size, count) = (self.address(head, table), self.number(head, size, 2), self.number(head, count, 2));
        let Some(headers) = part(file, table, size * count)? else { return Ok(None) };
        let (offset, length, alignment) = if self.wide { (8, 0x20, 0x30) } else { (4, 0x10, 0x1c) };
        for header in headers.chunks_exact((size as usize).max(1)) {
            if self.number(header, 0, 4) != PT_NOTE {
                continue;
            }
            let (at, length) = (self.address(header, offset), self.address(header, length));
            let Some(notes) = part(file, at, length)? else { continue };
            if let Some(id) = self.note(&notes, if self.address(header, alignment) == 8 { 8 } else { 4 }) {
                return Ok(Some(id.to_vec()));
            }
        }
        Ok(None)
    }

    /// Finds the build id among notes, whose names and contents are filled up to a multiple of `alignment`.
    fn note(self, notes: &[u8], alignment: usize) -> Option<&[u8]> {
        let mut rest = notes;
        while rest.len() >= 12 {
            let [name, length] = [0, 4].map(|at| self.number(rest, at, 4) as usize);
            let contents = (12 + name).next_multiple_of(alignment);
            let is_it = self.number(rest, 8, 4) == NT_GNU_BUILD_ID && rest.get(12..12 + name) == Some(b"GNU\0");
            if is_it {
                return rest.get(contents..contents + length);
            }
            rest = rest.get((contents + length).next_multiple_of(alignment)..)?;
        }
        None
    }

    /// Looks through the load commands of a Mach-O file.
    fn mach_o(self, file: &mut (impl Read + Seek), head: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let begin = if self.wide { 32 } else { 28 };
        let Some(commands) = part(file, begin, self.number(head, 20, 4))? else { return Ok(None) };
        let mut rest = &commands[..];
        while rest.len() >= 8 {
            let length = self.number(rest, 4, 4) as usize;
            if self.number(rest, 0, 4) == LC_UUID {
                return Ok(rest.get(8..24).map(<[u8]>::to_vec));
            }
            match rest.get(length.max(8)..) {
                Some(behind) => rest = behind,
                None => break,
            }
        }
        Ok(None)
    }

    /// Reads a number of as many bytes as an address has; 0 beyond the end.
    fn address(self, bytes: &[u8], at: usize) -> u64 {
        self.number(bytes, at, if self.wide { 8 } else { 4 })
    }

    /// Reads a number of `width` bytes; 0 beyond the end.
    fn number(self, bytes: &[u8], at: usize, width: usize) -> u64 {
        let bytes = bytes.get(at..at + width).unwrap_or_default();
        let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
        if self.big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }
}

/// Reads a part of the file; `None` if the file ends before, or the part is empty or longer than any that we expect.
fn part(file: &mut (impl Read + Seek), at: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    // Offsets are the file's own words; the highest are none that a file can be read from.
    if length == 0 || length > LONGEST || at > i64::MAX as u64 {
        return Ok(None);
    }
    let mut part = vec![0; length as usize];
    file.seek(SeekFrom::Start(at))?;
    match file.read_exact(&mut part) {
        Ok(()) => Ok(Some(part)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
