//! A kernel and an engine face to face: one namespace, the engine's TUN device in it, two addresses each, nothing
//! between.

use crate::{Role, machine};
use anabranch_host::Namespace;
use std::io;
use std::net::IpAddr;

/// The namespace of the kernel peer, with its addresses; the engine is started in it with
/// [`Engine::start`](crate::Engine::start).
pub struct Direct {
    /// Namespace of the kernel's sockets and of the engine's device.
    pub namespace: Namespace,
    /// The kernel's addresses.
    pub kernel: Addresses,
    /// The engine's.
    pub engine: Addresses,
}

/// The two addresses of one side in each family, of the first path and of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: [IpAddr; 2],
    /// IPv6.
    pub v6: [IpAddr; 2],
}

impl Addresses {
    /// Of one family.
    pub fn family(&self, family: Family) -> [IpAddr; 2] {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// Versions of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Direct {
    /// A namespace in which the kernel has both its addresses, MPTCP is on with generous limits, and nothing is
    /// announced. None of it depends on how the machine is set up.
    pub fn new(name: &str) -> io::Result<Direct> {
        let namespace = Namespace::new(name)?;
        machine::set_defaults(&namespace)?;
        let kernel = addresses("10.77.1.2", "10.77.2.2", "fd77:0:0:1::2", "fd77:0:0:2::2");
        let engine = addresses("10.78.1.2", "10.78.2.2", "fd78:0:0:1::2", "fd78:0:0:2::2");
        let direct = Direct { namespace, kernel, engine };
        for address in direct.kernel.v4 {
            direct.ip(&["address", "add", &format!("{address}/32"), "dev", "lo"])?;
        }
        for address in direct.kernel.v6 {
            direct.ip(&["address", "add", &format!("{address}/128"), "dev", "lo", "nodad"])?;
        }
        direct.ip(&["mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"])?;
        Ok(direct)
    }

    /// The kernel's second address becomes an endpoint: a client joins from it, a server announces it.
    pub fn add_endpoint(&self, role: Role, family: Family) -> io::Result<()> {
        let flag = match role {
            Role::Client => "subflow",
            Role::Server => "signal",
        };
        self.ip(&["mptcp", "endpoint", "add", &self.kernel.family(family)[1].to_string(), flag])
    }

    /// Runs `ip`.
    pub fn ip(&self, arguments: &[&str]) -> io::Result<()> {
        self.namespace.command("ip", arguments).map(drop).map_err(io::Error::other)
    }
}

fn addresses(v4: &str, other_v4: &str, v6: &str, other_v6: &str) -> Addresses {
    let parse = |text: &str| text.parse().expect("an address is written here");
    Addresses { v4: [parse(v4), parse(other_v4)], v6: [parse(v6), parse(other_v6)] }
}
