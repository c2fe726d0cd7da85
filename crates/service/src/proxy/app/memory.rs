//! Memory that sessions hold: counted where it is taken, bounded, and given back.

use super::Proxy;
use crate::proxy::limits::{Admission, Limit};
use crate::proxy::report::Outcome;
use crate::proxy::session::{Session, Stage};
use anabranch_engine::ConnectionId;
use anabranch_host::Context;
use anabranch_units::Duration;
use std::net::SocketAddr;

/// Sessions that are tried again in a round.
const RESUMED: usize = 32;
/// Bytes moved for them in a round.
const ROUND: u64 = 1 << 20;
/// The time that a peer that has finished may take nothing where memory is short.
const GONE: Duration = Duration::from_secs(5);

impl Proxy {
    /// Counts for each session whose engine connection has taken memory or given it back.
    pub(super) fn count_changes(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = cx.endpoint.poll_changed() {
            if let Some(index) = self.owner(id) {
                self.count(cx, index);
                self.part(cx, id, index);
            }
        }
    }

    /// A session is over when both ends have everything. What the engine still has to do then, above all to wait for a
    /// repeated FIN, takes up nothing of a client's limits.
    fn part(&mut self, cx: &mut Context<'_>, id: ConnectionId, index: usize) {
        let Some(session) = self.sessions.get_mut(index).filter(|session| session.connection == Some(id)) else {
            return;
        };
        if session.relay.broken().is_some() {
            // It waits for the peer to have what the socket had sent.
            return self.step(cx, index, |proxy, cx, session| proxy.advance(cx, index, session));
        }
        let relayed = matches!(session.stage, Stage::Relaying) && session.socket.is_none() && session.ending.is_none();
        let load = cx.endpoint.load(id).filter(|load| load.unacknowledged.is_zero() && !load.end_unacknowledged);
        if load.is_none() || !relayed || !session.relay.is_over() {
            return;
        }
        let Some(mut session) = self.sessions.take(index) else { return };
        // Its end is reported for a connection without an owner.
        self.disown(id);
        self.collect(cx, &mut session);
        self.finish(cx, index, session, Outcome::Closed);
    }

    /// Counts what a session holds now. If that exceeds a limit, who holds most has to go.
    pub(super) fn count(&mut self, cx: &mut Context<'_>, index: usize) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if session.admitted.is_err() {
            return;
        }
        let in_engine = session.connection.and_then(|id| cx.endpoint.load(id)).map_or(0, |load| load.held.get());
        let held = in_engine + session.relay.held() as u64;
        let before = std::mem::replace(&mut session.charged, held);
        let client = session.client;
        // Without a connection there is no destination for the data.
        let relays = matches!(session.stage, Stage::Relaying) && session.connection.is_some();
        if relays && session.relay.is_held_back() && !session.waits {
            session.waits = true;
            self.waiting.push_back((index, session.serial));
        }
        if before == held {
            return;
        }
        let exceeded = self.admission.charge(client.ip(), before, held);
        self.ebb.rise(self.admission.held());
        if let Some(limit) = exceeded {
            self.evict(cx, limit, client);
        }
    }

    /// Lets sessions go on that were not read for want of room, as far as there is some, or because it was the turn of
    /// others. It ends before it keeps the device waiting.
    pub(super) fn resume(&mut self, cx: &mut Context<'_>) {
        let before = self.moved();
        let enough = before + ROUND;
        for _ in 0..self.waiting.len().min(RESUMED) {
            if self.moved() >= enough {
                break;
            }
            let Some((index, serial)) = self.waiting.pop_front() else { return };
            let Some(session) = self.sessions.get_mut(index).filter(|session| session.serial == serial) else {
                continue;
            };
            if self.admission.room(session.client.ip(), session.charged) == 0 {
                self.waiting.push_back((index, serial));
                continue;
            }
            session.waits = false;
            self.step(cx, index, |proxy, cx, session| proxy.advance(cx, index, session));
        }
        // Only what gets on keeps the device from resting.
        self.busy = self.moved() > before && !self.waiting.is_empty();
    }

    fn moved(&self) -> u64 {
        self.totals.from_client + self.totals.to_client
    }

    /// Cuts off those who hold most until there is room again: of `client`, if it exceeds its own limit, or else of
    /// whichever client holds most. Connections that have lost all their subflows go first.
    fn evict(&mut self, cx: &mut Context<'_>, limit: Limit, client: SocketAddr) {
        while let Some(offender) = self.admission.offender(limit, client.ip()) {
            let is_theirs = |session: &Session| {
                session.admitted.is_ok() && session.charged > 0 && Admission::is_of(session.client.ip(), offender)
            };
            let worst = self.sessions.iter().filter(|(_, session)| is_theirs(session)).max_by_key(|(_, session)| {
                let load = session.connection.and_then(|id| cx.endpoint.load(id));
                (load.is_some_and(|load| load.subflows == 0), session.charged)
            });
            let Some(index) = worst.map(|(index, _)| index) else { return };
            self.cut(cx, index, limit, "it held the most memory");
        }
    }

    /// When memory is short, closes sessions whose engine side has finished and has read nothing for a while: a program
    /// that has ended looks like that, until its system forgets it.
    pub(super) fn evict_gone(&mut self, cx: &mut Context<'_>) {
        let is_gone = |session: &Session| {
            let load = session.connection.and_then(|id| cx.endpoint.load(id));
            let stuck = load.is_some_and(|load| load.held.get() > 0 && cx.now.since(load.active) >= GONE);
            let parted = session.relay.engine_finished() || load.is_some_and(|load| load.subflows == 0);
            parted && stuck && self.admission.is_short(session.client.ip())
        };
        let gone: Vec<usize> =
            self.sessions.iter().filter(|(_, session)| is_gone(session)).map(|(index, _)| index).collect();
        for index in gone {
            self.cut(cx, index, Limit::ClientMemory, "its peer acknowledges nothing, and memory is short");
        }
    }

    fn cut(&mut self, cx: &mut Context<'_>, index: usize, limit: Limit, why: &str) {
        let Some(mut session) = self.sessions.take(index) else { return };
        *self.totals.evicted.entry(limit).or_default() += 1;
        if let Some(suppressed) = self.evictions.pass(cx.now) {
            let (client, limit, held) = (session.client, limit.name(), session.charged);
            tracing::warn!(target: "anabranch::proxy", %client, limit, held, suppressed, "evicted: {why}");
        }
        session.detail = format!("evicted with {} bytes held: {why}", session.charged);
        self.finish(cx, index, session, Outcome::OutOfMemory);
    }
}

/// Tells when much less is held than was, for a while, so that what the allocator keeps is worth giving back.
#[derive(Default)]
pub(super) struct Ebb {
    /// The most that was held since memory was given back last.
    peak: u64,
    /// The most since the last tick.
    recent: u64,
    /// Ticks in a row for which it was low.
    low: u32,
}

/// Less than this below the peak is not worth it.
const WORTH: u64 = 16 << 20;
/// Ticks that it has to be low for: what is held goes up and down with every round trip.
const TICKS: u32 = 3;

impl Ebb {
    /// Records the bytes held, for the peak.
    pub(super) fn rise(&mut self, held: u64) {
        self.recent = self.recent.max(held);
        self.peak = self.peak.max(held);
    }

    /// Returns true if memory may have to be returned to the system although nothing more happens.
    pub(super) fn is_expected(&self) -> bool {
        self.peak >= WORTH
    }

    /// Ends a tick with the bytes held now; returns true if memory is to be returned to the system.
    pub(super) fn tick(&mut self, held: u64) -> bool {
        let most = std::mem::replace(&mut self.recent, held);
        self.low = if most + WORTH <= self.peak { self.low + 1 } else { 0 };
        if self.low < TICKS {
            return false;
        }
        (self.peak, self.low) = (held, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_when_it_was_low_for_a_while() {
        let mut ebb = Ebb::default();
        ebb.rise(100 << 20);
        assert!(!ebb.tick(90 << 20) && !ebb.tick(10 << 20), "it was high within the first two ticks");
        assert!(!ebb.tick(0) && !ebb.tick(0));
        assert!(ebb.is_expected() && ebb.tick(0));
        assert!(!ebb.is_expected() && (0..10).all(|_| !ebb.tick(0)), "once");
        ebb.rise(100 << 20);
        for _ in 0..10 {
            ebb.rise(95 << 20);
            assert!(!ebb.tick(1 << 20), "it only swings");
        }
    }
}
