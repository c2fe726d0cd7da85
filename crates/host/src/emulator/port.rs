//! One end of a path: a device, and what is counted there.

use super::Percentiles;
use super::percentiles::Tally;
use super::report::Traffic;
use super::scope::payload;
use crate::Device;
use anabranch_paths::{Direction, End};
use anabranch_units::{Bytes, Duration};
use std::io;

/// A device and what passed it.
pub(super) struct Port {
    device: Box<dyn Device>,
    pub(super) path: usize,
    pub(super) end: End,
    /// Reads that failed one after the other.
    failed_reads: u32,
    /// All of them.
    unreadable: u64,
    /// Error that ended reading.
    pub(super) failure: Option<String>,
    pub(super) read: u64,
    pub(super) read_bytes: u64,
    pub(super) not_ip: u64,
    pub(super) link_local: u64,
    delivered: u64,
    delivered_bytes: u64,
    delivered_payload: u64,
    no_room: u64,
    refused: u64,
    refusal: Option<String>,
    pub(super) damaged_and_dropped: u64,
    delay: Tally,
    /// Packets that the device had dropped when the emulator began.
    queue_drops_before: Option<u64>,
    cable: Cable,
    /// Packets for the host that its interface refused because its cable was out.
    refused_unplugged: u64,
    /// Packets of the host's that its interface dropped because its cable was out, up to when it last noticed that it
    /// was in again.
    dropped_unplugged: u64,
}

/// The cable of an interface, which the scenario pulls out and puts back in (`state = "down"`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cable {
    In,
    /// The cable is out: what the interface drops from here on is the scenario's doing; the device had dropped so many
    /// before.
    Out {
        dropped_before: Option<u64>,
    },
    /// Plugged in again. The host notices a little later and drops its packets until then; its next packet shows that
    /// it has noticed.
    Back {
        dropped_before: Option<u64>,
    },
}

/// Result of reading.
pub(super) enum Read {
    /// A packet of this many bytes.
    Packet(usize),
    /// No packet is waiting.
    Empty,
    /// The device failed for good; [`Port::failure`] holds the error.
    Failed,
}

impl Cable {
    /// Packets that the interface has dropped since the cable was pulled out, when it has dropped `now` in all.
    fn dropped_until(self, now: Option<u64>) -> u64 {
        match self {
            Cable::In => 0,
            Cable::Out { dropped_before } | Cable::Back { dropped_before } => {
                now.zip(dropped_before).map_or(0, |(now, before)| now.saturating_sub(before))
            }
        }
    }
}

impl Port {
    pub(super) fn new(mut device: Box<dyn Device>, path: usize, end: End) -> Self {
        let queue_drops_before = device.queue_drops().unwrap_or_default();
        Port {
            device,
            path,
            end,
            failed_reads: 0,
            unreadable: 0,
            failure: None,
            read: 0,
            read_bytes: 0,
            not_ip: 0,
            link_local: 0,
            delivered: 0,
            delivered_bytes: 0,
            delivered_payload: 0,
            no_room: 0,
            refused: 0,
            refusal: None,
            damaged_and_dropped: 0,
            delay: Tally::new(),
            queue_drops_before,
            cable: Cable::In,
            refused_unplugged: 0,
            dropped_unplugged: 0,
        }
    }

    pub(super) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// The way that packets take which this device's host sends.
    pub(super) const fn outward(&self) -> Direction {
        match self.end {
            End::Client => Direction::Up,
            End::Server => Direction::Down,
        }
    }

    #[inline]
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Read {
        let error = match self.device.receive(buffer) {
            Ok(None) => return Read::Empty,
            Ok(Some(length)) if length > 0 => {
                self.failed_reads = 0;
                self.read += 1;
                self.read_bytes += length as u64;
                if matches!(self.cable, Cable::Back { .. }) {
                    self.notice_cable();
                }
                return Read::Packet(length);
            }
            Ok(Some(_)) => "closed by its other end".to_owned(),
            Err(error) => error.to_string(),
        };
        self.failed_reads += 1;
        self.unreadable += u64::from(self.cable == Cable::In);
        if self.failed_reads < MOST_FAILED_READS {
            return Read::Empty; // An interface that goes down says so once, and may come back.
        }
        let host = if self.end == End::Client { "client" } else { "server" };
        self.failure = Some(format!("the {host}'s device cannot be read any more: {error}"));
        Read::Failed
    }

    /// Hands a packet to the host; false if its device does not take it.
    #[inline]
    pub(super) fn send(&mut self, packet: &[u8], delay: Duration) -> bool {
        match self.device.send(packet) {
            Ok(true) => {
                self.delivered += 1;
                self.delivered_bytes += packet.len() as u64;
                self.delivered_payload += payload(packet) as u64;
                self.delay.add_duration(delay);
                return true;
            }
            Ok(false) => self.no_room += 1,
            Err(_) if matches!(self.cable, Cable::Out { .. }) => self.refused_unplugged += 1,
            Err(error) => {
                self.refused += 1;
                self.refusal.get_or_insert_with(|| error.to_string());
            }
        }
        false
    }

    /// Pulls the cable out or puts it back in, as the host sees it.
    pub(super) fn set_carrier(&mut self, up: bool) -> io::Result<bool> {
        self.cable = match (self.cable, up) {
            (Cable::In, false) => Cable::Out { dropped_before: self.device.queue_drops().unwrap_or_default() },
            (Cable::Back { dropped_before }, false) => Cable::Out { dropped_before },
            (Cable::Out { dropped_before }, true) => Cable::Back { dropped_before },
            (as_it_is, _) => as_it_is,
        };
        self.device.set_carrier(up)
    }

    /// The host has noticed that its cable is in again: what its interface drops counts from now on.
    #[cold]
    fn notice_cable(&mut self) {
        self.dropped_unplugged += self.cable.dropped_until(self.device.queue_drops().unwrap_or_default());
        self.cable = Cable::In;
    }

    /// Adds this port's counts of the packets that its host sends.
    pub(super) fn add_sent(&mut self, traffic: &mut Traffic) {
        traffic.read = self.read;
        traffic.read_bytes = Bytes::new(self.read_bytes);
        traffic.not_ip = self.not_ip;
        traffic.link_local = self.link_local;
        traffic.unreadable = self.unreadable;
        let now = self.device.queue_drops().unwrap_or_default();
        let unplugged = self.dropped_unplugged + self.cable.dropped_until(now);
        traffic.unplugged += unplugged;
        let all = now.zip(self.queue_drops_before).map(|(now, before)| now.saturating_sub(before));
        traffic.queue_drops = all.map(|all| all.saturating_sub(unplugged));
    }

    /// Adds this port's counts of the packets that its host receives.
    pub(super) fn add_received(&self, traffic: &mut Traffic) {
        let delay: Percentiles<Duration> = self.delay.durations();
        *traffic = Traffic {
            delivered: self.delivered,
            delivered_bytes: Bytes::new(self.delivered_bytes),
            delivered_payload: Bytes::new(self.delivered_payload),
            delay,
            no_room: self.no_room,
            refused: self.refused,
            unplugged: traffic.unplugged + self.refused_unplugged,
            refusal: self.refusal.clone(),
            damaged_and_dropped: self.damaged_and_dropped,
            ..std::mem::take(traffic)
        };
    }
}

const MOST_FAILED_READS: u32 = 8;
