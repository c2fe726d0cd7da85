//! The twin: from a capture to a scenario, so that one can ask what another policy would have given on that network.
//!
//! Each value of the scenario is an [`Estimate`]: of paths (`path.rs`, from the queue that packets found: `passage.rs`,
//! and rates over time: `rates.rs`), of hosts (`host.rs`), of congestion control (`reduction.rs`), of the application
//! (`work.rs`). `file.rs` writes the scenario.

mod estimate;
mod file;
mod host;
mod passage;
mod path;
mod rates;
mod reduction;
mod work;

pub use estimate::Estimate;

use super::verdict::{self, Verdict};
use super::{CaptureInquiry, Confidence, NEVER, Painted, words};
use crate::Limit;
use crate::capture::choice::Candidate;
use crate::capture::verdict::PathTraffic;
use anabranch_inspect::Place;
use estimate::{text, time};
use host::HostSeen;
use path::{PathSeen, PathTwin};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Twin of a captured connection.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Twin {
    /// Number of the connection, from 1: MPTCP connections as `inspect` numbers them, then plain TCP.
    pub connection: usize,
    /// True if it is MPTCP.
    pub multipath: bool,
    /// Protocol version of MPTCP; absent for plain TCP, and where the capture misses the handshake.
    pub mptcp_version: Option<u8>,
    /// Address and port of the two sides on the first subflow.
    pub endpoints: [String; 2],
    /// Place of the capture, in words.
    pub captured: String,
    /// Payload bytes in the direction of most data, each once.
    pub bytes: u64,
    /// Time from the first packet to the arrival of the last byte \[ns\].
    pub time_ns: u64,
    /// True if the last byte arrived within the capture.
    pub finished: bool,
    /// Values of the scenario, in the order of the file.
    pub estimates: Vec<Estimate>,
    /// Facts that the capture does not tell, and that no value stands for.
    pub unknown: Vec<String>,
    /// Scenario file.
    pub scenario: String,
}

/// Reason why a capture has no twin.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TwinError {
    /// The captures have no TCP connection.
    NoConnection {
        /// Packets in them.
        packets: u64,
    },
    /// There is no connection of this number.
    NoSuch {
        /// The number asked for.
        wanted: usize,
        /// Number of connections.
        count: usize,
    },
    /// Packets of one side only were captured.
    OneSided,
    /// No path of the connection has packets that arrived in both directions.
    NoPath,
    /// The connection carries no data whose place in the stream is known.
    NoData,
}

impl fmt::Display for TwinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TwinError::NoConnection { packets } => {
                let count = match packets {
                    0 => "no packet".to_owned(),
                    1 => "1 packet and no TCP connection".to_owned(),
                    n => format!("{n} packets and no TCP connection"),
                };
                write!(f, "the capture holds {count}: there is nothing to make a twin of")
            }
            TwinError::NoSuch { wanted, count: 0 } => write!(f, "no connection {wanted}: there are none"),
            TwinError::NoSuch { wanted, count } => write!(f, "no connection {wanted}: there are 1 to {count}"),
            TwinError::OneSided => f.write_str(
                "packets of one side only are in the capture: without those of the other nothing tells how long the \
                 way takes; capture both directions",
            ),
            TwinError::NoPath => f.write_str(
                "no packet in this capture has its answer there, of its handshake or its data: nothing tells how long \
                 the way takes; capture from the handshake on",
            ),
            TwinError::NoData => f.write_str(
                "the capture has no data of this connection whose place in the stream is known: nothing tells what was \
                 sent; capture from before the handshake, with whole headers (tcpdump -s 200)",
            ),
        }
    }
}

impl std::error::Error for TwinError {}

/// Round trips of the slowest path, as a share, from which on a silence of the application counts as a pause.
const PAUSE: f64 = 0.5;
/// Shortest silence that counts \[ns\].
const LEAST_PAUSE: f64 = 10e6;
/// Bytes of IP, TCP, timestamps and a mapping before the payload; without a mapping.
const HEADERS: [i64; 2] = [super::link::HEADERS, 52];

impl CaptureInquiry {
    /// Makes the twin of a connection, by its number; without one of that with most data.
    ///
    /// # Errors
    ///
    /// If the captures hold nothing that a scenario can be made of.
    pub fn twin(&self, number: Option<usize>) -> Result<Twin, TwinError> {
        let count = self.connections();
        let Some(candidate) = self.choose(number) else {
            let packets = self.watched.findings.report.files.iter().map(|file| file.packets).sum();
            return Err(match number {
                Some(wanted) => TwinError::NoSuch { wanted, count },
                None => TwinError::NoConnection { packets },
            });
        };
        let painted = self.paint(candidate);
        let silent = |side: usize| painted.pictures.iter().all(|it| it.packets[side].is_empty());
        if silent(0) || silent(1) {
            return Err(TwinError::OneSided);
        }
        let side = usize::from(candidate.bytes[1] > candidate.bytes[0]);
        let (verdict, traffic) = self.verdict(candidate, &painted, side, false).ok_or(TwinError::NoData)?;
        self.twin_of(candidate, &painted, side, &verdict, &traffic).ok_or(TwinError::NoPath)
    }

    fn twin_of(
        &self,
        candidate: &Candidate,
        painted: &Painted<'_>,
        side: usize,
        verdict: &Verdict,
        traffic: &[PathTraffic],
    ) -> Option<Twin> {
        let about = self.about(candidate, painted, side);
        let flows = &painted.pictures;
        let opener = flows.first().and_then(|flow| flow.opener).unwrap_or(0);
        let down = side != opener;
        let (timelines, stream) = verdict::stream(flows, side);
        let slowest = flows.iter().map(|flow| flow.rtt).max().unwrap_or(0);
        let pause = (slowest as f64 * PAUSE).max(LEAST_PAUSE) as u64;
        let mut unknown = words::unknown(&about);
        let (paths, changes) = self.paths_of(painted, side, verdict, traffic, down, &mut unknown);
        // The path of the first subflow, or else the first that answered.
        let primary = flows.first().map(|flow| flow.path).filter(|path| paths.iter().any(|(it, _)| it == path));
        let primary = primary.or(paths.first().map(|(path, _)| *path))?;
        let limited = |limit: Limit| {
            let times = verdict.bands.times().into_iter().filter(|(cause, _)| cause.limit == limit);
            times.map(|(_, time)| time.as_secs_f64()).sum::<f64>() / verdict.bands.total().as_secs_f64().max(1e-9)
        };
        let host = HostSeen {
            flows,
            side,
            stream: &stream,
            multipath: candidate.multipath,
            raced: self.watched.findings.places.contains(&Place::LostRace),
            window_limited: limited(Limit::PeerWindow),
            buffer_limited: limited(Limit::SendBuffer),
            widest: verdict.widest_window,
            paths: paths.len(),
        };
        let carriers = flows.iter().filter(|flow| flow.packets[side].iter().any(|it| it.length > 0)).count();
        // The Linux kernel of today has no coupled control.
        let may_couple = carriers > 1 && host.raced;
        let mut control = reduction::control(flows, side, &timelines, may_couple);
        if control.name == "cubic" && !host.raced {
            control.name = "cubic-kernel";
        }
        let mut estimates: Vec<Estimate> = paths.into_iter().flat_map(|(_, twin)| twin.estimates).collect();
        estimates.extend(host.estimates());
        estimates.push(Estimate::new("host", "congestion", text(control.name), control.confidence, control.seen));
        estimates.extend(work::work(flows, side, &stream, if down { "down" } else { "up" }, pause));
        estimates.extend(changes);
        estimates.extend(self.run_of(painted, primary, verdict));
        // Where something essential is missing nothing is sure.
        if about.confidence() == Confidence::Low {
            estimates.iter_mut().for_each(|it| it.confidence = Confidence::Low);
        }
        let mut twin = Twin {
            connection: candidate.number,
            multipath: candidate.multipath,
            mptcp_version: self.report(candidate).and_then(|report| report.version),
            endpoints: candidate.endpoints(&self.log),
            captured: super::captured(&about, candidate, side),
            bytes: self.bytes(candidate, side),
            time_ns: verdict.bands.total().as_nanos(),
            finished: verdict.finished,
            estimates,
            unknown,
            scenario: String::new(),
        };
        twin.scenario = file::file(&twin);
        Some(twin)
    }

    /// Paths on which a subflow was established, and their changes.
    fn paths_of(
        &self,
        painted: &Painted<'_>,
        side: usize,
        verdict: &Verdict,
        traffic: &[PathTraffic],
        down: bool,
        unknown: &mut Vec<String>,
    ) -> (Vec<(usize, PathTwin)>, Vec<Estimate>) {
        let names = self.names(painted);
        let keys = keys(&names);
        let flows = &painted.pictures;
        let begin = verdict.bands.start().as_nanos();
        let seen = |path: usize| PathSeen {
            table: format!("path.{}", keys[path]),
            name: keys[path].clone(),
            side,
            flows: flows.iter().filter(|flow| flow.path == path).collect(),
            traffic: &traffic[path],
            begin,
            time: verdict.bands.total().as_nanos(),
            headers: HEADERS[usize::from(flows.iter().all(|flow| flow.plain[side]))],
            down,
        };
        let answered = |path: &usize| {
            let mine = || flows.iter().filter(|flow| flow.path == *path);
            let both =
                |flow: &super::FlowPicture| (0..2).all(|side| flow.packets[side].iter().any(|it| it.arrived != NEVER));
            mine().any(|flow| both(flow) && flow.rtt > 0)
        };
        let (there, missing): (Vec<usize>, Vec<usize>) = (0..painted.paths.len()).partition(answered);
        for path in missing {
            unknown.push(format!("The path {} never answered, and is left out.", names[path]));
        }
        // One that carried nothing gets the mean rate of the others.
        let first: Vec<(usize, PathTwin)> = there.iter().map(|path| (*path, seen(*path).twin(1e6))).collect();
        let known = || first.iter().filter(|(_, twin)| !twin.unused).map(|(_, twin)| twin.rate);
        let mean = known().sum::<f64>() / known().count().max(1) as f64;
        let again = |(path, twin): (usize, PathTwin)| {
            let twin = if twin.unused && mean > 0.0 { seen(path).twin(mean) } else { twin };
            (path, twin)
        };
        let mut paths: Vec<(usize, PathTwin)> = first.into_iter().map(again).collect();
        let changes = paths.iter_mut().flat_map(|(_, twin)| std::mem::take(&mut twin.changes)).collect();
        (paths, changes)
    }

    /// The table `run`.
    fn run_of(&self, painted: &Painted<'_>, primary: usize, verdict: &Verdict) -> Vec<Estimate> {
        let keys = keys(&self.names(painted));
        let make = |key: &str, value: String, seen: &str| Estimate::new("run", key, value, Confidence::High, seen);
        let stop = 60e9 + 10.0 * verdict.bands.total().as_nanos() as f64;
        vec![
            make("primary", text(&keys[primary]), "the connection began on it"),
            make("stop", time(stop), "a minute, and ten times what the original took"),
        ]
    }
}

/// Names of paths as keys of TOML, each another.
fn keys(names: &[String]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for name in names {
        let first = key(name, keys.len());
        let others = (keys.len() + 1..).map(|number| format!("{first}-path{number}"));
        let free = std::iter::once(first.clone()).chain(others).find(|key| !keys.contains(key));
        keys.extend(free);
    }
    keys
}

/// Name of a path in letters, digits and hyphens.
fn key(name: &str, path: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let joined: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    if joined.is_empty() { format!("path{}", path + 1) } else { joined.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_paths_become_keys() {
        let names = ["10.0.0.1", "10-0-0-1", "fd77::1 > fd77::2", "::"].map(str::to_owned);
        assert_eq!(keys(&names), ["10-0-0-1", "10-0-0-1-path2", "fd77-1-fd77-2", "path4"]);
        let names = ["a", "a-path3", "a"].map(str::to_owned);
        assert_eq!(keys(&names), ["a", "a-path3", "a-path4"], "each another");
    }
}
