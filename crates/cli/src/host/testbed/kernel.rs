//! Kernel settings of a scenario's hosts.

use anabranch_engine::settings::Value;
use anabranch_host::testbed::KernelSettings;
use anabranch_policy::congestion::kernel_name;
use anabranch_scenario::file::{HostTable, Policy, ReceiveBuffer};
use anabranch_scenario::{Given, HostSettings, Scenario};
use std::fs;

/// For both kernels.
pub struct Settings {
    /// Settings of the client.
    pub client: KernelSettings,
    /// Settings of the server.
    pub server: KernelSettings,
    /// Keys of the scenario that no kernel supports, as they stand in the scenario.
    pub not_applied: Vec<String>,
}

/// Derives the settings of client and server from the scenario.
pub fn settings(scenario: &Scenario) -> Settings {
    let mut not_applied = Vec::new();
    let congestion = Congestion::of_this_kernel();
    let mut host = |client: bool| {
        let mut settings = KernelSettings::default();
        for host in scenario.host_tables(client) {
            let mut refused = Vec::new();
            apply(host, &mut settings, &congestion, &mut refused);
            for key in refused {
                if !not_applied.contains(&key) {
                    not_applied.push(key);
                }
            }
        }
        settings
    };
    let (client, server) = (host(true), host(false));
    for switched in &scenario.switched {
        not_applied.push(format!("{} = {} from {} s on", switched.seam, switched.policy.name, switched.at_s));
    }
    Settings { client, server, not_applied }
}

/// The kernel's congestion controls.
struct Congestion {
    /// Default of a new namespace.
    current: String,
    /// Controls that a namespace may use without privileges.
    allowed: Vec<String>,
    /// Controls that are loaded.
    available: Vec<String>,
}

impl Congestion {
    fn of_this_kernel() -> Self {
        let words = |key: &str| -> Vec<String> {
            let text =
                fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{key}congestion_control")).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        Congestion {
            current: words("").into_iter().next().unwrap_or_default(),
            allowed: words("allowed_"),
            available: words("available_"),
        }
    }
}

/// The scheduler that is modelled on the kernel's own, which has no other.
const KERNEL_SCHEDULER: &str = "linux-burst";
/// The profile that is modelled on kernels of today.
const KERNEL_PROFILE: &str = "linux";

fn apply(host: &HostSettings, settings: &mut KernelSettings, kernel: &Congestion, refused: &mut Vec<String>) {
    // Each key by name, so that a new one is not forgotten.
    let HostTable {
        profile,
        scheduler,
        congestion,
        window,
        ack_path,
        reinjection,
        first_path,
        receive_buffer,
        addresses: _, // The layout has them.
        others: _,    // Read already: `host.given`.
    } = &host.table;
    let mut refuse = |key: &str, value: String| refused.push(format!("{key} = {value}"));
    let policy = |policy: &Policy| policy.name.clone();

    if let Some(at) = profile.as_ref().filter(|at| at.value != KERNEL_PROFILE) {
        refuse("profile", at.value.clone());
    }
    if let Some(at) = scheduler.as_ref().filter(|at| at.value.name != KERNEL_SCHEDULER) {
        refuse("scheduler", policy(&at.value));
    }
    if let Some(at) = congestion {
        let Policy { name, parameters } = &at.value;
        let name = &kernel_name(name).to_owned();
        match parameters.is_empty() {
            true if kernel.current == *name => settings.congestion = None,
            true if kernel.allowed.contains(name) => settings.congestion = Some(name.clone()),
            true if kernel.available.contains(name) => {
                refuse(
                    "congestion",
                    format!("{name} (sudo sysctl -w net.ipv4.tcp_allowed_congestion_control=… allows it)"),
                );
            }
            _ => refuse("congestion", format!("{name} (the kernels have {})", kernel.current)),
        }
    }
    for (key, at) in
        [("window", window), ("ack-path", ack_path), ("reinjection", reinjection), ("first-path", first_path)]
    {
        at.iter().for_each(|at| refuse(key, policy(&at.value)));
    }
    if let Some(at) = receive_buffer {
        settings.receive_buffer = Some(match at.value {
            ReceiveBuffer::Fixed(size) => (size, size),
            ReceiveBuffer::Tuned { initial, max } => (initial, max),
        });
    }
    for Given { setting, value } in &host.given {
        match setting.kernel_parameter(*value) {
            Some((key, text)) => {
                settings.parameters.insert(key, text);
            }
            None if set(setting.name, *value, settings) => {}
            None => refuse(setting.name, value.to_string()),
        }
    }
}

/// Sets what is no kernel parameter; returns false if a kernel does not have it.
fn set(name: &str, value: Value, settings: &mut KernelSettings) -> bool {
    match (name, value) {
        ("send-buffer", Value::Size(size)) => settings.send_buffer = Some(size),
        ("max-subflows", Value::Number(number)) => settings.max_subflows = usize::try_from(number).ok(),
        ("full-mesh", Value::Flag(on)) => settings.full_mesh = on,
        ("announce", Value::Flag(on)) => settings.announce = on,
        ("mss", Value::Number(bytes)) => settings.mss = Some(bytes),
        ("ports", Value::Off) => {}
        ("ports", Value::Ports(first, last)) => {
            settings.parameters.insert("net.ipv4.ip_local_port_range", format!("{first} {last}"));
        }
        ("initial-window", Value::Number(segments)) => settings.initial_window = Some(segments),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_engine::settings::{Domain, Kernel, SETTINGS, Setting};
    use anabranch_scenario::file::At;

    fn applied(given: Vec<Given>) -> (KernelSettings, Vec<String>) {
        let kernel = Congestion { current: "cubic".into(), allowed: Vec::new(), available: Vec::new() };
        let (mut settings, mut refused) = (KernelSettings::default(), Vec::new());
        apply(&HostSettings { table: HostTable::default(), given }, &mut settings, &kernel, &mut refused);
        (settings, refused)
    }

    /// A control that the kernel cannot have is named with the one that it has.
    #[test]
    fn a_congestion_control_that_is_not_there_is_named_with_the_one_in_use() {
        let kernel = Congestion { current: "bbr".into(), allowed: vec!["reno".into()], available: vec!["reno".into()] };
        let set = |name: &str| {
            let congestion = Some(At { span: 0..0, value: Policy::named(name) });
            let table = HostTable { congestion, ..HostTable::default() };
            let (mut settings, mut refused) = (KernelSettings::default(), Vec::new());
            apply(&HostSettings { table, given: Vec::new() }, &mut settings, &kernel, &mut refused);
            (settings.congestion, refused)
        };
        assert_eq!(set("lia"), (None, vec!["congestion = lia (the kernels have bbr)".to_owned()]));
        assert_eq!(set("reno"), (Some("reno".to_owned()), Vec::new()));
    }

    #[test]
    fn a_new_setting_is_found() {
        let setting = Setting::new("dummy", "Does nothing.", Domain::Flag(|config| &mut config.checksum));
        let value = Value::Flag(true);
        let (settings, refused) = applied(vec![Given { setting, value }]);
        assert_eq!((settings, refused), (KernelSettings::default(), vec!["dummy = true".to_owned()]));
        let setting = setting.in_kernel(Kernel::Switch("net.dummy", 7));
        let (settings, refused) = applied(vec![Given { setting, value }]);
        assert_eq!((settings.parameters.into_iter().collect(), refused), (vec![("net.dummy", "7".to_owned())], vec![]));
    }

    /// A setting with a counterpart is set, one without is refused.
    #[test]
    fn the_kernel_has_what_the_table_says() {
        let config = anabranch_engine::Config::new(anabranch_engine::Profile::tcp(), Vec::new());
        for setting in SETTINGS.iter().filter(|setting| !setting.not_in_scenarios) {
            let value = setting.value(&config);
            let (_, refused) = applied(vec![Given { setting: *setting, value }]);
            assert_eq!(refused.is_empty(), setting.kernel.is_some(), "{}: {refused:?}", setting.name);
        }
    }
}
