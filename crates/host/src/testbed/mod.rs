//! A testbed: a client and a server, each in a network namespace of its own, and a scenario's paths between them in
//! real time.
//!
//! [`Layout`] says who has which address, `plan.rs` what is done for that, [`Testbed`] does it. It needs CAP_SYS_ADMIN,
//! which an ordinary user has inside [`supervise`](crate::supervise); it works without, too, where the caller is root.

mod counters;
mod hosts;
mod layout;
mod plan;
mod program;
mod readiness;
mod settings;
pub mod traffic;

pub use counters::KernelCounters;
pub use hosts::{hosts_file, show_hosts};
pub use layout::{Addresses, Layout, PathLayout};
pub use program::{Program, ProgramError, Readied, exit_code, signal};
pub use readiness::{NOTIFY_SOCKET, Readiness, notify_ready};
pub use settings::KernelSettings;

use crate::emulator::{Emulator, EmulatorError, EmulatorReport, Handle, Options as EmulatorOptions, PathEnds};
use crate::ip::{self, Link};
use crate::{Device, Namespace, PacketSocket, Tun, VethError};
use anabranch_paths::NetworkSpec;
use anabranch_units::Seed;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options of a testbed.
#[derive(Clone, Debug, Default)]
pub struct TestbedOptions {
    /// Kind of interface at the ends of the paths.
    pub backend: Backend,
    /// The client's kernel.
    pub client: KernelSettings,
    /// The server's kernel.
    pub server: KernelSettings,
    /// The links.
    pub emulator: EmulatorOptions,
}

/// Kind of interface at the ends of the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// TUN devices where they can be opened, otherwise veth pairs.
    #[default]
    Auto,
    /// TUN devices.
    Tun,
    /// Pairs of virtual Ethernet interfaces, whose far ends are read with packet sockets.
    Veth,
}

/// Two hosts and the paths between them. When it is dropped, nothing of it is left.
pub struct Testbed {
    /// Addresses and names.
    pub layout: Layout,
    /// The host that opens connections.
    pub client: Namespace,
    /// The host that accepts them.
    pub server: Namespace,
    /// Kind of interface at the ends of the paths: never `Auto`.
    pub backend: Backend,
    /// Non-essential steps that failed, as sentences.
    pub shortcomings: Vec<String>,
    emulator: Handle,
}

/// Why a testbed cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A network namespace could not be made.
    #[error("cannot make a network namespace: {0}")]
    Namespace(io::Error),
    /// `ip` is not installed.
    #[error("the command `ip` is missing; install iproute2")]
    NoIproute,
    /// A TUN device could not be made.
    #[error("cannot make a TUN device: {error}")]
    Tun {
        /// Error of the operating system.
        error: io::Error,
    },
    /// A veth pair could not be made.
    #[error("cannot make a virtual Ethernet pair: {0}")]
    Veth(#[from] VethError),
    /// A command failed, or a parameter could not be set.
    #[error("{0}")]
    Step(String),
    /// The links.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
}

impl TestbedError {
    /// Returns advice, if there is any.
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            TestbedError::Namespace(_) => {
                "run as root, or through `anabranch testbed`, which makes a user namespace where the system allows that"
            }
            TestbedError::NoIproute => "install the package iproute2 (Debian, Ubuntu, Alpine) or iproute (Fedora)",
            TestbedError::Tun { error } => match error.kind() {
                io::ErrorKind::NotFound => "load the kernel module (`modprobe tun`), or use --backend veth",
                io::ErrorKind::PermissionDenied => {
                    "let users open it: `sudo chmod 0666 /dev/net/tun`, as most distributions have it; \
                     or use --backend veth"
                }
                _ => "use --backend veth",
            },
            TestbedError::Veth(error) if error.to_string().contains("device type") => {
                "load the kernel module (`modprobe veth`); --backend tun needs no such pairs, but /dev/net/tun"
            }
            TestbedError::Veth(_) | TestbedError::Step(_) | TestbedError::Emulator(_) => return None,
        };
        Some(text.to_owned())
    }
}

impl Testbed {
    /// Makes namespaces, interfaces, addresses and routes, and starts the links. The scenario's changes wait for
    /// [`Testbed::begin`]. The server has `server_addresses` of each family.
    pub fn build(
        spec: &NetworkSpec,
        seed: Seed,
        server_addresses: usize,
        options: TestbedOptions,
    ) -> Result<Self, TestbedError> {
        if find_program("ip").is_none() {
            return Err(TestbedError::NoIproute);
        }
        let layout = Layout::new(spec, server_addresses);
        let client = Namespace::new("client").map_err(TestbedError::Namespace)?;
        let server = Namespace::new("server").map_err(TestbedError::Namespace)?;
        let mut shortcomings = Vec::new();
        let mut builder = Builder { shortcomings: &mut shortcomings, multipath: has_mptcp() };
        builder.lacks_mptcp();
        builder.run(&client, &plan::defaults())?;
        builder.run(&server, &plan::defaults())?;
        let backend = choose(options.backend)?;
        let ends = match backend {
            Backend::Veth => veths(&layout, &client, &server)?,
            Backend::Tun | Backend::Auto => tuns(&layout, &client, &server)?,
        };
        builder.run(&client, &plan::client(&layout, &options.client))?;
        builder.run(&server, &plan::server(&layout, &options.server))?;
        builder.settle(&[&client, &server]);
        let emulator = Emulator::start(spec, seed, ends, EmulatorOptions { hold_changes: true, ..options.emulator })?;
        Ok(Testbed { layout, client, server, backend, shortcomings, emulator })
    }

    /// Starts the clock of the scenario's changes.
    pub fn begin(&self) -> Result<(), EmulatorError> {
        self.emulator.begin()
    }

    /// The links.
    pub fn emulator(&self) -> &Handle {
        &self.emulator
    }

    /// Stops the links and returns their report.
    pub fn stop(self) -> Result<EmulatorReport, EmulatorError> {
        self.emulator.stop()
    }

    /// Environment variables that describe the testbed to programs in either namespace.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        environment(&self.layout)
    }
}

fn environment(layout: &Layout) -> Vec<(&'static str, String)> {
    let join = |each: &mut dyn Iterator<Item = String>| each.collect::<Vec<_>>().join(" ");
    let (mut paths, mut devices) =
        (layout.paths.iter().map(|it| it.name.clone()), layout.paths.iter().map(|it| it.device.clone()));
    let (client, server) = (layout.primary().client(), layout.server().next());
    let server_engine = layout.server_engine().next();
    let text = |address: Option<String>| address.unwrap_or_default();
    vec![
        ("ANABRANCH_SERVER", text(server.map(|it| it.v4.to_string()))),
        ("ANABRANCH_SERVER6", text(server.map(|it| it.v6.to_string()))),
        ("ANABRANCH_CLIENT", client.v4.to_string()),
        ("ANABRANCH_CLIENT6", client.v6.to_string()),
        ("ANABRANCH_PATHS", join(&mut paths)),
        ("ANABRANCH_DEVICES", join(&mut devices)),
        ("ANABRANCH_ADDRESSES", join(&mut layout.paths.iter().map(|it| it.client().v4.to_string()))),
        ("ANABRANCH_ADDRESSES6", join(&mut layout.paths.iter().map(|it| it.client().v6.to_string()))),
        ("ANABRANCH_ENGINE_SERVER", text(server_engine.map(|it| it.v4.to_string()))),
        ("ANABRANCH_ENGINE_SERVER6", text(server_engine.map(|it| it.v6.to_string()))),
        ("ANABRANCH_ENGINE_ADDRESSES", join(&mut layout.paths.iter().map(|it| it.client_engine().v4.to_string()))),
        ("ANABRANCH_ENGINE_ADDRESSES6", join(&mut layout.paths.iter().map(|it| it.client_engine().v6.to_string()))),
    ]
}

/// Carries plans out and keeps account of what was refused.
struct Builder<'a> {
    shortcomings: &'a mut Vec<String>,
    /// True if the kernel has MPTCP.
    multipath: bool,
}

impl Builder<'_> {
    fn lacks_mptcp(&mut self) {
        if !self.multipath {
            let text =
                "this kernel has no MPTCP (CONFIG_MPTCP): kernel sockets speak plain TCP; engines are not affected";
            self.shortcomings.push(text.to_owned());
        }
    }

    /// Waits until interfaces and addresses can be used. The kernel sees to it some time after it was told to, on a
    /// busy machine well after; who is faster loses packets, and cannot bind to an IPv6 address.
    fn settle(&mut self, hosts: &[&Namespace]) {
        let begin = Instant::now();
        for host in hosts {
            while let Some(unsettled) = unsettled(host) {
                if begin.elapsed() >= SETTLING {
                    self.shortcomings.push(format!("{}: {unsettled} after {} s", host.name(), SETTLING.as_secs()));
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    fn run(&mut self, namespace: &Namespace, steps: &[plan::Step]) -> Result<(), TestbedError> {
        for step in steps.iter().filter(|step| self.multipath || !step.is_multipath()) {
            self.shortcomings.extend(step.run(namespace).map_err(TestbedError::Step)?);
        }
        Ok(())
    }
}

/// Guard against hangs: milliseconds suffice on an idle machine.
const SETTLING: Duration = Duration::from_secs(10);

/// The part of a host that cannot be used yet, as a sentence without its end.
fn unsettled(host: &Namespace) -> Option<String> {
    let links = host.command("ip", &["-j", "link", "show", "up"]).unwrap_or_default();
    let links: Vec<Link> = ip::read(&links).unwrap_or_default();
    if let Some(link) = links.iter().find(|link| !link.is_ready()) {
        return Some(format!("the interface {} was not ready", link.ifname));
    }
    let addresses = host.run(|| std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default());
    let mut tentative = addresses.lines().filter(|line| is_tentative(line));
    tentative.next().map(|line| format!("the address {} was not usable", line.split(' ').next().unwrap_or("")))
}

/// A line of `if_inet6`: address, interface, prefix, scope, flags and name, the numbers in hexadecimal
/// (`IFA_F_TENTATIVE`).
fn is_tentative(line: &str) -> bool {
    let flags = line.split_whitespace().nth(4).and_then(|flags| u8::from_str_radix(flags, 16).ok());
    flags.is_some_and(|flags| flags & 0x40 != 0)
}

fn has_mptcp() -> bool {
    Path::new("/proc/sys/net/mptcp/enabled").exists()
}

/// Finds the program `name` in `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The back end to use.
fn choose(backend: Backend) -> Result<Backend, TestbedError> {
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    match (backend, tun) {
        (Backend::Veth, _) | (Backend::Auto, Err(_)) => Ok(Backend::Veth),
        (Backend::Tun | Backend::Auto, Ok(_)) => Ok(Backend::Tun),
        (Backend::Tun, Err(error)) => Err(TestbedError::Tun { error }),
    }
}

/// Pairs whose far ends are in a namespace of their own, where nothing else is.
fn veths(layout: &Layout, client: &Namespace, server: &Namespace) -> Result<Vec<PathEnds>, TestbedError> {
    let links = Namespace::new("links").map_err(TestbedError::Namespace)?;
    let open = |host: &Namespace, path: &PathLayout, side: char| -> Result<Box<dyn Device>, TestbedError> {
        let far_end = format!("{side}{}", path.number);
        Ok(Box::new(PacketSocket::pair(host, &path.device, &links, &far_end)?))
    };
    let ends = |path: &PathLayout| Ok(PathEnds { client: open(client, path, 'c')?, server: open(server, path, 's')? });
    layout.paths.iter().map(ends).collect()
}

fn tuns(layout: &Layout, client: &Namespace, server: &Namespace) -> Result<Vec<PathEnds>, TestbedError> {
    let open = |namespace: &Namespace, name: &str| -> Result<Box<dyn Device>, TestbedError> {
        let name = name.to_owned();
        let tun = namespace.run(move || Tun::open(&name)).map_err(|error| TestbedError::Tun { error })?;
        Ok(Box::new(tun))
    };
    let ends =
        |path: &PathLayout| Ok(PathEnds { client: open(client, &path.device)?, server: open(server, &path.device)? });
    layout.paths.iter().map(ends).collect()
}
