//! A pen that writes captures of other stacks packet by packet, so that every expected value can be checked by hand.

use anabranch_units::{AddressId, Dsn, Key, Nonce, SubflowSeq, add_addr_hmac};
use anabranch_wire::{
    AddAddr, DataSeq, Dss, Flags, FlowKey, JoinSyn, Map, MpCapable, MpOption, ResetReason, Segment, Timestamps, emit,
};
use bytes::{Bytes, BytesMut};
use std::net::IpAddr;

/// Keys of the client and the server.
pub const KEYS: [Key; 2] = [Key::new(0x1111_2222_3333_4444), Key::new(0x5555_6666_7777_8888)];
/// Initial data sequence number of the server's key in version 0: the last 8 bytes of its SHA-1, from Python's hashlib.
pub const SERVER_IDSN_V0: Dsn = Dsn::new(0x3324_e82b_b44e_8cc9);
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// Writes packets between a client and a server.
pub struct Pen {
    pub records: Vec<(u64, Vec<u8>)>,
    hosts: [IpAddr; 2],
    version: Option<u8>,
    idsns: [Dsn; 2],
    /// Next subflow and data positions of both sides; 1 is the first byte.
    seq: [u64; 2],
    data: [u64; 2],
    /// Bytes that each side has acknowledged of the other, at both levels.
    acked: [[u64; 2]; 2],
    pub stamps: bool,
    /// Window that each side offers in its next packet \[B\].
    pub windows: [u16; 2],
    /// The sender has nothing more queued behind each segment.
    pub pushes: bool,
    id: u32,
}

impl Pen {
    /// Plain TCP.
    pub fn plain() -> Self {
        let hosts = [IpAddr::from([192, 0, 2, 10]), IpAddr::from([198, 51, 100, 20])];
        let (idsns, records) = (KEYS.map(Key::idsn), Vec::new());
        let (seq, data, acked) = ([1; 2], [1; 2], [[1; 2]; 2]);
        Pen {
            records,
            hosts,
            version: None,
            idsns,
            seq,
            data,
            acked,
            stamps: true,
            windows: [60_000; 2],
            pushes: true,
            id: 0,
        }
    }

    /// MPTCP of this version.
    pub fn mptcp(version: u8) -> Self {
        let mut pen = Pen { version: Some(version), ..Pen::plain() };
        if version == 0 {
            pen.idsns[SERVER] = SERVER_IDSN_V0;
        }
        pen
    }

    /// Both ends are this host.
    pub fn at_home(mut self) -> Self {
        self.hosts = [IpAddr::from([127, 0, 0, 1]); 2];
        self
    }

    fn segment(&self, from: usize, flags: Flags, seq: u64) -> Segment {
        let ends = [(self.hosts[0], 40_000).into(), (self.hosts[1], 443).into()];
        let flow = FlowKey::new(ends[from], ends[1 - from]);
        let [own, peer] = [from, 1 - from].map(|side| SubflowSeq::new(0x4000_0000 * (side as u32 + 1)));
        let mut segment = Segment::new(flow, flags, own + seq, peer + self.acked[from][0]);
        segment.window = self.windows[from];
        segment
    }

    fn write(&mut self, us: u64, mut segment: Segment) {
        self.id += 1;
        segment.ip.id = self.id;
        if self.stamps {
            segment.options.set_timestamps(Some(Timestamps { value: (us / 1000) as u32 + 7, echo: 0 }));
        }
        let mut bytes = BytesMut::new();
        emit(&segment, &mut bytes).unwrap();
        self.records.push((1_700_000_000_000_000_000 + us * 1000, bytes.to_vec()));
    }

    /// SYN, SYN/ACK and third ACK at these microseconds.
    pub fn open(&mut self, at: [u64; 3]) {
        let syn_ack = Flags::SYN.with(Flags::ACK);
        let steps = [(CLIENT, Flags::SYN, 0), (SERVER, syn_ack, 0), (CLIENT, Flags::ACK, 1)];
        for (step, (us, (from, flags, seq))) in at.into_iter().zip(steps).enumerate() {
            let mut segment = self.segment(from, flags, seq);
            if step < 2 {
                segment.options.handshake_mut().mss = Some(1460);
            }
            if step == 0 {
                segment.ack = SubflowSeq::new(0);
            }
            if let Some(version) = self.version {
                let keys = match (version, step) {
                    (_, 2) => [Some(KEYS[0]), Some(KEYS[1])],
                    (0, 0) => [Some(KEYS[0]), None],
                    (_, 0) => [None, None],
                    _ => [Some(KEYS[1]), None],
                };
                let offer = MpCapable { version, sender_key: keys[0], receiver_key: keys[1], ..MpCapable::OFFER };
                segment.options.push_mptcp(MpOption::Capable(offer));
            }
            self.write(us, segment);
        }
    }

    fn dss(&self, from: usize, map: Option<Map>) -> Dss {
        let acked = self.idsns[1 - from] + self.acked[from][1];
        Dss { data_ack: Some(DataSeq::Short(acked.low())), map, data_fin: false }
    }

    /// New data of a side.
    pub fn data(&mut self, us: u64, from: usize, length: u16) {
        let dsn = self.data[from];
        self.data[from] += u64::from(length);
        self.again(us, from, dsn, length);
    }

    /// Data from this position on, with new numbers of the subflow.
    pub fn again(&mut self, us: u64, from: usize, dsn: u64, length: u16) {
        let seq = self.seq[from];
        self.seq[from] += u64::from(length);
        self.repeat(us, from, [seq, dsn], length);
    }

    /// Data with these numbers of the subflow and of the connection.
    pub fn repeat(&mut self, us: u64, from: usize, [seq, dsn]: [u64; 2], length: u16) {
        let flags = if self.pushes { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
        let mut segment = self.segment(from, flags, seq);
        if self.version.is_some() {
            let whole = self.idsns[from] + dsn;
            let map = Map { dsn: DataSeq::Long(whole), subflow_seq: seq as u32, length, checksum: None };
            segment.options.set_dss(Some(self.dss(from, Some(map))));
        }
        segment.payload = Bytes::from(vec![b'x'; usize::from(length)]).into();
        self.write(us, segment);
    }

    /// A side acknowledges all that the other has sent, on the subflow alone or at the data level as well.
    pub fn ack(&mut self, us: u64, from: usize, data: bool) {
        self.acked[from][0] = self.seq[1 - from];
        if data {
            self.acked[from][1] = self.data[1 - from];
        }
        let mut segment = self.segment(from, Flags::ACK, self.seq[from]);
        if self.version.is_some() {
            segment.options.set_dss(Some(self.dss(from, None)));
        }
        self.write(us, segment);
    }

    /// A packet of a side with this option and no data.
    pub fn option(&mut self, us: u64, from: usize, flags: Flags, option: MpOption) {
        let mut segment = self.segment(from, flags, self.seq[from]);
        segment.options.push_mptcp(option);
        self.write(us, segment);
    }

    pub fn reset(&mut self, us: u64, from: usize, reason: ResetReason, transient: bool) {
        self.option(us, from, Flags::RST.with(Flags::ACK), MpOption::TcpReset { transient, reason });
    }

    /// A SYN with MP_JOIN from another address of the client, and a RST with this reason right after it has arrived.
    pub fn refused_join(&mut self, at: [u64; 2], reason: ResetReason) {
        let ends = [(IpAddr::from([192, 0, 2, 11]), 40_001).into(), (self.hosts[1], 443).into()];
        let [there, back] = [FlowKey::new(ends[0], ends[1]), FlowKey::new(ends[1], ends[0])];
        let [none, isn] = [SubflowSeq::new(0), SubflowSeq::new(0x7000_0000)];
        let mut syn = Segment::new(there, Flags::SYN, isn, none);
        syn.options.handshake_mut().mss = Some(1460);
        let join = JoinSyn { backup: false, address: AddressId(2), token: KEYS[SERVER].token(), nonce: Nonce(7) };
        syn.options.push_mptcp(MpOption::JoinSyn(join));
        self.write(at[0], syn);
        let mut reset = Segment::new(back, Flags::RST.with(Flags::ACK), none, isn + 1);
        reset.options.push_mptcp(MpOption::TcpReset { transient: false, reason });
        self.write(at[1], reset);
    }

    /// ADD_ADDR of the server; its authenticator has the leftmost bits of the hash where kernels of 5.6 to 5.9 sent
    /// these, and otherwise the rightmost. `None` is an echo.
    pub fn add_addr(&mut self, us: u64, from: usize, leftmost: Option<bool>) {
        let (id, address) = (AddressId(3), IpAddr::from([198, 51, 100, 21]));
        let mac = add_addr_hmac(KEYS[1], KEYS[0], id, address, None);
        let hmac = leftmost.map(|leftmost| match leftmost {
            true => *mac.first_8().first_chunk().unwrap(),
            false => mac.last_8(),
        });
        self.option(us, from, Flags::ACK, MpOption::AddAddr(AddAddr { id, address, port: None, hmac }));
    }

    /// Takes away the packets of one side.
    pub fn without(mut self, side: usize) -> Self {
        let source = match self.hosts[side] {
            IpAddr::V4(ip) => ip.octets(),
            IpAddr::V6(_) => unreachable!("all are IPv4"),
        };
        self.records.retain(|(_, bytes)| bytes[12..16] != source);
        self
    }
}
