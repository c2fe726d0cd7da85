//! The states of the state machine and their gains ("Summary of Control Behavior in the State Machine").

/// `BBR.state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    /// Doubles the rate in each round.
    #[default]
    Startup,
    /// Empties the queue that Startup filled.
    Drain,
    /// ProbeBW_DOWN: slower than the path delivers.
    Down,
    /// ProbeBW_CRUISE: as fast as it delivers.
    Cruise,
    /// ProbeBW_REFILL: a round without the short-term model.
    Refill,
    /// ProbeBW_UP: faster than it delivers.
    Up,
    /// Keeps little in flight, to see the path without a queue of its own.
    ProbeRtt,
}

impl Phase {
    /// Name for test benches.
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::Down => "probe-bw-down",
            Phase::Cruise => "probe-bw-cruise",
            Phase::Refill => "probe-bw-refill",
            Phase::Up => "probe-bw-up",
            Phase::ProbeRtt => "probe-rtt",
        }
    }

    /// `BBR.pacing_gain`.
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Phase::Startup => STARTUP_PACING_GAIN,
            Phase::Drain => 0.5,
            Phase::Down => 0.9,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 1.0,
            Phase::Up => 1.25,
        }
    }

    /// `BBR.cwnd_gain`.
    pub(super) fn cwnd_gain(self) -> f64 {
        match self {
            Phase::Startup | Phase::Drain | Phase::Down | Phase::Cruise | Phase::Refill => 2.0,
            Phase::Up => 2.25,
            Phase::ProbeRtt => 0.5,
        }
    }

    /// `IsInAProbeBWState()`.
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// `IsProbingBW()`: losses belong to the long-term model.
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Phase::Startup | Phase::Refill | Phase::Up)
    }
}

/// 4 · ln 2, rounded as the draft does: the smallest gain that doubles the rate in each round ("Pacing State and
/// Parameters").
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
