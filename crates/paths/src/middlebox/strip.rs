//! Removes MPTCP options.

use super::flow::{Flows, concerns};
use super::{Element, Out, Stripped, StrippedOptions};
use crate::Direction;
use anabranch_units::Instant;
use anabranch_wire::{Flags, MpOption, Segment};

pub(super) struct Strip {
    from: Stripped,
    options: StrippedOptions,
    after: u64,
    direction: Option<Direction>,
    /// Segments seen of each flow.
    seen: Flows<u64>,
}

impl Strip {
    pub(super) fn new(from: Stripped, options: StrippedOptions, after: u64, direction: Option<Direction>) -> Self {
        Strip { from, options, after, direction, seen: Flows::new() }
    }

    fn takes_from(&self, segment: &Segment) -> bool {
        let opens = segment.flags.has(Flags::SYN);
        let answers = opens && segment.flags.has(Flags::ACK);
        let completes = !opens && segment.options.mptcp().iter().any(is_handshake);
        match self.from {
            Stripped::Syn => opens && !answers,
            Stripped::SynAck => answers,
            Stripped::ThirdAck => completes,
            Stripped::All => true,
            Stripped::AfterHandshake => !opens && !completes,
        }
    }
}

impl Element for Strip {
    fn pass(&mut self, _now: Instant, direction: Direction, mut segment: Segment, out: &mut Out<'_>) {
        if !concerns(self.direction, direction) {
            return out.forward(direction, segment);
        }
        if self.after > 0 {
            let seen = self.seen.of(direction, &segment, || 0);
            *seen += 1;
            if *seen <= self.after {
                return out.forward(direction, segment);
            }
        }
        if self.takes_from(&segment) && take(self.options, &mut segment) {
            out.forward_altered(direction, segment);
        } else {
            out.forward(direction, segment);
        }
    }
}

/// True if there was something to take.
fn take(options: StrippedOptions, segment: &mut Segment) -> bool {
    let only = |wanted: fn(&MpOption) -> bool, segment: &mut Segment| {
        let Some(there) = &mut segment.options.mptcp else { return false };
        let before = there.len();
        there.retain(|option| !wanted(option));
        let taken = there.len() < before;
        if there.is_empty() {
            segment.options.mptcp = None;
        }
        taken
    };
    match options {
        StrippedOptions::Mptcp => {
            let had = segment.options.has_mptcp();
            segment.options.strip_mptcp();
            had
        }
        StrippedOptions::Dss => segment.options.dss.take().is_some(),
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
        segment.options.dss = Some(Dss::default());
        if let Some(option) = option {
            segment.options.push_mptcp(option);
        }
        segment
    }

    fn through(strip: &mut Strip, segment: &Segment) -> Segment {
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
            let mut strip = Strip::new(from, StrippedOptions::Mptcp, 0, None);
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
            let mut strip = Strip::new(Stripped::All, options, 0, None);
            let [with_addr, with_prio] =
                [&add, &prio].map(|option| through(&mut strip, &segment(Flags::ACK, Some(option.clone()))).options);
            assert_eq!((with_addr.dss.is_none(), with_addr.mptcp.is_none()), (dss, addr), "{options:?}");
            assert_eq!((with_prio.dss.is_none(), with_prio.mptcp.is_none()), (dss, priority), "{options:?}");
        }
        let mut late = Strip::new(Stripped::All, StrippedOptions::Mptcp, 2, None);
        let kept = [0, 1, 2, 3].map(|_| through(&mut late, &segment(Flags::ACK, None)).options.has_mptcp());
        assert_eq!(kept, [true, true, false, false]);
    }
}
