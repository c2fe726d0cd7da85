//! Work of one process on a campaign: missing conditions, in chunks of a few seconds, each kept as a part when it is
//! complete.

use super::campaign::Campaign;
use super::row::Row;
use super::store::{Store, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Duration of a chunk: a kill loses no more, and writing a part takes far less.
const CHUNK: Duration = Duration::from_secs(3);
/// Maximum number of rows of a part, which a process holds in memory.
const MOST_ROWS: u64 = 5_000;

/// Threads and control of a piece of work. Rows do not depend on them.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Number of threads; 0 for one per processor.
    pub jobs: usize,
    /// Function called after each condition.
    pub done: &'a (dyn Fn() + Sync),
    /// Flag that ends the work soon after it becomes true.
    pub stop: Option<&'a Arc<AtomicBool>>,
}

impl<'a> Work<'a> {
    /// Works on `jobs` threads to the end.
    pub fn on(jobs: usize, done: &'a (dyn Fn() + Sync)) -> Self {
        Work { jobs, done, stop: None }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Campaign {
    /// Runs the conditions of `missing` ([`Parts::missing`](super::Parts::missing)) and keeps them in the store, all of
    /// them unless the work is stopped. The division into chunks depends on the clock; the rows do not.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written. Parts kept until then stay.
    pub fn work(&self, store: &Store, missing: &[Range<u64>], work: &Work<'_>) -> Result<(), StoreError> {
        let mut pace: Option<Duration> = None;
        for &Range { start, end } in missing {
            let mut next = start;
            while next < end {
                let chunk = next..end.min(next + self.chunk(pace, work.jobs));
                let begun = Instant::now();
                let Some(rows) = self.run(chunk.clone(), work) else { return Ok(()) };
                pace = Some(begun.elapsed() / u32::try_from(chunk.end - chunk.start).unwrap_or(u32::MAX));
                self.keep(store, &chunk, &rows)?;
                next = chunk.end;
            }
        }
        Ok(())
    }

    /// Keeps the rows of the range.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn keep(&self, store: &Store, range: &Range<u64>, rows: &[Row]) -> Result<(), StoreError> {
        let path = || std::path::PathBuf::from(format!("{}-{}", range.start, range.end));
        let bytes =
            self.part(range, rows).map_err(|error| StoreError::Part { path: path(), problem: error.to_string() })?;
        store.keep(self.digest(), range, &bytes)
    }

    /// Returns the number of conditions in a chunk, if one takes `pace`; a few while that is unknown.
    pub fn chunk(&self, pace: Option<Duration>, jobs: usize) -> u64 {
        let seeds = if self.repeat.until.is_some() { self.repeat.most } else { self.repeat.count };
        let rows = (self.systems.len() * seeds).max(1) as u64;
        let many = match pace {
            None => 4 * anabranch_lab::threads(jobs, usize::MAX) as u64,
            Some(pace) => (CHUNK.as_nanos() / pace.as_nanos().max(1)) as u64,
        };
        many.clamp(1, (MOST_ROWS / rows).max(1))
    }
}
