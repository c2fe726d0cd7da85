//! Forecasts that are kept until something they depend on changes.
//!
//! A scheduler asks for the same forecasts decision after decision: what each faster subflow delivers while a segment of
//! each slower one is under way. One answer is kept per pair of subflows, beside everything that led to it, horizon and
//! [`Conditions`]; it is given again only if all of that is equal, bit for bit, so that a kept answer is never a stale
//! one. Real numbers are compared, not hashed, and nothing is looked up: sixty-four pairs, four kilobytes, and when there
//! are more than eight subflows some share a place and push each other out.

use super::{Conditions, Forecast};
use anabranch_units::{Duration, SubflowId};

/// A forecast with memory.
#[derive(Clone, Debug)]
pub struct Kept<F> {
    forecast: F,
    answers: Vec<Option<Answer>>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    horizon: Duration,
    conditions: Conditions,
    segments: f64,
}

/// Subflows that are told apart.
const SUBFLOWS: u16 = 8;

impl<F: Forecast> Kept<F> {
    /// Nothing is known yet.
    pub fn new(forecast: F) -> Self {
        Kept { forecast, answers: Vec::new() }
    }

    /// What `fast`, in these conditions, is expected to deliver within `horizon`, which belongs to `slow`.
    pub fn expected(&mut self, slow: SubflowId, fast: SubflowId, horizon: Duration, conditions: &Conditions) -> f64 {
        let place = usize::from(slow.0 % SUBFLOWS * SUBFLOWS + fast.0 % SUBFLOWS);
        if place >= self.answers.len() {
            self.answers.resize(usize::from(SUBFLOWS * SUBFLOWS), None);
        }
        if let Some(answer) = &self.answers[place]
            && answer.horizon == horizon
            && answer.conditions == *conditions
        {
            return answer.segments;
        }
        let segments = self.forecast.expected(horizon, conditions);
        self.answers[place] = Some(Answer { horizon, conditions: *conditions, segments });
        segments
    }

    /// One that nobody will ask for again.
    pub fn once(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        self.forecast.expected(horizon, conditions)
    }
}
