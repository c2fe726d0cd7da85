//! The picture of one connection: each packet with the time at which it left its host and the time at which it reached
//! the other. Where the capture saw only one of the two, the other is estimated.

use super::clock::Clock;
use super::log::{DATA_ACK, DSN, Entry, FlowLog, SACK, STAMP, SideFacts};
use anabranch_inspect::Offer;
use anabranch_wire::Flags;
use std::collections::{HashMap, HashSet, VecDeque};

/// Time of what did not happen.
pub(crate) const NEVER: u64 = u64::MAX;
/// A position that is not known.
pub(crate) const UNKNOWN: i64 = i64::MIN;
/// Window of a peer whose scale the capture missed.
const UNSCALED: i64 = 1 << 40;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Time at which it left \[ns\].
    pub sent: u64,
    /// Time at which it arrived \[ns\]; [`NEVER`] if it was lost.
    pub arrived: u64,
    /// Position of its first byte in the stream of the subflow; the SYN has 0.
    pub seq: i64,
    /// Payload.
    pub length: i64,
    /// Acknowledges all below, in the stream of the other side.
    pub ack: i64,
    /// Position of its first byte at the data level.
    pub dsn: i64,
    /// Acknowledges all below at the data level, in the stream of the other side.
    pub data_ack: i64,
    /// Window in bytes.
    pub window: i64,
    /// Newest block of SACK.
    pub sack: Option<(i64, i64)>,
    pub flags: u8,
    /// Numbers in the files that saw it leave and arrive; 0 where none did.
    pub numbers: [u32; 2],
}

impl Packet {
    pub(crate) fn is(&self, flags: Flags) -> bool {
        Flags(self.flags).has(flags)
    }

    /// Position behind its last byte.
    pub(crate) fn end(&self) -> i64 {
        self.seq + self.length
    }
}

/// Ends of a flow that the capture saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// The packets of this side were seen when they left.
    pub own: bool,
    /// They were seen when they arrived.
    pub other: bool,
}

/// One subflow.
#[derive(Clone, Debug)]
pub(crate) struct FlowPicture {
    /// Index of the path.
    pub path: usize,
    /// Side that sent the SYN.
    pub opener: Option<usize>,
    /// Packets by the side that sent them, in the order in which they left.
    pub packets: [Vec<Packet>; 2],
    /// Places of the capture, for packets of side 0.
    pub seen: Seen,
    /// True if the capture lies between the hosts.
    pub between: bool,
    /// False if no packet answers another: then nothing tells where the capture was made.
    pub placed: bool,
    /// True if captures at two places do not fit together, so that one alone is looked at.
    pub unfit: bool,
    /// Shortest round-trip time \[ns\].
    pub rtt: u64,
    /// True if a side marked it as a backup.
    pub backup: bool,
    /// True if the data of the side has no DSS.
    pub plain: [bool; 2],
    /// Files that stand for the two ends.
    pub files: [Option<usize>; 2],
    pub facts: [SideFacts; 2],
    /// False if the capture missed the SYNs, and with them the scale of windows.
    pub scaled: bool,
}

/// Follows numbers of 32 bits round the circle.
struct Unwrap {
    last: i64,
    base: u32,
}

impl Unwrap {
    fn new(base: u32) -> Self {
        Unwrap { last: 0, base }
    }

    fn at(&mut self, number: u32) -> i64 {
        let low = self.base.wrapping_add(self.last as u32);
        let position = self.last + i64::from(number.wrapping_sub(low).cast_signed());
        self.last = self.last.max(position);
        position
    }
}

/// First numbers of the two streams at the data level, by side of the connection.
pub(crate) type DataBegins = [u32; 2];

/// Entries of one flow at one place, with sides turned so that they are those of the connection.
struct Place {
    entries: Vec<Entry>,
    /// Nanoseconds of the round trip on the side of side 0, as far as it shows.
    near: [Option<u64>; 2],
}

/// Paints the picture of a flow. `swapped` says that side 0 of the flow is side 1 of the connection.
pub(crate) fn paint(flow: &FlowLog, swapped: bool, path: usize, begins: DataBegins) -> FlowPicture {
    let turn = |side: usize| side ^ usize::from(swapped);
    let facts = [flow.sides[turn(0)], flow.sides[turn(1)]];
    let opener = flow.opener.map(turn);
    let places: Vec<Place> = flow.places.values().map(|entries| Place::of(entries, swapped, opener)).collect();
    let rtt = places.iter().filter_map(Place::round_trip).min().unwrap_or(0);
    let (mut ends, mut between) = choose(&places, rtt);
    if flow.key.src == flow.key.dst && places.len() == 1 {
        // Both ends are this host: each packet arrives where it leaves.
        (ends, between) = ([Some(0); 2], false);
    }
    let paired = match ends {
        [Some(near), Some(far)] => pair_both(&places[near], &places[far], rtt),
        _ => None,
    };
    let unfit = places.len() > 1 && paired.is_none();
    // That of the sender of most data tells most.
    let main = usize::from(facts[1].bytes > facts[0].bytes);
    if unfit && ends[main].is_some() {
        ends[1 - main] = None;
    }
    let plain = [0, 1].map(|side| facts[side].dss == 0 && facts[1 - side].dss == 0);
    let names: Vec<usize> = flow.places.keys().copied().collect();
    let files = ends.map(|end| end.and_then(|place| names.get(place).copied()));
    let packets = paired.unwrap_or_else(|| {
        [0, 1].map(|side| match (ends[side], ends[1 - side]) {
            (Some(here), _) => leaving(&places[here], side, rtt),
            (None, Some(there)) => arriving(&places[there], side, rtt),
            (None, None) => Vec::new(),
        })
    });
    let mut picture = FlowPicture {
        path,
        opener,
        packets,
        seen: Seen { own: ends[0].is_some(), other: ends[1].is_some() },
        between,
        placed: places.len() > 1 || places.iter().any(|place| place.round_trip().is_some()),
        unfit,
        rtt,
        backup: [flow.syn, flow.syn_ack].iter().any(Offer::is_backup)
            || facts.iter().any(|side| side.priority == Some(true)),
        plain,
        files,
        facts,
        scaled: facts.iter().all(|side| side.isn.is_some()) && flow.opener.is_some(),
    };
    number(&mut picture, begins);
    picture
}

impl Place {
    fn of(entries: &[Entry], swapped: bool, opener: Option<usize>) -> Self {
        let mut entries = entries.to_vec();
        if swapped {
            entries.iter_mut().for_each(|entry| entry.bits ^= 1);
        }
        let mut place = Place { entries, near: [None; 2] };
        place.near = place.distances(opener);
        place
    }

    /// Time from here to each side and back: from the handshake, or else from data and its acknowledgment.
    fn distances(&self, opener: Option<usize>) -> [Option<u64>; 2] {
        let mut near = [None; 2];
        if let Some(opener) = opener {
            let is_syn = |entry: &&Entry| entry.is(Flags::SYN);
            let mut syns = self.entries.iter().filter(is_syn);
            let (mut syn, mut answer, mut count) = (None, None, [0; 2]);
            for entry in syns.by_ref().take(16) {
                count[usize::from(entry.from() != opener)] += 1;
                if entry.from() == opener { syn = Some(entry.at) } else { answer = answer.or(Some(entry.at)) }
            }
            let third = answer.and_then(|at| {
                let mut later = self.entries.iter().filter(|entry| entry.at >= at && entry.from() == opener);
                later.find(|entry| !entry.is(Flags::SYN) && entry.is(Flags::ACK)).map(|entry| entry.at)
            });
            if count == [1, 1] {
                near[1 - opener] = syn.zip(answer).map(|(syn, answer)| answer.saturating_sub(syn));
                near[opener] = answer.zip(third).map(|(answer, third)| third.saturating_sub(answer));
            }
        }
        for (side, near) in near.iter_mut().enumerate() {
            let of_data = self.shortest_answer(1 - side);
            *near = match (*near, of_data) {
                (Some(shake), Some(data)) => Some(shake.min(data)),
                (shake, data) => shake.or(data),
            };
        }
        near
    }

    /// Shortest time from data of `side` to its acknowledgment.
    fn shortest_answer(&self, side: usize) -> Option<u64> {
        let mut waiting: VecDeque<(u32, u64)> = VecDeque::new();
        let mut shortest = None;
        let mut newest: Option<u32> = None;
        for entry in &self.entries {
            if entry.from() == side && entry.length > 0 {
                let end = entry.seq.wrapping_add(entry.length);
                if newest.is_none_or(|newest| end.wrapping_sub(newest).cast_signed() > 0) {
                    newest = Some(end);
                    if waiting.len() < 4096 {
                        waiting.push_back((end, entry.at));
                    }
                } else {
                    // Whatever is acknowledged now may answer either (Karn).
                    waiting.clear();
                }
            } else if entry.from() != side && entry.is(Flags::ACK) {
                let mut answered = None;
                while let Some((end, at)) = waiting.front().copied()
                    && entry.ack.wrapping_sub(end).cast_signed() >= 0
                {
                    answered = Some(at);
                    waiting.pop_front();
                }
                if let Some(at) = answered {
                    let took = entry.at.saturating_sub(at);
                    shortest = Some(shortest.map_or(took, |shortest: u64| shortest.min(took)));
                }
            }
        }
        shortest
    }

    /// True if more data of `side` passed only behind what it precedes than passed again: it was lost before here.
    fn misses_losses(&self, side: usize) -> bool {
        let (mut seen, mut newest, mut filled, mut again) = (HashSet::new(), None, 0_u64, 0_u64);
        for entry in self.entries.iter().filter(|entry| entry.from() == side && entry.length > 0) {
            let is_new = seen.insert(entry.seq);
            match newest {
                Some(newest) if entry.seq.wrapping_sub(newest).cast_signed() < 0 => {
                    filled += u64::from(is_new);
                    again += u64::from(!is_new);
                }
                _ => newest = Some(entry.seq),
            }
        }
        filled > again
    }

    fn round_trip(&self) -> Option<u64> {
        match self.near {
            [Some(a), Some(b)] => Some(a + b),
            // One way only: what is not known is nearly nothing or all of it.
            [a, b] => a.or(b),
        }
    }

    /// Share of the round trip that lies towards side 1: 1 is at side 0.
    fn beyond(&self) -> f64 {
        match self.near {
            [Some(a), Some(b)] if a + b > 0 => b as f64 / (a + b) as f64,
            // An answer at once comes from beside the capture, if what it answers had lost packets on its way here.
            [None, Some(b)] => f64::from(b >= MEANINGFUL || !self.misses_losses(0)),
            [Some(a), None] => f64::from(a < MEANINGFUL && self.misses_losses(1)),
            _ => 0.5,
        }
    }
}

/// Chooses the place that stands for each end, and tells whether a single one lies between.
fn choose(places: &[Place], rtt: u64) -> ([Option<usize>; 2], bool) {
    let order = |index: &usize| (places[*index].beyond() * 1e6) as u64;
    let (nearest, farthest) = ((0..places.len()).max_by_key(order), (0..places.len()).min_by_key(order));
    match (nearest, farthest) {
        (Some(a), Some(b)) if a != b && (rtt < MEANINGFUL || places[a].beyond() - places[b].beyond() >= APART) => {
            ([Some(a), Some(b)], false)
        }
        (Some(only), _) => {
            let beyond = places[only].beyond();
            let ends = if beyond >= 0.5 { [Some(only), None] } else { [None, Some(only)] };
            (ends, rtt >= MEANINGFUL && (0.15..0.85).contains(&beyond))
        }
        _ => ([None; 2], false),
    }
}

/// Share of the round trip by which captures at the two ends differ, at least.
const APART: f64 = 0.5;
/// Below this, a round trip is the time that hosts take to think \[ns\].
const MEANINGFUL: u64 = 1_000_000;

fn raw(entry: &Entry, sent: u64, arrived: u64) -> (Packet, Entry) {
    let packet = Packet {
        sent,
        arrived,
        seq: 0,
        length: i64::from(entry.length),
        ack: UNKNOWN,
        dsn: UNKNOWN,
        data_ack: UNKNOWN,
        window: 0,
        sack: None,
        flags: entry.flags,
        numbers: [entry.number, 0],
    };
    (packet, *entry)
}

/// The same of a packet that was seen when it arrived.
fn raw_arriving(entry: &Entry, sent: u64) -> (Packet, Entry) {
    let (packet, entry) = raw(entry, sent, entry.at);
    (Packet { numbers: [0, entry.number], ..packet }, entry)
}

/// This entry saw the packet arrive.
fn arrives(packet: &mut Packet, entry: &Entry) {
    (packet.arrived, packet.numbers[1]) = (entry.at, entry.number);
}

/// Numbers as they are in the entry; [`number`] makes positions of them.
fn keep(packet: (Packet, Entry)) -> Packet {
    let (mut packet, entry) = packet;
    packet.seq = i64::from(entry.seq);
    packet.ack = if entry.is(Flags::ACK) { i64::from(entry.ack) } else { UNKNOWN };
    packet.dsn = if entry.has(DSN) { i64::from(entry.dsn) } else { UNKNOWN };
    packet.data_ack = if entry.has(DATA_ACK) { i64::from(entry.data_ack) } else { UNKNOWN };
    packet.window = i64::from(entry.window);
    packet.sack = entry.has(SACK).then(|| (i64::from(entry.sack[0]), i64::from(entry.sack[1])));
    packet
}

/// Packets of both sides, which were seen at both ends. `None` if too many arrive that had not left before: packets
/// were cut differently at each end, as segmentation offload does, or a clock was set.
fn pair_both(near: &Place, far: &Place, rtt: u64) -> Option<[Vec<Packet>; 2]> {
    let [(from_near, strange_there), (from_far, strange_here)] = [pair(near, far, 0, rtt), pair(far, near, 1, rtt)];
    let strangers = strange_there + strange_here;
    let arrived = [&from_near, &from_far].into_iter().flatten().filter(|packet| packet.arrived != NEVER).count();
    (MOST_STRANGERS * strangers <= arrived).then_some([from_near, from_far])
}

/// One in so many packets that arrive may be a stranger.
const MOST_STRANGERS: usize = 20;

/// Both ends saw the packets: finds each again. Also returns how many arrived that had not left before.
fn pair(here: &Place, there: &Place, side: usize, rtt: u64) -> (Vec<Packet>, usize) {
    type Print = (u32, u32, u32, u32, u8, u16);
    let print =
        |entry: &Entry| -> Print { (entry.seq, entry.length, entry.ack, entry.stamp, entry.flags, entry.window) };
    let mut waiting: HashMap<Print, VecDeque<usize>> = HashMap::new();
    let outline = |entry: &Entry| (entry.seq, entry.length, if entry.length == 0 { entry.ack } else { 0 }, entry.flags);
    let mut rough: HashMap<(u32, u32, u32, u8), VecDeque<usize>> = HashMap::new();
    let mut packets: Vec<(Packet, Entry)> = Vec::new();
    for entry in here.entries.iter().filter(|entry| entry.from() == side) {
        waiting.entry(print(entry)).or_default().push_back(packets.len());
        packets.push(raw(entry, entry.at, NEVER));
    }
    let left = packets.len();
    let mut strangers = Vec::new();
    for entry in there.entries.iter().filter(|entry| entry.from() == side) {
        let found = waiting.get_mut(&print(entry)).and_then(|queue| {
            let next = *queue.front()?;
            (packets[next].0.sent <= entry.at).then(|| queue.pop_front()).flatten()
        });
        match found {
            Some(index) => arrives(&mut packets[index].0, entry),
            None => strangers.push(entry),
        }
    }
    // A middlebox may have changed what is compared.
    if !strangers.is_empty() {
        for (index, (_, entry)) in packets.iter().enumerate().filter(|(_, (packet, _))| packet.arrived == NEVER) {
            rough.entry(outline(entry)).or_default().push_back(index);
        }
        for entry in strangers {
            let queue = rough.get_mut(&outline(entry));
            match queue.and_then(|queue| (packets[*queue.front()?].0.sent <= entry.at).then(|| queue.pop_front())) {
                Some(Some(index)) => arrives(&mut packets[index].0, entry),
                _ => packets.push(raw_arriving(entry, entry.at.saturating_sub(rtt / 2))),
            }
        }
        packets.sort_by_key(|(packet, _)| packet.sent);
    }
    let strange = packets.len() - left;
    (packets.into_iter().map(keep).collect(), strange)
}

/// Only their departure was seen: an arrival is half a round trip before the acknowledgment came.
fn leaving(here: &Place, side: usize, rtt: u64) -> Vec<Packet> {
    let mut packets: Vec<(Packet, Entry)> = Vec::new();
    // Packets whose fate is open, in the order in which they left.
    let mut open: VecDeque<usize> = VecDeque::new();
    let mut edge: Option<u32> = None;
    // Arrival that the acknowledgment before told of.
    let mut before = 0;
    let (mut singles, mut pairs) = (0, 0);
    // The packet that left when nothing was on its way, as long as no other has followed.
    let mut lone = None;
    // No answer comes sooner: the shortest time from here to the peer and back.
    let soonest = here.near[1 - side].unwrap_or(rtt);
    // The shortest way there of data, which takes longer on a link than a SYN.
    let there = here.shortest_answer(side).unwrap_or(rtt).saturating_sub(rtt / 2);
    for entry in &here.entries {
        if entry.from() == side {
            let has_number = entry.length > 0 || entry.is(Flags::SYN) || entry.is(Flags::FIN);
            let arrived = if has_number { NEVER } else { entry.at.saturating_add(rtt / 2) };
            if has_number {
                lone = open.is_empty().then_some(packets.len());
                open.push_back(packets.len());
            }
            packets.push(raw(entry, entry.at, arrived));
            continue;
        }
        if !entry.is(Flags::ACK) {
            continue;
        }
        let first = edge.is_none_or(|edge| entry.ack.wrapping_sub(edge).cast_signed() > 0);
        if !first && !entry.has(SACK) {
            continue;
        }
        if first {
            edge = Some(entry.ack);
        }
        let inside = |packet: &Entry| {
            let end = packet.seq.wrapping_add(packet.length);
            let below = entry.ack.wrapping_sub(end).cast_signed() >= 0;
            let in_block = entry.has(SACK)
                && packet.seq.wrapping_sub(entry.sack[0]).cast_signed() >= 0
                && entry.sack[1].wrapping_sub(end).cast_signed() >= 0;
            below || in_block
        };
        let mut left = 0;
        // Of those that one acknowledgment covers, it tells of the last: the others came before, as soon as they could.
        let mut covered: Vec<usize> = Vec::new();
        for _ in 0..open.len() {
            let Some(index) = open.pop_front() else { break };
            let (packet, own) = &packets[index];
            if inside(own) {
                // A packet that left less than a round trip ago is not what this answers: its first sending is.
                if entry.at.saturating_sub(packet.sent) >= soonest / 10 * 9 {
                    covered.push(index);
                }
            } else {
                open.push_back(index);
                left += 1;
            }
            if left > MOST_OPEN {
                break;
            }
        }
        let back = entry.at.saturating_sub(rtt / 2);
        // A receiver that acknowledges every second segment may have kept the acknowledgment of a single one back.
        let single = covered.len() == 1 && !entry.has(SACK);
        singles += i32::from(single);
        pairs += i32::from(covered.len() > 1);
        // One that was alone on its way stood in no queue of its own connection: its receiver took that long.
        let kept_back = single && (pairs > singles || lone == covered.first().copied());
        let last =
            covered.iter().copied().max_by_key(|index| packets[*index].1.seq.wrapping_sub(entry.ack).cast_signed());
        for index in covered {
            let packet = &mut packets[index].0;
            let soonest =
                if Some(index) == last && !kept_back { back } else { (packet.sent + there).max(before).min(back) };
            packet.arrived = soonest.max(packet.sent);
        }
        if last.is_some() && !kept_back {
            before = back;
        }
    }
    // Of several that carried the same bytes, the last that can have been in time arrived; the others were lost.
    let mut arrived: HashMap<(u32, u32), usize> = HashMap::new();
    for index in 0..packets.len() {
        let (packet, entry) = packets[index];
        if packet.length == 0 || packet.arrived == NEVER {
            continue;
        }
        // The acknowledgment came a round trip after the last sending: that is what it answers.
        if let Some(before) = arrived.insert((entry.seq, entry.length), index) {
            packets[before].0.arrived = NEVER;
        }
    }
    packets.into_iter().map(keep).collect()
}

/// Packets without an answer that are looked at for each acknowledgment.
const MOST_OPEN: usize = 1 << 14;

/// Only their arrival was seen: a departure is half a round trip before, and earlier if the sender's clock says so.
fn arriving(there: &Place, side: usize, rtt: u64) -> Vec<Packet> {
    let own = || there.entries.iter().filter(|entry| entry.from() == side);
    let clock = Clock::of(own());
    // Time from which on the sender knew of what it acknowledges: it cannot have left before.
    let mut known = Known::new(there.near[side].unwrap_or(rtt) / 2);
    let mut last = 0;
    let mut packets: Vec<(Packet, Entry)> = Vec::new();
    for entry in &there.entries {
        if entry.from() != side {
            known.passes(entry);
            continue;
        }
        let latest = entry.at.saturating_sub(rtt / 2);
        let stamped = clock.as_ref().filter(|_| entry.has(STAMP)).map(|clock| clock.at(entry.stamp));
        let sent = stamped.map_or(latest, |at| at.saturating_sub(rtt / 2));
        let since = known.since(entry);
        if stamped.is_some() && sent.max(since) + OVERTAKEN < last && entry.length > 0 {
            // Others that left later overtook it.
            packets.push(raw_arriving(entry, sent.max(since)));
            continue;
        }
        last = sent.max(last).max(since).min(latest);
        packets.push(raw_arriving(entry, last));
    }
    packets.sort_by_key(|(packet, _)| packet.sent);
    packets.into_iter().map(keep).collect()
}

/// Time by which the stamp of a packet that was overtaken is older at least than that of one before it \[ns\]: kernels
/// repeat stamps for a moment.
const OVERTAKEN: u64 = 5_000_000;

/// The newest packets towards a host, to tell since when it knows of what it acknowledges.
struct Known {
    /// Time from the capture to that host \[ns\].
    there: u64,
    /// Ends and times of packets that were not acknowledged yet.
    waiting: VecDeque<(u32, u64)>,
    /// End of the newest of them: what is sent again may be answered by its first sending.
    newest: Option<u32>,
    since: u64,
}

impl Known {
    fn new(there: u64) -> Self {
        Known { there, waiting: VecDeque::new(), newest: None, since: 0 }
    }

    fn passes(&mut self, entry: &Entry) {
        let takes = entry.length + u32::from(entry.is(Flags::SYN)) + u32::from(entry.is(Flags::FIN));
        let end = entry.seq.wrapping_add(takes);
        let is_new = self.newest.is_none_or(|newest| end.wrapping_sub(newest).cast_signed() > 0);
        if takes > 0 && is_new && self.waiting.len() < MOST_OPEN {
            self.newest = Some(end);
            self.waiting.push_back((end, entry.at));
        }
    }

    /// Time at which the newest of what this packet acknowledges was there.
    fn since(&mut self, entry: &Entry) -> u64 {
        while let Some((end, at)) = self.waiting.front().copied()
            && entry.is(Flags::ACK)
            && entry.ack.wrapping_sub(end).cast_signed() >= 0
        {
            self.since = self.since.max(at.saturating_add(self.there));
            self.waiting.pop_front();
        }
        self.since
    }
}

/// Makes positions of numbers.
fn number(picture: &mut FlowPicture, begins: DataBegins) {
    for side in 0..2 {
        let other = 1 - side;
        let first = |which: usize, packets: &[Vec<Packet>; 2]| {
            let own = packets[which].first().map(|packet| packet.seq as u32);
            let acked = packets[1 - which].iter().find(|packet| packet.ack != UNKNOWN).map(|packet| packet.ack as u32);
            own.or(acked).map(|seq| seq.wrapping_sub(1)).unwrap_or(0)
        };
        let base = picture.facts[side].isn.unwrap_or_else(|| first(side, &picture.packets));
        let peer = picture.facts[other].isn.unwrap_or_else(|| first(other, &picture.packets));
        let (mut seqs, mut acks, mut sacks) = (Unwrap::new(base), Unwrap::new(peer), Unwrap::new(peer));
        let (mut dsns, mut data_acks) = (Unwrap::new(begins[side]), Unwrap::new(begins[other]));
        let scale = match (picture.facts[0].scale, picture.facts[1].scale) {
            (Some(_), Some(_)) => picture.facts[side].scale.unwrap_or(0).min(14),
            _ => 0,
        };
        let (plain, peer_plain, scaled) = (picture.plain[side], picture.plain[other], picture.scaled);
        for packet in &mut picture.packets[side] {
            packet.seq = seqs.at(packet.seq as u32);
            if packet.ack != UNKNOWN {
                packet.ack = acks.at(packet.ack as u32);
            }
            if let Some((from, to)) = packet.sack {
                sacks.last = sacks.last.max(acks.last);
                let from = sacks.at(from as u32);
                packet.sack = Some((from, sacks.at(to as u32)));
            }
            packet.dsn = match packet.dsn {
                // The SYN has position 0, the first byte the next one.
                _ if plain => packet.seq - 1,
                UNKNOWN => UNKNOWN,
                dsn => dsns.at(dsn as u32),
            };
            packet.data_ack = match packet.data_ack {
                _ if peer_plain && packet.ack != UNKNOWN => packet.ack - 1,
                UNKNOWN => UNKNOWN,
                ack => data_acks.at(ack as u32),
            };
            packet.window = match packet.is(Flags::SYN) {
                true => packet.window,
                false if scaled => packet.window << scale,
                false => UNSCALED,
            };
        }
    }
}

/// A data packet, for tests.
#[cfg(test)]
pub(crate) fn tests_packet(sent: u64, arrived: u64, length: i64) -> Packet {
    Packet {
        sent,
        arrived,
        seq: 1,
        length,
        ack: UNKNOWN,
        dsn: UNKNOWN,
        data_ack: UNKNOWN,
        window: 0,
        sack: None,
        flags: 0,
        numbers: [0; 2],
    }
}
