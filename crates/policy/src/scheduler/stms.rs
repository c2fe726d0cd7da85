//! STMS-r, slide together: the slow subflow sends ahead by a gap of DSNs that closes when its data arrive;
//! reconstructed.
//!
//! H. Shi, Y. Cui, X. Wang, Y. Hu, M. Dai, F. Wang, K. Zheng. *STMS: Improving MPTCP Throughput Under Heterogeneous
//! Networks.* USENIX ATC 2018.
//!
//! The fast subflow sends the first unsent bytes. A slow one sends the first unsent bytes at or behind
//! ```text
//! unsent_from + Σ_f rate_f · (SRTT_s - SRTT_f)/2 + d_s · mss      rate_f = cwnd_f / SRTT_f
//! ```
//! which is where the fast ones will be when its data arrive. `d_s` follows about once per RTT from what the receiver
//! had when they did: half of what was missing before them is taken off, half of what had overtaken them is added
//! (module `feedback`).
//!
//! Unlike FPS the gap is a distance in DSNs: what was sent ahead before lies within it and is not added once more.
//!
//! Reconstructed (A-STMS): the paper's gap is adapted by its own rules, which we do not have; rate, delays and feedback
//! are ours. The sum over more than one faster subflow is ours, and that the position is rounded to whole segments of
//! what is unsent. What was sent ahead before the policy was switched to is not known to it.

use super::Entry;
use super::feedback::Feedback;
use super::skip::{Reserve, SkipAhead, faster, whole_segments};
use crate::{Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "stms-r",
    "the slow subflow sends ahead by a gap of DSNs that closes when its data arrive; reconstructed",
    include_str!("stms.rs"),
    |_| Box::new(Stms::scheduler()),
)
.paper("Shi et al. 2018");

/// Slide together.
#[derive(Default)]
pub(super) struct Stms {
    feedback: Feedback,
    ahead: Ahead,
}

/// Data sent beyond the first unsent byte: ranges that do not touch, in DSN order.
#[derive(Default)]
struct Ahead(Vec<(Dsn, Dsn)>);

impl Stms {
    /// Creates it with nothing sent yet.
    pub(super) fn scheduler() -> SkipAhead<Self> {
        SkipAhead(Stms::default())
    }
}

impl Reserve for Stms {
    fn reserve(&mut self, _now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        let sent_before_it: f64 =
            faster(view, slow).map(|fast| fast.cwnd.as_f64() * ((slow.srtt - fast.srtt) / 2).per(fast.srtt)).sum();
        let gap = sent_before_it + self.feedback.correction(slow) * slow.mss.as_f64();
        let position = self.ahead.unsent_before(view.unsent_from, gap.max(0.0) as u64);
        whole_segments(position as f64 / slow.mss.get().max(1) as f64, slow.mss)
    }

    fn look(&mut self, _now: Instant, view: &View<'_>) {
        self.feedback.look(view);
        self.ahead.release(view.unsent_from);
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        if let Event::Sent { dsn, skip, length, .. } = *event
            && !skip.is_zero()
        {
            self.ahead.add(dsn, dsn + length.get());
        }
        self.feedback.observe(now, event);
    }
}

impl Ahead {
    /// Number of unsent bytes among the `distance` bytes from `from` on.
    fn unsent_before(&self, from: Dsn, distance: u64) -> u64 {
        let offset = |dsn: Dsn| u64::try_from(dsn.distance(from)).unwrap_or(0).min(distance);
        distance - self.0.iter().map(|&(start, end)| offset(end) - offset(start)).sum::<u64>()
    }

    /// Everything before `from` has been sent.
    fn release(&mut self, from: Dsn) {
        let passed = self.0.iter().take_while(|(_, end)| !end.after(from)).count();
        self.0.drain(..passed);
    }

    fn add(&mut self, start: Dsn, end: Dsn) {
        // It touches those that neither end before it begins nor begin after it ends.
        let first = self.0.iter().rposition(|range| range.1.before(start)).map_or(0, |before| before + 1);
        let touching = self.0[first..].iter().take_while(|range| !range.0.after(end)).count();
        let mut merged = (start, end);
        for range in self.0.drain(first..first + touching) {
            merged.0 = if range.0.before(merged.0) { range.0 } else { merged.0 };
            merged.1 = if range.1.after(merged.1) { range.1 } else { merged.1 };
        }
        self.0.insert(first, merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;
    use crate::scheduler::Scheduler;
    use crate::scheduler::testing::*;

    fn dsn(segments: u64) -> Dsn {
        Dsn::new(1 + 1000 * segments)
    }

    /// 20 ms and full before 100 ms, windows of ten: 10 segments in 20 ms, twenty in the 40 ms that the delays differ
    /// by.
    fn pair() -> [SubflowView; 2] {
        [subflow(FAST, 20, 10, 10), subflow(SLOW, 100, 10, 0)]
    }

    /// Decides with everything before the `from`-th segment sent, and sends.
    fn step(stms: &mut SkipAhead<Stms>, subflows: &[SubflowView], from: u64, dsn_of: impl Fn(u64) -> u64) -> u64 {
        let view = View { unsent_from: dsn(from), ..view(subflows, 100) };
        let Decision::Send { on, skip } = stms.decide(at(0), &view) else { panic!("it sends") };
        let skipped = skip.get() / 1000;
        let length = segments(1);
        stms.observe(at(0), &Event::Sent { on, dsn: dsn(dsn_of(skipped)), skip, length });
        skipped
    }

    /// The gap is in DSNs: the second segment goes right behind the first although twenty unsent ones lie before both.
    #[test]
    fn the_slow_subflow_sends_ahead_by_what_the_fast_one_sends_meanwhile() {
        let mut stms = Stms::scheduler();
        assert_eq!(step(&mut stms, &pair(), 0, |skip| skip), 20); // 0..20 unsent, sends 20
        assert_eq!(step(&mut stms, &pair(), 0, |skip| skip + 1), 20); // 20 is sent: the next is 21
        assert_eq!(stms.0.ahead.0, [(dsn(20), dsn(22))]);
        // The fast one has sent five: the gap ends at 25, before which lie 15 and 3 unsent ones.
        assert_eq!(step(&mut stms, &pair(), 5, |skip| 5 + skip + 2), 18);
        assert_eq!(stms.0.ahead.0, [(dsn(20), dsn(22)), (dsn(25), dsn(26))]);
    }

    #[test]
    fn feedback_moves_the_gap() {
        let mut stms = Stms::scheduler();
        let [fast, mut slow] = pair();
        assert_eq!(step(&mut stms, &[fast, slow], 0, |skip| skip), 20);
        // It arrived when sixteen were there: four too early.
        (slow.sent, slow.acked, slow.data_acked) = (1000, 1000, Some(dsn(16)));
        assert_eq!(step(&mut stms, &[fast, slow], 21, |skip| 21 + skip), 18);
    }

    #[test]
    fn with_nothing_faster_the_head_is_sent() {
        let mut stms = Stms::scheduler();
        assert_eq!(step(&mut stms, &pair()[1..], 0, |skip| skip), 0);
        let [fast, slow] = pair();
        assert_eq!(stms.decide(at(0), &view(&[fast, slow], 20)), Decision::WAIT);
    }

    #[test]
    fn ranges_merge_and_pass() {
        let mut ahead = Ahead::default();
        for (start, end) in [(10, 12), (20, 22), (14, 16), (12, 13), (30, 31), (13, 14)] {
            ahead.add(dsn(start), dsn(end));
        }
        assert_eq!(ahead.0, [(dsn(10), dsn(16)), (dsn(20), dsn(22)), (dsn(30), dsn(31))]);
        assert_eq!(ahead.unsent_before(dsn(5), 10_000), 5000); // to 15
        assert_eq!(ahead.unsent_before(dsn(5), 20_000), 12_000); // to 25: less six and two
        ahead.release(dsn(21));
        assert_eq!(ahead.0, [(dsn(20), dsn(22)), (dsn(30), dsn(31))]);
        ahead.add(dsn(19), dsn(40));
        assert_eq!(ahead.0, [(dsn(19), dsn(40))]);
        ahead.release(dsn(40));
        assert_eq!(ahead.unsent_before(dsn(40), 7000), 7000);
    }
}
