//! Merges segments that continue each other.

use super::declaration::{Choice, Typed, direction, size, time};
use super::flow::{Flows, concerns};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use crate::PerDirection;
use anabranch_units::{Duration, Instant, Stream};
use anabranch_wire::{Flags, Segment};
use bytes::BytesMut;

/// Merges a segment with the next if that continues it; the first one's options stay, the other's are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coalesce {
    /// Most payload of a merged segment \[B\].
    pub size: u16,
    /// Longest time that a segment is held for the next.
    pub wait: Duration,
    /// The direction of the segments.
    pub direction: Option<Direction>,
}

impl Coalesce {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "coalesce",
        about: "merges segments; the first one's options stay",
        meaning: "Merges segments that continue each other; the first one's options stay.",
        source: "Honda 2011; RFC 8684 §6",
        keys: &[SIZE.key(), WAIT.key(), DIRECTION.key()],
        read: |given| {
            let (size, wait, direction) = (SIZE.of(given), WAIT.of(given), DIRECTION.of(given));
            Ok(Coalesce { size, wait, direction }.into())
        },
    };
}

/// The default is the payload of two full segments.
const SIZE: Typed<u16> = size("size", "Maximum payload of a merged segment; 2920B unless given.", 2920);
/// The default is short beside the delay of a path.
const WAIT: Typed<Duration> =
    time("wait", "Time that a segment is held for the next one; 1ms unless given.", Duration::from_millis(1));
const DIRECTION: Choice<Option<Direction>> = direction("The direction of the segments.");

/// Leaves room for headers in the 16 bits of an IP packet's length.
const LARGEST_MERGED: u16 = 65_000;

impl Settings for Coalesce {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(Merger::new(*self))
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.size > LARGEST_MERGED { Err("a merged segment fits an IP packet: at most 65000 bytes") } else { Ok(()) }
    }
}

struct Merger {
    settings: Coalesce,
    held: Flows<PerDirection<Option<Held>>>,
    /// The earliest `until` of what is held.
    deadline: Instant,
}

struct Held {
    segment: Segment,
    merged: bool,
    until: Instant,
}

impl Merger {
    fn new(settings: Coalesce) -> Self {
        Merger { settings, held: Flows::new(), deadline: Instant::MAX }
    }
}

impl Element for Merger {
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        if !concerns(self.settings.direction, direction) {
            return out.forward(direction, segment);
        }
        let place = self.held.of(direction, &segment, || PerDirection { down: None, up: None }).of_mut(direction);
        let segment = match place.take() {
            Some(held) if held.goes_with(&segment, self.settings.size) => {
                // The options that differ from those of the held segment are lost here.
                out.drop();
                *place = Some(held.merge(segment));
                return;
            }
            Some(held) => {
                held.release(direction, out);
                segment
            }
            None => segment,
        };
        if !may_continue(&segment) || segment.payload.len() >= usize::from(self.settings.size) {
            return out.forward(direction, segment);
        }
        let until = now + self.settings.wait;
        *place = Some(Held { segment, merged: false, until });
        self.deadline = self.deadline.min(until);
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Out<'_>) {
        self.deadline = Instant::MAX;
        for places in self.held.iter_mut() {
            for direction in [Direction::Down, Direction::Up] {
                let place = places.of_mut(direction);
                match place.take() {
                    Some(held) if held.until <= now => held.release(direction, out),
                    held => *place = held,
                }
                let until = place.as_ref().map_or(Instant::MAX, |held| held.until);
                self.deadline = self.deadline.min(until);
            }
        }
    }
}

impl Held {
    /// Returns true if `next` begins at the end of this one and both fit one segment.
    fn goes_with(&self, next: &Segment, size: u16) -> bool {
        let length = self.segment.payload.len();
        let plain = !next.payload.is_empty() && !next.flags.has(Flags::SYN) && !next.flags.has(Flags::RST);
        plain && next.seq == self.segment.seq + length as u64 && length + next.payload.len() <= usize::from(size)
    }

    /// One segment with the payload of both, the options of the first and the newer acknowledgment.
    fn merge(mut self, next: Segment) -> Held {
        let mut payload = BytesMut::with_capacity(self.segment.payload.len() + next.payload.len());
        payload.extend_from_slice(&self.segment.payload);
        payload.extend_from_slice(&next.payload);
        self.segment.payload = payload.freeze().into();
        self.segment.flags = self.segment.flags.with(next.flags);
        (self.segment.ack, self.segment.window) = (next.ack, next.window);
        self.merged = true;
        self
    }

    fn release(self, direction: Direction, out: &mut Out<'_>) {
        out.release(direction, self.segment, self.merged);
    }
}

/// Data with more to come.
fn may_continue(segment: &Segment) -> bool {
    let last = [Flags::SYN, Flags::FIN, Flags::RST, Flags::URG].into_iter().any(|flag| segment.flags.has(flag));
    !segment.payload.is_empty() && !last
}
