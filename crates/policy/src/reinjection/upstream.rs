//! Upstream Linux: a timer of the connection repeats the oldest data on an idle subflow, and a stuck subflow goes
//! stale.
//!
//! `__mptcp_retrans` and `mptcp_pm_subflow_chk_stale` in `net/mptcp` (A-STALE). A subflow's own timeout repeats nothing
//! elsewhere. One timer runs while data is under way; it starts anew when a DATA_ACK comes, and takes the longest
//! remaining time of the subflows' timeouts, without those seen stuck, and 200 ms if none is left. When it runs out,
//!
//! 1. each subflow with unacknowledged data is checked: seen for the first time, or after a packet has arrived on it,
//!    it is only noted; without an arrival since it was noted, its stale count goes up. With a count above
//!    `stale-loss-cnt`, while another usable subflow has one below `stale-loss-cnt` - 1 (or below 1), it is *stale*:
//!    data that it alone has carried goes elsewhere, and it gets no new data until a packet arrives on it;
//! 2. the oldest data without a DATA_ACK, up to `fragment` bytes, is repeated on a subflow without unacknowledged data:
//!    the first regular one, or the first backup if all of the others have been seen stuck more than once.
//!
//! Where we differ: the kernel repeats its whole retransmission queue when a subflow goes stale, we only the data that
//! no other subflow has carried (once per segment and subflow, as everywhere); for the same reason an idle subflow that
//! carried the oldest data already is passed over. The start of a count and the amount repeated (a data fragment of the
//! kernel, which is at most 32 KiB) are as in the kernel.

use super::{Capabilities, Entry, FlightView, Reinjection, Repeat, Request, SubflowSet, SubflowState, Why};
use crate::registry::{Number, Params, number};
use anabranch_units::{Dsn, Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "upstream",
    "a connection timer repeats the oldest data on an idle subflow; a stuck subflow goes stale",
    include_str!("upstream.rs"),
    |p| Box::new(Upstream::new(p)),
)
.paper("upstream Linux (mptcp_net-next)")
.parameters(&[STALE_LOSS_CNT.parameter(), FRAGMENT.parameter()])
.capabilities(|_| Capabilities { copies: true, opportunities: false });

const STALE_LOSS_CNT: Number = number(
    "stale-loss-cnt",
    "a subflow seen stuck more often in a row is stale; 0: never (sysctl stale_loss_cnt)",
    4.0,
    0.0..=254.0,
);
const FRAGMENT: Number =
    number("fragment", "data repeated each time the timer runs out, at most", 32_768.0, 1.0..=1_048_576.0)
        .in_unit("bytes");

/// The timer while no subflow's timeout can be waited for (Linux `TCP_RTO_MIN`).
const SHORTEST: Duration = Duration::from_millis(200);

/// Reinjection as in upstream Linux, for one connection.
#[derive(Clone, Debug)]
pub struct Upstream {
    stale_loss_cnt: u32,
    fragment: u64,
    /// Time at which the oldest data is repeated.
    timer: Option<Instant>,
    /// Oldest data when the timer was set.
    una: Dsn,
    /// Stale count of each subflow.
    counts: Vec<Count>,
    /// Data being repeated now.
    resending: Option<Resending>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    on: SubflowId,
    /// Times in a row that the timer found it stuck; at least 1.
    stale: u32,
    /// Time at which anything had arrived on it last.
    heard: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Resending {
    on: SubflowId,
    at: Dsn,
    end: Dsn,
}

impl Upstream {
    /// Reads the limits from `params`.
    pub fn new(params: &Params) -> Self {
        Upstream {
            stale_loss_cnt: STALE_LOSS_CNT.of(params) as u32,
            fragment: FRAGMENT.of(params) as u64,
            timer: None,
            una: Dsn::new(0),
            counts: Vec::new(),
            resending: None,
        }
    }

    /// Number of times that it was seen stuck since a packet arrived on it.
    fn stale_count(&self, state: &SubflowState) -> u32 {
        let count = self.counts.iter().find(|count| count.on == state.id && count.heard == state.heard);
        count.map_or(0, |count| count.stale)
    }

    /// The timer found something unacknowledged on this subflow; its count.
    fn note_stuck(&mut self, state: &SubflowState) -> u32 {
        let Some(count) = self.counts.iter_mut().find(|count| count.on == state.id) else {
            self.counts.push(Count { on: state.id, stale: 1, heard: state.heard });
            return 1;
        };
        if count.heard != state.heard {
            self.counts.retain(|count| count.on != state.id);
            return 0;
        }
        count.stale += 1;
        count.stale
    }

    /// Returns the time to set the timer to.
    fn span(&self, now: Instant, states: &[SubflowState]) -> Duration {
        let waiting = states.iter().filter(|state| state.usable && self.stale_count(state) == 0);
        let left = waiting.filter_map(|state| state.timeout).map(|at| at.since(now)).max();
        left.filter(|left| !left.is_zero()).unwrap_or(SHORTEST)
    }

    /// The next segment of the data that the timer has repeated.
    fn resend(&mut self, flight: &FlightView<'_>) -> Option<Repeat> {
        let resending = self.resending.as_mut()?;
        let on = flight.states.iter().find(|state| state.id == resending.on && state.usable);
        let Some(on) = on else {
            self.resending = None;
            return None;
        };
        if resending.at.before(flight.view.data_una) {
            resending.at = flight.view.data_una;
        }
        let fresh = |piece: &super::Piece| !piece.carriers.meets(on.mark) && piece.carriers != SubflowSet::NONE;
        let Some(piece) = flight.first_piece(resending.at, resending.end, fresh) else {
            self.resending = None;
            return None;
        };
        resending.at = piece.from;
        on.has_room.then_some(Repeat { on: on.id, from: piece.from, why: Why::Timer })
    }
}

impl Reinjection for Upstream {
    fn on_rto(&mut self, _now: Instant, _on: SubflowId) -> bool {
        false
    }

    fn next(&mut self, _now: Instant, flight: &FlightView<'_>) -> Request {
        self.resend(flight).into()
    }

    fn wake(&mut self, now: Instant, flight: &FlightView<'_>) -> Option<Instant> {
        let una = flight.view.data_una;
        // A timer that ran out unseen is of an earlier flight, which was acknowledged.
        if self.timer.is_none_or(|at| at < now) || una != self.una {
            self.una = una;
            self.timer = Some(now + self.span(now, flight.states));
        }
        self.timer
    }

    fn on_wake(&mut self, now: Instant, flight: &FlightView<'_>) -> SubflowSet {
        if self.timer.is_none_or(|at| at > now) {
            return SubflowSet::NONE;
        }
        self.timer = None;
        self.counts.retain(|count| flight.states.iter().any(|state| state.id == count.on));
        let oldest = flight.outstanding.piece(flight.view.data_una);
        let (mut stale, mut least_stuck) = (SubflowSet::NONE, u32::MAX);
        let (mut regular, mut backup) = (None, None);
        for state in flight.states.iter().filter(|state| state.usable) {
            if !state.idle {
                let count = self.note_stuck(state);
                if self.stale_loss_cnt > 0 && count > self.stale_loss_cnt {
                    let healthy = (self.stale_loss_cnt - 1).max(1);
                    let other =
                        |other: &&SubflowState| other.usable && other.id != state.id && !stale.meets(other.mark);
                    if flight.states.iter().filter(other).any(|other| self.stale_count(other) < healthy) {
                        stale = stale.with(state.mark);
                    }
                }
                least_stuck = least_stuck.min(self.stale_count(state));
                continue;
            }
            let fresh = oldest.is_some_and(|oldest| !oldest.carriers.meets(state.mark));
            let place = if state.backup { &mut backup } else { &mut regular };
            if fresh && place.is_none() {
                *place = Some(state.id);
            }
        }
        if let (Some(on), Some(oldest)) = (regular.or(backup.filter(|_| least_stuck > 1)), oldest) {
            self.resending = Some(Resending { on, at: oldest.from, end: oldest.from + self.fragment });
        }
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, at, mark};
    use super::*;
    use crate::registry::{REINJECTIONS, Value, find};

    const STUCK: u16 = 0;
    const OTHER: u16 = 1;

    fn upstream(stale_loss_cnt: f64) -> Upstream {
        let entry = find(REINJECTIONS, "reinjection", "upstream").expect("it is registered");
        let given = [
            ("stale-loss-cnt".to_owned(), Value::Number(stale_loss_cnt)),
            ("fragment".to_owned(), Value::Number(2000.0)),
        ];
        Upstream::new(&entry.params(&given.into()).expect("it is accepted"))
    }

    /// Four pieces left on subflow 0, which hears nothing from here on.
    fn stuck() -> Scene {
        let mut scene = Scene::new(&[20, 90]);
        for number in 0..4 {
            scene.sent(number, 0, STUCK);
        }
        scene.states[0].idle = false;
        scene
    }

    /// Lets the timer be set at `ms`; when it runs out.
    fn armed(scene: &Scene, policy: &mut Upstream, ms: u64) -> u64 {
        let timer = scene.show(|flight| policy.wake(at(ms), flight)).expect("something is under way");
        timer.as_nanos() / 1_000_000
    }

    /// Lets it run out; when, what was copied, and who went stale.
    fn expire(scene: &mut Scene, policy: &mut Upstream, ms: u64) -> (u64, Vec<(u64, u16)>, SubflowSet) {
        let timer = armed(scene, policy, ms);
        let stale = scene.show(|flight| policy.on_wake(at(timer), flight));
        (timer, scene.copies(policy, timer), stale)
    }

    #[test]
    fn the_timer_takes_the_longest_of_what_is_left_and_starts_anew_with_each_data_ack() {
        let (mut scene, mut policy) = (stuck(), upstream(4.0));
        scene.states[0].timeout = Some(at(250));
        scene.states[1].timeout = Some(at(400));
        assert_eq!(armed(&scene, &mut policy, 10), 400);
        assert_eq!(armed(&scene, &mut policy, 50), 400, "it runs");
        scene.acked(1);
        scene.states[1].timeout = None;
        assert_eq!(armed(&scene, &mut policy, 60), 250);
        scene.states[0].timeout = None;
        scene.acked(2);
        assert_eq!(armed(&scene, &mut policy, 70), 270, "200 ms if no timeout runs");
    }

    /// stale-loss-cnt 4: the fifth time it is seen stuck it goes stale. Each time the oldest fragment, here two pieces,
    /// is repeated on the idle subflow, what it carried before is not.
    #[test]
    fn a_stuck_subflow_goes_stale_at_the_fifth_expiry() {
        let (mut scene, mut policy) = (stuck(), upstream(4.0));
        scene.states[0].timeout = Some(at(300));
        assert_eq!(expire(&mut scene, &mut policy, 0), (300, vec![(0, OTHER), (1, OTHER)], SubflowSet::NONE));
        // Seen stuck, its timeout does not count any more; and what is oldest has had its copy.
        for n in 1..4 {
            let (timer, copies, stale) = expire(&mut scene, &mut policy, 300);
            assert_eq!((timer, copies, stale), (300 + 200, vec![], SubflowSet::NONE), "{n}");
            policy.timer = None;
        }
        assert_eq!(expire(&mut scene, &mut policy, 900).2, mark(STUCK));
    }

    #[test]
    fn anything_that_arrives_starts_the_count_anew() {
        let (mut scene, mut policy) = (stuck(), upstream(2.0));
        let mut counts = Vec::new();
        for n in 0..8 {
            if n == 2 {
                scene.states[0].heard = at(777);
            }
            let stale = expire(&mut scene, &mut policy, 1000 * n).2;
            counts.push((policy.stale_count(&scene.states[0]), stale == mark(STUCK)));
        }
        let expected = [(1, false), (2, false), (0, false), (1, false), (2, false), (3, true), (4, true), (5, true)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn nobody_goes_stale_without_a_healthier_one_or_with_the_count_off() {
        let (mut scene, mut policy) = (stuck(), upstream(4.0));
        scene.states[1].idle = false;
        for n in 0..20 {
            assert_eq!(
                expire(&mut scene, &mut policy, 1000 * n),
                (1000 * n + 200, vec![], SubflowSet::NONE),
                "both are stuck"
            );
        }
        let (mut scene, mut policy) = (stuck(), upstream(0.0));
        for n in 0..20 {
            assert_eq!(expire(&mut scene, &mut policy, 1000 * n).2, SubflowSet::NONE);
        }
    }

    #[test]
    fn a_backup_helps_once_all_others_were_seen_stuck_twice() {
        let (mut scene, mut policy) = (stuck(), upstream(4.0));
        scene.states[1].backup = true;
        assert_eq!(expire(&mut scene, &mut policy, 0).1, []);
        assert_eq!(expire(&mut scene, &mut policy, 1000).1, [(0, OTHER), (1, OTHER)]);

        let (mut scene, mut policy) = (stuck(), upstream(4.0));
        scene.states[1].backup = true;
        scene.states.push(SubflowState { id: SubflowId(2), mark: mark(2), backup: false, ..scene.states[1] });
        assert_eq!(expire(&mut scene, &mut policy, 0).1, [(0, 2), (1, 2)], "a regular one is there");
    }

    #[test]
    fn copies_wait_for_room_and_skip_what_is_acknowledged() {
        let (mut scene, mut policy) = (stuck(), upstream(4.0));
        scene.states[1].has_room = false;
        assert_eq!(expire(&mut scene, &mut policy, 0).1, []);
        scene.acked(1);
        scene.states[1].has_room = true;
        assert_eq!(scene.copies(&mut policy, 210), [(1, OTHER)]);
    }

    #[test]
    fn a_timer_of_an_earlier_flight_is_set_anew() {
        let (scene, mut policy) = (stuck(), upstream(4.0));
        assert_eq!(armed(&scene, &mut policy, 0), 200);
        assert_eq!(armed(&scene, &mut policy, 5000), 5200);
    }
}
