//! TCP options: the ones of every segment inline, the rare ones behind one pointer.

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
    /// What only a SYN carries.
    pub handshake: Option<Box<Handshake>>,
    /// MPTCP options other than DSS, in the order in which they stand in the header.
    pub mptcp: Option<Box<Vec<MpOption>>>,
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
    /// What 40 bytes of options can hold.
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
    /// Bytes the options take in the header, each padded to a multiple of four as every stack in use does.
    pub fn wire_length(&self) -> u64 {
        let mut length = 0;
        if self.timestamps.is_some() {
            length += padded(10);
        }
        length += padded(self.sack.wire_length());
        if let Some(dss) = &self.dss {
            length += padded(dss.wire_length());
        }
        if let Some(handshake) = &self.handshake {
            length += padded(if handshake.mss.is_some() { 4 } else { 0 });
            length += padded(if handshake.window_scale.is_some() { 3 } else { 0 });
            // SACK-permitted shares the two padding bytes of the timestamps when both are there.
            length += if handshake.sack_permitted && self.timestamps.is_none() { padded(2) } else { 0 };
        }
        for option in self.mptcp.iter().flat_map(|options| options.iter()) {
            length += padded(option.wire_length());
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

    /// True if any MPTCP option is there.
    pub fn has_mptcp(&self) -> bool {
        self.dss.is_some() || self.mptcp.is_some()
    }

    /// Takes every MPTCP option out, as some middleboxes do.
    pub fn strip_mptcp(&mut self) {
        self.dss = None;
        self.mptcp = None;
    }
}

const fn padded(length: u64) -> u64 {
    length.next_multiple_of(4)
}
