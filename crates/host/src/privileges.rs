//! Dropping of capabilities that a program no longer needs (capabilities(7)).
//!
//! Capabilities belong to threads: call this on the first thread, before it starts others, which inherit the remaining
//! ones.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;

/// Capabilities to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// No capability at all.
    Nothing,
    /// CAP_NET_ADMIN, and programs that are started inherit it.
    NetAdmin,
}

/// Gives up every capability but what is kept, for good: neither this thread nor a program that it starts can get one
/// back.
///
/// # Errors
/// If CAP_NET_ADMIN is to be kept and is not there.
pub fn drop_privileges(keep: Keep) -> io::Result<()> {
    let kept = match keep {
        Keep::Nothing => CapabilitySet::empty(),
        Keep::NetAdmin => CapabilitySet::NET_ADMIN,
    };
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last that this kernel knows.
            Err(Errno::INVAL) => break,
            // Dropping needs CAP_SETPCAP. Without it the bounding set stays, and `no_new_privs` prevents its use.
            Err(Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })?;
    if keep == Keep::NetAdmin {
        configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true)?;
    }
    set_no_new_privs(true)?;
    Ok(())
}

/// Lets programs that this thread starts have CAP_NET_ADMIN as well. A capability from a file's attributes or from
/// systemd ends with the program otherwise.
///
/// # Errors
/// If this thread does not have it.
pub fn pass_on_net_admin() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::NET_ADMIN;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true)?;
    Ok(())
}

/// Keeps other processes of the same user from reading this one's memory, in which there are keys, and the kernel from
/// writing it to a file when the process fails.
pub fn hide_memory() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?)
}

/// Lets the process have as many files and sockets open as it may. How many that are; `None` for no limit.
pub fn raise_open_files() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    if raised.is_ok() { limit.maximum } else { limit.current }
}

/// Gives memory that is free within the process back to the system. Takes a millisecond for some 10 MB of it, so this
/// is for when much was freed.
pub fn release_memory() {
    crate::sys::process::trim_memory();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    /// Drops privileges in a separate thread, so that only that one loses them; `None` without the capability to begin
    /// with.
    fn after(keep: Keep) -> Option<BTreeMap<String, String>> {
        let thread = std::thread::spawn(move || {
            if !capabilities(None).unwrap().effective.contains(CapabilitySet::NET_ADMIN) {
                return None;
            }
            drop_privileges(keep).unwrap();
            // A thread that is started later has no more either.
            let status = std::thread::spawn(|| std::fs::read_to_string("/proc/thread-self/status").unwrap());
            let status = status.join().unwrap();
            let lines = status.lines().filter_map(|line| line.split_once(":\t"));
            Some(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        });
        thread.join().unwrap()
    }

    #[test]
    fn nothing_is_left_but_what_is_kept() {
        for (keep, bits) in [(Keep::Nothing, "0000000000000000"), (Keep::NetAdmin, "0000000000001000")] {
            let Some(status) = after(keep) else { return println!("SKIPPED: no CAP_NET_ADMIN to drop") };
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                assert_eq!(status[set], bits, "{keep:?} {set}");
            }
            assert_eq!(status["NoNewPrivs"], "1");
        }
    }
}
