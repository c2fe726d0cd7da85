//! No regret: who takes the product loses nothing against plain TCP on the best of the paths, with the same control,
//! nor against the best path with all others as its backups, but for the conditions that `regret.txt` names.
#![allow(clippy::unwrap_used)]

use anabranch_policy::Catalogue;
use anabranch_study::rank::{Condition, Dynamics, Field, League};
use anabranch_study::sweep::{Baselines, Trial};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Seed of the conditions.
const SEED: u64 = 43;
/// Trials of a baseline on each path.
type Paths = [(String, Vec<Trial>)];

/// A baseline: its name, its trials, and the ratio to it from which on a condition is an exception.
type Baseline = (&'static str, fn(&Field) -> &Paths, f64);

const BASELINES: [Baseline; 2] = [
    ("plain TCP", |field| &field.trials.singles, 1.05),
    ("the best path with backups", |field| &field.trials.backups, 1.03),
];

/// Time of the first scheduler over that of the best of these: of means of logarithms over the seeds.
fn regret(field: &Field, paths: &Paths) -> f64 {
    let mean = |trials: &[Trial]| trials.iter().map(|trial| trial.time_s.ln()).sum::<f64>() / trials.len() as f64;
    let best = paths.iter().map(|(_, trials)| mean(trials)).min_by(f64::total_cmp).unwrap();
    (mean(&field.trials.systems[0]) - best).exp()
}

fn of_failures(condition: &Condition) -> bool {
    matches!(condition.dynamics, Dynamics::Failure { .. })
}

/// A path that carries a tenth of its rate in the other direction, or less, as access lines do.
fn is_asymmetric(condition: &Condition) -> bool {
    condition.paths.iter().any(|path| path.up * 9.0 < path.rate)
}

#[test]
fn exceptions_are_known_by_name() {
    let drawn = |from: u64| (from..).map(|number| Condition::drawn(SEED, number));
    let families: [(&str, Vec<Condition>); 4] = [
        ("drawn", drawn(0).take(200).collect()),
        ("drives", (0..200).map(|number| Condition::drive(SEED, number)).collect()),
        ("failures", drawn(200).filter(of_failures).take(200).collect()),
        ("asymmetric", drawn(200).filter(is_asymmetric).take(200).collect()),
    ];
    let catalogue = Arc::new(Catalogue::default());
    let schedulers = ["anabranch".to_owned()];
    let mut text = String::new();
    for (name, conditions) in families {
        let league = League::new(&catalogue, conditions, &schedulers, Baselines::All, (1, 2), &[]).unwrap();
        let fields = league.run(None, 0, &|| {}).unwrap();
        for (baseline, paths, most) in BASELINES {
            let ratio = |field: &Field| (field.condition.name(), regret(field, paths(field)));
            let ratios: Vec<(String, f64)> = fields.iter().map(ratio).collect();
            let slower: Vec<&(String, f64)> = ratios.iter().filter(|(_, ratio)| *ratio > most).collect();
            let mean = (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let (count, of) = (slower.len(), ratios.len());
            writeln!(text, "{name}, to {baseline}: {count} of {of} above {most}, geometric mean {mean:.3}").unwrap();
            slower.iter().for_each(|(name, ratio)| writeln!(text, "  {name} {ratio:.2}").unwrap());
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regret.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, known, "BLESS=1 cargo test -p anabranch-study --test regret, and say in the commit what moved");
}
