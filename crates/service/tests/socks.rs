//! The proxy from SOCKS5 and HTTP CONNECT clients to the engine's connections.
#![allow(clippy::unwrap_used)]

mod bench;

use anabranch_engine::Event;
use anabranch_service::proxy::{Direction, Front, Limit, Outcome, Progress, Users};
use anabranch_units::Duration;
use bench::{Bench, PORT, pattern, peer_ip, read_all, socks};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

const HELLO: &[u8] = b"\x05\x01\x00";
const TO_PEER: &[u8] = b"\x05\x01\x00\x01\x0a\x02\x00\x01\x01\xbb";

/// A client in a thread of its own.
fn client<T: Send + 'static>(bench: &Bench, act: impl FnOnce(TcpStream) -> T + Send + 'static) -> JoinHandle<T> {
    let address = bench.proxy.socks_address().unwrap();
    std::thread::spawn(move || act(TcpStream::connect(address).unwrap()))
}

fn finish<T>(bench: &mut Bench, client: JoinHandle<T>) -> T {
    bench.until("the client is done", |_| client.is_finished());
    client.join().unwrap()
}

fn ask(mut stream: &TcpStream, request: &[u8]) -> [u8; 10] {
    stream.write_all(HELLO).unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply[..2]).unwrap();
    stream.write_all(request).unwrap();
    stream.read_exact(&mut reply[2..]).unwrap();
    assert_eq!(reply[..2], [5, 0]);
    reply[2..].try_into().unwrap()
}

#[test]
fn a_stream_each_way_over_two_subflows() {
    let mut bench = Bench::new(socks());
    let stream = client(&bench, |mut stream| {
        let reply = ask(&stream, TO_PEER);
        stream.write_all(&pattern(5 << 20)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        (reply, read_all(&stream).unwrap())
    });
    bench.until("the destination has all", |bench| bench.peers.values().any(|peer| peer.has(Event::PeerFinished)));
    let id = *bench.peers.keys().next().unwrap();
    assert!(bench.peer(id).read == pattern(5 << 20));
    assert_eq!(bench.other.subflow_stats(id).len(), 4, "two addresses each: a full mesh");
    bench.send(id, &pattern(7 << 20));
    bench.peer(id).finish = true;
    let (reply, download) = finish(&mut bench, stream);
    assert!(download == pattern(7 << 20));
    assert_eq!(reply[..8], [5, 0, 0, 1, 10, 1, 0, 1], "bound to the first --via address");
    bench.until("gone", |bench| bench.proxy.sessions() == 0);
    assert_eq!(bench.proxy.ended(Outcome::Closed), 1);
}

#[test]
fn http_connect_with_data_right_behind_it() {
    let mut bench = Bench::new(socks());
    let stream = client(&bench, |mut stream| {
        stream.write_all(b"CONNECT 10.2.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\nearly").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_all(&stream).unwrap()
    });
    bench.until("all is there", |bench| bench.peers.values().any(|peer| peer.has(Event::PeerFinished)));
    let id = *bench.peers.keys().next().unwrap();
    assert_eq!(bench.peer(id).read, b"early");
    bench.send(id, b"answer");
    bench.peer(id).finish = true;
    let got = finish(&mut bench, stream);
    assert_eq!(got, b"HTTP/1.1 200 Connection established\r\n\r\nanswer");
}

#[test]
fn failures_have_their_codes() {
    let mut bench = Bench::new(socks());
    for (request, code, outcome) in [
        (&b"\x05\x01\x00\x01\x0a\x02\x00\x01\x00\x50"[..], 5, Outcome::ConnectFailed),
        (b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", 2, Outcome::NotAllowed),
        (b"\x05\x01\x00\x03\x09localhost\x00\x50", 2, Outcome::NotAllowed),
        (b"\x05\x01\x00\x03\x0enosuch.invalid\x00\x50", 4, Outcome::NoSuchName),
    ] {
        let before = bench.proxy.ended(outcome);
        let stream = client(&bench, move |stream| (ask(&stream, request), read_all(&stream).unwrap()));
        let (reply, rest) = finish(&mut bench, stream);
        assert_eq!((reply[1], rest.len()), (code, 0), "{request:?}");
        bench.until("gone", |bench| bench.proxy.sessions() == 0);
        assert_eq!(bench.proxy.ended(outcome), before + 1);
    }
    let six = client(&bench, |stream| {
        let request = [&b"\x05\x01\x00\x04\x20\x01"[..], &[0; 14], &[0, 80]].concat();
        ask(&stream, &request)[1]
    });
    assert_eq!(finish(&mut bench, six), 3, "no --via address of this family");
}

#[test]
fn a_path_that_is_dead_is_passed_over() {
    let mut settings = socks();
    let Direction::Socks { via, .. } = &mut settings.direction else { unreachable!() };
    // An address that answers do not come back to.
    via.insert(0, "10.9.9.9".parse().unwrap());
    let mut bench = Bench::new(settings);
    let stream = client(&bench, |stream| ask(&stream, TO_PEER));
    bench.until("it asks", |bench| bench.engine.connection_count() == 1);
    bench.skip(7);
    assert_eq!(finish(&mut bench, stream)[..8], [5, 0, 0, 1, 10, 1, 0, 1], "the next --via address");
}

#[test]
fn a_destination_that_does_not_answer_is_given_up() {
    let mut bench = Bench::new(socks());
    let stream = client(&bench, |stream| ask(&stream, b"\x05\x01\x00\x01\x0a\x02\x00\x63\x01\xbb")[1]);
    bench.until("it asks", |bench| bench.engine.connection_count() == 1);
    // 5 s from each of two addresses.
    bench.skip(12);
    assert_eq!(finish(&mut bench, stream), 4, "host unreachable");
    bench.until("gone", |bench| bench.proxy.sessions() == 0);
    assert_eq!((bench.proxy.ended(Outcome::ConnectFailed), bench.engine.connection_count()), (1, 0));
}

#[test]
fn only_users_get_in() {
    let mut settings = socks();
    let Direction::Socks { users, .. } = &mut settings.direction else { unreachable!() };
    *users = Some(Arc::new(Users::parse("anna:secret").unwrap()));
    let mut bench = Bench::new(settings);
    for (word, last) in [(&b"\x06secret"[..], 0), (b"\x05wrong", 1)] {
        let stream = client(&bench, move |mut stream| {
            stream.write_all(b"\x05\x01\x02").unwrap();
            stream.write_all(&[b"\x01\x04anna", word].concat()).unwrap();
            let mut reply = [0; 4];
            stream.read_exact(&mut reply).unwrap();
            reply
        });
        assert_eq!(finish(&mut bench, stream), [5, 2, 1, last]);
    }
}

#[test]
fn clients_that_say_nothing_have_to_go() {
    let mut bench = Bench::new(socks());
    let stream = client(&bench, |stream| read_all(&stream).map_err(|error| error.kind()));
    bench.until("it is there", |bench| bench.proxy.sessions() == 1);
    bench.skip(8);
    assert_eq!(bench.proxy.sessions(), 1);
    bench.skip(3);
    assert_eq!((bench.proxy.sessions(), bench.proxy.ended(Outcome::BadRequest)), (0, 1));
    let _ = finish(&mut bench, stream);
}

#[test]
fn a_client_too_many_is_told_so() {
    let mut settings = socks();
    settings.limits.connections = 1;
    let mut bench = Bench::new(settings);
    let held = client(&bench, |stream| (ask(&stream, TO_PEER), stream));
    let (_, held) = finish(&mut bench, held);
    let second = client(&bench, |mut stream| {
        stream.write_all(b"CONNECT 10.2.0.1:443 HTTP/1.1\r\n\r\n").unwrap();
        String::from_utf8(read_all(&stream).unwrap()).unwrap()
    });
    let answer = finish(&mut bench, second);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After"), "{answer}");
    assert_eq!(bench.proxy.limit_hits(Limit::Connections), 1);
    drop(held);
    bench.until("the first has gone", |bench| {
        for (id, _) in bench.peers.iter().filter(|(_, peer)| peer.has(Event::PeerFinished)) {
            bench.other.shutdown(*id);
        }
        bench.proxy.sessions() == 0
    });
    let third = client(&bench, |stream| ask(&stream, TO_PEER)[1]);
    assert_eq!(finish(&mut bench, third), 0);
}

#[test]
fn a_reset_of_the_destination_reaches_the_client() {
    let mut bench = Bench::new(socks());
    let (stands, hears) = mpsc::channel();
    let stream = client(&bench, move |stream| {
        ask(&stream, TO_PEER);
        stands.send(()).unwrap();
        read_all(&stream).map_err(|error| error.kind())
    });
    bench.until("it stands", |_| hears.try_recv().is_ok());
    let (now, id) = (bench.now(), *bench.peers.keys().next().unwrap());
    bench.other.abort(now, id);
    assert_eq!(finish(&mut bench, stream), Err(std::io::ErrorKind::ConnectionReset));
    assert_eq!(bench.proxy.ended(Outcome::TargetReset), 1);
}

#[test]
fn a_drain_closes_the_door() {
    let mut settings = socks();
    settings.timeouts.drain = Duration::from_secs(5);
    let mut bench = Bench::new(settings);
    let address: SocketAddr = bench.proxy.socks_address().unwrap();
    bench.signal();
    bench.until("it is over", |bench| anabranch_host::Application::is_finished(&bench.proxy));
    assert!(TcpStream::connect(address).is_err());
    assert_eq!((peer_ip(1).to_string(), PORT), ("10.2.0.1".to_owned(), 443), "what TO_PEER says");
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let words = prop_oneof![
        Just(b"\x05".to_vec()),
        Just(HELLO.to_vec()),
        Just(b"\x05\x02\x00\x02".to_vec()),
        Just(TO_PEER.to_vec()),
        Just(b"\x05\x01\x00\x03\xff".to_vec()),
        Just(b"CONNECT ".to_vec()),
        Just(b"example.org:443 HTTP/1.1\r\n".to_vec()),
        Just(b"Proxy-Authorization: Basic YTpi\r\n\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..300),
    ];
    prop::collection::vec(words, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Arbitrary bytes in arbitrary pieces: no panic, one verdict, independent of the pieces.
    #[test]
    fn garbage_is_refused_or_waited_for(pieces in pieces(), with_users in any::<bool>()) {
        let users = with_users.then(|| Arc::new(Users::parse("a:b").unwrap()));
        let verdict = |front: &mut Front, parts: &[Vec<u8>]| {
            parts.iter().map(|part| front.receive(part)).find(|progress| *progress != Progress::More)
        };
        let whole = pieces.concat();
        let mut at_once = Front::new(users.clone());
        let mut apart = Front::new(users);
        let single: Vec<Vec<u8>> = whole.iter().map(|byte| vec![*byte]).collect();
        prop_assert_eq!(verdict(&mut at_once, &[whole]), verdict(&mut apart, &single));
        prop_assert_eq!(at_once.take_reply(), apart.take_reply());
    }
}
