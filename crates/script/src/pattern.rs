//! Test payload: each byte follows from its place in the stream, so that every byte delivered can be checked.

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

/// The byte of `side`'s stream with this relative data sequence number (1 is the first).
fn byte(side: Side, dsn: i64) -> u8 {
    // Any mixing will do that tells neighbours, 256s and 65536s apart.
    let mixed = (dsn as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    mixed as u8 ^ if side == Side::Host { 0 } else { 0xff }
}

/// The bytes with relative data sequence numbers from `start` on.
pub(crate) fn pattern(side: Side, start: i64, length: usize) -> Bytes {
    (0..length as i64).map(|i| byte(side, start.wrapping_add(i))).collect()
}

/// Returns true if `bytes` equal the stream of `side` from `start` on.
pub(crate) fn matches(side: Side, start: i64, bytes: &[u8]) -> bool {
    bytes.iter().zip(0..).all(|(b, i)| *b == byte(side, start.wrapping_add(i)))
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
    }
}
