//! Data in order on a subflow and ahead of the connection, which the receiver does not acknowledge (mptcp-ns3).
//!
//! There (`MpTcpSocketImpl::ProcessHeaderOptions`, mp-tcp-socket-impl.cc) a segment that is next on its subflow and not
//! next in the stream is stored, the subflow's next expected number stays, and nothing is sent. Those behind it then
//! look like segments behind a hole and are answered with duplicate ACKs. Once the stream has caught up, each is
//! acknowledged.

use std::collections::VecDeque;

/// Segments of one subflow that wait for the stream.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Subflow offset of the first byte, data offset behind the last.
    held: VecDeque<(u64, u64)>,
}

impl Ahead {
    /// Keeps a segment that begins at subflow offset `start` and ends before data offset `data_end`.
    pub(crate) fn hold(&mut self, start: u64, data_end: u64) {
        self.held.push_back((start, data_end));
    }

    /// The stream is complete up to `next`. True if something can be acknowledged that could not before.
    pub(crate) fn release(&mut self, next: u64) -> bool {
        let before = self.held.len();
        while self.held.front().is_some_and(|(_, data_end)| *data_end <= next) {
            self.held.pop_front();
        }
        self.held.len() < before
    }

    /// The subflow offset from which on nothing is acknowledged.
    pub(crate) fn first(&self) -> Option<u64> {
        self.held.front().map(|(start, _)| *start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 100 bytes, at data offsets 200, 300 and 600: the stream at 100, 400, 500 and 700.
    #[test]
    fn is_acknowledged_as_far_as_the_stream_has_caught_up() {
        let mut ahead = Ahead::default();
        for (start, data_end) in [(1, 300), (101, 400), (201, 700)] {
            ahead.hold(start, data_end);
        }
        for (next, released, first) in
            [(100, false, Some(1)), (400, true, Some(201)), (500, false, Some(201)), (700, true, None)]
        {
            assert_eq!((ahead.release(next), ahead.first()), (released, first), "{next}");
        }
    }
}
