//! Cost of a decision: nanoseconds per decision with its `Sent` event, per scheduler, for 2 and 8 subflows and for 10
//! and 1,000 unsent segments. Each segment that leaves is written again, so that their number stays.
//!
//! The subflows have room in turn, as their ACKs come. The slowest one's round ends every 200 decisions and every loss
//! rate moves a little, which makes LATE forecast and deal out its blocks anew; its figure is amortised over that.
//! Moving subflows: each ACK changes the SRTT, the window and the loss rate of its subflow, as on a real path, so that
//! no forecast is asked for twice.

use crate::figure::Spread;
use anabranch_policy::registry::{Entry, SCHEDULERS};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};
use std::hint::black_box;

const MSS: u64 = 1400;
/// Decisions per RTT of the slowest subflow.
const ROUND: u64 = 200;

/// Cases measured for each scheduler: subflows, segments that wait, and whether the subflows move.
pub const CASES: [(u16, u64, bool); 6] =
    [(2, 10, false), (2, 1000, false), (8, 10, false), (8, 1000, false), (2, 1000, true), (8, 1000, true)];

/// Measures each scheduler: its name and the figures of `CASES`.
pub fn all() -> Vec<(&'static str, [Spread; CASES.len()])> {
    let measure = |entry: &'static Entry<dyn Scheduler>| {
        (
            &*entry.name,
            CASES.map(|(subflows, unsent, moving)| nanos(&mut *entry.build_default().policy, subflows, unsent, moving)),
        )
    };
    SCHEDULERS.iter().map(measure).collect()
}

/// Subflow `id` of `n`: RTTs from 20 to 100 ms, windows for about `ROUND` segments in all per RTT of the slowest.
fn subflow(id: u16, n: u16) -> SubflowView {
    let srtt = Duration::from_millis(20 + 80 * u64::from(id) / u64::from(n - 1));
    let cwnd = Bytes::new(MSS * (ROUND * srtt.as_millis() / 100 / u64::from(n)).max(2));
    SubflowView {
        rttvar: srtt / 8,
        rtt_max: srtt * 2,
        ssthresh: Some(cwnd),
        in_flight: cwnd,
        cwnd_at_loss: Some(cwnd),
        loss: 0.001,
        ..SubflowView::steady(SubflowId(id), Bytes::new(MSS), srtt, cwnd)
    }
}

/// Nanoseconds per decision.
fn nanos(scheduler: &mut dyn Scheduler, n: u16, unsent: u64, moving: bool) -> Spread {
    let mut subflows: Vec<_> = (0..n).map(|id| subflow(id, n)).collect();
    let (mut now, mut step) = (Instant::ZERO, 0);
    Spread::per_call(ROUND, || {
        if moving {
            move_on(&mut subflows, step);
        }
        one(scheduler, &mut subflows, unsent, &mut now, step);
        step += 1;
    })
}

/// Applies the next ACK to its subflow: changes the SRTT by up to 3 %, the window by up to three segments.
fn move_on(subflows: &mut [SubflowView], step: u64) {
    let (n, at) = (subflows.len() as u64, (step % subflows.len() as u64) as usize);
    let still = subflow(at as u16, n as u16);
    let phase = step / n % 32;
    subflows[at].srtt = still.srtt + still.srtt * phase / 1000 + Duration::from_nanos(step);
    subflows[at].cwnd = still.cwnd + Bytes::new(MSS * (phase / 8));
    subflows[at].ssthresh = Some(subflows[at].cwnd);
    subflows[at].loss += 1e-9;
}

/// An ACK makes room on one subflow, and the scheduler is asked.
fn one(scheduler: &mut dyn Scheduler, subflows: &mut [SubflowView], unsent: u64, now: &mut Instant, step: u64) {
    let (at, last) = ((step % subflows.len() as u64) as usize, subflows.len() - 1);
    *now += Duration::from_micros(500); // 200 decisions in 100 ms
    subflows[at].in_flight = subflows[at].cwnd.saturating_sub(Bytes::new(MSS));
    if step.is_multiple_of(ROUND) {
        subflows[last].acked = subflows[last].sent;
        subflows.iter_mut().for_each(|subflow| subflow.loss += 1e-9);
    }
    let view = View {
        subflows,
        unsent: Bytes::new(MSS * unsent),
        sendable: Bytes::new(MSS * unsent),
        window: Bytes::new(4_000_000),
        buffer: Bytes::new(4_000_000),
        data_una: Dsn::new(1),
        unsent_from: Dsn::new(1),
    };
    if let Decision::Send { on, skip } = black_box(scheduler.decide(*now, black_box(&view))) {
        scheduler.observe(*now, &Event::Sent { on, dsn: Dsn::new(1), skip, length: Bytes::new(MSS) });
        subflows[usize::from(on.0)].sent += MSS;
    }
    subflows[at].in_flight = subflows[at].cwnd;
}
