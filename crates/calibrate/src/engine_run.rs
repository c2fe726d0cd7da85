//! A transfer between two engines, each on a TUN device in its namespace, each with a thread of its own.

use crate::end::{Log, ends, outcome};
use crate::engine_peer::{Peer, Place};
use crate::transfer::{Addresses, Times, Transfer, TransferError};
use anabranch_engine::{Config, LocalAddress};
use anabranch_host::{Application, Driver, Namespace, Reactor, Tun};
use anabranch_sim::Spec;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::channel;

/// Makes one transfer; answers how long it took.
pub fn transfer(
    client: &Namespace,
    server: &Namespace,
    spec: &Spec,
    addresses: &Addresses,
    transfer: &Transfer,
) -> Result<Times, TransferError> {
    let local = |&(ip, backup): &(IpAddr, bool)| LocalAddress { ip, backup };
    let with = |config: &Config, addresses| Config { addresses, ..config.clone() };
    let client_config = with(&spec.client.config, addresses.client.iter().map(local).collect());
    let server_config = with(&spec.server.config, addresses.server.iter().map(|&ip| local(&(ip, false))).collect());
    let remote = SocketAddr::new(addresses.server[0], PORT);

    let (log, (reports, heard)) = (Log::default(), channel());
    let (fetching, serving) = ends(transfer, &log);
    let from = Place::Client(addresses.client[addresses.primary].0, remote);
    let fetching = Peer::new(fetching, from, &log, reports.clone());
    let serving = Peer::new(serving, Place::Server(PORT), &log, reports);

    let server_device = open(server, &addresses.server)?;
    let client_addresses: Vec<IpAddr> = addresses.client.iter().map(|(ip, _)| *ip).collect();
    let client_device = open(client, &client_addresses)?;
    let stop_server = run(server_config, server_device, serving)?;
    let stop_client = run(client_config, client_device, fetching)?;

    let outcome = outcome(transfer, &log, &heard);
    // The remaining segments (the last ACKs, the FINs) do not affect the transfer.
    stop_client.end()?;
    stop_server.end()?;
    outcome
}

/// A port that nothing else uses in a namespace of ours.
pub(crate) const PORT: u16 = 8684;
/// Name of the engine's device.
const DEVICE: &str = "anabranch0";

fn open(namespace: &Namespace, addresses: &[IpAddr]) -> io::Result<Tun> {
    let device = namespace.run(|| Tun::open(DEVICE))?;
    let ip = |arguments: &str| {
        let words: Vec<&str> = arguments.split(' ').collect();
        namespace.command("ip", &words).map(drop).map_err(io::Error::other)
    };
    ip(&format!("link set dev {DEVICE} up mtu 1500 txqueuelen 10000"))?;
    for address in addresses {
        ip(&format!("route add {address} dev {DEVICE}"))?;
    }
    Ok(device)
}

/// A reactor that runs.
struct Running {
    stop: anabranch_host::Stop,
    thread: std::thread::JoinHandle<io::Result<()>>,
}

impl Running {
    fn end(self) -> io::Result<()> {
        self.stop.stop();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run(config: Config, device: Tun, application: impl Application + Send + 'static) -> io::Result<Running> {
    let driver = Driver::new(config, Box::new(device))?;
    let reactor = Reactor::new(driver, application)?;
    let stop = reactor.stopper();
    let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || reactor.run().map(drop))?;
    Ok(Running { stop, thread })
}
