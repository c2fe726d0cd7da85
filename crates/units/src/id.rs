//! Identifiers: small numbers that mean something only inside one connection, host or network.

use std::fmt;

/// A subflow within one connection, numbered in the order of creation; never used twice in a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SubflowId(pub u16);

/// A path through a network: one of the routes between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathId(pub u16);

/// The address identifier of RFC 8684 §3.4: names an address without carrying it. The initial subflow's is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AddressId(pub u8);

macro_rules! display {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}
display!(SubflowId);
display!(PathId);
display!(AddressId);
