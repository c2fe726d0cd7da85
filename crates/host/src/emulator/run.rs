//! The emulator's thread.
//!
//! It does, again and again: what is due (packets that come out of links, timers of middleboxes, changes to links),
//! then read what devices have, then wait. Before each packet goes into the network everything due until then has
//! happened, at most [`DELIVERIES`] things at once, so that under overload neither reading nor delivering starves. It
//! sleeps until shortly before something is due and then spins, still looking at the devices, since a thread that
//! sleeps wakes up late.

use super::damage::damage;
use super::options::Options;
use super::packet::{Packet, Pool};
use super::passage::{Left, Passage};
use super::percentiles::Tally;
use super::port::{Port, Read};
use super::recorder::{Ending, Recorder, Sight, Sighting};
use super::report::{EmulatorReport, LinkReport, PathReport, Scheduling, Traffic, Validity};
use super::scope::{Scope, scope};
use super::spin::Spin;
use super::witness::{Glimpse, Witness};
use super::{Command, EmulatorError, PathEnds};
use crate::{Clock, LONGEST_PACKET};
use anabranch_net::{Change, Delivery, LinkId, Output, Service};
use anabranch_paths::{Affected, Carriers, Direction, End, NetworkSpec, PacketId, PerDirection, Topology};
use anabranch_units::{Bytes, Duration, Instant, Seed, Stream};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, PoisonError};

pub(super) struct Run {
    clock: Clock,
    options: Options,
    spin: Spin,
    scheduling: Scheduling,
    topology: Topology<Packet>,
    /// Path `n` has its client at `2n` and its server at `2n + 1`.
    ports: Vec<Port>,
    passage: Passage,
    pool: Pool,
    buffer: Box<[u8]>,
    /// Draws the bits of a damaged packet that are flipped.
    chance: Stream,
    /// Changes in the order of time.
    changes: Vec<Scheduled>,
    changed: usize,
    carriers: Carriers,
    /// Time from which changes are counted; `None` while they are held.
    changes_from: Option<Instant>,
    /// Numbers the packets that hosts send.
    last_id: u32,
    /// Output of middleboxes; empty between calls, kept to reuse its memory.
    left: Vec<Left>,
    lateness: Tally,
    bursts: Tally,
    queue_delays: Vec<Tally>,
    recorder: Option<Recorder>,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
}

struct Scheduled {
    at: Duration,
    links: Vec<LinkId>,
    change: Change,
    /// The path whose interface at the client shows it.
    shown: Option<usize>,
}

/// Returns a change for each link that follows a recording, to where the recording begins.
fn recorded(spec: &NetworkSpec, topology: &Topology<Packet>) -> Vec<Scheduled> {
    let own = spec.paths.iter().map(|path| (&path.name, [&path.down, &path.up]));
    let shared = spec.shared.iter().map(|link| (&link.name, [&link.down, &link.up]));
    let mut all = Vec::new();
    for (name, links) in own.chain(shared) {
        for (config, affected) in links.into_iter().zip([Affected::Down, Affected::Up]) {
            let Service::Trace(trace) = &config.service else { continue };
            let links = topology.affected(name, affected).unwrap_or_default();
            all.push(Scheduled { at: Duration::ZERO, links, change: Change::Trace(Arc::clone(trace)), shown: None });
        }
    }
    all
}

/// Kind of the next event.
#[derive(Clone, Copy)]
enum Turn {
    Network,
    Middlebox,
    Change,
}

impl Run {
    /// Builds the network.
    pub(super) fn new(
        (spec, seed): (&NetworkSpec, Seed),
        ends: Vec<PathEnds>,
        options: Options,
        (clock, scheduling): (Clock, Scheduling),
        (commands, wake): (Receiver<Command>, Arc<OwnedFd>),
    ) -> Result<Self, EmulatorError> {
        let mut topology = Topology::new(spec, seed, 1)?;
        topology.network.record_queue_delays();
        let recorder = match &options.capture {
            None => None,
            Some(capture) => {
                topology.network.report_drops();
                let names = topology.network.links().map(|link| topology.network.link_name(link).to_owned());
                Some(Recorder::start(capture, spec, names.collect())?)
            }
        };
        if options.witness.is_some() {
            topology.network.report_drops();
        }
        let queue_delays = topology.network.links().map(|_| Tally::new()).collect();
        let scheduled = spec.changes.iter().map(|timed| Scheduled {
            at: timed.at,
            links: topology.affected(&timed.path, timed.affected).unwrap_or_default(),
            change: timed.change.clone(),
            shown: topology.path_named(&timed.path).filter(|_| timed.notify),
        });
        // What was recorded begins with the changes, which may be held.
        let mut changes = recorded(spec, &topology);
        changes.extend(scheduled);
        changes.sort_by_key(|change| change.at); // Stable: of equal times the first listed comes first.
        let pool = Pool::default();
        let ports = ends.into_iter().enumerate().flat_map(|(path, PathEnds { client, server })| {
            [Port::new(client, path, End::Client), Port::new(server, path, End::Server)]
        });
        Ok(Run {
            clock,
            spin: Spin::new(options.spin),
            scheduling,
            topology,
            ports: ports.collect(),
            passage: Passage::new(spec, seed, pool.clone()),
            pool,
            buffer: vec![0; LONGEST_PACKET].into(),
            chance: seed.stream("emulator/damage"),
            changes,
            changed: 0,
            carriers: Carriers::default(),
            changes_from: (!options.hold_changes).then_some(Instant::ZERO),
            last_id: 0,
            left: Vec::new(),
            lateness: Tally::new(),
            bursts: Tally::new(),
            queue_delays,
            recorder,
            commands,
            wake,
            options,
        })
    }

    /// Runs until a stop command.
    pub(super) fn run(mut self) -> io::Result<EmulatorReport> {
        // Their own descriptors, so that the list can be borrowed for good while devices are read and written.
        let own = |port: &Port| port.device().as_fd().try_clone_to_owned();
        let descriptors: Vec<OwnedFd> = self.ports.iter().map(own).collect::<Result<_, _>>()?;
        let wake = Arc::clone(&self.wake);
        loop {
            let mut watched = vec![PollFd::new(&*wake, PollFlags::IN)];
            let alive: Vec<usize> = (0..self.ports.len()).filter(|&n| self.ports[n].failure.is_none()).collect();
            watched.extend(alive.iter().map(|&port| PollFd::new(&descriptors[port], PollFlags::IN)));
            // Until the set of devices changes.
            loop {
                self.advance(self.clock.now());
                self.record_losses();
                match rustix::event::poll(&mut watched, self.timeout().as_ref()) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                    Ok(_) => {}
                    Err(error) => return Err(error.into()),
                }
                let mut failed = false;
                for (slot, &port) in alive.iter().enumerate() {
                    if !watched[slot + 1].revents().is_empty() {
                        failed |= self.read(port);
                    }
                }
                if !watched[0].revents().is_empty() && self.obey() {
                    let mut report = self.report();
                    report.capture = self.recorder.map(Recorder::finish);
                    return Ok(report);
                }
                if failed {
                    break;
                }
            }
        }
    }

    /// Time to sleep: until shortly before the next event. `None` means until a device is ready.
    fn timeout(&mut self) -> Option<Timespec> {
        let Some((due, _)) = self.next_turn() else {
            self.note_queue_delays();
            return None;
        };
        let now = self.clock.now();
        self.spin.watch(now, cpu_time);
        let left = due.since(now).saturating_sub(self.spin.span());
        if left > IDLE {
            self.note_queue_delays();
        }
        let (seconds, nanos) = (left.as_nanos() / 1_000_000_000, left.as_nanos() % 1_000_000_000);
        Some(Timespec { tv_sec: seconds.try_into().unwrap_or(i64::MAX), tv_nsec: nanos as _ })
    }

    #[inline]
    fn next_turn(&self) -> Option<(Instant, Turn)> {
        // Simultaneous events happen in the simulator's order.
        let mut next = (self.topology.network.next_time().unwrap_or(Instant::MAX), Turn::Network);
        if self.passage.deadline() < next.0 {
            next = (self.passage.deadline(), Turn::Middlebox);
        }
        if let Some(at) = self.next_change()
            && at < next.0
        {
            next = (at, Turn::Change);
        }
        (next.0 != Instant::MAX).then_some(next)
    }

    fn next_change(&self) -> Option<Instant> {
        Some(self.changes_from? + self.changes.get(self.changed)?.at)
    }

    /// Processes all events due at `now`, each as if on time.
    fn advance(&mut self, now: Instant) {
        for _ in 0..DELIVERIES {
            let Some((at, turn)) = self.next_turn().filter(|(at, _)| *at <= now) else {
                return;
            };
            match turn {
                Turn::Network => {
                    if let Some(Output::Delivery(delivery)) = self.topology.network.poll(at) {
                        self.arrive(delivery);
                    }
                }
                Turn::Middlebox => self.wake_middleboxes(at),
                Turn::Change => self.change(at),
            }
        }
    }

    /// Reads some packets from a device; true if it has failed for good.
    fn read(&mut self, number: usize) -> bool {
        let mut burst = 0;
        let failed = loop {
            if burst == READS {
                break false;
            }
            match self.ports[number].receive(&mut self.buffer) {
                Read::Empty => break false,
                Read::Failed => break true,
                Read::Packet(length) => {
                    burst += 1;
                    let now = self.clock.now();
                    self.advance(now);
                    self.enter(now, number, length);
                }
            }
        };
        if burst > 0 {
            self.bursts.add(burst);
        }
        failed
    }

    /// The packet in the buffer has been read from a device.
    fn enter(&mut self, now: Instant, number: usize, length: usize) {
        let port = &mut self.ports[number];
        let packet = &self.buffer[..length];
        match scope(packet) {
            Some(Scope::Beyond) => {}
            Some(Scope::Link) => {
                port.link_local += 1;
                return;
            }
            None => {
                port.not_ip += 1;
                return;
            }
        }
        let (path, end, direction) = (port.path, port.end, port.outward());
        let packet = self.pool.packet(packet, now);
        let id = self.next_id();
        if let Some(recorder) = &mut self.recorder {
            recorder.tell(Sighting::Sent(Sight { id, path, end, at: now, bytes: packet.bytes().into() }));
        }
        self.witness(|it| it.on_sent(Glimpse { id, path, end, at: now, bytes: packet.bytes() }));
        if self.passage.is_free(path, end) {
            self.send_on_links(now, path, direction, packet, id);
        } else {
            self.pass_middleboxes(now, path, end, direction, packet, id);
        }
    }

    fn next_id(&mut self) -> PacketId {
        // After 2³² packets numbers begin again: by then the first ones have long arrived.
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        PacketId(self.last_id)
    }

    fn send_on_links(&mut self, now: Instant, path: usize, direction: Direction, packet: Packet, id: PacketId) {
        let route = self.topology.route(path, direction);
        let size = Bytes::new(packet.bytes().len() as u64);
        self.topology.network.send(now, route, packet, size, u64::from(id.0));
    }

    /// A packet comes out of the links.
    fn arrive(&mut self, delivery: Delivery<Packet>) {
        let Delivery { at, route, mut packet, corrupted, tag, .. } = delivery;
        let (path, direction) = self.topology.way(route);
        let end = receiver(direction);
        let id = PacketId(tag as u32);
        if corrupted {
            // Middleboxes would not repair it: the host's checksum discards their output all the same.
            if damage(packet.bytes_mut(), &mut self.chance) {
                self.hand_over(at, path, end, packet, (id, true));
            } else {
                self.ports[port_of(path, end)].damaged_and_dropped += 1;
                self.record_end(id, path, end, Ending::Damaged);
            }
        } else if self.passage.is_free(path, end) {
            self.hand_over(at, path, end, packet, (id, false));
        } else {
            self.pass_middleboxes(at, path, end, direction, packet, id);
        }
    }

    /// A packet reaches the device of a host.
    fn hand_over(&mut self, due: Instant, path: usize, end: End, packet: Packet, (id, damaged): (PacketId, bool)) {
        let now = self.clock.now();
        self.lateness.add_duration(now.since(due));
        let taken = self.ports[port_of(path, end)].send(packet.bytes(), now.since(packet.entered));
        if !taken {
            return self.record_end(id, path, end, Ending::Undelivered);
        }
        if let Some(recorder) = &mut self.recorder {
            let sight = Sight { id, path, end, at: now, bytes: packet.bytes().into() };
            recorder.tell(Sighting::Received(sight, damaged));
        }
        // The host discards a damaged packet by its checksum.
        self.witness(|it| match damaged {
            true => it.on_ended(id),
            false => it.on_received(Glimpse { id, path, end, at: now, bytes: packet.bytes() }),
        });
    }

    fn record_end(&mut self, id: PacketId, path: usize, end: End, why: Ending) {
        if let Some(recorder) = &mut self.recorder {
            recorder.tell(Sighting::Ended { id, path, end, why });
        }
        self.witness(|it| it.on_ended(id));
    }

    /// Tells recorder and witness what links have dropped.
    fn record_losses(&mut self) {
        if self.recorder.is_none() && self.options.witness.is_none() {
            return;
        }
        while let Some(drop) = self.topology.network.poll_drop() {
            let id = PacketId(drop.tag as u32);
            if let Some(recorder) = &mut self.recorder {
                recorder.tell(Sighting::Lost { id, link: drop.link.index(), cause: drop.cause });
            }
            self.witness(|it| it.on_lost(id));
        }
    }

    /// Tells the witness, if there is one. Its lock is free while the emulator runs, unless a reader looks in between.
    #[inline]
    fn witness(&self, tell: impl FnOnce(&mut dyn Witness)) {
        if let Some(witness) = &self.options.witness {
            tell(&mut *witness.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn pass_middleboxes(
        &mut self,
        now: Instant,
        path: usize,
        end: End,
        direction: Direction,
        packet: Packet,
        id: PacketId,
    ) {
        let mut left = std::mem::take(&mut self.left);
        self.passage.pass(now, (path, end), (direction, packet, id), &mut left);
        if !left.iter().any(|left| left.id == id) {
            self.record_end(id, path, end, Ending::Kept);
        }
        self.leave_middleboxes(now, path, end, left);
    }

    #[cold]
    fn wake_middleboxes(&mut self, now: Instant) {
        for path in 0..self.topology.paths() {
            for end in [End::Client, End::Server] {
                let mut left = std::mem::take(&mut self.left);
                self.passage.wake(now, path, end, &mut left);
                self.leave_middleboxes(now, path, end, left);
            }
        }
    }

    /// Hands what has left the boxes to the host on one side or to the links on the other.
    fn leave_middleboxes(&mut self, now: Instant, path: usize, end: End, mut left: Vec<Left>) {
        for Left { direction, packet, id } in left.drain(..) {
            if receiver(direction) == end {
                self.hand_over(now, path, end, packet, (id, false));
            } else {
                self.send_on_links(now, path, direction, packet, id);
            }
        }
        self.left = left;
    }

    /// Makes the next change.
    #[cold]
    fn change(&mut self, at: Instant) {
        let Scheduled { links, change, shown, .. } = &self.changes[self.changed];
        self.changed += 1;
        let change = match (change, self.changes_from) {
            (Change::Trace(trace), Some(begun)) => Change::Trace(Arc::new(trace.begun_at(begun))),
            (other, _) => other.clone(),
        };
        for &link in links {
            self.topology.apply(at, link, &change);
        }
        let shown = *shown;
        self.show_carrier(&change, shown);
    }

    fn show_carrier(&mut self, change: &Change, path: Option<usize>) {
        if let Some(path) = path.filter(|_| self.options.show_carrier)
            && let Some(up) = self.carriers.after(path, change)
            && let Err(error) = self.ports[port_of(path, End::Client)].set_carrier(up)
        {
            tracing::warn!(path, %error, "the interface does not show that its path is down");
        }
    }

    /// Executes the handle's commands; returns true for a stop.
    #[cold]
    fn obey(&mut self) -> bool {
        let mut counter = [0; 8];
        // It was readable, and is only read here.
        let _ = rustix::io::read(&*self.wake, &mut counter);
        loop {
            match self.commands.try_recv() {
                Ok(Command::Report(answer)) => {
                    // Fails only if the handle was dropped.
                    let _ = answer.send(self.report());
                }
                Ok(Command::Begin) => {
                    let at = *self.changes_from.get_or_insert(self.clock.now());
                    self.witness(|it| it.on_begin(at));
                }
                Ok(Command::Change { path, affected, change, answer }) => {
                    let now = self.clock.now();
                    let links = self.topology.affected(&path, affected);
                    for &link in links.iter().flatten() {
                        self.topology.apply(now, link, &change);
                    }
                    self.show_carrier(&change, self.topology.path_named(&path));
                    let _ = answer.send(links.is_some());
                }
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return true,
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    fn note_queue_delays(&mut self) {
        for link in self.topology.network.links() {
            let tally = &mut self.queue_delays[link.index()];
            self.topology.network.drain_queue_delays(link).for_each(|delay| tally.add_duration(delay));
        }
    }

    fn report(&mut self) -> EmulatorReport {
        let now = self.clock.now();
        self.advance(now);
        let stats = self.topology.link_outcomes(now);
        self.note_queue_delays();
        let links = stats.into_iter().zip(&self.queue_delays).map(|(link, tally)| LinkReport {
            name: link.name,
            stats: link.stats,
            queue_delay: tally.durations(),
        });
        let mut report = EmulatorReport {
            elapsed: now.since(Instant::ZERO),
            links: links.collect(),
            paths: Vec::new(),
            middleboxes: self.passage.outcomes(),
            lateness: self.lateness.durations(),
            bursts: self.bursts.numbers(),
            scheduling: self.scheduling.clone(),
            cpu: cpu_time(),
            capture: None,
            validity: Validity::Valid,
        };
        for path in 0..self.topology.paths() {
            let mut traffic = PerDirection::<Traffic>::default();
            let mut failures = Vec::new();
            for end in [End::Client, End::Server] {
                let port = &mut self.ports[port_of(path, end)];
                let out = port.outward();
                port.add_sent(traffic.of_mut(out));
                port.add_received(traffic.of_mut(out.reversed()));
                failures.extend(port.failure.clone());
            }
            report.paths.push(PathReport { name: self.topology.path_name(path).to_owned(), traffic, failures });
        }
        report.validity = report.judge(&self.options.bounds);
        report
    }
}

/// The end at which packets arrive that travel this way.
const fn receiver(direction: Direction) -> End {
    match direction {
        Direction::Down => End::Client,
        Direction::Up => End::Server,
    }
}

const fn port_of(path: usize, end: End) -> usize {
    2 * path + end as usize
}

/// Processor time of the calling thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec as u64) + Duration::from_nanos(time.tv_nsec as u64)
}

/// Packets read from one device before the next has its turn.
const READS: u64 = 32;
/// Things done before the next packet is read.
const DELIVERIES: usize = 64;
/// A sleep so long leaves time for book-keeping.
const IDLE: Duration = Duration::from_micros(500);
