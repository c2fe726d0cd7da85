//! Counterfactuals: the scenario with one thing changed.
//!
//! Each is a list of `--set` overrides, so that everybody can repeat it, or a baseline that the comparison has too.
//! One that makes no sense for a scenario is left out with the reason.

use crate::element::{Element, elements};
use crate::inquiry::ways;
use anabranch_net::Change;
use anabranch_paths::Direction;
use anabranch_policy::Catalogue;
use anabranch_scenario::Scenario;
use anabranch_sim::Spec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The thing that a counterfactual changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Receive and send buffer of a gibibyte, or of a given size.
    Buffers,
    /// The receive buffer alone.
    ReceiveBuffer,
    /// The send buffer alone.
    SendBuffer,
    /// No random loss, on one link or on all.
    NoLoss,
    /// No packets of a path that others overtake.
    NoReordering,
    /// No random delay on a path.
    NoJitter,
    /// No packets that a path damages, or duplicates.
    NoDamage,
    /// No middleboxes on a path.
    NoMiddlebox,
    /// No traffic of others.
    NoTraffic,
    /// No changes of the network during the run.
    NoChange,
    /// A shared link that carries as much as its paths.
    FasterLink,
    /// A queue of one bandwidth-delay product in place of a longer one.
    ShorterQueue,
    /// The same in place of a shorter one.
    LongerQueue,
    /// ACKs with a shorter delay.
    PromptAcks,
    /// No Nagle's algorithm.
    NoNagle,
    /// Smaller segments after the first timeout of a full one.
    MtuProbing,
    /// No slow-start threshold at the beginning.
    InitialSsthresh,
    /// The initial window that RFC 6928 allows.
    InitialWindow,
    /// A TCP option that the hosts do not use.
    TcpOption,
    /// The connection begins on another path.
    FirstPath,
    /// Another scheduler.
    Scheduler,
    /// Another congestion control.
    Congestion,
    /// Another reinjection policy.
    Reinjection,
    /// One path only as a backup.
    WithoutPath,
    /// A backup path as a regular one.
    RegularPath,
    /// Plain TCP on one path alone.
    SinglePath,
    /// MPTCP in place of plain TCP.
    Multipath,
    /// As many subflows as there are paths.
    MoreSubflows,
}

/// A counterfactual to be run.
#[derive(Clone)]
pub struct Alternative {
    /// The thing it changes.
    pub kind: Kind,
    /// Description, in a few words.
    pub what: String,
    /// The fault of the scenario that it takes away, as a sentence without its full stop; `None` for another policy or
    /// size.
    pub cause: Option<String>,
    /// The changed scenario; its origin has the overrides that make it.
    pub scenario: Scenario,
}

/// A counterfactual that is not run.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct LeftOut {
    /// Description, in a few words.
    pub what: String,
    /// Reason.
    pub because: String,
}

/// Counterfactuals of a scenario.
#[derive(Default)]
pub struct Alternatives {
    /// Those to be run.
    pub run: Vec<Alternative>,
    /// Those left out.
    pub left_out: Vec<LeftOut>,
}

/// Loads the scenario with further overrides.
pub type Load<'a> = dyn Fn(&[String]) -> Result<Scenario, anabranch_scenario::ScenarioError> + 'a;

/// Policies to try in place of the scenario's own.
#[derive(Clone, Debug)]
pub struct Others {
    /// Schedulers.
    pub schedulers: Vec<String>,
    /// Congestion controls.
    pub congestion: Vec<String>,
}

/// Most elements of a scenario that are taken away, each with a run per seed.
const MOST_ELEMENTS: usize = 32;
/// Size of buffers that no transfer fills.
const UNBOUNDED: &str = "1GiB";

impl Default for Others {
    /// Linux' scheduler and two that wait for the faster path; one loss-based and one model-based congestion control.
    fn default() -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Others { schedulers: owned(&["min-rtt", "blest", "late"]), congestion: owned(&["cubic", "bbr"]) }
    }
}

/// Returns the overrides that give a buffer, or both, this size: of the hosts that the run's own data passes through.
pub(crate) fn buffers(spec: &Spec, kind: Kind, size: &str) -> Vec<String> {
    let mut sets = BTreeSet::new();
    for way in ways(spec) {
        let (sender, receiver) = match way {
            Direction::Down => ("server", "client"),
            Direction::Up => ("client", "server"),
        };
        if kind != Kind::SendBuffer {
            sets.insert(format!("{receiver}.receive-buffer=\"{size}\""));
        }
        if kind != Kind::ReceiveBuffer {
            sets.insert(format!("{sender}.send-buffer=\"{size}\""));
        }
    }
    sets.into_iter().collect()
}

/// A kind of buffers as a noun.
pub(crate) fn buffer_name(kind: Kind, of: &str) -> String {
    match kind {
        Kind::ReceiveBuffer => format!("a receive buffer of {of}"),
        Kind::SendBuffer => format!("a send buffer of {of}"),
        _ => format!("receive and send buffers of {of}"),
    }
}

impl Alternatives {
    /// Lists the counterfactuals of a scenario. `load` loads it with overrides on top of its own.
    pub fn of(scenario: &Scenario, catalogue: &Arc<Catalogue>, others: &Others, load: &Load<'_>) -> Self {
        let mut all = Alternatives::default();
        let (spec, paths) = (scenario.spec(scenario.seed), scenario.paths());
        let can = spec.client.config.multipath && spec.server.config.multipath;
        let multipath = can && paths.len() > 1;
        for (kind, what) in [
            (Kind::Buffers, "unbounded buffers"),
            (Kind::ReceiveBuffer, "an unbounded receive buffer"),
            (Kind::SendBuffer, "an unbounded send buffer"),
        ] {
            all.add(kind, what, &buffers(&spec, kind, UNBOUNDED), load);
        }
        all.add_elements(&spec, load);
        let alone = if can { "there is one path only" } else { "it is plain TCP, which takes one path" };
        if multipath {
            for path in &paths {
                let sets = [format!("run.primary=\"{path}\""), "client.first-path=\"as-listed\"".to_owned()];
                all.add(Kind::FirstPath, &format!("the first subflow on {path}"), &sets, load);
            }
            for (path, name) in paths.iter().enumerate() {
                let (what, single) = (format!("plain TCP on {name} alone"), scenario.single_path(path));
                all.run.push(Alternative { kind: Kind::SinglePath, what, cause: None, scenario: single });
            }
            for path in spec.network.paths.iter().filter(|path| path.backup) {
                let sets = [format!("path.{}.backup=false", path.name)];
                all.add(Kind::RegularPath, &format!("{} as a regular path", path.name), &sets, load);
            }
            if paths.len() > 2 {
                for path in &paths {
                    let sets = [format!("path.{path}.backup=true")];
                    all.add(Kind::WithoutPath, &format!("{path} as a backup only"), &sets, load);
                }
            }
            if paths.len() > subflow_limit(&spec) {
                let sets = ["client", "server"].map(|host| format!("{host}.max-subflows={}", paths.len()));
                all.add(Kind::MoreSubflows, &format!("up to {} subflows", paths.len()), &sets, load);
            }
        } else {
            if paths.len() > 1 {
                let sets = ["client", "server"].map(|host| format!("{host}.multipath=true"));
                all.add(Kind::Multipath, "MPTCP on both hosts", &sets, load);
            }
            all.leave_out("the first subflow on another path", alone);
            all.leave_out("one path removed", alone);
        }
        all.leave_out("no delay of joins", "joins begin as soon as RFC 8684 allows, and no setting makes them earlier");
        let own = scenario.policies();
        for name in others.schedulers.iter().filter(|name| **name != own.scheduler.name) {
            match multipath {
                true => all.add_policy(Kind::Scheduler, "scheduler", name, load),
                false => all.leave_out(&format!("scheduler {name}"), alone),
            }
        }
        for name in others.congestion.iter().filter(|name| **name != own.congestion.name) {
            all.add_policy(Kind::Congestion, "congestion", name, load);
        }
        let reinjections: Vec<&str> = catalogue.reinjections.names().collect();
        for name in ["insured", "tail"].into_iter().filter(|name| reinjections.contains(name)) {
            if name != own.reinjection.name {
                match multipath {
                    true => all.add_policy(Kind::Reinjection, "reinjection", name, load),
                    false => all.leave_out(&format!("reinjection {name}"), alone),
                }
            }
        }
        all
    }

    fn add_policy(&mut self, kind: Kind, key: &str, name: &str, load: &Load<'_>) {
        // Both hosts: the tables of one would override a key that is common to both.
        let sets = ["client", "server"].map(|host| format!("{host}.{key}=\"{name}\""));
        self.add(kind, &format!("{key} {name}"), &sets, load);
    }

    /// Adds a counterfactual, unless it is the scenario itself or cannot be.
    fn add(&mut self, kind: Kind, what: &str, sets: &[String], load: &Load<'_>) {
        match load(sets) {
            Ok(scenario) => self.run.push(Alternative { kind, what: what.to_owned(), cause: None, scenario }),
            Err(error) => self.leave_out(what, &error.to_string()),
        }
    }

    /// Adds the scenario without each of its elements that may cost time.
    fn add_elements(&mut self, spec: &Spec, load: &Load<'_>) {
        let elements = elements(spec);
        if !elements.iter().any(|element| element.kind == Kind::NoLoss) {
            self.leave_out("no random loss", no_loss_because(spec));
        }
        for (number, Element { kind, what, cause, sets }) in elements.into_iter().enumerate() {
            if number >= MOST_ELEMENTS {
                self.leave_out(&what, &format!("the scenario has more than {MOST_ELEMENTS} elements to take away"));
                continue;
            }
            let before = self.run.len();
            self.add(kind, &what, &sets, load);
            for added in &mut self.run[before..] {
                added.cause = Some(cause.clone());
            }
        }
    }

    fn leave_out(&mut self, what: &str, because: &str) {
        self.left_out.push(LeftOut { what: what.to_owned(), because: because.to_owned() });
    }
}

/// The most subflows that both hosts admit.
pub(crate) fn subflow_limit(spec: &Spec) -> usize {
    spec.client.config.max_subflows.min(spec.server.config.max_subflows)
}

/// Reason for which there is no run without loss.
fn no_loss_because(spec: &Spec) -> &'static str {
    match spec.network.changes.iter().any(|timed| matches!(timed.change, Change::Loss(_))) {
        true => "loss changes in the course of the run, which no setting takes away",
        false => "no link loses packets by chance",
    }
}
