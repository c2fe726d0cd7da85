//! Both ends of a transfer as kernel sockets, each end in a thread that polls all of its sockets.

use crate::end::{End, Log, Outgoing, Report, Sent, ends, outcome};
use crate::transfer::{Plan, Times, Transfer, TransferError};
use anabranch_host::Namespace;
use anabranch_units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, PipeReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

/// Settings of the kernel's sockets.
#[derive(Clone, Debug)]
pub struct KernelSockets {
    /// MPTCP, or plain TCP.
    pub multipath: bool,
    /// The congestion control of both ends, as the kernel calls it.
    pub congestion: String,
    /// A fixed receive buffer of the client in bytes as the simulator counts them; `None` lets the kernel tune it.
    pub client_buffer: Option<Bytes>,
    /// The same for the server.
    pub server_buffer: Option<Bytes>,
}

/// Makes one transfer from one namespace to the other; answers how long it took.
pub fn transfer(
    client: &Namespace,
    server: &Namespace,
    sockets: &KernelSockets,
    local: IpAddr,
    remote: SocketAddr,
    transfer: &Transfer,
) -> Result<Times, TransferError> {
    let (log, (reports, heard)) = (Log::default(), channel());
    let (fetching, serving) = ends(transfer, &log);
    // As browsers and web servers do; our engine does so always.
    let no_delay = matches!(transfer.plan, Plan::Page(..));
    let listening = Kind { sockets: sockets.clone(), buffer: sockets.server_buffer, no_delay };
    let connecting = Kind { sockets: sockets.clone(), buffer: sockets.client_buffer, no_delay };
    let listener = server.run(move || listening.listen(remote))?;
    // Dropping the writing halves ends the threads.
    let (client_ends, stop_client) = io::pipe()?;
    let (server_ends, stop_server) = io::pipe()?;
    let serving = Peer::new(serving, Place::Server(listener, no_delay), &log, reports.clone());
    let fetching = Peer::new(fetching, Place::Client(connecting, local, remote), &log, reports);
    let served = server.spawn(move || serving.run(&server_ends));
    let fetched = client.spawn(move || fetching.run(&client_ends));
    let outcome = outcome(transfer, &log, &heard);
    drop((stop_client, stop_server));
    for thread in [fetched, served] {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    outcome
}

/// Options of the sockets of one end.
struct Kind {
    sockets: KernelSockets,
    buffer: Option<Bytes>,
    no_delay: bool,
}

impl Kind {
    fn socket(&self, address: IpAddr) -> io::Result<Socket> {
        let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let protocol = if self.sockets.multipath { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(domain, Type::STREAM, Some(protocol))?;
        let congestion = &self.sockets.congestion;
        socket.set_tcp_congestion(congestion.as_bytes()).map_err(|error| {
            let message = format!("the kernel's sockets cannot have the congestion control `{congestion}`: {error}");
            io::Error::new(error.kind(), message)
        })?;
        // The kernel doubles this value and uses half of it for bookkeeping (socket(7)), so the value set is the space
        // for data.
        if let Some(bytes) = self.buffer {
            socket.set_recv_buffer_size(bytes.get() as usize)?;
        }
        socket.set_tcp_nodelay(self.no_delay)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Socket> {
        let socket = self.socket(address.ip())?;
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    }

    fn connect(&self, local: IpAddr, remote: SocketAddr) -> io::Result<Socket> {
        let socket = self.socket(remote.ip())?;
        socket.bind(&SockAddr::from(SocketAddr::new(local, 0)))?;
        match socket.connect(&SockAddr::from(remote)) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(error),
            _ => Ok(socket),
        }
    }
}

/// Origin of an end's sockets.
enum Place {
    /// Connects from one address to the other.
    Client(Kind, IpAddr, SocketAddr),
    /// Accepts, and sends small segments at once if told to.
    Server(Socket, bool),
}

/// One end, in its namespace.
struct Peer {
    end: Box<dyn End>,
    place: Place,
    connections: Vec<Connection>,
    buffer: Vec<u8>,
    log: Log,
    reports: Sender<Report>,
}

struct Connection {
    socket: Socket,
    outgoing: Outgoing,
    /// The handshake is over.
    connected: bool,
    /// Something waits for the socket to take more.
    blocked: bool,
    /// The peer has closed its direction.
    finished: bool,
}

impl Connection {
    fn new(socket: Socket, connected: bool) -> Self {
        Connection { socket, outgoing: Outgoing::default(), connected, blocked: false, finished: false }
    }

    /// Readiness that is waited for.
    fn interest(&self) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, self.connected && !self.finished);
        interest.set(PollFlags::OUT, !self.connected || self.blocked);
        interest
    }
}

impl Peer {
    fn new(end: Box<dyn End>, place: Place, log: &Log, reports: Sender<Report>) -> Self {
        Peer { end, place, connections: Vec::new(), buffer: vec![0; 1 << 16], log: log.clone(), reports }
    }

    /// Runs until the other half of the pipe is gone; reports once.
    fn run(mut self, stop: &PipeReader) {
        let report = self.until_done(stop);
        // Fails once the other end's report has decided: the receiver is gone.
        if let Some(report) = report.transpose() {
            let _ = self.reports.send(report);
        }
        // The last ACKs, and what the other end still reads: its sockets are not closed before it is done.
        while self.step(stop).unwrap_or(false) {}
    }

    /// `None` if it was stopped first.
    fn until_done(&mut self, stop: &PipeReader) -> Result<Option<()>, TransferError> {
        self.end.start(Instant::now());
        self.go_on()?;
        while self.end.is_done() != Some(true) {
            if !self.step(stop)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Waits for sockets and times, and does what is to be done; false once it was stopped.
    fn step(&mut self, stop: &PipeReader) -> Result<bool, TransferError> {
        let wait = self.end.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut sources = vec![PollFd::new(stop, PollFlags::IN)];
        if let Place::Server(listener, _) = &self.place {
            sources.push(PollFd::new(listener, PollFlags::IN));
        }
        let others = sources.len();
        // Without those that are through, of which `poll` would go on telling that they are closed.
        let open = self.connections.iter().enumerate().filter(|(_, it)| !it.interest().is_empty());
        let (numbers, waiting): (Vec<usize>, Vec<PollFd<'_>>) =
            open.map(|(number, it)| (number, PollFd::new(&it.socket, it.interest()))).unzip();
        sources.extend(waiting);
        match poll(&mut sources, wait.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(true),
            result => result.map_err(io::Error::from)?,
        };
        let ready: Vec<PollFlags> = sources.iter().map(PollFd::revents).collect();
        drop(sources);
        if !ready[0].is_empty() {
            return Ok(false);
        }
        for (number, ready) in numbers.into_iter().zip(&ready[others..]) {
            if !ready.is_empty() {
                self.on_ready(number)?;
            }
        }
        if others > 1 && !ready[1].is_empty() {
            self.accept()?;
        }
        self.go_on()?;
        Ok(true)
    }

    fn accept(&mut self) -> io::Result<()> {
        let Place::Server(listener, no_delay) = &self.place else { return Ok(()) };
        let socket = match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            accepted => accepted?.0,
        };
        socket.set_tcp_nodelay(*no_delay)?;
        socket.set_nonblocking(true)?;
        self.connections.push(Connection::new(socket, true));
        self.end.opened(Instant::now());
        Ok(())
    }

    /// A socket is connected, or has something to read.
    fn on_ready(&mut self, number: usize) -> Result<(), TransferError> {
        let connection = &mut self.connections[number];
        if !connection.connected {
            if let Some(error) = connection.socket.take_error()? {
                return Err(self.log.broken(error.to_string()));
            }
            connection.connected = true;
        }
        while !connection.finished {
            match (&connection.socket).read(&mut self.buffer) {
                Ok(0) => connection.finished = true,
                Ok(count) => self.end.received(Instant::now(), number, &self.buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(self.log.broken(error.to_string())),
            }
        }
        match self.end.is_done() {
            Some(false) => Err(self.log.broken("the peer closed too early")),
            _ => Ok(()),
        }
    }

    /// Opens the connections that the end wants, and writes their data.
    fn go_on(&mut self) -> Result<(), TransferError> {
        self.end.timeout(Instant::now());
        if let Place::Client(kind, local, remote) = &self.place {
            while self.connections.len() < self.end.wanted() {
                self.connections.push(Connection::new(kind.connect(*local, *remote)?, false));
                self.end.opened(Instant::now());
            }
        }
        for (number, connection) in self.connections.iter_mut().enumerate().filter(|(_, it)| it.connected) {
            let socket = &connection.socket;
            let write = |piece: &bytes::Bytes| match { socket }.write(piece) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                result => result,
            };
            let sent = connection.outgoing.write(&mut *self.end, number, write);
            let sent = sent.map_err(|error| self.log.broken(error.to_string()))?;
            if sent == Sent::Shutdown {
                // Fails where the peer has reset the connection, which reading tells.
                let _ = socket.shutdown(Shutdown::Write);
            }
            connection.blocked = sent == Sent::Blocked;
        }
        Ok(())
    }
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
