//! The state of the connection at a moment, for those who explain a run: a pure look at what is there.

use super::{Connection, Mode};
use crate::recovery::Phase;
use crate::sent_log::bit;
use crate::subflow::{State, Subflow};
use crate::{ConnectionInfo, SubflowInfo, SubflowMetrics, Wait};
use anabranch_units::{Bytes, SubflowId};

impl Connection {
    /// Fills in what this end waits for now. Uses the memory of `info` again.
    pub(crate) fn info(&self, info: &mut ConnectionInfo) {
        let out = &self.sender.outgoing;
        let established = self.subflows.iter().any(|subflow| subflow.state == State::Established);
        let unsent = out.unsent.total();
        info.open = established && self.life.mode() != Mode::Negotiating;
        info.unsent = unsent;
        info.sendable = if unsent == 0 { 0 } else { out.unsent.below(out.edge) };
        info.outstanding = out.nxt - out.una.min(out.nxt);
        info.expected = self.receiver.stream_next();
        info.unread = self.receiver.unread();
        let on_subflows: u64 = self.subflows.iter().map(|subflow| subflow.rx.ofo.bytes()).sum();
        info.held = self.receiver.waiting_bytes() + on_subflows;
        info.subflows.clear();
        let shown = self.subflows.eligible_now();
        info.subflows.extend(self.subflows.slots().map(|slot| (slot, &self.subflows[slot])).map(|(slot, subflow)| {
            SubflowInfo {
                id: subflow.id,
                local: subflow.flow.src,
                remote: subflow.flow.dst,
                wait: self.wait_of(subflow, shown.contains(slot.place())),
                mss: subflow.tx.mss,
                timeouts: subflow.tx.recovery.rto_count(),
                delivered: subflow.tx.recovery.delivered(),
                path_rate: subflow.tx.path_rate.get(),
                phase: self.sender.congestion.phase(subflow.id),
                heard: subflow.liveness.heard,
            }
        }));
    }

    /// Variables of a model-based congestion control on a subflow; none for others.
    pub(crate) fn congestion_variables(&self, subflow: SubflowId) -> Vec<(&'static str, f64)> {
        self.sender.congestion.variables(subflow)
    }

    /// Loss recovery and congestion control of the subflows that are established.
    pub(crate) fn subflow_metrics(&self) -> Vec<SubflowMetrics> {
        let metrics = |subflow: &Subflow| {
            let (rtt, congestion) = (&subflow.tx.rtt, &self.sender.congestion);
            let (cwnd, ssthresh, _) = congestion.windows(subflow.id);
            SubflowMetrics {
                id: subflow.id,
                flow: subflow.flow,
                min_rtt: rtt.min(),
                srtt: rtt.srtt(),
                latest_rtt: rtt.last(),
                rttvar: rtt.rttvar(),
                cwnd,
                ssthresh,
                in_flight: subflow.tx.in_flight(),
                pacing: congestion.model(subflow.id, rtt.srtt()).map(|model| model.pacing),
            }
        };
        self.subflows.iter().filter(|subflow| subflow.state == State::Established).map(metrics).collect()
    }

    /// The obstacle to new data on a subflow that policies are shown, or not.
    fn wait_of(&self, subflow: &Subflow, is_shown: bool) -> Wait {
        let (cwnd, ssthresh, _) = self.sender.congestion.windows(subflow.id);
        let used_up = || self.sender.views.iter().any(|view| view.id == subflow.id && view.share.is_zero());
        let phase = subflow.tx.recovery.phase();
        let has_ended = self.sender.outgoing.fin.is_some() && self.sender.outgoing.unsent.is_empty();
        match () {
            () if subflow.state != State::Established => Wait::Handshake,
            () if subflow.tx.rtt.srtt().is_none() && subflow.is_open() => Wait::Handshake,
            () if phase == Phase::Loss => Wait::Timeout,
            // The end of the stream has left: what is under way is still carried.
            () if subflow.tx.fin_sent && has_ended => Wait::Room,
            () if !is_shown => Wait::SetAside,
            () if subflow.tx.in_flight() + Bytes::new(u64::from(subflow.tx.mss)) > cwnd => {
                // What repairs a loss does not grow, whatever the threshold says.
                let grows = ssthresh.is_none_or(|ssthresh| cwnd < ssthresh) && phase != Phase::Recovery;
                if grows { Wait::SlowStart } else { Wait::CongestionWindow }
            }
            () if subflow.tx.throttled => Wait::Pacing,
            () if subflow.tx.window_left() == 0 || used_up() => Wait::PeerWindow,
            () => Wait::Room,
        }
    }

    /// The subflow on which the byte at `offset` of our stream left first; `None` if it has not left, was acknowledged,
    /// or that subflow is gone and no other has carried it.
    pub(crate) fn first_carrier(&self, offset: u64) -> Option<SubflowId> {
        let log = &self.sender.outgoing.log;
        let carriers = log.carriers(offset);
        let first = log.first_carrier(offset).filter(|mark| carriers & bit(*mark) != 0);
        let carried = |subflow: &&Subflow| match first {
            Some(mark) => subflow.mark == mark,
            None => carriers & bit(subflow.mark) != 0,
        };
        self.subflows.iter().find(carried).map(|subflow| subflow.id)
    }
}
