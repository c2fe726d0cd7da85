//! Anabranch: each segment leaves where it should arrive first, by windows, rates, losses and what is under way.
//!
//! Ours; `docs/anabranch-scheduler.md` derives it. Let `d_s` be the time that the next segment on subflow `s` needs to
//! arrive, and `D_f(x)` how many bytes of new data subflow `f` would bring to the receiver within `x` if it had all of
//! them. Of the subflows with room, in the order of `d_s`, the first for which something is left takes it:
//! ```text
//! skip_s = Σ_f D_f(d_s)   over all other subflows f with d_f < d_s
//! ```
//! It begins behind `skip_s` unsent bytes, which arrive earlier elsewhere, and is silent if there are no more. Nothing
//! is bound to a subflow before it leaves, so a wrong forecast costs no more than the segments that followed it.
//!
//! Both numbers know two limits. The first is the path's rate `c`, if ACKs that came while a queue stood have shown it
//! ([`SubflowView::path_rate`]). Of what is in flight, the link has taken no more than it can since the oldest of it
//! left, and none of what fits into the path stands in its queue:
//! ```text
//! queue  = in_flight - c · min(now - oldest_sent, rtt_min)
//! d_s    = max(srtt/2, rtt_min/2 + (queue + mss)/c) + 3/2 · loss · srtt
//! D_f(x) ≤ c · (x - rtt_min/2) - queue
//! ```
//! The second is the congestion window: what is free of it leaves now, as much as is in flight when its acknowledgments
//! are due, then whole windows, and all of that doubled in slow start while no queue is seen.
//!
//! A silent subflow ([`SubflowView::silent_from`]), whose acknowledgments fail to come, brings nothing, and its `d_s`
//! is later by its timeout.

use super::skip::whole_segments;
use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::{Decision, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "anabranch",
    "each segment where it is expected to arrive first, by windows, rates, losses and data in flight",
    include_str!("anabranch.rs"),
    |p| Box::new(Anabranch::new(p)),
)
.parameters(&[DOUBLINGS.parameter()]);

/// Earliest arrival by windows, rates and losses.
pub struct Anabranch {
    /// Rounds of slow start that a forecast counts on.
    doublings: u32,
}

impl Anabranch {
    /// Reads the numbers from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Anabranch { doublings: DOUBLINGS.of(parameters) as u32 }
    }

    /// Bytes at the front of the unsent data that others bring within `delay` seconds.
    fn skip(&self, now: Instant, slow: &SubflowView, delay: f64, view: &View<'_>) -> Bytes {
        let others = view.subflows.iter().filter(|other| other.id != slow.id && other.open && !other.share.is_zero());
        let earlier = others.map(|other| Path::of(now, other)).filter(|path| path.delay < delay);
        let bytes: f64 = earlier.map(|path| path.brings(delay, self.doublings)).sum();
        whole_segments(bytes / slow.mss.get().max(1) as f64, slow.mss)
    }
}

impl Scheduler for Anabranch {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        if view.sendable.is_zero() {
            return Decision::WAIT;
        }
        let mut asked = None;
        while let Some((delay, subflow)) = next_with_room(now, view, asked) {
            let skip = self.skip(now, subflow, delay, view);
            if view.admits(skip, subflow.mss) {
                return Decision::Send { on: subflow.id, skip };
            }
            asked = Some((delay, subflow.id));
        }
        match view.fastest_with_room() {
            Some(fastest) if !view.subflows.iter().any(ack_due) => Decision::send(fastest.id),
            _ => Decision::Wait { until: next_silence(now, view) },
        }
    }
}

/// Time at which the next subflow with anything under way falls silent.
fn next_silence(now: Instant, view: &View<'_>) -> Option<Instant> {
    let silences = view.subflows.iter().filter_map(SubflowView::silent_from).filter(|from| *from >= now);
    silences.min().map(|from| from + Duration::from_nanos(1))
}

/// Returns the first subflow with room behind `asked`, by the time that a segment needs, then by id.
fn next_with_room<'a>(
    now: Instant,
    view: &View<'a>,
    asked: Option<(f64, SubflowId)>,
) -> Option<(f64, &'a SubflowView)> {
    let mut next: Option<(f64, &SubflowView)> = None;
    for subflow in view.subflows.iter().filter(|subflow| subflow.has_room()) {
        let key = (Path::of(now, subflow).delay, subflow.id);
        if asked.is_none_or(|asked| key > asked) && next.is_none_or(|(delay, next)| key < (delay, next.id)) {
            next = Some((key.0, subflow));
        }
    }
    next
}

/// Forecast of one subflow; times in seconds from now, amounts in bytes.
struct Path<'a> {
    subflow: &'a SubflowView,
    /// Round-trip time of a segment that leaves now.
    rtt: f64,
    /// Time from the sending of data to their arrival, without what stands before them now.
    way: f64,
    /// Time that a segment which leaves now needs to arrive.
    delay: f64,
    /// Half of the smallest RTT.
    half: f64,
    /// Times at which the oldest and the latest data in flight are expected to be acknowledged.
    due: (f64, f64),
    /// Bytes per second; infinite while unknown.
    rate: f64,
    /// Bytes under way that the link has not taken yet.
    queue: f64,
    /// Acknowledgments fail to come: the data under way may be lost, and no forecast counts on the subflow.
    silent: bool,
}

impl<'a> Path<'a> {
    fn of(now: Instant, subflow: &'a SubflowView) -> Self {
        let half = subflow.rtt_min.as_secs_f64() / 2.0;
        let rtt = round_trip(now, subflow);
        let seen = subflow.path_rate.map(|rate| rate.as_bps() as f64 / 8.0);
        let rate = seen.filter(|rate| *rate > 0.0).unwrap_or(f64::INFINITY);
        let age = |sent: Option<Instant>| sent.map_or(0.0, |sent| now.since(sent).as_secs_f64());
        let (oldest, latest) = (age(subflow.oldest_sent), age(subflow.last_sent));
        let taken = rate * oldest.min(2.0 * half);
        let queue = if rate.is_finite() { (subflow.in_flight.as_f64() - taken).max(0.0) } else { 0.0 };
        let queued = half + (queue + subflow.mss.as_f64()) / rate;
        let repair = REPAIR * subflow.loss * rtt;
        let way = rtt / 2.0 + repair;
        let silent = subflow.silent_from().is_some_and(|from| now > from);
        let wait = if silent { subflow.rto.as_secs_f64() } else { 0.0 };
        let delay = way.max(queued + repair) + wait;
        let due = ((rtt - oldest).max(0.0), (rtt - latest).max(0.0));
        Path { subflow, rtt, way, delay, half, due, rate, queue, silent }
    }

    /// Bytes of new data that it brings to the receiver within `x` seconds.
    fn brings(&self, x: f64, doublings: u32) -> f64 {
        if self.silent {
            return 0.0;
        }
        let limit = self.rate * (x - self.half) - self.queue;
        let sent = self.sends(x - self.way, doublings);
        sent.min(limit).max(0.0)
    }

    /// Bytes of new data that its window lets leave within `x` seconds.
    fn sends(&self, x: f64, doublings: u32) -> f64 {
        if x < 0.0 {
            return 0.0;
        }
        let (mss, cwnd) = (self.subflow.mss.as_f64(), self.subflow.cwnd.as_f64());
        let (room, flight) = (self.subflow.room().as_f64(), self.subflow.in_flight.as_f64());
        let below = self.subflow.ssthresh.is_none_or(|ssthresh| self.subflow.cwnd < ssthresh);
        let growth = if below && !has_queue(self.subflow) { 2.0 } else { 1.0 };
        // The round under way: what is free leaves now, the rest by the clock of its acknowledgments.
        let (first, last) = self.due;
        let mut sent = room + growth * flight * part(x, first, last - first);
        // Bytes that leave now free their room a round later, and from then on everything repeats.
        let ceiling = self.subflow.ssthresh.map_or(f64::INFINITY, |ssthresh| ssthresh.as_f64().max(cwnd));
        let spread = (cwnd / self.rate).min(self.rtt);
        let mut window = cwnd;
        let mut start = self.rtt;
        for round in 1.. {
            if x < start || round > ROUNDS {
                break;
            }
            let grown = if growth > 1.0 && round <= doublings { (2.0 * window).min(ceiling) } else { window };
            window = if growth > 1.0 { grown } else { window + mss };
            let repeated = if round == 1 { (window - growth * flight).max(0.0) } else { window };
            sent += repeated * part(x, start, spread);
            start += self.rtt;
        }
        if x >= start { sent + window * (x - start) / self.rtt } else { sent }
    }
}

/// The part of what leaves from `start` on for `spread` seconds that has left by `x`.
fn part(x: f64, start: f64, spread: f64) -> f64 {
    if x < start {
        0.0
    } else if spread <= 0.0 {
        1.0
    } else {
        ((x - start) / spread).min(1.0)
    }
}

/// Round-trip time of a segment that leaves now: the queue of a subflow that has been silent for a timeout is gone.
fn round_trip(now: Instant, subflow: &SubflowView) -> f64 {
    let idle = subflow.in_flight.is_zero() && subflow.last_sent.is_none_or(|at| now.since(at) > subflow.rto);
    let rtt = if idle { subflow.rtt_min } else { subflow.srtt };
    rtt.max(TICK).as_secs_f64()
}

/// Returns true if the path's queue has grown, so that slow start will end.
fn has_queue(subflow: &SubflowView) -> bool {
    subflow.srtt > subflow.rtt_min + subflow.rtt_min / 4 + Duration::from_millis(1)
}

/// No path is shorter.
const TICK: Duration = Duration::from_micros(1);
/// Round trips that a lost segment comes later, where others behind it show the loss.
const REPAIR: f64 = 1.5;
/// Rounds that a forecast looks into one by one.
const ROUNDS: u32 = 16;
const DOUBLINGS: Number = number("doublings", "rounds of slow start that a forecast counts on", 2.0, 0.0..=30.0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;
    use crate::scheduler::SCHEDULERS;
    use crate::scheduler::testing::*;
    use anabranch_units::Rate;

    fn anabranch() -> Box<dyn Scheduler> {
        let entry = find(SCHEDULERS, "scheduler", "anabranch").expect("it is in the table");
        entry.build(&entry.params(&[].into()).expect("the defaults")).policy
    }

    fn send(on: SubflowId, skip: u64) -> Decision {
        Decision::Send { on, skip: segments(skip) }
    }

    /// 20 ms with a full window of ten that left at 0 ms, and 90 ms with nothing under way.
    fn pair() -> [SubflowView; 2] {
        let fast = subflow(FAST, 20, 10, 10);
        [SubflowView { oldest_sent: Some(at(0)), last_sent: Some(at(0)), ..fast }, subflow(SLOW, 90, 10, 0)]
    }

    /// Wait until the fast subflow of [`pair`] falls silent: 20 ms and the least variation after 0.
    const WAIT: Decision = Decision::Wait { until: Some(Instant::from_nanos(24_000_001)) };

    /// ACKs at 5 ms are due in 15 ms and let 20 segments leave, there at 30 ms; later ones are too late for 50.
    #[test]
    fn skips_what_arrives_earlier_by_the_clock_of_the_acknowledgments() {
        assert_eq!(anabranch().decide(at(5), &view(&pair(), 500)), send(SLOW, 20));
        assert_eq!(anabranch().decide(at(5), &view(&pair(), 21)), send(SLOW, 20));
        assert_eq!(anabranch().decide(at(5), &view(&pair(), 20)), WAIT);
        // In congestion avoidance ten follow, and one more as a round later the window has grown.
        let [fast, slow] = pair();
        let avoids = SubflowView { ssthresh: Some(segments(5)), ..fast };
        assert_eq!(anabranch().decide(at(5), &view(&[avoids, slow], 500)), send(SLOW, 11));
    }

    /// 400 bytes/ms: after 5 ms 8,000 of 10,000 bytes are queued; in 45 ms, of which 10 are the way, 14,000 arrive.
    #[test]
    fn a_known_rate_bounds_what_the_window_promises() {
        let [fast, slow] = pair();
        let limited = SubflowView { path_rate: Some(Rate::from_bps(3_200_000)), ..fast };
        assert_eq!(anabranch().decide(at(5), &view(&[limited, slow], 500)), send(SLOW, 6));
    }

    /// 10 ms but 1 Mbit/s: the sixth segment is there after 53 ms, over the path of 60 ms after 30.
    #[test]
    fn a_short_round_trip_is_no_advantage_on_a_slow_link() {
        let narrow = SubflowView {
            path_rate: Some(Rate::from_bps(1_000_000)),
            oldest_sent: Some(at(0)),
            last_sent: Some(at(0)),
            ..subflow(FAST, 10, 10, 5)
        };
        let subflows = [narrow, subflow(SLOW, 60, 10, 0)];
        assert_eq!(anabranch().decide(at(0), &view(&subflows, 2)), send(SLOW, 0));
        let unknown = [SubflowView { path_rate: None, ..narrow }, subflows[1]];
        assert_eq!(anabranch().decide(at(0), &view(&unknown, 2)), send(FAST, 0));
    }

    #[test]
    fn a_path_that_loses_delivers_later() {
        let losing = SubflowView { loss: 0.1, ..subflow(FAST, 20, 10, 0) }; // 10 + 3 ms
        assert_eq!(anabranch().decide(at(0), &view(&[losing, subflow(SLOW, 22, 10, 0)], 9)), send(SLOW, 0));
        assert_eq!(anabranch().decide(at(0), &view(&[losing, subflow(SLOW, 28, 10, 0)], 9)), send(FAST, 0));
    }

    #[test]
    fn the_queue_of_a_silent_path_is_gone_after_a_timeout() {
        let queued = SubflowView {
            rtt_min: Duration::from_millis(20),
            last_sent: Some(at(0)),
            ..subflow(FAST, 100, 10, 0) // its timeout is 300 ms
        };
        let subflows = [queued, subflow(SLOW, 60, 10, 0)];
        assert_eq!(anabranch().decide(at(300), &view(&subflows, 9)), send(SLOW, 0));
        assert_eq!(anabranch().decide(at(301), &view(&subflows, 9)), send(FAST, 0));
    }

    #[test]
    fn silence_ends_where_no_acknowledgment_is_due() {
        let throttled = SubflowView { throttled: true, ..subflow(FAST, 20, 10, 0) };
        assert_eq!(anabranch().decide(at(0), &view(&[throttled, subflow(SLOW, 90, 10, 0)], 9)), send(SLOW, 0));
    }

    /// Something left at 0 ms and nothing came: after 24 ms, of which 4 are the least variation, it is not waited for.
    #[test]
    fn what_a_silent_path_would_bring_is_not_waited_for() {
        let [fast, slow] = pair();
        let ask = |ms: u64, heard: u64| {
            anabranch().decide(at(ms), &view(&[SubflowView { heard: at(heard), ..fast }, slow], 20))
        };
        assert_eq!(ask(24, 0), WAIT);
        assert_eq!(ask(25, 0), send(SLOW, 0));
        assert!(matches!(ask(25, 20), Decision::Wait { .. }), "something came");
        // With room, it is asked last.
        let room = SubflowView { in_flight: segments(1), ..fast };
        assert_eq!(anabranch().decide(at(25), &view(&[room, slow], 20)), send(SLOW, 0));
    }

    #[test]
    fn only_paths_that_may_carry_new_data_are_counted_on() {
        let [fast, slow] = pair();
        for barred in [SubflowView { open: false, ..fast }, SubflowView { share: Bytes::ZERO, ..fast }] {
            assert_eq!(anabranch().decide(at(5), &view(&[barred, slow], 9)), send(SLOW, 0));
        }
    }
}
