//! Time before an event at which the thread stops sleeping.
//!
//! A thread under SCHED_FIFO that never sleeps starves all others on its processor, and the kernel then takes the
//! processor away from it for 50 ms in a second (since Linux 6.12 by the fair server of its deadline scheduler, before
//! by `sched_rt_runtime_us`). So spinning is cut back before that happens: all packets some microseconds late rather
//! than some of them 50 ms late.

use anabranch_units::{Duration, Instant};

/// The time spent spinning before something is due.
pub(super) struct Spin {
    most: Duration,
    now: Duration,
    window: Instant,
    cpu: Duration,
}

impl Spin {
    /// Spins for at most `most`.
    pub(super) fn new(most: Duration) -> Self {
        Spin { most, now: most, window: Instant::ZERO, cpu: Duration::ZERO }
    }

    /// Current time of spinning before an event.
    #[inline]
    pub(super) fn span(&self) -> Duration {
        self.now
    }

    /// Adapts the span; to be called often. `cpu` returns the processor time of the thread and is called now and then.
    #[inline]
    pub(super) fn watch(&mut self, now: Instant, cpu: impl FnOnce() -> Duration) {
        if now.since(self.window) >= WINDOW {
            self.adjust(now, cpu());
        }
    }

    #[cold]
    fn adjust(&mut self, now: Instant, cpu: Duration) {
        let busy = cpu.saturating_sub(self.cpu).per(now.since(self.window));
        (self.window, self.cpu) = (now, cpu);
        if busy > TOO_BUSY {
            self.now = self.now / 2;
        } else if busy < RELAXED {
            self.now = (self.now * 2).max(LEAST).min(self.most);
        }
    }
}

const WINDOW: Duration = Duration::from_millis(50);
/// Leaves others twice what the kernel would take for them.
const TOO_BUSY: f64 = 0.9;
const RELAXED: f64 = 0.6;
const LEAST: Duration = Duration::from_micros(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_never_sleeps_spins_less_until_it_does() {
        let mut spin = Spin::new(Duration::from_micros(100));
        let (mut now, mut cpu) = (Instant::ZERO, Duration::ZERO);
        let mut after = |busy: f64, windows: u64| {
            for _ in 0..windows {
                now += WINDOW;
                cpu += WINDOW.mul_f64(busy);
                spin.watch(now, || cpu);
            }
            spin.span().as_micros()
        };
        assert_eq!(after(0.85, 10), 100, "busy, but not too busy");
        assert_eq!(after(0.95, 1), 50);
        assert_eq!(after(0.99, 20), 0);
        assert_eq!(after(0.7, 20), 0);
        assert_eq!(after(0.3, 1), 5);
        assert_eq!(after(0.3, 20), 100);
    }
}
