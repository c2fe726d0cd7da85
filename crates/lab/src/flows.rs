//! Measurements of flows: what each workload of a run, competing traffic included, sent, lost and got.
//!
//! [`Measured`](crate::Measured) is about the transfers under test. A question about several flows, such as what one
//! loses beside another, needs all of them, in a span of the run in which they compete.

use crate::flow_observer::{FlowObserver, FlowRecord, Key, silence};
use crate::format::{FLOW_JOURNAL, Format};
use crate::journal::Kept;
use crate::run::{Keep, RunError, run_watched};
use anabranch_scenario::Scenario;
use anabranch_sim::{Host, Outcome, PhaseRecord, Sample, Spec, Workload};
use anabranch_units::{Duration, Instant};
use anabranch_wire::FlowKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Part of a run to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Beginning.
    pub from: Duration,
    /// End.
    pub to: Duration,
    /// Time from which on the times of transmissions are kept.
    pub after: Option<Duration>,
    /// Length of a place in the series.
    pub bin: Duration,
    /// Keep phases and windows of congestion controls.
    pub closely: bool,
}

impl Span {
    /// Returns a text that differs for spans that differ.
    pub fn text(&self) -> String {
        let after = self.after.map_or(0, |after| after.as_nanos());
        let (from, to, bin) = (self.from.as_nanos(), self.to.as_nanos(), self.bin.as_nanos());
        format!("{from}/{to}/{after}/{bin}/{}", self.closely)
    }
}

/// Measurements of the flows of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// Seed of the run.
    pub seed: u64,
    /// True if all transfers under test completed.
    pub finished: bool,
    /// Length of a place in the series \[s\].
    pub bin_s: f64,
    /// Time that the span takes \[s\].
    pub span_s: f64,
    /// Workloads of the scenario, in order.
    pub parties: Vec<Party>,
    /// Changes of phase of congestion controls that model the path; only if they were asked for.
    pub phases: Vec<PhaseChange>,
    /// Congestion windows of the hosts under test, by time \[bytes\]; only if they were asked for.
    pub windows: Vec<u64>,
    /// Digest of all events; empty for a run in real time.
    pub events_digest: String,
    /// Reasons for which the links of a run in real time did not do what the scenario says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Change of the phase of a congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseChange {
    /// Time of the change \[s\].
    pub at_s: f64,
    /// Workload whose sender it is.
    pub workload: usize,
    /// Name of the new phase.
    pub phase: String,
    /// Variables of the model behind the change; null for an infinite one.
    pub variables: BTreeMap<String, Option<f64>>,
}

/// Measurements of one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Party {
    /// True for traffic beside the hosts under test.
    pub competing: bool,
    /// Payload that arrived in the span, copies excluded.
    pub bytes: u64,
    /// Packets with payload that were sent in the span.
    pub packets: u64,
    /// Number of these packets that were lost.
    pub lost: u64,
    /// Time in queues of packets sent in the span \[s\]: one-way delay beyond that of a full packet on the empty path.
    pub delay: Option<Delay>,
    /// Longest time in the span in which no new payload arrived \[s\].
    pub silence_s: f64,
    /// Payload that arrived in the span by connection.
    pub connections: Vec<u64>,
    /// Files, in order: beginning, and time to the last byte \[s\]; null if it did not arrive.
    pub files: Vec<(f64, Option<f64>)>,
    /// Payload that arrived, by time.
    pub bytes_over_time: Vec<u64>,
    /// Packets with payload sent, by time.
    pub packets_over_time: Vec<u64>,
    /// Number of packets with payload that were lost, by the time at which they were sent.
    pub lost_over_time: Vec<u64>,
    /// Least time in queues \[µs\], by the time at which packets were sent; null where none arrived.
    pub delay_over_time_us: Vec<Option<u64>>,
    /// Times of transmissions from the time on that was asked for \[s\].
    pub sends_s: Vec<f64>,
}

/// Time in queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// Mean \[s\].
    pub mean_s: f64,
    /// Median \[s\].
    pub p50_s: f64,
    /// Percentile 95 \[s\].
    pub p95_s: f64,
    /// Percentile 99 \[s\].
    pub p99_s: f64,
}

impl Kept for Flows {
    const FORMAT: &'static Format = &FLOW_JOURNAL;

    fn seed(&self) -> u64 {
        self.seed
    }
}

/// Runs the scenario with this seed and measures its flows.
///
/// # Errors
///
/// If the run breaks.
pub fn flows(scenario: &Scenario, seed: u64, span: Span) -> Result<Flows, RunError> {
    let mut observer = FlowObserver::new(span);
    let sampled = span.closely.then(|| scenario.clone().sampled(span.bin));
    let run = run_watched(sampled.as_ref().unwrap_or(scenario), seed, &Keep::default(), Some(&mut observer))?;
    Ok(Flows::of(&scenario.spec(seed), &run.outcome, observer, span))
}

impl Flows {
    fn of(spec: &Spec, outcome: &Outcome, mut observer: FlowObserver, span: Span) -> Flows {
        let mut parties: Vec<Builder> = spec.workloads.iter().map(Builder::of).collect();
        let records = std::mem::take(&mut observer.flows);
        let udp: Vec<usize> = (0..spec.workloads.len()).filter(|&it| is_udp(&spec.workloads[it])).collect();
        // The receiver's addresses differ from the sender's only behind a middlebox; the sender's are those that count.
        let of_connection = |key: &Key| {
            let Key::Tcp(client, flow) = key else { return None };
            outcome.connections.iter().position(|it| {
                it.client == *client
                    && it
                        .subflows
                        .iter()
                        .any(|subflow| *flow == FlowKey::new(subflow.stats.local, subflow.stats.remote))
            })
        };
        for (key, record) in &records {
            let base = |down| observer.base(record.path, down);
            match *key {
                Key::Udp(flow) => {
                    let Some(&workload) = udp.get(flow) else { continue };
                    parties[workload].add(record, base(is_down(&spec.workloads[workload])), None, &span);
                }
                Key::Tcp(..) => {
                    let Some(number) = of_connection(key) else { continue };
                    let workload = outcome.connections[number].workload;
                    parties[workload].add(record, base(is_down(&spec.workloads[workload])), Some(number), &span);
                }
                Key::Real(..) => {}
            }
        }
        for transfer in outcome.transfers.iter().filter(|transfer| transfer.asked.is_some()) {
            let seconds = transfer.duration().map(Duration::as_secs_f64);
            let started = transfer.started.since(Instant::ZERO).as_secs_f64();
            parties[transfer.workload].party.files.push((started, seconds));
        }
        let phase = |record: &PhaseRecord| PhaseChange {
            at_s: record.at.since(Instant::ZERO).as_secs_f64(),
            workload: outcome.connections[record.connection].workload,
            phase: record.phase.to_owned(),
            variables: record
                .variables
                .iter()
                .map(|(name, x)| ((*name).to_owned(), x.is_finite().then_some(*x)))
                .collect(),
        };
        let window = |sample: &Sample| sample.paths.iter().map(|path| path.cwnd).sum();
        // Each end of a connection has a congestion control; that of the data counts.
        let sends = |record: &&PhaseRecord| {
            let workload = &spec.workloads[outcome.connections[record.connection].workload];
            matches!(record.host, Host::Server | Host::CompetingServer(_)) == is_down(workload)
        };
        let (phases, windows) = match span.closely {
            true => {
                (outcome.phases.iter().filter(sends).map(phase).collect(), outcome.samples.iter().map(window).collect())
            }
            false => (Vec::new(), Vec::new()),
        };
        Flows {
            phases,
            windows,
            seed: spec.seed.0,
            finished: outcome.finished,
            bin_s: span.bin.as_secs_f64(),
            span_s: span.to.saturating_sub(span.from).as_secs_f64(),
            parties: parties.into_iter().map(|it| it.finish(&span)).collect(),
            events_digest: format!("{:016x}", outcome.digest),
            faults: Vec::new(),
        }
    }
}

fn is_udp(workload: &Workload) -> bool {
    matches!(workload, Workload::Udp { .. })
}

/// Returns true if its data goes from the server to the client.
fn is_down(workload: &Workload) -> bool {
    use anabranch_paths::Direction;
    match workload {
        Workload::Bulk { direction, .. }
        | Workload::Files { direction, .. }
        | Workload::Bursts { direction, .. }
        | Workload::Udp { direction, .. }
        | Workload::Tcp { direction, .. } => *direction == Direction::Down,
        Workload::Exchange { .. } | Workload::Web { .. } | Workload::Interactive { .. } => true,
    }
}

/// Puts a party together, flow by flow.
pub(crate) struct Builder {
    pub(crate) party: Party,
    delays: Vec<u64>,
    arrivals: Vec<Instant>,
    /// Indices of connections, in the order of `party.connections`.
    connections: Vec<usize>,
}

impl Builder {
    fn of(workload: &Workload) -> Builder {
        Builder::new(is_udp(workload) || matches!(workload, Workload::Tcp { .. }))
    }

    pub(crate) fn new(competing: bool) -> Builder {
        let party = Party { competing, ..Party::default() };
        Builder { party, delays: Vec::new(), arrivals: Vec::new(), connections: Vec::new() }
    }

    pub(crate) fn add(&mut self, record: &FlowRecord, base: u64, connection: Option<usize>, span: &Span) {
        let party = &mut self.party;
        party.bytes += record.received;
        party.packets += record.sent;
        party.lost += record.dropped;
        sum(&mut party.bytes_over_time, &record.bytes);
        sum(&mut party.packets_over_time, &record.packets);
        sum(&mut party.lost_over_time, &record.lost);
        let least = &mut party.delay_over_time_us;
        least.resize(least.len().max(record.least.len()), None);
        for (all, one) in least.iter_mut().zip(&record.least) {
            let one = one.map(|delay| delay.saturating_sub(base) / 1000);
            *all = [*all, one].into_iter().flatten().min();
        }
        self.delays.extend(record.delays.iter().map(|delay| delay.saturating_sub(base)));
        self.arrivals.extend(&record.arrivals);
        if span.after.is_some() {
            party.sends_s.extend(record.sends.iter().map(|at| at.since(Instant::ZERO).as_secs_f64()));
        }
        let Some(connection) = connection else { return };
        match self.connections.iter().position(|known| *known == connection) {
            Some(place) => party.connections[place] += record.received,
            None => {
                self.connections.push(connection);
                party.connections.push(record.received);
            }
        }
    }

    pub(crate) fn finish(mut self, span: &Span) -> Party {
        self.delays.sort_unstable();
        let at = |thousandths: usize| {
            let rank = (self.delays.len() * thousandths).div_ceil(1000).max(1);
            self.delays.get(rank - 1).map_or(0.0, |delay| *delay as f64 / 1e9)
        };
        let sum: u64 = self.delays.iter().sum();
        self.party.delay = (!self.delays.is_empty()).then(|| Delay {
            mean_s: sum as f64 / 1e9 / self.delays.len() as f64,
            p50_s: at(500),
            p95_s: at(950),
            p99_s: at(990),
        });
        self.party.silence_s = silence(self.arrivals, span).as_secs_f64();
        self.party.sends_s.sort_by(f64::total_cmp);
        self.party
    }
}

fn sum(all: &mut Vec<u64>, one: &[u64]) {
    all.resize(all.len().max(one.len()), 0);
    all.iter_mut().zip(one).for_each(|(all, one)| *all += one);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_scenario::Origin;
    use std::sync::Arc;

    fn measured(text: &str) -> (Flows, String) {
        let catalogue = Arc::new(anabranch_policy::Catalogue::default());
        let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        let scenario = Scenario::read(&catalogue, "test", "test.toml", text, Origin::default(), &none).unwrap();
        let seconds = Duration::from_secs;
        let span = Span {
            from: seconds(2),
            to: seconds(6),
            after: Some(seconds(5)),
            bin: Duration::from_millis(500),
            closely: true,
        };
        let plain = crate::run(&scenario, 1, &Keep::default()).unwrap();
        (flows(&scenario, 1, span).unwrap(), plain.measured.events_digest)
    }

    const LINK: &str = "[link.neck]\nrate = \"10mbit\"\nqueue = \"30p\"\n\
                        [path.a]\nrate = \"1gbit\"\nrtt = \"20ms\"\nvia = \"neck\"\n\
                        [host]\nmultipath = false\n\
                        [[workload]]\nkind = \"bulk\"\nduration = \"6s\"\n";

    /// Two TCP flows fill the link, and all that they get is what it carries: 10 Mbit/s with 1460 of 1500 bytes or a
    /// little less as payload. The queue of 30 packets is 36 ms long, and no packet waits longer.
    #[test]
    fn all_flows_together_have_the_link() {
        let tcp = "[[workload]]\nkind = \"tcp\"\npath = \"a\"\nduration = \"6s\"\ncongestion = \"reno\"\n";
        let (flows, digest) = measured(&format!("{LINK}{tcp}"));
        assert_eq!(flows.events_digest, digest, "looking changes nothing");
        let [own, other] = flows.parties.as_slice() else { panic!("two workloads") };
        assert!(!own.competing && other.competing);
        let rate = |party: &Party| party.bytes as f64 * 8.0 / flows.span_s;
        let total = rate(own) + rate(other);
        assert!((9.3e6..9.75e6).contains(&total), "{total}");
        assert!(rate(own) > 1e6 && rate(other) > 1e6, "{} {}", rate(own), rate(other));
        for party in [own, other] {
            let delay = party.delay.unwrap();
            assert!(delay.p50_s > 0.005 && delay.p99_s < 0.037 && delay.mean_s < 0.036, "{delay:?}");
            assert!(party.lost > 0 && party.lost < party.packets / 10, "{} of {}", party.lost, party.packets);
            assert!(party.silence_s < 0.5, "{}", party.silence_s);
            assert_eq!((party.connections.len(), party.connections[0]), (1, party.bytes));
            assert_eq!(party.bytes_over_time[4..12].iter().sum::<u64>(), party.bytes, "the span in steps of 0.5 s");
            assert!(party.sends_s.iter().all(|at| *at >= 5.0) && party.sends_s.len() > 100);
        }
    }

    /// BBR tells its phases with the variables of its model, and the window is at least four segments.
    #[test]
    fn phases_and_windows_are_kept() {
        let (flows, _) = measured(&LINK.replace("multipath = false", "multipath = false\ncongestion = \"bbr\""));
        let phases: Vec<&str> = flows.phases.iter().map(|it| it.phase.as_str()).collect();
        assert!(phases.starts_with(&["startup", "drain", "probe-bw"]), "{phases:?}");
        assert!(flows.phases.is_sorted_by(|a, b| a.at_s <= b.at_s) && flows.phases[0].workload == 0);
        assert!(flows.phases[2].variables["max-bw"].is_some_and(|rate| (1.1e6..1.3e6).contains(&rate)));
        assert!(flows.windows.len() >= 12 && flows.windows[4..].iter().all(|window| *window >= 4 * 1448));
    }

    /// UDP of 2 Mbit/s gets through beside TCP but for what a full queue drops, and files have their times.
    #[test]
    fn datagrams_and_files_are_flows_as_well() {
        let other = "[[workload]]\nkind = \"udp\"\npath = \"a\"\nrate = \"2mbit\"\npacket = \"1000B\"\n\
                     [[workload]]\nkind = \"tcp\"\npath = \"a\"\nsize = \"50kB\"\nrepeat = true\n";
        let (flows, _) = measured(&format!("{LINK}{other}"));
        let [_, udp, files] = flows.parties.as_slice() else { panic!("three workloads") };
        assert_eq!(udp.packets, 1000, "4 s of 250 packets");
        // What is under way at the edges of the span: up to 40 ms in queue and link.
        let (arrived, got_through) = (udp.bytes / 1000, udp.packets - udp.lost);
        assert!(arrived.abs_diff(got_through) <= 10 && udp.lost < 100, "{arrived} of {got_through}, {} lost", udp.lost);
        assert!(files.files.len() > 5, "{}", files.files.len());
        let done: Vec<f64> = files.files.iter().filter_map(|(_, seconds)| *seconds).collect();
        assert!(done.len() + 1 >= files.files.len() && done.iter().all(|seconds| *seconds > 0.04), "{done:?}");
    }
}
