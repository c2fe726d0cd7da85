//! Limits that representations set: no configuration goes beyond them.

use anabranch_units::Bytes;

/// Most subflows a connection can have: each has a bit in the log of sent data.
pub(crate) const MAX_SUBFLOWS: usize = 16;

/// Largest buffer: sums of a few of them and of offsets fit 64 bits.
pub(crate) const MAX_BUFFER: Bytes = Bytes::new(1 << 40);
