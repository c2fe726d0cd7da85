//! A send buffer that is full, as packets betray it from either end: whatever an acknowledgment makes room for is
//! written and sent at once, so that the last segment of each burst has a push, and ends as far beyond the
//! acknowledgment as the buffer is large.

use super::picture::UNKNOWN;
use super::stream::{Fresh, News};
use std::collections::BTreeMap;

/// No send buffer is smaller \[B\].
pub(crate) const LEAST_BUFFER: i64 = 2048;
/// Bursts that have to end at the edge of one buffer before it is no accident.
const MANY: usize = 16;
/// Share of the bursts that have to end there.
const MOST: f64 = 0.5;
/// Acknowledgments, one of which may have set a burst off where the sender was not captured.
const CANDIDATES: usize = 64;

/// First sendings of a direction, and what came from the peer meanwhile.
pub(crate) struct Bursts<'a> {
    pub fresh: &'a [Fresh],
    /// In the order of time.
    pub news: &'a [News],
    /// True if the sender was captured: the acknowledgment that set a burst off is then known.
    pub seen: bool,
    /// Shortest round trip \[ns\].
    pub rtt: u64,
    /// Time in which the sender reacts \[ns\].
    pub reaction: u64,
}

/// Data acknowledged up to a time, and the end of the peer's window then.
#[derive(Clone, Copy)]
struct Answered {
    at: u64,
    acked: i64,
    edge: i64,
}

impl Bursts<'_> {
    /// Tells for each first sending whether it fills the send buffer.
    pub(crate) fn fill(&self) -> Vec<bool> {
        let mut fills = vec![false; self.fresh.len()];
        let answered = self.answered();
        let ends: Vec<usize> = (0..self.fresh.len()).filter(|index| self.fresh[*index].pushed).collect();
        // Distances of the ends of bursts from what was acknowledged before them.
        let mut distances: BTreeMap<i64, usize> = BTreeMap::new();
        let mut of_ends: Vec<(usize, Vec<i64>)> = Vec::new();
        let largest = self.fresh.iter().map(Fresh::length).max().unwrap_or(0);
        for pair in ends.windows(2) {
            let [before, index] = [pair[0], pair[1]];
            // An application that writes pieces leaves a rest at the end of each, and waits until the last was taken.
            let waited = self.knows(&answered, self.fresh[before + 1].at, self.fresh[before].end);
            let is_rest = self.fresh[index].length() < largest;
            let found = match waited || is_rest {
                true => Vec::new(),
                false => self.distances(&answered, self.fresh[index]),
            };
            found.iter().for_each(|distance| *distances.entry(*distance).or_default() += 1);
            of_ends.push((index, found));
        }
        let Some((&size, &count)) = distances.iter().max_by_key(|(size, count)| (**count, **size)) else {
            return fills;
        };
        if count < MANY || (count as f64) < MOST * of_ends.len() as f64 {
            return fills;
        }
        for (index, found) in of_ends {
            fills[index] = found.contains(&size);
        }
        fills
    }

    /// True if the sender knew at this time that all before `end` had arrived.
    fn knows(&self, answered: &[Answered], at: u64, end: i64) -> bool {
        let rough = if self.seen { 0 } else { self.rtt / 8 };
        let last = answered.partition_point(|answer| answer.at <= at.saturating_add(rough));
        last.checked_sub(1).is_some_and(|last| answered[last].acked >= end)
    }

    fn answered(&self) -> Vec<Answered> {
        let mut answered = Vec::new();
        let (mut acked, mut edge) = (i64::MIN, i64::MIN);
        for news in self.news.iter().filter(|news| news.data_ack != UNKNOWN) {
            edge = edge.max(news.data_ack.saturating_add(news.window));
            if news.data_ack > acked {
                acked = news.data_ack;
                answered.push(Answered { at: news.at, acked, edge });
            }
        }
        answered
    }

    /// Distances from what was acknowledged, as far as the sender may have known it. Data at the edge of the peer's
    /// window has another reason to wait.
    fn distances(&self, answered: &[Answered], it: Fresh) -> Vec<i64> {
        let late = if self.seen { 0 } else { self.rtt / 2 };
        let last = answered.partition_point(|answer| answer.at <= it.at.saturating_add(late));
        let first = match self.seen {
            true => last.saturating_sub(1),
            false => {
                let soonest = answered.partition_point(|answer| answer.at.saturating_add(self.rtt) < it.at);
                soonest.max(last.saturating_sub(CANDIDATES))
            }
        };
        let is_prompt = |answer: &&Answered| !self.seen || it.at <= answer.at + self.reaction;
        let candidates = answered[first..last].iter().filter(is_prompt);
        let waits = candidates.filter(|answer| it.end + LEAST_BUFFER <= answer.edge);
        waits.map(|answer| it.end - answer.acked).filter(|distance| *distance >= LEAST_BUFFER).collect()
    }
}
