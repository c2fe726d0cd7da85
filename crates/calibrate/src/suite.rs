//! The default suite: five networks, files from 50 kB to 20 MB, bursts on warm connections, and pages.

use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, ReadTrace, Scenario, ScenarioError, shipped};
use anabranch_units::input;
use std::path::Path;
use std::sync::Arc;

/// One comparison: a network and its workload.
pub struct Case {
    /// `symmetric 2 MB`.
    pub name: String,
    /// Scenario with one workload: a file, bursts, a page, or bulk, which may have competing TCP beside it.
    pub scenario: Scenario,
    /// A claim of a paper that the kernel can witness in this case.
    pub claim: Option<&'static str>,
}

struct Network {
    name: &'static str,
    text: &'static str,
    sizes: &'static [&'static str],
    /// Sizes of bursts: 15 and 30 segments.
    bursts: &'static [&'static str],
    /// Generated pages: their number of objects, and all of these together.
    pages: &'static [(u32, &'static str)],
}

const NETWORKS: &[Network] = &[
    Network {
        name: "single",
        text: include_str!("../scenarios/single.toml"),
        sizes: &["50kB", "500kB", "5MB", "20MB"],
        bursts: &[],
        pages: &[],
    },
    Network {
        name: "symmetric",
        text: include_str!("../scenarios/symmetric.toml"),
        sizes: &["50kB", "500kB", "5MB", "20MB"],
        bursts: &["21kB", "42kB"],
        pages: &[(30, "1MB")],
    },
    Network {
        name: "asymmetric",
        text: include_str!("../scenarios/asymmetric.toml"),
        sizes: &["50kB", "500kB", "5MB", "20MB"],
        bursts: &["21kB", "42kB"],
        pages: &[(30, "1MB")],
    },
    Network {
        name: "lossy",
        text: include_str!("../scenarios/lossy.toml"),
        sizes: &["50kB", "500kB", "5MB", "20MB"],
        bursts: &[],
        pages: &[],
    },
    Network {
        name: "small-buffer",
        text: include_str!("../scenarios/small-buffer.toml"),
        sizes: &["50kB", "500kB", "2MB"],
        bursts: &[],
        pages: &[],
    },
];

/// The cases, or those of one size per network that take seconds together.
pub fn suite(catalogue: &Arc<Catalogue>, quick: bool) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    for network in NETWORKS {
        let files =
            network.sizes.iter().filter(|size| !quick || **size == "500kB").map(|size| {
                (format!("{} {size}", network.name), format!("workload=[{{kind=\"files\",size=\"{size}\"}}]"))
            });
        let bursts = network.bursts.iter().filter(|_| !quick).map(|size| {
            let more = "count=10,interval=\"1s\",warm-up=\"100kB\"";
            (
                format!("{} bursts of {size}", network.name),
                format!("workload=[{{kind=\"bursts\",size=\"{size}\",{more}}}]"),
            )
        });
        let pages = network.pages.iter().filter(|_| !quick).map(|(objects, total)| {
            let page = format!("{{objects={objects},total=\"{total}\",wave=6,computation=\"20ms\"}}");
            (
                format!("{} page of {objects}", network.name),
                format!("workload=[{{kind=\"web\",page={page},protocol=\"http1\"}}]"),
            )
        });
        for (name, workload) in files.chain(bursts).chain(pages) {
            let scenario = scenario(catalogue, network.name, network.text, &[&workload, "run.stop=\"120s\""])?;
            cases.push(Case { name, scenario, claim: None });
        }
    }
    Ok(cases)
}

/// A network and what is sent over it with each congestion control that a kernel has loaded.
struct Trial {
    /// `symmetric 5MB`.
    name: &'static str,
    /// One of [`NETWORKS`], or a shipped scenario.
    network: &'static str,
    /// Workload, and changes of the network.
    settings: &'static [&'static str],
}

const FILE: &[&str] = &["workload=[{kind=\"files\",size=\"5MB\"}]"];

/// Goodput on paths that are filled, that lose, and that change; share beside one TCP connection; and how soon a
/// connection has what a path or a competing connection leaves it.
const TRIALS: &[Trial] = &[
    Trial { name: "symmetric 5MB", network: "symmetric", settings: FILE },
    Trial { name: "lossy 5MB", network: "lossy", settings: FILE },
    Trial { name: "wlan-lte 5MB", network: "wlan-lte", settings: FILE },
    Trial {
        name: "symmetric steps",
        network: "symmetric",
        settings: &[
            "workload=[{kind=\"bulk\",duration=\"16s\"}]",
            "change=[{at=\"5s\",path=\"b\",rate=\"5mbit\"},{at=\"10s\",path=\"b\",rate=\"20mbit\"}]",
        ],
    },
    Trial {
        name: "shared-bottleneck",
        network: "shared-bottleneck",
        settings: &[
            "workload=[{kind=\"bulk\",duration=\"28s\"},{kind=\"tcp\",path=\"a\",duration=\"16s\"}]",
            "workload.1.congestion=\"reno\"",
        ],
    },
];

/// The kernel's scheduler under our congestion controls, which limit what a subflow may hold
/// (`crates/kernel/bpf/controller.bpf.c`).
const LIMITED: &str = "host.scheduler={name=\"linux-burst\",subflow_lowat=1448,sndbuf_expand=8}";

/// Transfers over several networks with each of these congestion controls, which the kernel must have as well. They
/// begin without HyStart, as the kernel's own but CUBIC.
pub fn controlled(catalogue: &Arc<Catalogue>, controls: &[&str]) -> Result<Vec<Case>, ScenarioError> {
    let pairs = controls.iter().flat_map(|control| TRIALS.iter().map(move |trial| (control, trial)));
    pairs
        .map(|(control, trial)| {
            let own = NETWORKS.iter().find(|network| network.name == trial.network).map(|network| network.text);
            let text = own.or_else(|| shipped::find(trial.network).map(|shipped| shipped.text));
            let text = text.expect("every trial names a network");
            let control_setting = format!("host.congestion=\"{control}\"");
            let mut settings = trial.settings.to_vec();
            settings.extend([
                &control_setting,
                LIMITED,
                "host.hystart=\"off\"",
                "run.stop=\"120s\"",
                "run.spread=\"0s\"",
            ]);
            let scenario = scenario(catalogue, trial.network, text, &settings)?;
            Ok(Case { name: format!("{} with {control}", trial.name), scenario, claim: None })
        })
        .collect()
}

/// A network whose hosts are Linux 6.18 as far as it does not say otherwise, with these settings.
pub(crate) fn scenario(
    catalogue: &Arc<Catalogue>,
    name: &str,
    text: &str,
    settings: &[&str],
) -> Result<Scenario, ScenarioError> {
    let read = |trace: &str, _: bool| match shipped::trace(trace) {
        Some(text) => Ok(text.to_owned()),
        None => input::text(Path::new(trace), input::RECORDED),
    };
    scenario_with(catalogue, name, text, settings, &read)
}

/// Reads a network whose hosts are Linux 6.18 as far as it does not say otherwise; `read` gives the texts of its
/// recordings.
pub(crate) fn scenario_with(
    catalogue: &Arc<Catalogue>,
    name: &str,
    text: &str,
    settings: &[&str],
    read: &ReadTrace<'_>,
) -> Result<Scenario, ScenarioError> {
    let has_profile = text.lines().any(|line| line.starts_with("profile ="));
    let profile = (!has_profile).then_some("host.profile=\"linux\"");
    let sets: Vec<String> = profile.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    let origin = Origin { scenario: name.to_owned(), sets };
    Scenario::read(catalogue, name, &format!("{name}.toml"), text, origin, read)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_control_has_its_cases() {
        let catalogue = Arc::new(Catalogue::default());
        let cases = controlled(&catalogue, &["lia", "mveno-r"]).unwrap();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let of = |control| {
            ["symmetric 5MB", "lossy 5MB", "wlan-lte 5MB", "symmetric steps", "shared-bottleneck"]
                .map(|trial| format!("{trial} with {control}"))
        };
        assert_eq!(names, [of("lia"), of("mveno-r")].concat());
        for case in &cases {
            let policies = case.scenario.policies();
            assert!(case.name.ends_with(&format!(" with {}", policies.congestion.name)), "{}", case.name);
            // The kernel's, as our congestion controls have it.
            let scheduler = "linux-burst (segment_memory=2304, sndbuf_expand=8, subflow_lowat=1448)";
            assert_eq!(policies.scheduler.to_string(), scheduler, "{}", case.name);
            assert!(case.scenario.late(7).is_zero(), "{}: a testbed has no time before its beginning", case.name);
        }
        assert_eq!(cases[4].scenario.competing(), ["reno"]);
        assert_eq!(cases[3].scenario.spec(1).network.changes.len(), 2);
    }

    #[test]
    fn every_case_can_be_read_and_has_one_workload() {
        let catalogue = Arc::new(Catalogue::default());
        let all = suite(&catalogue, false).unwrap();
        let workloads = |network: &Network| network.sizes.len() + network.bursts.len() + network.pages.len();
        assert_eq!(all.len(), NETWORKS.iter().map(workloads).sum::<usize>());
        assert_eq!(suite(&catalogue, true).unwrap().len(), NETWORKS.len());
        for case in &all {
            assert_eq!(case.scenario.spec(1).workloads.len(), 1, "{}", case.name);
            assert_eq!(case.scenario.policies().scheduler.name, "linux-burst", "{}", case.name);
        }
        let small = all.iter().find(|case| case.name == "small-buffer 2MB").unwrap();
        assert_eq!(small.scenario.spec(1).client.config.receive_buffer.get(), 65_536);
    }
}
