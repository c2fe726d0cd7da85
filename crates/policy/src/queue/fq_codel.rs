//! FQ-CoDel (RFC 8290): a queue for each flow, whose delay CoDel controls; flows take turns, new ones first.
//!
//! Flows are told apart by their 5-tuple. Where the link is full, half of the fattest queue goes, at most 64 packets.

use super::codel::{ECN, INTEGERS, INTERVAL, TARGET, control};
use super::control::Control;
use super::flows::{Emptied, Flows};
use super::{Capabilities, Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Number, number};

const FLOWS: Number =
    number("flows", "number of queues among which flows are hashed (RFC 8290 §5.2.3)", 1024.0, 1.0..=65536.0);
const QUANTUM: Number =
    number("quantum", "bytes that a flow may send in its turn (RFC 8290 §5.2.4)", 1514.0, 256.0..=1_048_576.0)
        .in_unit("bytes");
/// The most packets that are dropped at once from a full link (RFC 8290 §4.1).
const BATCH: usize = 64;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "fq-codel",
    "a queue for each flow, controlled by CoDel; flows take turns, new ones first",
    include_str!("fq_codel.rs"),
    |params| {
        let (flows, quantum) = (FLOWS.of(params) as usize, QUANTUM.of(params) as i64);
        Box::new(FqCoDel(Flows::new(flows, quantum, quantum, Emptied::TurnsOld, || control(params))))
    },
)
.paper("RFC 8290")
.parameters(&[
    TARGET.parameter(),
    INTERVAL.parameter(),
    ECN.parameter(),
    INTEGERS.parameter(),
    FLOWS.parameter(),
    QUANTUM.parameter(),
])
.capabilities(|_| Capabilities { limit: 10240 });

/// Queues of flows whose delays are controlled.
#[derive(Debug)]
pub struct FqCoDel(Flows<Control>);

impl QueueDiscipline for FqCoDel {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        self.0.push(packet);
        if port.is_over() {
            let fattest = self.0.fattest();
            for _ in 0..fattest.queue.len().div_ceil(2).min(BATCH) {
                if let Some(packet) = fattest.queue.pop() {
                    port.drop(packet, Cause::Full);
                }
            }
        }
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        self.0.next(|flow| flow.control.next(&mut flow.queue, port)).map_or(Next::Nothing, Next::Packet)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, SIZE};
    use super::*;
    use crate::registry::{Params, Value};

    /// Two flows with packets of one size leave by turns, and a third that comes late goes first.
    #[test]
    fn a_new_flow_goes_first() {
        let quantum = [("quantum".to_owned(), Value::Number(f64::from(SIZE)))].into();
        let mut bench = Bench::new(ENTRY.build(&ENTRY.params(&quantum).expect("within range")).policy, 100);
        for (id, flow) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)] {
            bench.come(0, id, flow);
        }
        let mut left = vec![bench.leave(1), bench.leave(2)];
        bench.come(2, 5, 3);
        left.extend((3..8).map(|ms| bench.leave(ms)));
        assert_eq!(left.into_iter().flatten().collect::<Vec<_>>(), [0, 3, 5, 1, 4, 2]);
    }

    #[test]
    fn a_full_link_drops_from_the_head_of_the_fattest() {
        let mut bench = Bench::new(ENTRY.build(&Params::default()).policy, 8);
        (0..6).for_each(|id| bench.come(0, id, 1));
        (6..8).for_each(|id| bench.come(0, id, 2));
        assert_eq!(bench.gone(), []);
        bench.come(0, 8, 3);
        assert_eq!(bench.gone(), [(0, Cause::Full), (1, Cause::Full), (2, Cause::Full)]);
    }
}
