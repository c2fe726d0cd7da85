//! Data of a segment.

use bytes::Bytes;
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

/// Bytes that a segment carries: a part of a buffer that others share, never copied.
///
/// In distinction from [`Bytes`] it knows the buffer that it is a part of, so two parts that lie side by side in one
/// buffer can become one again ([`Payload::join`]): what a sender cut into segments is one piece at a receiver that
/// shares its memory, as in a simulation. A part keeps its whole buffer alive.
///
/// ```
/// use anabranch_wire::Payload;
///
/// let stream = Payload::from(vec![1, 2, 3, 4, 5]);
/// let (mut first, second) = (stream.slice(..2), stream.slice(2..4));
/// assert!(first.join(&second));
/// assert_eq!(&first[..], [1, 2, 3, 4]);
/// assert!(!first.join(&Payload::from(vec![5])), "of another buffer");
/// ```
#[derive(Clone, Default)]
pub struct Payload {
    /// No longer than [`Payload::LONGEST`]. One pointer, so that what waits in flight or for its turn is small.
    buffer: Option<Arc<Bytes>>,
    start: u32,
    length: u32,
}

impl Payload {
    /// Most bytes that it can count, just below 4 GiB.
    pub const LONGEST: usize = u32::MAX as usize;

    /// No bytes.
    pub const fn new() -> Self {
        Payload { buffer: None, start: 0, length: 0 }
    }

    /// Number of bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns true if there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns a part of it.
    ///
    /// # Panics
    /// If the range is not in it, as slices do.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let (from, to) = self.bounds(range);
        Payload { buffer: self.buffer.clone(), start: self.start + from, length: to - from }
    }

    /// Takes the first `length` bytes off and returns them.
    ///
    /// # Panics
    /// If there are not as many, as slices do.
    pub fn split_to(&mut self, length: usize) -> Self {
        let first = self.slice(..length);
        self.advance(length);
        first
    }

    /// Takes the first `length` bytes off.
    ///
    /// # Panics
    /// If there are not as many, as slices do.
    #[inline]
    pub fn advance(&mut self, length: usize) {
        let (from, _) = self.bounds(length..);
        self.start += from;
        self.length -= from;
    }

    /// Keeps the first `length` bytes; all, if there are no more.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(u32::try_from(length).unwrap_or(u32::MAX));
    }

    /// Appends `next` if it lies behind this one in the same buffer; returns false and changes nothing otherwise.
    #[inline]
    pub fn join(&mut self, next: &Payload) -> bool {
        let same = match (&self.buffer, &next.buffer) {
            (Some(buffer), Some(other)) => Arc::ptr_eq(buffer, other),
            (None, None) => true,
            _ => false,
        };
        let joins = same && self.start + self.length == next.start;
        if joins {
            self.length += next.length;
        }
        joins
    }

    /// Range within this, as offsets.
    #[inline]
    fn bounds(&self, range: impl RangeBounds<usize>) -> (u32, u32) {
        let from = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
        };
        let to = match range.end_bound() {
            Bound::Unbounded => self.len(),
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(to) => *to,
        };
        assert!(from <= to && to <= self.len(), "{from}..{to} is in a payload of {} bytes", self.length);
        (from as u32, to as u32)
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[self.start as usize..][..self.length as usize])
    }
}

impl AsRef<[u8]> for Payload {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<'a> IntoIterator for &'a Payload {
    type Item = &'a u8;
    type IntoIter = std::slice::Iter<'a, u8>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The whole of a buffer, cut off behind [`Payload::LONGEST`] bytes: no packet is as long.
impl From<Bytes> for Payload {
    #[inline]
    fn from(mut buffer: Bytes) -> Self {
        buffer.truncate(Payload::LONGEST);
        let length = buffer.len() as u32;
        Payload { buffer: (length > 0).then(|| Arc::new(buffer)), start: 0, length }
    }
}

impl From<Payload> for Bytes {
    #[inline]
    fn from(payload: Payload) -> Bytes {
        let Payload { buffer, start, length } = payload;
        let part = start as usize..start as usize + length as usize;
        buffer.map_or_else(Bytes::new, |buffer| buffer.slice(part))
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Payload::from(Bytes::from(bytes))
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Self {
        Payload::from(Bytes::from_static(bytes))
    }
}

impl<const N: usize> From<&'static [u8; N]> for Payload {
    fn from(bytes: &'static [u8; N]) -> Self {
        Payload::from(Bytes::from_static(bytes))
    }
}

/// Compares the bytes, wherever they lie.
impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Payload {}

impl PartialEq<[u8]> for Payload {
    fn eq(&self, other: &[u8]) -> bool {
        self[..] == *other
    }
}

impl PartialEq<Bytes> for Payload {
    fn eq(&self, other: &Bytes) -> bool {
        self[..] == other[..]
    }
}

/// Shows the bytes as [`Bytes`] does.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes::from(self.clone()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_neighbours_of_one_buffer_join() {
        let buffer = Payload::from(b"abcdefgh");
        let part = |at, length| buffer.slice(at..at + length);
        let mut first = part(0, 3);
        assert!(!first.join(&part(4, 2)) && !first.join(&part(0, 3)) && !first.join(&part(2, 3)));
        assert!(!first.join(&Payload::from(b"def")) && first == b"abc"[..]);
        let other = Payload::from(b"abcdefgh").slice(3..5);
        assert!(!first.join(&other), "the same place in another buffer");
        assert!(first.join(&part(3, 2)) && first == b"abcde"[..]);
        assert!(first.split_to(4).join(&first) && first == b"e"[..]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The same operations on bytes.
        #[test]
        fn agrees_with_bytes(
            data in prop::collection::vec(any::<u8>(), 0..200),
            ops in prop::collection::vec((0u8..4, 0usize..200, 0usize..200), 0..20),
        ) {
            let (mut payload, mut model) = (Payload::from(data.clone()), Bytes::from(data));
            for (op, a, b) in ops {
                let (a, b) = (a.min(model.len()), b.min(model.len()));
                match op {
                    0 => (payload, model) = (payload.slice(a.min(b)..a.max(b)), model.slice(a.min(b)..a.max(b))),
                    1 => {
                        let (taken, expected) = (payload.split_to(a), model.split_to(a));
                        prop_assert_eq!(&taken, &expected);
                        let mut whole = taken;
                        prop_assert!(whole.join(&payload) && whole.len() == a + model.len());
                    }
                    2 => (payload.truncate(a), model.truncate(a)).1,
                    _ => {
                        payload = Payload::from(model.slice(a.min(b)..a.max(b)));
                        model = model.slice(a.min(b)..a.max(b));
                    }
                }
                prop_assert_eq!(&payload, &model);
                prop_assert_eq!(Bytes::from(payload.clone()), &model);
                prop_assert_eq!((payload.len(), payload.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }
}
