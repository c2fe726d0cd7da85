//! One path: its probes, and what came of them.

use super::device::Device;
use super::maps::PathEntry;
use super::message::{Kind, Message};
use super::{AcksError, maps::KnownFlow};
use anabranch_policy::ack_path::{AckRoute, Probe};
use anabranch_units::{Duration, Instant, SubflowId};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::net::{IpAddr, UdpSocket};

/// A path to the other host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathSpec {
    /// Our address.
    pub local: IpAddr,
    /// Address of the other host.
    pub remote: IpAddr,
    /// Device that has our address.
    pub device: String,
}

/// A path in a round of probes.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PathRound {
    /// Our address.
    pub local: IpAddr,
    /// Address of the other host.
    pub remote: IpAddr,
    /// Shortest round trip of the probes of this round, or of the latest that was answered \[ms\].
    pub rtt_ms: Option<f64>,
    /// Probes of this round were answered.
    pub up: bool,
    /// Number of the path, from 1, on which ACKs of its subflows travel.
    pub acks_on: usize,
}

/// A path with its probes.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) spec: PathSpec,
    /// UDP port on both hosts.
    port: u16,
    /// The device, while it is there.
    pub(super) device: Option<Device>,
    /// Probes that may still be answered, the latest last: nonce, and when each left.
    sent: VecDeque<(u64, Instant)>,
    /// Latest nonce of the other host, and when one came last with the echo of a nonce of ours.
    heard: u64,
    proven: Option<Instant>,
    /// Shortest round trip of the replies in this round.
    best: Option<Duration>,
    /// Time of the latest reply.
    answered: Option<Instant>,
    /// Shortest round trip of the latest round with a reply.
    pub(super) rtt: Option<Duration>,
    pub(super) up: bool,
}

/// Probes that are remembered, and for how long: no path takes more.
const MOST_SENT: usize = 1024;
const LONGEST_RTT: Duration = Duration::from_secs(5);

/// Time for which the nonce of a host that has proven itself is not replaced by one of a host that has not.
const PROVEN: Duration = Duration::from_secs(1);

impl Path {
    /// Looks at the device of path `number`, from 1; `socket` is any.
    pub(super) fn open(number: usize, spec: PathSpec, port: u16, socket: &UdpSocket) -> Result<Self, AcksError> {
        let device = Device::look(socket, &spec.device).map_err(|error| AcksError::Device {
            number,
            device: spec.device.clone(),
            error,
        })?;
        Ok(Path {
            spec,
            port,
            device: Some(device),
            sent: VecDeque::new(),
            heard: 0,
            proven: None,
            best: None,
            answered: None,
            rtt: None,
            up: false,
        })
    }

    /// Looks at the device again; true if it is another than before, or gone.
    pub(super) fn device_changed(&mut self, socket: &UdpSocket) -> bool {
        let device = Device::look(socket, &self.spec.device).ok();
        std::mem::replace(&mut self.device, device) != device
    }

    pub(super) fn entry(&self) -> Option<PathEntry> {
        let (local, remote) = (self.spec.local, self.spec.remote);
        self.device.map(|device| PathEntry { local, remote, device: device.number, mac: device.mac })
    }

    /// Sends a message with a new nonce. An error of the network is a probe without an answer.
    pub(super) fn send(&mut self, socket: &UdpSocket, now: Instant, nonce: u64, message: &Message) {
        let is_old = |(_, at): &(u64, Instant)| now.since(*at) > LONGEST_RTT;
        while self.sent.len() >= MOST_SENT || self.sent.front().is_some_and(is_old) {
            self.sent.pop_front();
        }
        let message = Message { nonce, echo: self.heard, ..message.clone() };
        if self.deliver(socket, &message) {
            self.sent.push_back((nonce, now));
        }
    }

    fn deliver(&self, socket: &UdpSocket, message: &Message) -> bool {
        socket.send_to(&message.encode(), (self.spec.remote, self.port)).is_ok()
    }

    /// Takes a message in that came on this path: answers a probe, notes the round trip of a reply. True if it knows a
    /// nonce that only those on this path have seen.
    pub(super) fn take(&mut self, socket: &UdpSocket, now: Instant, message: &Message, own: &Message) -> bool {
        let known = self.sent.iter().find(|(nonce, _)| *nonce == message.echo).copied();
        if known.is_some() {
            self.proven = Some(now);
        }
        match message.kind {
            Kind::Probe => {
                // One without an echo is the first of a host that begins anew, or forged: it has to wait.
                if known.is_some() || self.proven.is_none_or(|at| now.since(at) > PROVEN) {
                    self.heard = message.nonce;
                }
                let reply = Message { kind: Kind::Reply, echo: message.nonce, ..own.clone() };
                self.deliver(socket, &reply);
            }
            Kind::Reply => {
                // Also one to a probe of an earlier round, where a round trip takes longer than a round.
                if let Some((_, at)) = known {
                    let rtt = now.since(at);
                    self.best = Some(self.best.map_or(rtt, |best| best.min(rtt)));
                    self.answered = Some(now);
                }
            }
            Kind::Farewell => {}
        }
        known.is_some()
    }

    /// Ends a round of this length: returns what its probes say. Without a reply in twice the round trip, and at least
    /// a round, the path is down.
    pub(super) fn judge(&mut self, number: usize, now: Instant, interval: Duration) -> Probe {
        let best = self.best.take();
        let patience = interval.max(Duration::from_nanos(2 * self.rtt.unwrap_or_default().as_nanos()));
        self.up = best.is_some() || self.answered.is_some_and(|at| now.since(at) < patience);
        self.rtt = best.or(self.rtt);
        Probe { id: SubflowId(number as u16), best, down: !self.up }
    }

    pub(super) fn route(&self, number: usize) -> AckRoute {
        AckRoute { id: SubflowId(number as u16), srtt: self.rtt, local: self.spec.local, remote: self.spec.remote }
    }
}

/// True if both hosts mean the same subflow: its ports are exchanged, its path is the same.
pub(super) fn is_same(ours: &KnownFlow, theirs: &KnownFlow) -> bool {
    let ports = (theirs.ports.remote, theirs.ports.local, theirs.ports.ipv6);
    (ours.ports.local, ours.ports.remote, ours.ports.ipv6) == ports && ours.path == theirs.path
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::acks::host::tests::spec;

    #[test]
    fn a_number_without_an_echo_waits_while_another_is_proven() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut path = Path::open(1, spec("127.0.0.1", "127.0.0.2"), 9, &socket).unwrap();
        path.sent.push_back((7, Instant::ZERO));
        let message = |nonce, echo| {
            let (kind, flows) = (Kind::Probe, Vec::new());
            Message { kind, interval: 200, nonce, echo, digest: 0, flows }
        };
        let mut heard = |millis: u64, nonce, echo| {
            path.take(&socket, Instant::from_nanos(millis * 1_000_000), &message(nonce, echo), &message(0, 0));
            path.heard
        };
        assert_eq!((heard(0, 1, 0), heard(100, 2, 0)), (1, 2), "none is proven yet");
        assert_eq!(heard(200, 3, 7), 3, "proven");
        assert_eq!(heard(1200, 99, 0), 3, "forged");
        assert_eq!(heard(1201, 4, 0), 4, "of a host that began anew");
    }
}
