//! An endpoint on a device: packets in, segments; segments out, packets.

use crate::{Clock, Device, LONGEST_PACKET};
use anabranch_engine::{Config, Endpoint};
use anabranch_units::{Instant, Seed};
use anabranch_wire::{Checksums, Echo};
use bytes::{Bytes, BytesMut};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One endpoint on one device. Not a loop: [`Reactor`](crate::Reactor) is.
pub struct Driver {
    endpoint: Endpoint,
    device: Box<dyn Device>,
    clock: Clock,
    buffer: Vec<u8>,
    /// What was to be sent when the device could take no more.
    unsent: Option<BytesMut>,
    scratch: BytesMut,
    counters: DriverCounters,
}

/// What passed between endpoint and device.
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
    /// Packets read that are neither TCP nor an echo, or damaged.
    pub ignored: u64,
    /// How often the device could take no more.
    pub blocked: u64,
}

impl Driver {
    /// An endpoint with these settings on `device`. Its chance comes from the operating system.
    pub fn new(config: Config, device: Box<dyn Device>) -> io::Result<Self> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Driver {
            endpoint: Endpoint::new(config, Seed(u64::from_ne_bytes(seed))),
            device,
            clock: Clock::start(),
            buffer: vec![0; LONGEST_PACKET],
            unsent: None,
            scratch: BytesMut::with_capacity(LONGEST_PACKET),
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

    /// What passed so far.
    pub fn counters(&self) -> DriverCounters {
        self.counters
    }

    /// Reads and handles at most `most` packets; false if the device has no more.
    pub fn receive(&mut self, most: usize) -> io::Result<bool> {
        for _ in 0..most {
            let Some(length) = self.device.receive(&mut self.buffer)? else { return Ok(false) };
            self.counters.received += 1;
            self.counters.received_bytes += length as u64;
            let now = self.clock.now();
            let packet = Bytes::copy_from_slice(&self.buffer[..length]);
            match anabranch_wire::parse(&packet, Checksums::Verify) {
                Ok(segment) => self.endpoint.handle_segment(now, segment),
                Err(_) => match Echo::parse(&packet) {
                    Some(echo) => self.endpoint.handle_echo(now, echo),
                    None => self.counters.ignored += 1,
                },
            }
        }
        Ok(true)
    }

    /// Lets the endpoint's timers act that are due.
    pub fn handle_timeout(&mut self) {
        let now = self.clock.now();
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    /// Sends what the endpoint has to send; false if the device can take no more, and this is to be called again when it can.
    pub fn transmit(&mut self) -> io::Result<bool> {
        if let Some(packet) = self.unsent.take()
            && !self.write(packet)?
        {
            return Ok(false);
        }
        loop {
            let now = self.clock.now();
            let mut packet = std::mem::take(&mut self.scratch);
            packet.clear();
            if let Some(transmit) = self.endpoint.poll_transmit(now) {
                // The device takes or refuses at once: there is no queue whose length the endpoint would want to know.
                self.endpoint.handle_departure(now, transmit.tag, transmit.segment.wire_length());
                anabranch_wire::emit(&transmit.segment, &mut packet)
                    .expect("the engine sends only what can be written");
            } else if let Some(echo) = self.endpoint.poll_echo() {
                packet.extend_from_slice(&echo.emit().unwrap_or_default());
            } else {
                self.scratch = packet;
                return Ok(true);
            }
            if !self.write(packet)? {
                return Ok(false);
            }
        }
    }

    fn write(&mut self, packet: BytesMut) -> io::Result<bool> {
        if !self.device.send(&packet)? {
            self.counters.blocked += 1;
            self.unsent = Some(packet);
            return Ok(false);
        }
        self.counters.sent += 1;
        self.counters.sent_bytes += packet.len() as u64;
        self.scratch = packet;
        Ok(true)
    }
}

impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
