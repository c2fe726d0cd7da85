//! Bytes that arrived before the bytes in front of them.
//!
//! Contiguous bytes form a *run*; a run is a chain of chunks, each one arrived payload. Runs stand sorted in blocks,
//! chunks in a slab with a free list, so that growing a run at either end, joining two and taking from the front cost
//! O(1) after a binary search over the runs, of which there are as many as holes. Payloads are sliced, not copied, but
//! for small neighbours, which become one chunk. What is held is never replaced by a later copy (RFC 9293 §3.10.7.4
//! trims what was already received).
//!
//! A chunk begins where the one before it ends, so it takes 40 bytes. The slab grows by blocks of 64 and shrinks when
//! it is four times too large.
//!
//! Two bounds keep memory within a small multiple of the payload: bytes, and chunks, whose mean size has a floor. Where
//! a bound is reached, what is nearest to the bytes that are missing stays: the farthest goes first. RFC 2018 §8 lets a
//! receiver discard what it has reported.

mod slab;

use crate::blocks::Blocks;
use crate::idle::Usage;
use bytes::Bytes;
use slab::Slab;

/// Limits of the data that may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Payload bytes.
    pub bytes: u64,
    /// Chunks, so that a peer who sends single bytes cannot make the bookkeeping outgrow the payload.
    pub fragments: usize,
}

impl Limits {
    /// Returns limits for a receive buffer of `bytes`: all that the window admits in pieces of at least [`LEAST_MEAN`]
    /// bytes on average, and a few in any case.
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
    slab: Slab<Chunk>,
    free: u32,
    usage: Usage,
    bytes: u64,
    fragments: usize,
    dropped: u64,
    /// SACK blocks are reported.
    reports: bool,
    recent: Option<Box<Recent>>,
}

/// One position in each of the runs that grew last, latest first; at most one per run.
#[derive(Clone, Debug, Default)]
struct Recent {
    positions: [u64; RECENT],
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    payload: Bytes,
    /// Behind it in its run, or in the free list.
    next: u32,
    /// Chunk in front of it in its run; undefined for the first.
    before: u32,
}

impl Reassembly {
    /// An empty store that remembers which runs grew last, for SACK blocks; allocates nothing.
    pub fn reporting(limits: Limits) -> Self {
        Reassembly { reports: true, ..Reassembly::new(limits) }
    }

    /// An empty store; allocates nothing.
    pub fn new(limits: Limits) -> Self {
        Reassembly {
            limits,
            runs: Blocks::new(),
            slab: Slab::new(),
            free: NONE,
            usage: Usage::default(),
            bytes: 0,
            fragments: 0,
            dropped: 0,
            reports: false,
            recent: None,
        }
    }

    /// Stores what of `payload`, which begins at `start`, is not held yet; answers how many bytes that was.
    ///
    /// Drops data that lies beyond the payload to keep a limit. If that is not enough, it refuses the payload as a
    /// whole: it stores nothing and returns `None`.
    pub fn insert(&mut self, start: u64, payload: Bytes) -> Option<u64> {
        let stored = self.store(start, payload);
        if self.usage.note(self.fragments, self.slab.capacity()) {
            self.compact();
        }
        stored
    }

    fn store(&mut self, start: u64, payload: Bytes) -> Option<u64> {
        let end = start.checked_add(payload.len() as u64)?;
        if start == end {
            return Some(0);
        }
        if self.goes_on(start) && !self.exceeds(end - start, 1) {
            return Some(self.grow_last(end, payload));
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
            let start = run.start;
            let end = start + payload.len() as u64;
            let follower = std::mem::replace(&mut chunk.next, self.free);
            self.free = run.head;
            self.bytes -= payload.len() as u64;
            self.fragments -= 1;
            if follower == NONE {
                self.runs.pop_front();
                self.trim();
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

    /// Writes up to `max` (at most 4) runs for a SACK option into `out`: first the one that grew last, then those that
    /// grew before it (RFC 2018 §4), then the highest. Returns their number.
    pub fn sack_blocks(&self, max: usize, out: &mut [(u64, u64); 4]) -> usize {
        let max = max.min(out.len()).min(self.runs.len());
        let mut n = 0;
        let recent = self.recent.as_deref().map_or(&[][..], |recent| &recent.positions[..recent.len]);
        for &position in recent {
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

    /// Returns true if no data is held.
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

    /// Joins the runs `i..j` and the pieces of the payload that fill the gaps between and around them into one chain.
    fn weave(&mut self, i: usize, j: usize, start: u64, end: u64, payload: Bytes) -> Run {
        let mut woven = Run { start, end, head: NONE, tail: NONE };
        let mut cursor = start;
        for k in i..j {
            let run = self.runs[k];
            if cursor < run.start {
                let piece = self.add(payload.slice((cursor - start) as usize..(run.start - start) as usize));
                self.join(&mut woven, piece, piece);
            }
            self.join(&mut woven, run.head, run.tail);
            woven.start = woven.start.min(run.start);
            woven.end = woven.end.max(run.end);
            cursor = cursor.max(run.end);
        }
        if cursor < end {
            let rest = if cursor == start { payload } else { payload.slice((cursor - start) as usize..) };
            let piece = self.add(rest);
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

    /// Bytes from `start` on go on where the last run ends: in a flight behind a hole, all but the first segment do.
    fn goes_on(&self, start: u64) -> bool {
        self.runs.back().is_some_and(|last| last.end == start)
    }

    /// Puts a payload behind the last run, which ends at `end` then; answers its length.
    fn grow_last(&mut self, end: u64, payload: Bytes) -> u64 {
        let length = payload.len() as u64;
        let piece = self.add(payload);
        let Some(last) = self.runs.back_mut() else { return 0 };
        let (start, tail) = (last.start, last.tail);
        last.end = end;
        if self.slab[tail as usize].payload.len() as u64 + length > 2 * LEAST_MEAN {
            last.tail = piece;
            self.slab[tail as usize].next = piece;
            self.slab[piece as usize].before = tail;
        } else {
            let mut run = *last;
            self.fuse(&mut run, piece, piece);
        }
        self.touch(start, end, end - 1);
        length
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
        let length = chunk.payload.len() as u64;
        let start = run.end - length;
        if start < edge {
            return false;
        }
        self.bytes -= length;
        self.dropped += length;
        self.fragments -= 1;
        chunk.payload = Bytes::new();
        chunk.next = self.free;
        self.free = index;
        if run.head == index {
            self.runs.pop_back();
        } else {
            run.end = start;
            run.tail = chunk.before;
            self.slab[run.tail as usize].next = NONE;
        }
        true
    }

    fn add(&mut self, payload: Bytes) -> u32 {
        self.bytes += payload.len() as u64;
        self.fragments += 1;
        let chunk = Chunk { payload, next: NONE, before: NONE };
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

    /// Moves all chunks of the runs into a slab of their own.
    #[cold]
    fn compact(&mut self) {
        let mut slab = Slab::new();
        for index in 0..self.runs.len() {
            let run = &mut self.runs[index];
            let mut at = std::mem::replace(&mut run.head, slab.len() as u32);
            while at != NONE {
                let Chunk { payload, next, .. } = std::mem::take(&mut self.slab[at as usize]);
                let here = slab.len() as u32;
                let follower = if next == NONE { NONE } else { here + 1 };
                slab.push(Chunk { payload, next: follower, before: here.wrapping_sub(1) });
                at = next;
            }
            run.tail = slab.len() as u32 - 1;
        }
        self.slab = slab;
        self.free = NONE;
    }

    /// Gives a large slab back if the hole that all waited for is filled.
    /// On a subflow that was a loss, and the next one is far.
    fn trim(&mut self) {
        if self.reports && self.runs.is_empty() && self.slab.capacity() > MOST_KEPT {
            self.slab = Slab::new();
            self.free = NONE;
        }
    }

    /// Gives memory back if nothing is held: the peer has nothing more to send for now.
    pub fn release(&mut self) {
        if self.runs.is_empty() && self.slab.capacity() > 0 {
            self.slab = Slab::new();
            self.free = NONE;
            self.runs = Blocks::new();
            self.recent = None;
        }
    }

    fn run_at(&self, position: u64) -> Option<&Run> {
        let i = self.runs.partition_point(|run| run.end <= position);
        self.runs.get(i).filter(|run| run.start <= position)
    }

    /// Remembers that the run `start..end` grew last, by one `position` in it: a run keeps its last bytes longest.
    #[inline]
    fn touch(&mut self, start: u64, end: u64, position: u64) {
        if self.reports {
            self.remember(start, end, position);
        }
    }

    fn remember(&mut self, start: u64, end: u64, position: u64) {
        let recent = self.recent.get_or_insert_default();
        if let [latest, others @ ..] = &mut recent.positions[..recent.len]
            && (start..end).contains(latest)
            && let Some(first) = self.runs.front()
            && others.iter().all(|other| *other >= first.start && (*other < start || *other >= end))
        {
            // The same run again, and nothing to forget.
            *latest = position;
            return;
        }
        let mut kept = Recent { positions: [position; RECENT], len: 1 };
        for &other in &recent.positions[..recent.len] {
            let gone = self.runs.front().is_none_or(|first| other < first.start);
            if kept.len < RECENT && !gone && (other < start || other >= end) {
                kept.positions[kept.len] = other;
                kept.len += 1;
            }
        }
        **recent = kept;
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
/// Chunks that a subflow's slab keeps room for when nothing waits.
const MOST_KEPT: usize = 256;
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
