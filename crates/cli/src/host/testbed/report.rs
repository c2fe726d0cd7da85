//! Report of a testbed's links, for people.

use anabranch_engine::FallbackReason;
use anabranch_engine::path_use::{Path, PathUse, Subflow};
use anabranch_host::EmulatorReport;
use anabranch_host::emulator::{CaptureReport, PathReport, Percentiles, Scheduling, Traffic, Validity};
use anabranch_host::testbed::{Backend, KernelCounters, Layout, PathLayout};
use anabranch_report::{Align, Table, hang};
use anabranch_scenario::Scenario;
use anabranch_units::Duration;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Facts of the run.
pub struct About<'a> {
    /// Its scenario.
    pub scenario: &'a Scenario,
    /// Seed of the draws.
    pub seed: u64,
    /// Kind of interface at the ends of the paths.
    pub backend: Backend,
    /// Names and addresses.
    pub layout: &'a Layout,
    /// Non-essential steps that failed.
    pub shortcomings: &'a [String],
    /// Keys of the scenario that no kernel supports.
    pub not_applied: &'a [String],
    /// Counters of the client's kernel and of the server's.
    pub kernels: [KernelCounters; 2],
    /// Reason for which the transfer was slower than its best path, if it was captured.
    pub why: Option<String>,
}

/// End of the command.
pub struct Ending {
    /// Our exit code.
    pub code: u8,
    /// True if --duration ended it.
    pub timed_out: bool,
    /// Running time.
    pub elapsed: std::time::Duration,
}

/// Width of sentences, in characters.
const WIDTH: usize = 110;

/// Message above a shell's prompt.
pub fn greeting(scenario: &Scenario, layout: &Layout, backend: Backend, shortcomings: &[String]) -> String {
    let mut text = format!(
        "anabranch testbed: {}, {} on {}; the server is `server` ({}) and `server6`; leave with exit\n",
        scenario.name,
        number(layout.paths.len(), "path"),
        backend_name(backend),
        layout.server().next().map(|it| it.v4.to_string()).unwrap_or_default(),
    );
    for path in &layout.paths {
        let backup = if path.backup { ", backup" } else { "" };
        let primary = if path.number == layout.primary().number { ", primary" } else { "" };
        let (client, engine) = (path.client(), path.client_engine());
        line(
            &mut text,
            format_args!(
                "  {}: {} and {} on {}; engines {}{primary}{backup}",
                path.name, client.v4, client.v6, path.device, engine.v4
            ),
        );
    }
    notes(&mut text, shortcomings, &[]);
    text
}

/// The tables.
pub fn text(about: &About<'_>, ending: &Ending, report: &EmulatorReport) -> String {
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            "anabranch testbed: {}, seed {}, {:.1} s on {}, {}",
            about.scenario.name,
            about.seed,
            ending.elapsed.as_secs_f64(),
            backend_name(about.backend),
            scheduling(&report.scheduling),
        ),
    );
    text += "\n";
    text += &paths(report, ending.elapsed).to_string();
    text += "\n";
    text += &links(report).to_string();
    text += "\n";
    let late = &report.lateness;
    line(
        &mut text,
        format_args!(
            "  own lateness: p50 {} us, p90 {} us, p99 {} us, max {} us over {} packets; processor {:.0} %",
            micros(late.p50),
            micros(late.p90),
            micros(late.p99),
            micros(late.max),
            late.count,
            100.0 * report.cpu.as_nanos() as f64 / report.elapsed.as_nanos().max(1) as f64,
        ),
    );
    match &report.validity {
        Validity::Valid => text += "  VALID: the links did what the scenario says\n",
        Validity::Invalid(faults) => {
            text += "  INVALID: this run says little about its scenario\n";
            for fault in faults {
                text += &hang("    - ", &format!("{}; {}", fault.what, fault.remedy), WIDTH);
            }
        }
    }
    if let Some(capture) = &report.capture {
        text += &hang("  captures: ", &captures(capture), WIDTH);
    }
    if let Some(why) = &about.why {
        text += &hang("  why: ", why, WIDTH);
    }
    for remark in remarks(about, report) {
        text += &hang("  note: ", &remark, WIDTH);
    }
    notes(&mut text, about.shortcomings, about.not_applied);
    if ending.timed_out {
        text += "  the command was ended because its time was up\n";
    }
    text
}

/// Multipath that did not come about, and why: of the hosts' kernels, since engines on them say so themselves.
pub(super) fn remarks(about: &About<'_>, report: &EmulatorReport) -> Vec<String> {
    let [client, server] = &about.kernels;
    let (opened, capable) = (client.get("TcpActiveOpens"), client.mptcp("MPCapableSYNTX"));
    let connections = opened.saturating_sub(client.mptcp("MPJoinSynTx"));
    let plain = BTreeMap::from([
        (FallbackReason::Syn, connections.saturating_sub(capable)),
        (FallbackReason::SynAck, client.mptcp("MPCapableFallbackSYNACK")),
        (FallbackReason::ThirdAck, server.mptcp("MPCapableFallbackACK")),
        (FallbackReason::FirstData, client.mptcp("MPCapableDataFallback") + server.mptcp("MPCapableDataFallback")),
    ]);
    let path = |(place, path): (&PathLayout, &PathReport)| {
        let traffic = [&path.traffic.down, &path.traffic.up];
        let went = traffic.iter().any(|way| way.read > way.link_local);
        Path {
            name: path.name.clone(),
            bytes: traffic.iter().map(|way| way.delivered_payload.get()).sum(),
            subflow: match (went, place.backup) {
                (_, true) => Subflow::Backup,
                (true, false) => Subflow::Unknown,
                (false, false) => Subflow::Absent,
            },
        }
    };
    let paths = about.layout.paths.iter().zip(&report.paths).map(path).collect();
    PathUse { connections, plain, on_one_subflow: 0, paths }.remarks()
}

fn notes(text: &mut String, shortcomings: &[String], not_applied: &[String]) {
    if !not_applied.is_empty() {
        *text += &hang("  not applied to the kernels: ", &not_applied.join(", "), WIDTH);
    }
    for shortcoming in shortcomings {
        *text += &hang("  note: ", shortcoming, WIDTH);
    }
}

fn captures(capture: &CaptureReport) -> String {
    if let Some(failure) = &capture.failure {
        return format!("none, because {failure}");
    }
    let files: Vec<String> = capture.files.iter().map(|file| file.display().to_string()).collect();
    let missed = if capture.missed == 0 { String::new() } else { format!("; {} more are missing", capture.missed) };
    format!("{} packets in {}{missed}", capture.packets, files.join(" and "))
}

fn paths(report: &EmulatorReport, elapsed: std::time::Duration) -> Table {
    let columns = ["sent", "delivered", "Mbit/s", "delay p50", "p90", "p99", "max ms", "interface drops"];
    let mut table =
        Table::new([("path", Align::Left), ("", Align::Left)].into_iter().chain(columns.map(|it| (it, Align::Right))));
    for path in &report.paths {
        for (way, traffic) in [("down", &path.traffic.down), ("up", &path.traffic.up)] {
            let Percentiles { p50, p90, p99, max, .. } = traffic.delay;
            let mut row = vec![
                path.name.clone(),
                way.to_owned(),
                traffic.read.to_string(),
                traffic.delivered.to_string(),
                rate(traffic, elapsed),
            ];
            row.extend([p50, p90, p99, max].map(|span| if traffic.delivered > 0 { millis(span) } else { "-".into() }));
            row.push(interface_drops(traffic));
            table.row(row);
        }
    }
    table
}

fn links(report: &EmulatorReport) -> Table {
    let columns =
        ["offered", "delivered", "queue full", "lost", "down", "black hole", "queue p50", "p90", "p99", "max ms"];
    let mut table = Table::new([("link", Align::Left)].into_iter().chain(columns.map(|it| (it, Align::Right))));
    for link in &report.links {
        let (stats, queue) = (&link.stats, &link.queue_delay);
        let counts = [
            stats.offered,
            stats.delivered,
            stats.dropped.queue + stats.dropped.early,
            stats.dropped.loss,
            stats.dropped.down,
            stats.dropped.blackhole,
        ];
        let mut row = vec![link.name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        let spans = [queue.p50, queue.p90, queue.p99, queue.max];
        row.extend(spans.map(|span| if queue.count > 0 { millis(span) } else { "-".into() }));
        table.row(row);
    }
    table
}

/// Packets that the interfaces dropped outside the links: at the sender, at the receiver.
fn interface_drops(traffic: &Traffic) -> String {
    match traffic.queue_drops {
        Some(queue) => (queue + traffic.no_room + traffic.refused).to_string(),
        None => format!("{} + ?", traffic.no_room + traffic.refused),
    }
}

/// The mean while the command ran, with all headers.
fn rate(traffic: &Traffic, elapsed: std::time::Duration) -> String {
    format!("{:.2}", traffic.delivered_bytes.get() as f64 * 8.0 / 1e6 / elapsed.as_secs_f64().max(1e-9))
}

fn millis(span: Duration) -> String {
    format!("{:.2}", span.as_nanos() as f64 / 1e6)
}

fn micros(span: Duration) -> String {
    format!("{:.0}", span.as_nanos() as f64 / 1e3)
}

pub(super) fn scheduling(scheduling: &Scheduling) -> String {
    match scheduling {
        Scheduling::RealTime => "real-time scheduling".to_owned(),
        Scheduling::Ordinary => "ordinary scheduling".to_owned(),
        Scheduling::Refused(why) => format!("ordinary scheduling (SCHED_FIFO: {why})"),
    }
}

pub(super) const fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Veth => "veth",
        Backend::Tun | Backend::Auto => "TUN",
    }
}

fn number(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("writing to a String cannot fail");
}
