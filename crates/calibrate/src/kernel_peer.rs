//! Both ends of a transfer as the kernel's own sockets.

use crate::transfer::{REQUEST, Transfer, TransferError};
use anabranch_host::Namespace;
use anabranch_sim::{Direction, pattern};
use anabranch_units::Bytes;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
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

/// Transfers one file from one namespace to the other; answers how long it took.
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
    let (begun, fetched) = fetched?;
    let ended = match transfer.direction {
        Direction::Down => fetched,
        Direction::Up => served?,
    };
    Ok(ended.saturating_duration_since(begun))
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

fn serve(listener: &Socket, transfer: Transfer) -> Result<Instant, TransferError> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(transfer.patience))?;
    socket.set_write_timeout(Some(transfer.patience))?;
    match transfer.direction {
        Direction::Down => {
            receive(&mut socket, REQUEST)?;
            send(&mut socket, transfer.size.get())?;
        }
        Direction::Up => receive(&mut socket, transfer.size.get())?,
    }
    Ok(Instant::now())
}

fn fetch(
    sockets: &KernelSockets,
    local: IpAddr,
    remote: SocketAddr,
    transfer: Transfer,
) -> Result<(Instant, Instant), TransferError> {
    let mut socket = socket(sockets, sockets.client_buffer, remote.ip(), transfer.patience)?;
    socket.bind(&SockAddr::from(SocketAddr::new(local, 0)))?;
    let begun = Instant::now();
    socket.connect(&SockAddr::from(remote))?;
    match transfer.direction {
        Direction::Down => {
            send(&mut socket, REQUEST)?;
            receive(&mut socket, transfer.size.get())?;
        }
        Direction::Up => send(&mut socket, transfer.size.get())?,
    }
    let ended = Instant::now();
    Ok((begun, ended))
}

fn send(socket: &mut Socket, size: u64) -> Result<(), TransferError> {
    let mut sent = 0;
    while sent < size {
        let piece = pattern::slice(sent, size - sent);
        let taken = socket.write(&piece).map_err(|error| broken(sent, &error))?;
        sent += taken as u64;
    }
    socket.shutdown(std::net::Shutdown::Write)?;
    Ok(())
}

fn receive(socket: &mut Socket, size: u64) -> Result<(), TransferError> {
    let mut buffer = vec![0; 1 << 16];
    let mut read = 0;
    while read < size {
        let count = socket.read(&mut buffer).map_err(|error| broken(read, &error))?;
        if count == 0 {
            return Err(TransferError::Broken { read, reason: "the peer closed too early".to_owned() });
        }
        if !pattern::matches(read, &buffer[..count]) {
            return Err(TransferError::Altered { at: read });
        }
        read += count as u64;
    }
    Ok(())
}

fn broken(bytes: u64, error: &io::Error) -> TransferError {
    let reason = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "nothing moved for too long".to_owned(),
        _ => error.to_string(),
    };
    TransferError::Broken { read: bytes, reason }
}
