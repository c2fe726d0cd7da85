//! Instructions per delivered data packet, which noise does not touch: counted by callgrind, as the difference between
//! a longer run and a shorter one, so that beginning and end cancel.

use std::process::Command;

/// Counted runs by name, with seconds of virtual time of the shorter and of the longer run.
pub const COUNTED: [(&str, u64, u64); 5] =
    [("r1", 3, 8), ("r1-fq-codel", 3, 8), ("r1-16-subflows", 1, 2), ("gigabit", 2, 3), ("r1-100", 1, 2)];

/// Instructions per data packet.
///
/// # Errors
/// If valgrind is not there, or does not say what it says today.
pub fn per_packet(run: &str, shorter: u64, longer: u64) -> Result<f64, String> {
    let (few, many) = (count(run, shorter)?, count(run, longer)?);
    Ok((many.0 - few.0) as f64 / (many.1 - few.1) as f64)
}

/// Instructions and data packets of one run.
fn count(run: &str, seconds: u64) -> Result<(u64, u64), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(this);
    command.args(["--play", run, "--seconds", &seconds.to_string()]);
    let output = command.output().map_err(|error| format!("valgrind: {error}; install it to count instructions"))?;
    let (said, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let instructions = said.split("Collected : ").nth(1).and_then(first_number);
    let packets = printed.split("digest ").nth(1).and_then(|rest| rest.split(", ").nth(1)).and_then(first_number);
    instructions.zip(packets).ok_or_else(|| format!("valgrind said nothing of instructions: {said}"))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}
