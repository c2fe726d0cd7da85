//! Commands of a testbed: their namespace, their environment, their exit codes.

use super::{place, run, start, stderr, stdout, testbed, until, wait_for};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

#[test]
fn the_exit_code_and_the_output_are_those_of_the_command() {
    let Some(here) = place("exit-code") else { return };
    let output = run(&here, &["two.toml", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(stdout(&output), "out\n", "nothing of ours is on standard output");
    assert!(stderr(&output).starts_with("err\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("VALID"), "and the table follows: {}", stderr(&output));
    assert!(run(&here, &["two.toml", "--", "true"]).status.success());
    let killed = run(&here, &["two.toml", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(137));
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_measured() {
    let Some(here) = place("cannot-run") else { return };
    let output = run(&here, &["two.toml", "--", "no-such-program-anywhere"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(stderr(&output).contains("cannot run `no-such-program-anywhere`"), "{}", stderr(&output));
    let output = run(&here, &["two.toml", "--", "./two.toml"]);
    assert_eq!(output.status.code(), Some(126), "{}", stderr(&output));
    let output = run(&here, &["two.toml", "--server", "echo oh no; exit 3", "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("oh no"), "its output is there: {}", stderr(&output));
    assert!(stderr(&output).contains("before it listened"), "{}", stderr(&output));
    let output = run(&here, &["no-such.toml", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = run(&here, &["two.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn without_iproute2_it_says_which_package_to_install() {
    let Some(here) = place("no-ip") else { return };
    let output = testbed(&here, &["two.toml", "--", "true"]).env("PATH", &here).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("iproute2"), "{}", stderr(&output));
}

#[test]
fn commands_find_names_addresses_and_variables() {
    let Some(here) = place("environment") else { return };
    let script = "getent ahostsv4 server | head -n 1 | cut -d ' ' -f 1; getent hosts server6 | cut -d ' ' -f 1; \
                  echo $ANABRANCH_SERVER $ANABRANCH_SERVER6 $ANABRANCH_PATHS $ANABRANCH_ADDRESSES $ANABRANCH_HOST; \
                  ip -o -4 address show dev lte | grep -o 10.77.2.2/24; ls /sys/class/net > /dev/null; echo $$";
    let output = run(&here, &["two.toml", "--", "sh", "-c", script]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["10.77.0.1", "fd77::1", "10.77.0.1 fd77::1 wlan lte 10.77.1.2 10.77.2.2 client"], "{text}");
    assert_eq!(lines[3], "10.77.2.2/24");
    assert!(lines[4].parse::<u32>().unwrap() < 1000, "processes are counted from one: {text}");
    let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(!hosts.contains("10.77.0.1"), "outside, nothing has changed");
}

#[test]
fn a_server_is_there_when_the_command_starts_and_gone_with_its_children_afterwards() {
    let Some(here) = place("server") else { return };
    // It listens only when the wait for it has been said, has a child, and minds no SIGTERM.
    let server = "trap '' TERM; until [ -e said ]; do sleep 0.05; done; sleep 4711 & echo $$ > server.pid; \
                  exec python3 -c 'import socket, time, signal\n\
                  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                  s = socket.create_server((\"10.77.0.1\", 80)); c = s.accept()[0]; \
                  c.sendall(b\"hello\"); time.sleep(4711)'";
    let client = "import socket; s = socket.create_connection(('server', 80), timeout=60); print(s.recv(5).decode())";
    let args = ["two.toml", "--server", server, "--wait", "120s", "--", "python3", "-c", client];
    let mut child = testbed(&here, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        said += &(line.unwrap() + "\n");
        if said.contains("waiting for the server to listen") {
            fs::write(here.join("said"), "").unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "hello\n"), "{said}");
    // The caller waits for the end of init, and that comes after the end of all others.
    assert_eq!(super::killed::processes_with("4711"), Vec::<i32>::new());
}

#[test]
fn a_server_that_never_listens_is_waited_for_as_long_as_one_likes() {
    let Some(here) = place("never-listens") else { return };
    let args = ["two.toml", "--server", "sleep 4716", "--wait", "300ms", "--", "echo", "all the same"];
    let output = run(&here, &args);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "all the same\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("after 0.3 s the server listened on no socket"), "{}", stderr(&output));
}

#[test]
fn a_server_of_datagrams_is_waited_for_as_well() {
    let Some(here) = place("datagrams") else { return };
    // Late, and without any socket that listens.
    let server = "sleep 3; exec python3 -c 'import socket\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((\"10.77.0.1\", 53))\n\
                  while True: s.sendto(*s.recvfrom(100))'";
    let client = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60); \
                  s.connect(('server', 53)); s.send(b'hello'); print(s.recv(100).decode())";
    let output = run(&here, &["two.toml", "--server", server, "--", "python3", "-c", client]);
    assert_eq!(stdout(&output), "hello\n", "{}", stderr(&output));
}

#[test]
fn a_shell_takes_commands_from_a_pipe() {
    let Some(here) = place("shell") else { return };
    let mut command = testbed(&here, &["two.toml", "--shell"]);
    command.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"echo $ANABRANCH_HOST\nexit 5\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_eq!(stdout(&output), "client\n");
    assert!(stderr(&output).contains("10.77.2.2"), "it says where one is: {}", stderr(&output));
}

#[test]
fn the_command_ends_when_its_time_is_up() {
    let Some(here) = place("duration") else { return };
    let output = run(&here, &["two.toml", "--duration", "300ms", "--", "sleep", "4712"]);
    assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
    assert!(stderr(&output).contains("its time was up"), "{}", stderr(&output));
    let script = "trap '' TERM; while true; do sleep 0.05; done";
    let output = run(&here, &["two.toml", "--duration", "300ms", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(124), "also if it does not want to: {}", stderr(&output));
}

#[test]
fn two_testbeds_at_once_do_not_meet() {
    let Some(here) = place("twice") else { return };
    let serve = "python3 -m http.server 80 --bind 10.77.0.1";
    let mut first = start(&here, &["two.toml", "--server", serve, "--", "sh", "-c", "echo up > up; sleep 4713"]);
    wait_for(&here.join("up"));
    let output = run(&here, &["two.toml", "--server", serve, "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(first.try_wait().unwrap(), None, "the first is not disturbed");
    super::killed::kill(first.id() as i32, "TERM");
    assert_eq!(first.wait().unwrap().code(), Some(128 + 15));
    until("the command is gone", || super::killed::processes_with("4713").is_empty());
}

#[test]
fn results_are_also_there_for_programs() {
    let Some(here) = place("json") else { return };
    let scenario = super::TWO_PATHS.replace("[[workload]]", "scheduler = \"late\"\nsack = false\n[[workload]]");
    fs::write(here.join("host.toml"), scenario).unwrap();
    let args = ["host.toml", "--seed", "9", "--json", "result.json", "--", "cat", "/proc/sys/net/ipv4/tcp_sack"];
    let output = run(&here, &args);
    assert_eq!(stdout(&output), "0\n", "what a kernel can take is set");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(here.join("result.json")).unwrap()).unwrap();
    assert_eq!(json["seed"], 9);
    assert_eq!(json["exit_code"], 0);
    assert_eq!(json["not_applied"], serde_json::json!(["scheduler = late"]));
    assert!(stderr(&output).contains("not applied to the kernels: scheduler = late"), "{}", stderr(&output));
    let links: Vec<&str> = json["links"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(links, ["wlan/down", "wlan/up", "lte/down", "lte/up"]);
    assert_eq!(json["paths"][1]["client"][0], "10.77.2.2");
}
