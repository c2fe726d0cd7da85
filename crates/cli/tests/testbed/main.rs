//! `anabranch testbed`: real programs behind emulated paths, without leftovers whichever process is killed.
//!
//! If no testbed can be made these tests say on standard error that they were skipped; with
//! `ANABRANCH_REQUIRE_NETNS` set, as in CI, they fail.
#![allow(clippy::unwrap_used)]

mod acks;
mod calibration;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod engine;
mod evaluate;
mod follow;
mod gate;
mod kernel;
mod killed;
mod links;
mod ordinary_user;
mod soak;
mod steer;
mod terminal;
mod watch;

use common::directory;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A directory with a scenario of two paths, unless no testbed can be made here.
fn place(test: &str) -> Option<PathBuf> {
    if let Some(missing) = missing() {
        assert!(
            std::env::var_os("ANABRANCH_REQUIRE_NETNS").is_none(),
            "ANABRANCH_REQUIRE_NETNS is set, and no testbed can be made: {missing}"
        );
        eprintln!("SKIPPED: {test}: no testbed can be made here: {missing}");
        return None;
    }
    let directory = directory(&format!("testbed-{test}"));
    fs::write(directory.join("two.toml"), TWO_PATHS).unwrap();
    Some(directory)
}

/// A scenario of two paths of 20 Mbit/s: of each its name, its delay, and more of its settings.
fn two_paths(paths: [(&str, &str, &str); 2]) -> String {
    let path = |(name, delay, more)| format!("[path.{name}]\nrate = \"20mbit\"\ndelay = \"{delay}\"\n{more}\n");
    let rest = "[host]\ncongestion = \"reno\"\n[[workload]]\nkind = \"files\"\nsize = \"1MiB\"\n";
    paths.map(path).concat() + rest
}

/// A server of the kernel's MPTCP, in Python: takes connections one after the other, reads each to its end, then says
/// how many bytes it has got. Its arguments, if there are any: a pause after each piece \[s\], and a receive buffer.
fn server(port: u16) -> String {
    format!(
        r#"
import socket, sys, time
pause, buffer = [float(it) for it in sys.argv[1:]] or [0, 0]
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
if buffer: listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
listener.bind(("10.77.0.1", {port}))
listener.listen()
while True:
    connection, _ = listener.accept()
    got = 0
    while part := connection.recv(1 << 14):
        got += len(part)
        if pause: time.sleep(pause)
    connection.sendall(str(got).encode())
    connection.close()
"#
    )
}

/// Reason for which no testbed can be made here.
fn missing() -> &'static Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| {
        let directory = directory("testbed-attempt");
        fs::write(directory.join("two.toml"), TWO_PATHS).unwrap();
        let output = testbed(&directory, &["two.toml", "--", "true"]).output().unwrap();
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

/// Returns true if a program is missing; in CI that is a failure.
fn lacks(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    assert!(found || std::env::var_os("ANABRANCH_REQUIRE_NETNS").is_none(), "{program} is missing");
    !found
}

/// Two paths, on which, whatever the machine has, hosts have a congestion control that every kernel lets them use, and
/// buffers of this size.
const TWO_PATHS: &str = r#"
[path.wlan]
rate = "20mbit"
delay = "5ms"
[path.lte]
rate = "10mbit"
delay = "15ms"
[host]
congestion = "reno"
send-buffer = "4MiB"
receive-buffer = "3MiB"
[[workload]]
kind = "files"
size = "1MiB"
"#;

/// Guards against a hang; nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

fn testbed(directory: &Path, args: &[&str]) -> Command {
    // A test runner in the background makes its children ignore SIGINT, and a shell cannot trap a signal ignored at its
    // start.
    let mut command = Command::new("/usr/bin/env"); // By its path: one test leaves PATH empty.
    command.args(["--default-signal", env!("CARGO_BIN_EXE_anabranch")]);
    command.current_dir(directory).arg("testbed").args(args).stdin(Stdio::null());
    command
}

fn run(directory: &Path, args: &[&str]) -> Output {
    testbed(directory, args).output().unwrap()
}

fn start(directory: &Path, args: &[&str]) -> Child {
    testbed(directory, args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asks until the answer is yes.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file that a command in a testbed writes to say how far it is.
fn wait_for(file: &Path) -> String {
    until(&format!("{} is there", file.display()), || fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n')));
    fs::read_to_string(file).unwrap()
}
