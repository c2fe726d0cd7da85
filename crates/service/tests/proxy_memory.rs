//! The proxy's memory: bounded at any time, with room for every client that reads.
#![allow(clippy::unwrap_used)]

mod bench;

use anabranch_engine::Event;
use anabranch_service::proxy::{Limit, Outcome};
use anabranch_units::Bytes;
use bench::{Bench, pattern, peer_ip, to};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const LIMIT: u64 = 8 << 20;
/// Length of the answer that an honest client asks for.
const ANSWER: usize = 3 << 20;

/// A service that reads one byte and does what it says: `s` sends without end, `a` answers, anything else never reads
/// again.
fn service(listener: TcpListener) {
    let treat = |mut stream: TcpStream| {
        let mut wish = [0];
        if stream.read_exact(&mut wish).is_err() {
            return;
        }
        match &wish {
            b"s" => while stream.write_all(&[7; 65536]).is_ok() {},
            b"a" => drop(stream.write_all(&pattern(ANSWER))),
            _ => loop {
                std::thread::park();
            },
        }
    };
    for stream in listener.incoming().map_while(Result::ok) {
        std::thread::spawn(move || treat(stream));
    }
}

fn bench() -> Bench {
    bench_with(LIMIT)
}

fn bench_with(limit: u64) -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    std::thread::spawn(|| service(listener));
    let mut settings = to(address);
    settings.limits.memory = Bytes::new(2 * limit);
    settings.limits.memory_per_client = Bytes::new(limit);
    Bench::new(settings)
}

/// A client that reads gets the whole answer.
fn is_served(bench: &mut Bench, number: u8) {
    let id = bench.open_from(peer_ip(number));
    bench.send(id, b"a");
    bench.until("the answer", |bench| bench.peer(id).read.len() == ANSWER || bench.peer(id).has(Event::Reset));
    assert!(bench.peer(id).read == pattern(ANSWER), "{} bytes", bench.peer(id).read.len());
    bench.peer(id).finish = true;
    bench.until("its end", |bench| bench.peer(id).has(Event::Closed));
}

#[test]
fn clients_that_do_not_read_never_hold_more_than_the_limit() {
    let mut bench = bench();
    let deaf: Vec<_> = (0..40)
        .map(|_| {
            let id = bench.open();
            bench.peer(id).deaf = true;
            bench.send(id, b"s");
            id
        })
        .collect();
    bench.until("the limit is made use of", |bench| bench.held() > LIMIT * 3 / 4);
    // The same client and another.
    is_served(&mut bench, 1);
    is_served(&mut bench, 2);
    assert!(bench.most_held <= LIMIT * 11 / 10, "{} bytes held, {LIMIT} allowed", bench.most_held);
    assert_eq!(bench.proxy.evicted(Limit::ClientMemory), 0, "nobody has to go: the service is not read");
    for id in deaf {
        let now = bench.now();
        bench.other.abort(now, id);
    }
    bench.until("all have gone", |bench| bench.proxy.sessions() == 0);
    assert_eq!((bench.held(), bench.proxy.held()), (0, 0));
}

#[test]
fn clients_that_send_what_nobody_reads_are_cut_off_at_the_limit() {
    let mut bench = bench();
    let hogs: Vec<_> = (0..12)
        .map(|_| {
            let id = bench.open();
            bench.send(id, &[b'x'; 24 << 20]);
            id
        })
        .collect();
    bench.until("the worst of them is cut off", |bench| bench.proxy.evicted(Limit::ClientMemory) > 0);
    is_served(&mut bench, 2);
    assert!(bench.most_held <= LIMIT * 11 / 10, "{} bytes held, {LIMIT} allowed", bench.most_held);
    assert_eq!(bench.proxy.ended(Outcome::OutOfMemory), bench.proxy.evicted(Limit::ClientMemory));
    let reset = hogs.iter().filter(|id| bench.peers[*id].has(Event::Reset)).count();
    assert!(reset > 0, "they are told");
}

/// Out-of-order data is held as well, before any event reports it.
#[test]
fn what_waits_out_of_order_counts() {
    let mut bench = bench();
    bench.holes = Some(BTreeMap::new());
    for _ in 0..12 {
        let id = bench.open();
        bench.send(id, &[b'x'; 5 << 20]);
    }
    bench.until("the worst is cut off", |bench| bench.proxy.evicted(Limit::ClientMemory) > 0);
    assert!(bench.most_held <= LIMIT * 11 / 10, "{} bytes held, {LIMIT} allowed", bench.most_held);
}

/// A round that read what one service has, or all that there is room for, would keep every other client waiting.
#[test]
fn nobody_is_read_from_for_long_while_others_wait() {
    const CLIENTS: u64 = 4;
    let mut bench = bench_with(64 << 20);
    let deaf: Vec<_> = (0..CLIENTS).map(|_| bench.open()).collect();
    for id in deaf {
        bench.peer(id).deaf = true;
        bench.send(id, b"s");
    }
    bench.until("much is held", |bench| bench.held() > 16 << 20);
    let (turn, round) = (256 << 10, 1 << 20);
    // The memory held exceeds the data by the overhead of keeping it.
    let most = (CLIENTS * turn + round + turn) * 5 / 4;
    assert!(bench.most_at_once <= most, "{} bytes in one round, {most} allowed", bench.most_at_once);
    is_served(&mut bench, 1);
}
