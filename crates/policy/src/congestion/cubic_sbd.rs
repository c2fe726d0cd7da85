//! CUBIC with shared-bottleneck detection: a subflow of its own where the bottleneck is its own, and otherwise a part
//! of one.
//!
//! Ours. Subflows over different bottlenecks are different flows, and each may take what a TCP connection takes there
//! (RFC 6356 §2, goal 1 asks for no less). At one bottleneck all of them together must take no more than one
//! (goal 2). RFC 6356 couples always, since a sender does not know; this control couples where `SharedBottleneck` has
//! found the bottleneck shared (A-SBD).
//!
//! Coupled subflows are one CUBIC in `n` parts (RFC 9438, each with `C/n` and `α/n`). So that a loss costs the whole
//! what it would cost one flow, it is answered by all: each falls to `β` of its window, once in a round trip. Every
//! [`ALONE`]th loss is answered by its own subflow alone, without which nothing more could be learnt of what it does to
//! the others; so is a probe, a fall without a loss that the detector asks for where two have lost together. A subflow
//! that delivered nothing for [`ACTIVE`] is no part. When two are found, each had taken what one flow takes, so each
//! keeps half of its window; CUBIC alone would need minutes for that. If that turns out wrong, slow start brings it
//! back.

use super::shared_bottleneck::SharedBottleneck;
use super::{Ack, Capabilities, CongestionControl, Cubic, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "cubic-sbd",
    "CUBIC on each subflow; those found to share a bottleneck are together worth one",
    include_str!("cubic_sbd.rs"),
    |p| CongestionControl::window_based(CubicSbd::new(Cubic::of(p))),
)
.parameters(Cubic::PARAMETERS)
.capabilities(|_| Capabilities { hystart: true, ..Capabilities::default() });

/// One loss of so many is answered by its own subflow alone.
const ALONE: u32 = 4;
/// Time without a delivery after which a subflow is no part of what shares a bottleneck, and time after which it no
/// longer answers the loss of a partner; two of its round trips at least.
const ACTIVE: Duration = Duration::from_secs(1);

/// CUBIC for every subflow by itself, or for several together.
#[derive(Clone, Debug)]
pub struct CubicSbd {
    cubic: Cubic,
    bottleneck: SharedBottleneck,
    parts: PerFlow<Part>,
    losses: u32,
}

/// State of one subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// The latest delivery.
    delivered: Option<Instant>,
    /// The latest reduction.
    reduced: Option<Instant>,
    /// Time of a partner's loss that the subflow has still to answer.
    owes: Option<Instant>,
    /// Number of subflows found to share its bottleneck, and of all subflows, when its share was set.
    found: (usize, usize),
    /// True if the latest loss was of an event that the subflow had answered, so that its curve did not move.
    unmoved: bool,
}

/// Returns true if a subflow with this round trip still counts what happened at `since`.
fn is_recent(now: Instant, since: Instant, flow: &Flow) -> bool {
    now.since(since) < ACTIVE.max(flow.srtt.unwrap_or(ACTIVE) * 2)
}

impl Part {
    /// Returns true if its window has fallen within this time.
    fn has_answered(&self, now: Instant, within: Duration) -> bool {
        self.reduced.is_some_and(|at| now.since(at) < within)
    }
}

impl CubicSbd {
    /// Couples `cubic`.
    pub fn new(cubic: Cubic) -> Self {
        CubicSbd { cubic, bottleneck: SharedBottleneck::default(), parts: PerFlow::default(), losses: 0 }
    }

    /// The places of those that share a bottleneck with `on`, itself apart, and that deliver.
    fn partners<'a>(&'a self, now: Instant, on: usize, flows: &'a [Flow]) -> impl Iterator<Item = usize> + 'a {
        let active = move |flow: &Flow| {
            let delivered = self.parts.get(flow).and_then(|part| part.delivered);
            flow.counted && delivered.is_some_and(|at| is_recent(now, at, flow))
        };
        flows
            .iter()
            .enumerate()
            .filter(move |(at, flow)| *at != on && self.bottleneck.is_shared(&flows[on], flow) && active(flow))
            .map(|(at, _)| at)
    }

    /// Returns the part of its window that becomes the share of `on` when others are found to share its bottleneck, or
    /// no longer to do so: until then each took what one flow takes, or less.
    fn new_share(&mut self, on: usize, flows: &[Flow]) -> Option<f64> {
        let others = flows.iter().enumerate().filter(|(at, _)| *at != on).map(|(_, flow)| flow);
        let found = others.filter(|other| self.bottleneck.is_shared(&flows[on], other)).count();
        let part = self.parts.of(&flows[on]);
        let (before, of) = std::mem::replace(&mut part.found, (found, flows.len()));
        // One that has left takes nothing along: the others grow into its place.
        let changed = found > before || (found < before && flows.len() >= of);
        changed.then(|| (1 + before) as f64 / (1 + found) as f64)
    }

    /// A loss on `on`: returns true if its window has fallen for it already.
    fn on_loss(&mut self, now: Instant, on: usize, flows: &[Flow]) -> bool {
        let round = |flow: &Flow| flow.srtt.unwrap_or(Duration::ZERO);
        let part = self.parts.of(&flows[on]);
        part.unmoved = part.owes.take().is_none() && part.has_answered(now, round(&flows[on]));
        if part.unmoved {
            return true;
        }
        part.reduced = Some(now);
        self.losses += 1;
        let partners: Vec<usize> = self.partners(now, on, flows).collect();
        let together = !self.losses.is_multiple_of(ALONE);
        for &at in partners.iter().filter(|_| together) {
            let part = self.parts.of(&flows[at]);
            if !part.has_answered(now, round(&flows[on]).max(round(&flows[at]))) {
                part.owes = Some(now);
            }
        }
        self.begin_trial(now, on, flows);
        false
    }

    /// The window of `on` falls: what that does to others is a trial, but for those whose windows fall as well.
    fn begin_trial(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        let parts = &self.parts;
        self.bottleneck.on_loss(now, on, flows, |flow| parts.get(flow).is_some_and(|part| part.owes.is_some()));
    }
}

impl Default for CubicSbd {
    fn default() -> Self {
        CubicSbd::new(Cubic::default())
    }
}

impl WindowBased for CubicSbd {
    fn on_ack(&mut self, now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        let flow = &flows[on];
        if let Some(rtt) = ack.rtt {
            self.bottleneck.on_sample(now, flow, rtt);
        }
        self.parts.of(flow).delivered = Some(now);
        if flow.recovering || ack.in_recovery {
            return None;
        }
        if let Some(share) = self.new_share(on, flows) {
            self.cubic.scale(flow, share);
            // What grows does so by slow start.
            let ssthresh = flow.cwnd * share;
            return Some(WindowUpdate { cwnd: flow.cwnd.min(ssthresh), ssthresh });
        }
        let part = self.parts.of(flow);
        let owes = part.owes.take().is_some_and(|since| is_recent(now, since, flow));
        let probes = !owes && self.bottleneck.takes_probe(flow);
        if !owes && !probes {
            return None;
        }
        part.reduced = Some(now);
        if probes {
            self.begin_trial(now, on, flows);
        }
        let cwnd = self.cubic.on_fast_retransmit(now, on, flow.cwnd, flows);
        Some(WindowUpdate { cwnd, ssthresh: cwnd })
    }

    fn avoidance(&mut self, now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        let parts = 1 + self.partners(now, on, flows).count();
        self.cubic.growth(now, &flows[on], acked, 1.0 / parts as f64)
    }

    fn on_fast_retransmit(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        if self.on_loss(now, on, flows) {
            return flows[on].cwnd;
        }
        self.cubic.on_fast_retransmit(now, on, in_flight, flows)
    }

    /// Answers a mark, which is of the same queue as a loss, by the share that CUBIC gives it.
    fn on_mark(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        if self.on_loss(now, on, flows) {
            return flows[on].cwnd;
        }
        self.cubic.on_mark(now, on, in_flight, flows)
    }

    fn on_rto(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        // What a timeout tells of is no queue, and no reason for others to fall.
        let part = self.parts.of(&flows[on]);
        (part.owes, part.reduced, part.unmoved) = (None, Some(now), false);
        self.cubic.on_rto(now, on, in_flight, flows)
    }

    fn on_rto_again(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.cubic.on_rto_again(now, on, flows);
    }

    fn on_spurious(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        // What was no loss others need not answer.
        flows.iter().for_each(|flow| self.parts.of(flow).owes = None);
        match self.parts.of(&flows[on]).unmoved {
            true => self.cubic.on_reset(now, on, flows),
            false => self.cubic.on_spurious(now, on, flows),
        }
    }

    fn on_unlimited(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.cubic.on_unlimited(now, on, flows);
    }

    fn on_reset(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.cubic.on_reset(now, on, flows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use anabranch_units::{Bytes, SubflowId};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn flows(cwnd: [f64; 2]) -> Vec<Flow> {
        let flow = |(id, cwnd): (u16, f64)| Flow {
            id: SubflowId(id),
            key: FlowKey::nth(id),
            mss: Bytes::new(1),
            cwnd: Window::new(cwnd),
            ssthresh: Window::new(1.0),
            srtt: Some(Duration::from_millis(50)),
            recovering: false,
            counted: true,
        };
        (0..).zip(cwnd).map(flow).collect()
    }

    /// An ACK on each at `ms`, with this round trip; the answers.
    fn acks(sbd: &mut CubicSbd, ms: u64, rtt: u64, flows: &[Flow]) -> [Option<f64>; 2] {
        let ack = Ack { rtt: Some(Duration::from_millis(rtt)), ..Ack::default() };
        [0, 1].map(|on| sbd.on_ack(at(ms), on, &ack, flows).map(|window| window.cwnd.as_f64()))
    }

    fn lose(sbd: &mut CubicSbd, ms: u64, on: usize, flows: &[Flow]) -> f64 {
        sbd.on_fast_retransmit(at(ms), on, flows[on].cwnd, flows).as_f64()
    }

    /// 100 and 60 segments; the queue falls for both by 20 ms, and each is told to keep half of 70 and of 60.
    fn found() -> CubicSbd {
        let mut sbd = CubicSbd::default();
        assert_eq!(lose(&mut sbd, 0, 0, &flows([100.0, 60.0])), 70.0);
        let flows = flows([70.0, 60.0]);
        assert_eq!(acks(&mut sbd, 10, 50, &flows), [None, None], "nothing is known yet");
        (50..100).step_by(10).for_each(|ms| assert_eq!(acks(&mut sbd, ms, 30, &flows), [None, None]));
        assert_eq!(acks(&mut sbd, 100, 30, &flows), [Some(35.0), Some(30.0)]);
        assert_eq!(acks(&mut sbd, 101, 30, &flows), [None, None], "once");
        sbd
    }

    #[test]
    fn a_loss_of_one_is_answered_by_all_that_share_its_bottleneck() {
        let (mut sbd, flows) = (found(), flows([40.0, 50.0]));
        assert_eq!(lose(&mut sbd, 1000, 0, &flows), 28.0);
        let [first, second] = acks(&mut sbd, 1010, 30, &flows);
        assert_eq!((first, second), (None, Some(35.0)), "0.7 of it");
        assert_eq!(acks(&mut sbd, 1011, 30, &flows), [None, None], "once");
        assert_eq!(lose(&mut sbd, 1020, 1, &flows), 50.0, "its own loss is of the same event");
        assert_eq!(lose(&mut sbd, 1200, 1, &flows), 35.0, "and this one is not");
        // The fourth loss in all is a trial: the other goes on.
        acks(&mut sbd, 1201, 30, &flows);
        assert_eq!(lose(&mut sbd, 1400, 0, &flows), 28.0);
        assert_eq!(acks(&mut sbd, 1401, 30, &flows), [None, None]);
    }

    /// A partner that is idle for a second need not answer, nor for what turned out to be no loss.
    #[test]
    fn a_debt_ends() {
        let (mut sbd, flows) = (found(), flows([40.0, 50.0]));
        lose(&mut sbd, 1000, 0, &flows);
        assert_eq!(acks(&mut sbd, 2000, 30, &flows), [None, None]);
        let mut sbd = found();
        lose(&mut sbd, 1000, 0, &flows);
        sbd.on_spurious(at(1005), 0, &flows);
        assert_eq!(acks(&mut sbd, 1010, 30, &flows), [None, None]);
    }

    /// The survivor of two grows into the place of the other, without a slow start to twice its window.
    #[test]
    fn one_that_leaves_takes_nothing_along() {
        let (mut sbd, flows) = (found(), flows([40.0, 40.0]));
        let ack = Ack { rtt: Some(Duration::from_millis(30)), ..Ack::default() };
        assert_eq!(sbd.on_ack(at(200), 0, &ack, &flows[..1]), None);
        assert_eq!(sbd.new_share(0, &flows[..1]), None);
    }

    /// Each is half of a CUBIC whose window has fallen from 100 to 70, until the other has been silent for a second.
    #[test]
    fn two_grow_like_one() {
        let (mut sbd, mut half, flows) = (found(), Cubic::default(), flows([40.0, 40.0]));
        half.on_fast_retransmit(at(0), 0, Window::new(100.0), &self::flows([100.0, 60.0]));
        half.scale(&flows[0], 0.5);
        for (ms, part) in [(102, 0.5), (600, 0.5), (1100, 0.5), (1101, 1.0), (1600, 1.0)] {
            let acked = Window::new(1.0);
            let grown = half.growth(at(ms), &flows[0], acked, part);
            assert_eq!(sbd.avoidance(at(ms), 0, acked, &flows), grown, "at {ms} ms");
        }
    }

    #[test]
    fn subflows_of_which_nothing_is_known_are_cubic() {
        let (mut sbd, mut cubic) = (CubicSbd::default(), Cubic::default());
        for n in 0..100 {
            let (now, flows) = (at(40 * n), flows([50.0 + n as f64, 20.0]));
            let losing = n % 25 == 20;
            assert_eq!(losing.then(|| lose(&mut sbd, 40 * n, 0, &flows)), {
                losing.then(|| cubic.on_fast_retransmit(now, 0, flows[0].cwnd, &flows).as_f64())
            });
            assert_eq!(acks(&mut sbd, 40 * n, 50, &flows), [None, None]);
            let acked = Window::new(2.0);
            assert_eq!(sbd.avoidance(now, 0, acked, &flows), cubic.avoidance(now, 0, acked, &flows));
        }
    }
}
