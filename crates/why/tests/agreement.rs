//! The test of truth: over drawn conditions, the judge of a capture names the same limit as the judge of the run, which
//! knows everything.
//!
//! The judge was tuned on the conditions of seed 7, and one change to it was kept for what it gave on seed 8. Seed 9
//! was not looked at before its figures were written down.
#![allow(clippy::unwrap_used)]

use anabranch_capture::EPOCH;
use anabranch_lab::{Keep, in_parallel, run_watched};
use anabranch_policy::Catalogue;
use anabranch_why::{Bands, CaptureInquiry, Judge, Judged};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Drawn conditions of each seed.
const CONDITIONS: u64 = 150;
const SEEDS: [u64; 2] = [8, 9];

/// Places at which a run is captured: both ends, the sender's, the receiver's.
const PLACES: [(&str, &[&str]); 3] =
    [("both ends", &["client", "server"]), ("the sender", &["server"]), ("the receiver", &["client"])];

/// One in so many conditions is captured at one end alone as well.
const ONE_ENDED: u64 = 3;

/// Shares of the time with the same limit that are reached, as percentages: of all time, and the mean of conditions.
const REACHED: [(f64, f64); 3] = [(91.5, 90.1), (86.4, 81.4), (75.5, 78.0)];

/// Time of a condition, and the part with the same limit for each place that was looked at \[s\].
type Agreement = (f64, [Option<f64>; 3]);

#[test]
fn the_judge_of_a_capture_agrees_with_that_of_the_run() {
    let catalogue = Arc::new(Catalogue::default());
    let conditions: Vec<(u64, u64)> =
        SEEDS.into_iter().flat_map(|seed| (1..=CONDITIONS).map(move |number| (seed, number))).collect();
    let results = in_parallel(&conditions, 0, &|| {}, &|it| condition(&catalogue, *it)).unwrap();
    for (place, ((name, _), (least, least_mean))) in PLACES.iter().zip(REACHED).enumerate() {
        let seen = || results.iter().filter_map(|(time, same)| Some((*time, same[place]?)));
        let (whole, same) = seen().fold((0.0, 0.0), |(whole, same), it| (whole + it.0, same + it.1));
        let mean = seen().map(|(time, same)| same / time).sum::<f64>() / seen().count() as f64;
        let (share, mean) = (100.0 * same / whole, 100.0 * mean);
        for seed in SEEDS {
            let of_seed = conditions.iter().zip(&results).filter(|(it, _)| it.0 == seed);
            let seen = of_seed.filter_map(|(_, (time, same))| Some((*time, same[place]?)));
            let (whole, same) = seen.fold((0.0, 0.0), |(whole, same), it| (whole + it.0, same + it.1));
            eprintln!("captured at {name}, seed {seed}: the same limit in {:.1} % of the time", 100.0 * same / whole);
        }
        eprintln!(
            "captured at {name}: the same limit in {share:.1} % of the time, {mean:.1} % in the mean of conditions"
        );
        assert!(share >= least, "captured at {name}: {share:.2} % of the time, {least} % before");
        assert!(mean >= least_mean, "captured at {name}: {mean:.2} % in the mean, {least_mean} % before");
    }
}

fn condition(catalogue: &Arc<Catalogue>, (seed, number): (u64, u64)) -> Result<Agreement, String> {
    let name = format!("drawn/{seed}/{number}");
    let scenario = anabranch_study::load(catalogue, &name, &[]).map_err(|error| error.to_string())?;
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("agreement-{seed}-{number}"));
    let keep = Keep { captures: Some(directory.clone()), ..Keep::default() };
    let mut judge = Judge::default();
    let run = run_watched(&scenario, 3, &keep, Some(&mut judge)).map_err(|error| error.to_string())?;
    let judged = judge.finish(&scenario.spec(3).workloads, &run.outcome);
    let time = judged.iter().map(|it| it.duration().as_secs_f64()).sum();
    let same = PLACES.map(|(_, hosts)| {
        if hosts.len() < 2 && !number.is_multiple_of(ONE_ENDED) {
            return None;
        }
        let files: Vec<PathBuf> = hosts.iter().map(|host| file(&directory, host)).collect();
        let bands = CaptureInquiry::read(&files).bands();
        let of = |it: &Judged| {
            let found = bands.get(it.connection)?;
            Some(common(&it.bands, found[1].as_ref().or(found[0].as_ref())?))
        };
        Some(judged.iter().filter_map(of).sum())
    });
    std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    Ok((time, same))
}

fn file(directory: &Path, host: &str) -> PathBuf {
    directory.join(format!("{host}.pcapng"))
}

/// The time in which both have the same limit \[s\]. Times of a capture begin at [`EPOCH`].
fn common(truth: &Bands, found: &Bands) -> f64 {
    let mut nanos = 0;
    let mut rest = found.iter().peekable();
    for band in truth.iter() {
        let (from, to) = (band.from + EPOCH, band.to + EPOCH);
        while let Some(other) = rest.peek().filter(|other| other.from < to) {
            if other.to > from && other.cause.limit == band.cause.limit {
                nanos += other.to.min(to).since(other.from.max(from)).as_nanos();
            }
            if other.to > to {
                break;
            }
            rest.next();
        }
    }
    nanos as f64 / 1e9
}
