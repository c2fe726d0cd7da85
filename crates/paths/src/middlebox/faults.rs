//! Faults at packets given by number: a plan instead of random draws.

use super::declaration::{Choice, Given, Typed, direction, segments, time};
use super::flow::concerns;
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use crate::PerDirection;
use anabranch_units::{Duration, Instant, Stream};
use anabranch_wire::Segment;
use std::collections::BTreeMap;

/// Applies faults to single segments, given by number instead of drawn at random.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    /// Each segment at most once, counted from 0 in its direction, whatever flow it belongs to.
    pub plan: Vec<(u64, Fault)>,
    /// The time that a delayed segment is held, and a swapped one that none follows.
    pub wait: Duration,
    /// The direction of the segments.
    pub direction: Option<Direction>,
}

/// Fate of one segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The segment is lost.
    Drop,
    /// The segment arrives twice.
    Duplicate,
    /// The segment arrives after the next one of its direction.
    Swap,
    /// The segment is delayed, while others pass.
    Delay,
}

impl Faults {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "faults",
        about: "drops, repeats, swaps or delays single segments, named by their number",
        meaning: "Treats single segments, given by their numbers: counted from 0 in each direction.",
        source: "for tests and for experiments that leave nothing to chance",
        keys: &[DROP.key(), DUPLICATE.key(), SWAP.key(), DELAY.key(), WAIT.key(), DIRECTION.key()],
        read: |given| Ok(Faults { plan: plan(given)?, wait: WAIT.of(given), direction: DIRECTION.of(given) }.into()),
    };
}

const DROP: Typed<Vec<u64>> = segments("drop", "Segments that are lost.");
const DUPLICATE: Typed<Vec<u64>> = segments("duplicate", "Segments that arrive twice.");
const SWAP: Typed<Vec<u64>> = segments("swap", "Segments that arrive after the next one.");
const DELAY: Typed<Vec<u64>> = segments("delay", "Segments that are delayed by `wait`.");
/// The default is beyond the first retransmission timeout (RFC 6298 §2.1).
const WAIT: Typed<Duration> = time(
    "wait",
    "Delay of a segment in `delay`, and of one in `swap` that no other follows; 3s unless given.",
    Duration::from_secs(3),
);
const DIRECTION: Choice<Option<Direction>> = direction("The direction of the segments.");

/// Returns the plan in the order of numbers.
fn plan(given: &Given) -> Result<Vec<(u64, Fault)>, String> {
    let all = [(DROP, Fault::Drop), (DUPLICATE, Fault::Duplicate), (SWAP, Fault::Swap), (DELAY, Fault::Delay)];
    let each = |(key, fault): (Typed<Vec<u64>>, Fault)| key.of(given).into_iter().map(move |number| (number, fault));
    let mut plan: Vec<_> = all.into_iter().flat_map(each).collect();
    plan.sort_unstable();
    match plan.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(format!("one fault for each segment, but {} meets two", pair[0].0)),
        None => Ok(plan),
    }
}

impl Settings for Faults {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(Planned::new(&self.plan, self.wait, self.direction))
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.wait.is_zero() { Err("a delay above zero") } else { Ok(()) }
    }
}

/// Counts the segments of each direction, and does to those in the plan what it says.
struct Planned {
    plan: BTreeMap<u64, Fault>,
    wait: Duration,
    direction: Option<Direction>,
    seen: PerDirection<u64>,
    held: Vec<Held>,
}

/// A segment that leaves later than it came.
struct Held {
    /// Time at which it is released at the latest.
    until: Instant,
    /// Once the next of its direction has come.
    swapped: bool,
    direction: Direction,
    segment: Segment,
}

impl Planned {
    fn new(plan: &[(u64, Fault)], wait: Duration, direction: Option<Direction>) -> Self {
        let seen = PerDirection::default();
        Planned { plan: plan.iter().copied().collect(), wait, direction, seen, held: Vec::new() }
    }

    fn release(&mut self, out: &mut Out<'_>, due: impl Fn(&Held) -> bool) {
        for held in self.held.extract_if(.., |held| due(held)) {
            out.release(held.direction, held.segment, false);
        }
    }
}

impl Element for Planned {
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        if !concerns(self.direction, direction) {
            return out.forward(direction, segment);
        }
        let seen = self.seen.of_mut(direction);
        let fault = self.plan.get(seen).copied();
        *seen += 1;
        let earlier = self.held.len();
        match fault {
            None => out.forward(direction, segment),
            Some(Fault::Drop) => out.drop(),
            Some(Fault::Duplicate) => {
                out.forward(direction, segment.clone());
                out.make(direction, segment);
            }
            Some(fault @ (Fault::Swap | Fault::Delay)) => {
                let (until, swapped) = (now + self.wait, fault == Fault::Swap);
                self.held.push(Held { until, swapped, direction, segment });
            }
        }
        if earlier > 0 {
            let newest = self.held.split_off(earlier);
            self.release(out, |held| held.swapped && held.direction == direction);
            self.held.extend(newest);
        }
    }

    fn deadline(&self) -> Instant {
        self.held.iter().map(|held| held.until).min().unwrap_or(Instant::MAX)
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Out<'_>) {
        self.release(out, |held| held.until <= now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MiddleboxOutcome, Moving, through};
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Flags, FlowKey};

    fn segment(number: u64) -> Segment {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        Segment::new(flow, Flags::ACK, SubflowSeq::new(number as u32), SubflowSeq::new(0))
    }

    fn numbers(left: &[Moving]) -> Vec<u32> {
        left.iter().map(|moving| moving.segment.seq.get()).collect()
    }

    #[test]
    fn the_segments_of_the_plan_meet_their_faults_and_no_others() {
        let wait = Duration::from_secs(3);
        let plan = [(1, Fault::Drop), (2, Fault::Duplicate), (4, Fault::Swap), (6, Fault::Delay)];
        let mut faults = Planned::new(&plan, wait, Some(Direction::Up));
        let mut left = Vec::new();
        for number in 0..8 {
            left.extend(through(&mut faults, Instant::ZERO, Direction::Up, segment(number)));
            let down = through(&mut faults, Instant::ZERO, Direction::Down, segment(number));
            assert_eq!(numbers(&down), [number as u32], "the other way nothing happens");
        }
        assert_eq!(numbers(&left), [0, 2, 2, 3, 5, 4, 7]);
        assert_eq!(faults.deadline(), Instant::ZERO + wait);
        let (mut late, mut counts) = (Vec::new(), MiddleboxOutcome::default());
        faults.on_deadline(Instant::ZERO + wait, &mut Out::new(&mut late, &mut counts));
        assert_eq!(numbers(&late), [6]);
        assert_eq!(faults.deadline(), Instant::MAX);
    }

    /// The first of two consecutive swaps is released when the second has come; the last is released at the deadline.
    #[test]
    fn a_swap_is_over_once_the_next_has_come_or_time_is_up() {
        let mut faults = Planned::new(&[(0, Fault::Swap), (1, Fault::Swap)], Duration::from_secs(1), None);
        assert!(through(&mut faults, Instant::ZERO, Direction::Up, segment(0)).is_empty());
        assert_eq!(numbers(&through(&mut faults, Instant::ZERO, Direction::Up, segment(1))), [0]);
        let (mut late, mut counts) = (Vec::new(), MiddleboxOutcome::default());
        faults.on_deadline(Instant::ZERO + Duration::from_secs(1), &mut Out::new(&mut late, &mut counts));
        assert_eq!(numbers(&late), [1]);
    }
}
