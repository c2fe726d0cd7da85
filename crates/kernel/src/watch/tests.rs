//! Events that programs might have written, and what becomes of them.
#![allow(clippy::unwrap_used)]

use super::event::{ACTIVE, BACKUP, FREE, Identity, Kind};
use super::{ConnectionReport, Event, Fault, Picture, Raw, Wanted};
use crate::sys::monotonic;
use std::net::SocketAddr;

/// A DSN shortly before the largest: those after it begin anew.
const BASE: u64 = u64::MAX - 999;

fn raw(kind: Kind, values: &[u64]) -> Raw {
    let mut all = [0; 8];
    all[..values.len()].copy_from_slice(values);
    Raw { time: monotonic().as_nanos(), kind, cpu: 0, connection: None, subflow: None, flags: 0, cwnd: 10, values: all }
}

fn identity(token: u32) -> Identity {
    Identity { token, namespace: 1, inode: 7, cgroup: 9, una: BASE, next: BASE }
}

fn ends(subflow: u16) -> (SocketAddr, SocketAddr) {
    (SocketAddr::from(([10, 0, 0, 1], subflow)), SocketAddr::from(([10, 0, 0, 2], 80)))
}

/// The scheduler looks at a subflow with so many bytes queued, at a rate of 1,000 bytes per second, and its next
/// mapping at `place`.
fn candidate(subflow: u16, flags: u32, queued: u64, place: u64) -> Raw {
    let values = [u64::MAX, 1000, queued, 0, 0, 0, place];
    Raw { connection: Some(identity(1)), subflow: Some(ends(subflow)), flags, ..raw(Kind::Candidate, &values) }
}

fn sent(dsn: u64, place: u64, length: u64) -> Raw {
    raw(Kind::Sent, &[dsn, place, length])
}

fn told(picture: &mut Picture, raws: &[Raw]) -> Vec<Event> {
    let mut events = Vec::new();
    raws.iter().for_each(|raw| picture.take(raw, &mut |event| events.push(event)));
    events
}

fn only(picture: &Picture) -> ConnectionReport {
    let mut report = picture.whole(0);
    assert_eq!(report.connections.len(), 1);
    report.connections.remove(0)
}

/// The chosen and the expected subflow of each decision.
fn decisions(events: &[Event]) -> Vec<(Option<u32>, Option<u32>)> {
    let decision = |event: &Event| match event {
        Event::Decision { chosen, expected, .. } => Some((*chosen, *expected)),
        _ => None,
    };
    events.iter().filter_map(decision).collect()
}

#[test]
fn data_go_to_the_subflow_whose_place_their_mapping_has() {
    let mut picture = Picture::new(Wanted::All);
    let usual = ACTIVE | FREE;
    let events = told(
        &mut picture,
        &[
            candidate(1, usual, 500, 1),
            candidate(2, usual, 100, 1),
            sent(BASE, 1, 600),  // Both places are the same: the rule says which.
            sent(BASE, 1, 1000), // More for the same packet.
            candidate(1, usual, 500, 1),
            candidate(2, usual, 900, 1001),
            sent(BASE.wrapping_add(1000), 1001, 200), // Not that of the rule.
            candidate(1, usual, 0, 1),
            candidate(2, usual, 0, 1201),
            candidate(1, usual, 0, 1), // Nothing left.
            candidate(2, usual, 0, 1201),
            sent(BASE, 1, 300), // Again, on the first, as after the scheduler was asked.
            candidate(1, ACTIVE, 900, 301),
            candidate(2, ACTIVE, 900, 1201),
            sent(BASE.wrapping_add(300), 301, 100), // Again, although neither has room: nobody chose it.
        ],
    );
    let chosen = [(Some(2), Some(2)), (Some(2), Some(1)), (None, Some(1)), (Some(1), Some(1)), (None, None)];
    assert_eq!(decisions(&events), chosen);
    let connection = only(&picture);
    let counts = (connection.decisions, connection.without_data, connection.unexpected, connection.sent_again);
    assert_eq!(counts, (5, 2, 1, 400));
    let of: Vec<_> = connection.subflows.iter().map(|it| (it.considered, it.chosen, it.sent)).collect();
    assert_eq!(of, [(5, 1, 400), (5, 2, 1200)]);
    assert_eq!(connection.outstanding, 1200);
}

/// A burst goes on where it is, although the other subflow comes to the same place.
#[test]
fn a_burst_stays_on_its_subflow() {
    let mut picture = Picture::new(Wanted::All);
    let at = |offset| BASE.wrapping_add(offset);
    let look = [candidate(1, ACTIVE | FREE, 500, 2001), candidate(2, ACTIVE | FREE, 100, 1)];
    told(&mut picture, &look);
    told(&mut picture, &[sent(at(0), 1, 1000), sent(at(1000), 1001, 1000), sent(at(2000), 2001, 1000)]);
    let sent: Vec<_> = only(&picture).subflows.iter().map(|it| it.sent).collect();
    assert_eq!(sent, [0, 3000]);
}

/// One that opens the window further is told; one that repeats another or was overtaken is not.
#[test]
fn acknowledgments_that_say_nothing_new_do_not_count() {
    let mut picture = Picture::new(Wanted::All);
    let at = |offset| BASE.wrapping_add(offset);
    told(&mut picture, &[candidate(1, ACTIVE | FREE, 0, 1), sent(BASE, 1, 1500)]);
    // The kernel's own end of the window is the largest so far.
    let ack = |before, una, end, largest| raw(Kind::DataAck, &[at(una), at(before), at(una), at(end), at(largest)]);
    let raws = [
        ack(0, 1000, 3000, 3000),
        ack(1000, 1000, 3000, 3000),
        ack(1000, 500, 2500, 3000),
        ack(1000, 1000, 4000, 4000),
        ack(1000, 1500, 4000, 4000),
    ];
    let told = told(&mut picture, &raws);
    let seen = |event: &Event| match event {
        Event::DataAck { offset, bytes, window, .. } => (*offset, *bytes, *window),
        _ => panic!("{event:?}"),
    };
    assert_eq!(told.iter().map(seen).collect::<Vec<_>>(), [(1000, 1000, 2000), (1000, 0, 3000), (1500, 500, 2500)]);
    let connection = only(&picture);
    assert_eq!((connection.data_acks, connection.data_acked, connection.outstanding), (3, 1500, 0));
}

#[test]
fn dsns_tell_the_connection_across_their_wrap() {
    let mut picture = Picture::new(Wanted::All);
    let other =
        Raw { connection: Some(Identity { una: 1 << 60, next: 1 << 60, ..identity(2) }), ..candidate(3, 0, 0, 1) };
    let (una, end) = (BASE, BASE.wrapping_add(1500));
    let data_ack = raw(Kind::DataAck, &[end, una, end, end.wrapping_add(100), una]);
    let stranger = raw(Kind::DataAck, &[5 << 40, 5 << 40, 6 << 40, 6 << 40, 0]);
    let events =
        told(&mut picture, &[other, candidate(1, ACTIVE | FREE, 0, 1), sent(BASE, 1, 1500), data_ack, stranger]);
    let Some(Event::DataAck { connection, offset, bytes, window, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((connection.as_str(), *offset, *bytes, *window), ("1", 1500, 1500, 100));
    let report = picture.interval(3);
    assert_eq!((report.lost, report.unassigned), (3, 1));
    let counts: Vec<_> = report.connections.iter().map(|it| (it.data_acked, it.outstanding)).collect();
    assert_eq!(counts, [(1500, 0), (0, 0)]);
    // The next interval begins at zero.
    told(&mut picture, &[candidate(1, ACTIVE | FREE, 0, 1501)]);
    let report = picture.interval(5);
    assert_eq!((report.lost, report.unassigned), (2, 0));
    let counts: Vec<_> = report.connections.iter().map(|it| (it.data_acked, it.subflows[0].considered)).collect();
    assert_eq!(counts, [(0, 1)]);
}

/// Flags and queued bytes of two subflows, and the number of the one that the rule gives.
#[test]
fn the_rule_takes_the_shortest_queue_that_is_not_spared() {
    let usual = ACTIVE | FREE;
    for (first, second, expected) in [
        ((usual, 10), (usual, 20), Some(1)),
        ((usual, 20), (usual, 10), Some(2)),
        ((usual, 10), (usual, 10), Some(1)),
        ((usual, 20), (usual | BACKUP, 10), Some(1)),
        ((FREE, 10), (usual | BACKUP, 20), Some(2)),
        ((ACTIVE, 10), (usual, 20), None), // The shortest has no room.
        ((FREE, 10), (FREE, 20), None),
    ] {
        let mut picture = Picture::new(Wanted::All);
        let look = [candidate(1, first.0, first.1, 1), candidate(2, second.0, second.1, 1)];
        told(&mut picture, &look);
        // The second look ends the first decision.
        assert_eq!(decisions(&told(&mut picture, &look)), [(None, expected)], "{first:?} {second:?}");
    }
}

#[test]
fn mappings_count_once_and_faults_each_time() {
    let mut picture = Picture::new(Wanted::All);
    let judged = |status| Raw { connection: Some(identity(1)), subflow: Some(ends(1)), ..raw(Kind::Status, &[status]) };
    let mapping = raw(Kind::Mapping, &[5, 1, 1001, 1]);
    let elsewhere = Raw { cpu: 1, ..raw(Kind::Mapping, &[7, 1, 50, 0]) };
    let raws = [mapping.clone(), elsewhere, judged(0), mapping, judged(0), judged(0), judged(5), judged(5)];
    let events = told(&mut picture, &raws);
    let faults = events.iter().filter(|it| matches!(it, Event::MappingError { fault: Fault::BadChecksum, .. }));
    assert_eq!(faults.count(), 2);
    let subflow = only(&picture).subflows.remove(0);
    assert_eq!((subflow.mappings, subflow.mapped, subflow.mapping_errors), (1, 1000, 2));
}

#[test]
fn only_what_is_asked_for_is_told() {
    for (wanted, is) in [
        (Wanted::Sockets([7].into()), true),
        (Wanted::Sockets([8].into()), false),
        (Wanted::Groups([9].into()), true),
        (Wanted::Groups([7].into()), false),
    ] {
        let mut picture = Picture::new(wanted);
        let events = told(&mut picture, &[candidate(1, ACTIVE | FREE, 0, 1), sent(BASE, 1, 10)]);
        assert_eq!((!events.is_empty(), picture.whole(0).connections.len()), (is, usize::from(is)));
        // A socket may get its place in a process later, and what was counted before stays.
        picture.set_wanted(Wanted::All);
        let later = told(&mut picture, &[candidate(1, ACTIVE | FREE, 0, 11)]);
        let is_introduced = |events: &[Event]| events.iter().any(|it| matches!(it, Event::Subflow { .. }));
        assert_eq!((is_introduced(&events), is_introduced(&later)), (is, !is), "once, as soon as it is asked for");
        assert_eq!(only(&picture).subflows[0].sent, 10);
    }
}

#[test]
fn records_that_are_not_ours_are_none() {
    let mut record = [0; 168];
    assert!(Raw::decode(&record).is_none());
    record[8] = 1;
    assert!(Raw::decode(&record).is_some() && Raw::decode(&record[1..]).is_none());
    // `struct event` of `bpf/watch.h`: IPv4 on a socket of IPv6.
    (record[16], record[20], record[56], record[60], record[62]) = (1, 2, 10, 80, 90);
    record[74..80].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
    record[95] = 1;
    let raw = Raw::decode(&record).unwrap();
    assert_eq!(raw.subflow, Some(("10.0.0.1:80".parse().unwrap(), "[::1]:90".parse().unwrap())));
    assert_eq!(raw.connection.map(|it| (it.token, it.namespace)), Some((1, 2)));
}
