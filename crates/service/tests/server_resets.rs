//! The server where a client gives up: bytes that had arrived before, and that the client knows to have arrived, were
//! received, although a reply that nobody reads had kept the service from reading them.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{Config, FastClose};
use anabranch_service::{Form, Journal, Server, ServerLimits, Service, Site};
use anabranch_units::Duration;
use common::{Pair, Script};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// MP_FASTCLOSE on a RST and on an ACK, and the RST of plain TCP.
const KINDS: [fn(&mut Config); 3] =
    [|_| (), |client| client.fast_close = FastClose::Ack, |client| client.multipath = false];

/// A log that the test can read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(piece)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Bytes received, by the line about the reset.
    fn received(&self) -> Option<u64> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut resets = lines.filter(|line| line["event"] == "reset");
        resets.next()?["connection_stats"]["bytes_received"].as_u64()
    }
}

/// Returns a server with all services, and its log.
fn server() -> (Server, Log) {
    let services = BTreeMap::from([
        (7, Service::Echo),
        (9, Service::Discard),
        (19, Service::Source(50 << 20)),
        (80, Service::Http(Arc::new(Site::new(None)))),
    ]);
    let log = Log::default();
    (Server::new(services, ServerLimits::default(), Journal::none().to(Form::Lines, Box::new(log.clone()))), log)
}

/// The client gives up after a second in which everything has come to rest.
#[test]
fn data_that_waited_for_a_reader_counts_as_received() {
    let behind_a_reply = b"GET /bytes/50MiB HTTP/1.1\r\nHost: h\r\n\r\n\
        PUT /discard HTTP/1.1\r\nHost: h\r\nContent-Length: 700\r\n\r\n";
    let upload = [behind_a_reply.as_slice(), &[b'x'; 700]].concat();
    // The echo stops when its send buffer, the client's receive buffer and its own hold 256 KiB each.
    for (port, said) in [(7, vec![b'x'; 2 << 20]), (9, vec![b'x'; 700]), (19, vec![b'x'; 700]), (80, upload)] {
        for change in KINDS {
            let (server, log) = server();
            let mut pair = Pair::with_client(Script::new(port, &[&said]).not_reading(), server, change);
            pair.run_for(Duration::from_secs(10));
            let id = pair.client.id.unwrap();
            let acknowledged = pair.endpoints[0].connection_stats(id).unwrap().data_acked;
            assert!(acknowledged >= 700, "port {port}: {acknowledged}");
            pair.client(|_, cx| cx.endpoint.abort(cx.now, id));
            assert!(pair.run_until(Duration::from_secs(10), |pair| pair.server.open() == 0), "port {port}");
            let totals = pair.server.totals();
            assert_eq!((totals.reset, totals.bytes_received), (1, acknowledged), "port {port}");
            assert_eq!(log.received(), Some(acknowledged), "port {port}");
        }
    }
}

/// The last segments before the reset come in the same round of the server's loop.
#[test]
fn data_that_comes_with_the_reset_counts_as_received() {
    for change in KINDS {
        let (server, log) = server();
        let mut pair = Pair::with_client(Script::new(9, &[&[b'x'; 700]]), server, change);
        let id = pair.client.id.unwrap();
        let second = Duration::from_secs(1);
        assert!(pair.run_until(second, |pair| pair.endpoints[0].connection_stats(id).is_some_and(|it| it.sent == 700)));
        pair.client(|_, cx| cx.endpoint.abort(cx.now, id));
        assert!(pair.run_until(Duration::from_secs(10), |pair| pair.server.totals().reset == 1));
        assert_eq!((pair.server.totals().bytes_received, log.received()), (700, Some(700)));
    }
}
