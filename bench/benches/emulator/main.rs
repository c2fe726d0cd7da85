//! Accuracy of the emulator: `cargo bench -p anabranch-bench --bench emulator [-- OPTIONS]`.
//!
//! Kernel TCP, pings and datagrams between two network namespaces with the emulator between them, against what the
//! links were set to. Prints each goal with what was measured, the worst of several rounds last.

mod bed;

use anabranch_host::EmulatorReport;
use anabranch_host::emulator::{Options as EmulatorOptions, Scheduling};
use anabranch_net::{LinkConfig, LossModel, QueueLimit};
use anabranch_paths::PathSpec;
use anabranch_units::{Duration, Rate};
use bed::{Bed, Result};
use clap::Parser;
use std::process::ExitCode;
use std::time::Duration as Span;

/// Measure the accuracy of the emulator
#[derive(Parser)]
#[command(bin_name = "cargo bench -p anabranch-bench --bench emulator --")]
struct Options {
    /// Shorter measurements
    #[arg(long)]
    quick: bool,
    /// Measure so often
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The emulator's spin, in microseconds, in place of its default
    #[arg(long, value_name = "US")]
    spin: Option<u64>,
    /// Cargo says so; without it this is `cargo test` seeing whether benchmarks still work.
    #[arg(long = "bench", hide = true)]
    is_bench: bool,
}

impl Options {
    fn emulator(&self) -> EmulatorOptions {
        let default = EmulatorOptions::default();
        EmulatorOptions { spin: self.spin.map_or(default.spin, Duration::from_micros), ..default }
    }
}

/// One goal, with what each round got.
struct Row {
    what: &'static str,
    goal: &'static str,
    got: Vec<(String, bool)>,
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    if !options.is_bench {
        (options.quick, options.rounds) = (true, 1);
    }
    match measure(&options) {
        Ok(rows) => print(&rows),
        Err(error) => {
            eprintln!("cannot measure: {error}; this needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN, and /dev/net/tun");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for round in 0..options.rounds {
        let results = [
            throughput(options, 10)?,
            throughput(options, 100)?,
            round_trips(options)?,
            losses(options)?,
            lateness(options)?,
        ];
        for (index, (what, goal, got, met)) in results.into_iter().flatten().enumerate() {
            if round == 0 {
                rows.push(Row { what, goal, got: Vec::new() });
            }
            rows[index].got.push((got, met));
        }
    }
    Ok(rows)
}

type Result1 = (&'static str, &'static str, String, bool);

/// One TCP connection, against the rate that headers leave of the link's.
fn throughput(options: &Options, mbps: u64) -> Result<Vec<Result1>> {
    let rate = Rate::from_mbps(mbps);
    let bed = Bed::new(vec![path("path1", rate, 10)], options.emulator())?;
    let (warm_up, span) = if options.quick { (2, 4) } else { (3, 15) };
    let got = bed.download(1, Span::from_secs(warm_up), Span::from_secs(span))?[0];
    // 1448 bytes of payload in a packet of 1500: IPv4, TCP, timestamps.
    let allowed = rate.as_bps() as f64 / 8.0 * 1448.0 / 1500.0;
    let gap = got / allowed - 1.0;
    let text = format!("{:.3} Mbit/s, {:+.2} %", got * 8.0 / 1e6, gap * 100.0);
    let report = bed.emulator.stop()?;
    let name = if mbps == 10 { "TCP at 10 Mbit/s" } else { "TCP at 100 Mbit/s" };
    let mut results = vec![(name, "within 1 % of what headers allow", text, gap.abs() <= 0.01)];
    if mbps == 100 {
        results.extend(late("TCP at 100 Mbit/s", &report));
    }
    Ok(results)
}

/// Pings over an idle path.
fn round_trips(options: &Options) -> Result<Vec<Result1>> {
    let bed = Bed::new(vec![path("path1", Rate::from_mbps(100), 10)], options.emulator())?;
    let mut errors = bed.ping(if options.quick { 300 } else { 2000 })?;
    // Two propagation delays, and 84 bytes serialised twice.
    let set = 0.020 + 2.0 * 84.0 * 8.0 / 100e6;
    errors.iter_mut().for_each(|rtt| *rtt = (*rtt - set) * 1e6);
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize];
    let (low, median, p90) = (at(0.0), at(0.5), at(0.9));
    let text = format!("p50 {median:+.0} us, p90 {p90:+.0} us, least {low:+.0} us");
    Ok(vec![("idle RTT of 20 ms, error", "within 300 us at the median", text, median.abs() <= 300.0 && low >= 0.0)])
}

/// Datagrams over a lossy path.
fn losses(options: &Options) -> Result<Vec<Result1>> {
    const LOSS: f64 = 0.01;
    let mut lossy = path("path1", Rate::from_mbps(100), 5);
    lossy.down.loss = LossModel::Bernoulli { p: LOSS };
    let bed = Bed::new(vec![lossy], options.emulator())?;
    let sent = if options.quick { 20_000 } else { 200_000 };
    let lost = sent - bed.datagrams(sent)?;
    let share = f64::from(lost) / f64::from(sent);
    let margin = 2.576 * (LOSS * (1.0 - LOSS) / f64::from(sent)).sqrt();
    let text = format!("{:.3} % of {sent}", share * 100.0);
    let goal = "within the 99 % interval of 1 %";
    Ok(vec![("loss of 1 %", goal, text, (share - LOSS).abs() <= margin)])
}

/// Two paths that carry 100 Mbit/s in total.
fn lateness(options: &Options) -> Result<Vec<Result1>> {
    let bed = Bed::new(
        vec![path("path1", Rate::from_mbps(50), 10), path("path2", Rate::from_mbps(50), 20)],
        options.emulator(),
    )?;
    bed.download(2, Span::from_secs(1), Span::from_secs(if options.quick { 4 } else { 15 }))?;
    let report = bed.emulator.stop()?;
    let mut results = late("2 x 50 Mbit/s", &report).to_vec();
    let share = report.cpu.as_secs_f64() / report.elapsed.as_secs_f64() * 100.0;
    let text = format!("{share:.0} % of one core, {} resident", resident());
    results.push(("processor, memory", "-", text, true));
    Ok(results)
}

fn late(name: &'static str, report: &EmulatorReport) -> [Result1; 2] {
    let Percentiles { p50, p90, p99, .. } = Percentiles::of(report);
    let met = p50 <= 30.0 && p90 <= 100.0 && p99 <= 1000.0;
    let worst = report.lateness.max.as_secs_f64() * 1e3;
    let text = format!("p50 {p50:.1} us, p90 {p90:.1} us, p99 {p99:.0} us, max {worst:.1} ms");
    let scheduling = match &report.scheduling {
        Scheduling::RealTime => "SCHED_FIFO".to_owned(),
        Scheduling::Ordinary => "ordinary".to_owned(),
        Scheduling::Refused(why) => format!("ordinary ({why})"),
    };
    let drops: u64 = report
        .paths
        .iter()
        .flat_map(|path| [&path.traffic.down, &path.traffic.up])
        .map(|it| it.queue_drops.unwrap_or(0))
        .sum();
    let text = format!("{text}; {scheduling}, {drops} dropped by interfaces");
    [
        (name, "lateness p50 <= 30 us, p90 <= 100 us, p99 <= 1 ms", text, met),
        (name, "the report calls it valid", format!("{:?}", report.validity), report.validity.is_valid()),
    ]
}

/// Lateness in microseconds.
struct Percentiles {
    p50: f64,
    p90: f64,
    p99: f64,
}

impl Percentiles {
    fn of(report: &EmulatorReport) -> Self {
        let micros = |it: Duration| it.as_secs_f64() * 1e6;
        let late = &report.lateness;
        Percentiles { p50: micros(late.p50), p90: micros(late.p90), p99: micros(late.p99) }
    }
}

/// Makes a path that is equal both ways, with a queue of one bandwidth-delay product and a half.
fn path(name: &str, rate: Rate, delay_ms: u64) -> PathSpec {
    let delay = Duration::from_millis(delay_ms);
    let queue = QueueLimit::Bdp { factor: 1.5, round_trip: delay * 2 };
    let link = LinkConfig { queue, ..LinkConfig::new(rate, delay) };
    PathSpec::new(name, link.clone(), link)
}

/// Memory of the process.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "?".to_owned(), |size| size.trim().to_owned())
}

fn print(rows: &[Row]) -> ExitCode {
    let mut missed = 0;
    for Row { what, goal, got } in rows {
        println!("{what}: {goal}");
        for (got, met) in got {
            missed += usize::from(!met);
            println!("  {} {got}", if *met { "ok    " } else { "MISSED" });
        }
    }
    println!("\n{missed} goals missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
