//! Forecasts that are kept until something they depend on changes.
//!
//! A scheduler asks for the same forecasts decision after decision: what each faster subflow delivers while a segment
//! of each slower one is under way. One answer is kept per pair of subflows, beside everything that led to it, horizon
//! and [`Conditions`]; it is given again only if all of that is equal, bit for bit, so that a kept answer is never a
//! stale one. Real numbers are compared, not hashed, and nothing is looked up: sixty-four pairs, five kilobytes, and
//! when there are more than eight subflows some share a place and push each other out.
//!
//! A round of questions with nothing changed costs comparisons. What has changed is evaluated anew, at most once per
//! pair and change, in a time that [`MAX_ROUNDS`](super::MAX_ROUNDS) bounds: a fraction of a microsecond at RTT ratios
//! up to six, some microseconds at twenty, a fifth of a millisecond from a hundred on.

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
    /// Creates an empty cache.
    pub fn new(forecast: F) -> Self {
        Kept { forecast, answers: Vec::new() }
    }

    /// Returns the segments that `fast`, in these conditions, is expected to deliver within `horizon`, which belongs to
    /// `slow`.
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

    /// Computes a forecast that is not worth keeping.
    pub fn once(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        self.forecast.expected(horizon, conditions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{F2p, F2pPrinted, Forecaster, Fps, Late};
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseResult;

    /// One step of a connection's life: a pair of subflows is asked about, after one thing has changed or none.
    #[derive(Clone, Debug)]
    struct Step {
        slow: u16,
        fast: u16,
        change: Change,
    }

    #[derive(Clone, Debug)]
    enum Change {
        Nothing,
        Horizon(u64),
        Rtt(u64),
        Rto(u64),
        Cwnd(u32),
        Ssthresh(Option<u32>),
        Loss(f64),
        MaxCwnd(Option<u32>),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let change = prop_oneof![
            3 => Just(Change::Nothing),
            1 => (0u64..400_000).prop_map(Change::Horizon),
            1 => (1_000u64..100_000).prop_map(Change::Rtt),
            1 => (1_000u64..400_000).prop_map(Change::Rto),
            1 => (1u32..60).prop_map(Change::Cwnd),
            1 => prop::option::of(1u32..60).prop_map(Change::Ssthresh),
            1 => (0.0..0.3).prop_map(Change::Loss),
            1 => prop::option::of(1u32..80).prop_map(Change::MaxCwnd),
        ];
        (0u16..12, 0u16..12, change).prop_map(|(slow, fast, change)| Step { slow, fast, change })
    }

    /// Checks that a kept answer equals that of a fresh forecast, after any change between two questions.
    fn equals_a_fresh_one<F: Forecast>(steps: &[Step], fresh: impl Fn() -> F) -> TestCaseResult {
        let mut kept = Kept::new(fresh());
        let (mut horizon, rtt) = (Duration::from_millis(50), Duration::from_millis(20));
        let rto = Duration::from_millis(220);
        let mut c = Conditions { rtt, rto, cwnd: 10, ssthresh: None, loss: 0.01, max_cwnd: None };
        for step in steps {
            match step.change {
                Change::Nothing => {}
                Change::Horizon(micros) => horizon = Duration::from_micros(micros),
                Change::Rtt(micros) => c.rtt = Duration::from_micros(micros),
                Change::Rto(micros) => c.rto = Duration::from_micros(micros),
                Change::Cwnd(cwnd) => c.cwnd = cwnd,
                Change::Ssthresh(ssthresh) => c.ssthresh = ssthresh,
                Change::Loss(loss) => c.loss = loss,
                Change::MaxCwnd(max_cwnd) => c.max_cwnd = max_cwnd,
            }
            let got = kept.expected(SubflowId(step.slow), SubflowId(step.fast), horizon, &c);
            let direct = fresh().expected(horizon, &c);
            prop_assert!((got - direct).abs() <= 1e-6 * direct.max(1.0), "{got} {direct} {horizon} {c:?}");
        }
        prop_assert!(kept.answers.len() <= usize::from(SUBFLOWS * SUBFLOWS));
        Ok(())
    }

    proptest! {
        #[test]
        fn no_answer_is_stale(steps in prop::collection::vec(any_step(), 1..60)) {
            equals_a_fresh_one(&steps, || Forecaster::new(Late::default()))?;
            equals_a_fresh_one(&steps, || Forecaster::new(F2p::default()))?;
            equals_a_fresh_one(&steps, || Forecaster::new(Fps::default()))?;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn no_printed_answer_is_stale(steps in prop::collection::vec(any_step(), 1..20)) {
            equals_a_fresh_one(&steps, F2pPrinted::default)?;
        }
    }

    /// Counts how often it is asked.
    struct Counted(u32);

    impl Forecast for Counted {
        fn expected(&mut self, _horizon: Duration, _conditions: &Conditions) -> f64 {
            self.0 += 1;
            f64::from(self.0)
        }
    }

    #[test]
    fn evaluates_once_until_something_changes() {
        let mut kept = Kept::new(Counted(0));
        let (rtt, horizon) = (Duration::from_millis(20), Duration::from_millis(50));
        let mut c = Conditions { rtt, rto: rtt, cwnd: 10, ssthresh: None, loss: 0.01, max_cwnd: None };
        let mut ask = |slow, fast, c: &Conditions| kept.expected(SubflowId(slow), SubflowId(fast), horizon, c);
        for (slow, fast, answer) in [(1, 0, 1.0), (1, 0, 1.0), (2, 0, 2.0), (2, 1, 3.0), (1, 0, 1.0), (2, 1, 3.0)] {
            assert_eq!(ask(slow, fast, &c), answer, "{slow} {fast}");
        }
        c.loss += 1e-9;
        assert_eq!(ask(1, 0, &c), 4.0);
    }
}
