//! Rows of the table of settings, in the order in which they are applied.

use super::Domain::{Choice, Flag, Number, NumberOrOff, Ports, Size, SizeOrOff, Time, TimeOrOff};
use super::Kernel::{self, Other, Switch};
use super::{ANY, Setting, Word};
use crate::limits::MAX_SUBFLOWS;
use crate::{Config, FastClose, ReceiveTuning, RtoRule};
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_units::Duration;

/// The longest queue of handshakes, and the highest rate of resets.
const MANY: i64 = 1 << 20;

/// All settings but policies, which [`Policies`](crate::Policies) and their registries describe, and addresses.
pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "ack-rewrite",
        "Pure ACKs may take another subflow's path, with addresses rewritten, if both hosts have this. The ACK paths \
         fixed and probed need it. Not part of MPTCP; false unless given.",
        Flag(|c| &mut c.ack_rewrite),
    ),
    Setting::new(
        "ack-caution",
        "Every sixteenth ACK keeps its own path, and all do where the other path loses them; true unless given. If \
         false, as in the paper, an ACK path that dies silences the other subflows until the policy leaves it.",
        Flag(|c| &mut c.ack_caution),
    ),
    Setting::new(
        "send-buffer",
        "Bytes written and not yet acknowledged, per connection; 6MiB unless given, and at least the other host's \
         receive buffer (RFC 8684 §3.3.5).",
        Size(|c| &mut c.send_buffer),
    )
    .in_kernel(Other("`net.ipv4.tcp_wmem`: twice the size, as the kernel counts its records in")),
    Setting::new("receive-buffer", "Bytes received and not yet read, per connection.", Size(|c| &mut c.receive_buffer))
        .not_in_scenarios(),
    Setting::new(
        "initial-receive-buffer",
        "Size of a receive buffer that tunes itself, at first; it grows up to receive-buffer. False for one of fixed \
         size.",
        SizeOrOff(|c| &mut c.initial_receive_buffer),
    )
    .not_in_scenarios(),
    Setting::new("multipath", "Uses MPTCP; false for plain TCP.", Flag(|c| &mut c.multipath))
        .in_kernel(Switch("net.mptcp.enabled", 1)),
    Setting::new(
        "max-subflows",
        "Maximum number of subflows per connection.",
        Number(|c| &mut c.max_subflows, 1, MAX_SUBFLOWS as i64),
    )
    .in_kernel(Other("`ip mptcp limits`")),
    Setting::new(
        "full-mesh",
        "The client joins from each of its addresses to each address of the server.",
        Flag(|c| &mut c.full_mesh),
    )
    .in_kernel(Other("`fullmesh` of `ip mptcp endpoint`")),
    Setting::new("announce", "Announces further addresses (ADD_ADDR).", Flag(|c| &mut c.announce))
        .in_kernel(Other("`signal` of `ip mptcp endpoint`")),
    Setting::new(
        "announced-port",
        "Port that ADD_ADDR names; none unless given, and the peer uses that of the initial subflow (RFC 8684 §3.4.1).",
        NumberOrOff(|c| &mut c.announced_port, 0, u16::MAX as i64),
    )
    .not_in_scenarios(),
    Setting::new(
        "deny-join",
        "Forbids the peer to open subflows to the address and port of the initial one (flag C, RFC 8684 §3.1).",
        Flag(|c| &mut c.deny_join_to_initial),
    )
    .not_in_scenarios(),
    Setting::new(
        "dss-checksum",
        "DSS checksums, which reveal altered payload. Used if either host has them.",
        Flag(|c| &mut c.checksum),
    )
    .called_in_scripts("checksum")
    .in_kernel(Switch("net.mptcp.checksum_enabled", 1)),
    Setting::new(
        "rejoin",
        "Time after which the path of a dead subflow is tried again; or false.",
        TimeOrOff(|c| &mut c.rejoin),
    ),
    Setting::new(
        "close-timeout",
        "Time for which a connection without any subflow waits for a new one.",
        Time(|c| &mut c.close_timeout),
    )
    .not_in_scenarios(),
    Setting::new(
        "keepalive",
        "Time without a segment after which a silent peer is probed (RFC 9293 §3.8.4). False unless given: an idle \
         connection lasts as long as both ends.",
        TimeOrOff(|c| &mut c.keepalive.idle),
    ),
    Setting::new(
        "keepalive-interval",
        "Time without an answer before the next probe.",
        Time(|c| &mut c.keepalive.interval),
    ),
    Setting::new(
        "keepalive-probes",
        "Number of probes without an answer after which the subflow is given up.",
        Number(|c| &mut c.keepalive.probes, 1, ANY),
    ),
    Setting::new(
        "user-timeout",
        "Time without an acknowledgment of data after which the connection is given up (RFC 5482). False unless given: \
         the retransmission timeouts decide, which takes a quarter of an hour and more.",
        TimeOrOff(|c| &mut c.user_timeout),
    ),
    Setting::new(
        "mptcp-blackhole",
        "Maximum time for which connections begin as plain TCP on a path where SYNs with MP_CAPABLE vanish; a minute \
         at first, doubled each time. False tries anew each time.",
        TimeOrOff(|c| &mut c.mptcp_blackhole),
    )
    .in_kernel(Kernel::Time("net.mptcp.blackhole_timeout", Duration::from_secs(1))),
    Setting::new(
        "mtu-probing",
        "Number of timeouts of a full segment in a row after which segments become smaller, on a path that still \
         answers to small ones (RFC 4821 §7.7). False unless given, on the wire 3.",
        NumberOrOff(|c| &mut c.black_hole_timeouts, 1, ANY),
    ),
    Setting::new(
        "burst",
        "Maximum size of a mapping (at most 65534B) that segments sent back to back on a subflow share, as \
         segmentation offload needs it. False for one mapping per segment; on a TUN device with offload it cannot be \
         off.",
        SizeOrOff(|c| &mut c.burst),
    ),
    Setting::new(
        "ports",
        "Local ports of connections and subflows that the host opens, in turn. False for the dynamic ports (RFC 6335 \
         §6).",
        Ports(|c| &mut c.ports),
    )
    .in_kernel(Other("`net.ipv4.ip_local_port_range`")),
    Setting::new("fast-close", "The way in which an abort tells the peer (RFC 8684 §3.5).", Choice(FAST_CLOSE))
        .not_in_scenarios(),
    Setting::new(
        "max-half-open",
        "Connections in the three-way handshake; further SYNs are answered with SYN cookies, with 0 all of them.",
        Number(|c| &mut c.max_half_open, 0, MANY),
    )
    .not_in_scenarios(),
    Setting::new(
        "resets-per-second",
        "Resets per second to those whose segments belong to nothing. No limit unless given, on the wire 1000.",
        NumberOrOff(|c| &mut c.resets_per_second, 0, MANY),
    )
    .not_in_scenarios(),
    Setting::new(
        "mss",
        "The MSS option in bytes: 1460 in packets of 1500.",
        Number(|c| &mut c.profile.mss, *Config::MSS.start() as i64, *Config::MSS.end() as i64),
    )
    .in_unit("bytes")
    .in_kernel(Other("`advmss` of the routes")),
    Setting::new("initial-window", "Initial window in segments.", Number(|c| &mut c.profile.initial_window, 0, ANY))
        .in_unit("segments")
        .in_kernel(Other("`initcwnd` of the routes")),
    Setting::new("sack", "Selective acknowledgments.", Flag(|c| &mut c.profile.sack))
        .in_kernel(Switch("net.ipv4.tcp_sack", 1)),
    Setting::new("timestamps", "Timestamps.", Flag(|c| &mut c.profile.timestamps))
        .in_kernel(Switch("net.ipv4.tcp_timestamps", 1)),
    Setting::new("window-scaling", "Window scaling.", Flag(|c| &mut c.profile.window_scaling))
        .in_kernel(Switch("net.ipv4.tcp_window_scaling", 1)),
    Setting::new("rack", "RACK loss detection.", Flag(|c| &mut c.profile.rack))
        .in_kernel(Switch("net.ipv4.tcp_recovery", 1)),
    Setting::new("tlp", "Tail loss probes.", Flag(|c| &mut c.profile.tlp))
        .in_kernel(Switch("net.ipv4.tcp_early_retrans", 3)),
    Setting::new("early-retransmit", "Early retransmit.", Flag(|c| &mut c.profile.early_retransmit)),
    Setting::new("delayed-ack", "Maximum delay of an ACK; or false.", TimeOrOff(|c| &mut c.profile.delayed_ack)),
    Setting::new(
        "quick-acks",
        "Number of segments at the start that are acknowledged at once.",
        Number(|c| &mut c.profile.quick_acks, 0, ANY),
    )
    .in_unit("segments"),
    Setting::new("nagle", "Nagle's algorithm: short segments wait for an ACK.", Flag(|c| &mut c.profile.nagle)),
    Setting::new("rto", "Rule for the retransmission timeout.", Choice(RTO)),
    Setting::new(
        "min-rto",
        "Minimum of the timeout: under `rfc6298` and `mptcp-ns3` of the whole, under `linux` of its variance term.",
        Time(|c| match &mut c.profile.rto {
            RtoRule::Linux { min_var: min } | RtoRule::Rfc6298 { min, .. } | RtoRule::MptcpNs3 { min } => min,
        }),
    )
    .in_kernel(Kernel::Time("net.ipv4.tcp_rto_min_us", Duration::from_micros(1))),
    Setting::new("initial-rto", "Timeout before the first RTT sample.", Time(|c| &mut c.profile.initial_rto)),
    Setting::new("max-rto", "Maximum timeout.", Time(|c| &mut c.profile.max_rto))
        .in_kernel(Kernel::Time("net.ipv4.tcp_rto_max_ms", Duration::from_millis(1))),
    Setting::new("idle-restart", "The congestion window shrinks in idle times.", Flag(|c| &mut c.profile.idle_restart))
        .in_kernel(Switch("net.ipv4.tcp_slow_start_after_idle", 1)),
    Setting::new(
        "cwnd-limited-check",
        "The congestion window grows only while it limits sending.",
        Flag(|c| &mut c.profile.cwnd_limited_check),
    ),
    Setting::new(
        "tsq",
        "TCP Small Queues: maximum data waiting at the first hop, as a time at the pacing rate; or false.",
        TimeOrOff(|c| &mut c.profile.tsq),
    ),
    Setting::new(
        "tsq-segments",
        "Minimum of the TCP Small Queues limit in full segments: 2, under linux-4.1 3, under linux-3.14 57.",
        Number(|c| &mut c.profile.tsq_segments, 1, ANY),
    )
    .in_unit("segments"),
    Setting::new(
        "receive-tuning",
        "Growth of a receive buffer that tunes itself: proportional, under linux-4.1 and linux-3.14 stepwise.",
        Choice(RECEIVE_TUNING),
    ),
    Setting::new(
        "adv-win-scale",
        "Share of the receive buffer that is offered as window, as Linux' tcp_adv_win_scale: 1 half of it, 2 three \
         quarters, -2 a quarter. All of it unless given, under linux-4.1 and linux-3.14 half.",
        NumberOrOff(|c| &mut c.profile.adv_win_scale, -31, 31),
    ),
    Setting::new(
        "initial-ssthresh",
        "Slow-start threshold of new subflows in segments, as remembered from earlier connections; none unless given.",
        NumberOrOff(|c| &mut c.profile.initial_ssthresh, 2, ANY),
    )
    .in_unit("segments"),
    Setting::new(
        "temporal-sharing",
        "A subflow begins with the slow-start threshold and the path's rate that an earlier subflow of its connection \
         left on its path (RFC 9040). False unless given.",
        Flag(|c| &mut c.profile.temporal_sharing),
    ),
    Setting::new(
        "hystart",
        "Early end of slow start: in CUBIC eighth, under linux-3.14 sixteenth, off under all but Linux; or plus-plus \
         in all.",
        Choice(HYSTART),
    ),
    Setting::new(
        "prr",
        "Proportional rate reduction (RFC 6937): the window falls during a fast recovery rather than at its \
         beginning. True, false under all but Linux.",
        Flag(|c| &mut c.profile.prr),
    ),
    Setting::new(
        "loss-response",
        "Reduction of the window on a loss: standard, under mptcp-ns3 halve.",
        Choice(LOSS_RESPONSE),
    ),
    Setting::new(
        "single-repair",
        "Without SACK, only a third duplicate ACK and a timeout retransmit, one segment each. False, under mptcp-ns3 \
         true.",
        Flag(|c| &mut c.profile.single_repair),
    ),
    Setting::new(
        "coupled-acks",
        "A subflow acknowledges data only when all data before it in the stream has arrived. False, under mptcp-ns3 \
         true.",
        Flag(|c| &mut c.profile.coupled_acks),
    ),
    Setting::new(
        "syn-retries",
        "Number of times that a SYN is repeated.",
        Number(|c| &mut c.profile.syn_retries, 0, ANY),
    )
    .in_kernel(Kernel::Number("net.ipv4.tcp_syn_retries")),
    Setting::new(
        "syn-retries-with-mptcp",
        "Number of times that a SYN is repeated with MP_CAPABLE, before it is repeated without.",
        Number(|c| &mut c.profile.syn_retries_with_mptcp, 0, ANY),
    )
    .in_kernel(Kernel::Number("net.mptcp.syn_retrans_before_tcp_fallback")),
    Setting::new(
        "max-consecutive-rtos",
        "Number of timeouts in a row that kill a subflow.",
        Number(|c| &mut c.profile.max_consecutive_rtos, 0, ANY),
    )
    .in_kernel(Kernel::Number("net.ipv4.tcp_retries2")),
];

/// A word that stands for one value of a field.
macro_rules! word {
    ($name:literal, $about:literal, $c:ident.$($field:ident).+ = $value:expr) => {
        Word { name: $name, about: $about, put: |$c| $c.$($field).+ = $value, is: |$c| $c.$($field).+ == $value }
    };
}

const FAST_CLOSE: &[Word] = &[
    word!("rst", "MP_FASTCLOSE on a RST of every subflow (option R; Linux).", c.fast_close = FastClose::Rst),
    word!(
        "ack",
        "MP_FASTCLOSE on an ACK of one subflow, until the peer's RST arrives (option A).",
        c.fast_close = FastClose::Ack
    ),
];

/// Each with its usual minimum: 200 ms of Linux and mptcp-ns3, 1 s of RFC 6298 §2.4.
const RTO: &[Word] = &[
    Word {
        name: "linux",
        about: "SRTT plus a variance term that has its own minimum.",
        put: |c| c.profile.rto = RtoRule::Linux { min_var: Duration::from_millis(200) },
        is: |c| matches!(c.profile.rto, RtoRule::Linux { .. }),
    },
    Word {
        name: "rfc6298",
        about: "RFC 6298 with a minimum of the whole timeout.",
        put: |c| {
            c.profile.rto = RtoRule::Rfc6298 { min: Duration::from_secs(1), granularity: Duration::from_millis(1) };
        },
        is: |c| matches!(c.profile.rto, RtoRule::Rfc6298 { .. }),
    },
    Word {
        name: "mptcp-ns3",
        about: "Twice the RTT while it is steady, with a minimum of the whole timeout.",
        put: |c| c.profile.rto = RtoRule::MptcpNs3 { min: Duration::from_millis(200) },
        is: |c| matches!(c.profile.rto, RtoRule::MptcpNs3 { .. }),
    },
];

const RECEIVE_TUNING: &[Word] = &[
    word!(
        "proportional",
        "Grows by twice the relative growth of the amount read per round trip (Linux 4.16 and later).",
        c.profile.receive_tuning = ReceiveTuning::Proportional
    ),
    word!(
        "stepwise",
        "Grows by half if a quarter more is read in a round trip, doubles if half more is (Linux 3.14 to 4.15).",
        c.profile.receive_tuning = ReceiveTuning::Stepwise
    ),
];

/// HyStart, by the rise of the RTT over its minimum that ends slow start.
const HYSTART: &[Word] = &[
    word!("off", "Only a loss ends slow start.", c.profile.hystart = None),
    word!(
        "sixteenth",
        "A sixteenth of the minimum RTT (Linux before 3.19).",
        c.profile.hystart = Some(HyStart::Sixteenth)
    ),
    word!("eighth", "An eighth of the minimum RTT (Linux 3.19 and later).", c.profile.hystart = Some(HyStart::Eighth)),
    word!(
        "plus-plus",
        "HyStart++ (RFC 9406): an eighth above the round trip before, with a slower slow start first. For every \
         congestion control that is not model-based.",
        c.profile.hystart = Some(HyStart::PlusPlus)
    ),
];

const LOSS_RESPONSE: &[Word] = &[
    word!(
        "standard",
        "Reduces as the congestion control says, from the data in flight if the window was no limit; to one \
         segment on a timeout (RFC 5681).",
        c.profile.loss_response = LossResponse::Standard
    ),
    word!("linux", "As `standard`, but always from the window (Linux).", c.profile.loss_response = LossResponse::Linux),
    word!(
        "halve",
        "Halves the window on a fast retransmit and on each timeout, without a new slow start.",
        c.profile.loss_response = LossResponse::Halve
    ),
];
