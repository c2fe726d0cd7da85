//! Reopening: when the first path dies with the client's keys, the connection begins anew on another path.
//!
//! The keys reach the server with the third ACK, or with data that repeats them (RFC 8684 §3.1). If both are lost and
//! the path dies, the server has half a connection. It cannot verify a join and refuses it (§3.2), and RFC 8684 has no
//! other way to hand over the keys: this connection has no way in but the dead path.
//!
//! A new one on another path takes its place, under the same identifier and with everything written so far, when
//!
//! 1. nothing has come from the server but the SYN/ACK, neither an acknowledgment, if only of nothing new, nor data;
//! 2. the first path has been silent for two timeouts, or its interface is down;
//! 3. the server has refused a join on another path: it had no keys then, so its application had heard of nothing;
//! 4. no data has left, or the application has called it replayable
//!    ([`Endpoint::set_replayable`](crate::Endpoint::set_replayable)).
//!
//! The last condition covers a segment with the keys that arrives late, after all that. Our RST follows it, as does one
//! for each answer of the server. A server's application that was quicker has seen an empty connection if no data had
//! left; otherwise it sees the first words twice, as it may with TCP Fast Open (RFC 7413 §2.1) and early data (RFC 8446
//! §8). A GET can bear that, a POST cannot (RFC 9110 §9.2.2). Unless its application allows it, a connection with data
//! under way waits for its first path, as TCP would.
//!
//! The first-path policy says where the new connection begins. `as-listed` knows no other path, and waits.

use super::race::Opening;
use super::{Connection, Mode, Role};
use crate::shared::{Route, Shared};
use crate::subflow::State;
use anabranch_policy::Event as PolicyEvent;
use anabranch_units::{Duration, Instant};
use anabranch_wire::{MpOption, ResetReason};

/// A connection begins anew at most so often.
const MAX_REOPENINGS: u32 = 3;
/// Timeouts of the first path after which nothing more is expected of it.
const TIMEOUTS: u64 = 2;

/// Progress towards a new beginning.
#[derive(Default)]
pub(super) struct Reopening {
    /// The application can bear to have its first words arrive twice.
    replayable: bool,
    /// New beginnings so far.
    count: u32,
    /// The server has refused a join; when the first path will have been silent for long enough.
    due: Option<Instant>,
}

impl Reopening {
    /// Tells whether the connection has begun anew.
    pub(super) fn has_happened(&self) -> bool {
        self.count > 0
    }

    /// Time at which the first path will have been silent for long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

impl Connection {
    /// Allows data written before the peer's first answer to reach its application twice.
    pub(crate) fn set_replayable(&mut self) {
        self.paths.reopening.replayable = true;
    }

    /// The server has refused a join.
    pub(super) fn on_join_refused(&mut self, now: Instant, shared: &mut Shared) {
        let Some(first) = self.subflows.initial().filter(|_| self.may_reopen()) else { return };
        let is_down = shared.down.contains(&first.flow.src);
        let silent: Duration = first.tx.rtt.rto() * TIMEOUTS;
        self.paths.reopening.due = Some(if is_down { now } else { (first.liveness.heard + silent).max(now) });
        self.on_reopening_deadline(now, shared);
    }

    /// The first path has had its time.
    pub(super) fn on_reopening_deadline(&mut self, now: Instant, shared: &mut Shared) {
        if self.paths.reopening.due.take_if(|due| *due <= now).is_some() && self.may_reopen() {
            self.reopen(now, shared);
        }
    }

    /// True if no data can have reached the server's application, or may reach it twice.
    fn may_reopen(&self) -> bool {
        let unheard = self.role == Role::Client
            && self.life.mode() == Mode::Multipath
            && !self.life.is_confirmed()
            && !self.life.is_gone()
            && !self.life.is_fast_closing()
            && self.receiver.next() == 0;
        let Some(first) = self.subflows.initial().filter(|_| unheard) else { return false };
        // A path that has answered since the handshake is not the one that loses the keys: a box drops them.
        let answered = first.opened_at.is_some_and(|at| first.liveness.heard > at);
        let silent = !answered && first.tx.recovery.snd_una() <= 1 && first.rx.peer_fin.is_none();
        let harmless = first.tx.recovery.snd_nxt() <= 1 || self.paths.reopening.replayable;
        // A join that was answered shows that the server has the keys.
        let alone = self.subflows.iter().all(|subflow| !subflow.is_join() || subflow.state == State::SynSent);
        silent && harmless && alone && self.paths.reopening.count < MAX_REOPENINGS
    }

    fn reopen(&mut self, now: Instant, shared: &mut Shared) {
        let Some((remote, first)) = self.paths.first_remote.zip(self.subflows.initial().map(|first| first.flow)) else {
            return;
        };
        shared.memory.on_silence(now, &first);
        let opening = Opening::plan(now, first.src, remote, shared);
        let Some(opening) = opening.filter(|opening| opening.local() != first.src) else { return };

        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            let close = self.keys.remote.map(|receiver_key| MpOption::FastClose { receiver_key });
            let options = close.into_iter().chain([shared.reset_option(ResetReason::UnacceptablePerformance)]);
            self.send_reset(now, slot, options.collect(), shared);
            shared.routes.push(Route::Remove(self.subflows[slot].flow));
        }
        shared.routes.push(Route::RemoveToken(self.keys.local.token(), self.id));
        shared.counters.reopened += 1;

        let key = shared.new_key();
        let fresh = Connection::new(now, self.id, Role::Client, Mode::Negotiating, key, shared);
        let mut old = std::mem::replace(self, fresh);
        shared.routes.push(Route::AddToken(self.keys.local.token(), self.id));
        self.paths.first_remote = Some(remote);
        self.paths.reopening =
            Reopening { count: old.paths.reopening.count + 1, due: None, replayable: old.paths.reopening.replayable };
        self.timers.user = old.timers.user;
        self.stats = std::mem::take(&mut old.stats);
        self.stats.ended = None;
        let end = old.sender.outgoing.buffer.end();
        self.sender.outgoing.buffer = std::mem::take(&mut old.sender.outgoing.buffer);
        self.sender.outgoing.unsent.insert(0, end);
        self.sender.outgoing.fin = old.sender.outgoing.fin;
        self.sender.outgoing.writer_waits = old.sender.outgoing.writer_waits;
        if end > 0 {
            self.sender.scheduler.observe(now, &PolicyEvent::DataWritten);
        }
        self.start_race(now, opening, shared);
    }
}
