//! Reinjection: when bytes in flight on one subflow are repeated on another.
//!
//! Two things are no policy, because without them data would be lost: what a closed subflow carried is sent again
//! elsewhere, and data that a subflow acknowledged but no DATA_ACK covers is repeated after the connection-level
//! timeout.

mod class;
mod cursors;
mod daps;
mod deadline;
mod flight;
mod flight_view;
mod insured;
mod none;
mod on_rto;
mod opportunistic;
mod redundant;
mod tail;
#[cfg(test)]
mod testing;
mod upstream;

pub use class::{Class, Limits};
pub use daps::Daps;
pub use deadline::Deadline;
pub use flight_view::{FlightView, Order, Outstanding, Piece, Repeat, SubflowSet, SubflowState, Transmission, Why};
pub use insured::Insured;
pub use none::Never;
pub use on_rto::OnRto;
pub use opportunistic::Opportunistic;
pub use redundant::Redundant;
pub use tail::Tail;
pub use upstream::Upstream;

use crate::View;
use crate::registry::{self, Built, Kind};
use anabranch_units::{Instant, SubflowId};

/// Why nothing new can leave although a subflow has room (A-OPT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// T1: the peer's window admits no more unsent data, or no subflow with room has a share of it left.
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
    pub carriers: &'a [Carrier],
    /// The connection.
    pub view: &'a View<'a>,
}

/// A subflow that carried the oldest unacknowledged data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carrier {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Its member of [`SubflowSet`].
    pub mark: SubflowSet,
    /// True in TCP's Open state: neither in recovery nor with out-of-order data.
    pub open: bool,
}

/// Response to an opportunity; by default none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Response {
    /// Repeat the oldest unacknowledged data on [`Opportunity::on`].
    pub reinject: bool,
    /// Halve the congestion windows of these carriers. A request that congestion control answers.
    pub penalise: SubflowSet,
}

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
    /// Called when a subflow has room and nothing new can leave.
    fn on_opportunity(&mut self, _now: Instant, _opportunity: &Opportunity<'_>) -> Response {
        Response::default()
    }
    /// Called after sending: `sent` left for the first time, on `on`.
    fn on_sent(&mut self, _now: Instant, _sent: &Piece, _on: SubflowId, _flight: &FlightView<'_>) {}
    /// The next copy. Called again and again until there is none: before each scheduling decision (so after each
    /// sending as well), and when everything is sent.
    fn next(&mut self, _now: Instant, _flight: &FlightView<'_>) -> Option<Repeat> {
        None
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

/// Abilities of a reinjection policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capabilities {
    /// True if it names copies: then the methods from [`Reinjection::on_sent`] on are used. Otherwise the cost of calls
    /// does not depend on the amount sent.
    pub copies: bool,
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

/// Every policy of this kind.
pub const REINJECTIONS: &[Entry] = &[
    none::ENTRY,
    on_rto::ENTRY,
    opportunistic::ENTRY,
    daps::ENTRY,
    upstream::ENTRY,
    tail::ENTRY,
    insured::ENTRY,
    deadline::ENTRY,
    redundant::ENTRY,
];
