//! Measurements of a path, from the counters of its subflows.

use anabranch_units::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A subflow of an MPTCP connection, as sock_diag(7) describes it. Counters are since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subflow {
    /// Number of its socket; no other has had it.
    pub cookie: u64,
    /// Token of the connection.
    pub connection: u32,
    /// Local address.
    pub local: IpAddr,
    /// Data can be sent on it.
    pub established: bool,
    /// Smoothed round trip; zero before the first.
    pub srtt: Duration,
    /// Data acknowledged \[bytes\].
    pub acked: u64,
    /// Data received \[bytes\].
    pub received: u64,
    /// Data sent, repeats included \[bytes\].
    pub sent: u64,
    /// Data sent again \[bytes\].
    pub sent_again: u64,
}

/// Measurements of a path at one look.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Measure {
    /// An established subflow has its address.
    pub up: bool,
    /// Smoothed round trip of the subflows that data were acknowledged on in the last two seconds, weighted by that
    /// data \[ms\].
    pub rtt_ms: Option<f64>,
    /// Bytes sent again in the last five seconds, as a share of those sent; known from 32 kB on.
    pub loss: Option<f64>,
    /// Data acknowledged and received in the last second \[bit/s\].
    pub rate: f64,
    /// The same, of all paths that cost less \[bit/s\].
    pub cheaper_rate: f64,
    /// A path that costs less has an established subflow and is neither a backup nor closed by a rule.
    pub cheaper_up: bool,
    /// Share of the quota that is used.
    pub quota_used: Option<f64>,
}

/// Counts of a path from one look to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    acked: u64,
    received: u64,
    sent: u64,
    sent_again: u64,
}

/// Counters of one path.
#[derive(Debug, Default)]
pub(super) struct Meter {
    looks: VecDeque<(Duration, Counts)>,
    /// Time of the latest round trip, and that \[ms\].
    rtt: Option<(Duration, f64)>,
    pub(super) up: bool,
    /// Data sent and received in the period of the quota, repeats included \[bytes\].
    pub(super) used: u64,
}

/// Counters of all subflows at the last look.
pub(super) type Seen = BTreeMap<u64, Subflow>;

/// Windows of the measurements.
const RTT_FRESH: Duration = Duration::from_secs(2);
const LOSS_OVER: Duration = Duration::from_secs(5);
const RATE_OVER: Duration = Duration::from_secs(1);
/// Fewer bytes say nothing of loss: about 20 segments, of which one is 5 %.
const LOSS_FROM: u64 = 32_000;

impl Meter {
    /// Takes in the subflows of the path. Those that are there at the first look count from then on, later ones from
    /// their beginning.
    pub(super) fn look<'a>(&mut self, now: Duration, subflows: impl Iterator<Item = &'a Subflow>, seen: Option<&Seen>) {
        let (mut all, mut weighted) = (Counts::default(), 0.0);
        self.up = false;
        for subflow in subflows {
            self.up |= subflow.established;
            let Some(seen) = seen else { continue };
            let last = seen.get(&subflow.cookie);
            let since = |field: fn(&Subflow) -> u64| field(subflow).saturating_sub(last.map_or(0, field));
            let acked = since(|it| it.acked);
            if !subflow.srtt.is_zero() {
                weighted += subflow.srtt.as_millis_f64() * acked as f64;
                all.acked += acked;
            }
            all.received += since(|it| it.received);
            all.sent += since(|it| it.sent);
            all.sent_again += since(|it| it.sent_again);
        }
        if all.acked > 0 {
            self.rtt = Some((now, weighted / all.acked as f64));
        }
        self.used += all.sent + all.received;
        self.looks.push_back((now, all));
        while self.looks.front().is_some_and(|(at, _)| now.saturating_sub(*at) > LOSS_OVER) {
            self.looks.pop_front();
        }
    }

    pub(super) fn measure(&self, now: Duration, quota: Option<u64>) -> Measure {
        let over = |span: Duration, field: fn(&Counts) -> u64| -> u64 {
            let recent = self.looks.iter().filter(|(at, _)| now.saturating_sub(*at) < span);
            recent.map(|(_, counts)| field(counts)).sum()
        };
        let sent = over(LOSS_OVER, |it| it.sent);
        let moved = over(RATE_OVER, |it| it.acked + it.received);
        let fresh = |at: Duration| now.saturating_sub(at) <= RTT_FRESH;
        Measure {
            up: self.up,
            rtt_ms: self.rtt.filter(|(at, _)| fresh(*at)).map(|(_, rtt)| rtt),
            loss: (sent >= LOSS_FROM).then(|| over(LOSS_OVER, |it| it.sent_again) as f64 / sent as f64),
            rate: moved as f64 * 8.0 / RATE_OVER.as_secs_f64(),
            cheaper_rate: 0.0,
            cheaper_up: false,
            quota_used: quota.map(|quota| self.used as f64 / quota as f64),
        }
    }
}
