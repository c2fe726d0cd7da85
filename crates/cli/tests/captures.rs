//! `--pcap` from the command line: its files, their repeatability, and the files left after a failure.
#![allow(clippy::unwrap_used)]

mod common;

use common::{anabranch, directory, names, succeed};
use std::fs;
use std::path::Path;

/// Something of everything that stands in a capture: loss, a full queue, a competing TCP, UDP.
const SCENARIO: &str = r#"
[path.wlan]
rate = "5mbit"
delay = "10ms"
loss = "2%"
queue = "10p"
[path.lte]
rate = "2mbit"
delay = "30ms"
[[workload]]
kind = "files"
size = "100kB"
[[workload]]
kind = "tcp"
path = "lte"
size = "20kB"
[[workload]]
kind = "udp"
path = "wlan"
rate = "200kbit"
"#;

fn scenario(test: &str) -> std::path::PathBuf {
    let here = directory(test);
    fs::write(here.join("small.toml"), SCENARIO).unwrap();
    here
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    names(directory).into_iter().map(|name| (name.clone(), fs::read(directory.join(name)).unwrap())).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let here = scenario("capture-bytes");
    for (out, seed) in [("a", "7"), ("b", "7"), ("c", "8")] {
        succeed(&here, &["run", "small.toml", "--seed", seed, "--pcap", out]);
    }
    let [a, b, c] = ["a", "b", "c"].map(|out| files(&here.join(out)));
    let hosts = ["client.pcapng", "server.pcapng", "tcp1-client.pcapng", "tcp1-server.pcapng"];
    assert_eq!(a.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), hosts);
    assert!(a == b, "the same seed, the same bytes");
    assert!(a.iter().zip(&c).all(|(a, c)| a.1 != c.1), "another seed, other bytes");
    let text = String::from_utf8_lossy(&a[0].1).into_owned();
    for said in ["anabranch run small.toml --seed 7", "client/wlan", "down 5mbit 10ms queue 10 packets loss 2.000%"] {
        assert!(text.contains(said), "{said} is missing");
    }
}

#[test]
fn a_capture_does_not_change_the_run() {
    let here = scenario("capture-run");
    let plain = succeed(&here, &["run", "small.toml", "--json"]);
    assert_eq!(succeed(&here, &["run", "small.toml", "--json", "--pcap", "out"]), plain);
}

#[test]
fn repetitions_have_a_directory_each() {
    let here = scenario("capture-repeat");
    succeed(&here, &["run", "small.toml", "--seed", "7", "--repeat", "2", "--pcap", "all"]);
    succeed(&here, &["run", "small.toml", "--seed", "8", "--pcap", "one"]);
    assert_eq!(names(&here.join("all")), ["seed-7", "seed-8"]);
    assert!(files(&here.join("all/seed-8")) == files(&here.join("one")), "a repetition is the run with its seed");
}

#[test]
fn what_middleboxes_do_stands_beside_the_packet() {
    let here = scenario("capture-middlebox");
    let boxes = r#"path.wlan.middlebox=[{ kind = "split", size = "536B", end = "server" }]"#;
    succeed(&here, &["run", "small.toml", "--set", boxes, "--pcap", "split"]);
    let boxes = r#"path.lte.middlebox=[{ kind = "mtu-blackhole", size = "800B", end = "server" }]"#;
    succeed(&here, &["run", "small.toml", "--set", boxes, "--set", "run.stop=\"5s\"", "--pcap", "mtu"]);
    for (file, said) in [
        ("split/server.pcapng", "a middlebox will change: payload of 1428 bytes to 536"),
        ("split/client.pcapng", "a middlebox changed: payload of 1428 bytes to 536"),
        ("split/client.pcapng", "comes from a middlebox, which made it, merged it or held it back"),
        ("mtu/server.pcapng", "kept by a middlebox at the server's end of lte: dropped, merged or held back"),
    ] {
        let text = String::from_utf8_lossy(&fs::read(here.join(file)).unwrap()).into_owned();
        assert!(text.contains(said), "`{said}` is missing in {file}");
    }
}

#[test]
fn what_cannot_be_written_is_said_and_nothing_half_written_stays() {
    let here = scenario("capture-failure");
    fs::write(here.join("file"), "").unwrap();
    let output = anabranch(&here, &["run", "small.toml", "--pcap", "file"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(said.contains("cannot write file: ") && !said.contains("a run failed"), "before the run: {said}");

    // A run that breaks: more competitors than there may be.
    let competitor = "[[workload]]\nkind = \"tcp\"\npath = \"wlan\"\nsize = \"1kB\"\n";
    fs::write(here.join("crowd.toml"), format!("{SCENARIO}{}", competitor.repeat(256))).unwrap();
    let output = anabranch(&here, &["run", "crowd.toml", "--pcap", "broken"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(names(&here.join("broken")), [""; 0]);
}

/// A disk that is full in the middle of the run.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_nothing_half_written_stays() {
    let here = scenario("capture-full");
    fs::create_dir_all(here.join("full")).unwrap();
    std::os::unix::fs::symlink("/dev/full", here.join("full/client.pcapng.part")).unwrap();
    let output = anabranch(&here, &["run", "small.toml", "--pcap", "full"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("No space left"), "{said}");
    assert_eq!(names(&here.join("full")), [""; 0]);
}

/// Many connections are counted, and each can be had.
#[test]
fn an_inspection_of_many_connections_stays_short() {
    let here = directory("capture-many");
    let scenario = SCENARIO.split("[[workload]]").next().unwrap().replace("loss = \"2%\"\n", "");
    let files = "[[workload]]\nkind = \"files\"\nsize = \"2kB\"\ncount = 60\n";
    fs::write(here.join("many.toml"), scenario + files).unwrap();
    // A SYN that loses a race is a connection of its own, as far as a capture tells.
    succeed(&here, &["run", "many.toml", "--pcap", "out", "--set", "client.first-path=\"as-listed\""]);
    let text = succeed(&here, &["inspect", "out/client.pcapng"]);
    assert_eq!(text.matches("\nConnection ").count(), 10, "{text}");
    assert!(text.contains("And 50 more MPTCP connections (one of them in full: --connection 11;"), "{text}");
    // Sixty for each of the ten: tables that do not fit 80 columns have two parts.
    assert!(text.lines().count() < 650, "{} lines", text.lines().count());
    let last = succeed(&here, &["inspect", "out/client.pcapng", "--connection", "60"]);
    assert!(last.contains("\nConnection 60: ") && !last.contains("more MPTCP"), "{last}");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(&here, &["inspect", "out/client.pcapng", "--json"])).unwrap();
    assert_eq!(json["connections"].as_array().unwrap().len(), 60);
}

/// Facts that several commands print about one connection are the same in each: its number, ends, protocol, bytes, time
/// and the place of the capture.
#[test]
fn the_commands_print_the_same_facts() {
    let here = scenario("capture-facts");
    let variants: [(&str, &[&str]); 4] = [
        ("plain", &[]),
        ("server", &["--set", "server.multipath=false", "--set", "host.first-path=as-listed"]),
        ("strip", &["--set", r#"path.wlan.middlebox=[{ kind = "strip", from = "syn" }]"#]),
        ("buffer", &["--set", "client.receive-buffer=32KiB"]),
    ];
    for (name, sets) in variants {
        succeed(&here, &[&["run", "small.toml", "--pcap", name][..], sets].concat());
        let [client, server] = ["client", "server"].map(|host| format!("{name}/{host}.pcapng"));
        for files in [vec![&*client, &*server], vec![&*client], vec![&*server]] {
            let [inspect, why, twin] = ["inspect", "why", "twin"].map(|command| {
                let printed = succeed(&here, &[&[command][..], &files, &["--json"]].concat());
                serde_json::from_str::<serde_json::Value>(&printed).unwrap()
            });
            same_facts(&format!("{files:?}"), &inspect, &why, &twin);
        }
    }
}

#[track_caller]
fn same_facts(what: &str, inspect: &serde_json::Value, why: &serde_json::Value, twin: &serde_json::Value) {
    let list = |name: &str| inspect[name].as_array().unwrap();
    let (mptcp, plain) = (list("connections"), list("plain_tcp"));
    let judged = &why["connection"];
    let number = judged["number"].as_u64().unwrap() as usize;
    assert_eq!(twin["connection"], judged["number"], "{what}");
    assert_eq!(mptcp.len() + plain.len(), 1 + why["other_connections"].as_u64().unwrap() as usize, "{what}");
    assert_eq!(judged["multipath"].as_bool().unwrap(), number <= mptcp.len(), "{what}");
    assert_eq!(twin["multipath"], judged["multipath"], "{what}");
    // Plain TCP has none.
    let version = mptcp.get(number - 1).map_or(&serde_json::Value::Null, |it| &it["version"]);
    assert_eq!((&judged["version"], &twin["mptcp_version"]), (version, version), "{what}");
    let seen = mptcp.get(number - 1).unwrap_or_else(|| &plain[number - 1 - mptcp.len()]);
    assert_eq!((&judged["endpoints"], &twin["endpoints"]), (&seen["endpoints"], &seen["endpoints"]), "{what}");
    let direction = &judged["directions"][0];
    let side = direction["from"].as_u64().unwrap() as usize;
    let bytes = match seen["directions"][side]["bytes"].as_u64() {
        Some(mapped) => mapped + seen["directions"][side]["unmapped_bytes"].as_u64().unwrap(),
        None => seen["bytes"][side].as_u64().unwrap(),
    };
    let printed = [&direction["bytes"], &twin["bytes"]].map(|it| it.as_u64().unwrap());
    assert_eq!(printed, [bytes; 2], "{what}");
    assert_eq!(twin["captured"], judged["captured"], "{what}");
    assert_eq!((&twin["time_ns"], &twin["finished"]), (&direction["time_ns"], &direction["finished"]), "{what}");
    if number <= mptcp.len() {
        // Of two files `inspect` leaves open whether they are of the two ends, where their times would tell.
        let open = seen["captured"] == "at two points, or twice at one" && judged["captured"] == "at both ends";
        assert!(
            open || judged["captured"] == seen["captured"],
            "{what}: {} and {}",
            judged["captured"],
            seen["captured"]
        );
        // An estimate of when the last packet arrived may lie half a round trip behind the last that was captured.
        let ends = (direction["from_ns"].as_u64().unwrap() + direction["time_ns"].as_u64().unwrap()) as f64 / 1e9;
        assert!(ends <= seen["duration_s"].as_f64().unwrap() + 0.1, "{what}: {ends} s, and {}", seen["duration_s"]);
        // A connection that fell back is judged as what it became, and the sentence says so.
        let said = why["sentence"].as_str().unwrap();
        assert!(
            seen["fallback"].is_null() || said.contains("plain TCP") || said.contains("MP_CAPABLE"),
            "{what}: {said}"
        );
    }
}
