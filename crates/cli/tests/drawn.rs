//! `anabranch why --report` and `--xpl`: of captures and of scenarios, the same packets; no file after an error.
#![allow(clippy::unwrap_used)]

mod common;

use common::{anabranch, directory, names, succeed};
use std::fs;
use std::path::Path;

/// A download of 300 kB beside a competing TCP connection that is opened before it, at the same instant.
const SCENARIO: &str = r#"
[path.wlan]
rate = "5mbit"
delay = "10ms"
loss = "2%"
queue = "20p"
[path.lte]
rate = "2mbit"
delay = "30ms"
[[workload]]
kind = "tcp"
path = "lte"
size = "20kB"
[[workload]]
kind = "files"
size = "300kB"
"#;

const FILES: [&str; 5] = [
    "client-to-server-data.xpl",
    "client-to-server-subflow-1-tsg.xpl",
    "server-to-client-data.xpl",
    "server-to-client-subflow-1-tsg.xpl",
    "server-to-client-subflow-2-tsg.xpl",
];

fn read(here: &Path, name: &str) -> String {
    fs::read_to_string(here.join(name)).unwrap()
}

#[test]
fn a_scenario_and_its_captures_are_drawn_alike() {
    let here = directory("why-drawn");
    fs::write(here.join("small.toml"), SCENARIO).unwrap();
    succeed(&here, &["run", "small.toml", "--seed", "3", "--pcap", "captures"]);
    let (client, server) = ("captures/client.pcapng", "captures/server.pcapng");
    let said = succeed(&here, &["why", client, server, "--report", "a.html", "--xpl", "a"]);
    assert!(said.contains("% of the time"), "the answer is printed as well: {said}");
    let of_run = ["why", "small.toml", "--seed", "3", "--repeat", "1", "--report", "b.html", "--xpl", "b"];
    succeed(&here, &of_run);
    assert_eq!(names(&here.join("a")), FILES);
    assert_eq!(names(&here.join("b")), FILES, "the competing connection is another");
    for name in FILES {
        let [a, b] = ["a", "b"].map(|out| read(&here, &format!("{out}/{name}")));
        assert_eq!(a, b, "{name}");
        assert!(a.starts_with("timeval unsigned\ntitle\n") && a.ends_with("go\n"), "{name}");
    }
    let data = read(&here, "a/server-to-client-data.xpl");
    let ends = data.lines().filter_map(|line| line.strip_prefix("uarrow ")?.split(' ').nth(1)?.parse::<u64>().ok());
    assert_eq!(ends.max(), Some(300_000), "the last byte of the download");
    let [a, b] = ["a.html", "b.html"].map(|name| read(&here, name));
    assert!(a.contains("captures&#x2f;server.pcapng") && a.contains("\"acked\":{"), "data and files are on the page");
    assert!(b.contains("anabranch run small.toml --seed 3 --pcap DIR"), "it is said where packets have these numbers");
}

/// The longest transfer is that of the second client, whose captures have other names; or of the first.
#[test]
fn of_several_clients_that_with_the_longest_transfer_is_drawn() {
    let here = directory("why-clients");
    fs::write(here.join("small.toml"), format!("clients = 2\n{SCENARIO}")).unwrap();
    let mut drawn = Vec::new();
    for seed in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        let words = ["why", "small.toml", "--seed", seed, "--repeat", "1", "--report", "out.html", "--xpl", seed];
        let said = succeed(&here, &[&words[..], &["--json"]].concat());
        let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
        let transfers = answer["transfers"].as_array().unwrap();
        let time = |it: &&serde_json::Value| it["time_ns"].as_u64().unwrap();
        let longest = transfers.iter().max_by_key(time).unwrap()["connection"].as_u64().unwrap();
        let page = read(&here, "out.html");
        let files = [("client.pcapng and server.pcapng", 1), ("client-1.pcapng and server-1.pcapng", 3)];
        let place = files.iter().position(|(files, _)| page.contains(files)).unwrap();
        // Of each client the competing connection is first.
        assert_eq!(longest, files[place].1, "seed {seed}: {transfers:?}");
        let data = read(&here, &format!("{seed}/server-to-client-data.xpl"));
        assert!(data.contains(" lte"), "both paths are drawn, which the competing connection has not");
        drawn.push(place);
    }
    assert!(drawn.contains(&0) && drawn.contains(&1), "seeds that tell them apart: {drawn:?}");
}

#[test]
fn errors_leave_no_file() {
    let here = directory("why-not-drawn");
    fs::write(here.join("text.pcap"), "no capture").unwrap();
    fs::write(here.join("taken"), "a file").unwrap();
    for (words, said) in [
        (&["why", "text.pcap", "--report", "out.html", "--xpl", "graphs"][..], "text.pcap"),
        (&["why", "wlan-lte", "--repeat", "1", "--xpl", "taken"], "taken"),
        (&["why", "wlan-lte", "--repeat", "1", "--report", "missing/out.html"], "missing"),
        (&["why", "--follow", "--report", "out.html"], "cannot be used with"),
        (&["why", "--follow", "--xpl", "graphs"], "cannot be used with"),
    ] {
        let output = anabranch(&here, words);
        assert!(!output.status.success(), "{words:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(said), "{words:?}: {error}");
        assert!(!here.join("out.html").exists());
    }
    assert!(names(&here).iter().all(|name| name != "graphs" || names(&here.join("graphs")).is_empty()));
}
