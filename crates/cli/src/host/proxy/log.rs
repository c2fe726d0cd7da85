//! The log of a program that runs for long: standard error, one line per event.

use anabranch_lab::format::{NoContents, PROXY_LOG};
use clap::ValueEnum;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::io::{IsTerminal, Write, stderr};
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

/// One line of the log as JSON, which `tracing` writes. This type stands for its schema.
pub enum LogLine {}

/// Fields of each line: name, type and meaning.
const ALWAYS: [(&str, &str, &str); 4] = [
    ("timestamp", "string", "Date and time (RFC 3339, UTC)."),
    ("level", "string", "Severity: ERROR, WARN, INFO, DEBUG or TRACE."),
    ("target", "string", "Part of the program that wrote it."),
    ("message", "string", "Event in words; `connection` at the end of a connection."),
];

/// Fields of lines of which they say something.
const SOMETIMES: [(&str, &str, &str); 24] = [
    ("client", "string", "Address of the client."),
    ("destination", "string", "Destination of the client."),
    ("outcome", "string", "Outcome of the connection."),
    ("detail", "string", "Details of the outcome in words."),
    ("seconds", "number", "Duration of the connection in seconds."),
    ("from_client", "integer", "Bytes received from the client."),
    ("to_client", "integer", "Bytes sent to the client."),
    ("subflows", "string", "Subflows, each with its addresses, bytes and RTT."),
    ("fallback", "string", "Reason for which the connection fell back to plain TCP."),
    ("remarks", "string", "Sentences on paths that were not used."),
    ("why", "string", "Sentence about a connection that was slower than its best path alone."),
    ("retransmitted", "integer", "Segments retransmitted."),
    ("reinjected", "integer", "Bytes sent again on another subflow."),
    ("overruled", "integer", "Decisions of the scheduler that the engine did not carry out."),
    ("suppressed", "integer", "Lines of this kind that were held back since the last."),
    ("limit", "string", "Limit that was reached."),
    ("held", "integer", "Bytes that the connection held."),
    ("error", "string", "Error in words."),
    ("signal", "integer", "Number of the signal."),
    ("connections", "integer", "Number of open connections."),
    ("device", "string", "Name of the TUN device."),
    ("metrics", "string", "Address of the metrics."),
    ("outer", "string", "Address that is borrowed."),
    ("inner", "string", "Address that stands for it on the device."),
];

impl JsonSchema for LogLine {
    fn schema_name() -> Cow<'static, str> {
        "LogLine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let field =
            |(name, kind, about): (&str, &str, &str)| (name.to_owned(), json!({ "type": kind, "description": about }));
        let properties: Map<String, Value> = ALWAYS.into_iter().chain(SOMETIMES).map(field).collect();
        json_schema!({ "type": "object", "properties": properties, "required": ALWAYS.map(|(name, ..)| name) })
    }
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
    if format == LogFormat::Json {
        // Fails if standard error is closed, as all that follows.
        let _ = writeln!(stderr(), "{}", json!(PROXY_LOG.document(NoContents {})));
    }
    // A terminal or pipe that has gone is no reason to end, and there is nowhere else to say so.
    let lines = fmt::layer().with_writer(stderr).log_internal_errors(false);
    // Fails only if the program has a log already, which then serves as well.
    let _ = match format {
        LogFormat::Text => registry.with(lines.with_ansi(stderr().is_terminal()).with_target(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true).with_current_span(false)).try_init(),
    };
    LogLevel(handle)
}
