//! TCP options: the ones of every segment inline, the rare ones behind one pointer.

use crate::codec::mptcp;
use crate::{Dss, MpOption};
use anabranch_units::SubflowSeq;

/// All options of one segment.
///
/// Timestamps, SACK and DSS are in nearly every segment and cost no allocation; what only handshakes and control
/// messages carry sits in boxes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgment blocks (RFC 2018).
    pub sack: SackBlocks,
    /// Data sequence signal (RFC 8684 §3.3).
    pub dss: Option<Dss>,
    /// Options that only a SYN carries.
    pub handshake: Option<Box<Handshake>>,
    /// MPTCP options other than DSS, in the order in which they stand in the header.
    pub mptcp: Option<Box<Vec<MpOption>>>,
    /// Options that the codec does not understand.
    pub foreign: Option<Box<Foreign>>,
}

/// Options kept as they came, so that they can be passed on and looked at. The engine ignores them, one experiment of
/// its own apart ([`Options::has_experiment`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Foreign {
    /// Options of unknown kinds, options whose length contradicts their content, and repetitions of known ones.
    pub unknown: Vec<UnknownOption>,
    /// The rest of the header from an option on whose length is below two or leads beyond the header; empty if there is
    /// none. Nothing behind it can be read.
    pub broken: Vec<u8>,
}

/// An option with a length that is not understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownOption {
    /// Its kind; neither 0 nor 1, which have no length.
    pub kind: u8,
    /// Bytes behind kind and length.
    pub data: Vec<u8>,
}

/// Options that only a SYN may carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handshake {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// Selective acknowledgment permitted (RFC 2018 §2).
    pub sack_permitted: bool,
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's clock as last received.
    pub echo: u32,
}

/// A received range, `start` included, `end` not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: SubflowSeq,
    /// The sequence number after its last.
    pub end: SubflowSeq,
}

/// Up to four SACK blocks, the most recent first (RFC 2018 §4); a first block at or below the acknowledgment number, or
/// inside the second, is a D-SACK (RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// Number of blocks that 40 bytes of options can hold.
    pub const MAX: usize = 4;

    /// Appends a block; false if there is no room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let len = usize::from(self.len);
        if len == Self::MAX {
            return false;
        }
        self.blocks[len] = block;
        self.len += 1;
        true
    }

    /// The blocks in order.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn wire_length(&self) -> u64 {
        if self.len == 0 { 0 } else { 2 + 8 * u64::from(self.len) }
    }
}

impl Options {
    /// Takes all out.
    #[inline]
    pub fn clear(&mut self) {
        (self.timestamps, self.sack, self.dss) = (None, SackBlocks::default(), None);
        if self.handshake.is_some() || self.mptcp.is_some() || self.foreign.is_some() {
            (self.handshake, self.mptcp, self.foreign) = (None, None, None);
        }
    }

    /// Bytes the options take in the header: each padded to a multiple of four as every stack in use does, or, where
    /// that would exceed 40 bytes, without padding between them.
    pub fn wire_length(&self) -> u64 {
        self.layout().0
    }

    /// Bytes the options take, and whether padding between them is left out.
    #[inline]
    pub(crate) fn layout(&self) -> (u64, bool) {
        let padded = self.length(|length| length.next_multiple_of(4), 2);
        if padded <= OPTION_SPACE {
            (padded, false)
        } else {
            (self.length(|length| length, 0).next_multiple_of(4), true)
        }
    }

    /// The sum of all lengths, each rounded as `round` says. On a SYN with timestamps their `shared` bytes of padding
    /// hold SACK-permitted.
    #[inline]
    fn length(&self, round: impl Fn(u64) -> u64, shared: u64) -> u64 {
        let mut length = 0;
        if self.timestamps.is_some() {
            length += round(10);
        }
        length += round(self.sack.wire_length());
        if let Some(dss) = &self.dss {
            length += round(dss.wire_length());
        }
        if let Some(handshake) = &self.handshake {
            length += if handshake.mss.is_some() { 4 } else { 0 };
            length += if handshake.window_scale.is_some() { round(3) } else { 0 };
            length += match (handshake.sack_permitted, self.timestamps.is_some()) {
                (true, true) => 2 - shared,
                (true, false) => round(2),
                (false, _) => 0,
            };
        }
        for option in self.mptcp() {
            length += round(option.wire_length());
        }
        if let Some(foreign) = &self.foreign {
            length += foreign.unknown.iter().map(|option| round(2 + option.data.len() as u64)).sum::<u64>();
            length += round(foreign.broken.len() as u64);
        }
        length
    }

    /// The MPTCP options other than DSS.
    pub fn mptcp(&self) -> &[MpOption] {
        self.mptcp.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Adds an MPTCP option after those already there.
    pub fn push_mptcp(&mut self, option: MpOption) {
        self.mptcp.get_or_insert_default().push(option);
    }

    /// Options that are not understood.
    pub fn unknown(&self) -> &[UnknownOption] {
        self.foreign.as_deref().map_or(&[], |foreign| &foreign.unknown)
    }

    /// The rest of the header from a broken option on; empty if all were whole.
    pub fn broken(&self) -> &[u8] {
        self.foreign.as_deref().map_or(&[], |foreign| &foreign.broken)
    }

    /// Adds an experimental option (RFC 6994 §3.1) that says nothing but which experiment it is.
    pub fn push_experiment(&mut self, experiment: u32) {
        self.push_unknown(EXPERIMENTAL, &experiment.to_be_bytes());
    }

    /// True if the peer takes part in this experiment.
    pub fn has_experiment(&self, experiment: u32) -> bool {
        self.unknown().iter().any(|option| option.kind == EXPERIMENTAL && option.data == experiment.to_be_bytes())
    }

    #[cold]
    pub(crate) fn push_unknown(&mut self, kind: u8, data: &[u8]) {
        self.foreign.get_or_insert_default().unknown.push(UnknownOption { kind, data: data.to_vec() });
    }

    #[cold]
    pub(crate) fn set_broken(&mut self, rest: &[u8]) {
        self.foreign.get_or_insert_default().broken = rest.to_vec();
    }

    /// True if any MPTCP option is there that is understood.
    pub fn has_mptcp(&self) -> bool {
        self.dss.is_some() || self.mptcp.is_some()
    }

    /// Takes every option of MPTCP's kind out, understood or not, as some middleboxes do.
    pub fn strip_mptcp(&mut self) {
        self.dss = None;
        self.mptcp = None;
        if let Some(foreign) = &mut self.foreign {
            foreign.unknown.retain(|option| option.kind != mptcp::KIND);
            if foreign.unknown.is_empty() && foreign.broken.is_empty() {
                self.foreign = None;
            }
        }
    }
}

/// RFC 4727 §4.
const EXPERIMENTAL: u8 = 253;
/// Space for options in a TCP header, in bytes (RFC 9293 §3.1: the data offset has four bits).
pub(crate) const OPTION_SPACE: u64 = 40;
