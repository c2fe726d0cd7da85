//! The three worlds, one after the other.

use crate::engine_run;
use crate::kernel_peer::{self, KernelSockets};
use crate::site::obstacle;
use crate::suite::Case;
use crate::transfer::{Addresses, Bursts, Plan, Times, Transfer, TransferError};
use anabranch_host::emulator::{EmulatorError, EmulatorReport, Validity};
use anabranch_host::testbed::{Testbed, TestbedError, TestbedOptions};
use anabranch_lab::calibration::{Calibration, Protocol, Row, Samples};
use anabranch_lab::{Keep, RunError};
use anabranch_paths::Direction;
use anabranch_policy::congestion::kernel_name;
use anabranch_scenario::Scenario;
use anabranch_sim::{FileOrder, HostSpec, Outcome, Spec, Workload};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Settings of a calibration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first seed.
    pub seed: u64,
    /// Runs of each world and row.
    pub repeat: usize,
    /// Threads for the simulator; 0 for one per processor.
    pub jobs: usize,
    /// Names in the kernel of congestion controls that were loaded into it, by those of the policies.
    pub loaded: BTreeMap<String, String>,
}

/// Why a calibration cannot run.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A scenario with other workloads than one file, bursts or a page.
    #[error(
        "`{0}` cannot be calibrated: its workloads are not one file, bursts, or a page, from the \
         beginning; accepted: one [[workload]] with kind = \"files\" and one size, with kind = \"bursts\", or with \
         kind = \"web\", without a start"
    )]
    Workload(String),
    /// A scenario with several clients: a testbed has one.
    #[error("`{case}` cannot be calibrated: it has {clients} clients; accepted: `clients = 1`")]
    Clients {
        /// The case.
        case: String,
        /// Number of clients.
        clients: usize,
    },
    /// A page whose requests cannot be made as they are.
    #[error("the page of `{case}` cannot be fetched in real time: {what}")]
    Page {
        /// The case.
        case: String,
        /// Its fault.
        what: String,
    },
    /// The simulator failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The testbed could not be made.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The testbed's links died.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
}

/// Runs every case in every world; `tell` hears what is about to be run.
pub fn calibrate(cases: &[Case], settings: &Settings, tell: &dyn Fn(&str)) -> Result<Calibration, CalibrateError> {
    let mut rows = Vec::new();
    for case in cases {
        let single = (Protocol::Tcp, case.scenario.single_path(case.scenario.spec(settings.seed).network.primary));
        let all = (case.scenario.paths().len() > 1).then(|| (Protocol::Mptcp, case.scenario.clone()));
        for (protocol, scenario) in [single].into_iter().chain(all) {
            rows.push(row(case, protocol, &scenario, settings, tell)?);
        }
    }
    Ok(Calibration {
        version: anabranch_lab::VERSION,
        build: anabranch_lab::build(),
        kernel: kernel_version(),
        seed: settings.seed,
        repeat: settings.repeat,
        rows,
    })
}

/// Number of runs of a calibration of these cases, without those of the simulator.
pub fn runs(cases: &[Case], settings: &Settings) -> usize {
    let rows: usize = cases.iter().map(|case| 1 + usize::from(case.scenario.paths().len() > 1)).sum();
    rows * settings.repeat * 2
}

fn row(
    case: &Case,
    protocol: Protocol,
    scenario: &Scenario,
    settings: &Settings,
    tell: &dyn Fn(&str),
) -> Result<Row, CalibrateError> {
    let seeds: Vec<u64> = (0..settings.repeat as u64).map(|n| settings.seed.wrapping_add(n)).collect();
    let transfer = the_transfer(&case.name, &scenario.spec(settings.seed))?;
    let simulator = simulate(scenario, &transfer, &seeds, settings.jobs)?;
    let mut worlds = [Samples::default(), Samples::default()];
    let mut shares = [Shares::default(), Shares::default()];
    for &seed in &seeds {
        let spec = scenario.spec(seed);
        for (world, samples) in worlds.iter_mut().enumerate() {
            let name = ["testbed", "kernel"][world];
            tell(&format!("{}, {}, {name}, seed {seed}", case.name, protocol.name()));
            let testbed = Testbed::build(&spec.network, spec.seed, spec.server.addresses, TestbedOptions::default())?;
            testbed.begin()?;
            let outcome = match world {
                0 => by_engine(&testbed, &spec, &transfer),
                _ => {
                    // One that was loaded has a name of its own; for the kernel's are named ours.
                    let congestion = &scenario.policies().congestion.name;
                    let congestion = settings.loaded.get(congestion).map_or(kernel_name(congestion), String::as_str);
                    by_kernel(&testbed, &spec, congestion, &transfer)
                }
            };
            let report = testbed.stop()?;
            match outcome {
                Ok(times) => samples.push(times.completion, times.object),
                Err(error) => {
                    samples.completion_s.push(None);
                    samples.failures.push(format!("seed {seed}: {error}"));
                }
            }
            if let Validity::Invalid(faults) = &report.validity {
                let faults: Vec<String> = faults.iter().map(|fault| fault.what.clone()).collect();
                samples.doubtful.push(format!("seed {seed}: {}", faults.join("; ")));
            }
            shares[world].add(&path_bytes(&scenario.paths(), transfer.direction, &delivered(&report)));
        }
    }
    for (samples, shares) in worlds.iter_mut().zip(&shares) {
        samples.shares = shares.mean();
    }
    let [testbed, kernel] = worlds;
    let claim = case.claim;
    Ok(Row { case: case.name.clone(), protocol, claim, digest: scenario.digest.clone(), simulator, testbed, kernel })
}

/// The transfer of the one connection of a scenario.
fn the_transfer(name: &str, spec: &Spec) -> Result<Transfer, CalibrateError> {
    if spec.clients != 1 {
        return Err(CalibrateError::Clients { case: name.to_owned(), clients: spec.clients });
    }
    let patience = Duration::from_nanos(spec.stop.as_nanos());
    let (direction, plan) = match spec.workloads.as_slice() {
        [Workload::Files { direction, sizes, order, start }]
            if sizes.len() == 1 && start.is_zero() && !matches!(order, FileOrder::Established { .. }) =>
        {
            (*direction, Plan::File(sizes[0]))
        }
        [Workload::Bursts { direction, size, count, interval, start, warm_up }] if *count > 0 && start.is_zero() => {
            let interval = Duration::from_nanos(interval.as_nanos());
            (*direction, Plan::Bursts(Bursts { warm_up: *warm_up, size: *size, count: *count, interval }))
        }
        [Workload::Web { page, protocol, start }] if start.is_zero() => {
            if let Some(what) = obstacle(page, *protocol) {
                return Err(CalibrateError::Page { case: name.to_owned(), what });
            }
            (Direction::Down, Plan::Page(Arc::clone(page), *protocol))
        }
        _ => return Err(CalibrateError::Workload(name.to_owned())),
    };
    Ok(Transfer { direction, plan, patience })
}

fn simulate(scenario: &Scenario, transfer: &Transfer, seeds: &[u64], jobs: usize) -> Result<Samples, RunError> {
    let mut samples = Samples::default();
    let mut shares = Shares::default();
    for run in anabranch_lab::run_seeds(scenario, seeds, &Keep::default(), jobs, &|| {})? {
        match simulated(&transfer.plan, &run.outcome) {
            Some(times) => samples.push(times.completion, times.object),
            None => {
                samples.completion_s.push(None);
                samples.failures.push(format!("seed {}: not finished; {}", run.measured.seed, run.command));
            }
        }
        let delivered: Vec<(String, u64)> =
            run.outcome.links.iter().map(|link| (link.name.clone(), link.stats.delivered_bytes.get())).collect();
        shares.add(&path_bytes(&scenario.paths(), transfer.direction, &delivered));
    }
    samples.shares = shares.mean();
    Ok(samples)
}

/// Times of a run of the simulator; `None` if it did not finish.
fn simulated(plan: &Plan, outcome: &Outcome) -> Option<Times> {
    let wall = |duration: anabranch_units::Duration| Duration::from_nanos(duration.as_nanos());
    let transfers: Option<Vec<Duration>> = outcome.transfers.iter().map(|it| it.duration().map(wall)).collect();
    let transfers = transfers.filter(|transfers| transfers.len() == plan.parts())?;
    let mean = transfers.iter().sum::<Duration>() / transfers.len() as u32;
    match plan {
        Plan::File(_) | Plan::Bursts(_) => Some(Times { completion: mean, object: None }),
        Plan::Page(..) => {
            let page = outcome.pages.first()?;
            Some(Times { completion: wall(page.finished?.since(page.started)), object: Some(mean) })
        }
    }
}

fn by_engine(testbed: &Testbed, spec: &Spec, transfer: &Transfer) -> Result<Times, TransferError> {
    let layout = &testbed.layout;
    let client: Vec<(IpAddr, bool)> =
        layout.paths.iter().map(|path| (path.client_engine().v4.into(), path.backup)).collect();
    let server = layout.server_engine().map(|address| address.v4.into()).collect();
    let addresses = Addresses { client, primary: layout.primary, server };
    engine_run::transfer(&testbed.client, &testbed.server, spec, &addresses, transfer)
}

fn by_kernel(testbed: &Testbed, spec: &Spec, congestion: &str, transfer: &Transfer) -> Result<Times, TransferError> {
    let fixed = |host: &HostSpec| host.config.initial_receive_buffer.is_none().then_some(host.config.receive_buffer);
    let sockets = KernelSockets {
        multipath: spec.client.config.multipath && spec.server.config.multipath,
        congestion: congestion.to_owned(),
        client_buffer: fixed(&spec.client),
        server_buffer: fixed(&spec.server),
    };
    let local = testbed.layout.primary().client().v4.into();
    let server = testbed.layout.server().next().expect("a server has at least one address");
    let remote = SocketAddr::new(server.v4.into(), engine_run::PORT);
    kernel_peer::transfer(&testbed.client, &testbed.server, &sockets, local, remote, transfer)
}

fn delivered(report: &EmulatorReport) -> Vec<(String, u64)> {
    report.links.iter().map(|link| (link.name.clone(), link.stats.delivered_bytes.get())).collect()
}

/// Bytes by path in the direction of the file.
fn path_bytes(paths: &[String], direction: Direction, links: &[(String, u64)]) -> Vec<u64> {
    let way = match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    };
    let bytes =
        |path: &String| links.iter().find(|(name, _)| *name == format!("{path}/{way}")).map_or(0, |link| link.1);
    paths.iter().map(bytes).collect()
}

/// Shares of the paths, added up over runs.
#[derive(Default)]
struct Shares {
    sums: Vec<f64>,
    runs: usize,
}

impl Shares {
    fn add(&mut self, bytes: &[u64]) {
        let total: u64 = bytes.iter().sum();
        if total == 0 {
            return;
        }
        self.sums.resize(bytes.len(), 0.0);
        for (sum, bytes) in self.sums.iter_mut().zip(bytes) {
            *sum += *bytes as f64 / total as f64;
        }
        self.runs += 1;
    }

    fn mean(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / self.runs as f64).collect()
    }
}

/// Release of the running kernel.
fn kernel_version() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| "of unknown version".to_owned(), |release| release.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shares_are_of_the_direction_of_the_file() {
        let links = [("a/down", 300), ("a/up", 7), ("b/down", 100), ("b/up", 9)].map(|(name, n)| (name.to_owned(), n));
        let paths = ["a".to_owned(), "b".to_owned()];
        assert_eq!(path_bytes(&paths, Direction::Down, &links), [300, 100]);
        assert_eq!(path_bytes(&paths, Direction::Up, &links), [7, 9]);
        let mut shares = Shares::default();
        shares.add(&[300, 100]);
        shares.add(&[0, 0]);
        shares.add(&[100, 300]);
        assert_eq!(shares.mean(), [0.5, 0.5]);
    }
}
