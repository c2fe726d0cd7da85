//! A network interface of the caller's namespace: brought up, and given the routes that lead to an engine behind it.
//!
//! Spoken to the kernel directly (rtnetlink(7)) rather than through `ip`, since a process that has CAP_NET_ADMIN from
//! its file does not hand it on to a child.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// One interface.
#[derive(Debug)]
pub struct Interface {
    name: String,
    index: u32,
    socket: OwnedFd,
}

impl Interface {
    /// The interface called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, NETLINK_ROUTE)?;
        let index = rustix::net::netdevice::name_to_index(&socket, name)?;
        Ok(Interface { name: name.to_owned(), index, socket })
    }

    /// Brings it up with a send queue of this many packets and, if given, this MTU.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN.
    pub fn up(&self, queue: u32, mtu: Option<u32>) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, 0);
        message.put(&[libc::AF_UNSPEC as u8, 0]).put(&0u16.to_ne_bytes()).put(&self.index.to_ne_bytes());
        // The flags, and which of them change.
        let up = libc::IFF_UP as u32;
        message.put(&up.to_ne_bytes()).put(&up.to_ne_bytes());
        message.attribute(libc::IFLA_TXQLEN, &queue.to_ne_bytes());
        if let Some(mtu) = mtu {
            message.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        }
        self.ask(message)
    }

    /// Leads what is sent to `address` to this interface.
    ///
    /// # Errors
    /// `AlreadyExists` if it is led to another interface, whose program would get no more packets; `PermissionDenied`
    /// without CAP_NET_ADMIN; others as the kernel sees it, for instance if the interface is down.
    pub fn route(&self, address: IpAddr) -> io::Result<()> {
        match self.add_route(address) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match interface_routed_to(address) {
                Some(name) if name == self.name => Ok(()),
                other => {
                    let name = other.unwrap_or_else(|| "another interface".to_owned());
                    let message = format!("what is sent to {address} is led to {name} already");
                    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
                }
            },
            result => result,
        }
    }

    fn add_route(&self, address: IpAddr) -> io::Result<()> {
        let mut octets = Vec::new();
        let family = match address {
            IpAddr::V4(v4) => {
                octets.extend_from_slice(&v4.octets());
                libc::AF_INET
            }
            IpAddr::V6(v6) => {
                octets.extend_from_slice(&v6.octets());
                libc::AF_INET6
            }
        };
        let scope = if address.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        let prefix = octets.len() as u8 * 8;
        message.put(&[family as u8, prefix, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST]);
        message.put(&0u32.to_ne_bytes());
        message.attribute(libc::RTA_DST, &octets);
        message.attribute(libc::RTA_OIF, &self.index.to_ne_bytes());
        self.ask(message)
    }

    /// Sends a request and reads the kernel's word on it.
    fn ask(&self, message: Message) -> io::Result<()> {
        rustix::net::send(&self.socket, &message.done(), SendFlags::empty())?;
        let mut answer = [0; 4096];
        let (length, _) = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        // `struct nlmsghdr`, then the error as a negative number, 0 if there is none.
        let field = |at: usize| answer[..length].get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        match field(HEADER).map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(error) => Err(io::Error::from_raw_os_error(-error)),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer was cut short")),
        }
    }
}

/// The interface that a route to this very address leads to, as `/proc/net` has it.
fn interface_routed_to(address: IpAddr) -> Option<String> {
    let read = |table: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
    match address {
        IpAddr::V4(v4) => {
            // Interface and destination first, the mask in the eighth column: words of the machine's byte order.
            let wanted = format!("{:08X}", u32::from_ne_bytes(v4.octets()));
            let table = read("route");
            let mut routes = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let route =
                routes.find(|words| words.get(1) == Some(&wanted.as_str()) && words.get(7) == Some(&"FFFFFFFF"))?;
            Some((*route.first()?).to_owned())
        }
        IpAddr::V6(v6) => {
            // Destination and its length first, the interface last.
            let wanted = format!("{:032x}", u128::from(v6));
            let table = read("ipv6_route");
            let mut routes = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let route = routes.find(|words| words.first() == Some(&wanted.as_str()) && words.get(1) == Some(&"80"))?;
            Some((*route.last()?).to_owned())
        }
    }
}

/// A request as it is put together: `struct nlmsghdr`, a fixed part, attributes.
pub(crate) struct Message(Vec<u8>);

/// Protocol 0.
const NETLINK_ROUTE: Option<rustix::net::Protocol> = None;
/// The length of `struct nlmsghdr`.
const HEADER: usize = 16;

impl Message {
    pub(crate) fn new(kind: u16, flags: i32) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Message(vec![0; 4]);
        // The sequence number and our port may be 0: there is one request at a time.
        message.put(&kind.to_ne_bytes()).put(&flags.to_ne_bytes()).put(&[0; 8]);
        message
    }

    /// Attributes alone, for one that holds them.
    pub(crate) fn bare() -> Self {
        Message(Vec::new())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.put(&(4 + value.len() as u16).to_ne_bytes()).put(&kind.to_ne_bytes()).put(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    pub(crate) fn done(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Namespace, Tun};

    /// Skips, visibly, where no namespace or TUN can be made.
    #[test]
    fn routes_lead_to_a_device_that_is_up() {
        let Ok(namespace) = Namespace::new("interface") else {
            return eprintln!("skipped: no network namespace can be made here");
        };
        let opened = namespace.run(|| Tun::open("engine%d"));
        let Ok(tun) = opened else { return eprintln!("skipped: no TUN device can be opened here") };
        let name = tun.name().to_owned();
        namespace.run(move || {
            let interface = Interface::named(&name).unwrap();
            assert!(interface.route([10, 78, 0, 1].into()).is_err(), "the interface is down");
            interface.up(10_000, Some(9000)).unwrap();
            for _ in 0..2 {
                interface.route([10, 78, 0, 1].into()).unwrap();
                interface.route("fd78::1".parse().unwrap()).unwrap();
            }
            assert!(Interface::named("nothing").is_err());
            // A second one may not take them away.
            let second = Tun::open("other%d").unwrap();
            let other = Interface::named(second.name()).unwrap();
            other.up(10_000, None).unwrap();
            for address in [[10, 78, 0, 1].into(), "fd78::1".parse().unwrap()] {
                let error = other.route(address).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
                assert!(error.to_string().ends_with(&format!("is led to {name} already")), "{error}");
            }
        });
        let said = |what: &[&str]| namespace.command("ip", what).unwrap();
        assert!(said(&["route", "get", "10.78.0.1"]).contains(tun.name()));
        assert!(said(&["-6", "route", "get", "fd78::1"]).contains(tun.name()));
        let link = said(&["link", "show", tun.name()]);
        assert!(link.contains("mtu 9000") && link.contains("qlen 10000") && link.contains("UP"), "{link}");
    }
}
