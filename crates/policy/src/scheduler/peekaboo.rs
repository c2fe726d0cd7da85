//! Peekaboo: learns whether to wait for a fast subflow whose window is full, or to send on the next one.
//!
//! H. Wu, Ö. Alay, A. Brunstrom, S. Ferlin, G. Caso. *Peekaboo: Learning-Based Multipath Scheduling for Dynamic
//! Heterogeneous Environments.* IEEE Journal on Selected Areas in Communications 38(10), 2020; and its code, a fork of
//! MP-QUIC.
//!
//! The subflow with the lowest SRTT sends while it has room. When it has none, a linear contextual bandit (LinUCB)
//! scores the two actions, *wait* for it and *send* on the fastest with room, by
//! ```text
//! x = (cwnd_f, inflight_f, window, each per RTT_f; cwnd_s, inflight_s, window, each per RTT_s)       RTT: last sample
//! score_a = θ_aᵀx + α·sqrt(xᵀA_a⁻¹x),    θ_a = A_a⁻¹·b_a
//! ```
//! It follows the scores only with some probability, since paths change: if waiting scores higher it waits with
//! probability 0.7, otherwise it sends with probability 0.9. A wait lasts until the fast subflow has room. The reward
//! of an action is learnt one RTT of its subflow later, `A_a += x·xᵀ`, `b_a += reward·x`, from the discounted goodput
//! of that time:
//! ```text
//! reward = Σ γᵏ · bytes acknowledged at the data level in the k-th eighth of the RTT / RTT
//! ```
//!
//! Where we differ, and reconstructions: all rates are Mbit/s, so that features and reward are of one size (the code:
//! bytes per nanosecond). The code has no bonus for exploration when it decides (`alpha` = 0) and loads earlier
//! results; here all is learnt on the connection itself, beginning with `A = I`, `b = 0`. The eighths and γ are ours:
//! no source says how the discount runs. The inverse is kept up to date by the formula of Sherman and Morrison. At most
//! eight actions are under observation at a time; actions beyond these are not learnt from. Waits for a subflow with
//! nothing in flight are not on offer.

mod bandit;

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Seed, Stream};
use bandit::{Bandit, Features};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "peekaboo",
    "learns whether to wait for the fast subflow or to send on the next one (LinUCB); draws from the seed",
    include_str!("peekaboo.rs"),
    |p| Box::new(Peekaboo::new(p)),
)
.paper("Wu et al. 2020")
.parameters(&[ALPHA.parameter(), DISCOUNT.parameter(), WAIT.parameter(), SEND.parameter()]);

/// A learner for one connection.
pub struct Peekaboo {
    /// α: how much the unknown attracts.
    alpha: f64,
    /// γ.
    discount: f64,
    /// Probability of following the scores, if they say wait and if they say send.
    obeys: [f64; 2],
    chance: Stream,
    bandits: [Bandit; 2],
    /// True if it chose to wait until the fast subflow has room.
    waiting: bool,
    trials: Vec<Trial>,
    /// Time of the last look at the data-level acknowledgments, and their position then.
    seen: Option<(Instant, Dsn)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Wait = 0,
    Send = 1,
}

/// An action under observation.
struct Trial {
    action: Action,
    features: Features,
    /// RTT of its subflow.
    span: Duration,
    end: Instant,
    /// Time at which the present eighth ends, and what a byte counts in it.
    eighth_ends: Instant,
    weight: f64,
    /// Bytes, discounted.
    gained: f64,
}

impl Peekaboo {
    /// Reads the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Peekaboo {
            alpha: ALPHA.of(parameters),
            discount: DISCOUNT.of(parameters),
            obeys: [WAIT.of(parameters), SEND.of(parameters)],
            chance: Seed::default().stream(NAME),
            bandits: [Bandit::new(), Bandit::new()],
            waiting: false,
            trials: Vec::with_capacity(MOST_TRIALS),
            seen: None,
        }
    }

    /// Credits the trials with what was acknowledged since the last look, and learns from those that are over.
    fn watch(&mut self, now: Instant, data_una: Dsn) {
        let (since, una) = self.seen.replace((now, data_una)).unwrap_or((now, data_una));
        let acknowledged = data_una.distance(una).max(0) as f64;
        let (bandits, discount) = (&mut self.bandits, self.discount);
        self.trials.retain_mut(|trial| {
            if now < trial.end {
                while now >= trial.eighth_ends {
                    trial.weight *= discount;
                    trial.eighth_ends += trial.span / 8;
                }
                trial.gained += trial.weight * acknowledged;
                return true;
            }
            if acknowledged > 0.0 {
                // Of what came since the last look, the share that belongs to its time.
                let share = trial.end.since(since).per(now.since(since).max(NANOSECOND));
                trial.gained += trial.weight * share * acknowledged;
            }
            bandits[trial.action as usize].learn(&trial.features, mbps(trial.gained, trial.span));
            false
        });
    }

    /// Chooses when the fast subflow has no room.
    fn choose(&mut self, now: Instant, fast: &SubflowView, second: &SubflowView, window: Bytes) -> Action {
        let x = features(fast, second, window);
        let [wait, send] =
            [Action::Wait, Action::Send].map(|action| self.bandits[action as usize].score(&x, self.alpha));
        let (higher, lower) = if wait > send { (Action::Wait, Action::Send) } else { (Action::Send, Action::Wait) };
        let action = if self.chance.chance(self.obeys[higher as usize]) { higher } else { lower };
        if self.trials.len() < MOST_TRIALS {
            let span = if action == Action::Wait { fast.srtt } else { second.srtt }.max(Duration::from_micros(1));
            self.trials.push(Trial {
                action,
                features: x,
                span,
                end: now + span,
                eighth_ends: now + span / 8,
                weight: 1.0,
                gained: 0.0,
            });
        }
        action
    }
}

impl Scheduler for Peekaboo {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.watch(now, view.data_una);
        let (Some(fast), Some(second)) = (view.fastest(), view.fastest_with_room()) else {
            return Decision::WAIT;
        };
        if fast.id == second.id || !ack_due(fast) {
            self.waiting = false;
            return Decision::send(second.id);
        }
        self.waiting = self.waiting || self.choose(now, fast, second, view.window) == Action::Wait;
        if self.waiting { Decision::WAIT } else { Decision::send(second.id) }
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if *event == Event::SubflowsChanged {
            self.waiting = false;
        }
    }

    fn seed(&mut self, seed: Seed) {
        self.chance = seed.stream(NAME);
    }
}

fn features(fast: &SubflowView, second: &SubflowView, window: Bytes) -> Features {
    let three = |subflow: &SubflowView| {
        let per_rtt = |amount: Bytes| mbps(amount.as_f64(), subflow.rtt_last);
        [per_rtt(subflow.cwnd), per_rtt(subflow.in_flight), per_rtt(window)]
    };
    let ([a, b, c], [d, e, f]) = (three(fast), three(second));
    [a, b, c, d, e, f]
}

/// Rate of these bytes in that time.
fn mbps(bytes: f64, span: Duration) -> f64 {
    8e3 * bytes / span.max(Duration::from_micros(1)).as_nanos() as f64
}

const NAME: &str = "peekaboo";
const NANOSECOND: Duration = Duration::from_nanos(1);
/// More observed at once would cost more per decision and teach little: they overlap.
const MOST_TRIALS: usize = 8;

const ALPHA: Number = number("alpha", "α: weight of exploration (the code: 0)", 1.0, 0.0..=1000.0);
const DISCOUNT: Number =
    number("discount", "γ: discount of a byte for each eighth of the RTT that it comes later", 0.9, 0.0..=1.0);
const WAIT: Number = number("wait", "probability of waiting if that scores higher", 0.7, 0.0..=1.0);
const SEND: Number = number("send", "probability of sending if that scores higher", 0.9, 0.0..=1.0);

#[cfg(test)]
mod tests;
