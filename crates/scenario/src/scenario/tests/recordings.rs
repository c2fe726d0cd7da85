//! Recordings: which part a run meets, and what follows it.

use super::{BULK, Origin, Scenario, ScenarioError, built_in};
use anabranch_net::{Change, LinkConfig, LossModel, Service};
use anabranch_sim::Spec;
use anabranch_units::Duration;
use std::fmt::Write;

/// Two drives of ten minutes, a minute apart, and what a third operator had half a minute later.
fn drive(from: u64, seconds: u64, mbps: u64) -> String {
    let mut text = String::from("time_s,mbps,rtt_ms,loss_pct\n");
    for second in (from..from + seconds).filter(|second| !(600..660).contains(second)) {
        let (mbps, rtt) = (mbps + second % 50, 40 + 10 * (second / 15 % 4));
        writeln!(text, "{},{mbps},{rtt},{}", 1_900_000_000 + second, second % 2).unwrap();
    }
    text
}

fn read_with(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "test.toml".into(), sets: sets.iter().map(|set| (*set).to_owned()).collect() };
    Scenario::read(&built_in(), "test", "test.toml", text, origin, &|name, _| match name {
        "a.csv" => Ok(drive(0, 1260, 100)),
        "b.csv" => Ok(drive(30, 1260, 10)),
        "other-day.csv" => Ok(drive(86_400, 600, 10)),
        "plain.csv" => Ok("1,1250000\n2,2500000\n3,5000000\n".to_owned()),
        "rtt.txt" => Ok("64 bytes: icmp_seq=1 ttl=1 time=40 ms\n64 bytes: icmp_seq=2 ttl=1 time=60 ms\n".to_owned()),
        "lost.csv" => Ok("t,loss_pct\n0,1\n1,0\n2,5\n".to_owned()),
        "tiny.csv" => Ok("t_ns,owd_ms\n0,1\n1,2\n2,3\n".to_owned()),
        "dead.csv" => Ok("t,mbps\n0,0\n1,0\n".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    })
}

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    read_with(text, &[])
}

const SLOW: &str = "[path.dsl]\nrate = \"1mbit\"\ndelay = \"20ms\"\n";

/// A path that follows a recording as this says, beside a slow one.
fn path(keys: &str) -> String {
    format!("[path.lte]\n{keys}\n{SLOW}{BULK}")
}

fn down(spec: &Spec, path: usize) -> &LinkConfig {
    &spec.network.paths[path].down
}

/// Returns the place in its recording from which a link serves.
fn offset(link: &LinkConfig) -> Duration {
    match &link.service {
        Service::Trace(trace) => trace.offset(),
        Service::Rate(rate) => panic!("{rate} is constant"),
    }
}

/// Values with their times.
type Timed = Vec<(f64, f64)>;

/// Returns the delays \[ms\] and losses \[%\] of the path `lte` with their times \[s\].
fn changes(spec: &Spec) -> (Timed, Timed) {
    let (mut delays, mut losses) = (Vec::new(), Vec::new());
    for change in spec.network.changes.iter().filter(|change| change.path == "lte") {
        match &change.change {
            Change::Delay(delay) => delays.push((change.at.as_secs_f64(), delay.as_secs_f64() * 1e3)),
            Change::Loss(LossModel::Bernoulli { p }) => losses.push((change.at.as_secs_f64(), (p * 1e4).round() / 1e2)),
            Change::Loss(LossModel::None) => losses.push((change.at.as_secs_f64(), 0.0)),
            other => panic!("{other:?}"),
        }
    }
    (delays, losses)
}

#[test]
fn one_file_gives_rate_delay_and_loss() {
    let scenario = read(&path("trace = { file = \"a.csv\", offset = \"14s\" }")).unwrap();
    let spec = scenario.spec(7);
    assert_eq!(
        (offset(down(&spec, 0)), offset(&spec.network.paths[0].up)),
        (Duration::from_secs(14), Duration::from_secs(14))
    );
    let (delays, losses) = changes(&spec);
    assert_eq!(delays[..4], [(0.0, 20.0), (1.0, 25.0), (16.0, 30.0), (31.0, 35.0)]);
    assert_eq!(losses[..3], [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]);
    assert!(!scenario.is_random() || losses.iter().any(|(_, percent)| *percent > 0.0));
    assert_eq!(
        format!("{:?}", scenario.spec(8).network.changes),
        format!("{:?}", spec.network.changes),
        "a fixed place"
    );
}

#[test]
fn what_the_path_states_counts_and_the_recording_gives_the_rest() {
    let trace = "trace = { file = \"a.csv\", offset = \"0s\" }\n";
    let of = |keys: &str| read(&path(&format!("{trace}{keys}"))).unwrap().spec(1);
    let spec = of("up = \"5mbit\"\ndelay = \"7ms\"");
    assert_eq!(offset(down(&spec, 0)), Duration::ZERO);
    assert!(matches!(spec.network.paths[0].up.service, Service::Rate(_)));
    assert!(changes(&spec).0.is_empty() && down(&spec, 0).delay == Duration::from_millis(7));
    let spec = of("rate = \"5mbit\"\nloss = \"2%\"");
    assert!(matches!(down(&spec, 0).service, Service::Rate(_)));
    assert!(!changes(&spec).0.is_empty() && changes(&spec).1.is_empty());
    // The delay before any change is the median.
    assert_eq!(down(&spec, 0).delay, Duration::from_millis(25));
}

#[test]
fn each_value_may_have_a_file_of_its_own() {
    let short = read(&path("trace = \"plain.csv\"\ndelay = \"1ms\"")).unwrap();
    assert!(matches!(down(&short.spec(1), 0).service, Service::Trace(_)));
    let keys = "down = { file = \"plain.csv\", offset = \"1s\", rate-unit = \"kbit\" }\nup = \"1mbit\"\n\
        delay = { file = \"rtt.txt\", offset = \"0s\" }\n\
        loss = { model = \"recorded\", file = \"lost.csv\", offset = \"2s\" }\nloss-up = \"0%\"\n";
    let spec = read(&path(keys)).unwrap().spec(1);
    assert_eq!(offset(down(&spec, 0)), Duration::from_secs(1));
    let (delays, losses) = changes(&spec);
    assert_eq!(delays[..3], [(0.0, 20.0), (1.0, 30.0), (2.0, 20.0)]);
    assert_eq!(losses[..3], [(0.0, 5.0), (1.0, 1.0), (2.0, 0.0)]);
}

#[test]
fn the_seed_chooses_the_place_and_aligned_recordings_move_together() {
    let text = format!(
        "[path.a]\ntrace = {{ file = \"a.csv\" }}\n[path.b]\ntrace = {{ file = \"b.csv\" }}\ndelay = \"9ms\"\n{BULK}\
         [[change]]\nat = \"2s\"\npath = \"b\"\nrate = \"plain.csv\"\n"
    );
    let scenario = read(&text).unwrap();
    assert!(scenario.is_random());
    let mut places = Vec::new();
    for seed in 1..=50 {
        let spec = scenario.spec(seed);
        let (a, b) = (offset(down(&spec, 0)), offset(down(&spec, 1)));
        assert_eq!(a, b, "one moment in both");
        // Both cover 570 s before the pause and 600 s after it, and a run of 5 s lies in one of the two.
        let a = a.as_secs_f64();
        assert!((0.0..=565.0).contains(&a) || (570.0..=1165.0).contains(&a), "{a}");
        places.push(a);
        // 30 s into the recording of `a` is the first second of that of `b`.
        let [Service::Trace(of_a), Service::Trace(of_b)] = [0, 1].map(|n| down(&spec, n).service.clone()) else {
            panic!()
        };
        let first = |trace: &anabranch_net::Trace| trace.rates(Duration::from_secs(1))[0].rate.as_mbps();
        assert_eq!((first(&of_a), first(&of_b)), (130.0, 40.0));
    }
    assert!(places.iter().any(|at| *at < 565.0) && places.iter().any(|at| *at > 570.0), "{places:?}");
}

#[test]
fn recordings_without_a_common_time_begin_each_at_a_place_of_its_own() {
    let text =
        format!("[path.a]\ntrace = {{ file = \"a.csv\" }}\n[path.b]\ntrace = {{ file = \"other-day.csv\" }}\n{BULK}");
    let scenario = read(&text).unwrap();
    let spec = scenario.spec(3);
    assert_ne!(offset(down(&spec, 0)), offset(down(&spec, 1)));
    let notes = scenario.notes().join("\n");
    assert!(notes.contains("the recordings a.csv, other-day.csv have no time in common"), "{notes}");
    // Without clocks they were made together: at one place in both.
    let text = format!(
        "[path.a]\ndown = \"plain.csv\"\nup = \"1mbit\"\ndelay = \"1ms\"\n\
         [path.b]\ndown = {{ file = \"plain.csv\", rate-unit = \"bit\" }}\nup = \"1mbit\"\ndelay = \"1ms\"\n{BULK}"
    );
    let spec = read(&text).unwrap().spec(3);
    assert!(offset(down(&spec, 0)) == offset(down(&spec, 1)) && !offset(down(&spec, 0)).is_zero());
}

#[test]
fn spread_and_offset_are_other_ways_to_choose() {
    let text = path("down = \"plain.csv\"\nup = \"1mbit\"\ndelay = \"5ms\"");
    let place = |text: &str, seed| offset(down(&read(text).unwrap().spec(seed), 0));
    assert_ne!(place(&text, 1), place(&text, 2));
    let spread = format!("{text}[run]\nspread = \"10s\"\n");
    assert_eq!((place(&spread, 1), place(&spread, 2)), (Duration::ZERO, Duration::ZERO));
    let fixed = path("down = { file = \"plain.csv\", offset = \"2s\" }\nup = \"1mbit\"\ndelay = \"5ms\"");
    assert_eq!((place(&fixed, 1), place(&fixed, 2)), (Duration::from_secs(2), Duration::from_secs(2)));
    assert!(!read(&fixed).unwrap().is_random(), "one stretch is one sample");
    let whole = text.replace("duration = \"5s\"", "duration = \"3s\"");
    assert!(!read(&whole).unwrap().is_random() && place(&whole, 2).is_zero(), "there is one place for all of it");
}

#[test]
fn a_run_carries_what_was_recorded() {
    // 10, 20 and 40 Mbit/s for a second each.
    let text = "[path.a]\ntrace = { file = \"plain.csv\", offset = \"0s\" }\ndelay = \"1ms\"\nqueue = \"1000p\"\n\
         [[workload]]\nkind = \"bulk\"\nduration = \"3s\"\n[run]\nstop = \"3s\"\n";
    let spec = read(text).unwrap().spec(1);
    let run = anabranch_sim::run(&spec).unwrap();
    let megabits = run.transfers[0].bytes as f64 * 8.0 / 1e6;
    assert!((0.85 * 70.0..70.0).contains(&megabits), "{megabits} of 70");
}

#[test]
fn what_is_wrong_is_said() {
    for (keys, problem, help) in [
        (
            "trace = { file = \"none.csv\" }",
            "recording `none.csv`: entity not found",
            "relative to the directory of the scenario",
        ),
        ("trace = { file = \"plain.csv\" }", "path `lte` has no delay", "delay = "),
        ("trace = { file = \"rtt.txt\" }", "`rate` is missing", "a rate or a recording"),
        ("trace = { file = \"dead.csv\" }\ndelay = \"1ms\"", "`rate` is missing", "a rate or a recording"),
        (
            "rate = { file = \"dead.csv\" }\ndelay = \"1ms\"",
            "in the recording `dead.csv` every rate is zero",
            "something passes",
        ),
        ("rate = \"rtt.txt\"\ndelay = \"1ms\"", "the recording `rtt.txt` has no rate", "anabranch trace rtt.txt"),
        (
            "rate = \"1mbit\"\ndelay = { file = \"plain.csv\" }",
            "the recording `plain.csv` has no delay",
            "anabranch trace",
        ),
        (
            "rate = \"1mbit\"\ndelay = \"1ms\"\nloss = { model = \"recorded\", file = \"rtt.txt\", rate = 1 }",
            "recording `rtt.txt`: `rate` has no meaning for a recording of form ping",
            "form = \"table\"",
        ),
        (
            "rate = \"1mbit\"\ndelay = \"1ms\"\nloss = \"0%\"\ntrace = { file = \"a.csv\" }",
            "nothing of the recording is used: it has rate and delay and loss",
            "no `trace`",
        ),
        (
            "trace = { file = \"plain.csv\", offset = \"3s\" }\ndelay = \"1ms\"",
            "`offset` is 3s, and the recording is 3s long",
            "a place within",
        ),
        ("trace = { file = \"plain.csv\", rate = 0 }\ndelay = \"1ms\"", "columns count from 1", "from 1"),
        (
            "trace = { file = \"plain.csv\", gaps = \"ignore\" }\ndelay = \"1ms\"",
            "`ignore` is no such word",
            "short, hold",
        ),
        ("trace = { file = \"plain.csv\", offset = 3 }\ndelay = \"1ms\"", "`3` has no unit", "a time with its unit"),
        ("trace = { fil = \"plain.csv\" }\ndelay = \"1ms\"", "unknown key `fil`", "did you mean `file`?"),
        (
            "rate = \"1mbit\"\ndelay = { file = \"tiny.csv\" }",
            "delay or loss of the recording `tiny.csv` change",
            "a recording with fewer rows",
        ),
        ("trace = 7\ndelay = \"1ms\"", "recording `7`: entity not found", "the name of a recording"),
    ] {
        let error = read(&path(keys)).err().unwrap_or_else(|| panic!("{keys}"));
        let said = error.help().unwrap_or_default();
        assert!(error.to_string().starts_with(problem) && said.contains(help), "{keys}\n{error}\n{said}");
    }
}
