//! Signs that a server in a namespace can be connected to.
//!
//! A program of the kernel's sockets shows it by a socket that listens, which the namespace's tables list. An engine
//! listens on a device; it says that it is ready by the protocol of `sd_notify(3)`, which any other server may use as
//! well.

use crate::Namespace;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

/// The variable that tells a program where to say that it is ready (`sd_notify(3)`).
pub const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
/// The message there.
const READY: &[u8] = b"READY=1";
/// An abstract name: each network namespace has its own, and nothing of it is in the file system.
const NAME: &str = "anabranch-testbed";
/// The time that a datagram socket must have been there: a server may open one before the socket that it listens on,
/// and some are there for a moment only.
const SETTLED: Duration = Duration::from_millis(250);

/// Watches for a server in one namespace.
pub struct Readiness {
    namespace: Namespace,
    socket: UnixDatagram,
    said: bool,
    /// Sockets by inode that were there before: those of other servers.
    others: Vec<u64>,
    /// Bound datagram sockets by inode, and when each was first seen.
    datagrams: BTreeMap<u64, Instant>,
}

impl Readiness {
    /// Watches `namespace` from now on. Sockets that are there already do not count.
    ///
    /// # Errors
    /// If another watcher is active there, or a socket cannot be made.
    pub fn watch(namespace: &Namespace) -> io::Result<Self> {
        let socket = namespace.run(|| UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(NAME)?))?;
        socket.set_nonblocking(true)?;
        let (listening, bound) = open_sockets(namespace);
        let others = [listening, bound].concat();
        Ok(Readiness { namespace: namespace.clone(), socket, said: false, others, datagrams: BTreeMap::new() })
    }

    /// The value of [`NOTIFY_SOCKET`] for the server.
    pub fn address(&self) -> String {
        format!("@{NAME}")
    }

    /// Tells whether a socket in the namespace listens, or its program has said that it is ready.
    pub fn is_ready(&mut self) -> bool {
        let mut text = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut text) {
            self.said |= text[..length].split(|byte| *byte == b'\n').any(|line| line == READY);
        }
        self.said || self.listens()
    }

    fn listens(&mut self) -> bool {
        let (mut listening, mut bound) = open_sockets(&self.namespace);
        for all in [&mut listening, &mut bound] {
            all.retain(|inode| !self.others.contains(inode));
        }
        let now = Instant::now();
        self.datagrams.retain(|inode, _| bound.contains(inode));
        for inode in bound {
            self.datagrams.entry(inode).or_insert(now);
        }
        !listening.is_empty() || self.datagrams.values().any(|since| now.duration_since(*since) >= SETTLED)
    }
}

/// The inodes of sockets in `namespace` that listen for TCP, and of bound datagram sockets.
fn open_sockets(namespace: &Namespace) -> (Vec<u64>, Vec<u64>) {
    namespace.run(|| {
        let table = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        let all = |names: [&str; 2], state| names.iter().flat_map(|name| sockets(&table(name), state)).collect();
        (all(["tcp", "tcp6"], LISTEN), all(["udp", "udp6"], UNCONNECTED))
    })
}

/// States of sockets in those tables.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

/// The inodes of the sockets of a table that are in this state: the fourth and the tenth column (`proc(5)`).
fn sockets(table: &str, state: &str) -> Vec<u64> {
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let matching = rows.filter(|row| row.get(3) == Some(&state));
    matching.filter_map(|row| row.get(9)?.parse().ok()).collect()
}

/// Reports readiness to the service manager that started this program ([`NOTIFY_SOCKET`]): a testbed or systemd.
/// Without one, does nothing.
///
/// # Errors
/// If the message cannot be sent.
pub fn notify_ready() -> io::Result<()> {
    match std::env::var_os(NOTIFY_SOCKET) {
        Some(address) if !address.is_empty() => notify(&address),
        _ => Ok(()),
    }
}

fn notify(address: &OsStr) -> io::Result<()> {
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(Path::new(address))?,
    };
    UnixDatagram::unbound()?.send_to_addr(READY, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn the_columns_of_the_tables_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x\n   \
                     1: 0100007F:1F91 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 x\n";
        assert_eq!(sockets(table, LISTEN), [4711]);
        assert_eq!(sockets(table, UNCONNECTED), [0; 0]);
    }

    #[test]
    fn each_sign_counts_and_a_socket_of_a_moment_does_not() {
        let watched = || {
            let namespace = Namespace::new("ready").ok()?;
            let readiness = Readiness::watch(&namespace).unwrap();
            Some((namespace, readiness))
        };
        let Some((namespace, mut readiness)) = watched() else {
            return println!("SKIPPED: no network namespaces here");
        };
        assert!(!readiness.is_ready());
        let datagrams = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = namespace.run(datagrams);
        assert!(!readiness.is_ready(), "it may go again");
        drop(socket);
        assert!(!readiness.is_ready());
        let socket = namespace.run(datagrams);
        while !readiness.is_ready() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(socket);
        assert!(!readiness.is_ready());
        let socket = namespace.run(|| TcpListener::bind("[::1]:0").unwrap());
        assert!(readiness.is_ready());
        drop(socket);
        assert!(!readiness.is_ready());
        let first = namespace.run(|| TcpListener::bind("[::1]:0").unwrap());
        drop(readiness);
        let mut readiness = Readiness::watch(&namespace).unwrap();
        assert!(!readiness.is_ready(), "another server's");
        drop(first);
        let address = readiness.address();
        let other = Namespace::new("other").unwrap();
        let said = address.clone();
        assert!(other.run(move || notify(OsStr::new(&said))).is_err(), "another namespace is not meant");
        namespace.run(move || notify(OsStr::new(&address))).unwrap();
        assert!(readiness.is_ready());
    }
}
