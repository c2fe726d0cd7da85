//! Events of connections, one JSON object per line.

use crate::report::ConnectionReport;
use anabranch_engine::{ConnectionId, Endpoint, Event, SubflowStats};
use anabranch_units::Instant;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::SocketAddr;

/// Writes down what an endpoint tells of its connections: opening, subflows, fallback, the end with its counters. Data
/// that moves is not worth a line.
pub struct Journal {
    out: Option<Box<dyn Write + Send>>,
    /// Connection and its number in the journal, by index.
    numbers: Vec<Option<(ConnectionId, u64)>>,
    next: u64,
    failure: Option<io::Error>,
}

/// One line: an event of a connection. A line has those fields that say something of its event.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ConnectionEvent {
    /// Time since the start, in seconds.
    pub time_s: f64,
    /// Name of the event.
    #[schemars(schema_with = "names")]
    pub event: &'static str,
    /// Number of the connection in the file, from 1.
    pub connection: u64,
    /// MPTCP was negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multipath: Option<bool>,
    /// Number of the subflow in its connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u16>,
    /// Address and port of this end of the subflow, or of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// Address and port of the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    /// The subflow is a backup (RFC 8684 §3.3.8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Reason of a fallback, or of the peer's reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// The peer says that trying again later may work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transient: Option<bool>,
    /// Decision of the scheduler that the engine does not carry out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// Phase of the congestion control on the subflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// Sentence about a connection that was slower than its best path alone, at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<String>,
    /// Statistics of the connection at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_stats: Option<ConnectionReport>,
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
        if self.out.is_none() {
            return;
        }
        let time_s = now.as_secs_f64();
        let mut line =
            ConnectionEvent { time_s, event: event.name(), connection: self.number(id), slow, ..Default::default() };
        match event {
            Event::Readable | Event::Writable => return,
            Event::Connected { multipath } | Event::Reopened { multipath } | Event::Accepted { multipath } => {
                line.multipath = Some(multipath);
                line.addresses(endpoint.subflow_stats(id).first());
            }
            Event::Closed | Event::Reset => line.connection_stats = ConnectionReport::of(endpoint, id),
            Event::Fallback(reason) => line.reason = Some(reason.name().into()),
            Event::SubflowEstablished(subflow) | Event::SubflowClosed(subflow) => {
                line.subflow = Some(subflow.0);
                let all = endpoint.subflow_stats(id);
                let stats = all.iter().find(|stats| stats.id == subflow);
                line.addresses(stats);
                line.backup = stats.map(|stats| stats.backup);
            }
            Event::SubflowReset { subflow, reason, transient } => {
                (line.subflow, line.reason, line.transient) = (Some(subflow.0), Some(reason.name()), Some(transient));
            }
            Event::SchedulerOverruled(why) => line.why = Some(why.name()),
            Event::CongestionPhase { subflow, phase } => {
                (line.subflow, line.phase) = (Some(subflow.0), Some(phase));
            }
            _ => {}
        }
        self.write(&line);
    }

    fn write(&mut self, line: &ConnectionEvent) {
        let Some(out) = &mut self.out else { return };
        let written = serde_json::to_string(line).map_err(io::Error::other);
        if let Err(error) = written.and_then(|text| writeln!(out, "{text}")).and_then(|()| out.flush()) {
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

impl ConnectionEvent {
    fn addresses(&mut self, subflow: Option<&SubflowStats>) {
        (self.local, self.remote) = (subflow.map(|stats| stats.local), subflow.map(|stats| stats.remote));
    }
}

fn names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Event::NAMES })
}
