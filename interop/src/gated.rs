//! Programs whose output is not read before a condition holds.

use anabranch_host::Namespace;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs `command` in `namespace` and returns its output, which is read once `ready` holds and not before: a program
/// that prints its download waits there with the data that buffers can hold, however fast or slow the machine is.
///
/// # Errors
/// The standard error of a program that fails; or that `ready` never held within `limit`, which only guards against
/// hanging.
pub fn read_once(
    namespace: &Namespace,
    mut command: Command,
    limit: Duration,
    ready: impl FnMut() -> bool,
) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let what = format!("{command:?}");
    let mut child = namespace.run(move || command.spawn()).map_err(|error| format!("{what}: {error}"))?;
    let held = crate::wait(limit, ready);
    if !held {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let mut printed = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut printed));
    let output = child.wait_with_output().map_err(|error| format!("{what}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match (held, read) {
        (false, _) => Err(format!("{what}: what was waited for did not come about within {limit:?}\n{said}")),
        (true, Err(error)) => Err(format!("{what}: {error}\n{said}")),
        (true, Ok(_)) if !output.status.success() => Err(format!("{what}: {}\n{said}", output.status)),
        (true, Ok(_)) => Ok(printed),
    }
}
