//! Loss recovery and congestion control of a subflow.

use super::{Happening, Record, tuple};
use anabranch_engine::{ConnectionId, Endpoint, SubflowMetrics};
use anabranch_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Metrics of a subflow that changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Metrics {
    /// Number of the connection in the file, from 1.
    pub connection: u64,
    /// Number of the subflow in its connection.
    pub subflow: u16,
    /// Smallest sample of the round-trip time \[ms\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<f64>,
    /// Smoothed round-trip time (RFC 6298) \[ms\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<f64>,
    /// Latest sample of the round-trip time \[ms\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_rtt: Option<f64>,
    /// Variation of the round-trip time (RFC 6298, RTTVAR) \[ms\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_variance: Option<f64>,
    /// Congestion window \[B\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// Bytes sent and neither acknowledged nor believed lost, plus retransmissions under way \[B\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold, from the first loss on \[B\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u64>,
    /// Pacing rate of a congestion control that paces \[bit/s\].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<u64>,
}

impl Metrics {
    fn of(connection: u64, it: &SubflowMetrics) -> Self {
        let ms = |span: Option<Duration>| span.map(Duration::as_millis_f64);
        Metrics {
            connection,
            subflow: it.id.0,
            min_rtt: ms(it.min_rtt),
            smoothed_rtt: ms(it.srtt),
            latest_rtt: ms(it.latest_rtt),
            rtt_variance: ms(it.rttvar),
            congestion_window: Some(it.cwnd.get()),
            bytes_in_flight: Some(it.in_flight.get()),
            ssthresh: it.ssthresh.map(|bytes| bytes.get()),
            pacing_rate: it.pacing.map(|rate| rate.as_bps()),
        }
    }

    /// Returns the fields that changed since `before`; `None` if none did.
    fn since(self, before: &Metrics) -> Option<Self> {
        fn changed<T: PartialEq>(now: Option<T>, before: Option<T>) -> Option<T> {
            if now == before { None } else { now }
        }
        let unchanged = Metrics { connection: self.connection, subflow: self.subflow, ..Metrics::default() };
        let changed = Metrics {
            min_rtt: changed(self.min_rtt, before.min_rtt),
            smoothed_rtt: changed(self.smoothed_rtt, before.smoothed_rtt),
            latest_rtt: changed(self.latest_rtt, before.latest_rtt),
            rtt_variance: changed(self.rtt_variance, before.rtt_variance),
            congestion_window: changed(self.congestion_window, before.congestion_window),
            bytes_in_flight: changed(self.bytes_in_flight, before.bytes_in_flight),
            ssthresh: changed(self.ssthresh, before.ssthresh),
            pacing_rate: changed(self.pacing_rate, before.pacing_rate),
            ..unchanged
        };
        (changed != unchanged).then_some(changed)
    }
}

/// Latest metrics of an endpoint's subflows, to tell what changed.
#[derive(Debug, Default)]
pub struct MetricsLog {
    /// Connections that are open, each with its number in the file.
    open: BTreeMap<ConnectionId, u64>,
    known: BTreeMap<(u64, u16), Metrics>,
}

impl MetricsLog {
    /// Takes up a connection that is established.
    pub fn open(&mut self, id: ConnectionId, connection: u64) {
        self.open.insert(id, connection);
    }

    /// Forgets a connection that is gone.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open.remove(&id) {
            self.known.retain(|(of, _), _| *of != connection);
        }
    }

    /// Returns the connections that are open.
    pub fn connections(&self) -> Vec<ConnectionId> {
        self.open.keys().copied().collect()
    }

    /// Returns records of the subflows of a connection whose metrics changed.
    pub fn changes<'a>(
        &mut self,
        at: Instant,
        endpoint: &Endpoint,
        id: ConnectionId,
        group: Option<&'a str>,
    ) -> Vec<Record<'a>> {
        let Some(&connection) = self.open.get(&id) else { return Vec::new() };
        let mut records = Vec::new();
        for it in endpoint.subflow_metrics(id) {
            let now = Metrics::of(connection, &it);
            let before = self.known.insert((connection, it.id.0), now).unwrap_or_default();
            if let Some(metrics) = now.since(&before) {
                let happening = Happening::RecoveryMetricsUpdated(metrics);
                records.push(Record::new(at, group, Some(tuple(it.flow)), happening));
            }
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_that_changed_are_told() {
        let before = Metrics { connection: 1, congestion_window: Some(10), min_rtt: Some(5.0), ..Metrics::default() };
        assert_eq!(before.since(&before), None);
        let now = Metrics { congestion_window: Some(12), ..before };
        let expected = Metrics { connection: 1, congestion_window: Some(12), ..Metrics::default() };
        assert_eq!(now.since(&before), Some(expected));
    }
}
