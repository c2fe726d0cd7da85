//! Proportional rate reduction: the window shrinks during fast recovery with what is delivered.
//!
//! M. Mathis, N. Dukkipati, Y. Cheng. *Proportional Rate Reduction for TCP.* RFC 6937, with the slow-start reduction
//! bound, as in Linux 3.2 to 4.2 (`tcp_cwnd_reduction`, net/ipv4/tcp_input.c). Per ACK in recovery
//! ```text
//! pipe > ssthresh:  sndcnt = ceil(prr_delivered · ssthresh / RecoverFS) - prr_out
//! else:             sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, DeliveredData) + MSS)
//! cwnd = pipe + sndcnt
//! ```
//! RecoverFS is the window before, as in Linux; the quotient is rounded up to a segment. When recovery ends, the window
//! is ssthresh.

use anabranch_units::{Bytes, Window};

/// One recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// RecoverFS.
    prior: Window,
    /// prr_delivered.
    delivered: Window,
    /// prr_out.
    out: Window,
}

impl Reduction {
    /// Begins a reduction from a window of `prior`.
    pub(super) fn new(prior: Window) -> Self {
        Reduction { prior, delivered: Window::ZERO, out: Window::ZERO }
    }

    /// Counts bytes that leave, new or repeated.
    pub(super) fn on_sent(&mut self, bytes: Bytes) {
        self.out += bytes.into();
    }

    /// The window after an ACK that delivers `acked` and leaves `pipe` in flight, with segments of `mss`.
    pub(super) fn window(&mut self, acked: Window, pipe: Window, ssthresh: Window, mss: Window) -> Window {
        let begins = !self.delivered.is_positive() && !self.out.is_positive();
        self.delivered += acked;
        let count = if pipe > ssthresh {
            mss * self.delivered.scaled(ssthresh, self.prior).per(mss).ceil() - self.out
        } else {
            (ssthresh - pipe).min((self.delivered - self.out).max(acked) + mss)
        };
        // The first segment is repeated at once.
        pipe + count.max(if begins { mss } else { Window::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduction(prior: f64) -> Reduction {
        Reduction::new(Window::new(prior))
    }

    /// Segments of one byte.
    fn window(reduction: &mut Reduction, acked: f64, pipe: f64, ssthresh: f64) -> f64 {
        let [acked, pipe, ssthresh] = [acked, pipe, ssthresh].map(Window::new);
        reduction.window(acked, pipe, ssthresh, Window::new(1.0)).as_f64()
    }

    /// Segments of one byte, a window of 20 that falls to 14 (CUBIC's 0.7), the first segment lost: 15 are in flight
    /// behind the three SACKed ones and the one lost, plus the one that just came. Every tenth ACK lets seven out.
    #[test]
    fn seven_leave_for_every_ten_that_arrive() {
        let mut reduction = reduction(20.0);
        let (mut pipe, mut sent) = (19.0, 0);
        let mut windows = Vec::new();
        for _ in 0..10 {
            pipe -= 1.0; // A SACK for one.
            let window = window(&mut reduction, 1.0, pipe, 14.0);
            windows.push(window);
            while pipe + 1.0 <= window {
                pipe += 1.0;
                sent += 1;
                reduction.on_sent(Bytes::new(1));
            }
        }
        // ceil(0.7 n) for n = 1 to 10: 1 2 3 3 4 5 5 6 7 7.
        assert_eq!(sent, 7, "{windows:?}");
        assert_eq!(windows, [19.0, 19.0, 19.0, 18.0, 18.0, 18.0, 17.0, 17.0, 17.0, 16.0]);
    }

    /// Half a window lost: 8 of 20 in flight, less than the threshold. Each ACK lets one more out than it delivers, up
    /// to the threshold.
    #[test]
    fn below_the_threshold_the_window_grows_as_in_slow_start() {
        let mut reduction = reduction(20.0);
        let mut pipe = 8.0;
        for expected in [9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 14.0, 14.0] {
            pipe -= 1.0;
            let window = window(&mut reduction, 1.0, pipe, 14.0);
            assert_eq!(window, expected);
            reduction.on_sent(Window::new(window - pipe).whole());
            pipe = window;
        }
    }

    #[test]
    fn the_first_ack_sends_one_whatever_the_quotient_says() {
        assert_eq!(window(&mut reduction(100.0), 0.0, 90.0, 50.0), 91.0);
    }
}
