//! The log of a capture: what each packet of a flow said, in 48 bytes.
//!
//! One pass over the files fills it. Attribution needs to know what came later, so it works on the log. Beyond
//! [`MOST`] entries, neighbours that say the same are joined; beyond [`LIMIT`] the rest is left out, so that memory is
//! bounded.

use anabranch_inspect::{Offer, Passing, Sighting};
use anabranch_wire::{Captured, ChecksumStatus, DataSeq, Flags, FlowKey, Handshake, MpOption};
use std::collections::BTreeMap;

/// Entries over all flows above which neighbours are joined; 200 MB.
const MOST: usize = 4 << 20;
/// Entries over all flows, at most: what follows is left out.
const LIMIT: usize = 2 * MOST;
/// Neighbours that are joined lie at most this far apart \[ns\]: one burst.
const ONE_BURST: u64 = 1_000_000;

/// Announced addresses that are kept of a flow.
const MOST_ANNOUNCED: usize = 64;

/// One packet at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// Time \[ns\].
    pub at: u64,
    pub seq: u32,
    pub ack: u32,
    /// Payload.
    pub length: u32,
    /// Lower half of the data sequence number of the first byte, if [`DSN`].
    pub dsn: u32,
    /// Lower half of the DATA_ACK, if [`DATA_ACK`].
    pub data_ack: u32,
    /// The newest block of SACK, if [`SACK`].
    pub sack: [u32; 2],
    /// TSval, if [`STAMP`].
    pub stamp: u32,
    /// Number of the packet in its file, from 1; of joined neighbours that of the first.
    pub number: u32,
    pub window: u16,
    pub flags: u8,
    /// Bits: the sending side of the flow, and which fields hold something.
    pub bits: u8,
}

/// The second side of the flow sent it.
pub(crate) const SECOND: u8 = 1;
pub(crate) const DSN: u8 = 2;
pub(crate) const DATA_ACK: u8 = 4;
pub(crate) const SACK: u8 = 8;
pub(crate) const STAMP: u8 = 16;
/// A DSS, of whatever kind.
pub(crate) const DSS: u8 = 32;

impl Entry {
    /// Side of the flow that sent it.
    pub(crate) fn from(&self) -> usize {
        usize::from(self.bits & SECOND)
    }

    pub(crate) fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    pub(crate) fn is(&self, flags: Flags) -> bool {
        Flags(self.flags).has(flags)
    }
}

/// One side of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SideFacts {
    /// Initial sequence number.
    pub isn: Option<u32>,
    pub scale: Option<u8>,
    pub mss: Option<u16>,
    /// Its first RST: true if MPTCP sent it, with MP_TCPRST, or MP_FASTCLOSE.
    pub reset: Option<bool>,
    /// Payload bytes seen, repeats included.
    pub bytes: u64,
    /// Packets with a DSS.
    pub dss: u64,
    /// Packets with data and whole options, but without MPTCP.
    pub bare_data: u64,
    /// Packets whose checksum is right, and wrong.
    good: u64,
    bad: u64,
    /// The last MP_PRIO.
    pub priority: Option<bool>,
    /// The latest mapping: subflow sequence number relative to the ISN, data sequence number.
    map: Option<(u32, u32)>,
}

/// One TCP connection at one place, by the side that sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Interface of the file where its packets were first seen.
    pub interface: [Option<u32>; 2],
    /// Packets without SYN that have an option of MPTCP.
    pub with_option: [u64; 2],
    /// Packets without SYN, and without such an option.
    pub bare: [u64; 2],
    /// Packets of these with data.
    pub bare_data: [u64; 2],
}

/// One TCP connection, as it passed each place.
#[derive(Clone, Debug)]
pub(crate) struct FlowLog {
    pub key: FlowKey,
    /// Side that sent the SYN.
    pub opener: Option<usize>,
    pub sides: [SideFacts; 2],
    pub syn: Offer,
    pub syn_ack: Offer,
    pub third: Offer,
    /// SYN, SYN/ACK and third ACK by file.
    pub offers: BTreeMap<usize, [Offer; 3]>,
    /// SYNs by file.
    pub syns: BTreeMap<usize, u64>,
    /// Packets that passed, by file.
    pub passed: BTreeMap<usize, Passed>,
    /// SYNs without MPTCP after one with.
    pub bare_syns: u64,
    pub syn_acks: u64,
    /// File and interface where it was first seen.
    pub interface: (usize, u32),
    /// ADD_ADDRs: side, address.
    pub announced: Vec<(usize, std::net::IpAddr)>,
    /// Entries by file.
    pub places: BTreeMap<usize, Vec<Entry>>,
    /// Packets whose payload or options were cut.
    pub cut: u64,
    /// Packets of these whose options were cut.
    pub options_cut: u64,
}

/// All flows.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub flows: Vec<Option<FlowLog>>,
    entries: usize,
    /// Entries that were joined with a neighbour.
    pub joined: u64,
    /// Packets at the end for which there was no room.
    pub left_out: u64,
    /// Entries that were left when neighbours were joined last.
    kept: usize,
}

impl Log {
    /// A packet passes.
    pub(crate) fn packet(&mut self, passing: Passing<'_>) {
        let Passing { file, interface, number, sighting, captured } = passing;
        if self.flows.len() <= sighting.flow {
            self.flows.resize_with(sighting.flow + 1, || None);
        }
        let segment = &captured.segment;
        let key = if sighting.from == 0 { segment.flow } else { segment.flow.reversed() };
        let flow = self.flows[sighting.flow].get_or_insert_with(|| FlowLog::new(key, (file, interface)));
        // The same packet twice in one file is a copy; in another file it is the same packet at another place.
        if sighting.copy && flow.places.len() == 1 && flow.places.contains_key(&file) {
            return;
        }
        flow.passes((file, interface), sighting.from, captured);
        flow.learn(file, &sighting, captured);
        if flow.is_damaged(sighting.from, captured.checksum) {
            // Its receiver discards it.
            return;
        }
        if self.entries >= LIMIT {
            self.left_out += 1;
            return;
        }
        let entry = Entry { number: u32::try_from(number).unwrap_or(0), ..flow.entry(&sighting, captured) };
        flow.places.entry(file).or_default().push(entry);
        self.entries += 1;
        // Where nothing is left to be joined, the log may grow by a quarter before the next try.
        if self.entries > MOST.max(self.kept + self.kept / 4) {
            self.thin();
        }
    }

    /// Joins neighbours of all flows.
    fn thin(&mut self) {
        let mut left = 0;
        for entries in self.flows.iter_mut().flatten().flat_map(|flow| flow.places.values_mut()) {
            let before = entries.len();
            entries.dedup_by(|next, last| join(last, next));
            self.joined += (before - entries.len()) as u64;
            left += entries.len();
        }
        (self.entries, self.kept) = (left, left);
    }
}

/// Joins `next` into `last`, if they follow each other.
fn join(last: &mut Entry, next: &mut Entry) -> bool {
    const ODD: u8 = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0;
    let alike =
        last.bits == next.bits && (last.flags | next.flags) & ODD == 0 && next.at.saturating_sub(last.at) <= ONE_BURST;
    if !alike || last.seq.wrapping_add(last.length) != next.seq || last.length.saturating_add(next.length) > 1 << 20 {
        return false;
    }
    if next.has(SACK) || (last.length == 0) != (next.length == 0) {
        return false;
    }
    if last.length > 0 && next.has(DSN) && last.dsn.wrapping_add(last.length) != next.dsn {
        return false;
    }
    let (at, length) = (if last.length == 0 { next.at } else { last.at }, last.length + next.length);
    *last = Entry { at, length, seq: last.seq, dsn: last.dsn, number: last.number, ..*next };
    true
}

impl FlowLog {
    fn new(key: FlowKey, interface: (usize, u32)) -> Self {
        FlowLog {
            key,
            opener: None,
            sides: [SideFacts::default(); 2],
            syn: Offer::Unseen,
            syn_ack: Offer::Unseen,
            third: Offer::Unseen,
            offers: BTreeMap::new(),
            syns: BTreeMap::new(),
            passed: BTreeMap::new(),
            bare_syns: 0,
            syn_acks: 0,
            interface,
            announced: Vec::new(),
            places: BTreeMap::new(),
            cut: 0,
            options_cut: 0,
        }
    }

    /// Returns true if a checksum is wrong where nearly all of this side are right. A sender that leaves checksums to
    /// its network card has none that is right.
    fn is_damaged(&mut self, from: usize, status: ChecksumStatus) -> bool {
        let side = &mut self.sides[from];
        side.good += u64::from(status == ChecksumStatus::Good);
        side.bad += u64::from(status == ChecksumStatus::Bad);
        status == ChecksumStatus::Bad && side.bad * 4 <= side.good
    }

    /// Takes down where a packet passes, and whether it has options.
    fn passes(&mut self, (file, interface): (usize, u32), from: usize, captured: &Captured) {
        let passed = self.passed.entry(file).or_default();
        passed.interface[from].get_or_insert(interface);
        let (is_syn, has_option) = (captured.segment.flags.has(Flags::SYN), captured.segment.options.has_mptcp());
        passed.with_option[from] += u64::from(!is_syn && has_option);
        passed.bare[from] += u64::from(!is_syn && !has_option && !captured.options_cut);
        passed.bare_data[from] += u64::from(captured.payload_length > 0 && !has_option && !captured.options_cut);
    }

    /// Takes in what a packet says of the flow as a whole.
    fn learn(&mut self, file: usize, sighting: &Sighting, captured: &Captured) {
        let (segment, from) = (&captured.segment, sighting.from);
        let is = |flag| segment.flags.has(flag);
        self.cut += u64::from(captured.options_cut || segment.payload.len() < captured.payload_length);
        self.options_cut += u64::from(captured.options_cut);
        let offer = Offer::of(segment, captured.options_cut);
        if is(Flags::RST) {
            self.sides[from].reset.get_or_insert(segment.options.has_mptcp());
            return;
        }
        if is(Flags::SYN) {
            let opener = if is(Flags::ACK) { 1 - from } else { from };
            self.opener.get_or_insert(opener);
            self.sides[from].isn = Some(segment.seq.get());
            let shake = segment.options.handshake();
            if shake != Handshake::default() {
                self.sides[from].scale = shake.window_scale;
                self.sides[from].mss = shake.mss;
            }
            match is(Flags::ACK) {
                false => {
                    let dropped =
                        matches!(self.syn, Offer::Capable(_)) && offer == Offer::Nothing && self.syn_at_least(file);
                    self.bare_syns += u64::from(dropped);
                    *self.syns.entry(file).or_default() += 1;
                    self.syn.complete(offer);
                    self.offers.entry(file).or_default()[0].complete(offer);
                }
                true => {
                    self.syn_acks += 1;
                    self.syn_ack.complete(offer);
                    self.offers.entry(file).or_default()[1].complete(offer);
                }
            }
        } else if is(Flags::ACK) && Some(from) == self.opener && matches!(self.third, Offer::Unseen | Offer::Nothing) {
            // The first data may complete the handshake (RFC 8684 §3.1).
            let first = self.third == Offer::Unseen;
            if first || matches!(offer, Offer::Capable(_) | Offer::JoinAck(_)) {
                self.third = offer;
            }
            self.offers.entry(file).or_default()[2].complete(offer);
        }
        let side = &mut self.sides[from];
        side.bytes += captured.payload_length as u64;
        side.dss += u64::from(segment.options.dss().is_some());
        let bare = captured.payload_length > 0 && !segment.options.has_mptcp() && !captured.options_cut;
        side.bare_data += u64::from(bare);
        for option in segment.options.mptcp() {
            match option {
                MpOption::Prio { backup } => self.sides[from].priority = Some(*backup),
                MpOption::AddAddr(add) if add.hmac.is_some() => self.announce(from, add.address),
                _ => {}
            }
        }
    }

    fn announce(&mut self, from: usize, address: std::net::IpAddr) {
        if self.announced.len() < MOST_ANNOUNCED && !self.announced.contains(&(from, address)) {
            self.announced.push((from, address));
        }
    }

    /// True if this file has a SYN with MP_CAPABLE.
    fn syn_at_least(&self, file: usize) -> bool {
        self.offers.get(&file).is_some_and(|offers| matches!(offers[0], Offer::Capable(_)))
    }

    fn entry(&mut self, sighting: &Sighting, captured: &Captured) -> Entry {
        let Captured { segment, payload_length, .. } = captured;
        let from = sighting.from;
        let mut entry = Entry {
            at: sighting.at.as_nanos(),
            seq: segment.seq.get(),
            ack: segment.ack.get(),
            length: *payload_length as u32,
            window: segment.window,
            flags: segment.flags.0,
            bits: from as u8,
            ..Entry::default()
        };
        if let Some(stamps) = segment.options.timestamps() {
            entry.stamp = stamps.value;
            entry.bits |= STAMP;
        }
        if let Some(block) = segment.options.sack().as_slice().first() {
            entry.sack = [block.start.get(), block.end.get()];
            entry.bits |= SACK;
        }
        let side = &mut self.sides[from];
        let relative = |isn: u32| segment.seq.get().wrapping_sub(isn);
        if let Some(dss) = segment.options.dss() {
            entry.bits |= DSS;
            if let Some(ack) = dss.data_ack {
                entry.data_ack = short(ack);
                entry.bits |= DATA_ACK;
            }
        }
        if let Some(map) = sighting.map.filter(|map| map.length > 0 && map.subflow_seq > 0) {
            // A mapping of a stranger's flow: its first segment tells where the flow began.
            side.isn.get_or_insert(segment.seq.get().wrapping_sub(map.subflow_seq));
            side.map = Some((map.subflow_seq, short(map.dsn)));
        }
        if entry.length > 0
            && let (Some(isn), Some((start, dsn))) = (side.isn, side.map)
        {
            entry.dsn = dsn.wrapping_add(relative(isn).wrapping_sub(start));
            entry.bits |= DSN;
        }
        entry
    }
}

fn short(seq: DataSeq) -> u32 {
    match seq {
        DataSeq::Short(low) => low,
        DataSeq::Long(dsn) => dsn.get() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(at: u64, seq: u32) -> Entry {
        Entry { at, seq, length: 1000, dsn: seq, bits: DSN, flags: Flags::ACK.0, ..Entry::default() }
    }

    /// Segments of one burst become one entry with their bytes; those with a pause or a gap between them do not.
    #[test]
    fn thinning_joins_what_says_the_same() {
        let ends = |n: u8| std::net::SocketAddr::from(([10, 0, 0, n], 1000));
        let mut flow = FlowLog::new(FlowKey::new(ends(1), ends(2)), (0, 0));
        let times = [(0, 1), (10, 1001), (20, 2001), (5_000_000, 3001), (5_000_010, 9001)];
        flow.places.insert(0, times.map(|(at, seq)| data(at, seq)).to_vec());
        let mut log = Log { flows: vec![Some(flow)], ..Log::default() };
        log.thin();
        let left = &log.flows[0].as_ref().expect("it is there").places[&0];
        let told: Vec<_> = left.iter().map(|it| (it.at, it.seq, it.length)).collect();
        assert_eq!(told, [(0, 1, 3000), (5_000_000, 3001, 1000), (5_000_010, 9001, 1000)]);
        assert_eq!((log.joined, log.entries), (2, 3));
    }
}
