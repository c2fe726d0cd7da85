//! A sender behind one bottleneck, as small as it can be: pacing, a window, a drop-tail queue, selective ACKs.
//!
//! A packet waits in the queue, takes a round trip and is acknowledged by itself, or with all of its slot where ACKs
//! are bunched. A lost one is noticed when the third packet behind it is acknowledged, and is not sent again: its place
//! in the flight is free. A recovery ends when a packet is acknowledged that was sent after its last loss was noticed.
//! When nothing is left to be acknowledged, a timeout of a second follows.

use super::ENTRY;
use crate::congestion::{Ack, Controller, Flight, LostSegment, RateSample, Rules, rules::EXAMPLE};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use std::collections::VecDeque;

pub(super) const MSS: u64 = 1000;
pub(super) const FLOW: SubflowId = SubflowId(0);

struct Packet {
    number: u64,
    sent_at: Instant,
    /// `None` if the path loses it.
    acked_at: Option<Instant>,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    limited: bool,
    in_flight: u64,
    lost: u64,
}

/// The sender, its path and what it has in flight.
pub(super) struct Bottleneck {
    pub(super) control: Controller,
    pub(super) now: Instant,
    /// Rate \[bytes/s\], round trip without a queue, and length of the queue \[bytes\].
    pub(super) rate: f64,
    pub(super) rtt: Duration,
    pub(super) queue: f64,
    /// Every n-th packet is lost; 0 for none.
    pub(super) lose_every: u64,
    /// ACKs wait for the next multiple of this.
    pub(super) slot: Option<Duration>,
    /// Rate at which the application writes \[bytes/s\]; without limit if `None`.
    pub(super) application: Option<f64>,
    /// Phases and when they began.
    pub(super) log: Vec<(Instant, &'static str)>,
    pub(super) dropped: u64,
    pub(super) delivered: u64,
    pub(super) in_flight: u64,
    under_way: VecDeque<Packet>,
    sent: u64,
    next_send: Instant,
    busy_until: Instant,
    delivered_at: Instant,
    first_sent_at: Instant,
    limited_until: Option<u64>,
    lost: u64,
    /// The last packet sent before the recovery, and the last before what repairs it.
    recovery: Option<(u64, u64)>,
    /// Volume of the application that has been sent or let go, and when it was last counted.
    credit: f64,
    credited: Instant,
}

impl Bottleneck {
    /// A path of `mbps` Mbit/s and `rtt_ms`, with a queue of `products` bandwidth-delay products.
    pub(super) fn new(mbps: f64, rtt_ms: u64, products: f64) -> Self {
        let mut control = Controller::new(ENTRY.build_default(), Rules { max_cwnd: None, ..EXAMPLE });
        control.add(FLOW, Bytes::new(MSS));
        let (rate, rtt, now) = (mbps * 125_000.0, Duration::from_millis(rtt_ms), Instant::ZERO);
        Bottleneck {
            control,
            now,
            rate,
            rtt,
            queue: (products * rate * rtt.as_secs_f64()).max(2.0 * MSS as f64),
            lose_every: 0,
            slot: None,
            application: None,
            log: vec![(now, "startup")],
            dropped: 0,
            delivered: 0,
            in_flight: 0,
            under_way: VecDeque::new(),
            sent: 0,
            next_send: now,
            busy_until: now,
            delivered_at: now,
            first_sent_at: now,
            limited_until: None,
            lost: 0,
            recovery: None,
            credit: 0.0,
            credited: now,
        }
    }

    pub(super) fn bdp(&self) -> f64 {
        self.rate * self.rtt.as_secs_f64()
    }

    pub(super) fn phase(&self) -> &'static str {
        self.control.phase(FLOW).expect("BBR has phases")
    }

    pub(super) fn get(&self, name: &str) -> f64 {
        let variables = self.control.variables(FLOW);
        variables.iter().find(|(found, _)| *found == name).expect("it is a variable").1
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name) == 1.0
    }

    pub(super) fn cwnd(&self) -> f64 {
        self.control.cwnd(FLOW).as_f64()
    }

    /// Steps until `done` is true, at most for this many seconds; whether it came to be.
    pub(super) fn until(&mut self, seconds: f64, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + Duration::from_secs(1).mul_f64(seconds);
        while self.now < end {
            if done(self) {
                return true;
            }
            self.step();
        }
        done(self)
    }

    /// Steps to the beginning of a phase.
    pub(super) fn reach(&mut self, phase: &str) {
        assert!(self.until(60.0, |it| it.phase() == phase), "no {phase}: {:?}", self.log);
    }

    pub(super) fn run(&mut self, seconds: f64) {
        self.until(seconds, |_| false);
    }

    /// \[Mbit/s\] over the next seconds.
    pub(super) fn goodput(&mut self, seconds: f64) -> f64 {
        let (before, began) = (self.delivered, self.now);
        self.run(seconds);
        (self.delivered - before) as f64 * 8e-6 / self.now.since(began).as_secs_f64()
    }

    /// The next event: a packet leaves, ACKs come, or a timeout.
    fn step(&mut self) {
        let acked = self.under_way.iter().find_map(|packet| packet.acked_at);
        let ready = self.in_flight + MSS <= self.control.cwnd(FLOW).get();
        self.earn();
        let writes = self.application.map(|rate| {
            let missing = (MSS as f64 - self.credit).max(0.0) / rate;
            self.now + Duration::from_nanos((missing * 1e9).ceil() as u64)
        });
        if ready && writes.is_some_and(|at| at > self.now) {
            self.limited_until = Some(self.delivered + self.in_flight);
        }
        let sends = ready.then(|| self.next_send.max(writes.unwrap_or(self.now)).max(self.now));
        match (sends, acked) {
            (Some(sends), None) => self.send(sends),
            (Some(sends), Some(acked)) if sends < acked => self.send(sends),
            (_, Some(acked)) => self.acknowledge(acked),
            (None, None) => self.time_out(),
        }
        let phase = self.phase();
        if self.log.last().is_some_and(|(_, last)| *last != phase) {
            self.log.push((self.now, phase));
        }
    }

    fn earn(&mut self) {
        let gain = |rate| rate * self.now.since(self.credited).as_secs_f64();
        self.credit = self.application.map_or(0.0, |rate| self.credit + gain(rate));
        self.credited = self.now;
    }

    fn send(&mut self, at: Instant) {
        self.now = at;
        self.earn();
        self.credit -= if self.application.is_some() { MSS as f64 } else { 0.0 };
        if self.in_flight == 0 {
            if self.sent > 0 {
                let rto = Duration::from_secs(1);
                self.control.on_idle(at, FLOW, Duration::from_millis(1), rto);
            }
            (self.first_sent_at, self.delivered_at) = (at, at);
        }
        let pacing = self.control.model(FLOW, Some(self.rtt)).expect("BBR paces").pacing;
        self.next_send = at + pacing.time_for(Bytes::new(MSS));
        self.sent += 1;
        self.in_flight += MSS;
        let waiting = self.busy_until.max(at).since(at).as_secs_f64() * self.rate;
        let unlucky = self.lose_every > 0 && self.sent.is_multiple_of(self.lose_every);
        let dropped = unlucky || waiting + MSS as f64 > self.queue + MSS as f64;
        let acked_at = (!dropped).then(|| {
            let time = Duration::from_nanos((MSS as f64 / self.rate * 1e9) as u64);
            self.busy_until = self.busy_until.max(at) + time;
            let acked = (self.busy_until + self.rtt).as_nanos();
            let slot = self.slot.map_or(1, |slot| slot.as_nanos());
            Instant::ZERO + Duration::from_nanos(acked.div_ceil(slot) * slot)
        });
        self.dropped += u64::from(dropped);
        self.under_way.push_back(Packet {
            number: self.sent,
            sent_at: at,
            acked_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            limited: self.limited_until.is_some(),
            in_flight: self.in_flight,
            lost: self.lost,
        });
    }

    fn acknowledge(&mut self, at: Instant) {
        self.now = at;
        let (in_flight_before, mut acked, mut newest) = (self.in_flight, 0, None);
        let mut left = VecDeque::new();
        // All that arrives at one instant is of one ACK, as aggregation makes it.
        for packet in std::mem::take(&mut self.under_way) {
            if packet.acked_at == Some(at) {
                acked += MSS;
                newest = Some(packet);
            } else {
                left.push_back(packet);
            }
        }
        let newest = newest.expect("the ACK acknowledges something");
        self.under_way = left;
        self.delivered += acked;
        self.in_flight -= acked;
        self.delivered_at = at;
        self.first_sent_at = newest.sent_at;
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        if self.recovery.is_some_and(|(_, repaired)| newest.number > repaired) {
            self.recovery = None;
            self.control.on_recovered(at, FLOW);
        }
        let found = self.lose(|packet| packet.acked_at.is_none() && packet.number + 3 <= newest.number);
        match (&mut self.recovery, found.first()) {
            (Some((point, repaired)), Some(lost)) if lost.start <= *point * MSS => *repaired = self.sent,
            (None, Some(_)) => {
                self.recovery = Some((self.sent, self.sent));
                self.control.on_fast_retransmit(at, FLOW, Bytes::new(in_flight_before));
            }
            _ => {}
        }
        found.iter().for_each(|lost| self.control.on_lost(at, FLOW, lost));
        let over = newest.sent_at.since(newest.first_sent_at).max(at.since(newest.delivered_at));
        let sample = RateSample {
            prior_delivered: newest.delivered,
            over: (over >= self.rtt).then_some(over),
            app_limited: newest.limited,
            flight: Some(self.flight(newest.in_flight, newest.lost)),
        };
        let ack = Ack {
            acked: Bytes::new(acked),
            lost: Bytes::new(found.len() as u64 * MSS),
            srtt: Some(self.rtt),
            rtt: Some(at.since(newest.sent_at)),
            in_flight_before: Bytes::new(in_flight_before),
            in_flight: Bytes::new(self.in_flight),
            cwnd_limited: true,
            in_recovery: self.recovery.is_some(),
            delivered: self.delivered,
            sample: Some(sample),
            ..Ack::default()
        };
        self.control.on_ack(at, FLOW, &ack);
    }

    fn flight(&self, in_flight: u64, lost: u64) -> Flight {
        Flight { at_departure: Bytes::new(in_flight), lost_since: Bytes::new(self.lost - lost), selective: true }
    }

    /// Takes what is lost out of the flight.
    fn lose(&mut self, is_lost: impl Fn(&Packet) -> bool) -> Vec<LostSegment> {
        let (gone, left): (VecDeque<_>, _) = std::mem::take(&mut self.under_way).into_iter().partition(is_lost);
        self.under_way = left;
        let lose = |packet: Packet| {
            self.lost += MSS;
            self.in_flight -= MSS;
            LostSegment {
                start: packet.number * MSS,
                bytes: Bytes::new(MSS),
                flight: self.flight(packet.in_flight, packet.lost),
                app_limited: packet.limited,
                delivered: self.delivered,
            }
        };
        gone.into_iter().map(lose).collect()
    }

    /// The timer expires: all that is under way counts as lost.
    pub(super) fn time_out(&mut self) {
        self.now += Duration::from_secs(1);
        self.control.on_rto(self.now, FLOW, Bytes::new(self.in_flight), true);
        let found = self.lose(|_| true);
        found.iter().for_each(|lost| self.control.on_lost(self.now, FLOW, lost));
        self.recovery = Some((self.sent, self.sent));
    }

    /// The recovery proves spurious: nothing was lost, nor is of what is under way.
    pub(super) fn prove_spurious(&mut self) {
        self.recovery = None;
        let last = self.under_way.iter().filter_map(|packet| packet.acked_at).max();
        self.under_way.iter_mut().for_each(|packet| packet.acked_at = packet.acked_at.or(last));
        self.control.on_spurious(self.now, FLOW);
    }

    /// The application pauses for this long, once all is acknowledged.
    pub(super) fn pause(&mut self, seconds: f64) {
        while let Some(at) = self.under_way.iter().find_map(|packet| packet.acked_at) {
            self.acknowledge(at);
        }
        self.now += Duration::from_secs(1).mul_f64(seconds);
    }
}
