//! Opportunistic retransmission and penalisation: a slow subflow should not block a full receive window.
//!
//! C. Raiciu et al. *How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP.* Proc. NSDI 2012, §4.2;
//! in the form of Linux MPTCP v0.9x (`mptcp_rcv_buf_optimization` in `net/mptcp/mptcp_sched.c`; A-OPT).
//!
//! When nothing new can leave because the peer's window (or each subflow's share of it) or the send buffer is full, the
//! subflow `k` with room
//!
//! 1. asks, at most once per its own round trip, to halve the windows of the slower subflows that carry the oldest data
//!    and are in TCP's Open state (nothing lost, nothing out of order);
//! 2. repeats those data itself, unless it carried them already, if a carrier is more than four times slower or has no
//!    more than four segments of window.
//!
//! Deviation: a carrier that is not usable at present (timed out) counts as one with a tiny window, which after a
//! timeout it has. Includes what `on-rto` does.

use super::{Cause, Entry, Opportunity, Reinjection, Response, SubflowSet};
use crate::registry::{Flag, flag};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "opportunistic",
    "also repeats the oldest data on a much faster subflow when no new data can leave",
    include_str!("opportunistic.rs"),
    |p| Box::new(Opportunistic::new(PENALISE.of(p))),
)
.paper("Raiciu et al. 2012")
.parameters(&[PENALISE.parameter()]);

const PENALISE: Flag = flag("penalise", "halve the windows of the slower subflows that hold the oldest data", true);

/// Opportunistic reinjection for one connection.
#[derive(Clone, Debug)]
pub struct Opportunistic {
    penalise: bool,
    /// Time at which each subflow last had others penalised.
    penalties: Vec<(SubflowId, Instant)>,
}

impl Opportunistic {
    /// Creates it with or without penalisation.
    pub fn new(penalise: bool) -> Self {
        Opportunistic { penalise, penalties: Vec::new() }
    }

    /// The carriers to slow down.
    fn penalty(&mut self, now: Instant, opportunity: &Opportunity<'_>) -> SubflowSet {
        let view = opportunity.view;
        let Some(fast) = view.subflow(opportunity.on).filter(|_| self.penalise) else {
            return SubflowSet::NONE;
        };
        let latest = self.penalties.iter().find(|(id, _)| *id == fast.id);
        if latest.is_some_and(|(_, at)| now.since(*at) < fast.srtt) {
            return SubflowSet::NONE;
        }
        let slow = |id| view.subflow(id).is_some_and(|carrier| carrier.srtt > fast.srtt);
        let slower =
            opportunity.carriers.iter().filter(|carrier| carrier.open && carrier.id != fast.id && slow(carrier.id));
        let slower = slower.fold(SubflowSet::NONE, |all, carrier| all.with(carrier.mark));
        if slower != SubflowSet::NONE {
            // Subflows come and go; only those in sight are remembered.
            self.penalties.retain(|(id, _)| *id != fast.id && view.subflow(*id).is_some());
            self.penalties.push((fast.id, now));
        }
        slower
    }
}

impl Reinjection for Opportunistic {
    fn on_opportunity(&mut self, now: Instant, opportunity: &Opportunity<'_>) -> Response {
        if opportunity.cause == Cause::Drained && !opportunity.send_buffer_full {
            return Response::default();
        }
        Response { penalise: self.penalty(now, opportunity), reinject: pays(opportunity) }
    }
}

/// Returns true if a copy on the subflow with room is likely to arrive first.
pub(super) fn pays(opportunity: &Opportunity<'_>) -> bool {
    let Some(fast) = opportunity.view.subflow(opportunity.on) else {
        return false;
    };
    if opportunity.carriers.iter().any(|carrier| carrier.id == fast.id) {
        return false;
    }
    let mut pays = false;
    for carrier in opportunity.carriers {
        let Some(carrier) = opportunity.view.subflow(carrier.id) else {
            return true;
        };
        if carrier.cwnd_segments() <= TINY_WINDOW_SEGMENTS {
            return true;
        }
        if fast.srtt * MUCH_SLOWER >= carrier.srtt {
            return false;
        }
        pays = true;
    }
    pays
}

/// Linux: `tcp_snd_cwnd <= 4`.
const TINY_WINDOW_SEGMENTS: u32 = 4;
/// Linux: `4 * srtt` of the subflow with room against the carrier's.
const MUCH_SLOWER: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{REINJECTIONS, find};
    use crate::reinjection::Carrier;
    use crate::{SubflowView, View};
    use anabranch_units::{Bytes, Dsn, Duration};

    const FAST: SubflowId = SubflowId(0);
    const SLOW: SubflowId = SubflowId(1);
    const GONE: SubflowId = SubflowId(7);

    fn mark(id: SubflowId) -> SubflowSet {
        SubflowSet::from_bits(1 << id.0)
    }

    fn subflow(id: SubflowId, srtt_ms: u64, segments: u64) -> SubflowView {
        let rtt = Duration::from_millis(srtt_ms);
        SubflowView::steady(id, Bytes::new(1000), rtt, Bytes::new(1000).times(segments))
    }

    /// Asks `policy` at `ms` with FAST at 10 ms having room and SLOW as given.
    fn ask(
        policy: &mut dyn Reinjection,
        ms: u64,
        slow: SubflowView,
        carriers: &[SubflowId],
        (cause, send_buffer_full): (Cause, bool),
    ) -> Response {
        ask_with(policy, ms, slow, carriers, (cause, send_buffer_full), carriers)
    }

    fn ask_with(
        policy: &mut dyn Reinjection,
        ms: u64,
        slow: SubflowView,
        carriers: &[SubflowId],
        (cause, send_buffer_full): (Cause, bool),
        open: &[SubflowId],
    ) -> Response {
        let subflows = [subflow(FAST, 10, 10), slow];
        let view = View {
            subflows: &subflows,
            unsent: Bytes::ZERO,
            sendable: Bytes::ZERO,
            window: Bytes::ZERO,
            buffer: Bytes::ZERO,
            data_una: Dsn::new(0),
            unsent_from: Dsn::new(0),
        };
        let carrier = |&id| Carrier { id, mark: mark(id), open: open.contains(&id) };
        let carriers: Vec<Carrier> = carriers.iter().map(carrier).collect();
        let opportunity = Opportunity { cause, send_buffer_full, on: FAST, carriers: &carriers, view: &view };
        policy.on_opportunity(Instant::ZERO + Duration::from_millis(ms), &opportunity)
    }

    const NOBODY: SubflowSet = SubflowSet::NONE;
    const SLOW_ONE: SubflowSet = SubflowSet::from_bits(1 << SLOW.0);
    const WINDOW: (Cause, bool) = (Cause::Window, false);

    #[test]
    fn repeats_and_penalises_by_the_rules() {
        for (srtt_ms, segments, carriers, when, reinject, penalise) in [
            (50, 10, &[SLOW][..], WINDOW, true, SLOW_ONE),
            (50, 10, &[SLOW], (Cause::Drained, true), true, SLOW_ONE),
            (50, 10, &[SLOW], (Cause::Drained, false), false, NOBODY),
            (40, 10, &[SLOW], WINDOW, false, SLOW_ONE), // not more than four times slower
            (40, 4, &[SLOW], WINDOW, true, SLOW_ONE),   // a tiny window
            (10, 10, &[SLOW], WINDOW, false, NOBODY),   // not slower at all
            (50, 10, &[FAST, SLOW], WINDOW, false, SLOW_ONE),
            (40, 10, &[GONE], WINDOW, true, NOBODY),
            (50, 10, &[], WINDOW, false, NOBODY),
        ] {
            let response = ask(&mut Opportunistic::new(true), 0, subflow(SLOW, srtt_ms, segments), carriers, when);
            assert_eq!(response, Response { reinject, penalise }, "{srtt_ms} ms, {segments}, {carriers:?}, {when:?}");
            let retransmit_only =
                ask(&mut Opportunistic::new(false), 0, subflow(SLOW, srtt_ms, segments), carriers, when);
            assert_eq!(retransmit_only, Response { reinject, penalise: NOBODY });
        }
    }

    /// `insured` slows others down for a copy alone, and a penalty that it does not impose costs no turn: 40 ms are not
    /// more than four times 10.
    #[test]
    fn insured_penalises_only_with_a_copy() {
        let entry = find(REINJECTIONS, "reinjection", "insured").expect("it is registered");
        let mut insured = entry.build_default().policy;
        for (ms, srtt_ms, expected) in
            [(0, 40, Response::default()), (1, 50, Response { reinject: true, penalise: SLOW_ONE })]
        {
            assert_eq!(ask(&mut *insured, ms, subflow(SLOW, srtt_ms, 10), &[SLOW], WINDOW), expected, "at {ms} ms");
        }
    }

    #[test]
    fn penalises_once_per_round_trip_of_the_fast_subflow() {
        let mut policy = Opportunistic::new(true);
        for (ms, penalise) in [(0, SLOW_ONE), (9, NOBODY), (10, SLOW_ONE), (19, NOBODY), (21, SLOW_ONE)] {
            let response = ask(&mut policy, ms, subflow(SLOW, 50, 10), &[SLOW], WINDOW);
            assert_eq!(response, Response { reinject: true, penalise }, "at {ms} ms");
        }
    }

    #[test]
    fn a_carrier_that_repairs_a_loss_is_not_penalised_and_costs_nobody_a_turn() {
        let mut policy = Opportunistic::new(true);
        let slow = subflow(SLOW, 50, 10);
        assert_eq!(ask_with(&mut policy, 0, slow, &[FAST, SLOW], WINDOW, &[FAST]).penalise, NOBODY);
        assert_eq!(ask_with(&mut policy, 1, slow, &[FAST, SLOW], WINDOW, &[SLOW]).penalise, SLOW_ONE);
        // One whose share of the window is used up carries no new data, but nothing is wrong with it.
        let used_up = SubflowView { share: Bytes::ZERO, ..slow };
        assert_eq!(ask(&mut Opportunistic::new(true), 0, used_up, &[SLOW], WINDOW).penalise, SLOW_ONE);
    }
}
