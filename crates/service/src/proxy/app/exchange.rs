//! HTTP requests that are forwarded: what follows when something has moved.

use super::{Next, Proxy};
use crate::proxy::front::{Denial, Front};
use crate::proxy::http::{self, Refusal};
use crate::proxy::report::Outcome;
use crate::proxy::session::{Session, Stage};
use crate::proxy::settings::Direction;
use anabranch_host::Context;

impl Proxy {
    /// The origin sends nothing more to a session that exchanges a request with it.
    pub(super) fn origin_ended(&self, session: &mut Session, orderly: bool) {
        if let Some(exchange) = &mut session.relay.exchange {
            exchange.origin_ended(orderly);
        }
    }

    /// Goes on behind an exchange in which something has moved: it may be over, or at fault.
    pub(super) fn after_exchange(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let relay = &session.relay;
        let (finished, unsaid) = (relay.engine_finished(), relay.has_outward());
        let gone = relay.discards() || relay.socket_finished();
        let Some(exchange) = &mut session.relay.exchange else { return Next::Wait };
        if finished {
            exchange.origin_ended(true);
        }
        if let Some(refusal) = exchange.fault() {
            let outcome = if refusal.status.starts_with('4') { Outcome::BadRequest } else { Outcome::TargetReset };
            return self.end_badly(cx, session, &refusal, outcome);
        }
        if !exchange.is_answered() {
            // The client reads no more, or has ended inside its request: behind it nothing is read.
            return if gone { Next::End(Outcome::ClientReset) } else { Next::Wait };
        }
        if unsaid {
            return Next::Wait;
        }
        let behind = exchange.take_behind();
        self.leave_origin(cx, session);
        let Direction::Socks { users, .. } = &self.settings.direction else { return Next::End(Outcome::Closed) };
        let Some(behind) = behind.filter(|_| self.drain.is_none()) else {
            return self.send_away(cx, session, Outcome::Closed);
        };
        session.log(cx.now, Outcome::Closed, false);
        session.forget_request(cx.now);
        session.relay.end_exchange();
        session.enter(cx.now, Stage::Greeting(Front::again(users.clone(), &behind)));
        self.greet(cx, index, session)
    }

    /// Ends a relay that has lasted longer than it may; a client that waits for an answer is told why there is none.
    pub(super) fn give_up_exchange(
        &mut self,
        cx: &mut Context<'_>,
        session: &mut Session,
        why: Denial,
        outcome: Outcome,
    ) -> Next {
        if session.relay.exchange.is_none() {
            return Next::End(outcome);
        }
        self.end_badly(cx, session, &http::denial(why), outcome)
    }

    /// Ends an exchange at fault, with an answer if the client has got nothing of another.
    fn end_badly(&mut self, cx: &mut Context<'_>, session: &mut Session, refusal: &Refusal, outcome: Outcome) -> Next {
        session.detail = refusal.text.to_owned();
        let silent = session.relay.exchange.as_ref().filter(|exchange| exchange.is_silent());
        let Some(answer) = silent.map(|exchange| exchange.refuse(refusal)) else { return Next::End(outcome) };
        self.leave_origin(cx, session);
        session.relay.push_outward(answer.into());
        self.send_away(cx, session, outcome)
    }

    /// Parts with the connection to the origin: nothing more is expected of it.
    fn leave_origin(&mut self, cx: &mut Context<'_>, session: &mut Session) {
        let Some(id) = session.connection else { return };
        self.collect(cx, session);
        // Its end is reported for a connection without an owner.
        self.disown(id);
        if session.relay.engine_finished() {
            cx.endpoint.shutdown(id);
        } else {
            cx.endpoint.abort(cx.now, id);
        }
    }
}
