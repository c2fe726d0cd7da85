//! Data sequence mappings: early, late, repeated, missing, contradictory, infinite (RFC 8684 §3.3.1, §3.7).

use crate::common::puppet::{Puppet, reason};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use crate::waits::unconfirmed_join;
use anabranch_engine::{Config, Event, FallbackReason};
use anabranch_units::Duration;
use anabranch_wire::{DataSeq, Dss, Flags, MpOption, ResetReason};

fn server() -> anabranch_engine::Config {
    config([server_ip(0)])
}

fn fell_back(puppet: &Puppet, reason: FallbackReason) -> bool {
    puppet.has(|event| *event == Event::Fallback(reason))
}

/// §3.3.1: a mapping need not be on every segment that it covers.
#[test]
fn one_mapping_on_the_first_segment_covers_the_others() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 3000);
    puppet.data(line, 1, &PATTERN[..1000], Some(map));
    puppet.data(line, 1001, &PATTERN[1000..2000], None);
    puppet.data(line, 2001, &PATTERN[2000..3000], None);
    assert!(puppet.read == PATTERN[..3000]);
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_))), "{:?}", puppet.events);
    assert_eq!(puppet.out.iter().filter_map(Puppet::acked).max(), Some(3000));
}

/// §3.3.1: the same when the segment with the mapping comes last.
#[test]
fn segments_that_overtake_their_mapping_wait_for_it() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 2000);
    puppet.data(line, 1001, &PATTERN[1000..2000], None);
    puppet.data(line, 1, &PATTERN[..1000], Some(map));
    assert!(puppet.read == PATTERN[..2000]);
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_))), "{:?}", puppet.events);
}

/// §3.3.1: a repeated mapping with the same content is no contradiction; each segment may carry the whole.
#[test]
fn a_mapping_repeated_on_each_segment_is_one_mapping() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 3000);
    for at in [0, 1000, 2000] {
        puppet.data(line, 1 + at, &PATTERN[at as usize..at as usize + 1000], Some(map));
    }
    assert!(puppet.read == PATTERN[..3000]);
}

/// §3.1: the data mapping in MP_CAPABLE is one like any other, and may be repeated.
#[test]
fn mp_capable_with_data_on_each_segment_of_its_mapping() {
    let (mut puppet, line) = Puppet::accepted(server());
    for at in [0, 1000, 2000] {
        let keys = puppet.keys(Some((3000, None)));
        puppet.send(line.ack(1 + at), |s| {
            s.options.push_mptcp(MpOption::Capable(keys));
            s.payload = PATTERN[at as usize..at as usize + 1000].into();
        });
    }
    assert!(puppet.read == PATTERN[..3000]);
    assert_eq!(puppet.out.iter().filter_map(Puppet::acked).max(), Some(3000));
}

/// §3.7: the first data without any MPTCP option ends MPTCP.
#[test]
fn first_data_without_a_mapping_falls_back() {
    let (mut puppet, line) = Puppet::accepted(server());
    puppet.data(line, 1, &PATTERN[..1000], None);
    assert!(fell_back(&puppet, FallbackReason::FirstData), "{:?}", puppet.events);
    assert!(puppet.read == PATTERN[..1000]);
    assert!(puppet.out.iter().all(|s| !s.flags.has(Flags::RST)));
}

/// §3.7: with a second subflow plain TCP is no way out: the bytes wait, unacknowledged at the data level, then the
/// subflow is reset for middlebox interference, and the other goes on.
#[test]
fn data_without_a_mapping_is_not_data_acked_and_ends_its_subflow() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    let second = puppet.join(1);
    puppet.take();
    puppet.data(second, 1, &PATTERN[10..1000], None);
    puppet.wait(Duration::from_millis(50));
    let early = puppet.take();
    assert!(early.iter().all(|s| Puppet::acked(s).is_none_or(|ack| ack <= 10)), "{early:#?}");
    puppet.wait(Duration::from_secs(5));
    let resets: Vec<_> = puppet.take().into_iter().filter(|s| s.flags.has(Flags::RST)).collect();
    assert_eq!(resets.len(), 1);
    assert!(second.carries(&resets[0]));
    assert_eq!(reason(&resets[0]), Some(ResetReason::Middlebox));
    let map = puppet.map(11, 10, 990);
    puppet.data(line, 11, &PATTERN[10..1000], Some(map));
    assert!(puppet.read == PATTERN[..1000]);
}

/// §3.3.1: a mapping that comes a little after its data still counts.
#[test]
fn a_late_mapping_places_what_waited() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    let second = puppet.join(1);
    puppet.data(second, 1, &PATTERN[10..1000], None);
    let map = puppet.map(1, 10, 990);
    puppet.send(second.ack(991), |s| s.options.set_dss(Some(map)));
    assert!(puppet.read == PATTERN[..1000]);
    puppet.wait(Duration::from_secs(5));
    assert!(puppet.out.iter().all(|s| !s.flags.has(Flags::RST)));
}

/// §3.3.1: "within a receive window of data": a peer cannot make us hold more than that.
#[test]
fn what_waits_for_a_mapping_is_bounded_by_the_window() {
    let mut config = server();
    config.receive_buffer = crate::common::buffer(20_000);
    let (mut puppet, line) = Puppet::accepted(config);
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    let second = puppet.join(1);
    puppet.take();
    for at in 0..21u64 {
        puppet.data(second, 1 + at * 1000, &PATTERN[..1000], None);
    }
    let out = puppet.take();
    assert!(out.iter().any(|s| second.carries(s) && reason(s) == Some(ResetReason::Middlebox)), "{out:#?}");
}

/// §3.3.1: once declared, a mapping is fixed.
#[test]
fn a_contradictory_mapping_resets_the_subflow() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 2000);
    puppet.data(line, 1, &PATTERN[..1000], Some(map));
    puppet.take();
    let other = puppet.map(1001, 5000, 1000);
    puppet.data(line, 1001, &PATTERN[1000..2000], Some(other));
    let out = puppet.take();
    assert!(out.iter().any(|s| reason(s) == Some(ResetReason::MptcpError)), "{out:#?}");
}

/// §3.3.1: 32-bit data sequence numbers stand for the low half, over the wrap as well.
#[test]
fn short_data_sequence_numbers_are_understood() {
    let (mut puppet, line) = Puppet::accepted(server());
    for at in [0u64, 1000] {
        let mut dss = puppet.map(1 + at, at, 1000);
        dss.map.as_mut().unwrap().dsn = DataSeq::Short(Puppet::dsn(at).low());
        puppet.data(line, 1 + at, &PATTERN[at as usize..at as usize + 1000], Some(dss));
    }
    assert!(puppet.read == PATTERN[..2000]);
}

/// §3.7: an infinite mapping on the only subflow is the peer's way to plain TCP; no DATA_ACK follows it.
#[test]
fn an_infinite_mapping_turns_to_plain_tcp() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 1000);
    puppet.data(line, 1, &PATTERN[..1000], Some(map));
    puppet.take();
    let infinite = puppet.map(1, 0, 0);
    puppet.data(line, 1001, &PATTERN[1000..2000], Some(infinite));
    puppet.data(line, 2001, &PATTERN[2000..3000], None);
    assert!(fell_back(&puppet, FallbackReason::InfiniteMapping), "{:?}", puppet.events);
    assert!(puppet.read == PATTERN[..3000]);
    puppet.wait(Duration::from_secs(1));
    assert!(puppet.take().iter().all(|s| Puppet::acked(s).is_none()));
}

/// §3.7: with more than one subflow an infinite mapping makes no sense.
#[test]
fn an_infinite_mapping_beside_another_subflow_is_refused() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 1000);
    puppet.data(line, 1, &PATTERN[..1000], Some(map));
    let second = puppet.join(1);
    puppet.take();
    let infinite = puppet.map(1, 1000, 0);
    puppet.data(second, 1, &PATTERN[1000..2000], Some(infinite));
    let out = puppet.take();
    assert!(out.iter().any(|s| second.carries(s) && reason(s) == Some(ResetReason::MptcpError)), "{out:#?}");
}

/// A middlebox has put bytes behind those that a mapping covers and that fill the window. They are acknowledged on the
/// subflow, so that the peer does not repeat them. Plain TCP takes them, window or not; otherwise later data would wait
/// behind them for ever.
#[test]
fn what_fell_out_of_a_mapping_at_the_edge_of_the_window_is_taken() {
    let (mut puppet, line) = Puppet::accepted(Config { receive_buffer: crate::common::buffer(2000), ..server() });
    let map = puppet.map(1, 0, 100);
    puppet.data(line, 1, &PATTERN[..100], Some(map));
    let map = puppet.map(101, 100, 2000);
    puppet.data(line, 101, &PATTERN[100..2104], Some(map));
    assert!(fell_back(&puppet, FallbackReason::OptionsLost), "{:?}", puppet.events);
    puppet.data(line, 2105, &PATTERN[2104..3000], None);
    assert_eq!(puppet.read.len(), 3000);
}

/// A server that has fallen back, of which the client does not hear, refuses its join at the third ACK. Nobody counts
/// on that subflow, so bytes without a mapping on the first are plain TCP's. They are not if the join was not refused,
/// or if the server had sent something on it.
#[test]
fn a_refused_join_leaves_plain_tcp_open() {
    for (refused, sent, follows) in [(true, 0, true), (false, 0, false), (true, 100, false)] {
        let (mut puppet, line, second) = unconfirmed_join();
        let map = puppet.map(1, 0, 1000);
        puppet.data(line, 1, &PATTERN[..1000], Some(map));
        puppet.send(second.ack(1 + sent), |segment| {
            segment.flags = Flags::RST.with(Flags::ACK);
            if refused {
                let reason = ResetReason::MptcpError;
                segment.options.push_mptcp(MpOption::TcpReset { transient: false, reason });
            }
        });
        puppet.data(line, 1001, &PATTERN[1000..2000], None);
        assert_eq!(fell_back(&puppet, FallbackReason::OptionsLost), follows, "{:?}", puppet.events);
        assert_eq!(puppet.read.len(), if follows { 2000 } else { 1000 });
    }
}

/// §3.7: an ACK of our first data without DSS ends MPTCP; later ones are an exception that a few of are needed for.
#[test]
fn acks_without_dss_count_before_confirmation_and_hardly_after() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    puppet.write(&PATTERN[..5000]);
    let sent = puppet.take();
    assert_eq!(sent.iter().map(|s| s.payload.len()).sum::<usize>(), 5000);
    puppet.send(line.acking(1001).ack(11), |_| {});
    puppet.send(line.acking(2001).ack(11), |_| {});
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_))));
    puppet.confirm(line.acking(2001), 11, 2000);
    puppet.send(line.acking(3001).ack(11), |_| {});
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_))));
    puppet.wait(Duration::from_secs(1));
    puppet.send(line.acking(3501).ack(11), |_| {});
    puppet.send(line.acking(4001).ack(11), |_| {});
    assert!(fell_back(&puppet, FallbackReason::OptionsLost), "{:?}", puppet.events);

    let (mut puppet, line) = Puppet::accepted(server());
    puppet.write(&PATTERN[..1000]);
    puppet.send(line.acking(1001).ack(1), |_| {});
    assert!(fell_back(&puppet, FallbackReason::FirstData), "{:?}", puppet.events);
}

/// §3.3.1: what a mapping says of bytes before the stream began, or lies beyond any window, does no harm.
#[test]
fn mappings_outside_the_stream_are_refused() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 1 << 30, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    assert!(puppet.read.is_empty());
    let second = puppet.join(1);
    puppet.take();
    let before = Dss {
        map: puppet
            .map(1, 0, 10)
            .map
            .map(|m| anabranch_wire::Map { dsn: DataSeq::Long(Puppet::dsn(u64::MAX - 5)), ..m }),
        ..Dss::default()
    };
    puppet.data(second, 1, &PATTERN[..10], Some(before));
    let out = puppet.take();
    assert!(out.iter().any(|s| second.carries(s) && reason(s) == Some(ResetReason::MptcpError)), "{out:#?}");
    let map = puppet.map(11, 0, 100);
    puppet.data(line, 11, &PATTERN[..100], Some(map));
    assert!(puppet.read == PATTERN[..100]);
}

/// One segment is lost. Those behind it wait on their subflow, which counts as waiting, once: with MPTCP as with plain
/// TCP.
#[test]
fn what_waits_behind_a_lost_segment_is_out_of_order() {
    for multipath in [true, false] {
        let mut pair = Pair::with(config([client_ip(0)]), Config { multipath, ..config([server_ip(0)]) });
        let mut sent = 0;
        pair.rule = Box::new(move |host, segment| {
            sent += u32::from(host == CLIENT && !segment.payload.is_empty());
            !(host == CLIENT && sent == 3 && !segment.payload.is_empty())
        });
        pair.open();
        pair.write(CLIENT, &PATTERN[..9_000]);
        assert!(!pair.run(Duration::from_millis(19)));
        let stats = |pair: &Pair| pair.hosts[SERVER].connection_stats(pair.id[SERVER].unwrap()).unwrap();
        let (all, held) = (9_000u64.div_ceil(1448), stats(&pair));
        assert_eq!((held.segments_received, held.ofo_count, held.ofo_now), (all - 1, all - 3, all - 3), "{multipath}");
        assert!(held.ofo_bytes > 1400 * (all - 4), "{multipath}: {}", held.ofo_bytes);
        pair.run(Duration::from_secs(1));
        let done = stats(&pair);
        assert!(pair.read[SERVER] == PATTERN[..9_000]);
        assert_eq!((done.ofo_count, done.ofo_peak, done.ofo_now, done.ofo_bytes), (all - 3, all - 3, 0, 0));
        // They came 15 ms after the start and waited until the repetition was there.
        assert!(done.ofo_wait > Duration::from_millis(5) * (all - 3), "{multipath}: {:?}", done.ofo_wait);
    }
}
