//! The report: plain values with their units in their names, as `--json` prints them. Times are seconds since the first
//! packet of the capture. What is not known is absent (`null`), never zero.

use serde::Serialize;

/// Everything that was found.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// The files, in the order in which they were named.
    pub files: Vec<FileReport>,
    /// The capture as a whole.
    pub capture: CaptureReport,
    /// MPTCP connections, in the order in which they were first seen.
    pub connections: Vec<ConnectionReport>,
    /// TCP connections that are no subflow, in the order in which they were first seen.
    pub plain_tcp: Vec<PlainReport>,
}

/// One file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct FileReport {
    /// Its name as given.
    pub name: String,
    /// False if it could not be opened, is empty, or is no capture.
    pub is_capture: bool,
    /// Packets read from it.
    pub packets: u64,
    /// Packets of these that are TCP.
    pub tcp_packets: u64,
    /// Why the file, or the rest of it, could not be read.
    pub error: Option<String>,
    /// Parts that were skipped, and losses that the file records.
    pub notes: Vec<String>,
    /// The clock that its times were taken by, if its own cannot be that of the other files.
    pub clock: Option<ClockReport>,
}

/// The clock of a file beside that of another, from packets that are in both.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ClockReport {
    /// The other file.
    pub against: String,
    /// Time that its clock is ahead; its times were set back by that \[s\].
    pub ahead_s: f64,
    /// Half of the shortest round trip: the true difference is no further from that \[s\].
    pub within_s: f64,
}

impl ClockReport {
    /// Says it in words.
    pub fn words(&self) -> String {
        let ClockReport { against, ahead_s, within_s } = self;
        let side = if *ahead_s > 0.0 { "ahead of" } else { "behind" };
        let (ahead, within) = (ahead_s.abs(), within_s * 1e3);
        format!(
            "its clock is {ahead:.6} s {side} that of {against}, to within {within:.3} ms, and was set to that: the \
             shortest delays are taken to be the same in both directions"
        )
    }
}

/// All files together.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct CaptureReport {
    /// The first packet, in nanoseconds since 1970.
    pub start_unix_ns: Option<u64>,
    /// Time from the first packet to the last \[s\].
    pub duration_s: f64,
    /// TCP packets.
    pub tcp_packets: u64,
    /// Packets of these with an MPTCP option.
    pub mptcp_packets: u64,
    /// Packets captured a second time, not counted elsewhere.
    pub copies: u64,
    /// Remarks on the whole capture.
    pub notes: Vec<String>,
}

/// One MPTCP connection. Where there are two of something, the first belongs to the side that opened the connection, if
/// `opener_known`, else to the side that was seen first.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ConnectionReport {
    /// Number, from 1.
    pub number: usize,
    /// True if the first side is known to have opened the connection.
    pub opener_known: bool,
    /// Names of the two sides in texts: `client` and `server`, or `A` and `B`.
    pub sides: [&'static str; 2],
    /// Address and port of the two sides on the first subflow.
    pub endpoints: [String; 2],
    /// Time at which it was first seen.
    pub start_s: f64,
    /// Time from the first to the last packet \[s\].
    pub duration_s: f64,
    /// 0 is RFC 6824, 1 is RFC 8684.
    pub version: Option<u8>,
    /// True if DSS checksums are in use; absent if unknown.
    pub dss_checksum: Option<bool>,
    /// Keys of the two sides.
    pub keys: [KeyReport; 2],
    /// End of the connection, in words.
    pub end: String,
    /// Fallback, if MPTCP was given up.
    pub fallback: Option<FallbackReport>,
    /// Place of the capture: `near the client`, `near the server`, `in between`, `at two points`.
    pub captured: Option<String>,
    /// Subflows in the order in which they were first seen.
    pub subflows: Vec<SubflowReport>,
    /// SYNs with MP_CAPABLE from other addresses of the client that lost the race for the first subflow; they are in no
    /// other list.
    pub lost_races: Vec<AttemptReport>,
    /// Data of each side at the data level.
    pub directions: [DirectionReport; 2],
    /// Signals about addresses, priorities, failures, in the order of time.
    pub signals: Vec<SignalReport>,
    /// Facts that the capture does not show.
    pub unknown: Vec<String>,
}

/// Key of one side, as far as it is known.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct KeyReport {
    /// Hexadecimal.
    pub key: Option<String>,
    /// Hexadecimal.
    pub token: Option<String>,
    /// Initial data sequence number, hexadecimal.
    pub idsn: Option<String>,
}

/// MPTCP was given up.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct FallbackReport {
    /// `SYN`, `SYN/ACK`, `third ACK`, `first data`, `data`.
    pub step: &'static str,
    /// Reason, as far as the capture shows.
    pub reason: String,
}

/// A SYN that asked for the connection on another path and came second.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct AttemptReport {
    /// Address and port of the client, then of the server.
    pub endpoints: [String; 2],
    /// Time of the SYN.
    pub start_s: f64,
    /// Time from the SYN to its SYN/ACK at the place of the capture; absent without a reply in the capture.
    pub answered_after_ms: Option<f64>,
    /// Time of the client's RST; absent if there is none in the capture.
    pub reset_s: Option<f64>,
}

/// One subflow.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct SubflowReport {
    /// Number, from 0.
    pub number: u32,
    /// Address and port of the two sides of the connection.
    pub endpoints: [String; 2],
    /// Side that sent the SYN: index into `sides`.
    pub opened_by: Option<usize>,
    /// `MP_CAPABLE`, `MP_JOIN`, `inferred` (by data sequence numbers), `unknown`.
    pub origin: &'static str,
    /// Result of the handshake, with the reason of a failure.
    pub outcome: String,
    /// Address identifiers of the two sides.
    pub address_ids: [Option<u8>; 2],
    /// Backup flags in the MP_JOIN of the two sides.
    pub backup: [Option<bool>; 2],
    /// MP_JOIN authenticators of the two sides: `good`, `bad`, `unknown` (no keys), `not captured`.
    pub hmac: [Option<&'static str>; 2],
    /// Time at which it was first seen.
    pub start_s: f64,
    /// Time from the first to the last packet \[s\].
    pub duration_s: f64,
    /// Time from SYN to third ACK: a whole round trip wherever the capture was made.
    pub handshake_rtt_ms: Option<f64>,
    /// Part of this from the capture to the side that was opened and back.
    pub handshake_rtt_beyond_ms: Option<f64>,
    /// Time from data of each side, passing the capture, to its acknowledgment.
    pub data_rtt: [RttReport; 2],
    /// Traffic of each side.
    pub sent: [SubflowDirectionReport; 2],
    /// End of each side.
    pub ends: [Option<EndReport>; 2],
}

/// Round-trip times.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct RttReport {
    /// True if they span the whole path, because the packets were captured at both ends; else the way from the capture
    /// to the peer and back.
    pub whole_path: bool,
    /// Samples.
    pub samples: u64,
    /// Least.
    pub min_ms: Option<f64>,
    /// Middle.
    pub median_ms: Option<f64>,
}

/// Traffic of one side on one subflow.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct SubflowDirectionReport {
    /// All packets.
    pub packets: u64,
    /// Packets with data, repeats included.
    pub data_segments: u64,
    /// Bytes of the TCP stream, each once.
    pub bytes: u64,
    /// Bytes of the connection that came here first.
    pub data_bytes: u64,
    /// Their share of all bytes of this direction.
    pub share: Option<f64>,
    /// Bytes of the connection that had come before with another subflow sequence number.
    pub repeated_data_bytes: u64,
    /// Packets with bytes that had passed before.
    pub retransmitted_segments: u64,
    /// Those bytes.
    pub retransmitted_bytes: u64,
    /// Packets sent again after the first was lost before it came to the capture.
    pub retransmitted_unseen_segments: u64,
    /// Packets that others of the same subflow overtook.
    pub reordered_segments: u64,
    /// Keep-alives and window probes.
    pub keep_alives: u64,
    /// Bytes acknowledged that are not in the capture.
    pub missing_bytes: u64,
    /// Bytes without a mapping.
    pub unmapped_bytes: u64,
    /// Mappings.
    pub mappings: u64,
    /// Mappings that contradict earlier ones.
    pub conflicting_mappings: u64,
    /// DSS checksums that are right.
    pub dss_checksums_good: u64,
    /// DSS checksums that are wrong.
    pub dss_checksums_bad: u64,
    /// DSS checksums that cannot be verified.
    pub dss_checksums_unverifiable: u64,
    /// Packets with a wrong TCP or IP checksum.
    pub bad_tcp_checksums: u64,
    /// Times in which this side let its peer send nothing.
    pub zero_windows: u64,
    /// Their total duration.
    pub zero_window_s: f64,
}

/// End of a subflow by one side.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct EndReport {
    /// `FIN` or `RST`.
    pub kind: &'static str,
    /// Time of the end \[s\].
    pub at_s: f64,
    /// Reason of MP_TCPRST (RFC 8684 §3.6).
    pub reason: Option<String>,
    /// Code of the reason.
    pub reason_code: Option<u8>,
    /// Its T flag: trying again later may work.
    pub transient: Option<bool>,
    /// The RST carried MP_FASTCLOSE.
    pub fast_close: bool,
}

/// Data of one side at the data level.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct DirectionReport {
    /// Index into `sides`.
    pub from: usize,
    /// Bytes, each once.
    pub bytes: u64,
    /// Time from the first byte to the last.
    pub duration_s: Option<f64>,
    /// Bytes over that time.
    pub goodput_mbit_s: Option<f64>,
    /// Bytes that have passed without a mapping, so that their place is not known.
    pub unmapped_bytes: u64,
    /// Bytes acknowledged at the data level that are not in the capture.
    pub missing_bytes: u64,
    /// Bytes acknowledged in a direction whose data is not in the capture.
    pub acknowledged_unseen_bytes: Option<u64>,
    /// Time at which the DATA_FIN was first seen.
    pub data_fin_s: Option<f64>,
    /// True if it was acknowledged.
    pub data_fin_acknowledged: bool,
    /// Segments with new bytes.
    pub segments: u64,
    /// Segments of these that arrived above the first missing byte.
    pub out_of_order_segments: u64,
    /// Their bytes.
    pub out_of_order_bytes: u64,
    /// Largest distance from the first missing byte to a segment's end.
    pub reorder_depth_max_bytes: u64,
    /// Mean of this distance over the segments out of order.
    pub reorder_depth_mean_bytes: Option<f64>,
    /// Most bytes that waited behind missing ones at one time.
    pub held_max_bytes: u64,
    /// Stretches of missing bytes with later ones before them.
    pub gaps: u64,
    /// Time in which any was open: bytes that had come waited behind missing ones.
    pub hol_blocked_s: f64,
    /// The longest, longest first.
    pub longest_gaps: Vec<GapReport>,
    /// Bytes sent a second time with another subflow sequence number, by pair of subflows.
    pub reinjections: Vec<ReinjectionReport>,
}

/// A stretch of missing bytes.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct GapReport {
    /// Time at which later bytes came.
    pub at_s: f64,
    /// Time until it was filled.
    pub duration_ms: f64,
    /// Data sequence number of the first missing byte, relative to the IDSN if that is known, else to the first seen.
    pub dsn: i64,
    /// Missing bytes.
    pub bytes: u64,
    /// The subflow on which its last bytes came.
    pub filled_by: Option<u32>,
    /// `filled`, `not in the capture` (it was acknowledged), `open` (when the capture ended).
    pub end: &'static str,
}

/// Bytes carried twice.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ReinjectionReport {
    /// The subflow that carried them first; absent if it is too long ago.
    pub first_on: Option<u32>,
    /// The subflow that carried them again.
    pub again_on: u32,
    /// Segments.
    pub segments: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes of these that were acknowledged at the data level already.
    pub already_acknowledged_bytes: u64,
    /// Mean delay after the first transmission.
    pub mean_delay_ms: f64,
}

/// A signal.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct SignalReport {
    /// Time at which it first passed.
    pub at_s: f64,
    /// Index into `sides`.
    pub from: usize,
    /// Number of the subflow on which it passed.
    pub subflow: u32,
    /// `ADD_ADDR`, `ADD_ADDR echo`, `REMOVE_ADDR`, `MP_PRIO`, `MP_FAIL`, `MP_FASTCLOSE`, `infinite mapping`; without a
    /// handshake `MP_TCPRST` as well.
    pub kind: &'static str,
    /// Content of the signal.
    pub text: String,
    /// The authenticator of ADD_ADDR, the key of MP_FASTCLOSE: `good`, `bad`, `unknown`.
    pub verified: Option<&'static str>,
    /// Times it passed.
    pub count: u64,
}

/// A TCP connection that is no subflow.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PlainReport {
    /// Address and port of the two sides; the first sent the SYN, if that is known.
    pub endpoints: [String; 2],
    /// True if the first side is known to have opened the connection.
    pub opener_known: bool,
    /// Time at which it was first seen.
    pub start_s: f64,
    /// Time from the first to the last packet \[s\].
    pub duration_s: f64,
    /// Time from SYN to third ACK.
    pub handshake_rtt_ms: Option<f64>,
    /// Bytes that each side sent, each once.
    pub bytes: [u64; 2],
    /// Packets with bytes that had passed before.
    pub retransmitted_segments: [u64; 2],
    /// Packets whose options were cut by the capture: there may have been MPTCP in them.
    pub options_cut_packets: u64,
    /// Fallback, if MPTCP was offered.
    pub fallback: Option<FallbackReport>,
    /// Verdict on the MP_JOIN, if one was seen.
    pub join: Option<String>,
    /// Packets with an option of MPTCP.
    pub mptcp_packets: u64,
    /// Signals of MPTCP, in the order of time, where the handshake of their connection is not in the capture. Keys are
    /// then not known, so none is verified.
    pub signals: Vec<SignalReport>,
}

impl PlainReport {
    /// Returns true if its packets have options of MPTCP that tell of no offer, so that its handshake was missed.
    pub fn is_orphan(&self) -> bool {
        self.mptcp_packets > 0 && self.fallback.is_none() && self.join.is_none()
    }

    /// Says what its options of MPTCP tell, if its handshake was missed.
    pub fn orphan_words(&self) -> Vec<String> {
        if !self.is_orphan() {
            return Vec::new();
        }
        let of_signal = |it: &SignalReport| {
            let times = if it.count > 1 { format!(" ({} times)", it.count) } else { String::new() };
            format!("{} from {}: {}{times}", it.kind, self.endpoints[it.from], it.text)
        };
        let mut words: Vec<String> = self.signals.iter().map(of_signal).collect();
        if words.is_empty() {
            let packets = if self.mptcp_packets == 1 { "packet has" } else { "packets have" };
            words.push(format!("{} {packets} options of MPTCP", self.mptcp_packets));
        }
        words
    }
}
