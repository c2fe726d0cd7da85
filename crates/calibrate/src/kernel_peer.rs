//! Both ends of a transfer as the kernel's own sockets.

use crate::transfer::{Bursts, Plan, REQUEST, Transfer, TransferError, mean};
use anabranch_host::Namespace;
use anabranch_sim::{Direction, pattern};
use anabranch_units::Bytes;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// How the kernel's sockets are to be.
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

/// Beginnings and ends that one side has seen, on the wall's clock.
#[derive(Default)]
struct Times {
    begun: Vec<Instant>,
    ended: Vec<Instant>,
}

/// Makes one transfer from one namespace to the other; answers how long it took, its bursts on average.
pub fn transfer(
    client: &Namespace,
    server: &Namespace,
    sockets: KernelSockets,
    local: IpAddr,
    remote: SocketAddr,
    transfer: Transfer,
) -> Result<Duration, TransferError> {
    let listening = sockets.clone();
    let listener = server.run(move || listen(&listening, remote, transfer.patience))?;
    let serving = server.spawn(move || serve(&listener, transfer));
    let fetching = client.spawn(move || fetch(&sockets, local, remote, transfer));
    let fetched = fetching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // A download is over when the client has it, whatever became of the server's end afterwards.
    let (fetched, served) = match (transfer.direction, transfer.plan) {
        (Direction::Down, Plan::File(_)) => (fetched?, Times::default()),
        _ => (fetched?, served?),
    };
    let begun = if fetched.begun.is_empty() { served.begun } else { fetched.begun };
    let ended = if fetched.ended.is_empty() { served.ended } else { fetched.ended };
    Ok(mean(&begun, &ended))
}

fn socket(sockets: &KernelSockets, buffer: Option<Bytes>, address: IpAddr, patience: Duration) -> io::Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let protocol = if sockets.multipath { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(domain, Type::STREAM, Some(protocol))?;
    socket.set_tcp_congestion(sockets.congestion.as_bytes()).map_err(|error| {
        let message =
            format!("the kernel's sockets cannot have the congestion control `{}`: {error}", sockets.congestion);
        io::Error::new(error.kind(), message)
    })?;
    // The kernel doubles what it is told (socket(7)), since half of a buffer goes to bookkeeping; so what is told is meant.
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes.get() as usize)?;
    }
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))?;
    Ok(socket)
}

fn listen(sockets: &KernelSockets, address: SocketAddr, patience: Duration) -> io::Result<Socket> {
    let socket = socket(sockets, sockets.server_buffer, address.ip(), patience)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(16)?;
    Ok(socket)
}

fn serve(listener: &Socket, transfer: Transfer) -> Result<Times, TransferError> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(transfer.patience))?;
    socket.set_write_timeout(Some(transfer.patience))?;
    let mut times = Times::default();
    match (transfer.direction, transfer.plan) {
        (Direction::Down, Plan::File(size)) => {
            receive(&mut socket, &[REQUEST])?;
            send(&mut socket, 0, size.get())?;
            socket.shutdown(Shutdown::Write)?;
        }
        (Direction::Down, Plan::Bursts(bursts)) => times.begun = send_bursts(&mut socket, &bursts)?,
        (Direction::Up, plan) => times.ended = receive(&mut socket, &plan.ends())?,
    }
    Ok(times)
}

fn fetch(
    sockets: &KernelSockets,
    local: IpAddr,
    remote: SocketAddr,
    transfer: Transfer,
) -> Result<Times, TransferError> {
    let mut socket = socket(sockets, sockets.client_buffer, remote.ip(), transfer.patience)?;
    socket.bind(&SockAddr::from(SocketAddr::new(local, 0)))?;
    let mut times = Times { begun: vec![Instant::now()], ended: Vec::new() };
    socket.connect(&SockAddr::from(remote))?;
    match (transfer.direction, transfer.plan) {
        (Direction::Down, Plan::File(_)) => {
            // Not closed behind the request: the kernel opens no subflow for a connection of which one end has closed.
            send(&mut socket, 0, REQUEST)?;
            times.ended = receive(&mut socket, &transfer.plan.ends())?;
        }
        (Direction::Up, Plan::File(size)) => {
            send(&mut socket, 0, size.get())?;
            socket.shutdown(Shutdown::Write)?;
        }
        (Direction::Down, Plan::Bursts(_)) => {
            times = Times { begun: Vec::new(), ended: receive(&mut socket, &transfer.plan.ends())? };
        }
        (Direction::Up, Plan::Bursts(bursts)) => times.begun = send_bursts(&mut socket, &bursts)?,
    }
    Ok(times)
}

/// Sends the bytes from `from` to `to` of the stream.
fn send(socket: &mut Socket, from: u64, to: u64) -> Result<(), TransferError> {
    let mut sent = from;
    while sent < to {
        let piece = pattern::slice(sent, to - sent);
        let taken = socket.write(&piece).map_err(|error| broken(sent, &error))?;
        sent += taken as u64;
    }
    Ok(())
}

/// Warms the connection up and sends each burst at its time; answers when they began.
fn send_bursts(socket: &mut Socket, bursts: &Bursts) -> Result<Vec<Instant>, TransferError> {
    let mut next = Instant::now() + bursts.interval;
    let mut sent = bursts.warm_up.get();
    send(socket, 0, sent)?;
    let mut begun = Vec::new();
    for _ in 0..bursts.count {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        next += bursts.interval;
        begun.push(Instant::now());
        send(socket, sent, sent + bursts.size.get())?;
        sent += bursts.size.get();
    }
    socket.shutdown(Shutdown::Write)?;
    Ok(begun)
}

/// Reads until the last of `ends`; answers when each of them was reached.
fn receive(socket: &mut Socket, ends: &[u64]) -> Result<Vec<Instant>, TransferError> {
    let mut buffer = vec![0; 1 << 16];
    let mut read = 0;
    let mut reached = Vec::new();
    while reached.len() < ends.len() {
        let count = socket.read(&mut buffer).map_err(|error| broken(read, &error))?;
        if count == 0 {
            return Err(TransferError::Broken { read, reason: "the peer closed too early".to_owned() });
        }
        if !pattern::matches(read, &buffer[..count]) {
            return Err(TransferError::Altered { at: read });
        }
        read += count as u64;
        let now = Instant::now();
        reached.extend(ends[reached.len()..].iter().take_while(|end| **end <= read).map(|_| now));
    }
    Ok(reached)
}

fn broken(bytes: u64, error: &io::Error) -> TransferError {
    let reason = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "nothing moved for too long".to_owned(),
        _ => error.to_string(),
    };
    TransferError::Broken { read: bytes, reason }
}
