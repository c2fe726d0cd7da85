//! NewReno: one segment per round trip, half of what was in flight on loss.
//!
//! RFC 5681 §3.1, with appropriate byte counting (RFC 3465): every acknowledged byte earns `mss / cwnd` bytes, a
//! segment per window. Which losses belong to one recovery (RFC 6582) is decided before a controller hears of them.

use super::{CongestionControl, Entry, Flow, WindowBased};
use anabranch_units::{Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "reno",
    "one segment per round trip, half on loss; each subflow by itself",
    include_str!("reno.rs"),
    |_| CongestionControl::window_based(Reno),
)
.paper("RFC 5681, RFC 6582");

/// NewReno for every subflow by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl WindowBased for Reno {
    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        acked.scaled(flows[on].segment(), flows[on].cwnd)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, _on: usize, in_flight: Window, _flows: &[Flow]) -> Window {
        in_flight / 2.0 // RFC 5681 Eq. (4)
    }
}
