//! Workloads. Each kind has its own keys; a key of another kind is an error.

use super::policies::build;
use super::{Texts, known, web};
use crate::error::Problem;
use crate::file::{At, DirectionName, File, Policy, SpacingName, WorkloadKind, WorkloadTable};
use anabranch_paths::Direction;
use anabranch_policy::Catalogue;
use anabranch_sim::{Arrivals, Extent, FileOrder, Spacing, Workload};
use anabranch_units::{Bytes, Duration};
use std::ops::Range;

/// Returns the direction of the data of the first workload under test.
pub(super) fn direction(workloads: &[Workload]) -> Direction {
    let direction = |workload: &Workload| match workload {
        Workload::Bulk { direction, .. } | Workload::Files { direction, .. } | Workload::Bursts { direction, .. } => {
            Some(*direction)
        }
        Workload::Exchange { .. } | Workload::Web { .. } | Workload::Interactive { .. } => Some(Direction::Down),
        Workload::Udp { .. } | Workload::Tcp { .. } => None,
    };
    workloads.iter().find_map(direction).unwrap_or_default()
}

pub(super) fn workloads(
    catalogue: &Catalogue,
    file: &File,
    paths: &[String],
    texts: &mut Texts<'_>,
) -> Result<Vec<Workload>, Problem> {
    let all = file.workload.iter().map(|at| workload(catalogue, at, paths, texts));
    let all: Vec<Workload> = all.collect::<Result<_, _>>()?;
    let under_test = |w: &Workload| !matches!(w, Workload::Udp { .. } | Workload::Tcp { .. });
    if !all.iter().any(under_test) {
        let help = "accepted: at least one [[workload]] with kind = \"bulk\", \"files\", \"bursts\", \"web\" or \
                    \"interactive\"";
        let span = file.workload.first().map(|at| at.span.clone());
        return Err(Problem { span, problem: "the hosts under test send nothing".into(), help: Some(help.into()) });
    }
    Ok(all)
}

pub(super) const fn way(name: DirectionName) -> Direction {
    match name {
        DirectionName::Down => Direction::Down,
        DirectionName::Up => Direction::Up,
    }
}

fn workload(
    catalogue: &Catalogue,
    at: &At<WorkloadTable>,
    paths: &[String],
    texts: &mut Texts<'_>,
) -> Result<Workload, Problem> {
    let table = &at.value;
    only_own_keys(table)?;
    let direction = table.direction.as_ref().map_or(Direction::Down, |at| way(at.value));
    let start = time(&table.start);
    Ok(match table.kind {
        WorkloadKind::Bulk => Workload::Bulk { direction, start, duration: duration(at)? },
        WorkloadKind::Files => Workload::Files { direction, sizes: sizes(at)?, order: order(at)?, start },
        WorkloadKind::Bursts => Workload::Bursts {
            direction,
            size: nonzero(at, "size", table.size.as_ref().map(|at| (at.value.0, &at.span)))?,
            count: count(table)?,
            interval: needed(at, "interval", table.interval.as_ref().map(|at| at.value.0), "\"500ms\"")?,
            start,
            warm_up: table.warm_up.as_ref().map_or(Bytes::ZERO, |at| at.value.0),
        },
        WorkloadKind::Web => web::web(at, start, texts)?,
        WorkloadKind::Interactive => web::interactive(at, start, texts)?,
        WorkloadKind::Udp => {
            let path = path(at, paths)?;
            let rate = needed(at, "rate", table.rate.as_ref(), "\"5mbit\"")?;
            if rate.value.0.is_zero() {
                return Err(Problem::at(&rate.span, "this sends nothing", "accepted: a rate above zero"));
            }
            let packet = match &table.packet {
                Some(at) if !(64..=65_535).contains(&at.value.0.get()) => {
                    let problem = format!("no IP packet has {}", at.value.0);
                    return Err(Problem::at(&at.span, problem, "accepted: 64B to 65535B"));
                }
                packet => packet.as_ref().map_or(Bytes::new(1500), |at| at.value.0),
            };
            // Without an end of its own, that of the run, which follows from all workloads.
            let end = table.stop.as_ref().map_or(Duration::MAX, |at| at.value.0);
            let (on, off) = (time(&table.on), time(&table.off));
            // One of the pair alone says nothing: a key that would be ignored is refused.
            if table.on.is_none() || table.off.is_none() {
                without_effect("on", &table.on, "`on` with `off`")?;
                without_effect("off", &table.off, "`off` with `on`")?;
                without_effect("phases", &table.phases, "`phases` with `on` and `off`")?;
            }
            if let Some(at) = table.on.as_ref().filter(|at| !at.value.0.is_zero() && at.value.0 < SHORTEST_ON) {
                return Err(Problem::at(
                    &at.span,
                    format!("`on` is {}", at.value.0),
                    "accepted: 0s (always on), or from 1us",
                ));
            }
            let (spacing, phases) = (spacing(&table.spacing), spacing(&table.phases));
            Workload::Udp { path, direction, rate: rate.value.0, packet, spacing, on, off, phases, start, stop: end }
        }
        WorkloadKind::Tcp => {
            let path = path(at, paths)?;
            let repeat = table.repeat.as_ref().is_some_and(|at| at.value);
            let extent = match (&table.size, &table.duration) {
                (Some(size), None) if repeat => Extent::Repeat(size.value.0),
                (Some(size), None) => Extent::File(size.value.0),
                (None, Some(duration)) if !repeat => Extent::For(duration.value.0),
                _ => {
                    let help = "accepted: `duration`, or `size`, or `size` with `repeat = true`";
                    return Err(Problem::at(&at.span, "the amount to send is missing, or given twice", help));
                }
            };
            let span = table.congestion.as_ref().map_or(&at.span, |at| &at.span);
            let (congestion, _) = build(&catalogue.congestion, &congestion(table), span)?;
            Workload::Tcp { path, direction, start, extent, congestion }
        }
    })
}

/// Returns the time that a workload under test takes at least, by its own words: its last beginning, or its end if it
/// has one. Traffic beside the hosts under test ends with the run.
pub(super) fn stated_end(workload: &Workload) -> Option<Duration> {
    let after = |start: Duration, count: usize, interval: Duration| {
        let gaps = u64::try_from(count.saturating_sub(1)).unwrap_or(u64::MAX);
        start + Duration::from_nanos(interval.as_nanos().saturating_mul(gaps))
    };
    Some(match workload {
        Workload::Bulk { start, duration, .. } => *start + *duration,
        Workload::Files { start, sizes, order, .. } => match order {
            FileOrder::InTurn(pause) | FileOrder::OneConnection { pause, .. } => after(*start, sizes.len(), *pause),
            FileOrder::AtOnce(arrivals) | FileOrder::Established { arrivals, .. } => match arrivals.spacing {
                Spacing::Even => after(*start, sizes.len(), arrivals.interval),
                // The gaps are drawn: their sum may be less.
                Spacing::Uniform | Spacing::Exponential => *start,
            },
        },
        // The first comes an interval after `start`.
        Workload::Bursts { start, count, interval, .. } => after(*start + *interval, *count, *interval),
        Workload::Interactive { start, page } => {
            page.activities.iter().map(|activity| *start + activity.begin).max()?
        }
        Workload::Exchange { start, .. } | Workload::Web { start, .. } => *start,
        Workload::Udp { .. } | Workload::Tcp { .. } => return None,
    })
}

/// Returns the congestion control of competing TCP.
fn congestion(table: &WorkloadTable) -> Policy {
    table.congestion.as_ref().map_or_else(|| Policy::named("cubic"), |at| at.value.clone())
}

/// Returns the names of the congestion controls of competing TCP, in the order of the workloads.
pub(super) fn competing(file: &File) -> Vec<String> {
    let tcp = file.workload.iter().filter(|at| matches!(at.value.kind, WorkloadKind::Tcp));
    tcp.map(|at| congestion(&at.value).name).collect()
}

/// Returns the order of the files, and the connections that they use.
fn order(at: &At<WorkloadTable>) -> Result<FileOrder, Problem> {
    let table = &at.value;
    let on = |at: &Option<At<bool>>| at.as_ref().is_some_and(|at| at.value);
    let pause = time(&table.think);
    let arrivals = Arrivals { interval: time(&table.interval), spacing: spacing(&table.spacing) };
    let given = table.warm_up.as_ref().map(|at| (at.value.0, &at.span));
    let order = match (on(&table.concurrent), on(&table.warm)) {
        (true, true) => FileOrder::Established { warm_up: nonzero(at, "warm-up", given)?, pause, arrivals },
        (true, false) => FileOrder::AtOnce(arrivals),
        (false, true) => FileOrder::OneConnection { warm_up: given.map_or(Bytes::ZERO, |(bytes, _)| bytes), pause },
        (false, false) => FileOrder::InTurn(pause),
    };
    // With an explicit `warm = false`, keys that it switches off are allowed, so that one `--set` is enough.
    if table.warm.is_none() {
        without_effect("warm-up", &table.warm_up, "`warm-up` with `warm = true`")?;
    }
    match order {
        FileOrder::Established { .. } => {}
        FileOrder::AtOnce(_) if table.warm.is_some() => {}
        FileOrder::AtOnce(_) => {
            without_effect("think", &table.think, "`think` with files in turn, or on warm connections")?;
        }
        FileOrder::InTurn(_) | FileOrder::OneConnection { .. } => {
            without_effect("interval", &table.interval, "`interval` with `concurrent = true`, or `think`")?;
            without_effect("spacing", &table.spacing, "`spacing` with `concurrent = true` and `interval`")?;
        }
    }
    Ok(order)
}

fn without_effect<T>(key: &str, given: &Option<At<T>>, accepted: &str) -> Result<(), Problem> {
    let refuse =
        |at: &At<T>| Err(Problem::at(&at.span, format!("`{key}` has no effect here"), format!("accepted: {accepted}")));
    given.as_ref().map_or(Ok(()), refuse)
}

fn spacing(given: &Option<At<SpacingName>>) -> Spacing {
    match given.as_ref().map(|at| at.value) {
        None | Some(SpacingName::Even) => Spacing::Even,
        Some(SpacingName::Uniform) => Spacing::Uniform,
        Some(SpacingName::Exponential) => Spacing::Exponential,
    }
}

fn only_own_keys(table: &WorkloadTable) -> Result<(), Problem> {
    use WorkloadKind::{Bulk, Bursts, Files, Interactive, Tcp, Udp, Web};
    fn span<T>(at: &Option<At<T>>) -> Option<&Range<usize>> {
        at.as_ref().map(|at| &at.span)
    }
    /// A key, its place if it is given, and the kinds that have it.
    type Key<'a> = (&'static str, Option<&'a Range<usize>>, &'static [WorkloadKind]);
    let keys: [Key<'_>; 24] = [
        ("duration", span(&table.duration), &[Bulk, Interactive, Tcp]),
        ("size", span(&table.size), &[Files, Bursts, Tcp]),
        ("count", span(&table.count), &[Files, Bursts]),
        ("sizes", span(&table.sizes), &[Files]),
        ("concurrent", span(&table.concurrent), &[Files]),
        ("warm", span(&table.warm), &[Files]),
        ("think", span(&table.think), &[Files]),
        ("interval", span(&table.interval), &[Files, Bursts]),
        ("warm-up", span(&table.warm_up), &[Files, Bursts]),
        ("page", span(&table.page), &[Web]),
        ("protocol", span(&table.protocol), &[Web]),
        ("connections", span(&table.connections), &[Web]),
        ("trace", span(&table.trace), &[Interactive]),
        ("trace-seed", span(&table.trace_seed), &[Interactive]),
        ("path", span(&table.path), &[Udp, Tcp]),
        ("rate", span(&table.rate), &[Udp]),
        ("packet", span(&table.packet), &[Udp]),
        ("spacing", span(&table.spacing), &[Files, Udp]),
        ("on", span(&table.on), &[Udp]),
        ("off", span(&table.off), &[Udp]),
        ("phases", span(&table.phases), &[Udp]),
        ("stop", span(&table.stop), &[Udp]),
        ("repeat", span(&table.repeat), &[Tcp]),
        ("congestion", span(&table.congestion), &[Tcp]),
    ];
    for (key, span, kinds) in keys {
        if let Some(span) = span.filter(|_| !kinds.contains(&table.kind)) {
            let own = keys.iter().filter(|(_, _, kinds)| kinds.contains(&table.kind)).map(|(key, ..)| *key);
            let own: Vec<&str> = ["direction", "start"].into_iter().chain(own).collect();
            let problem = format!("a workload of this kind has no `{key}`");
            return Err(Problem::at(span, problem, format!("accepted: {}", own.join(", "))));
        }
    }
    Ok(())
}

/// Minimum of the mean time that UDP is on: below it, one gap between packets is millions of periods.
const SHORTEST_ON: Duration = Duration::from_micros(1);
/// Maximum number of files or bursts of one workload; each is a row of results.
const MAX_COUNT: usize = 100_000;

fn sizes(at: &At<WorkloadTable>) -> Result<Vec<Bytes>, Problem> {
    let table = &at.value;
    let sizes = match (&table.sizes, &table.size) {
        (Some(sizes), None) if table.count.is_none() => sizes.value.iter().map(|size| size.0).collect(),
        (Some(sizes), _) => {
            return Err(Problem::at(
                &sizes.span,
                "`sizes` stands in place of `size` and `count`",
                "accepted: one of the two",
            ));
        }
        (None, size) => {
            let size = size.as_ref().map(|at| (at.value.0, &at.span));
            vec![nonzero(at, "size", size)?; count(table)?]
        }
    };
    match sizes.iter().any(|size| size.is_zero()) || sizes.is_empty() {
        true => Err(Problem::at(&at.span, "a size is zero, or there is no file", "accepted: sizes from 1B")),
        false => Ok(sizes),
    }
}

fn count(table: &WorkloadTable) -> Result<usize, Problem> {
    match &table.count {
        Some(at) if !(1..=MAX_COUNT).contains(&at.value) => {
            Err(Problem::at(&at.span, format!("`count` is {}", at.value), "accepted: 1 to 100000"))
        }
        count => Ok(count.as_ref().map_or(1, |at| at.value)),
    }
}

fn nonzero(at: &At<WorkloadTable>, key: &str, given: Option<(Bytes, &Range<usize>)>) -> Result<Bytes, Problem> {
    let (size, span) = needed(at, key, given, "\"4MiB\"")?;
    match size.is_zero() {
        true => Err(Problem::at(span, "this sends nothing", "accepted: sizes from 1B")),
        false => Ok(size),
    }
}

fn path(at: &At<WorkloadTable>, paths: &[String]) -> Result<String, Problem> {
    let path = needed(at, "path", at.value.path.as_ref(), "\"NAME\"")?;
    known("path", path, paths)?;
    Ok(path.value.clone())
}

fn duration(at: &At<WorkloadTable>) -> Result<Duration, Problem> {
    let duration = needed(at, "duration", at.value.duration.as_ref(), "\"10s\"")?;
    match duration.value.0.is_zero() {
        true => Err(Problem::at(&duration.span, "the time is zero", "accepted: a time above zero")),
        false => Ok(duration.value.0),
    }
}

fn needed<T>(at: &At<WorkloadTable>, key: &str, given: Option<T>, example: &str) -> Result<T, Problem> {
    let problem = || format!("a workload of this kind needs `{key}`");
    given.ok_or_else(|| Problem::at(&at.span, problem(), format!("accepted: {key} = {example}")))
}

fn time(at: &Option<crate::file::Of<Duration>>) -> Duration {
    at.as_ref().map_or(Duration::ZERO, |at| at.value.0)
}
