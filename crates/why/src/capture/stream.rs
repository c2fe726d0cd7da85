//! The data of one direction of a connection: what was written when, what has arrived, and what carries the bytes that
//! are missing.

use super::picture::{FlowPicture, NEVER, UNKNOWN};
use super::sender::Timeline;
use anabranch_wire::Flags;

/// Piece that the sending application wrote, as far as packets show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Time at which it was written \[ns\].
    pub at: u64,
    /// Position behind its last byte.
    pub end: i64,
}

/// The first sending of some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    pub at: u64,
    pub flow: usize,
    pub from: i64,
    pub end: i64,
    /// End of all that was sent so far.
    pub high: i64,
    /// The sender had nothing more to send after it.
    pub empties: bool,
    /// The next data waits for room in the send buffer.
    pub full: bool,
}

/// First sendings of all bytes of a direction, in the order of time.
pub(crate) struct Stream {
    pub fresh: Vec<Fresh>,
    /// Indices into `fresh`, by position.
    by_position: Vec<u32>,
    /// First position.
    pub begin: i64,
    pub pieces: Vec<Piece>,
    pub end: i64,
}

impl Stream {
    /// Puts together what `side` sent. `opened` is the time from which it could send.
    pub(crate) fn of(flows: &[FlowPicture], side: usize, timelines: &[Timeline], opened: u64, reaction: u64) -> Self {
        let mut order: Vec<(u64, usize, usize)> = Vec::new();
        for (number, timeline) in timelines.iter().enumerate() {
            order.extend(timeline.sendings.iter().map(|sending| (sending.at, number, sending.index)));
        }
        order.sort_by_key(|(at, ..)| *at);
        let mut fresh: Vec<Fresh> = Vec::new();
        let mut sent: Option<Arrived> = None;
        let mut edge = i64::MIN;
        for (at, flow, index) in order {
            let it = &flows[flow].packets[side][index];
            if it.dsn == UNKNOWN {
                continue;
            }
            let sent = sent.get_or_insert_with(|| Arrived::from(it.dsn));
            let (from, end) = (it.dsn, it.dsn + it.length);
            if !sent.insert(from, end) {
                continue;
            }
            edge = edge.max(end);
            // Bytes that a scheduler left out are still to be sent.
            let empties = it.is(Flags::PSH) && !sent.holds();
            fresh.push(Fresh { at, flow, from, end, high: edge, empties, full: false });
        }
        let mut by_position: Vec<u32> = (0..fresh.len() as u32).collect();
        by_position.sort_by_key(|index| fresh[*index as usize].from);
        let begin = by_position.first().map_or(0, |first| fresh[*first as usize].from);
        let mut stream = Stream { fresh, by_position, pieces: Vec::new(), begin, end: edge.max(0) };
        stream.find_pieces(flows, side, opened, reaction);
        stream
    }

    /// Tells where the sender ran out of data, and whether it then waited for its buffer or for its application.
    fn find_pieces(&mut self, flows: &[FlowPicture], side: usize, opened: u64, reaction: u64) {
        // What comes from the peer, in the order of time: whether it acknowledges data, and whether it brings data.
        let mut news: Vec<(u64, i64, i64, bool)> = Vec::new();
        for flow in flows {
            let came = flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER);
            news.extend(came.map(|it| (it.arrived, it.data_ack, it.window, it.length > 0)));
        }
        news.sort_by_key(|(at, ..)| *at);
        let (mut acked, mut next) = (i64::MIN, 0);
        // End of the peer's window, and what it was before the news just now.
        let (mut window, mut window_before) = (i64::MIN, i64::MIN);
        let (mut last_request, mut last_progress) = (0, 0);
        let mut written = opened;
        for index in 0..self.fresh.len() {
            let at = self.fresh[index].at;
            while next < news.len() && news[next].0 <= at {
                let (came, ack, room, request) = news[next];
                if ack != UNKNOWN {
                    if came + reaction < at {
                        window_before = window_before.max(ack.saturating_add(room));
                    }
                    window = window.max(ack.saturating_add(room));
                }
                if ack != UNKNOWN && ack > acked {
                    (acked, last_progress) = (ack, came);
                }
                if request {
                    last_request = came;
                }
                next += 1;
            }
            let before = index.checked_sub(1).map(|before| self.fresh[before]);
            let starved = before.is_none_or(|before| before.empties && at > before.at + reaction)
                || before.is_some_and(|before| acked >= before.high && at > last_progress + reaction);
            // Only now did the peer's window let this out.
            let end = self.fresh[index].end;
            let shut = window_before > i64::MIN && end > window_before && (window > window_before || end > window);
            if let Some(before) = before
                && shut
            {
                // It was the window that held it back, and not the application, even if a push stood before.
                self.fresh[index - 1].empties &= before.at + reaction >= at;
                continue;
            }
            if !starved {
                continue;
            }
            let since = before.map_or(0, |before| before.at);
            let asked = last_request > since && at - last_request <= reaction;
            let freed = last_progress > since && at - last_progress <= reaction;
            if let Some(before) = before
                && before.empties
                && freed
                && !asked
            {
                // An application that has to wait for room writes as soon as there is some, be it all.
                self.fresh[index - 1].full = true;
                continue;
            }
            if let Some(before) = before {
                self.fresh[index - 1].empties = true;
                self.pieces.push(Piece { at: written, end: before.high });
            }
            written = if asked { last_request } else { at };
            if before.is_none() && !asked {
                // Nothing in flight, and a window that is open, hold no first byte back: it was not written before.
                if at.saturating_sub(opened) <= reaction {
                    written = opened.min(at);
                }
                // A request that came first set it off, even if it took the server a while.
                if last_request > opened && at - last_request <= 8 * reaction {
                    written = last_request;
                }
            }
        }
        // Only a gap tells that a push was the end of all that was written.
        for index in 0..self.fresh.len() {
            let next = self.fresh.get(index + 1).map(|next| next.at);
            let is_burst = next.is_some_and(|next| next <= self.fresh[index].at + reaction);
            if is_burst {
                self.fresh[index].empties = false;
            }
        }
        if let Some(last) = self.fresh.last_mut() {
            last.empties = true;
            self.pieces.push(Piece { at: written, end: last.high });
        }
    }

    /// The flow that first carried the byte at `position`, if it was sent before `now`.
    pub(crate) fn carrier(&self, position: i64, now: u64) -> Option<usize> {
        let index = self.by_position.partition_point(|index| self.fresh[*index as usize].from <= position);
        let it = &self.fresh[*self.by_position.get(index.checked_sub(1)?)? as usize];
        (it.at <= now && it.end > position).then_some(it.flow)
    }
}

/// Ranges that have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived {
    /// All below has arrived.
    pub edge: i64,
    above: std::collections::BTreeMap<i64, i64>,
    /// Bytes above the edge.
    held: i64,
}

impl Arrived {
    /// Creates one in which all below `edge` has arrived.
    pub(crate) fn from(edge: i64) -> Self {
        Arrived { edge, ..Arrived::default() }
    }

    /// Adds a range. Returns true if any of it is new.
    pub(crate) fn insert(&mut self, mut from: i64, mut to: i64) -> bool {
        from = from.max(self.edge);
        if to <= from || self.above.range(..=from).next_back().is_some_and(|(_, end)| *end >= to) {
            return false;
        }
        while let Some((&start, &end)) = self.above.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.above.remove(&start);
            self.held -= end - start;
            from = from.min(start);
            to = to.max(end);
        }
        if from <= self.edge {
            self.edge = to;
        } else {
            self.above.insert(from, to);
            self.held += to - from;
        }
        true
    }

    /// Bytes missing below the highest.
    pub(crate) fn missing(&self) -> i64 {
        self.above.last_key_value().map_or(0, |(_, end)| end - self.edge - self.held)
    }

    /// True if bytes wait behind a hole.
    pub(crate) fn holds(&self) -> bool {
        !self.above.is_empty()
    }
}
