//! Parts of an installation besides the program: completions and manual pages.
#![allow(clippy::unwrap_used)]

mod common;

use common::{directory, names, succeed};
use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch");

/// Completes the last of `words` in bash, with the script that the program prints for it.
fn in_bash(words: &[&str]) -> Vec<String> {
    let script = succeed(Path::new("."), &["completions", "bash"]);
    let last = words.len() - 1;
    let complete = r#"COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        _clap_complete_anabranch "$1" "${!#}" "${@: -2:1}" && printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["-c", &format!("{script}\n{complete}"), "bash"])
        .args(words)
        .env("HOME", "/nonexistent")
        .output()
        .expect("bash is installed");
    assert!(output.status.success(), "{:?}: {}", words[last], String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Names that `anabranch list` has.
fn listed(what: &str) -> Vec<String> {
    let items: serde_json::Value = serde_json::from_str(&succeed(Path::new("."), &["list", what, "--json"])).unwrap();
    items["entries"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn bash_completes_commands_options_and_names() {
    let offers = |words: &[&str], expected: &[&str]| {
        let found = in_bash(&[&["anabranch"], words].concat());
        for name in expected {
            assert!(found.iter().any(|it| it == name), "{words:?}: no {name} in {found:?}");
        }
        found
    };
    offers(&["comp"], &["compare", "completions"]);
    offers(&["run", "--pc"], &["--pcap"]);
    offers(&["compare", "wl"], &["wlan-lte"]);
    assert_eq!(offers(&["list", "schedulers", ""], &["blest"])[..listed("schedulers").len()], listed("schedulers"));
    assert_eq!(offers(&["serve", "--scheduler", "bl"], &[]), ["blest", "blest-kernel"]);
    assert_eq!(offers(&["compare", "--schedulers", "late,ecf,bl"], &[]), ["late,ecf,blest", "late,ecf,blest-kernel"]);
    assert_eq!(offers(&["proxy", "--congestion", "ba"], &[]), ["balia"]);
    assert_eq!(offers(&["fetch", "--profile", "linux-3"], &[]), ["linux-3.14"]);
    assert_eq!(offers(&["study", "late/fig10"], &[]), ["late/fig10"]);
    assert_eq!(offers(&["study", "--paper", "lo"], &[]), ["lowlat"]);
    assert_eq!(offers(&["list", "middleboxes", "na"], &[]), ["nat"]);
}

/// A scenario and a study can be files as well.
#[test]
fn files_are_offered_behind_names() {
    let here = directory("completed-files");
    fs::write(here.join("mine.toml"), "").unwrap();
    let ask = |word: &str| {
        let output = Command::new(PROGRAM)
            .current_dir(&here)
            .env("ANABRANCH_COMPLETE", "fish")
            .args(["--", "anabranch", "run", word])
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask("mi"), "mine.toml\n");
    let all = ask("");
    let begins: Vec<&str> = all.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(begins[..listed("scenarios").len()], listed("scenarios"));
    assert!(begins.contains(&"mine.toml"), "{all}");
    // fish shows what each is.
    assert!(all.contains("wlan-lte\tA 2 MiB download"), "{all}");
}

#[test]
fn each_shell_gets_a_script_that_asks_this_program() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeed(Path::new("."), &["completions", shell]);
        assert!(script.contains("ANABRANCH_COMPLETE") && script.contains(PROGRAM), "{shell}: {script}");
    }
}

#[test]
fn each_command_gets_a_manual_page() {
    let here = directory("manual-pages");
    succeed(&here, &["man", "man1"]);
    let help = succeed(&here, &["--help"]);
    assert!(help.contains("\nExamples:\n"), "{help}");
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands = commands.filter(|name| !name.is_empty() && *name != "help");
    let mut pages: Vec<String> = commands.map(|name| format!("anabranch-{name}.1")).collect();
    pages.push("anabranch.1".to_owned());
    pages.sort();
    assert_eq!(names(&here.join("man1")), pages);
}
