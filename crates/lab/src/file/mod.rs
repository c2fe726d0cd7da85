//! A scenario file as it is written: its tables and keys. The JSON schema is made from these types and their comments.
//!
//! What the types cannot say (of `rate` and `down` only one, a `via` that names a link) is checked when the file is
//! resolved.

mod buffer;
mod middlebox;
mod page;
mod policy;
mod value;

pub use buffer::ReceiveBuffer;
pub use middlebox::{
    EndName, MiddleboxTable, SplitName, StrippedName, StrippedOptionsName, SynOptionName, UnmappedName,
};
pub use page::{PageSource, PageTable};
pub use policy::Policy;
pub use value::{At, Bounds, Loss, LossTable, Of, OrOff, Quantity, Share, Speed, Unit};

use crate::quantity::Queue;
use anabranch_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An Anabranch scenario: paths, hosts, what is sent, and what happens meanwhile.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Scenario")]
pub struct File {
    /// One line on what this is for.
    pub about: Option<String>,
    /// Every TCP segment travels as the bytes of a packet; false unless given. Results are the same.
    pub codec: Option<bool>,
    /// How many clients there are; 1 unless given. Each has a server and copies of all paths, links and workloads of its own,
    /// which draw from streams of their own; changes are the same for all. Results add up.
    pub clients: Option<At<usize>>,
    /// The paths between the hosts, by name.
    pub path: BTreeMap<String, At<PathTable>>,
    /// Links that several paths cross, by name.
    #[serde(default)]
    pub link: BTreeMap<String, At<LinkTable>>,
    /// Both hosts.
    #[serde(default)]
    pub host: HostTable,
    /// The host that opens connections, where it differs from `host`.
    #[serde(default)]
    pub client: HostTable,
    /// The host that accepts connections, where it differs from `host`.
    #[serde(default)]
    pub server: HostTable,
    /// What is sent.
    pub workload: Vec<At<WorkloadTable>>,
    /// What happens to links and policies in the course of the run.
    #[serde(default)]
    pub change: Vec<At<ChangeTable>>,
    /// How often and how long it is run.
    #[serde(default)]
    pub run: RunTable,
}

/// A path, from the client's address on it to the server and back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PathTable {
    /// Both directions; or else `down` and `up`.
    pub rate: Option<Of<Speed>>,
    /// From server to client.
    pub down: Option<Of<Speed>>,
    /// From client to server.
    pub up: Option<Of<Speed>>,
    /// One way; or else `rtt`.
    pub delay: Option<Of<Duration>>,
    /// There and back.
    pub rtt: Option<Of<Duration>>,
    /// Each packet is delayed further by up to this, evenly.
    pub jitter: Option<Of<Duration>>,
    /// Whether jitter may reorder packets; false unless given.
    pub jitter_reorders: Option<bool>,
    /// Loss, both ways unless `loss-up` is given.
    pub loss: Option<At<Loss>>,
    /// Loss from client to server.
    pub loss_up: Option<At<Loss>>,
    /// What the queue of each direction holds; 100p unless given.
    pub queue: Option<Of<Queue>>,
    /// Packets under delay count as queued, as with the limit of Linux' netem; needs a queue in packets. False unless
    /// given.
    pub queue_counts_delay: Option<At<bool>>,
    /// Some packets fall behind.
    pub reorder: Option<ReorderTable>,
    /// How likely a packet arrives twice.
    pub duplicate: Option<Of<Share>>,
    /// How likely a packet arrives damaged.
    pub corrupt: Option<Of<Share>>,
    /// The rate of the hosts' network interface on this path, before the path's own links: enables TCP Small Queues.
    pub nic: Option<Of<Rate>>,
    /// The name of a `[link.NAME]` that this path crosses too.
    pub via: Option<At<String>>,
    /// What is drawn anew in the course of the run.
    pub vary: Option<At<VaryTable>>,
    /// Used only when no other path works.
    pub backup: Option<bool>,
    /// Middleboxes on the path, in the order from the client to the server; see `anabranch list middleboxes`.
    #[serde(default)]
    pub middlebox: Vec<At<MiddleboxTable>>,
}

/// What of a path is drawn from the seed of the run, evenly between two bounds: the same for whatever is compared. Both directions
/// are alike; what is not given here stays as the path has it, and a queue in bandwidth-delay products stays that of the path's own
/// rate and delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VaryTable {
    /// Rate and delay are drawn anew this often; once, at the beginning of the run, unless given.
    pub every: Option<Of<Duration>>,
    /// Least and most, in place of `rate`.
    pub rate: Option<Bounds<Rate>>,
    /// One way, least and most; or else `rtt`.
    pub delay: Option<Bounds<Duration>>,
    /// There and back, least and most.
    pub rtt: Option<Bounds<Duration>>,
    /// Least and most, drawn once per run, in place of `loss`.
    pub loss: Option<Bounds<Share>>,
}

/// A link that several paths cross.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkTable {
    /// Both directions; or else `down` and `up`.
    pub rate: Option<Of<Speed>>,
    /// From server to client.
    pub down: Option<Of<Speed>>,
    /// From client to server.
    pub up: Option<Of<Speed>>,
    /// One way; none unless given.
    pub delay: Option<Of<Duration>>,
    /// Loss, both ways unless `loss-up` is given.
    pub loss: Option<At<Loss>>,
    /// Loss from client to server.
    pub loss_up: Option<At<Loss>>,
    /// What the queue of each direction holds, in packets or bytes; 100p unless given.
    pub queue: Option<Of<Queue>>,
    /// Packets under delay count as queued, as with the limit of Linux' netem; needs a queue in packets. False unless
    /// given.
    pub queue_counts_delay: Option<At<bool>>,
}

/// Packets that fall behind.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReorderTable {
    /// How likely.
    pub probability: Of<Share>,
    /// By how much.
    pub delay: Of<Duration>,
}

/// A host: the profile it starts from, single knobs, buffers and policies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostTable {
    /// The stack it resembles: anabranch (our own, the default), linux, linux-4.1, linux-3.14, newreno, mptcp-ns3 or
    /// rfc; see docs/stacks.md.
    pub profile: Option<At<String>>,
    /// Scheduler: chooses a subflow for each segment; the profile's unless given.
    pub scheduler: Option<At<Policy>>,
    /// How much may be in flight.
    pub congestion: Option<At<Policy>>,
    /// How the peer's window is shared out among subflows.
    pub window: Option<At<Policy>>,
    /// Which path an ACK takes.
    pub ack_path: Option<At<Policy>>,
    /// Pure ACKs may take another subflow's path, with addresses rewritten, if both hosts have this: what the ACK paths fixed
    /// and probed need. Not part of MPTCP; false unless given.
    pub ack_rewrite: Option<bool>,
    /// Every sixteenth ACK keeps its own path all the same, and all do where the other path loses them; true unless given. Without
    /// it an ACK path that dies silences the other subflows until the policy leaves it, as in the paper.
    pub ack_caution: Option<bool>,
    /// Reinjection policy: repeats bytes in flight on another subflow; the profile's unless given.
    pub reinjection: Option<At<Policy>>,
    /// First-path policy: chooses the path on which a connection begins. The client's counts; the profile's unless
    /// given.
    pub first_path: Option<At<Policy>>,
    /// Bytes written and not yet acknowledged, per connection; 6MiB unless given, and not less than the other host's
    /// receive buffer, as RFC 8684 §3.3.5 wants it.
    pub send_buffer: Option<Of<Bytes>>,
    /// Bytes received and not yet read, per connection: of a fixed size, or one that tunes itself.
    pub receive_buffer: Option<At<ReceiveBuffer>>,
    /// False for plain TCP.
    pub multipath: Option<bool>,
    /// Subflows per connection.
    pub max_subflows: Option<At<usize>>,
    /// The client joins from every address of its own to every address of the server.
    pub full_mesh: Option<bool>,
    /// Further addresses are announced (ADD_ADDR).
    pub announce: Option<bool>,
    /// DSS checksums, which show what altered payload on the way; used if either host has them.
    pub dss_checksum: Option<bool>,
    /// The path of a dead subflow is tried again after this; or false.
    pub rejoin: Option<OrOff>,
    /// How many addresses the server has; the client has one per path.
    pub addresses: Option<At<usize>>,
    /// The MSS option in bytes: 1460 in packets of 1500.
    pub mss: Option<At<u16>>,
    /// Initial window in segments.
    pub initial_window: Option<u32>,
    /// Selective acknowledgments.
    pub sack: Option<bool>,
    /// Timestamps.
    pub timestamps: Option<bool>,
    /// Window scaling.
    pub window_scaling: Option<bool>,
    /// RACK loss detection.
    pub rack: Option<bool>,
    /// Tail loss probes.
    pub tlp: Option<bool>,
    /// Early retransmit.
    pub early_retransmit: Option<bool>,
    /// ACKs wait at most this long; or false.
    pub delayed_ack: Option<OrOff>,
    /// Segments acknowledged at once at the start.
    pub quick_acks: Option<u32>,
    /// Short segments wait for an ACK.
    pub nagle: Option<bool>,
    /// The rule for the retransmission timeout.
    pub rto: Option<RtoName>,
    /// Its floor: under `rfc6298` and `mptcp-ns3` of the whole timeout, under `linux` of its variance term.
    pub min_rto: Option<Of<Duration>>,
    /// The timeout before the first RTT sample.
    pub initial_rto: Option<Of<Duration>>,
    /// The longest timeout.
    pub max_rto: Option<Of<Duration>>,
    /// The window shrinks in idle times.
    pub idle_restart: Option<bool>,
    /// The window grows only while it is the limit.
    pub cwnd_limited_check: Option<bool>,
    /// TCP Small Queues: how much time's worth may wait at the first hop; or false.
    pub tsq: Option<OrOff>,
    /// Full segments that may wait at the first hop whatever `tsq` says: 2, under linux-4.1 3, under linux-3.14 57.
    pub tsq_segments: Option<At<u32>>,
    /// Growth of a receive buffer that tunes itself: proportional, under linux-4.1 and linux-3.14 stepwise.
    pub receive_tuning: Option<ReceiveTuningName>,
    /// Share of the receive buffer that is window, as Linux' tcp_adv_win_scale: 1 half of it, 2 three quarters, -2 a
    /// quarter. All of it unless given, under linux-4.1 and linux-3.14 half.
    pub adv_win_scale: Option<At<i8>>,
    /// The slow-start threshold of new subflows in segments, as remembered from earlier connections; none unless given.
    pub initial_ssthresh: Option<At<u32>>,
    /// A subflow begins with the slow-start threshold and the path's rate that an earlier one of its connection left on
    /// its path (RFC 9040). False.
    pub temporal_sharing: Option<bool>,
    /// End of slow start before a loss: in CUBIC eighth, under linux-3.14 sixteenth, off under all but Linux; or
    /// plus-plus in all.
    pub hystart: Option<HyStartName>,
    /// Proportional rate reduction (RFC 6937): the window falls in the course of a fast recovery rather than at its
    /// beginning. True, false under all but Linux.
    pub prr: Option<bool>,
    /// Fall of the window on a loss: standard, under mptcp-ns3 halve.
    pub loss_response: Option<LossResponseName>,
    /// Without SACK, a third duplicate ACK and a timeout repeat one segment each, and nothing else does. False, under
    /// mptcp-ns3 true.
    pub single_repair: Option<bool>,
    /// Data ahead of the stream is not acknowledged on its subflow until the stream has caught up. False, under
    /// mptcp-ns3 true.
    pub coupled_acks: Option<bool>,
    /// How often a SYN is repeated.
    pub syn_retries: Option<u32>,
    /// Timeouts in a row that kill a subflow.
    pub max_consecutive_rtos: Option<u32>,
}

/// Rules for the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoName {
    /// SRTT and a variance term with a floor of its own.
    Linux,
    /// RFC 6298 with a floor on the whole.
    Rfc6298,
    /// Twice the RTT while it is steady, with a floor on the whole.
    MptcpNs3,
}

impl RtoName {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            RtoName::Linux => "linux",
            RtoName::Rfc6298 => "rfc6298",
            RtoName::MptcpNs3 => "mptcp-ns3",
        }
    }
}

/// Rules for the growth of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveTuningName {
    /// Ahead by twice the relative growth of what is read in a round trip (Linux 4.16 and later).
    Proportional,
    /// Half as much again if a quarter more is read in a round trip, twice as much if half more is (Linux 3.14 to
    /// 4.15).
    Stepwise,
}

/// Fall of the congestion window on a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossResponseName {
    /// As congestion control says, from what was in flight where the window was no limit; to one segment on a timeout
    /// (RFC 5681).
    Standard,
    /// As `standard`, but always from the window (Linux).
    Linux,
    /// To half of it on a fast retransmit and on each timeout; slow start does not come back.
    Halve,
}

impl HyStartName {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            HyStartName::Off => "off",
            HyStartName::Sixteenth => "sixteenth",
            HyStartName::Eighth => "eighth",
            HyStartName::PlusPlus => "plus-plus",
        }
    }
}

impl ReceiveTuningName {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            ReceiveTuningName::Proportional => "proportional",
            ReceiveTuningName::Stepwise => "stepwise",
        }
    }
}

impl LossResponseName {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            LossResponseName::Standard => "standard",
            LossResponseName::Linux => "linux",
            LossResponseName::Halve => "halve",
        }
    }
}

/// HyStart, by the share of the least RTT that the RTT must rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HyStartName {
    /// Slow start ends by a loss.
    Off,
    /// A sixteenth (Linux before 3.19).
    Sixteenth,
    /// An eighth (Linux 3.19 and later).
    Eighth,
    /// HyStart++ (RFC 9406): an eighth over the round trip before, and a slower slow start first. For all congestion
    /// control that is not model-based.
    PlusPlus,
}

/// Something that is sent. Which keys there are depends on `kind`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkloadTable {
    /// What kind of workload.
    pub kind: WorkloadKind,
    /// down (from server to client) unless given.
    pub direction: Option<At<DirectionName>>,
    /// When it begins; 0s unless given.
    pub start: Option<Of<Duration>>,
    /// bulk, tcp: for how long. interactive: of a generated session; 60s unless given.
    pub duration: Option<Of<Duration>>,
    /// files, bursts, tcp: of each.
    pub size: Option<Of<Bytes>>,
    /// files, bursts: how many; 1 unless given.
    pub count: Option<At<usize>>,
    /// files: of each one, in place of `size` and `count`.
    pub sizes: Option<At<Vec<Unit<Bytes>>>>,
    /// files: each on its own connection, without waiting for one another; all at once unless `interval` is given.
    pub concurrent: Option<At<bool>>,
    /// files: one after the other on one connection; or, with `concurrent`, on connections over which `warm-up` has
    /// gone before.
    pub warm: Option<At<bool>>,
    /// files: from the end of one, or of the warm-up of all, to the beginning of the next.
    pub think: Option<Of<Duration>>,
    /// bursts, concurrent files: from the beginning of one to the beginning of the next; of files on average.
    pub interval: Option<Of<Duration>>,
    /// bursts, warm files: sent before the first one, over each connection, and not reported.
    pub warm_up: Option<Of<Bytes>>,
    /// web: what is loaded.
    pub page: Option<At<PageSource>>,
    /// web: http1 unless given.
    pub protocol: Option<At<ProtocolName>>,
    /// web over http1: connections that may be open at once; 6 unless given.
    pub connections: Option<At<usize>>,
    /// interactive: a file whose lines say when an object is asked for, in seconds after `start`, and its size in bytes; a generated
    /// session unless given: every 3 s +/- 1 s 8 to 20 objects of 5 to 40 kB within 300 ms.
    pub trace: Option<At<String>>,
    /// interactive: which session is generated; 1 unless given. All runs have the same one.
    pub trace_seed: Option<At<u64>>,
    /// udp, tcp: the path it takes.
    pub path: Option<At<String>>,
    /// udp: while it is on.
    pub rate: Option<Of<Rate>>,
    /// udp: size of a packet with its headers; 1500B unless given.
    pub packet: Option<Of<Bytes>>,
    /// udp, concurrent files: how the gaps between packets, or between beginnings, are chosen; even unless given.
    pub spacing: Option<At<SpacingName>>,
    /// udp: how long it is on, on average, before it is `off`; always unless given.
    pub on: Option<Of<Duration>>,
    /// udp: how long it is off, on average, before it is `on` again.
    pub off: Option<Of<Duration>>,
    /// udp: how the times `on` and `off` are chosen; even unless given.
    pub phases: Option<At<SpacingName>>,
    /// udp: when it ends; with the run unless given.
    pub stop: Option<Of<Duration>>,
    /// tcp: files of `size` back to back until the run ends.
    pub repeat: Option<At<bool>>,
    /// tcp: its congestion control; cubic unless given.
    pub congestion: Option<At<Policy>>,
}

/// How objects of a page are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolName {
    /// HTTP/1.1: several persistent connections, one request at a time on each.
    Http1,
    /// HTTP/2: one connection, on which answers are interleaved frame by frame.
    Http2,
}

/// Gaps between packets, or times on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpacingName {
    /// All alike.
    Even,
    /// Each drawn evenly between nothing and twice the mean.
    Uniform,
    /// Each drawn from the exponential distribution; gaps are then those of a Poisson process.
    Exponential,
}

/// Kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// As much as possible for a time.
    Bulk,
    /// Files of given sizes.
    Files,
    /// Bursts on a warm connection.
    Bursts,
    /// A web page, loaded once.
    Web,
    /// Objects asked for as a user acts, over HTTP/2 on one connection that is open already.
    Interactive,
    /// On-off UDP beside the hosts under test.
    Udp,
    /// Competing single-path TCP.
    Tcp,
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectionName {
    /// From server to client.
    Down,
    /// From client to server.
    Up,
}

/// A change to the links of a path, or to the policies of the hosts, while the run goes on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChangeTable {
    /// When.
    pub at: Of<Duration>,
    /// The path or shared link that changes.
    pub path: Option<At<String>>,
    /// One direction only; both unless given.
    pub direction: Option<DirectionName>,
    /// Another rate or trace.
    pub rate: Option<Of<Speed>>,
    /// Another one-way delay.
    pub delay: Option<Of<Duration>>,
    /// Another jitter.
    pub jitter: Option<Of<Duration>>,
    /// Another loss.
    pub loss: Option<At<Loss>>,
    /// It dies or comes back.
    pub state: Option<StateName>,
    /// Whether the client's interface sees the carrier go and come (`state = "down"` and `"up"`); true unless given.
    pub notify: Option<At<bool>>,
    /// The host whose policies change; both unless given.
    pub host: Option<At<HostName>>,
    /// Another scheduler, from here on.
    pub scheduler: Option<At<Policy>>,
    /// Another congestion control; the windows stay as they are.
    pub congestion: Option<At<Policy>>,
    /// Another way to share out the peer's window.
    pub window: Option<At<Policy>>,
    /// Another rule for the path of ACKs.
    pub ack_path: Option<At<Policy>>,
    /// Another rule for what is repeated on other subflows.
    pub reinjection: Option<At<Policy>>,
    /// Another rule for where connections begin from here on.
    pub first_path: Option<At<Policy>>,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostName {
    /// The one that opens connections.
    Client,
    /// The one that accepts them.
    Server,
}

/// Life and death of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateName {
    /// The carrier goes: everything inside and everything sent is dropped.
    Down,
    /// The carrier comes back.
    Up,
    /// Packets leave and never arrive; nobody is told.
    Blackhole,
    /// All is as it was: the end of a black hole, and the carrier comes back if it had gone.
    Restore,
}

/// How often and how long it is run, and what counts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunTable {
    /// The seed of the first repetition, which fixes every draw; 1 unless given.
    pub seed: Option<u64>,
    /// Repetitions of a comparison, each with the next seed; 20 unless given.
    pub repeat: Option<At<usize>>,
    /// A run ends here even if transfers are not through; 60s unless given.
    pub stop: Option<Of<Duration>>,
    /// Each repetition begins at a moment of this span drawn from its seed, workloads and changes alike, so that
    /// repetitions meet different parts of a recorded trace; 0s unless given.
    pub spread: Option<Of<Duration>>,
    /// What ranks: page-load-time if there are web pages, else completion-time if there are files, bursts or
    /// objects, goodput otherwise, unless given.
    pub measure: Option<At<MeasureName>>,
    /// The path that is listed first; the first in the file unless given. The first subflow is there with the
    /// first-path policy as-listed.
    pub primary: Option<At<String>>,
    /// Schedulers that forecast are told the true mean loss rate of each path.
    pub loss_oracle: Option<bool>,
    /// The state of the run is noted this often and kept as series: what is acknowledged, out of order, buffered, and each path's
    /// bytes, congestion windows and queue.
    pub sample: Option<Of<Duration>>,
    /// Spans of the run over which goodput is measured as well, each from and to: [["5s", "60s"]].
    pub windows: Option<Vec<Bounds<Duration>>>,
    /// Which path each segment took when it was first sent is kept as a text.
    pub decisions: Option<bool>,
}

/// What can rank schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureName {
    /// Mean time from the opening of a file or burst, or the request of an object, to its last byte; less is better.
    CompletionTime,
    /// Payload bits per second, all transfers together; more is better.
    Goodput,
    /// Mean time from the first request of a page until all of it is there and processed; less is better.
    PageLoadTime,
}

impl MeasureName {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            MeasureName::CompletionTime => "completion time",
            MeasureName::Goodput => "goodput",
            MeasureName::PageLoadTime => "page load time",
        }
    }
}
