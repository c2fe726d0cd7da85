#![allow(clippy::unwrap_used)]
use super::*;
use anabranch_lab::Keep;
use anabranch_scenario::Scenario;
use anabranch_units::Duration;
use std::sync::Mutex;

/// A script in Rust, which sees words as one in JavaScript does.
struct Native(fn(&[u64]) -> Answer);

impl Script for Native {
    fn begin(&self, _connection: u32, _seed: u64) {}
    fn decide(&self, _connection: u32, words: &[u64]) -> Answer {
        self.0(words)
    }
    fn observe(&self, _connection: u32, _words: &[u64]) {}
    fn end(&self, _connection: u32) {}
}

const SEND_FIRST: Answer = Answer { kind: 2, on: 0, more: 0 };

/// Place of each word by its name, in the words of a view.
fn places(part: &str) -> (Vec<(String, usize)>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    for field in fields()[part].as_array().unwrap() {
        found.push((field["name"].as_str().unwrap().to_owned(), at));
        at += if field["kind"] == "maybe-dsn" { 2 } else { 1 };
    }
    (found, at)
}

/// Min-RTT by words alone.
fn min_rtt(words: &[u64]) -> Answer {
    let (_, view) = places("view");
    let (names, length) = places("subflow");
    let at = |name: &str| names.iter().find(|(other, _)| other == name).unwrap().1;
    let (id, srtt, room) = (at("id"), at("srtt_s"), at("has_room"));
    let free = words[1 + view..].chunks_exact(length).filter(|subflow| subflow[room] == 1);
    let best = free.min_by(|a, b| f64::from_bits(a[srtt]).total_cmp(&f64::from_bits(b[srtt])));
    best.map_or(Answer { kind: 0, on: 0, more: 0 }, |it| Answer { on: f64::from_bits(it[id]) as u32, ..SEND_FIRST })
}

fn run(script: impl Script, scheduler: &str) -> Result<String, String> {
    let catalogue = catalogue(script, Abilities::default());
    let set = format!("host.scheduler={scheduler}");
    let scenario = Scenario::load(&catalogue, "wlan-lte", &[set]).unwrap();
    let run = anabranch_lab::run(&scenario, 3, &Keep::default());
    run.map(|run| run.measured.events_digest).map_err(|error| error.problem)
}

#[test]
fn a_script_with_the_rule_of_min_rtt_is_min_rtt() {
    let own = run(Native(min_rtt), NAME).unwrap();
    assert_eq!(own, run(Native(|_| SEND_FIRST), "min-rtt").unwrap());
    assert_ne!(own, run(Native(|_| SEND_FIRST), NAME).unwrap());
}

/// The words are those of Python, in the same order.
#[test]
fn names_are_those_of_python() {
    let python = include_str!("../../../../python/src/scheduler.rs");
    let (_, from) = python.split_once("fields! {\n").unwrap();
    let (table, _) = from.split_once("\n}\n").unwrap();
    let rows = table.lines().filter_map(|line| line.split_once(" = |s| ")?.0.trim().split_once(": "));
    let expected: Vec<&str> = rows.map(|(name, _)| name).collect();
    let found: Vec<String> = places("subflow").0.into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, expected);
    for (name, _) in places("view").0.into_iter().chain(places("event").0) {
        assert!(python.contains(&format!("    fn {name}(&self)")), "Python has no `{name}`");
    }
    for event in fields()["events"].as_array().unwrap() {
        assert!(python.contains(&format!("=> {event},")), "Python has no event {event}");
    }
}

#[test]
fn answers_that_are_no_decision_are_refused() {
    let view = View {
        subflows: &[anabranch_policy::SubflowView::steady(
            SubflowId(4),
            Bytes::new(1400),
            Duration::from_millis(10),
            Bytes::new(14_000),
        )],
        unsent: Bytes::new(9_000),
        sendable: Bytes::new(9_000),
        window: Bytes::new(9_000),
        buffer: Bytes::new(9_000),
        data_una: Dsn::new(u64::MAX - 3),
        unsent_from: Dsn::new(u64::MAX - 3),
    };
    let read = |kind, on, more| decision(Answer { kind, on, more }, &view);
    assert_eq!(read(0, 9, 9), Ok(Decision::WAIT));
    assert_eq!(read(1, 9, 7), Ok(Decision::Wait { until: Some(Instant::from_nanos(7)) }));
    assert_eq!(read(2, 4, 0), Ok(Decision::send(SubflowId(4))));
    let from = Dsn::new(u64::MAX - 3);
    assert_eq!(read(3, 4, from.get()), Ok(Decision::Repeat { on: SubflowId(4), from }), "all 64 bits arrive");
    assert_eq!(read(2, 65_540, 0), Err("there is no subflow 65540 in the view; accepted: 4".to_owned()));
    assert_eq!(read(4, 4, 0), Err("answer 4 is no decision; accepted: 0 to 3".to_owned()));
}

#[test]
fn a_failure_names_the_scheduler_and_the_time() {
    let said = run(Native(|_| Answer { on: 9, ..SEND_FIRST }), NAME).unwrap_err();
    assert!(
        said.starts_with("policy `own` failed ") && said.contains(" s into the run: there is no subflow 9 "),
        "{said}"
    );
}

/// Each connection has an instance of its own, whose chances the seed of the run decides, and which is forgotten.
#[test]
fn instances_begin_with_the_seed_and_end() {
    /// Connections, each with its seed when it begins and without when it ends.
    type Log = Vec<(u32, Option<u64>)>;
    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<Log>>);
    impl Script for Logged {
        fn begin(&self, connection: u32, seed: u64) {
            self.0.lock().unwrap().push((connection, Some(seed)));
        }
        fn decide(&self, _connection: u32, words: &[u64]) -> Answer {
            min_rtt(words)
        }
        fn observe(&self, _connection: u32, _words: &[u64]) {}
        fn end(&self, connection: u32) {
            self.0.lock().unwrap().push((connection, None));
        }
    }
    let (first, second) = (Logged::default(), Logged::default());
    run(first.clone(), NAME).unwrap();
    run(second.clone(), NAME).unwrap();
    let log = first.0.lock().unwrap();
    assert!(!log.is_empty());
    assert_eq!(*log, *second.0.lock().unwrap());
    let begun = log.iter().filter(|(_, seed)| seed.is_some()).count();
    assert_eq!(log.len(), 2 * begun, "as many ends as begins: {log:?}");
}

/// A script that waits for ever is overruled as every scheduler is, and counted: the run ends.
#[test]
fn a_script_that_makes_no_progress_is_overruled() {
    let waits = Native(|_| Answer { kind: 0, on: 0, more: 0 });
    let catalogue = catalogue(waits, Abilities { repeats: true, observes: true });
    let scenario = Scenario::load(&catalogue, "wlan-lte", &["host.scheduler=own".to_owned()]).unwrap();
    let measured = anabranch_lab::run(&scenario, 3, &Keep::default()).unwrap().measured;
    assert!(measured.finished);
    assert!(measured.counted.count("overruled_kinds") > 100);
}
