//! Evaluation of programs in real time: systems under evaluation, and runs that can be asked of them.

use super::load::Case;
use super::metric::Context;
use anabranch_lab::Span;
use anabranch_paths::Direction;
use anabranch_policy::congestion::kernel_name;
use anabranch_scenario::{Scenario, in_shell};
use anabranch_sim::{Extent, FileOrder, Workload};
use anabranch_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Serialize;

/// System under evaluation in real time, and the kernel that runs beside it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Peer {
    /// Program under evaluation; null for TCP of the kernel.
    pub program: Option<Program>,
    /// True for a system that uses several paths, if there are some.
    pub multipath: bool,
    /// Kernel of the hosts.
    pub kernel: Kernel,
}

/// Program under evaluation: its two ends.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Program {
    /// Command for `sh` at the server.
    pub server: String,
    /// Command at the client, with its arguments.
    pub client: Vec<String>,
}

/// Kernel of the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Kernel {
    /// Name and release, such as `Linux 6.18.44`.
    pub release: String,
    /// Congestion controls that the kernel has loaded.
    pub controls: Vec<String>,
    /// Congestion control of sockets that choose none.
    pub default_control: String,
    /// True if the kernel has Multipath TCP.
    pub multipath: bool,
}

/// Run to be made in real time.
pub struct LiveRun<'a> {
    /// Name of the case.
    pub case: &'a str,
    /// Words that tell the run from the others of its case.
    pub about: String,
    /// Scenario.
    pub scenario: &'a Scenario,
    /// Span in which flows are measured.
    pub span: Span,
    /// Seed.
    pub seed: u64,
    /// Kernel's congestion control in place of the candidate; `None` for the program under evaluation.
    pub control: Option<&'a str>,
    /// Name under which the journal keeps the run.
    pub key: String,
}

impl Peer {
    /// Returns the name of the system: the command of a program's client, or a control of the kernel.
    pub fn name(&self, control: &str) -> String {
        match &self.program {
            Some(program) => program.client_line(),
            None => format!("{control} of {}", self.kernel.release),
        }
    }

    /// Returns the text that tells runs of this system from those of others in a journal.
    pub(super) fn key(&self, is_candidate: bool) -> String {
        match &self.program {
            Some(program) if is_candidate => {
                format!("testbed {} {} -- {} ", self.kernel.release, in_shell(&program.server), program.client_line())
            }
            _ => format!("testbed {} ", self.kernel.release),
        }
    }

    /// Returns the reason why the kernel cannot send under this control, if there is one.
    pub(super) fn lacks(&self, control: &str) -> Option<String> {
        let name = kernel_name(control);
        let missing = !self.kernel.controls.iter().any(|known| known == name);
        missing.then(|| {
            format!("the kernel has no `{name}` (it has {}; `modprobe tcp_{name}`)", self.kernel.controls.join(", "))
        })
    }
}

impl Program {
    /// Returns the client's command as a shell takes it.
    pub fn client_line(&self) -> String {
        self.client.iter().map(|word| in_shell(word)).collect::<Vec<_>>().join(" ")
    }
}

impl LiveRun<'_> {
    /// Returns the time for which flows are to run: at least, and at most where files are still under way.
    pub fn length(&self) -> [Duration; 2] {
        length(self.scenario, &self.span)
    }
}

/// Returns the reason why no run of a case can be judged from outside, if there is one.
pub(super) fn hidden(case: &Case) -> Option<String> {
    let seen = case.criteria.iter().any(|it| !it.metric.looks_closely() && it.table.if_variable.is_none());
    (!seen).then(|| "its criteria are about phases and windows of a control, which nobody sees from outside".to_owned())
}

/// Returns the reason why a run cannot be made with programs in real time, if there is one.
pub(super) fn obstacle(scenario: &Scenario, context: &Context, peer: &Peer) -> Option<String> {
    let spec = scenario.written();
    if spec.clients != 1 {
        return Some(format!("a testbed has one client, and the scenario has {}", spec.clients));
    }
    match is_multipath(scenario) {
        true if !peer.multipath => {
            return Some("it has several paths; with `--multipath` a program is to use them".to_owned());
        }
        true if !peer.kernel.multipath => {
            return Some(
                "standard controls take Multipath TCP there, which the kernel lacks (CONFIG_MPTCP)".to_owned(),
            );
        }
        _ => {}
    }
    if context.capacity > MOST_RATE {
        let mbit = context.capacity / 1e6;
        return Some(format!("{mbit} Mbit/s are more than the emulator does in real time ({} are)", MOST_RATE / 1e6));
    }
    if context.rtt_s < LEAST_RTT_S {
        let (least, rtt) = (LEAST_RTT_S * 1e3, context.rtt_s * 1e3);
        return Some(format!("a round trip of {rtt} ms is shorter than the machine is punctual ({least} ms are not)"));
    }
    if !spec.switches.is_empty() || !spec.restarts.is_empty() {
        return Some("policies of our engine are replaced during the run, or a host restarts".to_owned());
    }
    if let Some(reason) = spec.workloads.iter().find_map(unasked) {
        return Some(reason);
    }
    let at_once: usize = spec.workloads.iter().map(at_once).sum();
    (at_once > MOST_FLOWS).then(|| format!("{at_once} flows at once are more than {MOST_FLOWS} processes"))
}

/// Returns the reason why a workload cannot be asked of programs, if there is one.
fn unasked(workload: &Workload) -> Option<String> {
    let direction = match workload {
        Workload::Bulk { direction, .. } | Workload::Tcp { direction, .. } => direction,
        Workload::Files { direction, sizes, order: FileOrder::AtOnce(_), .. } => {
            if sizes.iter().any(|size| *size != sizes[0]) {
                return Some("its files have different sizes".to_owned());
            }
            direction
        }
        Workload::Files { .. } => return Some("its files wait for one another".to_owned()),
        Workload::Udp { on, .. } if !on.is_zero() => return Some("its UDP is on and off in turn".to_owned()),
        Workload::Udp { direction, .. } => direction,
        Workload::Bursts { .. } | Workload::Exchange { .. } => {
            return Some("it has a dialogue on one connection, which programs differ in".to_owned());
        }
        Workload::Web { .. } | Workload::Interactive { .. } => return Some("it loads a web page".to_owned()),
    };
    (*direction != Direction::Down).then(|| "its data goes from the client to the server".to_owned())
}

fn at_once(workload: &Workload) -> usize {
    match workload {
        Workload::Files { sizes, order: FileOrder::AtOnce(arrivals), .. } if arrivals.interval.is_zero() => sizes.len(),
        _ => 1,
    }
}

/// Returns the size of the files of a workload; `None` if it sends as much as possible.
pub fn file_size(workload: &Workload) -> Option<Bytes> {
    match workload {
        Workload::Files { sizes, .. } => sizes.first().copied(),
        Workload::Tcp { extent: Extent::File(size) | Extent::Repeat(size), .. } => Some(*size),
        _ => None,
    }
}

/// Returns true if the hosts under evaluation are to use several paths.
pub fn is_multipath(scenario: &Scenario) -> bool {
    let spec = scenario.written();
    spec.client.config.multipath && spec.network.paths.len() > 1
}

fn length(scenario: &Scenario, span: &Span) -> [Duration; 2] {
    let spec = scenario.written();
    let end = |workload: &Workload| match workload {
        Workload::Bulk { start, duration, .. } => *start + *duration,
        _ => Duration::ZERO,
    };
    let least = spec.workloads.iter().map(end).fold(span.to, Duration::max).min(scenario.stop());
    let has_files = spec.workloads.iter().any(|it| matches!(it, Workload::Files { .. }));
    [least, if has_files { scenario.stop().max(least) } else { least }]
}

/// Rate of a bottleneck that the emulator's single thread serves without being late on an ordinary machine \[bit/s\].
const MOST_RATE: f64 = 100e6;
/// Round trip below which lateness of some tenths of a millisecond shows \[s\].
const LEAST_RTT_S: f64 = 2e-3;
/// Flows at once; each is a process of its own.
const MOST_FLOWS: usize = 32;
