//! Reinjection: when bytes in flight on one subflow are repeated on another.
//!
//! Two things are no policy, because without them data would be lost: what a closed subflow carried is sent again
//! elsewhere, and data that a subflow acknowledged but no DATA_ACK covers is repeated after the connection-level timeout.

mod none;
mod on_rto;
mod opportunistic;

pub use none::Never;
pub use on_rto::OnRto;
pub use opportunistic::Opportunistic;

use crate::View;
use crate::registry::{Domain, Entry, Parameter};
use anabranch_units::{Instant, SubflowId};

/// Why nothing new can leave although a subflow has room (reference section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// T1: the peer's window admits no more unsent data.
    Window,
    /// T2: there is no unsent data.
    Drained,
}

/// A moment in which repeating the oldest unacknowledged data may help.
#[derive(Clone, Copy, Debug)]
pub struct Opportunity<'a> {
    /// Why nothing new leaves.
    pub cause: Cause,
    /// The application waits for space in the send buffer.
    pub send_buffer_full: bool,
    /// The subflow with room on which a copy would leave.
    pub on: SubflowId,
    /// The subflows that carried the oldest unacknowledged data.
    pub carriers: &'a [SubflowId],
    /// The connection.
    pub view: &'a View<'a>,
}

/// What to do with an opportunity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rescue {
    /// Repeat the oldest unacknowledged data on `Opportunity::on`.
    pub reinject: bool,
    /// Halve the congestion windows of the slower carriers (bit n: the n-th of `Opportunity::carriers`). A request that
    /// congestion control answers.
    pub penalise: u32,
}

/// Decides when data in flight is repeated on another subflow.
pub trait Reinjection: Send {
    /// Whether a subflow's retransmission timeout repeats all it carries on the others.
    fn on_rto(&mut self, _now: Instant, _on: SubflowId) -> bool {
        true
    }
    /// Called when a subflow has room and nothing new can leave.
    fn on_opportunity(&mut self, _now: Instant, _opportunity: &Opportunity<'_>) -> Rescue {
        Rescue::default()
    }
}

/// Every policy of this kind.
pub const REINJECTIONS: &[Entry<dyn Reinjection>] = &[
    Entry {
        name: "none",
        about: "never: what a subflow lost, it repairs itself",
        paper: None,
        parameters: &[],
        source: include_str!("none.rs"),
        build: |_| Box::new(Never),
    },
    Entry {
        name: "on-rto",
        about: "a timeout repeats all the subflow carries on the others",
        paper: Some("Linux MPTCP v0.8x"),
        parameters: &[],
        source: include_str!("on_rto.rs"),
        build: |_| Box::new(OnRto),
    },
    Entry {
        name: "opportunistic",
        about: "also repeats the oldest data on a much faster subflow when nothing new can leave",
        paper: Some("Raiciu et al. 2012"),
        parameters: &[Parameter {
            name: "penalise",
            about: "halve the windows of the slower subflows that hold the oldest data",
            unit: "",
            domain: Domain::Flag { default: true },
        }],
        source: include_str!("opportunistic.rs"),
        build: |p| Box::new(Opportunistic::new(p.flag("penalise"))),
    },
];
