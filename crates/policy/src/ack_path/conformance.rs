//! Properties of every ACK-path policy, tested over the registry.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// Opens these of eight subflows, with their RTTs.
    Routes(u8, [Option<u32>; 8]),
    /// Data arrived on this one of the open subflows.
    Arrival(u8),
    /// A round of probes: round trips, and which are down.
    Round([Option<u32>; 8], u8),
}

fn step() -> impl Strategy<Value = Step> {
    let times = || {
        proptest::array::uniform8(prop::option::weighted(0.8, prop_oneof![any::<u32>(), Just(0), 0..100_000_000_u32]))
    };
    prop_oneof![
        2 => (any::<u8>(), times()).prop_map(|(open, rtts)| Step::Routes(open, rtts)),
        6 => any::<u8>().prop_map(Step::Arrival),
        3 => (times(), any::<u8>()).prop_map(|(trips, down)| Step::Round(trips, down)),
    ]
}

/// Plays the steps; every answer.
fn play(policy: &mut dyn AckPath, steps: &[Step]) -> Vec<(SubflowId, SubflowId)> {
    let mut now = Instant::ZERO;
    let mut routes: Vec<AckRoute> = Vec::new();
    let mut answers = Vec::new();
    let nanos = |n: Option<u32>| n.map(|n| Duration::from_nanos(u64::from(n)));
    for step in steps {
        now += Duration::from_millis(7);
        match step {
            Step::Routes(open, rtts) => {
                let route =
                    |n: u16| AckRoute { srtt: nanos(rtts[usize::from(n)]), ..testing::route(SubflowId(n), None) };
                routes = (0..8).filter(|n| open >> n & 1 == 1).map(route).collect();
            }
            Step::Arrival(which) => {
                // A subflow that is being closed still receives: it may be no route.
                let on = routes.get(usize::from(which % 8)).map_or(SubflowId(u16::from(which % 8)), |route| route.id);
                let (data_ack, path) = (policy.data_ack(now, on, &routes), policy.path(now, on, &routes));
                for answer in [data_ack, path] {
                    assert!(answer == on || routes.iter().any(|route| route.id == answer), "{answer:?} is not there");
                }
                answers.push((data_ack, path));
            }
            Step::Round(trips, down) => {
                let probe = |route: &AckRoute| {
                    let n = usize::from(route.id.0);
                    let down = down >> n & 1 == 1;
                    Probe { id: route.id, best: nanos(trips[n]).filter(|_| !down), down }
                };
                let round: Vec<_> = routes.iter().map(probe).collect();
                policy.observe(now, &round);
                if round.iter().all(|probe| probe.down) && policy.probing().is_some() {
                    for route in &routes {
                        assert_eq!(policy.path(now, route.id, &routes), route.id, "with all paths down, each its own");
                    }
                }
            }
        }
        if let Some(probing) = policy.probing() {
            assert!(probing.interval > Duration::ZERO && probing.probes > 0, "{probing:?} can be kept to");
        }
    }
    answers
}

proptest! {
    #[test]
    fn answers_are_legal_and_one_history_gives_one_answer(steps in prop::collection::vec(step(), 1..80)) {
        for entry in ACK_PATHS {
            let (mut first, mut second) = (entry.build_default(), entry.build_default());
            prop_assert_eq!(play(first.as_mut(), &steps), play(second.as_mut(), &steps), "{}", entry.name);
        }
    }
}
