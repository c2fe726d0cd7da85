//! A host under test: an endpoint that is asked after each step whether everything still holds, and its application.

use crate::codec::{rewritten, through};
use anabranch_engine::{Config, ConnectionId, Endpoint, Event, LocalAddress, Profile, Read};
use anabranch_units::{Bytes, Duration, Instant, Seed};
use anabranch_wire::{Checksums, Segment, parse, pattern};
use bytes::Bytes as Payload;
use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::script::Script;

/// An endpoint with its application.
pub(crate) struct Host {
    pub endpoint: Endpoint,
    /// Its connections, as its events named them.
    pub connections: BTreeMap<ConnectionId, Stream>,
    /// Connections that a peer has completed so far.
    pub accepted: usize,
    pub subflows: usize,
    /// Connections that ended otherwise than in order.
    pub resets: usize,
    /// Its application does not read for a while.
    pub deaf: bool,
    /// The stream cannot be vouched for any more.
    pub tampered: bool,
}

/// State of the application on one connection.
#[derive(Default, Debug)]
pub(crate) struct Stream {
    pub written: u64,
    pub read: u64,
    pub finished: bool,
}

/// The port that is listened on.
pub(crate) const PORT: u16 = 80;
/// Handshakes under way at once.
const MAX_HALF_OPEN: usize = 8;
/// Limit of segments per step: a window in the smallest segments, several times over.
const MOST_SEGMENTS: usize = 20_000;
const MOST_TIMEOUTS: usize = 1_000;
const MOST_AT_ONCE: usize = 50;

/// A host's settings: small buffers, and a TCP as the script says.
pub(crate) fn config(script: &mut Script<'_>, addresses: &[IpAddr]) -> Config {
    let mut profile = script.of(&[Profile::tcp(), Profile::tcp(), Profile::rfc(), Profile::newreno()]);
    profile.timestamps = !script.one_in(3);
    profile.sack = !script.one_in(4);
    profile.window_scaling = !script.one_in(4);
    let addresses = addresses.iter().map(|&ip| LocalAddress { ip, backup: script.one_in(8) }).collect();
    let mut config = Config::new(profile, addresses);
    config.checksum = script.one_in(4);
    config.receive_buffer = Bytes::new(4_000 + 250 * u64::from(script.any::<u8>()));
    config.send_buffer = Bytes::new(4_000 + 250 * u64::from(script.any::<u8>()));
    config.close_timeout = Duration::from_secs(20);
    config.max_half_open = MAX_HALF_OPEN;
    config
}

impl Host {
    pub fn new(config: Config, seed: u64) -> Self {
        let mut endpoint = Endpoint::new(config, Seed(seed)).expect("the drawn settings can be");
        endpoint.listen(PORT);
        Host {
            endpoint,
            connections: BTreeMap::new(),
            accepted: 0,
            subflows: 0,
            resets: 0,
            deaf: false,
            tampered: false,
        }
    }

    /// A segment arrives: as bytes, if it has any.
    pub fn deliver(&mut self, now: Instant, segment: Segment) {
        let mut segment = through(&segment).unwrap_or(segment);
        self.endpoint.handle_segment(now, &mut segment);
    }

    /// Delivers a packet without verified checksums.
    pub fn deliver_packet(&mut self, now: Instant, packet: &Payload) {
        if let Ok(mut segment) = parse(packet, Checksums::Ignore) {
            self.endpoint.handle_segment(now, &mut segment);
        }
    }

    /// Takes events, reads, and takes what is to be sent, until there is nothing. All is checked.
    pub fn settle(&mut self, now: Instant, mut send: impl FnMut(Segment)) {
        let mut segments = 0;
        loop {
            let mut is_idle = true;
            while let Some((id, event)) = self.endpoint.poll_event() {
                is_idle = false;
                self.on_event(id, event);
            }
            let ids: Vec<_> = self.connections.keys().copied().filter(|_| !self.deaf).collect();
            for id in ids {
                while let Ok(Read::Data(chunk)) = self.endpoint.read(id) {
                    is_idle = false;
                    let stream = self.connections.get_mut(&id).expect("it was among the keys");
                    if !self.tampered {
                        assert!(
                            pattern::matches(stream.read, &chunk),
                            "what is read is what was written, from byte {} on",
                            stream.read
                        );
                    }
                    stream.read += chunk.len() as u64;
                }
            }
            while let Some(transmit) = self.endpoint.poll_transmit(now) {
                is_idle = false;
                segments += 1;
                assert!(segments < MOST_SEGMENTS, "one step causes a bounded number of segments");
                assert!(transmit.segment.options.foreign().is_empty(), "we understand what we send");
                rewritten(&transmit.segment);
                send(*transmit.segment);
            }
            if is_idle {
                break;
            }
        }
        self.check(now);
    }

    /// Time passes until `until`; deadlines are met on the way.
    pub fn pass(&mut self, until: Instant, mut send: impl FnMut(Instant, Segment)) {
        let (mut count, mut same, mut last) = (0, 0, None);
        while let Some(at) = self.endpoint.poll_timeout().filter(|&at| at <= until) {
            count += 1;
            if count > MOST_TIMEOUTS {
                return;
            }
            self.endpoint.handle_timeout(at);
            self.settle(at, |segment| send(at, segment));
            // Several subflows and connections may have something to do at one instant, but not for ever.
            same = if last == Some(at) { same + 1 } else { 0 };
            assert!(same < MOST_AT_ONCE, "timers make progress at {at}");
            last = Some(at);
        }
    }

    fn on_event(&mut self, id: ConnectionId, event: Event) {
        let stream = self.connections.entry(id).or_default();
        match event {
            Event::Accepted { .. } => self.accepted += 1,
            Event::SubflowEstablished(_) => self.subflows += 1,
            Event::PeerFinished => stream.finished = true,
            Event::Reset => self.resets += 1,
            Event::Fallback(reason) => {
                assert!(self.tampered, "fell back for {reason:?} though nobody changed anything")
            }
            _ => {}
        }
    }

    fn check(&self, now: Instant) {
        if let Err(fault) = self.endpoint.check(now) {
            panic!("at {now}: {fault}");
        }
        let known = self.connections.len().max(self.accepted);
        let most = known + MAX_HALF_OPEN;
        assert!(
            self.endpoint.connection_count() <= most,
            "{} connections, {known} known",
            self.endpoint.connection_count()
        );
    }

    /// Writes `length` more bytes of the pattern, as far as they are taken.
    pub fn write(&mut self, id: ConnectionId, length: u64) {
        let Some(stream) = self.connections.get_mut(&id) else { return };
        let bytes: Payload = pattern::whole(stream.written, length as usize);
        stream.written += self.endpoint.write(id, &bytes).unwrap_or(0) as u64;
    }

    /// The `n`th of its connections, counted round.
    pub fn connection(&self, n: u8) -> Option<ConnectionId> {
        let count = self.connections.len().max(1);
        self.connections.keys().nth(usize::from(n) % count).copied()
    }
}
