//! The application: what was written when, and whether it was asked for.

use super::super::picture::{FlowPicture, NEVER, UNKNOWN};
use super::super::stream::{Piece, Stream};
use super::estimate::{Estimate, bytes, time};
use crate::Confidence;

/// A piece of data that the application wrote at once, as far as packets show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Block {
    /// Time at which it was written, or at which it could first be sent \[ns\].
    at: u64,
    size: u64,
    /// Time at which the last of it left.
    left: u64,
    /// Time at which the last of it had arrived.
    arrived: u64,
    /// Time at which the peer asked for it.
    asked: Option<u64>,
}

/// Blocks of a request and its answer, at most.
const MOST: usize = 1000;
/// Share of the time that has to be pauses before they count.
const LEAST_PAUSED: f64 = 0.03;
/// Deviation from the mean, as a share of it, up to which sizes or times are alike.
const ALIKE: f64 = 0.2;

/// Returns the estimates of the workload. A pause counts from `pause` on \[ns\].
pub(super) fn work(flows: &[FlowPicture], side: usize, stream: &Stream, direction: &str, pause: u64) -> Vec<Estimate> {
    let mut blocks = blocks(flows, side, stream, pause);
    // A host that was busy for a moment is no pattern.
    let paused: u64 = blocks.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].arrived)).sum();
    if let (Some(first), Some(last)) = (blocks.first(), blocks.last())
        && blocks.iter().skip(1).all(|it| it.asked.is_none())
        && (paused as f64) < LEAST_PAUSED * (last.arrived.saturating_sub(first.at)) as f64
    {
        blocks = vec![Block {
            size: blocks.iter().map(|it| it.size).sum(),
            left: last.left,
            arrived: last.arrived,
            ..*first
        }];
    }
    let total: u64 = blocks.iter().map(|it| it.size).sum();
    let asked = blocks.iter().skip(1).filter(|it| it.asked.is_some()).count();
    let make =
        |key: &str, value: String, confidence, seen: String| Estimate::new("workload", key, value, confidence, seen);
    let kind = |kind: &str, confidence, seen: &str| make("kind", format!("\"{kind}\""), confidence, seen.to_owned());
    let mut estimates = Vec::new();
    if blocks.len() < 2 || blocks.len() > MOST {
        let (confidence, seen) = match blocks.len() {
            0 | 1 => (Confidence::High, "the data was sent without a pause of the application".to_owned()),
            many => (Confidence::Low, format!("{many} pieces with pauses, more than a scenario lists: as one")),
        };
        estimates.push(kind("files", confidence, &seen));
        estimates.push(make("size", bytes(total.max(1)), confidence, "payload, each byte once".to_owned()));
    } else if 2 * asked > blocks.len() - 1 {
        let sizes: Vec<String> = blocks.iter().map(|it| bytes(it.size.max(1))).collect();
        let seen = format!("{} pieces, {} of them after data from the other side", blocks.len(), asked + 1);
        estimates.push(kind("files", Confidence::High, &seen));
        estimates.push(make("warm", "true".to_owned(), Confidence::High, "all on one connection".to_owned()));
        estimates.push(make(
            "sizes",
            format!("[{}]", sizes.join(", ")),
            Confidence::High,
            "data between requests".to_owned(),
        ));
        let thinks: Vec<u64> =
            blocks.windows(2).filter_map(|pair| Some(pair[1].asked?.saturating_sub(pair[0].arrived))).collect();
        let (think, alike) = mean(&thinks);
        let confidence = if alike { Confidence::Medium } else { Confidence::Low };
        let seen = "mean time from the end of a piece to the next request".to_owned();
        estimates.push(make("think", time(think), confidence, seen));
    } else {
        estimates.extend(bursts(&blocks, &make, &kind));
    }
    estimates.push(make(
        "direction",
        format!("\"{direction}\""),
        Confidence::High,
        "the side that sent most data".to_owned(),
    ));
    estimates
}

/// Writing without being asked: the first piece is what `bursts` calls the warm-up, since it is sent at once.
fn bursts(
    blocks: &[Block],
    make: &dyn Fn(&str, String, Confidence, String) -> Estimate,
    kind: &dyn Fn(&str, Confidence, &str) -> Estimate,
) -> Vec<Estimate> {
    let sizes: Vec<u64> = blocks[1..].iter().map(|it| it.size).collect();
    let intervals: Vec<u64> = blocks.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
    let ((size, sizes_alike), (interval, times_alike)) = (mean(&sizes), mean(&intervals));
    let confidence = |alike: bool| if alike { Confidence::High } else { Confidence::Low };
    let words =
        |alike: bool, of: &str| if alike { format!("{of}, all alike") } else { format!("mean of {of}, which differ") };
    let seen = format!("{} pieces with pauses that nothing from the other side ends", blocks.len());
    vec![
        kind("bursts", confidence(sizes_alike && times_alike), &seen),
        make("warm-up", bytes(blocks[0].size), Confidence::High, "the first piece, sent at once".to_owned()),
        make(
            "size",
            bytes((size as u64).max(1)),
            confidence(sizes_alike),
            words(sizes_alike, "sizes of the further pieces"),
        ),
        make("count", sizes.len().to_string(), Confidence::High, "the further pieces".to_owned()),
        make(
            "interval",
            time(interval.max(1e6)),
            confidence(times_alike),
            words(times_alike, "times between beginnings"),
        ),
    ]
}

/// The mean, and whether all are near it.
fn mean(values: &[u64]) -> (f64, bool) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().map(|it| *it as f64).sum::<f64>() / n;
    let square = values.iter().map(|it| (*it as f64 - mean) * (*it as f64 - mean)).sum::<f64>() / n;
    (mean, square.sqrt() <= ALIKE * mean)
}

/// Joins pieces without a pause between them, and finds the request of each.
fn blocks(flows: &[FlowPicture], side: usize, stream: &Stream, pause: u64) -> Vec<Block> {
    let mut requests: Vec<(u64, u64)> = Vec::new();
    for flow in flows {
        let with_data = flow.packets[1 - side].iter().filter(|it| it.length > 0 && it.arrived != NEVER);
        requests.extend(with_data.map(|it| (it.arrived, it.sent)));
    }
    requests.sort_unstable();
    let (arrivals, acks) = (arrivals(flows, side), acks(flows, side));
    let mut blocks: Vec<Block> = Vec::new();
    let mut from = stream.begin;
    let mut next = 0;
    for Piece { at, end } in stream.pieces.iter().copied() {
        let size = (end - from).max(0).unsigned_abs();
        while stream.fresh.get(next).is_some_and(|fresh| fresh.high <= end) {
            next += 1;
        }
        let left = next.checked_sub(1).map_or(at, |last| stream.fresh[last].at);
        let reached = arrivals.partition_point(|(position, _)| *position < end);
        let arrived = arrivals.get(reached).map_or(left, |(_, at)| *at);
        match blocks.last_mut() {
            // An application that waits for room writes as soon as something is acknowledged: only where all was, and
            // for a while, it had nothing to write.
            Some(last)
                if !asked_since(&requests, last, at)
                    && (at < last.left.saturating_add(pause) || at < silent(&acks, from).saturating_add(SILENCE)) =>
            {
                (last.size, last.left, last.arrived) = (last.size + size, left, arrived);
            }
            last => {
                let since = last.map_or(0, |last| last.left);
                let asked = latest(&requests, at).filter(|(came, _)| *came > since).map(|(_, sent)| sent);
                blocks.push(Block { at, size, left, arrived, asked });
            }
        }
        from = from.max(end);
    }
    blocks
}

/// The last request that had come at a time: when it came, and when it was sent.
fn latest(requests: &[(u64, u64)], at: u64) -> Option<(u64, u64)> {
    let index = requests.partition_point(|(came, _)| *came <= at);
    Some(requests[index.checked_sub(1)?])
}

/// True if the other side sent something once it had all of a block.
fn asked_since(requests: &[(u64, u64)], block: &Block, at: u64) -> bool {
    latest(requests, at).is_some_and(|(came, sent)| came > block.left && sent >= block.arrived)
}

/// Time without data, after all was acknowledged, that is the application's \[ns\].
const SILENCE: u64 = 5_000_000;

/// Time at which all below `position` was acknowledged; never, if that did not happen.
fn silent(acks: &[(i64, u64)], position: i64) -> u64 {
    let index = acks.partition_point(|(acked, _)| *acked < position);
    acks.get(index).map_or(u64::MAX, |(_, at)| *at)
}

/// Acknowledgments of data as they reach the sender, each beyond the one before.
fn acks(flows: &[FlowPicture], side: usize) -> Vec<(i64, u64)> {
    let came = flows.iter().flat_map(|flow| &flow.packets[1 - side]);
    let mut all: Vec<(u64, i64)> =
        came.filter(|it| it.arrived != NEVER && it.data_ack != UNKNOWN).map(|it| (it.arrived, it.data_ack)).collect();
    all.sort_unstable();
    let mut edges: Vec<(i64, u64)> = Vec::new();
    for (at, acked) in all {
        if edges.last().is_none_or(|(before, _)| acked > *before) {
            edges.push((acked, at));
        }
    }
    edges
}

/// Ends of the data without a hole, each with the time at which it was reached.
fn arrivals(flows: &[FlowPicture], side: usize) -> Vec<(i64, u64)> {
    let mut all: Vec<(u64, i64, i64)> = Vec::new();
    for flow in flows {
        let data = flow.packets[side].iter().filter(|it| it.length > 0 && it.arrived != NEVER && it.dsn != UNKNOWN);
        all.extend(data.map(|it| (it.arrived, it.dsn, it.dsn + it.length)));
    }
    all.sort_unstable();
    let begin = all.iter().map(|(_, from, _)| *from).min().unwrap_or(0);
    let mut arrived = super::super::stream::Arrived::from(begin);
    let mut edges = Vec::new();
    for (at, from, end) in all {
        let before = arrived.edge;
        arrived.insert(from, end);
        if arrived.edge > before {
            edges.push((arrived.edge, at));
        }
    }
    edges
}
