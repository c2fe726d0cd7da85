//! One TCP connection: a subflow of something, or plain TCP.

use crate::mapping::Mappings;
use crate::offer::Offer;
use crate::sequence::{Count, Sequence};
use crate::signal::Signal;
use anabranch_units::{Duration, Instant, Key, SubflowSeq};
use anabranch_wire::{FlowKey, Map, ResetReason};
use std::ops::Range;

/// Side 0 is the source of `key`.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub key: FlowKey,
    /// The side that sent the SYN, as far as that can be known.
    pub opener: Option<usize>,
    /// The two sides of the flow.
    pub sides: [Side; 2],
    pub shake: Handshake,
    pub first_at: Instant,
    pub last_at: Instant,
    /// The connection this is a subflow of.
    pub member: Option<Member>,
    /// The keys of the two sides.
    pub keys: [Option<Key>; 2],
    pub signals: Vec<Signal>,
    /// Signals left out of `signals`.
    pub more_signals: u64,
    /// Packets that were captured more than once.
    pub copies: u64,
    /// Packets that may have been captured twice or sent twice.
    pub undecided: u64,
    /// Data packets among these.
    pub undecided_data: Count,
    /// DSS options seen before the connection was known.
    pub dss_tries: u32,
    /// True if a later SYN uses the same addresses and ports.
    pub replaced: bool,
}

/// Membership of a flow in a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub connection: usize,
    /// Number of the subflow in its connection.
    pub subflow: u32,
    /// True if side 0 here is side 1 of the connection.
    pub swapped: bool,
    /// Evidence of the membership.
    pub by: By,
}

impl Member {
    /// The side of the connection that `side` of the flow is.
    pub fn side(self, side: usize) -> usize {
        side ^ usize::from(self.swapped)
    }
}

/// Evidence that a subflow belongs to its connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum By {
    /// The subflow carried the MP_CAPABLE.
    Capable,
    /// Its MP_JOIN names the connection's token.
    Token,
    /// Its data sequence numbers are those of the connection.
    Numbers,
    /// No other flow could be compared with it.
    Alone,
}

/// Data and counters of one side of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub sequence: Sequence,
    pub mappings: Mappings,
    pub packets: u64,
    /// Packets with an MPTCP option.
    pub with_mptcp: u64,
    /// Packets with an MPTCP option, SYN and RST not counted.
    pub mptcp: u64,
    /// Packets with data since the last with an MPTCP option, or all; packets whose options are cut are not counted.
    pub bare_data: u64,
    /// Packets with a DSS.
    pub dss: u64,
    /// Packets whose options were cut by the capture.
    pub options_cut: u64,
    /// Packets whose payload was cut.
    pub payload_cut: u64,
    /// Packets with a wrong checksum.
    pub bad_checksums: u64,
    /// Packets with options that break off.
    pub broken_options: u64,
    pub fin_at: Option<Instant>,
    pub reset: Option<Reset>,
    pub zero_window: ZeroWindow,
    /// Range of the initial sequence number, from mappings: distance from `anchor`, least and greatest.
    bounds: Option<Bounds>,
    /// Data that waits for the initial sequence number.
    pending: Vec<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// A candidate.
    anchor: i64,
    least: i64,
    greatest: i64,
}

/// Data that cannot be placed yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// Positions at the TCP level.
    pub range: Range<i64>,
    /// Mapping on the same packet.
    pub map: Option<(Map, bool)>,
    pub at: Instant,
}

/// An RST.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reset {
    pub at: Instant,
    /// MP_TCPRST: reason, and whether trying again may help.
    pub reason: Option<(ResetReason, bool)>,
    /// True if it carried MP_FASTCLOSE.
    pub fast_close: bool,
}

/// Episodes in which a side lets its peer send nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ZeroWindow {
    pub episodes: u64,
    pub total: Duration,
    pub since: Option<Instant>,
}

/// The three steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    pub syn: Offer,
    pub syn_ack: Offer,
    pub ack: Offer,
    pub syn_at: Option<Instant>,
    pub syn_ack_at: Option<Instant>,
    pub ack_at: Option<Instant>,
    /// Sequence numbers of SYN and SYN/ACK.
    pub syn_seq: Option<SubflowSeq>,
    pub syn_ack_seq: Option<SubflowSeq>,
    pub syns: u64,
    /// SYNs without MPTCP after one with.
    pub bare_syns: u64,
    pub syn_acks: u64,
    /// The acknowledgment number of the third ACK.
    pub ack_number: Option<SubflowSeq>,
}

impl Flow {
    /// A flow whose first packet goes from the source of `key`.
    pub fn new(key: FlowKey, at: Instant) -> Self {
        Flow {
            key,
            opener: None,
            sides: [Side::new(), Side::new()],
            shake: Handshake::default(),
            first_at: at,
            last_at: at,
            member: None,
            keys: [None; 2],
            signals: Vec::new(),
            more_signals: 0,
            copies: 0,
            undecided: 0,
            undecided_data: Count::default(),
            dss_tries: 0,
            replaced: false,
        }
    }

    /// True if most packets are there twice and nothing tells copies from repeats: it is then copies.
    pub fn copies_undecided(&self) -> bool {
        let packets: u64 = self.sides.iter().map(|side| side.packets).sum();
        self.undecided * 5 > packets * 2
    }

    /// Returns the time from the SYN to the third ACK: a whole round trip wherever the capture was made.
    pub fn handshake_rtt(&self) -> Option<Duration> {
        let shake = &self.shake;
        (shake.syns == 1 && shake.syn_acks <= 1).then_some(())?;
        Some(shake.ack_at?.since(shake.syn_at?))
    }

    /// Returns the part of the handshake's round trip between the capture and the side that was opened.
    pub fn handshake_far(&self) -> Option<Duration> {
        (self.shake.syns == 1 && self.shake.syn_acks == 1).then_some(())?;
        Some(self.shake.syn_ack_at?.since(self.shake.syn_at?))
    }

    /// Packets younger than this beside a hole overtook each other.
    pub fn reordering(&self) -> Duration {
        self.handshake_rtt().map_or(DEFAULT_REORDERING, |rtt| rtt.max(DEFAULT_REORDERING))
    }

    /// True once either side reset it, or both sent a FIN.
    pub fn is_over(&self) -> bool {
        self.sides.iter().any(|side| side.reset.is_some()) || self.sides.iter().all(|side| side.fin_at.is_some())
    }
}

impl Side {
    fn new() -> Self {
        Side {
            sequence: Sequence::new(),
            mappings: Mappings::default(),
            packets: 0,
            with_mptcp: 0,
            mptcp: 0,
            bare_data: 0,
            dss: 0,
            options_cut: 0,
            payload_cut: 0,
            bad_checksums: 0,
            broken_options: 0,
            fin_at: None,
            reset: None,
            zero_window: ZeroWindow::default(),
            bounds: None,
            pending: Vec::new(),
        }
    }

    /// The initial sequence number is not known: keeps the data, and narrows down where it can lie. A segment that lies
    /// inside its mapping leaves as much room as the mapping is longer than the segment. Answers true if it is now
    /// known.
    pub fn wait(&mut self, range: Range<i64>, map: Option<(Map, bool)>, at: Instant) -> bool {
        if let Some((map, fin)) = map
            && map.subflow_seq != 0
        {
            let candidate = range.start - i64::from(map.subflow_seq);
            let anchor = self.bounds.map_or(candidate, |bounds| bounds.anchor);
            // Subflow sequence numbers wrap.
            let offset = i64::from((candidate - anchor) as i32);
            let room = i64::from(map.length) - i64::from(fin) - (range.end - range.start);
            let bounds = self.bounds.get_or_insert(Bounds { anchor, least: i64::MIN, greatest: i64::MAX });
            bounds.greatest = bounds.greatest.min(offset);
            // Beginning and end of the mapping lie around the segment.
            bounds.least = bounds.least.max(offset - room.max(0));
        }
        if self.bounds.is_none() && map.is_none() {
            return false;
        }
        self.pending.push(Pending { range, map, at });
        match self.bounds {
            Some(bounds) if bounds.least >= bounds.greatest || self.pending.len() >= MOST_PENDING => {
                self.settle();
                true
            }
            _ => false,
        }
    }

    /// Takes the latest place that the initial sequence number can have: right if any mapping's first segment was seen.
    fn settle(&mut self) {
        if let Some(bounds) = self.bounds {
            self.sequence.isn.get_or_insert(bounds.anchor + bounds.greatest);
        }
    }

    /// The data that waited, once the initial sequence number is known; at the end of the capture it is guessed.
    pub fn pending(&mut self, at_end: bool) -> Vec<Pending> {
        if at_end {
            self.settle();
        }
        if self.sequence.isn.is_none() { Vec::new() } else { std::mem::take(&mut self.pending) }
    }

    /// True if data waits.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Counts a packet, neither SYN nor RST, by its MPTCP options.
    pub fn count(&mut self, has_mptcp: bool, has_dss: bool, has_data: bool) {
        self.dss += u64::from(has_dss);
        if has_mptcp {
            self.mptcp += 1;
            self.bare_data = 0;
        } else {
            self.bare_data += u64::from(has_data);
        }
    }
}

impl ZeroWindow {
    /// A window is advertised.
    pub fn advertise(&mut self, window: u16, now: Instant) {
        match (window, self.since) {
            (0, None) => {
                self.episodes += 1;
                self.since = Some(now);
            }
            (1.., Some(since)) => {
                self.total += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }
}

/// Reordering time that Wireshark assumes without a known round-trip time.
const DEFAULT_REORDERING: Duration = Duration::from_millis(3);
/// The longest mapping that Linux makes spans fewer segments.
const MOST_PENDING: usize = 128;
