//! State exchanged between both ends of a script so far: numbers, keys, nonces, mappings.

use crate::pattern::Side;
use anabranch_engine::ConnectionId;
use anabranch_units::{Dsn, Key, Nonce, SubflowSeq};
use anabranch_wire::{DataSeq, Flags, FlowKey, MpOption, Segment};
use std::net::{IpAddr, SocketAddr};

/// One connection of the script.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    /// The endpoint's, once it has named it.
    pub(crate) id: Option<ConnectionId>,
    pub(crate) host_key: Option<Key>,
    pub(crate) peer_key: Key,
    /// Relative data sequence numbers the application has written and read next.
    pub(crate) written: i64,
    pub(crate) read: i64,
}

/// One subflow of the script.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) host: (IpAddr, Option<u16>),
    pub(crate) peer: SocketAddr,
    pub(crate) conversation: usize,
    pub(crate) host_isn: Option<SubflowSeq>,
    pub(crate) peer_isn: SubflowSeq,
    pub(crate) host_nonce: Option<Nonce>,
    pub(crate) peer_nonce: Nonce,
    /// The relative sequence number after the last that each has sent in order.
    pub(crate) host_next: i64,
    pub(crate) peer_next: i64,
    host_maps: Vec<Known>,
    peer_maps: Vec<Known>,
    /// The last timestamp of the host.
    pub(crate) host_clock: u32,
}

/// A mapping in relative numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    subflow: i64,
    data: i64,
    length: i64,
}

/// Everything known.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) lines: Vec<Line>,
    /// Keys whose initial data sequence number the script chose.
    pub(crate) pinned: Vec<(Key, Dsn)>,
}

/// Mappings remembered of one subflow and direction.
const MAX_MAPS: usize = 1024;

impl World {
    /// The latest subflow called `name`.
    pub(crate) fn line(&self, name: &str) -> Option<usize> {
        self.lines.iter().rposition(|line| line.name == name)
    }

    /// The subflow of a segment that the host sent.
    pub(crate) fn line_of(&self, flow: &FlowKey) -> Option<usize> {
        self.lines.iter().rposition(|line| {
            let port = line.host.1.is_none_or(|port| port == flow.src_port);
            line.peer == flow.destination() && line.host.0 == flow.src && port
        })
    }

    /// The name of the subflow with these addresses, as the host sees them.
    pub(crate) fn named(&self, local: SocketAddr, remote: SocketAddr) -> Option<usize> {
        self.line_of(&FlowKey::new(local, remote))
    }

    pub(crate) fn conversation(&self, line: usize) -> &Conversation {
        &self.conversations[self.lines[line].conversation]
    }

    /// The key of a side, if it is known.
    pub(crate) fn key(&self, line: usize, side: Side) -> Option<Key> {
        let conversation = self.conversation(line);
        match side {
            Side::Host => conversation.host_key,
            Side::Peer => Some(conversation.peer_key),
        }
    }

    pub(crate) fn idsn(&self, line: usize, side: Side) -> Option<Dsn> {
        let key = self.key(line, side)?;
        let pinned = self.pinned.iter().rev().find(|(pinned, _)| *pinned == key).map(|(_, idsn)| *idsn);
        Some(pinned.unwrap_or_else(|| key.idsn()))
    }

    /// Position of a data sequence number of `side`: 1 is the first byte. `None` if the key is unknown.
    pub(crate) fn relative(&self, line: usize, side: Side, number: DataSeq) -> Option<i64> {
        let idsn = self.idsn(line, side)?;
        Some(match number {
            DataSeq::Long(dsn) => dsn.distance(idsn),
            DataSeq::Short(low) => i64::from(low.wrapping_sub(idsn.low()) as i32),
        })
    }

    /// Position of the data that a segment of `side` carries at relative subflow sequence number `seq`: by the mapping
    /// that covers it, else by the last one before it (an infinite mapping), else as plain TCP.
    pub(crate) fn data_at(&self, line: usize, side: Side, seq: i64) -> i64 {
        let line = &self.lines[line];
        let maps = if side == Side::Host { &line.host_maps } else { &line.peer_maps };
        let covers = |map: &&Known| (map.subflow..map.subflow + map.length).contains(&seq);
        let before = maps.iter().rev().filter(|map| map.subflow <= seq).max_by_key(|map| map.subflow);
        maps.iter().rev().find(covers).or(before).map_or(seq, |map| map.data.wrapping_add(seq - map.subflow))
    }

    /// Takes in what a segment of `side` says.
    pub(crate) fn note(&mut self, at: usize, side: Side, segment: &Segment) {
        let syn = segment.flags.has(Flags::SYN);
        let capable = segment.options.mptcp().iter().find_map(|option| match option {
            MpOption::Capable(capable) => Some(*capable),
            _ => None,
        });
        let line = &mut self.lines[at];
        if side == Side::Host {
            line.host.1 = Some(segment.flow.src_port);
            if syn {
                line.host_isn = Some(segment.seq);
                line.host_next = 0;
            }
            if let Some(timestamps) = segment.options.timestamps() {
                line.host_clock = timestamps.value;
            }
            for option in segment.options.mptcp() {
                match option {
                    MpOption::JoinSyn(join) => line.host_nonce = Some(join.nonce),
                    MpOption::JoinSynAck(join) => line.host_nonce = Some(join.nonce),
                    _ => {}
                }
            }
            if let Some(key) = capable.and_then(|capable| capable.sender_key) {
                self.conversations[line.conversation].host_key.get_or_insert(key);
            }
        }
        let line = &mut self.lines[at];
        let Some(isn) = (if side == Side::Host { line.host_isn } else { Some(line.peer_isn) }) else { return };
        let seq = i64::from(segment.seq.distance(isn));
        let next = if side == Side::Host { &mut line.host_next } else { &mut line.peer_next };
        if seq <= *next {
            *next = (*next).max(seq + segment.sequence_length() as i64);
        }
        let mut maps = Vec::new();
        if let Some(map) = segment.options.dss().and_then(|dss| dss.map) {
            let fin = i64::from(segment.options.dss().is_some_and(|dss| dss.data_fin));
            if let Some(data) = self.relative(at, side, map.dsn) {
                let length = (i64::from(map.length) - fin).max(0);
                maps.push(Known { subflow: i64::from(map.subflow_seq as i32), data, length });
                // A lone DATA_FIN maps nothing.
                if fin == 1 && length == 0 {
                    maps.pop();
                }
            }
        }
        if let Some((length, _)) = capable.and_then(|capable| capable.data) {
            maps.push(Known { subflow: 1, data: 1, length: i64::from(length) });
        }
        let line = &mut self.lines[at];
        let known = if side == Side::Host { &mut line.host_maps } else { &mut line.peer_maps };
        for map in maps {
            if !known.contains(&map) && known.len() < MAX_MAPS {
                known.push(map);
            }
        }
    }
}

impl Line {
    pub(crate) fn new(
        name: String,
        host: (IpAddr, Option<u16>),
        peer: SocketAddr,
        conversation: usize,
        n: usize,
    ) -> Self {
        Line {
            name,
            host,
            peer,
            conversation,
            host_isn: None,
            // Any numbers will do; a wrap on the way shows more than none.
            peer_isn: SubflowSeq::new(0xffff_fe00_u32.wrapping_add((n as u32).wrapping_mul(0x10_0000))),
            host_nonce: None,
            peer_nonce: Nonce(0x0a0b_0c00_u32.wrapping_add(n as u32)),
            host_next: 0,
            peer_next: 0,
            host_maps: Vec::new(),
            peer_maps: Vec::new(),
            host_clock: 0,
        }
    }

    pub(crate) fn isn(&self, side: Side) -> Option<SubflowSeq> {
        match side {
            Side::Host => self.host_isn,
            Side::Peer => Some(self.peer_isn),
        }
    }

    /// The flow as the peer sends.
    pub(crate) fn flow(&self) -> Option<FlowKey> {
        self.host.1.map(|port| FlowKey::new(self.peer, SocketAddr::new(self.host.0, port)))
    }
}
