//! Rows of a file, put on a time line.

use crate::error::RecordingError;
use crate::levels::{Level, Levels};
use crate::options::{Form, Gaps, Options};
use crate::recording::{Recording, Stretch, Supply};
use anabranch_units::{Bytes, Duration, Rate};

/// Rows as read.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Times are clock times, in nanoseconds since 1970.
    pub(crate) is_clock: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) remarks: Vec<String>,
}

/// One row: values from its time on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    /// Line of the file, from 1.
    pub(crate) line: usize,
    /// Time in nanoseconds.
    pub(crate) at: i64,
    /// Length, if the row says so.
    pub(crate) lasts: Option<Duration>,
    pub(crate) rate: Option<Amount>,
    /// One-way delay.
    pub(crate) delay: Option<Duration>,
    pub(crate) loss: Option<Loss>,
}

/// A rate as a row gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Rate(Rate),
    /// Bytes until the next row.
    Bytes(Bytes),
}

/// Loss as a row gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// Share of packets in one direction.
    Share(f64),
    /// A probe to and fro, and whether its answer is missing.
    Probe { is_lost: bool },
}

/// A row with its place on the time line.
struct Placed {
    row: Row,
    from: Duration,
    until: Duration,
    /// Time from which nothing passes, until `until`.
    dead_from: Option<Duration>,
}

impl Rows {
    /// Puts the rows on a time line.
    pub(crate) fn recording(mut self, form: Form, options: &Options) -> Result<Recording, RecordingError> {
        self.sort()?;
        let interval = self.interval(options)?;
        let mut filled = (0, Duration::ZERO);
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut placed: Vec<Placed> = Vec::new();
        let limit = (interval * SHORT_INTERVALS).max(SHORT);
        for (index, row) in self.rows.iter().enumerate() {
            let begins = index == 0 || stretches.last().is_none_or(|stretch| !stretch.length.is_zero());
            if begins {
                let at = stretches.last().map_or(Duration::ZERO, Stretch::end);
                stretches.push(Stretch { at, length: Duration::ZERO, clock: self.is_clock.then_some(row.at) });
            }
            let from = match begins {
                true => stretches[stretches.len() - 1].at,
                false => placed[placed.len() - 1].until,
            };
            let own = row.lasts.unwrap_or(interval);
            let next = self.rows.get(index + 1).map(|next| Duration::from_nanos(next.at.abs_diff(row.at)));
            let is_gap = |next: Duration| next > own + interval / 2;
            let (span, dead_from, ends) = match (next, options.gaps) {
                (None, _) => (own, None, true),
                (Some(next), _) if !is_gap(next) => (next, None, false),
                (Some(next), Gaps::Short) if next > limit => (own, None, true),
                (Some(_), Gaps::Close) => (own, None, true),
                (Some(next), Gaps::Short | Gaps::Hold) => (next, None, false),
                (Some(next), Gaps::Outage) => (next, Some(from + own), false),
            };
            if span > own + interval / 2 {
                filled = (filled.0 + 1, filled.1 + (span - own));
            }
            placed.push(Placed { row: *row, from, until: from + span, dead_from });
            if ends {
                let stretch = stretches.last_mut().expect("the first row begins one");
                stretch.length = from + span - stretch.at;
            }
        }
        self.say_gaps(&stretches, filled, options.gaps);
        Ok(Recording {
            form: Some(form),
            rate: rates(&placed, interval).map(Supply::Rates),
            delay: delays(&placed),
            loss: losses(&placed, &stretches, interval),
            stretches,
            interval,
            remarks: self.remarks,
        })
    }

    /// Orders rows with a clock; those without must be in order.
    fn sort(&mut self) -> Result<(), RecordingError> {
        let is_sorted = self.rows.windows(2).all(|two| two[0].at <= two[1].at);
        if !is_sorted && !self.is_clock {
            let step = self.rows.windows(2).find(|two| two[1].at < two[0].at).expect("it is not sorted");
            let problem = format!("the time goes back, from {}s to {}s", seconds(step[0].at), seconds(step[1].at));
            return Err(RecordingError::at(step[1].line, problem).help("accepted: times that grow, or clock times"));
        }
        if !is_sorted {
            self.rows.sort_by_key(|row| row.at);
            self.remarks.push("the rows are not in the order of time, and were sorted".to_owned());
        }
        let before = self.rows.len();
        self.rows.dedup_by(|later, earlier| {
            let same = later.at == earlier.at;
            if same {
                earlier.rate = later.rate.or(earlier.rate);
                earlier.delay = later.delay.or(earlier.delay);
                earlier.loss = later.loss.or(earlier.loss);
            }
            same
        });
        match before - self.rows.len() {
            0 => {}
            1 => self.remarks.push("a row has the time of the row before it, and replaces it".to_owned()),
            n => self.remarks.push(format!("{n} rows have the time of the row before them, and replace it")),
        }
        Ok(())
    }

    /// Returns the usual time between rows.
    fn interval(&self, options: &Options) -> Result<Duration, RecordingError> {
        let mut steps: Vec<u64> = self.rows.windows(2).map(|two| two[1].at.abs_diff(two[0].at)).collect();
        steps.sort_unstable();
        let usual = steps.get(steps.len().saturating_sub(1) / 2).map(|step| Duration::from_nanos(*step));
        match (usual.or(options.interval), self.rows.first()) {
            (Some(usual), _) => Ok(usual),
            (None, Some(Row { lasts: Some(lasts), .. })) => Ok(*lasts),
            (None, first) => {
                let rows = if first.is_some() { "one row" } else { "no row" };
                Err(RecordingError::plain(format!("there is {rows} with a time and a value"))
                    .help("accepted: two rows or more"))
            }
        }
    }

    fn say_gaps(&mut self, stretches: &[Stretch], (gaps, filled): (usize, Duration), rule: Gaps) {
        if gaps > 0 {
            let how = if rule == Gaps::Outage { "nothing passes in them" } else { "the value before holds" };
            let gaps = if gaps == 1 { "1 gap".to_owned() } else { format!("{gaps} gaps") };
            self.remarks.push(format!("{gaps} of {filled} together: {how}"));
        }
        if let (Some(first), Some(last), true) = (stretches.first(), stretches.last(), stretches.len() > 1)
            && let (Some(begin), Some(end)) = (first.clock, last.clock)
        {
            let whole = Duration::from_nanos(end.abs_diff(begin)) + last.length;
            let pauses = long((whole - last.end().min(whole)).as_secs_f64());
            let parts = stretches.len();
            self.remarks
                .push(format!("it has {parts} stretches, and the pauses between them, {pauses}, are no part of it"));
        }
    }
}

/// Without a value in the first rows, the first one counts from the beginning.
fn rates(placed: &[Placed], interval: Duration) -> Option<Levels<Rate>> {
    let rate = |it: &Placed| match it.row.rate? {
        Amount::Rate(rate) => Some(rate),
        Amount::Bytes(bytes) => {
            let span = it.until - it.from;
            let own = if it.row.lasts.is_none() && span > interval + interval / 2 { interval } else { span };
            Rate::of(bytes, it.row.lasts.unwrap_or(own))
        }
    };
    let mut held = placed.iter().find_map(rate)?;
    let mut levels = Vec::with_capacity(placed.len());
    for it in placed {
        held = rate(it).unwrap_or(held);
        if let Some(dead) = it.dead_from {
            levels.push(Level { until: dead, value: held });
        }
        levels.push(Level { until: it.until, value: if it.dead_from.is_some() { Rate::from_bps(0) } else { held } });
    }
    Some(Levels::new(levels))
}

fn delays(placed: &[Placed]) -> Option<Levels<Duration>> {
    let mut held = placed.iter().find_map(|it| it.row.delay)?;
    Some(Levels::new(placed.iter().map(|it| {
        held = it.row.delay.unwrap_or(held);
        Level { until: it.until, value: held }
    })))
}

/// Shares hold until the next; probes give the share of each [`PROBES`] of them, or of a second if that holds more.
fn losses(placed: &[Placed], stretches: &[Stretch], interval: Duration) -> Option<Levels<f64>> {
    let mut held = placed.iter().find_map(|it| match it.row.loss? {
        Loss::Share(share) => Some(share),
        Loss::Probe { .. } => Some(0.0),
    })?;
    let window = (interval * PROBES).max(Duration::from_secs(1)).as_nanos();
    let window_of = |it: &Placed| {
        let stretch = stretches.partition_point(|stretch| stretch.end() <= it.from).min(stretches.len() - 1);
        (stretch, (it.from.saturating_sub(stretches[stretch].at)).as_nanos() / window)
    };
    let mut levels = Vec::with_capacity(placed.len());
    for part in placed.chunk_by(|a, b| window_of(a) == window_of(b)) {
        let probes = part.iter().filter_map(|it| match it.row.loss {
            Some(Loss::Probe { is_lost }) => Some(is_lost),
            _ => None,
        });
        let (sent, lost) = probes.fold((0u32, 0u32), |(sent, lost), is_lost| (sent + 1, lost + u32::from(is_lost)));
        for it in part {
            match it.row.loss {
                Some(Loss::Share(share)) => held = share,
                // Each direction loses the share that together makes the recorded one.
                Some(Loss::Probe { .. }) => held = 1.0 - (1.0 - f64::from(lost) / f64::from(sent)).sqrt(),
                None => {}
            }
            levels.push(Level { until: it.until, value: held });
        }
    }
    Some(Levels::new(levels))
}

/// A long time in words.
fn long(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86_400.0 => format!("{:.1} days", s / 86_400.0),
        s if s >= 2.0 * 3600.0 => format!("{:.1} hours", s / 3600.0),
        s => format!("{s:.0} s"),
    }
}

fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

/// Longest gap in which the last value holds by default: this many intervals,
const SHORT_INTERVALS: u64 = 10;
/// or this time, whichever is longer.
const SHORT: Duration = Duration::from_secs(5);
/// Number of probes of which a share of loss is made.
const PROBES: u64 = 20;
