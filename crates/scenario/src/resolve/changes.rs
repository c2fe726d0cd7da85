//! Changes to links during the run.

use super::paths::{loss_model, service};
use super::{Reading, known, switches};
use crate::error::Problem;
use crate::file::{At, ChangeTable, DirectionName, File, StateName};
use crate::recorded::What;
use anabranch_net::{Change, Service};
use anabranch_paths::{Affected, TimedChange};
use anabranch_units::Duration;

pub(super) fn changes(
    file: &File,
    paths: &[String],
    stop: Duration,
    reading: &mut Reading<'_>,
) -> Result<Vec<TimedChange>, Problem> {
    let mut names = paths.to_vec();
    names.extend(file.link.keys().cloned());
    let mut all = Vec::new();
    for at in &file.change {
        let when = &at.value.at;
        if when.value.0 >= stop {
            let problem = format!("this change comes at {}, not before the end of the run at {stop}", when.value.0);
            return Err(Problem::at(&when.span, problem, "accepted: a time before `run.stop`"));
        }
        all.append(&mut one(at, &names, all.len(), reading)?);
    }
    Ok(all)
}

/// `index` is that of the first change.
fn one(
    at: &At<ChangeTable>,
    names: &[String],
    index: usize,
    reading: &mut Reading<'_>,
) -> Result<Vec<TimedChange>, Problem> {
    let table = &at.value;
    let Some(path) = &table.path else { return without_path(at) };
    known("path", path, names)?;
    let mut changes = Vec::new();
    if let Some(rate) = &table.rate {
        let (service, source) = service(rate, reading)?;
        if let Some(source) = source {
            reading.recordings.change(source, &path.value, index);
        }
        changes.push(match service {
            Service::Rate(rate) => Change::Rate(rate),
            Service::Trace(trace) => Change::Trace(trace),
        });
    }
    changes.extend(table.delay.as_ref().map(|delay| Change::Delay(delay.value.0)));
    changes.extend(table.jitter.as_ref().map(|jitter| Change::Jitter(jitter.value.0)));
    if table.loss.is_some() {
        changes.push(Change::Loss(loss_model(&table.loss)?));
    }
    changes.extend(table.state.map(|state| match state {
        StateName::Down => Change::Down,
        StateName::Up => Change::Up,
        StateName::Blackhole => Change::Blackhole,
        StateName::Restore => Change::Restore,
    }));
    let affected = match table.direction {
        None => Affected::Both,
        Some(DirectionName::Down) => Affected::Down,
        Some(DirectionName::Up) => Affected::Up,
    };
    let delay = table.delay.as_ref().map(|at| (&at.span, What::Delay, "delay"));
    let loss = table.loss.as_ref().map(|at| (&at.span, What::Loss, "loss"));
    for (span, value, what) in [delay, loss].into_iter().flatten() {
        if reading.recordings.drive(&path.value, value, affected) {
            let problem = format!(
                "the {what} of `{}` follows a recording or a model, whose next value would undo this change",
                path.value
            );
            return Err(Problem::at(span, problem, format!("accepted: a path that states its {what}")));
        }
    }
    if changes.is_empty() {
        return Err(Problem::at(&at.span, "this change sets no value of its path", LINK_KEYS));
    }
    let carrier = matches!(table.state, Some(StateName::Down | StateName::Up));
    if let Some(notify) = table.notify.as_ref().filter(|_| !carrier) {
        let help = "accepted: beside state = \"down\" or \"up\"";
        return Err(Problem::at(&notify.span, "`notify` needs a change of the carrier", help));
    }
    let timed = |change| TimedChange {
        at: table.at.value.0,
        path: path.value.clone(),
        affected,
        change,
        // `restore` ends what `down` began, also for the client's interface.
        notify: (carrier || table.state == Some(StateName::Restore)) && table.notify.as_ref().is_none_or(|at| at.value),
    };
    Ok(changes.into_iter().map(timed).collect())
}

const LINK_KEYS: &str = "accepted: rate, delay, jitter, loss, state = \"down\" | \"up\" | \"blackhole\" | \"restore\"";

/// Resolves a change without a path: it may change policies, but not links.
fn without_path(at: &At<ChangeTable>) -> Result<Vec<TimedChange>, Problem> {
    let ChangeTable { direction, rate, delay, jitter, loss, state, notify, .. } = &at.value;
    let rates = rate.is_some() || delay.is_some() || jitter.is_some() || loss.is_some();
    if rates || state.is_some() || direction.is_some() || notify.is_some() {
        return Err(Problem::at(&at.span, "`path` is missing", "accepted: path = NAME"));
    }
    if !switches::switches_anything(&at.value) {
        let help = format!(
            "{LINK_KEYS} with a path; scheduler, congestion, window, ack-path, reinjection, first-path without"
        );
        return Err(Problem::at(&at.span, "this change sets no value", help));
    }
    Ok(Vec::new())
}
