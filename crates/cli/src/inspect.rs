//! `anabranch inspect`.

use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::output;
use anabranch_inspect::Limits;
use anabranch_lab::format::INSPECTION;

/// Analyses captures and prints what happened in them.
pub fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let mut report = anabranch_inspect::inspect(&args.files, Limits::default());
    let refused: Vec<String> = (report.files.iter().filter(|file| !file.is_capture))
        .map(|file| format!("{}: {}", file.name, file.error.as_deref().unwrap_or("cannot be read")))
        .collect();
    let refused = || Failure::Refused(miette::miette!("{}", refused.join("\n")));
    if report.files.iter().all(|file| !file.is_capture) {
        return Err(refused());
    }
    if let Some(wanted) = args.connection {
        let count = report.connections.len();
        report.connections.retain(|connection| connection.number == wanted);
        report.plain_tcp.clear();
        if report.connections.is_empty() {
            let there = if count == 0 { "there are none".to_owned() } else { format!("there are 1 to {count}") };
            return Err(Failure::Refused(miette::miette!("no MPTCP connection {wanted}: {there}")));
        }
    }
    if args.json {
        output::print(&output::json(&INSPECTION, &report)?)?;
    } else {
        output::print(&anabranch_report::inspection(&report))?;
    }
    if report.files.iter().any(|file| !file.is_capture) { Err(refused()) } else { Ok(()) }
}
