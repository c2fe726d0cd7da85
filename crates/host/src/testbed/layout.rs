//! Addresses, names and routes of a testbed, decided before it is built.
//!
//! | who | IPv4 | IPv6 |
//! |---|---|---|
//! | client, path P | 10.77.P.2/24 | fd77:0:0:P::2/64 |
//! | server's side of path P | 10.77.P.1/24 | fd77:0:0:P::1/64 |
//! | server, address n | 10.77.0.n | fd77::n |
//! | an engine at the client, path P | 10.78.P.2 | fd78:0:0:P::2 |
//! | an engine at the server, address n | 10.78.0.n | fd78::n |
//!
//! Paths count from 1. Packets from an address of path P take path P (a routing rule at the client), and so do packets
//! to an address of path P (a route at the server).

use crate::names;
use anabranch_paths::NetworkSpec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses and names of both hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The paths, in the order of the scenario.
    pub paths: Vec<PathLayout>,
    /// Index of the path that the client uses unless told otherwise.
    pub primary: usize,
    /// Number of addresses of each family that the server has.
    pub server_addresses: u8,
}

/// One path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathLayout {
    /// Its number, from 1.
    pub number: u8,
    /// Name in the scenario.
    pub name: String,
    /// The interface on both sides.
    pub device: String,
    /// True if it is used only when no other works.
    pub backup: bool,
}

/// The two families, each address in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6.
    pub v6: Ipv6Addr,
}

/// Network of the kernels' addresses: the second byte.
const KERNELS: u8 = 77;
const ENGINES: u8 = 78;

impl Layout {
    /// Lays out these paths and a server with this number of addresses of each family.
    pub fn new(spec: &NetworkSpec, server_addresses: usize) -> Self {
        let mut devices: Vec<String> = Vec::new();
        for path in &spec.paths {
            devices.push(names::interface(&path.name, &devices));
        }
        let paths = spec.paths.iter().zip(devices).zip(1..=u8::MAX).map(|((path, device), number)| PathLayout {
            number,
            name: path.name.clone(),
            device,
            backup: path.backup,
        });
        Layout { paths: paths.collect(), primary: spec.primary, server_addresses: server_addresses.clamp(1, 255) as u8 }
    }

    /// The path that the client uses unless told otherwise.
    pub fn primary(&self) -> &PathLayout {
        &self.paths[self.primary]
    }

    /// The addresses of the server, the first one first.
    pub fn server(&self) -> impl Iterator<Item = Addresses> + use<> {
        (1..=self.server_addresses).map(|n| Addresses::new(KERNELS, 0, n))
    }

    /// The addresses for an engine at the server.
    pub fn server_engine(&self) -> impl Iterator<Item = Addresses> + use<> {
        (1..=self.server_addresses).map(|n| Addresses::new(ENGINES, 0, n))
    }
}

impl PathLayout {
    /// The client's addresses here.
    pub fn client(&self) -> Addresses {
        Addresses::new(KERNELS, self.number, 2)
    }

    /// The server's addresses on its interface here.
    pub fn server_side(&self) -> Addresses {
        Addresses::new(KERNELS, self.number, 1)
    }

    /// The addresses for an engine at the client.
    pub fn client_engine(&self) -> Addresses {
        Addresses::new(ENGINES, self.number, 2)
    }

    /// The network of the kernels' addresses here.
    pub fn network(&self) -> Addresses {
        Addresses::new(KERNELS, self.number, 0)
    }

    /// The network of the engines' addresses here.
    pub fn engine_network(&self) -> Addresses {
        Addresses::new(ENGINES, self.number, 0)
    }

    /// The client's routing table for this path. 253 to 255 are the kernel's own.
    pub fn table(&self) -> u32 {
        let table = u32::from(self.number) + 100;
        if table < 250 { table } else { table + 1000 }
    }
}

impl Addresses {
    fn new(whose: u8, path: u8, host: u8) -> Self {
        let whose_v6 = match whose {
            KERNELS => 0xfd77,
            _ => 0xfd78,
        };
        Addresses {
            v4: Ipv4Addr::new(10, whose, path, host),
            v6: Ipv6Addr::new(whose_v6, 0, 0, u16::from(path), 0, 0, 0, u16::from(host)),
        }
    }

    /// Both.
    pub fn both(self) -> [IpAddr; 2] {
        [self.v4.into(), self.v6.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_paths_stand_in_their_addresses() {
        let path = PathLayout { number: 11, name: "lte".into(), device: "lte".into(), backup: false };
        assert_eq!(path.client().both().map(|a| a.to_string()), ["10.77.11.2", "fd77:0:0:b::2"]);
        assert_eq!(path.server_side().both().map(|a| a.to_string()), ["10.77.11.1", "fd77:0:0:b::1"]);
        assert_eq!(path.client_engine().both().map(|a| a.to_string()), ["10.78.11.2", "fd78:0:0:b::2"]);
        let layout = Layout { paths: vec![path], primary: 0, server_addresses: 2 };
        let server: Vec<String> = layout.server().flat_map(Addresses::both).map(|a| a.to_string()).collect();
        assert_eq!(server, ["10.77.0.1", "fd77::1", "10.77.0.2", "fd77::2"]);
    }

    #[test]
    fn no_path_takes_a_routing_table_of_the_kernel() {
        let table = |number| PathLayout { number, name: String::new(), device: String::new(), backup: false }.table();
        let tables: Vec<u32> = (1..=255).map(table).collect();
        assert_eq!((tables[0], tables[1]), (101, 102));
        assert!(tables.iter().all(|table| ![0, 253, 254, 255].contains(table)));
        assert!(tables.is_sorted_by(|a, b| a < b), "each its own");
    }
}
