//! Suites and cases inside the program.

/// Suite inside the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shipped {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// Text of its file.
    pub(super) text: &'static str,
    /// Names and texts of its cases, in the order of the document.
    pub(super) cases: &'static [(&'static str, &'static str)],
}

macro_rules! suite {
    ($name:literal: $($case:literal),* $(,)?) => {
        Shipped {
            name: $name,
            text: include_str!(concat!("../../../../evaluations/", $name, ".toml")),
            cases: &[$((
                concat!($name, "/", $case),
                include_str!(concat!("../../../../evaluations/", $name, "/", $case, ".toml")),
            )),*],
        }
    };
}

/// All suites.
pub(super) const SUITES: &[Shipped] = &[RFC9743, BBR];

const RFC9743: Shipped = suite!["rfc9743":
    "high-loss",
    "many-flows",
    "bufferbloat",
    "shallow-buffers",
    "own-kind",
    "short-flows",
    "black-hole",
    "starvation",
    "harm-drop-tail",
    "harm-unequal-rtt",
    "real-time",
    "short-rivals",
    "long-rival",
    "range",
    "wireless",
    "aqm",
    "harm-aqm",
    "circuit-breaker",
    "varying-delay",
    "iot",
    "high-delay",
    "misbehaving",
    "reordering",
    "onset",
    "outage",
    "reroute",
    "failover",
    "failover-harm",
    "shared-bottleneck",
    "data-centre",
];

const BBR: Shipped = suite!["bbr":
    "startup-plateau",
    "startup-loss-app-limited",
    "drain-inflight",
    "drain-time",
    "up-plateau",
    "up-loss-app-limited",
    "app-limited",
    "down-inflight",
    "down-time",
    "probe-rtt",
    "probe-rtt-idle",
    "startup-aggregation",
    "cruise-aggregation",
    "sub-packet",
    "increase",
    "decrease",
    "policer",
    "spurious-recovery",
    "spurious-rto",
    "probe-rtt-startup",
    "up-loss",
    "refill-app-limited",
];
