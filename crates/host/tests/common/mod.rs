//! Two namespaces with devices between which an emulator stands.
#![allow(clippy::unwrap_used, dead_code)]

use anabranch_engine::{Policies, Profile};
use anabranch_host::emulator::Handle;
use anabranch_host::emulator::Options;
use anabranch_host::{Device, Emulator, Namespace, PathEnds, Tun};
use anabranch_net::LinkConfig;
use anabranch_sim::{HostSpec, PathSpec, Spec};
use anabranch_units::{Duration, Rate};

/// A client and a server, path `n` (from 1) with 10.77.n.2 and fd77:0:0:n::2 at the client and .1 at the server.
pub struct Hosts {
    pub client: Namespace,
    pub server: Namespace,
}

/// `None`, with a word to whoever runs the tests, where the system does not permit it.
pub fn hosts() -> Option<Hosts> {
    let made = || -> std::io::Result<Hosts> {
        let hosts = Hosts { client: Namespace::new("client")?, server: Namespace::new("server")? };
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
    /// TUN devices for paths of these names.
    pub fn tuns(&self, names: &[&str]) -> Vec<PathEnds> {
        let tun = |namespace: &Namespace, name: &str, path: usize, host: u8| -> Box<dyn Device> {
            let owned = name.to_owned();
            let device = namespace.run(move || Tun::open(&owned)).unwrap();
            let ip = |arguments: &[&str]| namespace.command("ip", arguments).unwrap();
            ip(&["link", "set", name, "txqueuelen", "10000", "up"]);
            ip(&["address", "add", &format!("10.77.{path}.{host}/24"), "dev", name]);
            ip(&["address", "add", &format!("fd77:0:0:{path}::{host}/64"), "dev", name, "nodad"]);
            Box::new(device)
        };
        let ends = names.iter().zip(1..).map(|(name, path)| PathEnds {
            client: tun(&self.client, name, path, 2),
            server: tun(&self.server, name, path, 1),
        });
        ends.collect()
    }
}

/// The specification of these paths.
pub fn spec(paths: Vec<PathSpec>) -> Spec {
    let host = HostSpec::new(Profile::linux(), Policies::default());
    Spec::new(paths, host.clone(), host)
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
pub fn start(hosts: &Hosts, spec: &Spec) -> Handle {
    let names: Vec<&str> = spec.paths.iter().map(|path| path.name.as_str()).collect();
    Emulator::start(spec, hosts.tuns(&names), Options::default()).unwrap()
}
