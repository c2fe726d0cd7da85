//! The state of a run at times that were asked for. Looking changes nothing: neither outcome nor digest depend on it.

use crate::address::sender;
use crate::session::Session;
use crate::stage::Stage;
use anabranch_engine::SubflowStats;
use anabranch_units::{Duration, Instant};
use std::collections::BTreeMap;

/// State at one instant, before all events of that instant: all connections under test of all clients together, without
/// competing TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// Bytes that receiving applications have read, in the direction of the data.
    pub read: u64,
    /// Bytes acknowledged at the data level, as senders know.
    pub data_acked: u64,
    /// Segments that receivers hold out of order at the data level.
    pub ofo_segments: u64,
    /// Bytes in receive buffers: out of order, or in order and unread.
    pub buffered: u64,
    /// Paths in the order of the specification, the copies of all clients together.
    pub paths: Vec<PathSample>,
}

/// One path at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSample {
    /// Payload bytes that receivers got in order on subflows of this path, since the beginning.
    pub received: u64,
    /// The congestion windows of senders on it, in bytes.
    pub cwnd: u64,
    /// Packets queued for its links in the direction of the data, a shared link included and hosts' interfaces not.
    pub queued: u64,
}

/// Takes samples when their time has come.
#[derive(Default)]
pub(crate) struct Sampler {
    /// Times of samples, in order.
    times: Vec<Instant>,
    samples: Vec<Sample>,
    /// Latest reading of each session: hosts forget connections that are over.
    noted: BTreeMap<usize, Reading>,
}

/// One session's part in a sample.
#[derive(Clone, Default)]
struct Reading {
    data_acked: u64,
    ofo_segments: u64,
    buffered: u64,
    /// Bytes received, by path.
    received: Vec<u64>,
    cwnd: Vec<u64>,
}

impl Sampler {
    pub(crate) fn new(times: &[Duration]) -> Self {
        let mut times: Vec<Instant> = times.iter().map(|&at| Instant::ZERO + at).collect();
        times.sort_unstable();
        times.dedup();
        Sampler { times, ..Sampler::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        !self.times.is_empty()
    }

    /// Returns the time of the next sample.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.times.get(self.samples.len()).copied()
    }

    pub(crate) fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

impl Stage<'_> {
    /// Takes all samples due up to and including `until`.
    #[cold]
    pub(crate) fn take_samples(&mut self, until: Instant) {
        while let Some(at) = self.sampler.next_time().filter(|at| *at <= until) {
            self.take_sample(at);
        }
    }

    /// The state at the end of the run, after all other samples.
    pub(crate) fn take_last_sample(&mut self) {
        if self.sampler.is_on() {
            self.take_sample(self.now);
        }
    }

    fn take_sample(&mut self, at: Instant) {
        let own = || (0..self.sessions.len()).filter(|&session| self.is_under_test(session));
        let read = own().map(|session| self.read(session, self.sessions[session].direction)).sum();
        let readings: Vec<_> = own().map(|session| (session, self.reading(session))).collect();
        let direction = own().next().map(|session| self.sessions[session].direction);
        let sum = |part: &dyn Fn(&Reading) -> u64| readings.iter().map(|(_, reading)| part(reading)).sum::<u64>();
        let mut sample = Sample {
            at,
            read,
            data_acked: sum(&|reading| reading.data_acked),
            ofo_segments: sum(&|reading| reading.ofo_segments),
            buffered: sum(&|reading| reading.buffered),
            paths: Vec::new(),
        };
        let per_client = self.topology.paths_per_client();
        for path in 0..per_client {
            let copies = (path..self.topology.paths()).step_by(per_client);
            sample.paths.push(PathSample {
                received: sum(&|reading| reading.received.get(path).copied().unwrap_or(0)),
                cwnd: sum(&|reading| reading.cwnd.get(path).copied().unwrap_or(0)),
                queued: direction
                    .map_or(0, |direction| copies.map(|copy| self.topology.queued(at, copy, direction)).sum()),
            });
        }
        self.sampler.noted.extend(readings);
        self.sampler.samples.push(sample);
    }

    /// A host is about to forget a connection: what it knows is kept for later samples.
    pub(crate) fn note_before_leaving(&mut self, session: usize) {
        if self.sampler.is_on() && self.is_under_test(session) {
            let reading = self.reading(session);
            self.sampler.noted.insert(session, reading);
        }
    }

    fn reading(&self, session: usize) -> Reading {
        let Session { ids, ends, direction, .. } = &self.sessions[session];
        let (sending, paths) = (sender(*direction), self.topology.paths_per_client());
        let mut reading = self.sampler.noted.get(&session).cloned().unwrap_or_default();
        (reading.ofo_segments, reading.buffered) = (0, 0);
        reading.received.resize(paths, 0);
        reading.cwnd = vec![0; paths];
        for side in [0, 1] {
            let endpoint = &self.hosts[ends[side]].endpoint;
            let Some((id, stats)) = ids[side].and_then(|id| Some((id, endpoint.connection_stats(id)?))) else {
                continue;
            };
            let subflows = endpoint.subflow_stats(id);
            let path = |it: &SubflowStats| self.path_in_spec(self.path_between(it.local.ip(), it.remote.ip()));
            let by_path = || subflows.iter().map(|it| (path(it), it));
            if side == sending {
                reading.data_acked = stats.data_acked;
                by_path().filter(|(_, it)| it.established).for_each(|(path, it)| reading.cwnd[path] += it.cwnd.get());
            } else {
                reading.ofo_segments = stats.ofo_now;
                reading.buffered = stats.ofo_bytes + stats.received.saturating_sub(stats.delivered);
                reading.received.fill(0);
                by_path().for_each(|(path, it)| reading.received[path] += it.bytes_received);
            }
        }
        reading
    }
}
