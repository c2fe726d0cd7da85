//! Bytes that arrived before the bytes in front of them.
//!
//! Contiguous bytes form a *run*; a run is a chain of chunks, each one arrived payload. Runs stand sorted in a deque,
//! chunks in a slab with a free list, so that growing a run at either end, joining two and taking from the front cost
//! O(1) after a binary search over the runs, of which there are as many as holes. Nothing is copied: payloads are
//! sliced. What is held is never replaced by a later copy (RFC 9293 §3.10.7.4 trims what was already received).

use std::collections::VecDeque;

use bytes::Bytes;

/// How much may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Payload bytes.
    pub bytes: u64,
    /// Chunks, so that a peer who sends single bytes cannot make the bookkeeping outgrow the payload.
    pub fragments: usize,
}

/// The store of one sequence space, data level or subflow level.
#[derive(Clone, Debug)]
pub struct Reassembly {
    limits: Limits,
    runs: VecDeque<Run>,
    slab: Vec<Chunk>,
    free: u32,
    bytes: u64,
    fragments: usize,
    refused: u64,
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
    next: u32,
}

impl Reassembly {
    /// An empty store; allocates nothing.
    pub fn new(limits: Limits) -> Self {
        Reassembly {
            limits,
            runs: VecDeque::new(),
            slab: Vec::new(),
            free: NONE,
            bytes: 0,
            fragments: 0,
            refused: 0,
            recent: [0; RECENT],
            recent_len: 0,
        }
    }

    /// Stores what of `payload`, which begins at `start`, is not held yet; answers how many bytes that was.
    /// A payload that would exceed a limit is refused as a whole, stores nothing and answers 0.
    pub fn insert(&mut self, start: u64, payload: Bytes) -> u64 {
        let Some(end) = start.checked_add(payload.len() as u64) else { return 0 };
        if start == end {
            return 0;
        }
        let (i, j) = self.touching(start, end);
        let (new_bytes, new_chunks) = self.gaps(i, j, start, end);
        if new_bytes == 0 {
            // A copy of what is held: it is still the latest arrival, which the first SACK block has to name.
            let run = self.runs[i];
            self.touch(run.start, run.end, end - 1);
            return 0;
        }
        if self.bytes + new_bytes > self.limits.bytes || self.fragments + new_chunks > self.limits.fragments {
            self.refused += 1;
            return 0;
        }
        let run = self.weave(i, j, start, end, payload);
        if i == j {
            self.runs.insert(i, run);
        } else {
            self.runs[i] = run;
            if j - i > 1 {
                self.runs.drain(i + 1..j);
            }
        }
        self.touch(run.start, run.end, end - 1);
        new_bytes
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

    /// Payloads refused because of a limit.
    pub fn refused(&self) -> u64 {
        self.refused
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
                let j = i + self.runs.range(i..).take_while(|run| run.start <= end).count();
                (i, j)
            }
        }
    }

    /// Bytes and pieces of `start..end` that none of the runs `i..j` holds.
    fn gaps(&self, i: usize, j: usize, start: u64, end: u64) -> (u64, usize) {
        let (mut cursor, mut bytes, mut pieces) = (start, 0, 0);
        for run in self.runs.range(i..j) {
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

    fn join(&mut self, run: &mut Run, head: u32, tail: u32) {
        if run.head == NONE {
            run.head = head;
        } else {
            self.slab[run.tail as usize].next = head;
        }
        run.tail = tail;
    }

    fn add(&mut self, start: u64, payload: Bytes) -> u32 {
        self.bytes += payload.len() as u64;
        self.fragments += 1;
        let chunk = Chunk { start, payload, next: NONE };
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
        for start in [10, 30, 50] {
            assert_eq!(r.insert(start, bytes(start, 10)), 10);
        }
        assert_eq!(r.insert(5, bytes(5, 60)), 30);
        assert_eq!(r.runs().collect::<Vec<_>>(), [(5, 65)]);
        assert_eq!((r.bytes(), r.fragments()), (60, 7));
        let mut next = 8;
        while let Some((start, payload)) = r.pop(next) {
            assert_eq!(start, next);
            assert_eq!(payload, bytes(start, payload.len() as u64));
            next += payload.len() as u64;
        }
        assert_eq!((next, r.is_empty(), r.fragments(), r.bytes()), (65, true, 0, 0));
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
    fn limits_refuse_whole_payloads_and_count_them() {
        let mut r = Reassembly::new(Limits { bytes: 20, fragments: 2 });
        assert_eq!(r.insert(10, bytes(10, 10)), 10);
        assert_eq!(r.insert(40, bytes(40, 11)), 0);
        assert_eq!(r.insert(5, bytes(5, 20)), 0, "two pieces make three chunks");
        assert_eq!(r.insert(12, bytes(12, 18)), 10);
        assert_eq!((r.refused(), r.bytes(), r.fragments()), (2, 20, 2));
        assert_eq!(r.insert(15, bytes(15, 3)), 0, "a copy is no overflow");
        assert_eq!(r.refused(), 2);
    }

    #[test]
    fn chunks_are_reused() {
        let mut r = Reassembly::new(WIDE);
        for round in 0..100u64 {
            let at = round * 10;
            r.insert(at + 5, bytes(at + 5, 5));
            r.insert(at, bytes(at, 5));
            assert!(r.pop(at).is_some() && r.pop(at + 5).is_some());
        }
        assert_eq!(r.slab.len(), 2);
    }

    #[test]
    fn an_end_beyond_the_number_line_is_ignored() {
        assert_eq!(Reassembly::new(WIDE).insert(u64::MAX - 3, bytes(0, 10)), 0);
    }

    proptest! {
        #[test]
        fn agrees_with_an_array_of_bytes(
            ops in prop::collection::vec((0u8..5, 0u64..120, 1u64..30), 1..120),
            tight in any::<bool>(),
        ) {
            let limits = if tight { Limits { bytes: 60, fragments: 6 } } else { WIDE };
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
                    while let Some((at, payload)) = r.pop(next) {
                        prop_assert_eq!(at, next);
                        prop_assert!(!payload.is_empty());
                        for byte in payload {
                            prop_assert_eq!(held[next as usize].take(), Some(byte), "at {}", next);
                            next += 1;
                        }
                    }
                    prop_assert_eq!(held[next as usize], None);
                    latest = None;
                } else {
                    let start = start.max(next);
                    let stored = r.insert(start, vec![tag as u8; len as usize].into());
                    let missing = (start..start + len).filter(|&x| held[x as usize].is_none()).count() as u64;
                    prop_assert!(stored == missing || (stored == 0 && tight));
                    if stored > 0 {
                        for slot in &mut held[start as usize..(start + len) as usize] {
                            slot.get_or_insert(tag as u8);
                        }
                    }
                    if stored > 0 || missing == 0 {
                        latest = Some(start + len - 1);
                    }
                }
                let mut runs = vec![];
                for x in 0..held.len() as u64 {
                    if held[x as usize].is_some() {
                        match runs.last_mut() {
                            Some((_, end)) if *end == x => *end += 1,
                            _ => runs.push((x, x + 1)),
                        }
                    }
                }
                prop_assert_eq!(r.runs().collect::<Vec<_>>(), runs.clone());
                prop_assert_eq!(r.bytes(), held.iter().flatten().count() as u64);
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
