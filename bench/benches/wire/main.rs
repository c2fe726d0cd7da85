//! One engine thread on a TUN device against the device alone and against the kernel's own MPTCP:
//! `cargo bench -p anabranch-bench --bench wire [-- --quick]`.
//!
//! Everything happens in network namespaces made here and gone afterwards; that takes CAP_SYS_ADMIN and `/dev/net/tun`.
//! README.md says what the numbers mean.

#[allow(dead_code)] // Some of it only the other benchmark needs.
#[path = "../speed/figure.rs"]
mod figure;
mod kernel;
mod memory;
mod processor;
mod raw;
mod server;
mod world;

use clap::Parser;
use figure::{Figure, Goal, Spread};
use processor::Sample;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use world::{Direction, Setup};

/// One engine thread on a TUN device against the device alone and against the kernel's own MPTCP
#[derive(Parser)]
#[command(bin_name = "cargo bench -p anabranch-bench --bench wire --")]
struct Options {
    /// Three rounds of half a second each instead of nine of two seconds
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Measure only this
    #[arg(long, value_name = "WHAT", value_parser = ["rates", "memory"])]
    only: Option<String>,
    /// Measure each so often
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// One transfer for ten seconds, for a profiler; -plain is a device without offload, -1 one subflow
    #[arg(long, value_name = "TRANSFER", value_parser = TRANSFERS)]
    play: Option<String>,
    /// Cargo says so; without it this is `cargo test` seeing whether benchmarks still work.
    #[arg(long = "bench", hide = true)]
    is_bench: bool,
}

const TRANSFERS: [&str; 8] = ["up", "up-1", "up-plain", "up-plain-1", "down", "down-1", "down-plain", "down-plain-1"];

fn main() -> ExitCode {
    if let [_, grow, port, count] = std::env::args().collect::<Vec<_>>().as_slice()
        && grow == memory::GROW
    {
        let number = |text: &String| text.parse::<u32>().expect("we wrote it ourselves");
        println!("{}", memory::growth(number(count) as usize, number(port) as u16));
        return ExitCode::SUCCESS;
    }
    let mut options = Options::parse();
    if !options.is_bench {
        options.quick = true;
        options.rounds = Some(1);
    }
    if let Err(error) = world::try_all() {
        println!("SKIPPED: this needs network namespaces and TUN devices: {error}");
        // A benchmark that was asked for and cannot run has failed.
        return if options.is_bench { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    if let Some(what) = &options.play {
        play(what);
        return ExitCode::SUCCESS;
    }
    let wants = |table: &str| options.only.as_ref().is_none_or(|only| only == table);
    let mut figures = Vec::new();
    if wants("rates") {
        rates(&options, &mut figures);
    }
    if wants("memory") {
        memory(&options, &mut figures);
    }
    if options.json {
        let all: Vec<_> = figures.iter().map(Figure::json).collect();
        println!("{:#}", json!({ "version": env!("CARGO_PKG_VERSION"), "quick": options.quick, "figures": all }));
    } else {
        for (table, title) in TABLES {
            let mut rows = figures.iter().filter(|figure| figure.table == *table).peekable();
            if rows.peek().is_some() {
                println!("{title}\n");
                rows.for_each(Figure::print);
                println!();
            }
        }
    }
    ExitCode::SUCCESS
}

const TABLES: &[(&str, &str)] = &[
    ("rates", "Payload moved (of raw packets: all but 52 bytes each)"),
    ("ratios", "The same, to what the raw device moved in the same round"),
    ("engine", "Processor time of the engine's thread, or of the raw one, per gigabit"),
    ("whole", "Processor time of all threads of the process, per gigabit"),
    ("memory", "Memory per connection, one thousand of them opened by a kernel client (resident size)"),
];

/// Measured lines, in the order of each round.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    /// A loop on the device, a kernel UDP socket behind it.
    Raw {
        direction: Direction,
    },
    /// The device with as little as possible behind it.
    Alone {
        direction: Direction,
        offload: bool,
    },
    Engine {
        direction: Direction,
        setup: Setup,
    },
    Kernel {
        subflows: usize,
    },
}

impl Line {
    fn all() -> Vec<Line> {
        let mut all = Vec::new();
        for offload in [false, true] {
            for direction in [Direction::Up, Direction::Down] {
                if !offload {
                    all.push(Line::Raw { direction });
                }
                all.push(Line::Alone { direction, offload });
                for subflows in [1, 2] {
                    all.push(Line::Engine { direction, setup: Setup { offload, subflows } });
                }
            }
        }
        all.extend([Line::Kernel { subflows: 1 }, Line::Kernel { subflows: 2 }]);
        all
    }

    fn name(self) -> String {
        let offload = |with: bool| if with { "with offload" } else { "without offload" };
        let raw = |direction| if direction == Direction::Up { "raw sink" } else { "raw source" };
        match self {
            Line::Raw { direction } => format!("{}, without offload, a UDP socket behind it", raw(direction)),
            Line::Alone { direction, offload: with } => format!("{}, {}, alone", raw(direction), offload(with)),
            Line::Engine { direction, setup } => {
                let verb = if direction == Direction::Up { "receives" } else { "sends" };
                format!("engine {verb}, {}, {} subflow(s)", offload(setup.offload), setup.subflows)
            }
            Line::Kernel { subflows } => format!("kernel to kernel over veth, {subflows} subflow(s)"),
        }
    }

    fn measure(self, span: Duration) -> Sample {
        match self {
            Line::Raw { direction: Direction::Up } => raw::sink(span),
            Line::Raw { direction: Direction::Down } => raw::source(span),
            Line::Alone { direction: Direction::Up, offload } => raw::sink_alone(offload, span),
            Line::Alone { direction: Direction::Down, offload } => raw::source_alone(offload, span),
            Line::Engine { direction, setup } => world::transfer(setup, direction, span),
            Line::Kernel { subflows } => kernel::transfer(subflows, span),
        }
    }

    /// The raw line to compare with.
    fn raw(self) -> Option<Line> {
        let Line::Engine { direction, setup } = self else { return None };
        let alone = Line::Alone { direction, offload: true };
        Some(if setup.offload { alone } else { Line::Raw { direction } })
    }
}

fn rates(options: &Options, figures: &mut Vec<Figure>) {
    let (rounds, span) = if options.quick { (3, 500) } else { (9, 2000) };
    let rounds = options.rounds.unwrap_or(rounds);
    let lines = Line::all();
    let mut samples: Vec<Vec<Sample>> = lines.iter().map(|_| Vec::new()).collect();
    // In turn, so that a slow moment of the machine touches all alike.
    for _ in 0..rounds {
        for (line, samples) in lines.iter().zip(&mut samples) {
            samples.push(line.measure(Duration::from_millis(span)));
        }
    }
    let column = |samples: &[Sample], value: &dyn Fn(&Sample) -> f64| Spread::of(samples.iter().map(value).collect());
    for (line, of_line) in lines.iter().zip(&samples) {
        let name = line.name();
        let rate = Figure::new("rates", &name, "Gbit/s", column(of_line, &|sample| sample.gigabits_per_second()));
        let wants_8 = matches!(line, Line::Engine { setup, .. } if setup.offload);
        figures.push(if wants_8 { rate.with(Goal::AtLeast(8.0)) } else { rate });
        if let Some(raw) = line.raw().and_then(|raw| lines.iter().position(|line| *line == raw)) {
            let ratios = of_line.iter().zip(&samples[raw]);
            let ratios = ratios.map(|(ours, raw)| ours.gigabits_per_second() / raw.gigabits_per_second()).collect();
            let ratio = Figure::new("ratios", &name, "of raw", Spread::of(ratios));
            figures.push(if wants_8 { ratio } else { ratio.with(Goal::AtLeast(0.8)) });
        }
        if of_line[0].engine.is_some() {
            let cost = |sample: &Sample| sample.engine.unwrap_or_default().as_secs_f64() / sample.gigabits();
            figures.push(Figure::new("engine", &name, "s/Gbit", column(of_line, &cost)));
        }
        let cost = |sample: &Sample| sample.whole.as_secs_f64() / sample.gigabits();
        figures.push(Figure::new("whole", &name, "s/Gbit", column(of_line, &cost)));
    }
}

fn memory(options: &Options, figures: &mut Vec<Figure>) {
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { 3 });
    let count = if options.is_bench { 1000 } else { 50 };
    let measured: Vec<_> = (0..rounds).map(|_| memory::measure(count)).collect();
    type Value = fn(&memory::Measured) -> f64;
    let lines: [(&str, Value); 2] = [
        ("idle, two subflows", |measured| measured.idle),
        ("busy: each downloads from the engine", |measured| measured.busy),
    ];
    for (name, value) in lines {
        let spread = Spread::of(measured.iter().map(value).collect());
        figures.push(Figure::new("memory", name, "kB", spread));
    }
}

/// Plays one transfer, for a profiler.
fn play(what: &str) {
    let direction = if what.starts_with("up") { Direction::Up } else { Direction::Down };
    let setup = Setup { offload: !what.contains("plain"), subflows: if what.ends_with("-1") { 1 } else { 2 } };
    let sample = world::transfer(setup, direction, Duration::from_secs(10));
    let engine = sample.engine.unwrap_or_default().as_secs_f64() / sample.gigabits();
    println!("{:.2} Gbit/s, {engine:.3} s of the engine's thread per gigabit", sample.gigabits_per_second());
    println!("{:?}", sample.counters);
}
