//! Fidelity profiles: how the TCP of a host behaves, after kernels and simulators of different years.

use super::declare::settings;
use super::words::{self, ECN, HYSTART, LOSS_RESPONSE, RECEIVE_TUNING};
use super::{ANY, Config, Kernel};
use crate::ecn::EcnRule;
use crate::rtt::RtoRule;
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_policy::send_buffer;
use anabranch_units::{Bytes, Duration};
use std::net::IpAddr;

settings! {
    /// The knobs of one host's TCP. Each can be set alone; `false` of a scenario is `None` here.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile as |config| config.profile => {
        /// The profile these values started from.
        #[setting(none)]
        pub name: &'static str = "tcp",
        /// The MSS option in bytes: 1460 in packets of 1500.
        #[setting(
            "mss",
            Number(*Config::MSS.start() as i64, *Config::MSS.end() as i64),
            in_unit("bytes"),
            in_kernel(Kernel::Other("`advmss` of the routes"))
        )]
        /// Over IPv6 it is 20 less. A segment's payload is this minus the options that it carries.
        pub mss: u16 = 1460,
        /// Initial window in segments.
        #[setting(
            "initial-window", Number(0, ANY), in_unit("segments"), in_kernel(Kernel::Other("`initcwnd` of the routes"))
        )]
        /// RFC 6928: 10; RFC 3390: 3 at this MSS.
        pub initial_window: u32 = 10,
        /// Selective acknowledgments.
        #[setting("sack", Flag, in_kernel(Kernel::Switch("net.ipv4.tcp_sack", 1)))]
        /// RFC 2018.
        pub sack: bool = true,
        /// Timestamps.
        #[setting("timestamps", Flag, in_kernel(Kernel::Switch("net.ipv4.tcp_timestamps", 1)))]
        /// With PAWS (RFC 7323).
        pub timestamps: bool = true,
        /// Window scaling.
        #[setting("window-scaling", Flag, in_kernel(Kernel::Switch("net.ipv4.tcp_window_scaling", 1)))]
        /// RFC 7323 §2.
        pub window_scaling: bool = true,
        /// RACK loss detection.
        #[setting("rack", Flag, in_kernel(Kernel::Switch("net.ipv4.tcp_recovery", 1)))]
        /// By time (RFC 8985).
        pub rack: bool = true,
        /// Tail loss probes.
        #[setting("tlp", Flag, in_kernel(Kernel::Switch("net.ipv4.tcp_early_retrans", 3)))]
        /// RFC 8985 §7.
        pub tlp: bool = true,
        /// Early retransmit.
        #[setting("early-retransmit", Flag)]
        /// RFC 5827.
        pub early_retransmit: bool = false,
        /// Maximum delay of an ACK; or false.
        #[setting("delayed-ack", TimeOrOff)]
        /// Every second full segment is acknowledged at once (RFC 5681 §4.2); `None` acknowledges each.
        pub delayed_ack: Option<Duration> = Some(Duration::from_millis(40)),
        /// Number of segments at the start that are acknowledged at once.
        #[setting("quick-acks", Number(0, ANY), in_unit("segments"))]
        /// After idling as well.
        pub quick_acks: u32 = 16,
        /// Nagle's algorithm: short segments wait for an ACK.
        #[setting("nagle", Flag)]
        /// RFC 9293 §3.7.4.
        pub nagle: bool = false,
        /// Rule by which the retransmission timeout follows from the RTT.
        #[setting(all of words::RTO_SETTINGS)]
        pub rto: RtoRule = RtoRule::Linux { min_var: Duration::from_millis(200) },
        /// Timeout before the first RTT sample.
        #[setting("initial-rto", Time)]
        /// RFC 6298 §2.1.
        pub initial_rto: Duration = Duration::from_secs(1),
        /// Maximum timeout.
        #[setting("max-rto", Time, in_kernel(Kernel::Time("net.ipv4.tcp_rto_max_ms", Duration::from_millis(1))))]
        pub max_rto: Duration = Duration::from_secs(120),
        /// The congestion window shrinks in idle times.
        #[setting("idle-restart", Flag, in_kernel(Kernel::Switch("net.ipv4.tcp_slow_start_after_idle", 1)))]
        /// RFC 2861.
        pub idle_restart: bool = true,
        /// The congestion window grows only while it limits sending.
        #[setting("cwnd-limited-check", Flag)]
        /// RFC 7661 §4.1 in spirit, Linux `is_cwnd_limited`.
        pub cwnd_limited_check: bool = true,
        /// TCP Small Queues: maximum data waiting at the first hop, as a time at the pacing rate; or false.
        #[setting("tsq", TimeOrOff)]
        /// Needs a driver that reports departures ([`Config::reports_departures`](crate::Config::reports_departures)).
        pub tsq: Option<Duration> = Some(Duration::from_millis(1)),
        /// Minimum of the TCP Small Queues limit in full segments: 2, under linux-4.1 3, under linux-3.14 57.
        #[setting("tsq-segments", Number(1, ANY), in_unit("segments"))]
        pub tsq_segments: u32 = 2,
        /// Segments by which a subflow may be ahead, after slow start, of one and a half windows per round-trip time.
        /// False, under anabranch 16.
        #[setting("max-burst", NumberOrOff(2, ANY), in_unit("segments"))]
        /// Max.Burst of RFC 9260 §6.1, for what is held up at the data level and then let go. Not for controls that
        /// have paces of their own.
        pub max_burst: Option<u32> = None,
        /// DSS options have 32-bit sequence numbers where these are enough. False, under anabranch true.
        #[setting("short-dss", Flag)]
        /// RFC 8684 §3.3.1: in the first 256 MiB of a stream, and acknowledgments where the peer does so too. A full
        /// segment holds 8 bytes more.
        pub short_dss: bool = false,
        /// Growth of a receive buffer that tunes itself: proportional, under linux-4.1 and linux-3.14 stepwise.
        #[setting("receive-tuning", Choice(RECEIVE_TUNING))]
        pub receive_tuning: ReceiveTuning = ReceiveTuning::Proportional,
        /// Share of the receive buffer that is offered as window, as Linux' tcp_adv_win_scale: 1 half of it, 2 three
        /// quarters, -2 a quarter. All of it unless given, under linux-4.1 and linux-3.14 half.
        #[setting("adv-win-scale", NumberOrOff(-31, 31))]
        /// From a scale above zero all but the buffer shifted right by it, from others the buffer shifted right by the
        /// negated scale.
        pub adv_win_scale: Option<i8> = None,
        /// Maximum send buffer of a subflow, which grows with its congestion window; the connection's is the sum of
        /// those, and at most send-buffer. Once full, it takes data again when a third is free. False for a send buffer
        /// of fixed size, as all profiles but linux have it; under linux 4MiB, unless send-buffer is given.
        #[setting("subflow-send-buffer", SizeOrOff)]
        /// `connection/send_space.rs`.
        pub subflow_send_buffer: Option<Bytes> = None,
        /// Slow-start threshold of new subflows in segments, as remembered from earlier connections; none unless given.
        #[setting("initial-ssthresh", NumberOrOff(2, ANY), in_unit("segments"))]
        /// Linux keeps it per destination (`tcp_metrics`).
        pub initial_ssthresh: Option<u32> = None,
        /// A subflow begins with the slow-start threshold and the path's rate that an earlier subflow of its connection
        /// left on its path (RFC 9040). False unless given.
        #[setting("temporal-sharing", Flag)]
        /// RFC 9040 §6; see `connection/history.rs`.
        pub temporal_sharing: bool = false,
        /// Early end of slow start: under anabranch plus-plus, in all controls; under linux in CUBIC linux-5.16, under
        /// linux-4.1 eighth, under linux-3.14 sixteenth; off under all others.
        #[setting("hystart", Choice(HYSTART))]
        pub hystart: Option<HyStart> = Some(HyStart::Linux5_16),
        /// Proportional rate reduction (RFC 6937): the window falls during a fast recovery rather than at its
        /// beginning. True, false under all but Linux.
        #[setting("prr", Flag)]
        pub prr: bool = true,
        /// Reduction of the window on a loss: standard, under mptcp-ns3 halve.
        #[setting("loss-response", Choice(LOSS_RESPONSE))]
        pub loss_response: LossResponse = LossResponse::Linux,
        /// Without SACK, only a third duplicate ACK and a timeout retransmit, one segment each. False, under mptcp-ns3
        /// true.
        #[setting("single-repair", Flag)]
        /// There is no NewReno then.
        pub single_repair: bool = false,
        /// A subflow acknowledges data only when all data before it in the stream has arrived. False, under mptcp-ns3
        /// true.
        #[setting("coupled-acks", Flag)]
        pub coupled_acks: bool = false,
        /// Explicit congestion notification (ECN): what is asked for, and what is agreed to where the peer asks.
        /// Accept-classic, under mptcp-ns3 and newreno off.
        #[setting("ecn", Choice(ECN), in_kernel(Kernel::Place("net.ipv4.tcp_ecn")))]
        /// RFC 3168, RFC 9768.
        pub ecn: EcnRule = EcnRule::ACCEPT_CLASSIC,
        /// Number of times that a SYN is repeated.
        #[setting("syn-retries", Number(0, ANY), in_kernel(Kernel::Number("net.ipv4.tcp_syn_retries")))]
        pub syn_retries: u32 = 6,
        /// Number of times that a SYN is repeated with MP_CAPABLE, before it is repeated without.
        #[setting(
            "syn-retries-with-mptcp",
            Number(0, ANY),
            in_kernel(Kernel::Number("net.mptcp.syn_retrans_before_tcp_fallback"))
        )]
        pub syn_retries_with_mptcp: u32 = 2,
        /// Number of timeouts in a row that kill a subflow.
        #[setting("max-consecutive-rtos", Number(0, ANY), in_kernel(Kernel::Number("net.ipv4.tcp_retries2")))]
        pub max_consecutive_rtos: u32 = 15,
        /// The scheduler unless another is named.
        #[setting(none)]
        pub scheduler: &'static str = "min-rtt",
        /// The congestion control unless another is named.
        #[setting(none)]
        pub congestion: &'static str = "lia",
        /// The reinjection policy unless another is named.
        #[setting(none)]
        pub reinjection: &'static str = "opportunistic",
        /// The first-path policy unless another is named.
        #[setting(none)]
        pub first_path: &'static str = "as-listed",
        /// Size of the send and the receive buffer unless others are given.
        #[setting(none)]
        /// Linux 6.18: `tcp_rmem` on a machine with enough memory. Its `tcp_wmem` is 4 MiB for each subflow, which the
        /// scheduler `linux-burst` keeps, but RFC 8684 §3.3.5 wants a send buffer at least as large as the receive
        /// buffer.
        pub buffer: Bytes = Bytes::new(32 << 20),
        /// Size of the receive buffer at first unless another is given; `None` for a buffer of fixed size.
        #[setting(none)]
        pub initial_buffer: Option<Bytes> = None,
    }

    /// The TCP of Linux 6.18 with the policies of the out-of-tree kernel, from which all profiles begin: IW 10, SACK,
    /// RACK/TLP, HyStart, PRR, delayed ACK with quick-ACK, RTO at least SRTT + 200 ms.
    pub fn tcp() -> Self;
}

/// Rule by which a receive buffer that tunes itself grows (`connection/autotune.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveTuning {
    /// Linux 4.16 and later: ahead by twice the relative growth of what is read.
    Proportional,
    /// Linux 3.14 to 4.15: half or once as much again if a quarter or half more is read.
    Stepwise,
}

/// Bytes by which an IPv6 header is longer than an IPv4 header.
const IPV6_EXTRA: u16 = 20;

impl Profile {
    /// The MSS option for a subflow to this address: packets are of one size, headers are not (RFC 9293 §3.7.1).
    pub(crate) fn mss_towards(&self, remote: IpAddr) -> u16 {
        if remote.is_ipv6() { self.mss.saturating_sub(IPV6_EXTRA) } else { self.mss }
    }

    /// The window that a receive buffer of this size admits.
    pub fn window_of(&self, buffer: Bytes) -> Bytes {
        let size = buffer.get();
        let shifted = |by: u32| size.checked_shr(by).unwrap_or(0);
        Bytes::new(match self.adv_win_scale {
            None => size,
            Some(scale) if scale > 0 => size - shifted(u32::from(scale.unsigned_abs())),
            Some(scale) => shifted(u32::from(scale.unsigned_abs())),
        })
    }

    /// The names of all profiles.
    pub const NAMES: &'static [&'static str] =
        &[Profile::DEFAULT, "linux", "linux-4.1", "linux-3.14", "newreno", "mptcp-ns3", "rfc"];
    /// The profile unless another is named.
    pub const DEFAULT: &'static str = "anabranch";

    /// `tcp_rmem` of kernels before 6.16, and the buffers of stacks that are older.
    const FORMER_BUFFER: Bytes = Bytes::new(6 << 20);

    /// Names that profiles once had, with those that they have now.
    pub const RENAMED: &'static [(&'static str, &'static str)] = &[("ns3", "newreno")];

    /// The present name of the profile once called `name`.
    pub fn renamed(name: &str) -> Option<&'static str> {
        Profile::RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
    }

    /// The profile called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            Profile::DEFAULT => Some(Profile::anabranch()),
            "linux" => Some(Profile::linux()),
            "linux-4.1" => Some(Profile::linux_4_1()),
            "linux-3.14" => Some(Profile::linux_3_14()),
            "newreno" => Some(Profile::newreno()),
            "mptcp-ns3" => Some(Profile::mptcp_ns3()),
            "rfc" => Some(Profile::rfc()),
            _ => None,
        }
    }

    /// Linux 6.18 (30 November 2025) as it comes: its TCP with CUBIC, the scheduler and the retransmission of its own
    /// MPTCP, and a receive buffer that tunes itself as `tcp_rmem` of 4096, 131072 and 33554432 says.
    pub fn linux() -> Self {
        Profile {
            name: "linux",
            scheduler: "linux-burst",
            congestion: "cubic-kernel",
            reinjection: "upstream",
            // Half of the second value is window at first (`tcp_win_from_space`).
            initial_buffer: Some(Bytes::new(64 << 10)),
            subflow_send_buffer: Some(send_buffer::LARGEST),
            ..Profile::tcp()
        }
    }

    /// Our own: the TCP of `linux` with HyStart++ (RFC 9406), connections that begin where they are answered first,
    /// segments sent where they arrive first, data repeated where a copy pays, and windows that are coupled where
    /// subflows share a bottleneck.
    pub fn anabranch() -> Self {
        Profile {
            name: Profile::DEFAULT,
            scheduler: "anabranch",
            congestion: "cubic-sbd",
            hystart: Some(HyStart::PlusPlus),
            max_burst: Some(16),
            short_dss: true,
            reinjection: "insured",
            first_path: "raced",
            ..Profile::tcp()
        }
    }

    /// Linux 4.1 with MPTCP v0.91 (LOWLAT's kernel): TLP and early retransmit, but no RACK; half of the receive buffer
    /// is window.
    pub fn linux_4_1() -> Self {
        Profile {
            name: "linux-4.1",
            rack: false,
            early_retransmit: true,
            // A third segment leaves while two of its size wait: `tcp_write_xmit` holds back what is above the limit.
            tsq_segments: 3,
            hystart: Some(HyStart::Eighth),
            receive_tuning: ReceiveTuning::Stepwise,
            adv_win_scale: Some(1),
            buffer: Profile::FORMER_BUFFER,
            ..Profile::tcp()
        }
    }

    /// Linux 3.14 with MPTCP v0.89 (LATE's kernel): as `linux-4.1`, but 128 KiB may wait in the first hop's queue.
    pub fn linux_3_14() -> Self {
        // 131072 bytes (`tcp_limit_output_bytes`) hold 56 segments of 2304 bytes of memory, and one more may leave.
        Profile { name: "linux-3.14", tsq_segments: 57, hystart: Some(HyStart::Sixteenth), ..Profile::linux_4_1() }
    }

    /// NewReno as a TCP of ns-3 has it: no SACK, every segment acknowledged, a floor of 200 ms under the RTO. Called
    /// `ns3` once; the code for MPTCP that LATE and RBP cite is another one.
    pub fn newreno() -> Self {
        Profile {
            name: "newreno",
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
            hystart: None,
            prr: false,
            loss_response: LossResponse::Standard,
            ecn: EcnRule::OFF,
            buffer: Profile::FORMER_BUFFER,
            ..Profile::tcp()
        }
    }

    /// The code for ns-3.6 that LATE and RBP cite (mptcp-ns3, once on Google Code): docs/stacks.md has it rule by rule.
    pub fn mptcp_ns3() -> Self {
        Profile {
            name: "mptcp-ns3",
            initial_window: 1,
            // 65535 bytes, in segments of 1400.
            initial_ssthresh: Some(47),
            rto: RtoRule::MptcpNs3 { min: Duration::from_millis(200) },
            initial_rto: Duration::from_secs(3),
            cwnd_limited_check: false,
            loss_response: LossResponse::Halve,
            single_repair: true,
            coupled_acks: true,
            ..Profile::newreno()
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
            hystart: None,
            prr: false,
            loss_response: LossResponse::Standard,
            ..Profile::tcp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tcp_win_from_space` of Linux 4.1, for `tcp_rmem[2]` of 6 MiB.
    #[test]
    fn the_scale_says_how_much_of_the_buffer_is_window() {
        let window = |adv_win_scale| Profile { adv_win_scale, ..Profile::tcp() }.window_of(Bytes::new(6 << 20)).get();
        for (scale, window_is) in [
            (None, 6_291_456),
            (Some(1), 3_145_728), // 6 MiB - 3 MiB
            (Some(2), 4_718_592), // 6 MiB - 1.5 MiB
            (Some(0), 6_291_456),
            (Some(-2), 1_572_864), // 6 MiB / 4
            (Some(127), 6_291_456),
            (Some(-128), 0),
        ] {
            assert_eq!(window(scale), window_is, "{scale:?}");
        }
    }

    #[test]
    fn each_name_is_that_of_its_profile() {
        for name in Profile::NAMES {
            assert_eq!(Profile::named(name).map(|profile| profile.name), Some(*name));
        }
    }
}
