//! Per-flow state of boxes.

use crate::Direction;
use anabranch_wire::{FlowKey, Segment};
use std::collections::BTreeMap;

/// State for each flow, found by segments of either direction. Flows are as many as the run opens.
pub(super) struct Flows<T>(BTreeMap<FlowKey, T>);

impl<T> Flows<T> {
    pub(super) fn new() -> Self {
        Flows(BTreeMap::new())
    }

    /// The state of the flow that a segment travelling `direction` belongs to; made by `make` if it is the first.
    pub(super) fn of(&mut self, direction: Direction, segment: &Segment, make: impl FnOnce() -> T) -> &mut T {
        self.0.entry(name(direction, segment)).or_insert_with(make)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }
}

/// A flow is called as its client sees it.
fn name(direction: Direction, segment: &Segment) -> FlowKey {
    match direction {
        Direction::Up => segment.flow,
        Direction::Down => segment.flow.reversed(),
    }
}

/// Returns true if a box restricted to `only` acts on a segment that travels `direction`.
pub(super) fn concerns(only: Option<Direction>, direction: Direction) -> bool {
    only.is_none_or(|only| only == direction)
}
