//! Report of a testbed's links, for programs; see docs/testbed.md.

use super::report::{About, Ending, backend_name, remarks, scheduling};
use anabranch_events::statistics::{object, properties, values};
use anabranch_host::EmulatorReport;
use anabranch_host::emulator::{CaptureReport, LinkReport, PathReport, Percentiles, Traffic, Validity};
use anabranch_host::testbed::PathLayout;
use anabranch_net::LINK;
use anabranch_units::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::net::IpAddr;
use std::path::Path;

/// Contents of the JSON.
#[derive(Serialize, JsonSchema)]
pub struct TestbedRun<'a> {
    scenario: &'a str,
    digest: &'a str,
    seed: u64,
    /// Kind of interface at the ends of the paths: `veth` or `tun`.
    backend: String,
    /// Exit code of the testbed.
    exit_code: u8,
    /// True if `--duration` ended the command.
    timed_out: bool,
    /// Running time of the command \[s\].
    command_s: f64,
    emulator: Emulator,
    /// True if the links behaved as specified.
    valid: bool,
    faults: Vec<Fault<'a>>,
    paths: Vec<PathRun<'a>>,
    links: Vec<LinkRun<'a>>,
    capture: Option<Capture<'a>>,
    /// Reason for which the captured transfer was slower than its best path; null if it was not, or was not captured.
    why: Option<&'a str>,
    /// Keys of the scenario that no kernel supports.
    not_applied: &'a [String],
    /// Non-essential steps that failed.
    shortcomings: &'a [String],
    remarks: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Emulator {
    elapsed_s: f64,
    cpu_s: f64,
    scheduling: String,
    lateness_us: Spread,
}

#[derive(Serialize, JsonSchema)]
struct Fault<'a> {
    what: &'a str,
    remedy: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Path")]
struct PathRun<'a> {
    name: &'a str,
    device: &'a str,
    /// Addresses of the client: IPv4, then IPv6.
    client: [IpAddr; 2],
    backup: bool,
    down: Way,
    up: Way,
    /// Devices that gave up, and why.
    failures: &'a [String],
}

/// Packets of a path that travel one way.
#[derive(Serialize, JsonSchema)]
struct Way {
    sent: u64,
    sent_bytes: u64,
    not_ip: u64,
    link_local: u64,
    delivered: u64,
    delivered_bytes: u64,
    delivered_payload: u64,
    damaged_and_dropped: u64,
    /// Null if the interface does not tell.
    interface_queue_drops: Option<u64>,
    interface_no_room: u64,
    interface_refused: u64,
    interface_unplugged: u64,
    delay_ms: Spread,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Link")]
struct LinkRun<'a> {
    name: &'a str,
    #[serde(flatten)]
    #[schemars(with = "LinkStatistics")]
    stats: Map<String, Value>,
    /// Time from a packet's offer to its last bit.
    queue_ms: Spread,
}

#[derive(Serialize, JsonSchema)]
struct Capture<'a> {
    files: Vec<&'a Path>,
    packets: u64,
    missed: u64,
    failure: Option<&'a str>,
}

/// Percentiles of spans of time.
#[derive(Serialize, JsonSchema)]
struct Spread {
    count: u64,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

/// Schema of the statistics of a link.
struct LinkStatistics;

impl JsonSchema for LinkStatistics {
    fn schema_name() -> Cow<'static, str> {
        "LinkStatistics".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        object(properties(LINK))
    }
}

impl<'a> TestbedRun<'a> {
    /// The result of a run.
    pub fn of(about: &'a About<'a>, ending: &Ending, report: &'a EmulatorReport) -> Self {
        let faults = match &report.validity {
            Validity::Valid => &[][..],
            Validity::Invalid(faults) => faults,
        };
        TestbedRun {
            scenario: &about.scenario.name,
            digest: &about.scenario.digest,
            seed: about.seed,
            backend: backend_name(about.backend).to_lowercase(),
            exit_code: ending.code,
            timed_out: ending.timed_out,
            command_s: ending.elapsed.as_secs_f64(),
            emulator: Emulator {
                elapsed_s: report.elapsed.as_secs_f64(),
                cpu_s: report.cpu.as_secs_f64(),
                scheduling: scheduling(&report.scheduling),
                lateness_us: Spread::of(&report.lateness, 1e3),
            },
            valid: report.validity.is_valid(),
            faults: faults.iter().map(|fault| Fault { what: &fault.what, remedy: fault.remedy }).collect(),
            paths: about.layout.paths.iter().zip(&report.paths).map(|(at, path)| PathRun::of(at, path)).collect(),
            links: report.links.iter().map(LinkRun::of).collect(),
            capture: report.capture.as_ref().map(Capture::of),
            why: about.why.as_deref(),
            not_applied: about.not_applied,
            shortcomings: about.shortcomings,
            remarks: remarks(about, report),
        }
    }
}

impl<'a> PathRun<'a> {
    fn of(place: &'a PathLayout, path: &'a PathReport) -> Self {
        PathRun {
            name: &path.name,
            device: &place.device,
            client: place.client().both(),
            backup: place.backup,
            down: Way::of(&path.traffic.down),
            up: Way::of(&path.traffic.up),
            failures: &path.failures,
        }
    }
}

impl Way {
    fn of(traffic: &Traffic) -> Way {
        Way {
            sent: traffic.read,
            sent_bytes: traffic.read_bytes.get(),
            not_ip: traffic.not_ip,
            link_local: traffic.link_local,
            delivered: traffic.delivered,
            delivered_bytes: traffic.delivered_bytes.get(),
            delivered_payload: traffic.delivered_payload.get(),
            damaged_and_dropped: traffic.damaged_and_dropped,
            interface_queue_drops: traffic.queue_drops,
            interface_no_room: traffic.no_room,
            interface_refused: traffic.refused,
            interface_unplugged: traffic.unplugged,
            delay_ms: Spread::of(&traffic.delay, 1e6),
        }
    }
}

impl<'a> LinkRun<'a> {
    fn of(link: &'a LinkReport) -> Self {
        let stats = values(LINK, &link.stats).collect();
        LinkRun { name: &link.name, stats, queue_ms: Spread::of(&link.queue_delay, 1e6) }
    }
}

impl<'a> Capture<'a> {
    fn of(capture: &'a CaptureReport) -> Self {
        Capture {
            files: capture.files.iter().map(|file| file.as_path()).collect(),
            packets: capture.packets,
            missed: capture.missed,
            failure: capture.failure.as_deref(),
        }
    }
}

impl Spread {
    /// Percentiles in a unit of so many nanoseconds.
    fn of(percentiles: &Percentiles<Duration>, unit: f64) -> Spread {
        let Percentiles { count, p50, p90, p99, max } = *percentiles;
        let [p50, p90, p99, max] = [p50, p90, p99, max].map(|span| span.as_nanos() as f64 / unit);
        Spread { count, p50, p90, p99, max }
    }
}
