//! Invariants of a connection; the swarm checks them after every event.

use super::Connection;
use crate::shared::Shared;
use anabranch_units::Instant;

impl Connection {
    /// The first invariant that does not hold, as a sentence.
    pub(crate) fn check(&self, now: Instant, shared: &Shared) -> Result<(), String> {
        let out = &self.sender.outgoing;
        for subflow in self.subflows.iter() {
            let (kept, fresh) = (subflow.tx.recovery.totals(), subflow.tx.recovery.recompute());
            if kept != fresh {
                return Err(format!("subflow {}: scoreboard says {kept:?}, recomputed {fresh:?}", subflow.id));
            }
            let limit = subflow.rx.ofo.bytes() <= shared.config.receive_buffer.get();
            if !limit {
                return Err(format!("subflow {}: {} bytes held out of order", subflow.id, subflow.rx.ofo.bytes()));
            }
        }
        if out.nxt > out.edge.max(out.una) {
            return Err(format!("sent up to {} beyond the window's edge {}", out.nxt, out.edge));
        }
        let (held, limit) = self.receiver.memory();
        if held > limit {
            return Err(format!("{held} bytes held by the receiver, {limit} allowed"));
        }
        let buffered = out.held();
        if buffered > shared.config.send_buffer.get() {
            return Err(format!("{buffered} bytes in a send buffer of {}", shared.config.send_buffer));
        }
        if out.unsent.overlaps(0, out.una) {
            return Err("data counts as unsent although it is acknowledged".to_owned());
        }
        if let Some(at) = self.deadline().map(|at| self.latest(at)).filter(|at| *at < now) {
            return Err(format!("a timer was due at {at}, before {now}"));
        }
        Ok(())
    }

    pub(crate) fn refused(&self) -> u64 {
        self.receiver.refused() + self.subflows.iter().map(|subflow| subflow.rx.ofo.dropped()).sum::<u64>()
    }
}
