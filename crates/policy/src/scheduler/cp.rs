//! CP-r, constraint-based proactive scheduling: only as many subflows as the receive buffer bears; reconstructed.
//!
//! B.-H. Oh, J. Lee. *Constraint-Based Proactive Scheduling for MPTCP in Wireless Networks.* Computer Networks 91
//! (2015). Known to us from its abstract.
//!
//! While data travel on the slowest of a set of subflows, those of the others arrive and wait:
//! ```text
//! ofo(S) = Σ_{i in S} rate_i · (max owd(S) - owd_i)      rate_i = cwnd_i / SRTT_i,  owd_i = SRTT_i / 2
//! ```
//! Of the sets of the 1, 2, … fastest subflows the largest is used for which `ofo` fits the receive buffer and the
//! one-way delays differ by no more than `delay`; within it the lowest SRTT with room goes first, as in min-RTT. The
//! set is chosen anew once per largest SRTT, and whenever the usable subflows change.
//!
//! Reconstructed (A-CP): known is the idea, that out-of-order data are predicted from the performance gap and that
//! buffer and delay constrain which subflows are used. The receive buffer is the largest window that the peer ever
//! advertised. The delay constraint is off unless it is set. When nothing is in flight on the subflows of the set and
//! none has room, the fastest of the others sends.

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Duration, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "cp-r",
    "min-RTT among as many subflows as the receive buffer bears; reconstructed",
    include_str!("cp.rs"),
    |p| Box::new(Cp::new(p)),
)
.paper("Oh, Lee 2015 (abstract only)")
.parameters(&[DELAY.parameter()]);

/// Constraint-based proactive scheduling.
pub(super) struct Cp {
    /// Largest difference between one-way delays.
    delay: Duration,
    /// Size of the set, which is a prefix of `order`.
    set: usize,
    /// Time at which the set is chosen anew.
    until: Option<Instant>,
    /// The usable subflows when it was chosen, by SRTT.
    order: Vec<SubflowView>,
}

impl Cp {
    /// Reads the delay constraint from `parameters`.
    pub(super) fn new(parameters: &Params) -> Self {
        let delay = Duration::from_secs_f64(DELAY.of(parameters) / 1000.0);
        Cp { delay, set: 0, until: None, order: Vec::new() }
    }

    fn choose(&mut self, now: Instant, view: &View<'_>) {
        if self.until.is_some_and(|until| now < until) {
            return;
        }
        self.order.clear();
        self.order.extend_from_slice(view.subflows);
        self.order.sort_unstable_by_key(|subflow| (subflow.srtt, subflow.id));
        let buffer = view.buffer.as_f64();
        let fits = |set: &[SubflowView]| {
            let [fastest, .., slowest] = set else { return true };
            let waiting = |subflow: &SubflowView| {
                subflow.cwnd.as_f64()
                    * ((slowest.srtt - subflow.srtt) / 2).per(subflow.srtt.max(Duration::from_nanos(1)))
            };
            let ofo: f64 = set.iter().map(waiting).sum();
            ofo <= buffer && (slowest.srtt - fastest.srtt) / 2 <= self.delay
        };
        self.set = (1..=self.order.len()).rev().find(|&k| fits(&self.order[..k])).unwrap_or(0);
        self.until = self.order.last().map(|slowest| now + slowest.srtt);
    }

    fn may_use(&self, subflow: &SubflowView) -> bool {
        self.order[..self.set].iter().any(|chosen| chosen.id == subflow.id)
    }
}

impl Scheduler for Cp {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.choose(now, view);
        let with_room = view.subflows.iter().filter(|subflow| subflow.has_room());
        if let Some(best) = with_room.filter(|subflow| self.may_use(subflow)).min_by_key(|subflow| subflow.srtt) {
            return Decision::send(best.id);
        }
        let hopeful = view.subflows.iter().any(|subflow| self.may_use(subflow) && ack_due(subflow));
        match view.fastest_with_room() {
            Some(other) if !hopeful => Decision::send(other.id),
            _ => Decision::WAIT,
        }
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if *event == Event::SubflowsChanged {
            self.until = None;
        }
    }
}

const DELAY: Number = number(
    "delay",
    "D: the largest difference between the one-way delays of subflows used together; the default is no limit",
    1e9,
    0.0..=1e9,
)
.in_unit("ms");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::{Bytes, SubflowId};

    fn cp(delay_ms: u64) -> Cp {
        Cp { delay: Duration::from_millis(delay_ms), set: 0, until: None, order: Vec::new() }
    }

    const THIRD: SubflowId = SubflowId(2);

    /// 20, 60 and 200 ms, windows of ten; the first two full. One-way delays of 10, 30 and 100 ms.
    fn three() -> [SubflowView; 3] {
        [subflow(FAST, 20, 10, 10), subflow(SLOW, 60, 10, 10), subflow(THIRD, 200, 10, 0)]
    }

    fn decide(cp: &mut Cp, ms: u64, subflows: &[SubflowView], buffer: Bytes) -> Decision {
        cp.decide(at(ms), &View { buffer, ..view(subflows, 500) })
    }

    /// ofo of all three: 10/20 · 90 + 10/60 · 70 = 45 + 11.67 = 56.67 segments; of the first two: 10/20 · 20 = 10.
    #[test]
    fn the_largest_set_that_the_buffer_bears() {
        let subflows = three();
        let middle_has_room = [subflows[0], SubflowView { in_flight: segments(5), ..subflows[1] }, subflows[2]];
        assert_eq!(decide(&mut cp(1000), 0, &subflows, segments(57)), Decision::send(THIRD));
        assert_eq!(decide(&mut cp(1000), 0, &subflows, segments(56)), Decision::WAIT);
        assert_eq!(decide(&mut cp(1000), 0, &middle_has_room, segments(10)), Decision::send(SLOW));
        assert_eq!(decide(&mut cp(1000), 0, &middle_has_room, Bytes::new(9999)), Decision::WAIT);
    }

    #[test]
    fn one_way_delays_differ_by_no_more_than_the_constraint() {
        for (delay, decision) in [(90, Decision::send(THIRD)), (89, Decision::WAIT)] {
            assert_eq!(decide(&mut cp(delay), 0, &three(), segments(10_000)), decision, "{delay}");
        }
    }

    #[test]
    fn the_set_is_chosen_anew_once_per_largest_rtt_and_when_subflows_change() {
        let (subflows, mut cp) = (three(), cp(1000));
        assert_eq!(decide(&mut cp, 0, &subflows, segments(57)), Decision::send(THIRD));
        assert_eq!(decide(&mut cp, 199, &subflows, segments(10)), Decision::send(THIRD));
        assert_eq!(decide(&mut cp, 200, &subflows, segments(10)), Decision::WAIT);
        assert_eq!(decide(&mut cp, 201, &subflows, segments(57)), Decision::WAIT);
        cp.observe(at(202), &Event::SubflowsChanged);
        assert_eq!(decide(&mut cp, 202, &subflows, segments(57)), Decision::send(THIRD));
    }

    /// An SRTT that grows in the meantime does not lead out of the set.
    #[test]
    fn the_set_is_one_of_subflows() {
        let (mut subflows, mut cp) = (three(), cp(1000));
        assert_eq!(decide(&mut cp, 0, &subflows, segments(57)), Decision::send(THIRD));
        subflows[2].srtt = Duration::from_millis(250);
        assert_eq!(decide(&mut cp, 1, &subflows, segments(57)), Decision::send(THIRD));
    }

    #[test]
    fn within_the_set_the_lowest_rtt_with_room_goes_first() {
        let free = three().map(|subflow| SubflowView { in_flight: Bytes::ZERO, ..subflow });
        assert_eq!(decide(&mut cp(1000), 0, &free, segments(1000)), Decision::send(FAST));
    }

    #[test]
    fn what_has_nothing_in_flight_is_not_waited_for() {
        let shut = three().map(|subflow| SubflowView { in_flight: Bytes::ZERO, open: subflow.id == THIRD, ..subflow });
        assert_eq!(decide(&mut cp(1000), 0, &shut, segments(1)), Decision::send(THIRD));
    }
}
