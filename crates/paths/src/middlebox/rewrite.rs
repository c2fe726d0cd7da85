//! Gives each flow initial sequence numbers of its own.

use super::flow::Flows;
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use crate::PerDirection;
use anabranch_units::{Instant, Stream, SubflowSeq};
use anabranch_wire::{Flags, SackBlock, SackBlocks, Segment};

/// Gives each flow random initial sequence numbers of its own, both ways, SACK blocks included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RewriteSequence;

impl RewriteSequence {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "rewrite-sequence",
        about: "gives each flow random initial sequence numbers",
        meaning: "Gives each flow random initial sequence numbers of its own.",
        source: "Honda 2011; RFC 8684 §3.3.1, §6",
        keys: &[],
        read: |_| Ok(RewriteSequence.into()),
    };
}

impl Settings for RewriteSequence {
    fn build(&self, stream: Stream) -> Box<dyn Element> {
        Box::new(Rewrite::new(stream))
    }
}

/// Adds to the numbers of each direction what was drawn for it, and takes it off those that come back.
struct Rewrite {
    chance: Stream,
    flows: Flows<PerDirection<u32>>,
}

impl Rewrite {
    fn new(chance: Stream) -> Self {
        Rewrite { chance, flows: Flows::new() }
    }
}

impl Element for Rewrite {
    fn pass(&mut self, _now: Instant, direction: Direction, mut segment: Segment, out: &mut Out<'_>) {
        let Rewrite { chance, flows } = self;
        let offsets = flows.of(direction, &segment, || PerDirection { down: chance.next_u32(), up: chance.next_u32() });
        let (own, back) = (*offsets.of(direction), *offsets.of(direction.reversed()));
        let restored = |seq: SubflowSeq| seq + u64::from(back.wrapping_neg());
        segment.seq = segment.seq + u64::from(own);
        if segment.flags.has(Flags::ACK) {
            segment.ack = restored(segment.ack);
        }
        let mut blocks = SackBlocks::default();
        for block in segment.options.sack().as_slice() {
            blocks.push(SackBlock { start: restored(block.start), end: restored(block.end) });
        }
        segment.options.set_sack(blocks);
        out.forward_altered(direction, segment);
    }
}
