//! A view and an event as words of 64 bits, and the names of these words: those that schedulers in Python see.

use super::id;
use anabranch_policy::{Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant};
use serde_json::{Value, json};

/// A word of a thing, read from it. Numbers travel as the bits of an `f64`, those that are absent as NaN; data sequence
/// numbers, which have 64 bits, as they are.
enum Word<T> {
    Number(fn(&T) -> f64),
    /// A number that may be absent.
    Maybe(fn(&T) -> Option<f64>),
    Flag(fn(&T) -> bool),
    Dsn(fn(&T) -> Dsn),
    /// A data sequence number that may be absent: a second word says so.
    MaybeDsn(fn(&T) -> Option<Dsn>),
}

use Word::{Flag, Maybe, MaybeDsn, Number};

/// Name, meaning and reading of a word.
type Field<T> = (&'static str, &'static str, Word<T>);

impl<T> Word<T> {
    /// Kind as the worker knows it.
    fn kind(&self) -> &'static str {
        match self {
            Number(_) => "number",
            Maybe(_) => "maybe",
            Flag(_) => "flag",
            Word::Dsn(_) => "dsn",
            MaybeDsn(_) => "maybe-dsn",
        }
    }

    fn write(&self, thing: &T, words: &mut Vec<u64>) {
        match self {
            Number(read) => words.push(read(thing).to_bits()),
            Maybe(read) => words.push(read(thing).unwrap_or(f64::NAN).to_bits()),
            Flag(read) => words.push(u64::from(read(thing))),
            Word::Dsn(read) => words.push(read(thing).get()),
            MaybeDsn(read) => {
                let found = read(thing);
                words.extend([u64::from(found.is_some()), found.map_or(0, Dsn::get)]);
            }
        }
    }
}

/// Events by their names, in the order of their numbers.
const EVENTS: [&str; 8] =
    ["sent", "repeated", "fast-retransmit", "rto", "subflows-changed", "data-written", "window-blocked", "reinjected"];

/// Writes the words of a view: `now`, those of [`view`], and those of [`SUBFLOW`] for each subflow.
pub fn of_view(now: Instant, of: &View<'_>, words: &mut Vec<u64>) {
    words.clear();
    words.push(now.as_secs_f64().to_bits());
    for (_, _, word) in view() {
        word.write(of, words);
    }
    for subflow in of.subflows {
        for (_, _, word) in SUBFLOW {
            word.write(subflow, words);
        }
    }
}

/// Returns the words of an event: `now`, the number of its kind, and those of [`EVENT`].
pub fn of_event(now: Instant, event: &Event) -> Vec<u64> {
    let kind: u32 = match event {
        Event::Sent { .. } => 0,
        Event::Repeated { .. } => 1,
        Event::FastRetransmit { .. } => 2,
        Event::Rto { .. } => 3,
        Event::SubflowsChanged => 4,
        Event::DataWritten => 5,
        Event::WindowBlocked { .. } => 6,
        Event::Reinjected { .. } => 7,
    };
    let mut words = vec![now.as_secs_f64().to_bits(), f64::from(kind).to_bits()];
    for (_, _, word) in EVENT {
        word.write(event, &mut words);
    }
    words
}

/// Returns names, meanings and kinds of all words in their order.
pub fn fields() -> Value {
    fn rows<T>(fields: &[Field<T>]) -> Vec<Value> {
        fields.iter().map(|(name, about, word)| json!({ "name": name, "about": about, "kind": word.kind() })).collect()
    }
    json!({ "view": rows(&view()), "subflow": rows(SUBFLOW), "event": rows(EVENT), "events": EVENTS })
}

/// Words of a view. A function, since a constant would be of views that live for ever.
const fn view<'a>() -> [Field<View<'a>>; 6] {
    [
        ("unsent_bytes", "written by the application and sent by no subflow [B]", Number(|v| v.unsent.as_f64())),
        (
            "sendable_bytes",
            "the first so many of them that the peer's window admits [B]",
            Number(|v| v.sendable.as_f64()),
        ),
        ("window_bytes", "the peer's receive window, shared by all subflows [B]", Number(|v| v.window.as_f64())),
        ("buffer_bytes", "the largest such window so far [B]", Number(|v| v.buffer.as_f64())),
        ("data_una", "first data sequence number that is not acknowledged", Word::Dsn(|v| v.data_una)),
        ("unsent_from", "first data sequence number that was never sent", Word::Dsn(|v| v.unsent_from)),
    ]
}

const EVENT: &[Field<Event>] = &[
    (
        "on",
        "id of the subflow; null where the event is of no subflow",
        Maybe(|event| match event {
            Event::Sent { on, .. }
            | Event::Repeated { on, .. }
            | Event::FastRetransmit { on }
            | Event::Rto { on }
            | Event::WindowBlocked { on }
            | Event::Reinjected { on } => Some(id(*on)),
            Event::SubflowsChanged | Event::DataWritten => None,
        }),
    ),
    (
        "dsn",
        "data sequence number of the first byte (sent, repeated)",
        MaybeDsn(|event| match event {
            Event::Sent { dsn, .. } | Event::Repeated { dsn, .. } => Some(*dsn),
            _ => None,
        }),
    ),
    (
        "length_bytes",
        "number of bytes (sent, repeated)",
        Maybe(|event| match event {
            Event::Sent { length, .. } | Event::Repeated { length, .. } => Some(length.as_f64()),
            _ => None,
        }),
    ),
    (
        "skip_bytes",
        "offset of the bytes in the unsent data (sent)",
        Maybe(|event| match event {
            Event::Sent { skip, .. } => Some(skip.as_f64()),
            _ => None,
        }),
    ),
];

const SUBFLOW: &[Field<SubflowView>] = &[
    ("id", "id, by which an answer may name it", Number(|s| id(s.id))),
    ("mss_bytes", "payload of a full segment [B]", Number(|s| s.mss.as_f64())),
    ("srtt_s", "smoothed round-trip time [s]", Number(|s| s.srtt.as_secs_f64())),
    ("rttvar_s", "round-trip time variation [s]", Number(|s| s.rttvar.as_secs_f64())),
    ("rtt_min_s", "smallest RTT sample [s]", Number(|s| s.rtt_min.as_secs_f64())),
    ("rtt_max_s", "largest RTT sample [s]", Number(|s| s.rtt_max.as_secs_f64())),
    ("rtt_first_s", "first RTT sample [s]", Number(|s| s.rtt_first.as_secs_f64())),
    ("rtt_last_s", "latest RTT sample [s]", Number(|s| s.rtt_last.as_secs_f64())),
    ("rto_s", "retransmission timeout without backoff [s]", Number(|s| s.rto.as_secs_f64())),
    ("cwnd_bytes", "congestion window [B]", Number(|s| s.cwnd.as_f64())),
    ("ssthresh_bytes", "slow-start threshold [B]; null before the first loss", Maybe(|s| bytes(s.ssthresh))),
    ("in_flight_bytes", "sent and neither acknowledged nor believed lost [B]", Number(|s| s.in_flight.as_f64())),
    (
        "cwnd_at_loss_bytes",
        "the largest congestion window at any loss [B]; null before the first",
        Maybe(|s| bytes(s.cwnd_at_loss)),
    ),
    ("room_bytes", "what the congestion window still admits [B]", Number(|s| s.room().as_f64())),
    ("loss", "estimated loss probability of a segment", Number(|s| s.loss)),
    ("sent_bytes", "bytes sent for the first time", Number(|s| s.sent as f64)),
    ("acked_bytes", "bytes acknowledged", Number(|s| s.acked as f64)),
    ("data_acked", "highest DATA_ACK that came on it; null before the first", MaybeDsn(|s| s.data_acked)),
    ("has_room", "a full segment of new data may leave now", Flag(SubflowView::has_room)),
    (
        "has_room_to_repeat",
        "a full segment that another subflow has carried may leave now",
        Flag(SubflowView::has_room_to_repeat),
    ),
    ("open", "false during a timeout's recovery and while the peer's window is full", Flag(|s| s.open)),
    ("backup", "of the backup class; all subflows of a view are, or none", Flag(|s| s.backup)),
    ("throttled", "its first hop has enough (TCP Small Queues)", Flag(|s| s.throttled)),
    ("last_sent_s", "time at which it last sent data [s]; null if never", Maybe(|s| seconds(s.last_sent))),
    (
        "oldest_sent_s",
        "time at which the oldest segment under way left [s]; null without one",
        Maybe(|s| seconds(s.oldest_sent)),
    ),
    (
        "pacing_bps",
        "rate that congestion control paces at [bit/s]; null if it does not",
        Maybe(|s| s.pacing.map(|rate| rate.as_bps() as f64)),
    ),
    (
        "delivery_bps",
        "latest sample of the delivery rate [bit/s]; null before the first",
        Maybe(|s| s.delivery.map(|delivery| delivery.rate.as_bps() as f64)),
    ),
    (
        "app_limited",
        "the sender had too little to send for that sample",
        Flag(|s| s.delivery.is_some_and(|delivery| delivery.app_limited)),
    ),
    (
        "path_rate_bps",
        "the path's own rate [bit/s]; null while no queue was seen",
        Maybe(|s| s.path_rate.map(|rate| rate.as_bps() as f64)),
    ),
    (
        "bdp_bytes",
        "bandwidth-delay product [B]; null unless congestion control models the path",
        Maybe(|s| bytes(s.bdp)),
    ),
    (
        "share_bytes",
        "new data that its share of the peer's window admits [B]; null if it is not shared out",
        Maybe(|s| bytes((s.share != Bytes::MAX).then_some(s.share))),
    ),
    ("heard_s", "time at which anything arrived on it last [s]", Number(|s| s.heard.as_secs_f64())),
    (
        "silent_from_s",
        "time from which on it is silent [s]; null if nothing is under way",
        Maybe(|s| seconds(s.silent_from())),
    ),
    ("spread_s", "time beyond srtt_s after which an acknowledgment is late [s]", Number(|s| s.spread().as_secs_f64())),
    ("one_way_delay_s", "time from sending to arrival [s]", Number(|s| s.one_way_delay().as_secs_f64())),
    (
        "pace_bps",
        "rate that it is paced at, or that Linux would pace it at [bit/s]",
        Number(|s| s.pace().as_bps() as f64),
    ),
    (
        "true_rate_bps",
        "for oracles: rate of the path's slowest link [bit/s]",
        Maybe(|s| s.truth.map(|truth| truth.rate.as_bps() as f64)),
    ),
    (
        "true_delay_s",
        "for oracles: one-way propagation delay of the path [s]",
        Maybe(|s| s.truth.map(|truth| truth.delay.as_secs_f64())),
    ),
    (
        "true_loss",
        "for oracles: probability that the path loses a packet at random",
        Maybe(|s| s.truth.map(|truth| truth.loss)),
    ),
    (
        "queueing_delay_s",
        "time that packets wait in the path's queue, by the latest sample [s]",
        Number(|s| s.queueing_delay().as_secs_f64()),
    ),
];

fn bytes(amount: Option<Bytes>) -> Option<f64> {
    amount.map(Bytes::as_f64)
}

fn seconds(at: Option<Instant>) -> Option<f64> {
    at.map(Instant::as_secs_f64)
}
