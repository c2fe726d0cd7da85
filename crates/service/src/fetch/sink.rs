//! Output of a body. A file or pipe may be slow, and the reactor must not wait for it: a separate thread writes. While
//! it lags behind, nothing is read from the connection, so that the receive window slows the sender down.

use bytes::Bytes;
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the bytes of a body in order.
pub trait Sink {
    /// Registers what tells that there is room again, or an end.
    fn register(&mut self, _registry: &Registry, _token: Token) -> io::Result<()> {
        Ok(())
    }

    /// Its registered source is ready.
    fn on_ready(&mut self) {}

    /// A further piece may be offered.
    fn has_room(&self) -> bool;

    /// Takes a piece.
    fn offer(&mut self, piece: Bytes);

    /// Ends the body.
    fn finish(&mut self);

    /// Result, once the sink has ended; an error may come before [`Sink::finish`].
    fn result(&mut self) -> Option<io::Result<()>>;
}

/// Writes on a thread of its own.
pub struct WriterSink {
    orders: Option<Sender<Bytes>>,
    shared: Arc<Shared>,
    woken: UnixStream,
}

#[derive(Default)]
struct Shared {
    /// Bytes offered and not written.
    waiting: AtomicU64,
    /// The body is whole.
    finished: AtomicBool,
    result: Mutex<Option<io::Result<()>>>,
}

/// Bytes that may wait to be written.
const MAX_WAITING: u64 = 4 << 20;

impl WriterSink {
    /// Writes to `out`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (woken, waker) = UnixStream::pair()?;
        let (orders, pieces) = channel();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            let result = write_all(out, &pieces, &theirs, &waker);
            *theirs.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            wake(&waker);
        })?;
        Ok(WriterSink { orders: Some(orders), shared, woken })
    }
}

fn write_all(mut out: impl Write, pieces: &Receiver<Bytes>, shared: &Shared, waker: &UnixStream) -> io::Result<()> {
    while let Ok(piece) = pieces.recv() {
        out.write_all(&piece)?;
        let length = piece.len() as u64;
        let before = shared.waiting.fetch_sub(length, Ordering::AcqRel);
        if before >= MAX_WAITING && before - length < MAX_WAITING {
            wake(waker);
        }
    }
    if !shared.finished.load(Ordering::Acquire) {
        return Err(io::Error::new(
            io::ErrorKind::Interrupted,
            "the connection ended before the whole body was written",
        ));
    }
    out.flush()
}

/// A socket that is full of wake-ups wakes all the same.
fn wake(mut waker: &UnixStream) {
    let _ = waker.write(&[1]);
}

impl Sink for WriterSink {
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.woken, token, Interest::READABLE)
    }

    fn on_ready(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(length) if length > 0) {}
    }

    fn has_room(&self) -> bool {
        self.shared.waiting.load(Ordering::Acquire) < MAX_WAITING
    }

    fn offer(&mut self, piece: Bytes) {
        self.shared.waiting.fetch_add(piece.len() as u64, Ordering::AcqRel);
        if let Some(orders) = &self.orders {
            // If the thread has failed, its result says why.
            let _ = orders.send(piece);
        }
    }

    fn finish(&mut self) {
        self.shared.finished.store(true, Ordering::Release);
        self.orders = None;
    }

    fn result(&mut self) -> Option<io::Result<()>> {
        self.shared.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Seek;

    fn wait(sink: &mut WriterSink) -> io::Result<()> {
        loop {
            if let Some(result) = sink.result() {
                return result;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_body_is_written_and_one_that_breaks_off_is_no_success() {
        for whole in [true, false] {
            let mut file = tempfile::tempfile().unwrap();
            let mut sink = WriterSink::new(file.try_clone().unwrap()).unwrap();
            for _ in 0..3 {
                sink.offer(Bytes::from_static(b"abc"));
            }
            if whole {
                sink.finish();
            } else {
                sink.orders = None;
            }
            assert_eq!(wait(&mut sink).is_ok(), whole);
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "abcabcabc");
        }
    }

    #[test]
    fn a_full_disk_is_told() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut sink = WriterSink::new(full).unwrap();
        sink.offer(Bytes::from_static(b"abc"));
        assert!(wait(&mut sink).is_err());
    }
}
