//! Loads a field study, and checks it as far as possible without its runs.

use super::excerpt;
use super::file::{FieldFile, RowTable, UnrecordedTable};
use super::shipped::FIELDS;
use crate::study::fill;
use anabranch_policy::Catalogue;
use anabranch_scenario::file::At;
use anabranch_scenario::{Layer, Origin, Problem, Scenario, ScenarioError, Sources, beside};
use anabranch_units::{hex, input, nearest};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Field study ready to run.
#[derive(Clone)]
pub struct Field {
    /// Name such as `field/simult-flows`, or the path of a file.
    pub name: String,
    pub(super) file: FieldFile,
    /// SHA-256 of its text.
    pub(super) digest: String,
    /// Overrides that lie over all rows.
    pub(super) sets: Vec<String>,
    /// Number of draws, in place of those of the file.
    draws: Option<usize>,
    text: String,
    /// Directory of a file; `None` for a study inside the program.
    directory: Option<PathBuf>,
    /// Directory of the data, if the user named one.
    data: Option<PathBuf>,
    sources: Sources,
}

impl Field {
    /// Returns the names of all field studies in the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name)
    }

    /// Returns true if the name is that of a field study in the program, or of a file with one.
    pub fn is_one(name: &str) -> bool {
        let is_file = |text: String| text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("row"));
        is_shipped(name) || name.starts_with("field/") || input::written(Path::new(name)).is_ok_and(is_file)
    }

    /// Loads the field study of that name in the program, or else the file.
    ///
    /// # Errors
    ///
    /// If there is none, or if it has an error.
    pub fn load(name: &str) -> Result<Field, ScenarioError> {
        if let Some((_, text)) = FIELDS.iter().find(|(known, _)| *known == name) {
            return Field::read(name, &format!("studies/{name}.toml"), text, None);
        }
        let text = input::written(Path::new(name)).map_err(|error| {
            let near = nearest(name, Field::names());
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let help = format!("{near}accepted: a file of a field study, or a name of `anabranch study --list`");
            ScenarioError::plain(format!("cannot read `{name}`: {error}"), Some(help))
        })?;
        let directory = Path::new(name).parent().map_or_else(PathBuf::new, Path::to_owned);
        Field::read(name, name, &text, Some(directory))
    }

    fn read(name: &str, file_name: &str, text: &str, directory: Option<PathBuf>) -> Result<Field, ScenarioError> {
        let mut sources = Sources::default();
        sources.push_file(file_name, text);
        let file: FieldFile = toml::from_str(text).map_err(|error| sources.error(Problem::from_toml(&error)))?;
        check(&file).map_err(|problem| sources.error(problem))?;
        let digest = hex(&Sha256::digest(text.as_bytes()));
        let (sets, text) = (Vec::new(), text.to_owned());
        Ok(Field { name: name.to_owned(), file, digest, sets, draws: None, text, directory, data: None, sources })
    }

    /// Returns the title, in one line.
    pub fn title(&self) -> &str {
        &self.file.title.value
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.file.row.len()
    }

    /// Reads the recordings from this directory.
    pub fn with_data(mut self, directory: &Path) -> Field {
        self.data = Some(directory.to_owned());
        self
    }

    /// Reduces the study to the draws of `--quick`.
    pub fn quick(mut self) -> Field {
        self.draws = Some(self.file.draws.quick);
        self
    }

    /// Sets the number of draws of all rows.
    pub fn drawn(mut self, draws: usize) -> Field {
        self.draws = Some(draws);
        self
    }

    /// Lays overrides (`KEY=VALUE`, as `--set` takes them) over all rows.
    pub fn overridden(mut self, sets: &[String]) -> Field {
        self.sets.extend_from_slice(sets);
        self
    }

    /// Returns the number of draws of a row.
    pub(super) fn draws_of(&self, row: &RowTable) -> usize {
        self.draws.or(row.draws).unwrap_or(self.file.draws.full)
    }

    pub(super) fn unrecorded(&self) -> Vec<&UnrecordedTable> {
        self.file.unrecorded.iter().map(|at| &at.value).collect()
    }

    /// Makes an error at a place in its file.
    pub(super) fn refuse(&self, problem: Problem) -> ScenarioError {
        self.sources.error(problem)
    }

    /// Reads its recordings.
    pub(super) fn excerpts(&self) -> Result<BTreeMap<String, String>, ScenarioError> {
        let Some(data) = &self.file.data else { return Ok(BTreeMap::new()) };
        let sought = self.data.clone().unwrap_or_else(|| PathBuf::from(&data.directory));
        excerpt::read(&self.name, data, &sought)
    }

    /// Returns its scenario with the settings `sets`.
    pub(crate) fn scenario(&self, catalogue: &Arc<Catalogue>, sets: &[String]) -> Result<Scenario, ScenarioError> {
        self.scenario_with(catalogue, sets, &self.excerpts()?)
    }

    pub(super) fn scenario_with(
        &self,
        catalogue: &Arc<Catalogue>,
        sets: &[String],
        excerpts: &BTreeMap<String, String>,
    ) -> Result<Scenario, ScenarioError> {
        let origin = Origin { scenario: self.name.clone(), sets: sets.to_vec() };
        let beside = beside(self.directory.as_deref().unwrap_or(Path::new("")));
        let read = |name: &str, from_set: bool| excerpts.get(name).cloned().map_or_else(|| beside(name, from_set), Ok);
        Scenario::layered(catalogue, &self.name, &[self.layer()], origin, &read)
    }

    /// Returns its scenario as TOML, overridden by `sets`.
    pub(super) fn scenario_text(&self, sets: &[String]) -> Result<String, ScenarioError> {
        anabranch_scenario::merged(&[self.layer()], sets)
    }

    /// Returns the names of the paths of its scenario with the settings `sets`.
    pub(super) fn paths(&self, sets: &[String]) -> Result<BTreeSet<String>, ScenarioError> {
        let table = self.scenario_text(sets)?.parse::<toml::Table>().unwrap_or_default();
        let paths = table.get("path").and_then(toml::Value::as_table);
        Ok(paths.into_iter().flat_map(|paths| paths.keys().cloned()).collect())
    }

    fn layer(&self) -> Layer<'_> {
        Layer { name: &self.name, text: &self.text, within: Some("scenario") }
    }
}

fn is_shipped(name: &str) -> bool {
    FIELDS.iter().any(|(known, _)| *known == name)
}

/// Checks that required values are present and make sense.
fn check(file: &FieldFile) -> Result<(), Problem> {
    let title = &file.title.span;
    if file.row.is_empty() {
        return Err(Problem::at(title, "there is no measured number here", "accepted: at least one [[row]]"));
    }
    let counts = file.row.iter().filter_map(|row| row.value.draws).chain([file.draws.full, file.draws.quick]);
    if let Some(count) = counts.into_iter().find(|count| !(1..=MOST_DRAWS).contains(count)) {
        return Err(Problem::at(title, format!("a row has {count} draws"), "accepted: 1 to 10000 draws"));
    }
    for (n, row) in file.row.iter().enumerate() {
        let RowTable { name, measured, before, .. } = &row.value;
        if file.row[..n].iter().any(|other| other.value.name == *name) {
            let problem = format!("two rows are called `{name}`");
            return Err(Problem::at(&row.span, problem, "accepted: a name of its own for each"));
        }
        if !(measured.is_finite() && *measured > 0.0 && before.is_finite() && *before >= 0.0) {
            let help = "accepted: a measured number above zero, and a time before it that is not negative";
            return Err(Problem::at(&row.span, format!("the numbers of `{name}` are none"), help));
        }
    }
    file.unrecorded.iter().enumerate().try_for_each(|(n, at)| quantity(&file.unrecorded[..n], at))
}

fn quantity(before: &[At<UnrecordedTable>], at: &At<UnrecordedTable>) -> Result<(), Problem> {
    let UnrecordedTable { name, set, range, step, choices, .. } = &at.value;
    let wrong = |problem: String, help: &str| Err(Problem::at(&at.span, problem, help));
    if before.iter().any(|other| other.value.name == *name) {
        return wrong(format!("two quantities are called `{name}`"), "accepted: a name of its own for each");
    }
    let sound = match (range, choices) {
        (Some([low, high]), None) => low.is_finite() && high.is_finite() && low < high,
        (None, Some(choices)) => !choices.is_empty() && step.is_none(),
        _ => false,
    };
    if !sound || step.is_some_and(|step| !(step.is_finite() && step > 0.0)) {
        let help = "accepted: `range` from the lower to the higher number, with a `step` above zero if values are \
                    rounded; or a list of `choices`";
        return wrong(format!("nothing can be drawn for `{name}`"), help);
    }
    if set.is_empty() {
        return wrong(format!("nothing is set to `{name}`"), "accepted: one setting or more, with `{}` for the value");
    }
    match range {
        Some([low, _]) => set.iter().try_for_each(|set| fill(set, *low).map(drop)),
        None => match set.iter().find(|set| !set.value.contains("{}")) {
            None => Ok(()),
            Some(set) => Err(Problem::at(&set.span, "the text does not use the value", "accepted: `{}` for the value")),
        },
    }
}

/// Maximum number of draws of a row.
const MOST_DRAWS: usize = 10_000;
