//! The maps that the programs of `bpf/acks.bpf.c` read and write, with the layouts of `bpf/acks.h`.

use super::PATHS;
use crate::sys::{BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_LRU_HASH, Map, MapShape};
use anabranch_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::net::IpAddr;

/// The maps, which are gone with their file descriptors.
#[derive(Debug)]
pub(super) struct Maps {
    paths: Map,
    choices: Map,
    flows: Map,
    agreements: Map,
    counters: Map,
}

/// One path, as this host sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathEntry {
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
    /// Number of the device.
    pub(super) device: u32,
    /// Its address, if it has Ethernet headers.
    pub(super) mac: Option<[u8; 6]>,
}

/// Ports of a subflow, as this host sees them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FlowPorts {
    pub(super) local: u16,
    pub(super) remote: u16,
    pub(super) ipv6: bool,
}

/// A subflow that the programs know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KnownFlow {
    pub(super) ports: FlowPorts,
    pub(super) path: usize,
}

/// Counts of packets since the command began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// ACKs that left on another path.
    pub moved: u64,
    /// ACKs that could have and kept their own.
    pub kept: u64,
    /// ACKs of the other host that got their addresses back.
    pub restored: u64,
    /// RSTs of a host that did not know our ACKs.
    pub refused: u64,
    /// Times that a subflow's ACKs went back to their own path because they were lost elsewhere.
    pub barred: u64,
}

/// Subflows that are remembered; the least recently used goes first.
const FLOWS: u32 = 65_536;

/// A subflow that has not sent for so long is forgotten if it is closed, or never sent more than its SYN.
const OVER: Duration = Duration::from_secs(60);
/// Any other is forgotten after this time: it may have ended without a word.
const SILENT: Duration = Duration::from_secs(3600);

impl Maps {
    pub(super) fn create() -> io::Result<Self> {
        let array =
            |name, value, entries| Map::create(&MapShape { name, kind: BPF_MAP_TYPE_ARRAY, key: 4, value, entries });
        let by_ports =
            |name, value| Map::create(&MapShape { name, kind: BPF_MAP_TYPE_LRU_HASH, key: 8, value, entries: FLOWS });
        Ok(Maps {
            paths: array("paths", 44, PATHS as u32)?,
            choices: array("choices", 16, PATHS as u32)?,
            flows: by_ports("flows", 48)?,
            agreements: by_ports("agreements", 8)?,
            counters: array("counters", 8, 5)?,
        })
    }

    /// The map that a program calls `name`.
    pub(super) fn named(&self, name: &str) -> Option<&Map> {
        Some(match name {
            "paths" => &self.paths,
            "choices" => &self.choices,
            "flows" => &self.flows,
            "agreements" => &self.agreements,
            "counters" => &self.counters,
            _ => return None,
        })
    }

    /// Enters a path, or takes it out.
    pub(super) fn set_path(&self, number: usize, path: Option<&PathEntry>) -> io::Result<()> {
        let mut value = [0; 44];
        if let Some(path) = path {
            value[0] = if path.local.is_ipv4() { 4 } else { 6 };
            value[1] = u8::from(path.mac.is_some());
            value[2..8].copy_from_slice(&path.mac.unwrap_or_default());
            value[8..12].copy_from_slice(&path.device.to_ne_bytes());
            put_address(&mut value[12..28], path.local);
            put_address(&mut value[28..44], path.remote);
        }
        self.paths.set(&(number as u32).to_ne_bytes(), &value)
    }

    /// Sends ACKs of subflows of path `own` over `path` until the monotonic clock reads `until`.
    pub(super) fn choose(&self, own: usize, path: usize, until: Duration, caution: bool) -> io::Result<()> {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&until.as_nanos().to_ne_bytes());
        value[8..12].copy_from_slice(&(path as u32).to_ne_bytes());
        value[12..].copy_from_slice(&u32::from(caution).to_ne_bytes());
        self.choices.set(&(own as u32).to_ne_bytes(), &value)
    }

    /// The other host restores ACKs of this subflow until the monotonic clock reads `until`.
    pub(super) fn agree(&self, ports: FlowPorts, until: Duration) -> io::Result<()> {
        self.agreements.set(&ports.key(), &until.as_nanos().to_ne_bytes())
    }

    /// Takes all agreements back.
    pub(super) fn disagree(&self) -> io::Result<()> {
        while let Some(key) = self.agreements.next(None)? {
            self.agreements.remove(&key)?;
        }
        Ok(())
    }

    /// The subflows whose ACKs can be put back: open, and alone with their ports. Forgets those that are over, so that
    /// the list is no longer than what there is.
    pub(super) fn flows(&self, now: Duration) -> io::Result<Vec<KnownFlow>> {
        let (mut flows, mut over) = (Vec::new(), Vec::new());
        let mut key = None;
        // The kernel begins anew if a key goes meanwhile; so there is an end to it.
        for _ in 0..FLOWS {
            let Some(next) = self.flows.next(key.as_deref())? else { break };
            match (FlowPorts::of(&next), self.flows.get(&next)?) {
                (Some(ports), Some(value)) if !is_over(&value, now) => flows.extend(known(ports, &value)),
                _ => over.push(next.clone()),
            }
            key = Some(next);
        }
        over.iter().try_for_each(|key| self.flows.remove(key))?;
        flows.sort_by_key(|flow| flow.ports);
        flows.dedup_by_key(|flow| flow.ports);
        Ok(flows)
    }

    /// The subflow with these ports, if its ACKs can be put back.
    pub(super) fn flow(&self, ports: FlowPorts) -> io::Result<Option<KnownFlow>> {
        Ok(self.flows.get(&ports.key())?.and_then(|value| known(ports, &value)))
    }

    pub(super) fn counts(&self) -> io::Result<Counts> {
        let read = |which: u32| {
            let value = self.counters.get(&which.to_ne_bytes())?.unwrap_or_default();
            Ok::<_, io::Error>(value.try_into().map_or(0, u64::from_ne_bytes))
        };
        Ok(Counts { moved: read(0)?, kept: read(1)?, restored: read(2)?, refused: read(3)?, barred: read(4)? })
    }
}

impl FlowPorts {
    /// Ports in network order, and the family.
    fn key(self) -> [u8; 8] {
        let mut key = [0; 8];
        key[..2].copy_from_slice(&self.local.to_be_bytes());
        key[2..4].copy_from_slice(&self.remote.to_be_bytes());
        key[4..].copy_from_slice(&(if self.ipv6 { 6u32 } else { 4 }).to_ne_bytes());
        key
    }

    fn of(key: &[u8]) -> Option<Self> {
        let (local, rest) = key.split_first_chunk()?;
        let (remote, rest) = rest.split_first_chunk()?;
        let family = u32::from_ne_bytes(rest.try_into().ok()?);
        let (local, remote) = (u16::from_be_bytes(*local), u16::from_be_bytes(*remote));
        Some(FlowPorts { local, remote, ipv6: family == 6 })
    }
}

/// A `struct flow`, unless it is closed, has sent no more than its SYN, or shares its ports.
fn known(ports: FlowPorts, value: &[u8]) -> Option<KnownFlow> {
    let [path, ambiguous, _, closed, begun] = *value.get(40..45)? else { return None };
    (ambiguous == 0 && closed == 0 && begun == 1).then_some(KnownFlow { ports, path: path.into() })
}

/// True for one that has been silent for longer than its state allows.
fn is_over(value: &[u8], now: Duration) -> bool {
    let used = value.get(16..24).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
    let lives = value.get(43) == Some(&0) && value.get(44) == Some(&1);
    now.saturating_sub(Duration::from_nanos(used)) > if lives { SILENT } else { OVER }
}

fn put_address(place: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => place[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => place.copy_from_slice(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct flow` of `bpf/acks.h` that has begun, used at this time.
    fn flow(path: u8, ambiguous: u8, closed: u8, used: Duration) -> Vec<u8> {
        let mut value = vec![0; 48];
        value[16..24].copy_from_slice(&used.as_nanos().to_ne_bytes());
        (value[40], value[41], value[43], value[44]) = (path, ambiguous, closed, 1);
        value
    }

    #[test]
    fn flows_that_are_closed_half_open_or_share_their_ports_are_left_out() {
        let ports = FlowPorts { local: 1, remote: 2, ipv6: false };
        let at = Duration::from_secs(100);
        assert_eq!(known(ports, &flow(3, 0, 0, at)), Some(KnownFlow { ports, path: 3 }));
        assert_eq!(known(ports, &flow(3, 1, 0, at)), None);
        assert_eq!(known(ports, &flow(3, 0, 1, at)), None);
        let later = |seconds| at + Duration::from_secs(seconds);
        assert!(is_over(&flow(3, 0, 1, at), later(61)) && !is_over(&flow(3, 0, 1, at), later(60)));
        assert!(!is_over(&flow(3, 0, 0, at), later(3600)) && is_over(&flow(3, 0, 0, at), later(3601)));
        assert!(!is_over(&flow(3, 0, 1, at), Duration::ZERO));
        let mut half_open = flow(3, 0, 0, at);
        half_open[44] = 0;
        assert!(known(ports, &half_open).is_none() && is_over(&half_open, later(61)));
    }

    #[test]
    fn ports_are_read_as_they_are_written() {
        for ports in [
            FlowPorts { local: 443, remote: 50_000, ipv6: false },
            FlowPorts { local: 50_000, remote: 443, ipv6: true },
        ] {
            assert_eq!(FlowPorts::of(&ports.key()), Some(ports));
        }
        assert_eq!(FlowPorts { local: 0x1234, remote: 1, ipv6: false }.key()[..4], [0x12, 0x34, 0, 1]);
        assert_eq!(FlowPorts::of(&[0; 7]), None);
    }
}
