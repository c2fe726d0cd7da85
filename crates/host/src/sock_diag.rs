//! Descriptions of the kernel's sockets: sock_diag(7), and the sockets that a process holds.

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, socket_with};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

/// A netlink socket to ask about the sockets of the caller's network namespace.
#[derive(Debug)]
pub struct SockDiag {
    socket: OwnedFd,
}

/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Flag of an answer that was cut because sockets changed meanwhile (`NLM_F_DUMP_INTR`).
const INTERRUPTED: u16 = 0x10;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Answers come in pieces of at most this size.
const PIECE: usize = 32 << 10;

impl SockDiag {
    /// Opens one. No privilege is needed; without CAP_NET_ADMIN the kernel leaves out to which MPTCP connection a
    /// subflow belongs.
    pub fn open() -> io::Result<Self> {
        SockDiag::with(netlink::SOCK_DIAG)
    }

    /// Opens one that speaks another protocol of netlink, in which requests and answers have the same form.
    pub(crate) fn with(protocol: Protocol) -> io::Result<Self> {
        let kind = SocketType::RAW;
        Ok(SockDiag { socket: socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(protocol))? })
    }

    /// Sends a request and returns the payload of each message that comes, until the last or the acknowledgment.
    ///
    /// # Errors
    /// As the kernel sees it: `NotFound` if it does not know the protocol.
    pub fn dump(&self, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        rustix::net::send(&self.socket, request, SendFlags::empty())?;
        let mut payloads = Vec::new();
        let mut piece = vec![0; PIECE];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut piece[..], RecvFlags::empty())?;
            let mut rest = &piece[..length.min(PIECE)];
            while let Some((kind, flags, payload, after)) = split(rest) {
                rest = after;
                match kind {
                    // The end of an answer has a code as well: that of a request that cannot be answered.
                    DONE | ERROR => {
                        let code = payload.get(..4).and_then(|it| it.try_into().ok()).map_or(0, i32::from_ne_bytes);
                        return match code {
                            0 => Ok(payloads),
                            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                        };
                    }
                    _ if flags & INTERRUPTED != 0 => {}
                    _ => payloads.push(payload.to_vec()),
                }
            }
        }
    }
}

/// The first message: kind, flags, payload; and the bytes after it.
fn split(bytes: &[u8]) -> Option<(u16, u16, &[u8], &[u8])> {
    let short = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let payload = bytes.get(HEADER..length)?;
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((short(4)?, short(6)?, payload, after))
}

/// Inodes of the sockets that a process holds.
///
/// # Errors
/// `NotFound` if there is no such process, `PermissionDenied` if it is another user's.
pub fn sockets_of(process: u32) -> io::Result<BTreeSet<u32>> {
    let mut inodes = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{process}/fd"))? {
        // One that was closed meanwhile is no socket of it any more.
        let Ok(target) = std::fs::read_link(entry?.path()) else { continue };
        let inode: Option<u32> =
            target.to_str().and_then(|it| it.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inodes.extend(inode);
    }
    Ok(inodes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// A request for the TCP sockets over IPv4 that are established.
    fn request(protocol: u8) -> Vec<u8> {
        let mut message = [72u32.to_ne_bytes(), [20, 0, 1, 3]].concat();
        message.extend([0; 8]);
        message.extend([2, protocol, 0, 0, 2, 0, 0, 0]);
        message.extend([0; 40]);
        message.extend([0xff; 8]);
        message
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_connection_of_ours_is_among_the_sockets() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let diag = SockDiag::open().unwrap();
        let port = stream.local_addr().unwrap().port().to_be_bytes();
        let found = diag.dump(&request(6)).unwrap().into_iter().find(|it| it[4..6] == port).unwrap();
        let inode = u32::from_ne_bytes(found[68..72].try_into().unwrap());
        assert!(sockets_of(std::process::id()).unwrap().contains(&inode));
        assert!(diag.dump(&request(201)).is_err(), "there is no such protocol");
        // The socket can be asked again after an error.
        assert!(!diag.dump(&request(6)).unwrap().is_empty());
    }

    #[test]
    fn an_answer_that_is_cut_short_has_no_message() {
        assert!(split(&[]).is_none() && split(&[0; 15]).is_none());
        assert!(split(&[[200, 0, 0, 0], [0; 4], [0; 4], [0; 4]].concat()).is_none());
    }
}
