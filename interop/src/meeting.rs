//! A client and a server, each the engine or the kernel, with emulated paths between them, and one connection.

use crate::proxy::{self, ProxyEngine};
use crate::{
    Close, Connection, Conversation, Engine, Family, Incident, Kernel, KernelCounters, Listener, Plan, Scripted,
    Stream, Transfer, What, When, machine, wait,
};
use anabranch_engine::{Config, ConnectionId};
use anabranch_host::emulator::{LinkReport, Options as EmulatorOptions};
use anabranch_host::testbed::{Testbed, TestbedOptions};
use anabranch_host::{Application, EmulatorReport, Namespace};
use anabranch_net::LinkStats;
use anabranch_paths::{Affected, NetworkSpec};
use anabranch_units::Seed;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// TCP implementation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Ours.
    Engine,
    /// Linux's.
    Kernel,
}

/// One end before they meet.
#[derive(Clone)]
pub struct Party {
    /// TCP implementation.
    pub stack: Stack,
    /// It speaks MPTCP.
    pub multipath: bool,
    /// It requires DSS checksums.
    pub checksum: bool,
    /// Plan of this end.
    pub plan: Plan,
    /// Further settings of an engine, made to those that follow from the rest.
    pub adjust: Adjust,
    /// Further parameters of a kernel's namespace.
    pub sysctls: Vec<(&'static str, &'static str)>,
    /// A kernel's SO_RCVBUF.
    pub receive_buffer: Option<usize>,
    /// A proxy runs on its engine, and a kernel's socket behind that carries out the plan over plain TCP.
    pub proxied: bool,
    /// An engine's device is recorded here.
    pub capture: Option<PathBuf>,
}

/// A change to an engine's settings.
pub type Adjust = Arc<dyn Fn(&mut Config) + Send + Sync>;

/// A connection between two parties over emulated paths.
#[derive(Clone)]
pub struct Meeting {
    /// The paths.
    pub network: NetworkSpec,
    /// Fixes their draws.
    pub seed: Seed,
    /// The version of IP.
    pub family: Family,
    /// Party that connects.
    pub client: Party,
    /// Party that listens.
    pub server: Party,
    /// Number of subflows required before either end sends: on a busy machine a transfer may be over before a second
    /// one is established. Only an engine can be asked; two kernels do not wait.
    pub subflows: usize,
    /// Incidents once both ends send, one after the other.
    pub incidents: Vec<Incident>,
    /// Only a guard against hanging: it must be over by then.
    pub limit: Duration,
}

/// Outcome of a meeting.
#[derive(Debug)]
pub struct Outcome {
    /// The end that connected.
    pub client: End,
    /// The end that listened.
    pub server: End,
    /// Report of the links.
    pub links: EmulatorReport,
}

/// Outcome at one end.
#[derive(Debug)]
pub struct End {
    /// Of the plan.
    pub transfer: Transfer,
    /// Counters of the namespace's kernel; hardly any count if the end is an engine.
    pub counters: KernelCounters,
    /// The connection, if the end is an engine.
    pub connection: Option<Connection>,
}

impl Party {
    /// An MPTCP host without checksums.
    pub fn new(stack: Stack, plan: Plan) -> Party {
        Party {
            stack,
            multipath: true,
            checksum: false,
            plan,
            adjust: Arc::new(|_| ()),
            sysctls: Vec::new(),
            receive_buffer: None,
            proxied: false,
            capture: None,
        }
    }

    /// The kernel of its host, apart from what the machine says.
    fn set_up(&self, host: &Namespace) -> io::Result<()> {
        machine::set_defaults(host)?;
        let checksum = self.checksum && self.stack == Stack::Kernel;
        host.sysctl("net.mptcp.checksum_enabled", if checksum { "1" } else { "0" })?;
        self.sysctls.iter().try_for_each(|(key, value)| host.sysctl(key, value))
    }

    fn engine<A: Application + 'static>(
        &self,
        namespace: &Namespace,
        addresses: &[IpAddr],
        make: impl FnOnce() -> io::Result<A> + Send + 'static,
    ) -> Result<Engine<A>, String> {
        let mut config = crate::config(addresses);
        config.multipath = self.multipath;
        config.checksum = self.checksum;
        (self.adjust)(&mut config);
        let engine = Engine::host(namespace, DEVICE, config, self.capture.as_deref(), make);
        engine.map_err(|error| format!("starting the engine: {error}"))
    }

    fn kernel(&self, namespace: &Namespace) -> Kernel {
        Kernel { multipath: self.multipath, receive_buffer: self.receive_buffer, ..Kernel::new(namespace) }
    }
}

impl Meeting {
    /// Builds the testbed, runs the connection and takes the testbed down.
    ///
    /// # Errors
    /// If something cannot be built, or the parties do not connect. The caller judges the transfer.
    pub fn hold(&self) -> Result<Outcome, String> {
        // Many runs at a time, and no measurement of delays: no spinning, no privilege.
        let emulator =
            EmulatorOptions { real_time: false, spin: anabranch_units::Duration::ZERO, ..EmulatorOptions::default() };
        let options = TestbedOptions { emulator, ..TestbedOptions::default() };
        let testbed = Testbed::build(&self.network, self.seed, 1, options)
            .map_err(|error| format!("building the testbed: {error}"))?;
        if !testbed.shortcomings.is_empty() {
            return Err(format!("the testbed lacks something: {:?}", testbed.shortcomings));
        }
        for (party, host) in [(&self.client, &testbed.client), (&self.server, &testbed.server)] {
            party.set_up(host).map_err(|error| error.to_string())?;
        }
        testbed.begin().map_err(|error| error.to_string())?;
        let before = [&testbed.client, &testbed.server].map(KernelCounters::read);
        let met = self.converse(&testbed);
        let after = [&testbed.client, &testbed.server].map(KernelCounters::read);
        let links = testbed.stop().map_err(|error| error.to_string())?;
        let (client, server) = met.map_err(|error| format!("{error}\n{}", describe(&links)))?;
        let mut counters = before.into_iter().zip(after).map(|(before, after)| {
            let counted = before.and_then(|before| Ok(after?.since(&before)));
            counted.map_err(|error| format!("reading counters: {error}"))
        });
        let mut end = |(transfer, connection): (Transfer, Option<Connection>)| {
            let counters = counters.next().expect("there are two namespaces")?;
            Ok::<_, String>(End { transfer, counters, connection })
        };
        Ok(Outcome { client: end(client)?, server: end(server)?, links })
    }

    fn converse(&self, testbed: &Testbed) -> Result<(Met, Met), String> {
        let end = Instant::now() + self.limit;
        let layout = &testbed.layout;
        let of = |both: [IpAddr; 2]| both[usize::from(self.family == Family::V6)];
        let server_address = match self.server.stack {
            Stack::Kernel => layout.server().map(|it| of(it.both())).next(),
            Stack::Engine => layout.server_engine().map(|it| of(it.both())).next(),
        };
        let to = SocketAddr::new(server_address.ok_or("the server has no address")?, PORT);
        let engine_addresses: Vec<IpAddr> = layout.server_engine().map(|it| of(it.both())).collect();
        let server = self.listen(testbed, &engine_addresses, to)?;
        let client_addresses: Vec<IpAddr> = layout.paths.iter().map(|path| of(path.client_engine().both())).collect();
        let kernel_address = of(layout.primary().client().both());
        let client = self.connect(testbed, (&client_addresses, layout.primary), kernel_address, to)?;
        let server = match server {
            Listening::Engine(engine) => {
                let id = engine.nth_connection(1, self.limit)?;
                Running::Engine(engine, id)
            }
            Listening::Kernel(listener, proxy) => {
                let socket = listener.accept(self.limit).map_err(|error| format!("the kernel's accept: {error}"))?;
                Running::Kernel { socket: Some(socket), conversation: None, proxy, _listener: Some(listener) }
            }
        };
        let mut ends = [(client, &self.client.plan), (server, &self.server.plan)];
        ends.iter().try_for_each(|(running, _)| running.wait_for_subflows(self.subflows, self.limit))?;
        ends.iter_mut().for_each(|(running, plan)| running.start(**plan, self.limit));
        for incident in &self.incidents {
            self.befall(testbed, incident, &ends.each_ref().map(|(running, _)| running), end)?;
        }
        // Engines stay until both ends are done: the last ACK of one is what the other waits for.
        let [client, server] = ends.each_mut().map(|(running, plan)| running.finish(plan, end));
        for (running, _) in ends {
            match running {
                Running::Engine(engine, _) => {
                    engine.check()?;
                    engine.stop()?;
                }
                Running::Kernel { proxy: Some(proxy), .. } => {
                    proxy.check()?;
                    proxy.stop()?;
                }
                Running::Kernel { proxy: None, .. } => {}
            }
        }
        Ok((client, server))
    }

    fn listen(&self, testbed: &Testbed, engine: &[IpAddr], to: SocketAddr) -> Result<Listening, String> {
        let (party, namespace) = (&self.server, &testbed.server);
        let listens = |kernel: Kernel, address| kernel.listen(address).map_err(|error| format!("listening: {error}"));
        match party.stack {
            Stack::Engine if party.proxied => {
                let service = listens(Kernel { multipath: false, ..party.kernel(namespace) }, BEHIND_A_PROXY)?;
                let address = service.address().map_err(|error| error.to_string())?;
                let proxy = party.engine(namespace, engine, move || proxy::to_service(PORT, address))?;
                Ok(Listening::Kernel(service, Some(proxy)))
            }
            Stack::Engine => {
                let engine = party.engine(namespace, engine, || Ok(Scripted::default()))?;
                engine.listen(PORT, self.opening(party));
                Ok(Listening::Engine(engine))
            }
            Stack::Kernel => Ok(Listening::Kernel(listens(party.kernel(namespace), to)?, None)),
        }
    }

    /// Connects from `addresses`, those of an engine and which of them comes first, or from a kernel's.
    fn connect(
        &self,
        testbed: &Testbed,
        (addresses, primary): (&[IpAddr], usize),
        kernel: IpAddr,
        to: SocketAddr,
    ) -> Result<Running, String> {
        let (party, namespace) = (&self.client, &testbed.client);
        let failed = |error: io::Error| format!("the kernel's connect: {error}");
        let (socket, proxy) = match party.stack {
            Stack::Engine if party.proxied => {
                let mut via = addresses.to_vec();
                via.swap(0, primary);
                let proxy = party.engine(namespace, addresses, move || proxy::for_clients(via))?;
                let kernel = Kernel { multipath: false, ..party.kernel(namespace) };
                (proxy::connect_through(&proxy, &kernel, to, self.limit).map_err(failed)?, Some(proxy))
            }
            Stack::Engine => {
                let engine = party.engine(namespace, addresses, || Ok(Scripted::default()))?;
                let id = engine.connect(addresses[primary], to, self.opening(party));
                return Ok(Running::Engine(engine, id));
            }
            Stack::Kernel => (party.kernel(namespace).connect(Some(kernel), to).map_err(failed)?, None),
        };
        Ok(Running::Kernel { socket: Some(socket), conversation: None, proxy, _listener: None })
    }
}

impl Meeting {
    /// Waits for the time of an incident and lets it happen.
    fn befall(
        &self,
        testbed: &Testbed,
        incident: &Incident,
        ends: &[&Running; 2],
        limit: Instant,
    ) -> Result<(), String> {
        match incident.when {
            When::Later(time) => std::thread::sleep(time),
            When::Received(bytes) => {
                // An end whose peer sends less than that may be through: the incident then comes after the data.
                let due = || {
                    let progress = ends.map(Running::progress);
                    progress.iter().any(|it| it.received >= bytes) || progress.iter().all(|it| it.peer_finished)
                };
                wait(limit.saturating_duration_since(Instant::now()), due);
            }
        }
        let parties = [(&self.client, &testbed.client), (&self.server, &testbed.server)];
        match &incident.what {
            What::Path(path, change) => {
                let name = &self.network.paths[*path].name;
                let changed = testbed.emulator().change(name, Affected::Both, change.clone());
                changed.map_err(|error| format!("{change:?} of {name}: {error}"))
            }
            What::Command(stack, program, arguments) => {
                let mut hosts = parties.into_iter().filter(|(party, _)| party.stack == *stack);
                hosts.try_for_each(|(_, host)| {
                    host.command(program, arguments).map(drop).map_err(|error| error.to_string())
                })
            }
            What::AddressGivenUp => {
                ends.iter().for_each(|running| running.on_engine(Engine::give_address_up, Engine::give_address_up));
                Ok(())
            }
            What::AddressesFlushed(pause) => {
                let pause = *pause;
                ends.iter().for_each(|running| {
                    running.on_engine(|engine| engine.flush_addresses(pause), |proxy| proxy.flush_addresses(pause));
                });
                Ok(())
            }
        }
    }

    /// The plan of an engine before it is to do everything: a few bytes, without which no end may join.
    fn opening(&self, party: &Party) -> Plan {
        match self.subflows {
            0 | 1 => party.plan,
            _ => Plan::send(party.plan.send.min(OPENING)).closing(Close::Never),
        }
    }
}

type Met = (Transfer, Option<Connection>);

enum Listening {
    Engine(Engine),
    Kernel(Listener, Option<ProxyEngine>),
}

enum Running {
    Engine(Engine, ConnectionId),
    /// The socket, until the conversation has begun, until it is over; the proxy that it talks to; and the listening
    /// socket, without which the kernel refuses further subflows.
    Kernel {
        socket: Option<Stream>,
        conversation: Option<Conversation>,
        proxy: Option<ProxyEngine>,
        _listener: Option<Listener>,
    },
}

impl Running {
    fn wait_for_subflows(&self, count: usize, limit: Duration) -> Result<(), String> {
        let Running::Engine(engine, id) = self else { return Ok(()) };
        if count < 2 {
            return Ok(());
        }
        let established = |it: &Connection| it.subflows.iter().filter(|subflow| subflow.established).count();
        let there = engine.wait_for(*id, limit, |connection| established(connection) >= count);
        there.map(drop).map_err(|error| format!("{count} subflows never came about: {error}"))
    }

    /// Lets it do everything.
    fn start(&mut self, plan: Plan, limit: Duration) {
        match self {
            Running::Engine(engine, id) => engine.set_plan(*id, plan),
            Running::Kernel { socket, conversation, .. } => {
                *conversation = socket.take().map(|socket| socket.start(plan, limit));
            }
        }
    }

    /// Does something to the engine, whichever application is on it.
    fn on_engine(&self, engine: impl FnOnce(&Engine), proxy: impl FnOnce(&ProxyEngine)) {
        match self {
            Running::Engine(it, _) => engine(it),
            Running::Kernel { proxy: Some(it), .. } => proxy(it),
            Running::Kernel { proxy: None, .. } => {}
        }
    }

    fn progress(&self) -> Transfer {
        match self {
            Running::Engine(engine, id) => engine.connection(*id).transfer,
            Running::Kernel { conversation, .. } => {
                conversation.as_ref().map(Conversation::progress).unwrap_or_default()
            }
        }
    }

    fn finish(&mut self, plan: &Plan, end: Instant) -> Met {
        match self {
            Running::Kernel { conversation, .. } => {
                let transfer = conversation.take().map(|conversation| conversation.finish(plan));
                (transfer.unwrap_or_default(), None)
            }
            Running::Engine(engine, id) => {
                let left = end.saturating_duration_since(Instant::now());
                let over = wait(left, || engine.connection(*id).is_gone());
                let mut connection = engine.connection(*id);
                if !over {
                    connection.transfer.failure.get_or_insert("not over in time".to_owned());
                }
                (connection.transfer.clone(), Some(connection))
            }
        }
    }
}

impl End {
    /// Number of subflows that carried data from this end; `None` for a kernel, which does not tell.
    pub fn subflows_used(&self) -> Option<usize> {
        let connection = self.connection.as_ref()?;
        Some(connection.subflows.iter().filter(|subflow| subflow.bytes_first_sent > 0).count())
    }
}

/// Both ends and the links.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client: {:#?}\nserver: {:#?}\n{}", self.client, self.server, describe(&self.links))
    }
}

/// Lists the packets that each link delivered and dropped, one link per line.
pub fn describe(links: &EmulatorReport) -> String {
    let line = |link: &LinkReport| {
        let LinkStats { offered, delivered, dropped, max_queued, .. } = link.stats;
        format!("{}: {offered} offered, {delivered} delivered, {dropped:?}, at most {max_queued} queued", link.name)
    };
    links.links.iter().map(line).collect::<Vec<_>>().join("\n")
}

const PORT: u16 = 8080;
/// Any free port of the service's own host.
const BEHIND_A_PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const DEVICE: &str = "anabranch0";
/// Bytes that an engine sends before all subflows are there.
const OPENING: u64 = 1000;
