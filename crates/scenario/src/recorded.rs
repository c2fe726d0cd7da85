//! Recordings in the runs of a scenario: which part of them a run meets.

use crate::file::RecordingTable;
use anabranch_net::{Change, LinkConfig, LossModel, Service, Trace};
use anabranch_paths::{Affected, NetworkSpec, TimedChange};
use anabranch_recording::{Recording, align, window};
use anabranch_units::{Duration, Seed};
use std::sync::Arc;

/// Recordings of a scenario and their places in the network.
#[derive(Clone, Default)]
pub(crate) struct Recordings {
    sources: Vec<Source>,
    uses: Vec<Use>,
    /// Length of the part that a run needs.
    needed: Duration,
}

/// A recording that was read.
#[derive(Clone)]
struct Source {
    table: RecordingTable,
    recording: Arc<Recording>,
    trace: Option<Arc<Trace>>,
    begins: Begins,
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

#[derive(Clone, Copy, PartialEq)]
enum What {
    Rate,
    /// Rate from the change of this index on.
    Change(usize),
    Delay,
    Loss,
}

impl Recordings {
    /// Adds a recording, unless it is there, and returns its number.
    pub(crate) fn add(&mut self, table: &RecordingTable, recording: Arc<Recording>) -> usize {
        let known = self.sources.iter().position(|it| it.table == *table && it.recording == recording);
        known.unwrap_or_else(|| {
            let begins = match table.offset {
                Some(offset) => Begins::At(offset.0),
                None if recording.has_clock() => Begins::Together("clock"),
                None => Begins::Together("plain"),
            };
            let trace = recording.trace().map(Arc::new);
            self.sources.push(Source { table: table.clone(), recording, trace, begins });
            self.sources.len() - 1
        })
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
        sources.find(|source| source.trace.is_none()).map(|source| source.table.file.as_str())
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
            (source.table.file.as_str(), count)
        };
        self.uses.iter().map(count).max_by_key(|(_, count)| *count)
    }

    /// Returns sentences on what was guessed and filled, and on recordings that were made at different times.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for source in &self.sources {
            let said = source.recording.remarks.iter();
            notes.extend(said.map(|remark| format!("recording {}: {remark}", source.table.file)));
        }
        let alone: Vec<&str> = self.of_kind(Begins::Alone).map(|source| source.table.file.as_str()).collect();
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
        self.sources.iter().any(|source| !matches!(source.begins, Begins::At(_)) && places(&source.recording))
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
            Begins::Alone => drawn(source, &source.table.file),
        };
        self.sources.iter().map(offset).collect()
    }

    /// Puts the part that the run with this seed meets into its network, until `stop`. Recorded delays and losses come
    /// before all other changes.
    pub(crate) fn apply(&self, seed: Seed, stop: Duration, network: &mut NetworkSpec) {
        if self.uses.is_empty() {
            return;
        }
        let offsets = self.offsets(seed);
        let mut changes = Vec::new();
        for it in &self.uses {
            let (source, offset) = (&self.sources[it.source], offsets[it.source]);
            let begun = || source.trace.as_ref().map(|trace| Arc::new(trace.starting_at(offset)));
            let timed = |at, change| {
                let (path, affected) = (it.name.clone(), it.affected);
                TimedChange { at, path, affected, change, notify: false }
            };
            match it.what {
                What::Rate => {
                    let Some(trace) = begun() else { continue };
                    for link in links(network, &it.name, it.affected) {
                        link.service = Service::Trace(Arc::clone(&trace));
                    }
                }
                What::Change(index) => {
                    if let (Some(change), Some(trace)) = (network.changes.get_mut(index), begun()) {
                        change.change = Change::Trace(trace);
                    }
                }
                What::Delay => {
                    for (at, delay) in source.recording.delay.iter().flat_map(|levels| levels.from(offset, stop)) {
                        changes.push(timed(at, Change::Delay(delay)));
                    }
                }
                What::Loss => {
                    for (at, p) in source.recording.loss.iter().flat_map(|levels| levels.from(offset, stop)) {
                        let model = if p > 0.0 { LossModel::Bernoulli { p } } else { LossModel::None };
                        changes.push(timed(at, Change::Loss(model)));
                    }
                }
            }
        }
        network.changes.splice(0..0, changes);
    }
}

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
