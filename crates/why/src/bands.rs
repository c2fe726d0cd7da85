//! Bands: the time of a transfer, cut into intervals without a gap, each with its limit.

use crate::Limit;
use anabranch_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A limit, and the path that it is meant of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cause {
    /// The limit.
    pub limit: Limit,
    /// Index of the path, where one is meant: the path that has the limit, or for [`Limit::HeadOfLine`] the one that
    /// carries the missing data.
    pub path: Option<usize>,
}

impl Cause {
    /// A limit of the whole connection.
    pub const fn of_all(limit: Limit) -> Self {
        Cause { limit, path: None }
    }

    /// A limit of, or by, one path.
    pub const fn of(limit: Limit, path: usize) -> Self {
        Cause { limit, path: Some(path) }
    }
}

/// An interval of a transfer: from `from` on, before `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// First instant.
    pub from: Instant,
    /// First instant after it.
    pub to: Instant,
    /// Limit in all of it.
    pub cause: Cause,
}

impl Band {
    /// Returns its length.
    pub fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// Intervals in the order of time. Each begins where the one before ends, none is empty, and neighbours differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bands {
    bands: Vec<Band>,
    end: Instant,
}

impl Bands {
    /// No time at all, at `start`.
    pub const fn new(start: Instant) -> Self {
        Bands { bands: Vec::new(), end: start }
    }

    /// Appends the time up to `until`, in which `cause` held. Time already covered stays as it is.
    pub fn extend(&mut self, until: Instant, cause: Cause) {
        if until <= self.end {
            return;
        }
        match self.bands.last_mut() {
            Some(last) if last.cause == cause => last.to = until,
            _ => self.bands.push(Band { from: self.end, to: until, cause }),
        }
        self.end = until;
    }

    /// Gives the time from `since` on another cause, wherever `other` names one.
    pub fn reassign(&mut self, since: Instant, other: impl Fn(Cause) -> Option<Cause>) {
        let first = self.bands.partition_point(|band| band.to <= since);
        let tail = self.bands.split_off(first);
        let Some(begin) = tail.first().map(|band| band.from) else { return };
        self.end = begin;
        for Band { to, cause, .. } in tail {
            // A band that began before keeps its cause up to then.
            if self.end < since {
                self.extend(since, cause);
            }
            self.extend(to, other(cause).unwrap_or(cause));
        }
    }

    /// Returns the intervals.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Band> + ExactSizeIterator {
        self.bands.iter()
    }

    /// Returns the part from `from` to `to`. Time not covered at the end has `rest`.
    pub fn between(&self, from: Instant, to: Instant, rest: Cause) -> Bands {
        let mut part = Bands::new(from);
        let first = self.bands.partition_point(|band| band.to <= from);
        for band in &self.bands[first..] {
            if band.from >= to {
                break;
            }
            // Before the first band nothing is known either.
            part.extend(band.from.min(to), rest);
            part.extend(band.to.min(to), band.cause);
        }
        part.extend(to, rest);
        part
    }

    /// Returns the first instant of the first interval.
    pub fn start(&self) -> Instant {
        self.bands.first().map_or(self.end, |first| first.from)
    }

    /// Returns the time of all intervals together.
    pub fn total(&self) -> Duration {
        self.bands.first().map_or(Duration::ZERO, |first| self.end.since(first.from))
    }

    /// Returns the time of each cause.
    pub fn times(&self) -> BTreeMap<Cause, Duration> {
        let mut times = BTreeMap::new();
        for band in &self.bands {
            *times.entry(band.cause).or_insert(Duration::ZERO) += band.length();
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: [Limit; 4] = [Limit::SlowStart, Limit::PathFull, Limit::InFlight, Limit::HeadOfLine];

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Intervals follow each other without a gap, none is empty, and neighbours differ.
    fn check(bands: &Bands) {
        for pair in bands.bands.windows(2) {
            assert_eq!(pair[0].to, pair[1].from);
            assert_ne!(pair[0].cause, pair[1].cause);
        }
        assert!(bands.iter().all(|band| band.from < band.to));
        let sum = bands.times().values().fold(Duration::ZERO, |sum, time| sum + *time);
        assert_eq!(sum, bands.total());
    }

    #[test]
    fn a_timeout_takes_the_time_since_it_was_last_heard_of() {
        let mut bands = Bands::new(at(0));
        bands.extend(at(10), Cause::of_all(Limit::Handshake));
        bands.extend(at(30), Cause::of(Limit::SlowStart, 0));
        bands.extend(at(40), Cause::of_all(Limit::Scheduler));
        bands.extend(at(50), Cause::of(Limit::SlowStart, 0));
        let timeout = Cause::of(Limit::Timeout, 0);
        bands.reassign(at(20), |cause| (cause.limit == Limit::SlowStart).then_some(timeout));
        check(&bands);
        let times: Vec<_> = bands.iter().map(|band| (band.from.as_nanos(), band.cause.limit)).collect();
        let expected = [
            (0, Limit::Handshake),
            (10, Limit::SlowStart),
            (20, Limit::Timeout),
            (30, Limit::Scheduler),
            (40, Limit::Timeout),
        ];
        assert_eq!(times, expected);
    }

    proptest! {
        /// Whatever is appended, given anew and cut out: the times add up to the nanosecond.
        #[test]
        fn times_add_up(
            steps in prop::collection::vec((0u64..1000, 0usize..4), 0..50),
            since in 0u64..30_000,
            cut in (0u64..30_000, 0u64..30_000),
        ) {
            let (mut bands, mut now) = (Bands::new(at(5)), 5);
            for (step, limit) in steps {
                now += step;
                bands.extend(at(now), Cause::of(LIMITS[limit], limit));
                check(&bands);
            }
            let before = bands.total();
            bands.reassign(at(since), |cause| (cause.path != Some(1)).then_some(Cause::of_all(Limit::Timeout)));
            check(&bands);
            prop_assert_eq!(bands.total(), before);
            let (from, to) = (cut.0.min(cut.1), cut.0.max(cut.1));
            let part = bands.between(at(from), at(to), Cause::of_all(Limit::InFlight));
            check(&part);
            prop_assert_eq!(part.total(), at(to).since(at(from)));
        }
    }
}
