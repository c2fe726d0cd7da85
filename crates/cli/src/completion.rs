//! Completion of the command line in shells: `anabranch completions SHELL` prints a script, which asks this program for
//! the values that a word can become. Names come from the lists of `anabranch list`, so a policy that a program adds is
//! completed like those of the registry.

use crate::args::{Args, What};
use crate::failure::Failure;
use crate::{list, output};
use anabranch_policy::Catalogue;
use anabranch_study::study::PAPERS;
use clap::builder::ArgExt;
use clap::{Arg, Args as ClapArgs, Command, CommandFactory, ValueEnum};
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate, PathCompleter, Shell};
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

/// Variable by which a script asks for completions; its value is the shell.
const VARIABLE: &str = "ANABRANCH_COMPLETE";

/// Arguments of `completions`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  source <(anabranch completions bash)                                       in ~/.bashrc
  source <(anabranch completions zsh)                                        in ~/.zshrc
  anabranch completions fish > ~/.config/fish/completions/anabranch.fish

The script calls this program for each completion and belongs to its version.")]
pub struct CompletionsArgs {
    /// Shell to complete in.
    pub shell: Shell,
}

/// Completion of an argument by names, attached to the argument where it is declared.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    source: Source,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// A list of `anabranch list`.
    List(What),
    /// The list that the command line names.
    Named,
    /// Papers that have studies.
    Papers,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    One,
    OneOrFile,
    /// Names with commas between.
    Joined,
}

impl ArgExt for Names {}

impl Names {
    /// One name of this list.
    pub fn one(list: What) -> Self {
        Names { source: Source::List(list), form: Form::One }
    }

    /// One name of this list, or a file.
    pub fn or_file(list: What) -> Self {
        Names { source: Source::List(list), form: Form::OneOrFile }
    }

    /// Names of this list, with commas between.
    pub fn joined(list: What) -> Self {
        Names { source: Source::List(list), form: Form::Joined }
    }

    /// One name of the list that the command line names.
    pub fn of_list() -> Self {
        Names { source: Source::Named, form: Form::One }
    }

    /// One paper.
    pub fn papers() -> Self {
        Names { source: Source::Papers, form: Form::One }
    }

    /// Returns the values that `word` can become, each with a description.
    fn candidates(self, catalogue: &Arc<Catalogue>, word: &OsStr) -> Vec<CompletionCandidate> {
        let typed = word.to_str().unwrap_or_default();
        let (before, begun) = match (self.form, typed.rfind(',')) {
            (Form::Joined, Some(comma)) => typed.split_at(comma + 1),
            _ => ("", typed),
        };
        let entries = self.source.entries(catalogue).into_iter().filter(|(name, _)| name.starts_with(begun));
        let candidate =
            |name, about: String| CompletionCandidate::new(format!("{before}{name}")).help(Some(about.into()));
        let mut candidates: Vec<_> = entries.map(|(name, about)| candidate(name, about)).collect();
        if matches!(self.form, Form::OneOrFile) {
            candidates.extend(ArgValueCompleter::new(PathCompleter::any()).complete(word));
        }
        candidates
    }
}

impl Source {
    /// Returns names and descriptions. A list that cannot be made completes nothing; the command will say why.
    fn entries(self, catalogue: &Arc<Catalogue>) -> Vec<(String, String)> {
        match self {
            Source::List(list) => list::names(catalogue, list).unwrap_or_default(),
            Source::Named => named_list().map_or(Vec::new(), |list| Source::List(list).entries(catalogue)),
            Source::Papers => {
                let field = ("field".to_owned(), "field studies: results that others measured".to_owned());
                let papers = PAPERS.iter().map(|paper| (paper.key.to_owned(), paper.citation.to_owned()));
                papers.chain([field]).collect()
            }
        }
    }
}

/// Returns the list that the command line being completed names.
fn named_list() -> Option<What> {
    env::args_os().find_map(|word| What::from_str(word.to_str()?, false).ok())
}

/// Completes a command line and ends the process, if a shell's script has started it for that.
pub fn complete_if_asked(catalogue: &Arc<Catalogue>) {
    CompleteEnv::with_factory(|| command(catalogue)).var(VARIABLE).complete();
}

/// Returns the command with completers in place of the names.
fn command(catalogue: &Arc<Catalogue>) -> Command {
    let completed = |arg: Arg| match arg.get::<Names>().copied() {
        Some(names) => {
            let catalogue = Arc::clone(catalogue);
            arg.add(ArgValueCompleter::new(move |word: &OsStr| names.candidates(&catalogue, word)))
        }
        None => arg,
    };
    Args::command().mut_subcommands(|subcommand| subcommand.mut_args(completed))
}

/// Prints the script of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let failed = |error| Failure::writing("the script", error);
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let shell: &dyn EnvCompleter = shells.completer(&name).expect("every shell of the argument has a completer");
    // The program by its name where it was found by name, so that the script goes with any installation of it.
    let program = PathBuf::from(env::args_os().next().unwrap_or_else(|| "anabranch".into()));
    let completer = match program.components().count() {
        0 | 1 => program.clone(),
        _ => env::current_dir().map_err(failed)?.join(&program),
    };
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, &name, &name, &completer.to_string_lossy(), &mut script).map_err(failed)?;
    output::print(&String::from_utf8_lossy(&script))
}
