//! Policies that replace others during the run.

use super::policies::{self, given};
use crate::error::Problem;
use crate::file::{At, ChangeTable, File, HostName};
use crate::variant::{Switched, Variant};
use anabranch_engine::Switch;
use anabranch_policy::Catalogue;
use anabranch_sim::{Host, TimedSwitch};

/// Returns the switches for the run, and their description for the results.
pub(super) fn switches(
    catalogue: &Catalogue,
    file: &File,
    paths: &[String],
) -> Result<(Vec<TimedSwitch>, Vec<Switched>), Problem> {
    let mut all = (Vec::new(), Vec::new());
    for at in &file.change {
        one(catalogue, at, paths, &mut all)?;
    }
    Ok(all)
}

/// Returns true if the change is one of policies.
pub(super) fn switches_anything(table: &ChangeTable) -> bool {
    let ChangeTable { scheduler, congestion, window, ack_path, reinjection, first_path, .. } = table;
    [scheduler, congestion, window, ack_path, reinjection, first_path].into_iter().any(Option::is_some)
}

fn one(
    catalogue: &Catalogue,
    at: &At<ChangeTable>,
    paths: &[String],
    (switches, switched): &mut (Vec<TimedSwitch>, Vec<Switched>),
) -> Result<(), Problem> {
    let table = &at.value;
    if let Some(host) = table.host.as_ref().filter(|_| !switches_anything(table)) {
        let help = "accepted: beside scheduler, congestion, window, ack-path, reinjection or first-path";
        return Err(Problem::at(&host.span, "this change names a host but no policy", help));
    }
    let (host, named) = match table.host.as_ref().map(|at| at.value) {
        None => (None, "both hosts"),
        Some(HostName::Client) => (Some(Host::Client), "client"),
        Some(HostName::Server) => (Some(Host::Server), "server"),
    };
    let time = table.at.value.0;
    let mut add = |seam, found: Option<(Switch, Variant)>| {
        if let Some((switch, policy)) = found {
            switches.push(TimedSwitch { at: time, host, switch });
            switched.push(Switched { at_s: time.as_secs_f64(), host: named, seam, policy });
        }
    };
    let c = catalogue;
    add("scheduler", given(&c.schedulers, table.scheduler.as_ref())?.map(|(f, v)| (Switch::Scheduler(f), v)));
    add("congestion", given(&c.congestion, table.congestion.as_ref())?.map(|(f, v)| (Switch::Congestion(f), v)));
    add("window", given(&c.windows, table.window.as_ref())?.map(|(f, v)| (Switch::ReceiveWindow(f), v)));
    let ack_path = table.ack_path.as_ref().map(|at| policies::ack_path(&c.ack_paths, at, paths)).transpose()?;
    add("ack-path", ack_path.map(|(f, v)| (Switch::AckPath(f), v)));
    add("reinjection", given(&c.reinjections, table.reinjection.as_ref())?.map(|(f, v)| (Switch::Reinjection(f), v)));
    add("first-path", given(&c.first_paths, table.first_path.as_ref())?.map(|(f, v)| (Switch::FirstPath(f), v)));
    Ok(())
}
