//! Traffic of others, and changes in the course of the run.

use super::loss::mean_loss;
use super::{Add, listed, percent};
use crate::Kind;
use anabranch_net::Change;
use anabranch_paths::TimedChange;
use anabranch_scenario::Scenario;
use anabranch_sim::{Spec, Workload};

/// Traffic of others: each flow, and all.
pub(super) fn traffic(spec: &Spec, add: &mut Add<'_>) {
    let of_others = spec.workloads.iter().enumerate().filter_map(|(number, workload)| match workload {
        Workload::Udp { path, rate, .. } => Some((number, path, format!("UDP of {rate}"))),
        Workload::Tcp { path, .. } => Some((number, path, "competing TCP".to_owned())),
        _ => None,
    });
    let flows: Vec<(usize, &String, String)> = of_others.collect();
    let set = |number: usize| format!("workload.{number}=false");
    for (number, path, flow) in &flows {
        let cause = format!("Cross traffic takes a part of {path}: {flow}");
        add(Kind::NoTraffic, format!("no {flow} on {path}"), cause, vec![set(*number)]);
    }
    if flows.len() > 1 {
        let mut paths: Vec<String> = flows.iter().map(|(_, path, _)| (*path).clone()).collect();
        paths.sort();
        paths.dedup();
        let cause = format!("Cross traffic of {} flows takes a part of {}", flows.len(), listed(&paths));
        let sets = flows.iter().map(|(number, ..)| set(*number)).collect();
        add(Kind::NoTraffic, "no cross traffic".to_owned(), cause, sets);
    }
}

/// Changes of paths, shared links and policies during the run: those of each, and all.
pub(super) fn changes(scenario: &Scenario, add: &mut Add<'_>) {
    let changed = scenario.changed();
    let all = &scenario.written().network.changes;
    let mut names: Vec<&String> = Vec::new();
    for name in changed.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let sets_of = |which: &dyn Fn(&Option<String>) -> bool| -> Vec<String> {
        let numbers = changed.iter().enumerate().filter(|(_, path)| which(path));
        numbers.map(|(number, _)| format!("change.{number}=false")).collect()
    };
    let mut causes = Vec::new();
    for name in &names {
        let Some(first) = all.iter().find(|it| it.path == **name) else { continue };
        let cause = format!("{name} {}", happens(first));
        add(
            Kind::NoChange,
            format!("no changes of {name} during the run"),
            cause.clone(),
            sets_of(&|path| path.as_ref() == Some(name)),
        );
        causes.push(cause);
    }
    for switched in &scenario.switched {
        let host =
            if switched.host == "both hosts" { "both hosts".to_owned() } else { format!("the {}", switched.host) };
        causes.push(format!("{} becomes {} at {host} after {} s", switched.seam, switched.policy, switched.at_s));
    }
    if let Some(cause) = causes.get(names.len()) {
        add(Kind::NoChange, "no changes of policies".to_owned(), cause.clone(), sets_of(&|path| path.is_none()));
    }
    if names.len() + usize::from(!scenario.switched.is_empty()) > 1 {
        let cause = causes.join("; ");
        add(Kind::NoChange, "no changes during the run".to_owned(), cause, vec!["change=[]".to_owned()]);
    }
}

/// A change of a path as a clause that follows its name.
fn happens(first: &TimedChange) -> String {
    let verb = match &first.change {
        Change::Rate(rate) => format!("changes its rate to {rate}"),
        Change::Trace(_) => "changes its rate".to_owned(),
        Change::Delay(delay) => format!("changes its delay to {delay}"),
        Change::Jitter(jitter) => format!("changes its jitter to {jitter}"),
        Change::Loss(model) => format!("changes its loss to {}", percent(mean_loss(model))),
        Change::Down => "goes down".to_owned(),
        Change::Blackhole => "becomes a black hole".to_owned(),
        Change::Up | Change::Restore => "comes back".to_owned(),
    };
    format!("{verb} {} after the beginning of the run", first.at)
}
