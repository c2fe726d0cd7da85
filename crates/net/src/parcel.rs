//! A packet under way, with what the network and its link remember of it.

use crate::network::RouteId;
use crate::trace::Served;
use anabranch_units::{Duration, Ecn, Instant};
use std::cmp::Ordering;
use std::fmt;

/// A packet as the queue disciplines of links see it. They ask nothing of others.
pub trait Carried: Clone {
    /// Returns a hash of addresses, protocol and ports.
    fn flow(&self) -> u64 {
        0
    }

    /// Returns hashes of the sending and the receiving address.
    fn hosts(&self) -> [u64; 2] {
        [0, 0]
    }

    /// Returns the ECN field.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Sets the ECN field to CE.
    fn mark(&mut self) {}
}

impl Carried for () {}
impl Carried for u32 {}
impl Carried for u64 {}
impl<const N: usize> Carried for [u64; N] {}
impl Carried for &str {}

/// A packet with what the network must remember of it.
#[derive(Clone, Debug)]
pub(crate) struct Parcel<P> {
    pub(crate) packet: P,
    pub(crate) route: RouteId,
    /// Current position on the route.
    pub(crate) hop: u32,
    pub(crate) size: u32,
    pub(crate) tag: u64,
    pub(crate) corrupted: bool,
}

/// A packet in a link's line.
#[derive(Debug)]
pub(crate) struct Transit<P> {
    pub(crate) offered: Instant,
    pub(crate) served: Served,
    pub(crate) arrives: Instant,
    /// Jitter and reordering.
    pub(crate) extra: Duration,
    /// Departs, but does not arrive.
    pub(crate) lost: bool,
    /// Damaged by this link.
    pub(crate) corrupted: bool,
    pub(crate) duplicated: bool,
    pub(crate) parcel: Parcel<P>,
}

/// A packet in flight on a link that reorders.
#[derive(Debug)]
pub(crate) struct Flying<P> {
    pub(crate) arrives: Instant,
    pub(crate) takeoff: u64,
    pub(crate) parcel: Parcel<P>,
}

/// Report that a packet left a queue, or never got into it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    pub(crate) at: Instant,
    pub(crate) route: RouteId,
    pub(crate) size: u32,
    pub(crate) tag: u64,
}

/// Report that a packet is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) at: Instant,
    pub(crate) route: RouteId,
    pub(crate) size: u32,
    pub(crate) tag: u64,
    pub(crate) cause: DropCause,
}

/// Cause for which a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// The queue discipline wanted fewer packets.
    Early,
    /// The loss model struck.
    Loss,
    /// The link was or went down.
    Down,
    /// The link was a black hole.
    Blackhole,
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropCause::QueueFull => "queue full",
            DropCause::Early => "queue discipline",
            DropCause::Loss => "random loss",
            DropCause::Down => "link down",
            DropCause::Blackhole => "black hole",
        })
    }
}

impl<P> Transit<P> {
    /// Returns the number of packets that will arrive of this one that departed.
    pub(crate) fn copies(&self) -> u64 {
        if self.lost { 0 } else { 1 + u64::from(self.duplicated) }
    }

    pub(crate) fn notice(&self, at: Instant) -> Notice {
        self.parcel.notice(at)
    }
}

impl<P> Parcel<P> {
    pub(crate) fn notice(&self, at: Instant) -> Notice {
        Notice { at, route: self.route, size: self.size, tag: self.tag }
    }
}

impl<P> Flying<P> {
    fn rank(&self) -> (Instant, u64) {
        (self.arrives, self.takeoff)
    }
}

impl<P> Ord for Flying<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<P> PartialOrd for Flying<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Flying<P> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<P> Eq for Flying<P> {}
