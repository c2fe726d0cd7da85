//! Boxes that drop segments.

use super::flow::concerns;
use super::{Element, Out, SynOption};
use crate::Direction;
use anabranch_units::Instant;
use anabranch_wire::{Flags, MpOption, Segment};

/// Silently drops IP packets above `size` bytes, from time `from` on.
pub(super) struct MtuBlackhole {
    pub(super) size: u16,
    pub(super) from: Instant,
    pub(super) direction: Option<Direction>,
}

impl Element for MtuBlackhole {
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        let too_large = segment.wire_length().get() > u64::from(self.size);
        if too_large && now >= self.from && concerns(self.direction, direction) {
            out.drop();
        } else {
            out.forward(direction, segment);
        }
    }
}

/// Drops SYNs with this option.
pub(super) struct DropSyn {
    pub(super) option: SynOption,
}

impl Element for DropSyn {
    fn pass(&mut self, _now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        let disliked = |option: &MpOption| match self.option {
            SynOption::Capable => matches!(option, MpOption::Capable(_)),
            SynOption::Join => matches!(option, MpOption::JoinSyn(_) | MpOption::JoinSynAck(_)),
        };
        if segment.flags.has(Flags::SYN) && segment.options.mptcp().iter().any(disliked) {
            out.drop();
        } else {
            out.forward(direction, segment);
        }
    }
}
