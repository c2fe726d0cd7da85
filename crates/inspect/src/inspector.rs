//! Packets in the order of time become flows, flows become connections.

use crate::connection::Connection;
use crate::copies::{Copies, Verdict};
use crate::coverage::length;
use crate::flow::{By, Flow, Member, Offer, Pending, Reset};
use crate::limits::Limits;
use crate::mapping::Mapping;
use crate::report::Report;
use crate::sequence::{Data, Sent};
use crate::signal::{Signal, What, version_0};
use crate::summary;
use anabranch_units::{Instant, Key, Token};
use anabranch_wire::{Captured, Checksum, ChecksumStatus, DataSeq, Flags, FlowKey, Map, MpCapable, MpOption, Segment};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;

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

/// What is counted over the whole capture.
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
    /// With these bounds on memory.
    pub fn new(limits: Limits) -> Self {
        Inspector { limits, ..Inspector::default() }
    }

    /// A packet passes `interface` at a time (nanoseconds since 1970). Packets come in the order of time; one without a
    /// time is taken for simultaneous with the last.
    pub fn packet(&mut self, at: Option<Instant>, interface: u32, captured: &Captured) {
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
            return;
        };
        if let Verdict::Copy { acknowledges } = verdict {
            self.totals.copies += 1;
            let flow = &mut self.flows[flow];
            flow.copies += 1;
            if let Some(sent) = acknowledges {
                flow.sides[1 - from].sequence.rtt_far.push(at.since(sent));
            }
            return;
        }
        let packet = Packet { at, segment, length: captured.payload_length as u64, flow, from };
        self.count(&packet, captured, verdict == Verdict::Undecided);
        self.handshake(&packet, captured.options_cut);
        self.options(&packet);
        self.acknowledgment(&packet, print);
        self.data(&packet);
        self.ends(&packet);
    }

    /// The capture ends here: everything that is known, as seen now.
    pub fn finish(mut self) -> Report {
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
        summary::report(&self)
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
        side.options_cut += u64::from(captured.options_cut);
        // SYN and RST say nothing about whether options get through.
        if !packet.segment.flags.has(Flags::RST) && !packet.segment.flags.has(Flags::SYN) && !captured.options_cut {
            side.count(has_mptcp(packet.segment), options.dss.is_some(), is_data);
        }
        side.payload_cut += u64::from((captured.segment.payload.len() as u64) < packet.length);
        side.bad_checksums += u64::from(captured.checksum == ChecksumStatus::Bad);
        side.broken_options += u64::from(!options.broken().is_empty());
    }

    /// SYN, SYN/ACK and third ACK: who opened, where the sequence numbers begin, what was offered.
    fn handshake(&mut self, packet: &Packet<'_>, cut: bool) {
        let Packet { at, segment, from, .. } = *packet;
        let flow = &mut self.flows[packet.flow];
        let offer = offer(segment, cut);
        let shake = &mut flow.shake;
        let is_syn = segment.flags.has(Flags::SYN);
        let is_ack = segment.flags.has(Flags::ACK);
        if segment.flags.has(Flags::RST) {
            return;
        }
        if is_syn && !is_ack {
            flow.opener.get_or_insert(from);
            shake.syns += 1;
            shake.syn_at.get_or_insert(at);
            match (shake.syn, offer) {
                (Offer::Unseen | Offer::Cut, offer) => shake.syn = offer,
                (Offer::Capable(_) | Offer::JoinSyn(_), Offer::Nothing) => shake.bare_syns += 1,
                _ => {}
            }
            flow.sides[from].sequence.begin(segment.seq);
        } else if is_syn {
            flow.opener.get_or_insert(1 - from);
            shake.syn_acks += 1;
            shake.syn_ack_at.get_or_insert(at);
            if matches!(shake.syn_ack, Offer::Unseen | Offer::Cut) {
                shake.syn_ack = offer;
            }
            flow.sides[from].sequence.begin(segment.seq);
            flow.sides[1 - from].sequence.begin(segment.ack + MINUS_ONE);
        } else if is_ack && shake.ack_at.is_none() {
            // By its options the third ACK is one even where nothing before it was captured.
            let by_option = match offer {
                Offer::JoinAck(_) => packet.length == 0,
                Offer::Capable(capable) => {
                    capable.receiver_key.is_some() && capable.data.is_none() && packet.length == 0
                }
                _ => false,
            };
            let by_place = flow.opener == Some(from) && shake.syn_ack_at.is_some();
            if by_option || by_place {
                flow.opener.get_or_insert(from);
                shake.ack = offer;
                shake.ack_at = Some(at);
                shake.ack_number = Some(segment.ack);
            }
            if by_option {
                flow.sides[from].sequence.begin(segment.seq + MINUS_ONE);
                flow.sides[1 - from].sequence.begin(segment.ack + MINUS_ONE);
            }
        } else if is_ack && matches!(offer, Offer::Capable(_) | Offer::JoinAck(_)) && shake.ack == Offer::Nothing {
            // The first ACK was bare, but the handshake goes on (RFC 8684 §3.1 allows the first data to complete it).
            shake.ack = offer;
        }
    }

    /// MPTCP options other than DSS.
    fn options(&mut self, packet: &Packet<'_>) {
        for option in packet.segment.options.mptcp() {
            match option {
                MpOption::Capable(capable) => self.capable(packet, capable),
                MpOption::JoinSyn(join) => self.join(packet, join.token),
                MpOption::JoinSynAck(_) | MpOption::JoinAck(_) | MpOption::TcpReset { .. } => {}
                MpOption::AddAddr(add) => self.signal(packet, What::AddAddr(*add)),
                MpOption::RemoveAddr(remove) => self.signal(packet, What::RemoveAddr(remove.ids.clone())),
                MpOption::Prio { backup } => self.signal(packet, What::Prio { backup: *backup, address: None }),
                MpOption::Fail { dsn } => self.signal(packet, What::Fail(*dsn)),
                MpOption::FastClose { receiver_key } => self.signal(packet, What::FastClose(*receiver_key)),
            }
        }
        for unknown in packet.segment.options.unknown().iter().filter(|option| option.kind == MPTCP) {
            if let Some(what) = version_0(&unknown.data) {
                self.signal(packet, what);
            }
        }
    }

    fn signal(&mut self, packet: &Packet<'_>, what: What) {
        let flow = &mut self.flows[packet.flow];
        let same = |signal: &&mut Signal| signal.from == packet.from && signal.what == what;
        // A priority that is repeated may have changed in between.
        let latest = if matches!(what, What::Prio { .. }) { flow.signals.len().saturating_sub(1) } else { 0 };
        if let Some(known) = flow.signals[latest..].iter_mut().find(same) {
            known.count += 1;
        } else if flow.signals.len() < MOST_SIGNALS {
            flow.signals.push(Signal { at: packet.at, from: packet.from, what, count: 1 });
        } else {
            flow.more_signals += 1;
        }
    }

    /// MP_CAPABLE: keys, and with the first of them an answer a connection.
    fn capable(&mut self, packet: &Packet<'_>, capable: &MpCapable) {
        let (flow, from) = (packet.flow, packet.from);
        let is_syn = packet.segment.flags.has(Flags::SYN);
        let is_offer = is_syn && !packet.segment.flags.has(Flags::ACK);
        let keys = [(from, capable.sender_key), (1 - from, capable.receiver_key)];
        for (side, key) in keys {
            let known = &mut self.flows[flow].keys[side];
            *known = known.or(key);
        }
        if is_offer {
            return;
        }
        if self.flows[flow].member.is_none() {
            // The SYN/ACK comes from the side that was opened, everything else with keys from the opener.
            let opener = if is_syn { 1 - from } else { from };
            let Some(connection) = self.new_connection() else { return };
            self.connections[connection].opener_known = true;
            self.connections[connection].version = Some(capable.version);
            self.enlist(flow, connection, opener == 1, By::Capable);
        }
        let Some(member) = self.flows[flow].member else { return };
        if member.by == By::Capable {
            let connection = &mut self.connections[member.connection];
            connection.checksums[member.side(from)].get_or_insert(capable.checksum_required);
            if let Offer::Capable(syn) = self.flows[flow].shake.syn {
                let opener = self.flows[flow].opener.unwrap_or(0);
                connection.checksums[member.side(opener)].get_or_insert(syn.checksum_required);
            }
        }
        for (side, key) in self.flows[flow].keys.into_iter().enumerate() {
            if let Some(key) = key {
                self.learn(member, side, key);
            }
        }
    }

    fn learn(&mut self, member: Member, side: usize, key: Key) {
        let side = member.side(side);
        if let Some(token) = self.connections[member.connection].set_key(side, key) {
            self.by_token.insert(token, (member.connection, side));
        }
    }

    /// The SYN of an MP_JOIN names the connection by the token of its receiver.
    fn join(&mut self, packet: &Packet<'_>, token: Token) {
        if self.flows[packet.flow].member.is_some() {
            return;
        }
        let (connection, side) = match self.by_token.get(&token) {
            Some(&known) => known,
            None => {
                let Some(connection) = self.new_connection() else { return };
                self.connections[connection].tokens[1] = Some(token);
                self.by_token.insert(token, (connection, 1));
                (connection, 1)
            }
        };
        // The receiver is side 1 - from of the flow.
        let swapped = (1 - packet.from) ^ side == 1;
        self.enlist(packet.flow, connection, swapped, By::Token);
    }

    fn new_connection(&mut self) -> Option<usize> {
        if self.connections.len() >= self.limits.connections {
            self.totals.ignored_connections += 1;
            return None;
        }
        self.connections.push(Connection::new());
        Some(self.connections.len() - 1)
    }

    fn enlist(&mut self, flow: usize, connection: usize, swapped: bool, by: By) {
        let group = &mut self.connections[connection];
        let subflow = group.flows.len() as u32;
        group.flows.push(flow);
        group.add_addresses([self.flows[flow].key.src, self.flows[flow].key.dst]);
        self.flows[flow].member = Some(Member { connection, subflow, swapped, by });
    }

    /// Finds the connection of a flow that has said nothing but a DSS.
    fn infer(&mut self, packet: &Packet<'_>) {
        let Some(dss) = &packet.segment.options.dss else { return };
        let key = self.flows[packet.flow].key;
        let addresses = [key.src, key.dst];
        let own = self.flows[packet.flow].member;
        let kin = self.connections.iter().enumerate().rev().take(MOST_COMPARED).find_map(|(index, connection)| {
            let other = own.is_none_or(|own| own.connection != index);
            (other && !connection.merged)
                .then(|| [0, 1].into_iter().find(|&side| connection.is_kin(side, dss, addresses)))?
                .map(|side| (index, side))
        });
        match (own, kin) {
            (None, Some((connection, side))) => {
                self.enlist(packet.flow, connection, packet.from ^ side == 1, By::Numbers);
            }
            (Some(own), Some((connection, side))) => {
                // The joins of this token are subflows of a connection that is known by its numbers.
                let turned = own.side(packet.from) != side;
                self.merge(own.connection, connection, turned);
            }
            (None, None) => {
                let flow = &mut self.flows[packet.flow];
                flow.dss_tries += 1;
                let has_data = dss.map.is_some_and(|map| map.length > 0);
                if has_data || flow.dss_tries >= MOST_TRIES {
                    let opener = flow.opener;
                    let Some(connection) = self.new_connection() else { return };
                    self.connections[connection].opener_known = opener.is_some();
                    self.enlist(packet.flow, connection, opener == Some(1), By::Alone);
                }
            }
            (Some(_), None) => {}
        }
    }

    /// All of `from` belongs to `to`; `turned` if the sides are the other way round.
    fn merge(&mut self, from: usize, to: usize, turned: bool) {
        let old = &mut self.connections[from];
        old.merged = true;
        let (flows, tokens) = (std::mem::take(&mut old.flows), old.tokens);
        for flow in flows {
            let swapped = self.flows[flow].member.is_some_and(|member| member.swapped);
            self.enlist(flow, to, swapped ^ turned, By::Numbers);
        }
        for (side, token) in tokens.into_iter().enumerate() {
            if let Some(token) = token {
                let side = side ^ usize::from(turned);
                self.connections[to].tokens[side].get_or_insert(token);
                self.by_token.insert(token, (to, side));
            }
        }
    }

    /// ACK, DATA_ACK and window.
    fn acknowledgment(&mut self, packet: &Packet<'_>, print: u64) {
        let Packet { at, segment, flow, from, .. } = *packet;
        if segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST) {
            let with_sack = !segment.options.sack.is_empty();
            let peer = &mut self.flows[flow].sides[1 - from].sequence;
            if let Some(sent) = peer.acknowledge(segment.ack, with_sack, at) {
                self.copies.acknowledges(print, sent);
            }
            if !segment.flags.has(Flags::SYN) {
                self.flows[flow].sides[from].zero_window.advertise(segment.window, at);
            }
        }
        let Some(dss) = &segment.options.dss else { return };
        let needs_kin = match self.flows[flow].member {
            None => true,
            Some(member) => self.connections[member.connection].is_unplaced(),
        };
        if needs_kin {
            self.infer(packet);
        }
        if let (Some(ack), Some(member)) = (dss.data_ack, self.flows[flow].member) {
            self.connections[member.connection].streams[1 - member.side(from)].data_ack(ack, at);
        }
    }

    /// Payload and mapping.
    fn data(&mut self, packet: &Packet<'_>) {
        let Packet { at, segment, length: bytes, flow, from } = *packet;
        if segment.flags.has(Flags::RST) {
            return;
        }
        let map = self.mapping_of(packet);
        let reordering = self.flows[flow].reordering();
        let side = &mut self.flows[flow].sides[from];
        let Some(position) = side.sequence.position(segment.seq) else { return };
        let start = position + i64::from(segment.flags.has(Flags::SYN));
        if segment.flags.has(Flags::FIN) {
            side.sequence.fin.get_or_insert(start.saturating_add_unsigned(bytes));
        }
        let range = start..start.saturating_add_unsigned(bytes);
        if let Some((map, true)) = map
            && bytes == 0
        {
            self.lone_fin(packet, map);
        }
        if bytes == 0 {
            return;
        }
        let timestamp = segment.options.timestamps.map(|timestamps| timestamps.value);
        match self.flows[flow].sides[from].sequence.send(Data { start, length: bytes, timestamp }, at, reordering) {
            Sent::Copy => {
                self.totals.copies += 1;
                self.flows[flow].copies += 1;
            }
            Sent::Again => {}
            Sent::Data(inserted) => {
                let side = &mut self.flows[flow].sides[from];
                if side.sequence.isn.is_none() || side.has_pending() {
                    side.wait(range, map, at);
                    self.replay(flow, from, false);
                    return;
                }
                if let Some((map, fin)) = map {
                    self.map(flow, from, map, fin, &range, at);
                }
                for fresh in inserted.fresh {
                    let skip = length(&(range.start..fresh.start)).min(segment.payload.len() as u64) as usize;
                    let end = length(&(range.start..fresh.end)).min(segment.payload.len() as u64) as usize;
                    self.place(flow, from, fresh, &segment.payload.slice(skip..end), at);
                }
            }
        }
    }

    /// The mapping that a segment carries, and whether its last number is the DATA_FIN. MP_CAPABLE with data maps from the
    /// first byte on (RFC 8684 §3.1).
    fn mapping_of(&self, packet: &Packet<'_>) -> Option<(Map, bool)> {
        let options = &packet.segment.options;
        if let Some(dss) = &options.dss {
            return dss.map.map(|map| (map, dss.data_fin));
        }
        options.mptcp().iter().find_map(|option| match option {
            MpOption::Capable(MpCapable { data: Some((length, checksum)), sender_key: Some(key), version, .. }) => {
                let dsn = DataSeq::Long(crate::version::Version::of(*version).idsn(*key) + 1);
                Some((Map { dsn, subflow_seq: 1, length: *length, checksum: *checksum }, false))
            }
            _ => None,
        })
    }

    fn lone_fin(&mut self, packet: &Packet<'_>, map: Map) {
        let flow = &mut self.flows[packet.flow];
        let Some(member) = flow.member else { return };
        let stream = &mut self.connections[member.connection].streams[member.side(packet.from)];
        let Some(position) = stream.position(map.dsn) else { return };
        let fin = position + i64::from(map.length) - 1;
        stream.data_fin(fin, packet.at);
        if map.length == 1 {
            let dsn = stream.dsn(position).filter(|(_, upper)| *upper).map(|(dsn, _)| dsn);
            let mapping = Mapping {
                start: 0,
                data: position..position,
                dsn,
                subflow_seq: map.subflow_seq,
                wire_length: map.length,
                checksum: map.checksum,
                sum: Checksum::new(),
                summed: 0,
                cut: false,
            };
            flow.sides[packet.from].mappings.add(mapping);
        }
    }

    /// Takes in a mapping that came with a segment at `range` of the subflow.
    fn map(&mut self, flow: usize, from: usize, map: Map, fin: bool, range: &Range<i64>, at: Instant) {
        let Some(member) = self.flows[flow].member else { return };
        let history = self.limits.history(self.connections.len());
        let side = &mut self.flows[flow].sides[from];
        let Some(here) = side.sequence.relative(range) else { return };
        let stream = &mut self.connections[member.connection].streams[member.side(from)];
        let Some(position) = stream.position(map.dsn) else { return };
        let start = here.start + i64::from(map.subflow_seq.wrapping_sub(here.start as u32).cast_signed());
        if map.length == 0 {
            if side.mappings.infinite.is_none() {
                side.mappings.infinite = Some((start, position));
                let signal = Signal { at, from, what: What::InfiniteMapping, count: 1 };
                self.flows[flow].signals.push(signal);
            }
            return;
        }
        let bytes = i64::from(map.length) - i64::from(fin);
        if fin {
            stream.data_fin(position + bytes, at);
        }
        let mapping = Mapping {
            start,
            data: position..position + bytes,
            dsn: stream.dsn(position).filter(|(_, upper)| *upper).map(|(dsn, _)| dsn),
            subflow_seq: map.subflow_seq,
            wire_length: map.length,
            checksum: map.checksum,
            sum: Checksum::new(),
            summed: 0,
            cut: false,
        };
        for placed in side.mappings.add(mapping) {
            stream.carry(placed, member.subflow, at, history);
        }
    }

    /// Bytes at `range` of the subflow pass for the first time.
    fn place(&mut self, flow: usize, from: usize, range: Range<i64>, payload: &Bytes, at: Instant) {
        let Some(member) = self.flows[flow].member else { return };
        let history = self.limits.history(self.connections.len());
        let side = &mut self.flows[flow].sides[from];
        let Some(relative) = side.sequence.relative(&range) else { return };
        let stream = &mut self.connections[member.connection].streams[member.side(from)];
        for placed in side.mappings.place(relative, payload) {
            stream.carry(placed, member.subflow, at, history);
        }
    }

    /// Goes through data that waited for the initial sequence number.
    fn replay(&mut self, flow: usize, from: usize, at_end: bool) {
        for Pending { range, map, at } in self.flows[flow].sides[from].pending(at_end) {
            if let Some((map, fin)) = map {
                self.map(flow, from, map, fin, &range, at);
            }
            self.place(flow, from, range, &Bytes::new(), at);
        }
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

/// What a segment offers in a handshake.
fn offer(segment: &Segment, cut: bool) -> Offer {
    let found = segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::Capable(capable) => Some(Offer::Capable(*capable)),
        MpOption::JoinSyn(join) => Some(Offer::JoinSyn(*join)),
        MpOption::JoinSynAck(join) => Some(Offer::JoinSynAck(*join)),
        MpOption::JoinAck(join) => Some(Offer::JoinAck(*join)),
        _ => None,
    });
    found.unwrap_or(if cut { Offer::Cut } else { Offer::Nothing })
}

/// Added to a sequence number, takes one away.
const MINUS_ONE: u64 = u64::MAX;
/// The TCP option kind of MPTCP.
const MPTCP: u8 = 30;
const MOST_SIGNALS: usize = 64;
/// Connections that an unknown flow is compared with, the latest first.
const MOST_COMPARED: usize = 4096;
/// DATA_ACKs after which a flow is a connection of its own.
const MOST_TRIES: u32 = 4;
