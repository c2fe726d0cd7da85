//! Steps that configure the two namespaces: kernel parameters and `ip` commands.

use super::layout::{Addresses, Layout, PathLayout};
use super::settings::KernelSettings;
use crate::Namespace;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    action: Action,
    /// The testbed is of use without it.
    optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// `ip` with these arguments.
    Ip(Vec<String>),
    /// A kernel parameter and its value.
    Sysctl(String, String),
}

/// Steps before the interfaces are made, which inherit the defaults.
pub(super) fn defaults() -> Vec<Step> {
    let mut steps = Vec::new();
    for scope in ["all", "default"] {
        let v4 = |key: &str| format!("net.ipv4.conf.{scope}.{key}");
        let v6 = |key: &str| format!("net.ipv6.conf.{scope}.{key}");
        // Packets come by the path that their sender chose, and redirects would undo that choice.
        steps.push(sysctl(&v4("rp_filter"), "0"));
        steps.push(sysctl(&v4("send_redirects"), "0"));
        steps.push(sysctl(&v4("accept_redirects"), "0"));
        steps.push(sysctl(&v6("accept_redirects"), "0").optional());
        // No packets but those of the programs: no probes for addresses, no router solicitations.
        steps.push(sysctl(&v6("accept_dad"), "0").optional());
        steps.push(sysctl(&v6("accept_ra"), "0").optional());
        steps.push(sysctl(&v6("router_solicitations"), "0").optional());
        steps.push(sysctl(&v6("forwarding"), "1").optional());
    }
    // 1: no link-local address, and none is announced.
    steps.push(sysctl("net.ipv6.conf.default.addr_gen_mode", "1").optional());
    steps.push(sysctl("net.ipv4.ip_forward", "1"));
    // Metrics that one transfer learnt must not change the next.
    steps.push(sysctl("net.ipv4.tcp_no_metrics_save", "1").optional());
    // A path that fails in a scenario must not cost the rest of the run its MPTCP.
    steps.push(sysctl("net.mptcp.blackhole_timeout", "0").optional());
    steps
}

/// The client, once its interfaces are there.
pub(super) fn client(layout: &Layout, settings: &KernelSettings) -> Vec<Step> {
    let mut steps = settings.sysctls();
    for path in &layout.paths {
        let (device, table) = (path.device.as_str(), path.table().to_string());
        let Addresses { v4, v6 } = path.client();
        let engine = path.engine_network();
        steps.extend(up(device, path.client()));
        steps.push(ip(&format!("rule add from {v4} lookup {table}")));
        steps.push(ip(&format!("rule add from {}/24 lookup {table}", engine.v4)));
        steps.push(ip(&format!("-6 rule add from {v6} lookup {table}")));
        steps.push(ip(&format!("-6 rule add from {}/64 lookup {table}", engine.v6)));
        let attributes = settings.route_attributes();
        steps.push(ip(&format!("route add default dev {device} table {table}{attributes}")));
        steps.push(ip(&format!("-6 route add default dev {device} table {table}{attributes}")));
    }
    let primary = layout.primary();
    let Addresses { v4, v6 } = primary.client();
    let (device, attributes) = (&primary.device, settings.route_attributes());
    steps.push(ip(&format!("route add default dev {device} src {v4}{attributes}")));
    steps.push(ip(&format!("-6 route add default dev {device} src {v6}{attributes}")));
    steps.extend(limits(settings));
    // A kernel has few places for endpoints: with many paths, every one is there in one family at least.
    let flags = |path: &PathLayout| {
        let mut flags = "subflow".to_owned();
        flags += if path.backup { " backup" } else { "" };
        flags += if settings.full_mesh { " fullmesh" } else { "" };
        flags
    };
    let mut id = 0;
    for family in 0..2 {
        for (n, path) in layout.paths.iter().enumerate() {
            // The first subflow begins at the primary address by itself; only its priority needs saying.
            if n != layout.primary || path.backup {
                id += 1;
                let address = path.client().both()[family];
                let endpoint = format!("mptcp endpoint add {address} dev {} id {id} {}", path.device, flags(path));
                steps.push(ip(&endpoint).optional());
            }
        }
    }
    steps
}

/// The server, once its interfaces are there.
pub(super) fn server(layout: &Layout, settings: &KernelSettings) -> Vec<Step> {
    let mut steps = settings.sysctls();
    for Addresses { v4, v6 } in layout.server() {
        steps.push(ip(&format!("address add {v4}/32 dev lo")));
        steps.push(ip(&format!("address add {v6}/128 dev lo nodad")));
    }
    for path in &layout.paths {
        let (device, attributes) = (path.device.as_str(), settings.route_attributes());
        steps.extend(up(device, path.server_side()));
        for network in [path.network(), path.engine_network()] {
            steps.push(ip(&format!("route replace {}/24 dev {device}{attributes}", network.v4)));
            steps.push(ip(&format!("-6 route replace {}/64 dev {device} metric 256{attributes}", network.v6)));
        }
    }
    steps.extend(limits(settings));
    if settings.announce {
        let further = layout.server().skip(1);
        let (v4, v6): (Vec<_>, Vec<_>) = further.map(|it| (it.v4.to_string(), it.v6.to_string())).unzip();
        for (n, address) in v4.iter().chain(&v6).enumerate() {
            steps.push(ip(&format!("mptcp endpoint add {address} id {} signal", n + 1)).optional());
        }
    }
    steps
}

fn up(device: &str, Addresses { v4, v6 }: Addresses) -> [Step; 3] {
    [
        ip(&format!("address add {v4}/24 dev {device}")),
        ip(&format!("-6 address add {v6}/64 dev {device} nodad")),
        ip(&format!("link set dev {device} txqueuelen 10000 up")),
    ]
}

fn limits(settings: &KernelSettings) -> [Step; 1] {
    // The kernel counts the subflows after the first one, and takes eight at most.
    let subflows = settings.max_subflows.map_or(8, |all| all.saturating_sub(1).min(8));
    [ip(&format!("mptcp limits set subflows {subflows} add_addr_accepted {subflows}")).optional()]
}

impl Step {
    pub(super) fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Runs the step in `namespace`. Returns `Ok(Some(…))` with the error if the testbed is usable without the step.
    pub(super) fn run(&self, namespace: &Namespace) -> Result<Option<String>, String> {
        let result = match &self.action {
            Action::Ip(arguments) => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                namespace.command("ip", &arguments).map(drop).map_err(|error| error.to_string())
            }
            Action::Sysctl(key, value) => namespace.sysctl(key, value).map_err(|error| error.to_string()),
        };
        match result {
            Ok(()) => Ok(None),
            Err(problem) if self.optional => Ok(Some(format!("{}: {problem}", namespace.name()))),
            Err(problem) => Err(format!("{}: {problem}", namespace.name())),
        }
    }

    /// Returns true if it concerns MPTCP.
    pub(super) fn is_multipath(&self) -> bool {
        match &self.action {
            Action::Ip(arguments) => arguments.first().is_some_and(|first| first == "mptcp"),
            Action::Sysctl(key, _) => key.starts_with("net.mptcp."),
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.action {
            Action::Ip(arguments) => write!(f, "ip {}", arguments.join(" ")),
            Action::Sysctl(key, value) => write!(f, "sysctl {key}={value}"),
        }
    }
}

fn ip(line: &str) -> Step {
    Step { action: Action::Ip(line.split_whitespace().map(str::to_owned).collect()), optional: false }
}

pub(super) fn sysctl(key: &str, value: &str) -> Step {
    Step { action: Action::Sysctl(key.to_owned(), value.to_owned()), optional: false }
}
