//! Elements of a scenario that cost time: each with the `--set` assignments that take away this one and nothing else.
//!
//! An element is a fault of the network (loss, reordering, jitter, damage, middleboxes, long or tiny queues, traffic of
//! others, a shared bottleneck, changes during the run) or of a host (delayed ACKs, Nagle's algorithm, a low initial
//! ssthresh, a small initial window, TCP options that are off). Rates, delays and policies are none: a path is as it
//! is, and a policy is a choice.

use crate::Kind;
use crate::inquiry::ways;
use anabranch_engine::Config;
use anabranch_net::{Change, LinkConfig, LossModel, QueueLimit};
use anabranch_paths::{Direction, Middlebox, PathSpec, SharedLink};
use anabranch_sim::{Spec, Workload};
use anabranch_units::{Bytes, Duration, Rate};

/// An element and how to take it away.
pub(crate) struct Element {
    pub(crate) kind: Kind,
    /// Counterfactual, as a noun that follows "with".
    pub(crate) what: String,
    /// The element as a sentence without its full stop.
    pub(crate) cause: String,
    /// Assignments that take it away.
    pub(crate) sets: Vec<String>,
}

/// Delay of ACKs that is tried in place of a longer one: that of Linux, and the engine's.
const PROMPT: Duration = Duration::from_millis(40);
/// Time that a full queue may hold a packet before a shorter one is tried, and the same in round trips.
const LONG_QUEUE: (Duration, f64) = (Duration::from_millis(250), 4.0);
/// Time that packets waited in a queue from which on it is named although the transfer took no longer for it.
const STANDING: Duration = Duration::from_millis(500);
/// Packets of the shortest queue that is tried.
const LEAST_QUEUE: u64 = 16;
/// Bytes of a packet, where a queue counts packets.
const PACKET: u64 = 1500;
/// Segments of the initial window that RFC 6928 allows.
const INITIAL_WINDOW: u32 = 10;

/// Lists the elements of a scenario.
pub(crate) fn elements(spec: &Spec) -> Vec<Element> {
    let mut all = Vec::new();
    let mut add = |kind, what: String, cause: String, sets: Vec<String>| {
        all.push(Element { kind, what, cause, sets });
    };
    losses(spec, &mut add);
    for path in &spec.network.paths {
        of_path(spec, path, &mut add);
    }
    for link in &spec.network.shared {
        of_shared(spec, link, &mut add);
    }
    traffic(spec, &mut add);
    changes(spec, &mut add);
    for (sender, receiver) in hosts(spec) {
        of_receiver(sender, receiver, &mut add);
        of_sender(spec, sender, receiver, &mut add);
    }
    all
}

/// Takes in an element.
type Add<'a> = dyn FnMut(Kind, String, String, Vec<String>) + 'a;

/// A host with its table's name.
type Named<'a> = (&'static str, &'a Config);

/// Senders and receivers of the run's own data.
fn hosts(spec: &Spec) -> Vec<(Named<'_>, Named<'_>)> {
    let (client, server) = (("client", &spec.client.config), ("server", &spec.server.config));
    let pair = |way| match way {
        Direction::Down => (server, client),
        Direction::Up => (client, server),
    };
    ways(spec).into_iter().map(pair).collect()
}

/// Loss of each link and of all.
fn losses(spec: &Spec, add: &mut Add<'_>) {
    // Loss that changes in the course of the run is not what a path begins with.
    if spec.network.changes.iter().any(|timed| matches!(timed.change, Change::Loss(_))) {
        return;
    }
    let paths = spec.network.paths.iter().map(|path| ("path", &path.name, [&path.down, &path.up]));
    let links = spec.network.shared.iter().map(|link| ("link", &link.name, [&link.down, &link.up]));
    let lossy: Vec<(&str, &String, f64)> = paths
        .chain(links)
        .map(|(table, name, both)| {
            (table, name, both.map(|link| mean_loss(&link.loss)).into_iter().fold(0.0, f64::max))
        })
        .filter(|(.., loss)| *loss > 0.0)
        .collect();
    let sets = |table: &str, name: &str| ["loss", "loss-up"].map(|key| format!("{table}.{name}.{key}=\"0%\""));
    let clause = |name: &str, loss: f64| format!("{name} loses {} of its packets by chance", percent(loss));
    match lossy.as_slice() {
        [] => {}
        [(table, name, loss)] => {
            add(Kind::NoLoss, "no random loss".to_owned(), clause(name, *loss), sets(table, name).to_vec());
        }
        several => {
            let all = several.iter().flat_map(|(table, name, _)| sets(table, name)).collect();
            let names: Vec<String> =
                several.iter().map(|(_, name, loss)| format!("{name} ({})", percent(*loss))).collect();
            let cause = format!("Packets are lost by chance on {}", listed(&names));
            add(Kind::NoLoss, "no random loss".to_owned(), cause, all);
            for (table, name, loss) in several {
                let what = format!("no random loss on {name}");
                add(Kind::NoLoss, what, clause(name, *loss), sets(table, name).to_vec());
            }
        }
    }
}

/// Share of packets that a model loses in the long run.
fn mean_loss(model: &LossModel) -> f64 {
    match model {
        LossModel::None => 0.0,
        LossModel::Bernoulli { p } => *p,
        LossModel::GilbertElliott { p_good_bad, p_bad_good, loss_good, loss_bad } => {
            let bad = p_good_bad / (p_good_bad + p_bad_good).max(f64::MIN_POSITIVE);
            loss_good * (1.0 - bad) + loss_bad * bad
        }
        // Single packets, or whatever else there is: more than none.
        _ => f64::MIN_POSITIVE,
    }
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        small if small < 0.01 => "some".to_owned(),
        some => format!("{} %", (some * 100.0).round() / 100.0),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Elements of a path: what its links do to packets, its queue, its middleboxes.
fn of_path(spec: &Spec, path: &PathSpec, add: &mut Add<'_>) {
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
    queue("path", name, &path.down, round_trip(spec, path), add);
    if !path.middleboxes.is_empty() {
        let boxes: Vec<String> = path.middleboxes.iter().map(|it| act(&it.kind)).collect();
        let cause = format!("A middlebox on {name} {}", listed(&boxes));
        let what = format!("no middlebox on {name}");
        add(Kind::NoMiddlebox, what, cause, vec![format!("path.{name}.middlebox=[]")]);
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
        Middlebox::RewriteSequence(_) => "rewrites sequence numbers (rewrite-sequence)".to_owned(),
    }
}

/// Shortest round trip of a path, with the links that it shares.
fn round_trip(spec: &Spec, path: &PathSpec) -> Duration {
    let shared = spec.network.shared.iter().filter(|link| path.via.as_ref() == Some(&link.name));
    let links = shared.flat_map(|link| [&link.down, &link.up]).chain([&path.down, &path.up]);
    links.fold(Duration::ZERO, |sum, link| sum + link.delay)
}

/// Tells whether a queue of so many bytes holds packets for too long, in time alone.
pub(crate) fn is_long(link: &LinkConfig, queued: Bytes) -> bool {
    let rate = link.service.mean_rate();
    !rate.is_zero() && rate.time_for(queued) > STANDING
}

/// A queue that holds packets for many round trips, or is too short to keep its link busy.
fn queue(table: &str, name: &str, link: &LinkConfig, round_trip: Duration, add: &mut Add<'_>) {
    let rate = link.service.mean_rate();
    let bytes = match link.queue {
        QueueLimit::Packets(packets) => u64::from(packets) * PACKET,
        QueueLimit::Bytes(bytes) => bytes.get(),
        // It fits by its definition, unless the factor is large.
        QueueLimit::Bdp { factor, round_trip } => (factor * rate.bytes_in(round_trip).get() as f64) as u64,
    };
    if rate.is_zero() || link.queue_counts_delay {
        return;
    }
    let (holds, fits) = (rate.time_for(Bytes::new(bytes)), rate.bytes_in(round_trip).get().div_ceil(PACKET));
    let packets = fits.max(LEAST_QUEUE);
    let sets = vec![format!("{table}.{name}.queue=\"{packets}p\"")];
    let what = format!("a queue of {packets} packets on {name}");
    if holds > LONG_QUEUE.0.max(round_trip.mul_f64(LONG_QUEUE.1)) && packets * PACKET < bytes {
        let cause = format!(
            "{name} has a queue that holds packets for up to {:.1} s (bufferbloat), with a round trip of {round_trip}",
            holds.as_secs_f64()
        );
        add(Kind::ShorterQueue, what, cause, sets);
    } else if bytes < fits.min(2 * LEAST_QUEUE) * PACKET / 2 {
        let cause = format!("{name} has a queue of {} packets only, and drops what comes in bursts", bytes / PACKET);
        add(Kind::LongerQueue, what, cause, sets);
    }
}

/// A link that several paths share, and that carries less than they do together.
fn of_shared(spec: &Spec, link: &SharedLink, add: &mut Add<'_>) {
    let users: Vec<&PathSpec> = spec.network.paths.iter().filter(|it| it.via.as_ref() == Some(&link.name)).collect();
    let Some(longest) = users.iter().map(|path| round_trip(spec, path)).max() else { return };
    queue("link", &link.name, &link.down, longest, add);
    let together = |pick: &dyn Fn(&PathSpec) -> Rate| {
        Rate::from_bps(users.iter().map(|path| pick(path).as_bps()).fold(0, u64::saturating_add))
    };
    let (down, up) = (together(&|it| it.down.service.mean_rate()), together(&|it| it.up.service.mean_rate()));
    let (own_down, own_up) = (link.down.service.mean_rate(), link.up.service.mean_rate());
    if users.len() < 2 || (own_down >= down && own_up >= up) {
        return;
    }
    let name = &link.name;
    let names: Vec<String> = users.iter().map(|path| path.name.clone()).collect();
    let cause = format!(
        "{} share the bottleneck {name} of {own_down}, which is less than their {down} together",
        listed(&names)
    );
    let sets =
        vec![format!("link.{name}.down=\"{}\"", down.max(own_down)), format!("link.{name}.up=\"{}\"", up.max(own_up))];
    add(Kind::FasterLink, format!("{name} as fast as its paths together"), cause, sets);
}

/// Traffic of others: each flow, and all.
fn traffic(spec: &Spec, add: &mut Add<'_>) {
    let of_others = spec.workloads.iter().enumerate().filter_map(|(number, workload)| match workload {
        Workload::Udp { path, rate, .. } => Some((number, path, format!("UDP of {rate}"))),
        Workload::Tcp { path, .. } => Some((number, path, "competing TCP".to_owned())),
        _ => None,
    });
    let flows: Vec<(usize, &String, String)> = of_others.collect();
    // What begins when the run ends never begins.
    let set = |number: usize| format!("workload.{number}.start=\"{}\"", spec.stop);
    for (number, path, flow) in &flows {
        let cause = format!("Cross traffic takes a part of {path}: {flow}");
        add(Kind::NoTraffic, format!("no {flow} on {path}"), cause, vec![set(*number)]);
    }
    if flows.len() > 1 {
        let mut paths: Vec<String> = flows.iter().map(|(_, path, _)| (*path).clone()).collect();
        paths.sort();
        paths.dedup();
        let cause = format!("Cross traffic of {} flows takes a part of {}", flows.len(), listed(&paths));
        let sets = flows.iter().map(|(number, ..)| set(*number)).collect();
        add(Kind::NoTraffic, "no cross traffic".to_owned(), cause, sets);
    }
}

/// Changes of the network during the run.
fn changes(spec: &Spec, add: &mut Add<'_>) {
    let Some(first) = spec.network.changes.first() else { return };
    let verb = match &first.change {
        Change::Rate(rate) => format!("changes its rate to {rate}"),
        Change::Trace(_) => "changes its rate".to_owned(),
        Change::Delay(delay) => format!("changes its delay to {delay}"),
        Change::Jitter(jitter) => format!("changes its jitter to {jitter}"),
        Change::Loss(model) => format!("changes its loss to {}", percent(mean_loss(model))),
        Change::Down => "goes down".to_owned(),
        Change::Blackhole => "becomes a black hole".to_owned(),
        Change::Up | Change::Restore => "comes back".to_owned(),
    };
    let cause = format!("{} {verb} {} after the beginning of the run", first.path, first.at);
    add(Kind::NoChange, "no changes during the run".to_owned(), cause, vec!["change=[]".to_owned()]);
}

fn of_receiver((sender, from): Named<'_>, (receiver, to): Named<'_>, add: &mut Add<'_>) {
    let Some(delay) = to.profile.delayed_ack.filter(|delay| *delay > PROMPT) else { return };
    let nagle =
        if from.profile.nagle { format!(", for which Nagle's algorithm at the {sender} waits") } else { String::new() };
    let cause = format!("The {receiver} delays its ACKs by up to {delay}{nagle}");
    let sets = vec![format!("{receiver}.delayed-ack=\"{PROMPT}\"")];
    add(Kind::PromptAcks, format!("delayed ACKs of {PROMPT}"), cause, sets);
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
