//! The judge: watches a run, and gives each moment of each transfer to one limit.

use crate::attribution::Moment;
use crate::{Bands, Cause, Limit};
use anabranch_engine::Purpose;
use anabranch_paths::{Direction, End, PacketId};
use anabranch_sim::{Condition, Loss, Observer, Outcome, SessionState, Sight, Spec, Workload};
use anabranch_units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;

/// An observer that gives the time of connections to limits. The run is the same with and without it.
#[derive(Default)]
pub struct Judge {
    trials: BTreeMap<usize, Trial>,
    /// Nagle's algorithm at the server, and at the client.
    nagle: [bool; 2],
}

/// One connection so far.
pub(crate) struct Trial {
    /// State at the latest report; it holds until the next.
    state: SessionState,
    pub(crate) bands: Bands,
    pub(crate) paths: Vec<Bands>,
    /// Time from which its sender may send.
    open: Option<Instant>,
    /// True for each path on which a subflow was ever under way.
    known: Vec<bool>,
    /// Scratch: the busy paths.
    busy: Vec<bool>,
    /// The sender holds short segments back (RFC 9293 §3.7.4).
    pub(crate) nagle: bool,
}

/// A transfer with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Label of the transfer.
    pub label: String,
    /// Index of its connection.
    pub connection: usize,
    /// True if its last byte was read.
    pub finished: bool,
    /// Bytes read.
    pub bytes: Bytes,
    /// The time of the connection, from the beginning of the transfer to its end.
    pub bands: Bands,
    /// The same of each path.
    pub paths: Vec<Bands>,
}

impl Judge {
    /// Prepares for a run, of whose hosts it knows the settings that no state tells.
    pub fn of(spec: &Spec) -> Self {
        let nagle = [&spec.server, &spec.client].map(|host| host.config.profile.nagle);
        Judge { nagle, ..Judge::default() }
    }

    /// Returns the transfers of the run in their order, without those of competing TCP.
    pub fn finish(mut self, workloads: &[Workload], outcome: &Outcome) -> Vec<Judged> {
        self.trials.values_mut().for_each(|trial| trial.flush(outcome.end));
        let own = outcome.transfers.iter().filter(|it| !matches!(workloads[it.workload], Workload::Tcp { .. }));
        let judged = own.filter_map(|transfer| {
            let trial = self.trials.get(&transfer.connection)?;
            let (from, to) = (transfer.started, transfer.finished.unwrap_or(outcome.end));
            let gone = Cause::of_all(Limit::Handshake);
            let path = |(path, bands): (usize, &Bands)| bands.between(from, to, Cause::of(Limit::Unused, path));
            Some(Judged {
                label: transfer.label.clone(),
                connection: transfer.connection,
                finished: transfer.finished.is_some(),
                bytes: Bytes::new(transfer.bytes),
                bands: trial.bands.between(from, to, gone),
                paths: trial.paths.iter().enumerate().map(path).collect(),
            })
        });
        judged.collect()
    }
}

impl Judged {
    /// Returns the time from its beginning to its end.
    pub fn duration(&self) -> Duration {
        self.bands.total()
    }
}

impl Trial {
    /// Begins with the first report.
    pub(crate) fn new(state: &SessionState) -> Self {
        let paths = state.paths.len();
        Trial {
            state: state.clone(),
            bands: Bands::new(state.at),
            paths: vec![Bands::new(state.at); paths],
            open: None,
            known: state.paths.iter().map(|path| path.wait.is_some()).collect(),
            busy: vec![false; paths],
            nagle: false,
        }
    }

    /// Gives the time from the latest report up to `until` to limits. A path turns idle in between when its link has
    /// sent what it had.
    pub(crate) fn flush(&mut self, until: Instant) {
        let Trial { state, bands, paths, busy, nagle, .. } = self;
        let mut from = state.at;
        while from < until {
            let ends = state.paths.iter().filter_map(|path| path.busy_until).filter(|end| *end > from);
            let to = ends.min().unwrap_or(until).min(until);
            for (busy, path) in busy.iter_mut().zip(&state.paths) {
                *busy = path.busy_until.is_some_and(|end| end > from);
            }
            let moment = Moment { state, busy, nagle: *nagle };
            bands.extend(to, moment.connection());
            paths.iter_mut().enumerate().for_each(|(path, bands)| bands.extend(to, moment.path(path)));
            from = to;
        }
    }

    /// Takes over the next report.
    pub(crate) fn advance(&mut self, state: &SessionState) {
        self.flush(state.at);
        for path in 0..state.paths.len() {
            if state.paths[path].timeouts > self.state.paths[path].timeouts {
                self.charge_timeout(path);
            }
            if state.paths[path].wait.is_some() && !std::mem::replace(&mut self.known[path], true) {
                self.charge_join(path);
            }
        }
        if self.open.is_none() && state.sender.as_ref().is_some_and(|sender| sender.open) {
            self.open = Some(state.at);
        }
        self.state.clone_from(state);
    }

    /// A timeout has fired: the time since the peer was last heard of on this path was spent waiting for it, unless the
    /// transfer had a limit elsewhere.
    fn charge_timeout(&mut self, path: usize) {
        let since = self.state.paths[path].heard;
        let waits = |cause: Cause| {
            let waiting = matches!(
                cause.limit,
                Limit::SlowStart
                    | Limit::CongestionWindow
                    | Limit::InFlight
                    | Limit::HeadOfLine
                    | Limit::SendBuffer
                    | Limit::PeerWindow
            );
            (waiting && cause.path == Some(path)).then_some(Cause::of(Limit::Timeout, path))
        };
        self.bands.reassign(since, waits);
        self.paths[path].reassign(since, waits);
    }

    /// A subflow begins on a path that had none: since the connection was open, it was to be joined.
    fn charge_join(&mut self, path: usize) {
        let Some(open) = self.open else { return };
        let join = Cause::of(Limit::Join, path);
        self.paths[path].reassign(open, |cause| (cause.limit == Limit::Unused).then_some(join));
        self.bands.reassign(open, |cause| (cause.limit == Limit::PathFull).then_some(join));
    }
}

impl Observer for Judge {
    fn on_sent(&mut self, _sight: Sight<'_>, _purpose: Option<Purpose>) {}

    fn on_received(&mut self, _sight: Sight<'_>, _condition: Condition) {}

    fn on_lost(&mut self, _id: PacketId, _loss: Loss<'_>) {}

    fn on_kept(&mut self, _id: PacketId, _path: usize, _end: End) {}

    fn watches_states(&self) -> bool {
        true
    }

    fn on_state(&mut self, state: &SessionState) {
        match self.trials.get_mut(&state.connection) {
            Some(trial) => trial.advance(state),
            None => {
                let nagle = self.nagle[usize::from(state.direction == Direction::Up)];
                self.trials.insert(state.connection, Trial { nagle, ..Trial::new(state) });
            }
        }
    }
}
