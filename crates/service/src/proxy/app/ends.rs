//! Ends of sessions: by events of the engine, by the sockets, by timeouts.

use super::{DISCARD, Next, PARTING, Proxy};
use crate::proxy::front::Denial;
use crate::proxy::report::Outcome;
use crate::proxy::session::{Session, Stage};
use anabranch_engine::ConnectionId;
use anabranch_host::Context;

impl Proxy {
    /// The engine's connection is gone.
    pub(super) fn on_engine_gone(&mut self, cx: &mut Context<'_>, id: ConnectionId, index: usize, orderly: bool) {
        self.disown(id);
        self.step(cx, index, |proxy, cx, session| {
            if session.connection != Some(id) {
                return Next::Wait;
            }
            match session.stage {
                Stage::Opening(..) => {
                    proxy.collect(cx, session);
                    proxy.totals.attempts_failed += 1;
                    proxy.open(cx, index, session, Denial::ConnectionRefused)
                }
                Stage::Relaying if session.relay.exchange.is_some() => {
                    if orderly {
                        proxy.origin_ended(session, true);
                    } else {
                        // What it said before is read first.
                        session.relay.on_engine_reset();
                    }
                    proxy.relay(cx, index, session)
                }
                Stage::Relaying if orderly => {
                    proxy.collect(cx, session);
                    proxy.relay(cx, index, session)
                }
                // What it said before it gave up is delivered, also to a service that is still being connected.
                Stage::Relaying if session.socket.is_some() => {
                    proxy.on_engine_reset(session);
                    proxy.relay(cx, index, session)
                }
                Stage::Connecting(_) if cx.endpoint.load(id).is_some() => {
                    proxy.on_engine_reset(session);
                    Next::Wait
                }
                _ => Next::End(proxy.reset_by_engine()),
            }
        });
    }

    fn on_engine_reset(&self, session: &mut Session) {
        session.relay.on_engine_reset();
        session.ending = Some(self.reset_by_engine());
    }

    /// Resets a socket once its peer has acknowledged what was written: a RST takes back what was not sent, and may
    /// overtake the rest.
    pub(super) fn reset_socket(&mut self, cx: &Context<'_>, index: usize, session: &Session, outcome: Outcome) -> Next {
        let waits = |socket| anabranch_host::unacknowledged(socket) > 0;
        if session.relay.broken().is_some() || !session.socket.as_ref().is_some_and(waits) {
            return Next::End(outcome);
        }
        let place = (index, session.serial);
        if !self.parting.contains(&place) {
            self.parting.push(place);
        }
        self.parting_at.get_or_insert(cx.now + PARTING);
        Next::Wait
    }

    /// Looks again at the sessions that wait for their socket's peer.
    pub(super) fn part_with_sockets(&mut self, cx: &mut Context<'_>) {
        for (index, serial) in std::mem::take(&mut self.parting) {
            self.step(cx, index, |proxy, cx, session| match session.stage {
                Stage::Relaying if session.serial == serial => proxy.relay(cx, index, session),
                _ => Next::Wait,
            });
        }
    }

    pub(super) fn reset_by_engine(&self) -> Outcome {
        if self.engine_is_client() { Outcome::ClientReset } else { Outcome::TargetReset }
    }

    /// Takes what the engine counted of the session's connection, which is gone or about to be.
    pub(super) fn collect(&mut self, cx: &mut Context<'_>, session: &mut Session) {
        let Some(id) = session.connection.take() else { return };
        let subflows = cx.endpoint.subflow_stats(id);
        if let Some(stats) = cx.endpoint.connection_stats(id) {
            self.totals.ended.add(&stats, &subflows);
            session.why = session.course.sentence(cx.now, &stats, &subflows);
            session.counted = Some((stats, subflows));
        }
        cx.endpoint.forget(id);
    }

    /// The end of a session, whatever is still open.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>, index: usize, mut session: Box<Session>, outcome: Outcome) {
        if let Some(id) = session.connection {
            self.collect(cx, &mut session);
            self.disown(id);
            cx.endpoint.abort(cx.now, id);
        }
        if let Some(socket) = session.socket.take() {
            let unsaid = session.relay.has_outward() || !session.relay.engine_finished();
            let broken = !matches!(outcome, Outcome::Closed) && !matches!(session.stage, Stage::Lingering);
            if broken && unsaid {
                // RST: the other end shall not take what it got for the whole.
                let _ = socket2::SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO));
            }
        }
        match session.admitted {
            Ok(()) => self.admission.release(session.client.ip(), session.charged),
            Err(_) => self.refused -= 1,
        }
        *self.totals.outcomes.entry(outcome).or_default() += 1;
        if session.admitted.is_ok() && !session.is_between() {
            session.log(cx.now, outcome, self.engine_is_client());
        }
        self.sessions.release(index);
    }

    // --- once a second ---------------------------------------------------------------------------------------------

    pub(super) fn look_after(&mut self, cx: &mut Context<'_>) {
        if self.accept_again {
            self.on_visitors(cx);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.tick();
        }
        if self.ebb.tick(self.admission.held()) {
            anabranch_host::release_memory();
        }
        self.evict_gone(cx);
        let indices: Vec<usize> = self.sessions.iter().map(|(index, _)| index).collect();
        for index in indices {
            self.step(cx, index, |proxy, cx, session| proxy.check_time(cx, index, session));
        }
        if self.drain.is_some_and(|until| until <= cx.now) {
            self.cut_off(cx);
        }
    }

    pub(super) fn check_time(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let now = cx.now;
        if let Some(id) = session.connection {
            session.course.look(now, cx.endpoint, id);
        }
        if !session.relay.discards()
            && let Some(load) = session.connection.and_then(|id| cx.endpoint.load(id))
        {
            // Progress of the peer on data in the send buffer counts as well.
            session.note(now, 0, Some(load), &self.settings.timeouts.idle);
        }
        if session.is_overdue(now, &self.settings.timeouts) {
            return match session.stage {
                Stage::Greeting(ref front) if front.is_between() => Next::End(Outcome::Closed),
                Stage::Greeting(_) => {
                    session.detail = "sent no destination within --handshake-timeout".into();
                    Next::End(Outcome::BadRequest)
                }
                Stage::Resolving(_) | Stage::Opening(..) => {
                    session.detail = "not connected within --connect-timeout".into();
                    self.give_up_opening(cx, session);
                    self.deny(cx, session, Denial::TimedOut, Outcome::ConnectFailed)
                }
                Stage::Connecting(_) => {
                    session.detail = "not connected within --connect-timeout".into();
                    Next::End(Outcome::ConnectFailed)
                }
                Stage::Relaying if session.relay.discards() => Next::End(self.reset_by_socket()),
                Stage::Relaying => {
                    let outcome = session.ending.unwrap_or(Outcome::Idle);
                    self.give_up_exchange(cx, session, Denial::TimedOut, outcome)
                }
                Stage::Lingering => Next::End(session.ending.unwrap_or(Outcome::Closed)),
            };
        }
        if session.is_attempt_overdue(now) {
            self.totals.attempts_failed += 1;
            if let Stage::Opening(..) = session.stage {
                self.give_up_opening(cx, session);
                return self.open(cx, index, session, Denial::TimedOut);
            }
            return self.connect(cx, index, session);
        }
        if session.relay.discards() && now.since(session.active) > DISCARD {
            return Next::End(self.reset_by_socket());
        }
        // Data held back for lack of memory may proceed.
        self.advance(cx, index, session)
    }

    pub(super) fn reset_by_socket(&self) -> Outcome {
        if self.engine_is_client() { Outcome::TargetReset } else { Outcome::ClientReset }
    }

    /// Aborts the connection attempt under way; its end is reported for a connection without an owner.
    pub(super) fn give_up_opening(&mut self, cx: &mut Context<'_>, session: &mut Session) {
        if let Some(id) = session.connection.take() {
            self.disown(id);
            cx.endpoint.abort(cx.now, id);
        }
    }
}
