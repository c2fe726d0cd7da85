//! Two namespaces with devices between which an emulator stands.
#![allow(clippy::unwrap_used, dead_code)]

use anabranch_host::emulator::Handle;
use anabranch_host::emulator::Options;
use anabranch_host::{Device, Emulator, Namespace, PacketSocket, PathEnds, Tun};
use anabranch_net::LinkConfig;
use anabranch_paths::{NetworkSpec, PathSpec};
use anabranch_units::{Duration, Rate, Seed};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::SocketAddrV4;

/// A client and a server, path `n` (from 1) with 10.77.n.2 and fd77:0:0:n::2 at the client and .1 at the server.
pub struct Hosts {
    pub client: Namespace,
    pub server: Namespace,
    /// True if interfaces speak IPv6 too. Without it, only the test's own packets are on the links.
    pub ipv6: bool,
    /// Devices are veth pairs with their other ends in this namespace; otherwise TUN devices.
    pub emulator: Option<Namespace>,
}

/// Makes two hosts; returns `None`, with a message, where the system does not permit it.
pub fn hosts() -> Option<Hosts> {
    let made = || -> std::io::Result<Hosts> {
        let hosts =
            Hosts { client: Namespace::new("client")?, server: Namespace::new("server")?, ipv6: false, emulator: None };
        hosts.client.run(|| Tun::open("probe"))?;
        Ok(hosts)
    };
    match made() {
        Ok(hosts) => Some(hosts),
        Err(error) => {
            println!(
                "SKIPPED: network namespaces and TUN devices need root or CAP_NET_ADMIN and CAP_SYS_ADMIN: {error}"
            );
            None
        }
    }
}

impl Hosts {
    /// Devices for paths of these names.
    pub fn devices(&self, names: &[&str]) -> Vec<PathEnds> {
        let device = |namespace: &Namespace, name: &str, path: usize, host: u8| -> Box<dyn Device> {
            let owned = name.to_owned();
            let device: Box<dyn Device> = match &self.emulator {
                None => Box::new(namespace.run(move || Tun::open(&owned)).unwrap()),
                Some(emulator) => {
                    let end = format!("end{path}-{host}");
                    Box::new(PacketSocket::pair(namespace, name, emulator, &end).unwrap())
                }
            };
            namespace.sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), if self.ipv6 { "0" } else { "1" }).unwrap();
            let ip = |arguments: &[&str]| namespace.command("ip", arguments).unwrap();
            ip(&["link", "set", name, "txqueuelen", "10000", "up"]);
            ip(&["address", "add", &format!("10.77.{path}.{host}/24"), "dev", name]);
            if self.ipv6 {
                ip(&["address", "add", &format!("fd77:0:0:{path}::{host}/64"), "dev", name, "nodad"]);
            }
            device
        };
        let ends = names.iter().zip(1..).map(|(name, path)| PathEnds {
            client: device(&self.client, name, path, 2),
            server: device(&self.server, name, path, 1),
        });
        ends.collect()
    }
}

/// A link with this rate \[Mbit/s\] and delay \[ms\].
pub fn link(mbps: u64, ms: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(ms))
}

/// Both ways alike.
pub fn path(name: &str, config: &LinkConfig) -> PathSpec {
    PathSpec::new(name, config.clone(), config.clone())
}

/// An emulator of these paths over TUN devices.
pub fn start(hosts: &Hosts, spec: &NetworkSpec) -> Handle {
    start_with(hosts, spec, Options::default())
}

/// The same with options.
pub fn start_with(hosts: &Hosts, spec: &NetworkSpec, options: Options) -> Handle {
    let names: Vec<&str> = spec.paths.iter().map(|path| path.name.as_str()).collect();
    Emulator::start(spec, Seed(1), hosts.devices(&names), options).unwrap()
}

/// Sends `count` pings from the client, and answers how many were answered before or with the last, for which it waits
/// so long.
pub fn ping(hosts: &Hosts, address: &str, count: u16, patience: std::time::Duration) -> usize {
    let address: std::net::Ipv4Addr = address.parse().unwrap();
    hosts.client.sysctl("net.ipv4.ping_group_range", "0 0").unwrap();
    let pings = move || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4)).unwrap();
        socket.connect(&SocketAddrV4::new(address, 0).into()).unwrap();
        socket.set_read_timeout(Some(patience)).unwrap();
        let mut socket = std::fs::File::from(std::os::fd::OwnedFd::from(socket));
        for number in 0..count {
            let mut request = [0; 64];
            request[0] = 8; // Echo request; the kernel fills in identifier and checksum.
            request[6..8].copy_from_slice(&number.to_be_bytes());
            // A path that is down refuses it, and nothing comes back.
            let _ = socket.write_all(&request);
        }
        let (mut answers, mut answer) = (0, [0; 200]);
        loop {
            let length = match socket.read(&mut answer) {
                // The process was stopped and goes on.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
                Ok(length) => length,
            };
            assert!(length >= 8, "an answer has a header");
            answers += 1;
            if answer[6..8] == (count - 1).to_be_bytes() {
                break;
            }
        }
        answers
    };
    hosts.client.spawn(pings).join().unwrap()
}
