//! A file, bursts or bulk on one connection.

use crate::end::{End, Log, Next, verify};
use crate::transfer::{Bursts, REQUEST, TransferError};
use anabranch_wire::pattern;
use std::time::{Duration, Instant};

/// One end of the connection of a file, of bursts or of bulk.
pub(crate) struct Stream {
    log: Log,
    part: Part,
    /// Time counts from the start of this end.
    timed: bool,
    /// Bytes to be written so far.
    target: u64,
    written: u64,
    /// True if this direction is closed behind `target`.
    last: bool,
    read: u64,
}

/// Part of an end in the transfer.
enum Part {
    /// Reads the file or bursts that end at these bytes of the stream, with the number reached so far.
    Read { ends: Vec<u64>, reached: usize },
    /// Reads for this long from the beginning on; true once that is over.
    Count(Duration, bool),
    /// Answers a request with a file of this size.
    Answer(u64),
    /// Writes a file.
    Write,
    /// Writes bursts, with the number begun so far and the time at which the next is due.
    Burst { bursts: Bursts, begun: usize, next: Option<Instant> },
}

impl Stream {
    fn new(part: Part, log: &Log) -> Self {
        Stream { log: log.clone(), part, timed: false, target: 0, written: 0, last: false, read: 0 }
    }

    /// The client of a download.
    pub(crate) fn requesting(size: u64, log: &Log) -> Self {
        Stream { timed: true, target: REQUEST, ..Stream::receiving(vec![size], log) }
    }

    /// The server of a download.
    pub(crate) fn answering(size: u64, log: &Log) -> Self {
        Stream::new(Part::Answer(size), log)
    }

    /// The client of an upload.
    pub(crate) fn sending(size: u64, log: &Log) -> Self {
        Stream { timed: true, target: size, last: true, ..Stream::new(Part::Write, log) }
    }

    /// The end that reads without asking.
    pub(crate) fn receiving(ends: Vec<u64>, log: &Log) -> Self {
        Stream::new(Part::Read { ends, reached: 0 }, log)
    }

    /// The client of a bulk download.
    pub(crate) fn asking(duration: Duration, log: &Log) -> Self {
        Stream { timed: true, target: REQUEST, ..Stream::counting(duration, log) }
    }

    /// The end that reads bulk.
    pub(crate) fn counting(duration: Duration, log: &Log) -> Self {
        Stream::new(Part::Count(duration, false), log)
    }

    /// The end that sends bursts.
    pub(crate) fn bursting(bursts: Bursts, log: &Log) -> Self {
        Stream::new(Part::Burst { bursts, begun: 0, next: None }, log)
    }
}

impl End for Stream {
    fn start(&mut self, now: Instant) {
        if self.timed {
            self.log.begin(now);
        }
    }

    fn wanted(&self) -> usize {
        1
    }

    fn opened(&mut self, now: Instant) {
        if let Part::Burst { bursts, next, .. } = &mut self.part {
            self.target = bursts.warm_up.get();
            *next = Some(now + bursts.interval);
        }
    }

    fn received(&mut self, now: Instant, _connection: usize, bytes: &[u8]) -> Result<(), TransferError> {
        verify(self.read, bytes)?;
        self.read += bytes.len() as u64;
        match &mut self.part {
            Part::Read { ends, reached } => {
                self.log.read(bytes.len());
                while ends.get(*reached).is_some_and(|end| *end <= self.read) {
                    *reached += 1;
                    self.log.end(now);
                }
                // Not before: the kernel opens no subflow for a connection of which one end has closed.
                self.last = *reached == ends.len();
            }
            // What comes later is of no interest, and the sender knows no end.
            Part::Count(_, true) => {}
            Part::Count(_, false) => self.log.arrived(now, bytes.len()),
            Part::Answer(size) if self.read >= REQUEST => (self.target, self.last) = (*size, true),
            Part::Answer(_) | Part::Write | Part::Burst { .. } => {}
        }
        Ok(())
    }

    fn next(&mut self, _connection: usize) -> Next {
        if self.written < self.target {
            let piece = pattern::slice(self.written, self.target - self.written);
            self.written += piece.len() as u64;
            return Next::Piece(piece);
        }
        if self.last { Next::Shutdown } else { Next::Nothing }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.part {
            Part::Burst { next, .. } => next,
            Part::Count(duration, false) => self.log.begun().map(|begun| begun + duration),
            Part::Count(_, true) | Part::Read { .. } | Part::Answer(_) | Part::Write => None,
        }
    }

    fn timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|due| due <= now)
            && let Part::Count(_, is_over) = &mut self.part
        {
            *is_over = true;
            self.log.end(now);
        }
        if let Part::Burst { bursts, begun, next } = &mut self.part
            && let Some(due) = next.filter(|due| *due <= now)
        {
            *begun += 1;
            self.target += bursts.size.get();
            self.last = *begun == bursts.count;
            *next = (!self.last).then(|| due + bursts.interval);
            self.log.begin(now);
        }
    }

    fn is_done(&self) -> Option<bool> {
        match &self.part {
            Part::Read { ends, reached } => Some(*reached == ends.len()),
            Part::Count(_, is_over) => Some(*is_over),
            Part::Answer(_) | Part::Write | Part::Burst { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::Bytes;

    /// Everything that an end writes now, and whether it closes behind it.
    fn written(end: &mut Stream) -> (u64, bool) {
        let mut bytes = 0;
        loop {
            match end.next(0) {
                Next::Piece(piece) => bytes += piece.len() as u64,
                Next::Nothing => return (bytes, false),
                Next::Shutdown => return (bytes, true),
            }
        }
    }

    #[test]
    fn a_download_is_asked_for_and_closed_only_behind_its_last_byte() {
        let (log, now) = (Log::default(), Instant::now());
        let (mut client, mut server) = (Stream::requesting(300, &log), Stream::answering(300, &log));
        assert_eq!((written(&mut client), written(&mut server)), ((REQUEST, false), (0, false)));
        server.received(now, 0, &pattern::slice(0, REQUEST)).unwrap();
        assert_eq!(written(&mut server), (300, true));
        client.received(now, 0, &pattern::slice(0, 299)).unwrap();
        assert_eq!((written(&mut client), client.is_done()), ((0, false), Some(false)));
        client.received(now, 0, &pattern::slice(299, 1)).unwrap();
        assert_eq!((written(&mut client), client.is_done()), ((0, true), Some(true)));
        let wrong = client.received(now, 0, &pattern::slice(0, 8));
        assert!(matches!(wrong, Err(TransferError::Altered { at: 300 })), "{wrong:?}");
    }

    #[test]
    fn bursts_leave_at_their_times_from_the_opening_on() {
        let (log, start) = (Log::default(), Instant::now());
        let interval = Duration::from_secs(1);
        let bursts = Bursts { warm_up: Bytes::new(100), size: Bytes::new(7), count: 2, interval };
        let mut end = Stream::bursting(bursts, &log);
        assert_eq!((end.deadline(), written(&mut end)), (None, (0, false)));
        end.opened(start);
        assert_eq!((end.deadline(), written(&mut end)), (Some(start + interval), (100, false)));
        end.timeout(start + interval / 2);
        assert_eq!(written(&mut end), (0, false), "too early");
        // Late by half a second; the second burst leaves on time all the same.
        end.timeout(start + interval * 3 / 2);
        assert_eq!((end.deadline(), written(&mut end)), (Some(start + interval * 2), (7, false)));
        end.timeout(start + interval * 2);
        assert_eq!((end.deadline(), written(&mut end)), (None, (7, true)));
    }

    #[test]
    fn bulk_is_read_for_its_time_from_the_request_on() {
        let (log, start) = (Log::default(), Instant::now());
        let second = Duration::from_secs(1);
        let (mut client, mut server) = (Stream::asking(second, &log), Stream::answering(u64::MAX, &log));
        assert_eq!((client.deadline(), written(&mut client)), (None, (REQUEST, false)));
        client.start(start);
        server.received(start, 0, &pattern::slice(0, REQUEST)).unwrap();
        let Next::Piece(piece) = server.next(0) else { panic!("it writes") };
        client.received(start + second / 2, 0, &piece).unwrap();
        client.timeout(start + second / 2);
        assert_eq!((client.deadline(), client.is_done()), (Some(start + second), Some(false)));
        client.timeout(start + second * 2);
        assert_eq!((client.deadline(), client.is_done()), (None, Some(true)));
        let Next::Piece(more) = server.next(0) else { panic!("it writes for ever") };
        client.received(start + second * 2, 0, &more).unwrap();
        let length = piece.len() as u64;
        let expected = [(start, 0), (start + second / 2, length), (start + second * 2, length)];
        assert_eq!(log.times().arrivals, expected, "what comes later does not count");
    }
}
