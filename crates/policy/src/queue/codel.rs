//! CoDel, "controlled delay" (RFC 8289): one line from whose head packets are dropped while none has waited less than a
//! target for an interval, ever faster until the delay falls.

use super::control::Control;
use super::fifo::Fifo;
use super::{Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Flag, Number, Params, flag, number};
use anabranch_units::Duration;

pub(super) const TARGET: Number =
    number("target", "delay that a standing queue may have (RFC 8289 §4.3)", 5.0, 0.01..=10_000.0).in_unit("ms");
pub(super) const INTERVAL: Number =
    number("interval", "time for which the delay must be larger: a round trip (RFC 8289 §4.2)", 100.0, 0.1..=100_000.0)
        .in_unit("ms");
pub(super) const ECN: Flag = flag("ecn", "mark packets in place of dropping them where ECN allows", true);
pub(super) const INTEGERS: Flag =
    flag("integers", "compute as Linux does: in units of 1024 ns, and 1/√count by steps of Newton's method", false);

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "codel",
    "drops from the head while packets have waited too long for an interval",
    include_str!("codel.rs"),
    |params| Box::new(CoDel { queue: Fifo::default(), control: control(params) }),
)
.paper("RFC 8289")
.parameters(&[TARGET.parameter(), INTERVAL.parameter(), ECN.parameter(), INTEGERS.parameter()]);

/// The control that these parameters describe.
pub(super) fn control(params: &Params) -> Control {
    let control = Control::new(millis(TARGET, params), millis(INTERVAL, params), ECN.of(params));
    if INTEGERS.of(params) { control.in_integers() } else { control }
}

/// A parameter in milliseconds as a time.
pub(super) fn millis(parameter: Number, params: &Params) -> Duration {
    Duration::from_secs_f64(parameter.of(params) / 1e3)
}

/// A line whose delay is controlled.
#[derive(Debug)]
pub struct CoDel {
    queue: Fifo,
    control: Control,
}

impl QueueDiscipline for CoDel {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        self.queue.admit(packet, port);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        self.control.next(&mut self.queue, port).map_or(Next::Nothing, Next::Packet)
    }

    fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    /// A queue in which each packet waits 6 ms: bad since the first departure. The first drop comes an interval later,
    /// the next ones after 100/√1, 100/√2, 100/√3 ms (RFC 8289 §3.3).
    #[test]
    fn drops_come_ever_faster() {
        let mut bench = Bench::new(CoDel { queue: Fifo::default(), control: control(&Params::default()) }, 1000);
        assert_eq!(bench.times_of_drops(6, 600), [106, 206, 277, 335, 385, 430, 470, 508, 544, 577]);
    }
}
