//! The handshake of one subflow: SYNs, what both ends agree on, its round trip, and what a client keeps of the path for
//! connections to come.

use super::{State, Subflow};
use crate::Profile;
use crate::ecn::Marks;
use crate::memory::Memory;
use crate::path_mtu::default_mss;
use anabranch_units::{Duration, Instant, SubflowSeq};
use anabranch_wire::{Flags, Handshake, Segment, Timestamps};

impl Subflow {
    /// The SYN or SYN/ACK that it waits to have answered, without MPTCP options; `mss` is what our MSS option says.
    pub(crate) fn syn(&self, now: Instant, window: u16, mss: u16, profile: &Profile) -> Segment {
        let answer = self.state == State::SynReceived;
        let flags = if answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN };
        let ack = if answer { self.rx.irs + 1 } else { SubflowSeq::new(0) };
        let mut segment = Segment::new(self.flow, flags, self.tx.iss, ack);
        // The window of a SYN is not scaled (RFC 7323 §2.2).
        segment.window = window;
        let (sack, timestamps) = if answer { (self.sack, self.timestamps) } else { (profile.sack, profile.timestamps) };
        let scaling = if answer { self.rx.rcv_scale > 0 || self.tx.snd_scale > 0 } else { profile.window_scaling };
        *segment.options.handshake_mut() =
            Handshake { mss: Some(mss), window_scale: scaling.then_some(self.rx.rcv_scale), sack_permitted: sack };
        if timestamps {
            segment.options.set_timestamps(Some(Timestamps { value: self.tx.timestamp(now), echo: self.rx.ts_recent }));
        }
        match answer {
            true => self.marks.answer(self.retries(), &mut segment),
            false => Marks::ask(profile.ecn, self.retries(), &mut segment),
        }
        segment
    }

    /// Takes over what the peer's SYN or SYN/ACK says about TCP; `mss` is the largest of our own, and `dss` the bytes
    /// that a DSS takes.
    pub(crate) fn take_syn(&mut self, now: Instant, syn: &Segment, mss: u16, profile: &Profile, dss: u32) {
        let options = syn.options.handshake();
        self.rx.irs = syn.seq;
        self.rx.rcv_nxt = 1;
        self.rx.mss = mss;
        self.take_clock(now, syn);
        let timestamps = syn.options.timestamps().is_some();
        self.negotiated(profile, now, options.sack_permitted, timestamps, options.window_scale);
        self.tx.mss_option = mss.min(options.mss.unwrap_or_else(|| default_mss(&self.flow)));
        self.leave_room(dss);
        self.tx.snd_wnd = syn.window;
        self.tx.snd_edge = 1 + u64::from(syn.window);
    }

    /// Takes over what the answer to our SYN/ACK says about TCP. Returns its window: what the handshake said was
    /// unscaled, an ACK's is scaled.
    pub(crate) fn take_last_ack(&mut self, now: Instant, segment: &Segment) -> u64 {
        // What leaves in answer, as ADD_ADDR does, echoes it.
        self.take_clock(now, segment);
        self.marks.take_last_ack(self.retries(), segment);
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.tx.snd_scale };
        let window = u64::from(segment.window) << scale;
        self.tx.snd_wnd = segment.window;
        self.tx.snd_edge = 1 + window;
        window
    }

    /// Number of times that the SYN or SYN/ACK has been repeated by a timer.
    fn retries(&self) -> u32 {
        self.handshake.map_or(0, |timer| timer.retries)
    }

    /// Takes the peer's clock from a segment of the handshake.
    fn take_clock(&mut self, now: Instant, segment: &Segment) {
        if let Some(timestamps) = segment.options.timestamps() {
            self.rx.ts_recent = timestamps.value;
            self.rx.ts_recent_at = now;
        }
    }

    /// The RTT of a handshake; when a SYN was repeated, the timestamps tell which one was answered (RFC 7323 §4), and
    /// without them the longest possible counts, since an unknown RTT should not look short.
    pub(crate) fn handshake_rtt(&self, now: Instant, segment: &Segment) -> Duration {
        let Some(timer) = self.handshake else { return Duration::from_millis(1) };
        let measured = now.since(timer.first_sent);
        let echo = segment.options.timestamps().filter(|t| timer.retries > 0 && t.echo != 0);
        let by_echo = echo.map(|t| Duration::from_millis(u64::from(self.tx.timestamp(now).wrapping_sub(t.echo))));
        by_echo.map_or(measured, |rtt| rtt.min(measured)).max(Duration::from_micros(1))
    }

    /// Takes the state that it would have, had it sent the SYN/ACK that `ack` answers; `unknown` is the RTT if nothing
    /// tells it.
    pub(crate) fn adopt(&mut self, now: Instant, iss: SubflowSeq, ack: &Segment, unknown: Duration) {
        self.tx.iss = iss;
        let echo = ack.options.timestamps().filter(|_| self.timestamps);
        let age = echo.map(|echo| Duration::from_millis(u64::from(self.tx.timestamp(now).wrapping_sub(echo.echo))));
        // An echo may be from another clock if its sender lies.
        let rtt = age.map_or(unknown, |age| age.min(unknown)).max(Duration::from_millis(1));
        self.tx.rtt.sample(now, rtt);
    }

    /// Has the path remembered as one that answered our SYN.
    pub(crate) fn remember_answer(&self, now: Instant, memory: &mut Memory) {
        if let Some(rtt) = self.tx.rtt.last() {
            memory.on_answer(now, &self.flow, rtt);
        }
    }

    /// Has its measurements remembered for connections to come.
    pub(crate) fn remember_path(&self, memory: &mut Memory) {
        let Some(rtt) = self.tx.rtt.min().filter(|_| self.opened_at.is_some()) else { return };
        let acked = self.tx.recovery.snd_una().saturating_sub(1);
        let sends = acked > self.rx.bytes_received;
        let rate = if sends { self.tx.path_rate.get() } else { self.rx.arrival_rate.get() };
        memory.on_measured(self.liveness.heard, &self.flow, rtt, rate, self.tx.loss.rate());
    }
}
