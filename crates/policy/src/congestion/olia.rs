//! OLIA: coupled increases that are Pareto-optimal, and move traffic to the best path actively.
//!
//! R. Khalili, N. Gast, M. Popovic, J.-Y. Le Boudec. *Opportunistic Linked-Increases Congestion Control Algorithm for
//! MPTCP.* draft-khalili-mptcp-congestion-control; the formula as in the out-of-tree Linux kernel (`mptcp_olia`).
//!
//! With windows in segments, `ℓ_i` the larger of the bytes acknowledged between the last two losses of `i` and those
//! since the last, `B` the paths with the largest `ℓ_i / rtt_i²`, `M` those with the largest window, `n` paths in all:
//! ```text
//! w_i += (w_i / rtt_i²) / (Σ_k w_k / rtt_k)² + α_i / w_i      per acknowledged segment           (1)
//! α_i  = 1 / (n · |B∖M|) if i ∈ B∖M;  −1 / (n · |M|) if i ∈ M and B∖M ≠ ∅;  else 0               (2)
//! ```
//! (1) may be negative; a window keeps one segment. The decrease is NewReno's, and so is everything with one subflow. A
//! subflow in recovery counts with its ssthresh.
//!
//! Where we differ: bytes stand for segments throughout, so that segments of different sizes add up; windows have
//! fractions, so that two are rarely equal and `M` is mostly one path, where the kernel compares whole segments.

use super::coupled::{LISA, Member, alone, linked, members};
use super::{Ack, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use anabranch_units::{Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "olia",
    "linked increases that shift windows to the paths with the longest loss-free runs",
    include_str!("olia.rs"),
    |_| CongestionControl::window_based(Olia::default()),
)
.paper("Khalili 2013")
.parameters(&[LISA.parameter()])
.capabilities(linked);

/// Opportunistic linked increases over the subflows of one connection.
#[derive(Clone, Debug, Default)]
pub struct Olia {
    acked: PerFlow<Acked>,
}

/// Bytes acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Acked {
    /// Between the last two losses.
    between: u64,
    /// Since the last loss.
    since: u64,
}

impl Acked {
    /// `ℓ` \[bytes\].
    fn between_losses(&self) -> f64 {
        self.between.max(self.since) as f64
    }
}

impl Olia {
    /// α of Eq. (2) for flow `on`, one of the members.
    fn alpha(&self, on: usize, flows: &[Flow]) -> f64 {
        let between_losses = |flow| self.acked.get(flow).map_or(0.0, Acked::between_losses);
        let quality = |member: &Member| between_losses(&flows[member.on]) / (member.rtt * member.rtt);
        let (mut best, mut largest, mut count) = (0.0_f64, Window::ZERO, 0.0);
        for member in members(flows) {
            best = best.max(quality(&member));
            largest = largest.max(member.window);
            count += 1.0;
        }
        let is_largest = |member: &Member| member.window >= largest;
        let is_collected = |member: &Member| quality(member) >= best && !is_largest(member);
        let collected = members(flows).filter(is_collected).count();
        if collected == 0 {
            return 0.0;
        }
        members(flows).find(|member| member.on == on).map_or(0.0, |member| {
            match (is_collected(&member), is_largest(&member)) {
                (true, _) => 1.0 / (count * collected as f64),
                (_, true) => -1.0 / (count * members(flows).filter(is_largest).count() as f64),
                _ => 0.0,
            }
        })
    }

    fn on_loss(&mut self, flow: &Flow) {
        let acked = self.acked.of(flow);
        *acked = Acked { between: acked.since, since: 0 };
    }
}

impl WindowBased for Olia {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        let acked = self.acked.of(&flows[on]);
        acked.since = acked.since.saturating_add(ack.acked.get());
        None
    }

    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        let flow = &flows[on];
        let rates: f64 = members(flows).map(|member| member.rate()).sum();
        let Some(member) = members(flows).find(|member| member.on == on).filter(|_| rates > 0.0) else {
            return alone(flow, acked);
        };
        let coupled = member.rate() / member.rtt / (rates * rates);
        let per_byte = coupled + self.alpha(on, flows) / flow.cwnd.as_f64(); // Eq. (1)
        Window::new(acked.as_f64() * flow.mss.as_f64() * per_byte)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.on_loss(&flows[on]);
        in_flight / 2.0
    }
}

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

    /// OLIA after a loss on each flow, with the bytes acknowledged since.
    fn olia(since: &[u64]) -> Olia {
        let (mut olia, flows) = (Olia::default(), [0, 1, 2].map(|id| flow(id, 1.0, 1)));
        for (on, &bytes) in since.iter().enumerate() {
            olia.on_loss(&flows[on]);
            olia.on_ack(Instant::ZERO, on, &Ack { acked: Bytes::new(bytes), ..Ack::default() }, &flows);
        }
        olia
    }

    fn increment(olia: &mut Olia, on: usize, flows: &[Flow]) -> f64 {
        olia.avoidance(Instant::ZERO, on, Window::new(1.0), flows).as_f64()
    }

    /// Vectors of an independent script, to six digits.
    #[test]
    fn worked_example() {
        let flows = [flow(0, 10.0, 50), flow(1, 20.0, 50)];
        let mut olia = olia(&[400, 200]);
        assert_eq!([olia.alpha(0, &flows), olia.alpha(1, &flows)], [0.5, -0.5]);
        // 10 / 30² + 0.5 / 10; 20 / 30² − 0.5 / 20
        assert!((increment(&mut olia, 0, &flows) - 0.061111).abs() < 5e-7);
        assert!((increment(&mut olia, 1, &flows) + 0.002778).abs() < 5e-7);
    }

    /// Computed by a throw-away Python script from Eqs. (1) and (2).
    #[test]
    fn further_examples() {
        for (since, flows, alphas, increments) in [
            // The best path has the largest window already: nothing moves.
            (
                vec![900, 10],
                vec![flow(0, 30.0, 20), flow(1, 5.0, 20)],
                vec![0.0, 0.0],
                vec![0.0244897959, 0.0040816327],
            ),
            // RTT counts squared: 300 at 10 ms beats 9000 at 100 ms.
            (
                vec![300, 9000],
                vec![flow(0, 8.0, 10), flow(1, 40.0, 100)],
                vec![0.5, -0.5],
                vec![0.1180555556, -0.0097222222],
            ),
            // Three paths, two of them equally good and small: a third of a half each, against the large one.
            (
                vec![500, 500, 100],
                vec![flow(0, 4.0, 40), flow(1, 6.0, 40), flow(2, 10.0, 40)],
                vec![1.0 / 6.0, 1.0 / 6.0, -1.0 / 3.0],
                vec![0.0516666667, 0.0427777778, -0.0083333333],
            ),
        ] {
            let mut olia = olia(&since);
            for on in 0..flows.len() {
                assert!((olia.alpha(on, &flows) - alphas[on]).abs() < 1e-12, "{since:?} {on}");
                let increment = increment(&mut olia, on, &flows);
                assert!((increment - increments[on]).abs() < 1e-9, "{since:?} {on}: {increment}");
            }
        }
    }

    #[test]
    fn remembers_the_longer_of_the_last_two_intervals_between_losses() {
        let mut olia = olia(&[700]);
        let flows = [flow(0, 10.0, 30)];
        olia.on_fast_retransmit(Instant::ZERO, 0, Window::new(10.0), &flows);
        olia.on_ack(Instant::ZERO, 0, &Ack { acked: Bytes::new(20), ..Ack::default() }, &flows);
        assert_eq!(olia.acked.of(&flows[0]).between_losses(), 700.0);
        olia.on_rto(Instant::ZERO, 0, Window::new(10.0), &flows);
        assert_eq!(olia.acked.of(&flows[0]).between_losses(), 20.0);
    }

    #[test]
    fn one_subflow_grows_like_reno() {
        let flows = [flow(0, 10.0, 30), Flow { counted: false, ..flow(1, 50.0, 10) }];
        let mut olia = olia(&[5, 900]);
        assert!((increment(&mut olia, 0, &flows) - 0.1).abs() < 1e-12);
        assert!((increment(&mut olia, 1, &flows) - 0.02).abs() < 1e-12);
    }

    #[test]
    fn a_recovering_subflow_counts_with_its_ssthresh() {
        let flows = [flow(0, 10.0, 50), Flow { ssthresh: Window::new(20.0), recovering: true, ..flow(1, 3.0, 50) }];
        assert!((increment(&mut olia(&[400, 200]), 0, &flows) - 0.061111).abs() < 5e-7);
    }

    /// Uses segments of 500 and 1500 bytes with the windows of the worked example in bytes.
    #[test]
    fn unequal_segments_are_summed_in_bytes() {
        let flows = [
            Flow { mss: Bytes::new(500), ..flow(0, 10_000.0, 50) },
            Flow { mss: Bytes::new(1500), ..flow(1, 20_000.0, 50) },
        ];
        let mut olia = olia(&[400, 200]);
        let per_segment = [
            olia.avoidance(Instant::ZERO, 0, Window::new(500.0), &flows).as_f64(),
            olia.avoidance(Instant::ZERO, 1, Window::new(1500.0), &flows).as_f64(),
        ];
        // 500² · (10⁴/(3·10⁴)² + 0.5/10⁴); 1500² · (2·10⁴/(3·10⁴)² − 0.5/(2·10⁴))
        assert!((per_segment[0] - 15.2777778).abs() < 1e-6 && (per_segment[1] + 6.25).abs() < 1e-6, "{per_segment:?}");
    }
}
