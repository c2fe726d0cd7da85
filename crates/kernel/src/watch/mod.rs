//! Decisions of the kernel's MPTCP: its scheduler, the DATA_ACKs and the mappings, as they happen.
//!
//! Programs at the tracepoints `mptcp:*` write events into a ring buffer (`bpf/watch.bpf.c`). [`Watch`] reads them;
//! [`Picture`] finds out whose they are, since some tracepoints do not say, and counts. Nothing in the kernel is
//! changed, and the programs go with the process.

mod course;
mod event;
mod picture;
#[cfg(test)]
mod tests;

pub use course::{Cause, ConnectionCourse, Course, Interval, Sample, Samples, SubflowCourse, SubflowInterval};
pub use event::{Candidate, Event, Fault, Raw};
pub use picture::{ConnectionReport, Picture, Report, SubflowReport, Wanted};

use crate::LoadError;
use crate::btf::{Btf, Kind};
use crate::load::{self, Target};
use crate::object::{Object, Program};
use crate::sys::{self, BPF_MAP_TYPE_ARRAY, Map, MapShape, Ring};
use rustix::fs::statfs;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Programs at the tracepoints of MPTCP. Dropping it takes them away.
#[derive(Debug)]
pub struct Watch {
    ring: Ring,
    lost: Map,
    _links: Vec<OwnedFd>,
}

/// Size of the ring buffer unless another is asked for \[bytes\]: room for 45,000 events.
pub const RING: usize = 8 << 20;

/// The object, with the word that errors use.
pub(crate) const OBJECT: &[u8] = include_bytes!("../../bpf/watch.bpf.o");
const NAME: &str = "watch";

impl Watch {
    /// Loads and attaches the programs. The ring buffer has `size` bytes, a power of two of at least a page.
    ///
    /// # Errors
    /// If the kernel or the process cannot; nothing stays behind.
    pub fn start(size: usize) -> Result<Self, LoadError> {
        let object = Object::parse(OBJECT).ok_or(LoadError::Damaged(NAME))?;
        let bytes = load::kernel_bytes()?;
        let kernel = load::types_of_kernel(&bytes)?;
        let targets: Vec<Target> =
            object.programs.iter().map(|program| target(&kernel, program)).collect::<Result<_, _>>()?;
        let ring = Ring::create("ab_watch", size).map_err(|error| load::failed("make the ring buffer", error))?;
        let shape = MapShape { name: "lost", kind: BPF_MAP_TYPE_ARRAY, key: 4, value: 8, entries: 1 };
        let lost = Map::create(&shape).map_err(|error| load::failed("make the counter of lost events", error))?;
        let map = |name: &str| match name {
            "ring" => Some(ring.number()),
            "lost" => Some(lost.number()),
            _ => None,
        };
        let types = load::types(&object, NAME)?;
        let mut links = Vec::new();
        for (program, target) in object.programs.iter().zip(&targets) {
            let instructions = load::resolve(program, Some(&kernel), map)?;
            let fd = load::verify(&object, program, &instructions, target, types.as_fd())?;
            let what = format!("attach the program for `{}`", program.name);
            links.push(sys::link_tracing(fd.as_fd()).map_err(|error| load::failed(&what, error))?);
        }
        Ok(Watch { ring, lost, _links: links })
    }

    /// Takes the events that have come since the last call, in their order.
    pub fn drain(&mut self, mut take: impl FnMut(&Raw)) {
        self.ring.drain(|record| {
            if let Some(event) = Raw::decode(record) {
                take(&event);
            }
        });
    }

    /// Events so far for which the ring buffer had no room.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn lost(&self) -> io::Result<u64> {
        let value = self.lost.get(&0u32.to_ne_bytes())?.unwrap_or_default();
        Ok(value.try_into().map_or(0, u64::from_ne_bytes))
    }
}

/// The ids of a control group and of all in it, by its directory.
///
/// # Errors
/// `NotFound` if there is none, `InvalidInput` if the directory is none of cgroup v2.
pub fn groups(path: &Path) -> io::Result<BTreeSet<u64>> {
    if statfs(path)?.f_type as u64 != CGROUP2_SUPER_MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no directory of cgroup v2"));
    }
    let (mut ids, mut open) = (BTreeSet::from([std::fs::metadata(path)?.ino()]), vec![path.to_owned()]);
    while let Some(group) = open.pop() {
        // One that is removed meanwhile has nothing more to tell.
        for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && let Ok(metadata) = entry.metadata()
            {
                ids.insert(metadata.ino());
                open.push(entry.path());
            }
        }
    }
    Ok(ids)
}

/// Type of the file system (`linux/magic.h`).
const CGROUP2_SUPER_MAGIC: u64 = 0x6367_7270;

/// The tracepoint that a program is for.
fn target(kernel: &Btf<'_>, program: &Program<'_>) -> Result<Target, LoadError> {
    let number = kernel.find(Kind::Typedef, &format!("btf_trace_{}", program.name));
    let number = number.ok_or_else(|| LoadError::Lacks(format!("tracepoint `mptcp:{}`", program.name)))?;
    let (kind, expected_attach_type) = (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_RAW_TP);
    Ok(Target { kind, expected_attach_type, attach_btf_id: number })
}

/// Tracepoints that [`Watch::start`] asks for and that the kernel lacks.
pub(crate) fn missing(kernel: &Btf<'_>) -> Vec<String> {
    let Some(object) = Object::parse(OBJECT) else { return vec!["an object".into()] };
    let missing = object.programs.iter().filter(|program| target(kernel, program).is_err());
    missing.map(|program| format!("mptcp:{}", program.name)).collect()
}
