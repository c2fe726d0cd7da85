//! Random impairments of a packet, apart from the queue: loss, corruption, duplication, jitter, reordering.
//!
//! Each draws from a stream of its own, once for each packet offered, so that switching one on leaves the others as
//! they were. An impairment that is switched off draws nothing and costs one test.

use crate::loss::Loss;
use crate::{LinkConfig, LossModel};
use anabranch_units::{Duration, Seed, Stream};

/// Impairments drawn for one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) corrupted: bool,
    pub(crate) duplicated: bool,
    /// Delay beyond the link's.
    pub(crate) extra: Duration,
}

#[derive(Debug)]
pub(crate) struct Impairments {
    /// Loss is all that can happen; spares the tests below.
    only_loses: bool,
    loss: Loss,
    corruption: Coin,
    duplication: Coin,
    reordering: Coin,
    reordering_extra: Duration,
    jitter: Duration,
    jitter_stream: Stream,
}

#[derive(Debug)]
struct Coin {
    p: f64,
    stream: Stream,
}

impl Impairments {
    pub(crate) fn new(config: &LinkConfig, name: &str, seed: Seed) -> Self {
        let stream = |element: &str| seed.stream(&format!("link/{name}/{element}"));
        let reordering = config.reordering.map_or((0.0, Duration::ZERO), |r| (r.probability, r.extra));
        let mut impairments = Impairments {
            only_loses: false,
            loss: Loss::new(config.loss.clone(), stream("loss")),
            corruption: Coin { p: config.corruption, stream: stream("corruption") },
            duplication: Coin { p: config.duplication, stream: stream("duplication") },
            reordering: Coin { p: reordering.0, stream: stream("reordering") },
            reordering_extra: reordering.1,
            jitter: config.jitter,
            jitter_stream: stream("jitter"),
        };
        impairments.note_what_can_happen();
        impairments
    }

    pub(crate) fn set_loss(&mut self, model: LossModel) {
        self.loss.change(model);
    }

    pub(crate) fn set_jitter(&mut self, jitter: Duration) {
        self.jitter = jitter;
        self.note_what_can_happen();
    }

    fn note_what_can_happen(&mut self) {
        let coins = [&self.corruption, &self.duplication, &self.reordering];
        self.only_loses = self.jitter.is_zero() && coins.iter().all(|coin| coin.p == 0.0);
    }

    /// The fate of the next packet offered.
    #[inline]
    pub(crate) fn draw(&mut self) -> Fate {
        if self.only_loses { Fate { lost: self.loss.strikes(), ..Fate::default() } } else { self.draw_each() }
    }

    fn draw_each(&mut self) -> Fate {
        let mut extra = Duration::ZERO;
        if !self.jitter.is_zero() {
            extra += Duration::from_nanos(self.jitter_stream.below(self.jitter.as_nanos()));
        }
        if self.reordering.flip() {
            extra += self.reordering_extra;
        }
        Fate {
            lost: self.loss.strikes(),
            corrupted: self.corruption.flip(),
            duplicated: self.duplication.flip(),
            extra,
        }
    }
}

impl Coin {
    fn flip(&mut self) -> bool {
        self.p > 0.0 && self.stream.chance(self.p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reordering;
    use anabranch_units::Rate;

    #[test]
    fn one_element_leaves_the_draws_of_the_others() {
        let loss = LossModel::Bernoulli { p: 0.3 };
        let bare = LinkConfig { loss, ..LinkConfig::new(Rate::from_mbps(1), Duration::ZERO) };
        let rich = LinkConfig {
            jitter: Duration::from_millis(1),
            corruption: 0.5,
            duplication: 0.5,
            reordering: Some(Reordering { probability: 0.5, extra: Duration::from_secs(1) }),
            ..bare.clone()
        };
        let mut bare = Impairments::new(&bare, "a", Seed(1));
        let mut rich = Impairments::new(&rich, "a", Seed(1));
        let fates: Vec<(Fate, Fate)> = (0..1000).map(|_| (bare.draw(), rich.draw())).collect();
        assert!(fates.iter().all(|(bare, rich)| bare.lost == rich.lost));
        assert!(fates.iter().all(|(bare, _)| !bare.corrupted && !bare.duplicated && bare.extra.is_zero()));
        let share = |test: fn(&Fate) -> bool| fates.iter().filter(|(_, rich)| test(rich)).count();
        // Each 500 expected, σ = 15.8.
        assert!((421..=579).contains(&share(|f| f.corrupted)));
        assert!((421..=579).contains(&share(|f| f.duplicated)));
        assert!((421..=579).contains(&share(|f| f.extra >= Duration::from_secs(1))));
        assert!(fates.iter().all(|(_, rich)| rich.extra < Duration::from_millis(1001)));
    }
}
