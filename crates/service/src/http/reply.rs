//! A reply's head, written.

use super::date;
use bytes::Bytes;
use std::fmt::Write;

/// A head under way.
#[derive(Debug)]
pub(crate) struct Reply(String);

impl Reply {
    /// Creates it with the date, which is seconds since 1970.
    pub(crate) fn new(status: u16, now: i64) -> Self {
        let mut reply = Reply(format!("HTTP/1.1 {status} {}\r\n", reason(status)));
        reply.put("Date", &date::format(now)).put("Server", concat!("anabranch/", env!("CARGO_PKG_VERSION")));
        reply
    }

    /// One more field.
    pub(crate) fn put(&mut self, name: &str, value: &str) -> &mut Self {
        // A line end in a value would end the field and allow injection of further ones.
        let value = value.replace(['\r', '\n'], " ");
        write!(self.0, "{name}: {value}\r\n").expect("writing to a String cannot fail");
        self
    }

    /// The head with its empty line and, unless only the head is wanted, the body.
    pub(crate) fn whole(mut self, kind: &str, body: &[u8], keep_alive: bool, only_head: bool) -> Bytes {
        self.put("Content-Type", kind).put("Content-Length", &body.len().to_string());
        let head = self.done(keep_alive);
        if only_head { head } else { [&head[..], body].concat().into() }
    }

    /// The head with its empty line.
    pub(crate) fn done(mut self, keep_alive: bool) -> Bytes {
        self.put("Connection", if keep_alive { "keep-alive" } else { "close" });
        self.0 += "\r\n";
        self.0.into()
    }
}

/// Media type of a text for people.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// Body of a reply that has no other.
pub(crate) fn words(status: u16) -> String {
    let more = match status {
        421 => ": this service is for programs on this machine, which name it localhost, 127.0.0.1 or [::1]",
        _ => "",
    };
    format!("{status} {}{more}\n", reason(status))
}

/// The words behind a status (RFC 9110 §15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
