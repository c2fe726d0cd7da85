//! Loss recovery without SACK: duplicate ACKs stand in for what the peer cannot say (RFC 5681 §3.2, RFC 6582).
//!
//! As in Linux, each duplicate ACK is taken for one full segment that arrived, and lowers what counts as in flight.
//! That sum is a *credit*: it is used up by the cumulative ACK that later covers the same bytes, so that every byte is
//! delivered once (after a timeout, which forgets the credit, some count twice).

#[derive(Clone, Debug, Default)]
pub(super) struct NewReno {
    /// Duplicate ACKs since `snd_una` last moved.
    pub(super) duplicates: u32,
    credit: u64,
    /// Largest segment sent, which is what a duplicate ACK is taken for.
    full: u64,
}

impl NewReno {
    pub(super) fn sent(&mut self, len: u32) {
        self.full = self.full.max(u64::from(len));
    }

    /// Counts one duplicate ACK. `room`: bytes that may have arrived, which is all but the hole. Returns the bytes
    /// delivered.
    pub(super) fn duplicate(&mut self, room: u64) -> u64 {
        self.duplicates += 1;
        if self.credit + self.full > room {
            return 0;
        }
        self.credit += self.full;
        self.full
    }

    /// A partial ACK of `acked` bytes: the first segment of it was the hole, the rest had been credited.
    /// Answers how much of it had been delivered before.
    pub(super) fn partial(&mut self, acked: u64) -> u64 {
        let used = self.credit.min(acked.saturating_sub(self.full));
        self.credit -= used;
        used
    }

    /// The episode is over. Answers how much of `acked` had been delivered before.
    pub(super) fn settle(&mut self, acked: u64) -> u64 {
        self.duplicates = 0;
        std::mem::take(&mut self.credit).min(acked)
    }

    /// Bytes credited.
    pub(super) fn credit(&self) -> u64 {
        self.credit
    }

    /// The same in full segments.
    #[cfg(test)]
    pub(super) fn credit_segments(&self) -> u32 {
        self.credit.checked_div(self.full).unwrap_or(0) as u32
    }
}
