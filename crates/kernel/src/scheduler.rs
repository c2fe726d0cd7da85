//! MPTCP schedulers, for a kernel that takes them from BPF (`mptcp_sched_ops`). No released one does.

use crate::algorithm::{Algorithm, AlgorithmKind};
use crate::btf::{Btf, Kind};
use crate::load::{self, AROUND, LoadError, Operations, Referent};
use crate::object::Object;
use crate::sys;
use schemars::JsonSchema;
use serde::Serialize;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Schedulers in the order of their listing.
pub const SCHEDULERS: &[Algorithm] = &[
    Algorithm {
        kind: AlgorithmKind::Scheduler,
        name: "min-rtt",
        kernel_name: "ab_min_rtt",
        about: "the lowest round trip with room",
        object: include_bytes!("../bpf/min-rtt.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::Scheduler,
        name: "round-robin",
        kernel_name: "ab_round_robin",
        about: "the subflows take turns",
        object: include_bytes!("../bpf/round-robin.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::Scheduler,
        name: "redundant",
        kernel_name: "ab_redundant",
        about: "all subflows with room at once; repeated data on all that are idle",
        object: include_bytes!("../bpf/redundant.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::Scheduler,
        name: "blest",
        kernel_name: "ab_blest",
        about: "skips a slow subflow that would let the peer's window block the fast one",
        object: include_bytes!("../bpf/blest.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::Scheduler,
        name: "ecf",
        kernel_name: "ab_ecf",
        about: "waits for the fastest subflow while that completes the data earlier",
        object: include_bytes!("../bpf/ecf.bpf.o"),
    },
];

/// State of a scheduler in the running kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct SchedulerStatus {
    /// Name on the command line.
    pub name: &'static str,
    /// Name in the kernel.
    pub kernel_name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Use of it in this kernel.
    pub state: SchedulerState,
}

/// Use of a scheduler in the running kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerState {
    /// The kernel takes no schedulers from BPF.
    Waiting,
    /// It can be loaded.
    Loadable,
    /// Connections can use it.
    Registered,
}

/// The state of every scheduler in the running kernel. Changes nothing.
pub fn schedulers() -> Vec<SchedulerStatus> {
    let bytes = std::fs::read(load::BTF).unwrap_or_default();
    let takes = Btf::parse(&bytes).is_some_and(|kernel| waits_for(&kernel).is_none());
    let registered = AlgorithmKind::Scheduler.registered().unwrap_or_default();
    let status = |scheduler: &Algorithm| SchedulerStatus {
        name: scheduler.name,
        kernel_name: scheduler.kernel_name,
        about: scheduler.about,
        state: match takes {
            _ if registered.iter().any(|name| name == scheduler.kernel_name) => SchedulerState::Registered,
            true => SchedulerState::Loadable,
            false => SchedulerState::Waiting,
        },
    };
    SCHEDULERS.iter().map(status).collect()
}

/// Words for the lacks of a kernel that takes no schedulers; `None` if it takes them.
pub(crate) fn waits_for(kernel: &Btf<'_>) -> Option<String> {
    let mut lacks = Vec::new();
    let operations = AlgorithmKind::Scheduler.places().operations;
    let around = format!("{AROUND}{operations}");
    if kernel.find(Kind::Struct, &around).is_none() {
        lacks.push(format!("no struct `{around}`"));
    }
    let members = kernel.find(Kind::Struct, operations).and_then(|kind| kernel.members(kind)).unwrap_or_default();
    let has = |name: &str| members.iter().any(|member| member.name == name);
    let mut missing: Vec<&str> = Vec::new();
    for object in SCHEDULERS.iter().filter_map(|scheduler| scheduler.parsed().ok()) {
        for program in &object.programs {
            let lack = format!("no member `{}` in `{operations}`", program.name);
            if !has(program.name) && !lacks.contains(&lack) {
                lacks.push(lack);
            }
            missing.extend(program.references.iter().map(|(_, name)| *name).filter(|name| *name != MEMORIES));
        }
    }
    missing.sort_unstable();
    missing.dedup();
    missing.retain(|name| kernel.find(Kind::Function, name).is_none());
    if !missing.is_empty() {
        lacks.push(format!("no function `{}`", missing.join("`, `")));
    }
    (!lacks.is_empty()).then(|| lacks.join(", "))
}

/// The symbol of the memories of connections.
pub(crate) const MEMORIES: &str = "memories";

/// Lets the verifier of the running kernel judge the programs of a scheduler also where none can be registered: as
/// programs of a congestion control, with another iterator in place of the one over subflows, and unknown results in
/// place of functions that the kernel lacks. All accesses to its structs are moved to their places and checked; nothing
/// is registered, nothing runs, nothing stays.
///
/// # Errors
/// If the verifier refuses a program, a struct lacks a field, or the process may load nothing.
pub fn rehearse(scheduler: &'static Algorithm) -> Result<(), LoadError> {
    let object = scheduler.parsed()?;
    let bytes = load::kernel_bytes()?;
    let kernel = load::types_of_kernel(&bytes)?;
    let operations = Operations::find(&kernel, AlgorithmKind::CongestionControl.places().operations)?;
    // Takes a socket and returns a number, as the programs do.
    let (index, _) = operations.member(&kernel, "ssthresh")?;
    let btf = load::types(&object, scheduler.name)?;
    let memories = memories(scheduler, &object, &btf)?;
    let stand_in = |name: &str| match name.strip_prefix("bpf_iter_mptcp_subflow_") {
        _ if name == MEMORIES => Some(Referent::Map(memories.as_raw_fd())),
        Some(step) => kernel.find(Kind::Function, &format!("bpf_iter_bits_{step}")).map(Referent::Function),
        None if name.starts_with("mptcp_") => Some(Referent::Helper(BPF_FUNC_GET_PRANDOM_U32)),
        None => kernel.find(Kind::Function, name).map(Referent::Function),
    };
    for program in &object.programs {
        let instructions = load::resolve_by(program, stand_in)?;
        load::verify(&object, program, &instructions, &operations.target(index), btf.as_fd())?;
    }
    Ok(())
}

/// A helper without arguments whose result the verifier does not know.
const BPF_FUNC_GET_PRANDOM_U32: i32 = 7;

/// Makes the map with the memory of each connection.
pub(crate) fn memories(scheduler: &Algorithm, object: &Object<'_>, btf: &OwnedFd) -> Result<OwnedFd, LoadError> {
    let damaged = || LoadError::Damaged(scheduler.name);
    let value = object.btf.find(Kind::Struct, "memory").ok_or_else(damaged)?;
    let key = object.btf.find(Kind::Integer, "int").ok_or_else(damaged)?;
    let size = object.btf.size(value).ok_or_else(damaged)?;
    sys::create_storage(MEMORIES, btf.as_fd(), key, value, size as u32)
        .map_err(|error| load::failed("make the map of connections", error))
}

#[cfg(test)]
mod tests;
