//! Limits of the state kept for a capture of any size.

/// Bounds on memory. What is beyond is counted and not analysed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// TCP connections, subflows included.
    pub flows: usize,
    /// MPTCP connections.
    pub connections: usize,
    /// Pieces of data remembered by who carried them first, over all connections.
    pub pieces: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { flows: 1 << 16, connections: 1 << 13, pieces: 1 << 20 }
    }
}

impl Limits {
    /// Pieces for each direction of a connection.
    pub(crate) fn history(&self, connections: usize) -> usize {
        (self.pieces / connections.max(1) / 2).clamp(16, 1 << 14)
    }
}
