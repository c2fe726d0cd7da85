//! Speed and size of the engine: `cargo bench -p anabranch-bench --bench speed [-- OPTIONS]`.
//!
//! Prints delivered data packets per second of wall time on one core, the cost of decisions and forecasts, memory and
//! allocations; each number as the median of several, with the extremes. README.md says what they mean.

mod bare;
mod codec;
mod counting;
mod decide;
mod figure;
mod forecast;
mod instructions;
mod memory;
mod r1;
mod runs;

use clap::Parser;
use figure::{Figure, Goal, Spread};
use r1::{Links, R1};
use runs::Run;
use serde_json::json;
use std::process::{Command, ExitCode};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Measure speed and memory
#[derive(Parser)]
#[command(bin_name = "cargo bench -p anabranch-bench --bench speed --")]
struct Options {
    /// Shorter runs, fewer of them: for a look, not for a comparison
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// One table
    #[arg(long, value_name = "TABLE", value_parser = TABLES.map(|(table, ..)| table))]
    only: Option<String>,
    /// Play one run once, for a profiler: tcp, bulk, clean, many, r1, r1-100, r1-1000, r1-own-1000, r1-16-subflows,
    /// gigabit, long, …
    #[arg(long, value_name = "RUN", value_parser = run)]
    play: Option<Run>,
    /// Length of that run, in seconds of virtual time
    #[arg(long, value_name = "N", requires = "play")]
    seconds: Option<u64>,
    /// Cargo says so; without it this is `cargo test` seeing whether benchmarks still work.
    #[arg(long = "bench", hide = true)]
    is_bench: bool,
}

/// Makes the figures of one table.
type Measure = fn(&Options) -> Vec<Figure>;

fn main() -> ExitCode {
    let mut options = Options::parse();
    if let Some(run) = options.play {
        play(run, options.seconds.unwrap_or(run.seconds(options.quick)));
        return ExitCode::SUCCESS;
    }
    if !options.is_bench {
        options.quick = true;
        options.only.get_or_insert("allocations".to_owned());
    }
    let mut figures = Vec::new();
    for (table, title, measure) in TABLES {
        if options.only.as_ref().is_some_and(|only| only != table) {
            continue;
        }
        let measured = measure(&options);
        if !options.json {
            println!("{title}\n");
            measured.iter().for_each(Figure::print);
            println!();
        }
        figures.extend(measured);
    }
    if options.json {
        let all: Vec<_> = figures.iter().map(Figure::json).collect();
        println!("{:#}", json!({ "version": env!("CARGO_PKG_VERSION"), "quick": options.quick, "figures": all }));
    }
    ExitCode::SUCCESS
}

const TABLES: [(&str, &str, Measure); 9] = [
    ("packets", "Delivered data packets per second on one core: of wall time, then of processor time", packets),
    ("r1", "R1 and its relatives: nanoseconds of processor time per delivered data packet, and ratios", reference),
    ("instructions", "Instructions per delivered data packet, counted by callgrind", instructions),
    ("bytes", "Processor time of a run with segments as bytes, to that with segments as values", through_codec),
    ("allocations", "Allocations per delivered data packet, in the steady state", allocations),
    ("memory", "Memory", memory),
    ("decisions", "One decision of a scheduler with its event, amortised", decisions),
    ("forecasts", "One forecast", forecasts),
    ("codec", "One packet written or read; headers alone, then with 1420 bytes of payload copied and summed", codec),
];

fn run(name: &str) -> Result<Run, String> {
    let known = || runs::NAMED.map(|(name, _)| name).join(", ");
    let found = runs::NAMED.iter().find(|(known, _)| *known == name).map(|(_, run)| *run);
    found.ok_or_else(|| format!("there are {}", known()))
}

/// Plays a run once and prints its outcome (the digest shows whether a change to the code changed any event) and its
/// cost.
fn play(run: Run, seconds: u64) {
    let played = run.play(seconds);
    println!(
        "{}\n  digest {:016x}, {} data packets in {seconds} s of virtual time, goodput {:.2} Mbit/s\n  \
         {:.1} ns per packet ({:.1} of processor time), {:.2} M packets/s, {} MiB resident at most",
        run.name(),
        played.outcome.digest,
        played.outcome.packets,
        played.goodput(seconds),
        played.wall_nanos(),
        played.processor_nanos(),
        1e3 / played.wall_nanos(),
        memory::peak_resident().map_or("unknown".to_owned(), |mebibytes| format!("{mebibytes:.1}")),
    );
}

fn packets(options: &Options) -> Vec<Figure> {
    let rounds = if options.quick { 3 } else { 9 };
    let many_rounds = if options.quick { 1 } else { 3 };
    let runs = [Run::Tcp, Run::Bulk, Run::Clean, Run::Many(MANY)];
    let (mut wall, mut processor) = (runs.map(|_| Vec::new()), runs.map(|_| Vec::new()));
    // In turn, so that a slow moment of the machine touches all alike.
    for round in 0..rounds {
        for (n, run) in runs.into_iter().enumerate() {
            if matches!(run, Run::Many(_)) && round >= many_rounds {
                continue;
            }
            let played = run.play(run.seconds(options.quick));
            wall[n].push(played.wall_nanos());
            processor[n].push(played.processor_nanos());
        }
    }
    let ratios = processor[3].iter().zip(&processor[1]).map(|(many, one)| many / one).collect();
    let rates = |name: &str, nanos: [Vec<f64>; 4]| {
        let rate = |(run, nanos): (Run, _)| {
            let name = format!("{}{name}", run.name());
            Figure::new("packets", name, "M packets/s", Spread::of(nanos).inverse(1e3))
        };
        runs.into_iter().zip(nanos).map(rate).collect::<Vec<_>>()
    };
    let mut figures = rates("", wall);
    figures.iter_mut().take(3).for_each(|figure| figure.goal = Some(Goal::AtLeast(1.0)));
    let ratio = Figure::new("packets", "their cost per packet, to that of one", "times", Spread::of(ratios));
    figures.push(ratio.with(Goal::AtMost(3.0)));
    figures.extend(rates(", CPU", processor));
    figures
}

/// R1 beside the bare queue with its links, and the relatives of R1 beside R1, in turn.
fn reference(options: &Options) -> Vec<Figure> {
    const TABLE: &str = "r1";
    let relatives = [
        (R1::shared(100), Some(1.5)),
        (R1::shared(1000), Some(1.7)),
        (R1::own(100), Some(1.7)),
        (R1::own(1000), Some(1.7)),
        (R1::wide(8), None),
        (R1::wide(16), Some(1.5)),
        (R1::over(Links::Gigabit), None),
        (R1::over(Links::Long), Some(2.5)),
        (R1::queued("codel"), None),
        (R1::queued("fq-codel"), Some(1.15)),
    ];
    let rounds = if options.quick { 1 } else { 5 };
    let (mut bare, mut one, mut to_bare) = (Vec::new(), Vec::new(), Vec::new());
    let mut others = relatives.map(|_| (Vec::new(), Vec::new(), Vec::new()));
    for _ in 0..rounds {
        let floor = bare::nanos(if options.quick { 1_000_000 } else { 5_000_000 });
        let seconds = R1::ONE.seconds(options.quick);
        let single = Run::R1(R1::ONE).play(seconds).processor_nanos();
        bare.push(floor);
        one.push(single);
        to_bare.push(single / floor);
        for ((relative, _), (nanos, ratio, goodput)) in relatives.iter().zip(&mut others) {
            let seconds = relative.seconds(options.quick);
            let played = Run::R1(*relative).play(seconds);
            nanos.push(played.processor_nanos());
            ratio.push(played.processor_nanos() / single);
            goodput.push(played.goodput(seconds));
        }
    }
    let figure = |name: String, unit, values| Figure::new(TABLE, name, unit, Spread::of(values));
    let mut figures = vec![
        figure("the bare queue with R1's links".to_owned(), "ns", bare),
        figure(R1::ONE.name(), "ns", one),
        figure("its cost, to that of the bare queue".to_owned(), "times", to_bare).with(Goal::AtMost(3.0)),
    ];
    for ((relative, goal), (nanos, ratio, goodput)) in relatives.into_iter().zip(others) {
        figures.push(figure(relative.name(), "ns", nanos));
        let ratio = figure("  its cost, to that of R1".to_owned(), "times", ratio);
        figures.push(Figure { goal: goal.map(Goal::AtMost), ..ratio });
        let least = match relative.links {
            Links::Standard => continue,
            Links::Gigabit => 1700.0,
            Links::Long => 8000.0,
        };
        figures.push(figure("  its goodput".to_owned(), "Mbit/s", goodput).with(Goal::AtLeast(least)));
    }
    figures
}

fn instructions(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (run, shorter, longer) in instructions::COUNTED {
        if options.quick && run != "r1" {
            continue;
        }
        match instructions::per_packet(run, shorter, longer) {
            Ok(count) => {
                let goal = (run == "r1").then_some(Goal::AtMost(2600.0));
                let figure = Figure::new("instructions", run, "per packet", Spread::exactly(count));
                figures.push(Figure { goal, ..figure });
            }
            Err(why) => {
                eprintln!("instructions are not counted: {why}");
                break;
            }
        }
    }
    figures
}

/// Measures the ratio of a run's cost with segments as bytes to its cost with segments as values, in turn.
fn through_codec(options: &Options) -> Vec<Figure> {
    let figure = |run: Run| {
        let seconds = run.seconds(options.quick);
        let cost = |codec| run.play_through(seconds, codec).processor_nanos();
        let rounds = if options.quick { 5 } else { 15 };
        let ratios = (0..rounds).map(|_| cost(true) / cost(false)).collect();
        Figure::new("bytes", run.name(), "times", Spread::of(ratios)).with(Goal::AtMost(1.3))
    };
    [Run::Bulk, Run::Clean].into_iter().map(figure).collect()
}

fn allocations(options: &Options) -> Vec<Figure> {
    let figure = |run: Run, codec: bool| {
        let seconds = run.seconds(options.quick);
        let spread = Spread::exactly(run.allocations(seconds, codec));
        let name = if codec { format!("through the codec: {}", run.name()) } else { run.name() };
        Figure::new("allocations", name, "per packet", spread).with(Goal::AtMost(0.01))
    };
    let values = [Run::Tcp, Run::Bulk, Run::Clean].map(|run| figure(run, false));
    values.into_iter().chain([figure(Run::Bulk, true)]).collect()
}

fn memory(options: &Options) -> Vec<Figure> {
    const TABLE: &str = "memory";
    let mut figures = Vec::new();
    for (name, run, goal) in
        [("bulk", Run::Bulk, Some(30.0)), ("clean", Run::Clean, Some(30.0)), ("many", Run::Many(MANY), None)]
    {
        if let Some(mebibytes) = resident(name, options) {
            let figure = Figure::new(TABLE, format!("peak: {}", run.name()), "MiB", Spread::exactly(mebibytes));
            figures.push(Figure { goal: goal.map(Goal::AtMost), ..figure });
        }
    }
    for (name, r1, goal) in [
        ("r1-100", R1::shared(100), 120.0),
        ("r1-1000", R1::shared(1000), 120.0),
        ("r1-own-1000", R1::own(1000), 120.0),
    ] {
        if let Some(mebibytes) = resident(name, options) {
            let kibibytes = Spread::exactly(mebibytes * 1024.0 / (r1.connections * r1.clients as u64) as f64);
            let name = format!("peak per connection: {}", r1.name());
            figures.push(Figure::new(TABLE, name, "KiB", kibibytes).with(Goal::AtMost(goal)));
        }
    }
    let idle = memory::idle(if options.quick { 500 } else { 5000 });
    let figure = |name, bytes, goal| Figure::new(TABLE, name, "bytes", Spread::exactly(bytes)).with(Goal::AtMost(goal));
    figures.push(figure("idle connection end, two subflows, fresh", idle.fresh, 4096.0));
    figures.push(figure("the same after 100 kB each way", idle.used, 6144.0));
    figures
}

/// The peak of a process that does nothing but this run.
fn resident(run: &str, options: &Options) -> Option<f64> {
    let this = std::env::current_exe().ok()?;
    let quick = options.quick.then_some("--quick");
    let output = Command::new(this).args(["--play", run]).args(quick).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let before = text.split(" MiB resident").next()?;
    before.split_whitespace().next_back()?.parse().ok()
}

fn decisions(_: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, spreads) in decide::all() {
        // Of two subflows; with eight a decision may cost four times as much.
        let goal = match name {
            "single" | "round-robin" | "weighted" | "ratio" | "min-rtt" | "hsr" | "lws" | "lts" | "linux-burst" => {
                Some(30.0)
            }
            "linux-proportional" | "fps" | "ocps-r" | "stms-r" | "f2p-dps" | "f2p-dps-printed" | "dpsaf-r" | "late"
            | "late-nested" => Some(100.0),
            "anabranch" => Some(150.0),
            "otias" | "sttf" | "sttf-code" => Some(200.0),
            _ => None,
        };
        for ((subflows, unsent, moving), spread) in decide::CASES.into_iter().zip(spreads) {
            let goal = goal.map(|nanos| Goal::AtMost(if subflows == 2 { nanos } else { 4.0 * nanos }));
            let moving = if moving { ", moving" } else { "" };
            let name = format!("{name}, {subflows} subflows, {unsent} unsent{moving}");
            figures.push(Figure { goal, ..Figure::new("decisions", name, "ns", spread) });
        }
    }
    figures
}

fn forecasts(_: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for line in forecast::all() {
        let forecast::Line { conditions, rounds, late, late_new_loss, fps } = line;
        for (model, spread) in [("late", late), ("late, new loss", late_new_loss), ("fps", fps)] {
            let name = format!("{conditions}, {rounds} RTT: {model}");
            figures.push(Figure::new("forecasts", name, "ns", spread));
        }
    }
    figures
}

fn codec(_: &Options) -> Vec<Figure> {
    let figure = |name: String, unit, spread| Figure::new("codec", name, unit, spread);
    let mut figures = Vec::new();
    for line in codec::all() {
        let codec::Line { name, emit, parse, emit_whole, parse_whole, allocations } = line;
        figures.push(figure(format!("{name}: emit headers"), "ns", emit).with(Goal::AtMost(60.0)));
        figures.push(figure(format!("{name}: parse headers"), "ns", parse).with(Goal::AtMost(60.0)));
        figures.push(figure(format!("{name}: emit, whole"), "ns", emit_whole));
        figures.push(figure(format!("{name}: parse, whole"), "ns", parse_whole));
        let allocations = Spread::exactly(allocations);
        figures.push(figure(format!("{name}: allocations"), "per packet", allocations).with(Goal::AtMost(0.0)));
    }
    figures.push(figure("options planned, all fit".to_owned(), "ns", codec::plan()));
    figures.push(figure("checksum".to_owned(), "GB/s", codec::checksum()).with(Goal::AtLeast(15.0)));
    figures
}

const MANY: u64 = 1000;
