//! Scenario file as written: its tables and keys. The JSON schema is made from these types and their comments.
//!
//! Constraints between keys (only one of `rate` and `down`; a `via` must name a link) are checked when the file is
//! resolved.

mod buffer;
mod host;
mod middlebox;
mod page;
mod policy;
mod recording;
mod value;

pub use buffer::ReceiveBuffer;
pub use host::{Assignment, HostTable};
pub use middlebox::{EndName, MiddleboxTable};
pub use page::{PageSource, PageTable};
pub use policy::Policy;
pub use recording::{ColumnName, FileName, Recordable, RecordingTable};
pub use value::{At, Bounds, Loss, LossTable, Of, OrOff, Quantity, Share, Speed, Unit};

use crate::model::Model;
use anabranch_units::quantity::Queue;
use anabranch_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An Anabranch scenario: paths, hosts, workloads, and changes during the run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Scenario")]
pub struct File {
    /// Purpose of the scenario, in one line.
    pub about: Option<String>,
    /// Encodes and parses every TCP segment as the bytes of a packet; false unless given. Results are the same.
    pub codec: Option<bool>,
    /// Number of clients; 1 unless given. Each has its own server and its own copies of all paths, links and workloads,
    /// which draw from random streams of their own. Changes are the same for all. Results add up.
    pub clients: Option<At<usize>>,
    /// The paths between the hosts, by name.
    pub path: BTreeMap<String, At<PathTable>>,
    /// Links that several paths cross, by name.
    #[serde(default)]
    pub link: BTreeMap<String, At<LinkTable>>,
    /// Settings of both hosts.
    #[serde(default)]
    pub host: HostTable,
    /// Settings of the host that opens connections, where they differ from `host`.
    #[serde(default)]
    pub client: HostTable,
    /// Settings of the host that accepts connections, where they differ from `host`.
    #[serde(default)]
    pub server: HostTable,
    /// Data that is sent.
    pub workload: Vec<At<WorkloadTable>>,
    /// Changes to links and policies during the run.
    #[serde(default)]
    pub change: Vec<At<ChangeTable>>,
    /// Seed, repetitions, duration and measurements.
    #[serde(default)]
    pub run: RunTable,
}

/// A path, from the client's address on it to the server and back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PathTable {
    /// Rate of both directions; or else `down` and `up`.
    pub rate: Option<At<Recordable<Speed>>>,
    /// Rate from server to client.
    pub down: Option<At<Recordable<Speed>>>,
    /// Rate from client to server.
    pub up: Option<At<Recordable<Speed>>>,
    /// One-way delay; or else `rtt`.
    pub delay: Option<At<Recordable<Duration>>>,
    /// Recording of the path. Its rate is that of the directions for which the path has no other; its delay and loss
    /// count unless the path has its own.
    pub trace: Option<At<Recordable<FileName>>>,
    /// Model of the path, by name or with parameters. As with a recording, what the path states itself counts.
    pub model: Option<At<Model>>,
    /// Round-trip delay.
    pub rtt: Option<Of<Duration>>,
    /// Maximum of an additional delay of each packet, drawn uniformly from 0.
    pub jitter: Option<Of<Duration>>,
    /// Jitter may reorder packets; false unless given.
    pub jitter_reorders: Option<bool>,
    /// Loss in both directions, or only from server to client if `loss-up` is given.
    pub loss: Option<At<Loss>>,
    /// Loss from client to server.
    pub loss_up: Option<At<Loss>>,
    /// Capacity of the queue in each direction; unless given that of the discipline: 100p of drop-tail.
    pub queue: Option<Of<Queue>>,
    /// Discipline of the queue in each direction, or only from server to client if `discipline-up` is given; drop-tail
    /// unless given.
    pub discipline: Option<At<Policy>>,
    /// Discipline of the queue from client to server.
    pub discipline_up: Option<At<Policy>>,
    /// Packets under delay count as queued, as with the limit of Linux' netem; needs a queue in packets. False unless
    /// given.
    pub queue_counts_delay: Option<At<bool>>,
    /// Delays some packets so that later ones overtake them.
    pub reorder: Option<ReorderTable>,
    /// Probability that a packet arrives twice.
    pub duplicate: Option<Of<Share>>,
    /// Probability that a packet arrives damaged.
    pub corrupt: Option<Of<Share>>,
    /// Rate of the hosts' network interface on this path, before the path's own links. Enables TCP Small Queues.
    pub nic: Option<Of<Rate>>,
    /// Name of a `[link.NAME]` that this path crosses too.
    pub via: Option<At<String>>,
    /// Properties drawn at random during the run.
    pub vary: Option<At<VaryTable>>,
    /// Used only when no other path works.
    pub backup: Option<bool>,
    /// Middleboxes on the path, in the order from the client to the server; see `anabranch list middleboxes`.
    #[serde(default)]
    pub middlebox: Vec<At<MiddleboxTable>>,
}

/// Properties of a path that are drawn from the seed of the run, uniformly between two bounds. All candidates of a
/// comparison meet the same draws. Both directions are alike. A key that is not given keeps the path's value; a queue
/// in bandwidth-delay products stays that of the path's own rate and delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VaryTable {
    /// Interval between draws of rate and delay; one draw at the beginning of the run unless given.
    pub every: Option<Of<Duration>>,
    /// Minimum and maximum rate, in place of `rate`.
    pub rate: Option<Bounds<Rate>>,
    /// Minimum and maximum one-way delay; or else `rtt`.
    pub delay: Option<Bounds<Duration>>,
    /// Minimum and maximum round-trip delay.
    pub rtt: Option<Bounds<Duration>>,
    /// Minimum and maximum loss, drawn once per run, in place of `loss`.
    pub loss: Option<Bounds<Share>>,
}

/// A link that several paths cross.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkTable {
    /// Rate of both directions; or else `down` and `up`.
    pub rate: Option<At<Recordable<Speed>>>,
    /// Rate from server to client.
    pub down: Option<At<Recordable<Speed>>>,
    /// Rate from client to server.
    pub up: Option<At<Recordable<Speed>>>,
    /// One-way delay; none unless given.
    pub delay: Option<Of<Duration>>,
    /// Loss in both directions, or only from server to client if `loss-up` is given.
    pub loss: Option<At<Loss>>,
    /// Loss from client to server.
    pub loss_up: Option<At<Loss>>,
    /// Capacity of the queue in each direction, in packets or bytes; unless given that of the discipline: 100p of
    /// drop-tail.
    pub queue: Option<Of<Queue>>,
    /// Discipline of the queue in each direction, or only from server to client if `discipline-up` is given; drop-tail
    /// unless given.
    pub discipline: Option<At<Policy>>,
    /// Discipline of the queue from client to server.
    pub discipline_up: Option<At<Policy>>,
    /// Packets under delay count as queued, as with the limit of Linux' netem; needs a queue in packets. False unless
    /// given.
    pub queue_counts_delay: Option<At<bool>>,
}

/// Reordering by an additional delay of some packets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReorderTable {
    /// Probability that a packet is delayed.
    pub probability: Of<Share>,
    /// Additional delay.
    pub delay: Of<Duration>,
}

/// A workload. Its keys depend on `kind`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkloadTable {
    /// Kind of workload.
    pub kind: WorkloadKind,
    /// Direction of the data; down (from server to client) unless given.
    pub direction: Option<At<DirectionName>>,
    /// Time at which it begins; 0s unless given.
    pub start: Option<Of<Duration>>,
    /// bulk, tcp: duration. interactive: duration of a generated session; 60s unless given.
    pub duration: Option<Of<Duration>>,
    /// files, bursts, tcp: size of each transfer.
    pub size: Option<Of<Bytes>>,
    /// files, bursts: number of transfers; 1 unless given.
    pub count: Option<At<usize>>,
    /// files: size of each file, in place of `size` and `count`.
    pub sizes: Option<At<Vec<Unit<Bytes>>>>,
    /// files: each on its own connection, without waiting for one another; all at once unless `interval` is given.
    pub concurrent: Option<At<bool>>,
    /// files: one after the other on one connection; or, with `concurrent`, each on a connection that carried `warm-up`
    /// before.
    pub warm: Option<At<bool>>,
    /// files: pause from the end of one, or of the warm-up of all, to the beginning of the next.
    pub think: Option<Of<Duration>>,
    /// bursts, concurrent files: time from the beginning of one to the beginning of the next; of files on average.
    pub interval: Option<Of<Duration>>,
    /// bursts, warm files: amount sent before the first one, over each connection; it is not reported.
    pub warm_up: Option<Of<Bytes>>,
    /// web: the page that is loaded.
    pub page: Option<At<PageSource>>,
    /// web: protocol; http1 unless given.
    pub protocol: Option<At<ProtocolName>>,
    /// web over http1: maximum number of open connections; 6 unless given.
    pub connections: Option<At<usize>>,
    /// interactive: name of a file whose lines hold the time at which an object is requested, in seconds after `start`,
    /// and its size in bytes. Unless given, a generated session: every 3 s +/- 1 s 8 to 20 objects of 5 to 40 kB within
    /// 300 ms.
    pub trace: Option<At<String>>,
    /// interactive: seed of the generated session; 1 unless given. All runs have the same session.
    pub trace_seed: Option<At<u64>>,
    /// udp, tcp: path of the traffic.
    pub path: Option<At<String>>,
    /// udp: rate while it is on.
    pub rate: Option<Of<Rate>>,
    /// udp: size of a packet with its headers; 1500B unless given.
    pub packet: Option<Of<Bytes>>,
    /// udp, concurrent files: distribution of the gaps between packets, or between beginnings; even unless given.
    pub spacing: Option<At<SpacingName>>,
    /// udp: mean time that it is on before it is `off`; always on unless given.
    pub on: Option<Of<Duration>>,
    /// udp: mean time that it is off before it is `on` again.
    pub off: Option<Of<Duration>>,
    /// udp: distribution of the times `on` and `off`; even unless given.
    pub phases: Option<At<SpacingName>>,
    /// udp: time at which it ends; the end of the run unless given.
    pub stop: Option<Of<Duration>>,
    /// tcp: sends files of `size` back to back until the run ends.
    pub repeat: Option<At<bool>>,
    /// tcp: congestion control; cubic unless given.
    pub congestion: Option<At<Policy>>,
}

/// Protocol that fetches the objects of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolName {
    /// HTTP/1.1: several persistent connections, one request at a time on each.
    Http1,
    /// HTTP/2: one connection, on which responses are interleaved frame by frame.
    Http2,
}

/// Distribution of gaps between packets, or of times on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpacingName {
    /// All equal.
    Even,
    /// Drawn uniformly between 0 and twice the mean.
    Uniform,
    /// Drawn from the exponential distribution: a Poisson process.
    Exponential,
}

/// Kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// As much data as possible for a time.
    Bulk,
    /// Files of given sizes.
    Files,
    /// Bursts on a warm connection.
    Bursts,
    /// Web page, loaded once.
    Web,
    /// Objects requested as a user acts, over HTTP/2 on one connection that is already open.
    Interactive,
    /// On-off UDP cross traffic.
    Udp,
    /// Competing single-path TCP.
    Tcp,
}

/// Direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectionName {
    /// From server to client.
    Down,
    /// From client to server.
    Up,
}

/// A change to the links of a path, or to the policies of the hosts, during the run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChangeTable {
    /// Time of the change.
    pub at: Of<Duration>,
    /// Path or shared link that changes.
    pub path: Option<At<String>>,
    /// One direction only; both unless given.
    pub direction: Option<DirectionName>,
    /// New rate or trace.
    pub rate: Option<At<Recordable<Speed>>>,
    /// New one-way delay.
    pub delay: Option<Of<Duration>>,
    /// New jitter.
    pub jitter: Option<Of<Duration>>,
    /// New loss.
    pub loss: Option<At<Loss>>,
    /// New state of the link.
    pub state: Option<StateName>,
    /// The client's interface sees the carrier go and come (`state = "down"` and `"up"`); true unless given.
    pub notify: Option<At<bool>>,
    /// Host whose policies change; both unless given.
    pub host: Option<At<HostName>>,
    /// New scheduler.
    pub scheduler: Option<At<Policy>>,
    /// New congestion control; the windows stay as they are.
    pub congestion: Option<At<Policy>>,
    /// New window policy: division of the peer's window among subflows.
    pub window: Option<At<Policy>>,
    /// New ACK path policy.
    pub ack_path: Option<At<Policy>>,
    /// New reinjection policy.
    pub reinjection: Option<At<Policy>>,
    /// New first-path policy, for later connections.
    pub first_path: Option<At<Policy>>,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostName {
    /// Host that opens connections.
    Client,
    /// Host that accepts connections.
    Server,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateName {
    /// The carrier goes: packets inside, and packets sent from now on, are dropped.
    Down,
    /// The carrier comes back.
    Up,
    /// Packets leave and never arrive; the hosts get no notice.
    Blackhole,
    /// Ends a black hole, and brings back the carrier if it had gone.
    Restore,
}

/// Seed, repetitions, duration and measurements of the runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunTable {
    /// Seed of the first repetition, which fixes every draw; 1 unless given.
    pub seed: Option<u64>,
    /// Repetitions of a comparison, each with the next seed; 20 unless given.
    pub repeat: Option<At<usize>>,
    /// Time at which a run ends even if transfers have not completed; a minute after the last beginning or end that its
    /// workloads state unless given.
    pub stop: Option<Of<Duration>>,
    /// Each repetition begins at a time in this span drawn from its seed, workloads and changes alike, so that
    /// repetitions meet different parts of a recorded trace; 0s unless given.
    pub spread: Option<Of<Duration>>,
    /// Measure that ranks; unless given, page-load-time if there are web pages, else completion-time if there are
    /// files, bursts or objects, else goodput.
    pub measure: Option<At<MeasureName>>,
    /// Path that is listed first; the first in the file unless given. The first subflow is there with the first-path
    /// policy as-listed.
    pub primary: Option<At<String>>,
    /// Gives the true mean loss rate of each path to schedulers that forecast.
    pub loss_oracle: Option<bool>,
    /// Interval at which the state of the run is sampled and kept as series: bytes acknowledged, out of order and
    /// buffered, and each path's bytes, congestion windows and queue.
    pub sample: Option<Of<Duration>>,
    /// Spans of the run over which goodput is measured as well, each from and to: [["5s", "60s"]].
    pub windows: Option<Vec<Bounds<Duration>>>,
    /// Keeps as a text the path on which each segment was first sent.
    pub decisions: Option<bool>,
}

/// Measures that can rank schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureName {
    /// Mean time from the opening of a file or burst, or the request of an object, to its last byte; less is better.
    CompletionTime,
    /// Payload bits per second, all transfers together; more is better.
    Goodput,
    /// Mean time from the first request of a page until all of it has arrived and is processed; less is better.
    PageLoadTime,
}

impl MeasureName {
    /// Returns the measure in words.
    pub const fn name(self) -> &'static str {
        match self {
            MeasureName::CompletionTime => "completion time",
            MeasureName::Goodput => "goodput",
            MeasureName::PageLoadTime => "page load time",
        }
    }
}
