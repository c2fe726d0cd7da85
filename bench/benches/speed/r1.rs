//! R1, the reference run: 100 Mbit/s, 10 ms and 10 Mbit/s, 40 ms one way, queues of one round trip, loss of 1e-4, and
//! its relatives with more connections, more clients, more subflows or faster links.

use anabranch_engine::{Policies, Profile};
use anabranch_net::{Discipline, LinkConfig, LossModel, QueueLimit};
use anabranch_paths::{Direction, PathSpec};
use anabranch_policy::registry;
use anabranch_sim::{HostSpec, Spec, Workload};
use anabranch_units::{Bytes, Duration, Rate};

/// A member of the family. All send down from the first instant on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct R1 {
    /// Number of connections of one client, over links faster by the same factor.
    pub connections: u64,
    /// Clients, each with links of its own.
    pub clients: usize,
    /// Subflows of each: fast and slow paths in turn.
    pub subflows: usize,
    /// Kind of links.
    pub links: Links,
    /// Discipline of their queues; drop-tail if none is named.
    pub discipline: Option<&'static str>,
}

/// The links of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// 100 Mbit/s, 10 ms and 10 Mbit/s, 40 ms.
    Standard,
    /// 1 Gbit/s, 10 ms and 50 ms, without random loss.
    Gigabit,
    /// 10 Gbit/s, 50 ms, under BBR.
    Long,
}

impl R1 {
    /// The reference run itself.
    pub const ONE: R1 = R1::shared(1);

    /// Makes a run of `connections` connections that share the links.
    pub const fn shared(connections: u64) -> R1 {
        R1 { connections, clients: 1, subflows: 2, links: Links::Standard, discipline: None }
    }

    /// Connections, each of a client of its own over links of its own.
    pub const fn own(clients: usize) -> R1 {
        R1 { clients, ..R1::ONE }
    }

    /// Makes a run of one connection with `subflows` subflows.
    pub const fn wide(subflows: usize) -> R1 {
        R1 { subflows, ..R1::ONE }
    }

    /// Makes a run of one connection over these links.
    pub const fn over(links: Links) -> R1 {
        R1 { subflows: if matches!(links, Links::Long) { 1 } else { 2 }, links, ..R1::ONE }
    }

    /// Makes the reference run with a queue discipline on every link.
    pub const fn queued(discipline: &'static str) -> R1 {
        R1 { discipline: Some(discipline), ..R1::ONE }
    }

    /// Returns the name used in the tables.
    pub fn name(self) -> String {
        match (self.links, self.connections, self.subflows) {
            _ if self.discipline.is_some() => format!("R1, queues of {}", self.discipline.unwrap_or_default()),
            _ if self.clients > 1 => format!("R1, {} connections, own links", self.clients),
            (Links::Gigabit, ..) => "2 x 1 Gbit/s, 20 + 100 ms RTT, no loss".to_owned(),
            (Links::Long, ..) => "10 Gbit/s, 100 ms RTT, BBR, loss 1e-4".to_owned(),
            (_, 1, 2) => "R1: 100 + 10 Mbit/s, 10 + 40 ms, loss 1e-4".to_owned(),
            (_, 1, subflows) => format!("R1, {subflows} subflows"),
            (_, connections, _) => format!("R1, {connections} connections, shared links"),
        }
    }

    /// Seconds of virtual time for about half a second of ours, or a few for those that need more.
    pub fn seconds(self, quick: bool) -> u64 {
        let whole: u64 = match (self.links, self.connections * self.clients as u64) {
            (Links::Standard, 1) => 100,
            (Links::Standard, 2..=100) => 5,
            (Links::Standard, _) => 2,
            (Links::Gigabit, _) => 10,
            (Links::Long, _) => 6,
        };
        if quick { whole.div_ceil(4) } else { whole }
    }

    /// Returns the specification of the run, for `seconds` seconds.
    pub fn spec(self, seconds: u64) -> Spec {
        let mut host = HostSpec::new(Profile { buffer: Bytes::new(6 << 20), ..Profile::tcp() }, Policies::default());
        host.config.multipath = self.subflows > 1;
        host.config.max_subflows = self.subflows;
        if self.links != Links::Standard {
            // Twice what is under way on all links, and a queue of the same size.
            let buffer = if self.links == Links::Long { 500_000_000 } else { 60_000_000 };
            (host.config.send_buffer, host.config.receive_buffer) = (Bytes::new(buffer), Bytes::new(buffer));
        }
        if self.links == Links::Long {
            let bbr = registry::CONGESTION.iter().find(|entry| entry.name == "bbr").expect("there is BBR");
            host.config.policies.congestion = std::sync::Arc::new(|| bbr.build_default());
        }
        let paths = (0..self.subflows).map(|number| self.path(number)).collect();
        let mut spec = Spec { clients: self.clients, ..Spec::new(paths, host.clone(), host) };
        let duration = Duration::from_secs(seconds);
        let bulk = Workload::Bulk { direction: Direction::Down, start: Duration::ZERO, duration };
        spec.workloads = vec![bulk; self.connections as usize];
        spec.stop = duration + Duration::from_secs(1);
        spec
    }

    fn path(self, number: usize) -> PathSpec {
        let fast = number.is_multiple_of(2);
        let (mbps, delay_ms, p) = match self.links {
            Links::Standard if fast => (100, 10, 1e-4),
            Links::Standard => (10, 40, 1e-4),
            Links::Gigabit => (1000, if fast { 10 } else { 50 }, 0.0),
            Links::Long => (10_000, 50, 1e-4),
        };
        let delay = Duration::from_millis(delay_ms);
        let queue = QueueLimit::Bdp { factor: 1.0, round_trip: delay * 2 };
        let discipline = self.discipline.map(|name| {
            let entry = registry::QUEUES.iter().find(|entry| entry.name == name).expect("there is this discipline");
            Discipline::new(name, || entry.build_default().policy)
        });
        let up = LinkConfig { queue, discipline, ..LinkConfig::new(Rate::from_mbps(mbps * self.connections), delay) };
        let loss = if p > 0.0 { LossModel::Bernoulli { p } } else { LossModel::None };
        PathSpec::new(&format!("p{number}"), LinkConfig { loss, ..up.clone() }, up)
    }
}
