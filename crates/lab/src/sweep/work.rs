//! The work of one process on a campaign: conditions that no part has yet, in chunks of a few seconds, each kept as a
//! part when it is through.

use super::campaign::Campaign;
use super::row::Row;
use super::store::{Store, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time that a chunk takes: a kill loses no more, and writing a part takes far less.
const CHUNK: Duration = Duration::from_secs(3);
/// Rows of a part at most: what a process holds in memory.
const MOST_ROWS: u64 = 5_000;

/// Means of a piece of work. No row depends on them.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Threads to run on; 0 for one per processor.
    pub jobs: usize,
    /// Called after each condition.
    pub done: &'a (dyn Fn() + Sync),
    /// Ends the work soon after it became true.
    pub stop: Option<&'a Arc<AtomicBool>>,
}

impl<'a> Work<'a> {
    /// On so many threads, to its end.
    pub fn on(jobs: usize, done: &'a (dyn Fn() + Sync)) -> Self {
        Work { jobs, done, stop: None }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Campaign {
    /// Runs the conditions of `missing` ([`Parts::missing`](super::Parts::missing)) and keeps them in the store, all of
    /// them unless the work is stopped. Which conditions make a chunk depends on the clock; their rows do not.
    ///
    /// # Errors
    /// If the store cannot be read or written. What was kept until then is kept.
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

    /// Keeps these rows, which are those of the range.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn keep(&self, store: &Store, range: &Range<u64>, rows: &[Row]) -> Result<(), StoreError> {
        let path = || std::path::PathBuf::from(format!("{}-{}", range.start, range.end));
        let bytes =
            self.part(range, rows).map_err(|error| StoreError::Part { path: path(), problem: error.to_string() })?;
        store.keep(self.digest(), range, &bytes)
    }

    /// Number of conditions in a chunk, of which one takes `pace`; a few until that is known.
    pub fn chunk(&self, pace: Option<Duration>, jobs: usize) -> u64 {
        let seeds = if self.repeat.until.is_some() { self.repeat.most } else { self.repeat.count };
        let rows = (self.systems.len() * seeds).max(1) as u64;
        let many = match pace {
            None => 4 * crate::threads(jobs, usize::MAX) as u64,
            Some(pace) => (CHUNK.as_nanos() / pace.as_nanos().max(1)) as u64,
        };
        many.clamp(1, (MOST_ROWS / rows).max(1))
    }
}
