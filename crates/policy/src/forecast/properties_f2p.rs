//! Properties of F2P-DPS's forecasts, and two other ways to compute one.

use super::properties::{binomial, conditions, losses_one_by_one};
use super::{Conditions, F2p, F2pSwitches, Forecast, Forecaster, Fps, grow, mean_timeout};
use anabranch_units::{Duration, Seed};

/// The rounds in signed milliseconds, losses one number at a time.
struct Direct {
    rtt: f64,
    timeout: f64,
    loss: f64,
    multi: bool,
}

impl Direct {
    fn of(c: &Conditions, multi: bool) -> Self {
        let timeout = mean_timeout(c.rto, c.loss).as_millis_f64();
        Direct { rtt: c.rtt.as_millis_f64(), timeout, loss: c.loss, multi }
    }

    /// Returns the segments of a window with `lost` losses that arrive, the remaining time, and the next window and
    /// threshold.
    fn round(&self, left: f64, w: u32, s: Option<u32>, lost: u32) -> (f64, f64, u32, Option<u32>) {
        let (all, x) = (f64::from(w), f64::from(lost));
        if lost == 0 {
            return (all, left - self.rtt, grow(w, s), s);
        }
        let in_time = left >= 1.5 * self.rtt;
        let released = if in_time { (all - x) / (x + 1.0) } else { 0.0 };
        if w - lost >= 3 {
            let halved = if self.multi { w.checked_shr(lost).unwrap_or(0) } else { w / 2 }.max(2);
            let repaired = if in_time { all } else { all - x };
            (repaired + released, left - 2.0 * self.rtt, halved, Some(halved))
        } else {
            let repaired = if left >= 1.5 * self.rtt + self.timeout { all } else { all - x };
            (repaired + released, left - self.rtt - self.timeout, 1, Some((w / 2).max(2)))
        }
    }

    fn expected(&self, left: f64, w: u32, s: Option<u32>) -> f64 {
        if left < self.rtt / 2.0 {
            return 0.0;
        }
        let branch = |lost| {
            let probability = binomial(w, lost, self.loss);
            if probability < 1e-16 {
                return 0.0;
            }
            let (arrived, left, w, s) = self.round(left, w, s, lost);
            probability * (arrived + self.expected(left, w, s))
        };
        (0..=w).map(branch).sum()
    }
}

fn forecaster(multi: bool) -> Forecaster<F2p> {
    Forecaster::new(F2p::new(F2pSwitches { multi, ..F2pSwitches::default() }))
}

#[test]
fn equals_the_direct_recursion() {
    for multi in [false, true] {
        let mut f2p = forecaster(multi);
        for rounds in [0, 1, 2, 3, 5] {
            for loss in [0.0, 1e-5, 0.001, 0.01, 0.05, 0.2, 0.5, 0.9] {
                for (cwnd, ssthresh, rto) in
                    [(1, None, 20), (2, Some(2), 25), (3, Some(40), 210), (10, Some(16), 31), (13, Some(7), 12)]
                {
                    for extra_ms in [1, 4, 6, 9] {
                        let c = conditions(10, rto, cwnd, ssthresh, loss);
                        let horizon = rounds * 10 + extra_ms;
                        let got = f2p.expected(Duration::from_millis(horizon), &c);
                        let direct = Direct::of(&c, multi).expected(horizon as f64, cwnd, ssthresh);
                        assert!(
                            (got - direct).abs() <= 1e-9 * direct.max(1.0),
                            "{got} {direct} {horizon} {c:?} {multi}"
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
    for multi in [false, true] {
        let (mut f2p, mut fps) = (forecaster(multi), Forecaster::new(Fps::default()));
        for (cwnd, ssthresh) in
            [(1, Some(1)), (2, Some(8)), (3, None), (4, Some(4)), (10, Some(16)), (40, Some(10)), (100, Some(50))]
        {
            for rto in [210, 15, 10, 35] {
                let losses = [0.0, 1e-4, 0.001, 0.01, 0.03, 0.1, 0.3];
                let mut before = [0.0; 7];
                for horizon in (0..240).step_by(6).chain([400, 640, 650, 2000]) {
                    let t = Duration::from_millis(horizon);
                    let c = |loss| conditions(10, rto, cwnd, ssthresh, loss);
                    let without_loss = fps.expected(t, &c(0.0));
                    assert_eq!(without_loss, f2p.expected(t, &c(0.0)));
                    let slack = 1e-9 * without_loss.max(1.0);
                    let mut better = without_loss;
                    for (loss, earlier) in losses.into_iter().zip(&mut before) {
                        let now = f2p.expected(t, &c(loss));
                        assert!(now >= *earlier - slack, "{now} < {earlier} before {horizon} {:?}", c(loss));
                        assert!(now <= better + slack, "{now} > {better} {horizon} {:?}", c(loss));
                        (*earlier, better) = (now, now);
                        points += 1;
                    }
                }
            }
        }
    }
    assert!(points > 17_000);
}

#[test]
fn equals_the_mean_of_many_histories() {
    for (at, (horizon, c, multi)) in [
        (255, conditions(100, 300, 10, Some(16), 0.05), true),
        (255, conditions(100, 300, 10, Some(16), 0.05), false),
        (300, conditions(10, 60, 2, Some(2), 0.1), false),
        (150, conditions(10, 30, 6, None, 0.08), true),
    ]
    .into_iter()
    .enumerate()
    {
        let direct = Direct::of(&c, multi);
        let mut stream = Seed(at as u64).stream("segments");
        let (mut sum, mut squares) = (0.0, 0.0);
        const RUNS: f64 = 20_000.0;
        for _ in 0..RUNS as u32 {
            let (mut left, mut w, mut s, mut delivered) = (horizon as f64, c.cwnd, c.ssthresh, 0.0);
            while left >= direct.rtt / 2.0 {
                let lost = losses_one_by_one(w, c.loss, &mut stream);
                let arrived;
                (arrived, left, w, s) = direct.round(left, w, s, lost);
                delivered += arrived;
            }
            sum += delivered;
            squares += delivered * delivered;
        }
        let mean = sum / RUNS;
        let error = ((squares / RUNS - mean * mean) / RUNS).sqrt();
        let got = forecaster(multi).expected(Duration::from_millis(horizon), &c);
        assert!((got - mean).abs() <= 3.5 * error, "{got}, but {mean} ± {error} for {c:?}");
    }
}
