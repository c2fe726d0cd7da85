//! The one clock: monotonic time, counted in nanoseconds from when it was started.

use anabranch_units::{Duration, Instant};

/// Translates the system's monotonic clock. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Clock { origin: std::time::Instant::now() }
    }

    /// The time since the start.
    #[inline]
    pub fn now(&self) -> Instant {
        let nanos = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::ZERO + Duration::from_nanos(nanos)
    }
}
