//! The statistics of an endpoint, its connections and their subflows, each described once.
//!
//! A new statistic is a field of [`ConnectionStats`], [`SubflowStats`] or [`Counters`] and a line of its table here.
//! All outputs follow: JSON, CSV, Parquet, tables, Prometheus, the checks of scripts, the metrics of studies.

use crate::{ConnectionStats, Counters, Ended, FallbackReason, Overruled, SubflowStats};
use anabranch_units::statistic::{Access, Change, Kind, Source, Statistic, Unit, Value};
use anabranch_units::{Bytes, Duration, Instant, SubflowId, count, span, state};
use anabranch_wire::ResetReason;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use Kind::{Counter, Gauge, Peak, Position, State};

/// The tables that outputs are made from.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Statistics of an endpoint, over all its connections.
    pub endpoint: &'a [Statistic<Counters>],
    /// Statistics of one end of a connection.
    pub connection: &'a [Statistic<ConnectionStats>],
    /// Statistics of one end of a subflow.
    pub subflow: &'a [Statistic<SubflowStats>],
}

impl Tables<'static> {
    /// Tables of the engine.
    pub const ENGINE: Self = Tables { endpoint: ENDPOINT, connection: CONNECTION, subflow: SUBFLOW };
}

type Endpoint = Statistic<Counters>;
type Connection = Statistic<ConnectionStats>;
type Subflow = Statistic<SubflowStats>;

/// The statistics of an endpoint.
pub const ENDPOINT: &[Endpoint] = &[
    Endpoint::new("fallbacks", Counter, Unit::None, "fallbacks to plain TCP by reason", FALLBACKS)
        .in_column("fallback_reasons"),
    Endpoint::new("resets-sent", Counter, Unit::None, "resets sent by reason (MP_TCPRST)", RESETS_SENT)
        .in_column("reset_reasons"),
    Endpoint::new("resets-received", Counter, Unit::None, "RSTs accepted", count!(resets_received)),
    Endpoint::new(
        "reset-reasons-received",
        Counter,
        Unit::None,
        "RSTs accepted by reason (MP_TCPRST)",
        RESET_REASONS_RECEIVED,
    ),
    Endpoint::new(
        "conflicting-add-addr",
        Counter,
        Unit::None,
        "ADD_ADDRs whose identifier stands for another address",
        count!(conflicting_add_addr),
    ),
    Endpoint::new("reopened", Counter, Unit::None, "connections begun anew on another path", count!(reopened)),
    Endpoint::new(
        "joins-refused",
        Counter,
        Unit::None,
        "MP_JOINs refused: token, HMAC or limit",
        count!(joins_refused),
    ),
    Endpoint::new("cookies-sent", Counter, Unit::None, "SYNs answered with a SYN cookie", count!(cookies_sent))
        .as_metric("syn_cookies_sent"),
    Endpoint::new(
        "cookies-received",
        Counter,
        Unit::None,
        "connections made of the answer to a SYN cookie",
        count!(cookies_received),
    )
    .as_metric("syn_cookies_received"),
    Endpoint::new(
        "cookies-invalid",
        Counter,
        Unit::None,
        "segments that answered no SYN cookie of ours",
        count!(cookies_invalid),
    )
    .as_metric("syn_cookies_invalid"),
    Endpoint::new(
        "half-open-dropped",
        Counter,
        Unit::None,
        "SYNs not answered: no SYN cookie for them",
        count!(half_open_dropped),
    ),
    Endpoint::new("joins-deferred", Counter, Unit::None, "MP_JOINs answered without a subflow", count!(joins_deferred)),
    Endpoint::new(
        "deferred-joins-received",
        Counter,
        Unit::None,
        "subflows made when a deferred MP_JOIN was completed",
        count!(deferred_joins_received),
    ),
    Endpoint::new(
        "half-open-joins-dropped",
        Counter,
        Unit::None,
        "deferred MP_JOINs forgotten for others",
        count!(half_open_joins_dropped),
    ),
    Endpoint::new("unknown-flow", Counter, Unit::Segments, "segments of no connection", count!(unknown_flow)),
    Endpoint::new(
        "unacceptable",
        Counter,
        Unit::Segments,
        "segments outside the window or failing PAWS",
        count!(unacceptable),
    ),
    Endpoint::new("too-big", Counter, Unit::None, "reports of packets too big that were believed", count!(too_big)),
    Endpoint::new(
        "too-big-ignored",
        Counter,
        Unit::None,
        "reports of packets too big that were not believed",
        count!(too_big_ignored),
    ),
    Endpoint::new("black-holes", Counter, Unit::None, "paths found to swallow large packets", count!(black_holes)),
    Endpoint::new(
        "refused-data",
        Counter,
        Unit::Bytes,
        "data beyond the window or memory limits",
        count!(refused_data),
    ),
    Endpoint::new("checksum-failures", Counter, Unit::None, "DSS checksums that failed", count!(checksum_failures)),
    Endpoint::new("fails-received", Counter, Unit::None, "MP_FAILs received", count!(fails_received)),
    Endpoint::new("bad-add-addr", Counter, Unit::None, "ADD_ADDRs with a wrong HMAC", count!(bad_add_addr)),
];

/// The statistics of one end of a connection.
pub const CONNECTION: &[Connection] = &[
    Connection::new(
        "opened-at",
        State,
        Unit::Seconds,
        "time at which the first SYN was sent or received",
        state!(opened_at, since_start),
    ),
    Connection::new("written", Position, Unit::Bytes, "bytes that the application wrote", count!(written)),
    Connection::new("sent", Position, Unit::Bytes, "bytes sent for the first time", count!(sent)),
    Connection::new("data-acked", Position, Unit::Bytes, "bytes acknowledged at the data level", count!(data_acked)),
    Connection::new("delivered", Position, Unit::Bytes, "bytes that the application read", count!(delivered))
        .of_receiver(),
    Connection::new("received", Position, Unit::Bytes, "bytes received in order at the data level", count!(received))
        .of_receiver(),
    Connection::new("segments-received", Counter, Unit::Segments, "data segments received", count!(segments_received))
        .of_receiver(),
    Connection::new(
        "autotuned-buffer",
        Peak,
        Unit::Bytes,
        "receive buffer as grown by auto-tuning",
        state!(autotuned_buffer, optional),
    )
    .of_receiver(),
    Connection::new("ofo-count", Counter, Unit::Segments, "segments that arrived out of order", count!(ofo_count))
        .of_receiver(),
    Connection::new("ofo-now", Gauge, Unit::Segments, "segments held out of order now", count!(ofo_now)).of_receiver(),
    Connection::new("ofo-peak", Peak, Unit::Segments, "most segments out of order at once", count!(ofo_peak))
        .of_receiver(),
    Connection::new(
        "ofo-held",
        Counter,
        Unit::Seconds,
        "time that segments were held out of order, added up over them",
        span!(ofo_wait),
    )
    .of_receiver(),
    Connection::new("ofo-bytes", Gauge, Unit::Bytes, "bytes held out of order now", count!(ofo_bytes)).of_receiver(),
    Connection::new(
        "hol-blocked",
        Counter,
        Unit::Seconds,
        "time that arrived data waited behind missing data",
        span!(hol_blocked),
    )
    .of_receiver(),
    Connection::new("reinjected", Counter, Unit::Bytes, "bytes sent again on another subflow", count!(reinjected)),
    Connection::new("duplicates", Counter, Unit::Bytes, "bytes that arrived more than once", count!(duplicates))
        .of_receiver()
        .in_column("duplicate_bytes")
        .as_metric("duplicate_bytes"),
    Connection::new(
        "blocked-cwnd",
        Counter,
        Unit::Seconds,
        "time the sender waited for congestion windows",
        span!(blocked.cwnd),
    ),
    Connection::new(
        "blocked-window",
        Counter,
        Unit::Seconds,
        "time the sender waited for the receive window",
        span!(blocked.receive_window),
    ),
    Connection::new(
        "blocked-scheduler",
        Counter,
        Unit::Seconds,
        "time the sender waited for its scheduler",
        span!(blocked.scheduler),
    ),
    Connection::new(
        "blocked-application",
        Counter,
        Unit::Seconds,
        "time the sender waited for its application",
        span!(blocked.application),
    ),
    Connection::new(
        "overruled",
        Counter,
        Unit::None,
        "decisions of policies that were not followed, by kind",
        OVERRULED,
    )
    .in_column("overruled_kinds")
    .as_metric("policy_overruled"),
    Connection::new(
        "acks-detoured",
        Counter,
        Unit::None,
        "pure ACKs that took the path of another subflow",
        count!(acks_detoured),
    )
    .of_receiver(),
    Connection::new("acks-kept", Counter, Unit::None, "pure ACKs that kept their own path instead", count!(acks_kept))
        .of_receiver(),
    Connection::new(
        "acks-restored",
        Counter,
        Unit::None,
        "pure ACKs of the peer that came on the path of another subflow",
        count!(acks_restored),
    ),
    Connection::new(
        "ack-fallbacks",
        Counter,
        Unit::None,
        "subflows whose ACKs fell back to their own path",
        count!(ack_fallbacks),
    )
    .of_receiver(),
    Connection::new(
        "probes-sent",
        Counter,
        Unit::None,
        "probes of the receiver for the path of its ACKs",
        count!(probes_sent),
    )
    .of_receiver(),
    Connection::new("fallback", State, Unit::None, "reason of the fallback to plain TCP", state!(fallback, fallback)),
    Connection::new("ended", State, Unit::None, "reason of the end", state!(ended, ended)),
];

/// The statistics of one end of a subflow.
pub const SUBFLOW: &[Subflow] = &[
    Subflow::new("id", State, Unit::None, "number of the subflow in its connection", state!(id, id)),
    Subflow::new("local", State, Unit::None, "own address and port", state!(local, address)),
    Subflow::new("remote", State, Unit::None, "address and port of the peer", state!(remote, address)),
    Subflow::new("established", State, Unit::None, "it can carry data now", state!(established, flag)),
    Subflow::new("backup", State, Unit::None, "used only while no other works", state!(backup, flag)),
    Subflow::new(
        "segments-sent",
        Counter,
        Unit::Segments,
        "data segments sent, repeated ones included",
        count!(counts.segments_sent),
    )
    .headed("segments"),
    Subflow::new(
        "bytes-first-sent",
        Counter,
        Unit::Bytes,
        "bytes first sent on the subflow",
        count!(counts.bytes_first_sent),
    ),
    Subflow::new(
        "bytes-sent",
        Counter,
        Unit::Bytes,
        "payload bytes sent, repeated ones included",
        count!(counts.bytes_sent),
    ),
    Subflow::new(
        "retransmitted",
        Counter,
        Unit::Segments,
        "segments retransmitted on their own subflow",
        count!(retransmitted),
    )
    .headed("retransmitted")
    .as_metric("retransmissions"),
    Subflow::new("rtos", Counter, Unit::None, "retransmission timeouts", count!(rtos))
        .headed("RTOs")
        .as_metric("retransmission_timeouts"),
    Subflow::new("fast-recoveries", Counter, Unit::None, "fast recoveries", count!(counts.fast_recoveries))
        .headed("fast recoveries"),
    Subflow::new(
        "reinjected",
        Counter,
        Unit::Bytes,
        "bytes carried that had left on another subflow before",
        count!(counts.reinjected),
    )
    .headed("reinjected"),
    Subflow::new("bytes-received", Counter, Unit::Bytes, "payload bytes received in order", count!(bytes_received))
        .of_receiver(),
    Subflow::new("srtt", State, Unit::Seconds, "smoothed RTT", state!(srtt, optional_span)).headed("SRTT [ms]"),
    Subflow::new("cwnd", Gauge, Unit::Bytes, "congestion window", state!(cwnd, bytes)).headed("cwnd"),
];

const FALLBACKS: Source<Counters> = Source {
    field: "fallbacks",
    access: Access::Counts {
        each: "fallback",
        label: "reason",
        get: |counters| {
            // Those that did not happen too: a rate of Prometheus needs a first value.
            let count = |reason| counters.fallbacks.get(&reason).copied().unwrap_or(0);
            FallbackReason::ALL.into_iter().map(|reason| (Cow::Borrowed(reason.name()), count(reason))).collect()
        },
        change: |sum, other, change| by_key(&mut sum.fallbacks, &other.fallbacks, change),
    },
};

const RESETS_SENT: Source<Counters> = Source {
    field: "resets_sent",
    access: Access::Counts {
        each: "reset-sent",
        label: "reason",
        get: |counters| by_reason(&counters.resets_sent),
        change: |sum, other, change| by_key(&mut sum.resets_sent, &other.resets_sent, change),
    },
};

const RESET_REASONS_RECEIVED: Source<Counters> = Source {
    field: "reset_reasons_received",
    access: Access::Counts {
        each: "reset-received",
        label: "reason",
        get: |counters| by_reason(&counters.reset_reasons_received),
        change: |sum, other, change| by_key(&mut sum.reset_reasons_received, &other.reset_reasons_received, change),
    },
};

const OVERRULED: Source<ConnectionStats> = Source {
    field: "overruled",
    access: Access::Counts {
        each: "overruled",
        label: "kind",
        get: |stats| {
            let Overruled { impossible, starving, looping, shares, copies } = stats.overruled;
            let kinds = [
                ("impossible", impossible),
                ("starving", starving),
                ("looping", looping),
                ("shares", shares),
                ("copies", copies),
            ];
            kinds.map(|(kind, count)| (Cow::Borrowed(kind), count)).into()
        },
        change: |sum, other, change| {
            let Overruled { impossible, starving, looping, shares, copies } = &mut sum.overruled;
            change(impossible, other.overruled.impossible);
            change(starving, other.overruled.starving);
            change(looping, other.overruled.looping);
            change(shares, other.overruled.shares);
            change(copies, other.overruled.copies);
        },
    },
};

impl std::ops::AddAssign<&Counters> for Counters {
    /// Adds the counts of another endpoint.
    fn add_assign(&mut self, other: &Counters) {
        ENDPOINT.iter().for_each(|statistic| statistic.add(self, other));
    }
}

fn by_reason(counts: &BTreeMap<ResetReason, u64>) -> BTreeMap<Cow<'static, str>, u64> {
    counts.iter().map(|(reason, count)| (reason.name(), *count)).collect()
}

fn by_key<K: Copy + Ord>(sum: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>, change: Change) {
    other.iter().for_each(|(key, count)| change(sum.entry(*key).or_default(), *count));
}

fn since_start(at: &Instant) -> Value {
    Value::Span(at.since(Instant::ZERO))
}

fn optional(count: &Option<u64>) -> Value {
    count.map_or(Value::Absent, Value::Count)
}

fn optional_span(span: &Option<Duration>) -> Value {
    span.map_or(Value::Absent, Value::Span)
}

fn fallback(reason: &Option<FallbackReason>) -> Value {
    reason.map_or(Value::Absent, |reason| Value::Word(Cow::Borrowed(reason.name())))
}

fn ended(why: &Option<Ended>) -> Value {
    why.map_or(Value::Absent, |why| Value::Word(Cow::Borrowed(why.name())))
}

fn id(id: &SubflowId) -> Value {
    Value::Count(u64::from(id.0))
}

fn address(address: &SocketAddr) -> Value {
    Value::Word(Cow::Owned(address.to_string()))
}

fn flag(flag: &bool) -> Value {
    Value::Flag(*flag)
}

fn bytes(bytes: &Bytes) -> Value {
    Value::Count(bytes.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names of the public fields of a struct, as its source has them.
    fn fields(source: &'static str, name: &str) -> BTreeSet<&'static str> {
        let body = source.split_once(&format!("\npub struct {name} {{\n")).expect("the struct is there").1;
        let body = body.split_once("\n}\n").expect("it ends").0;
        let field = |line: &'static str| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0);
        body.lines().filter_map(field).collect()
    }

    /// Fields that a table describes: the first parts of their paths, or the second ones under `owner`.
    fn described<S>(table: &'static [Statistic<S>], owner: Option<&str>) -> BTreeSet<String> {
        let path = |it: &Statistic<S>| it.field().split('.').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
        match owner {
            None => table.iter().map(|it| path(it).swap_remove(0)).collect(),
            Some(owner) => {
                table.iter().map(path).filter(|path| path[0] == owner).map(|mut path| path.swap_remove(1)).collect()
            }
        }
    }

    #[test]
    fn every_field_has_a_description() {
        let (stats, events) = (include_str!("stats.rs"), include_str!("event.rs"));
        for (source, name, described) in [
            (events, "Counters", described(ENDPOINT, None)),
            (stats, "ConnectionStats", described(CONNECTION, None)),
            (stats, "Blocked", described(CONNECTION, Some("blocked"))),
            (stats, "SubflowStats", described(SUBFLOW, None)),
            (stats, "SubflowCounts", described(SUBFLOW, Some("counts"))),
        ] {
            for field in fields(source, name) {
                assert!(described.contains(field), "`{name}::{field}` needs a line in a table of statistics.rs");
            }
        }
    }

    #[test]
    fn names_are_unique_kebab_case_and_so_are_those_derived_from_them() {
        fn check<S>(table: &[Statistic<S>]) {
            for names in [Statistic::<S>::snake, Statistic::<S>::column, Statistic::<S>::metric] {
                let all: BTreeSet<String> = table.iter().map(names).collect();
                assert_eq!(all.len(), table.len(), "{all:?}");
            }
            for statistic in table {
                let plain = |c: char| c.is_ascii_lowercase() || c == '-';
                assert!(statistic.name.chars().all(plain), "{}", statistic.name);
                assert!(!statistic.about.ends_with('.'), "{}", statistic.about);
            }
        }
        check(ENDPOINT);
        check(CONNECTION);
        check(SUBFLOW);
    }

    #[test]
    fn counters_of_endpoints_add_up() {
        let mut one = Counters { joins_refused: 2, ..Counters::default() };
        one.fallbacks.insert(FallbackReason::SynAck, 1);
        let mut sum = one.clone();
        sum += &one;
        assert_eq!((sum.joins_refused, sum.fallbacks[&FallbackReason::SynAck]), (4, 2));
    }
}
