//! Rules of RFC 8684 for every segment, checked on every segment of transfers over two lossy paths. Each names its id
//! in docs/conformance.md.

use crate::common::{CLIENT, PATTERN, Pair, SERVER, buffer, client_ip, config, server_ip};
use anabranch_units::{Dsn, Duration, Key, Seed, SubflowSeq};
use anabranch_wire::{DataSeq, Flags, FlowKey, MpOption, Segment};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// State that one host has announced so far.
#[derive(Default)]
struct Speaker {
    key: Option<Key>,
    /// Right edge of the window, as the highest data sequence number that it admitted.
    edge: Option<Dsn>,
    subflows: BTreeMap<FlowKey, Spoken>,
}

#[derive(Default)]
struct Spoken {
    iss: Option<SubflowSeq>,
    scale: u8,
    /// Data sequence number of each subflow byte that was mapped.
    mapped: BTreeMap<u64, u64>,
    fins: u32,
    resets: u32,
}

#[derive(Default)]
struct Watch {
    hosts: [Speaker; 2],
    data_segments: u64,
}

impl Watch {
    fn see(&mut self, host: usize, segment: &Segment) {
        let peer = self.hosts[1 - host].key;
        let speaker = &mut self.hosts[host];
        for option in segment.options.mptcp() {
            if let MpOption::Capable(capable) = option {
                speaker.key = speaker.key.or(capable.sender_key);
            }
        }
        let spoken = speaker.subflows.entry(segment.flow).or_default();
        if segment.flags.has(Flags::SYN) {
            spoken.iss = Some(segment.seq);
            spoken.scale = segment.options.handshake().window_scale.unwrap_or(0);
            return;
        }
        spoken.fins += u32::from(segment.flags.has(Flags::FIN));
        spoken.resets += u32::from(segment.flags.has(Flags::RST));
        assert!(!segment.flags.has(Flags::URG) && segment.urgent == 0, "3.3.1-2: no urgent data: {segment:?}");
        let dss = segment.options.dss();
        if let Some(ack) = dss.and_then(|dss| dss.data_ack) {
            let is_short = matches!(ack, DataSeq::Short(_));
            let ack = ack.near(speaker.edge.unwrap_or_else(|| peer.unwrap().idsn()));
            // The first data may have been MP_CAPABLE's, which has no number; all that follows has one of 64 bits.
            let numbered = ack.distance(peer.unwrap().idsn()) > 1500;
            assert!(!(numbered && is_short), "3.3.2-1: 64-bit numbers, 32-bit DATA_ACK: {segment:?}");
            let edge = ack + (u64::from(segment.window) << spoken.scale);
            let back = speaker.edge.map_or(0, |before| before.distance(edge));
            // The field counts in units of the scale and is rounded down, so less than one unit is lost (RFC 7323
            // §2.4).
            assert!(back < 1 << spoken.scale, "3.3.4-1: the right edge moves back by {back}: {segment:?}");
            if back <= 0 {
                speaker.edge = Some(edge);
            }
        }
        if segment.payload.is_empty() {
            return;
        }
        self.data_segments += 1;
        let first = segment.seq.offset_near(spoken.iss.unwrap(), 0).unwrap();
        let bytes = first..first + segment.payload.len() as u64;
        let (start, length, dsn) = mapping(segment, speaker.key);
        let range = start..start + length;
        assert!(range.start < bytes.end && bytes.start < range.end, "3.3.1-8: {range:?} maps nothing of {bytes:?}");
        for byte in range {
            let dsn = (dsn + (byte - start)).get();
            let before = *spoken.mapped.entry(byte).or_insert(dsn);
            assert_eq!(before, dsn, "3.3.1-1: byte {byte} was mapped elsewhere");
        }
    }
}

/// The mapping of data: first subflow offset, length, DSN. With the first data it may be MP_CAPABLE's.
fn mapping(segment: &Segment, key: Option<Key>) -> (u64, u64, Dsn) {
    let keys = segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::Capable(capable) => capable.data,
        _ => None,
    });
    match (segment.options.dss().and_then(|dss| dss.map), keys) {
        (Some(map), None) => {
            let DataSeq::Long(dsn) = map.dsn else { panic!("3.3.1-5: 64-bit data sequence numbers") };
            let fin = u64::from(segment.options.dss().unwrap().data_fin);
            (u64::from(map.subflow_seq), u64::from(map.length) - fin, dsn)
        }
        // The first data, from the byte after the key's hash.
        (None, Some((length, _))) => (1, u64::from(length), key.unwrap().idsn() + 1),
        other => panic!("3.7-1: no mapping, or two, on data: {other:?}"),
    }
}

/// A transfer both ways between these, with a part of all segments lost; what was watched.
fn watch(seed: u64, loss: f64, receive_buffer: u64, checksum: bool) -> Watch {
    let set = |mut config: anabranch_engine::Config| {
        config.receive_buffer = buffer(receive_buffer);
        // Every third tunes it.
        config.initial_receive_buffer = seed.is_multiple_of(3).then(|| buffer(3_000));
        config.checksum = checksum;
        config
    };
    let mut pair = Pair::seeded(seed, set(config((0..2).map(client_ip))), set(config([server_ip(0)])));
    let watch = Rc::new(RefCell::new(Watch::default()));
    let (watching, mut chance) = (Rc::clone(&watch), Seed(seed).stream("loss"));
    pair.rule = Box::new(move |host, segment| {
        watching.borrow_mut().see(host, segment);
        !chance.chance(loss)
    });
    pair.open();
    for part in PATTERN.chunks(PATTERN.len() / 4) {
        pair.write(CLIENT, part);
        // Windows close and open again.
        pair.deaf = [true, true];
        pair.run(Duration::from_millis(700));
        pair.deaf = [false, false];
        pair.run(Duration::from_millis(300));
        if pair.id[SERVER].is_some() {
            pair.write(SERVER, part);
        }
    }
    pair.run(Duration::from_secs(60));
    assert!(pair.read[SERVER] == PATTERN, "seed {seed}: everything arrives");
    pair.shutdown(CLIENT);
    pair.shutdown(SERVER);
    assert!(pair.run(Duration::from_secs(300)), "seed {seed}: all is quiet in the end");
    drop(pair);
    Rc::into_inner(watch).unwrap().into_inner()
}

/// 3.3.1-1, -2, -5, -8, 3.3.2-1, 3.3.4-1, 3.7-1.
#[test]
fn every_segment_keeps_the_laws() {
    for seed in 1..9 {
        let checksum = seed % 2 == 0;
        let watch = watch(seed, 0.03, 20_001 + 7_777 * seed, checksum);
        assert!(watch.data_segments > 200, "{}", watch.data_segments);
        assert!(watch.hosts.iter().all(|host| host.subflows.len() >= 2));
    }
}

/// 3.3.3-3: when both DATA_FINs are through, every subflow is closed by FINs of both ends, and by no RST.
#[test]
fn all_subflows_are_closed_by_fin() {
    for seed in 1..4 {
        let watch = watch(seed, 0.0, 100_000, false);
        for host in &watch.hosts {
            assert!(host.subflows.len() == 2 && host.subflows.values().all(|s| s.fins > 0 && s.resets == 0));
        }
    }
}
