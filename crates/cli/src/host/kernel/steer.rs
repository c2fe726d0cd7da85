//! `anabranch kernel steer`: subflows closed or made backups by rules of cost, quota, round trip and loss.

mod output;
mod paths;
mod quota;

use crate::args::span;
use crate::failure::Failure;
use crate::host::socket_tables::SocketTables;
use anabranch_host::steered::{self, Steered};
use anabranch_host::{Caught, Clock, PathManager};
use anabranch_kernel::steer::{Event, Policy, Steering, Subflow};
use anabranch_kernel::{Algorithm, AlgorithmKind, load_with_gates};
use anabranch_units::{Duration, Instant, input};
use anabranch_why::Socket;
use clap::Args as ClapArgs;
use miette::miette;
use output::Events;
use paths::{Paths, World};
use quota::Quotas;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Child;

/// Arguments of `kernel steer`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  sudo anabranch kernel steer --policy paths.toml              steers until a signal ends it, then puts all back
  sudo anabranch kernel steer --policy paths.toml --gate lia   accepts rules with `then = \"gate\"`, an experiment
  sudo anabranch kernel steer --policy paths.toml --once       what is measured now, and which rules that meets
  sudo anabranch kernel steer --policy paths.toml --dry-run    says what it would do, and does nothing

A policy file:
  [path.wifi]
  interface = \"wlan0\"
  [path.lte]
  address = \"10.0.2.2\"
  cost = 10
  quota = \"2GB\"
  per = \"month\"
  [[rule]]
  path = \"wifi\"
  when = \"rtt > 200ms\"
  for = \"5s\"
  then = \"backup\"
  [[rule]]
  path = \"lte\"
  when = \"quota >= 100%\"
  then = \"close\"

Subflows of a path begin at its local address, which has to be an endpoint of the kernel's path manager (`ip mptcp \
endpoint`). Rules look at the subflows of all MPTCP connections of the network namespace. See docs/kernel.md.")]
pub struct SteerArgs {
    /// Policy file.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["schema", "keeper"])]
    pub policy: Option<PathBuf>,
    /// Experiment: register this congestion control of `kernel load` with gates, for as long as the command runs, and
    /// accept rules with `then = "gate"`. They give subflows of connections that use it no new data while another
    /// subflow can carry them.
    #[arg(long, value_name = "CONTROL")]
    pub gate: Option<String>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Measure for a second, say which rules that meets, and end; nothing is done.
    #[arg(long)]
    pub once: bool,
    /// End after this time.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub duration: Option<Duration>,
    /// Keep in FILE how much of the quotas of a day or a month is used.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Print each event as a line of JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of policy files, and end.
    #[arg(long)]
    pub schema: bool,
    /// Wait for the end of the command that started this one, then put back what it left.
    #[arg(long, hide = true)]
    pub keeper: bool,
}

/// Time between two looks for addresses and endpoints, and between two lines of measurements.
const REFRESH: Duration = Duration::from_secs(2);
const REPORT: Duration = Duration::from_secs(1);
/// Measurements of `--once` are over this time: a rate needs it.
const ONCE: Duration = Duration::from_millis(1050);

/// Steers until a signal, or the end of the time.
pub(super) fn steer(args: &SteerArgs) -> Result<(), Failure> {
    if args.schema {
        return crate::output::print(&format!("{:#}\n", serde_json::json!(Policy::schema())));
    }
    if args.keeper {
        return steered::keep().map_err(refused);
    }
    let Some(file) = &args.policy else { return Ok(()) };
    let policy = read(file, args.gate.is_some())?;
    let gated = args.gate.as_deref().map(gated).transpose()?;
    check_path_manager()?;
    let dry = args.dry_run || args.once;
    let mut quotas = Quotas::open(&policy, args.state.as_deref(), dry)?;
    let mut kernel = SocketTables::open()?;
    // From before the first change to the kernel: what a signal ends is ended in order.
    let keeper = if dry { None } else { Some(Keeper::start()?) };
    let mut caught = Caught::new().map_err(|error| Failure::Failed(miette!("cannot catch signals: {error}")))?;
    let world = match dry {
        true => PathManager::open().map(World::Seen),
        false => Steered::take().map(World::Steered),
    };
    let world = world.map_err(refused)?;
    let gates = gated.filter(|_| !dry).map(load_with_gates).transpose().map_err(super::failed)?;
    let interval = policy.interval;
    let pause = std::time::Duration::from_nanos(interval.as_nanos());
    let mut steering = Steering::new(policy);
    quotas.begin(&mut steering);
    let mut paths = Paths::new(world, gates, &steering);
    let mut events = Events::new(args.json, args.once)?;
    let clock = Clock::start();
    let (mut refresh, mut report) = (Duration::ZERO, Duration::ZERO + REPORT);
    loop {
        let now = clock.now().since(Instant::ZERO);
        if now >= refresh {
            refresh = now + REFRESH;
            paths.refresh(now, &steering, &mut events)?;
        }
        let subflows: Vec<Subflow> = kernel.sockets()?.iter().filter_map(subflow).collect();
        quotas.roll(&mut steering);
        for change in steering.look(now, paths.addresses(), &subflows) {
            let done = paths.treat(change.path, change.to);
            events.change(now, &steering, change, done)?;
        }
        paths.hold_gates(interval);
        if now >= report {
            report = now + REPORT;
            events.measures(now, &steering)?;
            quotas.save()?;
        }
        let over = args.duration.is_some_and(|most| now >= most) || args.once && now >= ONCE;
        let wait = caught.wait(pause).map_err(|error| Failure::Failed(miette!("cannot wait for signals: {error}")))?;
        if wait || over {
            break;
        }
    }
    let time = clock.now().since(Instant::ZERO);
    quotas.roll(&mut steering);
    quotas.save()?;
    let (put_back, failed) = paths.put_back();
    for why in failed {
        crate::output::remark(&format!(
            "an endpoint could not be put back: {why}; `ip mptcp endpoint` shows what is there"
        ));
    }
    if let Some(keeper) = keeper {
        keeper.end();
    }
    events.end(&Event::End { time: time.as_secs_f64(), changes: events.changes(), put_back })
}

/// The congestion control of `--gate`.
fn gated(name: &str) -> Result<&'static Algorithm, Failure> {
    let kind = AlgorithmKind::CongestionControl;
    kind.find(name).ok_or_else(|| super::unknown(kind, name))
}

fn read(file: &Path, has_gates: bool) -> Result<Policy, Failure> {
    let text = input::text(file, input::WRITTEN).map_err(|error| {
        let help = "accepted: --policy FILE with a policy, as `anabranch kernel steer --help` shows one";
        Failure::Refused(miette!(help = help, "cannot read {}: {error}", file.display()))
    })?;
    Ok(Policy::read_for(&file.display().to_string(), &text, has_gates)?)
}

/// Endpoints steer what the path manager in the kernel opened; one in user space knows none.
fn check_path_manager() -> Result<(), Failure> {
    let of = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/mptcp/{name}")).unwrap_or_default();
    if of("path_manager").trim() == "userspace" || of("pm_type").trim() == "1" {
        let help = "sysctl net.mptcp.path_manager=kernel (before Linux 6.16: net.mptcp.pm_type=0)";
        return Err(Failure::Refused(miette!(
            help = help,
            "the path manager of this network namespace is in user space"
        )));
    }
    Ok(())
}

/// A subflow of an MPTCP connection, if the socket is one.
fn subflow(socket: &Socket) -> Option<Subflow> {
    let info = socket.tcp()?;
    Some(Subflow {
        cookie: socket.cookie,
        connection: socket.token?,
        local: socket.local.ip(),
        established: socket.state == ESTABLISHED,
        srtt: Duration::from_micros(u64::from(info.rtt_us)),
        acked: info.bytes_acked,
        received: info.bytes_received,
        sent: info.bytes_sent,
        sent_again: info.bytes_retrans,
    })
}

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;

fn refused(error: std::io::Error) -> Failure {
    let (help, problem) = match error.kind() {
        ErrorKind::WouldBlock => (
            "one at a time: end the other one",
            "another `kernel steer` is at work in this network namespace".to_owned(),
        ),
        ErrorKind::PermissionDenied => {
            ("run it as root, or with CAP_NET_ADMIN", "endpoints of MPTCP are for privileged users alone".to_owned())
        }
        ErrorKind::NotFound => ("take a kernel with CONFIG_MPTCP", "this kernel has no MPTCP".to_owned()),
        _ => ("`ip mptcp endpoint` shows the endpoints", format!("cannot steer: {error}")),
    };
    Failure::Failed(miette!(help = help, "{problem}"))
}

/// A process that puts everything back if this one is killed.
struct Keeper(Child);

impl Keeper {
    fn start() -> Result<Self, Failure> {
        let started = steered::start_keeper(&["kernel", "steer", "--keeper"]);
        started
            .map(Keeper)
            .map_err(|error| Failure::Failed(miette!("cannot start the process that puts back: {error}")))
    }

    /// Ends it after everything was put back.
    fn end(mut self) {
        // It reads the end of its input, finds nothing to be put back, and ends.
        drop(self.0.stdin.take());
        _ = self.0.wait();
    }
}
