//! Segments that belong to no connection: SYNs, what completes a handshake of which nothing was kept, and what is
//! refused.

use super::{Endpoint, slot_mut};
use crate::Purpose;
use crate::connection::{self, Accept, Connection, answer_with_cookie, answer_without_join};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, FlowKey, JoinSyn, MpOption, ResetReason, Segment};
use std::net::IpAddr;

/// Result of an ACK that may complete a join of which no subflow was made.
enum Resumed {
    /// Its subflow is there, and takes the ACK next.
    Made,
    /// No such join is remembered.
    Unknown,
    /// Its connection takes it no more.
    Forbidden,
}

/// Allowance of resets to strangers (RFC 9293 §3.10.7.1 wants one for each; who floods us with what belongs to nothing
/// shall not have us flood others).
#[derive(Debug, Default)]
pub(super) struct Refusals {
    left: u32,
    /// Time at which the allowance began to count.
    since: Option<Instant>,
}

impl Refusals {
    /// Returns true if one more refusal may leave, of `per_second` in each second.
    fn admits(&mut self, now: Instant, per_second: Option<u32>) -> bool {
        let Some(per_second) = per_second else { return true };
        if self.since.is_none_or(|since| now.since(since) >= Duration::from_secs(1)) {
            *self = Refusals { left: per_second, since: Some(now) };
        }
        self.left > 0
    }

    /// The same, and it leaves.
    fn admit(&mut self, now: Instant, per_second: Option<u32>) -> bool {
        let admitted = self.admits(now, per_second);
        self.left = self.left.saturating_sub(1);
        admitted
    }
}

impl Endpoint {
    /// True if a segment of this flow with these control bits would change nothing and be answered by nothing, so that
    /// a driver need not read the rest of it; counts it then.
    pub fn ignores(&mut self, now: Instant, flow: &FlowKey, flags: Flags) -> bool {
        let (resets, opens) = (flags.has(Flags::RST), flags.has(Flags::SYN) && !flags.has(Flags::ACK));
        // With detours a segment of an unknown flow may be one of ours.
        if self.shared.config.ack_rewrite || self.shared.demux.find(&flow.reversed()).is_some() {
            return false;
        }
        let welcome = !resets && self.is_local(flow.dst) && (opens || self.shared.has_answered(now));
        let ignored = !welcome && (resets || !self.refusals.admits(now, self.shared.config.resets_per_second));
        self.shared.counters.unknown_flow += u64::from(ignored);
        ignored
    }

    pub(super) fn handle_stranger(&mut self, now: Instant, segment: &mut Segment) {
        self.shared.memory.on_stranger(now, segment);
        if !segment.flags.has(Flags::RST) && self.is_local(segment.flow.dst) {
            let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
            if opens && self.handle_syn(now, segment) {
                return;
            }
            let answers = segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN);
            if answers && self.shared.has_answered(now) {
                return self.handle_answer(now, segment);
            }
        }
        self.refuse_stranger(now, segment);
    }

    /// Refuses a segment that belongs to no known flow.
    fn refuse_stranger(&mut self, now: Instant, segment: &Segment) {
        self.shared.counters.unknown_flow += 1;
        let came_as = segment.flow.reversed();
        if segment.flags.has(Flags::RST)
            && let Some((_, (id, subflow))) = self.by_detour(&came_as)
            && let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut())
        {
            connection.on_detour_refused(now, subflow, &came_as);
        }
        self.refuse(now, segment, None);
    }

    pub(super) fn is_local(&self, address: IpAddr) -> bool {
        self.shared.locals.contains(address)
    }

    /// Handles a SYN; returns false if no listener wants it.
    fn handle_syn(&mut self, now: Instant, syn: &Segment) -> bool {
        let join = syn.options.mptcp().iter().find_map(|option| match option {
            MpOption::JoinSyn(join) => Some(*join),
            _ => None,
        });
        if let Some(join) = join {
            self.handle_join(now, syn, &join);
            return true;
        }
        let listens = self.listening.contains(&syn.flow.dst_port);
        if listens {
            self.accept(now, syn);
        }
        listens
    }

    fn handle_join(&mut self, now: Instant, syn: &Segment, join: &JoinSyn) {
        let id = self.shared.tokens.get(&join.token).copied();
        let connection =
            id.and_then(|id| slot_mut(&mut self.connections, id)).and_then(|slot| slot.connection.as_mut());
        let verdict = match connection {
            Some(connection) => connection.accept_join(now, syn, join, &mut self.shared),
            None => Accept::Refused(ResetReason::MptcpError),
        };
        match (verdict, id) {
            (Accept::Joined, Some(id)) => {
                self.touch(id.index);
                self.apply_routes();
            }
            (Accept::Refused(reason), _) => {
                self.shared.counters.joins_refused += 1;
                self.refuse(now, syn, Some(reason));
            }
            (Accept::Unjoined, _) => {
                self.shared.counters.joins_refused += 1;
                answer_without_join(now, syn, &mut self.shared);
            }
            (Accept::Joined, None) => unreachable!("only a connection accepts a join"),
        }
    }

    fn accept(&mut self, now: Instant, syn: &Segment) {
        if self.half_open.len() >= self.shared.config.max_half_open {
            return answer_with_cookie(now, syn, &mut self.shared);
        }
        let id = self.allocate();
        let connection = Connection::accept(now, id, syn, &mut self.shared);
        self.settle(id, connection);
    }

    /// A segment that may answer a SYN/ACK of which nothing, or next to nothing, was kept. What does not is not reset
    /// while it may be of a client whose third ACK is lost: its first data will come again.
    fn handle_answer(&mut self, now: Instant, segment: &mut Segment) {
        let is_join = |option: &MpOption| matches!(option, MpOption::JoinAck(_));
        if segment.options.mptcp().iter().any(is_join) {
            match self.resume_join(now, segment) {
                Resumed::Made => return self.handle_segment(now, segment),
                // It may be of a join that had to go for others, which is not its peer's fault: no RST, as for a lost
                // cookie.
                Resumed::Unknown if self.shared.pending_joins.has_lost(now) => {
                    self.shared.counters.cookies_invalid += 1;
                    return;
                }
                Resumed::Unknown | Resumed::Forbidden => {}
            }
        }
        let port = segment.flow.dst_port;
        if !self.listening.contains(&port) || !self.shared.cookies.are_out(now) {
            return self.refuse_stranger(now, segment);
        }
        let echo = segment.options.timestamps().filter(|_| self.shared.config.profile.timestamps);
        match self.shared.cookies.answered(now, segment, echo.map(|timestamps| timestamps.echo)) {
            // Data that has overtaken the keys; they will come.
            Some(_) if segment.options.has_dss() => {}
            Some(cookie) => {
                let id = self.allocate();
                let connection = Connection::resume(now, id, &cookie, segment, &mut self.shared);
                self.settle(id, connection);
                self.handle_segment(now, segment);
            }
            None => self.shared.counters.cookies_invalid += 1,
        }
    }

    /// Makes the subflow of a join whose SYN was answered without one.
    fn resume_join(&mut self, now: Instant, ack: &Segment) -> Resumed {
        let shared = &mut self.shared;
        let Some(pending) = shared.pending_joins.take(now, &ack.flow, (ack.seq, ack.ack), &shared.cookies) else {
            return Resumed::Unknown;
        };
        let Some(id) = shared.tokens.get(&pending.join.token).copied() else { return Resumed::Forbidden };
        let connection = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut());
        let resumed = connection.is_some_and(|connection| connection.resume_join(now, &pending, ack, &mut self.shared));
        self.apply_routes();
        if resumed { Resumed::Made } else { Resumed::Forbidden }
    }

    fn refuse(&mut self, now: Instant, segment: &Segment, reason: Option<ResetReason>) {
        let Some(mut reset) = connection::reset_for(segment, Vec::new()) else { return };
        if self.refusals.admit(now, self.shared.config.resets_per_second) {
            if let Some(reason) = reason {
                reset.options.push_mptcp(self.shared.reset_option(reason));
            }
            let size = reset.wire_length();
            self.shared.send(u64::MAX, Box::new(reset), size, Purpose::Reset);
        }
    }
}
