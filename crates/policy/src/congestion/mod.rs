//! Congestion control: limits the bytes in flight on each subflow; may be coupled.
//!
//! [`Controller`] holds the part common to all algorithms: slow start, one reduction per recovery, RTO, idle restart,
//! the cwnd-limited rule, penalisation. An algorithm defines how a window grows in congestion avoidance and how far it
//! falls on loss. A delay-based one may set window and threshold at an ACK, within the same rules. One that models the
//! path (BBR) is of another kind ([`ModelBased`]) and sets its window and its pacing rate itself.

mod ack;
#[cfg(test)]
mod conformance;
mod controller;
mod coupled;
mod flow;
mod held_back;
mod hystart;
mod hystart_plus_plus;
mod kinds;
mod lisa;
mod marks;
mod max_filter;
mod per_flow;
mod prr;
mod rules;
mod shared_bottleneck;

pub use ack::{Ack, Flight, LostSegment, Model, RateSample, WindowUpdate};
pub use balia::Balia;
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use controller::Controller;
pub use cubic::Cubic;
pub use cubic_kernel::CubicKernel;
pub use cubic_sbd::CubicSbd;
pub use dctcp::Dctcp;
pub use flow::Flow;
pub use hystart::HyStart;
pub use kinds::{CongestionControl, ModelBased};
pub use lia::Lia;
pub use lia_kernel::LiaKernel;
pub use mveno::MVeno;
pub use olia::Olia;
pub use per_flow::{FlowKey, PerFlow};
pub use prague::Prague;
pub use reno::Reno;
pub use rules::{InitialWindow, LossResponse, Rules};
pub use vegas::Vegas;
pub use veno::Veno;
pub use wvegas::WVegas;

use crate::registry::{self, Built, Kind, policies};
use anabranch_units::{Ecn, Instant, Window};

/// Says how windows grow and fall. `on` is an index into `flows`, for the length of a call.
pub trait WindowBased: Send {
    /// Every ACK that delivers something, before it is counted, in recovery as well. An answer takes the place of slow
    /// start and congestion avoidance for this ACK; it is void in recovery, and may not raise a window that was no
    /// limit.
    fn on_ack(&mut self, _now: Instant, _on: usize, _ack: &Ack, _flows: &[Flow]) -> Option<WindowUpdate> {
        None
    }
    /// Growth, may be negative, that `acked` bytes earn flow `on` in congestion avoidance.
    fn avoidance(&mut self, now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window;
    /// The slow-start threshold after a loss repaired by fast retransmit; the window follows it. `in_flight` is
    /// FlightSize (RFC 5681 §2), at most the window.
    fn on_fast_retransmit(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window;
    /// The slow-start threshold after a mark (ECN), at most one in a round trip; the window follows it. Falls as on a
    /// loss unless an algorithm says otherwise (RFC 3168 §6.1.2). `in_flight` as in `on_fast_retransmit`.
    fn on_mark(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.on_fast_retransmit(now, on, in_flight, flows)
    }
    /// The slow-start threshold after a timeout; the window falls to one segment.
    fn on_rto(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.on_fast_retransmit(now, on, in_flight, flows)
    }
    /// All that was in flight at the loss or the timeout of `on` is acknowledged.
    fn on_recovered(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {}
    /// The latest reduction of `on` was unfounded; its window and threshold are restored.
    fn on_spurious(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.on_reset(now, on, flows);
    }
    /// An ACK found `on` not limited by its window: the time since the ACK before it earned no growth.
    fn on_unlimited(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {}
    /// A timeout within a recovery of `on`, or one after another: the threshold stays, the window falls to one segment.
    fn on_rto_again(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.on_reset(now, on, flows);
    }
    /// The window of `on` was changed from outside (idle restart, penalisation): forget any epoch.
    fn on_reset(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {}
    /// Data leave on `on` although nothing was in flight.
    fn on_restart(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {}
    /// A flow has begun or left. State of single flows is best kept in a [`PerFlow`], which needs no care.
    fn on_flows_changed(&mut self) {}
}

/// The name in a kernel of a congestion control, or of what its subflows do where it couples none: `cubic` for
/// `cubic-sbd`, which the kernel does not have.
pub fn kernel_name(name: &str) -> &str {
    ["-kernel", "-sbd"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Rules of the [`Controller`] that an algorithm takes part in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capabilities {
    /// A joining subflow takes its first window from another in slow start (LISA).
    pub linked_slow_start: bool,
    /// Slow start may end by the [`HyStart`] of Linux, if the host has it. HyStart++ is for all that are not
    /// model-based.
    pub hystart: bool,
    /// The algorithm answers the marks of L4S, and so data has ECT(1) in place of ECT(0) (RFC 9331 §4.1). These marks
    /// are as many as those for data center TCP.
    pub l4s: bool,
    /// The algorithm does not say what a mark means, and so data asks for none (RFC 3168 §6.1.2).
    pub no_marks: bool,
    /// The algorithm needs each mark and not only one in a round trip: where the two ends agree on no better feedback,
    /// the receiver says with each ACK whether the latest packets were marked (RFC 8257 §3.2).
    pub precise_marks: bool,
}

impl Capabilities {
    /// ECN field of data where marks are agreed on.
    pub fn ect(self) -> Ecn {
        match (self.no_marks, self.l4s) {
            (true, _) => Ecn::NotEct,
            (_, true) => Ecn::Ect1,
            _ => Ecn::Ect0,
        }
    }
}

impl Kind for CongestionControl {
    type Policy = Self;
    type Capabilities = Capabilities;
}

impl<P: WindowBased + 'static> From<P> for Built<CongestionControl> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: CongestionControl::window_based(policy), capabilities: Capabilities::default() }
    }
}

/// A congestion control that can be named.
pub type Entry = registry::Entry<CongestionControl>;

policies! {
    CONGESTION:
    reno,
    cubic,
    cubic_kernel,
    cubic_sbd,
    veno,
    vegas,
    bbr,
    bbr3,
    lia,
    lia_kernel,
    olia,
    balia,
    wvegas,
    mveno,
    dctcp,
    prague,
}
