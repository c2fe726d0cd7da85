//! The proxy on an engine, in front of a kernel's service or behind a kernel's client.

use crate::{Engine, Kernel, Stream};
use anabranch_service::proxy::{Access, Direction, Limits, Proxy, Settings, Timeouts};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// An engine with a proxy on it.
pub type ProxyEngine = Engine<Proxy>;

/// A proxy that passes the streams of the engine's clients on to `service`.
pub(crate) fn to_service(port: u16, service: SocketAddr) -> io::Result<Proxy> {
    let (host, to_port) = (service.ip().to_string(), service.port());
    proxy(Direction::Listen { port, host, to_port, proxy_protocol: false })
}

/// A proxy that connects from these addresses to where clients of its own host want.
pub(crate) fn for_clients(via: Vec<IpAddr>) -> io::Result<Proxy> {
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    proxy(Direction::Socks { listen, via, users: None, access: Access::default() })
}

fn proxy(direction: Direction) -> io::Result<Proxy> {
    let (limits, timeouts) = (Limits::default(), Timeouts::default());
    let settings = Settings { direction, metrics: None, device: None, limits, timeouts };
    Proxy::new(settings).map_err(io::Error::other)
}

/// Connects a kernel's socket to `to` through the proxy (HTTP CONNECT, RFC 9110 §9.3.6).
pub(crate) fn connect_through(
    proxy: &ProxyEngine,
    kernel: &Kernel,
    to: SocketAddr,
    limit: Duration,
) -> io::Result<Stream> {
    let listens = proxy.with(|proxy, _| proxy.socks_address());
    let stream = kernel.connect(None, listens.ok_or_else(|| io::Error::other("the proxy does not listen"))?)?;
    let mut socket = stream.socket();
    socket.set_read_timeout(Some(limit))?;
    write!(socket, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n")?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    if text.starts_with("HTTP/1.1 200 ") {
        Ok(stream)
    } else {
        Err(io::Error::other(format!("the proxy says {text:?}")))
    }
}
