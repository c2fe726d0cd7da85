//! Loss recovery of mptcp-ns3: one repetition per signal of loss.
//!
//! `MpTcpSocketImpl::DupAck` repeats a segment at its third duplicate ACK, once in its life, and `ReTxTimeout` the
//! first segment not acknowledged (mp-tcp-socket-impl.cc). Neither marks what was sent behind it, no partial ACK
//! repeats the next, duplicate ACKs lower nothing that counts as in flight, and the next ACK that acknowledges anything
//! ends the episode. Both double the timeout (`reduceCWND`), until a segment is acknowledged that was sent once
//! (`RttEstimator::AckSeq`).

use super::{AckIn, AckOut, Phase, Recovery};

impl Recovery {
    /// Counts a duplicate ACK, even after repetitions.
    pub(super) fn detect_single(&mut self, ack: &AckIn<'_>, out: &AckOut) -> (u32, u64) {
        if out.acked > 0 {
            self.newreno.settle(0);
            return (0, 0);
        }
        if !ack.is_duplicate || self.board.is_empty() {
            return (0, 0);
        }
        self.newreno.duplicates += 1;
        if self.newreno.duplicates != self.config.dup_threshold {
            return (0, 0);
        }
        self.timers.back_off();
        (1, self.repair_single(Phase::Recovery))
    }

    /// The first segment is to be repeated; the episode lasts until it is acknowledged.
    pub(super) fn repair_single(&mut self, phase: Phase) -> u64 {
        let Some((id, front)) = self.board.front() else { return 0 };
        self.begin_episode(phase);
        self.recovery_point = Some(front.end());
        self.board.lose(id)
    }
}
