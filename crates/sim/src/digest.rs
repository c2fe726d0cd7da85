//! A running digest of everything that happens, in order.

/// Two runs with equal digests went the same way, up to one chance in 2⁶⁴ per pair of runs. Not cryptographic; a
/// multiply and a rotation per word, so that it can be on in every run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new() -> Self {
        Digest(0x243f_6a88_85a3_08d3) // The first bits of π.
    }

    /// Adds one word; the order of words matters.
    #[inline]
    pub(crate) fn add(&mut self, word: u64) {
        // Odd, so that multiplication loses nothing; 2⁶⁴ over the golden ratio.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ word).wrapping_mul(MIX).rotate_left(29);
    }

    /// The digest of what was added so far.
    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u64]) -> u64 {
        let mut digest = Digest::new();
        words.iter().for_each(|&word| digest.add(word));
        digest.value()
    }

    #[test]
    fn order_count_and_every_bit_matter() {
        assert_eq!(of(&[1, 2, 3]), of(&[1, 2, 3]));
        assert_ne!(of(&[1, 2, 3]), of(&[2, 1, 3]));
        assert_ne!(of(&[1, 2, 3]), of(&[1, 2]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        for bit in 0..64 {
            assert_ne!(of(&[7, 8]), of(&[7 ^ (1 << bit), 8]), "bit {bit}");
        }
    }
}
