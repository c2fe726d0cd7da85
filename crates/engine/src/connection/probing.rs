//! Probes of the paths, for an ACK path policy that asks for them: echo requests in rounds, while data arrives.
//!
//! A round is sent at once and judged when its replies must be there: after twice the longest round trip known, and
//! before the next round; or as the next round is sent (`judged_late`). What counts is the fastest reply of each path
//! since the last verdict. A path is down if none has come and there were probes that had half as long again as its
//! latest round trip takes. Probes are sent only to a peer with which ACKs may change paths, and end after ten
//! intervals in which no data arrived.

use super::acks::AckRouting;
use super::slots::Slot;
use super::subflows::Subflows;
use super::{Connection, Mode};
use crate::deadline::earliest;
use crate::shared::Shared;
use crate::subflow::Subflow;
use anabranch_policy::ack_path::Probe;
use anabranch_units::{Duration, Instant, SubflowId};
use anabranch_wire::Echo;

#[derive(Default)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct Prober {
    /// Time of the next round; `None` while no path is probed.
    next: Option<Instant>,
    /// Time at which the latest round is judged.
    verdict: Option<Instant>,
    unanswered: Vec<Unanswered>,
    paths: Vec<Known>,
}

#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))]
struct Unanswered {
    sequence: u16,
    subflow: SubflowId,
    at: Instant,
}

/// Result of the probes of a path.
#[cfg_attr(test, derive(Debug))]
struct Known {
    subflow: SubflowId,
    /// The fastest reply since the last verdict.
    best: Option<Duration>,
    /// The latest reply.
    last: Option<Duration>,
}

/// Rounds after which a reply is not waited for any more.
const PATIENCE: u64 = 8;
/// Intervals without data after which probing ends.
const IDLE: u64 = 10;
/// Shortest time from a round to its verdict.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

impl Prober {
    /// Time at which a round is sent or judged.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        earliest([self.next, self.verdict])
    }
}

impl Prober {
    /// The latest round trip of a subflow's path, by probes or else by the subflow itself.
    fn round_trip(&self, subflow: &Subflow) -> Option<Duration> {
        let known = self.paths.iter().find(|known| known.subflow == subflow.id);
        known.and_then(|known| known.last).or(subflow.tx.rtt.srtt())
    }

    /// Takes the answer to a probe of ours, if the sequence number and the addresses say so.
    fn on_reply(&mut self, now: Instant, echo: &Echo, subflows: &Subflows) {
        let ours = |probe: &Unanswered| {
            probe.sequence == echo.sequence
                && subflows.iter().any(|subflow| {
                    subflow.id == probe.subflow
                        && (subflow.flow.src, subflow.flow.dst) == (echo.destination, echo.source)
                })
        };
        let Some(at) = self.unanswered.iter().position(ours) else { return };
        let probe = self.unanswered.swap_remove(at);
        let trip = now.since(probe.at);
        let paths = &mut self.paths;
        let position = paths.iter().position(|known| known.subflow == probe.subflow).unwrap_or_else(|| {
            paths.push(Known { subflow: probe.subflow, best: None, last: None });
            paths.len() - 1
        });
        let known = &mut paths[position];
        known.last = Some(trip);
        known.best = Some(known.best.map_or(trip, |best| best.min(trip)));
    }

    /// Ends a round and judges the open `subflows`; `interval` is the longest time that a reply takes where no round
    /// trip is known.
    fn judge(&mut self, now: Instant, interval: Duration, subflows: &Subflows) -> Vec<Probe> {
        let mut round = Vec::with_capacity(subflows.len());
        for subflow in subflows.iter().filter(|subflow| subflow.is_open()) {
            let enough = self.round_trip(subflow).map_or(interval, |trip| trip + trip / 2);
            let known = self.paths.iter_mut().find(|known| known.subflow == subflow.id);
            let best = known.and_then(|known| known.best.take());
            let overdue = |probe: &Unanswered| probe.subflow == subflow.id && now.since(probe.at) >= enough;
            let down = best.is_none() && self.unanswered.iter().any(overdue);
            round.push(Probe { id: subflow.id, best, down });
        }
        self.paths.retain(|known| round.iter().any(|probe| probe.id == known.subflow));
        round
    }
}

impl AckRouting {
    /// Tells the policy of the round that has ended.
    fn judge_round(&mut self, now: Instant, subflows: &Subflows) {
        let interval = self.policy.probing().map_or(Duration::ZERO, |probing| probing.interval);
        let round = self.prober.judge(now, interval, subflows);
        self.policy.observe(now, &round);
    }
}

impl Connection {
    /// Data has arrived: if the policy wants probes, they begin.
    pub(super) fn wake_prober(&mut self, now: Instant) {
        if self.acks.prober.next.is_none() && self.may_probe() && self.acks.policy.probing().is_some() {
            self.acks.prober.next = Some(now);
        }
    }

    fn may_probe(&self) -> bool {
        self.negotiated.detours && self.life.mode() == Mode::Multipath && self.subflows.open().nth(1).is_some()
    }

    pub(super) fn on_probing_deadline(&mut self, now: Instant, shared: &mut Shared) {
        if self.acks.prober.verdict.is_some_and(|at| at <= now) {
            self.acks.prober.verdict = None;
            self.acks.judge_round(now, &self.subflows);
        }
        if self.acks.prober.next.is_none_or(|at| at > now) {
            return;
        }
        self.acks.prober.next = None;
        let Some(probing) = self.acks.policy.probing().filter(|_| self.may_probe()) else { return };
        let interval = probing.interval.max(SHORTEST_WAIT);
        let latest = self.subflows.iter().filter_map(|subflow| subflow.rx.ack.last_data).max();
        if latest.is_none_or(|latest| now.since(latest) > interval * IDLE) {
            return;
        }
        self.acks.prober.next = Some(now + interval);
        self.acks.prober.unanswered.retain(|probe| now.since(probe.at) < interval * PATIENCE);
        let mut longest = SHORTEST_WAIT;
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            if self.subflows[slot].is_open() {
                longest =
                    longest.max(self.acks.prober.round_trip(&self.subflows[slot]).map_or(interval, |known| known * 2));
                self.probe(now, slot, probing.probes, shared);
            }
        }
        self.acks.prober.verdict = Some(now + if probing.judged_late { interval } else { longest.min(interval) });
    }

    fn probe(&mut self, now: Instant, slot: Slot, probes: u32, shared: &mut Shared) {
        let subflow = &self.subflows[slot];
        for _ in 0..probes {
            // Not counted up: who sees no probe shall not answer it.
            let sequence = shared.chance.next_u32() as u16;
            self.acks.prober.unanswered.push(Unanswered { sequence, subflow: subflow.id, at: now });
            shared.echo(Echo {
                source: subflow.flow.src,
                destination: subflow.flow.dst,
                reply: false,
                identifier: self.id.index() as u16,
                sequence,
            });
            self.stats.probes_sent += 1;
        }
    }

    /// An answer to a probe of ours, if the sequence number and the addresses say so.
    pub(crate) fn on_echo_reply(&mut self, now: Instant, echo: &Echo) {
        self.acks.prober.on_reply(now, echo, &self.subflows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fastest reply counts until the verdict; a path is down if probes are older than one and a half of its round
    /// trips, here 15 ms.
    #[test]
    fn a_path_is_down_once_its_probes_are_overdue() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut subflows = Subflows::default();
        let slot = subflows.push(Subflow::sample(3, Duration::from_millis(50)));
        let (id, flow) = (subflows[slot].id, subflows[slot].flow);
        let mut prober = Prober::default();
        let ask = |prober: &mut Prober, sequence, ms| {
            prober.unanswered.push(Unanswered { sequence, subflow: id, at: at(ms) });
        };
        let echo = |sequence| Echo { source: flow.dst, destination: flow.src, reply: true, identifier: 0, sequence };
        let judge = |prober: &mut Prober, ms| {
            let round = prober.judge(at(ms), Duration::from_secs(1), &subflows);
            round.iter().map(|probe| (probe.best, probe.down)).collect::<Vec<_>>()
        };
        [1, 2].into_iter().for_each(|sequence| ask(&mut prober, sequence, 0));
        prober.on_reply(at(12), &echo(1), &subflows);
        prober.on_reply(at(22), &echo(7), &subflows);
        prober.on_reply(at(10), &echo(2), &subflows);
        assert_eq!(judge(&mut prober, 20), [(Some(Duration::from_millis(10)), false)]);
        ask(&mut prober, 3, 100);
        assert_eq!(judge(&mut prober, 114), [(None, false)]);
        assert_eq!(judge(&mut prober, 115), [(None, true)]);
    }
}
