//! Bytes that a reinjection sends twice over links that lose nothing.

use super::{place, run, stderr};
use serde_json::Value;
use std::fs;

const ENGINE: &str = env!("CARGO_BIN_EXE_anabranch");

/// Bytes of a download: the default reinjection may copy 100 kB and ten segments whatever is sent, 0.3 % of these.
const SIZE: usize = 32 << 20;

/// A service that has 64 KiB to say every 2 ms: the paths are faster, so that again and again all has been sent.
const SERVICE: &str = r#"
import socket, time
listener = socket.create_server(("127.0.0.1", 8080))
while True:
    connection, _ = listener.accept()
    request = b""
    while not request.endswith(b"\r\n\r\n"): request += connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 33554432\r\n\r\n")
    for _ in range(512):
        connection.sendall(bytes(65536))
        time.sleep(0.002)
    connection.close()
"#;

/// A busy machine may stand still for longer than a timeout, after which sending again is right, so the better of two
/// downloads counts.
#[test]
fn hardly_a_byte_is_sent_twice_over_links_that_lose_nothing() {
    let Some(here) = place("sent-twice") else { return };
    let path = |name| format!("[path.{name}]\nrate = \"200mbit\"\ndelay = \"2ms\"\nqueue = \"8MB\"\n");
    let workload = "[[workload]]\nkind = \"files\"\nsize = \"1MiB\"\n";
    fs::write(here.join("two.toml"), format!("{}{}{workload}", path("a"), path("b"))).unwrap();
    fs::write(here.join("service.py"), SERVICE).unwrap();
    for reinjection in ["insured", "on-rto"] {
        let server = format!(
            "python3 service.py & until ss -Hltn | grep -q 8080; do sleep 0.05; done; \
             exec {ENGINE} proxy --listen $ANABRANCH_ENGINE_SERVER:80 --to 127.0.0.1:8080 \
             --log-format json --reinjection {reinjection} 2> {reinjection}.log"
        );
        let url = "http://$ANABRANCH_ENGINE_SERVER/";
        let fetch = format!("for i in 1 2; do {ENGINE} fetch {url} --output /dev/null || exit; done");
        let output = run(&here, &["two.toml", "--server", &server, "--", "sh", "-c", &fetch]);
        assert!(output.status.success(), "{reinjection}: {}", stderr(&output));
        let log = fs::read_to_string(here.join(format!("{reinjection}.log"))).unwrap();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ends: Vec<Value> = lines.filter(|line| line["outcome"] == "closed").collect();
        let twice = |line: &Value| line["reinjected"].as_u64().unwrap() as f64 / SIZE as f64;
        let shares: Vec<f64> = ends.iter().map(twice).collect();
        assert!(shares.len() == 2 && shares.iter().any(|share| *share <= 0.01), "{reinjection}: {shares:?}\n{log}");
        let both = |line: &Value| line["subflows"].as_str().unwrap().matches("10.78.").count() >= 2;
        assert!(ends.iter().any(both), "{reinjection}: both paths are used: {log}");
    }
}
