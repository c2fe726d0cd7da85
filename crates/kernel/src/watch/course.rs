//! Course of watched connections over time, in bounded memory: for each a row of intervals that grow with its length,
//! and samples of its data that are thinned as they become many.

use super::{Candidate, Event};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Courses of the connections that an account may be about: those that moved most.
#[derive(Debug, Default)]
pub struct Course {
    connections: BTreeMap<String, ConnectionCourse>,
    events: u64,
    dropped: u64,
}

/// Course of a connection. Times are seconds since the watch began, offsets bytes as [`Event`] has them.
#[derive(Debug)]
pub struct ConnectionCourse {
    /// Token, in hexadecimal digits.
    pub connection: String,
    /// Time of the first event.
    pub begin: f64,
    /// Time of the last event.
    pub end: f64,
    /// Length of an interval \[s\].
    pub width: f64,
    /// Intervals from `begin` on.
    pub intervals: Vec<Interval>,
    /// The subflows by their numbers, the first that of number 1.
    pub subflows: Vec<SubflowCourse>,
    /// New data.
    pub sent: Samples<Sample>,
    /// Data that were sent before on another subflow.
    pub again: Samples<Sample>,
    /// Acknowledged data: time and end.
    pub acked: Samples<(f64, i64)>,
    /// Decisions that no data followed, by their cause.
    pub waits: [u64; CAUSES],
    /// Decisions.
    pub decisions: u64,
    /// End of the data that were sent.
    sent_end: i64,
    /// End of the other host's window.
    window_end: Option<i64>,
}

/// Counts of a connection in an interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// Data acknowledged for the first time \[bytes\].
    pub acked: u64,
    /// Decisions that no data followed, by their cause.
    pub waits: [u32; CAUSES],
}

/// Course of a subflow.
#[derive(Debug, Default)]
pub struct SubflowCourse {
    /// Addresses and ports: this host's, and the other's.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Data given to it \[bytes\].
    pub sent: u64,
    /// Of these, data that were sent before on another subflow \[bytes\].
    pub again: u64,
    /// Data that arrived on it \[bytes\].
    pub arrived: u64,
    /// Times that the scheduler took it, as its rule gives.
    pub chosen: u64,
    /// Times that the scheduler took it against its rule.
    pub against: u64,
    /// Intervals, as many as its connection has or fewer.
    pub intervals: Vec<SubflowInterval>,
}

/// Counts of a subflow in an interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SubflowInterval {
    /// Data given to it \[bytes\].
    pub sent: u64,
    /// Of these, data that were sent before on another subflow \[bytes\].
    pub again: u64,
    /// Data that arrived on it \[bytes\].
    pub arrived: u64,
    /// Longest time in its queue at a look of the scheduler \[ms\].
    pub queued_ms: f32,
}

/// Data that a subflow was given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Time \[s\].
    pub time: f64,
    /// Offset of their end.
    pub end: i64,
    /// Number of the subflow; 0 if it is not known.
    pub subflow: u32,
}

/// Causes for which no data followed a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// No subflow could send.
    NoSubflow,
    /// The subflow of the rule had no room in its send buffer.
    Full,
    /// The other host's window was closed.
    Window,
    /// There was room, and the watch does not see what else.
    Unknown,
}

impl Cause {
    /// All, in the order in which counts of them stand.
    pub const ALL: [Cause; 4] = [Cause::NoSubflow, Cause::Full, Cause::Window, Cause::Unknown];
}

/// Number of causes.
const CAUSES: usize = Cause::ALL.len();

/// Every `every`th of many.
#[derive(Debug)]
pub struct Samples<T> {
    /// Those that are kept.
    pub kept: Vec<T>,
    /// One of so many is kept.
    pub every: u64,
    seen: u64,
}

/// Courses that are kept.
const MOST: usize = 128;
/// Intervals of a course at most.
const INTERVALS: usize = 512;
/// Subflows of a course at most.
const SUBFLOWS: usize = 16;
/// Samples of a kind at most.
const SAMPLES: usize = 4096;
/// The first length of an interval \[s\].
const SHORTEST: f64 = 0.01;
/// A connection that was silent for so long makes room first \[s\].
const SILENT: f64 = 5.0;

impl Course {
    /// Takes an event in.
    pub fn take(&mut self, event: &Event) {
        let Some((time, name)) = about(event) else { return };
        self.events += 1;
        if !self.connections.contains_key(name) {
            self.make_room(time);
            self.connections.insert(name.clone(), ConnectionCourse::new(name, time));
        }
        if let Some(connection) = self.connections.get_mut(name) {
            connection.take(time, event);
        }
    }

    /// Drops the course of a connection if there are too many: of those that are silent the one that moved least.
    fn make_room(&mut self, time: f64) {
        if self.connections.len() < MOST {
            return;
        }
        let order = |it: &ConnectionCourse| (it.end + SILENT > time, it.moved());
        let least = self.connections.values().min_by_key(|it| order(it)).map(|it| it.connection.clone());
        if let Some(least) = least {
            self.connections.remove(&least);
            self.dropped += 1;
        }
    }

    /// Courses, those that moved most in front.
    pub fn connections(&self) -> Vec<&ConnectionCourse> {
        let mut all: Vec<_> = self.connections.values().collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.moved()));
        all
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Courses that made room for others.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Time and connection of an event.
fn about(event: &Event) -> Option<(f64, &String)> {
    match event {
        Event::Subflow { time, connection, .. }
        | Event::Decision { time, connection, .. }
        | Event::Sent { time, connection, .. }
        | Event::DataAck { time, connection, .. }
        | Event::Mapping { time, connection, .. }
        | Event::MappingError { time, connection, .. } => Some((*time, connection)),
        Event::Summary { .. } => None,
    }
}

impl ConnectionCourse {
    fn new(name: &str, begin: f64) -> Self {
        ConnectionCourse {
            connection: name.to_owned(),
            begin,
            end: begin,
            width: SHORTEST,
            intervals: Vec::new(),
            subflows: Vec::new(),
            sent: Samples::default(),
            again: Samples::default(),
            acked: Samples::default(),
            waits: [0; CAUSES],
            decisions: 0,
            sent_end: 0,
            window_end: None,
        }
    }

    /// Data given to all subflows \[bytes\].
    pub fn given(&self) -> u64 {
        self.subflows.iter().map(|it| it.sent).sum()
    }

    /// Data that arrived on all subflows \[bytes\].
    pub fn arrived(&self) -> u64 {
        self.subflows.iter().map(|it| it.arrived).sum()
    }

    fn moved(&self) -> u64 {
        self.given() + self.arrived()
    }

    fn take(&mut self, time: f64, event: &Event) {
        self.end = self.end.max(time);
        let at = self.interval_of(time);
        match event {
            Event::Subflow { subflow, local, remote, .. } => {
                if let Some(it) = self.subflow(*subflow) {
                    it.ends = Some((*local, *remote));
                }
            }
            Event::Decision { chosen, expected, candidates, .. } => self.decide(at, *chosen, *expected, candidates),
            Event::Sent { subflow, offset, bytes, again, .. } => {
                let end = offset.saturating_add_unsigned(*bytes);
                self.sent_end = self.sent_end.max(end);
                let samples = if *again { &mut self.again } else { &mut self.sent };
                samples.add(Sample { time, end, subflow: subflow.unwrap_or(0) });
                if let Some(it) = subflow.and_then(|number| self.subflow(number)) {
                    it.sent += bytes;
                    it.again += if *again { *bytes } else { 0 };
                    let count = it.interval(at);
                    count.sent += bytes;
                    count.again += if *again { *bytes } else { 0 };
                }
            }
            Event::DataAck { offset, bytes, window, .. } => {
                self.window_end = Some(offset.saturating_add_unsigned(*window));
                self.intervals[at].acked += bytes;
                if *bytes > 0 {
                    self.acked.add((time, *offset));
                }
            }
            Event::Mapping { subflow, bytes, .. } => {
                if let Some(it) = self.subflow(*subflow) {
                    it.arrived += bytes;
                    it.interval(at).arrived += bytes;
                }
            }
            Event::MappingError { .. } | Event::Summary { .. } => {}
        }
    }

    /// A decision: the queues that the scheduler saw, and the cause if no data followed it.
    fn decide(&mut self, at: usize, chosen: Option<u32>, expected: Option<u32>, candidates: &[Candidate]) {
        self.decisions += 1;
        for candidate in candidates {
            if let Some((it, queued)) = self.subflow(candidate.subflow).zip(candidate.queued_ms) {
                let most = &mut it.interval(at).queued_ms;
                *most = most.max(queued as f32);
            }
        }
        if let Some(number) = chosen {
            if let Some(it) = self.subflow(number) {
                let count = if chosen == expected { &mut it.chosen } else { &mut it.against };
                *count += 1;
            }
            return;
        }
        let cause = match expected {
            _ if self.window_end.is_some_and(|end| self.sent_end >= end) => Cause::Window,
            Some(_) => Cause::Unknown,
            None if candidates.iter().any(|it| it.active && it.queued_ms.is_some()) => Cause::Full,
            None => Cause::NoSubflow,
        };
        self.waits[cause as usize] += 1;
        self.intervals[at].waits[cause as usize] += 1;
    }

    /// The subflow of a number; `None` beyond the number of those that are kept.
    fn subflow(&mut self, number: u32) -> Option<&mut SubflowCourse> {
        let index = (number as usize).checked_sub(1).filter(|index| *index < SUBFLOWS)?;
        if self.subflows.len() <= index {
            self.subflows.resize_with(index + 1, SubflowCourse::default);
        }
        self.subflows.get_mut(index)
    }

    /// The interval of a time. All become twice as long until there are few enough.
    fn interval_of(&mut self, time: f64) -> usize {
        let place = |width: f64| ((time - self.begin).max(0.0) / width) as usize;
        let mut width = self.width;
        while place(width) >= INTERVALS {
            width *= 2.0;
            join(&mut self.intervals, Interval::and);
            self.subflows.iter_mut().for_each(|it| join(&mut it.intervals, SubflowInterval::and));
        }
        let at = place(width);
        self.width = width;
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, Interval::default());
        }
        at
    }
}

impl SubflowCourse {
    fn interval(&mut self, at: usize) -> &mut SubflowInterval {
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, SubflowInterval::default());
        }
        &mut self.intervals[at]
    }
}

impl Interval {
    fn and(self, other: Self) -> Self {
        let mut waits = self.waits;
        waits.iter_mut().zip(other.waits).for_each(|(one, other)| *one += other);
        Interval { acked: self.acked + other.acked, waits }
    }
}

impl SubflowInterval {
    fn and(self, other: Self) -> Self {
        SubflowInterval {
            sent: self.sent + other.sent,
            again: self.again + other.again,
            arrived: self.arrived + other.arrived,
            queued_ms: self.queued_ms.max(other.queued_ms),
        }
    }
}

/// Joins each two intervals.
fn join<T: Copy>(all: &mut Vec<T>, and: fn(T, T) -> T) {
    *all = all.chunks(2).map(|pair| pair.iter().copied().reduce(and)).map_while(|it| it).collect();
}

impl<T> Default for Samples<T> {
    fn default() -> Self {
        Samples { kept: Vec::new(), every: 1, seen: 0 }
    }
}

impl<T> Samples<T> {
    fn add(&mut self, sample: T) {
        let is_kept = self.seen.is_multiple_of(self.every);
        self.seen += 1;
        if !is_kept {
            return;
        }
        if self.kept.len() >= SAMPLES {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every *= 2;
            // The one at hand belongs between those that went.
            if !(self.seen - 1).is_multiple_of(self.every) {
                return;
            }
        }
        self.kept.push(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(time: f64, connection: &str, subflow: u32, offset: i64, bytes: u64) -> Event {
        let connection = connection.to_owned();
        Event::Sent { time, connection, subflow: Some(subflow), offset, bytes, again: false }
    }

    fn candidate(active: bool, free: bool) -> Candidate {
        Candidate {
            subflow: 1,
            active,
            backup: false,
            free,
            stale: false,
            pacing_mbit_s: None,
            queued: 0,
            queued_ms: Some(4.0),
            cwnd: 10,
            srtt_ms: 20.0,
        }
    }

    fn decision(chosen: Option<u32>, expected: Option<u32>, candidate: Candidate) -> Event {
        Event::Decision { time: 1.0, connection: "a".to_owned(), chosen, expected, candidates: vec![candidate] }
    }

    /// A day with a connection that never ends: counts stay whole, memory stays small.
    #[test]
    fn a_day_takes_as_much_memory_as_a_minute() {
        let mut course = Course::default();
        for second in 0..86_400u32 {
            let time = f64::from(second);
            course.take(&sent(time, "a", 1 + second % 2, i64::from(second) * 1000, 1000));
            let (connection, offset) = ("a".to_owned(), i64::from(second) * 1000);
            course.take(&Event::DataAck { time, connection, offset, bytes: 1000, window: 5000 });
        }
        let all = course.connections();
        let it = all[0];
        assert!(it.intervals.len() <= INTERVALS && it.intervals.len() > INTERVALS / 4, "{}", it.intervals.len());
        assert!(it.intervals.len() as f64 * it.width >= 86_399.0, "{}", it.width);
        assert_eq!(it.given(), 86_400_000);
        assert_eq!(it.intervals.iter().map(|it| it.acked).sum::<u64>(), 86_400_000);
        for subflow in &it.subflows {
            assert_eq!(
                (subflow.sent, subflow.intervals.iter().map(|it| it.sent).sum::<u64>()),
                (43_200_000, 43_200_000)
            );
        }
        let kept = &it.sent.kept;
        assert!(kept.len() <= SAMPLES && kept.len() >= SAMPLES / 2, "{}", kept.len());
        // Evenly over the whole time.
        assert!(kept.windows(2).all(|pair| pair[1].time - pair[0].time == it.sent.every as f64), "{}", it.sent.every);
    }

    /// The long transfer at the beginning outlives thousands of small ones; of those the last are kept.
    #[test]
    fn what_moved_most_is_kept() {
        let mut course = Course::default();
        course.take(&sent(0.0, "large", 1, 0, 1_000_000));
        for number in 0..5000u32 {
            course.take(&sent(10.0 + f64::from(number), &number.to_string(), 1, 0, 10));
        }
        let all = course.connections();
        assert_eq!((all.len(), all[0].connection.as_str(), course.dropped()), (MOST, "large", 5001 - MOST as u64));
        assert!(all.iter().any(|it| it.connection == "4999"));
    }

    #[test]
    fn decisions_without_data_have_a_cause() {
        let mut course = Course::default();
        course.take(&decision(Some(1), Some(1), candidate(true, true)));
        course.take(&decision(Some(1), None, candidate(true, false)));
        course.take(&decision(None, None, candidate(true, false)));
        course.take(&decision(None, None, candidate(false, true)));
        course.take(&decision(None, Some(1), candidate(true, true)));
        course.take(&sent(1.0, "a", 1, 0, 3000));
        let ack = |window| Event::DataAck { time: 1.0, connection: "a".to_owned(), offset: 1000, bytes: 1000, window };
        course.take(&ack(2000));
        course.take(&decision(None, Some(1), candidate(true, true)));
        course.take(&ack(2001));
        course.take(&decision(None, Some(1), candidate(true, true)));
        let all = course.connections();
        let by = |cause: Cause| all[0].waits[cause as usize];
        assert_eq!(
            (by(Cause::NoSubflow), by(Cause::Full), by(Cause::Window), by(Cause::Unknown), all[0].decisions),
            (1, 1, 1, 2, 7)
        );
        assert_eq!((all[0].subflows[0].chosen, all[0].subflows[0].against), (1, 1));
        assert_eq!(all[0].subflows[0].intervals[0].queued_ms, 4.0);
    }

    #[test]
    fn events_of_the_same_time_or_out_of_order_are_taken() {
        let mut course = Course::default();
        course.take(&sent(5.0, "a", 1, 0, 10));
        course.take(&sent(4.0, "a", 99, 10, 10));
        assert_eq!((course.connections()[0].given(), course.events()), (10, 2));
    }
}
