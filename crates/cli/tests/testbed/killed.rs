//! kill -9 of each process at awkward moments: no process, no namespace, no interface and no mount is left.

use super::{PATIENCE, place, start, until, wait_for};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The processes, by number, in whose command line `word` stands as an argument of its own.
pub fn processes_with(word: &str) -> Vec<i32> {
    processes().into_iter().filter(|pid| arguments(*pid).iter().any(|it| it == word)).collect()
}

pub fn kill(pid: i32, signal: &str) {
    let status = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -{signal} {pid}");
}

fn processes() -> Vec<i32> {
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

fn arguments(pid: i32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split('\0').map(str::to_owned).collect()
}

fn children(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// The namespaces of a process's threads, by kind and number.
fn namespaces(pid: i32) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let links =
        tasks.flat_map(|task| ["net", "mnt", "pid"].map(|kind| fs::read_link(task.path().join("ns").join(kind))));
    links.flatten().map(|link| link.to_string_lossy().into_owned()).collect()
}

/// Traces of a testbed visible to the rest of the system.
fn surroundings() -> (String, String, BTreeSet<String>) {
    let links = Command::new("ip").args(["-br", "link"]).output().unwrap();
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    (String::from_utf8(links.stdout).unwrap(), fs::read_to_string("/proc/self/mounts").unwrap(), names)
}

/// The numbers of the processes of a testbed, outermost first.
fn chain(outer: i32) -> [i32; 3] {
    let init = children(outer)[0];
    let worker = children(init)[0];
    [outer, init, worker]
}

#[test]
fn whoever_is_killed_nothing_is_left() {
    let Some(here) = place("killed") else { return };
    let before = surroundings();
    for (n, victim) in ["caller", "init", "worker", "command"].into_iter().enumerate() {
        // A word by which to find every process of this testbed: ours have the caller's command line.
        let word = format!("474{n}");
        let up = here.join(format!("up-{n}"));
        let script = format!("echo $$ > {}; sleep {word}", up.display());
        let server = format!("sleep {word} & python3 -m http.server 80 --bind 10.77.0.1");
        let args = ["two.toml", "--server", &server, "--", "sh", "-c", &script, &word];
        let mut child = start(&here, &args);
        wait_for(&up);
        until("the server's child is there", || processes_with(&word).len() >= 6);
        let outer = child.id() as i32;
        let [outer, init, worker] = chain(outer);
        let of_ours: BTreeSet<String> =
            namespaces(worker).difference(&namespaces(std::process::id() as i32)).cloned().collect();
        assert!(of_ours.len() >= 4, "two hosts, a PID and a mount namespace: {of_ours:?}");
        let sleeping = |pid: &i32| arguments(*pid)[0] == "sh" && *pid != outer;
        let command = processes_with(&word).into_iter().find(sleeping).unwrap();
        kill([outer, init, worker, command][n], "9");
        let status = child.wait().unwrap();
        match victim {
            "caller" => assert_eq!(status.code(), None),
            "command" => assert_eq!(status.code(), Some(137)),
            _ => assert_eq!(status.code(), Some(125), "{victim}"),
        }
        until(&format!("all processes are gone after the death of the {victim}"), || processes_with(&word).is_empty());
        let is_left = |pid: &i32| !namespaces(*pid).is_disjoint(&of_ours);
        until("no process is in a namespace of ours", || !processes().iter().any(is_left));
        until(&format!("all is as it was after the death of the {victim}"), || surroundings() == before);
    }
}

#[test]
fn killed_while_it_is_built_or_taken_down_nothing_is_left() {
    let Some(here) = place("killed-early") else { return };
    let before = surroundings();
    for n in 0..24 {
        let word = format!("48{n:02}");
        let args =
            ["two.toml", "--server", "python3 -m http.server 80 --bind 10.77.0.1", "--", "sh", "-c", "true", &word];
        let mut child = start(&here, &args);
        // From before the first fork to after the last packet.
        std::thread::sleep(Duration::from_millis(n * 25));
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
        until(&format!("all processes are gone, killed after {} ms", n * 25), || processes_with(&word).is_empty());
    }
    until("all is as it was", || surroundings() == before);
    let output = super::run(&here, &["two.toml", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "and the next one starts: {}", super::stderr(&output));
}

#[test]
fn a_signal_goes_to_the_command_and_its_answer_comes_back() {
    let Some(here) = place("signals") else { return };
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10)] {
        let up = here.join(format!("up-{signal}"));
        let script =
            format!("trap 'exit {}' {signal}; echo > {}; while true; do sleep 0.02; done", 40 + number, up.display());
        let mut child = start(&here, &["two.toml", "--", "sh", "-c", &script]);
        wait_for(&up);
        kill(child.id() as i32, signal);
        assert_eq!(child.wait().unwrap().code(), Some(40 + number), "{signal}");
    }
}

#[test]
fn interrupted_before_the_command_has_started_it_does_not_start() {
    let Some(here) = place("interrupted") else { return };
    // The server never listens, so that there is time in which to interrupt.
    let mut child = start(&here, &["two.toml", "--server", "echo > up; sleep 4714", "--", "touch", "started"]);
    wait_for(&here.join("up"));
    kill(child.id() as i32, "TERM");
    let begin = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(begin.elapsed() < PATIENCE);
    assert!(!here.join("started").exists());
    assert!(processes_with("4714").is_empty());
}

#[test]
fn what_processes_leave_behind_is_reaped() {
    let Some(here) = place("zombies") else { return };
    // Twenty grandchildren whose parents do not wait for them.
    let script = "for i in $(seq 20); do sh -c 'true & exec true'; done; zombies=-; \
                  for i in $(seq 600); do \
                      zombies=$(cat /proc/[0-9]*/stat 2>/dev/null | cut -d ' ' -f 3 | grep -c Z); \
                      [ $zombies = 0 ] && break; sleep 0.1; \
                  done; echo $zombies";
    let output = super::run(&here, &["two.toml", "--", "sh", "-c", script]);
    assert_eq!(super::stdout(&output), "0\n", "{}", super::stderr(&output));
}
