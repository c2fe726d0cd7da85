//! The receiving half of the data level: reassembly by data offset, the shared window, the end of the stream.

use super::autotune::Autotune;
use crate::pieces::Pieces;
use crate::reassembly::{Limits, Reassembly};
use crate::{ConnectionStats, ReceiveTuning};
use anabranch_units::{Bytes, Duration, Instant};
use anabranch_wire::Payload;

#[cfg_attr(test, derive(Debug))]
pub(super) struct Receiver {
    /// Next data offset expected; one beyond the stream once the DATA_FIN counts.
    next: u64,
    ofo: Reassembly,
    /// Data in order, not read yet.
    ready: Pieces,
    unread: u64,
    buffer: u64,
    /// The buffer grows.
    autotune: Option<Box<Autotune>>,
    /// The right edge of the window as last told.
    told_edge: u64,
    /// The window reaches at least here, for the sake of a mapping that must arrive whole.
    admitted: u64,
    /// Offset of the peer's DATA_FIN.
    fin: Option<u64>,
    reported_end: bool,
    /// The peer has nothing more to send for now, and what it sent is not all read.
    pushed: bool,
    segments: u64,
    received: u64,
    ofo_count: u64,
    ofo_peak: u64,
    /// Fragments held out of order here or on their subflow, when that was noted, and their number times time up to
    /// then.
    held: u64,
    held_since: Instant,
    ofo_wait: Duration,
    duplicates: u64,
    refused: u64,
    hol_since: Option<Instant>,
    hol_blocked: Duration,
}

impl Receiver {
    /// A buffer of this size; one of the other size that grows up to it, if there is one.
    pub(super) fn new(buffer: Bytes, initial: Option<Bytes>, mss: u16, tuning: ReceiveTuning) -> Self {
        let first = Receiver::first_size(buffer, initial, mss);
        Receiver {
            next: 0,
            ofo: Reassembly::new(Limits::of_buffer(buffer.get())),
            ready: Pieces::default(),
            unread: 0,
            buffer: first.get(),
            autotune: initial.map(|_| Box::new(Autotune::new(first, buffer, mss, tuning))),
            told_edge: 0,
            admitted: 0,
            fin: None,
            reported_end: false,
            pushed: false,
            segments: 0,
            received: 0,
            ofo_count: 0,
            ofo_peak: 0,
            held: 0,
            held_since: Instant::ZERO,
            ofo_wait: Duration::ZERO,
            duplicates: 0,
            refused: 0,
            hol_since: None,
            hol_blocked: Duration::ZERO,
        }
    }

    /// Next data offset expected, the DATA_FIN counted.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns true if the received data has no gap.
    pub(super) fn in_order(&self) -> bool {
        self.ofo.is_empty()
    }

    /// The right edge of the window: never moves back (RFC 9293 §3.8.6).
    pub(super) fn edge(&self) -> u64 {
        // The DATA_FIN takes a number but no space.
        (self.stream_next() + self.buffer.saturating_sub(self.unread)).max(self.told_edge).max(self.admitted)
    }

    /// A mapping of `start..end` is only worth anything as a whole. If it holds the byte that is next and is larger
    /// than the buffer, the window must reach its end, or the two ends would wait for each other; at most 64 KiB, and
    /// not while the application lags behind. True if the window has grown.
    pub(super) fn admit(&mut self, start: u64, end: u64) -> bool {
        let next = start <= self.next && self.next < end;
        let grows = next && self.unread == 0 && end > self.edge();
        if grows {
            self.admitted = end;
        }
        grows
    }

    /// Admits data up to `end` beyond the window: its subflow has acknowledged it, so the peer does not repeat it.
    pub(super) fn admit_acknowledged(&mut self, end: u64) {
        self.admitted = self.admitted.max(end);
    }

    /// The window to advertise, relative to `next`.
    pub(super) fn window(&self) -> u64 {
        self.edge().saturating_sub(self.next)
    }

    /// The size of the buffer at first, which is the first window.
    pub(super) fn first_size(buffer: Bytes, initial: Option<Bytes>, mss: u16) -> Bytes {
        // A segment, and not less than the scaled window can say.
        let least = u64::from(mss).max(buffer.get() >> 15);
        initial.map_or(buffer, |initial| initial.max(Bytes::new(least)).min(buffer))
    }

    /// A segment is about to tell the window, `told` bytes of it after rounding.
    pub(super) fn on_told(&mut self, told: u64) {
        self.told_edge = self.told_edge.max(self.next + told);
    }

    /// The application's reading has widened the window enough to say so (RFC 9293 §3.8.6.2.2).
    /// `most` is what the window field can say.
    pub(super) fn window_worth_telling(&self, mss: u64, most: u64) -> bool {
        let told = self.told_edge.saturating_sub(self.next);
        let gain = self.edge().min(self.next.saturating_add(most)).saturating_sub(self.told_edge);
        told < self.buffer / 2 && gain >= (2 * mss).min(self.buffer / 2)
    }

    /// Counts an arrived data segment, whether its bytes are used or not.
    pub(super) fn on_segment(&mut self) {
        self.segments += 1;
    }

    /// The peer has nothing more to send for now (RFC 9293 §3.9.1.2): what a busy connection needs is given back.
    pub(super) fn on_push(&mut self) {
        self.ofo.release();
        self.pushed = true;
    }

    /// A data segment has arrived before the data in front of it.
    pub(super) fn on_early(&mut self) {
        self.ofo_count += 1;
    }

    /// Records a possible change of the data held out of order; `below` fragments wait on their subflow, behind a lost
    /// one.
    pub(super) fn note_held(&mut self, now: Instant, below: u64) {
        self.ofo_wait += now.since(self.held_since) * self.held;
        self.held_since = now;
        self.held = self.ofo.fragments() as u64 + below;
        self.ofo_peak = self.ofo_peak.max(self.held);
    }

    /// Bytes at a data offset. True if the application has something new to read.
    pub(super) fn receive(&mut self, now: Instant, offset: u64, mut payload: Payload) -> bool {
        let end = offset + payload.len() as u64;
        if end > self.edge() || self.fin.is_some_and(|fin| end > fin) {
            // Beyond what we admitted: the sender repeats it when there is room (a stock Linux peer drops it as well).
            self.refused += payload.len() as u64;
            return false;
        }
        if offset > self.next {
            let length = payload.len() as u64;
            if let Some(stored) = self.ofo.insert(offset, payload) {
                self.duplicates += length - stored;
            }
            if self.hol_since.is_none() && !self.ofo.is_empty() {
                self.hol_since = Some(now);
            }
            return false;
        }
        let behind = self.next - offset;
        self.duplicates += behind.min(payload.len() as u64);
        if end <= self.next {
            return false;
        }
        payload.advance(behind as usize);
        self.append(payload);
        if !self.ofo.is_empty() || self.hol_since.is_some() {
            while let Some((_, chunk)) = self.ofo.pop(self.next) {
                self.append(chunk);
            }
            self.note_hol(now);
        }
        self.take_fin();
        true
    }

    /// The peer's stream ends at this offset. False if that contradicts what is known.
    pub(super) fn receive_fin(&mut self, offset: u64) -> bool {
        let beyond = self.ofo.runs().next_back().is_some_and(|(_, end)| end > offset);
        if self.fin.is_some_and(|fin| fin != offset) || offset < self.stream_next() || beyond {
            return false;
        }
        self.fin = Some(offset);
        self.take_fin();
        true
    }

    /// Plain TCP takes over: where the stream ends is for the subflow's FIN to say, unless it has ended.
    pub(super) fn forget_fin(&mut self) {
        self.fin.take_if(|fin| self.next <= *fin);
    }

    /// The peer's DATA_FIN has arrived and everything before it.
    pub(super) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    pub(super) fn read(&mut self) -> Option<Payload> {
        let chunk = self.ready.pop()?;
        self.unread -= chunk.len() as u64;
        if self.unread == 0 && std::mem::take(&mut self.pushed) {
            self.ready.release();
        }
        if let Some(autotune) = &mut self.autotune {
            autotune.on_read(chunk.len() as u64);
        }
        Some(chunk)
    }

    /// Hands over all that was not read.
    pub(super) fn take_unread(&mut self) -> (Pieces, u64) {
        (std::mem::take(&mut self.ready), std::mem::take(&mut self.unread))
    }

    /// A round trip may be over, after which the buffer may grow.
    pub(super) fn autotune(&mut self, now: Instant, longest_rtt: impl FnOnce() -> Option<Duration>) {
        if let Some(autotune) = self.autotune.as_deref_mut().filter(|autotune| autotune.is_due(now))
            && let Some(rtt) = longest_rtt()
            && let Some(target) = autotune.target(now, rtt)
        {
            self.buffer = self.buffer.max(target);
        }
    }

    /// The round-trip times that the receiver of data measures are of use.
    pub(super) fn is_autotuned(&self) -> bool {
        self.autotune.is_some()
    }

    /// True once, when the stream has ended and everything was read.
    pub(super) fn take_end_of_stream(&mut self) -> bool {
        let end = self.finished() && self.unread == 0 && !self.reported_end;
        self.reported_end |= end;
        end
    }

    /// Bytes in order that the application has not read.
    pub(super) fn unread(&self) -> u64 {
        self.unread
    }

    /// Bytes that wait for others in front of them.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.ofo.bytes()
    }

    /// The pieces that all of it is in.
    pub(super) fn pieces(&self) -> usize {
        self.ready.len() + self.ofo.fragments()
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused + self.ofo.dropped()
    }

    /// Bytes held, in order or not, and the bound they must keep.
    pub(super) fn memory(&self) -> (u64, u64) {
        // A mapping that was admitted as a whole may be larger than the buffer.
        (self.unread + self.ofo.bytes(), self.buffer.max(if self.admitted > 0 { u64::from(u16::MAX) } else { 0 }))
    }

    pub(super) fn fill(&self, stats: &mut ConnectionStats) {
        stats.received = self.received;
        stats.segments_received = self.segments;
        stats.autotuned_buffer = self.autotune.is_some().then_some(self.buffer);
        stats.ofo_count = self.ofo_count;
        stats.ofo_now = self.held;
        stats.ofo_peak = self.ofo_peak;
        stats.ofo_wait = self.ofo_wait;
        stats.ofo_bytes = self.ofo.bytes();
        stats.duplicates = self.duplicates;
        stats.hol_blocked = self.hol_blocked;
    }

    fn append(&mut self, chunk: Payload) {
        let length = chunk.len() as u64;
        self.next += length;
        self.received += length;
        self.unread += length;
        self.ready.push(chunk);
    }

    fn take_fin(&mut self) {
        if self.fin == Some(self.next) {
            self.next += 1;
        }
    }

    /// Next byte of the stream expected, the DATA_FIN not counted.
    pub(super) fn stream_next(&self) -> u64 {
        self.next - u64::from(self.finished())
    }

    fn note_hol(&mut self, now: Instant) {
        if let Some(since) = self.hol_since {
            self.hol_blocked += now.since(since);
            self.hol_since = if self.ofo.is_empty() { None } else { Some(now) };
        }
    }
}
