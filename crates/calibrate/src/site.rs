//! The server of a page: answers at once, over HTTP/1.1 request by request, over HTTP/2 frame by frame in turn.
//!
//! Requests and answers are as long as the simulator's. What a request is for stands in its bytes: with HTTP/1.1 in the
//! first four, with HTTP/2 in the stream's number.

use crate::end::{End, Next};
use crate::transfer::TransferError;
use anabranch_sim::page::{Object, Page, Protocol, Work, http2};
use anabranch_wire::pattern;
use bytes::Bytes as Payload;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// The server of a page.
pub(crate) struct Site {
    page: Arc<Page>,
    protocol: Protocol,
    connections: Vec<Serving>,
}

/// One of its connections.
#[derive(Default)]
struct Serving {
    /// Bytes received that do not form a whole request yet.
    came: Vec<u8>,
    /// The client's preface and SETTINGS have come.
    greeted: bool,
    /// SETTINGS of its own, and the acknowledgment of the client's, are still to be written.
    greeting: bool,
    /// Answers that were not written to their ends, the next one first.
    answers: VecDeque<Answer>,
    /// Written in all.
    written: u64,
}

struct Answer {
    activity: usize,
    object: Object,
    /// Its header has been written.
    begun: bool,
    /// Bytes of the body that were written.
    written: u64,
}

impl Site {
    pub(crate) fn new(page: &Arc<Page>, protocol: Protocol) -> Self {
        Site { page: Arc::clone(page), protocol, connections: Vec::new() }
    }
}

/// The object of an activity.
fn object(page: &Page, activity: usize) -> Result<Object, TransferError> {
    match page.activities.get(activity).map(|activity| activity.work) {
        Some(Work::Download(object)) => Ok(object),
        _ => Err(TransferError::System(io::Error::other(format!("activity {activity} of the page has no object")))),
    }
}

impl Serving {
    /// Takes the next whole request from what came; the activity that it is for.
    fn take_request(&mut self, page: &Page, protocol: Protocol) -> Result<Option<usize>, TransferError> {
        let (length, activity) = match protocol {
            Protocol::Http1 { .. } => {
                let Some(number) = self.came.first_chunk::<INDEX>() else { return Ok(None) };
                let activity = u32::from_be_bytes(*number) as usize;
                (object(page, activity)?.request.get(), activity)
            }
            Protocol::Http2 => {
                let Some(head) = self.came.first_chunk::<{ http2::FRAME as usize }>() else { return Ok(None) };
                let head = Head::read(head);
                (http2::FRAME + head.length, head.activity())
            }
        };
        if (self.came.len() as u64) < length {
            return Ok(None);
        }
        self.came.drain(..length as usize);
        Ok(Some(activity))
    }

    /// The next bytes of the answers.
    fn piece(&mut self, protocol: Protocol) -> Option<Payload> {
        if std::mem::take(&mut self.greeting) {
            let settings = Head { length: http2::SETTINGS - http2::FRAME, kind: Kind::Settings, stream: 0 };
            let acknowledgment = Head { length: 0, ..settings };
            return Some([self.frame(settings), self.frame(acknowledgment)].concat().into());
        }
        let mut answer = self.answers.pop_front()?;
        let left = answer.object.size.get() - answer.written;
        let piece: Payload = match (protocol, answer.begun) {
            (Protocol::Http1 { .. }, false) => self.stream(answer.object.header.get()).into(),
            (Protocol::Http1 { .. }, true) => {
                let piece = pattern::slice(self.written, left);
                self.written += piece.len() as u64;
                piece
            }
            (Protocol::Http2, false) => {
                let length = http2::response_block(&answer.object);
                self.frame(Head::of(answer.activity, Kind::Headers, length)).into()
            }
            (Protocol::Http2, true) => {
                self.frame(Head::of(answer.activity, Kind::Data, left.min(http2::MAX_FRAME))).into()
            }
        };
        if answer.begun {
            let head = if protocol == Protocol::Http2 { http2::FRAME } else { 0 };
            answer.written += piece.len() as u64 - head;
        }
        answer.begun = true;
        if answer.written < answer.object.size.get() {
            match protocol {
                Protocol::Http1 { .. } => self.answers.push_front(answer),
                Protocol::Http2 => self.answers.push_back(answer),
            }
        }
        Some(piece)
    }

    /// A frame whose payload is that of the stream at its place.
    fn frame(&mut self, head: Head) -> Vec<u8> {
        let mut frame = head.bytes().to_vec();
        self.written += http2::FRAME;
        frame.extend_from_slice(&self.stream(head.length));
        frame
    }

    /// The next bytes of the stream.
    fn stream(&mut self, length: u64) -> Vec<u8> {
        let (mut bytes, end) = (Vec::new(), self.written + length);
        while self.written < end {
            let piece = pattern::slice(self.written, end - self.written);
            self.written += piece.len() as u64;
            bytes.extend_from_slice(&piece);
        }
        bytes
    }
}

impl End for Site {
    fn opened(&mut self, _now: Instant) {
        self.connections.push(Serving::default());
    }

    fn received(&mut self, _now: Instant, connection: usize, bytes: &[u8]) -> Result<(), TransferError> {
        let Some(serving) = self.connections.get_mut(connection) else { return Ok(()) };
        serving.came.extend_from_slice(bytes);
        if self.protocol == Protocol::Http2 && !serving.greeted {
            let preface = (http2::PREFACE + http2::SETTINGS) as usize;
            if serving.came.len() < preface {
                return Ok(());
            }
            serving.came.drain(..preface);
            (serving.greeted, serving.greeting) = (true, true);
        }
        while let Some(activity) = serving.take_request(&self.page, self.protocol)? {
            let object = object(&self.page, activity)?;
            serving.answers.push_back(Answer { activity, object, begun: false, written: 0 });
        }
        Ok(())
    }

    fn next(&mut self, connection: usize) -> Next {
        let serving = self.connections.get_mut(connection);
        serving.and_then(|serving| serving.piece(self.protocol)).map_or(Next::Nothing, Next::Piece)
    }

    fn is_done(&self) -> Option<bool> {
        None
    }
}

/// The header of an HTTP/2 frame (RFC 9113 §4.1), without flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Length of the payload.
    pub(crate) length: u64,
    pub(crate) kind: Kind,
    stream: u32,
}

/// Type of a frame, as far as they occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data = 0,
    Headers = 1,
    Settings = 4,
}

impl Head {
    /// A frame about an activity. Streams that a client opens have odd numbers.
    pub(crate) fn of(activity: usize, kind: Kind, length: u64) -> Self {
        Head { length, kind, stream: 2 * activity as u32 + 1 }
    }

    pub(crate) fn activity(&self) -> usize {
        self.stream as usize / 2
    }

    pub(crate) fn bytes(&self) -> [u8; http2::FRAME as usize] {
        let [.., a, b, c] = self.length.to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind as u8, 0, s, t, u, v]
    }

    pub(crate) fn read(bytes: &[u8; http2::FRAME as usize]) -> Self {
        let [a, b, c, kind, _, s, t, u, v] = *bytes;
        let kind = match kind {
            0 => Kind::Data,
            1 => Kind::Headers,
            _ => Kind::Settings,
        };
        Head { length: u32::from_be_bytes([0, a, b, c]).into(), kind, stream: u32::from_be_bytes([s, t, u, v]) }
    }
}

/// Bytes of the number that stands at the beginning of a request over HTTP/1.1.
const INDEX: usize = 4;

/// Reason why a page cannot be fetched in real time, if there is one.
pub(crate) fn obstacle(page: &Page, protocol: Protocol) -> Option<String> {
    let http1 = protocol != Protocol::Http2;
    let is_short = |object: &Object| object.request.get() < INDEX as u64 || object.header.is_zero();
    let short = page
        .activities
        .iter()
        .position(|activity| matches!(&activity.work, Work::Download(object) if http1 && is_short(object)))?;
    Some(format!("activity {short} has a request of less than {INDEX} bytes, or an answer without a header"))
}
