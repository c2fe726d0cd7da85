//! Decisions of a run's schedulers as they were returned, before the engine checked them.

use anabranch_engine::{Factory, Switch};
use anabranch_policy::registry::Built;
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, Event, View};
use anabranch_sim::{Host, Spec, TimedSwitch};
use anabranch_units::{Bytes, Instant, Seed};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A decision of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Host whose data it is about.
    pub host: Host,
    /// Connection: number of connections of that host whose scheduler was made earlier. A switch of the scheduler makes
    /// another.
    pub connection: usize,
    /// Time of the call.
    pub at: Instant,
    /// The decision.
    pub decision: Decision,
    /// Bytes that no subflow had sent.
    pub unsent: Bytes,
    /// Part of `unsent` that the peer's window admitted.
    pub sendable: Bytes,
    /// Distance in bytes from the first unacknowledged byte to the beginning of a copy; `None` for a copy that begins
    /// before it.
    pub copy_from: Option<u64>,
}

/// Decisions of schedulers, in the order of the calls.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    made: BTreeMap<Host, usize>,
    answers: Vec<Answer>,
}

impl Answers {
    /// Wraps all schedulers of `spec`. They decide as before.
    pub(crate) fn note(&self, spec: &mut Spec) {
        for (host, of) in [(Host::Client, &mut spec.client), (Host::Server, &mut spec.server)] {
            of.config.policies.scheduler = self.around(host, &of.config.policies.scheduler);
        }
        let switches = std::mem::take(&mut spec.switches);
        spec.switches = switches.into_iter().flat_map(|timed| self.around_switch(timed)).collect();
    }

    /// Splits a switch of both hosts into one for each.
    fn around_switch(&self, timed: TimedSwitch) -> Vec<TimedSwitch> {
        let Switch::Scheduler(factory) = &timed.switch else { return vec![timed] };
        let hosts = timed.host.map_or_else(|| vec![Host::Client, Host::Server], |host| vec![host]);
        let switch = |host| Switch::Scheduler(self.around(host, factory));
        hosts.into_iter().map(|host| TimedSwitch { host: Some(host), switch: switch(host), ..timed.clone() }).collect()
    }

    fn around(&self, host: Host, factory: &Factory<dyn Scheduler>) -> Factory<dyn Scheduler> {
        let (answers, factory) = (self.clone(), Arc::clone(factory));
        Arc::new(move || {
            let connection = answers.with(|noted| {
                let made = noted.made.entry(host).or_default();
                *made += 1;
                *made - 1
            });
            let Built { policy: scheduler, capabilities } = factory();
            let listening = Listening { host, connection, scheduler, answers: answers.clone() };
            Built { policy: Box::new(listening), capabilities }
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Noted) -> T) -> T {
        // A run that panicked while noting an answer is discarded, so the lock may be poisoned.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes all decisions noted so far.
    pub(crate) fn take(&self) -> Vec<Answer> {
        self.with(|noted| std::mem::take(&mut noted.answers))
    }
}

struct Listening {
    host: Host,
    connection: usize,
    scheduler: Box<dyn Scheduler>,
    answers: Answers,
}

impl Scheduler for Listening {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        let decision = self.scheduler.decide(now, view);
        let copy_from = match decision {
            Decision::Repeat { from, .. } if !from.before(view.data_una) => {
                Some(from.get().wrapping_sub(view.data_una.get()))
            }
            _ => None,
        };
        let (unsent, sendable) = (view.unsent, view.sendable);
        let Listening { host, connection, .. } = *self;
        let answer = Answer { host, connection, at: now, decision, unsent, sendable, copy_from };
        self.answers.with(|noted| noted.answers.push(answer));
        decision
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        self.scheduler.observe(now, event);
    }

    fn seed(&mut self, seed: Seed) {
        self.scheduler.seed(seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keep, run};
    use anabranch_policy::Catalogue;
    use anabranch_scenario::Scenario;

    #[test]
    fn all_answers_are_noted_and_nothing_changes() {
        let set = |scheduler: &str| {
            // A switch of both hosts makes both schedulers anew.
            let switch = format!("change=[{{ at = \"0.2s\", scheduler = \"{scheduler}\" }}]");
            let sets = [format!("host.scheduler={scheduler}"), switch, "run.spread=0s".to_owned()];
            Scenario::load(&Arc::new(Catalogue::default()), "wlan-lte", &sets).expect("it is shipped")
        };
        // Peekaboo draws from its seed, and redundant is asked for copies: the wrapper must forward each method.
        for scheduler in ["min-rtt", "peekaboo", "redundant", "blest"] {
            let scenario = set(scheduler);
            let plain = run(&scenario, 3, &Keep::default()).expect("it runs");
            let heard = run(&scenario, 3, &Keep { answers: true, ..Keep::default() }).expect("it runs");
            assert_eq!(plain.measured.events_digest, heard.measured.events_digest, "{scheduler}");
            assert!(plain.answers.is_none());
            let answers = heard.answers.expect("they were asked for");
            assert!(answers.is_sorted_by_key(|answer| answer.at) && answers.len() > 100, "{scheduler}");
            let servers = answers.iter().filter(|answer| answer.host == Host::Server);
            let (before, after): (Vec<_>, Vec<_>) = servers.partition(|answer| answer.at.as_secs_f64() < 0.2);
            let latest = |of: &[&Answer]| of.iter().map(|answer| answer.connection).max();
            assert!(latest(&before).is_some() && latest(&after) > latest(&before), "{scheduler} was switched");
            let copies = answers.iter().filter(|answer| answer.copy_from.is_some()).count();
            assert_eq!(copies > 0, scheduler == "redundant", "{copies}");
        }
    }
}
