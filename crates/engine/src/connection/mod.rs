//! One MPTCP connection: the data level, and the subflows that carry it.
//!
//! State lies with its owners: `life` (negotiating, MPTCP, plain TCP, closing, gone), `keys`, `negotiated` (terms of
//! the handshake), `subflows`, `sender`, `receiver`, `acks` (which path they take), `paths`, `timers`. A method belongs
//! to the part that it changes; others that it reads are arguments, and what it finds is an answer. The other files are
//! topics: what a part has to say on one stands there, beside what happens to several parts, in an `impl Connection`:
//!
//! - the beginning: `handshake`, `race` (for the first subflow), `resume` (from a cookie), `confirmation` (that the
//!   peer speaks MPTCP), `reopening` (on another path if the first dies before);
//! - a segment arrives: `input`, `expected` (the short way of the common kinds), `acceptance`, `acknowledgment`,
//!   `options`, `signal` (DSS), `payload`, `autotune` (of the receive buffer);
//! - what leaves: `output`, `decision` (of the scheduler), `watchdog` (over it), `copies` (for the reinjection policy),
//!   `throttling` (pacing and small queues), `emit`, `burst` (one mapping over several segments), `detour` (ACKs on
//!   another subflow's path), `probing` (for that), `sizes`;
//! - the subflows there should be: `addresses`, `paths`, `history`, `lost_subflows`;
//! - the end: `fallback` (to plain TCP), `closing`; `load`, `info` and `check` look at the whole.

mod acceptance;
mod acknowledgment;
mod acks;
mod addresses;
mod autotune;
mod burst;
mod check;
mod closing;
mod confirmation;
mod copies;
mod decision;
mod detour;
mod doubt;
mod emit;
mod expected;
mod fallback;
mod handshake;
mod history;
mod info;
mod input;
mod keys;
mod life;
mod load;
mod lost_subflows;
mod negotiated;
mod options;
mod output;
mod paths;
mod payload;
mod probing;
mod race;
mod receiver;
mod reopening;
mod resume;
mod send_space;
mod sender;
mod signal;
mod sizes;
mod slots;
mod subflows;
mod throttling;
mod timers;
mod watchdog;

use crate::pieces::Pieces;
use crate::shared::Shared;
use crate::subflow::State;
use crate::{ConnectionId, ConnectionStats, Ended, Event, SubflowStats, Switch, WriteError};
use acks::AckRouting;
use anabranch_policy::Event as PolicyEvent;
use anabranch_units::{Instant, Key, Seed, SubflowId};
use anabranch_wire::Payload;
use bytes::Bytes;
use keys::Keys;
use life::{Life, Mode};
use load::Progress;
use negotiated::Negotiated;
use paths::Paths;
use receiver::Receiver;
use sender::Sender;
use slots::Slot;
use subflows::Subflows;
use timers::Timers;
use watchdog::Watchdog;

pub(crate) use detour::is_pure_ack;
pub(crate) use emit::reset_for;
pub(crate) use handshake::Accept;
pub(crate) use race::Opening;
pub(crate) use resume::{answer_with_cookie, answer_without_join};

/// Side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Sender of the first SYN.
    Client,
    /// Listener.
    Server,
}

pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) role: Role,
    life: Life,
    pub(crate) keys: Keys,
    negotiated: Negotiated,
    pub(crate) subflows: Subflows,
    sender: Sender,
    receiver: Receiver,
    acks: AckRouting,
    paths: Paths,
    timers: Timers,
    /// Progress of the peer.
    progress: Progress,
    pub(crate) stats: ConnectionStats,
    /// The application has forgotten the connection: its statistics are dropped when it ends.
    pub(crate) forgotten: bool,
    reported_open: bool,
    keepalive: crate::Keepalive,
}

impl Connection {
    fn new(now: Instant, id: ConnectionId, role: Role, mode: Mode, local_key: Key, shared: &Shared) -> Self {
        let config = &shared.config;
        let idsn = shared.chosen.idsn(local_key);
        Connection {
            id,
            role,
            life: Life::new(mode),
            negotiated: Negotiated::new(config, idsn),
            keys: Keys::new(local_key, idsn),
            subflows: Subflows::default(),
            sender: Sender::new(now, local_key, config),
            receiver: Receiver::new(
                config.receive_buffer,
                config.initial_receive_buffer,
                config.profile.mss,
                config.profile.receive_tuning,
            ),
            acks: AckRouting::new((config.policies.ack_path)()),
            paths: Paths::default(),
            timers: Timers::default(),
            progress: Progress::new(now),
            stats: ConnectionStats { opened_at: now, ..ConnectionStats::default() },
            forgotten: false,
            reported_open: false,
            keepalive: config.keepalive,
        }
    }

    /// Takes as much of `data` as the send buffer admits; how many bytes.
    pub(crate) fn write(&mut self, data: &Bytes, shared: &Shared) -> usize {
        let space = self.write_space(shared);
        let taken = space.min(data.len()).min(Payload::LONGEST);
        // A driver that cuts its data to the space offers nothing to a full buffer, and waits all the same.
        if taken < data.len() || space == 0 {
            self.sender.outgoing.writer_waits = true;
        }
        if taken > 0 {
            if self.sender.outgoing.unsent.is_empty() {
                self.sender.scheduler.observe(self.sender.waiting.since(), &PolicyEvent::DataWritten);
            }
            self.sender.outgoing.append(data, taken);
            self.stats.written += taken as u64;
        }
        taken
    }

    /// Tells whether data may be written.
    pub(crate) fn check_write(&self) -> Result<(), WriteError> {
        match (self.life.is_gone() || self.life.is_fast_closing(), self.sender.outgoing.fin) {
            (true, _) => Err(WriteError::Gone),
            (false, Some(_)) => Err(WriteError::Finished),
            (false, None) => Ok(()),
        }
    }

    /// True if the peer has closed its direction and all of it was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.receiver.finished() && self.receiver.unread() == 0
    }

    /// True if the peer has closed its direction and all of it has come.
    pub(crate) fn has_received_all(&self) -> bool {
        self.receiver.finished()
    }

    /// Bytes in order that the application has not read.
    pub(crate) fn unread(&self) -> u64 {
        self.receiver.unread()
    }

    /// Hands over what the application has not read of a connection that is gone, with its length.
    pub(crate) fn take_unread(&mut self) -> (Pieces, u64) {
        self.receiver.take_unread()
    }

    /// The next piece of the stream for the application.
    pub(crate) fn read(&mut self, shared: &mut Shared) -> Option<Payload> {
        let chunk = self.receiver.read()?;
        self.stats.delivered += chunk.len() as u64;
        self.after_read(shared);
        Some(chunk)
    }

    /// Consequences of the application having read: a wider window to tell, the end of the stream to report.
    fn after_read(&mut self, shared: &mut Shared) {
        let mss = u64::from(shared.config.profile.mss);
        let heard = |slot: &Slot| self.subflows[*slot].rx.ack.last_data;
        let latest = || self.subflows.slots().filter(|slot| self.subflows[*slot].is_open()).max_by_key(heard);
        if self.receiver.window_worth_telling(mss, u64::MAX)
            && let Some(slot) = latest()
        {
            let most = u64::from(u16::MAX) << self.subflows[slot].rx.rcv_scale;
            if self.receiver.window_worth_telling(mss, most) {
                self.subflows[slot].rx.ack.now = true;
            }
        }
        if self.negotiated.checksum && self.receiver.unread() == 0 {
            let mut left = self.subflows.there();
            while let Some(slot) = self.subflows.take_first(&mut left) {
                self.admit_rest(slot);
            }
        }
        // After the event of its end, no other follows.
        if !self.life.is_gone() && self.receiver.take_end_of_stream() {
            shared.event(self.id, Event::PeerFinished);
        }
        if matches!(self.life, Life::Unread(_)) && self.receiver.unread() == 0 {
            self.finish(Event::Closed, shared);
        }
    }

    /// Ends the stream of the application: no more data will be written.
    pub(crate) fn shutdown(&mut self) {
        self.sender.outgoing.close();
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        let mut stats = self.stats.clone();
        stats.data_acked = self.sender.outgoing.una.min(self.sender.outgoing.buffer.end());
        self.receiver.fill(&mut stats);
        stats.ofo_bytes += self.subflows.iter().map(|subflow| subflow.rx.ofo.bytes()).sum::<u64>();
        self.sender.waiting.fill(&mut stats.blocked);
        stats
    }

    pub(crate) fn subflow_stats(&self) -> Vec<SubflowStats> {
        let alive = self.subflows.iter().map(|subflow| subflow.stats(&self.sender.congestion));
        let mut all: Vec<_> = self.subflows.buried.iter().cloned().chain(alive).collect();
        all.sort_by_key(|stats| stats.id);
        all
    }

    /// A packet of a subflow has left the first hop.
    pub(crate) fn departed(&mut self, id: SubflowId, size: u64) {
        self.subflows.on_departed(id, size);
    }

    /// Replaces a policy. A new scheduler is told of subflows and data as if they had just come about; windows stay.
    pub(crate) fn switch(&mut self, now: Instant, switch: &Switch) {
        match switch {
            Switch::Scheduler(factory) => {
                self.sender.scheduler = factory();
                self.sender.watchdog = Watchdog::default();
                self.sender.scheduler.seed(Seed(self.keys.local.get()));
                self.sender.scheduler.observe(now, &PolicyEvent::SubflowsChanged);
                if !self.sender.outgoing.unsent.is_empty() {
                    self.sender.scheduler.observe(now, &PolicyEvent::DataWritten);
                }
            }
            Switch::Congestion(factory) => {
                self.sender.congestion.replace(now, factory());
                self.subflows.touch_all();
            }
            Switch::ReceiveWindow(factory) => self.sender.receive_window = factory(),
            Switch::AckPath(factory) => self.acks.policy = factory(),
            Switch::Reinjection(factory) => self.sender.reinjection = factory(),
            // It has begun.
            Switch::FirstPath(_) => {}
        }
    }

    fn report_open(&mut self, shared: &mut Shared) {
        if !self.reported_open {
            self.reported_open = true;
            let multipath = self.life.mode() == Mode::Multipath;
            if let (Role::Server, Some(reason)) = (self.role, self.stats.fallback) {
                // From before the application knew of the connection.
                shared.event(self.id, Event::Fallback(reason));
            }
            let event = match self.role {
                Role::Client if self.paths.reopening.has_happened() => Event::Reopened { multipath },
                Role::Client => Event::Connected { multipath },
                Role::Server => Event::Accepted { multipath },
            };
            shared.event(self.id, event);
            shared.event(self.id, Event::Writable);
        }
    }

    /// Tells whether the connection is over.
    pub(crate) fn is_gone(&self) -> bool {
        self.life.is_gone()
    }

    /// Tells whether our application has ended it.
    pub(crate) fn is_given_up(&self) -> bool {
        self.life.is_gone() && self.stats.ended == Some(Ended::Aborted)
    }

    /// The application knows of this connection: it opened it, or was told that a peer did.
    pub(crate) fn is_known(&self) -> bool {
        self.role == Role::Client || self.reported_open
    }

    /// True while a handshake of the server's initial subflow is under way.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.is_known() && self.subflows.initial().is_some_and(|subflow| subflow.state == State::SynReceived)
    }
}
