//! The `anabranch` command with the policies of the registry.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    anabranch_cli::main_with(anabranch_policy::Catalogue::default())
}
