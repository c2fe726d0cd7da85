//! Drops SYNs that carry an MPTCP option.

use super::declaration::{Choice, choice};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use anabranch_units::{Instant, Stream};
use anabranch_wire::{Flags, MpOption, Segment};

/// Drops SYNs that carry an MPTCP option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropSyn {
    /// The option.
    pub option: SynOption,
}

/// The option whose SYNs are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynOption {
    /// MP_CAPABLE.
    Capable,
    /// MP_JOIN.
    Join,
}

impl DropSyn {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "drop-syn",
        about: "drops SYNs that carry an MPTCP option",
        meaning: "Drops SYNs that carry an MPTCP option.",
        source: "Honda 2011; RFC 8684 §3.1, §3.7",
        keys: &[OPTION.key()],
        read: |given| Ok(DropSyn { option: OPTION.of(given) }.into()),
    };
}

const OPTION: Choice<SynOption> = choice(
    "option",
    "The option; mp-capable unless given.",
    &[("mp-capable", "MP_CAPABLE."), ("mp-join", "MP_JOIN.")],
    &[SynOption::Capable, SynOption::Join],
    0,
);

impl Settings for DropSyn {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(*self)
    }
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
