//! Errors of calls to an endpoint.

use crate::limits::{MAX_BUFFER, MAX_SUBFLOWS};
use anabranch_units::Bytes;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// A setting of [`Config`](crate::Config) that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `max_subflows` is out of range.
    #[error("`max_subflows` is {0}; accepted: 1 to {MAX_SUBFLOWS}")]
    MaxSubflows(usize),
    /// `profile.mss` is out of range.
    #[error("`profile.mss` is {given} bytes; accepted: {} to {}", .range.start(), .range.end())]
    Mss {
        /// Bytes of payload that were asked for.
        given: u16,
        /// Sizes that segments can have.
        range: RangeInclusive<u16>,
    },
    /// An address cannot be that of a host.
    #[error("`addresses` holds {0}; accepted: addresses of one host, neither unspecified nor multicast")]
    Address(IpAddr),
    /// An address stands in `addresses` twice.
    #[error("`addresses` holds {0} twice; accepted: each address once")]
    AddressTwice(IpAddr),
    /// There are more addresses than identifiers (RFC 8684 §3.4.1).
    #[error("`addresses` holds {0} addresses; accepted: up to 255, as many as MPTCP has identifiers for")]
    Addresses(usize),
    /// `ports` holds no port, or port 0.
    #[error("`ports` is {} to {}; accepted: at least one port, and not port 0", .0.start(), .0.end())]
    Ports(RangeInclusive<u16>),
    /// A buffer holds nothing.
    #[error("`{0}` is zero; accepted: at least 1 B, and for full speed the bandwidth-delay product")]
    Buffer(&'static str),
    /// A buffer is larger than any memory.
    #[error("`{name}` is {given}; accepted: at most {MAX_BUFFER}, of which a window uses 1 GiB (RFC 7323 §2.3)")]
    LargeBuffer {
        /// The setting.
        name: &'static str,
        /// The size that was asked for.
        given: Bytes,
    },
    /// A timeout would be over as soon as it begins.
    #[error("`{0}` is zero; accepted: a time above zero, such as 1 s")]
    Timeout(&'static str),
    /// `burst` lets nothing go.
    #[error("`burst` is zero; accepted: at least 1 B, or `None` for one mapping per segment")]
    Burst,
    /// `keepalive` would ask without a pause.
    #[error("`keepalive.idle` or `keepalive.interval` is zero; accepted: times above zero")]
    Keepalive,
}

/// A connection cannot be opened like that.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The local address is none of the endpoint's.
    #[error("{0} is no address of this host: add it to `Config::addresses`, or with `Endpoint::add_address`")]
    NotLocal(IpAddr),
    /// One address is IPv4, the other IPv6.
    #[error("{local} and {remote} are of different families; accepted: both IPv4, or both IPv6")]
    MixedFamilies {
        /// The local address.
        local: IpAddr,
        /// The peer's.
        remote: SocketAddr,
    },
    /// No host can be the peer at that address and port.
    #[error("{0} cannot be a peer; accepted: the address of one host, and a port other than 0")]
    Remote(SocketAddr),
    /// Every port that may be used has a connection to that peer already.
    #[error("no port is left on {local} for a connection to {remote}: close one, or widen `Config::ports`")]
    NoPort {
        /// The local address.
        local: IpAddr,
        /// The peer.
        remote: SocketAddr,
    },
}

/// Data cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Our direction was closed by [`Endpoint::shutdown`](crate::Endpoint::shutdown).
    #[error("nothing can be written after `shutdown`")]
    Finished,
    /// There is no such connection, or it is over; [`ConnectionStats::ended`](crate::ConnectionStats::ended) tells why.
    #[error("the connection is over")]
    Gone,
}

/// No more data can be read: the connection is unknown, or it is over and did not end in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the connection is over")]
pub struct ReadError;
