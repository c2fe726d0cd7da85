//! Every segment that has bytes: strategies that draw any combination of fields and options that fits.

use anabranch_units::{AddressId, Dsn, Ecn, Key, Nonce, SubflowSeq, Token};
use anabranch_wire::{
    AddAddr, DataSeq, Dss, Flags, FlowKey, IpHeader, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption, Options,
    RemoveAddr, ResetReason, SackBlock, SackBlocks, Segment, Timestamps, UnknownOption,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::net::{IpAddr, SocketAddr};

/// Any segment that can be written, with up to `most` bytes of payload.
pub fn segment(most: usize) -> impl Strategy<Value = Segment> {
    let numbers = (any::<u8>(), 0u8..16, any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>());
    (flow(), ip(), numbers, options(), vec(any::<u8>(), 0..=most)).prop_map(|(flow, ip, numbers, options, payload)| {
        let (flags, reserved, window, urgent, seq, ack) = numbers;
        let ip = if flow.src.is_ipv4() {
            IpHeader { id: ip.id & 0xffff, ..ip }
        } else {
            IpHeader { dont_fragment: true, ..ip }
        };
        Segment {
            flow,
            ip,
            flags: Flags(flags),
            reserved,
            window,
            urgent,
            seq: SubflowSeq::new(seq),
            ack: SubflowSeq::new(ack),
            options,
            payload: payload.into(),
        }
    })
}

fn flow() -> impl Strategy<Value = FlowKey> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    (prop_oneof![v4, v6], any::<(u16, u16)>())
        .prop_map(|((src, dst), ports)| FlowKey::new(SocketAddr::new(src, ports.0), SocketAddr::new(dst, ports.1)))
}

fn ip() -> impl Strategy<Value = IpHeader> {
    let ecn = select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    (0u32..1 << 20, any::<u8>(), 0u8..64, ecn, any::<bool>()).prop_map(|(id, ttl, dscp, ecn, dont_fragment)| IpHeader {
        id,
        ttl,
        dscp,
        ecn,
        dont_fragment,
    })
}

/// One wish among the options.
#[derive(Clone, Debug)]
enum Wish {
    Timestamps(Timestamps),
    Sack(SackBlocks),
    Dss(Dss),
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Mptcp(MpOption),
    Unknown(UnknownOption),
    Repeated(UnknownOption),
    Broken(Vec<u8>),
}

/// Wishes in any order, each granted if it still fits.
pub fn options() -> impl Strategy<Value = Options> {
    vec(wish(), 0..12).prop_map(|wishes| {
        let mut options = Options::default();
        for wish in wishes {
            let mut with = options.clone();
            grant(wish, &mut with);
            if with.wire_length() <= 40 {
                options = with;
            }
        }
        options
    })
}

/// Wishes that need not fit.
pub fn wishes() -> impl Strategy<Value = Options> {
    vec(wish(), 0..12).prop_map(|wishes| {
        let mut options = Options::default();
        wishes.into_iter().for_each(|wish| grant(wish, &mut options));
        options
    })
}

fn grant(wish: Wish, options: &mut Options) {
    match wish {
        Wish::Timestamps(timestamps) => options.set_timestamps(Some(timestamps)),
        Wish::Sack(sack) => options.set_sack(sack),
        Wish::Dss(dss) => options.set_dss(Some(dss)),
        Wish::Mss(mss) => options.handshake_mut().mss = Some(mss),
        Wish::WindowScale(shift) => options.handshake_mut().window_scale = Some(shift),
        Wish::SackPermitted => options.handshake_mut().sack_permitted = true,
        Wish::Mptcp(option) => options.push_mptcp(option),
        Wish::Unknown(option) => options.foreign_mut().unknown.push(option),
        // Only what is there already can be there once more.
        Wish::Repeated(option) => {
            let there = match option.kind {
                2 => options.handshake().mss.is_some(),
                5 => options.has_sack(),
                8 => options.timestamps().is_some(),
                _ => options.has_dss(),
            };
            if there {
                options.foreign_mut().unknown.push(option);
            }
        }
        Wish::Broken(rest) => options.foreign_mut().broken = rest,
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    let timestamps = any::<(u32, u32)>().prop_map(|(value, echo)| Wish::Timestamps(Timestamps { value, echo }));
    let sack = vec(any::<(u32, u32)>(), 1..5).prop_map(|edges| {
        let mut blocks = SackBlocks::default();
        for (start, end) in edges {
            assert!(blocks.push(SackBlock { start: SubflowSeq::new(start), end: SubflowSeq::new(end) }));
        }
        Wish::Sack(blocks)
    });
    prop_oneof![
        2 => timestamps,
        2 => sack,
        3 => dss().prop_map(Wish::Dss),
        1 => any::<u16>().prop_map(Wish::Mss),
        1 => any::<u8>().prop_map(Wish::WindowScale),
        1 => Just(Wish::SackPermitted),
        4 => mptcp().prop_map(Wish::Mptcp),
        1 => unknown().prop_map(Wish::Unknown),
        1 => repeated().prop_map(Wish::Repeated),
        1 => broken().prop_map(Wish::Broken),
    ]
}

fn data_seq() -> impl Strategy<Value = DataSeq> {
    prop_oneof![any::<u32>().prop_map(DataSeq::Short), any::<u64>().prop_map(|dsn| DataSeq::Long(Dsn::new(dsn)))]
}

fn dss() -> impl Strategy<Value = Dss> {
    let map = (data_seq(), any::<u32>(), any::<u16>(), option::of(any::<u16>()))
        .prop_map(|(dsn, subflow_seq, length, checksum)| Map { dsn, subflow_seq, length, checksum });
    (option::of(data_seq()), option::of(map), any::<bool>()).prop_map(|(data_ack, map, data_fin)| Dss {
        data_ack,
        map,
        data_fin,
    })
}

/// Every MPTCP option but DSS, in every form.
pub fn mptcp() -> impl Strategy<Value = MpOption> {
    let key = || any::<u64>().prop_map(Key::new);
    let keys = prop_oneof![
        Just((None, None, None)),
        key().prop_map(|own| (Some(own), None, None)),
        (key(), key()).prop_map(|(own, peer)| (Some(own), Some(peer), None)),
        (key(), key(), any::<u16>(), option::of(any::<u16>())).prop_map(|(own, peer, length, checksum)| (
            Some(own),
            Some(peer),
            Some((length, checksum))
        )),
    ];
    let capable = (0u8..16, any::<[bool; 4]>(), 0u8..16, keys).prop_map(|(version, flags, other_flags, keys)| {
        MpOption::Capable(MpCapable {
            version,
            checksum_required: flags[0],
            extensibility: flags[1],
            no_join_to_source: flags[2],
            other_flags,
            hmac_sha256: flags[3],
            sender_key: keys.0,
            receiver_key: keys.1,
            data: keys.2,
        })
    });
    let join_syn = any::<(bool, u8, u32, u32)>().prop_map(|(backup, address, token, nonce)| {
        MpOption::JoinSyn(JoinSyn { backup, address: AddressId(address), token: Token(token), nonce: Nonce(nonce) })
    });
    let join_syn_ack = any::<(bool, u8, [u8; 8], u32)>().prop_map(|(backup, address, hmac, nonce)| {
        MpOption::JoinSynAck(JoinSynAck { backup, address: AddressId(address), hmac, nonce: Nonce(nonce) })
    });
    let address = prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)];
    let add_addr = (any::<u8>(), address, option::of(any::<u16>()), option::of(any::<[u8; 8]>()))
        .prop_map(|(id, address, port, hmac)| MpOption::AddAddr(AddAddr { id: AddressId(id), address, port, hmac }));
    let remove_addr =
        vec(any::<u8>().prop_map(AddressId), 1..37).prop_map(|ids| MpOption::RemoveAddr(RemoveAddr { ids }));
    let reset = any::<(bool, u8)>()
        .prop_map(|(transient, code)| MpOption::TcpReset { transient, reason: ResetReason::from_code(code) });
    prop_oneof![
        4 => capable,
        1 => join_syn,
        1 => join_syn_ack,
        1 => any::<[u8; 20]>().prop_map(|hmac| MpOption::JoinAck(JoinAck { hmac })),
        3 => add_addr,
        2 => remove_addr,
        2 => any::<bool>().prop_map(|backup| MpOption::Prio { backup }),
        1 => any::<u64>().prop_map(|dsn| MpOption::Fail { dsn: Dsn::new(dsn) }),
        1 => key().prop_map(|receiver_key| MpOption::FastClose { receiver_key }),
        1 => reset,
    ]
}

/// Unknown kinds, known kinds of a wrong length, MPTCP subtypes unknown or of a wrong length.
fn unknown() -> impl Strategy<Value = UnknownOption> {
    let data = |length: std::ops::Range<usize>| vec(any::<u8>(), length);
    let kind = select([6u8, 7].into_iter().chain(9..30).chain(31..=255).collect::<Vec<_>>());
    let headed = |head: Vec<u8>, more: std::ops::Range<usize>| {
        data(more).prop_map(move |more| UnknownOption { kind: 30, data: [&head[..], &more].concat() })
    };
    prop_oneof![
        (kind, data(0..20)).prop_map(|(kind, data)| UnknownOption { kind, data }),
        (select(vec![2u8, 3, 5, 8]), data(3..8)).prop_map(|(kind, data)| UnknownOption { kind, data }),
        Just(UnknownOption { kind: 30, data: vec![] }),
        headed(vec![0x90], 0..20),
        headed(vec![0x01, 0x01], 1..8),  // MP_CAPABLE
        headed(vec![0x10, 0x01], 9..12), // MP_JOIN
        headed(vec![0x20, 0x01], 5..20), // DSS with a short DATA_ACK and more
        headed(vec![0x20, 0x05], 0..10), // DSS with too short a map
        headed(vec![0x30, 0x01], 0..12), // ADD_ADDR with nothing of the right length
        headed(vec![0x31, 0x01], 7..12), // and its echo
        headed(vec![0x40], 0..1),        // REMOVE_ADDR of nothing
        headed(vec![0x51], 1..3),        // MP_PRIO of version 0, with an address
        headed(vec![0x60], 0..5),        // MP_FAIL
    ]
}

/// Well-formed options that count only once.
fn repeated() -> impl Strategy<Value = UnknownOption> {
    let of = |kind: u8, data: &[u8]| UnknownOption { kind, data: data.to_vec() };
    select(vec![of(2, &[5, 180]), of(8, &[1; 8]), of(5, &[7; 8]), of(30, &[0x20, 1, 0, 0, 0, 9])])
}

/// An option whose length is below two, missing or beyond the header's end.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (2u8..=255).prop_map(|kind| vec![kind]),
        (2u8..=255, 0u8..2, vec(any::<u8>(), 0..20))
            .prop_map(|(kind, length, rest)| [&[kind, length][..], &rest].concat()),
        (2u8..=255, 1u8..=200, vec(any::<u8>(), 0..20)).prop_map(|(kind, beyond, rest)| {
            let length = 2 + rest.len() as u8 + beyond;
            [&[kind, length][..], &rest].concat()
        }),
    ]
}
