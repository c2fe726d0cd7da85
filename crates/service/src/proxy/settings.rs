//! Settings of a proxy at its start.

use super::access::Access;
use crate::patience::{LEAST_RATE, Pace};
use anabranch_units::{Bytes, Duration};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The settings of one proxy.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Direction: the clients and their destination.
    pub direction: Direction,
    /// Address on which metrics and health are served over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Name of the TUN device, whose drops the metrics tell.
    pub device: Option<String>,
    /// The bounds on what clients may take up.
    pub limits: Limits,
    /// Timeouts.
    pub timeouts: Timeouts,
}

/// Direction of a proxy: the clients and their destination.
#[derive(Clone, Debug)]
pub enum Direction {
    /// Clients connect to the engine; each stream goes to a TCP service through a kernel socket.
    Listen {
        /// The port on all addresses of the engine.
        port: u16,
        /// The service: a name or an address, and the port.
        host: String,
        /// The service's port.
        to_port: u16,
        /// Begin each stream to the service with a PROXY protocol v2 header that names the client.
        proxy_protocol: bool,
    },
    /// Clients ask for a destination by SOCKS5 or HTTP; the engine connects to it.
    Socks {
        /// Listening address of the kernel socket. Port 0 takes any.
        listen: SocketAddr,
        /// The engine's addresses, the first to be used first.
        via: Vec<IpAddr>,
        /// Permitted users; all who can connect if absent.
        users: Option<Arc<Users>>,
        /// Permitted clients and destinations.
        access: Access,
    },
}

/// The bounds on what clients may take up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time, of all clients.
    pub connections: usize,
    /// Connections at the same time, of one client address (IPv6: of one /64, which is what one customer has).
    pub connections_per_client: usize,
    /// Bytes held for connections, of all clients: written and not acknowledged, received and not passed on. Beyond it
    /// new connections are refused, nothing is read from kernel sockets, and once a second the one that holds most is
    /// reset.
    pub memory: Bytes,
    /// The same for one client; beyond it nothing is read for this client, and it gets no new connections.
    pub memory_per_client: Bytes,
}

/// Timeouts, checked once a second.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a client to say where it wants to go (SOCKS5, HTTP).
    pub handshake: Duration,
    /// For one attempt to connect to one address.
    pub attempt: Duration,
    /// For all attempts together, looking up the name included.
    pub connect: Duration,
    /// Without a byte in either direction; and the least rate at which an end has to take what waits for it.
    pub idle: Pace,
    /// For running connections to end after the first SIGTERM.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            connections_per_client: 256,
            memory: Bytes::new(1 << 30),
            memory_per_client: Bytes::new(256 << 20),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            handshake: Duration::from_secs(10),
            attempt: Duration::from_secs(5),
            connect: Duration::from_secs(20),
            idle: Pace { stall: Duration::from_secs(900), least: LEAST_RATE },
            drain: Duration::from_secs(30),
        }
    }
}

/// Names and passwords (RFC 1929; HTTP Basic).
#[derive(Clone, Default)]
pub struct Users(BTreeMap<Vec<u8>, Vec<u8>>);

/// Fault of a file of users.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UsersError {
    /// A line is not `name:password`.
    #[error("line {line} is not a user; accepted: `name:password`, each of 1 to 255 bytes")]
    Line {
        /// Line, counted from 1.
        line: usize,
    },
    /// The file has no users.
    #[error("the file has no user; accepted: one `name:password` per line")]
    Empty,
}

impl Users {
    /// Reads `name:password` lines; empty lines and those that begin with `#` are passed over.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.split_once(':').filter(|(name, word)| fits(name) && fits(word));
            let (name, password) = pair.ok_or(UsersError::Line { line: number + 1 })?;
            users.insert(name.as_bytes().to_vec(), password.as_bytes().to_vec());
        }
        if users.is_empty() { Err(UsersError::Empty) } else { Ok(Users(users)) }
    }

    /// Checks a name and password. Takes as long for a wrong name as for a wrong password.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> bool {
        let known = self.0.get(name);
        let right = anabranch_units::same_mac(known.map_or(b"", Vec::as_slice), password);
        known.is_some() && right
    }
}

fn fits(text: &str) -> bool {
    (1..=255).contains(&text.len())
}

impl std::fmt::Debug for Users {
    /// Passwords stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_line_by_line() {
        let users = Users::parse("# who\n\nanna:secret:with colon\nbo:x\n").expect("well written");
        assert!(users.admits(b"anna", b"secret:with colon"));
        assert!(!users.admits(b"anna", b"x") && !users.admits(b"nobody", b"") && !users.admits(b"", b""));
        assert_eq!(Users::parse("anna\n").err(), Some(UsersError::Line { line: 1 }));
        assert_eq!(Users::parse("a:b\n:c\n").err(), Some(UsersError::Line { line: 2 }));
        assert_eq!(Users::parse("#\n").err(), Some(UsersError::Empty));
        assert!(!format!("{users:?}").contains("secret"));
    }
}
