//! The flight that each segment ended when it left, and the segments found lost: for congestion controls that model the
//! path (draft-ietf-ccwg-bbr, "Delivery Rate Sampling State Variables": `P.tx_in_flight`, `P.lost`, `C.lost`).
//!
//! Others do not pay for it: the notes stand in a ring of their own beside the records of the scoreboard, which is
//! there only once somebody has asked for them.

use super::sent::Sent;
use crate::ring::Ring;
use anabranch_policy::congestion::{Flight, LostSegment};
use anabranch_units::Bytes;

/// Lower halves of both numbers, in 8 bytes: a flight and what is lost of it are below 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    in_flight: u32,
    lost: u32,
}

/// Notes of all records of a scoreboard, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    notes: Ring<Note>,
    /// Sequence numbers found lost so far.
    lost: u64,
    /// Segments found lost since they were last taken.
    found: Vec<LostSegment>,
    /// The peer reports what arrives out of order.
    selective: bool,
}

impl Flights {
    /// Notes from now on; of the `records` that are under way already it is assumed that they left now.
    pub(super) fn new(records: usize, in_flight: u64, selective: bool) -> Self {
        let mut flights = Flights { selective, ..Flights::default() };
        (0..records).for_each(|_| flights.push(in_flight));
        flights
    }

    fn note(&self, in_flight: u64) -> Note {
        Note { in_flight: in_flight as u32, lost: self.lost as u32 }
    }

    /// Adds a record at the back, with which `in_flight` bytes are in flight.
    pub(super) fn push(&mut self, in_flight: u64) {
        self.notes.push_back(self.note(in_flight));
    }

    /// The first record leaves.
    pub(super) fn pop(&mut self) {
        self.notes.pop_front();
    }

    /// Gives memory back: nothing is under way.
    pub(super) fn release(&mut self) {
        self.notes.release();
    }

    /// The record at `index` was sent again.
    pub(super) fn renew(&mut self, index: usize, in_flight: u64) {
        let note = self.note(in_flight);
        if let Some(old) = self.notes.get_mut(index) {
            *old = note;
        }
    }

    /// The flight of the record at `index`, as it looks now.
    pub(super) fn get(&self, index: usize) -> Option<Flight> {
        let note = self.notes.get(index)?;
        let lost_since = u64::from((self.lost as u32).wrapping_sub(note.lost));
        Some(Flight {
            at_departure: Bytes::new(note.in_flight.into()),
            lost_since: Bytes::new(lost_since),
            selective: self.selective,
        })
    }

    /// Bytes lost since `flight` was read, added to it.
    pub(super) fn since(&self, (mut flight, lost): (Flight, u64)) -> Flight {
        flight.lost_since += Bytes::new(self.lost - lost);
        flight
    }

    /// Sequence numbers found lost so far (`C.lost`).
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// A copy of the record at `index` is lost.
    pub(super) fn lose(&mut self, index: usize, sent: &Sent) {
        let bytes = sent.end() - sent.start;
        self.lost += bytes;
        if let Some(flight) = self.get(index) {
            let (app_limited, bytes) = (sent.departure().1, Bytes::new(bytes));
            self.found.push(LostSegment { start: sent.start, bytes, flight, app_limited, delivered: 0 });
        }
    }

    /// Takes the segments found lost since the last time, of `delivered` bytes by now.
    pub(super) fn take_found(&mut self, delivered: u64) -> Vec<LostSegment> {
        let mut found = std::mem::take(&mut self.found);
        found.iter_mut().for_each(|lost| lost.delivered = delivered);
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::recovery::{AckIn, Config, Recovery};
    use crate::rtt::RttEstimator;
    use crate::{Detector, Profile};
    use anabranch_units::{Duration, Instant};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn recovery() -> Recovery {
        let config = Config {
            sack: true,
            rack: false,
            tlp: false,
            dup_threshold: 3,
            early_retransmit: false,
            single_repair: false,
            max_rto: Duration::from_secs(60),
        };
        Recovery::new(config, 1, Instant::ZERO)
    }

    /// Ten segments of 1000 bytes leave; the first and the third are lost, which the SACKs of the sixth and the rest
    /// show. Each loss is told with the flight that its segment ended and what was lost since it left.
    #[test]
    fn each_lost_segment_is_told_with_its_flight() {
        let rtt = RttEstimator::new(Profile::tcp().rto);
        let mut recovery = recovery();
        recovery.note_flights(true);
        for n in 0..10 {
            recovery.on_sent(at(n), 1000, 1000 * n, 0).expect("it has payload");
        }
        let sack = |recovery: &mut Recovery, blocks: &[(u64, u64)]| {
            let ack = AckIn { ack: 1, sack: blocks, dsack: None, is_duplicate: true, rtt_from_timestamp: None };
            recovery.on_ack(at(50), &ack, &rtt)
        };
        let flight = |out: crate::recovery::AckOut| {
            let flight = out.rate.and_then(|rate| rate.flight).expect("flights are noted");
            (flight.at_departure.get(), flight.lost_since.get())
        };
        assert_eq!(flight(sack(&mut recovery, &[(1001, 2001)])), (2000, 0));
        assert!(recovery.take_lost().is_empty());
        // Three segments above the first hole, and one more above the second.
        let out = sack(&mut recovery, &[(3001, 5001), (1001, 2001)]);
        assert_eq!((out.newly_lost_bytes, flight(out)), (1000, (5000, 1000)));
        let out = sack(&mut recovery, &[(3001, 6001), (1001, 2001)]);
        assert_eq!((out.newly_lost_bytes, flight(out)), (1000, (6000, 2000)));
        let told: Vec<_> = recovery
            .take_lost()
            .iter()
            .map(|lost| (lost.start, lost.bytes.get(), lost.flight.at_departure.get(), lost.flight.lost_since.get()))
            .collect();
        assert_eq!(told, [(1, 1000, 1000, 1000), (2001, 1000, 3000, 2000)]);
        assert_eq!(recovery.detector(), Detector::Sack);
        // Sent again with 4 segments in flight, and 2000 lost before: nothing since.
        recovery.on_retransmit(at(60), 1, &rtt);
        let ack =
            AckIn { ack: 2001, sack: &[(3001, 6001)], dsack: None, is_duplicate: false, rtt_from_timestamp: None };
        assert_eq!(flight(recovery.on_ack(at(110), &ack, &rtt)), (5000, 0));
    }

    /// A timeout loses what is under way: each segment is told once, and nothing where nobody asked.
    #[test]
    fn a_timeout_tells_of_each_segment() {
        let rtt = RttEstimator::new(Profile::tcp().rto);
        for asked in [true, false] {
            let mut recovery = recovery();
            recovery.note_flights(asked);
            for n in 0..3 {
                recovery.on_sent(at(0), 1000, 1000 * n, 0).expect("it has payload");
            }
            let due = recovery.deadline().expect("a timer runs");
            recovery.on_deadline(due, &rtt);
            let lost: Vec<_> = recovery.take_lost().iter().map(|lost| lost.flight.lost_since.get()).collect();
            assert_eq!(lost, if asked { vec![1000, 2000, 3000] } else { vec![] });
        }
    }

    /// Asked for while data is under way, it says what is in flight then.
    #[test]
    fn notes_may_begin_while_data_is_under_way() {
        let rtt = RttEstimator::new(Profile::tcp().rto);
        let mut recovery = recovery();
        for n in 0..4 {
            recovery.on_sent(at(0), 1000, 1000 * n, 0).expect("it has payload");
        }
        recovery.note_flights(true);
        let ack = AckIn { ack: 1001, sack: &[], dsack: None, is_duplicate: false, rtt_from_timestamp: None };
        let out = recovery.on_ack(at(40), &ack, &rtt);
        assert_eq!(out.rate.and_then(|rate| rate.flight).map(|flight| flight.at_departure.get()), Some(4000));
    }
}
