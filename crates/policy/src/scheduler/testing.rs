//! Views to try a scheduler on by hand: segments of 1,000 bytes, windows in segments, times in milliseconds.

use crate::{SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};

pub const FAST: SubflowId = SubflowId(0);
pub const SLOW: SubflowId = SubflowId(1);

/// `n` segments.
pub fn segments(n: u64) -> Bytes {
    Bytes::new(1000 * n)
}

/// `ms` milliseconds after the beginning.
pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A subflow before its first loss.
pub fn subflow(id: SubflowId, srtt_ms: u64, cwnd: u64, in_flight: u64) -> SubflowView {
    let srtt = Duration::from_millis(srtt_ms);
    SubflowView { in_flight: segments(in_flight), ..SubflowView::steady(id, segments(1), srtt, segments(cwnd)) }
}

/// `unsent` segments wait, and the peer's window does not bind.
pub fn view(subflows: &[SubflowView], unsent: u64) -> View<'_> {
    View {
        subflows,
        unsent: segments(unsent),
        sendable: segments(unsent),
        window: segments(1_000_000),
        buffer: segments(1_000_000),
        data_una: Dsn::new(1),
        unsent_from: Dsn::new(1),
    }
}
