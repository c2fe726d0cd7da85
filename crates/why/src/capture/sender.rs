//! The sender's end of one subflow, as its packets show it: what is in flight, what is lost, which window binds.

use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
use anabranch_wire::Flags;

/// A data packet of the sender, by what set it off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sending {
    /// Time \[ns\].
    pub at: u64,
    /// Index among the packets of the flow.
    pub index: usize,
    /// An acknowledgment came on this subflow just before.
    pub by_own: bool,
    /// Something came on another subflow just before.
    pub by_other: bool,
}

/// An acknowledgment that reaches the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub at: u64,
    /// Time of the next acknowledgment, this or a later one, that set off nothing on the subflow.
    pub idle_at: u64,
}

/// Timeline of one subflow at the sender, known in advance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub sendings: Vec<Sending>,
    pub answers: Vec<Answer>,
    /// The sender's end was captured.
    pub seen: bool,
    /// The next of each.
    pub next_sending: usize,
    pub next_answer: usize,
}

impl Timeline {
    /// Timelines of all flows; `side` sends, and reacts within `reaction`.
    pub(crate) fn of_all(flows: &[FlowPicture], side: usize, reaction: u64) -> Vec<Timeline> {
        let came = |flow: &FlowPicture| {
            let mut times: Vec<u64> = flow.packets[1 - side].iter().map(|it| it.arrived).collect();
            times.retain(|at| *at != NEVER);
            times.sort_unstable();
            times
        };
        let all: Vec<Vec<u64>> = flows.iter().map(came).collect();
        let just_before = |times: &[u64], at: u64| {
            let next = times.partition_point(|time| *time <= at);
            next > 0 && at - times[next - 1] <= reaction
        };
        let mut timelines: Vec<Timeline> = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            // Where the sender's end was not captured, times are too rough to tell what set off what.
            let seen = if side == 0 { flow.seen.own } else { flow.seen.other };
            let mut timeline = Timeline { seen, ..Timeline::default() };
            for (index, it) in flow.packets[side].iter().enumerate().filter(|(_, it)| it.length > 0) {
                let others = || all.iter().enumerate().filter(|(other, _)| *other != number);
                timeline.sendings.push(Sending {
                    at: it.sent,
                    index,
                    by_own: !seen || just_before(&all[number], it.sent),
                    by_other: others().any(|(_, times)| just_before(times, it.sent)),
                });
            }
            let mut idle_at = NEVER;
            for &at in all[number].iter().rev() {
                let next = timeline.sendings.partition_point(|sending| sending.at < at);
                let sets_off = timeline.sendings.get(next).is_some_and(|sending| sending.at - at <= reaction);
                if !sets_off && seen {
                    idle_at = at;
                }
                timeline.answers.push(Answer { at, idle_at });
            }
            timeline.answers.reverse();
            timelines.push(timeline);
        }
        timelines
    }

    /// Moves to the time `now`.
    pub(crate) fn advance(&mut self, now: u64) {
        while self.sendings.get(self.next_sending).is_some_and(|sending| sending.at <= now) {
            self.next_sending += 1;
        }
        while self.answers.get(self.next_answer).is_some_and(|answer| answer.at <= now) {
            self.next_answer += 1;
        }
    }

    pub(crate) fn upcoming(&self) -> Option<&Sending> {
        self.sendings.get(self.next_sending)
    }

    /// Time of the next acknowledgment that sets off nothing.
    pub(crate) fn next_idle(&self) -> u64 {
        self.answers.get(self.next_answer).map_or(NEVER, |answer| answer.idle_at)
    }
}

/// State of recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// Repairs losses that acknowledgments told of, up to this position.
    Recovery(i64),
    /// Repairs after a timeout, up to this position.
    Loss(i64),
}

/// State of the sender's end of one subflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender {
    pub una: i64,
    pub nxt: i64,
    /// Ranges above `una` that arrived, in order, none touching another.
    sacked: Vec<(i64, i64)>,
    /// Bytes sent again since recovery began, below the highest range that arrived.
    again: i64,
    pub phase: Phase,
    /// Estimate of the congestion window: what was in flight when the subflow had to wait for an acknowledgment.
    pub window: i64,
    /// True while the window grows as in slow start.
    pub grows: bool,
    /// Window at which slow start ends after a timeout, if one is known.
    threshold: Option<i64>,
    pub mss: i64,
    pub timeouts: u64,
    pub heard: u64,
    last_sent: u64,
    /// Segments that were sent again as probes since the peer was last heard of.
    probes: u32,
    /// This round of growth: the position that ends it, bytes acknowledged and sent in it.
    round: (i64, i64, i64),
    duplicates: u32,
    /// True if data ran out in this round: it then tells nothing about growth.
    pub starved: bool,
    /// Bytes sent in this round that an acknowledgment set off.
    own: i64,
    /// Rounds in a row in which the window did not grow as in slow start.
    slow_rounds: u32,
    /// Something was sent again.
    repeated: bool,
    /// Window at which the first slow start ended while nothing had been lost; 0 if it did not end so.
    pub settled: i64,
}

impl Sender {
    pub(crate) fn new() -> Self {
        Sender { una: 1, nxt: 1, grows: true, ..Sender::default() }
    }

    /// Bytes in flight.
    pub(crate) fn flight(&self) -> i64 {
        let arrived: i64 = self.sacked.iter().map(|(from, to)| to - from).sum();
        (self.nxt - self.una - arrived - self.lost()).max(0)
    }

    /// Bytes taken for lost and not sent again: holes well below the highest range that arrived (RFC 6675).
    fn lost(&self) -> i64 {
        if let Phase::Loss(_) = self.phase {
            return (self.nxt - self.una - self.again).max(0);
        }
        let Some((_, high)) = self.sacked.last() else { return 0 };
        let limit = high - 3 * self.mss;
        let mut holes = 0;
        let mut from = self.una;
        for (start, end) in &self.sacked {
            holes += (*start).min(limit).saturating_sub(from).max(0);
            from = *end;
        }
        (holes - self.again).max(0)
    }

    /// A data packet leaves. Returns true if it is the first sending of some byte.
    pub(crate) fn send(&mut self, it: &Packet, sending: &Sending, rtt: u64) -> bool {
        self.mss = self.mss.max(it.length);
        let idle = it.sent.saturating_sub(self.heard.max(self.last_sent));
        if self.una >= self.nxt && self.last_sent > 0 && idle > LEAST_TIMEOUT.max(rtt + rtt / 4) {
            // After a pause the window begins anew, and grows fast up to three quarters of what it was (RFC 7661).
            self.threshold = self.threshold.max(Some(self.window / 4 * 3));
            self.window = self.window.min(10 * self.mss);
            self.grows = self.grows || self.threshold.is_none_or(|threshold| threshold > self.window);
        }
        let fresh = it.end() > self.nxt;
        if fresh {
            self.nxt = it.end();
        } else {
            self.repeat(it, sending, rtt);
        }
        self.last_sent = it.sent;
        self.round.2 += it.length;
        if sending.by_own {
            self.own += it.length;
        }
        let flight = self.flight();
        if sending.by_own {
            self.window = if self.window == 0 { flight } else { flight.max(self.window / 2) };
        } else {
            self.window = self.window.max(flight);
        }
        fresh
    }

    fn repeat(&mut self, it: &Packet, sending: &Sending, rtt: u64) {
        self.repeated = true;
        let silence = it.sent - self.heard.max(self.last_sent).min(it.sent);
        let first = it.seq <= self.una;
        let probe = it.end() >= self.nxt && self.probes == 0;
        let late = silence >= LEAST_TIMEOUT.max(rtt / 2);
        if first && !sending.by_own && late && !probe {
            // RTO: everything in flight counts as lost, and the window begins anew (RFC 5681 §3.1).
            self.timeouts += 1;
            if !matches!(self.phase, Phase::Loss(_)) {
                self.threshold = Some((self.flight() / 2).max(2 * self.mss));
            }
            self.phase = Phase::Loss(self.nxt);
            self.grows = true;
            self.again = 0;
            self.window = self.mss;
        } else if !sending.by_own && late && probe {
            self.probes += 1;
        } else if self.phase == Phase::Open {
            self.phase = Phase::Recovery(self.nxt);
            self.grows = false;
            self.again = 0;
        }
        self.again += it.length;
    }

    /// A packet of the peer arrives.
    pub(crate) fn hear(&mut self, it: &Packet) {
        self.heard = self.heard.max(it.arrived);
        if it.ack == UNKNOWN || it.is(Flags::RST) {
            return;
        }
        if let Some((from, to)) = it.sack.filter(|(from, to)| from < to && *to <= self.nxt && *from > self.una) {
            self.insert(from, to);
        }
        if it.ack <= self.una {
            self.duplicates += u32::from(it.length == 0);
            return;
        }
        self.duplicates = 0;
        self.probes = 0;
        let acked = it.ack - self.una;
        self.una = it.ack.min(self.nxt.max(it.ack));
        self.nxt = self.nxt.max(self.una);
        self.sacked.retain_mut(|(from, to)| {
            *from = (*from).max(it.ack);
            from < to
        });
        self.again = (self.again - acked).max(0);
        if let Phase::Recovery(until) | Phase::Loss(until) = self.phase
            && self.una >= until
        {
            self.phase = Phase::Open;
            self.again = 0;
        }
        self.round.1 += acked;
        if self.una >= self.round.0 {
            self.end_round();
        }
    }

    /// A round trip is over: in slow start as much again was sent as was acknowledged.
    fn end_round(&mut self) {
        let (_, acked, sent) = self.round;
        let limited = self.own >= sent / 10 * 9 && !self.starved;
        (self.own, self.starved) = (0, false);
        if self.grows && self.phase == Phase::Open && acked >= 4 * self.mss && limited {
            let doubling = sent as f64 >= GROWTH * acked as f64;
            let over = self.threshold.is_some_and(|threshold| self.window > threshold);
            if !doubling || over {
                self.slow_rounds += 1;
            } else {
                self.slow_rounds = 0;
            }
            if over || self.slow_rounds >= 2 {
                self.grows = false;
                let untroubled = self.settled == 0 && !self.repeated && self.threshold.is_none();
                self.settled = if untroubled { self.window } else { self.settled };
            }
        }
        self.round = (self.nxt, 0, 0);
    }

    fn insert(&mut self, mut from: i64, mut to: i64) {
        if self.sacked.len() >= MOST_RANGES {
            return;
        }
        let first = self.sacked.partition_point(|(_, end)| *end < from);
        let mut last = first;
        while last < self.sacked.len() && self.sacked[last].0 <= to {
            from = from.min(self.sacked[last].0);
            to = to.max(self.sacked[last].1);
            last += 1;
        }
        self.sacked.splice(first..last, [(from, to)]);
    }

    /// True while holes are repaired.
    pub(crate) fn recovers(&self) -> bool {
        self.phase != Phase::Open || !self.sacked.is_empty() || self.duplicates >= 3
    }
}

/// Ranges out of order that are followed. A window with more is no window of a real sender.
const MOST_RANGES: usize = 1024;
/// Bytes sent for each byte acknowledged, from which on a window grows as in slow start.
const GROWTH: f64 = 1.35;
/// No timeout is shorter \[ns\]. Linux has 200 ms.
const LEAST_TIMEOUT: u64 = 150_000_000;
