//! New namespaces, through a user namespace where needed, and what is missing where that fails.

use rustix::io::Errno;
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, UnshareFlags};
use std::fs;
use std::io;

/// Why work cannot be isolated.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// The system does not let this user make namespaces.
    #[error("this needs namespaces of its own, and the system does not allow that: {problem}")]
    NotAllowed {
        /// The operation refused.
        problem: String,
        /// Advice on making it possible.
        remedy: String,
    },
    /// Anything else.
    #[error("{doing}: {error}")]
    System {
        /// The operation under way.
        doing: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl IsolationError {
    pub(super) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| IsolationError::System { doing, error }
    }

    /// Returns advice, if there is any.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            IsolationError::NotAllowed { remedy, .. } => Some(remedy),
            IsolationError::System { .. } => None,
        }
    }
}

/// Makes new namespaces; whether a user namespace was needed for that.
pub(super) fn isolate(flags: UnshareFlags) -> Result<bool, IsolationError> {
    if may_administer() {
        match unshare(flags) {
            Ok(()) => return Ok(false),
            // A container's root may lack what its capabilities say; a user namespace may still be possible.
            Err(Errno::PERM) => {}
            Err(error) => return Err(refused("namespaces", error)),
        }
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(flags | UnshareFlags::NEWUSER).map_err(|error| refused("a user namespace", error))?;
    // An ordinary user can keep only the own number, and only without the right to change groups (user_namespaces(7)).
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (path, content) in maps {
        fs::write(path, content).map_err(|error| not_allowed(format!("writing {path}: {error}")))?;
    }
    Ok(true)
}

fn may_administer() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[allow(deprecated)] // Its replacement is unsafe because of a flag that is not used here.
    rustix::thread::unshare(flags)
}

fn refused(what: &str, error: Errno) -> IsolationError {
    not_allowed(format!("making {what}: {}", io::Error::from(error)))
}

fn not_allowed(problem: String) -> IsolationError {
    let value = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    IsolationError::NotAllowed { problem, remedy: remedy(&value) }
}

/// Derives advice from the kernel's parameters.
fn remedy(value: &dyn Fn(&str) -> Option<String>) -> String {
    let known = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
        ("/proc/sys/user/max_mnt_namespaces", "0", "user.max_mnt_namespaces=10000"),
        ("/proc/sys/user/max_pid_namespaces", "0", "user.max_pid_namespaces=10000"),
        ("/proc/sys/user/max_net_namespaces", "0", "user.max_net_namespaces=10000"),
    ];
    for (path, bad, setting) in known {
        if value(path).as_deref() == Some(bad) {
            return format!("run as root, or let ordinary users make namespaces: sudo sysctl -w {setting}");
        }
    }
    if value("/proc/self/ns/user").is_none() && fs::symlink_metadata("/proc/self/ns/user").is_err() {
        return "this kernel has no user namespaces (CONFIG_USER_NS): run as root".to_owned();
    }
    "run as root; in a container, start it with --privileged, or with --cap-add SYS_ADMIN --cap-add NET_ADMIN and a \
     seccomp profile that allows unshare and mount"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_names_the_parameter_that_forbids_it() {
        let debian = |path: &str| (path == "/proc/sys/kernel/unprivileged_userns_clone").then(|| "0".to_owned());
        assert!(remedy(&debian).ends_with("sudo sysctl -w kernel.unprivileged_userns_clone=1"));
        let ubuntu = |path: &str| path.ends_with("restrict_unprivileged_userns").then(|| "1".to_owned());
        assert!(remedy(&ubuntu).ends_with("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"));
        let none_left = |path: &str| path.ends_with("max_user_namespaces").then(|| "0".to_owned());
        assert!(remedy(&none_left).ends_with("sudo sysctl -w user.max_user_namespaces=10000"));
        assert!(remedy(&|_| Some("5".to_owned())).contains("container"));
    }
}
