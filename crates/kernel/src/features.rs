//! Abilities of the running kernel, and what stands in the way of those that are missing.

use crate::btf::{Btf, Kind};
use crate::load::BTF;
use crate::scheduler;
use crate::sys;
use crate::watch;
use rustix::fs::statfs;
use rustix::thread::{CapabilitySet, capabilities};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

/// An ability of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Feature {
    /// Name in kebab-case.
    pub name: &'static str,
    /// The kernel has it, and this process may use it.
    pub available: bool,
    /// Use of it, or the reason for which it is missing.
    pub note: String,
}

/// A struct that kernels with TCX have (6.6).
pub(crate) const TCX: &str = "tcx_link";

/// Looks at the running kernel. Changes nothing.
pub fn features() -> Vec<Feature> {
    let bytes = std::fs::read(BTF).unwrap_or_default();
    let btf = Btf::parse(&bytes);
    let has = |kind, name: &str| btf.as_ref().is_some_and(|btf| btf.find(kind, name).is_some());
    let feature = |name, available, there: &str, missing: String| Feature {
        name,
        available,
        note: if available { there.to_owned() } else { missing },
    };
    let missing_functions: Vec<&str> = FUNCTIONS.iter().copied().filter(|name| !has(Kind::Function, name)).collect();
    let missing_capabilities = missing_capabilities();
    let mut missing_events = btf.as_ref().map_or_else(|| vec!["BTF, which describes them".into()], watch::missing);
    // The programs at the tracepoints call them too.
    missing_events.extend(missing_functions.iter().map(|name| format!("the function {name}")));
    let no_schedulers = btf.as_ref().map_or_else(|| Some("to be there".into()), scheduler::waits_for);
    let bpffs = statfs("/sys/fs/bpf").is_ok_and(|fs| fs.f_type as u64 == BPF_FS_MAGIC);
    let classifier = classifier();
    vec![
        feature(
            "btf",
            btf.is_some(),
            "the kernel describes its types, so that programs fit it without a compiler",
            format!("{BTF} cannot be read; CONFIG_DEBUG_INFO_BTF makes it"),
        ),
        feature(
            "struct-ops",
            has(Kind::Struct, OPERATIONS) && has(Kind::Function, LINKS),
            "congestion controls can be BPF programs",
            format!("its BTF lacks `{OPERATIONS}` (CONFIG_BPF_JIT, CONFIG_BPF_SYSCALL) or `{LINKS}` (Linux 6.4)"),
        ),
        feature(
            "kernel-functions",
            missing_functions.is_empty(),
            "those that our programs call are there",
            format!("its BTF lacks {}; Linux 6.2 has them", missing_functions.join(", ")),
        ),
        feature(
            "mptcp",
            std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1"),
            "sockets of this network namespace can be MPTCP",
            "net.mptcp.enabled is not 1; without MPTCP the controllers work on plain TCP".into(),
        ),
        feature(
            "capabilities",
            missing_capabilities.is_empty(),
            "this process may load and register programs",
            format!("this process lacks {}", missing_capabilities.join(", ")),
        ),
        feature("bpffs", bpffs, "what is loaded can stay (`kernel load --pin`)", "mount -t bpf bpf /sys/fs/bpf".into()),
        feature(
            "tcx",
            classifier.is_ok() && has(Kind::Struct, TCX),
            "ACKs can take another path (`kernel acks`): BPF programs see the packets of a device",
            match classifier {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    format!("programs for devices are refused: {error}; they take CAP_NET_ADMIN as well")
                }
                Err(error) => format!("a program of two instructions is refused: {error}"),
                Ok(()) => format!("its BTF has no `{TCX}`; Linux 6.6 has it"),
            },
        ),
        feature(
            "tracepoints",
            missing_events.is_empty(),
            "decisions of the MPTCP scheduler can be watched (`kernel watch`)",
            format!("it lacks {}", missing_events.join(", ")),
        ),
        feature(
            "mptcp-schedulers",
            no_schedulers.is_none(),
            "schedulers can be BPF programs (`kernel load --scheduler`)",
            format!("its BTF has {}; no released kernel takes them yet", no_schedulers.unwrap_or_default()),
        ),
    ]
}

/// Capabilities that loading asks for and this process does not have.
fn missing_capabilities() -> Vec<&'static str> {
    let Ok(sets) = capabilities(None) else { return vec!["what would say so"] };
    let wanted = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    // CAP_SYS_ADMIN stands for both.
    let lacks = |capability| !sets.effective.intersects(CapabilitySet::SYS_ADMIN | capability);
    wanted.into_iter().filter(|(capability, _)| lacks(*capability)).map(|(_, name)| name).collect()
}

/// Loads a program for tc that lets every packet pass, and forgets it.
fn classifier() -> io::Result<()> {
    // r0 = 0; exit
    let instructions = [0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
    let program = sys::Program {
        name: "pass",
        kind: sys::BPF_PROG_TYPE_SCHED_CLS,
        instructions: &instructions,
        license: b"Dual MIT/GPL\0",
        expected_attach_type: 0,
        attach_btf_id: 0,
        btf: None,
        functions: &[],
        lines: &[],
        relocations: &[],
    };
    sys::load_program(&program, None).map(drop)
}

/// Needs of congestion controls from BPF: their operations, and links that take the registration back.
const OPERATIONS: &str = "bpf_struct_ops_tcp_congestion_ops";
const LINKS: &str = "bpf_struct_ops_link_create";

/// Functions of the kernel that the programs call.
const FUNCTIONS: &[&str] = &["bpf_rdonly_cast", "tcp_slow_start", "tcp_reno_undo_cwnd"];

/// Type of the file system (`linux/magic.h`).
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
