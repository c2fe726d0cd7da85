//! Recordings in words, figures and a picture.

use crate::number::short;
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_recording::{Form, Levels, PERCENTILES, Recording, Spread, clock_text, outages, periodic, spread};
use anabranch_units::{Duration, Rate, in_one_line};
use schemars::JsonSchema;
use serde::Serialize;

/// Recordings, and windows drawn in them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recordings {
    /// Each recording.
    pub recordings: Vec<Recorded>,
    /// Time that all of several recordings cover by their clocks \[s\]; `None` for one, or without clocks.
    pub common_s: Option<f64>,
    /// Windows drawn by seed.
    pub windows: Vec<Window>,
}

/// A recording in figures.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recorded {
    /// Name of the file.
    pub file: String,
    /// Form of the file; `model` if a model drew it.
    pub form: String,
    /// Length without pauses \[s\].
    pub length_s: f64,
    /// Usual time between rows \[s\].
    pub interval_s: f64,
    /// Parts recorded without a pause.
    pub stretches: Vec<Part>,
    /// Rate \[bit/s\].
    pub rate_bps: Option<Figures>,
    /// Delay of one direction \[s\].
    pub delay_s: Option<Figures>,
    /// Share lost in one direction.
    pub loss: Option<Figures>,
    /// Times in which the rate is below a hundredth of its mean.
    pub outages: Vec<Part>,
    /// Moments that come again and again at which a value changes more than at others.
    pub periods: Vec<Period>,
    /// Remarks on what was guessed or filled.
    pub remarks: Vec<String>,
}

/// Part of a recording.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Part {
    /// Place in the recording \[s\].
    pub at_s: f64,
    /// Length \[s\].
    pub length_s: f64,
    /// Date of its beginning in UTC; `None` without a clock.
    pub clock: Option<String>,
}

/// Values over time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Figures {
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub least: f64,
    /// Percentile 5.
    pub p5: f64,
    /// Percentile 25.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// Percentile 75.
    pub p75: f64,
    /// Percentile 95.
    pub p95: f64,
    /// Largest.
    pub most: f64,
}

/// A period in a value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Period {
    /// `rate` or `delay`.
    pub of: &'static str,
    /// Length \[s\].
    pub period_s: f64,
    /// Place of the first such moment in the recording \[s\].
    pub first_s: f64,
    /// Mean change at these moments over that at all others; `None` if the value changes at no other.
    pub ratio: Option<f64>,
}

/// A window in all recordings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Window {
    /// Number, from 1.
    pub number: usize,
    /// Place in the recordings, after they are cut to common times \[s\].
    pub at_s: f64,
    /// Date of its beginning in UTC; `None` without a clock.
    pub clock: Option<String>,
    /// Mean rate of each recording in it \[bit/s\]; `None` for one without a rate.
    pub rates_bps: Vec<Option<f64>>,
}

impl Recorded {
    /// Sums a recording up.
    pub fn of(file: &str, recording: &Recording) -> Recorded {
        let rates = recording.rates(WINDOW);
        let bps = |rate: Rate| rate.as_bps() as f64;
        let part = |at: Duration, length: Duration, clock: Option<i64>| Part {
            at_s: at.as_secs_f64(),
            length_s: length.as_secs_f64(),
            clock: clock.map(clock_text),
        };
        let mut periods = Vec::new();
        let found = |of, it: anabranch_recording::Periodic| Period {
            of,
            period_s: it.period.as_secs_f64(),
            first_s: it.phase.as_secs_f64(),
            ratio: it.ratio,
        };
        let step = if recording.has_opportunities() { WINDOW } else { recording.interval };
        // A model may draw its rate less often than its delay, and would seem to have the period of its draws.
        let held = |levels: &Levels<Rate>| match recording.form {
            None => step.max((levels.length() / levels.iter().count() as u64).min(Duration::from_secs(1))),
            Some(_) => step,
        };
        let rate_period = rates.as_ref().and_then(|levels| periodic(levels, held(levels), bps));
        periods.extend(rate_period.map(|it| found("rate", it)));
        let delay_period = recording.delay.as_ref().and_then(|it| periodic(it, step, Duration::as_secs_f64));
        periods.extend(delay_period.map(|it| found("delay", it)));
        Recorded {
            file: file.to_owned(),
            form: recording.form.map_or("model".to_owned(), |form| form.to_string()),
            length_s: recording.length().as_secs_f64(),
            interval_s: recording.interval.as_secs_f64(),
            stretches: recording.stretches.iter().map(|it| part(it.at, it.length, it.clock)).collect(),
            outages: rates.iter().flat_map(outages).map(|it| part(it.at, it.length, None)).collect(),
            rate_bps: rates.as_ref().map(|levels| Figures::of(spread(levels, bps))),
            delay_s: recording.delay.as_ref().map(|levels| Figures::of(spread(levels, Duration::as_secs_f64))),
            loss: recording.loss.as_ref().map(|levels| Figures::of(spread(levels, |share| share))),
            periods,
            remarks: recording.remarks.clone(),
        }
    }
}

impl Figures {
    fn of(it: Spread) -> Figures {
        let [p5, p25, p50, p75, p95] = it.percentiles;
        Figures { mean: it.mean, least: it.least, p5, p25, p50, p75, p95, most: it.most }
    }

    fn cells(&self, scale: f64) -> impl Iterator<Item = String> {
        let all = [self.mean, self.least, self.p5, self.p25, self.p50, self.p75, self.p95, self.most];
        all.into_iter().map(move |value| short(value * scale))
    }
}

/// Recordings as text of this width: figures, what stands out, and a picture of each value over time.
pub fn recordings(all: &Recordings, contents: &[Recording], width: usize) -> String {
    let mut text = String::new();
    for (recorded, content) in all.recordings.iter().zip(contents) {
        text += &one(recorded, content, width);
        text.push('\n');
    }
    if let Some(common) = all.common_s {
        text += &hang("", &format!("All cover {} by their clocks.", time(common)), width);
    }
    if !all.windows.is_empty() {
        let names: Vec<String> = all.recordings.iter().map(|it| format!("{} [Mbit/s]", short_name(&it.file))).collect();
        let mut columns = vec![("#", Align::Right), ("at [s]", Align::Right)];
        let has_clock = all.windows.iter().any(|window| window.clock.is_some());
        columns.extend(has_clock.then_some(("date (UTC)", Align::Left)));
        columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
        let mut table = Table::new(columns);
        for window in &all.windows {
            let mut row = vec![window.number.to_string(), format!("{:.3}", window.at_s)];
            row.extend(has_clock.then(|| window.clock.clone().unwrap_or_default()));
            row.extend(window.rates_bps.iter().map(|rate| rate.map_or(String::new(), |rate| short(rate / 1e6))));
            table.row(row);
        }
        text += &format!("\n{table}");
    }
    text
}

fn one(recorded: &Recorded, content: &Recording, width: usize) -> String {
    let parts = recorded.stretches.len();
    let stretches = if parts == 1 { String::new() } else { format!(" in {parts} stretches") };
    let clock = recorded.stretches.first().and_then(|it| it.clock.as_ref());
    let from = clock.map(|clock| format!(", from {clock}")).unwrap_or_default();
    let rows = match content.form {
        None => "drawn by a model".to_owned(),
        Some(Form::Mahimahi) => "opportunities".to_owned(),
        Some(Form::Table) => format!("a table with a row each {}", time(recorded.interval_s)),
        Some(form) => format!("{form}, a value each {}", time(recorded.interval_s)),
    };
    let head = format!("{}: {}, {rows}{stretches}{from}", in_one_line(&recorded.file), time(recorded.length_s));
    let mut text = hang("", &head, width);
    let mut columns = vec![("", Align::Left), ("mean", Align::Right), ("least", Align::Right)];
    let percents = PERCENTILES.map(|percent| format!("{percent} %"));
    columns.extend(percents.iter().map(|percent| (percent.as_str(), Align::Right)));
    columns.push(("most", Align::Right));
    let mut table = Table::new(columns);
    for (name, figures, scale) in [
        ("rate [Mbit/s]", &recorded.rate_bps, 1e-6),
        ("delay, one way [ms]", &recorded.delay_s, 1e3),
        ("loss, one way [%]", &recorded.loss, 100.0),
    ] {
        if let Some(figures) = figures {
            let mut row = vec![name.to_owned()];
            row.extend(figures.cells(scale));
            table.row(row);
        }
    }
    text += &format!("\n{table}\n");
    text + &remarkable(recorded, width) + &pictures(recorded, content, width)
}

/// Outages, periods and remarks.
fn remarkable(recorded: &Recorded, width: usize) -> String {
    let mut text = String::new();
    if let Some(longest) = recorded.outages.iter().max_by(|a, b| a.length_s.total_cmp(&b.length_s)) {
        let together: f64 = recorded.outages.iter().map(|it| it.length_s).sum();
        let times = match recorded.outages.len() {
            1 => "Once".to_owned(),
            n => format!("{n} times"),
        };
        let said = format!(
            "{times} hardly anything passes (below 1 % of the mean): {} together, the longest {} from {} on.",
            time(together),
            time(longest.length_s),
            time(longest.at_s)
        );
        text += &hang("", &said, width);
    }
    for period in &recorded.periods {
        let [every, first] = [period.period_s, period.first_s].map(time);
        let said = match period.ratio {
            Some(ratio) => {
                let ratio = short(ratio);
                format!("Every {every} the {} changes {ratio} times as much as else, first at {first}.", period.of)
            }
            None => format!("The {} changes every {every} and at no other time, first at {first}.", period.of),
        };
        text += &hang("", &said, width);
    }
    for remark in &recorded.remarks {
        text += &hang("- ", &in_one_line(remark), width);
    }
    text
}

/// Each value over time.
fn pictures(recorded: &Recorded, content: &Recording, width: usize) -> String {
    let (mut text, end) = (String::new(), recorded.length_s);
    if let Some(rates) = content.rates(WINDOW) {
        text += &picture("Mbit/s", &sampled(&rates, width, |rate| rate.as_bps() as f64 / 1e6), end, width);
    }
    if let Some(delays) = &content.delay {
        text += &picture("ms", &sampled(delays, width, Duration::as_millis_f64), end, width);
    }
    if let Some(losses) = content.loss.as_ref().filter(|_| recorded.loss.as_ref().is_some_and(|it| it.most > 0.0)) {
        text += &picture("%", &sampled(losses, width, |share| share * 100.0), end, width);
    }
    text
}

/// Means of a value over equal times, as many as a picture of this width has columns.
fn sampled<T: Copy + PartialEq>(levels: &Levels<T>, width: usize, number: impl Fn(T) -> f64) -> Vec<f64> {
    let columns = width.saturating_sub(SCALE).max(10);
    let whole = levels.length().as_secs_f64();
    let mut means = vec![0.0; columns];
    let mut from = 0.0;
    for level in levels.iter() {
        let until = level.until.as_secs_f64();
        let [first, last] = [from, until].map(|at: f64| ((at / whole * columns as f64) as usize).min(columns - 1));
        for (column, mean) in means.iter_mut().enumerate().take(last + 1).skip(first) {
            let [begin, end] = [column, column + 1].map(|edge| edge as f64 * whole / columns as f64);
            let covered = (until.min(end) - from.max(begin)).max(0.0);
            *mean += number(level.value) * covered / (end - begin);
        }
        from = until;
    }
    means
}

/// Bars of eighths of a line over time, with the largest value and the time at the axes.
fn picture(unit: &str, values: &[f64], seconds: f64, width: usize) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut text = String::new();
    for line in (0..LINES).rev() {
        let label = match line {
            line if line + 1 == LINES => short(most),
            0 => unit.to_owned(),
            _ => String::new(),
        };
        text += &format!("{label:>width$} │", width = SCALE - 2);
        let level = |value: &f64| {
            let eighths = (value / most * (LINES * 8) as f64).round() as usize;
            EIGHTHS[eighths.saturating_sub(line * 8).min(8)]
        };
        text.extend(values.iter().map(level));
        text = text.trim_end().to_owned();
        text.push('\n');
    }
    let end = time(seconds);
    let room = width.saturating_sub(SCALE + 1 + end.len());
    text + &format!("{:>scale$}0{:room$}{end}\n", "└", "", scale = SCALE)
}

/// A time with the unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s if s >= 1.0 || s == 0.0 => format!("{} s", short(s)),
        s => format!("{} ms", short(s * 1e3)),
    }
}

/// The name of a file without its folders.
fn short_name(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}

/// Windows in which opportunities have a rate.
pub(crate) const WINDOW: Duration = Duration::from_millis(100);
/// Width of the scale of a picture.
const SCALE: usize = 9;
/// Height of a picture.
const LINES: usize = 6;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_recording::{Options, read};

    #[test]
    fn a_recording_is_summed_up_and_drawn() {
        let mut csv = String::from("time,mbps,rtt_ms\n");
        for second in 0..600u64 {
            let mbps = if (100..104).contains(&second) { 0 } else { 50 + (second * 37) % 50 };
            let rtt = 40 + 20 * (second / 15 * 7 % 5);
            csv += &format!("{},{mbps},{rtt}\n", 1_900_000_000 + second);
        }
        let content = read(&csv, &Options::default()).unwrap();
        let recorded = Recorded::of("drive.csv", &content);
        assert_eq!((recorded.length_s, recorded.interval_s, recorded.outages.len()), (600.0, 1.0, 1));
        assert_eq!(recorded.rate_bps.as_ref().unwrap().most, 99e6);
        let all = Recordings { recordings: vec![recorded], common_s: None, windows: Vec::new() };
        let text = recordings(&all, &[content], 80);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "drive.csv: 10.0 min, a table with a row each 1.00 s, from 2030-03-17T17:46:40Z",
            "Once hardly anything passes",
            "4.00 s together, the longest 4.00 s from 100 s on",
            "The delay changes every 15.0 s and at no other time, first at 15.0 s.",
            "█",
        ] {
            assert!(words.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn means_of_columns_are_over_time() {
        let content = read("t,mbps\n0,10\n1,20\n2,60\n", &Options::default()).unwrap();
        let means = sampled(&content.rates(WINDOW).unwrap(), SCALE + 10, |rate| rate.as_mbps());
        let expected = [10.0, 10.0, 10.0, 16.666, 20.0, 20.0, 33.333, 60.0, 60.0, 60.0];
        assert!(means.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-2), "{means:?}");
    }
}
