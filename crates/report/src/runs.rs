//! Runs of one scenario on the terminal: one in full, or many in a line each.

use crate::number::{bytes, percent, seconds, short, with_interval};
use crate::policies::policies;
use crate::rows::Header;
use crate::table::{Align, Table};
use anabranch_engine::path_use::{self, Path, PathUse};
use anabranch_engine::statistics::SUBFLOW;
use anabranch_engine::{Overruled, SubflowStats};
use anabranch_lab::stats::Estimate;
use anabranch_lab::{Measured, MiddleboxCounts, Run};
use anabranch_scenario::file::MeasureName;
use anabranch_sim::{ConnectionOutcome, Outcome};
use anabranch_units::Duration;
use anabranch_units::statistic::{Kind, Statistic, Tally, Unit, Value};

type Subflow = Statistic<SubflowStats>;

/// The tables of one run.
pub fn in_full(header: &Header, run: &Run) -> String {
    format!("{header}\n\n{}\n{}", of_one(header, run), policies(header))
}

fn of_one(header: &Header, run: &Run) -> String {
    let outcome = &run.outcome;
    let mut text = transfers(outcome).to_string();
    if let more @ 1.. = outcome.transfers.len().saturating_sub(SHOWN) {
        text += &format!("  and {more} more\n");
    }
    text += &percentiles(run);
    text += "\n";
    for connection in outcome.connections.iter().take(SHOWN_CONNECTIONS) {
        text += &format!("{}\n{}\n", about(connection), subflows(header, connection));
    }
    text += &others(header, outcome.connections.get(SHOWN_CONNECTIONS..).unwrap_or_default());
    text += &links(outcome).to_string();
    if let more @ 1.. = outcome.links.iter().filter(|link| link.stats.offered > 0).count().saturating_sub(SHOWN_LINKS) {
        text += &format!("  and {more} more\n");
    }
    text += "\n";
    if !outcome.udp.is_empty() {
        let packets = |n: &dyn Fn(&anabranch_sim::UdpOutcome) -> u64| outcome.udp.iter().map(n).sum::<u64>();
        text += &format!("UDP: {} packets sent, {} received\n\n", packets(&|u| u.sent), packets(&|u| u.received));
    }
    text += &interference(run);
    for remark in remarks(header, outcome) {
        text += &format!("note: {remark}\n");
    }
    let end = if outcome.finished { "all transfers are through" } else { "NOT all transfers are through" };
    text += &format!("{end} after {:.3} s; events {:016x}\n", outcome.end.as_secs_f64(), outcome.digest);
    text
}

/// Percentiles of the times of transfers of given sizes, if there are several.
fn percentiles(run: &Run) -> String {
    let measured = &run.measured;
    if run.outcome.transfers.iter().filter(|transfer| transfer.asked.is_some()).count() < 2 {
        return String::new();
    }
    let all = [
        ("50", measured.completion_p50_s),
        ("90", measured.completion_p90_s),
        ("95", measured.completion_p95_s),
        ("99", measured.completion_p99_s),
        ("99.9", measured.completion_p999_s),
    ];
    let shown: Vec<String> =
        all.iter().filter_map(|(percent, time)| Some(format!("{percent} % {:.3} s", (*time)?))).collect();
    let bound = if measured.unfinished > 0 { ", at least" } else { "" };
    format!("times that so many do not exceed{bound}: {}\n", shown.join(", "))
}

/// Multipath that did not come about, and why; of connections that are to be plain TCP there is nothing to say.
fn remarks(header: &Header, outcome: &Outcome) -> Vec<String> {
    let asked = |it: &&ConnectionOutcome| it.multipath || it.sender.as_ref().is_some_and(|it| it.fallback.is_some());
    let mut path_use = PathUse::default();
    for connection in outcome.connections.iter().filter(asked) {
        path_use.connections += 1;
        if let Some(reason) = connection.sender.as_ref().and_then(|stats| stats.fallback) {
            *path_use.plain.entry(reason).or_default() += 1;
        }
        for subflow in &connection.subflows {
            let name = header.paths.get(subflow.path).map_or("?", String::as_str).to_owned();
            let bytes = subflow.stats.bytes_sent + subflow.stats.bytes_received;
            path_use.add(Path { name, bytes, subflow: path_use::Subflow::of(&subflow.stats) });
        }
    }
    if path_use.connections > 0 {
        for name in &header.paths {
            path_use.add(Path { name: name.clone(), bytes: 0, subflow: path_use::Subflow::Absent });
        }
    }
    path_use.remarks()
}

/// Most transfers shown one by one; a mean says more about more.
const SHOWN: usize = 30;
/// Most connections shown one by one.
const SHOWN_CONNECTIONS: usize = 10;
/// Most links shown one by one.
const SHOWN_LINKS: usize = 60;

/// The connections that are not shown one by one, together.
fn others(header: &Header, connections: &[ConnectionOutcome]) -> String {
    if connections.is_empty() {
        return String::new();
    }
    let multipath = connections.iter().filter(|connection| connection.multipath).count();
    let fallen =
        connections.iter().filter(|it| it.sender.as_ref().is_some_and(|sender| sender.fallback.is_some())).count();
    let counters: Vec<Subflow> = headed(SUBFLOW).into_iter().filter(|it| it.kind == Kind::Counter).collect();
    let columns = ["subflows", "share"].into_iter().chain(counters.iter().filter_map(|it| it.heading));
    let mut table = Table::new([("path", Align::Left)].into_iter().chain(columns.map(|name| (name, Align::Right))));
    let subflows = || connections.iter().flat_map(|connection| &connection.subflows);
    let total = subflows().map(|subflow| subflow.stats.bytes_first_sent).sum::<u64>().max(1);
    for (path, name) in header.paths.iter().enumerate() {
        let here = || subflows().filter(|subflow| subflow.path == path).map(|subflow| &subflow.stats);
        let (mut sending, mut receiving) = (Tally::new(&counters), Tally::new(&counters));
        here().for_each(|stats| sending.add(stats));
        let received = connections.iter().flat_map(|connection| &connection.receiving_subflows);
        received.filter(|subflow| subflow.path == path).for_each(|subflow| receiving.add(&subflow.stats));
        let share = here().map(|stats| stats.bytes_first_sent).sum::<u64>() as f64 / total as f64;
        let row = [name.clone(), here().count().to_string(), percent(share)];
        let both = sending.iter().zip(receiving.iter());
        let values = both.map(|((it, sent), (_, received))| shown(it, it.end.of(sent, received)));
        table.row(row.into_iter().chain(values));
    }
    let count = connections.len();
    format!("and {count} more connections, of which {multipath} speak MPTCP and {fallen} fell back:\n{table}\n")
}

/// The first transfers.
pub(crate) fn transfers(outcome: &Outcome) -> Table {
    let columns = [("transfer", Align::Left), ("connection", Align::Right), ("start [s]", Align::Right)];
    let numbers = [("time [s]", Align::Right), ("bytes", Align::Right), ("goodput [Mbit/s]", Align::Right)];
    let mut table = Table::new(columns.into_iter().chain(numbers));
    for transfer in outcome.transfers.iter().take(SHOWN) {
        let time = transfer.duration().map(|time| time.as_secs_f64());
        let goodput = time.filter(|time| *time > 0.0).map(|time| transfer.bytes as f64 * 8.0 / time / 1e6);
        table.row([
            transfer.label.clone(),
            transfer.connection.to_string(),
            format!("{:.3}", transfer.started.as_secs_f64()),
            time.map_or("unfinished".to_owned(), |time| format!("{time:.3}")),
            transfer.bytes.to_string(),
            goodput.map_or(String::new(), short),
        ]);
    }
    table
}

fn about(connection: &ConnectionOutcome) -> String {
    let kind = if connection.multipath { "MPTCP" } else { "plain TCP" };
    let mut text = format!("{} ({kind})", connection.label);
    if let Some(receiver) = &connection.receiver {
        let (count, peak) = (receiver.ofo_count, receiver.ofo_peak);
        let held = seconds(receiver.hol_blocked.as_secs_f64());
        text += &format!(": {count} segments out of order, {peak} at once, in-order data held up for {held}");
        if let Some(size) = receiver.autotuned_buffer {
            text += &format!(", receive buffer grown to {}", bytes(size as f64));
        }
    }
    if let Some(sender) = &connection.sender {
        let blocked = &sender.blocked;
        let spans = [blocked.cwnd, blocked.receive_window, blocked.scheduler, blocked.application];
        let [cwnd, window, scheduler, application] = spans.map(|span| seconds(span.as_secs_f64()));
        text += &format!(
            "\nsender blocked by cwnd {cwnd}, receive window {window}, scheduler {scheduler}, application {application}"
        );
        let Overruled { impossible, starving, looping, shares, copies, .. } = sender.overruled;
        for (times, why) in [(impossible, "impossible"), (starving, "it starved the connection"), (looping, "it span")]
        {
            if times > 0 {
                text += &format!("; scheduler overruled {times} times: {why}");
            }
        }
        if shares > 0 {
            text += &format!("; receive-window policy overruled {shares} times: no subflow had a share");
        }
        if copies > 0 {
            text += &format!("; reinjection policy overruled {copies} times: an impossible copy");
        }
        if let Some(reason) = &sender.fallback {
            text += &format!("; fell back to plain TCP ({})", reason.name());
        }
    }
    text
}

/// The statistics of each subflow that have a heading, each of the end that it is about.
pub(crate) fn subflows(header: &Header, connection: &ConnectionOutcome) -> Table {
    subflows_by(SUBFLOW, header, connection)
}

pub(crate) fn subflows_by(statistics: &[Subflow], header: &Header, connection: &ConnectionOutcome) -> Table {
    let statistics = headed(statistics);
    let columns = ["share"].into_iter().chain(statistics.iter().filter_map(|it| it.heading));
    let mut table = Table::new([("path", Align::Left)].into_iter().chain(columns.map(|name| (name, Align::Right))));
    let total = connection.subflows.iter().map(|subflow| subflow.stats.bytes_first_sent).sum::<u64>().max(1);
    for subflow in &connection.subflows {
        let stats = &subflow.stats;
        let path = header.paths.get(subflow.path).map_or("?", String::as_str);
        let path = if stats.backup { format!("{path} (backup)") } else { path.to_owned() };
        let row = [path, percent(stats.bytes_first_sent as f64 / total as f64)];
        let receiving = connection.receiving_end(subflow).map(|it| &it.stats);
        let end = |it: &Subflow| it.end.of(Some(stats), receiving);
        let value = |it: &Subflow| end(it).map_or(String::new(), |stats| shown(it, &it.value(stats)));
        table.row(row.into_iter().chain(statistics.iter().map(value)));
    }
    table
}

fn headed(statistics: &[Subflow]) -> Vec<Subflow> {
    statistics.iter().filter(|it| it.heading.is_some()).copied().collect()
}

/// A value in a cell: bytes with a prefix, spans of time in milliseconds.
fn shown(statistic: &Subflow, value: &Value) -> String {
    match value {
        Value::Count(count) if statistic.unit == Unit::Bytes => bytes(*count as f64),
        Value::Count(count) => count.to_string(),
        Value::Span(span) => short(span.as_millis_f64()),
        Value::Flag(flag) => flag.to_string(),
        Value::Word(word) => word.to_string(),
        Value::Counts(counts) => counts.values().sum::<u64>().to_string(),
        Value::Absent => String::new(),
    }
}

/// Statistics of the links, the first of the run.
pub(crate) fn links(outcome: &Outcome) -> Table {
    let columns = [
        "delivered",
        "MB",
        "dropped: queue",
        "loss",
        "down",
        "marked",
        "mean queue [ms]",
        "waits: p50",
        "p95",
        "p99",
        "max",
        "longest queue",
    ];
    let mut table = Table::new([("link", Align::Left)].into_iter().chain(columns.map(|name| (name, Align::Right))));
    for link in outcome.links.iter().filter(|link| link.stats.offered > 0).take(SHOWN_LINKS) {
        let (stats, dropped, waits) = (&link.stats, &link.stats.dropped, &link.queue.waits);
        let wait = |wait: Duration| if waits.packets == 0 { String::new() } else { short(wait.as_millis_f64()) };
        table.row([
            link.name.clone(),
            stats.delivered.to_string(),
            format!("{:.2}", stats.delivered_bytes.as_f64() / 1e6),
            (dropped.queue + dropped.early).to_string(),
            dropped.loss.to_string(),
            (dropped.down + dropped.blackhole).to_string(),
            stats.marked.to_string(),
            stats.mean_queue_delay().map_or(String::new(), |delay| short(delay.as_millis_f64())),
            wait(waits.p50),
            wait(waits.p95),
            wait(waits.p99),
            wait(waits.max),
            stats.max_queued.to_string(),
        ]);
    }
    table
}

/// Counts of the middleboxes and the events they caused; empty if there are none.
fn interference(run: &Run) -> String {
    let measured = &run.measured;
    let mut text = String::new();
    if !measured.middleboxes.is_empty() {
        let columns = ["altered", "dropped", "made"].map(|name| (name, Align::Right));
        let mut table = Table::new([("middlebox", Align::Left)].into_iter().chain(columns));
        for MiddleboxCounts { name, altered, dropped, made } in &measured.middleboxes {
            table.row([name.clone(), altered.to_string(), dropped.to_string(), made.to_string()]);
        }
        text += &format!("{table}\n");
    }
    for (what, column) in [("fallbacks to plain TCP", "fallback_reasons"), ("resets sent", "reset_reasons")] {
        if let Value::Counts(reasons) = measured.counted.value(column)
            && !reasons.is_empty()
        {
            let each: Vec<_> = reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            text += &format!("{what}, both hosts: {}\n", each.join(", "));
        }
    }
    let checksum_failures = measured.counted.count("checksum_failures");
    if checksum_failures > 0 {
        text += &format!("DSS checksums that failed: {checksum_failures}\n");
    }
    if measured.altered_bytes > 0 {
        let why = if checksum_failures > 0 {
            "after the fallback to plain TCP nothing protects them"
        } else {
            "dss-checksum = true would show it"
        };
        text += &format!("{} bytes were altered on the way and read without an error: {why}\n", measured.altered_bytes);
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// Name, unit and scale of the measure that ranks.
fn measured(measure: MeasureName) -> (&'static str, f64) {
    match measure {
        MeasureName::CompletionTime => ("completion time [s]", 1.0),
        MeasureName::Goodput => ("goodput [Mbit/s]", 1e6),
        MeasureName::PageLoadTime => ("page load time [s]", 1.0),
    }
}

/// Many runs in a line each. Of a run only its line stays.
pub struct Repeated {
    measure: MeasureName,
    table: Table,
    values: Vec<f64>,
    censored: usize,
}

impl Repeated {
    /// Without a run.
    pub fn new(header: &Header, measure: MeasureName) -> Self {
        let (name, _) = measured(measure);
        let shares: Vec<String> = header.paths.iter().map(|path| format!("via {path}")).collect();
        let mut columns = vec![("seed", Align::Right), (name, Align::Right)];
        columns.extend(shares.iter().map(|share| (share.as_str(), Align::Right)));
        columns.extend(["ofo count", "ofo peak", "RTOs", "reinjected"].map(|name| (name, Align::Right)));
        columns.push(("", Align::Left));
        Repeated { measure, table: Table::new(columns), values: Vec::new(), censored: 0 }
    }

    /// Adds the line of a run.
    pub fn add(&mut self, m: &Measured) {
        let (measure, (_, scale)) = (self.measure, measured(self.measure));
        let bound = if m.is_censored(measure) { "≥ " } else { "" };
        let mut row = vec![m.seed.to_string(), format!("{bound}{:.3}", m.value(measure) / scale)];
        row.extend(m.shares.iter().map(|share| percent(*share)));
        row.extend(["ofo_count", "ofo_peak", "rtos"].map(|column| m.counted.count(column).to_string()));
        row.push(bytes(m.counted.count("reinjected_bytes") as f64));
        row.push(if m.finished { String::new() } else { "unfinished".to_owned() });
        self.table.row(row);
        self.values.push(m.value(measure));
        self.censored += usize::from(m.is_censored(measure));
    }

    /// The tables of all.
    pub fn text(&self, header: &Header) -> String {
        format!("{header}\n\n{}\n{}", self.lines(), policies(header))
    }

    fn lines(&self) -> String {
        let (table, (name, scale)) = (&self.table, measured(self.measure));
        let Some(mean) = Estimate::of(&self.values) else { return table.to_string() };
        match self.censored {
            0 if mean.is_one_sample() => {
                let value = with_interval(&mean, scale, false);
                format!("{table}\n{name} {value} in all {} runs, which are the same: one sample\n", mean.n)
            }
            0 => format!("{table}\nmean {name} {} (95 % interval)\n", with_interval(&mean, scale, false)),
            censored => {
                let all = self.values.len();
                format!(
                    "{table}\nmean {name} at least {}: {censored} of {all} runs did not finish\n",
                    short(mean.mean / scale)
                )
            }
        }
    }
}

/// A line for each run.
pub(crate) fn repeated_table(header: &Header, measure: MeasureName, runs: &[Measured]) -> Table {
    let mut repeated = Repeated::new(header, measure);
    runs.iter().for_each(|run| repeated.add(run));
    repeated.table
}
