//! `anabranch kernel steer` beside a transfer of the kernel's MPTCP: subflows are closed and made backups as the rules
//! of a policy say, and endpoints are as before when it ends, however it does.

use super::common::schema::Schema;
use super::kernel::has_features;
use super::{lacks, place, run, server, stderr, two_paths};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Sends until a file named `over` is there.
const CLIENT: &str = r#"
import os, socket
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
client.connect(("10.77.0.1", 5232))
while not os.path.exists("over"): client.sendall(bytes(1 << 16))
"#;

/// The place of the test, with round trips of 20 and 120 ms, unless something is missing.
fn place_of(test: &str, policy: &str) -> Option<PathBuf> {
    let paths = two_paths([("near", "10ms", ""), ("far", "60ms", "")]);
    place_with(test, &[("paths.toml", &paths), ("policy.toml", policy), ("client.py", CLIENT)])
}

/// The place of a test with these files and a server, unless something is missing.
pub(super) fn place_with(test: &str, files: &[(&str, &str)]) -> Option<PathBuf> {
    let directory = place(test)?;
    if !has_features(test, &["mptcp"]) {
        return None;
    }
    if lacks("python3") || lacks("pgrep") {
        eprintln!("SKIPPED: {test}: it takes python3 and pgrep");
        return None;
    }
    fs::write(directory.join("server.py"), server(5232)).unwrap();
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
    _ = fs::remove_file(directory.join("over"));
    Some(directory)
}

/// Runs a script of the shell in the client, where `$steer` is the command with the policy, beside a transfer.
fn try_out(directory: &Path, script: &str) {
    run_in_client(directory, &format!("ip mptcp endpoint show > before\npython3 client.py & sender=$!\n{script}"));
}

/// Runs a script of the shell in the client, where `$steer` is the command with the policy.
pub(super) fn run_in_client(directory: &Path, script: &str) {
    let anabranch = env!("CARGO_BIN_EXE_anabranch");
    let head = format!(
        "steer='{anabranch} kernel steer --policy policy.toml --json'
trap 'touch over' EXIT
wait_for() {{ tries=0; until eval \"$1\"; do tries=$((tries + 1)); test $tries -lt 600 || exit 9; sleep 0.05; done; }}
"
    );
    fs::write(directory.join("client.sh"), format!("{head}{script}")).unwrap();
    let args = ["paths.toml", "--duration", "90s", "--json", "testbed.json", "--server", "python3 server.py"];
    let output = run(directory, &[&args[..], &["--", "sh", "-e", "client.sh"]].concat());
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    assert!(output.status.success(), "{}{}{}", stderr(&output), read("steer.err"), read("steer.jsonl"));
}

fn events(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("steer.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

/// 3 MB pass, and what was under way when they had. The end puts the endpoint back.
#[test]
fn a_quota_closes_the_subflow_until_the_end() {
    let policy = r#"
[path.far]
address = "10.77.2.2"
quota = "3MB"
[[rule]]
when = "quota >= 100%"
then = "close"
"#;
    let Some(directory) = place_of("steer-quota", policy) else { return };
    try_out(
        &directory,
        "$steer > steer.jsonl 2> steer.err & steering=$!
wait_for 'grep -q closed steer.jsonl'
ip mptcp endpoint show > during
wait_for 'test $(grep -c '\\''\"state\":\"closed\"'\\'' steer.jsonl) -ge 3'
kill $steering
wait $steering
ip mptcp endpoint show > after
touch over
wait $sender\n",
    );
    let events = events(&directory);
    let change = events.iter().find(|it| it["event"] == "change").unwrap();
    assert_eq!((&change["from"], &change["to"], &change["done"]), (&"open".into(), &"closed".into(), &true.into()));
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["changes"], &last["put_back"]), (&"end".into(), &1.into(), &1.into()));
    let closed: Vec<&Value> = events.iter().filter(|it| it["state"] == "closed").collect();
    assert!(!closed.is_empty() && closed.iter().all(|it| it["used"].as_u64().unwrap() < 5_000_000), "{closed:?}");
    // What is measured in the look that decides was measured before the kernel is told.
    let mut told = closed.iter().filter(|it| it["time"].as_f64() > change["time"].as_f64()).peekable();
    assert!(told.peek().is_some() && told.all(|it| it["up"] == false), "{closed:?}");
    let (before, during) = (read(&directory, "before"), read(&directory, "during"));
    assert!(before.contains("10.77.2.2") && !during.contains("10.77.2.2"), "{before}{during}");
    let mut after: Vec<String> = read(&directory, "after").lines().map(str::to_owned).collect();
    after.sort();
    let mut before: Vec<String> = before.lines().map(str::to_owned).collect();
    before.sort();
    assert_eq!(after, before);
    Schema::of("kernel-steer").check_lines(&read(&directory, "steer.jsonl"), "kernel steer --json");
}

const SLOW: &str = r#"
[path.near]
interface = "near"
[path.far]
interface = "far"
[[rule]]
path = "far"
when = "rtt > 100ms"
for = "1s"
then = "backup"
"#;

/// A backup carries nothing while the other subflow can. Whoever is killed, the endpoint is put back.
#[test]
fn a_slow_path_becomes_a_backup_and_is_none_after_kill_9() {
    let Some(directory) = place_of("steer-backup", SLOW) else { return };
    try_out(
        &directory,
        "$steer > steer.jsonl 2> steer.err & steering=$!
wait_for 'grep -q '\\''\"to\":\"backup\"'\\'' steer.jsonl'
ip mptcp endpoint show > during
sleep 4
kill -9 $steering
wait_for 'ip mptcp endpoint show | cmp -s - before'
$steer > again.jsonl 2> steer.err & steering=$!
wait_for 'grep -q '\\''\"to\":\"backup\"'\\'' again.jsonl'
keeper=$(pgrep -P $steering)
kill -9 $keeper $steering
sleep 0.2
ip mptcp endpoint show | cmp -s - during
$steer --dry-run --duration 1s > /dev/null
ip mptcp endpoint show > after
touch over
wait $sender\n",
    );
    let measures: Vec<Value> =
        events(&directory).into_iter().filter(|it| it["event"] == "measure" && it["path"] == "far").collect();
    let rates = |state: &str| -> Vec<f64> {
        let of = measures.iter().filter(|it| it["state"] == state);
        of.map(|it| it["rate_mbit_s"].as_f64().unwrap()).collect()
    };
    // What was queued when it became a backup still leaves.
    let (open, backup) = (rates("open"), rates("backup"));
    let (busiest, last) = (open.iter().chain(&backup).copied().fold(0.0, f64::max), *backup.last().unwrap());
    assert!(busiest > 2.0 && last < 0.1, "open {open:?}, backup {backup:?} Mbit/s");
    let (before, during) = (read(&directory, "before"), read(&directory, "during"));
    assert!(!before.contains("backup") && during.contains("backup"), "{before}{during}");
    assert_eq!(read(&directory, "after"), before);
}

/// `--dry-run` and `--once` say what they would do; two at a time, and a path manager in user space, are refused.
#[test]
fn nothing_is_done_where_nothing_is_to_be_done() {
    let Some(directory) = place_of("steer-dry", SLOW) else { return };
    try_out(
        &directory,
        "$steer --dry-run > steer.jsonl 2> steer.err & steering=$!
wait_for 'grep -q '\\''\"to\":\"backup\"'\\'' steer.jsonl'
${steer% --json} --once > once
kill $steering
wait $steering
ip mptcp endpoint show | cmp - before
$steer > one.jsonl & steering=$!
wait_for 'grep -q path one.jsonl'
if $steer 2> second; then exit 8; fi
kill $steering
wait $steering
sysctl -qw net.mptcp.pm_type=1
if $steer 2> userspace; then exit 8; fi
sysctl -qw net.mptcp.pm_type=0
touch over
wait $sender\n",
    );
    let events = events(&directory);
    let change = events.iter().find(|it| it["event"] == "change").unwrap();
    assert_eq!((&change["path"], &change["done"]), (&"far".into(), &false.into()), "{change}");
    let once = read(&directory, "once");
    assert!(once.contains("path far: up, rtt 1") && once.contains("backup holds: rtt > 100ms: it is 1"), "{once}");
    let said = |name: &str| read(&directory, name).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said("second").contains("another `kernel steer` is at work"), "{}", said("second"));
    assert!(said("userspace").contains("is in user space"), "{}", said("userspace"));
}
