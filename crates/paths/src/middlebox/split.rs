//! Cuts segments into pieces.

use super::declaration::{Choice, Typed, choice, direction, size};
use super::flow::concerns;
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use anabranch_units::{Instant, Stream};
use anabranch_wire::{Flags, Segment};

/// Cuts segments into pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// Most payload of a piece \[B\].
    pub size: u16,
    /// Pieces that keep the MPTCP options.
    pub options: SplitOptions,
    /// The direction of the segments.
    pub direction: Option<Direction>,
}

/// Pieces of a cut segment that keep its MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitOptions {
    /// Each, as network interfaces do that segment (TSO).
    Copied,
    /// The first.
    First,
}

impl Split {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "split",
        about: "cuts segments into pieces; each or the first keeps the options",
        meaning: "Cuts segments into pieces.",
        source: "Honda 2011; RFC 8684 §6",
        keys: &[SIZE.key(), OPTIONS.key(), DIRECTION.key()],
        read: |given| {
            Ok(Split { size: SIZE.of(given), options: OPTIONS.of(given), direction: DIRECTION.of(given) }.into())
        },
    };
}

/// The default is the MSS that every IPv4 host accepts (RFC 9293 §3.7.1).
const SIZE: Typed<u16> = size("size", "Maximum payload of a piece; 536B unless given.", 536);
const OPTIONS: Choice<SplitOptions> = choice(
    "options",
    "Pieces that keep the MPTCP options; every piece unless given.",
    &[("copied", "Every piece."), ("first", "The first piece.")],
    &[SplitOptions::Copied, SplitOptions::First],
    0,
);
const DIRECTION: Choice<Option<Direction>> = direction("The direction of the segments.");

impl Settings for Split {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(*self)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.size == 0 { Err("a piece holds at least one byte") } else { Ok(()) }
    }
}

impl Element for Split {
    fn pass(&mut self, _now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        let (size, length) = (usize::from(self.size), segment.payload.len());
        if length <= size || !concerns(self.direction, direction) {
            return out.forward(direction, segment);
        }
        for start in (0..length).step_by(size) {
            let end = (start + size).min(length);
            let mut piece = segment.clone();
            piece.seq = segment.seq + start as u64;
            piece.payload = segment.payload.slice(start..end);
            if end < length {
                piece.flags = Flags(piece.flags.0 & !Flags::FIN.with(Flags::PSH).0);
            }
            if start > 0 && self.options == SplitOptions::First {
                // Timestamps stay: once negotiated, a segment without them is not acceptable (RFC 7323 §3.2).
                piece.options.strip_mptcp();
            }
            out.forward_altered(direction, piece);
        }
    }
}
