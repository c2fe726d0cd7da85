//! Elements of a scenario that cost time: each with the `--set` assignments that take away this one and nothing else.
//!
//! An element is a fault of the network (loss, reordering, jitter, damage, middleboxes, long or tiny queues, traffic of
//! others, a shared bottleneck, draws and changes during the run) or of a host (delayed ACKs, Nagle's algorithm, a low
//! initial ssthresh, a small initial window, TCP options that are off, and any other setting that is not the
//! profile's). Rates, delays and policies are none: a path is as it is, and a policy is a choice.

mod host;
mod link;
mod loss;
mod others;
mod path;

pub(crate) use link::is_long;

use crate::Kind;
use anabranch_scenario::Scenario;

/// An element and how to take it away.
#[derive(Clone)]
pub(crate) struct Element {
    pub(crate) kind: Kind,
    /// Counterfactual, as a noun that follows "with".
    pub(crate) what: String,
    /// The element as a sentence without its full stop.
    pub(crate) cause: String,
    /// Assignments that take it away.
    pub(crate) sets: Vec<String>,
}

/// Lists the elements of a scenario.
pub(crate) fn elements(scenario: &Scenario) -> Vec<Element> {
    let mut all = Vec::new();
    let mut add = |kind, what: String, cause: String, sets: Vec<String>| {
        all.push(Element { kind, what, cause, sets });
    };
    let spec = scenario.written();
    loss::losses(scenario, &mut add);
    for path in &spec.network.paths {
        path::of_path(scenario, path, &mut add);
    }
    for link in &spec.network.shared {
        link::of_shared(spec, link, &mut add);
    }
    others::traffic(spec, &mut add);
    others::changes(scenario, &mut add);
    host::of_hosts(scenario, &mut add);
    together(all)
}

/// Takes in an element.
type Add<'a> = dyn FnMut(Kind, String, String, Vec<String>) + 'a;

/// Kinds whose elements on several paths are taken away together as well, as a noun that follows "with".
const TOGETHER: &[(Kind, &str)] = &[
    (Kind::NoReordering, "no reordering on any path"),
    (Kind::NoJitter, "no jitter on any path"),
    (Kind::NoDamage, "no damage on any path"),
    (Kind::NoMiddlebox, "no middleboxes"),
    (Kind::LongerQueue, "longer queues"),
    (Kind::ShorterQueue, "shorter queues"),
    (Kind::Steady, "steady paths"),
    (Kind::WayBack, "ways back as fast as the ways there"),
    (Kind::FasterInterface, "faster interfaces"),
];

/// Puts all elements of a kind, where there are several, before the single ones.
fn together(all: Vec<Element>) -> Vec<Element> {
    let mut with = Vec::new();
    for element in all {
        let listed = TOGETHER.iter().find(|(kind, _)| *kind == element.kind);
        if let Some((kind, what)) = listed {
            let is_first = |it: &&Element| it.kind == *kind;
            match with.iter().position(|it| is_first(&it)) {
                None => {}
                Some(first) if with[first].what == *what => {
                    let whole: &mut Element = &mut with[first];
                    whole.cause = format!("{}; {}", whole.cause, element.cause);
                    whole.sets.extend(element.sets.iter().cloned());
                }
                Some(first) => {
                    let one: &Element = &with[first];
                    let cause = format!("{}; {}", one.cause, element.cause);
                    let sets = [one.sets.as_slice(), &element.sets].concat();
                    with.insert(first, Element { kind: *kind, what: (*what).to_owned(), cause, sets });
                }
            }
        }
        with.push(element);
    }
    with
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        small if small < 0.01 => "some".to_owned(),
        some => format!("{} %", (some * 100.0).round() / 100.0),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
