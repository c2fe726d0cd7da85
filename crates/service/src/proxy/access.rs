//! Access control of a proxy in front of programs: its users, and the networks that it may connect to.
//!
//! Without limits such a proxy would open the services that trust the machine or its network to every client, among
//! them the one that hands out credentials to virtual machines.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;

/// A network as an address and the length of its prefix (RFC 4632).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    base: IpAddr,
    length: u8,
}

/// Text that is no network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a network; accepted: an address, or a network such as 192.168.0.0/16 or 2001:db8::/32")]
pub struct NetworkError;

impl Network {
    const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Self {
        Network { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length }
    }

    const fn v6(words: [u16; 8], length: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = words;
        Network { base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), length }
    }

    /// `address` lies in it. An IPv4 address in IPv6 clothes (RFC 4291 §2.5.5.2) is the IPv4 address.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (a, b, width) = match (address.to_canonical(), self.base) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
            _ => return false,
        };
        self.length == 0 || (a ^ b) >> (width - u32::from(self.length)) == 0
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (base, length) = text.split_once('/').map_or((text, None), |(base, length)| (base, Some(length)));
        let base = base.parse::<IpAddr>().map_err(|_| NetworkError)?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| NetworkError)?
            }
            Some(_) => return Err(NetworkError),
        };
        let mapped = base != base.to_canonical();
        if length > most || mapped { Err(NetworkError) } else { Ok(Network { base, length }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.length)
    }
}

/// The bounds of a proxy in front of programs.
#[derive(Clone, Default, Debug)]
pub struct Access {
    /// Clients from elsewhere are sent away, except those on the machine itself. Empty for all.
    pub clients: Vec<Network>,
    /// Permitted destinations, if any are given; they override the default denials.
    pub to_allow: Vec<Network>,
    /// Destinations denied whatever `to_allow` says.
    pub to_deny: Vec<Network>,
}

/// Networks that can be no destination of a connection, or only this machine's own.
const NOWHERE: [Network; 6] = [
    Network::v4(0, 0, 0, 0, 8),
    Network::v4(127, 0, 0, 0, 8),
    Network::v4(224, 0, 0, 0, 4),
    Network::v4(255, 255, 255, 255, 32),
    Network::v6([0; 8], 127),
    Network::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// Denied unless allowed: link-local addresses (RFC 3927; RFC 4291 §2.5.6), among which the clouds have their metadata
/// services, and the addresses of those services elsewhere.
const DENIED: [Network; 5] = [
    Network::v4(169, 254, 0, 0, 16),
    Network::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    Network::v6([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254], 128),
    Network::v4(100, 100, 100, 200, 32),
    Network::v4(192, 0, 0, 192, 32),
];

impl Access {
    /// Returns true if a listener here would serve clients from anywhere.
    pub fn is_open(&self, listen: SocketAddr, with_users: bool) -> bool {
        !listen.ip().to_canonical().is_loopback() && !with_users && self.clients.is_empty()
    }

    /// Tells whether a client with this address is served.
    pub(super) fn admits(&self, client: IpAddr) -> bool {
        let on_machine = client.to_canonical().is_loopback();
        on_machine || self.clients.is_empty() || self.clients.iter().any(|network| network.holds(client))
    }

    /// Tells whether a client may have a connection to `address`. `is_own` says which addresses are this machine's.
    pub(super) fn permits(&self, address: IpAddr, is_own: impl Fn(IpAddr) -> bool) -> bool {
        let address = address.to_canonical();
        let within = |networks: &[Network], address| networks.iter().any(|network| network.holds(address));
        // An address that a translator makes an IPv4 address of is that one, too.
        let any = |test: &dyn Fn(IpAddr) -> bool| test(address) || embedded(address).any(test);
        if any(&|address| within(&NOWHERE, address) || within(&self.to_deny, address)) {
            return false;
        }
        if !self.to_allow.is_empty() {
            return within(&self.to_allow, address);
        }
        !any(&|address| within(&DENIED, address) || is_own(address))
    }
}

/// The IPv4 addresses that translators may make of an IPv6 address: NAT64 (RFC 6052 §2.1), 6to4 (RFC 3056), SIIT (RFC
/// 2765 §2.1) and the "compatible" form (RFC 4291 §2.5.5.1). Of the prefix for networks' own translators (RFC 8215) it
/// cannot be told where theirs puts the address, so that each place of RFC 6052 §2.2 counts.
fn embedded(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let (octets, words) = match address {
        IpAddr::V4(_) => ([0; 16], [u16::MAX; 8]),
        IpAddr::V6(v6) => (v6.octets(), v6.segments()),
    };
    let places: &[[usize; 4]] = match words {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => &[[12, 13, 14, 15]],
        [0x64, 0xff9b, 1, ..] => &[[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]],
        [0x2002, ..] => &[[2, 3, 4, 5]],
        _ => &[],
    };
    let found = places.iter().map(move |place| Ipv4Addr::from(place.map(|at| octets[at])));
    // Read at the wrong place, an address often begins with the padding.
    let is_padding = move |v4: &Ipv4Addr| places.len() > 1 && v4.octets()[0] == 0;
    found.filter(move |v4| !is_padding(v4)).map(IpAddr::V4)
}

/// An address of this machine: one that a socket can have.
pub(super) fn is_of_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(text: &str) -> Vec<Network> {
        text.split_whitespace().map(|word| word.parse().expect("a network")).collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn networks_are_read_and_hold_addresses() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "example.org", "::ffff:10.0.0.0/104"] {
            assert_eq!(wrong.parse::<Network>(), Err(NetworkError), "{wrong}");
        }
        for (network, address, holds) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("2001:db8::/33", "2001:db8:8000::1", false),
            ("::/0", "2001:db8::1", true),
        ] {
            assert_eq!(network.parse::<Network>().expect("a network").holds(ip(address)), holds, "{network} {address}");
        }
    }

    #[test]
    fn a_listener_that_others_reach_wants_to_know_whom_it_serves() {
        let (closed, bounded) =
            (Access::default(), Access { clients: networks("192.168.0.0/16"), ..Access::default() });
        for (listen, access, with_users, open) in [
            ("0.0.0.0:1080", &closed, false, true),
            ("[::]:1080", &closed, false, true),
            ("192.0.2.1:1080", &closed, false, true),
            ("192.0.2.1:1080", &closed, true, false),
            ("192.0.2.1:1080", &bounded, false, false),
            ("127.0.0.1:1080", &closed, false, false),
            ("[::ffff:127.0.0.1]:1080", &closed, false, false),
        ] {
            let listen = listen.parse().expect("an address");
            assert_eq!(access.is_open(listen, with_users), open, "{listen}");
        }
        assert!(bounded.admits(ip("192.168.3.4")) && bounded.admits(ip("::1")) && !bounded.admits(ip("10.0.0.1")));
    }

    #[test]
    fn some_destinations_are_denied_unless_they_are_allowed() {
        let is_own = |address: IpAddr| address == ip("192.0.2.99");
        let by_default = Access::default();
        for (address, permitted) in [
            ("203.0.113.5", true),
            ("10.1.2.3", true),
            ("2001:db8::5", true),
            ("127.0.0.1", false),
            ("0.1.2.3", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("::ffff:169.254.169.254", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("2002:a9fe:a9fe::1", false),
            ("::a9fe:a9fe", false),
            ("64:ff9b::cb00:7105", true),
            ("::ffff:0:169.254.169.254", false),
            ("64:ff9b:1::a9fe:a9fe", false),
            ("64:ff9b:1:a9fe:a9:fe00::", false),
            ("64:ff9b:1:2a9:fe:a9fe::", false),
            ("64:ff9b:1:203:a9:fea9:fe00::", false),
            ("64:ff9b:1:203::cb00:7105", true),
            ("64:ff9b:1::c000:263", false),
            ("fe80::1", false),
            ("fd00:ec2::254", false),
            ("100.100.100.200", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("ff02::1", false),
            ("192.0.2.99", false),
            ("::ffff:192.0.2.99", false),
        ] {
            assert_eq!(by_default.permits(ip(address), is_own), permitted, "{address}");
        }
        let to_allow = networks("192.0.2.0/24 169.254.0.0/16 127.0.0.0/8");
        let bounded = Access { to_allow, to_deny: networks("192.0.2.128/25"), ..Access::default() };
        for (address, permitted) in [
            ("192.0.2.1", true),
            ("192.0.2.99", true),
            ("169.254.169.254", true),
            ("192.0.2.129", false),
            ("203.0.113.5", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(bounded.permits(ip(address), is_own), permitted, "{address}");
        }
    }
}
