//! Paths and shared links.

use super::{Reading, known, middleboxes, policies};
use crate::error::Problem;
use crate::file::{
    At, File, LinkTable, Loss, LossTable, Of, PathTable, Policy, Recordable, RecordingTable, Share, Speed, Unit,
};
use anabranch_net::{Discipline, LinkConfig, LossModel, QueueLimit, Reordering, Service};
use anabranch_paths::{Affected, PathSpec, SharedLink};
use anabranch_policy::Catalogue;
use anabranch_recording::{Recording, spread};
use anabranch_units::Duration;
use anabranch_units::quantity::Queue;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Default queue: Linux's old defaults of 100 and 1000 packets lie either side of a few Mbit/s.
const QUEUE: QueueLimit = QueueLimit::Packets(100);
/// Name of the discipline that needs no choices.
const DROP_TAIL: &str = "drop-tail";
/// Maximum number of paths: the number of addresses of the form 10.0.i.1.
const MAX_PATHS: usize = 255;

/// Returns the paths in the order of the file.
pub(super) fn paths(catalogue: &Catalogue, file: &File, reading: &mut Reading<'_>) -> Result<Vec<PathSpec>, Problem> {
    let tables = in_order(&file.path);
    match tables.as_slice() {
        [] => return Err(Problem { span: None, problem: "there is no path".into(), help: Some(EXAMPLE.into()) }),
        [.., (_, at)] if tables.len() > MAX_PATHS => {
            return Err(Problem::at(&at.span, format!("there are {} paths", tables.len()), "accepted: up to 255"));
        }
        _ => {}
    }
    let links: Vec<String> = file.link.keys().cloned().collect();
    tables.into_iter().map(|(name, at)| path(catalogue, name, at, &links, reading)).collect()
}

const EXAMPLE: &str = "accepted: tables such as [path.wlan] with rate = \"25mbit\" and delay = \"10ms\"";

/// Returns the shared links in the order of the file.
pub(super) fn shared(
    catalogue: &Catalogue,
    file: &File,
    reading: &mut Reading<'_>,
) -> Result<Vec<SharedLink>, Problem> {
    let link = |(name, at): (&String, &At<LinkTable>), reading: &mut Reading<'_>| {
        let LinkTable { rate, down, up, delay, loss, loss_up, queue, discipline, discipline_up, queue_counts_delay } =
            &at.value;
        if file.path.contains_key(name) {
            return Err(Problem::at(&at.span, format!("`{name}` is a path already"), "accepted: another name"));
        }
        if let Some(at) = queue.as_ref().filter(|at| matches!(at.value.0, Queue::Bdp(_))) {
            let help = "accepted: packets \"100p\", bytes \"64KiB\" or a time \"50ms\"";
            return Err(Problem::at(&at.span, "the paths over a shared link have different round trips", help));
        }
        let delay = delay.as_ref().map_or(Duration::ZERO, |at| at.value.0);
        let speeds = Speeds { rate, down, up, trace: &None };
        let (down, up) = speeds.services(&at.span, name, reading)?;
        let both = |service, loss: &Option<At<Loss>>, discipline: &Option<At<Policy>>| {
            let mut config = LinkConfig::new(service, delay);
            (config.queue, config.discipline) = waiting(catalogue, queue, discipline, Duration::ZERO)?;
            config.queue_counts_delay = counts_delay(queue_counts_delay, &config)?;
            config.loss = loss_model(loss)?;
            Ok(config)
        };
        losses(name, loss, loss_up, reading)?;
        let up_loss = if loss_up.is_some() { loss_up } else { loss };
        let up_discipline = if discipline_up.is_some() { discipline_up } else { discipline };
        let (down, up) = (both(down, loss, discipline)?, both(up, up_loss, up_discipline)?);
        Ok(SharedLink { name: name.clone(), down, up })
    };
    in_order(&file.link).into_iter().map(|entry| link(entry, reading)).collect()
}

fn path(
    catalogue: &Catalogue,
    name: &str,
    at: &At<PathTable>,
    links: &[String],
    reading: &mut Reading<'_>,
) -> Result<PathSpec, Problem> {
    let table = &at.value;
    if let Some(via) = &table.via {
        known("via", via, links)?;
    }
    let trace = match (&table.trace, &table.model) {
        (Some(_), Some(model)) => {
            return Err(Problem::at(&model.span, "both `trace` and `model` are given", "accepted: one of them"));
        }
        (Some(at), None) => Some((reading.source(&at.value.table(), &at.span)?, &at.span)),
        (None, Some(at)) => Some((reading.model(at, name)?, &at.span)),
        (None, None) => None,
    };
    if let Some(((_, recording), span)) = &trace {
        is_used(table, recording, span)?;
    }
    let trace = trace.map(|(trace, _)| trace);
    let speeds = Speeds { rate: &table.rate, down: &table.down, up: &table.up, trace: &trace };
    let (down, up) = speeds.services(&at.span, name, reading)?;
    let recorded = |source: usize, recording: &Recording, reading: &mut Reading<'_>| {
        reading.recordings.delay(source, name);
        recording
            .delay
            .as_ref()
            .map(|levels| Duration::from_secs_f64(spread(levels, Duration::as_secs_f64).percentiles[2]))
    };
    let delay = match (&table.delay, &table.rtt, &trace) {
        (Some(at), None, _) => match &at.value {
            Recordable::Stated(delay) => *delay,
            Recordable::Recorded(delay) => {
                let (source, recording) = reading.source(delay, &at.span)?;
                recorded(source, &recording, reading).ok_or_else(|| lacks(&at.span, delay, "delay"))?
            }
        },
        (None, Some(rtt), _) => rtt.value.0 / 2,
        (Some(_), Some(rtt), _) => {
            return Err(Problem::at(&rtt.span, "both `delay` and `rtt` are given", "accepted: one of them"));
        }
        (None, None, Some((source, recording))) if recording.delay.is_some() => {
            recorded(*source, recording, reading).unwrap_or(Duration::ZERO)
        }
        (None, None, _) => {
            let help = "accepted: delay = \"10ms\" (one way) or rtt = \"20ms\"";
            return Err(Problem::at(&at.span, format!("path `{name}` has no delay"), help));
        }
    };
    losses(name, &table.loss, &table.loss_up, reading)?;
    if let (Some((source, recording)), None) = (&trace, &table.loss)
        && recording.loss.is_some()
    {
        let affected = if table.loss_up.is_some() { Affected::Down } else { Affected::Both };
        reading.recordings.loss(*source, name, affected);
    }
    // The settings of a path hold for each direction; only rate, loss and discipline can differ between them.
    let link = |service, loss: &Option<At<Loss>>, discipline: &Option<At<Policy>>| {
        let mut config = LinkConfig::new(service, delay);
        config.jitter = table.jitter.as_ref().map_or(Duration::ZERO, |at| at.value.0);
        config.jitter_reorders = table.jitter_reorders.unwrap_or(false);
        (config.queue, config.discipline) = waiting(catalogue, &table.queue, discipline, delay * 2)?;
        config.queue_counts_delay = counts_delay(&table.queue_counts_delay, &config)?;
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
    let up_discipline = if table.discipline_up.is_some() { &table.discipline_up } else { &table.discipline };
    let (down, up) = (link(down, &table.loss, &table.discipline)?, link(up, up_loss, up_discipline)?);
    let mut spec = PathSpec::new(name, down, up);
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

/// Returns the error for a recording without a series.
fn lacks(span: &Range<usize>, table: &RecordingTable, what: &str) -> Problem {
    let help = format!("accepted: a recording of the {what}; `anabranch trace {}` shows what it holds", table.file);
    Problem::at(span, format!("the recording `{}` has no {what}", table.file), help)
}

/// Refuses a recording or model of which the path uses nothing.
fn is_used(path: &PathTable, recording: &Recording, span: &Range<usize>) -> Result<(), Problem> {
    let rate = path.rate.is_none() && (path.down.is_none() || path.up.is_none()) && recording.rate.is_some();
    let delay = path.delay.is_none() && path.rtt.is_none() && recording.delay.is_some();
    let loss = path.loss.is_none() && recording.loss.is_some();
    let held =
        [("rate", recording.rate.is_some()), ("delay", recording.delay.is_some()), ("loss", recording.loss.is_some())];
    let held: Vec<&str> = held.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
    if rate || delay || loss {
        return Ok(());
    }
    let (source, key) = if path.model.is_some() { ("model", "model") } else { ("recording", "trace") };
    let held = held.join(" and ");
    let problem = format!("nothing of the {source} is used: it has {held}, and the path has its own");
    Err(Problem::at(span, problem, format!("accepted: a {source} of what the path does not state, or no `{key}`")))
}

/// Follows recorded losses.
fn losses(
    name: &str,
    loss: &Option<At<Loss>>,
    loss_up: &Option<At<Loss>>,
    reading: &mut Reading<'_>,
) -> Result<(), Problem> {
    let down = if loss_up.is_some() { Affected::Down } else { Affected::Both };
    for (loss, affected) in [(loss, down), (loss_up, Affected::Up)] {
        if let Some(At { value: Loss::Table(LossTable::Recorded(table)), span }) = loss {
            let (source, recording) = reading.source(table, span)?;
            if recording.loss.is_none() {
                return Err(lacks(span, table, "loss"));
            }
            reading.recordings.loss(source, name, affected);
        }
    }
    Ok(())
}

/// Rates as a path or link states them.
struct Speeds<'a> {
    rate: &'a Option<At<Recordable<Speed>>>,
    down: &'a Option<At<Recordable<Speed>>>,
    up: &'a Option<At<Recordable<Speed>>>,
    /// Number and content of the path's recording.
    trace: &'a Option<(usize, Arc<Recording>)>,
}

impl Speeds<'_> {
    /// Returns the services down and up, from `rate` or from `down` and `up`, or else from the recording.
    fn services(
        &self,
        table: &Range<usize>,
        name: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(Service, Service), Problem> {
        const HELP: &str =
            "accepted: rate = \"25mbit\" for both directions, or down = … and up = …, each a rate or a recording";
        let one = |at: &At<Recordable<Speed>>, affected: Affected, reading: &mut Reading<'_>| {
            let (service, source) = service(at, reading)?;
            if let Some(source) = source {
                reading.recordings.rate(source, name, affected);
            }
            Ok(service)
        };
        let recorded = self.trace.as_ref().and_then(|(source, recording)| Some((*source, recording.trace()?)));
        match (self.rate, self.down, self.up, recorded) {
            (Some(rate), None, None, _) => {
                let service = one(rate, Affected::Both, reading)?;
                Ok((service.clone(), service))
            }
            (None, Some(down), Some(up), _) => {
                Ok((one(down, Affected::Down, reading)?, one(up, Affected::Up, reading)?))
            }
            (None, None, None, Some((source, trace))) => {
                reading.recordings.rate(source, name, Affected::Both);
                let service = Service::from(trace);
                Ok((service.clone(), service))
            }
            (None, None, Some(up), Some((source, trace))) => {
                reading.recordings.rate(source, name, Affected::Down);
                Ok((Service::from(trace), one(up, Affected::Up, reading)?))
            }
            (None, Some(down), None, Some((source, trace))) => {
                reading.recordings.rate(source, name, Affected::Up);
                Ok((one(down, Affected::Down, reading)?, Service::from(trace)))
            }
            (Some(_), Some(other), _, _) | (Some(_), None, Some(other), _) => {
                Err(Problem::at(&other.span, "`rate`, which is for both directions, is given as well", HELP))
            }
            (None, None, None, None) => Err(Problem::at(table, "`rate` is missing", HELP)),
            (None, Some(only), None, None) => Err(Problem::at(&only.span, "`up` is missing beside `down`", HELP)),
            (None, None, Some(only), None) => Err(Problem::at(&only.span, "`down` is missing beside `up`", HELP)),
        }
    }
}

/// Returns the service, and the number of its recording.
pub(super) fn service(
    at: &At<Recordable<Speed>>,
    reading: &mut Reading<'_>,
) -> Result<(Service, Option<usize>), Problem> {
    let table = match &at.value {
        Recordable::Stated(Speed::Rate(rate)) if rate.is_zero() => {
            let help =
                "accepted: a rate above zero; a link that dies has a [[change]] with state = \"blackhole\" or \"down\"";
            return Err(Problem::at(&at.span, "a link of rate zero sends nothing", help));
        }
        Recordable::Stated(Speed::Rate(rate)) => return Ok((Service::Rate(*rate), None)),
        Recordable::Stated(Speed::Trace(name)) => &RecordingTable::of_file(name),
        Recordable::Recorded(table) => table,
    };
    let (source, recording) = reading.source(table, &at.span)?;
    let trace = recording.trace().ok_or_else(|| match recording.rate {
        None => lacks(&at.span, table, "rate"),
        Some(_) => {
            let problem = format!("in the recording `{}` every rate is zero", table.file);
            Problem::at(&at.span, problem, "accepted: a recording in which something passes")
        }
    })?;
    Ok((Service::from(trace), Some(source)))
}

/// Resolves capacity and discipline of a queue.
fn waiting(
    catalogue: &Catalogue,
    queue: &Option<Of<Queue>>,
    discipline: &Option<At<Policy>>,
    round_trip: Duration,
) -> Result<(QueueLimit, Option<Discipline>), Problem> {
    let found = policies::given(&catalogue.queues, discipline.as_ref())?;
    let usual = found.as_ref().map_or(QUEUE, |(make, _)| QueueLimit::Packets(make().capabilities.limit));
    // What every link does by itself, and sooner.
    let found = found.filter(|(_, variant)| variant.name != DROP_TAIL);
    let discipline = found.map(|(make, variant)| Discipline::new(&variant.to_string(), move || make().policy));
    Ok((limit(queue, usual, round_trip), discipline))
}

fn limit(queue: &Option<Of<Queue>>, usual: QueueLimit, round_trip: Duration) -> QueueLimit {
    match queue.as_ref().map(|at| at.value.0) {
        None => usual,
        Some(Queue::Packets(packets)) => QueueLimit::Packets(packets),
        Some(Queue::Bytes(bytes)) => QueueLimit::Bytes(bytes),
        Some(Queue::Time(time)) => QueueLimit::Time(time),
        Some(Queue::Bdp(factor)) => QueueLimit::Bdp { factor, round_trip },
    }
}

/// Resolves `queue-counts-delay`, which needs a drop-tail queue in packets.
fn counts_delay(given: &Option<At<bool>>, config: &LinkConfig) -> Result<bool, Problem> {
    match given {
        Some(at) if at.value && config.discipline.is_some() => {
            let help = "accepted: `queue-counts-delay` without `discipline`";
            Err(Problem::at(&at.span, "only a drop-tail queue counts what is under delay", help))
        }
        Some(at) if at.value && !matches!(config.queue, QueueLimit::Packets(_)) => {
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
        Loss::Table(LossTable::List { .. } | LossTable::Recorded(_)) => false,
    };
    if loses_all {
        let help = "accepted: less than 100%; a path that dies has a [[change]] with state = \"blackhole\"";
        return Err(Problem::at(&at.span, "this loses every packet", help));
    }
    let model = match &at.value {
        // The losses that were recorded come as changes.
        Loss::Bernoulli(0.0) | Loss::Table(LossTable::Recorded(_)) => LossModel::None,
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
