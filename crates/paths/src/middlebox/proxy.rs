//! A performance-enhancing proxy that only acknowledges early (RFC 3135 §3.1.2).
//!
//! It knows no MPTCP: its acknowledgments carry neither DSS nor SACK. It buffers nothing, so data lost after its
//! acknowledgment arrives only if the sender keeps data until the DATA_ACK and repeats it (RFC 8684 §3.3.2).

use super::declaration::{Choice, Typed, direction, time, whole};
use super::flow::{Flows, concerns};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use crate::PerDirection;
use anabranch_units::{Duration, Instant, Stream, SubflowSeq};
use anabranch_wire::{Flags, FlowKey, Segment, Timestamps};
use std::collections::VecDeque;

/// Acknowledges data towards their sender before their receiver has, without the options that it does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EarlyAck {
    /// Delay of its acknowledgments: the round trip that the sender sees.
    pub delay: Duration,
    /// Loses every n-th of the segments that it has acknowledged; 0 for none.
    pub lose: u32,
    /// Direction of the data.
    pub direction: Option<Direction>,
}

impl EarlyAck {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "early-ack",
        about: "acknowledges data before their receiver has them, and may lose them",
        meaning: "Acknowledges data before the receiver has them.",
        source: "RFC 3135 §3.1.2; RFC 8684 §3.3.2, §6",
        keys: &[DELAY.key(), LOSE.key(), DIRECTION.key()],
        read: |given| {
            Ok(EarlyAck { delay: DELAY.of(given), lose: LOSE.of(given), direction: DIRECTION.of(given) }.into())
        },
    };
}

/// The default is short beside the delay of a path.
const DELAY: Typed<Duration> =
    time("delay", "Delay of the early acknowledgment; 1ms unless given.", Duration::from_millis(1));
const LOSE: Typed<u32> =
    whole("lose", "Loses every N-th of the segments that it has acknowledged; 0 (none) unless given.", 0);
const DIRECTION: Choice<Option<Direction>> = direction("Direction of the data.");

impl Settings for EarlyAck {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(Proxy::new(self.delay, self.lose, self.direction))
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.delay.is_zero() { Err("an acknowledgment takes time: a delay above zero") } else { Ok(()) }
    }
}

struct Proxy {
    delay: Duration,
    lose: u32,
    direction: Option<Direction>,
    flows: Flows<PerDirection<Way>>,
    /// Acknowledgments to be sent, in the order of time.
    pending: VecDeque<Pending>,
}

/// Data that travel one way, and what is known of their receiver.
#[derive(Clone, Copy, Default)]
struct Way {
    /// All before this has passed.
    next: Option<SubflowSeq>,
    acknowledged: u32,
    receiver: Option<Receiver>,
}

/// Values last seen in the receiver's own segments.
#[derive(Clone, Copy)]
struct Receiver {
    seq: SubflowSeq,
    window: u16,
    clock: Option<u32>,
}

struct Pending {
    at: Instant,
    /// Direction of the data.
    direction: Direction,
    flow: FlowKey,
    ack: SubflowSeq,
    echo: u32,
}

impl Proxy {
    fn new(delay: Duration, lose: u32, direction: Option<Direction>) -> Self {
        Proxy { delay, lose, direction, flows: Flows::new(), pending: VecDeque::new() }
    }
}

impl Element for Proxy {
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        let Proxy { delay, lose, direction: only, flows, pending } = self;
        let ways = flows.of(direction, &segment, || PerDirection { down: Way::default(), up: Way::default() });
        let (syn, rst) = (segment.flags.has(Flags::SYN), segment.flags.has(Flags::RST));
        if !syn && !rst {
            // The window of a SYN is not scaled (RFC 7323 §2.2), so it says nothing here.
            ways.of_mut(direction.reversed()).observe(&segment);
        }
        let way = ways.of_mut(direction);
        if syn {
            way.next = Some(segment.seq + 1);
        }
        if segment.payload.is_empty() || syn || rst || !concerns(*only, direction) {
            return out.forward(direction, segment);
        }
        let Some(next) = way.next else { return out.forward(direction, segment) };
        let end = segment.seq + segment.payload.len() as u64;
        let fresh = !segment.seq.after(next) && end.after(next);
        let ack = if fresh { end } else { next };
        way.next = Some(ack);
        if way.receiver.is_none() {
            return out.forward(direction, segment);
        }
        let echo = segment.options.timestamps().map_or(0, |timestamps| timestamps.value);
        pending.push_back(Pending { at: now + *delay, direction, flow: segment.flow, ack, echo });
        if fresh && *lose > 0 {
            way.acknowledged += 1;
            if way.acknowledged % *lose == 0 {
                return out.drop();
            }
        }
        out.forward(direction, segment);
    }

    fn deadline(&self) -> Instant {
        self.pending.front().map_or(Instant::MAX, |first| first.at)
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Out<'_>) {
        while self.deadline() <= now
            && let Some(due) = self.pending.pop_front()
        {
            let mut answer = Segment::new(due.flow.reversed(), Flags::ACK, SubflowSeq::new(0), due.ack);
            let back = due.direction.reversed();
            let ways = self.flows.of(back, &answer, || PerDirection { down: Way::default(), up: Way::default() });
            let Some(receiver) = ways.of(due.direction).receiver else { continue };
            (answer.seq, answer.window) = (receiver.seq, receiver.window);
            answer.options.set_timestamps(receiver.clock.map(|value| Timestamps { value, echo: due.echo }));
            out.make(back, answer);
        }
    }
}

impl Way {
    /// A segment of the receiver of these data.
    fn observe(&mut self, segment: &Segment) {
        let end = segment.seq + segment.sequence_length();
        let known = self.receiver.filter(|known| known.seq.after(end));
        self.receiver = Some(Receiver {
            seq: known.map_or(end, |known| known.seq),
            window: segment.window,
            clock: segment.options.timestamps().map(|timestamps| timestamps.value),
        });
    }
}
