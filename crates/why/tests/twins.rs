//! Twins: values that come back from captures, captures that are bad, and, over drawn conditions and over transfers of
//! kernels, the time of the twin against that of the original.
//!
//! The estimators were tuned on the conditions of seed 7 and on fifty transfers of kernels, and the sixty of seed 8
//! that are the test were run meanwhile. Other seeds and ends, another policy, and transfers of kernels are asked for:
//!
//!     TWINS_SEEDS=9 [TWINS_AT=client] [TWINS_SCHEDULER=min-rtt] cargo test --test twins -- originals --nocapture
//!     TWINS_KERNEL=DIRECTORY [TWINS_AT=server] cargo test --test twins -- kernels --nocapture
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_lab::{Keep, in_parallel, run_watched};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use anabranch_sim::Workload;
use anabranch_units::Duration;
use anabranch_why::{CaptureInquiry, Confidence, Estimate, Judge, Judged, Twin, TwinError};
use common::{Record, pcap, records};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Repetitions of a twin, whose median counts.
const REPEAT: u64 = 3;

/// Time of the original and of its twin \[s\].
type Pair = (f64, f64);

fn scenario_of(catalogue: &Arc<Catalogue>, text: &str) -> Scenario {
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    let origin = Origin { scenario: "twin.toml".to_owned(), sets: Vec::new() };
    Scenario::read(catalogue, "twin", "twin.toml", text, origin, &none)
        .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// The transfers of a run, and the time from which its workload counts, which opens the first connection.
struct Ran {
    judged: Vec<Judged>,
    start: Duration,
}

impl Ran {
    fn of(scenario: &Scenario, seed: u64, captures: Option<&Path>) -> Self {
        let keep = Keep { captures: captures.map(Path::to_owned), ..Keep::default() };
        let mut judge = Judge::default();
        let run = run_watched(scenario, seed, &keep, Some(&mut judge)).unwrap();
        let workloads = scenario.spec(seed).workloads;
        let start = workloads.iter().filter_map(|it| match it {
            Workload::Bulk { start, .. } | Workload::Files { start, .. } | Workload::Bursts { start, .. } => {
                Some(*start)
            }
            Workload::Web { start, .. } | Workload::Interactive { start, .. } => Some(*start),
            _ => None,
        });
        let start = start.min().unwrap_or_default();
        Ran { judged: judge.finish(&workloads, &run.outcome), start }
    }

    /// Time from the opening of the first connection to the end of the last transfer \[s\].
    fn time(&self) -> f64 {
        let ends = self.judged.iter().map(|it| (it.bands.start() + it.bands.total()).as_secs_f64());
        ends.fold(0.0, f64::max) - self.start.as_secs_f64()
    }
}

/// Time of a scenario: median of repetitions \[s\].
fn time_of(catalogue: &Arc<Catalogue>, text: &str) -> f64 {
    let copy = scenario_of(catalogue, text);
    let mut times: Vec<f64> = (1..=REPEAT).map(|seed| Ran::of(&copy, seed, None).time()).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times of a condition and of its twin; absent if it has several connections, or no twin.
fn pair(
    catalogue: &Arc<Catalogue>,
    (seed, number): (u64, u64),
    hosts: &[&str],
    scheduler: Option<&str>,
) -> Option<Pair> {
    let name = format!("drawn/{seed}/{number}");
    let scenario = anabranch_study::load(catalogue, &name, &[]).unwrap();
    let place = format!("twins-{seed}-{number}-{}", hosts.join("-"));
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(place);
    let original = Ran::of(&scenario, 3, Some(&directory));
    let files: Vec<PathBuf> = hosts.iter().map(|host| directory.join(format!("{host}.pcapng"))).collect();
    let twin = CaptureInquiry::read(&files).twin(None);
    std::fs::remove_dir_all(&directory).unwrap();
    let twin = twin.ok()?;
    // Pages open several connections, which share the paths.
    let connections: BTreeSet<usize> = original.judged.iter().map(|it| it.connection).collect();
    (connections.len() == 1).then_some(())?;
    let Some(other) = scheduler else { return Some((original.time(), time_of(catalogue, &twin.scenario))) };
    // Another policy than that of the capture, on both networks.
    let sets = [format!("host.scheduler=\"{other}\"")];
    let scenario = anabranch_study::load(catalogue, &name, &sets).unwrap();
    let lines = twin.scenario.lines().filter(|line| !line.starts_with("scheduler ="));
    let text = lines.collect::<Vec<_>>().join("\n").replace("[host]", &format!("[host]\nscheduler = \"{other}\""));
    Some((Ran::of(&scenario, 3, None).time(), time_of(catalogue, &text)))
}

/// Time of the scenario behind which a kernel's transfer ran, with what is known of its hosts \[s\].
fn truth(catalogue: &Arc<Catalogue>, place: &Path) -> f64 {
    let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    let known: serde_json::Value = serde_json::from_str(&read("known.json")).unwrap();
    let sizes: Vec<u64> = known["sizes"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
    let (pause, size, count) = (known["pause"].as_f64().unwrap(), sizes[0], sizes.len());
    let work = match pause {
        pause if pause < 0.0 => format!("kind = \"files\"\nsize = \"{size}B\"\n"),
        0.0 => format!("kind = \"files\"\nsize = \"{size}B\"\ncount = {count}\nwarm = true\n"),
        pause => format!(
            "kind = \"bursts\"\nwarm-up = \"{size}B\"\nsize = \"{size}B\"\ncount = {}\ninterval = \"{pause}s\"\n",
            count - 1
        ),
    };
    let text = read("scenario.toml");
    let text = text.replace("\"cubic\"", "\"cubic-kernel\"");
    let (before, _) = text.split_once("[[workload]]").unwrap();
    let hosts = "scheduler = \"linux-burst\"\nreinjection = \"upstream\"\n";
    let text = format!("{}{hosts}\n[[workload]]\n{work}", before.trim_end().to_owned() + "\n");
    time_of(catalogue, &text)
}

/// Over transfers of kernels with known truth: the goal of twins is that of `GOAL`.
#[test]
fn twins_of_kernels_take_as_long_as_the_originals() {
    let Some(place) = std::env::var_os("TWINS_KERNEL") else {
        eprintln!("SKIPPED: TWINS_KERNEL names no directory with transfers of kernels, as interop/twins.py makes them");
        return;
    };
    let catalogue = Arc::new(Catalogue::default());
    let mut places: Vec<PathBuf> = std::fs::read_dir(place).unwrap().map(|it| it.unwrap().path()).collect();
    places.sort();
    let hosts = asked("TWINS_AT", "client,server");
    let one = |place: &PathBuf| -> Result<Pair, String> {
        let known = std::fs::read_to_string(place.join("known.json")).map_err(|error| error.to_string())?;
        let known: serde_json::Value = serde_json::from_str(&known).map_err(|error| error.to_string())?;
        let files: Vec<PathBuf> = hosts.iter().map(|host| place.join(format!("{host}.pcapng"))).collect();
        let twin = CaptureInquiry::read(&files).twin(None).map_err(|error| error.to_string())?;
        std::fs::write(place.join("twin.toml"), &twin.scenario).map_err(|error| error.to_string())?;
        Ok((known["time_s"].as_f64().ok_or("no time")?, time_of(&catalogue, &twin.scenario)))
    };
    let pairs = in_parallel(&places, 0, &|| {}, &one).unwrap();
    for (place, (original, twin)) in places.iter().zip(&pairs) {
        let off = |time: f64| 100.0 * (time / original - 1.0);
        let (error, truth) = (off(*twin), off(truth(&catalogue, place)));
        let name = place.file_name().unwrap().display();
        println!("{name}: {original:.3} s, twin {twin:.3} s, {error:+.1} %, true scenario {truth:+.1} %");
    }
    compare(pairs.into_iter(), GOAL);
}

/// Drawn conditions that the test of truth runs, of seed 8; of seeds that are asked for.
const TESTED: u64 = 60;
const ASKED: u64 = 150;
/// Median error, and share of twins within a quarter, as percentages: reached at both ends of seed 8, and the goal.
const REACHED: (f64, f64) = (3.0, 85.0);
const GOAL: (f64, f64) = (10.0, 80.0);

#[test]
fn twins_take_as_long_as_the_originals() {
    let catalogue = Arc::new(Catalogue::default());
    let seeds = std::env::var("TWINS_SEEDS").ok();
    let (count, bounds) = if seeds.is_some() { (ASKED, GOAL) } else { (TESTED, REACHED) };
    let seeds: Vec<u64> = seeds.as_deref().unwrap_or("8").split(',').map(|seed| seed.parse().unwrap()).collect();
    let (hosts, scheduler) = (asked("TWINS_AT", "client,server"), std::env::var("TWINS_SCHEDULER").ok());
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let conditions: Vec<(u64, u64)> =
        seeds.into_iter().flat_map(|seed| (1..=count).map(move |number| (seed, number))).collect();
    let one = |it: &(u64, u64)| -> Result<_, String> { Ok(pair(&catalogue, *it, &hosts, scheduler.as_deref())) };
    let pairs = in_parallel(&conditions, 0, &|| {}, &one).unwrap();
    for (condition, (original, twin)) in conditions.iter().zip(&pairs).filter_map(|(it, pair)| Some((it, (*pair)?))) {
        println!("{condition:?}: {original:.3} s, twin {twin:.3} s, {:+.1} %", 100.0 * (twin / original - 1.0));
    }
    let compared = compare(pairs.into_iter().flatten(), bounds);
    assert!(6 * compared >= 5 * conditions.len(), "{compared} of {} conditions have one connection", conditions.len());
}

/// Returns the parts of a variable, or of what stands for it.
fn asked(variable: &str, otherwise: &str) -> Vec<String> {
    std::env::var(variable).unwrap_or_else(|_| otherwise.to_owned()).split(',').map(str::to_owned).collect()
}

/// Holds times of originals and twins to a median error and a share within a quarter; returns their number.
fn compare(pairs: impl Iterator<Item = Pair>, (most, least): (f64, f64)) -> usize {
    let mut errors: Vec<f64> = pairs.map(|(original, twin)| 100.0 * (twin / original - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    let within = 100.0 * errors.iter().filter(|it| **it <= 25.0).count() as f64 / errors.len() as f64;
    eprintln!("{} twins: median error {median:.1} %, {within:.1} % within 25 %", errors.len());
    assert!(median <= most, "median error {median:.2} %, where {most} % is the bound");
    assert!(within >= least, "{within:.2} % within 25 %, where {least} % is the bound");
    errors.len()
}

const BOTH: [&str; 2] = ["client", "server"];

/// Captures a run of a scenario at these hosts, and makes the twin.
fn twin_of(test: &str, text: &str, hosts: &[&str]) -> Twin {
    captured(test, text, hosts).twin(None).unwrap()
}

fn captured(test: &str, text: &str, hosts: &[&str]) -> CaptureInquiry {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("twins-{test}"));
    Ran::of(&scenario_of(&Arc::new(Catalogue::default()), text), 1, Some(&directory));
    let files: Vec<PathBuf> = hosts.iter().map(|host| directory.join(format!("{host}.pcapng"))).collect();
    let inquiry = CaptureInquiry::read(&files);
    std::fs::remove_dir_all(&directory).unwrap();
    inquiry
}

fn estimate<'a>(twin: &'a Twin, table: &str, key: &str) -> &'a Estimate {
    let found = twin.estimates.iter().find(|it| it.table == table && it.key == key);
    found.unwrap_or_else(|| panic!("no {table}.{key}:\n{}", twin.scenario))
}

/// The number in a quantity.
fn number(value: &str) -> f64 {
    let digits: String = value.trim_matches('"').chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().unwrap()
}

#[track_caller]
fn is_near(twin: &Twin, (table, key): (&str, &str), truth: f64, margin: f64) {
    let value = number(&estimate(twin, table, key).value);
    assert!((value / truth - 1.0).abs() <= margin, "{table}.{key} = {value}, truth {truth}:\n{}", twin.scenario);
}

#[track_caller]
fn is(twin: &Twin, (table, key): (&str, &str), value: &str) {
    assert_eq!(estimate(twin, table, key).value, value, "{table}.{key}:\n{}", twin.scenario);
}

/// Two paths with known values: one that is filled and overflows, one that loses by chance.
const TWO: &str = "[path.a]\nrate = \"20mbit\"\nrtt = \"20ms\"\nqueue = \"60p\"\n\
                   [path.b]\nrate = \"8mbit\"\nrtt = \"50ms\"\nqueue = \"100p\"\nloss = \"1%\"\nloss-up = \"0%\"\n\
                   [host]\ncongestion = \"cubic\"\nreceive-buffer = \"2MiB\"\n\
                   [[workload]]\nkind = \"files\"\nsize = \"20MB\"\n";

/// From a scenario to a capture at both ends and back: each value is what it was.
#[test]
fn values_come_back_from_a_capture_at_both_ends() {
    let twin = twin_of("both", TWO, &BOTH);
    let names: Vec<&str> =
        twin.estimates.iter().map(|it| it.table.as_str()).filter(|it| it.starts_with("path.")).collect();
    assert!(names.contains(&"path.a") && names.contains(&"path.b"), "{names:?}");
    is_near(&twin, ("path.a", "rate"), 20.0, 0.02);
    is_near(&twin, ("path.a", "rtt"), 20.0, 0.02);
    is_near(&twin, ("path.a", "queue"), 60.0, 0.05);
    is_near(&twin, ("path.b", "rate"), 8.0, 0.02);
    is_near(&twin, ("path.b", "rtt"), 50.0, 0.02);
    is_near(&twin, ("path.b", "loss"), 1.0, 0.35);
    assert!(number(&estimate(&twin, "path.a", "loss").value) < 0.1, "{}", twin.scenario);
    is_near(&twin, ("host", "receive-buffer"), f64::from(2 << 20), 0.001);
    is(&twin, ("host", "congestion"), "\"cubic\"");
    is(&twin, ("host", "profile"), "\"anabranch\"");
    is(&twin, ("workload", "size"), "\"20000000B\"");
    is(&twin, ("workload", "direction"), "\"down\"");
    assert_eq!(estimate(&twin, "path.a", "rate").confidence, Confidence::High);
    assert_eq!(estimate(&twin, "path.a", "queue").confidence, Confidence::High);
    assert!(twin.finished && twin.bytes == 20_000_000);
}

/// One end tells the same, less surely.
#[test]
fn values_come_back_from_a_capture_at_one_end() {
    for (host, rate, loss) in [("server", 0.1, 0.5), ("client", 0.1, 0.6)] {
        let twin = twin_of(host, TWO, &[host]);
        is_near(&twin, ("path.a", "rate"), 20.0, rate);
        is_near(&twin, ("path.a", "rtt"), 20.0, 0.03);
        is_near(&twin, ("path.b", "rate"), 8.0, rate);
        is_near(&twin, ("path.b", "loss"), 1.0, loss);
        is_near(&twin, ("host", "receive-buffer"), f64::from(2 << 20), 0.001);
        assert!(estimate(&twin, "path.a", "rate").confidence < Confidence::High, "{}", twin.scenario);
    }
}

/// A window that is the limit is the buffer, and a path that is not filled has a bound and says so.
#[test]
fn a_small_buffer_is_seen_and_a_path_with_room_says_so() {
    let text = "[path.a]\nrate = \"50mbit\"\nrtt = \"100ms\"\n[path.b]\nrate = \"50mbit\"\nrtt = \"120ms\"\n\
                [host]\nprofile = \"linux\"\nreceive-buffer = \"64KiB\"\n\
                [[workload]]\nkind = \"files\"\nsize = \"2MB\"\n";
    let twin = twin_of("small", text, &BOTH);
    is(&twin, ("host", "receive-buffer"), "\"65536B\"");
    assert_eq!(estimate(&twin, "host", "receive-buffer").confidence, Confidence::High);
    let queue = estimate(&twin, "path.a", "queue");
    assert!(queue.confidence == Confidence::Low && queue.range_words().starts_with("at least"), "{queue:?}");
    assert!(queue.seen.contains("never seen full"), "{queue:?}");
}

/// Reno halves its window, CUBIC leaves seven tenths, BBR sends by its own clock.
#[test]
fn congestion_controls_are_told_apart() {
    let text = |name: &str| {
        format!(
            "[path.a]\nrate = \"20mbit\"\nrtt = \"40ms\"\nqueue = \"60p\"\n[host]\nprofile = \"linux\"\n\
             congestion = \"{name}\"\n[[workload]]\nkind = \"files\"\nsize = \"30MB\"\n"
        )
    };
    for name in ["reno", "cubic-kernel", "bbr"] {
        let twin = twin_of(name, &text(name), &BOTH);
        is(&twin, ("host", "congestion"), &format!("\"{name}\""));
    }
}

/// Bursts with pauses, and files that are asked for one after the other.
#[test]
fn the_pattern_of_the_application_comes_back() {
    let paths = "[path.a]\nrate = \"20mbit\"\nrtt = \"20ms\"\n[path.b]\nrate = \"10mbit\"\nrtt = \"30ms\"\n";
    let bursts = format!(
        "{paths}[[workload]]\nkind = \"bursts\"\nsize = \"100kB\"\ncount = 5\ninterval = \"700ms\"\n\
         warm-up = \"150kB\"\n"
    );
    let twin = twin_of("bursts", &bursts, &BOTH);
    is(&twin, ("workload", "kind"), "\"bursts\"");
    is(&twin, ("workload", "size"), "\"100000B\"");
    is(&twin, ("workload", "warm-up"), "\"150000B\"");
    is(&twin, ("workload", "count"), "5");
    is_near(&twin, ("workload", "interval"), 700.0, 0.1);
    let files = format!(
        "{paths}[[workload]]\nkind = \"files\"\nsizes = [\"80kB\", \"30kB\", \"60kB\"]\nwarm = true\n\
         think = \"300ms\"\n"
    );
    let twin = twin_of("files", &files, &BOTH);
    is(&twin, ("workload", "kind"), "\"files\"");
    is(&twin, ("workload", "sizes"), "[\"80000B\", \"30000B\", \"60000B\"]");
    is_near(&twin, ("workload", "think"), 300.0, 0.1);
    let up = format!("{paths}[[workload]]\nkind = \"files\"\nsize = \"500kB\"\ndirection = \"up\"\n");
    is(&twin_of("up", &up, &BOTH), ("workload", "direction"), "\"up\"");
}

/// Plain TCP has one path and no MPTCP; a backup stays one; a path that fails and comes back does so in the twin.
#[test]
fn modes_and_outages_come_back() {
    let plain = "[path.a]\nrate = \"20mbit\"\nrtt = \"20ms\"\n[host]\nmultipath = false\n\
                 [[workload]]\nkind = \"files\"\nsize = \"1MB\"\n";
    let twin = twin_of("plain", plain, &BOTH);
    is(&twin, ("host", "multipath"), "false");
    assert!(!twin.multipath);
    let backup = "[path.a]\nrate = \"20mbit\"\nrtt = \"20ms\"\n\
                  [path.b]\nrate = \"20mbit\"\nrtt = \"20ms\"\nbackup = true\n\
                  [host]\nprofile = \"linux\"\n[[workload]]\nkind = \"files\"\nsize = \"3MB\"\n";
    let twin = twin_of("backup", backup, &BOTH);
    is(&twin, ("path.b", "backup"), "true");
    assert!(estimate(&twin, "path.b", "rate").seen.contains("carried no data"), "{}", twin.scenario);
    let fails = format!(
        "{TWO}[[change]]\nat = \"1s\"\npath = \"a\"\nstate = \"blackhole\"\n\
                         [[change]]\nat = \"3s\"\npath = \"a\"\nstate = \"restore\"\n"
    );
    let twin = twin_of("fails", &fails, &BOTH);
    let states: Vec<&str> =
        (twin.estimates.iter()).filter(|it| it.key == "state").map(|it| it.value.as_str()).collect();
    assert_eq!(states, ["\"blackhole\"", "\"restore\""], "{}", twin.scenario);
    is_near(&twin, ("change", "at"), 1000.0, 0.1);
}

/// Captures of which nothing can be made give a true sentence; cut and shuffled ones give a scenario or a sentence.
#[test]
fn bad_captures_are_told() {
    let none = CaptureInquiry::read_bytes(vec![("empty".to_owned(), pcap(&[], 65_535))]).twin(None);
    assert_eq!(none, Err(TwinError::NoConnection { packets: 0 }));
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("twins-bad");
    let catalogue = Arc::new(Catalogue::default());
    Ran::of(&scenario_of(&catalogue, &TWO.replace("20MB", "1MB")), 1, Some(&directory));
    let records = records(&directory.join("server.pcapng"));
    std::fs::remove_dir_all(&directory).unwrap();
    let twin = |records: &[Record], snap: usize| {
        CaptureInquiry::read_bytes(vec![("bad".to_owned(), pcap(records, snap))]).twin(None)
    };
    assert_eq!(CaptureInquiry::read_bytes(Vec::new()).twin(Some(3)), Err(TwinError::NoSuch { wanted: 3, count: 0 }));
    // The server's address is 10.1.0.1: packets of one side only.
    let from_server: Vec<_> =
        records.iter().filter(|(_, it)| it.get(12..16) == Some(&[10, 1, 0, 1])).cloned().collect();
    assert!(from_server.len() > 100 && from_server.len() < records.len());
    assert_eq!(twin(&from_server, 65_535), Err(TwinError::OneSided));
    // The handshake alone.
    assert_eq!(twin(&records[..3], 65_535), Err(TwinError::NoData));
    let mut backwards = records.clone();
    backwards.reverse();
    let cut_at = |from: usize, to: usize| records[from..to].to_vec();
    let odd = [backwards, cut_at(0, records.len() / 2), cut_at(40, records.len()), cut_at(10, 60)];
    for (number, records) in odd.iter().enumerate() {
        for snap in [65_535, 96, 54, 30] {
            match twin(records, snap) {
                Ok(twin) => {
                    scenario_of(&catalogue, &twin.scenario);
                    assert!(twin.estimates.iter().all(|it| it.value != "\"NaN\""), "{number}: {}", twin.scenario);
                }
                Err(error) => assert!(error.to_string().len() > 10),
            }
        }
    }
    // Without the handshake nothing is sure.
    let late = twin(&odd[2], 65_535).unwrap();
    assert!(late.estimates.iter().all(|it| it.confidence == Confidence::Low), "{}", late.scenario);
    // Cut in the middle: what was seen, and that there was more.
    let half = twin(&odd[1], 65_535).unwrap();
    assert!(half.bytes < 1_000_000, "{}", half.bytes);
}

/// Whatever bytes and times change, what comes is a scenario or a sentence.
#[test]
fn damaged_captures_give_a_scenario_or_a_sentence() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("twins-damaged");
    let catalogue = Arc::new(Catalogue::default());
    Ran::of(&scenario_of(&catalogue, &TWO.replace("20MB", "300kB")), 1, Some(&directory));
    let ends = BOTH.map(|host| records(&directory.join(format!("{host}.pcapng"))));
    std::fs::remove_dir_all(&directory).unwrap();
    let (mut state, mut made) = (1_u64, 0);
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..150 {
        let mut files = ends.clone();
        for records in &mut files {
            for _ in 0..draw(60) {
                let record = draw(records.len());
                let (at, bytes) = &mut records[record];
                match draw(3) {
                    0 => *at = at.wrapping_add(1 << draw(62)),
                    _ => {
                        let place = draw(bytes.len());
                        bytes[place] = draw(256) as u8;
                    }
                }
            }
        }
        let captures = files.iter().map(|records| ("damaged".to_owned(), pcap(records, 65_535))).collect();
        match CaptureInquiry::read_bytes(captures).twin(None) {
            Ok(twin) => {
                made += 1;
                scenario_of(&catalogue, &twin.scenario);
            }
            Err(error) => assert!(error.to_string().len() > 10),
        }
    }
    assert!(made > 20, "{made} twins");
}
