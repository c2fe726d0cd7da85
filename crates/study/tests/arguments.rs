//! Arguments behind the causes of failed statements, as bounds: each is computed from the study's own scenario, and
//! holds in runs of it. The `cause` of a statement names its test.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Keep, Measured, run};
use anabranch_policy::Catalogue;
use anabranch_policy::forecast::{Conditions, Dpsaf, Forecast, Forecaster, Late};
use anabranch_units::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// LATE as the studies have it.
const LATE: &str = "late:phase_aware=true";

/// Every test that a cause names is here, and every argument here is the cause of some statement.
#[test]
fn causes_name_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut named = BTreeSet::new();
    for paper in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(paper.unwrap().path()).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap().replace("\\\n", "");
            let mut rest = text.as_str();
            while let Some((_, behind)) = rest.split_once("(test `") {
                let (name, behind) = behind.split_once('`').unwrap();
                named.insert(name.to_owned());
                rest = behind;
            }
        }
    }
    let source = include_str!("arguments.rs");
    let tests = source.split("#[test]\nfn ").skip(1).filter_map(|text| text.split_once('('));
    let tests: BTreeSet<String> =
        tests.map(|(name, _)| name.to_owned()).filter(|name| name != "causes_name_their_tests").collect();
    assert_eq!(named, tests);
}

/// Makes a run of a study's scenario with this scheduler.
fn measured(study: &str, scheduler: &str, sets: &[&str], seed: u64) -> Measured {
    let scheduler = format!("host.scheduler={scheduler}");
    let measured = run_of(study, &sets.iter().copied().chain([scheduler.as_str()]).collect::<Vec<_>>(), seed);
    assert!(measured.finished, "{study} with {scheduler}, seed {seed}");
    measured
}

/// Makes a run of a study's scenario with these settings.
fn run_of(study: &str, sets: &[&str], seed: u64) -> Measured {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = anabranch_study::load(&Arc::new(Catalogue::default()), study, &sets).unwrap();
    run(&scenario, seed, &Keep::default()).unwrap().measured
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn conditions(rtt_ms: u64, cwnd: u32, loss: f64) -> Conditions {
    let rtt = Duration::from_millis(rtt_ms);
    let rto = rtt + Duration::from_millis(200);
    Conditions { rtt, rto, cwnd, ssthresh: Some(cwnd), loss, max_cwnd: None }
}

/// One file of 1 MB over the paths of `late/fig11`, which are alike.
const ONE_FILE: &str = "workload=[{ kind = \"files\", size = \"1MB\", count = 1, warm = true, warm-up = \"200kB\" }]";
const NO_LOSS: [&str; 2] = ["path.p1.loss=0%", "path.p2.loss=0%"];

/// LATE on equal paths: within half a round trip of the master its slave delivers one window exactly. So the slave has
/// the first `w` segments, the master the next `w`, and both leave at the same time over links of the same rate: when
/// the slave's last segment arrives, all of the master's but the last are there. Of each `2w` segments `w - 1` are out
/// of order; turn by turn none would be.
#[test]
fn on_equal_paths_lates_two_blocks_overlap() {
    let mut forecast = Forecaster::new(Late::default());
    for w in 2..=64 {
        let delivered = forecast.expected(Duration::from_millis(10), &conditions(20, w, 0.0));
        assert!((delivered - f64::from(w)).abs() < 1e-9, "{delivered} segments for a window of {w}");
    }
    let of_window = |w: f64| (w - 1.0) / (2.0 * w);

    // Windows stay above ten segments: the path holds 17, and its queue 36.
    let sets = [&[ONE_FILE][..], &NO_LOSS].concat();
    let share = |scheduler: &str| {
        let run = measured("late/fig11", scheduler, &sets, 1);
        run.counted.count("ofo_count") as f64 / run.counted.count("segments_sent") as f64
    };
    let (late, min_rtt) = (share("late"), share("min-rtt"));
    // A round in which a loss is repaired has fewer: with files of 0.5 to 8 MB, 0.40 to 0.44 of all segments are.
    assert!(
        late >= 0.8 * of_window(10.0),
        "{late} of LATE's segments are out of order, about {} must be",
        of_window(10.0)
    );
    assert!(min_rtt < of_window(10.0) / 1.5, "turn by turn there are fewer: {min_rtt}");
    // A forecast that begins in the round under way gives the slave less, so that the blocks overlap less.
    let aware = share(LATE);
    assert!(min_rtt < aware && aware < late, "{min_rtt}, {aware}, {late}");

    // The same holds for the twenty files of Fig. 11.
    for seed in 1..=3 {
        let count = |scheduler: &str| measured("late/fig11", scheduler, &[], seed).counted.count("ofo_count");
        let (min_rtt, aware, late) = (count("min-rtt"), count(LATE), count("late"));
        assert!(min_rtt < aware && aware < late, "seed {seed}: {min_rtt}, {aware}, {late}");
    }
}

/// The links of Fig. 11 are full: without competing TCP, twenty files have under every scheduler at least 94 % of the
/// payload that two links of 10 Mbit/s can carry, so that none can have 6.4 % more goodput than another. Schedulers
/// still differ in the shares of the files: each has more than the twentieth part of the links that equal shares would
/// give it.
#[test]
fn the_links_of_late_fig11_are_full() {
    // Payload of a full segment, 1500 B on the wire: the file takes one segment more than it would with larger ones.
    let sets = [&[ONE_FILE][..], &NO_LOSS].concat();
    let alone = measured("late/fig11", "min-rtt", &sets, 1);
    assert_eq!(
        (alone.counted.count("retransmitted"), alone.counted.count("reinjected_bytes")),
        (0, 0),
        "nothing is sent twice"
    );
    let payload = 1e6 / (alone.counted.count("segments_sent") - 1) as f64;
    assert!(
        (1400.0..1460.0).contains(&payload),
        "{payload} B in each of {} segments",
        alone.counted.count("segments_sent")
    );
    let capacity = 2.0 * 10e6 * payload / 1500.0;

    for scheduler in ["min-rtt", "blest", LATE] {
        let runs: Vec<Measured> = (1..=5).map(|seed| measured("late/fig11", scheduler, &[], seed)).collect();
        assert!(runs.iter().all(|run| run.goodput_bps < capacity), "{scheduler}: more than the links can carry");
        let used = mean(runs.iter().map(|run| run.goodput_bps)) / capacity;
        assert!(used > 0.94, "{scheduler} has {used} of {capacity} bit/s, which leaves {} to gain", 1.0 / used - 1.0);
        let share = mean(runs.iter().map(|run| run.mean_goodput_bps)) / (capacity / 20.0);
        assert!((1.0..1.06).contains(&share), "{scheduler}: mean goodput is {share} of an equal share");
    }
}

/// A file of 25 kB is 18 segments. While a segment travels on the slow path of Fig. 10, LATE expects 55 of the fast one
/// and DPSAF 60: both put the whole file on the fast path, and their schedules are the same. The estimates that LATE's
/// text gives cannot make a difference of 26.68 % there.
#[test]
fn both_forecasts_exceed_a_file_of_18_segments() {
    let (horizon, fast) = (Duration::from_millis(50), conditions(10, 10, 0.005));
    let late = Forecaster::new(Late::default()).expected(horizon, &fast);
    let dpsaf = Forecaster::new(Dpsaf::default()).expected(horizon, &fast);
    let file = 25_000_f64 / 1420.0;
    assert!(late > 3.0 * file && dpsaf > 3.0 * file, "{late} and {dpsaf} segments, the file has {file}");

    // On a connection whose windows are ten segments again, and one file after another at 0.5 % loss.
    let burst = "workload=[{ kind = \"bursts\", size = \"25kB\", interval = \"5s\", warm-up = \"200kB\" }]";
    let files = "workload=[{ kind = \"files\", size = \"25kB\", count = 20, warm = true, warm-up = \"200kB\" }]";
    let of = |scheduler: &str, workload: &str, seed| {
        let run = measured("late/fig10", scheduler, &[workload, "run.decisions=true"], seed);
        (run.decisions.unwrap(), run.completion_s.unwrap())
    };
    for (workload, seeds) in [(burst, 1..=1), (files, 1..=10)] {
        for seed in seeds {
            let (late, dpsaf) = (of(LATE, workload, seed), of("dpsaf-r", workload, seed));
            assert!(!late.0.contains("cell"), "seed {seed}: {}", late.0);
            assert_eq!(late, dpsaf, "seed {seed}");
        }
    }
    let (min_rtt, _) = of("min-rtt", burst, 1);
    assert_eq!(min_rtt, "10 wlan, 8 cell", "min-RTT does use the slow path");
}

/// LIA at a ratio of delays of 3 (ACKSP Fig. 4): by Eqs. (12) and (13) it has what TCP has on its best path, which is
/// path 1 with and without the detour of ACKs. Its round trip falls from 60 to 40 ms, so that it gains a half (Eq. 15),
/// not 77 %.
#[test]
fn lia_gains_a_half_at_a_ratio_of_3() {
    let (d0, d1) = (10.0, 30.0);
    let rate = |loss: f64, rtt: f64| (1.0 / loss).sqrt() / rtt;
    let best = |rtts: [f64; 2]| rate(0.01, rtts[0]).max(rate(0.0002, rtts[1]));
    let (own, detour) = (best([2.0 * d0, 2.0 * d1]), best([2.0 * d0, d0 + d1]));
    let bound = 100.0 * (detour / own - 1.0);
    assert!((bound - 50.0).abs() < 1e-9, "{bound} %");

    let times = ["path.path1.delay=30ms", "workload.0.duration=45s", "run.windows=[[\"7.5s\", \"45s\"]]"];
    let goodput = |acks: &str, seed| {
        let sets = [&times[..], &["host.congestion=lia", acks]].concat();
        run_of("acksp/fig04", &sets, seed).windows[0].goodput_bps
    };
    let gain = |seed| {
        let detour = goodput("host.ack-path={ name = \"fixed\", path = \"path0\" }", seed);
        100.0 * (detour / goodput("host.ack-path=own", seed) - 1.0)
    };
    let gains: Vec<f64> = (1..=8).map(gain).collect();
    let mean = mean(gains.iter().copied());
    assert!((mean - bound).abs() < 15.0 && gains.iter().all(|gain| *gain < 77.0), "{mean} %: {gains:?}");
}
