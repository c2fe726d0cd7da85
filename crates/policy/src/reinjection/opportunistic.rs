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

use super::{Capabilities, Cause, Entry, FlightView, Opportunity, Reinjection, Repeat, Request, SubflowSet, Why};
use crate::View;
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
.parameters(&[PENALISE.parameter()])
.capabilities(|_| Capabilities { copies: false, opportunities: true });

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
    fn penalty(&mut self, now: Instant, opportunity: &Opportunity<'_>, view: &View<'_>) -> SubflowSet {
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
    fn next(&mut self, now: Instant, flight: &FlightView<'_>) -> Request {
        let Some(opportunity) = &flight.opportunity else { return Request::default() };
        let why = match opportunity.cause {
            Cause::Window => Why::Window,
            Cause::Drained if opportunity.send_buffer_full => Why::Drained,
            Cause::Drained => return Request::default(),
        };
        let oldest = Repeat { on: opportunity.on, from: flight.view.data_una, why };
        let repeat = pays(opportunity, flight.view).then_some(oldest);
        Request { repeat, penalise: self.penalty(now, opportunity, flight.view) }
    }
}

/// Returns true if a copy on the subflow with room is likely to arrive first.
pub(super) fn pays(opportunity: &Opportunity<'_>, view: &View<'_>) -> bool {
    let Some(fast) = view.subflow(opportunity.on) else {
        return false;
    };
    if opportunity.carriers.iter().any(|carrier| carrier.id == fast.id) {
        return false;
    }
    let mut pays = false;
    for carrier in opportunity.carriers {
        let Some(carrier) = view.subflow(carrier.id) else {
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
    use super::super::testing::{Scene, at, dsn, mark};
    use super::*;
    use crate::SubflowView;
    use crate::registry::{REINJECTIONS, find};
    use crate::reinjection::Carrier;
    use anabranch_units::{Bytes, Duration};

    const FAST: SubflowId = SubflowId(0);
    const SLOW: SubflowId = SubflowId(1);
    const GONE: SubflowId = SubflowId(7);

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
        when: (Cause, bool),
    ) -> Request {
        ask_with(policy, ms, slow, carriers, when, carriers)
    }

    fn ask_with(
        policy: &mut dyn Reinjection,
        ms: u64,
        slow: SubflowView,
        carriers: &[SubflowId],
        (cause, send_buffer_full): (Cause, bool),
        open: &[SubflowId],
    ) -> Request {
        let mut scene = Scene::new(&[10]);
        scene.subflows.push(slow);
        let carrier = |&id: &SubflowId| Carrier { id, mark: mark(id.0), open: open.contains(&id) };
        let carriers: Vec<Carrier> = carriers.iter().map(carrier).collect();
        let opportunity = Some(Opportunity { cause, send_buffer_full, on: FAST, carriers: &carriers });
        scene.show(|flight| policy.next(at(ms), &FlightView { opportunity, ..*flight }))
    }

    /// A copy of the oldest data, which begins at 0, on FAST.
    fn oldest(why: Why) -> Option<Repeat> {
        Some(Repeat { on: FAST, from: dsn(0), why })
    }

    const NOBODY: SubflowSet = SubflowSet::NONE;
    const SLOW_ONE: SubflowSet = SubflowSet::from_bits(1 << SLOW.0);
    const WINDOW: (Cause, bool) = (Cause::Window, false);

    #[test]
    fn repeats_and_penalises_by_the_rules() {
        for (srtt_ms, segments, carriers, when, repeats, penalise) in [
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
            let repeat = oldest(if when.0 == Cause::Window { Why::Window } else { Why::Drained }).filter(|_| repeats);
            assert_eq!(response, Request { repeat, penalise }, "{srtt_ms} ms, {segments}, {carriers:?}, {when:?}");
            let retransmit_only =
                ask(&mut Opportunistic::new(false), 0, subflow(SLOW, srtt_ms, segments), carriers, when);
            assert_eq!(retransmit_only, Request { repeat, penalise: NOBODY });
        }
    }

    /// `insured` slows others down for a copy alone, and a penalty that it does not impose costs no turn: 40 ms are not
    /// more than four times 10.
    #[test]
    fn insured_penalises_only_with_a_copy() {
        let entry = find(REINJECTIONS, "reinjection", "insured").expect("it is registered");
        let mut insured = entry.build_default().policy;
        for (ms, srtt_ms, expected) in
            [(0, 40, Request::default()), (1, 50, Request { repeat: oldest(Why::Window), penalise: SLOW_ONE })]
        {
            assert_eq!(ask(&mut *insured, ms, subflow(SLOW, srtt_ms, 10), &[SLOW], WINDOW), expected, "at {ms} ms");
        }
    }

    #[test]
    fn penalises_once_per_round_trip_of_the_fast_subflow() {
        let mut policy = Opportunistic::new(true);
        for (ms, penalise) in [(0, SLOW_ONE), (9, NOBODY), (10, SLOW_ONE), (19, NOBODY), (21, SLOW_ONE)] {
            let response = ask(&mut policy, ms, subflow(SLOW, 50, 10), &[SLOW], WINDOW);
            assert_eq!(response, Request { repeat: oldest(Why::Window), penalise }, "at {ms} ms");
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
