//! Packet schedulers: which unsent bytes leave on which subflow, now or later.

mod blest;
mod blest_kernel;
mod cp;
mod daps;
mod dpsaf;
mod ecf;
mod ecf_kernel;
mod edpf;
mod f2p_dps;
mod f2p_dps_printed;
mod feedback;
mod fps;
mod hsr;
mod late;
mod late_nested;
mod linux_burst;
mod linux_proportional;
mod lts;
mod lws;
mod min_rtt;
mod ocps;
mod otias;
mod peekaboo;
mod per_subflow;
mod prospects;
mod ratio;
mod redundant;
mod round_robin;
mod single;
mod skip;
mod stms;
mod sttf;
mod tags;
#[cfg(test)]
mod testing;
mod turns;
mod weighted;

use crate::registry::{Domain, Entry, Parameter};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Instant, Seed};

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
/// unsent data. It checks every answer; an impossible one, or a wait while nothing is in flight, is overruled and counted.
pub trait Scheduler: Send {
    /// Called again and again until it answers `Wait` or nothing can be sent.
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision;
    /// Called for each event in the order it happened. Most schedulers have no use for it.
    fn observe(&mut self, _now: Instant, _event: &Event) {}
    /// Whether it sends copies ([`Decision::Repeat`]): it is asked then also while nothing is unsent and something is
    /// not acknowledged.
    fn repeats(&self) -> bool {
        false
    }
    /// Called once before all else: the only chance there is. Draw from `seed.stream("name of the scheduler")`.
    fn seed(&mut self, _seed: Seed) {}
}

/// Every policy of this kind.
pub const SCHEDULERS: &[Entry<dyn Scheduler>] = &[
    Entry {
        name: "single",
        about: "everything on one subflow; the baseline",
        paper: None,
        parameters: single::PARAMETERS,
        source: include_str!("single.rs"),
        build: |p| Box::new(Single::new(p)),
    },
    Entry {
        name: "round-robin",
        about: "the subflows take turns",
        paper: None,
        parameters: round_robin::PARAMETERS,
        source: include_str!("round_robin.rs"),
        build: |p| Box::new(RoundRobin::new(p)),
    },
    Entry {
        name: "weighted",
        about: "turns in proportion to cwnd / srtt",
        paper: Some("Al et al., LS-SCTP, after F2P"),
        parameters: &[],
        source: include_str!("weighted.rs"),
        build: |_| Box::new(Weighted::default()),
    },
    Entry {
        name: "ratio",
        about: "turns in a fixed ratio",
        paper: Some("Saha et al. 2019, the scheduler below MuSher"),
        parameters: ratio::PARAMETERS,
        source: include_str!("ratio.rs"),
        build: |p| Box::new(Ratio::new(p)),
    },
    Entry {
        name: "redundant",
        about: "every segment on every subflow",
        paper: Some("Linux MPTCP v0.9x, second version"),
        parameters: &[],
        source: include_str!("redundant.rs"),
        build: |_| Box::new(Redundant::default()),
    },
    Entry {
        name: "min-rtt",
        about: "the lowest SRTT with room",
        paper: Some("Linux MPTCP v0.95, default"),
        parameters: &[],
        source: include_str!("min_rtt.rs"),
        build: |_| Box::new(MinRtt),
    },
    Entry {
        name: "linux-burst",
        about: "the least lingering queue of all; waits if that has no room",
        paper: Some("Linux 5.10 and later, default"),
        parameters: &[],
        source: include_str!("linux_burst.rs"),
        build: |_| Box::new(LinuxBurst::default()),
    },
    Entry {
        name: "hsr",
        about: "the highest cwnd / srtt with room",
        paper: Some("Kimura et al. 2017, as LATE cites it"),
        parameters: &[],
        source: include_str!("hsr.rs"),
        build: |_| Box::new(Hsr),
    },
    Entry {
        name: "lws",
        about: "the most room in its window",
        paper: Some("Kimura et al. 2017, as LATE cites it"),
        parameters: &[],
        source: include_str!("lws.rs"),
        build: |_| Box::new(Lws),
    },
    Entry {
        name: "lts",
        about: "the least srtt per room in its window",
        paper: Some("Kimura et al. 2017, as LATE cites it"),
        parameters: &[],
        source: include_str!("lts.rs"),
        build: |_| Box::new(Lts),
    },
    Entry {
        name: "ecf",
        about: "waits for the fastest subflow while that completes the data earlier",
        paper: Some("Lim et al. 2017"),
        parameters: ecf::PARAMETERS,
        source: include_str!("ecf.rs"),
        build: |p| Box::new(Ecf::new(p)),
    },
    Entry {
        name: "ecf-kernel",
        about: "ECF as Linux MPTCP has it: at least one window, a margin of at least 100 ms",
        paper: Some("Linux MPTCP v0.95, after Lim et al. 2017"),
        parameters: ecf_kernel::PARAMETERS,
        source: include_str!("ecf_kernel.rs"),
        build: |p| Box::new(EcfKernel::new(p)),
    },
    Entry {
        name: "blest",
        about: "skips a slow subflow that would let the send window block the fast one; as printed",
        paper: Some("Ferlin et al. 2016"),
        parameters: blest::PARAMETERS,
        source: include_str!("blest.rs"),
        build: |p| Box::new(Blest::new(p)),
    },
    Entry {
        name: "blest-kernel",
        about: "BLEST as Linux MPTCP has it: other constants, whole rounds, slow start",
        paper: Some("Linux MPTCP v0.95, after Ferlin et al. 2016"),
        parameters: blest_kernel::PARAMETERS,
        source: include_str!("blest_kernel.rs"),
        build: |p| Box::new(BlestKernel::new(p)),
    },
    Entry {
        name: "fps",
        about: "a slow subflow starts behind what the faster ones deliver meanwhile if nothing is lost",
        paper: Some("Mirani et al. 2010, after Ni et al. 2014"),
        parameters: fps::PARAMETERS,
        source: include_str!("fps.rs"),
        build: |p| Box::new(fps::Fps::scheduler(p)),
    },
    Entry {
        name: "ocps-r",
        about: "FPS, corrected by whether the last round arrived early or late; reconstructed",
        paper: Some("Ni et al. 2015 (abstract only)"),
        parameters: ocps::PARAMETERS,
        source: include_str!("ocps.rs"),
        build: |p| Box::new(ocps::scheduler(p)),
    },
    Entry {
        name: "stms-r",
        about: "the slow subflow sends ahead by a gap of DSNs that closes when its data arrive; reconstructed",
        paper: Some("Shi et al. 2018"),
        parameters: &[],
        source: include_str!("stms.rs"),
        build: |_| Box::new(stms::Stms::scheduler()),
    },
    Entry {
        name: "cp-r",
        about: "min-RTT among as many subflows as the receive buffer bears; reconstructed",
        paper: Some("Oh, Lee 2015 (abstract only)"),
        parameters: cp::PARAMETERS,
        source: include_str!("cp.rs"),
        build: |p| Box::new(cp::Cp::new(p)),
    },
    Entry {
        name: "f2p-dps",
        about: "FPS with the losses that are to be expected on either subflow; the equations repaired",
        paper: Some("Ni et al. 2014"),
        parameters: f2p_dps::PARAMETERS,
        source: include_str!("f2p_dps.rs"),
        build: |p| Box::new(f2p_dps::scheduler(p)),
    },
    Entry {
        name: "f2p-dps-printed",
        about: "F2P-DPS with the paper's equations as printed, as far as they can be evaluated",
        paper: Some("Ni et al. 2014"),
        parameters: &[],
        source: include_str!("f2p_dps_printed.rs"),
        build: |_| Box::new(f2p_dps_printed::scheduler()),
    },
    Entry {
        name: "dpsaf-r",
        about: "forward prediction by the most likely case of each round, corrected by feedback; reconstructed",
        paper: Some("Xue et al. 2018 (abstract only)"),
        parameters: dpsaf::PARAMETERS,
        source: include_str!("dpsaf.rs"),
        build: |p| Box::new(dpsaf::scheduler(p)),
    },
    Entry {
        name: "peekaboo",
        about: "learns whether to wait for the fast subflow or to send on the next one (LinUCB); draws from the seed",
        paper: Some("Wu et al. 2020"),
        parameters: peekaboo::PARAMETERS,
        source: include_str!("peekaboo.rs"),
        build: |p| Box::new(Peekaboo::new(p)),
    },
    Entry {
        name: "edpf",
        about: "earliest delivery path first: an oracle that needs the simulator's rates and delays",
        paper: Some("Chebrolu et al. 2005"),
        parameters: edpf::PARAMETERS,
        source: include_str!("edpf.rs"),
        build: |p| Box::new(Edpf::new(p)),
    },
    Entry {
        name: "otias",
        about: "each segment joins the queue in which it is expected to arrive first, even behind a full window",
        paper: Some("Yang et al. 2014"),
        parameters: otias::PARAMETERS,
        source: include_str!("otias.rs"),
        build: |p| Box::new(Otias::new(p)),
    },
    Entry {
        name: "sttf",
        about: "each segment where it is predicted to arrive first, with slow-start growth; assigned anew all the time",
        paper: Some("Hurtig et al. 2019"),
        parameters: sttf::PARAMETERS,
        source: include_str!("sttf.rs"),
        build: |p| Box::new(Sttf::new(p)),
    },
    Entry {
        name: "sttf-code",
        about: "STTF as its authors' kernel has it: last RTT sample, overshoot, assigned anew when shares change",
        paper: Some("Karlstad MPTCP kernel, after Hurtig et al. 2019"),
        parameters: sttf::CODE_PARAMETERS,
        source: include_str!("sttf/code.rs"),
        build: |p| Box::new(SttfCode::new(p)),
    },
    Entry {
        name: "daps",
        about: "turns at multiples of the delays, so that what is sent in order of turns arrives in order",
        paper: Some("Kuhn et al. 2014"),
        parameters: daps::PARAMETERS,
        source: include_str!("daps.rs"),
        build: |p| Box::new(Daps::new(p)),
    },
    Entry {
        name: "linux-proportional",
        about: "a slow subflow starts behind what faster ones send in one of its RTTs",
        paper: Some("Barré 2011"),
        parameters: &[],
        source: include_str!("linux_proportional.rs"),
        build: |_| Box::new(linux_proportional::LinuxProportional::scheduler()),
    },
    Entry {
        name: "late",
        about: "the slowest subflow starts behind what the others are expected to deliver by then, losses included",
        paper: Some("Yang et al., LATE"),
        parameters: late::PARAMETERS,
        source: include_str!("late.rs"),
        build: |p| Box::new(Late::new(p)),
    },
    Entry {
        name: "late-nested",
        about: "LATE with each subflow as the master of all faster ones",
        paper: Some("after Yang et al., LATE"),
        parameters: late_nested::PARAMETERS,
        source: include_str!("late_nested.rs"),
        build: |p| Box::new(late_nested::LateNested::scheduler(p)),
    },
];

/// Whether waiting for `subflow` can end: an acknowledgment of it is due. Who waits for anything else waits for nothing.
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

/// A pure number in `min..=max`.
const fn number(name: &'static str, about: &'static str, default: f64, min: f64, max: f64) -> Parameter {
    Parameter { name, about, unit: "", domain: Domain::Number { default, min, max } }
}

/// True or false.
const fn flag(name: &'static str, about: &'static str, default: bool) -> Parameter {
    Parameter { name, about, unit: "", domain: Domain::Flag { default } }
}
