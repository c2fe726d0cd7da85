//! Peers of the kernel: sockets in a namespace, driven by threads. Every call ends within a time limit.

use crate::{Close, Plan, Role, Transfer};
use anabranch_host::Namespace;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// IPPROTO_MPTCP.
const MPTCP: i32 = 262;

/// Settings of the sockets of a namespace.
#[derive(Clone)]
pub struct Kernel {
    /// Namespace of the sockets.
    pub namespace: Namespace,
    /// MPTCP sockets, or those of plain TCP.
    pub multipath: bool,
    /// SO_RCVBUF of each socket, before it connects or listens; the kernel doubles it.
    pub receive_buffer: Option<usize>,
    /// SO_SNDBUF likewise.
    pub send_buffer: Option<usize>,
}

impl Kernel {
    /// MPTCP sockets in `namespace`, with buffers that tune themselves.
    pub fn new(namespace: &Namespace) -> Self {
        Kernel { namespace: namespace.clone(), multipath: true, receive_buffer: None, send_buffer: None }
    }

    /// Listens on `address`.
    pub fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        let socket = self.socket(address)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(128)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket })
    }

    /// Connects to `to`, from the address `from` or from that which the routes say.
    pub fn connect(&self, from: Option<IpAddr>, to: SocketAddr) -> io::Result<Stream> {
        let socket = self.socket(to)?;
        if let Some(from) = from {
            socket.bind(&SocketAddr::new(from, 0).into())?;
        }
        socket.connect_timeout(&to.into(), CONNECT_LIMIT)?;
        Ok(Stream { socket: Arc::new(socket.into()), role: Role::Client })
    }

    fn socket(&self, address: SocketAddr) -> io::Result<Socket> {
        let protocol = if self.multipath { Protocol::from(MPTCP) } else { Protocol::TCP };
        let socket =
            self.namespace.run(move || Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol)))?;
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        Ok(socket)
    }
}

/// A listening socket.
pub struct Listener {
    socket: Socket,
}

impl Listener {
    /// The next connection.
    ///
    /// # Errors
    /// `TimedOut` if none comes within `limit`.
    pub fn accept(&self, limit: Duration) -> io::Result<Stream> {
        let end = Instant::now() + limit;
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(false)?;
                    return Ok(Stream { socket: Arc::new(socket.into()), role: Role::Server });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= end {
                        return Err(io::Error::new(ErrorKind::TimedOut, format!("nobody connected within {limit:?}")));
                    }
                    thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the listening address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("not an IP address"))
    }
}

/// A connected socket.
#[derive(Clone)]
pub struct Stream {
    socket: Arc<TcpStream>,
    role: Role,
}

impl Stream {
    /// Does what `plan` says on threads of its own, for at most `limit`; then the socket is closed.
    pub fn start(self, plan: Plan, limit: Duration) -> Conversation {
        let shared = Arc::new(Progress::default());
        let end = Instant::now() + limit;
        let reader = {
            let (stream, shared) = (self.clone(), Arc::clone(&shared));
            thread::spawn(move || stream.read_all(plan, end, &shared))
        };
        let writer = {
            let (stream, shared) = (self.clone(), Arc::clone(&shared));
            thread::spawn(move || stream.write_all(plan, end, &shared))
        };
        Conversation { stream: self, shared, reader, writer }
    }

    /// Sends `bytes` of the pattern that stand at `offset` of this end's stream.
    pub fn send(&self, offset: u64, bytes: u64, limit: Duration) -> io::Result<()> {
        self.set_limit()?;
        let end = Instant::now() + limit;
        let mut sent = 0;
        while sent < bytes {
            let piece = self.role.slice(offset + sent, bytes - sent);
            sent += retry(end, || (&*self.socket).write(&piece), "the peer takes nothing")? as u64;
        }
        Ok(())
    }

    /// Receives `bytes` that stand at `offset` of the peer's stream; fails if they are others.
    pub fn receive(&self, offset: u64, bytes: u64, limit: Duration) -> io::Result<()> {
        self.set_limit()?;
        let end = Instant::now() + limit;
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while received < bytes {
            let most = buffer.len().min((bytes - received) as usize);
            let count = retry(end, || (&*self.socket).read(&mut buffer[..most]), "nothing comes")?;
            if count == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    format!("the stream ended after {received} bytes"),
                ));
            }
            if let Some(at) = self.role.peer().first_difference(offset + received, &buffer[..count]) {
                return Err(io::Error::new(ErrorKind::InvalidData, format!("byte {at} is not what was sent")));
            }
            received += count as u64;
        }
        Ok(())
    }

    /// Waits for the peer's end of stream; fails if data comes instead.
    pub fn receive_end(&self, limit: Duration) -> io::Result<()> {
        self.set_limit()?;
        match retry(Instant::now() + limit, || (&*self.socket).read(&mut [0; 1]), "no end of the stream comes")? {
            0 => Ok(()),
            _ => Err(io::Error::new(ErrorKind::InvalidData, "data came where the end of the stream was due")),
        }
    }

    /// Closes this end's direction.
    pub fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Gives the connection up: linger 0, so that closing says MP_FASTCLOSE, or with plain TCP RST.
    pub fn abort(self) -> io::Result<()> {
        SockRef::from(&*self.socket).set_linger(Some(Duration::ZERO))
    }

    /// The socket, for options that are not here.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Our address and the peer's, of the initial subflow.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.socket.local_addr()?, self.socket.peer_addr()?))
    }

    /// Sets a timeout on calls, so that a waiting caller can check if it is still worthwhile.
    fn set_limit(&self) -> io::Result<()> {
        self.socket.set_read_timeout(Some(TURN))?;
        self.socket.set_write_timeout(Some(TURN))
    }

    fn write_all(&self, plan: Plan, end: Instant, shared: &Progress) -> Result<(), String> {
        self.set_limit().map_err(|error| error.to_string())?;
        let mut sent = 0;
        while sent < plan.send {
            if shared.over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let piece = self.role.slice(sent, plan.send - sent);
            match (&*self.socket).write(&piece) {
                Ok(count) => sent += count as u64,
                Err(error) if is_wait(&error) && Instant::now() < end => {}
                Err(error) => return Err(format!("after {sent} bytes sent: {error}")),
            }
            shared.sent.store(sent, Ordering::Relaxed);
        }
        match plan.close {
            Close::AfterSending => {}
            Close::AfterPeer => {
                while !shared.peer_finished.load(Ordering::Relaxed) && !shared.over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            Close::AbortAfter(_) | Close::Never => return Ok(()),
        }
        self.shutdown().map_err(|error| format!("shutdown: {error}"))
    }

    fn read_all(&self, plan: Plan, end: Instant, shared: &Progress) -> Result<Option<u64>, String> {
        let result = self.read_until_end(plan, end, shared);
        shared.over.store(true, Ordering::Relaxed);
        result
    }

    fn read_until_end(&self, plan: Plan, end: Instant, shared: &Progress) -> Result<Option<u64>, String> {
        self.set_limit().map_err(|error| error.to_string())?;
        let mut buffer = vec![0; 1 << 17];
        let (mut received, mut wrong) = (0, None);
        loop {
            if let Close::AbortAfter(bytes) = plan.close
                && received >= bytes
            {
                return Ok(wrong);
            }
            match (&*self.socket).read(&mut buffer) {
                Ok(0) => {
                    shared.peer_finished.store(true, Ordering::Relaxed);
                    while shared.sent.load(Ordering::Relaxed) < plan.send && Instant::now() < end {
                        thread::sleep(Duration::from_millis(2));
                    }
                    return Ok(wrong);
                }
                Ok(count) => {
                    wrong = wrong.or_else(|| self.role.peer().first_difference(received, &buffer[..count]));
                    received += count as u64;
                    shared.received.store(received, Ordering::Relaxed);
                }
                Err(error) if is_wait(&error) && Instant::now() < end => {}
                Err(error) if is_wait(&error) => return Err(format!("after {received} bytes received nothing came")),
                Err(error) => return Err(format!("after {received} bytes received: {error}")),
            }
        }
    }
}

/// A connection that carries out its plan.
pub struct Conversation {
    stream: Stream,
    shared: Arc<Progress>,
    reader: JoinHandle<Result<Option<u64>, String>>,
    writer: JoinHandle<Result<(), String>>,
}

#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    received: AtomicU64,
    peer_finished: AtomicBool,
    /// The reader has gone.
    over: AtomicBool,
}

impl Conversation {
    /// Returns the progress so far.
    pub fn progress(&self) -> Transfer {
        self.shared.transfer()
    }

    /// Waits until the plan is carried out, or its time is over, and closes the socket.
    pub fn finish(self, plan: &Plan) -> Transfer {
        let read = self.reader.join().expect("the reader does not panic");
        let written = self.writer.join().expect("the writer does not panic");
        let mut transfer = self.shared.transfer();
        match read {
            Ok(wrong) => transfer.wrong = wrong,
            Err(error) => transfer.failure = Some(error),
        }
        if let Err(error) = written {
            transfer.failure.get_or_insert(error);
        }
        if matches!(plan.close, Close::AbortAfter(_))
            && let Err(error) = self.stream.abort()
        {
            transfer.failure.get_or_insert(error.to_string());
        }
        transfer
    }
}

impl Progress {
    fn transfer(&self) -> Transfer {
        Transfer {
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            peer_finished: self.peer_finished.load(Ordering::Relaxed),
            ..Transfer::default()
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut)
}

fn retry(end: Instant, mut call: impl FnMut() -> io::Result<usize>, what: &str) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if is_wait(&error) && Instant::now() < end => {}
            Err(error) if is_wait(&error) => return Err(io::Error::new(ErrorKind::TimedOut, what.to_owned())),
            result => return result,
        }
    }
}

/// Only a guard against hanging.
const CONNECT_LIMIT: Duration = Duration::from_secs(120);
const TURN: Duration = Duration::from_millis(100);
