//! Loading: from an object to a registered congestion control, or another struct of operations.

use crate::algorithm::{Algorithm, AlgorithmKind};
use crate::btf::{Btf, Kind};
use crate::object::{Object, Program};
use crate::pin::{self, FOLDER};
use crate::scheduler::{self, MEMORIES};
use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// A registered congestion control or scheduler. Dropping it takes the registration back; connections that use it keep
/// it until they end.
#[derive(Debug)]
pub struct Loaded {
    link: OwnedFd,
    algorithm: &'static Algorithm,
}

/// Reason for which an algorithm could not be loaded. Nothing of it stays in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel does not describe its types.
    #[error("this kernel has no BTF: cannot read {BTF}: {0}")]
    NoBtf(io::Error),
    /// The kernel lacks a function, a struct or a command that is needed.
    #[error("this kernel does not support such programs of BPF: it has no {0}")]
    Lacks(String),
    /// The kernel takes no schedulers from BPF.
    #[error("this kernel takes no MPTCP schedulers from BPF: its BTF has {0}")]
    NoSchedulers(String),
    /// The process may not load it.
    #[error("loading BPF programs is not permitted")]
    NotAllowed,
    /// The name is registered already.
    #[error("`{0}` is registered with the kernel already")]
    Taken(&'static str),
    /// The verifier refuses a program.
    #[error("the kernel's verifier refuses the program for `{member}`: {error}\n{log}")]
    Refused {
        /// The member of the struct of operations.
        member: String,
        /// The error of the system call.
        error: io::Error,
        /// End of the verifier's log.
        log: String,
    },
    /// A program reads a field that the kernel lacks, or has in a form that the program does not know.
    #[error("the program for `{member}` reads {field}, which this kernel has not, or in another form than it knows")]
    Unfit {
        /// The member of the struct of operations.
        member: String,
        /// The field, with its struct.
        field: String,
    },
    /// There is no place for pins.
    #[error("cannot pin it in {FOLDER}: {0}")]
    NoPlace(io::Error),
    /// A system call failed.
    #[error("cannot {what}: {error}")]
    Failed {
        /// Intended step.
        what: String,
        /// Its error.
        error: io::Error,
    },
    /// The default of the network namespace cannot be set. The registration is taken back.
    #[error("cannot make `{name}` the default of this network namespace: {error}")]
    NoDefault {
        /// Name in the kernel.
        name: &'static str,
        /// The error of the system call.
        error: io::Error,
    },
    /// The control group is none, or takes no program.
    #[error("cannot give it to the control group {}: {error}", path.display())]
    Group {
        /// Its directory.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The object is not one of ours.
    #[error("the object of `{0}` is damaged")]
    Damaged(&'static str),
}

impl LoadError {
    /// Returns a remedy, if there is one.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            LoadError::NoBtf(_) => Some("take a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions have it"),
            LoadError::Lacks(_) => {
                Some("`anabranch kernel list` says what this kernel has, and which ones have the rest")
            }
            LoadError::NoSchedulers(_) => Some(
                "no released kernel does; that of the MPTCP developers does (github.com/multipath-tcp/mptcp_net-next, \
                 branch export), and `anabranch kernel list` says when this one does",
            ),
            LoadError::NotAllowed => Some(
                "run it as root, or with CAP_BPF and CAP_PERFMON outside of a user namespace; `kernel acks` and \
                     `--cgroup` also need CAP_NET_ADMIN",
            ),
            LoadError::NoPlace(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(pin::ROOT),
            LoadError::NoPlace(_) => Some("pins need bpffs: mount -t bpf bpf /sys/fs/bpf"),
            LoadError::Group { .. } => Some(
                "accepted: a directory of cgroup v2, such as /sys/fs/cgroup/user.slice; `mount -t cgroup2` tells where \
                 it is",
            ),
            LoadError::Taken(_) => Some(
                "`anabranch kernel status` says whether it is pinned: unload it then; otherwise end the command that \
                 holds it",
            ),
            _ => None,
        }
    }
}

/// A flag of `tcp_congestion_ops`.
const TCP_CONG_NON_RESTRICTED: u32 = 1;

/// File of the kernel's own types.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Reads the kernel's own types, for [`types_of_kernel`].
pub(crate) fn kernel_bytes() -> Result<Vec<u8>, LoadError> {
    std::fs::read(BTF).map_err(LoadError::NoBtf)
}

/// The kernel's own types.
pub(crate) fn types_of_kernel(bytes: &[u8]) -> Result<Btf<'_>, LoadError> {
    Btf::parse(bytes).ok_or_else(|| LoadError::Lacks("BTF of a form that is known".into()))
}

/// Sockets that may choose a congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Those of processes with CAP_NET_ADMIN, and of whom an administrator lets
    /// (`net.ipv4.tcp_allowed_congestion_control`).
    Restricted,
    /// All. The default of a network namespace other than the first has to be one.
    Everyone,
}

/// Registers a congestion control or a scheduler with the running kernel.
///
/// # Errors
/// If the kernel or the process cannot, or the name is taken; nothing stays behind.
pub fn load(algorithm: &'static Algorithm) -> Result<Loaded, LoadError> {
    load_for(algorithm, Access::Restricted)
}

/// Registers an algorithm for those who may choose it. Schedulers are chosen by network namespaces, so that `access` is
/// without meaning for them.
///
/// # Errors
/// As for [`load`].
pub fn load_for(algorithm: &'static Algorithm, access: Access) -> Result<Loaded, LoadError> {
    register(algorithm, access, None)
}

/// Registers an algorithm, with a gate if there is a map of it, which programs call by this name.
pub(crate) fn register(
    algorithm: &'static Algorithm,
    access: Access,
    gates: Option<(&str, i32)>,
) -> Result<Loaded, LoadError> {
    let object = algorithm.parsed()?;
    let bytes = kernel_bytes()?;
    let kernel = types_of_kernel(&bytes)?;
    let is_scheduler = algorithm.kind == AlgorithmKind::Scheduler;
    if is_scheduler && let Some(lacks) = scheduler::waits_for(&kernel) {
        return Err(LoadError::NoSchedulers(lacks));
    }
    if algorithm.is_registered() {
        return Err(LoadError::Taken(algorithm.kernel_name));
    }
    let operations = Operations::find(&kernel, algorithm.kind.places().operations)?;
    let btf = types(&object, algorithm.name)?;
    let memories = is_scheduler.then(|| scheduler::memories(algorithm, &object, &btf)).transpose()?;
    let registration = Registration {
        kernel: &kernel,
        operations: &operations,
        object: &object,
        btf: btf.as_fd(),
        name: algorithm.kernel_name,
        with_gate: gates.is_some(),
        flags: (access == Access::Everyone && !is_scheduler).then_some(TCP_CONG_NON_RESTRICTED),
    };
    let memories = memories.as_ref().map(|memories| (MEMORIES, memories.as_raw_fd()));
    let map = |name: &str| memories.into_iter().chain(gates).find(|(own, _)| *own == name).map(|(_, number)| number);
    let link = registration.make(|program| resolve(program, Some(&kernel), map))?;
    Ok(Loaded { link, algorithm })
}

impl Loaded {
    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Makes the registration outlive the process, until [`unload`](crate::unload) or the next boot. Returns the place
    /// in bpffs.
    ///
    /// # Errors
    /// If there is no bpffs, or the place cannot be written.
    pub fn pin(self) -> Result<PathBuf, LoadError> {
        pin::pin(self.link.as_fd(), self.algorithm).map_err(LoadError::NoPlace)
    }

    /// Pins it, and makes it the default of the caller's network namespace, until [`unload`](crate::unload). Returns
    /// the place in bpffs.
    ///
    /// # Errors
    /// As for [`Loaded::pin`], or if the default cannot be set; nothing stays behind.
    pub fn pin_as_default(self) -> Result<PathBuf, LoadError> {
        let algorithm = self.algorithm;
        let path = self.pin()?;
        pin::make_default(algorithm).map_err(|error| {
            _ = pin::unload(algorithm);
            LoadError::NoDefault { name: algorithm.kernel_name, error }
        })?;
        Ok(path)
    }
}

/// A struct of operations in the running kernel.
pub(crate) struct Operations {
    name: &'static str,
    /// Number of the struct.
    pub(crate) kind: u32,
    /// Number of the struct around it, which is a map's value, and its size \[bytes\].
    value: u32,
    size: usize,
    /// Beginning of the struct in the value \[bytes\].
    data: usize,
}

impl Operations {
    pub(crate) fn find(kernel: &Btf<'_>, name: &'static str) -> Result<Self, LoadError> {
        let find = |name: &str| {
            kernel.find(Kind::Struct, name).ok_or_else(|| LoadError::Lacks(format!("struct `{name}` in its BTF")))
        };
        let around = format!("{AROUND}{name}");
        let (kind, value) = (find(name)?, find(&around)?);
        let members = kernel.members(value).unwrap_or_default();
        let data = members.iter().find(|member| member.kind == kind);
        match (data, kernel.size(value)) {
            (Some(data), Some(size)) => Ok(Operations { name, kind, value, size, data: data.offset }),
            _ => Err(LoadError::Lacks(format!("value of `{around}`"))),
        }
    }

    /// The index of a member, and its place in the value \[bytes\].
    pub(crate) fn member(&self, kernel: &Btf<'_>, name: &str) -> Result<(usize, usize), LoadError> {
        let members = kernel.members(self.kind).unwrap_or_default();
        let index = members.iter().position(|member| member.name == name);
        index
            .map(|index| (index, self.data + members[index].offset))
            .filter(|(_, offset)| offset + 16 <= self.size)
            .ok_or_else(|| LoadError::Lacks(format!("member `{name}` of `{}`", self.name)))
    }

    /// The place of the program for the member with this index.
    pub(crate) fn target(&self, index: usize) -> Target {
        Target { kind: sys::BPF_PROG_TYPE_STRUCT_OPS, expected_attach_type: index as u32, attach_btf_id: self.kind }
    }
}

/// Begin of the name of the struct around a struct of operations that can be written in BPF.
pub(crate) const AROUND: &str = "bpf_struct_ops_";

/// The kind of a program, and the place where it is meant to run.
pub(crate) struct Target {
    pub(crate) kind: u32,
    pub(crate) expected_attach_type: u32,
    pub(crate) attach_btf_id: u32,
}

/// A struct of operations that is to be registered.
pub(crate) struct Registration<'a> {
    pub(crate) kernel: &'a Btf<'a>,
    pub(crate) operations: &'a Operations,
    pub(crate) object: &'a Object<'a>,
    /// Types of the object.
    pub(crate) btf: BorrowedFd<'a>,
    /// Name in the kernel.
    pub(crate) name: &'static str,
    /// Programs of the gate are registered as well.
    pub(crate) with_gate: bool,
    pub(crate) flags: Option<u32>,
}

impl Registration<'_> {
    /// Loads the programs, whose instructions `resolved` returns, and registers the struct for as long as the returned
    /// link is open.
    pub(crate) fn make(
        &self,
        resolved: impl Fn(&Program<'_>) -> Result<Vec<u8>, LoadError>,
    ) -> Result<OwnedFd, LoadError> {
        let Registration { kernel, operations, object, btf, name, .. } = *self;
        let mut value = vec![0; operations.size];
        let mut programs = Vec::new();
        let is_replaced = |program: &Program<'_>| {
            self.with_gate && object.programs.iter().any(|other| other.of_gate && other.name == program.name)
        };
        for program in &object.programs {
            let is_out = if program.of_gate { !self.with_gate } else { is_replaced(program) };
            if is_out {
                continue;
            }
            let (index, offset) = operations.member(kernel, program.name)?;
            let fd = verify(object, program, &resolved(program)?, &operations.target(index), btf)?;
            // The kernel reads a pointer's place as the number of a file descriptor.
            let number = fd.as_raw_fd() as u64;
            value[offset..offset + 8].copy_from_slice(&number.to_ne_bytes());
            programs.push(fd);
        }
        let (_, at) = operations.member(kernel, "name")?;
        value[at..at + name.len()].copy_from_slice(name.as_bytes());
        if let Some(flags) = self.flags {
            let (_, at) = operations.member(kernel, "flags")?;
            value[at..at + 4].copy_from_slice(&flags.to_ne_bytes());
        }
        let map = sys::create_operations(name, operations.value, operations.size as u32, btf)
            .map_err(|error| failed("make the struct of operations", error))?;
        sys::fill_operations(map.as_fd(), &value).map_err(|error| match error.raw_os_error() {
            // Schedulers are compared by name here, congestion controls when they are linked.
            Some(libc::EEXIST) => LoadError::Taken(name),
            _ => failed("fill in the struct of operations", error),
        })?;
        sys::link_operations(map.as_fd()).map_err(|error| match error.raw_os_error() {
            Some(libc::EEXIST) => LoadError::Taken(name),
            _ => failed(&format!("register `{name}`"), error),
        })
    }
}

/// The instructions of a program, with the numbers of the maps and of the functions of the kernel that it refers to.
pub(crate) fn resolve(
    program: &Program<'_>,
    kernel: Option<&Btf<'_>>,
    map: impl Fn(&str) -> Option<i32>,
) -> Result<Vec<u8>, LoadError> {
    resolve_by(program, |name| {
        map(name).map(Referent::Map).or_else(|| {
            let number = kernel.and_then(|kernel| kernel.find(Kind::Function, name));
            number.map(Referent::Function)
        })
    })
}

/// Target of a reference by name.
pub(crate) enum Referent {
    /// A map, by its file descriptor.
    Map(i32),
    /// A function of the kernel, by its number in the kernel's BTF.
    Function(u32),
    /// A helper for BPF programs, by its number.
    Helper(i32),
}

/// The instructions of a program, with what `find` returns for the names that it refers to.
pub(crate) fn resolve_by(program: &Program<'_>, find: impl Fn(&str) -> Option<Referent>) -> Result<Vec<u8>, LoadError> {
    let mut instructions = program.instructions.clone();
    for (at, name) in &program.references {
        let (kind, number) = match find(name) {
            Some(Referent::Map(number)) => (BPF_PSEUDO_MAP_FD, number),
            Some(Referent::Function(number)) => (BPF_PSEUDO_KFUNC_CALL, number as i32),
            Some(Referent::Helper(number)) => (0, number),
            None => return Err(LoadError::Lacks(format!("function `{name}` for BPF programs"))),
        };
        let instruction = instructions.get_mut(*at..*at + 8);
        let instruction = instruction.ok_or_else(|| LoadError::Lacks(format!("instruction at {at}")))?;
        instruction[1] = instruction[1] & 0x0f | kind << 4;
        instruction[4..].copy_from_slice(&number.to_le_bytes());
    }
    Ok(instructions)
}

/// Meanings of an instruction's immediate, in the place of its source register.
const BPF_PSEUDO_MAP_FD: u8 = 1;
const BPF_PSEUDO_KFUNC_CALL: u8 = 2;

/// Hands the types of an object to the kernel.
pub(crate) fn types(object: &Object<'_>, name: &'static str) -> Result<OwnedFd, LoadError> {
    let types = object.btf.for_kernel().ok_or(LoadError::Damaged(name))?;
    sys::load_btf(&types, None).map_err(|error| refused_btf(&types, error))
}

/// Loads a program whose references are resolved, if the kernel's verifier has nothing against it.
pub(crate) fn verify(
    object: &Object<'_>,
    program: &Program<'_>,
    instructions: &[u8],
    target: &Target,
    btf: BorrowedFd<'_>,
) -> Result<OwnedFd, LoadError> {
    let request = sys::Program {
        name: program.name,
        kind: target.kind,
        instructions,
        license: object.license,
        expected_attach_type: target.expected_attach_type,
        attach_btf_id: target.attach_btf_id,
        btf: Some(btf),
        functions: &program.functions,
        lines: &program.lines,
        relocations: &program.relocations,
    };
    sys::load_program(&request, None).map_err(|error| {
        if error.raw_os_error() == Some(libc::EPERM) {
            return LoadError::NotAllowed;
        }
        let mut log = vec![0; LOG];
        _ = sys::load_program(&request, Some(&mut log));
        let (member, log) = (program.name.into(), tail(&log));
        match unfit(&log).and_then(|instruction| program.field_at(instruction, &object.btf)) {
            Some(field) => LoadError::Unfit { member, field },
            None => LoadError::Refused { member, error, log },
        }
    })
}

fn refused_btf(types: &[u8], error: io::Error) -> LoadError {
    if error.raw_os_error() == Some(libc::EPERM) {
        return LoadError::NotAllowed;
    }
    let mut log = vec![0; LOG];
    _ = sys::load_btf(types, Some(&mut log));
    LoadError::Refused { member: "types".into(), error, log: tail(&log) }
}

/// The number of the instruction in whose place Linux has put a call of a function that does not exist, because it
/// could not make its field fit (`bpf_core_poison_insn` of `tools/lib/bpf/relo_core.c`, 0xbad2310).
fn unfit(log: &str) -> Option<usize> {
    let (before, _) = log.split_once(": (85) call unknown#195896080")?;
    before.lines().last()?.trim().parse().ok()
}

/// The last lines of a log.
fn tail(log: &[u8]) -> String {
    let text =
        String::from_utf8_lossy(&log[..log.iter().position(|byte| *byte == 0).unwrap_or(log.len())]).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// An error of a system call.
pub(crate) fn failed(what: &str, error: io::Error) -> LoadError {
    match error.raw_os_error() {
        Some(libc::EPERM) => LoadError::NotAllowed,
        _ => LoadError::Failed { what: what.into(), error },
    }
}

/// Size of the verifier's log \[bytes\], and the lines of it that are shown.
const LOG: usize = 16 << 20;
const LOG_LINES: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 7.2 said it of a program that took `stale` of a subflow for bits.
    #[test]
    fn the_instruction_that_does_not_fit_is_found() {
        let log =
            "34: (05) goto pc+0\n35: (05) goto pc+9\n45: (85) call unknown#195896080\ninvalid func unknown#195896080";
        assert_eq!(unfit(log), Some(45));
        assert_eq!(unfit("45: (85) call unknown#12\ninvalid func unknown#12"), None);
    }
}
