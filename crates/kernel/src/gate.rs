//! A gate before the subflows of a local address: an experiment.
//!
//! Linux' MPTCP scheduler passes over a subflow whose pacing rate is 0. A congestion control of ours can be registered
//! with programs that set it to 0 while a map says so. The map has times at which gates open by themselves, so that
//! whoever closes one has to say so again and again, and nothing stays closed when nobody does. The programs never
//! close the last subflow of a connection that can carry data, and a subflow that is closed keeps hearing ACKs, by
//! keepalive probes once a second: its gate opens at the first one after the time. `bpf/gate.h` has the rest.

use crate::algorithm::{Algorithm, AlgorithmKind};
use crate::load::{self, Access, LoadError, Loaded};
use crate::sys::{self, BPF_MAP_TYPE_HASH, Map, MapShape};
use anabranch_units::Duration;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

/// A congestion control that is registered with gates, for as long as this lives. Connections that use it keep it until
/// they end; their gates open by themselves.
#[derive(Debug)]
pub struct Gates {
    loaded: Loaded,
    times: Map,
    /// Number of the caller's network namespace.
    namespace: u32,
}

/// The symbol of the map.
const TIMES: &str = "gates";

/// Addresses that can be closed at a time.
const MOST: u32 = 1024;

/// Registers a congestion control with gates, all of them open.
///
/// # Errors
/// As for [`load`](crate::load).
pub fn load_with_gates(algorithm: &'static Algorithm) -> Result<Gates, LoadError> {
    if algorithm.kind != AlgorithmKind::CongestionControl {
        return Err(LoadError::Lacks("gates for schedulers".into()));
    }
    let namespace = std::fs::metadata("/proc/thread-self/ns/net");
    let namespace = namespace.map_err(|error| load::failed("find out the network namespace", error))?.ino() as u32;
    let shape = MapShape { name: TIMES, kind: BPF_MAP_TYPE_HASH, key: 24, value: 8, entries: MOST };
    let times = Map::create(&shape).map_err(|error| load::failed("make the map of gates", error))?;
    let loaded = load::register(algorithm, Access::Restricted, Some((TIMES, times.number())))?;
    Ok(Gates { loaded, times, namespace })
}

impl Gates {
    /// The congestion control.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.loaded.algorithm()
    }

    /// Closes the subflows with this local address in the caller's network namespace for a time from now on.
    ///
    /// # Errors
    /// If the kernel refuses, or more than 1,024 addresses are closed.
    pub fn close(&self, address: IpAddr, time: Duration) -> io::Result<()> {
        let until = sys::monotonic() + time;
        self.times.set(&key(self.namespace, address), &until.as_nanos().to_ne_bytes())
    }

    /// Opens them: each at its next ACK, which comes within about a second.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(&self, address: IpAddr) -> io::Result<()> {
        self.times.remove(&key(self.namespace, address))
    }
}

/// A `struct place` of `bpf/gate.h`.
fn key(namespace: u32, address: IpAddr) -> [u8; 24] {
    let mut key = [0; 24];
    key[..4].copy_from_slice(&namespace.to_ne_bytes());
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    key[4..8].copy_from_slice(&(family as u32).to_ne_bytes());
    match address {
        IpAddr::V4(address) => key[8..12].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => key[8..].copy_from_slice(&address.octets()),
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_network_order_behind_their_family() {
        let key = key(0x0102_0304, IpAddr::from([10, 77, 2, 2]));
        assert_eq!(u32::from_ne_bytes(key[..4].try_into().expect("four bytes")), 0x0102_0304);
        assert_eq!(u32::from_ne_bytes(key[4..8].try_into().expect("four bytes")), 2);
        assert_eq!(key[8..], [10, 77, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_object_has_the_programs_of_its_gate_beside_its_own() {
        for algorithm in AlgorithmKind::CongestionControl.algorithms() {
            let object = algorithm.parsed().expect(algorithm.name);
            let names = |of_gate| object.programs.iter().filter(move |it| it.of_gate == of_gate).map(|it| it.name);
            let gate: Vec<&str> = names(true).collect();
            assert_eq!(gate, ["init", "in_ack_event", "cong_control", "set_state", "release"], "{}", algorithm.name);
            assert!(names(false).any(|name| name == "cong_avoid"), "{}", algorithm.name);
        }
    }
}
