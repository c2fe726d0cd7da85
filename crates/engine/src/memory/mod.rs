//! Memory of paths: facts that one connection paid for, kept for the next (Linux `tcp_metrics`, RFC 9040 §6).
//!
//! A path between an address of ours and one of a peer's has one [`Record`]; `text` is the form in which a driver can
//! keep all of them. A client writes and asks; a server, with peers beyond number, keeps none.
//!
//! **Measurements**: round trip, rate and loss, of the latest subflow. They tell a first-path policy where to begin a
//! connection. Of a peer's address that is unknown, those of the nearest one in its network count: a /24 of IPv4, a /64
//! of IPv6 (RFC 8305 §5: "the same host or prefix").
//!
//! A SYN that lost a race measures as well, should it be answered later (`late`).
//!
//! **Silence**: SYNs or data without an answer for several timeouts. Connections begin elsewhere for a minute.
//!
//! **MPTCP stripped**: a SYN/ACK came back without the option. That is the path's doing if the same peer has answered
//! the option on another path, and otherwise most likely the peer's, so that another path is no better.
//!
//! **MPTCP black hole**: SYNs with MP_CAPABLE vanish on the way. RFC 8684 §3.1 permits a cache of that; Linux has one
//! switch for the whole host (`net.mptcp.blackhole_timeout`), which one broken path throws for all.
//!
//! - **Cause.** SYNs with MP_CAPABLE were not answered, and one without was, by a SYN/ACK that acknowledges it and has
//!   no MP_CAPABLE. A host off the path would have to guess ports and sequence number to bring that about. A path that
//!   was merely down for some seconds looks alike, hence the short first pause.
//! - **Consequence.** Connections opened meanwhile offer no MPTCP, and lose no SYN. After the pause the next one offers
//!   it with a single SYN: an answer clears the record, silence doubles the pause.
//!
//! **Bounds.** At most [`MAX_RECORDS`] paths; the one to be forgotten first makes room. A black hole is forgotten when
//! its last pause has been over for as long as the longest lasts, the rest after an hour. All by the endpoint's clock.

mod late;
mod text;

pub use text::{MemoryError, PathMemory, PathRecord};

use anabranch_policy::first_path::{Candidate, Known};
use anabranch_units::{Duration, Instant, Rate};
use anabranch_wire::FlowKey;
use late::LateAnswers;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Paths remembered.
const MAX_RECORDS: usize = 256;
/// The first pause. An outage that fooled us costs no more than this.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// Measurements are kept for as long as Linux keeps them (`TCP_METRICS_TIMEOUT`).
const KEPT: Duration = Duration::from_secs(3600);
/// A path on which nothing answered is avoided for so long.
const AVOIDED: Duration = FIRST_PAUSE;

/// Ways for a connection to offer MPTCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// No known problem.
    Usual,
    /// Offered on one SYN only: earlier ones were lost.
    Once,
    /// Not offered.
    Never,
}

/// Facts about the paths of one endpoint.
#[derive(Default)]
pub(crate) struct Memory {
    paths: BTreeMap<Path, Record>,
    late: LateAnswers,
}

/// Our address and the peer's.
type Path = (IpAddr, IpAddr);

/// Facts about one path.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Record {
    hole: Option<Hole>,
    measured: Option<Measured>,
    /// A SYN/ACK came without MP_CAPABLE; kept until then.
    stripped: Option<Instant>,
    /// A SYN/ACK came with MP_CAPABLE; kept until then.
    capable: Option<Instant>,
    /// The path did not answer; it is avoided until then.
    silent: Option<Instant>,
}

/// A black hole for MP_CAPABLE.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Hole {
    /// MP_CAPABLE is not offered before this.
    until: Instant,
    /// The latest pause.
    pause: Duration,
}

/// Measurements by a subflow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measured {
    /// The shortest round trip.
    pub(crate) rtt: Duration,
    /// Rate of the path in the busier direction, once a train of segments has shown it.
    pub(crate) rate: Option<Rate>,
    /// Share of our segments that was lost.
    pub(crate) loss: f64,
    /// Forgotten then.
    pub(crate) until: Instant,
}

impl Memory {
    /// The way to offer MPTCP to the destination of `flow`; `longest` is the longest pause.
    pub(crate) fn offer(&mut self, now: Instant, flow: &FlowKey, longest: Duration) -> Offer {
        self.forget(now, longest);
        match self.paths.get(&path(flow)).and_then(|record| record.hole) {
            None => Offer::Usual,
            Some(hole) if now < hole.until => Offer::Never,
            Some(_) => Offer::Once,
        }
    }

    /// SYNs with MP_CAPABLE were not answered on this path, and one without was.
    pub(crate) fn on_offer_lost(&mut self, now: Instant, flow: &FlowKey, longest: Duration) {
        let record = self.record(flow);
        if record.hole.is_some_and(|hole| now < hole.until) {
            // A connection that had begun before.
            return;
        }
        let pause = record.hole.map_or(FIRST_PAUSE, |hole| hole.pause * 2).min(longest);
        record.hole = Some(Hole { until: now + pause, pause });
    }

    /// A SYN with MP_CAPABLE was answered in kind.
    pub(crate) fn on_offer_taken(&mut self, now: Instant, flow: &FlowKey) {
        let record = self.record(flow);
        (record.hole, record.stripped) = (None, None);
        record.capable = Some(now + KEPT);
    }

    /// Records that an offer was answered by a SYN/ACK without MP_CAPABLE.
    pub(crate) fn on_offer_stripped(&mut self, now: Instant, flow: &FlowKey) {
        let record = self.record(flow);
        record.stripped = Some(now + KEPT);
        record.capable = None;
    }

    /// A SYN was answered after `rtt`.
    pub(crate) fn on_answer(&mut self, now: Instant, flow: &FlowKey, rtt: Duration) {
        let record = self.record(flow);
        record.silent = None;
        let before = record.measured.filter(|measured| now < measured.until);
        let (rate, loss) = before.map_or((None, 0.0), |measured| (measured.rate, measured.loss));
        record.measured = Some(Measured { rtt, rate, loss, until: now + KEPT });
    }

    /// A subflow has ended.
    pub(crate) fn on_measured(&mut self, now: Instant, flow: &FlowKey, rtt: Duration, rate: Option<Rate>, loss: f64) {
        let record = self.record(flow);
        let before = record.measured.filter(|measured| now < measured.until).and_then(|measured| measured.rate);
        record.measured = Some(Measured { rtt, rate: rate.or(before), loss, until: now + KEPT });
    }

    /// Records that the path has not answered for several timeouts.
    pub(crate) fn on_silence(&mut self, now: Instant, flow: &FlowKey) {
        self.record(flow).silent = Some(now + AVOIDED);
    }

    /// The path from `local` to `remote` as a policy may know it.
    pub(crate) fn candidate(&self, now: Instant, local: IpAddr, remote: IpAddr) -> Candidate {
        let record = self.paths.get(&(local, remote)).copied().unwrap_or_default();
        let lasts = |until: Option<Instant>| until.is_some_and(|until| now < until);
        let elsewhere = |(path, other): (&Path, &Record)| path.1 == remote && lasts(other.capable);
        let stripped = lasts(record.stripped) && self.paths.iter().any(elsewhere);
        let measured = record.measured.filter(|measured| now < measured.until);
        let known = measured.or_else(|| self.nearby(now, local, remote)).map(|measured| Known {
            age: KEPT.saturating_sub(measured.until.since(now)),
            rtt: measured.rtt,
            rate: measured.rate,
            loss: measured.loss,
        });
        Candidate {
            local,
            remote,
            backup: false,
            dead: lasts(record.silent),
            plain: stripped || lasts(record.hole.map(|hole| hole.until)),
            known,
            truth: None,
        }
    }

    /// The latest measurement towards the network of `remote`.
    fn nearby(&self, now: Instant, local: IpAddr, remote: IpAddr) -> Option<Measured> {
        let fits = |path: &Path| path.0 == local && network(path.1) == network(remote);
        let measured = self.paths.iter().filter(|(path, _)| fits(path)).filter_map(|(_, record)| record.measured);
        measured.filter(|measured| now < measured.until).max_by_key(|measured| measured.until)
    }

    /// Drops what is too old.
    fn forget(&mut self, now: Instant, longest: Duration) {
        self.paths.retain(|_, record| {
            record.hole = record.hole.filter(|hole| now < hole.until + longest);
            record.measured = record.measured.filter(|measured| now < measured.until);
            for fact in [&mut record.stripped, &mut record.capable, &mut record.silent] {
                *fact = fact.filter(|until| now < *until);
            }
            *record != Record::default()
        });
    }

    /// The record of a path, for something to be written into it.
    fn record(&mut self, flow: &FlowKey) -> &mut Record {
        self.entry(path(flow))
    }

    fn entry(&mut self, path: Path) -> &mut Record {
        if !self.paths.contains_key(&path) && self.paths.len() >= MAX_RECORDS {
            let first = self.paths.iter().min_by_key(|(_, record)| record.until()).map(|(path, _)| *path);
            first.and_then(|path| self.paths.remove(&path));
        }
        self.paths.entry(path).or_default()
    }
}

impl Record {
    /// Returns the time at which the last fact expires.
    fn until(&self) -> Option<Instant> {
        let (hole, measured) = (self.hole.map(|hole| hole.until), self.measured.map(|measured| measured.until));
        [hole, measured, self.stripped, self.capable, self.silent].into_iter().flatten().max()
    }
}

/// The path of a flow as we send it.
fn path(flow: &FlowKey) -> Path {
    (flow.src, flow.dst)
}

/// The network of an address.
fn network(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits() >> 8),
        // No IPv4 network is as large.
        IpAddr::V6(v6) => (v6.to_bits() >> 64) | 1 << 64,
    }
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

    /// The same destination from another address of ours.
    fn other(number: u16) -> FlowKey {
        FlowKey { src: [10, 0, 1, 1].into(), ..flow(number) }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn candidate(memory: &Memory, seconds: u64, flow: &FlowKey) -> Candidate {
        memory.candidate(at(seconds), flow.src, flow.dst)
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
            assert!(candidate(&memory, now + pause - 1, &flow(1)).plain);
            assert_eq!(memory.offer(at(now + pause), &flow(1), HOUR), Offer::Once);
            assert_eq!(memory.offer(at(now), &flow(2), HOUR), Offer::Usual);
            now += pause;
        }
        memory.on_offer_taken(at(now), &flow(1));
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

    #[test]
    fn measurements_age_and_are_forgotten() {
        let mut memory = Memory::default();
        memory.on_answer(at(0), &flow(1), ms(40));
        memory.on_measured(at(10), &flow(1), ms(35), Some(Rate::from_mbps(8)), 0.01);
        let known = |memory: &Memory, seconds, number| candidate(memory, seconds, &flow(number)).known;
        let expected = Known { age: Duration::from_secs(20), rtt: ms(35), rate: Some(Rate::from_mbps(8)), loss: 0.01 };
        assert_eq!(known(&memory, 30, 1), Some(expected));
        // A transfer without a train says nothing of the rate; a handshake renews the round trip alone.
        memory.on_measured(at(40), &flow(1), ms(36), None, 0.0);
        memory.on_answer(at(50), &flow(1), ms(50));
        let expected = Known { age: Duration::ZERO, rtt: ms(50), rate: Some(Rate::from_mbps(8)), loss: 0.0 };
        assert_eq!(known(&memory, 50, 1), Some(expected));
        // 10.1.0.2 is in the same /24, 10.1.1.1 is not.
        assert_eq!(known(&memory, 50, 2), Some(expected));
        assert_eq!(known(&memory, 50, 0x101), None);
        assert_eq!(candidate(&memory, 50, &other(1)).known, None, "another address of ours");
        assert_eq!(known(&memory, 50 + 3600, 1), None);
        memory.forget(at(50 + 3600), HOUR);
        assert!(memory.paths.is_empty());
    }

    #[test]
    fn silence_is_avoided_for_a_minute_or_until_an_answer() {
        let mut memory = Memory::default();
        memory.on_silence(at(0), &flow(1));
        assert!(candidate(&memory, 59, &flow(1)).dead);
        assert!(!candidate(&memory, 60, &flow(1)).dead);
        assert!(!candidate(&memory, 1, &other(1)).dead);
        memory.on_answer(at(5), &flow(1), ms(10));
        assert!(!candidate(&memory, 6, &flow(1)).dead);
    }

    /// A server without MPTCP is one on every path; a path is to blame where another does better.
    #[test]
    fn a_path_strips_if_another_does_not() {
        let mut memory = Memory::default();
        memory.on_offer_stripped(at(0), &flow(1));
        assert!(!candidate(&memory, 1, &flow(1)).plain);
        memory.on_offer_taken(at(1), &other(1));
        assert!(candidate(&memory, 2, &flow(1)).plain);
        assert!(!candidate(&memory, 2, &other(1)).plain);
        assert!(!candidate(&memory, 2, &flow(2)).plain);
        memory.on_offer_taken(at(3), &flow(1));
        assert!(!candidate(&memory, 4, &flow(1)).plain);
    }
}
