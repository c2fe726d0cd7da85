//! `anabranch kernel watch` beside a transfer of the kernel's MPTCP: counts of decisions and of data per subflow are
//! those that the paths of the testbed carried, and they change with the paths.

use super::common::schema::Schema;
use super::kernel::{LOADING, has_features, turn};
use super::{place, run, server, stderr, two_paths};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const BYTES: u64 = 8_000_000;

/// Port of the server, by which connections of this file are told from those of other tests of the kernel's MPTCP: the
/// kernel has them all, with the same addresses in other namespaces.
const PORT: u16 = 5231;

/// Waits until it is watched, sends all, and waits until the other end has it.
const CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("watch.jsonl") or not os.path.getsize("watch.jsonl"): time.sleep(0.01)
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
if os.path.exists("control"): client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, open("control", "rb").read())
client.connect(("10.77.0.1", 5231))
time.sleep(0.3)
client.sendall(bytes(8_000_000))
client.shutdown(socket.SHUT_WR)
assert client.recv(8) == b"8000000"
time.sleep(0.2)
"#;

/// Events and totals of the watch, and the counters of the paths.
struct Watched {
    lines: String,
    summary: Value,
    paths: Value,
    directory: PathBuf,
}

/// A transfer over two paths alike, but for the settings of the `second`, that is watched by `watch`: a piece of shell
/// that knows the sender as `$sender`.
fn watched(test: &str, second: &str, watch: &str) -> Option<Watched> {
    let _turn = turn(test, &["btf", "mptcp", "capabilities", "tracepoints"])?;
    let directory: PathBuf = place(test)?;
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    write("paths.toml", &two_paths([("first", "10ms", ""), ("second", "10ms", second)]));
    write("server.py", &server(PORT));
    write("client.py", CLIENT);
    let anabranch = env!("CARGO_BIN_EXE_anabranch");
    write("client.sh", &format!("python3 client.py & sender=$!\nwatch='{anabranch} kernel watch --json'\n{watch}"));
    let args = ["paths.toml", "--duration", "60s", "--json", "testbed.json", "--server", "python3 server.py"];
    let output = run(&directory, &[&args[..], &["--", "sh", "-e", "client.sh"]].concat());
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    assert!(output.status.success(), "{}{}", stderr(&output), read("watch.err"));
    let lines = read("watch.jsonl");
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "summary", "{last}");
    let summary = last["totals"].clone();
    assert_eq!(summary["lost"], 0, "{summary}");
    let testbed: Value = serde_json::from_str(&read("testbed.json")).unwrap();
    Some(Watched { lines, summary, paths: testbed["paths"].clone(), directory })
}

impl Watched {
    /// The connection of this test with a subflow that begins at this address.
    fn from(&self, address: &str) -> Option<&Value> {
        let is_here = |subflow: &Value| {
            let [local, remote] = ["local", "remote"].map(|name| subflow[name].as_str().unwrap());
            local.starts_with(&format!("{address}:"))
                && [local, remote].iter().any(|end| end.ends_with(&format!(":{PORT}")))
        };
        let all = self.summary["connections"].as_array().unwrap();
        all.iter().find(|it| it["subflows"].as_array().unwrap().iter().any(is_here))
    }

    fn sender(&self) -> &Value {
        self.from("10.77.1.2").unwrap_or_else(|| panic!("no connection: {}", self.summary))
    }

    /// A number of the sender's subflow on the first or second path.
    fn of_subflow(&self, path: usize, name: &str) -> u64 {
        let address = ["10.77.1.2:", "10.77.2.2:"][path];
        let subflows = self.sender()["subflows"].as_array().unwrap();
        let subflow = subflows.iter().find(|it| it["local"].as_str().unwrap().starts_with(address));
        subflow.unwrap_or_else(|| panic!("no subflow on {address}: {}", self.summary))[name].as_u64().unwrap()
    }

    /// Part of the sender's data or choices on the second path.
    fn second(&self, name: &str) -> f64 {
        let [first, second] = [0, 1].map(|path| self.of_subflow(path, name) as f64);
        second / (first + second)
    }

    /// A path carries what its subflow was given, each byte at least once, and what TCP repeated in vain: at most this
    /// part of it \[%\]. On a busy machine TCP repeats more.
    fn check_paths(&self, repeated: [u64; 2]) {
        for (path, repeated) in repeated.into_iter().enumerate() {
            let given = self.of_subflow(path, "sent");
            let carried = self.paths[path]["up"]["delivered_payload"].as_u64().unwrap();
            let allowed = given..=given + given * repeated / 100;
            assert!(allowed.contains(&carried), "path {path}: {given} given, {carried} carried: {}", self.summary);
        }
        let again = self.sender()["sent_again"].as_u64().unwrap();
        assert_eq!(self.of_subflow(0, "sent") + self.of_subflow(1, "sent"), BYTES + again, "{}", self.summary);
        assert!(self.sender()["data_acked"].as_u64().unwrap() >= BYTES, "{}", self.summary);
        assert_eq!(self.sender()["outstanding"], 0, "{}", self.summary);
    }
}

/// Ends by a signal. Both ends are seen. The scheduler takes what its rule gives; a burst has up to 64 kB, so that
/// parts of choices are those of data but for the size of bursts.
#[test]
fn choices_agree_with_what_subflows_sent() {
    let script = "$watch > watch.jsonl 2> watch.err & watch=$!\nwait $sender\nkill $watch\nwait $watch\n";
    let Some(watched) = watched("watch", "", script) else { return };
    let sender = watched.sender();
    watched.check_paths([10, 10]);
    let (data, choices) = (watched.second("sent"), watched.second("chosen"));
    println!("second path: {:.1} % of the data, {:.1} % of the choices", data * 1e2, choices * 1e2);
    assert!((0.37..0.63).contains(&data) && (data - choices).abs() < 0.12, "{data} and {choices}: {sender}");
    let number = |name: &str| sender[name].as_u64().unwrap();
    assert!(number("unexpected") * 20 <= number("decisions"), "{sender}");
    // The other end, in another namespace of this kernel, got all of it.
    let receiver = watched.from("10.77.0.1").unwrap();
    let arrived = [0, 1].map(|at| receiver["subflows"][at]["mapped"].as_u64().unwrap());
    assert_eq!(arrived.iter().sum::<u64>(), BYTES + number("sent_again"), "{receiver}");
    // Beginning and end of the lines stand for all: each is tried in many ways.
    let lines: Vec<&str> = watched.lines.lines().collect();
    let some = [&lines[..150], &lines[lines.len() - 20..]].concat().join("\n");
    Schema::of("kernel-watch").check_lines(&(some + "\n"), "kernel watch --json");
    check_decisions(&lines, sender);
}

/// Events of decisions say the same as the totals.
fn check_decisions(lines: &[&str], sender: &Value) {
    let events = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions: Vec<Value> =
        events.filter(|event| event["event"] == "decision" && event["connection"] == sender["connection"]).collect();
    assert_eq!(decisions.len() as u64, sender["decisions"].as_u64().unwrap());
    for subflow in sender["subflows"].as_array().unwrap() {
        let chosen = decisions.iter().filter(|it| it["chosen"] == subflow["subflow"]).count();
        assert_eq!(chosen as u64, subflow["chosen"].as_u64().unwrap(), "{subflow}");
    }
}

/// Those of a process alone, until it ends. Losses keep the window of the second path small.
#[test]
fn a_lossy_path_is_chosen_less() {
    let script = "$watch $sender > watch.jsonl 2> watch.err\nwait $sender\n";
    let Some(watched) = watched("watch-lossy", "loss = \"3%\"", script) else { return };
    assert!(watched.from("10.77.0.1").is_none(), "the server is another process: {}", watched.summary);
    watched.check_paths([10, 10]);
    let (data, choices) = (watched.second("sent"), watched.second("chosen"));
    println!("second path: {:.1} % of the data, {:.1} % of the choices", data * 1e2, choices * 1e2);
    assert!(data < 0.35 && choices < 0.35, "{data} and {choices}: {}", watched.summary);
    assert!(watched.of_subflow(1, "tcp_repeated") > 0, "{}", watched.summary);
}

/// A congestion control of ours limits what a subflow may hold, so that the kernel's scheduler waits for one whose
/// buffer has room.
#[test]
fn a_limit_of_the_congestion_control_is_seen() {
    if !has_features("watch-limit", &LOADING) {
        return;
    }
    let script = format!(
        "{} kernel load veno > load.log & holder=$!
until grep -q loaded load.log; do sleep 0.1; done
printf ab_veno > control
$watch $sender > watch.jsonl 2> watch.err
wait $sender
kill $holder\n",
        env!("CARGO_BIN_EXE_anabranch")
    );
    let Some(watched) = watched("watch-limit", "loss = \"3%\"", &script) else { return };
    let sender = watched.sender();
    let events = watched.lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let waits: Vec<bool> = events
        .filter(|event| event["event"] == "decision" && event["connection"] == sender["connection"])
        .filter(|event| event["chosen"].is_null())
        .map(|event| event["expected"].is_null())
        .collect();
    let as_expected = waits.iter().filter(|expected| **expected).count();
    println!("{} waits, {as_expected} by the rule; {}", waits.len(), sender["unexpected"]);
    // In the others no data came, or the other host's window was closed.
    assert!(waits.len() > 100 && as_expected * 5 > waits.len() * 4, "{as_expected} of {}: {sender}", waits.len());
    let number = |name: &str| sender[name].as_u64().unwrap();
    assert!(number("unexpected") * 20 <= number("decisions"), "{sender}");
}

/// For a given time. The second path is looked at, and never taken.
#[test]
fn a_backup_is_not_chosen() {
    let script = "$watch --duration 15s > watch.jsonl 2> watch.err\nwait $sender\n";
    let Some(watched) = watched("watch-backup", "backup = true", script) else { return };
    watched.check_paths([10, 10]);
    assert_eq!((watched.of_subflow(1, "chosen"), watched.of_subflow(1, "sent")), (0, 0), "{}", watched.summary);
    assert!(watched.of_subflow(1, "considered") > 0);
    let subflows = watched.sender()["subflows"].as_array().unwrap();
    let states: Vec<bool> = subflows.iter().map(|it| it["latest"]["backup"].as_bool().unwrap()).collect();
    assert_eq!(states, [false, true]);
    let length = watched.summary["seconds"].as_f64().unwrap();
    assert!((15.0..60.0).contains(&length), "{length}");
}

/// The figures of the page have what the totals have. A watch that is killed and one whose disk is full leave no page.
#[test]
fn a_report_shows_the_transfer_or_is_not_there() {
    let script = "watch=\"$watch --buffer 16MiB\"
$watch --report killed.html > killed.jsonl & killed=$!
$watch $sender --report watch.html > watch.jsonl 2> watch.err
wait $sender
kill -9 $killed
mkdir -p full
mount -t tmpfs -o size=16k none full
if $watch --duration 200ms --report full/watch.html > full.jsonl 2> full.err; then exit 8; fi
ls -A full > full.left\n";
    let Some(watched) = watched("watch-report", "", script) else { return };
    let directory = &watched.directory;
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert!(!read("killed.jsonl").is_empty() && !directory.join("killed.html").exists());
    assert!(read("full.err").contains("No space left") && read("full.left").is_empty(), "{}", read("full.err"));
    let page = read("watch.html");
    let (_, rest) = page.split_once("<p class=\"about\">").unwrap();
    let sentence = rest.split("</p>").next().unwrap();
    println!("{sentence}");
    for said in ["10.77.1.2 carried", "and 10.77.2.2 ", "against the rule", "of 8.00 MB that were sent, "] {
        assert!(sentence.contains(said), "{said}: {sentence}");
    }
    let (_, rest) = page.split_once("id=\"s-watch-data\">").unwrap();
    let data: Value = serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap();
    let figures = data["figures"].as_array().unwrap();
    let figure = |name: &str| figures.iter().find(|it| it["file"].as_str().unwrap().ends_with(name)).unwrap();
    for (path, address) in ["10.77.1.2", "10.77.2.2"].into_iter().enumerate() {
        let series =
            |of: &Value| of["series"].as_array().unwrap().iter().find(|it| it["name"] == address).unwrap().clone();
        let given = series(figure("given"));
        let numbers = |name: &str| -> Vec<f64> {
            given[name].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect()
        };
        let (x, y) = (numbers("x"), numbers("y"));
        // The last point only ends the last step.
        let bits: f64 = x.windows(2).zip(&y).map(|(x, y)| (x[1] - x[0]) * y).sum();
        let given = watched.of_subflow(path, "sent") as f64;
        assert!((bits / 8.0 - given).abs() < 0.01 * given, "path {path}: {bits} bits of {given} bytes");
        let chosen =
            figure("decisions")["series"].as_array().unwrap().iter().find(|it| it["name"] == "as the rule gives");
        let chosen = chosen.unwrap();
        let at = |name: &str, at: usize| match &chosen[name] {
            Value::Array(all) => all[at].as_f64().unwrap(),
            one => one.as_f64().unwrap(),
        };
        assert_eq!(at("e", path) - at("x", path), watched.of_subflow(path, "chosen") as f64);
    }
    // What the other host acknowledged at last is all.
    let sequence = figure("sequence")["series"].as_array().unwrap();
    let acked = sequence.iter().find(|it| it["name"] == "DATA_ACK").unwrap()["y"].as_array().unwrap();
    let last = acked.last().unwrap().as_f64().unwrap();
    assert!((last - BYTES as f64).abs() < 0.01 * BYTES as f64, "{last}");
}

/// Unknown processes and groups are refused before anything is loaded.
#[test]
fn what_cannot_be_watched_is_refused() {
    for (target, part) in [
        ("4294967295", "there is no process 4294967295"),
        ("/sys/fs/cgroup/there-is-none", "there is no control group"),
        ("/proc", "no directory of cgroup v2"),
        ("everything", "accepted: the number of a process"),
    ] {
        let output = super::common::anabranch(Path::new("."), &["kernel", "watch", target]);
        assert!(!output.status.success() && stderr(&output).contains(part), "{target}: {}", stderr(&output));
    }
}
