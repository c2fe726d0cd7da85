//! The ground on which faults are planted: a testbed, one transfer, and the captures of both ends.

use anabranch_host::emulator::{CaptureOptions, Options as EmulatorOptions};
use anabranch_host::testbed::{Testbed, TestbedOptions};
use anabranch_host::{Namespace, SockDiag};
use anabranch_interop::{Kernel, machine};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use anabranch_why::{CaptureAnswer, CaptureInquiry, Follower, LiveAnswer, Protocol};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One transfer.
pub struct Transfer {
    pub client_multipath: bool,
    pub server_multipath: bool,
    /// Bytes from the server to the client.
    pub size: usize,
    /// Bytes that are written and read at a time, and the pause that follows.
    pub write: (usize, Duration),
    pub read: (usize, Duration),
    /// The client gives up after this time: some faults leave a transfer that never ends.
    pub patience: Duration,
}

impl Transfer {
    pub const DOWNLOAD: Transfer = Transfer {
        client_multipath: true,
        server_multipath: true,
        size: 3 << 20,
        write: (1 << 16, Duration::ZERO),
        read: (1 << 16, Duration::ZERO),
        patience: LIMIT,
    };
}

pub struct Ground {
    testbed: Testbed,
    directory: tempfile::TempDir,
}

/// Captures of client and server, and what their kernels said meanwhile.
pub struct Captures {
    pub files: [PathBuf; 2],
    pub live: [LiveAnswer; 2],
    _directory: tempfile::TempDir,
}

/// Only guards against hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// Longest time in one call.
const TURN: Duration = Duration::from_millis(100);
const PORT: u16 = 8080;

fn is_wait(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut)
}

impl Ground {
    /// Two paths, `wlan` and `lte`, with further keys for each.
    pub fn build(wlan: &str, lte: &str) -> Ground {
        let given = |keys: &str, key: &str, default: &str| {
            if keys.contains(key) { String::new() } else { format!("{key} = \"{default}\"\n") }
        };
        let path = |name: &str, keys: &str, rate: &str, delay: &str| {
            let rest = given(keys, "rate", rate) + &given(keys, "delay", delay) + &given(keys, "queue", "60p");
            format!("[path.{name}]\n{rest}{keys}\n")
        };
        let text = path("wlan", wlan, "12mbit", "10ms")
            + &path("lte", lte, "8mbit", "25ms")
            + "[[workload]]\nkind = \"files\"\nsize = \"1MB\"\n";
        let origin = Origin { scenario: "faults.toml".to_owned(), sets: Vec::new() };
        let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        let catalogue = Arc::new(Catalogue::default());
        let scenario = Scenario::read(&catalogue, "faults", "faults.toml", &text, origin, &none).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let capture = CaptureOptions {
            directory: directory.path().to_owned(),
            application: "anabranch".to_owned(),
            comment: String::new(),
        };
        // Several at a time, and no measurement of delays: no spinning, no privilege.
        let emulator = EmulatorOptions {
            real_time: false,
            spin: anabranch_units::Duration::ZERO,
            capture: Some(capture),
            ..EmulatorOptions::default()
        };
        let options = TestbedOptions { emulator, ..TestbedOptions::default() };
        let spec = scenario.spec(1);
        let testbed = Testbed::build(&spec.network, spec.seed, 1, options).unwrap();
        assert!(testbed.shortcomings.is_empty(), "{:?}", testbed.shortcomings);
        machine::set_defaults(&testbed.client).unwrap();
        machine::set_defaults(&testbed.server).unwrap();
        Ground { testbed, directory }
    }

    pub fn testbed(&self) -> &Testbed {
        &self.testbed
    }

    /// Makes the transfer and takes the testbed down.
    pub fn transfer(self, name: &str, transfer: &Transfer) -> Captures {
        let Ground { testbed, directory } = self;
        testbed.begin().unwrap();
        let to = SocketAddr::new(IpAddr::V4(testbed.layout.server().next().unwrap().v4), PORT);
        let kernel = |namespace: &Namespace, multipath: bool| Kernel { multipath, ..Kernel::new(namespace) };
        let listener = kernel(&testbed.server, transfer.server_multipath).listen(to).unwrap();
        let watching = [&testbed.client, &testbed.server].map(Watching::start);
        let client = kernel(&testbed.client, transfer.client_multipath).connect(None, to).unwrap();
        // The kernel takes no join before data has passed, and none without the listening socket.
        let (size, (bytes, pause)) = (transfer.size, transfer.write);
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let writer = std::thread::spawn(move || {
            let server = listener.accept(LIMIT).unwrap();
            server.socket().set_write_timeout(Some(TURN)).unwrap();
            server.socket().set_read_timeout(Some(TURN)).unwrap();
            let is_over = || ended.load(Ordering::Relaxed);
            let mut left = size;
            while left > 0 && !is_over() {
                match server.socket().write(&vec![b'x'; bytes.min(left)]) {
                    Ok(count) => left -= count,
                    Err(error) if is_wait(&error) => {}
                    Err(_) => return,
                }
                std::thread::sleep(pause);
            }
            // Fails if the client has given up.
            let _ = server.shutdown();
            // The listening socket stays until the client has read all.
            while !is_over() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let (begin, mut received) = (Instant::now(), 0);
        let mut buffer = vec![0; transfer.read.0];
        let mut socket = client.socket();
        socket.set_read_timeout(Some(TURN)).unwrap();
        let gives_up = loop {
            match socket.read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => received += count,
                Err(error) if is_wait(&error) => {}
                Err(error) => panic!("after {received} bytes: {error}"),
            }
            if begin.elapsed() >= transfer.patience {
                break true;
            }
            std::thread::sleep(transfer.read.1);
        };
        assert!(gives_up && transfer.patience < LIMIT || received == transfer.size, "{received} bytes came");
        let live = watching.map(Watching::stop);
        if gives_up {
            client.abort().unwrap();
        } else {
            drop(client);
        }
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        let report = testbed.stop().unwrap();
        let capture = report.capture.unwrap();
        assert_eq!(capture.failure, None);
        if let Some(keep) = std::env::var_os("ANABRANCH_KEEP") {
            for file in ["client.pcapng", "server.pcapng"] {
                let to = PathBuf::from(&keep).join(format!("{name}-{file}"));
                std::fs::copy(directory.path().join(file), to).unwrap();
            }
        }
        let files = ["client.pcapng", "server.pcapng"].map(|name| directory.path().join(name));
        Captures { files, live, _directory: directory }
    }
}

/// Looks at the sockets of a host again and again.
struct Watching {
    over: Arc<AtomicBool>,
    thread: JoinHandle<LiveAnswer>,
}

impl Watching {
    fn start(host: &Namespace) -> Self {
        let diag = host.run(SockDiag::open).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let (mut follower, begin) = (Follower::new(Vec::new()), Instant::now());
            while !ended.load(Ordering::Relaxed) {
                let dump = |protocol: Protocol| {
                    let payloads = diag.dump(&protocol.request(false)).unwrap();
                    payloads.into_iter().filter_map(move |payload| protocol.read(&payload))
                };
                let sockets = dump(Protocol::Mptcp).chain(dump(Protocol::Tcp)).collect();
                follower.look(begin.elapsed().as_nanos() as u64, sockets);
                std::thread::sleep(Duration::from_millis(20));
            }
            follower.whole()
        });
        Watching { over, thread }
    }

    fn stop(self) -> LiveAnswer {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Runs `ip` in a namespace.
pub fn ip(namespace: &Namespace, line: &str) {
    namespace.command("ip", &line.split(' ').collect::<Vec<_>>()).unwrap();
}

/// Runs `nft` in a namespace.
pub fn nft(namespace: &Namespace, line: &str) {
    namespace.command("nft", &line.split(' ').collect::<Vec<_>>()).unwrap();
}

/// First sentence of the answer, and all of it.
pub fn ask(files: &[PathBuf]) -> (String, CaptureAnswer) {
    let answer = CaptureInquiry::read(files).answer(None);
    let first = answer.sentence.split(". ").next().unwrap_or_default().to_owned();
    (first, answer)
}
