//! Cuts segments into pieces.

use super::flow::concerns;
use super::{Element, Out, SplitOptions};
use crate::Direction;
use anabranch_units::Instant;
use anabranch_wire::{Flags, Segment};

pub(super) struct Split {
    pub(super) size: u16,
    pub(super) options: SplitOptions,
    pub(super) direction: Option<Direction>,
}

impl Element for Split {
    fn pass(&mut self, _now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        let (size, length) = (usize::from(self.size), segment.payload.len());
        if length <= size || !concerns(self.direction, direction) {
            return out.forward(direction, segment);
        }
        for start in (0..length).step_by(size) {
            let end = (start + size).min(length);
            let mut piece = segment.clone();
            piece.seq = segment.seq + start as u64;
            piece.payload = segment.payload.slice(start..end);
            if end < length {
                piece.flags = Flags(piece.flags.0 & !Flags::FIN.with(Flags::PSH).0);
            }
            if start > 0 && self.options == SplitOptions::First {
                // Timestamps stay: once negotiated, a segment without them is not acceptable (RFC 7323 §3.2).
                piece.options.strip_mptcp();
            }
            out.forward_altered(direction, piece);
        }
    }
}
