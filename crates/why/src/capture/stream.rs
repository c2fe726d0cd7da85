//! The data of one direction of a connection: what was written when, what has arrived, and what carries the bytes that
//! are missing.

use super::buffer::{Bursts, LEAST_BUFFER};
use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
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
    /// The segment has a push, and all before it was sent.
    pub pushed: bool,
    /// The sender had nothing more to send after it.
    pub empties: bool,
    /// The next data waits for room in the send buffer.
    pub full: bool,
    /// No congestion window can have held it back: the initial window had room for it since what went before it.
    pub admitted: bool,
}

impl Fresh {
    pub(crate) fn length(&self) -> i64 {
        self.end - self.from
    }
}

/// The initial window of a subflow, as long as nothing tells that it is smaller than that of RFC 6928, or that losses
/// have made it so.
struct Start<'a> {
    /// Bytes of the window.
    window: i64,
    /// Acknowledgments that arrive, in the order of time.
    answers: Vec<&'a Packet>,
    next: usize,
    acked: i64,
    acked_at: u64,
    /// Position behind the last byte sent, when it left, and whether nothing was queued behind it.
    nxt: i64,
    last: u64,
    pushed: bool,
    rtt: u64,
    seen: bool,
}

impl<'a> Start<'a> {
    fn of(flow: &'a FlowPicture, side: usize) -> Self {
        let mss = flow.facts.iter().filter_map(|facts| facts.mss).min().unwrap_or(LEAST_MSS);
        let mut answers: Vec<&Packet> = flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER).collect();
        answers.retain(|it| it.ack != UNKNOWN);
        answers.sort_by_key(|it| it.arrived);
        Start {
            // A capture that misses the beginning does not show what the window has become.
            window: if flow.opener.is_some() { 10 * i64::from(mss) } else { 0 },
            answers,
            next: 0,
            acked: 1,
            acked_at: 0,
            nxt: 1,
            last: 0,
            pushed: true,
            rtt: flow.rtt,
            seen: if side == 0 { flow.seen.own } else { flow.seen.other },
        }
    }

    /// A packet with data leaves at this time. Returns true if the window had admitted it before.
    fn admits(&mut self, it: &Packet, at: u64, reaction: u64) -> bool {
        while let Some(answer) = self.answers.get(self.next).filter(|answer| answer.arrived <= at) {
            if answer.ack > self.acked {
                (self.acked, self.acked_at) = (answer.ack, answer.arrived);
            }
            self.next += 1;
        }
        let since = at.saturating_sub(self.last);
        let by_answer = |within: u64| self.acked > 1 && at.saturating_sub(self.acked_at) <= within;
        // Below a round trip of this length, times tell what set off what only where a host takes no time at all.
        let is_fine = self.rtt >= 4 * reaction || by_answer(self.rtt / 8);
        let gap = match self.seen {
            true => since > reaction.min(self.rtt / 2) && !is_fine,
            // A burst that arrives is as long as its slowest link makes it, and a push ends it.
            false => since > self.rtt / 4 && self.pushed,
        };
        // Without a push more was queued behind the last, and a window smaller than usual held it back.
        let waited = is_fine && since > reaction.min(self.rtt / 2) && by_answer(reaction) && !self.pushed;
        if it.seq < self.nxt || it.arrived == NEVER || waited {
            self.window = 0;
        }
        let admitted = gap && it.end() - self.acked.min(self.nxt) <= self.window && self.last > 0;
        (self.nxt, self.last, self.pushed) = (self.nxt.max(it.end()), at, it.is(Flags::PSH));
        admitted
    }
}

/// Maximum segment size of a host that names none (RFC 9293 §3.7.1).
const LEAST_MSS: u16 = 536;

/// A packet of the peer that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub at: u64,
    pub data_ack: i64,
    pub window: i64,
    /// The packet brings data.
    pub request: bool,
}

impl News {
    /// Packets towards `side`, in the order of time.
    fn of(flows: &[FlowPicture], side: usize) -> Vec<News> {
        let mut news: Vec<News> = Vec::new();
        for flow in flows {
            let came = flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER);
            news.extend(came.map(|it| News {
                at: it.arrived,
                data_ack: it.data_ack,
                window: it.window,
                request: it.length > 0,
            }));
        }
        news.sort_by_key(|it| it.at);
        news
    }
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
        let mut starts: Vec<Start> = flows.iter().map(|flow| Start::of(flow, side)).collect();
        for (number, timeline) in timelines.iter().enumerate() {
            order.extend(timeline.sendings.iter().map(|sending| (sending.at, number, sending.index)));
        }
        order.sort_by_key(|(at, ..)| *at);
        let mut fresh: Vec<Fresh> = Vec::new();
        let mut sent: Option<Arrived> = None;
        let mut edge = i64::MIN;
        for (at, flow, index) in order {
            let it = &flows[flow].packets[side][index];
            let admitted = starts[flow].admits(it, at, reaction);
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
            let pushed = it.is(Flags::PSH) && !sent.holds();
            fresh.push(Fresh { at, flow, from, end, high: edge, pushed, empties: pushed, full: false, admitted });
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
        let news = News::of(flows, side);
        let (mut acked, mut next) = (i64::MIN, 0);
        // End of the peer's window, and what it was before the news just now.
        let (mut window, mut window_before) = (i64::MIN, i64::MIN);
        let (mut last_request, mut last_progress) = (0, 0);
        let mut written = opened;
        let seen = |flow: &FlowPicture| if side == 0 { flow.seen.own } else { flow.seen.other };
        let rtt = flows.iter().map(|flow| flow.rtt).filter(|rtt| *rtt > 0).min().unwrap_or(u64::MAX);
        let seen = flows.iter().all(seen);
        let prompt = reaction.min(if seen { rtt / 2 } else { rtt });
        let fills = Bursts { fresh: &self.fresh, news: &news, seen, rtt, reaction }.fill();
        for index in 0..self.fresh.len() {
            let at = self.fresh[index].at;
            let acked_before = acked;
            while next < news.len() && news[next].at <= at {
                let News { at: came, data_ack: ack, window: room, request } = news[next];
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
                || before.is_some_and(|before| acked >= before.high && at > last_progress + reaction)
                || self.fresh[index].admitted;
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
            if index > 0 && fills[index - 1] && (!seen || at <= last_progress + reaction) {
                (self.fresh[index - 1].empties, self.fresh[index - 1].full) = (true, true);
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
                && !self.fresh[index].admitted
                && before.high - acked_before.max(self.begin) >= LEAST_BUFFER
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
                if at.saturating_sub(opened) <= prompt {
                    written = opened.min(at);
                }
                // A request that came first set it off, even if it took the server a while.
                if last_request > opened && at - last_request <= 8 * reaction {
                    written = last_request;
                }
            }
        }
        // Only a gap tells that a push was the end of all that was written.
        for (index, fills) in fills.iter().enumerate() {
            let Some(next) = self.fresh.get(index + 1).copied() else { break };
            let is_burst = next.at <= self.fresh[index].at + reaction;
            self.fresh[index].empties &= !is_burst || next.admitted || *fills;
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
