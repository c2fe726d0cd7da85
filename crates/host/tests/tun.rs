//! Kernel sockets talk to an endpoint on a TUN device, with and without offload.
#![allow(clippy::unwrap_used)]

use anabranch_engine::{Config, ConnectionId, Event, LocalAddress, Profile};
use anabranch_host::{
    Application, Context, Device, Driver, DriverCounters, Namespace, Reactor, Stop, Tun, VirtioHeader,
};
use bytes::Bytes;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
                let taken = cx.endpoint.write(id, front).unwrap_or(0);
                if taken < front.len() {
                    *front = front.slice(taken..);
                    return;
                }
                waiting.pop_front();
            }
            let Ok(anabranch_engine::Read::Data(piece)) = cx.endpoint.read(id) else { break };
            waiting.push_back(piece);
        }
        if *finished {
            cx.endpoint.shutdown(id);
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

/// The longest packets that have crossed a device.
#[derive(Default, Debug)]
struct Longest {
    received: AtomicUsize,
    sent: AtomicUsize,
}

/// A device whose packets are measured. How many of them are long depends on the machine, how long they may be does
/// not.
struct Measured {
    device: Tun,
    longest: Arc<Longest>,
}

impl AsFd for Measured {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Device for Measured {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(self.receive_frame(buffer)?.map(|(_, length)| length))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        self.send_frame(&VirtioHeader::default(), &[IoSlice::new(packet)])
    }

    fn has_offload(&self) -> bool {
        self.device.has_offload()
    }

    fn receive_frame(&mut self, buffer: &mut [u8]) -> io::Result<Option<(VirtioHeader, usize)>> {
        let frame = self.device.receive_frame(buffer)?;
        if let Some((_, length)) = frame {
            self.longest.received.fetch_max(length, Ordering::Relaxed);
        }
        Ok(frame)
    }

    fn send_frame(&mut self, header: &VirtioHeader, pieces: &[IoSlice<'_>]) -> io::Result<bool> {
        let taken = self.device.send_frame(header, pieces)?;
        if taken {
            self.longest.sent.fetch_max(pieces.iter().map(|piece| piece.len()).sum(), Ordering::Relaxed);
        }
        Ok(taken)
    }
}

/// An echo server on a TUN device in a namespace of its own.
struct World {
    namespace: Namespace,
    longest: Arc<Longest>,
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
        let config = Config::new(Profile::tcp(), addresses.to_vec());
        let longest = Arc::<Longest>::default();
        let device = Measured { device, longest: Arc::clone(&longest) };
        let mut driver = Driver::new(config, Box::new(device)).unwrap();
        driver.endpoint().listen(PORT);
        let reactor = Reactor::new(driver, EchoServer::default()).unwrap();
        let stop = reactor.stopper();
        let server = std::thread::spawn(move || reactor.run().unwrap().1.counters());
        Some(World { namespace, longest, stop, server })
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
            let count = match socket.read(&mut buffer) {
                // The process was stopped and goes on.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            if count == 0 {
                break;
            }
            assert!(pattern(got).take(count).eq(buffer[..count].iter().copied()), "bytes {got} to {}", got + count);
            got += count;
        }
        assert_eq!(got, length);
        sending.join().unwrap();
    }

    fn finish(self) -> DriverCounters {
        self.stop.stop();
        self.server.join().unwrap()
    }
}

/// Limit that only a hanging test reaches.
const GUARD: Duration = Duration::from_secs(300);
const LENGTH: usize = 8 << 20;
const MTU: usize = 1500;

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
            let longest = Arc::clone(&world.longest);
            let counters = world.finish();
            let what = format!("{protocol:?} to {address}, offload {offload}: {longest:?}, {counters:?}");
            // A new interface asks for routers and tells its multicast groups.
            assert!(counters.ignored < 20, "checksums are right: {what}");
            assert_eq!(counters.bad_offload, 0, "{what}");
            for (whose, longest) in [("the kernel's", &longest.received), ("our", &longest.sent)] {
                let longest = longest.load(Ordering::Relaxed);
                assert!(longest > 1000, "{whose} packets carry data: {what}");
                assert_eq!(longest > MTU, offload, "{whose} packets are longer than the MTU: {what}");
            }
            assert_eq!(counters.trains > 0, offload, "{what}");
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
