//! Over drawn conditions: the intervals add up to the nanosecond, and a run is the same with and without the judge.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Keep, run, run_watched};
use anabranch_policy::Catalogue;
use anabranch_why::{Bands, Judge, Limit};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Drawn conditions that are played.
const CONDITIONS: usize = 60;

fn check(bands: &Bands, length: anabranch_units::Duration) {
    let mut end = None;
    let mut sum = 0;
    for band in bands.iter() {
        assert!(band.from < band.to, "none is empty");
        assert!(end.is_none_or(|end| end == band.from), "each begins where the one before ends");
        end = Some(band.to);
        sum += band.length().as_nanos();
    }
    assert_eq!(sum, length.as_nanos());
}

#[test]
fn times_add_up_and_the_judge_changes_nothing() {
    let catalogue = Arc::new(Catalogue::default());
    let mut seen = BTreeSet::new();
    for number in 1..=CONDITIONS {
        let name = format!("drawn/7/{number}");
        let scenario = anabranch_study::load(&catalogue, &name, &[]).unwrap();
        let mut judge = Judge::default();
        let watched = run_watched(&scenario, 3, &Keep::default(), Some(&mut judge)).unwrap();
        assert_eq!(watched.measured, run(&scenario, 3, &Keep::default()).unwrap().measured, "{name}");
        let judged = judge.finish(&scenario.spec(3).workloads, &watched.outcome);
        assert!(!judged.is_empty(), "{name}");
        for judged in judged {
            let transfer = watched.outcome.transfers.iter().find(|it| it.label == judged.label);
            let transfer = transfer.filter(|it| it.connection == judged.connection).unwrap();
            let end = transfer.finished.unwrap_or(watched.outcome.end);
            let length = end.since(transfer.started);
            check(&judged.bands, length);
            judged.paths.iter().for_each(|path| check(path, length));
            seen.extend(judged.bands.iter().map(|band| band.cause.limit));
        }
    }
    // The generator leads to most of the limits there are.
    for limit in [Limit::Handshake, Limit::Join, Limit::SlowStart, Limit::CongestionWindow, Limit::PathFull] {
        assert!(seen.contains(&limit), "{limit:?} of {seen:?}");
    }
}
