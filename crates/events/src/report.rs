//! Reports of connections and endpoints, as `--json` prints and events carry them: made from the engine's tables.

use crate::statistics::{object, properties, values};
use anabranch_engine::path_use::PathUse;
use anabranch_engine::statistics::Tables;
use anabranch_engine::{ConnectionId, ConnectionStats, Counters, Endpoint, SubflowStats};
use anabranch_units::statistic::{Statistic, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Map, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One end of a connection. Its JSON has every statistic of the engine's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionReport {
    /// Statistics of the connection.
    pub stats: ConnectionStats,
    /// Statistics of its subflows, those that are gone included.
    pub subflows: Vec<SubflowStats>,
}

/// Counters of an endpoint that are not zero, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CounterReport(pub BTreeMap<String, u64>);

impl ConnectionReport {
    /// The connection as it is now, or as it was when it ended.
    pub fn of(endpoint: &Endpoint, id: ConnectionId) -> Option<Self> {
        Some(ConnectionReport { stats: endpoint.connection_stats(id)?, subflows: endpoint.subflow_stats(id) })
    }

    /// The same for sentences.
    pub fn path_use(&self) -> PathUse {
        PathUse::of(&self.stats, &self.subflows)
    }

    fn document(&self, tables: Tables<'_>) -> Map<String, serde_json::Value> {
        // As seen by the transfer: what has arrived at the peer, and what was read.
        let mut all = Map::new();
        all.insert("bytes_sent".to_owned(), json!(self.stats.data_acked));
        all.insert("bytes_received".to_owned(), json!(self.stats.delivered));
        all.extend(values(tables.connection, &self.stats));
        let subflows = self.subflows.iter().map(|subflow| values(tables.subflow, subflow).collect::<Map<_, _>>());
        all.insert("subflows".to_owned(), subflows.collect());
        all
    }
}

impl Serialize for ConnectionReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document(Tables::ENGINE).serialize(serializer)
    }
}

impl JsonSchema for ConnectionReport {
    fn schema_name() -> Cow<'static, str> {
        "Connection".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let bytes = |of: &str| json!({ "type": "integer", "minimum": 0, "description": format!("the same as `{of}`") });
        let subflow = object(properties(Tables::ENGINE.subflow));
        let mut properties = properties(Tables::ENGINE.connection);
        properties.insert("bytes_sent".to_owned(), bytes("data_acked"));
        properties.insert("bytes_received".to_owned(), bytes("delivered"));
        properties.insert("subflows".to_owned(), json!({ "type": "array", "items": subflow }));
        object(properties)
    }
}

impl CounterReport {
    /// The counters of an endpoint.
    pub fn of(counters: &Counters) -> Self {
        CounterReport::of_table(Tables::ENGINE.endpoint, counters)
    }

    fn of_table(table: &[Statistic<Counters>], counters: &Counters) -> Self {
        let mut all = BTreeMap::new();
        for statistic in table {
            match (statistic.value(counters), statistic.counts()) {
                (Value::Count(count), _) => _ = all.insert(statistic.name.to_owned(), count),
                (Value::Counts(counts), Some((_, each))) => {
                    all.extend(counts.into_iter().map(|(name, count)| (format!("{each}-{name}"), count)));
                }
                _ => {}
            }
        }
        all.retain(|_, count| *count > 0);
        CounterReport(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::statistics::{CONNECTION, ENDPOINT, SUBFLOW};
    use anabranch_engine::{Blocked, FallbackReason, SubflowCounts};
    use anabranch_units::statistic::{Kind, Unit};
    use anabranch_units::{Bytes, Duration, SubflowId, count};
    use anabranch_wire::ResetReason;

    fn report() -> ConnectionReport {
        let mut blocked = Blocked::default();
        blocked.cwnd = Duration::from_millis(20);
        let mut stats = ConnectionStats::default();
        (stats.data_acked, stats.reinjected, stats.blocked) = (7, 5, blocked);
        stats.fallback = Some(FallbackReason::SynAck);
        let mut counts = SubflowCounts::default();
        (counts.segments_sent, counts.fast_recoveries, counts.rtos) = (11, 2, 1);
        let subflow = SubflowStats {
            id: SubflowId(3),
            local: ([10, 0, 0, 1], 5000).into(),
            remote: ([10, 1, 0, 1], 80).into(),
            established: true,
            backup: false,
            srtt: None,
            cwnd: Bytes::new(14_000),
            counts,
        };
        ConnectionReport { stats, subflows: vec![subflow] }
    }

    #[test]
    fn a_connection_has_every_statistic_under_the_name_of_the_table() {
        let json = json!(report());
        assert_eq!((&json["bytes_sent"], &json["data_acked"], &json["reinjected"]), (&json!(7), &json!(7), &json!(5)));
        assert_eq!((&json["blocked_cwnd_s"], &json["fallback"]), (&json!(0.02), &json!("syn-ack")));
        let subflow = &json["subflows"][0];
        assert_eq!((&subflow["id"], &subflow["local"]), (&json!(3), &json!("10.0.0.1:5000")));
        assert_eq!((&subflow["srtt_s"], &subflow["fast_recoveries"]), (&json!(null), &json!(2)));
    }

    #[test]
    fn a_statistic_that_is_added_to_a_table_is_in_the_reports() {
        type Connection = Statistic<ConnectionStats>;
        const ABOUT: &str = "a dummy";
        let connection = Connection::new("dummy-wait", Kind::Counter, Unit::None, ABOUT, count!(reinjected));
        let subflow =
            Statistic::<SubflowStats>::new("dummy", Kind::Counter, Unit::None, ABOUT, count!(counts.fast_recoveries));
        let endpoint = Statistic::<Counters>::new("dummy", Kind::Counter, Unit::None, ABOUT, count!(reopened));
        let connection = [CONNECTION, &[connection]].concat();
        let (subflow, endpoint) = ([SUBFLOW, &[subflow]].concat(), [ENDPOINT, &[endpoint]].concat());
        let tables = Tables { endpoint: &endpoint, connection: &connection, subflow: &subflow };

        let json = json!(report().document(tables));
        assert_eq!((&json["dummy_wait"], &json["subflows"][0]["dummy"]), (&json!(5), &json!(2)));
        let mut counters = Counters::default();
        counters.reopened = 4;
        assert_eq!(CounterReport::of_table(&endpoint, &counters).0["dummy"], 4);
    }

    #[test]
    fn counters_by_reason_have_a_name_each() {
        let mut counters = Counters::default();
        counters.cookies_sent = 2;
        counters.fallbacks.insert(FallbackReason::SynAck, 1);
        counters.resets_sent.insert(ResetReason::MptcpError, 3);
        counters.reset_reasons_received.insert(ResetReason::Other(9), 4);
        let expected = [
            ("cookies-sent", 2),
            ("fallback-syn-ack", 1),
            ("reset-received-other(9)", 4),
            ("reset-sent-mptcp-error", 3),
        ];
        let expected = expected.map(|(name, count)| (name.to_owned(), count)).into();
        assert_eq!(CounterReport::of(&counters), CounterReport(expected));
    }
}
