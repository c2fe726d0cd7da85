//! Pins in bpffs, and what the kernel has registered.

use crate::algorithm::{Algorithm, AlgorithmKind};
use crate::sys;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Folder of our pins.
pub(crate) const FOLDER: &str = "/sys/fs/bpf/anabranch";

/// A congestion control or a scheduler of ours in the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The kind of it.
    pub kind: AlgorithmKind,
    /// Name on the command line.
    pub name: &'static str,
    /// Name in the kernel.
    pub kernel_name: &'static str,
    /// It can be chosen.
    pub registered: bool,
    /// Its place in bpffs, if it is pinned and the process [sees pins](sees_pins); otherwise a running command holds
    /// it.
    pub pin: Option<PathBuf>,
    /// It is the default of this network namespace.
    pub default: bool,
}

/// Reason for which an algorithm could not be unloaded.
#[derive(Debug, thiserror::Error)]
pub enum UnloadError {
    /// No pin of it.
    #[error("`{0}` is not loaded")]
    NotLoaded(&'static str),
    /// Not pinned but registered.
    #[error("`{0}` is not pinned: a running command holds it and unregisters it when it ends")]
    Held(&'static str),
    /// The pin stays.
    #[error("cannot take back {path}: {error}")]
    Failed {
        /// The pin.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
}

impl UnloadError {
    /// Returns a remedy, if there is one.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            UnloadError::NotLoaded(_) => Some("`anabranch kernel status` says what is loaded"),
            UnloadError::Held(_) => Some("end that command; `unload` takes back what `kernel load --pin` left"),
            UnloadError::Failed { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => Some(ROOT),
            UnloadError::Failed { .. } => None,
        }
    }
}

/// Remedy for a process that may not look into bpffs.
pub(crate) const ROOT: &str = "run it as root: most systems let nobody else into bpffs";

fn place(algorithm: &Algorithm) -> PathBuf {
    PathBuf::from(FOLDER).join(algorithm.kernel_name)
}

/// Pins a link. What it made stays only if it succeeds.
pub(crate) fn pin(link: BorrowedFd<'_>, algorithm: &Algorithm) -> io::Result<PathBuf> {
    let made = match std::fs::create_dir(FOLDER) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    let path = place(algorithm);
    sys::pin(link, &path).inspect_err(|_| {
        if made {
            _ = std::fs::remove_dir(FOLDER);
        }
    })?;
    Ok(path)
}

/// Every algorithm of ours.
fn all() -> impl Iterator<Item = &'static Algorithm> {
    AlgorithmKind::ALL.into_iter().flat_map(AlgorithmKind::algorithms)
}

/// True if this process may see pins: most systems let only root into bpffs.
pub fn sees_pins() -> bool {
    Path::new(FOLDER).try_exists().is_ok()
}

/// The state of every algorithm that is registered or pinned, as far as the process [sees pins](sees_pins).
pub fn status() -> Vec<Status> {
    let all = all().map(|algorithm| Status {
        kind: algorithm.kind,
        name: algorithm.name,
        kernel_name: algorithm.kernel_name,
        registered: algorithm.is_registered(),
        pin: Some(place(algorithm)).filter(|path| path.exists()),
        default: default(algorithm.kind).is_ok_and(|name| name == algorithm.kernel_name),
    });
    all.filter(|status| status.registered || status.pin.is_some()).collect()
}

/// The default of a kind in the caller's network namespace.
fn default(kind: AlgorithmKind) -> io::Result<String> {
    Ok(std::fs::read_to_string(kind.places().default)?.trim().to_owned())
}

/// Makes an algorithm that is pinned the default of the caller's network namespace. The former default is noted beside
/// the pin, as the target of a link, since bpffs has no ordinary files. Where the former one is an earlier registration
/// of the same name, which is gone by then, every kernel's own is noted.
pub(crate) fn make_default(algorithm: &Algorithm) -> io::Result<()> {
    let former = Some(default(algorithm.kind)?).filter(|name| name != algorithm.kernel_name);
    let former = former.as_deref().unwrap_or(algorithm.kind.places().built_in);
    std::os::unix::fs::symlink(former, note(algorithm)?)?;
    std::fs::write(algorithm.kind.places().default, algorithm.kernel_name)
}

/// The note of the caller's network namespace about an algorithm.
fn note(algorithm: &Algorithm) -> io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(PathBuf::from(FOLDER).join(format!("{}{NOTE}{namespace}", algorithm.kernel_name)))
}

/// Names in bpffs have no dots.
const NOTE: &str = "_default_";

/// Puts the former default of the caller's network namespace back, unless another was set meanwhile, and removes the
/// notes of all namespaces about an algorithm. In place of a former default that is gone it sets one that every kernel
/// has.
fn put_default_back(algorithm: &Algorithm) -> io::Result<()> {
    let places = algorithm.kind.places();
    if let Ok(former) = std::fs::read_link(note(algorithm)?)
        && default(algorithm.kind)? == algorithm.kernel_name
    {
        match std::fs::write(places.default, former.as_os_str().as_encoded_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::write(places.default, places.built_in)?,
            result => result?,
        }
    }
    remove(algorithm, NOTE)
}

/// Pins the link of a control group, beside the pin of the algorithm.
pub(crate) fn pin_group(link: BorrowedFd<'_>, algorithm: &Algorithm, group: u64) -> io::Result<PathBuf> {
    let path = PathBuf::from(FOLDER).join(format!("{}{GROUP}{group}", algorithm.kernel_name));
    sys::pin(link, &path)?;
    Ok(path)
}

const GROUP: &str = "_group_";

/// Removes what lies beside the pin of an algorithm.
fn remove(algorithm: &Algorithm, kind: &str) -> io::Result<()> {
    let begin = format!("{}{kind}", algorithm.kernel_name);
    for entry in std::fs::read_dir(FOLDER)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes the pin, and with it the registration, puts back the default of the caller's network namespace if it was
/// made that, and takes it from control groups. Connections that use the algorithm keep it until they end, as do other
/// network namespaces whose default congestion control it is; those whose default scheduler it is use the kernel's own.
///
/// # Errors
/// If there is no pin, or it cannot be removed.
pub fn unload(algorithm: &'static Algorithm) -> Result<(), UnloadError> {
    let path = place(algorithm);
    let failed = |error| UnloadError::Failed { path: FOLDER.into(), error };
    if path.try_exists().map_err(failed)? {
        let taken_back = remove(algorithm, GROUP).and_then(|()| put_default_back(algorithm));
        taken_back.map_err(failed)?;
    }
    match std::fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(match algorithm.is_registered() {
                true => UnloadError::Held(algorithm.kernel_name),
                false => UnloadError::NotLoaded(algorithm.kernel_name),
            });
        }
        Err(error) => return Err(UnloadError::Failed { path, error }),
    }
    // Succeeds for the last one only.
    _ = std::fs::remove_dir(FOLDER);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One folder has the pins of all, and what lies beside a pin begins with its name.
    #[test]
    fn no_name_of_a_pin_is_another_one_or_begins_what_lies_beside_it() {
        let names: Vec<String> = all().map(|algorithm| place(algorithm).display().to_string()).collect();
        for (at, name) in names.iter().enumerate() {
            for (other_at, other) in names.iter().enumerate().filter(|(other_at, _)| *other_at != at) {
                assert_ne!(name, other, "{at} and {other_at}");
                for beside in [NOTE, GROUP] {
                    assert!(!other.starts_with(&format!("{name}{beside}")), "{other} lies beside {name}");
                }
            }
        }
        assert!(names.contains(&"/sys/fs/bpf/anabranch/ab_lia".to_owned()), "{names:?}");
        assert!(names.contains(&"/sys/fs/bpf/anabranch/ab_min_rtt".to_owned()), "{names:?}");
    }

    /// Defaults that are put back where the former one is gone.
    #[test]
    fn the_kernel_has_what_takes_the_place_of_a_default_that_is_gone() {
        for kind in AlgorithmKind::ALL {
            let Some(registered) = kind.registered() else {
                eprintln!("SKIPPED: this kernel names no {}", kind.word());
                continue;
            };
            assert!(registered.iter().any(|name| name == kind.places().built_in), "{registered:?}");
        }
    }
}
