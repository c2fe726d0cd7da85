//! What the receiver had in order when data of a slow subflow arrived, fed back into how far that subflow skips ahead.
//!
//! The reference's reconstruction (section 3.14) of what OCPS and DPSAF learn from SACK, with what MPTCP can tell. The
//! ACK of a slow subflow carries the DATA_ACK of the moment when its data arrived. One batch of each slow subflow is watched
//! at a time: what it sent at one instant, from DSN `D` to `E`.
//! ```text
//! early = (D - DATA_ACK)/mss  at the ACK of its first segment: the gap before it was not filled yet, N was too large
//! late  = (DATA_ACK - E)/mss  at the ACK of its last one: later data stood waiting for it, N was too small
//! d := d - g·early + g·late    g = 1/2, |d| ≤ cwnd
//! ```
//! A timeout, or a subflow more or less, sets every `d` to zero; a batch whose subflow enters recovery is not judged.
//!
//! Where we differ from the reference: it compares with the connection's latest DATA_ACK and with what the faster subflows
//! have had acknowledged. By the time the slow ACK comes, those tell of half a round trip more, and `d` would grow without
//! any fault of `N`. The DATA_ACK on the slow subflow's own ACKs tells of the right moment, whatever the two directions'
//! delays are.

use crate::{Event, SubflowView, View};
use anabranch_units::{Dsn, Instant, SubflowId};

/// Corrections in segments, by subflow.
#[derive(Default)]
pub(super) struct Feedback {
    lines: Vec<Line>,
    /// Whose next segment is one that skipped ahead.
    asked: Option<SubflowId>,
}

/// One slow subflow.
struct Line {
    id: SubflowId,
    /// `d`, in segments.
    correction: f64,
    /// As [`SubflowView::sent`].
    sent: u64,
    watched: Option<Batch>,
}

/// What was sent at one instant.
struct Batch {
    at: Instant,
    /// Its first byte, and the subflow offset behind its first segment.
    first: (Dsn, u64),
    /// Its end, and the subflow offset behind it.
    end: (Dsn, u64),
    /// Its first segment was not early.
    first_judged: bool,
}

/// How much of the error is corrected at once.
const GAIN: f64 = 0.5;

impl Feedback {
    /// By how many segments `slow` is to skip further. What it sends next is watched.
    pub(super) fn correction(&mut self, slow: &SubflowView) -> f64 {
        self.asked = Some(slow.id);
        match self.lines.iter().find(|line| line.id == slow.id) {
            Some(line) => line.correction,
            None => {
                self.lines.push(Line { id: slow.id, correction: 0.0, sent: slow.sent, watched: None });
                0.0
            }
        }
    }

    /// To be told before each decision.
    pub(super) fn look(&mut self, view: &View<'_>) {
        self.asked = None;
        for line in &mut self.lines {
            if let Some(subflow) = view.subflow(line.id) {
                line.sent = subflow.sent;
                line.judge(subflow);
            }
        }
    }

    /// To be told of each event.
    pub(super) fn observe(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Sent { on, dsn, length, .. } => {
                let asked = self.asked.take() == Some(on);
                let Some(line) = self.lines.iter_mut().find(|line| line.id == on) else { return };
                line.sent += length.get();
                let end = (dsn + length.get(), line.sent);
                match &mut line.watched {
                    Some(batch) if batch.at == now && dsn == batch.end.0 => batch.end = end,
                    None if asked => {
                        line.watched = Some(Batch { at: now, first: (dsn, line.sent), end, first_judged: false });
                    }
                    _ => {}
                }
            }
            Event::FastRetransmit { on } => {
                self.lines.iter_mut().filter(|line| line.id == on).for_each(|line| line.watched = None);
            }
            Event::Rto { .. } | Event::SubflowsChanged => self.lines.clear(),
            _ => {}
        }
    }
}

impl Line {
    /// Compares the watched batch with what the subflow's ACKs say.
    fn judge(&mut self, subflow: &SubflowView) {
        let (Some(batch), Some(data_acked)) = (&mut self.watched, subflow.data_acked) else { return };
        if subflow.acked < batch.first.1 {
            return;
        }
        let mss = subflow.mss.get().max(1) as f64;
        let early = batch.first.0.distance(data_acked);
        if early > 0 && !batch.first_judged {
            self.correction -= GAIN * early as f64 / mss;
            self.watched = None;
        } else if subflow.acked >= batch.end.1 {
            let late = data_acked.distance(batch.end.0).max(0);
            self.correction += GAIN * late as f64 / mss;
            self.watched = None;
        } else {
            batch.first_judged = true;
        }
        let most = f64::from(subflow.cwnd_segments());
        self.correction = self.correction.clamp(-most, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::Bytes;

    /// Sends `n` segments from the `from`-th on, and gets ACKs of so many of them with the DATA_ACK at so many segments.
    struct Trial {
        feedback: Feedback,
        slow: SubflowView,
    }

    fn dsn(segments: u64) -> Dsn {
        Dsn::new(1 + 1000 * segments)
    }

    impl Trial {
        fn new() -> Self {
            Trial { feedback: Feedback::default(), slow: subflow(SLOW, 100, 20, 0) }
        }

        fn look(&mut self) -> f64 {
            let subflows = [self.slow];
            self.feedback.look(&view(&subflows, 100));
            self.feedback.lines.first().map_or(0.0, |line| line.correction)
        }

        fn send(&mut self, ms: u64, from: u64, n: u64) {
            for segment in from..from + n {
                self.look();
                self.feedback.correction(&self.slow);
                let (skip, length) = (Bytes::ZERO, segments(1));
                self.feedback.observe(at(ms), &Event::Sent { on: SLOW, dsn: dsn(segment), skip, length });
                self.slow.sent += 1000;
            }
        }

        fn ack(&mut self, n: u64, data_acked: u64) -> f64 {
            (self.slow.acked, self.slow.data_acked) = (1000 * n, Some(dsn(data_acked)));
            self.look()
        }
    }

    /// Segment 40 arrives when 30 are there: ten too early. When it arrives as the last of 46 there: five too late.
    #[test]
    fn corrects_half_of_what_was_wrong() {
        let mut trial = Trial::new();
        trial.send(0, 40, 1);
        assert_eq!(trial.ack(1, 30), -5.0);
        trial.send(10, 60, 1);
        assert_eq!(trial.ack(2, 66), -2.5); // 66 - 61 = 5, half of it
        trial.send(20, 80, 1);
        assert_eq!(trial.ack(3, 81), -2.5); // just in time
    }

    #[test]
    fn a_batch_is_early_by_its_first_segment_and_late_by_its_last() {
        let mut trial = Trial::new();
        trial.send(0, 40, 3);
        assert_eq!(trial.ack(1, 41), 0.0);
        assert_eq!(trial.ack(2, 42), 0.0);
        assert_eq!(trial.ack(3, 51), 4.0);
        trial.send(10, 60, 3);
        assert_eq!(trial.ack(4, 52), 0.0);
        assert_eq!(trial.ack(5, 63), 0.0); // judged already
    }

    #[test]
    fn one_batch_is_watched_at_a_time() {
        let mut trial = Trial::new();
        trial.send(0, 40, 1);
        trial.send(5, 44, 1);
        assert_eq!(trial.ack(1, 41), 0.0);
        assert_eq!(trial.ack(2, 60), 0.0); // of the second nobody took notice
    }

    #[test]
    fn stays_within_a_window_and_forgets_with_a_timeout() {
        let mut trial = Trial::new();
        trial.send(0, 1000, 1);
        assert_eq!(trial.ack(1, 100), -20.0);
        trial.feedback.observe(at(1), &Event::FastRetransmit { on: SLOW });
        assert_eq!(trial.look(), -20.0);
        trial.feedback.observe(at(2), &Event::Rto { on: FAST });
        assert_eq!(trial.look(), 0.0);
    }

    #[test]
    fn what_was_sent_again_is_not_judged() {
        let mut trial = Trial::new();
        trial.send(0, 40, 1);
        trial.feedback.observe(at(1), &Event::FastRetransmit { on: SLOW });
        assert_eq!(trial.ack(1, 90), 0.0);
    }

    /// Without a DATA_ACK of its own, or when the engine chose the subflow, nothing is learnt.
    #[test]
    fn learns_only_from_what_it_decided_and_saw() {
        let mut trial = Trial::new();
        trial.send(0, 40, 1);
        trial.slow.acked = 1000;
        assert_eq!(trial.look(), 0.0);
        let mut trial = Trial::new();
        trial.feedback.correction(&trial.slow);
        trial.look();
        let event = Event::Sent { on: SLOW, dsn: dsn(40), skip: Bytes::ZERO, length: segments(1) };
        trial.feedback.observe(at(0), &event);
        assert_eq!(trial.ack(1, 0), 0.0);
    }
}
