//! The policy file, as it is written.

use super::{Action, Condition};
use anabranch_scenario::file::{At, Of, Unit};
use anabranch_scenario::{Problem, ScenarioError, Sources};
use anabranch_units::{Bytes, Duration};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A policy: paths of this host, and rules for them.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Time between two looks at the subflows.
    pub interval: Duration,
    /// Paths in the order of their names.
    pub paths: Vec<PathPolicy>,
    /// Rules in the order of the file.
    pub rules: Vec<Rule>,
}

/// A path of this host: a local address, or an interface with its addresses.
#[derive(Clone, PartialEq, Debug)]
pub struct PathPolicy {
    /// Name in the file.
    pub name: String,
    /// Local address or interface.
    pub place: Place,
    /// Cost; only its order among the paths counts.
    pub cost: f64,
    /// Data that may be moved in a period.
    pub quota: Option<(Bytes, Period)>,
}

/// Place of a path on this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A local address.
    Address(IpAddr),
    /// An interface by its name.
    Interface(String),
}

/// Period after which a quota begins anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Period {
    /// The run of the command.
    Run,
    /// The day, in UTC.
    Day,
    /// The month, in UTC.
    Month,
}

/// A rule for some of the paths.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Index of its path; `None` for all.
    pub path: Option<usize>,
    /// Condition under which it begins.
    pub when: Condition,
    /// Time for which a condition has to hold, at the beginning and at the end.
    pub during: Duration,
    /// Treatment of the path.
    pub then: Action,
    /// Condition under which it ends; `None`: when `when` does not hold.
    pub until: Option<Condition>,
    /// Shortest time for which it lasts.
    pub hold: Duration,
    /// Time without measurements after which the path is tried again.
    pub retry: Duration,
}

/// Policy of `anabranch kernel steer`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// Time between two looks at the subflows, 50ms or more. Default: 200ms.
    #[schemars(with = "Option<Unit<Duration>>")]
    interval: Option<Of<Duration>>,
    /// Paths of this host by name.
    #[schemars(with = "BTreeMap<String, PathTable>")]
    path: BTreeMap<String, At<PathTable>>,
    /// Rules; of several that apply to a path the strictest counts.
    #[serde(default)]
    #[schemars(with = "Vec<RuleTable>")]
    rule: Vec<At<RuleTable>>,
}

/// A path: `address` or `interface`, and what it costs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PathTable {
    /// Local address that its subflows have.
    #[schemars(with = "Option<IpAddr>")]
    address: Option<At<IpAddr>>,
    /// Interface whose addresses its subflows have.
    #[schemars(with = "Option<String>")]
    interface: Option<At<String>>,
    /// Cost; a path is cheaper than another if its cost is less. Default: 0.
    #[schemars(with = "Option<f64>")]
    cost: Option<At<f64>>,
    /// Data that may be sent and received in a period.
    #[schemars(with = "Option<Unit<Bytes>>")]
    quota: Option<Of<Bytes>>,
    /// Period of the quota; needs a quota. Default: run.
    #[schemars(with = "Option<Period>")]
    per: Option<At<Period>>,
}

/// A rule.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RuleTable {
    /// Path that it is for. Default: all.
    #[schemars(with = "Option<String>")]
    path: Option<At<String>>,
    /// Condition under which it begins.
    #[schemars(with = "Condition")]
    when: At<Condition>,
    /// Time for which `when` has to hold before it begins, and `until` before it ends. Default: 0s.
    #[serde(rename = "for")]
    #[schemars(with = "Option<Unit<Duration>>")]
    during: Option<Of<Duration>>,
    /// Treatment of the path. `gate` is an experiment, for `anabranch kernel steer --gate`.
    #[schemars(with = "Action")]
    then: At<Action>,
    /// Condition under which it ends. Default: the measurement is 20 % within the bound of `when`.
    #[schemars(with = "Option<Condition>")]
    until: Option<At<Condition>>,
    /// Shortest time for which it lasts. Default: 10s.
    #[schemars(with = "Option<Unit<Duration>>")]
    hold: Option<Of<Duration>>,
    /// Time without measurements after which the path is tried again, doubled when that was in vain. Default: 30s.
    #[schemars(with = "Option<Unit<Duration>>")]
    retry: Option<Of<Duration>>,
}

/// Shortest time between two looks: looking takes about a millisecond for a hundred sockets.
const SHORTEST: Duration = Duration::from_millis(50);

impl Policy {
    /// Reads a policy file; `name` is its name in errors. Rules with gates are refused.
    ///
    /// # Errors
    /// If it is not valid, with the place and what is accepted there.
    pub fn read(name: &str, text: &str) -> Result<Policy, ScenarioError> {
        Policy::read_for(name, text, false)
    }

    /// Reads a policy file; rules may have gates if there are any.
    ///
    /// # Errors
    /// As for [`Policy::read`].
    pub fn read_for(name: &str, text: &str, has_gates: bool) -> Result<Policy, ScenarioError> {
        let mut sources = Sources::default();
        sources.push_file(name, text);
        let file = toml::from_str(text).map_err(|error| Problem::from_toml(&error));
        file.and_then(|file: File| file.checked(has_gates)).map_err(|problem| sources.error(told(problem)))
    }

    /// Returns the JSON schema of policy files.
    pub fn schema() -> Schema {
        schema_for!(File)
    }
}

/// The example of scenario files would lead astray here.
fn told(problem: Problem) -> Problem {
    let help = match problem.problem.as_str() {
        "`path` is missing" => "accepted: [path.NAME] with interface = \"wlan0\" or address = \"10.0.0.2\"",
        "`when` is missing" => "accepted: when = \"rtt > 200ms\"",
        "`then` is missing" => "accepted: then = \"backup\" or then = \"close\"",
        _ => return problem,
    };
    Problem { help: Some(help.to_owned()), ..problem }
}

impl File {
    fn checked(self, has_gates: bool) -> Result<Policy, Problem> {
        let interval = match &self.interval {
            Some(at) if at.value.0 < SHORTEST => {
                return Err(Problem::at(&at.span, "that is too often", "accepted: a time of 50ms or more"));
            }
            at => at.as_ref().map_or(Duration::from_millis(200), |at| at.value.0),
        };
        let mut paths: Vec<PathPolicy> = Vec::new();
        for (name, at) in self.path {
            let path = at.value.checked(name, &at.span)?;
            if let Some(other) = paths.iter().find(|other| other.place == path.place) {
                let problem = format!("it is the same as path `{}`", other.name);
                return Err(Problem::at(&at.span, problem, "accepted: another address or interface"));
            }
            paths.push(path);
        }
        if paths.is_empty() {
            let help = "accepted: [path.NAME] with interface = \"wlan0\" or address = \"10.0.0.2\"".to_owned();
            return Err(Problem { span: None, problem: "there is no path".to_owned(), help: Some(help) });
        }
        let is_gate = |rule: &&At<RuleTable>| rule.value.then.value == Action::Gate;
        if let Some(rule) = self.rule.iter().find(is_gate).filter(|_| !has_gates) {
            let help = "accepted: then = \"backup\" or then = \"close\"; `kernel steer --gate CONTROL` accepts it";
            return Err(Problem::at(&rule.value.then.span, "gates are an experiment, and there are none", help));
        }
        let rules = self.rule.into_iter().map(|at| at.value.checked(&paths)).collect::<Result<_, _>>()?;
        Ok(Policy { interval, paths, rules })
    }
}

impl PathTable {
    fn checked(self, name: String, span: &std::ops::Range<usize>) -> Result<PathPolicy, Problem> {
        let place = match (self.address, self.interface) {
            (Some(at), None) => Place::Address(at.value),
            (None, Some(at)) => Place::Interface(at.value),
            (address, _) => {
                let problem = if address.is_some() { "it has both address and interface" } else { "it has no place" };
                return Err(Problem::at(span, problem, "accepted: interface = \"wlan0\", or address = \"10.0.0.2\""));
            }
        };
        if let Some(at) = self.cost.as_ref().filter(|at| !at.value.is_finite()) {
            return Err(Problem::at(&at.span, "it is no number", "accepted: a number such as 10"));
        }
        if let Some(at) = self.quota.as_ref().filter(|at| at.value.0.is_zero()) {
            let help = "accepted: a size such as \"2GB\"; a rule with when = \"always\" keeps data off a path";
            return Err(Problem::at(&at.span, "must be greater than zero", help));
        }
        let period = match (&self.quota, &self.per) {
            (None, Some(at)) => {
                return Err(Problem::at(&at.span, "there is no quota", "accepted: quota = \"2GB\" beside it"));
            }
            (_, per) => per.as_ref().map_or(Period::Run, |at| at.value),
        };
        let cost = self.cost.map_or(0.0, |at| at.value);
        Ok(PathPolicy { name, place, cost, quota: self.quota.map(|at| (at.value.0, period)) })
    }
}

impl RuleTable {
    fn checked(self, paths: &[PathPolicy]) -> Result<Rule, Problem> {
        let names = || paths.iter().map(|path| path.name.as_str());
        let path = match &self.path {
            None => None,
            Some(at) => Some(names().position(|name| name == at.value).ok_or_else(|| {
                let help = anabranch_units::suggest(&at.value, names().collect::<Vec<_>>());
                Problem::at(&at.span, format!("there is no path `{}`", at.value), help)
            })?),
        };
        // A condition that never holds would be found out by nobody.
        for at in std::iter::once(&self.when).chain(&self.until) {
            let is_of = |quantity| matches!(&at.value, Condition::Beyond { quantity: it, .. } if *it == quantity);
            let of_rule = |index: usize| path.is_none_or(|own| own == index);
            let has_quota = paths.iter().enumerate().any(|(index, it)| of_rule(index) && it.quota.is_some());
            if is_of(super::Quantity::Quota) && !has_quota {
                let help = "accepted: quota = \"2GB\" in the table of the path";
                return Err(Problem::at(&at.span, "the path has no quota", help));
            }
            let has_cheaper = paths
                .iter()
                .enumerate()
                .any(|(index, it)| of_rule(index) && paths.iter().any(|other| other.cost < it.cost));
            if (at.value == Condition::CheaperUp || is_of(super::Quantity::CheaperRate)) && !has_cheaper {
                let help = "accepted: a larger cost in the table of the path, such as cost = 10";
                return Err(Problem::at(&at.span, "no path is cheaper", help));
            }
        }
        let time = |at: &Option<Of<Duration>>, usual| at.as_ref().map_or(usual, |at| at.value.0);
        Ok(Rule {
            path,
            during: time(&self.during, Duration::ZERO),
            then: self.then.value,
            until: self.until.map(|at| at.value).or_else(|| self.when.value.opposite()),
            hold: time(&self.hold, Duration::from_secs(10)),
            retry: time(&self.retry, Duration::from_secs(30)),
            when: self.when.value,
        })
    }
}
