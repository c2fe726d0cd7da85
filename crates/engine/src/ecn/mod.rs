//! Explicit congestion notification: what two ends agree on, and what each says of the marks of the other's packets
//! (RFC 3168, RFC 9768).
//!
//! Follows Linux where the RFCs leave a choice: a SYN is not ECN-capable itself; with accurate feedback all packets of
//! an open subflow are ECN-capable, with the classic one new data alone.

mod counters;
mod marks;
mod rule;

pub(crate) use marks::{Marks, Told};
pub use rule::{EcnRule, Feedback};
