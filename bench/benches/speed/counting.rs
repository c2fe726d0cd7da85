//! The system's allocator with counters, to show how often the steady state allocates: it should not.
//!
//! The only `unsafe` of the workspace: a global allocator cannot be written without. It forwards every call unchanged.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Counts, then asks the system.
pub struct Counting;

/// Allocations and reallocations so far.
pub fn calls() -> u64 {
    CALLS.load(Relaxed)
}

/// Bytes allocated and not freed.
pub fn live() -> u64 {
    LIVE.load(Relaxed)
}

/// Counts calls, and bytes allocated or freed. Only one thread allocates here, so that reading and writing apart is
/// exact, and cheaper than adding in one step.
fn count(calls: u64, more: usize, less: usize) {
    CALLS.store(CALLS.load(Relaxed) + calls, Relaxed);
    LIVE.store(LIVE.load(Relaxed).wrapping_add(more as u64).wrapping_sub(less as u64), Relaxed);
}

// SAFETY: each method passes its arguments on to `System`, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size, layout.size());
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(0, 0, layout.size());
        unsafe { System.dealloc(old, layout) }
    }
}
