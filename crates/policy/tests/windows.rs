//! Properties of every receive-window policy of the registry: it answers alike to the same history, never stalls a
//! connection, ignores facts outside its input, and lets every transfer finish.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_policy::receive_window::{Buffers, ReceiveWindow, Usage};
use anabranch_policy::registry::WINDOWS;
use anabranch_units::{Bytes, Duration, Instant, Seed, SubflowId};
use common::{Build, each_setting};
use proptest::prelude::*;
use std::collections::VecDeque;

const MSS: u64 = 1000;

/// Each policy, with its defaults, with every flag turned over, and with every number at both ends of its range.
fn each_policy() -> Vec<(String, Build<dyn ReceiveWindow>)> {
    each_setting(WINDOWS)
}

// Random moments.

#[derive(Clone, Debug)]
struct Moment {
    later_by: Duration,
    buffers: Buffers,
    usage: Vec<Usage>,
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let amount = || prop_oneof![1 => Just(0u64), 4 => 0u64..60_000, 1 => 0u64..10_000_000];
    let srtt = prop_oneof![Just(0u64), 1u64..2_000, 0u64..3_000_000];
    (1u64..1500, srtt, amount(), amount(), amount(), amount()).prop_map(
        |(mss, srtt, cwnd, outstanding, unacked, acked)| Usage {
            id: SubflowId(0),
            mss: Bytes::new(mss),
            srtt: Duration::from_micros(srtt),
            cwnd: Bytes::new(cwnd),
            outstanding: Bytes::new(outstanding),
            unacked: Bytes::new(unacked),
            acked,
        },
    )
}

fn any_moment() -> impl Strategy<Value = Moment> {
    let subflows = prop::collection::btree_map(0u16..8, any_usage(), 1..6).prop_map(|subflows| {
        subflows.into_iter().map(|(id, usage)| Usage { id: SubflowId(id), ..usage }).collect::<Vec<_>>()
    });
    let idle = prop::bool::weighted(0.2);
    (0u64..300_000, 0u64..300_000, 0u64..300_000, 1u64..300_000, subflows, idle).prop_map(
        |(later_by, window, more, send, mut usage, idle)| {
            for one in usage.iter_mut().filter(|_| idle) {
                (one.outstanding, one.unacked) = (Bytes::ZERO, Bytes::ZERO);
            }
            let buffers =
                Buffers { window: Bytes::new(window), receive: Bytes::new(window + more), send: Bytes::new(send) };
            Moment { later_by: Duration::from_micros(later_by), buffers, usage }
        },
    )
}

proptest! {
    #[test]
    fn answers_repeat_and_an_idle_connection_may_always_begin(moments in prop::collection::vec(any_moment(), 1..30)) {
        for (name, build) in each_policy() {
            let (mut one, mut other) = (build(), build());
            let mut now = Instant::ZERO;
            for moment in &moments {
                now += moment.later_by;
                let mut shares = vec![Bytes::ZERO; moment.usage.len()];
                // The previous content of the answer does not matter.
                let mut again = vec![Bytes::new(77); moment.usage.len()];
                one.share(now, &moment.buffers, &moment.usage, &mut shares);
                other.share(now, &moment.buffers, &moment.usage, &mut again);
                prop_assert_eq!(&shares, &again, "{}", &name);
                // Asked twice at the same moment, it has learnt nothing new.
                one.share(now, &moment.buffers, &moment.usage, &mut again);
                prop_assert_eq!(&shares, &again, "{}: asked twice", &name);
                other.share(now, &moment.buffers, &moment.usage, &mut again);
                let idle = moment.usage.iter().all(|one| one.unacked.is_zero() && one.outstanding.is_zero());
                if idle && !moment.buffers.window.is_zero() {
                    prop_assert!(shares.iter().any(|share| !share.is_zero()), "{name}: nothing may ever leave");
                }
            }
        }
    }

    /// A policy that splits gives idle subflows no more than the window, up to one byte of rounding each.
    #[test]
    fn shares_of_idle_subflows_add_up_to_the_window_at_most(mut moment in any_moment()) {
        for one in &mut moment.usage {
            (one.outstanding, one.unacked) = (Bytes::ZERO, Bytes::ZERO);
        }
        moment.buffers.window = moment.buffers.receive;
        let splits_nothing =
            |name: &str| name.starts_with("shared") || name.contains("\"receive\": Flag(false)");
        for (name, build) in each_policy().into_iter().filter(|(name, _)| !splits_nothing(name)) {
            let mut shares = vec![Bytes::ZERO; moment.usage.len()];
            build().share(Instant::ZERO, &moment.buffers, &moment.usage, &mut shares);
            let total: u64 = shares.iter().map(|share| share.get()).sum();
            prop_assert!(total <= moment.buffers.receive.get() + shares.len() as u64, "{name}: {shares:?}");
        }
    }

    /// Subflows that are alike in all but name get alike.
    #[test]
    fn equals_are_treated_equally(moment in any_moment(), n in 2usize..6) {
        let usage: Vec<_> = (0..n).map(|id| Usage { id: SubflowId(id as u16), ..moment.usage[0] }).collect();
        for (name, build) in each_policy() {
            let mut shares = vec![Bytes::ZERO; n];
            build().share(Instant::ZERO, &moment.buffers, &usage, &mut shares);
            prop_assert!(shares.iter().all(|share| *share == shares[0]), "{name}: {shares:?}");
        }
    }

    /// A transfer over a toy network ends on any paths: no share stays zero for good.
    #[test]
    fn every_transfer_finishes(seed in any::<u64>()) {
        for (name, build) in each_policy() {
            prop_assert!(transfer(&mut *build().policy, seed), "{name}: seed {seed} stands still");
        }
    }
}

// A toy connection: segments go over paths of constant delay, some are lost and repeated on their own path a timeout
// later; the receiver acknowledges what is in order. No more is modelled than what a share depends on.

struct Path {
    delay: u64,
    cwnd: u64,
    /// Arrival time and number of each segment; in the order of sending.
    under_way: VecDeque<(u64, u64)>,
    /// Segments that the subflow has acknowledged.
    acked: u64,
}

/// Returns true if `TOTAL` segments are delivered.
fn transfer(policy: &mut dyn ReceiveWindow, seed: u64) -> bool {
    const TOTAL: u64 = 300;
    let mut draw = Seed(seed).stream("windows");
    let buffer = MSS * draw.between(1, 60) + draw.below(MSS);
    let send = MSS * draw.between(1, 200);
    let mut paths: Vec<Path> = (0..draw.between(2, 4))
        .map(|_| Path { delay: draw.between(1, 200), cwnd: draw.between(1, 30), under_way: VecDeque::new(), acked: 0 })
        .collect();
    let loss = draw.unit() * 0.2;
    // By segment: the path that carried it first, and whether it has arrived.
    let mut segments: Vec<(usize, bool)> = Vec::new();
    let mut una = 0;
    for now in 0..1_000_000u64 {
        for path in &mut paths {
            // Arrival and acknowledgment at once: the delay is that of the round trip.
            while path.under_way.front().is_some_and(|(at, _)| *at <= now) {
                let (_, number) = path.under_way.pop_front().unwrap();
                if draw.unit() < loss {
                    path.under_way.push_front((now + 3 * path.delay, number));
                    break;
                }
                segments[number as usize].1 = true;
                path.acked += 1;
            }
        }
        while segments.get(una as usize).is_some_and(|(_, arrived)| *arrived) {
            una += 1;
        }
        if una == TOTAL {
            return true;
        }
        if draw.unit() < 0.01 {
            let path = draw.below(paths.len() as u64) as usize;
            paths[path].cwnd = draw.between(1, 30);
        }
        let usage: Vec<_> = paths
            .iter()
            .enumerate()
            .map(|(at, path)| Usage {
                id: SubflowId(at as u16),
                mss: Bytes::new(MSS),
                srtt: Duration::from_millis(path.delay),
                cwnd: Bytes::new(path.cwnd * MSS),
                outstanding: Bytes::new(path.under_way.len() as u64 * MSS),
                unacked: Bytes::new(
                    segments[una as usize..].iter().filter(|(first, _)| *first == at).count() as u64 * MSS,
                ),
                acked: path.acked * MSS,
            })
            .collect();
        let buffers = Buffers { window: Bytes::new(buffer), receive: Bytes::new(buffer), send: Bytes::new(send) };
        let mut shares = vec![Bytes::ZERO; paths.len()];
        policy.share(Instant::ZERO + Duration::from_millis(now), &buffers, &usage, &mut shares);
        for (at, path) in paths.iter_mut().enumerate() {
            while (path.under_way.len() as u64) < path.cwnd
                && !shares[at].is_zero()
                && (segments.len() as u64 + 1 - una) * MSS <= buffer.min(send)
                && (segments.len() as u64) < TOTAL
            {
                path.under_way.push_back((now + path.delay, segments.len() as u64));
                segments.push((at, false));
                shares[at] = shares[at].saturating_sub(Bytes::new(MSS));
            }
        }
    }
    false
}
