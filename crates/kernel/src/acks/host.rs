//! One other host: rounds of probes on the paths to it, the choice of a path, and the word of that host.

use super::daemon::{Sockets, failed_to, nonce, since};
use super::maps::{Counts, FlowPorts, KnownFlow, Maps};
use super::message::{self, Kind, Message};
use super::path::{Path, PathRound, is_same};
use super::programs::{Attached, Programs, not_attached};
use super::{AcksError, HostSetup, PathSpec};
use crate::sys::monotonic;
use anabranch_policy::ack_path::{AckPath, Probing};
use anabranch_units::{Duration, Instant, SubflowId};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Knowledge of the other host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// It does not answer: no ACK moves.
    Silent,
    /// It names other paths, or in another order: no ACK moves.
    OtherPaths,
    /// It restores the ACKs of the subflows that it knows.
    Agrees,
}

/// State after a round of probes.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Round {
    /// Time since the beginning \[s\].
    pub time: f64,
    /// Name of the other host; `null` for one without a name.
    pub host: Option<String>,
    /// Knowledge of the other host.
    pub peer: Peer,
    /// The paths, in their order.
    pub paths: Vec<PathRound>,
    /// Subflows that are known here.
    pub subflows: usize,
    /// Subflows whose ACKs the other host restores.
    pub agreed: usize,
    /// Packets since the beginning.
    pub counts: Counts,
}

/// Programs at the devices of the paths to one other host, and what they are told. Each host has its own: of two hosts
/// subflows may have the same ports.
pub(super) struct Host {
    name: Option<String>,
    pub(super) paths: Vec<Path>,
    policy: Box<dyn AckPath>,
    probing: Probing,
    caution: bool,
    digest: u64,
    maps: Maps,
    programs: Programs,
    attached: BTreeMap<u32, Attached>,
    /// Path of the ACKs of each path's subflows.
    choices: Vec<usize>,
    peer: Peer,
    /// Rounds since the other host was heard.
    silent: u32,
    /// Number of subflows that are known here.
    subflows: usize,
    /// Subflows that the other host restores, each with the end of its word.
    agreed: BTreeMap<FlowPorts, Instant>,
    beginning: Duration,
}

/// Rounds for which a choice and the word of the other host hold (3τ).
const HOLDS: u32 = 3;

/// Rounds without a word after which the other host counts as silent.
const SILENT: u32 = 3;

/// Bounds of the other host's interval \[ms\], whatever it says.
const INTERVALS: std::ops::RangeInclusive<u32> = 10..=60_000;

/// The longest wait for ACKs that are still under way when this ends.
const LAST: Duration = Duration::from_secs(1);

/// Resources and settings that all hosts share.
pub(super) struct Common<'a> {
    pub(super) sockets: &'a Sockets,
    pub(super) port: u16,
    pub(super) caution: bool,
    pub(super) beginning: Duration,
}

impl Host {
    /// Loads the programs and attaches them to the devices. `first` is the number of its first path, from 1.
    pub(super) fn start(setup: HostSetup, first: usize, common: &Common<'_>) -> Result<Self, AcksError> {
        let digest = digest(&setup.paths);
        let open = |(index, spec): (usize, PathSpec)| {
            let socket = common.sockets.of(spec.local);
            Path::open(first + index, spec, common.port, socket)
        };
        let paths = setup.paths.into_iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        let maps = Maps::create().map_err(|error| failed_to("make the maps of the programs", error))?;
        let programs = Programs::load(&maps)?;
        let mut host = Host {
            name: setup.name,
            choices: (0..paths.len()).collect(),
            paths,
            probing: probing(&*setup.policy),
            policy: setup.policy,
            caution: common.caution,
            digest,
            maps,
            programs,
            attached: BTreeMap::new(),
            peer: Peer::Silent,
            silent: 0,
            subflows: 0,
            agreed: BTreeMap::new(),
            beginning: common.beginning,
        };
        host.attach()?;
        Ok(host)
    }

    /// Enters the paths, and has the programs at the devices of all of them.
    fn attach(&mut self) -> Result<(), AcksError> {
        let numbers: Vec<u32> = self.paths.iter().filter_map(|path| path.device).map(|device| device.number).collect();
        self.attached.retain(|number, _| numbers.contains(number));
        for (index, path) in self.paths.iter().enumerate() {
            let entry = path.entry();
            self.maps.set_path(index, entry.as_ref()).map_err(|error| failed_to("enter a path", error))?;
            if let Some(entry) = entry
                && !self.attached.contains_key(&entry.device)
            {
                let attached =
                    self.programs.attach(entry.device).map_err(|error| not_attached(&path.spec.device, error))?;
                self.attached.insert(entry.device, attached);
            }
        }
        Ok(())
    }

    /// Begins a round.
    pub(super) fn probe(&mut self, sockets: &Sockets) -> Result<(), AcksError> {
        // Devices come and go; without its device a path is down.
        let mut changed = false;
        for path in &mut self.paths {
            changed |= path.device_changed(sockets.of(path.spec.local));
        }
        if changed {
            self.attach()?;
        }
        let flows = self.maps.flows(monotonic()).map_err(|error| failed_to("list subflows", error))?;
        self.subflows = flows.len();
        let parts: Vec<&[KnownFlow]> = flows.chunks(message::FLOWS).collect();
        let count = parts.len().max(self.probing.probes as usize);
        for part in 0..count {
            let flows = parts.get(part).map_or_else(Vec::new, |part| part.to_vec());
            let own = Message { flows, ..self.own(Kind::Probe) };
            self.send(sockets, &own)?;
        }
        Ok(())
    }

    /// Sends a message on every path.
    fn send(&mut self, sockets: &Sockets, own: &Message) -> Result<(), AcksError> {
        let now = self.now();
        for path in &mut self.paths {
            path.send(sockets.of(path.spec.local), now, nonce()?, own);
        }
        Ok(())
    }

    /// Takes in what the other host says.
    pub(super) fn hear(&mut self, message: &Message) -> Result<(), AcksError> {
        self.silent = 0;
        self.peer = if message.digest == self.digest { Peer::Agrees } else { Peer::OtherPaths };
        if message.kind == Kind::Farewell || self.peer != Peer::Agrees {
            self.peer = if message.kind == Kind::Farewell { Peer::Silent } else { self.peer };
            return self.disagree();
        }
        let interval = message.interval.clamp(*INTERVALS.start(), *INTERVALS.end());
        let holds = Duration::from_millis(u64::from(interval * HOLDS));
        for theirs in &message.flows {
            let ports = FlowPorts { local: theirs.ports.remote, remote: theirs.ports.local, ipv6: theirs.ports.ipv6 };
            let ours = self.maps.flow(ports).map_err(|error| failed_to("look for a subflow", error))?;
            if ours.is_some_and(|ours| is_same(&ours, theirs)) {
                self.maps.agree(ports, monotonic() + holds).map_err(|error| failed_to("note an agreement", error))?;
                self.agreed.insert(ports, self.now() + holds);
            }
        }
        Ok(())
    }

    fn disagree(&mut self) -> Result<(), AcksError> {
        self.agreed.clear();
        self.maps.disagree().map_err(|error| failed_to("take agreements back", error))
    }

    /// Ends a round: the policy hears of it, and says where ACKs travel from now on.
    pub(super) fn judge(&mut self) -> Result<(), AcksError> {
        self.silent += 1;
        if self.silent > SILENT {
            self.peer = Peer::Silent;
        }
        let (now, interval) = (self.now(), self.probing.interval);
        self.agreed.retain(|_, until| *until > now);
        let round: Vec<_> =
            self.paths.iter_mut().enumerate().map(|(index, path)| path.judge(index, now, interval)).collect();
        self.policy.observe(now, &round);
        let up = self.paths.iter().enumerate().filter(|(_, path)| path.up && path.device.is_some());
        let routes: Vec<_> = up.map(|(index, path)| path.route(index)).collect();
        let holds = Duration::from_nanos(interval.as_nanos() * u64::from(HOLDS));
        for own in 0..self.paths.len() {
            let chosen = self.policy.path(now, SubflowId(own as u16), &routes).0 as usize;
            let is_up = routes.iter().any(|route| route.id.0 as usize == chosen);
            let chosen = if is_up && self.peer == Peer::Agrees { chosen } else { own };
            self.choices[own] = chosen;
            self.maps
                .choose(own, chosen, monotonic() + holds, self.caution)
                .map_err(|error| failed_to("choose a path", error))?;
        }
        Ok(())
    }

    /// Keeps ACKs at home, and tells the other host. Returns the time for which some may still be under way.
    pub(super) fn leave(&mut self, sockets: &Sockets) -> Result<Duration, AcksError> {
        for own in 0..self.paths.len() {
            let chosen = self.maps.choose(own, own, Duration::ZERO, self.caution);
            chosen.map_err(|error| failed_to("choose a path", error))?;
        }
        self.disagree()?;
        self.send(sockets, &self.own(Kind::Farewell))?;
        let slowest = self.paths.iter().filter_map(|path| path.rtt).max().unwrap_or_default();
        Ok(Duration::from_nanos(2 * slowest.as_nanos()).min(LAST))
    }

    /// The state after a round.
    pub(super) fn report(&self) -> Result<Round, AcksError> {
        let path = |(index, path): (usize, &Path)| PathRound {
            local: path.spec.local,
            remote: path.spec.remote,
            rtt_ms: path.rtt.map(|rtt| rtt.as_millis_f64()),
            up: path.up,
            acks_on: self.choices[index] + 1,
        };
        Ok(Round {
            time: self.now().as_secs_f64(),
            host: self.name.clone(),
            peer: self.peer,
            paths: self.paths.iter().enumerate().map(path).collect(),
            subflows: self.subflows,
            agreed: self.agreed.len(),
            counts: self.maps.counts().map_err(|error| failed_to("read the counters", error))?,
        })
    }

    /// A message of this host.
    pub(super) fn own(&self, kind: Kind) -> Message {
        let interval = self.probing.interval.as_millis() as u32;
        Message { kind, interval, nonce: 0, echo: 0, digest: self.digest, flows: Vec::new() }
    }

    fn now(&self) -> Instant {
        since(self.beginning)
    }
}

/// Rounds of probes for a policy. One without probes needs them all the same: they tell whether the other host is
/// there.
pub(super) fn probing(policy: &dyn AckPath) -> Probing {
    policy.probing().unwrap_or(Probing { interval: Duration::from_millis(200), probes: 3, judged_late: false })
}

/// The same for both ends of the same paths in the same order.
fn digest(paths: &[PathSpec]) -> u64 {
    let mut hash = Sha256::new();
    for path in paths {
        let (low, high) = (path.local.min(path.remote), path.local.max(path.remote));
        for address in [low, high] {
            match address {
                IpAddr::V4(address) => hash.update(address.octets()),
                IpAddr::V6(address) => hash.update(address.octets()),
            }
        }
    }
    hash.finalize().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    pub(in crate::acks) fn spec(local: &str, remote: &str) -> PathSpec {
        PathSpec { local: local.parse().unwrap(), remote: remote.parse().unwrap(), device: "lo".into() }
    }

    #[test]
    fn both_ends_of_the_same_paths_have_one_digest() {
        let here = [spec("10.0.1.1", "10.1.1.1"), spec("fd00::1", "fd01::1")];
        let there = [spec("10.1.1.1", "10.0.1.1"), spec("fd01::1", "fd00::1")];
        assert_eq!(digest(&here), digest(&there));
        let [a, b] = here.clone();
        assert_ne!(digest(&here), digest(&[b, a]));
    }
}
