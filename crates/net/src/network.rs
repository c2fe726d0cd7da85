//! Links joined into routes.
//!
//! A route is a list of links in order; routes may share links, which makes a shared bottleneck. The network acts only
//! when asked: [`Network::send`] puts a packet onto a route, [`Network::next_time`] tells when something will happen,
//! [`Network::poll`] does it. What happens at the same time happens in the order of links, and on one link in the order
//! of offer, departures before arrivals; so a seed and a sequence of calls fix every answer.

use crate::link::{Link, Step};
use crate::parcel::{Carried, DropCause, Lost, Parcel};
use crate::{Change, ConfigError, Imbalance, LinkConfig, LinkStats, QueueOutcome, deadlines::Deadlines};
use anabranch_units::{Bytes, Duration, Instant, Seed};

/// One direction of a link of a network, numbered from 0 in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

/// A route of a network, numbered from 0 in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

/// Output of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A packet reached the end of its route.
    Delivery(Delivery<P>),
    /// A packet left a link that gives notice; see [`LinkConfig::notify_departure`].
    Departure(Departure),
}

/// A packet at the end of its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// Time of arrival; not after the `now` of the poll, and before it if the driver is late.
    pub at: Instant,
    /// The route it took.
    pub route: RouteId,
    /// Packet that was sent.
    pub packet: P,
    /// Its length on the wire.
    pub size: Bytes,
    /// Damaged on the way: the receiver's checksum fails.
    pub corrupted: bool,
    /// Tag given to [`Network::send`].
    pub tag: u64,
}

/// A packet that no longer waits at a link that gives notice: it was serialised or dropped. Each packet offered to such
/// a link gives exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time at which its last bit left, or at which it was dropped.
    pub at: Instant,
    /// The route it is on.
    pub route: RouteId,
    /// Its length on the wire.
    pub size: Bytes,
    /// Tag given to [`Network::send`].
    pub tag: u64,
}

/// A packet that a link dropped; see [`Network::report_drops`]. A copy that a link made may be dropped by itself; a
/// link that loses its carrier tells of both copies in flight together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropNotice {
    /// Time of the drop.
    pub at: Instant,
    /// The route it was on.
    pub route: RouteId,
    /// Link that dropped it.
    pub link: LinkId,
    /// Cause of the drop.
    pub cause: DropCause,
    /// Its length on the wire.
    pub size: Bytes,
    /// Tag given to [`Network::send`].
    pub tag: u64,
}

/// A set of links and the routes over them; see the crate's example.
#[derive(Debug)]
pub struct Network<P> {
    links: Vec<Link<P>>,
    deadlines: Deadlines,
    /// The links of all routes one after the other, each route closed by `END`.
    hops: Vec<u32>,
    /// Position in `hops` at which each route begins.
    routes: Vec<u32>,
}

impl LinkId {
    /// The number, for tables that run parallel to the links.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl RouteId {
    /// The number, for tables that run parallel to the routes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl<P> Default for Network<P> {
    fn default() -> Self {
        Network { links: Vec::new(), deadlines: Deadlines::default(), hops: Vec::new(), routes: Vec::new() }
    }
}

impl<P: Carried> Network<P> {
    /// Makes a network without links.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a link. Its random elements draw from the streams `link/NAME/loss`, `link/NAME/jitter` and so on.
    ///
    /// # Errors
    /// If the configuration holds a number that means nothing.
    pub fn add_link(&mut self, config: LinkConfig, name: &str, seed: Seed) -> Result<LinkId, ConfigError> {
        let id = LinkId(self.links.len() as u32);
        self.links.push(Link::new(&config, name, seed)?);
        self.deadlines.add();
        Ok(id)
    }

    /// Adds a route over these links, in this order.
    ///
    /// # Errors
    /// If there are none.
    pub fn add_route(&mut self, links: &[LinkId]) -> Result<RouteId, ConfigError> {
        if links.is_empty() {
            return Err(ConfigError::EmptyRoute);
        }
        let id = RouteId(self.routes.len() as u32);
        self.routes.push(self.hops.len() as u32);
        self.hops.extend(links.iter().map(|link| link.0));
        self.hops.push(END);
        Ok(id)
    }

    /// Sends a packet of `size` bytes on the wire (at most 2³² - 1). Each report about the packet carries `tag`.
    ///
    /// Time moves forward: poll until nothing is due at `now` before sending. A packet sent earlier than something its
    /// first link has already seen is treated as sent at that time.
    #[inline]
    pub fn send(&mut self, now: Instant, route: RouteId, packet: P, size: Bytes, tag: u64) {
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        let hop = self.routes[route.index()];
        self.offer(now, Parcel { packet, route, hop, size, tag, corrupted: false });
    }

    /// The next thing that has happened by `now`, in the order in which things happen; `None` once there is no more.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Output<P>> {
        if self.deadlines.first().0 > now { None } else { self.poll_due(now) }
    }

    // Apart, so that where nothing is due the question costs no call.
    #[inline(never)]
    fn poll_due(&mut self, now: Instant) -> Option<Output<P>> {
        loop {
            let (at, due) = self.deadlines.first();
            if at > now || at == Instant::MAX {
                return None;
            }
            let link = &mut self.links[due];
            let step = link.step(at);
            self.deadlines.set(due, link.deadline());
            match step {
                Step::Arrived(mut parcel) => {
                    parcel.hop += 1;
                    if self.hops[parcel.hop as usize] != END {
                        self.offer(at, parcel);
                        continue;
                    }
                    let Parcel { packet, route, size, corrupted, tag, .. } = parcel;
                    let size = Bytes::new(u64::from(size));
                    return Some(Output::Delivery(Delivery { at, route, packet, size, corrupted, tag }));
                }
                Step::Departed(notice) => {
                    return Some(Output::Departure(Departure {
                        at: notice.at,
                        route: notice.route,
                        size: Bytes::new(u64::from(notice.size)),
                        tag: notice.tag,
                    }));
                }
                Step::Nothing => {}
            }
        }
    }

    /// Returns the time of the next poll; `None` while no packet is under way or none moves. A poll may give no output,
    /// if the event is internal to the network.
    #[inline]
    pub fn next_time(&self) -> Option<Instant> {
        let (at, _) = self.deadlines.first();
        (at != Instant::MAX).then_some(at)
    }

    /// Makes the network report drops through [`Network::poll_drop`]. Costs nothing unless called.
    pub fn report_drops(&mut self) {
        self.links.iter_mut().for_each(Link::report_drops);
    }

    /// The next packet that was dropped and not told yet; link by link, and on each in the order in which it happened.
    /// A link notices the loss of a packet some time between its departure and when it would have arrived.
    pub fn poll_drop(&mut self) -> Option<DropNotice> {
        self.links.iter_mut().zip(0..).find_map(|(link, id)| {
            let Lost { at, route, size, tag, cause } = link.pop_drop()?;
            Some(DropNotice { at, route, link: LinkId(id), cause, size: Bytes::new(u64::from(size)), tag })
        })
    }

    /// Makes every link record how long each packet is queued, from its offer to its last bit. The caller must drain
    /// the records with [`Network::drain_queue_delays`] from time to time.
    pub fn record_queue_delays(&mut self) {
        self.links.iter_mut().for_each(Link::record_queue_delays);
    }

    /// Drains the queueing delays of a link recorded since the last call.
    pub fn drain_queue_delays(&mut self, link: LinkId) -> impl Iterator<Item = Duration> + '_ {
        self.links[link.index()].drain_queue_delays()
    }

    /// Changes a link from `now` on. As with `send`, poll first until nothing is due.
    ///
    /// # Errors
    /// If the change holds a number that means nothing; the link is then as before.
    pub fn apply(&mut self, now: Instant, link: LinkId, change: Change) -> Result<(), ConfigError> {
        let index = link.index();
        self.links[index].apply(now, change)?;
        self.deadlines.set(index, self.links[index].deadline());
        Ok(())
    }

    /// Returns true if the link is up for an attached host. A black hole is up.
    pub fn has_carrier(&self, link: LinkId) -> bool {
        self.links[link.index()].has_carrier()
    }

    /// Returns the time at which a link will have sent all that it has queued at `now`, if nothing follows and its rate
    /// stays; `None` if it is idle. [`Instant::MAX`] if it stands still.
    pub fn busy_until(&mut self, now: Instant, link: LinkId) -> Option<Instant> {
        let index = link.index();
        let until = self.links[index].busy_until(now);
        self.deadlines.set(index, self.links[index].deadline());
        until
    }

    /// Returns the counters of a link, exact at `now`.
    pub fn stats(&mut self, now: Instant, link: LinkId) -> LinkStats {
        let index = link.index();
        let stats = *self.links[index].stats(now);
        self.deadlines.set(index, self.links[index].deadline());
        stats
    }

    /// Returns what became of the packets in a link's queue, exact at `now`.
    pub fn queue_outcome(&mut self, now: Instant, link: LinkId) -> QueueOutcome {
        let index = link.index();
        let outcome = self.links[index].queue_outcome(now);
        self.deadlines.set(index, self.links[index].deadline());
        outcome
    }

    /// All links in the order of creation.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<P> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The links of a route, in order.
    pub fn route(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        let start = self.routes[route.index()] as usize;
        self.hops[start..].iter().take_while(|&&hop| hop != END).map(|&hop| LinkId(hop))
    }

    /// The name that the link was given.
    pub fn link_name(&self, link: LinkId) -> &str {
        self.links[link.index()].name()
    }

    /// Counts every packet inside and compares with what went in and out. Takes time in proportion to what is inside.
    ///
    /// # Errors
    /// The first link on which packets appeared or vanished.
    pub fn check_conservation(&self) -> Result<(), Imbalance> {
        self.links.iter().try_for_each(Link::check_conservation)
    }

    #[inline]
    fn offer(&mut self, now: Instant, parcel: Parcel<P>) {
        let index = self.hops[parcel.hop as usize] as usize;
        let link = &mut self.links[index];
        link.offer(now, parcel);
        self.deadlines.set(index, link.deadline());
    }
}

/// Behind the last link of a route.
const END: u32 = u32::MAX;
