//! Values of the runs of one world, for each row of a transfer.

use crate::course::{Course, SHORTEST};
use crate::rivals::Rival;
use crate::transfer::{Plan, Times};
use anabranch_lab::calibration::{Measure, Samples};
use std::time::{Duration, Instant};

/// Value that is compared in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) measure: Measure,
    /// The change that a new level or settling time is of, and the next change or the end.
    pub(crate) change: Option<(Duration, Duration)>,
}

/// Values that are compared in a transfer during which paths change at these times.
pub(crate) fn wanted(plan: &Plan, changes: &[Duration], rivals: &[Rival]) -> Vec<Wanted> {
    let whole = |measure| Wanted { measure, change: None };
    let Plan::Bulk(duration) = plan else { return vec![whole(Measure::CompletionTime)] };
    let share = (!rivals.is_empty()).then_some(whole(Measure::Share));
    let of_rivals = rivals.iter().flat_map(|rival| [rival.start, rival.end]);
    let mut all: Vec<Duration> =
        changes.iter().copied().chain(of_rivals).filter(|at| !at.is_zero() && at < duration).collect();
    all.push(*duration);
    all.sort_unstable();
    all.dedup();
    // A change that the next one follows too soon has no new level.
    let spans = all.windows(2).map(|pair| (pair[0], pair[1])).filter(|(at, next)| *next - *at >= SHORTEST);
    let after = |span| [Measure::NewLevel, Measure::SettlingTime].map(|measure| Wanted { measure, change: Some(span) });
    [whole(Measure::Goodput)].into_iter().chain(share).chain(spans.flat_map(after)).collect()
}

/// One run. Courses count from the beginning of the run.
pub(crate) struct Run {
    pub(crate) completion: Duration,
    /// The mean time of a page's objects.
    pub(crate) object: Option<Duration>,
    /// Bulk over time.
    pub(crate) course: Course,
    /// Competing connections over time.
    pub(crate) rivals: Vec<Course>,
}

impl Run {
    /// A run in real time that began at `epoch`.
    pub(crate) fn since(epoch: Instant, times: &Times, rivals: &[Times]) -> Self {
        let since = |(at, bytes): &(Instant, u64)| (at.saturating_duration_since(epoch), *bytes);
        let course = |times: &Times| Course::new(times.arrivals.iter().map(since).collect());
        let rivals = rivals.iter().map(course).collect();
        Run { completion: times.completion, object: times.object, course: course(times), rivals }
    }

    fn value(&self, wanted: &Wanted) -> Option<f64> {
        let course = &self.course;
        match (wanted.measure, wanted.change) {
            (Measure::CompletionTime, _) => Some(self.completion.as_secs_f64()),
            (Measure::Goodput, _) => Some(course.goodput(course.begin(), course.end())? / 1e6),
            (Measure::Share, _) => {
                let shares: Option<Vec<f64>> = self.rivals.iter().map(|rival| course.share(rival)).collect();
                shares.filter(|it| !it.is_empty()).map(|it| it.iter().sum::<f64>() / it.len() as f64)
            }
            (Measure::NewLevel, change) => {
                let (at, next) = change?;
                Some(course.level(at, next.min(course.end()))? / 1e6)
            }
            (Measure::SettlingTime, change) => {
                let (at, next) = change?;
                Some(course.settling(at, next.min(course.end()))?.as_secs_f64())
            }
        }
    }
}

/// The runs of one world.
pub(crate) struct Results {
    wanted: Vec<Wanted>,
    /// One for each value that is wanted; the first has what there is once for all.
    samples: Vec<Samples>,
    shares: Shares,
}

impl Results {
    pub(crate) fn new(wanted: &[Wanted]) -> Self {
        let samples = vec![Samples::default(); wanted.len()];
        Results { wanted: wanted.to_vec(), samples, shares: Shares::default() }
    }

    /// Adds a run, or its failure, of this seed.
    pub(crate) fn push(&mut self, seed: u64, run: Result<Run, String>) {
        let run = run.map_err(|error| self.samples[0].failures.push(format!("seed {seed}: {error}"))).ok();
        for (wanted, samples) in self.wanted.iter().zip(&mut self.samples) {
            let value = run.as_ref().and_then(|run| run.value(wanted));
            samples.values.push(value);
            if let (Some(run), None) = (&run, value) {
                let end = run.course.end().as_secs_f64();
                let failure = format!("seed {seed}: there is no {} until {end:.1} s", wanted.measure.name());
                samples.failures.push(failure);
            }
        }
        let object = run.and_then(|run| run.object);
        self.samples[0].object_s.extend(object.map(|object| object.as_secs_f64()));
    }

    /// Notes that the emulation of a run was late.
    pub(crate) fn doubt(&mut self, seed: u64, faults: &str) {
        self.samples[0].doubtful.push(format!("seed {seed}: {faults}"));
    }

    /// Adds the bytes that each path delivered in a run.
    pub(crate) fn delivered(&mut self, bytes: &[u64]) {
        self.shares.add(bytes);
    }

    /// Samples of each value that was wanted.
    pub(crate) fn into_samples(mut self) -> Vec<Samples> {
        self.samples[0].shares = self.shares.mean();
        self.samples
    }
}

/// Shares of the paths, added up over runs.
#[derive(Default)]
struct Shares {
    sums: Vec<f64>,
    runs: usize,
}

impl Shares {
    fn add(&mut self, bytes: &[u64]) {
        let total: u64 = bytes.iter().sum();
        if total == 0 {
            return;
        }
        self.sums.resize(bytes.len(), 0.0);
        for (sum, bytes) in self.sums.iter_mut().zip(bytes) {
            *sum += *bytes as f64 / total as f64;
        }
        self.runs += 1;
    }

    fn mean(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / self.runs as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn shares_are_means_over_the_runs_that_delivered() {
        let mut shares = Shares::default();
        shares.add(&[300, 100]);
        shares.add(&[0, 0]);
        shares.add(&[100, 300]);
        assert_eq!(shares.mean(), [0.5, 0.5]);
    }

    fn rival(start: u32, end: u32) -> Rival {
        Rival { path: 0, start: SECOND * start, end: SECOND * end, congestion: "reno".to_owned() }
    }

    #[test]
    fn bulk_has_a_settling_time_for_each_change_that_leaves_time() {
        let bulk = Plan::Bulk(SECOND * 20);
        let settling = |wanted: Vec<Wanted>| -> Vec<(u64, u64)> {
            let settling = wanted.iter().filter(|it| it.measure == Measure::SettlingTime);
            settling.filter_map(|it| it.change).map(|(at, next)| (at.as_secs(), next.as_secs())).collect()
        };
        // The change at 9 s comes a second before the next one, that at 30 s after the end; both directions are one.
        let changes = [9, 5, 5, 10, 30].map(|at| SECOND * at);
        assert_eq!(settling(wanted(&bulk, &changes, &[])), [(5, 9), (10, 20)]);
        // A rival that is there from the beginning to the end changes nothing.
        assert_eq!(settling(wanted(&bulk, &[], &[rival(0, 20)])), []);
        assert_eq!(settling(wanted(&bulk, &[], &[rival(4, 12)])), [(4, 12), (12, 20)]);
        let measures = |plan: &Plan, rivals: &[Rival]| -> Vec<Measure> {
            wanted(plan, &changes[..1], rivals).iter().map(|it| it.measure).collect()
        };
        let all = [Measure::Goodput, Measure::Share, Measure::NewLevel, Measure::SettlingTime];
        assert_eq!(measures(&bulk, &[rival(0, 20)]), all);
        let file = Plan::File(anabranch_units::Bytes::new(9));
        assert_eq!(measures(&file, &[]), [Measure::CompletionTime]);
    }

    #[test]
    fn each_value_has_its_samples_and_a_failure_is_told_once() {
        let wanted = wanted(&Plan::Bulk(SECOND * 10), &[SECOND * 4], &[rival(0, 10)]);
        let mut results = Results::new(&wanted);
        // 1 MB/s for 4 s, 2 MB/s for 6 s; the rival has 0.8 MB/s, a half of the mean.
        let course = Course::new([(0, 0), (4, 4), (10, 16)].map(|(s, mb)| (SECOND * s, mb * 1_000_000)).to_vec());
        let rivals = vec![Course::new(vec![(Duration::ZERO, 0), (SECOND * 10, 8_000_000)])];
        results.push(1, Ok(Run { completion: SECOND * 10, object: None, course, rivals }));
        results.push(2, Err("broken".to_owned()));
        results.delivered(&[300, 100]);
        let samples = results.into_samples();
        let values: Vec<_> = samples.iter().map(|it| it.values.as_slice()).collect();
        assert_eq!(values, [[Some(12.8), None], [Some(2.0), None], [Some(16.0), None], [Some(0.0), None]]);
        assert_eq!(samples.iter().flat_map(|it| &it.failures).collect::<Vec<_>>(), ["seed 2: broken"]);
        assert_eq!(
            samples.iter().map(|it| it.shares.as_slice()).collect::<Vec<_>>(),
            [[0.75, 0.25].as_slice(), &[], &[], &[]]
        );
    }
}
