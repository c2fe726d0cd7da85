#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - [`Instant`], [`Duration`], [`Bytes`] and [`Rate`] are quantities; [`quantity`] reads them as people write them.
//! - [`Window`] is an amount of data with its fraction, for congestion control.
//! - [`Dsn`] and [`SubflowSeq`] are the sequence numbers of the two levels of MPTCP; they wrap.
//! - [`Key`], [`Token`] and [`Nonce`] belong to its handshakes, with the HMACs over them ([`join_hmac`]).
//! - [`Seed`] gives each random element a [`Stream`] of its own; [`Entropy`] is for real networks.
//! - [`input`] reads files that users name, and no others.
//! - [`statistic`] describes numbers once for all forms of output.
//! - [`table`] joins the parts of a table that is a constant.
//!
//! The crate knows no packets, policies or clocks.
#![forbid(unsafe_code)]

mod bytes;
mod ecn;
mod entropy;
mod id;
pub mod input;
mod key;
pub mod quantity;
mod rate;
mod seq;
pub mod statistic;
mod stream;
pub mod table;
mod text;
mod time;
mod window;

pub use bytes::Bytes;
pub use ecn::Ecn;
pub use entropy::{Entropy, Secret};
pub use id::{AddressId, PathId, SubflowId};
pub use key::{Hmac, Key, Nonce, Token, add_addr_hmac, join_hmac, same_mac};
pub use rate::Rate;
pub use seq::{Dsn, SubflowSeq};
pub use stream::{Seed, Stream};
pub use text::{cut, harmless, hex, in_one_line, nearest, suggest};
pub use time::{Duration, Instant};
pub use window::Window;
