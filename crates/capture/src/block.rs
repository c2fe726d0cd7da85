//! Block of a pcapng file under construction, little-endian (draft-ietf-opsawg-pcapng, section 3.1).

/// One block. Its memory serves for the next.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    has_options: bool,
}

/// Place of the block's length, behind its type.
const LENGTH: usize = 4;
/// `opt_endofopt`: code and length zero.
const END_OF_OPTIONS: u32 = 0;

impl Block {
    /// Begins a block of this type.
    pub(crate) fn begin(&mut self, kind: u32) -> &mut Self {
        self.bytes.clear();
        self.has_options = false;
        // The length stands at both ends and is known at the end.
        self.word(kind).word(0)
    }

    /// Appends 32 bits.
    pub(crate) fn word(&mut self, word: u32) -> &mut Self {
        self.bytes.extend(word.to_le_bytes());
        self
    }

    /// Appends twice 16 bits.
    pub(crate) fn words16(&mut self, words: [u16; 2]) -> &mut Self {
        words.iter().for_each(|word| self.bytes.extend(word.to_le_bytes()));
        self
    }

    /// Appends bytes, and zeros up to a multiple of four.
    pub(crate) fn padded(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an option (section 3.5) of at most 65,535 bytes.
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        self.has_options = true;
        let length = value.len().try_into().expect("an option has at most 65,535 bytes");
        self.words16([code, length]).padded(value)
    }

    /// Completes the block and returns its bytes.
    pub(crate) fn end(&mut self) -> &[u8] {
        if self.has_options {
            self.word(END_OF_OPTIONS);
        }
        let length = self.bytes.len() as u32 + 4;
        self.bytes[LENGTH..LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        self.word(length);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections 3.1 and 3.5 of the draft, byte by byte; the second block shows nothing of the first.
    #[test]
    fn lengths_and_padding_are_those_of_the_format() {
        let mut block = Block::default();
        let first = block.begin(6).word(7).padded(b"abcde").option(1, b"x").end();
        let wanted = b"\x06\0\0\0\x24\0\0\0\x07\0\0\0abcde\0\0\0\x01\0\x01\0x\0\0\0\0\0\0\0\x24\0\0\0";
        assert_eq!(first, &wanted[..]);
        assert_eq!(block.begin(5).end(), b"\x05\0\0\0\x0c\0\0\0\x0c\0\0\0");
    }
}
