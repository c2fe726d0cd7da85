//! A listening endpoint and a stranger who can send what he likes.
//!
//! The stranger sees what the endpoint answers and can answer that in turn, with right numbers, keys and HMACs, so that
//! he gets past every handshake; then he lies. In the end an honest client is served all the same.

use crate::host::{Host, PORT, config};
use crate::mutate::{corrupt, lie, sign};
use crate::script::Script;
use crate::segments;
use anabranch_engine::{Config, Endpoint, LocalAddress, Profile};
use anabranch_units::{AddressId, Duration, Instant, Key, Nonce, Seed, SubflowId, SubflowSeq, join_hmac};
use anabranch_wire::{
    DataSeq, Dss, Flags, FlowKey, Handshake, JoinAck, JoinSyn, Map, MpCapable, MpOption, Segment, Timestamps,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Runs a script against a listener.
pub fn listener(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let addresses = [server(0), server(1)];
    let host = Host::new(config(&mut script, &addresses), 1);
    let mut stranger = Stranger { now: Instant::ZERO, host, peers: BTreeMap::new(), seen: Vec::new() };
    // A stranger's data does not follow the test pattern.
    stranger.host.tampered = true;
    for _ in 0..MOST_STEPS {
        if script.is_empty() {
            break;
        }
        stranger.step(&mut script);
    }
    stranger.host.deaf = false;
    stranger.settle();
    stranger.wait(Duration::from_secs(400));
    stranger.honest();
}

struct Stranger {
    now: Instant,
    host: Host,
    /// State of each flow begun.
    peers: BTreeMap<FlowKey, Peer>,
    /// Segments last sent by the endpoint.
    seen: Vec<Segment>,
}

/// The stranger's end of one flow.
#[derive(Clone, Copy)]
struct Peer {
    own: Key,
    /// The endpoint's key.
    other: Option<Key>,
    nonce: Nonce,
    /// DSS checksums were asked for.
    checksum: bool,
    seq: SubflowSeq,
    /// Subflow offset of the next byte, and its offset in the data.
    sent: u32,
    data: u64,
}

impl Stranger {
    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(10) {
            0 => self.host.deliver_packet(self.now, &Bytes::copy_from_slice(script.bytes(120))),
            1 => {
                let mut segment = segments::segment(script);
                segment.flow = self.flow(script);
                self.host.deliver(self.now, segment);
            }
            2 => self.syn(script),
            3..=6 => self.answer(script),
            7 => {
                let wait = script.of(&[1, 10, 50, 200, 1_000, 5_000, 30_000, 100_000]);
                self.wait(Duration::from_millis(wait));
            }
            8 => {
                if let Some(segment) = self.last(script)
                    && let Some(packet) = corrupt(script, &turned(&segment))
                {
                    self.host.deliver_packet(self.now, &packet);
                }
            }
            _ => {
                if let Some(id) = self.host.connection(script.any()) {
                    match script.below(7) {
                        6 => self.host.deaf ^= true,
                        0..=2 => self.host.write(id, script.number() % 10_000),
                        3 => self.host.endpoint.shutdown(id),
                        4 => {
                            self.host.endpoint.set_backup(self.now, id, SubflowId(script.below(4).into()), script.any())
                        }
                        _ => self.host.endpoint.abort(self.now, id),
                    }
                }
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        let Stranger { now, host, peers, seen } = self;
        host.settle(*now, |segment| observe(segment, peers, seen));
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        let Stranger { host, peers, seen, now } = self;
        host.pass(until, |_, segment| observe(segment, peers, seen));
        *now = until;
        self.settle();
    }

    fn flow(&self, script: &mut Script<'_>) -> FlowKey {
        let choice = script.any::<u8>();
        if choice % 4 < 2 && !self.peers.is_empty() {
            let nth = usize::from(choice / 4) % self.peers.len();
            return *self.peers.keys().nth(nth).expect("counted round");
        }
        let port = if choice.is_multiple_of(16) { PORT + 1 } else { PORT };
        let source = SocketAddr::new(client(choice % 3), 1000 + u16::from(script.below(16)));
        FlowKey::new(source, SocketAddr::new(server(u8::from(choice % 8 == 7)), port))
    }

    /// The latest segments of the endpoint, the last one most often.
    fn last(&self, script: &mut Script<'_>) -> Option<Segment> {
        let back = usize::from(script.of(&[0u8, 0, 0, 1, 1, 2, 3, 7]));
        self.seen.iter().rev().nth(back).or(self.seen.last()).cloned()
    }

    /// A SYN with MP_CAPABLE, or with MP_JOIN for a connection that he knows, or with neither.
    fn syn(&mut self, script: &mut Script<'_>) {
        let flow = self.flow(script);
        let seq = SubflowSeq::new(script.of(&[1, 0xffff_fff0, 0x7fff_ffff]));
        let known: Vec<_> = self.peers.values().filter(|peer| peer.other.is_some()).copied().collect();
        let mut peer = Peer {
            own: Key::new(u64::from(script.any::<u8>())),
            other: None,
            nonce: Nonce(u32::from(script.any::<u8>())),
            checksum: false,
            seq: seq + 1,
            sent: 1,
            data: 0,
        };
        let mut segment = Segment::new(flow, Flags::SYN, seq, SubflowSeq::new(0));
        segment.window = script.of(&[65_535, 0, 1000]);
        *segment.options.handshake_mut() = Handshake {
            mss: script.of(&[Some(1460), Some(536), Some(0), None]),
            window_scale: script.of(&[Some(7), Some(0), Some(15), None]),
            sack_permitted: script.any(),
        };
        segment.options.set_timestamps(script.any::<bool>().then_some(Timestamps { value: 1, echo: 0 }));
        match script.below(4) {
            0 => {}
            1 if !known.is_empty() => {
                let joined = script.of(&known);
                (peer.own, peer.other, peer.checksum) = (joined.own, joined.other, joined.checksum);
                let token = joined.other.map(Key::token).expect("only such are known");
                let (backup, address) = (script.any(), AddressId(script.below(4)));
                segment.options.push_mptcp(MpOption::JoinSyn(JoinSyn { backup, address, token, nonce: peer.nonce }));
            }
            _ => {
                let capable = capable(script, None, None);
                peer.checksum = capable.checksum_required;
                segment.options.push_mptcp(MpOption::Capable(capable));
            }
        }
        for _ in 0..script.of(&[0, 0, 0, 1]) {
            lie(script, &mut segment);
        }
        if self.peers.len() < MOST_PEERS {
            self.peers.entry(flow).or_insert(peer);
        }
        self.host.deliver(self.now, segment);
    }

    /// A right answer to something that the endpoint sent, more or less.
    fn answer(&mut self, script: &mut Script<'_>) {
        let Some(seen) = self.last(script) else { return };
        let flow = seen.flow.reversed();
        let Some(peer) = self.peers.get_mut(&flow) else { return };
        let mut segment = turned(&seen);
        segment.window = 60_000;
        if script.any() {
            // Behind all that he has sent, acknowledged or not.
            segment.seq = peer.seq;
        }
        let offer = seen.options.mptcp().iter().find_map(|option| match option {
            MpOption::Capable(capable) => Some((capable.sender_key, None)),
            MpOption::JoinSynAck(join) => Some((None, Some(join.nonce))),
            _ => None,
        });
        let is_silent = script.one_in(8);
        match (offer, peer.other) {
            _ if is_silent => {}
            (Some((Some(_), _)), Some(other)) => {
                let mut capable = capable(script, Some(peer.own), Some(other));
                let length = script.of(&[0u8, 0, 1, 100]);
                if length > 0 {
                    capable.data = Some((length.into(), peer.checksum.then_some(0)));
                    segment.payload = Bytes::from(vec![0; length.into()]).into();
                }
                segment.options.push_mptcp(MpOption::Capable(capable));
            }
            (Some((_, Some(nonce))), Some(other)) => {
                let hmac = join_hmac(peer.own, other, peer.nonce, nonce).first_20();
                segment.options.push_mptcp(MpOption::JoinAck(JoinAck { hmac }));
            }
            (_, Some(other)) => {
                let length = u16::from(script.of(&[0u8, 0, 1, 10, 250])) * u16::from(1 + script.below(4));
                let fin = script.one_in(8);
                let dsn = peer.own.idsn() + 1 + peer.data;
                let map = Map {
                    dsn: if script.one_in(4) { DataSeq::Short(dsn.low()) } else { DataSeq::Long(dsn) },
                    subflow_seq: if length == 0 { 0 } else { peer.sent },
                    length: length + u16::from(fin),
                    checksum: peer.checksum.then_some(0),
                };
                let ack = match seen.options.dss().and_then(|dss| dss.map) {
                    Some(map) => DataSeq::Long(map.dsn.near(other.idsn()) + u64::from(map.length)),
                    None => DataSeq::Long(other.idsn() + 1),
                };
                let map = (length > 0 || fin).then_some(map);
                segment.options.set_dss(Some(Dss { data_ack: Some(ack), map, data_fin: fin }));
                segment.payload = Bytes::from(vec![7; length.into()]).into();
                peer.sent += u32::from(length);
                peer.data += u64::from(length);
            }
            (_, None) => segment.payload = Bytes::copy_from_slice(script.bytes(40)).into(),
        }
        peer.seq = segment.seq + segment.payload.len() as u64;
        let idsn = peer.own.idsn();
        sign(&mut segment, idsn);
        for _ in 0..script.of(&[0, 0, 1, 3]) {
            lie(script, &mut segment);
        }
        segment.flow = flow;
        self.host.deliver(self.now, segment);
    }

    /// Checks that an honest client is still served.
    fn honest(&mut self) {
        let profile = Profile::tcp();
        let address = LocalAddress { ip: client(9), backup: false };
        let mut client = Endpoint::new(Config::new(profile, vec![address]), Seed(2)).expect("usual settings");
        let id = client.open(self.now, address.ip, SocketAddr::new(server(0), PORT)).expect("a first connection");
        assert_eq!(client.write(id, &Bytes::from_static(&[1; 3000])), Ok(3000), "a fresh connection has room");
        let read = |host: &Host| host.connections.values().map(|stream| stream.read).sum::<u64>();
        let before = (self.host.accepted, read(&self.host));
        let (mut to_host, mut to_client) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            self.now += Duration::from_millis(20);
            client.handle_timeout(self.now);
            to_client.drain(..).for_each(|mut segment| client.handle_segment(self.now, &mut segment));
            while client.poll_event().is_some() {}
            while let Some(transmit) = client.poll_transmit(self.now) {
                to_host.push(*transmit.segment);
            }
            self.host.pass(self.now, |_, segment| to_client.push(segment));
            to_host.drain(..).for_each(|segment| self.host.deliver(self.now, segment));
            self.host.settle(self.now, |segment| to_client.push(segment));
        }
        let after = (self.host.accepted, read(&self.host));
        assert_eq!(after, (before.0 + 1, before.1 + 3000), "an honest client is accepted, and its data arrives");
    }
}

/// Notes what the endpoint sent, and the key it told.
fn observe(segment: Segment, peers: &mut BTreeMap<FlowKey, Peer>, seen: &mut Vec<Segment>) {
    if let Some(peer) = peers.get_mut(&segment.flow.reversed()) {
        for option in segment.options.mptcp() {
            if let MpOption::Capable(capable) = option {
                peer.other = capable.sender_key.or(peer.other);
                peer.checksum |= capable.checksum_required;
            }
        }
    }
    if seen.len() == MOST_SEEN {
        seen.remove(0);
    }
    seen.push(segment);
}

/// A bare ACK of all that `seen` carries.
fn turned(seen: &Segment) -> Segment {
    let mut segment = Segment::new(seen.flow.reversed(), Flags::ACK, seen.ack, seen.seq + seen.sequence_length());
    let echo = |timestamps: Timestamps| Timestamps { value: timestamps.echo.wrapping_add(1), echo: timestamps.value };
    segment.options.set_timestamps(seen.options.timestamps().map(echo));
    segment
}

fn capable(script: &mut Script<'_>, sender_key: Option<Key>, receiver_key: Option<Key>) -> MpCapable {
    MpCapable {
        version: script.of(&[1, 1, 1, 1, 1, 1, 0, 2]),
        checksum_required: script.one_in(8),
        extensibility: script.one_in(16),
        no_join_to_source: script.one_in(8),
        other_flags: 0,
        hmac_sha256: !script.one_in(16),
        sender_key,
        receiver_key,
        data: None,
    }
}

fn server(number: u8) -> IpAddr {
    IpAddr::from([10, 1, number, 1])
}

fn client(number: u8) -> IpAddr {
    IpAddr::from([10, 0, number, 1])
}

const MOST_STEPS: usize = 200;
const MOST_PEERS: usize = 40;
const MOST_SEEN: usize = 16;
