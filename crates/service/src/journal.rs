//! Journal of the connections of an endpoint: their events as lines of JSON, as qlog, or both.

use anabranch_engine::{ConnectionId, Endpoint, Event};
use anabranch_events::qlog::{self, MetricsLog, Record};
use anabranch_events::{ConnectionEvent, Happened};
use anabranch_units::Instant;
use serde::Serialize;
use std::io::{self, Write};

/// Writes down events of connections: opening, subflows, fallback, the end with its counters. Data that moves is not
/// worth a line; in qlog it may change metrics, and these are told.
pub struct Journal {
    lines: Option<Out>,
    qlog: Option<Out>,
    metrics: MetricsLog,
    /// Connection and its number in the journal, by index.
    numbers: Vec<Option<(ConnectionId, u64)>>,
    next: u64,
    failure: Option<(Form, io::Error)>,
}

type Out = Box<dyn Write + Send>;

/// Form of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object per line.
    Lines,
    /// A JSON text sequence of qlog.
    Qlog,
}

impl Journal {
    /// Writes nothing.
    pub fn none() -> Self {
        Journal { lines: None, qlog: None, metrics: MetricsLog::default(), numbers: Vec::new(), next: 1, failure: None }
    }

    /// Writes in this form here as well; each event is flushed. The beginning of the file is written already.
    pub fn to(mut self, form: Form, out: Out) -> Self {
        *self.out(form) = Some(out);
        self
    }

    /// The number of a connection: 1 for the first one, never used again.
    pub fn number(&mut self, id: ConnectionId) -> u64 {
        if self.numbers.len() <= id.index() {
            self.numbers.resize(id.index() + 1, None);
        }
        match self.numbers[id.index()] {
            Some((known, number)) if known == id => number,
            _ => {
                let number = self.next;
                self.next += 1;
                self.numbers[id.index()] = Some((id, number));
                number
            }
        }
    }

    /// Takes down an event.
    pub fn note(&mut self, now: Instant, endpoint: &Endpoint, id: ConnectionId, event: Event) {
        self.note_with(now, endpoint, id, event, None);
    }

    /// Takes down an event; of an end with the sentence about a slow connection.
    pub fn note_with(
        &mut self,
        now: Instant,
        endpoint: &Endpoint,
        id: ConnectionId,
        event: Event,
        slow: Option<String>,
    ) {
        if self.lines.is_none() && self.qlog.is_none() {
            return;
        }
        let number = self.number(id);
        let line = ConnectionEvent::of(now, number, endpoint, id, event, slow);
        if let Some(line) = &line {
            self.write(Form::Lines, line);
        }
        if self.qlog.is_none() {
            return;
        }
        let group = number.to_string();
        if let Some(line) = &line {
            match line.happened {
                Happened::Connected(_) | Happened::Reopened(_) | Happened::Accepted(_) => self.metrics.open(id, number),
                Happened::Closed(_) | Happened::Reset(_) => self.metrics.close(id),
                _ => {}
            }
            self.write(Form::Qlog, &Record::of_connection(now, Some(&group), line, endpoint, id));
        }
        for record in self.metrics.changes(now, endpoint, id, Some(&group)) {
            self.write(Form::Qlog, &record);
        }
    }

    fn write(&mut self, form: Form, event: &impl Serialize) {
        let Some(out) = self.out(form) else { return };
        let written = match form {
            Form::Lines => {
                serde_json::to_string(event).map_err(io::Error::other).and_then(|text| writeln!(out, "{text}"))
            }
            Form::Qlog => qlog::write(out, event),
        };
        if let Err(error) = written.and_then(|()| out.flush()) {
            // Said once, at the end; a full disk or a reader that has gone is no reason to drop connections.
            self.failure = Some((form, error));
            *self.out(form) = None;
        }
    }

    fn out(&mut self, form: Form) -> &mut Option<Out> {
        match form {
            Form::Lines => &mut self.lines,
            Form::Qlog => &mut self.qlog,
        }
    }

    /// Takes the error that stopped writing, if there was one, with the form that it stopped.
    pub fn failure(&mut self) -> Option<(Form, io::Error)> {
        self.failure.take()
    }
}
