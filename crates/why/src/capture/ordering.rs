//! Packets that overtake each other on a path, as captures at either end show them.

use super::answer::{Fault, FaultKind};
use super::mechanism::MANY;
use super::picture::{FlowPicture, NEVER, UNKNOWN};
use super::stream::Arrived;
use std::collections::BTreeMap;

/// Share of packets out of order, from which on senders take them for lost.
const OVERTAKEN: f64 = 0.005;

/// Finds packets that arrived after others which left later, and were not lost.
pub(crate) fn overtaken<'a>(flows: impl Iterator<Item = &'a FlowPicture>, side: usize, name: &str) -> Option<Fault> {
    let (mut late, mut all) = (0, 0);
    for flow in flows {
        let (sender, receiver) =
            if side == 0 { (flow.seen.own, flow.seen.other) } else { (flow.seen.other, flow.seen.own) };
        let (some, of) = if receiver { by_arrival(flow, side) } else { by_answers(flow, side) };
        // Between the hosts, neither departures nor arrivals are seen.
        if (sender || receiver) && !flow.between {
            (late, all) = (late + some, all + of);
        }
    }
    // A packet that is late is overtaken by many, each of which counts: what counts is how often the order breaks.
    (late >= MANY && late as f64 >= OVERTAKEN * all as f64).then(|| Fault {
        kind: FaultKind::Reordering,
        path: Some(name.to_owned()),
        text: format!("packets overtook each other ({late} of {all}), which senders take for losses"),
        remedy: Some(
            "Look for a link that spreads packets over several ways; RACK or a larger tcp_reordering bear more."
                .to_owned(),
        ),
    })
}

/// Packets that arrived before one that had left earlier; and all.
fn by_arrival(flow: &FlowPicture, side: usize) -> (u64, u64) {
    let (mut late, mut all, mut latest) = (0, 0, 0);
    for it in flow.packets[side].iter().filter(|it| it.length > 0 && it.arrived != NEVER) {
        all += 1;
        late += u64::from(it.arrived < latest);
        latest = latest.max(it.arrived);
    }
    (late, all)
}

/// Holes that close without a repeat, and repeats that arrived twice (DSACK, RFC 2883), as acknowledgments tell the
/// sender; and packets in all.
fn by_answers(flow: &FlowPicture, side: usize) -> (u64, u64) {
    let data = || flow.packets[side].iter().filter(|it| it.length > 0);
    let mut answers: Vec<_> =
        flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER && it.ack != UNKNOWN).collect();
    answers.sort_by_key(|it| it.arrived);
    // Ranges that were sent again, by their beginnings.
    let (mut sent, mut again) = (Arrived::from(1), BTreeMap::new());
    for it in data().filter(|it| !sent.insert(it.seq, it.end())) {
        let end = again.entry(it.seq).or_insert(it.end());
        *end = it.end().max(*end);
    }
    let repeated = |at: i64| again.range(..=at).next_back().is_some_and(|(_, end)| *end > at);
    let (mut late, mut acked, mut high, mut doubled) = (0, 1, 1, 0);
    for it in answers {
        if it.ack > acked {
            late += u64::from(high > acked && !repeated(acked));
            acked = it.ack;
        }
        if let Some((from, to)) = it.sack {
            // A repeat of the tail, or after a timeout, arrives twice where nothing had arrived beyond it.
            late += u64::from(to <= it.ack && from > doubled && high > to);
            doubled = if to <= it.ack { doubled.max(from) } else { doubled };
            high = high.max(to);
        }
    }
    (late, data().count() as u64)
}
