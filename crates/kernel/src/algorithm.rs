//! The congestion controls that can be loaded.

use schemars::JsonSchema;
use serde::Serialize;

/// A congestion control, as a BPF object.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Algorithm {
    /// Name on the command line; that of the policy in the simulator.
    pub name: &'static str,
    /// Name in the kernel, for `setsockopt(TCP_CONGESTION)`.
    pub kernel_name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// The ELF file.
    #[serde(skip)]
    pub(crate) object: &'static [u8],
}

/// Congestion controls in the order of their listing.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "lia",
        kernel_name: "ab_lia",
        about: "linked increases: all subflows together grow like one TCP on the best path (RFC 6356)",
        object: include_bytes!("../bpf/lia.bpf.o"),
    },
    Algorithm {
        name: "olia",
        kernel_name: "ab_olia",
        about: "linked increases that shift windows to the paths with the longest loss-free runs",
        object: include_bytes!("../bpf/olia.bpf.o"),
    },
    Algorithm {
        name: "balia",
        kernel_name: "ab_balia",
        about: "linked increases and decreases, balanced between friendliness and responsiveness",
        object: include_bytes!("../bpf/balia.bpf.o"),
    },
    Algorithm {
        name: "wvegas",
        kernel_name: "ab_wvegas",
        about: "vegas on every subflow, sharing one budget of queued packets by their rates",
        object: include_bytes!("../bpf/wvegas.bpf.o"),
    },
    Algorithm {
        name: "veno",
        kernel_name: "ab_veno",
        about: "reno that takes a loss for random while few packets are queued; each subflow by itself",
        object: include_bytes!("../bpf/veno.bpf.o"),
    },
    Algorithm {
        name: "mveno-r",
        kernel_name: "ab_mveno_r",
        about: "veno with LIA's linked increase (reconstruction: the weights were not published)",
        object: include_bytes!("../bpf/mveno-r.bpf.o"),
    },
];

impl Algorithm {
    /// Finds an algorithm by either of its names.
    pub fn find(name: &str) -> Option<&'static Algorithm> {
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name || algorithm.kernel_name == name)
    }
}
