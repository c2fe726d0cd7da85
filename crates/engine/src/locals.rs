//! Our addresses, each with the identifier under which peers know it (RFC 8684 §3.4).

use crate::LocalAddress;
use anabranch_units::AddressId;
use std::net::IpAddr;

/// The addresses of an endpoint. An address keeps its identifier for as long as it is there; that of one that has gone
/// is given out again only after all others, so that a late segment about it does not hit its successor.
#[derive(Debug, Default)]
pub(crate) struct Locals {
    all: Vec<(AddressId, LocalAddress)>,
    /// The identifier given out last.
    last: u8,
}

impl Locals {
    /// Numbers these addresses from 1 in their order; those beyond 255 cannot be announced.
    pub(crate) fn new(addresses: Vec<LocalAddress>) -> Self {
        let mut locals = Locals::default();
        for address in addresses {
            locals.add(address);
        }
        locals
    }

    /// Adds an address. Returns `None` if it is there already, or all identifiers are in use.
    pub(crate) fn add(&mut self, address: LocalAddress) -> Option<AddressId> {
        if self.contains(address.ip) {
            return None;
        }
        // 0 is the address of a connection's initial subflow, whichever that is.
        let candidates = (1..=u8::MAX).map(|step| (u16::from(self.last) + u16::from(step) - 1) % 255 + 1);
        let id = candidates.map(|id| AddressId(id as u8)).find(|id| self.all.iter().all(|(taken, _)| taken != id))?;
        self.last = id.0;
        self.all.push((id, address));
        Some(id)
    }

    /// Removes an address and returns its identifier. Returns `None` if it was not there.
    pub(crate) fn remove(&mut self, ip: IpAddr) -> Option<AddressId> {
        let position = self.all.iter().position(|(_, address)| address.ip == ip)?;
        Some(self.all.remove(position).0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AddressId, LocalAddress)> {
        self.all.iter().copied()
    }

    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        self.id_of(ip).is_some()
    }

    pub(crate) fn id_of(&self, ip: IpAddr) -> Option<AddressId> {
        self.iter().find(|(_, address)| address.ip == ip).map(|(id, _)| id)
    }

    /// Returns true if subflows from this address are backups.
    pub(crate) fn is_backup(&self, ip: IpAddr) -> bool {
        self.iter().any(|(_, address)| address.ip == ip && address.backup)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(number: u16) -> LocalAddress {
        let [high, low] = number.to_be_bytes();
        LocalAddress { ip: IpAddr::from([10, 0, high, low]), backup: false }
    }

    #[test]
    fn an_identifier_lasts_and_is_not_soon_used_again() {
        let mut locals = Locals::new(vec![address(0), address(1), address(2)]);
        assert_eq!(locals.remove(address(1).ip), Some(AddressId(2)));
        assert_eq!(locals.id_of(address(2).ip), Some(AddressId(3)), "those that stay keep theirs");
        assert_eq!(locals.add(address(3)), Some(AddressId(4)));
        assert_eq!(locals.add(address(3)), None, "it is there already");
        assert_eq!(locals.remove(address(9).ip), None);
    }

    #[test]
    fn there_are_255_identifiers() {
        let mut locals = Locals::new((0..300).map(address).collect());
        assert_eq!(locals.id_of(address(254).ip), Some(AddressId(255)));
        assert!(!locals.contains(address(255).ip));
        locals.remove(address(7).ip);
        assert_eq!(locals.add(address(255)), Some(AddressId(8)), "the only one that is free");
    }
}
