//! Elements of hosts: settings that delay or hold back, and all that are not as their profile has them.

use super::Add;
use crate::Kind;
use crate::inquiry::ways;
use anabranch_engine::settings::{SETTINGS, Setting, Value};
use anabranch_engine::{Config, Profile};
use anabranch_paths::{Direction, Middlebox};
use anabranch_scenario::Scenario;
use anabranch_sim::Spec;
use anabranch_units::Duration;

/// Delay of ACKs that is tried in place of a longer one: that of Linux, and the engine's.
const PROMPT: Duration = Duration::from_millis(40);
/// Segments of the initial window that RFC 6928 allows.
const INITIAL_WINDOW: u32 = 10;
/// Settings that have an element or a counterfactual of their own, and those that no transfer takes time for.
const APART: &[&str] = &[
    "multipath",
    "max-subflows",
    "send-buffer",
    "nagle",
    "delayed-ack",
    "quick-acks",
    "initial-ssthresh",
    "initial-window",
    "sack",
    "window-scaling",
    "mtu-probing",
    "ports",
    "ack-rewrite",
];

/// A host with its table's name.
type Named<'a> = (&'static str, &'a Config);

/// All elements of both hosts.
pub(super) fn of_hosts(scenario: &Scenario, add: &mut Add<'_>) {
    let spec = scenario.written();
    for (sender, receiver) in pairs(spec) {
        of_receiver(sender, receiver, add);
        of_sender(spec, sender, receiver, add);
    }
    for setting in SETTINGS.iter().filter(|it| !it.not_in_scenarios && !APART.contains(&it.name)) {
        changed(scenario, setting, add);
    }
}

/// Senders and receivers of the run's own data.
fn pairs(spec: &Spec) -> Vec<(Named<'_>, Named<'_>)> {
    let (client, server) = (("client", &spec.client.config), ("server", &spec.server.config));
    let pair = |way| match way {
        Direction::Down => (server, client),
        Direction::Up => (client, server),
    };
    ways(spec).into_iter().map(pair).collect()
}

/// A setting that some host has, and its profile has not.
fn changed(scenario: &Scenario, setting: &Setting, add: &mut Add<'_>) {
    let spec = scenario.written();
    let mut hosts = Vec::new();
    for (name, config, is_client) in [("client", &spec.client.config, true), ("server", &spec.server.config, false)] {
        let given =
            scenario.host_tables(is_client).iter().any(|it| it.given.iter().any(|it| it.setting.name == setting.name));
        let usual = Profile::named(config.profile.name).map(|profile| setting.value(&Config::new(profile, Vec::new())));
        let own = setting.value(config);
        if let Some(usual) = usual.filter(|usual| given && *usual != own) {
            hosts.push((name, own, usual));
        }
    }
    let Some((_, own, usual)) = hosts.first().copied() else { return };
    let who = match hosts.as_slice() {
        [(one, ..)] => format!("The {one} has"),
        _ => "The hosts have".to_owned(),
    };
    let key = setting.name;
    let cause = format!("{who} {key} = {own}, where the profile has {usual}");
    let sets = hosts.iter().map(|(host, _, usual)| format!("{host}.{key}={}", quoted(*usual))).collect();
    add(Kind::Setting, format!("{key} = {usual}"), cause, sets);
}

/// A value as an assignment has it.
fn quoted(value: Value) -> String {
    match value {
        Value::Size(_) | Value::Time(_) | Value::Word(_) => format!("\"{value}\""),
        plain => plain.to_string(),
    }
}

fn of_receiver((sender, from): Named<'_>, (receiver, to): Named<'_>, add: &mut Add<'_>) {
    let usual = Profile::anabranch().quick_acks;
    let few = to.profile.quick_acks < usual;
    let Some(delay) = to.profile.delayed_ack.filter(|delay| *delay > PROMPT || (few && *delay == PROMPT)) else {
        return;
    };
    let nagle =
        if from.profile.nagle { format!(", for which Nagle's algorithm at the {sender} waits") } else { String::new() };
    let (mut sets, mut quick, mut what) = (Vec::new(), String::new(), format!("delayed ACKs of {PROMPT}"));
    if delay > PROMPT {
        sets.push(format!("{receiver}.delayed-ack=\"{PROMPT}\""));
    }
    if few {
        quick = format!(", from segment {} on", to.profile.quick_acks + 1);
        sets.push(format!("{receiver}.quick-acks={usual}"));
        what += &format!(" after the first {usual} segments");
    }
    let cause = format!("The {receiver} delays its ACKs by up to {delay}{quick}{nagle}");
    add(Kind::PromptAcks, what, cause, sets);
}

fn of_sender(spec: &Spec, (sender, from): Named<'_>, (receiver, to): Named<'_>, add: &mut Add<'_>) {
    let profile = &from.profile;
    if profile.nagle {
        let late = to.profile.delayed_ack.filter(|delay| *delay >= PROMPT);
        let late = late.map_or(String::new(), |delay| format!(", which the {receiver} delays by up to {delay}"));
        let cause = format!("Nagle's algorithm at the {sender} holds short segments until an ACK comes{late}");
        add(Kind::NoNagle, "no Nagle's algorithm".to_owned(), cause, vec![format!("{sender}.nagle=false")]);
    }
    if let Some(segments) = profile.initial_ssthresh {
        let cause = format!("The {sender} ends slow start at {segments} segments (initial ssthresh)");
        let what = "no initial ssthresh".to_owned();
        add(Kind::InitialSsthresh, what, cause, vec![format!("{sender}.initial-ssthresh=false")]);
    }
    if profile.initial_window < INITIAL_WINDOW {
        let cause = format!("The {sender} begins with a window of {} segments", profile.initial_window);
        let sets = vec![format!("{sender}.initial-window={INITIAL_WINDOW}")];
        add(Kind::InitialWindow, format!("an initial window of {INITIAL_WINDOW} segments"), cause, sets);
    }
    for (key, name, is_on) in [
        ("sack", "SACK", profile.sack && to.profile.sack),
        ("window-scaling", "window scaling", profile.window_scaling && to.profile.window_scaling),
    ] {
        if !is_on {
            let sets = ["client", "server"].map(|host| format!("{host}.{key}=true")).to_vec();
            add(Kind::TcpOption, format!("{name} on both hosts"), format!("The hosts do not use {name}"), sets);
        }
    }
    // Its own remedy for packets that are too large, beside the removal of the box.
    let holes = || spec.network.paths.iter().flat_map(|path| &path.middleboxes);
    let has_hole = holes().any(|it| matches!(it.kind, Middlebox::MtuBlackhole(_)));
    if has_hole && from.black_hole_timeouts.is_none_or(|timeouts| timeouts > 1) {
        let cause = format!("The {sender} does not probe for a smaller MTU");
        add(Kind::MtuProbing, "MTU probing".to_owned(), cause, vec![format!("{sender}.mtu-probing=1")]);
    }
}
