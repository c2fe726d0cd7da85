//! Field studies with small data of our own making, in the layouts of the public ones.
#![allow(clippy::unwrap_used)]

use super::*;
use anabranch_lab::Journal;
use anabranch_policy::Catalogue;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Two links: one recorded second by second, one as iperf3 saw it. Both carry 8 Mbit/s.
const STUDY: &str = r#"
title = "Two links"
source = "ourselves"
about = "Made up."
stack = "none"
[draws]
full = 6
quick = 2
[data]
fetch = "git clone https://example.org/two-links"
directory = "two-links"
licence = "ours"
[data.excerpt.sky]
file = "UDP/sky_all.csv"
from = "2030-04-12 10:40:22 CDT"
rows = 4
[data.excerpt.cell]
file = "TCP/cell.txt"
[scenario.host]
profile = "linux"
[[scenario.workload]]
kind = "bulk"
duration = "2s"
[[unrecorded]]
name = "delay"
unit = "ms"
set = ["path.sky.delay={}ms", "path.cell.delay={*2}ms"]
range = [5, 10]
reason = "Made up."
[[unrecorded]]
name = "queue"
unit = "packets"
set = ["path.sky.queue={}p"]
range = [50, 100]
step = 1
reason = "Made up."
[[row]]
name = "sky alone"
measured = 7.4e6
metric = "goodput"
source = "here"
set = ["host.multipath=false", 'path.sky={trace={file="sky",offset="0s"},delay="5ms",queue="50p"}']
[[row]]
name = "sky alone, wrong"
measured = 9e6
metric = "goodput"
source = "here"
set = ["host.multipath=false", 'path.sky={trace={file="sky",offset="0s"},delay="5ms",queue="50p"}']
[[row]]
name = "both over one"
measured = 190
metric = "goodput"
source = "here"
draws = 3
set = [
  'path.sky={trace={file="sky",offset="0s"},delay="5ms",queue="50p"}',
  'path.cell={trace={file="cell",offset="0s"},delay="5ms",queue="50p"}',
]
over = ["host.multipath=false", 'path.sky={trace={file="sky",offset="0s"},delay="5ms",queue="50p"}']
"#;

fn directory(study: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("study.toml"), study).unwrap();
    directory
}

/// Writes data in the layouts of a recorded drive and of a log of iperf3.
fn with_data(directory: &Path) {
    let mut sky = String::from("time,throughput,speed,latitude,longtitu,area_type\n");
    for second in 20..30 {
        // Before and behind the excerpt the link is another.
        let mbps = if (22..26).contains(&second) { 8.0 } else { 80.0 };
        writeln!(sky, "2030-04-12 10:40:{second} CDT,{mbps},62.9,45.4,-93.2,rural").unwrap();
    }
    let mut cell = String::from("nohup: ignoring input\niperf 3.10.1\nTime: Sun, 14 Apr 2030 19:22:49 GMT\n");
    cell += "[ ID] Interval           Transfer     Bitrate\n";
    for second in 0..4 {
        writeln!(cell, "[  5]   {second}.00-{}.00   sec  977 KBytes  8.00 Mbits/sec", second + 1).unwrap();
    }
    std::fs::create_dir_all(directory.join("UDP")).unwrap();
    std::fs::create_dir_all(directory.join("TCP")).unwrap();
    std::fs::write(directory.join("UDP/sky_all.csv"), sky).unwrap();
    std::fs::write(directory.join("TCP/cell.txt"), cell).unwrap();
}

fn load(directory: &Path) -> Field {
    Field::load(directory.join("study.toml").to_str().unwrap()).unwrap().with_data(directory)
}

fn result(field: Field) -> FieldResult {
    let trial = Trial::new(field, &Arc::new(Catalogue::default())).unwrap();
    let journal = Journal::in_memory();
    trial.run(&journal, 2, &|| ()).unwrap();
    trial.result(&journal, "a command", false).unwrap()
}

#[test]
fn a_row_is_judged_by_the_draws_of_what_was_not_recorded() {
    let directory = directory(STUDY);
    with_data(directory.path());
    let result = result(load(directory.path()));
    let [alone, wrong, both] = &result.rows[..] else { panic!("{:?}", result.rows) };
    // The two rows over one link share their runs; the third has runs of its own for its sum and its base.
    assert_eq!((alone.draws, both.draws, result.runs), (6, 3, 6 + 3 + 3));
    let values: Vec<f64> = alone.predictions.iter().map(|it| it.value.unwrap()).collect();
    assert_eq!(alone.predicted, Some(Range::of(&values)));
    let range = alone.predicted.unwrap();
    assert!(range.low < range.high && range.high < 8e6, "what was not recorded makes a range: {range:?}");
    let drawn: Vec<&String> = alone.predictions.iter().flat_map(|it| &it.drawn).collect();
    assert_eq!(drawn.len(), 2 * 6, "a setting of a path that is not there is left out: {drawn:?}");
    assert_eq!(both.predictions[0].drawn.len(), 3, "{:?}", both.predictions[0]);
    // The same prediction beside two measured numbers: one inside, one that we have wrong.
    assert_eq!(wrong.predicted, alone.predicted);
    assert_eq!(wrong.verdict, FieldVerdict::Above);
    let share = both.predicted.unwrap().median;
    assert!(both.unit == "%" && (150.0..200.0).contains(&share), "two equal links carry nearly twice: {share}");
    let inside = result.rows.iter().filter(|row| row.verdict == FieldVerdict::Inside).count();
    assert_eq!(result.inside, inside);
    assert!(result.widest_percent.unwrap() >= range.half_percent());
}

#[test]
fn a_measured_number_inside_the_range_is_inside() {
    let directory = directory(STUDY);
    with_data(directory.path());
    let first = result(load(directory.path()));
    let median = first.rows[0].predicted.unwrap().median;
    std::fs::write(directory.path().join("study.toml"), STUDY.replacen("7.4e6", &format!("{median:?}"), 1)).unwrap();
    let second = result(load(directory.path()));
    assert_eq!(second.rows[0].verdict, FieldVerdict::Inside);
    assert_eq!(second.rows[0].predicted, first.rows[0].predicted, "what was measured does not move the prediction");
}

/// Runs that do not come to their end give no range.
#[test]
fn a_run_without_an_end_gives_no_prediction() {
    let text = STUDY.replace("kind = \"bulk\"\nduration = \"2s\"", "kind = \"files\"\nsize = \"90MB\"");
    let directory = directory(&text.replace(
        "[[unrecorded]]\nname = \"delay\"",
        "[scenario.run]\nstop = \"1s\"\n[[unrecorded]]\nname = \"delay\"",
    ));
    with_data(directory.path());
    let result = result(load(directory.path()).drawn(1));
    assert!(result.rows.iter().all(|row| row.verdict == FieldVerdict::NoPrediction && row.predicted.is_none()));
    assert_eq!((result.inside, result.widest_percent), (0, None));
}

#[test]
fn missing_data_are_named_with_the_command_that_fetches_them() {
    let directory = directory(STUDY);
    let field = load(directory.path());
    let error = Trial::new(field, &Arc::new(Catalogue::default())).err().unwrap();
    assert!(error.to_string().contains("sky_all.csv") || error.to_string().contains("cell.txt"), "{error}");
    let help = error.help().unwrap();
    assert!(help.contains("git clone https://example.org/two-links") && help.contains("--data two-links"), "{help}");
    assert!(help.contains("licence: ours"), "{help}");
}

#[test]
fn a_study_that_makes_no_sense_is_refused() {
    for (from, to, expected) in [
        ("range = [5, 10]", "range = [10, 5]", "nothing can be drawn for `delay`"),
        ("range = [5, 10]", "range = [5, 10]\nchoices = [\"5\"]", "nothing can be drawn for `delay`"),
        ("path.sky.queue={}p", "path.sky.queue=50p", "the text does not use the value"),
        ("\"sky alone, wrong\"", "\"sky alone\"", "two rows are called `sky alone`"),
        ("measured = 190", "measured = -1", "the numbers of `both over one` are none"),
        ("full = 6", "full = 0", "a row has 0 draws"),
        ("metric = \"goodput\"", "metric = \"goodness\"", "there is no metric `goodness`"),
    ] {
        assert!(STUDY.contains(from), "{from}");
        let directory = directory(&STUDY.replacen(from, to, 1));
        with_data(directory.path());
        let field = Field::load(directory.path().join("study.toml").to_str().unwrap());
        let trial = |field: Field| Trial::new(field.with_data(directory.path()), &Arc::new(Catalogue::default()));
        let error = field.and_then(trial).err().unwrap_or_else(|| panic!("{to} is refused"));
        assert!(error.to_string().contains(expected), "{to}: {error}");
    }
}

/// Studies of the program build all their scenarios, or name the data that they lack.
#[test]
fn the_studies_of_the_program_are_valid() {
    for name in Field::names() {
        let field = Field::load(name).unwrap_or_else(|error| panic!("{name}: {error}")).quick();
        let has_data = field.file.data.is_some();
        let nowhere = field.with_data(Path::new("nowhere"));
        match Trial::new(nowhere, &Arc::new(Catalogue::default())) {
            Ok(trial) => assert!(!has_data && trial.missing(&Journal::in_memory()) > 0, "{name}"),
            Err(error) => assert!(has_data && error.help().unwrap().contains("git clone"), "{name}: {error}"),
        }
    }
}
