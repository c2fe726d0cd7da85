//! Packets of a table through one link at a constant rate, and what became of each.

use anabranch_net::{Carried, Discipline, LinkConfig, Network, Output, QueueLimit};
use anabranch_policy::queue::{Next, Port, QUEUES, QueueDiscipline, Waiting};
use anabranch_policy::registry::{Value, find};
use anabranch_units::{Bytes, Duration, Ecn, Instant, Rate, Seed};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;

/// A link with a discipline.
pub struct Set {
    /// Name of the discipline, and `,key=value` for each parameter.
    pub discipline: String,
    /// Rate in Mbit/s.
    pub mbit: f64,
    /// Packets that wait at most, beside the one in service.
    pub limit: u32,
    /// Seed of what the discipline draws.
    pub seed: u64,
    /// Times in nanoseconds, in order, at which a packet may leave. If there are any, no packet is in service for
    /// longer, whatever the rate, and `limit` packets are all that the link holds.
    pub slots: Vec<u64>,
}

/// Rate in Mbit/s at which any packet is in service for a nanosecond, the shortest time.
const NO_TIME: f64 = 1e12;

/// Discipline that is asked at given times alone, as by a shaper whose decisions were recorded.
#[derive(Debug)]
struct Slotted {
    inner: Box<dyn QueueDiscipline>,
    slots: VecDeque<Instant>,
}

impl QueueDiscipline for Slotted {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        self.inner.enqueue(packet, port);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        // Slots that found the queue empty are gone.
        while self.slots.front().is_some_and(|slot| *slot < port.now) {
            self.slots.pop_front();
        }
        match self.slots.front() {
            _ if port.packets == 0 => Next::Nothing,
            Some(slot) if *slot == port.now => {
                self.slots.pop_front();
                self.inner.dequeue(port)
            }
            slot => Next::At(slot.copied().unwrap_or(Instant::MAX)),
        }
    }

    fn clear(&mut self) {
        self.inner.clear();
    }
}

/// A packet that comes to the link.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time in nanoseconds.
    pub at: u64,
    /// Length in bytes.
    pub size: u64,
    /// Number of its flow.
    pub flow: u64,
    /// ECN field.
    pub ecn: Ecn,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// `left`, `marked` if it left with a mark that the link gave it, `dropped`, or `waits` if no slot was left for it.
    pub kind: &'static str,
    /// Time in nanoseconds: that of the drop, or that at which its last bit left.
    pub at: u64,
}

#[derive(Clone)]
struct Packet {
    flow: u64,
    ecn: Ecn,
}

impl Carried for Packet {
    fn flow(&self) -> u64 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// Reads lines of `at,size,flow,ecn` and whatever follows, after a line of names; and slots, on lines of one number.
pub fn read(table: &str) -> Result<(Vec<Arrival>, Vec<u64>), Box<dyn Error>> {
    let (mut arrivals, mut slots) = (Vec::new(), Vec::new());
    for (number, line) in table.lines().enumerate().skip(1) {
        let fields: Result<Vec<u64>, _> = line.split(',').take(4).map(str::parse).collect();
        match fields.as_deref() {
            Ok(&[at, size, flow, ecn]) => arrivals.push(Arrival { at, size, flow, ecn: Ecn::from_bits(ecn as u8) }),
            Ok(&[slot]) => slots.push(slot),
            _ => {
                let number = number + 1;
                return Err(format!("line {number}: {line}; expected is at,size,flow,ecn, or one number").into());
            }
        }
    }
    Ok((arrivals, slots))
}

/// Sends the packets, which must be in order of time, over the link.
pub fn replay(set: &Set, arrivals: &[Arrival]) -> Result<Vec<Fate>, Box<dyn Error>> {
    let slotted = !set.slots.is_empty();
    // The link's limit includes the packet in service.
    let (limit, mbit) = if slotted { (set.limit, NO_TIME) } else { (set.limit + 1, set.mbit) };
    let config = LinkConfig {
        queue: QueueLimit::Packets(limit),
        discipline: Some(discipline(set)?),
        ..LinkConfig::new(Rate::from_bps((mbit * 1e6) as u64), Duration::ZERO)
    };
    let mut network = Network::new();
    let link = network.add_link(config, "link", Seed(set.seed))?;
    let route = network.add_route(&[link])?;
    network.report_drops();
    let mut fates = vec![Fate { kind: "waits", at: 0 }; arrivals.len()];
    let until = |network: &mut Network<Packet>, fates: &mut [Fate], end| {
        while let Some(now) = network.next_time().filter(|now| *now <= end) {
            while let Some(output) = network.poll(now) {
                if let Output::Delivery(one) = output {
                    let number = one.tag as usize;
                    let marked = one.packet.ecn != arrivals[number].ecn;
                    let at = one.at.as_nanos() - u64::from(slotted);
                    fates[number] = Fate { kind: if marked { "marked" } else { "left" }, at };
                }
            }
        }
        while let Some(drop) = network.poll_drop() {
            fates[drop.tag as usize] = Fate { kind: "dropped", at: drop.at.as_nanos() };
        }
    };
    for (number, &Arrival { at, size, flow, ecn }) in arrivals.iter().enumerate() {
        let now = Instant::from_nanos(at);
        until(&mut network, &mut fates, now);
        network.send(now, route, Packet { flow, ecn }, Bytes::new(size), number as u64);
    }
    // Packets for which no slot is left wait for ever.
    let end = set.slots.last().map_or(Instant::MAX, |slot| Instant::from_nanos(slot + 1000));
    until(&mut network, &mut fates, end);
    Ok(fates)
}

fn discipline(set: &Set) -> Result<Discipline, Box<dyn Error>> {
    let mut words = set.discipline.split(',');
    let entry = find(QUEUES, "queue discipline", words.next().unwrap_or_default())?;
    let mut sets = BTreeMap::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word}: expected is NAME=VALUE"))?;
        let value = match value.parse() {
            Ok(flag) => Value::Flag(flag),
            Err(_) => Value::Number(value.parse().map_err(|_| format!("{word}: expected is a number or a flag"))?),
        };
        sets.insert(name.to_owned(), value);
    }
    let params = entry.params(&sets)?;
    let slots: VecDeque<Instant> = set.slots.iter().map(|at| Instant::from_nanos(*at)).collect();
    Ok(Discipline::new(&entry.name, move || {
        let inner = entry.build(&params).policy;
        if slots.is_empty() { inner } else { Box::new(Slotted { inner, slots: slots.clone() }) }
    }))
}
