//! Removes MPTCP options.

use super::declaration::{Choice, Typed, choice, direction, whole};
use super::flow::{Flows, concerns};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use anabranch_units::{Instant, Stream};
use anabranch_wire::{Flags, MpOption, Segment};

/// Removes MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strip {
    /// Segments to strip.
    pub from: Stripped,
    /// Options to remove from them.
    pub options: StrippedOptions,
    /// Number of segments of a flow, per direction, that pass before it begins.
    pub after: u64,
    /// The direction of the segments.
    pub direction: Option<Direction>,
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

impl Strip {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "strip",
        about: "removes MPTCP options",
        meaning: "Removes MPTCP options.",
        source: "Honda 2011; RFC 8684 §3.7",
        keys: &[FROM.key(), OPTIONS.key(), AFTER.key(), DIRECTION.key()],
        read: |given| {
            Ok(Strip {
                from: FROM.of(given),
                options: OPTIONS.of(given),
                after: u64::from(AFTER.of(given)),
                direction: DIRECTION.of(given),
            }
            .into())
        },
    };
}

const FROM: Choice<Stripped> = choice(
    "from",
    "Segments that lose options; all unless given.",
    &[
        ("syn", "SYN."),
        ("syn-ack", "SYN/ACK."),
        ("third-ack", "Third segment of the handshake."),
        ("all", "All segments."),
        ("after-handshake", "All segments but those of the handshake."),
    ],
    &[Stripped::Syn, Stripped::SynAck, Stripped::ThirdAck, Stripped::All, Stripped::AfterHandshake],
    3,
);
const OPTIONS: Choice<StrippedOptions> = choice(
    "options",
    "Options that are removed; all MPTCP options unless given.",
    &[
        ("mptcp", "All MPTCP options."),
        ("dss", "DSS."),
        ("add-addr", "ADD_ADDR."),
        ("control", "All but MP_CAPABLE, MP_JOIN and DSS."),
    ],
    &[StrippedOptions::Mptcp, StrippedOptions::Dss, StrippedOptions::AddAddr, StrippedOptions::Control],
    0,
);
const AFTER: Typed<u32> =
    whole("after", "Number of segments of each flow and direction that pass unchanged first; 0 unless given.", 0);
const DIRECTION: Choice<Option<Direction>> = direction("The direction of the segments.");

impl Settings for Strip {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(Stripper::new(*self))
    }
}

struct Stripper {
    settings: Strip,
    /// Segments seen of each flow.
    seen: Flows<u64>,
}

impl Stripper {
    fn new(settings: Strip) -> Self {
        Stripper { settings, seen: Flows::new() }
    }

    fn takes_from(&self, segment: &Segment) -> bool {
        let opens = segment.flags.has(Flags::SYN);
        let answers = opens && segment.flags.has(Flags::ACK);
        let completes = !opens && segment.options.mptcp().iter().any(is_handshake);
        match self.settings.from {
            Stripped::Syn => opens && !answers,
            Stripped::SynAck => answers,
            Stripped::ThirdAck => completes,
            Stripped::All => true,
            Stripped::AfterHandshake => !opens && !completes,
        }
    }
}

impl Element for Stripper {
    fn pass(&mut self, _now: Instant, direction: Direction, mut segment: Segment, out: &mut Out<'_>) {
        if !concerns(self.settings.direction, direction) {
            return out.forward(direction, segment);
        }
        if self.settings.after > 0 {
            let seen = self.seen.of(direction, &segment, || 0);
            *seen += 1;
            if *seen <= self.settings.after {
                return out.forward(direction, segment);
            }
        }
        if self.takes_from(&segment) && take(self.settings.options, &mut segment) {
            out.forward_altered(direction, segment);
        } else {
            out.forward(direction, segment);
        }
    }
}

/// True if there was something to take.
fn take(options: StrippedOptions, segment: &mut Segment) -> bool {
    let only = |wanted: fn(&MpOption) -> bool, segment: &mut Segment| {
        let before = segment.options.mptcp().len();
        segment.options.retain_mptcp(|option| !wanted(option));
        segment.options.mptcp().len() < before
    };
    match options {
        StrippedOptions::Mptcp => {
            let had = segment.options.has_mptcp();
            segment.options.strip_mptcp();
            had
        }
        StrippedOptions::Dss => {
            let had = segment.options.has_dss();
            segment.options.set_dss(None);
            had
        }
        StrippedOptions::AddAddr => only(|option| matches!(option, MpOption::AddAddr(_)), segment),
        StrippedOptions::Control => only(|option| !opens_subflow(option), segment),
    }
}

fn is_handshake(option: &MpOption) -> bool {
    matches!(option, MpOption::Capable(_) | MpOption::JoinAck(_))
}

fn opens_subflow(option: &MpOption) -> bool {
    matches!(option, MpOption::Capable(_) | MpOption::JoinSyn(_) | MpOption::JoinSynAck(_) | MpOption::JoinAck(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{AddressId, SubflowSeq};
    use anabranch_wire::{AddAddr, Dss, FlowKey, JoinAck};

    fn segment(flags: Flags, option: Option<MpOption>) -> Segment {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut segment = Segment::new(flow, flags, SubflowSeq::new(0), SubflowSeq::new(0));
        segment.options.set_dss(Some(Dss::default()));
        if let Some(option) = option {
            segment.options.push_mptcp(option);
        }
        segment
    }

    fn through(strip: &mut Stripper, segment: &Segment) -> Segment {
        let mut left = super::super::through(strip, Instant::ZERO, Direction::Up, segment.clone());
        left.pop().expect("stripping drops nothing").segment
    }

    #[test]
    fn each_kind_strips_what_it_is_named_for() {
        let join = MpOption::JoinAck(JoinAck { hmac: [0; 20] });
        let (syn, syn_ack) = (segment(Flags::SYN, None), segment(Flags::SYN.with(Flags::ACK), None));
        let (third, data) = (segment(Flags::ACK, Some(join)), segment(Flags::ACK, None));
        for (from, expected) in [
            // strips                SYN    SYN/ACK third  data
            (Stripped::Syn, [true, false, false, false]),
            (Stripped::SynAck, [false, true, false, false]),
            (Stripped::ThirdAck, [false, false, true, false]),
            (Stripped::All, [true, true, true, true]),
            (Stripped::AfterHandshake, [false, false, false, true]),
        ] {
            let mut strip = Stripper::new(Strip { from, options: StrippedOptions::Mptcp, after: 0, direction: None });
            let stripped = [&syn, &syn_ack, &third, &data].map(|it| !through(&mut strip, it).options.has_mptcp());
            assert_eq!(stripped, expected, "{from:?}");
        }
    }

    #[test]
    fn only_some_options_or_only_after_a_while() {
        let add =
            MpOption::AddAddr(AddAddr { id: AddressId(1), address: [10, 1, 1, 1].into(), port: None, hmac: None });
        let prio = MpOption::Prio { backup: true };
        for (options, dss, addr, priority) in [
            // takes                   DSS    ADD_ADDR MP_PRIO
            (StrippedOptions::Dss, true, false, false),
            (StrippedOptions::AddAddr, false, true, false),
            (StrippedOptions::Control, false, true, true),
        ] {
            let mut strip = Stripper::new(Strip { from: Stripped::All, options, after: 0, direction: None });
            let [with_addr, with_prio] =
                [&add, &prio].map(|option| through(&mut strip, &segment(Flags::ACK, Some(option.clone()))).options);
            assert_eq!((with_addr.dss().is_none(), with_addr.mptcp().is_empty()), (dss, addr), "{options:?}");
            assert_eq!((with_prio.dss().is_none(), with_prio.mptcp().is_empty()), (dss, priority), "{options:?}");
        }
        let mut late =
            Stripper::new(Strip { from: Stripped::All, options: StrippedOptions::Mptcp, after: 2, direction: None });
        let kept = [0, 1, 2, 3].map(|_| through(&mut late, &segment(Flags::ACK, None)).options.has_mptcp());
        assert_eq!(kept, [true, true, false, false]);
    }
}
