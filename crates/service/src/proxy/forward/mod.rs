//! Plain HTTP through the proxy (RFC 9112 §3.2.2): a request goes to the origin that its target names, and what comes
//! back goes to the client.
//!
//! Heads are written anew, and so are chunks, so that both ends see the same messages whatever a sender meant; a
//! request that could be read in two ways is refused (RFC 9112 §11.2). Each request has a connection to its origin of
//! its own, which ends with the answer. The client's connection persists; its next request is read once the answer
//! before is through, so pipelined requests are served in turn.

mod answer;
mod head;
pub(super) mod target;

use super::http::Refusal;
use crate::http::{BodyError, BodyReader, Framing, fields, keep_alive};
use answer::Answer;
use bytes::Bytes;
use head::{HeadWriter, words};
use target::Target;

/// A request to be sent to an origin.
pub(super) struct Forward {
    /// Head as the origin gets it.
    head: Vec<u8>,
    body: Framing,
    asked: Asked,
}

/// Properties of a request on which its answer depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    /// HEAD: the answer has no body.
    only_head: bool,
    /// The client speaks HTTP/1.0, which has neither chunks nor interim answers.
    is_old: bool,
    /// The client may send another request.
    keep_alive: bool,
}

impl Forward {
    /// Writes the head for the origin.
    pub(super) fn new(parsed: &httparse::Request<'_, '_>, target: &Target) -> Result<Self, Refusal> {
        let (method, minor) = (parsed.method.unwrap_or_default(), parsed.version.unwrap_or(1));
        let headers = &*parsed.headers;
        if method == "TRACE" {
            return Err(NO_TRACE);
        }
        let hosts = fields(headers, "host").count();
        if hosts > 1 || (hosts == 0 && minor == 1) {
            return Err(bad("a request has one field Host"));
        }
        let body = match Framing::of(headers) {
            _ if fields(headers, "content-length").count() > 1 || words(headers, "content-length").count() > 1 => {
                return Err(bad("Content-Length is given more than once"));
            }
            Ok(Some(Framing::Chunked)) if minor == 0 => return Err(bad("HTTP/1.0 has no Transfer-Encoding")),
            Ok(framing) => framing,
            Err(error) => return Err(refusal_of(error)),
        };
        let mut head = HeadWriter::new(&format!("{method} {} HTTP/1.1", target.path));
        // Host first (RFC 9110 §7.2): that of the target, whatever the client's field says (RFC 9112 §3.2.2).
        head.put("Host", target.host.as_bytes()).put_all(headers, "host", minor);
        match body {
            Some(Framing::Chunked) => _ = head.put("Transfer-Encoding", b"chunked"),
            Some(Framing::Length(length)) => _ = head.put("Content-Length", length.to_string().as_bytes()),
            Some(Framing::Close) | None => {}
        }
        head.put("Connection", b"close");
        let closes = words(headers, "proxy-connection").any(|word| word.eq_ignore_ascii_case(b"close"));
        let asked = Asked {
            only_head: method == "HEAD",
            is_old: minor == 0,
            keep_alive: minor == 1 && !closes && keep_alive(headers, minor),
        };
        Ok(Forward { head: head.done(), body: body.unwrap_or(Framing::Length(0)), asked })
    }

    /// The answer to a request that does not get to its origin.
    pub(super) fn refuse(&self, refusal: &Refusal) -> Vec<u8> {
        refusal.response(self.asked.only_head)
    }
}

/// A request on its way to the origin, and the answer on its way back.
pub(super) struct Exchange {
    asked: Asked,
    body: BodyReader,
    /// The body goes on in chunks.
    chunked: bool,
    /// All of the request has gone on.
    sent: bool,
    /// Bytes of the client behind the request.
    behind: Bytes,
    answer: Answer,
    fault: Option<Refusal>,
}

impl Exchange {
    /// Begins with `behind`, which the client sent right behind the head. Returns the exchange and the bytes for the
    /// origin.
    pub(super) fn begin(forward: Forward, behind: Bytes) -> (Self, Bytes) {
        let Forward { mut head, body, asked } = forward;
        let mut exchange = Exchange {
            asked,
            body: BodyReader::new(body),
            chunked: body == Framing::Chunked,
            sent: false,
            behind: Bytes::new(),
            answer: Answer::new(asked),
            fault: None,
        };
        head.extend_from_slice(&exchange.take_request(behind));
        (exchange, head.into())
    }

    /// The client has sent this; returns the bytes for the origin. Nothing must come once all is sent.
    pub(super) fn take_request(&mut self, mut bytes: Bytes) -> Bytes {
        let mut out = Vec::new();
        loop {
            match self.body.next(&mut bytes) {
                Ok(Some(piece)) if self.chunked => chunk(piece).iter().for_each(|part| out.extend_from_slice(part)),
                // The usual case: a piece of a body whose length is known goes on as it is.
                Ok(Some(piece)) if bytes.is_empty() && out.is_empty() && !self.body.is_done() => return piece,
                Ok(Some(piece)) => out.extend_from_slice(&piece),
                Ok(None) => break,
                Err(_) => {
                    self.fault = Some(bad("a chunk of the body is malformed"));
                    return Bytes::new();
                }
            }
        }
        if self.body.is_done() && !self.sent {
            self.sent = true;
            if self.chunked {
                out.extend_from_slice(LAST_CHUNK);
            }
        }
        self.behind = bytes;
        out.into()
    }

    /// The origin has sent this; the bytes for the client go to `out`.
    pub(super) fn take_answer(&mut self, bytes: Bytes, out: &mut Vec<Bytes>) {
        if self.fault.is_none()
            && let Err(text) = self.answer.push(bytes, out)
        {
            self.fault = Some(Refusal { status: "502 Bad Gateway", fields: "", text });
        }
    }

    /// The origin sends nothing more; `orderly` unless it broke off.
    pub(super) fn origin_ended(&mut self, orderly: bool) {
        if self.fault.is_none() && !self.answer.end(orderly) {
            let text = "the destination ended the connection before its answer was whole";
            self.fault = Some(Refusal { status: "502 Bad Gateway", fields: "", text });
        }
    }

    /// True if all of the request has been taken from the client.
    pub(super) fn is_sent(&self) -> bool {
        self.sent
    }

    /// True if the whole answer has been passed on.
    pub(super) fn is_answered(&self) -> bool {
        self.answer.is_done()
    }

    /// True while the client has got nothing of the final answer.
    pub(super) fn is_silent(&self) -> bool {
        self.answer.is_silent()
    }

    /// The fault of either end, if there was one.
    pub(super) fn fault(&self) -> Option<Refusal> {
        self.fault
    }

    /// Answers with `refusal` in place of the origin.
    pub(super) fn refuse(&self, refusal: &Refusal) -> Vec<u8> {
        refusal.response(self.asked.only_head)
    }

    /// Bytes that the client sent behind its request, if its connection goes on behind the answer.
    pub(super) fn take_behind(&mut self) -> Option<Bytes> {
        (self.sent && self.answer.keeps_client()).then(|| std::mem::take(&mut self.behind))
    }

    /// Bytes held here.
    pub(super) fn held(&self) -> usize {
        self.behind.len() + self.answer.held()
    }
}

/// The chunk that ends a body (RFC 9112 §7.1); trailers are dropped, as a recipient may (RFC 9110 §6.5.1).
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The parts of `piece` as a chunk.
fn chunk(piece: Bytes) -> [Bytes; 3] {
    [format!("{:x}\r\n", piece.len()).into(), piece, Bytes::from_static(b"\r\n")]
}

fn bad(text: &'static str) -> Refusal {
    Refusal { status: "400 Bad Request", fields: "", text }
}

fn refusal_of(error: BodyError) -> Refusal {
    match error {
        BodyError::Length => bad("Content-Length is no number"),
        BodyError::Both => bad("both Content-Length and Transfer-Encoding are given"),
        BodyError::Chunk => bad("a chunk of the body is malformed"),
        BodyError::Encoding => Refusal {
            status: "501 Not Implemented",
            fields: "",
            text: "the only Transfer-Encoding that is forwarded is chunked",
        },
    }
}

/// TRACE would show credentials that others added on the way.
const NO_TRACE: Refusal = Refusal {
    status: "405 Method Not Allowed",
    fields: "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT\r\n",
    text: "TRACE is not forwarded; all other methods are, and CONNECT opens a tunnel",
};

#[cfg(test)]
mod tests;
