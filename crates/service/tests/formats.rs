//! docs/formats.md is what the tables say; `BLESS=1 cargo test -p anabranch-service --test formats` writes it anew.
#![allow(clippy::unwrap_used)]

use anabranch_engine::statistics::{CONNECTION, ENDPOINT, SUBFLOW};
use anabranch_engine::{Event, FallbackReason};
use anabranch_lab::format::{FORMATS, Format, LINES};
use anabranch_net::LINK;
use anabranch_units::statistic::{Kind, Statistic};
use anabranch_wire::ResetReason;
use std::collections::BTreeSet;
use std::fs;

/// Text before the table of documents.
const HEAD: &str = r"# Machine-readable formats

Look up here the formats of JSON with their versions, and the names in JSON, Prometheus metrics and scripts, with units
and meanings.

Formats are written down once, in `crates/lab/src/format.rs`; names that programs read beside the fields of
`crates/engine/src/statistics/stats.rs`, `counters.rs` there and `crates/net/src/stats.rs`, and in the `name()` of each enumeration.
This file is made from them (`BLESS=1 cargo test -p anabranch-service --test formats`).

## Documents

A JSON document begins with `format` and `format_version`; most then have the `version` of the program that wrote them
and its `build`. The version of a format grows when a name goes, changes its meaning or may hold other values. A new
name alone does not change it: readers should ignore names that they do not know. `anabranch schema FORMAT` prints the
JSON schema of a format as this program writes it, so it allows no other names; `anabranch schema --list` lists the
formats. A journal or `manifest.json` of another version is refused, with both versions in the message.

";

/// Text between the tables of documents and of lines.
const EVENTS_AND_LOGS: &str = r#"
## Events and logs

They have one JSON object on each line. The first line has `format` and `format_version` alone, or for `run --events`
the `seed` as well; there such a line begins each run. `anabranch schema FORMAT` prints the schema of a line. The same events as qlog
(`--qlog`) are in [`qlog.md`](qlog.md).

"#;

/// Text after them, and before the tables of statistics.
const STATISTICS: &str = r"
## Statistics

| names of | where | described |
|---|---|---|
| runs | `run`, `compare`, `rank`, `study`, Python; JSON and CSV | [`results.md`](results.md), [`studies.md`](studies.md), [`sweeps.md`](sweeps.md) |
| connections | `fetch --json`, the events of `serve` and `fetch` | below |
| counters of an endpoint | `fetch --json`, `serve --json` | below |
| metrics of Prometheus | `proxy --metrics` | below, those of the proxy itself apart ([`proxy.md`](proxy.md)) |
| values of `check` | scripts | below, with `subflows`, `connections`, `write_space` and `drained` ([`scripts.md`](scripts.md)) |
| links | `testbed --json` | below |
| captures | `inspect --json` | [`inspect.md`](inspect.md) |

Kinds: a counter or position only grows and is added up over connections and subflows, a level (gauge) is added up over
those that are there, of a peak the highest counts, a state belongs to one connection or subflow alone. Spans of time
are numbers of seconds, in scripts such as `20ms`.
";

fn unit<S>(statistic: &Statistic<S>) -> &'static str {
    if statistic.unit.symbol().is_empty() { "–" } else { statistic.unit.symbol() }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Position => "position",
        Kind::Gauge => "level",
        Kind::Peak => "peak",
        Kind::State => "state",
    }
}

/// One row for each statistic of a table: its names, unit, kind and meaning.
fn section<S>(title: &str, table: &[Statistic<S>], json: fn(&Statistic<S>) -> String, check: &str) -> String {
    let mut text = format!(
        "\n## {title}\n\n| JSON | `check` | Prometheus | unit | kind | what it is |\n|---|---|---|---|---|---|\n"
    );
    for statistic in table {
        let metric = match (statistic.kind, statistic.counts()) {
            (Kind::State, _) => "–".to_owned(),
            (Kind::Counter | Kind::Position, Some((label, _))) => {
                format!("`anabranch_{}_total{{{label}}}`", statistic.metric())
            }
            (Kind::Counter | Kind::Position, None) => format!("`anabranch_{}_total`", statistic.metric()),
            (Kind::Gauge | Kind::Peak, _) => format!("`anabranch_{}`", statistic.metric()),
        };
        let check = match statistic.counts() {
            Some((label, _)) => format!("{}.{}", statistic.snake(), label.to_uppercase()),
            None => format!("{check}{}", statistic.snake()),
        };
        let (json, unit, kind) = (json(statistic), unit(statistic), kind(statistic.kind));
        text += &format!("| `{json}` | `{check}` | {metric} | {unit} | {kind} | {} |\n", statistic.about);
    }
    text
}

fn links() -> String {
    let mut text = "\n## Links\n\n| JSON | unit | kind | what it is |\n|---|---|---|---|\n".to_owned();
    for statistic in LINK {
        let (unit, kind) = (unit(statistic), kind(statistic.kind));
        text += &format!("| `{}` | {unit} | {kind} | {} |\n", statistic.key(), statistic.about);
    }
    text
}

fn counter(statistic: &Statistic<anabranch_engine::Counters>) -> String {
    match statistic.counts() {
        Some((label, each)) => format!("{each}-{}", label.to_uppercase()),
        None => statistic.name.to_owned(),
    }
}

fn names(title: &str, about: &str, names: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    format!("\n## {title}\n\n{about}\n\n{}\n", all.join(", "))
}

/// One row for each format: its name, version, writers and contents.
fn formats(formats: &[&Format]) -> String {
    let row = |it: &&Format| format!("| `{}` | {} | {} | {} |\n", it.name, it.version, it.written_by, it.about);
    let rows: String = formats.iter().map(row).collect();
    format!("| format | version | written by | contents |\n|---|---|---|---|\n{rows}")
}

fn document() -> String {
    [
        HEAD.to_owned(),
        formats(&FORMATS),
        EVENTS_AND_LOGS.to_owned(),
        formats(&LINES),
        STATISTICS.to_owned(),
        section("Connections", CONNECTION, Statistic::key, ""),
        "\nThe JSON of a connection has `bytes_sent` (`data_acked`), `bytes_received` (`delivered`) and `subflows` as well.\n"
            .to_owned(),
        section("Subflows", SUBFLOW, Statistic::key, "SUBFLOW."),
        section("Endpoints", ENDPOINT, counter, "counter."),
        "\nIn JSON only counters above 0 are there.\n".to_owned(),
        links(),
        names("Events", "`event` of a line of the journal; first word of `event` in scripts.", {
            Event::NAMES.iter().map(|name| (*name).to_owned())
        }),
        names("Reasons of fallbacks", "Reasons for which a connection is plain TCP (RFC 8684 §3.7).", {
            FallbackReason::ALL.iter().map(|reason| reason.name().to_owned())
        }),
        names("Reasons of resets", "Reasons of MP_TCPRST (RFC 8684 §3.6); `other(CODE)` is any other code.", {
            (0..7).map(|code| ResetReason::from_code(code).name().into_owned())
        }),
    ]
    .concat()
}

#[test]
fn formats_md_is_what_the_tables_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md");
    let wanted = document();
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, &wanted).unwrap();
    }
    let held = fs::read_to_string(path).unwrap_or_default();
    assert!(
        held == wanted,
        "docs/formats.md is out of date; remedy: BLESS=1 cargo test -p anabranch-service --test formats"
    );
}

#[test]
fn metrics_of_all_tables_have_names_of_their_own() {
    fn metrics<S>(table: &[Statistic<S>]) -> impl Iterator<Item = String> {
        table.iter().filter(|it| it.kind != Kind::State).map(Statistic::metric)
    }
    let mut seen = BTreeSet::new();
    let both = "reinjected_bytes"; // Of connections; subflows say the same of themselves.
    for metric in metrics(ENDPOINT).chain(metrics(CONNECTION)).chain(metrics(SUBFLOW).filter(|it| it != both)) {
        assert!(seen.insert(metric.clone()), "{metric}");
    }
}
