//! Linux proportional: a slow subflow leaves out the data that the faster ones send during its RTT, and takes the data
//! behind.
//!
//! S. Barré. *Implementation and Assessment of Modern Host-Based Multipath Solutions.* Thesis, UCLouvain 2011; restated
//! by F2P and RBP as the scheduler of "Linux MPTCP". The kernels from v0.8x on have [`MinRtt`](super::MinRtt) instead.
//!
//! Subflow `i` begins behind
//! ```text
//! N_i = Σ RTT_i / RTT_j · cwnd_j     over the usable j with RTT_j < RTT_i
//! ```
//! unsent segments: the sum is rounded, not its terms. Windows do not grow, nothing is lost. A subflow with no faster
//! one takes the first unsent segment. With `N_i` segments unsent or fewer, or where the peer's window ends before, the
//! slow subflow is silent.
//!
//! This counts the data that `j` sends in a whole `RTT_i`, though only data that arrives in half of it is ahead of the
//! slow segment, so it leaves out too much; kept as it is written (A-PROPORTIONAL).
//!
//! Where we differ: where segments differ in size, `cwnd_j` is counted in segments of `i`.

use super::Entry;
use super::skip::{Reserve, SkipAhead, faster, whole_segments};
use crate::{SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "linux-proportional",
    "a slow subflow starts behind the data that faster ones send in one of its RTTs",
    include_str!("linux_proportional.rs"),
    |_| Box::new(LinuxProportional::scheduler()),
)
.paper("Barré 2011");

/// Prediction proportional to the RTTs.
pub(super) struct LinuxProportional;

impl LinuxProportional {
    /// Builds the scheduler, which has no parameters.
    pub(super) fn scheduler() -> SkipAhead<Self> {
        SkipAhead(LinuxProportional)
    }
}

impl Reserve for LinuxProportional {
    fn reserve(&mut self, _now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        let sent = |fast: &SubflowView| slow.srtt.per(fast.srtt) * fast.cwnd.per(slow.mss);
        whole_segments(faster(view, slow).map(sent).sum(), slow.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;
    use crate::scheduler::Scheduler;
    use crate::scheduler::testing::*;
    use anabranch_units::SubflowId;

    fn decide(subflows: &[SubflowView], unsent: u64) -> Decision {
        LinuxProportional::scheduler().decide(at(0), &view(subflows, unsent))
    }

    /// Computed by hand: RTT 500 against 100, window 10, N = 50.
    #[test]
    fn worked_example() {
        let full = [subflow(FAST, 100, 10, 10), subflow(SLOW, 500, 10, 0)];
        assert_eq!(decide(&full, 51), Decision::Send { on: SLOW, skip: segments(50) });
        assert_eq!(decide(&full, 1000), Decision::Send { on: SLOW, skip: segments(50) });
        for silent in [1, 49, 50] {
            assert_eq!(decide(&full, silent), Decision::WAIT, "{silent} unsent");
        }
        assert_eq!(decide(&[subflow(FAST, 100, 10, 9), full[1]], 1000), Decision::send(FAST));
    }

    /// Three subflows: 100/30 · 4 + 100/70 · 5 = 13.33 + 7.14 = 20.48, so 20; each rounded up it were 22. Then windows
    /// of 4.03 and 5.15: 13.43 + 7.36 = 20.79, so 21; each rounded it were 20.
    #[test]
    fn the_sum_is_rounded_not_its_terms() {
        let third = SubflowId(2);
        for (more, expected) in [((0, 0), 20), ((30, 150), 21)] {
            let cwnd = |subflow: SubflowView, more| SubflowView { cwnd: subflow.cwnd + Bytes::new(more), ..subflow };
            let (fast, slow) = (subflow(FAST, 30, 4, 4), subflow(SLOW, 70, 5, 5));
            let subflows = [cwnd(fast, more.0), cwnd(slow, more.1), subflow(third, 100, 10, 0)];
            assert_eq!(decide(&subflows, 1000), Decision::Send { on: third, skip: segments(expected) });
        }
    }

    #[test]
    fn the_window_binds() {
        let full = [subflow(FAST, 100, 10, 10), subflow(SLOW, 500, 10, 0)];
        let within = |bytes| View { sendable: Bytes::new(bytes), ..view(&full, 1000) };
        assert_eq!(LinuxProportional::scheduler().decide(at(0), &within(50_999)), Decision::WAIT);
        let send = Decision::Send { on: SLOW, skip: segments(50) };
        assert_eq!(LinuxProportional::scheduler().decide(at(0), &within(51_000)), send);
    }

    #[test]
    fn who_has_no_faster_one_to_wait_for_takes_the_first() {
        let slow = subflow(SLOW, 500, 10, 0);
        assert_eq!(decide(&[slow], 5), Decision::send(SLOW));
        assert_eq!(decide(&[subflow(FAST, 500, 10, 10), slow], 5), Decision::send(SLOW));
        let held_back = SubflowView { throttled: true, ..subflow(FAST, 100, 10, 0) };
        assert_eq!(decide(&[held_back, slow], 5), Decision::send(SLOW));
        assert_eq!(decide(&[SubflowView { open: false, ..held_back }, slow], 5), Decision::send(SLOW));
    }
}
