//! The pattern of all test payload, in the simulator and on the wire.
//!
//! Byte `n` of a stream is byte `n` modulo the period of the pattern, so a receiver can check its bytes without knowing
//! the sender. Payload is a slice of one static buffer: it is never copied, and comparing addresses suffices where it
//! arrives as it was written.

use bytes::{Bytes, BytesMut};
use std::sync::LazyLock;

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(generate);

/// The stream from `offset` on: up to `length` bytes, fewer where the pattern begins anew, never none unless `length`
/// is 0.
#[inline]
pub fn slice(offset: u64, length: u64) -> Bytes {
    let begin = phase(offset);
    let end = PERIOD.min(begin.saturating_add(usize::try_from(length).unwrap_or(PERIOD)));
    Bytes::from_static(&PATTERN[begin..end])
}

/// The stream from `offset` on, all `length` bytes; copied only where the pattern begins anew within them.
pub fn whole(offset: u64, length: usize) -> Bytes {
    let first = slice(offset, length as u64);
    if first.len() == length {
        return first;
    }
    let mut bytes = BytesMut::with_capacity(length);
    bytes.extend_from_slice(&first);
    while bytes.len() < length {
        bytes.extend_from_slice(&slice(0, (length - bytes.len()) as u64));
    }
    bytes.freeze()
}

/// Returns true if `data` equals the stream from `offset` on.
#[inline]
pub fn matches(offset: u64, data: &[u8]) -> bool {
    let begin = phase(offset);
    let whole = begin + data.len() <= PERIOD;
    if whole && std::ptr::eq(data.as_ptr(), PATTERN[begin..].as_ptr()) {
        return true;
    }
    compare(begin, data)
}

/// The slow way, for data that was copied or that spans the end of the pattern.
#[cold]
fn compare(mut begin: usize, mut data: &[u8]) -> bool {
    while !data.is_empty() {
        let length = data.len().min(PERIOD - begin);
        let (head, tail) = data.split_at(length);
        if head != &PATTERN[begin..begin + length] {
            return false;
        }
        data = tail;
        begin = 0;
    }
    true
}

/// Counts the bytes of `data` that differ from the stream from `offset` on.
pub fn differences(offset: u64, data: &[u8]) -> u64 {
    let differs = |(n, byte): &(u64, &u8)| PATTERN[phase(offset + n)] != **byte;
    (0..).zip(data).filter(differs).count() as u64
}

#[inline]
fn phase(offset: u64) -> usize {
    (offset % PERIOD as u64) as usize
}

fn generate() -> Vec<u8> {
    // Knuth's MMIX generator; its upper bits show no short period. Letters only: among bytes of all values Wireshark's
    // heuristics find the beginnings of protocols.
    let mut state = 1u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b'a' + (((state >> 56) * 26) >> 8) as u8
    };
    (0..PERIOD).map(step).collect()
}

/// The largest prime below 2²⁰: long, so that few segments span its end, and prime, so that no buffer size or segment
/// size divides it and hides a shift.
const PERIOD: usize = 1_048_573;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_matches_itself_and_nothing_else() {
        let far = PERIOD as u64 - 10;
        let mut stream = whole(far, PERIOD + 50).to_vec();
        assert_eq!(stream[..10], slice(far, 50)[..]);
        assert!(matches(far, &stream), "copied, across the end of the pattern");
        assert!(!matches(far + 1, &stream));
        assert_eq!(differences(far, &stream), 0);
        stream[30] ^= 1;
        assert!(!matches(far, &stream));
        assert_eq!(differences(far, &stream), 1);
    }

    #[test]
    fn a_slice_in_the_wrong_place_is_found_out() {
        let data = slice(1000, 1400);
        assert!(matches(1000, &data));
        assert!(matches(1000 + PERIOD as u64, &data));
        for wrong in [0, 999, 1001, 2400, 66_536] {
            assert!(!matches(wrong, &data));
        }
    }
}
