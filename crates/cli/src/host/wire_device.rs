//! The engine on its device, with addresses of its own and borrowed ones.

use super::wire_options::{WireOptions, claimed, closed_node};
use crate::failure::Failure;
use anabranch_engine::Config;
use anabranch_host::addresses::{Borrowed, Loan, Pool};
use anabranch_host::{Driver, Interface, Translated, Tun, hide_memory, pass_on_net_admin};
use std::net::{IpAddr, UdpSocket};
use std::ops::RangeInclusive;

/// An engine that only needs to be run.
pub struct Prepared {
    pub driver: Driver,
    /// The TUN device's name.
    pub device: String,
    /// The same, for messages.
    pub name: String,
    /// Loan of addresses, to be dropped at the end.
    pub borrowed: Option<Borrowed>,
}

/// Packets that may wait for us on the device; its default of 500 is a hidden drop-tail queue.
const QUEUE: u32 = 10_000;
/// Ports for connections that are opened from borrowed addresses, unless others are given.
const BORROWED_PORTS: RangeInclusive<u16> = 61_000..=65_535;
/// IPv4 and TCP headers without options.
const HEADERS: u32 = 40;

/// Ports of a borrowed address that go to the engine.
pub enum Diverted {
    /// Those that it listens on. One, if an address is borrowed: what lies between two is the machine's.
    Listening(Vec<u16>),
    /// Those that it opens connections from; the limit of connections at a time.
    Opening(u32),
}

/// Opens the device and borrows the addresses that the machine has itself.
pub fn prepare(
    wire: &WireOptions,
    mut config: Config,
    local: &[IpAddr],
    diverted: Diverted,
) -> Result<Prepared, Failure> {
    hide_memory().map_err(|error| {
        Failure::Failed(miette::miette!(
            "cannot exclude the memory of this process, which holds keys, from core dumps: {error}"
        ))
    })?;
    let (outer, own): (Vec<IpAddr>, Vec<IpAddr>) = local.iter().partition(|address| is_ours(**address));
    if outer.is_empty() {
        // Addresses that the machine does not have need no loan: the device routes them by itself.
        let tun = wire.open_tun(&own)?;
        let (device, name) = (tun.name().to_owned(), tun.name().to_owned());
        let driver = Driver::new(config, Box::new(tun));
        let driver = driver.map_err(|error| Failure::Failed(miette::miette!("cannot start the engine: {error}")))?;
        return Ok(Prepared { driver, device, name, borrowed: None });
    }

    pass_on_net_admin().map_err(|_| permission(wire))?;
    let tun = Tun::open(&wire.tun).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => closed_node(&error).unwrap_or_else(|| permission(wire)),
        _ => Failure::Failed(miette::miette!("cannot open the TUN device {}: {error}", wire.tun)),
    })?;
    let device = tun.name().to_owned();
    let up = |mtu: Option<u32>| Interface::named(&device).and_then(|interface| interface.up(QUEUE, mtu));
    let failed = |error| Failure::Failed(miette::miette!("cannot bring the TUN device {device} up: {error}"));
    // Routes can be added only to an interface that is up. The MTU is not known before the loan, which finds the
    // interfaces of the outer addresses.
    up(None).map_err(failed)?;
    let interface = Interface::named(&device).map_err(failed)?;
    own.iter().try_for_each(|address| interface.route(*address)).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => claimed(&error),
        _ => failed(error),
    })?;

    let ports = match diverted {
        Diverted::Listening(listening) => match listening.as_slice() {
            [port] => *port..=*port,
            _ => {
                let (count, outer) = (listening.len(), outer[0]);
                return Err(Failure::Refused(miette::miette!(
                    help = "name one service, such as --http 8080, or an address that the machine does not have",
                    "{outer} is this machine's own, and can be borrowed for one port only, not for {count}"
                )));
            }
        },
        Diverted::Opening(most) => {
            // Borrowed connections share the machine's addresses with its own sockets: only ports of this range are
            // diverted, and one is taken for each connection.
            let ports = config.ports.get_or_insert(BORROWED_PORTS).clone();
            if *ports.start() < 1024 {
                return Err(Failure::Refused(miette::miette!(
                    help = "accepted: ports from 1024 upwards, such as --ports 61000-65535",
                    "--ports begins at {}, among the ports of the machine's own services",
                    ports.start()
                )));
            }
            let many = u32::from(ports.end() - ports.start()) + 1;
            if many < most {
                return Err(Failure::Refused(miette::miette!(
                    help = "lower --max-connections, or widen --ports",
                    "each connection takes a port: there are {many} ports for {most} connections"
                )));
            }
            ports
        }
    };
    let pool = Pool { v4: wire.inner, v6: wire.inner6 };
    let loan = Loan { device: device.clone(), outer: outer.clone(), ports, pool };
    let borrowed = Borrowed::take(&loan).map_err(|error| {
        let help = "it takes the programs ip and nft, CAP_NET_ADMIN, and /proc/sys/net to be writable";
        Failure::Failed(miette::miette!(help = help, "cannot borrow addresses: {error}"))
    })?;
    if let Some(mtu) = borrowed.mtu() {
        up(Some(mtu)).map_err(failed)?;
        let mss = mtu.saturating_sub(HEADERS).min(u32::from(config.profile.mss));
        config.profile.mss = mss.try_into().unwrap_or(config.profile.mss);
    }
    let device_of = Translated::new(tun, borrowed.pairs().to_vec());
    let driver = Driver::new(config, Box::new(device_of));
    let driver = driver.map_err(|error| Failure::Failed(miette::miette!("cannot start the engine: {error}")))?;
    for pair in borrowed.pairs() {
        tracing::info!(target: "anabranch", outer = %pair.outer, inner = %pair.inner, "address borrowed");
    }
    let name = device.clone();
    Ok(Prepared { driver, device, name, borrowed: Some(borrowed) })
}

/// The machine has this address itself.
fn is_ours(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn permission(wire: &WireOptions) -> Failure {
    let program = std::env::current_exe().map_or_else(|_| "anabranch".into(), |path| path.display().to_string());
    let help = format!(
        "run it as root, or give the program this one capability:\n  sudo setcap cap_net_admin+ep {program}\n\
         and a place for its notes:\n  sudo install -d -m 700 -o $USER /run/anabranch"
    );
    let tun = &wire.tun;
    Failure::Failed(miette::miette!(
        help = help,
        "cannot open the TUN device {tun} and borrow addresses: it takes CAP_NET_ADMIN"
    ))
}
