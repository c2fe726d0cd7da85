//! One endpoint and a peer whose every segment the test writes by hand. The peer uses neither timestamps nor SACK, and
//! all its numbers are known: offset 1 is its first byte on a subflow, data offset 0 its first byte of the stream.
#![allow(dead_code, clippy::unwrap_used)]

use super::{PATTERN, PORT, client_ip, server_ip};
use anabranch_engine::{Config, ConnectionId, Endpoint, Event, Read};
use anabranch_units::{AddressId, Dsn, Duration, Instant, Key, Nonce, Seed, SubflowSeq, join_hmac};
use anabranch_wire::{
    DataSeq, Dss, Flags, FlowKey, Handshake, JoinAck, JoinSyn, Map, MpCapable, MpOption, ResetReason, Segment,
};
use bytes::Bytes as Payload;
use std::net::SocketAddr;

pub const KEY: Key = Key::new(0x1122_3344_5566_7788);
const ISS: u32 = 1000;
pub const WINDOW: u16 = 60_000;

pub struct Puppet {
    pub host: Endpoint,
    pub now: Instant,
    pub id: Option<ConnectionId>,
    pub events: Vec<Event>,
    pub read: Vec<u8>,
    /// Does its application read?
    pub deaf: bool,
    /// Segments that the endpoint has sent and the test has not looked at.
    pub out: Vec<Segment>,
    pub theirs: Option<Key>,
    /// Flag A in what the peer sends.
    pub checksum: bool,
}

/// One subflow of the peer.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Flow, as the peer sends.
    pub flow: FlowKey,
    pub irs: SubflowSeq,
    /// The endpoint's offset that the peer acknowledges.
    pub ack: u64,
}

pub fn handshake() -> Handshake {
    Handshake { mss: Some(1460), window_scale: None, sack_permitted: false }
}

impl Puppet {
    pub fn new(config: Config) -> Self {
        Puppet::with(Endpoint::new(config, Seed(7)).unwrap())
    }

    /// Around an endpoint that the test has made.
    pub fn with(mut host: Endpoint) -> Self {
        host.listen(PORT);
        Puppet {
            host,
            now: Instant::ZERO,
            id: None,
            events: Vec::new(),
            read: Vec::new(),
            deaf: false,
            out: Vec::new(),
            theirs: None,
            checksum: false,
        }
    }

    /// The endpoint is the server and the three-way handshake is done.
    pub fn accepted(config: Config) -> (Self, Line) {
        let mut puppet = Puppet::new(config);
        let line = puppet.open();
        (puppet, line)
    }

    /// The same, and the endpoint has been sent ten bytes, so that it knows that options get through.
    pub fn confirmed(config: Config) -> (Self, Line) {
        let (mut puppet, line) = Puppet::accepted(config);
        let map = puppet.map(1, 0, 10);
        puppet.data(line, 1, &PATTERN[..10], Some(map));
        puppet.take();
        (puppet, line.acking(1))
    }

    /// Opens a connection to the endpoint.
    pub fn open(&mut self) -> Line {
        let mut line =
            self.syn(MpOption::Capable(MpCapable { checksum_required: self.checksum, ..MpCapable::OFFER }), 0);
        line = self.answered(line);
        let keys = self.keys(None);
        self.send(line.ack(1), |s| s.options.push_mptcp(MpOption::Capable(keys)));
        line
    }

    /// MP_CAPABLE with both keys.
    pub fn keys(&self, data: Option<(u16, Option<u16>)>) -> MpCapable {
        MpCapable {
            checksum_required: self.checksum,
            sender_key: Some(KEY),
            receiver_key: self.theirs,
            data,
            ..MpCapable::OFFER
        }
    }

    /// Sends a SYN from the client's address number `path`.
    pub fn syn(&mut self, option: MpOption, path: u8) -> Line {
        let port = 40_000 + u16::from(path);
        let flow = FlowKey::new(SocketAddr::new(client_ip(path), port), SocketAddr::new(server_ip(0), PORT));
        let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(ISS), SubflowSeq::new(0));
        syn.window = WINDOW;
        *syn.options.handshake_mut() = handshake();
        syn.options.push_mptcp(option);
        self.deliver(syn);
        Line { flow, irs: SubflowSeq::new(0), ack: 1 }
    }

    /// Takes the SYN/ACK in.
    pub fn answered(&mut self, mut line: Line) -> Line {
        let at = self.out.iter().position(|s| s.flags == Flags::SYN.with(Flags::ACK)).expect("a SYN/ACK");
        let answer = self.out.remove(at);
        line.irs = answer.seq;
        for option in answer.options.mptcp() {
            if let MpOption::Capable(theirs) = option {
                self.theirs = theirs.sender_key;
            }
        }
        line
    }

    /// Joins from the client's address number `path`, up to and including the third ACK.
    pub fn join(&mut self, path: u8) -> Line {
        let (line, third) = self.begin_join(path);
        self.send(line.ack(1), |s| s.options.push_mptcp(MpOption::JoinAck(third)));
        line
    }

    /// The same up to and including the SYN/ACK; what the third ACK is to say.
    pub fn begin_join(&mut self, path: u8) -> (Line, JoinAck) {
        let nonce = Nonce(99);
        let join = JoinSyn { backup: false, address: AddressId(path), token: self.theirs.unwrap().token(), nonce };
        let line = self.syn(MpOption::JoinSyn(join), path);
        let peer = self.out.iter().find_map(|s| {
            s.options.mptcp().iter().find_map(|option| match option {
                MpOption::JoinSynAck(answer) => Some(answer.nonce),
                _ => None,
            })
        });
        let line = self.answered(line);
        let hmac = join_hmac(KEY, self.theirs.unwrap(), nonce, peer.expect("a nonce")).first_20();
        (line, JoinAck { hmac })
    }

    /// The endpoint is the client: it opens, and the peer answers. The third ACK is in `out`.
    pub fn connected(config: Config, answer: MpCapable) -> (Self, Line) {
        let mut puppet = Puppet::new(config);
        let id = puppet.host.open(puppet.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
        puppet.id = Some(id);
        puppet.pump();
        let line = puppet.answer(MpOption::Capable(MpCapable { sender_key: Some(KEY), ..answer }));
        let token = |s: &Segment| {
            s.options.mptcp().iter().find_map(|option| match option {
                MpOption::Capable(theirs) => theirs.sender_key,
                _ => None,
            })
        };
        puppet.theirs = puppet.out.iter().find_map(token);
        (puppet, line)
    }

    /// Answers the SYN in `out`.
    pub fn answer(&mut self, option: MpOption) -> Line {
        let at = self.out.iter().position(|s| s.flags == Flags::SYN).expect("a SYN");
        let syn = self.out.remove(at);
        let line = Line { flow: syn.flow.reversed(), irs: syn.seq, ack: 1 };
        let mut answer = Segment::new(line.flow, Flags::SYN.with(Flags::ACK), SubflowSeq::new(ISS), line.irs + 1);
        answer.window = WINDOW;
        *answer.options.handshake_mut() = handshake();
        answer.options.push_mptcp(option);
        self.deliver(answer);
        line
    }

    /// A segment whose first byte is at subflow offset `at`, changed by `fill`, arrives at the endpoint.
    pub fn send(&mut self, place: (Line, u64), fill: impl FnOnce(&mut Segment)) {
        let mut segment = Line::segment(place);
        fill(&mut segment);
        self.deliver(segment);
    }

    /// Bytes at subflow offset `at` with this DSS.
    pub fn data(&mut self, line: Line, at: u64, bytes: &'static [u8], dss: Option<Dss>) {
        self.send(line.ack(at), |s| {
            s.payload = Payload::from_static(bytes).into();
            s.options.set_dss(dss);
        });
    }

    /// An ACK with DATA_ACK for what `line` acknowledges, so that the endpoint knows that options get through.
    pub fn confirm(&mut self, line: Line, at: u64, data: u64) {
        let dss = self.data_ack(data);
        self.send(line.ack(at), |s| s.options.set_dss(Some(dss)));
    }

    /// A DSS that maps `length` bytes at subflow offset `subflow` to data offset `data`.
    pub fn map(&self, subflow: u64, data: u64, length: u16) -> Dss {
        let dsn = DataSeq::Long(KEY.idsn() + 1 + data);
        Dss { map: Some(Map { dsn, subflow_seq: subflow as u32, length, checksum: None }), ..Dss::default() }
    }

    /// A lone DATA_FIN at data offset `data`.
    pub fn data_fin(&self, data: u64) -> Dss {
        Dss { data_fin: true, ..self.map(0, data, 1) }
    }

    /// A DATA_ACK for the endpoint's bytes before data offset `data`.
    pub fn data_ack(&self, data: u64) -> Dss {
        Dss { data_ack: Some(DataSeq::Long(self.theirs.unwrap().idsn() + 1 + data)), ..Dss::default() }
    }

    /// Returns the data offset of the peer's stream that a segment DATA_ACKs.
    pub fn acked(segment: &Segment) -> Option<i64> {
        let near = KEY.idsn() + 1;
        segment.options.dss().and_then(|dss| dss.data_ack).map(|ack| ack.near(near).distance(near))
    }

    pub fn dsn(data: u64) -> Dsn {
        KEY.idsn() + 1 + data
    }

    pub fn write(&mut self, data: &'static [u8]) -> usize {
        let taken = self.host.write(self.id.unwrap(), &Payload::from_static(data)).unwrap_or(0);
        self.pump();
        taken
    }

    pub fn shutdown(&mut self) {
        self.host.shutdown(self.id.unwrap());
        self.pump();
    }

    pub fn deliver(&mut self, mut segment: Segment) {
        self.host.handle_segment(self.now, &mut segment);
        self.pump();
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.host.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.host.handle_timeout(self.now);
            self.pump();
        }
        self.now = end;
    }

    pub fn pump(&mut self) {
        // Sending may end something and so make an event: both must have nothing, one after the other.
        let mut quiet = 0;
        while quiet < 2 {
            let mut busy = false;
            while let Some((id, event)) = self.host.poll_event() {
                busy = true;
                self.id.get_or_insert(id);
                self.events.push(event);
            }
            if let Some(id) = self.id.filter(|_| !self.deaf) {
                while let Ok(Read::Data(chunk)) = self.host.read(id) {
                    busy = true;
                    self.read.extend_from_slice(&chunk);
                }
            }
            while let Some(transmit) = self.host.poll_transmit(self.now) {
                busy = true;
                assert!(transmit.segment.options.wire_length() <= 40, "options fit: {:?}", transmit.segment);
                self.out.push(*transmit.segment);
            }
            self.host.check(self.now).unwrap();
            quiet = if busy { 0 } else { quiet + 1 };
        }
    }

    /// Everything sent since the last look.
    pub fn take(&mut self) -> Vec<Segment> {
        std::mem::take(&mut self.out)
    }

    pub fn has(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(wanted)
    }
}

impl Line {
    /// The place of a segment on this subflow.
    pub fn ack(self, at: u64) -> (Line, u64) {
        (self, at)
    }

    /// An ACK of the peer whose first byte is at subflow offset `at`.
    pub fn segment((line, at): (Line, u64)) -> Segment {
        let mut segment = Segment::new(line.flow, Flags::ACK, SubflowSeq::new(ISS) + at, line.irs + line.ack);
        segment.window = WINDOW;
        segment
    }

    /// The same subflow, acknowledging up to `offset`.
    pub fn acking(self, offset: u64) -> Line {
        Line { ack: offset, ..self }
    }

    /// Returns true if the endpoint sent `segment` on this flow.
    pub fn carries(self, segment: &Segment) -> bool {
        segment.flow == self.flow.reversed()
    }
}

/// The reason in the MP_TCPRST of a reset.
pub fn reason(segment: &Segment) -> Option<ResetReason> {
    segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::TcpReset { reason, .. } if segment.flags.has(Flags::RST) => Some(*reason),
        _ => None,
    })
}
