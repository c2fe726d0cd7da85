//! Changes to a link while it runs.

use crate::{LossModel, Trace};
use anabranch_units::{Duration, Rate};
use std::sync::Arc;

/// A change to one link at one instant; see [`Network::apply`](crate::Network::apply).
///
/// `Down` and `Blackhole` are the two ways in which a path dies. `Down` is a cable pulled out: the hosts may learn of
/// it ([`Network::has_carrier`](crate::Network::has_carrier)), and everything queued, in flight or offered is dropped
/// until `Up`. `Blackhole` is a router that forwards nowhere: the link keeps its pace, the queue drains, and whatever
/// leaves the queue from then on never arrives, until `Restore`; what was already in flight still does. The two are
/// independent.
#[derive(Clone, Debug)]
pub enum Change {
    /// Serve at this rate from now on, in place of the previous rate or trace. The packet in service keeps the bits it
    /// has sent and goes on at the new rate; at rate zero everything waits.
    Rate(Rate),
    /// Serve by this trace from now on, at the place that it has reached since the beginning of the run.
    Trace(Arc<Trace>),
    /// The propagation delay of packets that leave the queue from now on. On a link that keeps order, packets after a
    /// step down wait for those before it.
    Delay(Duration),
    /// The jitter of packets offered from now on.
    Jitter(Duration),
    /// The loss of packets offered from now on.
    Loss(LossModel),
    /// Lose the carrier: drop everything inside and everything offered, counted under `down`.
    Down,
    /// Regain the carrier, with an empty queue.
    Up,
    /// Swallow what leaves the queue, counted under `blackhole`; no host sees more than silence.
    Blackhole,
    /// End the black hole, and regain the carrier if it is gone.
    Restore,
}
