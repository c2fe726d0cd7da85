//! Round trips of a handshake, and what a client keeps of a path for connections to come.

use super::Subflow;
use crate::memory::Memory;
use anabranch_units::{Bytes, Duration, Instant, Rate, SubflowSeq};
use anabranch_wire::Segment;

impl Subflow {
    /// The RTT of a handshake; when a SYN was repeated, the timestamps tell which one was answered (RFC 7323 §4), and
    /// without them the longest possible counts, since an unknown RTT should not look short.
    pub(crate) fn handshake_rtt(&self, now: Instant, segment: &Segment) -> Duration {
        let Some(timer) = self.handshake else { return Duration::from_millis(1) };
        let measured = now.since(timer.first_sent);
        let echo = segment.options.timestamps.filter(|t| timer.retries > 0 && t.echo != 0);
        let by_echo = echo.map(|t| Duration::from_millis(u64::from(self.tx.timestamp(now).wrapping_sub(t.echo))));
        by_echo.map_or(measured, |rtt| rtt.min(measured)).max(Duration::from_micros(1))
    }

    /// Takes the state that it would have, had it sent the SYN/ACK that `ack` answers; `unknown` is the RTT if nothing
    /// tells it.
    pub(crate) fn adopt(&mut self, now: Instant, iss: SubflowSeq, ack: &Segment, unknown: Duration) {
        self.tx.iss = iss;
        let echo = ack.options.timestamps.filter(|_| self.timestamps);
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
        let Some((opened_at, rtt)) = self.opened_at.zip(self.tx.rtt.min()) else { return };
        let acked = self.tx.recovery.snd_una().saturating_sub(1);
        let carried = Bytes::new(acked.max(self.rx.bytes_received));
        let rate = Rate::of(carried, self.liveness.heard.since(opened_at)).filter(|rate| !rate.is_zero());
        memory.on_measured(self.liveness.heard, &self.flow, rtt, rate, self.tx.loss.rate());
    }
}
