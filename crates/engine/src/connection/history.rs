//! Rates and round trips of paths whose subflows have ended, for subflows that begin there anew: temporal sharing of
//! control blocks (RFC 9040 §6), within one connection.
//!
//! - **Threshold.** Slow start on a path that was used before ends at its rate times its shortest round trip, the
//!   bandwidth-delay product (J. Hoe, *Improving the Start-up Behavior of a Congestion Control Scheme for TCP*, SIGCOMM
//!   1996), in place of an overflow of its queue. The threshold that the subflow ended with would not do: timeouts on a
//!   dying path take it to two segments.
//! - **Rate.** Schedulers see the path's rate from the first segment on; the first queue corrects it.
//! - **Window.** Not shared: the new subflow begins with the initial window, so that it sends no burst.
//! - **Round trip.** Not shared: the handshake of the join has measured it.
//!
//! A path that comes back may be another, so what is older than a minute is forgotten. Of a path of which no queue was
//! seen nothing is known. Two other places would not do: servers keep no memory of paths, and the path manager drops
//! its list of failed joins for an address that goes or comes.

use crate::subflow::Subflow;
use anabranch_units::{Bytes, Duration, Instant, Rate};
use anabranch_wire::FlowKey;
use std::net::IpAddr;

/// Age at which a rate means nothing any more.
const KEPT: Duration = Duration::from_secs(60);
/// Paths remembered by one connection.
const MAX_PATHS: usize = 8;

/// Paths of ended subflows, the latest last.
#[derive(Default)]
pub(super) struct History(Vec<Ended>);

/// Facts about the path of a subflow that has ended.
struct Ended {
    local: IpAddr,
    remote: IpAddr,
    known: Known,
    until: Instant,
}

/// Facts that a subflow left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// Rate of the path towards the peer.
    pub(super) rate: Rate,
    /// Shortest round trip.
    rtt: Duration,
}

impl History {
    /// Keeps what a subflow knew of its path, if it knew anything.
    pub(super) fn keep(&mut self, subflow: &Subflow) {
        if let Some((rate, rtt)) = subflow.tx.path_rate.get().zip(subflow.tx.rtt.min()) {
            self.add(subflow.flow, Known { rate, rtt }, subflow.liveness.heard + KEPT);
        }
    }

    fn add(&mut self, flow: FlowKey, known: Known, until: Instant) {
        let FlowKey { src: local, dst: remote, .. } = flow;
        self.0.retain(|path| (path.local, path.remote) != (local, remote));
        if self.0.len() >= MAX_PATHS {
            self.0.remove(0);
        }
        self.0.push(Ended { local, remote, known, until });
    }

    /// Facts about the path of `flow`.
    pub(super) fn of(&self, now: Instant, flow: &FlowKey) -> Option<Known> {
        let is_this = |path: &&Ended| (path.local, path.remote) == (flow.src, flow.dst) && now < path.until;
        self.0.iter().find(is_this).map(|path| path.known)
    }
}

impl Known {
    /// The bandwidth-delay product.
    pub(super) fn threshold(&self) -> Bytes {
        self.rate.bytes_in(self.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn flow(number: u8) -> FlowKey {
        FlowKey::new(SocketAddr::from(([10, 0, 0, number], 4000)), SocketAddr::from(([10, 1, 0, 1], 80)))
    }

    fn known(mbps: u64) -> Known {
        Known { rate: Rate::from_mbps(mbps), rtt: Duration::from_millis(60) }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// 20 Mbit/s for 60 ms are 150 kB; the latest of a path counts, for a minute, on any port.
    #[test]
    fn a_path_is_remembered_for_a_minute() {
        let mut history = History::default();
        history.add(flow(1), known(5), at(70));
        history.add(flow(1), known(20), at(75));
        assert_eq!(history.of(at(74), &flow(1)), Some(known(20)));
        assert_eq!(known(20).threshold(), Bytes::new(150_000));
        assert_eq!(history.of(at(74), &FlowKey { src_port: 5, ..flow(1) }), Some(known(20)));
        assert_eq!(history.of(at(75), &flow(1)), None);
        assert_eq!(history.of(at(74), &flow(2)), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut history = History::default();
        (0..20).for_each(|number| history.add(flow(number), known(1), at(60)));
        assert_eq!(history.0.len(), MAX_PATHS);
        assert_eq!((history.of(at(0), &flow(11)), history.of(at(0), &flow(12))), (None, Some(known(1))));
    }
}
