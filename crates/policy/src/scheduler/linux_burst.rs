//! Linux burst: the default of the kernel's own MPTCP (5.10 and later), a cheap relative of BLEST.
//!
//! What is queued on a subflow takes `linger = queued / pace` to leave. The rule picks the subflow with the least, of all
//! usable ones. If the pick has no room it waits: that is the idea of BLEST. Otherwise the pick gets a burst of 65,428
//! bytes, or what the peer's window still admits if that is less, and its average pace becomes
//! ```text
//! (average · queued + pace · burst) / (queued + burst)
//! ```
//! It keeps the burst while it has room and data lasts. The pace is what congestion control paces at or, if it does not, what
//! Linux would: [`SubflowView::pace`].
//!
//! From `mptcp_subflow_get_send` in `net/mptcp/protocol.c`. Until its queue lingers as long as the fast one's, the slow
//! subflow is picked too; with windows full, that is `srtt / 1.2` of the fast one, whatever its own RTT. So a subflow
//! that is many times slower is used for little.
//!
//! Where we differ: `queued` is what was sent and is not acknowledged. In Linux it holds also what waits in the subflow's
//! send buffer for its congestion window (about one window more), counted with the overhead of its memory; we move nothing
//! into a subflow before it can leave, so "no room" is a full congestion window where Linux has a full send buffer. Who has
//! no room and nothing in flight is not picked: nothing would end the wait. Stale subflows are not usable anyway.

use super::per_subflow::PerSubflow;
use super::{Scheduler, ack_due};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Instant, SubflowId};

/// The least lingering queue, in bursts.
#[derive(Default)]
pub struct LinuxBurst {
    /// Average pace of each subflow [bit/s]; 0 before there is one.
    paces: PerSubflow<f64>,
    on: SubflowId,
    /// Of the burst on it.
    left: Bytes,
}

impl LinuxBurst {
    /// Place and subflow of the least lingering queue.
    fn pick<'a>(&mut self, view: &View<'a>) -> Option<(usize, &'a SubflowView)> {
        self.paces.follow(view.subflows, |_| 0.0);
        let mut best: Option<(usize, &SubflowView, f64)> = None;
        for (at, (pace, subflow)) in self.paces.iter_mut().zip(view.subflows).enumerate() {
            if *pace == 0.0 {
                *pace = subflow.pace().as_bps() as f64;
            }
            if *pace == 0.0 || !(subflow.has_room() || ack_due(subflow)) {
                continue;
            }
            let linger = queued(subflow) / *pace;
            if best.is_none_or(|(_, _, least)| linger < least) {
                best = Some((at, subflow, linger));
            }
        }
        best.map(|(at, subflow, _)| (at, subflow))
    }
}

impl Scheduler for LinuxBurst {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        if !self.left.is_zero() && view.subflow(self.on).is_some_and(SubflowView::has_room) {
            return Decision::send(self.on);
        }
        self.left = Bytes::ZERO;
        let Some((at, picked)) = self.pick(view) else {
            // Nobody has a pace yet, or nothing is in flight.
            return view.fastest_with_room().map_or(Decision::WAIT, |subflow| Decision::send(subflow.id));
        };
        if !picked.has_room() {
            return Decision::WAIT;
        }
        let in_window = view.unsent_from.distance(view.data_una).max(0) as u64;
        let burst = BURST.min(view.window.saturating_sub(Bytes::new(in_window)));
        let queued = queued(picked);
        if !burst.is_zero() {
            let (pace, now) = (self.paces[at], picked.pace().as_bps() as f64);
            self.paces[at] = (pace * queued + now * burst.as_f64()) / (queued + burst.as_f64());
        }
        (self.on, self.left) = (picked.id, burst);
        Decision::send(picked.id)
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        match *event {
            Event::Sent { on, length, .. } if on == self.on => self.left = self.left.saturating_sub(length),
            // Linux picks anew each time it is called, and it was called last when the data ran out.
            Event::DataWritten => self.left = Bytes::ZERO,
            _ => {}
        }
    }
}

/// Sent and not acknowledged [bytes].
fn queued(subflow: &SubflowView) -> f64 {
    subflow.sent.saturating_sub(subflow.acked) as f64
}

/// What one pick sends at most (`MPTCP_SEND_BURST_SIZE`).
const BURST: Bytes = Bytes::new(65_428);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::Rate;

    /// Past its first loss, with so many segments queued.
    fn queueing(id: SubflowId, srtt_ms: u64, cwnd: u64, queued: u64) -> SubflowView {
        let after_loss = SubflowView { ssthresh: Some(segments(1)), ..subflow(id, srtt_ms, cwnd, queued) };
        SubflowView { sent: 1_000_000 + segments(queued).get(), acked: 1_000_000, ..after_loss }
    }

    fn sent(burst: &mut LinuxBurst, on: SubflowId, bytes: u64) {
        let length = Bytes::new(bytes);
        burst.observe(at(0), &Event::Sent { on, dsn: anabranch_units::Dsn::new(1), skip: Bytes::ZERO, length });
    }

    /// Windows of 10 in 10 and 40 ms, so paces of 1.2 and 0.3 segments per ms: queues linger equally at 4 to 1.
    #[test]
    fn the_least_lingering_queue_is_picked_and_waited_for() {
        for (fast, slow, expected) in [
            (0, 0, Decision::send(FAST)),
            (3, 0, Decision::send(SLOW)),  //  2.5 ms > 0
            (3, 1, Decision::send(FAST)),  //  2.5 < 3.3
            (8, 2, Decision::send(FAST)),  //  6.7 = 6.7
            (9, 2, Decision::send(SLOW)),  //  7.5 > 6.7
            (10, 2, Decision::send(SLOW)), // 8.3 > 6.7
            (10, 3, Decision::WAIT),       //  8.3 < 10, and the fast window is full
            (10, 10, Decision::WAIT),
        ] {
            let pair = [queueing(FAST, 10, 10, fast), queueing(SLOW, 40, 10, slow)];
            assert_eq!(LinuxBurst::default().decide(at(0), &view(&pair, 500)), expected, "{fast} {slow}");
        }
    }

    #[test]
    fn a_burst_stays_on_its_subflow() {
        let mut burst = LinuxBurst::default();
        let subflows = [queueing(FAST, 10, 100, 0), queueing(SLOW, 40, 100, 0)];
        // What is queued has no say until the burst of 65,428 bytes is over.
        let busy = [queueing(FAST, 10, 100, 99), subflows[1]];
        assert_eq!(burst.decide(at(0), &view(&subflows, 500)), Decision::send(FAST));
        sent(&mut burst, FAST, 65_427);
        sent(&mut burst, SLOW, 1_000);
        assert_eq!(burst.decide(at(0), &view(&busy, 500)), Decision::send(FAST));
        sent(&mut burst, FAST, 1_000);
        assert_eq!(burst.decide(at(0), &view(&busy, 500)), Decision::send(SLOW));
        // The window may admit less; then no burst outlives the data.
        let mut burst = LinuxBurst::default();
        let narrow =
            View { window: segments(3), unsent_from: view(&subflows, 1).data_una + 1_000, ..view(&subflows, 500) };
        assert_eq!(burst.decide(at(0), &narrow), Decision::send(FAST));
        assert_eq!(burst.left, segments(2));
        burst.observe(at(0), &Event::DataWritten);
        assert_eq!(burst.decide(at(0), &view(&busy, 500)), Decision::send(SLOW));
    }

    /// (6 · 20 + 12 · 65.428) / 85.428 = 10.595 Mbit/s, by a script of our own.
    #[test]
    fn the_pace_is_averaged_over_what_is_queued() {
        let mut burst = LinuxBurst::default();
        let paced = |mbps| SubflowView { pacing: Some(Rate::from_mbps(mbps)), ..queueing(FAST, 10, 100, 20) };
        burst.pick(&view(&[paced(6)], 500));
        assert_eq!(burst.decide(at(0), &view(&[paced(12)], 500)), Decision::send(FAST));
        assert!((burst.paces[0] - 10_595_308.33).abs() < 0.01, "{}", burst.paces[0]);
    }

    #[test]
    fn the_pace_of_linux_is_twice_the_rate_in_slow_start() {
        let late = SubflowView { ssthresh: Some(segments(10)), ..subflow(FAST, 10, 10, 0) };
        assert_eq!(late.pace(), Rate::from_bps(9_600_000));
        for early in [None, Some(segments(11))] {
            assert_eq!(SubflowView { ssthresh: early, ..late }.pace(), Rate::from_bps(16_000_000));
        }
        assert_eq!(SubflowView { pacing: Some(Rate::from_mbps(3)), ..late }.pace(), Rate::from_mbps(3));
    }

    #[test]
    fn a_silent_subflow_is_not_waited_for() {
        let held_back = SubflowView { throttled: true, ..queueing(FAST, 10, 10, 0) };
        let mut burst = LinuxBurst::default();
        let pair = [held_back, queueing(SLOW, 40, 10, 9)];
        assert_eq!(burst.decide(at(0), &view(&pair, 500)), Decision::send(SLOW));
        let paceless = SubflowView { pacing: Some(Rate::from_bps(0)), ..subflow(SLOW, 40, 10, 0) };
        assert_eq!(LinuxBurst::default().decide(at(0), &view(&[held_back, paceless], 500)), Decision::send(SLOW));
    }
}
