//! Policies at work on subflows that are made up: rules of round trip, loss, quota and cost. Nothing here needs the
//! kernel.
#![allow(clippy::unwrap_used)]

use anabranch_kernel::steer::{Condition, Place, Policy, State, Steering, Subflow};
use anabranch_units::Duration;
use std::collections::BTreeSet;
use std::net::IpAddr;

const POLICY: &str = r#"
[path.wifi]
address = "10.0.1.2"
[path.lte]
address = "10.0.2.2"
cost = 10
quota = "1MB"

[[rule]]
path = "wifi"
when = "rtt > 200ms"
for = "2s"
then = "backup"
hold = "5s"

[[rule]]
path = "lte"
when = "quota >= 100%"
then = "close"
"#;

/// Two subflows of one connection, and a clock.
struct World {
    steering: Steering,
    now: Duration,
    subflows: Vec<Subflow>,
}

impl World {
    fn new(policy: &str) -> Self {
        World::with(Policy::read("policy.toml", policy).unwrap())
    }

    fn with(policy: Policy) -> Self {
        let subflow = |cookie: u64| Subflow {
            cookie,
            connection: 7,
            local: [10, 0, cookie as u8, 2].into(),
            established: true,
            srtt: Duration::from_millis(20),
            acked: 0,
            received: 0,
            sent: 0,
            sent_again: 0,
        };
        let steering = Steering::new(policy);
        let mut world = World { steering, now: Duration::ZERO, subflows: vec![subflow(1), subflow(2)] };
        // The first look only begins, but for rules that need no measurement.
        world.step(0, 0);
        world
    }

    /// A tenth of a second later, with that much data on each subflow [bytes].
    fn step(&mut self, first: u64, second: u64) -> Vec<(usize, State)> {
        self.now += Duration::from_millis(100);
        for (subflow, bytes) in self.subflows.iter_mut().zip([first, second]) {
            subflow.acked += bytes;
            subflow.sent += bytes;
        }
        let paths = &self.steering.policy().paths;
        let addresses: Vec<BTreeSet<IpAddr>> = paths
            .iter()
            .map(|path| match &path.place {
                Place::Address(address) => BTreeSet::from([*address]),
                Place::Interface(name) => panic!("{name}"),
            })
            .collect();
        let changes = self.steering.look(self.now, &addresses, &self.subflows);
        changes.into_iter().map(|change| (change.path, change.to)).collect()
    }

    /// The time after which something changes \[s\], and the changes.
    fn until(&mut self, most: u64, first: u64, second: u64) -> (f64, Vec<(usize, State)>) {
        let begin = self.now;
        for _ in 0..most * 10 {
            let changes = self.step(first, second);
            if !changes.is_empty() {
                return (self.now.saturating_sub(begin).as_secs_f64(), changes);
            }
        }
        (most as f64, Vec::new())
    }
}

const LTE: usize = 0;
const WIFI: usize = 1;

/// A path that is fast again at once is spared for the five seconds of `hold` all the same.
#[test]
fn a_rule_lasts_for_its_shortest_time() {
    let mut world = World::new(POLICY);
    world.subflows[0].srtt = Duration::from_millis(250);
    assert_eq!(world.until(10, 10_000, 100).1, [(WIFI, State::Backup)]);
    world.subflows[0].srtt = Duration::from_millis(20);
    let (after, changes) = world.until(10, 1_000, 10);
    assert_eq!((after > 4.9 && after < 5.2, changes), (true, vec![(WIFI, State::Open)]), "{after}");
}

#[test]
fn a_slow_path_is_spared_and_comes_back_with_a_margin() {
    let mut world = World::new(POLICY);
    assert_eq!(world.until(20, 10_000, 100).1, []);
    world.subflows[0].srtt = Duration::from_millis(250);
    // Less than two seconds are not enough.
    assert_eq!(world.until(1, 10_000, 100).1, []);
    world.subflows[0].srtt = Duration::from_millis(190);
    assert_eq!(world.until(5, 10_000, 100).1, []);
    world.subflows[0].srtt = Duration::from_millis(250);
    let (after, changes) = world.until(10, 10_000, 100);
    assert_eq!((after > 1.9 && after < 2.3, changes), (true, vec![(WIFI, State::Backup)]), "{after}");
    // 190 ms are below the bound, but not by 20 %.
    world.subflows[0].srtt = Duration::from_millis(190);
    assert_eq!(world.until(20, 1_000, 10).1, []);
    world.subflows[0].srtt = Duration::from_millis(150);
    let (after, changes) = world.until(10, 1_000, 10);
    assert_eq!((after > 1.9 && after < 2.3, changes), (true, vec![(WIFI, State::Open)]), "{after}");
}

/// A backup carries nothing and has no round trip: it is tried after 30 s, and later each time that was in vain.
#[test]
fn a_path_without_measurements_is_tried_again_ever_later() {
    let mut world = World::new(POLICY);
    world.subflows[0].srtt = Duration::from_millis(250);
    let mut waits = Vec::new();
    for _ in 0..4 {
        assert_eq!(world.until(10, 1_000, 1).1, [(WIFI, State::Backup)]);
        let (after, changes) = world.until(600, 0, 1);
        assert_eq!(changes, [(WIFI, State::Open)]);
        waits.push(after);
    }
    // The last round trip is taken for known for two seconds more.
    for (wait, expected) in waits.iter().zip([30.0, 60.0, 120.0, 240.0]) {
        assert!((expected..expected + 4.0).contains(wait), "{waits:?}");
    }
}

#[test]
fn a_quota_closes_a_path_until_its_period_ends() {
    let mut world = World::new(POLICY);
    assert_eq!(world.until(60, 0, 1_000).1, [], "600 of 1,000 kB");
    assert_eq!(world.until(60, 0, 1_000).1, [(LTE, State::Closed)]);
    world.subflows.pop();
    assert!((1_000_000..1_001_000).contains(&world.steering.used(LTE)));
    assert_eq!(world.until(300, 10_000, 0).1, [], "it has no other measurement that could end it");
    world.steering.set_used(LTE, 0);
    assert_eq!(world.until(2, 10_000, 0).1, [(LTE, State::Open)]);
}

#[test]
fn the_last_subflow_of_a_connection_is_not_closed() {
    let mut world = World::new(POLICY);
    let wifi = world.subflows.remove(0);
    world.subflows[0].received = 2_000_000;
    assert_eq!(world.step(0, 0), [(LTE, State::Backup)]);
    assert_eq!(world.until(10, 0, 0).1, []);
    // With another subflow it may go.
    world.subflows.push(wifi);
    assert_eq!(world.step(0, 0), [(LTE, State::Closed)]);
}

#[test]
fn a_dear_path_is_for_when_the_cheap_one_is_bad() {
    let rule = "[[rule]]\npath = \"lte\"\nwhen = \"cheaper up\"\nthen = \"backup\"\nhold = \"1s\"\n";
    let mut world = World::new(&format!("{POLICY}{rule}"));
    assert_eq!(world.steering.states()[LTE], State::Backup, "from the first look on");
    world.subflows[0].srtt = Duration::from_millis(250);
    assert_eq!(world.until(10, 1_000, 0).1, [(WIFI, State::Backup)]);
    assert_eq!(world.until(1, 0, 1_000).1, [(LTE, State::Open)]);
}

/// It is the mildest treatment: the other host still sends there.
#[test]
fn a_gate_gives_way_to_a_stricter_rule() {
    let gate = "[[rule]]\npath = \"lte\"\nwhen = \"always\"\nthen = \"gate\"\n";
    let backup = "[[rule]]\npath = \"lte\"\nwhen = \"rtt > 100ms\"\nthen = \"backup\"\nhold = \"1s\"\n";
    let policy = Policy::read_for("policy.toml", &format!("{POLICY}{gate}{backup}"), true).unwrap();
    let mut world = World::with(policy);
    assert_eq!(world.steering.states()[LTE], State::Gated, "from the first look on");
    world.subflows[1].srtt = Duration::from_millis(200);
    assert_eq!(world.until(5, 100, 100).1, [(LTE, State::Backup)]);
    world.subflows[1].srtt = Duration::from_millis(20);
    assert_eq!(world.until(5, 100, 100).1, [(LTE, State::Gated)]);
    assert_eq!(world.until(120, 100, 10_000).1, [(LTE, State::Closed)], "its quota is used up");
}

#[test]
fn losses_count_over_five_seconds() {
    let policy = "[path.a]\naddress = \"10.0.1.2\"\n[path.b]\naddress = \"10.0.2.2\"\n[[rule]]\nwhen = \"loss > \
                  5%\"\nfor = \"1s\"\nthen = \"close\"\n";
    let mut world = World::new(policy);
    for round in 0..100 {
        let changes = world.step(10_000, 10_000);
        world.subflows[1].sent_again += if round % 4 == 0 { 2_500 } else { 0 };
        if round > 50 && !changes.is_empty() {
            assert_eq!(changes, [(1, State::Closed)]);
        }
    }
    let loss = world.steering.measures()[1].loss.unwrap();
    assert!((0.055..0.07).contains(&loss), "{loss}");
    assert_eq!(world.steering.states(), [State::Open, State::Closed]);
    // Both bad: the connection keeps one.
    for _ in 0..100 {
        world.subflows[0].sent_again += 2_500;
        world.step(10_000, 0);
    }
    assert_ne!(world.steering.states()[0], State::Closed);
}

#[test]
fn conditions_are_read_as_they_are_written() {
    for text in ["rtt > 200ms", "loss >= 5%", "rate < 1mbit", "cheaper-rate <= 5mbit", "quota > 90%", "always"] {
        assert_eq!(Condition::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Condition::parse("rtt>200ms").unwrap().opposite().unwrap().to_string(), "rtt < 160.0 ms");
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_a_remedy() {
    let wrong = [
        ("rtt > 200ms", "rtt > 200", "`200` has no unit", "a time with its unit"),
        ("rtt > 200ms", "delay > 200ms", "`delay` is no measurement of a path", "QUANTITY > BOUND"),
        ("rtt > 200ms", "slow", "`slow` is no condition", "rtt > 200ms"),
        ("then = \"backup\"", "then = \"stop\"", "unknown value `stop`", "backup, close"),
        ("then = \"backup\"", "", "`then` is missing", "then = \"close\""),
        ("path = \"wifi\"", "path = \"wfi\"", "there is no path `wfi`", "did you mean `wifi`?"),
        ("for = \"2s\"", "fro = \"2s\"", "unknown key `fro`", "did you mean `for`?"),
        ("quota = \"1MB\"", "", "the path has no quota", "quota = \"2GB\""),
        ("quota = \"1MB\"", "quota = \"0B\"", "must be greater than zero", "such as \"2GB\""),
        ("quota = \"1MB\"", "per = \"day\"", "there is no quota", "quota = \"2GB\" beside it"),
        ("address = \"10.0.2.2\"", "address = \"10.0.1.2\"", "it is the same as path `lte`", "another address"),
        ("address = \"10.0.2.2\"", "", "it has no place", "interface = \"wlan0\""),
        (
            "when = \"quota >= 100%\"",
            "when = \"quota >= 100%\"\nuntil = \"cheaper down\"",
            "is no condition",
            "cheaper up",
        ),
        ("[[rule]]", "interval = \"1ms\"\n[[rule]]", "unknown key `interval`", "accepted: "),
    ];
    for (right, instead, problem, help) in wrong {
        let text = POLICY.replacen(right, instead, 1);
        assert_ne!(text, POLICY, "{right}");
        let error = Policy::read("policy.toml", &text).unwrap_err();
        let (name, line, _) = error.place().unwrap_or_else(|| panic!("{instead}: {error} has no place"));
        assert!(name == "policy.toml" && line > 1, "{instead}: {name}:{line}");
        assert!(error.to_string().contains(problem), "{instead}: {error}");
        assert!(error.help().is_some_and(|it| it.contains(help)), "{instead}: {:?}", error.help());
    }
    let gate = POLICY.replacen("then = \"close\"", "then = \"gate\"", 1);
    let error = Policy::read("policy.toml", &gate).unwrap_err();
    assert_eq!(error.to_string(), "gates are an experiment, and there are none");
    assert!(error.place().is_some_and(|(_, line, _)| gate.lines().nth(line - 1).unwrap().contains("gate")));
    assert!(error.help().is_some_and(|it| it.contains("kernel steer --gate CONTROL")), "{:?}", error.help());
    assert!(Policy::read_for("policy.toml", &gate, true).is_ok());
    let error = Policy::read("policy.toml", "[path]\n").unwrap_err();
    assert_eq!(error.to_string(), "there is no path");
    let cheapest = POLICY.replace("quota >= 100%", "cheaper up").replace("cost = 10", "");
    let error = Policy::read("policy.toml", &cheapest).unwrap_err();
    assert_eq!(error.to_string(), "no path is cheaper");
}
