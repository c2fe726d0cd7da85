//! The race for the first subflow (RFC 8305 §5): a connection begins where its SYN is answered first.
//!
//! The first-path policy says which of our addresses take part and how their SYNs are spaced. An attempt is an initial
//! subflow of the same connection with a flow of its own, all with the same MP_CAPABLE, which bears no key (RFC 8684
//! §3.1). The first SYN/ACK decides: its subflow becomes the initial one, number 0 with address identifier 0; the
//! others are forgotten, and those that have not begun never do. A SYN/ACK that comes later belongs to nothing and is
//! reset, so that the peer, which has a half-open connection for it and no more, drops that: its application never
//! hears of it; its round trip is remembered. Later the path is joined like any other.
//!
//! An attempt repeats its SYN as a lone one would, and is itself the judge of whether MP_CAPABLE gets through there.
//! With MPTCP stripped from the first answer the connection is plain TCP on that path. Without MPTCP there is no race:
//! nothing could make use of the other paths.

use super::slots::Slot;
use super::{Connection, Mode};
use crate::limits::MAX_SUBFLOWS;
use crate::memory::Offer;
use crate::shared::{Route, Shared};
use crate::subflow::{Origin, State};
use crate::{Ended, Event};
use anabranch_policy::first_path::{Candidate, MIN_DELAY};
use anabranch_units::{AddressId, Duration, Instant, SubflowId};
use anabranch_wire::FlowKey;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// SYNs of a connection that have not left.
#[derive(Default)]
pub(super) struct Race {
    /// Our address, and the pause after the attempt before.
    waiting: VecDeque<(IpAddr, Duration)>,
    /// Time at which the latest SYN left.
    latest: Instant,
    /// Time at which the next SYN leaves.
    next: Option<Instant>,
}

impl Race {
    /// Time at which the next SYN leaves.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

/// Start of a connection: its first flow, and the paths to try later.
pub(crate) struct Opening {
    /// The first SYN's flow.
    flow: FlowKey,
    later: VecDeque<(IpAddr, Duration)>,
}

impl Opening {
    /// Asks the policy for an order of our addresses; `local` is the one named by the application. Returns `None` if
    /// all ports of all of them are in use.
    pub(crate) fn plan(now: Instant, local: IpAddr, remote: SocketAddr, shared: &mut Shared) -> Option<Self> {
        if !shared.config.multipath {
            return Some(Opening { flow: shared.free_flow(local, remote)?, later: VecDeque::new() });
        }
        let candidates = candidates(now, local, remote, shared);
        let mut order: Vec<(usize, Duration)> = Vec::new();
        for attempt in (shared.config.policies.first_path)().attempts(&candidates) {
            let is_new = order.iter().all(|(tried, _)| *tried != attempt.candidate);
            if attempt.candidate < candidates.len() && is_new {
                order.push((attempt.candidate, attempt.delay));
            }
        }
        if order.is_empty() {
            order.push((0, Duration::ZERO));
        }
        let mut later: VecDeque<_> = order.iter().map(|(at, delay)| (candidates[*at].local, *delay)).collect();
        // The next one is first where no port is left.
        let flow = std::iter::from_fn(|| later.pop_front()).find_map(|(first, _)| shared.free_flow(first, remote))?;
        Some(Opening { flow, later })
    }

    /// The address from which the first SYN leaves.
    pub(super) fn local(&self) -> IpAddr {
        self.flow.src
    }
}

/// Returns the paths on which a connection to `remote` could begin; the address named by the application comes first.
fn candidates(now: Instant, named: IpAddr, remote: SocketAddr, shared: &Shared) -> Vec<Candidate> {
    let others = shared.locals.iter().map(|(_, address)| address.ip).filter(|ip| *ip != named);
    let others = others.filter(|ip| ip.is_ipv4() == remote.is_ipv4() && !shared.down.contains(ip));
    let candidate = |local: IpAddr| {
        let known = shared.memory.candidate(now, local, remote.ip());
        Candidate {
            backup: shared.locals.is_backup(local),
            dead: known.dead || shared.down.contains(&local),
            truth: shared.truth(&FlowKey::new(SocketAddr::new(local, 0), remote)),
            ..known
        }
    };
    std::iter::once(named).chain(others).take(MAX_SUBFLOWS).map(candidate).collect()
}

impl Connection {
    /// The first attempt leaves; the others follow by timer.
    pub(super) fn start_race(&mut self, now: Instant, opening: Opening, shared: &mut Shared) {
        self.paths.race.waiting = opening.later;
        self.attempt(now, opening.flow, shared);
    }

    fn attempt(&mut self, now: Instant, flow: FlowKey, shared: &mut Shared) {
        let slot = self.add_subflow(now, flow, Origin::Initial, State::SynSent, shared);
        if let Some(longest) = shared.config.mptcp_blackhole.filter(|_| self.life.mode() == Mode::Negotiating) {
            let subflow = &mut self.subflows[slot];
            subflow.offer = shared.memory.offer(now, &flow, longest);
            subflow.gave_up_mptcp = subflow.offer == Offer::Never;
        }
        self.start_handshake(now, slot, shared);
        self.paths.race.latest = now;
        self.paths.race.next = self.paths.race.waiting.front().map(|(_, delay)| now + *delay);
    }

    /// Sends a SYN on the next path, since no path has answered so far.
    pub(super) fn on_race_deadline(&mut self, now: Instant, shared: &mut Shared) {
        self.paths.race.next = None;
        let Some(remote) = self.paths.first_remote else { return };
        while let Some((local, _)) = self.paths.race.waiting.pop_front() {
            // An interface may have gone since the plan was made.
            if shared.locals.contains(local)
                && !shared.down.contains(&local)
                && let Some(flow) = shared.free_flow(local, remote)
            {
                return self.attempt(now, flow, shared);
            }
        }
        if self.subflows.is_empty() {
            // All attempts have failed, and those that were left cannot be made.
            self.stats.ended.get_or_insert(Ended::Unanswered);
            self.finish(Event::Reset, shared);
        }
    }

    /// The SYN of a subflow is answered before all others; its slot from now on.
    pub(super) fn win_race(&mut self, slot: Slot, shared: &mut Shared) -> Slot {
        self.paths.race = Race::default();
        if self.subflows.len() == 1 && self.subflows[slot].id == SubflowId(0) {
            return slot;
        }
        let (slot, losers) = self.subflows.keep_only(slot, SubflowId(0));
        for loser in losers {
            shared.routes.push(Route::Remove(loser.flow));
            // An answer to a SYN that was repeated tells no round trip (RFC 6298 §3).
            if let Some(timer) = loser.handshake.filter(|timer| timer.retries == 0) {
                shared.memory.await_late_answer(loser.flow, loser.tx.seq(1), timer.first_sent);
            }
        }
        let winner = &mut self.subflows[slot];
        shared.routes.push(Route::Remove(winner.flow));
        shared.routes.push(Route::Add(winner.flow, self.id, SubflowId(0)));
        winner.local_address = AddressId(0);
        // Its SYN has arrived, so it has left the first hop; that will not be told under the new number.
        winner.tx.first_hop = 0;
        self.paths.initial_address = Some(winner.flow.src);
        slot
    }

    /// The attempt on the subflow in `slot` has failed. False if it was the last: then the connection has.
    pub(super) fn lose_attempt(&mut self, now: Instant, slot: Slot, shared: &mut Shared) -> bool {
        let alone = self.subflows.len() == 1;
        if alone && self.paths.race.waiting.is_empty() {
            return false;
        }
        let loser = self.subflows.remove(slot);
        shared.routes.push(Route::Remove(loser.flow));
        if alone {
            // Nothing else is under way that could make waiting worthwhile.
            self.paths.race.next = Some((self.paths.race.latest + MIN_DELAY).max(now));
        }
        true
    }
}
