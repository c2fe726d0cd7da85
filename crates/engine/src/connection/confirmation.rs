//! The client's wait for the first DSS, by which the peer confirms MPTCP (RFC 8684 §3.1), and a first path that falls
//! silent meanwhile.
//!
//! The keys must arrive reliably (§3.1). Data that repeats them has its own timer; a client that has nothing to send
//! asks instead. Joins wait for the confirmation, with one exception: after a timeout without an answer they begin on
//! the other paths. A subflow that comes of one carries data only after its fourth ACK, which has a DSS, so none is
//! established before a DSS has arrived, and the peer's HMAC proves that it has both keys. A peer that does not have
//! them refuses the join; that bars no path, since they may yet arrive.

use super::{Connection, Life, Role};
use crate::shared::Shared;
use crate::subflow::State;
use anabranch_units::Instant;

/// Progress of the wait.
#[derive(Default)]
pub(super) struct Confirmation {
    /// Time of the next probe of the peer, unless data under way serves as one.
    next: Option<Instant>,
    /// Questions without an answer.
    asked: u32,
    /// The first path has not answered for a timeout.
    silent: bool,
}

/// Questions to a peer that has not confirmed MPTCP, each after twice the time.
const MAX_QUESTIONS: u32 = 4;

impl Life {
    /// Tells whether joins may begin.
    pub(super) fn admits_joins(&self) -> bool {
        self.is_confirmed() || self.confirmation().is_some_and(|confirmation| confirmation.silent)
    }

    /// Time at which the peer is asked to confirm MPTCP.
    pub(super) fn confirmation_deadline(&self) -> Option<Instant> {
        self.confirmation().and_then(|confirmation| confirmation.next)
    }
}

impl Connection {
    /// The client has the keys of both: the peer should say something soon.
    pub(super) fn await_confirmation(&mut self, now: Instant) {
        let timeout = self.subflows.longest_rto();
        if let Some(confirmation) = self.life.confirmation_mut() {
            *confirmation = Confirmation { next: Some(now + timeout), ..Confirmation::default() };
        }
    }

    /// The peer has shown that it is an MPTCP peer: joins may begin.
    pub(super) fn on_confirmed(&mut self, now: Instant, shared: &mut Shared) {
        let was_silent = match &mut self.life {
            Life::Unconfirmed(confirmation) => confirmation.silent,
            // Its first data was under way when we gave the connection up, which that does not take back.
            Life::FastClosing(closing) => {
                closing.was_confirmed = true;
                return;
            }
            _ => return,
        };
        self.life = Life::Multipath;
        if was_silent && self.timers.data.is_some() {
            // What the silent path carried has waited for long: a DATA_FIN has no subflow that would take it along.
            self.timers.data = Some(now);
        }
        // A peer that lacked the keys refused every join.
        self.paths.manager.forgive_all();
        self.join_missing(now, shared);
    }

    /// A question on the first path has had no answer for a timeout: the other paths are tried, unless something did
    /// come. A peer that answers without DSS is about to become plain TCP (§3.7).
    pub(super) fn on_unanswered(&mut self, now: Instant, shared: &mut Shared) {
        if self.subflows.initial().is_some_and(|first| now.since(first.liveness.heard) >= first.tx.rtt.rto()) {
            self.on_first_path_dead(now, shared);
        }
    }

    /// The first path carries nothing, or its interface is down: the other paths are tried.
    pub(super) fn on_first_path_dead(&mut self, now: Instant, shared: &mut Shared) {
        if self.role != Role::Client {
            return;
        }
        let Some(confirmation) = self.life.confirmation_mut() else { return };
        if !std::mem::replace(&mut confirmation.silent, true) {
            self.join_missing(now, shared);
        }
    }

    /// Asks again after silence since the handshake. Data or a DATA_FIN under way repeats the keys. Otherwise they go
    /// once more, and after them an ACK that the peer must answer (RFC 9293 §3.10.7.4).
    pub(super) fn on_confirmation_deadline(&mut self, now: Instant, shared: &mut Shared) {
        if let Some(confirmation) = self.life.confirmation_mut() {
            confirmation.next = None;
        }
        let first = |subflow: &crate::subflow::Subflow| !subflow.is_join() && subflow.state == State::Established;
        let Some(slot) = self.subflows.find(first) else { return };
        let under_way = !self.subflows[slot].tx.recovery.is_empty() || self.sender.outgoing.fin_sent;
        if under_way || self.life.confirmation().is_none() {
            return;
        }
        if self.life.confirmation().is_some_and(|confirmation| confirmation.asked > 0) {
            self.on_unanswered(now, shared);
        }
        let Some(confirmation) = self.life.confirmation_mut() else { return };
        if confirmation.asked < MAX_QUESTIONS {
            confirmation.asked += 1;
            confirmation.next = Some(now + self.subflows[slot].tx.rtt.rto() * (1 << confirmation.asked));
            if shared.config.repeat_keys {
                self.send_third_ack(now, slot, shared);
            }
            self.send_window_probe(now, slot, shared);
        }
    }
}
