//! Congestion control: how much may be in flight on each subflow; may be coupled.
//!
//! What all algorithms share (slow start, one reduction per recovery, RTO, idle restart, the cwnd-limited rule,
//! penalisation) stands once, in [`Controller`]; an algorithm says how a window grows in congestion avoidance and how far
//! it falls on loss. One that goes by delay may set window and threshold at an ACK, within the same rules; one that models
//! the path (BBR) sets its window and its pacing rate itself.

mod ack;
mod balia;
mod bbr;
#[cfg(test)]
mod conformance;
mod controller;
mod coupled;
mod cubic;
mod cubic_kernel;
mod flow;
mod hystart;
mod hystart_plus_plus;
mod lia;
mod lia_kernel;
mod lisa;
mod mveno;
mod olia;
mod prr;
mod reno;
mod rules;
mod vegas;
mod veno;
mod wvegas;

pub use ack::{Ack, Model, RateSample, Window};
pub use balia::Balia;
pub use bbr::Bbr;
pub use controller::Controller;
pub use cubic::Cubic;
pub use cubic_kernel::CubicKernel;
pub use flow::Flow;
pub use hystart::HyStart;
pub use lia::Lia;
pub use lia_kernel::LiaKernel;
pub use mveno::MVeno;
pub use olia::Olia;
pub use reno::Reno;
pub use rules::{InitialWindow, LossResponse, Rules};
pub use vegas::Vegas;
pub use veno::Veno;
pub use wvegas::WVegas;

use crate::registry::{Build, Domain, Entry, Parameter};
use anabranch_units::{Duration, Instant};
use coupled::LISA;
use std::borrow::Cow;

/// How windows grow and fall. `on` is an index into `flows`.
pub trait CongestionControl: Send {
    /// Every ACK that delivers something, before it is counted, in recovery as well. An answer takes the place of slow start
    /// and congestion avoidance for this ACK; it is void in recovery, and may not raise a window that was no limit.
    fn on_ack(&mut self, _now: Instant, _on: usize, _ack: &Ack, _flows: &[Flow]) -> Option<Window> {
        None
    }
    /// Growth \[bytes, may be negative\] that `acked` bytes earn flow `on` in congestion avoidance.
    fn avoidance(&mut self, now: Instant, on: usize, acked: f64, flows: &[Flow]) -> f64;
    /// The slow-start threshold \[bytes\] after a loss repaired by fast retransmit; the window follows it. `in_flight`
    /// \[bytes\] is FlightSize (RFC 5681 §2), at most the window.
    fn on_fast_retransmit(&mut self, now: Instant, on: usize, in_flight: f64, flows: &[Flow]) -> f64;
    /// The slow-start threshold \[bytes\] after a timeout; the window falls to one segment.
    fn on_rto(&mut self, now: Instant, on: usize, in_flight: f64, flows: &[Flow]) -> f64 {
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
    /// Sets its windows by a model of the path, at every ACK, in recovery as well. Then slow start, threshold, undo, idle
    /// restart, the cwnd-limited rule and penalisation do not apply, and what follows a loss is the window itself. The same
    /// for the whole of its life.
    fn is_model_based(&self) -> bool {
        false
    }
    /// What a model-based algorithm believes of the path of `on`. `srtt`: known also before the first ACK of data.
    fn model(&self, _on: usize, _flow: &Flow, _srtt: Option<Duration>) -> Option<Model> {
        None
    }
    /// A joining subflow takes its first window from another in slow start (LISA).
    fn linked_slow_start(&self) -> bool {
        false
    }
    /// True if slow start may end by the [`HyStart`] of Linux, if the host has it. HyStart++ is for all that are not
    /// model-based.
    fn has_hystart(&self) -> bool {
        false
    }
    /// A flow was added at index `at`; those behind it moved up by one.
    fn on_flow_added(&mut self, _at: usize) {}
    /// The flow at index `at` left; those behind it moved down by one.
    fn on_flow_removed(&mut self, _at: usize) {}
}

/// The kernel's name of a congestion control of ours.
pub fn kernel_name(name: &str) -> &str {
    name.strip_suffix("-kernel").unwrap_or(name)
}

/// Every policy of this kind.
pub const CONGESTION: &[Entry<dyn CongestionControl>] = &[
    Entry {
        name: Cow::Borrowed("reno"),
        about: Cow::Borrowed("one segment per round trip, half on loss; each subflow by itself"),
        paper: Some("RFC 5681, RFC 6582"),
        parameters: &[],
        source: Cow::Borrowed(include_str!("reno.rs")),
        build: Build::Fixed(|_| Box::new(Reno)),
    },
    Entry {
        name: Cow::Borrowed("cubic"),
        about: Cow::Borrowed("a cubic function of the time since the last loss; each subflow by itself"),
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
        source: Cow::Borrowed(include_str!("cubic.rs")),
        build: Build::Fixed(|p| Box::new(Cubic::new(p.number("c"), p.number("beta"), p.flag("fast_convergence")))),
    },
    Entry {
        name: Cow::Borrowed("cubic-kernel"),
        about: Cow::Borrowed("cubic as Linux has it: whole segments, Reno's friend for ever; each subflow by itself"),
        paper: Some("Linux 6.x, default"),
        parameters: &[],
        source: Cow::Borrowed(include_str!("cubic_kernel.rs")),
        build: Build::Fixed(|_| Box::new(CubicKernel::default())),
    },
    Entry {
        name: Cow::Borrowed("veno"),
        about: Cow::Borrowed("reno that takes a loss for chance while few packets are queued; each subflow by itself"),
        paper: Some("Fu 2003"),
        parameters: &[veno::BETA],
        source: Cow::Borrowed(include_str!("veno.rs")),
        build: Build::Fixed(|p| Box::new(Veno::new(p.number("beta")))),
    },
    Entry {
        name: Cow::Borrowed("vegas"),
        about: Cow::Borrowed("keeps a few packets queued, found by the RTT; each subflow by itself"),
        paper: Some("Brakmo 1994"),
        parameters: vegas::PARAMETERS,
        source: Cow::Borrowed(include_str!("vegas.rs")),
        build: Build::Fixed(|p| Box::new(Vegas::new(p.number("alpha"), p.number("beta"), p.number("gamma")))),
    },
    Entry {
        name: Cow::Borrowed("bbr"),
        about: Cow::Borrowed(
            "version 1: paces at the measured delivery rate, two BDPs in flight; each subflow by itself",
        ),
        paper: Some("Cardwell 2016"),
        parameters: &[],
        source: Cow::Borrowed(include_str!("bbr/mod.rs")),
        build: Build::Fixed(|_| Box::new(Bbr::default())),
    },
    Entry {
        name: Cow::Borrowed("lia"),
        about: Cow::Borrowed("linked increases: all subflows together grow like one TCP on the best path"),
        paper: Some("RFC 6356"),
        parameters: &[LISA],
        source: Cow::Borrowed(include_str!("lia.rs")),
        build: Build::Fixed(|p| Box::new(Lia { lisa: p.flag("lisa") })),
    },
    Entry {
        name: Cow::Borrowed("lia-kernel"),
        about: Cow::Borrowed("lia as Linux' MPTCP v0.9x has it: one count per ACK, the best path in whole numbers"),
        paper: Some("Linux MPTCP v0.94"),
        parameters: &[],
        source: Cow::Borrowed(include_str!("lia_kernel.rs")),
        build: Build::Fixed(|_| Box::new(LiaKernel::default())),
    },
    Entry {
        name: Cow::Borrowed("olia"),
        about: Cow::Borrowed("linked increases that shift windows to the paths with the longest loss-free runs"),
        paper: Some("Khalili 2013"),
        parameters: &[LISA],
        source: Cow::Borrowed(include_str!("olia.rs")),
        build: Build::Fixed(|p| Box::new(Olia::new(p.flag("lisa")))),
    },
    Entry {
        name: Cow::Borrowed("balia"),
        about: Cow::Borrowed("linked increases and decreases, balanced between friendliness and responsiveness"),
        paper: Some("Walid 2014"),
        parameters: &[LISA],
        source: Cow::Borrowed(include_str!("balia.rs")),
        build: Build::Fixed(|p| Box::new(Balia { lisa: p.flag("lisa") })),
    },
    Entry {
        name: Cow::Borrowed("wvegas"),
        about: Cow::Borrowed("vegas on every subflow, sharing one budget of queued packets by their rates"),
        paper: Some("Cao 2012"),
        parameters: wvegas::PARAMETERS,
        source: Cow::Borrowed(include_str!("wvegas.rs")),
        build: Build::Fixed(|p| {
            Box::new(WVegas::new(p.number("total_alpha"), p.number("gamma"), p.flag("drain"), p.flag("lisa")))
        }),
    },
    Entry {
        name: Cow::Borrowed("mveno-r"),
        about: Cow::Borrowed("veno with LIA's linked increase (reconstruction: the weights were not published)"),
        paper: Some("Dong 2016"),
        parameters: &[veno::BETA, LISA],
        source: Cow::Borrowed(include_str!("mveno.rs")),
        build: Build::Fixed(|p| Box::new(MVeno::new(p.number("beta"), p.flag("lisa")))),
    },
];
