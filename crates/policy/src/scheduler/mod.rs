//! Packet schedulers: which unsent bytes leave on which subflow, now or later.

mod feedback;
mod per_subflow;
mod prospects;
mod skip;
mod tags;
#[cfg(test)]
mod testing;
mod turns;

use crate::registry::{self, Built, Kind, policies};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Instant, Seed};

pub use anabranch::Anabranch;
pub use blest::Blest;
pub use blest_kernel::BlestKernel;
pub use daps::Daps;
pub use ecf::Ecf;
pub use ecf_kernel::EcfKernel;
pub use edpf::Edpf;
pub use hsr::Hsr;
pub use late::Late;
pub use linux_burst::LinuxBurst;
pub use lts::Lts;
pub use lws::Lws;
pub use min_rtt::MinRtt;
pub use otias::Otias;
pub use peekaboo::Peekaboo;
pub use ratio::Ratio;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use single::Single;
pub use sttf::{Sttf, SttfCode};
pub use weighted::Weighted;

/// Decides which subflow carries which bytes next. Sees the view, touches nothing else.
///
/// The engine asks only when it matters: at least two subflows are usable, one of them has room, and the window admits
/// unsent data. It checks every answer; an impossible one, or a wait while nothing is in flight, is overruled and
/// counted.
pub trait Scheduler: Send {
    /// Called again and again until it answers `Wait` or nothing can be sent.
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision;
    /// Called for each event in the order it happened. Most schedulers have no use for it.
    fn observe(&mut self, _now: Instant, _event: &Event) {}
    /// Called once before all other methods. Draw from `seed.stream("name of the scheduler")`.
    fn seed(&mut self, _seed: Seed) {}
}

/// Abilities of a scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capabilities {
    /// True if it sends copies ([`Decision::Repeat`]): then it is asked also while no data is unsent but some is
    /// unacknowledged.
    pub repeats: bool,
}

impl Kind for dyn Scheduler {
    type Policy = Box<Self>;
    type Capabilities = Capabilities;
}

impl<P: Scheduler + 'static> From<P> for Built<dyn Scheduler> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: Box::new(policy), capabilities: Capabilities::default() }
    }
}

/// A scheduler that can be named.
pub type Entry = registry::Entry<dyn Scheduler>;

policies! {
    SCHEDULERS:
    // Turns and copies.
    single,
    round_robin,
    weighted,
    ratio,
    redundant,
    // One number per subflow.
    min_rtt,
    hsr,
    lws,
    lts,
    linux_burst,
    // Wait or send.
    ecf,
    ecf_kernel,
    blest,
    blest_kernel,
    cp,
    peekaboo,
    // Plans.
    daps,
    otias,
    sttf with code,
    edpf,
    // Forward prediction.
    linux_proportional,
    fps,
    ocps,
    stms,
    f2p_dps,
    f2p_dps_printed,
    dpsaf,
    late,
    late_nested,
    // Ours.
    anabranch,
}

/// Returns true if waiting for `subflow` can end: an acknowledgment of it is due.
fn ack_due(subflow: &SubflowView) -> bool {
    !subflow.in_flight.is_zero()
}

/// Waits for the subflow that is to send the first unsent byte. If no ACK of it is due, the fastest with room sends it.
fn wait_for(holder: Option<&SubflowView>, view: &View<'_>) -> Decision {
    match view.fastest_with_room() {
        Some(fastest) if !holder.is_some_and(ack_due) && !view.sendable.is_zero() => Decision::send(fastest.id),
        _ => Decision::WAIT,
    }
}

/// `a / b`, which is twice as fast where both are small.
fn quotient(a: u64, b: u64) -> u64 {
    match (u32::try_from(a), u32::try_from(b)) {
        (Ok(a), Ok(b)) => u64::from(a / b),
        _ => a / b,
    }
}
