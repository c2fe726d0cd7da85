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

/// One recovery. All in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// RecoverFS.
    prior: f64,
    /// prr_delivered.
    delivered: f64,
    /// prr_out.
    out: f64,
}

impl Reduction {
    /// Begins a reduction from a window of `prior` bytes.
    pub(super) fn new(prior: f64) -> Self {
        Reduction { prior, delivered: 0.0, out: 0.0 }
    }

    /// Counts bytes that leave, new or repeated.
    pub(super) fn on_sent(&mut self, bytes: f64) {
        self.out += bytes;
    }

    /// The window after an ACK that delivers `acked` bytes and leaves `pipe` in flight.
    pub(super) fn window(&mut self, acked: f64, pipe: f64, ssthresh: f64, mss: f64) -> f64 {
        let begins = self.delivered <= 0.0 && self.out <= 0.0;
        self.delivered += acked;
        let count = if pipe > ssthresh {
            (self.delivered * ssthresh / self.prior / mss).ceil() * mss - self.out
        } else {
            (ssthresh - pipe).min((self.delivered - self.out).max(acked) + mss)
        };
        // The first segment is repeated at once.
        pipe + count.max(if begins { mss } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of one byte, a window of 20 that falls to 14 (CUBIC's 0.7), the first segment lost: 15 are in flight
    /// behind the three SACKed ones and the one lost, plus the one that just came. Every tenth ACK lets seven out.
    #[test]
    fn seven_leave_for_every_ten_that_arrive() {
        let mut reduction = Reduction::new(20.0);
        let (mut pipe, mut sent) = (19.0, 0);
        let mut windows = Vec::new();
        for _ in 0..10 {
            pipe -= 1.0; // A SACK for one.
            let window = reduction.window(1.0, pipe, 14.0, 1.0);
            windows.push(window);
            while pipe + 1.0 <= window {
                pipe += 1.0;
                sent += 1;
                reduction.on_sent(1.0);
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
        let mut reduction = Reduction::new(20.0);
        let mut pipe = 8.0;
        for expected in [9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 14.0, 14.0] {
            pipe -= 1.0;
            let window = reduction.window(1.0, pipe, 14.0, 1.0);
            assert_eq!(window, expected);
            reduction.on_sent(window - pipe);
            pipe = window;
        }
    }

    #[test]
    fn the_first_ack_sends_one_whatever_the_quotient_says() {
        assert_eq!(Reduction::new(100.0).window(0.0, 90.0, 50.0, 1.0), 91.0);
    }
}
