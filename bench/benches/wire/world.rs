//! A namespace with a kernel client and an engine on a TUN device.

use crate::processor::{Sample, Stopwatch, this_thread};
use crate::server::{DISCARD, SOURCE, Server};
use anabranch_engine::{Config, LocalAddress, Profile};
use anabranch_host::{Driver, DriverCounters, Namespace, Reactor, Stop, Tun};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Direction of the data, seen from the kernel client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Data to the engine.
    Up,
    /// Data from the engine.
    Down,
}

/// Way to reach the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The device has offload.
    pub offload: bool,
    /// Number of subflows, one or two, over the same device.
    pub subflows: usize,
}

/// Checks that all needed facilities are available.
pub fn try_all() -> io::Result<()> {
    let namespace = Namespace::new("try")?;
    namespace.run(|| Tun::open("try%d")).map(drop)
}

pub struct World {
    pub namespace: Namespace,
    pub thread: i32,
    stop: Stop,
    engine: JoinHandle<DriverCounters>,
}

impl World {
    pub fn new(setup: Setup, port: u16) -> Self {
        let namespace = Namespace::new("bench").expect("tried before");
        let open = move || if setup.offload { Tun::with_offload(DEVICE) } else { Tun::open(DEVICE) };
        let device = namespace.run(open).expect("tried before");
        let ip = |arguments: &[&str]| namespace.command("ip", arguments).expect("a namespace of ours");
        ip(&["link", "set", DEVICE, "txqueuelen", "10000", "up"]);
        ip(&["address", "add", "10.99.1.2/16", "dev", DEVICE]);
        if setup.subflows > 1 {
            ip(&["address", "add", "10.99.2.2/16", "dev", DEVICE]);
            ip(&["mptcp", "limits", "set", "subflows", "8"]);
            ip(&["mptcp", "endpoint", "add", "10.99.2.2", "dev", DEVICE, "subflow"]);
        }
        let local = LocalAddress { ip: SERVER.parse().expect("an address"), backup: false };
        let config = Config { max_half_open: 4096, ..Config::new(Profile::tcp(), vec![local]) };
        let mut driver = Driver::new(config, Box::new(device)).expect("the system has entropy");
        driver.endpoint().listen(port);
        let reactor = Reactor::new(driver, Server::on(port)).expect("the system has descriptors");
        let (stop, (id, thread)) = (reactor.stopper(), std::sync::mpsc::channel());
        let engine = std::thread::spawn(move || {
            id.send(this_thread()).expect("someone waits for it");
            reactor.run().expect("the device is there").1.counters()
        });
        let thread = thread.recv().expect("the engine has begun");
        World { namespace, thread, stop, engine }
    }

    pub fn finish(self) -> DriverCounters {
        self.stop.stop();
        self.engine.join().expect("the engine does not fail")
    }
}

/// An MPTCP socket of the kernel.
pub fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).expect("the kernel has MPTCP")
}

pub fn connect(namespace: &Namespace, address: &str, port: u16) -> Socket {
    let address: SocketAddr = format!("{address}:{port}").parse().expect("an address");
    namespace.run(move || {
        let socket = socket();
        socket.connect_timeout(&SockAddr::from(address), Duration::from_secs(30)).expect("someone listens");
        socket
    })
}

/// Moves data between a kernel client and the engine for a while.
pub fn transfer(setup: Setup, direction: Direction, span: Duration) -> Sample {
    let port = if direction == Direction::Up { DISCARD } else { SOURCE };
    let world = World::new(setup, port);
    let client = connect(&world.namespace, SERVER, port);
    let mut sample = exchange(client, direction, Some(world.thread), span);
    sample.counters = Some(world.finish());
    sample
}

/// Reads from or writes to a socket for a while; warms up before it measures.
pub fn exchange(client: Socket, direction: Direction, thread: Option<i32>, span: Duration) -> Sample {
    let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    client.set_read_timeout(Some(GUARD)).expect("a valid timeout");
    client.set_write_timeout(Some(GUARD)).expect("a valid timeout");
    let moving = std::thread::spawn({
        let (stop, bytes, mut client) = (Arc::clone(&stop), Arc::clone(&bytes), client);
        move || {
            let mut buffer = vec![0x5a; 256 << 10];
            while !stop.load(Ordering::Relaxed) {
                let moved = match direction {
                    Direction::Up => client.write(&buffer),
                    Direction::Down => client.read(&mut buffer),
                };
                match moved {
                    Ok(0) => panic!("the server closed the connection"),
                    Ok(count) => drop(bytes.fetch_add(count as u64, Ordering::Relaxed)),
                    Err(error) => panic!("the transfer stopped: {error}"),
                }
            }
        }
    });
    std::thread::sleep(Duration::from_millis(300).max(span / 4));
    let (watch, before) = (Stopwatch::start(thread), bytes.load(Ordering::Relaxed));
    std::thread::sleep(span);
    let sample = watch.stop(bytes.load(Ordering::Relaxed) - before);
    stop.store(true, Ordering::Relaxed);
    moving.join().expect("the transfer goes on to its end");
    sample
}

const DEVICE: &str = "engine";
pub const SERVER: &str = "10.99.1.1";
/// A transfer that stands still for so long is broken.
const GUARD: Duration = Duration::from_secs(20);
