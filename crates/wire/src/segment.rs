//! One TCP segment in its IP packet.

use crate::{FlowKey, Options, Payload};
use anabranch_units::{Bytes, Ecn, SubflowSeq};
use std::fmt;

/// TCP control bits (RFC 9293 §3.1, with ECE and CWR of RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push function.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is significant.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Both sets.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True if all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The letters that tcpdump prints: `S.` is SYN and ACK.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: [(Flags, char); 8] = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ACK, '.'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
        ];
        LETTERS.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, letter)| write!(f, "{letter}"))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The IP fields that are not addresses; the family follows from the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct IpHeader {
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Differentiated services code point (6 bits).
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Identification (IPv4, 16 bits) or flow label (IPv6, 20 bits).
    pub id: u32,
    /// Routers must not cut the packet (IPv4's DF bit). IPv6 has no such bit and always means it.
    pub dont_fragment: bool,
}

impl Default for IpHeader {
    fn default() -> Self {
        // As Linux: DF is set, for path MTU discovery.
        /// Linux's initial TTL, also recommended by the IANA registry.
        const TTL: u8 = 64;
        IpHeader { ttl: TTL, dscp: 0, ecn: Ecn::NotEct, id: 0, dont_fragment: true }
    }
}

/// One TCP segment with everything the wire carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Addresses and ports.
    pub flow: FlowKey,
    /// The rest of the IP header.
    pub ip: IpHeader,
    /// Control bits.
    pub flags: Flags,
    /// The four bits before the control bits (RFC 9293 §3.1): to be sent as zero and ignored, but for the last, which
    /// is AE, the highest bit of [`Segment::ace`].
    pub reserved: u8,
    /// The window field as it stands in the header, not yet scaled.
    pub window: u16,
    /// The urgent pointer; meaningless without URG.
    pub urgent: u16,
    /// Sequence number of the first byte (of the SYN if there is one).
    pub seq: SubflowSeq,
    /// Acknowledgment number; meaningless without ACK.
    pub ack: SubflowSeq,
    /// TCP options.
    pub options: Options,
    /// Data.
    pub payload: Payload,
}

impl Segment {
    /// A segment of `flow` with nothing in it.
    pub fn new(flow: FlowKey, flags: Flags, seq: SubflowSeq, ack: SubflowSeq) -> Self {
        Segment {
            flow,
            ip: IpHeader::default(),
            flags,
            reserved: 0,
            window: 0,
            urgent: 0,
            seq,
            ack,
            options: Options::default(),
            payload: Payload::new(),
        }
    }

    /// Takes payload and options out and makes the rest what [`Segment::new`] makes it, so that the memory can be used
    /// again. Flow, flags and numbers stay.
    #[inline]
    pub fn clear(&mut self) {
        self.ip = IpHeader::default();
        (self.reserved, self.window, self.urgent) = (0, 0, 0);
        self.options.clear();
        self.payload = Payload::new();
    }

    /// Returns the ACE field: AE, CWR and ECE as one number (RFC 9768 §3.2).
    pub fn ace(&self) -> u8 {
        (self.reserved & 1) << 2 | self.flags.0 >> 6
    }

    /// Sets the ACE field to the lowest three bits of a number.
    pub fn set_ace(&mut self, ace: u8) {
        self.reserved = self.reserved & !1 | ace >> 2 & 1;
        self.flags = Flags(self.flags.0 & 0x3f | (ace & 3) << 6);
    }

    /// Returns the sequence space this takes, in bytes: payload, SYN and FIN.
    pub fn sequence_length(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN))
    }

    /// Size of the IP packet: IP header, TCP header with padded options, payload.
    pub fn wire_length(&self) -> Bytes {
        self.wire_length_with(self.options.wire_length())
    }

    /// The same where it is known already how many bytes the options take.
    #[inline]
    pub fn wire_length_with(&self, options: u64) -> Bytes {
        let ip = if self.flow.src.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        Bytes::new(ip + TCP_HEADER + options + self.payload.len() as u64)
    }
}

const IPV4_HEADER: u64 = 20;
const IPV6_HEADER: u64 = 40;
const TCP_HEADER: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_segment_is_as_good_as_new() {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let (seq, ack) = (SubflowSeq::new(1), SubflowSeq::new(2));
        let mut segment = Segment::new(flow, Flags::ACK, seq, ack);
        segment.ip.id = 7;
        (segment.reserved, segment.window, segment.urgent) = (1, 2, 3);
        let options = &mut segment.options;
        options.set_timestamps(Some(crate::Timestamps { value: 1, echo: 2 }));
        options.push_sack(crate::SackBlock { start: seq, end: ack });
        options.set_dss(Some(crate::Dss::default()));
        options.handshake_mut().mss = Some(1);
        options.push_mptcp(crate::MpOption::Prio { backup: true });
        options.push_experiment(1);
        segment.payload = Payload::from(b"data");
        segment.clear();
        assert_eq!(segment, Segment::new(flow, Flags::ACK, seq, ack));
    }

    #[test]
    fn the_ace_field_is_three_flags() {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.reserved = 0b1000;
        for (ace, flags) in [(0b101, Flags::ECE), (0b110, Flags::CWR), (0b011, Flags::CWR.with(Flags::ECE))] {
            segment.set_ace(ace);
            assert_eq!((segment.ace(), segment.flags), (ace, Flags::ACK.with(flags)));
            assert_eq!(segment.reserved, 0b1000 | ace >> 2);
        }
    }

    /// The simulator moves segments about; what is rare belongs behind a pointer.
    #[test]
    fn a_segment_stays_small() {
        assert!(size_of::<Segment>() <= 128, "{} bytes, options {}", size_of::<Segment>(), size_of::<Options>());
    }
}
