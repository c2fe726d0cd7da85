//! Keys and what is derived from them (RFC 8684 §3.1, §3.2, §3.4.1): token, initial data sequence number, HMACs.

use crate::{AddressId, Dsn};
use hmac::{KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::IpAddr;
use subtle::ConstantTimeEq;
use zeroize::{DefaultIsZeroes, Zeroizing};

/// A host's key for one connection (RFC 8684 §3.1).
///
/// `Copy`, so it is not overwritten when dropped: an owner who needs that calls [`Zeroize`](zeroize::Zeroize). The
/// default is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key(u64);

/// Names a connection in MP_JOIN: the first 32 bits of the key's SHA-256 (RFC 8684 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A random number that keeps an MP_JOIN from being replayed (RFC 8684 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Nonce(pub u32);

/// A full HMAC-SHA256, of which options carry a part.
#[derive(Clone, Copy)]
pub struct Hmac([u8; 32]);

impl DefaultIsZeroes for Key {}

impl Key {
    /// The key with these 64 bits (in network byte order on the wire).
    pub const fn new(raw: u64) -> Self {
        Key(raw)
    }

    /// The raw bits.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The token that names this key's connection: the first 4 bytes of SHA-256(key).
    pub fn token(self) -> Token {
        let digest = self.digest();
        Token(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
    }

    /// The initial data sequence number: the last 8 bytes of SHA-256(key). The first data byte has IDSN + 1.
    pub fn idsn(self) -> Dsn {
        let digest = self.digest();
        Dsn::new(digest[24..].iter().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn digest(self) -> [u8; 32] {
        Sha256::digest(self.0.to_be_bytes()).into()
    }
}

/// The HMAC that the host with `own` key and `own_nonce` sends in MP_JOIN (RFC 8684 §3.2): key is own ‖ peer, message
/// is own nonce ‖ peer nonce. The SYN/ACK carries its first 8 bytes, the third ACK its first 20.
pub fn join_hmac(own: Key, peer: Key, own_nonce: Nonce, peer_nonce: Nonce) -> Hmac {
    let mut message = [0; 8];
    message[..4].copy_from_slice(&own_nonce.0.to_be_bytes());
    message[4..].copy_from_slice(&peer_nonce.0.to_be_bytes());
    hmac_sha256(own, peer, &message)
}

/// The HMAC of ADD_ADDR (RFC 8684 §3.4.1): message is address id ‖ address ‖ port (zero if absent). The option carries
/// its last 8 bytes.
pub fn add_addr_hmac(own: Key, peer: Key, id: AddressId, address: IpAddr, port: Option<u16>) -> Hmac {
    let mut message = [0; 19];
    message[0] = id.0;
    let end = match address {
        IpAddr::V4(v4) => {
            message[1..5].copy_from_slice(&v4.octets());
            5
        }
        IpAddr::V6(v6) => {
            message[1..17].copy_from_slice(&v6.octets());
            17
        }
    };
    message[end..end + 2].copy_from_slice(&port.unwrap_or(0).to_be_bytes());
    hmac_sha256(own, peer, &message[..end + 2])
}

fn hmac_sha256(own: Key, peer: Key, message: &[u8]) -> Hmac {
    let mut key = Zeroizing::new([0; 16]);
    key[..8].copy_from_slice(&own.0.to_be_bytes());
    key[8..].copy_from_slice(&peer.0.to_be_bytes());
    let mut mac = hmac::Hmac::<Sha256>::new_from_slice(&*key).expect("HMAC takes a key of any length");
    mac.update(message);
    Hmac(mac.finalize().into_bytes().into())
}

impl Hmac {
    /// The first 8 bytes, as the MP_JOIN SYN/ACK carries them.
    pub fn first_8(&self) -> [u8; 8] {
        self.0.first_chunk().copied().expect("an HMAC-SHA256 has 32 bytes")
    }

    /// The first 20 bytes, as the third ACK of MP_JOIN carries them.
    pub fn first_20(&self) -> [u8; 20] {
        self.0.first_chunk().copied().expect("an HMAC-SHA256 has 32 bytes")
    }

    /// The last 8 bytes, as ADD_ADDR carries them.
    pub fn last_8(&self) -> [u8; 8] {
        self.0.last_chunk().copied().expect("an HMAC-SHA256 has 32 bytes")
    }
}

/// Compares two authenticators in constant time.
pub fn same_mac(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

impl fmt::Debug for Key {
    /// Keys stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(..)")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:08x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handshakes recorded from Linux 6.18 (kernel-pcaps/README.md): key, token, IDSN.
    #[test]
    fn tokens_and_idsns_of_a_real_kernel() {
        for (key, token, idsn) in [
            (0x152f_6026_7130_9fcc, 0x5be5_a7c6, 0x2da8_96aa_bd9f_ea04),
            (0xb005_68f9_d735_ef6b, 0x7261_156d, 0x4c8a_0781_00d6_98e8),
            (0x75e3_931e_390c_d816, 0x4f34_86a8, 0x6f9b_0017_4a62_231f),
            (0xe302_942b_860b_9f23, 0x987e_ef24, 0x1ff5_54e8_e501_7045),
        ] {
            assert_eq!(Key::new(key).token(), Token(token));
            assert_eq!(Key::new(key).idsn(), Dsn::new(idsn));
        }
    }

    /// RFC 4231 test case 2 has a 4-byte key; ours are always 16 bytes, so the vectors below were computed with an
    /// independent HMAC-SHA256 (Python's `hmac`) over the recorded kernel keys.
    #[test]
    fn join_and_add_addr_hmacs() {
        let client = Key::new(0x152f_6026_7130_9fcc);
        let server = Key::new(0xb005_68f9_d735_ef6b);
        let mac = join_hmac(client, server, Nonce(0x0102_0304), Nonce(0xa0b0_c0d0));
        assert_eq!(mac.0, JOIN);
        assert_eq!(mac.first_8(), JOIN[..8]);
        assert_eq!(mac.first_20(), JOIN[..20]);
        let address = IpAddr::from([10, 0, 2, 1]);
        let mac = add_addr_hmac(server, client, AddressId(1), address, None);
        assert_eq!(mac.last_8(), ADD_ADDR_V4);
        let address = IpAddr::from([0xfd00, 0, 0, 2, 0, 0, 0, 1]);
        let mac = add_addr_hmac(server, client, AddressId(1), address, Some(5555));
        assert_eq!(mac.last_8(), ADD_ADDR_V6_PORT);
    }

    const JOIN: [u8; 32] = [
        0x51, 0x4b, 0x94, 0xe8, 0x10, 0x41, 0x0b, 0x05, 0x7e, 0x86, 0x4d, 0x9a, 0xf6, 0x0d, 0x41, 0x13, 0xc1, 0x06,
        0x89, 0x22, 0xee, 0xc2, 0xd9, 0x92, 0xe9, 0x07, 0xa5, 0x3d, 0x6d, 0x11, 0x16, 0x0a,
    ];
    const ADD_ADDR_V4: [u8; 8] = [0x70, 0xef, 0xe5, 0xac, 0xb0, 0x39, 0x8c, 0xe6];
    const ADD_ADDR_V6_PORT: [u8; 8] = [0xd5, 0xab, 0xe7, 0x03, 0xa9, 0xd7, 0xfb, 0x38];
}
