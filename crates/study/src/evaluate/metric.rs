//! Metrics of evaluations: numbers of the flows of a run.

use super::file::Of;
use anabranch_lab::{Delay, Flows, Party};
use anabranch_units::suggest;

/// Metric of the flows of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Metric {
    kind: &'static Kind,
    /// Share or seconds, for metrics that take one.
    argument: f64,
}

/// Conditions that a metric needs beside the run.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Rate of the bottleneck \[bit/s\].
    pub capacity: f64,
    /// Round-trip time without queues \[s\].
    pub rtt_s: f64,
    /// Beginning of the span \[s\].
    pub from_s: f64,
    /// Time of the event \[s\].
    pub after_s: f64,
    /// Time at which the run was stopped \[s\].
    pub stop_s: f64,
}

#[derive(Debug)]
struct Kind {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    /// True if a larger number is better.
    more: bool,
    of: fn(&[&Party], &Flows, &Context, f64) -> Option<f64>,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

static KINDS: [Kind; 16] = [
    kind("goodput", "Mbit/s", true, "payload that arrived", |parties, flows, _, _| {
        Some(bytes(parties) as f64 * 8e-6 / flows.span_s)
    }),
    kind("utilisation", "%", true, "payload that arrived, of the bottleneck's rate", |parties, flows, context, _| {
        Some(bytes(parties) as f64 * 800.0 / flows.span_s / context.capacity)
    }),
    kind("queue-delay", "ms", false, "mean time of its packets in queues", |parties, _, _, _| {
        delay(parties, |delay| delay.mean_s)
    }),
    kind("queue-delay-p95", "ms", false, "time in queues, percentile 95", |parties, _, _, _| {
        delay(parties, |delay| delay.p95_s)
    }),
    kind("queue-delay-p99", "ms", false, "time in queues, percentile 99", |parties, _, _, _| {
        delay(parties, |delay| delay.p99_s)
    }),
    kind("loss", "%", false, "packets lost of those sent", |parties, _, _, _| {
        let sent: u64 = parties.iter().map(|party| party.packets).sum();
        let lost: u64 = parties.iter().map(|party| party.lost).sum();
        (sent > 0).then(|| lost as f64 * 100.0 / sent as f64)
    }),
    kind(
        "completion",
        "s",
        false,
        "mean time of a file, one that did not end counted until the stop",
        |parties, _, context, _| {
            let files = parties.iter().flat_map(|party| &party.files);
            let in_span = files.filter(|(started, _)| *started >= context.from_s);
            let times: Vec<f64> =
                in_span.map(|(started, seconds)| seconds.unwrap_or(context.stop_s - started)).collect();
            (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
        },
    ),
    kind("fairness", "", true, "Jain's index over connections", |parties, _, _, _| {
        let rates = connections(parties)?;
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        Some(if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 })
    }),
    kind("least-share", "%", true, "least of the connections, of an equal share", |parties, _, _, _| {
        let rates = connections(parties)?;
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        Some(if mean > 0.0 { 100.0 * least / mean } else { 0.0 })
    }),
    kind("silence", "s", false, "longest time without new data", |parties, _, _, _| {
        parties.iter().map(|party| party.silence_s).max_by(f64::total_cmp)
    }),
    kind("backoff", "", true, "least factor between successive pauses", |parties, _, context, _| {
        let gaps = gaps(parties, context);
        gaps.windows(2).map(|pair| pair[1] / pair[0]).min_by(f64::total_cmp)
    }),
    kind("transmissions", "packets", false, "packets sent without any feedback", |parties, _, context, _| {
        Some(sends(parties, context).len() as f64)
    }),
    kind("per-rtt", "packets", false, "packets sent per round trip", |parties, flows, context, _| {
        let sent: u64 = parties.iter().map(|party| party.packets).sum();
        Some(sent as f64 * context.rtt_s / flows.span_s)
    }),
    kind("regain", "s", false, "time after the event until a second has the argument's share of the rate", regain),
    kind("standing", "ms", false, "largest of the least times in queues in spans of the argument's seconds", standing),
    kind("unfinished", "files", false, "files that did not arrive", |parties, _, _, _| {
        let files = parties.iter().flat_map(|party| &party.files);
        Some(files.filter(|(_, seconds)| seconds.is_none()).count() as f64)
    }),
];

const fn kind(
    name: &'static str,
    unit: &'static str,
    more: bool,
    about: &'static str,
    of: fn(&[&Party], &Flows, &Context, f64) -> Option<f64>,
) -> Kind {
    Kind { name, unit, about, more, of }
}

impl Metric {
    /// Finds the metric of that name.
    ///
    /// # Errors
    ///
    /// Advice, if there is none.
    pub fn named(name: &str, argument: Option<f64>) -> Result<Metric, String> {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| suggest(name, KINDS.iter().map(|kind| kind.name)))?;
        let takes = ["regain", "standing"].contains(&name);
        match argument {
            Some(argument) if takes => Ok(Metric { kind, argument }),
            None if !takes => Ok(Metric { kind, argument: 0.0 }),
            Some(_) => Err(format!("accepted: `{name}` without an argument")),
            None => Err("accepted: an `argument`, a share of the rate or a number of seconds".to_owned()),
        }
    }

    /// Returns the number of these workloads in this run; `None` if the run has none.
    pub fn of(&self, flows: &Flows, of: Of, context: &Context) -> Option<f64> {
        let own = || flows.parties.iter().filter(|party| !party.competing);
        let parties: Vec<&Party> = match of {
            Of::Own => own().collect(),
            Of::Rival => flows.parties.iter().filter(|party| party.competing).collect(),
            Of::All => flows.parties.iter().collect(),
            Of::First => own().take(1).collect(),
            Of::Last => own().last().into_iter().collect(),
        };
        (self.kind.of)(&parties, flows, context, self.argument).filter(|value| value.is_finite())
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Returns its unit; empty for a number without one.
    pub fn unit(&self) -> &'static str {
        self.kind.unit
    }

    /// Returns its meaning, in a few words.
    pub fn about(&self) -> &'static str {
        self.kind.about
    }

    /// Returns true if a larger number is better.
    pub fn is_better_larger(&self) -> bool {
        self.kind.more
    }
}

fn bytes(parties: &[&Party]) -> u64 {
    parties.iter().map(|party| party.bytes).sum()
}

/// Returns the mean over parties in milliseconds, weighted by their packets.
fn delay(parties: &[&Party], of: fn(&Delay) -> f64) -> Option<f64> {
    let each = || parties.iter().filter_map(|party| Some((of(party.delay.as_ref()?), party.packets.max(1) as f64)));
    let weight: f64 = each().map(|(_, packets)| packets).sum();
    (weight > 0.0).then(|| 1e3 * each().map(|(delay, packets)| delay * packets).sum::<f64>() / weight)
}

fn connections(parties: &[&Party]) -> Option<Vec<f64>> {
    let all: Vec<f64> = parties.iter().flat_map(|party| &party.connections).map(|&bytes| bytes as f64).collect();
    (!all.is_empty()).then_some(all)
}

/// Time after the event in which ACKs of packets before it may still arrive: a second, or two round trips.
fn settled(context: &Context) -> f64 {
    context.after_s + (2.0 * context.rtt_s).max(1.0)
}

fn sends(parties: &[&Party], context: &Context) -> Vec<f64> {
    let all = parties.iter().flat_map(|party| &party.sends_s).copied();
    let mut all: Vec<f64> = all.filter(|at| *at >= settled(context)).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Returns the pauses between transmissions; those within a millisecond of each other are one.
fn gaps(parties: &[&Party], context: &Context) -> Vec<f64> {
    let sends = sends(parties, context);
    sends.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 1e-3).collect()
}

fn regain(parties: &[&Party], flows: &Flows, context: &Context, share: f64) -> Option<f64> {
    let per_second = (1.0 / flows.bin_s).round().max(1.0) as usize;
    let length = parties.iter().map(|party| party.bytes_over_time.len()).max()?;
    let at = |bin: usize| -> u64 { parties.iter().filter_map(|party| party.bytes_over_time.get(bin)).sum() };
    let wanted = share * context.capacity / 8.0 * per_second as f64 * flows.bin_s;
    let first = (context.after_s / flows.bin_s).ceil() as usize;
    let end = (first..length.saturating_sub(per_second - 1))
        .find(|&bin| (bin..bin + per_second).map(at).sum::<u64>() as f64 >= wanted);
    // Never: the time until the run was stopped, as of a transfer that does not complete.
    let end_s = end.map_or(context.stop_s, |bin| bin as f64 * flows.bin_s);
    Some((end_s - context.after_s).max(0.0))
}

fn standing(parties: &[&Party], flows: &Flows, context: &Context, seconds: f64) -> Option<f64> {
    let (from, to) = (context.from_s, context.from_s + flows.span_s);
    let bins = (seconds / flows.bin_s).round().max(1.0) as usize;
    let series: Vec<Option<u64>> = {
        let length = parties.iter().map(|party| party.delay_over_time_us.len()).max()?;
        let at =
            |bin: usize| parties.iter().filter_map(|party| party.delay_over_time_us.get(bin).copied().flatten()).min();
        (0..length).map(at).collect()
    };
    let range = (from / flows.bin_s) as usize..((to / flows.bin_s) as usize).min(series.len());
    let series = series.get(range)?;
    let least = |window: &[Option<u64>]| window.iter().flatten().min().copied();
    series.windows(bins.min(series.len().max(1))).filter_map(least).max().map(|us| us as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CONTEXT: Context = Context { capacity: 8e6, rtt_s: 0.1, from_s: 0.0, after_s: 2.0, stop_s: 20.0 };

    fn flows(parties: Vec<Party>) -> Flows {
        Flows { seed: 1, finished: true, bin_s: 0.5, span_s: 10.0, parties, events_digest: String::new() }
    }

    fn number(name: &str, argument: Option<f64>, of: Of, flows: &Flows) -> Option<f64> {
        Metric::named(name, argument).unwrap().of(flows, of, &CONTEXT)
    }

    #[test]
    fn numbers_are_those_of_the_workloads_that_are_meant() {
        let own = Party { bytes: 1_250_000, packets: 100, lost: 5, connections: vec![1_250_000], ..Party::default() };
        let rival = Party { competing: true, bytes: 3_750_000, connections: vec![3_750_000], ..own.clone() };
        let flows = flows(vec![own, rival]);
        assert_eq!(number("goodput", None, Of::Own, &flows), Some(1.0));
        assert_eq!(number("goodput", None, Of::Rival, &flows), Some(3.0));
        assert_eq!(number("utilisation", None, Of::All, &flows), Some(50.0));
        assert_eq!(number("loss", None, Of::All, &flows), Some(5.0));
        assert_eq!(number("least-share", None, Of::All, &flows), Some(50.0));
        assert_eq!(number("fairness", None, Of::All, &flows), Some(0.8), "(1+3)² / (2 · (1+9))");
        assert_eq!(number("queue-delay", None, Of::All, &flows), None);
    }

    /// Pauses of 1, 2 and 4 s double; a control that repeats every second does not, and neither counts what leaves
    /// within a second of the event.
    #[test]
    fn backoff_is_the_least_growth_of_pauses() {
        let with = |sends: &[f64]| flows(vec![Party { sends_s: sends.to_vec(), ..Party::default() }]);
        let doubling = with(&[2.1, 2.2, 3.5, 4.5, 6.5, 10.5]);
        assert_eq!(number("backoff", None, Of::Own, &doubling), Some(2.0));
        assert_eq!(number("transmissions", None, Of::Own, &doubling), Some(4.0));
        assert_eq!(number("backoff", None, Of::Own, &with(&[3.0, 4.0, 5.0, 6.0])), Some(1.0));
    }

    /// 8 Mbit/s are 500 kB in a bin of 0.5 s; two bins with 90 % of it begin at 4 s.
    #[test]
    fn the_rate_is_regained_when_a_second_has_it() {
        let mut bytes_over_time = vec![500_000; 4];
        bytes_over_time.extend([0, 0, 500_000, 100_000, 480_000, 480_000]);
        let flows = flows(vec![Party { bytes_over_time, ..Party::default() }]);
        assert_eq!(number("regain", Some(0.9), Of::Own, &flows), Some(2.0));
        assert_eq!(number("regain", Some(0.99), Of::Own, &flows), Some(18.0), "never");
    }

    /// The queue is empty at 1 s only: of spans of 2 s, those behind it have at least 3 ms.
    #[test]
    fn a_standing_queue_is_what_never_drains() {
        let delay_over_time_us = [9, 8, 0, 7, 6, 3, 5].map(|ms| Some(ms * 1000)).to_vec();
        let flows = flows(vec![Party { delay_over_time_us, ..Party::default() }]);
        assert_eq!(number("standing", Some(2.0), Of::Own, &flows), Some(3.0));
    }

    #[test]
    fn a_name_that_is_none_gets_advice() {
        assert!(Metric::named("godput", None).unwrap_err().contains("goodput"));
        assert!(Metric::named("goodput", Some(1.0)).is_err() && Metric::named("regain", None).is_err());
    }
}
