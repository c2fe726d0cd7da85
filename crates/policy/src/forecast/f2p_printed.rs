//! F2P-DPS with its equations as printed, as far as they can be evaluated.
//!
//! D. Ni, K. Xue, P. Hong, S. Shen. *Fine-grained Forward Prediction based Dynamic Packet Scheduling Mechanism for
//! Multipath TCP in Lossy Networks.* IEEE ICCCN 2014.
//!
//! An epoch begins with a window `a` and ends when the losses of its last round are repaired. That round is the `r`-th,
//! the first loss is packet `i` of the epoch, `x` of its window `W` are lost:
//! ```text
//! fast retransmit (W - x ≥ 3)   takes (r + 1)·RTT         then a = max(2, W/2^x), congestion avoidance    (14)
//! timeout                       takes r·RTT + E(TO)       then a = 1, slow start                          (16)
//! N = n_max + (W - n_max + i - 1) = W + i - 1                                                        (12, 15, 17)
//! P = C(W, x) · p^x · (1-p)^(N-x)                                                                    (19)
//! E(N_total) = Σ Π P_k · Σ N_k    over all sequences of epochs that end by t'                        (18, 20-22)
//! E(TO) = TO · (1 + p² + 2p² + 4p³ + 8p⁴ + 16p⁵ + 32p⁶)/(1-p)                                        (1)
//! t' - t = RTT/2 · p̂1 + 3/2 RTT · p̂2 + E(TO) · p̂3                                                    (2)
//! p̂1 = (1-p)^w    p̂2 = w·(C(w-1,1)(1-p)p^(w-2) + C(w-1,2)(1-p)²p^(w-3))    p̂3 = 1 - p̂1 - p̂2
//! ```
//! Kept as printed: Eq. 1's p² in place of p; p̂2 with its count per packet and without the window all lost, which can
//! exceed one and make p̂3 negative (a `t'` before `t` is taken for `t`); Eq. 2's exchanged weights; slow start that
//! doubles below ssthresh and enters congestion avoidance with ssthresh + 1 (Eqs. 7 to 10); one halving per loss; Eq.
//! 19 with all of `C(W, x)` for every place of the first loss, so that the probabilities of a window of six at 10 % sum
//! to 2.8; and that only epochs that end by `t'` count, nothing sent after the last repair. So it says *more* the more
//! is lost, and next to nothing on a clean path: a slow subflow then takes nearly the same bytes as in min-RTT.
//! [`F2p`](super::F2p) is what the text around the equations asks for.
//!
//! Not kept: Eqs. 5 and 8, whose root closes before `+ 8i` and puts packet `i` into round `4i`, have the root over all
//! of it. The wrong n_max of Eqs. 4 and 10 and the missing index in Eq. 12 leave no trace, since n_max cancels out in
//! `N`. What cannot be evaluated is Eq. 18: whether `t_{l+1} > t'` depends on an epoch that Eq. 22 does not sum over;
//! every sequence of complete epochs counts once. Beyond sixteen round trips the result is extended in proportion.

use super::number::powi;
use super::{Conditions, DUPLICATE_ACKS, Forecast, Window};
use anabranch_units::Duration;

/// The printed equations. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct F2pPrinted {
    /// Starts of epochs, in ascending order, from `read` on.
    states: Vec<State>,
}

/// Sequences of epochs after which the next begins alike.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Timeouts and rounds used, then the window's key.
    key: (u64, u64, u64),
    /// Π P, summed over them.
    weight: f64,
    /// Π P · Σ N, summed over them.
    sent: f64,
}

/// A round of an epoch.
#[derive(Clone, Copy)]
struct Round {
    window: u32,
    /// Packets of the epoch up to its first one, which counts.
    first: f64,
    slow_start_below: u32,
}

/// Longer horizons are extended in proportion.
const ROUNDS: u64 = 16;
/// Packets that are added up one by one.
const ADDED_UP: u32 = 4096;
/// Epochs less likely than this are dropped.
const NEGLIGIBLE: f64 = 1e-15;
/// No loss rate is above, where the equations divide by 1 - p.
const MOST: f64 = 0.999;

/// E(TO) of Eq. 1 as printed.
fn mean_timeout(rto: Duration, p: f64) -> Duration {
    let tries = 1.0 + p * p * (1.0 + 2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0))));
    rto.mul_f64(tries / (1.0 - p))
}

/// `Σ (1-p)^j` and `Σ j·(1-p)^j` over the `n` packets of a round.
fn geometric(n: u32, p: f64) -> (f64, f64) {
    let w = f64::from(n);
    if n <= ADDED_UP {
        let (mut power, mut plain, mut ranked) = (1.0, 0.0, 0.0);
        for j in 0..n {
            plain += power;
            ranked += f64::from(j) * power;
            power *= 1.0 - p;
        }
        return (plain, ranked);
    }
    if w * p < 1e-3 {
        return (w, w * (w - 1.0) / 2.0);
    }
    let (kept, last) = (1.0 - p, powi(1.0 - p, n));
    ((1.0 - last) / p, (kept - w * last + (w - 1.0) * last * kept) / (p * p))
}

/// The time until a window is delivered, Eq. 2 as printed.
pub fn printed_delivery_time(conditions: &Conditions) -> Duration {
    let Conditions { rtt, rto, cwnd, loss, .. } = conditions.normalised();
    let p = loss.min(MOST);
    let (w, kept) = (f64::from(cwnd), 1.0 - p);
    let p1 = powi(kept, cwnd);
    let one = if cwnd >= 2 { (w - 1.0) * kept * powi(p, cwnd - 2) } else { 0.0 };
    let two = if cwnd >= 3 { (w - 1.0) * (w - 2.0) / 2.0 * kept * kept * powi(p, cwnd - 3) } else { 0.0 };
    let p2 = w * (one + two);
    let p3 = 1.0 - p1 - p2;
    let nanos = |time: Duration| time.as_nanos() as f64;
    let sum = nanos(rtt) * (0.5 * p1 + 1.5 * p2) + nanos(mean_timeout(rto, p)) * p3;
    Duration::from_nanos(1).mul_f64(sum)
}

impl Forecast for F2pPrinted {
    fn expected(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        let conditions = conditions.normalised();
        let longest = conditions.rtt * ROUNDS;
        if horizon <= longest {
            return self.sum(horizon, &conditions);
        }
        self.sum(longest, &conditions) * horizon.per(longest)
    }
}

impl F2pPrinted {
    /// Eq. 22.
    fn sum(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        let Conditions { rtt, cwnd, ssthresh, max_cwnd, .. } = *conditions;
        let p = conditions.loss.min(MOST);
        let timeout = mean_timeout(conditions.rto, p);
        let in_time = |timeouts: u64, rounds: u64| timeout * timeouts + rtt * rounds <= horizon;
        let most = max_cwnd.unwrap_or(Window::MAX);
        let mut total = 0.0;
        self.states.clear();
        self.put(State { key: (0, 0, Window::new(cwnd, ssthresh).key()), weight: 1.0, sent: 0.0 });
        let mut read = 0;
        while let Some(&State { key: (timeouts, rounds, window), weight, sent }) = self.states.get(read) {
            read += 1;
            let mut round = Round::first(Window::from_key(window));
            for r in 1.. {
                if !in_time(timeouts, rounds + r + 1) && !in_time(timeouts + 1, rounds + r) {
                    break;
                }
                let all = f64::from(round.window);
                let (plain, ranked) = geometric(round.window, p);
                // N of the first packet, and the probability that none of these packets is lost.
                let fewest = all + round.first - 1.0;
                let mut losses = powi(1.0 - p, fewest.min(f64::from(u32::MAX)) as u32);
                if losses == 0.0 {
                    break; // Nor do later rounds count, whose packets come after more.
                }
                for x in 1..=round.window {
                    losses *= (all - f64::from(x) + 1.0) / f64::from(x) * (p / (1.0 - p));
                    let repeated = round.window - x >= DUPLICATE_ACKS;
                    let key = if repeated { (timeouts, rounds + r + 1) } else { (timeouts + 1, rounds + r) };
                    let likely = weight * losses * plain;
                    if likely < NEGLIGIBLE && f64::from(x) > all * p {
                        break;
                    }
                    if !in_time(key.0, key.1) {
                        continue;
                    }
                    let sent = sent * losses * plain + weight * losses * (fewest * plain + ranked);
                    total += sent;
                    let next = if repeated {
                        let halved = round.window.checked_shr(x).unwrap_or(0).max(2);
                        Window::new(halved, Some(0))
                    } else {
                        Window::new(1, Some((round.window / 2).max(2)))
                    };
                    self.put(State { key: (key.0, key.1, next.capped(most).key()), weight: likely, sent });
                }
                round = round.next(most);
            }
        }
        total
    }

    /// Adds to the sequences that come to the same, or puts them in order: always behind what was read, since an epoch
    /// takes time.
    fn put(&mut self, state: State) {
        match self.states.binary_search_by_key(&state.key, |state| state.key) {
            Ok(at) => {
                self.states[at].weight += state.weight;
                self.states[at].sent += state.sent;
            }
            Err(at) => self.states.insert(at, state),
        }
    }
}

impl Round {
    fn first(window: Window) -> Self {
        Round { window: window.cwnd(), first: 1.0, slow_start_below: window.slow_start_below() }
    }

    /// Slow start doubles while that stays below the threshold, and congestion avoidance begins one above it.
    fn next(self, most: u32) -> Self {
        let Round { window, first, slow_start_below } = self;
        let grown = match window < slow_start_below {
            true if 2 * window < slow_start_below => 2 * window,
            true => slow_start_below + 1,
            false => window + 1,
        };
        Round { window: grown.min(most).min(Window::MAX), first: first + f64::from(window), slow_start_below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(rtt: u64, rto: u64, cwnd: u32, ssthresh: u32, loss: f64) -> Conditions {
        let (rtt, rto) = (Duration::from_millis(rtt), Duration::from_millis(rto));
        Conditions { rtt, rto, cwnd, ssthresh: Some(ssthresh), loss, max_cwnd: None }
    }

    /// Enumerated in Python, place by place and loss by loss, apart from this code. For a window of four at 10 % p̂2 is
    /// 1.08, and `t'` comes out before `t`.
    #[test]
    fn the_horizon_as_printed() {
        for (path, cwnd, loss, millis) in [
            ((500, 700), 10, 0.001, 254.486800),
            ((500, 700), 2, 0.001, 349.396749), // p̂2 = 1.998
            ((500, 700), 1, 0.001, 250.450703),
            ((100, 300), 10, 0.1, 242.132279),
            ((100, 300), 4, 0.1, 0.0),
            ((100, 300), 1, 0.1, 79.499733),
        ] {
            let time = printed_delivery_time(&conditions(path.0, path.1, cwnd, 16, loss)).as_millis_f64();
            assert!((time - millis).abs() < 2e-6, "{cwnd} {loss}: {time}, not {millis}");
        }
    }

    /// Same as above. The paper's paths with 0.1, 1, 3 and 5 %: what is expected grows with the loss rate, and at 5 %
    /// exceeds the 43 that can be sent without any loss.
    #[test]
    fn the_expectation_as_printed() {
        let horizon = Duration::from_nanos(254_977_560);
        for (horizon, path, loss, cwnd, ssthresh, segments) in [
            (horizon, (100, 300), 0.0, 10, 16, 0.0),
            (horizon, (100, 300), 0.001, 10, 16, 1.436196),
            (horizon, (100, 300), 0.01, 10, 16, 13.181247),
            (horizon, (100, 300), 0.03, 10, 16, 32.747331),
            (horizon, (100, 300), 0.05, 10, 16, 45.336782),
            (Duration::from_millis(199), (100, 300), 0.05, 10, 16, 0.0),
            (Duration::from_millis(200), (100, 300), 0.05, 10, 16, 45.336782),
            (Duration::from_millis(500), (100, 300), 0.05, 4, 3, 49.028653),
            (Duration::from_millis(400), (100, 110), 0.1, 3, 10, 64.528281),
            (Duration::from_millis(600), (100, 300), 0.02, 5, 5, 85.710921),
        ] {
            let got = F2pPrinted::default().expected(horizon, &conditions(path.0, path.1, cwnd, ssthresh, loss));
            assert!(
                (got - segments).abs() < 1e-6 * segments.max(1.0),
                "{horizon} {loss} {cwnd}: {got}, not {segments}"
            );
        }
    }

    #[test]
    fn sums_of_many_packets() {
        for (n, p) in [(5000, 0.01), (5000, 1e-6), (100_000, 1e-4), (5000, 1e-9)] {
            let (plain, ranked) = geometric(n, p);
            let exact = (0..n).rev().fold((0.0, 0.0), |(plain, ranked), j| {
                let power = powi(1.0 - p, j);
                (plain + power, ranked + f64::from(j) * power)
            });
            let error = (plain / exact.0 - 1.0).abs().max((ranked / exact.1 - 1.0).abs());
            // Without the first-order term n·p is off by that much.
            assert!(error < if f64::from(n) * p < 1e-3 { 1e-3 } else { 1e-6 }, "{n} {p}: {error}");
        }
    }

    #[test]
    fn any_input_gives_a_finite_answer() {
        let mut printed = F2pPrinted::default();
        for horizon in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(700), Duration::MAX] {
            for loss in [f64::NAN, 0.0, 1e-300, 0.3, 1.0, f64::INFINITY] {
                for cwnd in [0, 1, 3, 200] {
                    for ssthresh in [None, Some(0), Some(u32::MAX)] {
                        let c = Conditions { ssthresh, ..conditions(40, 50, cwnd, 0, loss) };
                        let segments = printed.expected(horizon, &c);
                        assert!(segments.is_finite() && segments >= 0.0, "{segments} for {horizon} {c:?}");
                        printed_delivery_time(&c);
                    }
                }
            }
        }
    }
}
