//! The file of events that `serve` and `fetch` write. `proxy` has a log instead.

use crate::failure::Failure;
use anabranch_lab::format::{CONNECTION_EVENTS, NoContents};
use anabranch_service::Journal;
use clap::Args as ClapArgs;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Events of connections and subflows.
#[derive(ClapArgs, Clone, Debug)]
pub struct EventFile {
    /// Write the events of connections and subflows to FILE, one JSON object per line; `-` is standard output.
    #[arg(id = "events", long = "events", value_name = "FILE", help_heading = "Engine")]
    pub file: Option<PathBuf>,
}

impl EventFile {
    /// Opens the destination of `--events`, and begins it with the format.
    pub fn journal(&self) -> Result<Journal, Failure> {
        let Some(path) = &self.file else { return Ok(Journal::none()) };
        let mut out: Box<dyn Write + Send> = match path == Path::new("-") {
            true => Box::new(io::stdout()),
            false => Box::new(File::create(path).map_err(|error| Failure::writing_to(path, &error))?),
        };
        let line = json!(CONNECTION_EVENTS.document(NoContents {}));
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.map_err(|error| self.lost(&error))?;
        Ok(Journal::to(out))
    }

    /// `--events` that could not be written to the end.
    pub fn lost(&self, error: &io::Error) -> Failure {
        Failure::writing_to(self.file.as_deref().unwrap_or(Path::new("the events")), error)
    }
}
