//! A value over time.

use anabranch_units::Duration;

/// A value that holds for a part of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level<T> {
    /// Time from the beginning of the recording at which it ends.
    pub until: Duration,
    /// The value.
    pub value: T,
}

/// A value over the whole of a recording: each level follows the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels<T>(Vec<Level<T>>);

impl<T: Copy + PartialEq> Levels<T> {
    /// Makes levels, of which neighbours of one value become one.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn new(levels: impl IntoIterator<Item = Level<T>>) -> Self {
        let mut all: Vec<Level<T>> = Vec::new();
        for level in levels {
            match all.last_mut() {
                Some(last) if last.value == level.value => last.until = level.until,
                Some(last) if last.until >= level.until => {}
                _ => all.push(level),
            }
        }
        assert!(!all.is_empty(), "a value over time has a level");
        Levels(all)
    }

    /// Returns the levels in order.
    pub fn iter(&self) -> impl Iterator<Item = Level<T>> {
        self.0.iter().copied()
    }

    /// Returns the number of values in so much of the endless repetition, at most.
    pub fn count_in(&self, span: Duration) -> u64 {
        let rounds = span.as_nanos() / self.length().as_nanos() + 2;
        rounds.saturating_mul(self.0.len() as u64)
    }

    /// Returns the time at which the last one ends.
    pub fn length(&self) -> Duration {
        self.0[self.0.len() - 1].until
    }

    /// Returns the value at a time of the endless repetition.
    pub fn at(&self, time: Duration) -> T {
        let within = Duration::from_nanos(time.as_nanos() % self.length().as_nanos());
        self.0[self.index(within)].value
    }

    /// Returns the values from `offset` of the endless repetition on, for `span`, each with the time since `offset`
    /// from which it holds.
    pub fn from(&self, offset: Duration, span: Duration) -> Vec<(Duration, T)> {
        let period = self.length();
        let within = Duration::from_nanos(offset.as_nanos() % period.as_nanos());
        let mut index = self.index(within);
        let mut values: Vec<(Duration, T)> = vec![(Duration::ZERO, self.0[index].value)];
        // Time since `offset` at which the current repetition began, which may be before it.
        let mut ahead = 0;
        loop {
            let from = Duration::from_nanos(ahead + self.0[index].until.as_nanos() - within.as_nanos());
            if from >= span {
                return values;
            }
            index += 1;
            if index == self.0.len() {
                (index, ahead) = (0, ahead + period.as_nanos());
            }
            if values.last().is_none_or(|(_, value)| *value != self.0[index].value) {
                values.push((from, self.0[index].value));
            }
            if self.0.len() == 1 {
                return values;
            }
        }
    }

    /// Returns the levels between two times, which count from the first of them.
    pub(crate) fn cut(&self, from: Duration, to: Duration) -> impl Iterator<Item = Level<T>> {
        let rest = &self.0[self.index(from)..];
        let last = rest.iter().position(|level| level.until >= to).map_or(rest.len(), |last| last + 1);
        rest[..last].iter().map(move |level| Level { until: level.until.min(to) - from, value: level.value })
    }

    /// Index of the level that holds at a time before the end.
    fn index(&self, time: Duration) -> usize {
        self.0.partition_point(|level| level.until <= time).min(self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(levels: &[(u64, u32)]) -> Levels<u32> {
        Levels::new(levels.iter().map(|&(ms, value)| Level { until: Duration::from_millis(ms), value }))
    }

    #[test]
    fn values_repeat_from_any_place_on() {
        let levels = levels(&[(10, 1), (20, 1), (30, 2), (40, 3)]);
        assert_eq!(levels.iter().count(), 3);
        for (offset, expected) in [
            (0, vec![(0, 1), (20, 2), (30, 3), (40, 1), (60, 2)]),
            (25, vec![(0, 2), (5, 3), (15, 1), (35, 2), (45, 3), (55, 1)]),
            (65, vec![(0, 2), (5, 3), (15, 1), (35, 2), (45, 3), (55, 1)]),
        ] {
            let ms = Duration::from_millis;
            let values = levels.from(ms(offset), ms(70));
            assert_eq!(values, expected.into_iter().map(|(at, value)| (ms(at), value)).collect::<Vec<_>>(), "{offset}");
        }
    }

    #[test]
    fn a_cut_counts_from_its_beginning() {
        let ms = Duration::from_millis;
        let cut: Vec<_> = levels(&[(10, 1), (30, 2), (40, 3)]).cut(ms(5), ms(30)).collect();
        assert_eq!(cut, [Level { until: ms(5), value: 1 }, Level { until: ms(25), value: 2 }]);
    }
}
