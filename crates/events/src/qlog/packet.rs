//! Segments at a host.

use schemars::JsonSchema;
use serde::Serialize;

/// A segment that a host sent, received or dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Packet {
    /// Header of the segment.
    pub header: Header,
    /// Lengths of the packet.
    pub raw: Raw,
    /// Name of the path in the scenario.
    pub path: String,
    /// Purpose of a segment that was sent, as a phrase; of a dropped one the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
}

/// Fields of a segment's header that a reader of a trace needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Header {
    /// Number of the packet in the run, the same where it is sent and where it is received; not there if a middlebox
    /// made the packet. TCP itself has no such number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_number: Option<u32>,
    /// Control bits, such as `S.` for SYN and ACK.
    pub flags: String,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Window field, not scaled.
    pub window: u16,
    /// Low 32 bits of the data sequence number of the mapping that it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsn: Option<u32>,
    /// Low 32 bits of the DATA_ACK that it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ack: Option<u32>,
}

/// Lengths of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Raw {
    /// Bytes of the packet with its IP header \[B\].
    pub length: u64,
    /// Bytes of payload \[B\].
    pub payload_length: u64,
}

/// A segment that its sender takes for lost. Told when the data leaves again on the same subflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PacketLost {
    /// Header of the lost segment.
    pub header: Numbered,
    /// Name of the path in the scenario.
    pub path: String,
    /// Mechanism that found the loss: `reordering_threshold` (SACK, duplicate ACKs), `time_threshold` (RACK) or
    /// `retransmission_timeout`.
    pub trigger: &'static str,
}

/// Numbers of a segment sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Numbered {
    /// Number of the packet in the run; not there if no packet of the subflow began with this byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_number: Option<u32>,
    /// Sequence number.
    pub seq: u32,
}

/// Segments with data that an acknowledgment newly covers, without those taken for lost before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PacketsAcked {
    /// Numbers of the packets in the run.
    pub packet_numbers: Vec<u32>,
}
