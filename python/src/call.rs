//! Long calls: the GIL is released while Rust runs, signals are seen, progress is told.

use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);

/// State that a call and its work share.
#[derive(Default)]
pub struct Shared {
    /// The runs are to end.
    pub stop: Arc<AtomicBool>,
    /// Runs that are through.
    pub done: AtomicUsize,
}

/// Does `work` on another thread. Meanwhile signals reach their handlers, and `progress` is called with the runs that
/// are through and their number. An exception of either stops the work, waits for its end and is raised.
pub fn attended<T: Send>(
    py: Python<'_>,
    shared: &Shared,
    total: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let caller = std::thread::current();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // The thread is known to Python for as long as it works: policies enter without making it known each time.
            let result = Python::attach(|py| py.detach(work));
            caller.unpark();
            result
        });
        let mut told = None;
        let mut tell = |py: Python<'_>| {
            py.check_signals()?;
            let done = shared.done.load(Ordering::Relaxed);
            if let Some(progress) = progress.filter(|_| told != Some(done)) {
                progress.call1((done, total))?;
                told = Some(done);
            }
            Ok(())
        };
        let mut raised: Option<PyErr> = None;
        loop {
            py.detach(|| std::thread::park_timeout(LOOK));
            if let Err(error) = tell(py) {
                shared.stop.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
            if raised.is_some() || worker.is_finished() {
                break;
            }
        }
        let result = py.detach(|| worker.join());
        if let Some(error) = raised {
            return Err(error);
        }
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        tell(py)?;
        Ok(result)
    })
}
