//! A congestion control for the TCP sockets of a control group.

use crate::algorithm::{Algorithm, AlgorithmKind};
use crate::load::{self, LoadError, Target};
use crate::object::Object;
use crate::pin;
use crate::sys::{self, BPF_MAP_TYPE_ARRAY, Map, MapShape};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A congestion control that connections of a control group are given as they begin. Dropping it ends that; connections
/// keep theirs.
#[derive(Debug)]
pub struct Grouped {
    link: OwnedFd,
    algorithm: &'static Algorithm,
    /// Number of the group.
    group: u64,
}

/// The object, with the word that errors use.
const OBJECT: &[u8] = include_bytes!("../bpf/group.bpf.o");
const NAME: &str = "group";

/// Gives an algorithm, which is registered, to the connections that sockets of a control group begin or accept from now
/// on, those of groups in it included.
///
/// # Errors
/// If there is no such group of cgroup v2, or the kernel or the process cannot; nothing stays behind.
pub fn give_to_group(algorithm: &'static Algorithm, group: &Path) -> Result<Grouped, LoadError> {
    let refused = |error| LoadError::Group { path: group.to_owned(), error };
    if algorithm.kind == AlgorithmKind::Scheduler {
        return Err(refused(io::Error::other("network namespaces choose schedulers, control groups do not")));
    }
    let object = Object::parse(OBJECT).ok_or(LoadError::Damaged(NAME))?;
    // Refuses what is none of cgroup v2.
    crate::watch::groups(group).map_err(refused)?;
    let directory = File::open(group).map_err(refused)?;
    let number = directory.metadata().map_err(refused)?.ino();
    let shape = MapShape { name: "name", kind: BPF_MAP_TYPE_ARRAY, key: 4, value: NAME_MAX as u32, entries: 1 };
    let map = Map::create(&shape).map_err(|error| load::failed("make the map of the name", error))?;
    let mut name = [0; NAME_MAX];
    name[..algorithm.kernel_name.len()].copy_from_slice(algorithm.kernel_name.as_bytes());
    map.set(&0u32.to_ne_bytes(), &name).map_err(|error| load::failed("write the name into its map", error))?;
    let types = load::types(&object, NAME)?;
    let program = object.programs.first().ok_or(LoadError::Damaged(NAME))?;
    let instructions = load::resolve(program, None, |name| (name == "name").then(|| map.number()))?;
    let target =
        Target { kind: sys::BPF_PROG_TYPE_SOCK_OPS, expected_attach_type: sys::BPF_CGROUP_SOCK_OPS, attach_btf_id: 0 };
    let program = load::verify(&object, program, &instructions, &target, types.as_fd())?;
    let link = sys::link_group(program.as_fd(), directory.as_fd()).map_err(refused)?;
    Ok(Grouped { link, algorithm, group: number })
}

/// `TCP_CA_NAME_MAX`.
const NAME_MAX: usize = 16;

impl Grouped {
    /// Makes it outlive the process, until [`unload`](crate::unload) or the next boot. Returns the place in bpffs.
    ///
    /// # Errors
    /// If there is no bpffs, or the place cannot be written.
    pub fn pin(self) -> io::Result<PathBuf> {
        pin::pin_group(self.link.as_fd(), self.algorithm, self.group)
    }
}
