//! Middleboxes: elements of a path that change, drop, hold or create segments.
//!
//! Each path has a list of boxes, in the order from the client to the server. A box stands at one [`End`] of the path:
//! between the client and the path's first link, or between its last link and the server. It sees both directions, may
//! hold state for each flow, hold segments back and make segments of its own. [`MIDDLEBOXES`] lists the kinds and their
//! sources; each kind declares itself in its own file, as policies do.
//!
//! A box handles segments as values. The TCP checksum is computed afresh when they are written, as by a real box that
//! alters segments; the DSS checksum is left alone, so that the peer detects the change (RFC 8684 §3.3).

mod chain;
pub mod declaration;
mod flow;

pub use chain::Chain;
pub use declaration::MiddleboxInfo;

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

/// Declares the modules of the kinds and makes their list: [`Middlebox`] has a variant for each, [`MIDDLEBOXES`] its
/// entry.
macro_rules! kinds {
    ($($module:ident::$kind:ident,)*) => {
        $(
            mod $module;
            pub use $module::*;
        )*

        /// A middlebox with its settings. A `direction` restricts it to segments that travel this way; `None` is both.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Middlebox {
            $(#[doc = concat!("A box that [`", stringify!($kind), "`] describes.")] $kind($kind),)*
        }

        /// All kinds. Honda 2011 is M. Honda, Y. Nishida, C. Raiciu, A. Greenhalgh, M. Handley, H. Tokuda. *Is it still
        /// possible to extend TCP?* Proc. ACM IMC 2011.
        pub const MIDDLEBOXES: &[MiddleboxInfo] = &[$($kind::ENTRY),*];

        $(impl From<$kind> for Middlebox {
            fn from(settings: $kind) -> Self {
                Middlebox::$kind(settings)
            }
        })*

        impl Middlebox {
            /// Its name in [`MIDDLEBOXES`].
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Middlebox::$kind(_) => $kind::ENTRY.name,)*
                }
            }

            fn settings(&self) -> &dyn Settings {
                match self {
                    $(Middlebox::$kind(settings) => settings,)*
                }
            }

            fn settings_mut(&mut self) -> &mut dyn Settings {
                match self {
                    $(Middlebox::$kind(settings) => settings,)*
                }
            }
        }
    };
}

kinds! {
    strip::Strip,
    rewrite::RewriteSequence,
    split::Split,
    coalesce::Coalesce,
    alter::AlterPayload,
    proxy::EarlyAck,
    nat::Nat,
    mtu_blackhole::MtuBlackhole,
    drop_syn::DropSyn,
    faults::Faults,
    ecn::MangleEcn,
}

/// Settings of a kind of middlebox.
trait Settings {
    /// Makes the box; it draws from `stream`.
    fn build(&self, stream: Stream) -> Box<dyn Element>;

    /// Checks the ranges of the settings. The error has the accepted values and the reason.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Lets what the box does at a time happen later.
    fn shift(&mut self, _late: Duration) {}

    /// Returns true if applications may read altered bytes without an error.
    fn alters_payload(&self) -> bool {
        false
    }
}

impl Middlebox {
    /// Removes all MPTCP options from these segments, both ways.
    pub const fn strip(from: Stripped) -> Self {
        Middlebox::Strip(Strip { from, options: StrippedOptions::Mptcp, after: 0, direction: None })
    }

    /// Lets what it does at a time happen later.
    pub fn shift(&mut self, late: Duration) {
        self.settings_mut().shift(late);
    }

    /// Returns true if applications may read altered bytes without an error.
    pub fn alters_payload(&self) -> bool {
        self.settings().alters_payload()
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// The accepted values and the reason.
    pub fn check(&self) -> Result<(), &'static str> {
        self.settings().check()
    }

    fn build(&self, stream: Stream) -> Box<dyn Element> {
        self.settings().build(stream)
    }
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
