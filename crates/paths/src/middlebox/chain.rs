//! The boxes at one end of a path.

use super::{Element, End, MiddleboxOutcome, MiddleboxSpec, Moving, Out};
use crate::Direction;
use anabranch_units::{Instant, Seed};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Boxes in the order from the client to the server. What travels up enters at the front, what travels down at the
/// back.
#[derive(Default)]
pub struct Chain {
    boxes: Vec<Placed>,
    /// Segments between boxes, first come first served, each with the box that is next.
    between: VecDeque<(usize, Moving)>,
    /// Segments that a box has just released.
    emitted: Vec<Moving>,
    deadline: Option<Instant>,
}

struct Placed {
    element: Box<dyn Element>,
    counts: MiddleboxOutcome,
}

impl Chain {
    /// Those of the path called `path` that stand at `end`.
    pub fn new(path: &str, specs: &[MiddleboxSpec], end: End, seed: Seed) -> Self {
        let place = |(number, spec): (usize, &MiddleboxSpec)| {
            let name = name(path, number, spec, specs);
            let element = spec.kind.build(seed.stream(&format!("middlebox/{name}")));
            Placed { element, counts: MiddleboxOutcome { name, altered: 0, dropped: 0, made: 0 } }
        };
        let here = specs.iter().enumerate().filter(|(_, spec)| spec.end == end);
        Chain { boxes: here.map(place).collect(), ..Chain::default() }
    }

    /// Returns true if the chain has no boxes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// A segment comes from outside. What leaves on either side is added to `left`.
    pub fn pass(&mut self, now: Instant, moving: Moving, left: &mut VecDeque<Moving>) {
        if self.is_empty() {
            return left.push_back(moving);
        }
        let first = match moving.direction {
            Direction::Up => 0,
            Direction::Down => self.boxes.len() - 1,
        };
        self.between.push_back((first, moving));
        self.work(now, left);
    }

    /// Time at which to call `on_deadline`; [`Instant::MAX`] for never.
    pub fn deadline(&self) -> Instant {
        self.deadline.unwrap_or(Instant::MAX)
    }

    /// Time has passed.
    pub fn on_deadline(&mut self, now: Instant, left: &mut VecDeque<Moving>) {
        for index in 0..self.boxes.len() {
            let Placed { element, counts } = &mut self.boxes[index];
            if element.deadline() <= now {
                element.on_deadline(now, &mut Out::new(&mut self.emitted, counts));
                self.hand_on(index, left);
            }
        }
        self.work(now, left);
    }

    /// Returns the client-side address of the address that the server knows as `outside`.
    pub fn inside(&self, outside: SocketAddr) -> SocketAddr {
        self.boxes.iter().rev().fold(outside, |address, placed| placed.element.inside(address))
    }

    /// Counts of each box.
    pub fn outcomes(&self) -> impl Iterator<Item = &MiddleboxOutcome> {
        self.boxes.iter().map(|placed| &placed.counts)
    }

    fn work(&mut self, now: Instant, left: &mut VecDeque<Moving>) {
        while let Some((index, Moving { direction, segment, id })) = self.between.pop_front() {
            let Placed { element, counts } = &mut self.boxes[index];
            element.pass(now, direction, segment, &mut Out { id, ..Out::new(&mut self.emitted, counts) });
            self.hand_on(index, left);
        }
        self.deadline = self.boxes.iter().map(|placed| placed.element.deadline()).min();
    }

    /// Passes what box `index` has let go to its neighbours, or to the outside.
    fn hand_on(&mut self, index: usize, left: &mut VecDeque<Moving>) {
        for moving in self.emitted.drain(..) {
            let next = match moving.direction {
                Direction::Up => Some(index + 1).filter(|next| *next < self.boxes.len()),
                Direction::Down => index.checked_sub(1),
            };
            match next {
                Some(next) => self.between.push_back((next, moving)),
                None => left.push_back(moving),
            }
        }
    }
}

/// Names a box after path and kind, with its number among those of its kind if it is not the first.
fn name(path: &str, number: usize, spec: &MiddleboxSpec, specs: &[MiddleboxSpec]) -> String {
    let kind = spec.kind.name();
    match specs[..number].iter().filter(|other| other.kind.name() == kind).count() {
        0 => format!("{path}/{kind}"),
        before => format!("{path}/{kind}-{}", before + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Middlebox, PacketId, Split, SplitOptions};
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Flags, FlowKey, Segment};

    fn split(size: u16) -> MiddleboxSpec {
        MiddleboxSpec::new(Middlebox::Split(Split { size, options: SplitOptions::Copied, direction: None }))
    }

    /// The order shows in the sizes: 10 bytes through boxes of 6 and then 4 are 4, 2, 4; the other way round 4, 4, 2.
    #[test]
    fn boxes_stand_in_order_from_the_client_to_the_server() {
        let specs = [split(6), MiddleboxSpec { end: End::Server, ..split(1) }, split(4)];
        let mut chain = Chain::new("p", &specs, End::Client, Seed(1));
        assert_eq!(chain.outcomes().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["p/split", "p/split-3"]);
        for (direction, expected) in [(Direction::Up, [4, 2, 4]), (Direction::Down, [4, 4, 2])] {
            let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
            let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(0), SubflowSeq::new(0));
            segment.payload = bytes::Bytes::from_static(&[0; 10]).into();
            let mut left = VecDeque::new();
            chain.pass(Instant::ZERO, Moving { direction, segment, id: PacketId(7) }, &mut left);
            assert!(left.iter().all(|piece| piece.direction == direction));
            assert_eq!(left.iter().map(|piece| piece.segment.payload.len()).collect::<Vec<_>>(), expected);
            assert_eq!(
                left.iter().map(|piece| piece.id.0).collect::<Vec<_>>(),
                [7, 0, 0],
                "one of them is what was sent"
            );
        }
    }
}
