//! Observers of a run, packet by packet: the interface between the simulator and a capture file.

use crate::{Host, SessionState};
use anabranch_engine::{ConnectionId, Endpoint, Event, Purpose};
use anabranch_net::DropCause;
use anabranch_paths::{End, PacketId};
use anabranch_units::{Bytes, Instant};
use anabranch_wire::{Echo, Segment};
use std::net::IpAddr;

/// Watches every packet at every host, in the order of time. A run is the same with and without one.
pub trait Observer {
    /// A host sends a packet.
    fn on_sent(&mut self, sight: Sight<'_>, purpose: Option<Purpose>);
    /// A packet has reached a host.
    fn on_received(&mut self, sight: Sight<'_>, condition: Condition);
    /// A link lost a packet. May be told late, and out of the order of time.
    fn on_lost(&mut self, id: PacketId, loss: Loss<'_>);
    /// A packet ended in the middleboxes at one end of a path: dropped, or part of another that they made.
    fn on_kept(&mut self, id: PacketId, path: usize, end: End);
    /// Returns true if it wants to be told the state of connections. Asked once, before the run.
    fn watches_states(&self) -> bool {
        false
    }
    /// State of a connection under test after something happened, of each that carries a transfer. It holds until the
    /// next such report of the connection.
    fn on_state(&mut self, _state: &SessionState) {}
    /// Returns true if the observer wants to be shown the endpoints of hosts. Asked once, before the run.
    fn watches_endpoints(&self) -> bool {
        false
    }
    /// An endpoint told its application something. `connection` is an index into
    /// [`Outcome::connections`](crate::Outcome::connections).
    fn on_event(&mut self, _onlook: Onlook<'_>, _connection: usize, _id: ConnectionId, _event: Event) {}
    /// A host has nothing more to do now, after something happened there.
    fn on_rest(&mut self, _onlook: Onlook<'_>) {}
    /// Returns true to end the run where it is, as its stop would. Asked after each event of the simulator.
    fn is_enough(&mut self) -> bool {
        false
    }
}

/// An endpoint at a moment, to be looked at.
#[derive(Clone, Copy)]
pub struct Onlook<'a> {
    /// Time at which the endpoint is shown.
    pub at: Instant,
    /// The client whose paths these are: from 0 to [`Spec::clients`](crate::Spec::clients).
    pub client: usize,
    /// Host of the endpoint.
    pub host: Host,
    /// The endpoint.
    pub endpoint: &'a Endpoint,
}

/// A packet at a host.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The same where it was sent and where it is received, if the host sent this very packet: a middlebox may make
    /// others, and a link may make copies of one.
    pub id: PacketId,
    /// Time of the event.
    pub at: Instant,
    /// The client whose paths these are: from 0 to [`Spec::clients`](crate::Spec::clients).
    pub client: usize,
    /// Host at which it happened.
    pub host: Host,
    /// Path: an index into the paths of [`Spec::network`](crate::Spec::network).
    pub path: usize,
    /// Content of the packet.
    pub content: Content<'a>,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A TCP segment.
    Segment(&'a Segment),
    /// A probe of a path, or its answer.
    Echo(Echo),
    /// A datagram of a UDP workload.
    Datagram {
        /// Number among the UDP workloads.
        flow: usize,
        /// The client sent it.
        from_client: bool,
        /// The addresses of client and server that it passes between: it has no hosts of its own.
        ends: [IpAddr; 2],
        /// Size of the IP packet.
        size: Bytes,
    },
}

/// Condition in which a packet arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Its checksum holds.
    Intact,
    /// Its checksum fails, and the host discards it.
    Damaged,
}

/// Loss of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Time of the loss.
    pub at: Instant,
    /// The name of the link, for instance `wifi/down`.
    pub link: &'a str,
    /// Cause of the loss.
    pub cause: DropCause,
}
