//! Congestion controls and schedulers that can be loaded, and the places where the kernel has those of a kind.

use crate::load::LoadError;
use crate::object::Object;
use crate::scheduler::SCHEDULERS;
use schemars::JsonSchema;
use serde::Serialize;

/// A congestion control or a scheduler, as a BPF object.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Algorithm {
    /// The kind of it.
    #[serde(skip)]
    pub kind: AlgorithmKind,
    /// Name on the command line; that of the policy in the simulator.
    pub name: &'static str,
    /// Name in the kernel, for `setsockopt(TCP_CONGESTION)` or `net.mptcp.scheduler`.
    pub kernel_name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// The ELF file.
    #[serde(skip)]
    pub(crate) object: &'static [u8],
}

/// The kind of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmKind {
    /// Chosen by sockets, routes, control groups and network namespaces.
    CongestionControl,
    /// Chosen by network namespaces.
    Scheduler,
}

/// Places where the kernel has the algorithms of a kind.
pub(crate) struct Places {
    /// Struct of operations that it registers.
    pub(crate) operations: &'static str,
    /// File with the names that are registered.
    pub(crate) registered: &'static str,
    /// File with the default of the caller's network namespace.
    pub(crate) default: &'static str,
    /// Name of an algorithm that every kernel has, for a default whose own is gone.
    pub(crate) built_in: &'static str,
}

impl AlgorithmKind {
    /// Every kind, in the order of their listing.
    pub const ALL: [AlgorithmKind; 2] = [AlgorithmKind::CongestionControl, AlgorithmKind::Scheduler];

    /// Its algorithms, in the order of their listing.
    pub fn algorithms(self) -> &'static [Algorithm] {
        match self {
            AlgorithmKind::CongestionControl => ALGORITHMS,
            AlgorithmKind::Scheduler => SCHEDULERS,
        }
    }

    /// Word for one of them.
    pub fn word(self) -> &'static str {
        match self {
            AlgorithmKind::CongestionControl => "congestion control",
            AlgorithmKind::Scheduler => "scheduler",
        }
    }

    /// Finds an algorithm by either of its names.
    pub fn find(self, name: &str) -> Option<&'static Algorithm> {
        self.algorithms().iter().find(|algorithm| algorithm.name == name || algorithm.kernel_name == name)
    }

    pub(crate) fn places(self) -> Places {
        match self {
            AlgorithmKind::CongestionControl => Places {
                operations: "tcp_congestion_ops",
                registered: "/proc/sys/net/ipv4/tcp_available_congestion_control",
                default: "/proc/sys/net/ipv4/tcp_congestion_control",
                built_in: "reno",
            },
            AlgorithmKind::Scheduler => Places {
                operations: "mptcp_sched_ops",
                registered: "/proc/sys/net/mptcp/available_schedulers",
                default: "/proc/sys/net/mptcp/scheduler",
                built_in: "default",
            },
        }
    }

    /// Names of this kind that the kernel has registered; `None` if it does not say.
    pub(crate) fn registered(self) -> Option<Vec<String>> {
        let names = std::fs::read_to_string(self.places().registered).ok()?;
        Some(names.split_whitespace().map(str::to_owned).collect())
    }
}

/// Congestion controls in the order of their listing.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        kind: AlgorithmKind::CongestionControl,
        name: "lia",
        kernel_name: "ab_lia",
        about: "linked increases: all subflows together grow like one TCP on the best path (RFC 6356)",
        object: include_bytes!("../bpf/lia.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::CongestionControl,
        name: "olia",
        kernel_name: "ab_olia",
        about: "linked increases that shift windows to the paths with the longest loss-free runs",
        object: include_bytes!("../bpf/olia.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::CongestionControl,
        name: "balia",
        kernel_name: "ab_balia",
        about: "linked increases and decreases, balanced between friendliness and responsiveness",
        object: include_bytes!("../bpf/balia.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::CongestionControl,
        name: "wvegas",
        kernel_name: "ab_wvegas",
        about: "vegas on every subflow, sharing one budget of queued packets by their rates",
        object: include_bytes!("../bpf/wvegas.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::CongestionControl,
        name: "veno",
        kernel_name: "ab_veno",
        about: "reno that takes a loss for random while few packets are queued; each subflow by itself",
        object: include_bytes!("../bpf/veno.bpf.o"),
    },
    Algorithm {
        kind: AlgorithmKind::CongestionControl,
        name: "mveno-r",
        kernel_name: "ab_mveno_r",
        about: "veno with LIA's linked increase (reconstruction: the weights were not published)",
        object: include_bytes!("../bpf/mveno-r.bpf.o"),
    },
];

impl Algorithm {
    /// Returns true if the kernel has something registered under its name.
    pub(crate) fn is_registered(&self) -> bool {
        self.kind.registered().is_some_and(|names| names.iter().any(|name| name == self.kernel_name))
    }

    /// Its object.
    pub(crate) fn parsed(&self) -> Result<Object<'static>, LoadError> {
        Object::parse(self.object).ok_or(LoadError::Damaged(self.name))
    }
}
