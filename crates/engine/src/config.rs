//! Configuration of an endpoint.

use crate::limits::{MAX_BUFFER, MAX_SUBFLOWS};
use crate::{ConfigError, Profile};
use anabranch_policy::ack_path::AckPath;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::first_path::FirstPath;
use anabranch_policy::receive_window::ReceiveWindow;
use anabranch_policy::registry::{
    ACK_PATHS, Built, CONGESTION, Entry, FIRST_PATHS, Kind, REINJECTIONS, SCHEDULERS, WINDOWS,
};
use anabranch_policy::reinjection::Reinjection;
use anabranch_policy::scheduler::Scheduler;
use anabranch_units::{Bytes, Duration};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Makes one policy for each connection.
pub type Factory<T> = Arc<dyn Fn() -> Built<T> + Send + Sync>;

/// The settings of one endpoint, the same for all its connections.
#[derive(Clone)]
pub struct Config {
    /// Behaviour of its TCP.
    pub profile: Profile,
    /// Its addresses.
    pub addresses: Vec<LocalAddress>,
    /// Offer and accept MPTCP; otherwise plain TCP.
    pub multipath: bool,
    /// Subflows of one connection, the initial one included; at most 16.
    pub max_subflows: usize,
    /// The connecting side joins from every local address to every known remote one.
    pub full_mesh: bool,
    /// Tell the peer about further local addresses (ADD_ADDR).
    pub announce: bool,
    /// Try to join again this long after a subflow was lost; `None` never.
    pub rejoin: Option<Duration>,
    /// Time for which a connection without any subflow waits for a new one (Linux `net.mptcp.close_timeout`: 60 s).
    pub close_timeout: Duration,
    /// Bytes written and not acknowledged at the data level. A sender fills the peer's window only if this is at least
    /// as large as the peer's receive buffer (RFC 8684 §3.3.5).
    pub send_buffer: Bytes,
    /// Bytes received and not read; the largest window advertised, as far as the profile does not take a share of it
    /// (`Profile::adv_win_scale`).
    pub receive_buffer: Bytes,
    /// The receive buffer has this size at first and grows up to `receive_buffer` with what the application reads
    /// (Linux `tcp_moderate_rcvbuf`); `None` for one of a fixed size.
    pub initial_receive_buffer: Option<Bytes>,
    /// Connections in the three-way handshake; further SYNs are answered with SYN cookies (RFC 4987 §3.6), for which
    /// nothing is kept. 0 answers all of them so.
    pub max_half_open: usize,
    /// Resets per second to those whose segments belong to nothing; further ones are not answered. `None` for no limit.
    pub resets_per_second: Option<u32>,
    /// Require DSS checksums (flag A of MP_CAPABLE, RFC 8684 §3.1). They are used as well if the peer requires them.
    pub checksum: bool,
    /// Loss rates that the driver tells take the place of estimates
    /// ([`Endpoint::set_truth`](crate::Endpoint::set_truth); A-LOSS).
    pub loss_oracle: bool,
    /// The way in which `Endpoint::abort` tells the peer.
    pub fast_close: FastClose,
    /// The port that ADD_ADDR names; `None` leaves it out, and the peer uses that of the initial subflow (RFC 8684
    /// §3.4.1).
    pub announced_port: Option<u16>,
    /// The local ports of connections and subflows that we open, in turn; there must be one. `None` takes the dynamic
    /// ports (RFC 6335 §6), and should they all be in use, the others.
    pub ports: Option<RangeInclusive<u16>>,
    /// Forbid the peer to open subflows to the address and port of the initial one (flag C, RFC 8684 §3.1).
    pub deny_join_to_initial: bool,
    /// Let the policies' ACK path move pure ACKs to the path of another subflow, by rewriting addresses, with peers
    /// that can too; not part of RFC 8684 (see `connection/detour.rs`).
    pub ack_rewrite: bool,
    /// ACKs on another subflow's path are backed by some on their own, and fall back to it if they do not arrive.
    pub ack_caution: bool,
    /// Longest mapping, in bytes (at most 65534), that segments leaving back to back on a subflow share. Such segments
    /// differ only in fields that segmentation offload can set (see `connection/burst.rs`), and pacing releases as much
    /// at once. `None` for one mapping per segment.
    pub burst: Option<Bytes>,
    /// Probes of a peer that is silent.
    pub keepalive: Keepalive,
    /// A connection whose data is not acknowledged for so long is given up (RFC 5482, Linux `TCP_USER_TIMEOUT`); `None`
    /// leaves that to the retransmission timeouts, which take a quarter of an hour and more.
    pub user_timeout: Option<Duration>,
    /// Longest time for which connections begin as plain TCP on a path where SYNs with MP_CAPABLE vanish. It is a
    /// minute at first and doubles each time up to this (Linux `net.mptcp.blackhole_timeout`: one hour at once, on all
    /// paths); `None` tries anew each time.
    pub mptcp_blackhole: Option<Duration>,
    /// Number of consecutive timeouts of a full segment after which segments become smaller, on a path that still
    /// answers to small ones (RFC 4821 §7.7, Linux `tcp_mtu_probing` = 1); `None` for paths without such holes.
    pub black_hole_timeouts: Option<u32>,
    /// The driver calls [`Endpoint::handle_departure`](crate::Endpoint::handle_departure) for each segment that has
    /// left the first hop. TCP Small Queues (`Profile::tsq`) work only then: without these calls a sender would wait
    /// for ever.
    pub reports_departures: bool,
    /// The policies.
    pub policies: Policies,
}

/// Times at which a silent peer is probed (RFC 9293 §3.8.4), on each subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keepalive {
    /// Time without a segment before the first probe; `None` never probes, and an idle connection lasts as long as both
    /// ends.
    pub idle: Option<Duration>,
    /// Time without an answer before the next probe.
    pub interval: Duration,
    /// Probes without an answer after which the subflow is given up.
    pub probes: u32,
}

impl Default for Keepalive {
    /// Never; once `idle` is set, nine times at 75 s as Linux does.
    fn default() -> Self {
        Keepalive { idle: None, interval: Duration::from_secs(75), probes: 9 }
    }
}

/// The two forms of a fast close (RFC 8684 §3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FastClose {
    /// Option R: MP_FASTCLOSE on a RST of every subflow, and the connection is gone at once (what Linux does).
    #[default]
    Rst,
    /// Option A: MP_FASTCLOSE on an ACK of one subflow, repeated up to three times until the peer's RST arrives.
    Ack,
}

/// One address of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// Use subflows from this address only if all regular ones have failed (RFC 8684 §3.3.8).
    pub backup: bool,
}

/// Policies of an endpoint.
#[derive(Clone)]
pub struct Policies {
    /// Assigns bytes to subflows.
    pub scheduler: Factory<dyn Scheduler>,
    /// Limits the bytes in flight.
    pub congestion: Factory<CongestionControl>,
    /// Divides the peer's window among subflows.
    pub receive_window: Factory<dyn ReceiveWindow>,
    /// Chooses the path of an ACK.
    pub ack_path: Factory<dyn AckPath>,
    /// Decides when bytes in flight are repeated elsewhere.
    pub reinjection: Factory<dyn Reinjection>,
    /// Chooses the path on which a connection begins.
    pub first_path: Factory<dyn FirstPath>,
}

/// A policy to go on with in the place of another.
#[derive(Clone)]
pub enum Switch {
    /// Replaces the scheduler.
    Scheduler(Factory<dyn Scheduler>),
    /// Replaces congestion control.
    Congestion(Factory<CongestionControl>),
    /// Replaces the division of the peer's window.
    ReceiveWindow(Factory<dyn ReceiveWindow>),
    /// Replaces the choice of paths for ACKs.
    AckPath(Factory<dyn AckPath>),
    /// Replaces the policy that repeats bytes in flight elsewhere.
    Reinjection(Factory<dyn Reinjection>),
    /// Replaces the choice of the first path, for connections that have not begun.
    FirstPath(Factory<dyn FirstPath>),
}

impl Config {
    /// Send and receive buffer unless told otherwise: Linux's `tcp_rmem`. Its `tcp_wmem` is 4 MiB, but RFC 8684 §3.3.5
    /// wants a send buffer at least as large as the receive buffer.
    pub const BUFFER: Bytes = Bytes::new(6 << 20);

    /// A host with `addresses` and everything else as the profile has it ([`Policies::of`]), or Linux.
    pub fn new(profile: Profile, addresses: Vec<LocalAddress>) -> Self {
        Config {
            policies: Policies::of(&profile),
            profile,
            addresses,
            multipath: true,
            max_subflows: 8,
            full_mesh: true,
            announce: true,
            rejoin: Some(Duration::from_secs(1)),
            close_timeout: Duration::from_secs(60),
            send_buffer: Config::BUFFER,
            receive_buffer: Config::BUFFER,
            initial_receive_buffer: None,
            max_half_open: 1024,
            resets_per_second: None,
            checksum: false,
            loss_oracle: false,
            fast_close: FastClose::Rst,
            announced_port: None,
            ports: None,
            deny_join_to_initial: false,
            ack_rewrite: false,
            ack_caution: true,
            burst: None,
            keepalive: Keepalive::default(),
            user_timeout: None,
            mptcp_blackhole: Some(Duration::from_secs(3600)),
            black_hole_timeouts: None,
            reports_departures: false,
        }
    }
}

impl Config {
    /// Payload of a full segment \[bytes\]: Linux's `TCP_MIN_MSS`, and what a packet of 65,535 bytes holds beside its
    /// headers.
    pub(crate) const MSS: RangeInclusive<u16> = 64..=65_495;

    /// Looks for settings that cannot be.
    ///
    /// # Errors
    ///
    /// The first of them.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_SUBFLOWS).contains(&self.max_subflows) {
            return Err(ConfigError::MaxSubflows(self.max_subflows));
        }
        if !Config::MSS.contains(&self.profile.mss) {
            return Err(ConfigError::Mss { given: self.profile.mss, range: Config::MSS });
        }
        self.check_addresses()?;
        if let Some(ports) = self.ports.as_ref().filter(|ports| ports.is_empty() || *ports.start() == 0) {
            return Err(ConfigError::Ports(ports.clone()));
        }
        let initial = self.initial_receive_buffer.map(|initial| ("initial_receive_buffer", initial));
        let buffers = [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)];
        for (name, given) in buffers.into_iter().chain(initial) {
            if given.is_zero() {
                return Err(ConfigError::Buffer(name));
            }
            if given > MAX_BUFFER {
                return Err(ConfigError::LargeBuffer { name, given });
            }
        }
        let Profile { initial_rto, max_rto, .. } = self.profile;
        for (name, timeout) in [("profile.initial_rto", initial_rto), ("profile.max_rto", max_rto)] {
            if timeout.is_zero() {
                return Err(ConfigError::Timeout(name));
            }
        }
        if self.burst.is_some_and(Bytes::is_zero) {
            return Err(ConfigError::Burst);
        }
        match self.keepalive {
            Keepalive { idle: Some(idle), interval, .. } if idle.is_zero() || interval.is_zero() => {
                Err(ConfigError::Keepalive)
            }
            _ => Ok(()),
        }
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        if self.addresses.len() > usize::from(u8::MAX) {
            return Err(ConfigError::Addresses(self.addresses.len()));
        }
        for (index, address) in self.addresses.iter().enumerate() {
            if address.ip.is_unspecified() || address.ip.is_multicast() {
                return Err(ConfigError::Address(address.ip));
            }
            if self.addresses[..index].iter().any(|other| other.ip == address.ip) {
                return Err(ConfigError::AddressTwice(address.ip));
            }
        }
        Ok(())
    }
}

impl Policies {
    /// The congestion control unless another is named.
    pub const CONGESTION: &str = "lia";
    /// The receive-window policy unless another is named.
    pub const RECEIVE_WINDOW: &str = "shared";
    /// The ACK-path policy unless another is named.
    pub const ACK_PATH: &str = "own";

    /// The policies of a host with this profile, unless others are named.
    pub fn of(profile: &Profile) -> Self {
        Policies {
            scheduler: factory(SCHEDULERS, profile.scheduler),
            congestion: factory(CONGESTION, Policies::CONGESTION),
            receive_window: factory(WINDOWS, Policies::RECEIVE_WINDOW),
            ack_path: factory(ACK_PATHS, Policies::ACK_PATH),
            reinjection: factory(REINJECTIONS, profile.reinjection),
            first_path: factory(FIRST_PATHS, profile.first_path),
        }
    }

    /// Puts one in the place of another.
    pub fn switch(&mut self, switch: &Switch) {
        match switch.clone() {
            Switch::Scheduler(factory) => self.scheduler = factory,
            Switch::Congestion(factory) => self.congestion = factory,
            Switch::ReceiveWindow(factory) => self.receive_window = factory,
            Switch::AckPath(factory) => self.ack_path = factory,
            Switch::Reinjection(factory) => self.reinjection = factory,
            Switch::FirstPath(factory) => self.first_path = factory,
        }
    }
}

impl Default for Policies {
    /// The out-of-tree Linux kernel's choice: min-RTT, LIA, opportunistic reinjection, the first path as listed.
    fn default() -> Self {
        Policies::of(&Profile::linux())
    }
}

fn factory<T: Kind + ?Sized>(table: &'static [Entry<T>], name: &'static str) -> Factory<T> {
    let entry = table.iter().find(|entry| entry.name == name).expect("the default policies are registered");
    Arc::new(|| entry.build_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8684 §3.3.5.
    #[test]
    fn the_send_buffer_is_at_least_as_large_as_the_receive_buffer() {
        for profile in Profile::NAMES.iter().filter_map(|name| Profile::named(name)) {
            let config = Config::new(profile, Vec::new());
            assert!(config.send_buffer >= config.receive_buffer, "{}", config.profile.name);
        }
    }
}
