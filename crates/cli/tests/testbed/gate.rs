//! `anabranch kernel steer --gate`, an experiment: a path is closed for new data by the pacing rate of its subflows,
//! and opens however the command ends. Connections never lose their last open subflow.

use super::kernel::{LOADING, turn};
use super::steer::{place_with, run_in_client};
use super::{lacks, two_paths};
use std::fs;
use std::path::{Path, PathBuf};

/// Closes the far path.
const ALWAYS: &str = r#"
[path.near]
interface = "near"
[path.far]
address = "10.77.2.2"
[[rule]]
path = "far"
when = "always"
then = "gate"
"#;

/// Sends with our congestion control until a file named `over` is there, then writes the longest time \[s\] that a
/// piece of data had to wait for room. A file named `switch` makes it change to Reno.
const CLIENT: &str = r#"
import os, socket, time
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"ab_veno")
client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
client.connect(("10.77.0.1", 5232))
longest = 0
while not os.path.exists("over"):
    begin = time.monotonic()
    client.sendall(bytes(1 << 15))
    longest = max(longest, time.monotonic() - begin)
    if os.path.exists("switch"):
        os.unlink("switch")
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
client.close()
print(longest, flush=True)
"#;

/// `acked ADDRESS FILE` appends a line with a time \[s\] and the bytes that were acknowledged there to a file.
const ACKED: &str = r#"
acked() {
    bytes=$(ss -tinH src $1 dst 10.77.0.1 | grep -o 'bytes_acked:[0-9]*' | cut -d: -f2 | sort -n | tail -n 1)
    echo "$(cut -d' ' -f1 /proc/uptime) ${bytes:-0}" >> $2
}
available=/proc/sys/net/ipv4/tcp_available_congestion_control
started() { wait_for 'grep -qw ab_veno $available && grep -q path steer.jsonl'; }
"#;

/// The place of the test, with these `changes` of its paths, unless something is missing.
fn place_of(test: &str, changes: &str, policy: &str) -> Option<PathBuf> {
    if lacks("ss") {
        eprintln!("SKIPPED: {test}: it takes ss");
        return None;
    }
    let paths = two_paths([("near", "10ms", ""), ("far", "10ms", "")]) + changes;
    let directory = place_with(test, &[("paths.toml", &paths), ("policy.toml", policy), ("client.py", CLIENT)])?;
    // Files of an earlier run would be appended to.
    for entry in fs::read_dir(&directory).unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().ends_with(".acked") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    Some(directory)
}

/// Runs a script while gates are kept and the client sends.
fn beside_a_transfer(directory: &Path, script: &str) {
    let begin = "$steer --gate veno > steer.jsonl 2> steer.err & steering=$!
started
python3 client.py > longest & sender=$!
";
    let end = "touch over
wait $sender
kill $steering
wait $steering
";
    run_in_client(directory, &format!("{ACKED}{begin}{script}{end}"));
}

/// Times and bytes of a file that `acked` wrote.
fn samples(directory: &Path, name: &str) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(directory.join(name)).unwrap();
    let numbers = |line: &str| {
        let (time, bytes) = line.split_once(' ').unwrap();
        (time.parse().unwrap(), bytes.parse().unwrap())
    };
    text.lines().map(numbers).collect()
}

/// Bytes a second between the first and the last sample.
fn rate(samples: &[(f64, f64)]) -> f64 {
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    (last.1 - first.1) / (last.0 - first.0)
}

fn longest_wait(directory: &Path, name: &str) -> f64 {
    fs::read_to_string(directory.join(name)).unwrap().trim().parse().unwrap()
}

/// 2.5 MB/s go over each path. A rule closes one; it opens when the command ends in order, and when it and the process
/// that waits beside it are killed at once.
#[test]
fn a_gate_keeps_data_off_a_path_and_opens_however_the_command_ends() {
    let Some(_turn) = turn("gate", &LOADING) else { return };
    let policy = r#"
[path.near]
interface = "near"
[path.far]
address = "10.77.2.2"
quota = "2MB"
[[rule]]
path = "far"
when = "quota >= 100%"
then = "gate"
"#;
    let Some(directory) = place_of("gate", "", policy) else { return };
    let phase = |name: &str, ends: &str| {
        format!(
            "$steer --gate veno > steer.jsonl 2> steer.err & steering=$!
started
python3 client.py > longest & sender=$!
wait_for 'grep -q '\\''\"to\":\"gated\"'\\'' steer.jsonl'
sleep 2
for i in 1 2 3 4; do acked 10.77.2.2 {name}-far.acked; acked 10.77.1.2 {name}-near.acked; sleep 1; done
{ends}
for i in $(seq 1 30); do acked 10.77.2.2 {name}-after.acked; sleep 0.2; done
touch over
wait $sender
rm over
mv longest {name}-longest
wait_for '! grep -qw ab_veno $available'\n"
        )
    };
    let ended = phase("ended", "kill $steering; wait $steering");
    let killed = phase("killed", "kill -9 $(pgrep -P $steering) $steering");
    run_in_client(&directory, &format!("{ACKED}{ended}{killed}"));
    for name in ["ended", "killed"] {
        let (far, near) = (
            rate(&samples(&directory, &format!("{name}-far.acked"))),
            rate(&samples(&directory, &format!("{name}-near.acked"))),
        );
        let after = samples(&directory, &format!("{name}-after.acked"));
        let begin = after[0];
        let opened = after.iter().find(|(_, bytes)| *bytes > begin.1 + 50_000.0).map(|(time, _)| time - begin.0);
        let last = rate(&after[after.len() - 10..]);
        let longest = longest_wait(&directory, &format!("{name}-longest"));
        println!(
            "{name}: closed {far} and {near} B/s, opened after {opened:?} s, then {last} B/s, longest wait {longest} s"
        );
        assert!(far < near / 100.0 && near > 1e6, "{name}: {far} and {near} B/s");
        // A second until nobody has renewed it, another until the next probe, and slow start.
        assert!(opened.is_some_and(|time| time < 4.0), "{name}: {opened:?} s");
        assert!(last > 5e5, "{name}: {last} B/s");
        assert!(longest < 1.5, "{name}: {longest} s");
    }
}

/// Of a connection all of whose paths are to be closed, none is.
#[test]
fn a_connection_whose_paths_are_all_to_be_closed_goes_on() {
    let Some(_turn) = turn("gate-all", &LOADING) else { return };
    let policy = "[path.near]\ninterface = \"near\"\n[path.far]\naddress = \"10.77.2.2\"\n[[rule]]\nwhen = \
                  \"always\"\nthen = \"gate\"\n";
    let Some(directory) = place_of("gate-all", "", policy) else { return };
    let script = "sleep 3
for i in 1 2 3 4; do acked 10.77.2.2 far.acked; acked 10.77.1.2 near.acked; sleep 1; done
";
    beside_a_transfer(&directory, script);
    let [far, near] = ["far.acked", "near.acked"].map(|name| rate(&samples(&directory, name)));
    println!("far {far}, near {near} B/s, longest wait {} s", longest_wait(&directory, "longest"));
    assert!(far > 5e5 && near > 5e5, "far {far}, near {near} B/s");
    assert!(longest_wait(&directory, "longest") < 1.5, "{} s", longest_wait(&directory, "longest"));
}

/// A program that takes another congestion control while a path of it is closed is rid of the gate.
#[test]
fn a_closed_path_opens_when_its_socket_takes_another_congestion_control() {
    let Some(_turn) = turn("gate-switch", &LOADING) else { return };
    let Some(directory) = place_of("gate-switch", "", ALWAYS) else { return };
    let script = "sleep 3
for i in 1 2 3; do acked 10.77.2.2 closed.acked; sleep 1; done
touch switch
sleep 2
for i in 1 2 3; do acked 10.77.2.2 open.acked; sleep 1; done
";
    beside_a_transfer(&directory, script);
    let [closed, open] = ["closed.acked", "open.acked"].map(|name| rate(&samples(&directory, name)));
    println!("closed {closed}, with Reno {open} B/s");
    assert!(closed < 1e4 && open > 1e6, "closed {closed}, with Reno {open} B/s");
}

/// The other subflow is reset: the closed one is the last, and carries the data from its next probe on.
#[test]
fn a_closed_path_opens_when_it_is_the_last() {
    let Some(_turn) = turn("gate-last", &LOADING) else { return };
    let Some(directory) = place_of("gate-last", "", ALWAYS) else { return };
    let script = "sleep 3
for i in 1 2 3; do acked 10.77.2.2 closed.acked; sleep 1; done
ss -K src 10.77.1.2 dst 10.77.0.1 > killed.txt
sleep 3
for i in 1 2 3; do acked 10.77.2.2 open.acked; sleep 1; done
";
    beside_a_transfer(&directory, script);
    if !fs::read_to_string(directory.join("killed.txt")).unwrap().contains("10.77.1.2") {
        eprintln!("SKIPPED: gate-last: this kernel ends no subflows for others (CONFIG_INET_DIAG_DESTROY)");
        return;
    }
    let [closed, open] = ["closed.acked", "open.acked"].map(|name| rate(&samples(&directory, name)));
    println!("closed {closed}, alone {open} B/s, longest wait {} s", longest_wait(&directory, "longest"));
    assert!(closed < 1e4 && open > 1e6, "closed {closed}, alone {open} B/s");
    assert!(longest_wait(&directory, "longest") < 3.0, "{} s", longest_wait(&directory, "longest"));
}

/// The open path turns into a black hole for six seconds: the closed one carries the data as long as the other repairs
/// a timeout, and is closed again.
#[test]
fn a_closed_path_takes_over_while_the_open_one_is_a_black_hole() {
    let Some(_turn) = turn("gate-hole", &LOADING) else { return };
    let hole = "[[change]]\nat = \"8s\"\npath = \"near\"\nstate = \"blackhole\"\n[[change]]\nat = \"14s\"\npath = \
                \"near\"\nstate = \"restore\"\n";
    let Some(directory) = place_of("gate-hole", hole, ALWAYS) else { return };
    let script = "for i in $(seq 1 110); do acked 10.77.2.2 far.acked; acked 10.77.1.2 near.acked; sleep 0.2; done
";
    beside_a_transfer(&directory, script);
    let (far, near) = (samples(&directory, "far.acked"), samples(&directory, "near.acked"));
    // The hole is where nothing arrived on the near path for longest.
    let mut moved = near.windows(2).filter(|pair| pair[1].1 > pair[0].1).map(|pair| pair[1].0);
    let mut last = moved.next().unwrap();
    let (mut from, mut until) = (last, last);
    for time in moved {
        if time - last > until - from {
            (from, until) = (last, time);
        }
        last = time;
    }
    let between = |from: f64, until: f64| -> Vec<(f64, f64)> {
        far.iter().copied().filter(|(time, _)| (from..until).contains(time)).collect()
    };
    let (before, during, after) =
        (rate(&between(from - 3.0, from)), rate(&between(from + 2.5, until)), rate(&between(until + 4.0, last)));
    println!("hole of {} s; far before {before}, during {during}, after {after} B/s", until - from);
    println!("longest wait {} s", longest_wait(&directory, "longest"));
    assert!(until - from > 4.0, "{from} to {until}");
    assert!(before < 1e4 && during > 5e5 && after < 1e5, "far: before {before}, during {during}, after {after} B/s");
    assert!(longest_wait(&directory, "longest") < 4.0, "{} s", longest_wait(&directory, "longest"));
}
