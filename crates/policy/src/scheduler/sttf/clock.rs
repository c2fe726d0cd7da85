//! The round-trip time that predictions use, with the cure for stale ones.

use crate::SubflowView;
use crate::scheduler::per_subflow::PerSubflow;
use anabranch_units::{Duration, Instant};

/// Selects the RTT: the smoothed one or the last sample, or the first ever measured while the subflow's others are
/// stale.
///
/// They are stale once it has been silent for longer than its timeout, and until data sent after that is acknowledged.
/// Otherwise a path that was congested when last used would never be used again.
#[derive(Default)]
pub(super) struct Clock {
    last_sample: bool,
    stale: PerSubflow<Option<Stale>>,
}

/// State of a subflow that fell silent.
struct Stale {
    /// Time at which it had last sent.
    since: Instant,
    /// Bytes acknowledged then: a larger count means that there is a new sample.
    acked: u64,
}

impl Clock {
    pub(super) fn new(last_sample: bool) -> Self {
        Clock { last_sample, stale: PerSubflow::default() }
    }

    /// The RTT of each of a view's subflows now, in its order. To be asked at every decision: it notes who fell silent.
    pub(super) fn rtts(&mut self, now: Instant, subflows: &[SubflowView]) -> impl Iterator<Item = Duration> {
        self.stale.follow(subflows, |_| None);
        let last_sample = self.last_sample;
        self.stale.iter_mut().zip(subflows).map(move |(stale, subflow)| {
            match (is_stale(stale, now, subflow), last_sample) {
                (true, _) => subflow.rtt_first,
                (false, true) => subflow.rtt_last,
                (false, false) => subflow.srtt,
            }
        })
    }
}

/// Returns true if this subflow's measurements are stale, given its latest silence.
fn is_stale(known: &mut Option<Stale>, now: Instant, subflow: &SubflowView) -> bool {
    let silent = subflow.last_sent.filter(|&last| now.since(last) > subflow.rto);
    match (known.as_ref(), silent) {
        (Some(stale), None) => stale.acked == subflow.acked,
        (Some(stale), Some(since)) if stale.since == since => stale.acked == subflow.acked,
        (_, Some(since)) => {
            *known = Some(Stale { since, acked: subflow.acked });
            true
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::SubflowId;

    #[test]
    fn a_silent_subflow_has_the_first_rtt_until_a_new_sample() {
        let first = Duration::from_millis(20);
        let sent_at = |ms, acked| SubflowView {
            rtt_first: first,
            rtt_last: Duration::from_millis(90),
            last_sent: Some(at(ms)),
            acked,
            ..subflow(FAST, 100, 10, 0)
        };
        for (last_sample, usual) in [(false, 100), (true, 90)] {
            let usual = Duration::from_millis(usual);
            let mut clock = Clock::new(last_sample);
            for (ms, subflow, expected, why) in [
                (300, sent_at(0, 5), usual, "300 ms is the timeout, not more"),
                (301, sent_at(0, 5), first, "silent"),
                (302, sent_at(301, 5), first, "sent again, no sample yet"),
                (330, sent_at(301, 6), usual, "a new sample"),
                (700, sent_at(301, 6), first, "silent once more"),
                (701, sent_at(301, 7), usual, "a late acknowledgment is a sample as well"),
            ] {
                assert_eq!(clock.rtts(at(ms), &[subflow]).collect::<Vec<_>>(), [expected], "{why}");
            }
        }
    }

    #[test]
    fn subflows_that_are_gone_are_forgotten() {
        let mut clock = Clock::new(false);
        for id in 0..1000 {
            let silent = SubflowView { last_sent: Some(at(0)), ..subflow(SubflowId(id), 100, 10, 0) };
            clock.rtts(at(1000), &[silent]).for_each(drop);
        }
        assert_eq!(clock.stale.iter().count(), 1);
    }

    #[test]
    fn who_never_sent_is_not_silent() {
        let never = SubflowView { rtt_first: Duration::from_millis(20), ..subflow(FAST, 100, 10, 0) };
        let usual = [Duration::from_millis(100)];
        assert_eq!(Clock::new(false).rtts(at(10_000), &[never]).collect::<Vec<_>>(), usual);
    }
}
