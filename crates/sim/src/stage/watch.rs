//! Reports of a run to its observer, if it has one.

use super::Stage;
use super::states::room;
use crate::SessionState;
use crate::address::{address, owner};
use crate::host::Host;
use crate::observe::{Condition, Content, Loss, Observer, Onlook, Sight};
use anabranch_engine::{ConnectionId, Event, Purpose};
use anabranch_paths::PacketId;
use anabranch_paths::{Direction, End};
use anabranch_units::Bytes;
use anabranch_wire::{Echo, Segment};

/// The observer, and the number of the packet it saw last.
pub(super) struct Watch<'a> {
    pub(super) observer: Option<&'a mut dyn Observer>,
    last: u32,
    /// Memory for states of connections, if it wants to be told those.
    pub(super) state: Option<SessionState>,
    /// True if the observer wants to be shown endpoints.
    sees_endpoints: bool,
}

impl<'a> Watch<'a> {
    /// An observer of a run over this many paths.
    pub(super) fn new(observer: Option<&'a mut dyn Observer>, paths: usize) -> Self {
        let state = observer.as_ref().filter(|observer| observer.watches_states()).map(|_| room(paths));
        let sees_endpoints = observer.as_ref().is_some_and(|observer| observer.watches_endpoints());
        Watch { observer, last: 0, state, sees_endpoints }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.observer.is_some()
    }

    /// Returns true if it wants to be told the state of connections.
    #[inline]
    pub(super) fn watches_states(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the next packet number. Numbers wrap after 2³² packets: by then the first ones have long arrived.
    fn next_id(&mut self) -> PacketId {
        self.last = self.last.checked_add(1).unwrap_or(1);
        PacketId(self.last)
    }
}

impl Stage<'_> {
    /// A host sends a segment. The number that it gets is to travel with it.
    #[inline]
    pub(super) fn watch_sent(&mut self, host: usize, segment: &Segment, purpose: Purpose) -> PacketId {
        if !self.watch.is_on() {
            return PacketId::default();
        }
        let path = self.path_between(segment.flow.src, segment.flow.dst);
        self.tell_sent(host, path, Content::Segment(segment), Some(purpose))
    }

    /// A host sends a probe, or answers one.
    #[inline]
    pub(super) fn watch_echo(&mut self, host: usize, path: usize, echo: Echo) -> PacketId {
        if !self.watch.is_on() {
            return PacketId::default();
        }
        self.tell_sent(host, path, Content::Echo(echo), None)
    }

    /// A probe, or its answer, has come.
    #[inline]
    pub(super) fn watch_echo_received(&mut self, id: PacketId, echo: Echo, corrupted: bool) {
        if self.watch.is_on() {
            let path = self.path_between(echo.source, echo.destination);
            let (host, _) = owner(echo.destination);
            self.tell_received(host, path, id, Content::Echo(echo), corrupted);
        }
    }

    /// A UDP workload sends a datagram.
    #[inline]
    pub(super) fn watch_datagram(&mut self, flow: usize, path: usize, direction: Direction, size: Bytes) -> PacketId {
        if !self.watch.is_on() {
            return PacketId::default();
        }
        let (host, content) = self.datagram(flow, path, direction, size);
        self.tell_sent(host, path, content, None)
    }

    /// A segment has reached its host.
    #[inline]
    pub(super) fn watch_received(&mut self, id: PacketId, segment: &Segment, corrupted: bool) {
        if self.watch.is_on() {
            let path = self.path_between(segment.flow.src, segment.flow.dst);
            let (host, _) = owner(segment.flow.dst);
            self.tell_received(host, path, id, Content::Segment(segment), corrupted);
        }
    }

    /// A datagram has come out of this route.
    #[inline]
    pub(super) fn watch_datagram_received(
        &mut self,
        id: PacketId,
        flow: usize,
        route: anabranch_net::RouteId,
        size: Bytes,
        corrupted: bool,
    ) {
        if self.watch.is_on() {
            let (path, direction) = self.topology.way(route);
            let (sender, content) = self.datagram(flow, path, direction, size);
            self.tell_received(self.hosts[sender].place.peer, path, id, content, corrupted);
        }
    }

    /// Returns a datagram as observers see it, and the host that represents its sender.
    fn datagram(&self, flow: usize, path: usize, direction: Direction, size: Bytes) -> (usize, Content<'static>) {
        let [client, server] = self.under_test(path / self.topology.paths_per_client());
        let from_client = direction == Direction::Up;
        let ends = [address(client, self.path_in_spec(path)), address(server, 0)];
        (if from_client { client } else { server }, Content::Datagram { flow, from_client, ends, size })
    }

    /// A segment went into the middleboxes there and did not come out.
    pub(super) fn watch_kept(&mut self, id: PacketId, path: usize, end: End) {
        let path = self.path_in_spec(path);
        if let Some(observer) = &mut self.watch.observer
            && id != PacketId::default()
        {
            observer.on_kept(id, path, end);
        }
    }

    /// Tells what links have dropped since this was last called.
    #[inline]
    pub(crate) fn report_losses(&mut self) {
        if self.watch.is_on() {
            self.tell_losses_of_links();
        }
    }

    /// Reports the state of connections after something happened.
    #[inline]
    pub(crate) fn report_states(&mut self) {
        if self.watch.watches_states() {
            self.tell_states();
        }
    }

    /// Tells the observer that an endpoint told its application something of a connection that the application knows.
    #[inline]
    pub(super) fn watch_event(&mut self, host: usize, id: ConnectionId, event: Event) {
        if self.watch.sees_endpoints
            && let Some(session) = self.hosts[host].session(id)
        {
            self.show(host, |observer, onlook| observer.on_event(onlook, session, id, event));
        }
    }

    /// Tells the observer that a host has nothing more to do now.
    #[inline]
    pub(super) fn watch_rest(&mut self, host: usize) {
        if self.watch.sees_endpoints {
            self.show(host, |observer, onlook| observer.on_rest(onlook));
        }
    }

    #[cold]
    fn show(&mut self, host: usize, show: impl FnOnce(&mut dyn Observer, Onlook<'_>)) {
        let Host { place, endpoint, .. } = &self.hosts[host];
        if let Some(observer) = &mut self.watch.observer {
            show(*observer, Onlook { at: self.now, client: place.client, host: place.role(), endpoint });
        }
    }

    /// Returns true if the observer has seen enough.
    #[inline]
    pub(crate) fn is_enough(&mut self) -> bool {
        self.watch.observer.as_mut().is_some_and(|observer| observer.is_enough())
    }

    #[cold]
    fn tell_sent(&mut self, host: usize, path: usize, content: Content<'_>, purpose: Option<Purpose>) -> PacketId {
        let id = self.watch.next_id();
        let sight = self.sight(id, host, path, content);
        if let Some(observer) = &mut self.watch.observer {
            observer.on_sent(sight, purpose);
        }
        id
    }

    #[cold]
    fn tell_received(&mut self, host: usize, path: usize, id: PacketId, content: Content<'_>, corrupted: bool) {
        let sight = self.sight(id, host, path, content);
        let condition = if corrupted { Condition::Damaged } else { Condition::Intact };
        if let Some(observer) = &mut self.watch.observer {
            observer.on_received(sight, condition);
        }
    }

    pub(super) fn sight<'c>(&self, id: PacketId, host: usize, path: usize, content: Content<'c>) -> Sight<'c> {
        let place = self.hosts[host].place;
        Sight { id, at: self.now, client: place.client, host: place.role(), path: self.path_in_spec(path), content }
    }

    #[cold]
    fn tell_losses_of_links(&mut self) {
        while let Some(drop) = self.topology.network.poll_drop() {
            let link = self.topology.network.link_name(drop.link);
            if let Some(observer) = &mut self.watch.observer
                && packet_of(drop.tag) != PacketId::default()
            {
                observer.on_lost(packet_of(drop.tag), Loss { at: drop.at, link, cause: drop.cause });
            }
        }
    }
}

/// Returns the tag that the network carries beside a packet: its number, and the index of its awaited departure.
pub(super) fn tag(id: PacketId, departure: u32) -> u64 {
    u64::from(id.0) << 32 | u64::from(departure)
}

/// The number in a tag.
pub(super) fn packet_of(tag: u64) -> PacketId {
    PacketId((tag >> 32) as u32)
}
