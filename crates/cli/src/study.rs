//! `anabranch study`: figures of papers, run again.

use crate::args::{Overrides, What};
use crate::completion::Names;
use crate::failure::Failure;
use crate::field;
use crate::output;
use crate::result_file::{ResultFile, draw, figure_file};
use anabranch_lab::Journal;
use anabranch_lab::format::{STUDIES, STUDY, STUDY_LIST};
use anabranch_policy::Catalogue;
use anabranch_report::Sheet;
use anabranch_report::html::{Page, page};
use anabranch_scenario::in_shell;
use anabranch_study::field::Field;
use anabranch_study::study::{PAPERS, Prepared, Provenance, Study, StudyResult};
use clap::Args as ClapArgs;
use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `study`.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:
  anabranch study --list
  anabranch study late/fig10
  anabranch study --paper rbp --quick
  anabranch study --all --report papers.html
  anabranch study late/fig10 --figure fig10.pgf
  anabranch study late/fig10 --quick --congestion cubic
  anabranch study my-study.toml --out results --jobs 4
  anabranch study field/conext23 --data Satellite-vs-Cellular

Results lie in the directory of --out: runs.jsonl, the journal of all runs, and for each study NAME.json (figures and \
verdicts), NAME.csv and NAME.parquet (one row per run). A study that runs again takes from the journal the runs \
that it has, also after it was killed; figures that need the same runs share them. Field studies, of results that \
others measured, have NAME.json alone, and --repeat is the number of their draws.")]
pub struct StudyArgs {
    /// Studies by name (`anabranch study --list`), or study files.
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "paper", "all"],
        add = Names::or_file(What::Studies))]
    pub names: Vec<String>,
    /// List the studies in this program.
    #[arg(long, conflicts_with_all = ["names", "all", "report", "figure"])]
    pub list: bool,
    /// Run all studies of this paper: late, lowlat, f2p, acksp or rbp; or field: all field studies.
    #[arg(long, value_name = "PAPER", conflicts_with = "names", add = Names::papers())]
    pub paper: Option<String>,
    /// Run all studies of all papers.
    #[arg(long, conflicts_with_all = ["names", "paper"])]
    pub all: bool,
    /// Run a few points and repetitions only.
    #[arg(long)]
    pub quick: bool,
    /// Number of repetitions, in place of the study's own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: Option<u32>,
    /// Values that lie over those of the scenario in all runs, and over what systems and axes set.
    #[command(flatten)]
    pub overrides: Overrides,
    /// For each statement that fails, search for the fewest changes of assumptions under which it is reproduced.
    #[arg(long)]
    pub sensitivity: bool,
    /// Directory of the recordings that a field study needs, as its authors published them.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory of the results.
    #[arg(long, value_name = "DIR", default_value = "anabranch-studies")]
    pub out: PathBuf,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Write one page with figures, verdicts and scenarios to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<ResultFile>,
    /// Draw the figures, for a paper: a file that ends in .svg, .pdf or .pgf (for LaTeX).
    #[arg(long, value_name = "FILE", value_parser = figure_file)]
    pub figure: Option<ResultFile>,
    /// Write the table of all statements, with the attempts where one fails, to this Markdown file.
    #[arg(long, value_name = "FILE")]
    pub reproduction: Option<ResultFile>,
}

/// Runs studies, or lists them.
pub fn study(catalogue: &Arc<Catalogue>, args: &StudyArgs) -> Result<(), Failure> {
    if args.list {
        return list(args);
    }
    if field::is_asked_for(args) {
        return field::field(catalogue, args);
    }
    if args.data.is_some() {
        let help = "accepted with it: field/NAME, or the file of a field study";
        return Err(Failure::Refused(miette::miette!(help = help, "--data is for field studies")));
    }
    let studies = chosen(args)?;
    // All are read before the first runs: what is wrong shows at once.
    let prepared = studies.into_iter().map(|study| Prepared::new(study, catalogue)).collect::<Result<Vec<_>, _>>()?;
    // Before the runs rather than after them.
    let journal = output::journal(&args.out)?;

    let missing = prepared.iter().map(|study| study.missing(&journal)).sum();
    let jobs = output::threads(args.jobs, missing);
    let bar = output::progress(missing);
    let results =
        prepared.iter().map(|study| one(study, &journal, args, jobs, &bar)).collect::<Result<Vec<_>, Failure>>();
    bar.finish_and_clear();
    let results = results?;
    if let Some(path) = &args.report {
        output::write(path, page(&Page::of_studies(&results, &command(args))).as_bytes())?;
    }
    if args.figure.is_some() {
        let figures: Vec<_> = results.iter().flat_map(|result| result.figures.iter().cloned()).collect();
        draw(args.figure.as_ref(), &figures)?;
    }
    if let Some(path) = &args.reproduction {
        output::write(path, anabranch_report::reproduction(&results, &command(args), args.all).as_bytes())?;
    }
    if args.json {
        return output::print(&output::json(&STUDIES, &Studies { studies: &results })?);
    }
    output::print(&words(args, &results))
}

/// Runs one study and writes its files.
fn one(
    study: &Prepared,
    journal: &Journal,
    args: &StudyArgs,
    jobs: usize,
    bar: &ProgressBar,
) -> Result<StudyResult, Failure> {
    let name = study.study.name.clone();
    // Runs that an earlier study of this call has made meanwhile are not to be made again.
    bar.set_message(format!(" ({name})"));
    study.run(journal, jobs, &|| bar.inc(1)).map_err(Failure::study)?;
    let alone = StudyArgs {
        names: vec![name.clone()],
        paper: None,
        all: false,
        report: None,
        figure: None,
        reproduction: None,
        ..args.clone()
    };
    let provenance = Provenance { command: command(&alone), quick: args.quick };
    let mut result = study.result(journal, &provenance)?;
    let rows = study.rows(journal);
    let sheet = Sheet::of_study(&result, &rows);
    file(args, &name, "csv", &sheet.csv().map_err(|error| Failure::writing("CSV", error))?)?;
    file(args, &name, "parquet", &sheet.parquet().map_err(|error| Failure::writing("Parquet", error))?)?;
    file(args, &name, "json", output::document(&STUDY, &result)?.as_bytes())?;
    if args.sensitivity {
        let progress = |more: usize, what: &str| {
            bar.inc_length(more as u64);
            bar.set_message(format!(" ({name}, {what})"));
        };
        study.search(&mut result, journal, jobs, &progress, &|| bar.inc(1)).map_err(Failure::study)?;
        file(args, &name, "json", output::document(&STUDY, &result)?.as_bytes())?;
    }
    Ok(result)
}

/// Contents of the JSON of several studies.
#[derive(Serialize, JsonSchema)]
pub struct Studies<'a> {
    studies: &'a [StudyResult],
}

/// Contents of the JSON of `--list`.
#[derive(Serialize, JsonSchema)]
pub struct StudyList<'a> {
    studies: Vec<Listed<'a>>,
    /// Studies of results that others measured.
    field: Vec<field::ListedField>,
}

/// A study in a list.
#[derive(Serialize, JsonSchema)]
struct Listed<'a> {
    name: &'a str,
    paper: &'a str,
    figure: &'a str,
    title: &'a str,
    statements: usize,
}

/// Writes one of the files of a study.
pub(crate) fn file(args: &StudyArgs, name: &str, extension: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = args.out.join(format!("{}.{extension}", stem(name)));
    if let Some(directory) = path.parent() {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|error| Failure::writing_to(directory, &error))?;
    }
    output::write(&path, bytes)
}

/// The studies that are asked for, in order.
fn chosen(args: &StudyArgs) -> Result<Vec<Study>, Failure> {
    let names: Vec<String> = match &args.paper {
        _ if args.all => Study::names().map(str::to_owned).collect(),
        Some(paper) => of_paper(paper)?,
        None => args.names.clone(),
    };
    let load = |name: &String| -> Result<Study, Failure> {
        let study = Study::load(name)?;
        let study = study.overridden(&args.overrides.sets());
        let study = if args.quick { study.quick() } else { study };
        Ok(match args.repeat {
            Some(repetitions) => study.repeated(repetitions as usize),
            None => study,
        })
    };
    let mut studies: Vec<Study> = Vec::new();
    for name in &names {
        let study = load(name)?;
        match studies.iter().find(|other| stem(&other.name) == stem(&study.name)) {
            None => studies.push(study),
            Some(same) if same.name == study.name => {}
            Some(other) => {
                let help = "accepted: files with different names, or one call each with a directory of its own (--out)";
                let (a, b) = (&other.name, &study.name);
                return Err(Failure::Refused(miette::miette!(
                    help = help,
                    "{a} and {b} would write their results to the same files"
                )));
            }
        }
    }
    Ok(studies)
}

/// The studies of a paper by its key.
fn of_paper(paper: &str) -> Result<Vec<String>, Failure> {
    let names = Study::names().filter(|name| name.split('/').next() == Some(paper));
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.is_empty() {
        let keys: Vec<&str> = PAPERS.iter().map(|paper| paper.key).collect();
        let help = format!("accepted: {}", keys.join(", "));
        return Err(Failure::Refused(miette::miette!(help = help, "there is no paper `{paper}`")));
    }
    Ok(names)
}

/// Returns the path of a study's results below `--out`: its name, or for a study file the name without folders.
pub(crate) fn stem(name: &str) -> String {
    match Study::names().chain(Field::names()).any(|known| known == name) {
        true => name.to_owned(),
        false => Path::new(name).file_stem().map_or_else(|| "study".into(), |stem| stem.to_string_lossy()).into_owned(),
    }
}

fn list(args: &StudyArgs) -> Result<(), Failure> {
    let has_fields = args.paper.as_ref().is_none_or(|paper| paper == field::ALL);
    let names = match &args.paper {
        Some(_) if has_fields => Vec::new(),
        Some(paper) => of_paper(paper)?,
        None => Study::names().map(str::to_owned).collect(),
    };
    let studies = names.iter().map(|name| Study::load(name)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let field = if has_fields { field::listed()? } else { Vec::new() };
        let list = StudyList { studies: studies.iter().map(listed).collect(), field };
        return output::print(&output::json(&STUDY_LIST, &list)?);
    }
    let mut text = String::new();
    for paper in PAPERS {
        let of_paper: Vec<&Study> = studies.iter().filter(|study| study.paper() == paper.name).collect();
        if of_paper.is_empty() {
            continue;
        }
        text += &anabranch_report::hang(&format!("{}  ", paper.name), paper.citation, output::width());
        for study in of_paper {
            let label = format!("  {:<16}{:<12}", study.name, study.figure());
            text += &anabranch_report::hang(&label, study.title(), output::width());
        }
        text.push('\n');
    }
    if has_fields {
        text += &field::list()?;
    }
    output::print(&text)
}

fn listed(study: &Study) -> Listed<'_> {
    Listed {
        name: &study.name,
        paper: study.paper(),
        figure: study.figure(),
        title: study.title(),
        statements: study.statements().count(),
    }
}

fn words(args: &StudyArgs, results: &[StudyResult]) -> String {
    let each: Vec<String> = results.iter().map(|result| anabranch_report::study(result, output::width())).collect();
    let mut text = each.join("\n");
    let tally = anabranch_study::study::Tally::of(results.iter().flat_map(|result| &result.statements));
    let places = args.out.display();
    let parts = if tally.parts > tally.all() { format!(", judged in {} parts", tally.parts) } else { String::new() };
    text += &format!("\n{} statements{parts}: {tally}\n", tally.all());
    text += &match results {
        [only] => {
            format!("Figures and verdicts: {places}/{0}.json, runs: {places}/{0}.csv\n", stem(&only.name))
        }
        _ => format!("Figures, verdicts and runs: {places}/\n"),
    };
    if args.report.is_none() {
        text += "As a page to look at: --report study.html\n";
    }
    text
}

/// The command line again, as far as results depend on it.
fn command(args: &StudyArgs) -> String {
    let mut command = "anabranch study".to_owned();
    for name in &args.names {
        command += &format!(" {}", in_shell(name));
    }
    if let Some(paper) = &args.paper {
        command += &format!(" --paper {paper}");
    }
    for (flag, given) in [("--all", args.all), ("--quick", args.quick), ("--sensitivity", args.sensitivity)] {
        if given {
            command += &format!(" {flag}");
        }
    }
    if let Some(repeat) = args.repeat {
        command += &format!(" --repeat {repeat}");
    }
    for set in &args.overrides.sets() {
        command += &format!(" --set {}", in_shell(set));
    }
    let files = [("--report", &args.report), ("--figure", &args.figure), ("--reproduction", &args.reproduction)];
    for (option, path) in files {
        if let Some(path) = path {
            command += &format!(" {option} {}", in_shell(&path.display().to_string()));
        }
    }
    command
}
