//! Inputs to start from, made from nothing but our own code.

use crate::host::{Host, PORT, config};
use crate::script::Script;
use anabranch_units::{Duration, Instant, Seed};
use anabranch_wire::{Segment, emit};
use bytes::BytesMut;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// A fuzz target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// [`crate::codec`].
    Codec,
    /// [`crate::listener`].
    Listener,
    /// [`crate::connection`].
    Connection,
}

impl Target {
    /// All of them, with their names.
    pub const ALL: [(Target, &str); 3] =
        [(Target::Codec, "codec"), (Target::Listener, "listener"), (Target::Connection, "connection")];

    /// Runs one input.
    pub fn run(self, input: &[u8]) {
        match self {
            Target::Codec => crate::codec(input),
            Target::Listener => crate::listener(input),
            Target::Connection => crate::connection(input),
        }
    }
}

/// `count` inputs drawn from `seed`, the same every time: scripts of any bytes, some of them of few different ones, and
/// for the codec packets of a genuine connection, whole and spoiled.
pub fn seeds(target: Target, count: u64, seed: u64) -> Vec<Vec<u8>> {
    let packets = if target == Target::Codec { packets() } else { Vec::new() };
    let draw = |n: u64| {
        let mut chance = Seed(seed).stream(&format!("{target:?}/{n}"));
        if let Some(packet) = packets.get(n as usize) {
            return packet.clone();
        }
        if !packets.is_empty() && chance.chance(0.5) {
            let mut packet = packets[chance.below(packets.len() as u64) as usize].clone();
            for _ in 0..chance.below(5) {
                let at = 20 + chance.below(packet.len() as u64 - 20) as usize;
                packet[at] = chance.next_u32() as u8;
            }
            return packet;
        }
        let length = chance.below(400);
        // Kinds of steps are numbered modulo small numbers: bytes of few residues make long runs of a few kinds.
        let (modulus, residues) = ([1, 10, 16][chance.below(3) as usize], [chance.next_u32(), chance.next_u32()]);
        let byte = |_| {
            let (byte, residue) = (chance.next_u32(), residues[chance.below(2) as usize] % modulus);
            if chance.chance(0.9) { (byte % (250 / modulus) * modulus + residue) as u8 } else { byte as u8 }
        };
        (0..length).map(byte).collect()
    };
    (0..count).map(draw).collect()
}

/// One packet of each layout that a connection with two subflows sends, over IPv4 and with IPv6 announced.
fn packets() -> Vec<Vec<u8>> {
    let mut layouts = BTreeSet::new();
    let mut packets = Vec::new();
    for variant in 0..8u8 {
        // Profile, timestamps, SACK, window scale: the script's first bytes.
        let mut settings = [0; 16];
        (settings[0], settings[1]) = (variant % 4, if variant < 4 { 0 } else { 2 });
        let addresses = |host: u8| [0, 1].map(|number| IpAddr::from([10, host, number, 1]));
        let mut hosts = [1, 2].map(|n| Host::new(config(&mut Script::new(&settings), &addresses(n)), n.into()));
        let mut now = Instant::ZERO;
        let id = hosts[0]
            .endpoint
            .open(now, addresses(1)[0], SocketAddr::new(addresses(2)[0], PORT))
            .expect("a first connection");
        hosts[0].connections.entry(id).or_default();
        hosts[0].write(id, 3000);
        let mut queues: [Vec<Segment>; 2] = Default::default();
        for round in 0..60 {
            now += Duration::from_millis(10);
            for to in [0, 1] {
                for (n, segment) in std::mem::take(&mut queues[to]).into_iter().enumerate() {
                    let layout = (
                        segment.flags.0,
                        segment.options.wire_length(),
                        segment.options.dss().map(|dss| (dss.wire_length(), dss.data_fin)),
                        segment.options.mptcp().len(),
                        segment.payload.is_empty(),
                    );
                    if layouts.insert(layout) {
                        // A little of the payload is enough.
                        let payload = segment.payload.slice(..segment.payload.len().min(8));
                        let mut out = BytesMut::new();
                        emit(&Segment { payload, ..segment.clone() }, &mut out)
                            .expect("what an endpoint sends can be written");
                        packets.push(out.to_vec());
                    }
                    // Something is lost now and then, for the sake of SACK.
                    if !(round > 10 && n == 1) {
                        hosts[to].deliver(now, segment);
                    }
                }
            }
            for from in [0, 1] {
                let queue = &mut queues[1 - from];
                hosts[from].pass(now, |_, segment| queue.push(segment));
                hosts[from].settle(now, |segment| queue.push(segment));
            }
            if let Some(id) = hosts[1].connection(0) {
                match round {
                    12 => hosts[1].write(id, 20_000),
                    30 => hosts[1].endpoint.set_backup(now, id, anabranch_units::SubflowId(0), true),
                    40 if variant % 2 == 0 => hosts[1].endpoint.abort(now, id),
                    40 => hosts[1].endpoint.shutdown(id),
                    _ => {}
                }
            }
        }
    }
    packets
}
