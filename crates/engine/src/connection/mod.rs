//! One MPTCP connection: the data level, and the subflows that carry it.
//!
//! The parts by noun: `handshake` (how subflows begin; `race`: the first of them; `resume`: without a trace of their
//! SYN), `confirmation` (that the peer speaks MPTCP; `reopening`: on another path if the first dies before), `input`
//! (a segment arrives), `acceptance` (whether it counts), `acknowledgment`, `options`, `signal` (DSS) and `payload`
//! (what it says and carries), `receiver` (data in order for the application; `autotune`: its buffer), `output` (what
//! leaves next), `decision` (what the scheduler says to it), `copies` (of sent data, for the reinjection policy),
//! `emit` (segments put together; `burst`: one mapping over several), `detour` (ACKs on another subflow's path) and
//! `probing` (which path that should be),
//! `sizes` (of segments on narrow paths), `paths` (which subflows there should be) and `addresses`, `vain` (subflows
//! that came to nothing), `integrity` (checksums and MP_FAIL), `closing` (how subflows and connections end), `timers`,
//! `watchdog` (schedulers that misbehave), `load` (what a connection takes up).

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
mod emit;
mod handshake;
mod history;
mod input;
mod integrity;
mod keys;
mod load;
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
mod sender;
mod signal;
mod sizes;
mod subflows;
mod timers;
mod vain;
mod watchdog;

use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use crate::{ConnectionId, ConnectionStats, Event, FallbackReason, SubflowStats, Switch};
use acks::AckRouting;
use anabranch_policy::Event as PolicyEvent;
use anabranch_units::{Duration, Instant, Key, Seed, SubflowId};
use anabranch_wire::ResetReason;
use bytes::Bytes as Payload;
use closing::FastClosing;
use confirmation::Confirmation;
use integrity::Retreat;
use keys::Keys;
use load::Reached;
use negotiated::Negotiated;
use paths::{PathManager, Paths};
use receiver::Receiver;
use sender::Sender;
use subflows::Subflows;
use timers::Timers;
use watchdog::Watchdog;

pub(crate) use detour::is_pure_ack;
pub(crate) use emit::reset_for;
pub(crate) use handshake::Accept;
pub(crate) use race::Opening;
pub(crate) use resume::answer_with_cookie;

/// Which side of the connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It sent the first SYN.
    Client,
    /// It listened.
    Server,
}

/// MPTCP or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// MP_CAPABLE was sent, and the answer is not known.
    Negotiating,
    /// MPTCP.
    Multipath,
    /// Plain TCP: never asked for, or fallen back (RFC 8684 §3.7).
    Plain,
}

pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) role: Role,
    pub(crate) mode: Mode,
    /// The peer has shown that MPTCP options get through both ways.
    pub(crate) confirmed: bool,
    /// The client's wait for that.
    confirmation: Confirmation,
    pub(crate) keys: Keys,
    negotiated: Negotiated,
    pub(crate) subflows: Subflows,
    sender: Sender,
    receiver: Receiver,
    acks: AckRouting,
    paths: Paths,
    timers: Timers,
    /// Progress of the peer.
    reached: Reached,
    pub(crate) stats: ConnectionStats,
    /// Nothing is left to do or to say.
    pub(crate) gone: bool,
    /// Nobody will ask for its statistics after it is gone.
    pub(crate) forgotten: bool,
    /// Closed in order, and gone as soon as the application has read the rest.
    closed_unread: bool,
    reported_open: bool,
    keepalive: Option<crate::Keepalive>,
    /// MP_FASTCLOSE was sent on an ACK and waits for its answer.
    fast_closing: Option<FastClosing>,
    retreat: Retreat,
}

impl Connection {
    fn new(now: Instant, id: ConnectionId, role: Role, mode: Mode, local_key: Key, shared: &Shared) -> Self {
        let config = &shared.config;
        Connection {
            id,
            role,
            mode,
            confirmed: false,
            confirmation: Confirmation::default(),
            keys: Keys::new(local_key, shared.chosen.idsn(local_key)),
            negotiated: Negotiated::new(config),
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
            reached: Reached::new(now),
            stats: ConnectionStats { opened_at: now, ..ConnectionStats::default() },
            gone: false,
            forgotten: false,
            closed_unread: false,
            reported_open: false,
            keepalive: config.keepalive,
            fast_closing: None,
            retreat: Retreat::default(),
        }
    }

    /// Takes as much of `data` as the send buffer admits; how many bytes.
    pub(crate) fn write(&mut self, data: &Payload, shared: &Shared) -> usize {
        let space = self.write_space(shared);
        let taken = space.min(data.len());
        if taken < data.len() {
            self.sender.outgoing.writer_waits = true;
        }
        if taken > 0 {
            let out = &mut self.sender.outgoing;
            if out.unsent.is_empty() {
                self.sender.scheduler.observe(self.sender.waiting.since(), &PolicyEvent::DataWritten);
            }
            let start = out.buffer.end();
            out.buffer.push(data, taken);
            out.unsent.insert(start, start + taken as u64);
            self.stats.written += taken as u64;
        }
        taken
    }

    /// What the send buffer admits now.
    pub(crate) fn write_space(&self, shared: &Shared) -> usize {
        if self.sender.outgoing.fin.is_some() || self.gone {
            return 0;
        }
        let held = self.sender.outgoing.buffer.end() - self.sender.outgoing.buffer.start();
        usize::try_from(shared.config.send_buffer.get().saturating_sub(held)).unwrap_or(usize::MAX)
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
        let open = self.subflows.iter_mut().filter(|subflow| subflow.is_open());
        if let Some(subflow) = open.max_by_key(|subflow| subflow.rx.ack.last_data) {
            let most = u64::from(u16::MAX) << subflow.rx.rcv_scale;
            subflow.rx.ack.now |= self.receiver.window_worth_telling(u64::from(shared.config.profile.mss), most);
        }
        if self.negotiated.checksum && self.receiver.unread() == 0 {
            for index in 0..self.subflows.len() {
                self.admit_rest(index);
            }
        }
        if self.receiver.take_end_of_stream() {
            shared.event(self.id, Event::PeerFinished);
        }
        if self.closed_unread && self.receiver.unread() == 0 {
            self.finish(Event::Closed, shared);
        }
    }

    /// No more data will be written.
    pub(crate) fn shutdown(&mut self) {
        if self.sender.outgoing.fin.is_none() {
            self.sender.outgoing.fin = Some(self.sender.outgoing.buffer.end());
        }
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
        if let Some(index) = self.subflows.position(id) {
            let subflow = &mut self.subflows[index];
            subflow.tx.first_hop = subflow.tx.first_hop.saturating_sub(size);
        }
    }

    /// Tells the policies that the set of usable subflows may have changed.
    fn subflows_changed(&mut self, now: Instant) {
        // A backup beside a regular subflow carries nothing, and its window says nothing (A-COUPLED).
        let regular = self.subflows.iter().any(|subflow| subflow.is_usable() && !subflow.backup());
        for subflow in self.subflows.iter() {
            let counted = subflow.is_usable() && subflow.backup() != regular;
            self.sender.congestion.set_counted(subflow.id, counted);
        }
        self.sender.scheduler.observe(now, &PolicyEvent::SubflowsChanged);
    }

    /// Goes on with another policy. A new scheduler learns of what there is as if it had just come about; windows stay.
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
            Switch::Congestion(factory) => self.sender.congestion.replace(now, factory()),
            Switch::ReceiveWindow(factory) => self.sender.receive_window = factory(),
            Switch::AckPath(factory) => self.acks.policy = factory(),
            Switch::Reinjection(factory) => self.sender.reinjection = factory(),
            // It has begun.
            Switch::FirstPath(_) => {}
        }
    }

    /// Gives MPTCP up for plain TCP on the only subflow.
    fn fall_back(&mut self, now: Instant, reason: FallbackReason, shared: &mut Shared) {
        self.mode = Mode::Plain;
        self.stats.fallback = Some(reason);
        // Nothing of the data level is left to be said.
        self.timers.data = None;
        self.paths.manager = PathManager::default();
        // Without DSS a segment holds more; once data flows the size stays, since the window counts in it.
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.state != State::Established) {
            subflow.tx.mss = emit::payload_room(subflow, Mode::Plain);
        }
        shared.fell_back(reason);
        if self.is_known() {
            shared.event(self.id, Event::Fallback(reason));
        }
        while let Some(index) = self.subflows.iter().position(Subflow::is_unfinished_join) {
            self.kill(now, index, ResetReason::MptcpError, shared);
        }
        self.announce_infinite(reason);
        self.receiver.forget_fin();
        self.place_plainly(now, shared);
        // What the subflow has acknowledged is acknowledged; perhaps nothing more will come to say so.
        if let Some(subflow) = self.subflows.first() {
            let una = subflow.tx.recovery.snd_una();
            let window = subflow.tx.snd_edge.saturating_sub(una);
            let acked = una.saturating_sub(1).min(self.sender.outgoing.buffer.end());
            self.on_data_ack(now, acked, window, shared);
        }
        shared.routes.push(crate::shared::Route::RemoveToken(self.keys.local.token(), self.id));
    }

    /// True while plain TCP can still take over: one subflow ever, everything in order on it, and not yet at the end.
    fn can_fall_back(&self) -> bool {
        !self.subflows.ever_joined && self.can_follow()
    }

    /// True while we can go to plain TCP with a peer that has: it did not count on a join whose fourth ACK has not come.
    fn can_follow(&self) -> bool {
        self.subflows.first().is_some_and(|subflow| self.is_plain_at(subflow.rx.placed()))
    }

    /// The same as [`Self::can_fall_back`] when subflow offset `at` is the next to be taken.
    fn can_fall_back_at(&self, at: u64) -> bool {
        !self.subflows.ever_joined && self.is_plain_at(at)
    }

    /// From subflow offset `at` on it is the stream's, so both must have come equally far. They have not if the peer repeated
    /// data on the same subflow, or sent some that was refused.
    fn is_plain_at(&self, at: u64) -> bool {
        let in_order =
            self.sender.outgoing.in_order && self.receiver.in_order() && self.receiver.stream_next() + 1 == at;
        let complete = self.sender.outgoing.fin_acked && self.receiver.finished();
        let alone = self.subflows.iter().filter(|subflow| !subflow.is_unfinished_join()).count() == 1;
        !self.subflows.peer_knows_of_join && alone && in_order && !complete
    }

    fn report_open(&mut self, shared: &mut Shared) {
        if !self.reported_open {
            self.reported_open = true;
            let multipath = self.mode == Mode::Multipath;
            if let (Role::Server, Some(reason)) = (self.role, self.stats.fallback) {
                // From before the application knew of the connection.
                shared.event(self.id, Event::Fallback(reason));
            }
            let event = match self.role {
                Role::Client if self.is_reopened() => Event::Reopened { multipath },
                Role::Client => Event::Connected { multipath },
                Role::Server => Event::Accepted { multipath },
            };
            shared.event(self.id, event);
            shared.event(self.id, Event::Writable);
        }
    }

    /// The application knows of this connection: it opened it, or was told that a peer did.
    pub(crate) fn is_known(&self) -> bool {
        self.role == Role::Client || self.reported_open
    }

    /// True while a handshake of the server's initial subflow is under way.
    pub(crate) fn is_half_open(&self) -> bool {
        self.role == Role::Server && self.subflows.initial().is_some_and(|subflow| subflow.state == State::SynReceived)
    }

    fn longest_rto(&self) -> Duration {
        self.subflows.iter().map(|subflow| subflow.tx.rtt.rto()).max().unwrap_or(Duration::from_secs(1))
    }
}
