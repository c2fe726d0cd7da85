//! Middleboxes: elements of a path that change, drop, hold or create segments.
//!
//! Each path has a list of boxes, in the order from the client to the server. A box stands at one [`End`] of the path:
//! between the client and the path's first link, or between its last link and the server. It sees both directions, may
//! hold state for each flow, hold segments back and make segments of its own. [`MIDDLEBOXES`] lists the kinds and their
//! sources.
//!
//! A box handles segments as values. The TCP checksum is computed afresh when they are written, as by a real box that
//! alters segments; the DSS checksum is left alone, so that the peer detects the change (RFC 8684 §3.3).

mod alter;
mod catalogue;
mod chain;
mod coalesce;
mod faults;
mod filter;
mod flow;
mod nat;
mod proxy;
mod rewrite;
mod split;
mod strip;

pub use catalogue::{MIDDLEBOXES, MiddleboxInfo};
pub use chain::Chain;

use crate::{Direction, PacketId};
use anabranch_units::{Duration, Instant, Stream};
use anabranch_wire::Segment;
use std::net::SocketAddr;

/// A middlebox of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MiddleboxSpec {
    /// Kind and settings.
    pub kind: Middlebox,
    /// Position on the path.
    pub end: End,
}

/// Position of a middlebox on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum End {
    /// Between the client and the path's first link.
    #[default]
    Client,
    /// Between the path's last link and the server.
    Server,
}

/// Kind of a middlebox, with its settings. A `direction` restricts it to segments that travel this way; `None` is both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Middlebox {
    /// Removes MPTCP options.
    Strip {
        /// Segments to strip.
        from: Stripped,
        /// Options to remove from them.
        options: StrippedOptions,
        /// Number of segments of a flow, per direction, that pass before it begins.
        after: u64,
        /// The direction of the segments.
        direction: Option<Direction>,
    },
    /// Gives each flow random initial sequence numbers of its own, both ways, SACK blocks included.
    RewriteSequence,
    /// Cuts segments into pieces.
    Split {
        /// Most payload of a piece \[B\].
        size: u16,
        /// Pieces that keep the MPTCP options.
        options: SplitOptions,
        /// The direction of the segments.
        direction: Option<Direction>,
    },
    /// Merges a segment with the next if that continues it; the first one's options stay, the other's are lost.
    Coalesce {
        /// Most payload of a merged segment \[B\].
        size: u16,
        /// Longest time that a segment is held for the next.
        wait: Duration,
        /// The direction of the segments.
        direction: Option<Direction>,
    },
    /// Replaces bytes of each flow's stream, once, as an application-level gateway does; where that changes the length,
    /// sequence and acknowledgment numbers are adjusted.
    AlterPayload {
        /// Offset in the subflow's stream, counted from its first byte \[B\].
        offset: u32,
        /// Bytes removed \[B\].
        remove: u16,
        /// Bytes inserted \[B\].
        insert: u16,
        /// Direction of the data.
        direction: Option<Direction>,
    },
    /// Acknowledges data towards their sender before their receiver has, without the options that it does not know.
    EarlyAck {
        /// Delay of its acknowledgments: the round trip that the sender sees.
        delay: Duration,
        /// Loses every n-th of the segments that it has acknowledged; 0 for none.
        lose: u32,
        /// Direction of the data.
        direction: Option<Direction>,
    },
    /// Gives the client's side another address and other ports.
    Nat {
        /// Time at which all mappings are lost: later packets of a flow come from another port.
        rebind: Option<Duration>,
        /// Treatment of packets to a port without a mapping.
        unmapped: Unmapped,
    },
    /// Silently drops packets above a size.
    MtuBlackhole {
        /// The largest IP packet that passes \[B\].
        size: u16,
        /// Time at which it begins, since the beginning of the run.
        from: Duration,
        /// Direction of the packets.
        direction: Option<Direction>,
    },
    /// Drops SYNs that carry an MPTCP option.
    DropSyn {
        /// The option.
        option: SynOption,
    },
    /// Applies faults to single segments, given by number instead of drawn at random.
    Faults {
        /// Each segment at most once, counted from 0 in its direction, whatever flow it belongs to.
        plan: Vec<(u64, Fault)>,
        /// The time that a delayed segment is held, and a swapped one that none follows.
        wait: Duration,
        /// The direction of the segments.
        direction: Option<Direction>,
    },
}

/// Fate of one segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The segment is lost.
    Drop,
    /// The segment arrives twice.
    Duplicate,
    /// The segment arrives after the next one of its direction.
    Swap,
    /// The segment is delayed, while others pass.
    Delay,
}

/// Segments from which options are removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stripped {
    /// SYN.
    Syn,
    /// SYN/ACK.
    SynAck,
    /// Segments after the SYN that carry MP_CAPABLE or MP_JOIN.
    ThirdAck,
    /// All.
    All,
    /// All but those of the handshake.
    AfterHandshake,
}

/// MPTCP options to remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StrippedOptions {
    /// All.
    Mptcp,
    /// DSS.
    Dss,
    /// ADD_ADDR.
    AddAddr,
    /// All but MP_CAPABLE, MP_JOIN and DSS: what a box that has heard of MPTCP may still not know.
    Control,
}

/// Pieces of a cut segment that keep its MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitOptions {
    /// Each, as network interfaces do that segment (TSO).
    Copied,
    /// The first.
    First,
}

/// Treatment of packets to a port for which a NAT has no mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmapped {
    /// Dropped in silence.
    Dropped,
    /// Answered with a RST.
    Reset,
}

/// The option whose SYNs are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynOption {
    /// MP_CAPABLE.
    Capable,
    /// MP_JOIN.
    Join,
}

/// Counts of a middlebox.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MiddleboxOutcome {
    /// Path, kind and, where a path has several, number: `wlan/strip`, `wlan/nat-2`.
    pub name: String,
    /// Segments forwarded otherwise than they came; every piece of a cut one counts, and a merged one once.
    pub altered: u64,
    /// Segments not forwarded.
    pub dropped: u64,
    /// Segments of its own making.
    pub made: u64,
}

impl MiddleboxSpec {
    /// Places a box at the client's end.
    pub const fn new(kind: Middlebox) -> Self {
        MiddleboxSpec { kind, end: End::Client }
    }

    /// Places a box at the server's end.
    pub const fn at_server(kind: Middlebox) -> Self {
        MiddleboxSpec { kind, end: End::Server }
    }
}

impl Middlebox {
    /// Removes all MPTCP options from these segments, both ways.
    pub const fn strip(from: Stripped) -> Self {
        Middlebox::Strip { from, options: StrippedOptions::Mptcp, after: 0, direction: None }
    }

    /// Its name in [`MIDDLEBOXES`].
    pub const fn name(&self) -> &'static str {
        match self {
            Middlebox::Strip { .. } => "strip",
            Middlebox::RewriteSequence => "rewrite-sequence",
            Middlebox::Split { .. } => "split",
            Middlebox::Coalesce { .. } => "coalesce",
            Middlebox::AlterPayload { .. } => "alter-payload",
            Middlebox::EarlyAck { .. } => "early-ack",
            Middlebox::Nat { .. } => "nat",
            Middlebox::MtuBlackhole { .. } => "mtu-blackhole",
            Middlebox::DropSyn { .. } => "drop-syn",
            Middlebox::Faults { .. } => "faults",
        }
    }

    /// Lets what it does at a time happen later.
    pub fn shift(&mut self, late: Duration) {
        match self {
            Middlebox::Nat { rebind: Some(at), .. } => *at += late,
            Middlebox::MtuBlackhole { from, .. } if !from.is_zero() => *from += late,
            _ => {}
        }
    }

    /// Returns true if applications may read altered bytes without an error.
    pub const fn alters_payload(&self) -> bool {
        matches!(self, Middlebox::AlterPayload { .. })
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// The accepted values and the reason.
    pub const fn check(&self) -> Result<(), &'static str> {
        match self {
            Middlebox::Split { size: 0, .. } => Err("a piece holds at least one byte"),
            Middlebox::Coalesce { size, .. } if *size > LARGEST_MERGED => {
                Err("a merged segment fits an IP packet: at most 65000 bytes")
            }
            Middlebox::AlterPayload { remove: 0, insert: 0, .. } => Err("nothing replaced by nothing alters nothing"),
            Middlebox::AlterPayload { insert, .. } if *insert > LARGEST_INSERT => {
                Err("what is inserted fits a segment: at most 1000 bytes")
            }
            Middlebox::EarlyAck { delay, .. } if delay.is_zero() => {
                Err("an acknowledgment takes time: a delay above zero")
            }
            Middlebox::MtuBlackhole { size, .. } if *size < SMALLEST_MTU => {
                Err("every IPv4 link carries packets of 68 bytes (RFC 791 §3.2)")
            }
            Middlebox::Faults { wait, .. } if wait.is_zero() => Err("a delay above zero"),
            _ => Ok(()),
        }
    }

    fn build(&self, stream: Stream) -> Box<dyn Element> {
        match *self {
            Middlebox::Strip { from, options, after, direction } => {
                Box::new(strip::Strip::new(from, options, after, direction))
            }
            Middlebox::RewriteSequence => Box::new(rewrite::Rewrite::new(stream)),
            Middlebox::Split { size, options, direction } => Box::new(split::Split { size, options, direction }),
            Middlebox::Coalesce { size, wait, direction } => Box::new(coalesce::Coalesce::new(size, wait, direction)),
            Middlebox::AlterPayload { offset, remove, insert, direction } => {
                Box::new(alter::Alter::new(offset, remove, insert, direction))
            }
            Middlebox::EarlyAck { delay, lose, direction } => Box::new(proxy::Proxy::new(delay, lose, direction)),
            Middlebox::Nat { rebind, unmapped } => Box::new(nat::Nat::new(rebind, unmapped, stream)),
            Middlebox::MtuBlackhole { size, from, direction } => {
                Box::new(filter::MtuBlackhole { size, from: Instant::ZERO + from, direction })
            }
            Middlebox::DropSyn { option } => Box::new(filter::DropSyn { option }),
            Middlebox::Faults { ref plan, wait, direction } => Box::new(faults::Faults::new(plan, wait, direction)),
        }
    }
}

/// A box at work: segments and time in, segments and a deadline out. A thread of its own may run it.
trait Element: Send {
    /// A segment arrives, travelling `direction`.
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>);

    /// Time at which to call `on_deadline`; `Instant::MAX` for never.
    fn deadline(&self) -> Instant {
        Instant::MAX
    }

    /// Time has passed.
    fn on_deadline(&mut self, _now: Instant, _out: &mut Out<'_>) {}

    /// Returns the client-side address of the address that the server's side knows as `outside`.
    fn inside(&self, outside: SocketAddr) -> SocketAddr {
        outside
    }
}

/// A segment on its way past the boxes.
#[derive(Debug)]
pub struct Moving {
    /// Direction of travel.
    pub direction: Direction,
    /// The segment.
    pub segment: Segment,
    /// Id of the host's packet, if this segment carries it on.
    pub id: PacketId,
}

/// Output of a box.
struct Out<'a> {
    segments: &'a mut Vec<Moving>,
    counts: &'a mut MiddleboxOutcome,
    /// Id of the segment that has just come; the first segment forwarded inherits it.
    id: PacketId,
}

impl<'a> Out<'a> {
    fn new(segments: &'a mut Vec<Moving>, counts: &'a mut MiddleboxOutcome) -> Self {
        Out { segments, counts, id: PacketId::default() }
    }

    /// Forwards the segment unchanged.
    fn forward(&mut self, direction: Direction, segment: Segment) {
        let id = std::mem::take(&mut self.id);
        self.segments.push(Moving { direction, segment, id });
    }

    /// Otherwise than it came.
    fn forward_altered(&mut self, direction: Direction, segment: Segment) {
        self.counts.altered += 1;
        self.forward(direction, segment);
    }

    /// A segment that came earlier.
    fn release(&mut self, direction: Direction, segment: Segment, altered: bool) {
        self.counts.altered += u64::from(altered);
        self.segments.push(Moving { direction, segment, id: PacketId::default() });
    }

    /// A segment that the box made.
    fn make(&mut self, direction: Direction, segment: Segment) {
        self.counts.made += 1;
        self.segments.push(Moving { direction, segment, id: PacketId::default() });
    }

    /// The segment goes no further.
    fn drop(&mut self) {
        self.counts.dropped += 1;
    }
}

/// Returns the output of one box for one segment.
#[cfg(test)]
fn through(element: &mut dyn Element, now: Instant, direction: Direction, segment: Segment) -> Vec<Moving> {
    let mut segments = Vec::new();
    let mut counts = MiddleboxOutcome::default();
    element.pass(now, direction, segment, &mut Out::new(&mut segments, &mut counts));
    segments
}

/// Leaves room for headers in the 16 bits of an IP packet's length.
const LARGEST_MERGED: u16 = 65_000;
/// Keeps a full segment of 1460 bytes, with what is inserted, far from the same limit.
const LARGEST_INSERT: u16 = 1000;
/// RFC 791 §3.2.
const SMALLEST_MTU: u16 = 68;
