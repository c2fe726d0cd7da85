//! Files of events that `serve` and `fetch` write. `proxy` has a log instead.

use crate::failure::Failure;
use anabranch_events::qlog::{self, Head, VantagePoint};
use anabranch_lab::format::{CONNECTION_EVENTS, NoContents};
use anabranch_lab::version_with_build;
use anabranch_service::{Form, Journal};
use clap::Args as ClapArgs;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Events of connections and subflows.
#[derive(ClapArgs, Clone, Debug)]
pub struct EventFiles {
    /// Write the events of connections and subflows to FILE, one JSON object per line; `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub events: Option<PathBuf>,
    /// Write these events and the metrics of congestion control to FILE as qlog, a JSON text sequence; `-` is standard
    /// output.
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub qlog: Option<PathBuf>,
}

impl EventFiles {
    /// Returns the options with the files that they name, without standard output.
    pub fn files(&self) -> [(&'static str, Option<&PathBuf>); 2] {
        let file = |path: &&PathBuf| path.as_path() != Path::new(STDOUT);
        [("--events", self.events.as_ref().filter(file)), ("--qlog", self.qlog.as_ref().filter(file))]
    }

    /// Returns the number of options that name standard output.
    pub fn on_stdout(&self) -> usize {
        [&self.events, &self.qlog].into_iter().flatten().filter(|path| path.as_path() == Path::new(STDOUT)).count()
    }

    /// Opens the destinations, and begins each with its head.
    pub fn journal(&self, vantage_point: VantagePoint) -> Result<Journal, Failure> {
        let mut journal = Journal::none();
        for form in [Form::Lines, Form::Qlog] {
            let Some(path) = self.file(form) else { continue };
            let mut out: Box<dyn Write + Send> = match path == Path::new(STDOUT) {
                true => Box::new(io::stdout()),
                false => Box::new(File::create(path).map_err(|error| Failure::writing_to(path, &error))?),
            };
            let written = match form {
                Form::Lines => writeln!(out, "{}", json!(CONNECTION_EVENTS.document(NoContents {}))),
                Form::Qlog => {
                    let title = format!("connections of anabranch {}", version_with_build());
                    qlog::write(&mut out, &Head::new(title, vantage_point))
                }
            };
            written.and_then(|()| out.flush()).map_err(|error| self.lost((form, error)))?;
            journal = journal.to(form, out);
        }
        Ok(journal)
    }

    /// A file that could not be written to the end.
    pub fn lost(&self, (form, error): (Form, io::Error)) -> Failure {
        Failure::writing_to(self.file(form).unwrap_or(Path::new("the events")), &error)
    }

    fn file(&self, form: Form) -> Option<&Path> {
        match form {
            Form::Lines => self.events.as_deref(),
            Form::Qlog => self.qlog.as_deref(),
        }
    }
}

/// Name that stands for standard output.
const STDOUT: &str = "-";
