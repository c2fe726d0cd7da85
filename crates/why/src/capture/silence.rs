//! Paths that go down, seen from the receiver's end: packets that are lost on the way do not show there.
//!
//! A scheduler that gives a path no more data leaves nothing behind. A path that goes down takes with it what was on
//! its way: a hole stays until another path brings the same bytes, and not even a repeat comes by the path itself.

use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
use super::stream::Arrived;
use anabranch_wire::Flags;

/// Silence in which a sender repeats what it has lost at least once on the same subflow \[ns\], beside round trips:
/// Linux's least timeout is 200 ms, and the next one twice as long.
const REPEATS: u64 = 600_000_000;

/// Times in which nothing came by a path of what `side` sent, though something was on its way: each from the last
/// packet that came, to the next.
pub(crate) fn silences(flows: &[FlowPicture], side: usize, path: usize) -> Vec<(u64, u64)> {
    let receives = |flow: &FlowPicture| match side {
        0 => !flow.seen.own && flow.seen.other,
        _ => flow.seen.own && !flow.seen.other,
    };
    if !flows.iter().all(receives) || flows.iter().all(|flow| flow.path == path) {
        return Vec::new();
    }
    let mut data: Vec<(u64, usize, &Packet)> = Vec::new();
    for flow in flows {
        let arrived = flow.packets[side].iter().filter(|it| it.arrived != NEVER && it.length > 0 && it.dsn != UNKNOWN);
        data.extend(arrived.map(|it| (it.arrived, flow.path, it)));
    }
    data.sort_by_key(|(at, ..)| *at);
    let rtt = flows.iter().filter(|flow| flow.path == path).map(|flow| flow.rtt).max().unwrap_or(0);
    let end = data.last().map_or(0, |(at, ..)| *at);
    // A path that never brought data may be one that large segments do not pass, or that nothing was given to.
    let Some(begun) = data.iter().find(|(_, on, _)| *on == path).map(|(at, ..)| *at) else { return Vec::new() };
    // Anything that comes by the path ends a silence, and a FIN or RST tells its reason.
    let mut came: Vec<(u64, bool)> = Vec::new();
    for flow in flows.iter().filter(|flow| flow.path == path) {
        let ends = |it: &Packet| it.is(Flags::FIN) || it.is(Flags::RST);
        came.extend(flow.packets[side].iter().map(|it| (it.arrived, ends(it))).filter(|(at, _)| *at != NEVER));
    }
    came.sort_unstable();
    let next = |index: usize| came.get(index + 1).map_or(NEVER, |(at, _)| *at);
    let silent = came.iter().enumerate().map(|(index, (at, ends))| (*at, next(index), *ends));
    let long = silent.filter(|(from, to, ends)| !ends && *from >= begun && (*to).min(end) > from + REPEATS + 2 * rtt);
    let brought = brought_by_others(&data, path, rtt);
    long.filter(|(from, to, _)| brought.iter().any(|(opened, closed)| is_within(*opened, *closed, (*from, *to), rtt)))
        .map(|(from, to, _)| (from, to))
        .collect()
}

/// A hole that opened about when the silence began, and closed within it.
fn is_within(opened: u64, closed: u64, (from, to): (u64, u64), rtt: u64) -> bool {
    opened + rtt >= from && opened <= from + 2 * rtt && closed > from && closed < to
}

/// Holes of the connection that other paths than `path` closed, after more than its round trip: when each was first
/// seen, and when it closed.
fn brought_by_others(data: &[(u64, usize, &Packet)], path: usize, rtt: u64) -> Vec<(u64, u64)> {
    let Some(first) = data.iter().map(|(.., it)| it.dsn).min() else { return Vec::new() };
    let mut arrived = Arrived::from(first);
    // Packets that came beyond the highest so far, by their ends.
    let mut high: Vec<(i64, u64)> = Vec::new();
    let mut closed = Vec::new();
    for (at, on, it) in data {
        let end = it.dsn + it.length;
        if !arrived.insert(it.dsn, end) {
            continue;
        }
        if high.last().is_none_or(|(highest, _)| end > *highest) {
            high.push((end, *at));
            continue;
        }
        let beyond = high.partition_point(|(highest, _)| *highest <= it.dsn);
        let opened = high.get(beyond).map_or(*at, |(_, at)| *at);
        if *on != path && at.saturating_sub(opened) > rtt {
            closed.push((opened, *at));
        }
    }
    closed
}
