//! Fidelity profiles: how the TCP of a host behaves, after kernels and simulators of different years.

use crate::rtt::RtoRule;
use anabranch_units::Duration;
use std::net::IpAddr;

/// The knobs of one host's TCP. Each can be set alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The profile these values started from.
    pub name: &'static str,
    /// The MSS option: 1460 for IPv4 in 1500-byte packets; 20 less goes out over IPv6. A segment's payload is this minus the options it carries.
    pub mss: u16,
    /// Initial window in segments (RFC 6928: 10; RFC 3390: 3 at this MSS).
    pub initial_window: u32,
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Timestamps and PAWS (RFC 7323).
    pub timestamps: bool,
    /// Window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Loss detection by time (RFC 8985).
    pub rack: bool,
    /// Tail loss probes (RFC 8985 §7).
    pub tlp: bool,
    /// Early retransmit (RFC 5827).
    pub early_retransmit: bool,
    /// Delay an ACK at most this long, and acknowledge every second full segment (RFC 5681 §4.2); `None` acknowledges each.
    pub delayed_ack: Option<Duration>,
    /// Segments at the start, and after idling, that are acknowledged at once although ACKs are delayed.
    pub quick_acks: u32,
    /// Hold a short segment back while data is in flight (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// How the retransmission timeout follows from the RTT.
    pub rto: RtoRule,
    /// The timeout before there is a sample (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// The longest timeout.
    pub max_rto: Duration,
    /// Reduce cwnd after idling (RFC 2861).
    pub idle_restart: bool,
    /// Grow cwnd only if it was the limit (RFC 7661 §4.1 in spirit, Linux `is_cwnd_limited`).
    pub cwnd_limited_check: bool,
    /// TCP Small Queues: at most this much time's worth of data, and at least two segments, in the first hop's queue. Needs
    /// a driver that reports departures; `None` switches it off.
    pub tsq: Option<Duration>,
    /// SYN retransmissions before giving up.
    pub syn_retries: u32,
    /// SYN retransmissions with MP_CAPABLE before it is left out (Linux `syn_retrans_before_tcp_fallback`).
    pub syn_retries_with_mptcp: u32,
    /// Timeouts in a row that kill a subflow (Linux `tcp_retries2`).
    pub max_consecutive_rtos: u32,
}

/// What an IPv6 header is longer than an IPv4 header.
const IPV6_EXTRA: u16 = 20;

impl Profile {
    /// The MSS option for a subflow to this address: packets are of one size, headers are not (RFC 9293 §3.7.1).
    pub(crate) fn mss_towards(&self, remote: IpAddr) -> u16 {
        if remote.is_ipv6() { self.mss.saturating_sub(IPV6_EXTRA) } else { self.mss }
    }

    /// The names of all profiles.
    pub const NAMES: &'static [&'static str] = &["linux", "linux-3.14", "ns3", "rfc"];

    /// The profile called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "linux" => Some(Profile::linux()),
            "linux-3.14" => Some(Profile::linux_3_14()),
            "ns3" => Some(Profile::ns3()),
            "rfc" => Some(Profile::rfc()),
            _ => None,
        }
    }

    /// Linux 6.x: IW 10, SACK, RACK/TLP, delayed ACK with quick-ACK, RTO at least SRTT + 200 ms.
    pub fn linux() -> Self {
        Profile {
            name: "linux",
            mss: 1460,
            initial_window: 10,
            sack: true,
            timestamps: true,
            window_scaling: true,
            rack: true,
            tlp: true,
            early_retransmit: false,
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 16,
            nagle: false,
            rto: RtoRule::Linux { min_var: Duration::from_millis(200) },
            initial_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(120),
            idle_restart: true,
            cwnd_limited_check: true,
            tsq: Some(Duration::from_millis(1)),
            syn_retries: 6,
            syn_retries_with_mptcp: 2,
            max_consecutive_rtos: 15,
        }
    }

    /// Linux 3.14 with MPTCP v0.89 (LATE's kernel): TLP and early retransmit, but no RACK.
    pub fn linux_3_14() -> Self {
        Profile { name: "linux-3.14", rack: false, early_retransmit: true, ..Profile::linux() }
    }

    /// The mptcp-ns3 model of LATE and RBP: NewReno, no SACK, every segment acknowledged, 200 ms floor on the RTO.
    pub fn ns3() -> Self {
        Profile {
            name: "ns3",
            mss: 1400,
            sack: false,
            timestamps: false,
            rack: false,
            tlp: false,
            delayed_ack: None,
            quick_acks: 0,
            rto: RtoRule::Rfc6298 { min: Duration::from_millis(200), granularity: Duration::from_millis(1) },
            max_rto: Duration::from_secs(60),
            idle_restart: false,
            tsq: None,
            ..Profile::linux()
        }
    }

    /// Plain RFC values: RFC 6675 SACK recovery, RTO at least 1 s, RFC 3390 initial window, Nagle.
    pub fn rfc() -> Self {
        Profile {
            name: "rfc",
            initial_window: 3,
            rack: false,
            tlp: false,
            delayed_ack: Some(Duration::from_millis(200)),
            quick_acks: 0,
            nagle: true,
            rto: RtoRule::Rfc6298 { min: Duration::from_secs(1), granularity: Duration::from_millis(1) },
            max_rto: Duration::from_secs(60),
            tsq: None,
            ..Profile::linux()
        }
    }
}
