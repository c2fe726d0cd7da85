//! State that the connections of one endpoint share: settings, output queues, counters, randomness.

use crate::chance::Chance;
use crate::chosen::Chosen;
use crate::cookie::{Cookies, PendingJoins};
use crate::demux::Demux;
use crate::dss_form::suits_short;
use crate::locals::Locals;
use crate::memory::Memory;
use crate::path_mtu::Mtus;
use crate::{Config, ConnectionId, Counters, Event, FallbackReason, Purpose, Transmit};
use anabranch_policy::Truth;
use anabranch_policy::forecast::LossEstimate;
use anabranch_units::{Bytes, Instant, Key, SubflowId, SubflowSeq, Token};
use anabranch_wire::{Echo, Flags, FlowKey, MpOption, ResetReason, Segment};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// A change to the tables by which segments find their connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// Segments of this flow (as we send it) belong to this subflow.
    Add(FlowKey, ConnectionId, SubflowId),
    Remove(FlowKey),
    /// Joins with this token belong to this connection.
    AddToken(Token, ConnectionId),
    RemoveToken(Token, ConnectionId),
}

/// Facts that the driver told about the way between two addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathTruth {
    pub(crate) local: IpAddr,
    pub(crate) remote: Option<IpAddr>,
    pub(crate) truth: Truth,
}

pub(crate) struct Shared {
    /// Its addresses are in `locals`.
    pub(crate) config: Config,
    pub(crate) locals: Locals,
    pub(crate) out: VecDeque<Transmit>,
    /// Segments whose memory is free. Blank: without options and payload.
    #[expect(clippy::vec_box, reason = "the boxes are what is handed out again")]
    pub(crate) spare: Vec<Box<Segment>>,
    pub(crate) events: VecDeque<(ConnectionId, Event)>,
    pub(crate) routes: Vec<Route>,
    /// Flow table as before `routes`.
    pub(crate) demux: Demux,
    /// Connection for the token of a join, as before `routes`.
    pub(crate) tokens: BTreeMap<Token, ConnectionId>,
    pub(crate) counters: Counters,
    pub(crate) chance: Chance,
    pub(crate) cookies: Cookies,
    pub(crate) pending_joins: PendingJoins,
    pub(crate) mtus: Mtus,
    pub(crate) memory: Memory,
    pub(crate) truths: Vec<PathTruth>,
    /// Local addresses whose interface is down.
    pub(crate) down: Vec<IpAddr>,
    pub(crate) chosen: Chosen,
    /// Echo requests and replies to be sent.
    pub(crate) echoes: VecDeque<Echo>,
    /// Disables the short ways in and out, which must make no difference.
    #[cfg(test)]
    pub(crate) long_way: bool,
    /// Segments that have taken the short way in.
    #[cfg(test)]
    pub(crate) short: u64,
}

/// Segments whose memory is kept for those to come.
const MOST_SPARE: usize = 4096;
/// Echo requests and replies that wait for the driver.
const MOST_ECHOES: usize = 1024;

impl Shared {
    /// Returns a key whose token is unused (RFC 8684 §3.1), and whose stream may have short numbers if they are to be
    /// used.
    pub(crate) fn new_key(&mut self) -> Key {
        loop {
            let (key, chosen) = match self.chosen.next_key() {
                Some(key) => (key, true),
                None => (Key::new(self.chance.next_u64()), false),
            };
            let suits = chosen || !self.config.profile.short_dss || suits_short(key.idsn());
            if suits && !self.tokens.contains_key(&key.token()) {
                return key;
            }
        }
    }

    /// Tells whether tests have disabled the short ways.
    #[inline(always)]
    pub(crate) fn takes_long_way(&self) -> bool {
        #[cfg(test)]
        let disabled = self.long_way;
        #[cfg(not(test))]
        let disabled = false;
        disabled
    }

    /// Tells whether a SYN was answered without keeping its connection or subflow, and the third ACK may still come.
    pub(crate) fn has_answered(&self, now: Instant) -> bool {
        self.cookies.are_out(now) || !self.pending_joins.is_unused()
    }

    pub(crate) fn event(&mut self, id: ConnectionId, event: Event) {
        // One of these says all that several in a row would.
        if event == Event::Readable {
            let mut events = self.events.iter().rev();
            let last = events.find(|(_, event)| !matches!(event, Event::CongestionPhase { .. }));
            if last == Some(&(id, event)) {
                return;
            }
        }
        self.events.push_back((id, event));
    }

    /// Sends a probe, or answers one. A driver that never asks for them does not fill our memory.
    pub(crate) fn echo(&mut self, echo: Echo) {
        if self.echoes.len() == MOST_ECHOES {
            self.echoes.pop_front();
        }
        self.echoes.push_back(echo);
    }

    /// A segment of `flow` without options and payload, in memory that was used before if there is any.
    #[inline]
    pub(crate) fn segment(&mut self, flow: FlowKey, flags: Flags, seq: SubflowSeq, ack: SubflowSeq) -> Box<Segment> {
        let Some(mut segment) = self.spare.pop() else {
            return Box::new(Segment::new(flow, flags, seq, ack));
        };
        (segment.flow, segment.flags, segment.seq, segment.ack) = (flow, flags, seq, ack);
        segment
    }

    /// Keeps the memory of a segment for the next one. A host that answers strangers is given back more than it takes.
    #[inline]
    pub(crate) fn reuse(&mut self, mut segment: Box<Segment>) {
        if self.spare.len() < MOST_SPARE {
            segment.clear();
            self.spare.push(segment);
        }
    }

    /// Sends a segment whose packet has `size` bytes.
    pub(crate) fn send(&mut self, tag: u64, segment: Box<Segment>, size: Bytes, purpose: Purpose) {
        self.out.push_back(Transmit { segment, size, tag, purpose });
    }

    /// Counts that a connection fell back.
    pub(crate) fn fell_back(&mut self, reason: FallbackReason) {
        *self.counters.fallbacks.entry(reason).or_default() += 1;
    }

    /// The MP_TCPRST option for a reset of ours, counted (RFC 8684 §3.6).
    pub(crate) fn reset_option(&mut self, reason: ResetReason) -> MpOption {
        *self.counters.resets_sent.entry(reason).or_default() += 1;
        // Prohibited are subflows beyond the limit: there may be room when another has gone.
        use ResetReason::{LackOfResources, Prohibited, UnacceptablePerformance};
        let transient = matches!(reason, UnacceptablePerformance | LackOfResources | Prohibited);
        MpOption::TcpReset { transient, reason }
    }

    /// A flow to `remote` that no subflow uses. With every dynamic port in use the ports below serve as well, unless
    /// the ports are restricted. `None` if all are in use.
    pub(crate) fn free_flow(&mut self, local: IpAddr, remote: SocketAddr) -> Option<FlowKey> {
        let ports = self.ports();
        let mut flow = FlowKey::new(SocketAddr::new(local, self.chance.port(&ports)), remote);
        // Where ACKs may come by way of other addresses their ports name the subflow, so they had better be its own.
        let count = u32::from(ports.end() - ports.start()) + 1;
        for attempt in 0..2 * count {
            let own_ports = attempt >= count || self.demux.with_ports(&flow).is_empty();
            if own_ports && !self.demux.contains(&flow) {
                return Some(flow);
            }
            flow.src_port = self.chance.port(&ports);
        }
        let last = if self.config.ports.is_some() { 0 } else { FIRST_DYNAMIC_PORT };
        let mut below = (1..last).rev().map(|port| FlowKey { src_port: port, ..flow });
        below.find(|flow| !self.demux.contains(flow))
    }

    fn ports(&self) -> RangeInclusive<u16> {
        self.config.ports.clone().unwrap_or(FIRST_DYNAMIC_PORT..=u16::MAX)
    }

    /// A loss estimate for a subflow between these addresses; no estimate if the driver told the rate and it is to be
    /// used.
    pub(crate) fn loss_estimate(&self, flow: &FlowKey) -> LossEstimate {
        let mut estimate = LossEstimate::new();
        estimate.set_oracle(self.loss_oracle(flow));
        estimate
    }

    /// The true loss rate between these addresses, if it is to take the place of the estimate.
    pub(crate) fn loss_oracle(&self, flow: &FlowKey) -> Option<f64> {
        self.truth(flow).filter(|_| self.config.loss_oracle).map(|truth| truth.loss)
    }

    /// Returns the latest truth that the driver set for the path between these addresses.
    pub(crate) fn truth(&self, flow: &FlowKey) -> Option<Truth> {
        let fits = |truth: &&PathTruth| truth.local == flow.src && truth.remote.is_none_or(|remote| remote == flow.dst);
        self.truths.iter().rev().find(fits).map(|told| told.truth)
    }
}

/// First of the dynamic ports (RFC 6335 §6).
const FIRST_DYNAMIC_PORT: u16 = 49152;
