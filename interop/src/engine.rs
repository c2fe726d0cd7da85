//! The engine as a peer: an endpoint on a TUN device, in a thread of its own, with an application: that which follows
//! plans unless another is given.

use crate::hosted::{Hosted, Job};
use crate::recording::{Recording, Shelf};
use crate::{Plan, Scripted, Transfer};
use anabranch_engine::{Config, ConnectionId, ConnectionStats, Counters, Event, LocalAddress, Profile, SubflowStats};
use anabranch_host::{Application, Context, Device, Driver, DriverCounters, Namespace, Reactor, Stop, Tun};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running engine. It stops when this is dropped.
pub struct Engine<A = Scripted> {
    jobs: Sender<Job<A>>,
    bell: Mutex<UnixStream>,
    stop: Stop,
    thread: Option<JoinHandle<Result<DriverCounters, String>>>,
    shelf: Option<Shelf>,
}

/// One connection of an engine, as it stands.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Progress of its plan.
    pub transfer: Transfer,
    /// With MPTCP; `None` until it is established.
    pub multipath: Option<bool>,
    /// Events from the endpoint, without `Readable` and `Writable`.
    pub events: Vec<Event>,
    /// Statistics of the endpoint.
    pub stats: ConnectionStats,
    /// Its subflows, those that are gone included.
    pub subflows: Vec<SubflowStats>,
}

impl Connection {
    /// Returns true if it has ended, in order or not.
    pub fn is_gone(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Closed | Event::Reset))
    }
}

/// Settings as Linux has them, for these addresses.
pub fn config(addresses: &[IpAddr]) -> Config {
    let addresses = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
    Config::new(Profile::tcp(), addresses)
}

impl Engine {
    /// Opens the TUN device `name` in `namespace`, routes the addresses of `config` onto it, and runs an engine there.
    pub fn start(namespace: &Namespace, name: &str, config: Config) -> io::Result<Engine> {
        Engine::host(namespace, name, config, None, || Ok(Scripted::default()))
    }

    /// The same, and all packets that pass the device go to the capture file `path`.
    pub fn start_recorded(namespace: &Namespace, name: &str, config: Config, path: &Path) -> io::Result<Engine> {
        Engine::host(namespace, name, config, Some(path), || Ok(Scripted::default()))
    }

    /// Accepts connections to `port`; each carries out `plan`.
    pub fn listen(&self, port: u16, plan: Plan) {
        self.with(move |scripted, cx| scripted.listen(cx, port, plan));
    }

    /// Opens a connection that carries out `plan`.
    pub fn connect(&self, local: IpAddr, remote: SocketAddr, plan: Plan) -> ConnectionId {
        self.with(move |scripted, cx| scripted.connect(cx, local, remote, plan))
    }

    /// Goes on with another plan. What was sent counts: `plan.send` is where the stream is to end, not what is added to
    /// it.
    pub fn set_plan(&self, id: ConnectionId, plan: Plan) {
        self.with(move |scripted, cx| scripted.set_plan(cx, id, plan));
    }

    /// Reads what has come of a connection, or leaves it until this is taken back.
    pub fn set_reading(&self, id: ConnectionId, reading: bool) {
        self.with(move |scripted, cx| scripted.set_reading(cx, id, reading));
    }

    /// The connections that were ever opened or accepted, oldest first.
    pub fn connections(&self) -> Vec<ConnectionId> {
        self.with(|scripted, _| scripted.connections())
    }

    /// Returns the state of a connection.
    pub fn connection(&self, id: ConnectionId) -> Connection {
        self.with(move |scripted, cx| scripted.connection(cx, id))
    }

    /// Waits until `n` connections have been opened or accepted and answers the last of them.
    ///
    /// # Errors
    /// If that does not come about within `limit`.
    pub fn nth_connection(&self, n: usize, limit: Duration) -> Result<ConnectionId, String> {
        let mut found = None;
        let reached = wait(limit, || {
            found = self.connections().get(n - 1).copied();
            found.is_some()
        });
        match found {
            Some(id) if reached => Ok(id),
            _ => Err(format!("fewer than {n} connections after {limit:?}; the endpoint counted {:?}", self.counters())),
        }
    }

    /// Waits until a connection is as `enough` wants it.
    ///
    /// # Errors
    /// If that does not come about within `limit`: how the connection stands.
    pub fn wait_for(
        &self,
        id: ConnectionId,
        limit: Duration,
        enough: impl Fn(&Connection) -> bool,
    ) -> Result<Connection, String> {
        let mut connection = Connection::default();
        let reached = wait(limit, || {
            connection = self.connection(id);
            enough(&connection)
        });
        if reached {
            Ok(connection)
        } else {
            Err(format!("after {limit:?} the engine's connection is {connection:#?}"))
        }
    }
}

impl<A: Application + 'static> Engine<A> {
    /// Runs an engine on the TUN device `name` in `namespace`, recorded in the file `capture`, with the application
    /// that `make` gives on the engine's thread, which is one of the namespace.
    pub fn host(
        namespace: &Namespace,
        name: &str,
        config: Config,
        capture: Option<&Path>,
        make: impl FnOnce() -> io::Result<A> + Send + 'static,
    ) -> io::Result<Engine<A>> {
        let device = open(namespace, name, &config)?;
        let (device, shelf): (Box<dyn Device>, _) = match capture {
            None => (Box::new(device), None),
            Some(path) => {
                let (device, shelf) = Recording::start(device, name, path)?;
                (Box::new(device), Some(shelf))
            }
        };
        let (jobs, inbox) = channel();
        let (bell, ear) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        let driver = Driver::new(config, device)?;
        let (begun, began) = channel();
        let run = move || {
            let reactor = make().and_then(|application| {
                Reactor::new(driver, Hosted { application, jobs: inbox, ear: mio::net::UnixStream::from_std(ear) })
            });
            let reactor = match reactor {
                Ok(reactor) => reactor,
                Err(error) => {
                    let text = error.to_string();
                    let _ = begun.send(Err(error));
                    return Err(text);
                }
            };
            let _ = begun.send(Ok(reactor.stopper()));
            reactor.run().map(|(_, driver)| driver.counters()).map_err(|error| error.to_string())
        };
        let thread = namespace.run(|| thread::Builder::new().name("engine".to_owned()).spawn(run))?;
        let stop = began.recv().map_err(|_| io::Error::other("the engine's thread has panicked"))??;
        Ok(Engine { jobs, bell: Mutex::new(bell), stop, thread: Some(thread), shelf })
    }

    /// Runs `act` on the engine's thread, between two rounds of its loop, and returns its result.
    ///
    /// # Panics
    /// If the engine's thread has ended; it says why on standard error.
    pub fn with<T: Send + 'static>(&self, act: impl FnOnce(&mut A, &mut Context<'_>) -> T + Send + 'static) -> T {
        let (answer, result) = channel();
        let job = move |application: &mut A, cx: &mut Context<'_>| {
            let _ = answer.send(act(application, cx));
        };
        let sent = self.jobs.send(Box::new(job));
        let rung = self.bell.lock().expect("nothing panics while it rings").write_all(&[1]);
        match (sent, rung, result.recv()) {
            (Ok(()), Ok(()), Ok(answer)) => answer,
            _ => panic!("the engine's thread has ended"),
        }
    }

    /// Returns the endpoint's counters over all connections.
    pub fn counters(&self) -> Counters {
        self.with(|_, cx| cx.endpoint.counters().clone())
    }

    /// Gives up the last address of the endpoint (RFC 8684 §3.4.2).
    pub fn give_address_up(&self) {
        self.with(|_, cx| {
            let last = cx.endpoint.addresses().last().map(|address| address.ip);
            last.is_some_and(|last| cx.endpoint.remove_address(cx.now, last))
        });
    }

    /// Gives up all addresses of the endpoint at once, and takes them back after a pause.
    pub fn flush_addresses(&self, pause: Duration) {
        let gone = self.with(|_, cx| {
            let all: Vec<LocalAddress> = cx.endpoint.addresses().collect();
            for address in &all {
                cx.endpoint.remove_address(cx.now, address.ip);
            }
            all
        });
        thread::sleep(pause);
        self.with(move |_, cx| {
            for address in gone {
                cx.endpoint.add_address(cx.now, address);
            }
        });
    }

    /// Looks for broken invariants in all that the endpoint holds.
    pub fn check(&self) -> Result<(), String> {
        // The endpoint is sound once its queues are drained. In the midst of a round, packets may have been read that
        // are not answered yet; of a few rounds one finds it at rest.
        let mut result = Ok(());
        wait(DRAINED, || {
            result = self.with(|_, cx| cx.endpoint.check(cx.now));
            result.is_ok()
        });
        result
    }

    /// Stops it, completes its capture and answers what passed the device.
    ///
    /// # Errors
    /// If it panicked, or its device failed.
    pub fn stop(mut self) -> Result<DriverCounters, String> {
        self.halt()
    }
}

impl<A> Engine<A> {
    fn halt(&mut self) -> Result<DriverCounters, String> {
        self.stop.stop();
        let Some(thread) = self.thread.take() else { return Err("it has been stopped before".to_owned()) };
        let counters = thread.join().map_err(|_| "the engine panicked".to_owned())??;
        match self.shelf.take() {
            Some(shelf) => shelf.finish().map(|()| counters).map_err(|error| error.to_string()),
            None => Ok(counters),
        }
    }
}

impl<A> Drop for Engine<A> {
    fn drop(&mut self) {
        if self.thread.is_some()
            && let Err(error) = self.halt()
        {
            eprintln!("{error}");
        }
    }
}

/// Asks every few milliseconds whether it is `enough`; false if that is not so within `limit`.
pub fn wait(limit: Duration, mut enough: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !enough() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn open(namespace: &Namespace, name: &str, config: &Config) -> io::Result<Tun> {
    let device = namespace.run({
        let name = name.to_owned();
        move || Tun::open(&name)
    })?;
    let ip = |args: &[&str]| namespace.command("ip", args).map(drop).map_err(io::Error::other);
    // A box that merges segments makes packets longer than the paths' MTU. A kernel at the end of a path takes them; on
    // the way to this device it would drop them.
    ip(&["link", "set", "dev", name, "mtu", LONGEST, "txqueuelen", "10000", "up"])?;
    for address in &config.addresses {
        let length = if address.ip.is_ipv4() { 32 } else { 128 };
        ip(&["route", "add", &format!("{}/{length}", address.ip), "dev", name])?;
    }
    Ok(device)
}

/// Time within which a sound endpoint is seen at rest.
const DRAINED: Duration = Duration::from_secs(1);
/// MTU of the engine's device; the engine's own segments follow its settings.
const LONGEST: &str = "65535";
