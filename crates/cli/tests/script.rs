//! `anabranch script` as its users meet it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GOOD: &str = "listen 80\nsubflow a host 10.1.0.1:80 peer 10.0.0.1:4000\na < S mp_capable\na > S. mp_capable\n";

fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(directory.join("sub")).unwrap();
    std::fs::write(directory.join("good.script"), GOOD).unwrap();
    std::fs::write(directory.join("sub/bad.script"), format!("{GOOD}a < .\nevent accepted mptcp\n")).unwrap();
    std::fs::write(directory.join("wrong.txt"), "lissten 80\n").unwrap();
    directory
}

fn script(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_anabranch")).current_dir(directory).arg("script").args(args).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_script_that_holds() {
    let (code, out, err) = script(&directory("holds"), &["good.script"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "ok      good.script\n1 script, 0 failed\n", ""));
}

#[test]
fn a_script_that_does_not_hold() {
    let (code, out, _) = script(&directory("fails"), &["."]);
    assert_eq!(code, 1);
    assert!(out.starts_with(
        "ok      ./good.script\nfailed  ./sub/bad.script\n./sub/bad.script:6: the application did not hear"
    ));
    assert!(out.contains("@0 a > S. seq=0 ack=1 win=65535 mss=1460 mp_capable(v=1, flags=H, sender=host)"), "{out}");
    assert!(out.ends_with("2 scripts, 1 failed\n"));
}

#[test]
fn the_same_as_json() {
    let (code, out, _) = script(&directory("json"), &["--json", "good.script", "sub/bad.script", "wrong.txt"]);
    assert_eq!(code, 2, "a script that is wrong is the caller's fault");
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&all["passed"], &all["failed"]), (&1.into(), &2.into()));
    let results: Vec<_> = all["scripts"].as_array().unwrap().iter().map(|row| row["result"].clone()).collect();
    assert_eq!(results, ["ok", "failed", "refused"]);
    assert_eq!(all["scripts"][1]["place"], "sub/bad.script:6");
    assert_eq!(all["scripts"][0]["injected"], 1);
}

#[test]
fn what_is_wrong_with_a_script_is_shown_in_place() {
    let here = directory("refused");
    let (code, out, _) = script(&here, &["wrong.txt"]);
    assert_eq!(code, 2);
    assert!(out.contains("`lissten` is not a statement") && out.contains("`listen`? accepted: host, peer"), "{out}");
    let (code, out, _) = script(&here, &["nothing.script"]);
    assert!(code == 2 && out.contains("cannot be read"), "{out}");
    std::fs::create_dir_all(here.join("none")).unwrap();
    let (code, out, err) = script(&here, &["none"]);
    assert!(code == 2 && out.is_empty() && err.contains("hold no script"), "{err}");
}
