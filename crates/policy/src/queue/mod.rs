//! Queue disciplines: which packet of those that wait at a link leaves next, and which are dropped or marked.
//!
//! A link hands each packet that comes to its discipline, and asks for the next one whenever it is idle or has sent
//! one. The link holds the packets; a discipline orders descriptions of them. Each leaves it exactly once: as the next
//! one, or by [`Port::drop`].

#[cfg(test)]
mod conformance;
mod control;
mod fifo;
mod flows;
mod updates;

pub use control::Control;

use crate::registry::{self, Built, Kind, policies};
use anabranch_units::{Ecn, Instant, Rate, Stream};
use std::collections::VecDeque;
use std::fmt::Debug;

/// A packet that waits at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of the packet at its link, unique among those that wait there.
    pub id: u32,
    /// Length on the wire, in bytes.
    pub size: u32,
    /// Hash of addresses, protocol and ports, salted by the link.
    pub flow: u64,
    /// Hashes of the sending and the receiving address; zeros unless the discipline [`tells_hosts`].
    ///
    /// [`tells_hosts`]: QueueDiscipline::tells_hosts
    pub hosts: [u64; 2],
    /// ECN field; a discipline marks by setting it.
    pub ecn: Ecn,
    /// Time of arrival at the link.
    pub since: Instant,
}

/// Answer of a discipline to a link that can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Packet that leaves now.
    Packet(Waiting),
    /// Time before which no packet may leave; later than now.
    At(Instant),
    /// Answer of an empty queue.
    Nothing,
}

/// Cause for which a discipline drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The link can hold no more.
    Full,
    /// The discipline wants fewer packets, though the link could hold it.
    Early,
}

/// Largest amount that a link may hold, the packet in service included; both fields bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Number of packets.
    pub packets: u32,
    /// Number of bytes.
    pub bytes: u64,
}

/// The link as a discipline sees it.
#[derive(Debug)]
pub struct Port<'a> {
    /// Time of the call.
    pub now: Instant,
    /// Mean rate of the link.
    pub rate: Rate,
    /// Largest amount that the link may hold.
    pub limit: Limit,
    /// Packets that the link holds, with the one in service and the one that comes.
    pub packets: u32,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Random numbers of this link's discipline.
    pub stream: &'a mut Stream,
    /// Packets dropped so far.
    pub dropped: &'a mut VecDeque<(Waiting, Cause)>,
}

/// Orders the packets that wait at a link.
pub trait QueueDiscipline: Debug + Send {
    /// Takes in a packet that comes, or drops it or others.
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>);

    /// Gives out the packet that leaves now.
    fn dequeue(&mut self, port: &mut Port<'_>) -> Next;

    /// Forgets all packets: the link went down with them.
    fn clear(&mut self);

    /// Returns true if the discipline tells hosts apart, and not only flows.
    fn tells_hosts(&self) -> bool {
        false
    }
}

/// Properties that a link must know of before it asks a discipline anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Packets that a link holds unless its own limit is given.
    pub limit: u32,
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities { limit: 1000 }
    }
}

impl Kind for dyn QueueDiscipline {
    type Policy = Box<Self>;
    type Capabilities = Capabilities;
}

impl<P: QueueDiscipline + 'static> From<P> for Built<dyn QueueDiscipline> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: Box::new(policy), capabilities: Capabilities::default() }
    }
}

/// A queue discipline that can be named.
pub type Entry = registry::Entry<dyn QueueDiscipline>;

policies! {
    QUEUES:
    drop_tail,
    red,
    codel,
    fq_codel,
    pie,
    dualpi2,
    fq,
    cobalt,
    cake,
    token_bucket,
}

impl Limit {
    /// Returns true if a packet of `size` bytes may join those held. A link that holds none admits any packet.
    pub fn admits(self, size: u32, packets: u32, bytes: u64) -> bool {
        packets == 0 || (packets < self.packets && bytes.saturating_add(u64::from(size)) <= self.bytes)
    }
}

impl Waiting {
    /// Marks the packet if its transport knows marks. Returns whether the packet has a mark afterwards.
    pub fn mark(&mut self) -> bool {
        if self.ecn.is_capable() {
            self.ecn = Ecn::Ce;
        }
        self.ecn == Ecn::Ce
    }
}

impl Port<'_> {
    /// Returns true if the link holds more than it may.
    pub fn is_over(&self) -> bool {
        !self.limit.admits(0, self.packets.saturating_sub(1), self.bytes)
    }

    /// Drops a packet that came, or that waited.
    pub fn drop(&mut self, packet: Waiting, cause: Cause) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        self.dropped.push_back((packet, cause));
    }
}

#[cfg(test)]
pub(crate) mod testing;
