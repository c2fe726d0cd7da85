//! Clocks of captures from several machines.
//!
//! A packet in two captures tells how far their clocks can be apart: it does not arrive before it leaves. Packets of
//! one direction bound the difference from above, those of the other from below, and the shortest round trip is what
//! lies between. Where no difference is possible none is taken; otherwise it is the middle, as if the shortest delays
//! were the same in both directions (RFC 5905 §8 takes the same from one round trip).

use anabranch_units::{Duration, Instant};
use anabranch_wire::FlowKey;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A packet in a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Number over everything that stays as it is on the way.
    pub print: u64,
    pub flow: FlowKey,
    pub at: Instant,
}

/// The difference of two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Difference {
    /// Time that the second clock is ahead of the first \[ns\].
    pub ahead: i64,
    /// The truth is no further from that.
    pub within: Duration,
}

/// Compares the clocks of two captures. `None` if they have not enough packets in common.
pub(crate) fn compare(first: &[Seen], second: &[Seen]) -> Option<Difference> {
    let (first, second) = (single(first), single(second));
    let mut flows: HashMap<FlowKey, [Range; 2]> = HashMap::new();
    for (print, seen) in &first {
        let Some(again) = second.get(print).filter(|again| again.flow == seen.flow) else { continue };
        let back = seen.flow.reversed();
        let (key, side) = if seen.flow < back { (seen.flow, 0) } else { (back, 1) };
        let later = (again.at.as_nanos() as i64).saturating_sub(seen.at.as_nanos() as i64);
        flows.entry(key).or_default()[side].add(later);
    }
    let bounds = flows.values().filter_map(|[forth, back]| bounds(*forth, *back));
    let (lower, upper) = bounds.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1))).filter(|(lower, upper)| lower <= upper)?;
    let within = Duration::from_nanos(upper.abs_diff(lower).div_ceil(2));
    let ahead = if lower <= 0 && upper >= 0 { 0 } else { lower.midpoint(upper) };
    Some(Difference { ahead, within })
}

/// Packets of a capture that it has once.
fn single(packets: &[Seen]) -> HashMap<u64, &Seen> {
    let mut found: HashMap<u64, Option<&Seen>> = HashMap::with_capacity(packets.len());
    for packet in packets {
        match found.entry(packet.print) {
            Entry::Vacant(place) => _ = place.insert(Some(packet)),
            Entry::Occupied(mut place) => *place.get_mut() = None,
        }
    }
    found.into_iter().filter_map(|(print, packet)| Some((print, packet?))).collect()
}

/// Smallest and largest time from the first capture to the second, of one direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    ends: Option<(i64, i64)>,
}

impl Range {
    fn add(&mut self, later: i64) {
        let (least, most) = self.ends.unwrap_or((later, later));
        self.ends = Some((least.min(later), most.max(later)));
    }
}

/// Bounds of the second clock's lead, from the two directions of a flow: those that go to the second capture seem late
/// by it, those that come from there early. `None` if the flow shows neither, as when a clock was set in between.
fn bounds(forth: Range, back: Range) -> Option<(i64, i64)> {
    let (forth, back) = (forth.ends?, back.ends?);
    if back.1 <= forth.0 { Some((back.1, forth.0)) } else { (forth.1 <= back.0).then_some((forth.1, back.0)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MS: i64 = 1_000_000;

    /// Round trips at distances of 7 ms, seen at both ends: port, delay there and back \[ns\]. The clock of the second
    /// capture is ahead.
    fn captures(trips: &[(u16, i64, i64)], ahead: i64) -> [Vec<Seen>; 2] {
        let mut captures = [Vec::new(), Vec::new()];
        for (index, (port, there, back)) in trips.iter().enumerate() {
            let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
            let (flow, from) =
                (FlowKey { src_port: *port, dst_port: 80, src, dst }, 1_000_000 * MS + index as i64 * 7 * MS);
            let times = [(flow, from, from + there), (flow.reversed(), from + there + back, from + there)];
            for (number, (flow, first, second)) in times.into_iter().enumerate() {
                let print = (index * 2 + number) as u64;
                for (capture, at) in captures.iter_mut().zip([first, second + ahead]) {
                    capture.push(Seen { print, flow, at: Instant::from_nanos(at as u64) });
                }
            }
        }
        captures
    }

    /// Lead and uncertainty \[ms\], the same whichever capture is first.
    fn found(trips: &[(u16, i64, i64)], ahead: i64) -> Option<(i64, i64)> {
        let [first, second] = captures(trips, ahead);
        let [there, back] = [compare(&first, &second), compare(&second, &first)];
        assert_eq!(there.map(|it| (-it.ahead, it.within)), back.map(|it| (it.ahead, it.within)));
        there.map(|it| (it.ahead / MS, it.within.as_nanos() as i64 / MS))
    }

    /// The shortest delays of all flows count: 10 ms there, 20 ms back, so that a lead of 2 s looks like 1.995 s. One
    /// of 5 ms is possible without any difference.
    #[test]
    fn a_difference_is_found_where_there_must_be_one() {
        let trips = [(1, 10 * MS, 30 * MS), (2, 40 * MS, 20 * MS), (2, 50 * MS, 25 * MS)];
        for (ahead, found_ms) in
            [(0, 0), (5, 0), (-9, 0), (2000, 1995), (-2000, -2005), (30, 25), (-3_600_000, -3_600_005)]
        {
            assert_eq!(found(&trips, ahead * MS), Some((found_ms, 15)), "{ahead} ms");
        }
    }

    #[test]
    fn without_packets_in_common_in_both_directions_nothing_is_found() {
        let [first, second] = captures(&[(1, MS, MS), (1, MS, 2 * MS)], 50 * MS);
        let there = |it: &&Seen| it.flow.dst_port == 80;
        let one_way: Vec<Seen> = second.iter().filter(there).copied().collect();
        assert_eq!(compare(&first, &one_way), None);
        assert_eq!(compare(&first, &[]), None);
        let others: Vec<Seen> = second.iter().map(|seen| Seen { print: seen.print + 100, ..*seen }).collect();
        assert_eq!(compare(&first, &others), None);
        // What is seen twice in a capture tells nothing: it is not known which of the two it was.
        let twice: Vec<Seen> = first.iter().chain(&first).copied().collect();
        assert_eq!(compare(&twice, &second), None);
        assert!(compare(&first, &second).is_some());
    }

    /// A clock that was set during the capture has no one difference.
    #[test]
    fn a_clock_that_was_set_is_left_alone() {
        let [first, mut second] = captures(&[(1, MS, MS), (1, MS, MS)], 0);
        for seen in second.iter_mut().skip(2) {
            seen.at = Instant::from_nanos(seen.at.as_nanos() + 1000 * MS as u64);
        }
        assert_eq!(compare(&first, &second), None);
    }
}
