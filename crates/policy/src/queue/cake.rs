//! CAKE, as far as its queues go (Høiland-Jørgensen, Täht and Morton 2018; Linux, net/sched/sch_cake.c): flows in an
//! 8-way set-associative table, whose delays COBALT controls, take turns; a host with many flows has as much as one
//! with few.
//!
//! Triple isolation: a flow's quantum is divided by the number of bulk flows of its sending or its receiving host,
//! whichever has more. A flow that sends little is sparse and goes first; one that empties decays before it is
//! forgotten.
//!
//! Best effort alone: packets here have no DSCP, and so there is one tin. ACK filter, NAT look-up, washing and the
//! overhead of framing are left out. Linux rounds quanta at random; here fractions of bytes are kept.

use super::cobalt::{Cobalt, Rule, Verdict};
use super::codel::{ECN, millis};
use super::fifo::Fifo;
use super::{Capabilities, Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Flag, Number, Params, flag, number};
use anabranch_units::{Bytes, Duration, Instant, Rate};
use std::collections::{BTreeMap, VecDeque};

const RTT: Number =
    number("rtt", "round trip of most flows: the interval, of which the target is 1/20", 100.0, 0.1..=100_000.0)
        .in_unit("ms");
const BANDWIDTH: Number =
    number("bandwidth", "rate of the shaper; 0 is none", 0.0, 0.0..=1_000_000.0).in_unit("Mbit/s");
const MEMORY: Number =
    number("memory", "bytes that wait at most, besides the limit of the link", 15_503_360.0, 3028.0..=1e12)
        .in_unit("bytes");
const HOSTS: Flag = flag("hosts", "isolate hosts as well as flows (triple isolation)", true);

/// Queues of flows.
const FLOWS: usize = 1024;
/// Queues among which a flow may have any.
const WAYS: usize = 8;
/// A full packet on Ethernet.
const FULL_PACKET: u64 = 1514;
/// Parts of a byte in credits, so that quanta can be divided.
const PARTS: i64 = 1 << 16;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "cake",
    "flows of hosts take turns, controlled by COBALT, behind a shaper",
    include_str!("cake.rs"),
    |params| Box::new(Cake::new(params)),
)
.paper("Høiland-Jørgensen, Täht and Morton 2018")
.parameters(&[RTT.parameter(), BANDWIDTH.parameter(), MEMORY.parameter(), HOSTS.parameter(), ECN.parameter()])
.capabilities(|_| Capabilities { limit: 10240 });

/// Place of a flow in the rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    #[default]
    None,
    Sparse,
    /// A flow in the bulk rotation with an empty queue, but counted as sparse.
    SparseWait,
    Bulk,
    Decaying,
}

#[derive(Debug, Default)]
struct Flow {
    queue: Fifo,
    cobalt: Cobalt,
    set: Set,
    /// Credit in parts of bytes.
    credit: i64,
    /// Hash of the flow that has this queue, and hashes of its hosts.
    tag: u64,
    hosts: [u64; 2],
}

/// Queues of flows behind a shaper.
#[derive(Debug)]
pub struct Cake {
    flows: Vec<Flow>,
    /// Flows of each set in rotation: new (sparse), old (bulk) and decaying ones.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    decaying: VecDeque<u16>,
    /// Bulk flows of sending and of receiving hosts.
    bulk_of: [BTreeMap<u64, u32>; 2],
    isolates_hosts: bool,
    rule: Rule,
    quantum: u64,
    memory: u64,
    bytes: u64,
    packets: usize,
    /// Rate of the shaper.
    rate: Option<Rate>,
    /// Time at which the shaper lets the next packet go.
    next: Instant,
}

impl Cake {
    fn new(params: &Params) -> Self {
        let rate = Rate::from_bps((BANDWIDTH.of(params) * 1e6) as u64);
        let rate = (!rate.is_zero()).then_some(rate);
        let full_packet = rate.map_or(Duration::ZERO, |rate| rate.time_for(Bytes::new(FULL_PACKET)));
        // At a low rate the target is one and a half packets, and the interval grows as much (`cake_set_rate`).
        let rtt = millis(RTT, params);
        let usual = rtt / 20;
        let target = usual.max(full_packet * 3 / 2);
        let interval = (rtt + target.saturating_sub(usual)).max(target * 2);
        // Low rates have short turns: rate / 4096 bytes, from 300 to a full packet.
        let quantum = rate.map_or(FULL_PACKET, |rate| ((rate.as_bps() / 8) >> 12).clamp(300, FULL_PACKET));
        Cake {
            flows: (0..FLOWS).map(|_| Flow::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            bulk_of: [BTreeMap::new(), BTreeMap::new()],
            isolates_hosts: HOSTS.of(params),
            // Four packets may always wait (`cobalt_should_drop`; two of each bulk flow do so in ingress mode alone).
            rule: Rule { target, interval, marks: ECN.of(params), least: full_packet * 4, roots: None },
            quantum,
            memory: MEMORY.of(params) as u64,
            bytes: 0,
            packets: 0,
            rate,
            next: Instant::ZERO,
        }
    }

    /// The queue of a flow: its own, else a free one of its set, else that of its hash.
    fn queue_of(&mut self, packet: &Waiting) -> usize {
        let first = (packet.flow % FLOWS as u64) as usize;
        let ways = |way: usize| first - first % WAYS + (first + way) % WAYS;
        let mut all = (0..WAYS).map(ways);
        let has = |at: &usize| self.flows[*at].set != Set::None && self.flows[*at].tag == packet.flow;
        let found = all.clone().find(has).or_else(|| all.find(|at| self.flows[*at].set == Set::None));
        let at = found.unwrap_or(first);
        let flow = &mut self.flows[at];
        if flow.set == Set::None || flow.tag != packet.flow {
            // Who comes to a queue of another by collision takes it over, with its place among the hosts.
            let is_bulk = flow.set == Set::Bulk;
            let before = std::mem::replace(&mut flow.hosts, packet.hosts);
            flow.tag = packet.flow;
            if is_bulk {
                self.count_bulk(before, false);
                self.count_bulk(packet.hosts, true);
            }
        }
        at
    }

    /// Counts a bulk flow of these hosts, or one less.
    fn count_bulk(&mut self, hosts: [u64; 2], more: bool) {
        for (bulk_of, host) in self.bulk_of.iter_mut().zip(hosts) {
            let count = bulk_of.entry(host).or_default();
            *count = if more { *count + 1 } else { *count - 1 };
            if *count == 0 {
                bulk_of.remove(&host);
            }
        }
    }

    /// Quantum of a flow in parts of bytes, by the load of its hosts.
    fn quantum(&self, hosts: [u64; 2]) -> i64 {
        let load = |(bulk_of, host): (&BTreeMap<u64, u32>, u64)| bulk_of.get(&host).copied().unwrap_or(0);
        let load = self.bulk_of.iter().zip(hosts).map(load).max().filter(|_| self.isolates_hosts);
        self.quantum as i64 * PARTS / i64::from(load.unwrap_or(1).max(1))
    }

    /// Moves a flow to another set, and counts it there.
    fn put(&mut self, at: usize, set: Set) {
        let (before, hosts) = (self.flows[at].set, self.flows[at].hosts);
        self.flows[at].set = set;
        match (before == Set::Bulk, set == Set::Bulk) {
            (false, true) => self.count_bulk(hosts, true),
            (true, false) => self.count_bulk(hosts, false),
            _ => {}
        }
    }

    /// Drops from the head of the longest queue, of equals the first.
    fn drop_fattest(&mut self, port: &mut Port<'_>) {
        let bytes = |at: usize| self.flows[at].queue.bytes();
        let most = (1..FLOWS).fold(0, |most, at| if bytes(at) > bytes(most) { at } else { most });
        let Some(packet) = self.pop(most) else { return };
        self.flows[most].cobalt.full(&self.rule, port.now);
        port.drop(packet, Cause::Full);
    }

    fn pop(&mut self, at: usize) -> Option<Waiting> {
        let packet = self.flows[at].queue.pop()?;
        self.bytes -= u64::from(packet.size);
        self.packets -= 1;
        Some(packet)
    }

    /// The flow whose turn it is, with credit. Each call may first let one decaying flow decay.
    fn turn(&mut self, first: bool) -> Option<usize> {
        let mut decays = first;
        loop {
            let list = if decays && !self.decaying.is_empty() {
                &mut self.decaying
            } else if !self.new.is_empty() {
                &mut self.new
            } else if !self.old.is_empty() {
                &mut self.old
            } else {
                &mut self.decaying
            };
            decays = false;
            let at = usize::from(*list.front()?);
            if self.flows[at].credit > 0 {
                return Some(at);
            }
            list.pop_front();
            if self.flows[at].set == Set::Sparse {
                let has_packets = self.flows[at].queue.len() > 0;
                self.put(at, if has_packets { Set::Bulk } else { Set::SparseWait });
            }
            self.flows[at].credit += self.quantum(self.flows[at].hosts);
            self.old.push_back(at as u16);
        }
    }

    /// The queue of a flow whose turn it is was empty.
    fn rest(&mut self, at: usize, now: Instant) {
        for list in [&mut self.decaying, &mut self.new, &mut self.old] {
            if list.front() == Some(&(at as u16)) {
                list.pop_front();
                break;
            }
        }
        self.flows[at].cobalt.empty(&self.rule, now);
        if self.flows[at].cobalt.rests(now) {
            self.put(at, Set::None);
        } else {
            self.put(at, Set::Decaying);
            self.decaying.push_back(at as u16);
        }
    }

    /// The next packet of a flow that may leave; the last of a queue is not dropped.
    fn take(&mut self, at: usize, port: &mut Port<'_>) -> Option<Waiting> {
        loop {
            let mut packet = self.pop(at)?;
            let flow = &mut self.flows[at];
            match flow.cobalt.judge(&self.rule, &packet, port.now, port.stream) {
                Verdict::Drop if flow.queue.len() > 0 => {
                    port.drop(packet, Cause::Early);
                    continue;
                }
                Verdict::Mark => _ = packet.mark(),
                Verdict::Drop | Verdict::Pass => {}
            }
            flow.credit -= i64::from(packet.size) * PARTS;
            return Some(packet);
        }
    }
}

impl QueueDiscipline for Cake {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        if self.packets == 0 {
            self.next = self.next.max(port.now); // Nothing is saved up while idle.
        }
        let at = self.queue_of(&packet);
        self.flows[at].queue.push(packet);
        self.bytes += u64::from(packet.size);
        self.packets += 1;
        match self.flows[at].set {
            Set::None | Set::Decaying => {
                self.decaying.retain(|other| usize::from(*other) != at);
                self.put(at, Set::Sparse);
                self.flows[at].credit = self.quantum(packet.hosts);
                self.new.push_back(at as u16);
            }
            Set::SparseWait => self.put(at, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
        while self.packets > 0 && (port.is_over() || (self.bytes > self.memory && self.packets > 1)) {
            self.drop_fattest(port);
        }
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        if self.packets > 0 && self.rate.is_some() && self.next > port.now {
            return Next::At(self.next);
        }
        let mut first = true;
        while self.packets > 0 {
            let Some(at) = self.turn(first) else { break };
            first = false;
            let Some(packet) = self.take(at, port) else {
                self.rest(at, port.now);
                continue;
            };
            if let Some(rate) = self.rate {
                self.next += rate.time_for(Bytes::new(u64::from(packet.size)));
            }
            return Next::Packet(packet);
        }
        Next::Nothing
    }

    fn clear(&mut self) {
        for flow in &mut self.flows {
            flow.queue.clear();
            flow.set = Set::None;
        }
        [&mut self.new, &mut self.old, &mut self.decaying].into_iter().for_each(VecDeque::clear);
        self.bulk_of.iter_mut().for_each(BTreeMap::clear);
        (self.bytes, self.packets) = (0, 0);
    }

    fn tells_hosts(&self) -> bool {
        self.isolates_hosts
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, SIZE};
    use super::*;
    use crate::registry::Value;
    use anabranch_units::Ecn;

    fn cake(sets: &[(&str, Value)], limit: u32) -> Bench {
        let sets = sets.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Bench::new(ENTRY.build(&ENTRY.params(&sets).expect("within range")).policy, limit)
    }

    fn come(bench: &mut Bench, id: u32, flow: u64, hosts: [u64; 2]) {
        bench.take(Waiting { id, size: SIZE, flow, hosts, ecn: Ecn::NotEct, since: Instant::ZERO });
    }

    /// One host has four flows and another has one, to hosts of their own each: by flows they share 4 to 1, by hosts
    /// equally.
    #[test]
    fn hosts_share_whatever_the_number_of_their_flows() {
        for (hosts, share) in [(true, 200), (false, 80)] {
            let mut bench = cake(&[("hosts", Value::Flag(hosts)), ("rtt", Value::Number(10_000.0))], 10_000);
            for id in 0..2000 {
                let flow = u64::from(id) % 5;
                come(&mut bench, id, flow, [flow / 4, 100 + flow]);
            }
            let alone = (0..400).filter(|_| bench.leave(1).is_some_and(|id| id % 5 == 4)).count();
            assert!(alone.abs_diff(share) <= 4, "{hosts}: {alone} of 400");
        }
    }

    /// Eight flows whose hashes fall on one queue have queues of their own, and the ninth shares one.
    #[test]
    fn a_set_has_eight_ways() {
        let mut bench = cake(&[("hosts", Value::Flag(false))], 1000);
        (0..18).for_each(|id| come(&mut bench, id, u64::from(id % 9) * 1024, [0, 0]));
        // A quantum of 1514 bytes lets each flow send two packets of 1500 in its first turn.
        let left: Vec<u32> = (0..18).filter_map(|_| bench.leave(0)).collect();
        assert_eq!(left[..4], [0, 8, 1, 10], "{left:?}");
    }

    /// 12 Mbit/s is 1 ms for a packet; the shaper at half of that lets one go each 2 ms, and none at once after it was
    /// idle.
    #[test]
    fn the_shaper_keeps_its_rate() {
        let mut bench = cake(&[("bandwidth", Value::Number(6.0))], 1000);
        (0..3).for_each(|id| come(&mut bench, id, 0, [0, 0]));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!((bench.leave(0), bench.next(0)), (Some(0), Next::At(at(2))));
        assert_eq!((bench.leave(2), bench.next(3)), (Some(1), Next::At(at(4))));
        assert_eq!((bench.leave(4), bench.next(100)), (Some(2), Next::Nothing));
        bench.come(100, 3, 0);
        bench.come(100, 4, 0);
        assert_eq!((bench.leave(100), bench.next(100)), (Some(3), Next::At(at(102))));
    }

    /// Ten flows of two packets each at 1.2 Mbit/s, so that each packet waits 200 ms: more than the target, and more
    /// than the time of four packets.
    #[test]
    fn many_flows_on_a_slow_link_are_controlled_as_well() {
        let mut bench = cake(&[("bandwidth", Value::Number(1.2)), ("hosts", Value::Flag(false))], 1000);
        let mut dropped = 0;
        let comes = |bench: &mut Bench, ms: u64, flow: u32| {
            let since = Instant::ZERO + Duration::from_millis(ms);
            let ecn = Ecn::NotEct;
            bench.take(Waiting { id: flow, size: 1500, flow: u64::from(flow % 10), hosts: [0, 0], ecn, since });
        };
        (0..20).for_each(|flow| comes(&mut bench, 0, flow));
        for ms in (10..2000).step_by(10) {
            let left = bench.leave(ms).expect("none is empty");
            comes(&mut bench, ms, left);
            for (gone, _) in bench.gone() {
                dropped += 1;
                comes(&mut bench, ms, gone);
            }
        }
        assert!(dropped >= 10, "{dropped}");
    }

    #[test]
    fn memory_binds_beside_the_limit() {
        let mut bench = cake(&[("memory", Value::Number(4500.0))], 1000);
        (0..3).for_each(|id| come(&mut bench, id, 1, [0, 0]));
        assert_eq!(bench.gone(), []);
        come(&mut bench, 3, 2, [0, 0]);
        assert_eq!(bench.gone(), [(0, Cause::Full)]);
    }
}
