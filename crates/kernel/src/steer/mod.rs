//! Steering: subflows of the stock kernel closed or made backups by rules of cost, quota, round trip and loss.
//!
//! As an experiment a path can also be closed by a gate ([`crate::Gates`]), which leaves its subflows established.
//!
//! A [`Policy`] names paths by local address or interface, and rules for them. [`Steering`] is shown the subflows again
//! and again and says how each path is to be treated; whoever has the path manager of the kernel does it. Nothing here
//! touches the kernel.
//!
//! So that a path does not flap, a rule begins when its condition held for a while without a break, lasts for a
//! shortest time, and ends when another condition, with a margin, held as long. A path that carries no data has no
//! measurements: it is tried again after a while, twice as long each time that was in vain.

mod condition;
mod event;
mod file;
mod measure;
mod rule;

pub use condition::{Condition, Quantity};
pub use event::{Event, RuleNow};
pub use file::{PathPolicy, Period, Place, Policy, Rule};
pub use measure::{Measure, Subflow};

use anabranch_units::Duration;
use measure::{Meter, Seen};
use rule::Progress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Treatment that a rule asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Its subflows carry data only when no other can.
    Backup,
    /// It has no subflows.
    Close,
    /// Its subflows are given no new data by this host while another can carry them (experiment).
    Gate,
}

/// Treatment of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it was before.
    Open,
    /// Its subflows are given no new data by this host while another can carry them.
    Gated,
    /// Its subflows carry data only when no other can.
    Backup,
    /// It has no subflows.
    Closed,
}

/// A change of a path's treatment.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Index of the path.
    pub path: usize,
    /// Treatment so far.
    pub from: State,
    /// Treatment from now on.
    pub to: State,
    /// Reason in words.
    pub reason: String,
}

/// A policy at work.
#[derive(Debug)]
pub struct Steering {
    policy: Policy,
    meters: Vec<Meter>,
    states: Vec<State>,
    /// Progress of each rule on each of its paths: index of the rule, index of the path.
    progress: BTreeMap<(usize, usize), Progress>,
    /// `None` before the first look.
    seen: Option<Seen>,
    measures: Vec<Measure>,
}

impl Steering {
    /// Begins with all paths open.
    pub fn new(policy: Policy) -> Self {
        let count = policy.paths.len();
        let of_rule = |rule: &Rule, path: usize| rule.path.is_none_or(|own| own == path);
        let rules = policy.rules.iter().enumerate();
        let pairs = rules.flat_map(|(index, rule)| {
            (0..count).filter(|path| of_rule(rule, *path)).map(move |path| ((index, path), Progress::default()))
        });
        Steering {
            progress: pairs.collect(),
            meters: (0..count).map(|_| Meter::default()).collect(),
            states: vec![State::Open; count],
            measures: vec![Measure::default(); count],
            seen: None,
            policy,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Treatment of each path.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Measurements of each path at the last look.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Data that a path used of its quota in the current period \[bytes\].
    pub fn used(&self, path: usize) -> u64 {
        self.meters[path].used
    }

    /// Sets that: what an earlier run used, or zero when a period begins.
    pub fn set_used(&mut self, path: usize, used: u64) {
        self.meters[path].used = used;
    }

    /// Takes in all subflows of the host, and says which paths are to be treated differently from now on. `now` is the
    /// time since the beginning, `addresses` those of each path.
    pub fn look(&mut self, now: Duration, addresses: &[BTreeSet<IpAddr>], subflows: &[Subflow]) -> Vec<Change> {
        for (meter, own) in self.meters.iter_mut().zip(addresses) {
            meter.look(now, subflows.iter().filter(|it| own.contains(&it.local)), self.seen.as_ref());
        }
        self.seen = Some(subflows.iter().map(|it| (it.cookie, *it)).collect());
        self.measure(now);
        let mut wanted: Vec<(State, String)> = vec![(State::Open, String::new()); self.states.len()];
        let mut ended: Vec<Option<String>> = vec![None; self.states.len()];
        for ((index, path), progress) in &mut self.progress {
            let (rule, measure) = (&self.policy.rules[*index], &self.measures[*path]);
            let was = progress.reason().map(str::to_owned);
            let end = progress.step(now, rule, measure);
            let state = match rule.then {
                Action::Gate => State::Gated,
                Action::Backup => State::Backup,
                Action::Close => State::Closed,
            };
            match (progress.reason(), was) {
                (Some(reason), _) if state > wanted[*path].0 => wanted[*path] = (state, reason.to_owned()),
                (None, Some(_)) => ended[*path] = end,
                _ => {}
            }
        }
        // A connection keeps a subflow that can carry its data.
        self.keep_connections(addresses, subflows, &mut wanted);
        let mut changes = Vec::new();
        for (path, (to, reason)) in wanted.into_iter().enumerate() {
            let from = std::mem::replace(&mut self.states[path], to);
            if from != to {
                let reason = match to < from {
                    true => ended[path].take().unwrap_or(reason),
                    false => reason,
                };
                changes.push(Change { path, from, to, reason });
            }
        }
        changes
    }

    /// Rules of a path, in the order of the policy, as things are now.
    pub fn explain(&self, path: usize) -> Vec<RuleNow> {
        let of_path = self.progress.keys().filter(|(_, own)| *own == path);
        let rules = of_path.map(|(index, _)| &self.policy.rules[*index]);
        let measure = &self.measures[path];
        let now = |rule: &Rule| RuleNow {
            then: rule.then,
            holds: rule.when.holds(measure),
            condition: rule.when.explain(measure),
        };
        rules.map(now).collect()
    }

    fn measure(&mut self, now: Duration) {
        let quota = |path: &PathPolicy| path.quota.map(|(bytes, _)| bytes.get());
        let paths = &self.policy.paths;
        let own: Vec<Measure> =
            self.meters.iter().zip(paths).map(|(meter, path)| meter.measure(now, quota(path))).collect();
        for (index, path) in paths.iter().enumerate() {
            let cheaper = || (0..paths.len()).filter(|other| paths[*other].cost < path.cost);
            self.measures[index] = Measure {
                cheaper_rate: cheaper().map(|other| own[other].rate).sum(),
                cheaper_up: cheaper().any(|other| own[other].up && self.states[other] == State::Open),
                ..own[index]
            };
        }
    }

    /// Leaves a path as a backup as long as closing it would take the last subflow of a connection.
    fn keep_connections(&self, addresses: &[BTreeSet<IpAddr>], subflows: &[Subflow], wanted: &mut [(State, String)]) {
        // The cheapest are the last to be closed, so that of several paths it is a cheap one that stays.
        let mut order: Vec<usize> = (0..wanted.len()).filter(|path| wanted[*path].0 == State::Closed).collect();
        order.sort_by(|a, b| self.policy.paths[*b].cost.total_cmp(&self.policy.paths[*a].cost));
        let is_closed = |path: &usize| [self.states[*path], wanted[*path].0] == [State::Closed; 2];
        let mut closed: BTreeSet<IpAddr> =
            (0..wanted.len()).filter(is_closed).flat_map(|path| addresses[path].iter().copied()).collect();
        for path in order {
            let stays =
                |it: &&Subflow| it.established && !closed.contains(&it.local) && !addresses[path].contains(&it.local);
            let carried: BTreeSet<u32> = subflows.iter().filter(stays).map(|it| it.connection).collect();
            let on_path = subflows.iter().filter(|it| it.established && addresses[path].contains(&it.local));
            let mut alone = on_path.map(|it| it.connection).filter(|connection| !carried.contains(connection));
            // One that is closed already opens for no connection.
            match alone.next().filter(|_| self.states[path] != State::Closed) {
                Some(connection) => {
                    let reason = &wanted[path].1;
                    let reason = format!("{reason}; not closed: connection {connection:x} has no other subflow");
                    wanted[path] = (State::Backup, reason);
                }
                None => closed.extend(&addresses[path]),
            }
        }
    }
}
