//! The three worlds, one after the other.

use crate::course::{Course, STEP};
use crate::engine_run;
use crate::kernel_peer::{self, KernelSockets};
use crate::results::{Results, Run, Wanted, wanted};
use crate::rivals::{Rival, beside, rivals};
use crate::site::obstacle;
use crate::suite::Case;
use crate::transfer::{Addresses, Bursts, Plan, Times, Transfer, TransferError};
use anabranch_host::emulator::{EmulatorError, EmulatorReport, Validity};
use anabranch_host::testbed::{KernelSettings, Testbed, TestbedError, TestbedOptions};
use anabranch_lab::calibration::{Calibration, Protocol, Row};
use anabranch_lab::{Keep, RunError};
use anabranch_paths::Direction;
use anabranch_policy::congestion::kernel_name;
use anabranch_scenario::Scenario;
use anabranch_sim::{FileOrder, HostSpec, Outcome, Spec, Workload};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// A scenario with other workloads than one file, bursts, a page, or bulk beside competing TCP.
    #[error(
        "`{0}` cannot be calibrated: its workloads are not one file, bursts, a page, or bulk, from the \
         beginning; accepted: one [[workload]] with kind = \"files\" and one size, with kind = \"bursts\", with \
         kind = \"web\", or with kind = \"bulk\", without a start; beside bulk also some with kind = \"tcp\" and a \
         duration, in its direction"
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
        for (protocol, scenario) in compared(&case.scenario) {
            rows.extend(rows_of(case, protocol, &scenario, settings, tell)?);
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
    let transfers: usize = cases.iter().map(|case| compared(&case.scenario).len()).sum();
    transfers * settings.repeat * 2
}

/// Plain TCP over the primary path, and MPTCP over all. Bulk is about several paths, and takes as long with each: there
/// plain TCP is left out, unless there is one path.
fn compared(scenario: &Scenario) -> Vec<(Protocol, Scenario)> {
    let spec = scenario.spec(scenario.seed);
    let has_several = spec.network.paths.len() > 1;
    let is_bulk = spec.workloads.iter().any(|workload| matches!(workload, Workload::Bulk { .. }));
    let single = (!has_several || !is_bulk).then(|| (Protocol::Tcp, scenario.single_path(spec.network.primary)));
    let all = has_several.then(|| (Protocol::Mptcp, scenario.clone()));
    single.into_iter().chain(all).collect()
}

/// A transfer with what is measured and what competes with it.
struct Contest {
    transfer: Transfer,
    rivals: Vec<Rival>,
    wanted: Vec<Wanted>,
}

/// Makes a transfer in all worlds: a row for each value that is measured.
fn rows_of(
    case: &Case,
    protocol: Protocol,
    scenario: &Scenario,
    settings: &Settings,
    tell: &dyn Fn(&str),
) -> Result<Vec<Row>, CalibrateError> {
    let seeds: Vec<u64> = (0..settings.repeat as u64).map(|n| settings.seed.wrapping_add(n)).collect();
    let contest = contest(&case.name, scenario, &scenario.spec(settings.seed))?;
    let Contest { transfer, rivals, wanted } = &contest;
    // One that was loaded has a name of its own; for the kernel's are named ours.
    let in_kernel = |name: &str| settings.loaded.get(name).map_or(kernel_name(name), String::as_str).to_owned();
    let congestion = in_kernel(&scenario.policies().congestion.name);

    let simulator = simulate(scenario, &contest, &seeds, settings.jobs)?;
    let mut real = [Results::new(wanted), Results::new(wanted)];
    for &seed in &seeds {
        let spec = scenario.spec(seed);
        let rivals: Vec<(Rival, KernelSockets)> =
            rivals.iter().map(|rival| (rival.clone(), sockets(&spec, false, in_kernel(&rival.congestion)))).collect();
        for (name, results) in ["testbed", "kernel"].into_iter().zip(&mut real) {
            tell(&format!("{}, {}, {name}, seed {seed}", case.name, protocol.name()));
            let testbed = Testbed::build(&spec.network, spec.seed, spec.server.addresses, options())?;
            testbed.begin()?;
            let epoch = Instant::now();
            let outcome = beside(&testbed, epoch, &rivals, transfer, &|| match name {
                "testbed" => by_engine(&testbed, &spec, transfer),
                _ => by_kernel(&testbed, &spec, &congestion, transfer),
            });
            let report = testbed.stop()?;
            let run = outcome.map(|(times, rivals)| Run::since(epoch, &times, &rivals));
            results.push(seed, run.map_err(|error| error.to_string()));
            if let Validity::Invalid(faults) = &report.validity {
                let faults: Vec<String> = faults.iter().map(|fault| fault.what.clone()).collect();
                results.doubt(seed, &faults.join("; "));
            }
            results.delivered(&path_bytes(scenario, transfer.direction, &delivered(&report)));
        }
    }

    let [testbed, kernel] = real.map(Results::into_samples);
    let worlds = simulator.into_samples().into_iter().zip(testbed).zip(kernel);
    let rows = wanted.iter().zip(worlds).map(|(wanted, ((simulator, testbed), kernel))| Row {
        case: case.name.clone(),
        protocol,
        measure: wanted.measure,
        change_s: wanted.change.map(|(at, _)| at.as_secs_f64()),
        claim: case.claim,
        digest: scenario.digest.clone(),
        simulator,
        testbed,
        kernel,
    });
    Ok(rows.collect())
}

/// Namespaces whose sockets have Reno until they are given another control. Where the machine's default is BBR, one
/// that begins under it is paced until its end, whatever control it is given later.
fn options() -> TestbedOptions {
    let kernel = || KernelSettings { congestion: Some("reno".to_owned()), ..KernelSettings::default() };
    TestbedOptions { client: kernel(), server: kernel(), ..TestbedOptions::default() }
}

fn contest(name: &str, scenario: &Scenario, spec: &Spec) -> Result<Contest, CalibrateError> {
    let transfer = the_transfer(name, spec)?;
    let rivals = rivals(&transfer, &spec.workloads, &scenario.paths(), scenario.competing());
    let rivals = rivals.ok_or_else(|| CalibrateError::Workload(name.to_owned()))?;
    let changes: Vec<Duration> = spec.network.changes.iter().map(|change| wall(change.at)).collect();
    let wanted = wanted(&transfer.plan, &changes, &rivals);
    Ok(Contest { transfer, rivals, wanted })
}

/// The transfer of the one connection of a scenario.
fn the_transfer(name: &str, spec: &Spec) -> Result<Transfer, CalibrateError> {
    if spec.clients != 1 {
        return Err(CalibrateError::Clients { case: name.to_owned(), clients: spec.clients });
    }
    let patience = Duration::from_nanos(spec.stop.as_nanos());
    let own: Vec<&Workload> = spec.workloads.iter().filter(|it| !matches!(it, Workload::Tcp { .. })).collect();
    let (direction, plan) = match own.as_slice() {
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
        [Workload::Bulk { direction, start, duration }] if start.is_zero() => {
            (*direction, Plan::Bulk(Duration::from_nanos(duration.as_nanos())))
        }
        _ => return Err(CalibrateError::Workload(name.to_owned())),
    };
    Ok(Transfer { direction, plan, patience })
}

fn simulate(scenario: &Scenario, contest: &Contest, seeds: &[u64], jobs: usize) -> Result<Results, RunError> {
    let Contest { transfer, rivals, wanted } = contest;
    let mut results = Results::new(wanted);
    let sampled = match transfer.plan {
        Plan::Bulk(_) => scenario.clone().sampled(anabranch_units::Duration::from_nanos(STEP.as_nanos() as u64)),
        _ => scenario.clone(),
    };
    for run in anabranch_lab::run_seeds(&sampled, seeds, &Keep::default(), jobs, &|| {})? {
        let times = simulated(&transfer.plan, rivals, &scenario.spec(run.measured.seed), &run.outcome);
        results.push(run.measured.seed, times.ok_or_else(|| format!("not finished; {}", run.command)));
        let delivered: Vec<(String, u64)> =
            run.outcome.links.iter().map(|link| (link.name.clone(), link.stats.delivered_bytes.get())).collect();
        results.delivered(&path_bytes(scenario, transfer.direction, &delivered));
    }
    Ok(results)
}

/// A run of the simulator; `None` if it did not finish.
fn simulated(plan: &Plan, rivals: &[Rival], spec: &Spec, outcome: &Outcome) -> Option<Run> {
    let (competing, own): (Vec<&anabranch_sim::Transfer>, Vec<&anabranch_sim::Transfer>) =
        outcome.transfers.iter().partition(|it| matches!(spec.workloads[it.workload], Workload::Tcp { .. }));
    let each: Option<Vec<Duration>> = own.iter().map(|it| it.duration().map(wall)).collect();
    let each = each.filter(|each| each.len() == plan.parts())?;
    let mean = each.iter().sum::<Duration>() / each.len() as u32;
    let (mut completion, mut object, mut course) = (mean, None, Course::default());
    match plan {
        Plan::File(_) | Plan::Bursts(_) => {}
        Plan::Page(..) => {
            let page = outcome.pages.first()?;
            (completion, object) = (wall(page.finished?.since(page.started)), Some(mean));
        }
        Plan::Bulk(duration) => {
            let since = |at: anabranch_units::Instant| wall(at.since(anabranch_units::Instant::ZERO));
            let samples = outcome.samples.iter().map(|sample| (since(sample.at), sample.read));
            course = Course::new(samples.filter(|(at, _)| at <= duration).collect());
        }
    }
    // The transfers of competing TCP are in the order of their beginning, not of the workloads.
    let rival = |(rival, workload): (&Rival, usize)| {
        let bytes = competing.iter().find(|it| it.workload == workload).map_or(0, |it| it.bytes);
        Course::new(vec![(rival.start, 0), (rival.end, bytes)])
    };
    let numbers = (0..spec.workloads.len()).filter(|it| matches!(spec.workloads[*it], Workload::Tcp { .. }));
    Some(Run { completion, object, course, rivals: rivals.iter().zip(numbers).map(rival).collect() })
}

fn wall(duration: anabranch_units::Duration) -> Duration {
    Duration::from_nanos(duration.as_nanos())
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
    let multipath = spec.client.config.multipath && spec.server.config.multipath;
    let sockets = sockets(spec, multipath, congestion.to_owned());
    let local = testbed.layout.primary().client().v4.into();
    let server = testbed.layout.server().next().expect("a server has at least one address");
    let remote = SocketAddr::new(server.v4.into(), engine_run::PORT);
    kernel_peer::transfer(&testbed.client, &testbed.server, &sockets, local, remote, transfer)
}

fn sockets(spec: &Spec, multipath: bool, congestion: String) -> KernelSockets {
    let fixed = |host: &HostSpec| host.config.initial_receive_buffer.is_none().then_some(host.config.receive_buffer);
    let (client_buffer, server_buffer) = (fixed(&spec.client), fixed(&spec.server));
    KernelSockets { multipath, congestion, client_buffer, server_buffer }
}

fn delivered(report: &EmulatorReport) -> Vec<(String, u64)> {
    report.links.iter().map(|link| (link.name.clone(), link.stats.delivered_bytes.get())).collect()
}

/// Bytes by path in the direction of the data; none where competing connections use the paths too.
fn path_bytes(scenario: &Scenario, direction: Direction, links: &[(String, u64)]) -> Vec<u64> {
    let way = match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    };
    let bytes =
        |path: &String| links.iter().find(|(name, _)| *name == format!("{path}/{way}")).map_or(0, |link| link.1);
    let paths = scenario.paths();
    if scenario.competing().is_empty() { paths.iter().map(bytes).collect() } else { Vec::new() }
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
    use anabranch_lab::calibration::Samples;
    use anabranch_policy::Catalogue;

    #[test]
    fn bytes_are_of_the_direction_of_the_data_and_of_the_connection_alone() {
        let links = [("a/down", 300), ("a/up", 7), ("b/down", 100), ("b/up", 9)].map(|(name, n)| (name.to_owned(), n));
        let read = |name| Scenario::load(&Arc::new(Catalogue::default()), name, &[]).unwrap();
        let symmetric = read("symmetric");
        assert_eq!(path_bytes(&symmetric, Direction::Down, &links), [300, 100]);
        assert_eq!(path_bytes(&symmetric, Direction::Up, &links), [7, 9]);
        assert_eq!(path_bytes(&read("shared-bottleneck"), Direction::Down, &links), [0; 0]);
    }

    /// The rival is on one path; the rate of the other falls to a quarter.
    #[test]
    fn the_simulator_measures_bulk_beside_a_rival_and_through_a_change() {
        let set = r#"change=[{at="4s",path="b",rate="5mbit"}]"#;
        let tcp = r#"workload=[{kind="bulk",duration="8s"},{kind="tcp",path="a",duration="20s",congestion="reno"}]"#;
        let sets = [set, tcp, "run.spread=0s"].map(str::to_owned);
        let scenario = Scenario::load(&Arc::new(Catalogue::default()), "symmetric", &sets).unwrap();
        let contest = contest("x", &scenario, &scenario.spec(1)).unwrap();
        let samples = simulate(&scenario, &contest, &[1], 1).unwrap().into_samples();
        let [goodput, share, level, settling] = samples.as_slice() else { panic!("{samples:?}") };
        let value = |samples: &Samples| samples.values[0].unwrap();
        // Both paths carry 40 Mbit/s for 4 s and 25 for 4 s, all of it together: 32.5, less headers and what is lost.
        let both = value(goodput) * (1.0 + 1.0 / value(share));
        assert!((28.0..32.5).contains(&both) && value(share) > 0.5, "{both}: {samples:?}");
        // The whole of the path that fell to 5, and a part of the other.
        assert!((4.0..24.0).contains(&value(level)) && (0.0..3.0).contains(&value(settling)), "{samples:?}");
        let failures: usize = samples.iter().map(|it| it.failures.len()).sum();
        assert_eq!((failures, goodput.shares.len()), (0, 0), "{samples:?}");
    }
}
