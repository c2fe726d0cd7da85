//! A client's HTTP request as the proxy sees it: CONNECT (RFC 9110 §9.3.6), or one to be forwarded in absolute form
//! (RFC 9112 §3.2.2).

use super::forward::{Forward, target};
use super::front::{Denial, Host, Request, Step};
use super::settings::Users;
use crate::http::PLAIN;

pub(super) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// A request's head is not longer than this, all its fields counted.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_FIELDS: usize = 100;

/// A request that is not carried out, as it is told to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    /// Status code and its words.
    pub(super) status: &'static str,
    /// Further fields, each with its line end.
    pub(super) fields: &'static str,
    /// The fault, and the right thing.
    pub(super) text: &'static str,
}

/// Destination of a request; of one that is no CONNECT also its head, to be sent there.
pub(super) type Wanted = (Request, Option<Box<Forward>>);

/// The request, if all of its head has arrived.
pub(super) fn request(buffer: &[u8], users: Option<&Users>) -> Step<Wanted> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if buffer.len() < LONGEST_HEAD => return Step::Short,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return refuse(&TOO_LONG),
        Err(httparse::Error::Version) if names_http(buffer) => return refuse(&VERSION),
        Err(_) => return refuse(&MALFORMED),
    };
    if let Some(users) = users
        && !parsed.headers.iter().any(|header| is_authorized(header, users))
    {
        return refuse(&AUTHENTICATE);
    }
    if parsed.method != Some("CONNECT") {
        return match target::read(&parsed).and_then(|target| Ok((Forward::new(&parsed, &target)?, target.request))) {
            Ok((forward, request)) => Step::Done(length, (request, Some(Box::new(forward)))),
            Err(refusal) => refuse(&refusal),
        };
    }
    match parsed.path.and_then(authority) {
        Some(request) => Step::Done(length, (request, None)),
        None => refuse(&NO_DESTINATION),
    }
}

/// True if the third word of the first line is a version of HTTP, as far as it has come.
fn names_http(head: &[u8]) -> bool {
    head.split(|byte| *byte == b' ').nth(2).is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// The answer to a request that comes to nothing.
pub(super) fn denial(why: Denial) -> Refusal {
    let (status, fields, text) = match why {
        Denial::ConnectionRefused => {
            ("502 Bad Gateway", "", "the destination refused the connection, or ended it without an answer")
        }
        Denial::Unreachable => ("502 Bad Gateway", "", "no path leads to the destination"),
        Denial::NoSuchName => (
            "502 Bad Gateway",
            "Proxy-Status: anabranch; error=dns_error\r\n",
            "the name of the destination has no address: look for a slip in it",
        ),
        Denial::TimedOut => ("504 Gateway Timeout", "", "the destination did not answer in time"),
        Denial::NotAllowed => (
            "403 Forbidden",
            "",
            "this proxy does not connect to that destination: whoever runs it can allow it with --to-allow",
        ),
        Denial::Busy => {
            ("503 Service Unavailable", "Retry-After: 1\r\n", "a limit of this proxy is reached: try later")
        }
    };
    Refusal { status, fields, text }
}

/// `HOST:PORT`, the host in brackets if it is an IPv6 address.
fn authority(text: &str) -> Option<Request> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let bare_v6 = host.contains(':') && !host.starts_with('[');
    Host::parse(host).filter(|_| !bare_v6).map(|host| Request { host, port })
}

fn is_authorized(header: &httparse::Header<'_>, users: &Users) -> bool {
    if !header.name.eq_ignore_ascii_case("Proxy-Authorization") {
        return false;
    }
    let Some((scheme, encoded)) = std::str::from_utf8(header.value).ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let Some(decoded) = base64(encoded.trim()).filter(|_| scheme.eq_ignore_ascii_case("Basic")) else { return false };
    let Some(colon) = decoded.iter().position(|byte| *byte == b':') else { return false };
    users.admits(&decoded[..colon], &decoded[colon + 1..])
}

/// RFC 4648 §4.
fn base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|known| *known == byte)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

fn refuse<T>(refusal: &Refusal) -> Step<T> {
    Step::Refuse(refusal.response(false), refusal.text)
}

impl Refusal {
    /// The whole answer, after which the connection ends; the body is left out in answer to HEAD.
    pub(super) fn response(&self, only_head: bool) -> Vec<u8> {
        let Refusal { status, fields, text } = self;
        let body = format!("{status}: {text}\n");
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{fields}Content-Type: {PLAIN}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        (if only_head { head } else { head + &body }).into_bytes()
    }
}

const TOO_LONG: Refusal = Refusal {
    status: "431 Request Header Fields Too Large",
    fields: "",
    text: "the head of the request is too long: accepted are 100 fields and 16 KiB",
};
const VERSION: Refusal =
    Refusal { status: "505 HTTP Version Not Supported", fields: "", text: "accepted are HTTP/1.1 and HTTP/1.0" };
const MALFORMED: Refusal = Refusal { status: "400 Bad Request", fields: "", text: "neither SOCKS5 nor HTTP/1.1" };
const AUTHENTICATE: Refusal = Refusal {
    status: "407 Proxy Authentication Required",
    fields: "Proxy-Authenticate: Basic realm=\"anabranch\", charset=\"UTF-8\"\r\n",
    text: "the user name or the password is missing or wrong: this proxy takes those of --users",
};
const NO_DESTINATION: Refusal = Refusal {
    status: "400 Bad Request",
    fields: "",
    text: "the destination is not HOST:PORT, as in CONNECT example.org:443",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_rfc_4648() {
        for (text, plain) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(base64(text).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(base64("a b"), None);
    }
}
