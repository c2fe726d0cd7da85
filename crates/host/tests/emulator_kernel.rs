//! The emulator between two kernels.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_units::Duration;
use common::{hosts, link, path, spec, start};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

#[test]
fn tcp_of_the_kernel_crosses_in_both_families() {
    let Some(hosts) = hosts() else { return };
    let emulator = start(&hosts, &spec(vec![path("wlan", &link(50, 5))]));
    for address in ["10.77.1.1:5001", "[fd77:0:0:1::1]:5001"] {
        let listener = hosts.server.run(move || TcpListener::bind(address)).unwrap();
        let server = hosts.server.spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut got = Vec::new();
            socket.read_to_end(&mut got).unwrap();
            got
        });
        let sent: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        hosts.client.spawn(move || TcpStream::connect(address).unwrap().write_all(&copy).unwrap()).join().unwrap();
        assert!(server.join().unwrap() == sent, "every byte arrives as it was sent over {address}");
    }
    let report = emulator.stop().unwrap();
    let up = &report.paths[0].traffic.up;
    assert!(up.delivered_bytes.get() > 400_000, "{up:?}");
    assert!(up.delay.p50 >= Duration::from_millis(5), "nothing is faster than its link: {up:?}");
    assert_eq!(up.queue_drops, Some(0));
}
