//! Even split: each of `n` subflows gets an `n`-th of the buffer, however fast it is.
//!
//! The buffer splitting of CMT-SCTP, which has two halves, here the parameters `receive` (on by default) and `send`:
//! ```text
//! receive:             unacked_i < receive_buffer / n
//! receive, in_flight:  outstanding_i < (window - Σ (unacked_k - outstanding_k)) / n
//! send:                unacked_i < send_buffer / n
//! ```
//! `unacked` counts the bytes without a DATA_ACK, at the subflow that carried them first. The first line is how J. Han
//! et al. (*Receive Buffer Pre-division Based Flow Control for MPTCP*, 2017) word it. The second is SCTP's rule:
//! `(rwnd + Σ outstanding) / n`, where `rwnd` is the peer's free space less the outstanding bytes. SCTP's peer
//! advertises free space; an MPTCP window also covers bytes that already wait out of order, which are therefore taken
//! off.
//!
//! Where we differ: a byte that is only selectively acknowledged still counts as outstanding; in SCTP it counts as
//! held. A part is at least one byte, so that a connection with nothing unacknowledged can always send.

use super::{Buffers, Entry, ReceiveWindow, Usage};
use crate::registry::{Flag, flag};
use anabranch_units::{Bytes, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "even",
    "the same part of the buffer for each subflow, however fast it is",
    include_str!("even.rs"),
    |p| Box::new(Even::new(RECEIVE.of(p), SEND.of(p), IN_FLIGHT.of(p))),
)
.paper("CMT-SCTP buffer splitting; in the words of Han et al. 2017")
.parameters(&[RECEIVE.parameter(), SEND.parameter(), IN_FLIGHT.parameter()]);

const RECEIVE: Flag = flag("receive", "split the peer's receive buffer", true);
const SEND: Flag = flag("send", "split the sender's own buffer", false);
const IN_FLIGHT: Flag = flag(
    "in_flight",
    "receive: limit bytes in flight to a part of the free space, as SCTP does, not bytes without DATA_ACK",
    false,
);

/// An even split of one or both buffers.
#[derive(Clone, Copy, Debug)]
pub struct Even {
    receive: bool,
    send: bool,
    in_flight: bool,
}

impl Even {
    /// Splits the peer's buffer if `receive` (by what is `in_flight`, as SCTP), and our own if `send`.
    pub fn new(receive: bool, send: bool, in_flight: bool) -> Self {
        Even { receive, send, in_flight }
    }
}

impl ReceiveWindow for Even {
    fn share(&mut self, _now: Instant, buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]) {
        let part = |buffer: Bytes| Bytes::new((buffer.get() / usage.len().max(1) as u64).max(1));
        let held = |one: &Usage| one.unacked.saturating_sub(one.outstanding);
        let free = buffers.window.saturating_sub(usage.iter().map(held).sum());
        for (one, share) in usage.iter().zip(shares) {
            let receive = match (self.receive, self.in_flight) {
                (false, _) => Bytes::MAX,
                (true, false) => part(buffers.receive).saturating_sub(one.unacked),
                (true, true) => part(free).saturating_sub(one.outstanding),
            };
            let send = if self.send { part(buffers.send).saturating_sub(one.unacked) } else { Bytes::MAX };
            *share = receive.min(send);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive_window::testing::{buffers, shares, subflow};

    const M: u64 = u64::MAX;

    fn even(receive: bool, send: bool, in_flight: bool) -> Even {
        Even::new(receive, send, in_flight)
    }

    #[test]
    fn the_part_is_what_is_left_of_the_buffer_over_n() {
        let usage = [subflow(0, 20, 50, 60_000), subflow(1, 100, 50, 10_000)];
        let all = buffers(100_000, 131_072);
        assert_eq!(shares(&mut even(true, false, false), &all, &usage), [5_536, 55_536]);
        // The send buffer of 1 MB gives each 500 kB, the smaller limit counts.
        assert_eq!(shares(&mut even(false, true, false), &all, &usage), [440_000, 490_000]);
        let scant = Buffers { send: Bytes::new(40_000), ..all };
        assert_eq!(shares(&mut even(true, true, false), &scant, &usage), [0, 10_000]);
        assert_eq!(shares(&mut even(false, false, true), &scant, &usage), [M, M], "nothing is split");
    }

    /// The first subflow has 60 kB that are not DATA_ACKed, of which 45 kB wait at the peer. SCTP's peer has 131072 -
    /// 45000 = 86072 B free, advertises that, and the sender takes the 25 kB in flight off and adds them again.
    #[test]
    fn sctp_splits_what_is_free_by_what_is_in_flight() {
        let mut usage = [subflow(0, 20, 50, 60_000), subflow(1, 100, 50, 10_000)];
        usage[0].outstanding = Bytes::new(15_000);
        let all = buffers(131_072, 131_072);
        assert_eq!(shares(&mut even(true, false, true), &all, &usage), [43_036 - 15_000, 43_036 - 10_000]);
        assert_eq!(shares(&mut even(true, false, false), &all, &usage), [5_536, 55_536]);
        // Copies of another subflow's data are outstanding here and not held.
        usage[1].outstanding = Bytes::new(30_000);
        assert_eq!(shares(&mut even(true, false, true), &all, &usage), [28_036, 13_036]);
    }

    #[test]
    fn it_follows_the_number_of_subflows() {
        let usage = [subflow(0, 20, 9, 0), subflow(1, 20, 9, 0), subflow(2, 20, 9, 0), subflow(3, 20, 9, 0)];
        let mut policy = even(true, false, false);
        let parts = [65_536, 43_690, 32_768];
        for (n, part) in (2..=4).zip(parts) {
            assert_eq!(shares(&mut policy, &buffers(131_072, 131_072), &usage[..n]), vec![part; n]);
        }
    }

    #[test]
    fn a_buffer_too_small_to_split_still_lets_one_segment_leave() {
        let usage = [subflow(0, 20, 9, 0), subflow(1, 20, 9, 1)];
        for in_flight in [false, true] {
            assert_eq!(shares(&mut even(true, true, in_flight), &buffers(1, 1), &usage), [1, 0]);
        }
    }
}
