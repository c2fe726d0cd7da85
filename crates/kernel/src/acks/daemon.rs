//! The other hosts side by side: sockets that they share, and rounds of probes.

use super::host::{Common, Host, Round, probing};
use super::message::{self, Kind, Message};
use super::{AcksError, PATHS, PathSpec, Setup};
use crate::sys::monotonic;
use anabranch_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{IpAddr, UdpSocket};

/// Programs at the devices of the paths, and what they are told. Dropping it takes them away.
pub struct Acks {
    sockets: Sockets,
    hosts: Vec<Host>,
    /// Time from one round to the next.
    interval: Duration,
    beginning: Duration,
}

impl Acks {
    /// Loads the programs and attaches them to the devices. No ACK moves before [`run`](Self::run).
    ///
    /// # Errors
    /// If paths, devices, sockets or the kernel are not fit for it; nothing stays behind.
    pub fn start(setup: Setup) -> Result<Self, AcksError> {
        for host in &setup.hosts {
            if !(2..=PATHS).contains(&host.paths.len()) {
                return Err(AcksError::Count { host: host.name.clone(), count: host.paths.len() });
            }
        }
        let all: Vec<PathSpec> = setup.hosts.iter().flat_map(|host| &host.paths).cloned().collect();
        check(&all)?;
        let sockets = Sockets::open(&all, setup.port)?;
        let beginning = monotonic();
        let common = Common { sockets: &sockets, port: setup.port, caution: setup.caution, beginning };
        let interval = setup.hosts.iter().map(|host| probing(&*host.policy).interval).min().unwrap_or_default();
        let (mut first, mut hosts) = (1, Vec::new());
        for host in setup.hosts {
            let count = host.paths.len();
            hosts.push(Host::start(host, first, &common)?);
            first += count;
        }
        Ok(Acks { sockets, hosts, interval, beginning })
    }

    /// Probes, chooses and tells the other hosts, until `is_over`, which is asked every 50 ms. `report` hears of each
    /// round of each host, and ends it with false. Then the other hosts are told that this one leaves, and ACKs that
    /// are under way are still put back.
    ///
    /// # Errors
    /// If a system call fails; drop this then, and all ACKs are on their own paths.
    pub fn run(
        &mut self,
        mut is_over: impl FnMut() -> bool,
        mut report: impl FnMut(&Round) -> bool,
    ) -> Result<(), AcksError> {
        let mut over = is_over();
        while !over {
            for host in &mut self.hosts {
                host.probe(&self.sockets)?;
            }
            let end = self.now() + self.interval;
            while self.now() < end && !over {
                self.listen(end)?;
                over = is_over();
            }
            for host in &mut self.hosts {
                host.judge()?;
                over |= !report(&host.report()?);
            }
        }
        let mut wait = Duration::ZERO;
        for host in &mut self.hosts {
            wait = wait.max(host.leave(&self.sockets)?);
        }
        std::thread::sleep(std::time::Duration::from_nanos(wait.as_nanos()));
        Ok(())
    }

    /// Takes what comes until the end of the round.
    fn listen(&mut self, end: Instant) -> Result<(), AcksError> {
        let wait = end.since(self.now()).min(Duration::from_millis(50)).as_nanos();
        let timeout = Timespec { tv_sec: (wait / 1_000_000_000) as _, tv_nsec: (wait % 1_000_000_000) as _ };
        let mut ready: Vec<PollFd<'_>> =
            self.sockets.0.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed_to("wait for probes", error.into())),
        }
        let mut heard = Vec::new();
        for (local, socket) in &self.sockets.0 {
            let mut bytes = [0; message::LONGEST + 1];
            // More would keep the rounds waiting; it is what a flood sends, and the rest waits in the socket.
            for _ in 0..MOST_READ {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { break };
                let Some(message) = Message::decode(&bytes[..length]) else { continue };
                let ends = |host: &Host| {
                    host.paths.iter().position(|path| (path.spec.local, path.spec.remote) == (*local, from.ip()))
                };
                let found = self.hosts.iter().enumerate().find_map(|(host, it)| Some((host, ends(it)?)));
                let Some((host, path)) = found else { continue };
                let own = self.hosts[host].own(Kind::Reply);
                if self.hosts[host].paths[path].take(socket, since(self.beginning), &message, &own) {
                    heard.push((host, message));
                }
            }
        }
        heard.iter().try_for_each(|(host, message)| self.hosts[*host].hear(message))
    }

    fn now(&self) -> Instant {
        since(self.beginning)
    }
}

/// Datagrams that are read from one socket before the others have their turn.
const MOST_READ: usize = 256;

/// A socket at each address of ours.
pub(super) struct Sockets(Vec<(IpAddr, UdpSocket)>);

impl Sockets {
    fn open(paths: &[PathSpec], port: u16) -> Result<Self, AcksError> {
        let mut sockets: Vec<(IpAddr, UdpSocket)> = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let local = path.local;
            if sockets.iter().all(|(address, _)| *address != local) {
                let socket = UdpSocket::bind((local, port)).and_then(|it| it.set_nonblocking(true).map(|()| it));
                let refused = |error| AcksError::Socket { number: index + 1, local, port, error };
                sockets.push((local, socket.map_err(refused)?));
            }
        }
        Ok(Sockets(sockets))
    }

    pub(super) fn of(&self, local: IpAddr) -> &UdpSocket {
        let own = self.0.iter().find(|(address, _)| *address == local);
        &own.expect("each path has a socket").1
    }
}

pub(super) fn since(beginning: Duration) -> Instant {
    Instant::from_nanos(monotonic().saturating_sub(beginning).as_nanos())
}

pub(super) fn nonce() -> Result<u64, AcksError> {
    getrandom::u64().map_err(|error| failed_to("draw a number", io::Error::other(error)))
}

pub(super) fn failed_to(what: &'static str, error: io::Error) -> AcksError {
    AcksError::Failed { what, error }
}

/// Checks the paths to all hosts together.
fn check(paths: &[PathSpec]) -> Result<(), AcksError> {
    for (index, path) in paths.iter().enumerate() {
        let PathSpec { local, remote, .. } = path;
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(AcksError::Families { number: index + 1, local: *local, remote: *remote });
        }
        let same = paths[..index].iter().position(|other| (other.local, other.remote) == (*local, *remote));
        if let Some(first) = same {
            return Err(AcksError::Twice(index + 1, first + 1));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::acks::HostSetup;
    use crate::acks::host::tests::spec;
    use anabranch_policy::registry::ACK_PATHS;

    #[test]
    fn paths_are_checked() {
        let [a, b] = [spec("10.0.1.1", "10.1.1.1"), spec("10.0.2.1", "10.1.1.1")];
        assert!(check(&[a.clone(), b.clone()]).is_ok());
        assert!(matches!(check(&[a.clone(), b, a.clone()]), Err(AcksError::Twice(3, 1))));
        assert!(matches!(check(&[a, spec("10.0.1.1", "fd00::1")]), Err(AcksError::Families { number: 2, .. })));
    }

    /// Refused before the kernel is asked for anything.
    #[test]
    fn each_host_has_two_to_eight_paths() {
        let host = |name: &str, count: usize| HostSetup {
            name: Some(name.to_owned()),
            paths: (0..count).map(|path| spec(&format!("10.0.{path}.1"), &format!("10.1.{path}.1"))).collect(),
            policy: ACK_PATHS[0].build_default().policy,
        };
        for paths in [1, 9] {
            let hosts = vec![host("a", 2), host("b", paths)];
            let error = Acks::start(Setup { hosts, port: 1, caution: true }).err().unwrap();
            assert_eq!(error.to_string(), format!("{paths} paths to b are given; 2 to 8 can be used"));
        }
    }
}
