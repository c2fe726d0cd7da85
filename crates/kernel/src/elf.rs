//! Sections and relocations of a little-endian 64-bit ELF file, as clang writes BPF objects.
//!
//! `elf(5)`. Only our own objects are read, so a file that is not well formed is a `None`, never a guess.

/// An ELF file.
pub(crate) struct Elf<'a> {
    sections: Vec<Section<'a>>,
}

/// A section with its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
    kind: u32,
    link: usize,
    info: usize,
}

impl<'a> Elf<'a> {
    /// Reads the table of sections.
    pub(crate) fn parse(file: &'a [u8]) -> Option<Self> {
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let table = u64_at(file, 0x28)? as usize;
        let (count, names) = (u16_at(file, 0x3c)? as usize, u16_at(file, 0x3e)? as usize);
        let header = |index: usize| file.get(table + index * 64..)?.get(..64);
        let bytes = |header: &[u8]| {
            let (from, size) = (u64_at(header, 24)? as usize, u64_at(header, 32)? as usize);
            // SHT_NOBITS has none.
            if u32_at(header, 4)? == 8 { Some(&[][..]) } else { file.get(from..from.checked_add(size)?) }
        };
        let names = bytes(header(names)?)?;
        let section = |index| {
            let header = header(index)?;
            Some(Section {
                name: text_at(names, u32_at(header, 0)? as usize)?,
                bytes: bytes(header)?,
                kind: u32_at(header, 4)?,
                link: u32_at(header, 40)? as usize,
                info: u32_at(header, 44)? as usize,
            })
        };
        Some(Elf { sections: (0..count).map(section).collect::<Option<_>>()? })
    }

    /// All sections.
    pub(crate) fn sections(&self) -> impl Iterator<Item = Section<'a>> + '_ {
        self.sections.iter().copied()
    }

    /// The bytes of the section `name`.
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections().find(|section| section.name == name).map(|section| section.bytes)
    }

    /// Places in the section `name` that refer to a symbol, with the symbol's name.
    pub(crate) fn references(&self, name: &str) -> Option<Vec<(usize, &'a str)>> {
        let at = self.sections.iter().position(|section| section.name == name)?;
        let Some(table) = self.sections.iter().find(|section| section.kind == SHT_REL && section.info == at) else {
            return Some(Vec::new());
        };
        let symbols = self.sections.get(table.link)?;
        let names = self.sections.get(symbols.link)?.bytes;
        let reference = |record: &[u8]| {
            let symbol = (u64_at(record, 8)? >> 32) as usize;
            let entry = symbols.bytes.get(symbol * 24..)?;
            Some((u64_at(record, 0)? as usize, text_at(names, u32_at(entry, 0)? as usize)?))
        };
        table.bytes.chunks_exact(16).map(reference).collect()
    }
}

/// A table of relocations without addends.
const SHT_REL: u32 = 9;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The NUL-terminated text at `at`.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == 0)?]).ok()
}
