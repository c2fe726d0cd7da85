//! Answerer of the page inside: a process for each answer, which ends when the page has lost interest in it.
//!
//! A process can be stopped in the middle of a run, and takes nobody else with it if the simulator has a bug.

use anabranch_service::Answerer;
use serde_json::json;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Longest words of a process that failed \[bytes\].
const LONGEST_WORDS: u64 = 4 << 10;

/// Returns the answerer.
pub fn answerer() -> Answerer {
    Box::new(|request, visitor| match begin() {
        Ok(child) => lead(child, request, visitor),
        Err(error) => fail(visitor, &format!("no process could be started: {error}"), None),
    })
}

fn begin() -> io::Result<Child> {
    let mut command = Command::new(program()?);
    command.args(["lab", "--answer"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// Returns the file of this program. The link in /proc leads to it even if it has been replaced since.
fn program() -> io::Result<PathBuf> {
    let link = Path::new("/proc/self/exe");
    if link.exists() { Ok(link.to_owned()) } else { std::env::current_exe() }
}

/// Hands the request over, and what the process says to the visitor.
fn lead(mut child: Child, request: &[u8], visitor: &TcpStream) -> io::Result<()> {
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut input), Some(mut output), Some(errors)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let child = Mutex::new(child);
    let kill = || child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    thread::scope(|scope| {
        // A process that ends early reads no more, and says why on its standard error.
        scope.spawn(move || input.write_all(request));
        scope.spawn(|| {
            // The page sends nothing behind its request: whatever comes is the end, or as good as that.
            let mut visitor = visitor;
            let _ = visitor.read(&mut [0; 1]);
            let _ = kill();
        });
        let told = io::copy(&mut output, &mut { visitor });
        let mut words = String::new();
        let _ = errors.take(LONGEST_WORDS).read_to_string(&mut words);
        if told.is_err() {
            let _ = kill();
        }
        let ended = child.lock().unwrap_or_else(PoisonError::into_inner).wait();
        let failed = match (&told, ended) {
            (Ok(_), Ok(ended)) if !ended.success() => {
                let help = "please report it, with the scenario and the seed";
                fail(visitor, words.trim().trim_start_matches("error: "), Some(help))
            }
            _ => Ok(()),
        };
        // Wakes the thread that waits for the visitor's end.
        let _ = visitor.shutdown(Shutdown::Read);
        told.and(failed)
    })
}

/// Says why there is no answer.
fn fail(mut visitor: &TcpStream, problem: &str, help: Option<&str>) -> io::Result<()> {
    let error = match help {
        Some(help) => json!({ "error": { "problem": problem, "help": help } }),
        None => json!({ "error": { "problem": problem } }),
    };
    writeln!(visitor, "{}", json!({ "answer": error.to_string() }))
}
