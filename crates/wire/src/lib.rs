#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - A [`Segment`] holds every field and option that the wire has; its [`Options`] hold MPTCP's as [`MpOption`].
//! - [`emit`] turns it into the bytes of an IP packet and [`parse`] turns them back; the two are inverses on every
//!   segment that can be written. [`parse_captured`] reads what a capture has cut short.
//! - [`plan`](plan()) deals out the 40 bytes of TCP options by priority.
//! - [`Echo`] and [`TooBig`] are the two kinds of ICMP that an endpoint needs.
//! - [`pattern`] is payload that a receiver can check without knowing the sender.
#![forbid(unsafe_code)]

mod byte_counters;
pub mod carriage;
mod checksum;
mod codec;
mod echo;
mod error;
mod flow;
mod mptcp;
mod options;
pub mod pattern;
mod payload;
mod plan;
mod segment;
mod too_big;

pub use byte_counters::BYTE_COUNTER_BITS;
pub use checksum::{Checksum, dss_checksum};
pub use codec::{
    Captured, ChecksumStatus, Checksums, Outline, TcpChecksum, emit, emit_headers, emit_train, parse, parse_captured,
    parse_headers, parse_parts,
};
pub use echo::Echo;
pub use error::{EmitError, Layer, ParseError};
pub use flow::FlowKey;
pub use mptcp::{
    AddAddr, DataSeq, Dss, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption, RemoveAddr, ResetReason,
};
pub use options::{Foreign, Handshake, Options, SackBlock, SackBlocks, Timestamps, UnknownOption};
pub use payload::Payload;
pub use plan::{option_room, plan, sack_room};
pub use segment::{Flags, IpHeader, Segment};
pub use too_big::TooBig;
