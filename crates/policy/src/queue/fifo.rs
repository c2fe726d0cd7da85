//! Packets in the order in which they came.

use super::{Cause, Port, Waiting};
use std::collections::VecDeque;

/// A line of packets with its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    line: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    /// Appends a packet, or drops it if the link is full.
    pub(super) fn admit(&mut self, packet: Waiting, port: &mut Port<'_>) {
        match port.is_over() {
            true => port.drop(packet, Cause::Full),
            false => self.push(packet),
        }
    }

    pub(super) fn push(&mut self, packet: Waiting) {
        self.bytes += u64::from(packet.size);
        self.line.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.line.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    pub(super) fn front(&self) -> Option<&Waiting> {
        self.line.front()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    pub(super) fn clear(&mut self) {
        self.line.clear();
        self.bytes = 0;
    }
}
