//! The keys of a connection (RFC 8684 §3.1), and the DSNs and mappings that follow from them.
//!
//! At the end the keys are overwritten with zeros, so that the memory that is given back holds neither. With the keys
//! an attacker could join the connection while it lives, or end it.
//!
//! Copies outside are not reached: registers, the stack below functions that have returned, and packets with MP_CAPABLE
//! or MP_FASTCLOSE, in which keys cross the network in the clear.

use super::negotiated::Negotiated;
use crate::dss_form::DssForm;
use crate::mapping::{Mapping, Proof};
use crate::originals::Declared;
use anabranch_units::{Dsn, Key};
use anabranch_wire::{DataSeq, Map, dss_checksum};
use zeroize::Zeroize;

/// Keys of a connection, and the initial DSNs that follow from them.
pub(crate) struct Keys {
    pub(crate) local: Key,
    pub(crate) remote: Option<Key>,
    pub(super) local_idsn: Dsn,
    pub(super) remote_idsn: Dsn,
}

impl Keys {
    pub(super) fn new(local: Key, local_idsn: Dsn) -> Self {
        Keys { local, remote: None, local_idsn, remote_idsn: Dsn::new(0) }
    }

    /// Takes the peer's key, from which its initial DSN follows.
    pub(super) fn learn(&mut self, remote: Key, remote_idsn: Dsn) {
        self.remote = Some(remote);
        self.remote_idsn = remote_idsn;
    }

    /// The DSN of an offset in our stream.
    pub(super) fn dsn(&self, offset: u64) -> Dsn {
        self.local_idsn + 1 + offset
    }

    /// The DSN of an offset in the peer's stream.
    pub(super) fn remote_dsn(&self, offset: u64) -> Dsn {
        self.remote_idsn + 1 + offset
    }

    /// A mapping as it goes onto the wire.
    pub(super) fn map(&self, declared: &Declared, form: DssForm) -> Map {
        let Declared { start, data, length, checksum, data_fin } = *declared;
        let length = length + u16::from(data_fin);
        Map { dsn: form.map(self.dsn(data)), subflow_seq: start as u32, length, checksum }
    }

    /// The mapping of a DATA_FIN at offset `fin` that no data carries (RFC 8684 §3.3.3), with a checksum if those are
    /// in use.
    pub(super) fn data_fin_map(&self, fin: u64, negotiated: &Negotiated) -> Map {
        let dsn = self.dsn(fin);
        let checksum = negotiated.checksum.then(|| dss_checksum(dsn, 0, 1, []));
        Map { dsn: negotiated.dss.map(dsn), subflow_seq: 0, length: 1, checksum }
    }

    /// Tells whether the bytes of a mapping of the peer are what its checksum says (RFC 8684 §3.3.1). The consequences
    /// of a wrong one are in `fallback`.
    pub(super) fn is_intact<'a>(&self, map: &Mapping, proof: Proof, bytes: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let length = map.length as u16 + u16::from(proof.data_fin);
        // A lone DATA_FIN is at subflow offset 0 by definition (§3.3.3).
        proof.is(dss_checksum(self.remote_dsn(map.data), map.subflow as u32, length, bytes))
    }

    /// The offset in our stream that a DATA_ACK names when `una` is acknowledged; `None` if before its start.
    pub(super) fn data_ack_offset(&self, ack: DataSeq, una: u64) -> Option<u64> {
        let near = self.dsn(una);
        una.checked_add_signed(ack.near(near).distance(near))
    }

    /// The offset in the peer's stream that a mapping names when `next` is expected; `None` if before its start.
    pub(super) fn data_offset(&self, dsn: DataSeq, next: u64) -> Option<u64> {
        let near = self.remote_dsn(next);
        next.checked_add_signed(dsn.near(near).distance(near))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.local.zeroize();
        self.remote.zeroize();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::{Config, Endpoint, LocalAddress, Profile};
    use anabranch_units::{Instant, Key, Seed};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// The memory of this process from `address` on; `None` where there is none any more.
    fn memory<const N: usize>(address: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let file = File::open("/proc/self/mem").expect("every process may read its own memory");
        file.read_exact_at(&mut bytes, address as u64).ok().map(|()| bytes)
    }

    #[test]
    fn no_key_stays_in_memory_that_is_given_back() {
        let keys = [0x1234_5678_9abc_def0_u64, 0x0fed_cba9_8765_4321];
        let ip = [10, 0, 0, 1].into();
        let config = Config::new(
            Profile::named("linux").expect("there is such a profile"),
            vec![LocalAddress { ip, backup: false }],
        );
        let mut host = Endpoint::new(config, Seed(1)).expect("the settings are valid");
        host.set_next_key(Key::new(keys[0]));
        host.open(Instant::ZERO, ip, ([10, 0, 0, 2], 80).into()).expect("the addresses fit");
        let connection = host.connections[0].connection.as_mut().expect("it is being opened");
        connection.keys.remote = Some(Key::new(keys[1]));
        let places = [
            std::ptr::from_ref(&connection.keys.local) as usize,
            connection.keys.remote.as_ref().map_or(0, |key| std::ptr::from_ref(key) as usize),
        ];
        for (place, key) in places.into_iter().zip(keys) {
            assert_eq!(memory(place), Some(key.to_ne_bytes()), "or this test cannot tell");
        }
        drop(host);
        for (place, key) in places.into_iter().zip(keys) {
            assert_ne!(memory(place), Some(key.to_ne_bytes()));
        }
    }
}
