//! One mapping over the segments of a burst, so that segmentation offload can make them of one packet.

use crate::common::puppet::{Line, Puppet};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::Config;
use anabranch_units::{Bytes, Duration, Seed};
use anabranch_wire::{Dss, Flags, Map, MpCapable, MpOption, Segment, dss_checksum};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const BURST: u64 = 60_000;

fn bursting(config: Config) -> Config {
    Config { burst: Some(Bytes::new(BURST)), ..config }
}

fn map_of(segment: &Segment) -> Option<Map> {
    segment.options.dss().and_then(|dss| dss.map)
}

/// Returns the segments with data that the endpoint sent on this subflow.
fn data(puppet: &mut Puppet, line: Line) -> Vec<Segment> {
    let mut out = puppet.take();
    out.retain(|segment| line.carries(segment) && !segment.payload.is_empty());
    out
}

/// Asserts that a network card could make these segments from one packet: one flow, contiguous, equal in size but for
/// the last, the same options, acknowledgment and window, and no flag but PSH, on the last.
fn assert_mergeable(segments: &[Segment]) {
    let first = &segments[0];
    for (two, last) in segments.windows(2).zip((0..segments.len() - 1).map(|n| n + 2 == segments.len())) {
        assert_eq!(two[1].seq, two[0].seq + two[0].payload.len() as u64);
        assert_eq!((two[1].flow, two[1].ack, two[1].window), (first.flow, first.ack, first.window));
        assert_eq!(two[1].options, first.options);
        assert_eq!(two[0].flags, Flags::ACK);
        assert!(two[1].payload.len() == first.payload.len() || last && two[1].payload.len() < first.payload.len());
    }
}

#[test]
fn the_segments_of_a_round_share_one_mapping() {
    let (mut puppet, line) = Puppet::confirmed(bursting(config([server_ip(0)])));
    puppet.write(&PATTERN[..10_000]);
    let sent = data(&mut puppet, line);
    assert_eq!(sent.len(), 7, "six of 1432 and one of 1408");
    assert_mergeable(&sent);
    let map = map_of(&sent[0]).unwrap();
    assert_eq!((map.subflow_seq, map.length), (1, 10_000));
    assert!(sent[6].flags.has(Flags::PSH));
    // What is written later is another burst.
    puppet.confirm(line.acking(10_001), 11, 10_000);
    puppet.write(&PATTERN[10_000..13_000]);
    let sent = data(&mut puppet, line);
    assert_eq!(map_of(&sent[0]).map(|map| (map.subflow_seq, map.length)), Some((10_001, 3_000)));
}

#[test]
fn a_burst_is_as_long_as_it_may_be_and_no_longer() {
    for (most, lengths) in [(3_000, vec![2864, 2864, 2864, 1408]), (1, vec![1432; 6]), (1 << 30, vec![10_000])] {
        let config = Config { burst: Some(Bytes::new(most)), ..config([server_ip(0)]) };
        let (mut puppet, line) = Puppet::confirmed(config);
        puppet.write(&PATTERN[..10_000]);
        let mut maps: Vec<_> = data(&mut puppet, line).iter().map(|s| map_of(s).unwrap()).collect();
        maps.dedup();
        let expected = if most == 1 { [lengths, vec![1408]].concat() } else { lengths };
        assert_eq!(maps.iter().map(|map| u64::from(map.length)).collect::<Vec<_>>(), expected);
    }
    // Even with the DATA_FIN the length has 16 bits.
    let mut roomy = Config { burst: Some(Bytes::new(1 << 30)), ..config([server_ip(0)]) };
    roomy.profile.initial_window = 100;
    let (mut puppet, line) = Puppet::confirmed(roomy);
    puppet.write(&PATTERN[..59_000]);
    puppet.shutdown();
    let sent = data(&mut puppet, line);
    assert_eq!((sent.len(), map_of(&sent[0]).unwrap().length), (42, 59_000));
}

/// The client's first data carries the keys, and the length of the whole burst, on each segment, as Linux sends it.
#[test]
fn the_keys_go_with_each_segment_of_the_first_burst() {
    let client = bursting(config([client_ip(0)]));
    let (mut puppet, line) = Puppet::connected(client, MpCapable { sender_key: None, ..MpCapable::OFFER });
    puppet.take();
    puppet.write(&PATTERN[..5_000]);
    let sent = data(&mut puppet, line);
    assert_eq!(sent.len(), 4);
    assert_mergeable(&sent);
    for segment in &sent {
        let [MpOption::Capable(capable)] = segment.options.mptcp() else { panic!("{segment:?}") };
        assert_eq!(capable.data, Some((5_000, None)));
    }
}

/// The DATA_FIN belongs to the shared mapping: each segment says so, the lone one that is repeated too.
#[test]
fn the_end_of_the_stream_is_part_of_the_shared_mapping() {
    let (mut puppet, line) = Puppet::confirmed(bursting(config([server_ip(0)])));
    // The window of congestion control holds ten segments: the rest is written, and closed, before it leaves.
    puppet.write(&PATTERN[..20_000]);
    puppet.shutdown();
    data(&mut puppet, line);
    puppet.confirm(line.acking(14_321), 11, 14_320);
    let sent = data(&mut puppet, line);
    assert_mergeable(&sent);
    let dss = sent[0].options.dss().unwrap();
    assert!(dss.data_fin && sent.len() == 4, "{sent:?}");
    assert_eq!(dss.map.unwrap().length, 20_000 - 14_320 + 1);
    puppet.wait(Duration::from_millis(1200));
    let again = data(&mut puppet, line);
    assert!(
        !again.is_empty()
            && again.iter().all(|s| s.options.dss().map(|dss| (dss.map, dss.data_fin)) == Some((dss.map, true)))
    );
}

/// A repetition has the same mapping as its burst, to the byte, for each lost part of a burst and each part of a
/// segment that the peer has: a Linux peer that holds the first mapping unconsumed demands it.
#[test]
fn a_repetition_has_the_mapping_of_its_burst() {
    for checksum in [false, true] {
        let (mut puppet, line) = {
            let mut config = bursting(config([server_ip(0)]));
            config.checksum = checksum;
            config.profile.tlp = false;
            let (mut puppet, line) = Puppet::accepted(config);
            let length = 10;
            let mut map = puppet.map(1, 0, length);
            if let Some(map) = map.map.as_mut().filter(|_| checksum) {
                map.checksum = Some(dss_checksum(Puppet::dsn(0), 1, length, [&PATTERN[..10]]));
            }
            puppet.data(line, 1, &PATTERN[..10], Some(map));
            puppet.take();
            (puppet, line)
        };
        puppet.write(&PATTERN[..10_000]);
        let sent = data(&mut puppet, line);
        let first = map_of(&sent[0]).unwrap();
        assert_eq!(first.checksum.is_some(), checksum);
        if let Some(sum) = first.checksum {
            let dsn = puppet.theirs.unwrap().idsn() + 1;
            assert_eq!(sum, dss_checksum(dsn, 1, 10_000, [&PATTERN[..10_000]]), "over all of the burst");
        }
        // 1500 bytes have arrived: one segment and a part of the next.
        let nothing = puppet.data_ack(if checksum { 0 } else { 1500 });
        puppet.send(line.acking(1501).ack(11), |s| s.options.set_dss(Some(nothing)));
        puppet.wait(Duration::from_millis(1500));
        let again = data(&mut puppet, line);
        assert!(again.iter().any(|s| s.seq == line.irs + 1501 && s.payload[..] == PATTERN[1500..2864]), "{again:?}");
        assert!(again.iter().all(|s| map_of(s) == Some(first)), "{again:?}");
    }
}

/// Another subflow ends a burst, and what is sent again there has a mapping of its own.
#[test]
fn a_lost_path_leaves_parts_of_bursts_to_the_others() {
    let client = bursting(config((0..2).map(client_ip)));
    let mut pair = Pair::with(client, bursting(config([server_ip(0)])));
    let seen: Rc<RefCell<BTreeMap<_, BTreeMap<u32, Map>>>> = Rc::default();
    let (watched, mut dead) = (Rc::clone(&seen), 0);
    pair.rule = Box::new(move |host, segment| {
        if host == CLIENT || segment.payload.is_empty() {
            return true;
        }
        let map = map_of(segment).unwrap();
        let mut seen = watched.borrow_mut();
        let maps = seen.entry(segment.flow).or_default();
        let before = maps.entry(map.subflow_seq).or_insert(map);
        assert_eq!(*before, map, "a mapping does not change");
        // In the middle of its bursts the first path dies.
        dead += u32::from(segment.flow.dst == client_ip(0));
        segment.flow.dst != client_ip(0) || dead < 25
    });
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(5));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(60));
    assert!(pair.read[CLIENT] == PATTERN);
    let stats = pair.hosts[SERVER].connection_stats(pair.id[SERVER].unwrap()).unwrap();
    assert!(stats.reinjected > 5_000, "{stats:?}");
    let seen = seen.borrow();
    assert!(seen.values().all(|maps| maps.values().any(|map| map.length > 3_000)), "both paths had bursts");
}

/// Loss, reordering, checksums, small windows, both directions: what arrives is what was written.
#[test]
fn bursts_arrive_over_any_wire() {
    let mut shared = 0;
    for seed in 0..24 {
        let set = |mut config: Config| {
            config.checksum = seed % 3 == 0;
            config.receive_buffer = Bytes::new(if seed % 4 == 1 { 20_000 } else { 300_000 });
            config.burst = (seed % 5 != 4).then(|| Bytes::new(if seed % 2 == 0 { BURST } else { 5_000 }));
            config
        };
        let mut pair = Pair::seeded(seed, set(config((0..2).map(client_ip))), bursting(set(config([server_ip(0)]))));
        let mut dice = Seed(seed).stream("loss");
        let counted = Rc::new(RefCell::new(0));
        let count = Rc::clone(&counted);
        pair.rule = Box::new(move |_, segment| {
            let long = map_of(segment).is_some_and(|map| usize::from(map.length) > segment.payload.len() + 1);
            *count.borrow_mut() += u32::from(long);
            !dice.chance(0.04)
        });
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(1));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(200));
        assert!(pair.read[SERVER] == PATTERN && pair.read[CLIENT] == PATTERN, "seed {seed}");
        pair.shutdown(CLIENT);
        pair.shutdown(SERVER);
        assert!(pair.run(Duration::from_secs(300)), "seed {seed}: all is quiet in the end");
        shared += *counted.borrow();
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].counters().resets_sent.len(), 0, "seed {seed}");
        }
    }
    assert!(shared > 2_000, "{shared} segments shared a mapping");
}

/// Options that vanish in the middle of a burst on the only subflow: plain TCP takes over where it stands.
#[test]
fn a_fallback_in_the_middle_of_a_burst_loses_nothing() {
    for after in [3, 8, 20] {
        let mut pair = Pair::with(bursting(config([client_ip(0)])), bursting(config([server_ip(0)])));
        let mut count = 0;
        pair.rule = Box::new(move |host, segment| {
            count += u32::from(host == SERVER && !segment.payload.is_empty());
            if count > after {
                segment.options.set_dss(None::<Dss>);
                segment.options.retain_mptcp(|_| false);
            }
            true
        });
        pair.open();
        pair.write(CLIENT, b"GET");
        pair.run(Duration::from_secs(2));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(60));
        assert!(pair.read[CLIENT] == PATTERN, "after {after}: {} of {}", pair.read[CLIENT].len(), PATTERN.len());
    }
}

/// Without the setting each segment has its own mapping.
#[test]
fn without_the_setting_each_segment_has_its_mapping() {
    let (mut puppet, line) = Puppet::confirmed(config([server_ip(0)]));
    puppet.write(&PATTERN[..10_000]);
    for segment in data(&mut puppet, line) {
        let map = map_of(&segment).unwrap();
        assert_eq!(usize::from(map.length), segment.payload.len());
        assert_eq!(line.irs + u64::from(map.subflow_seq), segment.seq);
    }
}
