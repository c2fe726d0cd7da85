//! The round-trip time that predictions use, with the cure for stale ones.

use crate::SubflowView;
use anabranch_units::{Duration, Instant, SubflowId};

/// Which RTT counts: the smoothed one or the last sample, or the first ever measured while the subflow's others are stale.
///
/// They are stale once it has sent nothing for longer than its timeout, and until data sent after that is acknowledged. A
/// path that was congested when it was last used would otherwise never be used again.
#[derive(Default)]
pub(super) struct Clock {
    last_sample: bool,
    stale: Vec<Stale>,
}

/// A subflow that fell silent.
struct Stale {
    id: SubflowId,
    /// When it had last sent.
    since: Instant,
    /// What was acknowledged then: more says that there is a new sample.
    acked: u64,
}

impl Clock {
    pub(super) fn new(last_sample: bool) -> Self {
        Clock { last_sample, stale: Vec::new() }
    }

    /// The RTT of a subflow now. To be asked at every decision, of every subflow: it notes who fell silent.
    pub(super) fn rtt(&mut self, now: Instant, subflow: &SubflowView) -> Duration {
        let known = self.stale.iter_mut().find(|stale| stale.id == subflow.id);
        let silent = subflow.last_sent.filter(|&last| now.since(last) > subflow.rto);
        let acked = subflow.acked;
        let is_stale = match (known, silent) {
            (Some(stale), Some(since)) if stale.since != since => {
                (stale.since, stale.acked) = (since, acked);
                true
            }
            (Some(stale), _) => stale.acked == acked,
            (None, Some(since)) => {
                self.stale.push(Stale { id: subflow.id, since, acked });
                true
            }
            (None, None) => false,
        };
        match (is_stale, self.last_sample) {
            (true, _) => subflow.rtt_first,
            (false, true) => subflow.rtt_last,
            (false, false) => subflow.srtt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

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
            assert_eq!(clock.rtt(at(300), &sent_at(0, 5)), usual, "300 ms is the timeout, not more");
            assert_eq!(clock.rtt(at(301), &sent_at(0, 5)), first);
            assert_eq!(clock.rtt(at(302), &sent_at(301, 5)), first, "sent again, no sample yet");
            assert_eq!(clock.rtt(at(330), &sent_at(301, 6)), usual, "a new sample");
            assert_eq!(clock.rtt(at(700), &sent_at(301, 6)), first, "silent once more");
            assert_eq!(clock.rtt(at(701), &sent_at(301, 7)), usual, "a late acknowledgment is a sample as well");
        }
    }

    #[test]
    fn who_never_sent_is_not_silent() {
        let never = SubflowView { rtt_first: Duration::from_millis(20), ..subflow(FAST, 100, 10, 0) };
        assert_eq!(Clock::new(false).rtt(at(10_000), &never), Duration::from_millis(100));
    }
}
