//! Bytes moved, and their cost in processor time.

use anabranch_host::DriverCounters;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// One measurement.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Payload.
    pub bytes: u64,
    /// Time of observation.
    pub took: Duration,
    /// Processor time of the thread that reads and writes the device; `None` if there is none.
    pub engine: Option<Duration>,
    /// Processor time of the process. What the kernel does in threads of its own is in neither.
    pub whole: Duration,
    /// Counters of the driver, from its start.
    pub counters: Option<DriverCounters>,
}

impl Sample {
    pub fn gigabits(&self) -> f64 {
        // A transfer that did not move shows as one that costs without bound, not as an arithmetic accident.
        (self.bytes as f64 * 8e-9).max(1e-9)
    }

    pub fn gigabits_per_second(&self) -> f64 {
        self.gigabits() / self.took.as_secs_f64()
    }
}

/// Watches a stretch of a transfer.
pub struct Stopwatch {
    begun: Instant,
    whole: Duration,
    thread: Option<(i32, Duration)>,
}

impl Stopwatch {
    /// Begins, with an eye on the thread with this number.
    pub fn start(thread: Option<i32>) -> Self {
        let thread = thread.map(|id| (id, of_thread(id)));
        Stopwatch { begun: Instant::now(), whole: of_process(), thread }
    }

    /// Ends the observation, in which `bytes` bytes moved.
    pub fn stop(self, bytes: u64) -> Sample {
        Sample {
            bytes,
            took: self.begun.elapsed(),
            engine: self.thread.map(|(id, before)| of_thread(id).saturating_sub(before)),
            whole: of_process().saturating_sub(self.whole),
            counters: None,
        }
    }
}

/// The calling thread's number.
pub fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

fn of_process() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time on a processor, as the scheduler counts it.
fn of_thread(id: i32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}
