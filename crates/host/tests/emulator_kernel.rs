//! The emulator between two kernels.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_host::emulator::{CaptureOptions, Options};
use anabranch_units::Duration;
use common::{hosts, link, path, ping, spec, start, start_with};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

#[test]
fn tcp_of_the_kernel_crosses_in_both_families() {
    let Some(mut hosts) = hosts() else { return };
    hosts.ipv6 = true;
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

#[test]
fn a_recording_holds_each_packet_at_both_hosts_with_its_fate() {
    let Some(hosts) = hosts() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut wlan = path("wlan", &link(50, 2));
    wlan.up.loss = anabranch_net::LossModel::List(vec![1, 3]);
    let options = Options {
        capture: Some(CaptureOptions {
            directory: directory.path().join("pcap"),
            application: "test".to_owned(),
            comment: "a comment".to_owned(),
        }),
        ..Options::default()
    };
    let emulator = start_with(&hosts, &spec(vec![wlan]), options);
    let answered = ping(&hosts, "10.77.1.1", 5);
    let report = emulator.stop().unwrap();
    let capture = report.capture.unwrap();
    assert_eq!((capture.missed, &capture.failure), (0, &None));
    assert_eq!(answered, 3, "the second and the fourth are lost");
    let records = |file: usize| {
        let bytes = std::fs::read(&capture.files[file]).unwrap();
        let mut reader = anabranch_capture::Reader::new(std::io::Cursor::new(bytes)).unwrap();
        std::iter::from_fn(|| reader.next_record().unwrap()).count()
    };
    assert_eq!((records(0), records(1)), (5 + 3, 3 + 3));
    assert_eq!(capture.packets, 14);
    let tshark = std::process::Command::new("tshark")
        .args(["-r", capture.files[0].to_str().unwrap(), "-Y", "frame.comment contains \"random loss on wlan/up\""])
        .output();
    match tshark {
        Err(error) => println!("SKIPPED: no tshark to read the file: {error}"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
        }
    }
}
