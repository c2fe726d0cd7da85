//! Two namespaces, an emulator between them, and what the kernels in them send.

use anabranch_host::emulator::{Handle, Options};
use anabranch_host::{Device, Emulator, Namespace, PathEnds, Tun};
use anabranch_paths::{NetworkSpec, PathSpec};
use anabranch_units::Seed;
use socket2::{Domain, Protocol, Socket, Type};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Path `n`, from 1: 10.77.n.2 at the client, 10.77.n.1 at the server.
pub struct Bed {
    client: Namespace,
    server: Namespace,
    pub emulator: Handle,
}

impl Bed {
    pub fn new(paths: Vec<PathSpec>, options: Options) -> Result<Self> {
        let (client, server) = (Namespace::new("client")?, Namespace::new("server")?);
        client.sysctl("net.ipv4.ping_group_range", "0 0")?;
        let tun = |namespace: &Namespace, path: usize, host: u8| -> Result<Box<dyn Device>> {
            let name = format!("path{path}");
            let device = namespace.run({
                let name = name.clone();
                move || Tun::open(&name)
            })?;
            let address = format!("10.77.{path}.{host}/24");
            namespace.sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1")?;
            namespace.command("ip", &["link", "set", &name, "txqueuelen", "10000", "up"])?;
            namespace.command("ip", &["address", "add", &address, "dev", &name])?;
            Ok(Box::new(device))
        };
        let ends = (1..=paths.len())
            .map(|path| Ok(PathEnds { client: tun(&client, path, 2)?, server: tun(&server, path, 1)? }));
        let ends = ends.collect::<Result<_>>()?;
        let emulator = Emulator::start(&NetworkSpec::new(paths), Seed(1), ends, options)?;
        Ok(Bed { client, server, emulator })
    }

    /// Downloads over each path at once, and answers the bytes per second that arrive over each after `warm_up`, for
    /// `span`.
    pub fn download(&self, paths: usize, warm_up: Duration, span: Duration) -> Result<Vec<f64>> {
        let over = Arc::new(AtomicBool::new(false));
        let mut counters = Vec::new();
        let mut threads = Vec::new();
        for path in 1..=paths {
            let address = SocketAddr::from(([10, 77, path as u8, 1], 5001));
            let listener = self.server.run(move || TcpListener::bind(address))?;
            threads.push(self.server.spawn(move || {
                let mut socket = listener.accept()?.0;
                let block = vec![0; 1 << 16];
                // Until the reader has gone.
                while socket.write_all(&block).is_ok() {}
                Ok::<_, std::io::Error>(())
            }));
            let counter = Arc::new(AtomicU64::new(0));
            counters.push(Arc::clone(&counter));
            let over = Arc::clone(&over);
            threads.push(self.client.spawn(move || {
                let mut socket = TcpStream::connect(address)?;
                let mut block = vec![0; 1 << 20];
                while !over.load(Ordering::Relaxed) {
                    match socket.read(&mut block)? {
                        0 => return Err(ErrorKind::UnexpectedEof.into()),
                        read => counter.fetch_add(read as u64, Ordering::Relaxed),
                    };
                }
                Ok(())
            }));
        }
        std::thread::sleep(warm_up);
        let read = || counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let (begin, before) = (Instant::now(), read());
        std::thread::sleep(span);
        let (seconds, after) = (begin.elapsed().as_secs_f64(), read());
        over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread died")??;
        }
        Ok(after.iter().zip(before).map(|(after, before)| (after - before) as f64 / seconds).collect())
    }

    /// Round trips of `count` pings over path 1 that the server's kernel answers, in seconds.
    pub fn ping(&self, count: u16) -> Result<Vec<f64>> {
        let pings = move || -> Result<Vec<f64>> {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
            socket.connect(&SocketAddrV4::new(Ipv4Addr::new(10, 77, 1, 1), 0).into())?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            let mut socket = std::fs::File::from(std::os::fd::OwnedFd::from(socket));
            let mut answer = [0; 200];
            let mut ping = |number: u16| -> Result<f64> {
                let mut request = [0; 64];
                request[0] = 8; // Echo request; the kernel fills in identifier and checksum.
                request[6..8].copy_from_slice(&number.to_be_bytes());
                let begin = Instant::now();
                socket.write_all(&request)?;
                loop {
                    let length = socket.read(&mut answer)?;
                    if length >= 8 && answer[6..8] == number.to_be_bytes() {
                        return Ok(begin.elapsed().as_secs_f64());
                    }
                }
            };
            (0..count)
                .map(|number| {
                    std::thread::sleep(Duration::from_millis(5));
                    ping(number)
                })
                .collect()
        };
        self.client.spawn(pings).join().map_err(|_| "a thread died")?
    }

    /// Sends `count` datagrams from the server and answers how many the client's interface on path 1 receives. (The
    /// socket would lose some, were its reader not awake for long.)
    pub fn datagrams(&self, count: u32) -> Result<u32> {
        let received = || self.client.run(|| received("path1"));
        let before = received()?;
        let sender = self.server.spawn(move || -> Result<()> {
            let socket = UdpSocket::bind("10.77.1.1:0")?;
            for number in 0..count {
                socket.send_to(&[0; 72], "10.77.1.2:5002")?;
                if number % 32 == 0 {
                    std::thread::sleep(Duration::from_millis(1)); // Stays far below every queue's limit.
                }
            }
            Ok(())
        });
        sender.join().map_err(|_| "a thread died")??;
        std::thread::sleep(Duration::from_millis(500));
        Ok(received()? - before)
    }
}

/// Packets that an interface of the calling thread's namespace has received (`proc(5)`).
fn received(name: &str) -> Result<u32> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let row = table.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).ok_or("no interface")?;
    Ok(row.split_whitespace().nth(1).ok_or("no count of packets")?.parse()?)
}
