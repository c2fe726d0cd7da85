//! Lessons: each a question, a scenario, systems to hold against each other, and what to change. `web/lessons` has them
//! as files; a test runs each and holds it to its claims.

use crate::request::Progress;
use crate::results::{bounded, shown};
use crate::scenario::{Source, Trouble};
use anabranch_lab::stats::Estimate;
use anabranch_lab::{Keep, Run};
use anabranch_policy::Catalogue;
use anabranch_report::Header;
use anabranch_report::html::{Page, Section};
use anabranch_scenario::Scenario;
use anabranch_scenario::file::MeasureName;
use anabranch_study::figure::{Axis, Figure, Mark, Point, Scale, Series, SeriesOrigin};
use anabranch_study::study::SystemInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Files of the lessons by name, in the order in which they build on each other.
pub const LESSONS: [(&str, &str); 6] = [
    ("second-path", include_str!("../../../web/lessons/second-path.toml")),
    ("head-of-line", include_str!("../../../web/lessons/head-of-line.toml")),
    ("small-buffer", include_str!("../../../web/lessons/small-buffer.toml")),
    ("schedulers", include_str!("../../../web/lessons/schedulers.toml")),
    ("fairness", include_str!("../../../web/lessons/fairness.toml")),
    ("ack-path", include_str!("../../../web/lessons/ack-path.toml")),
];

/// A lesson.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lesson {
    /// Title.
    pub title: String,
    /// Question, one sentence.
    pub question: String,
    /// Paragraphs before the figure.
    pub before: Vec<String>,
    /// Paragraphs below the figure: what it shows, and why.
    pub after: Vec<String>,
    /// Number shown for each system.
    pub shown: Shown,
    /// Further figures of a single run, by their names in a report.
    pub figures: Vec<String>,
    /// Number of repetitions.
    pub repeat: usize,
    /// Systems to hold against each other.
    pub systems: Vec<System>,
    /// Settings that the reader changes.
    pub changes: Vec<Change>,
    /// Statements of the text about the figure, for the test.
    pub claims: Vec<Claim>,
    /// The scenario.
    pub scenario: String,
}

/// Number that a lesson's figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The measure of the scenario.
    Measure,
    /// Goodput of the connection beside that of the competing TCP.
    Fairness,
    /// Segments that waited at the receiver behind missing data, on average, beside the measure.
    Waiting,
}

/// A system: the scenario with overrides.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Name.
    pub name: String,
    /// Overrides, as `--set` takes them.
    pub sets: Vec<String>,
}

/// A setting that the reader changes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Description, a few words.
    pub about: String,
    /// Key of the scenario.
    pub key: String,
    /// Values to choose from, as TOML; the first is the scenario's own.
    pub values: Vec<String>,
    /// Thing to look for.
    pub look: String,
}

/// A claim: with these overrides, the number of `less` is below `factor` times that of `more`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Name of a system.
    pub less: String,
    /// Name of a system.
    pub more: String,
    /// Factor; 1 unless given.
    #[serde(default = "one")]
    pub factor: f64,
    /// Figure of bars; the first unless given.
    #[serde(default)]
    pub figure: usize,
    /// Series of the figure; the first unless given.
    #[serde(default)]
    pub series: usize,
    /// Overrides.
    #[serde(default)]
    pub sets: Vec<String>,
}

fn one() -> f64 {
    1.0
}

/// Returns the lessons by name, in their order.
pub fn lessons() -> Result<Vec<(&'static str, Lesson)>, Trouble> {
    let read = |(name, text): &(&'static str, &str)| match toml::from_str(text) {
        Ok(lesson) => Ok((*name, lesson)),
        Err(error) => Err(Trouble::plain(format!("lesson `{name}`: {error}"))),
    };
    LESSONS.iter().map(read).collect()
}

/// Runs the systems of a lesson with overrides by the reader, and returns its figures.
pub fn play(
    catalogue: &Arc<Catalogue>,
    name: &str,
    sets: &[String],
    progress: &Progress<'_>,
) -> Result<Value, Trouble> {
    let lesson = lessons()?.into_iter().find(|(other, _)| *other == name).map(|(_, lesson)| lesson);
    let lesson = lesson.ok_or_else(|| Trouble::plain(format!("there is no lesson `{name}`")))?;
    let all = lesson.systems.len() * lesson.repeat;
    bounded(all)?;
    let source = Source { name: name.to_owned(), text: lesson.scenario.clone(), sets: sets.to_vec() };
    let measure = source.load(catalogue)?.measure;
    let (mut rows, mut details) = (Vec::new(), Vec::new());
    for (n, system) in lesson.systems.iter().enumerate() {
        let scenario = source.load_with(catalogue, &system.sets)?;
        let done = &|made: usize| progress(n * lesson.repeat + made, all);
        let (numbers, figures) = lesson.runs(&scenario, done)?;
        rows.push((system.name.clone(), numbers));
        // Figures of one run come after those of all systems, each with the name of its system.
        details.extend(figures.into_iter().map(|figure| Figure {
            id: format!("{}-{}", figure.id, system.name),
            title: format!("{}: {}", system.name, figure.title),
            ..figure
        }));
    }
    let mut figures = lesson.shown.figures(measure, &rows, lesson.repeat);
    figures.extend(details);
    let named = |it: &System| SystemInfo {
        name: it.name.clone(),
        set: it.sets.clone(),
        policies: Vec::new(),
        unavailable: None,
    };
    let systems = lesson.systems.iter().map(named).collect();
    let section = Section { name: name.to_owned(), figures, systems, ..Section::default() };
    shown(&Page { title: lesson.title, sections: vec![section], ..Page::default() })
}

/// Numbers of a system's repetitions, one list for each series.
type Numbers = [Vec<f64>; 2];

impl Lesson {
    /// Runs a system, calls `done` after each run, and returns its numbers and figures of its first run.
    fn runs(&self, scenario: &Scenario, done: &dyn Fn(usize)) -> Result<(Numbers, Vec<Figure>), Trouble> {
        let (mut numbers, mut figures) = (Numbers::default(), Vec::new());
        for n in 0..self.repeat {
            let keep = Keep { timeline: n == 0, ..Keep::default() };
            let run = anabranch_lab::run(scenario, scenario.seed.wrapping_add(n as u64), &keep)?;
            let of_run = self.shown.of(&run, scenario.measure);
            numbers.iter_mut().zip(of_run).for_each(|(all, number)| all.extend(number));
            if n == 0 {
                let (header, all) = (Header::new(scenario, scenario.seed, 1), [run.measured.clone()]);
                let page = Page::of_runs(scenario, &header, &run, &all, "");
                let all = page.sections.into_iter().flat_map(|section| section.figures);
                figures = all.filter(|figure| self.figures.contains(&figure.id)).collect();
            }
            done(n + 1);
        }
        Ok((numbers, figures))
    }
}

impl Shown {
    /// Returns the numbers of a run: one for each series.
    fn of(self, run: &Run, measure: MeasureName) -> [Option<f64>; 2] {
        let own = run.measured.value(measure);
        match self {
            Shown::Measure => [Some(own), None],
            Shown::Waiting => [Some(own), Some(run.measured.ofo_mean)],
            Shown::Fairness => [Some(run.measured.goodput_bps), competing(run)],
        }
    }

    /// Returns the figures of all systems.
    fn figures(self, measure: MeasureName, rows: &[(String, Numbers)], repeat: usize) -> Vec<Figure> {
        let points = |series: usize| -> Vec<Point> {
            let point = |(name, numbers): &(String, Numbers)| {
                let it = Estimate::of(&numbers[series]);
                let end = |sign: f64| it.and_then(|it| Some(it.mean + sign * it.half?));
                Point {
                    category: Some(name.clone()),
                    y: it.map(|it| it.mean),
                    low: end(-1.0),
                    high: end(1.0),
                    n: it.map(|it| it.n),
                    values: numbers[series].clone(),
                    ..Point::default()
                }
            };
            rows.iter().map(point).collect()
        };
        let unit = if measure == MeasureName::Goodput { "bit/s" } else { "s" };
        let named = |name: &str, series: usize| Series {
            name: name.to_owned(),
            origin: SeriesOrigin::Measured,
            points: points(series),
        };
        let bars = |id: &str, title: &str, (label, unit): (&str, &str), series: Vec<Series>| Figure {
            id: id.to_owned(),
            title: title.to_owned(),
            mark: Mark::Bar,
            x: Axis { label: "system".to_owned(), unit: String::new(), scale: Scale::Category },
            y: Axis { label: label.to_owned(), unit: unit.to_owned(), scale: Scale::Linear },
            panels: None,
            columns: None,
            first: Vec::new(),
            series,
            notes: vec![match rows.iter().filter_map(|(_, all)| Estimate::of(&all[0])).all(|it| it.is_one_sample()) {
                true => format!("All {repeat} repetitions are the same run: one sample, which has no interval."),
                false => format!("Means over {repeat} repetitions with 95 % intervals."),
            }],
        };
        // A lesson about fairness has two in one figure: who shares is compared with whom it shares with.
        let own = bars("result", measure.name(), (measure.name(), unit), vec![named("the connection", 0)]);
        match self {
            Shown::Measure => vec![own],
            Shown::Waiting => {
                let (title, axis) = ("Data that waited at the receiver", ("held out of order", "segments"));
                vec![own, bars("waiting", title, axis, vec![named("the connection", 1)])]
            }
            Shown::Fairness => {
                let both = vec![named("MPTCP, two subflows", 0), named("the other TCP", 1)];
                vec![bars("result", "Goodput of each", ("goodput", "bit/s"), both)]
            }
        }
    }
}

/// Returns the goodput of competing TCP while the connection under test was under way.
fn competing(run: &Run) -> Option<f64> {
    let of = |other: bool| {
        let all = run.outcome.transfers.iter();
        all.filter(move |it| it.label.starts_with("tcp") == other)
    };
    let until = of(false).filter_map(|it| it.finished).max()?;
    let bits: f64 = of(true).map(|it| 8.0 * it.bytes as f64).sum();
    let from = of(true).map(|it| it.started).min()?;
    let to = of(true).filter_map(|it| it.finished).max().unwrap_or(until);
    Some(bits / to.since(from).as_secs_f64())
}
