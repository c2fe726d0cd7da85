//! Shared bottlenecks, found from the sender by what a loss does to round-trip times.
//!
//! A window falls on a loss, and the queue of its bottleneck with it. Subflows that wait in the same queue see the same
//! fall, by the same amount and at the same time; another queue goes on as before. Each loss is therefore a trial: for
//! a pair of subflows, of which one lost, let `x` and `y` be the changes of their mean round-trip times from before the
//! loss to the time between one and two round trips after it. Their concordance over past trials (L. I. Lin, *A
//! Concordance Correlation Coefficient to Evaluate Reproducibility*, Biometrics 45(1), 1989, without the term of the
//! means),
//! ```text
//! r = 2 Σ x·y / (Σ x² + Σ y² + noise²)
//! ```
//! is 1 where the queue is the same and 0 where they have nothing to do with each other: by chance alike have to be the
//! moment, the direction and the amount. The sums decay by a quarter with each trial, so a path that moves to another
//! bottleneck is found out. Two things have a common cause and prove nothing: subflows that begin together end slow
//! start together, and where a loss changes neither round trip by more than it varies anyway, there is no queue.
//!
//! Losses of both at about the same time prove less, for each queue may have fallen by itself: equal paths keep in
//! step. They are a suspicion, and a probe decides: one of the two falls once more, alone, and what its queue does the
//! other's has to do.
//!
//! RFC 8382 groups flows by statistics of one-way delays over 17 seconds; most transfers are over by then, and a sender
//! sees no one-way delays. Round trips of a queue in the other direction count as well: it may be the one that the
//! acknowledgments share.

use super::{Flow, FlowKey};
use anabranch_units::{Duration, Instant};

/// Trials of all pairs of subflows.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedBottleneck {
    pairs: Vec<Pair>,
}

/// Two subflows, the one with the lower place among the flows first.
#[derive(Clone, Debug)]
struct Pair {
    keys: [FlowKey; 2],
    /// Σ x·y \[s²\].
    product: f64,
    /// Σ x² + Σ y² \[s²\].
    squares: f64,
    /// Trials that count in the sums.
    trials: u32,
    shared: bool,
    /// Both lost, and what they saw was alike: the first is to fall alone.
    suspected: bool,
    trial: Option<Trial>,
}

/// A loss of one of a pair.
#[derive(Clone, Copy, Debug)]
struct Trial {
    at: Instant,
    /// Place of the one that lost.
    loser: usize,
    /// The other has lost as well.
    both: bool,
    /// The longer of the two round trips.
    round: Duration,
    /// Round-trip times before it \[s\].
    before: [f64; 2],
    /// Sums and numbers of the samples after it \[s\].
    after: [(f64, u32); 2],
}

/// Part of the sums that a trial leaves.
const KEPT: f64 = 0.75;
/// Changes below this are noise \[s\].
const NOISE: f64 = 5e-4;
/// Part of the round trip that is noise as well.
const JITTER: f64 = 1.0 / 16.0;
/// Concordance from which on a bottleneck counts as shared, after one trial and after more; below the last it no longer
/// does.
const FOUND_AT_ONCE: f64 = 0.95;
const FOUND: f64 = 0.6;
const GONE: f64 = 0.3;
/// Samples of each subflow that make a mean.
const ENOUGH: u32 = 3;
/// Round trips after which a trial without them is given up.
const GIVEN_UP: u64 = 8;

impl SharedBottleneck {
    /// Returns true if the two were found to share a bottleneck.
    pub(super) fn is_shared(&self, one: &Flow, other: &Flow) -> bool {
        self.pairs.iter().any(|pair| pair.shared && pair.place(one.key).is_some() && pair.place(other.key).is_some())
    }

    /// A loss on `on`: trials with each other begin. `spoilt` are those whose windows fall for another reason.
    pub(super) fn on_loss(&mut self, now: Instant, on: usize, flows: &[Flow], spoilt: impl Fn(&Flow) -> bool) {
        self.pairs.retain(|pair| pair.keys.iter().all(|key| flows.iter().any(|flow| flow.key == *key)));
        for (at, other) in flows.iter().enumerate().filter(|(at, flow)| *at != on && flow.counted) {
            let (first, second) = (&flows[on.min(at)], &flows[on.max(at)]);
            let (Some(one), Some(two)) = (first.srtt, second.srtt) else { continue };
            let in_slow_start = !(first.ssthresh.is_finite() && second.ssthresh.is_finite());
            let pair = self.pair([first.key, second.key]);
            let loser = usize::from(on > at);
            if let Some(trial) = &mut pair.trial {
                trial.both |= trial.loser != loser;
                if now.since(trial.at) < trial.round {
                    continue; // The same event.
                }
            }
            let before = [one.as_secs_f64(), two.as_secs_f64()];
            let trial = Trial { at: now, loser, both: false, round: one.max(two), before, after: [(0.0, 0); 2] };
            pair.trial = (!spoilt(other) && !in_slow_start).then_some(trial);
        }
    }

    /// An ACK of `flow` took `rtt`.
    pub(super) fn on_sample(&mut self, now: Instant, flow: &Flow, rtt: Duration) {
        for pair in &mut self.pairs {
            let Some(place) = pair.place(flow.key) else { continue };
            let Some(trial) = &mut pair.trial else { continue };
            let age = now.since(trial.at);
            if age < trial.round {
                continue;
            }
            if age < trial.round * 2 || trial.after[place].1 < ENOUGH {
                let (sum, samples) = &mut trial.after[place];
                *sum += rtt.as_secs_f64();
                *samples += 1;
            }
            let complete = trial.after.iter().all(|(_, samples)| *samples >= ENOUGH);
            if age > trial.round * GIVEN_UP {
                pair.trial = None;
            } else if age >= trial.round * 2 && complete {
                pair.judge();
            }
        }
    }

    /// Returns true if `flow` is to fall alone now, for what that does to another.
    pub(super) fn takes_probe(&mut self, flow: &Flow) -> bool {
        let asks = |pair: &&mut Pair| pair.suspected && pair.keys[0] == flow.key;
        self.pairs.iter_mut().find(asks).is_some_and(|pair| std::mem::take(&mut pair.suspected))
    }

    fn pair(&mut self, keys: [FlowKey; 2]) -> &mut Pair {
        let at = self.pairs.iter().position(|pair| pair.keys == keys).unwrap_or_else(|| {
            self.pairs.push(Pair {
                keys,
                product: 0.0,
                squares: 0.0,
                trials: 0,
                shared: false,
                suspected: false,
                trial: None,
            });
            self.pairs.len() - 1
        });
        &mut self.pairs[at]
    }
}

impl Pair {
    fn place(&self, key: FlowKey) -> Option<usize> {
        self.keys.iter().position(|own| *own == key)
    }

    /// Counts the trial that is over.
    fn judge(&mut self) {
        let Some(trial) = self.trial.take() else { return };
        let change = |place: usize| {
            let (sum, samples) = trial.after[place];
            sum / f64::from(samples.max(1)) - trial.before[place]
        };
        let (x, y) = (change(0), change(1));
        let noise = NOISE + JITTER * trial.before[0].min(trial.before[1]);
        if x.min(y) > -noise {
            return; // Nothing fell.
        }
        let (product, squares) = (x * y, x * x + y * y);
        if trial.both {
            self.suspected = !self.shared && concordance(product, squares) > FOUND;
            return;
        }
        self.trials += 1;
        self.product = KEPT * self.product + product;
        self.squares = KEPT * self.squares + squares;
        let least = match (self.shared, self.trials) {
            (true, _) => GONE,
            (false, 1) => FOUND_AT_ONCE,
            (false, _) => FOUND,
        };
        self.shared = concordance(self.product, self.squares) > least;
    }
}

/// Concordance of changes with these sums, between -1 and 1.
fn concordance(product: f64, squares: f64) -> f64 {
    2.0 * product / (squares + NOISE * NOISE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Bytes, SubflowId, Window};

    fn flows() -> [Flow; 2] {
        [0, 1].map(|id| Flow {
            id: SubflowId(id),
            key: FlowKey::nth(id),
            mss: Bytes::new(1),
            cwnd: Window::new(10.0),
            ssthresh: Window::new(1.0),
            srtt: Some(Duration::from_millis(50)),
            recovering: false,
            counted: true,
        })
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Loses on the first at `ms`; a round trip later both see these round-trip times.
    fn trial(detector: &mut SharedBottleneck, ms: u64, after: [u64; 2]) {
        detector.on_loss(at(ms), 0, &flows(), |_| false);
        samples(detector, ms, after);
    }

    /// Samples of both, each 10 ms from `ms` on for two round trips: 50 ms in the first, `after` in the second.
    fn samples(detector: &mut SharedBottleneck, ms: u64, after: [u64; 2]) {
        for step in 0..=10 {
            for (flow, rtt) in flows().iter().zip(after) {
                detector.on_sample(at(ms + 10 * step), flow, Duration::from_millis(if step < 5 { 50 } else { rtt }));
            }
        }
    }

    fn shared(detector: &SharedBottleneck) -> bool {
        let [one, other] = flows();
        assert_eq!(detector.is_shared(&one, &other), detector.is_shared(&other, &one));
        detector.is_shared(&one, &other)
    }

    #[test]
    fn a_queue_that_falls_for_both_is_shared() {
        let mut detector = SharedBottleneck::default();
        assert!(!shared(&detector));
        trial(&mut detector, 0, [30, 32]);
        assert!(shared(&detector), "20 and 18 ms: r = 2 · 360 / 724");
    }

    /// The queue of the other grows on, or falls by another amount.
    #[test]
    fn one_that_does_not_is_not() {
        for other in [50, 53, 46] {
            let mut detector = SharedBottleneck::default();
            (0..9).for_each(|n| trial(&mut detector, 1000 * n, [30, other]));
            assert!(!shared(&detector), "{other} ms for 30");
        }
        // Without any change there is no queue to share.
        let mut detector = SharedBottleneck::default();
        (0..9).for_each(|n| trial(&mut detector, 1000 * n, [50, 50]));
        assert!(!shared(&detector));
    }

    /// After a change as large as before, r = 2 (0.75 · 400 + 0) / (0.75 · 800 + 400) = 0.6, 0.38, 0.26.
    #[test]
    fn what_is_no_longer_shared_is_found_out() {
        let mut detector = SharedBottleneck::default();
        trial(&mut detector, 0, [30, 30]);
        for (n, still) in [(1, true), (2, true), (3, false)] {
            trial(&mut detector, 1000 * n, [30, 50]);
            assert_eq!(shared(&detector), still, "{n}");
        }
    }

    /// The second loses 20 ms after the first: what both see is a suspicion, and what the probe shows decides.
    #[test]
    fn what_both_lose_is_tried_again_with_one_alone() {
        for (other, is_shared) in [(30, true), (50, false)] {
            let (mut detector, flows) = (SharedBottleneck::default(), flows());
            detector.on_loss(at(0), 0, &flows, |_| false);
            detector.on_loss(at(20), 1, &flows, |_| false);
            samples(&mut detector, 0, [30, 30]);
            assert!(!shared(&detector) && !detector.takes_probe(&flows[1]));
            assert!(detector.takes_probe(&flows[0]) && !detector.takes_probe(&flows[0]), "once");
            trial(&mut detector, 200, [30, other]);
            assert_eq!(shared(&detector), is_shared, "{other} ms");
        }
    }

    /// Subflows that begin together end slow start together; a change of 2 ms in 50 is no queue that fell.
    #[test]
    fn what_has_a_common_cause_proves_nothing() {
        let mut flows = flows();
        flows[1].ssthresh = Window::INFINITE;
        let mut detector = SharedBottleneck::default();
        detector.on_loss(at(0), 0, &flows, |_| false);
        assert!(detector.pairs[0].trial.is_none());
        (0..9).for_each(|n| trial(&mut detector, 1000 * n, [48, 48]));
        assert!(!shared(&detector));
    }

    /// 20 and 12 ms: r = 0.88, which is not enough for a single trial.
    #[test]
    fn a_poor_agreement_has_to_be_seen_twice() {
        let mut detector = SharedBottleneck::default();
        trial(&mut detector, 0, [30, 38]);
        assert!(!shared(&detector));
        trial(&mut detector, 1000, [30, 38]);
        assert!(shared(&detector));
    }

    #[test]
    fn a_window_that_falls_for_another_reason_proves_nothing() {
        let (mut detector, flows) = (SharedBottleneck::default(), flows());
        detector.on_loss(at(0), 0, &flows, |_| true);
        samples(&mut detector, 0, [30, 30]);
        assert!(!shared(&detector));
    }

    /// The second has no samples after the loss: the trial ends without an answer after eight round trips.
    #[test]
    fn a_trial_of_one_is_given_up() {
        let (mut detector, flows) = (SharedBottleneck::default(), flows());
        detector.on_loss(at(0), 0, &flows, |_| false);
        (0..50).for_each(|step| {
            detector.on_sample(at(10 * step), &flows[0], Duration::from_millis(30));
        });
        assert!(detector.pairs[0].trial.is_none() && !shared(&detector));
    }
}
