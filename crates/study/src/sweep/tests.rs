//! Tests of campaigns: errors, independence of chunks, shares and interruptions, and runs that break.
#![allow(clippy::unwrap_used)]

use super::*;
use anabranch_lab::statistic::Cell;
use anabranch_policy::scheduler::{Entry, Scheduler};
use anabranch_policy::{Catalogue, Decision, View};
use anabranch_units::Instant;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Six conditions of a few milliseconds.
const SWEEP: &str = r#"
schedulers = ["min-rtt", "redundant"]
baselines = true
metrics = ["completion-time", "path-share:b"]

[[axis]]
key = "path.b.delay"
name = "delay"
values = ["5ms", "50ms"]

[[axis]]
key = "path.a.loss"
uniform = ["0.5%", "4%"]

[draw]
method = "latin-hypercube"
count = 3

[repeat]
count = 2

[scenario.path.a]
rate = "8mbit"
delay = "10ms"

[scenario.path.b]
rate = "4mbit"
delay = "20ms"

[[scenario.workload]]
kind = "files"
size = "40kB"
"#;

fn read(text: &str) -> Campaign {
    Campaign::read(&Arc::new(Catalogue::default()), "test.toml", text, None).unwrap()
}

fn refused(text: &str) -> (String, String) {
    let error = Campaign::read(&Arc::new(Catalogue::default()), "test.toml", text, None).err().unwrap();
    let help = error.help().unwrap_or_default();
    (format!("{error} ({help})"), error.quoted().unwrap_or_default().to_owned())
}

fn digest(store: &Store, campaign: &Campaign) -> String {
    Summary::of(store, &campaign.manifest("sweep", "", "")).unwrap().rows_digest
}

/// Runs the conditions of the range that the store does not have.
fn work(campaign: &Campaign, store: &Store, range: Range<u64>, jobs: usize, done: &(dyn Fn() + Sync)) {
    let missing = store.parts(campaign.digest()).unwrap().missing(&range);
    campaign.work(store, &missing, &Work::on(jobs, done)).unwrap();
}

/// Returns the rows of these conditions.
fn run(campaign: &Campaign, range: Range<u64>, jobs: usize) -> Vec<Row> {
    campaign.run(range, &Work::on(jobs, &|| ())).unwrap()
}

fn keep(campaign: &Campaign, store: &Store, range: Range<u64>) {
    campaign.keep(store, &range, &run(campaign, range.clone(), 1)).unwrap();
}

#[test]
fn conditions_are_the_product_of_axes_and_draws() {
    let campaign = read(SWEEP);
    assert_eq!((campaign.conditions(), campaign.runs()), (6, 24));
    let rows = run(&campaign, 0..6, 2);
    assert_eq!(rows.len(), 6 * 4 * 2, "two systems and two paths, two seeds each");
    let delays: Vec<String> = rows.iter().step_by(8).map(|row| row.axes[0].to_string()).collect();
    assert_eq!(delays, ["0.005", "0.005", "0.005", "0.05", "0.05", "0.05"]);
    let losses: Vec<String> = rows.iter().step_by(8).map(|row| row.axes[1].to_string()).collect();
    assert_eq!(losses[..3], losses[3..], "the same draws at each value");
    assert!(rows.iter().all(|row| row.result.is_ok()));
    let loss = loss_set(&rows[0]);
    let command = format!(
        "anabranch run test.toml --seed 1 --set 'path.b.delay=\"5ms\"' --set 'path.a.loss=\"{loss}\"' --set \
         'host.scheduler=\"min-rtt\"'"
    );
    assert_eq!(rows[0].command, command);
    assert_eq!(rows[0].axes[1], Cell::Number(anabranch_units::quantity::share(loss).unwrap()));
    let Ok(Numbers { trial, metrics }) = &rows[0].result else { panic!("it went to its end") };
    assert_eq!((metrics[0], metrics.len()), (Some(trial.time_s), 2));
}

/// The loss of path `a` in the command that repeats the run of a row.
fn loss_set(row: &Row) -> &str {
    row.command.split("path.a.loss=\"").nth(1).unwrap().split('"').next().unwrap()
}

/// Rows of another build carry that build, whatever program reads them.
#[test]
fn rows_carry_the_build_that_made_them() {
    let campaign = read(SWEEP);
    let own = campaign.manifest("sweep", "", "");
    let made = Manifest { version: "0.0.9".to_owned(), build: "older".to_owned(), ..own };
    let cells = run(&campaign, 0..1, 1)[0].cells(&Store::layout(&made));
    assert_eq!((cells[0].to_string(), cells[1].to_string()), ("0.0.9".to_owned(), "older".to_owned()));
}

#[test]
fn chunks_shares_overlaps_and_cuts_make_no_difference() {
    let campaign = read(SWEEP);
    let manifest = campaign.manifest("sweep", "", "");
    let one = tempfile::tempdir().unwrap();
    let store = Store::open(one.path(), &manifest).unwrap();
    keep(&campaign, &store, 0..6);
    let whole = digest(&store, &campaign);

    // Two parts that overlap, neither of which contains the other.
    let lapped = tempfile::tempdir().unwrap();
    let store = Store::open(lapped.path(), &manifest).unwrap();
    keep(&campaign, &store, 0..4);
    keep(&campaign, &store, 2..6);
    assert_eq!(digest(&store, &campaign), whole);

    let many = tempfile::tempdir().unwrap();
    let store = Store::open(many.path(), &manifest).unwrap();
    work(&campaign, &store, campaign.share(2, 4), 2, &|| ());
    // Two workers ran the same conditions: one part lies within another.
    keep(&campaign, &store, 1..4);
    keep(&campaign, &store, 2..3);
    let parts = store.parts(campaign.digest()).unwrap();
    assert_eq!(parts.missing(&(0..6)), [0..1, 4..6]);
    let cut = parts.whole.iter().find(|part| (part.first, part.end) == (1, 4)).unwrap().path.clone();
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let parts = store.parts(campaign.digest()).unwrap();
    assert!(parts.set_aside[0].0 == cut && parts.set_aside[0].1.contains("cut off"), "{parts:?}");
    assert_eq!(parts.missing(&(0..6)), [0..1, 3..6]);
    work(&campaign, &store, 0..6, 1, &|| ());
    assert_eq!(digest(&store, &campaign), whole);
    // Conditions in the store are not run again.
    work(&campaign, &store, 0..6, 1, &|| panic!("nothing is missing"));
}

#[test]
fn rows_that_were_changed_are_refused() {
    let campaign = read(SWEEP);
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), &campaign.manifest("sweep", "", "")).unwrap();
    let mut rows = run(&campaign, 0..1, 1);
    keep(&campaign, &store, 0..1);
    let path = store.parts(campaign.digest()).unwrap().whole[0].path.clone();
    let bytes = std::fs::read(&path).unwrap();
    // Another seed in the rows; the metadata of the part stays.
    rows[0].seed += 1;
    let other = campaign.part(&(0..1), &rows).unwrap();
    let said = |bytes: &[u8]| {
        let at = bytes.windows(14).position(|it| it == b"anabranch.rows").unwrap();
        at..at + 14 + 70
    };
    let mut forged = other.clone();
    forged[said(&other)].copy_from_slice(&bytes[said(&bytes)]);
    std::fs::write(&path, forged).unwrap();
    let error = Summary::of(&store, &campaign.manifest("sweep", "", "")).unwrap_err().to_string();
    assert!(error.contains("its rows are not those that were written"), "{error}");
}

#[test]
fn a_directory_of_another_sweep_is_refused_with_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let campaign = read(SWEEP);
    Store::open(directory.path(), &campaign.manifest("sweep", "anabranch sweep a.toml", SWEEP)).unwrap();
    for (from, to, said) in [
        ("\"min-rtt\", ", "\"late\", ", "its systems are min-rtt, redundant, not late, redundant"),
        ("\"50ms\"", "\"60ms\"", "its axes are delay_s 5ms, 50ms"),
        ("count = 3", "count = 4", "its conditions are 6, not 8"),
        ("size = \"40kB\"", "size = \"50kB\"", "its scenario, settings, seeds or repetitions are others"),
    ] {
        let other = read(&SWEEP.replace(from, to));
        let error = Store::open(directory.path(), &other.manifest("sweep", "", "")).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(Store::existing(empty.path()).unwrap_err().to_string().contains("there is no manifest.json"));
}

/// Returns a catalogue of all schedulers and this one.
fn with(entry: Entry) -> Arc<Catalogue> {
    let mut catalogue = Catalogue::default();
    catalogue.schedulers.add(entry).unwrap();
    Arc::new(catalogue)
}

struct Breaks;

impl Scheduler for Breaks {
    fn decide(&mut self, _now: Instant, _view: &View<'_>) -> Decision {
        panic!("a scheduler with a bug")
    }
}

#[test]
fn a_run_that_breaks_is_a_row_and_the_sweep_goes_on() {
    let catalogue = with(Entry::new("breaks", "", "", |_| Box::new(Breaks)));
    let text = SWEEP.replace("\"redundant\"", "\"breaks\"").replace("baselines = true", "");
    let campaign = Campaign::read(&catalogue, "test.toml", &text, None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let manifest = campaign.manifest("sweep", "", "");
    let store = Store::open(directory.path(), &manifest).unwrap();
    work(&campaign, &store, 0..6, 1, &|| ());
    let summary = Summary::of(&store, &manifest).unwrap();
    assert_eq!((summary.done, summary.rows), (6, 24));
    // The scheduler is asked only when two subflows can send.
    assert!((1..=12).contains(&summary.failures) && summary.standings[0].conditions < 6, "{}", summary.failures);
    let first = &summary.failed[0];
    assert!(first.problem.contains("a scheduler with a bug") && first.command.contains("breaks"), "{first:?}");

    let budget = format!("most-events = 50\n{}", SWEEP.replace("baselines = true", ""));
    let rows = run(&read(&budget), 0..1, 1);
    let problem = rows[0].result.as_ref().unwrap_err();
    assert!(problem.contains("the run took more than 50 events"), "{problem}");
}

/// The interval of 40 kB over a lossy path is wide; without randomness one repetition is enough.
#[test]
fn a_condition_is_repeated_until_it_is_known() {
    let rows = |text: &str| run(&read(text), 0..6, 1).iter().filter(|row| row.name == "min-rtt").count();
    let until = |share: &str| SWEEP.replace("count = 2", &format!("count = 2\nuntil = \"{share}\"\nmost = 12"));
    let (loose, tight) = (rows(&until("90%")), rows(&until("0.01%")));
    assert!(loose < tight && tight <= 72, "{loose} {tight}");
    assert!(rows(&SWEEP.replace("uniform = [\"0.5%\", \"4%\"]", "choice = [\"0%\"]")) == 6);
    let campaign = Campaign::read(&Arc::new(Catalogue::default()), "test.toml", SWEEP, Some("0.01%")).unwrap();
    assert_ne!(campaign.digest(), read(SWEEP).digest());
}

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    for (from, to, said, place) in [
        ("schedulers = ", "scheduler = ", "unknown key `scheduler` (did you mean `schedulers`?", "scheduler"),
        ("\"redundant\"", "\"redundnat\"", "did you mean `redundant`?", "\"redundnat\""),
        ("\"redundant\"", "\"min-rtt\"", "are the same scheduler", "\"min-rtt\""),
        (
            "path.b.delay",
            "path.c.delay",
            "there is no path `c` in the scenario (did you mean `a`? accepted: a, b)",
            "\"path.c.delay\"",
        ),
        ("path.b.delay", "path.b.dealy", "unknown key `dealy` (did you mean `delay`?", "\"path.b.dealy\""),
        ("\"50ms\"", "\"50mbit\"", "axis `delay` at 50mbit", "\"path.b.delay\""),
        ("path-share:b", "path-share:c", "there is no path `c`", "\"path-share:c\""),
        ("completion-time", "completion-tim", "did you mean `completion-time`?", "\"completion-tim\""),
        ("name = \"delay\"", "name = \"time\"", "a column is called `time_s` already", "[[axis]]"),
        ("[draw]", "[drow]", "did you mean `draw`?", "drow"),
        ("\"latin-hypercube\"", "\"latin\"", "unknown value `latin`", "\"latin\""),
        ("count = 2", "count = 2\nuntil = \"0%\"", "no interval is that narrow", "\"0%\""),
    ] {
        let (error, quoted) = refused(&SWEEP.replacen(from, to, 1));
        assert!(error.contains(said), "{to}: {error}");
        assert_eq!(quoted, place, "{to}: {error}");
    }
    let bare = SWEEP.split("[scenario").next().unwrap();
    assert!(refused(bare).0.contains("the sweep has no scenario"));
    let (error, quoted) = refused(&format!("scenario = \"wlan-ltee\"\n{bare}"));
    assert!(error.contains("did you mean `wlan-lte`?") && quoted == "\"wlan-ltee\"", "{error} {quoted}");
}

/// Bytes of another process are kept if they are the expected part, and leave no trace otherwise.
#[test]
fn a_part_from_elsewhere_is_checked_before_it_is_kept() {
    let campaign = read(SWEEP);
    let made = tempfile::tempdir().unwrap();
    let store = Store::open(made.path(), &campaign.manifest("sweep", "", "")).unwrap();
    let part = |range: Range<u64>, of: Range<u64>| campaign.part(&range, &run(&campaign, of, 1)).unwrap();
    let other = campaign.digest().replace(|digit: char| digit.is_ascii_digit(), "f");
    let whole = part(0..2, 0..2);
    for (to, bytes, problem) in [
        (campaign.digest(), &whole[..whole.len() / 2], "cut off"),
        (campaign.digest(), &part(2..4, 2..4), "it has conditions 2 to 4"),
        (campaign.digest(), &part(0..2, 0..1), "its conditions are not those that it names"),
        (campaign.digest(), &part(0..2, 1..3), "its conditions are not those that it names"),
        (&other, &whole, "it belongs to another sweep"),
    ] {
        let refused = store.receive(to, &(0..2), bytes).unwrap_err().to_string();
        assert!(refused.contains(problem), "{refused}, not {problem}");
        assert_eq!(std::fs::read_dir(made.path()).unwrap().count(), 1, "the manifest alone: {problem}");
    }
    store.receive(campaign.digest(), &(0..2), &whole).unwrap();
    assert_eq!(store.parts(campaign.digest()).unwrap().missing(&(0..6)), [Range { start: 2, end: 6 }]);
}

#[test]
fn work_that_is_stopped_keeps_whole_chunks_only() {
    let campaign = read(SWEEP);
    let stop = Arc::new(AtomicBool::new(false));
    let made = tempfile::tempdir().unwrap();
    let store = Store::open(made.path(), &campaign.manifest("sweep", "", "")).unwrap();
    // Stopped within the first chunk, which has four conditions.
    let work = Work { jobs: 1, done: &|| stop.store(true, Ordering::Relaxed), stop: Some(&stop) };
    let all = Range { start: 0, end: 6 };
    campaign.work(&store, std::slice::from_ref(&all), &work).unwrap();
    assert!(campaign.run(all.clone(), &work).is_none());
    assert_eq!(store.parts(campaign.digest()).unwrap(), Parts::default());
}

/// Scheduler that sets a flag at its first decision, and counts its decisions.
struct Stops {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Scheduler for Stops {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        self.stop.store(true, Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Relaxed);
        view.fastest_with_room().map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}

#[test]
fn a_run_that_is_under_way_is_stopped_too() {
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let stops = {
        let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
        let build = move |_: &_| -> Box<dyn Scheduler> {
            Box::new(Stops { stop: Arc::clone(&stop), asked: Arc::clone(&asked) })
        };
        Entry::found("stops".to_owned(), String::new(), build)
    };
    // Two files, of which the first opens both subflows.
    let files = "kind = \"files\"\nwarm = true\ncount = 2\nsize = \"3MB\"";
    let text =
        SWEEP.replace("kind = \"files\"\nsize = \"40kB\"", files).replace("\"min-rtt\", \"redundant\"", "\"stops\"");
    let campaign = Campaign::read(&with(stops), "test.toml", &text, None).unwrap();
    assert!(campaign.run(0..1, &Work { jobs: 1, done: &|| (), stop: Some(&stop) }).is_none());
    let asked = asked.load(Ordering::Relaxed);
    assert!((1..100).contains(&asked), "asked {asked} times: the run went on");
}

#[test]
fn a_mark_tells_campaigns_apart() {
    let [plain, same, marked] = ["", "", "other code"].map(|mark| read(SWEEP).marked(mark));
    assert!(plain.digest() == same.digest() && same.digest() != marked.digest());
    assert_eq!(run(&plain, 0..1, 1), run(&marked, 0..1, 1));
}

#[test]
fn conditions_of_rank_are_swept_like_any_other() {
    let text = "schedulers = [\"min-rtt\", \"late\"]\nset = [\"workload=[{kind=\\\"files\\\",size=\\\"20kB\\\"}]\"]\n\
                [drawn]\nseed = 1\ncount = 3\n[repeat]\ncount = 1\n";
    let rows = run(&read(text), 1..3, 1);
    let scenarios: Vec<&str> = rows.iter().map(|row| row.scenario.as_str()).collect();
    assert_eq!(scenarios, ["drawn/1/1", "drawn/1/1", "drawn/1/2", "drawn/1/2"]);
    assert!(rows[0].command.starts_with("anabranch run drawn/1/1 --seed 1"));
}

#[test]
fn a_sweep_with_a_scenario_inside_is_a_scenario_for_other_commands() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, SWEEP).unwrap();
    let scenario = crate::load(&Arc::new(Catalogue::default()), &file.to_string_lossy(), &[]).unwrap();
    assert_eq!(scenario.paths(), ["a", "b"]);
    let row = &run(&read(SWEEP), 0..1, 1)[0];
    let sets = ["path.b.delay=5ms".to_owned(), format!("path.a.loss={}", loss_set(row))];
    let same = crate::load(&Arc::new(Catalogue::default()), &file.to_string_lossy(), &sets).unwrap();
    assert_eq!(same.digest, row.digest);
}

#[test]
fn the_example_of_the_documentation_is_the_shipped_file() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("sweeps/lte-rate.toml")).unwrap();
    let docs = std::fs::read_to_string(root.join("docs/sweeps.md")).unwrap();
    assert!(docs.contains(&format!("```toml\n{text}```")), "docs/sweeps.md shows another file");
    assert_eq!((read(&text).conditions(), read(&text).runs()), (84, 1344));
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for table in tables.filter(|table| table.get("properties").is_some()) {
        assert_eq!(table["additionalProperties"], false, "{table}");
        for (key, property) in table["properties"].as_object().unwrap() {
            let says = property.get("description").is_some() || table.get("description").is_some();
            assert!(says, "{key} is not explained");
        }
    }
}

/// Listed values over a path without draws are one sample each: the means have no interval. Where loss is drawn from
/// the seed, they have one.
#[test]
fn fixed_conditions_have_no_interval() {
    let summary = |text: &str| {
        let campaign = read(text);
        let made = tempfile::tempdir().unwrap();
        let manifest = campaign.manifest("sweep", "", "");
        let store = Store::open(made.path(), &manifest).unwrap();
        let all = Range { start: 0, end: campaign.conditions() };
        campaign.work(&store, std::slice::from_ref(&all), &Work::on(1, &|| {})).unwrap();
        Summary::of(&store, &manifest).unwrap()
    };
    let listed = "values = [\"0%\"]";
    let fixed = SWEEP.replace("uniform = [\"0.5%\", \"4%\"]", listed);
    let draw = "[draw]\nmethod = \"latin-hypercube\"\ncount = 3\n";
    assert!(fixed.contains(draw) && fixed.contains(listed));
    let it = summary(&fixed.replace(draw, ""));
    assert_eq!((it.done, it.one_sample, it.fixed), (2, 2, true));
    for standing in &it.standings {
        let (best, share) = (standing.to_best.unwrap(), standing.within_2.unwrap());
        assert_eq!((best.low, best.high, share.low, share.high), (None, None, None, None));
        assert!(standing.to_single.unwrap().low.is_none() && standing.slower_than_single.unwrap().high.is_none());
    }
    let lossy = summary(&fixed.replace(draw, "").replace(listed, "values = [\"20%\"]"));
    assert!(lossy.one_sample < lossy.done && !lossy.fixed, "{} of {}", lossy.one_sample, lossy.done);
    assert!(lossy.standings.iter().all(|it| it.to_best.unwrap().low.is_some()));
    // Values that are drawn are samples, with one seed each as well.
    assert!(!summary(SWEEP).fixed);
    let single = summary(&SWEEP.replace("count = 2", "count = 1"));
    assert_eq!((single.one_sample, single.fixed), (single.done, false));
}
