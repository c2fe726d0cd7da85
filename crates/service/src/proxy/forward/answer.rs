//! The answer of an origin, as the client gets it.

use super::head::HeadWriter;
use super::{Asked, LAST_CHUNK, chunk};
use crate::http::{BodyReader, Found, Framing, Head};
use bytes::Bytes;

/// An answer under way.
pub(super) struct Answer {
    asked: Asked,
    state: State,
    /// Interim answers so far.
    interim: u32,
}

enum State {
    /// A head is next.
    Head(Head),
    /// Body under way; in `chunks` if it goes on so.
    Body { body: BodyReader, chunks: bool, keep: bool },
    /// The whole answer was passed on; the client may send another request if `keep`.
    Done { keep: bool },
}

/// An answer's head is not longer than this.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_FIELDS: usize = 200;
/// Interim answers (RFC 9110 §15.2) to one request.
const MOST_INTERIM: u32 = 100;

impl Answer {
    pub(super) fn new(asked: Asked) -> Self {
        Answer { asked, state: State::Head(Head::default()), interim: 0 }
    }

    /// The origin has sent `bytes`. What it sends behind its answer is dropped.
    ///
    /// # Errors
    /// With the fault of an answer that cannot be passed on.
    pub(super) fn push(&mut self, mut input: Bytes, out: &mut Vec<Bytes>) -> Result<(), &'static str> {
        if let State::Head(head) = &mut self.state {
            head.push(&std::mem::take(&mut input));
        }
        while let State::Head(head) = &mut self.state {
            let whole = match head.take(LONGEST_HEAD) {
                Found::Whole(whole) => whole,
                Found::Partial => return Ok(()),
                Found::TooLong => return Err("the head of the destination's answer is too long"),
            };
            if let Some(next) = self.read_head(&whole, out)? {
                if let State::Head(head) = &mut self.state {
                    input = head.rest().split().freeze();
                }
                self.state = next;
            }
        }
        self.read_body(&mut input, out)
    }

    /// Passes a whole head on; the state behind it unless it is interim.
    fn read_head(&mut self, head: &[u8], out: &mut Vec<Bytes>) -> Result<Option<State>, &'static str> {
        let mut space = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut parsed = httparse::Response::new(&mut space);
        if !matches!(parsed.parse(head), Ok(httparse::Status::Complete(_))) {
            return Err("the destination's answer is not HTTP/1.1");
        }
        let (Some(code), Some(minor)) = (parsed.code, parsed.version) else {
            return Err("the destination's answer is not HTTP/1.1");
        };
        let headers = &*parsed.headers;
        let mut head = HeadWriter::new(&format!("HTTP/1.1 {code:03} {}", parsed.reason.unwrap_or_default()));
        head.put_all(headers, "", minor);
        if (100..200).contains(&code) {
            self.interim += 1;
            if code == 101 || self.interim > MOST_INTERIM {
                // An upgrade that nobody asked for: the field Upgrade is not sent on.
                return Err("the destination's answer is an interim one too many");
            }
            if !self.asked.is_old {
                out.push(head.done().into());
            }
            return Ok(None);
        }
        let framing = match Framing::of(headers) {
            Ok(Some(Framing::Chunked)) if minor == 0 => return Err("the destination's answer has two framings"),
            Ok(framing) => framing,
            Err(_) => return Err("the length of the destination's answer can be read in two ways"),
        };
        let is_bare = self.asked.only_head || code == 204 || code == 304;
        // The length of a body that is not there tells of the one that GET would get (RFC 9110 §8.6).
        if let Some(Framing::Length(length)) = framing.filter(|_| code != 204) {
            head.put("Content-Length", length.to_string().as_bytes());
        }
        let framing = if is_bare { Framing::Length(0) } else { framing.unwrap_or(Framing::Close) };
        let chunks = framing == Framing::Chunked && !self.asked.is_old;
        if chunks {
            head.put("Transfer-Encoding", b"chunked");
        }
        let keep = self.asked.keep_alive && framing != Framing::Close;
        if !keep {
            head.put("Connection", b"close");
        }
        out.push(head.done().into());
        Ok(Some(State::Body { body: BodyReader::new(framing), chunks, keep }))
    }

    fn read_body(&mut self, input: &mut Bytes, out: &mut Vec<Bytes>) -> Result<(), &'static str> {
        let State::Body { body, chunks, keep } = &mut self.state else { return Ok(()) };
        while let Some(piece) = body.next(input).map_err(|_| "a chunk of the destination's answer is malformed")? {
            if *chunks {
                out.extend(chunk(piece));
            } else {
                out.push(piece);
            }
        }
        if body.is_done() {
            if *chunks {
                out.push(Bytes::from_static(LAST_CHUNK));
            }
            self.state = State::Done { keep: *keep };
        }
        Ok(())
    }

    /// The origin sends nothing more; true if the answer is whole. One that is as long as the connection is not, if
    /// that broke off.
    pub(super) fn end(&mut self, orderly: bool) -> bool {
        if let State::Body { body, keep, .. } = &mut self.state
            && orderly
            && body.end()
        {
            self.state = State::Done { keep: *keep };
        }
        self.is_done()
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    pub(super) fn is_silent(&self) -> bool {
        matches!(self.state, State::Head(_))
    }

    pub(super) fn keeps_client(&self) -> bool {
        matches!(self.state, State::Done { keep: true })
    }

    pub(super) fn held(&self) -> usize {
        if let State::Head(head) = &self.state { head.held() } else { 0 }
    }
}
