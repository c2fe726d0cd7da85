//! `anabranch script`.

use crate::failure::Failure;
use crate::output;
use anabranch_lab::format::SCRIPTS;
use anabranch_scenario::Shown;
use anabranch_script::{Passed, ScriptError, run_file};
use clap::Args as ClapArgs;
use miette::Report;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `script`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch script conformance/join/server.script
  anabranch script conformance --json
  anabranch script my.script && echo it holds

The format is described in docs/scripts.md. Exit status 1: a script does not hold; 2: a script is not well written.")]
pub struct ScriptArgs {
    /// Scripts, or folders of *.script files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON: for each script its result, and where, what was expected and what came if it does not hold.
    #[arg(long)]
    pub json: bool,
}

/// Runs every script and says of each whether it holds.
pub fn script(args: &ScriptArgs) -> Result<(), Failure> {
    let mut files = Vec::new();
    for path in &args.files {
        collect(path, &mut files)?;
    }
    if files.is_empty() {
        return Err(Failure::Refused(miette::miette!(
            help = "name a FILE.script, or a folder with such files",
            "the files and folders named hold no script"
        )));
    }
    let results: Vec<_> = files.iter().map(|path| (path, run_file(path))).collect();
    let failed = results.iter().filter(|(_, result)| result.is_err()).count();
    let refused = results.iter().any(|(_, result)| result.as_ref().is_err_and(ScriptError::is_refused));
    let mut text = String::new();
    if args.json {
        let scripts = results.iter().map(|(path, result)| row(path, result)).collect();
        text = output::json(&SCRIPTS, &Scripts { scripts, passed: files.len() - failed, failed })?;
    } else {
        for (path, result) in &results {
            match result {
                Ok(_) => text += &format!("ok      {}\n", path.display()),
                Err(error) => text += &format!("failed  {}\n{}\n", path.display(), shown(error)),
            }
        }
        let (scripts, count) = (if files.len() == 1 { "script" } else { "scripts" }, files.len());
        text += &format!("{count} {scripts}, {failed} failed\n");
    }
    output::print(&text)?;
    // A script that is wrong is the caller's fault, one that does not hold the endpoint's.
    match (failed, refused) {
        (0, _) => Ok(()),
        (_, true) => Err(Failure::ScriptsRefused),
        (_, false) => Err(Failure::ScriptsFailed),
    }
}

/// Formats a failed check unwrapped, since wrapped lines could not be pasted; other errors as a report.
fn shown(error: &ScriptError) -> String {
    match error.failed() {
        Some(failed) => format!("{failed}\n"),
        None => format!("{:?}", Report::new(Shown::of(error))),
    }
}

/// Contents of the JSON.
#[derive(Serialize, JsonSchema)]
pub struct Scripts {
    scripts: Vec<Row>,
    passed: usize,
    failed: usize,
}

/// A script with its result.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Script")]
struct Row {
    script: String,
    #[serde(flatten)]
    result: ScriptResult,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "result", rename_all = "kebab-case")]
enum ScriptResult {
    /// The script holds.
    Ok { statements: u64, injected: u64, expected: u64 },
    /// A statement does not hold.
    Failed {
        place: String,
        problem: String,
        expected: Option<String>,
        got: Option<String>,
        differences: Vec<String>,
        before: Vec<String>,
    },
    /// It is no script.
    Refused { problem: String },
}

fn row(path: &Path, result: &Result<Passed, ScriptError>) -> Row {
    let result = match result {
        Ok(Passed { statements, injected, expected }) => {
            ScriptResult::Ok { statements: *statements, injected: *injected, expected: *expected }
        }
        Err(error) => match error.failed().cloned() {
            Some(failed) => ScriptResult::Failed {
                place: failed.place,
                problem: failed.problem,
                expected: failed.expected,
                got: failed.got,
                differences: failed.differences,
                before: failed.around,
            },
            None => ScriptResult::Refused { problem: error.to_string() },
        },
    };
    Row { script: path.display().to_string(), result }
}

/// The file itself, or every `*.script` below a folder, in the order of names.
fn collect(path: &Path, into: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        into.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| Failure::Refused(miette::miette!("cannot read {}: {error}", path.display())))?;
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside {
        let is_script = path.extension().is_some_and(|extension| extension == "script");
        if path.is_dir() || is_script {
            collect(&path, into)?;
        }
    }
    Ok(())
}
