//! The proxy from clients that ask by plain HTTP to origins behind the engine.
#![allow(clippy::unwrap_used)]

mod bench;

use anabranch_engine::ConnectionId;
use anabranch_service::proxy::Outcome;
use bench::{Bench, pattern, read_all, socks};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

/// A client in a thread of its own that sends `request` and reads to the end.
fn client(bench: &Bench, request: impl Into<Vec<u8>>) -> JoinHandle<String> {
    let (address, request) = (bench.proxy.socks_address().unwrap(), request.into());
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&request).unwrap();
        let mut bytes = Vec::new();
        // A reset ends it as well.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    })
}

/// Runs until the client is done; origins answer with these in the order of their connections, once a request's head is
/// there, and close. Returns what the client got, and what each origin did.
fn serve(bench: &mut Bench, client: JoinHandle<String>, answers: &[&str]) -> (String, Vec<String>) {
    let mut served: Vec<ConnectionId> = Vec::new();
    bench.until("the client is done", |bench| {
        let asked = |peer: &bench::Peer| peer.read.windows(4).any(|four| four == b"\r\n\r\n");
        let next = bench.peers.iter().find(|(id, peer)| !served.contains(id) && asked(peer)).map(|(id, _)| *id);
        if let Some((id, answer)) = next.zip(answers.get(served.len())) {
            served.push(id);
            bench.send(id, answer.as_bytes());
            bench.peer(id).finish = true;
        }
        client.is_finished()
    });
    let read = |id: &ConnectionId| String::from_utf8_lossy(&bench.peers[id].read).into_owned();
    (client.join().unwrap(), served.iter().map(read).collect())
}

#[test]
fn one_connection_serves_requests_to_several_origins_in_turn() {
    let mut bench = Bench::new(socks());
    // The second goes to the other origin, and all are there before the first is answered.
    let requests = "GET http://10.2.0.1:443/a HTTP/1.1\r\nHost: x\r\n\r\n\
                    POST http://10.2.0.2:443/b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
                    GET http://10.2.0.1:443/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n\
                    GET http://10.2.0.1:443/never HTTP/1.1\r\nHost: x\r\n\r\n";
    let client = client(&bench, requests);
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecond\r\n0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nthird",
    ];
    let (got, asked) = serve(&mut bench, client, &answers);
    let expected = "HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nContent-Length: 5\r\n\r\nfirst\
                    HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecond\r\n0\r\n\r\n\
                    HTTP/1.1 404 Not Found\r\nVia: 1.1 anabranch\r\nContent-Length: 5\r\n\
                    Connection: close\r\n\r\nthird";
    assert_eq!(got, expected);
    assert!(asked[0].starts_with("GET /a HTTP/1.1\r\nHost: 10.2.0.1:443\r\n"), "{}", asked[0]);
    assert!(asked[1].starts_with("POST /b HTTP/1.1\r\nHost: 10.2.0.2:443\r\n") && asked[1].ends_with("\r\n\r\nabc"));
    assert!(asked[2].starts_with("GET /c HTTP/1.1\r\n") && asked.len() == 3);
    bench.until("gone", |bench| bench.proxy.sessions() == 0 && bench.engine.connection_count() == 0);
    assert_eq!(bench.proxy.ended(Outcome::Closed), 1);
}

#[test]
fn a_large_body_each_way() {
    let mut bench = Bench::new(socks());
    let address = bench.proxy.socks_address().unwrap();
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = "PUT http://10.2.0.1:443/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&pattern(3_000_000)).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let mut body = vec![0; 5_000_000];
        stream.read_exact(&mut body).unwrap();
        // The connection goes on until the client ends it.
        stream.shutdown(Shutdown::Write).unwrap();
        (body, read_all(&stream).unwrap())
    });
    bench.until("all of the request is there", |bench| bench.peers.values().any(|peer| peer.read.len() > 3_000_000));
    let id = *bench.peers.keys().next().unwrap();
    let read = bench.peer(id).read.clone();
    let body = read.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    bench.until("the body is whole", |bench| bench.peer(id).read.len() == body + 3_000_000);
    assert!(bench.peer(id).read[body..] == pattern(3_000_000));
    bench.send(id, b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n");
    bench.send(id, &pattern(5_000_000));
    bench.until("the client is done", |_| client.is_finished());
    let (body, rest) = client.join().unwrap();
    assert!(body == pattern(5_000_000) && rest.is_empty());
    bench.until("gone", |bench| bench.proxy.sessions() == 0);
}

#[test]
fn failures_say_what_they_are() {
    let mut bench = Bench::new(socks());
    for (target, status, word, outcome) in [
        ("http://127.0.0.1/", "403 Forbidden", "--to-allow", Outcome::NotAllowed),
        ("http://localhost/", "403 Forbidden", "--to-allow", Outcome::NotAllowed),
        ("http://10.2.0.1:80/", "502 Bad Gateway", "refused", Outcome::ConnectFailed),
        ("http://nosuch.invalid/", "502 Bad Gateway", "no address", Outcome::NoSuchName),
        ("https://10.2.0.1/", "400 Bad Request", "CONNECT HOST:PORT", Outcome::BadRequest),
        ("/", "400 Bad Request", "http://HOST/", Outcome::BadRequest),
    ] {
        let before = bench.proxy.ended(outcome);
        let get = client(&bench, format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let (got, _) = serve(&mut bench, get, &[]);
        let (head, body) = got.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{target}: {got}");
        assert!(body.starts_with(status) && body.contains(word) && body.ends_with('\n'), "{target}: {got}");
        bench.until("gone", |bench| bench.proxy.ended(outcome) == before + 1);
    }
    // An answer to HEAD has no body.
    let head = client(&bench, "HEAD http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(serve(&mut bench, head, &[]).0.ends_with("\r\n\r\n"));
}

const GET: &str = "GET http://10.2.0.1:443/ HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn an_origin_that_breaks_off_is_not_taken_for_one_that_has_answered() {
    let mut bench = Bench::new(socks());
    for (answer, starts) in [
        ("", "HTTP/1.1 502 Bad Gateway\r\n"),
        ("HTTP/1.1 20", "HTTP/1.1 502 Bad Gateway\r\n"),
        ("nonsense\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 200 OK\r\n"),
    ] {
        let before = bench.proxy.ended(Outcome::TargetReset);
        bench.peers.clear();
        let client = client(&bench, GET);
        let (got, _) = serve(&mut bench, client, &[answer]);
        assert!(got.starts_with(starts), "{answer:?}: {got}");
        bench.until("gone", |bench| bench.proxy.ended(Outcome::TargetReset) == before + 1);
    }
    // Reset before it answers.
    bench.peers.clear();
    let client = client(&bench, GET);
    bench.until("it is asked", |bench| bench.peers.values().any(|peer| !peer.read.is_empty()));
    let (now, id) = (bench.now(), *bench.peers.keys().next().unwrap());
    bench.other.abort(now, id);
    assert!(serve(&mut bench, client, &[]).0.starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
}

#[test]
fn whoever_waits_too_long_is_told() {
    let mut settings = socks();
    settings.timeouts.idle.stall = anabranch_units::Duration::from_secs(30);
    let mut bench = Bench::new(settings);
    let client = client(&bench, GET);
    bench.until("it is asked", |bench| bench.peers.values().any(|peer| !peer.read.is_empty()));
    bench.skip(35);
    assert!(serve(&mut bench, client, &[]).0.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"));
    // A client that has been answered and asks for nothing more is let go without a word.
    bench.peers.clear();
    let address = bench.proxy.socks_address().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    bench.until("it is asked", |bench| bench.peers.values().any(|peer| !peer.read.is_empty()));
    let id = *bench.peers.keys().next().unwrap();
    bench.send(id, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    bench.until("it is answered", |bench| bench.peers[&id].to_send.is_empty() && bench.engine.connection_count() == 0);
    assert_eq!(bench.proxy.sessions(), 1);
    bench.skip(15);
    assert_eq!((bench.proxy.sessions(), bench.proxy.ended(Outcome::Closed)), (0, 1));
    assert!(read_all(&stream).unwrap().ends_with(b"\r\n\r\nok"));
}
