//! The stages of a session, from its handshake to the relay and the last words.

use super::{Next, Proxy, fail};
use crate::patience::Patience;
use crate::proxy::access::is_of_machine;
use crate::proxy::dial::Dial;
use crate::proxy::front::{Denial, Front, Host, Progress, Request};
use crate::proxy::limits::Limit;
use crate::proxy::proxy_protocol;
use crate::proxy::report::Outcome;
use crate::proxy::session::{Session, Stage};
use crate::proxy::settings::Direction;
use anabranch_host::Context;
use mio::net::TcpStream;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Shutdown, SocketAddr};

impl Proxy {
    /// Applies a step to a session, with its consequences.
    pub(super) fn step(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        act: impl FnOnce(&mut Self, &mut Context<'_>, &mut Session) -> Next,
    ) {
        let Some(mut session) = self.sessions.take(index) else { return };
        match act(self, cx, &mut session) {
            Next::Wait => {
                self.sessions.put(index, session);
                self.count(cx, index);
            }
            Next::End(outcome) => self.finish(cx, index, session, outcome),
        }
    }

    /// Advances the session as far as possible.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        match session.stage {
            Stage::Greeting(_) => self.greet(cx, index, session),
            Stage::Connecting(_) if session.socket.is_some() => self.finish_connect(cx, index, session),
            Stage::Resolving(_) | Stage::Opening(..) | Stage::Connecting(_) => Next::Wait,
            Stage::Relaying => self.relay(cx, index, session),
            Stage::Lingering => self.linger(session),
        }
    }

    /// Reads what the client says before its stream begins.
    pub(super) fn greet(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        // A request may have come right behind the one before.
        let mut came = true;
        loop {
            let (Stage::Greeting(front), Some(socket)) = (&mut session.stage, &mut session.socket) else {
                return Next::Wait;
            };
            let read = if came { Ok(None) } else { socket.read(&mut self.scratch).map(Some) };
            came = false;
            let progress = match read {
                Ok(None) => front.receive(&[]),
                Ok(Some(0)) if front.is_between() => return Next::End(Outcome::Closed),
                Ok(Some(0)) => return fail(session, Outcome::BadRequest, "closed the connection before a request"),
                Ok(Some(length)) => front.receive(&self.scratch[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Next::End(Outcome::ClientReset),
            };
            let reply = front.take_reply();
            if !reply.is_empty() {
                session.relay.push_outward(reply);
            }
            if session.relay.give_to_socket(socket).is_err() {
                return Next::End(Outcome::ClientReset);
            }
            match progress {
                Progress::More => {}
                Progress::Refused(why) => {
                    session.detail = why.to_owned();
                    return self.send_away(cx, session, Outcome::BadRequest);
                }
                Progress::Asked(request) => return self.on_request(cx, index, session, &request),
            }
        }
    }

    pub(super) fn on_request(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        session: &mut Session,
        request: &Request,
    ) -> Next {
        session.target = request.to_string();
        if let Err(limit) = session.admitted {
            return self.deny(cx, session, Denial::Busy, Outcome::Refused(limit));
        }
        match &request.host {
            Host::Address(address) => {
                let address = SocketAddr::new(*address, request.port);
                self.on_addresses(cx, index, session, &[address])
            }
            Host::Name(name) => {
                let who = session.serial << 32 | index as u64;
                if self.resolver.as_ref().is_some_and(|resolver| resolver.ask(who, name, request.port)) {
                    let Some(front) = take_front(session) else { return Next::Wait };
                    session.enter(cx.now, Stage::Resolving(front));
                    return Next::Wait;
                }
                self.note_refusal(cx.now, session.client, Limit::Resolver);
                self.deny(cx, session, Denial::Busy, Outcome::Refused(Limit::Resolver))
            }
        }
    }

    pub(super) fn on_addresses(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        session: &mut Session,
        addresses: &[SocketAddr],
    ) -> Next {
        let Direction::Socks { via, access, .. } = &self.settings.direction else { return Next::Wait };
        let is_own = |address: IpAddr| via.contains(&address) || is_of_machine(address);
        let is_permitted = |address: &SocketAddr| access.permits(address.ip(), is_own);
        let permitted: Vec<_> = addresses.iter().copied().filter(is_permitted).collect();
        if permitted.is_empty() {
            return self.deny(cx, session, Denial::NotAllowed, Outcome::NotAllowed);
        }
        let dial = Dial::via(via, &permitted);
        if dial.is_empty() {
            session.detail = "no --via address has the address family of the destination".into();
            return self.deny(cx, session, Denial::Unreachable, Outcome::ConnectFailed);
        }
        let Some(front) = take_front(session) else { return Next::Wait };
        session.enter(cx.now, Stage::Opening(front, dial));
        self.open(cx, index, session, Denial::Unreachable)
    }

    /// Opens an engine connection to the next address; if there is none, reports the failure of the last.
    pub(super) fn open(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session, why: Denial) -> Next {
        let Stage::Opening(_, dial) = &mut session.stage else { return Next::Wait };
        while let Some((local, remote)) = dial.next(cx.now, self.settings.timeouts.attempt) {
            match cx.endpoint.open(cx.now, local, remote) {
                Ok(id) => {
                    session.connection = Some(id);
                    self.own(id, index);
                    return Next::Wait;
                }
                Err(error) => {
                    self.totals.attempts_failed += 1;
                    session.detail = error.to_string();
                }
            }
        }
        self.deny(cx, session, why, Outcome::ConnectFailed)
    }

    /// The engine's connection stands: the client may begin.
    pub(super) fn on_connected(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let Stage::Opening(front, _) = &mut session.stage else { return Next::Wait };
        let local =
            session.connection.and_then(|id| cx.endpoint.subflow_stats(id).first().map(|subflow| subflow.local));
        front.grant(local.unwrap_or(session.client));
        let (reply, rest) = (front.take_reply(), front.take_rest());
        match front.take_forward() {
            Some(forward) => session.relay.begin_exchange(*forward, rest),
            None => {
                session.relay.push_outward(reply);
                session.relay.push_inward(rest);
            }
        }
        // Of addresses that were tried before.
        session.detail.clear();
        self.begin_relay(cx, index, session)
    }

    /// Tries the service's next address.
    pub(super) fn connect(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        session.socket = None;
        session.relay.on_new_socket();
        loop {
            let Stage::Connecting(dial) = &mut session.stage else { return Next::Wait };
            let Some(((), address)) = dial.next(cx.now, self.settings.timeouts.attempt) else {
                return Next::End(Outcome::ConnectFailed);
            };
            let connected = TcpStream::connect(address).and_then(|mut socket| {
                self.register(cx, &mut socket, index)?;
                Ok(socket)
            });
            match connected {
                Ok(socket) => {
                    session.socket = Some(socket);
                    return Next::Wait;
                }
                Err(error) => self.note_attempt(cx.now, session, &error),
            }
        }
    }

    /// The service's socket is connected, or it never will be.
    pub(super) fn finish_connect(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let Some(socket) = &session.socket else { return Next::Wait };
        // A socket that can be written to and has no error is connected (connect(2)).
        let failed = match (session.relay.closed, session.relay.writable) {
            (false, false) => return Next::Wait,
            (false, true) => None,
            (true, _) => match socket.take_error() {
                Ok(None) => match socket.peer_addr() {
                    Ok(_) => None,
                    Err(error) if error.kind() == ErrorKind::NotConnected => return Next::Wait,
                    Err(error) => Some(error),
                },
                Ok(Some(error)) | Err(error) => Some(error),
            },
        };
        if let Some(error) = failed {
            self.note_attempt(cx.now, session, &error);
            return self.connect(cx, index, session);
        }
        if let Direction::Listen { proxy_protocol: true, .. } = self.settings.direction {
            let local =
                session.connection.and_then(|id| cx.endpoint.subflow_stats(id).first().map(|subflow| subflow.local));
            session.relay.push_outward(proxy_protocol::header(session.client, local.unwrap_or(session.client)));
        }
        self.begin_relay(cx, index, session)
    }

    fn begin_relay(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        session.enter(cx.now, Stage::Relaying);
        session.patience = Patience::new(cx.now, &self.settings.timeouts.idle);
        self.relay(cx, index, session)
    }

    /// Moves what can be moved.
    pub(super) fn relay(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let Some(socket) = &mut session.socket else {
            // The socket's part is done; the engine still says goodbye.
            return if session.connection.is_none() { Next::End(Outcome::Closed) } else { Next::Wait };
        };
        let engine_is_client = matches!(self.settings.direction, Direction::Listen { .. });
        let room = self.admission.room(session.client.ip(), session.charged);
        let before = (session.relay.from_engine, session.relay.from_socket);
        let to_socket = session.relay.to_socket;
        session.relay.pump(cx, session.connection, socket, &mut self.scratch, room);
        let from_engine = session.relay.from_engine - before.0;
        let from_socket = session.relay.from_socket - before.1;
        let (from_client, to_client) =
            if engine_is_client { (from_engine, from_socket) } else { (from_socket, from_engine) };
        self.totals.from_client += from_client;
        self.totals.to_client += to_client;
        let load = session.connection.and_then(|id| cx.endpoint.load(id));
        if !session.relay.discards() {
            let moved = from_socket + session.relay.to_socket - to_socket;
            session.note(cx.now, moved, load, &self.settings.timeouts.idle);
        }
        if session.relay.exchange.is_some() {
            if session.relay.is_engine_reset() && load.is_none() {
                self.origin_ended(session, false);
            }
            return self.after_exchange(cx, index, session);
        }
        if session.relay.socket_done() {
            session.socket = None;
        }
        if session.relay.is_engine_reset() && load.is_none() {
            // The last of what it left has been read.
            self.collect(cx, session);
        }
        if let Some(error) = session.relay.broken()
            && load.is_none_or(|load| session.relay.is_engine_reset() || load.unacknowledged.is_zero())
        {
            // The engine's peer has all that came before, so that a reset takes nothing from it.
            session.detail = error.to_string();
            return Next::End(session.ending.unwrap_or_else(|| self.reset_by_socket()));
        }
        match (session.connection, session.ending) {
            (Some(_), _) => Next::Wait,
            (None, _) if session.relay.has_outward() => Next::Wait,
            (None, Some(outcome)) if session.relay.engine_finished() => Next::End(outcome),
            (None, Some(outcome)) => self.reset_socket(cx, index, session, outcome),
            (None, None) => Next::End(Outcome::Closed),
        }
    }

    /// Tells the client that its request fails, and why.
    pub(super) fn deny(&mut self, cx: &mut Context<'_>, session: &mut Session, why: Denial, outcome: Outcome) -> Next {
        if let Stage::Greeting(front) | Stage::Resolving(front) | Stage::Opening(front, _) = &mut session.stage {
            front.deny(why);
            let reply = front.take_reply();
            session.relay.push_outward(reply);
        }
        self.send_away(cx, session, outcome)
    }

    /// Lets the client take the last words before the socket is closed.
    pub(super) fn send_away(&mut self, cx: &mut Context<'_>, session: &mut Session, outcome: Outcome) -> Next {
        session.ending = Some(outcome);
        session.enter(cx.now, Stage::Lingering);
        self.linger(session)
    }

    pub(super) fn linger(&mut self, session: &mut Session) -> Next {
        let outcome = session.ending.unwrap_or(Outcome::Closed);
        let Some(socket) = &mut session.socket else { return Next::End(outcome) };
        if session.relay.give_to_socket(socket).is_err() {
            return Next::End(outcome);
        }
        if session.relay.has_outward() {
            return Next::Wait;
        }
        let _ = socket.shutdown(Shutdown::Write);
        // A socket closed with unread data sends a RST, which can overtake what was said.
        loop {
            match socket.read(&mut self.scratch) {
                Ok(0) => return Next::End(outcome),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(_) => return Next::End(outcome),
            }
        }
    }
}

/// The handshake out of a session that goes on to another stage.
fn take_front(session: &mut Session) -> Option<Front> {
    match std::mem::replace(&mut session.stage, Stage::Lingering) {
        Stage::Greeting(front) | Stage::Resolving(front) | Stage::Opening(front, _) => Some(front),
        _ => None,
    }
}
