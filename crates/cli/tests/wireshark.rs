//! Captures as Wireshark reads them: tshark dissects those of every shipped scenario and has nothing to complain about.
//!
//! Without tshark these tests say on standard error that they were skipped; with `ANABRANCH_REQUIRE_TSHARK` set, as in
//! CI, they fail.
#![allow(clippy::unwrap_used)]

mod common;

use common::{directory, names, succeed};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn tshark_understands_every_shipped_scenario() {
    if !has("tshark") {
        return;
    }
    let here = directory("wireshark");
    let list: serde_json::Value = serde_json::from_str(&succeed(&here, &["list", "scenarios", "--json"])).unwrap();
    for scenario in list["entries"].as_array().unwrap() {
        let name = scenario["name"].as_str().unwrap();
        // Data of one connection that go forward on each subflow. With our own policies Wireshark takes a SYN that
        // loses a race for a connection of its own, and a segment behind a copied DATA_FIN for a part of that copy's
        // mapping; and data left for a faster path may leave on the slower after all.
        let mut args = vec!["run", name, "--pcap", name];
        let plain = ["host.first-path=as-listed", "host.scheduler=min-rtt", "host.reinjection=opportunistic"];
        args.extend(plain.iter().flat_map(|set| ["--set", set]));
        args.extend(shorter(name).iter().flat_map(|set| ["--set", set]));
        succeed(&here, &args);
        let files = names(&here.join(name));
        let read = |host: &str| {
            assert!(files.contains(&format!("{host}.pcapng")), "{name}: {files:?}");
            Dissection::of(&here.join(name).join(format!("{host}.pcapng")))
        };
        let hosts: Vec<&str> = files.iter().map(|file| file.strip_suffix(".pcapng").unwrap()).collect();
        let dissected: BTreeMap<&str, Dissection> = hosts.iter().map(|host| (*host, read(host))).collect();
        for (host, dissection) in &dissected {
            dissection.check_packets(&format!("{name}/{host}"));
            dissection.check_complaints(&format!("{name}/{host}"));
        }
        for client in hosts.iter().filter(|host| host.ends_with("client")) {
            let server = client.replace("client", "server");
            check_pair(name, &dissected[*client], &dissected[server.as_str()]);
        }
        for host in ["client", "server"] {
            dissected[host].check_multipath(&format!("{name}/{host}"));
        }
        dissected["server"].check_comments(name);
    }
}

/// Features that shipped scenarios lack: packets damaged, copied and reordered, middleboxes, UDP, an interface with a
/// queue.
const ROUGH: &str = r#"
[path.a]
rate = "10mbit"
delay = "10ms"
corrupt = "2%"
duplicate = "2%"
reorder = { probability = "2%", delay = "5ms" }
loss = "1%"
nic = "100mbit"
[path.b]
rate = "5mbit"
delay = "20ms"
middlebox = [{ kind = "split", size = "536B", end = "server" }, { kind = "rewrite-sequence" }]
[[workload]]
kind = "files"
size = "500kB"
[[workload]]
kind = "udp"
path = "a"
rate = "500kbit"
"#;

#[test]
fn tshark_understands_what_rough_paths_do() {
    if !has("tshark") {
        return;
    }
    let here = directory("wireshark-rough");
    std::fs::write(here.join("rough.toml"), ROUGH).unwrap();
    succeed(&here, &["run", "rough.toml", "--pcap", "out"]);
    let [client, server] =
        ["client", "server"].map(|host| Dissection::of(&here.join("out").join(format!("{host}.pcapng"))));
    for (host, dissection) in [("client", &client), ("server", &server)] {
        dissection.check_packets(&format!("rough/{host}"));
    }
    check_pair("rough", &client, &server);
    let count = |beginning: &str| client.packets.iter().filter(|packet| packet.says(beginning)).count();
    for beginning in ["damaged on the way", "a copy that a link made", "comes from a middlebox", "a middlebox changed"]
    {
        assert!(count(beginning) > 0, "`{beginning}` stands beside some packet");
    }
    assert!(
        client.packets.iter().filter(|packet| packet.get("udp.checksum.status") == "1").count() > 10,
        "UDP is there"
    );
}

#[test]
fn capinfos_and_editcap_agree_with_what_was_written() {
    if !has("capinfos") || !has("editcap") {
        return;
    }
    let here = directory("capinfos");
    succeed(&here, &["run", "lossy", "--seed", "3", "--pcap", "out"]);
    let said = tool(&here, "capinfos", &["out/server.pcapng"]);
    for line in [
        "File timestamp precision:  nanoseconds (9)",
        "Strict time order:   True",
        "File encapsulation:  Raw IP",
        "Time ticks per second = 1000000000",
        "Name = server/clean",
        "Name = server/bursty",
        "anabranch run lossy --seed 3",
        concat!("anabranch ", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(said.contains(line), "{line} is missing in:\n{said}");
    }
    tool(&here, "editcap", &["-F", "nsecpcap", "-r", "out/server.pcapng", "first.pcap", "1-10"]);
    let said = tool(&here, "capinfos", &["-c", "-M", "first.pcap"]);
    assert!(said.contains("Number of packets:   10"), "{said}");
}

/// Settings that shorten the long scenarios.
fn shorter(scenario: &str) -> &'static [&'static str] {
    match scenario {
        "symmetric" => &["workload.0.duration=1s"],
        "shared-bottleneck" => &["workload.0.duration=2s", "workload.1.duration=3s"],
        "path-failure" => &["workload.0.size=8MiB"],
        _ => &[],
    }
}

/// Output of tshark for one file.
struct Dissection {
    packets: Vec<Packet>,
    /// Severity, protocol and summary of each kind of expert information, comments apart.
    complaints: Vec<(String, String, String)>,
}

/// One packet, by tshark's names of its fields.
struct Packet(BTreeMap<&'static str, String>);

const FIELDS: &[&str] = &[
    "frame.number",
    "frame.time_epoch",
    "frame.interface_name",
    "frame.packet_flags_direction",
    "frame.comment",
    "_ws.malformed",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "tcp.stream",
    "tcp.len",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.out_of_order",
    "mptcp.stream",
    "mptcp.dsn",
    "mptcp.rawdsn64",
    "mptcp.related_mapping",
    "mptcp.reinjection_of",
];

/// Complaints of Wireshark's TCP about loss recovery and the end of a run that occur in any capture.
const USUAL: &[&str] = &[
    "Previous segment(s) not captured (common at capture start)",
    "This frame is a (suspected) out-of-order segment",
    "D-SACK Sequence",
    "Connection reset (RST)",
    // Of ACKs without data, for which Wireshark looks for a mapping as well, in captures of Linux too; and of a few
    // segments in a thousand that fill a hole, whose mapping stands in their own option but is lost in its tree. All
    // other data have theirs: see `check_multipath`.
    "No mapping available",
    // Two before the timestamps and two behind the DSS, where Linux has them.
    "4 NOP in a row - a router may have removed some options",
];

impl Packet {
    fn get(&self, field: &'static str) -> &str {
        &self.0[field]
    }

    fn number(&self, field: &'static str) -> u64 {
        self.get(field).parse().unwrap_or_else(|_| panic!("{field} is a number in packet {}", self.get("frame.number")))
    }

    /// Returns true if a comment begins like this.
    fn says(&self, beginning: &str) -> bool {
        self.get("frame.comment").split('|').any(|comment| comment.starts_with(beginning))
    }

    fn is_outbound(&self) -> bool {
        self.get("frame.packet_flags_direction") == "0x00000002"
    }

    /// Fills a hole, or what was one, by what Wireshark sees.
    fn is_repeated(&self) -> bool {
        let signs = ["tcp.analysis.retransmission", "tcp.analysis.fast_retransmission", "tcp.analysis.out_of_order"];
        signs.into_iter().any(|field| !self.get(field).is_empty())
    }

    fn has_data(&self) -> bool {
        self.get("tcp.len").parse::<u64>().is_ok_and(|length| length > 0)
    }
}

impl Dissection {
    fn of(file: &Path) -> Dissection {
        let mut args = vec!["-n", "-r", file.to_str().unwrap(), "-T", "fields", "-E", "aggregator=|", "-z", "expert"];
        for preference in [
            "tcp.check_checksum:TRUE",
            "ip.check_checksum:TRUE",
            "udp.check_checksum:TRUE",
            "mptcp.analyze_mappings:TRUE",
            "mptcp.intersubflows_retransmission:TRUE",
        ] {
            args.extend(["-o", preference]);
        }
        FIELDS.iter().for_each(|field| args.extend(["-e", field]));
        let said = tool(file.parent().unwrap(), "tshark", &args);
        // Packets come first, a line with tabs each, then the table.
        let packet = |line: &str| {
            let values: Vec<&str> = line.split('\t').collect();
            assert_eq!(values.len(), FIELDS.len(), "{line}");
            Packet(FIELDS.iter().copied().zip(values.into_iter().map(str::to_owned)).collect())
        };
        let packets = said.lines().take_while(|line| line.contains('\t')).map(packet).collect();
        let table: Vec<&str> = said.lines().skip_while(|line| line.contains('\t')).collect();
        Dissection { packets, complaints: complaints_in(&table) }
    }

    fn check_packets(&self, place: &str) {
        assert!(!self.packets.is_empty(), "{place}: there are packets");
        for packet in &self.packets {
            let number = packet.get("frame.number");
            assert_eq!(packet.get("_ws.malformed"), "", "{place}: packet {number} is well-formed");
            assert_eq!(packet.get("ip.checksum.status"), "1", "{place}: packet {number}");
            let transport = [packet.get("tcp.checksum.status"), packet.get("udp.checksum.status")];
            let expected = if packet.says("damaged on the way") { "0" } else { "1" };
            assert!(transport.contains(&expected), "{place}: checksum of packet {number}: {transport:?}");
            assert!(packet.get("frame.interface_name").contains('/'), "{place}: {number}");
        }
        let nanoseconds = |packet: &&Packet| !packet.get("frame.time_epoch").ends_with("000");
        assert!(self.packets.iter().filter(nanoseconds).count() > self.packets.len() / 2, "{place}: nanoseconds count");
        assert!(self.packets[0].get("frame.time_epoch").starts_with("10000000"), "{place}: the fixed beginning");
    }

    fn check_complaints(&self, place: &str) {
        assert!(self.complaints.iter().any(|(severity, ..)| severity == "Chats"), "{place}: SYNs at least are noted");
        for (severity, protocol, summary) in &self.complaints {
            let fine = match (severity.as_str(), protocol.as_str()) {
                ("Warns", "TCP") => USUAL.contains(&summary.as_str()),
                ("Notes" | "Chats", "TCP") => true,
                _ => false,
            };
            assert!(fine, "{place}: {severity}: {protocol}: {summary}");
        }
    }

    /// One MPTCP connection over all paths, whose data sequence numbers make a graph.
    fn check_multipath(&self, place: &str) {
        let of = |field: &'static str| -> BTreeSet<&str> {
            self.packets.iter().map(|packet| packet.get(field)).filter(|value| !value.is_empty()).collect()
        };
        assert_eq!(of("mptcp.stream"), BTreeSet::from(["0"]), "{place}: all subflows are of one connection");
        let interfaces = of("frame.interface_name");
        for stream in of("tcp.stream") {
            let is_its = |packet: &&Packet| packet.get("tcp.stream") == stream;
            let known = self.packets.iter().filter(is_its).filter(|packet| packet.get("mptcp.stream") == "0").count();
            let all = self.packets.iter().filter(is_its).count();
            // At a server the connection is not known before the first SYN has been answered.
            assert!(all - known <= 2, "{place}: {known} of {all} packets of tcp.stream {stream}");
        }
        assert_eq!(of("tcp.stream").len(), interfaces.len(), "{place}: a subflow on each of {interfaces:?}");

        let data = || self.packets.iter().filter(|packet| packet.has_data());
        for packet in data().filter(|packet| !packet.is_repeated()) {
            let number = packet.get("frame.number");
            assert_ne!(packet.get("mptcp.related_mapping"), "", "{place}: packet {number} has its mapping");
        }
        let dsn = |packet: &Packet| (packet.number("mptcp.dsn"), packet.number("mptcp.rawdsn64"));
        // The client's request and the server's answer number from 1 each.
        let first = data().find(|packet| packet.is_outbound()).map(dsn).unwrap();
        assert_eq!(first.0, 1, "{place}: relative numbers begin with the first byte");
        for stream in of("tcp.stream") {
            let is_new = |packet: &&Packet| {
                packet.get("tcp.stream") == stream && packet.is_outbound() && packet.says("new data")
            };
            let numbers: Vec<(u64, u64)> = data().filter(is_new).map(dsn).collect();
            let rises = numbers.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
            assert!(rises, "{place}: new data on tcp.stream {stream} go forward");
            assert!(place.ends_with("client") || numbers.len() > 1, "{place}: each subflow carries data");
            assert!(numbers.iter().all(|(dsn, raw)| raw.wrapping_sub(first.1) == dsn - 1), "{place}: {stream}");
        }
    }

    /// The sender's comments on packets agree with Wireshark's own analysis.
    fn check_comments(&self, scenario: &str) {
        let outbound = || self.packets.iter().filter(|packet| packet.is_outbound());
        assert!(outbound().all(|packet| !packet.get("frame.comment").is_empty()), "{scenario}: each has its reason");
        for packet in outbound() {
            let number = packet.get("frame.number");
            if packet.says("retransmission:") {
                assert!(packet.is_repeated(), "{scenario}: packet {number} is repeated");
            }
            if packet.says("reinjection:") {
                assert_ne!(packet.get("mptcp.reinjection_of"), "", "{scenario}: packet {number} is reinjected");
            }
            if packet.says("new data:") {
                let reinjects = packet.get("mptcp.reinjection_of");
                assert!(reinjects.is_empty() && !packet.is_repeated(), "{scenario}: packet {number} is new");
            }
        }
        let count = |beginning: &str| outbound().filter(|packet| packet.says(beginning)).count();
        let expected: &[&str] = match scenario {
            "path-failure" => &["lost: black hole on wlan/down", "retransmission: after RTO", "reinjection: RTO of"],
            "lossy" => &["lost: random loss on bursty/down", "retransmission: found lost by RACK"],
            _ => &["new data: min-rtt chose this subflow"],
        };
        for comment in expected {
            assert!(count(comment) > 0, "{scenario}: `{comment}` stands beside some packet");
        }
    }
}

/// The packets sent by one host and received by the other differ by the lost ones.
fn check_pair(scenario: &str, client: &Dissection, server: &Dissection) {
    for (from, to) in [(client, server), (server, client)] {
        let ended = |packet: &&Packet| ["lost:", "kept by", "still under way"].iter().any(|how| packet.says(how));
        let extra = |packet: &&Packet| {
            ["damaged on the way", "a copy that", "comes from a middlebox"].iter().any(|how| packet.says(how))
        };
        let sent = from.packets.iter().filter(|packet| packet.is_outbound());
        let arrived = sent.clone().count() - sent.filter(ended).count();
        let received = to.packets.iter().filter(|packet| !packet.is_outbound() && !extra(packet)).count();
        assert_eq!(arrived, received, "{scenario}: what is not lost arrives");
    }
}

/// Parses the table of `-z expert`: a heading for each severity, then frequency, group, protocol and summary.
fn complaints_in(table: &[&str]) -> Vec<(String, String, String)> {
    let mut severity = String::new();
    let mut complaints = Vec::new();
    for line in table {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name, count] if count.starts_with('(') => severity = (*name).to_owned(),
            [frequency, _, protocol, summary @ ..] if frequency.parse::<u64>().is_ok() && severity != "Comments" => {
                complaints.push((severity.clone(), (*protocol).to_owned(), summary.join(" ")));
            }
            _ => {}
        }
    }
    complaints
}

/// Returns true if the tool is installed; prints a message if not.
fn has(tool: &str) -> bool {
    if Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    assert!(std::env::var_os("ANABRANCH_REQUIRE_TSHARK").is_none(), "{tool} is required and not installed");
    // Past the test harness, which would swallow it.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {tool} is not installed, so nobody looks at the captures");
    false
}

/// Output of the tool, without the settings of the current user.
fn tool(directory: &Path, tool: &str, args: &[&str]) -> String {
    let settings = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-wireshark-settings");
    let output =
        Command::new(tool).current_dir(directory).args(args).env("WIRESHARK_CONFIG_DIR", settings).output().unwrap();
    assert!(output.status.success(), "{tool} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
