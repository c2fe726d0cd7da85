//! `anabranch evaluate --testbed`: a program beside a flow of the kernel, judged from outside.

use super::{lacks, place, stderr};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// One case of 3 s: the candidate, and beside it a flow of Reno which must keep a tenth of the link.
const CASE: &str = r#"
section = "1"
level = "must"
title = "Leaves something to others"
asks = "Leave a tenth."
test = "Two flows."
span = ["1s", "3s"]
seeds = { full = 1, quick = 1 }
capacity = "4mbit"
rtt = "20ms"
[rivals]
names = ["reno"]
quick = ["reno"]
set = ["workload.1.congestion={}"]
solo = ["workload.1=false"]
[[criterion]]
metric = "utilisation"
of = "rival"
at-least = 10
reason = "It has half of it beside its own kind."
[[criterion]]
metric = "utilisation"
of = "all"
at-least = 30
reason = "Also a busy machine fills a third."
[scenario.path.a]
rate = "4mbit"
rtt = "20ms"
queue = "1bdp"
[scenario.host]
multipath = false
[[scenario.workload]]
kind = "bulk"
duration = "3s"
[[scenario.workload]]
kind = "tcp"
path = "a"
start = "200ms"
duration = "2.8s"
congestion = "reno"
"#;

fn evaluate(here: &Path, server: &str, client: &str) -> Output {
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/peer.py");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let server = format!("exec python3 '{}' {server}", peer.display());
    command.current_dir(here).stdin(Stdio::null()).args(["evaluate", "mine.toml", "--testbed", "--json"]);
    command.args(["--server", &server, "--", "python3"]).arg(&peer).arg(client).output().unwrap()
}

/// Standard error in one line.
fn words(output: &Output) -> String {
    stderr(output).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The verdict and the numbers of the first criterion.
fn judged(output: &Output) -> (String, f64, Value) {
    assert!(output.status.success(), "{}", stderr(output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let evaluation = json["evaluations"][0].clone();
    let criterion = &evaluation["rows"][0]["criteria"][0];
    (criterion["verdict"].as_str().unwrap().to_owned(), criterion["worst"]["value"].as_f64().unwrap(), evaluation)
}

/// Reno of the kernel leaves Reno its share; UDP at one and a half times the rate of the link leaves it nothing.
#[test]
fn a_program_that_ignores_loss_fails_where_the_kernels_reno_passes() {
    let Some(here) = place("evaluate") else { return };
    if lacks("python3") {
        return eprintln!("SKIPPED: python3 is missing");
    }
    fs::create_dir_all(here.join("mine")).unwrap();
    fs::write(here.join("mine.toml"), "title = \"Mine\"\nsource = \"Nobody\"\nabout = \"One case.\"\n").unwrap();
    fs::write(here.join("mine/leaves.toml"), CASE).unwrap();
    let output = evaluate(&here, "serve reno", "fetch");
    let (verdict, share, evaluation) = judged(&output);
    assert!(verdict == "pass" && share < 90.0, "{share} % of the link: {}", stderr(&output));
    assert!(stderr(&output).contains("1 runs in real time"), "{}", stderr(&output));
    assert_eq!(evaluation["rows"][0]["criteria"][1]["verdict"], "pass", "{evaluation}");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(evaluation["testbed"]["kernel"]["release"], format!("Linux {}", release.trim()));
    let command = evaluation["rows"][0]["criteria"][0]["worst"]["command"].as_str().unwrap();
    assert!(command.starts_with("anabranch evaluate mine.toml --testbed --case leaves --server "), "{command}");
    assert!(command.ends_with("peer.py fetch"), "{command}");
    let output = evaluate(&here, "blast 6", "ask");
    let (verdict, share, _) = judged(&output);
    assert!(verdict == "fail" && share < 10.0, "{share} % of the link: {}", stderr(&output));
}

/// A client that ends at once, and a server that does, are errors and no verdicts.
#[test]
fn a_program_that_does_nothing_is_an_error_with_its_last_words() {
    let Some(here) = place("evaluate-nothing") else { return };
    fs::create_dir_all(here.join("mine")).unwrap();
    fs::write(here.join("mine.toml"), "title = \"Mine\"\nsource = \"Nobody\"\nabout = \"One case.\"\n").unwrap();
    fs::write(here.join("mine/leaves.toml"), CASE).unwrap();
    let run = |server: &str, client: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.current_dir(&here).stdin(Stdio::null()).args(["evaluate", "mine.toml", "--testbed", "--wait", "100ms"]);
        command.args(["--server", server, "--", "sh", "-c", client]).output().unwrap()
    };
    let listens = "exec python3 -c 'import socket, time; s = socket.socket(); s.bind((\"0.0.0.0\", 5201)); s.listen(); \
                   time.sleep(60)'";
    for (server, client, said) in [
        ("echo no such port; exit 3", "true", "no such port"),
        ("sleep 60", "true", "listens on no socket after 0.1 s"),
    ] {
        let output = run(server, client);
        assert!(!output.status.success() && words(&output).contains(said), "{}", stderr(&output));
        assert!(output.stdout.is_empty(), "no verdict");
    }
    if !lacks("python3") {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.current_dir(&here).stdin(Stdio::null()).args([
            "evaluate",
            "mine.toml",
            "--testbed",
            "--server",
            listens,
        ]);
        let output = command.args(["--", "sh", "-c", "echo cannot; exit 4"]).output().unwrap();
        let said = stderr(&output);
        assert!(
            output.status.code() == Some(1) && said.contains("exit status: 4") && said.contains("cannot"),
            "{said}"
        );
    }
}
