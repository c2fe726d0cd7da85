//! TCP parameters agreed in a handshake, in the few bits that a SYN/ACK can hold until the next ACK.

use crate::ecn::{EcnRule, Feedback, Marks};
use anabranch_units::{Ecn, SubflowSeq};
use anabranch_wire::{Flags, Handshake, Segment, Timestamps};

/// TCP parameters that two ends agree on in a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    /// The peer's MSS option.
    pub(crate) mss: u16,
    /// The peer's window scale; `None` where windows are not scaled.
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// Feedback of marks. The answer to the SYN/ACK shows whether the accurate one was agreed on (RFC 9768 §5.1); the
    /// classic one needs timestamps to be remembered.
    pub(crate) ecn: Feedback,
    /// ECN field of the peer's SYN.
    pub(crate) of_syn: Ecn,
}

impl Terms {
    /// The code nearest below these terms; `None` for an MSS below the smallest that has one.
    pub(super) fn code(self) -> Option<u32> {
        let sizes: &[u16] = if self.timestamps { &FINE_MSS } else { &COARSE_MSS };
        let size = sizes.iter().rposition(|size| *size <= self.mss)? as u32;
        if self.timestamps {
            return Some(size);
        }
        let fits =
            |(sack, scale): &(bool, Option<u8>)| (self.sack || !sack) && scale.is_none_or(|scale| self.scales(scale));
        let set = OPTION_SETS.iter().rposition(fits)? as u32;
        Some(size << 2 | set)
    }

    fn scales(self, at_least: u8) -> bool {
        self.window_scale.is_some_and(|shift| shift >= at_least)
    }

    /// Classic ECN, window scale and SACK-permitted in the lowest bits of a timestamp.
    pub(super) fn stamp(self) -> u32 {
        let classic = u32::from(self.ecn == Feedback::Classic) << 5;
        classic
            | u32::from(self.window_scale.map_or(NO_SCALE, |shift| shift.min(MAX_SHIFT))) << 1
            | u32::from(self.sack)
    }

    /// Returns the terms that a cookie remembers of these.
    pub(super) fn remembered(self, code: u32) -> Self {
        let kept = Terms::from_code(code, self.timestamps.then(|| self.stamp()));
        let ecn = if self.ecn == Feedback::Accurate { self.ecn } else { kept.ecn };
        Terms { ecn, of_syn: self.of_syn, ..kept }
    }

    pub(super) fn from_code(code: u32, stamp: Option<u32>) -> Self {
        let at = |bits: u32| (code & bits) as usize;
        let of_syn = Ecn::NotEct;
        match stamp {
            Some(stamp) => {
                let shift = (stamp >> 1 & 0xf) as u8;
                let window_scale = (shift != NO_SCALE).then_some(shift);
                let ecn = if stamp >> 5 & 1 == 1 { Feedback::Classic } else { Feedback::Off };
                let mss = FINE_MSS[at(0b1111)];
                Terms { mss, window_scale, sack: stamp & 1 == 1, timestamps: true, ecn, of_syn }
            }
            None => {
                let (sack, window_scale) = OPTION_SETS[at(0b11)];
                let mss = COARSE_MSS[(code >> 2 & 0b11) as usize];
                Terms { mss, window_scale, sack, timestamps: false, ecn: Feedback::Off, of_syn }
            }
        }
    }

    /// The latest value not after `clock` that says these terms; at most 63 ms before it.
    fn timestamp(self, clock: u32) -> u32 {
        clock.wrapping_sub(clock.wrapping_sub(self.stamp()) & (STAMPS - 1))
    }

    /// A SYN/ACK on these terms, without MPTCP options. `shift` is our window scale, `mss` our MSS option.
    pub(crate) fn syn_ack(self, syn: &Segment, iss: SubflowSeq, clock: u32, shift: u8, mss: u16) -> Segment {
        let mut answer = Segment::new(syn.flow.reversed(), Flags::SYN.with(Flags::ACK), iss, syn.seq + 1);
        let window_scale = self.window_scale.map(|_| shift);
        *answer.options.handshake_mut() = Handshake { mss: Some(mss), window_scale, sack_permitted: self.sack };
        answer.options.set_timestamps(
            syn.options
                .timestamps()
                .filter(|_| self.timestamps)
                .map(|theirs| Timestamps { value: self.timestamp(clock), echo: theirs.value }),
        );
        Marks::agreed(self.ecn, self.of_syn).answer(0, &mut answer);
        answer
    }

    /// The SYN that these terms answered, without MPTCP options, as far as `ack`, the answer to the SYN/ACK, shows it.
    /// From a cookie, a host with this rule also learns from `ack` whether feedback of marks is accurate.
    pub(crate) fn syn(self, cookie: Option<EcnRule>, ack: &Segment) -> Segment {
        let isn = SubflowSeq::new(ack.seq.get().wrapping_sub(1));
        let mut syn = Segment::new(ack.flow, Flags::SYN, isn, SubflowSeq::new(0));
        let Terms { mss, window_scale, sack, timestamps, ecn, of_syn } = self;
        *syn.options.handshake_mut() = Handshake { mss: Some(mss), window_scale, sack_permitted: sack };
        syn.options.set_timestamps(ack.options.timestamps().filter(|_| timestamps));
        // An ordinary ACK has none of these flags.
        let accurate = cookie.is_some_and(|rule| rule.accepts == Feedback::Accurate) && ack.ace() > 1;
        let asks = if ecn == Feedback::Off && accurate { Feedback::Accurate } else { ecn };
        syn.set_ace(EcnRule { asks, ..EcnRule::OFF }.of_syn());
        syn.ip.ecn = of_syn;
        syn
    }
}

/// Meaning of the lowest bits of a timestamp.
const STAMPS: u32 = 64;
/// Code for no window scale, of which 14 is the largest (RFC 7323 §2.3).
const NO_SCALE: u8 = 15;
const MAX_SHIFT: u8 = 14;
/// IPv4's least (RFC 9293 §3.7.1), IPv6's least, tunnels, PPPoE, Ethernet, large frames.
const FINE_MSS: [u16; 16] =
    [536, 966, 1160, 1220, 1260, 1300, 1320, 1340, 1360, 1380, 1400, 1420, 1440, 1452, 1460, 8940];
/// MSS values of Linux for IPv4; 1440 is IPv6's on Ethernet.
const COARSE_MSS: [u16; 4] = [536, 1300, 1440, 1460];
/// SACK-permitted and window scale of clients without timestamps. Windows, which has none by default, scales by 8.
const OPTION_SETS: [(bool, Option<u8>); 4] = [(false, None), (true, None), (true, Some(2)), (true, Some(7))];
