//! Signals between hosts: addresses, priorities, the end of connections.

use anabranch_units::{AddressId, Dsn, Instant, Key};
use anabranch_wire::{AddAddr, ResetReason};

/// A signal as it passed, repeats counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Signal {
    pub at: Instant,
    /// The side of the flow that sent it.
    pub from: usize,
    pub what: What,
    /// Times it passed.
    pub count: u64,
}

/// Content of a signal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    AddAddr(AddAddr),
    /// RFC 6824 §3.4.1: no authenticator, no echo.
    AddAddrV0 {
        id: AddressId,
        address: std::net::IpAddr,
        port: Option<u16>,
    },
    RemoveAddr(Vec<AddressId>),
    /// Version 0 may name another subflow's address.
    Prio {
        backup: bool,
        address: Option<AddressId>,
    },
    Fail(Dsn),
    FastClose(Key),
    /// MP_TCPRST (RFC 8684 §3.6), and whether trying again may help.
    Reset(ResetReason, bool),
    /// A mapping without end (RFC 8684 §3.7).
    InfiniteMapping,
}

/// Reads what only RFC 6824 has: `data` is an option of kind 30 behind kind and length.
pub(crate) fn version_0(data: &[u8]) -> Option<What> {
    let (&head, rest) = data.split_first()?;
    let (&id, rest) = rest.split_first()?;
    let id = AddressId(id);
    let address = |length: usize| -> Option<(std::net::IpAddr, Option<u16>)> {
        let (address, port) = rest.split_at_checked(length)?;
        let address = match length {
            4 => std::net::IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
            _ => std::net::IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        };
        match *port {
            [] => Some((address, None)),
            [high, low] => Some((address, Some(u16::from_be_bytes([high, low])))),
            _ => None,
        }
    };
    match head {
        0x34 => address(4).map(|(address, port)| What::AddAddrV0 { id, address, port }),
        0x36 => address(16).map(|(address, port)| What::AddAddrV0 { id, address, port }),
        0x50 | 0x51 if rest.is_empty() => Some(What::Prio { backup: head & 1 == 1, address: Some(id) }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_addr_and_prio_of_version_0() {
        let address = std::net::IpAddr::from([10, 1, 2, 3]);
        let expected = What::AddAddrV0 { id: AddressId(4), address, port: None };
        assert_eq!(version_0(&[0x34, 4, 10, 1, 2, 3]), Some(expected));
        let expected = What::AddAddrV0 { id: AddressId(4), address, port: Some(80) };
        assert_eq!(version_0(&[0x34, 4, 10, 1, 2, 3, 0, 80]), Some(expected));
        assert_eq!(version_0(&[0x51, 4]), Some(What::Prio { backup: true, address: Some(AddressId(4)) }));
        assert_eq!(version_0(&[0x34, 4, 10, 1]), None);
        assert_eq!(version_0(&[]), None);
    }
}
