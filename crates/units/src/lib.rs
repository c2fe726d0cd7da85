//! Shared vocabulary of the other crates: time, bytes, rates, sequence numbers, identifiers, keys and random
//! generators, seeded or secret.
//!
//! This crate knows no packets, policies or clocks. Each quantity is a newtype, so that adding segments to bytes or an
//! instant to an instant does not compile.
#![forbid(unsafe_code)]

mod bytes;
mod entropy;
mod id;
mod key;
pub mod quantity;
mod rate;
mod seq;
pub mod statistic;
mod stream;
mod text;
mod time;

pub use bytes::Bytes;
pub use entropy::{Entropy, Secret};
pub use id::{AddressId, PathId, SubflowId};
pub use key::{Hmac, Key, Nonce, Token, add_addr_hmac, join_hmac, same_mac};
pub use rate::Rate;
pub use seq::{Dsn, SubflowSeq};
pub use stream::{Seed, Stream};
pub use text::{hex, nearest, suggest};
pub use time::{Duration, Instant};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
