//! Version, scenario and seed do not tell two builds apart: every result names the build that made it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{build, directory, succeed};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

const STUDY: &str = r#"
title = "One run"
paper = "TEST"
figure = "Fig. 1"
about = "Nothing much."
[scenario.path.a]
rate = "20mbit"
delay = "5ms"
[[scenario.workload]]
kind = "files"
size = "10kB"
[[system]]
name = "TCP"
set = ["host.multipath=false"]
[repeat]
full = 1
[[plot]]
id = "a"
title = "Completion"
metric = "completion-time"
"#;

#[test]
fn every_result_names_its_build() {
    let here = directory("build-id");
    let build = build();
    assert!(build.len() == 16 && build.bytes().all(|byte| byte.is_ascii_hexdigit()), "{build}");
    let args = ["symmetric", "--set", "workload.0.duration=100ms", "--csv", "rows.csv", "--report", "page.html"];
    let pcap = ["--pcap", "captures"];
    let json = succeed(&here, &[&["run"], &args[..], &pcap, &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["build"].as_str(), json["runs"][0]["build"].as_str()), (Some(&*build), Some(&*build)));
    let holds = |file: &str| {
        let bytes = fs::read(here.join(file)).unwrap();
        assert!(bytes.windows(build.len()).any(|part| part == build.as_bytes()), "{file} does not name the build");
    };
    ["rows.csv", "page.html", "captures/client.pcapng", "captures/server.pcapng"].into_iter().for_each(holds);

    let few = ["--schedulers", "min-rtt", "--repeat", "2"];
    let text = succeed(&here, &[&["compare"], &args[..], &few].concat());
    assert!(text.contains(&format!("(build {build})")), "{text}");
    ["rows.csv", "page.html"].into_iter().for_each(holds);

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/close/abort.script");
    for args in [&["inspect", "captures/client.pcapng", "--json"][..], &["script", script, "--json"]] {
        let json: serde_json::Value = serde_json::from_str(&succeed(&here, args)).unwrap();
        assert_eq!(json["build"].as_str(), Some(&*build), "{args:?}");
        assert!(json["version"].is_string(), "{args:?}");
    }

    fs::write(here.join("mine.toml"), STUDY).unwrap();
    let text = succeed(&here, &["study", "mine.toml", "--report", "page.html"]);
    assert!(text.contains(&format!("(build {build})")), "{text}");
    let files = ["mine.json", "mine.csv", "mine.parquet", "runs.jsonl"].map(|it| format!("anabranch-studies/{it}"));
    files.iter().map(String::as_str).chain(["page.html"]).for_each(holds);
}

/// Build of a program in this file.
#[cfg(target_os = "linux")]
fn build_of(program: &Path) -> String {
    // A program that another test starts has the file open for writing as well, from its fork to its exec.
    let output = loop {
        match Command::new(program).arg("--version").output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let build = text.trim().rsplit_once("(build ").and_then(|(_, build)| build.strip_suffix(')'));
    build.unwrap_or_else(|| panic!("no build: {text}")).to_owned()
}

/// The linker's id names the build, so that the file need not be read: bytes behind its end change nothing. Only in a
/// file without an id they do.
#[cfg(target_os = "linux")]
#[test]
fn the_linker_names_the_build() {
    let here = directory("build-id-of-the-linker");
    let whole = fs::read(env!("CARGO_BIN_EXE_anabranch")).unwrap();
    let written = |name: &str, bytes: &[u8]| {
        let program = here.join(name);
        // A copy keeps the permissions; writing into it then does, too.
        fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).unwrap();
        fs::write(&program, bytes).unwrap();
        program
    };
    let more = |bytes: &[u8]| [bytes, b"more"].concat();
    assert_eq!(build_of(&written("longer", &more(&whole))), build());

    // Length 4 of the name, 20 of the id, kind 3, and the name.
    let note = [&[4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0"].concat();
    let at = whole.windows(note.len()).position(|part| part == note).expect("the program has the linker's id");
    assert_eq!(build(), anabranch_units::hex(&whole[at + note.len()..][..8]));
    let mut without = whole;
    without[at + 12] = b'X';
    let digest = build_of(&written("without", &without));
    assert_ne!(digest, build());
    assert_ne!(build_of(&written("without-longer", &more(&without))), digest);
    fs::remove_dir_all(here).unwrap();
}
