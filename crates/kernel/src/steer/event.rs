//! Events of steering, as `--json` prints them.

use super::{Action, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

/// An event. Times are seconds since the command began.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Addresses or endpoints of a path are other ones than before.
    Path {
        /// Time \[s\].
        time: f64,
        /// Name of the path.
        path: String,
        /// Its local addresses.
        addresses: Vec<IpAddr>,
        /// Numbers of the endpoints that the kernel's path manager has for them.
        endpoints: Vec<u8>,
    },
    /// Measurements of a path.
    Measure {
        /// Time \[s\].
        time: f64,
        /// Name of the path.
        path: String,
        /// Treatment.
        state: State,
        /// An established subflow has its address.
        up: bool,
        /// Smoothed round trip; `null` if no data were acknowledged in the last two seconds \[ms\].
        rtt_ms: Option<f64>,
        /// Share of bytes that were sent again in the last five seconds; `null` if too few were sent.
        loss: Option<f64>,
        /// Data acknowledged and received in the last second \[Mbit/s\].
        rate_mbit_s: f64,
        /// Data sent and received in the period of the quota \[bytes\].
        used: u64,
        /// Share of the quota that is used; `null` without a quota.
        quota_used: Option<f64>,
        /// Rules for the path, in the order of the file.
        rules: Vec<RuleNow>,
    },
    /// A path is treated differently from now on.
    Change {
        /// Time \[s\].
        time: f64,
        /// Name of the path.
        path: String,
        /// Treatment so far.
        from: State,
        /// Treatment from now on.
        to: State,
        /// Reason in words.
        reason: String,
        /// The kernel was told; false with `--dry-run`, or if the path has no endpoint.
        done: bool,
    },
    /// The end.
    End {
        /// Time \[s\].
        time: f64,
        /// Changes of paths.
        changes: u64,
        /// Endpoints put back.
        put_back: usize,
    },
}

/// A rule for a path, as things are now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RuleNow {
    /// Treatment that it asks for.
    pub then: Action,
    /// Its condition holds; `null` while the measurement is not known.
    pub holds: Option<bool>,
    /// Condition and measurement in words.
    pub condition: String,
}
