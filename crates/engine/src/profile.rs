//! Fidelity profiles: how the TCP of a host behaves, after kernels and simulators of different years.

use crate::rtt::RtoRule;
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_units::{Bytes, Duration};
use std::net::IpAddr;

/// The knobs of one host's TCP. Each can be set alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The profile these values started from.
    pub name: &'static str,
    /// The MSS option: 1460 for IPv4 in 1500-byte packets; 20 less goes out over IPv6. A segment's payload is this
    /// minus the options it carries.
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
    /// Delay an ACK at most this long, and acknowledge every second full segment (RFC 5681 §4.2); `None` acknowledges
    /// each.
    pub delayed_ack: Option<Duration>,
    /// Segments at the start, and after idling, that are acknowledged at once although ACKs are delayed.
    pub quick_acks: u32,
    /// Hold a short segment back while data is in flight (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Rule by which the retransmission timeout follows from the RTT.
    pub rto: RtoRule,
    /// The timeout before there is a sample (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// The longest timeout.
    pub max_rto: Duration,
    /// Reduce cwnd after idling (RFC 2861).
    pub idle_restart: bool,
    /// Grow cwnd only if it was the limit (RFC 7661 §4.1 in spirit, Linux `is_cwnd_limited`).
    pub cwnd_limited_check: bool,
    /// TCP Small Queues: at most this much time's worth of data, and at least `tsq_segments`, in the first hop's queue.
    /// Needs a driver that reports departures; `None` switches it off.
    pub tsq: Option<Duration>,
    /// Full segments that TCP Small Queues let into the first hop's queue at any rate.
    pub tsq_segments: u32,
    /// Growth of a receive buffer that tunes itself.
    pub receive_tuning: ReceiveTuning,
    /// Share of the receive buffer that is window, as in Linux `tcp_adv_win_scale`: from a scale above zero all but the
    /// buffer shifted right by it, from others the buffer shifted right by the negated scale. `None` makes all of it
    /// window.
    pub adv_win_scale: Option<i8>,
    /// Slow-start threshold of a new subflow in segments, as Linux keeps it per destination (`tcp_metrics`); `None` for
    /// none.
    pub initial_ssthresh: Option<u32>,
    /// A subflow begins with what an earlier one of its connection knew of its path (RFC 9040 §6,
    /// `connection/history.rs`).
    pub temporal_sharing: bool,
    /// HyStart for CUBIC; `None` leaves slow start to losses.
    pub hystart: Option<HyStart>,
    /// Proportional rate reduction (RFC 6937).
    pub prr: bool,
    /// Fall of the window on a loss.
    pub loss_response: LossResponse,
    /// Without SACK, a third duplicate ACK and a timeout repeat one segment each, and nothing else does: no NewReno.
    pub single_repair: bool,
    /// Data ahead of the stream is not acknowledged on its subflow until the stream has caught up.
    pub coupled_acks: bool,
    /// SYN retransmissions before giving up.
    pub syn_retries: u32,
    /// SYN retransmissions with MP_CAPABLE before it is left out (Linux `syn_retrans_before_tcp_fallback`).
    pub syn_retries_with_mptcp: u32,
    /// Timeouts in a row that kill a subflow (Linux `tcp_retries2`).
    pub max_consecutive_rtos: u32,
    /// The scheduler unless another is named.
    pub scheduler: &'static str,
    /// The reinjection policy unless another is named.
    pub reinjection: &'static str,
    /// The first-path policy unless another is named.
    pub first_path: &'static str,
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

    /// Our own: the TCP of `linux`, connections that begin where they are answered first, segments sent where they
    /// arrive first, and data repeated where a copy pays.
    pub fn anabranch() -> Self {
        Profile {
            name: Profile::DEFAULT,
            scheduler: "anabranch",
            reinjection: "insured",
            first_path: "raced",
            ..Profile::linux()
        }
    }

    /// Linux 6.x: IW 10, SACK, RACK/TLP, HyStart, PRR, delayed ACK with quick-ACK, RTO at least SRTT + 200 ms.
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
            tsq_segments: 2,
            receive_tuning: ReceiveTuning::Proportional,
            adv_win_scale: None,
            initial_ssthresh: None,
            temporal_sharing: false,
            hystart: Some(HyStart::Eighth),
            prr: true,
            loss_response: LossResponse::Linux,
            single_repair: false,
            coupled_acks: false,
            syn_retries: 6,
            syn_retries_with_mptcp: 2,
            max_consecutive_rtos: 15,
            scheduler: "min-rtt",
            reinjection: "opportunistic",
            first_path: "as-listed",
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
            receive_tuning: ReceiveTuning::Stepwise,
            adv_win_scale: Some(1),
            ..Profile::linux()
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
            ..Profile::linux()
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
            ..Profile::linux()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tcp_win_from_space` of Linux 4.1, for `tcp_rmem[2]` of 6 MiB.
    #[test]
    fn the_scale_says_how_much_of_the_buffer_is_window() {
        let window = |adv_win_scale| Profile { adv_win_scale, ..Profile::linux() }.window_of(Bytes::new(6 << 20)).get();
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
