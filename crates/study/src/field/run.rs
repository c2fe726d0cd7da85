//! Runs a field study from beginning to end.

use super::draw::Drawn;
use super::file::{RowTable, UnrecordedTable};
use super::load::Field;
use super::result::{Data, FieldResult, FieldRow, FieldVerdict, Prediction, Range, Unrecorded};
use crate::study::StudyError;
use crate::study::metric::Metric;
use anabranch_lab::{Journal, Measured, in_parallel};
use anabranch_policy::Catalogue;
use anabranch_scenario::file::At;
use anabranch_scenario::{Scenario, ScenarioError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Field study with all its scenarios, ready to run.
pub struct Trial {
    /// The study.
    pub field: Field,
    rows: Vec<Row>,
}

/// Row with its scenarios.
struct Row {
    metric: Metric,
    draws: Vec<Draw>,
}

/// Draw of what was not recorded.
struct Draw {
    seed: u64,
    drawn: Vec<String>,
    scenario: Scenario,
    over: Option<Scenario>,
}

impl Trial {
    /// Reads recordings, and builds the scenarios of all rows and draws.
    ///
    /// # Errors
    ///
    /// If recordings are missing, or a scenario or metric is not valid.
    pub fn new(field: Field, catalogue: &Arc<Catalogue>) -> Result<Trial, ScenarioError> {
        let excerpts = field.excerpts()?;
        let rows = field.file.row.iter().map(|row| Row::new(&field, &row.value, catalogue, &excerpts));
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(Trial { field, rows })
    }

    /// Returns the number of runs that are not in the journal.
    pub fn missing(&self, journal: &Journal) -> usize {
        self.to_do(journal).len()
    }

    /// Makes the runs that the journal does not have, on `jobs` threads (0: one per processor), and calls `done` after
    /// each.
    ///
    /// # Errors
    ///
    /// If a run breaks or cannot be kept. Runs made until then are kept.
    pub fn run(&self, journal: &Journal, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<(), StudyError> {
        let one = |(scenario, seed): &(&Scenario, u64)| -> Result<(), StudyError> {
            Ok(journal.run(&scenario.digest, scenario, *seed).map(drop)?)
        };
        in_parallel(&self.to_do(journal), jobs, done, &one).map(|_: Vec<()>| ())
    }

    fn all(&self) -> impl Iterator<Item = (&Scenario, u64)> {
        let draws = self.rows.iter().flat_map(|row| &row.draws);
        draws
            .flat_map(|draw| [Some(&draw.scenario), draw.over.as_ref()].into_iter().flatten().map(|it| (it, draw.seed)))
    }

    /// Returns the runs that are not in the journal, each once: rows can share runs.
    fn to_do(&self, journal: &Journal) -> Vec<(&Scenario, u64)> {
        let mut known = BTreeSet::new();
        self.all().filter(|(it, seed)| !journal.has(&it.digest, *seed) && known.insert((&it.digest, *seed))).collect()
    }

    /// Judges all rows when the runs are made. `command` repeats the study; `quick` is true for the draws of
    /// `--quick`.
    ///
    /// # Errors
    ///
    /// If the scenario is not valid.
    pub fn result(&self, journal: &Journal, command: &str, quick: bool) -> Result<FieldResult, ScenarioError> {
        assert_eq!(self.missing(journal), 0, "a study is judged when its runs are made");
        let file = &self.field.file;
        let rows: Vec<FieldRow> =
            file.row.iter().zip(&self.rows).map(|(table, row)| row.judged(&table.value, journal)).collect();
        let widths = rows.iter().filter_map(|row| row.predicted).map(|range| range.half_percent());
        Ok(FieldResult {
            version: anabranch_lab::VERSION.to_owned(),
            build: anabranch_lab::build().to_owned(),
            name: self.field.name.clone(),
            title: self.field.title().to_owned(),
            source: file.source.clone(),
            about: file.about.clone(),
            stack: file.stack.clone(),
            digest: self.field.digest.clone(),
            command: command.to_owned(),
            quick,
            sets: self.field.sets.clone(),
            runs: self.all().map(|(it, seed)| (&it.digest, seed)).collect::<BTreeSet<_>>().len(),
            inside: rows.iter().filter(|row| row.verdict == FieldVerdict::Inside).count(),
            widest_percent: widths.max_by(f64::total_cmp),
            rows,
            unrecorded: self.field.unrecorded().into_iter().map(unrecorded).collect(),
            left_out: file.left_out.clone(),
            data: file.data.as_ref().map(|it| Data { fetch: it.fetch.clone(), licence: it.licence.clone() }),
            scenario: self.field.scenario_text(&[])?,
        })
    }
}

impl Row {
    fn new(
        field: &Field,
        row: &RowTable,
        catalogue: &Arc<Catalogue>,
        excerpts: &BTreeMap<String, String>,
    ) -> Result<Row, ScenarioError> {
        let count = field.draws_of(row);
        let quantities = field.unrecorded();
        let drawn = Drawn::new(&quantities, count);
        let own = values(&row.set);
        let over = row.over.as_deref().map(values);
        let of = |own: &[String], drawn: &[String]| {
            let sets = [own, drawn, &field.sets].concat();
            field.scenario_with(catalogue, &sets, excerpts)
        };
        let mut draws = Vec::new();
        let (of_row, of_over) = (field.paths(&own)?, over.as_deref().map(|over| field.paths(over)).transpose()?);
        for n in 0..count {
            let all = quantities.iter().enumerate().flat_map(|(place, it)| drawn.sets(it, place, n));
            let all: Vec<String> = all.collect();
            let sets = apply(&all, &of_row);
            let over = over.as_deref().zip(of_over.as_ref());
            let over = over.map(|(over, paths)| of(over, &apply(&all, paths))).transpose()?;
            draws.push(Draw { seed: n as u64 + 1, scenario: of(&own, &sets)?, drawn: sets, over });
        }
        let paths = draws.first().map(|draw| draw.scenario.paths()).unwrap_or_default();
        let metric = Metric::parse(&row.metric, &paths).map_err(|problem| field.refuse(problem))?;
        Ok(Row { metric, draws })
    }

    fn judged(&self, row: &RowTable, journal: &Journal) -> FieldRow {
        let number = |scenario: &Scenario, seed| self.number(&journal.get(&scenario.digest, seed)?, row.before);
        let prediction = |draw: &Draw| Prediction {
            seed: draw.seed,
            drawn: draw.drawn.clone(),
            value: number(&draw.scenario, draw.seed).and_then(|value| match &draw.over {
                None => Some(value),
                Some(over) => Some(100.0 * value / number(over, draw.seed)?).filter(|share| share.is_finite()),
            }),
            command: draw.scenario.origin.command(draw.seed),
        };
        let predictions: Vec<Prediction> = self.draws.iter().map(prediction).collect();
        let values: Option<Vec<f64>> = predictions.iter().map(|it| it.value).collect();
        let predicted = values.map(|values| Range::of(&values));
        FieldRow {
            name: row.name.clone(),
            source: row.source.clone(),
            metric: self.metric.about(),
            unit: if row.over.is_some() { "%" } else { self.metric.unit() }.to_owned(),
            measured: row.measured,
            predicted,
            verdict: FieldVerdict::of(row.measured, predicted),
            draws: self.draws.len(),
            predictions,
            note: row.note.clone(),
        }
    }

    /// Returns the number of a run that came to its end.
    fn number(&self, measured: &Measured, before: f64) -> Option<f64> {
        self.metric.of(measured).filter(|value| measured.finished && value.is_finite()).map(|value| value + before)
    }
}

fn values(sets: &[At<String>]) -> Vec<String> {
    sets.iter().map(|at| at.value.clone()).collect()
}

/// Returns the settings that are not those of a path which is not there.
fn apply(sets: &[String], paths: &BTreeSet<String>) -> Vec<String> {
    let is_there = |set: &&String| match set.strip_prefix("path.").and_then(|rest| rest.split(['.', '=']).next()) {
        Some(path) => paths.contains(path),
        None => true,
    };
    sets.iter().filter(is_there).cloned().collect()
}

fn unrecorded(it: &UnrecordedTable) -> Unrecorded {
    let range = match (&it.choices, it.range) {
        (Some(choices), _) => choices.join(", "),
        (None, range) => {
            let [low, high] = range.unwrap_or_default();
            format!("{low} to {high} {}", it.unit).trim_end().to_owned()
        }
    };
    Unrecorded { name: it.name.clone(), range, reason: it.reason.clone() }
}
