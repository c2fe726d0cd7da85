//! Arrivals: connections of the engine, and visitors of the listener in front of programs.

use super::{FIRST_SESSION, MOST_REFUSED, Proxy, TICK};
use crate::proxy::dial::Dial;
use crate::proxy::front::Front;
use crate::proxy::limits::Limit;
use crate::proxy::report::Outcome;
use crate::proxy::session::{Session, Stage};
use crate::proxy::settings::Direction;
use anabranch_engine::ConnectionId;
use anabranch_host::Context;
use mio::net::TcpStream;
use mio::{Interest, Token};
use std::io::ErrorKind;
use std::net::SocketAddr;

impl Proxy {
    /// The engine has accepted a connection.
    pub(super) fn on_accepted(&mut self, cx: &mut Context<'_>, id: ConnectionId, multipath: bool) {
        let Direction::Listen { host, to_port, .. } = &self.settings.direction else { return };
        let target = format!("{host}:{to_port}");
        let Some(subflow) = cx.endpoint.subflow_stats(id).into_iter().next() else { return };
        let client = subflow.remote;
        let admitted = if self.drain.is_some() { Err(Limit::Draining) } else { self.admission.admit(client.ip()) };
        if let Err(limit) = admitted {
            self.note_refusal(cx.now, client, limit);
            // Its end is reported for a connection without an owner.
            return cx.endpoint.abort(cx.now, id);
        }
        self.count_protocol(multipath);
        self.totals.accepted += 1;
        let stage = Stage::Connecting(Dial::direct(&self.service));
        let mut session = Box::new(Session::new(self.next_serial(), client, cx.now, stage));
        session.target = target;
        session.connection = Some(id);
        let index = self.settle(cx, session);
        self.own(id, index);
        self.step(cx, index, |proxy, cx, session| proxy.connect(cx, index, session));
    }

    /// Clients are waiting at the kernel's socket.
    pub(super) fn on_visitors(&mut self, cx: &mut Context<'_>) {
        self.accept_again = false;
        loop {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, client)) => self.on_visitor(cx, socket, client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // Without descriptors or memory, accepting has to be retried: readiness is not signalled again for
                    // waiting clients.
                    self.note_failure(cx.now, "cannot accept", &error);
                    self.accept_again = true;
                    return self.keep_time(cx);
                }
            }
        }
    }

    pub(super) fn on_visitor(&mut self, cx: &mut Context<'_>, mut socket: TcpStream, client: SocketAddr) {
        let Direction::Socks { users, access, .. } = &self.settings.direction else { return };
        if !access.admits(client.ip()) {
            // Closed without a reply: it would reveal the service to a client that may not use it.
            return self.note_refusal(cx.now, client, Limit::Network);
        }
        let front = Front::new(users.clone());
        let admitted = self.admission.admit(client.ip());
        if let Err(limit) = admitted {
            self.note_refusal(cx.now, client, limit);
            if self.refused >= MOST_REFUSED {
                return;
            }
            self.refused += 1;
        } else {
            self.totals.accepted += 1;
        }
        let mut session = Box::new(Session::new(self.next_serial(), client, cx.now, Stage::Greeting(front)));
        session.admitted = admitted;
        let index = self.settle_later();
        if let Err(error) = self.register(cx, &mut socket, index) {
            self.note_failure(cx.now, "cannot watch a socket", &error);
            session.socket = Some(socket);
            return self.finish(cx, index, session, Outcome::ConnectFailed);
        }
        session.socket = Some(socket);
        (session.relay.readable, session.relay.writable) = (true, true);
        self.sessions.put(index, session);
        self.keep_time(cx);
        self.step(cx, index, |proxy, cx, session| proxy.greet(cx, index, session));
    }

    pub(super) fn settle(&mut self, cx: &mut Context<'_>, session: Box<Session>) -> usize {
        let index = self.settle_later();
        self.sessions.put(index, session);
        self.keep_time(cx);
        index
    }

    pub(super) fn settle_later(&mut self) -> usize {
        self.sessions.reserve()
    }

    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(super) fn keep_time(&mut self, cx: &Context<'_>) {
        self.tick.get_or_insert(cx.now + TICK);
    }

    pub(super) fn register(&self, cx: &Context<'_>, socket: &mut TcpStream, index: usize) -> std::io::Result<()> {
        cx.registry.register(socket, Token(FIRST_SESSION + index), Interest::READABLE | Interest::WRITABLE)
    }
}
