//! TCP options: the ones of every segment inline, the rare ones behind one pointer.

use crate::codec::mptcp;
use crate::{DataSeq, Dss, Map, MpOption};
use anabranch_units::{Dsn, SubflowSeq};
use std::fmt;

/// All options of one segment, in 48 bytes.
///
/// Timestamps, DSS and two SACK blocks lie in it and cost no allocation. What only handshakes and control messages
/// carry lies in one box, and so do SACK blocks beyond two or beside a mapping: 40 bytes of options seldom have room
/// for those.
#[derive(Clone, Default)]
pub struct Options {
    /// DATA_ACK, if [`There::ACK`]; all of these are zero where they are not there.
    data_ack: u64,
    /// The DSN of the mapping, if [`There::MAP`]; otherwise the first of the SACK blocks that lie here.
    first: u64,
    /// Subflow sequence number, length and checksum of the mapping; otherwise the second SACK block.
    second: u64,
    timestamps: Timestamps,
    there: There,
    rare: Option<Box<Rare>>,
}

/// Options that few segments carry.
#[derive(Clone, PartialEq, Eq, Default)]
struct Rare {
    /// All SACK blocks, unless they lie in the segment.
    sack: SackBlocks,
    handshake: Handshake,
    mptcp: Vec<MpOption>,
    foreign: Foreign,
}

/// None of them.
static NOTHING_RARE: Rare = Rare {
    sack: SackBlocks { blocks: [SackBlock { start: SubflowSeq::new(0), end: SubflowSeq::new(0) }; 4], len: 0 },
    handshake: Handshake { mss: None, window_scale: None, sack_permitted: false },
    mptcp: Vec::new(),
    foreign: Foreign { unknown: Vec::new(), broken: Vec::new() },
};

/// Frequent options that are there, and their form.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct There(u16);

impl There {
    const TIMESTAMPS: u16 = 1;
    const DSS: u16 = 1 << 1;
    const ACK: u16 = 1 << 2;
    const ACK_LONG: u16 = 1 << 3;
    const MAP: u16 = 1 << 4;
    const DSN_LONG: u16 = 1 << 5;
    const CHECKSUM: u16 = 1 << 6;
    const DATA_FIN: u16 = 1 << 7;
    /// All that a DSS is made of.
    const WHOLE_DSS: u16 = 0xfe;
    /// One SACK block that lies in the segment; two of them are twice this.
    const BLOCK: u16 = 1 << 8;

    #[inline]
    const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    /// SACK blocks that lie in the segment.
    #[inline]
    const fn blocks(self) -> u16 {
        self.0 / There::BLOCK
    }
}

/// Options kept as they came, so that they can be passed on and looked at. The engine ignores them, but for the
/// counters of AccECN ([`Options::byte_counters`]) and one experiment of its own ([`Options::has_experiment`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Foreign {
    /// Options of unknown kinds, options whose length contradicts their content, and repetitions of known ones.
    pub unknown: Vec<UnknownOption>,
    /// The rest of the header from an option on whose length is below two or leads beyond the header; empty if there is
    /// none. Nothing behind it can be read.
    pub broken: Vec<u8>,
}

impl Foreign {
    /// Returns true if all options were understood.
    pub fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.broken.is_empty()
    }
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
}

impl SackBlock {
    #[inline]
    fn packed(self) -> u64 {
        u64::from(self.start.get()) << 32 | u64::from(self.end.get())
    }

    #[inline]
    fn unpacked(packed: u64) -> Self {
        SackBlock { start: SubflowSeq::new((packed >> 32) as u32), end: SubflowSeq::new(packed as u32) }
    }
}

impl DataSeq {
    /// Its bits, and whether it is whole.
    #[inline]
    const fn packed(self) -> (u64, bool) {
        match self {
            DataSeq::Short(low) => (low as u64, false),
            DataSeq::Long(dsn) => (dsn.get(), true),
        }
    }

    #[inline]
    const fn unpacked(packed: u64, long: bool) -> Self {
        if long { DataSeq::Long(Dsn::new(packed)) } else { DataSeq::Short(packed as u32) }
    }
}

impl Options {
    /// Takes all out.
    #[inline]
    pub fn clear(&mut self) {
        (self.data_ack, self.first, self.second) = (0, 0, 0);
        (self.timestamps, self.there) = (Timestamps::default(), There::default());
        if self.rare.is_some() {
            self.rare = None;
        }
    }

    /// Timestamps (RFC 7323 §3).
    #[inline]
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.there.has(There::TIMESTAMPS).then_some(self.timestamps)
    }

    /// Puts timestamps in, or takes them out.
    #[inline]
    pub fn set_timestamps(&mut self, timestamps: Option<Timestamps>) {
        let bit = if timestamps.is_some() { There::TIMESTAMPS } else { 0 };
        self.there.0 = self.there.0 & !There::TIMESTAMPS | bit;
        self.timestamps = timestamps.unwrap_or_default();
    }

    /// Data sequence signal (RFC 8684 §3.3).
    #[inline]
    pub fn dss(&self) -> Option<Dss> {
        let there = self.there;
        if !there.has(There::DSS) {
            return None;
        }
        let map = Map {
            dsn: DataSeq::unpacked(self.first, there.has(There::DSN_LONG)),
            subflow_seq: (self.second >> 32) as u32,
            length: (self.second >> 16) as u16,
            checksum: there.has(There::CHECKSUM).then_some(self.second as u16),
        };
        Some(Dss {
            data_ack: there.has(There::ACK).then(|| DataSeq::unpacked(self.data_ack, there.has(There::ACK_LONG))),
            map: there.has(There::MAP).then_some(map),
            data_fin: there.has(There::DATA_FIN),
        })
    }

    /// Returns true if there is a data sequence signal.
    #[inline]
    pub const fn has_dss(&self) -> bool {
        self.there.has(There::DSS)
    }

    /// Puts a data sequence signal in, or takes it out.
    #[inline]
    pub fn set_dss(&mut self, dss: Option<Dss>) {
        if self.there.blocks() > 0 || self.there.has(There::MAP) {
            return self.replace_dss(dss);
        }
        let mut there = self.there.0 & !There::WHOLE_DSS;
        self.data_ack = 0;
        if let Some(Dss { data_ack, map, data_fin }) = dss {
            there |= There::DSS | if data_fin { There::DATA_FIN } else { 0 };
            if let Some(ack) = data_ack {
                let (packed, long) = ack.packed();
                self.data_ack = packed;
                there |= There::ACK | if long { There::ACK_LONG } else { 0 };
            }
            if let Some(Map { dsn, subflow_seq, length, checksum }) = map {
                let (packed, long) = dsn.packed();
                let sum = checksum.unwrap_or_default();
                self.first = packed;
                self.second = u64::from(subflow_seq) << 32 | u64::from(length) << 16 | u64::from(sum);
                there |= There::MAP | if long { There::DSN_LONG } else { 0 };
                there |= if checksum.is_some() { There::CHECKSUM } else { 0 };
            }
        }
        self.there.0 = there;
    }

    /// The same where a mapping is there, or SACK blocks lie where it would.
    #[cold]
    fn replace_dss(&mut self, dss: Option<Dss>) {
        let blocks = self.take_sack();
        (self.first, self.second) = (0, 0);
        self.there.0 &= !There::WHOLE_DSS;
        self.set_dss(dss);
        self.set_sack(blocks);
    }

    /// Selective acknowledgment blocks (RFC 2018).
    #[inline]
    pub fn sack(&self) -> SackBlocks {
        let mut blocks = self.rare().sack;
        for packed in [self.first, self.second].iter().take(self.there.blocks().into()) {
            blocks.push(SackBlock::unpacked(*packed));
        }
        blocks
    }

    /// Returns true if there is a block of selective acknowledgment.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.there.blocks() > 0 || !self.rare().sack.is_empty()
    }

    /// Puts blocks of selective acknowledgment in the place of those that are there.
    #[inline]
    pub fn set_sack(&mut self, blocks: SackBlocks) {
        if self.has_sack() {
            self.take_sack();
        }
        for block in blocks.as_slice() {
            self.push_sack(*block);
        }
    }

    /// Appends a block of selective acknowledgment; false if there is no room.
    pub fn push_sack(&mut self, block: SackBlock) -> bool {
        let here = !self.there.has(There::MAP) && self.rare().sack.is_empty();
        match self.there.blocks() {
            0 if here => self.first = block.packed(),
            1 if here => self.second = block.packed(),
            _ => {
                let mut blocks = self.take_sack();
                let taken = blocks.push(block);
                self.rare_mut().sack = blocks;
                return taken;
            }
        }
        self.there.0 += There::BLOCK;
        true
    }

    /// Takes all blocks out.
    fn take_sack(&mut self) -> SackBlocks {
        let blocks = self.sack();
        if self.there.blocks() > 0 {
            (self.first, self.second) = (0, 0);
            self.there.0 %= There::BLOCK;
        } else if let Some(rare) = &mut self.rare {
            rare.sack = SackBlocks::default();
        }
        blocks
    }

    #[inline]
    fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    #[inline]
    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns the options that only a SYN carries.
    #[inline]
    pub fn handshake(&self) -> Handshake {
        self.rare().handshake
    }

    /// The same, to be changed.
    #[inline]
    pub fn handshake_mut(&mut self) -> &mut Handshake {
        &mut self.rare_mut().handshake
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
        let timestamps = self.there.has(There::TIMESTAMPS);
        let mut length = if timestamps { round(10) } else { 0 };
        if self.has_dss() {
            length += round(self.dss().map_or(0, |dss| dss.wire_length()));
        }
        let blocks = u64::from(self.there.blocks()) + self.rare().sack.as_slice().len() as u64;
        length += if blocks > 0 { round(2 + 8 * blocks) } else { 0 };
        let Some(rare) = &self.rare else { return length };
        length += if rare.handshake.mss.is_some() { 4 } else { 0 };
        length += if rare.handshake.window_scale.is_some() { round(3) } else { 0 };
        length += match (rare.handshake.sack_permitted, timestamps) {
            (true, true) => 2 - shared,
            (true, false) => round(2),
            (false, _) => 0,
        };
        for option in &rare.mptcp {
            length += round(option.wire_length());
        }
        length += rare.foreign.unknown.iter().map(|option| round(2 + option.data.len() as u64)).sum::<u64>();
        length + round(rare.foreign.broken.len() as u64)
    }

    /// The MPTCP options other than DSS, in the order in which they stand in the header.
    #[inline]
    pub fn mptcp(&self) -> &[MpOption] {
        &self.rare().mptcp
    }

    /// The same, to be changed.
    #[inline]
    pub fn mptcp_mut(&mut self) -> &mut [MpOption] {
        self.rare.as_deref_mut().map_or(&mut [], |rare| &mut rare.mptcp)
    }

    /// Adds an MPTCP option after those already there.
    pub fn push_mptcp(&mut self, option: MpOption) {
        self.rare_mut().mptcp.push(option);
    }

    /// Takes the MPTCP options other than DSS out that `keep` does not want.
    pub fn retain_mptcp(&mut self, keep: impl FnMut(&MpOption) -> bool) {
        if let Some(rare) = &mut self.rare {
            rare.mptcp.retain(keep);
        }
    }

    /// Options that are not understood.
    #[inline]
    pub fn foreign(&self) -> &Foreign {
        &self.rare().foreign
    }

    /// The same, to be changed.
    pub fn foreign_mut(&mut self) -> &mut Foreign {
        &mut self.rare_mut().foreign
    }

    /// Options of unknown kinds.
    pub fn unknown(&self) -> &[UnknownOption] {
        &self.foreign().unknown
    }

    /// The rest of the header from a broken option on; empty if all were whole.
    pub fn broken(&self) -> &[u8] {
        &self.foreign().broken
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
        self.foreign_mut().unknown.push(UnknownOption { kind, data: data.to_vec() });
    }

    #[cold]
    pub(crate) fn set_broken(&mut self, rest: &[u8]) {
        self.foreign_mut().broken = rest.to_vec();
    }

    /// True if any MPTCP option is there that is understood.
    #[inline]
    pub fn has_mptcp(&self) -> bool {
        self.has_dss() || !self.mptcp().is_empty()
    }

    /// Takes every option of MPTCP's kind out, understood or not, as some middleboxes do.
    pub fn strip_mptcp(&mut self) {
        self.set_dss(None);
        if let Some(rare) = &mut self.rare {
            rare.mptcp.clear();
            rare.foreign.unknown.retain(|option| option.kind != mptcp::KIND);
        }
    }
}

/// Two are equal if they say the same, wherever their SACK blocks lie.
impl PartialEq for Options {
    fn eq(&self, other: &Options) -> bool {
        let all = |it: &Options| (it.timestamps(), it.dss(), it.sack(), it.handshake());
        all(self) == all(other) && self.mptcp() == other.mptcp() && self.foreign() == other.foreign()
    }
}

impl Eq for Options {}

/// Shows what is there.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Options");
        if let Some(timestamps) = self.timestamps() {
            out.field("timestamps", &timestamps);
        }
        if self.has_sack() {
            out.field("sack", &self.sack().as_slice());
        }
        if let Some(dss) = self.dss() {
            out.field("dss", &dss);
        }
        if self.handshake() != Handshake::default() {
            out.field("handshake", &self.handshake());
        }
        if !self.mptcp().is_empty() {
            out.field("mptcp", &self.mptcp());
        }
        if !self.foreign().is_empty() {
            out.field("foreign", self.foreign());
        }
        out.finish()
    }
}

/// RFC 4727 §4.
const EXPERIMENTAL: u8 = 253;
/// Space for options in a TCP header, in bytes (RFC 9293 §3.1: the data offset has four bits).
pub(crate) const OPTION_SPACE: u64 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(count: u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for n in 0..count {
            assert!(blocks.push(SackBlock { start: SubflowSeq::new(10 * n + 1), end: SubflowSeq::new(10 * n + 7) }));
        }
        blocks
    }

    fn mapped(dsn: DataSeq) -> Dss {
        Dss { map: Some(Map { dsn, subflow_seq: u32::MAX, length: 9, checksum: Some(7) }), ..Dss::default() }
    }

    /// Two blocks cost no allocation; those of a segment with a mapping, and more than two, lie in the box.
    #[test]
    fn a_mapping_takes_the_place_of_blocks_and_none_is_lost() {
        let mut options = Options::default();
        options.set_sack(blocks(2));
        assert!(options.rare.is_none(), "as many as fit beside timestamps and a DATA_ACK");
        let map = mapped(DataSeq::Long(Dsn::new(u64::MAX)));
        options.set_dss(Some(map));
        assert_eq!((options.sack(), options.dss(), options.rare.is_some()), (blocks(2), Some(map), true));
        options.set_dss(None);
        let mut again = Options::default();
        again.set_sack(blocks(2));
        assert_eq!((&options, options.dss()), (&again, None), "equal, wherever the blocks lie");
        assert!((2..4).all(|n| options.push_sack(blocks(n + 1).as_slice()[n as usize])));
        assert!(!options.push_sack(SackBlock::default()), "a fifth");
        assert_eq!(options.sack(), blocks(4));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Sets fields in any order; the last value of each is there, and clearing leaves nothing.
        #[test]
        fn each_field_keeps_its_own_value(steps in prop::collection::vec((0u8..4, 0u32..5, any::<bool>()), 0..12)) {
            let mut options = Options::default();
            let (mut timestamps, mut sack, mut dss, mut mss) = (None, SackBlocks::default(), None, None);
            for (field, n, long) in steps {
                let seq = if long { DataSeq::Long(Dsn::new(u64::from(n) << 40)) } else { DataSeq::Short(n) };
                match field {
                    0 => timestamps = (n > 0).then_some(Timestamps { value: n, echo: !n }),
                    1 => sack = blocks(n),
                    2 => {
                        let with_ack = Dss { data_ack: Some(seq), data_fin: n == 2, ..Dss::default() };
                        let both = Dss { data_ack: Some(seq), ..mapped(seq) };
                        let forms = [None, Some(mapped(seq)), Some(with_ack), Some(both), Some(Dss::default())];
                        dss = forms[n as usize];
                    }
                    _ => mss = (n > 0).then_some(n as u16),
                }
                match field {
                    0 => options.set_timestamps(timestamps),
                    1 => options.set_sack(sack),
                    2 => options.set_dss(dss),
                    _ => options.handshake_mut().mss = mss,
                }
                let seen = (options.timestamps(), options.sack(), options.dss(), options.handshake().mss);
                prop_assert_eq!(seen, (timestamps, sack, dss, mss));
                prop_assert_eq!((options.has_sack(), options.has_dss()), (!sack.is_empty(), dss.is_some()));
            }
            options.clear();
            prop_assert_eq!(&options, &Options::default());
            prop_assert_eq!(options.wire_length(), 0);
        }
    }
}
