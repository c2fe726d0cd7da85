//! Result of a download or upload, for people and for programs.

use super::Destination;
use crate::failure::Failure;
use anabranch_engine::Counters;
use anabranch_engine::path_use::{Path, Subflow};
use anabranch_events::{ConnectionReport, CounterReport};
use anabranch_scenario::Chosen;
use anabranch_service::{FetchError, Outcome, Target};
use anabranch_units::Duration;
use miette::miette;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use std::path::Path as FilePath;

/// Facts that are not in the outcome.
pub struct About<'a> {
    /// Target fetched in the end.
    pub target: &'a Target,
    /// The engine's policies.
    pub chosen: &'a Chosen,
    /// URLs redirected to, without the first.
    pub redirects: &'a [String],
    /// Destination of the body.
    pub destination: &'a Destination,
    /// Our addresses.
    pub from: &'a [IpAddr],
}

/// Exit statuses.
pub const NO_CONNECTION: u8 = 3;
const BROKEN: u8 = 4;
pub const REFUSED_BY_SERVER: u8 = 5;
const NO_REPLY: u8 = 6;
/// A shell's exit status for SIGINT.
const INTERRUPTED: u8 = 130;

fn seconds(outcome: &Outcome) -> f64 {
    outcome.finished.map_or(0.0, Duration::as_secs_f64)
}

/// Bits per second from the first SYN to the last byte, of the larger direction.
fn rate(outcome: &Outcome) -> Option<f64> {
    let seconds = seconds(outcome);
    (seconds > 0.0).then(|| outcome.received.max(outcome.uploaded) as f64 * 8.0 / seconds)
}

/// Contents of the JSON.
#[derive(Serialize, JsonSchema)]
pub struct Transfer<'a> {
    url: &'a str,
    redirects: &'a [String],
    output: Option<&'a FilePath>,
    complete: bool,
    error: Option<String>,
    status: Option<u16>,
    bytes: u64,
    bytes_expected: Option<u64>,
    bytes_uploaded: u64,
    pattern: bool,
    seconds: f64,
    connected_s: Option<f64>,
    first_byte_s: Option<f64>,
    rate_bps: Option<f64>,
    multipath: bool,
    policies: &'a Chosen,
    connection: Option<&'a ConnectionReport>,
    remarks: Vec<String>,
    why: Option<&'a str>,
    counters: CounterReport,
}

impl<'a> Transfer<'a> {
    /// The result of a download or upload.
    pub fn of(about: &About<'a>, outcome: &'a Outcome, counters: &Counters) -> Self {
        Transfer {
            url: about.target.url.as_str(),
            redirects: about.redirects,
            output: about.destination.path(),
            complete: outcome.error.is_none() && outcome.is_content(),
            error: outcome.error.as_ref().map(FetchError::to_string),
            status: outcome.status,
            bytes: outcome.received,
            bytes_expected: outcome.expected,
            bytes_uploaded: outcome.uploaded,
            pattern: outcome.pattern && outcome.received > 0,
            seconds: seconds(outcome),
            connected_s: outcome.connected.map(Duration::as_secs_f64),
            first_byte_s: outcome.first_byte.map(Duration::as_secs_f64),
            rate_bps: rate(outcome),
            multipath: outcome.multipath,
            policies: about.chosen,
            connection: outcome.report.as_ref(),
            remarks: remarks(about, outcome),
            why: outcome.why.as_deref(),
            counters: CounterReport::of(counters),
        }
    }
}

/// One line, and one for each subflow.
pub fn summary(about: &About<'_>, outcome: &Outcome) -> String {
    let mut moved = Vec::new();
    if outcome.uploaded > 0 {
        moved.push(format!("{} bytes sent", outcome.uploaded));
    }
    moved.push(format!("{} bytes received", outcome.received));
    let rate = rate(outcome).map_or_else(String::new, |rate| format!(" ({:.2} Mbit/s)", rate / 1e6));
    let fallback = outcome.report.as_ref().and_then(|report| report.stats.fallback);
    let how = match (outcome.multipath, fallback) {
        (true, _) => "MPTCP".to_owned(),
        (false, Some(reason)) => format!("plain TCP ({})", reason.name()),
        (false, None) => "plain TCP".to_owned(),
    };
    let mut text = format!("{} in {:.3} s{rate}, {how}", moved.join(", "), seconds(outcome));
    if let Some(path) = about.destination.path() {
        text += &format!(": {}", path.display());
    }
    for subflow in outcome.report.iter().flat_map(|report| &report.subflows) {
        let srtt = subflow.srtt.map_or_else(|| "unknown".to_owned(), |srtt| format!("{:.1} ms", srtt.as_millis_f64()));
        text += &format!(
            "\n  {} > {}: {} bytes received, {} sent, {} segments repeated, RTT {srtt}",
            subflow.local, subflow.remote, subflow.bytes_received, subflow.bytes_sent, subflow.retransmitted
        );
    }
    for remark in remarks(about, outcome) {
        text += &format!("\n  note: {remark}");
    }
    if let Some(why) = &outcome.why {
        text += &format!("\n  why: {why}");
    }
    text
}

/// Multipath that did not come about, and why.
fn remarks(about: &About<'_>, outcome: &Outcome) -> Vec<String> {
    let Some(report) = &outcome.report else { return Vec::new() };
    let mut path_use = report.path_use();
    let family = report.subflows.first().map(|subflow| subflow.local.is_ipv4());
    let used = |ip: &IpAddr| report.subflows.iter().any(|subflow| subflow.local.ip() == *ip);
    for ip in about.from.iter().filter(|ip| family == Some(ip.is_ipv4()) && !used(ip)) {
        path_use.add(Path { name: format!("from {ip}"), bytes: 0, subflow: Subflow::Absent });
    }
    path_use.remarks()
}

/// Returns the error, if there is one.
pub fn failure(about: &About<'_>, outcome: &Outcome) -> Result<(), Failure> {
    let url = &about.target.url;
    if let Some(error) = &outcome.error {
        let report = miette!("{url}: {error}");
        return Err(match error {
            FetchError::NotConnected | FetchError::Open(_) => Failure::NotFetched(NO_CONNECTION, report),
            FetchError::Broken | FetchError::Stalled | FetchError::TooLong | FetchError::Short => {
                let came = outcome.expected.map_or_else(String::new, |expected| format!(" of {expected}"));
                let report = miette!("{url}: {error}; {}{came} bytes were received", outcome.received);
                Failure::NotFetched(BROKEN, report)
            }
            FetchError::NotHttp(_) | FetchError::RangeIgnored => Failure::NotFetched(NO_REPLY, report),
            FetchError::Output(error) => {
                Failure::writing_to(about.destination.path().unwrap_or(FilePath::new("the output")), error)
            }
            FetchError::Upload(_) => Failure::Failed(report),
            FetchError::Interrupted => Failure::NotFetched(INTERRUPTED, report),
        });
    }
    match outcome.status {
        Some(status) if outcome.redirect().is_some() => {
            let after = about.redirects.len();
            Err(Failure::NotFetched(REFUSED_BY_SERVER, miette!("{url}: status {status}, after {after} redirects")))
        }
        Some(status) if !outcome.is_content() => {
            Err(Failure::NotFetched(REFUSED_BY_SERVER, miette!("{url}: the server answered with status {status}")))
        }
        _ => Ok(()),
    }
}
