//! `anabranch kernel load`: controls that carry connections of the kernel, and nothing left behind however the command
//! ends.
//!
//! Names of congestion controls are one for the whole machine, so that these tests take turns with all others, also of
//! another checkout. Pins are in a bpffs of the test's own, which goes with its mount namespace.

use super::{lacks, place, run, stderr, until};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const ANABRANCH: &str = env!("CARGO_BIN_EXE_anabranch");

/// The turn of a test, as long as it is kept; none where something is missing.
pub(super) fn turn(test: &str, needed: &[&str]) -> Option<File> {
    if !has_features(test, needed) {
        return None;
    }
    let file = File::create(std::env::temp_dir().join("anabranch-kernel-tests.lock")).unwrap();
    file.lock().unwrap();
    Some(file)
}

/// Returns true if the kernel has these features of `kernel list`; otherwise the test says that it is skipped.
pub(super) fn has_features(test: &str, needed: &[&str]) -> bool {
    let output = Command::new(ANABRANCH).args(["kernel", "list", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let features = list["features"].as_array().unwrap();
    let missing = needed.iter().find_map(|name| {
        let feature = features.iter().find(|feature| feature["name"] == *name).unwrap();
        (feature["available"] != true).then_some(feature)
    });
    if let Some(feature) = missing {
        assert!(std::env::var_os("ANABRANCH_REQUIRE_BPF").is_none(), "{feature}");
        eprintln!("SKIPPED: {test}: {}: {}", feature["name"], feature["note"]);
    }
    missing.is_none()
}

pub(super) const LOADING: [&str; 4] = ["btf", "struct-ops", "kernel-functions", "capabilities"];

pub(super) fn registered(name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().any(|other| other == name)
}

/// A `kernel load` that has registered its control; killed when the test ends, however it does.
struct Holder(Child);

impl Holder {
    fn of(name: &str) -> Self {
        let mut child = Command::new(ANABRANCH).args(["kernel", "load", name]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let holder = Holder(child);
        assert!(line.starts_with("loaded "), "{line}");
        holder
    }

    /// `kill -9`.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn the_kernel_takes_the_registration_of_a_killed_command_back() {
    let Some(_turn) = turn("load-killed", &LOADING) else { return };
    let holder = Holder::of("veno");
    assert!(registered("ab_veno"));
    // Held, and pinned nowhere: another command can neither take it back nor load it again.
    let output = Command::new(ANABRANCH).args(["kernel", "unload", "veno"]).output().unwrap();
    assert!(stderr(&output).contains("a running command holds it"), "{}", stderr(&output));
    let output = Command::new(ANABRANCH).args(["kernel", "load", "veno"]).output().unwrap();
    assert!(stderr(&output).contains("is registered with the kernel already"), "{}", stderr(&output));
    holder.kill();
    until("ab_veno is gone", || !registered("ab_veno"));
    let again = Holder::of("veno");
    assert!(registered("ab_veno"));
    drop(again);
    until("ab_veno is gone", || !registered("ab_veno"));
}

/// True if the kernel takes schedulers from BPF. No released one does.
fn takes_schedulers() -> bool {
    let output = Command::new(ANABRANCH).args(["kernel", "list"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let blest = listed.lines().find(|line| line.trim_start().starts_with("blest ")).unwrap();
    let takes = !blest.contains(" waiting ");
    assert!(!takes || blest.contains(" loadable ") || blest.contains(" registered "), "{blest}");
    assert!(listed.contains(&format!("  mptcp-schedulers  {}", if takes { "yes" } else { "no" })), "{listed}");
    takes
}

/// Returns the complaint of `anabranch kernel` about arguments that it refuses, as one line.
fn refusal(args: &[&str]) -> String {
    let output = Command::new(ANABRANCH).arg("kernel").args(args).output().unwrap();
    assert!(!output.status.success(), "{args:?}");
    // Lines are wrapped for a terminal.
    stderr(&output).split(['\n', ' ', '│']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A kernel that takes them is left alone.
#[test]
fn a_scheduler_waits_for_a_kernel_that_takes_it() {
    if takes_schedulers() {
        eprintln!("SKIPPED: this kernel takes schedulers from BPF");
        return;
    }
    for args in [&["--scheduler", "blest"][..], &["--scheduler", "blest", "--pin", "--default"]] {
        let said = refusal(&[&["load"], args].concat());
        assert!(said.contains("this kernel takes no MPTCP schedulers from BPF: its BTF has no"), "{said}");
        assert!(said.contains("struct `bpf_struct_ops_mptcp_sched_ops`"), "{said}");
    }
    let said = refusal(&["unload", "--scheduler", "ab_blest"]);
    assert!(said.contains("`ab_blest` is not loaded"), "{said}");
    let schedulers = fs::read_to_string("/proc/sys/net/mptcp/available_schedulers").unwrap_or_default();
    assert!(!schedulers.contains("ab_"), "{schedulers}");
}

#[test]
fn arguments_that_name_no_policy_of_their_kind_are_refused() {
    for action in ["load", "unload"] {
        let said = refusal(&[action, "--scheduler", "blst"]);
        assert!(said.contains("no scheduler `blst`") && said.contains("did you mean `blest`?"), "{said}");
        let said = refusal(&[action, "blest"]);
        assert!(said.contains("no congestion control `blest`") && said.contains("`--scheduler blest`"), "{said}");
        let said = refusal(&[action, "--scheduler", "ab_lia"]);
        assert!(said.contains("no scheduler `ab_lia`") && said.contains("leave `--scheduler` out"), "{said}");
        let said = refusal(&[action, "lia", "--scheduler", "blest"]);
        assert!(said.contains("cannot be used with"), "{said}");
        let said = refusal(&[action]);
        assert!(said.contains("required arguments were not provided"), "{said}");
    }
    for beside in [["--cgroup", "/sys/fs/cgroup"].as_slice(), &["--default"]] {
        let said = refusal(&[&["load", "--scheduler", "blest"], beside].concat());
        assert!(said.contains("cannot be used with") || said.contains("--pin"), "{said}");
    }
}

/// Runs a script where bpffs is its own.
fn with_own_pins(script: &str) -> Output {
    let script = format!("mount -t bpf bpf /sys/fs/bpf || exit 99\n{script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &script]).env("ANABRANCH", ANABRANCH).stdin(Stdio::null());
    command.output().unwrap()
}

/// Runs a script in a network namespace of its own, and with mounts of its own, until its first failure; what it
/// printed, and what it complained of.
fn alone(script: &str, directory: &Path) -> (String, String) {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-ec", script]).env("ANABRANCH", ANABRANCH).stdin(Stdio::null());
    let output = command.current_dir(directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", stderr(&output));
    (text, stderr(&output))
}

const PIN: &str = "$ANABRANCH kernel load veno --pin
grep -qw ab_veno /proc/sys/net/ipv4/tcp_available_congestion_control
$ANABRANCH kernel status | grep ab_veno
ls /sys/fs/bpf/anabranch\n";

#[test]
fn a_pin_survives_the_command_and_unload_leaves_nothing() {
    let Some(_turn) = turn("load-pinned", &LOADING) else { return };
    if lacks("unshare") {
        eprintln!("SKIPPED: load-pinned: it takes unshare");
        return;
    }
    let unload = "$ANABRANCH kernel unload ab_veno
tries=0
while $ANABRANCH kernel status | grep -q ab_veno; do tries=$((tries + 1)); test $tries -lt 100; sleep 0.1; done
if $ANABRANCH kernel unload veno 2>&1; then exit 98; fi
! test -e /sys/fs/bpf/anabranch\n";
    let output = with_own_pins(&format!("{PIN}{unload}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let pinned = "loaded ab_veno, pinned as /sys/fs/bpf/anabranch/ab_veno
veno     ab_veno     pinned as /sys/fs/bpf/anabranch/ab_veno
ab_veno
unloaded ab_veno\n";
    assert!(text.starts_with(pinned) && text.contains("`ab_veno` is not loaded"), "{text}");
    until("ab_veno is gone", || !registered("ab_veno"));
    // What nobody unloads goes with the bpffs that has the pin.
    let output = with_own_pins(PIN);
    assert!(output.status.success(), "{}", stderr(&output));
    until("ab_veno is gone", || !registered("ab_veno"));
}

/// The pin went without `unload`, so that the namespace has a default that is not registered any more.
#[test]
fn an_earlier_registration_is_no_default_to_return_to() {
    let Some(_turn) = turn("load-default-gone", &LOADING) else { return };
    if lacks("unshare") {
        eprintln!("SKIPPED: load-default-gone: it takes unshare");
        return;
    }
    let script = "mount -t bpf bpf /sys/fs/bpf || exit 99
default=/proc/sys/net/ipv4/tcp_congestion_control
$ANABRANCH kernel load veno --pin --default
rm -r /sys/fs/bpf/anabranch
tries=0
while grep -qw ab_veno /proc/sys/net/ipv4/tcp_available_congestion_control; do
    tries=$((tries + 1)); test $tries -lt 100; sleep 0.1
done
cat $default
$ANABRANCH kernel load veno --pin --default
$ANABRANCH kernel unload veno
cat $default";
    let (text, _) = alone(script, Path::new("/"));
    let pinned = "loaded ab_veno, default of this network namespace, pinned as /sys/fs/bpf/anabranch/ab_veno\n";
    assert_eq!(text, format!("{pinned}ab_veno\n{pinned}unloaded ab_veno\nreno\n"));
    until("ab_veno is gone", || !registered("ab_veno"));
}

/// The pin of a congestion control under the name of a scheduler stands in for one: what lies in the folder is seen and
/// taken back by its name.
#[test]
fn a_pin_of_a_scheduler_is_shown_and_taken_back() {
    let Some(_turn) = turn("load-pins", &LOADING) else { return };
    if lacks("unshare") || takes_schedulers() {
        eprintln!("SKIPPED: load-pins: it takes unshare, and a kernel without schedulers from BPF");
        return;
    }
    // Others may have loaded something else.
    let output = with_own_pins(
        "$ANABRANCH kernel load veno --pin
cd /sys/fs/bpf/anabranch
mv ab_veno ab_round_robin
ln -s default ab_round_robin_default_$(stat -L -c %i /proc/self/ns/net)
ln -s default ab_round_robin_default_1
cd /
$ANABRANCH kernel status | grep 'veno\\|robin'
$ANABRANCH kernel status --json | tr -d '\\n ' | grep -o '{\"kind\":\"scheduler\".*'
$ANABRANCH kernel unload --scheduler round-robin
! test -e /sys/fs/bpf/anabranch
cat /proc/sys/net/mptcp/scheduler\n",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let scheduler = fs::read_to_string("/proc/sys/net/mptcp/scheduler").unwrap();
    let expected = format!(
        "loaded ab_veno, pinned as /sys/fs/bpf/anabranch/ab_veno
veno        ab_veno        held by a running command
round-robin ab_round_robin scheduler, pinned as /sys/fs/bpf/anabranch/ab_round_robin, but not registered in this kernel
{{\"kind\":\"scheduler\",\"name\":\"round-robin\",\"kernel_name\":\"ab_round_robin\",\
         \"registered\":false,\"pin\":\"/sys/fs/bpf/anabranch/ab_round_robin\",\"default\":false}}]}}
unloaded ab_round_robin
{scheduler}"
    );
    assert_eq!(text, expected);
    until("ab_veno is gone", || !registered("ab_veno"));
}

/// In a network namespace of the test's own, on a kernel that takes schedulers from BPF.
#[test]
fn a_scheduler_that_is_the_default_is_put_back_by_unload() {
    let Some(_turn) = turn("load-scheduler", &LOADING) else { return };
    if lacks("unshare") || !takes_schedulers() {
        eprintln!("SKIPPED: load-scheduler: it takes unshare, and a kernel that takes schedulers from BPF");
        return;
    }
    let script = "mount -t bpf bpf /sys/fs/bpf || exit 99
default=/proc/sys/net/mptcp/scheduler
former=$(cat $default)
$ANABRANCH kernel load --scheduler ecf --pin --default
cat $default
$ANABRANCH kernel status
if $ANABRANCH kernel load --scheduler ecf; then exit 98; fi
$ANABRANCH kernel unload --scheduler ecf
test $(cat $default) = $former
! grep -w ab_ecf /proc/sys/net/mptcp/available_schedulers
! test -e /sys/fs/bpf/anabranch\n";
    let (text, _) = alone(script, &super::common::directory("load-cgroup"));
    let expected = "loaded ab_veno for groups/anabranch, pinned as /sys/fs/bpf/anabranch/ab_veno
6 0
262 0
6 2
262 2
unloaded ab_veno
6 0
262 0\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("cannot give it to the control group /proc"), "{text}");
    until("ab_veno is gone", || !registered("ab_veno"));
}

/// Two paths whose buffers are much longer than their round trips.
const DEEP: &str = r#"
[path.first]
rate = "20mbit"
delay = "10ms"
queue = "250kB"
[path.second]
rate = "10mbit"
delay = "20ms"
queue = "250kB"
[[workload]]
kind = "files"
size = "1MiB"
"#;

/// Returns what `ss` says of a field of both subflows in five seconds of iperf3 with this control; a subflow of which
/// it does not say it, has 0.
fn samples(directory: &Path, scenario: &str, control: &str, field: &str) -> [Vec<f64>; 2] {
    let script = format!(
        "mptcpize run iperf3 -c server -t 5 -C {control} > iperf.log 2>&1 & sender=$!
sleep 2
while kill -0 $sender 2> /dev/null; do ss -tinH >> {control}.log; sleep 0.1; done
wait $sender\n"
    );
    fs::write(directory.join("client.sh"), script).unwrap();
    let args = [scenario, "--duration", "60s", "--server", "mptcpize run iperf3 -s", "--", "sh", "client.sh"];
    let output = run(directory, &args);
    let said = fs::read_to_string(directory.join("iperf.log"));
    assert!(output.status.success(), "{}{said:?}", stderr(&output));
    let text = fs::read_to_string(directory.join(format!("{control}.log"))).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    ["10.77.1.2", "10.77.2.2"].map(|address| {
        let of = lines.windows(2).filter(|pair| {
            [":", "%"].iter().any(|end| pair[0].contains(&format!(" {address}{end}")))
                && pair[1].contains(&format!(" {control} "))
        });
        let value = |text: &str| text.split(['/', ' ']).next()?.parse().ok();
        let values =
            of.map(|pair| pair[1].split_once(&format!(" {field}:")).map_or(Some(0.0), |(_, text)| value(text)));
        let values: Vec<f64> = values.collect::<Option<_>>().expect("ss prints numbers");
        assert!(values.len() > 5, "{address}: {values:?}");
        values
    })
}

/// Medians of the smoothed round trips of the two subflows \[ms\].
fn round_trips(directory: &Path, control: &str) -> [f64; 2] {
    samples(directory, "deep.toml", control, "rtt").map(|mut values| {
        values.retain(|value| *value > 0.0);
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}

/// Small windows, since both paths lose.
const LOSING: &str = r#"
[path.first]
rate = "20mbit"
delay = "10ms"
loss = "2%"
[path.second]
rate = "20mbit"
delay = "30ms"
loss = "2%"
[[workload]]
kind = "files"
size = "1MiB"
"#;

/// With Reno a subflow is given 64 kB and more, whatever its window; with one of ours a fragment of 32 kB, on top of
/// less than a segment.
#[test]
fn a_subflow_that_has_lost_something_is_given_a_fragment_at_a_time() {
    let Some(_turn) = turn("lowat", &LOADING) else { return };
    let Some(directory) = place("lowat") else { return };
    if lacks("iperf3") || lacks("mptcpize") || lacks("ss") {
        eprintln!("SKIPPED: lowat: it takes iperf3, mptcpize and ss");
        return;
    }
    fs::write(directory.join("losing.toml"), LOSING).unwrap();
    let _holder = Holder::of("lia");
    let [ours, reno] = ["ab_lia", "reno"].map(|control| {
        samples(&directory, "losing.toml", control, "notsent").map(|values| values.into_iter().fold(0.0, f64::max))
    });
    println!("most bytes not sent: lia {ours:?}, reno {reno:?}");
    assert!(ours.iter().all(|most| (1.0..34_300.0).contains(most)), "lia {ours:?}, reno {reno:?}");
    assert!(reno.iter().any(|most| *most > 50_000.0), "lia {ours:?}, reno {reno:?}");
}

/// A client that writes 100 kB and closes its end before the first ACK. It says how much the server has got, and
/// whether the connection has fallen back: the kernel then knows no options of MPTCP for it.
const FALLING_BACK: &str = r#"
import socket
# Linux' defaults; buffers begin with the second and grow with the window.
with open("/proc/sys/net/ipv4/tcp_wmem", "w") as file: file.write("4096 16384 4194304")
for _ in range(30):
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    client.settimeout(20)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"ab_lia")
    client.connect(("10.77.0.1", 5234))
    client.sendall(bytes(41))
    client.sendall(bytes(99_959))
    client.shutdown(socket.SHUT_WR)
    got = client.recv(9).decode()
    try: protocol = "MPTCP" if client.getsockopt(284, 1, 64) else None
    except OSError: protocol = "TCP"
    print(got, protocol, flush=True)
    client.close()
"#;

/// On the server's host: no packet with MP_CAPABLE arrives after the SYN, so that it takes all for plain TCP.
const DEAF: &str = "nft 'add table t; add chain t i { type filter hook input priority 0; }; \
                    add rule t i tcp flags & (syn | fin) == 0 tcp option mptcp subtype 0 drop' \
                    && exec python3 server.py";

/// Linux 6.18 ends a connection that falls back after its application has closed its end with what it has handed to TCP
/// by then, the first window. A send buffer as for several subflows holds all the rest, and so made it cut nearly all.
#[test]
fn a_connection_that_falls_back_is_sent_to_its_end() {
    let Some(_turn) = turn("fallback", &LOADING) else { return };
    let Some(directory) = place("fallback") else { return };
    if lacks("python3") || lacks("nft") {
        eprintln!("SKIPPED: fallback: it takes python3 and nft");
        return;
    }
    fs::write(directory.join("client.py"), FALLING_BACK).unwrap();
    fs::write(directory.join("server.py"), super::server(5234)).unwrap();
    let _holder = Holder::of("lia");
    let output = run(&directory, &["two.toml", "--server", DEAF, "--", "python3", "client.py"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let ends: Vec<&str> = text.lines().filter(|line| line.ends_with("TCP")).collect();
    assert_eq!(ends, ["100000 TCP"; 30]);
}

/// Reno fills the buffers: 250 kB are 100 and 200 ms. wVegas leaves about ten packets there: 6 and 12 ms if all are in
/// one.
#[test]
fn wvegas_carries_mptcp_and_keeps_queues_short() {
    let Some(_turn) = turn("wvegas", &LOADING) else { return };
    let Some(directory) = place("wvegas") else { return };
    if lacks("iperf3") || lacks("mptcpize") || lacks("ss") {
        eprintln!("SKIPPED: wvegas: it takes iperf3, mptcpize and ss");
        return;
    }
    fs::write(directory.join("deep.toml"), DEEP).unwrap();
    let _holder = Holder::of("wvegas");
    let (wvegas, reno) = (round_trips(&directory, "ab_wvegas"), round_trips(&directory, "reno"));
    println!("median SRTT: wvegas {wvegas:?}, reno {reno:?} ms");
    for (at, base) in [20.0, 40.0].into_iter().enumerate() {
        assert!(wvegas[at] >= base && wvegas[at] < reno[at] / 2.0 + base / 2.0, "wvegas {wvegas:?}, reno {reno:?} ms");
    }
}
