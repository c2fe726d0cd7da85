//! Counterfactuals: the scenario with one thing changed.
//!
//! Each is a list of `--set` overrides, so that everybody can repeat it, or a baseline that the comparison has too.
//! One that makes no sense for a scenario is left out with the reason.

use crate::buffers::buffers;
use crate::element::{Element, elements};
use anabranch_engine::{Policies, Profile};
use anabranch_policy::Catalogue;
use anabranch_scenario::Scenario;
use anabranch_sim::Spec;
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
    /// No changes during the run: of a path, of policies, or none at all.
    NoChange,
    /// A path whose rate or delay is not drawn.
    Steady,
    /// A path that carries as much in the direction of ACKs as in that of data.
    WayBack,
    /// An interface of the hosts that carries as much as the path behind it.
    FasterInterface,
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
    /// A setting as the hosts' profile has it.
    Setting,
    /// The connection begins on another path.
    FirstPath,
    /// Another scheduler.
    Scheduler,
    /// Another congestion control.
    Congestion,
    /// Another reinjection policy.
    Reinjection,
    /// Another window policy.
    Window,
    /// Another ACK path policy.
    AckPath,
    /// Another first-path policy.
    FirstPathPolicy,
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
    /// The policy that it replaces, as a sentence without its full stop.
    pub instead: Option<String>,
    /// True for the policy that the hosts' profile has.
    pub usual: bool,
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
        all.add_elements(scenario, load);
        let alone = if can { "there is one path only" } else { "it is plain TCP, which takes one path" };
        if multipath {
            for path in &paths {
                let sets = [format!("run.primary=\"{path}\""), "client.first-path=\"as-listed\"".to_owned()];
                all.add(Kind::FirstPath, &format!("the first subflow on {path}"), &sets, load);
            }
            for (path, name) in paths.iter().enumerate() {
                let (what, single) = (format!("plain TCP on {name} alone"), scenario.single_path(path));
                all.run.push(Alternative {
                    kind: Kind::SinglePath,
                    what,
                    cause: None,
                    instead: None,
                    usual: false,
                    scenario: single,
                });
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
        all.add_policies(scenario, catalogue, others, multipath, alone, load);
        all
    }

    /// Adds other policies: those asked for, and the profile's own where the scenario has another.
    fn add_policies(
        &mut self,
        scenario: &Scenario,
        catalogue: &Catalogue,
        others: &Others,
        multipath: bool,
        alone: &str,
        load: &Load<'_>,
    ) {
        let own = scenario.policies();
        let usual = Profile::named(&own.profile).unwrap_or_else(Profile::anabranch);
        let known: Vec<&str> = catalogue.reinjections.names().collect();
        let reinjections: Vec<String> =
            ["insured", "tail"].into_iter().filter(|name| known.contains(name)).map(str::to_owned).collect();
        let seams: [(Kind, &str, &[String], &str); 6] = [
            (Kind::Scheduler, "scheduler", &others.schedulers, usual.scheduler),
            (Kind::Congestion, "congestion", &others.congestion, usual.congestion),
            (Kind::Reinjection, "reinjection", &reinjections, usual.reinjection),
            (Kind::Window, "window", &[], Policies::RECEIVE_WINDOW),
            (Kind::AckPath, "ack-path", &[], Policies::ACK_PATH),
            (Kind::FirstPathPolicy, "first-path", &[], usual.first_path),
        ];
        for (kind, key, names, usual) in seams {
            let own = Some(usual).filter(|usual| names.iter().all(|name| name != usual));
            for name in names.iter().map(String::as_str).chain(own) {
                match multipath || kind == Kind::Congestion {
                    true => self.add_policy(scenario, kind, (key, name, usual), load),
                    false if matches!(kind, Kind::Scheduler | Kind::Reinjection) => {
                        self.leave_out(&format!("{key} {name}"), alone);
                    }
                    false => {}
                }
            }
        }
    }

    /// Adds a policy of both hosts, unless they have it: the table of one would override a key that is common to both.
    fn add_policy(&mut self, scenario: &Scenario, kind: Kind, (key, name, usual): (&str, &str, &str), load: &Load<'_>) {
        let sets = ["client", "server"].map(|host| format!("{host}.{key}=\"{name}\""));
        let before = self.run.len();
        self.add(kind, &format!("{key} {name}"), &sets, load);
        let same = |with: &Scenario| {
            let seam = |it: &Scenario| {
                [it.policies(), it.receiver()]
                    .map(|of| of.seams().into_iter().find(|(it, _)| *it == key).map(|it| it.1.clone()))
            };
            seam(with) == seam(scenario)
        };
        self.run.truncate(if self.run.get(before).is_some_and(|it| same(&it.scenario)) { before } else { before + 1 });
        let own = scenario.policies().seams().into_iter().find(|(it, _)| *it == key);
        if let (Some(added), Some((_, own))) = (self.run.get_mut(before), own) {
            added.usual = name == usual;
            let own = if own.name == name { own.to_string() } else { own.name.clone() };
            added.instead = Some(format!("The {} is {own}", policy_name(key)));
        }
    }

    /// Adds a counterfactual, unless it is the scenario itself or cannot be.
    fn add(&mut self, kind: Kind, what: &str, sets: &[String], load: &Load<'_>) {
        match load(sets) {
            Ok(scenario) => self.run.push(Alternative {
                kind,
                what: what.to_owned(),
                cause: None,
                instead: None,
                usual: false,
                scenario,
            }),
            Err(error) => self.leave_out(what, &error.to_string()),
        }
    }

    /// Adds the scenario without each of its elements that may cost time.
    fn add_elements(&mut self, scenario: &Scenario, load: &Load<'_>) {
        let elements = elements(scenario);
        if !elements.iter().any(|element| element.kind == Kind::NoLoss) {
            self.leave_out("no random loss", "no link loses packets by chance from the beginning");
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

/// A kind of policy in words.
fn policy_name(key: &str) -> &str {
    match key {
        "congestion" => "congestion control",
        "window" => "window policy",
        "ack-path" => "ACK path policy",
        "reinjection" => "reinjection policy",
        "first-path" => "first-path policy",
        other => other,
    }
}

/// The most subflows that both hosts admit.
pub(crate) fn subflow_limit(spec: &Spec) -> usize {
    spec.client.config.max_subflows.min(spec.server.config.max_subflows)
}
