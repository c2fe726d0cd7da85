//! Commands that work with Linux, on a system that is none: each has its name, and a sentence that says what it needs.

use crate::args::HostCommand;
use crate::evaluate::EvaluateArgs;
use crate::failure::Failure;
use crate::schema::Row;
use crate::why::WhyArgs;
use anabranch_policy::Catalogue;
use anabranch_study::evaluate::Suite;
use clap::Args;
use std::ffi::OsString;
use std::sync::Arc;

/// Arguments of a command that is not here: any, so that all get the same answer.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct NotHere {
    /// Words of the command on Linux.
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub type CalibrateArgs = NotHere;
pub type FetchArgs = NotHere;
pub type KernelArgs = NotHere;
pub type ProxyArgs = NotHere;
pub type ServeArgs = NotHere;
pub type TestbedArgs = NotHere;

/// Formats that these commands write: none here.
pub static SCHEMAS: &[Row] = &[];

/// Prepares nothing: no command here borrows addresses of the machine.
pub fn begin() {}

/// Refuses a command.
pub fn run(_: &Arc<Catalogue>, command: &HostCommand) -> Result<(), Failure> {
    let (name, needs) = match command {
        HostCommand::Calibrate(_) => ("calibrate", "network namespaces, and the MPTCP of its kernel to compare with"),
        HostCommand::Testbed(_) => ("testbed", "network namespaces and TUN devices"),
        HostCommand::Kernel(_) => ("kernel", "the MPTCP of its kernel, which the command extends"),
        HostCommand::Serve(_) => ("serve", "a TUN device for the engine"),
        HostCommand::Fetch(_) => ("fetch", "a TUN device for the engine"),
        HostCommand::Proxy(_) => ("proxy", "a TUN device for the engine"),
    };
    Err(needs_linux(name, needs, std::env::consts::OS))
}

/// Refuses `evaluate --testbed`.
pub fn evaluate(_: &Arc<Catalogue>, _: &EvaluateArgs, _: Suite) -> Result<(), Failure> {
    Err(needs_linux("evaluate --testbed", "network namespaces and TUN devices", std::env::consts::OS))
}

/// Refuses `why --follow`.
pub fn follow(_: &WhyArgs) -> Result<(), Failure> {
    Err(needs_linux("why --follow", "what its kernel tells of live connections", std::env::consts::OS))
}

fn needs_linux(command: &str, needs: &str, system: &str) -> Failure {
    let system = match system {
        "macos" => "macOS",
        "windows" => "Windows",
        other => other,
    };
    let place = match system {
        "Windows" => "in WSL 2, a virtual machine or a container",
        _ => "in a virtual machine or a container",
    };
    let help = format!(
        "run it {place} with Linux. Here there are all commands on simulations and captures: `anabranch --help` lists \
         them, without `--follow`"
    );
    Failure::Refused(miette::miette!(help = help, "`anabranch {command}` needs Linux ({needs}), and this is {system}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    /// Words of any kind are taken, so that the answer is that Linux is missing and not that an option is unknown.
    #[test]
    fn a_command_takes_any_words_and_says_what_it_needs() {
        for words in [&[][..], &["--help"], &["wlan-lte", "--server", "x", "--", "curl", "-o", "-"], &["-V"]] {
            let command = NotHere::augment_args(Command::new("testbed"));
            let matches = command.try_get_matches_from([&["testbed"], words].concat()).expect("all words are taken");
            assert_eq!(NotHere::from_arg_matches(&matches).expect("all words are taken").words.len(), words.len());
        }
        begin();
        assert!(SCHEMAS.is_empty());
    }

    #[test]
    fn the_sentence_names_system_and_remedy() {
        for (system, named, place) in [
            ("macos", "this is macOS", "in a virtual machine or a container with Linux"),
            ("windows", "this is Windows", "in WSL 2, a virtual machine or a container with Linux"),
        ] {
            let Failure::Refused(report) = needs_linux("testbed", "network namespaces", system) else {
                panic!("it is refused")
            };
            let help = report.help().map(|help| help.to_string()).unwrap_or_default();
            assert!(report.to_string().starts_with("`anabranch testbed` needs Linux (network namespaces)"), "{report}");
            assert!(report.to_string().ends_with(named) && help.contains(place), "{report}: {help}");
        }
    }
}
