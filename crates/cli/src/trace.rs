//! `anabranch trace`.

use crate::args::span;
use crate::failure::Failure;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_lab::format::RECORDINGS;
use anabranch_recording::{Column, Form, Gaps, Options, RateUnit, Recording, TimeUnit, align, clock_text, table_text};
use anabranch_report::html::{self, Page};
use anabranch_report::{Recorded, Recordings, Window, recordings};
use anabranch_scenario::model::{self, Model};
use anabranch_units::{Duration, Seed, input};
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::{Path, PathBuf};

/// Arguments of `trace`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch trace drive.csv                           what it holds: figures, outages, periods, a picture
  anabranch trace log.txt --rate 3 --rate-unit kbit   a table whose columns have to be named
  anabranch trace starlink.csv att.csv --windows 20 --length 20s --seed 7
  anabranch trace starlink.csv att.csv --align --out cut
  anabranch trace iperf.json --to mahimahi --out .    the same link for mahimahi
  anabranch trace --model leo --seed 3 --length 60s   what a model draws, as for a path of its name in run 3

  anabranch trace --model '{ name = \"wifi\", stations = 3 }' --report wifi.html

Forms that are recognised: mahimahi; tables such as CSV; the output of iperf and iperf3, as text and JSON; ping; irtt.
Exit status 0: read. 2: a file is no recording, or not of the form that was asked for; the error names its place.")]
pub struct TraceArgs {
    /// Recordings.
    #[arg(required_unless_present = "model", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Draw from a model in place of reading files: its name, or the table that a scenario has. Several may be given.
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    #[arg(conflicts_with_all = ["files", "align", "from", "windows", "form", "of", "rate", "delay", "loss", "time"])]
    #[arg(conflicts_with_all = ["rate_unit", "delay_unit", "time_unit", "interval", "gaps"])]
    model: Vec<String>,
    #[command(flatten)]
    reading: Reading,
    /// Cut the recordings to the times that all of them cover by their clocks.
    #[arg(long, help_heading = "Parts")]
    align: bool,
    /// Take the part from this place on.
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Parts")]
    from: Option<Duration>,
    /// Length of the part, of each window or of what a model draws; all that is left, 20 s for windows and 60 s for
    /// models unless given.
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Parts")]
    length: Option<Duration>,
    /// Draw this many windows, at the same moments in all recordings.
    #[arg(long, value_name = "N", conflicts_with = "from", help_heading = "Parts")]
    windows: Option<usize>,
    /// Seed of the windows or of the models; 1 unless given.
    #[arg(long, value_name = "N", help_heading = "Parts")]
    seed: Option<u64>,
    /// Write the recordings, or each window of them, into this folder: NAME.csv, NAME-1.csv and so on.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Form in which they are written.
    #[arg(long, value_enum, default_value_t = Written::Table, requires = "out", help_heading = "Output")]
    to: Written,
    /// Write a page with pictures.
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    report: Option<ResultFile>,
    /// Print JSON.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Directions for reading.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Reading")]
struct Reading {
    /// Form of the files; recognised unless given.
    #[arg(long, value_parser = PossibleValuesParser::new(Form::names()))]
    form: Option<String>,
    /// Operator or path of a table that holds several.
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// Column of the rate, by name or number from 1.
    #[arg(long, value_name = "COLUMN")]
    rate: Option<String>,
    /// Column of the delay.
    #[arg(long, value_name = "COLUMN")]
    delay: Option<String>,
    /// Column of the loss.
    #[arg(long, value_name = "COLUMN")]
    loss: Option<String>,
    /// Column of the time.
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Unit of the rate: per second, or `B` for bytes until the next row.
    #[arg(long, value_parser = PossibleValuesParser::new(RateUnit::names()))]
    rate_unit: Option<String>,
    /// Unit of the delay.
    #[arg(long, value_parser = PossibleValuesParser::new(TimeUnit::names()))]
    delay_unit: Option<String>,
    /// Unit of the time.
    #[arg(long, value_parser = PossibleValuesParser::new(TimeUnit::names()))]
    time_unit: Option<String>,
    /// Time between the rows of a table without a time, or between the probes of ping.
    #[arg(long, value_name = "TIME", value_parser = span)]
    interval: Option<Duration>,
    /// Treatment of times without rows: the last value holds, nothing passes, they are cut out, or `short`: the last
    /// value holds up to ten intervals or 5 s, and longer times are cut out.
    #[arg(long, value_parser = PossibleValuesParser::new(Gaps::names()), default_value = "short")]
    gaps: String,
}

/// Form of files that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// Table with all that was recorded.
    Table,
    /// Rate as opportunities in mahimahi's format.
    Mahimahi,
}

/// Says what recordings hold, cuts and converts them.
pub fn trace(args: &TraceArgs) -> Result<(), Failure> {
    if args.seed.is_some() && args.windows.is_none() && args.model.is_empty() {
        return Err(refused("`--seed` draws nothing", "accepted: beside `--windows` or `--model`"));
    }
    if !args.model.is_empty() {
        return modelled(args);
    }
    let options = args.reading.options();
    let mut contents = Vec::new();
    for path in &args.files {
        contents.push(read(path, &options)?);
    }
    let common = if contents.len() > 1 { align(&contents) } else { None };
    let common_s = common.as_ref().map(|common| common[0].length().as_secs_f64());
    let mut parts = match (&common, args.align) {
        (Some(common), true) => common.clone(),
        (None, true) => {
            let help = "accepted: two recordings or more with clock times, made at the same time";
            return Err(refused("the recordings have no time in common by their clocks", help));
        }
        (_, false) => contents.clone(),
    };
    if args.windows.is_none() && (args.from.is_some() || args.length.is_some()) {
        for (part, path) in parts.iter_mut().zip(&args.files) {
            *part = cut(part, args.from.unwrap_or(Duration::ZERO), args.length, path)?;
        }
    }
    let mut windows = Vec::new();
    let mut of_windows = Vec::new();
    if let Some(count) = args.windows {
        let common = common.unwrap_or_else(|| contents.clone());
        let length = args.length.unwrap_or(Duration::from_secs(20));
        (windows, of_windows) = drawn(&common, count, length, args.seed.unwrap_or(1))?;
    }
    let name = |path: &PathBuf| path.to_string_lossy().into_owned();
    let recorded = args.files.iter().zip(&parts).map(|(path, part)| Recorded::of(&name(path), part)).collect();
    let all = Recordings { recordings: recorded, common_s, windows };
    show(args, &args.files, &all, &parts, &of_windows)
}

/// Says what models draw.
fn modelled(args: &TraceArgs) -> Result<(), Failure> {
    let length = args.length.unwrap_or(Duration::from_secs(60));
    if !(Duration::from_millis(1)..=model::LONGEST).contains(&length) {
        let help = format!("accepted: 1ms to {}, after which a model repeats", model::LONGEST);
        return Err(refused(&format!("`--length` is {length}"), &help));
    }
    let (mut names, mut recorded, mut parts): (Vec<PathBuf>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    for text in &args.model {
        let model = Model::read("--model", text)?;
        // A path takes its draws from its own name, so models of one name are told apart.
        let before = names.iter().filter(|name| name.to_string_lossy().starts_with(model.name())).count();
        let name = if before == 0 { model.name().to_owned() } else { format!("{}-{}", model.name(), before + 1) };
        let part = model.draw(Seed(args.seed.unwrap_or(1)), &name, length);
        recorded.push(Recorded::of(&name, &part));
        names.push(name.into());
        parts.push(part);
    }
    show(args, &names, &Recordings { recordings: recorded, common_s: None, windows: Vec::new() }, &parts, &[])
}

/// Writes what was asked for, and prints.
fn show(
    args: &TraceArgs,
    names: &[PathBuf],
    all: &Recordings,
    parts: &[Recording],
    windows: &[Vec<Recording>],
) -> Result<(), Failure> {
    if let Some(directory) = &args.out {
        write(args, names, directory, parts, windows)?;
    }
    if let Some(path) = &args.report {
        let page = Page::of_recordings(all, parts, &output::command_line());
        output::write(path, html::page(&page).as_bytes())?;
    }
    match args.json {
        true => output::print(&output::json(&RECORDINGS, all)?),
        false => output::print(&recordings(all, parts, output::width().min(100))),
    }
}

impl Reading {
    /// Returns the options. The values were checked with the command line.
    fn options(&self) -> Options {
        let column = |text: &Option<String>| {
            text.as_ref().map(|text| text.parse().map_or_else(|_| Column::Name(text.clone()), Column::Number))
        };
        fn word<T: std::str::FromStr>(text: &Option<String>) -> Option<T> {
            text.as_ref().and_then(|text| text.parse().ok())
        }
        Options {
            form: word(&self.form),
            of: self.of.clone(),
            rate: column(&self.rate),
            delay: column(&self.delay),
            loss: column(&self.loss),
            time: column(&self.time),
            rate_unit: word(&self.rate_unit),
            delay_unit: word(&self.delay_unit),
            time_unit: word(&self.time_unit),
            interval: self.interval,
            gaps: self.gaps.parse().unwrap_or_default(),
        }
    }
}

fn read(path: &Path, options: &Options) -> Result<Recording, Failure> {
    let text = input::text(path, input::RECORDED).map_err(|error| {
        refused(&format!("cannot read {}: {error}", path.display()), "accepted: a file of text, at most 256 MiB")
    })?;
    anabranch_recording::read(&text, options).map_err(|error| {
        let help =
            error.help.clone().unwrap_or_else(|| "accepted: a recording; see `anabranch trace --help`".to_owned());
        refused(&format!("{}: {error}", path.display()), &help)
    })
}

/// Takes a part of a recording.
fn cut(content: &Recording, from: Duration, length: Option<Duration>, path: &Path) -> Result<Recording, Failure> {
    let whole = content.length();
    let until = length.map_or(whole, |length| from + length);
    if from >= until || until > whole {
        let problem = format!("{} has no part from {from} to {until}", path.display());
        return Err(refused(&problem, &format!("accepted: a part within its {whole}")));
    }
    Ok(content.cut(&[(from, until)]))
}

/// Windows with what they hold of each recording.
type Drawn = (Vec<Window>, Vec<Vec<Recording>>);

/// Draws windows, each of which lies within all recordings.
fn drawn(contents: &[Recording], count: usize, length: Duration, seed: u64) -> Result<Drawn, Failure> {
    let shortest = contents.iter().min_by_key(|content| content.length()).expect("a file is required");
    if !shortest.stretches.iter().any(|stretch| stretch.length >= length) || length.is_zero() {
        let longest = shortest.stretches.iter().map(|stretch| stretch.length).max().unwrap_or(Duration::ZERO);
        let problem = format!("no stretch without a pause holds a window of {length}");
        return Err(refused(&problem, &format!("accepted: `--length` up to {longest}")));
    }
    let mut draw = Seed(seed).stream("windows");
    let (mut windows, mut parts) = (Vec::new(), Vec::new());
    for number in 1..=count {
        let at = anabranch_recording::window(shortest, length, &mut draw);
        let held: Vec<Recording> = contents.iter().map(|content| content.cut(&[(at, at + length)])).collect();
        let mean = |part: &Recording| {
            let rates = part.rates(length)?;
            Some(anabranch_recording::spread(&rates, |rate| rate.as_bps() as f64).mean)
        };
        windows.push(Window {
            number,
            at_s: at.as_secs_f64(),
            clock: held[0].stretches.first().and_then(|stretch| stretch.clock).map(clock_text),
            rates_bps: held.iter().map(mean).collect(),
        });
        parts.push(held);
    }
    Ok((windows, parts))
}

/// Writes the recordings, or each window of them.
fn write(
    args: &TraceArgs,
    names: &[PathBuf],
    directory: &Path,
    parts: &[Recording],
    windows: &[Vec<Recording>],
) -> Result<(), Failure> {
    output::check_directory(directory)?;
    let mut files: Vec<(PathBuf, &Recording, &Path)> = Vec::new();
    let ending = if args.to == Written::Table { "csv" } else { "trace" };
    for (n, path) in names.iter().enumerate() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match windows.is_empty() {
            true => files.push((directory.join(format!("{stem}.{ending}")), &parts[n], path)),
            false => files.extend(windows.iter().enumerate().map(|(number, held)| {
                (directory.join(format!("{stem}-{}.{ending}", number + 1)), &held[n], path.as_path())
            })),
        }
    }
    let is_read = |file: &Path| {
        let there = std::fs::canonicalize(file).ok();
        there.is_some() && args.files.iter().any(|path| std::fs::canonicalize(path).ok() == there)
    };
    for (n, (file, ..)) in files.iter().enumerate() {
        if is_read(file) || files[..n].iter().any(|(other, ..)| other == file) {
            let problem = format!("{} is read, or written twice", file.display());
            return Err(refused(&problem, "accepted: `--out` with another folder, and files of different names"));
        }
    }
    for (file, content, path) in files {
        let text = match args.to {
            Written::Table => table_text(content),
            Written::Mahimahi => content.mahimahi_text().ok_or_else(|| {
                let problem = format!("{} has no rate that mahimahi's format can say", path.display());
                refused(&problem, "accepted: a recording with a rate, up to a day long, or `--to table`")
            })?,
        };
        output::write(&file, text.as_bytes())?;
    }
    Ok(())
}

fn refused(problem: &str, help: &str) -> Failure {
    Failure::Refused(miette::miette!(help = help.to_owned(), "{problem}"))
}
