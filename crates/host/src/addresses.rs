//! Addresses of the machine itself, lent to an engine for some ports.
//!
//! The machine's own stack would answer segments to its addresses with RSTs. So the device carries an *inner* address
//! in place of each such *outer* one ([`Translated`](crate::Translated) changes them back for the engine), and nftables
//! rewrites inner and outer, statelessly, where packets enter and leave the machine: only TCP to the engine's ports is
//! diverted, everything else reaches the machine as before. Packets with an inner source take the same routes as those
//! with the outer source, and are forwarded.
//!
//! [`Borrowed`] undoes all of that when it is dropped. In case the process is killed, a file in `/run/anabranch`
//! records the steps that undo it, for [`clean_up`].

mod find;
pub(crate) mod undo;

pub use find::{AddressError, addresses_of, interface_between, interface_of};

use crate::{Pair, names};
use find::{choose_inner, mtu_of, routes_of, rules_for};
use std::fmt::Write;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use undo::{Claim, Step, Undo};

/// The TCP ports that are the engine's on a borrowed address.
pub type Ports = RangeInclusive<u16>;

/// Addresses to borrow.
#[derive(Clone, Debug)]
pub struct Loan {
    /// The TUN device; it is up.
    pub device: String,
    /// Addresses of the machine.
    pub outer: Vec<IpAddr>,
    /// The engine's ports on them.
    pub ports: Ports,
    /// Networks of the inner addresses: the first three bytes of an IPv4 address, and the first eight of an IPv6
    /// address.
    pub pool: Pool,
}

/// Networks out of which inner addresses are taken: an IPv4 /24 and an IPv6 /64.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// The IPv4 network, its last byte 0.
    pub v4: std::net::Ipv4Addr,
    /// The IPv6 network, its last eight bytes 0.
    pub v6: std::net::Ipv6Addr,
}

impl Default for Pool {
    /// Takes the IPv4 network from the range for tests of network equipment (RFC 2544), which is not routed, and a
    /// unique local IPv6 prefix (RFC 4193).
    fn default() -> Self {
        Pool { v4: [198, 18, 151, 0].into(), v6: [0xfdab, 0x7261, 0x6e63, 0x6800, 0, 0, 0, 0].into() }
    }
}

/// Addresses that are lent; given back when this is dropped.
#[derive(Debug)]
pub struct Borrowed {
    pairs: Vec<Pair>,
    mtu: Option<u32>,
    /// Interfaces that forwarded nothing before; now they forward to and from the device only.
    guarded: Vec<String>,
    undo: Undo,
}

/// Priority of our rules in the policy routing table, before `main` and what distributions add, after `local`.
const PRIORITY: u32 = 5_151;
/// Our routing tables, one for each address.
const FIRST_TABLE: u32 = 51_510;

/// Undoes the loans of processes in this network namespace that were killed, for all devices. Returns the number of
/// loans; 0 without CAP_NET_ADMIN.
pub fn clean_up() -> usize {
    let abandoned = Undo::abandoned().unwrap_or_default();
    if abandoned.is_empty() || crate::pass_on_net_admin().is_err() {
        return 0;
    }
    let count = abandoned.len();
    abandoned.into_iter().for_each(|mut undo| _ = undo.run());
    count
}

impl Borrowed {
    /// Borrows the addresses.
    ///
    /// # Errors
    /// If an address is not the machine's, if the ports are in use, or without CAP_NET_ADMIN; what was done is undone
    /// then.
    pub fn take(loan: &Loan) -> Result<Self, AddressError> {
        find::check_ports(&loan.outer, &loan.ports)?;
        let mut undo = Undo::open(&loan.device).map_err(|error| AddressError::State { error })?;
        undo.run();
        let claims: Vec<_> =
            loan.outer.iter().map(|address| Claim { address: *address, ports: loan.ports.clone() }).collect();
        if let Some((claim, device)) = undo.claim(&claims).map_err(|error| AddressError::State { error })? {
            return Err(AddressError::Taken { address: claim.address, ports: claim.ports, device });
        }
        let mut borrowed = Borrowed { pairs: Vec::new(), mtu: None, guarded: Vec::new(), undo };
        for (number, outer) in loan.outer.iter().enumerate() {
            borrowed.lend(loan, number as u8 + 1, *outer)?;
        }
        borrowed.divert(loan)?;
        Ok(borrowed)
    }

    /// The addresses, inner and outer.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The smallest MTU of the interfaces that have the addresses: the engine's packets should not be larger.
    pub fn mtu(&self) -> Option<u32> {
        self.mtu
    }

    /// An inner address for `outer`, and the way of both kinds of packets.
    fn lend(&mut self, loan: &Loan, number: u8, outer: IpAddr) -> Result<(), AddressError> {
        let interface = interface_of(outer)?.ok_or(AddressError::NotOurs { address: outer })?;
        if names::quoted(&interface).is_none() {
            return Err(AddressError::Name { interface });
        }
        let inner = choose_inner(&loan.pool, outer, number)?;
        let family = find::family(outer);
        let device = &loan.device;
        // The loopback interface's says nothing of the way that packets take.
        self.mtu = self.mtu.into_iter().chain(mtu_of(&interface).filter(|_| interface != "lo")).min();
        self.undo.does(Step::Command(ip(&[family, "route", "replace", &inner.to_string(), "dev", device])), None)?;
        // The operator's rules for the outer address apply to the inner one as well.
        for (priority, table) in rules_for(outer)? {
            self.rule(family, inner, priority.min(PRIORITY - 1), &table)?;
        }
        let table = (FIRST_TABLE + u32::from(number)).to_string();
        let flush = Step::Command(ip(&[family, "route", "flush", "table", &table]));
        self.undo.later(flush)?;
        for route in routes_of(&interface, family)? {
            let route = route.words();
            let mut words = vec![family, "route", "replace"];
            words.extend(route.iter().map(String::as_str));
            words.extend(["dev", &interface, "table", &table]);
            // A gateway that cannot be reached over this interface belongs to a route that is none of ours.
            let _ = Step::Command(ip(&words)).run();
        }
        self.rule(family, inner, PRIORITY, &table)?;
        self.forward(&interface, device, outer)?;
        self.pairs.push(Pair { inner, outer });
        Ok(())
    }

    fn rule(&mut self, family: &str, inner: IpAddr, priority: u32, table: &str) -> Result<(), AddressError> {
        let (priority, inner) = (priority.to_string(), inner.to_string());
        let words = ["from", &inner, "lookup", table, "priority", &priority];
        let add = Step::Command(ip(&[&[family, "rule", "add"], &words[..]].concat()));
        let delete = Step::Command(ip(&[&[family, "rule", "del"], &words[..]].concat()));
        self.undo.does(add, Some(delete))
    }

    /// Lets the kernel forward between the two interfaces, in the family of `outer`.
    fn forward(&mut self, interface: &str, device: &str, outer: IpAddr) -> Result<(), AddressError> {
        let (family, forces) = match outer {
            IpAddr::V4(_) => ("ipv4", false),
            // Since Linux 6.17; without it only all interfaces together can forward, as routers.
            IpAddr::V6(_) => ("ipv6", std::path::Path::new("/proc/sys/net/ipv6/conf/lo/force_forwarding").exists()),
        };
        if family == "ipv6" && !forces {
            if find::read_sysctl(&format!("net/ipv6/conf/{interface}/accept_ra")).as_deref() == Some("1") {
                // A host that forwards ignores router advertisements unless `accept_ra` is 2.
                self.sysctl(&format!("net/ipv6/conf/{interface}/accept_ra"), "2")?;
            }
            if find::read_sysctl("net/ipv6/conf/all/forwarding").as_deref() == Some("0") {
                self.guarded.push(interface.to_owned());
            }
            return self.sysctl("net/ipv6/conf/all/forwarding", "1");
        }
        let knob =
            |name: &str| format!("net/{family}/conf/{name}/{}", if forces { "force_forwarding" } else { "forwarding" });
        let forwards = |key: &str| find::read_sysctl(key).as_deref() == Some("1");
        if !forwards(&knob(interface)) && !forwards(&format!("net/{family}/conf/all/forwarding")) {
            self.guarded.push(interface.to_owned());
        }
        self.sysctl(&knob(device), "1")?;
        self.sysctl(&knob(interface), "1")
    }

    fn sysctl(&mut self, key: &str, value: &str) -> Result<(), AddressError> {
        let before = find::read_sysctl(key).unwrap_or_default();
        if before == value {
            return Ok(());
        }
        let step = |value: &str| Step::Sysctl { key: key.to_owned(), value: value.to_owned() };
        self.undo.does(step(value), Some(step(&before)))
    }

    /// The rules of nftables, in a table of our own.
    fn divert(&mut self, loan: &Loan) -> Result<(), AddressError> {
        let table = names::table(&loan.device);
        self.keep_kernel_out(&loan.ports)?;
        self.undo.later(Step::Command(vec![
            "nft".into(),
            "delete".into(),
            "table".into(),
            "inet".into(),
            table.clone(),
        ]))?;
        let with = find::nft(&self.rules(loan, &table, true));
        // A kernel without connection tracking does not know the word, nor does it need it.
        let done = with.or_else(|_| find::nft(&self.rules(loan, &table, false)));
        done.map_err(|message| AddressError::Command { command: "nft -f -".into(), message })
    }

    fn rules(&self, loan: &Loan, table: &str, tracking: bool) -> String {
        let device = &loan.device;
        let (first, last) = (loan.ports.start(), loan.ports.end());
        let notrack = if tracking { "notrack " } else { "" };
        let (mut inbound, mut outbound) = (String::new(), String::new());
        for Pair { inner, outer } in &self.pairs {
            let ip = if outer.is_ipv4() { "ip" } else { "ip6" };
            // Infallible: it is a String.
            let _ = writeln!(
                inbound,
                "iifname != {{ \"lo\", \"{device}\" }} {ip} daddr {outer} tcp dport {first}-{last} \
                 {notrack}{ip} daddr set {inner}"
            );
            let _ = writeln!(outbound, "{ip} saddr {inner} {ip} saddr set {outer}");
        }
        let guarded: String =
            self.guarded.iter().map(|name| format!("iifname \"{name}\" oifname != \"{device}\" drop\n")).collect();
        let own = if tracking { format!("iifname \"{device}\" notrack") } else { String::new() };
        format!(
            "table inet {table} {{\nchain inbound {{\ntype filter hook prerouting priority -300; policy accept;\n{own}\
             \n\
             {inbound}}}\nchain outbound {{\ntype filter hook postrouting priority 90; policy accept;\n{outbound}}}\n\
             chain guard {{\ntype filter hook forward priority -10; policy accept;\n{guarded}}}\n}}\n"
        )
    }

    /// The kernel chooses no port of ours for connections of its own.
    fn keep_kernel_out(&mut self, ports: &Ports) -> Result<(), AddressError> {
        const KEY: &str = "net/ipv4/ip_local_reserved_ports";
        let before = find::read_sysctl(KEY).unwrap_or_default();
        let ours = format!("{}-{}", ports.start(), ports.end());
        let both = if before.is_empty() { ours } else { format!("{before},{ours}") };
        let step = |value: String| Step::Sysctl { key: KEY.to_owned(), value };
        self.undo.does(step(both), Some(step(before)))
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.undo.run();
    }
}

fn ip(words: &[&str]) -> Vec<String> {
    std::iter::once("ip").chain(words.iter().copied()).map(str::to_owned).collect()
}
