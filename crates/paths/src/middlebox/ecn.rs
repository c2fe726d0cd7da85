//! Changes the marks of packets, or the feedback of them.

use super::declaration::{Choice, choice, direction};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use anabranch_units::{Ecn, Instant, Stream};
use anabranch_wire::{Flags, Segment};

/// Changes the ECN field of packets, or the TCP flags that negotiate and report marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MangleEcn {
    /// Change that it makes.
    pub act: EcnAct,
    /// Direction of the packets; both if `None`.
    pub direction: Option<Direction>,
}

/// Change that a box makes to marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnAct {
    /// Sets the ECN field to not-ECT (bleaching).
    Bleach,
    /// Marks every packet, ECN-capable or not.
    MarkAll,
    /// Sets the field of every packet to ECT(0).
    SetEct0,
    /// Sets the field of every packet to ECT(1).
    SetEct1,
    /// Inverts both bits of the field.
    Invert,
    /// Clears AE, CWR and ECE of SYNs and SYN/ACKs.
    ClearSynFlags,
    /// Clears AE, CWR and ECE of all other segments.
    ClearFlags,
    /// Drops SYNs with any of these flags.
    DropSyn,
}

impl MangleEcn {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "mangle-ecn",
        about: "changes marks of packets, or the flags that ask for and report them",
        meaning: "Changes the ECN field of packets, or the TCP flags that negotiate and report marks.",
        source: "RFC 3168 §18, §19; RFC 9768 §3.2.2.3, §3.2.2.4",
        keys: &[ACT.key(), DIRECTION.key()],
        read: |given| Ok(MangleEcn { act: ACT.of(given), direction: DIRECTION.of(given) }.into()),
    };
}

const ACT: Choice<EcnAct> = choice(
    "act",
    "What it does; bleach unless given.",
    &[
        ("bleach", "Sets the ECN field to not-ECT."),
        ("mark-all", "Marks every packet, ECN-capable or not."),
        ("set-ect0", "Sets the field to ECT(0)."),
        ("set-ect1", "Sets the field to ECT(1)."),
        ("invert", "Inverts both bits of the field."),
        ("clear-syn-flags", "Clears AE, CWR and ECE of SYNs and SYN/ACKs."),
        ("clear-flags", "Clears AE, CWR and ECE of all other segments."),
        ("drop-syn", "Drops SYNs with any of these flags."),
    ],
    &[
        EcnAct::Bleach,
        EcnAct::MarkAll,
        EcnAct::SetEct0,
        EcnAct::SetEct1,
        EcnAct::Invert,
        EcnAct::ClearSynFlags,
        EcnAct::ClearFlags,
        EcnAct::DropSyn,
    ],
    0,
);
const DIRECTION: Choice<Option<Direction>> = direction("Direction of the packets.");

impl Settings for MangleEcn {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(*self)
    }
}

impl Element for MangleEcn {
    fn pass(&mut self, _now: Instant, direction: Direction, mut segment: Segment, out: &mut Out<'_>) {
        if self.direction.is_some_and(|only| only != direction) {
            return out.forward(direction, segment);
        }
        let before = (segment.ip.ecn, segment.ace());
        let syn = segment.flags.has(Flags::SYN);
        match self.act {
            EcnAct::Bleach => segment.ip.ecn = Ecn::NotEct,
            EcnAct::MarkAll => segment.ip.ecn = Ecn::Ce,
            EcnAct::SetEct0 => segment.ip.ecn = Ecn::Ect0,
            EcnAct::SetEct1 => segment.ip.ecn = Ecn::Ect1,
            EcnAct::Invert => segment.ip.ecn = Ecn::from_bits(!segment.ip.ecn.bits()),
            EcnAct::ClearSynFlags if syn => segment.set_ace(0),
            EcnAct::ClearFlags if !syn => segment.set_ace(0),
            EcnAct::DropSyn if syn && segment.ace() != 0 => return out.drop(),
            EcnAct::ClearSynFlags | EcnAct::ClearFlags | EcnAct::DropSyn => {}
        }
        match (segment.ip.ecn, segment.ace()) == before {
            true => out.forward(direction, segment),
            false => out.forward_altered(direction, segment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::through;
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::FlowKey;

    /// Field and flags of a segment behind a box that came with these; `None` if it is dropped.
    fn mangled(act: EcnAct, flags: Flags, ace: u8, ecn: Ecn) -> Option<(Ecn, u8)> {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut segment = Segment::new(flow, flags, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.set_ace(ace);
        segment.ip.ecn = ecn;
        let mut element = MangleEcn { act, direction: None };
        let out = through(&mut element, Instant::ZERO, Direction::Up, segment);
        out.first().map(|moving| (moving.segment.ip.ecn, moving.segment.ace()))
    }

    #[test]
    fn each_act_changes_what_it_says() {
        use EcnAct::*;
        for (act, flags, ace, ecn, expected) in [
            (Bleach, Flags::ACK, 5, Ecn::Ce, Some((Ecn::NotEct, 5))),
            (MarkAll, Flags::ACK, 5, Ecn::NotEct, Some((Ecn::Ce, 5))),
            (SetEct0, Flags::ACK, 5, Ecn::Ect1, Some((Ecn::Ect0, 5))),
            (SetEct1, Flags::ACK, 5, Ecn::NotEct, Some((Ecn::Ect1, 5))),
            (Invert, Flags::ACK, 5, Ecn::Ect0, Some((Ecn::Ect1, 5))),
            (Invert, Flags::ACK, 5, Ecn::NotEct, Some((Ecn::Ce, 5))),
            (ClearSynFlags, Flags::SYN, 7, Ecn::NotEct, Some((Ecn::NotEct, 0))),
            (ClearSynFlags, Flags::ACK, 5, Ecn::Ect0, Some((Ecn::Ect0, 5))),
            (ClearFlags, Flags::ACK, 5, Ecn::Ect0, Some((Ecn::Ect0, 0))),
            (ClearFlags, Flags::SYN, 7, Ecn::NotEct, Some((Ecn::NotEct, 7))),
            (DropSyn, Flags::SYN, 3, Ecn::NotEct, None),
            (DropSyn, Flags::SYN, 0, Ecn::NotEct, Some((Ecn::NotEct, 0))),
        ] {
            assert_eq!(mangled(act, flags, ace, ecn), expected, "{act:?}");
        }
    }
}
