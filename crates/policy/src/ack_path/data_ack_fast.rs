//! DATA_ACK early: as soon as the stream has grown, the subflow with the lowest RTT carries it, whichever subflow
//! brought the data.
//!
//! RFC 8684 §3.3.2 lets a DATA_ACK travel on any subflow, so this works with every peer. It frees the connection's
//! window, and the sender's buffer, sooner. It does not make the congestion window of a slow subflow turn faster: that
//! waits for the TCP ACK, which stays on its own path (A-ACK-MOVE).
//!
//! Cost: one more pure ACK for each arrival on a slower subflow that moves the stream on. On the fast subflow these are
//! duplicate ACKs of TCP. With SACK they do not indicate a loss (RFC 6675); where SACK was not agreed on the engine
//! leaves the DATA_ACK where it was.
//!
//! A host that only receives knows RTTs from the handshakes. It does not see later changes.

use super::{AckPath, AckRoute, Entry};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "data-ack-fast",
    "DATA_ACK early on the fastest subflow, the TCP ACK on its own; any peer",
    include_str!("data_ack_fast.rs"),
    |_| Box::new(DataAckFast),
)
.paper("RFC 8684 §3.3.2");

/// The DATA_ACK on the subflow with the lowest RTT.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataAckFast;

impl AckPath for DataAckFast {
    fn data_ack(&mut self, _now: Instant, arrived: SubflowId, routes: &[AckRoute]) -> SubflowId {
        let fastest = routes.iter().filter_map(|route| route.srtt.map(|srtt| (srtt, route.id))).min();
        let own = routes.iter().find(|route| route.id == arrived).and_then(|route| route.srtt);
        match (fastest, own) {
            // Of equals the one that must answer anyway.
            (Some((srtt, id)), Some(own)) if srtt < own => id,
            _ => arrived,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn the_fastest_answers_unless_the_own_subflow_is_as_fast() {
        let answer = |arrived, rtts: &[Option<u64>]| {
            let routes: Vec<_> = rtts.iter().enumerate().map(|(n, rtt)| route(SubflowId(n as u16), *rtt)).collect();
            DataAckFast.data_ack(Instant::ZERO, arrived, &routes)
        };
        for (arrived, rtts, expected) in [
            (SECOND, &[Some(20), Some(80)][..], FIRST),
            (FIRST, &[Some(20), Some(80)], FIRST),
            (SECOND, &[Some(50), Some(50)], SECOND),
            (FIRST, &[Some(50), Some(20), Some(20)], SECOND), // Of two equals the lower id.
            (THIRD, &[None, Some(40), Some(60)], SECOND),
            (SECOND, &[Some(10), None], SECOND), // Nothing to compare with.
            (SECOND, &[], SECOND),
        ] {
            assert_eq!(answer(arrived, rtts), expected, "{arrived:?} of {rtts:?}");
        }
    }

    #[test]
    fn the_tcp_ack_stays_on_its_path() {
        let routes = [route(FIRST, Some(1)), route(SECOND, Some(90))];
        assert_eq!(DataAckFast.path(Instant::ZERO, SECOND, &routes), SECOND);
    }
}
