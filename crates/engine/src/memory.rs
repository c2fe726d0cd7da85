//! Memory of destinations: facts that one connection paid for, kept for the next (Linux `tcp_metrics`).
//!
//! A path between an address of ours and one of a peer's has one record; a further fact is a further field of it. So
//! far there is one: SYNs with MP_CAPABLE vanish on the way. RFC 8684 §3.1 permits such a cache; Linux has one switch
//! for the whole host (`net.mptcp.blackhole_timeout`), which one broken path throws for all.
//!
//! - **Cause.** SYNs with MP_CAPABLE were not answered, and one without was, by a SYN/ACK that acknowledges it and has
//!   no MP_CAPABLE. A host off the path would have to guess ports and sequence number to bring that about. A path that
//!   was merely down for some seconds looks alike, hence the short first pause.
//! - **Consequence.** Connections opened meanwhile offer no MPTCP, and lose no SYN. After the pause the next one offers
//!   it with a single SYN: an answer clears the record, silence doubles the pause.
//! - **Bounds.** At most [`MAX_RECORDS`] paths; the one whose pause ends first makes room. A record is forgotten when
//!   its last pause has been over for as long as the longest lasts. All by the endpoint's clock.

use anabranch_units::{Duration, Instant};
use anabranch_wire::FlowKey;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Paths remembered.
const MAX_RECORDS: usize = 256;
/// The first pause. An outage that fooled us costs no more than this.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// Ways for a connection to offer MPTCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// Nothing speaks against it.
    Usual,
    /// With one SYN: earlier ones were lost.
    Once,
    /// Not at all.
    Never,
}

/// Facts about the paths of one endpoint.
#[derive(Default)]
pub(crate) struct Memory {
    paths: BTreeMap<(IpAddr, IpAddr), Record>,
}

/// Facts about one path.
#[derive(Clone, Copy)]
struct Record {
    /// MP_CAPABLE is not offered before this.
    until: Instant,
    /// The latest pause.
    pause: Duration,
}

impl Memory {
    /// The way to offer MPTCP to the destination of `flow`; `longest` is the longest pause.
    pub(crate) fn offer(&mut self, now: Instant, flow: &FlowKey, longest: Duration) -> Offer {
        self.paths.retain(|_, record| now < record.until + longest);
        match self.paths.get(&path(flow)) {
            None => Offer::Usual,
            Some(record) if now < record.until => Offer::Never,
            Some(_) => Offer::Once,
        }
    }

    /// SYNs with MP_CAPABLE were not answered on this path, and one without was.
    pub(crate) fn on_offer_lost(&mut self, now: Instant, flow: &FlowKey, longest: Duration) {
        let known = self.paths.get(&path(flow)).copied();
        if known.is_some_and(|record| now < record.until) {
            // A connection that had begun before.
            return;
        }
        let pause = known.map_or(FIRST_PAUSE, |record| record.pause * 2).min(longest);
        if known.is_none() && self.paths.len() == MAX_RECORDS {
            let first = self.paths.iter().min_by_key(|(_, record)| record.until).map(|(path, _)| *path);
            first.and_then(|path| self.paths.remove(&path));
        }
        self.paths.insert(path(flow), Record { until: now + pause, pause });
    }

    /// A SYN with MP_CAPABLE was answered in kind.
    pub(crate) fn on_offer_taken(&mut self, flow: &FlowKey) {
        self.paths.remove(&path(flow));
    }
}

/// The path of a flow as we send it.
fn path(flow: &FlowKey) -> (IpAddr, IpAddr) {
    (flow.src, flow.dst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const HOUR: Duration = Duration::from_secs(3600);

    fn flow(number: u16) -> FlowKey {
        let [high, low] = number.to_be_bytes();
        FlowKey::new(SocketAddr::from(([10, 0, 0, 1], 4000)), SocketAddr::from(([10, 1, high, low], 80)))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Pauses of 60 s, 120 s, 240 s, … up to the longest; then a single SYN decides.
    #[test]
    fn pauses_double() {
        let mut memory = Memory::default();
        let mut now = 0;
        for pause in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            memory.on_offer_lost(at(now), &flow(1), HOUR);
            // Another connection, which had begun before, finds the same.
            memory.on_offer_lost(at(now + 1), &flow(1), HOUR);
            assert_eq!(memory.offer(at(now + pause - 1), &flow(1), HOUR), Offer::Never);
            assert_eq!(memory.offer(at(now + pause), &flow(1), HOUR), Offer::Once);
            assert_eq!(memory.offer(at(now), &flow(2), HOUR), Offer::Usual);
            now += pause;
        }
        memory.on_offer_taken(&flow(1));
        assert_eq!(memory.offer(at(now), &flow(1), HOUR), Offer::Usual);
    }

    #[test]
    fn records_age() {
        let mut memory = Memory::default();
        memory.on_offer_lost(at(0), &flow(1), HOUR);
        assert_eq!(memory.offer(at(60 + 3599), &flow(1), HOUR), Offer::Once);
        assert_eq!(memory.offer(at(60 + 3600), &flow(1), HOUR), Offer::Usual);
        assert!(memory.paths.is_empty());
    }

    #[test]
    fn records_are_bounded() {
        let mut memory = Memory::default();
        for number in 0..1000 {
            memory.on_offer_lost(at(u64::from(number)), &flow(number), HOUR);
        }
        assert_eq!(memory.paths.len(), MAX_RECORDS);
        assert_eq!(memory.offer(at(1000), &flow(999), HOUR), Offer::Never);
        assert_eq!(memory.offer(at(1000), &flow(0), HOUR), Offer::Usual);
    }
}
