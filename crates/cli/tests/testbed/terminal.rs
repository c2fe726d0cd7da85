//! In a terminal: Ctrl-C reaches the command, once.

use super::{place, stderr};
use std::fs;
use std::process::Command;

/// Runs its arguments in a terminal of their own, types Ctrl-C once they have printed `ready`, and prints their output
/// and exit status.
const TERMINAL: &str = r#"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
typed = False
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data: break
    said += data
    if not typed and b"ready" in said:
        typed = True
        os.write(terminal, b"\x03")
print(said.decode(errors="replace"))
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Counts how often it is interrupted.
const COUNT: &str = r#"
import signal, time
count = 0
def interrupted(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, interrupted)
print("ready", flush=True)
until = time.monotonic() + 60
while count == 0 and time.monotonic() < until: time.sleep(0.01)
time.sleep(0.5)
print("interrupted", count, flush=True)
raise SystemExit(9)
"#;

#[test]
fn ctrl_c_reaches_the_command_once() {
    let Some(here) = place("ctrl-c") else { return };
    fs::write(here.join("terminal.py"), TERMINAL).unwrap();
    fs::write(here.join("count.py"), COUNT).unwrap();
    let binary = env!("CARGO_BIN_EXE_anabranch");
    let args = ["terminal.py", binary, "testbed", "two.toml", "--", "python3", "count.py"];
    let output = Command::new("python3").current_dir(&here).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("interrupted 1\r\n"), "{text}{}", stderr(&output));
    assert!(text.contains("VALID"), "the table is still printed: {text}");
    assert!(text.ends_with("status 9\n"), "{text}");
}
