//! The congestion window from one round to the next.

/// The window of the round after one with `cwnd` segments and no loss: doubled up to `ssthresh`, then one more per
/// round (RFC 5681 §3.1). `None` is a threshold that was never set.
pub fn grow(cwnd: u32, ssthresh: Option<u32>) -> u32 {
    Window::new(cwnd, ssthresh).grown(false).cwnd()
}

/// A congestion window and its slow-start threshold in segments.
///
/// Once the window has reached the threshold it never looks at it again (the next loss sets a new one), so the
/// threshold is then forgotten: windows with the same future are equal, and a forecast merges them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Window {
    /// Zero in congestion avoidance.
    ssthresh: u32,
    cwnd: u32,
}

impl Window {
    /// Largest window that is distinguished from larger ones: 2²⁸ − 1 segments, 390 GB.
    pub const MAX: u32 = (1 << Self::BITS) - 1;
    const BITS: u32 = 28;
    /// Bits of a key.
    pub(super) const KEY_BITS: u32 = 2 * Self::BITS;
    /// A halved window is never below two segments (RFC 5681 §3.1, Eq. 4).
    const MIN_SSTHRESH: u32 = 2;

    /// A window of `cwnd` segments, at least one; `None` is a threshold that was never set.
    pub fn new(cwnd: u32, ssthresh: Option<u32>) -> Self {
        let cwnd = cwnd.clamp(1, Self::MAX);
        let ssthresh = ssthresh.unwrap_or(Self::MAX).min(Self::MAX);
        Window { ssthresh: if cwnd < ssthresh { ssthresh } else { 0 }, cwnd }
    }

    /// The window in segments.
    pub fn cwnd(self) -> u32 {
        self.cwnd
    }

    /// The window as a real number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.cwnd)
    }

    /// The threshold below which it doubles; zero in congestion avoidance.
    pub(super) fn slow_start_below(self) -> u32 {
        self.ssthresh
    }

    /// Returns the window after a round without loss. With `overshoot` the last doubling may exceed the threshold.
    pub fn grown(self, overshoot: bool) -> Self {
        if self.ssthresh == 0 {
            return Window { ssthresh: 0, cwnd: (self.cwnd + 1).min(Self::MAX) };
        }
        let doubled = 2 * self.cwnd;
        Window::new(if overshoot { doubled } else { doubled.min(self.ssthresh) }, Some(self.ssthresh))
    }

    /// Returns the window after a fast retransmit: half of it, in congestion avoidance.
    pub fn halved(self) -> Self {
        Window { ssthresh: 0, cwnd: self.half() }
    }

    /// Returns the window after a timeout: one segment, in slow start up to half of the old window.
    pub fn restarted(self) -> Self {
        Window { ssthresh: self.half(), cwnd: 1 }
    }

    /// No more than `max` segments.
    pub fn capped(self, max: u32) -> Self {
        Window { cwnd: self.cwnd.min(max), ..self }
    }

    /// Orders and tells apart windows: the two numbers side by side.
    pub(super) fn key(self) -> u64 {
        u64::from(self.ssthresh) << Self::BITS | u64::from(self.cwnd)
    }

    /// The window with this key.
    pub(super) fn from_key(key: u64) -> Self {
        let field = |shift: u32| (key >> shift) as u32 & Self::MAX;
        Window { ssthresh: field(Self::BITS), cwnd: field(0) }
    }

    fn half(self) -> u32 {
        (self.cwnd / 2).max(Self::MIN_SSTHRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_threshold_and_then_adds_one() {
        for (cwnd, ssthresh, next) in [
            (10, None, 20),
            (10, Some(16), 16), // 2 · 10 would exceed the threshold
            (16, Some(16), 17),
            (17, Some(16), 18),
            (2, Some(15), 4),
            (1, Some(2), 2),
            (5, Some(0), 6),
            (0, None, 2), // an empty window counts as one segment
            (u32::MAX, None, Window::MAX),
        ] {
            assert_eq!(grow(cwnd, ssthresh), next, "grow({cwnd}, {ssthresh:?})");
        }
        assert_eq!(Window::new(10, Some(16)).grown(true).cwnd(), 20);
    }

    /// Transfer times of n segments from a script apart from this code, RTT 10 ms, in ms: windows follow one another by
    /// `grow`.
    #[test]
    fn transfer_times_follow_from_growth() {
        for (n, free, cwnd, ssthresh, expected) in [
            (1, 10, 10, None, 5),
            (10, 10, 10, None, 5),
            (11, 10, 10, None, 15),
            (30, 10, 10, None, 15),
            (31, 10, 10, None, 25),
            (15, 0, 10, None, 15),
            (40, 10, 10, Some(16), 25),
            (100, 10, 10, Some(16), 55),
            (5, 2, 10, Some(5), 15),
        ] {
            let (mut sent, mut window, mut millis) = (free, cwnd, 5);
            while sent < n {
                window = grow(window, ssthresh);
                sent += window;
                millis += 10;
            }
            assert_eq!(millis, expected, "{n} segments from {free} of {cwnd}, ssthresh {ssthresh:?}");
        }
    }

    #[test]
    fn losses_leave_at_least_two_segments_to_aim_for() {
        assert_eq!(Window::new(10, Some(3)).halved(), Window::new(5, Some(5)));
        assert_eq!(Window::new(3, None).halved(), Window::new(2, Some(2)));
        assert_eq!(Window::new(1, None).restarted(), Window::new(1, Some(2)));
        assert_eq!(Window::new(40, Some(9)).restarted(), Window::new(1, Some(20)));
    }

    #[test]
    fn a_key_gives_its_window_back() {
        for window in
            [Window::new(1, None), Window::new(7, Some(7)), Window::new(7, Some(8)), Window::new(u32::MAX, None)]
        {
            assert_eq!(Window::from_key(window.key()), window);
        }
    }
}
