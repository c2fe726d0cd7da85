//! LIA as Linux' MPTCP v0.91 to v0.95 has it: whole segments, one per ACK, and a best path found in whole numbers.
//!
//! From `net/mptcp/mptcp_coupled.c` (`mptcp_ccc_recalc_alpha`, `mptcp_ccc_cong_avoid`, `mptcp_ccc_set_state`). With
//! windows in segments and `s` for eight times SRTT in microseconds (`srtt_us`):
//! ```text
//! b      = argmax_i ⌊2³² · cwnd_i / s_i²⌋                  of equals the subflow that is there longest
//! alpha  = ⌊2³² · cwnd_b / (Σ_i ⌊2¹⁰ · cwnd_i · s_b / s_i⌋)²⌋, at least 1
//! need   = max(⌊2¹² / alpha⌋, cwnd)
//! cwnd  += 1 once more than `need` ACKs have come, whatever each acknowledges
//! ```
//! It departs from [`Lia`](super::Lia), RFC 6356, in what decides:
//! - `s²` was made for SRTT in jiffies. In microseconds it leaves next to nothing of `2³² · cwnd`: at 60 ms a window
//!   below 54 segments counts 0, one of 108 counts 2. The best path is often taken for another one, and `alpha` is too
//!   small then.
//! - A delayed ACK counts once for its two segments, so that windows grow half as fast.
//! - `alpha` is from the latest change: of a window here, of the state of any subflow, or an ACK in slow start.
//!
//! Differences: the state "disorder" (a duplicate ACK without a loss) does not renew `alpha`, as nothing else has
//! changed then.

use super::{Ack, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use anabranch_units::{Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "lia-kernel",
    "lia as Linux' MPTCP v0.9x has it: one count per ACK, the best path in whole numbers",
    include_str!("lia_kernel.rs"),
    |_| CongestionControl::window_based(LiaKernel::default()),
)
.paper("Linux MPTCP v0.94");

/// Linked increases of the kernel over the subflows of one connection.
#[derive(Clone, Debug, Default)]
pub struct LiaKernel {
    /// ACKs counted since the window last grew (`snd_cwnd_cnt`).
    counts: PerFlow<u64>,
    /// `None` where it must be computed anew (`forced_update`).
    alpha: Option<u64>,
}

impl WindowBased for LiaKernel {
    fn on_ack(&mut self, _now: Instant, on: usize, _ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        if flows[on].cwnd < flows[on].ssthresh {
            self.alpha = None;
        }
        None
    }

    fn avoidance(&mut self, _now: Instant, on: usize, _acked: Window, flows: &[Flow]) -> Window {
        let cwnd = segments(&flows[on]);
        let alpha = *self.alpha.get_or_insert_with(|| alpha(flows));
        let need = ((1 << ALPHA_SCALE) / alpha).max(cwnd);
        let count = self.counts.of(&flows[on]);
        if *count < need {
            *count += 1;
            return Window::ZERO;
        }
        *count = 0;
        self.alpha = None;
        flows[on].segment()
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, _in_flight: Window, flows: &[Flow]) -> Window {
        *self.counts.of(&flows[on]) = 0;
        self.alpha = None;
        flows[on].segments((segments(&flows[on]) / 2).max(2) as f64)
    }

    fn on_recovered(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {
        self.alpha = None;
    }

    fn on_reset(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {
        self.alpha = None;
    }

    fn on_flows_changed(&mut self) {
        self.alpha = None;
    }
}

fn segments(flow: &Flow) -> u64 {
    (flow.cwnd_segments() as u64).clamp(1, u64::from(u32::MAX))
}

/// `mptcp_ccc_recalc_alpha`.
fn alpha(flows: &[Flow]) -> u64 {
    let members = flows.iter().filter(|flow| flow.counted).filter_map(|flow| {
        // `srtt_us` is a number of 32 bits.
        let scaled = (flow.srtt?.as_nanos() / 125).clamp(1, u64::from(u32::MAX));
        Some((segments(flow), scaled))
    });
    // The kernel's list has the newest subflow first, and takes the last of equals.
    let best = members.clone().rev().max_by_key(|(cwnd, srtt)| (cwnd << NUMERATOR_SCALE) / srtt.saturating_mul(*srtt));
    let Some((best_cwnd, best_srtt)) = best else { return 1 };
    let sum: u64 = members.map(|(cwnd, srtt)| (cwnd << DENOMINATOR_SCALE).saturating_mul(best_srtt) / srtt).sum();
    let square = sum.saturating_mul(sum).max(1);
    ((best_cwnd << NUMERATOR_SCALE) / square).max(1)
}

/// `alpha_scale_num`, `alpha_scale_den` and `alpha_scale`: powers of two.
const NUMERATOR_SCALE: u32 = 32;
const DENOMINATOR_SCALE: u32 = 10;
const ALPHA_SCALE: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use anabranch_units::{Bytes, Duration, SubflowId};

    /// Windows are counted in segments here: the MSS is 1.
    fn flow(id: u16, cwnd: f64, rtt_ms: u64) -> Flow {
        let srtt = Some(Duration::from_millis(rtt_ms));
        Flow {
            id: SubflowId(id),
            key: FlowKey::nth(id),
            mss: Bytes::new(1),
            cwnd: Window::new(cwnd),
            ssthresh: Window::new(1.0),
            srtt,
            recovering: false,
            counted: true,
        }
    }

    /// Whole numbers by hand: s = 160,000 and 480,000; 2³² · 8 / s² = 1.34, 2³² · 54 / s² = 1.007, 2³² · 53 / s² =
    /// 0.99.
    #[test]
    fn the_best_path_is_found_in_whole_numbers() {
        // Equal at 1: the older. Σ = 8192 + ⌊54 · 1024 / 3⌋ = 26,624; 2³² · 8 / 26,624² = 48.5. RFC 6356 has 48.5 as
        // well.
        assert_eq!(alpha(&[flow(0, 8.0, 20), flow(1, 54.0, 60)]), 48);
        // 1 and 2: the newer. Σ = 3 · 8192 + 110,592 = 135,168; 2³² · 108 / 135,168² = 25.4.
        assert_eq!(alpha(&[flow(0, 8.0, 20), flow(1, 108.0, 60)]), 25);
        // 0 and 0: the older, although the newer has 2³² · 53 / s² = 0.99 to 0.84: Σ = 5120 + 18,090; alpha 39.8, not
        // 47.3.
        assert_eq!(alpha(&[flow(0, 5.0, 20), flow(1, 53.0, 60)]), 39);
    }

    /// One subflow: alpha is ⌊4096 / cwnd⌋, so that a window of 10 takes eleven ACKs, of whatever size.
    #[test]
    fn an_ack_counts_once() {
        let mut lia = LiaKernel::default();
        let flows = [flow(0, 10.0, 30)];
        let grown: Vec<f64> =
            (0..22).map(|_| lia.avoidance(Instant::ZERO, 0, Window::new(2.0), &flows).as_f64()).collect();
        assert_eq!(grown.iter().position(|by| *by > 0.0), Some(10));
        assert_eq!(grown.iter().sum::<f64>(), 2.0);
    }

    /// Two of 10 segments at 100 ms: Σ = 20,480, alpha = 2³² · 10 / 20,480² = 102, 4096 / 102 = 40 ACKs.
    #[test]
    fn linked_subflows_wait_longer_than_their_window() {
        let mut lia = LiaKernel::default();
        let flows = [flow(0, 10.0, 100), flow(1, 10.0, 100)];
        assert_eq!(
            (0..41).map(|_| lia.avoidance(Instant::ZERO, 1, Window::new(1.0), &flows).as_f64()).sum::<f64>(),
            1.0
        );
        // A loss begins the count anew, and leaves half of the window in whole segments.
        (0..30).for_each(|_| _ = lia.avoidance(Instant::ZERO, 1, Window::new(1.0), &flows).as_f64());
        assert_eq!(
            lia.on_fast_retransmit(Instant::ZERO, 1, Window::new(3.0), &[flow(0, 10.0, 100), flow(1, 11.9, 100)])
                .as_f64(),
            5.0
        );
        assert_eq!(
            (0..40).map(|_| lia.avoidance(Instant::ZERO, 1, Window::new(1.0), &flows).as_f64()).sum::<f64>(),
            0.0
        );
    }
}
