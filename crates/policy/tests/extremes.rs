//! Every scheduler at the ends of every range: nothing overflows, and answers stay legal.
#![allow(clippy::unwrap_used)]

use anabranch_policy::registry::SCHEDULERS;
use anabranch_policy::{Decision, Event, SubflowView, Truth, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Rate, SubflowId};
use proptest::prelude::*;

/// Zero, tiny, usual, huge and extreme amounts.
fn any_amount() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..3, 1_000u64..1_000_000, Just(1 << 40), Just(1 << 60)]
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), Just(1), 1_000_000u64..2_000_000_000, Just(1 << 50), Just(u64::MAX)]
        .prop_map(Duration::from_nanos)
}

fn any_subflow(id: u16) -> impl Strategy<Value = SubflowView> {
    let amounts = prop::array::uniform8(any_amount());
    let some = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let loss = prop_oneof![Just(0.0), Just(0.01), Just(1.0), Just(f64::NAN)];
    let mss = prop_oneof![Just(1u64), Just(1460), Just(65_535)];
    let more = (loss, mss, some, 0u64..2_000);
    (amounts, prop::array::uniform8(any_time()), more).prop_map(move |(a, t, (loss, mss, (s, b, p, o), sent_at))| {
        let steady = SubflowView::steady(SubflowId(id), Bytes::new(mss), t[0], Bytes::new(a[0]));
        SubflowView {
            rttvar: t[1],
            rtt_min: t[2].min(t[3]),
            rtt_max: t[2].max(t[3]),
            rtt_first: t[4],
            rtt_last: t[5],
            rto: t[6],
            ssthresh: s.then(|| Bytes::new(a[1])),
            in_flight: Bytes::new(a[2].min(a[0])),
            cwnd_at_loss: s.then(|| Bytes::new(a[3])),
            loss,
            sent: a[4].max(a[5]),
            acked: a[4].min(a[5]),
            data_acked: o.then(|| Dsn::new(a[6])),
            open: o || p,
            last_sent: o.then(|| Instant::ZERO + Duration::from_millis(sent_at)),
            pacing: p.then(|| Rate::from_bps(a[7])),
            bdp: b.then(|| Bytes::new(a[6])),
            path_rate: b.then(|| Rate::from_bps(a[7])),
            truth: p.then(|| Truth { rate: Rate::from_bps(a[7]), delay: t[7], loss: 0.0 }),
            ..steady
        }
    })
}

fn any_subflows() -> impl Strategy<Value = Vec<SubflowView>> {
    [0u16, 7, u16::MAX].map(any_subflow).prop_map(Vec::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn nothing_overflows(
        moments in prop::collection::vec(
            (any_subflows(), 0u64..1 << 20, 0u64..=100, any_amount(), any_time()), 1..8),
    ) {
        for entry in SCHEDULERS {
            let mut scheduler = entry.build_default();
            let mut now = Instant::ZERO;
            for (subflows, unsent, percent, window, later) in &moments {
                now += *later;
                let sendable = (u128::from(*unsent) * u128::from(*percent)).div_ceil(100) as u64;
                let view = View {
                    subflows,
                    unsent: Bytes::new(*unsent),
                    sendable: Bytes::new(sendable),
                    window: Bytes::new(*window),
                    buffer: Bytes::new(*window),
                    data_una: Dsn::new(1),
                    unsent_from: Dsn::new(1 + window / 2),
                };
                if sendable == 0 || !subflows.iter().any(SubflowView::has_room) {
                    continue;
                }
                match scheduler.decide(now, &view) {
                    Decision::Send { on, skip } => {
                        prop_assert!(view.subflow(on).is_some_and(SubflowView::has_room), "{}", entry.name);
                        prop_assert!(skip < view.sendable, "{} skips {skip}", entry.name);
                        let length = view.subflow(on).unwrap().mss.min(view.unsent.saturating_sub(skip));
                        scheduler.observe(now, &Event::Sent { on, dsn: view.unsent_from + skip.get(), skip, length });
                    }
                    Decision::Repeat { on, .. } => {
                        prop_assert!(view.subflow(on).is_some_and(SubflowView::has_room_to_repeat), "{}", entry.name);
                    }
                    Decision::Wait { .. } => {
                        let due = subflows.iter().any(|subflow| !subflow.in_flight.is_zero());
                        prop_assert!(due, "{} waits while nothing is in flight", entry.name);
                    }
                }
            }
        }
    }
}
