//! `anabranch why --follow` beside a transfer of the kernel's MPTCP, and `anabranch why` of its capture: one answer.

use super::steer::place_with;
use super::{run, stderr, two_paths};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const ANABRANCH: &str = env!("CARGO_BIN_EXE_anabranch");

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

/// Limit that held for most of the time, all paths together, and its share.
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

/// Plays the transfer. Returns the connection as it was followed.
fn play(directory: &Path, Transfer { size, client, server, .. }: &Transfer) -> Value {
    let follow = format!("{ANABRANCH} why --follow $! --json --interval 200ms > live.jsonl");
    let script = format!("rm -f live.jsonl\npython3 client.py {size} {client} &\n{follow}\nwait $!\n");
    fs::write(directory.join("client.sh"), script).unwrap();
    let server = format!("python3 server.py {server}");
    let args = ["paths.toml", "--duration", "60s", "--pcap", "captures", "--server", &server];
    let output = run(directory, &[&args[..], &["--", "sh", "-e", "client.sh"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let live = fs::read_to_string(directory.join("live.jsonl")).unwrap();
    let mut live: Value = serde_json::from_str(live.lines().last().unwrap()).unwrap();
    live["connections"][0].take()
}

/// Times by limit of the client's data, from the capture of one end.
fn judge(directory: &Path, end: &str) -> Value {
    let capture = format!("captures/{end}.pcapng");
    let output = Command::new(ANABRANCH).current_dir(directory).args(["why", &capture, "--json"]).output().unwrap();
    let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["connection"]["directions"][0]["shares"].take()
}

#[test]
fn a_connection_that_is_followed_has_the_limit_of_its_capture() {
    let paths = two_paths([("first", "20ms", ""), ("second", "20ms", "")]);
    for transfer in TRANSFERS {
        let Transfer { name, size, limits, .. } = transfer;
        let files = [("paths.toml", &paths[..]), ("client.py", CLIENT)];
        let Some(directory) = place_with(&format!("follow-{name}"), &files) else { return };
        let live = play(&directory, &transfer);
        let (sent, received) = (live["sent"].as_u64().unwrap(), live["received"].as_u64().unwrap());
        assert!(live["sends"] == true && sent > size * 9 / 10 && sent < size + 10 && received < 10, "{name}: {live}");
        let judged = ["client", "server"].map(|end| (end, judge(&directory, end), 0.35));
        for (view, shares, least) in [("live", live["shares"].clone(), 0.4)].into_iter().chain(judged) {
            let (limit, share) = main_limit(&shares);
            println!("{name}, {view}: {limit} {share:.2}");
            assert!(limits.contains(&limit.as_str()) && share > least, "{name}, {view}: {limit} {share}: {shares}");
        }
    }
}
