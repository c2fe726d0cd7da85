//! What every congestion control shares: slow start, one reduction per recovery, timeouts, idle restart.
//!
//! RFC 5681 §3.1, §3.2 and §4.1; byte counting after RFC 3465; undo, idle restart and the cwnd-limited rule as in Linux
//! (`tcp_undo_cwnd_reduction`, `tcp_cwnd_restart`, `tcp_is_cwnd_limited`). An algorithm decides growth in congestion
//! avoidance and the depth of a fall, and may set window and threshold at an ACK; what it answers is kept within bounds
//! here: a window holds at least one segment, a threshold two, and neither grows in recovery or while the window is no
//! limit. Where an algorithm models the path ([`CongestionControl::is_model_based`]), only the bounds are left.

use super::hystart::{HyStart, LOW_WINDOW, Watch};
use super::hystart_plus_plus::PlusPlus;
use super::lisa::credit;
use super::prr::Reduction;
use super::rules::{LossResponse, Rules};
use super::{Ack, CongestionControl, Flow, FlowKey, Model, Window};
use crate::registry::Built;
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// The congestion windows of one connection.
pub struct Controller {
    algorithm: Built<dyn CongestionControl>,
    /// As the algorithm says: asked at every segment.
    model_based: bool,
    rules: Rules,
    /// Ordered by id. `pasts` runs alongside, apart from it because algorithms see only this.
    flows: Vec<Flow>,
    pasts: Vec<Past>,
    /// Flows that have begun so far.
    begun: u64,
}

/// What a flow has behind it.
#[derive(Clone, Copy, Default)]
struct Past {
    /// The largest window \[bytes\] just before any loss so far.
    cwnd_at_loss: Option<f64>,
    /// What the latest reduction took, until it cannot be given back any more.
    undo: Option<Undo>,
    /// Between a timeout and the acknowledgment of all that was in flight then.
    after_rto: bool,
    /// The latest ACK found the window in full use.
    cwnd_limited: bool,
    /// Bytes whose acknowledgment earns nothing in slow start, since as many were given away (LISA).
    given: f64,
    /// HyStart's view of the ACKs.
    watch: Watch,
    /// HyStart++'s view of them.
    plus_plus: PlusPlus,
    /// The recovery that goes on, under PRR.
    reduction: Option<Reduction>,
}

#[derive(Clone, Copy)]
struct Undo {
    cwnd: f64,
    ssthresh: f64,
    cwnd_at_loss: Option<f64>,
}

impl Controller {
    /// No subflow yet.
    pub fn new(algorithm: Built<dyn CongestionControl>, rules: Rules) -> Self {
        let model_based = algorithm.is_model_based();
        Controller { algorithm, model_based, rules, flows: Vec::new(), pasts: Vec::new(), begun: 0 }
    }

    /// Goes on with another algorithm, which finds windows, thresholds and recoveries as they are.
    pub fn replace(&mut self, now: Instant, algorithm: Built<dyn CongestionControl>) {
        self.algorithm = algorithm;
        self.model_based = self.algorithm.is_model_based();
        self.algorithm.on_flows_changed();
        for on in 0..self.flows.len() {
            self.algorithm.on_reset(now, on, &self.flows);
        }
    }

    /// A subflow with segments of `mss` begins, with the initial threshold and the initial window, or what LISA leaves
    /// it of that. No effect if it is there.
    pub fn add(&mut self, id: SubflowId, mss: Bytes) {
        let Err(at) = self.flows.binary_search_by_key(&id, |flow| flow.id) else {
            return;
        };
        let mss = mss.as_f64().max(1.0);
        let mut cwnd = self.rules.initial_window.bytes(mss).min(self.rules.limit(mss));
        if self.algorithm.capabilities.linked_slow_start {
            cwnd = self.take_credit(mss, cwnd);
        }
        let ssthresh = self.rules.initial_ssthresh(mss);
        let key = FlowKey::beside(&self.flows, self.begun);
        self.begun += 1;
        let flow = Flow { id, key, mss, cwnd, ssthresh, srtt: None, recovering: false, counted: false };
        self.flows.insert(at, flow);
        self.pasts.insert(at, Past::default());
        self.algorithm.on_flows_changed();
    }

    /// Sets the slow-start threshold of a new subflow, of whose path this is known; at least its window. An algorithm
    /// that models the path has no use for it.
    pub fn set_threshold(&mut self, id: SubflowId, threshold: Bytes) {
        if let Some(on) = self.find(id).filter(|_| !self.model_based) {
            let flow = &mut self.flows[on];
            flow.set_threshold(threshold.as_f64().max(flow.cwnd));
        }
    }

    /// The segments of a subflow have another size; the window stays, and is at least one of them.
    pub fn set_mss(&mut self, id: SubflowId, mss: Bytes) {
        if let Some(on) = self.find(id) {
            let flow = &mut self.flows[on];
            flow.mss = mss.as_f64().max(1.0);
            flow.cwnd = flow.cwnd.max(flow.mss);
        }
    }

    /// The subflow is gone.
    pub fn remove(&mut self, id: SubflowId) {
        if let Some(on) = self.find(id) {
            self.flows.remove(on);
            self.pasts.remove(on);
            self.algorithm.on_flows_changed();
        }
    }

    /// Whether the subflow counts in coupled sums ([`Flow::counted`]). A new one does not.
    pub fn set_counted(&mut self, id: SubflowId, counted: bool) {
        if let Some(on) = self.find(id) {
            self.flows[on].counted = counted;
        }
    }

    /// The congestion window, rounded down to the byte; zero for an unknown subflow.
    pub fn cwnd(&self, id: SubflowId) -> Bytes {
        self.find(id).map_or(Bytes::ZERO, |on| Bytes::new(self.flows[on].cwnd as u64))
    }

    /// The slow-start threshold, rounded down to the byte; `None` before the first loss.
    pub fn ssthresh(&self, id: SubflowId) -> Option<Bytes> {
        let ssthresh = self.flows[self.find(id)?].ssthresh;
        ssthresh.is_finite().then_some(Bytes::new(ssthresh as u64))
    }

    /// The largest congestion window just before any loss so far; `None` before the first.
    pub fn cwnd_at_loss(&self, id: SubflowId) -> Option<Bytes> {
        self.pasts[self.find(id)?].cwnd_at_loss.map(|cwnd| Bytes::new(cwnd as u64))
    }

    /// All subflows in the order of their ids.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// What the congestion control believes of the path, if it models one. `srtt` counts before the first ACK of data.
    pub fn model(&self, id: SubflowId, srtt: Option<Duration>) -> Option<Model> {
        if !self.model_based {
            return None;
        }
        let on = self.find(id)?;
        self.algorithm.model(on, &self.flows[on], srtt)
    }

    /// Whether windows follow a model: then it wants delivery rates, and segments are paced.
    pub fn is_model_based(&self) -> bool {
        self.model_based
    }

    /// An ACK delivers new bytes. A window in fast recovery does not grow; after a timeout it does.
    pub fn on_ack(&mut self, now: Instant, id: SubflowId, ack: &Ack) {
        let Some(on) = self.find(id) else {
            return;
        };
        let (flow, past) = (&mut self.flows[on], &mut self.pasts[on]);
        if !ack.in_recovery {
            flow.srtt = ack.srtt.or(flow.srtt);
            past.cwnd_limited = ack.cwnd_limited;
        }
        let (repairing, limited) = (flow.recovering || ack.in_recovery, ack.cwnd_limited);
        let unlimited = self.rules.cwnd_limited_check && !limited;
        let answer = self.algorithm.on_ack(now, on, ack, &self.flows);
        if let Some(window) = answer.filter(|_| !repairing || self.model_based) {
            let may_grow = self.model_based || !unlimited;
            return self.set(on, window, may_grow);
        }
        if repairing {
            return self.reduce(on, ack);
        }
        self.watch_slow_start(now, on, ack);
        if unlimited {
            return self.algorithm.on_unlimited(now, on, &self.flows);
        }

        let (flow, past) = (&mut self.flows[on], &mut self.pasts[on]);
        let limit = self.rules.limit(flow.mss);
        let mut acked = ack.acked.as_f64();
        if flow.cwnd < flow.ssthresh {
            let given = past.given.min(acked);
            past.given -= given;
            acked -= given;
            let counted = acked.min(self.rules.counted(past.after_rto) * flow.mss) / past.plus_plus.divisor();
            let growth = counted.min(flow.ssthresh - flow.cwnd);
            flow.cwnd = (flow.cwnd + growth).min(limit);
            acked = counted - growth;
            if flow.cwnd < flow.ssthresh || acked <= 0.0 {
                return;
            }
        }
        // A window acknowledged at once earns what a window earns (RFC 5681 §3.1: one segment per round trip at most).
        let acked = acked.min(flow.cwnd);
        let growth = self.algorithm.avoidance(now, on, acked, &self.flows);
        let flow = &mut self.flows[on];
        if growth.is_finite() {
            flow.cwnd = (flow.cwnd + growth).min(limit).max(flow.mss);
        }
    }

    /// PRR: the window at an ACK within a fast recovery.
    fn reduce(&mut self, on: usize, ack: &Ack) {
        let (flow, past) = (&mut self.flows[on], &mut self.pasts[on]);
        if let Some(reduction) = past.reduction.as_mut().filter(|_| !self.model_based) {
            let window = reduction.window(ack.acked.as_f64(), ack.in_flight.as_f64(), flow.ssthresh, flow.mss);
            flow.cwnd = window.min(self.rules.limit(flow.mss)).max(flow.mss);
        }
    }

    /// HyStart: the threshold falls to the window where slow start is to end.
    fn watch_slow_start(&mut self, now: Instant, on: usize, ack: &Ack) {
        let (flow, past) = (&mut self.flows[on], &mut self.pasts[on]);
        let in_slow_start = flow.cwnd < flow.ssthresh;
        let ends = match self.rules.hystart {
            None => false,
            Some(HyStart::PlusPlus) => past.plus_plus.ends_slow_start(ack, in_slow_start),
            Some(_) if !self.algorithm.capabilities.hystart => false,
            Some(rule) => {
                let armed = in_slow_start && flow.cwnd >= LOW_WINDOW * flow.mss;
                past.watch.ends_slow_start(now, ack, rule, armed)
            }
        };
        if ends {
            flow.ssthresh = flow.cwnd;
        }
    }

    /// Data leave, new or repeated. Only PRR has a use for it.
    #[inline]
    pub fn on_sent(&mut self, id: SubflowId, bytes: Bytes) {
        if self.rules.prr
            && let Some(on) = self.find(id)
            && let Some(reduction) = &mut self.pasts[on].reduction
        {
            reduction.on_sent(bytes.as_f64());
        }
    }

    /// What an algorithm answered to an ACK, within bounds. Not-a-number changes nothing.
    fn set(&mut self, on: usize, window: Window, may_grow: bool) {
        let flow = &mut self.flows[on];
        if window.cwnd.is_nan() || window.ssthresh.is_nan() {
            return;
        }
        let most = if may_grow { self.rules.limit(flow.mss) } else { flow.cwnd };
        flow.cwnd = window.cwnd.min(most).min(LARGEST).max(flow.mss);
        flow.set_threshold(window.ssthresh);
    }

    /// LISA: the first window \[bytes\] of a joining subflow, taken from the one that has most.
    fn take_credit(&mut self, mss: f64, initial: f64) -> f64 {
        let in_slow_start = |on: usize| {
            let (flow, past) = (&self.flows[on], &self.pasts[on]);
            flow.counted && flow.cwnd < flow.ssthresh && !flow.recovering && !past.after_rto
        };
        let credit = credit(&self.flows, in_slow_start, mss, initial);
        if let Some(giver) = credit.giver {
            let (flow, past) = (&mut self.flows[giver], &mut self.pasts[giver]);
            flow.cwnd = (flow.cwnd - credit.window).max(flow.mss);
            past.given += credit.window;
        }
        credit.window
    }

    /// Loss recovery by retransmission begins: the window falls to the new threshold at once. No effect within a recovery.
    /// `in_flight` is FlightSize (RFC 5681 §2): sent and not cumulatively acknowledged, lost segments included. It matters
    /// when less was in flight than the window admitted, and the rules are not those of Linux.
    pub fn on_fast_retransmit(&mut self, now: Instant, id: SubflowId, in_flight: Bytes) {
        let Some(on) = self.find(id).filter(|&on| !self.flows[on].recovering) else {
            return;
        };
        let in_flight = self.begin_reduction(on, in_flight);
        let ssthresh = self.algorithm.on_fast_retransmit(now, on, in_flight, &self.flows);
        let flow = &mut self.flows[on];
        if self.model_based {
            flow.cwnd = ssthresh.min(flow.cwnd).max(flow.mss);
        } else {
            flow.fall_to(if self.rules.loss_response == LossResponse::Halve { 0.0 } else { ssthresh });
            self.pasts[on].reduction = self.rules.prr.then(|| Reduction::new(flow.cwnd));
            flow.cwnd = match self.rules.loss_response {
                LossResponse::Standard | LossResponse::Linux => flow.cwnd.min(flow.ssthresh),
                LossResponse::Halve => (flow.cwnd / 2.0).max(flow.mss),
            };
        }
        flow.recovering = true;
    }

    /// All that was in flight at the loss or the timeout is acknowledged.
    pub fn on_recovered(&mut self, now: Instant, id: SubflowId) {
        if let Some(on) = self.find(id) {
            self.flows[on].recovering = false;
            self.pasts[on].after_rto = false;
            if self.pasts[on].reduction.take().is_some() && !self.model_based {
                self.flows[on].cwnd = self.flows[on].ssthresh;
            }
            self.algorithm.on_recovered(now, on, &self.flows);
        }
    }

    /// The retransmission timer expired, for the `first` time since data were last acknowledged or not. One segment may
    /// leave, and slow start follows. A timeout within a recovery keeps its threshold: both repair the same window, so it
    /// falls once (as in Linux; RFC 5681 comes to the same, since its FlightSize is still that of the loss). `in_flight`
    /// as in [`Controller::on_fast_retransmit`].
    pub fn on_rto(&mut self, now: Instant, id: SubflowId, in_flight: Bytes, first: bool) {
        let Some(on) = self.find(id) else {
            return;
        };
        if first && !self.flows[on].recovering {
            let in_flight = self.begin_reduction(on, in_flight);
            let ssthresh = self.algorithm.on_rto(now, on, in_flight, &self.flows);
            if !self.model_based {
                self.flows[on].fall_to(ssthresh);
            }
        } else {
            self.algorithm.on_rto_again(now, on, &self.flows);
        }
        let flow = &mut self.flows[on];
        if self.rules.loss_response == LossResponse::Halve && !self.model_based {
            flow.fall_to(0.0);
            (flow.cwnd, flow.recovering) = ((flow.cwnd / 2.0).max(flow.mss), false);
            return;
        }
        flow.cwnd = flow.mss;
        flow.recovering = false;
        let past = &mut self.pasts[on];
        (past.after_rto, past.reduction) = (true, None);
        past.watch.restart();
        past.plus_plus = PlusPlus::default();
    }

    /// Nothing was lost after all (DSACK, Eifel): the window and threshold of before the latest reduction come back, if
    /// they were larger.
    pub fn on_spurious(&mut self, now: Instant, id: SubflowId) {
        let Some(on) = self.find(id) else {
            return;
        };
        let Some(undo) = self.pasts[on].undo.take() else {
            return;
        };
        self.pasts[on].reduction = None;
        let flow = &mut self.flows[on];
        if !self.model_based {
            flow.cwnd = flow.cwnd.max(undo.cwnd);
            flow.ssthresh = flow.ssthresh.max(undo.ssthresh);
        }
        flow.recovering = false;
        self.pasts[on].after_rto = false;
        self.pasts[on].cwnd_at_loss = undo.cwnd_at_loss;
        self.algorithm.on_spurious(now, on, &self.flows);
    }

    /// Data leave after `idle` without any, with nothing in flight. The window halves for every `rto` that passed, down to
    /// the initial window; the threshold remembers three quarters of it (RFC 2861 §3, Linux).
    pub fn on_idle(&mut self, now: Instant, id: SubflowId, idle: Duration, rto: Duration) {
        let Some(on) = self.find(id) else {
            return;
        };
        self.algorithm.on_restart(now, on, &self.flows);
        if self.flows[on].recovering || idle <= rto || self.model_based {
            return;
        }
        if self.rules.idle_restart {
            let restarted = self.restarted(on, idle, rto);
            let flow = &mut self.flows[on];
            flow.ssthresh = flow.ssthresh.max(0.75 * flow.cwnd);
            flow.cwnd = restarted;
            self.pasts[on].undo = None;
        }
        self.algorithm.on_reset(now, on, &self.flows);
    }

    /// The window that `on_idle` would leave.
    pub fn cwnd_after_idle(&self, id: SubflowId, idle: Duration, rto: Duration) -> Bytes {
        match self.find(id) {
            Some(on) if self.rules.idle_restart && !self.model_based && !self.flows[on].recovering && idle > rto => {
                Bytes::new(self.restarted(on, idle, rto) as u64)
            }
            _ => self.cwnd(id),
        }
    }

    fn restarted(&self, on: usize, idle: Duration, rto: Duration) -> f64 {
        let flow = &self.flows[on];
        let restart = self.rules.initial_window.bytes(flow.mss).min(flow.cwnd);
        let (mut cwnd, mut left) = (flow.cwnd, idle.saturating_sub(rto));
        while !left.is_zero() && cwnd > restart {
            cwnd /= 2.0;
            left = left.saturating_sub(rto);
        }
        cwnd.max(restart)
    }

    /// A reinjection policy asks to slow the subflow down (A-OPT). A subflow that repairs losses has
    /// slowed down already; one whose window follows a model would only have it back at the next ACK.
    pub fn penalise(&mut self, now: Instant, id: SubflowId) {
        let Some(on) = self.find(id).filter(|&on| !self.flows[on].recovering && !self.pasts[on].after_rto) else {
            return;
        };
        if self.model_based {
            return;
        }
        let flow = &mut self.flows[on];
        if flow.cwnd >= flow.ssthresh {
            flow.set_threshold(flow.ssthresh / 2.0);
        }
        flow.cwnd = (flow.cwnd / 2.0).max(flow.mss);
        self.pasts[on].undo = None;
        self.algorithm.on_reset(now, on, &self.flows);
    }

    fn find(&self, id: SubflowId) -> Option<usize> {
        self.flows.iter().position(|flow| flow.id == id)
    }

    /// Remembers what there was, and says how many bytes the reduction starts from.
    fn begin_reduction(&mut self, on: usize, in_flight: Bytes) -> f64 {
        let (flow, past) = (&self.flows[on], &mut self.pasts[on]);
        past.undo = Some(Undo { cwnd: flow.cwnd, ssthresh: flow.ssthresh, cwnd_at_loss: past.cwnd_at_loss });
        past.cwnd_at_loss = Some(past.cwnd_at_loss.map_or(flow.cwnd, |most| most.max(flow.cwnd)));
        past.after_rto = false;
        past.given = 0.0;
        let window_counts = past.cwnd_limited || self.rules.loss_response == LossResponse::Linux;
        if window_counts { flow.cwnd } else { in_flight.as_f64().min(flow.cwnd) }
    }
}

/// No window is larger, whatever an algorithm says \[bytes\].
const LARGEST: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::super::rules::EXAMPLE as RULES;
    use super::*;
    use crate::congestion::Reno;

    const A: SubflowId = SubflowId(1);
    const MSS: Bytes = Bytes::new(1000);
    const T: Instant = Instant::ZERO;
    const RTO: Duration = Duration::from_millis(200);

    fn controller(rules: Rules) -> Controller {
        let mut controller = Controller::new(Reno.into(), rules);
        controller.add(A, MSS);
        controller
    }

    /// So many bytes, of a window in full use.
    fn full(bytes: u64) -> Ack {
        Ack { acked: Bytes::new(bytes), cwnd_limited: true, ..Ack::default() }
    }

    fn ack(controller: &mut Controller, bytes: u64) {
        controller.on_ack(T, A, &full(bytes));
    }

    fn state(controller: &Controller) -> (u64, Option<u64>) {
        (controller.cwnd(A).get(), controller.ssthresh(A).map(Bytes::get))
    }

    /// reduceCWND of mptcp-ns3 with segments of 1000 bytes: 10 segments fall to 5 by a fast retransmit, to 2.5 by a
    /// timeout and to 1.25 by the next; the threshold is two segments.
    #[test]
    fn halving_knows_no_collapse_and_no_way_back_to_slow_start() {
        let mut c = controller(Rules { loss_response: LossResponse::Halve, ..RULES });
        c.on_fast_retransmit(T, A, Bytes::new(10_000));
        assert_eq!(state(&c), (5000, Some(2000)));
        c.on_recovered(T, A);
        c.on_rto(T, A, Bytes::new(5000), true);
        assert_eq!(state(&c), (2500, Some(2000)));
        c.on_rto(T, A, Bytes::new(2500), false);
        assert_eq!(state(&c), (1250, Some(2000)));
        c.on_rto(T, A, Bytes::new(1250), false);
        assert_eq!(state(&c), (1000, Some(2000)));
    }

    /// A window of 10 segments and Reno: at a loss with 6 in flight behind it, ACKs of one segment each let out
    /// ceil(n · 5 / 10) segments; without PRR none leaves before 5 are in flight. In the end both windows are 5.
    #[test]
    fn prr_lets_segments_out_as_others_arrive() {
        for (prr, windows) in [(true, [7000, 6000, 5000, 5000]), (false, [5000; 4])] {
            let mut c = controller(Rules { prr, ..RULES });
            c.on_fast_retransmit(T, A, Bytes::new(10_000));
            let mut in_flight = 6000;
            for window in windows {
                let ack = Ack { in_flight: Bytes::new(in_flight), in_recovery: true, ..full(1000) };
                c.on_ack(T, A, &ack);
                assert_eq!(c.cwnd(A).get(), window, "{prr}, {in_flight} in flight");
                let sent = window.saturating_sub(in_flight);
                c.on_sent(A, Bytes::new(sent));
                in_flight += sent;
                in_flight -= 1000;
            }
            c.on_recovered(T, A);
            assert_eq!(state(&c), (5000, Some(5000)));
        }
    }

    /// 1000-byte segments, a threshold of 12 segments: slow start ends there, and earns the rest as congestion
    /// avoidance.
    #[test]
    fn a_remembered_threshold_ends_slow_start() {
        let mut c = controller(Rules { initial_ssthresh_segments: Some(12), ..RULES });
        assert_eq!(state(&c), (10_000, Some(12_000)));
        ack(&mut c, 2000);
        ack(&mut c, 2000); // In avoidance: 2000 · 1000 / 12 000
        assert_eq!(state(&c), (12_166, Some(12_000)));
        let mut c = controller(Rules { initial_ssthresh_segments: Some(0), ..RULES });
        assert_eq!(state(&c), (10_000, Some(2000)));
        c.set_threshold(A, Bytes::new(5000)); // No less than the window
        assert_eq!(state(&c), (10_000, Some(10_000)));
    }

    #[test]
    fn slow_start_counts_bytes_up_to_the_limit_and_leaves_the_rest_to_avoidance() {
        let mut c = controller(RULES);
        ack(&mut c, 5000);
        assert_eq!(state(&c), (12_000, None)); // L = 2
        let mut linux = controller(Rules { byte_counting_limit_segments: u32::MAX, ..RULES });
        ack(&mut linux, 5000);
        assert_eq!(state(&linux), (15_000, None));
        c.on_rto(T, A, Bytes::new(12_000), true);
        c.on_recovered(T, A);
        assert_eq!(state(&c), (1000, Some(6000)));
        ack(&mut c, 2000);
        ack(&mut c, 2000);
        ack(&mut c, 2000); // 5000 -> 6000, and the other 1000 bytes earn 1000 · 1000 / 6000
        assert_eq!(state(&c), (6166, Some(6000)));
    }

    /// LATE's W is the largest window at any loss (A-LATE-7).
    #[test]
    fn the_largest_window_at_a_loss_is_remembered() {
        let mut c = controller(RULES);
        for (acked, at_loss) in [(2000, 12_000), (0, 12_000)] {
            ack(&mut c, acked);
            c.on_fast_retransmit(T, A, c.cwnd(A));
            c.on_recovered(T, A);
            assert_eq!(c.cwnd_at_loss(A), Some(Bytes::new(at_loss)));
        }
    }

    #[test]
    fn one_reduction_per_recovery_and_no_growth_within() {
        let mut c = controller(RULES);
        ack(&mut c, 2000);
        c.on_fast_retransmit(T, A, Bytes::new(9000)); // pipe or flight: the window was in full use
        assert_eq!((state(&c), c.cwnd_at_loss(A)), ((6000, Some(6000)), Some(Bytes::new(12_000))));
        c.on_fast_retransmit(T, A, Bytes::new(6000));
        ack(&mut c, 5000);
        assert_eq!(state(&c), (6000, Some(6000)));
        c.on_recovered(T, A);
        ack(&mut c, 6000);
        assert_eq!(state(&c), (7000, Some(6000)));
    }

    /// The last 6 segments of a burst under a window of 10: on either kind of loss RFC 5681 halves the 6, Linux the 10.
    #[test]
    fn a_window_that_was_no_limit_falls_by_what_was_in_flight_or_as_in_linux() {
        for (loss_response, left) in [(LossResponse::Standard, 3000), (LossResponse::Linux, 5000)] {
            let mut c = controller(Rules { loss_response, ..RULES });
            c.on_ack(T, A, &Ack { cwnd_limited: false, ..full(1000) });
            c.on_fast_retransmit(T, A, Bytes::new(6000));
            assert_eq!(state(&c), (left, Some(left)));
            c.on_spurious(T, A);
            c.on_rto(T, A, Bytes::new(6000), true);
            assert_eq!(state(&c), (1000, Some(left)));
        }
    }

    #[test]
    fn only_the_first_timeout_of_a_row_lowers_the_threshold() {
        let mut c = controller(RULES);
        c.on_rto(T, A, Bytes::new(10_000), true);
        assert_eq!(state(&c), (1000, Some(5000)));
        c.on_rto(T, A, Bytes::new(1000), false);
        assert_eq!(state(&c), (1000, Some(5000)));
        ack(&mut c, 4000); // L = 1 after a timeout
        assert_eq!(state(&c), (2000, Some(5000)));
        let mut recovering = controller(RULES);
        recovering.on_fast_retransmit(T, A, Bytes::new(10_000));
        recovering.on_rto(T, A, Bytes::new(10_000), true);
        assert_eq!(state(&recovering), (1000, Some(5000)));
    }

    #[test]
    fn a_spurious_loss_is_undone_once() {
        let mut c = controller(RULES);
        c.on_fast_retransmit(T, A, Bytes::new(10_000));
        c.on_rto(T, A, Bytes::new(10_000), true);
        c.on_spurious(T, A);
        assert_eq!((state(&c), c.cwnd_at_loss(A)), ((10_000, None), None));
        c.on_rto(T, A, Bytes::new(10_000), true);
        c.on_recovered(T, A);
        c.penalise(T, A);
        c.on_spurious(T, A);
        assert_eq!(state(&c), (1000, Some(5000)));
    }

    #[test]
    fn idle_time_halves_the_window_down_to_the_initial_one() {
        for (idle, expected) in [
            (RTO, (40_000, None)),
            (RTO + Duration::from_nanos(1), (20_000, None)),
            (RTO * 2, (20_000, None)),
            (RTO * 100, (10_000, None)),
        ] {
            let mut c = controller(RULES);
            (0..15).for_each(|_| ack(&mut c, 2000));
            c.on_idle(T, A, idle, RTO);
            assert_eq!(state(&c), expected, "{idle}");
        }
        let mut c = controller(RULES);
        c.on_fast_retransmit(T, A, Bytes::new(10_000));
        c.on_recovered(T, A);
        (0..200).for_each(|_| ack(&mut c, 5000));
        let before = state(&c).0;
        c.on_idle(T, A, RTO * 100, RTO);
        assert_eq!(state(&c), (10_000, Some(before * 3 / 4)));
        let mut fixed = controller(Rules { idle_restart: false, ..RULES });
        ack(&mut fixed, 2000);
        fixed.on_idle(T, A, RTO * 100, Duration::ZERO);
        assert_eq!(state(&fixed), (12_000, None));
    }

    #[test]
    fn a_penalty_halves_the_window_and_spares_slow_start() {
        let mut c = controller(RULES);
        c.penalise(T, A);
        assert_eq!(state(&c), (5000, None));
        c.on_fast_retransmit(T, A, Bytes::new(5000));
        c.penalise(T, A);
        assert_eq!(state(&c), (2500, Some(2500)));
        c.on_recovered(T, A);
        c.penalise(T, A);
        assert_eq!(state(&c), (1250, Some(2000)));
        c.penalise(T, A);
        assert_eq!(state(&c), (1000, Some(2000)));
    }

    #[test]
    fn another_algorithm_takes_the_windows_over() {
        let mut c = controller(RULES);
        c.add(SubflowId(2), MSS);
        ack(&mut c, 2000);
        c.on_fast_retransmit(T, A, Bytes::new(12_000));
        let before = (c.flows().to_vec(), c.cwnd_at_loss(A));
        c.replace(T, crate::congestion::cubic::ENTRY.build_default());
        assert_eq!((c.flows().to_vec(), c.cwnd_at_loss(A)), before);
        // The recovery goes on, and the next loss is answered by the new one: β = 0.7 of 6000.
        c.on_recovered(T, A);
        ack(&mut c, 1);
        c.on_fast_retransmit(T, A, Bytes::new(6000));
        assert_eq!(state(&c).0, 4200);
        // What was halved by the old one is given back all the same.
        c.on_spurious(T, A);
        assert_eq!(state(&c).0, 6000);
    }

    #[test]
    fn a_window_stays_below_its_limit() {
        let mut c = controller(Rules { max_cwnd: Some(Bytes::new(11_500)), ..RULES });
        (0..9).for_each(|_| ack(&mut c, 2000));
        assert_eq!(state(&c), (11_500, None));
    }

    #[test]
    fn flows_stay_in_the_order_of_their_ids_and_strangers_have_no_effect() {
        let mut c = controller(RULES);
        c.add(SubflowId(0), MSS);
        c.add(A, Bytes::new(5));
        assert_eq!(c.flows().iter().map(|flow| flow.id.0).collect::<Vec<_>>(), [0, 1]);
        let before = c.flows().to_vec();
        let stranger = SubflowId(9);
        c.on_ack(T, stranger, &full(1000));
        c.on_fast_retransmit(T, stranger, MSS);
        c.on_rto(T, stranger, MSS, true);
        c.on_recovered(T, stranger);
        c.on_spurious(T, stranger);
        c.on_idle(T, stranger, RTO * 2, RTO);
        c.penalise(T, stranger);
        c.set_counted(stranger, true);
        c.remove(stranger);
        assert_eq!(c.flows(), before);
        assert_eq!((c.cwnd(stranger), c.ssthresh(stranger), c.cwnd_at_loss(stranger)), (Bytes::ZERO, None, None));
    }
}
