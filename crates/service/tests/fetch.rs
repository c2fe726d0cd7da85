//! The download client over MPTCP in memory: against our server, and against one that lies.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{ConnectionId, Event};
use anabranch_host::{Application, Context};
use anabranch_service::{
    Fetch, FetchError, FetchLimits, Journal, LEAST_RATE, Outcome, Pace, Server, ServerLimits, Service, Sink, Site,
    Target, Upload,
};
use anabranch_units::{Duration, Rate};
use anabranch_wire::pattern;
use bytes::Bytes;
use common::{Pair, at, client};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

const MINUTE: Duration = Duration::from_secs(60);

/// Sink that keeps its pieces.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Shelf>>);

#[derive(Default)]
struct Shelf {
    bytes: Vec<u8>,
    /// Pieces that it accepts for now; `None` for no limit.
    room: Option<usize>,
    finished: bool,
}

impl Sink for Kept {
    fn has_room(&self) -> bool {
        let shelf = self.0.borrow();
        shelf.room.is_none_or(|room| shelf.bytes.len() < room)
    }

    fn offer(&mut self, piece: Bytes) {
        self.0.borrow_mut().bytes.extend_from_slice(&piece);
    }

    fn finish(&mut self) {
        self.0.borrow_mut().finished = true;
    }

    fn result(&mut self) -> Option<io::Result<()>> {
        self.0.borrow().finished.then_some(Ok(()))
    }
}

fn server() -> Server {
    let services = BTreeMap::from([
        (80, Service::Http(Arc::new(Site::new(None)))),
        (7, Service::Echo),
        (9, Service::Discard),
        (19, Service::Source(3_000_000)),
    ]);
    Server::new(services, ServerLimits::default(), Journal::none())
}

fn fetch(url: &str, kept: &Kept) -> Fetch<Kept> {
    let target = Target::parse(url).unwrap();
    let remote = at(target.port);
    Fetch::new(target, client(1), remote, kept.clone())
}

/// Runs it to its end, which must come.
fn outcome<S: Application>(mut pair: Pair<Fetch<Kept>, S>) -> Outcome {
    assert!(pair.run_until(MINUTE * 20, |pair| pair.client.is_finished()), "it ends");
    pair.client.into_outcome().0
}

#[test]
fn a_download_over_two_paths_that_lose() {
    let kept = Kept::default();
    let mut pair = Pair::new(fetch("http://10.0.0.1/bytes/3000000", &kept), server());
    pair.lose_every = Some(50);
    let outcome = outcome(pair);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!((outcome.status, outcome.received, outcome.expected), (Some(200), 3_000_000, Some(3_000_000)));
    let shelf = kept.0.borrow();
    assert!(
        outcome.pattern && outcome.multipath && shelf.bytes.len() == 3_000_000 && pattern::matches(0, &shelf.bytes)
    );
    let report = outcome.report.unwrap();
    let carried: Vec<u64> = report.subflows.iter().map(|subflow| subflow.bytes_received).collect();
    assert!(carried.len() == 2 && carried.iter().all(|bytes| *bytes > 0), "{carried:?}");
}

#[test]
fn uploads_arrive_whole() {
    let kept = Kept::default();
    let upload = fetch("http://10.0.0.1/discard", &kept).upload(Upload::pattern(2_000_000));
    let mut pair = Pair::new(upload, server());
    pair.lose_every = Some(70);
    let outcome = outcome(pair);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(kept.0.borrow().bytes, b"{\"received\":2000000,\"pattern\":true}\n");
    assert_eq!(outcome.uploaded, 2_000_000);
}

#[test]
fn the_plain_services() {
    let kept = Kept::default();
    let source = outcome(Pair::new(fetch("tcp://10.0.0.1:19", &kept), server()));
    assert!(source.error.is_none() && source.received == 3_000_000 && source.pattern);

    let kept = Kept::default();
    let echo = fetch("tcp://10.0.0.1:7", &kept).upload(Upload::pattern(1_000_000));
    let mut pair = Pair::new(echo, server());
    pair.lose_every = Some(90);
    let echo = outcome(pair);
    assert!(echo.error.is_none() && echo.received == 1_000_000 && echo.pattern, "{echo:?}");

    let discard = fetch("tcp://10.0.0.1:9", &Kept::default()).upload(Upload::pattern(1_000_000));
    let discard = outcome(Pair::new(discard, server()));
    assert!(discard.error.is_none() && discard.received == 0, "{discard:?}");
    assert_eq!(discard.report.unwrap().stats.data_acked, 1_000_000);
}

#[test]
fn a_range_is_the_range_that_was_asked_for() {
    let kept = Kept::default();
    let part = fetch("http://10.0.0.1/bytes/1000", &kept).range(Some("10-19".into()));
    assert_eq!(outcome(Pair::new(part, server())).status, Some(206));
    assert_eq!(kept.0.borrow().bytes, pattern::slice(10, 10));
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nab",
    ] {
        let kept = Kept::default();
        let part = fetch("http://10.0.0.1/x", &kept).range(Some("10-19".into()));
        let outcome = outcome(Pair::new(part, Liar::new(reply.as_bytes(), End::Close)));
        assert!(matches!(outcome.error, Some(FetchError::RangeIgnored)), "{reply}: {:?}", outcome.error);
        assert!(kept.0.borrow().bytes.is_empty());
    }
}

#[test]
fn a_sink_that_lags_slows_the_server_down() {
    let kept = Kept::default();
    kept.0.borrow_mut().room = Some(100_000);
    let mut pair = Pair::new(fetch("tcp://10.0.0.1:19", &kept), server());
    // Longer than the client waits for a server, and not as long as the server waits for a client.
    pair.run_for(Duration::from_secs(100));
    assert!(!pair.client.is_finished(), "waiting for the sink is no stall");
    assert!(kept.0.borrow().bytes.len() < 200_000, "{}", kept.0.borrow().bytes.len());
    kept.0.borrow_mut().room = None;
    pair.client(|client, cx| {
        let token = mio::Token(anabranch_host::FIRST_TOKEN);
        client.on_ready(cx, token, anabranch_host::Ready { readable: true, writable: false, closed: false });
    });
    let outcome = outcome(pair);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(kept.0.borrow().bytes.len(), 3_000_000);
}

/// Reads eight segments a second, and answers in a word when there are no more.
#[derive(Default)]
struct Slow {
    id: Option<ConnectionId>,
    received: usize,
    next: Option<anabranch_units::Instant>,
}

impl Application for Slow {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(5);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => (self.id, self.next) = (Some(id), Some(cx.now)),
            Event::PeerFinished => {
                cx.endpoint.write(id, &Bytes::from_static(b"thanks")).unwrap_or(0);
                cx.endpoint.shutdown(id);
            }
            Event::Closed | Event::Reset => self.next = None,
            _ => {}
        }
    }

    fn deadline(&self) -> Option<anabranch_units::Instant> {
        self.next
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        let Some(id) = self.id else { return };
        self.next = Some(cx.now + Duration::from_secs(1));
        for _ in 0..8 {
            self.received +=
                cx.endpoint.read(id).ok().and_then(anabranch_engine::Read::data).map_or(0, |piece| piece.len());
        }
    }
}

/// All of the upload is in the send buffer long before the server has it: that is no stall.
#[test]
fn an_upload_over_a_slow_path_is_not_given_up() {
    const LENGTH: usize = 1 << 20;
    let kept = Kept::default();
    let limits =
        FetchLimits { pace: Pace { stall: Duration::from_secs(30), least: LEAST_RATE }, ..FetchLimits::default() };
    let upload = fetch("tcp://10.0.0.1:5", &kept).upload(Upload::pattern(LENGTH as u64)).limits(limits);
    let mut pair = Pair::new(upload, Slow::default());
    assert!(pair.run_until(MINUTE * 20, |pair| pair.client.is_finished()), "it ends");
    assert_eq!(pair.server.received, LENGTH);
    let outcome = pair.client.into_outcome().0;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(kept.0.borrow().bytes, b"thanks");
}

#[test]
fn nobody_there() {
    let refused = outcome(Pair::new(fetch("http://10.0.0.1:81/", &Kept::default()), server()));
    assert!(matches!(refused.error, Some(FetchError::NotConnected)), "{refused:?}");
    let mut pair = Pair::new(fetch("http://10.0.0.1/", &Kept::default()), server());
    pair.lose_every = Some(1);
    let silent = outcome(pair);
    assert!(matches!(silent.error, Some(FetchError::NotConnected)), "{silent:?}");
    assert_eq!(silent.finished, Some(FetchLimits::default().connect));
}

/// A server with one reply to all requests.
struct Liar {
    says: Bytes,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Reset,
    Nothing,
}

impl Liar {
    fn new(says: &[u8], end: End) -> Self {
        Liar { says: Bytes::copy_from_slice(says), end }
    }
}

impl Application for Liar {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(80);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => {
                cx.endpoint.write(id, &self.says).unwrap_or(0);
                if self.end == End::Close {
                    cx.endpoint.shutdown(id);
                }
            }
            Event::Readable => {
                while matches!(cx.endpoint.read(id), Ok(anabranch_engine::Read::Data(_))) {}
                if self.end == End::Reset {
                    cx.endpoint.abort(cx.now, id);
                }
            }
            Event::PeerFinished => cx.endpoint.shutdown(id),
            _ => {}
        }
    }
}

fn said(reply: &[u8], end: End) -> Outcome {
    outcome(Pair::new(fetch("http://10.0.0.1/", &Kept::default()), Liar::new(reply, end)))
}

#[test]
fn what_breaks_off_is_an_error() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    assert!(matches!(said(half, End::Close).error, Some(FetchError::Short)));
    assert!(matches!(said(half, End::Reset).error, Some(FetchError::Broken)));
    let stalled = said(half, End::Nothing);
    assert!(matches!(stalled.error, Some(FetchError::Stalled)), "{stalled:?}");
    assert_eq!((stalled.received, stalled.expected), (4, Some(10)));
    let endless = b"HTTP/1.1 200 OK\r\n\r\nall";
    assert!(said(endless, End::Close).error.is_none());
    assert!(matches!(said(endless, End::Reset).error, Some(FetchError::Broken)), "only an orderly end ends a body");
}

/// The end of a body that nothing else ends is a DATA_FIN that a box hides; the server learns by the client's FIN that
/// it has to close as TCP does. A body with a length needs none.
#[test]
fn a_body_ends_though_a_box_hides_the_end() {
    for (url, head) in [
        ("http://10.0.0.1/", &b"HTTP/1.1 200 OK\r\n\r\n"[..]),
        ("http://10.0.0.1/", b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"),
        ("tcp://10.0.0.1:80", b""),
    ] {
        let reply = [head, &pattern::slice(0, 50_000)[..]].concat();
        let kept = Kept::default();
        let mut pair = Pair::new(fetch(url, &kept), Liar::new(&reply, End::Close));
        pair.strips = true;
        let outcome = outcome(pair);
        assert!(outcome.error.is_none() && outcome.pattern && outcome.received == 50_000, "{url}: {outcome:?}");
        assert!(outcome.finished.is_some_and(|took| took < Duration::from_millis(200)), "{url}: {outcome:?}");
    }
}

#[test]
fn what_is_said_with_an_error_is_no_content() {
    for reply in [
        "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone",
        "HTTP/1.1 302 F\r\nLocation: /x\r\nContent-Length: 4\r\n\r\nthis",
    ] {
        let kept = Kept::default();
        let outcome = outcome(Pair::new(fetch("http://10.0.0.1/", &kept), Liar::new(reply.as_bytes(), End::Close)));
        assert!(outcome.error.is_none() && !outcome.is_content() && kept.0.borrow().bytes.is_empty(), "{reply}");
    }
    let moved = said(b"HTTP/1.1 301 M\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", End::Close);
    assert_eq!(moved.redirect(), Some("/x"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Against any server the client comes to an end, and a body that it reports as whole has the announced length.
    #[test]
    fn nothing_a_server_says_harms(
        reply in hostile(),
        end in prop::sample::select(vec![End::Close, End::Reset, End::Nothing]),
    ) {
        let outcome = said(&reply, end);
        if outcome.error.is_none() {
            prop_assert!(outcome.status.is_some());
            let has_all = |expected| expected == outcome.received || outcome.status == Some(304);
            prop_assert!(outcome.expected.is_none_or(has_all));
        }
    }
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 304 N\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 ",
        "999",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "Content-Length: 5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Location: http://\r\n",
        "hello",
        "5\r\nhello\r\n",
        "ffffffffffffffff\r\n",
        "0\r\n\r\n",
        "\0",
    ]);
    let sentence = prop::collection::vec(words, 0..12).prop_map(|words| words.concat().into_bytes());
    let begun = sentence.clone().prop_map(|rest| [b"HTTP/1.1 200 OK\r\n".as_slice(), &rest].concat());
    let noise = prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![2 => sentence, 3 => begun, 1 => noise]
}

/// Writes at once and gives up five seconds later, after closing its direction or not.
struct QuitsLate {
    finishes: bool,
    id: Option<ConnectionId>,
    at: Option<anabranch_units::Instant>,
}

impl Application for QuitsLate {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(80);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        if let Event::Accepted { .. } = event {
            (self.id, self.at) = (Some(id), Some(cx.now + Duration::from_secs(5)));
            assert_eq!(cx.endpoint.write(id, &pattern::slice(0, 100_000)), Ok(100_000));
            if self.finishes {
                cx.endpoint.shutdown(id);
            }
        }
    }

    fn deadline(&self) -> Option<anabranch_units::Instant> {
        self.at
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        if let Some(id) = self.id.filter(|_| self.at.take_if(|at| *at <= cx.now).is_some()) {
            cx.endpoint.abort(cx.now, id);
        }
    }
}

/// Data that the server was told had arrived reaches the sink, however late that has room; then the reset is reported.
/// A stream that had ended before is whole.
#[test]
fn what_arrived_before_a_reset_reaches_the_sink() {
    for finishes in [false, true] {
        let kept = Kept::default();
        kept.0.borrow_mut().room = Some(1000);
        let server = QuitsLate { finishes, id: None, at: None };
        let mut pair = Pair::new(fetch("tcp://10.0.0.1:80", &kept), server);
        pair.run_for(Duration::from_secs(20));
        let held = kept.0.borrow().bytes.len();
        assert!(held < 50_000 && pair.endpoints[1].connection_count() == 0, "the rest is unread: {held}");
        kept.0.borrow_mut().room = None;
        pair.client(|client, cx| {
            let token = mio::Token(anabranch_host::FIRST_TOKEN);
            client.on_ready(cx, token, anabranch_host::Ready { readable: true, writable: false, closed: false });
        });
        let outcome = outcome(pair);
        assert!(kept.0.borrow().bytes == pattern::slice(0, 100_000), "{}", kept.0.borrow().bytes.len());
        assert_eq!((outcome.received, outcome.pattern), (100_000, true));
        assert_eq!(outcome.report.map(|report| report.stats.delivered), Some(100_000));
        match outcome.error {
            None => assert!(finishes),
            Some(error) => assert!(matches!(error, FetchError::Broken) && !finishes, "{error:?}"),
        }
    }
}

/// Sends so many bytes every 40 ms, for ever: a box that strips options leaves such a trickle.
struct Trickle {
    bytes: u64,
    id: Option<ConnectionId>,
    next: Option<anabranch_units::Instant>,
}

impl Application for Trickle {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(80);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => (self.id, self.next) = (Some(id), Some(cx.now)),
            Event::Closed | Event::Reset => (self.id, self.next) = (None, None),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<anabranch_units::Instant> {
        self.next
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        let Some(id) = self.id else { return };
        self.next = Some(cx.now + Duration::from_millis(40));
        cx.endpoint.write(id, &pattern::slice(0, self.bytes)).unwrap_or(0);
    }
}

/// 60 bytes every 40 ms are 1.5 kB/s, below the least rate of 2: of 60 s a quarter of each second goes, so that it is
/// given up after 240 s. At 2.5 kB/s, or without a least rate, it goes on.
#[test]
fn a_trickle_is_a_stall() {
    for (bytes, least, stalls) in [(60, LEAST_RATE, true), (100, LEAST_RATE, false), (60, Rate::from_bps(0), false)] {
        let pace = Pace { stall: MINUTE, least };
        let limits = FetchLimits { pace, total: Some(MINUTE * 15), ..FetchLimits::default() };
        let server = Trickle { bytes, id: None, next: None };
        let outcome = outcome(Pair::new(fetch("tcp://10.0.0.1:80", &Kept::default()).limits(limits), server));
        let took = outcome.finished.unwrap_or_default();
        match outcome.error {
            Some(FetchError::Stalled) => {
                assert!(stalls && took > MINUTE * 3 && took < MINUTE * 5, "{bytes}: {took:?}");
            }
            Some(FetchError::TooLong) => assert!(!stalls, "{bytes}: {took:?}"),
            other => panic!("{bytes}: {other:?}"),
        }
    }
}

/// Takes so many pieces a second, of a segment each.
struct Sipper {
    pieces: u32,
    id: Option<ConnectionId>,
    next: Option<anabranch_units::Instant>,
    reset: bool,
}

impl Application for Sipper {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        self.id = cx.endpoint.open(cx.now, client(1), at(19)).ok();
        self.next = Some(cx.now);
    }

    fn on_event(&mut self, _cx: &mut Context<'_>, _id: ConnectionId, event: Event) {
        self.reset |= event == Event::Reset;
    }

    fn deadline(&self) -> Option<anabranch_units::Instant> {
        self.next.filter(|_| !self.reset)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.next = Some(cx.now + Duration::from_secs(1));
        for _ in 0..self.pieces {
            let _ = self.id.map(|id| cx.endpoint.read(id));
        }
    }
}

/// A client that takes one segment a second, 1.4 kB, stays below the least rate, and is reset, though something moves
/// all the time; one that takes three is served.
#[test]
fn a_client_that_only_sips_is_reset() {
    for (pieces, is_reset) in [(1, true), (3, false)] {
        let sipper = Sipper { pieces, id: None, next: None, reset: false };
        let mut pair = Pair::new(sipper, server());
        assert_eq!(pair.run_until(MINUTE * 10, |pair| pair.client.reset), is_reset, "{pieces} pieces a second");
        if is_reset {
            assert!(pair.now > anabranch_units::Instant::ZERO + MINUTE * 2, "not as early as one that takes nothing");
        }
    }
}
