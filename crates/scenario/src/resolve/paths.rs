//! Paths and shared links.

use super::{Traces, known, middleboxes};
use crate::error::Problem;
use crate::file::{At, File, LinkTable, Loss, LossTable, Of, PathTable, Share, Speed, Unit};
use anabranch_net::{LinkConfig, LossModel, QueueLimit, Reordering, Service};
use anabranch_paths::{PathSpec, SharedLink};
use anabranch_units::Duration;
use anabranch_units::quantity::Queue;
use std::collections::BTreeMap;
use std::ops::Range;

/// Default queue: Linux's old defaults of 100 and 1000 packets lie either side of a few Mbit/s.
const QUEUE: QueueLimit = QueueLimit::Packets(100);
/// Maximum number of paths: the number of addresses of the form 10.0.i.1.
const MAX_PATHS: usize = 255;

/// Returns the paths in the order of the file.
pub(super) fn paths(file: &File, traces: &mut Traces<'_>) -> Result<Vec<PathSpec>, Problem> {
    let tables = in_order(&file.path);
    match tables.as_slice() {
        [] => return Err(Problem { span: None, problem: "there is no path".into(), help: Some(EXAMPLE.into()) }),
        [.., (_, at)] if tables.len() > MAX_PATHS => {
            return Err(Problem::at(&at.span, format!("there are {} paths", tables.len()), "accepted: up to 255"));
        }
        _ => {}
    }
    let links: Vec<String> = file.link.keys().cloned().collect();
    tables.into_iter().map(|(name, at)| path(name, at, &links, traces)).collect()
}

const EXAMPLE: &str = "accepted: tables such as [path.wlan] with rate = \"25mbit\" and delay = \"10ms\"";

/// Returns the shared links in the order of the file.
pub(super) fn shared(file: &File, traces: &mut Traces<'_>) -> Result<Vec<SharedLink>, Problem> {
    let link = |(name, at): (&String, &At<LinkTable>), traces: &mut Traces<'_>| {
        let LinkTable { rate, down, up, delay, loss, loss_up, queue, queue_counts_delay } = &at.value;
        if file.path.contains_key(name) {
            return Err(Problem::at(&at.span, format!("`{name}` is a path already"), "accepted: another name"));
        }
        if let Some(at) = queue.as_ref().filter(|at| matches!(at.value.0, Queue::Bdp(_))) {
            let help = "accepted: packets \"100p\" or bytes \"64KiB\"";
            return Err(Problem::at(&at.span, "the paths over a shared link have different round trips", help));
        }
        let delay = delay.as_ref().map_or(Duration::ZERO, |at| at.value.0);
        let (down, up) = speeds(&at.span, rate, down, up, traces)?;
        let both = |service, loss: &Option<At<Loss>>| {
            let mut config = LinkConfig::new(service, delay);
            config.queue = limit(queue, Duration::ZERO);
            config.queue_counts_delay = counts_delay(queue_counts_delay, config.queue)?;
            config.loss = loss_model(loss)?;
            Ok(config)
        };
        let up_loss = if loss_up.is_some() { loss_up } else { loss };
        Ok(SharedLink { name: name.clone(), down: both(down, loss)?, up: both(up, up_loss)? })
    };
    in_order(&file.link).into_iter().map(|entry| link(entry, traces)).collect()
}

fn path(name: &str, at: &At<PathTable>, links: &[String], traces: &mut Traces<'_>) -> Result<PathSpec, Problem> {
    let table = &at.value;
    if let Some(via) = &table.via {
        known("via", via, links)?;
    }
    let (down, up) = speeds(&at.span, &table.rate, &table.down, &table.up, traces)?;
    let delay = match (&table.delay, &table.rtt) {
        (Some(delay), None) => delay.value.0,
        (None, Some(rtt)) => rtt.value.0 / 2,
        (None, None) => {
            let help = "accepted: delay = \"10ms\" (one way) or rtt = \"20ms\"";
            return Err(Problem::at(&at.span, format!("path `{name}` has no delay"), help));
        }
        (Some(_), Some(rtt)) => {
            return Err(Problem::at(&rtt.span, "both `delay` and `rtt` are given", "accepted: one of them"));
        }
    };
    // The settings of a path hold for each direction; only rate and loss can differ between them.
    let link = |service, loss: &Option<At<Loss>>| {
        let mut config = LinkConfig::new(service, delay);
        config.jitter = table.jitter.as_ref().map_or(Duration::ZERO, |at| at.value.0);
        config.jitter_reorders = table.jitter_reorders.unwrap_or(false);
        config.queue = limit(&table.queue, delay * 2);
        config.queue_counts_delay = counts_delay(&table.queue_counts_delay, config.queue)?;
        config.loss = loss_model(loss)?;
        config.duplication = share(&table.duplicate);
        config.corruption = share(&table.corrupt);
        config.reordering = table
            .reorder
            .as_ref()
            .map(|reorder| Reordering { probability: reorder.probability.value.0.0, extra: reorder.delay.value.0 });
        Ok(config)
    };
    let up_loss = if table.loss_up.is_some() { &table.loss_up } else { &table.loss };
    let mut spec = PathSpec::new(name, link(down, &table.loss)?, link(up, up_loss)?);
    spec.nic = match &table.nic {
        Some(at) if at.value.0.is_zero() => {
            return Err(Problem::at(
                &at.span,
                "an interface of rate zero sends nothing",
                "accepted: a rate above zero",
            ));
        }
        nic => nic.as_ref().map(|at| at.value.0),
    };
    spec.via = table.via.as_ref().map(|at| at.value.clone());
    spec.backup = table.backup.unwrap_or(false);
    spec.middleboxes = table.middlebox.iter().map(middleboxes::middlebox).collect::<Result<_, _>>()?;
    Ok(spec)
}

/// Returns the services down and up, from `rate` or from `down` and `up`.
fn speeds(
    table: &Range<usize>,
    rate: &Option<Of<Speed>>,
    down: &Option<Of<Speed>>,
    up: &Option<Of<Speed>>,
    traces: &mut Traces<'_>,
) -> Result<(Service, Service), Problem> {
    const HELP: &str =
        "accepted: rate = \"25mbit\" for both directions, or down = … and up = …, each a rate or a trace";
    match (rate, down, up) {
        (Some(rate), None, None) => {
            let service = service(rate, traces)?;
            Ok((service.clone(), service))
        }
        (None, Some(down), Some(up)) => Ok((service(down, traces)?, service(up, traces)?)),
        (Some(_), Some(other), _) | (Some(_), None, Some(other)) => {
            Err(Problem::at(&other.span, "`rate`, which is for both directions, is given as well", HELP))
        }
        (None, None, None) => Err(Problem::at(table, "`rate` is missing", HELP)),
        (None, Some(only), None) => Err(Problem::at(&only.span, "`up` is missing beside `down`", HELP)),
        (None, None, Some(only)) => Err(Problem::at(&only.span, "`down` is missing beside `up`", HELP)),
    }
}

pub(super) fn service(at: &Of<Speed>, traces: &mut Traces<'_>) -> Result<Service, Problem> {
    match &at.value.0 {
        Speed::Rate(rate) if rate.is_zero() => {
            let help =
                "accepted: a rate above zero; a link that dies has a [[change]] with state = \"blackhole\" or \"down\"";
            Err(Problem::at(&at.span, "a link of rate zero sends nothing", help))
        }
        Speed::Rate(rate) => Ok(Service::Rate(*rate)),
        Speed::Trace(name) => traces(&At { span: at.span.clone(), value: name.clone() }).map(Service::Trace),
    }
}

fn limit(queue: &Option<Of<Queue>>, round_trip: Duration) -> QueueLimit {
    match queue.as_ref().map(|at| at.value.0) {
        None => QUEUE,
        Some(Queue::Packets(packets)) => QueueLimit::Packets(packets),
        Some(Queue::Bytes(bytes)) => QueueLimit::Bytes(bytes),
        Some(Queue::Bdp(factor)) => QueueLimit::Bdp { factor, round_trip },
    }
}

/// Resolves `queue-counts-delay`, which needs a queue in packets.
fn counts_delay(given: &Option<At<bool>>, queue: QueueLimit) -> Result<bool, Problem> {
    match given {
        Some(at) if at.value && !matches!(queue, QueueLimit::Packets(_)) => {
            let help = "accepted: a queue in packets, such as \"1000p\"";
            Err(Problem::at(&at.span, "`queue-counts-delay` counts packets, and the queue is not in packets", help))
        }
        given => Ok(given.as_ref().is_some_and(|at| at.value)),
    }
}

pub(super) fn loss_model(loss: &Option<At<Loss>>) -> Result<LossModel, Problem> {
    let Some(at) = loss else { return Ok(LossModel::None) };
    let loses_all = match &at.value {
        Loss::Bernoulli(p) => *p >= 1.0,
        Loss::Table(LossTable::GilbertElliott { loss_good, loss_bad, .. }) => {
            loss_good.0.0 >= 1.0 && loss_bad.0.0 >= 1.0
        }
        Loss::Table(LossTable::List { .. }) => false,
    };
    if loses_all {
        let help = "accepted: less than 100%; a path that dies has a [[change]] with state = \"blackhole\"";
        return Err(Problem::at(&at.span, "this loses every packet", help));
    }
    let model = match &at.value {
        Loss::Bernoulli(0.0) => LossModel::None,
        Loss::Bernoulli(p) => LossModel::Bernoulli { p: *p },
        Loss::Table(LossTable::GilbertElliott { p_good_bad, p_bad_good, loss_good, loss_bad }) => {
            LossModel::GilbertElliott {
                p_good_bad: p_good_bad.0.0,
                p_bad_good: p_bad_good.0.0,
                loss_good: loss_good.0.0,
                loss_bad: loss_bad.0.0,
            }
        }
        Loss::Table(LossTable::List { packets }) => LossModel::List(packets.clone()),
    };
    model.check().map_err(|error| Problem::at(&at.span, error.to_string(), "accepted: percentages from 0% to 100%"))?;
    Ok(model)
}

fn share(at: &Option<At<Unit<Share>>>) -> f64 {
    at.as_ref().map_or(0.0, |at| at.value.0.0)
}

fn in_order<T>(tables: &BTreeMap<String, At<T>>) -> Vec<(&String, &At<T>)> {
    let mut tables: Vec<_> = tables.iter().collect();
    tables.sort_by_key(|(_, at)| at.span.start);
    tables
}
