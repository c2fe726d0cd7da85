//! `anabranch why --follow` beside a transfer of the kernel's MPTCP, and `anabranch why` of its capture: one answer.

use super::{place, run, stderr};
use serde_json::Value;
use std::fs;

const PATHS: &str = r#"
[path.first]
rate = "20mbit"
delay = "20ms"
[path.second]
rate = "20mbit"
delay = "20ms"
[host]
congestion = "reno"
[[workload]]
kind = "files"
size = "1MiB"
"#;

/// Reads all, with a pause after each piece.
const SERVER: &str = r#"
import socket, sys, time
pause, buffer = float(sys.argv[1]), int(sys.argv[2])
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
if buffer: listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
listener.bind(("10.77.0.1", 5232))
listener.listen()
connection, _ = listener.accept()
got = 0
while part := connection.recv(1 << 14):
    got += len(part)
    if pause: time.sleep(pause)
connection.sendall(str(got).encode())
connection.close()
"#;

/// Writes pieces with a pause after each, once it is followed.
const CLIENT: &str = r#"
import os, socket, sys, time
size, pause, buffer = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
if buffer: client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
client.connect(("10.77.0.1", 5232))
while not os.path.exists("live.jsonl") or not os.path.getsize("live.jsonl"): time.sleep(0.01)
for at in range(0, size, 50_000):
    client.sendall(bytes(min(50_000, size - at)))
    time.sleep(pause)
client.shutdown(socket.SHUT_WR)
assert client.recv(8) == str(size).encode()
"#;

/// A transfer of `size` bytes with arguments of its ends, and the limits that may be named for most of the time.
struct Transfer {
    name: &'static str,
    size: u64,
    client: &'static str,
    server: &'static str,
    limits: &'static [&'static str],
}

const TRANSFERS: [Transfer; 4] = [
    Transfer { name: "writes", size: 1_500_000, client: "0.1 0", server: "0 0", limits: &["application-sends"] },
    Transfer { name: "buffer", size: 3_000_000, client: "0 20000", server: "0 0", limits: &["send-buffer"] },
    // The sender has the window alone to go by, a capture when it opens.
    Transfer {
        name: "reads",
        size: 1_500_000,
        client: "0 0",
        server: "0.05 65536",
        limits: &["peer-window", "application-reads"],
    },
    Transfer { name: "paths", size: 10_000_000, client: "0 0", server: "0 0", limits: &["path-full"] },
];

/// Time by limit, all paths together: of the first `shares`.
fn main_limit(shares: &Value) -> (String, f64) {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for share in shares.as_array().unwrap() {
        let (name, part) = (share["limit"].as_str().unwrap_or("none"), share["share"].as_f64().unwrap());
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += part,
            None => sums.push((name.to_owned(), part)),
        }
    }
    sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

#[test]
fn a_connection_that_is_followed_has_the_limit_of_its_capture() {
    for Transfer { name, size, client, server, limits } in TRANSFERS {
        let Some(directory) = place(&format!("follow-{name}")) else { return };
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
        write("paths.toml", PATHS);
        write("server.py", SERVER);
        write("client.py", CLIENT);
        let anabranch = env!("CARGO_BIN_EXE_anabranch");
        let follow = format!("{anabranch} why --follow $! --json --interval 200ms");
        write("client.sh", &format!("python3 client.py {size} {client} &\n{follow} > live.jsonl\nwait $!\n"));
        let server = format!("python3 server.py {server}");
        let args = ["paths.toml", "--duration", "60s", "--pcap", "captures", "--server", &server];
        let output = run(&directory, &[&args[..], &["--", "sh", "-e", "client.sh"]].concat());
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let live = fs::read_to_string(directory.join("live.jsonl")).unwrap();
        let live: Value = serde_json::from_str(live.lines().last().unwrap()).unwrap();
        let live = &live["connections"][0];
        let (sent, received) = (live["sent"].as_u64().unwrap(), live["received"].as_u64().unwrap());
        assert!(live["sends"] == true && sent > size * 9 / 10 && sent < size + 10 && received < 10, "{name}: {live}");
        let (limit, share) = main_limit(&live["shares"]);
        assert!(limits.contains(&limit.as_str()) && share > 0.4, "{name}: {limit} for {share} of the time: {live}");
        for end in ["client", "server"] {
            let capture = format!("captures/{end}.pcapng");
            let mut why = std::process::Command::new(anabranch);
            let output = why.current_dir(&directory).args(["why", &capture, "--json"]).output().unwrap();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            let direction = &answer["connection"]["directions"][0];
            let (judged, part) = main_limit(&direction["shares"]);
            println!("{name}: {limit} {share:.2} live, {judged} {part:.2} at the {end}");
            assert!(limits.contains(&judged.as_str()) && part > 0.35, "{name}, {end}: {judged} for {part}: {answer}");
        }
    }
}
