//! Paths whose rate, delay or loss is drawn from the seed of the run.

use anabranch_net::{Change, LossModel};
use anabranch_paths::{Affected, TimedChange};
use anabranch_units::{Duration, Rate, Seed};

/// Properties of a path that are drawn uniformly between minimum and maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// Name of the path, which also names its random streams.
    pub path: String,
    /// Interval between draws of rate and delay; `None` for a single draw.
    pub every: Option<Duration>,
    /// Rate of both directions.
    pub rate: Option<[Rate; 2]>,
    /// One-way delay.
    pub delay: Option<[Duration; 2]>,
    /// True if the file gives `rtt` in place of `delay`.
    pub in_round_trips: bool,
    /// Loss, drawn once.
    pub loss: Option<[f64; 2]>,
    /// Directions that `loss` applies to.
    pub lossy: Affected,
}

impl Vary {
    /// Returns the changes to the path in the run with this seed, in the order of time, from its beginning until
    /// `stop`. As with recorded traces, the spread of repetitions does not delay them.
    pub(crate) fn changes(&self, seed: Seed, stop: Duration) -> Vec<TimedChange> {
        let [mut rates, mut delays, mut losses] =
            ["rate", "delay", "loss"].map(|what| seed.stream(&format!("path/{}/vary/{what}", self.path)));
        let timed = |at, affected, change| TimedChange { at, path: self.path.clone(), affected, change, notify: false };
        let mut all = Vec::new();
        if let Some([least, most]) = self.loss {
            let p = least + (most - least) * losses.unit();
            let model = if p > 0.0 { LossModel::Bernoulli { p } } else { LossModel::None };
            all.push(timed(Duration::ZERO, self.lossy, Change::Loss(model)));
        }
        let mut at = Duration::ZERO;
        while at <= stop {
            if let Some([least, most]) = self.rate {
                let rate = Rate::from_bps(rates.between(least.as_bps(), most.as_bps()));
                all.push(timed(at, Affected::Both, Change::Rate(rate)));
            }
            if let Some([least, most]) = self.delay {
                let delay = Duration::from_nanos(delays.between(least.as_nanos(), most.as_nanos()));
                all.push(timed(at, Affected::Both, Change::Delay(delay)));
            }
            match self.every {
                Some(every) => at += every,
                None => break,
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary() -> Vary {
        Vary {
            path: "wlan".to_owned(),
            every: Some(Duration::from_millis(100)),
            rate: Some([Rate::from_mbps(20), Rate::from_mbps(30)]),
            delay: Some([Duration::from_millis(2), Duration::from_millis(12)]),
            in_round_trips: false,
            loss: Some([0.0, 0.01]),
            lossy: Affected::Down,
        }
    }

    /// 1 s in steps of 100 ms is eleven draws. All lie between the bounds, and some in the outer quarter at either end.
    #[test]
    fn draws_lie_between_the_bounds_and_come_every_step() {
        let (mut rates, mut delays, mut losses) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 1..=40 {
            let changes = vary().changes(Seed(seed), Duration::from_secs(1));
            assert_eq!(changes.len(), 1 + 11 * 2);
            assert_eq!(changes.last().map(|change| change.at), Some(Duration::from_secs(1)));
            for change in changes {
                match change.change {
                    Change::Rate(rate) => rates.push(rate.as_bps() as f64 / 1e6),
                    Change::Delay(delay) => delays.push(delay.as_secs_f64() * 1e3),
                    Change::Loss(LossModel::Bernoulli { p }) => losses.push(p * 100.0),
                    other => panic!("nothing else varies: {other:?}"),
                }
            }
        }
        for (values, least, most) in [(rates, 20.0, 30.0), (delays, 2.0, 12.0), (losses, 0.0, 1.0)] {
            let quarter = (most - least) / 4.0;
            assert!(values.iter().all(|value| (least..=most).contains(value)), "{values:?}");
            assert!(values.iter().any(|value| *value < least + quarter), "{values:?}");
            assert!(values.iter().any(|value| *value > most - quarter), "{values:?}");
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!((mean - (least + most) / 2.0).abs() < quarter / 1.5, "{mean}");
        }
    }

    #[test]
    fn what_is_drawn_once_is_drawn_at_the_beginning() {
        let once = Vary { every: None, loss: None, ..vary() };
        let changes = once.changes(Seed(3), Duration::from_secs(60));
        assert!(changes.len() == 2 && changes.iter().all(|change| change.at.is_zero()), "{changes:?}");
        let again = format!("{:?}", once.changes(Seed(3), Duration::from_secs(60)));
        assert_eq!(format!("{changes:?}"), again);
        assert_ne!(format!("{:?}", once.changes(Seed(4), Duration::from_secs(60))), again);
    }
}
