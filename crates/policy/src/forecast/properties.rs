//! Properties of every forecast, and three other ways to compute one.

use super::{Conditions, Forecast, Forecaster, Fps, Late, Later, MAX_ROUNDS, Switches, grow};
use anabranch_units::{Duration, Seed, Stream};

const PLAIN: Switches =
    Switches { overshoot: false, rto_round_end: false, tlp: false, later: Later::Weighted, from_zero: false };
const ALL_SWITCHES: [Switches; 4] = [
    PLAIN,
    Switches { overshoot: true, ..PLAIN },
    Switches { rto_round_end: true, ..PLAIN },
    Switches { tlp: true, ..PLAIN },
];

pub(super) fn conditions(rtt_ms: u64, rto_ms: u64, cwnd: u32, ssthresh: Option<u32>, loss: f64) -> Conditions {
    let (rtt, rto) = (Duration::from_millis(rtt_ms), Duration::from_millis(rto_ms));
    Conditions { rtt, rto, cwnd, ssthresh, loss, max_cwnd: None }
}

pub(super) fn binomial(n: u32, k: u32, p: f64) -> f64 {
    let choose = (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
    choose * (0..k).fold(1.0, |x, _| x * p) * (0..n - k).fold(1.0, |x, _| x * (1.0 - p))
}

/// End of a round, by the number of losses in its window.
#[derive(Clone, Copy, PartialEq)]
enum End {
    NoLoss,
    FastRetransmit,
    Timeout,
}

fn end_of(window: u32, lost: u32, tlp: bool) -> End {
    match window - lost {
        _ if lost == 0 => End::NoLoss,
        0 => End::Timeout,
        1 | 2 if !tlp => End::Timeout,
        _ => End::FastRetransmit,
    }
}

/// LATE as a plain recursion in signed milliseconds, over every number of losses.
struct Direct {
    rtt: f64,
    rto: f64,
    loss: f64,
    max_cwnd: u32,
    switches: Switches,
}

impl Direct {
    fn of(c: &Conditions, switches: Switches) -> Self {
        let (rtt, rto) = (c.rtt.as_millis_f64(), c.rto.as_millis_f64());
        Direct { rtt, rto, loss: c.loss, max_cwnd: c.max_cwnd.unwrap_or(u32::MAX), switches }
    }

    /// Returns the state after `end` of a window: time used, next window and threshold.
    fn follow(&self, end: End, w: u32, s: Option<u32>) -> (f64, u32, Option<u32>) {
        let half = (w / 2).max(2);
        match end {
            End::NoLoss if self.switches.overshoot && s.is_none_or(|s| w < s) => {
                (self.rtt, (2 * w).min(self.max_cwnd), s)
            }
            End::NoLoss => (self.rtt, grow(w, s).min(self.max_cwnd), s),
            End::FastRetransmit => (2.0 * self.rtt, half.min(self.max_cwnd), Some(half)),
            End::Timeout if self.switches.rto_round_end => (self.rto + self.rtt, 1, Some(half)),
            End::Timeout => (self.rto + self.rtt / 2.0, 1, Some(half)),
        }
    }

    /// Returns the segments of a window with `lost` losses that have arrived `left` after they were sent.
    fn arrived(&self, end: End, w: u32, lost: u32, left: f64) -> u32 {
        let repaired = match end {
            End::NoLoss => true,
            End::FastRetransmit => left >= 1.5 * self.rtt,
            End::Timeout => left >= 1.5 * self.rtt && left >= self.rto + self.rtt / 2.0,
        };
        if repaired { w } else { w - lost }
    }

    fn expected(&self, left: f64, w: u32, s: Option<u32>) -> f64 {
        if left < self.rtt / 2.0 {
            return 0.0;
        }
        // Outcomes with the same end go on alike, so only three calls; many losses in a large window add nothing.
        let (mut sum, mut chance) = (0.0, [0.0; 3]);
        for lost in 0..=w {
            let (p, end) = (binomial(w, lost, self.loss), end_of(w, lost, self.switches.tlp));
            sum += p * f64::from(self.arrived(end, w, lost, left));
            chance[end as usize] += p;
        }
        for end in [End::NoLoss, End::FastRetransmit, End::Timeout] {
            if chance[end as usize] > 1e-18 {
                let (used, w, s) = self.follow(end, w, s);
                sum += chance[end as usize] * self.expected(left - used, w, s);
            }
        }
        sum
    }

    /// One history; `losses` draws how many of a window are lost.
    fn play(&self, mut left: f64, mut w: u32, mut s: Option<u32>, mut losses: impl FnMut(u32) -> u32) -> f64 {
        let mut sum = 0.0;
        while left >= self.rtt / 2.0 {
            let lost = losses(w);
            let end = end_of(w, lost, self.switches.tlp);
            sum += f64::from(self.arrived(end, w, lost, left));
            let used;
            (used, w, s) = self.follow(end, w, s);
            left -= used;
        }
        sum
    }
}

/// Draws a number of losses by inverting their distribution, one draw per round.
fn losses_at_once(window: u32, loss: f64, stream: &mut Stream) -> u32 {
    let mut draw = stream.unit();
    for lost in 0..window {
        draw -= binomial(window, lost, loss);
        if draw < 0.0 {
            return lost;
        }
    }
    window
}

/// Lets each segment be lost or not.
pub(super) fn losses_one_by_one(window: u32, loss: f64, stream: &mut Stream) -> u32 {
    (0..window).map(|_| u32::from(stream.chance(loss))).sum()
}

#[test]
fn equals_the_direct_recursion() {
    for switches in ALL_SWITCHES {
        let mut late = Forecaster::new(Late::new(switches));
        for rounds in [1, 2, 3, 5, 8, 12, 15] {
            for loss in [0.0, 1e-5, 0.001, 0.01, 0.05, 0.2, 0.5, 1.0] {
                for (cwnd, ssthresh, rto) in
                    [(1, None, 20), (2, Some(2), 25), (3, Some(40), 210), (10, Some(16), 31), (25, Some(7), 70)]
                {
                    for (max_cwnd, extra_ms) in [(200, 0), (12, 4), (50, 7), (1, 5)] {
                        let c = Conditions { max_cwnd: Some(max_cwnd), ..conditions(10, rto, cwnd, ssthresh, loss) };
                        let horizon = rounds * 10 + extra_ms;
                        let got = late.expected(Duration::from_millis(horizon), &c);
                        let direct = Direct::of(&c, switches).expected(horizon as f64, cwnd, ssthresh);
                        assert!(
                            (got - direct).abs() <= 1e-9 * direct.max(1.0),
                            "{got} {direct} {horizon} {c:?} {switches:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn grows_with_time_falls_with_loss_and_stays_below_fps() {
    let mut points = 0;
    for switches in ALL_SWITCHES {
        let mut late = Forecaster::new(Late::new(switches));
        let mut fps = Forecaster::new(Fps { overshoot: switches.overshoot });
        for (cwnd, ssthresh) in
            [(1, Some(1)), (2, Some(8)), (3, None), (4, Some(4)), (10, Some(16)), (40, Some(10)), (100, Some(50))]
        {
            for (rto, max_cwnd) in [(210, None), (15, None), (10, Some(60)), (35, Some(9))] {
                let losses = [0.0, 1e-4, 0.001, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9];
                let mut before = [0.0; 9];
                for horizon in (0..240).step_by(6).chain([400, 640, 650, 2000]) {
                    let t = Duration::from_millis(horizon);
                    let c = |loss| Conditions { max_cwnd, ..conditions(10, rto, cwnd, ssthresh, loss) };
                    let without_loss = fps.expected(t, &c(0.0));
                    assert_eq!(without_loss, late.expected(t, &c(0.0)), "{horizon} {:?}", c(0.0));
                    let slack = 1e-9 * without_loss.max(1.0);
                    let mut better = without_loss;
                    for (loss, earlier) in losses.into_iter().zip(&mut before) {
                        let now = late.expected(t, &c(loss));
                        assert!(
                            now >= *earlier - slack,
                            "{now} < {earlier} before {horizon} {:?} {switches:?}",
                            c(loss)
                        );
                        assert!(now <= better + slack, "{now} > {better} {horizon} {:?} {switches:?}", c(loss));
                        // A timeout sooner than 1.5 RTT repairs sooner than a fast retransmit: then more loss may help.
                        better = if rto >= 15 { now } else { without_loss };
                        *earlier = now;
                        points += 1;
                    }
                }
            }
        }
    }
    assert!(points > 20_000);
}

#[test]
fn equals_the_mean_of_many_histories() {
    for (name, at_once, bound) in [("rounds", true, 3.0), ("segments", false, 4.0)] {
        for (at, (horizon, c, switches)) in [
            (50, conditions(10, 210, 10, Some(10), 0.05), PLAIN),
            (125, conditions(50, 250, 10, Some(20), 0.01), PLAIN),
            (300, conditions(10, 210, 2, Some(2), 0.03), PLAIN),
            (150, conditions(10, 30, 6, None, 0.08), Switches { tlp: true, ..PLAIN }),
            (150, conditions(10, 25, 5, Some(9), 0.15), Switches { rto_round_end: true, ..PLAIN }),
        ]
        .into_iter()
        .enumerate()
        {
            let direct = Direct::of(&c, switches);
            let mut stream = Seed(at as u64).stream(name);
            let (mut sum, mut squares) = (0.0, 0.0);
            const RUNS: f64 = 20_000.0;
            for _ in 0..RUNS as u32 {
                let draw = |w| match at_once {
                    true => losses_at_once(w, c.loss, &mut stream),
                    false => losses_one_by_one(w, c.loss, &mut stream),
                };
                let delivered = direct.play(horizon as f64, c.cwnd, c.ssthresh, draw);
                sum += delivered;
                squares += delivered * delivered;
            }
            let mean = sum / RUNS;
            let error = ((squares / RUNS - mean * mean) / RUNS).sqrt();
            let got = Forecaster::new(Late::new(switches)).expected(Duration::from_millis(horizon), &c);
            assert!((got - mean).abs() <= bound * error, "{name}: {got}, but {mean} ± {error} for {c:?}");
        }
    }
}

#[test]
fn one_forecaster_answers_like_a_fresh_one() {
    let mut used = Forecaster::new(Late::default());
    for horizon in [500, 9, 80, 2000, 80] {
        for loss in [0.02, 0.3, 0.02] {
            let (t, c) = (Duration::from_millis(horizon), conditions(10, 210, 10, Some(16), loss));
            assert_eq!(used.expected(t, &c), Forecaster::new(Late::default()).expected(t, &c));
        }
    }
}

#[test]
fn far_horizons_extend_the_last_rounds() {
    let mut late = Forecaster::new(Late::default());
    let c = conditions(10, 210, 10, Some(16), 0.02);
    let mut at = |rounds: u64| late.expected(Duration::from_millis(10 * rounds), &c);
    let edge = at(MAX_ROUNDS);
    let per_round = (edge - at(MAX_ROUNDS - 8)) / 8.0;
    assert!((at(MAX_ROUNDS * 2) - (edge + MAX_ROUNDS as f64 * per_round)).abs() < 1e-6);
    // The square-root law, sqrt(1.5 / 2 %) = 8.7 segments per round, is above what a model with timeouts sustains.
    assert!(per_round > 5.0 && per_round < 8.0, "{per_round}");
}

#[test]
fn any_input_gives_a_finite_answer() {
    let mut late = Forecaster::new(Late::default());
    let spans =
        [Duration::ZERO, Duration::from_nanos(1), Duration::from_nanos(3), Duration::from_secs(1), Duration::MAX];
    for horizon in spans {
        for (rtt, rto) in spans.into_iter().flat_map(|rtt| spans.map(|rto| (rtt, rto))) {
            for loss in [f64::NAN, -1.0, 0.0, 0.5, 1.0, 7.0, f64::INFINITY] {
                for (cwnd, ssthresh, max_cwnd) in
                    [(0, Some(0), Some(0)), (u32::MAX, None, None), (1, Some(u32::MAX), Some(5))]
                {
                    let c = Conditions { rtt, rto, cwnd, ssthresh, loss, max_cwnd };
                    let segments = late.expected(horizon, &c);
                    assert!(segments.is_finite() && segments >= 0.0, "{segments} for {horizon} {c:?}");
                }
            }
        }
    }
}
