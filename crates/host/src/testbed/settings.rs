//! Settings of a scenario's host that a kernel supports.

use super::plan::{Step, sysctl};
use anabranch_units::{Bytes, Duration};

/// Settings of one host's kernel. What is `None` stays as the kernel has it.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSettings {
    /// False: `net.mptcp.enabled=0`, and sockets that ask for MPTCP are refused.
    pub multipath: bool,
    /// Subflows per connection, the first one included.
    pub max_subflows: Option<usize>,
    /// Subflows from every address to every address.
    pub full_mesh: bool,
    /// Further addresses are announced.
    pub announce: bool,
    /// DSS checksums.
    pub dss_checksum: bool,
    /// Name in `net.ipv4.tcp_available_congestion_control`.
    pub congestion: Option<String>,
    /// Bytes in flight or waiting.
    pub send_buffer: Option<Bytes>,
    /// Bytes received and not read: at first, and at most.
    pub receive_buffer: Option<(Bytes, Bytes)>,
    /// The MSS to announce.
    pub mss: Option<u16>,
    /// Initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Selective acknowledgments.
    pub sack: Option<bool>,
    /// Timestamps.
    pub timestamps: Option<bool>,
    /// Window scaling.
    pub window_scaling: Option<bool>,
    /// RACK loss detection.
    pub rack: Option<bool>,
    /// Tail loss probes.
    pub tlp: Option<bool>,
    /// The window shrinks in idle times.
    pub idle_restart: Option<bool>,
    /// The floor of the retransmission timeout's variance.
    pub min_rto: Option<Duration>,
    /// The longest retransmission timeout.
    pub max_rto: Option<Duration>,
    /// SYN retransmissions.
    pub syn_retries: Option<u32>,
    /// Timeouts in a row that end a connection.
    pub max_consecutive_rtos: Option<u32>,
}

impl Default for KernelSettings {
    /// A kernel as it is, with MPTCP.
    fn default() -> Self {
        KernelSettings {
            multipath: true,
            max_subflows: None,
            full_mesh: false,
            announce: true,
            dss_checksum: false,
            congestion: None,
            send_buffer: None,
            receive_buffer: None,
            mss: None,
            initial_window: None,
            sack: None,
            timestamps: None,
            window_scaling: None,
            rack: None,
            tlp: None,
            idle_restart: None,
            min_rto: None,
            max_rto: None,
            syn_retries: None,
            max_consecutive_rtos: None,
        }
    }
}

/// The kernel takes half of a buffer for its own records, as with `SO_RCVBUF` (socket(7)).
const OVERHEAD: u64 = 2;
/// First value of `tcp_rmem` and `tcp_wmem`, for use under memory pressure \[B\].
const SMALLEST_BUFFER: u64 = 4096;

impl KernelSettings {
    /// Returns the settings as kernel parameters.
    pub(super) fn sysctls(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut set = |key: &str, value: String| steps.push(sysctl(key, &value).optional());
        let flag = |on: bool| u8::from(on).to_string();
        if !self.multipath {
            set("net.mptcp.enabled", flag(false));
        }
        if self.dss_checksum {
            set("net.mptcp.checksum_enabled", flag(true));
        }
        if let Some(name) = &self.congestion {
            set("net.ipv4.tcp_congestion_control", name.clone());
        }
        if let Some(size) = self.send_buffer {
            let size = (size.get() * OVERHEAD).max(SMALLEST_BUFFER);
            set("net.ipv4.tcp_wmem", format!("{SMALLEST_BUFFER} {size} {size}"));
        }
        if let Some((first, most)) = self.receive_buffer {
            let [first, most] = [first, most].map(|size| (size.get() * OVERHEAD).max(SMALLEST_BUFFER));
            set("net.ipv4.tcp_rmem", format!("{SMALLEST_BUFFER} {first} {most}"));
        }
        let flags = [
            ("net.ipv4.tcp_sack", self.sack),
            ("net.ipv4.tcp_timestamps", self.timestamps),
            ("net.ipv4.tcp_window_scaling", self.window_scaling),
            ("net.ipv4.tcp_recovery", self.rack),
            ("net.ipv4.tcp_slow_start_after_idle", self.idle_restart),
        ];
        for (key, value) in flags {
            value.into_iter().for_each(|on| set(key, flag(on)));
        }
        if let Some(on) = self.tlp {
            set("net.ipv4.tcp_early_retrans", if on { "3" } else { "0" }.to_owned());
        }
        let numbers = [
            ("net.ipv4.tcp_rto_min_us", self.min_rto.map(|span| span.as_nanos() / 1_000)),
            ("net.ipv4.tcp_rto_max_ms", self.max_rto.map(|span| span.as_nanos() / 1_000_000)),
            ("net.ipv4.tcp_syn_retries", self.syn_retries.map(u64::from)),
            ("net.ipv4.tcp_retries2", self.max_consecutive_rtos.map(u64::from)),
        ];
        for (key, value) in numbers {
            value.into_iter().for_each(|value| set(key, value.to_string()));
        }
        steps
    }

    /// Returns the settings as attributes of a route, each after a space.
    pub(super) fn route_attributes(&self) -> String {
        let mss = self.mss.map(|mss| format!(" advmss {mss}"));
        let window = self.initial_window.map(|segments| format!(" initcwnd {segments}"));
        mss.unwrap_or_default() + &window.unwrap_or_default()
    }
}
