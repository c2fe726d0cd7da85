//! Answers to SYNs that have lost a race: they belong to no connection, and tell the round trip of their path.
//!
//! Without them a slow path would stay unknown for as long as transfers are over before its join, and every connection
//! would have to race anew.

use super::Memory;
use anabranch_units::{Duration, Instant, SubflowSeq};
use anabranch_wire::{Flags, FlowKey, MpOption, Segment};
use std::collections::VecDeque;

/// SYNs whose answers may come. The oldest makes room.
const MAX_WAITING: usize = 64;
/// Time for which a late answer to a SYN is still attributed to it; RFC 6298 §2.4 allows an upper bound of 60 s on
/// timeouts.
const AWAITED: Duration = Duration::from_secs(60);

/// SYNs that have lost.
#[derive(Default)]
pub(super) struct LateAnswers {
    waiting: VecDeque<Loser>,
}

/// SYN of a lost race, sent once.
struct Loser {
    flow: FlowKey,
    /// Acknowledgment of its answer, which attackers off the path cannot guess.
    ack: SubflowSeq,
    sent: Instant,
}

impl Memory {
    /// The SYN of `flow`, sent once, has lost; `ack` acknowledges it.
    pub(crate) fn await_late_answer(&mut self, flow: FlowKey, ack: SubflowSeq, sent: Instant) {
        let waiting = &mut self.late.waiting;
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(Loser { flow, ack, sent });
    }

    /// A segment that belongs to no connection.
    pub(crate) fn on_stranger(&mut self, now: Instant, segment: &Segment) {
        if !segment.flags.has(Flags::SYN.with(Flags::ACK)) || self.late.waiting.is_empty() {
            return;
        }
        self.late.waiting.retain(|loser| now.since(loser.sent) < AWAITED);
        let (flow, waiting) = (segment.flow.reversed(), &mut self.late.waiting);
        let Some(at) = waiting.iter().position(|loser| (loser.flow, loser.ack) == (flow, segment.ack)) else { return };
        let Some(loser) = waiting.remove(at) else { return };
        self.on_answer(now, &flow, now.since(loser.sent));
        if segment.options.mptcp().iter().any(|option| matches!(option, MpOption::Capable(_))) {
            self.on_offer_taken(now, &flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the answer to its own SYN counts, once, and not after a minute.
    #[test]
    fn a_late_answer_measures() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let flow = FlowKey::new(([10, 0, 0, 1], 4000).into(), ([10, 1, 0, 1], 80).into());
        let answer = |ack| {
            let flags = Flags::SYN.with(Flags::ACK);
            Segment::new(flow.reversed(), flags, SubflowSeq::new(7), SubflowSeq::new(ack))
        };
        let rtt = |memory: &Memory, now| memory.candidate(now, flow.src, flow.dst).known.map(|known| known.rtt);
        let mut memory = Memory::default();
        memory.await_late_answer(flow, SubflowSeq::new(101), at(5));
        memory.on_stranger(at(100), &answer(102));
        assert_eq!(rtt(&memory, at(100)), None);
        memory.on_stranger(at(305), &answer(101));
        assert_eq!(rtt(&memory, at(305)), Some(Duration::from_millis(300)));
        memory.on_stranger(at(900), &answer(101));
        assert_eq!(rtt(&memory, at(900)), Some(Duration::from_millis(300)));
        let mut late = Memory::default();
        late.await_late_answer(flow, SubflowSeq::new(101), at(0));
        late.on_stranger(at(60_000), &answer(101));
        assert_eq!(rtt(&late, at(60_000)), None);
        for port in 0..1000 {
            late.await_late_answer(FlowKey { src_port: port, ..flow }, SubflowSeq::new(101), at(0));
        }
        assert_eq!(late.late.waiting.len(), MAX_WAITING);
    }
}
