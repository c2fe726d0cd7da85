//! Common part of all congestion controls: slow start, one reduction per recovery, timeouts, idle restart.
//!
//! RFC 5681 §3.1, §3.2 and §4.1; byte counting after RFC 3465; undo, idle restart and the cwnd-limited rule as in Linux
//! (`tcp_undo_cwnd_reduction`, `tcp_cwnd_restart`, `tcp_is_cwnd_limited`). An algorithm decides growth in congestion
//! avoidance and the depth of a fall, and may set window and threshold at an ACK; its answers are kept within bounds
//! here: a window holds at least one segment, a threshold two, and neither grows in recovery or while the window is no
//! limit. Where an algorithm models the path ([`ModelBased`](super::ModelBased)), only the bounds are left.

#[cfg(test)]
mod tests;

use super::hystart::{BURST, HyStart, LOW_WINDOW, Watch};
use super::hystart_plus_plus::PlusPlus;
use super::lisa::credit;
use super::prr::Reduction;
use super::rules::{LossResponse, Rules};
use super::{Ack, Capabilities, CongestionControl, Flow, FlowKey, LostSegment, Model, WindowUpdate};
use crate::registry::Built;
use anabranch_units::{Bytes, Duration, Instant, SubflowId, Window};

/// The congestion windows of one connection.
pub struct Controller {
    algorithm: Built<CongestionControl>,
    rules: Rules,
    /// Ordered by id. `pasts` runs alongside, apart from it because algorithms see only this.
    flows: Vec<Flow>,
    pasts: Vec<Past>,
    /// Flows that have begun so far.
    begun: u64,
}

/// History of a flow.
#[derive(Clone, Copy, Default)]
struct Past {
    /// The largest window just before any loss so far.
    cwnd_at_loss: Option<Window>,
    /// State before the latest reduction, while it can be undone.
    undo: Option<Undo>,
    /// Between a timeout and the acknowledgment of all that was in flight then.
    after_rto: bool,
    /// The latest ACK found the window in full use.
    cwnd_limited: bool,
    /// Bytes whose acknowledgment earns nothing in slow start, since as many were given away (LISA).
    given: Window,
    /// HyStart's view of the ACKs.
    watch: Watch,
    /// HyStart++'s view of them.
    plus_plus: PlusPlus,
    /// The recovery that goes on, under PRR.
    reduction: Option<Reduction>,
    /// True in the round trip of a mark.
    by_mark: bool,
}

#[derive(Clone, Copy)]
struct Undo {
    cwnd: Window,
    ssthresh: Window,
    cwnd_at_loss: Option<Window>,
}

impl Controller {
    /// No subflow yet.
    pub fn new(algorithm: Built<CongestionControl>, rules: Rules) -> Self {
        Controller { algorithm, rules, flows: Vec::new(), pasts: Vec::new(), begun: 0 }
    }

    /// Goes on with another algorithm, which finds windows, thresholds and recoveries as they are.
    pub fn replace(&mut self, now: Instant, algorithm: Built<CongestionControl>) {
        self.algorithm = algorithm;
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
        let mss = mss.max(Bytes::new(1));
        let mut cwnd = self.rules.initial_window.window(mss).min(self.rules.limit(mss));
        if self.algorithm.capabilities.linked_slow_start {
            cwnd = self.take_credit(mss, cwnd);
        }
        let ssthresh = self.rules.initial_ssthresh(mss);
        let key = FlowKey::beside(&self.flows, self.begun);
        self.begun += 1;
        let flow = Flow { id, key, mss, cwnd, ssthresh, srtt: None, recovering: false, counted: false };
        // Exactly: most connections have few subflows, and idle most of the time.
        self.flows.reserve_exact(1);
        self.pasts.reserve_exact(1);
        self.flows.insert(at, flow);
        self.pasts.insert(at, Past::default());
        self.algorithm.on_flows_changed();
    }

    /// Sets the slow-start threshold of a new subflow, of whose path this is known; at least its window. An algorithm
    /// that models the path has no use for it.
    pub fn set_threshold(&mut self, id: SubflowId, threshold: Bytes) {
        if let Some(on) = self.find(id).filter(|_| !self.algorithm.is_model_based()) {
            let flow = &mut self.flows[on];
            flow.set_threshold(Window::from(threshold).max(flow.cwnd));
        }
    }

    /// The segments of a subflow have another size; the window stays, and is at least one of them.
    pub fn set_mss(&mut self, id: SubflowId, mss: Bytes) {
        if let Some(on) = self.find(id) {
            let flow = &mut self.flows[on];
            flow.mss = mss.max(Bytes::new(1));
            flow.cwnd = flow.cwnd.max(flow.segment());
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

    /// Sets if the subflow counts in coupled sums ([`Flow::counted`]). A new one does not.
    pub fn set_counted(&mut self, id: SubflowId, counted: bool) {
        if let Some(on) = self.find(id) {
            self.flows[on].counted = counted;
        }
    }

    /// The congestion window, rounded down to the byte; zero for an unknown subflow.
    pub fn cwnd(&self, id: SubflowId) -> Bytes {
        self.find(id).map_or(Bytes::ZERO, |on| self.flows[on].cwnd.whole())
    }

    /// The slow-start threshold, rounded down to the byte; `None` before the first loss.
    pub fn ssthresh(&self, id: SubflowId) -> Option<Bytes> {
        let ssthresh = self.flows[self.find(id)?].ssthresh;
        ssthresh.is_finite().then_some(ssthresh.whole())
    }

    /// The largest congestion window just before any loss so far; `None` before the first.
    pub fn cwnd_at_loss(&self, id: SubflowId) -> Option<Bytes> {
        self.pasts[self.find(id)?].cwnd_at_loss.map(Window::whole)
    }

    /// Window, threshold and the largest window at a loss, as the three methods above give them.
    #[inline]
    pub fn windows(&self, id: SubflowId) -> (Bytes, Option<Bytes>, Option<Bytes>) {
        let Some(on) = self.find(id) else { return (Bytes::ZERO, None, None) };
        let Flow { cwnd, ssthresh, .. } = self.flows[on];
        (cwnd.whole(), ssthresh.is_finite().then(|| ssthresh.whole()), self.pasts[on].cwnd_at_loss.map(Window::whole))
    }

    /// All subflows in the order of their ids.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Returns the path model, if the congestion control is model-based. `srtt` counts before the first ACK of data.
    #[inline]
    pub fn model(&self, id: SubflowId, srtt: Option<Duration>) -> Option<Model> {
        let CongestionControl::ModelBased(algorithm) = &self.algorithm.policy else { return None };
        Some(algorithm.model(&self.flows[self.find(id)?], srtt))
    }

    /// Rules that the algorithm takes part in.
    pub fn capabilities(&self) -> Capabilities {
        self.algorithm.capabilities
    }

    /// Name of the phase in which a model-based congestion control is on a subflow
    /// ([`ModelBased::phase`](super::ModelBased::phase)).
    pub fn phase(&self, id: SubflowId) -> Option<&'static str> {
        let CongestionControl::ModelBased(algorithm) = &self.algorithm.policy else { return None };
        algorithm.phase(&self.flows[self.find(id)?])
    }

    /// Variables of a model-based congestion control on a subflow
    /// ([`ModelBased::variables`](super::ModelBased::variables)); none for others.
    pub fn variables(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        match (&self.algorithm.policy, self.find(id)) {
            (CongestionControl::ModelBased(algorithm), Some(on)) => algorithm.variables(&self.flows[on]),
            _ => Vec::new(),
        }
    }

    /// Returns true if windows follow a model: then it needs delivery rates, and segments are paced.
    pub fn is_model_based(&self) -> bool {
        self.algorithm.is_model_based()
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
        let answer = match &mut self.algorithm.policy {
            CongestionControl::WindowBased(algorithm) => algorithm.on_ack(now, on, ack, &self.flows),
            CongestionControl::ModelBased(algorithm) => {
                let cwnd = algorithm.on_ack(now, &self.flows[on], ack);
                return self.set(on, WindowUpdate { cwnd, ssthresh: Window::INFINITE }, true);
            }
        };
        if let Some(window) = answer.filter(|_| !repairing) {
            return self.set(on, window, !unlimited);
        }
        if repairing {
            return self.reduce(on, ack);
        }
        self.watch_slow_start(now, on, ack);
        let CongestionControl::WindowBased(algorithm) = &mut self.algorithm.policy else { return };
        if unlimited {
            return algorithm.on_unlimited(now, on, &self.flows);
        }

        let (flow, past) = (&mut self.flows[on], &mut self.pasts[on]);
        let limit = self.rules.limit(flow.mss);
        let mut acked = Window::from(ack.acked);
        if flow.cwnd < flow.ssthresh {
            let given = past.given.min(acked);
            past.given -= given;
            acked -= given;
            let counted = acked.min(flow.segments(self.rules.counted(past.after_rto))) / past.plus_plus.divisor();
            let growth = counted.min(flow.ssthresh - flow.cwnd);
            flow.cwnd = (flow.cwnd + growth).min(limit);
            acked = counted - growth;
            if flow.cwnd < flow.ssthresh || !acked.is_positive() {
                return;
            }
        }
        // A window acknowledged at once earns what a window earns (RFC 5681 §3.1: one segment per round trip at most).
        let acked = acked.min(flow.cwnd);
        let growth = algorithm.avoidance(now, on, acked, &self.flows);
        let flow = &mut self.flows[on];
        if growth.is_finite() {
            flow.cwnd = (flow.cwnd + growth).min(limit).max(flow.segment());
        }
    }

    /// PRR: the window at an ACK within a fast recovery.
    fn reduce(&mut self, on: usize, ack: &Ack) {
        let (flow, past) = (&mut self.flows[on], &mut self.pasts[on]);
        if let Some(reduction) = past.reduction.as_mut() {
            let window = reduction.window(ack.acked.into(), ack.in_flight.into(), flow.ssthresh, flow.segment());
            flow.cwnd = window.min(self.rules.limit(flow.mss)).max(flow.segment());
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
                let armed = in_slow_start && flow.cwnd >= flow.segments(LOW_WINDOW);
                let half = flow.ssthresh / 2.0;
                let bursts = BURST.as_f64() / (flow.cwnd.as_f64() * if flow.cwnd < half { 2.0 } else { 1.2 });
                let burst_time = flow.srtt.map_or(Duration::ZERO, |srtt| srtt.mul_f64(bursts));
                past.watch.ends_slow_start(now, ack, rule, armed, burst_time)
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
            reduction.on_sent(bytes);
        }
    }

    /// Applies an algorithm's answer to an ACK, within bounds.
    fn set(&mut self, on: usize, window: WindowUpdate, may_grow: bool) {
        let flow = &mut self.flows[on];
        let most = if may_grow { self.rules.limit(flow.mss) } else { flow.cwnd };
        flow.cwnd = window.cwnd.min(most).min(LARGEST).max(flow.segment());
        flow.set_threshold(window.ssthresh);
    }

    /// LISA: the first window of a joining subflow, taken from the one that has most.
    fn take_credit(&mut self, mss: Bytes, initial: Window) -> Window {
        let in_slow_start = |on: usize| {
            let (flow, past) = (&self.flows[on], &self.pasts[on]);
            flow.counted && flow.cwnd < flow.ssthresh && !flow.recovering && !past.after_rto
        };
        let credit = credit(&self.flows, in_slow_start, mss, initial);
        if let Some(giver) = credit.giver {
            let (flow, past) = (&mut self.flows[giver], &mut self.pasts[giver]);
            flow.cwnd = (flow.cwnd - credit.window).max(flow.segment());
            past.given += credit.window;
        }
        credit.window
    }

    /// Loss recovery by retransmission begins: the window falls to the new threshold at once. No effect within a
    /// recovery. `in_flight` is FlightSize (RFC 5681 §2): sent and not cumulatively acknowledged, lost segments
    /// included. It matters when less was in flight than the window admitted, and the rules are not those of Linux.
    pub fn on_fast_retransmit(&mut self, now: Instant, id: SubflowId, in_flight: Bytes) {
        // A loss in the round trip of a mark is answered by the mark (RFC 8511 §3), unless marks are answered by
        // little: then as in any other (RFC 8257 §3.5, Linux).
        let precise = self.algorithm.capabilities.precise_marks;
        let free = |on: &usize| !self.flows[*on].recovering || (precise && self.pasts[*on].by_mark);
        let Some(on) = self.find(id).filter(free) else {
            return;
        };
        self.pasts[on].by_mark = false;
        let in_flight = self.begin_reduction(on, in_flight);
        match &mut self.algorithm.policy {
            CongestionControl::WindowBased(algorithm) => {
                let ssthresh = algorithm.on_fast_retransmit(now, on, in_flight, &self.flows);
                self.fall(on, ssthresh);
            }
            CongestionControl::ModelBased(algorithm) => algorithm.on_fast_retransmit(now, &self.flows[on]),
        }
        self.flows[on].recovering = true;
    }

    /// The peer reports a mark (ECN), the first in a round trip: the window falls as after a loss, by what the
    /// algorithm says of marks. Returns true if it does; the round ends with [`Controller::on_recovered`]. No effect
    /// within a recovery, which has reduced the window for this round. `in_flight` as in
    /// [`Controller::on_fast_retransmit`].
    pub fn on_mark(&mut self, now: Instant, id: SubflowId, in_flight: Bytes) -> bool {
        let Some(on) = self.find(id) else {
            return false;
        };
        if let CongestionControl::ModelBased(algorithm) = &mut self.algorithm.policy {
            return algorithm.on_mark(now, &self.flows[on]);
        }
        if self.flows[on].recovering || self.pasts[on].after_rto {
            return false;
        }
        let in_flight = self.begin_reduction(on, in_flight);
        // Marks are told by the queue itself: they cannot turn out to be unfounded.
        self.pasts[on].undo = None;
        if let CongestionControl::WindowBased(algorithm) = &mut self.algorithm.policy {
            let ssthresh = algorithm.on_mark(now, on, in_flight, &self.flows);
            self.fall(on, ssthresh);
        }
        (self.flows[on].recovering, self.pasts[on].by_mark) = (true, true);
        true
    }

    /// The window falls to a threshold: at once, in the course of the round (PRR), or as `loss-response` says.
    fn fall(&mut self, on: usize, ssthresh: Window) {
        let flow = &mut self.flows[on];
        flow.fall_to(if self.rules.loss_response == LossResponse::Halve { Window::ZERO } else { ssthresh });
        self.pasts[on].reduction = self.rules.prr.then(|| Reduction::new(flow.cwnd));
        flow.cwnd = match self.rules.loss_response {
            LossResponse::Standard | LossResponse::Linux => flow.cwnd.min(flow.ssthresh),
            LossResponse::Halve => (flow.cwnd / 2.0).max(flow.segment()),
        };
    }

    /// A segment was found lost, which only a model-based congestion control wants to know of each. To be called after
    /// [`Controller::on_fast_retransmit`] or [`Controller::on_rto`] and before [`Controller::on_ack`].
    pub fn on_lost(&mut self, now: Instant, id: SubflowId, lost: &LostSegment) {
        if let (Some(on), CongestionControl::ModelBased(algorithm)) = (self.find(id), &mut self.algorithm.policy) {
            algorithm.on_lost(now, &self.flows[on], lost);
        }
    }

    /// All that was in flight at the loss or the timeout is acknowledged.
    pub fn on_recovered(&mut self, now: Instant, id: SubflowId) {
        if let Some(on) = self.find(id) {
            if self.algorithm.is_model_based() && !self.flows[on].recovering && !self.pasts[on].after_rto {
                // The round trip of a mark, of which a model knows the end itself.
                return;
            }
            self.flows[on].recovering = false;
            (self.pasts[on].after_rto, self.pasts[on].by_mark) = (false, false);
            if self.pasts[on].reduction.take().is_some() && !self.algorithm.is_model_based() {
                self.flows[on].cwnd = self.flows[on].ssthresh;
            }
            self.algorithm.on_recovered(now, on, &self.flows);
        }
    }

    /// The retransmission timer expired, for the `first` time since data were last acknowledged or not. One segment may
    /// leave, and slow start follows. A timeout within a recovery keeps its threshold: both repair the same window, so
    /// it falls once (as in Linux; RFC 5681 comes to the same, since its FlightSize is still that of the loss).
    /// `in_flight` as in [`Controller::on_fast_retransmit`].
    pub fn on_rto(&mut self, now: Instant, id: SubflowId, in_flight: Bytes, first: bool) {
        let Some(on) = self.find(id) else {
            return;
        };
        if first && !self.flows[on].recovering {
            let in_flight = self.begin_reduction(on, in_flight);
            match &mut self.algorithm.policy {
                CongestionControl::WindowBased(algorithm) => {
                    let ssthresh = algorithm.on_rto(now, on, in_flight, &self.flows);
                    self.flows[on].fall_to(ssthresh);
                }
                CongestionControl::ModelBased(algorithm) => algorithm.on_rto(now, &self.flows[on]),
            }
        } else {
            self.algorithm.on_rto_again(now, on, &self.flows);
        }
        let flow = &mut self.flows[on];
        if self.rules.loss_response == LossResponse::Halve && !self.algorithm.is_model_based() {
            flow.fall_to(Window::ZERO);
            (flow.cwnd, flow.recovering) = ((flow.cwnd / 2.0).max(flow.segment()), false);
            return;
        }
        flow.cwnd = flow.segment();
        flow.recovering = false;
        let past = &mut self.pasts[on];
        (past.after_rto, past.reduction, past.by_mark) = (true, None, false);
        past.watch.restart();
        past.plus_plus = PlusPlus::default();
    }

    /// Handles a spurious loss detection (DSACK, Eifel): restores the window and threshold from before the latest
    /// reduction, if they were larger.
    pub fn on_spurious(&mut self, now: Instant, id: SubflowId) {
        let Some(on) = self.find(id) else {
            return;
        };
        let Some(undo) = self.pasts[on].undo.take() else {
            return;
        };
        self.pasts[on].reduction = None;
        let flow = &mut self.flows[on];
        if !self.algorithm.is_model_based() {
            flow.cwnd = flow.cwnd.max(undo.cwnd);
            flow.ssthresh = flow.ssthresh.max(undo.ssthresh);
        }
        flow.recovering = false;
        (self.pasts[on].after_rto, self.pasts[on].by_mark) = (false, false);
        self.pasts[on].cwnd_at_loss = undo.cwnd_at_loss;
        self.algorithm.on_spurious(now, on, &self.flows);
    }

    /// Data leave after `idle` without any, with nothing in flight. The window halves for every `rto` that passed, down
    /// to the initial window; the threshold remembers three quarters of it (RFC 2861 §3, Linux).
    pub fn on_idle(&mut self, now: Instant, id: SubflowId, idle: Duration, rto: Duration) {
        let Some(on) = self.find(id) else {
            return;
        };
        if let Some(cwnd) = self.algorithm.on_restart(now, on, &self.flows) {
            let cwnd = cwnd.max(self.flows[on].cwnd);
            self.set(on, WindowUpdate { cwnd, ssthresh: Window::INFINITE }, true);
        }
        if self.is_repairing(on) || idle <= rto || self.algorithm.is_model_based() {
            return;
        }
        // Nothing is in flight that could end the round trip of a mark.
        let settled = self.settled(on);
        let past = &mut self.pasts[on];
        (past.by_mark, past.reduction) = (false, None);
        (self.flows[on].recovering, self.flows[on].cwnd) = (false, settled);
        if self.rules.idle_restart {
            let restarted = self.restarted(on, idle, rto);
            let flow = &mut self.flows[on];
            flow.ssthresh = flow.ssthresh.max(flow.cwnd * 0.75);
            flow.cwnd = restarted;
            self.pasts[on].undo = None;
        }
        self.algorithm.on_reset(now, on, &self.flows);
    }

    /// The window that `on_idle` would leave.
    pub fn cwnd_after_idle(&self, id: SubflowId, idle: Duration, rto: Duration) -> Bytes {
        match self.find(id) {
            Some(on)
                if self.rules.idle_restart
                    && !self.algorithm.is_model_based()
                    && !self.is_repairing(on)
                    && idle > rto =>
            {
                self.restarted(on, idle, rto).whole()
            }
            _ => self.cwnd(id),
        }
    }

    /// Returns true in a loss recovery.
    fn is_repairing(&self, on: usize) -> bool {
        self.flows[on].recovering && !self.pasts[on].by_mark
    }

    /// The window once the round trip of a mark is over.
    fn settled(&self, on: usize) -> Window {
        let (flow, past) = (&self.flows[on], &self.pasts[on]);
        if past.by_mark && past.reduction.is_some() { flow.ssthresh } else { flow.cwnd }
    }

    fn restarted(&self, on: usize, idle: Duration, rto: Duration) -> Window {
        let settled = self.settled(on);
        let restart = self.rules.initial_window.window(self.flows[on].mss).min(settled);
        let (mut cwnd, mut left) = (settled, idle.saturating_sub(rto));
        while !left.is_zero() && cwnd > restart {
            cwnd /= 2.0;
            left = left.saturating_sub(rto);
        }
        cwnd.max(restart)
    }

    /// A reinjection policy asks to slow the subflow down (A-OPT). A subflow that repairs losses has slowed down
    /// already; one whose window follows a model would only have it back at the next ACK.
    pub fn penalise(&mut self, now: Instant, id: SubflowId) {
        let Some(on) = self.find(id).filter(|&on| !self.flows[on].recovering && !self.pasts[on].after_rto) else {
            return;
        };
        if self.algorithm.is_model_based() {
            return;
        }
        let flow = &mut self.flows[on];
        if flow.cwnd >= flow.ssthresh {
            flow.set_threshold(flow.ssthresh / 2.0);
        }
        flow.cwnd = (flow.cwnd / 2.0).max(flow.segment());
        self.pasts[on].undo = None;
        self.algorithm.on_reset(now, on, &self.flows);
    }

    #[inline]
    fn find(&self, id: SubflowId) -> Option<usize> {
        // As long as no subflow has gone, the place is the number.
        let place = usize::from(id.0);
        if self.flows.get(place).is_some_and(|flow| flow.id == id) {
            return Some(place);
        }
        self.flows.iter().position(|flow| flow.id == id)
    }

    /// Remembers what there was, and says how many bytes the reduction starts from.
    fn begin_reduction(&mut self, on: usize, in_flight: Bytes) -> Window {
        let (flow, past) = (&self.flows[on], &mut self.pasts[on]);
        past.undo = Some(Undo { cwnd: flow.cwnd, ssthresh: flow.ssthresh, cwnd_at_loss: past.cwnd_at_loss });
        past.cwnd_at_loss = Some(past.cwnd_at_loss.map_or(flow.cwnd, |most| most.max(flow.cwnd)));
        past.after_rto = false;
        past.given = Window::ZERO;
        let window_counts = past.cwnd_limited || self.rules.loss_response == LossResponse::Linux;
        if window_counts { flow.cwnd } else { Window::from(in_flight).min(flow.cwnd) }
    }
}

/// No window is larger, whatever an algorithm says.
const LARGEST: Window = Window::new(1e15);
