//! Queue that holds packets back until their fate is known.
//!
//! A capture is ordered by time of sending, but a packet's comment may report a loss that is known only later. So a
//! packet and all behind it wait until its fate is known; the network decides within the packet's transit time. A
//! stalled link could hold the queue without bound: when the packets held exceed the limit, the first is written with
//! what is known so far.

use crate::Direction;
use anabranch_units::Instant;
use std::collections::VecDeque;

/// A packet for a capture file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Index of the interface that it passes.
    pub interface: u32,
    /// Direction on the interface.
    pub direction: Direction,
    /// Time of the packet.
    pub at: Instant,
    /// Bytes from the IP header on.
    pub bytes: Vec<u8>,
    /// Comments known so far.
    pub comments: Vec<String>,
}

/// Names a packet in a backlog.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(u64);

/// Packets in the order in which they passed.
#[derive(Debug)]
pub struct Backlog {
    held: VecDeque<Held>,
    /// The ticket of the first in `held`.
    first: u64,
    /// Bytes held.
    bytes: usize,
    limit: usize,
}

#[derive(Debug)]
struct Held {
    packet: Packet,
    settled: bool,
}

impl Backlog {
    /// Holds up to `limit` bytes of packets, and always the latest one.
    pub fn new(limit: usize) -> Self {
        Backlog { held: VecDeque::new(), first: 0, bytes: 0, limit }
    }

    /// Takes a packet in; one that is not `settled` waits for [`Backlog::settle`].
    pub fn push(&mut self, packet: Packet, settled: bool) -> Ticket {
        let ticket = Ticket(self.first + self.held.len() as u64);
        self.bytes += weight(&packet);
        self.held.push_back(Held { packet, settled });
        ticket
    }

    /// The packet's fate is known, and worth a comment or not. Without effect on a packet that has gone.
    pub fn settle(&mut self, ticket: Ticket, comment: Option<String>) {
        let held = ticket.0.checked_sub(self.first).and_then(|index| self.held.get_mut(index as usize));
        if let Some(held) = held {
            held.settled = true;
            let before = weight(&held.packet);
            held.packet.comments.extend(comment);
            self.bytes += weight(&held.packet) - before;
        }
    }

    /// The next packet that waits for nothing any more.
    pub fn pop(&mut self) -> Option<Packet> {
        let front = self.held.front_mut()?;
        if !front.settled {
            if self.bytes <= self.limit || self.held.len() < 2 {
                return None;
            }
            let front = self.held.front_mut()?;
            front.packet.comments.push(UNKNOWN.to_owned());
            self.bytes += OPTION + UNKNOWN.len();
        }
        let Held { packet, .. } = self.held.pop_front()?;
        self.first += 1;
        self.bytes -= weight(&packet);
        Some(packet)
    }

    /// Settles everything: no more will be known.
    pub fn close(&mut self, comment: &str) {
        for ticket in self.first..self.first + self.held.len() as u64 {
            let is_open = self.held.get((ticket - self.first) as usize).is_some_and(|held| !held.settled);
            if is_open {
                self.settle(Ticket(ticket), Some(comment.to_owned()));
            }
        }
    }
}

/// Memory that a packet takes, about.
fn weight(packet: &Packet) -> usize {
    let comments = packet.comments.iter().map(|comment| OPTION + comment.len()).sum::<usize>();
    size_of::<Held>() + packet.bytes.len() + comments
}

/// A comment's own header.
const OPTION: usize = size_of::<String>();
const UNKNOWN: &str = "fate unknown: still under way when too many packets waited for theirs";

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> Packet {
        Packet {
            interface: 0,
            direction: Direction::Outbound,
            at: Instant::from_nanos(number),
            bytes: vec![0; 1000],
            comments: Vec::new(),
        }
    }

    fn popped(backlog: &mut Backlog) -> Vec<(u64, Vec<String>)> {
        std::iter::from_fn(|| backlog.pop()).map(|packet| (packet.at.as_nanos(), packet.comments)).collect()
    }

    #[test]
    fn packets_leave_in_order_with_what_is_known_later() {
        let mut backlog = Backlog::new(1 << 20);
        let tickets: Vec<Ticket> = (0..4).map(|number| backlog.push(packet(number), number == 1)).collect();
        assert_eq!(popped(&mut backlog), []);
        backlog.settle(tickets[2], None);
        assert_eq!(popped(&mut backlog), [], "those behind the first wait for it");
        backlog.settle(tickets[0], Some("lost".to_owned()));
        assert_eq!(popped(&mut backlog), [(0, vec!["lost".to_owned()]), (1, vec![]), (2, vec![])]);
        backlog.settle(tickets[0], Some("again".to_owned()));
        backlog.close("under way");
        assert_eq!(popped(&mut backlog), [(3, vec!["under way".to_owned()])]);
        assert_eq!(backlog.bytes, 0);
    }

    #[test]
    fn memory_is_bounded_whatever_never_comes() {
        let mut backlog = Backlog::new(10_000);
        let mut gone = Vec::new();
        for number in 0..100 {
            backlog.push(packet(number), number > 0);
            gone.extend(popped(&mut backlog));
            assert!(backlog.bytes <= 10_000);
        }
        assert_eq!(gone.len(), 100);
        assert_eq!(gone[0], (0, vec![UNKNOWN.to_owned()]));
        let mut tiny = Backlog::new(0);
        tiny.push(packet(0), false);
        assert_eq!(popped(&mut tiny), [], "its fate may still come");
    }
}
