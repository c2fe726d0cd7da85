//! Loads suites and cases, and checks them as far as possible without their runs.

use super::file::{AxisTable, CaseFile, CriterionTable, SuiteFile, ValueTable};
use super::metric::{Argument, Context, Metric};
use super::shipped::{SUITES, Shipped};
use anabranch_engine::Profile;
use anabranch_lab::Span;
use anabranch_policy::Catalogue;
use anabranch_scenario::file::At;
use anabranch_scenario::{Layer, Origin, Problem, Scenario, ScenarioError, Sources};
use anabranch_units::{Duration, input, nearest, quantity, suggest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Suite: the cases of a document.
#[derive(Clone)]
pub struct Suite {
    /// Name on the command line, or the path of a file.
    pub name: String,
    pub(super) file: SuiteFile,
    pub(super) cases: Vec<Case>,
}

/// Case with what its text says.
#[derive(Clone)]
pub struct Case {
    /// Name such as `rfc9743/black-hole`, or the path of a file. It is that of its scenario as well.
    pub name: String,
    pub(super) file: CaseFile,
    pub(super) criteria: Vec<Criterion>,
    text: String,
    sources: Sources,
    span: Span,
    /// The only condition that is run, if there is one.
    only: Option<String>,
}

/// Criterion with its metric.
#[derive(Clone)]
pub(super) struct Criterion {
    pub(super) table: CriterionTable,
    pub(super) metric: Metric,
}

/// Combination of a value of each axis.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// Names of the values, with commas between.
    pub(super) name: String,
    pub(super) sets: Vec<String>,
    pub(super) context: Context,
    /// Reason why it is not run.
    pub(super) not_run: Option<String>,
}

impl Suite {
    /// Returns the names of all suites.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SUITES.iter().map(|suite| suite.name)
    }

    /// Loads the suite of that name, or that of a file, whose cases are the files of the folder beside it with its
    /// name.
    ///
    /// # Errors
    ///
    /// If there is none, or if it has an error.
    pub fn load(name: &str) -> Result<Suite, ScenarioError> {
        if let Some(Shipped { name, text, cases }) = SUITES.iter().find(|suite| suite.name == name) {
            let cases = cases.iter().map(|(name, text)| Case::shipped(name, text)).collect::<Result<_, _>>()?;
            return Suite::read(name, &format!("evaluations/{name}.toml"), text, cases);
        }
        let text = input::written(Path::new(name)).map_err(|error| {
            let help = format!("{}, or a file with a folder of cases beside it", suggest(name, Suite::names()));
            ScenarioError::plain(format!("cannot read `{name}`: {error}"), Some(help))
        })?;
        let folder = Path::new(name).with_extension("");
        let refuse =
            |error| ScenarioError::plain(format!("cannot read the folder {}: {error}", folder.display()), None);
        let entries = std::fs::read_dir(&folder).map_err(refuse)?;
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        let cases = files.iter().map(|path| Case::load(&path.to_string_lossy())).collect::<Result<_, _>>()?;
        Suite::read(name, name, &text, cases)
    }

    fn read(name: &str, path: &str, text: &str, cases: Vec<Case>) -> Result<Suite, ScenarioError> {
        let mut sources = Sources::default();
        sources.push_file(path, text);
        let file: SuiteFile = toml::from_str(text).map_err(|error| sources.error(Problem::from_toml(&error)))?;
        Ok(Suite { name: name.to_owned(), file, cases })
    }

    /// Returns the suite with these of its cases alone, by their names behind the slash.
    ///
    /// # Errors
    ///
    /// If it has no case of such a name.
    pub fn only(mut self, names: &[String]) -> Result<Suite, ScenarioError> {
        for name in names {
            if !self.cases.iter().any(|case| case.short() == name) {
                let help = suggest(name, self.cases.iter().map(Case::short));
                let problem = format!("{} has no case `{name}`", self.name);
                return Err(ScenarioError::plain(problem, Some(help)));
            }
        }
        if !names.is_empty() {
            self.cases.retain(|case| names.iter().any(|name| name == case.short()));
            self.file.text.clear();
        }
        Ok(self)
    }

    /// Returns the suite with this condition alone, and those of its cases that have it.
    ///
    /// # Errors
    ///
    /// If no case has a condition of this name.
    pub fn in_condition(mut self, name: &str) -> Result<Suite, ScenarioError> {
        let mut known = Vec::new();
        for case in &mut self.cases {
            known.extend(case.conditions(false)?.into_iter().map(|condition| condition.name));
            case.only = Some(name.to_owned());
        }
        if !known.iter().any(|it| it == name) {
            known.dedup();
            let help = match known.len() {
                ..=MOST_NAMED => format!("accepted: {}", known.join("; ")),
                _ => "name one case with `--case`; its conditions are in the result and on its page".to_owned(),
            };
            return Err(ScenarioError::plain(format!("there is no condition `{name}`"), Some(help)));
        }
        let mut cases = Vec::new();
        for case in self.cases {
            if !case.conditions(false)?.is_empty() {
                cases.push(case);
            }
        }
        self.file.text.clear();
        Ok(Suite { cases, ..self })
    }

    /// Returns the name of the congestion control that is evaluated unless another is named.
    pub fn control(&self) -> String {
        self.file.control.clone().unwrap_or_else(|| Profile::anabranch().congestion.to_owned())
    }

    /// Returns the names of its cases and their titles.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cases.iter().map(|case| (case.name.as_str(), case.title()))
    }
}

impl Case {
    /// Returns true if the name is that of a case in the program, or of a file with one.
    pub fn is_one(name: &str) -> bool {
        let is_file = |text: String| text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("criterion"));
        let is_shipped = SUITES.iter().flat_map(|suite| suite.cases).any(|(known, _)| *known == name);
        is_shipped || input::written(Path::new(name)).is_ok_and(is_file)
    }

    /// Loads the case of that name, or the file.
    ///
    /// # Errors
    ///
    /// If there is none, or if it has an error.
    pub fn load(name: &str) -> Result<Case, ScenarioError> {
        let all = || SUITES.iter().flat_map(|suite| suite.cases);
        if let Some((name, text)) = all().find(|(known, _)| *known == name) {
            return Case::shipped(name, text);
        }
        let text = input::written(Path::new(name)).map_err(|error| {
            let near = nearest(name, all().map(|(name, _)| *name)).map(|near| format!("did you mean `{near}`?"));
            ScenarioError::plain(format!("cannot read `{name}`: {error}"), near)
        })?;
        Case::read(name, name, &text)
    }

    fn shipped(name: &str, text: &str) -> Result<Case, ScenarioError> {
        Case::read(name, &format!("evaluations/{name}.toml"), text)
    }

    fn read(name: &str, path: &str, text: &str) -> Result<Case, ScenarioError> {
        let mut sources = Sources::default();
        sources.push_file(path, text);
        let file: CaseFile = toml::from_str(text).map_err(|error| sources.error(Problem::from_toml(&error)))?;
        let criteria = file.criterion.iter().map(|at| criterion(at, &file)).collect::<Result<_, _>>();
        let criteria = criteria.map_err(|problem| sources.error(problem))?;
        let criteria: Vec<Criterion> = criteria;
        let closely = criteria.iter().any(|it| it.metric.looks_closely());
        let span = Span { closely, ..span(&file).map_err(|problem| sources.error(problem))? };
        Ok(Case { name: name.to_owned(), file, criteria, text: text.to_owned(), sources, span, only: None })
    }

    /// Returns the title, in one line.
    pub fn title(&self) -> &str {
        &self.file.title.value
    }

    /// Returns its name within the suite.
    pub fn short(&self) -> &str {
        let file = self.name.rsplit_once('/').map_or(self.name.as_str(), |(_, file)| file);
        file.strip_suffix(".toml").unwrap_or(file)
    }

    /// Returns the span in which flows are measured.
    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// Returns its scenario, overridden by `sets`.
    pub(crate) fn scenario(&self, catalogue: &Arc<Catalogue>, sets: &[String]) -> Result<Scenario, ScenarioError> {
        let origin = Origin { scenario: self.name.clone(), sets: sets.to_vec() };
        let layer = Layer { name: &self.name, text: &self.text, within: Some("scenario") };
        let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        Scenario::layered(catalogue, &self.name, &[layer], origin, &none)
    }

    /// Returns the conditions of the case, or those of `--quick`; one that was chosen by its name is run either way.
    pub(super) fn conditions(&self, quick: bool) -> Result<Vec<Condition>, ScenarioError> {
        let quick = quick && self.only.is_none();
        let refuse = |problem| self.sources.error(problem);
        let first = Condition {
            name: String::new(),
            sets: Vec::new(),
            context: self.context().map_err(refuse)?,
            not_run: None,
        };
        let mut all = vec![first];
        for axis in &self.file.axis {
            let mut next = Vec::new();
            for before in &all {
                for value in values(axis, quick) {
                    next.push(combined(before, value).map_err(refuse)?);
                }
            }
            all = next;
        }
        all.retain(|condition| self.only.as_ref().is_none_or(|only| condition.name == *only));
        Ok(all)
    }

    fn context(&self) -> Result<Context, Problem> {
        let Span { from, after, .. } = self.span;
        Ok(Context {
            capacity: rate(&self.file.capacity)?,
            rtt_s: duration(&self.file.rtt)?.as_secs_f64(),
            from_s: from.as_secs_f64(),
            after_s: after.unwrap_or(from).as_secs_f64(),
            stop_s: 0.0,
        })
    }

    /// Returns one line for each axis: its name and its values.
    pub(super) fn range(&self, quick: bool) -> Vec<String> {
        let line = |axis: &AxisTable| {
            let names: Vec<&str> = values(axis, quick).map(|value| value.name.as_str()).collect();
            format!("{}: {}", axis.name, names.join(", "))
        };
        let rivals = self.file.rivals.as_ref().map(|rivals| {
            let names = if quick { &rivals.quick } else { &rivals.names };
            format!("beside: {}", names.join(", "))
        });
        self.file.axis.iter().map(line).chain(rivals).collect()
    }

    /// Returns the number of seeds.
    pub(super) fn seeds(&self, quick: bool) -> u64 {
        let seeds = if quick { self.file.seeds.quick } else { self.file.seeds.full };
        seeds.max(1) as u64
    }
}

/// Conditions that an error names.
const MOST_NAMED: usize = 60;

/// Returns the values of an axis, or those of `--quick`: the first if none is marked.
fn values(axis: &AxisTable, quick: bool) -> impl Iterator<Item = &ValueTable> {
    let marked = axis.value.iter().any(|value| value.quick);
    let is_taken = move |(n, value): &(usize, &ValueTable)| !quick || value.quick || (!marked && *n == 0);
    axis.value.iter().enumerate().filter(is_taken).map(|(_, value)| value)
}

fn combined(before: &Condition, value: &ValueTable) -> Result<Condition, Problem> {
    let mut all = before.clone();
    if !all.name.is_empty() {
        all.name += ", ";
    }
    all.name += &value.name;
    all.sets.extend(value.set.iter().map(|at| at.value.clone()));
    if let Some(capacity) = &value.capacity {
        all.context.capacity = rate(capacity)?;
    }
    if let Some(rtt) = &value.rtt {
        all.context.rtt_s = duration(rtt)?.as_secs_f64();
    }
    all.not_run = all.not_run.or_else(|| value.not_run.clone());
    Ok(all)
}

fn criterion(at: &At<CriterionTable>, file: &CaseFile) -> Result<Criterion, Problem> {
    let table = at.value.clone();
    let argument = Argument {
        number: table.argument,
        from: table.from.clone(),
        to: table.to.clone(),
        variable: table.variable.clone(),
        if_variable: table.if_variable.clone(),
    };
    let metric = Metric::named(&table.metric.value, argument)
        .map_err(|help| Problem::at(&table.metric.span, format!("`{}` is no metric here", table.metric.value), help))?;
    let bounds = [table.at_most, table.at_least, table.standard];
    if bounds.iter().all(Option::is_none) {
        return Err(Problem::at(&at.span, "there is no bound", "accepted: `at-most`, `at-least`, `standard`"));
    }
    let wrong = if metric.is_better_larger() { table.at_most } else { table.at_least };
    if wrong.is_some() && !table.harm && !metric.has_two_sides() {
        let problem = format!("`{}` is bounded from the wrong side", metric.name());
        return Err(Problem::at(&at.span, problem, "accepted: the bound beyond which it is worse"));
    }
    if table.harm && file.rivals.as_ref().is_none_or(|rivals| rivals.solo.is_empty()) {
        return Err(Problem::at(&at.span, "harm is a part of what a rival has alone", "accepted: `rivals.solo`"));
    }
    Ok(Criterion { table, metric })
}

fn span(file: &CaseFile) -> Result<Span, Problem> {
    let [from, to] = &file.span;
    let bin = file.bin.as_ref().map_or(Ok(Duration::from_millis(100)), duration)?;
    let after = file.after.as_ref().map(duration).transpose()?;
    let span = Span { from: duration(from)?, to: duration(to)?, after, bin, closely: false };
    if span.from >= span.to || bin.is_zero() {
        return Err(Problem::at(&to.span, "the span is empty", "accepted: a beginning, and an end behind it"));
    }
    Ok(span)
}

fn duration(at: &At<String>) -> Result<Duration, Problem> {
    let refused = quantity::duration(&at.value);
    refused.map_err(|refusal| Problem::at(&at.span, refusal.problem, format!("accepted: {}", refusal.accepted)))
}

fn rate(at: &At<String>) -> Result<f64, Problem> {
    let refused = quantity::rate(&at.value).map(|rate| rate.as_bps() as f64);
    refused.map_err(|refusal| Problem::at(&at.span, refusal.problem, format!("accepted: {}", refusal.accepted)))
}
