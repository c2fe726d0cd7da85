//! Reading of the command line: clap's, with advice where it has none or another's.

use anabranch_policy::Catalogue;
use anabranch_units::harmless;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::process::exit;

/// Returns the arguments of the process as `command` has them.
pub fn matches(command: Command, catalogue: &Catalogue) -> Result<ArgMatches, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let subcommand = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    with_negative_numbers(command).try_get_matches_from(words).map_err(|error| advised(error, &subcommand, catalogue))
}

/// Ends the process with the message of an error, or with help.
pub fn end(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if harmless(&text) == text {
        error.exit();
    }
    // Words of the command line come from files as well, by way of a shell's patterns.
    crate::output::remark(harmless(&text).trim_end());
    exit(error.exit_code());
}

/// Takes `-3` behind an option for its value, so that its parser says which values are accepted.
fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|arg| {
            let takes = !arg.is_positional() && arg.get_action().takes_values();
            if takes { arg.allow_negative_numbers(true) } else { arg }
        })
        .mut_subcommands(with_negative_numbers)
}

fn advised(mut error: clap::Error, command: &str, catalogue: &Catalogue) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let Some(argument) = text(&error, ContextKind::InvalidArg) else { return error };
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => {
            // "use '-- --option'" is never meant here: no name begins with a dash.
            let is_misleading = |value: &ContextValue| value.to_string().contains("as a value");
            if error.get(ContextKind::Suggested).is_some_and(is_misleading) {
                error.remove(ContextKind::Suggested);
            }
            of_unknown(&argument, command, catalogue)
        }
        ErrorKind::ValueValidation => of_value(&argument).map(str::to_owned),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// Advice for an option or a word that a command has no place for.
fn of_unknown(argument: &str, command: &str, catalogue: &Catalogue) -> Option<String> {
    let is_policy =
        ["--scheduler", "--congestion", "--window", "--ack-path", "--reinjection", "--first-path", "--profile"]
            .contains(&argument);
    match (command, argument) {
        ("run" | "testbed", "--schedulers") => Some(format!(
            "`{command}` takes one, with --scheduler; `anabranch compare SCENARIO --schedulers A,B` compares several"
        )),
        ("sweep", "--schedulers" | "--set") => Some(IN_THE_FILE.to_owned()),
        ("sweep", _) if is_policy => Some(IN_THE_FILE.to_owned()),
        ("twin", _) if is_policy || argument == "--set" => Some(format!(
            "a twin has what its capture shows; change it where it runs: `anabranch run mine.toml {argument} …`"
        )),
        (_, word) if word.starts_with('-') => None,
        ("run" | "compare" | "why" | "rank" | "testbed" | "study" | "serve" | "fetch" | "proxy", word) => {
            let option = option_of(word, catalogue)?;
            let option = match command {
                "compare" | "rank" if option == "--scheduler" => "--schedulers",
                _ => option,
            };
            Some(format!("a policy is named by an option: {option} {word}"))
        }
        _ => None,
    }
}

const IN_THE_FILE: &str = "the systems of a sweep stand in its file: schedulers = [\"min-rtt\", \"late\"], or \
                           [[system]] with `name` and `set`";

/// Returns the option for a policy or profile of this name.
fn option_of(word: &str, catalogue: &Catalogue) -> Option<&'static str> {
    let name = word.split([':', ',']).next().unwrap_or_default();
    let is_in = |mut names: Box<dyn Iterator<Item = &str> + '_>| names.any(|known| known == name);
    let lists: [(&str, Box<dyn Iterator<Item = &str> + '_>); 7] = [
        ("--scheduler", Box::new(catalogue.schedulers.names())),
        ("--congestion", Box::new(catalogue.congestion.names())),
        ("--window", Box::new(catalogue.windows.names())),
        ("--ack-path", Box::new(catalogue.ack_paths.names())),
        ("--reinjection", Box::new(catalogue.reinjections.names())),
        ("--first-path", Box::new(catalogue.first_paths.names())),
        ("--profile", Box::new(anabranch_engine::Profile::NAMES.iter().copied())),
    ];
    lists.into_iter().find_map(|(option, names)| is_in(names).then_some(option))
}

/// Accepted values of an option by the word that stands for them in its help.
fn of_value(argument: &str) -> Option<&'static str> {
    let (_, word) = argument.trim_end_matches(['>', '.', ']']).rsplit_once('<')?;
    match word {
        "ADDR:PORT" => Some("an address and a port are accepted, such as 10.78.0.1:80 or [2001:db8::5]:80"),
        "ADDR" | "ADDR,…" => Some("addresses are accepted, such as 10.78.0.1 or 2001:db8::5"),
        "CIDR,…" => Some("networks are accepted, such as 10.0.0.0/8 or 2001:db8::/32"),
        "N" => Some("a whole number is accepted"),
        _ => None,
    }
}
