//! Records of a file behind its head.

use super::{Metrics, NAMESPACE, Packet, PacketLost, PacketsAcked};
use crate::{ConnectionEvent, Happened};
use anabranch_engine::{ConnectionId, Endpoint};
use anabranch_units::Instant;
use anabranch_wire::FlowKey;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// An event with its time and place.
#[derive(Clone, Debug, Serialize)]
pub struct Record<'a> {
    /// Time since the run or the program began [ms].
    time: f64,
    /// Host of a simulated run, or connection of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
    /// Subflow, by the addresses and ports of this end and the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<String>,
    #[serde(flatten)]
    happening: Happening,
}

/// An event: its name and its data.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "name", content = "data")]
pub enum Happening {
    /// A host sent a segment.
    #[serde(rename = "anabranch:packet_sent")]
    PacketSent(Packet),
    /// A host received a segment.
    #[serde(rename = "anabranch:packet_received")]
    PacketReceived(Packet),
    /// A host received a segment and dropped it: the checksum failed.
    #[serde(rename = "anabranch:packet_dropped")]
    PacketDropped(Packet),
    /// A sender takes a segment for lost, and repeats its data on the same subflow.
    #[serde(rename = "anabranch:packet_lost")]
    PacketLost(PacketLost),
    /// An acknowledgment covers segments that were outstanding.
    #[serde(rename = "anabranch:packets_acked")]
    PacketsAcked(PacketsAcked),
    /// Round-trip times, window or bytes in flight of a subflow changed. Only fields that changed are there.
    #[serde(rename = "anabranch:recovery_metrics_updated")]
    RecoveryMetricsUpdated(Metrics),
    /// Event of another description, such as [`ConnectionEvent`].
    #[serde(untagged)]
    #[schemars(skip)]
    Other {
        /// Name with its namespace.
        name: String,
        /// Data.
        data: Value,
    },
}

impl<'a> Record<'a> {
    /// Returns the record of an event at this time.
    pub fn new(at: Instant, group_id: Option<&'a str>, tuple: Option<String>, happening: Happening) -> Self {
        Record { time: at.as_nanos() as f64 / 1e6, group_id, tuple, happening }
    }

    /// Returns the record of an event of a connection of this endpoint.
    pub fn of_connection(
        at: Instant,
        group_id: Option<&'a str>,
        event: &ConnectionEvent,
        endpoint: &Endpoint,
        id: ConnectionId,
    ) -> Self {
        let all = endpoint.subflow_stats(id);
        // An event of the whole connection has no tuple: it is none of the first subflow's.
        let stats = event.happened.subflow().and_then(|subflow| all.iter().find(|stats| stats.id == subflow));
        let tuple = stats.map(|stats| tuple(FlowKey::new(stats.local, stats.remote)));
        Record::new(at, group_id, tuple, Happening::of(event))
    }

    /// Returns the record that says which scenario is run with which seed.
    pub fn of_scenario(group_id: Option<&'a str>, scenario: &str, details: Map<String, Value>) -> Self {
        let data = json!({ "name": scenario, "details": details });
        Record::new(Instant::ZERO, group_id, None, Happening::Other { name: "simulation:scenario".to_owned(), data })
    }
}

impl Happening {
    /// Derives the event from the line of the journal.
    pub(super) fn of(event: &ConnectionEvent) -> Self {
        let line = serde_json::to_value(&event.happened);
        let Value::Object(mut line) = line.expect("an event is plain JSON") else {
            unreachable!("an event is an object: its tag is a field")
        };
        let name = line.shift_remove(TAG).and_then(|name| name.as_str().map(str::to_owned));
        let (name, fields) = renamed(&name.expect("an event has its tag"));
        let mut data = Map::from_iter([("connection".to_owned(), event.connection.into())]);
        data.extend(line.into_iter().map(|(field, value)| (fields(field), value)));
        Happening::Other { name: format!("{NAMESPACE}:{name}"), data: data.into() }
    }
}

/// Returns the name in qlog of an event of the journal, and how its fields are renamed.
pub(super) fn renamed(event: &str) -> (String, impl Fn(String) -> String + use<>) {
    let is_phase = event == PHASE;
    let name = if is_phase { CONGESTION_STATE_UPDATED.to_owned() } else { event.replace('-', "_") };
    (name, move |field: String| if is_phase && field == "phase" { "new".to_owned() } else { field })
}

/// Returns the identifier of a subflow, by the addresses and ports of this end and the other.
pub fn tuple(flow: FlowKey) -> String {
    format!("{}-{}", flow.source(), flow.destination())
}

/// Writes a head or a record as one text of a JSON text sequence (RFC 7464). A reader skips one that is cut off.
pub fn write(out: &mut impl Write, text: &impl Serialize) -> io::Result<()> {
    out.write_all(b"\x1e")?;
    serde_json::to_writer(&mut *out, text).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Field with the name of an event, in lines of the journal.
pub(super) const TAG: &str = "event";
/// Name in the journal of the event that QUIC calls [`CONGESTION_STATE_UPDATED`].
const PHASE: &str = "congestion-phase";
/// Name in qlog of the journal's event [`PHASE`].
const CONGESTION_STATE_UPDATED: &str = "congestion_state_updated";

/// The line's type, for its schema.
pub(super) type Line = Happened;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::SubflowPlace;
    use anabranch_units::Duration;

    #[test]
    fn an_event_of_the_journal_keeps_its_fields() {
        let place = SubflowPlace { subflow: 1, local: None, remote: None, backup: Some(true) };
        let event = ConnectionEvent { time_s: 0.5, connection: 3, happened: Happened::SubflowClosed(place) };
        let at = Instant::ZERO + Duration::from_nanos(1_500_001);
        let record = Record::new(at, Some("client"), None, Happening::of(&event));
        let expected = concat!(
            r#"{"time":1.500001,"group_id":"client","name":"anabranch:subflow_closed","#,
            r#""data":{"connection":3,"subflow":1,"backup":true}}"#
        );
        assert_eq!(serde_json::to_string(&record).unwrap(), expected);
        let phase = Happened::CongestionPhase { subflow: 0, phase: "drain" };
        let event = ConnectionEvent { time_s: 0.0, connection: 1, happened: phase };
        let json = serde_json::to_value(Record::new(Instant::ZERO, None, None, Happening::of(&event))).unwrap();
        assert_eq!(
            (&json["name"], &json["data"]["new"]),
            (&json!("anabranch:congestion_state_updated"), &json!("drain"))
        );
    }

    #[test]
    fn a_text_begins_with_a_separator_and_ends_with_a_line() {
        let mut out = Vec::new();
        write(&mut out, &json!({ "a": 1 })).unwrap();
        assert_eq!(out, b"\x1e{\"a\":1}\n");
    }
}
