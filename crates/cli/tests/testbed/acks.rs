//! `anabranch kernel acks` between two kernels behind a testbed: ACKs take the short path, and come home when one of
//! the two commands dies.

use super::kernel::has_features;
use super::{lacks, place, run, stderr};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    try_with(directory, backend, "mptcpize run iperf3 -s", script);
}

/// Runs a script in the client, with the command and this program in the server.
fn try_with(directory: &Path, backend: &str, program: &str, script: &str) {
    // A program that could not listen yet would end the test; the testbed waits until it does.
    let server = format!("{} & exec {program}", command(SERVER, "server.log"));
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

/// The other host repeats what fills a gap because it has heard our ACKs: only every sixteenth stays at home.
#[test]
fn repaired_losses_send_no_acks_home() {
    let Some(directory) = place_of("acks-lossy") else { return };
    // Of data only: where an ACK that moved is lost, all stay at home for a second or more, as they should.
    let lossy = |delay, loss| format!("{delay}\nloss = \"0%\"\nloss-up = \"{loss}%\"");
    let [short, long] = [("\"5ms\"", 2), ("\"50ms\"", 5)];
    let lossy = PATHS.replace(short.0, &lossy(short.0, short.1)).replace(long.0, &lossy(long.0, long.1));
    fs::write(directory.join("paths.toml"), format!("{lossy}[host]\ncongestion = \"reno\"\n")).unwrap();
    let script = format!("{} & acks=$!\n{AGREED}{SEND}kill $acks; wait $acks\n", command(CLIENT, "client.log"));
    for _ in 0..5 {
        let _ = fs::remove_file(directory.join("ss.log"));
        try_out(&directory, "tun", &script);
        let server = counts(&directory.join("server.log"));
        let (moved, kept, barred) = (server("moved"), server("kept"), server("barred"));
        println!("{moved} moved, {kept} kept, barred {barred} times");
        // A busy host that repeats data too early looks as if our ACKs were lost, too.
        if barred > 0 {
            continue;
        }
        // 7 to 10 for 100 that moved. Where any repeated data counts as a sign of lost ACKs, 40 to 130.
        assert!(moved > 150 && kept * 4 < moved, "{moved} moved, {kept} kept");
        return;
    }
    panic!("ACKs were taken for lost in each of five transfers");
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

/// Reads four connections to their ends, and answers each with the number of its bytes.
const READER: &str = "import socket, threading
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
listener.bind(('10.77.0.1', 5600))
listener.listen()
def read(listener):
    connection, count = listener.accept()[0], 0
    while data := connection.recv(65536):
        count += len(data)
    connection.sendall(str(count).encode())
    connection.close()
readers = [threading.Thread(target=read, args=[listener]) for _ in range(4)]
[reader.start() for reader in readers]
[reader.join() for reader in readers]
";

/// An MPTCP connection on one path, and one of plain TCP with the same ports on the other, which sends. It begins
/// later, then earlier.
const WRITER: &str = "import socket, time
def connect(protocol, address, port):
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    connection.bind((address, port))
    connection.settimeout(20)
    connection.connect(('10.77.0.1', 5600))
    return connection
def know(port):
    known = connect(socket.IPPROTO_MPTCP, '10.77.1.2', port)
    known.sendall(bytes(1000))
    time.sleep(1)
    return known
def finish(plain, known):
    plain.sendall(bytes(4_000_000))
    for connection in plain, known:
        connection.shutdown(socket.SHUT_WR)
        print(connection.recv(100).decode())
known = know(45000)
finish(connect(0, '10.77.2.2', 45000), known)
plain = connect(0, '10.77.2.2', 45001)
finish(plain, know(45001))
";

/// Its ACKs arrive with the ports of the subflow that is known, and are not that one's.
#[test]
fn another_connection_with_the_same_ports_keeps_its_acks() {
    let Some(directory) = place_of("acks-ports") else { return };
    if lacks("python3") {
        eprintln!("SKIPPED: acks-ports: it takes python3");
        return;
    }
    fs::write(directory.join("reader.py"), READER).unwrap();
    fs::write(directory.join("writer.py"), WRITER).unwrap();
    let acks = command(CLIENT, "client.log");
    let write = "python3 writer.py > counts.log || exit 1\n";
    let script = format!("{acks} & acks=$!\n{AGREED}{write}kill $acks; wait $acks\n");
    try_with(&directory, "tun", "python3 reader.py", &script);
    assert_eq!(fs::read_to_string(directory.join("counts.log")).unwrap(), "4000000\n1000\n".repeat(2));
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

/// Host A has two addresses and two links to a router, behind which are hosts B and C with one address each; all in a
/// mount namespace, with which names of network namespaces go, and a PID namespace, with which all processes go.
const THREE: &str = r#"mount -t tmpfs none /run && mkdir /run/netns
for name in a b c r; do ip netns add $name; ip -n $name link set lo up; done
link() { ip -n $1 link add $2 type veth peer name $4 netns r; ip -n $1 address add $3/24 dev $2
    ip -n r address add ${3%.*}.254/24 dev $4; ip -n $1 link set $2 up; ip -n r link set $4 up; }
link a a1 10.0.1.1 r1
link a a2 10.0.2.1 r2
link b b1 10.1.1.1 r3
link c c1 10.2.1.1 r4
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
ip -n a route add default via 10.0.1.254
ip -n a route add default via 10.0.2.254 table 2
ip -n a rule add from 10.0.2.1 table 2
ip -n b route add default via 10.1.1.254
ip -n c route add default via 10.2.1.254
ip -n a mptcp endpoint add 10.0.2.1 dev a2 subflow
for name in a b c; do ip netns exec $name sysctl -qw net.mptcp.enabled=1; done
# For a shell of its own.
on() { name=$1; shift; exec ip netns exec $name "$@"; }
"#;

/// Sends 8 MiB to each client in two seconds and more, so that the hosts agree on its subflows meanwhile.
const SENDER: &str = r#"
import socket, sys, time
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind((sys.argv[1], 5232))
listener.listen()
while True:
    connection, _ = listener.accept()
    for _ in range(128):
        connection.sendall(bytes(1 << 16))
        time.sleep(0.02)
    connection.close()
"#;

/// Takes it from both at a time.
const TAKER: &str = r#"
import select, socket
clients = []
for address in ("10.1.1.1", "10.2.1.1"):
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    client.connect((address, 5232))
    clients.append(client)
total, left = 0, list(clients)
while left:
    for client in select.select(left, [], [])[0]:
        part = client.recv(1 << 14)
        total += len(part)
        if not part: left.remove(client)
print(total)
"#;

/// A host receives from two others over the same two devices. Its ACKs to both take the second path, and both put them
/// back.
#[test]
fn one_command_serves_several_other_hosts() {
    let Some(directory) = place_of("acks-three") else { return };
    if lacks("unshare") || lacks("python3") || lacks("ip") {
        eprintln!("SKIPPED: acks-three: it takes unshare, python3 and ip");
        return;
    }
    fs::write(directory.join("sender.py"), SENDER).unwrap();
    fs::write(directory.join("taker.py"), TAKER).unwrap();
    let anabranch = env!("CARGO_BIN_EXE_anabranch");
    let ends = "--path 10.1.1.1,10.0.1.1 --path 10.1.1.1,10.0.2.1";
    let acks = format!("{anabranch} kernel acks --json");
    let script = format!(
        "{THREE}
on b python3 sender.py 10.1.1.1 &
on c python3 sender.py 10.2.1.1 &
on b {acks} {ends} > b.log 2> b.err &
on c {acks} {} > c.log 2> c.err &
on a {acks} --path b=10.0.1.1,10.1.1.1 --path b=10.0.2.1,10.1.1.1 --path c=10.0.1.1,10.2.1.1 \
         --path c=10.0.2.1,10.2.1.1 --policy fixed:path=10.0.2.1 > a.log 2> a.err & acks=$!
agreed() {{ tail -n 4 a.log | grep \"host\\\":\\\"$1\" | grep -q 'agrees.*acks-on\":2.*acks-on\":2'; }}
tries=0
until agreed b && agreed c; do tries=$((tries + 1)); test $tries -lt 100; sleep 0.1; done
(on a python3 taker.py)
kill $acks
wait $acks\n",
        ends.replace("10.1.1.1", "10.2.1.1")
    );
    let mut command = Command::new("unshare");
    let spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    command.args(spaces).args(["sh", "-ec", &script]).stdin(Stdio::null()).current_dir(&directory);
    let output = command.output().unwrap();
    let said = ["a.err", "b.err", "c.err", "a.log"].map(|file| fs::read_to_string(directory.join(file)));
    assert!(output.status.success(), "{}{said:?}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", 16 << 20));
    let log = fs::read_to_string(directory.join("a.log")).unwrap();
    super::common::schema::Schema::of("kernel-acks").check_lines(&log, "kernel acks --json");
    for host in ["b", "c"] {
        let mut rounds = log.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let round = rounds.find(|round| round["host"] == host).unwrap();
        let count = |name: &str| round["counts"][name].as_u64().unwrap();
        let restored = counts(&directory.join(format!("{host}.log")))("restored");
        println!("{host}: moved {}, kept {}, restored there {restored}", count("moved"), count("kept"));
        // What moved in the last round was not counted there yet.
        assert!(count("moved") > 100 && restored > 100 && count("refused") == 0, "{round:#}, {restored}");
    }
}
