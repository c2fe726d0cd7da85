//! Redundant: every segment on every subflow. The first copy to arrive counts.
//!
//! The `redundant` scheduler of Linux MPTCP v0.9x, its second version (A-REDUNDANT). Each subflow walks through the
//! stream on its own: at its cursor it sends a copy of data that others have sent, and at the end of that the next new
//! segment. Subflows with room take turns. Acknowledged data is skipped: a subflow that lags behind jumps forward.
//! Backup subflows, shown when no other is usable, carry no copies.
//!
//! The latency is that of the best path at each moment, losses included; the throughput is that of the best path, not
//! the sum. On the others congestion control sees a sender that is never in a hurry.
//!
//! Where we differ: data that a subflow has carried as a reinjection is not copied to it again; Linux does not check.

use super::per_subflow::PerSubflow;
use super::{Capabilities, Entry, Scheduler};
use crate::{Decision, Event, View};
use anabranch_units::{Dsn, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("redundant", "every segment on every subflow", include_str!("redundant.rs"), |_| {
        Box::new(Redundant::default())
    })
    .paper("Linux MPTCP v0.9x, second version")
    .capabilities(|_| Capabilities { repeats: true });

/// Everything everywhere.
#[derive(Default)]
pub struct Redundant {
    /// DSN that each subflow sends next.
    cursors: PerSubflow<Dsn>,
    /// Subflow with the next turn, or if it is not usable, the next id.
    turn: SubflowId,
}

impl Scheduler for Redundant {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        self.cursors.follow(view.subflows, |_| view.data_una);
        let turn = view.subflows.iter().position(|subflow| subflow.id >= self.turn).unwrap_or(0);
        for at in (turn..view.subflows.len()).chain(0..turn) {
            let (subflow, cursor) = (&view.subflows[at], &mut self.cursors[at]);
            if cursor.before(view.data_una) {
                *cursor = view.data_una;
            }
            if cursor.after(view.unsent_from) || subflow.backup {
                *cursor = view.unsent_from;
            }
            let is_new = *cursor == view.unsent_from;
            let may_send = match is_new {
                true => subflow.has_room() && !view.sendable.is_zero(),
                false => subflow.has_room_to_repeat(),
            };
            if !may_send {
                continue;
            }
            self.turn = SubflowId(subflow.id.0.wrapping_add(1));
            return match is_new {
                true => Decision::send(subflow.id),
                false => Decision::Repeat { on: subflow.id, from: *cursor },
            };
        }
        Decision::WAIT
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        match *event {
            Event::Sent { on, dsn, length, .. } => {
                if let Some(cursor) = self.cursors.of(on)
                    && *cursor == dsn
                {
                    *cursor = dsn + length.get();
                }
            }
            Event::Repeated { on, dsn, length } => {
                if let Some(cursor) = self.cursors.of(on) {
                    *cursor = dsn + length.get();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubflowView;
    use crate::scheduler::testing::*;

    const UNA: u64 = u64::MAX - 1999;

    /// The DSN `n` segments after the first one; they wrap at the third.
    fn dsn(n: u64) -> Dsn {
        Dsn::new(UNA) + 1000 * n
    }

    /// Segments before `una` are acknowledged, those before `sent` were sent, those before `written` were written.
    fn moment(subflows: &[SubflowView], una: u64, sent: u64, written: u64) -> View<'_> {
        View { data_una: dsn(una), unsent_from: dsn(sent), ..view(subflows, written - sent) }
    }

    /// Asks `n` times, and does as told.
    fn trace(redundant: &mut Redundant, mut moment: View<'_>, n: usize) -> Vec<(u16, i64)> {
        let mut sent = Vec::new();
        for _ in 0..n {
            let (on, dsn, event) = match redundant.decide(at(0), &moment) {
                Decision::Send { on, .. } => {
                    let dsn = moment.unsent_from;
                    moment.unsent_from = dsn + 1000;
                    moment.unsent -= segments(1);
                    moment.sendable -= segments(1);
                    (on, dsn, Event::Sent { on, dsn, skip: segments(0), length: segments(1) })
                }
                Decision::Repeat { on, from } => (on, from, Event::Repeated { on, dsn: from, length: segments(1) }),
                Decision::Wait { .. } => {
                    sent.push((99, 0));
                    continue;
                }
            };
            redundant.observe(at(0), &event);
            sent.push((on.0, dsn.distance(Dsn::new(UNA)) / 1000));
        }
        sent
    }

    fn pair() -> [SubflowView; 2] {
        [subflow(FAST, 10, 10, 0), subflow(SLOW, 100, 10, 0)]
    }

    /// Two subflows with room write four segments: each twice, then nothing is left.
    #[test]
    fn every_segment_goes_out_on_every_subflow() {
        let subflows = pair();
        let trace = trace(&mut Redundant::default(), moment(&subflows, 0, 0, 4), 9);
        assert_eq!(trace, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3), (99, 0)]);
    }

    #[test]
    fn a_laggard_copies_what_is_not_acknowledged_and_jumps_over_the_rest() {
        let (mut redundant, [fast, slow]) = (Redundant::default(), pair());
        let full = [fast, SubflowView { in_flight: slow.cwnd, ..slow }];
        let ahead = trace(&mut redundant, moment(&full, 0, 0, 9), 4);
        assert_eq!(ahead, [(0, 0), (0, 1), (0, 2), (0, 3)]);
        // Segments 0 and 1 were acknowledged; the slow one has room.
        let subflows = [fast, slow];
        let then = trace(&mut redundant, moment(&subflows, 2, 4, 9), 5);
        assert_eq!(then, [(1, 2), (0, 4), (1, 3), (0, 5), (1, 4)]);
    }

    #[test]
    fn copies_need_no_window_and_no_new_data_but_new_data_needs_both() {
        let (mut redundant, subflows) = (Redundant::default(), pair());
        let shut = View { sendable: segments(0), ..moment(&subflows, 0, 1, 9) };
        assert_eq!(trace(&mut redundant, shut, 3), [(0, 0), (1, 0), (99, 0)]);
        assert_eq!(trace(&mut Redundant::default(), moment(&subflows, 0, 1, 1), 3), [(0, 0), (1, 0), (99, 0)]);
    }

    /// The engine sent segment 1 on its own account; and what the slow subflow had carried before it passed over.
    #[test]
    fn a_cursor_moves_only_by_what_stands_there() {
        let (mut redundant, subflows) = (Redundant::default(), pair());
        assert_eq!(trace(&mut redundant, moment(&subflows, 0, 1, 2), 1), [(0, 0)]);
        redundant.observe(at(0), &Event::Sent { on: SLOW, dsn: dsn(1), skip: segments(0), length: segments(1) });
        assert_eq!(redundant.decide(at(0), &moment(&subflows, 0, 2, 2)), Decision::Repeat { on: SLOW, from: dsn(0) });
        redundant.observe(at(0), &Event::Repeated { on: SLOW, dsn: dsn(2), length: segments(0) });
        assert_eq!(trace(&mut redundant, moment(&subflows, 0, 2, 2), 2), [(0, 1), (99, 0)]);
    }

    #[test]
    fn backups_carry_no_copies() {
        let backups = pair().map(|subflow| SubflowView { backup: true, ..subflow });
        let trace = trace(&mut Redundant::default(), moment(&backups, 0, 2, 5), 4);
        assert_eq!(trace, [(0, 2), (1, 3), (0, 4), (99, 0)]);
    }
}
