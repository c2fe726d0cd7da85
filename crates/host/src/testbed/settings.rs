//! Settings of a scenario's host that a kernel supports.

use super::plan::{Step, sysctl};
use anabranch_units::Bytes;
use std::collections::BTreeMap;

/// Settings of one host's kernel. What is `None` stays as the kernel has it.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSettings {
    /// Subflows per connection, the first one included.
    pub max_subflows: Option<usize>,
    /// Subflows from every address to every address.
    pub full_mesh: bool,
    /// Further addresses are announced.
    pub announce: bool,
    /// Name in `net.ipv4.tcp_available_congestion_control`.
    pub congestion: Option<String>,
    /// Bytes in flight or waiting.
    pub send_buffer: Option<Bytes>,
    /// Bytes received and not read: at first, and at most.
    pub receive_buffer: Option<(Bytes, Bytes)>,
    /// The MSS to announce.
    pub mss: Option<i64>,
    /// Initial congestion window, in segments.
    pub initial_window: Option<i64>,
    /// Other kernel parameters and their values.
    pub parameters: BTreeMap<&'static str, String>,
}

impl Default for KernelSettings {
    /// A kernel as it is.
    fn default() -> Self {
        KernelSettings {
            max_subflows: None,
            full_mesh: false,
            announce: true,
            congestion: None,
            send_buffer: None,
            receive_buffer: None,
            mss: None,
            initial_window: None,
            parameters: BTreeMap::new(),
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
        for (key, value) in &self.parameters {
            set(key, value.clone());
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
