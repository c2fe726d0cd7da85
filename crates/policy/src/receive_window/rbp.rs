//! Receive-buffer pre-division: each subflow gets the part of the peer's buffer that it is expected to occupy.
//!
//! J. Han, K. Xue, H. Yue, P. Hong, N. Yu, F. Li. *Receive Buffer Pre-division Based Flow Control for MPTCP.* 2017.
//!
//! ```text
//! acwnd_i  <- (1 - β) · acwnd_i + β · cwnd_i                                                     (1)
//! Buf_i     = acwnd_i · (⌈ max_{j≠i} RTT_j / (2 · RTT_i) + 1/2 ⌉ + 1/2)                          (2)
//! B_i       = receive_buffer · Buf_i / Σ Buf_k                                                   (3)
//! rwnd_i    = 0 if B_i <= unacked_i,
//!             else window · (B_i - unacked_i) / Σ_{B_k > unacked_k} (B_k - unacked_k)            (4)
//! may send while min(cwnd_i, rwnd_i) - outstanding_i > 0                                         (5, 6)
//! ```
//!
//! `unacked` (the paper's *unordered*) counts the bytes without a DATA_ACK, at the subflow that carried them first
//! (A-RBP-5); `outstanding` counts the bytes not acknowledged on the subflow itself. Eq. 2: while a segment of the
//! slowest subflow is under way, subflow i sends K or K - 1 windows past it, each as likely, and has one more in
//! flight.
//!
//! Left open by the paper: the receive buffer is the largest window the peer ever advertised (A-RBP-1). "When cwnd
//! changes" is taken as once for each segment that a subflow acknowledges, and once for a change that came without one,
//! such as a timeout; `per_rtt` makes the average independent of how many there are (A-RBP-2). Eq. 4 is taken anew
//! whenever something may leave. A window below a segment counts as none unless nothing is outstanding (A-RBP-7,
//! `whole_segments`). The ceiling makes the shares jump where the ratio of RTTs passes 1, 3, 5, …; with `hysteresis` it
//! must pass such a step by that part of it. There are no other differences; Eq. 5's cwnd is enforced by the engine.
//!
//! Cost: Eq. 1 follows cwnd, and cwnd does not grow while the share is the limit (the profile's `cwnd_limited_check`).
//! A subflow that lost once therefore gets a smaller share, and is slow to win it back. In the paper's scenario with
//! equal delays of 50 ms this is 5.82 Mbit/s against 5.94 with a shared window, and without that check 6.22 against
//! 6.14.

use super::{Buffers, Entry, ReceiveWindow, Usage};
use crate::forecast::number::powi;
use crate::registry::{Flag, Number, flag, number};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "rbp",
    "divided by the part of the buffer that each subflow is expected to occupy",
    include_str!("rbp.rs"),
    |p| Box::new(Rbp::new(BETA.of(p), PER_RTT.of(p), HYSTERESIS.of(p), WHOLE_SEGMENTS.of(p))),
)
.paper("Han et al. 2017")
.parameters(&[BETA.parameter(), PER_RTT.parameter(), HYSTERESIS.parameter(), WHOLE_SEGMENTS.parameter()]);

const BETA: Number = number("beta", "β, the weight of the latest cwnd in its average (Eq. 1)", 0.0625, 0.0001..=1.0);
const PER_RTT: Flag =
    flag("per_rtt", "average cwnd once per round trip, not once per acknowledged segment (A-RBP-2)", false);
const HYSTERESIS: Number = number(
    "hysteresis",
    "margin by which an RTT ratio must pass a step of Eq. 2 before the shares jump, as a part of it",
    0.0,
    0.0..=0.5,
);
const WHOLE_SEGMENTS: Flag =
    flag("whole_segments", "a window below one segment counts as none while anything is outstanding (A-RBP-7)", true);

/// RBP for one connection.
#[derive(Clone, Debug)]
pub struct Rbp {
    /// β of Eq. 1.
    beta: f64,
    per_rtt: bool,
    hysteresis: f64,
    whole_segments: bool,
    /// Usable subflows at the last call.
    subflows: Vec<Subflow>,
}

/// State of a subflow, with the intermediate results of Eqs. 2 to 4.
#[derive(Clone, Copy, Debug)]
struct Subflow {
    id: SubflowId,
    /// \[bytes\]
    acwnd: f64,
    cwnd: Bytes,
    /// Its cumulative acknowledgment up to where segments were counted.
    counted: u64,
    averaged: Instant,
    /// The ceiling of Eq. 2; 0 before there was one.
    windows: u64,
    /// B_i - unacked_i \[bytes\].
    left: f64,
}

impl Rbp {
    /// RBP with weight `beta` of Eq. 1 and the switches of the module's documentation.
    pub fn new(beta: f64, per_rtt: bool, hysteresis: f64, whole_segments: bool) -> Self {
        Rbp { beta, per_rtt, hysteresis, whole_segments, subflows: Vec::new() }
    }

    /// Remembers who is there now; a subflow that is new, or back, begins with its present window.
    fn follow(&mut self, now: Instant, usage: &[Usage]) {
        let known = self.subflows.len() == usage.len();
        if known && self.subflows.iter().zip(usage).all(|(subflow, one)| subflow.id == one.id) {
            return;
        }
        let before = std::mem::take(&mut self.subflows);
        self.subflows = usage
            .iter()
            .map(|one| {
                let old = before.iter().find(|subflow| subflow.id == one.id).copied();
                old.unwrap_or(Subflow {
                    id: one.id,
                    acwnd: one.cwnd.as_f64(),
                    cwnd: one.cwnd,
                    counted: one.acked,
                    averaged: now,
                    windows: 0,
                    left: 0.0,
                })
            })
            .collect();
    }
}

impl Subflow {
    /// Eq. 1.
    fn average(&mut self, now: Instant, one: &Usage, beta: f64, per_rtt: bool) {
        let times = if per_rtt {
            u32::from(now.since(self.averaged) >= one.srtt.max(Duration::from_nanos(1)))
        } else {
            let segments = one.acked.saturating_sub(self.counted) / one.mss.get().max(1);
            self.counted += segments * one.mss.get();
            match u32::try_from(segments).unwrap_or(u32::MAX) {
                0 => u32::from(one.cwnd != self.cwnd),
                segments => segments,
            }
        };
        self.cwnd = one.cwnd;
        let cwnd = one.cwnd.as_f64();
        match times {
            0 => return,
            1 => self.acwnd += beta * (cwnd - self.acwnd),
            times => self.acwnd = cwnd + (self.acwnd - cwnd) * powi(1.0 - beta, times),
        }
        self.averaged = now;
    }

    /// The ceiling of Eq. 2, in whole numbers: ⌈other/(2·own) + 1/2⌉ = ⌈(other + own) / (2·own)⌉.
    fn count_windows(&mut self, other: Duration, own: Duration, hysteresis: f64) {
        let (other, own) = (other.as_nanos(), own.as_nanos().max(1));
        let windows = other.saturating_add(own).div_ceil(own.saturating_mul(2));
        // The step between K and K + 1 is where the ratio is 2K - 1.
        let passed = match self.windows {
            0 => true,
            old if hysteresis == 0.0 || windows == old => true,
            old => {
                let ratio = other as f64 / own as f64;
                let step = |below: u64| (2 * below) as f64 - 1.0;
                if windows > old {
                    ratio > step(old) * (1.0 + hysteresis)
                } else {
                    ratio <= step(old - 1) * (1.0 - hysteresis)
                }
            }
        };
        if passed {
            self.windows = windows;
        }
    }
}

impl ReceiveWindow for Rbp {
    fn share(&mut self, now: Instant, buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]) {
        self.follow(now, usage);
        // The slowest of all will do for the slowest of the others: the slowest itself has one window either way.
        let slowest = usage.iter().map(|one| one.srtt).max().unwrap_or(Duration::ZERO);
        let mut total = 0.0;
        for (subflow, one) in self.subflows.iter_mut().zip(usage) {
            subflow.average(now, one, self.beta, self.per_rtt);
            subflow.count_windows(slowest, one.srtt, self.hysteresis);
            subflow.left = subflow.acwnd * (subflow.windows as f64 + 0.5);
            total += subflow.left;
        }
        let (receive, mut sum) = (buffers.receive.as_f64(), 0.0);
        for (subflow, one) in self.subflows.iter_mut().zip(usage) {
            let part = if total > 0.0 { subflow.left / total } else { 1.0 / usage.len() as f64 };
            subflow.left = receive * part - one.unacked.as_f64();
            sum += subflow.left.max(0.0);
        }
        let idle = usage.iter().all(|one| one.unacked.is_zero() && one.outstanding.is_zero());
        for ((subflow, one), share) in self.subflows.iter().zip(usage).zip(shares) {
            *share = Bytes::ZERO;
            if subflow.left > 0.0 {
                let window = buffers.window.as_f64() * subflow.left / sum;
                if idle || !self.whole_segments || window >= one.mss.as_f64() {
                    // A byte at least, so that an idle connection can always begin.
                    *share = Bytes::new(((window + 0.5) as u64).max(1)).saturating_sub(one.outstanding);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive_window::testing::{MSS, buffers, shares, shares_at, subflow};

    fn rbp() -> Rbp {
        Rbp::new(1.0 / 16.0, false, 0.0, true)
    }

    /// rwnd_i of Eq. 4: nothing is subtracted as outstanding.
    fn windows(usage: &mut [Usage], window: u64, receive: u64) -> Vec<u64> {
        usage.iter_mut().for_each(|one| one.outstanding = Bytes::ZERO);
        shares(&mut rbp(), &buffers(window, receive), usage)
    }

    /// Vectors of an independent script.
    #[test]
    fn vectors_of_a_script() {
        let mut usage = [subflow(0, 20, 20, 14_000), subflow(1, 100, 20, 28_000)];
        assert_eq!(windows(&mut usage, 131_072, 131_072), [114_412, 16_660]);
        let mut usage = [subflow(0, 40, 20, 14_000), subflow(1, 100, 20, 140_000)];
        assert_eq!(windows(&mut usage, 100_000, 131_072), [100_000, 0]);
        // Eq. 3 by itself, while nothing is sent: Buf = (70, 30).
        let mut usage = [subflow(0, 20, 20, 0), subflow(1, 100, 20, 0)];
        assert_eq!(windows(&mut usage, 131_072, 131_072), [91_750, 39_322]);
    }

    /// Our own, from a throw-away script in exact fractions: three subflows with K = (4, 2, 1), Buf = (54, 62.5, 12).
    #[test]
    fn three_subflows() {
        let mut usage = [subflow(0, 30, 12, 20_000), subflow(1, 70, 25, 60_000), subflow(2, 200, 8, 10_000)];
        assert_eq!(windows(&mut usage, 250_000, 300_000), [126_274, 102_279, 21_447]);
        usage[1].unacked = Bytes::new(190_000);
        assert_eq!(windows(&mut usage, 250_000, 300_000), [213_703, 0, 36_297]);
    }

    /// The same script: the ceiling of Eq. 2 steps up just beyond the ratios 1, 3 and 5.
    #[test]
    fn the_steps_of_the_ceiling() {
        let rows = [
            ((50, 50), [70_000, 70_000]),
            ((49, 50), [87_500, 52_500]),
            ((10, 30), [87_500, 52_500]),
            ((10, 31), [98_000, 42_000]),
            ((10, 50), [98_000, 42_000]),
            ((10, 51), [105_000, 35_000]),
        ];
        for ((fast, slow), parts) in rows {
            let mut usage = [subflow(0, fast, 10, 0), subflow(1, slow, 10, 0)];
            assert_eq!(windows(&mut usage, 140_000, 140_000), parts, "{fast} {slow}");
        }
    }

    /// Steps at ratio 3 with 5 %: up beyond 3.15, down below 2.85.
    #[test]
    fn hysteresis_holds_a_share_near_a_step() {
        let walk = [29, 30, 31, 32, 30, 29, 28, 30];
        let fast_share = |policy: &mut Rbp| {
            walk.map(|slow| {
                let usage = [subflow(0, 10, 10, 0), subflow(1, slow, 10, 0)];
                shares(policy, &buffers(140_000, 140_000), &usage)[0] / 500
            })
        };
        let (two, three) = (175, 196);
        assert_eq!(fast_share(&mut rbp()), [two, two, three, three, two, two, two, two]);
        let mut patient = Rbp::new(1.0 / 16.0, false, 0.05, true);
        assert_eq!(fast_share(&mut patient), [two, two, two, three, three, three, two, two]);
    }

    /// Eq. 1 against the script: windows of 11, 13 and 6 segments, seen as 1, 2, 1 and 40 segments are acknowledged.
    /// With equal RTTs the shares are as the averages.
    #[test]
    fn the_window_is_averaged_per_acknowledged_segment() {
        let mut policy = rbp();
        let mut usage = [subflow(0, 50, 10, 0), subflow(1, 50, 10, 0)];
        let all = buffers(140_000, 140_000);
        assert_eq!(shares(&mut policy, &all, &usage), [70_000, 70_000]);
        for (cwnd, segments, parts) in
            [(11, 1, [70_218, 69_782]), (13, 2, [71_434, 68_566]), (6, 1, [70_494, 69_506]), (6, 40, [54_181, 85_819])]
        {
            usage[0].cwnd = Bytes::new(cwnd * MSS);
            usage[0].acked += segments * MSS;
            assert_eq!(shares(&mut policy, &all, &usage), parts);
            // Asked again with nothing new, it says the same.
            assert_eq!(shares(&mut policy, &all, &usage), parts);
        }
    }

    #[test]
    fn parts_of_segments_add_up_and_a_timeout_counts_once() {
        let (mut whole, mut parts) = (rbp(), rbp());
        let mut usage = [subflow(0, 50, 10, 0), subflow(1, 50, 10, 0)];
        let all = buffers(140_000, 140_000);
        shares(&mut whole, &all, &usage);
        shares(&mut parts, &all, &usage);
        // A timeout: the window falls without an acknowledgment, one step of 1/16 for both.
        usage[0].cwnd = Bytes::new(MSS);
        let fallen = shares(&mut whole, &all, &usage);
        // 10 - 9/16 against 10 segments.
        assert_eq!((fallen[0], shares(&mut parts, &all, &usage)[0]), (67_974, 67_974));
        for _ in 0..7 {
            usage[0].acked += MSS / 7;
            shares(&mut parts, &all, &usage);
        }
        assert_eq!(shares(&mut whole, &all, &usage), shares(&mut parts, &all, &usage));
        assert!(shares(&mut whole, &all, &usage)[0] < fallen[0]);
    }

    #[test]
    fn per_rtt_the_number_of_acknowledgments_does_not_matter() {
        let mut policy = Rbp::new(1.0 / 16.0, true, 0.0, true);
        let mut usage = [subflow(0, 50, 10, 0), subflow(1, 50, 10, 0)];
        let all = buffers(140_000, 140_000);
        shares_at(&mut policy, 0, &all, &usage);
        (usage[0].cwnd, usage[0].acked) = (Bytes::new(11 * MSS), 40 * MSS);
        assert_eq!(shares_at(&mut policy, 49, &all, &usage), [70_000, 70_000]);
        assert_eq!(shares_at(&mut policy, 50, &all, &usage), [70_218, 69_782]);
        usage[0].acked += 40 * MSS;
        assert_eq!(shares_at(&mut policy, 99, &all, &usage), [70_218, 69_782]);
    }

    /// A decision trace: the fast subflow (K = 3) goes on past its part, waits until a DATA_ACK, and goes on.
    #[test]
    fn a_subflow_with_too_much_out_of_order_waits() {
        let mut policy = rbp();
        let all = buffers(131_072, 131_072);
        let mut usage = [subflow(0, 20, 20, 0), subflow(1, 100, 20, 0)];
        let mut step = |fast: (u64, u64), slow: (u64, u64)| {
            for (one, (unacked, outstanding)) in usage.iter_mut().zip([fast, slow]) {
                (one.unacked, one.outstanding) = (Bytes::new(unacked), Bytes::new(outstanding));
            }
            shares(&mut policy, &all, &usage)
        };
        // Both shrink in proportion to the rest of each part.
        assert_eq!(step((45_875, 45_875), (19_661, 19_661)), [45_876, 19_660]);
        // The fast one's data waits at the peer for the slow one's: nothing is outstanding, and the part is used up.
        assert_eq!(step((91_751, 0), (19_661, 19_661)), [0, 111_411]);
        // A DATA_ACK frees 40 kB of it. B - unacked = (39999, 19661): the window is divided as 67 % to 33 %.
        assert_eq!(step((51_751, 0), (19_661, 19_661)), [87_878, 23_533]);
    }

    #[test]
    fn less_than_a_segment_is_nothing_unless_nothing_is_outstanding() {
        let all = buffers(2_000, 131_072);
        let usage = [subflow(0, 20, 20, 1_000), subflow(1, 100, 20, 0)];
        let mut loose = Rbp::new(1.0 / 16.0, false, 0.0, false);
        assert_eq!(shares(&mut loose, &all, &usage), [395, 605]);
        assert_eq!(shares(&mut rbp(), &all, &usage), [0, 0], "an acknowledgment of the thousand bytes comes first");
        let idle = [subflow(0, 20, 20, 0), subflow(1, 100, 20, 0)];
        assert_eq!(shares(&mut rbp(), &all, &idle), [1_400, 600]);
        assert_eq!(shares(&mut rbp(), &buffers(1, 131_072), &idle), [1, 1]);
    }

    /// A subflow that was away begins with its present window again; the others keep their averages.
    #[test]
    fn subflows_come_and_go() {
        let mut policy = rbp();
        let all = buffers(140_000, 140_000);
        let mut usage = [subflow(0, 50, 10, 0), subflow(1, 50, 10, 0), subflow(2, 50, 10, 0)];
        assert_eq!(shares(&mut policy, &all, &usage[..2]), [70_000, 70_000]);
        usage[0].cwnd = Bytes::new(26 * MSS);
        assert_eq!(shares(&mut policy, &all, &usage[..2]), [73_333, 66_667], "11 segments to 10");
        assert_eq!(shares(&mut policy, &all, &usage), [49_677, 45_161, 45_161], "11 to 10 to 10");
        assert_eq!(shares(&mut policy, &all, &usage[1..]), [70_000, 70_000]);
        assert_eq!(shares(&mut policy, &all, &usage[..2]), [101_111, 38_889], "26 to 10");
    }

    #[test]
    fn windows_of_nothing_are_shared_out_alike() {
        let usage = [subflow(0, 0, 0, 0), subflow(1, 0, 0, 0)];
        assert_eq!(shares(&mut rbp(), &buffers(10_000, 10_000), &usage), [5_000, 5_000]);
    }
}
