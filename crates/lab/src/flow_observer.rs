//! Observer of flows: what each direction of each connection sends, loses and receives, and when.

use crate::flows::Span;
use anabranch_engine::Purpose;
use anabranch_paths::{End, PacketId};
use anabranch_sim::{Condition, Content, Host, Loss, Observer, Sight};
use anabranch_units::{Duration, Instant};
use anabranch_wire::FlowKey;
use std::collections::{BTreeMap, HashMap};

/// Payload from which a packet counts as full: an empty queue passes it in the base delay of its path.
const FULL: usize = 1000;
/// Number of transmissions whose times are kept of a flow.
const MOST_TIMES: usize = 4000;

/// One direction of a connection, or a UDP workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Key {
    /// A direction of a subflow as its sender sees it, with the number of the client.
    Tcp(usize, FlowKey),
    /// Number among the UDP workloads.
    Udp(usize),
    /// A direction of a real connection as its sender sees it, of TCP, or else of UDP.
    Real(bool, FlowKey),
}

/// Records of one direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowRecord {
    /// New payload received, by time.
    pub(crate) bytes: Vec<u64>,
    /// Packets with payload sent, by time.
    pub(crate) packets: Vec<u64>,
    /// Packets with payload that were lost, by the time at which they were sent.
    pub(crate) lost: Vec<u64>,
    /// Smallest one-way delay of packets received \[ns\], by the time at which they were sent.
    pub(crate) least: Vec<Option<u64>>,
    /// New payload received in the span.
    pub(crate) received: u64,
    /// Packets with payload sent in the span.
    pub(crate) sent: u64,
    /// Packets with payload sent in the span that were lost.
    pub(crate) dropped: u64,
    /// One-way delays of the packets sent in the span and received \[ns\].
    pub(crate) delays: Vec<u64>,
    /// Times at which new payload arrived in the span.
    pub(crate) arrivals: Vec<Instant>,
    /// Times of transmissions from [`Span::after`] on.
    pub(crate) sends: Vec<Instant>,
    /// Path of its first packet.
    pub(crate) path: usize,
    order: Order,
}

/// Watches all flows of a run.
#[derive(Debug)]
pub(crate) struct FlowObserver {
    span: Span,
    pub(crate) flows: BTreeMap<Key, FlowRecord>,
    /// Smallest one-way delay of full packets on each path \[ns\], in each direction, and of any packet with payload.
    base: BTreeMap<(usize, bool), [u64; 2]>,
    /// Packets on their way; never iterated over.
    under_way: HashMap<PacketId, Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    key: Key,
    at: Instant,
}

/// Packet with payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) key: Key,
    pub(crate) path: usize,
    /// Bytes of payload.
    pub(crate) length: usize,
    /// True from the server to the client.
    pub(crate) down: bool,
    /// Sequence number of its first byte; `None` for a datagram, which is no copy of another.
    pub(crate) seq: Option<u32>,
}

impl FlowObserver {
    pub(crate) fn new(span: Span) -> Self {
        FlowObserver { span, flows: BTreeMap::new(), base: BTreeMap::new(), under_way: HashMap::new() }
    }

    /// Returns the one-way delay of a full packet over the empty path \[ns\], as far as the run has seen it.
    pub(crate) fn base(&self, path: usize, down: bool) -> u64 {
        self.base.get(&(path, down)).map_or(0, |&[full, any]| if full < u64::MAX { full } else { any })
    }

    fn is_in(&self, at: Instant) -> bool {
        let (from, to) = (Instant::ZERO + self.span.from, Instant::ZERO + self.span.to);
        from <= at && at < to
    }

    fn place(&self, at: Instant) -> usize {
        let since = at.since(Instant::ZERO).as_nanos();
        usize::try_from(since / self.span.bin.as_nanos().max(1)).unwrap_or(usize::MAX).min(MOST_BINS - 1)
    }
}

/// Number of places of a series; the last holds the rest of a longer run.
const MOST_BINS: usize = 4096;

fn add(series: &mut Vec<u64>, place: usize, count: u64) {
    if series.len() <= place {
        series.resize(place + 1, 0);
    }
    series[place] += count;
}

impl FlowObserver {
    /// Takes note of a packet that a host sends.
    pub(crate) fn note_sent(&mut self, id: PacketId, at: Instant, parcel: &Parcel) {
        let key = parcel.key;
        let (place, is_in) = (self.place(at), self.is_in(at));
        let after = self.span.after.is_some_and(|after| at >= Instant::ZERO + after);
        let flow = self.flow(key, parcel.path);
        add(&mut flow.packets, place, 1);
        flow.sent += u64::from(is_in);
        if after && flow.sends.len() < MOST_TIMES {
            flow.sends.push(at);
        }
        self.under_way.insert(id, Sent { key, at });
    }

    /// Takes note of a packet that a host receives. Returns its flow and the payload that is new to it.
    pub(crate) fn note_received(&mut self, id: PacketId, at: Instant, parcel: &Parcel) -> (Key, u64) {
        let &Parcel { path, length, down, seq, .. } = parcel;
        let sent = self.under_way.remove(&id);
        let (place, is_in) = (self.place(at), self.is_in(at));
        let timed = sent.map(|sent| (at.since(sent.at).as_nanos(), self.place(sent.at), self.is_in(sent.at)));
        if let Some((delay, ..)) = timed {
            let base = self.base.entry((path, down)).or_insert([u64::MAX; 2]);
            base[1] = base[1].min(delay);
            if length >= FULL {
                base[0] = base[0].min(delay);
            }
        }
        // A middlebox that changes addresses makes another flow of it at the receiver: it counts as its sender's.
        let key = sent.map_or(parcel.key, |sent| sent.key);
        let flow = self.flow(key, path);
        let new = seq.map_or(length as u64, |seq| flow.order.new_bytes(seq, length as u64));
        if new > 0 {
            add(&mut flow.bytes, place, new);
            if is_in {
                flow.received += new;
                flow.arrivals.push(at);
            }
        }
        if let Some((delay, place, is_in)) = timed {
            if flow.least.len() <= place {
                flow.least.resize(place + 1, None);
            }
            let least = &mut flow.least[place];
            *least = Some(least.map_or(delay, |least| least.min(delay)));
            if is_in {
                flow.delays.push(delay);
            }
        }
        (key, new)
    }

    /// Takes note of a packet that a link has dropped.
    pub(crate) fn note_lost(&mut self, id: PacketId) {
        let Some(Sent { key, at }) = self.under_way.remove(&id) else { return };
        let (place, is_in) = (self.place(at), self.is_in(at));
        if let Some(flow) = self.flows.get_mut(&key) {
            add(&mut flow.lost, place, 1);
            flow.dropped += u64::from(is_in);
        }
    }

    /// Takes note of a packet that ended otherwise: damaged, or kept by a middlebox.
    pub(crate) fn note_ended(&mut self, id: PacketId) {
        self.under_way.remove(&id);
    }

    fn flow(&mut self, key: Key, path: usize) -> &mut FlowRecord {
        self.flows.entry(key).or_insert_with(|| FlowRecord { path, ..FlowRecord::default() })
    }
}

/// Returns a packet of the simulator; `None` for segments without payload.
fn parcel(sight: &Sight<'_>) -> Option<Parcel> {
    let path = sight.path;
    match sight.content {
        Content::Segment(segment) if !segment.payload.is_empty() => {
            let key = Key::Tcp(sight.client, segment.flow);
            let down = matches!(sight.host, Host::Server | Host::CompetingServer(_));
            Some(Parcel { key, path, length: segment.payload.len(), down, seq: Some(segment.seq.get()) })
        }
        Content::Datagram { flow, size, from_client, .. } => {
            let length = usize::try_from(size.get()).unwrap_or(usize::MAX);
            Some(Parcel { key: Key::Udp(flow), path, length, down: !from_client, seq: None })
        }
        Content::Segment(_) | Content::Echo(_) => None,
    }
}

impl Observer for FlowObserver {
    fn on_sent(&mut self, sight: Sight<'_>, _purpose: Option<Purpose>) {
        if let Some(parcel) = parcel(&sight) {
            self.note_sent(sight.id, sight.at, &parcel);
        }
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        let Some(mut parcel) = parcel(&sight) else { return };
        // The receiver's host is at the other end; a datagram says itself who sent it.
        parcel.down ^= parcel.seq.is_some();
        if condition == Condition::Damaged {
            return self.note_ended(sight.id);
        }
        self.note_received(sight.id, sight.at, &parcel);
    }

    fn on_lost(&mut self, id: PacketId, _loss: Loss<'_>) {
        self.note_lost(id);
    }

    fn on_kept(&mut self, id: PacketId, _path: usize, _end: End) {
        self.note_ended(id);
    }
}

/// Payload of a flow that has arrived, so that copies do not count.
#[derive(Clone, Debug, Default)]
struct Order {
    /// Sequence number of the first payload seen, and the end of what arrived without a gap behind it.
    begin: Option<u32>,
    next: u64,
    /// Ranges beyond the gap at `next`: begin and end.
    beyond: BTreeMap<u64, u64>,
}

impl Order {
    /// Returns the number of bytes that were not there before.
    fn new_bytes(&mut self, seq: u32, length: u64) -> u64 {
        let begin = *self.begin.get_or_insert(seq);
        // The offset nearest to what arrived last: numbers wrap, and the first packet seen may not be the first sent.
        let near = begin.wrapping_add(self.next as u32);
        let offset = self.next as i64 + i64::from(seq.wrapping_sub(near) as i32);
        let end = offset + length as i64;
        if end <= self.next as i64 {
            // Sent before the first that was seen: counted once, as it cannot be told from a copy otherwise.
            return 0;
        }
        let (mut from, to) = (offset.max(self.next as i64) as u64, end as u64);
        let mut new = 0;
        while from < to {
            let covering = self.beyond.range(..=from).next_back().filter(|(_, end)| **end > from).map(|(_, end)| *end);
            if let Some(end) = covering {
                from = end;
                continue;
            }
            let until = self.beyond.range(from..).next().map_or(to, |(begin, _)| (*begin).min(to));
            new += until - from;
            self.insert(from, until);
            from = until;
        }
        new
    }

    fn insert(&mut self, from: u64, until: u64) {
        if from == self.next {
            self.next = until;
            while let Some((&begin, &end)) = self.beyond.first_key_value().filter(|(begin, _)| **begin <= self.next) {
                self.beyond.remove(&begin);
                self.next = self.next.max(end);
            }
            return;
        }
        // Joined with the range before it, which keeps their number that of the gaps.
        match self.beyond.range_mut(..from).next_back().filter(|(_, end)| **end == from) {
            Some((_, end)) => *end = until,
            None => drop(self.beyond.insert(from, until)),
        }
    }
}

/// Returns the longest time without an arrival within the span.
pub(crate) fn silence(mut arrivals: Vec<Instant>, span: &Span) -> Duration {
    arrivals.sort_unstable();
    let (from, to) = (Instant::ZERO + span.from, Instant::ZERO + span.to);
    let mut before = from;
    let mut longest = Duration::ZERO;
    for at in arrivals.into_iter().chain([to]) {
        longest = longest.max(at.since(before));
        before = at;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies and overlaps add nothing; gaps are filled once.
    #[test]
    fn bytes_count_once() {
        let mut order = Order::default();
        let start = u32::MAX - 999;
        let take = |order: &mut Order, offset: u32, length| order.new_bytes(start.wrapping_add(offset), length);
        assert_eq!(take(&mut order, 0, 1000), 1000);
        assert_eq!(take(&mut order, 0, 1000), 0, "a copy");
        assert_eq!(take(&mut order, 2000, 1000), 1000, "behind a gap, and the numbers have wrapped");
        assert_eq!(take(&mut order, 4000, 1000), 1000);
        assert_eq!(take(&mut order, 1500, 3000), 1500, "the two gaps that it reaches into");
        assert_eq!(take(&mut order, 2000, 1000), 0);
        assert_eq!(take(&mut order, 1000, 500), 500);
        assert_eq!((order.next, order.beyond.len()), (5000, 0));
    }

    #[test]
    fn a_silence_may_lie_at_either_end() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let span = Span { from: Duration::from_secs(1), to: Duration::from_secs(3), ..Span::default() };
        assert_eq!(silence(vec![at(1100), at(1200)], &span), Duration::from_millis(1800));
        assert_eq!(silence(vec![at(2950), at(2000)], &span), Duration::from_millis(1000));
        assert_eq!(silence(Vec::new(), &span), Duration::from_secs(2));
    }
}
