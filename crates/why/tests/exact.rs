//! A counterfactual changes what its assignments name, and nothing else: over all kinds of planted faults.
#![allow(clippy::unwrap_used)]

mod plant;

use anabranch_engine::settings::SETTINGS;
use anabranch_net::LinkConfig;
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use anabranch_units::Seed;
use anabranch_why::{Alternatives, Kind, Others};
use plant::{draw, kinds};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Draws of each kind of fault.
const DRAWS: u64 = 3;

fn load(text: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "fault.toml".to_owned(), sets: sets.to_vec() };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    Scenario::read(&Arc::new(Catalogue::default()), "fault", "fault.toml", text, origin, &none)
}

/// All that a scenario resolves to, by the key that sets it.
fn facts(scenario: &Scenario) -> BTreeMap<String, String> {
    let spec = scenario.written();
    let mut facts = BTreeMap::new();
    let mut add = |key: String, value: String| facts.insert(key, value);
    let mut link = |place: &str, up: bool, it: &LinkConfig| {
        let rate = if up { "up" } else { "down" };
        add(format!("{place}.{rate}"), format!("{:?}", it.service.mean_rate()));
        add(format!("{place}.{}", if up { "loss-up" } else { "loss" }), format!("{:?}", it.loss));
        add(format!("{place}.delay/{rate}"), format!("{:?}", it.delay));
        add(format!("{place}.jitter/{rate}"), format!("{:?}", it.jitter));
        add(format!("{place}.jitter-reorders/{rate}"), it.jitter_reorders.to_string());
        add(format!("{place}.queue/{rate}"), format!("{:?} {}", it.queue, it.queue_counts_delay));
        add(format!("{place}.reorder/{rate}"), format!("{:?}", it.reordering.filter(|it| it.probability > 0.0)));
        add(format!("{place}.duplicate/{rate}"), it.duplication.to_string());
        add(format!("{place}.corrupt/{rate}"), it.corruption.to_string());
    };
    for path in &spec.network.paths {
        let place = format!("path.{}", path.name);
        link(&place, false, &path.down);
        link(&place, true, &path.up);
    }
    for shared in &spec.network.shared {
        let place = format!("link.{}", shared.name);
        link(&place, false, &shared.down);
        link(&place, true, &shared.up);
    }
    for path in &spec.network.paths {
        let vary = scenario.varies().iter().find(|it| it.path == path.name);
        add(format!("path.{}.vary", path.name), format!("{vary:?}"));
        add(format!("path.{}.nic", path.name), format!("{:?} {:?}", path.nic, path.via));
        add(format!("path.{}.backup", path.name), path.backup.to_string());
        for number in 0..path.middleboxes.len() {
            add(format!("path.{}.middlebox.{number}", path.name), String::new());
        }
    }
    add("run.primary".to_owned(), spec.network.paths[spec.network.primary].name.clone());
    add("run.stop".to_owned(), spec.stop.to_string());
    (0..spec.workloads.len()).for_each(|number| drop(add(format!("workload.{number}"), String::new())));
    scenario.changed().iter().enumerate().for_each(|(n, of)| drop(add(format!("change.{n}"), format!("{of:?}"))));
    let client_first = scenario.client_sends();
    for (name, host, is_client) in [("client", &spec.client, true), ("server", &spec.server, false)] {
        for setting in SETTINGS {
            add(format!("{name}.{}", setting.name), setting.value(&host.config).to_string());
        }
        let buffer = (host.config.initial_receive_buffer, host.config.receive_buffer);
        add(format!("{name}.receive-buffer"), format!("{buffer:?}"));
        let chosen = if is_client == client_first { scenario.policies() } else { scenario.receiver() };
        add(format!("{name}.profile"), chosen.profile.clone());
        for (seam, policy) in chosen.seams() {
            add(format!("{name}.{seam}"), policy.to_string());
        }
    }
    facts
}

/// True if an assignment to `key` may change a fact.
fn covers(key: &str, fact: &str) -> bool {
    let bare = fact.split('/').next().unwrap();
    let same = |key: &str| key == bare || key.strip_prefix(bare).is_some_and(|rest| rest.starts_with('.'));
    let host = |it: &str| key.strip_prefix("host.").is_some_and(|rest| same(&format!("{it}.{rest}")));
    // The numbers behind an entry that is taken out become smaller, and a run lasts as long as its workloads. A send
    // buffer that no file sets is no smaller than the other host's receive buffer, and one size is all of a buffer's.
    let entry = ["workload", "change", "middlebox"].iter().any(|array| {
        let of = |text: &str| text.rfind(array).map(|at| text[..at + array.len()].to_owned());
        of(key).is_some_and(|key| of(bare) == Some(key))
    });
    let follows = bare == "run.stop" && key.starts_with("workload.")
        || bare == "server.send-buffer" && key == "client.receive-buffer"
        || bare == "client.send-buffer" && key == "server.receive-buffer"
        || bare.strip_suffix("initial-receive-buffer").is_some_and(|host| key == format!("{host}receive-buffer"));
    same(key) || host("client") || host("server") || entry || follows
}

/// Last parts of the keys that a counterfactual of a kind may set, as its sentence says them; empty for any.
fn keys_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::ReceiveBuffer => &["receive-buffer"],
        Kind::SendBuffer => &["send-buffer"],
        Kind::Buffers => &["receive-buffer", "send-buffer"],
        Kind::NoLoss => &["loss", "loss-up"],
        Kind::NoReordering => &["probability"],
        Kind::NoJitter => &["jitter"],
        Kind::NoDamage => &["corrupt", "duplicate"],
        Kind::ShorterQueue | Kind::LongerQueue => &["queue"],
        Kind::FasterLink | Kind::WayBack => &["down", "up"],
        Kind::FasterInterface => &["nic"],
        Kind::Steady => &["rate", "rtt", "delay"],
        Kind::PromptAcks => &["delayed-ack", "quick-acks"],
        Kind::NoNagle => &["nagle"],
        Kind::MtuProbing => &["mtu-probing"],
        Kind::InitialSsthresh => &["initial-ssthresh"],
        Kind::InitialWindow => &["initial-window"],
        Kind::TcpOption => &["sack", "window-scaling"],
        Kind::FirstPath => &["primary", "first-path"],
        Kind::Scheduler => &["scheduler"],
        Kind::Congestion => &["congestion"],
        Kind::Reinjection => &["reinjection"],
        Kind::Window => &["window"],
        Kind::AckPath => &["ack-path"],
        Kind::FirstPathPolicy => &["first-path"],
        Kind::WithoutPath | Kind::RegularPath => &["backup"],
        Kind::Multipath => &["multipath"],
        Kind::MoreSubflows => &["max-subflows"],
        _ => &[],
    }
}

#[test]
fn a_counterfactual_changes_what_it_names_alone() {
    let catalogue = Arc::new(Catalogue::default());
    let (mut checked, mut seen) = (0, BTreeSet::new());
    for kind in kinds() {
        for planted in (0..DRAWS).filter_map(|number| draw(&kind, Seed(1), number)) {
            let load = |more: &[String]| load(&planted.text, more);
            let scenario = load(&[]).unwrap();
            let before = facts(&scenario);
            for it in Alternatives::of(&scenario, &catalogue, &Others::default(), &load).run {
                // Plain TCP on one path is the scenario's baseline, which no file says in whole.
                if it.kind == Kind::SinglePath {
                    continue;
                }
                let after = facts(&it.scenario);
                let keys: Vec<&str> =
                    it.scenario.origin.sets.iter().map(|set| set.split('=').next().unwrap()).collect();
                let named = keys_of(it.kind);
                let is_named = |key: &str| named.is_empty() || named.contains(&key.rsplit('.').next().unwrap());
                assert!(keys.iter().copied().all(is_named), "{}: {} sets {keys:?}", planted.name, it.what);
                let facts: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                let differ: Vec<&String> =
                    facts.into_iter().filter(|fact| before.get(*fact) != after.get(*fact)).collect();
                let stray: Vec<&&String> =
                    differ.iter().filter(|fact| !keys.iter().any(|key| covers(key, fact))).collect();
                assert!(stray.is_empty(), "{}: {} by {keys:?} changes {stray:?}", planted.name, it.what);
                if it.cause.is_some() {
                    assert!(!differ.is_empty(), "{}: {} changes nothing by {keys:?}", planted.name, it.what);
                }
                seen.insert(format!("{:?}", it.kind));
                checked += 1;
            }
        }
    }
    assert!(checked > 1000 && seen.len() > 25, "{checked} of {seen:?}");
}
