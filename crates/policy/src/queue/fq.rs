//! Fair queueing: a queue for each flow, of bounded length, and flows take turns.
//!
//! As Linux' `fq` does beyond the pacing of a host's own sockets, which is the engine's.

use super::flows::{Emptied, Flows};
use super::{Capabilities, Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Number, number};

const FLOWS: Number = number("flows", "number of queues among which flows are hashed", 1024.0, 1.0..=65536.0);
const FLOW_LIMIT: Number =
    number("flow-limit", "packets that wait of one flow at most", 100.0, 1.0..=1e6).in_unit("packets");
const QUANTUM: Number =
    number("quantum", "bytes that a flow may send in its turn", 3028.0, 256.0..=1_048_576.0).in_unit("bytes");
const FIRST: Number =
    number("initial-quantum", "bytes that a new flow may send in its first turn", 15140.0, 256.0..=1_048_576.0)
        .in_unit("bytes");

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("fq", "a queue of bounded length for each flow; flows take turns", include_str!("fq.rs"), |params| {
        let (quantum, first) = (QUANTUM.of(params) as i64, FIRST.of(params) as i64);
        let flows = Flows::new(FLOWS.of(params) as usize, quantum, first, Emptied::TurnsOldBehindOthers, || ());
        Box::new(Fq { flows, flow_limit: FLOW_LIMIT.of(params) as usize })
    })
    .paper("Linux, net/sched/sch_fq.c")
    .parameters(&[FLOWS.parameter(), FLOW_LIMIT.parameter(), QUANTUM.parameter(), FIRST.parameter()])
    .capabilities(|_| Capabilities { limit: 10000 });

/// Queues of flows.
#[derive(Debug)]
pub struct Fq {
    flows: Flows<()>,
    flow_limit: usize,
}

impl QueueDiscipline for Fq {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        if port.is_over() || self.flows.waiting(packet.flow) >= self.flow_limit {
            return port.drop(packet, Cause::Full);
        }
        self.flows.push(packet);
    }

    fn dequeue(&mut self, _port: &mut Port<'_>) -> Next {
        self.flows.next(|flow| flow.queue.pop()).map_or(Next::Nothing, Next::Packet)
    }

    fn clear(&mut self) {
        self.flows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::registry::Value;

    #[test]
    fn a_flow_may_not_fill_the_link() {
        let params = ENTRY.params(&[("flow-limit".to_owned(), Value::Number(2.0))].into()).expect("within range");
        let mut bench = Bench::new(ENTRY.build(&params).policy, 100);
        (0..4).for_each(|id| bench.come(0, id, 1));
        bench.come(0, 4, 2);
        assert_eq!(bench.gone(), [(2, Cause::Full), (3, Cause::Full)]);
        assert_eq!((0..4).map(|ms| bench.leave(ms)).collect::<Vec<_>>(), [Some(0), Some(1), Some(4), None]);
    }
}
