//! One MPTCP connection: its keys, its subflows, a stream in each direction.

use crate::stream::Stream;
use crate::version::Version;
use anabranch_units::{Key, Token};
use anabranch_wire::Dss;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Side 0 opened it, if that is known.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// By number of subflow: where in the list of flows.
    pub flows: Vec<usize>,
    /// What each side sends.
    pub streams: [Stream; 2],
    pub keys: [Option<Key>; 2],
    /// Known from the keys, or from an MP_JOIN.
    pub tokens: [Option<Token>; 2],
    /// As negotiated.
    pub version: Option<u8>,
    /// Whether each side asked for DSS checksums.
    pub checksums: [Option<bool>; 2],
    /// True if side 0 is known to have opened it.
    pub opener_known: bool,
    /// Keys that contradict those known.
    pub key_conflicts: u64,
    /// Another connection turned out to be the same: all of this one is there.
    pub merged: bool,
    addresses: BTreeSet<IpAddr>,
}

impl Connection {
    /// Nothing is known.
    pub fn new() -> Self {
        Connection {
            flows: Vec::new(),
            streams: [Stream::new(), Stream::new()],
            keys: [None; 2],
            tokens: [None; 2],
            version: None,
            checksums: [None; 2],
            opener_known: false,
            key_conflicts: 0,
            merged: false,
            addresses: BTreeSet::new(),
        }
    }

    /// How to hash; version 1 unless the handshake said otherwise.
    pub fn hashing(&self) -> Version {
        Version::of(self.version.unwrap_or(1))
    }

    /// A key is known, and with it a token and where a stream begins. Answers the token if it is new.
    pub fn set_key(&mut self, side: usize, key: Key) -> Option<Token> {
        match self.keys[side] {
            Some(known) if known == key => return None,
            Some(_) => {
                self.key_conflicts += 1;
                return None;
            }
            None => {}
        }
        let version = self.hashing();
        self.keys[side] = Some(key);
        self.tokens[side] = Some(version.token(key));
        self.streams[side].begin(version.idsn(key));
        self.tokens[side]
    }

    /// Adds the addresses of a subflow to those that show kinship.
    pub fn add_addresses(&mut self, addresses: [IpAddr; 2]) {
        if self.addresses.len() < MOST_ADDRESSES {
            self.addresses.extend(addresses);
        }
    }

    /// True if no data sequence number of it is known.
    pub fn is_unplaced(&self) -> bool {
        !self.streams.iter().any(Stream::is_placed)
    }

    /// Whether a segment from `side` of an unknown flow can be of this connection, by its numbers. 64-bit numbers so near
    /// each other are no chance; of 32-bit ones, two must fit, or one and an address.
    pub fn is_kin(&self, side: usize, dss: &Dss, addresses: [IpAddr; 2]) -> bool {
        let mut weight = 0;
        let numbers = [(side, dss.map.filter(|map| map.length > 0).map(|map| map.dsn)), (1 - side, dss.data_ack)];
        for (side, number) in numbers {
            let Some(number) = number else { continue };
            let Some(distance) = self.streams[side].distance(number) else { continue };
            let (near, worth) = match number {
                anabranch_wire::DataSeq::Long(_) => (NEAR_LONG, 2),
                anabranch_wire::DataSeq::Short(_) => (NEAR_SHORT, 1),
            };
            if distance > near {
                return false;
            }
            weight += worth;
        }
        let shared = addresses.iter().any(|address| self.addresses.contains(address));
        weight > 0 && weight + u32::from(shared) >= 2
    }
}

const NEAR_LONG: u64 = 1 << 32;
/// Sixteen times the largest window in common use.
const NEAR_SHORT: u64 = 1 << 24;
const MOST_ADDRESSES: usize = 64;
