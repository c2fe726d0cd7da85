//! The AccECN option (RFC 9768 §3.2.3): counters of payload bytes by the ECN field that they came with.

use crate::{Options, UnknownOption};
use anabranch_units::Ecn;

/// Kinds of the option, each with the order of its fields. Fields may be left out from the end.
const ORDERS: [(u8, [Ecn; 3]); 2] = [(172, [Ecn::Ect0, Ecn::Ce, Ecn::Ect1]), (174, [Ecn::Ect1, Ecn::Ce, Ecn::Ect0])];

/// Bytes of a field.
const FIELD: usize = 3;

/// A field says this many of the lowest bits of its counter.
pub const BYTE_COUNTER_BITS: u32 = 24;

impl UnknownOption {
    /// True if it is an AccECN option.
    pub fn counts_bytes(&self) -> bool {
        ORDERS.iter().any(|(kind, _)| *kind == self.kind)
    }
}

impl Options {
    /// Bytes that an AccECN option takes with so many fields, padding included.
    pub const fn byte_counters_length(fields: usize) -> u64 {
        (2 + FIELD * fields).next_multiple_of(4) as u64
    }

    /// Fields of an AccECN option in the order that begins with `first`, which is ECT(0) unless it is ECT(1).
    pub fn byte_counters_order(first: Ecn) -> [Ecn; 3] {
        ORDERS[usize::from(first == Ecn::Ect1)].1
    }

    /// Adds an AccECN option with up to three counters, in the order that begins with `first`.
    pub fn push_byte_counters(&mut self, first: Ecn, counters: impl IntoIterator<Item = u64>) {
        let kind = ORDERS[usize::from(first == Ecn::Ect1)].0;
        let bytes = |counter: u64| counter.to_be_bytes().into_iter().skip(8 - FIELD);
        let data = counters.into_iter().take(3).flat_map(bytes).collect();
        self.foreign_mut().unknown.push(UnknownOption { kind, data });
    }

    /// The counters of the AccECN option with what they count, in its order; bytes that fill no field count as padding.
    pub fn byte_counters(&self) -> Option<impl Iterator<Item = (Ecn, u32)>> {
        let found = self.unknown().iter().find_map(|option| {
            let (_, order) = ORDERS.iter().find(|(kind, _)| *kind == option.kind)?;
            Some((order, &option.data))
        });
        let (order, data) = found?;
        let fields = data.as_chunks::<FIELD>().0.iter().map(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c]));
        Some(order.iter().copied().zip(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768 Figure 4 and Table 5.
    #[test]
    fn the_kind_says_the_order_and_the_length_which_fields_are_there() {
        let mut options = Options::default();
        assert!(options.byte_counters().is_none());
        options.push_byte_counters(Ecn::Ect1, [0x1_0203_0405, 7]);
        assert_eq!(options.unknown(), [UnknownOption { kind: 174, data: vec![3, 4, 5, 0, 0, 7] }]);
        let read = |options: &Options| options.byte_counters().into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(read(&options), [(Ecn::Ect1, 0x03_0405), (Ecn::Ce, 7)]);
        assert_eq!(options.wire_length(), Options::byte_counters_length(2));

        for (length, fields) in [(0, 0), (2, 0), (3, 1), (8, 2), (9, 3), (12, 3)] {
            let mut options = Options::default();
            options.push_unknown(172, &vec![1; length]);
            let expected = [(Ecn::Ect0, 0x01_0101), (Ecn::Ce, 0x01_0101), (Ecn::Ect1, 0x01_0101)];
            assert_eq!(read(&options), expected[..fields], "{length} bytes");
        }
        assert_eq!([0, 1, 2, 3].map(Options::byte_counters_length), [4, 8, 8, 12]);
    }
}
