//! Feedback of the receiver's state at the arrival of slow data into the distance that the slow subflow skips ahead.
//!
//! Our reconstruction (A-FEEDBACK) of the feedback that OCPS and DPSAF take from SACK, by means of MPTCP. One batch of
//! each slow subflow is watched at a time: the data that it sent at one instant, from DSN `D` to `E`. When the ACK of
//! its first segment comes,
//! ```text
//! early = (D - DATA_ACK)/mss   the gap before it was not filled when it arrived: N was too large
//! late  = segments from E on that faster subflows had had acknowledged before DATA_ACK passed D: N was too small
//! d := d - g·early + g·late    g = 1/2, |d| ≤ cwnd
//! ```
//! A timeout, or a subflow more or less, sets every `d` to zero; a batch whose subflow enters recovery is not judged.
//!
//! The state at the arrival of the slow ACK is not used: by then the connection's latest DATA_ACK and the faster
//! subflows' ACKs are half a round trip younger than the slow data's arrival, and `d` would grow without any fault of
//! `N`. So `early` takes the DATA_ACK that came with the slow ACK, and `late` stops counting when DATA_ACK passes `D`,
//! which every subflow's ACKs tell. Both hold whatever the two directions' delays.

use crate::{Event, SubflowView, View};
use anabranch_units::{Dsn, Instant, SubflowId};
use std::collections::VecDeque;

/// Corrections in segments, by subflow.
#[derive(Default)]
pub(super) struct Feedback {
    lines: Vec<Line>,
    /// Subflow whose next segment skipped ahead.
    asked: Option<SubflowId>,
}

/// One subflow.
struct Line {
    id: SubflowId,
    /// `d`, in segments.
    correction: f64,
    /// Value of [`SubflowView::sent`].
    sent: u64,
    /// Data in flight: the subflow offset behind each segment, and its first DSN.
    in_flight: VecDeque<(u64, Dsn)>,
    watched: Option<Batch>,
}

/// Data sent at one instant.
struct Batch {
    at: Instant,
    first: Dsn,
    end: Dsn,
    /// The subflow offset behind its first segment.
    first_end: u64,
    /// Segments from `end` on that other subflows have had acknowledged.
    overtook: u32,
    /// DATA_ACK has passed its first byte.
    passed: bool,
}

/// Share of the error that is corrected at once.
const GAIN: f64 = 0.5;
/// More segments in flight than this on one subflow are not followed.
const FOLLOWED: usize = 1 << 16;

impl Feedback {
    /// Returns the number of segments that `slow` is to skip further. Its next transmission is watched.
    pub(super) fn correction(&mut self, slow: &SubflowView) -> f64 {
        self.asked = Some(slow.id);
        self.lines.iter().find(|line| line.id == slow.id).map_or(0.0, |line| line.correction)
    }

    /// Takes the view; to be called before each decision.
    pub(super) fn look(&mut self, view: &View<'_>) {
        self.asked = None;
        self.lines.retain(|line| view.subflow(line.id).is_some());
        for subflow in view.subflows {
            let Some(at) = self.lines.iter().position(|line| line.id == subflow.id) else {
                self.lines.push(Line::new(subflow));
                continue;
            };
            self.lines[at].sent = subflow.sent;
            while let Some(dsn) = self.lines[at].acknowledged(subflow.acked) {
                for (other, line) in self.lines.iter_mut().enumerate() {
                    if let Some(batch) = &mut line.watched
                        && other != at
                        && !batch.passed
                        && !dsn.before(batch.end)
                    {
                        batch.overtook += 1;
                    }
                }
            }
        }
        for line in &mut self.lines {
            if let Some(batch) = &mut line.watched {
                batch.passed |= view.data_una.after(batch.first);
            }
            if let Some(subflow) = view.subflow(line.id) {
                line.judge(subflow);
            }
        }
    }

    /// Takes an event; to be called for each.
    pub(super) fn observe(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Sent { on, dsn, length, .. } => {
                let asked = self.asked.take() == Some(on);
                let Some(line) = self.lines.iter_mut().find(|line| line.id == on) else { return };
                line.sent += length.get();
                if line.in_flight.len() < FOLLOWED {
                    line.in_flight.push_back((line.sent, dsn));
                }
                let end = dsn + length.get();
                match &mut line.watched {
                    Some(batch) if batch.at == now && dsn == batch.end => batch.end = end,
                    None if asked => {
                        let (first, first_end) = (dsn, line.sent);
                        line.watched = Some(Batch { at: now, first, end, first_end, overtook: 0, passed: false });
                    }
                    _ => {}
                }
            }
            Event::FastRetransmit { on } => {
                self.lines.iter_mut().filter(|line| line.id == on).for_each(|line| line.watched = None);
            }
            Event::Rto { .. } | Event::SubflowsChanged => {
                for line in &mut self.lines {
                    (line.correction, line.watched) = (0.0, None);
                }
            }
            _ => {}
        }
    }
}

impl Line {
    fn new(subflow: &SubflowView) -> Self {
        let (id, sent) = (subflow.id, subflow.sent);
        Line { id, correction: 0.0, sent, in_flight: VecDeque::new(), watched: None }
    }

    /// The first DSN of the oldest segment in flight, if it is acknowledged: then it is not any more.
    fn acknowledged(&mut self, acked: u64) -> Option<Dsn> {
        let (_, dsn) = *self.in_flight.front().filter(|(end, _)| *end <= acked)?;
        self.in_flight.pop_front();
        Some(dsn)
    }

    /// Compares the watched batch with what was there when its first segment arrived, once its ACK tells.
    fn judge(&mut self, subflow: &SubflowView) {
        let (Some(batch), Some(data_acked)) = (&self.watched, subflow.data_acked) else { return };
        if subflow.acked < batch.first_end {
            return;
        }
        let early = batch.first.distance(data_acked).max(0) as f64 / subflow.mss.get().max(1) as f64;
        // Early data cannot be late: DATA_ACK passes it when the gap is filled.
        let late = if early > 0.0 { 0.0 } else { f64::from(batch.overtook) };
        let most = f64::from(subflow.cwnd_segments());
        self.correction = (self.correction + GAIN * (late - early)).clamp(-most, most);
        self.watched = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::Bytes;

    /// A slow subflow whose segments go where told, beside a fast one.
    struct Trial {
        feedback: Feedback,
        fast: SubflowView,
        slow: SubflowView,
        data_una: u64,
    }

    fn dsn(segments: u64) -> Dsn {
        Dsn::new(1 + 1000 * segments)
    }

    impl Trial {
        fn new() -> Self {
            let (fast, slow) = (subflow(FAST, 10, 20, 0), subflow(SLOW, 100, 20, 0));
            Trial { feedback: Feedback::default(), fast, slow, data_una: 0 }
        }

        /// The slow one's correction.
        fn look(&mut self) -> f64 {
            let subflows = [self.fast, self.slow];
            self.feedback.look(&View { data_una: dsn(self.data_una), ..view(&subflows, 100) });
            self.feedback.correction(&self.slow)
        }

        /// Sends `n` segments from the `from`-th on.
        fn send(&mut self, ms: u64, on: SubflowId, from: u64, n: u64) {
            for segment in from..from + n {
                self.look();
                let sent = Event::Sent { on, dsn: dsn(segment), skip: Bytes::ZERO, length: segments(1) };
                self.feedback.observe(at(ms), &sent);
                let subflow = if on == FAST { &mut self.fast } else { &mut self.slow };
                subflow.sent += 1000;
            }
        }

        /// Acknowledges `n` segments of a subflow, with a DATA_ACK of `data_acked` segments.
        fn ack(&mut self, on: SubflowId, n: u64, data_acked: u64) -> f64 {
            let subflow = if on == FAST { &mut self.fast } else { &mut self.slow };
            (subflow.acked, subflow.data_acked) = (1000 * n, Some(dsn(data_acked)));
            self.data_una = self.data_una.max(data_acked);
            self.look()
        }
    }

    /// Segment 40 arrives when thirty are there: ten too early, although forty are there when its ACK comes.
    #[test]
    fn takes_off_half_of_what_was_too_early() {
        let mut trial = Trial::new();
        trial.send(0, FAST, 0, 40);
        trial.send(0, SLOW, 40, 1);
        assert_eq!(trial.ack(FAST, 40, 40), 0.0);
        assert_eq!(trial.ack(SLOW, 1, 30), -5.0);
        assert_eq!(trial.ack(SLOW, 1, 30), -5.0); // once
    }

    /// Segments 20 and 21 leave ahead of time. Ten of the fast one's from 22 on are acknowledged while they are
    /// missing, and then more, which do not count.
    #[test]
    fn adds_half_of_what_overtook_it() {
        let mut trial = Trial::new();
        trial.send(0, FAST, 0, 20);
        trial.send(0, SLOW, 20, 2);
        trial.send(1, FAST, 22, 20);
        trial.ack(FAST, 20, 20);
        trial.ack(FAST, 30, 20);
        assert_eq!(trial.ack(FAST, 35, 32), 0.0); // 20 and 21 have arrived; five more came with that ACK
        assert_eq!(trial.ack(FAST, 40, 42), 0.0);
        assert_eq!(trial.ack(SLOW, 1, 21), 7.5); // fifteen overtook it, half of them
    }

    #[test]
    fn just_in_time_is_neither() {
        let mut trial = Trial::new();
        trial.send(0, FAST, 0, 20);
        trial.send(0, SLOW, 20, 1);
        trial.ack(FAST, 20, 21);
        trial.send(1, FAST, 21, 20);
        trial.ack(FAST, 40, 41);
        assert_eq!(trial.ack(SLOW, 1, 21), 0.0);
    }

    #[test]
    fn one_batch_is_watched_at_a_time() {
        let mut trial = Trial::new();
        trial.send(0, SLOW, 40, 1);
        trial.send(5, SLOW, 44, 1);
        assert_eq!(trial.ack(SLOW, 1, 30), -5.0);
        assert_eq!(trial.ack(SLOW, 2, 30), -5.0); // the second was not watched
        trial.send(6, SLOW, 48, 1);
        assert_eq!(trial.ack(SLOW, 3, 47), -5.5);
    }

    #[test]
    fn stays_within_a_window_and_forgets_with_a_timeout() {
        let mut trial = Trial::new();
        trial.send(0, SLOW, 1000, 1);
        assert_eq!(trial.ack(SLOW, 1, 100), -20.0);
        trial.feedback.observe(at(1), &Event::FastRetransmit { on: SLOW });
        assert_eq!(trial.look(), -20.0);
        trial.feedback.observe(at(2), &Event::Rto { on: FAST });
        assert_eq!(trial.look(), 0.0);
    }

    #[test]
    fn subflows_that_are_gone_are_forgotten() {
        let mut trial = Trial::new();
        for id in 1..1000 {
            trial.slow.id = SubflowId(id);
            trial.look();
        }
        assert_eq!(trial.feedback.lines.len(), 2);
    }

    #[test]
    fn what_was_sent_again_is_not_judged() {
        let mut trial = Trial::new();
        trial.send(0, SLOW, 40, 1);
        trial.feedback.observe(at(1), &Event::FastRetransmit { on: SLOW });
        assert_eq!(trial.ack(SLOW, 1, 9), 0.0);
    }

    /// Without a DATA_ACK of its own, or when the engine chose the subflow, nothing is learnt.
    #[test]
    fn learns_only_from_what_it_decided_and_saw() {
        let mut trial = Trial::new();
        trial.send(0, SLOW, 40, 1);
        trial.slow.acked = 1000;
        assert_eq!(trial.look(), 0.0);
        let mut trial = Trial::new();
        trial.look();
        trial.feedback.asked = None;
        let event = Event::Sent { on: SLOW, dsn: dsn(40), skip: Bytes::ZERO, length: segments(1) };
        trial.feedback.observe(at(0), &event);
        assert_eq!(trial.ack(SLOW, 1, 0), 0.0);
    }
}
