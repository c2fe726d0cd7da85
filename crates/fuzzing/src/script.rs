//! Bytes read as a script.

use arbitrary::{Arbitrary, Unstructured};

/// A fuzzer's input, taken from front to back; zeros when it has ended.
pub(crate) struct Script<'a>(Unstructured<'a>);

impl<'a> Script<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Script(Unstructured::new(bytes))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Any value.
    pub fn any<T: Arbitrary<'a> + Default>(&mut self) -> T {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A number below `end`, which takes one byte.
    pub fn below(&mut self, end: u8) -> u8 {
        self.any::<u8>() % end
    }

    /// One of these.
    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.any::<u8>()) % choices.len()].clone()
    }

    /// True in one of `n` cases; what follows the end of the script is never so.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.any::<u8>() % n == n - 1
    }

    /// Up to `most` bytes.
    pub fn bytes(&mut self, most: u8) -> &'a [u8] {
        let length = usize::from(self.any::<u8>() % most.max(1)).min(self.0.len());
        self.0.bytes(length).unwrap_or_default()
    }

    /// A number that is often at an edge.
    pub fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 65_535,
            4 => 1 << self.below(64),
            5 => u64::from(self.any::<u8>()),
            6 => u64::from(self.any::<u16>()),
            _ => self.any(),
        }
    }

    /// A number near `to`, or anywhere.
    pub fn near(&mut self, to: u32) -> u32 {
        match self.below(4) {
            0 => to.wrapping_add(u32::from(self.any::<u8>())),
            1 => to.wrapping_sub(u32::from(self.any::<u8>())),
            2 => to.wrapping_add(self.number() as u32),
            _ => self.any(),
        }
    }
}
