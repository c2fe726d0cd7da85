//! One client with what was opened for it.

use super::dial::Dial;
use super::front::Front;
use super::limits::Limit;
use super::relay::Relay;
use super::report::{Outcome, Summary};
use super::settings::Timeouts;
use crate::course::Course;
use crate::patience::{Pace, Patience};
use anabranch_engine::{ConnectionId, ConnectionStats, Load, SubflowStats};
use anabranch_units::{Duration, Instant};
use mio::net::TcpStream;
use std::net::{IpAddr, SocketAddr};

/// A client, from its first byte to its line in the log.
pub(super) struct Session {
    /// Tells it from others that had its place before.
    pub(super) serial: u64,
    pub(super) client: SocketAddr,
    /// `Ok` if it counts in the limits; otherwise the limit that refuses it, to be reported to the client.
    pub(super) admitted: Result<(), Limit>,
    /// Destination, for the log.
    pub(super) target: String,
    pub(super) stage: Stage,
    opened: Instant,
    /// Time at which the stage began.
    since: Instant,
    /// Time at which something last moved.
    pub(super) active: Instant,
    /// Patience with both ends of the relay.
    pub(super) patience: Patience,
    pub(super) socket: Option<TcpStream>,
    pub(super) connection: Option<ConnectionId>,
    /// Statistics of the engine, once the connection is gone.
    pub(super) counted: Option<(ConnectionStats, Vec<SubflowStats>)>,
    pub(super) relay: Relay,
    /// The engine's connection as it goes, and once that is gone the sentence about it.
    pub(super) course: Course,
    pub(super) why: Option<String>,
    /// Bytes that it counts for in the limits.
    pub(super) charged: u64,
    /// True if it is in the queue for memory.
    pub(super) waits: bool,
    /// Outcome once the remaining work is done.
    pub(super) ending: Option<Outcome>,
    /// More about the outcome.
    pub(super) detail: String,
}

/// Stage of a session.
pub(super) enum Stage {
    /// The client, to say where it wants to go.
    Greeting(Front),
    /// The address of a name.
    Resolving(Front),
    /// The engine's connection to the destination.
    Opening(Front, Dial<IpAddr>),
    /// The socket's connection to the service.
    Connecting(Dial<()>),
    /// The two streams.
    Relaying,
    /// The client, to take the last words and to close.
    Lingering,
}

/// Time in which a refused client has to close.
const LINGER: Duration = Duration::from_secs(5);

impl Session {
    pub(super) fn new(serial: u64, client: SocketAddr, now: Instant, stage: Stage) -> Self {
        Session {
            serial,
            client,
            admitted: Ok(()),
            target: String::new(),
            stage,
            opened: now,
            since: now,
            active: now,
            patience: Patience::new(now, &Timeouts::default().idle),
            socket: None,
            connection: None,
            counted: None,
            relay: Relay::default(),
            course: Course::default(),
            why: None,
            charged: 0,
            waits: false,
            ending: None,
            detail: String::new(),
        }
    }

    /// Goes on to another stage.
    pub(super) fn enter(&mut self, now: Instant, stage: Stage) {
        self.stage = stage;
        self.since = now;
        self.active = now;
    }

    /// True if the client was answered and has asked for nothing more.
    pub(super) fn is_between(&self) -> bool {
        matches!(&self.stage, Stage::Greeting(front) if front.is_between())
    }

    /// Forgets what belonged to a request that is done, before the next of the same client.
    pub(super) fn forget_request(&mut self, now: Instant) {
        self.target.clear();
        self.detail.clear();
        self.opened = now;
        self.counted = None;
        self.course = Course::default();
        self.why = None;
    }

    /// The stage has lasted longer than it may.
    pub(super) fn is_overdue(&self, now: Instant, timeouts: &Timeouts) -> bool {
        let patience = match self.stage {
            Stage::Greeting(_) => timeouts.handshake,
            Stage::Resolving(_) | Stage::Opening(..) | Stage::Connecting(_) => timeouts.connect,
            Stage::Relaying => return self.patience.until() <= now,
            Stage::Lingering => LINGER,
        };
        now.since(self.since) >= patience
    }

    /// Takes note that `moved` bytes were relayed, and of the progress of the engine's peer on what it was sent.
    pub(super) fn note(&mut self, now: Instant, moved: u64, load: Option<Load>, pace: &Pace) {
        let waits = self.relay.has_outward() || load.is_some_and(|load| !load.unacknowledged.is_zero());
        if moved > 0 {
            self.active = now;
        }
        self.patience.note(now, moved, load.as_ref(), waits, pace);
    }

    /// The attempt under way has lasted longer than it may.
    pub(super) fn is_attempt_overdue(&self, now: Instant) -> bool {
        match &self.stage {
            Stage::Opening(_, dial) => now >= dial.attempt_until,
            Stage::Connecting(dial) => now >= dial.attempt_until,
            _ => false,
        }
    }

    /// Writes its line in the log. `engine_is_client` tells which way is which.
    pub(super) fn log(&self, now: Instant, outcome: Outcome, engine_is_client: bool) {
        if !tracing::enabled!(target: "anabranch::proxy", tracing::Level::INFO) {
            return;
        }
        let (from_engine, from_socket) = (self.relay.from_engine, self.relay.from_socket);
        let (from_client, to_client) =
            if engine_is_client { (from_engine, from_socket) } else { (from_socket, from_engine) };
        Summary {
            client: self.client,
            target: &self.target,
            outcome,
            detail: &self.detail,
            lasted: now.since(self.opened),
            from_client,
            to_client,
            engine: self.counted.as_ref(),
            why: self.why.as_deref(),
        }
        .log();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::LEAST_RATE;
    use anabranch_units::Rate;
    use bytes::Bytes;

    /// Second at which a relay is given up whose end takes so many bytes a second while more waits for it; `None` if an
    /// hour does not end it.
    fn given_up(bytes: u64, least: Rate) -> Option<u64> {
        let idle = Pace { stall: Duration::from_secs(20), least };
        let timeouts = Timeouts { idle, ..Timeouts::default() };
        let client = SocketAddr::from(([192, 0, 2, 1], 1000));
        let mut session = Session::new(1, client, Instant::ZERO, Stage::Relaying);
        session.patience = Patience::new(Instant::ZERO, &idle);
        session.relay.push_outward(Bytes::from_static(b"it waits for the socket"));
        (1..3600).find(|second| {
            let now = Instant::ZERO + Duration::from_secs(*second);
            session.note(now, bytes, None, &idle);
            session.is_overdue(now, &timeouts)
        })
    }

    /// At half the least rate, half of each second counts: 20 s are gone after 40.
    #[test]
    fn an_end_that_only_sips_is_given_up() {
        assert_eq!(given_up(0, LEAST_RATE), Some(20));
        assert_eq!(given_up(1000, LEAST_RATE), Some(40));
        assert_eq!(given_up(3000, LEAST_RATE), None);
        assert_eq!(given_up(1000, Rate::from_bps(0)), None);
    }
}
