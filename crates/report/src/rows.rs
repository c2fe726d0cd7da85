//! One row per run, as CSV and as JSON. Each carries version, scenario digest and seed, so that it can be repeated when
//! it has been cut off from everything else.

use anabranch_lab::compare::{Comparison, Group, Summary};
use anabranch_lab::{Chosen, Measured, Run, Scenario, Switched, VERSION, Variant};
use serde::Serialize;
use std::fmt;

/// What all rows have in common.
#[derive(Clone, Debug, Serialize)]
pub struct Header {
    /// Of Anabranch.
    pub version: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// What it is for.
    pub about: Option<String>,
    /// SHA-256 of its content.
    pub digest: String,
    /// Each `--set` that was laid over it.
    pub sets: Vec<String>,
    /// The seed of the first repetition.
    pub seed: u64,
    /// How many repetitions, each with the next seed.
    pub repeat: usize,
    /// The paths' names, in order.
    pub paths: Vec<String>,
    /// The policies of the host that sends.
    pub policies: Chosen,
    /// Those of the host that receives, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_policies: Option<Chosen>,
    /// In a comparison, the schedulers that ran in the place of the scenario's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<Variant>,
    /// Policies that took the place of others in the course of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switched: Vec<Switched>,
}

/// One run among the results.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// `scheduler`, or `single-path` for a baseline.
    pub kind: &'static str,
    /// The scheduler, or the path.
    pub name: &'a str,
    /// What the sender ran with.
    pub policies: &'a Chosen,
    /// Its numbers.
    pub measured: &'a Measured,
}

impl Header {
    /// For this many repetitions from this seed on.
    pub fn new(scenario: &Scenario, seed: u64, repeat: usize) -> Self {
        Header {
            version: VERSION,
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            digest: scenario.digest.clone(),
            sets: scenario.origin.sets.clone(),
            seed,
            repeat,
            paths: scenario.paths(),
            policies: scenario.policies().clone(),
            receiver_policies: Some(scenario.receiver()).filter(|it| *it != scenario.policies()).cloned(),
            schedulers: Vec::new(),
            switched: scenario.switched.clone(),
        }
    }

    /// The same for a comparison of these schedulers.
    pub fn comparing(self, schedulers: Vec<Variant>) -> Self {
        Header { schedulers, ..self }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        use anabranch_lab::Settings;
        use anabranch_policy::registry::Value;
        let plain = |name: &str| Variant { name: name.to_owned(), parameters: Settings::default() };
        Header {
            version: "0.0.0",
            scenario: "wlan-lte".to_owned(),
            about: Some("a test".to_owned()),
            digest: "0123456789abcdef".repeat(4),
            sets: vec![],
            seed: 1,
            repeat: 20,
            paths: vec!["wlan".to_owned(), "lte".to_owned()],
            policies: Chosen {
                profile: "linux".to_owned(),
                scheduler: plain("min-rtt"),
                congestion: Variant {
                    name: "cubic".to_owned(),
                    parameters: Settings(vec![("beta".to_owned(), Value::Number(0.7))]),
                },
                window: plain("shared"),
                ack_path: plain("own"),
                reinjection: plain("opportunistic"),
            },
            receiver_policies: None,
            schedulers: Vec::new(),
            switched: Vec::new(),
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.scenario, self.about.as_deref().unwrap_or("no description"))?;
        write!(f, "anabranch {}, scenario {}, ", self.version, &self.digest[..12.min(self.digest.len())])?;
        match self.repeat {
            1 => write!(f, "seed {}", self.seed)?,
            n => write!(f, "seeds {} to {}", self.seed, self.seed.wrapping_add(n as u64 - 1))?,
        }
        write!(f, ", profile {}", self.policies.profile)?;
        if self.schedulers.is_empty() {
            write!(f, ", scheduler {}", self.policies.scheduler.name)?;
        }
        self.sets.iter().try_for_each(|set| write!(f, "\nset {set}"))
    }
}

/// The rows of a comparison: schedulers in the order asked for, then the baselines.
pub fn comparison_rows(comparison: &Comparison) -> Vec<Row<'_>> {
    fn rows<'a>(kind: &'static str, groups: &'a [Group]) -> impl Iterator<Item = Row<'a>> {
        groups.iter().flat_map(move |group| {
            group.runs.iter().map(move |measured| Row { kind, name: &group.name, policies: &group.policies, measured })
        })
    }
    rows("scheduler", &comparison.candidates).chain(rows("single-path", &comparison.singles)).collect()
}

/// The rows of runs of one scenario.
pub fn run_rows<'a>(header: &'a Header, runs: &'a [Run]) -> Vec<Row<'a>> {
    let (policies, name) = (&header.policies, &header.policies.scheduler.name);
    runs.iter().map(|run| Row { kind: "scheduler", name, policies, measured: &run.measured }).collect()
}

/// The rows as CSV with a header line.
pub fn csv(header: &Header, rows: &[Row<'_>]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let shares = header.paths.iter().map(|path| format!("share_{path}"));
    writer.write_record(COLUMNS.iter().map(|name| (*name).to_owned()).chain(shares))?;
    for row in rows {
        let shares = row.measured.shares.iter().map(|share| share.to_string());
        writer.write_record(cells(header, row).into_iter().chain(shares))?;
    }
    Ok(writer.into_inner().map_err(|error| error.into_error())?)
}

/// Header, summary if there is one, and rows as JSON.
pub fn json(header: &Header, summary: Option<&Summary>, rows: &[Row<'_>]) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'a> {
        version: &'a str,
        scenario: &'a str,
        digest: &'a str,
        kind: &'a str,
        name: &'a str,
        #[serde(flatten)]
        measured: &'a Measured,
        rto_rate: f64,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        header: &'a Header,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<&'a Summary>,
        runs: Vec<Line<'a>>,
    }
    fn line<'a>(header: &'a Header, row: &Row<'a>) -> Line<'a> {
        Line {
            version: header.version,
            scenario: &header.scenario,
            digest: &header.digest,
            kind: row.kind,
            name: row.name,
            measured: row.measured,
            rto_rate: row.measured.rto_rate(),
        }
    }
    serde_json::to_string_pretty(&Document {
        header,
        summary,
        runs: rows.iter().map(|row| line(header, row)).collect(),
    })
}

/// Units are part of the name.
const COLUMNS: [&str; 33] = [
    "version",
    "scenario",
    "digest",
    "seed",
    "kind",
    "name",
    "finished",
    "unfinished",
    "completion_s",
    "goodput_bps",
    "ofo_count",
    "ofo_peak",
    "rto_rate",
    "rtos",
    "segments_sent",
    "retransmitted",
    "reinjected_bytes",
    "duplicate_bytes",
    "blocked_cwnd_s",
    "blocked_window_s",
    "blocked_scheduler_s",
    "blocked_application_s",
    "hol_blocked_s",
    "overruled",
    "acks_detoured",
    "acks_kept",
    "ack_fallbacks",
    "probes_sent",
    "fallbacks",
    "checksum_failures",
    "altered_bytes",
    "events_digest",
    "policies",
];

fn cells(header: &Header, row: &Row<'_>) -> Vec<String> {
    let m = row.measured;
    vec![
        header.version.to_owned(),
        header.scenario.clone(),
        header.digest.clone(),
        m.seed.to_string(),
        row.kind.to_owned(),
        row.name.to_owned(),
        m.finished.to_string(),
        m.unfinished.to_string(),
        m.completion_s.map_or(String::new(), |s| s.to_string()),
        m.goodput_bps.to_string(),
        m.ofo_count.to_string(),
        m.ofo_peak.to_string(),
        m.rto_rate().to_string(),
        m.rtos.to_string(),
        m.segments_sent.to_string(),
        m.retransmitted.to_string(),
        m.reinjected_bytes.to_string(),
        m.duplicate_bytes.to_string(),
        m.blocked_cwnd_s.to_string(),
        m.blocked_window_s.to_string(),
        m.blocked_scheduler_s.to_string(),
        m.blocked_application_s.to_string(),
        m.hol_blocked_s.to_string(),
        m.overruled.to_string(),
        m.acks_detoured.to_string(),
        m.acks_kept.to_string(),
        m.ack_fallbacks.to_string(),
        m.probes_sent.to_string(),
        m.fallbacks.to_string(),
        m.checksum_failures.to_string(),
        m.altered_bytes.to_string(),
        m.events_digest.clone(),
        policies(row),
    ]
}

/// What the sender ran with, all parameters included; of a single path, plain TCP, what counts there.
fn policies(row: &Row<'_>) -> String {
    let counts = |seam: &str| row.kind == "scheduler" || seam == "congestion";
    let each: Vec<String> = (row.policies.seams().iter().filter(|(seam, _)| counts(seam)))
        .map(|(seam, policy)| format!("{seam} {policy}"))
        .collect();
    each.join("; ")
}
