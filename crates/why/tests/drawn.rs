//! Faults planted in drawn networks: the first sentence names each.
//!
//! `ANABRANCH_FAULTS=30 ANABRANCH_SEED=7 cargo test -p anabranch-why --test drawn -- --nocapture` draws others.
#![allow(clippy::unwrap_used)]

mod plant;

use anabranch_lab::{Keep, in_parallel, run};
use anabranch_policy::Catalogue;
use anabranch_scenario::file::MeasureName;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use anabranch_units::Seed;
use anabranch_why::{Alternatives, Answer, Inquiry, Others};
use plant::{Planted, draw, kinds};
use std::sync::Arc;

/// Repetitions of each run; seeds that tell of the effect of a fault; other seeds that try a promise.
const EFFORT: (usize, u64, u64) = (3, 3, 8);
/// Repetitions, seeds of the effect and other seeds where a person asks for the test by `ANABRANCH_FAULTS`.
const MORE_EFFORT: (usize, u64, u64) = (5, 8, 20);
/// Least effect of a fault: the share by which the run is worse with it.
const MATTERS: f64 = 0.2;
/// Draws until a fault matters.
const DRAWS: u64 = 12;

fn load(text: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "fault.toml".to_owned(), sets: sets.to_vec() };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    Scenario::read(&Arc::new(Catalogue::default()), "fault", "fault.toml", text, origin, &none)
}

fn ask(text: &str, seed: u64) -> Answer {
    let (scenario, catalogue) = (load(text, &[]).unwrap(), Arc::new(Catalogue::default()));
    let load = |more: &[String]| load(text, more);
    let alternatives = Alternatives::of(&scenario, &catalogue, &Others::default(), &load);
    Inquiry::new(&scenario, alternatives, seed, effort().0).run(1, &load, &|_, _| {}).unwrap()
}

/// The mean of the measure over these seeds; `None` if transfers did not finish.
fn mean(scenario: &Scenario, mut seeds: std::ops::Range<u64>) -> Option<f64> {
    if !scenario.is_random() {
        seeds.end = seeds.start + 1;
    }
    let (measure, count) = (scenario.measure, seeds.end - seeds.start);
    let value = |seed| {
        let measured = run(scenario, seed, &Keep::default()).unwrap().measured;
        (!measured.is_censored(measure)).then(|| measured.value(measure))
    };
    Some(seeds.map(value).sum::<Option<f64>>()? / count as f64)
}

/// The effect of a fault: how much worse the run is with it; infinite if it does not finish.
fn effect(planted: &Planted) -> Option<f64> {
    let (clean, with) = (load(&planted.clean, &[]).unwrap(), load(&planted.text, &[]).unwrap());
    let before = mean(&clean, 101..101 + effort().1)?;
    let Some(after) = mean(&with, 101..101 + effort().1) else { return Some(f64::INFINITY) };
    Some(if clean.measure == MeasureName::Goodput { before / after - 1.0 } else { after / before - 1.0 })
}

struct Verdict {
    name: String,
    effect: f64,
    ok: bool,
    sentence: String,
    promises: Vec<String>,
    broken: usize,
    kept: usize,
    text: String,
    runs: usize,
}

fn judge(planted: &Planted, effect: f64) -> Verdict {
    let answer = ask(&planted.text, 11);
    let first = answer.sentence.split(". ").next().unwrap();
    let ok = planted.words.iter().all(|group| group.iter().any(|word| first.contains(word.as_str())));
    let (mut promises, mut broken, mut kept) = (Vec::new(), 0, 0);
    let base = load(&planted.text, &[]).unwrap();
    for index in [answer.fault, answer.remedy].into_iter().flatten() {
        let tried = &answer.counterfactuals[index];
        let promised = tried.difference.filter(|it| tried.unfinished_runs == 0 && it.mean != 0.0);
        let Some(difference) = promised else { continue };
        let with = load(&planted.text, &tried.sets).unwrap();
        let (Some(before), Some(after)) = (mean(&base, 1001..1001 + effort().2), mean(&with, 1001..1001 + effort().2))
        else {
            continue;
        };
        let had = after - before;
        let good = (had - difference.mean).abs() <= 0.25 * difference.mean.abs();
        if good {
            kept += 1
        } else {
            broken += 1
        }
        let inside = (had - difference.mean).abs() <= difference.half.unwrap_or(0.0);
        promises.push(format!(
            "{}{}: promised {:.4} ± {:.4} (n {}), had {had:.4}",
            if good {
                ""
            } else if inside {
                "BROKEN, inside its interval: "
            } else {
                "BROKEN "
            },
            tried.what,
            difference.mean,
            difference.half.unwrap_or(0.0),
            difference.n
        ));
    }
    let runs = answer.runs;
    Verdict {
        name: planted.name.clone(),
        effect,
        ok,
        sentence: answer.sentence.clone(),
        promises,
        broken,
        kept,
        text: planted.text.clone(),
        runs,
    }
}

/// A network without a planted fault: no fault is named, and the share of those in which a policy is.
#[test]
fn a_drawn_network_without_a_fault_has_none() {
    let (draws, seed) = (number("ANABRANCH_CLEAN", 4), number("ANABRANCH_SEED", 1));
    let numbers: Vec<u64> = (0..draws).collect();
    let one = |number: &u64| {
        let text = plant::Base::draw(&mut Seed(seed).stream(&format!("clean/{number}"))).text();
        let answer = ask(&text, 11);
        let gain = |index: usize| {
            let tried = &answer.counterfactuals[index];
            (tried.kind, tried.difference.map_or(0.0, |it| it.mean.abs() / answer.value.mean))
        };
        Ok::<_, String>((answer.fault.map(gain), text, answer.sentence.clone()))
    };
    let answers = in_parallel(&numbers, 2, &|| {}, &one).unwrap();
    for (fault, text, sentence) in &answers {
        eprintln!("{fault:?} {sentence}");
        if fault.is_some() {
            eprintln!("---\n{text}---");
        }
    }
    let false_ones = answers.iter().filter(|(fault, ..)| fault.is_some_and(|(_, gain)| gain > 0.1)).count();
    assert_eq!(false_ones, 0, "of {draws}");
}

fn effort() -> (usize, u64, u64) {
    if std::env::var_os("ANABRANCH_FAULTS").is_some() { MORE_EFFORT } else { EFFORT }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Draws until the fault matters, and judges it.
fn plant(index: u64, seed: u64) -> Option<Verdict> {
    let kinds = kinds();
    let kind = &kinds[(index % kinds.len() as u64) as usize];
    (0..DRAWS).find_map(|number| {
        let planted = draw(kind, Seed(seed), index / kinds.len() as u64 * 1000 + number)?;
        if planted.is_rhythm {
            return Some(judge(&planted, 0.0));
        }
        let effect = effect(&planted)?;
        (effect >= MATTERS).then(|| judge(&planted, effect))
    })
}

#[test]
fn each_planted_fault_is_named_first() {
    let (faults, seed) = (number("ANABRANCH_FAULTS", 15), number("ANABRANCH_SEED", 1));
    let order: Vec<u64> = {
        let mut all: Vec<u64> = (0..kinds().len() as u64 * (1 + faults / kinds().len() as u64)).collect();
        let mut stream = Seed(seed).stream("order");
        for n in (1..all.len()).rev() {
            all.swap(n, stream.below(n as u64 + 1) as usize);
        }
        all
    };
    let jobs = number("ANABRANCH_JOBS", 2) as usize;
    let verdicts = in_parallel(&order[..(faults as usize).min(order.len())], jobs, &|| {}, &|index| {
        Ok::<_, String>((*index, plant(*index, seed)))
    })
    .unwrap();
    let (mut named, mut all, mut kept, mut broken, mut runs) = (0, 0, 0, 0, 0);
    for (index, verdict) in &verdicts {
        let Some(it) = verdict else {
            eprintln!("-- {}: no draw matters", kinds()[(*index % kinds().len() as u64) as usize].0);
            continue;
        };
        all += 1;
        named += usize::from(it.ok);
        kept += it.kept;
        broken += it.broken;
        runs += it.runs;
        eprintln!("{} {}: {:.0} %: {}", if it.ok { "ok" } else { "MISSED" }, it.name, 100.0 * it.effect, it.sentence);
        it.promises.iter().for_each(|promise| eprintln!("     {promise}"));
        if !it.ok || it.broken > 0 {
            eprintln!("---\n{}---", it.text);
        }
    }
    eprintln!("named first: {named} of {all}; promises kept on other seeds: {kept} of {}; {runs} runs", kept + broken);
    assert!(10 * named >= 9 * all, "named first: {named} of {all}");
    assert!(20 * kept >= 17 * (kept + broken), "promises kept: {kept} of {}", kept + broken);
}
