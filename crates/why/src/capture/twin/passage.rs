//! One direction of a path: what each packet found in the queue before it, and what became of it.
//!
//! A packet is in the queue from the time at which it left its host to that at which the link has sent it: its arrival
//! less the shortest delay. The number of earlier packets there, at the time at which it comes, is counted in packets,
//! so that it does not depend on the rate. A full queue shows as a number at which nearly all losses are; a loss with a
//! shorter queue before it has another cause.

use super::super::picture::{NEVER, Packet};
use std::collections::VecDeque;

/// A data packet, with the queue that it found.
#[derive(Clone, Copy, Debug)]
struct Found {
    backlog: usize,
    lost: bool,
}

/// Direction of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Passage {
    /// Data packets.
    pub packets: u64,
    /// Longest queue that a packet found, in packets; of a queue that was full that which lost packets found (median).
    pub longest: usize,
    /// True if the queue was full: packets were lost as it was longest.
    pub overflowed: bool,
    /// Packets that found room in the queue, and those of them that were lost.
    pub with_room: u64,
    pub lost_with_room: u64,
    /// Packets lost for want of room.
    pub lost_when_full: u64,
    /// Runs of packets lost one after the other in spite of room.
    pub runs: u64,
}

/// Share of packets that may find a longer queue by an error of time, where one end was seen.
const OUTLIERS: f64 = 0.01;
/// Losses are this many times as frequent in a full queue as elsewhere, and so frequent at least.
const MORE: f64 = 4.0;
const OFTEN: f64 = 0.05;
/// Likelihood, as a logarithm, by which a full queue has to explain losses better than chance.
const SURE: f64 = 8.0;

impl Passage {
    /// Looks at data packets in the order in which they left. `leaves` is the time at which the link has sent each.
    pub(super) fn of(data: &[&Packet], leaves: &[u64], exact: bool) -> Self {
        // What is on its way when the capture ends is not lost.
        let latest = data.iter().filter(|it| it.arrived != NEVER).map(|it| it.sent).max().unwrap_or(0);
        let mut queue: VecDeque<u64> = VecDeque::new();
        let mut found: Vec<Found> = Vec::new();
        for (it, leaves) in data.iter().zip(leaves) {
            while queue.front().is_some_and(|leaves| *leaves <= it.sent) {
                queue.pop_front();
            }
            let lost = it.arrived == NEVER;
            if !lost || it.sent < latest {
                found.push(Found { backlog: queue.len(), lost });
            }
            if !lost {
                queue.push_back(*leaves);
            }
        }
        Passage::count(&found, exact)
    }

    fn count(found: &[Found], exact: bool) -> Self {
        let mut sorted: Vec<usize> = found.iter().map(|it| it.backlog).collect();
        sorted.sort_unstable();
        let beyond = if exact { 0 } else { (sorted.len() as f64 * OUTLIERS) as usize };
        let longest = sorted.len().checked_sub(1 + beyond).map_or(0, |last| sorted[last]);
        let full = full(&sorted, found);
        let has_room = |it: &Found| full.is_none_or(|full| it.backlog < full);
        let mut passage = Passage { packets: found.len() as u64, longest, ..Passage::default() };
        let mut within = false;
        let mut when_full: Vec<usize> = Vec::new();
        for it in found {
            let chance = it.lost && has_room(it);
            passage.with_room += u64::from(has_room(it));
            passage.lost_with_room += u64::from(chance);
            passage.runs += u64::from(chance && !within);
            within = it.lost;
            if it.lost && !chance {
                when_full.push(it.backlog);
            }
        }
        // Times err, so that single packets seem to find a longer queue than there is room for.
        when_full.sort_unstable();
        passage.lost_when_full = when_full.len() as u64;
        passage.overflowed = full.is_some();
        passage.longest = when_full.get(when_full.len() / 2).copied().unwrap_or(longest);
        passage
    }

    /// Returns the mean number of packets in a row that are lost in spite of room.
    pub(super) fn run(&self) -> f64 {
        self.lost_with_room as f64 / self.runs.max(1) as f64
    }
}

/// The queue from which on losses are for want of room: a little below that, of all that lost packets found, which best
/// explains the losses by two rates, one below it and a higher one from it on. `None` if one rate explains them nearly
/// as well.
fn full(sorted: &[usize], found: &[Found]) -> Option<usize> {
    let mut lost: Vec<usize> = found.iter().filter(|it| it.lost).map(|it| it.backlog).collect();
    lost.sort_unstable();
    let likelihood = |lost: usize, all: usize| {
        let rate = lost as f64 / all.max(1) as f64;
        let part = |count: usize, rate: f64| if count == 0 { 0.0 } else { count as f64 * rate.ln() };
        part(lost, rate) + part(all - lost, 1.0 - rate)
    };
    let alone = likelihood(lost.len(), sorted.len());
    let mut best: Option<(f64, usize)> = None;
    for (below, backlog) in lost.iter().enumerate() {
        // The first of those that found as much.
        if below > 0 && lost[below - 1] == *backlog || *backlog < 2 {
            continue;
        }
        let room = sorted.partition_point(|it| it < backlog);
        let (lost_full, all_full) = (lost.len() - below, sorted.len() - room);
        let of = |lost: usize, all: usize| lost as f64 / all.max(1) as f64;
        let gain = likelihood(below, room) + likelihood(lost_full, all_full) - alone;
        let more = of(lost_full, all_full) > OFTEN.max(MORE * of(below, room));
        if lost_full >= 2 && more && gain > SURE && best.is_none_or(|(most, _)| gain > most) {
            best = Some((gain, *backlog));
        }
    }
    // The count errs by a few packets: what is lost right below is no chance.
    best.map(|(_, backlog)| (backlog * 9 / 10).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(found: &[(usize, bool)]) -> Passage {
        let found: Vec<Found> = found.iter().map(|(backlog, lost)| Found { backlog: *backlog, lost: *lost }).collect();
        Passage::count(&found, true)
    }

    /// 6 of 8 packets are lost at the end of a queue of 20, and one of 40 with room.
    #[test]
    fn a_full_queue_is_told_from_chance() {
        let mut found: Vec<(usize, bool)> = (0..40).map(|n| (n % 10, n == 7)).collect();
        found.extend([true, true, false, true, true, false, true, true].map(|lost| (20, lost)));
        let passage = of(&found);
        assert!(passage.overflowed);
        assert_eq!((passage.longest, passage.lost_when_full), (20, 6));
        assert_eq!((passage.with_room, passage.lost_with_room), (40, 1));
    }

    /// Losses that come whatever the queue are chance, and the queue was never seen full.
    #[test]
    fn losses_anywhere_leave_the_queue_open() {
        let found: Vec<(usize, bool)> = (0..200).map(|n| (n % 10, n % 23 == 0)).collect();
        let passage = of(&found);
        assert!(!passage.overflowed);
        assert_eq!((passage.longest, passage.lost_with_room), (9, 9));
        assert_eq!(passage.run(), 1.0);
    }

    /// Three packets in a row, then two.
    #[test]
    fn losses_in_a_row_are_one_run() {
        let lost = [0, 0, 1, 1, 1, 0, 0, 1, 1, 0];
        let found: Vec<(usize, bool)> = lost.iter().map(|lost| (0, *lost == 1)).collect();
        assert_eq!((of(&found).runs, of(&found).run()), (2, 2.5));
    }
}
