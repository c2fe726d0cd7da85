//! Faults planted in runs that are captured: the first sentence of the answer names each; and where none is planted, no
//! false cause is named.
//!
//! A small generator draws the links, the magnitude of the fault, the amount of data, its direction and the place of
//! the capture from a seed. `ANABRANCH_PLANTED_SEED` names another seed, whose faults are told and not judged, and
//! `ANABRANCH_CLEAN_SEEDS` others without faults, as `601..661`.
#![allow(clippy::unwrap_used)]

#[path = "planted_captures/draw.rs"]
mod draw;

use anabranch_lab::{Keep, in_parallel, run_watched};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use anabranch_why::{CaptureAnswer, CaptureInquiry, FaultKind, Judge, Judged, Limit};
use draw::{Planted, clean, planted};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Seeds, and how many of their twenty faults are named first: the judge was tuned on the former two, and the last was
/// drawn when its rules were done.
const NAMED: [(u64, usize); 3] = [(1, 20), (2, 20), (301, 17)];

/// Answers about the captures of a run, and its transfers.
type Asked = (Vec<CaptureAnswer>, Vec<Judged>);

/// Runs a scenario and asks about the captures of each list of hosts.
fn ask(it: &Planted, seed: u64, places: &[&[&str]]) -> Result<Asked, String> {
    let origin = Origin { scenario: "planted.toml".to_owned(), sets: Vec::new() };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    let catalogue = Arc::new(Catalogue::default());
    let scenario = Scenario::read(&catalogue, "planted", "planted.toml", &it.text, origin, &none)
        .map_err(|error| format!("{}: {error}\n{}", it.name, it.text))?;
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("planted-{seed}-{}", it.name));
    let keep = Keep { captures: Some(directory.clone()), ..Keep::default() };
    let spec = scenario.spec(seed);
    let mut judge = Judge::of(&spec);
    let run = run_watched(&scenario, seed, &keep, Some(&mut judge)).map_err(|error| error.to_string())?;
    let answer = |hosts: &&[&str]| {
        let files: Vec<PathBuf> = hosts.iter().map(|host| directory.join(format!("{host}.pcapng"))).collect();
        CaptureInquiry::read(&files).answer(None)
    };
    let answers = places.iter().map(answer).collect();
    std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    Ok((answers, judge.finish(&spec.workloads, &run.outcome)))
}

/// The first sentence of an answer.
fn first(answer: &CaptureAnswer) -> &str {
    answer.sentence.split(". ").next().unwrap()
}

/// True if the first sentence names the fault.
fn names(answer: &CaptureAnswer, it: &Planted) -> bool {
    it.words.iter().any(|words| words.iter().all(|word| first(answer).contains(word)))
}

/// Faults of a seed that are not named first, in words; and the number of all.
fn missed(seed: u64) -> (Vec<String>, usize) {
    let all = planted(seed);
    let answers = in_parallel(&all, 0, &|| {}, &|it| Ok::<_, String>(ask(it, seed, &[it.hosts])?.0.remove(0))).unwrap();
    let wrong = all.iter().zip(&answers).filter(|(it, answer)| !names(answer, it));
    let words =
        |(it, answer): (&Planted, &CaptureAnswer)| format!("{} from {:?}: {}", it.name, it.hosts, answer.sentence);
    (wrong.map(words).collect(), all.len())
}

#[test]
fn planted_faults_are_named_first() {
    let other = std::env::var("ANABRANCH_PLANTED_SEED").ok().map(|seed| vec![(seed.parse().unwrap(), 0)]);
    for (seed, least) in other.unwrap_or(NAMED.to_vec()) {
        let (wrong, all) = missed(seed);
        let named = all - wrong.len();
        eprintln!("seed {seed}: {named} of {all} named first\n{}", wrong.join("\n"));
        assert!(named >= least, "seed {seed}: {named} of {all} named first, {least} before");
    }
}

/// Kinds that a capture at one end alone hides, and the seed with which most of them were missed once.
const ONE_ENDED: ([&str; 3], u64) = (["send-buffer", "delayed-ack", "path-down"], 407);

#[test]
fn what_one_end_hides_is_named_at_either() {
    let (kinds, seed) = ONE_ENDED;
    let mut all = planted(seed);
    all.retain(|it| kinds.contains(&it.name));
    let answers = in_parallel(&all, 0, &|| {}, &|it| ask(it, seed, &[&["client"], &["server"]])).unwrap();
    for (it, (answers, _)) in all.iter().zip(&answers) {
        for (host, answer) in ["client", "server"].into_iter().zip(answers) {
            assert!(names(answer, it), "{} at the {host}: {}", it.name, answer.sentence);
        }
    }
}

/// Seeds of transfers without faults, each of which had a false cause once.
const CLEAN: [u64; 3] = [505, 608, 612];
/// Words that the answer about a transfer without faults never has.
const FAULTS: [&str; 9] = [
    "Nagle",
    "overtook",
    "delayed, by",
    "as if it were down",
    "share one link",
    "other traffic",
    "(bufferbloat)",
    "left slow start",
    "never arrived",
];

/// Shares of the time from the beginning of the first transfer to the end of the last, by limit. Between transfers the
/// application has nothing to send.
fn truth(judged: &[Judged]) -> BTreeMap<Limit, f64> {
    let begin = judged.iter().map(|it| it.bands.start()).min().unwrap();
    let end = judged.iter().map(|it| it.bands.start() + it.duration()).max().unwrap();
    let whole = end.since(begin);
    let mut shares = BTreeMap::from([(Limit::ApplicationSends, 1.0)]);
    for (cause, time) in judged.iter().flat_map(|it| it.bands.times()) {
        *shares.entry(Limit::ApplicationSends).or_default() -= time.per(whole);
        *shares.entry(cause.limit).or_default() += time.per(whole);
    }
    shares
}

/// Causes that an answer names and the run did not have for more than a tenth of the time.
fn invented(answer: &CaptureAnswer, truth: &BTreeMap<Limit, f64>) -> Vec<String> {
    let connection = answer.connection.as_ref().unwrap();
    // A path that could not be of use yet carried nothing, which is no fault of it.
    let is_true = |kind: FaultKind| matches!(kind, FaultKind::JoinLate | FaultKind::Unused);
    let faults = connection.faults.iter().filter(|it| !is_true(it.kind)).map(|it| it.text.clone());
    let words = FAULTS.iter().filter(|words| answer.sentence.contains(**words)).map(|words| (*words).to_owned());
    let mut shares: BTreeMap<Limit, f64> = BTreeMap::new();
    for share in &connection.directions[0].shares {
        *shares.entry(share.limit).or_default() += share.share;
    }
    let (named, share) = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let had = truth.get(&named).copied().unwrap_or(0.0);
    let is_false = share - had > 0.1 && had < share / 2.0;
    let limit = is_false.then(|| format!("{} in {share:.2} of the time, which had it in {had:.2}", named.name()));
    faults.chain(words).chain(limit).collect()
}

#[test]
fn no_cause_is_named_where_no_fault_is_planted() {
    let others = std::env::var("ANABRANCH_CLEAN_SEEDS").ok();
    let range = others.as_deref().and_then(|text| text.split_once(".."));
    let seeds = range.map_or(CLEAN.to_vec(), |(from, to)| (from.parse().unwrap()..to.parse().unwrap()).collect());
    let all: Vec<(u64, Planted)> =
        seeds.iter().flat_map(|seed| clean(*seed).into_iter().map(move |it| (*seed, it))).collect();
    let places: [&[&str]; 3] = [&["client", "server"], &["client"], &["server"]];
    let asked = in_parallel(&all, 0, &|| {}, &|(seed, it)| ask(it, *seed, &places)).unwrap();
    let mut wrong = Vec::new();
    for ((seed, it), (answers, judged)) in all.iter().zip(&asked) {
        let truth = truth(judged);
        for (hosts, answer) in places.iter().zip(answers) {
            let invented = invented(answer, &truth).join("; ");
            if !invented.is_empty() {
                wrong.push(format!("{} {seed} at {hosts:?}: {invented}: {}", it.name, answer.sentence));
            }
        }
    }
    eprintln!("{} of {} answers name a false cause\n{}", wrong.len(), 3 * all.len(), wrong.join("\n"));
    assert!(wrong.is_empty() || range.is_some());
}
