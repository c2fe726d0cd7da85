//! Resolves a file's tables to the specification of a run: defaults, contradictions, and names that must exist.

mod changes;
mod clients;
mod hosts;
mod middleboxes;
mod paths;
mod policies;
mod settings;
mod switches;
mod vary;
mod watch;
mod web;
mod workloads;

pub(crate) use policies::build;
pub use settings::{Given, HostSettings};

use crate::error::Problem;
use crate::file::{At, File, MeasureName, Policy, RecordingTable};
use crate::model::Model;
use crate::recorded::Recordings;
use crate::variant::{Chosen, Switched, Variant};
use crate::vary::Vary;
use crate::watch::Watch;
use anabranch_engine::settings::Setting;
use anabranch_paths::Direction;
use anabranch_policy::Catalogue;
use anabranch_recording::Recording;
use anabranch_sim::{HostSpec, Spec, Workload};
use anabranch_units::suggest;
use anabranch_units::{Duration, Seed};
use std::ops::Range;
use std::sync::Arc;

/// Recordings as they are read.
pub(crate) struct Reading<'a> {
    /// Function that reads a recording that is named at a place. Its error says what is wrong.
    pub(crate) read: &'a mut ReadRecording<'a>,
    /// Recordings that were read, with the values of the network that follow them.
    pub(crate) recordings: Recordings,
}

/// Function that reads a recording.
pub(crate) type ReadRecording<'a> = dyn FnMut(&RecordingTable, &Range<usize>) -> Result<Arc<Recording>, Problem> + 'a;

impl Reading<'_> {
    /// Returns the number and the content of a recording.
    fn source(&mut self, table: &RecordingTable, at: &Range<usize>) -> Result<(usize, Arc<Recording>), Problem> {
        let recording = (self.read)(table, at)?;
        if let Some(offset) = table.offset.filter(|offset| offset.0 >= recording.length()) {
            let problem = format!("`offset` is {}, and the recording is {} long", offset.0, recording.length());
            return Err(Problem::at(at, problem, "accepted: a place within the recording"));
        }
        Ok((self.recordings.add(table, Arc::clone(&recording)), recording))
    }

    /// Returns the number of a path's model, and what is typical of it.
    fn model(&mut self, at: &At<Model>, path: &str) -> Result<(usize, Arc<Recording>), Problem> {
        let refused = |problem: String, help: &str| Err(Problem::at(&at.span, problem, help));
        if let Err(refusal) = at.value.check() {
            return refused(refusal.problem, &refusal.accepted);
        }
        let (source, typical) = self.recordings.add_model(&at.value, path);
        match typical.trace() {
            Some(_) => Ok((source, typical)),
            None => refused(
                "nothing passes".to_owned(),
                "accepted: a stronger signal, or a view that is less often obstructed",
            ),
        }
    }
}

/// Function that reads the text of a page or session.
pub(crate) type Texts<'a> = dyn FnMut(&At<String>) -> Result<String, Problem> + 'a;

/// Resolved file.
pub(crate) struct Resolved {
    pub(crate) spec: Spec,
    pub(crate) seed: u64,
    pub(crate) repeat: usize,
    pub(crate) measure: MeasureName,
    pub(crate) spread: Duration,
    /// Tables of both hosts, of the client and of the server.
    pub(crate) hosts: [HostSettings; 3],
    /// Policies of client and server.
    pub(crate) policies: [Chosen; 2],
    /// Index of the host that sends the data of the first workload.
    pub(crate) sender: usize,
    /// Names of the congestion controls of competing TCP, in the order of the workloads.
    pub(crate) competing: Vec<String>,
    /// Policies that replace others during the run.
    pub(crate) switched: Vec<Switched>,
    /// Properties drawn for each run.
    pub(crate) varies: Vec<Vary>,
    /// Samples and windows of each run.
    pub(crate) watch: Watch,
}

/// Default repetitions of a comparison: with 20, an interval is half a standard deviation wide to either side.
const REPEAT: usize = 20;
/// Time from the last beginning or end that the workloads state to the time at which a run stops, unless given: after a
/// minute of virtual time a transfer has stalled.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum repetitions; more are a mistake, and would fill the memory with results.
const MAX_REPEAT: usize = 100_000;

pub(crate) fn resolve(
    catalogue: &Catalogue,
    settings: &[Setting],
    file: &File,
    reading: &mut Reading<'_>,
    texts: &mut Texts<'_>,
) -> Result<Resolved, Problem> {
    // Order matters below: hosts and workloads name paths, changes come before `stop`, and the hosts of all workloads
    // count towards the limit of `clients`.
    let read = |table| HostSettings::read(settings, table);
    let hosts = [read(&file.host)?, read(&file.client)?, read(&file.server)?];
    let shared = paths::shared(catalogue, file, reading)?;
    let paths = paths::paths(catalogue, file, reading)?;
    let names: Vec<String> = paths.iter().map(|path| path.name.clone()).collect();
    let [both, of_client, of_server] = &hosts;
    let tables = [[both, of_client], [both, of_server]];
    let (mut client, client_chosen) = hosts::host(catalogue, &tables[0], &names)?;
    let (mut server, server_chosen) = hosts::host(catalogue, &tables[1], &names)?;
    hosts::fit_send_buffer(&mut client, &tables[0], server.config.receive_buffer);
    hosts::fit_send_buffer(&mut server, &tables[1], client.config.receive_buffer);

    let mut spec = Spec::new(paths, client, server);
    spec.network.shared = shared;
    spec.workloads = workloads::workloads(catalogue, file, &names, texts)?;
    spec.stop = stop(file, &mut spec.workloads)?;
    spec.network.changes = changes::changes(file, &names, spec.stop, reading)?;
    let switched;
    (spec.switches, switched) = switches::switches(catalogue, file, &names)?;
    spec.codec = file.codec.unwrap_or(false);
    spec.clients = clients::clients(file, &spec)?;
    spec.loss_oracle = file.run.loss_oracle.unwrap_or(false);
    let seed = file.run.seed.unwrap_or(1);
    spec.seed = Seed(seed);
    if let Some(primary) = &file.run.primary {
        known("run.primary", primary, &names)?;
        spec.network.primary = names.iter().position(|name| *name == primary.value).expect("just found to be known");
    }

    let repeat = match &file.run.repeat {
        None => REPEAT,
        Some(at) if (1..=MAX_REPEAT).contains(&at.value) => at.value,
        Some(at) => return Err(Problem::at(&at.span, format!("`repeat` is {}", at.value), "accepted: 1 to 100000")),
    };
    // The default is the first of these that is defined for the workloads: load time, completion time, goodput.
    let pages = spec.workloads.iter().any(|w| matches!(w, Workload::Web { .. }));
    let is_sized = |w: &Workload| {
        matches!(
            w,
            Workload::Files { .. }
                | Workload::Bursts { .. }
                | Workload::Exchange { .. }
                | Workload::Web { .. }
                | Workload::Interactive { .. }
        )
    };
    let sized = spec.workloads.iter().any(is_sized);
    let measure = match &file.run.measure {
        None if pages => MeasureName::PageLoadTime,
        Some(at) if at.value == MeasureName::PageLoadTime && !pages => {
            let help = "accepted: \"goodput\", \"completion-time\", or a workload of kind \"web\"";
            return Err(Problem::at(&at.span, "no workload loads a page", help));
        }
        None if sized => MeasureName::CompletionTime,
        None => MeasureName::Goodput,
        Some(at) if at.value == MeasureName::CompletionTime && !sized => {
            let help = "accepted: \"goodput\", or a workload of kind \"files\", \"bursts\", \"web\" or \"interactive\"";
            return Err(Problem::at(&at.span, "no workload completes", help));
        }
        Some(at) => at.value,
    };
    let policies = [client_chosen, server_chosen];
    let sender = match workloads::direction(&spec.workloads) {
        Direction::Down => 1,
        Direction::Up => 0,
    };
    let spread = file.run.spread.as_ref().map_or(Duration::ZERO, |at| at.value.0);
    let stated = spec.workloads.iter().filter_map(workloads::stated_end).max();
    let needed = stated.filter(|end| !end.is_zero()).unwrap_or(spec.stop);
    settle(&mut reading.recordings, needed, spec.stop, spread)?;
    spec.decisions = file.run.decisions.unwrap_or(false);
    let varies = vary::varies(file, &names, spec.stop, &reading.recordings)?;
    let watch = watch::watch(&file.run, spec.stop)?;
    let competing = workloads::competing(file);
    Ok(Resolved { hosts, spec, seed, repeat, measure, spread, policies, sender, competing, switched, varies, watch })
}

/// Returns the time at which a run stops, which workloads without an end of their own get as well.
fn stop(file: &File, workloads: &mut [Workload]) -> Result<Duration, Problem> {
    let needed = workloads.iter().filter_map(workloads::stated_end).max().unwrap_or(Duration::ZERO);
    let stop = match &file.run.stop {
        None => needed + PATIENCE,
        Some(at) if at.value.0 < needed => {
            let stop = at.value.0;
            let problem = format!("the run stops at {stop}, and its workloads by themselves take until {needed}");
            let help =
                format!("accepted: {needed} or more, or workloads that take less; without `stop`, {PATIENCE} more");
            return Err(Problem::at(&at.span, problem, help));
        }
        Some(at) => at.value.0,
    };
    for workload in workloads {
        if let Workload::Udp { stop: end, .. } = workload {
            *end = (*end).min(stop);
        }
    }
    Ok(stop)
}

/// Aligns recordings. `needed` is the length of the part that a run needs.
fn settle(recordings: &mut Recordings, needed: Duration, stop: Duration, spread: Duration) -> Result<(), Problem> {
    recordings.settle(needed, !spread.is_zero());
    let refused = |problem: String, help: &str| Err(Problem { span: None, problem, help: Some(help.to_owned()) });
    if let Some(name) = recordings.dead() {
        let problem = format!("nothing passes in the recording `{name}` in the times that all recordings cover");
        return refused(problem, "accepted: recordings of one time, or `offset` in each");
    }
    if let Some((name, count)) = recordings.busiest(stop + spread).filter(|(_, count)| *count > MAX_RECORDED) {
        let problem = format!("delay or loss of the recording `{name}` change {count} times until `stop` at {stop}");
        return refused(problem, "accepted: up to 2000000 times: a recording with fewer rows, or an earlier `stop`");
    }
    Ok(())
}

/// Maximum number of recorded changes of a run; each is a change of the network in memory.
const MAX_RECORDED: u64 = 2_000_000;

/// Sets another scheduler on both hosts and returns it with its parameters.
pub(crate) fn with_scheduler(
    catalogue: &Catalogue,
    spec: &mut Spec,
    policy: &Policy,
    at: &Range<usize>,
) -> Result<Variant, Problem> {
    let (scheduler, variant) = policies::build(&catalogue.schedulers, policy, at)?;
    let put = |host: &mut HostSpec| host.config.policies.scheduler = scheduler.clone();
    put(&mut spec.client);
    put(&mut spec.server);
    Ok(variant)
}

/// Refuses the name of a path that does not exist.
fn known(key: &str, name: &At<String>, names: &[String]) -> Result<(), Problem> {
    if names.contains(&name.value) {
        return Ok(());
    }
    let accepted: Vec<&str> = names.iter().map(String::as_str).collect();
    let problem = format!("`{key}` names `{}`, which does not exist", name.value);
    Err(Problem::at(&name.span, problem, suggest(&name.value, accepted)))
}
