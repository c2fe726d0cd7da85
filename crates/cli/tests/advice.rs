//! Slips on the command line and in overrides, each with the remedy; policies by the same options in every command.
#![allow(clippy::unwrap_used)]

mod common;

use common::{POLICY_LISTS, SWEEP, anabranch, directory, refused, succeed};
use std::fs;
use std::path::Path;

const SCENARIO: &str = "[path.wlan]\nrate = \"20mbit\"\ndelay = \"5ms\"\n\
                        [path.lte]\nrate = \"10mbit\"\ndelay = \"20ms\"\n[[workload]]\nkind = \"files\"\nsize = \"50kB\"\n";

#[test]
fn a_slip_is_answered_with_its_remedy() {
    let here = directory("a_slip_is_answered_with_its_remedy");
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    fs::write(here.join("sweep.toml"), SWEEP).unwrap();
    fs::write(here.join("via.toml"), SCENARIO.replacen("[path.lte]", "via = [\"x\"]\n[path.lte]", 1)).unwrap();
    fs::write(here.join("drive.toml"), SCENARIO.replacen("20mbit", "drive.trace", 1)).unwrap();
    fs::write(here.join("drives.toml"), "scenario = \"drive.toml\"\n").unwrap();
    fs::write(here.join("drive.trace"), "1\n2\n3\n").unwrap();
    fs::write(here.join("long.toml"), SCENARIO.replace("kind = \"files\"\nsize = \"50kB\"", LONG)).unwrap();
    for (words, remedy) in [
        (&["run", "ok.toml", "--schedulers", "late"][..], "`anabranch compare SCENARIO --schedulers A,B`"),
        (&["run", "ok.toml", "late"], "a policy is named by an option: --scheduler late"),
        (&["run", "ok.toml", "bbr"], "a policy is named by an option: --congestion bbr"),
        (&["compare", "ok.toml", "late"], "a policy is named by an option: --schedulers late"),
        (&["compare", "ok.toml", "--scheduler", "late"], "accepted: --schedulers late,…"),
        (&["compare", "--all", "--scheduler", "late"], "accepted: --schedulers late,…"),
        (&["rank", "--count", "1", "--scheduler", "late"], "accepted: --schedulers late,…"),
        (&["sweep", "sweep.toml", "--schedulers", "late"], "the systems of a sweep stand in its file"),
        (&["sweep", "sweep.toml", "--congestion", "bbr"], "the systems of a sweep stand in its file"),
        (&["twin", "x.pcap", "--scheduler", "late"], "`anabranch run mine.toml --scheduler …`"),
        (&["run", "ok.toml", "--scheduler", "lat"], "did you mean `late`?"),
        (&["run", "ok.toml", "--scheduler", "5"], "there is no scheduler called `5`"),
        (&["why", "ok.toml", "--congestion", "cubic,bbr"], "there is no congestion control called `cubic,bbr`"),
        (&["run", "ok.toml", "--csv", "./ok.toml"], "--csv names ./ok.toml, which is read"),
        (&["run", "drive.toml", "--csv", "drive.trace"], "--csv names drive.trace, which is read"),
        (&["sweep", "drives.toml", "--csv", "drive.trace"], "--csv names drive.trace, which is read"),
        (
            &["run", "ok.toml", "--set", "path.wlan.rate=drive.trace", "--csv", "drive.trace"],
            "drive.trace, which is read",
        ),
        (&["twin", "ok.toml", "-o", "ok.toml"], "--output names ok.toml, which is read"),
        (&["why", "ok.toml", "--schedulers", "lat,late"], "did you mean `late`?"),
        (&["why", "ok.toml", "--congestions", "cubc"], "did you mean `cubic`?"),
        (&["run", "ok.toml", "--set", "path.lte=1"], "accepted: a table such as { … }"),
        (&["run", "ok.toml", "--repeat", "-3"], "-3 is not in 1..=100000"),
        (&["run", "ok.toml", "--seed", "-3"], "a whole number is accepted"),
        (
            &["proxy", "--listen", "80", "--to", "127.0.0.1:8080"],
            "an address and a port are accepted, such as 10.78.0.1:80",
        ),
        (&["proxy", "--socks", "1080", "--via", "10.78.0.1"], "an address and a port are accepted"),
        (&["proxy", "--socks", "127.0.0.1:1", "--via", "eth0"], "addresses are accepted, such as 10.78.0.1"),
        (&["serve", "--listen", "80"], "addresses are accepted, such as 10.78.0.1"),
        (
            &["run", "ok.toml", "--set", "path.let.delay=40ms"],
            "did you mean `lte`? accepted: wlan, lte; a new one takes",
        ),
        (&["run", "ok.toml", "--set", "link.x.rate=1mbit"], "there is no link `x`"),
        (&["run", "ok.toml", "--set", "change.0.at=1s"], "`change` has no entry `0`"),
        (&["run", "ok.toml", "--set", "path.lte.queue=40kib"], "did you mean \"40KiB\"?"),
        (&["run", "via.toml"], "accepted: one text in quotes, such as \"x\", without brackets"),
        (&["run", "long.toml", "--set", "run.stop=60s"], "accepted: 1000s or more"),
    ] {
        let said = refused(&here, words);
        assert!(said.contains(remedy), "{words:?}: {said}");
        assert!(!said.contains("as a value, use"), "{words:?}: {said}");
    }
}

const LONG: &str = "kind = \"bulk\"\nduration = \"1000s\"";

#[test]
fn a_place_that_takes_no_files_is_named() {
    let here = directory("a_place_that_takes_no_files_is_named");
    for (option, place) in [("--pcap", "/proc/x"), ("--csv", "/proc/x"), ("--csv", "/proc/x/y.csv")] {
        let output = anabranch(&here, &["run", "wlan-lte", option, place]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("nothing new can be in /proc: name another place"), "{said}");
    }
    let output = anabranch(&here, &["run", "wlan-lte", "--csv", "new/x.csv"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("mkdir -p new"));
}

#[test]
fn the_lists_are_listed() {
    let said = succeed(Path::new("."), &["list"]);
    for list in POLICY_LISTS.into_iter().chain(["profiles", "studies"]) {
        assert!(said.lines().any(|line| line.starts_with(&format!("{list} "))), "{list}: {said}");
    }
    assert!(said.contains("anabranch list schedulers"), "{said}");
}

/// Options of policies are `--set host.KEY=NAME`.
#[test]
fn policies_have_the_same_options_in_every_command() {
    let here = directory("policies_have_the_same_options_in_every_command");
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    let json = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&succeed(&here, &[&["run", "ok.toml", "--json"], words].concat())).unwrap()
    };
    for (option, key, name) in [
        ("--scheduler", "scheduler", "late"),
        ("--scheduler", "scheduler", "ecf:beta=0.5"),
        ("--congestion", "congestion", "olia"),
        ("--window", "window", "even"),
        ("--ack-path", "ack-path", "fixed:path=wlan"),
        ("--reinjection", "reinjection", "on-rto"),
        ("--first-path", "first-path", "as-listed"),
        ("--profile", "profile", "rfc"),
    ] {
        let (by_option, by_set) = (json(&[option, name]), json(&["--set", &format!("host.{key}=\"{name}\"")]));
        assert_eq!(by_option["digest"], by_set["digest"], "{option} {name}");
        assert_eq!(by_option["runs"], by_set["runs"], "{option} {name}");
        assert_ne!(by_option["digest"], json(&[])["digest"], "{option} {name}");
    }
    assert_eq!(json(&["--scheduler", "late"])["sets"], serde_json::json!(["host.scheduler=late"]));
    let help = |command: &str| succeed(&here, &[command, "--help"]);
    for command in ["run", "compare", "why", "rank", "study", "testbed", "serve", "fetch", "proxy"] {
        let help = help(command);
        for option in ["scheduler", "congestion", "window", "ack-path", "reinjection", "first-path", "profile"] {
            assert!(help.contains(&format!("      --{option} <NAME")), "{command} --{option}: {help}");
        }
    }
}
