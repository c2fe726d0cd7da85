//! The proxy with ends that take little: one that is slow is waited for, one that only sips is given up.
#![allow(clippy::unwrap_used)]

mod bench;

use anabranch_service::LEAST_RATE;
use anabranch_service::Pace;
use anabranch_service::proxy::Outcome;
use anabranch_units::{Duration, Rate};
use bench::{Bench, to};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

/// Longest time without progress [s].
const STALL: u64 = 200;

fn bench(address: std::net::SocketAddr, least: Rate) -> Bench {
    let mut settings = to(address);
    settings.timeouts.idle = Pace { stall: Duration::from_secs(STALL), least };
    Bench::new(settings)
}

/// Second at which a client is given up that takes so many bytes a second of a long download; `None` if it is not while
/// one at half the least rate would be.
fn client_given_up(rate: i64, least: Rate) -> Option<u64> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Fails once the proxy has given the client up.
        let _ = stream.write_all(&vec![0; 64 << 20]);
    });
    let mut bench = bench(address, least);
    let id = bench.open();
    bench.peer(id).thirst = Some(0);
    bench.until("a buffer is full", |bench| bench.held() > 5 << 20);
    bench.settle();
    let end = (1..=STALL * 5 / 2).find(|_| {
        let thirst = &mut bench.peer(id).thirst;
        *thirst = thirst.map(|thirst| thirst + rate);
        bench.skip(1);
        bench.proxy.sessions() == 0
    });
    assert_eq!(bench.proxy.ended(Outcome::Idle), u64::from(end.is_some()));
    drop(bench);
    served.join().unwrap();
    end
}

/// At half of the least rate, half of each second counts. Data come in pieces of up to 64 kB, which last for a minute.
#[test]
fn a_client_that_only_sips_is_given_up() {
    let end = client_given_up(1000, LEAST_RATE).unwrap();
    assert!((STALL * 3 / 2..=STALL * 9 / 4).contains(&end), "after {end} s");
    assert_eq!(client_given_up(3000, LEAST_RATE), None, "it is slow");
    assert_eq!(client_given_up(1000, Rate::from_bps(0)), None, "without a least rate");
}

/// The service says a word after a long silence, when the path is out for a while: the pause was nobody's fault, and
/// the wait for the client begins with it.
#[test]
fn patience_is_full_when_something_begins_to_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (go, wait) = mpsc::channel::<()>();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut one = [0];
        stream.read_exact(&mut one).unwrap();
        wait.recv().unwrap();
        stream.write_all(b"a word").unwrap();
        stream
    });
    let mut bench = bench(address, LEAST_RATE);
    let id = bench.open();
    bench.send(id, b"x");
    bench.until("asked", |bench| bench.proxy.sessions() == 1 && bench.peer(id).to_send.is_empty());
    bench.settle();
    bench.skip(STALL - 10);
    bench.cut = true;
    go.send(()).unwrap();
    let stream = served.join().unwrap();
    bench.until("said", |bench| bench.held() > 0);
    bench.skip(20);
    assert_eq!(bench.proxy.sessions(), 1, "the client has had 20 s for its word");
    bench.cut = false;
    bench.skip(60);
    assert_eq!(bench.peer(id).read, b"a word");
    bench.skip(STALL);
    assert_eq!((bench.proxy.sessions(), bench.proxy.ended(Outcome::Idle)), (0, 1));
    drop(stream);
}
