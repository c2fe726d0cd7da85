//! The log of a program that runs for long: standard error, one line per event.

use clap::ValueEnum;
use std::io::{IsTerminal, stderr};
use tracing::Level;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{Handle, Layer};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// Formats of the log.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Changes what is logged.
pub struct LogLevel(Handle<LevelFilter, Registry>);

impl LogLevel {
    /// Sets the lowest level that is logged.
    pub fn set(&self, level: Level) {
        // Fails only if another log was there first, which then stays as it is.
        let _ = self.0.reload(LevelFilter::from_level(level));
    }
}

/// Starts it; has no effect if there is one.
pub fn start_log(level: Level, format: LogFormat) -> LogLevel {
    let (filter, handle) = Layer::new(LevelFilter::from_level(level));
    let registry = tracing_subscriber::registry().with(filter);
    // A terminal or pipe that has gone is no reason to end, and there is nowhere else to say so.
    let lines = fmt::layer().with_writer(stderr).log_internal_errors(false);
    // Fails only if the program has a log already, which then serves as well.
    let _ = match format {
        LogFormat::Text => registry.with(lines.with_ansi(stderr().is_terminal()).with_target(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true).with_current_span(false)).try_init(),
    };
    LogLevel(handle)
}
