//! Our engine on a testbed's hosts: with addresses of its own, and with borrowed ones.

use super::{place, run, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Bytes fetched: enough for both paths to be used.
const SIZE: usize = 3_000_000;

/// The program under its name, wherever the tests have it.
const ENGINE: &str = env!("CARGO_BIN_EXE_anabranch");

/// A file that no compression and no repetition makes smaller.
fn file(here: &Path) -> Vec<u8> {
    let mut state = 1u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let bytes: Vec<u8> = (0..SIZE).map(|_| byte()).collect();
    fs::create_dir_all(here.join("served")).unwrap();
    fs::write(here.join("served/file"), &bytes).unwrap();
    bytes
}

/// Runs `fetch --json` until two subflows carry the file, from these addresses: on a busy machine the first may have
/// brought all of it before the second is there.
fn fetch_over_both(here: &Path, server: &str, fetch: &str, locals: [&str; 2]) {
    let mut results = Vec::new();
    while results.len() < MOST_ATTEMPTS {
        let output = run(here, &["two.toml", "--server", server, "--", "sh", "-c", fetch]);
        assert!(output.status.success(), "{}", stderr(&output));
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(result["bytes"], SIZE, "{result:#}");
        assert!(
            fs::read(here.join("got")).unwrap() == fs::read(here.join("served/file")).unwrap(),
            "the file is another"
        );
        let subflows = result["connection"]["subflows"].as_array().unwrap();
        let carried = locals.map(|local| {
            let by = subflows.iter().find(|it| it["local"].as_str().unwrap().starts_with(&format!("{local}:")));
            by.map_or(0, |subflow| subflow["bytes_received"].as_u64().unwrap())
        });
        if carried.iter().all(|bytes| *bytes > 100_000) {
            return;
        }
        results.push(carried);
    }
    panic!("{locals:?} carried {results:?} bytes");
}

const MOST_ATTEMPTS: usize = 20;

#[test]
fn engine_to_engine_needs_no_addresses_to_be_named() {
    let Some(here) = place("engines") else { return };
    file(&here);
    // It says when it is there, however long that takes.
    let server = format!("sleep 3; {ENGINE} serve --root served --scheduler late");
    let fetch = format!("{ENGINE} fetch http://$ANABRANCH_ENGINE_SERVER/file --output got --json");
    fetch_over_both(&here, &server, &fetch, ["10.78.1.2", "10.78.2.2"]);
}

#[test]
fn fetch_borrows_the_hosts_own_addresses_and_gives_them_back() {
    let Some(here) = place("borrowing-fetch") else { return };
    if super::lacks("nft") {
        return eprintln!("SKIPPED: borrowing takes nft");
    }
    file(&here);
    let server = format!("{ENGINE} serve --root served");
    let fetch = format!(
        "ip rule > before; {ENGINE} fetch http://$ANABRANCH_ENGINE_SERVER/file --from 10.77.1.2,10.77.2.2 \
         --output got --json; code=$?; ip rule > after; nft list tables > tables; exit $code"
    );
    fetch_over_both(&here, &server, &fetch, ["10.77.1.2", "10.77.2.2"]);
    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("before"), read("after"), "rules are as they were");
    assert_eq!(read("tables"), "", "and no table is left");
}

#[test]
fn serve_borrows_one_port_of_the_hosts_own_address() {
    let Some(here) = place("borrowing-serve") else { return };
    if super::lacks("nft") || super::lacks("curl") || super::lacks("mptcpize") {
        return eprintln!("SKIPPED: it takes nft, curl and mptcpize");
    }
    let bytes = file(&here);
    let server = format!("{ENGINE} serve --listen 10.77.0.1 --http 80 --root served");
    // On a busy machine one download may be over before the kernel joins.
    let fetch = "for i in $(seq 20); do mptcpize run curl -sS -o got http://server/file || exit; \
                 nstat -asz MPTcpExtMPJoinSynAckRx | grep -q -E 'MPJoinSynAckRx +[1-9]' && break; done; \
                 nstat -asz | grep MPJoinSynAckRx";
    let output = run(&here, &["two.toml", "--server", &server, "--", "sh", "-c", fetch]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(here.join("got")).unwrap() == bytes, "the file is another");
    let joins: u64 = stdout(&output).split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(joins >= 1, "the kernel joined: {}", stdout(&output));

    let several = format!("{ENGINE} serve --listen 10.77.0.1");
    let output = run(&here, &["two.toml", "--server", &several, "--", "true"]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("can be borrowed for one port only"), "{}", stderr(&output));
}

/// A window of 64 KiB over a round trip of 100 ms lets 5 Mbit/s through, where the path carries 20: the sender says so
/// at the end, in its log, in JSON and in words, whichever side it is.
#[test]
fn a_transfer_slower_than_its_path_is_explained() {
    let Some(here) = place("slow-window") else { return };
    let path = "[path.wan]\nrate = \"20mbit\"\ndelay = \"50ms\"\nqueue = \"100p\"\n";
    fs::write(here.join("two.toml"), format!("{path}[[workload]]\nkind = \"files\"\nsize = \"1MiB\"\n")).unwrap();
    let server = format!("{ENGINE} serve --receive-buffer 64KiB --events events.jsonl 2> said");
    let url = "http://$ANABRANCH_ENGINE_SERVER";
    let fetch = format!(
        "{ENGINE} fetch {url}/bytes/2MiB --output /dev/null --receive-buffer 64KiB --json > down && \
         {ENGINE} fetch {url}/discard --upload-bytes 2MiB --json > up && \
         {ENGINE} fetch {url}/discard --upload-bytes 2MiB 2> words"
    );
    let output = run(&here, &["two.toml", "--server", &server, "--", "sh", "-c", &fetch]);
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap();
    let explains = |text: &str| {
        let parts = ["slower than its path", " Mbit/s", " % of the time the other host's window was used up"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let up: Value = serde_json::from_str(&read("up")).unwrap();
    explains(up["why"].as_str().unwrap());
    explains(read("words").split("  why: ").nth(1).unwrap());
    // The receiver of the download has seen no more of the path than came: the server tells.
    let down: Value = serde_json::from_str(&read("down")).unwrap();
    assert_eq!(down["why"], Value::Null, "{down:#}");
    explains(read("said").split("slow: ").nth(1).unwrap());
    let events: Vec<Value> = read("events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let slow: Vec<&str> = events.iter().filter_map(|event| event["slow"].as_str()).collect();
    assert_eq!(slow.len(), 1, "one connection of three sent data from here: {slow:?}");
    explains(slow[0]);
}
