//! Middleboxes that remove MPTCP options.

use crate::Middlebox;
use anabranch_wire::{Flags, MpOption, Segment};

impl Middlebox {
    /// What the middlebox does to a passing segment.
    #[inline]
    pub(crate) fn pass(self, segment: &mut Segment) {
        if self != Middlebox::None && self.strips(segment) {
            segment.options.strip_mptcp();
        }
    }

    fn strips(self, segment: &Segment) -> bool {
        let opens = segment.flags.has(Flags::SYN);
        let answers = opens && segment.flags.has(Flags::ACK);
        let completes = !opens && segment.options.mptcp().iter().any(is_handshake);
        match self {
            Middlebox::None => false,
            Middlebox::Syn => opens && !answers,
            Middlebox::SynAck => answers,
            Middlebox::ThirdAck => completes,
            Middlebox::All => true,
            Middlebox::AfterHandshake => !opens && !completes,
        }
    }
}

fn is_handshake(option: &MpOption) -> bool {
    matches!(option, MpOption::Capable(_) | MpOption::JoinAck(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Dss, FlowKey, JoinAck};

    #[test]
    fn each_kind_strips_what_it_is_named_for() {
        let segment = |flags: Flags, joins: bool| {
            let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
            let mut segment = Segment::new(flow, flags, SubflowSeq::new(0), SubflowSeq::new(0));
            segment.options.dss = Some(Dss::default());
            if joins {
                segment.options.push_mptcp(MpOption::JoinAck(JoinAck { hmac: [0; 20] }));
            }
            segment
        };
        let (syn, syn_ack) = (segment(Flags::SYN, false), segment(Flags::SYN.with(Flags::ACK), false));
        let (third, data) = (segment(Flags::ACK, true), segment(Flags::ACK, false));
        for (middlebox, expected) in [
            // strips            SYN    SYN/ACK third  data
            (Middlebox::None, [false, false, false, false]),
            (Middlebox::Syn, [true, false, false, false]),
            (Middlebox::SynAck, [false, true, false, false]),
            (Middlebox::ThirdAck, [false, false, true, false]),
            (Middlebox::All, [true, true, true, true]),
            (Middlebox::AfterHandshake, [false, false, false, true]),
        ] {
            let stripped = [&syn, &syn_ack, &third, &data].map(|segment| {
                let mut passing = segment.clone();
                middlebox.pass(&mut passing);
                !passing.options.has_mptcp()
            });
            assert_eq!(stripped, expected, "{middlebox:?}");
        }
    }
}
