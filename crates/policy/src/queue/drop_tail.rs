//! First come, first served; what comes to a full queue is dropped.
//!
//! A link without any other discipline is this one, and knows each packet's departure as soon as it comes.

use super::fifo::Fifo;
use super::{Capabilities, Entry, Next, Port, QueueDiscipline, Waiting};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "drop-tail",
    "first come, first served; what finds the queue full is dropped",
    include_str!("drop_tail.rs"),
    |_| Box::new(DropTail::default()),
)
.capabilities(|_| Capabilities { limit: 100 });

/// A line that drops at its end.
#[derive(Debug, Default)]
pub struct DropTail(Fifo);

impl QueueDiscipline for DropTail {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        self.0.admit(packet, port);
    }

    fn dequeue(&mut self, _port: &mut Port<'_>) -> Next {
        self.0.pop().map_or(Next::Nothing, Next::Packet)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn the_last_to_come_is_dropped() {
        let mut bench = Bench::new(DropTail::default(), 3);
        for id in 0..5 {
            bench.come(0, id, 0);
        }
        assert_eq!(bench.gone(), [(3, Cause::Full), (4, Cause::Full)]);
        assert_eq!((0..4).map(|_| bench.leave(1)).collect::<Vec<_>>(), [Some(0), Some(1), Some(2), None]);
    }
}
