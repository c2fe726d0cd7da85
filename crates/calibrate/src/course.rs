//! Bytes of a bulk transfer over time, and what is measured on them: the same in all three worlds.

use std::time::Duration;

/// Bytes that an application had read by each time; the first and the last entry are the beginning and the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Course(Vec<(Duration, u64)>);

impl Course {
    /// Entries in the order of time.
    pub(crate) fn new(entries: Vec<(Duration, u64)>) -> Self {
        Course(entries)
    }

    pub(crate) fn begin(&self) -> Duration {
        self.0.first().map_or(Duration::ZERO, |(at, _)| *at)
    }

    pub(crate) fn end(&self) -> Duration {
        self.0.last().map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// Bytes by this time; between two entries they grow evenly.
    fn bytes(&self, at: Duration) -> f64 {
        let next = self.0.partition_point(|(time, _)| *time <= at);
        match (next.checked_sub(1).map(|last| self.0[last]), self.0.get(next)) {
            (None, _) => 0.0,
            (Some((_, bytes)), None) => bytes as f64,
            (Some((from, bytes)), Some((to, more))) => {
                let part = (at - from).as_secs_f64() / (*to - from).as_secs_f64();
                bytes as f64 + (more - bytes) as f64 * part
            }
        }
    }

    /// Mean goodput between two times, in bit/s; `None` if there is no time between them.
    pub(crate) fn goodput(&self, from: Duration, to: Duration) -> Option<f64> {
        let span = to.checked_sub(from).filter(|span| !span.is_zero())?.as_secs_f64();
        Some((self.bytes(to) - self.bytes(from)) * 8.0 / span)
    }

    /// Goodput over that of `other`, while both run.
    pub(crate) fn share(&self, other: &Course) -> Option<f64> {
        let (from, to) = (self.begin().max(other.begin()), self.end().min(other.end()));
        Some(self.goodput(from, to)? / other.goodput(from, to).filter(|theirs| *theirs > 0.0)?)
    }

    /// The [`NewLevel`](anabranch_lab::calibration::Measure::NewLevel) after a change at `from`, in bit/s, if the next
    /// one, or the end, is at `to`.
    pub(crate) fn level(&self, from: Duration, to: Duration) -> Option<f64> {
        self.goodput(from + to.checked_sub(from)? / 2, to)
    }

    /// The [`SettlingTime`](anabranch_lab::calibration::Measure::SettlingTime) after it. `None` if the goodput never
    /// comes near the new level.
    pub(crate) fn settling(&self, from: Duration, to: Duration) -> Option<Duration> {
        let level = self.level(from, to)?;
        let steps = (0..).map(|step| STEP * step).take_while(|after| from + *after + WINDOW <= to);
        let is_near = |after: &Duration| {
            self.goodput(from + *after, from + *after + WINDOW).is_some_and(|it| (it - level).abs() <= level * NEAR)
        };
        steps.into_iter().find(is_near)
    }
}

/// Intervals at which windows begin, and at which the simulator is looked at.
pub(crate) const STEP: Duration = Duration::from_millis(100);
/// Time over which goodput is averaged: many round trips, and as long as the kernel's scheduler waits for a subflow
/// that it has given 64 kB and that has a window of two segments.
const WINDOW: Duration = Duration::from_secs(1);
/// Largest distance from the new level.
const NEAR: f64 = 0.1;
/// Shortest time to the next change in which settling means something.
pub(crate) const SHORTEST: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A course with these rates in bytes per 100 ms.
    fn course(rates: &[(u64, usize)]) -> Course {
        let each = rates.iter().flat_map(|(rate, count)| std::iter::repeat_n(*rate, *count));
        let mut entries = vec![(ms(0), 0)];
        for (rate, step) in each.zip(1..) {
            entries.push((STEP * step, entries.last().unwrap().1 + rate));
        }
        Course::new(entries)
    }

    #[test]
    fn goodput_is_of_the_time_between() {
        let course = course(&[(1000, 10), (3000, 10)]);
        assert_eq!(course.goodput(ms(0), ms(2000)), Some(160_000.0));
        assert_eq!(course.goodput(ms(950), ms(1050)), Some(160_000.0), "between entries bytes grow evenly");
        assert_eq!(course.goodput(ms(500), ms(500)), None);
        assert_eq!(Course::default().goodput(ms(0), ms(100)), Some(0.0));
    }

    #[test]
    fn a_share_is_of_the_time_in_which_both_run() {
        let own = course(&[(1000, 20), (4000, 10)]);
        // It runs from 1 s to 2 s, with twice the goodput.
        let other = Course::new(vec![(ms(1000), 0), (ms(2000), 20_000)]);
        assert_eq!(own.share(&other), Some(0.5));
        assert_eq!(own.share(&Course::new(vec![(ms(1000), 0), (ms(2000), 0)])), None, "nothing to compare with");
        assert_eq!(own.share(&Course::new(vec![(ms(3000), 0), (ms(4000), 9)])), None, "never beside each other");
    }

    #[test]
    fn a_goodput_settles_once_a_second_is_near_the_new_level() {
        // 100 bytes per step, from 1 s on 20 for 0.7 s, then 50, the level. A second that begins 0.5 s after the change
        // has 2 steps of 20 and 8 of 50, mean 44; one step later it has 47, within 10 %.
        let slow = course(&[(100, 10), (20, 7), (50, 23)]);
        assert_eq!(slow.settling(ms(1000), ms(4000)), Some(ms(600)));
        assert_eq!(slow.level(ms(1000), ms(4000)), Some(4000.0), "50 bytes in 0.1 s");
        // With 30 in place of 20 it has 46 already 0.5 s after the change.
        let nearer = course(&[(100, 10), (30, 7), (50, 23)]);
        assert_eq!(nearer.settling(ms(1000), ms(4000)), Some(ms(500)));
        assert_eq!(course(&[(100, 10), (50, 30)]).settling(ms(1000), ms(4000)), Some(ms(0)), "at once");
        // 10 and 90 in turns, a second each: a second that has half of both is at their mean.
        let swinging = course(&[(50, 10), (10, 10), (90, 10), (10, 10), (90, 10)]);
        assert_eq!(swinging.settling(ms(1000), ms(5000)), Some(ms(500)));
        // The same with three seconds each: the second half has the last 90 alone, and no second before is near.
        assert_eq!(course(&[(50, 10), (10, 30), (90, 30)]).settling(ms(1000), ms(7000)), Some(ms(2900)));
        assert_eq!(course(&[(50, 10)]).settling(ms(900), ms(1000)), None, "no room for a second");
    }
}
