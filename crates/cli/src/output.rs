//! Standard output, files and the progress bar.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
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

/// Writes a file of results.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| Failure::writing(&path.display().to_string(), error))
}

/// A bar over so many runs, on a terminal only.
pub fn progress(runs: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} runs{msg}, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
