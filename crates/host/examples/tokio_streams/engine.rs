//! The engine on a device, as tokio streams: [`Engine`] connects and accepts, [`Engine::run`] is its loop, and a
//! [`MultipathStream`] reads and writes.

use anabranch_engine::{ConnectionId, Event, Read, SubflowStats, WriteError};
use anabranch_host::{Driver, Sent};
use bytes::{Buf, Bytes};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// An engine on its device. Clones are handles of the same engine.
#[derive(Clone)]
pub struct Engine {
    state: Arc<Mutex<State>>,
    /// A stream has changed something that the loop has to send.
    changed: Arc<Notify>,
}

struct State {
    driver: Driver,
    connections: BTreeMap<ConnectionId, Progress>,
    /// Connections of peers that nobody has taken yet.
    accepted: VecDeque<ConnectionId>,
    acceptor: Option<Waker>,
}

/// State of a connection that has a stream, and the tasks that wait for it.
#[derive(Default)]
struct Progress {
    established: bool,
    /// Closed in order, or reset.
    over: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Packets handled between two looks at the other tasks.
const BATCH: usize = 64;

impl Engine {
    /// An engine on this driver's device; [`Engine::run`] keeps it going.
    pub fn new(driver: Driver) -> Self {
        let state = State { driver, connections: BTreeMap::new(), accepted: VecDeque::new(), acceptor: None };
        Engine { state: Arc::new(Mutex::new(state)), changed: Arc::new(Notify::new()) }
    }

    /// Opens a connection and waits until it is established.
    ///
    /// # Errors
    /// If the addresses do not fit the engine's, or the peer does not answer.
    pub async fn connect(&self, local: IpAddr, remote: SocketAddr) -> io::Result<MultipathStream> {
        let id = {
            let mut state = self.state();
            let now = state.driver.now();
            let id = state.driver.endpoint().open(now, local, remote).map_err(io::Error::other)?;
            state.connections.insert(id, Progress::default());
            id
        };
        self.changed.notify_one();
        let stream = MultipathStream { engine: self.clone(), id, rest: Bytes::new(), finished: false };
        poll_fn(|cx| -> Poll<io::Result<()>> {
            let mut state = self.state();
            let progress = state.progress(id);
            match (progress.established, progress.over) {
                (true, _) => Poll::Ready(Ok(())),
                (false, true) => Poll::Ready(Err(ErrorKind::ConnectionRefused.into())),
                (false, false) => {
                    progress.writer = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await?;
        Ok(stream)
    }

    /// Accepts connections to `port` from now on.
    pub fn listen(&self, port: u16) {
        self.state().driver.endpoint().listen(port);
    }

    /// Waits for the next connection of a peer.
    pub async fn accept(&self) -> MultipathStream {
        let id = poll_fn(|cx| {
            let mut state = self.state();
            match state.accepted.pop_front() {
                Some(id) => Poll::Ready(id),
                None => {
                    state.acceptor = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        MultipathStream { engine: self.clone(), id: id.await, rest: Bytes::new(), finished: false }
    }

    /// Moves packets and lets timers act, until the device fails. Tokio's timers have milliseconds, so the engine's are
    /// up to one late.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn run(self) -> io::Result<()> {
        let device: OwnedFd = self.state().driver.as_fd().try_clone_to_owned()?;
        // SAFETY: an `OwnedFd` owns its descriptor, which stays the same one and open for as long as it lives.
        let device = unsafe { AsyncFd::register(device) }?;
        loop {
            let (sent, wait) = self.state().send()?;
            if sent == Sent::Some {
                tokio::task::yield_now().await;
                continue;
            }
            let timer = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ready = device.readable() => {
                    let more = self.state().driver.receive(BATCH)?;
                    if !more {
                        ready?.clear_ready();
                    }
                }
                // The device was full. It is tried once more before tokio is told, for the readiness may be old.
                ready = device.writable(), if sent == Sent::Blocked => {
                    if self.state().driver.transmit(BATCH)? == Sent::Blocked {
                        ready?.clear_ready();
                    }
                }
                () = timer => {}
                () = self.changed.notified() => {}
            }
            self.state().driver.handle_timeout();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no task panics while it holds the engine")
    }
}

impl State {
    fn progress(&mut self, id: ConnectionId) -> &mut Progress {
        self.connections.entry(id).or_default()
    }

    /// Passes events on and sends packets until there are no more of either. Answers if the device was full and the
    /// time until the next timer.
    fn send(&mut self) -> io::Result<(Sent, Option<std::time::Duration>)> {
        let sent = loop {
            self.pass_events_on();
            let sent = self.driver.transmit(BATCH)?;
            // Sending may end a connection.
            if sent != Sent::All || !self.driver.endpoint().has_events() {
                break sent;
            }
        };
        let now = self.driver.now();
        let wait = self.driver.endpoint().next_timeout();
        Ok((sent, wait.map(|at| std::time::Duration::from_nanos(at.since(now).as_nanos()))))
    }

    fn pass_events_on(&mut self) {
        while let Some((id, event)) = self.driver.endpoint().poll_event() {
            if matches!(event, Event::Accepted { .. }) {
                self.connections.insert(id, Progress { established: true, ..Progress::default() });
                self.accepted.push_back(id);
                self.acceptor.take().into_iter().for_each(Waker::wake);
            }
            let over = matches!(event, Event::Closed | Event::Reset);
            let Some(progress) = self.connections.get_mut(&id) else {
                // Its stream was dropped.
                if over {
                    self.driver.endpoint().forget(id);
                }
                continue;
            };
            progress.established |= matches!(event, Event::Connected { .. });
            progress.over |= over;
            progress.reader.take().into_iter().for_each(Waker::wake);
            progress.writer.take().into_iter().for_each(Waker::wake);
        }
    }
}

/// A connection as a stream of bytes. Dropped before `shutdown`, it is aborted; after that the engine delivers what was
/// written.
pub struct MultipathStream {
    engine: Engine,
    id: ConnectionId,
    /// Bytes that were read from the engine and found no room in a reader's buffer.
    rest: Bytes,
    /// Our direction is closed.
    finished: bool,
}

impl MultipathStream {
    /// Statistics of the connection's subflows.
    pub fn subflows(&self) -> Vec<SubflowStats> {
        self.engine.state().driver.endpoint().subflow_stats(self.id)
    }
}

impl AsyncRead for MultipathStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            let mut state = this.engine.state();
            match state.driver.endpoint().read(this.id) {
                Ok(Read::Data(piece)) => this.rest = piece,
                Ok(Read::End) => return Poll::Ready(Ok(())),
                Ok(Read::Pending) => {
                    state.progress(this.id).reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Err(_) => return Poll::Ready(Err(ErrorKind::ConnectionReset.into())),
            }
            // Reading opens the receive window, which the peer has to hear of.
            this.engine.changed.notify_one();
        }
        let length = this.rest.len().min(buffer.remaining());
        buffer.put_slice(&this.rest[..length]);
        this.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MultipathStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.engine.state();
        // No more is copied than is taken. A write that finds no room, of no bytes, asks to be told of it.
        let room = state.driver.endpoint().write_space(self.id).min(data.len());
        match state.driver.endpoint().write(self.id, &Bytes::copy_from_slice(&data[..room])) {
            Ok(0) if !data.is_empty() => {
                state.progress(self.id).writer = Some(cx.waker().clone());
                Poll::Pending
            }
            Ok(taken) => {
                self.engine.changed.notify_one();
                Poll::Ready(Ok(taken))
            }
            Err(WriteError::Finished) => Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
            Err(_) => Poll::Ready(Err(ErrorKind::ConnectionReset.into())),
        }
    }

    /// The engine sends without being asked.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finished = true;
        self.engine.state().driver.endpoint().shutdown(self.id);
        self.engine.changed.notify_one();
        Poll::Ready(Ok(()))
    }
}

impl Drop for MultipathStream {
    fn drop(&mut self) {
        let mut state = self.engine.state();
        let over = state.connections.remove(&self.id).is_none_or(|progress| progress.over);
        let now = state.driver.now();
        if !over && !self.finished {
            state.driver.endpoint().abort(now, self.id);
        }
        state.driver.endpoint().forget(self.id);
        self.engine.changed.notify_one();
    }
}
