//! Options of an emulator.

use super::Witness;
use anabranch_units::Duration;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Options of an emulator. The defaults suit most uses.
#[derive(Clone, Debug)]
pub struct Options {
    /// The thread sleeps until so long before a packet is due and then waits actively: a sleeping thread wakes up late.
    /// Less where the thread would hardly sleep at all.
    pub spin: Duration,
    /// Ask for SCHED_FIFO, and for processors that do not go to sleep. Where that is refused, the emulator runs
    /// without, and says so of the former.
    pub real_time: bool,
    /// The specification's changes wait for [`Handle::begin`](super::Handle::begin), from where their times then count.
    pub hold_changes: bool,
    /// Take the carrier off the client's interface while its path is down, where the change says so (`notify`).
    pub show_carrier: bool,
    /// Limits of a valid run.
    pub bounds: Bounds,
    /// Record every packet at both ends of each path.
    pub capture: Option<CaptureOptions>,
    /// Observer of every packet at both ends of each path.
    pub witness: Option<Arc<Mutex<dyn Witness>>>,
}

/// Destination and headers of a capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The directory, made if it is not there. It gets `client.pcapng` and `server.pcapng`.
    pub directory: PathBuf,
    /// Program that made it, with version: for the files' headers.
    pub application: String,
    /// Origin of the packets: for the files' headers.
    pub comment: String,
}

/// Limits of a valid run; exceeding any makes it invalid.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Limit of the median lateness.
    pub lateness_p50: Duration,
    /// Limit of its 90th percentile.
    pub lateness_p90: Duration,
    /// Limit of its 99th percentile.
    pub lateness_p99: Duration,
    /// Packets dropped by an interface's transmit queue, on each path and way.
    pub queue_drops: u64,
    /// Packets that a device had no room for, or refused, on each path and way.
    pub undelivered: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            spin: Duration::from_micros(100),
            real_time: true,
            hold_changes: false,
            show_carrier: true,
            bounds: Bounds::default(),
            capture: None,
            witness: None,
        }
    }
}

impl Default for Bounds {
    /// Lateness that delays of milliseconds do not show, and nothing lost behind the scenario's back. Hosts send a few
    /// packets that an interface just coming up refuses.
    fn default() -> Self {
        Bounds {
            lateness_p50: Duration::from_micros(200),
            lateness_p90: Duration::from_micros(1000),
            lateness_p99: Duration::from_millis(5),
            queue_drops: 0,
            undelivered: 10,
        }
    }
}
