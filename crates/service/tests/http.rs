//! The HTTP server over MPTCP in memory: what it answers, and what it does with those who do not play by the rules.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::Event;
use anabranch_host::Application;
use anabranch_service::{Journal, Root, Server, ServerLimits, Service, Site};
use anabranch_units::Duration;
use anabranch_wire::pattern;
use common::{Pair, Script};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use tempfile::TempDir;

const MINUTE: Duration = Duration::from_secs(60);

fn server(root: Option<&TempDir>) -> Server {
    let root = root.map(|directory| Root::open(directory.path()).unwrap());
    // Sun, 06 Nov 1994 08:49:37 GMT.
    let site = Site { now: || 784_111_777, ..Site::new(root) };
    let services = BTreeMap::from([(80, Service::Http(Arc::new(site)))]);
    Server::new(services, ServerLimits::default(), Journal::none())
}

/// Returns the server's reply to these pieces, until the client is done.
fn answer(root: Option<&TempDir>, pieces: &[&[u8]]) -> String {
    let mut pair = Pair::new(Script::new(80, pieces), server(root));
    pair.run_until(Duration::from_secs(5), |pair| pair.client.is_over());
    pair.client.text()
}

fn get(root: Option<&TempDir>, path: &str, fields: &str) -> String {
    answer(root, &[format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").as_bytes()])
}

fn status(reply: &str) -> &str {
    reply.split(' ').nth(1).unwrap_or("none")
}

fn header<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let head = reply.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("a.txt"), "0123456789").unwrap();
    std::fs::create_dir(tree.path().join("sub")).unwrap();
    tree
}

#[test]
fn files_and_what_is_asked_of_them() {
    let tree = tree();
    let reply = get(Some(&tree), "/a.txt", "");
    assert_eq!((status(&reply), body(&reply)), ("200", "0123456789"));
    assert_eq!(header(&reply, "Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(header(&reply, "Date"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    let (tag, modified) = (header(&reply, "ETag").unwrap(), header(&reply, "Last-Modified").unwrap());

    for (fields, expected, content) in [
        (format!("If-None-Match: \"x\", {tag}\r\n"), "304", ""),
        (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {modified}\r\n"), "200", "0123456789"),
        (format!("If-Modified-Since: {modified}\r\n"), "304", ""),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(), "200", "0123456789"),
        ("If-Modified-Since: yesterday\r\n".to_owned(), "200", "0123456789"),
        ("Range: bytes=2-4\r\n".to_owned(), "206", "234"),
        ("Range: bytes=-3\r\n".to_owned(), "206", "789"),
        ("Range: bytes=0-1,3-4\r\n".to_owned(), "200", "0123456789"),
        ("Range: bytes=10-\r\n".to_owned(), "416", ""),
        (format!("Range: bytes=8-\r\nIf-Range: {tag}\r\n"), "206", "89"),
        ("Range: bytes=8-\r\nIf-Range: \"old\"\r\n".to_owned(), "200", "0123456789"),
    ] {
        let reply = get(Some(&tree), "/a.txt", &fields);
        assert_eq!((status(&reply), body(&reply)), (expected, content), "{fields}");
    }
    let part = get(Some(&tree), "/a.txt", "Range: bytes=2-4\r\n");
    assert_eq!(header(&part, "Content-Range"), Some("bytes 2-4/10"));
    assert_eq!(header(&get(Some(&tree), "/sub", ""), "Location"), Some("/sub/"));
    for (path, expected) in
        [("/", "200"), ("/nothing", "404"), ("/%2e%2e/etc/passwd", "400"), ("/sub", "301"), ("/a.txt/", "404")]
    {
        assert_eq!(status(&get(Some(&tree), path, "")), expected, "{path}");
    }
    assert_eq!(status(&get(None, "/a.txt", "")), "404", "no files without a root");
}

#[test]
fn head_has_the_length_and_no_body() {
    let tree = tree();
    for path in ["/a.txt", "/bytes/10", "/nothing", "/"] {
        let head = answer(Some(&tree), &[format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()]);
        let whole = get(Some(&tree), path, "");
        assert_eq!((header(&head, "Content-Length"), body(&head)), (header(&whole, "Content-Length"), ""), "{path}");
    }
}

#[test]
fn methods_that_do_not_fit() {
    for (line, expected, allow) in [
        ("DELETE / HTTP/1.1", "405", Some("GET, HEAD")),
        ("POST / HTTP/1.1", "405", Some("GET, HEAD")),
        ("GET /discard HTTP/1.1", "405", Some("PUT, POST")),
        ("BREW /pot HTTP/1.1", "501", None),
        ("GET / HTTP/3.0", "505", None),
    ] {
        let reply = answer(None, &[format!("{line}\r\nHost: h\r\n\r\n").as_bytes()]);
        assert_eq!((status(&reply), header(&reply, "Allow")), (expected, allow), "{line}");
    }
}

#[test]
fn a_request_may_come_in_any_pieces_and_others_behind_it() {
    let text = b"GET /bytes/5 HTTP/1.1\r\nHost: h\r\n\r\n\
        PUT /discard HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nknqj\
        GET /bytes/3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let whole = answer(None, &[text]);
    assert_eq!(whole.matches("HTTP/1.1 200 OK").count(), 3, "{whole}");
    assert!(whole.contains("{\"received\":4,\"pattern\":true}"), "{whole}");
    assert!(whole.ends_with(std::str::from_utf8(&pattern::slice(0, 3)).unwrap()));
    for cut in (1..text.len()).step_by(3) {
        assert_eq!(answer(None, &[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
    }
}

#[test]
fn an_upload_that_waits_for_a_word_gets_it() {
    let head = b"PUT /discard HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reply = answer(None, &[head, b"3\r\nknq\r\n0\r\n\r\n"]);
    assert!(reply.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{reply}");
    assert!(reply.contains("\"received\":3"));
    // One that is not wanted is refused before it is sent.
    let reply = answer(None, &[b"PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"]);
    assert_eq!((status(&reply), header(&reply, "Connection")), ("405", Some("close")));
}

#[test]
fn a_client_that_closes_its_direction_gets_its_reply() {
    let request = b"GET /bytes/100000 HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut pair = Pair::new(Script::new(80, &[request]).finishing(), server(None));
    assert!(pair.run_until(MINUTE, |pair| pair.client.gone.is_some() && pair.server.open() == 0));
    let text = pair.client.text();
    assert!(pattern::matches(0, body(&text).as_bytes()) && body(&text).len() == 100_000);
    assert_eq!((pair.client.gone, pair.server.totals().closed), (Some(Event::Closed), 1));
}

#[test]
fn a_head_that_takes_its_time_is_cut_off() {
    let pieces: Vec<&[u8]> = b"GET / HTTP/1.1\r\nHost: h\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaa".chunks(1).collect();
    let mut pair = Pair::new(Script::new(80, &pieces).every(Duration::from_secs(1)), server(None));
    assert!(pair.run_until(MINUTE, |pair| pair.client.ended));
    assert_eq!(status(&pair.client.text()), "408");
    let (begun, now) = (pair.endpoints[0].connection_stats(pair.client.id.unwrap()).unwrap().opened_at, pair.now);
    assert!((10..13).contains(&(now.since(begun).as_millis() / 1000)), "after ten seconds, not after {now}");
    assert!(pair.run_until(MINUTE, |pair| pair.server.open() == 0), "it does not stay for ever");
}

#[test]
fn who_says_nothing_is_let_go() {
    let mut pair = Pair::new(Script::new(80, &[]), server(None));
    assert!(pair.run_until(MINUTE, |pair| pair.server.open() == 1));
    assert!(pair.run_until(MINUTE, |pair| pair.server.open() == 0));
    assert_eq!(pair.client.text(), "");
    // The same after a request.
    let mut pair = Pair::new(Script::new(80, &[b"GET /bytes/1 HTTP/1.1\r\nHost: h\r\n\r\n"]), server(None));
    assert!(pair.run_until(MINUTE, |pair| !pair.client.received.is_empty()));
    assert!(!pair.run_until(Duration::from_secs(50), |pair| pair.client.is_over()), "kept for a while");
    assert!(pair.run_until(MINUTE, |pair| pair.client.is_over() && pair.server.open() == 0));
}

#[test]
fn a_head_too_long_is_refused_and_no_more_of_it_held() {
    let long = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 20_000]].concat();
    let reply = answer(None, &[&long]);
    assert_eq!((status(&reply), header(&reply, "Connection")), ("431", Some("close")));
    assert_eq!(status(&answer(None, &[b"\x16\x03\x01\x02\x00\x01"])), "400", "TLS");
}

#[test]
fn a_client_that_does_not_read_stops_the_server() {
    let script = Script::new(80, &[b"GET /bytes/50MiB HTTP/1.1\r\nHost: h\r\n\r\n"]).not_reading();
    let mut pair = Pair::new(script, server(None));
    pair.run_for(Duration::from_secs(30));
    let id = pair.client.id.unwrap();
    let arrived = pair.endpoints[0].connection_stats(id).unwrap().received;
    assert!(arrived <= 256 << 10, "{arrived} bytes are more than the client's buffer");
    pair.client(|client, cx| {
        client.reads = true;
        client.advance(cx);
    });
    assert!(pair.run_until(MINUTE * 10, |pair| pair.client.received.len() > 50 << 20));
    let head = pair.client.received.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(pattern::matches(0, &pair.client.received[head..]));
}

#[test]
fn a_client_that_never_reads_is_reset_in_the_end() {
    let script = Script::new(80, &[b"GET /bytes/50MiB HTTP/1.1\r\nHost: h\r\n\r\n"]).not_reading();
    let mut pair = Pair::new(script, server(None));
    assert!(pair.run_until(MINUTE * 5, |pair| pair.server.totals().reset == 1));
    assert_eq!(pair.server.open(), 0);
}

#[test]
fn files_beyond_four_gigabytes() {
    let tree = tempfile::tempdir().unwrap();
    let mut file = File::create(tree.path().join("big")).unwrap();
    file.set_len(5 << 30).unwrap();
    file.seek(SeekFrom::Start((5 << 30) - 4)).unwrap();
    file.write_all(b"tail").unwrap();
    let reply = get(Some(&tree), "/big", "Range: bytes=5368709117-\r\n");
    assert_eq!((status(&reply), body(&reply)), ("206", "ail"));
    assert_eq!(header(&reply, "Content-Range"), Some("bytes 5368709117-5368709119/5368709120"));
}

#[test]
fn a_file_that_shrinks_is_never_taken_for_whole() {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("file");
    std::fs::write(&path, vec![b'x'; 4 << 20]).unwrap();
    let script = Script::new(80, &[b"GET /file HTTP/1.1\r\nHost: h\r\n\r\n"]);
    let mut pair = Pair::new(script, server(Some(&tree)));
    assert!(pair.run_until(MINUTE, |pair| pair.client.received.len() > 1000));
    File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    assert!(pair.run_until(MINUTE, |pair| pair.client.is_over()));
    assert_eq!((pair.client.gone, pair.client.ended), (Some(Event::Reset), false));
    assert_eq!(pair.server.open(), 0);
}

#[test]
fn a_server_that_ends_lets_replies_finish_and_nobody_in() {
    let script = Script::new(80, &[b"GET /bytes/2MiB HTTP/1.1\r\nHost: h\r\n\r\n"]).finishing();
    let mut pair = Pair::new(script, server(None));
    assert!(pair.run_until(MINUTE, |pair| pair.client.received.len() > 1000));
    pair.server(|server, cx| server.on_signal(cx, 15));
    assert!(!pair.server.is_finished());
    let late = pair.client(|_, cx| cx.endpoint.open(cx.now, common::client(1), common::at(80)).unwrap());
    assert!(pair.run_until(MINUTE, |pair| pair.server.is_finished()));
    assert!(pair.client.received.len() > 2 << 20, "{}", pair.client.received.len());
    let totals = pair.server.totals();
    assert_eq!((totals.accepted, totals.closed, totals.turned_away), (1, 1, 0), "the late one met a closed port");
    assert!(pair.endpoints[0].subflow_stats(late).iter().all(|subflow| !subflow.established));
}

#[test]
fn more_connections_than_allowed_are_turned_away() {
    let services = BTreeMap::from([(7, Service::Echo)]);
    let limits = ServerLimits { connections: 2, ..ServerLimits::default() };
    let mut pair = Pair::new(Script::new(7, &[b"hello"]), Server::new(services, limits, Journal::none()));
    for _ in 0..4 {
        pair.client(|_, cx| cx.endpoint.open(cx.now, common::client(1), common::at(7)).unwrap());
    }
    pair.run_for(Duration::from_secs(2));
    assert_eq!((pair.server.open(), pair.server.totals().turned_away), (2, 3));
}

/// A client on a slow path has the rest of the last reply in its own time, however long that takes, as long as it goes
/// on taking it.
#[test]
fn the_last_reply_arrives_whole_however_slowly() {
    const LENGTH: usize = 1 << 20;
    let request = format!("GET /bytes/{LENGTH} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let script = Script::new(80, &[request.as_bytes()]).finishing().not_reading();
    let mut pair = Pair::new(script, server(None));
    let second = Duration::from_secs(1);
    for _ in 0..900 {
        pair.run_for(second);
        pair.client(|client, cx| {
            let Some(id) = client.id else { return };
            // Two segments a second.
            for _ in 0..2 {
                client
                    .received
                    .extend(cx.endpoint.read(id).ok().and_then(anabranch_engine::Read::data).into_iter().flatten());
            }
        });
        assert_ne!(pair.client.gone, Some(Event::Reset), "with {} bytes read", pair.client.received.len());
        if pair.client.received.len() > LENGTH {
            break;
        }
    }
    let head = pair.client.received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(pattern::matches(0, &pair.client.received[head..]) && pair.client.received.len() == head + LENGTH);
}

/// One that takes nothing any more does not stay for ever.
#[test]
fn a_client_that_takes_nothing_is_reset() {
    let request = b"GET /bytes/1MiB HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let mut pair = Pair::new(Script::new(80, &[request]).not_reading(), server(None));
    pair.run_for(MINUTE);
    assert_eq!((pair.server.open(), pair.client.gone), (1, None));
    pair.run_for(MINUTE * 2);
    assert_eq!((pair.server.open(), pair.client.gone), (0, Some(Event::Reset)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Against any client the server survives, sends only whole replies, and closes the connection in the end.
    #[test]
    fn nothing_a_client_sends_harms(pieces in prop::collection::vec(hostile(), 1..6), finish: bool) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let mut script = Script::new(80, &pieces);
        script.finish = finish;
        let mut pair = Pair::new(script, server(None));
        let left = pair.run_until(MINUTE * 5, |pair| pair.server.totals().accepted == 1 && pair.server.open() == 0);
        prop_assert!(left, "the server is rid of it");
        let text = pair.client.text();
        prop_assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "{}", text);
    }
}

/// Requests, pieces of requests, and noise.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "GET ",
        "PUT ",
        "/",
        "/discard",
        "/bytes/9",
        "/bytes/99999999999999",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\r\n\r\n",
        "\n\n",
        "Host: h\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\n",
        "Range: bytes=0-0\r\n",
        "Connection: close\r\n",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "\0",
        "%00",
        "..",
    ]);
    let sentence = prop::collection::vec(words, 1..12).prop_map(|words| words.concat().into_bytes());
    let noise = prop::collection::vec(any::<u8>(), 0..300);
    let request = Just(b"GET /bytes/10 HTTP/1.1\r\nHost: h\r\n\r\n".to_vec());
    prop_oneof![3 => sentence, 1 => noise, 2 => request]
}
