//! State of a connection that a reinjection policy sees when it is asked for copies, and the request that it answers.

use crate::{SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant, SubflowId};
use std::fmt;

/// A set of subflows. [`SubflowState::mark`] says which member is whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubflowSet(u16);

impl SubflowSet {
    /// The empty set.
    pub const NONE: SubflowSet = SubflowSet(0);

    /// The set with these bits.
    pub const fn from_bits(bits: u16) -> Self {
        SubflowSet(bits)
    }

    /// One bit for each member.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns true if the two have a member in common.
    pub const fn meets(self, other: SubflowSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Number of members.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: SubflowSet) -> SubflowSet {
        SubflowSet(self.0 | other.0)
    }
}

/// A piece of the stream that was sent and that no DATA_ACK covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its first byte.
    pub from: Dsn,
    /// Length of the piece.
    pub length: Bytes,
    /// Time at which it was sent for the first time.
    pub sent: Instant,
    /// The subflows that have carried it; none if those are gone, in which case the engine repeats it without being
    /// asked.
    pub carriers: SubflowSet,
}

impl Piece {
    /// The byte behind it.
    pub fn end(&self) -> Dsn {
        self.from + self.length.get()
    }

    /// Returns true if exactly one subflow carried it.
    pub fn is_single(&self) -> bool {
        self.carriers.count() == 1
    }
}

/// Segment of one subflow's retransmission queue that the peer has not reported as received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmission {
    /// Its data; `sent` is when it left last on this subflow.
    pub piece: Piece,
    /// True if it counts as lost and has not left again.
    pub lost: bool,
}

/// Order of transmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Lost ones, then by the time of the latest sending.
    OldestFirst,
    /// Latest sending first, without lost ones.
    NewestFirst,
}

/// The record of what was sent and is not acknowledged at the data level.
pub trait Outstanding {
    /// The piece that holds `dsn`, otherwise the first behind it. Costs a binary search.
    fn piece(&self, dsn: Dsn) -> Option<Piece>;
    /// Shows `visit` the transmissions of subflow `on`, until it answers false. Each costs a binary search.
    fn transmissions(&self, on: SubflowId, order: Order, visit: &mut dyn FnMut(Transmission) -> bool);
}

/// One open subflow, usable or not: what [`SubflowView`] does not say of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowState {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Its member of [`SubflowSet`].
    pub mark: SubflowSet,
    /// One of the two ends asked to use it only when no other works.
    pub backup: bool,
    /// True if it may carry data: neither potentially failed nor stale nor suspected of losing what it acknowledges.
    pub usable: bool,
    /// A full segment may leave on it now.
    pub has_room: bool,
    /// True if it has neither unacknowledged data nor retransmissions to send.
    pub idle: bool,
    /// Time at which its retransmission timer runs out, backoff included; `None` while it does not run.
    pub timeout: Option<Instant>,
    /// Timeouts in a row without an acknowledgment of anything new.
    pub timeouts: u32,
    /// Time at which anything arrived on it last.
    pub heard: Instant,
}

impl SubflowState {
    /// A usable subflow with room that has sent nothing yet: where a test or a policy tried by hand begins.
    pub fn at_rest(id: SubflowId, mark: SubflowSet) -> Self {
        SubflowState {
            id,
            mark,
            backup: false,
            usable: true,
            has_room: true,
            idle: true,
            timeout: None,
            timeouts: 0,
            heard: Instant::ZERO,
        }
    }
}

/// Why nothing new can leave although a subflow has room (A-OPT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// T1: the peer's window admits no more unsent data, or no subflow with room has a share of it left.
    Window,
    /// T2: there is no unsent data.
    Drained,
}

/// A moment in which repeating the oldest unacknowledged data may help: a subflow has room, and nothing new can leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opportunity<'a> {
    /// Why nothing new leaves.
    pub cause: Cause,
    /// The application waits for space in the send buffer.
    pub send_buffer_full: bool,
    /// The subflow with the lowest SRTT of those with room.
    pub on: SubflowId,
    /// The subflows that carried the oldest unacknowledged data.
    pub carriers: &'a [Carrier],
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

/// The connection, at a moment in which copies can be asked for.
#[derive(Clone, Copy)]
pub struct FlightView<'a> {
    /// The usable subflows and the unsent data, as schedulers see them.
    pub view: &'a View<'a>,
    /// All open subflows, ordered by id; those of the view are among them.
    pub states: &'a [SubflowState],
    /// Data in flight.
    pub outstanding: &'a dyn Outstanding,
    /// Reason to ask although nothing new can leave; `None` before a scheduling decision.
    pub opportunity: Option<Opportunity<'a>>,
}

impl<'a> FlightView<'a> {
    /// The usable subflows, each with its state.
    pub fn marked(&self) -> impl Iterator<Item = (&'a SubflowView, &'a SubflowState)> + use<'a> {
        // Both are ordered by id.
        let mut states = self.states.iter();
        self.view
            .subflows
            .iter()
            .filter_map(move |subflow| states.find(|state| state.id == subflow.id).map(|state| (subflow, state)))
    }

    /// The first piece of the record between `from` and `end` that is `wanted`.
    pub fn first_piece(&self, from: Dsn, end: Dsn, wanted: impl Fn(&Piece) -> bool) -> Option<Piece> {
        let mut at = from;
        while at.before(end) {
            let piece = self.outstanding.piece(at).filter(|piece| piece.from.before(end))?;
            if wanted(&piece) {
                return Some(piece);
            }
            at = piece.end();
        }
        None
    }
}

/// Answer of a policy; by default it wants nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The copy to send.
    pub repeat: Option<Repeat>,
    /// Halve the congestion windows of these carriers of the [`Opportunity`]. A request that congestion control
    /// answers; void without an opportunity.
    pub penalise: SubflowSet,
}

impl From<Repeat> for Request {
    /// A copy and no penalty.
    fn from(repeat: Repeat) -> Self {
        Some(repeat).into()
    }
}

impl From<Option<Repeat>> for Request {
    /// A copy, if there is one, and no penalty.
    fn from(repeat: Option<Repeat>) -> Self {
        Request { repeat, penalise: SubflowSet::NONE }
    }
}

/// A copy that a policy asks for: up to a segment of the piece at `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// The subflow that is to carry it: usable, with room, and not among the carriers.
    pub on: SubflowId,
    /// Sent and not acknowledged at the data level.
    pub from: Dsn,
    /// Reason of the copy.
    pub why: Why,
}

/// Reason of a copy. Displays as a phrase for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// No new data is left, and everything under way is sent twice.
    Tail,
    /// Data in flight for too long.
    Deadline,
    /// Data that left on a path classed low.
    LowPath,
    /// Everything is sent on every subflow.
    Redundancy,
    /// The policy's connection-level timer ran out.
    Timer,
    /// The peer's window is full.
    Window,
    /// No new data is left, and the oldest holds up the end or a full send buffer.
    Drained,
    /// A reason of the policy's own, which it does not tell.
    Own,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Tail => "tail of the data",
            Why::Deadline => "older than the deadline",
            Why::LowPath => "sent on a path classed low",
            Why::Redundancy => "everything on every subflow",
            Why::Timer => "connection-level timer",
            Why::Window => "the peer's window is full",
            Why::Drained => "no new data left",
            Why::Own => "policy's own reason",
        })
    }
}
