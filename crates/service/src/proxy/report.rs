//! Reports of ended connections and of errors, at a bounded rate.

use super::limits::Limit;
use anabranch_engine::path_use::PathUse;
use anabranch_engine::{ConnectionStats, FallbackReason, SubflowStats};
use anabranch_units::{Duration, Instant, in_one_line};
use std::net::SocketAddr;

/// Outcome of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// Closed in order, both ways.
    Closed,
    /// The client gave it up.
    ClientReset,
    /// The other side gave it up.
    TargetReset,
    /// The client did not say in time, or not well, what it wants.
    BadRequest,
    /// A limit was in the way.
    Refused(Limit),
    /// The destination is none that may be connected to.
    NotAllowed,
    /// The name has no address.
    NoSuchName,
    /// The destination could not be connected to.
    ConnectFailed,
    /// No progress for too long.
    Idle,
    /// Reset as the largest holder when memory ran out.
    OutOfMemory,
    /// Still running when the drain ended.
    Drained,
}

impl Outcome {
    /// The word in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Closed => "closed",
            Outcome::ClientReset => "client-reset",
            Outcome::TargetReset => "target-reset",
            Outcome::BadRequest => "bad-request",
            Outcome::Refused(_) => "refused",
            Outcome::NotAllowed => "not-allowed",
            Outcome::NoSuchName => "no-such-name",
            Outcome::ConnectFailed => "connect-failed",
            Outcome::Idle => "idle",
            Outcome::OutOfMemory => "out-of-memory",
            Outcome::Drained => "drained",
        }
    }
}

/// One connection, for its line in the log.
pub(super) struct Summary<'a> {
    pub(super) client: SocketAddr,
    pub(super) target: &'a str,
    pub(super) outcome: Outcome,
    pub(super) detail: &'a str,
    pub(super) lasted: Duration,
    pub(super) from_client: u64,
    pub(super) to_client: u64,
    pub(super) engine: Option<&'a (ConnectionStats, Vec<SubflowStats>)>,
    pub(super) why: Option<&'a str>,
}

impl Summary<'_> {
    /// Writes the line.
    pub(super) fn log(&self) {
        let (stats, subflows) = match self.engine {
            Some((stats, subflows)) => (Some(stats), subflows.as_slice()),
            None => (None, &[][..]),
        };
        let remarks = stats.map_or_else(Vec::new, |stats| PathUse::of(stats, subflows).remarks());
        let shares: Vec<String> = subflows
            .iter()
            .map(|subflow| {
                let rtt = subflow.srtt.map_or_else(|| "?".to_owned(), |rtt| format!("{:.1}ms", rtt.as_millis_f64()));
                let (sent, received) = (subflow.bytes_sent, subflow.bytes_received);
                format!("{} {} sent={sent} received={received} rtt={rtt}", subflow.local, subflow.remote)
            })
            .collect();
        tracing::info!(
            target: "anabranch::proxy",
            client = %self.client,
            destination = &*in_one_line(self.target),
            outcome = self.outcome.name(),
            detail = &*in_one_line(self.detail),
            seconds = (self.lasted.as_secs_f64() * 1000.0).round() / 1000.0,
            from_client = self.from_client,
            to_client = self.to_client,
            subflows = shares.join("; "),
            fallback = stats.and_then(|stats| stats.fallback).map(FallbackReason::name),
            remarks = remarks.join("; "),
            why = self.why,
            retransmitted = subflows.iter().map(|subflow| subflow.retransmitted).sum::<u64>(),
            reinjected = stats.map_or(0, |stats| stats.reinjected),
            overruled = stats.map_or(0, |stats| stats.overruled.total()),
            "connection"
        );
    }
}

/// Lets one message of a kind through in a second, and counts the others.
#[derive(Default)]
pub(super) struct Throttle {
    last: Option<Instant>,
    suppressed: u64,
}

impl Throttle {
    /// Number of reports suppressed since the last; `None` if this one is suppressed as well.
    pub(super) fn pass(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.since(last) < Duration::from_secs(1)) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}
