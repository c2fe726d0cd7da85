//! Properties of every first-path policy, tested over the registry.

use super::*;
use crate::registry::{Domain, Parameter, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn candidate() -> impl Strategy<Value = Candidate> {
    let known = prop::option::of((0..10_000_u64, 0..5_000_u64, 0.0..1.0)).prop_map(|known| {
        known.map(|(rtt, age, loss)| Known { age: Duration::from_secs(age), rtt: testing::ms(rtt), rate: None, loss })
    });
    let truth = prop::option::of((0..1_000_u64, 0..1_000_u64)).prop_map(|truth| {
        truth.map(|(mbps, delay)| Truth { rate: Rate::from_mbps(mbps), delay: testing::ms(delay), loss: 0.0 })
    });
    (any::<[bool; 3]>(), known, truth).prop_map(|([backup, dead, plain], known, truth)| Candidate {
        backup,
        dead,
        plain,
        known,
        truth,
        ..testing::path(0)
    })
}

proptest! {
    /// Each attempt is one of the candidates, none is tried twice, none too early, and one history gives one answer.
    #[test]
    fn attempts_are_legal(
        candidates in prop::collection::vec(candidate(), 1..17),
        extreme in prop::option::of(any::<bool>()),
    ) {
        for entry in FIRST_PATHS {
            let bound = |p: &Parameter| match (p.domain, extreme) {
                (Domain::Number { min, .. }, Some(false)) => Some((p.name.to_owned(), Value::Number(min))),
                (Domain::Number { max, .. }, Some(true)) => Some((p.name.to_owned(), Value::Number(max))),
                _ => None,
            };
            let params = entry.params(&entry.parameters.iter().filter_map(bound).collect()).expect("within range");
            let (mut first, mut second) = (entry.build(&params), entry.build(&params));
            let attempts = first.attempts(&candidates);
            prop_assert_eq!(&attempts, &second.attempts(&candidates), "{}", entry.name);
            prop_assert!(!attempts.is_empty(), "{}", entry.name);
            let tried: BTreeSet<usize> = attempts.iter().map(|attempt| attempt.candidate).collect();
            prop_assert_eq!(tried.len(), attempts.len(), "{}: none twice", entry.name);
            prop_assert!(tried.iter().all(|candidate| *candidate < candidates.len()), "{}", entry.name);
            let early = |pair: &[Attempt]| {
                candidates[pair[0].candidate].known.is_some() && pair[1].delay < MIN_DELAY
            };
            prop_assert!(!attempts.windows(2).any(early), "{}: {:?}", entry.name, attempts);
            prop_assert!(attempts.len() == 1 || attempts.len() == candidates.len(), "{}: all or one", entry.name);
        }
    }
}
