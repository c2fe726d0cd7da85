//! The program, documents, and a directory for each test.
#![allow(clippy::unwrap_used, dead_code)]

pub mod markdown;
pub mod qlog;
pub mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lists of policies that `anabranch list` prints.
pub const POLICY_LISTS: [&str; 7] =
    ["schedulers", "congestion", "windows", "ack-paths", "reinjection", "first-paths", "queues"];

/// A study of two systems.
pub const STUDY: &str = r#"
title = "Two schedulers by loss"
paper = "TEST"
figure = "Fig. 1"
about = "A test."
[scenario.path.a]
rate = "20mbit"
rtt = "20ms"
[scenario.path.b]
rate = "10mbit"
rtt = "60ms"
[[scenario.workload]]
kind = "files"
size = "100kB"
[[axis]]
name = "loss"
label = "Loss"
unit = "%"
set = ["path.a.loss={}%"]
values = [0, 1, 2]
quick = [1]
[[system]]
name = "minRTT"
set = ["host.scheduler=min-rtt"]
[[system]]
name = "TCP"
set = ["host.multipath=false"]
[repeat]
full = 4
quick = 2
[[plot]]
id = "a"
title = "Completion"
metric = "completion-time"
[[statement]]
text = "loss slows TCP down"
source = "here"
metric = "completion-time"
system = "TCP"
trend = "rises"
"#;

/// A sweep over two axes of a shipped scenario.
pub const SWEEP: &str = r#"
about = "A small one"
scenario = "symmetric"
schedulers = ["min-rtt", "round-robin", "redundant"]
baselines = true
metrics = ["goodput"]
set = ["workload.0.duration=400ms", "run.stop=5s"]

[[axis]]
key = "path.b.delay"
name = "delay"
values = ["5ms", "40ms"]

[[axis]]
key = "path.b.loss"
name = "loss"
uniform = ["0%", "3%"]

[draw]
method = "sobol"
count = 10

[repeat]
count = 2
"#;

/// Work of drawn conditions that a debug build is soon through with.
pub const WORK: &str = "workload=[{kind=\"files\",size=\"60kB\"}]";

/// An empty directory of one test.
pub fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The digest of the program, as `--version` says it.
pub fn build() -> String {
    let text = succeed(Path::new("."), &["--version"]);
    let build = text.trim().strip_prefix(concat!("anabranch ", env!("CARGO_PKG_VERSION"), " (build "));
    build.and_then(|rest| rest.strip_suffix(')')).expect("the version names its build").to_owned()
}

/// The text as every build prints it.
pub fn without_build(text: &str) -> String {
    text.replace(&format!(" (build {})", build()), "")
}

pub fn anabranch(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).current_dir(directory).args(args).output().unwrap()
}

/// Runs the program, requires success, and returns its standard output.
pub fn succeed(directory: &Path, args: &[&str]) -> String {
    let output = anabranch(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, requires that it refuses the words, and returns its standard error in one line.
pub fn refused(directory: &Path, args: &[&str]) -> String {
    let output = anabranch(directory, args);
    let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    said.replace("│ ", "")
}

/// Small field study: fixed links, and a measured number that is right beside one that is wrong.
pub const FIELD: &str = r#"
title = "Two links"
source = "ourselves"
about = "A test."
stack = "none"
[draws]
full = 5
quick = 2
[scenario.host]
profile = "linux"
[scenario.path.a]
rate = "8mbit"
delay = "10ms"
[[scenario.workload]]
kind = "bulk"
duration = "1s"
[[unrecorded]]
name = "delay"
unit = "ms"
set = ["path.a.delay={}ms"]
range = [5, 50]
reason = "A test."
[[row]]
name = "right"
measured = 5.5e6
metric = "goodput"
source = "here"
[[row]]
name = "wrong"
measured = 9e6
metric = "goodput"
source = "there"
note = "More than the link carries."
"#;
