//! Kernel sockets talk to an endpoint on a TUN device, with and without offload.
#![allow(clippy::unwrap_used)]

use anabranch_engine::{Config, ConnectionId, Event, LocalAddress, Profile};
use anabranch_host::{
    Application, Context, Device, Driver, DriverCounters, Namespace, Reactor, Stop, Tun, VirtioHeader,
};
use bytes::Bytes;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::{BTreeMap, VecDeque};
use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sends back what comes.
#[derive(Default)]
struct EchoServer {
    /// Read and not yet written, by connection; and whether the peer has finished.
    waiting: BTreeMap<ConnectionId, (VecDeque<Bytes>, bool)>,
}

impl EchoServer {
    fn turn(&mut self, cx: &mut Context<'_>, id: ConnectionId) {
        let Some((waiting, finished)) = self.waiting.get_mut(&id) else { return };
        loop {
            while let Some(front) = waiting.front_mut() {
                let taken = cx.endpoint.write(cx.now, id, front);
                if taken < front.len() {
                    *front = front.slice(taken..);
                    return;
                }
                waiting.pop_front();
            }
            let Some(piece) = cx.endpoint.read(cx.now, id) else { break };
            waiting.push_back(piece);
        }
        if *finished {
            cx.endpoint.shutdown(cx.now, id);
        }
    }
}

impl Application for EchoServer {
    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => drop(self.waiting.insert(id, Default::default())),
            Event::PeerFinished => self.waiting.entry(id).or_default().1 = true,
            Event::Closed | Event::Reset => drop(self.waiting.remove(&id)),
            _ => {}
        }
        self.turn(cx, id);
    }
}

/// An echo server on a TUN device in a namespace of its own.
struct World {
    namespace: Namespace,
    stop: Stop,
    server: JoinHandle<DriverCounters>,
}

const PORT: u16 = 7;

impl World {
    /// `None`, and a word about it, where such a thing cannot be made.
    fn new(offload: bool) -> Option<Self> {
        let namespace = match Namespace::new("tun") {
            Ok(namespace) => namespace,
            Err(error) => {
                println!("SKIPPED: no network namespaces here: {error}");
                return None;
            }
        };
        let opened = namespace.run(move || if offload { Tun::with_offload("engine") } else { Tun::open("engine") });
        let device = match opened {
            Ok(device) => device,
            Err(error) => {
                println!("SKIPPED: no TUN devices here: {error}");
                return None;
            }
        };
        // Whatever the machine has: a congestion control that paces sends smaller packets.
        for (key, value) in [
            ("net.ipv4.tcp_congestion_control", "reno"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            ("net.mptcp.enabled", "1"),
        ] {
            namespace.sysctl(key, value).unwrap();
        }
        assert_eq!(device.has_offload(), offload, "Linux has had offload on TUN devices since 2.6.27");
        for arguments in [
            &["link", "set", "engine", "up"][..],
            &["address", "add", "10.99.1.2/24", "dev", "engine"],
            &["address", "add", "10.99.2.2/24", "dev", "engine"],
            &["address", "add", "fd99::1:2/112", "dev", "engine", "nodad"],
            &["mptcp", "limits", "set", "subflows", "8"],
            &["mptcp", "endpoint", "add", "10.99.2.2", "dev", "engine", "subflow"],
        ] {
            namespace.command("ip", arguments).unwrap();
        }
        let addresses = ["10.99.1.1", "fd99::1:1"].map(|ip| LocalAddress { ip: ip.parse().unwrap(), backup: false });
        let config = Config::new(Profile::linux(), addresses.to_vec());
        let mut driver = Driver::new(config, Box::new(device)).unwrap();
        driver.endpoint().listen(PORT);
        let reactor = Reactor::new(driver, EchoServer::default()).unwrap();
        let stop = reactor.stopper();
        let server = std::thread::spawn(move || reactor.run().unwrap().1.counters());
        Some(World { namespace, stop, server })
    }

    /// Sends `length` bytes of a pattern on a kernel socket, and compares what comes back.
    fn echo(&self, protocol: Protocol, address: &str, length: usize) {
        let server: SocketAddr = format!("{address}:{PORT}").parse().unwrap();
        let socket = self.namespace.run(move || {
            let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(protocol)).unwrap();
            socket.connect_timeout(&SockAddr::from(server), GUARD).unwrap();
            socket
        });
        socket.set_read_timeout(Some(GUARD)).unwrap();
        let pattern = move |from: usize| (from..length).map(|n| (n * 31 % 251) as u8);
        let mut sender = socket.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let all: Vec<u8> = pattern(0).collect();
            sender.write_all(&all).unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
        });
        let (mut socket, mut got, mut buffer) = (socket, 0, vec![0; 1 << 16]);
        loop {
            let count = socket.read(&mut buffer).unwrap();
            if count == 0 {
                break;
            }
            assert!(pattern(got).take(count).eq(buffer[..count].iter().copied()), "bytes {got} to {}", got + count);
            got += count;
        }
        assert_eq!(got, length);
        sending.join().unwrap();
    }

    /// Packets and bytes that the kernel has received on the device.
    fn received_by_kernel(&self) -> (u64, u64) {
        let table = self.namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
        let line = table.lines().find_map(|line| line.trim().strip_prefix("engine:")).unwrap();
        let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
        (fields[1], fields[0])
    }

    fn finish(self) -> DriverCounters {
        self.stop.stop();
        self.server.join().unwrap()
    }
}

/// Nothing takes that long unless it hangs.
const GUARD: Duration = Duration::from_secs(300);
const LENGTH: usize = 8 << 20;

#[test]
fn streams_pass_unchanged_with_and_without_offload() {
    for offload in [false, true] {
        for (protocol, address) in [
            (Protocol::TCP, "10.99.1.1"),
            (Protocol::TCP, "[fd99::1:1]"),
            (Protocol::MPTCP, "10.99.1.1"),
            (Protocol::MPTCP, "[fd99::1:1]"),
        ] {
            let Some(world) = World::new(offload) else { return };
            world.echo(protocol, address, LENGTH);
            let (packets, bytes) = world.received_by_kernel();
            let counters = world.finish();
            let what = format!("{protocol:?} to {address}, offload {offload}: {counters:?}");
            // A new interface asks for routers and tells its multicast groups.
            assert!(counters.ignored < 20, "checksums are right: {what}");
            assert_eq!(counters.bad_offload, 0, "{what}");
            assert!(bytes > LENGTH as u64, "{what}");
            let largest = if offload { 0 } else { 1500 };
            assert!(offload || (bytes <= largest * packets && counters.received_bytes <= largest * counters.received));
            assert!(offload || counters.trains == 0, "{what}");
            if offload {
                assert!(
                    counters.received_bytes > 4 * 1500 * counters.received,
                    "the kernel sends large packets: {what}"
                );
            }
            if offload {
                assert!(counters.train_segments > 4 * counters.trains, "and so do we: {what}");
                assert!(bytes > 2 * 1500 * packets, "as the kernel sees: {packets} packets, {bytes} bytes, {what}");
            }
        }
    }
}

#[test]
fn packets_whose_offload_header_lies_are_refused_by_the_kernel_too() {
    let Some(world) = World::new(true) else { return };
    let mut device = world.namespace.run(|| Tun::with_offload("hostile").unwrap());
    world.namespace.command("ip", &["link", "set", "hostile", "up"]).unwrap();
    let packet = [0x45; 100];
    let lie = VirtioHeader { segment_size: 0, ..VirtioHeader::tcp(true, 20, 40, Some(1)) };
    assert!(device.send_frame(&lie, &[IoSlice::new(&packet)]).is_err());
    world.finish();
}
