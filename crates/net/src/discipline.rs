//! Packets that wait at a link, and the discipline that orders descriptions of them.

use crate::flows::Flows;
use crate::impairment::Fate;
use crate::parcel::{Carried, Parcel};
use anabranch_policy::queue::{Cause, Limit, Next, Port, QueueDiscipline, Waiting};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed, Stream};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A queue discipline that links are made with.
#[derive(Clone)]
pub struct Discipline {
    name: Arc<str>,
    make: Arc<dyn Fn() -> Box<dyn QueueDiscipline> + Send + Sync>,
}

impl Discipline {
    /// Names a discipline; `make` makes one for a link.
    pub fn new(name: &str, make: impl Fn() -> Box<dyn QueueDiscipline> + Send + Sync + 'static) -> Self {
        Discipline { name: name.into(), make: Arc::new(make) }
    }

    /// Returns the name of the discipline, with its parameters where some were given.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Discipline").field(&self.name).finish()
    }
}

/// A packet that waits, and what the link drew for it.
#[derive(Debug)]
pub(crate) struct Held<P> {
    pub(crate) parcel: Parcel<P>,
    pub(crate) fate: Fate,
    pub(crate) offered: Instant,
}

/// A packet that the discipline dropped.
#[derive(Debug)]
pub(crate) struct Refused<P> {
    pub(crate) parcel: Parcel<P>,
    pub(crate) early: bool,
}

/// Packets that wait at a link with a discipline.
#[derive(Debug)]
pub(crate) struct Waiters<P> {
    policy: Box<dyn QueueDiscipline>,
    stream: Stream,
    /// Salt of the hashes of flows.
    salt: u64,
    tells_hosts: bool,
    rate: Rate,
    limit: Limit,
    slots: Vec<Option<Held<P>>>,
    free: Vec<u32>,
    dropped: VecDeque<(Waiting, Cause)>,
    flows: Flows,
    /// Time before which no packet may leave, if the discipline has said so; `Instant::MAX` otherwise.
    pub(crate) again: Instant,
}

impl<P: Carried> Waiters<P> {
    /// Makes an empty queue. Random elements draw from the stream `link/NAME/queue`.
    pub(crate) fn new(discipline: &Discipline, limit: Limit, rate: Rate, name: &str, seed: Seed) -> Self {
        let mut stream = seed.stream(&format!("link/{name}/queue"));
        let (salt, policy) = (stream.next_u64(), (discipline.make)());
        let tells_hosts = policy.tells_hosts();
        let (slots, free, dropped, again) = (Vec::new(), Vec::new(), VecDeque::new(), Instant::MAX);
        let flows = Flows::default();
        Waiters { policy, stream, salt, tells_hosts, rate, limit, slots, free, dropped, flows, again }
    }

    /// Returns the counts of flows.
    pub(crate) fn flows(&self) -> &Flows {
        &self.flows
    }

    pub(crate) fn set_rate(&mut self, rate: Rate, limit: Limit) {
        (self.rate, self.limit) = (rate, limit);
    }

    /// Returns the time that what waits takes at the mean rate.
    pub(crate) fn time(&self) -> Duration {
        self.rate.time_for(self.iter().map(|held| Bytes::new(u64::from(held.parcel.size))).sum())
    }

    /// Packets that wait, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Held<P>> {
        self.slots.iter().flatten()
    }

    /// A packet comes to a link that holds this much with it.
    pub(crate) fn take(&mut self, now: Instant, held: Held<P>, (packets, bytes): (u32, u64)) {
        let (size, packet) = (held.parcel.size, &held.parcel.packet);
        let hosts = if self.tells_hosts { packet.hosts() } else { [0; 2] };
        let (flow, ecn) = (mix(packet.flow() ^ self.salt), packet.ecn());
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[id as usize] = Some(held);
        self.flows.come(flow);
        let (policy, mut port) = self.port(now, packets, bytes);
        policy.enqueue(Waiting { id, size, flow, hosts, ecn, since: now }, &mut port);
    }

    /// The packet that leaves a link that holds this much, and whether it was marked here.
    pub(crate) fn next(&mut self, now: Instant, (packets, bytes): (u32, u64)) -> Option<(Held<P>, bool)> {
        let (policy, mut port) = self.port(now, packets, bytes);
        let next = policy.dequeue(&mut port);
        self.again = if let Next::At(at) = next { at } else { Instant::MAX };
        let Next::Packet(packet) = next else { return None };
        let mut held = self.remove(packet.id)?;
        let marked = packet.ecn != held.parcel.packet.ecn();
        if marked {
            held.parcel.packet.mark();
        }
        self.flows.leave(packet.flow, now.since(packet.since), marked);
        Some((held, marked))
    }

    /// Tells whether the discipline has dropped packets that nobody took yet.
    #[inline]
    pub(crate) fn has_refused(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The next of the packets that the discipline dropped.
    pub(crate) fn pop_refused(&mut self) -> Option<Refused<P>> {
        let (packet, cause) = self.dropped.pop_front()?;
        let held = self.remove(packet.id)?;
        self.flows.drop(packet.flow, cause);
        Some(Refused { parcel: held.parcel, early: cause == Cause::Early })
    }

    /// Empties the queue.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Held<P>> + use<P> {
        self.policy.clear();
        self.free.clear();
        self.again = Instant::MAX;
        let mut all: Vec<_> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        all.sort_by_key(|held| held.offered);
        all.into_iter()
    }

    fn remove(&mut self, id: u32) -> Option<Held<P>> {
        let held = self.slots.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(held)
    }

    fn port(&mut self, now: Instant, packets: u32, bytes: u64) -> (&mut dyn QueueDiscipline, Port<'_>) {
        let Waiters { policy, stream, rate, limit, dropped, .. } = self;
        (&mut **policy, Port { now, rate: *rate, limit: *limit, packets, bytes, stream, dropped })
    }
}

/// Spreads the bits of a hash (the finalizer of SplitMix64, Steele et al. 2014).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
