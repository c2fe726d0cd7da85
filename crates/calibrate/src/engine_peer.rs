//! One end of a transfer as an application of our engine.

use crate::end::{End, Log, Outgoing, Report, Sent};
use crate::transfer::TransferError;
use anabranch_engine::{ConnectionId, Event, Read};
use anabranch_host::{Application, Context};
use anabranch_units::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::Sender;
use std::time;

/// The application.
pub(crate) struct Peer {
    end: Box<dyn End>,
    place: Place,
    connections: Vec<(ConnectionId, Outgoing)>,
    /// Time at which to call the end, on the engine's clock.
    deadline: Option<Instant>,
    log: Log,
    /// Channel of the report, until it is sent.
    reports: Option<Sender<Report>>,
}

/// Addresses of an end.
pub(crate) enum Place {
    /// Opens connections from one address to the other.
    Client(IpAddr, SocketAddr),
    /// Listens at this port.
    Server(u16),
}

impl Peer {
    pub(crate) fn new(end: Box<dyn End>, place: Place, log: &Log, reports: Sender<Report>) -> Self {
        Peer { end, place, connections: Vec::new(), deadline: None, log: log.clone(), reports: Some(reports) }
    }

    fn report(&mut self, report: Report) {
        if let Some(reports) = self.reports.take() {
            // Fails once the other end's report has decided: the receiver is gone.
            let _ = reports.send(report);
        }
    }

    /// Reads what has come on a connection.
    fn read(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Result<(), TransferError> {
        let Some(connection) = self.connections.iter().position(|(other, _)| *other == id) else { return Ok(()) };
        while let Ok(Read::Data(piece)) = cx.endpoint.read(id) {
            self.end.received(time::Instant::now(), connection, &piece)?;
        }
        Ok(())
    }

    /// Opens the connections that the end wants, and writes their data.
    fn go_on(&mut self, cx: &mut Context<'_>) {
        self.end.timeout(time::Instant::now());
        if let Place::Client(local, remote) = self.place {
            while self.connections.len() < self.end.wanted() {
                let id = match cx.endpoint.open(cx.now, local, remote) {
                    Ok(id) => id,
                    Err(error) => {
                        return self.report(Err(TransferError::Broken { read: 0, reason: error.to_string() }));
                    }
                };
                self.connections.push((id, Outgoing::default()));
                self.end.opened(time::Instant::now());
            }
        }
        for (connection, (id, outgoing)) in self.connections.iter_mut().enumerate() {
            let write = |piece: &_| Ok(cx.endpoint.write(*id, piece).unwrap_or(0));
            if let Ok(Sent::Shutdown) = outgoing.write(&mut *self.end, connection, write) {
                cx.endpoint.shutdown(*id);
            }
        }
        let now = time::Instant::now();
        self.deadline = self.end.deadline().map(|at| cx.now + on_our_clock(at.saturating_duration_since(now)));
        if self.end.is_done() == Some(true) {
            self.report(Ok(()));
        }
    }
}

/// The engine's duration; the longest one for what it cannot hold.
fn on_our_clock(duration: time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Application for Peer {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        if let Place::Server(port) = self.place {
            cx.endpoint.listen(port);
        }
        self.end.start(time::Instant::now());
        self.go_on(cx);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => {
                self.connections.push((id, Outgoing::default()));
                self.end.opened(time::Instant::now());
            }
            Event::Reset => self.report(Err(self.log.broken("reset"))),
            Event::Closed if self.end.is_done() == Some(false) => {
                self.report(Err(self.log.broken("the peer closed too early")));
            }
            _ => {}
        }
        if let Err(error) = self.read(cx, id) {
            self.report(Err(error));
        }
        self.go_on(cx);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.go_on(cx);
    }
}
