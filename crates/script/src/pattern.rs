//! Test payload: both sides' streams are cut from one pattern ([`anabranch_wire::pattern`]) at different places, so
//! that every byte delivered can be checked.

use anabranch_wire::pattern;
use bytes::Bytes;

/// Writer of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Host,
    Peer,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Host => Side::Peer,
            Side::Peer => Side::Host,
        }
    }
}

/// Place in the pattern of the byte of `side`'s stream with this relative data sequence number (1 is the first).
fn place(side: Side, dsn: i64) -> u64 {
    let begin = if side == Side::Host { 0 } else { 314_159 };
    // Negative numbers lie below 2^63.
    (dsn as u64).wrapping_add(1 << 63).wrapping_add(begin)
}

/// The bytes with relative data sequence numbers from `start` on.
pub(crate) fn pattern(side: Side, start: i64, length: usize) -> Bytes {
    pattern::whole(place(side, start), length)
}

/// Returns true if `bytes` equal the stream of `side` from `start` on.
pub(crate) fn matches(side: Side, start: i64, bytes: &[u8]) -> bool {
    pattern::matches(place(side, start), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_shows() {
        let bytes = pattern(Side::Peer, 1, 100);
        assert!(matches(Side::Peer, 1, &bytes));
        for shift in [1, 2, 251, 256, 1000, 1460, 65_536] {
            assert!(!matches(Side::Peer, 1 + shift, &bytes), "{shift}");
        }
        assert!(!matches(Side::Host, 1, &bytes));
        assert!(matches(Side::Host, 1, &pattern(Side::Host, -9, 20)[10..]), "before the first byte");
    }
}
