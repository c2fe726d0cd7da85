//! An established MPTCP connection of two subflows, with a fuzzer between its ends.
//!
//! He holds what both ends send: delivers, drops, repeats, reorders, changes it, and injects segments of his own that
//! fit the state of the connection, with the right keys where that takes him further. As long as he has changed
//! nothing, every byte must arrive as it was written, and all of them once he is gone.

use crate::host::{Host, PORT, config};
use crate::mutate::{corrupt, lie, sign};
use crate::script::Script;
use crate::segments;
use anabranch_engine::ConnectionId;
use anabranch_units::{AddressId, Duration, Instant, Key, Nonce, SubflowId, SubflowSeq, add_addr_hmac};
use anabranch_wire::{AddAddr, Flags, FlowKey, Handshake, JoinSyn, MpOption, RemoveAddr, Segment};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Runs a script between two ends.
pub fn connection(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut wire = Wire::new(&mut script);
    wire.establish();
    for _ in 0..MOST_STEPS {
        if script.is_empty() {
            break;
        }
        wire.step(&mut script);
    }
    wire.calm();
}

struct Wire {
    now: Instant,
    hosts: [Host; 2],
    ids: [Option<ConnectionId>; 2],
    keys: [Option<Key>; 2],
    /// Segments on their way to each host.
    queues: [VecDeque<Segment>; 2],
    /// Segments last sent to each host.
    history: [VecDeque<Segment>; 2],
    /// Someone has given the connection up.
    aborted: bool,
    /// He loses and delays, but never lies.
    faithful: bool,
}

impl Wire {
    fn new(script: &mut Script<'_>) -> Self {
        let hosts = [
            Host::new(config(script, &[address(0, 0), address(0, 1)]), 1),
            Host::new(config(script, &[address(1, 0)]), 2),
        ];
        Wire {
            now: Instant::ZERO,
            hosts,
            ids: [None, None],
            keys: [None, None],
            queues: Default::default(),
            history: Default::default(),
            aborted: false,
            faithful: script.one_in(3),
        }
    }

    /// The handshakes, the first bytes each way, and the second subflow.
    fn establish(&mut self) {
        let remote = SocketAddr::new(address(1, 0), PORT);
        let id = self.hosts[CLIENT].endpoint.open(self.now, address(0, 0), remote).expect("a first connection");
        self.hosts[CLIENT].connections.entry(id).or_default();
        self.ids[CLIENT] = Some(id);
        self.hosts[CLIENT].write(id, 3);
        for _ in 0..40 {
            self.round();
            if let (None, Some(id)) = (self.ids[SERVER], self.hosts[SERVER].connection(0)) {
                self.ids[SERVER] = Some(id);
                self.hosts[SERVER].write(id, 5);
            }
        }
        assert!(self.hosts.iter().all(|host| host.subflows >= 2), "undisturbed, two subflows are established");
        assert!(self.keys.iter().all(Option::is_some), "both keys were on the wire");
    }

    /// Ten milliseconds in which everything is delivered.
    fn round(&mut self) {
        for to in [CLIENT, SERVER] {
            while let Some(segment) = self.queues[to].pop_front() {
                self.deliver(to, segment);
            }
        }
        self.wait(Duration::from_millis(10));
    }

    fn deliver(&mut self, to: usize, segment: Segment) {
        let history = &mut self.history[to];
        if history.len() == MOST_HISTORY {
            history.pop_front();
        }
        history.push_back(segment.clone());
        self.hosts[to].deliver(self.now, segment);
        self.settle();
    }

    fn settle(&mut self) {
        for from in [CLIENT, SERVER] {
            let (queue, keys) = (&mut self.queues[1 - from], &mut self.keys);
            self.hosts[from].settle(self.now, |segment| send(segment, queue, &mut keys[from]));
        }
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        for from in [CLIENT, SERVER] {
            let (queue, keys) = (&mut self.queues[1 - from], &mut self.keys);
            self.hosts[from].pass(until, |_, segment| send(segment, queue, &mut keys[from]));
        }
        self.now = until;
        self.settle();
    }

    fn tamper(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.tampered = true);
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let choice = script.any::<u8>();
        let to = usize::from(choice >> 7);
        match choice & 15 {
            4 | 5 | 9..=12 if self.faithful => {
                if let Some(segment) = self.queues[to].pop_front() {
                    self.deliver(to, segment);
                }
            }
            0..=3 => {
                for _ in 0..=script.below(4) {
                    if let Some(segment) = self.queues[to].pop_front() {
                        self.deliver(to, segment);
                    }
                }
            }
            4 | 5 => {
                if let Some(mut segment) = self.queues[to].pop_front() {
                    for _ in 0..=script.below(3) {
                        lie(script, &mut segment);
                    }
                    if let Some(key) = self.keys[1 - to].filter(|_| script.any()) {
                        sign(&mut segment, key.idsn());
                    }
                    self.tamper();
                    self.deliver(to, segment);
                }
            }
            6 => drop(self.queues[to].pop_front()),
            7 => {
                if let Some(segment) = self.queues[to].front().cloned() {
                    self.deliver(to, segment);
                }
            }
            8 => {
                let count = self.queues[to].len().max(1);
                self.queues[to].rotate_left(usize::from(script.any::<u8>()) % count);
            }
            9 | 10 => {
                if let Some(mut segment) = self.template(script, to) {
                    for _ in 0..=script.below(3) {
                        lie(script, &mut segment);
                    }
                    if let Some(key) = self.keys[1 - to].filter(|_| script.any()) {
                        sign(&mut segment, key.idsn());
                    }
                    self.tamper();
                    self.deliver(to, segment);
                }
            }
            11 => {
                if let Some(segment) = self.informed(script, to) {
                    self.tamper();
                    self.deliver(to, segment);
                }
            }
            12 => {
                if let Some(packet) = self.template(script, to).and_then(|segment| corrupt(script, &segment)) {
                    self.tamper();
                    self.hosts[to].deliver_packet(self.now, &packet);
                }
            }
            13 => {
                let wait = script.of(&[1, 5, 20, 100, 300, 1_000, 4_000, 30_000]);
                self.wait(Duration::from_millis(wait));
            }
            _ => self.application(script, to),
        }
        self.settle();
    }

    fn application(&mut self, script: &mut Script<'_>, host: usize) {
        let Some(id) = self.ids[host] else { return };
        match script.below(16) {
            0..=8 => self.hosts[host].write(id, script.number() % 20_000),
            9 | 10 => self.hosts[host].deaf ^= true,
            11 | 12 => {
                let subflow = SubflowId(script.below(3).into());
                self.hosts[host].endpoint.set_backup(self.now, id, subflow, script.any());
            }
            13 => self.hosts[host].endpoint.set_carrier(self.now, address(host as u8, script.below(2)), script.any()),
            14 => self.hosts[host].endpoint.shutdown(id),
            _ => {
                self.aborted |= true;
                self.hosts[host].endpoint.abort(self.now, id);
            }
        }
    }

    /// Something that `to` was sent, its numbers those of the latest segment of the same flow at times.
    fn template(&self, script: &mut Script<'_>, to: usize) -> Option<Segment> {
        let count = self.history[to].len().max(1);
        let mut segment = self.history[to].iter().rev().nth(usize::from(script.any::<u8>()) % count)?.clone();
        if script.any() {
            let latest = self.history[to].iter().rev().find(|latest| latest.flow == segment.flow)?;
            segment.seq = latest.seq + latest.sequence_length();
            segment.ack = latest.ack;
            segment.options.set_timestamps(latest.options.timestamps());
        }
        Some(segment)
    }

    /// Builds a segment that needs knowledge of the keys.
    fn informed(&self, script: &mut Script<'_>, to: usize) -> Option<Segment> {
        let (own, other) = (self.keys[1 - to]?, self.keys[to]?);
        let mut segment = self.template(script, to)?;
        segment.payload = Default::default();
        segment.options.set_dss(segment.options.dss().filter(|_| script.any()));
        segment.options.retain_mptcp(|_| false);
        let id = AddressId(script.below(5));
        let option = match script.below(8) {
            0 => MpOption::FastClose { receiver_key: other },
            1 | 2 => {
                let address = if script.any() { address(1 - to as u8, script.below(6)) } else { IpAddr::from([9; 16]) };
                let port = script.any::<bool>().then(|| script.any());
                let hmac = Some(add_addr_hmac(own, other, id, address, port).last_8());
                MpOption::AddAddr(AddAddr { id, address, port, hmac })
            }
            3 => MpOption::RemoveAddr(RemoveAddr { ids: vec![id] }),
            4 => MpOption::Prio { backup: script.any() },
            5 => MpOption::Fail { dsn: own.idsn() + script.number() % 10_000 },
            6 => {
                segment.flags = Flags::SYN;
                let source = SocketAddr::new(address(1 - to as u8, script.below(6)), script.any());
                segment.flow = FlowKey::new(source, segment.flow.destination());
                segment.seq = SubflowSeq::new(script.any());
                *segment.options.handshake_mut() =
                    Handshake { mss: Some(1460), window_scale: Some(7), sack_permitted: true };
                MpOption::JoinSyn(JoinSyn { backup: script.any(), address: id, token: other.token(), nonce: Nonce(1) })
            }
            _ => segments::mptcp(script),
        };
        segment.options.push_mptcp(option);
        Some(segment)
    }

    /// The fuzzer has gone: what both ends say is delivered. Nothing may be lost unless he lied or someone gave up.
    fn calm(&mut self) {
        for host in 0..2 {
            self.hosts[host].deaf = false;
            for number in 0..2 {
                self.hosts[host].endpoint.set_carrier(self.now, address(host as u8, number), true);
            }
        }
        self.settle();
        // Segments in transit go with the attacker: an announcement of an opened window is lost.
        self.queues.iter_mut().for_each(VecDeque::clear);
        // Timeouts may have grown long, so the waits grow too.
        for step in 0..MOST_CALM {
            (0..4).for_each(|_| self.round());
            self.wait(Duration::from_millis(50 * step));
            let ended = self.hosts.iter().any(|host| host.tampered || host.resets > 0) || self.aborted;
            if step > 8 && (self.is_complete() || (ended && step > MOST_CALM / 4)) {
                return;
            }
        }
        panic!("everything arrives in the end, and {:?} did not", self.hosts.each_ref().map(|host| &host.connections));
    }

    /// True if each application has read what the other has written.
    fn is_complete(&self) -> bool {
        let [Some(client), Some(server)] = self.ids else { return true };
        let (client, server) = (&self.hosts[CLIENT].connections[&client], &self.hosts[SERVER].connections[&server]);
        client.read == server.written && server.read == client.written
    }
}

/// Puts a segment on the wire, and reads the key that it tells.
fn send(segment: Segment, queue: &mut VecDeque<Segment>, key: &mut Option<Key>) {
    for option in segment.options.mptcp() {
        if let MpOption::Capable(capable) = option {
            *key = capable.sender_key.or(*key);
        }
    }
    if queue.len() < MOST_QUEUED {
        queue.push_back(segment);
    }
}

fn address(host: u8, number: u8) -> IpAddr {
    IpAddr::from([10, host, number, 1])
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
const MOST_STEPS: usize = 300;
const MOST_HISTORY: usize = 24;
/// Steps in which what was lost is repeated: about three minutes.
const MOST_CALM: u64 = 80;
/// A queue that is full drops, as everywhere.
const MOST_QUEUED: usize = 500;
