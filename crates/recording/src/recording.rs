//! A recording.

use crate::levels::{Level, Levels};
use crate::options::Form;
use anabranch_net::Step;
use anabranch_net::Trace;
use anabranch_units::{Duration, Rate};

/// Rate, delay and loss of a path over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Form of the file; `None` if the recording was drawn by a model.
    pub form: Option<Form>,
    /// Rate in one direction.
    pub rate: Option<Supply>,
    /// Delay of one direction: half of a recorded round trip.
    pub delay: Option<Levels<Duration>>,
    /// Share of packets lost in one direction. Of probes that went to and fro, each direction has the share that
    /// together makes the recorded one.
    pub loss: Option<Levels<f64>>,
    /// Parts recorded without a pause, in order; together they are the whole.
    pub stretches: Vec<Stretch>,
    /// Usual time between two rows.
    pub interval: Duration,
    /// Remarks on what was guessed or filled, as sentences.
    pub remarks: Vec<String>,
}

/// A recorded rate.
#[derive(Clone, Debug, PartialEq)]
pub enum Supply {
    /// Opportunities.
    Opportunities(Trace),
    /// Rates over time.
    Rates(Levels<Rate>),
}

/// A part recorded without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Time in the recording at which it begins.
    pub at: Duration,
    /// Length.
    pub length: Duration,
    /// Clock time of its beginning, in nanoseconds since 1970 in UTC; `None` if the recording has no clock.
    pub clock: Option<i64>,
}

impl Stretch {
    /// Returns the time in the recording at which it ends.
    pub fn end(&self) -> Duration {
        self.at + self.length
    }
}

impl Recording {
    /// Makes a recording of opportunities.
    pub(crate) fn of_opportunities(trace: Trace) -> Recording {
        let whole = Stretch { at: Duration::ZERO, length: trace.period(), clock: None };
        Recording {
            form: Some(Form::Mahimahi),
            rate: Some(Supply::Opportunities(trace)),
            delay: None,
            loss: None,
            stretches: vec![whole],
            interval: Duration::from_millis(1),
            remarks: Vec::new(),
        }
    }

    /// Returns the length without pauses.
    pub fn length(&self) -> Duration {
        self.stretches.last().map_or(Duration::ZERO, Stretch::end)
    }

    /// Returns true if its rate is one of opportunities.
    pub fn has_opportunities(&self) -> bool {
        matches!(self.rate, Some(Supply::Opportunities(_)))
    }

    /// Returns true if its rows have clock times.
    pub fn has_clock(&self) -> bool {
        self.stretches.iter().all(|stretch| stretch.clock.is_some())
    }

    /// Returns what a link serves by, if a rate was recorded that is not zero all the time.
    pub fn trace(&self) -> Option<Trace> {
        match self.rate.as_ref()? {
            Supply::Opportunities(trace) => Some(trace.clone()),
            Supply::Rates(levels) => {
                Trace::of_rates(levels.iter().map(|Level { until, value }| Step { until, rate: value }).collect()).ok()
            }
        }
    }

    /// Returns the rate over time; of opportunities, in each `window`.
    pub fn rates(&self, window: Duration) -> Option<Levels<Rate>> {
        match self.rate.as_ref()? {
            Supply::Rates(levels) => Some(levels.clone()),
            Supply::Opportunities(trace) => {
                let levels = trace.rates(window).into_iter().map(|Step { until, rate }| Level { until, value: rate });
                Some(Levels::new(levels))
            }
        }
    }

    /// Returns the parts between these times of the recording, one after the other. Opportunities become rates of 100
    /// ms.
    ///
    /// # Panics
    ///
    /// If there is no part, or one is empty or beyond the end.
    pub fn cut(&self, parts: &[(Duration, Duration)]) -> Recording {
        let mut stretches = Vec::new();
        let mut at = Duration::ZERO;
        for &(from, to) in parts {
            let first = self.stretches.partition_point(|stretch| stretch.end() <= from);
            for stretch in self.stretches[first..].iter().take_while(|stretch| stretch.at < to) {
                let (begin, end) = (from.max(stretch.at), to.min(stretch.end()));
                if begin < end {
                    let since = i64::try_from((begin - stretch.at).as_nanos()).unwrap_or(i64::MAX);
                    let clock = stretch.clock.map(|clock| clock.saturating_add(since));
                    stretches.push(Stretch { at, length: end - begin, clock });
                    at += end - begin;
                }
            }
        }
        fn joined<T: Copy + PartialEq>(levels: &Levels<T>, parts: &[(Duration, Duration)]) -> Levels<T> {
            let mut at = Duration::ZERO;
            let mut all = Vec::new();
            for &(from, to) in parts {
                all.extend(levels.cut(from, to).map(|level| Level { until: at + level.until, ..level }));
                at += to - from;
            }
            Levels::new(all)
        }
        Recording {
            form: self.form,
            rate: self.rates(Duration::from_millis(100)).map(|rates| Supply::Rates(joined(&rates, parts))),
            delay: self.delay.as_ref().map(|levels| joined(levels, parts)),
            loss: self.loss.as_ref().map(|levels| joined(levels, parts)),
            stretches,
            interval: self.interval.max(Duration::from_millis(if self.has_opportunities() { 100 } else { 0 })),
            remarks: self.remarks.clone(),
        }
    }
}
