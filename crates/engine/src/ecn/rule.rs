//! The feedback of marks that a host asks for and agrees to.

use anabranch_units::Ecn;
use anabranch_wire::{Flags, Segment};

/// Feedback of marks, from least to most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Feedback {
    /// No feedback; packets are not ECN-capable.
    #[default]
    Off,
    /// Each ACK says that there was a mark, until the sender says that it has slowed down (RFC 3168).
    Classic,
    /// Each segment counts the packets that came marked (AccECN, RFC 9768).
    Accurate,
}

impl Feedback {
    /// Name in machine-readable output, in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Feedback::Off => "off",
            Feedback::Classic => "classic",
            Feedback::Accurate => "accurate",
        }
    }
}

/// Feedback that a host asks for, and the most that it agrees to (Linux `tcp_ecn`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnRule {
    /// Feedback that its SYNs ask for.
    pub asks: Feedback,
    /// The most that it agrees to where the peer asks.
    pub accepts: Feedback,
}

impl EcnRule {
    /// Neither asks nor agrees.
    pub const OFF: EcnRule = EcnRule { asks: Feedback::Off, accepts: Feedback::Off };
    /// Asks for the feedback of RFC 3168, and agrees to it.
    pub const CLASSIC: EcnRule = EcnRule { asks: Feedback::Classic, accepts: Feedback::Classic };
    /// Agrees to the feedback of RFC 3168.
    pub const ACCEPT_CLASSIC: EcnRule = EcnRule { asks: Feedback::Off, accepts: Feedback::Classic };
    /// Asks for accurate feedback, and agrees to any.
    pub const ACCURATE: EcnRule = EcnRule { asks: Feedback::Accurate, accepts: Feedback::Accurate };
    /// Asks for the feedback of RFC 3168, and agrees to any.
    pub const ACCEPT_ACCURATE_ASK_CLASSIC: EcnRule = EcnRule { asks: Feedback::Classic, accepts: Feedback::Accurate };
    /// Agrees to any.
    pub const ACCEPT_ACCURATE: EcnRule = EcnRule { asks: Feedback::Off, accepts: Feedback::Accurate };

    /// ACE field of a SYN.
    pub(crate) fn of_syn(self) -> u8 {
        match self.asks {
            Feedback::Off => 0b000,
            Feedback::Classic => 0b011,
            Feedback::Accurate => 0b111,
        }
    }

    /// The feedback agreed on with a host that sent this SYN (RFC 9768 §3.1.2). An ECN-capable SYN asks for no classic
    /// feedback (RFC 3168 §6.1.1).
    pub(crate) fn on_syn(self, syn: &Segment) -> Feedback {
        let ace = syn.ace();
        match self.accepts {
            Feedback::Accurate if !matches!(ace, 0b000 | 0b011) => Feedback::Accurate,
            Feedback::Off => Feedback::Off,
            _ if ace & 0b011 == 0b011 && (ace == 0b111 || syn.ip.ecn == Ecn::NotEct) => Feedback::Classic,
            _ => Feedback::Off,
        }
    }

    /// The feedback agreed on with a host that answers our SYN with this SYN/ACK (RFC 9768 Table 2; RFC 3168 §6.1.1).
    /// A value without a meaning is that of a later version, which knows accurate feedback too (§3.1.3).
    pub(crate) fn on_syn_ack(self, answer: &Segment) -> Feedback {
        match (self.asks, answer.ace()) {
            (Feedback::Accurate, 0b001) => Feedback::Classic,
            (Feedback::Accurate, ace) if !matches!(ace, 0b000 | 0b111) => Feedback::Accurate,
            (Feedback::Classic, _) if answer.flags.0 & (Flags::ECE.0 | Flags::CWR.0) == Flags::ECE.0 => {
                Feedback::Classic
            }
            _ => Feedback::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::FlowKey;

    fn segment(flags: Flags, ace: u8, ecn: Ecn) -> Segment {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut segment = Segment::new(flow, flags, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.set_ace(ace);
        segment.ip.ecn = ecn;
        segment
    }

    /// The rows of RFC 9768 Table 2, and Linux' six settings.
    #[test]
    fn what_is_asked_for_and_agreed_to() {
        let (off, classic, accurate) = (Feedback::Off, Feedback::Classic, Feedback::Accurate);
        for (ace, ecn, expected) in [
            // ace     IP field     off, classic, accept-classic, accurate, accept-accurate-…, accept-accurate
            (0b000, Ecn::NotEct, [off; 6]),
            (0b011, Ecn::NotEct, [off, classic, classic, classic, classic, classic]),
            (0b011, Ecn::Ect0, [off; 6]),
            (0b111, Ecn::NotEct, [off, classic, classic, accurate, accurate, accurate]),
            (0b111, Ecn::Ect1, [off, classic, classic, accurate, accurate, accurate]),
            (0b100, Ecn::NotEct, [off, off, off, accurate, accurate, accurate]),
        ] {
            let rules = [
                EcnRule::OFF,
                EcnRule::CLASSIC,
                EcnRule::ACCEPT_CLASSIC,
                EcnRule::ACCURATE,
                EcnRule::ACCEPT_ACCURATE_ASK_CLASSIC,
                EcnRule::ACCEPT_ACCURATE,
            ];
            let agreed = rules.map(|rule| rule.on_syn(&segment(Flags::SYN, ace, ecn)));
            assert_eq!(agreed, expected, "{ace:03b} {ecn:?}");
        }
        let answer = Flags::SYN.with(Flags::ACK);
        for (ace, expected) in [
            // ace    asked for accurate, classic, nothing
            (0b000, [off; 3]),
            (0b001, [classic, classic, off]),
            (0b101, [accurate, classic, off]),
            (0b010, [accurate, off, off]),
            (0b011, [accurate, off, off]),
            (0b100, [accurate, off, off]),
            (0b110, [accurate, off, off]),
            (0b111, [off; 3]),
        ] {
            let rules = [EcnRule::ACCURATE, EcnRule::CLASSIC, EcnRule::ACCEPT_CLASSIC];
            let agreed = rules.map(|rule| rule.on_syn_ack(&segment(answer, ace, Ecn::NotEct)));
            assert_eq!(agreed, expected, "{ace:03b}");
        }
    }
}
