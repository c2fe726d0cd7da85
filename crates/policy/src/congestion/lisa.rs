//! LISA: linked slow start. A joining subflow takes its first window from another instead of adding it.
//!
//! R. Barik, S. Ferlin, M. Welzl. *A Linked Slow-Start Algorithm for MPTCP.* draft-barik-mptcp-lisa-01; R. Barik, M. Welzl,
//! S. Ferlin, O. Alay. *LISA: A Linked Slow-Start Algorithm for MPTCP.* IEEE ICC 2016.
//!
//! The subflow with the largest window of those in slow start gives half of it, at most an initial window and at least
//! three segments; one with less than twice three gives nothing, and the new subflow begins with three. What was given comes
//! out of the giver's window at once, and as many bytes acknowledged there earn no growth, so that both together grow
//! as the one would have. Without a subflow in slow start, a new one begins as ever.
//!
//! Where we differ: this is one reading of both texts, made from their idea (credits of 3 to 10 segments, growth
//! halted for as many ACKs); the giver is the one with the largest window, where the texts also speak of the largest
//! rate. Bytes stand for packets, so that unequal segment sizes add up.

use super::Flow;

/// A first window, and who pays for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Credit {
    /// The window of the new subflow \[bytes\].
    pub(super) window: f64,
    /// Index of the subflow that gives as much, if one can.
    pub(super) giver: Option<usize>,
}

/// What a new subflow with segments of `mss` bytes begins with, `initial` \[bytes\] if it were alone. `in_slow_start` says
/// which of the flows may give.
pub(super) fn credit(flows: &[Flow], in_slow_start: impl Fn(usize) -> bool, mss: f64, initial: f64) -> Credit {
    let mut richest: Option<usize> = None;
    for on in (0..flows.len()).filter(|&on| in_slow_start(on)) {
        if richest.is_none_or(|best| flows[on].cwnd > flows[best].cwnd) {
            richest = Some(on);
        }
    }
    let least = (LEAST_SEGMENTS * mss).min(initial);
    match richest {
        None => Credit { window: initial, giver: None },
        Some(on) if flows[on].cwnd < 2.0 * least => Credit { window: least, giver: None },
        Some(on) => Credit { window: (flows[on].cwnd / 2.0).clamp(least, initial), giver: Some(on) },
    }
}

/// The initial window of RFC 3390 for usual segments.
const LEAST_SEGMENTS: f64 = 3.0;
