//! docs/qlog.md and docs/qlog.cddl are what the types say; `BLESS=1 cargo test -p anabranch-events --lib documentation`
//! writes them anew.

use super::*;
use crate::{ConnectionEvent, ConnectionReport, Ended, Happened, Opened, SubflowPlace};
use anabranch_engine::{ConnectionStats, FallbackReason, Misconduct};
use anabranch_units::{Duration, Instant};
use anabranch_wire::FlowKey;
use std::fs;

/// Text before the events.
const HEAD: &str = r#"# qlog

Read here what `--qlog FILE` writes: `run`, `serve` and `fetch` have it. qlog is the log of the QUIC working group, and has viewers. It is
described in [draft-ietf-quic-qlog-main-schema](https://datatracker.ietf.org/doc/draft-ietf-quic-qlog-main-schema/); this page
follows version 14. The page is made from the types that are written (`BLESS=1 cargo test -p anabranch-events --lib documentation`).

## The file

A file is a JSON text sequence (RFC 7464, `application/qlog+json-seq`, by custom `.sqlog`): each text begins with the byte 0x1E and ends with
a line feed. The first text is the head, each further one an event. A text that was cut off is skipped by a reader, and all before it
count. `run` writes the file when its runs are through, `serve` and `fetch` flush each event. The same build, scenario and seed give the
same bytes.

| field | value |
|---|---|
| `time` | milliseconds since the run or the program began, with nanoseconds behind the point; the head says so with `reference_time` |
| `name` | the namespace `anabranch`, and the event; `simulation:scenario` of the main document begins each run |
| `group_id` | `run`: the host at which it happened, such as `client`, with `--repeat` behind its seed, as `seed-7/client`; `serve` and `fetch`: the number of the connection |
| `tuple` | the subflow, by address and port of this end and the other; events of a whole connection have none |
| `data` | the fields below |

A sequential file has one trace. All hosts of a simulated run are in it, apart by `group_id`; the type of its vantage point is `unknown`. That of
`serve` is `server`, that of `fetch` is `client`. Times of repeated runs begin at zero again.

`jq` reads one host, one subflow:

<!-- not run: jq need not be there -->
```sh
anabranch run path-failure --qlog events.sqlog
jq --seq -c 'select(.group_id == "server" and (.tuple // "" | endswith("10.0.0.1:49152")))' events.sqlog
```

## Names

An event that means what one of [QUIC's](https://datatracker.ietf.org/doc/draft-ietf-quic-qlog-quic-events/) means has its name and its
fields, in our namespace: `packet_sent`, `packet_received`, `packet_dropped`, `packet_lost`, `packets_acked`, `recovery_metrics_updated`
and `congestion_state_updated`. A tool that draws those draws ours after one change, of the namespace. Where TCP differs: a header has TCP's
fields; a packet number is the simulator's, since TCP has none; a loss is told when the data is repeated; `packets_acked` is about cumulative
acknowledgments, SACK is not in it. All others are events of `--events`, with `_` for `-`.

Packets and losses are there of simulated runs alone. `run --events` has the same packets.

The schema of the events in CDDL is [`qlog.cddl`](qlog.cddl). It extends `$ProtocolEventData` of the main document, has a socket for extensions in
each event, and its URI is the first of `event_schemas`.
"#;

/// Text behind the events.
const TAIL: &str = r#"
## Viewers

[qvis](https://github.com/quiclog/qvis) draws windows, bytes in flight, losses and round-trip times. It reads files as the drafts of 2022 had them:
`qlog_version` in the head, namespaces `transport` and `recovery`, and one connection for each `group_id`. This makes such a file of ours,
with a group for each subflow at each host. It follows the source of qvis; we could not build qvis here to look at the result.

<!-- not run: jq need not be there -->
```sh
jq --seq -c 'if .trace then {qlog_version: "0.3", qlog_format: "JSON-SEQ", title, trace: (.trace | .common_fields = {time_format: "relative", reference_time: 0})}
  elif .tuple and (.name | test("packet|metrics")) then (.group_id + " " + .tuple) as $group | .group_id = $group
    | if .data.header then .data.header += {packet_type: "1RTT"} else . end
    | if .name == "anabranch:packets_acked" then .name = "transport:packet_received"
        | .data = {header: {packet_type: "1RTT", packet_number: -1}, frames: [{frame_type: "ack", acked_ranges: [.data.packet_numbers[] | [., .]]}]}
      else .name |= sub("anabranch:recovery_"; "recovery:") | .name |= sub("anabranch:packet_lost"; "recovery:packet_lost") | .name |= sub("anabranch:"; "transport:") end
  else empty end' events.sqlog > qvis.sqlog
```
"#;

/// Returns an example of each event.
fn examples() -> Vec<Record<'static>> {
    let at = Instant::ZERO + Duration::from_nanos(36_257_067);
    let flow = FlowKey::new(([10, 0, 0, 1], 49152).into(), ([10, 1, 0, 1], 5001).into());
    let (local, remote) = (Some(flow.source()), Some(flow.destination()));
    let header = Header {
        packet_number: Some(12),
        flags: "P.".to_owned(),
        seq: 818_574_011,
        ack: 2_411_733_509,
        window: 32_768,
        dsn: Some(542_700_444),
        data_ack: Some(1_077_120_335),
    };
    let packet = |trigger: Option<&str>| Packet {
        header: header.clone(),
        raw: Raw { length: 176, payload_length: 100 },
        path: "wlan".to_owned(),
        trigger: trigger.map(str::to_owned),
    };
    let lost = PacketLost {
        header: Numbered { packet_number: Some(12), seq: 818_574_011 },
        path: "wlan".to_owned(),
        trigger: "time_threshold",
    };
    let metrics = Metrics {
        connection: 1,
        smoothed_rtt: Some(20.1),
        latest_rtt: Some(20.5),
        congestion_window: Some(28_560),
        bytes_in_flight: Some(14_280),
        ..Metrics::default()
    };
    let packets = [
        Happening::PacketSent(packet(Some("new data: the scheduler chose this subflow"))),
        Happening::PacketReceived(packet(None)),
        Happening::PacketDropped(packet(Some("checksum"))),
        Happening::PacketLost(lost),
        Happening::PacketsAcked(PacketsAcked { packet_numbers: vec![12, 14] }),
        Happening::RecoveryMetricsUpdated(metrics),
    ];
    let opened = || Opened { multipath: true, local, remote };
    let place = || SubflowPlace { subflow: 1, local, remote, backup: Some(false) };
    let report = ConnectionReport { stats: ConnectionStats::default(), subflows: Vec::new() };
    let ended = |slow: Option<&str>| Ended { slow: slow.map(str::to_owned), connection_stats: None };
    let whole = [
        Happened::Connected(opened()),
        Happened::Reopened(opened()),
        Happened::Accepted(opened()),
        Happened::PeerFinished,
        Happened::Closed(ended(Some("slower than its best path alone: the receive window was full"))),
        Happened::Reset(Ended { connection_stats: Some(report), ..ended(None) }),
        Happened::Fallback { reason: FallbackReason::SynAck.name() },
        Happened::SubflowEstablished(place()),
        Happened::SubflowClosed(place()),
        Happened::SubflowReset { subflow: 1, reason: "middlebox".into(), transient: false },
        Happened::SchedulerOverruled { why: Misconduct::Impossible.name() },
        Happened::CongestionPhase { subflow: 1, phase: "probe-bw" },
    ];
    let packets = packets.map(|it| Record::new(at, Some("client"), Some(tuple(flow)), it));
    let whole = whole.map(|happened| {
        let tuple = happened.subflow().map(|_| tuple(flow));
        let event = ConnectionEvent { time_s: at.as_secs_f64(), connection: 1, happened };
        Record::new(at, Some("client"), tuple, Happening::of(&event))
    });
    packets.into_iter().chain(whole).collect()
}

/// Rows of a table: a field, then fields of its own with its name before them.
fn rows(fields: &[Field], within: &str) -> String {
    let row = |field: &Field| {
        let name = format!("{within}{}", field.name);
        if field.fields.is_empty() {
            let presence = if field.optional { "if known" } else { "always" };
            format!(
                "| `{name}` | {} | {presence} | {} |\n",
                field.kind.replace("{* text => any}", "object"),
                field.about
            )
        } else {
            rows(&field.fields, &format!("{name}."))
        }
    };
    fields.iter().map(row).collect()
}

fn document() -> String {
    let mut text = format!("{HEAD}\n## Events\n");
    for (event, example) in events().iter().zip(examples()) {
        let line = serde_json::to_string(&example).expect("an event is plain JSON");
        assert!(line.contains(&format!(r#""name":"{}""#, event.name)), "the example of {} is {line}", event.name);
        // A table of statistics would hide the event: they are described in another chapter.
        let line = match line.split_once(r#""connection_stats":{"#) {
            Some((before, _)) => format!("{before}\"connection_stats\":{{…}}}}}}"),
            None => line,
        };
        let (name, about, rows) = (&event.name, &event.about, rows(&event.fields, ""));
        text += &format!(
            "\n### `{name}`\n\n{about}\n\n| field | type | present | what it is |\n|---|---|---|---|\n{rows}\n\
             ```json\n{line}\n```\n"
        );
    }
    text + TAIL
}

#[test]
fn qlog_md_and_qlog_cddl_are_what_the_types_say() {
    assert_eq!(events().len(), examples().len());
    for (file, wanted) in [("qlog.md", document()), ("qlog.cddl", cddl())] {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &wanted).expect("the documents can be written");
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == wanted,
            "docs/{file} is out of date; remedy: BLESS=1 cargo test -p anabranch-events --lib documentation"
        );
    }
}
