//! Runs the commands of README.md and docs/*.md, and compares the outputs that the documents show.
//!
//! Commands are the lines of `sh` blocks, and of `console` blocks those behind `$`, or behind `#` for root; below them
//! is their output, in which `…` stands for any lines. Each document has a directory of its own, in which its commands
//! run one after the other, beside the repository's files. Comments directly above a block change that:
//!
//! ```text
//! <!-- file: my.toml -->                     the block is a file, which the commands below it find
//! <!-- not run: needs root -->               none of the block's commands runs
//! <!-- not run, `sudo`: needs root -->       those that contain `sudo` do not run
//! <!-- shortened, `rank`: --count 3 -->      those that contain `rank` run with these arguments as well
//! <!-- fails: 2 -->                          the last command ends with this status
//! <!-- needs: tshark -->                     runs where this program is installed
//! ```
//!
//! Of an `anabranch` command that does not run, the options are still checked. `BLESS=1 cargo test -p anabranch-cli
//! --test commands` writes the outputs anew.
#![allow(clippy::unwrap_used)]

mod common;

use common::markdown::{Block, Document, root};
use common::{anabranch, build, directory};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Build that documents show in place of today's.
const BUILD: &str = "9ee84d7f362d2eca";

/// Limit that only a hang reaches, in seconds.
const LIMIT: &str = "300";

/// A command of a document.
#[derive(Debug, PartialEq)]
struct Step {
    line: usize,
    text: String,
    /// Lines of output below it, with the line of the first. Absent if the document shows none.
    output: Option<(usize, Vec<String>)>,
    treatment: Treatment,
    /// Exit status that it ends with.
    status: i32,
}

/// Treatment of a command, as the comments above its block have it.
#[derive(Clone, Debug, PartialEq)]
enum Treatment {
    Whole,
    /// Runs with further arguments.
    Shortened(String),
    /// Does not run, for this reason.
    Marked(String),
    /// Runs only where this program is installed.
    Needs(String),
}

/// Commands counted by treatment.
#[derive(Default)]
struct Tally {
    run: usize,
    compared: usize,
    shortened: usize,
    skipped: Vec<String>,
    marked: BTreeMap<String, usize>,
}

#[test]
fn the_commands_of_the_documents_run() {
    let documents = Document::book();
    let next = AtomicUsize::new(0);
    let (tally, failures) = (Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(document) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = perform(document, &tally);
                    failures.lock().unwrap().extend(found);
                }
            });
        }
    });
    tally.into_inner().unwrap().print();
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} commands fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

impl Tally {
    /// Prints the tally past the harness, which hides what a test that passes prints.
    fn print(&self) {
        let marked: usize = self.marked.values().sum();
        let mut text = format!(
            "commands of the documents: {} run ({} of them shortened, of {} the output compared), {marked} marked:\n",
            self.run, self.shortened, self.compared
        );
        self.marked.iter().for_each(|(reason, count)| text += &format!("  {count:>3}  {reason}\n"));
        self.skipped.iter().for_each(|what| text += &format!("  SKIPPED: {what}\n"));
        // Nobody may listen.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

const REMEDY: &str = "BLESS=1 cargo test -p anabranch-cli --test commands";

/// Runs the commands of a document in its directory, and returns a description of each failure.
fn perform(document: &Document, tally: &Mutex<Tally>) -> Vec<String> {
    let name = document.name.replace('/', "-");
    let here = directory(&format!("commands-{name}"));
    let programs = directory(&format!("commands-{name}-bin"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_anabranch"), programs.join("anabranch")).unwrap();
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "target" {
            std::os::unix::fs::symlink(entry.path(), here.join(entry.file_name())).unwrap();
        }
    }

    let (mut failures, mut variables) = (Vec::new(), String::new());
    let mut lines: Vec<String> = document.text.lines().map(str::to_owned).collect();
    let (bless, mut blessed) = (std::env::var_os("BLESS").is_some(), Vec::new());
    for block in document.blocks() {
        if let Some(file) = block.notes.iter().find_map(|note| note.strip_prefix("file: ")) {
            let path = here.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, block.body.join("\n") + "\n").unwrap();
        }
        let steps = steps(&block).unwrap_or_else(|problem| panic!("{}:{}: {problem}", document.name, block.line));
        for step in steps {
            let mut fail = |why: &str| failures.push(format!("{}:{}: {}\n{why}", document.name, step.line, step.text));
            let mut text = step.text.clone();
            match &step.treatment {
                Treatment::Marked(reason) => {
                    *tally.lock().unwrap().marked.entry(reason.clone()).or_default() += 1;
                    if let Some(check) = with_help(&step.text) {
                        let (status, output) = shell(&here, &programs, &check);
                        if status != 0 {
                            fail(&output);
                        }
                    }
                    continue;
                }
                Treatment::Needs(program) if !is_installed(program) => {
                    let required = format!("ANABRANCH_REQUIRE_{}", program.to_uppercase());
                    assert!(std::env::var_os(&required).is_none(), "{required} is set, and {program} is not installed");
                    tally.lock().unwrap().skipped.push(format!("{program} is not installed: {}", step.text));
                    continue;
                }
                Treatment::Shortened(arguments) => {
                    tally.lock().unwrap().shortened += 1;
                    text = with_arguments(without_comment(&text), arguments);
                }
                Treatment::Whole | Treatment::Needs(_) => {}
            }
            if text.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase())) {
                variables += &format!("{text}\n");
            }
            let text = text.replace("cargo run --release -- ", "anabranch ");
            let (status, output) = shell(&here, &programs, &format!("{variables}{text}"));
            tally.lock().unwrap().run += 1;
            if status != step.status {
                fail(&format!("ends with status {status}, and {} is to be:\n{output}", step.status));
                continue;
            }
            let Some((line, shown)) = &step.output else { continue };
            tally.lock().unwrap().compared += 1;
            let today: Vec<String> =
                output.trim_end().replace(&build(), BUILD).lines().map(|line| line.trim_end().to_owned()).collect();
            if !matches(shown, &today) && bless {
                blessed.push((*line, shown.len(), shortened_as(shown, &today)));
            } else if !matches(shown, &today) {
                let (now, then) = (today.join("\n"), shown.join("\n"));
                fail(&format!("prints now\n{now}\nwhere the document has\n{then}\nif that is meant: {REMEDY}"));
            }
        }
    }
    if !blessed.is_empty() {
        for (line, count, today) in blessed.into_iter().rev() {
            lines.splice(line - 1..line - 1 + count, today);
        }
        std::fs::write(root().join(&document.name), lines.join("\n") + "\n").unwrap();
    }
    failures
}

/// Returns the commands of a block with their outputs and treatment.
fn steps(block: &Block<'_>) -> Result<Vec<Step>, String> {
    let mut steps = commands(block);
    let mut status = None;
    for note in &block.notes {
        let Some((words, value)) = note.split_once(": ") else { return Err(format!("a comment without `: `: {note}")) };
        let (kind, pattern) = words.split_once(", ").unwrap_or((words, ""));
        let pattern = pattern.trim_matches('`');
        let treatment = match kind {
            "file" if steps.is_empty() => continue,
            "fails" => {
                status = Some(value.parse().map_err(|_| format!("no exit status: {value}"))?);
                continue;
            }
            "not run" => Treatment::Marked(value.to_owned()),
            "shortened" => Treatment::Shortened(value.to_owned()),
            "needs" => Treatment::Needs(value.to_owned()),
            _ => return Err(format!("unknown comment: {note}")),
        };
        let mut meant = steps.iter_mut().filter(|step| step.text.contains(pattern)).peekable();
        if meant.peek().is_none() {
            return Err(format!("no command is meant by: {note}"));
        }
        meant.for_each(|step| step.treatment = treatment.clone());
    }
    if let (Some(status), Some(last)) = (status, steps.last_mut()) {
        last.status = status;
    }
    let shown = |step: &&Step| step.output.is_some() && matches!(step.treatment, Treatment::Shortened(_));
    match steps.iter().find(shown) {
        Some(step) => {
            Err(format!("`{}` is shortened and shows an output, which is that of another command", step.text))
        }
        None => Ok(steps),
    }
}

/// Splits a block into commands, with the output below each in a `console` block.
fn commands(block: &Block<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut unfinished = false;
    for (at, line) in block.body.iter().enumerate() {
        let number = block.line + 1 + at;
        if unfinished {
            let text = &mut steps.last_mut().expect("a command has begun").text;
            text.push('\n');
            text.push_str(line);
            unfinished = is_unfinished(text);
            continue;
        }
        let command = match block.language {
            "sh" if line.trim().is_empty() || line.starts_with('#') => continue,
            "sh" => Some(*line),
            "console" => line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")),
            _ => return steps,
        };
        if let Some(text) = command {
            unfinished = is_unfinished(text);
            steps.push(Step {
                line: number,
                text: text.to_owned(),
                output: None,
                treatment: Treatment::Whole,
                status: 0,
            });
        } else if let Some(step) = steps.last_mut() {
            step.output.get_or_insert((number, Vec::new())).1.push((*line).to_owned());
        }
    }
    steps
}

/// Returns true if a command goes on in the next line: after a backslash, or within quotes.
fn is_unfinished(text: &str) -> bool {
    text.ends_with('\\') || text.matches('\'').count() % 2 == 1
}

/// Appends options to a command; those that it has with another value go.
fn with_arguments(text: &str, arguments: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    for option in arguments.split(' ').filter(|word| word.starts_with("--")) {
        if let Some(at) = words.iter().position(|word| *word == option) {
            words.drain(at..at + 2);
        }
    }
    format!("{} {arguments}", words.join(" "))
}

/// Cuts the comment behind a command.
fn without_comment(text: &str) -> &str {
    text.find(" # ").map_or(text, |at| text[..at].trim_end())
}

/// Returns a command that checks the options of an `anabranch` command without running it: `--help` behind them.
fn with_help(text: &str) -> Option<String> {
    let text = without_comment(text);
    let text = text.strip_prefix("sudo ").unwrap_or(text);
    let text = text.split(" | ").next().unwrap_or(text).trim_end_matches(['&', ' ']);
    let options = text.split(" -- ").next().unwrap_or(text);
    text.starts_with("anabranch ").then(|| format!("{options} --help >/dev/null"))
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs a command in a shell, and returns its exit status and everything it printed.
fn shell(here: &Path, programs: &Path, text: &str) -> (i32, String) {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("timeout")
        .args([LIMIT, "bash", "-o", "pipefail", "-c", &format!("exec 2>&1\n{text}")])
        .current_dir(here)
        .env("PATH", format!("{}:{path}", programs.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if the lines are those that a document shows, where `…` stands for any number of lines.
fn matches(shown: &[String], today: &[String]) -> bool {
    match shown.split_first() {
        None => today.is_empty(),
        Some((first, rest)) if first.trim() == "…" => (0..=today.len()).any(|skip| matches(rest, &today[skip..])),
        Some((first, rest)) => today.first() == Some(first) && matches(rest, &today[1..]),
    }
}

/// Shortens an output as a document has it: as many lines before the first `…` and behind the last.
fn shortened_as(shown: &[String], today: &[String]) -> Vec<String> {
    let is_gap = |line: &String| line.trim() == "…";
    let Some(first) = shown.iter().position(is_gap) else { return today.to_vec() };
    let behind = shown.iter().rev().position(is_gap).unwrap_or(0);
    let head = &today[..first.min(today.len())];
    let tail = &today[today.len().saturating_sub(behind).max(head.len())..];
    [head, &shown[first..=first], tail].concat()
}

/// Text of a document with one block.
fn block_of(text: &str) -> Document {
    Document { name: "example.md".to_owned(), text: text.to_owned() }
}

#[test]
fn blocks_become_commands() {
    let text = "<!-- not run, `sudo`: needs root -->\n<!-- shortened, `rank`: --count 3 -->\n```sh\n# comment\n\
                a b   # c\nsudo x \\\n  y\n\nrank 'two\nlines' z\n```\n";
    let document = block_of(text);
    let found = steps(&document.blocks()[0]).unwrap();
    let texts: Vec<&str> = found.iter().map(|step| &*step.text).collect();
    assert_eq!(texts, ["a b   # c", "sudo x \\\n  y", "rank 'two\nlines' z"]);
    assert_eq!(found[0].treatment, Treatment::Whole);
    assert_eq!(found[1].treatment, Treatment::Marked("needs root".to_owned()));
    assert_eq!(found[2].treatment, Treatment::Shortened("--count 3".to_owned()));
    assert_eq!(without_comment(&found[0].text), "a b");
    assert_eq!(with_arguments("rank --count  40 --json", "--count 2 --seed 1"), "rank --json --count 2 --seed 1");

    let document = block_of("<!-- fails: 2 -->\n```console\n$ a\none\ntwo\n$ b\n```\n");
    let found = steps(&document.blocks()[0]).unwrap();
    assert_eq!(found[0].output, Some((4, vec!["one".to_owned(), "two".to_owned()])));
    assert_eq!((found[0].status, found[1].status, &found[1].output), (0, 2, &None));

    for (text, problem) in [
        ("<!-- not run, `c`: x -->\n```sh\na\n```\n", "no command is meant"),
        ("<!-- maybe: x -->\n```sh\na\n```\n", "unknown comment"),
        ("<!-- shortened: x -->\n```console\n$ a\nb\n```\n", "output"),
    ] {
        let document = block_of(text);
        assert!(steps(&document.blocks()[0]).unwrap_err().contains(problem), "{text}");
    }
}

#[test]
fn outputs_match_where_lines_are_left_out() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&lines("a … d"), &lines("a b c d")));
    assert!(matches(&lines("a … b"), &lines("a b")));
    assert!(!matches(&lines("a … d"), &lines("a b c")));
    assert!(!matches(&lines("a"), &lines("a b")));
    assert_eq!(shortened_as(&lines("x … y z"), &lines("a b c d e")), lines("a … d e"));
    assert_eq!(shortened_as(&lines("x"), &lines("a b")), lines("a b"));
}

#[test]
fn a_marked_command_with_a_wrong_option_is_found() {
    let here: PathBuf = directory("commands-help");
    let check = with_help("sudo anabranch serve --listen 10.78.0.1 -- x   # serves").unwrap();
    assert_eq!(check, "anabranch serve --listen 10.78.0.1 --help >/dev/null");
    assert!(anabranch(&here, &["serve", "--listen", "10.78.0.1", "--help"]).status.success());
    assert!(!anabranch(&here, &["serve", "--listens", "10.78.0.1", "--help"]).status.success());
    assert_eq!(with_help("curl https://example.org/"), None);
}
