//! Loads a study, and checks it as far as possible without its runs.

use super::file::{
    AxisTable, BaseFile, PlotTable, RepeatTable, SensitivityTable, StatementTable, StudyFile, SystemTable,
};
use super::result::Assumption;
use super::shipped::{BASES, STUDIES};
use anabranch_policy::Catalogue;
use anabranch_scenario::Layer;
use anabranch_scenario::file::At;
use anabranch_scenario::{Origin, Scenario, ScenarioError, beside};
use anabranch_scenario::{Problem, Sources};
use anabranch_units::{hex, input, nearest, suggest};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Study ready to run.
#[derive(Clone)]
pub struct Study {
    /// Name such as `late/fig10`, or the path of a file.
    pub name: String,
    /// File as written.
    pub(super) file: StudyFile,
    /// SHA-256 of its text and that of its base.
    pub(super) digest: String,
    /// Axes.
    pub(super) axes: Vec<Axis>,
    /// Alternatives to try if a statement fails: the study's own, then the base's.
    pub(super) sensitivities: Vec<SensitivityTable>,
    /// Assumptions where the paper leaves something open: the base's, then the study's own.
    pub(super) assumptions: Vec<Assumption>,
    /// Overrides that lie over all systems and points.
    pub(super) sets: Vec<String>,
    /// Name and text of each file, the base first.
    layers: Vec<(String, String)>,
    /// Directory of the traces named in the file; `None` for a study inside the program.
    directory: Option<PathBuf>,
    sources: Sources,
}

/// Axis with its points.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) unit: String,
    pub(super) log: bool,
    /// True if its points have names rather than numbers.
    pub(super) is_category: bool,
    pub(super) points: Vec<AxisPoint>,
    /// Values that `--quick` keeps.
    quick: Option<Vec<f64>>,
}

/// Point of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AxisPoint {
    pub(super) x: f64,
    pub(super) label: String,
    pub(super) sets: Vec<String>,
}

impl Axis {
    /// Returns the point with its unit, as in `20 ms`.
    pub(super) fn shown(&self, point: usize) -> String {
        let label = &self.points[point].label;
        match self.unit.is_empty() || self.is_category {
            true => label.clone(),
            false => format!("{label} {}", self.unit),
        }
    }

    /// Returns true if `--quick` keeps the point.
    pub(super) fn is_quick(&self, point: usize) -> bool {
        self.quick.as_ref().is_none_or(|quick| quick.contains(&self.points[point].x))
    }
}

/// Maximum number of repetitions, as for `--repeat`.
const MOST_REPETITIONS: usize = 100_000;

/// Table of a study file that holds the scenario.
const SCENARIO: &str = "scenario";

impl Study {
    /// Returns the names of all studies in the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        STUDIES.iter().map(|shipped| shipped.name)
    }

    /// Returns true if the name is that of a study in the program, or of a file with a study.
    pub fn is_one(name: &str) -> bool {
        let is_file = |text: String| text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("paper"));
        find(STUDIES, name).is_some() || input::written(Path::new(name)).is_ok_and(is_file)
    }

    /// Loads the study of that name in the program, or else the file.
    ///
    /// # Errors
    ///
    /// If there is none, or if it has an error.
    pub fn load(name: &str) -> Result<Study, ScenarioError> {
        if let Some(text) = find(STUDIES, name) {
            let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
            let base =
                |base: &str| find(BASES, &format!("{directory}/{}", base.strip_suffix(".toml")?)).map(str::to_owned);
            return Study::read(name, &format!("studies/{name}.toml"), text, None, &base);
        }
        if anabranch_scenario::shipped::find(name).is_some() {
            return Err(is_scenario(name));
        }
        let text = input::written(Path::new(name)).map_err(|error| not_found(name, &error))?;
        let is_file = |table: toml::Table| table.contains_key("path") && !table.contains_key(SCENARIO);
        if text.parse::<toml::Table>().is_ok_and(is_file) {
            return Err(is_scenario(name));
        }
        let directory = Path::new(name).parent().map_or_else(PathBuf::new, Path::to_owned);
        let base = |base: &str| input::text(&directory.join(base), input::WRITTEN).ok();
        Study::read(name, name, &text, Some(directory.clone()), &base)
    }

    fn read(
        name: &str,
        file_name: &str,
        text: &str,
        directory: Option<PathBuf>,
        base: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Study, ScenarioError> {
        // The name of the base is in the text that comes after the base.
        let named = |table: toml::Table| Some(table.get("base")?.as_str()?.to_owned());
        let base_name = text.parse::<toml::Table>().ok().and_then(named);
        let mut sources = Sources::default();
        let mut layers = Vec::new();
        let below = match base_name.as_deref().and_then(base) {
            None => None,
            Some(text) => {
                let name = format!("{} of {file_name}", base_name.as_deref().unwrap_or("base"));
                sources.push_file(&name, &text);
                let below = toml::from_str::<BaseFile>(&text);
                let below = below.map_err(|error| sources.error(Problem::from_toml(&error)))?;
                layers.push((name, text));
                Some(below)
            }
        };
        let start = sources.push_file(file_name, text);
        layers.push((file_name.to_owned(), text.to_owned()));
        let file: Result<StudyFile, _> = toml::from_str(&(" ".repeat(start) + text));
        let file = file.map_err(|error| sources.error(Problem::from_toml(&error)))?;
        if let (Some(at), None) = (&file.base, &below) {
            let help = "accepted: the name of a file in the same directory, such as \"common.toml\"";
            return Err(sources.error(Problem::at(&at.span, format!("there is no base `{}`", at.value), help)));
        }
        let axes = file.axis.iter().map(axis).collect::<Result<_, _>>().map_err(|problem| sources.error(problem))?;
        let mut hash = Sha256::new();
        layers.iter().for_each(|(_, text)| hash.update(text.as_bytes()));
        let (mut assumptions, mut sensitivities) = (Vec::new(), tables(&file.sensitivity));
        if let Some(below) = below {
            assumptions.extend(below.assumption);
            // An alternative of the study replaces one of the base with the same name.
            let own: Vec<String> = sensitivities.iter().map(|it| it.name.clone()).collect();
            sensitivities.extend(tables(&below.sensitivity).into_iter().filter(|it| !own.contains(&it.name)));
        }
        assumptions.extend(file.assumption.iter().cloned());
        let digest = hex(&hash.finalize());
        let study = Study {
            name: name.to_owned(),
            file,
            digest,
            axes,
            sensitivities,
            assumptions,
            sets: Vec::new(),
            layers,
            directory,
            sources,
        };
        study.check().map_err(|problem| study.sources.error(problem))?;
        Ok(study)
    }

    /// Returns its scenario with the settings `sets`.
    pub(crate) fn scenario(&self, catalogue: &Arc<Catalogue>, sets: &[String]) -> Result<Scenario, ScenarioError> {
        let origin = Origin { scenario: self.name.clone(), sets: sets.to_vec() };
        let read = beside(self.directory.as_deref().unwrap_or(Path::new("")));
        Scenario::layered(catalogue, &self.name, &self.scenario_layers(), origin, &read)
    }

    fn scenario_layers(&self) -> Vec<Layer<'_>> {
        self.layers.iter().map(|(name, text)| Layer { name, text, within: Some(SCENARIO) }).collect()
    }

    /// Returns its scenario as TOML, merged with that of its base and overridden by `sets`.
    pub(super) fn scenario_text(&self, sets: &[String]) -> Result<String, ScenarioError> {
        anabranch_scenario::merged(&self.scenario_layers(), sets)
    }

    /// Returns the title, in one line.
    pub fn title(&self) -> &str {
        &self.file.title.value
    }

    /// Returns the short name of the paper.
    pub fn paper(&self) -> &str {
        &self.file.paper.value
    }

    /// Returns the name of the figure in the paper.
    pub fn figure(&self) -> &str {
        &self.file.figure
    }

    /// Returns the paper's statements, in our words.
    pub fn statements(&self) -> impl Iterator<Item = &str> {
        self.claims().map(|claim| claim.text.as_str())
    }

    /// Makes an error at a place in its file.
    pub(super) fn refuse(&self, problem: Problem) -> ScenarioError {
        self.sources.error(problem)
    }

    /// Reduces the study to the points and repetitions of `--quick`, and to half of the combinations of a search.
    pub fn quick(mut self) -> Study {
        for axis in &mut self.axes {
            axis.points =
                (0..axis.points.len()).filter(|n| axis.is_quick(*n)).map(|n| axis.points[n].clone()).collect();
        }
        self.file.repeat.full = self.file.repeat.quick;
        self.file.repeat.combinations /= 2;
        self
    }

    /// Sets the number of repetitions.
    pub fn repeated(mut self, repetitions: usize) -> Study {
        self.file.repeat.full = repetitions;
        self
    }

    /// Lays overrides (`KEY=VALUE`, as `--set` takes them) over all systems and points, as sensitivities do.
    pub fn overridden(mut self, sets: &[String]) -> Study {
        self.sets.extend_from_slice(sets);
        self
    }

    pub(super) fn repeat(&self) -> &RepeatTable {
        &self.file.repeat
    }

    pub(super) fn systems(&self) -> impl Iterator<Item = &SystemTable> {
        self.file.system.iter().map(|at| &at.value)
    }

    pub(super) fn plots(&self) -> impl Iterator<Item = &PlotTable> {
        self.file.plot.iter().map(|at| &at.value)
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = &StatementTable> {
        self.file.statement.iter().map(|at| &at.value)
    }

    /// Returns the index of the system with this name.
    pub(super) fn system(&self, name: &At<String>) -> Result<usize, Problem> {
        self.systems().position(|system| system.name == name.value).ok_or_else(|| {
            let names: Vec<&str> = self.systems().map(|system| system.name.as_str()).collect();
            Problem::at(&name.span, format!("there is no system `{}`", name.value), suggest(&name.value, names))
        })
    }

    /// Checks that required names and values are present.
    fn check(&self) -> Result<(), Problem> {
        let title = &self.file.title.span;
        if self.file.system.is_empty() {
            return Err(Problem::at(
                title,
                "nothing is compared here",
                "accepted: at least one [[system]] with `name` and `set`",
            ));
        }
        let RepeatTable { full, quick, .. } = self.file.repeat;
        if ![full, quick].iter().all(|n| (1..=MOST_REPETITIONS).contains(n)) {
            let problem = format!("`repeat` has {full} and {quick}");
            return Err(Problem::at(title, problem, "accepted: 1 to 100000 repetitions"));
        }
        for (n, (axis, at)) in self.axes.iter().zip(&self.file.axis).enumerate() {
            // Names of axes become columns beside those of the results.
            let taken = ["version", "study", "system", "digest", "seed"].contains(&axis.name.as_str());
            if taken || self.axes[..n].iter().any(|other| other.name == axis.name) {
                let problem = format!("`{}` cannot be the name of this axis: something else has it", axis.name);
                return Err(Problem::at(
                    &at.span,
                    problem,
                    "accepted: a name of its own, which no column of results has",
                ));
            }
            if axis.points.is_empty() {
                return Err(Problem::at(&at.span, "this axis has no points", "accepted: one value or more"));
            }
        }
        for (n, at) in self.file.system.iter().enumerate() {
            if self.systems().take(n).any(|other| other.name == at.value.name) {
                let problem = format!("two systems are called `{}`", at.value.name);
                return Err(Problem::at(&at.span, problem, "accepted: a name of its own for each"));
            }
        }
        for plot in self.plots() {
            for name in plot
                .systems
                .iter()
                .flat_map(|at| at.value.iter().map(|name| At { span: at.span.clone(), value: name.clone() }))
            {
                self.system(&name)?;
            }
            plot.over.as_ref().map(|over| self.system(over)).transpose()?;
        }
        for claim in self.claims() {
            let numbers = [claim.value, claim.within, claim.margin, claim.at_least, claim.at_most];
            let range = claim.range.unwrap_or_default();
            let odd = numbers.into_iter().flatten().chain(range).any(|x| !x.is_finite());
            if odd
                || range[0] > range[1]
                || claim.within.is_some_and(|x| x < 0.0)
                || claim.margin.is_some_and(|x| x < 0.0)
            {
                let help = "accepted: finite numbers, tolerances not below zero, a range from the lower to the higher";
                return Err(Problem::at(
                    &claim.metric.span,
                    "a number of this statement is not finite, or out of order",
                    help,
                ));
            }
            if claim.equals.is_some() && claim.metric.value != "decisions" {
                let problem = format!("`{}` is no text", claim.metric.value);
                return Err(Problem::at(
                    &claim.metric.span,
                    problem,
                    "accepted: metric = \"decisions\" beside `equals`",
                ));
            }
            for name in claim.system.iter().chain(&claim.over) {
                self.system(name)?;
            }
            for (name, at) in &claim.at {
                let Some(axis) = self.axes.iter().find(|axis| axis.name == *name) else {
                    let names: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
                    return Err(Problem::at(&at.span, format!("there is no axis `{name}`"), suggest(name, names)));
                };
                if let Some(x) = at.value.iter().find(|x| axis.points.iter().all(|point| point.x != **x)) {
                    let all: Vec<String> = axis.points.iter().map(|point| point.x.to_string()).collect();
                    let help = format!("accepted: {}", all.join(", "));
                    return Err(Problem::at(&at.span, format!("the axis `{name}` has no value {x}"), help));
                }
            }
        }
        Ok(())
    }
}

fn tables(tables: &[At<SensitivityTable>]) -> Vec<SensitivityTable> {
    tables.iter().map(|at| at.value.clone()).collect()
}

fn find(all: &[super::shipped::Shipped], name: &str) -> Option<&'static str> {
    all.iter().find(|shipped| shipped.name == name).map(|shipped| shipped.text)
}

fn is_scenario(name: &str) -> ScenarioError {
    let word = anabranch_scenario::in_shell(name);
    let help = format!(
        "a scenario runs with `anabranch run {word}` or `anabranch compare {word}`; docs/studies.md says what a \
         study has"
    );
    ScenarioError::plain(format!("`{name}` is a scenario, not a study"), Some(help))
}

fn not_found(name: &str, error: &std::io::Error) -> ScenarioError {
    let near = nearest(name, Study::names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let help = format!("{near}accepted: a study file, or a name of `anabranch study --list`");
    ScenarioError::plain(format!("cannot read `{name}`: {error}"), Some(help))
}

fn axis(at: &At<AxisTable>) -> Result<Axis, Problem> {
    let AxisTable { name, label, unit, log, set, values, quick, points } = &at.value;
    let help = "accepted: `set` with `values`, or [[axis.points]] with `x` and `set`";
    if values.is_empty() == points.is_empty() || set.is_empty() != values.is_empty() {
        return Err(Problem::at(&at.span, format!("the axis `{name}` has two kinds of points, or none"), help));
    }
    let mut all = Vec::new();
    for &x in values {
        let sets = set.iter().map(|template| fill(template, x)).collect::<Result<_, _>>()?;
        all.push(AxisPoint { x, label: number(x), sets });
    }
    for point in points {
        let sets = point.value.set.iter().map(|at| at.value.clone()).collect();
        let x = point.value.x;
        all.push(AxisPoint { x, label: point.value.label.clone().unwrap_or_else(|| number(x)), sets });
    }
    if let Some(quick) = quick
        && let Some(x) = quick.value.iter().find(|x| all.iter().all(|point| point.x != **x))
    {
        return Err(Problem::at(
            &quick.span,
            format!("{x} is not a value of this axis"),
            "accepted: some of its values",
        ));
    }
    Ok(Axis {
        name: name.clone(),
        label: label.clone(),
        unit: unit.clone(),
        log: *log,
        is_category: points.iter().any(|point| point.value.label.is_some()),
        points: all,
        quick: quick.as_ref().map(|at| at.value.clone()),
    })
}

/// Replaces `{}` in the template by the value, and `{*2.5}` by 2.5 times the value.
pub(crate) fn fill(template: &At<String>, x: f64) -> Result<String, Problem> {
    let wrong = || {
        Problem::at(&template.span, "text between braces is not understood", "accepted: `{}` or `{*2.5}` for the value")
    };
    let (mut text, mut rest) = (String::new(), template.value.as_str());
    while let Some(at) = rest.find('{') {
        let (before, behind) = rest.split_at(at);
        let end = behind.find('}').ok_or_else(wrong)?;
        let factor = match behind[1..end].strip_prefix('*') {
            Some(factor) => factor.parse::<f64>().map_err(|_| wrong())?,
            None if end == 1 => 1.0,
            None => return Err(wrong()),
        };
        text.push_str(before);
        text.push_str(&number(x * factor));
        rest = &behind[end + 1..];
    }
    text.push_str(rest);
    if text == template.value {
        return Err(Problem::at(
            &template.span,
            "the text does not use the value",
            "accepted: `{}` in place of the value",
        ));
    }
    Ok(text)
}

/// Formats a number without the noise of binary fractions: 70.7 rather than 70.70000000000002.
fn number(x: f64) -> String {
    let rounded = format!("{x:.11e}").parse::<f64>().unwrap_or(x);
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_takes_the_value_and_its_multiples() {
        let at = |text: &str| At { span: 0..text.len(), value: text.to_owned() };
        assert_eq!(fill(&at("path.a.loss={}%"), 0.5).as_deref(), Ok("path.a.loss=0.5%"));
        assert_eq!(fill(&at("path.b.delay={*10}ms"), 7.07).as_deref(), Ok("path.b.delay=70.7ms"));
        assert!(fill(&at("path.b.delay={*x}ms"), 7.07).is_err());
        assert!(fill(&at("path.b.delay=5ms"), 7.07).is_err());
    }
}
