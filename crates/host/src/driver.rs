//! An endpoint on a device: packets in, segments; segments out, packets.

use crate::intake::Intake;
use crate::train::{LONGEST_PAYLOAD, Train};
use crate::{Clock, Device, VirtioHeader};
use anabranch_engine::{Config, Endpoint};
use anabranch_units::{Entropy, Instant};
use anabranch_wire::{Echo, Outline, Segment, TooBig};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One endpoint on one device. Not a loop: [`Reactor`](crate::Reactor) is.
pub struct Driver {
    endpoint: Endpoint,
    device: Box<dyn Device>,
    clock: Clock,
    intake: Intake,
    /// Packet about to leave; it waits here while the device is full.
    train: Train,
    /// Segment that leaves behind the train.
    next: Option<Box<Segment>>,
    echo: Option<Echo>,
    counters: DriverCounters,
}

/// Progress of [`Driver::transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything has been sent.
    All,
    /// The quota has been sent; there may be more.
    Some,
    /// The device can take no more: it is to be called again when it can.
    Blocked,
}

/// Counters of the traffic between endpoint and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// Packets read.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets written.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets read that are neither TCP nor an echo nor a report of a packet too big, or damaged.
    pub ignored: u64,
    /// Packets read whose offload header contradicts them ([`VirtioFault`](crate::VirtioFault)); they are dropped.
    pub bad_offload: u64,
    /// Packets written that the device cuts into segments.
    pub trains: u64,
    /// The segments in them.
    pub train_segments: u64,
    /// Number of times the device was full.
    pub blocked: u64,
}

impl Driver {
    /// Creates an endpoint with these settings on `device`, with randomness from the operating system. On a device with
    /// offload segments share mappings ([`Config::burst`]) as far as a packet can hold them. Resets to unknown flows
    /// are limited to 1,000 per second ([`Config::resets_per_second`]). The settings override both.
    pub fn new(mut config: Config, device: Box<dyn Device>) -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let entropy = Entropy::taken(&mut bytes);
        // The device accepts or refuses at once: there is no first hop whose queue TCP Small Queues could keep short.
        config.reports_departures = false;
        config.resets_per_second.get_or_insert(RESETS_PER_SECOND);
        if device.has_offload() {
            config.burst.get_or_insert(anabranch_units::Bytes::new(LONGEST_PAYLOAD as u64));
        }
        Ok(Driver {
            endpoint: Endpoint::with_entropy(config, &entropy).map_err(io::Error::other)?,
            device,
            clock: Clock::start(),
            intake: Intake::new(),
            train: Train::new(),
            next: None,
            echo: None,
            counters: DriverCounters::default(),
        })
    }

    /// The endpoint.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The endpoint's time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Counters since the start.
    pub fn counters(&self) -> DriverCounters {
        self.counters
    }

    /// Reads and handles at most `most` packets, or about as much as fits a socket buffer; false if the device has no
    /// more.
    pub fn receive(&mut self, most: usize) -> io::Result<bool> {
        let enough = self.counters.received_bytes + BATCH_BYTES;
        for _ in 0..most {
            let Some((header, length)) = self.device.receive_frame(self.intake.space())? else { return Ok(false) };
            self.counters.received += 1;
            self.counters.received_bytes += length as u64;
            self.handle(&header, length);
            if self.counters.received_bytes >= enough {
                break;
            }
        }
        Ok(true)
    }

    fn handle(&mut self, header: &VirtioHeader, length: usize) {
        let now = self.clock.now();
        let packet = self.intake.packet(length);
        let Ok(checksums) = header.examine(packet) else {
            self.counters.bad_offload += 1;
            return;
        };
        let outline = Outline::of(packet);
        if let Ok(outline) = &outline
            && self.endpoint.ignores(now, &outline.flow(), outline.flags())
        {
            return;
        }
        match outline.and_then(|outline| outline.parse(checksums)) {
            Ok((mut segment, payload)) => {
                if !payload.is_empty() {
                    segment.payload = self.intake.keep(payload).into();
                }
                self.endpoint.handle_segment(now, &mut segment);
            }
            Err(_) => match (Echo::parse(packet), TooBig::parse(packet)) {
                (Some(echo), _) => self.endpoint.handle_echo(now, echo),
                (None, Some(report)) => {
                    self.endpoint.handle_too_big(now, report.flow, report.seq, report.mtu);
                }
                (None, None) => self.counters.ignored += 1,
            },
        }
    }

    /// Tells whether a timer of the endpoint is due.
    pub fn is_due(&mut self) -> bool {
        self.endpoint.next_timeout().is_some_and(|at| at <= self.clock.now())
    }

    /// Lets the endpoint's timers act that are due.
    pub fn handle_timeout(&mut self) {
        let now = self.clock.now();
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    /// Sends what the endpoint has to send, at most `most` packets.
    pub fn transmit(&mut self, most: usize) -> io::Result<Sent> {
        let joins = self.device.has_offload();
        let (mut now, mut count) = (self.clock.now(), 0);
        let enough = self.counters.sent + most as u64;
        loop {
            if self.counters.sent >= enough {
                return Ok(Sent::Some);
            }
            let segment = self.next.take().or_else(|| Some(self.endpoint.poll_transmit(now)?.segment));
            let segment = match segment {
                Some(segment) if joins => match self.train.push(segment) {
                    None => continue,
                    refused => refused,
                },
                other => other,
            };
            if !self.send_train()? {
                self.next = segment;
                return Ok(Sent::Blocked);
            }
            match segment {
                Some(segment) => self.train.start(segment),
                None => break,
            }
            count += 1;
            if count % CLOCK_EVERY == 0 {
                now = self.clock.now();
            }
        }
        while let Some(echo) = self.echo.take().or_else(|| self.endpoint.poll_echo()) {
            let Some(packet) = echo.emit() else { continue };
            if !self.device.send(&packet)? {
                self.counters.blocked += 1;
                self.echo = Some(echo);
                return Ok(Sent::Blocked);
            }
            self.counters.sent += 1;
            self.counters.sent_bytes += packet.len() as u64;
        }
        Ok(Sent::All)
    }

    fn send_train(&mut self) -> io::Result<bool> {
        let segments = self.train.segments();
        if segments == 0 {
            return Ok(true);
        }
        let Some(bytes) = self.train.send(&mut *self.device)? else {
            self.counters.blocked += 1;
            return Ok(false);
        };
        self.train.spent().for_each(|segment| self.endpoint.reuse(segment));
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes as u64;
        if segments > 1 {
            self.counters.trains += 1;
            self.counters.train_segments += segments as u64;
        }
        Ok(true)
    }
}

impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Bytes read before the endpoint is asked what to send: acknowledgments should not wait for more than a fraction of
/// what a peer has under way.
const BATCH_BYTES: u64 = 256 << 10;
/// FreeBSD's `net.inet.icmp.icmplim` is 200; this costs less than a hundredth of a core.
const RESETS_PER_SECOND: u32 = 1000;
/// Packets sent between two looks at the clock.
const CLOCK_EVERY: usize = 16;
