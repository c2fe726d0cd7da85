//! The MPTCP option that a step of a handshake carries.

use anabranch_wire::{JoinAck, JoinSyn, JoinSynAck, MpCapable, MpOption, Segment};

/// MPTCP in one step of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offer {
    /// The packet is not in the capture.
    #[default]
    Unseen,
    /// Its options were cut by the capture.
    Cut,
    /// No MPTCP.
    Nothing,
    /// MP_CAPABLE (RFC 8684 §3.1).
    Capable(MpCapable),
    /// MP_JOIN of a SYN (RFC 8684 §3.2).
    JoinSyn(JoinSyn),
    /// MP_JOIN of a SYN/ACK.
    JoinSynAck(JoinSynAck),
    /// MP_JOIN of a third ACK.
    JoinAck(JoinAck),
}

impl Offer {
    /// Returns the offer of a packet; `cut` says that the capture has cut its options.
    pub fn of(segment: &Segment, cut: bool) -> Self {
        let found = segment.options.mptcp().iter().find_map(|option| match option {
            MpOption::Capable(capable) => Some(Offer::Capable(*capable)),
            MpOption::JoinSyn(join) => Some(Offer::JoinSyn(*join)),
            MpOption::JoinSynAck(join) => Some(Offer::JoinSynAck(*join)),
            MpOption::JoinAck(join) => Some(Offer::JoinAck(*join)),
            _ => None,
        });
        found.unwrap_or(if cut { Offer::Cut } else { Offer::Nothing })
    }

    /// Returns true if a join asks to be used as a backup.
    pub fn is_backup(&self) -> bool {
        match self {
            Offer::JoinSyn(join) => join.backup,
            Offer::JoinSynAck(join) => join.backup,
            _ => false,
        }
    }

    /// Takes `new` in place of a step that was not seen whole.
    pub fn complete(&mut self, new: Offer) {
        if matches!(self, Offer::Unseen | Offer::Cut) {
            *self = new;
        }
    }
}
