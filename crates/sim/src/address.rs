//! The addresses of hosts, which select the paths of packets.
//!
//! Hosts come in pairs: pair 0 is the client and the server, each competing TCP workload has one more. The client of pair
//! `n` has the address `10.2n.i.1` on path `i`, its server has `10.(2n+1).j.1`. A packet takes the path that is written in
//! its client's address, so finding the route takes no table.

use anabranch_paths::Direction;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The host that sends data in this direction: 0 for the client of a pair, 1 for its server.
#[inline]
pub(crate) const fn sender(direction: Direction) -> usize {
    match direction {
        Direction::Down => 1,
        Direction::Up => 0,
    }
}

/// The address of host `host` (pair `host / 2`, its client if even) with this index.
pub(crate) const fn address(host: usize, index: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, host as u8, index as u8, 1))
}

/// The client's address on path `path`, which names that path to a policy.
pub const fn client_address(path: usize) -> IpAddr {
    address(0, path)
}

/// The host that has this address, and the index of the address there.
#[inline]
pub(crate) fn owner(address: IpAddr) -> (usize, usize) {
    match address {
        IpAddr::V4(v4) => {
            let [_, host, index, _] = v4.octets();
            (usize::from(host), usize::from(index))
        }
        IpAddr::V6(_) => unreachable!("the simulator gives IPv4 addresses only"),
    }
}

/// The path between two addresses: written in the client's.
#[inline]
pub(crate) fn path_between(local: IpAddr, remote: IpAddr) -> usize {
    let (host, index) = owner(local);
    if host.is_multiple_of(2) { index } else { owner(remote).1 }
}

/// The port that servers listen on: the one that iperf made usual for bulk transfers. Wireshark knows no protocol there, as it
/// does at 80, where it would take our bytes for broken HTTP.
pub(crate) const SERVICE: u16 = 5001;

/// Where the server of a pair is reached first.
pub(crate) const fn service(pair: usize) -> SocketAddr {
    SocketAddr::new(address(2 * pair + 1, 0), SERVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_written_in_the_address_of_the_client() {
        for pair in [0, 3] {
            let (client, server) = (address(2 * pair, 5), address(2 * pair + 1, 2));
            assert_eq!((path_between(client, server), path_between(server, client)), (5, 5));
            assert_eq!(owner(server), (2 * pair + 1, 2));
        }
    }
}
