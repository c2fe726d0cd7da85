//! Data Center TCP: a fall in proportion to the share of marked bytes.
//!
//! S. Bensley, D. Thaler, P. Balasubramanian, L. Eggert, G. Judd. *Data Center TCP (DCTCP): TCP Congestion Control for
//! Data Centers.* RFC 8257; M. Alizadeh et al. *Data Center TCP (DCTCP).* SIGCOMM 2010.
//!
//! With `M` the share of the bytes of a round trip that were marked,
//! ```text
//! α = α · (1 − g) + g · M,  g = 1/16,  α = 1 at first      (§3.3, steps 5 and 6)
//! ssthresh = cwnd · (1 − α/2)  on a mark, once in a round trip      (step 9)
//! ```
//! Growth, losses and timeouts are NewReno's (§3.4, §3.5), and without ECN there is nothing more. The control is for
//! queues that mark early, in networks where all senders use it: beside others a flow takes more than its share.
//!
//! Where we differ: α stays 1 until the first mark, rather than to decay while nothing marks. Linux lets it decay, and
//! so takes a first mark, late, for a small one; RFC 8257 §4.2 leaves the initial value to the implementer.

use super::coupled::alone;
use super::marks::MarkedShare;
use super::{Ack, Capabilities, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use crate::registry::{Number, number};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "dctcp",
    "falls by half the share of bytes that a queue marked; each subflow by itself",
    include_str!("dctcp.rs"),
    |p| CongestionControl::window_based(Dctcp::new(GAIN.of(p))),
)
.paper("RFC 8257, Alizadeh 2010")
.parameters(&[GAIN.parameter()])
.capabilities(|_| Capabilities { precise_marks: true, ..Capabilities::default() });

pub(super) const GAIN: Number =
    number("gain", "g, weight of the latest round trip in α (RFC 8257 §4.2)", 0.0625, 0.001..=1.0);

/// DCTCP for every subflow by itself.
#[derive(Clone, Debug)]
pub struct Dctcp {
    gain: f64,
    shares: PerFlow<MarkedShare>,
}

impl Dctcp {
    /// DCTCP with this weight of the latest round trip; RFC 8257 recommends 1/16.
    pub fn new(gain: f64) -> Self {
        Dctcp { gain, shares: PerFlow::default() }
    }
}

impl WindowBased for Dctcp {
    fn on_ack(&mut self, now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        self.shares.of(&flows[on]).count(now, ack, self.gain, Duration::ZERO);
        None
    }

    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        alone(&flows[on], acked)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, _on: usize, in_flight: Window, _flows: &[Flow]) -> Window {
        in_flight / 2.0
    }

    fn on_mark(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        in_flight * (1.0 - self.shares.of(&flows[on]).get() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{FlowKey, RateSample};
    use anabranch_units::{Bytes, SubflowId};

    fn flow() -> [Flow; 1] {
        let window = Window::new(100_000.0);
        [Flow {
            id: SubflowId(0),
            key: FlowKey::nth(0),
            mss: Bytes::new(1000),
            cwnd: window,
            ssthresh: window,
            srtt: None,
            recovering: false,
            counted: true,
        }]
    }

    /// Rounds of ten segments of 1000 bytes, two of them marked: α goes from 1 towards 0.2, and the fall from a half
    /// towards a tenth.
    #[test]
    fn a_fifth_of_the_marks_takes_a_tenth_of_the_window() {
        let mut dctcp = Dctcp::new(1.0 / 16.0);
        let full = Window::new(100_000.0);
        assert_eq!(dctcp.on_mark(Instant::ZERO, 0, full, &flow()), full / 2.0);
        let mut expected = 1.0;
        for segment in 0..10 * 101 {
            let (round, place) = (segment / 10, segment % 10);
            let sample = RateSample { prior_delivered: round * 10_000, ..RateSample::default() };
            let ack = Ack {
                acked: Bytes::new(1000),
                marked: Bytes::new(if place < 2 { 1000 } else { 0 }),
                delivered: (segment + 1) * 1000,
                sample: Some(sample),
                ..Ack::default()
            };
            dctcp.on_ack(Instant::ZERO, 0, &ack, &flow());
        }
        for _ in 0..100 {
            expected = expected * 15.0 / 16.0 + 0.2 / 16.0;
        }
        let left = dctcp.on_mark(Instant::ZERO, 0, full, &flow()).per(full);
        assert!((left - (1.0 - expected / 2.0)).abs() < 0.002, "{left} of {expected}");
        assert_eq!(dctcp.on_fast_retransmit(Instant::ZERO, 0, full, &flow()), full / 2.0, "a loss halves");
    }
}
