//! Queries about the machine's addresses, to `ip(8)`, `nft(8)` and `/proc`.

use super::{Pool, Ports};
use crate::ip::{self, Link, Route, Rule};
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Why an address cannot be borrowed.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// A program is missing, or what it should do is not possible.
    #[error("`{command}` failed: {message}")]
    Command {
        /// Command line.
        command: String,
        /// Its error output.
        message: String,
    },
    /// No interface has it.
    #[error("{address} is no address of this machine")]
    NotOurs {
        /// The address.
        address: IpAddr,
    },
    /// A rule of nftables cannot have its name.
    #[error(
        "the name of the interface `{}` would be read otherwise by nftables; rename it: \
         `ip link set dev OLD name NEW`, of letters and digits",
        interface.escape_default()
    )]
    Name {
        /// The interface.
        interface: String,
    },
    /// The kernel has a connection or a listener there.
    #[error("port {port} of {address}, which is to be the engine's, is in use by the kernel's own stack")]
    PortInUse {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// Another process borrows it.
    #[error(
        "ports {} to {} of {address} are borrowed already, by the program with the device {device}",
        ports.start(),
        ports.end()
    )]
    Taken {
        /// The address.
        address: IpAddr,
        /// The ports that it has.
        ports: Ports,
        /// Its TUN device.
        device: String,
    },
    /// The inner address would be taken from a network that is in use.
    #[error(
        "{address}, which is to stand for a borrowed address on the device, lies in a network that is in use: {route}"
    )]
    Conflict {
        /// The inner address.
        address: IpAddr,
        /// The route to it.
        route: String,
    },
    /// The undo log cannot be written.
    #[error("cannot keep notes in {}: {error}", super::undo::DIRECTORY)]
    State {
        /// Error of the operating system.
        error: io::Error,
    },
    /// An endpoint of MPTCP cannot be put back.
    #[error("cannot set the endpoint {address}: {error}")]
    Endpoint {
        /// Its address.
        address: IpAddr,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A kernel parameter cannot be set.
    #[error("cannot set {key}: {error}")]
    Sysctl {
        /// Kernel parameter, as a path below `/proc/sys`.
        key: String,
        /// Error of the operating system.
        error: io::Error,
    },
}

pub(super) fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "-4" } else { "-6" }
}

/// The interface that has `address`; `None` if the machine does not have it.
pub fn interface_of(address: IpAddr) -> Result<Option<String>, AddressError> {
    let links: Vec<Link> = ask(&[family(address), "address", "show"])?;
    let has = |link: &Link| link.addr_info.iter().any(|own| own.local == Some(address));
    Ok(links.into_iter().find(has).map(|link| link.ifname))
}

/// The addresses of an interface, none if there is no such interface.
pub fn addresses_of(interface: &str) -> Result<Vec<IpAddr>, AddressError> {
    let links: Vec<Link> = ask(&["address", "show"])?;
    let own = links.into_iter().filter(|link| link.ifname == interface);
    Ok(own.flat_map(|link| link.addr_info).filter_map(|address| address.local).collect())
}

/// The interface over which packets from `local`, an address of this machine, leave for `remote`; `None` if they would
/// not leave it.
///
/// # Errors
/// If there is no such route, or `local` is no address of this machine.
pub fn interface_between(local: IpAddr, remote: IpAddr) -> Result<Option<String>, AddressError> {
    let (remote, local) = (remote.to_string(), local.to_string());
    let routes: Vec<Route> = ask(&["route", "get", &remote, "from", &local])?;
    Ok(routes.into_iter().next().and_then(|route| route.dev).filter(|device| device != "lo"))
}

/// An address that nothing has a route to but the default route.
pub(super) fn choose_inner(pool: &Pool, outer: IpAddr, number: u8) -> Result<IpAddr, AddressError> {
    let inner: IpAddr = match outer {
        IpAddr::V4(_) => {
            let [a, b, c, _] = pool.v4.octets();
            [a, b, c, number].into()
        }
        IpAddr::V6(_) => (u128::from(pool.v6) | u128::from(number)).to_be_bytes().into(),
    };
    let routes: Vec<Route> = ask(&[family(inner), "route", "show", "match", &inner.to_string()])?;
    match routes.iter().find(|route| route.dst != "default") {
        Some(route) => Err(AddressError::Conflict { address: inner, route: route.words().join(" ") }),
        None => Ok(inner),
    }
}

/// Usable routes of the interface in the main table: networks before the gateways that lie in them.
pub(super) fn routes_of(interface: &str, family: &str) -> Result<Vec<Route>, AddressError> {
    let mut routes: Vec<Route> = ask(&[family, "route", "show", "table", "main", "dev", interface])?;
    routes.retain(|route| !route.dst.starts_with("fe80:") && route.is_up());
    routes.sort_by_key(Route::has_gateway);
    Ok(routes)
}

/// Priority and table of the rules that apply to all packets from `address`.
pub(super) fn rules_for(address: IpAddr) -> Result<Vec<(u32, String)>, AddressError> {
    let rules: Vec<Rule> = ask(&[family(address), "rule", "show"])?;
    let applies = |rule: &Rule| rule.others.is_empty() && is_within(address, &rule.src, rule.srclen);
    Ok(rules.into_iter().filter(applies).filter_map(|rule| Some((rule.priority, rule.table?))).collect())
}

/// `address` lies in the network of this length around `base`; without a length, it is that address.
fn is_within(address: IpAddr, base: &str, length: Option<u32>) -> bool {
    let Ok(base) = base.parse::<IpAddr>() else { return false };
    let (a, b, width) = match (address, base) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(u32::from(a)), u128::from(u32::from(b)), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.into(), b.into(), 128),
        _ => return false,
    };
    let length = length.unwrap_or(width).min(width);
    length == 0 || a >> (width - length) == b >> (width - length)
}

pub(super) fn mtu_of(interface: &str) -> Option<u32> {
    let links: Vec<Link> = ask(&["link", "show", "dev", interface]).ok()?;
    links.first()?.mtu
}

/// Asks `ip -j`.
fn ask<T: DeserializeOwned>(words: &[&str]) -> Result<Vec<T>, AddressError> {
    let words = [&["-j"], words].concat();
    ip::read(&run("ip", &words)?).map_err(|error| AddressError::Command {
        command: format!("ip {}", words.join(" ")),
        message: format!("its answer is not the JSON of iproute2: {error}"),
    })
}

/// The kernel's own sockets do not use the ports.
pub(super) fn check_ports(addresses: &[IpAddr], ports: &Ports) -> Result<(), AddressError> {
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let Some((host, port)) = line.split_whitespace().nth(1).and_then(|local| local.split_once(':')) else {
                continue;
            };
            let Ok(port) = u16::from_str_radix(port, 16) else { continue };
            if !ports.contains(&port) {
                continue;
            }
            let local = host_of(host);
            let used = addresses.iter().find(|address| local.is_none_or(|local| local == **address));
            if let Some(address) = used {
                return Err(AddressError::PortInUse { address: *address, port });
            }
        }
    }
    Ok(())
}

/// The address of a socket as `/proc/net/tcp` writes it: words of the machine's byte order. `None` for any address.
fn host_of(text: &str) -> Option<IpAddr> {
    let words: Vec<u32> = (0..text.len() / 8)
        .filter_map(|at| text.get(at * 8..at * 8 + 8).and_then(|word| u32::from_str_radix(word, 16).ok()))
        .collect();
    let address: IpAddr = match words[..] {
        [v4] => v4.to_ne_bytes().into(),
        [a, b, c, d] => {
            let mut octets = [0; 16];
            for (place, word) in octets.chunks_exact_mut(4).zip([a, b, c, d]) {
                place.copy_from_slice(&word.to_ne_bytes());
            }
            IpAddr::from(octets).to_canonical()
        }
        _ => return None,
    };
    (!address.is_unspecified()).then_some(address)
}

pub(super) fn read_sysctl(key: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/{key}")).ok().map(|text| text.trim().to_owned())
}

pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String, AddressError> {
    let failed =
        |message: String| AddressError::Command { command: [&[program], arguments].concat().join(" "), message };
    // In a process group of its own: what a terminal sends to ours is for us, and what is begun must not be left half
    // done.
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

/// Gives rules to nftables, all or none.
pub(super) fn nft(rules: &str) -> Result<(), String> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(rules.as_bytes()).map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn networks_hold_addresses() {
        let address = "10.77.1.2".parse().unwrap();
        for (base, length, within) in [
            ("10.77.1.2", None, true),
            ("10.77.1.0", None, false),
            ("10.77.1.0", Some(24), true),
            ("10.77.2.0", Some(24), false),
            ("0.0.0.0", Some(0), true),
            ("all", None, false),
        ] {
            assert_eq!(is_within(address, base, length), within, "{base} {length:?}");
        }
        assert!(is_within("fd77::1".parse().unwrap(), "fd77::", Some(16)) && !is_within(address, "::", Some(0)));
    }

    #[test]
    fn sockets_as_the_kernel_writes_them() {
        if cfg!(target_endian = "little") {
            assert_eq!(host_of("0100007F"), Some("127.0.0.1".parse().unwrap()));
            assert_eq!(host_of("0000000000000000FFFF00000100007F"), Some("127.0.0.1".parse().unwrap()));
            assert_eq!(
                host_of("B80D01200000000000000000010000 00".replace(' ', "").as_str()),
                Some("2001:db8::1".parse().unwrap())
            );
        }
        assert_eq!((host_of("00000000"), host_of(&"0".repeat(32)), host_of("x")), (None, None, None));
    }
}
