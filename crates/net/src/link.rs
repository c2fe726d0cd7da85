//! One direction of a link: queue, serialisation, propagation.
//!
//! Service is first come, first served, so a packet's departure and arrival are known when it is offered. A link that
//! keeps order holds all its packets in one line, those in flight before those queued, and has nothing to do between a
//! packet's offer and its arrival. Departures are noticed late, whenever the link is touched next; to the outside it is
//! as if they had happened on time, because the link settles its account before it answers. Only a link that reorders
//! (packets in flight then wait in a heap) or that owes departure notices acts at departures.
//!
//! With a discipline of its own the line holds what is in flight and in service, and the packet that follows is chosen
//! as the one before departs. That is noticed late as well: what was chosen depends on what had come by then, and the
//! link settles its account before anything else comes.

use crate::discipline::{Held, Refused, Waiters};
use crate::flows::QueueOutcome;
use crate::impairment::{Fate, Impairments};
use crate::parcel::{Carried, DropCause, Flying, Lost, Notice, Parcel, Transit};
use crate::queue::FULL_PACKET;
use crate::service::Server;
use crate::stats::{Imbalance, LinkStats};
use crate::waits::Histogram;
use crate::{Change, ConfigError, LinkConfig, QueueLimit, Service};
use anabranch_policy::queue::Limit;
use anabranch_units::{Bytes, Duration, Instant, Seed};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Result of a link's step when it is due.
pub(crate) enum Step<P> {
    /// Packet that comes out at the far end.
    Arrived(Parcel<P>),
    /// Packet that left the queue, or was dropped before it could.
    Departed(Notice),
    /// Internal step without output.
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Link<P> {
    name: String,
    /// Latest time; never goes back, even if a driver's `now` does.
    clock: Instant,
    server: Server,
    queue: QueueLimit,
    /// Limit that `queue` comes to at the present rate.
    limit: Limit,
    /// Packets that wait in an order of their own; `None` if they are served as they come.
    waiters: Option<Box<Waiters<P>>>,
    /// Time from which on one of those may leave, if none may before; `Instant::MAX` otherwise.
    again: Instant,
    /// Packets in flight count against the limit.
    counts_delay: bool,
    delay: Duration,
    keeps_order: bool,
    notifies: bool,
    is_down: bool,
    is_blackhole: bool,
    impairments: Impairments,
    /// Packets in order of offer. The first `departed` are in flight (none are if the link reorders), the others are
    /// queued.
    line: VecDeque<Transit<P>>,
    departed: usize,
    /// Departure of the first queued packet; `Instant::MAX` if the queue is empty.
    next_departure: Instant,
    /// Arrival of the first packet in line, on a link that keeps order; `Instant::MAX` if there is none.
    next_arrival: Instant,
    /// Arrival of the last packet in line, on a link that keeps order.
    last_arrival: Instant,
    /// Packets in flight on a link that reorders.
    flying: BinaryHeap<Reverse<Flying<P>>>,
    /// Numbers the packets that took off, so that equal arrivals keep their order.
    takeoffs: u64,
    notices: VecDeque<Notice>,
    /// Drops not reported yet; `None` unless they are recorded.
    drops: Option<VecDeque<Lost>>,
    /// Time at which the service of the first queued packet began.
    began: Instant,
    /// Times that packets waited for the beginning of their service.
    waits: Histogram,
    /// Queueing delay of each packet since the last drain; `None` unless they are recorded.
    queue_delays: Option<Vec<Duration>>,
    stats: LinkStats,
}

impl<P: Carried> Link<P> {
    /// A link whose random elements draw from streams named after it.
    pub(crate) fn new(config: &LinkConfig, name: &str, seed: Seed) -> Result<Self, ConfigError> {
        config.check()?;
        let rate = config.service.mean_rate();
        let limit = config.queue.resolve(rate);
        let waiters = |discipline| Box::new(Waiters::new(discipline, limit, rate, name, seed));
        Ok(Link {
            name: name.to_owned(),
            clock: Instant::ZERO,
            server: Server::new(config.service.clone(), Instant::ZERO),
            queue: config.queue,
            limit,
            waiters: config.discipline.as_ref().map(waiters),
            again: Instant::MAX,
            counts_delay: config.queue_counts_delay,
            delay: config.delay,
            keeps_order: config.keeps_order(),
            notifies: config.notify_departure,
            is_down: false,
            is_blackhole: false,
            impairments: Impairments::new(config, name, seed),
            line: VecDeque::new(),
            departed: 0,
            next_departure: Instant::MAX,
            next_arrival: Instant::MAX,
            last_arrival: Instant::ZERO,
            flying: BinaryHeap::new(),
            takeoffs: 0,
            notices: VecDeque::new(),
            drops: None,
            began: Instant::ZERO,
            waits: Histogram::default(),
            queue_delays: None,
            stats: LinkStats::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts recording drops.
    pub(crate) fn report_drops(&mut self) {
        self.drops.get_or_insert_default();
    }

    /// The next packet that was dropped and not reported yet.
    pub(crate) fn pop_drop(&mut self) -> Option<Lost> {
        self.drops.as_mut()?.pop_front()
    }

    /// Starts recording queueing delays.
    pub(crate) fn record_queue_delays(&mut self) {
        self.queue_delays.get_or_insert_default();
    }

    /// Takes what was remembered of that.
    pub(crate) fn drain_queue_delays(&mut self) -> impl Iterator<Item = Duration> + '_ {
        self.queue_delays.iter_mut().flat_map(|delays| delays.drain(..))
    }

    pub(crate) fn has_carrier(&self) -> bool {
        !self.is_down
    }

    /// The counts as they are at `now`.
    pub(crate) fn stats(&mut self, now: Instant) -> &LinkStats {
        self.settle(now);
        &self.stats
    }

    /// Waits, drops and marks as they are at `now`, with those of flows.
    pub(crate) fn queue_outcome(&mut self, now: Instant) -> QueueOutcome {
        self.settle(now);
        let (flows, others) = self.waiters.as_ref().map_or((Vec::new(), None), |waiters| waiters.flows().outcome());
        QueueOutcome { waits: self.waits.waits(), flows, others }
    }

    /// Time at which the last packet queued at `now` will have been sent, if nothing follows it and the rate stays;
    /// `None` if none is queued. What waits in an order of its own counts with the mean rate.
    pub(crate) fn busy_until(&mut self, now: Instant) -> Option<Instant> {
        self.settle(now);
        let last = self.line.back().filter(|_| self.stats.queued > 0).map(|last| last.served.departs);
        let waiting = self.waiters.as_ref().map(|waiters| waiters.time()).filter(|time| !time.is_zero());
        match (last, waiting) {
            (last, None) => last,
            (last, Some(time)) => Some(last.unwrap_or(self.clock.max(self.again)) + time),
        }
    }

    /// Takes a packet in, or drops it.
    #[inline]
    pub(crate) fn offer(&mut self, now: Instant, parcel: Parcel<P>) {
        self.settle(now);
        let now = self.clock;
        let size = Bytes::new(u64::from(parcel.size));
        self.stats.offered += 1;
        self.stats.offered_bytes += size;
        // Drawn for every packet, so that what the queue drops does not shift the draws of the others.
        let fate = self.impairments.draw();
        if self.is_down {
            return self.refuse(now, &parcel, DropCause::Down);
        }
        if self.waiters.is_some() {
            return self.enqueue(now, parcel, fate);
        }
        let delayed = if self.counts_delay { u32::try_from(self.stats.in_flight).unwrap_or(u32::MAX) } else { 0 };
        let held = self.stats.queued.saturating_add(delayed);
        if !self.admits(now, parcel.size, held) {
            return self.refuse(now, &parcel, DropCause::QueueFull);
        }
        self.stats.queued += 1;
        self.stats.queued_bytes += size;
        self.note_queued();
        self.serve(now, now, parcel, fate);
        self.debug_check();
    }

    /// Returns true if a packet of this size may join the queue, against whose limit so many packets count.
    #[inline]
    fn admits(&self, now: Instant, size: u32, held: u32) -> bool {
        let bytes = self.stats.queued_bytes.get();
        if let QueueLimit::Time(most) = self.queue {
            let free_at = self.line.back().filter(|_| held > 0).map_or(now, |last| last.served.departs);
            return free_at.since(now) <= most || bytes + u64::from(size) <= 2 * FULL_PACKET;
        }
        self.limit.admits(size, held, bytes)
    }

    /// Remembers how full the queue ever was.
    #[inline]
    fn note_queued(&mut self) {
        self.stats.max_queued = self.stats.max_queued.max(self.stats.queued);
        self.stats.max_queued_bytes = self.stats.max_queued_bytes.max(self.stats.queued_bytes);
    }

    /// Puts a packet that was offered at `offered` at the end of the line.
    #[inline]
    fn serve(&mut self, now: Instant, offered: Instant, parcel: Parcel<P>, fate: Fate) {
        if self.line.len() == self.departed {
            self.began = now;
        }
        let served = self.server.serve(now, parcel.size);
        let arrives = self.arrival(served.departs, fate.extra);
        self.next_departure = self.next_departure.min(served.departs);
        // Those behind the first arrive no earlier.
        self.next_arrival = self.next_arrival.min(arrives);
        if self.line.len() == self.line.capacity() {
            // By a quarter and not to twice the size: thousands of links each hold what their queue admits.
            self.line.reserve_exact((self.line.len() / 4).max(FEW));
        }
        self.line.push_back(Transit {
            offered,
            served,
            arrives,
            extra: fate.extra,
            lost: fate.lost,
            corrupted: fate.corrupted,
            duplicated: fate.duplicated,
            parcel,
        });
    }

    /// Hands a packet to the discipline.
    fn enqueue(&mut self, now: Instant, parcel: Parcel<P>, fate: Fate) {
        let Some(waiters) = &mut self.waiters else { return };
        self.stats.queued += 1;
        self.stats.queued_bytes += Bytes::new(u64::from(parcel.size));
        let held = (self.stats.queued, self.stats.queued_bytes.get());
        waiters.take(now, Held { parcel, fate, offered: now }, held);
        self.drop_refused(now);
        self.note_queued();
        self.pull(now, false);
        self.debug_check();
    }

    /// Begins to serve the packet that the discipline gives out, if none is in service; `behind` another that departs
    /// now, so that the link does not rest for the fraction of a nanosecond by which departures are rounded.
    fn pull(&mut self, now: Instant, behind: bool) {
        let Some(waiters) = self.waiters.as_mut().filter(|_| self.line.len() == self.departed) else { return };
        let next = waiters.next(now, (self.stats.queued, self.stats.queued_bytes.get()));
        self.again = waiters.again;
        self.drop_refused(now);
        if let Some((Held { parcel, fate, offered }, marked)) = next {
            self.stats.marked += u64::from(marked);
            self.serve(if behind { offered } else { now }, offered, parcel, fate);
            self.began = now;
        }
    }

    /// Counts what the discipline has dropped.
    fn drop_refused(&mut self, now: Instant) {
        while let Some(waiters) = self.waiters.as_mut().filter(|waiters| waiters.has_refused())
            && let Some(Refused { parcel, early }) = waiters.pop_refused()
        {
            self.stats.queued -= 1;
            self.stats.queued_bytes -= Bytes::new(u64::from(parcel.size));
            self.refuse(now, &parcel, if early { DropCause::Early } else { DropCause::QueueFull });
        }
    }

    /// Returns the time of the next step; `Instant::MAX` if there is none.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let arrival = if self.keeps_order {
            self.next_arrival
        } else {
            let flying = self.flying.peek().map_or(Instant::MAX, |Reverse(first)| first.arrives);
            flying.min(self.next_departure)
        };
        let arrival = arrival.min(self.again);
        if !self.notifies {
            return arrival;
        }
        let notice = self.notices.front().map_or(Instant::MAX, |notice| notice.at);
        arrival.min(notice).min(self.next_departure)
    }

    /// Does the first thing that is due at `now`: departures before arrivals.
    #[inline]
    pub(crate) fn step(&mut self, now: Instant) -> Step<P> {
        self.settle(now);
        if self.notifies
            && let Some(notice) = self.notices.pop_front()
        {
            return Step::Departed(notice);
        }
        let arrived = if self.keeps_order { self.arrive_in_order(now) } else { self.arrive_in_any_order(now) };
        let Some(parcel) = arrived else {
            return Step::Nothing;
        };
        self.stats.in_flight -= 1;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += Bytes::new(u64::from(parcel.size));
        self.debug_check();
        Step::Arrived(parcel)
    }

    /// Changes the link from `now` on.
    pub(crate) fn apply(&mut self, now: Instant, change: Change) -> Result<(), ConfigError> {
        self.settle(now);
        match change {
            Change::Rate(rate) => self.change_service(Service::Rate(rate)),
            Change::Trace(trace) => self.change_service(Service::Trace(trace)),
            Change::Delay(delay) => {
                self.delay = delay;
                self.foresee();
            }
            Change::Jitter(jitter) => self.impairments.set_jitter(jitter),
            Change::Loss(model) => {
                model.check()?;
                self.impairments.set_loss(model);
            }
            Change::Down => self.go_down(),
            Change::Up => self.is_down = false,
            Change::Blackhole => self.is_blackhole = true,
            Change::Restore => (self.is_down, self.is_blackhole) = (false, false),
        }
        self.debug_check();
        Ok(())
    }

    /// Counts everything inside one by one and compares.
    pub(crate) fn check_conservation(&self) -> Result<(), Imbalance> {
        let (flying, queued) = (self.line.iter().take(self.departed), self.line.iter().skip(self.departed));
        let waiting = self.waiters.iter().flat_map(|waiters| waiters.iter().map(|held| &held.parcel));
        let queued = queued.map(|transit| &transit.parcel).chain(waiting);
        let (held_queued, queued_bytes) = queued
            .fold((0, Bytes::ZERO), |(count, bytes), parcel| (count + 1, bytes + Bytes::new(u64::from(parcel.size))));
        let held_in_flight = flying.map(Transit::copies).sum::<u64>() + self.flying.len() as u64;
        let agrees = self.stats.is_balanced()
            && held_queued == u64::from(self.stats.queued)
            && queued_bytes == self.stats.queued_bytes
            && held_in_flight == self.stats.in_flight;
        if agrees {
            return Ok(());
        }
        Err(Imbalance { link: self.name.clone(), held_queued, held_in_flight, stats: Box::new(self.stats) })
    }

    /// Notices the departures up to `now`.
    #[inline]
    fn settle(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        if self.waiters.is_some() {
            return self.settle_choices();
        }
        while self.next_departure <= self.clock {
            self.depart();
        }
    }

    /// Notices the departures up to `now` of a link with a discipline, which chooses a packet at each of them.
    fn settle_choices(&mut self) {
        loop {
            let at = self.next_departure.min(self.again);
            if at > self.clock || at == Instant::MAX {
                return;
            }
            let behind = self.next_departure == at;
            if behind {
                self.depart();
            }
            self.pull(at, behind);
        }
    }

    /// Looks up when the first that is queued departs.
    #[inline]
    fn foresee_departure(&mut self) {
        self.next_departure = self.line.get(self.departed).map_or(Instant::MAX, |first| first.served.departs);
    }

    /// Looks up when the first in line arrives.
    #[inline]
    fn foresee_arrival(&mut self) {
        self.next_arrival = self.line.front().map_or(Instant::MAX, |first| first.arrives);
    }

    /// The first queued packet has been serialised, and meets its fate.
    #[inline]
    fn depart(&mut self) {
        let Some(first) = self.line.get_mut(self.departed) else {
            return;
        };
        let stats = &mut self.stats;
        stats.queued -= 1;
        stats.queued_bytes -= Bytes::new(u64::from(first.parcel.size));
        stats.departed += 1;
        let queue_delay = first.served.departs.since(first.offered);
        stats.queue_delay += queue_delay;
        self.waits.add(self.began.since(first.offered));
        self.began = first.served.departs;
        if let Some(delays) = &mut self.queue_delays {
            delays.push(queue_delay);
        }
        if self.notifies {
            self.notices.push_back(first.notice(first.served.departs));
        }
        if self.is_blackhole {
            stats.dropped.blackhole += 1;
            first.lost = true;
            note(&mut self.drops, &first.parcel, first.served.departs, DropCause::Blackhole);
        } else if first.lost {
            stats.dropped.loss += 1;
            note(&mut self.drops, &first.parcel, first.served.departs, DropCause::Loss);
        } else {
            stats.in_flight += first.copies();
            stats.duplicated += u64::from(first.duplicated);
            stats.corrupted += u64::from(first.corrupted);
            first.parcel.corrupted |= first.corrupted;
        }
        if self.keeps_order {
            self.departed += 1;
        } else {
            self.take_off();
        }
        self.foresee_departure();
    }

    /// Moves the packet that just departed to those in flight, on a link that reorders.
    fn take_off(&mut self) {
        let Some(Transit { lost: false, arrives, duplicated, parcel, .. }) = self.line.pop_front() else {
            return;
        };
        for parcel in duplicated.then(|| parcel.clone()).into_iter().chain([parcel]) {
            self.flying.push(Reverse(Flying { arrives, takeoff: self.takeoffs, parcel }));
            self.takeoffs += 1;
        }
    }

    #[inline]
    fn arrive_in_order(&mut self, now: Instant) -> Option<Parcel<P>> {
        if self.next_arrival > now {
            return None;
        }
        let first = self.line.front_mut()?;
        if first.duplicated && !first.lost {
            first.duplicated = false;
            return Some(first.parcel.clone());
        }
        self.departed -= 1; // What arrives has departed: `settle` ran, and no delay is negative.
        let arrived = self.line.pop_front();
        self.foresee_arrival();
        arrived.filter(|first| !first.lost).map(|first| first.parcel)
    }

    fn arrive_in_any_order(&mut self, now: Instant) -> Option<Parcel<P>> {
        self.flying.peek().filter(|Reverse(first)| first.arrives <= now)?;
        self.flying.pop().map(|Reverse(first)| first.parcel)
    }

    /// Returns the arrival of a packet that departs then, given those before it.
    #[inline]
    fn arrival(&mut self, departs: Instant, extra: Duration) -> Instant {
        let arrives = departs + self.delay + extra;
        if !self.keeps_order {
            return arrives;
        }
        self.last_arrival = self.last_arrival.max(arrives);
        self.last_arrival
    }

    fn refuse(&mut self, now: Instant, parcel: &Parcel<P>, cause: DropCause) {
        match cause {
            DropCause::Down => self.stats.dropped.down += 1,
            DropCause::Early => self.stats.dropped.early += 1,
            _ => self.stats.dropped.queue += 1,
        }
        note(&mut self.drops, parcel, now, cause);
        if self.notifies {
            // Freed before its time, but freed: a sender that waits for room on this hop must be told.
            self.notices.push_back(parcel.notice(now));
        }
    }

    /// Passes what is queued, with what is left of the packet in service, on to another server.
    fn change_service(&mut self, service: Service) {
        let now = self.clock;
        if matches!(self.queue, QueueLimit::Time(_)) {
            self.limit = self.queue.resolve(service.mean_rate());
        }
        if let Some(waiters) = &mut self.waiters {
            waiters.set_rate(service.mean_rate(), self.limit);
        }
        let mut server = Server::new(service, now);
        let mut queued = self.line.iter_mut().skip(self.departed);
        if let Some(head) = queued.next() {
            let left = self.server.unserved(now, head.parcel.size, head.served);
            head.served = server.resume(now, left);
            for behind in queued {
                behind.served = server.serve(now, behind.parcel.size);
            }
        }
        self.server = server;
        self.foresee();
    }

    /// Computes departure and arrivals of what is queued anew.
    fn foresee(&mut self) {
        self.foresee_departure();
        let last_in_flight = self.departed.checked_sub(1).and_then(|last| self.line.get(last));
        self.last_arrival = last_in_flight.map_or(Instant::ZERO, |last| last.arrives);
        for index in self.departed..self.line.len() {
            let (departs, extra) = (self.line[index].served.departs, self.line[index].extra);
            self.line[index].arrives = self.arrival(departs, extra);
        }
        self.foresee_arrival();
    }

    /// Drops all that is inside, except what has arrived and only waits to be fetched.
    fn go_down(&mut self) {
        self.is_down = true;
        let now = self.clock;
        let arrived = self.line.partition_point(|transit| transit.arrives <= now);
        while self.line.len() > arrived
            && let Some(last) = self.line.pop_back()
        {
            if self.line.len() < self.departed {
                self.departed -= 1;
                self.stats.in_flight -= last.copies();
                self.stats.dropped.down += last.copies();
                if !last.lost {
                    note(&mut self.drops, &last.parcel, now, DropCause::Down);
                }
            } else {
                self.stats.queued -= 1;
                self.stats.queued_bytes -= Bytes::new(u64::from(last.parcel.size));
                self.stats.dropped.down += 1;
                note(&mut self.drops, &last.parcel, now, DropCause::Down);
                if self.notifies {
                    self.notices.push_back(last.notice(now));
                }
            }
        }
        for Reverse(flying) in self.flying.iter().filter(|Reverse(flying)| flying.arrives > now) {
            note(&mut self.drops, &flying.parcel, now, DropCause::Down);
        }
        let before = self.flying.len();
        self.flying.retain(|Reverse(flying)| flying.arrives <= now);
        let dropped = (before - self.flying.len()) as u64;
        self.stats.in_flight -= dropped;
        self.stats.dropped.down += dropped;
        // Behind those in line: what waits came later than what is sent.
        for Held { parcel, .. } in self.waiters.as_mut().into_iter().flat_map(|waiters| waiters.clear()) {
            self.stats.queued -= 1;
            self.stats.queued_bytes -= Bytes::new(u64::from(parcel.size));
            self.stats.dropped.down += 1;
            note(&mut self.drops, &parcel, now, DropCause::Down);
            if self.notifies {
                self.notices.push_back(parcel.notice(now));
            }
        }
        self.again = Instant::MAX;
        self.server.reset(now);
        self.foresee();
    }

    #[inline]
    fn debug_check(&self) {
        debug_assert!(
            self.stats.is_balanced(),
            "what enters a link leaves it, is dropped or is inside: {:?}",
            self.stats
        );
        let queued = self.line.get(self.departed).map_or(Instant::MAX, |first| first.served.departs);
        debug_assert!(self.next_departure == queued, "the next departure is that of the first in the queue");
        let first = self.line.front().map_or(Instant::MAX, |first| first.arrives);
        debug_assert!(!self.keeps_order || self.next_arrival == first, "the next arrival is that of the first in line");
    }
}

/// Packets by which the room of a line grows, at least.
const FEW: usize = 8;

/// Records a drop, if drops are recorded.
#[inline]
fn note<P>(drops: &mut Option<VecDeque<Lost>>, parcel: &Parcel<P>, at: Instant, cause: DropCause) {
    if let Some(drops) = drops {
        drops.push_back(Lost { at, route: parcel.route, size: parcel.size, tag: parcel.tag, cause });
    }
}
