//! Effects of each middlebox: data intact or an honest error, the reaction of RFC 8684, and its reason counted.
//!
//! Every run checks each byte itself, and panics if one is wrong (see `pattern`). Exceptions are runs in which a
//! middlebox alters payload; then [`Outcome::altered_bytes`] says how many.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{EcnRule, FallbackReason};
use anabranch_paths::{
    AlterPayload, Coalesce, Direction, DropSyn, EarlyAck, EcnAct, End, MangleEcn, Middlebox, MiddleboxSpec,
    MtuBlackhole, Nat, NetworkError, RewriteSequence, Split, SplitOptions, Strip, Stripped, StrippedOptions, SynOption,
    Unmapped,
};
use anabranch_sim::{EventKind, EventRecord, Host, Outcome, Spec, SpecError, TimedRestart, run};
use anabranch_units::{Bytes, Duration, Instant};
use anabranch_wire::ResetReason;
use common::*;

const CLIENT: usize = 0;
const SERVER: usize = 1;
const BOTH: [Direction; 2] = [Direction::Down, Direction::Up];
const SIZE: u64 = 1_000_000;

/// One path, with these boxes at the client's end.
fn alone(boxes: &[Middlebox], direction: Direction) -> Spec {
    with(&[boxes], direction)
}

/// The first of two paths has the boxes.
fn on_first(boxes: &[Middlebox], direction: Direction) -> Spec {
    with(&[boxes, &[]], direction)
}

/// The second of two paths has the boxes.
fn on_second(boxes: &[Middlebox], direction: Direction) -> Spec {
    with(&[&[], boxes], direction)
}

fn with(paths: &[&[Middlebox]], direction: Direction) -> Spec {
    let path = |(number, boxes): (usize, &&[Middlebox])| {
        let mut path = path(["a", "b"][number], 10, 10 + 5 * number as u64);
        path.middleboxes = boxes.iter().cloned().map(MiddleboxSpec::new).collect();
        path
    };
    spec(paths.iter().enumerate().map(path).collect(), vec![files(direction, &[SIZE], false)])
}

fn fallbacks(outcome: &Outcome) -> [Vec<FallbackReason>; 2] {
    [CLIENT, SERVER].map(|host| outcome.counters[host].fallbacks.keys().copied().collect())
}

fn resets(outcome: &Outcome, host: usize, reason: ResetReason) -> u64 {
    outcome.counters[host].resets_sent.get(&reason).copied().unwrap_or(0)
}

/// Payload bytes that first left on this path.
fn carried(outcome: &Outcome, path: usize) -> u64 {
    let on = outcome.connections[0].subflows.iter().filter(|subflow| subflow.path == path);
    on.map(|subflow| subflow.stats.bytes_first_sent).sum()
}

fn reinjected(outcome: &Outcome) -> u64 {
    outcome.connections[0].sender.as_ref().unwrap().reinjected
}

/// Returns the host that sends the data, and the one that receives it.
fn roles(direction: Direction) -> (usize, usize) {
    match direction {
        Direction::Down => (SERVER, CLIENT),
        Direction::Up => (CLIENT, SERVER),
    }
}

#[test]
fn options_stripped_from_the_handshake_leave_plain_tcp() {
    use FallbackReason::{FirstData, OptionsLost, Syn, SynAck, ThirdAck};
    for (from, client, server) in [
        // from                    what the client sees, what the server sees (RFC 8684 §3.7)
        (Stripped::Syn, SynAck, Syn),
        (Stripped::SynAck, SynAck, ThirdAck),
        (Stripped::ThirdAck, FirstData, ThirdAck),
        (Stripped::All, SynAck, Syn),
        (Stripped::AfterHandshake, FirstData, OptionsLost),
    ] {
        for direction in BOTH {
            for spec in [alone, on_first].map(|spec| spec(&[Middlebox::strip(from)], direction)) {
                let outcome = complete(&spec);
                assert!(!outcome.connections[0].multipath, "{from:?}");
                assert_eq!(fallbacks(&outcome), [vec![client], vec![server]], "{from:?} {direction:?}");
                assert!(outcome.middleboxes[0].altered > 0);
            }
        }
    }
}

#[test]
fn options_stripped_from_a_join_cost_that_subflow_only() {
    for (from, refuses) in [
        // from            who sees that the handshake of MP_JOIN is not one (RFC 8684 §3.2)
        (Stripped::Syn, CLIENT),
        (Stripped::SynAck, CLIENT),
        (Stripped::ThirdAck, SERVER),
        (Stripped::All, CLIENT),
    ] {
        for direction in BOTH {
            let outcome = complete(&on_second(&[Middlebox::strip(from)], direction));
            assert!(outcome.connections[0].multipath, "{from:?}");
            assert_eq!((carried(&outcome, 0), carried(&outcome, 1)), (SIZE, 0), "{from:?} {direction:?}");
            let refused = outcome.counters[refuses].joins_refused;
            assert_eq!((refused, resets(&outcome, refuses, ResetReason::MptcpError)), (1, 1), "{from:?} {direction:?}");
        }
    }
}

/// Data without a mapping on a second subflow: reset, for middlebox interference (RFC 8684 §3.7).
#[test]
fn a_second_path_that_strips_mappings_costs_little() {
    for options in [StrippedOptions::Mptcp, StrippedOptions::Dss] {
        let strip = Middlebox::Strip(Strip { from: Stripped::AfterHandshake, options, after: 0, direction: None });
        let mut spec = on_second(&[strip], Direction::Down);
        spec.workloads = vec![download(5_000_000)];
        spec.record_events = true;
        let alone = complete(&spec.single_path(0)).transfers[0].duration().unwrap();
        let outcome = complete(&spec);
        let both = outcome.transfers[0].duration().unwrap();
        assert!(both < alone.mul_f64(1.05), "{both}, alone {alone}");
        assert!(resets(&outcome, CLIENT, ResetReason::Middlebox) > 0);
        // Of more than four seconds: tried at once, after one and after three.
        let is_join = |event: &&EventRecord| event.path == 1 && event.kind == EventKind::Sent && event.flags == 0x02;
        assert_eq!(outcome.events.unwrap().iter().filter(is_join).count(), 3);
    }
}

/// Uploading, the client never hears of its join's completion and sends nothing there.
#[test]
fn a_join_that_is_never_confirmed_carries_nothing() {
    let outcome = complete(&on_second(&[Middlebox::strip(Stripped::AfterHandshake)], Direction::Up));
    assert_eq!((carried(&outcome, 0), carried(&outcome, 1)), (SIZE, 0));
    assert!(outcome.middleboxes[0].altered > 0);
}

#[test]
fn options_that_stop_getting_through_are_noticed_in_the_middle() {
    let strip =
        Middlebox::Strip(Strip { from: Stripped::All, options: StrippedOptions::Mptcp, after: 100, direction: None });
    for direction in BOTH {
        let outcome = complete(&alone(std::slice::from_ref(&strip), direction));
        assert_eq!(fallbacks(&outcome), [(); 2].map(|()| vec![FallbackReason::OptionsLost]));

        for spec in [on_first, on_second].map(|spec| spec(std::slice::from_ref(&strip), direction)) {
            let outcome = complete(&spec);
            let (_, receiver) = roles(direction);
            assert_eq!(resets(&outcome, receiver, ResetReason::Middlebox), 1, "{direction:?}");
            assert!(outcome.connections[0].multipath && reinjected(&outcome) > 0, "what it carried goes elsewhere");
        }
    }
}

#[test]
fn an_address_whose_announcement_is_dropped_is_not_joined() {
    let subflows = |boxes: &[Middlebox], direction| {
        let mut spec = alone(boxes, direction);
        spec.server.addresses = 2;
        let outcome = complete(&spec);
        let dropped = outcome.middleboxes.first().map_or(0, |middlebox| middlebox.altered);
        (outcome.connections[0].subflows.len(), outcome.connections[0].multipath, dropped)
    };
    for direction in BOTH {
        assert_eq!(subflows(&[], direction), (2, true, 0));
        for options in [StrippedOptions::AddAddr, StrippedOptions::Control] {
            let strip =
                Middlebox::Strip(Strip { from: Stripped::All, options, after: 0, direction: Some(Direction::Down) });
            // Without its echo, ADD_ADDR is repeated (RFC 8684 §3.4.1), as long as the connection lasts and three times
            // at most.
            let (subflows, multipath, dropped) = subflows(&[strip], direction);
            assert_eq!((subflows, multipath), (1, true), "{options:?}");
            assert!((2..=3).contains(&dropped), "{dropped}");
        }
    }
}

/// Mappings count from the subflow's first byte for this very reason (RFC 8684 §3.3.1). The run is the same to the
/// nanosecond, which it would not be if a SACK block kept the other side's numbers.
#[test]
fn other_sequence_numbers_change_nothing() {
    for direction in BOTH {
        for place in [alone, on_first, on_second] {
            let lossy = |boxes: &[Middlebox]| {
                let mut spec = place(boxes, direction);
                for path in &mut spec.network.paths {
                    path.down.loss = anabranch_net::LossModel::Bernoulli { p: 0.02 };
                    path.up.loss = anabranch_net::LossModel::Bernoulli { p: 0.02 };
                }
                complete(&spec)
            };
            let (without, rewritten) = (lossy(&[]), lossy(&[Middlebox::RewriteSequence(RewriteSequence)]));
            assert!(rewritten.middleboxes[0].altered > 0 && rewritten.connections[0].multipath);
            assert_eq!(rewritten.transfers, without.transfers);
            let lost =
                |outcome: &Outcome| outcome.connections[0].subflows.iter().map(|s| s.stats.retransmitted).sum::<u64>();
            assert!(lost(&rewritten) > 0 && lost(&rewritten) == lost(&without));
        }
    }
}

/// One mapping over several segments, each with it or only the first (RFC 8684 §3.3.1).
#[test]
fn segments_that_are_cut_stay_multipath() {
    for options in [SplitOptions::Copied, SplitOptions::First] {
        for direction in BOTH {
            let split = Middlebox::Split(Split { size: 536, options, direction: None });
            for spec in [alone, on_first, on_second].map(|spec| spec(std::slice::from_ref(&split), direction)) {
                let outcome = complete(&spec);
                // 1420 bytes are three pieces.
                assert!(outcome.middleboxes[0].altered > 500, "{:?}", outcome.middleboxes);
                assert!(outcome.connections[0].multipath, "{options:?}");
                assert_eq!(fallbacks(&outcome), [vec![], vec![]], "{options:?}");
                assert!(outcome.counters.iter().all(|counters| counters.resets_sent.is_empty()));
                let paths = spec.network.paths.len();
                assert!((0..paths).all(|path| carried(&outcome, path) > SIZE / 10), "every path is used");
            }
        }
    }
}

/// Of two mappings one is lost with its segment's options: the bytes under it have none (RFC 8684 §3.7).
#[test]
fn merged_segments_lose_a_mapping_and_that_is_noticed() {
    let coalesce = Middlebox::Coalesce(Coalesce { size: 2920, wait: ms(2), direction: None });
    for direction in BOTH {
        let outcome = complete(&alone(std::slice::from_ref(&coalesce), direction));
        assert!(outcome.middleboxes[0].altered > 0);
        let (_, receiver) = roles(direction);
        assert_eq!(fallbacks(&outcome)[receiver], [FallbackReason::OptionsLost], "{direction:?}");
        assert!(!outcome.connections[0].multipath);

        let outcome = complete(&on_second(std::slice::from_ref(&coalesce), direction));
        assert_eq!(resets(&outcome, receiver, ResetReason::Middlebox), 1, "{direction:?}");
        assert!(outcome.connections[0].multipath && reinjected(&outcome) > 0);
    }
    // On the first path it happens before there is a second subflow: the join is given up.
    let outcome = complete(&on_first(&[coalesce], Direction::Down));
    let followed = [FallbackReason::OptionsLost, FallbackReason::InfiniteMapping];
    assert_eq!(fallbacks(&outcome), followed.map(|reason| vec![reason]));
    assert_eq!(resets(&outcome, CLIENT, ResetReason::MptcpError), 1);
}

/// Small segments, where a merged one is no larger than a full one: two halves of a packet meet again.
#[test]
fn pieces_that_are_merged_again_are_as_before() {
    let split = Middlebox::Split(Split { size: 710, options: SplitOptions::First, direction: Some(Direction::Down) });
    let coalesce = Middlebox::Coalesce(Coalesce { size: 1420, wait: ms(2), direction: Some(Direction::Down) });
    let mut spec = alone(&[coalesce], Direction::Down);
    spec.network.paths[0].middleboxes.push(MiddleboxSpec::at_server(split));
    let outcome = complete(&spec);
    assert!(outcome.middleboxes.iter().all(|middlebox| middlebox.altered > 500), "{:?}", outcome.middleboxes);
    assert!(outcome.connections[0].multipath);
}

/// Altered payload goes unseen without the DSS checksum (RFC 8684 §3.3): the application reads other bytes, as with
/// plain TCP, and only the simulator, which knows the written bytes, can count them.
#[test]
fn altered_payload_goes_unseen_without_a_checksum() {
    let alter =
        |remove, insert| Middlebox::AlterPayload(AlterPayload { offset: 50_000, remove, insert, direction: None });
    for direction in BOTH {
        for spec in [alone, on_first, on_second].map(|spec| spec(&[alter(4, 4)], direction)) {
            let outcome = complete(&spec);
            assert_eq!((outcome.altered_bytes, outcome.middleboxes[0].altered), (4, 1), "{direction:?}");
            assert!(outcome.connections[0].multipath);
        }
        // With plain TCP as well, so that it is nothing that MPTCP could be blamed for.
        let mut plain = alone(&[alter(4, 4)], direction);
        (plain.client.config.multipath, plain.server.config.multipath) = (false, false);
        assert_eq!(complete(&plain).altered_bytes, 4);
    }
}

/// The same with the checksum: on the only subflow the receiver says MP_FAIL and both go on as plain TCP, which reads
/// what the box wrote, as a stock kernel does (RFC 8684 §3.7); on one of two the subflow is reset and nothing wrong is
/// read.
#[test]
fn altered_payload_is_seen_with_a_checksum() {
    for (remove, insert) in [(4, 4), (4, 8), (8, 4)] {
        // Behind the join, which must be through when there is a choice between it and plain TCP.
        let alter = [Middlebox::AlterPayload(AlterPayload { offset: 200_000, remove, insert, direction: None })];
        for direction in BOTH {
            let (sender, receiver) = roles(direction);
            let checked = |mut spec: Spec| {
                spec.client.config.checksum = true;
                spec.stop = Duration::from_secs(100);
                run(&spec).unwrap()
            };
            let outcome = checked(alone(&alter, direction));
            assert_eq!(outcome.counters[receiver].checksum_failures, 1, "{remove} {insert} {direction:?}");
            assert_eq!(
                fallbacks(&outcome)[receiver],
                [FallbackReason::ChecksumFailed],
                "{remove} {insert} {direction:?}"
            );
            assert_eq!(fallbacks(&outcome)[sender], [FallbackReason::PeerFailed], "{remove} {insert} {direction:?}");
            assert!(outcome.altered_bytes > 0 && !outcome.connections[0].multipath);

            for spec in [on_first, on_second].map(|spec| spec(&alter, direction)) {
                let outcome = checked(spec);
                let what = format!("{remove} {insert} {direction:?} {:?}", outcome.counters);
                assert!(outcome.finished && outcome.altered_bytes == 0, "{what}");
                assert!(outcome.counters[receiver].checksum_failures > 0, "{what}");
                assert!(outcome.counters[sender].fails_received > 0, "{what}");
                assert!(resets(&outcome, receiver, ResetReason::Middlebox) > 0, "{what}");
                assert!(outcome.connections[0].multipath && reinjected(&outcome) > 0, "{what}");
            }
        }
    }
}

/// Altered payload is read as plain TCP if the other host had restarted by then; the transfer ends there.
#[test]
fn altered_payload_is_read_as_plain_tcp_after_a_restart() {
    let mut spec = alone(
        &[Middlebox::AlterPayload(AlterPayload { offset: 100, remove: 4, insert: 4, direction: None })],
        Direction::Down,
    );
    spec.client.config.checksum = true;
    // The first data is under way.
    spec.restarts = vec![TimedRestart { at: ms(35), host: Host::Server }];
    spec.stop = Duration::from_secs(100);
    let outcome = run(&spec).unwrap();
    assert!(!outcome.finished && outcome.altered_bytes == 4, "{} {}", outcome.finished, outcome.altered_bytes);
    assert!(!outcome.connections[0].multipath);
}

/// Inserted bytes have no mapping, which is noticed even without a checksum: the connection becomes plain TCP, which
/// reads the bytes of the box.
#[test]
fn inserted_bytes_have_no_mapping() {
    let alter = Middlebox::AlterPayload(AlterPayload { offset: 50_000, remove: 4, insert: 8, direction: None });
    for direction in BOTH {
        let outcome = complete(&alone(std::slice::from_ref(&alter), direction));
        assert_eq!(outcome.middleboxes[0].altered, 1);
        let (_, receiver) = roles(direction);
        assert_eq!(fallbacks(&outcome)[receiver], [FallbackReason::OptionsLost], "{direction:?}");
        assert!(outcome.altered_bytes >= 8);
    }
}

/// An acknowledgment of the subflow does not mean that the peer has the data: only a DATA_ACK frees them (RFC 8684
/// §3.3.2). Here nothing is lost, and a sender takes the proxy's acknowledgments for what they are.
#[test]
fn early_acknowledgments_do_no_harm() {
    for direction in BOTH {
        let proxy = Middlebox::EarlyAck(EarlyAck { delay: ms(1), lose: 0, direction: Some(direction) });
        let far = if direction == Direction::Up { End::Server } else { End::Client };
        for (place, path) in [(alone as fn(&[Middlebox], Direction) -> Spec, 0), (on_first, 0), (on_second, 1)] {
            let mut spec = place(&[], direction);
            spec.network.paths[path].middleboxes = vec![MiddleboxSpec { kind: proxy.clone(), end: far }];
            let outcome = complete(&spec);
            assert!(outcome.middleboxes[0].made > 100, "{:?}", outcome.middleboxes);
            assert!(outcome.connections[0].multipath, "{direction:?}");
        }
        // The proxy beside the sender: the round trip that it sees is the proxy's. A round trip's worth of
        // acknowledgments without DSS is no reason to fall back (§3.7): those with it come later.
        let near = if direction == Direction::Up { End::Client } else { End::Server };
        let mut spec = alone(&[], direction);
        spec.network.paths[0].middleboxes = vec![MiddleboxSpec { kind: proxy, end: near }];
        let outcome = complete(&spec);
        let srtt = outcome.connections[0].subflows[0].stats.srtt.unwrap();
        assert!(srtt < ms(5), "{srtt} over a path of 20 ms");
        assert!(outcome.connections[0].multipath && fallbacks(&outcome) == [vec![], vec![]], "{direction:?}");
    }
}

/// Data that the proxy loses after having acknowledged it leaves a hole in the subflow. The sender has kept the data,
/// sends all that the subflow carried behind the hole on the other one, and no byte is missing.
#[test]
fn what_was_acknowledged_and_lost_is_sent_again_elsewhere() {
    for (place, path, direction) in [
        (on_first as fn(&[Middlebox], Direction) -> Spec, 0, Direction::Down),
        (on_second, 1, Direction::Down),
        (on_second, 1, Direction::Up),
    ] {
        let proxy = Middlebox::EarlyAck(EarlyAck { delay: ms(1), lose: 50, direction: Some(direction) });
        let outcome = complete(&place(std::slice::from_ref(&proxy), direction));
        assert!(outcome.middleboxes[0].dropped > 3, "{:?}", outcome.middleboxes);
        assert!(outcome.connections[0].multipath);
        let repeated: u64 = outcome.connections[0]
            .subflows
            .iter()
            .map(|it| if it.path == path { 0 } else { it.stats.reinjected })
            .sum();
        assert!(repeated > 50 * 1420, "{repeated}");
        assert!(outcome.end.since(Instant::ZERO) < Duration::from_secs(2), "{}", outcome.end);
        // And if that goes on, the subflow is given up again and again, less and less often: at the fourth time that it
        // has acknowledged what never came. From one to the next the sender gets no further than a send buffer.
        let mut long = place(&[proxy], direction);
        for host in [&mut long.client, &mut long.server] {
            host.config.send_buffer = Bytes::new(6 << 20);
            host.config.receive_buffer = Bytes::new(6 << 20);
        }
        let size = 4 * long.server.config.send_buffer.get();
        long.workloads = vec![files(direction, &[size], false)];
        let alone = complete(&long.single_path(1 - path)).transfers[0].duration().unwrap();
        let outcome = complete(&long);
        let took = outcome.transfers[0].duration().unwrap();
        assert!(took < alone.mul_f64(1.5), "{took}, {alone} alone");
        assert!(resets(&outcome, roles(direction).0, ResetReason::Middlebox) > 0);
    }
}

/// Data lost after its acknowledgment on the only path arrives, or the sender gives up; plain TCP would have lost it
/// for good. The subflow that acknowledged it is reset, and another joins over the same path: the rest arrives, or
/// after a few the sender gives up and says so. Missing data is never reported as delivered.
#[test]
fn what_was_acknowledged_and_lost_on_the_only_path_arrives_or_is_an_error() {
    let mut arrived = 0;
    for direction in BOTH {
        let mut spec =
            alone(&[Middlebox::EarlyAck(EarlyAck { delay: ms(1), lose: 50, direction: Some(direction) })], direction);
        spec.stop = Duration::from_secs(3000);
        let outcome = run(&spec).unwrap();
        assert!(outcome.quiet && outcome.end.since(Instant::ZERO) < spec.stop, "{}", outcome.end);
        assert!(outcome.connections[0].multipath, "{direction:?}");
        assert!(resets(&outcome, roles(direction).0, ResetReason::Middlebox) > 3, "{direction:?}");
        assert_eq!(outcome.finished, outcome.transfers[0].bytes == SIZE);
        let sender = outcome.connections[0].sender.as_ref().unwrap();
        assert_eq!(outcome.finished, sender.ended.is_none(), "{:?}", sender.ended);
        arrived += u32::from(outcome.finished);
    }
    assert!(arrived > 0);
}

#[test]
fn another_address_and_other_ports_change_nothing() {
    let nat = Middlebox::Nat(Nat { rebind: None, unmapped: Unmapped::Dropped });
    for direction in BOTH {
        for place in [alone, on_first, on_second] {
            let (without, translated) =
                (complete(&place(&[], direction)), complete(&place(std::slice::from_ref(&nat), direction)));
            assert!(translated.middleboxes[0].altered > 0 && translated.connections[0].multipath);
            assert_eq!(translated.transfers, without.transfers);
        }
        let outcome = complete(&alone(std::slice::from_ref(&nat), Direction::Down));
        let seen = outcome.connections[0].subflows[0].stats.remote;
        assert_ne!(seen.ip(), std::net::IpAddr::from([10, 0, 0, 1]), "the server sees another client");
    }
}

/// A mapping that is lost makes the client's segments those of a stranger, which the server resets; MPTCP joins anew
/// (RFC 8684 §3.2, break before make) or goes on with its other subflow.
#[test]
fn a_connection_survives_the_loss_of_its_nat_mapping() {
    for unmapped in [Unmapped::Dropped, Unmapped::Reset] {
        let nat = Middlebox::Nat(Nat { rebind: Some(ms(400)), unmapped });
        for direction in BOTH {
            for spec in [on_first, on_second].map(|spec| spec(std::slice::from_ref(&nat), direction)) {
                let outcome = complete(&spec);
                assert!(outcome.middleboxes[0].dropped > 0);
                assert!(outcome.counters[CLIENT].resets_received > 0, "{unmapped:?} {direction:?}");
                assert!(outcome.counters[SERVER].unknown_flow > 0, "{unmapped:?} {direction:?}");
                assert!(outcome.end.since(Instant::ZERO) < Duration::from_secs(2), "{}", outcome.end);
            }
        }
        // With nothing else: the uploading client hears of it and joins again after a second.
        let outcome = complete(&alone(std::slice::from_ref(&nat), Direction::Up));
        let before = |subflow: &&anabranch_sim::SubflowOutcome| subflow.stats.bytes_first_sent > 0;
        assert_eq!(outcome.connections[0].subflows.iter().filter(before).count(), 2, "one before, one after");
    }
}

/// A client that only listens does not learn that nothing can reach it any more; its server gives up, and says so.
#[test]
fn a_lost_mapping_without_traffic_from_inside_is_an_honest_error() {
    for (unmapped, seconds, reason) in [(Unmapped::Dropped, 1200, 1), (Unmapped::Reset, 100, 0)] {
        let mut spec = alone(&[Middlebox::Nat(Nat { rebind: Some(ms(400)), unmapped })], Direction::Down);
        spec.stop = Duration::from_secs(seconds);
        let outcome = run(&spec).unwrap();
        assert!(!outcome.finished && outcome.transfers[0].bytes < SIZE);
        assert_eq!(resets(&outcome, SERVER, ResetReason::UnacceptablePerformance), reason, "{unmapped:?}");
        assert_eq!(outcome.counters[SERVER].resets_received, 1 - reason, "{unmapped:?}");
        assert!(outcome.end.since(Instant::ZERO) < spec.stop, "the server has given up");
    }
}

#[test]
fn a_path_that_swallows_large_packets_is_left_for_the_other() {
    for direction in BOTH {
        let hole = Middlebox::MtuBlackhole(MtuBlackhole { size: 1000, from: ms(300), direction: Some(direction) });
        for spec in [on_first, on_second].map(|spec| spec(std::slice::from_ref(&hole), direction)) {
            let outcome = complete(&spec);
            assert!(outcome.middleboxes[0].dropped > 0 && reinjected(&outcome) > 0, "{direction:?}");
            let rtos: u64 = outcome.connections[0].subflows.iter().map(|subflow| subflow.stats.rtos).sum();
            assert!(rtos > 0, "nothing but its timer can tell the sender");
            assert!(outcome.end.since(Instant::ZERO) < Duration::from_secs(3), "{}", outcome.end);
        }
    }
}

/// With one path the sender gives up, for it does not search for a size that passes (RFC 4821); it does not hang.
#[test]
fn the_only_path_swallowing_large_packets_is_an_honest_error() {
    for direction in BOTH {
        let mut spec =
            alone(&[Middlebox::MtuBlackhole(MtuBlackhole { size: 1000, from: ms(300), direction: None })], direction);
        spec.client.config.rejoin = None;
        spec.stop = Duration::from_secs(3000);
        let outcome = run(&spec).unwrap();
        assert!(!outcome.finished && outcome.middleboxes[0].dropped > 15, "{:?}", outcome.middleboxes);
        assert!(outcome.end.since(Instant::ZERO) < spec.stop, "the sender gives up");
        let (sender, _) = roles(direction);
        assert_eq!(resets(&outcome, sender, ResetReason::UnacceptablePerformance), 1, "{direction:?}");
    }
}

/// SYNs with MP_CAPABLE that are never answered are followed by one without (RFC 8684 §3.7).
#[test]
fn a_syn_without_the_option_follows_those_that_are_dropped() {
    for direction in BOTH {
        for spec in
            [alone, on_first].map(|spec| spec(&[Middlebox::DropSyn(DropSyn { option: SynOption::Capable })], direction))
        {
            let outcome = complete(&spec);
            assert_eq!(outcome.middleboxes[0].dropped, 3, "the first, and two repetitions as Linux has them");
            assert_eq!(fallbacks(&outcome), [vec![FallbackReason::SynLost], vec![FallbackReason::Syn]]);
            assert_eq!(outcome.connections[0].subflows.len(), 1);
        }
    }
}

#[test]
fn joins_that_are_dropped_leave_the_first_subflow_alone() {
    for direction in BOTH {
        let outcome = complete(&on_second(&[Middlebox::DropSyn(DropSyn { option: SynOption::Join })], direction));
        assert!(outcome.middleboxes[0].dropped > 0);
        assert_eq!((carried(&outcome, 0), carried(&outcome, 1)), (SIZE, 0));
        assert!(outcome.connections[0].multipath);
    }
}

/// A line of boxes, some at either end, that MPTCP was designed to pass (RFC 8684 §6).
#[test]
fn boxes_are_combined() {
    for direction in BOTH {
        let nat = Middlebox::Nat(Nat { rebind: None, unmapped: Unmapped::Reset });
        let split = Middlebox::Split(Split { size: 600, options: SplitOptions::Copied, direction: None });
        let mut spec = on_first(&[nat.clone(), Middlebox::RewriteSequence(RewriteSequence)], direction);
        spec.network.paths[0].middleboxes.extend([split, nat].map(MiddleboxSpec::at_server));
        let outcome = complete(&spec);
        let names: Vec<_> = outcome.middleboxes.iter().map(|middlebox| middlebox.name.as_str()).collect();
        assert_eq!(names, ["a/nat", "a/rewrite-sequence", "a/split", "a/nat-2"]);
        assert!(outcome.middleboxes.iter().all(|middlebox| middlebox.altered > 0), "{:?}", outcome.middleboxes);
        assert!(outcome.connections[0].multipath && fallbacks(&outcome) == [vec![], vec![]]);
    }
}

/// TCP Small Queues counts the packets that the host sent: packets made by a box do not fill up the first hop, and the
/// host does not wait for packets that a box has dropped.
#[test]
fn a_host_hears_of_the_departure_of_what_it_sent() {
    let hole = Middlebox::MtuBlackhole(MtuBlackhole { size: 1000, from: ms(100), direction: None });
    let strip =
        Middlebox::Strip(Strip { from: Stripped::All, options: StrippedOptions::Mptcp, after: 5, direction: None });
    let split = Middlebox::Split(Split { size: 536, options: SplitOptions::Copied, direction: None });
    for (kind, paths) in [(split, 1), (strip, 1), (hole, 2)] {
        for direction in BOTH {
            let mut spec = if paths == 1 { alone(&[], direction) } else { on_first(&[], direction) };
            let end = if direction == Direction::Up { End::Client } else { End::Server };
            spec.network.paths[0].middleboxes = vec![MiddleboxSpec { kind: kind.clone(), end }];
            spec.workloads = vec![files(direction, &[3 * SIZE], false)];
            let without = complete(&spec).transfers[0].duration().unwrap();
            for path in &mut spec.network.paths {
                path.nic = Some(anabranch_units::Rate::from_mbps(1000));
            }
            let took = complete(&spec).transfers[0].duration().unwrap();
            assert!(took < without.mul_f64(1.1), "{kind:?} {direction:?}: {took}, {without} without interfaces");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |kind: Middlebox| run(&alone(&[kind], Direction::Down)).unwrap_err();
    let split = refusal(Middlebox::Split(Split { size: 0, options: SplitOptions::Copied, direction: None }));
    assert!(matches!(split, SpecError::Network(NetworkError::Middlebox { .. })));
    assert_eq!(split.to_string(), "a/split: a piece holds at least one byte");
    refusal(Middlebox::EarlyAck(EarlyAck { delay: Duration::ZERO, lose: 0, direction: None }));
    refusal(Middlebox::AlterPayload(AlterPayload { offset: 0, remove: 0, insert: 0, direction: None }));
    refusal(Middlebox::MtuBlackhole(MtuBlackhole { size: 67, from: Duration::ZERO, direction: None }));
}

/// The peer takes the third ACK of a join and holds the subflow for open; its answers never say so here. The host that
/// gives the join up resets it, or the peer would keep the subflow, and refuse others in its place.
#[test]
fn a_join_that_is_given_up_is_reset() {
    let boxes = [Middlebox::Strip(Strip {
        from: Stripped::AfterHandshake,
        options: StrippedOptions::Mptcp,
        after: 0,
        direction: Some(Direction::Down),
    })];
    let mut spec = on_second(&boxes, Direction::Up);
    spec.network.paths[0] = path("a", 1, 10);
    spec.workloads = vec![files(Direction::Up, &[600_000], false)]; // 5 s; a join is given up after 3.
    let outcome = complete(&spec);
    assert_eq!(resets(&outcome, CLIENT, ResetReason::Middlebox), 1);
    assert_eq!(outcome.counters[SERVER].reset_reasons_received.get(&ResetReason::Middlebox), Some(&1));
}

/// A second subflow on the only path rules plain TCP out, and no DATA_ACK ever comes through: each subflow is reset for
/// it and joined anew. After a few without any progress the connection is given up.
#[test]
fn a_path_that_lets_no_data_ack_through_is_given_up() {
    let boxes = [Middlebox::Strip(Strip {
        from: Stripped::AfterHandshake,
        options: StrippedOptions::Mptcp,
        after: 0,
        direction: Some(Direction::Up),
    })];
    let mut spec = alone(&boxes, Direction::Down);
    spec.server.addresses = 2;
    spec.server.config.send_buffer = Bytes::new(40_000);
    spec.stop = Duration::from_secs(3600);
    let outcome = run(&spec).unwrap();
    assert!(!outcome.finished && outcome.quiet, "ended at {}", outcome.end);
    let given_up = resets(&outcome, SERVER, ResetReason::Middlebox);
    assert!((2..20).contains(&given_up), "{given_up}");
    assert!(outcome.end < Instant::ZERO + Duration::from_secs(200), "{}", outcome.end);
}

/// The peer falls back while the third ACK of a join is on its way to it: it resets the join and never counted on it,
/// so we can follow.
#[test]
fn a_join_that_the_peer_never_counted_does_not_keep_us_from_following_it() {
    let boxes = [Middlebox::Strip(Strip {
        from: Stripped::AfterHandshake,
        options: StrippedOptions::Mptcp,
        after: 0,
        direction: Some(Direction::Up),
    })];
    for up in [300, 500, 900] {
        let mut spec = on_first(&boxes, Direction::Down);
        (spec.network.paths[0].down.delay, spec.network.paths[0].up.delay) =
            (Duration::from_millis(200), Duration::from_millis(1));
        (spec.network.paths[1].down.delay, spec.network.paths[1].up.delay) =
            (Duration::from_millis(2), Duration::from_millis(up));
        let outcome = complete(&spec);
        assert_eq!(fallbacks(&outcome)[CLIENT], [FallbackReason::InfiniteMapping], "{up} ms");
    }
}

/// Whatever a box does to marks or to what asks for and reports them, everything arrives; and only where each packet is
/// marked, and the feedback is too coarse to see that it cannot be, is it slow.
#[test]
fn marks_that_are_mangled_do_no_harm() {
    use EcnAct::*;
    for act in [Bleach, MarkAll, SetEct0, SetEct1, Invert, ClearSynFlags, ClearFlags, DropSyn] {
        for rule in [EcnRule::CLASSIC, EcnRule::ACCURATE] {
            for direction in BOTH {
                let run = |boxes: &[Middlebox]| {
                    let mut spec = alone(boxes, Direction::Down);
                    for host in [&mut spec.client.config, &mut spec.server.config] {
                        host.profile.ecn = rule;
                    }
                    let outcome = complete(&spec);
                    let seconds = outcome.transfers[0].duration().unwrap().as_secs_f64();
                    (seconds, outcome)
                };
                let (usual, _) = run(&[]);
                let (seconds, outcome) = run(&[MangleEcn { act, direction: Some(direction) }.into()]);
                let reductions = outcome.connections[0].subflows[0].stats.mark_reductions;
                println!("{act:?} {rule:?} {direction:?}: {seconds:.2} of {usual:.2} s, {reductions} reductions");
                let slow = rule == EcnRule::CLASSIC && act == MarkAll && direction == Direction::Down;
                assert_eq!(reductions > 5, slow, "{act:?} {rule:?} {direction:?}");
                // One that drops what asks or agrees takes two repetitions.
                let most = 1.3 * usual + if act == DropSyn { 3.2 } else { 0.0 };
                assert!(slow || seconds < most, "{act:?} {rule:?} {direction:?}: {seconds}");
            }
        }
    }
}
