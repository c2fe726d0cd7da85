//! One connection of the HTTP server: requests in, replies out, one after the other.
//!
//! While a reply is under way the connection is not read. So a client that pipelines or does not read is slowed down by
//! its own window, and a session holds at most one head and one piece of a body.

use super::body::{BodyReader, Framing, with_buffer};
use super::files::{Entry, Root, Served};
use super::head::{Found, Head};
use super::range::{Wanted, wanted};
use super::reply::{PLAIN, Reply, words};
use super::request::{self, Method, Request};
use super::{date, path};
use crate::session::Session;
use crate::stream::Stream;
use anabranch_units::{Duration, Instant, quantity};
use anabranch_wire::pattern;
use bytes::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Content of an HTTP server.
#[derive(Debug)]
pub struct Site {
    /// The files, if any are served.
    pub root: Option<Root>,
    /// Limits per client.
    pub limits: HttpLimits,
    /// Seconds since 1970; the time of day that replies show.
    pub now: fn() -> i64,
}

/// Limits per client.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Bytes of a request's head.
    pub head: usize,
    /// Longest time for a head from its first byte, or from the opening of the connection.
    pub head_time: Duration,
    /// Longest idle time between requests.
    pub keep_alive: Duration,
    /// The time for which what a client sends after the last reply is read, from when it has that reply, so that it can
    /// see it.
    pub linger: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            head: 16 << 10,
            head_time: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
            linger: Duration::from_secs(5),
        }
    }
}

impl Site {
    /// Files below `root`, with the usual limits and the system's time.
    pub fn new(root: Option<Root>) -> Self {
        Site { root, limits: HttpLimits::default(), now: date::today }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct HttpSession {
    site: Arc<Site>,
    head: Head,
    /// The request under way: what of its body has not come.
    incoming: Option<Incoming>,
    /// Bytes to be written before anything else.
    held: Bytes,
    /// Unwritten rest of the reply's body.
    body: Body,
    /// The reply under way is the last.
    last: bool,
    /// The peer has closed its direction.
    ended: bool,
    /// True if the peer has sent data since the last check, behind the last request that is answered.
    babbles: bool,
    /// Our direction was closed while there was nothing to answer.
    idled_out: bool,
    phase: Phase,
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No bytes of a request yet.
    Idle,
    /// A request is coming, or its reply going.
    Busy,
    /// Our direction is closed; what still comes is thrown away.
    Lingering,
}

/// An upload.
#[derive(Debug)]
struct Incoming {
    reader: BodyReader,
    received: u64,
    /// True if the body has followed the test pattern so far.
    matches: bool,
    /// Answer with what was received, when it is whole.
    answers: bool,
}

/// Source of a reply's body.
#[derive(Debug)]
enum Body {
    None,
    File { file: File, next: u64, end: u64 },
    Pattern { next: u64, end: u64 },
}

/// Bytes read from a file at once.
const PIECE: u64 = 64 << 10;

impl HttpSession {
    pub(crate) fn new(site: Arc<Site>, now: Instant) -> Self {
        let deadline = Some(now + site.limits.head_time);
        HttpSession {
            site,
            head: Head::default(),
            incoming: None,
            held: Bytes::new(),
            body: Body::None,
            last: false,
            ended: false,
            babbles: false,
            idled_out: false,
            phase: Phase::Idle,
            deadline,
        }
    }

    /// Writes what is to be written; false if there is no room, or the connection had to be given up.
    fn flush(&mut self, stream: &mut Stream<'_>) -> bool {
        while stream.write(&mut self.held) {
            match self.body.next() {
                Ok(Some(piece)) => self.held = piece,
                Ok(None) => return true,
                Err(()) => {
                    // The length was promised; only an abort tells the client that the file ended before it.
                    stream.abort();
                    return false;
                }
            }
        }
        false
    }

    /// Reads the body of the request under way; false if more must come.
    fn receive(&mut self, stream: &mut Stream<'_>) -> bool {
        let Some(incoming) = &mut self.incoming else { return true };
        loop {
            match with_buffer(self.head.rest(), |rest| incoming.take(rest)) {
                Err(()) => {
                    self.incoming = None;
                    self.refuse(400, stream.now());
                    return true;
                }
                Ok(true) => break,
                Ok(false) => {}
            }
            let Some(mut piece) = stream.read() else { return false };
            match incoming.take(&mut piece) {
                Err(()) => {
                    self.incoming = None;
                    self.refuse(400, stream.now());
                    return true;
                }
                Ok(_) => self.head.push(&piece),
            }
        }
        if let Some(incoming) = self.incoming.take().filter(|incoming| incoming.answers) {
            let Incoming { received, matches, .. } = incoming;
            let text = format!("{{\"received\":{received},\"pattern\":{matches}}}\n");
            self.reply(200, "application/json", text.into(), false);
        }
        true
    }

    /// Reads a head; false if more must come or none is wanted.
    fn next_request(&mut self, stream: &mut Stream<'_>) -> bool {
        loop {
            match self.head.take(self.site.limits.head) {
                Found::Whole(head) => {
                    self.phase = Phase::Busy;
                    self.deadline = None;
                    match request::read(&head) {
                        Ok(request) => self.answer(&request, stream),
                        Err(status) => self.refuse(status, stream.now()),
                    }
                    return true;
                }
                Found::TooLong => {
                    self.refuse(431, stream.now());
                    return true;
                }
                Found::Partial if self.head.is_hopeless() => {
                    self.refuse(400, stream.now());
                    return true;
                }
                Found::Partial => {}
            }
            if self.phase == Phase::Idle && !self.head.is_empty() {
                self.phase = Phase::Busy;
                self.deadline = Some(stream.now() + self.site.limits.head_time);
            }
            match stream.read() {
                Some(piece) => self.head.push(&piece),
                None => return false,
            }
        }
    }

    fn answer(&mut self, request: &Request, stream: &mut Stream<'_>) {
        self.last |= !request.keep_alive;
        let Ok((segments, directory)) = path::segments(&request.target) else {
            return self.refuse(400, stream.now());
        };
        let names: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        let has_body = request.framing != Framing::Length(0);
        let gets = matches!(request.method, Method::Get | Method::Head);
        let uploads = matches!(request.method, Method::Put | Method::Post) && names == [b"discard"];
        if has_body && (uploads || (gets && !request.expects_continue)) {
            let reader = BodyReader::new(request.framing);
            self.incoming = Some(Incoming { reader, received: 0, matches: true, answers: uploads });
        } else {
            // A body that will be rejected is not awaited.
            self.last |= has_body;
        }
        match names.as_slice() {
            _ if uploads && has_body => {
                if request.expects_continue {
                    self.held = Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
            }
            _ if uploads => self.reply(200, "application/json", "{\"received\":0,\"pattern\":true}\n".into(), false),
            [b"bytes", size] if gets => {
                let only_head = request.method == Method::Head;
                match std::str::from_utf8(size).ok().and_then(length_of) {
                    Some(length) => {
                        let part = self.part(request, length, None);
                        let mut reply = self.begin(part.status());
                        reply.put("Content-Type", "application/octet-stream");
                        self.send(reply, part, length, only_head, |next, end| Body::Pattern { next, end });
                    }
                    None => self.fail(404, only_head),
                }
            }
            [b"discard"] => self.not_allowed("PUT, POST"),
            _ if gets => self.serve(request, &segments, directory),
            _ => self.not_allowed("GET, HEAD"),
        }
    }

    fn not_allowed(&mut self, allowed: &str) {
        let mut reply = self.begin(405);
        reply.put("Allow", allowed);
        self.text(reply, 405, false);
    }

    /// A file or directory.
    fn serve(&mut self, request: &Request, segments: &[Vec<u8>], directory: bool) {
        let only_head = request.method == Method::Head;
        let found = self.site.root.as_ref().map_or(Err(404), |root| root.find(segments, directory));
        match found {
            Err(status) => self.fail(status, only_head),
            Ok(Entry::Listing(html)) => self.reply(200, "text/html; charset=utf-8", html.into(), only_head),
            Ok(Entry::Directory) => {
                let location: String = segments.iter().map(|name| format!("/{}", path::encode(name))).collect();
                let mut reply = self.begin(301);
                reply.put("Location", &format!("{location}/"));
                self.text(reply, 301, only_head);
            }
            Ok(Entry::File(served)) => {
                let part = if self.is_unchanged(request, &served) {
                    Part::Unchanged
                } else {
                    self.part(request, served.length, Some(&served))
                };
                let mut reply = self.begin(part.status());
                reply.put("ETag", &served.tag).put("Last-Modified", &date::format(served.modified));
                reply.put("Content-Type", served.kind);
                let Served { file, length, .. } = served;
                self.send(reply, part, length, only_head, |next, end| Body::File { file, next, end });
            }
        }
    }

    /// The client has it already (RFC 9110 §13.2.2).
    fn is_unchanged(&self, request: &Request, served: &Served) -> bool {
        match (&request.if_none_match, &request.if_modified_since) {
            (Some(tags), _) => {
                let mut tags = tags.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
                tags.any(|tag| tag == served.tag || tag == "*")
            }
            (None, Some(since)) => date::parse(since).is_some_and(|since| served.modified <= since),
            (None, None) => false,
        }
    }

    /// Selects the part of a representation that is requested.
    fn part(&self, request: &Request, length: u64, served: Option<&Served>) -> Part {
        let still_the_same = match (&request.if_range, served) {
            (None, _) => true,
            (Some(condition), Some(served)) => {
                *condition == served.tag || date::parse(condition) == Some(served.modified)
            }
            (Some(_), None) => false,
        };
        match request.range.as_deref().filter(|_| request.method == Method::Get && still_the_same) {
            None => Part::Range(None),
            Some(field) => match wanted(field, length) {
                Wanted::All => Part::Range(None),
                Wanted::Part(range) => Part::Range(Some(range)),
                Wanted::Unsatisfiable => Part::Nowhere,
            },
        }
    }

    fn begin(&self, status: u16) -> Reply {
        Reply::new(status, (self.site.now)())
    }

    /// A reply with a representation of `length` bytes, or a part of it.
    fn send(
        &mut self,
        mut reply: Reply,
        part: Part,
        length: u64,
        only_head: bool,
        body: impl FnOnce(u64, u64) -> Body,
    ) {
        match part {
            Part::Unchanged => self.done(reply),
            Part::Nowhere => {
                reply.put("Content-Range", &format!("bytes */{length}")).put("Content-Length", "0");
                self.done(reply);
            }
            Part::Range(range) => {
                reply.put("Accept-Ranges", "bytes");
                if let Some(range) = &range {
                    reply.put("Content-Range", &format!("bytes {}-{}/{length}", range.start, range.end - 1));
                }
                let range = range.unwrap_or(0..length);
                reply.put("Content-Length", &(range.end - range.start).to_string());
                self.done(reply);
                if !only_head {
                    self.body = body(range.start, range.end);
                }
            }
        }
    }

    fn done(&mut self, reply: Reply) {
        self.put(reply.done(!self.last));
    }

    /// Behind what is held already.
    fn put(&mut self, bytes: Bytes) {
        self.held = if self.held.is_empty() { bytes } else { [&self.held[..], &bytes[..]].concat().into() };
    }

    fn reply(&mut self, status: u16, kind: &str, body: Bytes, only_head: bool) {
        self.whole(self.begin(status), kind, body, only_head);
    }

    fn whole(&mut self, reply: Reply, kind: &str, body: Bytes, only_head: bool) {
        self.put(reply.whole(kind, &body, !self.last, only_head));
    }

    /// The status in words.
    fn text(&mut self, reply: Reply, status: u16, only_head: bool) {
        let body = words(status);
        self.whole(reply, PLAIN, body.into(), only_head);
    }

    fn fail(&mut self, status: u16, only_head: bool) {
        self.text(self.begin(status), status, only_head);
    }

    /// The stream can no longer be read as requests: says so and ends.
    fn refuse(&mut self, status: u16, now: Instant) {
        self.phase = Phase::Busy;
        self.deadline = Some(now + self.site.limits.head_time);
        self.last = true;
        self.incoming = None;
        self.fail(status, false);
    }

    /// The last reply is in the send buffer: closes our direction, and reads on so that the client is not reset before
    /// it has read.
    fn close(&mut self, stream: &mut Stream<'_>) {
        self.idled_out = self.phase == Phase::Idle;
        self.phase = Phase::Lingering;
        self.deadline = Some(stream.now() + self.site.limits.linger);
        stream.shutdown();
        self.throw_away(stream);
    }

    fn throw_away(&mut self, stream: &mut Stream<'_>) {
        while stream.read().is_some() {
            self.babbles = true;
        }
    }

    /// Waits after our direction is closed. The service's idle timeout handles a client that does not take the reply. A
    /// client whose system has all of it may still be reading, unless it goes on sending; one that was idle before is
    /// reset.
    fn linger(&mut self, stream: &mut Stream<'_>) {
        let Some(load) = stream.load() else { return };
        let has_all = load.unacknowledged.is_zero() && !load.end_unacknowledged;
        let for_long = load.active + self.site.limits.linger <= stream.now();
        let babbles = std::mem::take(&mut self.babbles);
        if has_all && (babbles || self.idled_out && for_long) {
            return stream.abort();
        }
        self.deadline = Some(stream.now() + self.site.limits.linger);
    }
}

/// Part of a representation to send.
#[derive(Debug)]
enum Part {
    Range(Option<std::ops::Range<u64>>),
    Unchanged,
    Nowhere,
}

impl Part {
    fn status(&self) -> u16 {
        match self {
            Part::Range(None) => 200,
            Part::Range(Some(_)) => 206,
            Part::Unchanged => 304,
            Part::Nowhere => 416,
        }
    }
}

impl Incoming {
    /// Takes what belongs to the body from the front of `input`. True if it is whole.
    fn take(&mut self, input: &mut Bytes) -> Result<bool, ()> {
        while let Some(piece) = self.reader.next(input).map_err(|_| ())? {
            self.matches &= pattern::matches(self.received, &piece);
            self.received += piece.len() as u64;
        }
        Ok(self.reader.is_done())
    }
}

impl Body {
    /// The next piece; an error if what was promised is not there.
    fn next(&mut self) -> Result<Option<Bytes>, ()> {
        match self {
            Body::None => Ok(None),
            Body::Pattern { next, end } | Body::File { next, end, .. } if next == end => {
                *self = Body::None;
                Ok(None)
            }
            Body::Pattern { next, end } => {
                let piece = pattern::slice(*next, *end - *next);
                *next += piece.len() as u64;
                Ok(Some(piece))
            }
            Body::File { file, next, end } => {
                let mut piece = vec![0; (*end - *next).min(PIECE) as usize];
                let length = file.read_at(&mut piece, *next).map_err(|_| ())?;
                if length == 0 {
                    return Err(());
                }
                piece.truncate(length);
                *next += length as u64;
                Ok(Some(piece.into()))
            }
        }
    }
}

impl Session for HttpSession {
    fn advance(&mut self, stream: &mut Stream<'_>) {
        loop {
            if self.phase == Phase::Lingering {
                return self.throw_away(stream);
            }
            if !self.flush(stream) {
                return;
            }
            if self.last && self.incoming.is_none() && self.phase == Phase::Busy {
                return self.close(stream);
            }
            if self.incoming.is_some() {
                if !self.receive(stream) {
                    return;
                }
                continue;
            }
            if self.phase == Phase::Busy && self.deadline.is_none() {
                // A reply is through.
                self.phase = Phase::Idle;
                self.deadline = Some(stream.now() + self.site.limits.keep_alive);
            }
            if !self.next_request(stream) {
                if self.ended {
                    self.close(stream);
                }
                return;
            }
        }
    }

    fn on_end(&mut self, stream: &mut Stream<'_>) {
        self.ended = true;
        if self.incoming.is_some() {
            // The rest of the body will not come.
            return stream.abort();
        }
        self.advance(stream);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn on_deadline(&mut self, stream: &mut Stream<'_>) {
        match self.phase {
            Phase::Idle => self.close(stream),
            Phase::Busy if self.held.is_empty() && !self.last => {
                self.refuse(408, stream.now());
                self.advance(stream);
            }
            Phase::Lingering => self.linger(stream),
            // A refusal waits behind a reply: as long as that moves, it is not the client's fault.
            Phase::Busy => match stream.load().map(|load| load.active + self.site.limits.head_time) {
                Some(until) if until > stream.now() => self.deadline = Some(until),
                _ => stream.abort(),
            },
        }
    }

    fn drain(&mut self, stream: &mut Stream<'_>) {
        if self.phase == Phase::Idle {
            self.close(stream);
        } else {
            self.last = true;
        }
    }
}

/// Length of `/bytes/1000` or `/bytes/16MiB`.
fn length_of(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| quantity::size(text).ok().map(anabranch_units::Bytes::get))
}
