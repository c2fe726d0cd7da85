//! BALIA: coupled increases balanced between friendliness to TCP, responsiveness and quiet windows.
//!
//! A. Walid, Q. Peng, J. Hwang, S. Low. *Balanced Linked Adaptation Congestion Control Algorithm for MPTCP.*
//! draft-walid-mptcp-congestion-control.
//!
//! With windows in segments, `x_i = w_i / rtt_i` and `α_i = max_k x_k / x_i`:
//! ```text
//! w_i += (x_i / rtt_i) / (Σ_k x_k)² · (1 + α_i)/2 · (4 + α_i)/5     per acknowledged segment     (1)
//! w_i −= (w_i / 2) · min(α_i, 1.5)                                  on loss                      (2)
//! ```
//! With one subflow α is 1, and both are NewReno's. A subflow in recovery counts with its ssthresh.
//!
//! Where we differ: bytes stand for segments; α is a real number also in the decrease, where the kernel's is an
//! integer; a decrease leaves at least two segments, as for every threshold here (the draft: one).

use super::coupled::{LISA, alone, linked, members};
use super::{CongestionControl, Entry, Flow, WindowBased};
use anabranch_units::{Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "balia",
    "linked increases and decreases, balanced between friendliness and responsiveness",
    include_str!("balia.rs"),
    |_| CongestionControl::window_based(Balia),
)
.paper("Walid 2014")
.parameters(&[LISA.parameter()])
.capabilities(linked);

/// Balanced linked adaptation over the subflows of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia;

/// `x_i / rtt_i`, `Σ x` and α of a flow that counts, rates in bytes per nanosecond.
fn terms(on: usize, flows: &[Flow]) -> Option<(f64, f64, f64)> {
    let (mut best, mut rates) = (0.0_f64, 0.0);
    for member in members(flows) {
        best = best.max(member.rate());
        rates += member.rate();
    }
    let member = members(flows).find(|member| member.on == on).filter(|member| member.window.is_positive())?;
    Some((member.rate() / member.rtt, rates, best / member.rate()))
}

impl WindowBased for Balia {
    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        let flow = &flows[on];
        let Some((steepness, rates, alpha)) = terms(on, flows) else {
            return alone(flow, acked);
        };
        let coupled = steepness / (rates * rates) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0;
        Window::new(acked.as_f64() * flow.mss.as_f64() * coupled) // Eq. (1), multiplied from the left
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        let alpha = terms(on, flows).map_or(1.0, |(_, _, alpha)| alpha);
        in_flight - in_flight / 2.0 * alpha.min(MOST_OF_HALF) // Eq. (2)
    }
}

/// A loss takes three quarters of a window at most.
const MOST_OF_HALF: f64 = 1.5;

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

    fn growth(on: usize, acked: f64, flows: &[Flow]) -> f64 {
        Balia.avoidance(Instant::ZERO, on, Window::new(acked), flows).as_f64()
    }

    fn loss(on: usize, in_flight: f64, flows: &[Flow]) -> f64 {
        Balia.on_fast_retransmit(Instant::ZERO, on, Window::new(in_flight), flows).as_f64()
    }

    /// Vectors of an independent script, to six digits.
    #[test]
    fn worked_example() {
        let flows = [flow(0, 10.0, 10), flow(1, 20.0, 100)];
        for (on, alpha, increment, decrease) in [(0, 1.0, 0.069444, 5.0), (1, 5.0, 0.0075, 15.0)] {
            assert!((terms(on, &flows).expect("it counts").2 - alpha).abs() < 1e-12);
            assert!((growth(on, 1.0, &flows) - increment).abs() < 5e-7);
            let left = loss(on, flows[on].cwnd.as_f64(), &flows);
            assert!((flows[on].cwnd.as_f64() - left - decrease).abs() < 1e-12, "{on}");
        }
    }

    /// The kernel adds a segment per `10 · w (Σx)² / ((x + max)(4x + max))` ACKs; three paths, throw-away Python.
    #[test]
    fn agrees_with_the_form_of_the_kernel() {
        let flows = [flow(0, 12.0, 20), flow(1, 30.0, 60), flow(2, 7.0, 35)];
        for (on, increment, left) in [(0, 0.0177514793, 6.0), (1, 0.0056410256, 12.0), (2, 0.0094674556, 1.75)] {
            let got = growth(on, 1.0, &flows);
            let kept = loss(on, flows[on].cwnd.as_f64(), &flows);
            assert!((got - increment).abs() < 1e-9 && (kept - left).abs() < 1e-9, "{on}: {got} {kept}");
        }
    }

    #[test]
    fn one_subflow_is_reno() {
        let flows = [flow(0, 10.0, 30), Flow { counted: false, ..flow(1, 50.0, 10) }];
        for (on, increment) in [(0, 0.1), (1, 0.02)] {
            assert!((growth(on, 1.0, &flows) - increment).abs() < 1e-12);
            assert_eq!(loss(on, 30.0, &flows), 15.0);
        }
    }

    #[test]
    fn a_recovering_subflow_counts_with_its_ssthresh() {
        let flows = [flow(0, 10.0, 10), Flow { ssthresh: Window::new(20.0), recovering: true, ..flow(1, 3.0, 100) }];
        assert!((growth(0, 1.0, &flows) - 0.069444).abs() < 5e-7);
    }

    /// Twice the bytes in twice the segment size are the same window.
    #[test]
    fn unequal_segments_are_summed_in_bytes() {
        let equal = [flow(0, 10.0, 10), flow(1, 20.0, 100)];
        let unequal = [Flow { mss: Bytes::new(2), ..flow(0, 10.0, 10) }, flow(1, 20.0, 100)];
        let growth = |flows: &[Flow], on: usize| growth(on, flows[on].mss.as_f64(), flows);
        assert!((growth(&unequal, 0) / growth(&equal, 0) - 4.0).abs() < 1e-12); // twice the bytes, each worth twice
        assert_eq!(growth(&unequal, 1), growth(&equal, 1));
    }
}
