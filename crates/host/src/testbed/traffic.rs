//! Traffic of the kernel between the hosts of a testbed: TCP and Multipath TCP under a congestion control of choice,
//! and UDP at a rate.
//!
//! The client asks for bytes and the server sends them. All sockets are the kernel's own; each transfer has a thread.

use crate::Namespace;
use rustix::net::sockopt::set_tcp_congestion;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Flag that ends transfers and servers soon after it becomes true.
pub type Ending = Arc<AtomicBool>;

/// Protocol of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Plain TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
}

/// Constant rate of UDP packets.
#[derive(Clone, Copy, Debug)]
pub struct UdpRate {
    /// Bytes of an IP packet, headers included.
    pub packet: usize,
    /// Time from one packet to the next.
    pub gap: Duration,
    /// Time for which packets are sent.
    pub duration: Duration,
}

/// Serves in `host` on this port, under a congestion control of the kernel, until `ending`.
///
/// # Errors
/// If the kernel does not have the protocol or the control or does not let us use it, or the port is taken.
pub fn serve(
    host: &Namespace,
    transport: Transport,
    port: u16,
    congestion: &str,
    ending: &Ending,
) -> io::Result<JoinHandle<()>> {
    let congestion = congestion.to_owned();
    let listener = host.run(move || -> io::Result<TcpListener> {
        let socket = transport.socket()?;
        // Before it listens: connections inherit it, and begin under no other.
        set_tcp_congestion(&socket, &congestion)?;
        socket.bind(&SockAddr::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    })?;
    let ending = Arc::clone(ending);
    Ok(thread::spawn(move || {
        while !ending.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((connection, _)) => {
                    let ending = Arc::clone(&ending);
                    // A transfer that fails is seen by its client.
                    thread::spawn(move || answer(connection, &ending));
                }
                Err(_) => thread::sleep(BETWEEN_LOOKS),
            }
        }
    }))
}

/// Sends over a connection as many bytes as the client asks for.
fn answer(mut connection: TcpStream, ending: &AtomicBool) -> io::Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut wanted = [0; 8];
    let begin = Instant::now();
    while let Err(error) = connection.peek(&mut wanted).and_then(|_| connection.read_exact(&mut wanted)) {
        if !is_timeout(&error) || ending.load(Ordering::Relaxed) || begin.elapsed() > LONGEST_REQUEST {
            return Err(error);
        }
    }
    connection.set_write_timeout(Some(PATIENCE))?;
    let (mut left, piece) = (u64::from_be_bytes(wanted), vec![0; PIECE]);
    while left > 0 && !ending.load(Ordering::Relaxed) {
        let length = left.min(PIECE as u64) as usize;
        match connection.write(&piece[..length]) {
            Ok(written) => left -= written as u64,
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fetches this number of bytes, or as many as there are in `limit`, from `host`'s address `from`. Answers how many
/// came, when they have come, time is up or `ending` is true.
pub fn fetch(
    host: &Namespace,
    transport: Transport,
    from: Ipv4Addr,
    server: SocketAddrV4,
    bytes: Option<u64>,
    limit: Duration,
    ending: &Ending,
) -> JoinHandle<io::Result<u64>> {
    let ending = Arc::clone(ending);
    host.spawn(move || {
        let begin = Instant::now();
        let socket = transport.socket()?;
        socket.bind(&SockAddr::from(SocketAddrV4::new(from, 0)))?;
        socket.connect_timeout(&SockAddr::from(server), limit)?;
        let mut connection = TcpStream::from(socket);
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.write_all(&bytes.unwrap_or(u64::MAX).to_be_bytes())?;
        let (mut got, mut buffer) = (0, vec![0; PIECE]);
        while begin.elapsed() < limit && !ending.load(Ordering::Relaxed) && bytes.is_none_or(|bytes| got < bytes) {
            match connection.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => got += length as u64,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(got)
    })
}

/// Sends UDP packets from an address and port of `host` to the same port of `client`, until their time is up or
/// `ending` is true. Answers how many it left out because the machine did not run it in time: made up for in a burst,
/// they would be another kind of traffic.
///
/// # Errors
/// If the port is taken.
pub fn send_udp(
    host: &Namespace,
    from: SocketAddrV4,
    client: Ipv4Addr,
    rate: UdpRate,
    ending: &Ending,
) -> io::Result<JoinHandle<u64>> {
    let socket = host.run(move || UdpSocket::bind(from))?;
    let (ending, payload) = (Arc::clone(ending), vec![0; rate.packet.saturating_sub(UDP_HEADERS)]);
    Ok(thread::spawn(move || {
        // Before ordinary threads where that is permitted; where it is not, the answer shows what it came to.
        let _ = crate::sys::schedule_first_in_first_out(PRIORITY);
        let begin = Instant::now();
        let (mut due, mut left_out, gap) = (Duration::ZERO, 0, rate.gap.max(Duration::from_nanos(1)));
        while due < rate.duration && !ending.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_sub(begin.elapsed()));
            match begin.elapsed() < due + LATEST {
                // Packets that nobody takes come back as errors; they are on their way all the same.
                true => drop(socket.send_to(&payload, (client, from.port()))),
                false => left_out += 1,
            }
            due += gap;
        }
        left_out
    }))
}

impl Transport {
    fn socket(self) -> io::Result<Socket> {
        let protocol = match self {
            Transport::Tcp => Protocol::TCP,
            Transport::Mptcp => Protocol::MPTCP,
        };
        Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Lateness from which a UDP packet is left out.
const LATEST: Duration = Duration::from_millis(20);
/// Priority of SCHED_FIFO of a UDP sender: below that of the emulator.
const PRIORITY: i32 = 1;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 256;
/// Bytes written or read at once.
const PIECE: usize = 1 << 16;
/// Header of IPv4 without options, and of UDP.
const UDP_HEADERS: usize = 28;
/// Longest time without a look at `ending`.
const PATIENCE: Duration = Duration::from_millis(100);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// Time after which a connection without a request is closed: its SYN has arrived, and later packets may be lost often.
const LONGEST_REQUEST: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_client_gets_what_it_asks_for_and_a_server_ends() {
        let Ok(host) = Namespace::new("traffic") else {
            return println!("SKIPPED: no network namespaces here");
        };
        let ending = Ending::default();
        assert!(serve(&host, Transport::Tcp, 5201, "no-such-control", &ending).is_err());
        let server = serve(&host, Transport::Tcp, 5201, "reno", &ending).unwrap();
        let there = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5201);
        let long = Duration::from_secs(60);
        let local = Ipv4Addr::LOCALHOST;
        let got = fetch(&host, Transport::Tcp, local, there, Some(100_000), long, &ending).join().unwrap().unwrap();
        assert_eq!(got, 100_000);
        let receiver = host.run(|| UdpSocket::bind("127.0.0.2:5202").unwrap());
        let rate = UdpRate { packet: 128, gap: Duration::from_millis(1), duration: Duration::from_millis(3) };
        let sender = send_udp(&host, SocketAddrV4::new(local, 5202), Ipv4Addr::new(127, 0, 0, 2), rate, &ending);
        let left_out = sender.unwrap().join().unwrap();
        let mut buffer = [0; 200];
        (left_out..3).for_each(|_| assert_eq!(receiver.recv(&mut buffer).unwrap(), 100));
        let endless = fetch(&host, Transport::Tcp, local, there, None, long, &ending);
        ending.store(true, Ordering::Relaxed);
        // The server's end may come as a reset.
        let _ = endless.join().unwrap();
        server.join().unwrap();
    }
}
