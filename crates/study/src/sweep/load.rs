//! Loads a sweep file and checks it: errors show before the first run, at their place in the file.

use super::axis::Axis;
use super::campaign::{Baselines, Campaign, Repeat, Source, System};
use super::draw::{Draws, SOBOL_AXES, SOBOL_POINTS};
use super::file::{Base, Method, SweepFile};
use super::row::Layout;
use crate::rank::Condition;
use crate::study::Study;
use crate::study::metric::Metric;
use anabranch_lab::in_parallel;
use anabranch_policy::Catalogue;
use anabranch_scenario::Layer;
use anabranch_scenario::file::At;
use anabranch_scenario::not_found;
use anabranch_scenario::{Origin, Scenario, ScenarioError, beside, shipped};
use anabranch_scenario::{Problem, Sources};
use anabranch_units::suggest;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of conditions of a sweep.
const MOST: u64 = 10_000_000;

/// Table of a sweep file that holds the scenario.
const SCENARIO: &str = "scenario";

impl Campaign {
    /// Reads the campaign of a sweep file. Other files that it names are relative to it; `name` is its path, which
    /// commands also use for a scenario inside it. `until` overrides the file's own.
    ///
    /// # Errors
    ///
    /// If the file or its scenario is not valid.
    pub fn read(
        catalogue: &Arc<Catalogue>,
        name: &str,
        text: &str,
        until: Option<&str>,
    ) -> Result<Campaign, ScenarioError> {
        let mut sources = Sources::default();
        sources.push_file(name, text);
        let refuse = |problem: Problem| sources.error(problem);
        let file: SweepFile = toml::from_str(text).map_err(|error| refuse(Problem::from_toml(&error)))?;
        let source = source(name, text, &file).map_err(refuse)?;
        let mut axes: Vec<Axis> = Vec::new();
        for at in &file.axis {
            let axis = Axis::read(at).map_err(refuse)?;
            if Layout::has(&axis.name) || axes.iter().any(|other| other.name == axis.name) {
                let problem = format!("a column is called `{}` already", axis.name);
                return Err(refuse(Problem::at(&at.span, problem, "accepted: name = a name of its own")));
            }
            axes.push(axis);
        }
        let draws = draws(&file, &axes).map_err(refuse)?;
        let mut campaign = Campaign {
            about: file.about.clone(),
            catalogue: Arc::clone(catalogue),
            source,
            sets: file.set.iter().map(|set| set.value.clone()).collect(),
            axes,
            draws,
            systems: Vec::new(),
            baselines: if file.baselines { Baselines::Tcp } else { Baselines::None },
            metrics: Vec::new(),
            repeat: repeat(&file, until).map_err(|(from_file, problem)| match from_file {
                true => refuse(problem),
                false => ScenarioError::plain(problem.problem, problem.help),
            })?,
            most_events: Some(file.most_events.value),
            mark: String::new(),
            base: Vec::new(),
            digest: String::new(),
        };
        if file.most_events.value == 0 {
            let problem = "a run of no events cannot be";
            return Err(refuse(Problem::at(&file.most_events.span, problem, "accepted: 1 or more")));
        }
        let counts = campaign.axes.iter().filter(|axis| !axis.is_drawn()).map(Axis::len);
        let points = counts.chain(campaign.draws.iter().map(|(_, count)| *count)).chain(drawn(&file));
        match points.map(u128::from).product::<u128>() {
            0 => {
                return Err(ScenarioError::plain(
                    "the sweep has no conditions",
                    Some("accepted: a count of 1 or more".to_owned()),
                ));
            }
            many if many > u128::from(MOST) => {
                let help = Some(format!("accepted: up to {MOST}"));
                return Err(ScenarioError::plain(format!("the sweep has {many} conditions"), help));
            }
            _ => {}
        }
        campaign.check(&file, &sources)?;
        Ok(campaign)
    }

    /// Makes a campaign of these schedulers over these conditions, all of which are read. Each `KEY=VALUE` of `sets`
    /// overrides them; `seeds` are the first seed and their number.
    ///
    /// # Errors
    ///
    /// If a scheduler or an override is not valid.
    pub(crate) fn of_conditions(
        catalogue: &Arc<Catalogue>,
        conditions: Vec<Condition>,
        schedulers: Vec<(String, String)>,
        baselines: Baselines,
        seeds: (u64, usize),
        sets: &[String],
    ) -> Result<Campaign, ScenarioError> {
        let read = |condition: &Condition| condition.scenario(catalogue, sets).map(|scenario| scenario.digest);
        let digests: Vec<String> = in_parallel(&conditions, 0, &|| {}, &read)?;
        let system =
            |(name, about): (String, String)| System { scheduler: Some(name.clone()), name, sets: Vec::new(), about };
        let mut campaign = Campaign {
            about: None,
            catalogue: Arc::clone(catalogue),
            source: Source::Conditions(conditions),
            sets: sets.to_vec(),
            axes: Vec::new(),
            draws: None,
            systems: schedulers.into_iter().map(system).collect(),
            baselines,
            metrics: Vec::new(),
            repeat: Repeat { seed: seeds.0, count: seeds.1, until: None, most: seeds.1 },
            most_events: None,
            mark: String::new(),
            base: digests,
            digest: String::new(),
        };
        campaign.identify();
        Ok(campaign)
    }

    /// Checks the scenario below all conditions, every value of every axis, the systems and the metrics.
    fn check(&mut self, file: &SweepFile, sources: &Sources) -> Result<(), ScenarioError> {
        let at = |span: &Range<usize>, what: &str, error: &ScenarioError| {
            let help = error.help().unwrap_or("see the error").to_owned();
            sources.error(Problem::at(span, format!("{what}: {error}"), help))
        };
        let bare = self.scenario(0, &[])?;
        // One more each time, so that the one that breaks the scenario is named.
        for n in 0..file.set.len() {
            let set = &file.set[n];
            self.scenario(0, &self.sets[..=n]).map_err(|error| at(&set.span, &set.value, &error))?;
        }
        let base = self.scenario(0, &self.sets)?;
        let mut digests = vec![bare.digest.clone(), base.digest.clone()];
        for axis in &self.axes {
            for key in &axis.keys {
                is_there(key, &base).map_err(|problem| sources.error(problem))?;
            }
            // Each value is tried by itself before the first run: a sweep of hours should not end at its last value.
            for value in axis.samples() {
                let sets: Vec<String> = self.sets.iter().cloned().chain(axis.sets(&value)).collect();
                let place = if axis.keys.len() == 1 { &axis.keys[0].span } else { &axis.span };
                let what = || format!("axis `{}` at {}", axis.name, value.shown());
                digests.push(self.scenario(0, &sets).map_err(|error| at(place, &what(), &error))?.digest);
            }
        }
        let mut systems: Vec<System> = Vec::new();
        for name in &file.schedulers {
            let scenario = base.with_scheduler(&name.value);
            let scenario = scenario.map_err(|error| at(&name.span, "schedulers", &error))?;
            let about = scenario.policies().scheduler.to_string();
            if let Some(same) = systems.iter().find(|other| other.about == about) {
                let problem = format!("`{}` and `{}` are the same scheduler: {about}", same.name, name.value);
                let help = "accepted: each scheduler once, or with different parameters (ecf:beta=0.5)";
                return Err(sources.error(Problem::at(&name.span, problem, help)));
            }
            systems.push(System {
                name: name.value.clone(),
                scheduler: Some(name.value.clone()),
                sets: Vec::new(),
                about,
            });
        }
        for system in &file.system {
            let (name, own) = (&system.value.name, &system.value.set);
            if systems.iter().any(|other| other.name == name.value) {
                let problem = format!("two systems are called `{}`", name.value);
                return Err(sources.error(Problem::at(&name.span, problem, "accepted: a name of its own")));
            }
            let mut sets = self.sets.clone();
            for set in own {
                sets.push(set.value.clone());
                let what = format!("system `{}`", name.value);
                digests.push(self.scenario(0, &sets).map_err(|error| at(&set.span, &what, &error))?.digest);
            }
            let sets: Vec<String> = own.iter().map(|set| set.value.clone()).collect();
            systems.push(System { name: name.value.clone(), scheduler: None, about: sets.join(" "), sets });
        }
        if systems.is_empty() {
            let help = "accepted: schedulers = [\"min-rtt\", \"late\"], or [[system]] with name and set".to_owned();
            return Err(ScenarioError::plain("the sweep compares nothing", Some(help)));
        }
        for name in &file.metrics {
            let metric = Metric::parse(name, &base.paths()).map_err(|problem| sources.error(problem))?;
            let taken = self.metrics.iter().any(|(other, _)| *other == name.value) || Layout::has(&name.value);
            if taken || self.axes.iter().any(|axis| axis.name == name.value) {
                let problem = format!("a column is called `{}` already", name.value);
                return Err(sources.error(Problem::at(&name.span, problem, "accepted: each metric once")));
            }
            self.metrics.push((name.value.clone(), metric));
        }
        self.systems = systems;
        self.base = digests;
        self.identify();
        Ok(())
    }
}

/// Returns the scenario inside a sweep file, overridden by each `KEY=VALUE` of `sets`.
pub(crate) fn inline(
    catalogue: &Arc<Catalogue>,
    name: &str,
    text: &str,
    sets: &[String],
) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: name.to_owned(), sets: sets.to_vec() };
    let path = Path::new(name);
    let read = beside(path.parent().unwrap_or(Path::new("")));
    let stem = path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy());
    Scenario::layered(catalogue, &stem, &[Layer { name, text, within: Some(SCENARIO) }], origin, &read)
}

/// Returns true for the text of a sweep with a scenario inside, which a command can run.
pub(crate) fn has_scenario(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| {
        let is_sweep = ["schedulers", "system"].iter().any(|key| table.contains_key(*key));
        is_sweep && !table.contains_key("paper") && table.get(SCENARIO).is_some_and(toml::Value::is_table)
    })
}

fn source(name: &str, text: &str, file: &SweepFile) -> Result<Source, Problem> {
    match (&file.scenario, &file.drawn) {
        (Some(at), None) => match &at.value {
            Base::Table(table) if table.is_empty() => Err(Problem::at(
                &at.span,
                "the scenario is empty",
                "accepted: [scenario.path.NAME] and [[scenario.workload]]",
            )),
            Base::Table(_) => Ok(Source::Inline { name: name.to_owned(), text: text.to_owned() }),
            Base::Name(base) => {
                let known = shipped::find(base).is_some()
                    || Condition::is_like_a_name(base)
                    || Study::names().any(|it| it == base);
                if known {
                    return Ok(Source::Scenario(base.clone()));
                }
                let beside = Path::new(name).parent().unwrap_or(Path::new("")).join(base);
                match std::fs::metadata(&beside) {
                    Ok(_) => Ok(Source::Scenario(beside.to_string_lossy().into_owned())),
                    Err(error) => {
                        let error = not_found(base, &error);
                        Err(Problem::at(&at.span, error.to_string(), error.help().unwrap_or("accepted: a scenario")))
                    }
                }
            }
        },
        (None, Some(at)) => Ok(Source::Drawn { seed: at.value.seed, count: at.value.count }),
        (Some(_), Some(at)) => {
            Err(Problem::at(&at.span, "there are two sources of conditions", "accepted: either scenario or [drawn]"))
        }
        (None, None) => Err(Problem {
            span: None,
            problem: "the sweep has no scenario".to_owned(),
            help: Some(
                "accepted: scenario = \"wlan-lte\" (or a file, or [scenario]), or [drawn] with seed and count"
                    .to_owned(),
            ),
        }),
    }
}

fn drawn(file: &SweepFile) -> Option<u64> {
    file.drawn.as_ref().map(|at| at.value.count)
}

fn draws(file: &SweepFile, axes: &[Axis]) -> Result<Option<(Draws, u64)>, Problem> {
    let names: Vec<&str> = axes.iter().filter(|axis| axis.is_drawn()).map(|axis| axis.name.as_str()).collect();
    let (table, span) = match (&file.draw, axes.iter().find(|axis| axis.is_drawn())) {
        (None, None) => return Ok(None),
        (None, Some(axis)) => {
            let problem = format!("axis `{}` is drawn, and nothing says how often", axis.name);
            return Err(Problem::at(&axis.span, problem, "accepted: [draw] with count = 200"));
        }
        (Some(at), None) => {
            let help = "accepted: an axis with uniform, loguniform or choice";
            return Err(Problem::at(&at.span, "[draw] has no axis to draw", help));
        }
        (Some(at), Some(_)) => (&at.value, &at.span),
    };
    if table.count > MOST {
        return Err(Problem::at(span, format!("{} draws", table.count), format!("accepted: up to {MOST}")));
    }
    if table.method == Method::Sobol && (table.count > SOBOL_POINTS || names.len() > SOBOL_AXES) {
        let help = format!("accepted: up to {SOBOL_POINTS} points of up to {SOBOL_AXES} axes; or another method");
        return Err(Problem::at(span, "Sobol's sequence is not that long", help));
    }
    Ok(Some((Draws::new(table.method, table.seed, table.count, &names), table.count)))
}

/// Returns the seeds of each condition; the flag of an error is true if it is the file's.
fn repeat(file: &SweepFile, until: Option<&str>) -> Result<Repeat, (bool, Problem)> {
    let table = &file.repeat;
    let plain = |problem: &str, help: &str| {
        (false, Problem { span: None, problem: problem.to_owned(), help: Some(help.to_owned()) })
    };
    if !(1..=100_000).contains(&table.count) {
        return Err(plain("[repeat] count is out of range", "accepted: 1 to 100000"));
    }
    let share = |text: &str, span: Option<Range<usize>>| {
        let from_file = span.is_some();
        let read = anabranch_units::quantity::share(text).map_err(|refusal| {
            (from_file, Problem { span: span.clone(), problem: refusal.problem, help: Some(refusal.accepted) })
        })?;
        match read > 0.0 {
            true => Ok(read),
            false => {
                let help = Some("accepted: more than 0%".to_owned());
                Err((from_file, Problem { span, problem: "no interval is that narrow".to_owned(), help }))
            }
        }
    };
    let until = match (until, &table.until) {
        (Some(text), _) => Some(share(text, None)?),
        (None, Some(at)) => Some(share(&at.value, Some(at.span.clone()))?),
        (None, None) => None,
    };
    if until.is_some() && table.count < 2 {
        return Err(plain("an interval needs two seeds", "accepted: [repeat] count = 2 or more with until"));
    }
    if until.is_some() && table.most < table.count {
        return Err(plain("[repeat] most is below count", "accepted: most = 64"));
    }
    Ok(Repeat { seed: table.seed, count: table.count as usize, until, most: table.most as usize })
}

/// Refuses a key that would add a path or link that does not exist.
fn is_there(key: &At<String>, base: &Scenario) -> Result<(), Problem> {
    let mut words = key.value.split('.');
    let (paths, links) = (base.paths(), base.links());
    let (what, known) = match words.next() {
        Some("path") => ("path", &paths),
        Some("link") => ("link", &links),
        _ => return Ok(()),
    };
    let Some(name) = words.next().filter(|name| !known.iter().any(|it| it == name)) else { return Ok(()) };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(Problem::at(&key.span, format!("there is no {what} `{name}` in the scenario"), suggest(name, known)))
}
