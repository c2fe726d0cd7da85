//! Endpoints of the kernel's MPTCP path manager: generic netlink, family `mptcp_pm` (`linux/mptcp_pm.h`).
//!
//! An endpoint is a local address of the network namespace that the path manager may use. Connections get a subflow for
//! each when it is added and lose it when it goes; its backup flag is told to the other hosts (MP_PRIO, RFC 8684
//! §3.3.8).

use crate::netlink::Message;
use crate::sock_diag::SockDiag;
use rustix::net::netlink;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An endpoint, as `ip mptcp endpoint` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Local address.
    pub address: IpAddr,
    /// Number of the address in options of MPTCP.
    pub id: u8,
    /// Port that is announced; 0 if none is.
    pub port: u16,
    /// Number of the interface that subflows are bound to; 0 for none.
    pub device: u32,
    /// Flags (`MPTCP_PM_ADDR_FLAG_*`).
    pub flags: u32,
}

/// A netlink socket for the path manager of the caller's network namespace.
#[derive(Debug)]
pub struct PathManager {
    socket: SockDiag,
    family: u16,
}

impl Endpoint {
    /// Subflows begin from it.
    pub const SUBFLOW: u32 = 2;
    /// Its subflows are for when no other can send.
    pub const BACKUP: u32 = 4;

    /// Returns true if its subflows are backups.
    pub fn is_backup(&self) -> bool {
        self.flags & Self::BACKUP != 0
    }

    /// The same, as a backup or not.
    #[must_use]
    pub fn with_backup(self, backup: bool) -> Self {
        let others = self.flags & !Self::BACKUP;
        Endpoint { flags: if backup { others | Self::BACKUP } else { others }, ..self }
    }

    /// A line that [`Endpoint::parse`] reads.
    pub(crate) fn line(&self) -> String {
        let Endpoint { address, id, port, device, flags } = self;
        format!("endpoint {address} id {id} port {port} device {device} flags {flags}")
    }

    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let ["endpoint", address, "id", id, "port", port, "device", device, "flags", flags] = words else {
            return None;
        };
        Some(Endpoint {
            address: address.parse().ok()?,
            id: id.parse().ok()?,
            port: port.parse().ok()?,
            device: device.parse().ok()?,
            flags: flags.parse().ok()?,
        })
    }

    /// The nested attribute, without its own head.
    fn attributes(&self) -> Message {
        let mut inner = Message::bare();
        match self.address {
            IpAddr::V4(address) => {
                inner.attribute(FAMILY, &(libc::AF_INET as u16).to_ne_bytes());
                inner.attribute(ADDRESS_4, &address.octets());
            }
            IpAddr::V6(address) => {
                inner.attribute(FAMILY, &(libc::AF_INET6 as u16).to_ne_bytes());
                inner.attribute(ADDRESS_6, &address.octets());
            }
        }
        inner.attribute(ID, &[self.id]);
        inner.attribute(FLAGS, &self.flags.to_ne_bytes());
        if self.port != 0 {
            inner.attribute(PORT, &self.port.to_ne_bytes());
        }
        if self.device != 0 {
            inner.attribute(DEVICE, &self.device.to_ne_bytes());
        }
        inner
    }

    /// Reads the payload of a message of the family; `None` if it has no address.
    fn read(payload: &[u8]) -> Option<Self> {
        let nested = attributes(payload.get(GENERIC..)?).find(|(kind, _)| *kind == ENDPOINT)?.1;
        let (mut address, mut endpoint) =
            (None, Endpoint { address: Ipv4Addr::UNSPECIFIED.into(), id: 0, port: 0, device: 0, flags: 0 });
        let word = |value: &[u8]| value.try_into().map(u32::from_ne_bytes).ok();
        for (kind, value) in attributes(nested) {
            match kind {
                ADDRESS_4 => address = Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
                ADDRESS_6 => address = Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
                ID => endpoint.id = *value.first()?,
                PORT => endpoint.port = value.try_into().map(u16::from_ne_bytes).ok()?,
                FLAGS => endpoint.flags = word(value)?,
                DEVICE => endpoint.device = word(value)?,
                _ => {}
            }
        }
        endpoint.address = address?;
        Some(endpoint)
    }
}

impl PathManager {
    /// Opens one. Asking needs no privilege, changing CAP_NET_ADMIN.
    ///
    /// # Errors
    /// `NotFound` if the kernel has no MPTCP.
    pub fn open() -> io::Result<Self> {
        let socket = SockDiag::with(netlink::GENERIC)?;
        let mut request = Message::new(CONTROL, 0);
        request.put(&[GET_FAMILY, 1, 0, 0]);
        request.attribute(FAMILY_NAME, b"mptcp_pm\0");
        let answers = socket.dump(&request.done())?;
        let family = answers.iter().find_map(|payload| {
            let value = attributes(payload.get(GENERIC..)?).find(|(kind, _)| *kind == FAMILY_ID)?.1;
            value.try_into().map(u16::from_ne_bytes).ok()
        });
        let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(PathManager { socket, family })
    }

    /// Endpoints of the namespace.
    ///
    /// # Errors
    /// As the kernel sees it.
    pub fn endpoints(&self) -> io::Result<Vec<Endpoint>> {
        let mut request = Message::new(self.family, libc::NLM_F_DUMP);
        request.put(&[GET, 1, 0, 0]);
        let answers = self.socket.dump(&request.done())?;
        Ok(answers.iter().filter_map(|payload| Endpoint::read(payload)).collect())
    }

    /// Adds an endpoint. Connections open subflows for it as far as `ip mptcp limits` admits.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN; others as the kernel sees it.
    pub fn add(&self, endpoint: &Endpoint) -> io::Result<()> {
        self.ask(ADD, endpoint)
    }

    /// Removes an endpoint. Its subflows are closed.
    ///
    /// # Errors
    /// As for [`PathManager::add`].
    pub fn remove(&self, endpoint: &Endpoint) -> io::Result<()> {
        self.ask(REMOVE, endpoint)
    }

    /// Sets the backup flag of an endpoint, found by its address, and of its subflows. The kernel tells each connection
    /// by one of its subflows from that address, the first.
    ///
    /// # Errors
    /// As for [`PathManager::add`]; `InvalidInput` if there is no such endpoint.
    pub fn set_flags(&self, endpoint: &Endpoint) -> io::Result<()> {
        self.ask(SET_FLAGS, endpoint)
    }

    /// Makes the kernel have this endpoint with these flags, whatever it has of it.
    ///
    /// # Errors
    /// As for [`PathManager::add`].
    pub fn make(&self, endpoint: &Endpoint) -> io::Result<()> {
        let is = |it: &Endpoint| it.address == endpoint.address && it.port == endpoint.port;
        match self.endpoints()?.iter().any(is) {
            true => self.set_flags(endpoint),
            false => self.add(endpoint),
        }
    }

    fn ask(&self, command: u8, endpoint: &Endpoint) -> io::Result<()> {
        let mut request = Message::new(self.family, 0);
        request.put(&[command, 1, 0, 0]);
        request.attribute(ENDPOINT | NESTED, endpoint.attributes().bytes());
        self.socket.dump(&request.done()).map(drop)
    }
}

/// Attributes one after the other, each padded to four bytes.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let field = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (usize::from(field(0)?), field(2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

/// The family of families, its command and its attributes (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Length of `struct genlmsghdr`.
const GENERIC: usize = 4;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
/// Commands: `MPTCP_PM_CMD_*`.
const ADD: u8 = 1;
const REMOVE: u8 = 2;
const GET: u8 = 3;
const SET_FLAGS: u8 = 7;
/// `MPTCP_PM_ATTR_ADDR`, and below it `MPTCP_PM_ADDR_ATTR_*`.
const ENDPOINT: u16 = 1;
const FAMILY: u16 = 1;
const ID: u16 = 2;
const ADDRESS_4: u16 = 3;
const ADDRESS_6: u16 = 4;
const PORT: u16 = 5;
const FLAGS: u16 = 6;
const DEVICE: u16 = 7;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Namespace;

    fn endpoint(address: &str) -> Endpoint {
        Endpoint { address: address.parse().unwrap(), id: 3, port: 0, device: 1, flags: Endpoint::SUBFLOW }
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        for endpoint in [endpoint("10.0.0.1"), endpoint("fd00::1").with_backup(true)] {
            let line = endpoint.line();
            assert_eq!(Endpoint::parse(&line.split(' ').collect::<Vec<_>>()), Some(endpoint), "{line}");
        }
        assert_eq!(Endpoint::parse(&["endpoint", "10.0.0.1"]), None);
    }

    /// Skips, visibly, where no namespace can be made or the kernel has no MPTCP.
    #[test]
    fn endpoints_come_change_and_go() {
        let Ok(namespace) = Namespace::new("endpoints") else {
            return eprintln!("SKIPPED: no network namespace can be made here");
        };
        let manager = namespace.run(PathManager::open);
        let Ok(manager) = manager else { return eprintln!("SKIPPED: this kernel has no MPTCP") };
        namespace.command("ip", &["address", "add", "10.99.0.1/32", "dev", "lo"]).unwrap();
        for own in [endpoint("10.99.0.1"), Endpoint { id: 4, device: 0, ..endpoint("fd99::1") }] {
            assert_eq!(manager.endpoints().unwrap(), []);
            manager.add(&own).unwrap();
            assert_eq!(manager.endpoints().unwrap(), [own]);
            manager.set_flags(&own.with_backup(true)).unwrap();
            assert_eq!(manager.endpoints().unwrap(), [own.with_backup(true)]);
            let shown = namespace.command("ip", &["mptcp", "endpoint", "show"]).unwrap();
            assert!(shown.contains("subflow backup"), "{shown}");
            manager.make(&own).unwrap();
            assert_eq!(manager.endpoints().unwrap(), [own]);
            manager.remove(&own).unwrap();
            assert!(manager.set_flags(&own).is_err() && manager.remove(&own).is_err());
            manager.make(&own).unwrap();
            assert_eq!(manager.endpoints().unwrap(), [own]);
            manager.remove(&own).unwrap();
        }
    }
}
