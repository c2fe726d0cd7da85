//! Reinjection: when bytes in flight on one subflow are repeated on another.
//!
//! Two things are no policy, because without them data would be lost: what a closed subflow carried is sent again
//! elsewhere, and data that a subflow acknowledged but no DATA_ACK covers is repeated after the connection-level
//! timeout.

mod budget;
mod class;
mod cursors;
mod flight;
mod flight_view;
#[cfg(test)]
mod testing;
mod thin_stream;

pub use class::{Class, Limits};
pub use daps::Daps;
pub use deadline::Deadline;
pub use flight_view::{
    Carrier, Cause, FlightView, Opportunity, Order, Outstanding, Piece, Repeat, Request, SubflowSet, SubflowState,
    Transmission, Why,
};
pub use insured::Insured;
pub use none::Never;
pub use on_rto::OnRto;
pub use opportunistic::Opportunistic;
pub use redundant::Redundant;
pub use tail::Tail;
pub use upstream::Upstream;

use crate::registry::{self, Built, Kind, policies};
use anabranch_units::{Instant, SubflowId};

/// Decides when data in flight is repeated on another subflow.
///
/// The engine checks every answer: what is repeated was sent and is not acknowledged at the data level, and it goes to
/// a usable subflow with room that has not carried it, so no subflow carries anything twice at the data level. It does
/// not ask for copies before both ends know of a second subflow.
pub trait Reinjection: Send {
    /// Returns true if a subflow's retransmission timeout repeats all its data on the others.
    fn on_rto(&mut self, _now: Instant, _on: SubflowId) -> bool {
        true
    }
    /// Called after sending: `sent` left for the first time, on `on`.
    fn on_sent(&mut self, _now: Instant, _sent: &Piece, _on: SubflowId, _flight: &FlightView<'_>) {}
    /// The next copy. Its [`Capabilities`] say when it is asked: again and again until it names none, before each
    /// scheduling decision (so after each sending as well) and when everything is sent; and once, with
    /// [`FlightView::opportunity`], when a subflow has room and nothing new can leave.
    fn next(&mut self, _now: Instant, _flight: &FlightView<'_>) -> Request {
        Request::default()
    }
    /// Returns the time at which to be woken, asked after all that could leave has left while anything is under way. A
    /// time that is past counts for none.
    fn wake(&mut self, _now: Instant, _flight: &FlightView<'_>) -> Option<Instant> {
        None
    }
    /// Handles the time given by [`Reinjection::wake`]; [`Reinjection::next`] is called afterwards. Returns the
    /// subflows that are stale: data that they alone carried goes elsewhere, and they get no new data until a packet
    /// arrives on them.
    fn on_wake(&mut self, _now: Instant, _flight: &FlightView<'_>) -> SubflowSet {
        SubflowSet::NONE
    }
}

/// Abilities of a reinjection policy: they say when it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capabilities {
    /// True if it is asked for copies whenever data may leave, and hears of sendings and its timer: all methods are
    /// used. Otherwise the cost of calls does not depend on the amount sent.
    pub copies: bool,
    /// True if it is asked as well when a subflow has room and nothing new can leave.
    pub opportunities: bool,
}

impl Kind for dyn Reinjection {
    type Policy = Box<Self>;
    type Capabilities = Capabilities;
}

impl<P: Reinjection + 'static> From<P> for Built<dyn Reinjection> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: Box::new(policy), capabilities: Capabilities::default() }
    }
}

/// A reinjection policy that can be named.
pub type Entry = registry::Entry<dyn Reinjection>;

policies! {
    REINJECTIONS:
    none,
    on_rto,
    opportunistic,
    daps,
    upstream,
    tail,
    insured,
    deadline,
    redundant,
}
