//! Line of `run --events`: a segment at a host.

use anabranch_paths::copy_name;
use anabranch_sim::{EventKind, EventRecord};
use anabranch_wire::Flags;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// One segment that a host sent or received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PacketEvent {
    /// Time since the beginning of the run, in nanoseconds.
    pub at_ns: u64,
    /// Host at which it happened: `client`, `server`, or one of a competing pair, such as `tcp0-client`.
    pub host: String,
    /// Kind of the event.
    #[schemars(schema_with = "kinds")]
    pub event: String,
    /// Index of the path in the scenario.
    pub path: usize,
    /// Port of the client.
    pub port: u16,
    /// Control bits, such as `S.` for SYN and ACK.
    pub flags: String,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Window field, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub length: u32,
    /// Low 32 bits of the data sequence number of the mapping that it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsn: Option<u32>,
    /// Low 32 bits of the DATA_ACK that it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ack: Option<u32>,
}

/// Run that the lines below belong to, in the line before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunHead {
    /// Seed of the run.
    pub seed: u64,
}

impl From<&EventRecord> for PacketEvent {
    fn from(record: &EventRecord) -> Self {
        PacketEvent {
            at_ns: record.at.as_nanos(),
            host: copy_name(record.client, &record.host.to_string()),
            event: record.kind.to_string(),
            path: record.path,
            port: record.port,
            flags: Flags(record.flags).to_string(),
            seq: record.seq,
            ack: record.ack,
            window: record.window,
            length: record.length,
            dsn: record.dsn,
            data_ack: record.data_ack,
        }
    }
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": EventKind::ALL.map(|kind| kind.to_string()) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Names and their order, of a line of a run.
    #[test]
    fn a_record_is_one_line_of_json() {
        let event = PacketEvent {
            at_ns: 1500,
            host: "tcp2-server".to_owned(),
            event: EventKind::Received.to_string(),
            path: 1,
            port: 40_000,
            flags: Flags(0x12).to_string(),
            seq: 7,
            ack: 8,
            window: 100,
            length: 0,
            dsn: None,
            data_ack: Some(9),
        };
        let expected = concat!(
            r#"{"at_ns":1500,"host":"tcp2-server","event":"received","path":1,"port":40000,"flags":"S.","#,
            r#""seq":7,"ack":8,"window":100,"length":0,"data_ack":9}"#
        );
        assert_eq!(serde_json::to_string(&event).unwrap(), expected);
    }
}
