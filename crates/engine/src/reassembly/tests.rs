//! The store beside an array of units, and its limits.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

const WIDE: Limits = Limits { bytes: 1 << 20, fragments: 1 << 10 };

fn bytes(start: u64, len: u64) -> Payload {
    (start..start + len).map(|x| x as u8).collect::<Vec<_>>().into()
}

#[test]
fn a_payload_over_several_gaps_fills_each_of_them() {
    let mut r = Reassembly::reporting(WIDE);
    for start in [1000, 3000, 5000] {
        assert_eq!(r.insert(start, bytes(start, 1000)), Some(1000));
    }
    assert_eq!(r.insert(500, bytes(500, 6000)), Some(3000));
    assert_eq!(r.runs().collect::<Vec<_>>(), [(500, 6500)]);
    assert_eq!((r.bytes(), r.fragments()), (6000, 7));
    let mut next = 800;
    while let Some((start, payload)) = r.pop(next) {
        assert_eq!(start, next);
        assert_eq!(payload, bytes(start, payload.len() as u64));
        next += payload.len() as u64;
    }
    assert_eq!((next, r.is_empty(), r.fragments(), r.bytes()), (6500, true, 0, 0));
}

#[test]
fn the_first_sack_block_holds_the_latest_arrival() {
    // RFC 2018 §4, and its second example turned round: every other segment arrives.
    let mut r = Reassembly::reporting(WIDE);
    let mut out = [(0, 0); 4];
    for start in [10, 30, 50, 70, 90] {
        r.insert(start, bytes(start, 10));
    }
    assert_eq!(r.sack_blocks(3, &mut out), 3);
    assert_eq!(out[..3], [(90, 100), (70, 80), (50, 60)]);
    r.insert(20, bytes(20, 5));
    assert_eq!(r.sack_blocks(4, &mut out), 4);
    assert_eq!(out, [(10, 25), (90, 100), (70, 80), (50, 60)]);
    // A copy is also an arrival; the runs it lies in move to the front.
    r.insert(52, bytes(52, 3));
    assert_eq!(r.sack_blocks(2, &mut out), 2);
    assert_eq!(out[..2], [(50, 60), (10, 25)]);
    r.insert(25, bytes(25, 25));
    assert_eq!(r.sack_blocks(4, &mut out), 3);
    assert_eq!(out[..3], [(10, 60), (90, 100), (70, 80)]);
}

#[test]
fn what_is_farthest_makes_room_for_what_is_nearer() {
    let mut r = Reassembly::reporting(Limits { bytes: 20_000, fragments: 3 });
    for start in [10_000, 20_000, 30_000] {
        assert_eq!(r.insert(start, bytes(start, 1000)), Some(1000));
    }
    assert_eq!(r.insert(40_000, bytes(40_000, 1000)), None, "all others are nearer");
    assert_eq!(r.insert(20_500, bytes(20_500, 100)), Some(0), "a copy takes no room");
    assert_eq!((r.dropped(), r.fragments()), (1000, 3));
    // Of two pieces each takes the place of one.
    assert_eq!(r.insert(9000, bytes(9000, 3000)), Some(2000));
    assert_eq!(r.runs().collect::<Vec<_>>(), [(9000, 12_000)]);
    assert_eq!((r.dropped(), r.bytes(), r.fragments()), (3000, 3000, 3));
    // The end of a run goes without the rest of it, for bytes as for fragments.
    assert_eq!(r.insert(1000, bytes(1000, 5000)), Some(5000));
    assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 6000), (9000, 11_000)]);
    assert_eq!(r.insert(10, bytes(10, 17_000)), None, "more than there is room for in front of the rest");
    assert_eq!(r.insert(8000, bytes(8000, 500)), Some(500));
    assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 6000), (8000, 8500), (9000, 10_000)]);
    let taken: Vec<_> = [1000, 8000, 9000].into_iter().map(|at| r.pop(at)).collect();
    assert_eq!(taken, [(1000, 5000), (8000, 500), (9000, 1000)].map(|(at, len)| Some((at, bytes(at, len)))));
    assert!(r.is_empty() && r.bytes() == 0 && r.fragments() == 0);
}

#[test]
fn everything_beyond_an_edge_can_be_dropped() {
    let mut r = Reassembly::reporting(WIDE);
    for start in [1000, 2000, 3000, 5000, 7000] {
        r.insert(start, bytes(start, 1000));
    }
    r.drop_beyond(8000);
    assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 4000), (5000, 6000), (7000, 8000)]);
    r.drop_beyond(3500);
    assert_eq!(r.runs().collect::<Vec<_>>(), [(1000, 3000)]);
    assert_eq!((r.bytes(), r.fragments(), r.dropped()), (2000, 2, 3000));
    r.drop_beyond(0);
    assert!(r.is_empty());
}

/// Single bytes cost as much bookkeeping as segments; once their neighbours are there they cost nothing more.
#[test]
fn small_neighbours_become_one() {
    let mut r = Reassembly::reporting(Limits { bytes: 1 << 20, fragments: 600 });
    let byte = |r: &mut Reassembly, at| assert_eq!(r.insert(at, bytes(at, 1)), Some(1));
    (0..500).for_each(|n| byte(&mut r, 10 + 2 * n));
    assert_eq!(r.fragments(), 500);
    (0..10_000).for_each(|n| byte(&mut r, 2000 + n));
    (0..499).rev().for_each(|n| byte(&mut r, 11 + 2 * n));
    assert_eq!(r.runs().collect::<Vec<_>>(), [(10, 1009), (2000, 12_000)]);
    assert!(r.fragments() as u64 <= 2 * r.bytes() / (2 * LEAST_MEAN) + 2, "{} fragments", r.fragments());
    for (from, to) in [(10, 1009), (2000, 12_000)] {
        let mut next = from;
        while let Some((at, payload)) = r.pop(next) {
            assert_eq!((at, &payload), (next, &bytes(next, payload.len() as u64)));
            next += payload.len() as u64;
        }
        assert_eq!(next, to);
    }
    assert!(r.is_empty() && r.fragments() == 0);
}

/// Segments of a sender that shares our memory count as fragments and take the place of one, in whatever order they
/// come.
#[test]
fn neighbours_of_one_buffer_take_one_place() {
    let stream = bytes(0, 600_000);
    let segment = |n: u64| stream.slice(600 * n as usize..600 * (n as usize + 1));
    let (upwards, downwards): (Vec<u64>, Vec<u64>) = ((0..1000).collect(), (0..1000).rev().collect());
    let alternating = (0..1000).step_by(2).chain((1..1000).step_by(2)).collect();
    for order in [upwards, downwards, alternating] {
        let mut r = Reassembly::new(WIDE);
        order.iter().for_each(|n| assert_eq!(r.insert(600 * n, segment(*n)), Some(600)));
        assert_eq!((r.runs().collect::<Vec<_>>(), r.fragments(), r.chunks), (vec![(0, 600_000)], 1000, 1));
        // The last fragments go one by one, as if each had a place of its own.
        r.drop_beyond(300_000);
        assert_eq!((r.bytes(), r.fragments(), r.dropped()), (300_000, 500, 300_000));
        assert_eq!(r.insert(300_000, segment(500)), Some(600));
        assert_eq!(r.pop(0), Some((0, stream.slice(..300_600))));
        assert!(r.is_empty() && r.bytes() == 0 && r.fragments() == 0 && r.chunks == 0);
    }
    // Those of a subflow have mappings of their own.
    let mut r = Reassembly::reporting(WIDE);
    (0..10).for_each(|n| assert_eq!(r.insert(600 * n, segment(n)), Some(600)));
    assert_eq!((r.fragments(), r.chunks, r.pop(0)), (10, 10, Some((0, segment(0)))));
}

/// A full window of honest segments always has room, out of order as a whole.
#[test]
fn a_buffer_has_room_for_all_that_its_window_admits() {
    for (buffer, segment) in [(6u64 << 20, 496), (64 << 20, 1400), (4096, 64)] {
        let mut r = Reassembly::reporting(Limits::of_buffer(buffer));
        let count = buffer / segment;
        // Every other segment first, so that each stands alone.
        for n in (1..count).step_by(2).chain((2..count).step_by(2)) {
            assert_eq!(r.insert(n * segment, bytes(0, segment)), Some(segment), "{buffer} B, segment {n}");
        }
        assert_eq!((r.bytes(), r.dropped()), ((count - 1) * segment, 0));
    }
}

#[test]
fn chunks_are_reused() {
    let mut r = Reassembly::reporting(WIDE);
    for round in 0..100u64 {
        let at = round * 1000;
        r.insert(at + 500, bytes(at + 500, 500));
        r.insert(at, bytes(at, 500));
        assert!(r.pop(at).is_some() && r.pop(at + 500).is_some());
    }
    assert_eq!(r.slab.len(), 2);
}

/// A slab that a large flight once needed follows what is held since, and what is held stays.
#[test]
fn a_slab_shrinks_when_it_is_four_times_too_large() {
    let mut r = Reassembly::new(WIDE);
    (1..1000).for_each(|n| assert_eq!(r.insert(10 * n, bytes(10 * n, 5)), Some(5)));
    assert!((999..1300).contains(&r.slab.capacity()), "it grows by blocks");
    r.drop_beyond(0);
    // Flights of twenty, each with a hole in the middle.
    let mut flights = 0;
    while r.slab.capacity() > 999 {
        flights += 1;
        let at = 100_000 * flights;
        for n in (1..21).filter(|n| *n != 10) {
            r.insert(at + 600 * n, bytes(at, 600));
        }
        assert_eq!(r.runs().collect::<Vec<_>>(), [(at + 600, at + 6000), (at + 6600, at + 12_600)]);
        for n in (1..21).filter(|n| *n != 10) {
            assert_eq!(r.pop(at + 600 * n), Some((at + 600 * n, bytes(at, 600))));
        }
    }
    assert!(flights < 3000 && r.slab.capacity() >= 19, "{} after {flights}", r.slab.capacity());
    r.release();
    assert_eq!(r.slab.capacity(), 0);
}

#[test]
fn a_subflow_keeps_no_large_slab_once_its_loss_is_repaired() {
    for (mut r, kept) in [(Reassembly::reporting(WIDE), 0..1), (Reassembly::new(WIDE), 500..600)] {
        (1..501).for_each(|n| assert_eq!(r.insert(600 * n, bytes(0, 600)), Some(600)));
        (1..501).for_each(|n| assert_eq!(r.pop(600 * n), Some((600 * n, bytes(0, 600)))));
        assert!(kept.contains(&r.slab.capacity()), "{}", r.slab.capacity());
        assert_eq!((r.insert(600, bytes(0, 600)), r.pop(600)), (Some(600), Some((600, bytes(0, 600)))));
    }
}

#[test]
fn an_end_beyond_the_number_line_is_ignored() {
    assert_eq!(Reassembly::reporting(WIDE).insert(u64::MAX - 3, bytes(0, 10)), None);
}

proptest! {
    /// Positions are in units of bytes, small enough that neighbours are joined or large enough that they are not.
    #[test]
    fn agrees_with_an_array_of_units(
        ops in prop::collection::vec((0u8..5, 0u64..120, 1u64..30), 1..120),
        tight in any::<bool>(),
        unit in prop::sample::select(vec![1u64, 90, 600]),
        shared in any::<bool>(),
    ) {
        // Of fragments in one buffer the borders are not known, so that what makes room is not known to the unit.
        let bytes = (0..160 * unit).map(|at| (at / unit) as u8);
        let stream = (shared && !tight).then(|| Payload::from(bytes.collect::<Vec<_>>()));
        let limits = if tight { Limits { bytes: 60 * unit, fragments: 6 } } else { WIDE };
        let mut r = if stream.is_some() { Reassembly::new(limits) } else { Reassembly::reporting(limits) };
        let mut held = [None::<u8>; 160];
        let (mut next, mut latest) = (0u64, None);
        for (tag, (op, start, len)) in ops.into_iter().enumerate() {
            if next > 120 {
                break;
            }
            if op == 0 {
                // Reading: everything in order from `next`, sometimes after a jump.
                next += start / 40;
                held[..next as usize].fill(None);
                while let Some((at, payload)) = r.pop(next * unit) {
                    prop_assert_eq!(at, next * unit);
                    prop_assert!(!payload.is_empty());
                    for piece in payload.chunks(unit as usize) {
                        let tag = held[next as usize].take().expect("it is held");
                        prop_assert_eq!(piece, vec![tag; unit as usize], "at {}", next);
                        next += 1;
                    }
                }
                prop_assert_eq!(held[next as usize], None);
                latest = None;
                r.compact();
            } else {
                let (start, end) = (start.max(next), start.max(next) + len);
                let missing = (start..end).filter(|&x| held[x as usize].is_none()).count() as u64;
                let payload = match &stream {
                    Some(stream) => stream.slice((start * unit) as usize..(end * unit) as usize),
                    None => vec![tag as u8; (len * unit) as usize].into(),
                };
                let stored = r.insert(start * unit, payload);
                prop_assert!(stored == Some(missing * unit) || (stored.is_none() && tight));
                if stored.is_some() {
                    for at in start..end {
                        held[at as usize].get_or_insert(if stream.is_some() { at as u8 } else { tag as u8 });
                    }
                    latest = Some(end * unit - 1);
                }
                // What made room lies behind the payload, and there is nothing left behind that.
                let edge = r.runs().next_back().map_or(0, |(_, edge)| edge / unit);
                if let Some(lost) = (edge..160).find(|&x| held[x as usize].is_some()) {
                    prop_assert!(tight && lost >= end, "{} went for {}..{}", lost, start, end);
                    held[lost as usize..].fill(None);
                    latest = latest.filter(|_| stored.is_some());
                }
            }
            let mut runs = vec![];
            for x in 0..held.len() as u64 {
                if held[x as usize].is_some() {
                    match runs.last_mut() {
                        Some((_, end)) if *end == x * unit => *end += unit,
                        _ => runs.push((x * unit, (x + 1) * unit)),
                    }
                }
            }
            prop_assert_eq!(r.runs().collect::<Vec<_>>(), runs.clone());
            prop_assert_eq!(r.bytes(), held.iter().flatten().count() as u64 * unit);
            prop_assert!(r.bytes() <= limits.bytes && r.fragments() <= limits.fragments);
            let mut out = [(0, 0); 4];
            let n = r.sack_blocks(4, &mut out);
            prop_assert_eq!(n, runs.len().min(4));
            prop_assert!(out[..n].iter().all(|block| runs.contains(block)));
            prop_assert!((1..n).all(|k| !out[..k].contains(&out[k])));
            if let Some(latest) = latest.filter(|_| stream.is_none()) {
                prop_assert!(out[0].0 <= latest && latest < out[0].1);
            }
        }
    }
}
