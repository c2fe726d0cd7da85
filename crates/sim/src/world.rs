//! The loop of virtual time.
//!
//! The next thing to happen is the earliest of: a packet at a host, an endpoint's timer, a middlebox's timer, a change
//! to a link, an application's timer. What happens at the same time happens in this order, and hosts in the order of
//! their numbers; so specification and seed fix everything.

use crate::address::{SERVICE, address};
use crate::apps::{self, App};
use crate::check::check;
use crate::host::{self, Side};
use crate::stage::{Stage, TransferState};
use crate::{ConnectionOutcome, Host, Observer, Outcome, Spec, SpecError, TimedRestart, TimedSwitch, Workload};
use anabranch_engine::Counters;
use anabranch_net::{Change, LinkId, Output};
use anabranch_paths::{Carriers, Direction, PathState, TimedChange, Topology};
use anabranch_policy::Truth;
use anabranch_units::Instant;

/// Plays a run.
///
/// # Errors
/// If the specification refers to an unknown item, or a value is out of range.
///
/// # Panics
/// If the engine or the network breaks a promise: a byte lost, repeated or changed, a timer in the past, a packet out
/// of nowhere, an invariant of an endpoint. Those are bugs in us.
pub fn run(spec: &Spec) -> Result<Outcome, SpecError> {
    play(spec, None)
}

/// The same while someone watches.
///
/// # Errors
/// As [`run`]; the observer then sees nothing.
///
/// # Panics
/// As [`run`].
pub fn run_observed(spec: &Spec, observer: &mut dyn Observer) -> Result<Outcome, SpecError> {
    play(spec, Some(observer))
}

fn play<'a>(spec: &'a Spec, observer: Option<&'a mut dyn Observer>) -> Result<Outcome, SpecError> {
    let mut world = World::new(spec, observer)?;
    world.play(Instant::ZERO + spec.stop, |world| world.through)?;
    let (end, finished) = (world.end(), world.is_finished());
    world.stage.take_last_sample();
    let sessions = 0..world.stage.sessions.len();
    let mut outcomes: Vec<_> = sessions.map(|session| world.stage.final_outcome(session)).collect();
    let quiet = world.linger(spec)?;
    for (outcome, session) in outcomes.iter_mut().zip(&world.stage.sessions) {
        outcome.multipath &= !session.fell_back;
    }
    world.verify();
    Ok(world.into_outcome(outcomes, end, finished, quiet))
}

struct World<'a> {
    spec: &'a Spec,
    stage: Stage<'a>,
    apps: Vec<Box<dyn App>>,
    /// True for each workload that the run waits for.
    awaited: Vec<bool>,
    /// The applications of those workloads.
    awaited_apps: Vec<usize>,
    /// Number of these known to be done, from the front.
    done: usize,
    /// Changes in the order of time.
    changes: Vec<Scheduled<'a>>,
    /// Number of changes made.
    changed: usize,
    carriers: Carriers,
    /// Timers of applications are off.
    lingering: bool,
    /// The transfers that the run waits for are through. Only a call of an application changes that.
    through: bool,
    /// Events so far.
    events: u64,
}

struct Scheduled<'a> {
    at: Instant,
    what: Happening<'a>,
}

enum Happening<'a> {
    Change {
        links: Vec<LinkId>,
        change: &'a Change,
        /// The path whose interface at the client shows it.
        shown: Option<usize>,
    },
    Switch(&'a TimedSwitch),
    /// The host on this side, of each client.
    Restart(Side),
}

/// Owner of the next turn.
enum Turn {
    Network,
    Host(usize),
    Middlebox,
    Change,
    App,
}

impl<'a> World<'a> {
    fn new(spec: &'a Spec, observer: Option<&'a mut dyn Observer>) -> Result<Self, SpecError> {
        check(spec)?;
        let topology = Topology::new(&spec.network, spec.seed, spec.clients)?;
        let hosts = host::all(spec, &topology);
        let change = |timed: &'a TimedChange| {
            let links = topology.affected(&timed.path, timed.affected).unwrap_or_default();
            let shown = topology.path_named(&timed.path).filter(|_| timed.notify);
            let what = Happening::Change { links, change: &timed.change, shown };
            Scheduled { at: Instant::ZERO + timed.at, what }
        };
        let switch =
            |timed: &'a TimedSwitch| Scheduled { at: Instant::ZERO + timed.at, what: Happening::Switch(timed) };
        let restart = |timed: &TimedRestart| {
            let side = if timed.host == Host::Server { Side::Server } else { Side::Client };
            let what = Happening::Restart(side);
            Scheduled { at: Instant::ZERO + timed.at, what }
        };
        let (links, policies) = (spec.network.changes.iter().map(change), spec.switches.iter().map(switch));
        let mut changes: Vec<_> = links.chain(policies).chain(spec.restarts.iter().map(restart)).collect();
        changes.sort_by_key(|change| change.at); // Stable: of equal times the first listed comes first.
        let mut stage = Stage::new(spec, topology, hosts, observer);
        for server in stage.hosts.iter_mut().filter(|host| host.place.side == Side::Server) {
            server.endpoint.listen(SERVICE);
        }
        let mut apps = apps::all(spec, &mut stage);
        apps.iter_mut().for_each(|app| app.begin(&mut stage));
        let awaited = awaited(&spec.workloads);
        let mut world = World {
            spec,
            stage,
            awaited_apps: (0..apps.len()).filter(|app| awaited[app % awaited.len()]).collect(),
            awaited,
            done: 0,
            apps,
            changes,
            changed: 0,
            carriers: Carriers::default(),
            lingering: false,
            through: false,
            events: 0,
        };
        world.through = world.transfers_are_through();
        world.tell_truths();
        Ok(world)
    }

    /// Runs until `is_over`, or nothing more happens, or `stop`.
    ///
    /// # Errors
    /// If that takes more events than the specification allows.
    fn play(&mut self, stop: Instant, is_over: impl Fn(&mut Self) -> bool) -> Result<(), SpecError> {
        let mut standstill = 0;
        let budget = self.spec.budget.unwrap_or(u64::MAX);
        while let Some((at, turn)) = self.next_turn() {
            // A sample shows the state before the event at its time, so that looking changes nothing that the event
            // does.
            if !self.lingering && self.stage.sampler.next_time().is_some_and(|sample| sample <= at) {
                self.stage.take_samples(at.min(stop));
            }
            if at > stop {
                self.stage.now = stop;
                return Ok(());
            }
            if self.events == budget {
                let at = self.stage.now.since(Instant::ZERO);
                return Err(SpecError::Budget { events: budget, at, stop: self.spec.stop });
            }
            self.events += 1;
            assert!(at >= self.stage.now, "no timer is in the past: {at} at {}", self.stage.now);
            standstill = if at == self.stage.now { standstill + 1 } else { 0 };
            assert!(standstill < STANDSTILL, "time goes on: something asks to be woken at {at} without end");
            self.stage.now = at;
            match turn {
                Turn::Network => {
                    while let Some(output) = self.stage.topology.network.poll(at) {
                        match output {
                            Output::Delivery(delivery) => self.stage.deliver(delivery),
                            Output::Departure(departure) => self.stage.depart(departure),
                        }
                        // Hosts answer each packet before the next arrives, as they would if both had not come at the
                        // same instant.
                        self.settle();
                    }
                }
                Turn::Host(host) => {
                    self.stage.hosts[host].endpoint.handle_timeout(at);
                    self.stage.touch(host);
                    self.settle();
                }
                Turn::Middlebox => {
                    self.stage.wake_middleboxes();
                    self.settle();
                }
                Turn::Change => self.change(),
                Turn::App => {
                    if let Some((app, token)) = self.stage.pop_timer() {
                        self.apps[app].on_timer(token, &mut self.stage);
                        self.through = self.transfers_are_through();
                        self.settle();
                    }
                }
            }
            self.stage.report_losses();
            self.stage.report_states();
            if is_over(self) || self.stage.is_enough() {
                return Ok(());
            }
        }
        Ok(())
    }

    #[inline]
    fn next_turn(&self) -> Option<(Instant, Turn)> {
        let mut next = (self.stage.topology.network.next_time().unwrap_or(Instant::MAX), Turn::Network);
        let (alarm, host) = self.stage.alarms.first();
        if alarm < next.0 {
            next = (alarm, Turn::Host(host));
        }
        let middleboxes = self.stage.passage.deadline();
        if middleboxes < next.0 {
            next = (middleboxes, Turn::Middlebox);
        }
        if let Some(change) = self.changes.get(self.changed)
            && change.at < next.0
        {
            next = (change.at, Turn::Change);
        }
        if !self.lingering
            && let Some(at) = self.stage.next_timer()
            && at < next.0
        {
            next = (at, Turn::App);
        }
        (next.0 != Instant::MAX).then_some(next)
    }

    /// Lets hosts and applications act until none has anything more to do now.
    #[inline]
    fn settle(&mut self) {
        while let Some(host) = self.stage.pop_touched() {
            loop {
                let mut busy = self.stage.drain_events(host);
                while let Some((app, session, news)) = self.stage.pop_news() {
                    self.apps[app].on_news(session, news, &mut self.stage);
                    self.through = self.transfers_are_through();
                }
                busy |= self.stage.transmit(host);
                // Events that sending caused are taken at once. Where the host had neither events nor segments they
                // wait until it is touched again: taking them now would move events of recorded runs.
                if !busy || !self.stage.hosts[host].endpoint.has_events() {
                    break;
                }
            }
            self.stage.rest(host);
            if self.spec.audit {
                let verdict = self.stage.hosts[host].endpoint.check(self.stage.now);
                assert_eq!(verdict, Ok(()), "host {host} keeps its invariants at {}", self.stage.now);
            }
        }
    }

    /// Makes the next change.
    fn change(&mut self) {
        let Scheduled { what, .. } = &self.changes[self.changed];
        self.changed += 1;
        let (links, change, shown) = match what {
            Happening::Change { links, change, shown } => (links, change, shown),
            Happening::Switch(timed) => {
                let clients = 0..self.stage.clients();
                let hosts: Vec<usize> = clients.flat_map(|client| self.stage.under_test(client)).collect();
                for number in hosts {
                    let host = &mut self.stage.hosts[number];
                    if timed.host.is_none_or(|named| named == host.place.role()) {
                        host.endpoint.switch(self.stage.now, &timed.switch);
                        self.stage.touch(number);
                    }
                }
                return self.settle();
            }
            &Happening::Restart(side) => return self.restart(side),
        };
        for &link in links {
            self.stage.topology.apply(self.stage.now, link, change);
        }
        if let Some(path) = *shown
            && let Some(up) = self.carriers.after(path, change)
        {
            let is_client = |host: &usize| self.stage.hosts[*host].place.side == Side::Client;
            let clients: Vec<usize> = (0..self.stage.hosts.len()).filter(is_client).collect();
            for client in clients {
                self.stage.hosts[client].endpoint.set_carrier(self.stage.now, address(client, path), up);
                self.stage.touch(client);
            }
        }
        self.tell_truths();
        self.settle();
    }

    /// The host on this side of each client loses its state and comes back: it listens as before, and sees its
    /// interfaces as they are.
    fn restart(&mut self, side: Side) {
        for client in 0..self.stage.clients() {
            let host = self.stage.under_test(client)[side as usize];
            self.stage.restart(host);
            let endpoint = &mut self.stage.hosts[host].endpoint;
            match side {
                Side::Client => {
                    for path in self.carriers.gone() {
                        endpoint.set_carrier(self.stage.now, address(host, path), false);
                    }
                }
                Side::Server => endpoint.listen(SERVICE),
            }
        }
        self.tell_truths();
        self.settle();
    }

    /// Tells the senders the true state of each path, for policies that ask.
    fn tell_truths(&mut self) {
        for path in 0..self.stage.topology.paths() {
            let [up, down] = [Direction::Up, Direction::Down].map(|way| {
                let PathState { rate, delay, loss } = self.stage.topology.state(path, way);
                Some(Truth { rate, delay, loss })
            });
            let [client, server] = self.stage.under_test(path / self.stage.topology.paths_per_client());
            let there = address(client, self.stage.path_in_spec(path));
            self.stage.hosts[client].endpoint.set_truth(there, None, up);
            for index in 0..self.spec.server.addresses {
                self.stage.hosts[server].endpoint.set_truth(address(server, index), Some(there), down);
            }
        }
    }

    /// Returns true if all applications that the run waits for are done. A done application stays so: it is not asked
    /// again.
    fn transfers_are_through(&mut self) -> bool {
        while let Some(&app) = self.awaited_apps.get(self.done) {
            if !self.apps[app].is_done() {
                return false;
            }
            self.done += 1;
        }
        true
    }

    fn is_finished(&mut self) -> bool {
        let through = self.transfers_are_through();
        let gave_up = self.awaited_apps.iter().any(|&app| self.apps[app].gave_up());
        let awaited = |transfer: &&TransferState| self.awaited[transfer.report.workload];
        let mut transfers = self.stage.transfers.iter().filter(awaited);
        through && !gave_up && transfers.all(|transfer| transfer.report.finished.is_some())
    }

    /// Returns the time at which the last transfer finished, or now if one has not.
    fn end(&mut self) -> Instant {
        if !self.is_finished() {
            return self.stage.now;
        }
        let awaited = |transfer: &&TransferState| self.awaited[transfer.report.workload];
        let transfers = self.stage.transfers.iter().filter(awaited);
        let pages = self.stage.pages.iter().filter_map(|page| page.finished);
        transfers.filter_map(|transfer| transfer.report.finished).chain(pages).max().unwrap_or(self.stage.now)
    }

    /// Lets connections close; true if nothing is left in the end.
    fn linger(&mut self, spec: &Spec) -> Result<bool, SpecError> {
        let Some(linger) = spec.linger else {
            return Ok(false);
        };
        self.lingering = true;
        self.play(self.stage.now + linger, |world| world.is_quiet())?;
        Ok(self.is_quiet())
    }

    fn is_quiet(&self) -> bool {
        self.stage.topology.network.next_time().is_none()
            && self.stage.passage.deadline() == Instant::MAX
            && self.stage.alarms.first().0 == Instant::MAX
            && self.stage.hosts.iter().all(|host| host.endpoint.connection_count() == 0)
    }

    /// Checks at the end what is too slow to check all along.
    fn verify(&self) {
        let balance = self.stage.topology.network.check_conservation();
        assert!(balance.is_ok(), "no packet appears or vanishes: {balance:?}");
        for (number, host) in self.stage.hosts.iter().enumerate() {
            let verdict = host.endpoint.check(self.stage.now);
            assert_eq!(verdict, Ok(()), "host {number} keeps its invariants at the end");
        }
    }

    fn into_outcome(
        mut self,
        connections: Vec<ConnectionOutcome>,
        end: Instant,
        finished: bool,
        quiet: bool,
    ) -> Outcome {
        let mut counters = [Counters::default(), Counters::default()];
        for client in 0..self.stage.clients() {
            for (sum, host) in counters.iter_mut().zip(self.stage.under_test(client)) {
                *sum += self.stage.hosts[host].endpoint.counters();
            }
        }
        let paths_per_client = self.stage.topology.paths_per_client();
        let links = self.stage.topology.link_outcomes(self.stage.now);
        Outcome {
            finished,
            end,
            quiet,
            transfers: (0..self.stage.transfers.len()).map(|transfer| self.stage.transfer_outcome(transfer)).collect(),
            connections,
            links,
            udp: self.stage.udp,
            pages: self.stage.pages,
            digest: self.stage.digest.value(),
            packets: self.stage.packets,
            corrupted: self.stage.corrupted,
            middleboxes: self.stage.passage.outcomes(paths_per_client),
            altered_bytes: self.stage.altered_bytes,
            phases: self.stage.phases,
            decisions: self.stage.decisions.into_runs(self.stage.sessions.len()),
            samples: self.stage.sampler.into_samples(),
            events: self.stage.events,
            counters,
        }
    }
}

/// Returns for each workload whether it keeps a run going: those whose transfers are measured, or else all.
fn awaited(workloads: &[Workload]) -> Vec<bool> {
    let background = |workload: &Workload| matches!(workload, Workload::Udp { .. } | Workload::Tcp { .. });
    let all_are = workloads.iter().all(background);
    workloads.iter().map(|workload| all_are || !background(workload)).collect()
}

/// Number of turns at one instant that proves a bug: far more than there can be connections with work to do.
const STANDSTILL: u32 = 10_000_000;
