//! The judge: why a transfer took as long as it did.
//!
//! - [`Limit`] is the vocabulary, with one line for each limit in [`LIMITS`].
//! - [`Bands`] cut the time of a transfer into intervals, each with its [`Cause`]. They have no gaps, and add up to the
//!   transfer's time to the nanosecond.
#![forbid(unsafe_code)]

mod bands;
mod limit;

pub use bands::{Band, Bands, Cause};
pub use limit::{Entry, LIMITS, Limit};
