//! A request's head, read and judged.

use super::body::{BodyError, Framing};
use super::head::{field, fields};

/// A request that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Target as it was sent.
    pub(crate) target: String,
    /// The name that the client has for us, with its port.
    pub(crate) host: Option<String>,
    /// The page that asks, as a browser names it (RFC 6454 §7).
    pub(crate) origin: Option<String>,
    pub(crate) framing: Framing,
    /// The connection may serve another request after this one.
    pub(crate) keep_alive: bool,
    /// The client waits for a word before it sends the body (RFC 9110 §10.1.1).
    pub(crate) expects_continue: bool,
    pub(crate) range: Option<String>,
    pub(crate) if_range: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) if_modified_since: Option<String>,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    /// Known to HTTP, and of no use here.
    Other,
}

/// Fields of one head.
const MAX_FIELDS: usize = 100;
/// Bytes of a target.
const MAX_TARGET: usize = 8 << 10;

/// Reads a whole head.
///
/// # Errors
/// With the status that says what is wrong with it.
pub(crate) fn read(head: &[u8]) -> Result<Request, u16> {
    let mut space = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut space);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(400),
        Err(httparse::Error::TooManyHeaders) => return Err(431),
        Err(httparse::Error::Version) => return Err(if head.starts_with(b"PRI ") { 505 } else { version(head) }),
        Err(_) => return Err(400),
    }
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(400);
    };
    if target.len() > MAX_TARGET {
        return Err(414);
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" | "PATCH" | "OPTIONS" | "TRACE" | "CONNECT" => Method::Other,
        _ => return Err(501),
    };
    let headers = &*parsed.headers;
    let hosts = fields(headers, "host").count();
    if hosts > 1 || (hosts == 0 && minor == 1) {
        return Err(400); // RFC 9112 §3.2.
    }
    let framing = match Framing::of(headers) {
        Ok(Some(Framing::Chunked)) if minor == 0 => return Err(400),
        Ok(framing) => framing.unwrap_or(Framing::Length(0)),
        Err(BodyError::Encoding) => return Err(501),
        Err(_) => return Err(400),
    };
    let expects_continue = match field(headers, "expect") {
        Some(text) if text.eq_ignore_ascii_case("100-continue") => minor == 1,
        Some(_) => return Err(417),
        None => false,
    };
    let text = |name: &str| field(headers, name).map(str::to_owned);
    Ok(Request {
        method,
        target: target.to_owned(),
        // One that is not text names nobody.
        host: (hosts == 1).then(|| text("host").unwrap_or_default()),
        origin: fields(headers, "origin").next().map(|_| text("origin").unwrap_or_default()),
        framing,
        keep_alive: keep_alive(headers, minor),
        expects_continue,
        range: text("range"),
        if_range: text("if-range"),
        if_none_match: text("if-none-match"),
        if_modified_since: text("if-modified-since"),
    })
}

/// Status for a version other than 1.0 or 1.1: 505 if it is HTTP, else 400.
fn version(head: &[u8]) -> u16 {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let last = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    if last.starts_with(b"HTTP/") { 505 } else { 400 }
}

/// Returns true if the connection persists behind this message (RFC 9112 §9.3).
pub(crate) fn keep_alive(headers: &[httparse::Header<'_>], minor: u8) -> bool {
    let words = fields(headers, "connection").flat_map(|value| value.split(|byte| *byte == b','));
    let (mut close, mut keep) = (false, false);
    for word in words.map(<[u8]>::trim_ascii) {
        close |= word.eq_ignore_ascii_case(b"close");
        keep |= word.eq_ignore_ascii_case(b"keep-alive");
    }
    !close && (minor == 1 || keep)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn requests_that_are_understood() {
        let request = read(b"GET /a HTTP/1.1\r\nHost: h\r\nRange: bytes=1-\r\n\r\n").unwrap();
        assert_eq!((request.method, request.target.as_str(), request.keep_alive), (Method::Get, "/a", true));
        assert_eq!((request.range.as_deref(), request.framing), (Some("bytes=1-"), Framing::Length(0)));
        assert!(!read(b"GET / HTTP/1.0\r\n\r\n").unwrap().keep_alive);
        assert!(read(b"GET / HTTP/1.0\r\nConnection: foo, Keep-Alive\r\n\r\n").unwrap().keep_alive);
        assert!(!read(b"HEAD / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, close\r\n\r\n").unwrap().keep_alive);
        let upload = b"PUT /discard HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 9\r\n\r\n";
        let upload = read(upload).unwrap();
        assert_eq!((upload.framing, upload.expects_continue), (Framing::Length(9), true));
    }

    #[test]
    fn requests_that_are_not() {
        let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(MAX_FIELDS));
        let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(MAX_TARGET));
        for (head, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
            ("GET /\r\n\r\n", 400),
            ("GET / FTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
            ("PRI * HTTP/2.0\r\n\r\n", 505),
            ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nExpect: a miracle\r\n\r\n", 417),
            (many.as_str(), 431),
            (long.as_str(), 414),
        ] {
            assert_eq!(read(head.as_bytes()), Err(status), "{}", &head[..head.len().min(60)]);
        }
    }
}
