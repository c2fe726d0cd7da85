//! One path for all: every pure ACK travels on the path that was named before the run, or on its own if that path is
//! missing.
//!
//! J. Cheng, J. Hwang, A. Tang. *Acceleration of Multipath TCP by Letting ACKs Take the Shortest Path.* IEEE Sarnoff
//! Symposium 2019 (section V-A: "ACKs on static lowest-latency path"). The RTT of subflow k becomes `d_k + d_m` in
//! place of `2 d_k`.
//!
//! Where we differ: the paper's rule for the receiver matches `SYN = 0, FIN = 0, ACK = 1`, so data and RST of that host
//! as well; ours moves pure ACKs only. The path is named by an address of either host (a scenario may use its name),
//! since the paper says no more than "path 0". The engine keeps some ACKs on the own path, every sixteenth for one (its
//! `connection/detour.rs`). Where the own path is the shorter one it overtakes the others, so that a bad choice costs
//! less than in theory: 8.5 % in the paper's dynamic network in place of 12 %, and 11.7 % if every ACK is moved.

use super::{AckPath, AckRoute, Entry};
use crate::registry::{Params, Text, text};
use anabranch_units::{Instant, SubflowId};
use std::net::IpAddr;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "fixed",
    "all pure ACKs on one path, between hosts with ack-rewrite",
    include_str!("fixed.rs"),
    |parameters| Box::new(Fixed::new(parameters)),
)
.paper("Cheng 2019")
.parameters(&[PATH.parameter()]);

/// The path that was named.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// The path of the connection's first subflow, for as long as that lives.
    First,
    /// The one between this address, ours or the peer's, and any other.
    At(IpAddr),
    /// The text is no address, so no subflow is there.
    Nowhere,
}

const PATH: Text = text(
    "path",
    "the path m: an address of either end, in scenarios its name; empty for that of the first subflow",
    "",
    "the name of a path or an address",
    |_| Ok(()),
);

impl Fixed {
    /// Reads `path` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        let place = match PATH.of(parameters) {
            "" => Place::First,
            text => text.parse().map_or(Place::Nowhere, Place::At),
        };
        Fixed { place }
    }
}

impl AckPath for Fixed {
    fn path(&mut self, _now: Instant, of: SubflowId, routes: &[AckRoute]) -> SubflowId {
        let is_it = |route: &&AckRoute| match self.place {
            Place::First => route.id == SubflowId(0),
            Place::At(address) => route.local == address || route.remote == address,
            Place::Nowhere => false,
        };
        routes.iter().find(is_it).map_or(of, |route| route.id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::ACK_PATHS;
    use super::super::testing::*;
    use super::*;
    use crate::registry::{Value, find};

    fn answer(path: &str, of: SubflowId, routes: &[AckRoute]) -> SubflowId {
        let entry = find(ACK_PATHS, "ACK path", "fixed").unwrap();
        let given = [("path".to_owned(), Value::Text(path.to_owned()))].into();
        entry.build(&entry.params(&given).unwrap()).path(Instant::ZERO, of, routes)
    }

    #[test]
    fn all_take_the_path_that_was_named_as_long_as_it_is_there() {
        let all = [route(FIRST, Some(90)), route(SECOND, Some(20)), route(THIRD, None)];
        for (path, of, routes, expected) in [
            ("", SECOND, &all[..], FIRST), // Though slower: RTTs are not compared.
            ("", FIRST, &all, FIRST),
            ("", THIRD, &all[1..], THIRD), // The first subflow is gone, and no other takes its place.
            ("10.0.1.1", FIRST, &all, SECOND),
            ("10.0.2.1", FIRST, &all[..2], FIRST),
            ("10.1.0.1", THIRD, &all, FIRST), // An address of the peer: the first subflow there.
            ("fe80::1", SECOND, &all, SECOND),
            ("wlan", SECOND, &all, SECOND),
        ] {
            assert_eq!(answer(path, of, routes), expected, "{path:?}, ACK of {of:?}");
        }
    }
}
