#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - A [`Writer`] streams one file: a section with a comment, named interfaces, packets in the order of time with
//!   comments beside them. A [`Backlog`] in front of it holds packets back until their fate is known.
//! - A [`Reader`] reads captures of any origin, and [`LinkType`] finds the IP packet in a frame.
//!
//! Packets are written as bare IP packets (LINKTYPE_RAW), times in nanoseconds (`if_tsresol` 9) from [`EPOCH`] on.
#![forbid(unsafe_code)]

mod backlog;
mod block;
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
