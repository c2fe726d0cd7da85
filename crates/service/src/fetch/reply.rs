//! The reply: an HTTP head, or several, and a body; or just bytes.

use super::FetchError;
use crate::http::{BodyReader, Found, Framing, Head, content_range, field, with_buffer};
use bytes::Bytes;
use std::ops::Range;

/// A reply as it arrives.
#[derive(Debug)]
pub(super) struct Reply {
    head: Head,
    /// Reader of the body of the final head, once that has arrived.
    body: Option<BodyReader>,
    /// Interim replies so far.
    interim: u32,
}

/// Result of parsing a piece of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Incomplete, or an interim reply.
    More,
    /// The final head.
    Head { status: u16, location: Option<String>, range: Option<Range<u64>>, expected: Option<u64> },
    /// Bytes of the body.
    Body(Bytes),
}

/// Bytes of a head.
const MAX_HEAD: usize = 64 << 10;
/// Fields of a head.
const MAX_FIELDS: usize = 200;
/// Interim replies (1xx) before the final one.
const MAX_INTERIM: u32 = 16;

impl Reply {
    pub(super) fn http() -> Self {
        Reply { head: Head::default(), body: None, interim: 0 }
    }

    /// Everything up to the end of the stream.
    pub(super) fn plain() -> Self {
        Reply { head: Head::default(), body: Some(BodyReader::new(Framing::Close)), interim: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.body.as_ref().is_some_and(BodyReader::is_done)
    }

    /// True if only the end of the stream ends the reply.
    pub(super) fn lasts_until_close(&self) -> bool {
        self.body.as_ref().is_some_and(BodyReader::lasts_until_close)
    }

    /// The stream has ended.
    pub(super) fn end(&mut self) -> Result<(), FetchError> {
        match self.body.as_mut().map(BodyReader::end) {
            Some(true) => Ok(()),
            Some(false) => Err(FetchError::Short),
            None if self.head.is_empty() => {
                Err(FetchError::NotHttp("the peer closed the connection without a reply".into()))
            }
            None => Err(FetchError::Short),
        }
    }

    /// Reads on in `input`, which holds the rest then. What lies behind the body stays there.
    pub(super) fn read(&mut self, input: &mut Bytes) -> Result<Step, FetchError> {
        let malformed = |what: &dyn std::fmt::Display| FetchError::NotHttp(what.to_string());
        if let Some(body) = &mut self.body {
            return match body.next(input).map_err(|error| malformed(&error))? {
                Some(piece) => Ok(Step::Body(piece)),
                None => Ok(Step::More),
            };
        }
        self.head.push(input);
        input.clear();
        let head = match self.head.take(MAX_HEAD) {
            Found::Whole(head) => head,
            Found::Partial if self.head.is_hopeless() => {
                return Err(malformed(&"it does not begin with an HTTP version"));
            }
            Found::Partial => return Ok(Step::More),
            Found::TooLong => return Err(malformed(&"its head is too long")),
        };
        // The bytes behind the head are read next.
        *input = with_buffer(self.head.rest(), std::mem::take);
        let mut space = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut parsed = httparse::Response::new(&mut space);
        match parsed.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(malformed(&"its head is malformed")),
            Err(error) => return Err(malformed(&error)),
        }
        let status = parsed.code.ok_or_else(|| malformed(&"it has no status code"))?;
        match status {
            101 => return Err(malformed(&"it switches to another protocol, which was not requested")),
            100..200 => {
                self.interim += 1;
                let endless = self.interim > MAX_INTERIM;
                return if endless {
                    Err(malformed(&"more interim replies than are accepted"))
                } else {
                    Ok(Step::More)
                };
            }
            200..600 => {}
            other => return Err(malformed(&format!("status {other}"))),
        }
        let headers = &*parsed.headers;
        let framing = match status {
            204 | 304 => Framing::Length(0),
            _ => Framing::of(headers).map_err(|error| malformed(&error))?.unwrap_or(Framing::Close),
        };
        self.body = Some(BodyReader::new(framing));
        let expected = if let Framing::Length(length) = framing { Some(length) } else { None };
        let range = field(headers, "content-range").and_then(content_range).map(|(range, _)| range);
        let location = field(headers, "location").map(str::to_owned);
        Ok(Step::Head { status, location, range, expected })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Status and body of a reply that comes in pieces of this size and then ends.
    fn read(text: &[u8], size: usize) -> Result<(u16, Vec<u8>), FetchError> {
        let (mut reply, mut status, mut body) = (Reply::http(), 0, Vec::new());
        for piece in text.chunks(size) {
            let mut input = Bytes::copy_from_slice(piece);
            while !input.is_empty() && !reply.is_done() {
                match reply.read(&mut input)? {
                    Step::More => {}
                    Step::Head { status: code, .. } => status = code,
                    Step::Body(piece) => body.extend_from_slice(&piece),
                }
            }
        }
        reply.end()?;
        Ok((status, body))
    }

    fn shown(text: &[u8]) -> String {
        String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned()
    }

    #[test]
    fn replies_however_they_are_cut() {
        let chunked =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
        for (text, status, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyrest", 200, "body"),
            (chunked, 200, "body"),
            ("HTTP/1.0 200 OK\r\n\r\nbody", 200, "body"),
            ("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", 404, ""),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304, ""),
        ] {
            for size in 1..text.len() {
                assert_eq!(read(text.as_bytes(), size).unwrap(), (status, body.into()), "{text} in {size}");
            }
        }
    }

    #[test]
    fn a_body_that_ends_early_is_no_body() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n",
            "HTTP/1.1 200 OK\r\nContent-Le",
        ] {
            assert!(matches!(read(text.as_bytes(), 7), Err(FetchError::Short)), "{text}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(MAX_HEAD));
        let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(20);
        for text in [
            "",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "\x16\x03\x01",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 999 Odd\r\n\r\n",
            "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            &long,
            &many,
        ] {
            let said = read(text.as_bytes(), 1000);
            assert!(matches!(said, Err(FetchError::NotHttp(_))), "{}: {said:?}", shown(text.as_bytes()));
        }
    }
}
