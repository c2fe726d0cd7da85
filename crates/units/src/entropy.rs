//! Unpredictable randomness, for hosts on a real network.
//!
//! A simulation draws from a [`Seed`](crate::Seed), so that it can be repeated; its draws can be predicted from a few
//! of them. A host on a real network begins with 32 bytes from the operating system (`getrandom`) instead. This crate
//! does not read them itself: the caller hands them in.
//!
//! Dropping overwrites every copy kept here with zeros: the bytes, the state of the hash function in [`Secret`], key
//! and buffer of the generator. Registers, and the stack below functions that have returned, are not overwritten.

use crate::Stream;
use chacha20::ChaCha20Rng;
use hmac::digest::FixedOutput;
use hmac::{KeyInit, Mac};
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Source of a host's unpredictable choices: 32 secret bytes, used for a single run of the host.
pub struct Entropy([u8; 32]);

/// A function that only its holder can compute (a PRF): HMAC-SHA256 under a key of its own, which it has already taken
/// in.
pub struct Secret(hmac::Hmac<Sha256>);

impl Entropy {
    /// Wraps bytes of cryptographic quality.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Entropy(bytes)
    }

    /// Takes the caller's bytes and overwrites the original with zeros.
    pub fn taken(bytes: &mut [u8; 32]) -> Self {
        let entropy = Entropy(*bytes);
        bytes.zeroize();
        entropy
    }

    /// The stream of the element called `name`: ChaCha20, which tells nothing of what it gave or will give.
    pub fn stream(&self, name: &str) -> Stream {
        Stream::secret(ChaCha20Rng::from_seed(*self.derive("stream", name)))
    }

    /// The function called `name`.
    pub fn secret(&self, name: &str) -> Secret {
        let key = self.derive("secret", name);
        Secret(hmac::Hmac::new_from_slice(&*key).expect("HMAC takes a key of any length"))
    }

    fn derive(&self, kind: &str, name: &str) -> Zeroizing<[u8; 32]> {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(kind.as_bytes());
        // Ends the kind: no pair of kind and name reads like another.
        hash.update([0]);
        hash.update(name.as_bytes());
        Zeroizing::new(hash.finalize().into())
    }
}

impl Drop for Entropy {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Entropy {}

impl Secret {
    /// Its value for this message.
    pub fn of(&self, message: &[u8]) -> u32 {
        let whole = self.digest(message);
        u32::from_be_bytes([whole[0], whole[1], whole[2], whole[3]])
    }

    /// The whole HMAC, of whose first bytes [`Secret::of`] is made. Keys may be made of it: it is overwritten with
    /// zeros when it is dropped.
    pub fn digest(&self, message: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut digest = Zeroizing::new([0; 32]);
        let mut mac = self.0.clone();
        mac.update(message);
        mac.finalize_into((&mut *digest).into());
        digest
    }
}

impl fmt::Debug for Entropy {
    /// Secrets stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entropy(..)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key stream of ChaCha20 under a key and nonce of zeros (RFC 8439 appendix A.1, test vector 1), read as
    /// little-endian words.
    #[test]
    fn the_generator_is_chacha20() {
        let mut stream = Stream::secret(ChaCha20Rng::from_seed([0; 32]));
        let words: Vec<_> = (0..4).map(|_| stream.next_u64().to_le_bytes()).collect();
        assert_eq!(words.concat(), KEY_STREAM);
    }

    const KEY_STREAM: [u8; 32] = [
        0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28, 0xbd, 0xd2,
        0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36, 0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7,
    ];

    #[test]
    fn every_bit_and_every_name_matters() {
        let draw = |bytes, name| Entropy::new(bytes).stream(name).next_u64();
        let value = |bytes, name, message: &[u8]| Entropy::new(bytes).secret(name).of(message);
        let mut other = [7; 32];
        other[31] ^= 0x80;
        assert_eq!(draw([7; 32], "keys"), draw([7; 32], "keys"));
        assert_ne!(draw([7; 32], "keys"), draw([7; 32], "ports"));
        assert_ne!(draw([7; 32], "keys"), draw(other, "keys"));
        assert_eq!(value([7; 32], "isn", b"flow"), value([7; 32], "isn", b"flow"));
        assert_ne!(value([7; 32], "isn", b"flow"), value([7; 32], "isn", b"flaw"));
        assert_ne!(value([7; 32], "isn", b"flow"), value(other, "isn", b"flow"));
        assert_ne!(value([7; 32], "isn", b"flow"), value([7; 32], "timestamp", b"flow"));
    }

    /// The crates' feature `zeroize` is on: without it this does not compile. An HMAC is two states of its hash
    /// function.
    #[test]
    fn what_is_kept_of_it_is_overwritten_at_the_end() {
        fn is_overwritten<T: ZeroizeOnDrop>() {}
        is_overwritten::<Entropy>();
        is_overwritten::<Sha256>();
        is_overwritten::<ChaCha20Rng>();
        let mut bytes = [7; 32];
        let entropy = Entropy::taken(&mut bytes);
        assert_eq!(bytes, [0; 32]);
        assert_eq!(entropy.stream("x").next_u64(), Entropy::new([7; 32]).stream("x").next_u64());
    }

    #[test]
    fn logs_say_nothing_of_it() {
        let entropy = Entropy::new([7; 32]);
        let said = format!("{entropy:?} {:?} {:?}", entropy.secret("x"), entropy.stream("x"));
        assert!(!said.contains('7') && said.starts_with("Entropy(..) Secret(..)"), "{said}");
    }
}
