//! Queues of flows that take turns: deficit round robin with new flows first (RFC 8290 §3 and §4).

use super::Waiting;
use super::fifo::Fifo;
use std::collections::VecDeque;

/// A queue among others.
#[derive(Debug)]
pub(super) struct Flow<C> {
    pub(super) queue: Fifo,
    pub(super) control: C,
    credit: i64,
    listed: bool,
}

/// Treatment of a new queue from which nothing more can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptied {
    /// Becomes an old one (RFC 8290 §4.2).
    TurnsOld,
    /// Becomes an old one if there are others, and is new again with its next packet otherwise (Linux).
    TurnsOldBehindOthers,
}

/// Queues by the hash of their flow.
#[derive(Debug)]
pub(super) struct Flows<C> {
    all: Vec<Flow<C>>,
    quantum: i64,
    first_quantum: i64,
    emptied: Emptied,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl<C> Flows<C> {
    pub(super) fn new(
        count: usize,
        quantum: i64,
        first_quantum: i64,
        emptied: Emptied,
        control: impl Fn() -> C,
    ) -> Self {
        let flow = || Flow { queue: Fifo::default(), control: control(), credit: 0, listed: false };
        let all = (0..count.max(1)).map(|_| flow()).collect();
        Flows { all, quantum, first_quantum, emptied, new: VecDeque::new(), old: VecDeque::new() }
    }

    fn number(&self, flow: u64) -> usize {
        (flow % self.all.len() as u64) as usize
    }

    /// Packets that wait in the queue of this flow.
    pub(super) fn waiting(&self, flow: u64) -> usize {
        self.all[self.number(flow)].queue.len()
    }

    /// Puts a packet into the queue of its flow.
    pub(super) fn push(&mut self, packet: Waiting) {
        let number = self.number(packet.flow);
        let flow = &mut self.all[number];
        flow.queue.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.first_quantum;
            self.new.push_back(number as u32);
        }
    }

    /// The queue with the most bytes, of equals the first.
    pub(super) fn fattest(&mut self) -> &mut Flow<C> {
        let most = (1..self.all.len())
            .fold(0, |most, it| if self.all[it].queue.bytes() > self.all[most].queue.bytes() { it } else { most });
        &mut self.all[most]
    }

    /// The next packet: `take` gets it out of the queue whose turn it is.
    pub(super) fn next(&mut self, mut take: impl FnMut(&mut Flow<C>) -> Option<Waiting>) -> Option<Waiting> {
        loop {
            let of_new = !self.new.is_empty();
            let list = if of_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.all[number as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            if let Some(packet) = take(flow) {
                flow.credit -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            // One that has just been new waits behind the old ones, so that it is not new with each packet.
            if of_new && (self.emptied == Emptied::TurnsOld || !self.old.is_empty()) {
                self.old.push_back(number);
            } else {
                flow.listed = false;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        for flow in &mut self.all {
            flow.queue.clear();
            flow.listed = false;
        }
        self.new.clear();
        self.old.clear();
    }
}
