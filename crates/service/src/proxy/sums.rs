//! Statistics of the engine over all connections of the proxy, as Prometheus is told them.

use super::metrics::{counter, label, level, one};
use anabranch_engine::statistics::Tables;
use anabranch_engine::{ConnectionStats, SubflowStats};
use anabranch_units::statistic::{Kind, Statistic, Tally, Value};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

/// Statistics of the engine, merged over connections and their subflows.
#[derive(Clone)]
pub(super) struct Sums<'a> {
    connections: Tally<'a, ConnectionStats>,
    subflows: Tally<'a, SubflowStats>,
}

impl<'a> Sums<'a> {
    fn new(tables: Tables<'a>) -> Self {
        let mut sums = Sums { connections: Tally::new(tables.connection), subflows: Tally::new(tables.subflow) };
        // Counts by name are there from the start, as 0: a rate of Prometheus needs a first value.
        sums.add(&ConnectionStats::default(), &[]);
        sums
    }

    /// Adds a connection with its subflows.
    pub(super) fn add(&mut self, stats: &ConnectionStats, subflows: &[SubflowStats]) {
        self.connections.add(stats);
        subflows.iter().for_each(|subflow| self.subflows.add(subflow));
    }
}

impl Sums<'_> {
    /// Registers every statistic: a level is that of the connections in `now`, anything else that of all.
    pub(super) fn register(&self, now: &Sums<'_>, registry: &mut Registry) {
        let mut taken = BTreeSet::new();
        register(registry, choose(&self.connections, &now.connections), &mut taken);
        // Of a statistic that both have, the connection's is the sum over its subflows.
        register(registry, choose(&self.subflows, &now.subflows), &mut taken);
    }
}

fn choose<'t, S: 'static>(
    all: &'t Tally<'t, S>,
    now: &'t Tally<'t, S>,
) -> impl Iterator<Item = (&'t Statistic<S>, &'t Value)> {
    all.iter().zip(now.iter()).map(|(all, now)| if all.0.kind == Kind::Gauge { now } else { all })
}

impl Default for Sums<'static> {
    fn default() -> Self {
        Sums::new(Tables::ENGINE)
    }
}

/// Registers statistics under their names; those under a name that is taken are left out.
pub(super) fn register<'t, S: 'static>(
    registry: &mut Registry,
    values: impl Iterator<Item = (&'t Statistic<S>, &'t Value)>,
    taken: &mut BTreeSet<String>,
) {
    for (statistic, value) in values.filter(|(statistic, _)| statistic.kind != Kind::State) {
        let name = statistic.metric();
        if !taken.insert(name.clone()) {
            continue;
        }
        let help = sentence(statistic.about);
        let is_level = matches!(statistic.kind, Kind::Gauge | Kind::Peak);
        match (value, statistic.counts()) {
            (Value::Count(count), _) if is_level => level(registry, &name, &help, *count as f64),
            (Value::Count(count), _) => one(registry, &name, &help, *count),
            (Value::Span(span), _) => {
                let counter = Counter::<f64, AtomicU64>::default();
                counter.inc_by(span.as_secs_f64());
                registry.register(name, help, counter);
            }
            (Value::Counts(counts), Some((key, _))) => {
                let counts = counts.iter().map(|(value, count)| (label(key, value), *count));
                counter(registry, &name, &help, counts);
            }
            // A level that no connection has.
            _ => level(registry, &name, &help, 0.0),
        }
    }
}

/// The text with a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::Counters;
    use anabranch_engine::statistics::{CONNECTION, ENDPOINT, SUBFLOW};
    use anabranch_units::statistic::Unit;
    use anabranch_units::{Duration, count};
    use anabranch_wire::ResetReason;

    /// The text of the metrics that `act` registers.
    fn text(act: impl FnOnce(&mut Registry)) -> String {
        let mut registry = Registry::with_prefix("anabranch");
        act(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("writing to a String cannot fail");
        text
    }

    #[test]
    fn a_statistic_that_is_added_to_a_table_is_a_metric() {
        let dummy = Statistic::<ConnectionStats>::new("dummy", Kind::Counter, Unit::Bytes, "a dummy", count!(sent));
        let connection = [CONNECTION, &[dummy]].concat();
        let mut sums = Sums::new(Tables { connection: &connection, ..Tables::ENGINE });
        let nothing_now = sums.clone();
        let mut stats = ConnectionStats::default();
        (stats.sent, stats.ofo_now) = (5, 3);
        sums.add(&stats, &[]);
        let text = text(|registry| sums.register(&nothing_now, registry));
        assert!(text.contains("# HELP anabranch_dummy_bytes A dummy.\n"), "{text}");
        assert!(text.contains("anabranch_dummy_bytes_total 5\n"), "{text}");
        assert!(text.contains("anabranch_ofo_now_segments 0"), "a level counts while its connection lives: {text}");
    }

    #[test]
    fn every_statistic_that_can_be_merged_is_a_metric() {
        fn names<S>(table: &[Statistic<S>]) -> impl Iterator<Item = String> {
            table.iter().filter(|it| it.kind != Kind::State).map(|it| format!("# HELP anabranch_{} ", it.metric()))
        }
        let text = text(|registry| {
            let mut counters = Counters::default();
            counters.resets_sent.insert(ResetReason::Middlebox, 1);
            counters.reset_reasons_received.insert(ResetReason::Middlebox, 1);
            let mut endpoint = Tally::new(ENDPOINT);
            endpoint.add(&counters);
            register(registry, endpoint.iter(), &mut BTreeSet::new());
            Sums::default().register(&Sums::default(), registry);
        });
        for name in names(ENDPOINT).chain(names(CONNECTION)).chain(names(SUBFLOW)) {
            assert_eq!(text.matches(&name).count(), 1, "{name} in {text}");
        }
    }

    #[test]
    fn names_of_dashboards_stay() {
        let mut sums = Sums::default();
        let mut stats = ConnectionStats::default();
        (stats.duplicates, stats.overruled.looping) = (7, 2);
        stats.hol_blocked = Duration::from_millis(1500);
        sums.add(&stats, &[]);
        let text = text(|registry| sums.register(&Sums::default(), registry));
        for line in [
            "anabranch_duplicate_bytes_total 7\n",
            "anabranch_reinjected_bytes_total 0\n",
            "anabranch_retransmissions_total 0\n",
            "anabranch_retransmission_timeouts_total 0\n",
            "anabranch_policy_overruled_total{kind=\"looping\"} 2\n",
            "anabranch_hol_blocked_seconds_total 1.5\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
