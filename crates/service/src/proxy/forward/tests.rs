#![allow(clippy::unwrap_used)]

use super::*;
use crate::proxy::front::Step;
use crate::proxy::http;

/// The exchange that this begins, and the bytes for the origin; otherwise the status of the refusal.
fn begin(text: &str) -> Result<(Exchange, String), String> {
    match http::request(text.as_bytes(), None) {
        Step::Done(length, (_, Some(forward))) => {
            let (exchange, bytes) = Exchange::begin(*forward, Bytes::copy_from_slice(&text.as_bytes()[length..]));
            Ok((exchange, String::from_utf8_lossy(&bytes).into_owned()))
        }
        Step::Done(..) => Err("a tunnel".to_owned()),
        Step::Short => Err("short".to_owned()),
        Step::Refuse(reply, why) => {
            let reply = String::from_utf8(reply).unwrap();
            let (head, body) = reply.split_once("\r\n\r\n").unwrap();
            assert!(body.contains(why) && head.contains(&format!("Content-Length: {}\r\n", body.len())), "{reply}");
            Err(head.split(' ').nth(1).unwrap().to_owned())
        }
    }
}

fn status(text: &str) -> String {
    begin(text)
        .map_or_else(|status| status, |(exchange, _)| exchange.fault().map_or("sent", |it| &it.status[..3]).into())
}

/// Answer that the client gets when the origin sends this, in one piece and byte by byte.
fn answered(request: &str, answer: &str, ends: bool) -> (String, Exchange) {
    let run = |size: usize| {
        let (mut exchange, _) = begin(request).unwrap();
        let mut out = Vec::new();
        for piece in answer.as_bytes().chunks(size) {
            exchange.take_answer(Bytes::copy_from_slice(piece), &mut out);
        }
        if ends {
            exchange.origin_ended(true);
        }
        (String::from_utf8(out.concat()).unwrap(), exchange)
    };
    let (whole, apart) = (run(answer.len().max(1)), run(1));
    assert_eq!(whole.1.is_answered(), apart.1.is_answered());
    // Chunks are as they come.
    if !whole.0.contains("chunked") {
        assert_eq!(whole.0, apart.0);
    }
    whole
}

const GET: &str = "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n";
const OLD: &str = "GET http://a/ HTTP/1.0\r\n\r\n";
const HEAD: &str = "HEAD http://a/ HTTP/1.1\r\nHost: a\r\n\r\n";
const POST: &str = "POST http://a/ HTTP/1.1\r\nHost: a\r\n";

#[test]
fn a_request_goes_on_without_what_concerns_the_proxy_alone() {
    let request = "GET http://example.org:8080/a?b HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n\
                   Connection: keep-alive, X-Own\r\nX-Own: 1\r\nKeep-Alive: 5\r\n\
                   Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n\
                   TE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nVia: 1.0 first\r\n\r\n";
    let (exchange, sent) = begin(request).unwrap();
    let expected = "GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\nVia: 1.0 first\r\n\
                    Via: 1.1 anabranch\r\nConnection: close\r\n\r\n";
    assert_eq!((sent.as_str(), exchange.is_sent()), (expected, true));
    let (_, sent) = begin("GET http://a HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(sent, "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.0 anabranch\r\nConnection: close\r\n\r\n");
}

#[test]
fn bodies_go_on_as_far_as_they_reach() {
    let (mut exchange, sent) = begin(&format!("{POST}Content-Length: 5\r\n\r\nabc")).unwrap();
    assert!(sent.ends_with("\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabc") && !exchange.is_sent(), "{sent}");
    assert_eq!(exchange.take_request("deGET http://b/".into()), "de");
    assert!(exchange.is_sent());
    assert_eq!(exchange.take_behind(), None, "there is no answer yet");
    exchange.take_answer("HTTP/1.1 204 No Content\r\n\r\n".into(), &mut Vec::new());
    assert_eq!(exchange.take_behind().unwrap(), "GET http://b/");

    let chunked = format!("{POST}Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n");
    let (mut exchange, sent) = begin(&chunked).unwrap();
    assert!(sent.ends_with("\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n"), "{sent}");
    assert_eq!(exchange.take_request("0\r\nTrailer: x\r\n\r\nrest".into()), "0\r\n\r\n");
    assert!(exchange.is_sent());
}

#[test]
fn what_could_be_read_in_two_ways_or_not_at_all_is_refused() {
    let many = format!("GET http://a/ HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(100));
    let long = format!("GET http://a/{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(16 << 10));
    let endless = format!("GET http://a/{}", "a".repeat(16 << 10));
    for (text, expected) in [
        (GET, "sent"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost : a\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "400"),
        ("GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        ("TRACE http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
        (many.as_str(), "431"),
        (long.as_str(), "431"),
        (endless.as_str(), "431"),
    ] {
        assert_eq!(status(text), expected, "{}", &text[..text.len().min(80)]);
    }
    for (fields, expected) in [
        ("Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "400"),
        ("Content-Length: 1, 1\r\n\r\nx", "400"),
        ("Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", "400"),
        ("Content-Length: +1\r\n\r\nx", "400"),
        ("Content-Length: 0x1\r\n\r\nx", "400"),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"),
        ("Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "501"),
        ("Transfer-Encoding: gzip\r\n\r\n", "501"),
        ("Transfer-Encoding: chunked\r\n\r\nx\r\n", "400"),
        ("Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", "400"),
        ("Content-Length: 1\r\nConnection: content-length\r\n\r\nx", "sent"),
    ] {
        assert_eq!(status(&format!("{POST}{fields}")), expected, "{fields:?}");
    }
    // A length that Connection names is still said: the body follows.
    let (_, sent) = begin(&format!("{POST}Content-Length: 1\r\nConnection: content-length, host\r\n\r\nx")).unwrap();
    assert!(sent.contains("Host: a\r\n") && sent.contains("Content-Length: 1\r\n"), "{sent}");
    assert_eq!(status("POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "400");
}

#[test]
fn answers_come_with_their_framing_and_keep_the_client() {
    let (got, mut exchange) = answered(
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nKeep-Alive: x\r\nETag: \"1\"\r\n\r\nabcTOO MUCH",
        false,
    );
    assert_eq!(got, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nVia: 1.1 anabranch\r\nContent-Length: 3\r\n\r\nabc");
    assert!(exchange.is_answered() && exchange.take_behind().is_some());

    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\n";
    let (got, mut exchange) = answered(GET, chunked, false);
    let head = "HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\n";
    assert_eq!(got, format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
    assert!(exchange.take_behind().is_some());
    // HTTP/1.0 has no chunks; its body ends with the connection.
    let (got, mut exchange) = answered(OLD, chunked, false);
    assert_eq!(got, format!("{head}Connection: close\r\n\r\nabc"));
    assert!(exchange.is_answered() && exchange.take_behind().is_none());

    let (got, mut exchange) = answered(GET, "HTTP/1.0 200 OK\r\n\r\nto the end", true);
    assert_eq!(got, "HTTP/1.1 200 OK\r\nVia: 1.0 anabranch\r\nConnection: close\r\n\r\nto the end");
    assert!(exchange.is_answered() && exchange.take_behind().is_none());

    let (got, exchange) = answered(HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false);
    assert!(exchange.is_answered() && got.ends_with("Content-Length: 9\r\n\r\n"), "{got}");
    for bare in ["204 No Content", "304 Not Modified"] {
        let (_, exchange) = answered(GET, &format!("HTTP/1.1 {bare}\r\nETag: x\r\n\r\n"), false);
        assert!(exchange.is_answered(), "{bare} has no body");
    }
    for request in [format!("{POST}Connection: close\r\n\r\n"), format!("{POST}Proxy-Connection: close\r\n\r\n")] {
        let (got, mut exchange) = answered(&request, "HTTP/1.1 204 No Content\r\n\r\n", false);
        assert!(got.contains("Connection: close\r\n") && exchange.take_behind().is_none(), "{got}");
    }
}

#[test]
fn interim_answers_go_to_those_who_know_them() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nContent-Length: 0\r\n";
    let (got, exchange) = answered(GET, text, false);
    assert_eq!(got, format!("HTTP/1.1 100 Continue\r\nVia: 1.1 anabranch\r\n\r\n{last}\r\n"));
    assert!(exchange.is_answered());
    assert_eq!(answered(OLD, text, false).0, format!("{last}Connection: close\r\n\r\n"));
    let (_, exchange) = answered(GET, &"HTTP/1.1 102 Processing\r\n\r\n".repeat(101), false);
    assert!(exchange.fault().is_some());
}

#[test]
fn answers_that_are_none_are_faults_of_the_origin() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(70_000));
    for (text, ends) in [
        ("SSH-2.0-x\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", false),
        (long.as_str(), false),
        ("", true),
        ("HTTP/1.1 200 OK\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", true),
    ] {
        let (_, exchange) = answered(GET, text, ends);
        let fault = exchange.fault().unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!(fault.status, "502 Bad Gateway", "{text:?}");
    }
    let (mut exchange, _) = begin(GET).unwrap();
    exchange.take_answer("HTTP/1.1 200 OK\r\n\r\nhalf".into(), &mut Vec::new());
    exchange.origin_ended(false);
    assert!(exchange.fault().is_some() && !exchange.is_silent(), "it broke off");
}
