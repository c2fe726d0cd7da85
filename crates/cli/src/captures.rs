//! Refusals that commands on captures have in common.

use crate::failure::Failure;
use anabranch_inspect::FileReport;
use miette::miette;

/// Refuses files that are no captures, each with its reason.
pub fn check_files(files: &[FileReport]) -> Result<(), Failure> {
    let reason = |file: &FileReport| format!("{}: {}", file.name, file.error.as_deref().unwrap_or("cannot be read"));
    let refused: Vec<String> = files.iter().filter(|file| !file.is_capture).map(reason).collect();
    if refused.is_empty() { Ok(()) } else { Err(Failure::Refused(miette!("{}", refused.join("\n")))) }
}

/// Refuses the number of a connection if there are only `count` of this kind.
pub fn check_number(wanted: Option<usize>, count: usize, kind: &str) -> Result<(), Failure> {
    match wanted {
        Some(wanted) if count == 0 => Err(Failure::Refused(miette!("no {kind} {wanted}: there are none"))),
        Some(wanted) if !(1..=count).contains(&wanted) => {
            Err(Failure::Refused(miette!("no {kind} {wanted}: there are 1 to {count}")))
        }
        _ => Ok(()),
    }
}
