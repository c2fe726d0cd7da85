//! The addresses that are tried one after the other for one destination.

use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Addresses left to try. `L` is the local address: one of the engine, or none for a kernel socket.
pub(super) struct Dial<L> {
    left: VecDeque<(L, SocketAddr)>,
    /// Time at which the attempt under way is given up.
    pub(super) attempt_until: Instant,
}

/// Destinations tried; a name with more addresses is a strange one.
const MOST_ADDRESSES: usize = 8;

impl<L> Dial<L> {
    /// The next attempt, which may take `patience`.
    pub(super) fn next(&mut self, now: Instant, patience: Duration) -> Option<(L, SocketAddr)> {
        self.attempt_until = now + patience;
        self.left.pop_front()
    }
}

impl Dial<()> {
    /// Through a kernel socket.
    pub(super) fn direct(addresses: &[SocketAddr]) -> Self {
        let left = addresses.iter().take(MOST_ADDRESSES).map(|address| ((), *address)).collect();
        Dial { left, attempt_until: Instant::ZERO }
    }
}

impl Dial<IpAddr> {
    /// Combines each of our addresses with each destination, so that one dead path does not keep a destination from
    /// being reached. The destinations from the first address come first.
    pub(super) fn via(local: &[IpAddr], addresses: &[SocketAddr]) -> Self {
        let pairs = local.iter().flat_map(|local| {
            let same_family = addresses.iter().filter(|remote| remote.is_ipv4() == local.is_ipv4());
            same_family.take(MOST_ADDRESSES).map(|remote| (*local, *remote))
        });
        Dial { left: pairs.collect(), attempt_until: Instant::ZERO }
    }

    /// Returns true if no address of ours is of the destination's family.
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}
