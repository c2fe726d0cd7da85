//! Congestion control: how much may be in flight on each subflow; may be coupled.
//!
//! What all algorithms share (slow start, one reduction per recovery, RTO, idle restart, the cwnd-limited rule,
//! penalisation) stands once, in [`Controller`]; an algorithm says how a window grows in congestion avoidance and how far
//! it falls on loss.

#[cfg(test)]
mod conformance;
mod controller;
mod cubic;
mod lia;
mod reno;

pub use controller::{Controller, InitialWindow, Rules};
pub use cubic::Cubic;
pub use lia::Lia;
pub use reno::Reno;

use crate::registry::{Domain, Entry, Parameter};
use anabranch_units::{Duration, Instant, SubflowId};

/// One subflow as its congestion control sees it. Windows are in bytes with their fraction kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Which subflow.
    pub id: SubflowId,
    /// Payload of a full segment \[bytes\].
    pub mss: f64,
    /// Congestion window \[bytes\].
    pub cwnd: f64,
    /// Slow-start threshold \[bytes\]; infinite before the first loss.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// In loss recovery: others couple to its ssthresh (reference section 5.0).
    pub recovering: bool,
    /// Counts in coupled sums: established, has an RTT sample, neither failed nor an idle backup.
    pub counted: bool,
}

/// How windows grow and fall. `on` is an index into `flows`.
pub trait CongestionControl: Send {
    /// Growth \[bytes, may be negative\] that `acked` bytes earn flow `on` in congestion avoidance.
    fn avoidance(&mut self, now: Instant, on: usize, acked: f64, flows: &[Flow]) -> f64;
    /// The slow-start threshold \[bytes\] after a loss repaired by fast retransmit; the window follows it. `in_flight`
    /// \[bytes\] is FlightSize (RFC 5681 §2), at most the window.
    fn on_fast_retransmit(&mut self, now: Instant, on: usize, in_flight: f64, flows: &[Flow]) -> f64;
    /// The slow-start threshold \[bytes\] after a timeout; the window falls to one segment.
    fn on_rto(&mut self, now: Instant, on: usize, in_flight: f64, flows: &[Flow]) -> f64 {
        self.on_fast_retransmit(now, on, in_flight, flows)
    }
    /// The latest reduction of `on` was unfounded; its window and threshold are restored.
    fn on_spurious(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.on_reset(now, on, flows);
    }
    /// An ACK found `on` not limited by its window: the time since the ACK before it earned no growth.
    fn on_unlimited(&mut self, _now: Instant, _on: usize) {}
    /// The window of `on` was changed from outside (idle restart, penalisation, a timeout within a recovery): forget any
    /// epoch.
    fn on_reset(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {}
    /// A flow was added at index `at`; those behind it moved up by one.
    fn on_flow_added(&mut self, _at: usize) {}
    /// The flow at index `at` left; those behind it moved down by one.
    fn on_flow_removed(&mut self, _at: usize) {}
}

/// Every policy of this kind.
pub const CONGESTION: &[Entry<dyn CongestionControl>] = &[
    Entry {
        name: "reno",
        about: "one segment per round trip, half on loss; each subflow by itself",
        paper: Some("RFC 5681, RFC 6582"),
        parameters: &[],
        source: include_str!("reno.rs"),
        build: |_| Box::new(Reno),
    },
    Entry {
        name: "cubic",
        about: "a cubic function of the time since the last loss; each subflow by itself",
        paper: Some("RFC 9438"),
        parameters: &[
            Parameter {
                name: "c",
                about: "C, steepness of the cubic function (RFC 9438 §5)",
                unit: "segments/s^3",
                domain: Domain::Number { default: 0.4, min: 0.001, max: 100.0 },
            },
            Parameter {
                name: "beta",
                about: "β_cubic, what a loss leaves of the window (RFC 9438 §4.6)",
                unit: "",
                domain: Domain::Number { default: 0.7, min: 0.1, max: 0.95 },
            },
            Parameter {
                name: "fast_convergence",
                about: "release more when the window shrinks from loss to loss (RFC 9438 §4.7)",
                unit: "",
                domain: Domain::Flag { default: true },
            },
        ],
        source: include_str!("cubic.rs"),
        build: |p| Box::new(Cubic::new(p.number("c"), p.number("beta"), p.flag("fast_convergence"))),
    },
    Entry {
        name: "lia",
        about: "linked increases: all subflows together grow like one TCP on the best path",
        paper: Some("RFC 6356"),
        parameters: &[],
        source: include_str!("lia.rs"),
        build: |_| Box::new(Lia),
    },
];
