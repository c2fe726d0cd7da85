//! Kernel settings of a scenario's hosts.

use anabranch_host::testbed::KernelSettings;
use anabranch_lab::Scenario;
use anabranch_lab::file::{HostTable, OrOff, Policy, ReceiveBuffer};
use anabranch_policy::congestion::kernel_name;
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
        for table in scenario.host_tables(client) {
            let mut refused = Vec::new();
            apply(table, &mut settings, &congestion, &mut refused);
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

fn apply(table: &HostTable, settings: &mut KernelSettings, kernel: &Congestion, refused: &mut Vec<String>) {
    // Each key by name, so that a new one is not forgotten.
    let HostTable {
        profile,
        scheduler,
        congestion,
        window,
        ack_path,
        ack_rewrite,
        ack_caution,
        reinjection,
        first_path,
        send_buffer,
        receive_buffer,
        multipath,
        max_subflows,
        full_mesh,
        announce,
        dss_checksum,
        rejoin,
        addresses: _, // The layout has them.
        mss,
        initial_window,
        sack,
        timestamps,
        window_scaling,
        rack,
        tlp,
        early_retransmit,
        delayed_ack,
        quick_acks,
        nagle,
        rto,
        min_rto,
        initial_rto,
        max_rto,
        idle_restart,
        cwnd_limited_check,
        tsq,
        tsq_segments,
        receive_tuning,
        adv_win_scale,
        initial_ssthresh,
        temporal_sharing,
        hystart,
        prr,
        loss_response,
        single_repair,
        coupled_acks,
        syn_retries,
        max_consecutive_rtos,
    } = table;
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
            _ => refuse("congestion", name.clone()),
        }
    }
    for (key, at) in
        [("window", window), ("ack-path", ack_path), ("reinjection", reinjection), ("first-path", first_path)]
    {
        at.iter().for_each(|at| refuse(key, policy(&at.value)));
    }
    let flags = [
        ("ack-rewrite", ack_rewrite),
        ("ack-caution", ack_caution),
        ("early-retransmit", early_retransmit),
        ("nagle", nagle),
        ("cwnd-limited-check", cwnd_limited_check),
        ("temporal-sharing", temporal_sharing),
        ("prr", prr),
        ("single-repair", single_repair),
        ("coupled-acks", coupled_acks),
    ];
    for (key, flag) in flags {
        flag.iter().for_each(|flag| refuse(key, flag.to_string()));
    }
    for (key, span) in [("rejoin", rejoin), ("delayed-ack", delayed_ack), ("tsq", tsq)] {
        span.iter().for_each(|OrOff(span)| {
            refuse(key, span.map_or_else(|| "false".to_owned(), |span| span.to_string()));
        });
    }
    quick_acks.iter().for_each(|number| refuse("quick-acks", number.to_string()));
    let names = [
        ("rto", rto.map(|name| name.name())),
        ("receive-tuning", receive_tuning.map(|name| name.name())),
        ("hystart", hystart.map(|name| name.name())),
        ("loss-response", loss_response.map(|name| name.name())),
    ];
    for (key, name) in names {
        name.iter().for_each(|name| refuse(key, (*name).to_owned()));
    }
    let numbers = [
        ("tsq-segments", tsq_segments.as_ref().map(|at| i64::from(at.value))),
        ("adv-win-scale", adv_win_scale.as_ref().map(|at| i64::from(at.value))),
        ("initial-ssthresh", initial_ssthresh.as_ref().map(|at| i64::from(at.value))),
    ];
    for (key, number) in numbers {
        number.iter().for_each(|number| refuse(key, number.to_string()));
    }
    initial_rto.iter().for_each(|at| refuse("initial-rto", at.value.0.to_string()));

    put(&mut settings.multipath, *multipath);
    put(&mut settings.full_mesh, *full_mesh);
    put(&mut settings.announce, *announce);
    put(&mut settings.dss_checksum, *dss_checksum);
    keep(&mut settings.max_subflows, max_subflows.as_ref().map(|at| at.value));
    keep(&mut settings.send_buffer, send_buffer.as_ref().map(|at| at.value.0));
    keep(
        &mut settings.receive_buffer,
        receive_buffer.as_ref().map(|at| match at.value {
            ReceiveBuffer::Fixed(size) => (size, size),
            ReceiveBuffer::Tuned { initial, max } => (initial, max),
        }),
    );
    keep(&mut settings.mss, mss.as_ref().map(|at| at.value));
    keep(&mut settings.initial_window, *initial_window);
    keep(&mut settings.sack, *sack);
    keep(&mut settings.timestamps, *timestamps);
    keep(&mut settings.window_scaling, *window_scaling);
    keep(&mut settings.rack, *rack);
    keep(&mut settings.tlp, *tlp);
    keep(&mut settings.idle_restart, *idle_restart);
    keep(&mut settings.min_rto, min_rto.as_ref().map(|at| at.value.0));
    keep(&mut settings.max_rto, max_rto.as_ref().map(|at| at.value.0));
    keep(&mut settings.syn_retries, *syn_retries);
    keep(&mut settings.max_consecutive_rtos, *max_consecutive_rtos);
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn keep<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}
