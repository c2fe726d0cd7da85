//! Segments made up from a script: any field, any option, whether it fits or not.

use crate::script::Script;
use anabranch_units::{AddressId, Dsn, Ecn, Key, Nonce, SubflowSeq, Token};
use anabranch_wire::{
    AddAddr, DataSeq, Dss, Flags, FlowKey, Handshake, IpHeader, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption,
    Options, RemoveAddr, ResetReason, SackBlock, Segment, Timestamps, UnknownOption,
};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

/// Any segment at all; perhaps one that has no bytes.
pub(crate) fn segment(script: &mut Script<'_>) -> Segment {
    let (src, dst) = (address(script), address(script));
    let flow = FlowKey::new(SocketAddr::new(src, script.any()), SocketAddr::new(dst, script.any()));
    let mut segment =
        Segment::new(flow, Flags(script.any()), SubflowSeq::new(script.any()), SubflowSeq::new(script.any()));
    segment.ip = IpHeader {
        ttl: script.any(),
        dscp: script.any(),
        ecn: script.of(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]),
        id: script.number() as u32,
        dont_fragment: src.is_ipv6() || script.any(),
    };
    segment.reserved = script.below(20);
    segment.window = script.any();
    segment.urgent = script.any();
    for _ in 0..script.below(6) {
        wish(script, &mut segment.options);
    }
    segment.payload = Bytes::copy_from_slice(script.bytes(64)).into();
    segment
}

fn address(script: &mut Script<'_>) -> IpAddr {
    if script.any() { script.any::<[u8; 4]>().into() } else { script.any::<[u8; 16]>().into() }
}

/// Adds or replaces one option.
pub(crate) fn wish(script: &mut Script<'_>, options: &mut Options) {
    match script.below(8) {
        0 => options.set_timestamps(Some(Timestamps { value: script.any(), echo: script.any() })),
        1 => {
            let (start, end) = (SubflowSeq::new(script.any()), SubflowSeq::new(script.any()));
            options.push_sack(SackBlock { start, end });
        }
        2 | 3 => options.set_dss(Some(dss(script))),
        4 => {
            *options.handshake_mut() = Handshake {
                mss: script.any::<bool>().then(|| script.any()),
                window_scale: script.any::<bool>().then(|| script.any()),
                sack_permitted: script.any(),
            };
        }
        5 | 6 => options.push_mptcp(mptcp(script)),
        _ => {
            let unknown = UnknownOption { kind: script.any(), data: script.bytes(40).to_vec() };
            options.foreign_mut().unknown.push(unknown);
        }
    }
}

pub(crate) fn dss(script: &mut Script<'_>) -> Dss {
    Dss {
        data_ack: script.any::<bool>().then(|| data_seq(script)),
        map: script.any::<bool>().then(|| Map {
            dsn: data_seq(script),
            subflow_seq: script.number() as u32,
            length: script.number() as u16,
            checksum: script.any::<bool>().then(|| script.any()),
        }),
        data_fin: script.any(),
    }
}

fn data_seq(script: &mut Script<'_>) -> DataSeq {
    if script.any() { DataSeq::Short(script.any()) } else { DataSeq::Long(Dsn::new(script.number())) }
}

/// Any MPTCP option but DSS, with made-up numbers.
pub(crate) fn mptcp(script: &mut Script<'_>) -> MpOption {
    let id = AddressId(script.below(6));
    match script.below(10) {
        0 => MpOption::Capable(MpCapable {
            version: script.of(&[1, 1, 1, 0, 2, 15]),
            checksum_required: script.one_in(4),
            extensibility: script.one_in(8),
            no_join_to_source: script.one_in(4),
            other_flags: script.of(&[0, 0, 0, 15]),
            hmac_sha256: !script.one_in(8),
            sender_key: script.any::<bool>().then(|| Key::new(script.any())),
            receiver_key: script.any::<bool>().then(|| Key::new(script.any())),
            data: script.any::<bool>().then(|| (script.number() as u16, script.any::<bool>().then(|| script.any()))),
        }),
        1 => MpOption::JoinSyn(JoinSyn {
            backup: script.any(),
            address: id,
            token: Token(script.any()),
            nonce: Nonce(script.any()),
        }),
        2 => MpOption::JoinSynAck(JoinSynAck {
            backup: script.any(),
            address: id,
            hmac: script.any(),
            nonce: Nonce(script.any()),
        }),
        3 => MpOption::JoinAck(JoinAck { hmac: [script.any(); 20] }),
        4 => MpOption::AddAddr(AddAddr {
            id,
            address: address(script),
            port: script.any::<bool>().then(|| script.any()),
            hmac: script.any::<bool>().then(|| script.any()),
        }),
        5 => MpOption::RemoveAddr(RemoveAddr { ids: script.bytes(10).iter().map(|&id| AddressId(id % 6)).collect() }),
        6 => MpOption::Prio { backup: script.any() },
        7 => MpOption::Fail { dsn: Dsn::new(script.number()) },
        8 => MpOption::FastClose { receiver_key: Key::new(script.any()) },
        _ => MpOption::TcpReset { transient: script.any(), reason: ResetReason::from_code(script.below(9)) },
    }
}
