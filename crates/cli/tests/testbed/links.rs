//! The paths: a kernel's MPTCP over both, and what a scenario does to them.

use super::{place, run, stderr, stdout};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The numbers of a run.
fn result(here: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(here.join("result.json")).unwrap()).unwrap()
}

/// Python, with the protocol number of MPTCP.
const SERVE: &str = r#"
import socket, sys, time
address = sys.argv[1]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
server = socket.socket(family, socket.SOCK_STREAM, 262)
server.bind((address, 47110)); server.listen()
connection, _ = server.accept()
total = len(connection.recv(1000))
# Nothing of size is sent before the second subflow is there, however busy the machine (MPTCP_INFO of SOL_MPTCP).
begin = time.monotonic()
while connection.getsockopt(284, 1, 128)[0] == 0 and time.monotonic() - begin < 100: time.sleep(0.01)
connection.sendall(b"!")
while data := connection.recv(65536): total += len(data)
connection.sendall(bytes(i % 251 for i in range(total))); connection.close()
"#;
const FETCH: &str = r#"
import socket, sys
address, size = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
connection = socket.socket(family, socket.SOCK_STREAM, 262)
connection.settimeout(100)
connection.connect((address, 47110))
connection.sendall(bytes(1000)); connection.recv(1)
connection.sendall(bytes(size - 1000)); connection.shutdown(socket.SHUT_WR)
received = bytearray()
while data := connection.recv(65536): received += data
print(len(received), received == bytes(i % 251 for i in range(size)))
"#;

#[test]
fn kernels_speak_mptcp_over_both_paths_in_both_families() {
    let Some(here) = place("kernels") else { return };
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return eprintln!("SKIPPED: this kernel has no MPTCP");
    }
    fs::write(here.join("serve.py"), SERVE).unwrap();
    fs::write(here.join("fetch.py"), FETCH).unwrap();
    for address in ["10.77.0.1", "fd77::1"] {
        let server = format!("python3 serve.py {address}");
        let args =
            ["two.toml", "--server", &server, "--json", "result.json", "--", "python3", "fetch.py", address, "3000000"];
        let output = run(&here, &args);
        assert_eq!(stdout(&output), "3000000 True\n", "{}", stderr(&output));
        let result = result(&here);
        assert_eq!(result["remarks"], serde_json::json!([]), "nothing is amiss: {}", stderr(&output));
        for path in result["paths"].as_array().unwrap() {
            for way in ["down", "up"] {
                let bytes = path[way]["delivered_bytes"].as_u64().unwrap();
                assert!(bytes > 200_000, "{address}: only {bytes} bytes {way} {}", path["name"]);
            }
        }
    }
}

/// An ordinary server with a client under `mptcpize`, and the other way round.
#[test]
fn plain_tcp_and_the_path_that_it_leaves_unused_are_said_with_the_reason() {
    let Some(here) = place("plain") else { return };
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return eprintln!("SKIPPED: this kernel has no MPTCP");
    }
    let program = |protocol: u32, rest: &str| {
        format!("python3 -c 'import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_STREAM, {protocol})\n{rest}'")
    };
    for (listening, connecting, why) in
        [(6, 262, "the SYN/ACK had no MP_CAPABLE"), (262, 6, "the SYN had no MP_CAPABLE")]
    {
        let serve = "s.bind((\"10.77.0.1\", 80)); s.listen(); s.accept()[0].sendall(bytes(100000))";
        let fetch = "s.settimeout(100); s.connect((\"10.77.0.1\", 80))\nwhile s.recv(65536): pass";
        let (server, client) = (program(listening, serve), program(connecting, fetch));
        let output = run(&here, &["two.toml", "--server", &server, "--json", "result.json", "--", "sh", "-c", &client]);
        assert!(output.status.success(), "{}", stderr(&output));
        let result = result(&here);
        let remarks: Vec<&str> = result["remarks"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let [plain, unused] = remarks[..] else { panic!("{remarks:?}") };
        assert!(plain.starts_with("the connection is plain TCP: ") && plain.contains(why), "{plain}");
        assert_eq!(unused, "path lte carried no data: plain TCP uses one path");
        assert!(stderr(&output).contains("note: path lte carried no data"), "{}", stderr(&output));
    }
}

#[test]
fn a_path_goes_down_and_comes_back_when_the_scenario_says() {
    let Some(here) = place("change") else { return };
    fs::write(here.join("echo.py"), ECHO).unwrap();
    fs::write(here.join("probe.py"), PROBE).unwrap();
    ["up", "restore"].into_iter().for_each(|way_back| goes_down_and_comes_back(&here, way_back));
}

/// Toggles repeatedly: a late reader misses a turn and sees the next.
fn goes_down_and_comes_back(here: &Path, way_back: &str) {
    let change = |at: u32, state: &str| format!("[[change]]\nat = \"{at}s\"\npath = \"wlan\"\nstate = \"{state}\"\n");
    let changes: String = (0..14).map(|n| change(4 * n + 2, "down") + &change(4 * n + 4, way_back)).collect();
    fs::write(here.join("change.toml"), format!("{}{changes}", super::TWO_PATHS)).unwrap();
    let args = ["change.toml", "--json", "result.json", "--server", "python3 echo.py", "--", "python3", "probe.py"];
    let output = run(here, &args);
    assert_eq!(stdout(&output), "answers\nsilence\nanswers\n", "{way_back}: {}", stderr(&output));
    let result = result(here);
    // Drops of the kernel on an interface without carrier are part of the scenario.
    let faults = result["faults"].as_array().unwrap();
    let of_the_interface = |fault: &&serde_json::Value| fault["what"].as_str().unwrap().contains("interface");
    assert_eq!(faults.iter().find(of_the_interface), None, "{}", stderr(&output));
    for link in result["links"].as_array().unwrap() {
        let down = link["dropped"]["down"].as_u64().unwrap();
        assert!(
            down == 0 || link["name"].as_str().unwrap().starts_with("wlan"),
            "the other path does not mind: {link}"
        );
    }
}

/// Sends datagrams back; a TCP port says that it is there.
const ECHO: &str = r#"
import socket
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("10.77.0.1", 7))
ready = socket.create_server(("10.77.0.1", 7))
while True: datagrams.sendto(*datagrams.recvfrom(100))
"#;

/// Sends a datagram over each path every 20 ms, and says when answers over the first one come, when they do not while
/// the other one brings ten, and when they have come back.
const PROBE: &str = r#"
import os, socket, time
sockets = []
for address in os.environ["ANABRANCH_ADDRESSES"].split():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 0)); s.setblocking(False); sockets.append(s)
def answers(s):
    count = 0
    try:
        while s.recv(100): count += 1
    except OSError: pass
    return count
states, others = [], 0
begin = time.monotonic()
while len(states) < 3 and time.monotonic() - begin < 100:
    for s in sockets:
        try: s.sendto(b"?", ("10.77.0.1", 7))
        except OSError: pass
    time.sleep(0.02)
    wlan, lte = map(answers, sockets)
    others = 0 if wlan else others + lte
    state = "answers" if wlan else "silence" if others >= 10 else None
    # Who begins late may find the path down.
    if state and states[-1:] != [state] and (states or wlan):
        states.append(state)
        print(state, flush=True)
"#;

#[test]
fn captures_of_both_ends_are_read_by_tshark() {
    let Some(here) = place("captures") else { return };
    fs::write(here.join("serve.py"), SERVE).unwrap();
    fs::write(here.join("fetch.py"), FETCH).unwrap();
    let args =
        ["two.toml", "--pcap", "captures", "--json", "result.json", "--server", "python3 serve.py 10.77.0.1", "--"];
    let output = run(&here, &[&args[..], &["python3", "fetch.py", "10.77.0.1", "300000"]].concat());
    assert_eq!(stdout(&output), "300000 True\n", "{}", stderr(&output));
    let result = result(&here);
    let files: Vec<&str> =
        result["capture"]["files"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(files.len(), 2, "{result:#}");
    for file in files {
        let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "_ws.malformed", "-e", "tcp.checksum.status"];
        let checked = ["-o", "tcp.check_checksum:TRUE", "-Y", "tcp"];
        let tshark = Command::new("tshark").current_dir(&here).args(["-r", file]).args(checked).args(fields).output();
        let Ok(tshark) = tshark else {
            assert!(
                std::env::var_os("ANABRANCH_REQUIRE_TSHARK").is_none(),
                "ANABRANCH_REQUIRE_TSHARK is set, and there is no tshark"
            );
            return eprintln!("SKIPPED: there is no tshark");
        };
        let text = stdout(&tshark);
        assert!(tshark.status.success(), "{}", stderr(&tshark));
        assert!(text.lines().count() > 200, "{file}: {text}");
        for path in ["wlan", "lte"] {
            assert!(text.lines().any(|line| line.contains(path)), "{file} has nothing of {path}");
        }
        let is_bad = |line: &&str| line.split('\t').nth(1) != Some("") || line.split('\t').nth(2) != Some("1");
        assert_eq!(text.lines().find(is_bad), None, "{file}: malformed, or its checksum is wrong");
    }
}
