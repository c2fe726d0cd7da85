//! A connection between the engine and the kernel, led step by step, both directions held against the pattern.
//!
//! Failures are panics, which the runner reports with the case. Times are guards against hangs and nothing else.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use anabranch_engine::{Config, ConnectionId, Event, SubflowStats};
use anabranch_interop::{
    Case, Close, Connection, Direct, Engine, Kernel, KernelCounters, Listener, Plan, Role, Stream, config, wait,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Only guards against hangs.
pub const LIMIT: Duration = Duration::from_secs(120);
pub const PORT: u16 = 8080;
pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// A test that panics when it fails.
pub fn case(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Case {
    Case::new(name, move || {
        test();
        Ok(())
    })
}

/// The same with the engine at either end.
pub fn each_role(cases: &mut Vec<Case>, name: &str, test: fn(Role)) {
    for role in [Role::Client, Role::Server] {
        cases.push(case(format!("{name}::engine_{role:?}").to_lowercase(), move || test(role)));
    }
}

/// Set-up before an encounter.
pub struct Ground {
    pub direct: Direct,
    pub kernel: Kernel,
    /// The engine's end.
    pub role: Role,
    pub settings: Config,
    /// While it listens the kernel accepts joins; it asks the listening socket.
    listeners: Vec<Listener>,
    before: KernelCounters,
}

/// The two in conversation.
pub struct Encounter {
    pub ground: Ground,
    pub engine: Engine,
    pub id: ConnectionId,
    /// Until it is closed.
    stream: Option<Stream>,
    /// Bytes that the engine is to send in all.
    engine_sends: u64,
    /// Bytes sent to the kernel so far.
    kernel_received: u64,
    kernel_sent: u64,
}

impl Ground {
    /// The client has two addresses and joins from its second; the server has one.
    pub fn two_paths(role: Role) -> Ground {
        let ground = Ground::one_path(role);
        match role {
            Role::Client => Ground { settings: config(&ground.direct.engine.v4), ..ground },
            Role::Server => {
                ground.endpoint("subflow");
                ground
            }
        }
    }

    /// Both have one address.
    pub fn one_path(role: Role) -> Ground {
        let direct = Direct::new("stage").unwrap();
        let kernel = Kernel::new(&direct.namespace);
        let settings = config(&direct.engine.v4[..1]);
        let before = KernelCounters::read(&direct.namespace).unwrap();
        Ground { direct, kernel, role, settings, listeners: Vec::new(), before }
    }

    /// The kernel's second address gets these flags; its identifier is 1.
    pub fn endpoint(&self, flags: &str) {
        let address = self.direct.kernel.v4[1].to_string();
        self.ip(&format!("mptcp endpoint add {address} id 1 {flags}"));
    }

    /// Runs `ip`.
    pub fn ip(&self, words: &str) {
        self.direct.ip(&words.split(' ').collect::<Vec<_>>()).unwrap();
    }

    /// The chain `toward_engine` sees what the kernel sends, `toward_kernel` what the engine does. This adds a rule to
    /// one of them, or `flush`es it.
    pub fn filter(&self, rule: &str) {
        self.direct.namespace.command("nft", &[rule]).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The chains, empty; there already once the engine runs.
    pub fn make_chains(&self) {
        self.filter("add table inet box");
        self.filter("add chain inet box toward_engine { type filter hook output priority 0; }");
        self.filter("add chain inet box toward_kernel { type filter hook prerouting priority 0; }");
    }

    /// Returns the increase of the kernel's counters since the beginning.
    pub fn counters(&self) -> KernelCounters {
        KernelCounters::read(&self.direct.namespace).unwrap().since(&self.before)
    }

    /// Waits until an MPTCP counter of the kernel has come to this.
    pub fn wait_counted(&self, name: &str, least: u64) {
        let reached = wait(LIMIT, || self.counters().mptcp(name) >= least);
        assert!(reached, "{name} has not come to {least}: {}", self.counters());
    }

    /// The client's address on path 1 or 2, by which the path is known.
    pub fn client(&self, path: usize) -> IpAddr {
        match self.role {
            Role::Client => self.direct.engine.v4[path - 1],
            Role::Server => self.direct.kernel.v4[path - 1],
        }
    }

    /// Drops, rejects or changes everything on a path in one direction or in both: `what` is an nftables statement.
    pub fn on_path(&self, path: usize, chains: &[&str], what: &str) {
        for chain in chains {
            let side = match (self.role, *chain) {
                (Role::Client, "toward_engine") | (Role::Server, "toward_kernel") => "daddr",
                _ => "saddr",
            };
            self.filter(&format!("add rule inet box {chain} ip {side} {} tcp dport != 0 {what}", self.client(path)));
        }
    }

    /// Returns true if a rule with a `counter` has matched a packet.
    pub fn box_has_seen_something(&self) -> bool {
        let rules = self.direct.namespace.command("nft", &["list table inet box"]).unwrap();
        rules.split("packets ").skip(1).any(|rest| !rest.starts_with("0 "))
    }

    /// Takes all rules away again.
    pub fn clear_paths(&self) {
        self.filter("flush table inet box");
    }

    pub fn start_engine(&mut self) -> Engine {
        self.make_chains();
        let (namespace, settings) = (&self.direct.namespace, self.settings.clone());
        match std::env::var_os("ANABRANCH_CAPTURES") {
            Some(directory) => {
                let name = std::thread::current().name().unwrap_or("unnamed").replace("::", "-");
                let path = std::path::Path::new(&directory).join(format!("{name}.pcapng"));
                Engine::start_recorded(namespace, "anabranch0", settings, &path).unwrap()
            }
            None => Engine::start(namespace, "anabranch0", settings).unwrap(),
        }
    }

    /// The kernel listens from now on, on all its addresses; answers the first.
    pub fn listen(&mut self, port: u16) -> SocketAddr {
        self.listeners.push(self.kernel.listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).unwrap());
        SocketAddr::new(self.direct.kernel.v4[0], port)
    }

    /// Accepts a connection on the last listener.
    pub fn accept(&self) -> Stream {
        self.listeners.last().expect("it listens").accept(LIMIT).unwrap()
    }

    /// They connect.
    pub fn meet(self) -> Encounter {
        self.meet_amid(|_| {}, |_, _| {})
    }

    /// The same after `before`, with the rules in place that it makes, and `between` the first SYN and the kernel's
    /// `accept` or the engine's.
    pub fn meet_amid(mut self, before: impl FnOnce(&Ground), between: impl FnOnce(&Ground, &Engine)) -> Encounter {
        let engine = self.start_engine();
        before(&self);
        let (ours, theirs) = (self.direct.engine.v4[0], self.direct.kernel.v4[0]);
        let silent = Plan::send(0).closing(Close::Never);
        let (id, stream) = match self.role {
            Role::Client => {
                let id = engine.connect(ours, self.listen(PORT), silent);
                between(&self, &engine);
                (id, self.accept())
            }
            Role::Server => {
                engine.listen(PORT, silent);
                let stream = self.kernel.connect(Some(theirs), SocketAddr::new(ours, PORT)).unwrap();
                between(&self, &engine);
                (engine.nth_connection(1, LIMIT).unwrap(), stream)
            }
        };
        Encounter {
            ground: self,
            engine,
            id,
            stream: Some(stream),
            engine_sends: 0,
            kernel_received: 0,
            kernel_sent: 0,
        }
    }
}

impl Encounter {
    /// A few bytes each way, after which both know that the other speaks MPTCP, and this many subflows are there.
    pub fn with_subflows(mut self, count: usize) -> Encounter {
        self.exchange(1000, 1000);
        self.wait_subflows(count);
        self
    }

    /// Two paths, two subflows.
    pub fn on_two_paths(role: Role) -> Encounter {
        Ground::two_paths(role).meet().with_subflows(2)
    }

    /// The engine is to send this much more.
    pub fn engine_send(&mut self, bytes: u64) {
        self.engine_sends += bytes;
        self.engine.set_plan(self.id, Plan::send(self.engine_sends).closing(Close::Never));
    }

    /// Closes the engine's direction behind its data.
    pub fn engine_close(&mut self) {
        self.engine.set_plan(self.id, Plan::send(self.engine_sends));
    }

    /// The kernel sends this much more; returns when it has taken it.
    pub fn kernel_send(&mut self, bytes: u64) {
        self.stream()
            .send(self.kernel_sent, bytes, LIMIT)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.describe()));
        self.kernel_sent += bytes;
    }

    /// The kernel reads this much more.
    pub fn kernel_receive(&mut self, bytes: u64) {
        let result = self.stream().receive(self.kernel_received, bytes, LIMIT);
        result.unwrap_or_else(|error| panic!("{error}\n{}", self.describe()));
        self.kernel_received += bytes;
    }

    /// Waits until the engine has read all that the kernel sent.
    pub fn engine_receive(&self) {
        let sent = self.kernel_sent;
        let connection = self.wait_for("all was read", |connection| connection.transfer.received >= sent);
        assert_eq!((connection.transfer.received, connection.transfer.wrong), (sent, None), "{}", self.describe());
    }

    /// So much from the engine and so much from the kernel, at the same time, all of it.
    pub fn exchange(&mut self, from_engine: u64, from_kernel: u64) {
        self.engine_send(from_engine);
        let stream = self.stream().clone();
        let offset = self.kernel_received;
        let reading = std::thread::spawn(move || stream.receive(offset, from_engine, LIMIT));
        self.kernel_send(from_kernel);
        self.engine_receive();
        let read = reading.join().unwrap();
        read.unwrap_or_else(|error| panic!("the kernel reads: {error}\n{}", self.describe()));
        self.kernel_received += from_engine;
    }

    /// The kernel's socket.
    pub fn stream(&self) -> &Stream {
        self.stream.as_ref().expect("the socket is closed at the end of a test only")
    }

    /// The kernel's application closes its socket, whatever there is still to be read.
    pub fn close_socket(&mut self) {
        self.stream = None;
    }

    /// The kernel's application gives up.
    pub fn kernel_abort(&mut self) {
        self.stream.take().expect("it is aborted once").abort().unwrap();
    }

    pub fn connection(&self) -> Connection {
        self.engine.connection(self.id)
    }

    /// Waits until the engine's connection is as `enough` wants it.
    pub fn wait_for(&self, what: &str, enough: impl Fn(&Connection) -> bool) -> Connection {
        let found = self.engine.wait_for(self.id, LIMIT, enough);
        found.unwrap_or_else(|error| panic!("not so: {what}\n{error}\n{}", self.describe()))
    }

    /// The open subflows.
    pub fn subflows(&self) -> Vec<SubflowStats> {
        self.connection().subflows.into_iter().filter(|subflow| subflow.established).collect()
    }

    pub fn wait_subflows(&self, count: usize) {
        self.wait_for(&format!("{count} subflows"), |connection| {
            connection.subflows.iter().filter(|subflow| subflow.established).count() == count
        });
    }

    /// The open subflow on path 1 or 2.
    pub fn subflow(&self, path: usize) -> SubflowStats {
        let found = self.find_subflow(path);
        found.unwrap_or_else(|| panic!("no subflow on path {path}\n{}", self.describe()))
    }

    pub fn find_subflow(&self, path: usize) -> Option<SubflowStats> {
        let client = self.ground.client(path);
        self.subflows().into_iter().find(|subflow| [subflow.local.ip(), subflow.remote.ip()].contains(&client))
    }

    pub fn said(&self, event: Event) -> bool {
        self.connection().events.contains(&event)
    }

    /// Both close, the engine first or the kernel, and hear of each other's end; then all is in order.
    pub fn close(mut self, first: Role) {
        let engine_first = first == self.ground.role;
        if engine_first {
            self.engine_close();
            self.stream().receive_end(LIMIT).unwrap_or_else(|error| panic!("{error}\n{}", self.describe()));
            self.stream().shutdown().unwrap();
        } else {
            self.stream().shutdown().unwrap();
            self.wait_for("the kernel's end came", |connection| connection.transfer.peer_finished);
            self.engine_close();
            self.stream().receive_end(LIMIT).unwrap_or_else(|error| panic!("{error}\n{}", self.describe()));
        }
        self.wait_closed();
    }

    /// Waits until the connection is closed in order, and looks at what both counted of bytes.
    pub fn wait_closed(&self) {
        let connection = self.wait_for("it is over", Connection::is_gone);
        assert!(connection.events.contains(&Event::Closed), "{}", self.describe());
        let transfer = &connection.transfer;
        assert_eq!((transfer.received, transfer.wrong), (self.kernel_sent, None), "{}", self.describe());
        assert_eq!((transfer.sent, self.kernel_received), (self.engine_sends, self.engine_sends));
        self.engine.check().unwrap();
    }

    /// The kernel met nothing that it counts as trouble, but for these counters.
    pub fn assert_no_trouble_but(&self, allowed: &[&str]) {
        let counters = self.ground.counters();
        let mut trouble = counters.mptcp_trouble();
        trouble.retain(|name, _| !allowed.contains(name));
        assert!(trouble.is_empty(), "{trouble:?} in {}", self.describe());
    }

    /// Describes the complete state, to diagnose a failure.
    pub fn describe(&self) -> String {
        let mut text = format!("kernel: {}\nengine: {:#?}\n", self.ground.counters(), self.engine.counters());
        let connection = self.connection();
        text += &format!("{:?}\n{:?}\n{:?}\n", connection.transfer, connection.events, connection.stats);
        for subflow in connection.subflows {
            text += &format!("  {subflow:?}\n");
        }
        text
    }
}
