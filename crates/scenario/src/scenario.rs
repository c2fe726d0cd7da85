//! Scenario, read and checked: name, digest, and the specification of its runs.

use crate::ScenarioError;
use crate::error::Problem;
use crate::file::{At, File, MeasureName, Policy, RecordingTable};
use crate::named;
use crate::recorded::Recordings;
use crate::remembered;
use crate::resolve::{self, HostSettings, Reading};
use crate::shipped::{self, SHIPPED};
use crate::tree::{Layer, Tree};
use crate::variant::{Chosen, Switched};
use crate::vary::Vary;
use crate::watch::Watch;
use anabranch_engine::settings::{SETTINGS, Setting};
use anabranch_net::{Change, LinkConfig, LossModel};
use anabranch_paths::TimedChange;
use anabranch_policy::Catalogue;
use anabranch_recording::Recording;
use anabranch_sim::{Spec, Workload};
use anabranch_units::{Duration, Instant, Seed, hex, input, nearest};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Scenario ready to run.
#[derive(Clone)]
pub struct Scenario {
    /// Name of the file without directory and extension, or of a shipped scenario.
    pub name: String,
    /// Purpose in one line.
    pub about: Option<String>,
    /// Text of the file, without overrides from the command line.
    pub text: Arc<str>,
    /// SHA-256 of the content after overrides, traces included, but without seed and repetitions.
    pub digest: String,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Number of repetitions of a comparison.
    pub repeat: usize,
    /// Measure that ranks.
    pub measure: MeasureName,
    /// Policies that replace others during the run.
    pub switched: Vec<Switched>,
    /// Scenario and overrides as named on the command line.
    pub origin: Origin,
    spec: Spec,
    spread: Duration,
    varies: Vec<Vary>,
    recordings: Recordings,
    /// Path or shared link of each `[[change]]`; `None` for one of policies.
    changed: Vec<Option<String>>,
    watch: Watch,
    catalogue: Arc<Catalogue>,
    /// Flag that stops runs when it becomes true.
    stop: Option<Arc<AtomicBool>>,
    /// Policies of client and server.
    policies: [Chosen; 2],
    /// Index in `policies` of the host that sends.
    sender: usize,
    /// Scheduler as written in the scenario, with its parameters.
    scheduler: Option<Policy>,
    /// Names of the congestion controls of competing TCP, in the order of the workloads.
    competing: Vec<String>,
    /// Tables in the file for both hosts, client and server.
    hosts: [HostSettings; 3],
}

/// Scenario as named on the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// Path of a file, or name of a shipped scenario.
    pub scenario: String,
    /// Text of each `--set`.
    pub sets: Vec<String>,
}

/// Function that reads a trace, page or session by its name in the file; the flag is true if the name came from a
/// `--set`.
pub type ReadTrace<'a> = dyn Fn(&str, bool) -> std::io::Result<String> + 'a;

/// Returns the function that reads recorded data of a scenario file in this directory.
pub fn beside(directory: &Path) -> impl Fn(&str, bool) -> std::io::Result<String> {
    move |name, from_set| {
        let path = if from_set { PathBuf::from(name) } else { directory.join(name) };
        input::text(&path, input::RECORDED)
    }
}

impl Scenario {
    /// Loads the shipped scenario of that name, the drawn condition (`drawn/SEED/NUMBER`), or otherwise the file, and
    /// overrides values with each `KEY=VALUE` of `sets`.
    ///
    /// Traces named in the file are relative to it; traces named in `sets` are relative to the current directory.
    pub fn load(catalogue: &Arc<Catalogue>, name: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
        let origin = Origin { scenario: name.to_owned(), sets: sets.to_vec() };
        if let Some(shipped) = shipped::find(name) {
            let read = |trace: &str, from_set: bool| match shipped::trace(trace) {
                Some(text) if !from_set => Ok(text.to_owned()),
                _ => input::text(Path::new(trace), input::RECORDED),
            };
            return Scenario::read(catalogue, shipped.name, &format!("{name}.toml"), shipped.text, origin, &read);
        }
        let path = Path::new(name);
        let text = input::written(path).map_err(|error| not_found(name, &error))?;
        let read = beside(path.parent().unwrap_or(Path::new("")));
        let stem = path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy());
        Scenario::read(catalogue, &stem, name, &text, origin, &read)
    }

    /// Reads a scenario from a text. `read` reads traces; its flag tells if the name came from a `--set`.
    pub fn read(
        catalogue: &Arc<Catalogue>,
        name: &str,
        file_name: &str,
        text: &str,
        origin: Origin,
        read: &ReadTrace<'_>,
    ) -> Result<Scenario, ScenarioError> {
        Scenario::layered(catalogue, name, &[Layer { name: file_name, text, within: None }], origin, read)
    }

    /// Reads a scenario from several texts, each of which overrides those before it.
    pub fn layered(
        catalogue: &Arc<Catalogue>,
        name: &str,
        layers: &[Layer<'_>],
        origin: Origin,
        read: &ReadTrace<'_>,
    ) -> Result<Scenario, ScenarioError> {
        Scenario::with_settings(catalogue, SETTINGS, name, layers, origin, read)
    }

    /// Reads a scenario whose hosts have these settings.
    fn with_settings(
        catalogue: &Arc<Catalogue>,
        settings: &[Setting],
        name: &str,
        layers: &[Layer<'_>],
        origin: Origin,
        read: &ReadTrace<'_>,
    ) -> Result<Scenario, ScenarioError> {
        let mut tree = Tree::read(layers)?;
        for set in &origin.sets {
            tree.set(set)?;
        }
        let file: File = tree.decode()?;
        let digests = RefCell::new(BTreeMap::new());
        let mut parsed: Vec<(RecordingTable, bool, Arc<Recording>)> = Vec::new();
        let mut read_recording = |table: &RecordingTable, span: &Range<usize>| {
            let from_set = !tree.sources.is_in_file(span);
            // One reading serves any offset.
            let table = RecordingTable { offset: None, ..table.clone() };
            if let Some((.., recording)) = parsed.iter().find(|(known, set, _)| *known == table && *set == from_set) {
                return Ok(Arc::clone(recording));
            }
            let (digest, recording) = load_recording(&table, span, from_set, read)?;
            digests.borrow_mut().insert(table.file.clone(), digest);
            parsed.push((table, from_set, Arc::clone(&recording)));
            Ok(recording)
        };
        let mut reading = Reading { read: &mut read_recording, recordings: Recordings::default() };
        let mut texts = |at: &At<String>| {
            let text = load_text(at, !tree.sources.is_in_file(&at.span), read)?;
            digests.borrow_mut().insert(at.value.clone(), hex(&Sha256::digest(text.as_bytes())));
            Ok(text)
        };
        let resolved = resolve::resolve(catalogue, settings, &file, &mut reading, &mut texts)
            .map_err(|problem| tree.sources.error(problem))?;
        let recordings = reading.recordings;
        Ok(Scenario {
            name: name.to_owned(),
            about: file.about.clone(),
            text: layers.iter().map(|layer| layer.text).collect::<Vec<_>>().join("\n").into(),
            digest: tree.digest(&digests.borrow()),
            seed: resolved.seed,
            repeat: resolved.repeat,
            measure: resolved.measure,
            switched: resolved.switched,
            origin,
            spec: resolved.spec,
            spread: resolved.spread,
            varies: resolved.varies,
            recordings,
            changed: file.change.iter().map(|at| at.value.path.as_ref().map(|path| path.value.clone())).collect(),
            watch: resolved.watch,
            catalogue: Arc::clone(catalogue),
            stop: None,
            policies: resolved.policies,
            sender: resolved.sender,
            scheduler: file.host.scheduler.clone().map(|at| at.value),
            competing: resolved.competing,
            hosts: resolved.hosts,
        })
    }

    /// Makes runs end as failed soon after `stop` becomes true. The flag has no other effect on a run.
    pub fn stoppable(mut self, stop: &Arc<AtomicBool>) -> Scenario {
        self.stop = Some(Arc::clone(stop));
        self
    }

    /// Returns the flag that stops runs, if there is one.
    pub fn stop_flag(&self) -> Option<&AtomicBool> {
        self.stop.as_deref()
    }

    /// Returns the names of the paths, in order.
    pub fn paths(&self) -> Vec<String> {
        self.spec.network.paths.iter().map(|path| path.name.clone()).collect()
    }

    /// Returns the specification as written: draws and the spread of repetitions are still to come.
    pub fn written(&self) -> &Spec {
        &self.spec
    }

    /// Returns the properties of paths that are drawn for each run.
    pub fn varies(&self) -> &[Vary] {
        &self.varies
    }

    /// Returns the path or shared link of each `[[change]]`, in the order of the file; `None` for one of policies.
    pub fn changed(&self) -> &[Option<String>] {
        &self.changed
    }

    /// Returns the names of the shared links.
    pub fn links(&self) -> Vec<String> {
        self.spec.network.shared.iter().map(|link| link.name.clone()).collect()
    }

    /// Returns true if two paths cross one link.
    pub fn shares_a_link(&self) -> bool {
        let paths = &self.spec.network.paths;
        let crosses = |link: &String| paths.iter().filter(|path| path.via.as_ref() == Some(link)).count();
        self.spec.network.shared.iter().any(|link| crosses(&link.name) > 1)
    }

    /// Returns the tables in the file for the client, or else for the server; the later one overrides the earlier one.
    pub fn host_tables(&self, client: bool) -> [&HostSettings; 2] {
        let [both, of_client, of_server] = &self.hosts;
        [both, if client { of_client } else { of_server }]
    }

    /// Returns the policies of the host that sends.
    pub fn policies(&self) -> &Chosen {
        &self.policies[self.sender]
    }

    /// Returns the names of the congestion controls of competing TCP, in the order of the workloads.
    pub fn competing(&self) -> &[String] {
        &self.competing
    }

    /// Returns the policies of the host that receives.
    pub fn receiver(&self) -> &Chosen {
        &self.policies[1 - self.sender]
    }

    /// Returns true if the client sends the data.
    pub fn client_sends(&self) -> bool {
        self.sender == 0
    }

    /// Returns the names of the schedulers of client and server, each with the time from which it is in use, in the
    /// order of time.
    pub fn schedulers(&self, seed: u64) -> [Vec<(Instant, String)>; 2] {
        [0, 1].map(|host: usize| {
            let mut all = vec![(Instant::ZERO, self.policies[host].scheduler.name.clone())];
            let other = ["server", "client"][host];
            for switched in self.switched.iter().filter(|it| it.seam == "scheduler" && it.host != other) {
                let at = Instant::ZERO + self.late(seed) + Duration::from_nanos((switched.at_s * 1e9).round() as u64);
                all.push((at, switched.policy.name.clone()));
            }
            all.sort_by_key(|(at, _)| *at);
            all
        })
    }

    /// Returns the delay of a repetition drawn from its seed (`run.spread`): workloads and changes begin later by it,
    /// while links and traces count from zero.
    pub fn late(&self, seed: u64) -> Duration {
        Duration::from_nanos(Seed(seed).stream("run/spread").below(self.spread.as_nanos()))
    }

    /// Returns notes on settings that are allowed but worth knowing, as sentences.
    pub fn notes(&self) -> Vec<String> {
        let hosts = [("client", &self.spec.client), ("server", &self.spec.server)];
        let ((from, sender), (to, receiver)) = (hosts[self.sender], hosts[1 - self.sender]);
        let (send, receive) = (sender.config.send_buffer, receiver.config.receive_buffer);
        let small = (send < receive).then(|| {
            format!(
                "the {from}'s send buffer, {send}, is smaller than the {to}'s receive buffer, {receive}, \
                 and can never fill it (RFC 8684 §3.3.5)"
            )
        });
        small.into_iter().chain(self.recordings.notes()).collect()
    }

    /// Returns the specification of the run with this seed.
    pub fn spec(&self, seed: u64) -> Spec {
        let mut spec = self.spec.clone();
        spec.seed = Seed(seed);
        let late = self.late(seed);
        shift(&mut spec, late);
        self.recordings.apply(spec.seed, spec.stop, &mut spec.network);
        // Drawn changes come first, so that a change in the file at the same time overrides them.
        spec.network.changes.splice(0..0, self.varies.iter().flat_map(|vary| vary.changes(Seed(seed), spec.stop)));
        spec.samples = self.watch.times(spec.stop, late);
        spec
    }

    /// Limits the number of events in a run.
    pub fn with_budget(mut self, events: u64) -> Scenario {
        self.spec.budget = Some(events);
        self
    }

    /// Takes samples of each run at this interval. Outcome and digest are as without.
    pub fn sampled(mut self, every: Duration) -> Scenario {
        self.watch.every = Some(every);
        self
    }

    /// Returns the time at which a run is stopped, in the time of the scenario.
    pub fn stop(&self) -> Duration {
        self.spec.stop
    }

    /// Returns true if runs draw from the seed.
    pub fn is_random(&self) -> bool {
        let spec = &self.spec;
        let own = spec.network.paths.iter().flat_map(|path| [&path.down, &path.up]);
        let links = own.chain(spec.network.shared.iter().flat_map(|link| [&link.down, &link.up]));
        let draws = |link: &LinkConfig| {
            !link.jitter.is_zero()
                || !matches!(link.loss, LossModel::None | LossModel::List(_))
                || link.reordering.is_some()
                || link.duplication > 0.0
                || link.corruption > 0.0
        };
        let changes = |change: &TimedChange| matches!(change.change, Change::Loss(_) | Change::Jitter(_));
        !self.spread.is_zero()
            || !self.varies.is_empty()
            || self.recordings.are_drawn()
            || links.into_iter().any(draws)
            || spec.network.changes.iter().any(changes)
            || spec.network.paths.iter().any(|path| !path.middleboxes.is_empty())
            || spec.workloads.iter().any(Workload::is_random)
    }

    /// Returns the samples and windows of a run.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Returns a baseline: the scenario with plain TCP over the path of that index.
    pub fn single_path(&self, path: usize) -> Scenario {
        let mut scenario = self.clone();
        scenario.spec = self.spec.single_path(path);
        let name = &self.spec.network.paths[path].name;
        scenario.origin.sets.push("host.multipath=false".to_owned());
        scenario.origin.sets.push(format!("run.primary=\"{name}\""));
        scenario
    }

    /// Returns a baseline: the scenario over the path of that index, with all others as its backups.
    pub fn with_backups(&self, path: usize) -> Scenario {
        let mut scenario = self.clone();
        scenario.spec = self.spec.with_backups(path);
        let sets = &mut scenario.origin.sets;
        sets.push(format!("run.primary=\"{}\"", self.spec.network.paths[path].name));
        sets.push("client.first-path=\"as-listed\"".to_owned());
        for (before, after) in self.spec.network.paths.iter().zip(&scenario.spec.network.paths) {
            if before.backup != after.backup {
                sets.push(format!("path.{}.backup={}", after.name, after.backup));
            }
        }
        scenario
    }

    /// Returns the scenario with another scheduler: `ecf`, `ecf:beta=0.5`. A bare name keeps the parameters that the
    /// scenario gives to a scheduler of that name.
    pub fn with_scheduler(&self, name: &str) -> Result<Scenario, ScenarioError> {
        let own = self.scheduler.as_ref().filter(|own| own.name == name);
        let mut scenario = self.clone();
        let variant = named::blame("--schedulers", name, |whole| {
            let policy = own.cloned().map_or_else(|| named::read(name), Ok)?;
            resolve::with_scheduler(&self.catalogue, &mut scenario.spec, &policy, whole)
        })?;
        scenario.policies.iter_mut().for_each(|host| host.scheduler = variant.clone());
        if own.is_none() {
            scenario.origin.sets.push(format!("host.scheduler={}", toml::Value::from(name)));
        }
        Ok(scenario)
    }

    /// Returns the schedulers that a comparison runs by default: all but `single`, which the baselines cover.
    pub fn default_schedulers(&self) -> Vec<String> {
        self.catalogue.schedulers.names().filter(|name| *name != "single").map(str::to_owned).collect()
    }
}

impl Origin {
    /// Returns the command that repeats one run.
    pub fn command(&self, seed: u64) -> String {
        let mut command = format!("anabranch run {} --seed {seed}", in_shell(&self.scenario));
        for set in &self.sets {
            command += &format!(" --set {}", in_shell(set));
        }
        command
    }
}

/// Quotes a word for a shell if necessary.
pub fn in_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=%".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the error for a name that is neither a shipped scenario nor a file that can be read.
pub fn not_found(name: &str, error: &std::io::Error) -> ScenarioError {
    let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let help = format!("{near}accepted: a scenario file, or one of {}", names.join(", "));
    ScenarioError::plain(format!("cannot read `{name}`: {error}"), Some(help))
}

/// Reads a recording; returns the digest of its text too.
fn load_recording(
    table: &RecordingTable,
    span: &Range<usize>,
    from_set: bool,
    read: &ReadTrace<'_>,
) -> Result<(String, Arc<Recording>), Problem> {
    let name = &table.file;
    let text = read(name, from_set).map_err(|error| {
        let from = if from_set { "the current directory" } else { "the directory of the scenario" };
        let help = format!("accepted: a rate such as \"25mbit\", or the name of a recording, relative to {from}");
        Problem::at(span, format!("recording `{name}`: {error}"), help)
    })?;
    let digest = hex(&Sha256::digest(text.as_bytes()));
    let recording = remembered::recording(&digest, table, || anabranch_recording::read(&text, &table.options()));
    let recording = recording.map_err(|error| {
        let help =
            error.help.clone().unwrap_or_else(|| format!("`anabranch trace {name}` shows what a recording holds"));
        Problem::at(span, format!("recording `{name}`: {error}"), help)
    })?;
    Ok((digest, recording))
}

/// Reads the text of a page or session.
fn load_text(at: &At<String>, from_set: bool, read: &ReadTrace<'_>) -> Result<String, Problem> {
    read(&at.value, from_set).map_err(|error| {
        let from = if from_set { "the current directory" } else { "the directory of the scenario" };
        let help = format!("accepted: the name of a file relative to {from}");
        Problem::at(&at.span, format!("cannot read `{}`: {error}", at.value), help)
    })
}

/// Delays workloads, changes and middleboxes; links and traces count from zero as before.
fn shift(spec: &mut Spec, late: Duration) {
    spec.stop += late;
    for change in &mut spec.network.changes {
        change.at += late;
    }
    for switch in &mut spec.switches {
        switch.at += late;
    }
    for restart in &mut spec.restarts {
        restart.at += late;
    }
    for middlebox in spec.network.paths.iter_mut().flat_map(|path| &mut path.middleboxes) {
        middlebox.kind.shift(late);
    }
    for workload in &mut spec.workloads {
        match workload {
            Workload::Bulk { start, .. }
            | Workload::Files { start, .. }
            | Workload::Bursts { start, .. }
            | Workload::Exchange { start, .. }
            | Workload::Web { start, .. }
            | Workload::Interactive { start, .. }
            | Workload::Tcp { start, .. } => *start += late,
            Workload::Udp { start, stop, .. } => {
                *start += late;
                *stop += late;
            }
        }
    }
}

#[cfg(test)]
mod tests;
