//! Tokens, initial data sequence numbers and authenticators of both versions of the protocol.
//!
//! Version 1 (RFC 8684) hashes with SHA-256. Version 0 (RFC 6824 §3.1, §3.2) hashes with SHA-1: the token is the first
//! 32 bits of the key's hash, the IDSN its last 64; the key is in the SYN already; ADD_ADDR carries no authenticator.

use anabranch_units::{AddressId, Dsn, Key, Nonce, Token, add_addr_hmac, join_hmac};
use hmac::{KeyInit, Mac};
use sha1::{Digest, Sha1};
use std::net::IpAddr;

/// A version of the protocol that is understood.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Version {
    /// RFC 6824.
    V0,
    /// RFC 8684.
    V1,
}

impl Version {
    /// The version with this number; later ones are taken for the latest that is known.
    pub fn of(number: u8) -> Self {
        if number == 0 { Version::V0 } else { Version::V1 }
    }

    /// Names the connection of this key in MP_JOIN.
    pub fn token(self, key: Key) -> Token {
        match self {
            Version::V1 => key.token(),
            Version::V0 => {
                let digest = sha1(key);
                Token(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
            }
        }
    }

    /// The initial data sequence number of this key's owner.
    pub fn idsn(self, key: Key) -> Dsn {
        match self {
            Version::V1 => key.idsn(),
            Version::V0 => Dsn::new(sha1(key)[12..].iter().fold(0, |n, &byte| n << 8 | u64::from(byte))),
        }
    }

    /// The first 20 bytes of what the owner of `own` sends in MP_JOIN.
    pub fn join_hmac(self, own: Key, peer: Key, own_nonce: Nonce, peer_nonce: Nonce) -> [u8; 20] {
        match self {
            Version::V1 => join_hmac(own, peer, own_nonce, peer_nonce).first_20(),
            Version::V0 => {
                let key = [own.get().to_be_bytes(), peer.get().to_be_bytes()].concat();
                let mut mac = hmac::Hmac::<Sha1>::new_from_slice(&key).expect("HMAC takes a key of any length");
                mac.update(&own_nonce.0.to_be_bytes());
                mac.update(&peer_nonce.0.to_be_bytes());
                mac.finalize().into_bytes().into()
            }
        }
    }

    /// Computes the authenticator of an ADD_ADDR sent by the owner of `own`; version 0 has none.
    pub fn add_addr_hmac(
        self,
        own: Key,
        peer: Key,
        id: AddressId,
        address: IpAddr,
        port: Option<u16>,
    ) -> Option<[u8; 8]> {
        (self == Version::V1).then(|| add_addr_hmac(own, peer, id, address, port).last_8())
    }
}

fn sha1(key: Key) -> [u8; 20] {
    Sha1::digest(key.get().to_be_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's `hashlib` and `hmac`.
    #[test]
    fn version_0_hashes_with_sha_1() {
        let key = Key::new(0x0102_0304_0506_0708);
        assert_eq!(Version::V0.token(key), Token(TOKEN));
        assert_eq!(Version::V0.idsn(key), Dsn::new(IDSN));
        let mac = Version::V0.join_hmac(key, Key::new(0x1112_1314_1516_1718), Nonce(1), Nonce(2));
        assert_eq!(mac, MAC);
    }

    const TOKEN: u32 = 0xdd5783bc;
    const IDSN: u64 = 0x3a95ed6e4ebb4ad5;
    const MAC: [u8; 20] = [
        0xe5, 0x2f, 0x39, 0xda, 0x27, 0xaf, 0xd2, 0x2a, 0x02, 0x4e, 0x6f, 0x23, 0x9f, 0x7c, 0x64, 0xd4, 0xae, 0x40,
        0xa3, 0xe6,
    ];
}
