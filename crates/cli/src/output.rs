//! Standard output, files and the progress bar.

use crate::failure::Failure;
use anabranch_lab::format::{Format, made};
use anabranch_lab::{Flows, Journal, Kept, UNKNOWN_BUILD, VERSION};
use anabranch_report::file::{directory_of, put};
use anabranch_scenario::in_shell;
use anabranch_study::study::Study;
use anabranch_study::sweep::{Manifest, Store};
use anabranch_units::{harmless, in_one_line};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};

/// Prints to standard output, without what a terminal would obey.
pub fn print(text: &str) -> Result<(), Failure> {
    write_out(&harmless(text))
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::writing("to standard output", error)),
        Ok(()) => Ok(()),
    }
}

/// Prints a text, the content of a scratch file, and another text.
pub fn print_around(begin: &str, mut middle: File, end: &str) -> Result<(), Failure> {
    write_out(&harmless(begin))?;
    middle.rewind().map_err(scratch_failed)?;
    let mut lines = BufReader::new(middle);
    let mut line = String::new();
    while lines.read_line(&mut line).map_err(scratch_failed)? > 0 {
        write_out(&harmless(&line))?;
        line.clear();
    }
    write_out(&harmless(end))
}

/// A file without a name, for what grows with the number of runs.
pub fn scratch() -> Result<File, Failure> {
    tempfile::tempfile().map_err(scratch_failed)
}

/// Writes to a scratch file.
pub fn write_scratch(file: &mut File, bytes: &[u8]) -> Result<(), Failure> {
    file.write_all(bytes).map_err(scratch_failed)
}

fn scratch_failed(error: io::Error) -> Failure {
    Failure::writing_to(&std::env::temp_dir(), &error)
}

/// Width of a line in characters: that of the terminal, at least 60 and at most 120, or 110 into a pipe or file.
pub fn width() -> usize {
    match terminal_size::terminal_size() {
        Some((terminal_size::Width(columns), _)) if io::stdout().is_terminal() => usize::from(columns).clamp(60, 120),
        _ => 110,
    }
}

/// Standard output for a text that changes: on a terminal a text takes the place of the last one.
#[derive(Default)]
pub struct Screen {
    /// Lines of the terminal that the last text took, if it is to be written over.
    lines: usize,
}

impl Screen {
    /// Shows a text of whole lines.
    pub fn show(&mut self, text: &str) -> Result<(), Failure> {
        let back = if self.lines > 0 { format!("\x1b[{}A\x1b[J", self.lines) } else { String::new() };
        let text = &*harmless(text);
        if io::stdout().is_terminal() {
            let columns = terminal_size::terminal_size().map_or(80, |(columns, _)| usize::from(columns.0).max(1));
            self.lines = text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum();
        }
        write_out(&format!("{back}{text}"))
    }
}

/// Sees to it, before anything is run, that these files can be written. `files`: the option and what it names.
pub fn check<'a>(files: impl IntoIterator<Item = (&'a str, Option<&'a PathBuf>)>) -> Result<(), Failure> {
    let mut places: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in files.into_iter().filter_map(|(option, path)| Some((option, path?))) {
        let place = place(path).map_err(|error| Failure::writing_to(path, &error))?;
        let Some(place) = place else { continue };
        if let Some((other, _)) = places.iter().find(|(_, taken)| *taken == place) {
            let help = "accepted: a file for each";
            let path = path.display();
            return Err(Failure::Refused(miette::miette!(help = help, "{other} and {option} both name {path}")));
        }
        places.push((option, place));
    }
    Ok(())
}

/// The directory, made if it is not there, if files can be written in it.
pub fn check_directory(directory: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(directory).and_then(|()| try_in(directory));
    made.map_err(|error| Failure::writing_to(directory, &error))
}

/// The file that would be written, without links; `None` for a device or a pipe, which are not touched before there is
/// something to write.
fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => return Ok(None),
        Ok(_) => fs::canonicalize(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it names no file"))?;
    let directory = fs::canonicalize(directory_of(&path))?;
    try_in(&directory)?;
    Ok(Some(directory.join(name)))
}

/// Writes a block into a file without a name: nothing stays of it, whatever happens, and a full disk shows.
fn try_in(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory)?.write_all(&[0; 4096])
}

/// The directory in which runs are kept.
pub fn keep(directory: &Path, manifest: &Manifest) -> Result<Store, Failure> {
    check_directory(directory)?;
    match anabranch_lab::build() {
        // Runs of another build would be taken for ours.
        UNKNOWN_BUILD => Err(Failure::Failed(miette::miette!(
            "cannot read the file of this program, whose digest marks the runs that are kept"
        ))),
        _ => Store::open(directory, manifest).map_err(Failure::store),
    }
}

/// The journal of runs in a directory, which is made if it is not there.
pub fn journal(directory: &Path) -> Result<Journal, Failure> {
    journal_in(directory, "runs.jsonl")
}

/// The journal of flows of runs in a directory, which is made if it is not there.
pub fn flow_journal(directory: &Path) -> Result<Journal<Flows>, Failure> {
    journal_in(directory, "flows.jsonl")
}

fn journal_in<M: Kept>(directory: &Path, file: &str) -> Result<Journal<M>, Failure> {
    check_directory(directory)?;
    match anabranch_lab::build() {
        // Runs of another build would be taken for ours.
        UNKNOWN_BUILD => Err(Failure::Failed(miette::miette!(
            "cannot read the file of this program, whose digest marks the runs that are kept"
        ))),
        build => Journal::open(&directory.join(file), &format!("{VERSION} {build}")).map_err(Failure::journal),
    }
}

/// Says on standard error that a scenario is only a part of a study, unless values are laid over it, as a row of the
/// study does.
pub fn mention_study(name: &str, sets: &[String]) {
    if sets.is_empty() && Study::is_one(name) {
        let word = in_shell(name);
        remark(&format!(
            "{name} is a study; this is its scenario without its systems and points. All of it: anabranch study {word}"
        ));
    }
}

/// Returns the number of threads for `runs` runs. Remarks on standard error if it is far from the number requested.
pub fn threads(jobs: usize, runs: usize) -> usize {
    let threads = anabranch_lab::threads(jobs, runs);
    // Fewer threads because there are fewer runs: not worth a remark.
    if jobs > anabranch_lab::threads(jobs, usize::MAX) {
        remark(&format!(
            "--jobs {jobs}: {threads} threads for {runs} runs; more than 4 per processor only wait for each other"
        ));
    }
    threads
}

/// A line or more on standard error, without what a terminal would obey.
pub fn remark(text: &str) {
    // Fails if standard error is closed.
    let _ = writeln!(io::stderr(), "{}", harmless(text));
}

/// Writes a file of results: all of it, or nothing that others could take for it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    // Less what the process's umask takes away.
    put(path, &mut &*bytes, 0o666).map_err(|error| Failure::writing_to(path, &error))
}

/// The same of what has been written to another file.
pub fn write_from(path: &Path, mut file: File) -> Result<(), Failure> {
    let copied = file.rewind().and_then(|()| put(path, &mut file, 0o666));
    copied.map_err(|error| Failure::writing_to(path, &error))
}

/// The same for a file that, if it is new, only its owner may read.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, &mut &*bytes, 0o600)
}

/// Results as JSON, with their format and the version and build that made them in front.
pub fn json(format: &'static Format, results: &impl Serialize) -> Result<String, Failure> {
    document(format, &made(results))
}

/// Results that name version and build themselves, as JSON with their format in front.
pub fn document(format: &'static Format, results: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&format.document(results));
    Ok(text.map_err(|error| Failure::writing("JSON", error))? + "\n")
}

/// The command line again, as a shell takes it.
pub fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| in_shell(&word));
    ["anabranch".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Progress bar over `runs` runs, on a terminal only.
pub fn progress(runs: usize) -> ProgressBar {
    progress_of(runs, "runs")
}

/// Progress bar over a number of items.
pub fn progress_of(count: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr());
    let what = in_one_line(what);
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}} of {{len}} {what}{{msg}}, {{eta}} left"));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
