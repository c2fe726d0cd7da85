//! Merges segments that continue each other.

use super::flow::{Flows, concerns};
use super::{Element, Out};
use crate::Direction;
use crate::PerDirection;
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, Segment};
use bytes::BytesMut;

pub(super) struct Coalesce {
    size: u16,
    wait: Duration,
    direction: Option<Direction>,
    held: Flows<PerDirection<Option<Held>>>,
    /// The earliest `until` of what is held.
    deadline: Instant,
}

struct Held {
    segment: Segment,
    merged: bool,
    until: Instant,
}

impl Coalesce {
    pub(super) fn new(size: u16, wait: Duration, direction: Option<Direction>) -> Self {
        Coalesce { size, wait, direction, held: Flows::new(), deadline: Instant::MAX }
    }
}

impl Element for Coalesce {
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        if !concerns(self.direction, direction) {
            return out.forward(direction, segment);
        }
        let place = self.held.of(direction, &segment, || PerDirection { down: None, up: None }).of_mut(direction);
        let segment = match place.take() {
            Some(held) if held.goes_with(&segment, self.size) => {
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
        if !may_continue(&segment) || segment.payload.len() >= usize::from(self.size) {
            return out.forward(direction, segment);
        }
        let until = now + self.wait;
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
        self.segment.payload = payload.freeze();
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
