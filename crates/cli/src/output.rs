//! Standard output, files and the progress bar.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::writing("to standard output", error)),
        Ok(()) => Ok(()),
    }
}

/// How many characters fit in a line: those of the terminal within reason, or a fixed number into a pipe or file.
pub fn width() -> usize {
    match terminal_size::terminal_size() {
        Some((terminal_size::Width(columns), _)) if io::stdout().is_terminal() => usize::from(columns).clamp(60, 120),
        _ => 110,
    }
}

/// Writes a file of results: all of it, or nothing that others could take for it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = match fs::metadata(path) {
        // A device or a pipe has no other file to take its place.
        Ok(there) if !there.is_file() => fs::write(path, bytes),
        // A link stays one.
        Ok(_) => fs::canonicalize(path).and_then(|file| replace(&file, bytes)),
        Err(_) => replace(path, bytes),
    };
    written.map_err(|error| Failure::writing(&path.display().to_string(), error))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = match fs::metadata(path) {
        Ok(there) => there.permissions(),
        // Less what the process's umask takes away.
        Err(_) => fs::Permissions::from_mode(0o666),
    };
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The command line again, as a shell takes it.
pub fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| anabranch_lab::in_shell(&word));
    ["anabranch".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// A bar over so many runs, on a terminal only.
pub fn progress(runs: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} runs{msg}, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
