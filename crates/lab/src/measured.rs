//! Measurements of one run: the numbers in a row of results.
//!
//! Transfers of competing TCP do not count. `ofo_count` and `ofo_peak` are measured at the receiver: data segments
//! above the next expected DSN on arrival, and the maximum of fragments held at once. The RTO rate is timeouts over
//! data segments sent, all subflows together (LATE's definition).

use crate::counted::Counted;
use anabranch_engine::SubflowStats;
use anabranch_engine::statistics::Tables;
use anabranch_net::{FlowOutcome, Waits};
use anabranch_paths::{LinkOutcome, MiddleboxOutcome};
use anabranch_scenario::file::MeasureName;
use anabranch_sim::{ConnectionOutcome, Decided, Outcome, PageOutcome, Spec, Transfer, Workload};
use anabranch_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Measurements of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// Seed of the run.
    pub seed: u64,
    /// True if all transfers completed.
    pub finished: bool,
    /// Number of transfers that did not complete.
    pub unfinished: usize,
    /// Mean time from the opening of a file or burst to its last byte \[s\]; an unfinished one counts until the run
    /// stopped. `None` without files and bursts.
    pub completion_s: Option<f64>,
    /// Standard deviation of those times \[s\]; `None` if there are fewer than two.
    pub completion_sd_s: Option<f64>,
    /// Median of those times \[s\]: the least that half of the transfers do not exceed. `None` without files and
    /// bursts.
    pub completion_p50_s: Option<f64>,
    /// Percentile 90 of those times \[s\].
    pub completion_p90_s: Option<f64>,
    /// Percentile 95 of those times \[s\].
    pub completion_p95_s: Option<f64>,
    /// Percentile 99 of those times \[s\].
    pub completion_p99_s: Option<f64>,
    /// Percentile 99.9 of those times \[s\].
    pub completion_p999_s: Option<f64>,
    /// Mean time from the first request of a page until all of it has arrived and is processed \[s\]; an unfinished one
    /// counts until the run stopped. `None` without pages.
    pub page_load_s: Option<f64>,
    /// Mean time from the request of an object of a page, or of an interactive session, to its last byte \[s\].
    pub object_download_s: Option<f64>,
    /// Payload over the time in which at least one transfer was under way \[bit/s\]; null in JSON if one did not
    /// complete, unless goodput is what ranks.
    #[schemars(with = "Option<f64>")]
    pub goodput_bps: f64,
    /// Mean over files, bursts and objects of the goodput of each \[bit/s\]; without any, `goodput_bps`.
    #[schemars(with = "Option<f64>")]
    pub mean_goodput_bps: f64,
    /// Share of the bytes that were first sent on each path.
    pub shares: Vec<f64>,
    /// Bytes that were first sent on each path.
    pub path_bytes: Vec<u64>,
    /// Data segments sent on each path, repeated ones included.
    pub path_segments: Vec<u64>,
    /// Segments held out of order, averaged over the time in which a transfer was under way.
    pub ofo_mean: f64,
    /// Mean time that an out-of-order segment was held \[s\].
    pub ofo_wait_s: f64,
    /// Statistics of the engine.
    #[serde(flatten)]
    pub counted: Counted,
    /// Number of connections that fell back to plain TCP.
    pub fallbacks: u64,
    /// Bytes that an application read otherwise than they were written: altered by a middlebox and not detected.
    pub altered_bytes: u64,
    /// Counts of each middlebox.
    pub middleboxes: Vec<MiddleboxCounts>,
    /// Queues of links that packets came to, in the order of paths, then of shared links; 64 at most.
    pub links: Vec<LinkMeasured>,
    /// Measurements of the spans in `[run] windows`.
    pub windows: Vec<WindowMeasured>,
    /// Mean of the bytes in receive buffers, out of order or unread, over the MSS, from the samples of `[run] sample`
    /// while a transfer was under way.
    pub buffer_mean_segments: Option<f64>,
    /// Standard deviation of the same.
    pub buffer_sd_segments: Option<f64>,
    /// Longest span after the first failure of a link in which no subflow of another path received data \[s\], in steps
    /// of `[run] sample`: without a standstill it is one step.
    pub suspension_s: Option<f64>,
    /// Paths of first transmissions in order, with a `|` where the sender waited for an ACK: `6 P1, 4 P2 | 5 P1`. Only
    /// with `[run] decisions`.
    pub decisions: Option<String>,
    /// Series over time; only with `[run] sample`.
    pub samples: Option<Samples>,
    /// Digest of all events.
    pub events_digest: String,
}

/// Measurements of a span of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WindowMeasured {
    /// Beginning of the span \[s\], in the time of the scenario.
    pub from_s: f64,
    /// End of the span \[s\].
    pub to_s: f64,
    /// Payload that receiving applications read in it \[bit/s\].
    pub goodput_bps: f64,
    /// Payload received in order on the subflows of each path \[bit/s\], copies of data from other paths included.
    pub path_bps: Vec<f64>,
}

/// Series over time: one value for each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Samples {
    /// Times of the samples \[s\], in the time of the scenario.
    pub at_s: Vec<f64>,
    /// Bytes acknowledged at the data level.
    pub data_acked: Vec<u64>,
    /// Number of data segments held out of order.
    pub ofo_segments: Vec<u64>,
    /// Bytes in receive buffers, out of order or unread.
    pub buffer_bytes: Vec<u64>,
    /// Series of each path, in the order of paths.
    pub paths: Vec<PathSamples>,
}

/// Series of one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PathSamples {
    /// Payload bytes received in order on its subflows since the beginning of the run.
    pub received: Vec<u64>,
    /// Sum of the congestion windows of its subflows in bytes.
    pub cwnd: Vec<u64>,
    /// Number of packets queued in the direction of the data.
    pub queue: Vec<u64>,
}

/// Counts of a middlebox, in segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MiddleboxCounts {
    /// Path and kind of the middlebox.
    pub name: String,
    /// Segments that were forwarded altered.
    pub altered: u64,
    /// Segments that were not forwarded.
    pub dropped: u64,
    /// Segments that the middlebox made itself.
    pub made: u64,
}

/// Measurements of the queue in one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkMeasured {
    /// Name of the path or link, and the direction.
    pub name: String,
    /// Measurements of all packets together.
    #[serde(flatten)]
    pub all: QueueMeasured,
    /// Measurements of each flow, in the order of their first packets; 64 at most. Empty unless the link has a
    /// discipline.
    pub flows: Vec<QueueMeasured>,
    /// Measurements of all other flows together; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<QueueMeasured>,
}

/// Outcome of packets in a queue. Percentiles are within 1.6 % or 0.5 µs; the maximum is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueMeasured {
    /// Packets that left the queue.
    pub left: u64,
    /// Packets dropped because the queue was full.
    pub dropped_full: u64,
    /// Packets dropped because the queue discipline wanted fewer.
    pub dropped_early: u64,
    /// Packets marked by the queue discipline (ECN).
    pub marked: u64,
    /// Median of the times from arrival to the beginning of service, of packets that left \[s\].
    pub sojourn_p50_s: f64,
    /// Percentile 95 of those times \[s\].
    pub sojourn_p95_s: f64,
    /// Percentile 99 of those times \[s\].
    pub sojourn_p99_s: f64,
    /// Longest of those times \[s\].
    pub sojourn_max_s: f64,
}

/// Most links whose queues are measured one by one.
const MEASURED_LINKS: usize = 64;

impl LinkMeasured {
    fn of(outcome: &LinkOutcome) -> Self {
        let LinkOutcome { name, stats, queue, .. } = outcome;
        let flow =
            |flow: &FlowOutcome| QueueMeasured::of(flow.waits, [flow.dropped_full, flow.dropped_early, flow.marked]);
        LinkMeasured {
            name: name.clone(),
            all: QueueMeasured::of(queue.waits, [stats.dropped.queue, stats.dropped.early, stats.marked]),
            flows: queue.flows.iter().map(flow).collect(),
            others: queue.others.as_ref().map(flow),
        }
    }
}

impl QueueMeasured {
    fn of(waits: Waits, [dropped_full, dropped_early, marked]: [u64; 3]) -> Self {
        let Waits { packets: left, p50, p95, p99, max } = waits;
        QueueMeasured {
            left,
            dropped_full,
            dropped_early,
            marked,
            sojourn_p50_s: p50.as_secs_f64(),
            sojourn_p95_s: p95.as_secs_f64(),
            sojourn_p99_s: p99.as_secs_f64(),
            sojourn_max_s: max.as_secs_f64(),
        }
    }
}

impl MiddleboxCounts {
    fn of(outcome: &MiddleboxOutcome) -> Self {
        let MiddleboxOutcome { name, altered, dropped, made } = outcome;
        MiddleboxCounts { name: name.clone(), altered: *altered, dropped: *dropped, made: *made }
    }
}

impl Measured {
    /// Computes the measurements of `outcome`, the result of `spec`.
    pub fn of(spec: &Spec, outcome: &Outcome) -> Measured {
        let competing = |workload: usize| matches!(spec.workloads[workload], Workload::Tcp { .. });
        let stop = Instant::ZERO + spec.stop;
        let transfers: Vec<&Transfer> = outcome.transfers.iter().filter(|t| !competing(t.workload)).collect();
        let own: Vec<&ConnectionOutcome> = outcome.connections.iter().filter(|c| !competing(c.workload)).collect();
        let until = |t: &Transfer| t.finished.unwrap_or(stop);
        let sized: Vec<f64> =
            transfers.iter().filter(|t| t.asked.is_some()).map(|t| until(t).since(t.started).as_secs_f64()).collect();
        let mut in_order = sized.clone();
        in_order.sort_by(f64::total_cmp);
        let bytes: u64 = transfers.iter().map(|t| t.bytes).sum();
        let active = union(transfers.iter().map(|t| (t.started, until(t))).collect());
        let goodput_bps = per_second(bytes, active);
        let is_object =
            |t: &&&Transfer| matches!(spec.workloads[t.workload], Workload::Web { .. } | Workload::Interactive { .. });
        let seconds_of = |t: &&Transfer| until(t).since(t.started).as_secs_f64();
        let objects: Vec<f64> = transfers.iter().filter(is_object).map(seconds_of).collect();
        let load = |page: &PageOutcome| page.finished.unwrap_or(stop).since(page.started).as_secs_f64();
        let pages: Vec<f64> = outcome.pages.iter().map(load).collect();
        let rates: Vec<f64> = transfers
            .iter()
            .filter(|t| t.asked.is_some())
            .map(|t| per_second(t.bytes, until(t).since(t.started)))
            .collect();

        let counted = Counted::of(Tables::ENGINE, &own, &outcome.counters);
        let (ofo_count, ofo_held_s) = (counted.count("ofo_count"), counted.seconds("ofo_held_s"));
        let fell_back = |it: &&&ConnectionOutcome| it.sender.as_ref().is_some_and(|stats| stats.fallback.is_some());
        let used = outcome.links.iter().filter(|link| link.stats.offered > 0);
        Measured {
            seed: spec.seed.0,
            finished: outcome.finished,
            unfinished: transfers.iter().filter(|t| t.finished.is_none()).count(),
            completion_s: mean(&sized),
            completion_sd_s: deviation(&sized),
            completion_p50_s: percentile(&in_order, 500),
            completion_p90_s: percentile(&in_order, 900),
            completion_p95_s: percentile(&in_order, 950),
            completion_p99_s: percentile(&in_order, 990),
            completion_p999_s: percentile(&in_order, 999),
            page_load_s: mean(&pages),
            object_download_s: mean(&objects),
            goodput_bps,
            mean_goodput_bps: mean(&rates).unwrap_or(goodput_bps),
            shares: shares(&by_path(spec, &own, |stats| stats.bytes_first_sent)),
            path_bytes: by_path(spec, &own, |stats| stats.bytes_first_sent),
            path_segments: by_path(spec, &own, |stats| stats.segments_sent),
            ofo_mean: match active.is_zero() {
                true => 0.0,
                false => ofo_held_s / active.as_secs_f64(),
            },
            ofo_wait_s: match ofo_count {
                0 => 0.0,
                count => ofo_held_s / count as f64,
            },
            fallbacks: own.iter().filter(fell_back).count() as u64,
            counted,
            altered_bytes: outcome.altered_bytes,
            middleboxes: outcome.middleboxes.iter().map(MiddleboxCounts::of).collect(),
            links: used.take(MEASURED_LINKS).map(LinkMeasured::of).collect(),
            windows: Vec::new(),
            buffer_mean_segments: None,
            buffer_sd_segments: None,
            suspension_s: None,
            decisions: decisions(spec, outcome),
            samples: None,
            events_digest: format!("{:016x}", outcome.digest),
        }
    }

    /// Returns the same without the numbers that an unfinished transfer leaves open: in JSON they are null.
    pub fn without_bounds(&self) -> Measured {
        match self.unfinished {
            0 => self.clone(),
            _ => Measured { goodput_bps: f64::NAN, mean_goodput_bps: f64::NAN, ..self.clone() },
        }
    }

    /// Returns the value that ranks: seconds or bits per second.
    pub fn value(&self, measure: MeasureName) -> f64 {
        match measure {
            MeasureName::CompletionTime => self.completion_s.unwrap_or(f64::NAN),
            MeasureName::Goodput => self.goodput_bps,
            MeasureName::PageLoadTime => self.page_load_s.unwrap_or(f64::NAN),
        }
    }

    /// Returns true if the value that ranks is a lower bound: transfers did not complete, and their times count until
    /// the run stopped.
    pub fn is_censored(&self, measure: MeasureName) -> bool {
        let is_time = matches!(measure, MeasureName::CompletionTime | MeasureName::PageLoadTime);
        is_time && self.has_bounds()
    }

    /// Returns true if the times are lower bounds.
    pub fn has_bounds(&self) -> bool {
        !self.finished || self.unfinished > 0
    }

    /// Returns the timeouts per data segment sent.
    pub fn rto_rate(&self) -> f64 {
        match self.counted.count("segments_sent") {
            0 => 0.0,
            sent => self.counted.count("rtos") as f64 / sent as f64,
        }
    }
}

/// Formats the decisions of the schedulers: the runs of a connection side by side, connections separated by semicolons.
fn decisions(spec: &Spec, outcome: &Outcome) -> Option<String> {
    let one = |runs: &Vec<Decided>| {
        let mut text = String::new();
        for it in runs {
            let between = if text.is_empty() {
                ""
            } else if it.waited {
                " | "
            } else {
                ", "
            };
            text += &format!("{between}{} {}", it.segments, spec.network.paths[it.path].name);
        }
        text
    };
    let all = outcome.decisions.as_ref()?.iter().filter(|runs| !runs.is_empty());
    Some(all.map(one).collect::<Vec<_>>().join("; "))
}

/// Returns the sum of a count of subflows for each path.
fn by_path(spec: &Spec, connections: &[&ConnectionOutcome], count: fn(&SubflowStats) -> u64) -> Vec<u64> {
    let mut counts = vec![0; spec.network.paths.len()];
    for subflow in connections.iter().flat_map(|connection| &connection.subflows) {
        counts[subflow.path] += count(&subflow.stats);
    }
    counts
}

fn shares(bytes: &[u64]) -> Vec<f64> {
    let total = bytes.iter().sum::<u64>().max(1);
    bytes.iter().map(|&n| n as f64 / total as f64).collect()
}

/// Returns bits per second; 0 for a span of zero.
pub(crate) fn per_second(bytes: u64, span: Duration) -> f64 {
    match span.is_zero() {
        true => 0.0,
        false => bytes as f64 * 8.0 / span.as_secs_f64(),
    }
}

/// Returns the mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the standard deviation of a sample (n − 1); `None` with fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the least of the values that so many thousandths of them do not exceed. The values are in order.
fn percentile(in_order: &[f64], thousandths: usize) -> Option<f64> {
    let rank = (in_order.len() * thousandths).div_ceil(1000);
    in_order.get(rank.checked_sub(1)?).copied()
}

/// Returns the time that the spans cover together.
fn union(mut spans: Vec<(Instant, Instant)>) -> Duration {
    spans.sort_unstable();
    let (mut covered, mut until) = (Duration::ZERO, Instant::ZERO);
    for (begin, end) in spans {
        covered += end.since(begin.max(until));
        until = until.max(end);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles of the numbers from 1 to n are known: half of 10 do not exceed 5, and 999 of 1000 do not exceed 999.
    #[test]
    fn percentiles_are_values_that_so_many_do_not_exceed() {
        assert_eq!(percentile(&[], 500), None);
        for (n, expected) in [
            (1, [1.0, 1.0, 1.0, 1.0, 1.0]),
            (10, [5.0, 9.0, 10.0, 10.0, 10.0]),
            (1000, [500.0, 900.0, 950.0, 990.0, 999.0]),
            (2001, [1001.0, 1801.0, 1901.0, 1981.0, 1999.0]),
        ] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let found = [500, 900, 950, 990, 999].map(|thousandths| percentile(&values, thousandths).unwrap_or(0.0));
            assert_eq!(found, expected, "{n}");
        }
    }

    #[test]
    fn time_that_spans_share_counts_once() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(
            union(vec![(at(50), at(60)), (at(0), at(10)), (at(5), at(20)), (at(6), at(7))]),
            Duration::from_millis(30)
        );
        assert_eq!(union(vec![]), Duration::ZERO);
    }
}
