//! Capture files of the packets that hosts send and receive: one file per host with an interface for each path.
//!
//! The emulator's thread puts sightings into a bounded queue and never blocks; a second thread polls the queue every
//! few milliseconds, so that recording never delays a packet. When the queue is full, sightings are dropped from the
//! files, and counted.

use super::options::CaptureOptions;
use super::report::CaptureReport;
use anabranch_capture::{Backlog, Direction, EPOCH, Interface, Packet, Section, Ticket, WriteError, Writer};
use anabranch_net::DropCause;
use anabranch_paths::{End, NetworkSpec, PacketId, PathSpec};
use anabranch_units::Instant;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Something that happened to a packet.
pub(super) enum Sighting {
    /// A host has sent it.
    Sent(Sight),
    /// A host has received it; damaged or not.
    Received(Sight, bool),
    /// A link has dropped it. Links count in the network's order.
    Lost { id: PacketId, link: usize, cause: DropCause },
    /// It ended at one end of a path without being lost or delivered.
    Ended { id: PacketId, path: usize, end: End, why: Ending },
}

/// A packet at a host.
pub(super) struct Sight {
    /// 0 for one that no host sent.
    pub(super) id: PacketId,
    pub(super) path: usize,
    pub(super) end: End,
    pub(super) at: Instant,
    pub(super) bytes: Box<[u8]>,
}

/// Reason for which a packet ended without being lost on a link.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    /// Kept by a middlebox.
    Kept,
    /// The device did not take it.
    Undelivered,
    /// Damaged, and without a checksum that would tell its receiver.
    Damaged,
}

/// The emulator's side.
pub(super) struct Recorder {
    queue: SyncSender<Sighting>,
    missed: u64,
    thread: JoinHandle<Result<u64, WriteError>>,
    files: Vec<PathBuf>,
}

impl Recorder {
    /// Creates the directory and the files. `links` are the names of all links in the network's order.
    pub(super) fn start(options: &CaptureOptions, spec: &NetworkSpec, links: Vec<String>) -> Result<Self, WriteError> {
        let fail = |error| WriteError { path: options.directory.clone(), error };
        std::fs::create_dir_all(&options.directory).map_err(fail)?;
        let section = Section { application: options.application.clone(), comment: options.comment.clone() };
        let files = HOSTS.map(|host| options.directory.join(format!("{host}.pcapng")));
        let mut writers = Vec::new();
        for (host, path) in HOSTS.iter().zip(&files) {
            let interface = |path: &PathSpec| Interface {
                name: format!("{host}/{}", path.name),
                description: path.describe(&spec.shared),
            };
            let interfaces: Vec<_> = spec.paths.iter().map(interface).collect();
            writers
                .push(HostFile { writer: Writer::create(path, &section, &interfaces)?, backlog: Backlog::new(HELD) });
        }
        let scribe = Scribe {
            files: writers,
            links,
            paths: spec.paths.iter().map(|path| path.name.clone()).collect(),
            has_middleboxes: spec.paths.iter().map(|path| !path.middleboxes.is_empty()).collect(),
            began: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            under_way: HashMap::new(),
            packets: 0,
            failure: None,
        };
        let (queue, sightings) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        let thread = thread.spawn(move || scribe.run(&sightings)).map_err(fail)?;
        Ok(Recorder { queue, missed: 0, thread, files: files.into() })
    }

    /// Takes note, if there is room.
    #[inline]
    pub(super) fn tell(&mut self, sighting: Sighting) {
        if self.queue.try_send(sighting).is_err() {
            self.missed += 1;
        }
    }

    /// Completes the files.
    pub(super) fn finish(self) -> CaptureReport {
        let Recorder { queue, missed, thread, files } = self;
        drop(queue);
        let written = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match written {
            Ok(packets) => CaptureReport { files, packets, missed, failure: None },
            Err(error) => CaptureReport { missed, failure: Some(error.to_string()), ..CaptureReport::default() },
        }
    }
}

/// The side of the files.
struct Scribe {
    /// Files of the client and of the server.
    files: Vec<HostFile>,
    links: Vec<String>,
    paths: Vec<String>,
    has_middleboxes: Vec<bool>,
    /// The time of day at the emulator's time zero.
    began: Duration,
    /// Sent, and neither received nor known to be lost.
    under_way: HashMap<PacketId, UnderWay>,
    packets: u64,
    /// The first thing that went wrong; nothing is written after it.
    failure: Option<WriteError>,
}

struct HostFile {
    writer: Writer,
    backlog: Backlog,
}

struct UnderWay {
    file: usize,
    ticket: Ticket,
    /// Bytes as they were sent, where a middlebox may change them.
    bytes: Option<Box<[u8]>>,
}

impl Scribe {
    /// Writes until the emulator has ended.
    fn run(mut self, sightings: &Receiver<Sighting>) -> Result<u64, WriteError> {
        loop {
            match sightings.try_recv() {
                Ok(sighting) => self.note(sighting),
                Err(TryRecvError::Empty) => std::thread::sleep(PAUSE),
                Err(TryRecvError::Disconnected) => return self.finish(),
            }
        }
    }

    fn note(&mut self, sighting: Sighting) {
        match sighting {
            Sighting::Sent(sight) => {
                let (id, file) = (sight.id, sight.end as usize);
                let bytes = self.has_middleboxes[sight.path].then(|| sight.bytes.clone());
                let ticket = self.push(sight, Direction::Outbound, Vec::new(), false);
                self.under_way.insert(id, UnderWay { file, ticket, bytes });
            }
            Sighting::Received(sight, damaged) => self.received(sight, damaged),
            Sighting::Lost { id, link, cause } => {
                let comment = format!("lost: {cause} on {}", self.links[link]);
                self.settle(id, Some(comment));
            }
            Sighting::Ended { id, path, end, why } => {
                let (host, path) = (HOSTS[end as usize], &self.paths[path]);
                let comment = match why {
                    Ending::Kept => {
                        format!("kept by a middlebox at the {host}'s end of {path}: dropped, merged or held back")
                    }
                    Ending::Undelivered => format!("lost: the {host}'s interface on {path} did not take it"),
                    Ending::Damaged => {
                        format!("lost: damaged on {path}; it has no checksum, so the emulator dropped it")
                    }
                };
                self.settle(id, Some(comment));
            }
        }
    }

    fn received(&mut self, sight: Sight, damaged: bool) {
        let id = sight.id;
        let sent = self.under_way.get(&id);
        let altered = !damaged && sent.and_then(|sent| sent.bytes.as_ref()).is_some_and(|bytes| *bytes != sight.bytes);
        let mut comments = Vec::new();
        if damaged {
            comments.push("damaged on the way: the checksum fails, the host discards it".to_owned());
        }
        if altered {
            comments.push("a middlebox changed it".to_owned());
        }
        if id == PacketId::default() {
            comments.push("comes from a middlebox, which made it, merged it or held it back".to_owned());
        } else if sent.is_none() {
            comments.push("a copy that a link made".to_owned());
        }
        self.push(sight, Direction::Inbound, comments, true);
        let comment = match (damaged, altered) {
            (true, _) => Some("lost: damaged on the way".to_owned()),
            (_, true) => Some("a middlebox will change it".to_owned()),
            _ => None,
        };
        self.settle(id, comment);
    }

    fn push(&mut self, sight: Sight, direction: Direction, comments: Vec<String>, settled: bool) -> Ticket {
        let Sight { path, end, at, bytes, .. } = sight;
        // The writer counts from a date of its own, the same for all runs of the simulator; this one has a real date.
        let since_epoch = (self.began.as_nanos() as u64 + at.as_nanos()).saturating_sub(EPOCH.as_nanos());
        let at = Instant::from_nanos(since_epoch);
        let packet = Packet { interface: path as u32, direction, at, bytes: bytes.into(), comments };
        let ticket = self.files[end as usize].backlog.push(packet, settled);
        self.write(end as usize);
        ticket
    }

    fn settle(&mut self, id: PacketId, comment: Option<String>) {
        if let Some(UnderWay { file, ticket, .. }) = self.under_way.remove(&id) {
            self.files[file].backlog.settle(ticket, comment);
            self.write(file);
        }
    }

    /// Writes what waits for nothing.
    fn write(&mut self, file: usize) {
        let HostFile { writer, backlog } = &mut self.files[file];
        while let Some(packet) = backlog.pop() {
            if self.failure.is_none() {
                self.failure = writer.packet(&packet).err();
                self.packets += 1;
            }
        }
    }

    fn finish(mut self) -> Result<u64, WriteError> {
        for file in 0..self.files.len() {
            self.files[file].backlog.close("still under way when the emulator ended");
            self.write(file);
        }
        match self.failure {
            Some(failure) => Err(failure),
            None => self.files.into_iter().try_for_each(|file| file.writer.finish()).map(|()| self.packets),
        }
    }
}

/// Names by [`End`].
const HOSTS: [&str; 2] = ["client", "server"];
/// Sightings that wait: some seconds of 100 Mbit/s, in at most 100 MB.
const QUEUE: usize = 1 << 16;
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of packets held back for each file, until their fate is known.
const HELD: usize = 32 << 20;
