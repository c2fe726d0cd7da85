//! Report of an emulator, with a verdict on its validity.

use super::Percentiles;
use super::options::Bounds;
use anabranch_net::LinkStats;
use anabranch_paths::{MiddleboxOutcome, PerDirection};
use anabranch_units::{Bytes, Duration};
use std::fmt;
use std::path::PathBuf;

/// Report of an emulator since its start.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Since the start.
    pub elapsed: Duration,
    /// Each one-way link: those of paths, then shared ones.
    pub links: Vec<LinkReport>,
    /// Each path, in the order of the specification.
    pub paths: Vec<PathReport>,
    /// Counts of the middleboxes, path by path, in the order from the client to the server.
    pub middleboxes: Vec<MiddleboxOutcome>,
    /// Delay between a packet's due time and its delivery to the device.
    pub lateness: Percentiles<Duration>,
    /// Number of packets read from a device at a time, where there were any.
    pub bursts: Percentiles<u64>,
    /// Scheduling of the thread.
    pub scheduling: Scheduling,
    /// Processor time of the emulator's thread.
    pub cpu: Duration,
    /// The capture, once the emulator has stopped, if one was asked for.
    pub capture: Option<CaptureReport>,
    /// Verdict: do the results describe the scenario.
    pub validity: Validity,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// For instance `wlan/down`.
    pub name: String,
    /// Counters of the link.
    pub stats: LinkStats,
    /// Time from a packet's offer to its last bit: waiting and serialisation.
    pub queue_delay: Percentiles<Duration>,
}

/// One path.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// Packets by the way they travel: `up` are those that the client sends.
    pub traffic: PerDirection<Traffic>,
    /// The device at the client and at the server that gave up, and why.
    pub failures: Vec<String>,
}

/// Packets of a path that travel one way.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Packets read from the sender's device.
    pub read: u64,
    /// Their bytes.
    pub read_bytes: Bytes,
    /// Packets read that were not IP; they are not forwarded.
    pub not_ip: u64,
    /// Packets read for the sender's own network, which no router forwards (multicast reports and the like).
    pub link_local: u64,
    /// Reads that failed: packets that came in a form that is on no wire, or an interface that went down.
    pub unreadable: u64,
    /// Packets that the receiver's device has taken.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: Bytes,
    /// Their payload: what TCP and UDP carry, and all of other protocols.
    pub delivered_payload: Bytes,
    /// Time from reading a packet to delivering it, lateness included.
    pub delay: Percentiles<Duration>,
    /// Packets that the receiver's device had no room for.
    pub no_room: u64,
    /// Packets that the receiver's device refused with an error.
    pub refused: u64,
    /// The first such error.
    pub refusal: Option<String>,
    /// Packets damaged by a link that no checksum protects; they were dropped in the receiver's place.
    pub damaged_and_dropped: u64,
    /// Packets that the sender's interface dropped because its transmit queue was full; `None` if it does not tell.
    pub queue_drops: Option<u64>,
    /// Packets that an interface dropped or refused because its cable was out, as the scenario wanted it (`state =
    /// "down"`), and until its host had noticed that it was back in.
    pub unplugged: u64,
}

/// Scheduling of the emulator's thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO: before all ordinary threads.
    RealTime,
    /// As any other thread; real-time scheduling was not requested.
    Ordinary,
    /// As any other thread, because the system refused real-time scheduling.
    Refused(String),
}

/// Summary of the recording.
#[derive(Clone, Debug, Default)]
pub struct CaptureReport {
    /// The files, complete once the emulator has stopped.
    pub files: Vec<PathBuf>,
    /// Packets in them.
    pub packets: u64,
    /// Packets that are missing because the disk did not keep up.
    pub missed: u64,
    /// Error because of which files are missing.
    pub failure: Option<String>,
}

/// Verdict on a run: does it describe its scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The links behaved as specified.
    Valid,
    /// They did not.
    Invalid(Vec<Fault>),
}

/// One reason why a run is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The finding, and the limit that it exceeds.
    pub what: String,
    /// Remedy.
    pub remedy: &'static str,
}

impl Validity {
    /// Returns true if there are no faults.
    pub fn is_valid(&self) -> bool {
        *self == Validity::Valid
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

impl EmulatorReport {
    /// Holds the report to its bounds.
    pub(super) fn judge(&self, bounds: &Bounds) -> Validity {
        let mut faults = Vec::new();
        let late = &self.lateness;
        // A percentile of few values is their largest, which a single interrupt decides.
        for (name, got, bound, needed) in [
            ("median", late.p50, bounds.lateness_p50, 10),
            ("90th percentile", late.p90, bounds.lateness_p90, 100),
            ("99th percentile", late.p99, bounds.lateness_p99, 1000),
        ] {
            if late.count >= needed && got > bound {
                let [got, bound] = [got, bound].map(|late| late.as_nanos() as f64 / 1e6);
                let what = format!("packets were delivered late: {name} {got:.2} ms, at most {bound} ms is accepted");
                faults.push(Fault { what, remedy: LATE });
            }
        }
        for path in &self.paths {
            for (way, sender, receiver, traffic) in
                [("down", "server", "client", &path.traffic.down), ("up", "client", "server", &path.traffic.up)]
            {
                let place = format!("{}/{way}", path.name);
                let mut count = |number: u64, bound: u64, what: &str, remedy| {
                    if number > bound {
                        let what = format!("{place}: {number} packets {what}, at most {bound} accepted");
                        faults.push(Fault { what, remedy });
                    }
                };
                let queue = format!("dropped by the transmit queue of the {sender}'s interface");
                count(traffic.queue_drops.unwrap_or(0), bounds.queue_drops, &queue, QUEUE);
                let unreadable = format!("could not be read from the {sender}'s device");
                count(traffic.unreadable, bounds.undelivered, &unreadable, UNREADABLE);
                let room = format!("found no room in the {receiver}'s interface");
                count(traffic.no_room, bounds.undelivered, &room, ROOM);
                let refused = format!(
                    "refused by the {receiver}'s interface ({})",
                    traffic.refusal.as_deref().unwrap_or("no reason given")
                );
                count(traffic.refused, bounds.undelivered, &refused, REFUSED);
            }
            let failed = |failure: &String| Fault { what: format!("{}: {failure}", path.name), remedy: FAILED };
            faults.extend(path.failures.iter().map(failed));
        }
        if faults.is_empty() { Validity::Valid } else { Validity::Invalid(faults) }
    }
}

const LATE: &str = "run on a quieter machine, allow real-time scheduling (CAP_SYS_NICE), or lower the rates";
const QUEUE: &str = "make that queue longer (`ip link set DEVICE txqueuelen 10000`), or lower what is sent";
const ROOM: &str = "enlarge that device's buffer, or lower the rates";
const REFUSED: &str = "see that the interface is up and its packets are well-formed";
const UNREADABLE: &str = "see that the interface is up and its segmentation offload off";
const FAILED: &str = "the interface must stay until the emulator has stopped";
