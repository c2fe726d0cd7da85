//! Events of connections, one JSON object per line.

use crate::report::ConnectionReport;
use anabranch_engine::{ConnectionId, Endpoint, Event};
use anabranch_units::Instant;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes down what an endpoint tells of its connections: opening, subflows, fallback, the end with its counters. Data
/// that moves is not worth a line.
pub struct Journal {
    out: Option<Box<dyn Write + Send>>,
    /// Connection and its number in the journal, by index.
    numbers: Vec<Option<(ConnectionId, u64)>>,
    next: u64,
    failure: Option<io::Error>,
}

impl Journal {
    /// Writes nothing.
    pub fn none() -> Self {
        Journal { out: None, numbers: Vec::new(), next: 1, failure: None }
    }

    /// Writes here; each line is flushed.
    pub fn to(out: Box<dyn Write + Send>) -> Self {
        Journal { out: Some(out), ..Journal::none() }
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
        if self.out.is_none() {
            return;
        }
        let address = |subflow| {
            let found = endpoint.subflow_stats(id).into_iter().find(|stats| stats.id == subflow);
            found.map(|stats| json!({ "local": stats.local, "remote": stats.remote, "backup": stats.backup }))
        };
        let subflows =
            || endpoint.subflow_stats(id).first().map(|stats| json!({ "local": stats.local, "remote": stats.remote }));
        let more = match event {
            Event::Readable | Event::Writable => return,
            Event::Connected { multipath } | Event::Reopened { multipath } | Event::Accepted { multipath } => {
                with(subflows(), json!({ "multipath": multipath }))
            }
            Event::Closed | Event::Reset => json!({ "connection_stats": ConnectionReport::of(endpoint, id) }),
            Event::Fallback(reason) => json!({ "reason": reason.name() }),
            Event::SubflowEstablished(subflow) | Event::SubflowClosed(subflow) => {
                with(address(subflow), json!({ "subflow": subflow.0 }))
            }
            Event::SubflowReset { subflow, reason, transient } => {
                json!({ "subflow": subflow.0, "reason": reason.name(), "transient": transient })
            }
            Event::SchedulerOverruled(why) => json!({ "why": why.name() }),
            _ => json!({}),
        };
        let number = self.number(id);
        self.line(now, event.name(), with(Some(json!({ "connection": number })), more));
    }

    /// Takes down something else.
    pub fn line(&mut self, now: Instant, event: &str, more: Value) {
        let Some(out) = &mut self.out else { return };
        let line = with(Some(json!({ "time_s": now.as_secs_f64(), "event": event })), more);
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            // Said once, at the end; a full disk or a reader that has gone is no reason to drop connections.
            self.failure = Some(error);
            self.out = None;
        }
    }

    /// Takes the error that stopped writing, if there was one.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

/// The fields of both objects.
fn with(first: Option<Value>, more: Value) -> Value {
    let mut all = first.unwrap_or_else(|| json!({}));
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}
