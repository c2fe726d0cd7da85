//! Recordings and models in the runs of a scenario: which part of them a run meets.

use crate::file::RecordingTable;
use crate::model::{Model, ModelTable};
use crate::remembered;
use anabranch_net::{Change, LinkConfig, LossModel, Service, Trace};
use anabranch_paths::{Affected, NetworkSpec, TimedChange};
use anabranch_recording::{Recording, align, window};
use anabranch_units::{Duration, Rate, Seed};
use std::sync::Arc;

/// Recordings and models of a scenario, and their places in the network.
#[derive(Clone, Default)]
pub(crate) struct Recordings {
    sources: Vec<Source>,
    uses: Vec<Use>,
    /// Length of the part that a run needs.
    needed: Duration,
}

/// A recording that was read, or a model.
#[derive(Clone)]
struct Source {
    origin: Origin,
    /// Content of the file; of a model one draw that is typical of it, since each run draws its own.
    recording: Arc<Recording>,
    trace: Option<Arc<Trace>>,
    begins: Begins,
}

#[derive(Clone)]
enum Origin {
    File(RecordingTable),
    /// Model of the path of this name.
    Model(Model, String),
}

/// Part of a source that a run meets.
struct Part {
    recording: Arc<Recording>,
    offset: Duration,
    /// `None` if nothing passes.
    trace: Option<Arc<Trace>>,
}

/// Place in a recording at which runs begin.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begins {
    /// At this place.
    At(Duration),
    /// At a drawn moment, the same in all recordings of that kind.
    Together(&'static str),
    /// At a drawn place of its own: its clock has no moment in common with the others.
    Alone,
}

/// A value that follows a recording.
#[derive(Clone)]
struct Use {
    source: usize,
    /// Path or shared link.
    name: String,
    affected: Affected,
    what: What,
}

/// A value that a recording or a model may drive.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum What {
    Rate,
    /// Rate from the change of this index on.
    Change(usize),
    Delay,
    Loss,
}

impl Recordings {
    /// Adds a recording, unless it is there, and returns its number.
    pub(crate) fn add(&mut self, table: &RecordingTable, recording: Arc<Recording>) -> usize {
        let is_same = |it: &Source| matches!(&it.origin, Origin::File(known) if known == table);
        let known = self.sources.iter().position(|it| is_same(it) && it.recording == recording);
        known.unwrap_or_else(|| {
            let begins = match table.offset {
                Some(offset) => Begins::At(offset.0),
                None if recording.has_clock() => Begins::Together("clock"),
                None => Begins::Together("plain"),
            };
            let trace = recording.trace().map(Arc::new);
            self.sources.push(Source { origin: Origin::File(table.clone()), recording, trace, begins });
            self.sources.len() - 1
        })
    }

    /// Adds the model of a path, and returns its number with what is typical of it.
    pub(crate) fn add_model(&mut self, model: &Model, path: &str) -> (usize, Arc<Recording>) {
        // The view of a satellite may be obstructed for all of one draw.
        let tries = if matches!(model.0, ModelTable::Leo(_)) { TRIES } else { 1 };
        let draw = |seed| remembered::draw(model, Seed(seed), path, TYPICAL);
        let typical = (0..tries).map(draw).find(|drawn| drawn.trace.is_some()).unwrap_or_else(|| draw(0));
        let (recording, trace) = (Arc::clone(&typical.recording), typical.trace.clone());
        let origin = Origin::Model(model.clone(), path.to_owned());
        self.sources.push(Source {
            origin,
            recording: Arc::clone(&recording),
            trace,
            begins: Begins::At(Duration::ZERO),
        });
        (self.sources.len() - 1, recording)
    }

    pub(crate) fn rate(&mut self, source: usize, name: &str, affected: Affected) {
        self.put(source, name, affected, What::Rate);
    }

    pub(crate) fn change(&mut self, source: usize, name: &str, index: usize) {
        self.put(source, name, Affected::Both, What::Change(index));
    }

    pub(crate) fn delay(&mut self, source: usize, name: &str) {
        self.put(source, name, Affected::Both, What::Delay);
    }

    pub(crate) fn loss(&mut self, source: usize, name: &str, affected: Affected) {
        self.put(source, name, affected, What::Loss);
    }

    fn put(&mut self, source: usize, name: &str, affected: Affected, what: What) {
        self.uses.push(Use { source, name: name.to_owned(), affected, what });
    }

    /// Tells whether this value of a path or shared link follows a recording or a model in one of these directions.
    pub(crate) fn drive(&self, name: &str, what: What, affected: Affected) -> bool {
        self.uses.iter().any(|it| {
            let meets = it.affected == affected || it.affected == Affected::Both || affected == Affected::Both;
            it.what == what && it.name == name && meets
        })
    }

    /// Cuts recordings with clocks to the times that all of them cover. `needed` is the length of the part that a run
    /// needs; runs that are spread over a recording by other means begin at its beginning.
    pub(crate) fn settle(&mut self, needed: Duration, are_spread: bool) {
        self.needed = needed;
        let unsettled = |it: &Source| !matches!(it.begins, Begins::At(_));
        if are_spread {
            self.sources.iter_mut().filter(|it| unsettled(it)).for_each(|it| it.begins = Begins::At(Duration::ZERO));
        }
        let with_clock: Vec<usize> =
            (0..self.sources.len()).filter(|n| self.sources[*n].begins == Begins::Together("clock")).collect();
        if with_clock.len() < 2 {
            return;
        }
        let recordings: Vec<Recording> = with_clock.iter().map(|n| (*self.sources[*n].recording).clone()).collect();
        match align(&recordings) {
            Some(aligned) => {
                for (n, recording) in with_clock.into_iter().zip(aligned) {
                    // A part in which nothing passes is no trace: the whole recording goes on to say what comes.
                    let source = &mut self.sources[n];
                    source.trace = recording.trace().map(Arc::new);
                    source.recording = Arc::new(recording);
                }
            }
            None => with_clock.into_iter().for_each(|n| self.sources[n].begins = Begins::Alone),
        }
    }

    /// Returns the first recording that gives a rate and of which nothing passes in the times that all cover.
    pub(crate) fn dead(&self) -> Option<&str> {
        let is_rate = |it: &&Use| matches!(it.what, What::Rate | What::Change(_));
        let mut sources = self.uses.iter().filter(is_rate).map(|it| &self.sources[it.source]);
        sources.find(|source| source.trace.is_none()).map(Source::name)
    }

    /// Returns the recording of delay or loss that changes most often in a run of this length, and how often at most.
    pub(crate) fn busiest(&self, span: Duration) -> Option<(&str, u64)> {
        let count = |it: &Use| {
            let source = &self.sources[it.source];
            let count = match it.what {
                What::Rate | What::Change(_) => 0,
                What::Delay => source.recording.delay.as_ref().map_or(0, |levels| levels.count_in(span)),
                What::Loss => source.recording.loss.as_ref().map_or(0, |levels| levels.count_in(span)),
            };
            (source.name(), count)
        };
        self.uses.iter().map(count).max_by_key(|(_, count)| *count)
    }

    /// Returns sentences on what was guessed and filled, and on recordings that were made at different times.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for source in &self.sources {
            let said = source.recording.remarks.iter();
            notes.extend(said.map(|remark| format!("recording {}: {remark}", source.name())));
        }
        let alone: Vec<&str> = self.of_kind(Begins::Alone).map(Source::name).collect();
        if !alone.is_empty() {
            let names = alone.join(", ");
            notes.push(format!("the recordings {names} have no time in common: each begins at a place of its own"));
        }
        notes.dedup();
        notes
    }

    fn of_kind(&self, begins: Begins) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(move |source| source.begins == begins)
    }

    /// Returns true if seeds meet different parts.
    pub(crate) fn are_drawn(&self) -> bool {
        let places = |recording: &Recording| recording.stretches.len() > 1 || recording.length() != self.needed;
        let is_drawn = |source: &Source| !matches!(source.begins, Begins::At(_)) && places(&source.recording);
        self.sources.iter().any(|source| matches!(source.origin, Origin::Model(..)) || is_drawn(source))
    }

    /// Returns the place in each recording at which the run with this seed begins.
    fn offsets(&self, seed: Seed) -> Vec<Duration> {
        let drawn = |source: &Source, name: &str| {
            window(&source.recording, self.needed, &mut seed.stream(&format!("recording/{name}")))
        };
        // Of recordings without clocks, which begin together, the shortest says how far the draw may reach.
        let together = |kind: &'static str| {
            let shortest = self.of_kind(Begins::Together(kind)).min_by_key(|source| source.recording.length());
            shortest.map_or(Duration::ZERO, |source| drawn(source, kind))
        };
        let (clock, plain) = (together("clock"), together("plain"));
        let offset = |source: &Source| match source.begins {
            Begins::At(offset) => offset,
            Begins::Together("clock") => clock,
            Begins::Together(_) => plain,
            Begins::Alone => drawn(source, source.name()),
        };
        self.sources.iter().map(offset).collect()
    }

    /// Returns what the run with this seed meets of each source until `stop`.
    fn parts(&self, seed: Seed, stop: Duration) -> Vec<Part> {
        let sources = self.sources.iter().zip(self.offsets(seed));
        let parts = sources.map(|(source, offset)| match &source.origin {
            Origin::File(_) => {
                let trace = source.trace.as_ref().map(|trace| Arc::new(trace.starting_at(offset)));
                Part { recording: Arc::clone(&source.recording), offset, trace }
            }
            Origin::Model(model, path) => {
                let drawn = remembered::draw(model, seed, path, stop);
                Part { recording: Arc::clone(&drawn.recording), offset, trace: drawn.trace.clone() }
            }
        });
        parts.collect()
    }

    /// Puts the part that the run with this seed meets into its network, until `stop`. Recorded delays and losses come
    /// before all other changes.
    pub(crate) fn apply(&self, seed: Seed, stop: Duration, network: &mut NetworkSpec) {
        if self.uses.is_empty() {
            return;
        }
        let parts = self.parts(seed, stop);
        let mut changes = Vec::new();
        for it in &self.uses {
            let Part { recording, offset, trace } = &parts[it.source];
            let timed = |at, change| {
                let (path, affected) = (it.name.clone(), it.affected);
                TimedChange { at, path, affected, change, notify: false }
            };
            match it.what {
                What::Rate => {
                    let nothing = Service::Rate(Rate::from_bps(0));
                    let service = trace.as_ref().map_or(nothing, |trace| Service::Trace(Arc::clone(trace)));
                    for link in links(network, &it.name, it.affected) {
                        link.service = service.clone();
                    }
                }
                What::Change(index) => {
                    if let (Some(change), Some(trace)) = (network.changes.get_mut(index), trace) {
                        change.change = Change::Trace(Arc::clone(trace));
                    }
                }
                What::Delay => {
                    for (at, delay) in recording.delay.iter().flat_map(|levels| levels.from(*offset, stop)) {
                        changes.push(timed(at, Change::Delay(delay)));
                    }
                }
                What::Loss => {
                    for (at, p) in recording.loss.iter().flat_map(|levels| levels.from(*offset, stop)) {
                        let model = if p > 0.0 { LossModel::Bernoulli { p } } else { LossModel::None };
                        changes.push(timed(at, Change::Loss(model)));
                    }
                }
            }
        }
        network.changes.splice(0..0, changes);
    }
}

impl Source {
    /// Returns the name of the file or model.
    fn name(&self) -> &str {
        match &self.origin {
            Origin::File(table) => &table.file,
            Origin::Model(model, _) => model.name(),
        }
    }
}

/// Time of a model from which typical values are taken.
const TYPICAL: Duration = Duration::from_secs(60);
/// Draws of which the first that lets something pass is typical.
const TRIES: u64 = 50;

/// Returns the links of a path or shared link in these directions.
fn links<'a>(network: &'a mut NetworkSpec, name: &str, affected: Affected) -> Vec<&'a mut LinkConfig> {
    let own = network.paths.iter_mut().filter(|path| path.name == name).map(|path| (&mut path.down, &mut path.up));
    let shared = network.shared.iter_mut().filter(|link| link.name == name).map(|link| (&mut link.down, &mut link.up));
    let mut all = Vec::new();
    for (down, up) in own.chain(shared) {
        match affected {
            Affected::Both => all.extend([down, up]),
            Affected::Down => all.push(down),
            Affected::Up => all.push(up),
        }
    }
    all
}
