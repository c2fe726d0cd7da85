//! Times at which the state of a run is noted.

use anabranch_units::Duration;

/// Settings `[run] sample` and `[run] windows`. Times count from the beginning of the repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// Interval between samples; `None` for no samples.
    pub every: Option<Duration>,
    /// Beginning and end of each window over which goodput is measured.
    pub windows: Vec<(Duration, Duration)>,
}

impl Watch {
    /// Returns the times of samples until `stop` in a run that begins at `late`.
    pub(crate) fn times(&self, stop: Duration, late: Duration) -> Vec<Duration> {
        let mut times: Vec<Duration> = self.windows.iter().flat_map(|(from, to)| [late + *from, late + *to]).collect();
        if let Some(every) = self.every {
            times.extend((0..=stop.saturating_sub(late).as_nanos() / every.as_nanos()).map(|n| late + every * n));
        }
        times.sort_unstable();
        times.dedup();
        times
    }
}
