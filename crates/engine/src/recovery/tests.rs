//! Each rule by hand; `exchange` has everything at once over a lossy, reordering channel.
#![allow(clippy::unwrap_used)]

mod exchange;

use super::*;
use crate::rtt::RtoRule;

const MSS: u64 = 1000;
const RACK: Config = Config {
    sack: true,
    rack: true,
    tlp: true,
    dup_threshold: 3,
    single_repair: false,
    early_retransmit: false,
    max_rto: Duration::from_secs(120),
};
const COUNT: Config = Config { rack: false, tlp: false, ..RACK };
const NEWRENO: Config = Config { sack: false, ..COUNT };
const SINGLE: Config = Config { single_repair: true, ..NEWRENO };

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A sender at offset 1 with an RTT of 100 ms behind it, and a clock in milliseconds.
struct Bench {
    r: Recovery,
    rtt: RttEstimator,
    now: u64,
}

impl Bench {
    fn new(config: Config, segments: u64) -> Self {
        let mut rtt = RttEstimator::new(RtoRule::Linux { min_var: ms(200) });
        for _ in 0..50 {
            rtt.sample(Instant::ZERO, ms(100));
        }
        let mut bench = Bench { r: Recovery::new(config, 1, Instant::ZERO), rtt, now: 0 };
        bench.r.rearm(Instant::ZERO, &bench.rtt);
        bench.send(segments);
        bench
    }

    fn at(&self) -> Instant {
        Instant::ZERO + ms(self.now)
    }

    fn send(&mut self, segments: u64) {
        for _ in 0..segments {
            let data = 5000 + self.r.snd_nxt();
            self.r.on_sent(self.at(), MSS as u32, data, 0);
        }
    }

    /// Segment `n` as offsets, counted from 0.
    fn seg(n: u64) -> (u64, u64) {
        (1 + n * MSS, 1 + (n + 1) * MSS)
    }

    /// ACK up to segment `n` with SACK blocks over the segments `sack`, at `now`.
    fn ack_with(&mut self, now: u64, n: u64, sack: &[(u64, u64)], more: impl FnOnce(&mut AckIn<'_>)) -> AckOut {
        self.now = now;
        let sack: Vec<_> = sack.iter().map(|&(a, b)| (1 + a * MSS, 1 + b * MSS)).collect();
        let mut ack =
            AckIn { ack: 1 + n * MSS, sack: &sack, dsack: None, is_duplicate: false, rtt_from_timestamp: None };
        more(&mut ack);
        let out = self.r.on_ack(self.at(), &ack, &self.rtt);
        if let Some(sample) = out.rtt {
            self.rtt.sample(self.at(), sample);
        }
        self.r.rearm(self.at(), &self.rtt);
        assert_eq!(self.r.totals(), self.r.recompute());
        out
    }

    fn ack(&mut self, now: u64, n: u64, sack: &[(u64, u64)]) -> AckOut {
        self.ack_with(now, n, sack, |_| {})
    }

    fn duplicate(&mut self, now: u64, n: u64) -> AckOut {
        self.ack_with(now, n, &[], |ack| ack.is_duplicate = true)
    }

    /// Retransmits all that is lost; answers which segments those were.
    fn repair(&mut self) -> Vec<u64> {
        let mut repaired = vec![];
        while let Some(sent) = self.r.next_retransmission() {
            assert_eq!(sent.data, sent.start + 5000);
            self.r.on_retransmit(self.at(), sent.start, &self.rtt);
            repaired.push((sent.start - 1) / MSS);
        }
        assert_eq!(self.r.totals(), self.r.recompute());
        repaired
    }

    fn fire(&mut self) -> Fired {
        let at = self.r.deadline().unwrap();
        self.now = at.as_nanos().div_ceil(1_000_000);
        let fired = self.r.on_deadline(self.at(), &self.rtt);
        assert_eq!(self.r.totals(), self.r.recompute());
        fired
    }
}

#[test]
fn cumulative_acks_deliver_and_time_the_newest_segment() {
    let mut b = Bench::new(COUNT, 4);
    assert_eq!((b.r.in_flight(), b.r.in_flight_segments()), (4 * MSS, 4));
    let out = b.ack(90, 3, &[]);
    assert_eq!((out.acked, out.delivered, out.delivered_segments), (3 * MSS, 3 * MSS, 3));
    assert_eq!(out.rtt, Some(ms(90)));
    assert_eq!((b.r.phase(), b.r.in_flight()), (Phase::Open, MSS));
}

#[test]
fn a_partial_ack_of_a_segment_moves_its_data_offset_along() {
    let mut b = Bench::new(COUNT, 2);
    b.ack_with(100, 0, &[], |ack| ack.ack = 301);
    let front = b.r.iter().next().unwrap();
    assert_eq!((front.start, front.len, front.data, front.end()), (301, 700, 5301, 1001));
    assert_eq!(b.r.in_flight(), 1700);
}

#[test]
fn a_fin_takes_one_number_after_its_payload() {
    let mut b = Bench::new(COUNT, 0);
    b.r.on_sent(b.at(), 10, 77, FIN);
    assert_eq!(b.r.snd_nxt(), 12);
    b.ack_with(100, 0, &[], |ack| ack.ack = 11);
    let front = b.r.iter().next().unwrap();
    assert_eq!((front.start, front.len, front.data, front.flags, front.end()), (11, 0, 87, FIN, 12));
    assert_eq!(b.ack_with(101, 0, &[], |ack| ack.ack = 12).acked, 1);
    assert!(b.r.is_empty() && b.r.deadline().is_none());
}

#[test]
fn three_segments_above_a_hole_start_recovery_once() {
    // RFC 6675 §5 with DupThresh 3, segments 0 and 4 lost.
    let mut b = Bench::new(COUNT, 10);
    assert_eq!(b.ack(100, 0, &[(1, 2)]).newly_lost, 0);
    assert_eq!(b.r.phase(), Phase::Disorder);
    assert_eq!(b.ack(101, 0, &[(1, 3)]).newly_lost, 0);
    let out = b.ack(102, 0, &[(1, 4)]);
    assert!(out.entered_recovery && out.newly_lost == 1 && out.newly_lost_bytes == MSS && out.delivered == MSS);
    // Ten sent, three SACKed, one lost.
    assert_eq!(b.r.in_flight(), 6 * MSS);
    assert_eq!(b.repair(), [0]);
    assert_eq!(b.r.in_flight(), 7 * MSS);
    let out = b.ack(103, 0, &[(5, 8), (1, 4)]);
    assert!(!out.entered_recovery && out.newly_lost == 1);
    assert_eq!(b.repair(), [4]);
    b.ack(200, 4, &[(5, 10)]);
    assert_eq!(b.r.phase(), Phase::Recovery);
    let out = b.ack(201, 10, &[]);
    assert!(out.left_recovery && out.acked == 6 * MSS && out.delivered == MSS);
    assert_eq!(b.r.phase(), Phase::Open);
    assert_eq!(out.rtt, None, "Karn: the ACK waited for a retransmission");
}

#[test]
fn short_flights_need_fewer_duplicates_only_when_nothing_waits() {
    // RFC 5827 §3.2: three out, so two are enough.
    for (has_unsent, lost) in [(false, 1), (true, 0)] {
        let mut b = Bench::new(Config { early_retransmit: true, ..COUNT }, 3);
        b.r.set_has_unsent(has_unsent);
        assert_eq!(b.ack(100, 0, &[(1, 2)]).newly_lost, 0);
        assert_eq!(b.ack(100, 0, &[(1, 3)]).newly_lost, lost);
    }
}

#[test]
fn the_timer_doubles_and_everything_is_lost() {
    // RFC 6298 §5.4-5.6; RTO 100 + 200 ms.
    let mut b = Bench::new(COUNT, 3);
    b.ack(50, 0, &[(2, 3)]);
    assert_eq!(b.fire(), Fired::Rto);
    assert_eq!((b.now, b.r.phase(), b.r.in_flight(), b.r.backoff()), (300, Phase::Loss, 0, 1));
    assert_eq!(b.repair(), [0, 1]);
    assert_eq!(b.fire(), Fired::Rto);
    let rto = b.rtt.rto().as_millis();
    assert_eq!(b.r.consecutive_rtos(), 2);
    assert!(b.now >= 300 + 2 * rto);
    assert_eq!(b.repair(), [0, 1], "the copies are lost as well");
    // Progress clears the backoff, and the episode ends where it began.
    let now = b.now + 100;
    assert!(!b.ack(now, 1, &[(2, 3)]).left_recovery);
    assert_eq!((b.r.backoff(), b.r.consecutive_rtos(), b.r.rto_count()), (0, 0, 2));
    assert!(b.ack(now, 3, &[]).left_recovery);
    assert_eq!(b.r.deadline(), None);
}

#[test]
fn the_timeout_is_capped() {
    let mut b = Bench::new(Config { max_rto: Duration::from_secs(2), ..COUNT }, 1);
    let mut last = 0;
    for _ in 0..40 {
        last = b.now;
        assert_eq!(b.fire(), Fired::Rto);
        b.repair();
    }
    assert_eq!(b.now - last, 2000);
}

#[test]
fn a_peer_that_forgets_what_it_reported_is_served_again() {
    // RFC 2018 §8: the first segment is SACKed and never acknowledged.
    let mut b = Bench::new(COUNT, 3);
    b.ack(50, 0, &[(0, 3)]);
    assert_eq!((b.r.in_flight(), b.r.next_retransmission().is_some()), (0, false));
    assert_eq!(b.fire(), Fired::Rto);
    assert_eq!(b.repair(), [0, 1, 2]);
    b.ack(b.now + 1, 3, &[]);
    assert!(b.r.is_empty());
}

#[test]
fn rack_waits_a_quarter_rtt_and_no_longer() {
    // RFC 8985 §6.2: one SACKed segment is enough once min_RTT/4 has passed.
    let mut b = Bench::new(RACK, 5);
    let out = b.ack(100, 0, &[(1, 2)]);
    assert_eq!(out.newly_lost, 0);
    assert_eq!(b.r.deadline(), Some(Instant::ZERO + ms(125)));
    assert_eq!(b.fire(), Fired::Lost { segments: 1, bytes: MSS, entered_recovery: true });
    assert_eq!(b.repair(), [0]);
}

#[test]
fn rack_does_not_wait_when_three_are_sacked_and_nothing_ever_overtook() {
    let mut b = Bench::new(RACK, 5);
    let out = b.ack(100, 0, &[(1, 4)]);
    assert!(out.entered_recovery && out.newly_lost == 1);
}

#[test]
fn rack_waits_even_then_after_it_has_seen_reordering() {
    let mut b = Bench::new(RACK, 10);
    b.ack(100, 0, &[(1, 2)]);
    b.ack(101, 2, &[]);
    assert_eq!(b.ack(102, 2, &[(3, 6)]).newly_lost, 0);
    assert_eq!(b.ack(103, 6, &[]).newly_lost, 0);
    assert_eq!(b.r.phase(), Phase::Open);
    assert_eq!(b.r.retransmitted_segments(), 0);
}

#[test]
fn rack_finds_a_lost_retransmission() {
    let mut b = Bench::new(RACK, 5);
    b.ack(100, 0, &[(1, 4)]);
    assert_eq!(b.repair(), [0]);
    b.now = 101;
    b.send(3);
    b.ack(105, 0, &[(1, 5)]);
    assert_eq!(b.repair(), [0; 0]);
    // Segments 5 and on left after the retransmission, and arrive.
    let out = b.ack(205, 0, &[(1, 6)]);
    assert_eq!((out.newly_lost, out.entered_recovery), (1, false));
    assert_eq!(b.repair(), [0]);
}

#[test]
fn without_rack_a_lost_retransmission_waits_for_the_timer() {
    let mut b = Bench::new(COUNT, 5);
    b.ack(100, 0, &[(1, 4)]);
    b.repair();
    b.send(4);
    assert_eq!(b.ack(205, 0, &[(1, 9)]).newly_lost, 0);
    assert_eq!(b.fire(), Fired::Rto);
    assert_eq!(b.repair(), [0]);
}

#[test]
fn a_loss_beyond_the_recovery_point_starts_the_next_episode() {
    let mut b = Bench::new(RACK, 5);
    b.ack(100, 0, &[(1, 4)]);
    b.repair();
    b.now = 101;
    b.send(3);
    b.now = 102;
    b.send(3);
    b.ack(201, 0, &[(1, 5), (9, 11)]);
    let out = b.ack(203, 5, &[(9, 11)]);
    assert!(out.left_recovery && out.entered_recovery);
    assert_eq!(b.r.phase(), Phase::Recovery);
}

#[test]
fn a_tail_is_probed_after_two_round_trips() {
    // RFC 8985 §7.2 and §7.3.
    let mut b = Bench::new(RACK, 4);
    b.ack(100, 1, &[]);
    assert_eq!(b.r.deadline(), Some(Instant::ZERO + ms(300)));
    assert_eq!(b.fire(), Fired::Probe);
    let last = b.r.probe_candidate().unwrap();
    b.r.on_retransmit(b.at(), last.start, &b.rtt);
    assert_eq!(b.r.in_flight_segments(), 4, "the copy counts beside the original");
    // One probe per tail; the timeout starts over.
    assert_eq!(b.r.deadline(), Some(Instant::ZERO + ms(600)));
    // The probe arrives: the rest is lost.
    let out = b.ack(400, 1, &[(3, 4)]);
    assert!(out.entered_recovery && out.newly_lost == 2);
    assert_eq!(b.repair(), [1, 2]);
}

#[test]
fn a_single_segment_waits_for_a_delayed_ack_but_not_for_the_timeout() {
    let b = Bench::new(RACK, 1);
    // 2·100 + 200 ms, but the timeout is at 300 ms.
    assert_eq!(b.r.deadline(), Some(Instant::ZERO + ms(300)));
    let mut b = b;
    assert_eq!(b.fire(), Fired::Probe, "the probe goes first");
}

#[test]
fn a_probe_that_repairs_a_loss_is_reported_and_a_needless_one_is_not() {
    // RFC 8985 §7.4.2.
    for (dsack, repaired) in [(None, true), (Some(Bench::seg(0)), false)] {
        let mut b = Bench::new(RACK, 1);
        b.fire();
        b.r.on_retransmit(b.at(), 1, &b.rtt);
        assert!(!b.ack(350, 1, &[]).tail_loss_repaired);
        b.send(1);
        let mut spurious = false;
        if dsack.is_some() {
            spurious = b.ack_with(360, 1, &[], |ack| ack.dsack = dsack).spurious;
        }
        assert_eq!(b.ack(450, 2, &[]).tail_loss_repaired, repaired);
        assert_eq!(spurious, !repaired);
    }
}

/// mptcp-ns3 (`DupAck`, `ReTxTimeout`): segments 0 and 5 of ten lost. The third duplicate ACK repeats 0 and no more is
/// credited or repeated, the partial ACK opens the next count, and a fourth and fifth duplicate do nothing; a timeout
/// repeats 5 alone.
#[test]
fn a_single_segment_is_repeated_per_signal() {
    let mut b = Bench::new(SINGLE, 10);
    b.duplicate(100, 0);
    assert_eq!((b.duplicate(101, 0).delivered, b.r.in_flight()), (0, 10 * MSS));
    let out = b.duplicate(102, 0);
    assert!(out.entered_recovery && b.r.backoff() == 1);
    assert_eq!(b.repair(), [0]);
    for _ in 3..8 {
        let out = b.duplicate(103, 0);
        assert!(out.newly_lost == 0 && !out.entered_recovery);
    }
    assert_eq!(b.r.in_flight(), 10 * MSS);
    // A partial ACK ends the episode and repeats nothing. Segments 1 to 4 were sent once: the timeout is single again.
    let out = b.ack(200, 5, &[]);
    assert_eq!((out.acked, out.newly_lost, out.left_recovery, b.r.backoff()), (5 * MSS, 0, true, 0));
    assert_eq!((b.repair(), b.r.phase()), (vec![], Phase::Open));
    for (now, enters) in [(201, false), (202, false), (203, true), (204, false)] {
        assert_eq!(b.duplicate(now, 5).entered_recovery, enters);
        assert_eq!(b.repair(), if enters { vec![5] } else { vec![] });
    }
    assert_eq!(b.fire(), Fired::Rto);
    assert_eq!((b.repair(), b.r.backoff(), b.r.in_flight()), (vec![5], 2, 5 * MSS));
    // What acknowledges a repetition alone leaves the timeout as it is.
    assert_eq!((b.ack(2000, 6, &[]).acked, b.r.backoff(), b.r.phase()), (MSS, 2, Phase::Open));
    assert_eq!((b.ack(2001, 10, &[]).acked, b.r.backoff()), (4 * MSS, 0));
}

#[test]
fn newreno_by_the_book() {
    // RFC 6582 §3.2: segments 0 and 5 of ten lost.
    let mut b = Bench::new(NEWRENO, 10);
    b.duplicate(100, 0);
    let out = b.duplicate(101, 0);
    assert_eq!((out.delivered, out.newly_lost, b.r.phase()), (MSS, 0, Phase::Disorder));
    assert_eq!(b.r.in_flight(), 8 * MSS);
    assert!(b.duplicate(102, 0).entered_recovery);
    assert_eq!(b.r.in_flight(), 6 * MSS);
    assert_eq!(b.repair(), [0]);
    for _ in 3..8 {
        assert_eq!(b.duplicate(103, 0).newly_lost, 0);
    }
    // A partial ACK: the next hole.
    let out = b.ack(200, 5, &[]);
    assert_eq!((out.acked, out.delivered, out.newly_lost), (5 * MSS, MSS, 1));
    assert!(!out.left_recovery && !out.entered_recovery);
    assert_eq!(b.repair(), [5]);
    let out = b.ack(300, 10, &[]);
    assert!(out.left_recovery && out.rtt.is_none());
    assert_eq!((out.delivered, b.r.in_flight(), b.r.phase()), (MSS, 0, Phase::Open));
}

#[test]
fn newreno_does_not_mistake_its_own_retransmissions_for_a_loss() {
    // RFC 6582 §3.2 step 2 and §4: duplicates after a timeout.
    let mut b = Bench::new(NEWRENO, 4);
    assert_eq!(b.fire(), Fired::Rto);
    assert_eq!(b.repair(), [0, 1, 2, 3]);
    let now = b.now + 10;
    assert!(b.ack(now, 4, &[]).left_recovery);
    b.now = now;
    b.send(4);
    for _ in 0..4 {
        assert!(!b.duplicate(now + 1, 4).entered_recovery);
    }
    b.ack(now + 2, 5, &[]);
    for i in 0..3 {
        assert_eq!(b.duplicate(now + 3, 5).entered_recovery, i == 2, "beyond the old episode they count again");
    }
}

#[test]
fn a_dsack_for_a_retransmission_says_it_was_not_needed() {
    let mut b = Bench::new(COUNT, 6);
    assert!(!b.ack_with(99, 0, &[], |ack| ack.dsack = Some(Bench::seg(0))).spurious, "nothing was retransmitted");
    b.ack(100, 0, &[(1, 4)]);
    b.repair();
    b.ack(101, 6, &[]);
    assert!(b.ack_with(200, 6, &[], |ack| ack.dsack = Some(Bench::seg(0))).spurious);
    assert!(!b.ack_with(201, 6, &[], |ack| ack.dsack = Some(Bench::seg(0))).spurious, "once");
}

/// Needless retransmissions do not restore the old window if losses and reordering come together, as through a full
/// queue: seen against Linux, where a window that never fell overran the path for as long as it lasted.
#[test]
fn a_reduction_is_undone_when_no_retransmission_was_needed_and_not_before() {
    let mut b = Bench::new(COUNT, 8);
    b.ack(100, 0, &[(2, 7)]);
    assert_eq!(b.repair(), [0, 1]);
    b.ack(101, 8, &[]);
    let mut dsack = |n| b.ack_with(200, 8, &[], |ack| ack.dsack = Some(Bench::seg(n)));
    let out = dsack(0);
    assert!(out.spurious && !out.undo, "the other may have been lost");
    let out = dsack(1);
    assert!(out.spurious && out.undo);
    assert!(!dsack(1).undo, "once");

    // Twice retransmitted and once received twice: one of the three transmissions was lost.
    let mut b = Bench::new(RACK, 8);
    b.ack(100, 0, &[(1, 4)]);
    assert_eq!(b.repair(), [0]);
    let now = loop {
        if matches!(b.fire(), Fired::Rto) {
            break b.now;
        }
    };
    b.repair();
    b.ack(now + 100, 8, &[]);
    assert!(!b.ack_with(now + 101, 8, &[], |ack| ack.dsack = Some(Bench::seg(0))).undo);
}

#[test]
fn an_echo_older_than_the_retransmission_says_so_too() {
    // RFC 3522; the echo is of time 0, the retransmission of 100 ms.
    let mut b = Bench::new(COUNT, 6);
    b.ack(100, 0, &[(1, 4)]);
    b.repair();
    assert!(b.ack_with(110, 6, &[], |ack| ack.rtt_from_timestamp = Some(ms(110))).spurious);
}

#[test]
fn hostile_blocks_change_nothing() {
    for config in [RACK, COUNT] {
        let mut b = Bench::new(config, 10);
        b.ack(100, 2, &[]);
        let before = b.r.totals();
        let out = b.ack_with(100, 2, &[], |ack| {
            ack.sack = &[(0, 1), (1, 2001), (u64::MAX - 1, u64::MAX), (2001, 3000), (10_001, 90_000), (5, 5), (9, 3)];
        });
        assert_eq!((out.delivered, b.r.totals()), (0, before));
        assert_eq!(b.ack_with(100, 1, &[], |ack| ack.ack = 5).acked, 0);
        assert_eq!(b.ack_with(100, 1, &[], |ack| ack.ack = u64::MAX).acked, 8 * MSS);
        b.r.on_retransmit(b.at(), 12345, &b.rtt);
        assert!(b.r.is_empty() && b.r.next_retransmission().is_none() && b.r.probe_candidate().is_none());
    }
}

#[test]
fn a_large_window_with_every_other_segment_lost_costs_no_walks() {
    // 20,000 segments; a quadratic scoreboard would need minutes here.
    for config in [RACK, COUNT] {
        let n = 20_000;
        let mut b = Bench::new(config, n);
        b.now = 100;
        let at = b.at();
        let mut lost = 0;
        for i in (1..n).step_by(2) {
            let (low, high) = (Bench::seg(i), Bench::seg(i.saturating_sub(2).max(1)));
            let ack = AckIn { ack: 1, sack: &[low, high], dsack: None, is_duplicate: false, rtt_from_timestamp: None };
            lost += b.r.on_ack(at, &ack, &b.rtt).newly_lost;
            b.r.rearm(at, &b.rtt);
            if let Some(sent) = b.r.next_retransmission() {
                b.r.on_retransmit(at, sent.start, &b.rtt);
            }
        }
        assert!(lost >= n as u32 / 2 - 3);
        assert_eq!(b.r.totals(), b.r.recompute());
        for i in (2..=n).step_by(2) {
            b.r.on_ack(
                at,
                &AckIn { ack: 1 + i * MSS, sack: &[], dsack: None, is_duplicate: false, rtt_from_timestamp: None },
                &b.rtt,
            );
        }
        assert!(b.r.is_empty());
    }
}

/// RFC 2018 §8: the peer throws away what it had reported, and reports it once more after the timeout. The second
/// report says nothing of the round trip: it comes long after the segment left.
#[test]
fn what_is_reported_again_after_reneging_is_no_rtt_sample() {
    let mut b = Bench::new(COUNT, 4);
    assert_eq!(b.ack(100, 0, &[(1, 4)]).rtt, Some(ms(100)));
    // All before segment 1 is acknowledged, and segment 1 is not, although it was reported: it is gone.
    b.ack(100, 1, &[]);
    assert_eq!(b.fire(), Fired::Rto);
    // The window is one segment after a timeout: the others wait, and have not been sent again when they are reported
    // again.
    assert_eq!(b.r.next_retransmission().map(|sent| sent.start), Some(Bench::seg(1).0));
    b.r.on_retransmit(b.at(), Bench::seg(1).0, &b.rtt);
    assert_eq!(b.ack(60_000, 1, &[(2, 4)]).rtt, None);
    assert_eq!(b.ack(60_100, 4, &[]).rtt, None);
    assert_eq!(b.rtt.srtt(), Some(ms(100)));
}
