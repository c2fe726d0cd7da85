//! The life of a connection, from the first SYN to the end, with the facts that belong to each state.

use super::closing::FastClosing;
use super::confirmation::Confirmation;
use super::fallback::Fallback;

/// MPTCP or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// MP_CAPABLE was sent, and the answer is not known.
    Negotiating,
    /// MPTCP.
    Multipath,
    /// Plain TCP: never asked for, or fallen back (RFC 8684 §3.7).
    Plain,
}

/// State of a connection.
// Its own byte says which: asked several times per segment, a niche in what the states hold takes more instructions.
#[repr(u8)]
pub(super) enum Life {
    /// MP_CAPABLE was sent, and the answer is not known.
    Negotiating,
    /// Both ends speak MPTCP, and the peer has not shown yet that its options get through both ways.
    Unconfirmed(Confirmation),
    /// Both ends speak MPTCP, and know it.
    Multipath,
    /// Plain TCP: never asked for, or fallen back.
    Plain(Fallback),
    /// MP_FASTCLOSE was sent on an ACK and waits for its answer (RFC 8684 §3.5).
    FastClosing(FastClosing),
    /// Closed in order; gone as soon as the application has read the rest.
    Unread(Mode),
    /// Over: no segment, timer or event follows.
    Gone(Mode),
}

impl Life {
    /// The beginning of a connection that speaks, or offers, this.
    pub(super) fn new(mode: Mode) -> Self {
        match mode {
            Mode::Negotiating => Life::Negotiating,
            Mode::Multipath => Life::Unconfirmed(Confirmation::default()),
            Mode::Plain => Life::Plain(Fallback::default()),
        }
    }

    /// The protocol spoken; at the end, the one spoken last.
    #[inline]
    pub(super) fn mode(&self) -> Mode {
        match self {
            Life::Negotiating => Mode::Negotiating,
            Life::Unconfirmed(_) | Life::Multipath | Life::FastClosing(_) => Mode::Multipath,
            Life::Plain(_) => Mode::Plain,
            Life::Unread(mode) | Life::Gone(mode) => *mode,
        }
    }

    /// The peer has shown that MPTCP options get through both ways. False at the end, when nothing follows from it.
    #[inline]
    pub(super) fn is_confirmed(&self) -> bool {
        match self {
            Life::Multipath => true,
            Life::Plain(fallback) => fallback.was_confirmed,
            Life::FastClosing(closing) => closing.was_confirmed,
            Life::Negotiating | Life::Unconfirmed(_) | Life::Unread(_) | Life::Gone(_) => false,
        }
    }

    #[inline]
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Life::Gone(_))
    }

    #[inline]
    pub(super) fn is_fast_closing(&self) -> bool {
        matches!(self, Life::FastClosing(_))
    }

    /// The client's wait for the peer's confirmation.
    #[inline]
    pub(super) fn confirmation(&self) -> Option<&Confirmation> {
        if let Life::Unconfirmed(confirmation) = self { Some(confirmation) } else { None }
    }

    pub(super) fn confirmation_mut(&mut self) -> Option<&mut Confirmation> {
        if let Life::Unconfirmed(confirmation) = self { Some(confirmation) } else { None }
    }

    /// The way to plain TCP, if it was taken.
    #[inline]
    pub(super) fn fallback_mut(&mut self) -> Option<&mut Fallback> {
        if let Life::Plain(fallback) = self { Some(fallback) } else { None }
    }
}
