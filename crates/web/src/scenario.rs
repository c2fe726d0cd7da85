//! Scenarios as the page has them: a text, and overrides.

use crate::request::Progress;
use anabranch_lab::{Keep, RunError};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario, ScenarioError, shipped};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// A scenario that the page asks about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name; of a shipped scenario, or what the page calls the text.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Text of the file.
    pub text: String,
    /// Overrides, as `--set` takes them.
    #[serde(default)]
    pub sets: Vec<String>,
}

/// An error as the page shows it.
#[derive(Debug, Serialize)]
pub struct Trouble {
    /// The problem.
    pub problem: String,
    /// Accepted values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Name of the text that it is in: the file, or `--set`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

fn unnamed() -> String {
    "scenario".to_owned()
}

impl Source {
    /// Reads the scenario. Traces are those that the program has inside: a page reads no files.
    pub fn load(&self, catalogue: &Arc<Catalogue>) -> Result<Scenario, Trouble> {
        Ok(self.load_with(catalogue, &[])?)
    }

    /// Reads the scenario with more overrides.
    pub fn load_with(&self, catalogue: &Arc<Catalogue>, more: &[String]) -> Result<Scenario, ScenarioError> {
        let sets: Vec<String> = self.sets.iter().chain(more).cloned().collect();
        let file = format!("{}.toml", self.name);
        // A shipped scenario that was not changed is the one that the command knows by its name.
        let known = shipped::find(&self.name).is_some_and(|shipped| shipped.text == self.text);
        let origin = Origin { scenario: if known { self.name.clone() } else { file.clone() }, sets };
        let read = |name: &str, _from_set: bool| match shipped::trace(name) {
            Some(text) => Ok(text.to_owned()),
            None => Err(Error::new(ErrorKind::NotFound, "the page reads no files; its trace is `traces/lte.down`")),
        };
        Scenario::read(catalogue, &self.name, &file, &self.text, origin, &read)
    }
}

impl Trouble {
    /// An error without a place.
    pub fn plain(problem: impl Into<String>) -> Self {
        Trouble { problem: problem.into(), help: None, text: None, line: None, column: None }
    }
}

impl From<ScenarioError> for Trouble {
    fn from(error: ScenarioError) -> Self {
        let place = error.place();
        Trouble {
            problem: error.to_string(),
            help: error.help().map(str::to_owned),
            text: place.map(|(name, ..)| name.to_owned()),
            line: place.map(|(_, line, _)| line),
            column: place.map(|(.., column)| column),
        }
    }
}

impl From<RunError> for Trouble {
    fn from(error: RunError) -> Self {
        Trouble { help: Some(format!("this repeats it: {}", error.command)), ..Trouble::plain(error.to_string()) }
    }
}

impl From<anabranch_lab::KeepError> for Trouble {
    fn from(error: anabranch_lab::KeepError) -> Self {
        Trouble::plain(error.to_string())
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Trouble::plain(format!("the answer cannot be written: {error}"))
    }
}

/// Returns the facts of a scenario that is in order.
pub fn check(scenario: &Scenario) -> Result<Value, Trouble> {
    Ok(json!({
        "name": scenario.name,
        "about": scenario.about,
        "digest": scenario.digest,
        "seed": scenario.seed,
        "repeat": scenario.repeat,
        "random": scenario.is_random(),
        "paths": scenario.paths(),
        "scheduler": scenario.policies().scheduler.to_string(),
        "measure": scenario.measure.name(),
        "notes": scenario.notes(),
    }))
}

/// Runs the scenario with each seed and returns the digests of all events.
pub fn digests(scenario: &Scenario, seeds: &[u64], progress: &Progress<'_>) -> Result<Value, Trouble> {
    let mut digests = Vec::new();
    for seed in seeds {
        let run = anabranch_lab::run(scenario, *seed, &Keep::default())?;
        digests.push(run.measured.events_digest);
        progress(digests.len(), seeds.len());
    }
    Ok(json!({ "scenario": scenario.digest, "events": digests }))
}
