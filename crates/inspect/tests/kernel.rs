//! Captures of Linux 6.18, whole and damaged. The captures' README describes them.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_inspect::{Limits, Report, inspect};
use common::{ADD_ADDR_JOIN, CSUM_PRIO, Record, V6, pcap, raw, records, report};

fn whole(name: &str) -> Option<Report> {
    Some(inspect(&[common::path(name)?], Limits::default()))
}

fn kinds(report: &Report, connection: usize) -> Vec<(&'static str, Option<&'static str>, usize)> {
    let signals = &report.connections[connection].signals;
    signals.iter().map(|signal| (signal.kind, signal.verified, signal.from)).collect()
}

#[test]
fn add_addr_and_join() {
    let Some(report) = whole(ADD_ADDR_JOIN) else { return };
    assert_eq!((report.connections.len(), report.plain_tcp.len()), (1, 0));
    let connection = &report.connections[0];
    assert_eq!((connection.version, connection.dss_checksum, connection.opener_known), (Some(1), Some(false), true));
    let keys = connection.keys.each_ref().map(|key| key.key.as_deref().unwrap());
    assert_eq!(keys, ["152f602671309fcc", "b00568f9d735ef6b"]);
    let tokens = connection.keys.each_ref().map(|key| key.token.as_deref().unwrap());
    assert_eq!(tokens, ["5be5a7c6", "7261156d"]);
    assert_eq!(connection.keys[0].idsn.as_deref(), Some("2da896aabd9fea04"));
    assert!(connection.fallback.is_none() && connection.unknown.is_empty(), "{:?}", connection.unknown);
    assert_eq!(connection.end, "closed: DATA_FIN from both sides, both acknowledged");
    assert_eq!(connection.captured.as_deref(), Some("near the client"));

    assert_eq!(connection.subflows.len(), 2);
    let [first, second] = [&connection.subflows[0], &connection.subflows[1]];
    assert_eq!((first.origin, second.origin), ("MP_CAPABLE", "MP_JOIN"));
    assert_eq!(second.hmac, [Some("good"), Some("good")]);
    assert_eq!((first.outcome.as_str(), second.outcome.as_str()), ("established", "established"));
    assert_eq!(second.address_ids.map(Option::unwrap)[1], 1);
    // 5 and 10 ms one way, nothing lost.
    for (subflow, rtt) in [(first, 10.0), (second, 20.0)] {
        let measured = subflow.handshake_rtt_ms.unwrap();
        assert!((rtt..rtt + 3.0).contains(&measured), "{measured}");
        assert_eq!(subflow.ends.each_ref().map(|end| end.as_ref().unwrap().kind), ["FIN", "FIN"]);
        for sent in &subflow.sent {
            assert_eq!((sent.retransmitted_segments, sent.retransmitted_unseen_segments), (0, 0));
            assert_eq!((sent.missing_bytes, sent.unmapped_bytes, sent.bad_tcp_checksums), (0, 0, 0));
        }
    }
    // The client sent data on the first subflow only, and stands beside the capture.
    let data_rtt = first.data_rtt[0].min_ms.unwrap() + first.data_rtt[1].min_ms.unwrap();
    assert!((10.0..13.0).contains(&data_rtt), "{data_rtt}");
    assert!(second.data_rtt[0].min_ms.is_none() && second.data_rtt[1].min_ms.unwrap() < 1.0);
    // A request of 8 bytes for 130 kB, and a byte to say that it has come.
    assert_eq!(connection.directions.each_ref().map(|direction| direction.bytes), [9, 130_000]);
    for direction in &connection.directions {
        assert!(direction.data_fin_acknowledged && direction.reinjections.is_empty());
        assert_eq!(direction.missing_bytes, 0);
        let shares: f64 = connection.subflows.iter().filter_map(|s| s.sent[direction.from].share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
    assert_eq!(kinds(&report, 0), [("ADD_ADDR", Some("good"), 1), ("ADD_ADDR echo", None, 0)]);
}

#[test]
fn checksums_priorities_fast_close_and_fallback() {
    let Some(report) = whole(CSUM_PRIO) else { return };
    assert_eq!((report.connections.len(), report.plain_tcp.len()), (2, 1));
    let [first, second] = [&report.connections[0], &report.connections[1]];
    assert_eq!((first.dss_checksum, second.dss_checksum), (Some(true), Some(true)));
    let sums = first.subflows.iter().flat_map(|subflow| &subflow.sent);
    let sums = sums.fold((0, 0, 0), |sum, sent| {
        let verdicts = (sent.dss_checksums_good, sent.dss_checksums_bad, sent.dss_checksums_unverifiable);
        (sum.0 + verdicts.0, sum.1 + verdicts.1, sum.2 + verdicts.2)
    });
    assert!(sums.0 > 0 && (sums.1, sums.2) == (0, 0), "{sums:?}");
    assert_eq!(first.subflows[1].hmac, [Some("good"), Some("good")]);
    assert_eq!(first.subflows[1].address_ids[0], Some(3));
    let told: Vec<_> = first.signals.iter().map(|signal| (signal.kind, signal.text.as_str())).collect();
    assert!(told.contains(&("MP_PRIO", "this subflow is backup")), "{told:?}");
    assert!(told.contains(&("MP_PRIO", "this subflow is regular")), "{told:?}");
    assert!(told.contains(&("REMOVE_ADDR", "address 3 is gone")), "{told:?}");

    assert_eq!(second.end, "MP_FASTCLOSE from the client");
    assert!(second.signals.iter().any(|signal| signal.kind == "MP_FASTCLOSE" && signal.verified == Some("good")));
    let end = second.subflows[0].ends.iter().flatten().find(|end| end.fast_close).unwrap();
    assert_eq!((end.kind, end.reason_code), ("RST", Some(0)));
    assert_eq!(end.reason.as_deref(), Some("unspecified error (0)"));
    assert_eq!(second.subflows.len(), 2);
    assert_eq!(second.subflows[1].outcome, "reset by the client: unspecified error (0)");

    let fallback = report.plain_tcp[0].fallback.as_ref().unwrap();
    assert_eq!(fallback.step, "SYN/ACK");
    assert!(fallback.reason.starts_with("the SYN/ACK has no MP_CAPABLE"), "{}", fallback.reason);
}

#[test]
fn ipv6_with_a_port() {
    let Some(report) = whole(V6) else { return };
    let connection = &report.connections[0];
    assert_eq!(connection.directions.each_ref().map(|direction| direction.bytes), [9, 60_000]);
    assert_eq!(connection.subflows.len(), 2);
    assert!(connection.subflows[1].endpoints[1].ends_with(":5555"));
    assert_eq!(connection.subflows[1].hmac, [Some("good"), Some("good")]);
    let announced = &connection.signals[0];
    assert_eq!((announced.kind, announced.verified), ("ADD_ADDR", Some("good")));
    assert!(announced.text.ends_with("]:5555"), "{}", announced.text);
    assert!(connection.unknown.is_empty(), "{:?}", connection.unknown);
}

/// The report does not depend on the file format.
#[test]
fn other_formats_links_and_orders_change_nothing() {
    for name in [ADD_ADDR_JOIN, CSUM_PRIO, V6] {
        let Some(records) = records(name) else { return };
        let expected = raw("formats", &records);
        let framed = |header: &dyn Fn(u8) -> Vec<u8>, trailer: &[u8]| {
            let frame = |record: &Record| {
                let bytes = [&header(record.bytes[0] >> 4)[..], &record.bytes, trailer].concat();
                Record { at: record.at, original: bytes.len() as u32, bytes }
            };
            records.iter().map(frame).collect::<Vec<_>>()
        };
        let ether = |version: u8| if version == 4 { [8, 0] } else { [0x86, 0xdd] };
        let ethernet = framed(&|version| [&[2; 12][..], &ether(version)].concat(), &[0; 6]);
        let vlan = framed(&|version| [&[2; 12][..], &[0x81, 0, 0, 7], &ether(version)].concat(), &[]);
        let sll = framed(&|version| [&[0; 14][..], &ether(version)].concat(), &[]);
        let sll2 = framed(&|version| [&ether(version)[..], &[0; 18]].concat(), &[]);
        let mut shuffled = records.clone();
        for n in 0..shuffled.len() {
            let other = (n * 7919 + 13) % shuffled.len();
            shuffled.swap(n, other);
        }
        for (file, what) in [
            (pcap(101, true, &records), "byte-swapped"),
            (pcap(1, false, &ethernet), "Ethernet"),
            (pcap(1, true, &vlan), "VLAN"),
            (pcap(113, false, &sll), "SLL"),
            (pcap(276, false, &sll2), "SLL2"),
            (pcap(101, false, &shuffled), "records out of order"),
        ] {
            let mut found = report("formats", &[file]);
            found.files.clone_from(&expected.files);
            assert!(found == expected, "{name}: {what}\n{found:#?}\n{expected:#?}");
        }
    }
}

#[test]
fn without_the_handshakes_subflows_are_found_by_their_numbers() {
    let Some(records) = records(ADD_ADDR_JOIN) else { return };
    let expected = raw("middle", &records).connections.remove(0);
    // From the middle on: no SYN of either subflow, no key.
    let report = raw("middle", &records[60..]);
    assert_eq!((report.connections.len(), report.plain_tcp.len()), (1, 0), "{report:#?}");
    let connection = &report.connections[0];
    assert_eq!(connection.subflows.len(), 2);
    assert_eq!((connection.version, connection.opener_known), (None, false));
    assert!(connection.keys.iter().all(|key| key.key.is_none() && key.token.is_none()));
    let said = connection.unknown.join("\n");
    assert!(said.contains("MP_CAPABLE handshake is not in the capture"), "{said}");
    assert!(said.contains("(inferred)"), "{said}");
    let bytes: u64 = connection.directions.iter().map(|direction| direction.bytes).sum();
    let all: u64 = expected.directions.iter().map(|direction| direction.bytes).sum();
    assert!(bytes > all / 3 && bytes < all, "{bytes} of {all}");
    assert!(connection.directions.iter().all(|direction| direction.reinjections.is_empty()), "nothing came twice");
    let unmapped: u64 = connection.subflows.iter().flat_map(|s| &s.sent).map(|sent| sent.unmapped_bytes).sum();
    assert_eq!(unmapped, 0);
}

/// The first handshake is missing, the second is there: the join names a token that nothing else explains, until its
/// numbers do.
#[test]
fn a_join_to_a_connection_known_by_numbers_only() {
    let Some(records) = records(ADD_ADDR_JOIN) else { return };
    let is_first_subflow = |record: &Record| record.bytes[12..20] == records[0].bytes[12..20];
    let is_handshake = |record: &Record| is_first_subflow(record) && record.bytes[33] & 2 != 0;
    // All that carries a key: SYN, SYN/ACK, third ACK.
    let cut: Vec<Record> = records.iter().skip(3).filter(|record| !is_handshake(record)).cloned().collect();
    let report = raw("join", &cut);
    assert_eq!(report.connections.len(), 1, "{report:#?}");
    let connection = &report.connections[0];
    assert_eq!(connection.subflows.len(), 2);
    let tokens: Vec<&str> = connection.keys.iter().filter_map(|key| key.token.as_deref()).collect();
    assert_eq!(tokens, ["7261156d"], "from the MP_JOIN");
    let join = connection.subflows.iter().find(|subflow| subflow.origin == "MP_JOIN").unwrap();
    assert_eq!(join.hmac, [Some("unknown"), Some("unknown")]);
    assert!(connection.signals.iter().any(|signal| signal.verified == Some("unknown")), "the ADD_ADDR");
}

#[test]
fn snapped_packets_leave_checksums_open() {
    let Some(records) = records(CSUM_PRIO) else { return };
    let expected = raw("snapped", &records);
    let mut snapped = records;
    snapped.iter_mut().for_each(|record| record.bytes.truncate(96));
    let report = raw("snapped", &snapped);
    assert_eq!(report.connections.len(), 2);
    for (found, expected) in report.connections.iter().zip(&expected.connections) {
        for side in 0..2 {
            assert_eq!(found.directions[side].bytes, expected.directions[side].bytes);
        }
        assert_eq!(found.keys, expected.keys);
    }
    let sent = &report.connections[0].subflows[0].sent[1];
    assert!(sent.dss_checksums_unverifiable > 0 && sent.dss_checksums_bad == 0);
    let said = report.connections[0].unknown.join("\n");
    assert!(said.contains("were cut within their data"), "{said}");
    // So short that options are cut: keys and joins are gone, and that is said.
    snapped.iter_mut().for_each(|record| record.bytes.truncate(60));
    let report = raw("snapped", &snapped);
    assert!(report.capture.notes[0].contains("cut within their options"), "{:?}", report.capture.notes);
    assert!(report.plain_tcp.iter().all(|plain| plain.options_cut_packets > 0), "{report:#?}");
    // Not even TCP.
    snapped.iter_mut().for_each(|record| record.bytes.truncate(30));
    let report = raw("snapped", &snapped);
    assert_eq!(report.connections.len() + report.plain_tcp.len(), 0);
    assert!(report.files[0].notes[0].contains("cut before the end of the TCP header"), "{:?}", report.files[0].notes);
}

#[test]
fn packets_that_the_capture_misses_are_counted_as_such() {
    let Some(records) = records(ADD_ADDR_JOIN) else { return };
    let kept = |(n, record): (usize, &Record)| (n < 10 || n % 7 != 0).then(|| record.clone());
    let thinned: Vec<Record> = records.iter().enumerate().filter_map(kept).collect();
    let report = raw("thinned", &thinned);
    let connection = &report.connections[0];
    let download = &connection.directions[1];
    assert!(download.bytes < 130_000 && download.missing_bytes > 0);
    assert_eq!(download.bytes + download.missing_bytes, 130_000, "the peer acknowledged all of it");
    let said = connection.unknown.join("\n");
    assert!(said.contains("were acknowledged and are not in the capture"), "{said}");
    let again: u64 = connection.subflows.iter().flat_map(|s| &s.sent).map(|sent| sent.retransmitted_segments).sum();
    assert_eq!(again, 0);
    assert!(download.longest_gaps.iter().any(|gap| gap.end == "not in the capture"));
}

#[test]
fn two_capture_points_in_one_file_are_one_connection() {
    for (name, bytes) in [(ADD_ADDR_JOIN, 130_000), (V6, 60_000)] {
        let Some(records) = records(name) else { return };
        let far = records.iter().map(|record| Record { at: record.at + 5_000_000, ..record.clone() });
        let mut both: Vec<Record> = records.iter().cloned().chain(far).collect();
        both.sort_by_key(|record| record.at);
        let one_file = raw("points", &both);
        let far: Vec<Record> = records.iter().map(|r| Record { at: r.at + 5_000_000, ..r.clone() }).collect();
        let two_files = report("points", &[pcap(101, false, &records), pcap(101, false, &far)]);
        for found in [&one_file, &two_files] {
            let connection = &found.connections[0];
            assert_eq!(connection.directions[1].bytes, bytes);
            assert_eq!(connection.captured.as_deref(), Some("at two points, or twice at one"));
            assert!(connection.unknown.iter().any(|note| note.contains("first copy")), "{:?}", connection.unknown);
            for sent in connection.subflows.iter().flat_map(|subflow| &subflow.sent) {
                assert_eq!(sent.retransmitted_segments, 0, "{name}: copies are no retransmissions");
            }
        }
        assert_eq!(two_files.capture.copies, records.len() as u64);
        // Packets of both directions are 5 ms later there, which can only be the clock.
        let rtt = &two_files.connections[0].subflows[0].data_rtt[0];
        assert!(rtt.whole_path && (10.0..14.0).contains(&rtt.min_ms.unwrap()), "{rtt:?}");
        let clock = two_files.files[1].clock.as_ref().unwrap();
        assert!((clock.ahead_s - 0.005).abs() < 1e-6 && clock.within_s < 1e-6, "{clock:?}");
    }
}

#[test]
fn a_truncated_file_is_analysed_as_far_as_it_goes() {
    let Some(records) = records(ADD_ADDR_JOIN) else { return };
    let file = pcap(101, false, &records);
    for length in (0..file.len()).step_by(file.len() / 50) {
        let report = report("truncated", &[file[..length].to_vec()]);
        let told = report.files[0].error.is_some();
        assert!(told || report.files[0].is_capture, "{length}");
        assert_eq!(report.files[0].is_capture, length >= 24, "{length}");
    }
    let report = report("truncated", &[file[..file.len() - 10].to_vec()]);
    assert_eq!(report.files[0].packets, records.len() as u64 - 1);
    assert!(report.files[0].error.as_ref().unwrap().starts_with("the file ends within a packet"));
    assert_eq!(report.connections[0].directions[1].bytes, 130_000);
}

/// Every kind of damage that single bytes can do, in headers above all.
#[test]
fn damaged_captures_never_panic() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: usize| {
        // Xorshift (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for name in [ADD_ADDR_JOIN, CSUM_PRIO, V6] {
        let Some(records) = records(name) else { return };
        let file = pcap(101, false, &records);
        for _ in 0..60 {
            let mut damaged = records.clone();
            for _ in 0..random(40) {
                let record = random(damaged.len());
                let bytes = &mut damaged[record].bytes;
                let at = random(bytes.len().min(100));
                bytes[at] = random(256) as u8;
            }
            raw("damaged", &damaged);
            let mut file = file.clone();
            for _ in 0..random(20) {
                let at = random(file.len());
                file[at] = random(256) as u8;
            }
            report("damaged", &[file]);
        }
    }
}
