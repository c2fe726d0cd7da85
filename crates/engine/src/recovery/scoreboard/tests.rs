//! The scoreboard beside a list of segments that is walked for everything.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::recovery::rate::Deliveries;
use anabranch_units::Duration;
use proptest::prelude::*;

/// A segment with each of its numbers whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Plain {
    start: u64,
    len: u32,
    data: u64,
    flags: u8,
    state: u8,
    sent_at: Instant,
    order: u64,
}

impl Plain {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.flags & FIN)
    }
}

fn plain(sent: Sent) -> Plain {
    let Sent { start, len, data, flags, state, sent_at, order, .. } = sent;
    Plain { start, len, data, flags, state, sent_at, order }
}

/// Both, with the clock and the number of transmissions.
struct Pair {
    board: Scoreboard,
    model: Vec<Plain>,
    now: Instant,
    order: u64,
}

impl Pair {
    /// Numbers begin so far below 2³² that each kind of them passes it.
    fn new(below: u64) -> Self {
        let edge = 1 << 32;
        let mut board = Scoreboard::new(edge - 100 * below);
        board.base = edge - below;
        board.transmissions = edge - below;
        Pair { board, model: Vec::new(), now: Instant::ZERO, order: edge - below }
    }

    fn note() -> (Departure, bool) {
        (Deliveries::default().departure(Instant::ZERO, true), false)
    }

    /// New data, or some that began `back` bytes earlier in the stream.
    fn push(&mut self, len: u32, flags: u8, back: u64) {
        let (start, data) = (self.board.snd_nxt(), 2 * self.board.snd_nxt() - back);
        self.board.push(self.now, len, data, flags, Self::note());
        if len > 0 || flags & FIN != 0 {
            self.order += 1;
            self.model.push(Plain { start, len, data, flags, state: 0, sent_at: self.now, order: self.order });
        }
    }

    fn acknowledge(&mut self, ack: u64) {
        let before = self.board.snd_una();
        let mut effects = AckEffects::new(self.now, 0, None, None);
        let acked = self.board.acknowledge(ack, &mut effects);
        assert_eq!(acked, ack.saturating_sub(before));
        self.model.retain(|sent| sent.end() > ack);
        if let Some(front) = self.model.first_mut().filter(|front| front.start < ack) {
            let cut = ack - front.start;
            (front.start, front.data, front.len) = (ack, front.data + cut, front.len - cut as u32);
        }
    }

    fn select(&mut self, from: usize, to: usize) {
        let [first, last] = [from, to].map(|at| self.model[at]);
        let mut effects = AckEffects::new(self.now, 0, None, None);
        self.board.select(&[(first.start, last.end())], &mut effects);
        for sent in &mut self.model[from..=to] {
            sent.state = (sent.state | SACKED) & !(LOST | IN_REPAIR);
        }
    }

    fn lose(&mut self, at: usize) {
        if self.model[at].state & SACKED == 0 {
            let id = self.board.base + at as u64;
            self.board.lose(id);
            self.model[at].state = (self.model[at].state | LOST) & !IN_REPAIR;
        }
    }

    fn repeat(&mut self, at: usize) {
        let sent = &mut self.model[at];
        let repeated = self.board.repeat(self.now, sent.start, Self::note());
        assert_eq!(repeated.is_some(), sent.state & SACKED == 0);
        if repeated.is_some() {
            self.order += 1;
            sent.state |= IN_REPAIR | REPEATED;
            (sent.sent_at, sent.order) = (self.now, self.order);
        }
    }

    fn check(&self) {
        assert_eq!(self.board.recompute(), *self.board.totals());
        assert_eq!(self.board.iter().map(plain).collect::<Vec<_>>(), self.model);
        let mut under_way: Vec<_> = self.model.iter().copied().filter(|sent| copies(sent.state) > 0).collect();
        under_way.sort_by_key(|sent| sent.order);
        assert_eq!(self.board.in_order_of_sending().map(plain).collect::<Vec<_>>(), under_way);
        assert_eq!(self.board.oldest().map(|(_, sent)| plain(sent)), under_way.first().copied());
        let pending = self.model.iter().copied().filter(|sent| sent.state & (LOST | IN_REPAIR) == LOST);
        assert!(self.board.all_pending().map(plain).eq(pending), "what is lost and not repeated");
        for about in self.model.iter().flat_map(|sent| [sent.data, sent.data + u64::from(sent.len)]) {
            for (from, to) in [(about - 1, about), (about, about + 1), (about - 40, about + 40)] {
                let carry = |sent: &Plain| sent.data < to && sent.data + u64::from(sent.len) > from;
                let carrying = self.model.iter().copied().filter(carry);
                assert!(self.board.carrying(from, to).map(plain).eq(carrying), "data from {from} to {to}");
            }
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_list_of_segments(
        below in 1u64..40,
        ops in prop::collection::vec((0u8..8, 0usize..30, 0usize..10, 0u32..100), 1..120),
    ) {
        let mut pair = Pair::new(below);
        for (op, at, more, len) in ops {
            pair.now += Duration::from_millis(1);
            let last = pair.model.len().checked_sub(1);
            match (op, last) {
                (3, Some(last)) => {
                    let sent = pair.model[at.min(last)];
                    pair.acknowledge((sent.start + u64::from(len)).min(sent.end()));
                }
                (4, Some(last)) => pair.select(at.min(last), (at + more).min(last)),
                (5, Some(last)) => pair.lose(at.min(last)),
                (6, Some(last)) => pair.repeat(at.min(last)),
                (7, Some(_)) if len == 0 => {
                    pair.board.lose_everything();
                    let reneged = pair.model[0].state & SACKED != 0;
                    for sent in &mut pair.model {
                        let sacked = sent.state & SACKED;
                        sent.state = sent.state & REPEATED | if reneged && sacked != 0 { REPEATED } else { 0 };
                        sent.state |= if sacked != 0 && !reneged { SACKED } else { LOST };
                    }
                }
                _ => pair.push(len, u8::from(more == 0), if more == 9 { 300 } else { 0 }),
            }
            pair.check();
        }
    }
}

#[test]
fn a_record_is_small() {
    assert!(size_of::<Record>() <= 56);
}
