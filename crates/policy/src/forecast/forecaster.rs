//! The dynamic programme behind every forecast.
//!
//! A history of a subflow is a sequence of outcomes; how it goes on depends only on the time used and on the window. So
//! probability is pushed forward from state to state, and histories that meet in a state go on together. The time used
//! is a pair of whole numbers, (rounds, timeouts), never a real one: equal times are equal.
//!
//! States are taken row by row, a row being a number of timeouts, and by rounds within a row. That is an order in which
//! probability only moves forward, and it lets plain sorted lists serve as queues: what takes one round is queued in
//! the order in which it is due, and so is what takes more.

use super::{Conditions, Forecast, Model, Window};
use anabranch_units::Duration;

/// Evaluates forecasts with one model. Keeps its memory, so that it allocates nothing once it has seen the largest
/// task.
#[derive(Clone, Debug)]
pub struct Forecaster<M> {
    model: M,
    scratch: Scratch,
}

/// Beyond this many round trips the last ones' rate is extended. A slow subflow 128 times slower than a fast one needs
/// as many; the cost of a forecast grows with the square of their number.
pub const MAX_ROUNDS: u64 = 64;
/// Rounds whose mean rate is extended.
const RATE_ROUNDS: u64 = 8;
/// States less likely than this are dropped. Their contribution is below the rounding of the rest.
const NEGLIGIBLE: f64 = 1e-15;

/// States due, by what led to them.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// States after one round.
    next: Queue,
    /// States after two or more rounds.
    later: Queue,
    /// States after a timeout in the previous row.
    timed_out: Queue,
    /// States after a timeout in this row, for the next row.
    timing_out: Queue,
}

/// States in ascending order, read from the front.
#[derive(Clone, Debug, Default)]
struct Queue {
    states: Vec<State>,
    read: usize,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Rounds used, then the window's key.
    key: u64,
    probability: f64,
}

impl<M: Model> Forecaster<M> {
    /// A forecaster for this model.
    pub fn new(model: M) -> Self {
        Forecaster { model, scratch: Scratch::default() }
    }
}

impl<M: Model> Forecast for Forecaster<M> {
    fn expected(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        let conditions = conditions.normalised();
        self.model.begin(&conditions);
        if let Some(segments) = self.model.beside_histories(horizon, &conditions) {
            return segments;
        }
        let longest = conditions.rtt * MAX_ROUNDS;
        if horizon <= longest {
            return self.sum(horizon, &conditions);
        }
        let sum = self.sum(longest, &conditions);
        let before = self.sum(conditions.rtt * (MAX_ROUNDS - RATE_ROUNDS), &conditions);
        let per_round = (sum - before) / RATE_ROUNDS as f64;
        sum + per_round * horizon.saturating_sub(longest).per(conditions.rtt)
    }
}

impl<M: Model> Forecaster<M> {
    /// The expectation over all histories, for a horizon of at most `MAX_ROUNDS`.
    fn sum(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        let Conditions { rtt, cwnd, ssthresh, max_cwnd, .. } = *conditions;
        if horizon < rtt / 2 {
            return 0.0;
        }
        let last_send = horizon - rtt / 2; // What leaves later arrives too late.
        let most_rounds =
            |spent: Duration| (spent <= last_send).then(|| (last_send - spent).as_nanos() / rtt.as_nanos());
        let max_cwnd = max_cwnd.unwrap_or(Window::MAX);
        let timeout = self.model.timeout();

        let Scratch { next, later, timed_out, timing_out } = &mut self.scratch;
        timed_out.clear();
        timed_out.put(key(0, Window::new(cwnd, ssthresh)), 1.0);
        let mut total = 0.0;
        let mut row = Duration::ZERO; // spent on timeouts
        while let (Some(max_rounds), Some(_)) = (most_rounds(row), timed_out.first()) {
            let max_rounds_below = most_rounds(row + timeout);
            next.clear();
            later.clear();
            timing_out.clear();
            while let Some(key) = [next.first(), later.first(), timed_out.first()].into_iter().flatten().min() {
                let probability = next.take(key) + later.take(key) + timed_out.take(key);
                let (rounds, window) = from_key(key);
                let left = horizon - row - rtt * rounds;
                self.model.round(window, left, |outcome| {
                    assert!(outcome.rounds > 0 || outcome.timeout, "a round takes time");
                    total += probability * outcome.probability * outcome.delivered;
                    let probability = probability * outcome.weight;
                    let due = rounds + u64::from(outcome.rounds);
                    let limit = if outcome.timeout { max_rounds_below } else { Some(max_rounds) };
                    if probability < NEGLIGIBLE || limit.is_none_or(|limit| due > limit) {
                        return;
                    }
                    let queue = match (outcome.timeout, outcome.rounds) {
                        (true, _) => &mut *timing_out,
                        (false, 1) => &mut *next,
                        (false, _) => &mut *later,
                    };
                    queue.put(self::key(due, outcome.next.capped(max_cwnd)), probability);
                });
            }
            std::mem::swap(timed_out, timing_out);
            row += timeout;
        }
        total
    }
}

impl Queue {
    fn clear(&mut self) {
        self.states.clear();
        self.read = 0;
    }

    /// The smallest key not taken yet.
    fn first(&self) -> Option<u64> {
        self.states.get(self.read).map(|state| state.key)
    }

    /// The probability of `key` if it is the first, which is then taken.
    fn take(&mut self, key: u64) -> f64 {
        match self.states.get(self.read) {
            Some(state) if state.key == key => {
                self.read += 1;
                state.probability
            }
            _ => 0.0,
        }
    }

    /// Adds a state that is due later than what was taken. Mostly it belongs at the end.
    fn put(&mut self, key: u64, probability: f64) {
        if self.states.len() == self.states.capacity() && self.read > self.states.len() / 2 {
            self.states.drain(..self.read); // Rather than grow.
            self.read = 0;
        }
        let after = match self.states.last_mut() {
            Some(last) if last.key < key => self.states.len(),
            Some(last) if last.key == key => {
                last.probability += probability;
                return;
            }
            _ => self.states.iter().rposition(|state| state.key <= key).map_or(0, |at| at + 1),
        };
        match after.checked_sub(1).map(|at| &mut self.states[at]) {
            Some(same) if same.key == key => same.probability += probability,
            _ => self.states.insert(after, State { key, probability }),
        }
    }
}

/// Orders states by rounds, then window.
fn key(rounds: u64, window: Window) -> u64 {
    rounds << Window::KEY_BITS | window.key()
}

fn from_key(key: u64) -> (u64, Window) {
    (key >> Window::KEY_BITS, Window::from_key(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Late;

    fn room(scratch: &Scratch) -> usize {
        let Scratch { next, later, timed_out, timing_out } = scratch;
        [next, later, timed_out, timing_out].into_iter().map(|queue| queue.states.capacity()).sum()
    }

    #[test]
    fn memory_stops_growing_with_the_horizon() {
        let mut late = Forecaster::new(Late::default());
        let rtt = Duration::from_millis(10);
        let mut conditions = Conditions { rtt, rto: rtt, cwnd: 10, ssthresh: None, loss: 0.0, max_cwnd: Some(2000) };
        let mut largest = |rounds| {
            for loss in [0.3, 0.1, 0.03, 0.01, 0.001] {
                conditions.loss = loss;
                late.expected(rtt * rounds, &conditions);
            }
            room(&late.scratch)
        };
        let at_the_cap = largest(MAX_ROUNDS);
        assert!(at_the_cap < 20_000, "{at_the_cap}");
        assert_eq!(largest(MAX_ROUNDS * 2), at_the_cap);
        assert_eq!(largest(1_000_000), at_the_cap);
    }

    #[test]
    fn a_queue_keeps_its_states_in_order_and_merges_equal_ones() {
        let mut queue = Queue::default();
        for (key, probability) in [(3, 0.1), (5, 0.2), (4, 0.3), (3, 0.15), (5, 0.05), (1, 0.2)] {
            queue.put(key, probability);
        }
        assert_eq!(queue.take(3), 0.0); // Not first.
        let taken: Vec<_> = std::iter::from_fn(|| queue.first().map(|key| (key, queue.take(key)))).collect();
        assert_eq!(taken, [(1, 0.2), (3, 0.25), (4, 0.3), (5, 0.25)]);
    }
}
