//! BTF, the type information of the kernel and of BPF objects (`Documentation/bpf/btf.rst`).

use crate::elf::{text_at, u16_at, u32_at};

/// Type information: types are numbered from 1.
pub(crate) struct Btf<'a> {
    bytes: &'a [u8],
    strings: &'a [u8],
    /// Beginning of each type in `bytes`; the first stands for number 1.
    types: Vec<u32>,
}

/// Kinds of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Integer,
    Struct,
    Typedef,
    Function,
    Variable,
    Section,
    Other(u8),
}

/// A member of a struct.
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    /// Number of its type.
    pub(crate) kind: u32,
    /// Distance from the beginning of the struct \[bytes\].
    pub(crate) offset: usize,
}

impl<'a> Btf<'a> {
    /// Finds where each type begins; `None` if the bytes are not BTF.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        if u16_at(bytes, 0)? != 0xeb9f {
            return None;
        }
        let header = u32_at(bytes, 4)? as usize;
        let (from, length) = (header + u32_at(bytes, 8)? as usize, u32_at(bytes, 12)? as usize);
        let (strings, text) = (header + u32_at(bytes, 16)? as usize, u32_at(bytes, 20)? as usize);
        let strings = bytes.get(strings..strings.checked_add(text)?)?;
        let (mut types, mut at) = (Vec::new(), from);
        while at < from + length {
            types.push(at as u32);
            at += 12 + trailing(u32_at(bytes, at + 4)?)?;
        }
        Some(Btf { bytes, strings, types })
    }

    fn at(&self, number: u32) -> Option<usize> {
        Some(*self.types.get((number as usize).checked_sub(1)?)? as usize)
    }

    fn info(&self, number: u32) -> Option<u32> {
        u32_at(self.bytes, self.at(number)? + 4)
    }

    /// The kind of a type.
    pub(crate) fn kind(&self, number: u32) -> Option<Kind> {
        Some(match self.info(number)? >> 24 & 0x1f {
            1 => Kind::Integer,
            4 => Kind::Struct,
            8 => Kind::Typedef,
            12 => Kind::Function,
            14 => Kind::Variable,
            15 => Kind::Section,
            other => Kind::Other(other as u8),
        })
    }

    /// The name of a type.
    pub(crate) fn name(&self, number: u32) -> Option<&'a str> {
        text_at(self.strings, u32_at(self.bytes, self.at(number)?)? as usize)
    }

    /// The text at a place of the table of strings.
    pub(crate) fn text(&self, at: usize) -> Option<&'a str> {
        text_at(self.strings, at)
    }

    /// The size of a struct \[bytes\].
    pub(crate) fn size(&self, number: u32) -> Option<usize> {
        Some(u32_at(self.bytes, self.at(number)? + 8)? as usize)
    }

    /// The number of the type with this kind and name.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<u32> {
        (1..=self.types.len() as u32)
            .find(|number| self.kind(*number) == Some(kind) && self.name(*number) == Some(name))
    }

    /// The members of a struct, in their order.
    pub(crate) fn members(&self, number: u32) -> Option<Vec<Member<'a>>> {
        let (at, info) = (self.at(number)?, self.info(number)?);
        let member = |index: usize| {
            let at = at + 12 + index * 12;
            let offset = u32_at(self.bytes, at + 8)?;
            // With the flag, the upper byte is the width of a field of bits.
            let bits = if info >> 31 == 1 { offset & 0xff_ffff } else { offset };
            let name = text_at(self.strings, u32_at(self.bytes, at)? as usize)?;
            Some(Member { name, kind: u32_at(self.bytes, at + 4)?, offset: bits as usize / 8 })
        };
        (0..(info & 0xffff) as usize).map(member).collect()
    }

    /// The types in a form that the kernel accepts: sections, variables, and functions that are defined elsewhere, are
    /// `const void` there, to which nothing refers. All numbers stay.
    pub(crate) fn for_kernel(&self) -> Option<Vec<u8>> {
        let mut types = Vec::new();
        for (index, from) in self.types.iter().enumerate() {
            let (from, info) = (*from as usize, self.info(index as u32 + 1)?);
            let length = 12 + trailing(info)?;
            let is_extern = info >> 24 & 0x1f == 12 && info & 0xffff == 2;
            match self.kind(index as u32 + 1)? {
                Kind::Section | Kind::Variable => types.extend(CONST_VOID),
                Kind::Function if is_extern => types.extend(CONST_VOID),
                _ => types.extend(self.bytes.get(from..from + length)?),
            }
        }
        let mut bytes = self.bytes.get(..24)?.to_vec();
        let length = types.len() as u32;
        for (at, value) in [(4, 24), (8, 0), (12, length), (16, length), (20, self.strings.len() as u32)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes.extend(types);
        bytes.extend(self.strings);
        Some(bytes)
    }
}

/// A nameless `const` of type 0.
const CONST_VOID: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0];

/// Bytes that follow the head of a type; `None` for a kind that is not known.
fn trailing(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    Some(match info >> 24 & 0x1f {
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * count,
        6 | 13 => 8 * count,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}
