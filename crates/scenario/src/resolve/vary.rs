//! Paths with properties that are drawn for each run.

use crate::error::Problem;
use crate::file::{At, Bounds, File, PathTable, VaryTable};
use crate::recorded::{Recordings, What};
use crate::vary::Vary;
use anabranch_paths::Affected;
use anabranch_units::Duration;

pub(super) fn varies(
    file: &File,
    paths: &[String],
    stop: Duration,
    recordings: &Recordings,
) -> Result<Vec<Vary>, Problem> {
    let mut all = Vec::new();
    for name in paths {
        let Some(table) = file.path.get(name).map(|at| &at.value) else { continue };
        if let Some(at) = &table.vary {
            all.push(vary(name, table, at, stop, recordings)?);
        }
    }
    Ok(all)
}

fn vary(
    name: &str,
    path: &PathTable,
    at: &At<VaryTable>,
    stop: Duration,
    recordings: &Recordings,
) -> Result<Vary, Problem> {
    let VaryTable { every, rate, delay, rtt, loss } = &at.value;
    if rate.is_none() && delay.is_none() && rtt.is_none() && loss.is_none() {
        return Err(Problem::at(&at.span, "no value varies", "accepted: rate, delay or rtt, loss, each [least, most]"));
    }
    if let Some(every) = every {
        let least = stop / MAX_DRAWS;
        if every.value.0 < least.max(Duration::from_nanos(1)) {
            let help = format!("accepted: {least} or more, which is {MAX_DRAWS} times until `stop`");
            return Err(Problem::at(&every.span, format!("`every` is {}", every.value.0), help));
        }
        if rate.is_none() && delay.is_none() && rtt.is_none() {
            let help = "accepted: beside rate, delay or rtt; loss is drawn once per run";
            return Err(Problem::at(&every.span, "`every` has no effect: no value is drawn during the run", help));
        }
    }
    if let Some(rate) = rate.as_ref().filter(|rate| rate.value[0].0.is_zero()) {
        return Err(Problem::at(&rate.span, "a link of rate zero sends nothing", "accepted: rates above zero"));
    }
    let lossy = if path.loss_up.is_some() { Affected::Down } else { Affected::Both };
    for (varied, value, what, affected) in [
        (rate.as_ref().map(|at| &at.span), What::Rate, "rate", Affected::Both),
        (delay.as_ref().or(rtt.as_ref()).map(|at| &at.span), What::Delay, "delay", Affected::Both),
        (loss.as_ref().map(|at| &at.span), What::Loss, "loss", lossy),
    ] {
        if let Some(span) = varied.filter(|_| recordings.drive(name, value, affected)) {
            let problem = format!("the {what} of path `{name}` follows a recording or a model, which does not vary");
            return Err(Problem::at(
                span,
                problem,
                format!("accepted: a path that states its {what}, or no such value"),
            ));
        }
    }
    if let (Some(_), Some(rtt)) = (delay, rtt) {
        return Err(Problem::at(&rtt.span, "both `delay` and `rtt` are given", "accepted: one of them"));
    }
    let one_way = match rtt {
        Some(rtt) => Some(bounds(rtt)?.map(|rtt| rtt / 2)),
        None => delay.as_ref().map(bounds).transpose()?,
    };
    Ok(Vary {
        path: name.to_owned(),
        every: every.as_ref().map(|at| at.value.0),
        rate: rate.as_ref().map(bounds).transpose()?,
        delay: one_way,
        in_round_trips: rtt.is_some(),
        loss: loss.as_ref().map(bounds).transpose()?.map(|bounds| bounds.map(|share| share.0)),
        // As for `loss` and `loss-up` of the path itself.
        lossy,
    })
}

fn bounds<T: Copy + PartialOrd>(at: &Bounds<T>) -> Result<[T; 2], Problem> {
    match at.value.map(|unit| unit.0) {
        [least, most] if least <= most => Ok([least, most]),
        _ => Err(Problem::at(&at.span, "the first value is larger than the second", "accepted: [least, most]")),
    }
}

/// Maximum number of draws of a path; each is a change of the network in memory.
const MAX_DRAWS: u64 = 100_000;
