//! The engine by its segments: puppets that send what a test writes, and pairs of endpoints that talk to each other.
#![allow(clippy::unwrap_used)]

mod addresses;
mod attacks;
mod bounded_memory;
mod burst;
mod checksum;
mod closing;
mod common;
mod conformance;
mod connections;
mod cookies;
mod coupled_acks;
mod detour;
mod entropy;
mod first_path;
mod flush;
mod handshake;
mod hostile_calls;
mod hostile_segments;
mod keepalives;
mod lost_keys;
mod mappings;
mod memory;
mod next_timeout;
mod out_of_order_limits;
mod policies;
mod race;
mod receive_offload;
mod retransmitted_bytes;
mod rfc8684_laws;
mod segment_sizes;
mod switching;
mod unread;
mod useless_subflows;
mod waiting_for_the_peer;
mod waits;
