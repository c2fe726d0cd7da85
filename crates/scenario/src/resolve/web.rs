//! Web pages and interactive sessions.

use super::Texts;
use crate::error::Problem;
use crate::file::{At, DirectionName, PageSource, PageTable, ProtocolName, Unit, WorkloadTable};
use crate::page::{self, Generated, SITES, Session, Shape};
use anabranch_sim::Workload;
use anabranch_sim::page::{Activity, Object, Page, Protocol};
use anabranch_units::suggest;
use anabranch_units::{Bytes, Duration, Seed};
use std::sync::Arc;

pub(super) fn web(at: &At<WorkloadTable>, start: Duration, texts: &mut Texts<'_>) -> Result<Workload, Problem> {
    downwards(at)?;
    let table = &at.value;
    let Some(source) = &table.page else {
        let help = format!("accepted: page = {ACCEPTED}");
        return Err(Problem::at(&at.span, "a workload of this kind needs `page`", help));
    };
    let protocol = match (table.protocol.as_ref().map(|at| at.value), &table.connections) {
        (Some(ProtocolName::Http2), Some(connections)) => {
            let help = "accepted: beside protocol = \"http1\"";
            return Err(Problem::at(&connections.span, "HTTP/2 uses one connection", help));
        }
        (Some(ProtocolName::Http2), None) => Protocol::Http2,
        (_, None) => Protocol::Http1 { connections: CONNECTIONS },
        (_, Some(at)) if (1..=MOST_CONNECTIONS).contains(&at.value) => Protocol::Http1 { connections: at.value },
        (_, Some(at)) => {
            let problem = format!("`connections` is {}", at.value);
            return Err(Problem::at(&at.span, problem, format!("accepted: 1 to {MOST_CONNECTIONS}")));
        }
    };
    let page = match &source.value {
        PageSource::Named(name) => named(name, source, texts)?,
        PageSource::Generated(table) => generated(table, source)?,
    };
    Ok(Workload::Web { page: Arc::new(page), protocol, start })
}

pub(super) fn interactive(at: &At<WorkloadTable>, start: Duration, texts: &mut Texts<'_>) -> Result<Workload, Problem> {
    downwards(at)?;
    let WorkloadTable { trace, trace_seed, duration, .. } = &at.value;
    let objects = match trace {
        Some(trace) => {
            let generates = [trace_seed.as_ref().map(|at| &at.span), duration.as_ref().map(|at| &at.span)];
            if let Some(span) = generates.into_iter().flatten().next() {
                let help = "accepted: `trace`, or `duration` and `trace-seed` of a generated session";
                return Err(Problem::at(span, "the session is read from a file, so nothing is generated", help));
            }
            let text = texts(trace)?;
            page::parse_session(&text).map_err(|problem| {
                let help = "accepted: lines such as \"3.25 15000\": seconds after `start`, bytes";
                Problem::at(&trace.span, format!("session `{}`: {problem}", trace.value), help)
            })?
        }
        None => {
            let length = duration.as_ref().map_or(SESSION, |at| at.value.0);
            let seed = trace_seed.as_ref().map_or(1, |at| at.value);
            let session = Session { duration: length.min(LONGEST), stream: Seed(seed).stream("session") };
            let objects = session.objects();
            let span = duration.as_ref().map_or(&at.span, |at| &at.span);
            if objects.is_empty() || length > LONGEST {
                let help = format!("accepted: more than 4s, up to {LONGEST}");
                return Err(Problem::at(span, format!("`duration` is {length}"), help));
            }
            objects
        }
    };
    let activity = |(begin, size)| Activity { begin, ..Activity::download(Object::of_size(size)) };
    let page = Page { activities: objects.into_iter().map(activity).collect() };
    Ok(Workload::Interactive { page: Arc::new(page), start })
}

fn downwards(at: &At<WorkloadTable>) -> Result<(), Problem> {
    match &at.value.direction {
        Some(direction) if direction.value == DirectionName::Up => {
            Err(Problem::at(&direction.span, "the objects of a page go from server to client", "accepted: \"down\""))
        }
        _ => Ok(()),
    }
}

fn named(name: &str, source: &At<PageSource>, texts: &mut Texts<'_>) -> Result<Page, Problem> {
    if let Some(page) = page::site(name) {
        return Ok(page);
    }
    if !name.ends_with(".har") && !name.ends_with(".json") {
        let sites: Vec<&str> = SITES.iter().map(|site| site.name).collect();
        let help = format!("{}; or a file that ends in .har or .json", suggest(name, sites));
        return Err(Problem::at(&source.span, format!("there is no page `{name}`"), help));
    }
    let text = texts(&At { span: source.span.clone(), value: name.to_owned() })?;
    page::parse(name, &text).map_err(|problem| {
        let help = "accepted: a HAR (.har), or a dependency graph of WProf or Epload with sizes (.json)";
        Problem::at(&source.span, format!("page `{name}`: {problem}"), help)
    })
}

fn generated(table: &PageTable, source: &At<PageSource>) -> Result<Page, Problem> {
    let PageTable { objects, total, seed, wave, computation } = *table;
    if !(1..=page::MOST_OBJECTS).contains(&objects) {
        let help = format!("accepted: 1 to {}", page::MOST_OBJECTS);
        return Err(Problem::at(&source.span, format!("`objects` is {objects}"), help));
    }
    if !(objects as u64..=page::MOST_BYTES).contains(&total.0.get()) {
        let help = format!("accepted: a byte for each object, up to {}", Bytes::new(page::MOST_BYTES));
        return Err(Problem::at(&source.span, format!("{objects} objects cannot have {}", total.0), help));
    }
    let shape = match (wave, computation) {
        (None, None) => Shape::Tree,
        (Some(size), Some(Unit(computation))) if size > 0 && computation <= LONGEST_COMPUTATION => {
            Shape::Waves { size, computation }
        }
        (Some(size), Some(computation)) => {
            let help = format!("accepted: a wave of 1 or more, computations of up to {LONGEST_COMPUTATION}");
            let problem = format!("`wave` is {size} and `computation` is {}", computation.0);
            return Err(Problem::at(&source.span, problem, help));
        }
        _ => {
            let help = "accepted: `wave` and `computation` together, or neither";
            return Err(Problem::at(&source.span, "a page in waves needs both `wave` and `computation`", help));
        }
    };
    Ok(Generated { objects, total: total.0, shape, stream: Seed(seed).stream("page") }.page())
}

const ACCEPTED: &str = "\"google\", \"FILE.har\" or { objects = 15, total = \"72kB\" }";
/// Connections of a browser per origin.
const CONNECTIONS: usize = 6;
/// Maximum number of connections; each is a row of results.
const MOST_CONNECTIONS: usize = 100;
/// Default duration of a generated session, as in LOWLAT Fig. 11.
const SESSION: Duration = Duration::from_secs(60);
/// Maximum of the mean time of a page's computations.
const LONGEST_COMPUTATION: Duration = Duration::from_secs(60);
/// Maximum duration of a generated session.
const LONGEST: Duration = Duration::from_secs(3600);
