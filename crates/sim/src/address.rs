//! The addresses of hosts.
//!
//! Host `h`'s address with index `i` is `10.a.i.b` with `h = 256·(b - 1) + a`: of a client one for each path, of a
//! server as many as it has. Behind a NAT `b` is larger by 100, so that the host and the path of a packet can still be
//! read off.

use anabranch_paths::Direction;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The side of a connection that sends data in this direction: 0 for the client, 1 for the server.
#[inline]
pub(crate) const fn sender(direction: Direction) -> usize {
    match direction {
        Direction::Down => 1,
        Direction::Up => 0,
    }
}

/// The address of host `host` with this index.
pub(crate) const fn address(host: usize, index: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, host as u8, index as u8, (host / 256) as u8 + 1))
}

/// The first client's address on path `path`, which names that path to a policy.
pub const fn client_address(path: usize) -> IpAddr {
    address(0, path)
}

/// The host that has this address, and the index of the address there.
#[inline]
pub(crate) fn owner(address: IpAddr) -> (usize, usize) {
    match address {
        IpAddr::V4(v4) => {
            let [_, low, index, high] = v4.octets();
            (usize::from(high % NAT - 1) << 8 | usize::from(low), usize::from(index))
        }
        IpAddr::V6(_) => unreachable!("the simulator gives IPv4 addresses only"),
    }
}

/// Returns the address at which a server is reached first.
pub(crate) const fn service(server: usize) -> SocketAddr {
    SocketAddr::new(address(server, 0), SERVICE)
}

/// Port of servers: the one that iperf made usual for bulk transfers. Wireshark knows no protocol there, as it does at
/// 80, where it would take our bytes for broken HTTP.
pub(crate) const SERVICE: u16 = 5001;

/// Added to the last octet by a NAT ([`anabranch_paths::Middlebox::Nat`]).
const NAT: u8 = 100;

/// Hosts that have addresses of their own.
pub(crate) const MAX_HOSTS: usize = (NAT as usize - 1) * 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_index_are_written_in_an_address_also_behind_a_nat() {
        for (host, index, text) in [(0, 5, "10.0.5.1"), (3, 0, "10.3.0.1"), (MAX_HOSTS - 1, 255, "10.255.255.99")] {
            let address = address(host, index);
            assert_eq!((address.to_string(), owner(address)), (text.to_owned(), (host, index)));
            let IpAddr::V4(v4) = address else { unreachable!("an IPv4 address") };
            let [ten, low, index_octet, high] = v4.octets();
            assert_eq!(owner(IpAddr::from([ten, low, index_octet, high + NAT])), (host, index));
        }
    }
}
