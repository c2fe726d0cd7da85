//! Data that was received in order and not read when the connection ends otherwise than in order.

use crate::common::puppet::{Line, Puppet};
use crate::common::{PATTERN, config, server_ip};
use anabranch_engine::{Config, Event, Read, ReadError, WriteError};
use anabranch_units::Duration;
use anabranch_wire::{MpOption, Segment};
use bytes::Bytes as Payload;

/// A server whose application has not read 700 bytes that it has acknowledged.
fn unread(config: Config) -> (Puppet, Line) {
    let (mut puppet, line) = Puppet::accepted(config);
    puppet.deaf = true;
    let map = puppet.map(1, 0, 700);
    puppet.data(line, 1, &PATTERN[..700], Some(map));
    puppet.wait(Duration::from_millis(100));
    assert!(puppet.take().iter().any(|s| Puppet::acked(s) == Some(700)), "acknowledged");
    (puppet, line)
}

fn server() -> Config {
    config([server_ip(0)])
}

/// The peer's MP_FASTCLOSE behind the data.
fn fast_close(puppet: &Puppet, line: Line) -> Segment {
    let mut segment = Line::segment(line.ack(701));
    segment.options.push_mptcp(MpOption::FastClose { receiver_key: puppet.theirs.unwrap() });
    segment
}

/// Reads to the end: the bytes, and how it ended.
fn read_all(puppet: &mut Puppet) -> (Vec<u8>, Result<Read, ReadError>) {
    let (mut bytes, id) = (Vec::new(), puppet.id.unwrap());
    loop {
        match puppet.host.read(id) {
            Ok(Read::Data(piece)) => bytes.extend_from_slice(&piece),
            end => return (bytes, end),
        }
    }
}

/// The event comes at once, so that a writer stops; then come the bytes, then the error, which stays.
#[test]
fn a_reset_leaves_what_was_received_and_then_the_error() {
    let (mut puppet, line) = unread(server());
    puppet.deliver(fast_close(&puppet, line));
    let id = puppet.id.unwrap();
    assert!(puppet.has(|event| *event == Event::Reset));
    assert_eq!(puppet.host.connection_count(), 0);
    assert_eq!(puppet.host.write(id, &Payload::from_static(b"x")), Err(WriteError::Gone));
    let held = puppet.host.load(id).expect("its memory counts");
    assert!(held.held.get() >= 700 && held.subflows == 0, "{held:?}");
    let events = puppet.events.len();
    let (bytes, end) = read_all(&mut puppet);
    assert!(bytes == PATTERN[..700], "{} bytes", bytes.len());
    assert_eq!((end, puppet.host.read(id)), (Err(ReadError), Err(ReadError)));
    assert_eq!(puppet.host.connection_stats(id).unwrap().delivered, 700);
    assert!(puppet.host.load(id).is_none(), "nothing is held any more");
    puppet.pump();
    assert_eq!(puppet.events.len(), events, "no event follows");
}

/// The peer had closed its direction: its stream is whole, and the reset takes nothing from it.
#[test]
fn a_stream_that_had_ended_ends_in_order_although_the_connection_is_reset() {
    let (mut puppet, line) = unread(server());
    let fin = puppet.data_fin(700);
    puppet.send(line.ack(701), |s| s.options.set_dss(Some(fin)));
    puppet.deliver(fast_close(&puppet, line));
    assert!(!puppet.has(|event| *event == Event::PeerFinished), "not before all is read");
    let (bytes, end) = read_all(&mut puppet);
    assert_eq!((bytes.len(), end), (700, Ok(Read::End)));
}

/// Reading at the event, before the next segment leaves, gives the same.
#[test]
fn it_can_be_read_at_once() {
    let (mut puppet, line) = unread(server());
    puppet.host.handle_segment(puppet.now, &mut fast_close(&puppet, line));
    let (bytes, end) = read_all(&mut puppet);
    assert_eq!((bytes.len(), end), (700, Err(ReadError)));
    puppet.pump();
    assert_eq!(read_all(&mut puppet), (Vec::new(), Err(ReadError)));
    assert!(!puppet.has(|event| *event == Event::PeerFinished));
}

/// The user timeout ends a connection whose peer is silent; what it had said before is there.
#[test]
fn a_timeout_leaves_it_too() {
    let mut config = server();
    config.user_timeout = Some(Duration::from_secs(5));
    let (mut puppet, _) = unread(config);
    puppet.write(&PATTERN[..1000]);
    puppet.wait(Duration::from_secs(60));
    assert!(puppet.has(|event| *event == Event::Reset), "{:?}", puppet.events);
    let (bytes, end) = read_all(&mut puppet);
    assert_eq!((bytes.len(), end), (700, Err(ReadError)));
}

/// Data that its application does not want any more is not kept.
#[test]
fn what_was_given_up_or_forgotten_is_not_kept() {
    let (mut puppet, _) = unread(server());
    let id = puppet.id.unwrap();
    puppet.host.abort(puppet.now, id);
    assert_eq!(puppet.host.read(id), Err(ReadError));
    puppet.pump();
    assert_eq!(puppet.host.read(id), Err(ReadError));
    assert!(puppet.host.load(id).is_none());

    for at_once in [true, false] {
        let (mut puppet, line) = unread(server());
        let id = puppet.id.unwrap();
        puppet.host.handle_segment(puppet.now, &mut fast_close(&puppet, line));
        if !at_once {
            puppet.pump();
        }
        puppet.host.forget(id);
        puppet.pump();
        assert_eq!(puppet.host.read(id), Err(ReadError), "forgotten at once: {at_once}");
        assert!(puppet.host.load(id).is_none() && puppet.host.connection_stats(id).is_none());
    }
}
