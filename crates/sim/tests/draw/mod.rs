//! Draws a run from a seed.

pub mod deep;

use crate::common::order;
use anabranch_engine::{Factory, Policies, Profile, Switch};
use anabranch_net::{Change, LinkConfig, LossModel, QueueLimit, Reordering};
use anabranch_paths::{
    Affected, Coalesce, Direction, DropSyn, End, Middlebox, MiddleboxSpec, Nat, PathSpec, RewriteSequence, SharedLink,
    Split, SplitOptions, Strip, Stripped, StrippedOptions, SynOption, TimedChange, Unmapped,
};
use anabranch_policy::registry::{
    ACK_PATHS, CONGESTION, Domain, Entry, Kind, REINJECTIONS, SCHEDULERS, Value, WINDOWS,
};
use anabranch_sim::{Host, HostSpec, Spec, TimedSwitch, Workload};
use anabranch_units::{Bytes, Duration, Rate, Seed, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run in which everything should arrive: faults last up to ten seconds and are over after two minutes.
pub fn spec(seed: Seed) -> Spec {
    let mut stream = seed.stream("swarm");
    let draw = &mut stream;
    let count = 1 + draw.below(3) as usize;
    let mut paths: Vec<_> = (0..count).map(|n| path(draw, n)).collect();
    let shared = draw.chance(0.2);
    if shared {
        paths.iter_mut().for_each(|path| path.via = Some("core".to_owned()));
    }
    let mut spec = Spec::new(paths, host(draw), host(draw));
    if shared {
        let (down, up) = (link(draw), link(draw));
        spec.network.shared = vec![SharedLink { name: "core".to_owned(), down, up }];
    }
    // From a stream of its own, so that the other draws are what they were.
    spec.client.config.checksum = seed.stream("swarm/checksum").chance(0.2);
    spec.client.config.repeat_keys = !seed.stream("swarm/keys").chance(0.2);
    let rewrites = &mut seed.stream("swarm/ack-rewrite");
    (spec.client.config.ack_rewrite, spec.server.config.ack_rewrite) = (rewrites.chance(0.8), rewrites.chance(0.8));
    let bursts = &mut seed.stream("swarm/burst");
    for host in [&mut spec.client, &mut spec.server] {
        host.config.burst = bursts.chance(0.5).then(|| Bytes::new(log(bursts, 1000, 65_535)));
    }
    spec.seed = seed;
    spec.network.primary = draw.below(count as u64) as usize;
    spec.server.addresses = 1 + usize::from(draw.chance(0.1));
    spec.workloads = vec![workload(draw)];
    spec.network.changes = (0..draw.below(4)).flat_map(|_| fault(draw, count)).collect();
    let switches = &mut seed.stream("swarm/switches");
    if switches.chance(0.3) {
        spec.switches = (0..1 + switches.below(5)).map(|_| switch(switches)).collect();
    }
    spec.stop = Duration::from_secs(HORIZON);
    spec.linger = Some(Duration::from_secs(HORIZON));
    spec.audit = true;
    spec.loss_oracle = draw.chance(0.5);
    spec.codec = draw.chance(0.25);
    deep::deepen(&mut spec, seed);
    if deep::may_crawl(&spec) {
        (spec.stop, spec.linger) = (spec.stop * 10, Some(spec.stop * 10));
    }
    spec
}

/// The path swallows everything, both ways, from one second on.
#[allow(dead_code)] // For the swarm alone.
pub fn blackhole(spec: &Spec, path: usize) -> TimedChange {
    TimedChange {
        at: Duration::from_secs(1),
        path: spec.network.paths[path].name.clone(),
        affected: Affected::Both,
        change: Change::Blackhole,
        notify: false,
    }
}

fn path(draw: &mut Stream, number: usize) -> PathSpec {
    let mut path = PathSpec::new(&format!("path{number}"), link(draw), link(draw));
    path.nic = draw.chance(0.2).then(|| Rate::from_bps(log(draw, 1_000_000, 10_000_000_000)));
    path.backup = draw.chance(0.1);
    if draw.chance(0.2) {
        path.middleboxes = (0..1 + draw.below(2)).map(|_| middlebox(draw)).collect();
    }
    path
}

/// Any that lets a connection survive: none that loses for good what it has acknowledged, none that alters payload.
fn middlebox(draw: &mut Stream) -> MiddleboxSpec {
    let direction = [None, Some(Direction::Down), Some(Direction::Up)][draw.below(3) as usize];
    let from = [Stripped::Syn, Stripped::SynAck, Stripped::ThirdAck, Stripped::All, Stripped::AfterHandshake];
    let kind = match draw.below(8) {
        0..3 => Middlebox::Strip(Strip {
            from: from[draw.below(from.len() as u64) as usize],
            options: [StrippedOptions::Mptcp, StrippedOptions::AddAddr, StrippedOptions::Control]
                [draw.below(3) as usize],
            after: if draw.chance(0.5) { 0 } else { draw.below(100) },
            direction,
        }),
        3 => Middlebox::RewriteSequence(RewriteSequence),
        4 => {
            let options = if draw.chance(0.5) { SplitOptions::Copied } else { SplitOptions::First };
            Middlebox::Split(Split { size: log(draw, 100, 1400) as u16, options, direction })
        }
        5 => {
            let wait = Duration::from_micros(log(draw, 10, 10_000));
            Middlebox::Coalesce(Coalesce { size: log(draw, 1000, 10_000) as u16, wait, direction })
        }
        6 => Middlebox::Nat(Nat { rebind: None, unmapped: Unmapped::Dropped }),
        _ => {
            Middlebox::DropSyn(DropSyn { option: if draw.chance(0.5) { SynOption::Capable } else { SynOption::Join } })
        }
    };
    let end = if draw.chance(0.5) { End::Client } else { End::Server };
    MiddleboxSpec { kind, end }
}

fn link(draw: &mut Stream) -> LinkConfig {
    let rate = Rate::from_bps(log(draw, 100_000, 10_000_000_000));
    let delay = Duration::from_micros(log(draw, 100, 2_000_000));
    let mut link = LinkConfig::new(rate, delay);
    link.queue = match draw.below(3) {
        0 => QueueLimit::Packets(log(draw, 2, 1000) as u32),
        1 => QueueLimit::Bytes(Bytes::new(log(draw, 3000, 1_000_000))),
        _ => QueueLimit::Bdp { factor: draw.unit() * 2.0, round_trip: delay * 2 },
    };
    link.loss = match draw.below(4) {
        0 => LossModel::Bernoulli { p: draw.unit() * 0.05 },
        1 => LossModel::GilbertElliott {
            p_good_bad: draw.unit() * 0.01,
            // A bad state counts in packets, not in time: one that could swallow fifteen lone retransmissions in a row
            // would end the connection as Linux does, and rightly.
            p_bad_good: 0.3 + draw.unit() * 0.7,
            loss_good: 0.0,
            loss_bad: draw.unit() * 0.8,
        },
        _ => LossModel::None,
    };
    if draw.chance(0.2) {
        link.jitter = delay.mul_f64(draw.unit());
        link.jitter_reorders = draw.chance(0.5);
    }
    if draw.chance(0.2) {
        link.reordering = Some(Reordering { probability: draw.unit() * 0.1, extra: delay.mul_f64(draw.unit() * 2.0) });
    }
    if draw.chance(0.2) {
        link.duplication = draw.unit() * 0.1;
    }
    if draw.chance(0.2) {
        link.corruption = draw.unit() * 0.05;
    }
    link
}

fn host(draw: &mut Stream) -> HostSpec {
    let profile = Profile::NAMES[draw.below(Profile::NAMES.len() as u64) as usize];
    let mut host = HostSpec::new(Profile::named(profile).unwrap(), policies(draw));
    // Under a scheduler that skips, coupled ACKs can lock a connection up (tests/stacks.rs).
    host.config.profile.coupled_acks = false;
    // Five files at once can keep a queue of a few packets full for as long as six SYNs last.
    host.config.profile.syn_retries = 10;
    host.config.multipath = draw.chance(0.9);
    host.config.send_buffer = Bytes::new(log(draw, 1460, 4 << 20));
    host.config.receive_buffer = Bytes::new(log(draw, 1460, 4 << 20));
    if draw.chance(0.3) {
        host.config.initial_receive_buffer = Some(Bytes::new(log(draw, 1, 1 << 18)));
    }
    host.config.checksum = draw.chance(0.3);
    host.config.max_subflows = 1 + draw.below(8) as usize;
    host
}

fn policies(draw: &mut Stream) -> Policies {
    Policies {
        scheduler: any(draw, SCHEDULERS),
        congestion: any(draw, CONGESTION),
        receive_window: any(draw, WINDOWS),
        ack_path: any(draw, ACK_PATHS),
        reinjection: any(draw, REINJECTIONS),
        ..Policies::default()
    }
}

/// Any of the table, with any parameters it accepts.
fn any<T: Kind + ?Sized>(draw: &mut Stream, table: &'static [Entry<T>]) -> Factory<T> {
    let entry = &table[draw.below(table.len() as u64) as usize];
    let mut given = BTreeMap::new();
    for parameter in entry.parameters {
        if draw.chance(0.5) {
            given.insert(parameter.name.to_owned(), value(draw, parameter.domain));
        }
    }
    let params = entry.params(&given).unwrap_or_else(|error| panic!("what is accepted is accepted: {error}"));
    Arc::new(move || entry.build(&params))
}

/// Something in the domain: near the default, anywhere, or at its ends.
fn value(draw: &mut Stream, domain: Domain) -> Value {
    match domain {
        Domain::Number { default, min, max } => Value::Number(match draw.below(8) {
            0 => min,
            1 => max,
            2..5 => (default * [0.125, 0.25, 0.5, 2.0, 4.0, 8.0][draw.below(6) as usize]).clamp(min, max),
            _ => min + (max - min) * draw.unit(),
        }),
        Domain::Flag { .. } => Value::Flag(draw.chance(0.5)),
        // What a text means is its policy's own affair.
        Domain::Text { default, .. } => Value::Text(default.to_owned()),
    }
}

/// Another policy in the course of the run.
fn switch(draw: &mut Stream) -> TimedSwitch {
    let at = Duration::from_millis(log(draw, 1, 60_000));
    let host = [None, Some(Host::Client), Some(Host::Server)][draw.below(3) as usize];
    let switch = match draw.below(6) {
        0..2 => Switch::Scheduler(any(draw, SCHEDULERS)),
        2 => Switch::Congestion(any(draw, CONGESTION)),
        3 => Switch::ReceiveWindow(any(draw, WINDOWS)),
        4 => Switch::AckPath(any(draw, ACK_PATHS)),
        _ => Switch::Reinjection(any(draw, REINJECTIONS)),
    };
    TimedSwitch { at, host, switch }
}

fn workload(draw: &mut Stream) -> Workload {
    let direction = if draw.chance(0.7) { Direction::Down } else { Direction::Up };
    if draw.chance(0.2) {
        return Workload::Bursts {
            direction,
            size: Bytes::new(log(draw, 1, 100_000)),
            count: 1 + draw.below(5) as usize,
            interval: Duration::from_millis(log(draw, 1, 5000)),
            start: Duration::ZERO,
            warm_up: Bytes::new(draw.below(50_000)),
        };
    }
    let (least, most) = if draw.chance(0.3) { (1, 2000) } else { (10_000, 1_000_000) };
    let sizes = (0..1 + draw.below(5)).map(|_| Bytes::new(log(draw, least, most))).collect();
    let (concurrent, warm) = (draw.chance(0.5), draw.chance(0.5));
    let think = Duration::from_millis(draw.below(2000));
    Workload::Files { direction, sizes, order: order(concurrent, warm, think), start: Duration::ZERO }
}

/// Something happens to a path and ends again.
fn fault(draw: &mut Stream, paths: usize) -> Vec<TimedChange> {
    let path = format!("path{}", draw.below(paths as u64));
    let affected = [Affected::Both, Affected::Down, Affected::Up][draw.below(3) as usize];
    let at = Duration::from_millis(log(draw, 1, 110_000));
    let until = at + Duration::from_millis(log(draw, 1, 10_000));
    let notify = draw.chance(0.5);
    let change = |at, change| TimedChange { at, path: path.clone(), affected, change, notify };
    match draw.below(4) {
        0 => vec![change(at, Change::Down), change(until, Change::Up)],
        1 => vec![change(at, Change::Blackhole), change(until, Change::Restore)],
        2 => vec![change(at, Change::Rate(Rate::from_bps(log(draw, 100_000, 1_000_000_000))))],
        _ => vec![change(at, Change::Delay(Duration::from_micros(log(draw, 100, 2_000_000))))],
    }
}

/// A whole number between these two, every order of magnitude as likely as the next.
fn log(draw: &mut Stream, low: u64, high: u64) -> u64 {
    let octaves = (high / low).ilog2() + 1;
    let base = low << draw.below(u64::from(octaves));
    draw.between(base, (base * 2).min(high).max(base)).min(high)
}

/// Far more than the slowest run takes after its last fault \[s\]: 5 MB at 100 kbit/s take 400 s without loss.
const HORIZON: u64 = 20_000;
