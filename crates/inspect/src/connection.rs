//! One MPTCP connection: its keys, its subflows, a stream in each direction.

use crate::stream::Stream;
use crate::version::Version;
use anabranch_units::{Dsn, Key, Token};
use anabranch_wire::Dss;

/// Side 0 opened it, if that is known.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Index in the list of flows, by number of subflow.
    pub flows: Vec<usize>,
    /// Data stream of each side.
    pub streams: [Stream; 2],
    pub keys: [Option<Key>; 2],
    /// Known from the keys, or from an MP_JOIN.
    pub tokens: [Option<Token>; 2],
    /// Version negotiated.
    pub version: Option<u8>,
    /// True if the side asked for DSS checksums.
    pub checksums: [Option<bool>; 2],
    /// True if side 0 is known to have opened it.
    pub opener_known: bool,
    /// Keys that contradict those known.
    pub key_conflicts: u64,
    /// Another connection turned out to be the same: all of this one is there.
    pub merged: bool,
}

impl Connection {
    /// Creates an empty connection.
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
        }
    }

    /// Returns the version that determines the hash; version 1 unless the handshake negotiated another.
    pub fn hashing(&self) -> Version {
        Version::of(self.version.unwrap_or(1))
    }

    /// Returns the initial data sequence numbers of both sides, as far as their keys are known.
    pub fn idsns(&self) -> [Option<Dsn>; 2] {
        self.keys.map(|key| key.map(|key| self.hashing().idsn(key)))
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

    /// True while it may turn out to be a part of another.
    pub fn is_unsettled(&self) -> bool {
        !self.streams.iter().any(Stream::is_settled)
    }

    /// Compares the numbers of a segment from `side` of an unknown flow with this connection's. One 64-bit number near
    /// the stream's suffices; of 32-bit numbers, two must match.
    pub fn is_kin(&self, side: usize, dss: &Dss) -> bool {
        let (mut weight, mut long) = (0, false);
        let numbers = [(side, dss.map.filter(|map| map.length > 0).map(|map| map.dsn)), (1 - side, dss.data_ack)];
        for (side, number) in numbers {
            let Some(number) = number else { continue };
            let Some(distance) = self.streams[side].distance(number) else { continue };
            let is_long = self.streams[side].knows_whole(number);
            if distance > if is_long { NEAR_LONG } else { NEAR_SHORT } {
                return false;
            }
            weight += 1;
            long |= is_long;
        }
        // A single 32-bit number matches by coincidence in one of 128 connections.
        long || weight >= 2
    }
}

const NEAR_LONG: u64 = 1 << 32;
/// Sixteen times the largest window in common use.
const NEAR_SHORT: u64 = 1 << 24;
