//! LISA: linked slow start. A joining subflow takes its first window from another instead of adding it.
//!
//! R. Barik, S. Ferlin, M. Welzl. *A Linked Slow-Start Algorithm for MPTCP.* draft-barik-mptcp-lisa-01; R. Barik, M.
//! Welzl, S. Ferlin, O. Alay. *LISA: A Linked Slow-Start Algorithm for MPTCP.* IEEE ICC 2016.
//!
//! The subflow with the largest window of those in slow start gives half of it, at most an initial window and at least
//! three segments; one with less than twice three gives nothing, and the new subflow begins with three. The gift is
//! taken off the giver's window at once, and as many bytes acknowledged there earn no growth, so that both together
//! grow as the one would have. Without a subflow in slow start, a new one begins as ever.
//!
//! Where we differ: this is one reading of both texts, made from their idea (credits of 3 to 10 segments, growth halted
//! for as many ACKs); the giver is the one with the largest window, where the texts also speak of the largest rate.
//! Bytes stand for packets, so that unequal segment sizes add up.

use super::Flow;
use anabranch_units::{Bytes, Window};

/// A first window, and who pays for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Credit {
    /// The window of the new subflow.
    pub(super) window: Window,
    /// Index of the subflow that gives as much, if one can.
    pub(super) giver: Option<usize>,
}

/// Returns the first window of a new subflow with segments of `mss`; alone it would begin with `initial`.
/// `in_slow_start` selects the flows that may give.
pub(super) fn credit(flows: &[Flow], in_slow_start: impl Fn(usize) -> bool, mss: Bytes, initial: Window) -> Credit {
    let mut richest: Option<usize> = None;
    for on in (0..flows.len()).filter(|&on| in_slow_start(on)) {
        if richest.is_none_or(|best| flows[on].cwnd > flows[best].cwnd) {
            richest = Some(on);
        }
    }
    let least = (Window::from(mss) * LEAST_SEGMENTS).min(initial);
    match richest {
        None => Credit { window: initial, giver: None },
        Some(on) if flows[on].cwnd < least * 2.0 => Credit { window: least, giver: None },
        Some(on) => Credit { window: (flows[on].cwnd / 2.0).clamp(least, initial), giver: Some(on) },
    }
}

/// The initial window of RFC 3390 for usual segments.
const LEAST_SEGMENTS: f64 = 3.0;

#[cfg(test)]
mod tests {
    use crate::congestion::rules::EXAMPLE;
    use crate::congestion::{Ack, Capabilities, CongestionControl, Controller, Lia, Rules};
    use crate::registry::Built;
    use anabranch_units::{Bytes, Instant, SubflowId};

    const RULES: Rules = Rules { byte_counting_limit_segments: u32::MAX, ..EXAMPLE };

    fn ack(c: &mut Controller, id: u16, bytes: u64) {
        let ack = Ack { acked: Bytes::new(bytes), cwnd_limited: true, ..Ack::default() };
        c.on_ack(Instant::ZERO, SubflowId(id), &ack);
    }

    fn windows(c: &Controller) -> Vec<u64> {
        c.flows().iter().map(|flow| flow.cwnd.whole().get()).collect()
    }

    fn lia(linked_slow_start: bool) -> Built<CongestionControl> {
        let capabilities = Capabilities { linked_slow_start, ..Capabilities::default() };
        Built { policy: CongestionControl::window_based(Lia), capabilities }
    }

    /// A connection with one subflow that has grown to `cwnd` bytes.
    fn connection(lisa: bool, cwnd: u64) -> Controller {
        let mut c = Controller::new(lia(lisa), RULES);
        c.add(SubflowId(0), Bytes::new(1000));
        c.set_counted(SubflowId(0), true);
        ack(&mut c, 0, cwnd - 10_000);
        c
    }

    /// Half of the largest window in slow start, but no more than an initial one, and not less than three segments.
    #[test]
    fn the_first_window_comes_out_of_the_largest_in_slow_start() {
        for (cwnd, lisa, expected) in [
            (40_000, false, [40_000, 10_000]),
            (40_000, true, [30_000, 10_000]),
            (20_000, true, [10_000, 10_000]),
            (15_000, true, [7_500, 7_500]),
            (10_000, true, [5_000, 5_000]),
        ] {
            let mut c = connection(lisa, cwnd);
            c.add(SubflowId(1), Bytes::new(1000));
            assert_eq!(windows(&c), expected, "{cwnd} {lisa}");
        }
        let mut small = Controller::new(lia(true), RULES);
        small.add(SubflowId(0), Bytes::new(1000));
        small.set_counted(SubflowId(0), true);
        small.penalise(Instant::ZERO, SubflowId(0));
        small.add(SubflowId(1), Bytes::new(1000));
        assert_eq!(windows(&small), [5_000, 3_000], "five segments are too few to give three of");
    }

    /// ACKs of data in flight at the time do not regain the gift: both grow as one would have.
    #[test]
    fn the_giver_does_not_grow_for_what_it_gave() {
        let mut c = connection(true, 40_000);
        c.add(SubflowId(1), Bytes::new(1000));
        for (bytes, expected) in [(4_000, 30_000), (6_000, 30_000), (2_000, 32_000)] {
            ack(&mut c, 0, bytes);
            assert_eq!(windows(&c)[0], expected);
        }
    }

    #[test]
    fn nobody_gives_after_slow_start_or_outside_the_sums() {
        for spoil in [
            |c: &mut Controller| c.on_fast_retransmit(Instant::ZERO, SubflowId(0), Bytes::new(40_000)),
            |c: &mut Controller| c.on_rto(Instant::ZERO, SubflowId(0), Bytes::new(40_000), true),
            |c: &mut Controller| c.set_counted(SubflowId(0), false),
        ] {
            let mut c = connection(true, 40_000);
            spoil(&mut c);
            let before = windows(&c)[0];
            c.add(SubflowId(1), Bytes::new(1000));
            assert_eq!(windows(&c), [before, 10_000]);
        }
    }

    /// Windows compare in bytes: the larger window gives, not the one of more segments; the credit is one of the new
    /// subflow's size.
    #[test]
    fn unequal_segments_are_summed_in_bytes() {
        let mut c = connection(false, 30_000);
        c.add(SubflowId(1), Bytes::new(4000));
        c.set_counted(SubflowId(1), true);
        c.replace(Instant::ZERO, lia(true));
        c.add(SubflowId(2), Bytes::new(500));
        assert_eq!(windows(&c), [30_000, 35_000, 5_000]);
    }
}
