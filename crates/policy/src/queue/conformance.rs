//! Properties of every queue discipline, tested over the registry.

use super::testing::Bench;
use super::*;
use crate::registry::{Domain, Parameter, Value};
use anabranch_units::Duration;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Event at a link: a packet comes so many microseconds after the last event, or one may leave.
#[derive(Clone, Copy, Debug)]
enum Event {
    Comes { after: u64, size: u32, flow: u64, ecn: u8 },
    MayLeave { after: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let after = prop_oneof![0..200_u64, 0..20_000_u64, 0..200_000_u64];
    prop_oneof![
        (after.clone(), 40..1515_u32, 0..5_u64, 0..4_u8).prop_map(|(after, size, flow, ecn)| Event::Comes {
            after,
            size,
            flow,
            ecn
        }),
        after.prop_map(|after| Event::MayLeave { after }),
    ]
}

/// Packets that left or were dropped, in order.
fn run(bench: &mut Bench, events: &[Event], limit: u32) -> Result<Vec<(u32, Option<Ecn>)>, TestCaseError> {
    let mut now = Instant::ZERO;
    let mut story = Vec::new();
    let tell = |bench: &mut Bench, story: &mut Vec<_>| story.extend(bench.gone().iter().map(|(id, _)| (*id, None)));
    for (id, event) in events.iter().enumerate() {
        match *event {
            Event::Comes { after, size, flow, ecn } => {
                now += Duration::from_micros(after);
                bench.take(Waiting {
                    id: id as u32,
                    size,
                    flow,
                    hosts: [flow % 2, flow % 3],
                    ecn: Ecn::from_bits(ecn),
                    since: now,
                });
                tell(bench, &mut story);
                prop_assert!(bench.held().0 <= limit.max(1));
            }
            Event::MayLeave { after } => {
                now += Duration::from_micros(after);
                let next = bench.ask(now);
                tell(bench, &mut story);
                match next {
                    Next::Packet(packet) => story.push((packet.id, Some(packet.ecn))),
                    Next::At(at) => prop_assert!(at > now && bench.held().0 > 0),
                    Next::Nothing => prop_assert_eq!(bench.held(), (0, 0)),
                }
            }
        }
    }
    loop {
        let next = bench.ask(now);
        tell(bench, &mut story);
        match next {
            Next::Packet(packet) => story.push((packet.id, Some(packet.ecn))),
            Next::At(at) => now = at,
            Next::Nothing => break,
        }
    }
    prop_assert_eq!(bench.held(), (0, 0));
    Ok(story)
}

proptest! {
    /// Each packet leaves once or is dropped once, none is held beyond the limit, a flow of one kind keeps its order,
    /// only what may be marked is, and one history gives one answer.
    #[test]
    fn packets_leave_once(
        events in prop::collection::vec(event(), 1..300),
        limit in 1..40_u32,
        extreme in prop::option::of(any::<bool>()),
    ) {
        for entry in QUEUES {
            let bound = |p: &Parameter| match (p.domain, extreme) {
                (Domain::Number { min, .. }, Some(false)) => Some((p.name.to_owned(), Value::Number(min))),
                (Domain::Number { max, .. }, Some(true)) => Some((p.name.to_owned(), Value::Number(max))),
                (Domain::Flag { .. }, Some(flag)) => Some((p.name.to_owned(), Value::Flag(flag))),
                _ => None,
            };
            let params = entry.params(&entry.parameters.iter().filter_map(bound).collect()).expect("within range");
            let mut bench = Bench::new(entry.build(&params).policy, limit);
            let story = run(&mut bench, &events, limit)?;
            let again = run(&mut Bench::new(entry.build(&params).policy, limit), &events, limit)?;
            prop_assert_eq!(&story, &again, "{}", entry.name);

            let came = |id: &u32| match events[*id as usize] {
                Event::Comes { flow, ecn, .. } => (flow, Ecn::from_bits(ecn)),
                Event::MayLeave { .. } => unreachable!("only packets have numbers"),
            };
            let all: BTreeSet<u32> = story.iter().map(|(id, _)| *id).collect();
            let arrivals = events.iter().filter(|event| matches!(event, Event::Comes { .. })).count();
            prop_assert_eq!((story.len(), all.len()), (arrivals, arrivals), "{}", entry.name);
            let mut last: BTreeMap<(u64, u8), u32> = BTreeMap::new();
            for (id, ecn) in story.iter().filter_map(|(id, ecn)| Some((id, (*ecn)?))) {
                let (flow, before) = came(id);
                prop_assert!(ecn == before || (ecn == Ecn::Ce && before.is_capable()), "{}", entry.name);
                let previous = last.insert((flow, before.bits() & 1), *id);
                prop_assert!(previous.is_none_or(|previous| previous < *id), "{}: order", entry.name);
            }

            let now = Instant::ZERO + Duration::from_secs(100);
            bench.take(Waiting { id: 0, size: 100, flow: 0, hosts: [0, 0], ecn: Ecn::Ect1, since: now });
            bench.clear();
            prop_assert_eq!(bench.ask(now), Next::Nothing, "{}", entry.name);
        }
    }
}
