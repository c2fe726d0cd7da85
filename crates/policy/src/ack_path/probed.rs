//! The path with the lowest latency, by probes: every pure ACK travels there, and changes over when another is better
//! by λ.
//!
//! J. Cheng, J. Hwang, A. Tang. *Acceleration of Multipath TCP by Letting ACKs Take the Shortest Path.* IEEE Sarnoff
//! Symposium 2019 (section IV-B). Every τ the receiver sends several ICMP echo requests on each path; with `R_i` the
//! round trip on path i and m the present path
//! ```text
//! m := argmin_i R_i    if    R_m − min_i R_i > λ
//! ```
//!
//! Reconstructed (A-ACK-PROBE), since the paper states neither number, statistic nor λ: three probes, of which the
//! shortest round trip counts; λ is the larger of 2 ms and 10 % of `R_m`; τ is 200 ms, the shorter of the paper's two.
//! A path whose probes are all lost is down: it is left at once, regardless of λ, and not used before it answers again.
//!
//! A round is judged as soon as its replies must be there, so that a failure is found within τ, as the paper has it;
//! with `judged_late` only as the next one is sent ("updated per time interval τ"), within 2τ.
//!
//! Where we differ: before the first round every ACK stays on its own path. A path without a result in a round keeps
//! its latest value. With no path that answers, ACKs stay on their own. Round trips of probes are both directions
//! together; the paper measures so as well, and where the directions differ the choice may be wrong.

use super::{AckPath, AckRoute, Entry, Probe, Probing};
use crate::registry::{Flag, Number, Params, flag, number};
use anabranch_units::{Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "probed",
    "all pure ACKs on the path with the lowest latency by probes, between hosts with ack-rewrite",
    include_str!("probed.rs"),
    |parameters| Box::new(Probed::new(parameters)),
)
.paper("Cheng 2019")
.parameters(&[
    TAU.parameter(),
    LAMBDA.parameter(),
    LAMBDA_PERCENT.parameter(),
    PROBES.parameter(),
    JUDGED_LATE.parameter(),
]);

/// The path that probes found fastest.
#[derive(Clone, Debug)]
pub struct Probed {
    probing: Probing,
    /// λ, as a time and as a part of the present path's round trip: the larger counts.
    least_gain: Duration,
    least_share: f64,
    /// The latest round trip of each path that is up.
    known: Vec<(SubflowId, Duration)>,
    current: Option<SubflowId>,
}

const TAU: Number = number("tau", "time between two rounds of probes (τ)", 200.0, 10.0..=60_000.0).in_unit("ms");
const LAMBDA: Number =
    number("lambda", "least gain for a change to another path (λ)", 2.0, 0.0..=60_000.0).in_unit("ms");
const LAMBDA_PERCENT: Number =
    number("lambda_percent", "λ as a part of the present path's round trip; the larger counts", 10.0, 0.0..=100.0)
        .in_unit("%");
const PROBES: Number = number("probes", "probes on each path in a round, of which the fastest counts", 3.0, 1.0..=16.0);
const JUDGED_LATE: Flag =
    flag("judged_late", "a round is judged as the next is sent, not as soon as its replies must be there", false);

impl Probed {
    /// Reads `tau`, `lambda`, `lambda_percent`, `probes` and `judged_late` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        let millis = |number: Number| Duration::from_millis(1).mul_f64(number.of(parameters));
        Probed {
            probing: Probing {
                interval: millis(TAU),
                probes: PROBES.of(parameters) as u32,
                judged_late: JUDGED_LATE.of(parameters),
            },
            least_gain: millis(LAMBDA),
            least_share: LAMBDA_PERCENT.of(parameters) / 100.0,
            known: Vec::new(),
            current: None,
        }
    }

    fn value(&self, id: SubflowId) -> Option<Duration> {
        self.known.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    fn learn(&mut self, probe: &Probe) {
        match (self.known.iter_mut().find(|(id, _)| *id == probe.id), probe.best) {
            (Some((_, value)), Some(best)) => *value = best,
            (None, Some(best)) => self.known.push((probe.id, best)),
            (_, None) => {}
        }
    }
}

impl AckPath for Probed {
    fn path(&mut self, _now: Instant, of: SubflowId, routes: &[AckRoute]) -> SubflowId {
        self.current.filter(|current| routes.iter().any(|route| route.id == *current)).unwrap_or(of)
    }

    fn probing(&self) -> Option<Probing> {
        Some(self.probing)
    }

    fn observe(&mut self, _now: Instant, round: &[Probe]) {
        round.iter().for_each(|probe| self.learn(probe));
        // A path that is down, or no subflow any more, has no value.
        self.known.retain(|(known, _)| round.iter().any(|probe| probe.id == *known && !probe.down));
        let best = self.known.iter().map(|(id, value)| (*value, *id)).min();
        let present = self.current.and_then(|current| self.value(current));
        self.current = match (best, present) {
            (None, _) => None,
            (Some((_, best)), None) => Some(best),
            (Some((value, best)), Some(present)) => {
                let lambda = self.least_gain.max(present.mul_f64(self.least_share));
                if value + lambda < present { Some(best) } else { self.current }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::ACK_PATHS;
    use super::super::testing::*;
    use super::*;
    use crate::registry::{Value, find};

    /// A round trip in milliseconds, no news, or all lost.
    #[derive(Clone, Copy)]
    enum Seen {
        Ms(u64),
        Nothing,
        Lost,
    }
    use Seen::{Lost, Ms, Nothing};

    fn probed(given: &[(&str, f64)]) -> Box<dyn AckPath> {
        let entry = find(ACK_PATHS, "ACK path", "probed").unwrap();
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), Value::Number(*value))).collect();
        entry.build(&entry.params(&given).unwrap()).policy
    }

    /// Returns the path of an ACK of the third subflow after each of these rounds of the first two.
    fn trace(policy: &mut dyn AckPath, rounds: &[[Seen; 2]]) -> Vec<SubflowId> {
        let routes = [route(FIRST, None), route(SECOND, None), route(THIRD, None)];
        let decide = |round: &[Seen; 2]| {
            let probe = |id, seen| match seen {
                Ms(n) => Probe { id, best: Some(ms(n)), down: false },
                Nothing => Probe { id, best: None, down: false },
                Lost => Probe { id, best: None, down: true },
            };
            policy.observe(Instant::ZERO, &[probe(FIRST, round[0]), probe(SECOND, round[1])]);
            policy.path(Instant::ZERO, THIRD, &routes)
        };
        rounds.iter().map(decide).collect()
    }

    #[test]
    fn before_the_first_round_an_ack_keeps_its_path() {
        assert_eq!(probed(&[]).path(Instant::ZERO, SECOND, &[route(FIRST, Some(1)), route(SECOND, Some(9))]), SECOND);
        assert_eq!(probed(&[]).probing(), Some(Probing { interval: ms(200), probes: 3, judged_late: false }));
    }

    /// λ is max(2 ms, 10 % of the present path's round trip).
    #[test]
    fn changes_over_only_for_more_than_lambda() {
        let mut policy = probed(&[]);
        let rounds = [
            [Ms(20), Ms(40)],
            [Ms(40), Ms(37)], // 3 ms better, and λ is 4 ms.
            [Ms(40), Ms(36)], // 4 ms: not more than λ.
            [Ms(40), Ms(35)], // 5 ms.
            [Ms(34), Ms(35)], // And not back for 1 ms.
            [Ms(10), Ms(11)], // λ is 2 ms.
            [Ms(8), Ms(11)],  // 3 ms.
            [Nothing, Ms(7)], // The first still counts as 8 ms.
            [Nothing, Ms(5)],
        ];
        let expected = [FIRST, FIRST, FIRST, SECOND, SECOND, SECOND, FIRST, FIRST, SECOND];
        assert_eq!(trace(policy.as_mut(), &rounds), expected);
    }

    #[test]
    fn a_dead_path_is_left_at_once_and_gone_back_to_when_it_answers() {
        let mut policy = probed(&[("lambda", 1000.0)]);
        let rounds =
            [[Ms(20), Ms(40)], [Lost, Ms(40)], [Lost, Nothing], [Ms(20), Ms(40)], [Lost, Lost], [Ms(20), Lost]];
        // λ = 1 s keeps it on the second after the first is back; with both down each ACK goes its own way.
        assert_eq!(trace(policy.as_mut(), &rounds), [FIRST, SECOND, SECOND, SECOND, THIRD, FIRST]);
    }

    #[test]
    fn lambda_is_the_larger_of_its_two_forms() {
        let rounds = [[Ms(100), Ms(200)], [Ms(100), Ms(80)]];
        assert_eq!(trace(probed(&[]).as_mut(), &rounds), [FIRST, SECOND]);
        assert_eq!(trace(probed(&[("lambda", 20.0)]).as_mut(), &rounds), [FIRST, FIRST]);
        assert_eq!(trace(probed(&[("lambda_percent", 20.0)]).as_mut(), &rounds), [FIRST, FIRST]);
        assert_eq!(trace(probed(&[("lambda_percent", 19.0)]).as_mut(), &rounds), [FIRST, SECOND]);
    }

    #[test]
    fn a_subflow_that_is_gone_is_no_path() {
        let mut policy = probed(&[]);
        trace(policy.as_mut(), &[[Ms(20), Ms(40)]]);
        let left = [route(SECOND, None), route(THIRD, None)];
        assert_eq!(policy.path(Instant::ZERO, THIRD, &left), THIRD, "gone before the round ends");
        policy.observe(Instant::ZERO, &[Probe { id: SECOND, best: None, down: false }]);
        assert_eq!(policy.path(Instant::ZERO, THIRD, &left), SECOND, "whose latest value is still 40 ms");
    }
}
