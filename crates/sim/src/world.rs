//! The loop of virtual time.
//!
//! The next thing to happen is the earliest of: a packet at a host, an endpoint's timer, a middlebox's timer, a change to a
//! link, an application's timer. What happens at the same time happens in this order, and hosts in the order of their numbers; so
//! specification and seed fix everything.

use crate::address::{SERVICE, address};
use crate::apps::{self, App};
use crate::check::check;
use crate::host;
use crate::stage::{Stage, TransferState};
use crate::{ConnectionOutcome, Host, Observer, Outcome, Spec, SpecError, TimedRestart, TimedSwitch, Workload};
use anabranch_net::{Change, LinkId, Output};
use anabranch_paths::{Carriers, Direction, PathState, TimedChange, Topology};
use anabranch_policy::Truth;
use anabranch_units::Instant;

/// Plays a run.
///
/// # Errors
/// If the specification names what there is not, or holds a number that means nothing.
///
/// # Panics
/// If the engine or the network breaks a promise: a byte lost, repeated or changed, a timer in the past, a packet out of
/// nowhere, an invariant of an endpoint. Those are bugs in us.
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
    /// Applications that the run waits for.
    waited_for: Vec<usize>,
    /// In the order of time.
    changes: Vec<Scheduled<'a>>,
    /// How many of them were made.
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
    /// A host, by its number.
    Restart(usize),
}

/// Who is next.
enum Turn {
    Network,
    Host(usize),
    Middlebox,
    Change,
    App,
}

impl<'a> World<'a> {
    fn new(spec: &'a Spec, observer: Option<&'a mut dyn Observer>) -> Result<Self, SpecError> {
        let topology = Topology::new(&spec.network, spec.seed)?;
        check(spec, &topology)?;
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
            let what = Happening::Restart(usize::from(timed.host == Host::Server));
            Scheduled { at: Instant::ZERO + timed.at, what }
        };
        let (links, policies) = (spec.network.changes.iter().map(change), spec.switches.iter().map(switch));
        let mut changes: Vec<_> = links.chain(policies).chain(spec.restarts.iter().map(restart)).collect();
        changes.sort_by_key(|change| change.at); // Stable: of equal times the first listed comes first.
        let mut stage = Stage::new(spec, topology, hosts, observer);
        for server in stage.hosts.iter_mut().skip(1).step_by(2) {
            server.endpoint.listen(SERVICE);
        }
        let mut apps = apps::all(spec, &mut stage);
        apps.iter_mut().for_each(|app| app.begin(&mut stage));
        let mut world = World {
            spec,
            stage,
            apps,
            waited_for: waited_for(&spec.workloads),
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
    fn play(&mut self, stop: Instant, is_over: impl Fn(&Self) -> bool) -> Result<(), SpecError> {
        let mut standstill = 0;
        let budget = self.spec.budget.unwrap_or(u64::MAX);
        while let Some((at, turn)) = self.next_turn() {
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
            if is_over(self) {
                return Ok(());
            }
        }
        Ok(())
    }

    #[inline]
    fn next_turn(&self) -> Option<(Instant, Turn)> {
        let mut next = (self.stage.topology.network.next_time().unwrap_or(Instant::MAX), Turn::Network);
        for (number, host) in self.stage.hosts.iter().enumerate() {
            if host.deadline < next.0 {
                next = (host.deadline, Turn::Host(number));
            }
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
                // What comes of sending is heard of at once only if something was sent or heard of.
                if !busy || !self.stage.hosts[host].endpoint.has_events() {
                    break;
                }
            }
            self.stage.hosts[host].rest();
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
                for (number, host) in [Host::Client, Host::Server].into_iter().enumerate() {
                    if timed.host.is_none_or(|named| named == host) {
                        self.stage.hosts[number].endpoint.switch(self.stage.now, &timed.switch);
                        self.stage.touch(number);
                    }
                }
                return self.settle();
            }
            &Happening::Restart(host) => return self.restart(host),
        };
        for &link in links {
            self.stage.topology.apply(self.stage.now, link, change);
        }
        if let Some(path) = *shown
            && let Some(up) = self.carriers.after(path, change)
        {
            for client in (0..self.stage.hosts.len()).step_by(2) {
                self.stage.hosts[client].endpoint.set_carrier(self.stage.now, address(client, path), up);
                self.stage.touch(client);
            }
        }
        self.tell_truths();
        self.settle();
    }

    /// A host loses its state and comes back: it listens as before, and sees its interfaces as they are.
    fn restart(&mut self, host: usize) {
        self.stage.restart(host);
        let endpoint = &mut self.stage.hosts[host].endpoint;
        if host.is_multiple_of(2) {
            for path in self.carriers.gone() {
                endpoint.set_carrier(self.stage.now, address(host, path), false);
            }
        } else {
            endpoint.listen(SERVICE);
        }
        self.tell_truths();
        self.settle();
    }

    /// Tells the senders what there is to know of each path, for policies that ask.
    fn tell_truths(&mut self) {
        for path in 0..self.stage.topology.paths() {
            let [up, down] = [Direction::Up, Direction::Down].map(|way| {
                let PathState { rate, delay, loss } = self.stage.topology.state(path, way);
                Some(Truth { rate, delay, loss })
            });
            let client = address(0, path);
            self.stage.hosts[0].endpoint.set_truth(client, None, up);
            for index in 0..self.spec.server.addresses {
                self.stage.hosts[1].endpoint.set_truth(address(1, index), Some(client), down);
            }
        }
    }

    fn transfers_are_through(&self) -> bool {
        self.waited_for.iter().all(|&app| self.apps[app].is_done())
    }

    fn is_finished(&self) -> bool {
        let waited_for = |transfer: &TransferState| self.waited_for.contains(&transfer.report.workload);
        let mut transfers = self.stage.transfers.iter().filter(|transfer| waited_for(transfer));
        let gave_up = self.waited_for.iter().any(|&app| self.apps[app].gave_up());
        self.transfers_are_through() && !gave_up && transfers.all(|transfer| transfer.report.finished.is_some())
    }

    /// When the last transfer was through, or now if one is not.
    fn end(&self) -> Instant {
        if !self.is_finished() {
            return self.stage.now;
        }
        let waited_for = |transfer: &&TransferState| self.waited_for.contains(&transfer.report.workload);
        let transfers = self.stage.transfers.iter().filter(waited_for);
        let pages = self.stage.pages.iter().filter_map(|page| page.finished);
        transfers.filter_map(|transfer| transfer.report.finished).chain(pages).max().unwrap_or(self.stage.now)
    }

    /// Lets connections close; true if nothing is left in the end.
    fn linger(&mut self, spec: &Spec) -> Result<bool, SpecError> {
        let Some(linger) = spec.linger else {
            return Ok(false);
        };
        self.lingering = true;
        self.play(self.stage.now + linger, World::is_quiet)?;
        Ok(self.is_quiet())
    }

    fn is_quiet(&self) -> bool {
        let is_quiet = |host: &host::Host| host.deadline == Instant::MAX && host.endpoint.connections() == 0;
        let passage =
            self.stage.topology.network.next_time().is_none() && self.stage.passage.deadline() == Instant::MAX;
        passage && self.stage.hosts.iter().all(is_quiet)
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
        let counters = [0, 1].map(|host: usize| self.stage.hosts[host].endpoint.counters().clone());
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
            middleboxes: self.stage.passage.outcomes(),
            altered_bytes: self.stage.altered_bytes,
            decisions: self.stage.decisions.into_runs(self.stage.sessions.len()),
            samples: self.stage.sampler.into_samples(),
            events: self.stage.events,
            counters,
        }
    }
}

/// The applications that keep a run going: those whose transfers are measured, or else all.
fn waited_for(workloads: &[Workload]) -> Vec<usize> {
    let background = |workload: &Workload| matches!(workload, Workload::Udp { .. } | Workload::Tcp { .. });
    let all_are = workloads.iter().all(background);
    (0..workloads.len()).filter(|&n| all_are || !background(&workloads[n])).collect()
}

/// So many turns at one instant are a bug: far more than there can be connections with something to do.
const STANDSTILL: u32 = 10_000_000;
