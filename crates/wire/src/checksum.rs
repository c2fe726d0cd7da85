//! The Internet checksum (RFC 1071) and the DSS checksum on top of it (RFC 8684 §3.3.1).

use anabranch_units::Dsn;

/// Ones-complement sum of 16-bit words over bytes that come in pieces of any length.
///
/// A piece may end in the middle of a word; the next one goes on there. Sums run over 32-bit lanes in the machine's own
/// byte order, which RFC 1071 §2 (B) permits as long as the result is swapped back, so that the loop vectorises.
#[derive(Clone, Copy, Default, Debug)]
pub struct Checksum {
    /// Lane sums in native byte order, folded to 32 bits after each piece, so that it cannot overflow.
    sum: u64,
    /// True if an odd number of bytes has been added: the next byte is the low half of a word.
    odd: bool,
}

impl Checksum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Checksum { sum: 0, odd: false }
    }

    /// Adds a piece.
    #[inline]
    pub fn add(&mut self, piece: &[u8]) {
        let sum = lanes(piece);
        // A piece that begins inside a word counts each byte with the other's weight: its sum, byte-swapped.
        let sum = if self.odd { u64::from(fold(sum).swap_bytes()) } else { sum };
        self.sum = halve(self.sum) + halve(sum);
        self.odd ^= piece.len() % 2 == 1;
    }

    /// Adds one word, in host order.
    #[inline]
    pub fn add_u16(&mut self, word: u16) {
        self.add_whole(u64::from(word.to_be()), word.to_be_bytes());
    }

    /// Adds two words, in host order.
    #[inline]
    pub fn add_u32(&mut self, words: u32) {
        self.add_whole(u64::from(words.to_be()), words.to_be_bytes());
    }

    /// Adds four words, in host order.
    #[inline]
    pub fn add_u64(&mut self, words: u64) {
        self.add_whole(halve(words.to_be()), words.to_be_bytes());
    }

    #[inline]
    fn add_whole<const N: usize>(&mut self, native: u64, bytes: [u8; N]) {
        if self.odd {
            self.add(&bytes);
        } else {
            self.sum = halve(self.sum) + native;
        }
    }

    /// The ones-complement sum, in host order: 0xffff over data that includes its own good checksum.
    #[inline]
    pub fn sum(self) -> u16 {
        u16::from_be(fold(self.sum))
    }

    /// Returns the value of the checksum field, in host order: the complement of the sum.
    #[inline]
    pub fn value(self) -> u16 {
        !self.sum()
    }
}

/// The DSS checksum (RFC 8684 §3.3.1) of a mapping: its pseudo-header (data sequence number always 64 bits, subflow
/// sequence number relative to the initial one, length, zero) and the mapped bytes, which may lie in pieces of any
/// length.
///
/// A DATA_FIN counts in `length` but has no byte (a lone one: `subflow_seq` 0, `length` 1, no pieces). On reception the
/// mapping is good if this equals the checksum it carries.
pub fn dss_checksum<'a>(dsn: Dsn, subflow_seq: u32, length: u16, pieces: impl IntoIterator<Item = &'a [u8]>) -> u16 {
    let mut checksum = Checksum::new();
    checksum.add_u64(dsn.get());
    checksum.add_u32(subflow_seq);
    checksum.add_u16(length);
    pieces.into_iter().for_each(|piece| checksum.add(piece));
    checksum.value()
}

/// The sum of `bytes` as native 32-bit lanes, a last incomplete word filled with zero.
#[inline]
fn lanes(bytes: &[u8]) -> u64 {
    let mut sums = [0u64; LANES];
    let (blocks, rest) = bytes.as_chunks::<{ 4 * LANES }>();
    // Plain indices: this must be quick in builds that inline little as well.
    for block in blocks {
        #[allow(clippy::needless_range_loop)]
        for lane in 0..LANES {
            let at = 4 * lane;
            sums[lane] += u64::from(u32::from_ne_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]));
        }
    }
    let mut sum = sums.iter().sum::<u64>();
    let (words, tail) = rest.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    sum + u64::from(u32::from_ne_bytes(last))
}

/// Carries added back once: below 2³³, congruent modulo 2¹⁶ - 1.
#[inline]
const fn halve(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// All carries added back.
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = halve(halve(sum));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// Lanes summed side by side: two or more vector registers on every machine in use.
const LANES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §3: 00 01 f2 03 f4 f5 f6 f7 sums to ddf2.
    #[test]
    fn worked_example_of_rfc_1071() {
        let mut checksum = Checksum::new();
        checksum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(checksum.sum(), 0xddf2);
        assert_eq!(checksum.value(), 0x220d);
    }

    /// A lone DATA_FIN sums its pseudo-header only: ...0001 + 0 + 1 + 0.
    #[test]
    fn a_lone_data_fin_sums_its_pseudo_header() {
        assert_eq!(dss_checksum(Dsn::new(0x0001_0002_0003_0004), 0, 1, []), !0x000b);
    }

    /// One word at a time, as RFC 1071 defines it.
    fn slowly(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_sum_like_one(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8),
        ) {
            let mut checksum = Checksum::new();
            pieces.iter().for_each(|piece| checksum.add(piece));
            prop_assert_eq!(checksum.sum(), slowly(&pieces.concat()));
        }

        #[test]
        fn words_sum_like_their_bytes(lead in prop::collection::vec(any::<u8>(), 0..2), a: u16, b: u32, c: u64) {
            let mut words = Checksum::new();
            words.add(&lead);
            words.add_u16(a);
            words.add_u32(b);
            words.add_u64(c);
            let bytes = [&lead[..], &a.to_be_bytes(), &b.to_be_bytes(), &c.to_be_bytes()].concat();
            prop_assert_eq!(words.sum(), slowly(&bytes));
        }
    }

    #[test]
    fn all_ones_do_not_overflow() {
        let ones = vec![0xff; 1 << 20];
        let mut checksum = Checksum::new();
        (0..64).for_each(|_| checksum.add(&ones));
        assert_eq!(checksum.sum(), 0xffff);
    }
}
