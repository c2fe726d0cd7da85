//! Smooth weighted round robin: turns in proportion to weights, spread as evenly as they go.
//!
//! With each turn the credit of every candidate rises by its weight; who has the most (of equals, the lowest id) takes
//! the turn and pays the sum of the weights. Who is no candidate earns nothing. With equal weights this is round robin.
//!
//! Credits stay within one such sum. Unbounded, a debt from the time of large weights would silence a subflow for long
//! after weights have become small.

use super::ack_due;
use super::per_subflow::PerSubflow;
use crate::{Decision, SubflowView};

/// Claim of one subflow.
pub(super) struct Turn {
    /// Its share, against the weights of the others; from 1 to [`Turn::HEAVIEST`].
    weight: u64,
    credit: i64,
}

impl Turn {
    /// The largest weight. Sixteen of them are far from overflow.
    const HEAVIEST: u64 = 1 << 48;

    pub fn new(weight: u64) -> Self {
        let mut turn = Turn { weight: 0, credit: 0 };
        turn.weigh(weight);
        turn
    }

    /// Another weight from now on.
    pub fn weigh(&mut self, weight: u64) {
        self.weight = weight.clamp(1, Self::HEAVIEST);
    }
}

/// Returns the subflow with the next turn. One without room is skipped or, unless `pass_over`, waited for, as long as
/// an ACK is due there.
pub(super) fn take<T>(
    kept: &mut PerSubflow<T>,
    turn_of: impl Fn(&mut T) -> &mut Turn,
    subflows: &[SubflowView],
    pass_over: bool,
) -> Decision {
    let candidate = |subflow: &SubflowView| subflow.has_room() || (!pass_over && subflow.open && ack_due(subflow));
    let (mut sum, mut best) = (0, None);
    for (at, (kept, subflow)) in kept.iter_mut().zip(subflows).enumerate() {
        if candidate(subflow) {
            let turn = turn_of(kept);
            sum += turn.weight as i64;
            let claim = turn.credit + turn.weight as i64;
            if best.is_none_or(|(_, most)| claim > most) {
                best = Some((at, claim));
            }
        }
    }
    let Some((chosen, _)) = best.filter(|(at, _)| subflows[*at].has_room()) else { return Decision::WAIT };
    for (at, (kept, subflow)) in kept.iter_mut().zip(subflows).enumerate() {
        if candidate(subflow) {
            let turn = turn_of(kept);
            let paid = if at == chosen { sum } else { 0 };
            turn.credit = (turn.credit + turn.weight as i64 - paid).clamp(-sum, sum);
        }
    }
    Decision::send(subflows[chosen].id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::SubflowId;

    /// Returns the subflows of the next `n` turns; 99 waits.
    fn turns(kept: &mut PerSubflow<Turn>, subflows: &[SubflowView], pass_over: bool, n: usize) -> Vec<u16> {
        let mut next = || match take(kept, |turn| turn, subflows, pass_over) {
            Decision::Send { on, .. } => on.0,
            _ => 99,
        };
        (0..n).map(|_| next()).collect()
    }

    fn weighted(weights: &[u64]) -> (PerSubflow<Turn>, Vec<SubflowView>) {
        let subflows: Vec<_> = (0..weights.len()).map(|id| subflow(SubflowId(id as u16), 10, 10, 0)).collect();
        let mut kept = PerSubflow::default();
        kept.follow(&subflows, |subflow| Turn::new(weights[usize::from(subflow.id.0)]));
        (kept, subflows)
    }

    /// Computed by a script of our own.
    #[test]
    fn shares_are_exact_and_spread_out() {
        for (weights, expected) in [
            (&[1, 1][..], &[0, 1, 0, 1, 0, 1][..]),
            (&[3, 1], &[0, 0, 1, 0, 0, 0, 1, 0]),
            (&[5, 1, 1], &[0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]),
            (&[1, 2, 4], &[2, 1, 2, 0, 2, 1, 2]),
        ] {
            let (mut kept, subflows) = weighted(weights);
            assert_eq!(turns(&mut kept, &subflows, true, expected.len()), expected, "{weights:?}");
        }
    }

    #[test]
    fn who_is_unavailable_earns_nothing() {
        let (mut kept, mut subflows) = weighted(&[1, 1]);
        subflows[1].in_flight = subflows[1].cwnd;
        assert_eq!(turns(&mut kept, &subflows, true, 5), [0; 5]);
        subflows[1].in_flight -= segments(5);
        assert_eq!(turns(&mut kept, &subflows, true, 4), [0, 1, 0, 1]);
    }

    #[test]
    fn a_full_window_is_waited_for_if_asked_and_waiting_costs_nothing() {
        let (mut kept, mut subflows) = weighted(&[3, 1]);
        subflows[0].in_flight = subflows[0].cwnd;
        assert_eq!(turns(&mut kept, &subflows, false, 5), [99; 5]);
        subflows[0].in_flight -= segments(5);
        assert_eq!(turns(&mut kept, &subflows, false, 4), [0, 0, 1, 0]);
        // Not for what cannot come.
        let cannot = [SubflowView { in_flight: segments(0), throttled: true, ..subflows[0] }, subflows[1]];
        assert_eq!(turns(&mut kept, &cannot, false, 2), [1, 1]);
        let recovering = [SubflowView { open: false, ..subflows[0] }, subflows[1]];
        assert_eq!(turns(&mut kept, &recovering, false, 2), [1, 1]);
    }

    /// 0 and 1 had 10⁹ each, and 0 took the last turn; then their weights fell to 1.
    #[test]
    fn debts_do_not_outlive_the_weights() {
        let (mut kept, subflows) = weighted(&[1_000_000_000, 1_000_000_000]);
        assert_eq!(turns(&mut kept, &subflows, true, 1), [0]);
        kept.iter_mut().for_each(|turn| turn.weigh(1));
        assert_eq!(turns(&mut kept, &subflows, true, 7), [1, 1, 1, 0, 1, 0, 1]);
    }
}
