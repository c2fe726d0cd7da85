//! Visitors that are not being answered by a run: they send a head, or take a resource.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Visitors that wait at the same time. A browser opens half a dozen connections.
const MOST: usize = 64;

/// Visitors by their tickets, the oldest first.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    last: u64,
    visitors: BTreeMap<u64, TcpStream>,
}

impl Waiting {
    /// Takes a visitor in. Where there are too many, the oldest goes: who sends its head at once is never that one, and
    /// who keeps hundreds of connections open displaces only their own.
    pub(super) fn enter(&self, visitor: &TcpStream) -> u64 {
        let mut inside = self.inside();
        inside.last += 1;
        let ticket = inside.last;
        if inside.visitors.len() >= MOST
            && let Some((_, oldest)) = inside.visitors.pop_first()
        {
            // Its thread wakes and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        // Without a second descriptor it cannot be sent away; it has its time limit all the same.
        if let Ok(visitor) = visitor.try_clone() {
            inside.visitors.insert(ticket, visitor);
        }
        ticket
    }

    /// Lets a visitor go, or be answered.
    pub(super) fn leave(&self, ticket: u64) {
        self.inside().visitors.remove(&ticket);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // Nothing between taking and releasing it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
