//! The rarer half of the draw: what takes longer, and what may rightly end a connection.

use super::{log, middlebox};
use crate::common::order;
use anabranch_engine::Keepalive;
use anabranch_net::{Change, LinkConfig, QueueLimit, Service};
use anabranch_paths::{
    AlterPayload, Direction, DropSyn, EarlyAck, End, Middlebox, MiddleboxSpec, MtuBlackhole, Nat, PathSpec, Split,
    SynOption, TimedChange, Unmapped,
};
use anabranch_sim::{Arrivals, FileOrder, Host, Spec, TimedRestart, Workload};
use anabranch_units::{Bytes, Duration, Rate, Seed, Stream};

/// Deepens a run, from streams of its own, so that all else is what it was.
pub fn deepen(spec: &mut Spec, seed: Seed) {
    let draw = &mut seed.stream("swarm/deep");
    if draw.chance(0.1) {
        more_paths(draw, spec);
    }
    if draw.chance(0.03) {
        long_and_fat(draw, spec);
    }
    if draw.chance(0.4) {
        spec.workloads.extend((0..1 + draw.below(2)).map(|_| exchange(draw)));
    }
    if draw.chance(0.1) {
        spec.workloads.push(more_files(draw));
        // Twenty handshakes at once, in step, and the data of those that are through: a queue of two packets may be
        // full for as long as eleven SYNs last.
        (spec.client.config.profile.syn_retries, spec.server.config.profile.syn_retries) = (20, 20);
    }
    let harm = &mut seed.stream("swarm/harm");
    if harm.chance(0.2) {
        let path = harm.below(spec.network.paths.len() as u64) as usize;
        let kind = harmful(harm);
        let end = if harm.chance(0.5) { End::Client } else { End::Server };
        spec.network.paths[path].middleboxes.push(MiddleboxSpec { kind, end });
    }
    if harm.chance(0.1) {
        spec.restarts = (0..1 + harm.below(2)).map(|_| restart(harm)).collect();
        // Work that finds the host as it is after that.
        let mut later = exchange(harm);
        if let Workload::Exchange { start, .. } = &mut later {
            *start = Duration::from_secs(200);
        }
        spec.workloads.push(later);
    }
    if harm.chance(0.3) {
        (spec.client.config.black_hole_timeouts, spec.server.config.black_hole_timeouts) = (Some(3), Some(3));
    }
    // A host that only listens must not wait for ever for a peer that has forgotten it.
    let idle = Some(Duration::from_secs(300));
    let keepalive = Keepalive { idle, interval: Duration::from_secs(100), ..Keepalive::default() };
    (spec.client.config.keepalive, spec.server.config.keepalive) = (keepalive, keepalive);
}

/// The run may end otherwise than with all data delivered: a host forgets, or the path that every connection begins on
/// has a box that can be the end of it, or is lost for good while another path has one. All ends are clear all the
/// same.
#[allow(dead_code)] // For the swarm alone.
pub fn may_fail(spec: &Spec) -> bool {
    let fatal = |spec: &MiddleboxSpec| match spec.kind {
        Middlebox::Nat(nat) => nat.rebind.is_some(),
        // It repeats nothing, so what the path loses behind it is lost as well.
        Middlebox::EarlyAck(_) | Middlebox::MtuBlackhole(_) | Middlebox::AlterPayload(_) => true,
        _ => false,
    };
    let paths = &spec.network.paths;
    let first = &paths[spec.network.primary];
    let others = || paths.iter().filter(|path| path.name != first.name);
    // Left once, because it is down, and never joined again: all depends on the others.
    let left = loses_for_good(spec, first) && others().any(|path| path.middleboxes.iter().any(fatal));
    !spec.restarts.is_empty() || first.middleboxes.iter().any(fatal) || left
}

/// A path that goes down, over which a box lets no subflow join.
fn loses_for_good(spec: &Spec, path: &PathSpec) -> bool {
    let refuses = |it: &MiddleboxSpec| matches!(it.kind, Middlebox::DropSyn(DropSyn { option: SynOption::Join }));
    let down = |it: &TimedChange| it.path == path.name && matches!(it.change, Change::Down | Change::Blackhole);
    path.middleboxes.iter().any(refuses) && spec.network.changes.iter().any(down)
}

/// An application may wait for bytes that a box has cut out or lost, or for the end of a stream that a box has made
/// longer, as on plain TCP: a connection that is not closed stays. With checksums MPTCP notices, and ends it (`is_held`
/// in `swarm.rs`).
#[allow(dead_code)] // For the swarm alone.
pub fn may_starve(spec: &Spec) -> bool {
    let resizes =
        |it: &MiddleboxSpec| matches!(&it.kind, Middlebox::AlterPayload(alter) if alter.remove != alter.insert);
    spec.network.paths.iter().flat_map(|path| &path.middleboxes).any(resizes) || forgets(spec)
}

/// Every path has a box that loses what it has acknowledged, one segment in twenty or more. Each loss costs the
/// subflow, which is found out by timeouts at the data level, and what gets through between two of them may be a few
/// bytes in a minute.
fn forgets(spec: &Spec) -> bool {
    let forgetful = |it: &MiddleboxSpec| matches!(it.kind, Middlebox::EarlyAck(EarlyAck { lose: 1..=20, .. }));
    spec.network.paths.iter().all(|path| path.middleboxes.iter().any(forgetful))
}

/// All arrives, but in up to ten times the usual horizon.
pub fn may_crawl(spec: &Spec) -> bool {
    overflows(spec) || merges(spec) || crowds(spec) || repairs_singly(spec)
}

/// A host repeats one segment per signal of loss, as mptcp-ns3 does: where slow start overran a queue, each hole costs
/// a timeout, which has grown to a minute by then.
fn repairs_singly(spec: &Spec) -> bool {
    let fills = spec.network.changes.iter().any(|it| matches!(it.change, Change::Rate(_)));
    fills && [&spec.client, &spec.server].iter().any(|host| host.config.profile.single_repair)
}

/// All subflows share a link whose queue holds fewer full packets than there are subflows. What makes one of them send
/// makes the others, whose timeouts have become alike: most of what comes at once is lost, again and again.
fn crowds(spec: &Spec) -> bool {
    const FULL_PACKET: u64 = 1500;
    let subflows = (spec.network.paths.len() * spec.server.addresses)
        .min(spec.client.config.max_subflows)
        .min(spec.server.config.max_subflows);
    let room = |link: &LinkConfig| match (&link.queue, &link.service) {
        (QueueLimit::Packets(most), _) => u64::from(*most),
        (QueueLimit::Bytes(most), _) => most.get() / FULL_PACKET,
        (QueueLimit::Bdp { factor, round_trip }, Service::Rate(rate)) => {
            (factor * rate.bytes_in(*round_trip).as_f64()) as u64 / FULL_PACKET
        }
        (QueueLimit::Time(span), Service::Rate(rate)) => rate.bytes_in(*span).get() / FULL_PACKET,
        (QueueLimit::Bdp { .. } | QueueLimit::Time(_), Service::Trace(_)) => u64::MAX,
    };
    let mut links = spec.network.shared.iter().flat_map(|link| [&link.down, &link.up]);
    links.any(|link| room(link) < subflows as u64)
}

/// Every path has a box that merges segments, and so takes all mappings but the first from what is sent at once. Where
/// plain TCP is no way out any more each subflow then brings one segment and is reset (RFC 8684 §3.7), and the next is
/// joined after a second.
fn merges(spec: &Spec) -> bool {
    let merging = |it: &MiddleboxSpec| matches!(it.kind, Middlebox::Coalesce(_));
    spec.network.paths.iter().all(|path| path.middleboxes.iter().any(merging))
}

/// A box cuts each segment into more pieces than a queue behind it holds. The sender loses all but a few of them each
/// time, and repeats the rest after one timeout after the other (RFC 6298 §5.4).
fn overflows(spec: &Spec) -> bool {
    const LARGEST: u64 = 1460;
    let splits = |it: &MiddleboxSpec, queue: &QueueLimit| match (&it.kind, queue) {
        (Middlebox::Split(Split { size, .. }), QueueLimit::Packets(most)) => {
            LARGEST.div_ceil(u64::from(*size)) > u64::from(*most)
        }
        _ => false,
    };
    let crawls = |path: &PathSpec| {
        let queues = [&path.down.queue, &path.up.queue];
        path.middleboxes.iter().any(|it| queues.iter().any(|queue| splits(it, queue)))
    };
    spec.network.paths.iter().any(crawls)
}

/// A box alters what applications write.
#[allow(dead_code)] // For the swarm alone.
pub fn alters(spec: &Spec) -> bool {
    let altering = |it: &MiddleboxSpec| matches!(it.kind, Middlebox::AlterPayload(_));
    spec.network.paths.iter().flat_map(|path| &path.middleboxes).any(altering)
}

fn more_paths(draw: &mut Stream, spec: &mut Spec) {
    let total = 4 + draw.below(5) as usize;
    while spec.network.paths.len() < total {
        let mut path = super::path(draw, spec.network.paths.len());
        path.via.clone_from(&spec.network.paths[0].via);
        spec.network.paths.push(path);
    }
    spec.server.addresses = 1 + draw.below(3) as usize;
    (spec.client.config.max_subflows, spec.server.config.max_subflows) =
        (1 + draw.below(16) as usize, 1 + draw.below(16) as usize);
}

/// High bandwidth-delay products, with buffers to match, and files that need them.
fn long_and_fat(draw: &mut Stream, spec: &mut Spec) {
    for path in &mut spec.network.paths {
        let rate = Rate::from_bps(log(draw, 100_000_000, 10_000_000_000));
        let delay = Duration::from_millis(log(draw, 10, 300));
        path.nic = None;
        for link in [&mut path.down, &mut path.up] {
            link.service = rate.into();
            link.delay = delay;
            link.queue = QueueLimit::Bdp { factor: 0.5 + draw.unit(), round_trip: delay * 2 };
        }
    }
    spec.network.shared.clear();
    spec.network.paths.iter_mut().for_each(|path| path.via = None);
    for host in [&mut spec.client, &mut spec.server] {
        host.config.send_buffer = Bytes::new(log(draw, 4 << 20, 64 << 20));
        host.config.receive_buffer = Bytes::new(log(draw, 4 << 20, 64 << 20));
    }
    let direction = way(draw);
    let size = Bytes::new(log(draw, 2_000_000, 20_000_000));
    spec.workloads = vec![Workload::Files {
        direction,
        sizes: vec![size],
        order: FileOrder::AtOnce(Arrivals::default()),
        start: Duration::ZERO,
    }];
}

fn exchange(draw: &mut Stream) -> Workload {
    let mut size = || Bytes::new(log(draw, 1, 500_000));
    let (down, up) = (size(), size());
    let (start, pause) = (Duration::from_millis(draw.below(10_000)), Duration::from_millis(draw.below(1000)));
    Workload::Exchange { down, up, start, pause }
}

fn more_files(draw: &mut Stream) -> Workload {
    let count = 1 + draw.below(20);
    let direction = way(draw);
    let sizes = (0..count).map(|_| Bytes::new(log(draw, 1, 4_000_000 / count))).collect();
    let (concurrent, warm) = (draw.chance(0.5), draw.chance(0.5));
    let start = Duration::from_millis(draw.below(5000));
    Workload::Files { direction, sizes, order: order(concurrent, warm, Duration::from_millis(draw.below(500))), start }
}

fn way(draw: &mut Stream) -> Direction {
    if draw.chance(0.5) { Direction::Down } else { Direction::Up }
}

/// A box that a connection over another path survives, and one over this alone may not.
fn harmful(draw: &mut Stream) -> Middlebox {
    let direction = [None, Some(Direction::Down), Some(Direction::Up)][draw.below(3) as usize];
    let at = Duration::from_millis(log(draw, 1, 20_000));
    match draw.below(5) {
        0 => Middlebox::Nat(Nat {
            rebind: Some(at),
            unmapped: if draw.chance(0.5) { Unmapped::Dropped } else { Unmapped::Reset },
        }),
        1 => Middlebox::AlterPayload(AlterPayload {
            offset: log(draw, 1, 200_000) as u32,
            remove: draw.below(20) as u16,
            insert: 1 + draw.below(20) as u16,
            direction,
        }),
        2 => Middlebox::EarlyAck(EarlyAck {
            delay: Duration::from_micros(log(draw, 10, 1_000_000)),
            lose: if draw.chance(0.5) { 0 } else { log(draw, 2, 1000) as u32 },
            direction,
        }),
        3 => Middlebox::MtuBlackhole(MtuBlackhole {
            size: log(draw, 100, 1500) as u16,
            from: if draw.chance(0.5) { Duration::ZERO } else { at },
            direction,
        }),
        _ => middlebox(draw).kind,
    }
}

fn restart(draw: &mut Stream) -> TimedRestart {
    let host = if draw.chance(0.5) { Host::Client } else { Host::Server };
    TimedRestart { at: Duration::from_millis(log(draw, 1, 100_000)), host }
}
