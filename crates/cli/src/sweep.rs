//! `anabranch sweep`: systems over many conditions, in parts that any process can continue.

use crate::args::Results;
use crate::failure::Failure;
use crate::output;
use crate::result_file::{ResultFile, draw, figure_file};
use anabranch_lab::format::SWEEP;
use anabranch_policy::Catalogue;
use anabranch_report::Rows;
use anabranch_report::html::{Page, page};
use anabranch_study::sweep::{Campaign, Manifest, Row, Store, StoreError, Summary, Work};
use anabranch_units::{input, nearest};
use clap::Args as ClapArgs;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `sweep`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch sweep sweeps/lte-rate.toml
  anabranch sweep sweeps/lte-rate.toml --out results --report sweep.html
  anabranch sweep sweeps/lte-rate.toml --out results --shard 3/40
  anabranch sweep sweeps/lte-rate.toml --out results --until 2%
  anabranch sweep --summary results --csv runs.csv
  anabranch sweep --summary results --figure regret.svg

The file and the directory are described in docs/sweeps.md. Exit status 0: all runs ended well. 1: a run failed \
(which is a row as well), or results cannot be written. 2: the file or the directory is refused.")]
pub struct SweepArgs {
    /// A sweep file: the conditions, the systems to compare, the number of repetitions.
    #[arg(required_unless_present_any = ["summary", "schema"], value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Keep the runs in this directory and reuse those that are there. A process that is killed loses a few seconds of
    /// work.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Run the K-th of N equal shares of the conditions, from 1/N to N/N; others may run theirs at the same time.
    #[arg(long, value_name = "K/N", requires = "out", value_parser = shard)]
    pub shard: Option<(u64, u64)>,
    /// Repeat each condition until the 95 % interval of each system's time, relative to the fastest, is within this to
    /// both sides (or the file's cap is met).
    #[arg(long, value_name = "SHARE")]
    pub until: Option<String>,
    /// Show the results in this directory and run nothing.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "out", "jobs", "shard", "until"])]
    pub summary: Option<PathBuf>,
    #[command(flatten)]
    pub results: Results,
    /// Draw the ratios to the best and their distribution, for a paper: a file that ends in .svg, .pdf or .pgf (for
    /// LaTeX).
    #[arg(long, value_name = "FILE", value_parser = figure_file)]
    pub figure: Option<ResultFile>,
    /// Print the JSON schema of sweep files.
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let read = || {
        let (number, of) = text.split_once('/')?;
        let (number, of) = (number.parse().ok()?, of.parse().ok()?);
        (1 <= number && number <= of).then_some((number, of))
    };
    read().ok_or_else(|| "accepted: K/N with K from 1 to N, such as 3/40".to_owned())
}

/// Runs a sweep, or shows one.
pub fn sweep(catalogue: &Arc<Catalogue>, args: &SweepArgs) -> Result<(), Failure> {
    if args.schema {
        return output::print(&format!("{}\n", anabranch_study::sweep::schema()));
    }
    if let Some(directory) = &args.summary {
        let (store, manifest) = Store::existing(directory).map_err(|error| unless_near(directory, error))?;
        return show(&store, &manifest, args);
    }
    let Some(file) = &args.file else { return Ok(()) };
    let name = file.to_string_lossy();
    let text = input::written(file).map_err(|error| unreadable(file, &error))?;
    let campaign = Campaign::read(catalogue, &name, &text, args.until.as_deref())?;
    let manifest = campaign.manifest("sweep", &output::command_line(), &text);
    // Without --out the parts are gone when everything has been said.
    let (directory, _gone) = match &args.out {
        Some(directory) => (directory.clone(), None),
        None => {
            let made = tempfile::tempdir().map_err(|error| Failure::writing_to(&std::env::temp_dir(), &error))?;
            (made.path().to_owned(), Some(made))
        }
    };
    let store = output::keep(&directory, &manifest)?;
    let range = match args.shard {
        Some((number, of)) => campaign.share(number, of),
        None => 0..campaign.conditions(),
    };
    run(&campaign, &store, &range, args.jobs)?;
    if args.shard.is_some() {
        let Range { start, end } = range;
        let about = format!("conditions {start} to {end} of {} are in {}", campaign.conditions(), directory.display());
        output::remark(&about);
    }
    show(&store, &manifest, args)
}

fn run(campaign: &Campaign, store: &Store, range: &Range<u64>, jobs: usize) -> Result<(), Failure> {
    let missing = store.parts(campaign.digest()).map_err(Failure::store)?.missing(range);
    let count: u64 = missing.iter().map(|it| it.end - it.start).sum();
    let all = range.end - range.start;
    let bar = output::progress_of(usize::try_from(count).unwrap_or(usize::MAX), "conditions");
    if count < all {
        output::remark(&format!("{} of {all} conditions are there already", all - count));
    }
    let jobs = output::threads(jobs, usize::try_from(campaign.runs()).unwrap_or(usize::MAX));
    let worked = campaign.work(store, &missing, &Work::on(jobs, &|| bar.inc(1)));
    bar.finish_and_clear();
    worked.map_err(Failure::store)
}

fn show(store: &Store, manifest: &Manifest, args: &SweepArgs) -> Result<(), Failure> {
    let parts = store.parts(&manifest.digest).map_err(Failure::store)?;
    let scratch = |wanted: bool| match wanted {
        true => tempfile::tempfile().map(Some).map_err(|error| Failure::writing("a temporary file", error)),
        false => Ok(None),
    };
    let (csv, parquet) = (scratch(args.results.csv.is_some())?, scratch(args.results.parquet.is_some())?);
    let broken = |error: io::Error| Failure::writing("the rows", error);
    let mut rows = Rows::new(Store::layout(manifest), csv, parquet).map_err(broken)?;
    let mut failed = None;
    let mut each = |condition: &[Row]| {
        if failed.is_none() {
            failed = rows.add(condition).err();
        }
    };
    let summary = Summary::of_parts(store, manifest, &parts, &mut each).map_err(Failure::store)?;
    if let Some(error) = failed {
        return Err(broken(error));
    }
    let (csv, parquet) = rows.finish().map_err(broken)?;
    let write = |path: &Option<ResultFile>, file: Option<File>| match (path, file) {
        (Some(path), Some(file)) => output::write_from(path, file),
        _ => Ok(()),
    };
    write(&args.results.csv, csv)?;
    write(&args.results.parquet, parquet)?;
    if args.results.report.is_some() || args.figure.is_some() {
        let made = Page::of_sweep(&summary, manifest.about.as_deref().unwrap_or("Sweep"), &output::command_line());
        if let Some(path) = &args.results.report {
            output::write(path, page(&made).as_bytes())?;
        }
        draw(args.figure.as_ref(), made.sections.first().map_or(&[][..], |section| &section.figures))?;
    }
    match args.results.json {
        true => output::print(&output::json(&SWEEP, &summary)?)?,
        false => output::print(&anabranch_report::sweep(&summary, output::width()))?,
    }
    match summary.failed.first() {
        None => Ok(()),
        Some(first) => {
            let help = format!("this repeats the first: {}", first.command);
            let said = format!("{} of {} runs broke; the first: {}", summary.failures, summary.rows, first.problem);
            Err(Failure::Failed(miette::miette!(help = help, "{said}")))
        }
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let near = near(folder, file, |path| path.extension().is_some_and(|it| it == "toml"));
    let help = format!("{near}accepted: a sweep file, as docs/sweeps.md describes it");
    Failure::Refused(miette::miette!(help = help, "cannot read `{}`: {error}", file.display()))
}

/// The error, with the name of a directory that may be meant.
fn unless_near(directory: &Path, error: StoreError) -> Failure {
    let folder = directory.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match near(folder, directory, |path| path.join("manifest.json").exists()) {
        near if near.is_empty() => Failure::store(error),
        near => Failure::Refused(miette::miette!(help = near.trim_end().to_owned(), "{error}")),
    }
}

/// `did you mean …? `, of what is in the folder.
fn near(folder: &Path, wrong: &Path, is_one: impl Fn(&Path) -> bool) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries
        .filter(|entry| is_one(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let wrong = wrong.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let names = names.iter().map(String::as_str).filter(|name| *name != wrong);
    nearest(&wrong, names).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default()
}

impl Failure {
    /// A directory of results that cannot be used.
    pub fn store(error: StoreError) -> Self {
        match error {
            StoreError::File { path, error } => Failure::writing_to(&path, &error),
            StoreError::Foreign { .. } | StoreError::NoResults { .. } => Failure::Refused(miette::Report::new(error)),
            _ => Failure::Failed(miette::Report::new(error)),
        }
    }
}
