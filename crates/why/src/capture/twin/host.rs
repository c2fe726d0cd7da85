//! The hosts: stack, segments, buffers.

use super::super::picture::{FlowPicture, NEVER, UNKNOWN};
use super::super::stream::Stream;
use super::estimate::{Estimate, bytes, text};
use crate::Confidence;
use anabranch_wire::Flags;

/// Facts that the connection as a whole tells about its hosts.
pub(super) struct HostSeen<'a> {
    pub flows: &'a [FlowPicture],
    /// Side that sends most data.
    pub side: usize,
    pub stream: &'a Stream,
    pub multipath: bool,
    /// True if SYNs for a first subflow raced.
    pub raced: bool,
    /// Share of the time in which the receiver's window was the limit, and the send buffer.
    pub window_limited: f64,
    pub buffer_limited: f64,
    /// Largest window of the connection that the receiver advertised \[B\].
    pub widest: u64,
    pub paths: usize,
}

/// Growth of the window from which on a buffer tunes itself.
const TUNES: f64 = 1.3;
/// Share of the time from which on a limit counts.
const LIMITS: f64 = 0.05;
/// The same for the send buffer, which is easily mistaken for a pause.
const BUFFERS: f64 = 0.2;

impl HostSeen<'_> {
    pub(super) fn estimates(&self) -> Vec<Estimate> {
        let make =
            |key: &str, value: String, confidence, seen: &str| Estimate::new("host", key, value, confidence, seen);
        let mut estimates = Vec::new();
        if !self.multipath {
            estimates.push(make("multipath", "false".to_owned(), Confidence::High, "the connection is plain TCP"));
        }
        match self.raced {
            true => {
                let seen = "SYNs of one connection raced on several paths, as Anabranch does";
                estimates.push(make("profile", text("anabranch"), Confidence::High, seen));
            }
            false => {
                let seen = "not told: no packet names the stack; Linux is the commonest";
                estimates.push(make("profile", text("linux"), Confidence::Low, seen));
                if self.multipath {
                    let seen = "not told: no packet names the scheduler; the only one of the Linux kernel";
                    estimates.push(make("scheduler", text("linux-burst"), Confidence::Low, seen));
                    let seen = "not told: as in the Linux kernel";
                    estimates.push(make("reinjection", text("upstream"), Confidence::Low, seen));
                }
            }
        }
        if self.multipath && self.paths > 1 {
            let seen = "one for each path";
            estimates.push(make("max-subflows", self.paths.to_string(), Confidence::Medium, seen));
        }
        estimates.extend(self.mss());
        estimates.extend(self.receive_buffer());
        estimates.extend(self.send_buffer());
        estimates
    }

    fn mss(&self) -> Option<Estimate> {
        let offered: Vec<u16> = self.flows.iter().flat_map(|flow| flow.facts.iter().filter_map(|it| it.mss)).collect();
        let least = offered.into_iter().min().filter(|mss| *mss >= LEAST_MSS)?;
        Some(Estimate::new("host", "mss", least.to_string(), Confidence::High, "the smaller one of those in the SYNs"))
    }

    /// The buffer behind the windows that the receiver advertised.
    fn receive_buffer(&self) -> Option<Estimate> {
        let known = self.flows.iter().all(|flow| flow.scaled) && self.widest > 0;
        known.then_some(())?;
        let first = self.first_window()?.min(self.widest);
        let limited = self.window_limited >= LIMITS;
        let tunes = self.widest as f64 > TUNES * first as f64;
        let value = match tunes {
            true => format!("{{ initial = {}, max = {} }}", bytes(first), bytes(self.widest)),
            false => bytes(self.widest),
        };
        let (confidence, seen) = match (limited, tunes) {
            (true, false) => (Confidence::High, "the window from first to last, and it was the limit".to_owned()),
            (true, true) => {
                (Confidence::Medium, format!("the window grew from {first} bytes; it was the limit at times"))
            }
            (false, false) => (Confidence::Medium, "the window from first to last".to_owned()),
            (false, true) => {
                (Confidence::Low, format!("the window grew from {first} bytes, and may have grown further"))
            }
        };
        let least = Some(bytes(self.widest));
        let most = (limited && !tunes).then(|| bytes(self.widest + self.widest / 20));
        Some(Estimate::new("host", "receive-buffer", value, confidence, seen).within(least, most))
    }

    /// The first window after the SYN that the receiver of the data advertised.
    fn first_window(&self) -> Option<u64> {
        let packets = self.flows.iter().flat_map(|flow| &flow.packets[1 - self.side]);
        let shakes = packets.filter(|it| !it.is(Flags::SYN) && !it.is(Flags::RST) && it.ack != UNKNOWN);
        shakes.min_by_key(|it| it.sent).map(|it| it.window.max(0).unsigned_abs()).filter(|window| *window > 0)
    }

    /// The send buffer, where it was the limit: the most that was sent and not acknowledged.
    fn send_buffer(&self) -> Option<Estimate> {
        (self.buffer_limited >= BUFFERS).then_some(())?;
        let mut acks: Vec<(u64, i64)> = Vec::new();
        for flow in self.flows {
            let came = flow.packets[1 - self.side].iter().filter(|it| it.arrived != NEVER && it.data_ack != UNKNOWN);
            acks.extend(came.map(|it| (it.arrived, it.data_ack)));
        }
        acks.sort_unstable();
        let (mut next, mut acked, mut most) = (0, self.stream.begin, 0);
        for fresh in &self.stream.fresh {
            while acks.get(next).is_some_and(|(at, _)| *at <= fresh.at) {
                acked = acked.max(acks[next].1);
                next += 1;
            }
            if fresh.full {
                most = most.max(fresh.high - acked);
            }
        }
        let seen = "it was the limit: the most that was sent and not acknowledged";
        let most = u64::try_from(most).ok().filter(|most| *most > 0)?;
        Some(Estimate::new("host", "send-buffer", bytes(most), Confidence::Medium, seen))
    }
}

/// A smaller segment is no offer that a scenario takes.
const LEAST_MSS: u16 = 88;
