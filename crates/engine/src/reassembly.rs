//! Bytes that arrived before the bytes in front of them.
//!
//! Contiguous bytes form a *run*; a run is a chain of chunks, each one arrived payload. Runs stand sorted in blocks,
//! chunks in a slab with a free list, so that growing a run at either end, joining two and taking from the front cost
//! O(1) after a binary search over the runs, of which there are as many as holes. Payloads are sliced, not copied, but
//! for small neighbours, which become one chunk. What is held is never replaced by a later copy (RFC 9293 §3.10.7.4
//! trims what was already received).
//!
//! Two bounds keep memory within a small multiple of the payload: bytes, and chunks, whose mean size has a floor. Where
//! a bound is reached, what is nearest to the bytes that are missing stays: the farthest goes first. RFC 2018 §8 lets a
//! receiver discard what it has reported.

use crate::blocks::Blocks;
use bytes::Bytes;

/// How much may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Payload bytes.
    pub bytes: u64,
    /// Chunks, so that a peer who sends single bytes cannot make the bookkeeping outgrow the payload.
    pub fragments: usize,
}

impl Limits {
    /// Limits for a receive buffer of so many bytes: all that the window admits in pieces of at least
    /// [`LEAST_MEAN`] bytes on average, and a few in any case.
    pub fn of_buffer(bytes: u64) -> Self {
        let fragments = usize::try_from(bytes / LEAST_MEAN).unwrap_or(usize::MAX);
        Limits { bytes, fragments: fragments.max(FEW) }
    }
}

/// The store of one sequence space, data level or subflow level.
#[derive(Clone, Debug)]
pub struct Reassembly {
    limits: Limits,
    runs: Blocks<Run>,
    slab: Vec<Chunk>,
    free: u32,
    bytes: u64,
    fragments: usize,
    dropped: u64,
    /// One position in each of the runs that grew last, latest first; at most one per run.
    recent: [u64; RECENT],
    recent_len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
struct Chunk {
    start: u64,
    payload: Bytes,
    /// Behind it in its run, or in the free list.
    next: u32,
    /// In front of it in its run; says nothing of the first.
    before: u32,
}

impl Reassembly {
    /// An empty store; allocates nothing.
    pub fn new(limits: Limits) -> Self {
        Reassembly {
            limits,
            runs: Blocks::new(),
            slab: Vec::new(),
            free: NONE,
            bytes: 0,
            fragments: 0,
            dropped: 0,
            recent: [0; RECENT],
            recent_len: 0,
        }
    }

    /// Stores what of `payload`, which begins at `start`, is not held yet; answers how many bytes that was.
    ///
    /// Where that would exceed a limit, what lies beyond the payload makes room for it. If that is not enough the
    /// payload is refused as a whole: stores nothing and answers `None`.
    pub fn insert(&mut self, start: u64, payload: Bytes) -> Option<u64> {
        let end = start.checked_add(payload.len() as u64)?;
        if start == end {
            return Some(0);
        }
        let (mut i, mut j) = self.touching(start, end);
        let (new_bytes, new_chunks) = self.gaps(i, j, start, end);
        if new_bytes == 0 {
            // A copy of what is held: it is still the latest arrival, which the first SACK block has to name.
            let run = self.runs[i];
            self.touch(run.start, run.end, end - 1);
            return Some(0);
        }
        if self.exceeds(new_bytes, new_chunks) {
            while self.exceeds(new_bytes, new_chunks) {
                if !self.drop_last(end) {
                    self.dropped += end - start;
                    return None;
                }
            }
            (i, j) = self.touching(start, end);
        }
        let run = self.weave(i, j, start, end, payload);
        if i == j {
            self.runs.insert(i, run);
        } else {
            self.runs[i] = run;
            if j - i > 1 {
                self.runs.remove(i + 1, j);
            }
        }
        self.touch(run.start, run.end, end - 1);
        Some(new_bytes)
    }

    /// Drops every chunk that reaches beyond `edge`.
    pub fn drop_beyond(&mut self, edge: u64) {
        while self.runs.back().is_some_and(|last| last.end > edge) {
            self.drop_last(0);
        }
    }

    /// Takes the chunk at `next` off, trimmed to begin there, if those bytes have arrived. Drops all below `next`.
    pub fn pop(&mut self, next: u64) -> Option<(u64, Bytes)> {
        loop {
            let run = *self.runs.front()?;
            if run.start > next {
                return None;
            }
            let index = run.head as usize;
            let chunk = &mut self.slab[index];
            let payload = std::mem::take(&mut chunk.payload);
            let start = chunk.start;
            let end = start + payload.len() as u64;
            let follower = std::mem::replace(&mut chunk.next, self.free);
            self.free = run.head;
            self.bytes -= payload.len() as u64;
            self.fragments -= 1;
            if follower == NONE {
                self.runs.pop_front();
            } else if let Some(first) = self.runs.front_mut() {
                first.start = end;
                first.head = follower;
            }
            if end > next {
                let payload = if start == next { payload } else { payload.slice((next - start) as usize..) };
                return Some((next, payload));
            }
        }
    }

    /// Up to `max` (at most 4) runs for a SACK option: first the one that grew last, then those that grew before it
    /// (RFC 2018 §4), then the highest. Answers how many it wrote into `out`.
    pub fn sack_blocks(&self, max: usize, out: &mut [(u64, u64); 4]) -> usize {
        let max = max.min(out.len()).min(self.runs.len());
        let mut n = 0;
        for &position in &self.recent[..self.recent_len] {
            if n == max {
                return n;
            }
            if let Some(run) = self.run_at(position) {
                out[n] = (run.start, run.end);
                n += 1;
            }
        }
        // Runs that fell out of the short memory: the highest arrived last, unless the network reordered.
        for run in self.runs.iter().rev() {
            if n == max {
                break;
            }
            if !out[..n].contains(&(run.start, run.end)) {
                out[n] = (run.start, run.end);
                n += 1;
            }
        }
        n
    }

    /// The runs from the lowest to the highest.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|run| (run.start, run.end))
    }

    /// Payload bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Chunks held.
    pub fn fragments(&self) -> usize {
        self.fragments
    }

    /// Bytes refused, or dropped later, because of a limit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Nothing held?
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs `i..j` that overlap or touch `start..end`; with none, `i == j` is where a new run belongs.
    fn touching(&self, start: u64, end: u64) -> (usize, usize) {
        let n = self.runs.len();
        match self.runs.back() {
            None => (0, 0),
            Some(last) if start > last.end => (n, n),
            Some(last) if start >= last.start => (n - 1, n),
            Some(_) => {
                let i = self.runs.partition_point(|run| run.end < start);
                // Few runs are touched: looking on from `i` beats a second search.
                let mut j = i;
                while self.runs.get(j).is_some_and(|run| run.start <= end) {
                    j += 1;
                }
                (i, j)
            }
        }
    }

    /// Bytes and pieces of `start..end` that none of the runs `i..j` holds.
    fn gaps(&self, i: usize, j: usize, start: u64, end: u64) -> (u64, usize) {
        let (mut cursor, mut bytes, mut pieces) = (start, 0, 0);
        for run in (i..j).map(|k| self.runs[k]) {
            if cursor < run.start {
                bytes += run.start - cursor;
                pieces += 1;
            }
            cursor = cursor.max(run.end);
        }
        if cursor < end {
            bytes += end - cursor;
            pieces += 1;
        }
        (bytes, pieces)
    }

    /// One chain out of the runs `i..j` and the pieces of the payload that fill the gaps between and around them.
    fn weave(&mut self, i: usize, j: usize, start: u64, end: u64, payload: Bytes) -> Run {
        let mut woven = Run { start, end, head: NONE, tail: NONE };
        let mut cursor = start;
        for k in i..j {
            let run = self.runs[k];
            if cursor < run.start {
                let piece = self.add(cursor, payload.slice((cursor - start) as usize..(run.start - start) as usize));
                self.join(&mut woven, piece, piece);
            }
            self.join(&mut woven, run.head, run.tail);
            woven.start = woven.start.min(run.start);
            woven.end = woven.end.max(run.end);
            cursor = cursor.max(run.end);
        }
        if cursor < end {
            let rest = if cursor == start { payload } else { payload.slice((cursor - start) as usize..) };
            let piece = self.add(cursor, rest);
            self.join(&mut woven, piece, piece);
        }
        woven
    }

    /// Puts the chain from `head` to `tail` behind the run. Two neighbours that are small together become one chunk, so
    /// that no two in a row have a mean below [`LEAST_MEAN`].
    fn join(&mut self, run: &mut Run, head: u32, tail: u32) {
        if run.head == NONE {
            run.head = head;
            run.tail = tail;
            return;
        }
        let [last, first] = [run.tail, head].map(|index| self.slab[index as usize].payload.len() as u64);
        if last + first <= 2 * LEAST_MEAN {
            return self.fuse(run, head, tail);
        }
        self.slab[run.tail as usize].next = head;
        self.slab[head as usize].before = run.tail;
        run.tail = tail;
    }

    /// Puts the chain from `head` to `tail` behind the run, and the payload of `head` into the run's last chunk.
    fn fuse(&mut self, run: &mut Run, head: u32, tail: u32) {
        let first = &mut self.slab[head as usize];
        let payload = std::mem::take(&mut first.payload);
        let follower = std::mem::replace(&mut first.next, self.free);
        self.free = head;
        self.fragments -= 1;
        let last = &mut self.slab[run.tail as usize];
        last.payload = [&last.payload[..], &payload[..]].concat().into();
        last.next = follower;
        if follower != NONE {
            self.slab[follower as usize].before = run.tail;
            run.tail = tail;
        }
    }

    /// Tells whether so much more would be too much.
    fn exceeds(&self, bytes: u64, fragments: usize) -> bool {
        self.bytes + bytes > self.limits.bytes || self.fragments + fragments > self.limits.fragments
    }

    /// Drops the farthest chunk if it begins at `edge` or beyond; false if there is none.
    fn drop_last(&mut self, edge: u64) -> bool {
        let Some(run) = self.runs.back_mut() else { return false };
        let index = run.tail;
        let chunk = &mut self.slab[index as usize];
        if chunk.start < edge {
            return false;
        }
        let length = chunk.payload.len() as u64;
        self.bytes -= length;
        self.dropped += length;
        self.fragments -= 1;
        chunk.payload = Bytes::new();
        chunk.next = self.free;
        self.free = index;
        if run.head == index {
            self.runs.pop_back();
        } else {
            run.end = chunk.start;
            run.tail = chunk.before;
            self.slab[run.tail as usize].next = NONE;
        }
        true
    }

    fn add(&mut self, start: u64, payload: Bytes) -> u32 {
        self.bytes += payload.len() as u64;
        self.fragments += 1;
        let chunk = Chunk { start, payload, next: NONE, before: NONE };
        if self.free == NONE {
            self.slab.push(chunk);
            return (self.slab.len() - 1) as u32;
        }
        let index = self.free;
        let slot = &mut self.slab[index as usize];
        self.free = slot.next;
        *slot = chunk;
        index
    }

    fn run_at(&self, position: u64) -> Option<&Run> {
        let i = self.runs.partition_point(|run| run.end <= position);
        self.runs.get(i).filter(|run| run.start <= position)
    }

    /// Remembers that the run `start..end` grew last, by one `position` in it: a run keeps its last bytes longest.
    fn touch(&mut self, start: u64, end: u64, position: u64) {
        let mut kept = [0; RECENT];
        kept[0] = position;
        let mut n = 1;
        for &other in &self.recent[..self.recent_len] {
            let gone = self.runs.front().is_none_or(|first| other < first.start);
            if n < RECENT && !gone && (other < start || other >= end) {
                kept[n] = other;
                n += 1;
            }
        }
        self.recent = kept;
        self.recent_len = n;
    }
}

/// Mean size of what is held out of order, at least, when all that a window admits is: half of the smallest segment
/// that every host takes (RFC 9293 §3.7.1: 536 B, less options), so that no honest window is cut short. Bookkeeping and
/// payload then cost about the same.
pub(crate) const LEAST_MEAN: u64 = 256;
/// Chunks that any buffer may hold, however small.
const FEW: usize = 1 << 10;
/// Twice what a SACK option can name, so that enough are left when some of them merge.
const RECENT: usize = 8;
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const WIDE: Limits = Limits { bytes: 1 << 20, fragments: 1 << 10 };

    fn bytes(start: u64, len: u64) -> Bytes {
        (start..start + len).map(|x| x as u8).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_payload_over_several_gaps_fills_each_of_them() {
        let mut r = Reassembly::new(WIDE);
        for start in [1000, 3000, 5000] {
            assert_eq!(r.insert(start, bytes(start, 1000)), Some(1000));
        }
        assert_eq!(r.insert(500, bytes(500, 6000)), Some(3000));
        assert_eq!(r.runs().collect::<Vec<_>>(), [(500, 6500)]);
        assert_eq!((r.bytes(), r.fragments()), (6000, 7));
        let mut next = 800;
        while let Some((start, payload)) = r.pop(next) {
            assert_eq!(start, next);
            assert_eq!(payload, bytes(start, payload.len() as u64));
            next += payload.len() as u64;
        }
        assert_eq!((next, r.is_empty(), r.fragments(), r.bytes()), (6500, true, 0, 0));
    }

    #[test]
    fn the_first_sack_block_holds_the_latest_arrival() {
        // RFC 2018 §4, and its second example turned round: every other segment arrives.
        let mut r = Reassembly::new(WIDE);
        let mut out = [(0, 0); 4];
        for start in [10, 30, 50, 70, 90] {
            r.insert(start, bytes(start, 10));
        }
        assert_eq!(r.sack_blocks(3, &mut out), 3);
        assert_eq!(out[..3], [(90, 100), (70, 80), (50, 60)]);
        r.insert(20, bytes(20, 5));
        assert_eq!(r.sack_blocks(4, &mut out), 4);
        assert_eq!(out, [(10, 25), (90, 100), (70, 80), (50, 60)]);
        // A copy is also an arrival; the runs it lies in move to the front.
        r.insert(52, bytes(52, 3));
        assert_eq!(r.sack_blocks(2, &mut out), 2);
        assert_eq!(out[..2], [(50, 60), (10, 25)]);
        r.insert(25, bytes(25, 25));
        assert_eq!(r.sack_blocks(4, &mut out), 3);
        assert_eq!(out[..3], [(10, 60), (90, 100), (70, 80)]);
    }

    #[test]
    fn what_is_farthest_makes_room_for_what_is_nearer() {
        let mut r = Reassembly::new(Limits { bytes: 20_000, fragments: 3 });
        for start in [10_000, 20_000, 30_000] {
            assert_eq!(r.insert(start, bytes(start, 1000)), Some(1000));
        }
        assert_eq!(r.insert(40_000, bytes(40_000, 1000)), None, "all others are nearer");
        assert_eq!(r.insert(20_500, bytes(20_500, 100)), Some(0), "a copy takes no room");
        assert_eq!((r.dropped(), r.fragments()), (1000, 3));
        // Of two pieces each takes the place of one.
        assert_eq!(r.insert(9000, bytes(9000, 3000)), Some(2000));
        assert_eq!(r.runs().collect::<Vec<_>>(), [(9000, 12_000)]);
        assert_eq!((r.dropped(), r.bytes(), r.fragments()), (3000, 3000, 3));
        // The end of a run goes without the rest of it, for bytes as for fragments.
        assert_eq!(r.insert(1000, bytes(1000, 5000)), Some(5000));
        assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 6000), (9000, 11_000)]);
        assert_eq!(r.insert(10, bytes(10, 17_000)), None, "more than there is room for in front of the rest");
        assert_eq!(r.insert(8000, bytes(8000, 500)), Some(500));
        assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 6000), (8000, 8500), (9000, 10_000)]);
        let taken: Vec<_> = [1000, 8000, 9000].into_iter().map(|at| r.pop(at)).collect();
        assert_eq!(taken, [(1000, 5000), (8000, 500), (9000, 1000)].map(|(at, len)| Some((at, bytes(at, len)))));
        assert!(r.is_empty() && r.bytes() == 0 && r.fragments() == 0);
    }

    #[test]
    fn everything_beyond_an_edge_can_be_dropped() {
        let mut r = Reassembly::new(WIDE);
        for start in [1000, 2000, 3000, 5000, 7000] {
            r.insert(start, bytes(start, 1000));
        }
        r.drop_beyond(8000);
        assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 4000), (5000, 6000), (7000, 8000)]);
        r.drop_beyond(3500);
        assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 3000)]);
        assert_eq!((r.bytes(), r.fragments(), r.dropped()), (2000, 2, 3000));
        r.drop_beyond(0);
        assert!(r.is_empty());
    }

    /// Single bytes cost as much bookkeeping as segments; once their neighbours are there they cost nothing more.
    #[test]
    fn small_neighbours_become_one() {
        let mut r = Reassembly::new(Limits { bytes: 1 << 20, fragments: 600 });
        let byte = |r: &mut Reassembly, at| assert_eq!(r.insert(at, bytes(at, 1)), Some(1));
        (0..500).for_each(|n| byte(&mut r, 10 + 2 * n));
        assert_eq!(r.fragments(), 500);
        (0..10_000).for_each(|n| byte(&mut r, 2000 + n));
        (0..499).rev().for_each(|n| byte(&mut r, 11 + 2 * n));
        assert_eq!(r.runs().collect::<Vec<_>>(), [(10, 1009), (2000, 12_000)]);
        assert!(r.fragments() as u64 <= 2 * r.bytes() / (2 * LEAST_MEAN) + 2, "{} fragments", r.fragments());
        for (from, to) in [(10, 1009), (2000, 12_000)] {
            let mut next = from;
            while let Some((at, payload)) = r.pop(next) {
                assert_eq!((at, &payload), (next, &bytes(next, payload.len() as u64)));
                next += payload.len() as u64;
            }
            assert_eq!(next, to);
        }
        assert!(r.is_empty() && r.fragments() == 0);
    }

    /// A full window of honest segments always has room, out of order as a whole.
    #[test]
    fn a_buffer_has_room_for_all_that_its_window_admits() {
        for (buffer, segment) in [(6u64 << 20, 496), (64 << 20, 1400), (4096, 64)] {
            let mut r = Reassembly::new(Limits::of_buffer(buffer));
            let count = buffer / segment;
            // Every other segment first, so that each stands alone.
            for n in (1..count).step_by(2).chain((2..count).step_by(2)) {
                assert_eq!(r.insert(n * segment, bytes(0, segment)), Some(segment), "{buffer} B, segment {n}");
            }
            assert_eq!((r.bytes(), r.dropped()), ((count - 1) * segment, 0));
        }
    }

    #[test]
    fn chunks_are_reused() {
        let mut r = Reassembly::new(WIDE);
        for round in 0..100u64 {
            let at = round * 1000;
            r.insert(at + 500, bytes(at + 500, 500));
            r.insert(at, bytes(at, 500));
            assert!(r.pop(at).is_some() && r.pop(at + 500).is_some());
        }
        assert_eq!(r.slab.len(), 2);
    }

    #[test]
    fn an_end_beyond_the_number_line_is_ignored() {
        assert_eq!(Reassembly::new(WIDE).insert(u64::MAX - 3, bytes(0, 10)), None);
    }

    proptest! {
        /// Positions are in units of so many bytes that neighbours are joined, or that they are not.
        #[test]
        fn agrees_with_an_array_of_units(
            ops in prop::collection::vec((0u8..5, 0u64..120, 1u64..30), 1..120),
            tight in any::<bool>(),
            unit in prop::sample::select(vec![1u64, 90, 600]),
        ) {
            let limits = if tight { Limits { bytes: 60 * unit, fragments: 6 } } else { WIDE };
            let mut r = Reassembly::new(limits);
            let mut held = [None::<u8>; 160];
            let (mut next, mut latest) = (0u64, None);
            for (tag, (op, start, len)) in ops.into_iter().enumerate() {
                if next > 120 {
                    break;
                }
                if op == 0 {
                    // Reading: everything in order from `next`, sometimes after a jump.
                    next += start / 40;
                    held[..next as usize].fill(None);
                    while let Some((at, payload)) = r.pop(next * unit) {
                        prop_assert_eq!(at, next * unit);
                        prop_assert!(!payload.is_empty());
                        for piece in payload.chunks(unit as usize) {
                            let tag = held[next as usize].take().expect("it is held");
                            prop_assert_eq!(piece, vec![tag; unit as usize], "at {}", next);
                            next += 1;
                        }
                    }
                    prop_assert_eq!(held[next as usize], None);
                    latest = None;
                } else {
                    let (start, end) = (start.max(next), start.max(next) + len);
                    let missing = (start..end).filter(|&x| held[x as usize].is_none()).count() as u64;
                    let stored = r.insert(start * unit, vec![tag as u8; (len * unit) as usize].into());
                    prop_assert!(stored == Some(missing * unit) || (stored.is_none() && tight));
                    if stored.is_some() {
                        for slot in &mut held[start as usize..end as usize] {
                            slot.get_or_insert(tag as u8);
                        }
                        latest = Some(end * unit - 1);
                    }
                    // What made room lies behind the payload, and there is nothing left behind that.
                    let edge = r.runs().next_back().map_or(0, |(_, edge)| edge / unit);
                    if let Some(lost) = (edge..160).find(|&x| held[x as usize].is_some()) {
                        prop_assert!(tight && lost >= end, "{} went for {}..{}", lost, start, end);
                        held[lost as usize..].fill(None);
                        latest = latest.filter(|_| stored.is_some());
                    }
                }
                let mut runs = vec![];
                for x in 0..held.len() as u64 {
                    if held[x as usize].is_some() {
                        match runs.last_mut() {
                            Some((_, end)) if *end == x * unit => *end += unit,
                            _ => runs.push((x * unit, (x + 1) * unit)),
                        }
                    }
                }
                prop_assert_eq!(r.runs().collect::<Vec<_>>(), runs.clone());
                prop_assert_eq!(r.bytes(), held.iter().flatten().count() as u64 * unit);
                prop_assert!(r.bytes() <= limits.bytes && r.fragments() <= limits.fragments);
                let mut out = [(0, 0); 4];
                let n = r.sack_blocks(4, &mut out);
                prop_assert_eq!(n, runs.len().min(4));
                prop_assert!(out[..n].iter().all(|block| runs.contains(block)));
                prop_assert!((1..n).all(|k| !out[..k].contains(&out[k])));
                if let Some(latest) = latest {
                    prop_assert!(out[0].0 <= latest && latest < out[0].1);
                }
            }
        }
    }
}
