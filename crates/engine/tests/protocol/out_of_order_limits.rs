//! Very many segments out of order: all that a window of any size admits is kept, and the memory that a hostile peer
//! can make us hold is bounded. Data dropped by our own bounds is no sign that options are lost (RFC 8684 §3.7).

use crate::common::puppet::{Line, Puppet};
use crate::common::{PATTERN, config, server_ip};
use anabranch_engine::{Config, ConnectionStats, Event};
use anabranch_units::Bytes;

fn server(buffer: u64) -> Config {
    Config { receive_buffer: Bytes::new(buffer), ..config([server_ip(0)]) }
}

/// Bytes of the stream from `data` on.
fn content(data: u64, length: usize) -> &'static [u8] {
    &PATTERN[(data % 251) as usize..][..length]
}

/// The bytes of the stream from `data` on arrive at subflow offset `at`, with a mapping of their own.
fn segment(puppet: &mut Puppet, line: Line, at: u64, data: u64, length: usize) {
    let map = puppet.map(at, data, length as u16);
    puppet.data(line, at, content(data, length), Some(map));
}

fn stats(puppet: &Puppet) -> ConnectionStats {
    puppet.host.connection_stats(puppet.id.unwrap()).unwrap()
}

/// Exactly what is before `end` has been read, nothing waits, and MPTCP goes on.
fn is_whole(puppet: &Puppet, end: u64) -> bool {
    let read = puppet.read.len() as u64 == end && puppet.read.iter().zip(0..).all(|(byte, n)| *byte == (n % 251) as u8);
    let fell_back = puppet.has(|event| matches!(event, Event::Fallback(_)));
    read && !fell_back && (stats(puppet).ofo_now, stats(puppet).ofo_bytes) == (0, 0)
}

/// Two paths, each with a window of 16,000 segments; both lose their first. On either every segment goes somewhere else
/// in the stream than the one before it, so that no two mappings are one.
#[test]
fn a_window_of_sixteen_thousand_segments_waits_for_the_first() {
    const LENGTH: u64 = 500;
    const EACH: u64 = 16_000;
    let (mut puppet, first) = Puppet::confirmed(server(2 * EACH * LENGTH + 10));
    let second = puppet.join(1);
    let mut send = |n: u64| {
        let (line, base) = if n.is_multiple_of(2) { (first, 11) } else { (second, 1) };
        segment(&mut puppet, line, base + n / 2 * LENGTH, 10 + n * LENGTH, LENGTH as usize);
        puppet.take();
    };
    (2..2 * EACH).for_each(&mut send);
    // Its first byte fills nothing that was waited for at the data level.
    send(1);
    assert_eq!(puppet.read.len(), 10);
    let held = stats(&puppet);
    assert_eq!((held.ofo_now, held.ofo_bytes), (2 * EACH - 1, (2 * EACH - 1) * LENGTH));
    segment(&mut puppet, first, 11, 10, LENGTH as usize);
    assert!(is_whole(&puppet, 10 + 2 * EACH * LENGTH), "{:?}", puppet.events);
    assert_eq!(stats(&puppet).duplicates, 0);
}

/// Single bytes, none beside another, over the whole window and more than once; then the stream as it should be. What
/// is held never exceeds a fragment for each 256 bytes of buffer (1,024 at least), and what was dropped is taken when
/// it comes again.
#[test]
fn a_peer_that_sends_single_bytes_is_bounded_and_not_taken_for_one_without_options() {
    for buffer in [60_000, 2 << 20] {
        let most = (buffer / 256).max(1024);
        let (mut puppet, line) = Puppet::confirmed(server(buffer));
        let place = |data: u64| data + 1;
        // From the far end, from the near end, and in between: each order drops something else.
        let near = (0..2 * most).map(|n| 11 + 3 * n);
        let far = (0..2 * most).map(|n| buffer - 1 - 3 * n);
        for data in near.clone().chain(far).chain(near).filter(|data| *data < buffer) {
            segment(&mut puppet, line, place(data), data, 1);
            puppet.take();
            let held = stats(&puppet);
            assert!(held.ofo_now <= most && held.ofo_bytes <= most, "{} in {}", held.ofo_now, held.ofo_bytes);
        }
        assert_eq!(stats(&puppet).ofo_now, most);
        // What is nearest has stayed: a segment brings the stream as far as the byte behind it.
        segment(&mut puppet, line, place(10), 10, 1);
        assert_eq!(puppet.read.len(), 12);
        for data in (12..buffer).step_by(100) {
            let length = 100.min(buffer - data);
            segment(&mut puppet, line, place(data), data, length as usize);
            puppet.take();
        }
        assert!(is_whole(&puppet, buffer), "{:?}", puppet.events);
    }
}

/// Mappings without the bytes they speak of, all over the window, which say of each byte that it lies elsewhere. The
/// table is full when the honest segments come.
#[test]
fn a_table_full_of_promises_has_room_for_what_comes_next() {
    let buffer = 60_000;
    let (mut puppet, line) = Puppet::confirmed(server(buffer));
    for n in 0..20_000u64 {
        let map = puppet.map(20_000 + 2 * n, 10_000 + 3 * n, 1);
        puppet.send(line.ack(11), |s| s.options.set_dss(Some(map)));
        puppet.take();
    }
    for data in (0..15).rev().map(|n| 10 + 1000 * n) {
        segment(&mut puppet, line, data + 1, data, 1000);
    }
    assert!(is_whole(&puppet, 15_010), "{:?}", puppet.events);
}
