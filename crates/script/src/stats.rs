//! Values that `check` compares: every statistic of the engine's tables, and a few that are not statistics.

use crate::peer::World;
use crate::statement::Compare;
use crate::value;
use anabranch_engine::statistics::Tables;
use anabranch_engine::{ConnectionId, Endpoint};
use anabranch_units::statistic::{Statistic, Value};

/// Names that are no statistic of the engine.
const OWN: [&str; 4] = ["subflows", "connections", "write_space", "drained"];

/// The value called `name`; `Err` says what would be accepted.
pub(crate) fn value(host: &Endpoint, id: Option<ConnectionId>, world: &World, name: &str) -> Result<String, String> {
    find(Tables::ENGINE, host, id, world, name)
}

fn find(
    tables: Tables<'_>,
    host: &Endpoint,
    id: Option<ConnectionId>,
    world: &World,
    name: &str,
) -> Result<String, String> {
    let subflows = id.map(|id| host.subflow_stats(id)).unwrap_or_default();
    let connection = || id.and_then(|id| host.connection_stats(id)).unwrap_or_default();
    if let Some((owner, field)) = name.split_once('.') {
        if owner == "counter" {
            return named(tables.endpoint, host.counters(), field);
        }
        let counts = counts(tables.endpoint, host.counters(), owner, field);
        if let Some(count) = counts.or_else(|| self::counts(tables.connection, &connection(), owner, field)) {
            return Ok(count.to_string());
        }
        let wanted = world.line(owner);
        let is_wanted = |local, remote| wanted.is_some() && world.named(local, remote) == wanted;
        return match subflows.iter().rev().find(|subflow| is_wanted(subflow.local, subflow.remote)) {
            Some(subflow) => named(tables.subflow, subflow, field),
            None if wanted.is_some() && field == "established" => Ok("no".to_owned()),
            None => Err(format!(
                "`{owner}` is not a subflow of this connection; accepted: a subflow, counter, fallbacks, resets_sent"
            )),
        };
    }
    match name {
        "connections" => Ok(host.connection_count().to_string()),
        "subflows" => Ok(subflows.iter().filter(|subflow| subflow.established).count().to_string()),
        "write_space" => Ok(id.map_or(0, |id| host.write_space(id)).to_string()),
        _ => named(tables.connection, &connection(), name),
    }
}

/// The statistic of `owner` called `name`.
fn named<S>(table: &[Statistic<S>], owner: &S, name: &str) -> Result<String, String> {
    let single = || table.iter().filter(|statistic| statistic.counts().is_none());
    single().find(|statistic| statistic.snake() == name).map(|statistic| in_words(&statistic.value(owner))).ok_or_else(
        || {
            let names: Vec<String> = single().map(Statistic::snake).collect();
            let others = OWN.into_iter().chain(["counter.…", "SUBFLOW.…"]);
            anabranch_units::suggest(name, names.iter().map(String::as_str).chain(others))
        },
    )
}

/// The count called `name` of the counts called `owner`, such as `fallbacks.syn-ack`; 0 if there was none of that name.
fn counts<S>(table: &[Statistic<S>], from: &S, owner: &str, name: &str) -> Option<u64> {
    let mut counts = table.iter().filter(|statistic| statistic.counts().is_some());
    match counts.find(|statistic| statistic.snake() == owner)?.value(from) {
        Value::Counts(counts) => Some(counts.get(name).copied().unwrap_or(0)),
        _ => None,
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Absent => "none".to_owned(),
        Value::Flag(on) => if *on { "yes" } else { "no" }.to_owned(),
        Value::Count(count) => count.to_string(),
        Value::Span(span) => span.to_string(),
        Value::Word(word) => word.to_string(),
        Value::Counts(counts) => counts.values().sum::<u64>().to_string(),
    }
}

/// Evaluates the comparison; `None` if the two values cannot be compared so.
pub(crate) fn holds(got: &str, compare: Compare, wanted: &str) -> Option<bool> {
    let number = |text| value::number(text).or_else(|| value::duration(text).map(|span| i128::from(span.as_nanos())));
    match (number(got), number(wanted)) {
        (Some(got), Some(wanted)) => Some(match compare {
            Compare::Equal => got == wanted,
            Compare::Unequal => got != wanted,
            Compare::Less => got < wanted,
            Compare::AtMost => got <= wanted,
            Compare::More => got > wanted,
            Compare::AtLeast => got >= wanted,
        }),
        _ => match compare {
            Compare::Equal => Some(got == wanted),
            Compare::Unequal => Some(got != wanted),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::ConnectionStats;
    use anabranch_engine::statistics::CONNECTION;
    use anabranch_units::statistic::{Kind, Unit};
    use anabranch_units::{Duration, span};

    #[test]
    fn a_statistic_that_is_added_to_a_table_can_be_checked() {
        type Connection = Statistic<ConnectionStats>;
        let dummy = Connection::new("a-dummy", Kind::Counter, Unit::Seconds, "a dummy", span!(hol_blocked));
        let (table, mut stats) = ([CONNECTION, &[dummy]].concat(), ConnectionStats::default());
        stats.hol_blocked = Duration::from_micros(1500);
        assert_eq!(named(&table, &stats, "a_dummy").as_deref(), Ok("1500us"));
        assert_eq!(holds("1500us", Compare::Less, "2ms"), Some(true));
        assert_eq!(counts(&table, &stats, "overruled", "looping"), Some(0));
    }
}
