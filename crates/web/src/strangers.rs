//! Files that a reader gives for a capture, and that are none.

use crate::scenario::Trouble;
use anabranch_inspect::FileReport;

/// Refuses the files that are no captures: names what they are, if it shows, and else says how they begin.
pub fn check(reports: &[FileReport], files: &[(&str, &[u8])]) -> Result<(), Trouble> {
    let strangers = reports.iter().zip(files).filter(|(report, _)| !report.is_capture);
    let said: Vec<(String, Option<&str>)> = strangers
        .map(|(report, (name, bytes))| match kind(name, bytes) {
            Some((kind, help)) => (format!("{name} is {kind}, not a capture"), Some(help)),
            None => (format!("{name}: {}", report.error.as_deref().unwrap_or("cannot be read")), None),
        })
        .collect();
    if said.is_empty() {
        return Ok(());
    }
    let problems: Vec<&str> = said.iter().map(|(problem, _)| problem.as_str()).collect();
    let help = said.iter().find_map(|(_, help)| *help).unwrap_or(ACCEPTED);
    Err(Trouble { help: Some(help.to_owned()), ..Trouble::plain(problems.join("; ")) })
}

const ACCEPTED: &str = "accepted: pcap and pcapng, also gzipped, as tcpdump and Wireshark write them";
const OPEN: &str = "to run it, choose it with “Open file” in the laboratory";
const BY_COMMAND: &str = "the command takes it: `anabranch study` and `anabranch sweep`";

/// Longest text that is read to tell its kind \[bytes\]. Our longest scenario is a tenth of that.
const LONGEST: usize = 1 << 20;

/// Returns the kind of a file of our own, and where it belongs.
fn kind(name: &str, bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty() && text.len() <= LONGEST)?;
    let table = match text.parse::<toml::Table>() {
        Ok(table) if !table.is_empty() => table,
        // With a mistake in it, it is one by its name.
        _ if name.ends_with(".toml") => return Some(("a TOML file, as scenarios are", OPEN)),
        _ => return None,
    };
    let has = |key: &str| table.contains_key(key);
    Some(match () {
        () if has("scenario") && has("plot") => ("a study", BY_COMMAND),
        () if has("scenario") => ("a sweep", BY_COMMAND),
        () if ["path", "workload", "link", "host"].into_iter().any(has) => ("a scenario", OPEN),
        () => ("a TOML file, as scenarios are", OPEN),
    })
}
