//! Middleboxes between devices and links: packets become segments and packets again.

use super::packet::{Packet, Pool};
use anabranch_paths::{Chain, Direction, End, MiddleboxOutcome, Moving, NetworkSpec, PacketId, PathSpec};
use anabranch_units::{Instant, Seed};
use anabranch_wire::{Checksums, Segment};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// The middleboxes of all paths.
pub(super) struct Passage {
    /// Chains by path: at the client's end, and at the server's.
    chains: Vec<[Chain; 2]>,
    deadline: Instant,
    left: VecDeque<Moving>,
    scratch: BytesMut,
    pool: Pool,
}

/// A packet that has left the boxes at one end of a path.
pub(super) struct Left {
    pub(super) direction: Direction,
    pub(super) packet: Packet,
    /// Id of the host's packet, if this one carries it on.
    pub(super) id: PacketId,
}

impl Passage {
    pub(super) fn new(spec: &NetworkSpec, seed: Seed, pool: Pool) -> Self {
        let chain = |path: &PathSpec, end| Chain::new(&path.name, &path.middleboxes, end, seed);
        let chains = spec.paths.iter().map(|path| [chain(path, End::Client), chain(path, End::Server)]).collect();
        Passage { chains, deadline: Instant::MAX, left: VecDeque::new(), scratch: BytesMut::new(), pool }
    }

    /// Time at which to call [`Passage::wake`]; [`Instant::MAX`] for never.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns true if there are no boxes at this end.
    #[inline]
    pub(super) fn is_free(&self, path: usize, end: End) -> bool {
        self.chains[path][end as usize].is_empty()
    }

    /// Counts of each middlebox.
    pub(super) fn outcomes(&self) -> Vec<MiddleboxOutcome> {
        self.chains.iter().flatten().flat_map(Chain::outcomes).cloned().collect()
    }

    /// Passes a packet through the boxes at one end of a path. Anything but whole, undamaged TCP segments leaves
    /// unchanged, and so do the bytes of a segment that no box altered.
    pub(super) fn pass(
        &mut self,
        now: Instant,
        (path, end): (usize, End),
        (direction, packet, id): (Direction, Packet, PacketId),
        out: &mut Vec<Left>,
    ) {
        let bytes = Bytes::copy_from_slice(packet.bytes());
        let Ok(segment) = anabranch_wire::parse(&bytes, Checksums::Verify) else {
            return out.push(Left { direction, packet, id });
        };
        let mut left = std::mem::take(&mut self.left);
        let moving = Moving { direction, segment: segment.clone(), id };
        self.chains[path][end as usize].pass(now, moving, &mut left);
        let entered = packet.entered;
        let mut original = Some(packet);
        for Moving { direction, segment: after, id: left_id } in left.drain(..) {
            let is_it = left_id == id;
            if is_it
                && after == segment
                && let Some(packet) = original.take()
            {
                out.push(Left { direction, packet, id });
                continue;
            }
            let entered = if is_it { entered } else { now };
            self.emit(direction, &after, left_id, entered, out);
        }
        self.left = left;
        self.set_deadline();
    }

    /// Lets the boxes at one end of a path act if their time has come.
    pub(super) fn wake(&mut self, now: Instant, path: usize, end: End, out: &mut Vec<Left>) {
        let chain = &mut self.chains[path][end as usize];
        if chain.deadline() > now {
            return;
        }
        let mut left = std::mem::take(&mut self.left);
        chain.on_deadline(now, &mut left);
        for Moving { direction, segment, id } in left.drain(..) {
            self.emit(direction, &segment, id, now, out);
        }
        self.left = left;
        self.set_deadline();
    }

    /// Writes a segment; one that no packet can hold (merged beyond 64 KB, say) ends here.
    fn emit(&mut self, direction: Direction, segment: &Segment, id: PacketId, entered: Instant, out: &mut Vec<Left>) {
        self.scratch.clear();
        match anabranch_wire::emit(segment, &mut self.scratch) {
            Ok(()) => out.push(Left { direction, packet: self.pool.packet(&self.scratch, entered), id }),
            Err(error) => tracing::warn!(%error, ?segment, "a middlebox made a segment that has no bytes"),
        }
    }

    fn set_deadline(&mut self) {
        self.deadline = self.chains.iter().flatten().map(Chain::deadline).min().unwrap_or(Instant::MAX);
    }
}
