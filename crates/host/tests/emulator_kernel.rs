//! The emulator between two kernels.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_host::Namespace;
use anabranch_host::emulator::{CaptureOptions, Options};
use anabranch_net::Change;
use anabranch_paths::{Affected, NetworkSpec};
use anabranch_units::Duration;
use common::{Hosts, hosts, link, path, ping, start, start_with};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Limit that only a lost packet reaches.
const GUARD: std::time::Duration = std::time::Duration::from_secs(120);

#[test]
fn tcp_of_the_kernel_crosses_between_tun_devices() {
    let Some(hosts) = hosts() else { return };
    tcp_crosses(hosts);
}

#[test]
fn tcp_of_the_kernel_crosses_between_veth_pairs() {
    let Some(mut hosts) = hosts() else { return };
    hosts.emulator = Some(Namespace::new("emulator").unwrap());
    tcp_crosses(hosts);
}

/// Both families, both ways, byte for byte.
fn tcp_crosses(mut hosts: Hosts) {
    hosts.ipv6 = true;
    let emulator = start(&hosts, &NetworkSpec::new(vec![path("wlan", &link(50, 5))]));
    for address in ["10.77.1.1:5001", "[fd77:0:0:1::1]:5001"] {
        let listener = hosts.server.run(move || TcpListener::bind(address)).unwrap();
        let server = hosts.server.spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut got = Vec::new();
            socket.read_to_end(&mut got).unwrap();
            socket.write_all(&got).unwrap();
        });
        let sent: Vec<u8> = (0..400_000u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        let client = hosts.client.spawn(move || {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.write_all(&copy).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let mut got = Vec::new();
            socket.read_to_end(&mut got).unwrap();
            got
        });
        assert!(client.join().unwrap() == sent, "every byte comes back as it was sent over {address}");
        server.join().unwrap();
    }
    let report = emulator.stop().unwrap();
    for traffic in [&report.paths[0].traffic.up, &report.paths[0].traffic.down] {
        assert!(traffic.delivered_bytes.get() > 800_000, "{traffic:?}");
        assert!(traffic.delivered_bytes.get() / traffic.delivered < 1500, "no packet is above the MTU: {traffic:?}");
        assert!(traffic.delay.p50 >= Duration::from_millis(5), "nothing is faster than its link: {traffic:?}");
        let troubles = (traffic.queue_drops, traffic.refused, traffic.no_room, traffic.unreadable);
        assert_eq!(troubles, (Some(0), 0, 0, 0), "{traffic:?}");
    }
    assert!(report.paths[0].failures.is_empty(), "{report:?}");
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
    let emulator = start_with(&hosts, &NetworkSpec::new(vec![wlan]), options);
    let answered = ping(&hosts, "10.77.1.1", 5, GUARD);
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

#[test]
fn a_host_sees_its_path_go_and_come_back() {
    for veth in [false, true] {
        let Some(mut hosts) = hosts() else { return };
        hosts.emulator = veth.then(|| Namespace::new("emulator").unwrap());
        let emulator = start(&hosts, &NetworkSpec::new(vec![path("wlan", &link(50, 1))]));
        // A packet that leaves before the kernel is done with a new interface is lost.
        let carries = || (0..20).any(|_| ping(&hosts, "10.77.1.1", 1, std::time::Duration::from_secs(3)) == 1);
        assert!(carries(), "veth: {veth}");
        for (change, has_carrier) in [(Change::Down, false), (Change::Up, true)] {
            emulator.change("wlan", Affected::Both, change).unwrap();
            // The kernel takes note a moment later.
            let shows = || hosts.client.command("ip", &["link", "show", "wlan"]).unwrap().contains("NO-CARRIER");
            assert!((0..1000).any(|_| shows() != has_carrier), "veth: {veth}, carrier: {has_carrier}");
        }
        assert!(carries(), "veth: {veth}: the path carries packets again");
        assert!(emulator.stop().unwrap().paths[0].failures.is_empty());
    }
}
