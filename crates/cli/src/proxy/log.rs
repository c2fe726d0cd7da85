//! The log of a program that runs for long: standard error, one line per event.

use clap::ValueEnum;
use std::io::{IsTerminal, stderr};
use tracing::Level;
use tracing_subscriber::filter::LevelFilter;

/// How the log is written.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts it; has no effect if there is one.
pub fn start_log(level: Level, format: LogFormat) {
    let log = tracing_subscriber::fmt().with_writer(stderr).with_max_level(LevelFilter::from_level(level));
    // Fails only if the program has a log already, which then serves as well.
    let _ = match format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).try_init(),
    };
}
