//! Files that are no files, endless ones and names that command a terminal: what each command says of them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{STUDY, directory, succeed};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str =
    "[path.a]\nrate = \"20mbit\"\ndelay = \"5ms\"\n[[workload]]\nkind = \"files\"\nsize = \"10kB\"\n";

/// Runs the program; what waits for ever ends with status 124.
fn within_a_minute(here: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("60").arg(env!("CARGO_BIN_EXE_anabranch")).args(args).current_dir(here).output().unwrap()
}

/// Readers of a text: the words of a command, in which FILE is the name of the file.
const OF_TEXTS: [&[&str]; 13] = [
    &["run", "FILE"],
    &["compare", "FILE"],
    &["why", "FILE"],
    &["testbed", "FILE", "--", "true"],
    &["sweep", "FILE"],
    &["study", "FILE"],
    &["script", "FILE"],
    &["kernel", "steer", "--policy", "FILE"],
    &["proxy", "--socks", "127.0.0.1:9", "--via", "10.78.0.1", "--users", "FILE"],
    &["proxy", "--socks", "127.0.0.1:9", "--via", "10.78.0.1", "--settings", "FILE"],
    &["fetch", "http://10.78.0.1/x", "--from", "10.78.0.2", "--path-memory", "FILE"],
    &["study", "study.toml", "--quick", "--out", "FILE.journal"],
    &["sweep", "--summary", "FILE.results"],
];

/// Readers of recorded data, which may be larger.
const OF_RECORDS: [&[&str]; 5] = [
    &["run", "ok.toml", "--set", "path.a={down=\"FILE\", up=\"1mbit\", delay=\"1ms\"}"],
    &["run", "FILE.toml"],
    &["run", "ok.toml", "--set", "workload=[{kind=\"web\", page=\"FILE.har\"}]"],
    &["run", "ok.toml", "--set", "workload=[{kind=\"web\", page=\"FILE.json\"}]"],
    &["run", "ok.toml", "--set", "workload=[{kind=\"interactive\", trace=\"FILE\"}]"],
];

/// Readers of files of any size.
const OF_CAPTURES: [&[&str]; 5] = [
    &["inspect", "FILE"],
    &["why", "FILE.pcap"],
    &["why", "FILE", "ok.toml"],
    &["twin", "FILE"],
    &["fetch", "http://10.78.0.1/x", "--from", "10.78.0.2", "--upload", "FILE"],
];

/// Makes what the commands above name besides `file` itself.
fn surround(here: &Path, file: &str) {
    for end in [".har", ".json", ".pcap"] {
        symlink(file, here.join(format!("{file}{end}"))).unwrap();
    }
    for (end, name) in [(".journal", "runs.jsonl"), (".results", "manifest.json")] {
        let folder = here.join(format!("{file}{end}"));
        fs::create_dir(&folder).unwrap();
        symlink(format!("../{file}"), folder.join(name)).unwrap();
    }
    let traced = SCENARIO.replace("rate = \"20mbit\"", &format!("down = \"{file}\"\nup = \"1mbit\""));
    fs::write(here.join(format!("{file}.toml")), traced).unwrap();
}

fn check(here: &Path, readers: &[&[&str]], file: &str, says: &str) {
    for words in readers {
        let words: Vec<String> = words.iter().map(|word| word.replace("FILE", file)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = within_a_minute(here, &words);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
        let said = said.replace("│ ", "");
        assert!([1, 2, 125].contains(&output.status.code().unwrap()), "{words:?}: {:?} {said}", output.status);
        assert!(said.contains(says) && said.len() < 3000, "{words:?} of {says}: {said}");
    }
}

#[test]
fn only_regular_files_are_read() {
    let here = directory("only_regular_files_are_read");
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    fs::write(here.join("study.toml"), STUDY).unwrap();
    symlink("/dev/zero", here.join("device")).unwrap();
    assert!(Command::new("mkfifo").arg(here.join("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(here.join("socket")).unwrap();
    fs::create_dir(here.join("folder")).unwrap();
    for (file, says) in [("device", "it is a device"), ("pipe", "it is a pipe"), ("socket", "it is a socket")] {
        surround(&here, file);
        for readers in [&OF_TEXTS[..], &OF_RECORDS, &OF_CAPTURES] {
            check(&here, readers, file, says);
        }
    }
    surround(&here, "folder");
    // A folder holds scripts.
    let texts: Vec<&[&str]> = OF_TEXTS.into_iter().filter(|words| words[0] != "script").collect();
    for readers in [&texts[..], &OF_RECORDS, &OF_CAPTURES] {
        check(&here, readers, "folder", "is a folder");
    }
}

#[test]
fn files_have_a_largest_size() {
    let here = directory("files_have_a_largest_size");
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    fs::write(here.join("study.toml"), STUDY).unwrap();
    // Without blocks on the disk: only their length is looked at.
    File::create(here.join("large")).unwrap().set_len(300 << 20).unwrap();
    surround(&here, "large");
    let (mut texts, summary) = (OF_TEXTS.to_vec(), OF_TEXTS[12]);
    // Results are as large as their runs are many, line by line, and a memory of paths is smaller than a text.
    texts.retain(|words| *words != summary && !words.contains(&"FILE.journal") && !words.contains(&"--path-memory"));
    check(&here, &texts, "large", "it is larger than 16 MiB, the most that is read");
    check(&here, &OF_RECORDS, "large", "it is larger than 256 MiB, the most that is read");
    check(&here, &[summary], "large", "it is larger than 256 MiB");
    check(&here, &[OF_TEXTS[11]], "large", "line 1 is longer than 64 MiB");
    check(&here, &[OF_TEXTS[10]], "large", "it is longer than 1048576 bytes");
    fs::write(here.join("odd"), b"a = \"\xff\"").unwrap();
    surround(&here, "odd");
    check(&here, &texts, "odd", "it is no text: byte 5 is not UTF-8");
}

#[test]
fn a_scenario_comes_from_standard_input() {
    let here = directory("a_scenario_comes_from_standard_input");
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    let program = env!("CARGO_BIN_EXE_anabranch");
    for command in ["run - --json", "compare - --repeat 1 --schedulers min-rtt --json"] {
        let line = format!("{program} {command} < ok.toml");
        let output = Command::new("sh").args(["-c", &line]).current_dir(&here).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !output.stdout.is_empty(), "{command}: {said}");
    }
}

/// Names with ESC, OSC, C1, bidirectional overrides and isolates, characters without width, and ends of lines.
const HOSTILE: &str = r#"
about = "a\u001b[31mRED\u001b]0;title\u0007 \u202e rtl \u009b2J"
[path."p\u001b[2J\u2066q"]
rate = "30mbit"
delay = "10ms"
[path."two\nlines\u200b"]
rate = "30mbit"
delay = "10ms"
[[workload]]
kind = "files"
size = "50KiB"
"#;

#[test]
fn nothing_in_a_file_commands_the_terminal() {
    let here = directory("nothing_in_a_file_commands_the_terminal");
    fs::write(here.join("esc.toml"), HOSTILE).unwrap();
    let name = "n\u{1b}[2J\u{202e}.toml";
    fs::write(here.join(name), HOSTILE.replace("rate = \"30mbit\"\n", "rat\u{202e}e = \"30mbit\"\n")).unwrap();
    fs::write(here.join("study.toml"), STUDY.replace("minRTT", "min\\u001b[2J\\u202eRTT")).unwrap();
    fs::write(here.join("x.script"), "host a\u{1b}[2J\u{202e}\n").unwrap();
    let missing = "\u{1b}]0;x\u{7}\u{2067}.toml";
    for words in [
        &["run", "esc.toml"][..],
        &["run", "esc.toml", "--repeat", "2"],
        &["run", "esc.toml", "--json"],
        &["compare", "esc.toml", "--repeat", "2", "--schedulers", "min-rtt,late"],
        &["compare", "esc.toml", "--repeat", "1", "--schedulers", "min-rtt", "--json"],
        &["why", "esc.toml", "--repeat", "1", "--schedulers", "min-rtt", "--congestions", "cubic"],
        &["study", "study.toml", "--quick", "--repeat", "1"],
        &["run", name],
        &["run", missing],
        &["script", "x.script"],
        &["script", missing],
        &["inspect", missing],
        &["sweep", missing],
        &["run", "esc.toml", missing],
        &["run", "esc.toml", "--set", "path.x\u{1b}[2J=1"],
        &["run", "esc.toml", "--csv", "no\u{1b}[2J/x.csv"],
    ] {
        let output = within_a_minute(&here, words);
        for (stream, bytes) in [("output", &output.stdout), ("error", &output.stderr)] {
            let text = String::from_utf8(bytes.clone()).unwrap();
            let bad =
                text.chars().find(|c| c.is_control() && *c != '\n' || "\u{202e}\u{2066}\u{2067}\u{200b}".contains(*c));
            assert_eq!(bad, None, "{words:?}, standard {stream}: {text}");
        }
        assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{words:?}");
    }
    let table = succeed(&here, &["run", "esc.toml"]);
    assert!(table.contains(r"  p\u001b[2J\u2066q ") && table.contains(r"  two\nlines\u200b "), "{table}");
    // An escape of JSON: the names are those of the file.
    let json: serde_json::Value = serde_json::from_str(&succeed(&here, &["run", "esc.toml", "--json"])).unwrap();
    assert_eq!(json["paths"], serde_json::json!(["p\u{1b}[2J\u{2066}q", "two\nlines\u{200b}"]));
}

#[test]
fn a_message_is_short_whatever_the_file_is() {
    let here = directory("a_message_is_short_whatever_the_file_is");
    let deep = format!("a = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{} = 1\n{SCENARIO}", "x".repeat(1_000_000));
    let value = format!("{SCENARIO}[run]\nstop = \"{}\"\n", "9".repeat(1_000_000));
    let tables = format!("a = {}1{}\n", "{ a = ".repeat(20_000), "}".repeat(20_000));
    let dotted = format!("{} = 1\n", vec!["a"; 100_000].join("."));
    for (name, text) in [("deep", deep), ("long", long), ("value", value), ("tables", tables), ("dotted", dotted)] {
        fs::write(here.join(name), text).unwrap();
        for command in ["run", "sweep", "study", "script"] {
            let output = within_a_minute(&here, &[command, name]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success() && said.len() < 10_000, "{command} {name}: {} bytes", said.len());
            assert!(output.status.code().is_some_and(|code| code <= 2) && !said.contains("bug"), "{command} {name}");
        }
    }
}
