//! Packets of a table through one link at a constant rate, and what became of each.

use anabranch_net::{Carried, Discipline, LinkConfig, Network, Output, QueueLimit};
use anabranch_policy::queue::QUEUES;
use anabranch_policy::registry::{Value, find};
use anabranch_units::{Bytes, Duration, Ecn, Instant, Rate, Seed};
use std::collections::BTreeMap;
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
    /// `left`, `marked` if it left with a mark that the link gave it, or `dropped`.
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

/// Reads lines of `at,size,flow,ecn` and whatever follows, after a line of names.
pub fn read(table: &str) -> Result<Vec<Arrival>, Box<dyn Error>> {
    let line = |(number, line): (usize, &str)| {
        let fields: Result<Vec<u64>, _> = line.split(',').take(4).map(str::parse).collect();
        match fields.as_deref() {
            Ok(&[at, size, flow, ecn]) => Ok(Arrival { at, size, flow, ecn: Ecn::from_bits(ecn as u8) }),
            _ => Err(format!("line {}: {line}; expected are four numbers: at,size,flow,ecn", number + 1).into()),
        }
    };
    table.lines().enumerate().skip(1).map(line).collect()
}

/// Sends the packets, which must be in order of time, over the link.
pub fn replay(set: &Set, arrivals: &[Arrival]) -> Result<Vec<Fate>, Box<dyn Error>> {
    let config = LinkConfig {
        // The link's limit includes the packet in service.
        queue: QueueLimit::Packets(set.limit + 1),
        discipline: Some(discipline(&set.discipline)?),
        ..LinkConfig::new(Rate::from_bps((set.mbit * 1e6) as u64), Duration::ZERO)
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
                    fates[number] = Fate { kind: if marked { "marked" } else { "left" }, at: one.at.as_nanos() };
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
    until(&mut network, &mut fates, Instant::MAX);
    Ok(fates)
}

fn discipline(text: &str) -> Result<Discipline, Box<dyn Error>> {
    let mut words = text.split(',');
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
    Ok(Discipline::new(&entry.name, move || entry.build(&params).policy))
}
