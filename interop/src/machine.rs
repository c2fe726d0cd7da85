//! Kernel parameters that tests rely on, set in their namespaces: a new namespace takes many from the machine.

use anabranch_host::Namespace;
use std::io;

/// The one congestion control that every kernel has and lets every namespace use.
pub const CONGESTION: &str = "reno";
/// Parameters, and what the tests expect of them.
const PARAMETERS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_congestion_control", CONGESTION),
    // As Linux has them on a machine with memory to spare.
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_moderate_rcvbuf", "1"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_fastopen", "0"),
    ("net.ipv4.tcp_mtu_probing", "0"),
    ("net.ipv4.tcp_syncookies", "1"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    // A peer that gets no processor for seconds is still a peer.
    ("net.ipv4.tcp_syn_retries", "10"),
    ("net.ipv4.tcp_synack_retries", "10"),
    ("net.mptcp.syn_retrans_before_tcp_fallback", "10"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv6.conf.all.disable_ipv6", "0"),
    ("net.ipv6.conf.default.disable_ipv6", "0"),
    ("net.mptcp.enabled", "1"),
    ("net.mptcp.checksum_enabled", "0"),
    ("net.mptcp.allow_join_initial_addr_port", "1"),
    ("net.mptcp.add_addr_timeout", "120"),
    ("net.mptcp.stale_loss_cnt", "4"),
    ("net.mptcp.scheduler", "default"),
    // A path that fails in one test must not cost the next its MPTCP.
    ("net.mptcp.blackhole_timeout", "0"),
];

/// Sets them in `namespace`, those that this kernel has.
///
/// # Errors
/// If one that it has cannot be set.
pub fn set_defaults(namespace: &Namespace) -> io::Result<()> {
    PARAMETERS.iter().try_for_each(|(key, value)| match namespace.sysctl(key, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    })
}
