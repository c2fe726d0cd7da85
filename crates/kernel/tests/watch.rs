//! A connection of this process over the loopback is watched. Needs root, MPTCP, and a kernel that takes programs at
//! its tracepoints; is skipped where they are missing, unless `ANABRANCH_REQUIRE_BPF=1`.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_kernel::watch::{Event, Picture, RING, Report, Wanted, Watch};
use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn can_watch() -> bool {
    common::has(&["btf", "mptcp", "capabilities", "tracepoints"])
}

fn mptcp() -> std::os::fd::OwnedFd {
    let protocol = rustix::net::Protocol::from_raw(262.try_into().unwrap());
    socket(AddressFamily::INET, SocketType::STREAM, Some(protocol)).unwrap()
}

/// Both ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let (server, client) = (mptcp(), mptcp());
    bind(&server, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&server, 1).unwrap();
    let server = TcpListener::from(server);
    connect(&client, &server.local_addr().unwrap()).unwrap();
    (TcpStream::from(client), server.accept().unwrap().0)
}

const BYTES: usize = 4 << 20;

/// Sends, and gives the other end what it reads.
fn send(client: &mut TcpStream, server: &mut TcpStream) {
    let mut reader = server.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut bytes, mut total) = (vec![0; 1 << 16], 0);
        while total < BYTES {
            total += reader.read(&mut bytes).unwrap();
        }
    });
    client.write_all(&vec![7; BYTES]).unwrap();
    reader.join().unwrap();
}

/// Events and totals of what `client` and `server` do meanwhile, until all is acknowledged.
fn watched(size: usize, client: &mut TcpStream, server: &mut TcpStream) -> (Vec<Event>, Report) {
    let inodes = [&*client, &*server].map(|socket| rustix::fs::fstat(socket).unwrap().st_ino as u32);
    let mut watch = Watch::start(size).unwrap();
    let mut picture = Picture::new(Wanted::Sockets(inodes.into()));
    send(client, server);
    let (mut events, begin) = (Vec::new(), Instant::now());
    loop {
        watch.drain(|raw| picture.take(raw, &mut |event| events.push(event)));
        let report = picture.whole(watch.lost().unwrap());
        let sender = report.connections.iter().find(|it| it.decisions > 0);
        if sender.is_some_and(|it| it.data_acked >= BYTES as u64) || begin.elapsed() > Duration::from_secs(2) {
            return (events, report);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_byte_is_seen_to_leave_to_arrive_and_to_be_acknowledged() {
    if !can_watch() {
        return;
    }
    let (mut client, mut server) = pair();
    let (local, remote) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    let (events, report) = watched(RING, &mut client, &mut server);
    let end = |local: SocketAddr| {
        let of = report.connections.iter().find(|it| it.subflows.iter().any(|subflow| subflow.local == local));
        of.unwrap_or_else(|| panic!("no connection at {local}: {report:?}"))
    };
    let (sender, receiver) = (end(local), end(remote));
    assert_eq!(report.lost, 0);
    assert_eq!(sender.subflows.len(), 1, "{report:?}");
    let subflow = &sender.subflows[0];
    assert_eq!((subflow.local, subflow.remote), (local, remote));
    // A slow machine may make the connection send something again.
    let all = BYTES as u64 + sender.sent_again;
    assert_eq!(subflow.sent, all, "{report:?}");
    assert_eq!(sender.data_acked, BYTES as u64, "{report:?}");
    assert_eq!(sender.outstanding, 0, "{report:?}");
    assert_eq!(receiver.subflows[0].mapped, all, "{report:?}");
    assert_eq!(receiver.subflows[0].mapping_errors, 0);
    // The scheduler was asked, and took the one that there is or none; what it does last may be open still.
    assert!(subflow.chosen > 0 && subflow.chosen + sender.without_data == sender.decisions, "{report:?}");
    assert!((sender.decisions..=sender.decisions + 1).contains(&subflow.considered), "{report:?}");
    assert_eq!(sender.unexpected, 0, "{report:?}");
    // Events say the same as the totals.
    let sent = events.iter().map(|event| match event {
        Event::Sent { bytes, again: false, subflow: Some(1), .. } => *bytes,
        _ => 0,
    });
    assert_eq!(sent.sum::<u64>(), BYTES as u64);
    let decisions = events.iter().filter(|event| match event {
        Event::Decision { candidates, .. } => candidates.len() == 1 && candidates[0].active,
        _ => false,
    });
    assert_eq!(decisions.count() as u64, sender.decisions);
}

/// A ring without room loses events, and counts them.
#[test]
fn lost_events_are_counted() {
    if !can_watch() {
        return;
    }
    let (mut client, mut server) = pair();
    let (_, report) = watched(4096, &mut client, &mut server);
    assert!(report.lost > 0, "{report:?}");
}
