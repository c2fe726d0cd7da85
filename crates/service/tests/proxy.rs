//! The proxy from its engine's clients to a TCP service: streams, every order of closing, bounds, drain.
#![allow(clippy::unwrap_used)]

mod bench;

use anabranch_engine::Event;
use anabranch_service::proxy::{Direction, Limit, Outcome, Settings};
use anabranch_units::Bytes;
use bench::{Bench, PORT, get, pattern, peer_ip, proxy_ip, read_all, to};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

const LARGE: usize = 20 << 20;

/// A service that treats one connection after the other like this.
fn service<T: Send + 'static>(
    connections: usize,
    treat: impl Fn(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let work = move || (0..connections).map(|_| treat(listener.accept().unwrap().0)).collect();
    (address, std::thread::spawn(work))
}

fn reset(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_large_stream_each_way_and_the_client_closes_first() {
    let (address, served) = service(1, |stream| {
        let upload = read_all(&stream).unwrap();
        (&stream).write_all(&pattern(LARGE)).unwrap();
        upload
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(LARGE / 2));
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed));
    bench.until("gone", |bench| bench.proxy.sessions() == 0);
    assert!(bench.peer(id).read == pattern(LARGE), "the download, {} bytes", bench.peer(id).read.len());
    assert!(served.join().unwrap() == [pattern(LARGE / 2)]);
    assert_eq!(bench.proxy.ended(Outcome::Closed), 1);
    assert_eq!(bench.engine.subflow_stats(id).len(), 0, "statistics of connections that are gone are not kept");
}

#[test]
fn the_service_closes_first_and_still_gets_everything() {
    let (address, served) = service(1, |stream| {
        (&stream).write_all(b"greeting").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_all(&stream).unwrap()
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.until("the service has finished", |bench| bench.peer(id).has(Event::PeerFinished));
    assert_eq!(bench.peer(id).read, b"greeting");
    bench.send(id, &pattern(LARGE));
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed) && bench.proxy.sessions() == 0);
    assert!(served.join().unwrap()[0] == pattern(LARGE));
    assert_eq!(bench.proxy.ended(Outcome::Closed), 1);
}

#[test]
fn both_close_at_once_with_data_under_way() {
    let (address, served) = service(1, |stream| {
        let writer = stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            (&writer).write_all(&pattern(LARGE)).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let upload = read_all(&stream).unwrap();
        writing.join().unwrap();
        upload
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(LARGE));
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed) && bench.proxy.sessions() == 0);
    assert!(bench.peer(id).read == pattern(LARGE));
    assert!(served.join().unwrap()[0] == pattern(LARGE));
}

#[test]
fn an_empty_stream_each_way() {
    let (address, served) = service(1, |stream| read_all(&stream).unwrap());
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed) && bench.proxy.sessions() == 0);
    assert_eq!(served.join().unwrap(), [b""]);
}

#[test]
fn a_reset_of_the_service_reaches_the_client() {
    let (address, served) = service(1, |mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        reset(&stream);
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, b"hello");
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    assert!(!bench.peer(id).has(Event::PeerFinished), "what was cut off does not look whole");
    assert_eq!(bench.proxy.ended(Outcome::TargetReset), 1);
    served.join().unwrap();
}

#[test]
fn a_reset_of_the_client_reaches_the_service() {
    let (heard, hears) = mpsc::channel();
    let (address, served) = service(1, move |mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        heard.send(()).unwrap();
        read_all(&stream).map_err(|error| error.kind())
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, b"hello");
    bench.until("relayed", |_| hears.try_recv().is_ok());
    let now = bench.now();
    bench.other.abort(now, id);
    bench.until("gone", |bench| bench.proxy.sessions() == 0);
    assert_eq!(served.join().unwrap(), [Err(std::io::ErrorKind::ConnectionReset)]);
    assert_eq!(bench.proxy.ended(Outcome::ClientReset), 1);
}

#[test]
fn an_early_answer_arrives_whole_while_the_client_still_sends() {
    // Like a web server that refuses an upload: it replies, closes, and reads nothing more.
    let (address, served) = service(1, |mut stream| {
        stream.read_exact(&mut [0; 1000]).unwrap();
        stream.write_all(&pattern(100_000)).unwrap();
        // Everything that has been sent is read: the answer is not lost here already.
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(1000));
    bench.until("the answer", |bench| bench.peer(id).has(Event::PeerFinished));
    served.join().unwrap();
    for _ in 0..100 {
        bench.send(id, &pattern(1000));
        bench.turn();
    }
    bench.until("the proxy has taken all", |bench| {
        bench.engine.connection_stats(id).is_some_and(|it| it.delivered == 101_000)
    });
    bench.settle();
    assert!(bench.peer(id).read == pattern(100_000));
    assert!(!bench.peer(id).has(Event::Reset), "it is not punished for what it was still sending");
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.proxy.sessions() == 0 && bench.peer(id).has(Event::Closed));
}

#[test]
fn a_client_that_does_not_read_slows_the_service_down() {
    let (progress, told) = mpsc::channel();
    let (address, served) = service(1, move |mut stream| {
        let (data, mut sent) = (pattern(64 << 20), 0);
        while sent < data.len() {
            sent += stream.write(&data[sent..(sent + 65536).min(data.len())]).unwrap();
            progress.send(sent).unwrap();
        }
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.peer(id).deaf = true;
    bench.until("a buffer is full", |bench| bench.held() > 5 << 20);
    bench.settle();
    let held = told.try_iter().last().unwrap();
    // Two engine buffers, the kernel's two, and what the relay holds.
    assert!(held < 40 << 20, "{held} bytes taken for a client that reads none");
    bench.peer(id).deaf = false;
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed) && bench.proxy.sessions() == 0);
    assert!(bench.peer(id).read == pattern(64 << 20));
    served.join().unwrap();
}

#[test]
fn a_service_that_does_not_read_slows_the_client_down() {
    let (go, wait) = mpsc::channel();
    let (address, served) = service(1, move |stream| {
        wait.recv().unwrap();
        read_all(&stream).unwrap()
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(64 << 20));
    bench.peer(id).finish = true;
    bench.settle();
    let left: usize = bench.peer(id).to_send.iter().map(bytes::Bytes::len).sum();
    assert!(left > 30 << 20, "only {left} bytes were not taken for a service that reads none");
    go.send(()).unwrap();
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed) && bench.proxy.sessions() == 0);
    assert!(served.join().unwrap()[0] == pattern(64 << 20));
}

#[test]
fn without_a_service_the_client_is_reset_and_that_is_counted() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, b"anyone?");
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    assert_eq!(bench.proxy.ended(Outcome::ConnectFailed), 1);
    assert_eq!(bench.proxy.sessions(), 0);
}

#[test]
fn of_a_service_with_several_addresses_one_that_answers_is_enough() {
    let (address, served) = service(1, |stream| read_all(&stream).unwrap());
    let mut settings = to(address);
    // Usually ::1 and 127.0.0.1, of which only the second listens.
    let Direction::Listen { host, .. } = &mut settings.direction else { unreachable!() };
    *host = "localhost".into();
    let mut bench = Bench::new(settings);
    let id = bench.open();
    bench.send(id, b"hello");
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed));
    assert_eq!(served.join().unwrap(), [b"hello"]);
}

#[test]
fn the_service_is_told_who_the_client_is() {
    let (address, served) = service(1, |stream| read_all(&stream).unwrap());
    let mut settings = to(address);
    let Direction::Listen { proxy_protocol, .. } = &mut settings.direction else { unreachable!() };
    *proxy_protocol = true;
    let mut bench = Bench::new(settings);
    let id = bench.open();
    bench.send(id, b"hello");
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed));
    let got = served.join().unwrap().remove(0);
    let local = bench.other.subflow_stats(id)[0].local;
    assert_eq!(local.ip(), peer_ip(1));
    let header = anabranch_service::proxy::proxy_protocol_header(local, SocketAddr::new(proxy_ip(1), PORT));
    assert_eq!(got, [&header[..], b"hello"].concat());
}

fn limited(address: SocketAddr, change: impl FnOnce(&mut Settings)) -> Bench {
    let mut settings = to(address);
    change(&mut settings);
    Bench::new(settings)
}

#[test]
fn a_client_too_many_is_refused_and_the_others_are_not_harmed() {
    let (address, served) = service(3, |stream| read_all(&stream).unwrap());
    let mut bench = limited(address, |settings| settings.limits.connections_per_client = 2);
    let (first, second) = (bench.open(), bench.open());
    bench.until("two are in", |bench| bench.proxy.sessions() == 2);
    let third = bench.open();
    bench.until("the third is refused", |bench| bench.peer(third).has(Event::Reset));
    assert_eq!(bench.proxy.limit_hits(Limit::ClientConnections), 1);
    bench.peer(first).finish = true;
    bench.until("the first is closed", |bench| bench.proxy.sessions() == 1);
    let fourth = bench.open();
    for id in [second, fourth] {
        bench.peer(id).finish = true;
    }
    bench.until("all are closed", |bench| bench.proxy.sessions() == 0);
    assert_eq!(bench.proxy.ended(Outcome::Closed), 3);
    served.join().unwrap();
}

/// The side that closes first waits for a repeated FIN. That is the engine's business, not the client's.
#[test]
fn a_closed_connection_does_not_count_while_it_waits() {
    let (address, served) = service(5, |mut stream| stream.write_all(b"done").unwrap());
    let mut bench = limited(address, |settings| settings.limits.connections_per_client = 1);
    bench.speak_plainly();
    for _ in 0..5 {
        let id = bench.open();
        bench.until("it ends", |bench| bench.peer(id).has(Event::PeerFinished) || bench.peer(id).has(Event::Reset));
        assert_eq!(bench.peer(id).read, b"done");
        bench.peer(id).finish = true;
        let waiting = bench.engine.connection_count();
        assert!(waiting > 0, "there is something to wait for");
        bench.until("the session is over", |bench| bench.proxy.sessions() == 0);
        assert_eq!(bench.engine.connection_count(), waiting, "before the engine's part is");
    }
    assert_eq!((bench.proxy.ended(Outcome::Closed), bench.proxy.limit_hits(Limit::ClientConnections)), (5, 0));
    served.join().unwrap();
}

#[test]
fn memory_has_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stuck = listener.local_addr().unwrap();
    // The service does not accept, so the client's data piles up: in the kernel first, then here.
    let mut bench = limited(stuck, |settings| {
        settings.limits.memory = Bytes::new(3 << 20);
        settings.limits.memory_per_client = Bytes::new(2 << 20);
    });
    let hog = bench.open();
    bench.send(hog, &pattern(64 << 20));
    bench.until("who holds most has to go", |bench| bench.proxy.ended(Outcome::OutOfMemory) == 1);
    bench.until("reset", |bench| bench.peer(hog).has(Event::Reset));
    bench.skip(2);
    assert_eq!(bench.proxy.ended(Outcome::OutOfMemory), 1);
    let id = bench.open();
    bench.until("there is room again", |bench| bench.proxy.sessions() == 1);
    assert!(!bench.peer(id).has(Event::Reset));
}

#[test]
fn an_idle_connection_is_ended_and_a_busy_one_is_not() {
    let (address, served) = service(2, |mut stream| {
        let mut one = [0; 1];
        while stream.read(&mut one).is_ok_and(|length| length > 0) {
            stream.write_all(&one).unwrap();
        }
    });
    let mut bench =
        limited(address, |settings| settings.timeouts.idle.stall = anabranch_units::Duration::from_secs(20));
    let id = bench.open();
    for count in 1..=4 {
        bench.send(id, b"x");
        bench.until("echo", |bench| bench.peer(id).read.len() == count);
        bench.skip(15);
        assert_eq!(bench.proxy.sessions(), 1, "it was not idle for 20 s");
    }
    bench.skip(6);
    assert_eq!((bench.proxy.sessions(), bench.proxy.ended(Outcome::Idle)), (0, 1));
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    drop(served);
}

#[test]
fn a_drain_lets_those_finish_that_run() {
    let (address, served) = service(1, |stream| read_all(&stream).unwrap());
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, b"first half, ");
    bench.until("it runs", |bench| bench.proxy.sessions() == 1 && bench.peer(id).to_send.is_empty());
    bench.signal();
    assert!(!anabranch_host::Application::is_finished(&bench.proxy));
    let late = bench.open();
    bench.until("the late one is refused", |bench| bench.peer(late).has(Event::Reset));
    bench.skip(5);
    bench.send(id, b"second half");
    bench.peer(id).finish = true;
    bench.until("finished", |bench| anabranch_host::Application::is_finished(&bench.proxy));
    assert_eq!(served.join().unwrap(), [b"first half, second half"]);
    assert_eq!(bench.proxy.ended(Outcome::Closed), 1);
}

#[test]
fn a_drain_has_an_end_and_a_second_signal_ends_it_at_once() {
    for second in [false, true] {
        let (address, _served) = service(1, |stream| read_all(&stream).map_err(|error| error.kind()));
        let mut bench = Bench::new(to(address));
        let id = bench.open();
        bench.until("it runs", |bench| bench.proxy.sessions() == 1);
        bench.settle();
        bench.signal();
        if second {
            bench.signal();
        } else {
            bench.skip(28);
            assert!(!anabranch_host::Application::is_finished(&bench.proxy));
            bench.skip(4);
        }
        assert!(anabranch_host::Application::is_finished(&bench.proxy));
        bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
        assert_eq!(bench.proxy.ended(Outcome::Drained), 1);
    }
}

#[test]
fn metrics_and_health_over_http() {
    let (address, served) = service(1, |stream| read_all(&stream).unwrap());
    let mut bench = limited(address, |settings| settings.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let metrics = bench.proxy.metrics_address().unwrap();
    let id = bench.open();
    bench.send(id, &pattern(5000));
    bench.peer(id).finish = true;
    bench.until("closed", |bench| bench.peer(id).has(Event::Closed) && bench.proxy.sessions() == 0);
    served.join().unwrap();
    let mut fetch = |path: &'static str| {
        let page = std::thread::spawn(move || get(metrics, path));
        bench.until("an answer", |_| page.is_finished());
        page.join().unwrap()
    };
    let text = fetch("/metrics");
    for line in [
        "anabranch_bytes_total{direction=\"from_client\"} 5000",
        "anabranch_connections_ended_total{outcome=\"closed\"} 1",
        "anabranch_handshakes_total{protocol=\"mptcp\"} 1",
        "anabranch_fallbacks_total{reason=\"syn-ack\"} 0",
        "anabranch_limit_hits_total{limit=\"memory\"} 0",
        "anabranch_connections 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|there| there == line || there.strip_suffix(".0") == Some(line)), "{line}\n{text}");
    }
    assert!(fetch("/healthz").ends_with("\r\n\r\nok\n"));
    assert!(fetch("/nosuch").starts_with("HTTP/1.1 404 "));
    // A page of another site, whose name leads here (DNS rebinding).
    let mut ask = |request: &'static str| {
        let asked = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(metrics).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        bench.until("an answer", |_| asked.is_finished());
        asked.join().unwrap()
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("anabranch_bytes_total"), "{answer}");
    assert!(ask("GET /healthz HTTP/1.1\r\nHost: localhost:9\r\n\r\n").ends_with("ok\n"));
    // Visitors that say half of it take the places of each other, not that of one who asks.
    let half: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(metrics).unwrap()).collect();
    half.iter().for_each(|mut stream| stream.write_all(b"GET /hea").unwrap());
    assert!(ask("GET /healthz HTTP/1.1\r\nHost: [::1]\r\n\r\n").ends_with("ok\n"));
    bench.signal();
}
