//! The proxy where one end resets: what it had said before, and the other end was told had arrived, is passed on first.
#![allow(clippy::unwrap_used)]

mod bench;

use anabranch_engine::Event;
use anabranch_service::proxy::Outcome;
use bench::{Bench, pattern, to};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A service that treats its one connection like this, over a receive buffer of 64 kB.
fn service<T: Send + 'static>(treat: impl FnOnce(TcpStream) -> T + Send + 'static) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).set_recv_buffer_size(64 << 10).unwrap();
    let address = listener.local_addr().unwrap();
    (address, std::thread::spawn(move || treat(listener.accept().unwrap().0)))
}

/// Reads to the end or to the error.
fn read_all(mut stream: &TcpStream) -> (Vec<u8>, Option<ErrorKind>) {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return (bytes, None),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) => return (bytes, Some(error.kind())),
        }
    }
}

/// Lets time pass until it holds: with both engines done, nothing else moves the clock.
fn in_time(bench: &mut Bench, what: &str, mut holds: impl FnMut(&mut Bench) -> bool) {
    bench.until(what, |bench| {
        bench.skip(1);
        holds(bench)
    });
}

/// 700 bytes and the reset come before the service is connected; many more while it does not read.
#[test]
fn the_service_reads_what_the_client_said_before_it_gave_up() {
    for length in [700, 4 << 20] {
        let (go, wait) = mpsc::channel();
        let (address, served) = service(move |stream| {
            wait.recv().unwrap();
            read_all(&stream)
        });
        let mut bench = Bench::new(to(address));
        let id = bench.open();
        bench.send(id, &pattern(length));
        bench.peer(id).quits = true;
        bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
        assert_eq!(bench.proxy.ended(Outcome::ClientReset), 0, "not before the service has everything");
        go.send(()).unwrap();
        in_time(&mut bench, "the service knows", |_| served.is_finished());
        let (bytes, end) = served.join().unwrap();
        assert!(bytes == pattern(length), "{} of {length} bytes", bytes.len());
        assert_eq!(end, Some(ErrorKind::ConnectionReset), "what was cut off does not look whole");
        in_time(&mut bench, "gone", |bench| bench.proxy.sessions() == 0);
        assert_eq!((bench.proxy.ended(Outcome::ClientReset), bench.proxy.held()), (1, 0));
    }
}

/// The client had closed its direction before the reset: its stream is whole, and ends in order.
#[test]
fn a_stream_that_had_ended_is_whole_although_the_client_gave_up() {
    let (go, wait) = mpsc::channel();
    let (address, served) = service(move |stream| {
        wait.recv().unwrap();
        read_all(&stream)
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(4 << 20));
    bench.peer(id).finish = true;
    bench.until("all has come", |bench| bench.other.connection_stats(id).is_some_and(|it| it.data_acked == 4 << 20));
    bench.settle();
    bench.peer(id).quits = true;
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    go.send(()).unwrap();
    in_time(&mut bench, "the service knows", |_| served.is_finished());
    assert_eq!(served.join().unwrap(), (pattern(4 << 20), None));
    in_time(&mut bench, "gone", |bench| bench.proxy.sessions() == 0);
}

/// A service that answers before it reads on would wait for a reader for ever.
#[test]
fn an_answer_to_a_client_that_gave_up_is_dropped() {
    const ANSWER: usize = 20 << 20;
    let (go, wait) = mpsc::channel();
    let (address, served) = service(move |mut stream| {
        wait.recv().unwrap();
        stream.write_all(&pattern(ANSWER)).unwrap();
        read_all(&stream)
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(4 << 20));
    bench.peer(id).quits = true;
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    go.send(()).unwrap();
    in_time(&mut bench, "the service knows", |_| served.is_finished());
    let (bytes, end) = served.join().unwrap();
    assert!(bytes == pattern(4 << 20), "{} bytes", bytes.len());
    assert_eq!(end, Some(ErrorKind::ConnectionReset));
}

/// A service that does not read keeps its session no longer than any other.
#[test]
fn a_service_that_never_reads_is_given_up() {
    let (go, wait) = mpsc::channel::<()>();
    let (address, served) = service(move |_stream| wait.recv().is_err());
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.send(id, &pattern(4 << 20));
    bench.peer(id).quits = true;
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    bench.skip(800);
    assert_eq!(bench.proxy.sessions(), 1, "the service may still read");
    bench.skip(200);
    assert_eq!((bench.proxy.sessions(), bench.proxy.held()), (0, 0));
    assert_eq!(bench.proxy.ended(Outcome::ClientReset), 1);
    drop(go);
    served.join().unwrap();
}

/// The client reads late, so that most of it waits in the proxy and in its socket when the service resets.
#[test]
fn the_client_reads_what_the_service_said_before_it_reset() {
    let (said, told) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (address, served) = service(move |mut stream| {
        let data = pattern(64 << 20);
        stream.set_nonblocking(true).unwrap();
        let mut sent = 0;
        // Everything is full once nothing was taken while the bench came to rest.
        while wait.try_recv().is_err() {
            match stream.write(&data[sent..]) {
                Ok(length) => sent += length,
                Err(_) => std::thread::yield_now(),
            }
        }
        let arrived = sent - anabranch_host::unacknowledged(&stream);
        socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        said.send(arrived).unwrap();
    });
    let mut bench = Bench::new(to(address));
    let id = bench.open();
    bench.peer(id).deaf = true;
    bench.until("a buffer is full", |bench| bench.held() > 5 << 20);
    bench.settle();
    go.send(()).unwrap();
    served.join().unwrap();
    let arrived = told.recv().unwrap();
    bench.settle();
    assert!(!bench.peer(id).has(Event::Reset), "not before the client has everything");
    bench.peer(id).deaf = false;
    bench.until("reset", |bench| bench.peer(id).has(Event::Reset));
    bench.settle();
    let read = &bench.peer(id).read;
    assert!(read.len() >= arrived && arrived > 5 << 20, "{} of {arrived} bytes", read.len());
    assert!(*read == pattern(read.len()));
    assert_eq!((bench.proxy.ended(Outcome::TargetReset), bench.proxy.sessions()), (1, 0));
    assert!(!bench.peer(id).has(Event::PeerFinished), "what was cut off does not look whole");
}
