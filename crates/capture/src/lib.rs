//! Captures: packets in pcapng files, as `tcpdump` at a host would write them.
//!
//! A [`Writer`] streams one file: a section with a comment, named interfaces, packets in the order of time with
//! comments beside them. A [`Backlog`] in front of it holds packets back until their fate is known. Packets are bare IP
//! packets (LINKTYPE_RAW), times are in nanoseconds (`if_tsresol` 9) from [`EPOCH`] on.
//!
//! A [`Reader`] reads captures of any origin, and [`LinkType`] finds the IP packet in a frame.
#![forbid(unsafe_code)]

mod backlog;
mod datagram;
mod link;
mod pending;
mod read;
mod write;

pub use backlog::{Backlog, Packet, Ticket};
pub use datagram::udp;
pub use link::{LinkError, LinkType};
pub use read::{CapturedAt, Damages, ReadError, Reader, Record};
pub use write::{Direction, EPOCH, Interface, Section, WriteError, Writer};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
