//! DSS checksums (RFC 8684 §3.3.1). The consequences of a wrong one are in `fallback`.

use super::Connection;
use crate::mapping::{Mapping, Proof};
use anabranch_wire::dss_checksum;
use bytes::Bytes as Payload;

impl Connection {
    /// Whether a mapping's bytes are what its checksum says.
    fn is_intact<'a>(&self, map: &Mapping, proof: Proof, bytes: impl Iterator<Item = &'a [u8]>) -> bool {
        let length = map.length as u16 + u16::from(proof.data_fin);
        // A lone DATA_FIN is at subflow offset 0 by definition (§3.3.3).
        proof.is(dss_checksum(self.keys.remote_dsn(map.data), map.subflow as u32, length, bytes))
    }

    /// The same for a mapping whose bytes are all held, or are in the segment that carries it.
    pub(super) fn verify(&self, index: usize, map: &Mapping, proof: Proof, segment: Option<&Payload>) -> bool {
        match segment {
            Some(payload) => self.is_intact(map, proof, std::iter::once(payload.as_ref())),
            None => self.is_intact(map, proof, self.subflows[index].rx.unplaced.first(map.length)),
        }
    }
}
