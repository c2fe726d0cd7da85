//! Incidents in the middle of a meeting: of its paths, its kernels and its engines.

use crate::Stack;
use anabranch_net::Change;
use std::time::Duration;

/// Something that happens while data is under way.
#[derive(Clone, Debug)]
pub struct Incident {
    /// Time of it.
    pub when: When,
    /// Change that it makes.
    pub what: What,
}

/// Time of an incident. Progress begins one, and no clock, so that it comes amid the data on a slow machine too.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// Bytes that one of the ends has received; it is due as well once both ends are through.
    Received(u64),
    /// Time since the incident before.
    Later(Duration),
}

/// Change that an incident makes.
#[derive(Clone, Debug)]
pub enum What {
    /// Change of a path's links; the number of the path counts from 0.
    Path(usize, Change),
    /// Command in the namespace of each party of this stack: program and arguments.
    Command(Stack, &'static str, &'static [&'static str]),
    /// Removal of the last address of each engine (RFC 8684 §3.4.2).
    AddressGivenUp,
    /// Removal of all addresses of each engine at once, for this time.
    AddressesFlushed(Duration),
}
