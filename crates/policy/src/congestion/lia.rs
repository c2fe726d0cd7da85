//! LIA: subflows that together take what one TCP would on the best of their paths.
//!
//! C. Raiciu, M. Handley, D. Wischik. *Coupled Congestion Control for Multipath Transport Protocols.* RFC 6356, §3.
//!
//! `acked` bytes on subflow `i` earn
//! ```text
//! min(alpha · acked · mss_i / cwnd_total, acked · mss_i / cwnd_i)                  (1)
//! alpha = cwnd_total · max_i(cwnd_i / rtt_i²) / (Σ_i cwnd_i / rtt_i)²              (2)
//! ```
//! bytes. `cwnd_total` cancels, so it is never summed. All else is NewReno; with one subflow so is (1). A subflow in
//! recovery counts with its ssthresh; one without RTT sample is left out, and grows like NewReno should it be used.

use super::coupled::{LISA, linked, members};
use super::{CongestionControl, Entry, Flow, WindowBased};
use anabranch_units::{Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "lia",
    "linked increases: all subflows together grow like one TCP on the best path",
    include_str!("lia.rs"),
    |_| CongestionControl::window_based(Lia),
)
.paper("RFC 6356")
.parameters(&[LISA.parameter()])
.capabilities(linked);

/// Linked increases over the subflows of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

impl WindowBased for Lia {
    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        linked_increase(on, acked, flows)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, _on: usize, in_flight: Window, _flows: &[Flow]) -> Window {
        in_flight / 2.0 // RFC 6356 §3 leaves the decrease as it is.
    }
}

/// Eq. (1), multiplied from the left.
pub(super) fn linked_increase(on: usize, acked: Window, flows: &[Flow]) -> Window {
    let flow = &flows[on];
    let alone = 1.0 / flow.cwnd.as_f64();
    let linked = flow.counted && flow.srtt.is_some();
    let per_byte = coupling(flows).filter(|_| linked).map_or(alone, |coupled| coupled.min(alone));
    Window::new(acked.as_f64() * flow.mss.as_f64() * per_byte)
}

/// `alpha / cwnd_total` \[1/bytes\] of Eq. (2); `None` if no subflow counts.
fn coupling(flows: &[Flow]) -> Option<f64> {
    let (mut best, mut rates) = (0.0_f64, 0.0);
    for member in members(flows) {
        best = best.max(member.rate() / member.rtt);
        rates += member.rate();
    }
    (rates > 0.0).then(|| best / (rates * rates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use crate::congestion::coupled::window;
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

    fn alpha(flows: &[Flow]) -> f64 {
        coupling(flows).expect("every flow of the test counts") * flows.iter().map(window).sum::<Window>().as_f64()
    }

    fn increment(on: usize, flows: &[Flow]) -> f64 {
        Lia.avoidance(Instant::ZERO, on, Window::new(1.0), flows).as_f64()
    }

    /// Vectors of an independent script, to six digits.
    #[test]
    fn worked_example() {
        assert!((alpha(&[flow(0, 10.0, 100), flow(1, 10.0, 100)]) - 0.5).abs() < 1e-12);
        // cwnd 10, 20; RTT 0.01, 0.1 s: 30 · max(10/0.0001, 20/0.01) / (10/0.01 + 20/0.1)² = 3e6 / 1.44e6
        let flows = [flow(0, 10.0, 10), flow(1, 20.0, 100)];
        assert!((alpha(&flows) - 2.08333).abs() < 5e-6);
        assert!((increment(0, &flows) - 0.069444).abs() < 5e-7); // 2.08333 / 30 < 1/10
        assert!((increment(1, &flows) - 0.05).abs() < 1e-12); // capped: 1/20 < 2.08333 / 30
    }

    #[test]
    fn one_subflow_grows_like_reno() {
        let flows = [flow(0, 10.0, 30), Flow { counted: false, ..flow(1, 50.0, 10) }];
        assert!((increment(0, &flows) - 0.1).abs() < 1e-12);
        assert!((increment(1, &flows) - 0.02).abs() < 1e-12);
        let unmeasured = [flow(0, 10.0, 30), Flow { srtt: None, ..flow(1, 5.0, 10) }];
        assert!((increment(0, &unmeasured) - 0.1).abs() < 1e-12);
        assert!((increment(1, &unmeasured) - 0.2).abs() < 1e-12);
    }

    /// Throw-away Python: 500² · min(6.944e-5, 1/10⁴) and 1500² · min(6.944e-5, 1/(2·10⁴)) bytes per segment.
    #[test]
    fn unequal_segments_are_summed_in_bytes() {
        let flows = [
            Flow { mss: Bytes::new(500), ..flow(0, 10_000.0, 10) },
            Flow { mss: Bytes::new(1500), ..flow(1, 20_000.0, 100) },
        ];
        for (on, increment) in [(0, 17.361111), (1, 112.5)] {
            let got = Lia.avoidance(Instant::ZERO, on, flows[on].segment(), &flows).as_f64();
            assert!((got - increment).abs() < 1e-6, "{on}: {got}");
        }
    }

    #[test]
    fn a_recovering_subflow_counts_with_its_ssthresh() {
        let recovering =
            [flow(0, 10.0, 10), Flow { ssthresh: Window::new(20.0), recovering: true, ..flow(1, 3.0, 100) }];
        assert!((increment(0, &recovering) - 0.069444).abs() < 5e-7);
    }
}
