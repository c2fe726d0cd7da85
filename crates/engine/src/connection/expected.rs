//! The short way in, for the two kinds of segments that bulk transfers consist of (header prediction: V. Jacobson,
//! *4BSD TCP Header Prediction*, CCR 20(2), 1990): data that is next on its subflow, in the mapping that it carries,
//! with nothing waiting; and ACKs without data. On an established subflow of confirmed MPTCP, with no options but
//! timestamps, DSS and, on ACKs, SACK.
//!
//! State changes only once it is certain that the segment is of that kind. The long way (`input`) takes all others, and
//! would have left the same state behind: the tests send every segment both ways.

use super::slots::Slot;
use super::{Connection, Life};
use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::{Dss, Flags, Map, Segment};

impl Connection {
    /// Takes in a segment that is what was expected. False if it is not, and then nothing has happened.
    pub(super) fn take_expected(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
        shared: &mut Shared,
    ) -> bool {
        let subflow = &self.subflows[slot];
        if shared.takes_long_way() || !matches!(self.life, Life::Multipath) || !is_ordinary(subflow, segment, now) {
            return false;
        }
        let (Some(dss), Some(ack)) = (segment.options.dss(), subflow.acceptable_ack(segment)) else { return false };
        match dss.map {
            None if segment.payload.is_empty() && !dss.data_fin => {
                let start = subflow.rx.rcv_nxt;
                let autotuned = self.receiver.is_autotuned();
                let subflow = &mut self.subflows[slot];
                subflow.note_valid(now, start, segment, autotuned);
                subflow.note_dss(now, ack);
                self.handle_ack(now, slot, start, segment, ack, shared);
                self.take_data_ack(now, slot, segment, &dss, shared);
                true
            }
            Some(map) => self.take_expected_data(now, slot, segment, ack, (&dss, &map), shared),
            None => false,
        }
    }

    /// The same for data with its mapping, which acknowledges nothing new.
    fn take_expected_data(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
        ack: u64,
        (dss, map): (&Dss, &Map),
        shared: &mut Shared,
    ) -> bool {
        let subflow = &self.subflows[slot];
        let start = subflow.rx.rcv_nxt;
        let whole = usize::from(map.length) == segment.payload.len() && map.length > 0 && !dss.data_fin;
        let here = SubflowSeq::new(map.subflow_seq).offset_near(SubflowSeq::new(0), start) == Some(start);
        let proven = self.negotiated.checksum || map.checksum.is_some();
        let rx = &subflow.rx;
        let waits = !rx.ofo.is_empty() || !rx.maps.is_empty() || !rx.unplaced.is_empty() || rx.peer_fin.is_some();
        let quiet = ack == subflow.tx.recovery.snd_una() && !segment.options.has_sack();
        if !whole || !here || proven || waits || !quiet || shared.config.profile.coupled_acks {
            return false;
        }
        let Some(data) = self.keys.data_offset(map.dsn, self.receiver.next()) else { return false };
        let autotuned = self.receiver.is_autotuned();
        let subflow = &mut self.subflows[slot];
        subflow.note_valid(now, start, segment, autotuned);
        subflow.note_dss(now, ack);
        subflow.tx.take_window(segment.window, start, ack);
        self.sender.take_marks(now, subflow, segment, ack);
        self.take_data_ack(now, slot, segment, dss, shared);
        if self.negotiated.dss.note_peer(map.dsn, self.receiver.next()) {
            self.on_longer_dss();
        }

        let payload = std::mem::take(&mut segment.payload);
        self.receiver.on_segment();
        self.subflows[slot].note_arrival(now, start, start + payload.len() as u64, &shared.config.profile);
        self.wake_prober(now);
        if data > self.receiver.next() {
            self.receiver.on_early();
        }
        self.consume(now, slot, payload, Some(data), shared);
        self.note_push(slot, segment.flags);
        true
    }
}

/// An ACK, with data or without, that begins with the next byte expected on an established subflow of which there is
/// nothing remarkable, with timestamps as they were agreed on.
fn is_ordinary(subflow: &Subflow, segment: &Segment, now: Instant) -> bool {
    const PUSHED: Flags = Flags(Flags::ACK.0 | Flags::PSH.0);
    let flags = (segment.flags.0 | Flags::PSH.0) & !subflow.marks.counting_flags().0 == PUSHED.0;
    let timely = match segment.options.timestamps() {
        Some(timestamps) => subflow.timestamps && !subflow.rx.is_old(timestamps.value, now),
        None => !subflow.timestamps,
    };
    flags
        && timely
        && subflow.state == State::Established
        && segment.seq == subflow.rx.irs + subflow.rx.rcv_nxt
        && segment.options.mptcp().is_empty()
        && !subflow.liveness.stale
        && subflow.liveness.removal_probe.is_none()
}

#[cfg(test)]
mod tests {
    use super::{Connection, Flags, Subflow};
    use crate::{Config, ConnectionId, EcnRule, Endpoint, Event, LocalAddress, Profile, Read, Transmit};
    use anabranch_policy::registry::{ACK_PATHS, Entry, Kind, REINJECTIONS};
    use anabranch_units::{Bytes, Duration, Ecn, Instant, Seed, Stream};
    use anabranch_wire::Segment;
    use bytes::Bytes as Payload;
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use std::sync::Arc;

    const CLIENT: usize = 0;
    const SERVER: usize = 1;

    /// A client and a server, each twice: `hosts[1]` takes every segment the long way, in and out.
    struct Twins {
        now: Instant,
        hosts: [[Endpoint; 2]; 2],
        /// Segments under way by time of arrival and order of sending, each with its receiving host.
        wire: BTreeMap<(Instant, u64), (usize, Segment)>,
        sent: u64,
        read: [u64; 2],
        id: [Option<ConnectionId>; 2],
        draw: Stream,
        /// Losses per segment.
        loss: f64,
        taken: Taken,
    }

    /// Segments of each kind by their receiver, first those that took the long way.
    type Taken = BTreeMap<(usize, &'static str), [u64; 2]>;

    fn policy<T: Kind + ?Sized>(table: &'static [Entry<T>], name: &str) -> &'static Entry<T> {
        table.iter().find(|entry| entry.name == name).expect("there is such a policy")
    }

    impl Connection {
        /// State that a segment can change: of subflows, both halves of the data level, timers, probes, losses and
        /// statistics.
        fn described(&self) -> String {
            let out = &self.sender.outgoing;
            let subflows = self
                .subflows
                .iter()
                .map(|it| (it.id, it.confirmed, it.useful, &it.tx, &it.rx, &it.liveness, &it.marks));
            let subflows: Vec<_> = subflows.collect();
            let sent = (out.una, out.nxt, out.edge, out.largest_window, &out.unsent, &out.log, &out.reinject);
            let ends = (out.held(), out.fin, out.fin_sent, out.fin_acked, out.writer_waits, out.in_order);
            let terms = (&self.negotiated, self.life.mode(), &self.timers, &self.acks.prober, self.deadline());
            let more = (&self.receiver, &self.paths.lost_subflows, self.stats(), self.subflow_stats());
            let asked = (&self.sender.waiting, &self.sender.watchdog, self.sender.usable, &self.progress);
            format!("{subflows:?} {sent:?} {ends:?} {terms:?} {more:?} {asked:?}")
        }
    }

    impl Twins {
        fn new(seed: u64) -> Self {
            let mut draw = Seed(seed).stream("expected");
            let address = |host: u8, path: u8| LocalAddress { ip: IpAddr::from([10, host, path, 1]), backup: false };
            let mut profile = Profile::tcp();
            // Small, since all that is held is compared byte by byte.
            profile.mss = 120;
            profile.timestamps = draw.chance(0.7);
            profile.ecn = [EcnRule::OFF, EcnRule::CLASSIC, EcnRule::ACCURATE][draw.below(3) as usize];
            let probed = draw.chance(0.5);
            let burst = draw.chance(0.3).then(|| Bytes::new(300));
            let buffer = Bytes::new(4_000 + draw.below(30_000));
            let checksum = draw.chance(0.1);
            let host = |number: u8, paths: u8| {
                let addresses = (0..paths).map(|path| address(number, path)).collect();
                let mut config = Config::new(profile.clone(), addresses);
                (config.checksum, config.receive_buffer, config.burst) = (checksum, buffer, burst);
                config.ack_rewrite = probed;
                if probed {
                    config.policies.ack_path = Arc::new(|| policy(ACK_PATHS, "probed").build_default());
                    config.policies.reinjection = Arc::new(|| policy(REINJECTIONS, "insured").build_default());
                }
                Endpoint::new(config, Seed(seed + u64::from(number))).expect("the settings are valid")
            };
            let mut hosts = [(); 2].map(|()| [host(0, 2), host(1, 1)]);
            hosts[1].iter_mut().for_each(|host| host.shared.long_way = true);
            hosts.iter_mut().for_each(|twin| twin[SERVER].listen(80));
            let loss = if draw.chance(0.5) { 0.0 } else { 0.03 };
            let (wire, read, taken) = (BTreeMap::new(), [0; 2], Taken::new());
            let mut twins = Twins { now: Instant::ZERO, hosts, wire, sent: 0, read, id: [None; 2], draw, loss, taken };
            twins.id[CLIENT] = Some(twins.both(CLIENT, |host, now| {
                host.open(now, IpAddr::from([10, 0, 0, 1]), ([10, 1, 0, 1], 80).into()).expect("the addresses fit")
            }));
            twins
        }

        /// Does the same to both twins of a host, which answer alike.
        fn both<T: PartialEq + std::fmt::Debug>(
            &mut self,
            host: usize,
            mut act: impl FnMut(&mut Endpoint, Instant) -> T,
        ) -> T {
            let now = self.now;
            let [first, second] = [0, 1].map(|twin| act(&mut self.hosts[twin][host], now));
            assert_eq!(first, second, "host {host} at {now}");
            first
        }

        fn read_all(&mut self, host: usize, id: ConnectionId) {
            while let Ok(Read::Data(chunk)) = self.both(host, |twin, _| twin.read(id)) {
                self.read[host] += chunk.len() as u64;
            }
        }

        /// Lets a host say and send what it has, and compares all that can be seen of it.
        fn settle(&mut self, host: usize, written: &mut [u64; 2]) {
            loop {
                let event = self.both(host, |twin, _| twin.poll_event());
                let Some((id, event)) = event else { break };
                match event {
                    Event::Accepted { .. } => self.id[SERVER] = Some(id),
                    Event::PeerFinished => self.both(host, |twin, _| twin.shutdown(id)),
                    _ => {}
                }
            }
            if let Some(id) = self.id[host] {
                // Now and then nothing is read for a while, and windows close.
                if self.draw.chance(0.7) {
                    self.read_all(host, id);
                }
                let chunk = Payload::from(vec![7; self.draw.below(3_000).min(written[host]) as usize]);
                let taken = self.both(host, |twin, _| twin.write(id, &chunk).unwrap_or(0)) as u64;
                written[host] -= taken;
                if written[host] == 0 && host == CLIENT {
                    self.both(host, |twin, _| twin.shutdown(id));
                }
            }
            let told = |it: Option<Transmit>| it.map(|Transmit { segment, tag, purpose, .. }| (segment, tag, purpose));
            while let Some((mut segment, ..)) = self.both(host, |twin, now| told(twin.poll_transmit(now))) {
                let path = if host == CLIENT { segment.flow.src } else { segment.flow.dst };
                let slow = path == IpAddr::from([10, 0, 1, 1]);
                let way = Duration::from_micros(if slow { 30_000 } else { 8_000 } + self.draw.below(300));
                if segment.ip.ecn.is_capable() && self.draw.chance(0.1) {
                    segment.ip.ecn = Ecn::Ce;
                }
                if !self.draw.chance(self.loss) {
                    self.wire.insert((self.now + way, self.sent), (1 - host, *segment));
                }
                self.sent += 1;
            }
            let state = |twin: &Endpoint| {
                let alive = twin.connections.iter().filter_map(|slot| slot.connection.as_ref());
                alive.map(|it| it.described()).collect::<Vec<_>>()
            };
            let [first, second] = [0, 1].map(|twin| &self.hosts[twin][host]);
            assert_eq!(first.poll_timeout(), second.poll_timeout(), "host {host} at {}", self.now);
            // A difference stays, so now and then is enough.
            if self.sent.is_multiple_of(8) {
                let (first, second) = (state(first).concat(), state(second).concat());
                let at = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
                let near = |text: &str| text.chars().skip(at.saturating_sub(200)).take(300).collect::<String>();
                assert!(first == second, "host {host} at {}:\n{}\n{}", self.now, near(&first), near(&second));
            }
        }

        /// The most remarkable thing about a segment.
        fn kind(&self, host: usize, segment: &Segment) -> &'static str {
            let options = &segment.options;
            let mut subflows = self.hosts[0][host].connections.iter().filter_map(|slot| slot.connection.as_ref());
            let next = |it: &Subflow| it.flow.dst == segment.flow.src && segment.seq == it.rx.irs + it.rx.rcv_nxt;
            let ends = segment.flags.has(Flags::FIN) || options.dss().as_ref().is_some_and(|dss| dss.data_fin);
            match () {
                () if !options.mptcp().is_empty() || segment.flags.has(Flags::SYN) => "MPTCP options or SYN",
                () if ends => "FIN",
                () if !subflows.any(|it| it.subflows.iter().any(next)) => "out of order",
                () if !segment.payload.is_empty() => "data",
                () if options.has_sack() => "ACK with SACK",
                () => "ACK",
            }
        }

        /// Plays until no data is left; returns how much each host has read, and which segments went which way.
        fn play(mut self, mut unwritten: [u64; 2]) -> ([u64; 2], Taken) {
            for host in [CLIENT, SERVER] {
                self.settle(host, &mut unwritten);
            }
            for _ in 0..40_000 {
                let timers = [CLIENT, SERVER].map(|host| self.hosts[0][host].poll_timeout().unwrap_or(Instant::MAX));
                let arrival = self.wire.first_key_value().map_or(Instant::MAX, |((at, _), _)| *at);
                let first = arrival.min(timers[0]).min(timers[1]);
                if first == Instant::MAX {
                    break;
                }
                self.now = first;
                let host = if arrival == first {
                    let (_, (host, segment)) = self.wire.pop_first().expect("it was just looked at");
                    let (kind, before) = (self.kind(host, &segment), self.hosts[0][host].shared.short);
                    self.both(host, |twin, now| twin.handle_segment(now, &mut segment.clone()));
                    let short = self.hosts[0][host].shared.short - before;
                    self.taken.entry((host, kind)).or_default()[short as usize] += 1;
                    host
                } else {
                    let host = if timers[0] == first { CLIENT } else { SERVER };
                    self.both(host, |twin, now| twin.handle_timeout(now));
                    host
                };
                self.settle(host, &mut unwritten);
            }
            for host in [CLIENT, SERVER] {
                self.read_all(host, self.id[host].expect("both have begun"));
            }
            (self.read, self.taken)
        }
    }

    /// Over two paths, with loss or without, with timestamps or without, uploads, downloads and both at once: every
    /// segment goes both ways in and out, and hosts that differ in that alone send the same segments and keep the same
    /// state. Segments of all kinds were there at both hosts, and only plain data and ACKs took the short way.
    #[test]
    fn both_ways_leave_the_same_state() {
        let mut all = Taken::new();
        for seed in 0..150 {
            let mut draw = Seed(seed).stream("sizes");
            let bytes = [1 + draw.below(20_000), draw.below(20_000)];
            let (read, taken) = Twins::new(100 * seed).play(bytes);
            assert_eq!(read, [bytes[SERVER], bytes[CLIENT]], "seed {seed}");
            for (kind, [long, short]) in taken {
                let sum = all.entry(kind).or_default();
                *sum = [sum[0] + long, sum[1] + short];
            }
        }
        for host in [CLIENT, SERVER] {
            for (kind, some_short) in [
                ("data", true),
                ("ACK", true),
                ("ACK with SACK", true),
                ("out of order", false),
                ("MPTCP options or SYN", false),
                ("FIN", false),
            ] {
                let [long, short] = all[&(host, kind)];
                assert!(long > 0 && long + short > 100 && (short > 100) == some_short, "{host}, {kind}: {all:?}");
            }
        }
    }
}
