//! Models of packet loss.
//!
//! The n-th packet offered to the link takes the n-th draw, whether it is then lost, dropped by the queue or delivered:
//! two runs that differ in one policy meet the same losses (common random numbers).

use crate::ConfigError;
use crate::config::probability;
use anabranch_units::Stream;

/// A model of random loss.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum LossModel {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with probability `p`, independently.
    Bernoulli {
        /// The probability of loss.
        p: f64,
    },
    /// Two states, each with its own loss; the state may change after each packet (Gilbert 1960, Elliott 1963). Begins
    /// in the good state. In the long run a share `p_good_bad / (p_good_bad + p_bad_good)` of packets meets the bad
    /// one, in runs of `1 / p_bad_good` packets on average.
    GilbertElliott {
        /// The probability of turning from good to bad.
        p_good_bad: f64,
        /// The probability of turning from bad to good.
        p_bad_good: f64,
        /// The probability of loss in the good state.
        loss_good: f64,
        /// The probability of loss in the bad state.
        loss_bad: f64,
    },
    /// Exactly these packets are lost, counted from 0 since the model came into force; for tests.
    List(Vec<u64>),
}

/// A loss model at work.
#[derive(Debug)]
pub(crate) struct Loss {
    model: LossModel,
    stream: Stream,
    /// The state of Gilbert and Elliott's chain.
    bad: bool,
    /// Packets seen, and the next entry of the list.
    seen: u64,
    next: usize,
}

impl LossModel {
    /// Refuses numbers that are no probabilities.
    pub fn check(&self) -> Result<(), ConfigError> {
        match *self {
            LossModel::None | LossModel::List(_) => Ok(()),
            LossModel::Bernoulli { p } => probability("loss", p),
            LossModel::GilbertElliott { p_good_bad, p_bad_good, loss_good, loss_bad } => {
                probability("loss.p_good_bad", p_good_bad)?;
                probability("loss.p_bad_good", p_bad_good)?;
                probability("loss.loss_good", loss_good)?;
                probability("loss.loss_bad", loss_bad)
            }
        }
    }

    /// The share of packets lost in the long run; 0 for a list, which ends.
    pub fn mean(&self) -> f64 {
        match *self {
            LossModel::None | LossModel::List(_) => 0.0,
            LossModel::Bernoulli { p } => p,
            LossModel::GilbertElliott { p_good_bad: 0.0, loss_good, .. } => loss_good,
            LossModel::GilbertElliott { p_good_bad, p_bad_good, loss_good, loss_bad } => {
                (p_good_bad * loss_bad + p_bad_good * loss_good) / (p_good_bad + p_bad_good)
            }
        }
    }
}

impl Loss {
    pub(crate) fn new(model: LossModel, stream: Stream) -> Self {
        let mut loss = Loss { model: LossModel::None, stream, bad: false, seen: 0, next: 0 };
        loss.change(model);
        loss
    }

    /// Another model from now on, from its first state; draws go on where they were.
    pub(crate) fn change(&mut self, mut model: LossModel) {
        if let LossModel::List(list) = &mut model {
            list.sort_unstable();
            list.dedup();
        }
        (self.model, self.bad, self.seen, self.next) = (model, false, 0, 0);
    }

    /// Draws whether the next packet is lost.
    #[inline]
    pub(crate) fn strikes(&mut self) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Bernoulli { p } => self.stream.chance(p),
            LossModel::GilbertElliott { p_good_bad, p_bad_good, loss_good, loss_bad } => {
                let (loss, turn) = if self.bad { (loss_bad, p_bad_good) } else { (loss_good, p_good_bad) };
                let lost = self.stream.chance(loss);
                self.bad ^= self.stream.chance(turn);
                lost
            }
            LossModel::List(ref list) => {
                let lost = list.get(self.next) == Some(&self.seen);
                self.seen += 1;
                self.next += usize::from(lost);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Seed;

    const N: usize = 200_000;

    fn losses(model: LossModel) -> Vec<bool> {
        let mut loss = Loss::new(model, Seed(3).stream("link/test/loss"));
        (0..N).map(|_| loss.strikes()).collect()
    }

    fn count(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&l| l).count() as f64
    }

    #[test]
    fn bernoulli_loses_its_share() {
        for p in [0.0, 0.001, 0.02, 0.5, 1.0] {
            let lost = count(&losses(LossModel::Bernoulli { p }));
            let n = N as f64;
            assert!((lost - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{p}: {lost}");
        }
    }

    #[test]
    fn a_larger_probability_loses_the_same_packets_and_more() {
        let (few, many) = (losses(LossModel::Bernoulli { p: 0.01 }), losses(LossModel::Bernoulli { p: 0.02 }));
        assert!(few.iter().zip(&many).all(|(few, many)| many >= few));
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_burst_length() {
        // 0.01 / (0.01 + 0.2) = 4.76 % bad, in runs of 5.
        let gilbert = LossModel::GilbertElliott { p_good_bad: 0.01, p_bad_good: 0.2, loss_good: 0.0, loss_bad: 1.0 };
        let lost = losses(gilbert.clone());
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let share = count(&lost) / N as f64;
        assert!((gilbert.mean() - 0.047_619).abs() < 1e-6);
        // Variance of a Markov chain's mean: π(1-π)/n · (1+λ)/(1-λ) with λ = 1 - 0.21; σ = 0.0014.
        assert!((share - gilbert.mean()).abs() < 5.0 * 0.0014, "{share}");
        // Geometric runs of mean 5 have σ = 4.47; about 1900 of them.
        let length = count(&lost) / bursts;
        assert!((length - 5.0).abs() < 5.0 * 4.47 / bursts.sqrt(), "{length}");
    }

    #[test]
    fn elliott_mixes_both_states() {
        let model = LossModel::GilbertElliott { p_good_bad: 0.1, p_bad_good: 0.3, loss_good: 0.01, loss_bad: 0.41 };
        let share = count(&losses(model.clone())) / N as f64;
        assert!((model.mean() - 0.11).abs() < 1e-12); // (0.1·0.41 + 0.3·0.01) / 0.4
        assert!((share - 0.11).abs() < 0.006, "{share}");
        let stuck = LossModel::GilbertElliott { p_good_bad: 0.0, p_bad_good: 0.0, loss_good: 0.25, loss_bad: 1.0 };
        assert_eq!(stuck.mean(), 0.25);
    }

    #[test]
    fn a_list_loses_exactly_its_packets() {
        let lost = losses(LossModel::List(vec![7, 0, 7, 3]));
        let indices: Vec<usize> = (0..N).filter(|&i| lost[i]).collect();
        assert_eq!(indices, [0, 3, 7]);
    }
}
