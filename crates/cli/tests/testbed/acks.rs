//! `anabranch kernel acks` between two kernels behind a testbed: ACKs take the short path, and come home when one of
//! the two commands dies.

use super::kernel::has_features;
use super::{lacks, place, run, stderr};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Round trips of 10 and 100 ms. Buffers are the kernel's own: iperf3 stops when it has filled larger ones, long before
/// the data has arrived.
const PATHS: &str = r#"
[path.short]
rate = "50mbit"
delay = "5ms"
[path.long]
rate = "20mbit"
delay = "50ms"
[[workload]]
kind = "files"
size = "1MiB"
"#;

/// The command, with the paths as this host names them; its rounds go to `FILE`.
fn command(paths: [&str; 2], file: &str) -> String {
    let anabranch = env!("CARGO_BIN_EXE_anabranch");
    let [first, second] = paths;
    format!("{anabranch} kernel acks --path {first} --path {second} --json > {file} 2> {file}.err")
}

const SERVER: [&str; 2] = ["10.77.0.1,10.77.1.2", "10.77.0.1,10.77.2.2"];
const CLIENT: [&str; 2] = ["10.77.1.2,10.77.0.1", "10.77.2.2,10.77.0.1"];

/// The place of the test, unless something is missing.
fn place_of(test: &str) -> Option<PathBuf> {
    let directory = place(test)?;
    if !has_features(test, &["btf", "tcx", "capabilities", "mptcp"]) {
        return None;
    }
    if lacks("iperf3") || lacks("mptcpize") || lacks("ss") {
        eprintln!("SKIPPED: {test}: it takes iperf3, mptcpize and ss");
        return None;
    }
    fs::write(directory.join("paths.toml"), PATHS).unwrap();
    Some(directory)
}

/// Runs a script in the client, with the command and iperf3 in the server.
fn try_out(directory: &Path, backend: &str, script: &str) {
    // An iperf3 that could not listen yet would end the test; the testbed waits until it does.
    let server = format!("{} & exec mptcpize run iperf3 -s", command(SERVER, "server.log"));
    fs::write(directory.join("client.sh"), script).unwrap();
    let output = run(
        directory,
        &["paths.toml", "--duration", "60s", "--backend", backend, "--server", &server, "--", "sh", "client.sh"],
    );
    let said = ["server.log.err", "client.log.err", "iperf.log"].map(|file| fs::read_to_string(directory.join(file)));
    assert!(output.status.success(), "{}{said:?}", stderr(&output));
}

/// Waits until both hosts agree and have probed.
const AGREED: &str = "until tail -n 1 client.log | grep -q 'agrees.*acks-on\":1.*acks-on\":1'; do sleep 0.1; done\n";

/// The counts of the latest round in a log.
fn counts(log: &Path) -> impl Fn(&str) -> u64 + use<> {
    let text = fs::read_to_string(log).unwrap();
    // A process that was killed may have left half a line.
    let round = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok()).unwrap();
    move |name| round["counts"][name].as_u64().unwrap()
}

/// The shortest round trip that the kernel saw on a subflow from `address` \[ms\].
fn shortest(log: &Path, address: &str) -> f64 {
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let of = lines.windows(2).filter(|pair| [":", "%"].iter().any(|end| pair[0].contains(&format!(" {address}{end}"))));
    let values = of.filter_map(|pair| pair[1].split_once("minrtt:")?.1.split(' ').next()?.parse::<f64>().ok());
    values.fold(f64::INFINITY, f64::min)
}

/// Sends while `ss` looks on.
const SEND: &str = "mptcpize run iperf3 -c server -n 8M > iperf.log 2>&1 & sender=$!
while kill -0 $sender 2> /dev/null; do ss -tinH >> ss.log; sleep 0.05; done
wait $sender || exit 1\n";

#[test]
fn acks_take_the_short_path() {
    for backend in ["tun", "veth"] {
        let Some(directory) = place_of("acks") else { return };
        let acks = command(CLIENT, "client.log");
        try_out(&directory, backend, &format!("{acks} & acks=$!\n{AGREED}{SEND}kill $acks; wait $acks\n"));
        let (long, short) =
            (shortest(&directory.join("ss.log"), "10.77.2.2"), shortest(&directory.join("ss.log"), "10.77.1.2"));
        assert!((55.0..70.0).contains(&long) && (10.0..25.0).contains(&short), "{backend}: {long} and {short} ms");
        let (server, client) = (counts(&directory.join("server.log")), counts(&directory.join("client.log")));
        assert!(
            server("moved") > 100 && server("kept") > 0 && client("restored") > 100,
            "{backend}: {}, {} and {}",
            server("moved"),
            server("kept"),
            client("restored")
        );
        assert_eq!((server("refused"), client("refused")), (0, 0), "{backend}");
        // The same without it.
        fs::remove_file(directory.join("ss.log")).unwrap();
        try_out(&directory, backend, SEND);
        let long = shortest(&directory.join("ss.log"), "10.77.2.2");
        assert!((100.0..130.0).contains(&long), "{backend}: {long} ms");
    }
}

/// The kernel takes the programs of the process that died, and the other host hears it from a RST.
#[test]
fn acks_come_home_when_the_other_host_dies() {
    let Some(directory) = place_of("acks-killed") else { return };
    let acks = command(CLIENT, "client.log");
    let script = format!(
        "sh -c 'echo $$ > pid; exec {acks}' &
{AGREED}mptcpize run iperf3 -c server -n 16M > iperf.log 2>&1 & sender=$!
until tail -n 1 server.log | grep -q 'moved\":[0-9][0-9][0-9]'; do kill -0 $sender || exit 3; sleep 0.05; done
kill -9 $(cat pid)
wait $sender || exit 1
until tail -n 1 server.log | grep -q 'silent'; do sleep 0.1; done\n"
    );
    try_out(&directory, "tun", &script);
    let server = counts(&directory.join("server.log"));
    assert!(server("refused") > 0 && server("barred") > 0, "{} and {}", server("refused"), server("barred"));
}

/// Two hosts that mean different paths move nothing.
#[test]
fn other_paths_are_found_out() {
    let Some(directory) = place_of("acks-other") else { return };
    let [first, second] = CLIENT;
    let acks = command([second, first], "client.log");
    let told = "until tail -n 1 client.log | grep -q 'other-paths'; do sleep 0.1; done\n";
    try_out(&directory, "tun", &format!("{acks} & acks=$!\n{told}{SEND}kill $acks; wait $acks\n"));
    let server = counts(&directory.join("server.log"));
    assert_eq!((server("moved"), server("restored")), (0, 0));
}
