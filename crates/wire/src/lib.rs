//! Segments that MPTCP peers exchange: IP and TCP header fields and the RFC 8684 options, as values.
//!
//! A [`Segment`] holds every field and option that the wire has. [`emit`] turns it into the bytes of an IP packet,
//! [`parse`] turns them back; the two are inverses on every segment that can be written. The engine never sees bytes;
//! the simulator exchanges segments directly, or through the codec if asked to.
#![forbid(unsafe_code)]

mod checksum;
mod codec;
mod echo;
mod error;
mod flow;
mod mptcp;
mod options;
pub mod pattern;
mod plan;
mod segment;
mod too_big;

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
pub use plan::{plan, sack_room};
pub use segment::{Ecn, Flags, IpHeader, Segment};
pub use too_big::TooBig;

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
