//! Bytes that arrived before the bytes in front of them.
//!
//! Contiguous bytes form a *run*; a run is a chain of chunks. Runs stand sorted in blocks, chunks in a slab with a free
//! list, so that growing a run at either end, joining two and taking from the front cost O(1) after a binary search
//! over the runs, of which there are as many as holes. What is held is never replaced by a later copy (RFC 9293
//! §3.10.7.4 trims what was already received).
//!
//! A chunk holds a *fragment*, an arrived payload. At the data level it holds several that lie side by side in one
//! buffer, as those of a sender in the same process do; on a subflow each leaves as it came, for it has a mapping of
//! its own. Payloads are sliced, not copied, but for small neighbours, which become one fragment. A chunk begins where
//! the one before it ends, so it takes 56 bytes. The slab grows by blocks of 64 and shrinks when it is four times too
//! large.
//!
//! Two bounds keep memory within a small multiple of the payload: bytes, and fragments, whose mean size has a floor. At
//! a bound the bytes farthest from the missing ones are dropped first. RFC 2018 §8 lets a receiver discard what it has
//! reported.

mod slab;

use crate::blocks::Blocks;
use crate::idle::Usage;
use anabranch_wire::Payload;
use slab::Slab;

/// Limits of the data that may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Payload bytes.
    pub bytes: u64,
    /// Arrived payloads, so that a peer who sends single bytes cannot make the bookkeeping outgrow the payload.
    pub fragments: usize,
}

impl Limits {
    /// Returns limits for a receive buffer of `bytes`: all that the window admits in pieces of at least [`LEAST_MEAN`]
    /// bytes on average, and a few in any case.
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
    /// Places of the slab that are taken.
    chunks: usize,
    usage: Usage,
    bytes: u64,
    fragments: usize,
    dropped: u64,
    /// Of a subflow: SACK blocks are reported, and fragments keep their borders.
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
    payload: Payload,
    /// Fragments in it.
    fragments: u32,
    /// Bytes of the last of them.
    last: u32,
    /// Behind it in its run, or in the free list.
    next: u32,
    /// Chunk in front of it in its run; undefined for the first.
    before: u32,
}

impl Reassembly {
    /// An empty store for a subflow: it remembers which runs grew last, for SACK blocks. Allocates nothing.
    pub fn reporting(limits: Limits) -> Self {
        Reassembly { reports: true, ..Reassembly::new(limits) }
    }

    /// An empty store for the data level; allocates nothing.
    pub fn new(limits: Limits) -> Self {
        Reassembly {
            limits,
            runs: Blocks::new(),
            slab: Slab::new(),
            free: NONE,
            chunks: 0,
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
    pub fn insert(&mut self, start: u64, payload: Payload) -> Option<u64> {
        let stored = self.store(start, payload);
        if self.usage.note(self.chunks, self.slab.capacity()) {
            self.compact();
        }
        stored
    }

    fn store(&mut self, start: u64, payload: Payload) -> Option<u64> {
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
    pub fn pop(&mut self, next: u64) -> Option<(u64, Payload)> {
        loop {
            let run = *self.runs.front()?;
            if run.start > next {
                return None;
            }
            let index = run.head as usize;
            let chunk = &mut self.slab[index];
            let mut payload = std::mem::take(&mut chunk.payload);
            let start = run.start;
            let end = start + payload.len() as u64;
            let follower = std::mem::replace(&mut chunk.next, self.free);
            self.free = run.head;
            self.bytes -= payload.len() as u64;
            self.fragments -= chunk.fragments as usize;
            self.chunks -= 1;
            if follower == NONE {
                self.runs.pop_front();
                self.trim();
            } else if let Some(first) = self.runs.front_mut() {
                first.start = end;
                first.head = follower;
            }
            if end > next {
                payload.advance((next - start) as usize);
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

    /// Fragments held.
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
    fn weave(&mut self, i: usize, j: usize, start: u64, end: u64, payload: Payload) -> Run {
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

    /// Puts the chain from `head` to `tail` behind the run. Two neighbours that are small together become one fragment,
    /// so that no two in a row have a mean below [`LEAST_MEAN`].
    fn join(&mut self, run: &mut Run, head: u32, tail: u32) {
        if run.head == NONE {
            run.head = head;
            run.tail = tail;
            return;
        }
        let first = std::mem::take(&mut self.slab[head as usize]);
        let (next, before) = (first.next, run.tail);
        if self.absorb(before, &first) {
            self.slab[head as usize].next = self.free;
            self.free = head;
            self.chunks -= 1;
            if next != NONE {
                self.slab[next as usize].before = before;
                run.tail = tail;
            }
            return;
        }
        self.slab[head as usize] = Chunk { before, ..first };
        self.slab[before as usize].next = head;
        run.tail = tail;
    }

    /// Takes the payload of `first`, which comes next, into the chunk at `index`, if that takes no copy or both are
    /// small. Sets what is next as `first` has it.
    fn absorb(&mut self, index: u32, first: &Chunk) -> bool {
        let chunk = &mut self.slab[index as usize];
        // Of several fragments, the length of the first is not known; that of all is as good.
        let small = u64::from(chunk.last) + first.payload.len() as u64 <= 2 * LEAST_MEAN;
        if self.reports || !chunk.payload.join(&first.payload) {
            if !small || chunk.fragments > 1 {
                return false;
            }
            chunk.payload = [&chunk.payload[..], &first.payload[..]].concat().into();
        }
        chunk.next = first.next;
        if small {
            // One fragment more or less: those of `first`, but for its first, which is a part of the last here.
            self.fragments -= 1;
            chunk.fragments += first.fragments - 1;
            chunk.last = if first.fragments == 1 { chunk.last + first.last } else { first.last };
        } else {
            chunk.fragments += first.fragments;
            chunk.last = first.last;
        }
        true
    }

    /// Bytes from `start` on go on where the last run ends: in a flight behind a hole, all but the first segment do.
    fn goes_on(&self, start: u64) -> bool {
        self.runs.back().is_some_and(|last| last.end == start)
    }

    /// Puts a payload behind the last run, which ends at `end` then; answers its length.
    fn grow_last(&mut self, end: u64, payload: Payload) -> u64 {
        let length = payload.len() as u64;
        let Some(last) = self.runs.back_mut() else { return 0 };
        last.end = end;
        let mut run = *last;
        self.bytes += length;
        self.fragments += 1;
        let chunk = Chunk::new(payload);
        if !self.absorb(run.tail, &chunk) {
            let before = run.tail;
            run.tail = self.place(Chunk { before, ..chunk });
            self.slab[before as usize].next = run.tail;
            if let Some(last) = self.runs.back_mut() {
                last.tail = run.tail;
            }
        }
        self.touch(run.start, end, end - 1);
        length
    }

    /// Tells whether so much more would be too much.
    fn exceeds(&self, bytes: u64, fragments: usize) -> bool {
        self.bytes + bytes > self.limits.bytes || self.fragments + fragments > self.limits.fragments
    }

    /// Drops the farthest fragment if it begins at `edge` or beyond; false if there is none.
    fn drop_last(&mut self, edge: u64) -> bool {
        let Some(run) = self.runs.back_mut() else { return false };
        let index = run.tail;
        let chunk = &mut self.slab[index as usize];
        let length = u64::from(chunk.last);
        let start = run.end - length;
        if start < edge {
            return false;
        }
        self.bytes -= length;
        self.dropped += length;
        self.fragments -= 1;
        if chunk.fragments > 1 {
            run.end = start;
            chunk.payload.truncate(chunk.payload.len() - length as usize);
            chunk.fragments -= 1;
            // The lengths of those before the last are not known: a part of all, and of one all.
            chunk.last = (chunk.payload.len() as u32).div_ceil(chunk.fragments);
            return true;
        }
        chunk.payload = Payload::new();
        chunk.next = self.free;
        self.free = index;
        self.chunks -= 1;
        if run.head == index {
            self.runs.pop_back();
        } else {
            run.end = start;
            run.tail = chunk.before;
            self.slab[run.tail as usize].next = NONE;
        }
        true
    }

    fn add(&mut self, payload: Payload) -> u32 {
        self.bytes += payload.len() as u64;
        self.fragments += 1;
        self.place(Chunk::new(payload))
    }

    /// Puts a chunk into the slab.
    fn place(&mut self, chunk: Chunk) -> u32 {
        self.chunks += 1;
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
                let chunk = std::mem::take(&mut self.slab[at as usize]);
                at = chunk.next;
                let here = slab.len() as u32;
                let next = if at == NONE { NONE } else { here + 1 };
                slab.push(Chunk { next, before: here.wrapping_sub(1), ..chunk });
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

impl Chunk {
    /// One fragment, of which there is no neighbour.
    fn new(payload: Payload) -> Self {
        let last = payload.len() as u32;
        Chunk { payload, fragments: 1, last, next: NONE, before: NONE }
    }
}

/// Mean size of what is held out of order, at least, when all that a window admits is: half of the smallest segment
/// that every host takes (RFC 9293 §3.7.1: 536 B, less options), so that no honest window is cut short. Bookkeeping and
/// payload then cost about the same.
pub(crate) const LEAST_MEAN: u64 = 256;
/// Fragments that any buffer may hold, however small.
const FEW: usize = 1 << 10;
/// Twice what a SACK option can name, so that enough are left when some of them merge.
const RECENT: usize = 8;
/// Chunks that a subflow's slab keeps room for when nothing waits.
const MOST_KEPT: usize = 256;
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
