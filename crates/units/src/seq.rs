//! Sequence numbers as they stand on the wire: modulo 2³² on a subflow (RFC 9293 §3.4), modulo 2⁶⁴ at the data level
//! (RFC 8684 §3.3.1).
//!
//! Neither type is `Ord`: order modulo a power of two is not transitive. Compare with `before` and `after`, or turn the
//! number into an offset that never wraps with `offset_near`, which is what the engine does at its edge.

use std::fmt;

macro_rules! sequence {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name($raw);

        impl $name {
            /// The number as the wire carries it.
            pub const fn new(raw: $raw) -> Self {
                $name(raw)
            }

            /// The raw number.
            pub const fn get(self) -> $raw {
                self.0
            }

            /// True if this comes before `other`, on the shorter way round.
            pub const fn before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) < 0
            }

            /// True if this comes after `other`, on the shorter way round.
            pub const fn after(self, other: Self) -> bool {
                other.before(self)
            }

            /// Signed distance from `other` to this, on the shorter way round.
            pub const fn distance(self, other: Self) -> $signed {
                self.0.wrapping_sub(other.0) as $signed
            }
        }

        impl std::ops::Add<u64> for $name {
            type Output = $name;
            /// Advances, wrapping.
            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
            fn add(self, n: u64) -> $name {
                $name(self.0.wrapping_add(n as $raw))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

sequence! {
    /// A data sequence number: the position of a byte in the whole connection (RFC 8684 §3.3.1).
    Dsn, u64, i64
}

sequence! {
    /// A TCP sequence number on one subflow (RFC 9293 §3.4).
    SubflowSeq, u32, i32
}

impl Dsn {
    /// The full number whose low half is `low` and that lies nearest to `near` (RFC 8684 §3.3.1: 32-bit DSN and
    /// DATA_ACK stand for the low half of the 64-bit number).
    pub const fn from_low(low: u32, near: Dsn) -> Dsn {
        let delta = low.wrapping_sub(near.0 as u32) as i32;
        Dsn(near.0.wrapping_add(delta as i64 as u64))
    }

    /// The low half, as a 4-byte field carries it.
    pub const fn low(self) -> u32 {
        self.0 as u32
    }
}

impl SubflowSeq {
    /// Returns the offset from `base` (offset 0) that has this number and lies nearest to the offset `near`.
    /// `None` if that would lie before `base`.
    pub const fn offset_near(self, base: SubflowSeq, near: u64) -> Option<u64> {
        let expected = base.0.wrapping_add(near as u32);
        let delta = self.0.wrapping_sub(expected) as i32;
        near.checked_add_signed(delta as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_survives_the_wrap() {
        let end = SubflowSeq::new(u32::MAX);
        assert!(end.before(end + 1) && (end + 1).after(end));
        assert_eq!((end + 10).distance(end), 10);
        assert!(Dsn::new(u64::MAX).before(Dsn::new(0)));
    }

    #[test]
    fn a_short_dsn_finds_its_full_number() {
        let near = Dsn::new(0x0000_0001_ffff_fff0);
        assert_eq!(Dsn::from_low(0xffff_fff8, near), Dsn::new(0x0000_0001_ffff_fff8));
        assert_eq!(Dsn::from_low(0x0000_0004, near), Dsn::new(0x0000_0002_0000_0004));
    }

    proptest! {
        #[test]
        fn offsets_are_recovered_within_half_the_space(
            base: u32,
            offset in 0u64..1 << 40,
            skew in -0x7fff_ffffi64..0x7fff_ffff,
        ) {
            let near = offset.saturating_add_signed(skew);
            let seq = SubflowSeq::new(base) + offset;
            prop_assert_eq!(seq.offset_near(SubflowSeq::new(base), near), Some(offset));
        }
    }
}
