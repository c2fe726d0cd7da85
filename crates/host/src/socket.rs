//! Kernel sockets: facts that no safe library tells.

use std::os::fd::AsFd;

/// Returns how many bytes written to a TCP socket its peer has not acknowledged: those that a close with a RST would
/// take back, or overtake. 0 where the system does not say.
pub fn unacknowledged(socket: &impl AsFd) -> usize {
    crate::sys::queued_output(socket.as_fd()).ok().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// A peer whose receive buffer is full acknowledges no more than that.
    #[test]
    fn what_a_full_peer_has_not_taken_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let mut socket = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (_deaf, _) = listener.accept().expect("a connection waits");
        assert_eq!(unacknowledged(&socket), 0);
        socket.set_nonblocking(true).expect("sockets can be");
        let piece = vec![0; 1 << 20];
        while socket.write(&piece).is_ok() {}
        assert!(unacknowledged(&socket) > 0);
    }
}
