//! The order in which changes are tried where not all of them can be: first those on whose limits the time went.

use crate::answer::Share;
use crate::{Alternative, Kind, Limit};

/// Share of the time from which on a buffer counts as one that may be to blame.
const BINDS: f64 = 0.05;

/// Knowledge before anything is tried.
pub(crate) struct Known<'a> {
    /// The time by limit.
    pub(crate) shares: &'a [Share],
    /// Kinds that somebody asked for.
    pub(crate) asked: &'a [Kind],
    /// Kinds that bring a path into use that carried nothing.
    pub(crate) in_use: &'a [Kind],
    /// The path on which the connection begins.
    pub(crate) first: Option<&'a str>,
}

impl Known<'_> {
    /// Sorts alternatives: what somebody asked for, what brings a path into use, the scenario's elements, the profile's
    /// own policies and buffers that bind; then other policies; then what can only tell of others. Of each, that on
    /// whose limits most of the time went. Equals stay in their order: all of a kind before each of them.
    pub(crate) fn sort(&self, alternatives: &mut [Alternative]) {
        let rank = |it: &Alternative| match it.kind {
            kind if self.asked.contains(&kind) => 0,
            kind if self.in_use.contains(&kind) => 1,
            Kind::MtuProbing => 3,
            _ if it.cause.is_some() || it.usual => 2,
            Kind::ReceiveBuffer | Kind::SendBuffer if self.may_gain(it.kind) >= BINDS => 2,
            Kind::SinglePath => 6,
            Kind::FirstPath if self.first.is_some_and(|first| it.what.ends_with(&format!(" on {first}"))) => 5,
            Kind::Buffers | Kind::ReceiveBuffer | Kind::SendBuffer => 4,
            _ => 3,
        };
        let gain = |it: &Alternative| self.may_gain(it.kind);
        alternatives.sort_by(|a, b| rank(a).cmp(&rank(b)).then(gain(b).total_cmp(&gain(a))));
    }

    /// The share of the time that went on what this kind acts on.
    fn may_gain(&self, kind: Kind) -> f64 {
        let acts = |share: &&Share| acts_on(kind).contains(&share.limit);
        self.shares.iter().filter(acts).map(|share| share.share).sum()
    }
}

/// The limits that a kind of change acts on.
fn acts_on(kind: Kind) -> &'static [Limit] {
    use Limit as L;
    match kind {
        Kind::ReceiveBuffer | Kind::Buffers | Kind::Window => &[L::PeerWindow, L::HeadOfLine],
        Kind::SendBuffer => &[L::SendBuffer],
        Kind::NoLoss | Kind::NoReordering | Kind::NoDamage => {
            &[L::CongestionWindow, L::SlowStart, L::Timeout, L::HeadOfLine, L::InFlight, L::Handshake, L::Join]
        }
        Kind::NoJitter => &[L::CongestionWindow, L::SlowStart, L::HeadOfLine, L::InFlight, L::Timeout],
        Kind::NoMiddlebox => &[L::Timeout, L::Join, L::Handshake, L::Unused, L::CongestionWindow, L::PeerWindow],
        Kind::NoTraffic => &[L::PathFull, L::CongestionWindow, L::HeadOfLine],
        Kind::NoChange => &[L::PathDown, L::PathFull, L::Timeout, L::Scheduler, L::Unused],
        Kind::Steady => &[L::PathFull, L::PathDown, L::CongestionWindow, L::HeadOfLine, L::InFlight],
        Kind::FasterInterface | Kind::FasterLink => &[L::PathFull],
        Kind::WayBack => &[L::SlowStart, L::CongestionWindow, L::PeerWindow, L::SendBuffer, L::Request, L::InFlight],
        Kind::ShorterQueue => &[L::PathFull, L::HeadOfLine, L::PeerWindow, L::InFlight],
        Kind::LongerQueue => &[L::CongestionWindow, L::SlowStart, L::Timeout],
        Kind::PromptAcks => &[L::Nagle, L::SlowStart, L::CongestionWindow, L::InFlight, L::ApplicationSends],
        Kind::NoNagle => &[L::Nagle, L::ApplicationSends],
        Kind::MtuProbing | Kind::TcpOption => &[L::Timeout, L::PeerWindow, L::CongestionWindow],
        Kind::InitialSsthresh => &[L::CongestionWindow],
        Kind::InitialWindow => &[L::SlowStart],
        Kind::FirstPath | Kind::FirstPathPolicy => &[L::Handshake, L::Request, L::Join, L::SlowStart],
        Kind::Scheduler => &[L::Scheduler, L::HeadOfLine, L::InFlight, L::PeerWindow],
        Kind::Congestion => &[L::CongestionWindow, L::Pacing],
        Kind::Reinjection => &[L::HeadOfLine, L::Timeout, L::InFlight, L::PathDown],
        Kind::AckPath => &[L::InFlight],
        Kind::WithoutPath => &[L::HeadOfLine, L::InFlight, L::PeerWindow],
        _ => &[],
    }
}
