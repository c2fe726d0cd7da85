//! Request of a client before its stream begins: SOCKS5, HTTP CONNECT or HTTP to be forwarded, told apart by the first
//! bytes.
//!
//! Bytes in, bytes and a request out, without sockets. The state kept is bounded, whatever a client sends.

use super::forward::Forward;
use super::http::Refusal;
use super::settings::Users;
use super::{http, socks};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Destination requested by a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The destination.
    pub host: Host,
    /// Its port; never 0.
    pub port: u16,
}

/// A destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// Name to be looked up; letters, digits, hyphens, underscores and dots only.
    Name(String),
    /// Literal address.
    Address(IpAddr),
}

impl Host {
    /// An address, with or without brackets, or a name; `None` if it can be neither.
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Host::Address(address.to_canonical()));
        }
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let fits = (1..=253).contains(&text.len()) && text.bytes().all(legal) && !text.starts_with(['-', '.']);
        fits.then(|| Host::Name(text.to_owned()))
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => write!(f, "{}", SocketAddr::new(*address, self.port)),
        }
    }
}

/// Progress of the negotiation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More is to come.
    More,
    /// Request complete; `Front::grant` or `Front::deny` is due.
    Asked(Request),
    /// Request refused, for this reason; a reply may be waiting.
    Refused(&'static str),
}

/// Why a request fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Denial {
    /// The destination answered with a RST.
    ConnectionRefused,
    /// The destination did not answer in time.
    TimedOut,
    /// No address of ours is of the destination's family.
    Unreachable,
    /// The name has no address.
    NoSuchName,
    /// The destination is not one that may be connected to.
    NotAllowed,
    /// A limit is reached; later it may work.
    Busy,
}

/// One client's handshake.
pub struct Front {
    state: State,
    buffer: Vec<u8>,
    users: Option<Arc<Users>>,
    reply: Vec<u8>,
    /// The request to be sent to the destination; `None` if a stream was asked for.
    forward: Option<Box<Forward>>,
    /// The client was answered before.
    again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No bytes yet.
    New,
    Socks(socks::Stage),
    Http,
    /// The request is known; what has arrived after it is the stream.
    Asked(Dialect),
    Refused,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Socks,
    Http,
}

/// Result of one step over the buffer.
pub(super) enum Step<T> {
    /// More bytes are needed.
    Short,
    /// Value of this many bytes.
    Done(usize, T),
    /// Reply and reason of a refusal.
    Refuse(Vec<u8>, &'static str),
}

impl Front {
    /// A client that has said nothing yet. With `users` it must be one of them.
    pub fn new(users: Option<Arc<Users>>) -> Self {
        Front { state: State::New, buffer: Vec::new(), users, reply: Vec::new(), forward: None, again: false }
    }

    /// The same for a client that may send another HTTP request, of which `behind` has come.
    pub(super) fn again(users: Option<Arc<Users>>, behind: &[u8]) -> Self {
        Front { state: State::Http, buffer: behind.to_vec(), again: true, ..Front::new(users) }
    }

    /// True if the client was answered and has asked for nothing more.
    pub(super) fn is_between(&self) -> bool {
        self.again && self.state == State::Http && self.buffer.is_empty()
    }

    /// The client has sent this.
    pub fn receive(&mut self, bytes: &[u8]) -> Progress {
        self.buffer.extend_from_slice(bytes);
        loop {
            let Some(&first) = self.buffer.first() else { return Progress::More };
            let users = self.users.as_deref();
            match self.state {
                State::New => match first {
                    socks::VERSION => self.state = State::Socks(socks::Stage::Greeting),
                    b'A'..=b'Z' | b'a'..=b'z' => self.state = State::Http,
                    4 => return self.refuse(socks::VERSION_4_REJECTED.to_vec(), "SOCKS4, which is not served"),
                    _ => return self.refuse(Vec::new(), "neither SOCKS5 nor HTTP"),
                },
                State::Socks(socks::Stage::Greeting) => match socks::greeting(&self.buffer, users.is_some()) {
                    Step::Short => return Progress::More,
                    Step::Done(length, (reply, stage)) => {
                        self.consume(length);
                        self.reply.extend_from_slice(&reply);
                        self.state = State::Socks(stage);
                    }
                    Step::Refuse(reply, why) => return self.refuse(reply, why),
                },
                State::Socks(socks::Stage::Password) => match socks::password(&self.buffer, users) {
                    Step::Short => return Progress::More,
                    Step::Done(length, reply) => {
                        self.consume(length);
                        self.reply.extend_from_slice(&reply);
                        self.state = State::Socks(socks::Stage::Request);
                    }
                    Step::Refuse(reply, why) => return self.refuse(reply, why),
                },
                State::Socks(socks::Stage::Request) => match socks::request(&self.buffer) {
                    Step::Short => return Progress::More,
                    Step::Done(length, request) => return self.asked(length, request, Dialect::Socks),
                    Step::Refuse(reply, why) => return self.refuse(reply, why),
                },
                // Line ends before a request are none of it (RFC 9112 §2.2).
                State::Http if matches!(first, b'\r' | b'\n') => self.consume(1),
                State::Http => match http::request(&self.buffer, users) {
                    Step::Short => return Progress::More,
                    Step::Done(length, (request, forward)) => {
                        self.forward = forward;
                        return self.asked(length, request, Dialect::Http);
                    }
                    Step::Refuse(reply, why) => return self.refuse(reply, why),
                },
                State::Asked(_) | State::Refused => return Progress::More,
            }
        }
    }

    /// The destination is connected, from `bound` of ours.
    pub(super) fn grant(&mut self, bound: SocketAddr) {
        match self.state {
            State::Asked(Dialect::Socks) => self.reply.extend_from_slice(&socks::reply(socks::SUCCEEDED, Some(bound))),
            State::Asked(Dialect::Http) if self.forward.is_none() => self.reply.extend_from_slice(http::ESTABLISHED),
            _ => {}
        }
    }

    /// Denies the request.
    pub(super) fn deny(&mut self, why: Denial) {
        match self.state {
            State::Asked(Dialect::Socks) => self.reply.extend_from_slice(&socks::reply(socks::code(why), None)),
            State::Asked(Dialect::Http) => {
                let refusal: Refusal = http::denial(why);
                let forward = self.forward.as_ref();
                let reply = forward.map_or_else(|| refusal.response(false), |forward| forward.refuse(&refusal));
                self.reply.extend_from_slice(&reply);
            }
            _ => {}
        }
        self.state = State::Refused;
    }

    /// Takes the bytes to send to the client.
    pub fn take_reply(&mut self) -> Bytes {
        std::mem::take(&mut self.reply).into()
    }

    /// Takes the request that is to be sent to the destination, if it is one.
    pub(super) fn take_forward(&mut self) -> Option<Box<Forward>> {
        self.forward.take()
    }

    /// Takes the bytes that the client sent after its request.
    pub fn take_rest(&mut self) -> Bytes {
        std::mem::take(&mut self.buffer).into()
    }

    fn consume(&mut self, length: usize) {
        self.buffer.drain(..length);
    }

    fn asked(&mut self, length: usize, request: Request, dialect: Dialect) -> Progress {
        self.consume(length);
        self.state = State::Asked(dialect);
        Progress::Asked(request)
    }

    fn refuse(&mut self, reply: Vec<u8>, why: &'static str) -> Progress {
        self.reply.extend_from_slice(&reply);
        self.buffer = Vec::new();
        self.state = State::Refused;
        Progress::Refused(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Option<Arc<Users>> {
        Some(Arc::new(Users::parse("anna:secret").expect("well written")))
    }

    fn name(name: &str, port: u16) -> Progress {
        Progress::Asked(Request { host: Host::Name(name.into()), port })
    }

    /// The bytes in one piece and one by one come to the same.
    fn run(users: Option<Arc<Users>>, bytes: &[u8]) -> (Progress, Bytes, Bytes) {
        let mut whole = Front::new(users.clone());
        let progress = whole.receive(bytes);
        let mut apart = Front::new(users);
        let mut last = Progress::More;
        for byte in bytes {
            match apart.receive(&[*byte]) {
                Progress::More => {}
                progress => last = progress,
            }
        }
        assert_eq!(progress, last);
        let (reply, rest) = (whole.take_reply(), whole.take_rest());
        assert_eq!(reply, apart.take_reply());
        (progress, reply, rest)
    }

    #[test]
    fn socks_without_authentication() {
        let hello = b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x01\xbbdata".as_slice();
        let (progress, reply, rest) = run(None, hello);
        assert_eq!((progress, &reply[..], &rest[..]), (name("example.org", 443), &b"\x05\x00"[..], &b"data"[..]));
        let six = [b"\x05\x02\x02\x00\x05\x01\x00\x04".as_slice(), &[0; 15], b"\x01\x00\x50"].concat();
        let address = Host::Address("::1".parse().expect("an address"));
        assert_eq!(run(None, &six).0, Progress::Asked(Request { host: address, port: 80 }));
        let (progress, reply, _) = run(None, b"\x05\x01\x02");
        assert!(matches!(progress, Progress::Refused(_)), "{progress:?}");
        assert_eq!(&reply[..], b"\x05\xff");
        let (_, reply, _) = run(None, b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50");
        assert_eq!(reply[2..4], [5, 7], "BIND is not served");
        let (_, reply, _) = run(None, b"\x05\x01\x00\x05\x01\x00\x09");
        assert_eq!(reply[2..4], [5, 8], "no such address type");
    }

    #[test]
    fn socks_with_a_password() {
        let (progress, reply, _) =
            run(users(), b"\x05\x02\x00\x02\x01\x04anna\x06secret\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50");
        assert_eq!(&reply[..], b"\x05\x02\x01\x00");
        assert!(matches!(progress, Progress::Asked(Request { host: Host::Address(_), port: 80 })), "{progress:?}");
        let (progress, reply, _) = run(users(), b"\x05\x01\x02\x01\x04anna\x05wrong");
        assert_eq!((&reply[..], matches!(progress, Progress::Refused(_))), (&b"\x05\x02\x01\x01"[..], true));
        assert_eq!(&run(users(), b"\x05\x01\x00").1[..], b"\x05\xff", "nobody gets in without");
    }

    #[test]
    fn http_connect() {
        let (progress, reply, rest) = run(None, b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03");
        assert_eq!((progress, reply.len(), &rest[..]), (name("example.org", 443), 0, &b"\x16\x03"[..]));
        let (progress, ..) = run(None, b"CONNECT [2001:db8::1]:80 HTTP/1.1\r\n\r\n");
        assert!(matches!(progress, Progress::Asked(Request { host: Host::Address(_), port: 80 })), "{progress:?}");
        for (request, status) in [
            (&b"CONNECT example.org HTTP/1.1\r\n\r\n"[..], "400"),
            (b"CONNECT example.org:0 HTTP/1.1\r\n\r\n", "400"),
            (b"CONNECT exa mple:1 HTTP/1.1\r\n\r\n", "400"),
        ] {
            let (progress, reply, _) = run(None, request);
            assert!(matches!(progress, Progress::Refused(_)), "{progress:?}");
            assert!(reply.starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{reply:?}");
        }
        // base64("anna:secret")
        let (progress, ..) =
            run(users(), b"CONNECT h:1 HTTP/1.1\r\nProxy-Authorization: basic YW5uYTpzZWNyZXQ=\r\n\r\n");
        assert_eq!(progress, name("h", 1));
        let (_, reply, _) = run(users(), b"CONNECT h:1 HTTP/1.1\r\nProxy-Authorization: Basic YW5uYTp4\r\n\r\n");
        assert!(reply.starts_with(b"HTTP/1.1 407 "), "{reply:?}");
    }

    #[test]
    fn a_request_that_never_ends_is_not_kept() {
        let mut front = Front::new(None);
        let mut fed = 0;
        let refused = loop {
            if let Progress::Refused(why) = front.receive(b"CONNECTCONNECT") {
                break why;
            }
            fed += 14;
            assert!(fed < 100_000, "the bound is somewhere");
        };
        assert!(!refused.is_empty() && front.buffer.is_empty());
    }

    #[test]
    fn other_protocols_are_sent_away() {
        assert_eq!(run(None, b"\x04\x01\x00\x50\x01\x02\x03\x04\x00").1[..2], [0, 0x5b]);
        assert!(matches!(run(None, b"\x16\x03\x01").0, Progress::Refused(_)), "TLS");
    }
}
