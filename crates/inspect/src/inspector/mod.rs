//! Packets in the order of time become flows, flows become connections.

mod data;
mod handshake;
mod membership;
mod options;

use crate::connection::Connection;
use crate::copies::{Copies, Verdict};
use crate::flow::{Flow, Reset};
use crate::limits::Limits;
use crate::report::Report;
use crate::summary;
use anabranch_units::{Dsn, Instant, Token};
use anabranch_wire::{Captured, ChecksumStatus, Flags, FlowKey, Map, MpOption, Segment};
use std::collections::HashMap;

/// Takes packets in, answers a report. It reads no clock and no file; memory is bounded by its [`Limits`].
#[derive(Debug, Default)]
pub struct Inspector {
    limits: Limits,
    pub(crate) flows: Vec<Flow>,
    pub(crate) connections: Vec<Connection>,
    by_tuple: HashMap<FlowKey, usize>,
    /// The side of a connection that a token names.
    by_token: HashMap<Token, (usize, usize)>,
    copies: Copies,
    pub(crate) totals: Totals,
}

/// Counters over the whole capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub packets: u64,
    pub mptcp: u64,
    pub copies: u64,
    pub first_at: Option<Instant>,
    pub last_at: Option<Instant>,
    /// Packets without a time.
    pub timeless: u64,
    /// Packets before the time of the one before them.
    pub backwards: u64,
    /// Packets of flows, and flows of connections, beyond the limits.
    pub ignored_packets: u64,
    pub ignored_connections: u64,
    pub bad_checksums: u64,
    /// Packets cut within their options.
    pub options_cut: u64,
}

/// A packet, as it was assigned to a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// Time of the packet: its own, or that of the one before.
    pub at: Instant,
    /// Number of the flow, from 0, in the order in which flows were first seen.
    pub flow: usize,
    /// Side of the flow that sent it: 0 for the side that sent the first packet seen.
    pub from: usize,
    /// True if the same packet was captured before.
    pub copy: bool,
    /// Mapping that it carries, in a DSS or in MP_CAPABLE.
    pub map: Option<Map>,
}

/// Findings of an inspection.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Report.
    pub report: Report,
    /// Place of each flow in the report.
    pub places: Vec<Place>,
    /// Initial data sequence numbers of both sides, by connection of the report, as far as their keys are known.
    pub idsns: Vec<[Option<Dsn>; 2]>,
}

/// Place of a flow in a [`Report`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A subflow.
    Subflow {
        /// Number of the connection, from 1.
        connection: usize,
        /// Number of the subflow, from 0.
        subflow: u32,
        /// True if side 0 of the flow is side 1 of the connection.
        swapped: bool,
    },
    /// A TCP connection that is no subflow: its index in [`Report::plain_tcp`], and the same about its sides.
    Plain {
        /// Index.
        index: usize,
        /// True if side 0 of the flow is the second one there.
        swapped: bool,
    },
    /// A SYN that lost the race for a first subflow.
    LostRace,
}

/// One packet on its way through.
struct Packet<'a> {
    at: Instant,
    segment: &'a Segment,
    length: u64,
    flow: usize,
    /// The side of the flow that sent it.
    from: usize,
}

impl Inspector {
    /// Creates it with these bounds on memory.
    pub fn new(limits: Limits) -> Self {
        Inspector { limits, ..Inspector::default() }
    }

    /// A packet passes `interface` at a time (nanoseconds since 1970). Packets come in the order of time; one without a
    /// time is taken for simultaneous with the last. Returns the flow that it belongs to, unless that is beyond the
    /// limits.
    pub fn packet(&mut self, at: Option<Instant>, interface: u32, captured: &Captured) -> Option<Sighting> {
        let last = self.totals.last_at;
        self.totals.packets += 1;
        self.totals.timeless += u64::from(at.is_none());
        self.totals.backwards += u64::from(at.is_some() && at < last);
        let at = at.or(last).unwrap_or(Instant::ZERO);
        self.totals.first_at = Some(self.totals.first_at.map_or(at, |first| first.min(at)));
        self.totals.last_at = Some(last.map_or(at, |last| last.max(at)));
        let segment = &captured.segment;
        self.totals.mptcp += u64::from(has_mptcp(segment));
        self.totals.options_cut += u64::from(captured.options_cut);
        self.totals.bad_checksums += u64::from(captured.checksum == ChecksumStatus::Bad);

        let (print, verdict) = self.copies.check(captured, interface, at);
        let Some((flow, from)) = self.find_flow(segment, at) else {
            self.totals.ignored_packets += 1;
            return None;
        };
        let copy = matches!(verdict, Verdict::Copy { .. });
        let sighting = Sighting { at, flow, from, copy, map: data::mapping_of(segment).map(|(map, _)| map) };
        if let Verdict::Copy { acknowledges } = verdict {
            self.totals.copies += 1;
            let flow = &mut self.flows[flow];
            flow.copies += 1;
            if let Some(sent) = acknowledges {
                flow.sides[1 - from].sequence.rtt_far.push(at.since(sent));
            }
            return Some(sighting);
        }
        let packet = Packet { at, segment, length: captured.payload_length as u64, flow, from };
        self.count(&packet, captured, verdict == Verdict::Undecided);
        self.handshake(&packet, captured.options_cut);
        self.options(&packet);
        self.acknowledgment(&packet, print);
        self.data(&packet);
        self.ends(&packet);
        Some(sighting)
    }

    /// The capture ends here: everything that is known, as seen now.
    pub fn finish(self) -> Report {
        self.finish_with_places().report
    }

    /// Returns the report, and what ties it to the packets that passed.
    pub fn finish_with_places(mut self) -> Findings {
        for flow in 0..self.flows.len() {
            for side in 0..2 {
                self.replay(flow, side, true);
                self.flows[flow].sides[side].mappings.finish();
            }
        }
        let end = self.totals.last_at.unwrap_or(Instant::ZERO);
        for stream in self.connections.iter_mut().flat_map(|connection| &mut connection.streams) {
            stream.finish(end);
        }
        Findings { report: summary::report(&self), places: summary::places(&self), idsns: summary::idsns(&self) }
    }

    /// The flow of a segment, a new one if need be, and the side that sent it.
    fn find_flow(&mut self, segment: &Segment, at: Instant) -> Option<(usize, usize)> {
        let key = segment.flow;
        let known = (self.by_tuple.get(&key).map(|&flow| (flow, 0)))
            .or_else(|| self.by_tuple.get(&key.reversed()).map(|&flow| (flow, 1)));
        if let Some((flow, from)) = known {
            if !self.flows[flow].is_reused(segment, from) {
                self.flows[flow].last_at = self.flows[flow].last_at.max(at);
                return Some((flow, from));
            }
            self.flows[flow].replaced = true;
            self.by_tuple.remove(&self.flows[flow].key);
        }
        if self.flows.len() >= self.limits.flows {
            return None;
        }
        self.by_tuple.insert(key, self.flows.len());
        self.flows.push(Flow::new(key, at));
        Some((self.flows.len() - 1, 0))
    }

    fn count(&mut self, packet: &Packet<'_>, captured: &Captured, undecided: bool) {
        let flow = &mut self.flows[packet.flow];
        flow.undecided += u64::from(undecided);
        if undecided && packet.length > 0 {
            flow.undecided_data.add(packet.length);
        }
        let side = &mut flow.sides[packet.from];
        let options = &packet.segment.options;
        let is_data = packet.length > 0;
        side.packets += 1;
        side.with_mptcp += u64::from(has_mptcp(packet.segment));
        side.options_cut += u64::from(captured.options_cut);
        // SYN and RST say nothing about whether options get through.
        if !packet.segment.flags.has(Flags::RST) && !packet.segment.flags.has(Flags::SYN) && !captured.options_cut {
            side.count(has_mptcp(packet.segment), options.has_dss(), is_data);
        }
        side.payload_cut += u64::from((captured.segment.payload.len() as u64) < packet.length);
        side.bad_checksums += u64::from(captured.checksum == ChecksumStatus::Bad);
        side.broken_options += u64::from(!options.broken().is_empty());
    }

    /// FIN and RST.
    fn ends(&mut self, packet: &Packet<'_>) {
        let Packet { at, segment, flow, from, .. } = *packet;
        let side = &mut self.flows[flow].sides[from];
        if segment.flags.has(Flags::RST) {
            let mut reset = Reset { at, reason: None, fast_close: false };
            for option in segment.options.mptcp() {
                match option {
                    MpOption::TcpReset { transient, reason } => reset.reason = Some((*reason, *transient)),
                    MpOption::FastClose { .. } => reset.fast_close = true,
                    _ => {}
                }
            }
            side.reset.get_or_insert(reset);
        } else if segment.flags.has(Flags::FIN) {
            side.fin_at.get_or_insert(at);
        }
    }
}
impl Flow {
    /// True if `segment` begins another connection with the same addresses and ports.
    fn is_reused(&self, segment: &Segment, from: usize) -> bool {
        let is_syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let side = &self.sides[from].sequence;
        is_syn && side.is_other_isn(segment.seq) && (self.is_over() || side.unique() > 0 || self.shake.ack_at.is_some())
    }
}

fn has_mptcp(segment: &Segment) -> bool {
    segment.options.has_mptcp() || segment.options.unknown().iter().any(|option| option.kind == MPTCP)
}

/// The TCP option kind of MPTCP.
const MPTCP: u8 = 30;
