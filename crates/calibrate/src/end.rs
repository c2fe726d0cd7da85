//! Both ends of a transfer without their sockets, driven by the engine's peers and by the kernel's.

use crate::browser::Browser;
use crate::site::Site;
use crate::stream::Stream;
use crate::transfer::{Plan, Times, Transfer, TransferError};
use anabranch_paths::Direction;
use anabranch_wire::pattern;
use bytes::Bytes as Payload;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One end. Connections are numbered from 0 in the order in which it has them.
pub(crate) trait End: Send {
    /// Called once before all other methods.
    fn start(&mut self, _now: Instant) {}

    /// Number of connections that the client wants to have opened by now.
    fn wanted(&self) -> usize {
        0
    }

    /// The next connection is there: the client's as soon as it is opened, the server's once it is accepted.
    fn opened(&mut self, _now: Instant) {}

    /// These bytes came next on a connection.
    fn received(&mut self, now: Instant, connection: usize, bytes: &[u8]) -> Result<(), TransferError>;

    /// Returns the next step for a connection that has taken all data written to it.
    fn next(&mut self, connection: usize) -> Next;

    /// Time at which to call [`End::timeout`].
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// A deadline may have come.
    fn timeout(&mut self, _now: Instant) {}

    /// Progress of the end whose reading completes the transfer; `None` at the other.
    fn is_done(&self) -> Option<bool>;
}

/// A step in the life of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait.
    Nothing,
    /// Write this.
    Piece(Payload),
    /// Close this direction.
    Shutdown,
}

/// The client's end and the server's.
pub(crate) fn ends(transfer: &Transfer, log: &Log) -> (Box<dyn End>, Box<dyn End>) {
    match (&transfer.plan, transfer.direction) {
        (Plan::File(size), Direction::Down) => {
            (Box::new(Stream::requesting(size.get(), log)), Box::new(Stream::answering(size.get(), log)))
        }
        (Plan::File(size), Direction::Up) => {
            (Box::new(Stream::sending(size.get(), log)), Box::new(Stream::receiving(vec![size.get()], log)))
        }
        (Plan::Bulk(duration), Direction::Down) => {
            (Box::new(Stream::asking(*duration, log)), Box::new(Stream::answering(u64::MAX, log)))
        }
        (Plan::Bulk(duration), Direction::Up) => {
            (Box::new(Stream::sending(u64::MAX, log)), Box::new(Stream::counting(*duration, log)))
        }
        (Plan::Bursts(bursts), Direction::Down) => {
            (Box::new(Stream::receiving(bursts.ends(), log)), Box::new(Stream::bursting(*bursts, log)))
        }
        (Plan::Bursts(bursts), Direction::Up) => {
            (Box::new(Stream::bursting(*bursts, log)), Box::new(Stream::receiving(bursts.ends(), log)))
        }
        (Plan::Page(page, protocol), _) => {
            (Box::new(Browser::new(page, *protocol, log)), Box::new(Site::new(page, *protocol)))
        }
    }
}

/// Times that both ends write down, on the clock that they share.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    begun: Vec<Instant>,
    ended: Vec<Instant>,
    objects: Vec<Duration>,
    read: u64,
    /// Bytes of bulk that had been read by each time.
    arrivals: Vec<(Instant, u64)>,
}

impl Log {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        // No entry is left half written by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, a burst or the page begins.
    pub(crate) fn begin(&self, now: Instant) {
        self.entries().begun.push(now);
    }

    /// Records completion.
    pub(crate) fn end(&self, now: Instant) {
        self.entries().ended.push(now);
    }

    /// An object of a page took so long.
    pub(crate) fn object(&self, time: Duration) {
        self.entries().objects.push(time);
    }

    /// Records the arrival of `count` bytes.
    pub(crate) fn read(&self, count: usize) {
        self.entries().read += count as u64;
    }

    /// Time at which the first file, burst or page began, or bulk.
    pub(crate) fn begun(&self) -> Option<Instant> {
        self.entries().begun.first().copied()
    }

    /// Records the arrival of `count` bytes of bulk.
    pub(crate) fn arrived(&self, now: Instant, count: usize) {
        let mut entries = self.entries();
        entries.read += count as u64;
        let read = entries.read;
        entries.arrivals.push((now, read));
    }

    /// The mean of the times from each beginning to its end, and the arrivals between.
    pub(crate) fn times(&self) -> Times {
        let entries = self.entries();
        let pairs = entries.begun.iter().zip(&entries.ended);
        let each: Vec<Duration> = pairs.map(|(begun, ended)| ended.saturating_duration_since(*begun)).collect();
        let (begun, ended) = (entries.begun.first().map(|at| (*at, 0)), entries.ended.last());
        let ended = ended.map(|at| (*at, entries.arrivals.last().map_or(0, |(_, read)| *read)));
        let arrivals = match entries.arrivals.as_slice() {
            [] => Vec::new(),
            some => begun.into_iter().chain(some.iter().copied()).chain(ended).collect(),
        };
        Times { completion: mean(&each).unwrap_or_default(), object: mean(&entries.objects), arrivals }
    }

    /// The error of a connection that ended before its time.
    pub(crate) fn broken(&self, reason: impl Into<String>) -> TransferError {
        TransferError::Broken { read: self.entries().read, reason: reason.into() }
    }
}

fn mean(times: &[Duration]) -> Option<Duration> {
    (!times.is_empty()).then(|| times.iter().sum::<Duration>() / times.len() as u32)
}

/// Report of an end: the transfer is complete, or it failed.
pub(crate) type Report = Result<(), TransferError>;

/// Waits for the first report of either end.
pub(crate) fn outcome(transfer: &Transfer, log: &Log, reports: &Receiver<Report>) -> Result<Times, TransferError> {
    match reports.recv_timeout(transfer.patience) {
        Ok(Ok(())) => Ok(log.times()),
        Ok(Err(error)) => Err(error),
        Err(RecvTimeoutError::Timeout) => {
            let read = log.entries().read;
            Err(TransferError::Unfinished { read, size: transfer.plan.total(), after: transfer.patience })
        }
        Err(RecvTimeoutError::Disconnected) => Err(log.broken("both ends are gone")),
    }
}

/// The sending side of a connection: the piece under way.
#[derive(Default)]
pub(crate) struct Outgoing {
    rest: Payload,
    shut: bool,
}

/// Progress of a connection's sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Everything is written.
    All,
    /// The socket takes no more for now.
    Blocked,
    /// The socket is to be closed for writing, now.
    Shutdown,
}

impl Outgoing {
    /// Writes what the end has, as far as `write` takes it, which answers 0 once it takes no more.
    pub(crate) fn write(
        &mut self,
        end: &mut dyn End,
        connection: usize,
        mut write: impl FnMut(&Payload) -> io::Result<usize>,
    ) -> io::Result<Sent> {
        loop {
            if self.shut {
                return Ok(Sent::All);
            }
            if self.rest.is_empty() {
                match end.next(connection) {
                    Next::Piece(piece) => self.rest = piece,
                    Next::Nothing => return Ok(Sent::All),
                    Next::Shutdown => {
                        self.shut = true;
                        return Ok(Sent::Shutdown);
                    }
                }
            }
            match write(&self.rest)? {
                0 => return Ok(Sent::Blocked),
                taken => drop(self.rest.split_to(taken)),
            }
        }
    }
}

/// Fails where bytes are not those of the stream from `at` on.
pub(crate) fn verify(at: u64, bytes: &[u8]) -> Result<(), TransferError> {
    match pattern::matches(at, bytes) {
        true => Ok(()),
        false => Err(TransferError::Altered { at }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_mean_is_of_each_from_its_own_beginning() {
        let (log, start) = (Log::default(), Instant::now());
        for (begun, ended) in [(0, 10), (100, 130)] {
            log.begin(start + Duration::from_millis(begun));
            log.end(start + Duration::from_millis(ended));
        }
        let arrivals = Vec::new();
        assert_eq!(log.times(), Times { completion: Duration::from_millis(20), object: None, arrivals });
        log.object(Duration::from_millis(7));
        assert_eq!(log.times().object, Some(Duration::from_millis(7)));
    }

    #[test]
    fn arrivals_of_bulk_stand_between_its_beginning_and_its_end() {
        let (log, start) = (Log::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(log.begun(), None);
        log.begin(at(0));
        log.arrived(at(30), 5);
        log.arrived(at(40), 7);
        log.end(at(100));
        assert_eq!(
            (log.begun(), log.times().arrivals),
            (Some(at(0)), vec![(at(0), 0), (at(30), 5), (at(40), 12), (at(100), 12)])
        );
    }

    #[test]
    fn patience_ends_with_the_bytes_that_had_arrived() {
        let plan = Plan::File(anabranch_units::Bytes::new(9));
        let transfer = Transfer { direction: Direction::Down, plan, patience: Duration::ZERO };
        let (log, (_sender, reports)) = (Log::default(), channel());
        log.read(4);
        let error = outcome(&transfer, &log, &reports).unwrap_err();
        assert_eq!(error.to_string(), "4 of 9 bytes had arrived after 0ns");
    }
}
