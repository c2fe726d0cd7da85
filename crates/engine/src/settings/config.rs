//! Configuration of an endpoint.

use super::declare::settings;
use super::words::FAST_CLOSE;
use super::{ANY, Kernel, MANY, Profile};
use crate::ConfigError;
use crate::limits::{MAX_BUFFER, MAX_SUBFLOWS};
use anabranch_policy::ack_path::AckPath;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::first_path::FirstPath;
use anabranch_policy::receive_window::ReceiveWindow;
use anabranch_policy::registry::{
    ACK_PATHS, Built, CONGESTION, Entry, FIRST_PATHS, Kind, REINJECTIONS, SCHEDULERS, WINDOWS,
};
use anabranch_policy::reinjection::Reinjection;
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::send_buffer;
use anabranch_units::{Bytes, Duration};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Makes one policy for each connection.
pub type Factory<T> = Arc<dyn Fn() -> Built<T> + Send + Sync>;

settings! {
    /// The settings of one endpoint, the same for all its connections.
    ///
    /// The descriptions are those that users read: `false` of a scenario is `None` here.
    #[derive(Clone)]
    pub struct Config as |config| config => {
        /// Addresses of the host.
        #[setting(none)]
        pub addresses: Vec<LocalAddress> = addresses,
        /// Policies, which their registries describe.
        #[setting(none)]
        pub policies: Policies = Policies::of(&profile),
        /// Pure ACKs may take another subflow's path, with addresses rewritten, if both hosts have this. The ACK paths
        /// fixed and probed need it. Not part of MPTCP; false unless given.
        #[setting("ack-rewrite", Flag)]
        /// The policies' ACK path decides; see `connection/detour.rs`.
        pub ack_rewrite: bool = false,
        /// Every sixteenth ACK keeps its own path, and all do where the other path loses them; true unless given. If
        /// false, as in the paper, an ACK path that dies silences the other subflows until the policy leaves it.
        #[setting("ack-caution", Flag)]
        pub ack_caution: bool = true,
        /// Bytes written and not yet acknowledged, per connection; 32MiB unless given (6MiB under profiles older than
        /// linux), and at least the other host's receive buffer (RFC 8684 §3.3.5).
        #[setting(
            "send-buffer",
            Size,
            in_kernel(Kernel::Other("`net.ipv4.tcp_wmem`: twice the size, as the kernel counts its records in"))
        )]
        /// A sender fills the peer's window only with a buffer of that size.
        pub send_buffer: Bytes = profile.buffer,
        /// Bytes received and not yet read, per connection.
        #[setting("receive-buffer", Size, not_in_scenarios)]
        /// The largest window advertised, as far as the profile does not take a share of it
        /// ([`Profile::adv_win_scale`]).
        pub receive_buffer: Bytes = profile.buffer,
        /// Size of a receive buffer that tunes itself, at first; it grows up to receive-buffer. False for one of fixed
        /// size.
        #[setting("initial-receive-buffer", SizeOrOff, not_in_scenarios)]
        /// Linux: `tcp_moderate_rcvbuf`.
        pub initial_receive_buffer: Option<Bytes> = profile.initial_buffer,
        /// Uses MPTCP; false for plain TCP.
        #[setting("multipath", Flag, in_kernel(Kernel::Switch("net.mptcp.enabled", 1)))]
        pub multipath: bool = true,
        /// Maximum number of subflows per connection.
        #[setting("max-subflows", Number(1, MAX_SUBFLOWS as i64), in_kernel(Kernel::Other("`ip mptcp limits`")))]
        /// The initial one is included.
        pub max_subflows: usize = 8,
        /// The client joins from each of its addresses to each address of the server.
        #[setting("full-mesh", Flag, in_kernel(Kernel::Other("`fullmesh` of `ip mptcp endpoint`")))]
        pub full_mesh: bool = true,
        /// Announces further addresses (ADD_ADDR).
        #[setting("announce", Flag, in_kernel(Kernel::Other("`signal` of `ip mptcp endpoint`")))]
        pub announce: bool = true,
        /// Port that ADD_ADDR names; none unless given, and the peer uses that of the initial subflow (RFC 8684
        /// §3.4.1).
        #[setting("announced-port", NumberOrOff(0, u16::MAX as i64), not_in_scenarios)]
        pub announced_port: Option<u16> = None,
        /// Forbids the peer to open subflows to the address and port of the initial one (flag C, RFC 8684 §3.1).
        #[setting("deny-join", Flag, not_in_scenarios)]
        pub deny_join_to_initial: bool = false,
        /// Client: sends the keys again wherever the server may lack them: before a DATA_FIN without data, after a
        /// repeated SYN/ACK, and after silence. False as Linux: in the third ACK and with the first data alone, until
        /// its end is known (A-LOST-KEYS).
        #[setting("repeat-keys", Flag, not_in_scenarios)]
        /// Tests need a client like that of Linux.
        pub repeat_keys: bool = true,
        /// DSS checksums, which reveal altered payload. Used if either host has them.
        #[setting(
            "dss-checksum",
            Flag,
            called_in_scripts("checksum"),
            in_kernel(Kernel::Switch("net.mptcp.checksum_enabled", 1))
        )]
        /// Requires them with flag A of MP_CAPABLE (RFC 8684 §3.1).
        pub checksum: bool = false,
        /// Time after which the path of a dead subflow is tried again; or false.
        #[setting("rejoin", TimeOrOff)]
        pub rejoin: Option<Duration> = Some(Duration::from_secs(1)),
        /// Time for which a connection without any subflow waits for a new one.
        #[setting("close-timeout", Time, not_in_scenarios)]
        /// Linux: `net.mptcp.close_timeout`, 60 s.
        pub close_timeout: Duration = Duration::from_secs(60),
        /// Probes of a peer that is silent.
        #[setting(all of Keepalive::SETTINGS)]
        pub keepalive: Keepalive = Keepalive::never(),
        /// Time without an acknowledgment of data after which the connection is given up (RFC 5482). False unless
        /// given: the retransmission timeouts decide, which takes a quarter of an hour and more.
        #[setting("user-timeout", TimeOrOff)]
        /// Linux: `TCP_USER_TIMEOUT`.
        pub user_timeout: Option<Duration> = None,
        /// Maximum time for which connections begin as plain TCP on a path where SYNs with MP_CAPABLE vanish; a minute
        /// at first, doubled each time. False tries anew each time.
        #[setting(
            "mptcp-blackhole", TimeOrOff, in_kernel(Kernel::Time("net.mptcp.blackhole_timeout", Duration::from_secs(1)))
        )]
        /// Linux waits one hour at once, on all paths.
        pub mptcp_blackhole: Option<Duration> = Some(Duration::from_secs(3600)),
        /// Number of timeouts of a full segment in a row after which segments become smaller, on a path that still
        /// answers to small ones (RFC 4821 §7.7). False unless given, on the wire 3.
        #[setting("mtu-probing", NumberOrOff(1, ANY))]
        /// Linux: `tcp_mtu_probing` = 1.
        pub black_hole_timeouts: Option<u32> = None,
        /// Maximum size of a mapping (at most 65534B) that segments sent back to back on a subflow share, as
        /// segmentation offload needs it. False for one mapping per segment; on a TUN device with offload it cannot be
        /// off.
        #[setting("burst", SizeOrOff)]
        /// Such segments differ only in fields that segmentation offload can set (`connection/burst.rs`), and pacing
        /// releases as much at once.
        pub burst: Option<Bytes> = None,
        /// Local ports of connections and subflows that the host opens, in turn. False for the dynamic ports (RFC 6335
        /// §6).
        #[setting("ports", Ports, in_kernel(Kernel::Other("`net.ipv4.ip_local_port_range`")))]
        /// There must be one. Should the dynamic ports all be in use, the others follow.
        pub ports: Option<RangeInclusive<u16>> = None,
        /// The way in which an abort tells the peer (RFC 8684 §3.5).
        #[setting("fast-close", Choice(FAST_CLOSE), not_in_scenarios)]
        pub fast_close: FastClose = FastClose::Rst,
        /// Connections in the three-way handshake; further SYNs are answered with SYN cookies, with 0 all of them.
        #[setting("max-half-open", Number(0, MANY), not_in_scenarios)]
        /// A cookie needs no memory (RFC 4987 §3.6).
        pub max_half_open: usize = 1024,
        /// Resets per second to those whose segments belong to nothing. No limit unless given, on the wire 1000.
        #[setting("resets-per-second", NumberOrOff(0, MANY), not_in_scenarios)]
        /// Further ones are not answered.
        pub resets_per_second: Option<u32> = None,
        /// Loss rates that the driver tells take the place of estimates
        /// ([`Endpoint::set_truth`](crate::Endpoint::set_truth); A-LOSS).
        #[setting(none)]
        pub loss_oracle: bool = false,
        /// The driver calls [`Endpoint::handle_departure`](crate::Endpoint::handle_departure) for each segment that has
        /// left the first hop. TCP Small Queues ([`Profile::tsq`]) work only then: without these calls a sender would
        /// wait for ever.
        #[setting(none)]
        pub reports_departures: bool = false,
        /// Behaviour of its TCP.
        #[setting(all of Profile::SETTINGS)]
        pub profile: Profile = profile,
    }

    /// A host with `addresses` and everything else as the profile has it ([`Policies::of`]), or Linux.
    pub fn new(profile: Profile, addresses: Vec<LocalAddress>) -> Self;
}

settings! {
    /// Times at which a silent peer is probed (RFC 9293 §3.8.4), on each subflow.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Keepalive as |config| config.keepalive => {
        /// Time without a segment after which a silent peer is probed (RFC 9293 §3.8.4). False unless given: an idle
        /// connection lasts as long as both ends.
        #[setting("keepalive", TimeOrOff)]
        pub idle: Option<Duration> = None,
        /// Time without an answer before the next probe.
        #[setting("keepalive-interval", Time)]
        pub interval: Duration = Duration::from_secs(75),
        /// Number of probes without an answer after which the subflow is given up.
        #[setting("keepalive-probes", Number(1, ANY))]
        pub probes: u32 = 9,
    }

    /// Probes no peer; once `idle` is set, nine times at 75 s as Linux does.
    fn never() -> Self;
}

impl Default for Keepalive {
    /// Never; once `idle` is set, nine times at 75 s as Linux does.
    fn default() -> Self {
        Keepalive::never()
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
    /// Payload of a full segment \[bytes\]: Linux's `TCP_MIN_MSS`, and what a packet of 65,535 bytes holds beside its
    /// headers.
    pub(crate) const MSS: RangeInclusive<u16> = 64..=65_495;

    /// The most that the send buffer of a connection with so many subflows can hold.
    pub fn largest_send_buffer(&self, subflows: usize) -> Bytes {
        match self.profile.subflow_send_buffer {
            None => self.send_buffer,
            Some(each) => {
                let subflows = if self.multipath { subflows.min(self.max_subflows).max(1) } else { 1 };
                self.send_buffer.min(send_buffer::SMALLEST + Bytes::new(each.get() * subflows as u64))
            }
        }
    }

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
    /// The receive-window policy unless another is named.
    pub const RECEIVE_WINDOW: &str = "shared";
    /// The ACK-path policy unless another is named.
    pub const ACK_PATH: &str = "own";

    /// The policies of a host with this profile, unless others are named.
    pub fn of(profile: &Profile) -> Self {
        Policies {
            scheduler: factory(SCHEDULERS, profile.scheduler),
            congestion: factory(CONGESTION, profile.congestion),
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
        Policies::of(&Profile::tcp())
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
