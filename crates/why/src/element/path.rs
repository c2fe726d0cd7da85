//! Elements of a path: what its links do to packets, its draws, its interface, its way back, its middleboxes.

use super::{Add, link, listed, percent};
use crate::Kind;
use crate::inquiry::ways;
use anabranch_net::LinkConfig;
use anabranch_paths::{Direction, Middlebox, PathSpec};
use anabranch_scenario::{Scenario, Vary};

/// Ratio of the rates of a path in the two directions from which on ACKs may fill the slower one: a full segment that
/// has its own ACK is 20 times as long.
const NARROW: f64 = 10.0;

/// All elements of a path.
pub(super) fn of_path(scenario: &Scenario, path: &PathSpec, add: &mut Add<'_>) {
    let name = &path.name;
    impairments(path, add);
    for vary in scenario.varies().iter().filter(|vary| vary.path == *name) {
        draws(path, vary, add);
    }
    link::queue("path", name, &path.down, link::round_trip(scenario.written(), path), add);
    let (down, up) = (path.down.service.mean_rate(), path.up.service.mean_rate());
    if let Some(nic) = path.nic.filter(|nic| *nic < down.max(up)) {
        let (rate, cause) = (down.max(up), format!("The hosts' interface on {name} carries no more than {nic}"));
        let sets = vec![format!("path.{name}.nic=\"{rate}\"")];
        add(Kind::FasterInterface, format!("an interface of {rate} on {name}"), cause, sets);
    }
    way_back(scenario, path, add);
    boxes(path, add);
}

/// Reordering, jitter, damage and repeats.
fn impairments(path: &PathSpec, add: &mut Add<'_>) {
    let name = &path.name;
    let either = |what: &dyn Fn(&LinkConfig) -> f64| what(&path.down).max(what(&path.up));
    if let Some(reorder) = path.down.reordering.or(path.up.reordering).filter(|it| it.probability > 0.0) {
        let share = percent(reorder.probability);
        let cause = format!("{name} reorders: it delays {share} of its packets by {}", reorder.extra);
        let sets = vec![format!("path.{name}.reorder.probability=\"0%\"")];
        add(Kind::NoReordering, format!("no reordering on {name}"), cause, sets);
    }
    let jitter = path.down.jitter.max(path.up.jitter);
    if !jitter.is_zero() {
        let reorders = if path.down.jitter_reorders { ", and reorders them" } else { "" };
        let cause = format!("{name} delays its packets by up to {jitter} at random{reorders}");
        add(Kind::NoJitter, format!("no jitter on {name}"), cause, vec![format!("path.{name}.jitter=\"0ms\"")]);
    }
    for (key, verb, share) in [
        ("corrupt", "damages", either(&|link| link.corruption)),
        ("duplicate", "duplicates", either(&|link| link.duplication)),
    ] {
        if share > 0.0 {
            let what = format!("no packets that {name} {verb}");
            let cause = format!("{name} {verb} {} of its packets", percent(share));
            add(Kind::NoDamage, what, cause, vec![format!("path.{name}.{key}=\"0%\"")]);
        }
    }
}

/// Rate and delay that are drawn: without the draws they are the path's own.
fn draws(path: &PathSpec, vary: &Vary, add: &mut Add<'_>) {
    let name = &path.name;
    let how = vary.every.map_or(", drawn for each run".to_owned(), |every| format!(", drawn every {every}"));
    if let Some([least, most]) = vary.rate.filter(|[least, most]| least < most) {
        let own = path.down.service.mean_rate();
        let cause = format!("{name} varies its rate: {least} to {most}{how}");
        let sets = vec![format!("path.{name}.vary.rate=[\"{own}\", \"{own}\"]")];
        add(Kind::Steady, format!("a steady rate of {own} on {name}"), cause, sets);
    }
    if let Some([least, most]) = vary.delay.filter(|[least, most]| least < most) {
        let (key, times) = if vary.in_round_trips { ("rtt", 2) } else { ("delay", 1) };
        let own = path.down.delay * times;
        let cause = format!("{name} varies its {key}: {} to {}{how}", least * times, most * times);
        let sets = vec![format!("path.{name}.vary.{key}=[\"{own}\", \"{own}\"]")];
        add(Kind::Steady, format!("a steady {key} of {own} on {name}"), cause, sets);
    }
}

/// A way back so much slower than the way of the data that ACKs may fill it.
fn way_back(scenario: &Scenario, path: &PathSpec, add: &mut Add<'_>) {
    let (down, up) = (path.down.service.mean_rate(), path.up.service.mean_rate());
    for way in ways(scenario.written()) {
        let (there, back, key) = match way {
            Direction::Down => (down, up, "up"),
            Direction::Up => (up, down, "down"),
        };
        if back.is_zero() || (there.as_bps() as f64) < NARROW * back.as_bps() as f64 {
            continue;
        }
        let name = &path.name;
        let cause = format!("The way back on {name} carries {back} only, which ACKs and requests fill");
        let sets = vec![format!("path.{name}.{key}=\"{there}\"")];
        add(Kind::WayBack, format!("a way back of {there} on {name}"), cause, sets);
    }
}

/// Each middlebox, and of several all of them.
fn boxes(path: &PathSpec, add: &mut Add<'_>) {
    let name = &path.name;
    let boxes: Vec<String> = path.middleboxes.iter().map(|it| act(&it.kind)).collect();
    if boxes.len() > 1 {
        let cause = format!(
            "Middleboxes on {name}: one {}",
            listed(&boxes).replace(", ", ", one ").replace(" and ", " and one ")
        );
        add(Kind::NoMiddlebox, format!("no middlebox on {name}"), cause, vec![format!("path.{name}.middlebox=[]")]);
    }
    for (number, act) in boxes.iter().enumerate() {
        let what = match boxes.len() {
            1 => format!("no middlebox on {name}"),
            _ => format!("no middlebox on {name} that {act}"),
        };
        let sets = vec![format!("path.{name}.middlebox.{number}=false")];
        add(Kind::NoMiddlebox, what, format!("A middlebox on {name} {act}"), sets);
    }
}

/// A middlebox by its effect.
fn act(kind: &Middlebox) -> String {
    match kind {
        Middlebox::Strip(_) => "removes MPTCP options (strip)".to_owned(),
        Middlebox::MtuBlackhole(hole) => format!("drops packets of more than {} bytes (MTU black hole)", hole.size),
        Middlebox::DropSyn(_) => "drops SYNs by their options (drop-syn)".to_owned(),
        Middlebox::Faults(_) => "loses, repeats or delays single packets (faults)".to_owned(),
        Middlebox::Split(_) => "cuts segments (split)".to_owned(),
        Middlebox::Coalesce(_) => "merges segments (coalesce)".to_owned(),
        Middlebox::EarlyAck(_) => "acknowledges before the receiver (early-ack)".to_owned(),
        Middlebox::Nat(_) => "forgets its mappings (nat)".to_owned(),
        Middlebox::AlterPayload(_) => "alters data (alter-payload)".to_owned(),
        Middlebox::MangleEcn(_) => "changes marks of packets (mangle-ecn)".to_owned(),
        Middlebox::RewriteSequence(_) => "rewrites sequence numbers (rewrite-sequence)".to_owned(),
    }
}
