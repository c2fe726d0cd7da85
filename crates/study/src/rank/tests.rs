//! Tests of the generator against the distribution in `docs/leaderboard.md`, and of the adversary against a planted
//! weakness.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::sweep::Baselines;
use anabranch_policy::Catalogue;
use anabranch_units::hex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

fn draws(count: u64) -> Vec<Condition> {
    (0..count).map(|number| Condition::drawn(1, number)).collect()
}

#[test]
fn the_schedulers_that_are_called_oracles_are_there_and_say_so() {
    let catalogue = Catalogue::default();
    for name in ORACLES {
        let entry = catalogue.schedulers.find(name).unwrap();
        assert!(entry.about.contains("oracle"), "{name}: {}", entry.about);
    }
}

#[test]
fn the_first_two_thousand_conditions_are_scenarios() {
    let catalogue = Arc::new(Catalogue::default());
    // Traces take most of the time: those of the first hundred are checked, and constant rates replace the others.
    let check = |condition: &Condition| {
        let mut condition = condition.clone();
        if condition.drawn.is_some_and(|(_, _, number)| number >= 100) && !condition.traces().is_empty() {
            condition.dynamics = Dynamics::None;
        }
        condition.scenario(&catalogue, &[]).map(drop)
    };
    anabranch_lab::in_parallel(&draws(2000), 0, &|| {}, &check).unwrap();
}

/// Counts of draws from a table are within five standard deviations of the expected ones.
#[test]
fn classes_come_as_often_as_stated() {
    let all = draws(4000);
    let count = |name: fn(&Condition) -> String| {
        let mut counts = BTreeMap::new();
        all.iter().for_each(|it| *counts.entry(name(it)).or_insert(0.0) += 1.0 / all.len() as f64);
        counts
    };
    let check = |name: fn(&Condition) -> String, expected: &[(&str, f64)]| {
        let counts = count(name);
        assert_eq!(counts.len(), expected.len(), "{counts:?}");
        for (class, share) in expected {
            let sd = (share * (1.0 - share) / all.len() as f64).sqrt();
            assert!((counts[*class] - share).abs() < 5.0 * sd, "{class}: {} for {share}", counts[*class]);
        }
    };
    check(|it| it.paths.len().to_string(), &[("2", 0.60), ("3", 0.25), ("4", 0.15)]);
    check(|it| it.congestion.to_owned(), &[("cubic", 0.4), ("lia", 0.2), ("reno", 0.2), ("bbr", 0.2)]);
    check(
        |it| it.loss.name().to_owned(),
        &[("none", 0.35), ("all paths", 0.25), ("some paths", 0.25), ("bursts on one", 0.15)],
    );
    check(
        |it| it.dynamics.name().to_owned(),
        &[
            ("none", 0.64),
            ("cellular", 0.12),
            ("varying", 0.08),
            ("failure", 0.08),
            ("shared bottleneck", 0.04),
            ("cross traffic", 0.04),
        ],
    );
    // Long transfers become medium ones where the paths carry too little, and a share of them is bulk.
    let works = count(|it| it.work.name().to_owned());
    for (class, share) in [("short", 0.22), ("warm", 0.18), ("web", 0.10), ("interactive", 0.05)] {
        assert!((works[class] - share).abs() < 0.03, "{class}: {works:?}");
    }
    let transfers = works["medium"] + works["long"] + works["bulk"];
    assert!((transfers - 0.45).abs() < 0.04 && works["medium"] > 0.23 && works["bulk"] > 0.01, "{works:?}");
    check(|it| it.receive_buffer.is_none().to_string(), &[("true", 0.3), ("false", 0.7)]);
}

#[test]
fn ranges_are_covered_and_kept() {
    let all = draws(4000);
    let paths = || all.iter().flat_map(|it| &it.paths);
    let covers = |values: Vec<f64>, low: f64, high: f64| {
        let within = |x: &f64| (low * 0.999..=high * 1.001).contains(x);
        assert!(values.iter().all(within), "{low} to {high}: {:?}", values.iter().find(|x| !within(x)));
        // Log-uniform draws reach the outer tenths of the range.
        let tenth = (high / low).powf(0.1);
        assert!(values.iter().any(|x| *x < low * tenth) && values.iter().any(|x| *x > high / tenth), "{low} to {high}");
    };
    covers(paths().map(|it| it.rate).collect(), 0.5, 1000.0);
    // Similar paths are up to 1.3 times as long as the one that they resemble.
    covers(paths().map(|it| it.rtt).collect(), 5.0, 600.0 * 1.3);
    let lossy = |burst: bool| paths().filter(move |it| it.loss > 0.0 && it.burst.is_some() == burst);
    covers(lossy(false).map(|it| it.loss).collect(), 1e-4, 5e-2);
    covers(lossy(true).map(|it| it.loss).collect(), 1e-3, 3e-2);
    covers(lossy(true).filter_map(|it| it.burst).collect(), 2.0, 10.0);
    covers(all.iter().filter_map(|it| it.receive_buffer).map(|it| it as f64).collect(), 65536.0, 16777216.0);
    // A cellular path keeps the jitter of the RTT that it had at first.
    let cellular = |it: &&Condition| matches!(it.dynamics, Dynamics::Cellular { .. });
    let jitters = all.iter().filter(|it| !cellular(it)).flat_map(|it| &it.paths);
    let jitters: Vec<f64> = jitters.filter_map(|it| Some(it.jitter?.0 / it.rtt)).collect();
    // Rounded to 10 µs, which on 5 ms is 0.2 %.
    assert!(jitters.iter().all(|it| (0.018..=0.202).contains(it)) && jitters.len() > paths().count() / 4);
    assert!(paths().all(|it| it.queue >= 10 && it.up >= 0.25));
    assert!(paths().any(|it| it.up < it.rate) && paths().any(|it| it.jitter.is_some_and(|(_, reorders)| reorders)));
    for it in &all {
        match &it.work {
            Work::File { size, class: Class::Short } | Work::Bursts { size, .. } => {
                assert!((15_000..=300_000).contains(size));
            }
            Work::File { size, class: Class::Medium } => assert!((300_000..=5_000_000).contains(size), "{size}"),
            Work::File { size, class: Class::Long } => assert!((5_000_000..=20_000_000).contains(size), "{size}"),
            _ => {}
        }
        match it.dynamics {
            Dynamics::Failure { at, back, .. } => assert!(at > 0.0 && back.is_none_or(|back| back > at + 0.49)),
            Dynamics::Shared { rate, .. } => {
                let sum: f64 = it.paths.iter().map(|path| path.rate).sum();
                assert!((0.299..0.801).contains(&(rate / sum)), "{rate} of {sum}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_condition_depends_on_no_other() {
    let alone = Condition::drawn(1, 37);
    assert_eq!(draws(50)[37], alone);
    assert_eq!(alone.name(), "drawn/1/37");
    assert_eq!(Condition::named("drawn/1/37"), Some(alone.clone()));
    for other in
        ["drawn/1", "drawn/1/x", "drawn/+1/37", "drawn/1/37/1", "drawn//", "1/37", "drawn/1/99999999999999999999"]
    {
        assert_eq!(Condition::named(other), None, "{other}");
    }
    // A choice that does not apply changes nothing: the fourth path of two.
    let two = draws(50).into_iter().find(|it| it.paths.len() == 2).unwrap();
    let (_, seed, number) = two.drawn.unwrap();
    let mut moved = Point::drawn(seed, number).coordinates().to_vec();
    *moved.last_mut().unwrap() = 0.123;
    assert_eq!(Condition { drawn: two.drawn, ..Condition::at(two.stem.clone(), &Point::of(&moved)) }, two);
}

/// A changed distribution is another set, and needs another number.
#[test]
fn the_frozen_set_stays_as_it_is() {
    let mut digest = Sha256::new();
    for number in 0..u64::from(FROZEN.1) {
        let condition = Condition::drawn(FROZEN.0, number);
        digest.update(condition.toml());
        condition.traces().iter().for_each(|(_, text)| digest.update(text));
    }
    assert_eq!(hex(&digest.finalize()), FROZEN_DIGEST);
    let mut digest = Sha256::new();
    (0..u64::from(FROZEN_DRIVES)).for_each(|number| digest.update(Condition::drive(FROZEN.0, number).toml()));
    assert_eq!(hex(&digest.finalize()), DIGEST_OF_DRIVES);
}

const FROZEN_DIGEST: &str = "544bea8e93eef28eba391282f3a0de0513fcd753b827d03528be92889aba3343";

const DIGEST_OF_DRIVES: &str = "71b1ba7665574f38791b62d21f4b4a55d0e919610a26414960d76d453a26ff3a";

/// Counts of networks are within five standard deviations of the expected ones; every drive is a scenario that draws.
#[test]
fn drives_follow_models_as_often_as_stated() {
    let catalogue = Arc::new(Catalogue::default());
    let all: Vec<Condition> = (0..2000).map(|number| Condition::drive(1, number)).collect();
    assert_eq!(Condition::named("drive/1/37").as_ref(), Some(&all[37]));
    assert_eq!((all[37].name().as_str(), Condition::named("drive/1/x")), ("drive/1/37", None));
    let networks: Vec<&Network> = all.iter().flat_map(|it| &it.paths).filter_map(|it| it.network.as_ref()).collect();
    assert_eq!(networks.len(), all.iter().map(|it| it.paths.len()).sum::<usize>());
    for (name, share) in [("leo", 0.3), ("lte", 0.3), ("5g", 0.2), ("wifi", 0.2)] {
        let found = networks.iter().filter(|it| it.name() == name).count() as f64 / networks.len() as f64;
        let sd = (share * (1.0 - share) / networks.len() as f64).sqrt();
        assert!((found - share).abs() < 5.0 * sd, "{name}: {found}");
    }
    let check = |condition: &Condition| {
        let scenario = condition.scenario(&catalogue, &[])?;
        assert!(scenario.is_random(), "{}", condition.toml());
        Ok::<_, anabranch_scenario::ScenarioError>(())
    };
    anabranch_lab::in_parallel(&all[..300], 0, &|| {}, &check).unwrap();
}

/// Drives have a column, and change no other figure.
#[test]
fn drives_count_in_their_own_column_alone() {
    let catalogue = Arc::new(Catalogue::default());
    let schedulers = ["min-rtt", "round-robin"].map(str::to_owned);
    let sets = [r#"workload=[{kind="files",size="50kB"}]"#.to_owned()];
    let board = |conditions: Vec<Condition>| {
        let league = League::new(&catalogue, conditions, &schedulers, Baselines::All, (1, 2), &sets).unwrap();
        Leaderboard::of(&league, &league.run(None, 1, &|| {}).unwrap()).unwrap()
    };
    let (alone, both) =
        (board(draws(3)), board([draws(3), vec![Condition::drive(1, 0), Condition::drive(1, 1)]].concat()));
    assert_eq!((alone.drives, both.drives, both.conditions, &both.digest), (0, 2, 3, &alone.digest));
    for (alone, both) in alone.standings.iter().zip(&both.standings) {
        assert!(alone.drives.is_none() && both.drives.is_some());
        assert_eq!((alone.to_best.mean, alone.p95, &alone.scheduler), (both.to_best.mean, both.p95, &both.scheduler));
    }
    assert_eq!(board(vec![Condition::drive(1, 0)]).conditions, 1, "drives alone are a leaderboard as well");
}

/// Two recordings of ten minutes with clocks, one of them with delays, in steps of a second.
fn recordings() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let row = |second: u64, rate: u64| format!("{},{rate}", 1_900_000_000 + second);
    let sky: Vec<String> = (0..600).map(|second| row(second, 40 + second % 90)).collect();
    let cell: Vec<String> = (60..660).map(|second| row(second, second % 37) + ",61").collect();
    std::fs::write(folder.path().join("sky.csv"), format!("time,mbps\n{}\n", sky.join("\n"))).unwrap();
    std::fs::write(folder.path().join("cell.csv"), format!("time,mbps,rtt_ms\n{}\n", cell.join("\n"))).unwrap();
    folder
}

/// Windows are of both recordings, of their values, and the same again; written beside the scenario they are read as
/// they are within.
#[test]
fn recorded_drives_follow_windows_of_recordings() {
    let catalogue = Arc::new(Catalogue::default());
    let folder = recordings();
    let drives = anabranch_recording::Drives::read(folder.path(), WINDOW).unwrap();
    let all: Vec<Condition> = (0..20).map(|number| Condition::recorded(&drives, 3, number).unwrap()).collect();
    assert_eq!(Condition::recorded(&drives, 3, 7).as_ref(), Some(&all[7]));
    assert_ne!(all[7].paths, all[8].paths);
    for condition in &all {
        let names: Vec<&str> =
            condition.paths.iter().filter_map(|path| path.network.as_ref()).map(Network::name).collect();
        assert_eq!(names, ["cell", "sky"], "{}", condition.toml());
        let inside = condition.scenario(&catalogue, &[]).unwrap();
        let place = tempfile::tempdir().unwrap();
        for (name, text) in condition.traces().into_iter().chain([(condition.file(), condition.toml())]) {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let said = inside.notes().join(" ");
        assert!(!said.contains("gap"), "windows have none: {said}");
        let file = place.path().join(condition.file());
        let written = anabranch_scenario::Scenario::load(&catalogue, file.to_str().unwrap(), &[]).unwrap();
        assert_eq!((inside.paths(), &inside.digest), (written.paths(), &written.digest), "{}", condition.name());
        assert!(condition.toml().contains("[path.a]\ntrace = { file = \"recorded-3-"), "{}", condition.toml());
        assert_eq!(condition.toml().matches("\ndelay = ").count(), 1, "one has its own: {}", condition.toml());
    }
    let schedulers = ["min-rtt", "round-robin"].map(str::to_owned);
    let sets = [r#"workload=[{kind="files",size="50kB"}]"#.to_owned()];
    let conditions = [vec![Condition::drawn(1, 0), Condition::drive(1, 0)], all[..2].to_vec()].concat();
    let league = League::new(&catalogue, conditions, &schedulers, Baselines::All, (1, 2), &sets).unwrap();
    let board = Leaderboard::of(&league, &league.run(None, 1, &|| {}).unwrap()).unwrap();
    assert_eq!((board.conditions, board.drives, board.recorded), (1, 1, 2));
    assert!(board.standings.iter().all(|it| it.drives.is_some() && it.recorded.is_some()));
}

#[test]
fn a_scenario_knows_whether_seeds_make_a_difference() {
    let catalogue = Arc::new(Catalogue::default());
    for condition in draws(60) {
        let scenario = condition.scenario(&catalogue, &[]).unwrap();
        let drawn = condition.loss != LossKind::None
            || condition.paths.iter().any(|path| path.jitter.is_some())
            || matches!(condition.dynamics, Dynamics::Cellular { .. } | Dynamics::Vary { .. });
        // Losses on some paths may be losses on none.
        let lossless = condition.paths.iter().all(|path| path.loss == 0.0);
        assert!(
            scenario.is_random() == drawn || (condition.loss == LossKind::Some && lossless),
            "{}",
            condition.toml()
        );
    }
}
