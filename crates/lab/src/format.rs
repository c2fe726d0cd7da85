//! Formats of the JSON that the program writes, each with its version.
//!
//! A document begins with `format` and `format_version`. The version grows when a name goes, changes its meaning or may
//! hold other values; a new name alone does not change it. `anabranch schema FORMAT` prints the schema of a document,
//! or of each line of a format of lines. Those begin with a line that has format and version.

use schemars::JsonSchema;
use serde::Serialize;

/// A format of JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// Name in kebab-case, the value of `format` in the document.
    pub name: &'static str,
    /// Version, the value of `format_version` in the document.
    pub version: u32,
    /// Contents, in a few words.
    pub about: &'static str,
    /// Commands that write it, with the option or the file.
    pub written_by: &'static str,
}

/// All formats of documents, in the order of the commands in `--help`.
pub static FORMATS: [&Format; 28] = [
    &RUNS,
    &COMPARISON,
    &PAIRWISE,
    &LEADERBOARD,
    &ADVERSARY,
    &SWEEP,
    &CAMPAIGN,
    &RUN_JOURNAL,
    &STUDY,
    &STUDIES,
    &STUDY_LIST,
    &FIELD_STUDY,
    &FIELD_STUDIES,
    &EVALUATION,
    &FLOW_JOURNAL,
    &WHY,
    &WHY_CAPTURE,
    &TWIN,
    &INSPECTION,
    &RECORDINGS,
    &LIST,
    &SCRIPTS,
    &CALIBRATION,
    &KERNEL_FEATURES,
    &KERNEL_STATUS,
    &TESTBED,
    &SERVICE,
    &TRANSFER,
];

/// Formats of lines: events and logs, one JSON object on each line.
pub static LINES: [&Format; 7] =
    [&PACKET_EVENTS, &WHY_LIVE, &CONNECTION_EVENTS, &KERNEL_ACKS, &KERNEL_WATCH, &KERNEL_STEER, &PROXY_LOG];

const fn format(name: &'static str, version: u32, written_by: &'static str, about: &'static str) -> Format {
    Format { name, version, about, written_by }
}

/// Runs of one scenario.
pub static RUNS: Format = format("runs", 1, "`run --json`", "runs of a scenario");
/// A comparison with its runs.
pub static COMPARISON: Format =
    format("comparison", 1, "`compare --json`", "the summary of a comparison, and its runs");
/// Every scheduler against every other.
pub static PAIRWISE: Format = format("pairwise", 1, "`compare --all --json`", "every scheduler against every other");
/// A leaderboard.
pub static LEADERBOARD: Format = format("leaderboard", 1, "`rank --json`", "schedulers over drawn conditions");
/// Finds of a search.
pub static ADVERSARY: Format =
    format("adversary", 1, "`rank --against NAME --json`", "conditions in which a scheduler loses most");
/// Summary of a sweep.
pub static SWEEP: Format = format("sweep", 1, "`sweep --json`", "the summary of a sweep");
/// Description of a directory of parts.
pub static CAMPAIGN: Format =
    format("campaign", 2, "`sweep --out` and `rank --out`: `manifest.json`", "what the parts beside it belong to");
/// Runs that are kept.
pub static RUN_JOURNAL: Format =
    format("run-journal", 1, "`compare --out` and `study --out`: `runs.jsonl`", "a run that is kept, one on each line");
/// Result of one study.
pub static STUDY: Format = format("study", 1, "`study`: `NAME.json`", "figures and verdicts of a study");
/// Results of several studies.
pub static STUDIES: Format = format("studies", 1, "`study --json`", "figures and verdicts of several studies");
/// Names of studies.
pub static STUDY_LIST: Format = format("study-list", 1, "`study --list --json`", "the studies, each with its paper");
/// Result of one field study.
pub static FIELD_STUDY: Format =
    format("field-study", 1, "`study field/NAME`: `NAME.json`", "measured results beside predicted ranges");
/// Results of several field studies.
pub static FIELD_STUDIES: Format = format(
    "field-studies",
    1,
    "`study --json` of field studies",
    "measured results of several sources beside predicted ranges",
);
/// Results of evaluations.
pub static EVALUATION: Format =
    format("evaluation", 1, "`evaluate --json`", "verdicts on congestion controls by the criteria of a document");
/// Measurements of flows that are kept.
pub static FLOW_JOURNAL: Format =
    format("flow-journal", 1, "`evaluate --out`: `flows.jsonl`", "flows of a run that is kept, one run on each line");
/// Limits of transfers.
pub static WHY: Format = format("why", 2, "`why --json`", "the time of transfers by limit, and counterfactuals");
/// Limits of transfers in captures.
pub static WHY_CAPTURE: Format =
    format("why-capture", 1, "`why CAPTURE --json`", "the time of a capture's transfers by limit, and faults");
/// Twins of captured connections.
pub static TWIN: Format = format("twin", 1, "`twin --json`", "a scenario estimated from a capture, value by value");
/// Analysis of captures.
pub static INSPECTION: Format = format("inspection", 1, "`inspect --json`", "what happened in captures");
/// Contents of recordings.
pub static RECORDINGS: Format = format("recordings", 1, "`trace --json`", "what recordings of networks hold");
/// Entries of a list.
pub static LIST: Format = format("list", 1, "`list --json`", "policies, profiles, scenarios or studies");
/// Results of scripts.
pub static SCRIPTS: Format = format("scripts", 1, "`script --json`", "the result of each conformance script");
/// Calibration of the simulator.
pub static CALIBRATION: Format =
    format("calibration", 2, "`calibrate --json` and `--output`", "simulator, engine and kernel side by side");
/// Abilities of the running kernel.
pub static KERNEL_FEATURES: Format =
    format("kernel-features", 1, "`kernel list --json`", "what the kernel can do, and policies for it");
/// Congestion controls and schedulers in the running kernel.
pub static KERNEL_STATUS: Format =
    format("kernel-status", 1, "`kernel status --json`", "congestion controls and schedulers of ours in the kernel");
/// A run of the testbed.
pub static TESTBED: Format = format("testbed", 1, "`testbed --json FILE`", "what links and paths carried in real time");
/// Totals of a server.
pub static SERVICE: Format = format("service", 1, "`serve --json`", "what was served");
/// A download or upload.
pub static TRANSFER: Format = format("transfer", 1, "`fetch --json`", "a download or an upload");
/// Events of packets in simulated runs.
pub static PACKET_EVENTS: Format = format("packet-events", 1, "`run --events`", "events of every packet of a run");
/// Limits of live connections.
pub static WHY_LIVE: Format =
    format("why-live", 1, "`why --follow --json`", "the time of live connections by limit, one interval on each line");
/// Events of connections on the wire.
pub static CONNECTION_EVENTS: Format =
    format("connection-events", 1, "`serve --events` and `fetch --events`", "events of connections and subflows");
/// Rounds of probes, and the paths of ACKs.
pub static KERNEL_ACKS: Format =
    format("kernel-acks", 1, "`kernel acks --json`", "rounds of probes on each path, and where ACKs travel");
/// Decisions of the kernel's MPTCP.
pub static KERNEL_WATCH: Format =
    format("kernel-watch", 1, "`kernel watch --json`", "decisions of the kernel's scheduler, DATA_ACKs and mappings");
/// Rules of a policy at work on the paths of the kernel.
pub static KERNEL_STEER: Format =
    format("kernel-steer", 1, "`kernel steer --json`", "measurements of paths, and subflows closed or made backups");
/// Log of a proxy.
pub static PROXY_LOG: Format =
    format("proxy-log", 1, "`proxy --log-format json`", "what a proxy logs, such as each connection at its end");

impl Format {
    /// Returns all formats, those of documents first.
    pub fn all() -> impl Iterator<Item = &'static Format> {
        FORMATS.into_iter().chain(LINES)
    }

    /// Returns the format of this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        Format::all().find(|format| format.name == name)
    }

    /// Returns the document of this format with these contents.
    pub fn document<T: Serialize>(&'static self, contents: T) -> Document<T> {
        Document { format: self.name, format_version: self.version, contents }
    }

    /// Returns the problem of a document that says it has this format and version; `None` if this program can read it.
    pub fn problem(&self, format: &str, version: u64) -> Option<String> {
        let known = format!("this program reads {} {}", self.name, self.version);
        (format != self.name || version != u64::from(self.version))
            .then(|| format!("its format is {format} {version}, and {known}"))
    }
}

/// A document: its format, then its contents, which are an object.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Document<T> {
    /// Name of the format.
    pub format: &'static str,
    /// Version of the format.
    pub format_version: u32,
    /// Contents.
    #[serde(flatten)]
    pub contents: T,
}

/// First line of a format of lines that says nothing else.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct NoContents {}

/// Contents that name the program which made them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Made<T> {
    /// Version of Anabranch.
    pub version: &'static str,
    /// Digest of the program that made it.
    pub build: &'static str,
    /// The rest.
    #[serde(flatten)]
    pub contents: T,
}

/// Adds version and build of this program.
pub fn made<T: Serialize>(contents: T) -> Made<T> {
    Made { version: crate::VERSION, build: crate::build(), contents }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        let names: BTreeSet<&str> = Format::all().map(|format| format.name).collect();
        assert_eq!(names.len(), FORMATS.len() + LINES.len());
        for format in Format::all() {
            let is_kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(format.name.chars().all(is_kebab) && format.version > 0, "{}", format.name);
        }
        assert!(Format::all().all(|format| Format::named(format.name) == Some(format)));
    }

    #[test]
    fn another_format_or_version_is_a_problem() {
        assert_eq!(SWEEP.problem("sweep", 1), None);
        assert_eq!(SWEEP.problem("sweep", 2).as_deref(), Some("its format is sweep 2, and this program reads sweep 1"));
        assert!(SWEEP.problem("runs", 1).is_some());
    }
}
