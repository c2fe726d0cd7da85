//! `anabranch kernel`: congestion controls of ours in the stock Linux kernel, ACKs on the shortest path, decisions of
//! its MPTCP, and rules for its paths.

mod acks;
mod steer;
mod watch;

use crate::failure::Failure;
use crate::output;
use anabranch_kernel::{
    ALGORITHMS, Access, Algorithm, AlgorithmKind, Feature, Grouped, LoadError, Loaded, SchedulerState, SchedulerStatus,
    Status, features, give_to_group, load, load_for, schedulers, sees_pins, status, unload,
};
use anabranch_lab::format::{KERNEL_FEATURES, KERNEL_STATUS};
use anabranch_policy::Catalogue;
use anabranch_units::nearest;
use clap::{Args as ClapArgs, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::thread;

/// Arguments of `kernel`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch kernel list                          the features of this kernel, and what the missing ones need
  sudo anabranch kernel load lia --pin           registers `ab_lia`, until `kernel unload lia` or the next boot
  iperf3 -c server -C ab_lia                     a program that chooses it
  sudo anabranch kernel load lia --pin --default all new connections of this network namespace
  sudo anabranch kernel load --scheduler blest   on a kernel that takes schedulers from BPF
  sudo anabranch kernel acks --path 10.0.1.1,10.1.1.1 --path 10.0.2.1,10.1.1.1
                                                 sends ACKs over the fastest path; the other host runs the same
  sudo anabranch kernel watch                    how the scheduler shares data among subflows, second by second
  sudo anabranch kernel steer --policy paths.toml
                                                 spares dear, slow and lossy paths by rules of a file

The congestion controls are BPF programs, which the kernel verifies; see docs/kernel.md.")]
pub struct KernelArgs {
    /// Action to take.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions of `kernel`.
#[derive(Subcommand, Debug)]
pub enum Action {
    /// List what this kernel can do, and the congestion controls and schedulers for it.
    List(Form),
    /// Register a congestion control or a scheduler with the kernel, for as long as the command runs.
    Load(LoadArgs),
    /// Take the registration of a pinned congestion control or scheduler back.
    Unload(Named),
    /// Show congestion controls and schedulers of ours in the kernel.
    Status(Form),
    /// Send ACKs of MPTCP subflows over the fastest path, between two hosts that both run this.
    Acks(acks::AcksArgs),
    /// Show the decisions of the kernel's MPTCP as they happen: scheduler, DATA_ACKs, mappings.
    Watch(watch::WatchArgs),
    /// Close subflows or make them backups by rules of cost, quota, round trip and loss.
    Steer(steer::SteerArgs),
}

/// Form of a listing.
#[derive(ClapArgs, Debug)]
pub struct Form {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// A congestion control or a scheduler, by its name.
#[derive(ClapArgs, Debug)]
pub struct Named {
    /// Name of a congestion control (`anabranch kernel list`).
    #[arg(required_unless_present = "scheduler")]
    pub name: Option<String>,
    /// Name of an MPTCP scheduler instead. Waits for a kernel that takes schedulers from BPF; no released one does.
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    pub scheduler: Option<String>,
}

/// Arguments of `kernel load`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  sudo anabranch kernel load lia                           until the command ends
  sudo anabranch kernel load lia --pin                     until `kernel unload lia` or the next boot
  sudo anabranch kernel load lia --pin --default           and all new connections of this network namespace have it
  sudo anabranch kernel load lia --cgroup /sys/fs/cgroup/user.slice
  sudo anabranch kernel load --scheduler blest --pin --default
                                                           the same with a scheduler, on a kernel that takes them")]
pub struct LoadArgs {
    /// The policy to load.
    #[command(flatten)]
    pub policy: Named,
    /// End at once and leave it registered, until `kernel unload` or the next boot.
    #[arg(long)]
    pub pin: bool,
    /// Make it the default of this network namespace as well; every user may choose a congestion control then. `kernel
    /// unload` there puts the former default back.
    #[arg(long, requires = "pin")]
    pub default: bool,
    /// Give it to the connections that a control group begins and accepts, those of groups in it included: its
    /// directory (cgroup v2).
    #[arg(long, value_name = "DIR", conflicts_with_all = ["default", "scheduler"])]
    pub cgroup: Option<PathBuf>,
}

/// Contents of the JSON of `kernel list`.
#[derive(Serialize, JsonSchema)]
pub struct Abilities {
    features: Vec<Feature>,
    congestion_controls: &'static [Algorithm],
    schedulers: Vec<SchedulerStatus>,
}

/// Contents of the JSON of `kernel status`.
#[derive(Serialize, JsonSchema)]
pub struct InKernel {
    loaded: Vec<Status>,
}

/// Does what was asked for.
pub fn kernel(catalogue: &Catalogue, args: &KernelArgs) -> Result<(), Failure> {
    match &args.action {
        Action::List(form) => list(form),
        Action::Load(args) => register(args),
        Action::Unload(args) => {
            let algorithm = find(args)?;
            unload(algorithm).map_err(|error| with_remedy(&error, error.remedy()))?;
            output::print(&format!("unloaded {}\n", algorithm.kernel_name))
        }
        Action::Status(form) => show_status(form),
        Action::Acks(args) => acks::acks(catalogue, args),
        Action::Watch(args) => watch::watch(args),
        Action::Steer(args) => steer::steer(args),
    }
}

fn list(form: &Form) -> Result<(), Failure> {
    let (features, schedulers) = (features(), schedulers());
    let text = if form.json {
        output::json(&KERNEL_FEATURES, &Abilities { features, congestion_controls: ALGORITHMS, schedulers })?
    } else {
        let mut text = String::from("this kernel\n");
        for feature in &features {
            let sign = if feature.available { "yes" } else { "no" };
            text += &format!("  {:<17} {sign:<4} {}\n", feature.name, feature.note);
        }
        text += "\ncongestion controls\n";
        for algorithm in ALGORITHMS {
            text += &format!("  {:<17} {:<11} {}\n", algorithm.name, algorithm.kernel_name, algorithm.about);
        }
        text += "\nschedulers\n";
        for SchedulerStatus { name, kernel_name, about, state } in &schedulers {
            let state = match state {
                SchedulerState::Waiting => "waiting",
                SchedulerState::Loadable => "loadable",
                SchedulerState::Registered => "registered",
            };
            text += &format!("  {name:<17} {kernel_name:<15} {state:<11} {about}\n");
        }
        if schedulers.iter().any(|scheduler| scheduler.state == SchedulerState::Waiting) {
            text += "  waiting: for a kernel that has the feature mptcp-schedulers\n";
        }
        text
    };
    output::print(&text)
}

fn register(args: &LoadArgs) -> Result<(), Failure> {
    let algorithm = find(&args.policy)?;
    let name = algorithm.kernel_name;
    if args.default {
        let path = load_for(algorithm, Access::Everyone).and_then(Loaded::pin_as_default).map_err(failed)?;
        let text = format!("loaded {name}, default of this network namespace");
        return output::print(&format!("{text}, pinned as {}\n", path.display()));
    }
    let loaded = load(algorithm).map_err(failed)?;
    let given = args.cgroup.as_ref().map(|group| give_to_group(algorithm, group)).transpose().map_err(failed)?;
    let whose = args.cgroup.as_ref().map_or_else(String::new, |group| format!(" for {}", group.display()));
    let choice = match algorithm.kind {
        AlgorithmKind::CongestionControl => String::new(),
        AlgorithmKind::Scheduler => format!("; sysctl net.mptcp.scheduler={name} takes it"),
    };
    if args.pin {
        let path = loaded.pin().map_err(failed)?;
        if let Some(Err(error)) = given.map(Grouped::pin) {
            // Half of it would be taken for the whole.
            _ = unload(algorithm);
            return Err(failed(LoadError::NoPlace(error)));
        }
        return output::print(&format!("loaded {name}{whose}, pinned as {}{choice}\n", path.display()));
    }
    output::print(&format!("loaded {name}{whose} until this command ends{choice}\n"))?;
    hold()
}

/// Keeps what the process has registered: the kernel takes it back with the last file descriptor, whatever ends it.
fn hold() -> ! {
    loop {
        thread::park();
    }
}

fn show_status(form: &Form) -> Result<(), Failure> {
    let (all, sees_pins) = (status(), sees_pins());
    if form.json {
        return output::print(&output::json(&KERNEL_STATUS, &InKernel { loaded: all })?);
    }
    let width = |least, of: fn(&Status) -> &str| all.iter().map(|status| of(status).len()).fold(least, usize::max);
    let (names, kernel_names) = (width(8, |status| status.name), width(11, |status| status.kernel_name));
    let mut text = String::new();
    for status in &all {
        let kind = if status.kind == AlgorithmKind::Scheduler { "scheduler, " } else { "" };
        let state = match &status.pin {
            Some(path) if status.registered => format!("pinned as {}", path.display()),
            Some(path) => format!("pinned as {}, but not registered in this kernel", path.display()),
            None if !sees_pins => "held by a running command, or pinned".to_owned(),
            None => "held by a running command".to_owned(),
        };
        let default = if status.default { ", default of this network namespace" } else { "" };
        text += &format!("{:<names$} {:<kernel_names$} {kind}{state}{default}\n", status.name, status.kernel_name);
    }
    output::print(if all.is_empty() { "nothing is loaded\n" } else { &text })?;
    if !all.is_empty() && !sees_pins {
        output::remark("pins are not shown: only root may look into bpffs here");
    }
    Ok(())
}

/// The policy with a name; refuses one that is none of its kind.
fn find(named: &Named) -> Result<&'static Algorithm, Failure> {
    let (kind, name) = match (&named.scheduler, &named.name) {
        (Some(name), _) => (AlgorithmKind::Scheduler, name.as_str()),
        (None, name) => (AlgorithmKind::CongestionControl, name.as_deref().unwrap_or_default()),
    };
    kind.find(name).ok_or_else(|| unknown(kind, name))
}

fn unknown(kind: AlgorithmKind, name: &str) -> Failure {
    let names = kind.algorithms().iter().map(|algorithm| algorithm.name);
    let list: Vec<&str> = names.clone().collect();
    let accepted = format!("accepted: {}", list.join(", "));
    let other = AlgorithmKind::ALL.into_iter().find(|other| *other != kind && other.find(name).is_some());
    let help = match (other, nearest(name, names)) {
        (Some(AlgorithmKind::Scheduler), _) => format!("it is a scheduler: `--scheduler {name}`; {accepted}"),
        (Some(AlgorithmKind::CongestionControl), _) => {
            format!("it is a congestion control: leave `--scheduler` out; {accepted}")
        }
        (None, Some(near)) => format!("did you mean `{near}`? {accepted}"),
        (None, None) => accepted,
    };
    Failure::Refused(miette::miette!(help = help, "there is no {} `{name}` to load into the kernel", kind.word()))
}

fn failed(error: LoadError) -> Failure {
    with_remedy(&error, error.remedy())
}

fn with_remedy(error: &dyn std::error::Error, remedy: Option<&'static str>) -> Failure {
    match remedy {
        Some(remedy) => Failure::Failed(miette::miette!(help = remedy, "{error}")),
        None => Failure::Failed(miette::miette!("{error}")),
    }
}
