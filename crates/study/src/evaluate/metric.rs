//! Metrics of evaluations: numbers of the flows of a run.

use super::file::Of;
use anabranch_lab::{Delay, Flows, Party, PhaseChange};
use anabranch_units::suggest;

/// Metric of the flows of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    kind: &'static Kind,
    argument: Argument,
}

/// Arguments of a metric.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Argument {
    /// Share or seconds.
    pub number: Option<f64>,
    /// Phase that a change leaves.
    pub from: Option<String>,
    /// Phase that a change enters.
    pub to: Option<String>,
    /// Variable of the model.
    pub variable: Option<String>,
    /// Variable that the model must have.
    pub if_variable: Option<String>,
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
    of: fn(&[&Party], &Flows, &Context, &Argument) -> Option<f64>,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

static KINDS: [Kind; 22] = [
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
    kind("transitions", "", true, "changes of phase", |_, flows, context, argument| {
        let (from, to) = (context.from_s, context.from_s + flows.span_s);
        Some(changes(flows, argument)?.iter().filter(|change| (from..to).contains(&change.at_s)).count() as f64)
    }),
    kind("first-transition", "s", false, "time from the event to a change of phase", |_, flows, context, argument| {
        let changes = changes(flows, argument)?;
        let first = changes.iter().map(|change| change.at_s).find(|at| *at >= context.after_s);
        Some(first.unwrap_or(context.stop_s) - context.after_s)
    }),
    kind("longest-stay", "s", false, "longest time in a phase", |_, flows, context, argument| {
        stays(flows, context, argument)?.into_iter().max_by(f64::total_cmp)
    }),
    kind("variable", "", true, "variable of the model at the first change of phase", variable),
    kind(
        "variable-rate",
        "%",
        true,
        "variable at the first change of phase, of the bottleneck's payload",
        |_, flows, context, argument| {
            let value = variable(&[], flows, context, argument)?;
            Some(800.0 * value / (context.capacity * PAYLOAD_SHARE))
        },
    ),
    kind("least-window", "packets", true, "least congestion window", |_, flows, context, _| {
        let place = |at: f64| (at / flows.bin_s) as usize;
        let end = place(context.from_s + flows.span_s).min(flows.windows.len());
        let windows = flows.windows.get(place(context.from_s)..end)?;
        windows.iter().min().map(|bytes| *bytes as f64 / SEGMENT)
    }),
];

const fn kind(
    name: &'static str,
    unit: &'static str,
    more: bool,
    about: &'static str,
    of: fn(&[&Party], &Flows, &Context, &Argument) -> Option<f64>,
) -> Kind {
    Kind { name, unit, about, more, of }
}

impl Metric {
    /// Finds the metric of that name.
    ///
    /// # Errors
    ///
    /// Advice, if there is none.
    pub fn named(name: &str, argument: Argument) -> Result<Metric, String> {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| suggest(name, KINDS.iter().map(|kind| kind.name)))?;
        let number = ["regain", "standing"].contains(&name);
        let phases = ["transitions", "first-transition", "longest-stay", "variable", "variable-rate"].contains(&name);
        let variable = name.starts_with("variable");
        let Argument { number: given, from, to, variable: named, if_variable: _ } = &argument;
        if given.is_some() != number || named.is_some() != variable || (!phases && (from.is_some() || to.is_some())) {
            let takes = match (number, variable, phases) {
                (true, ..) => "an `argument`, a share of the rate or a number of seconds",
                (_, true, _) => "a `variable`, and `from` and `to`",
                (.., true) => "`from` and `to`",
                _ => "no argument",
            };
            return Err(format!("accepted: `{name}` with {takes}"));
        }
        Ok(Metric { kind, argument })
    }

    /// Returns true if it may be bounded from either side: a number of a model is neither good nor bad by itself.
    pub fn has_two_sides(&self) -> bool {
        self.kind.name.starts_with("variable") || ["transitions", "longest-stay"].contains(&self.kind.name)
    }

    /// Returns true if it is about phases and windows of a control.
    pub fn looks_closely(&self) -> bool {
        self.kind.name.starts_with("variable")
            || ["transitions", "first-transition", "longest-stay", "least-window"].contains(&self.kind.name)
    }

    /// Returns the number of these workloads in this run; `None` if the run has none.
    pub fn of(&self, flows: &Flows, of: Of, context: &Context) -> Option<f64> {
        let own = || flows.parties.iter().filter(|party| !party.competing);
        let parties: Vec<&Party> = match of {
            Of::Own => own().collect(),
            Of::Rival => flows.parties.iter().filter(|party| party.competing).collect(),
            Of::All => flows.parties.iter().collect(),
            Of::First => own().take(1).collect(),
            Of::Last => own().next_back().into_iter().collect(),
        };
        (self.kind.of)(&parties, flows, context, &self.argument).filter(|value| value.is_finite())
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
    pub fn about(&self) -> String {
        let Argument { from, to, variable, .. } = &self.argument;
        let parts = [("from", from), ("to", to), ("variable", variable)];
        let parts = parts.into_iter().filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
        let parts: Vec<String> = parts.collect();
        match parts.is_empty() {
            true => self.kind.about.to_owned(),
            false => format!("{} ({})", self.kind.about, parts.join(", ")),
        }
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

/// Payload of a full segment with timestamps \[bytes\].
const SEGMENT: f64 = 1448.0;
/// Part of a link's rate that is payload.
const PAYLOAD_SHARE: f64 = SEGMENT / 1500.0;

/// Returns the changes of phase that are meant; `None` for controls that tell no phases, or whose model has no such
/// variable.
fn changes<'a>(flows: &'a Flows, argument: &Argument) -> Option<Vec<&'a PhaseChange>> {
    let first = flows.phases.first()?;
    let needed = [&argument.variable, &argument.if_variable].into_iter().flatten();
    if needed.into_iter().any(|name| !first.variables.contains_key(name)) {
        return None;
    }
    // A change is one of the same flow.
    let is_meant = |(place, change): &(usize, &PhaseChange)| {
        let before = flows.phases[..*place].iter().rev().find(|it| it.workload == change.workload);
        let from = argument.from.as_ref().is_none_or(|from| before.is_some_and(|it| it.phase == *from));
        from && before.is_some() && argument.to.as_ref().is_none_or(|to| change.phase == *to)
    };
    Some(flows.phases.iter().enumerate().filter(is_meant).map(|(_, change)| change).collect())
}

/// Returns the times spent in the phase `from` that end within the span, or last until its end.
fn stays(flows: &Flows, context: &Context, argument: &Argument) -> Option<Vec<f64>> {
    changes(flows, argument)?;
    let (begin, end) = (context.from_s, context.from_s + flows.span_s);
    let mut stays = vec![0.0];
    for (place, change) in flows.phases.iter().enumerate().filter(|(_, it)| Some(&it.phase) == argument.from.as_ref()) {
        let next = flows.phases[place + 1..].iter().find(|it| it.workload == change.workload);
        let until = next.map_or(end, |next| next.at_s).min(end);
        if until >= begin {
            stays.push((until - change.at_s).max(0.0));
        }
    }
    Some(stays)
}

fn variable(_: &[&Party], flows: &Flows, context: &Context, argument: &Argument) -> Option<f64> {
    let changes = changes(flows, argument)?;
    let first = changes.iter().find(|change| change.at_s >= context.after_s)?;
    *first.variables.get(argument.variable.as_ref()?)?
}

fn regain(parties: &[&Party], flows: &Flows, context: &Context, argument: &Argument) -> Option<f64> {
    let share = argument.number?;
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

fn standing(parties: &[&Party], flows: &Flows, context: &Context, argument: &Argument) -> Option<f64> {
    let seconds = argument.number?;
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
        let (phases, windows, faults, events_digest) = (Vec::new(), Vec::new(), Vec::new(), String::new());
        Flows { seed: 1, finished: true, bin_s: 0.5, span_s: 10.0, parties, phases, windows, events_digest, faults }
    }

    fn number(name: &str, argument: Option<f64>, of: Of, flows: &Flows) -> Option<f64> {
        Metric::named(name, Argument { number: argument, ..Argument::default() }).unwrap().of(flows, of, &CONTEXT)
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

    /// Startup until 1 s, drain until 1.5 s, then probing until the end of the span at 10 s.
    #[test]
    fn phases_are_counted_timed_and_read() {
        let mut flows = flows(vec![Party::default()]);
        for (at_s, phase, rate) in [(0.1, "startup", 1e5), (1.0, "drain", 9e5), (1.5, "probe", 1e6)] {
            let variables = [("max-bw".to_owned(), Some(rate))].into();
            flows.phases.push(PhaseChange { at_s, workload: 0, phase: phase.to_owned(), variables });
        }
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let context = Context { after_s: 0.0, ..CONTEXT };
        let number = |name: &str, from: &str, to: &str, variable: &str| {
            let (from, to, variable) = (text(from), text(to), text(variable));
            let argument = Argument { number: None, from, to, variable, if_variable: None };
            Metric::named(name, argument).unwrap().of(&flows, Of::Own, &context)
        };
        assert_eq!(number("transitions", "startup", "drain", ""), Some(1.0));
        assert_eq!(number("transitions", "drain", "startup", ""), Some(0.0));
        assert_eq!(number("first-transition", "drain", "", ""), Some(1.5));
        assert_eq!(number("first-transition", "probe", "", ""), Some(20.0), "never");
        assert_eq!(number("longest-stay", "probe", "", ""), Some(8.5));
        assert_eq!(number("variable", "startup", "drain", "max-bw"), Some(9e5));
        assert_eq!(number("variable", "startup", "drain", "bw-shortterm"), None, "not of this model");
        let share = number("variable-rate", "startup", "drain", "max-bw").unwrap();
        assert!((share - 93.2).abs() < 0.1, "7.2 of 8 Mbit/s, of which 1448 in 1500 are payload: {share}");
    }

    #[test]
    fn a_name_that_is_none_gets_advice() {
        let none = Argument::default;
        assert!(Metric::named("godput", none()).unwrap_err().contains("goodput"));
        let number = Argument { number: Some(1.0), ..none() };
        assert!(Metric::named("goodput", number).is_err() && Metric::named("regain", none()).is_err());
        assert!(Metric::named("variable", none()).is_err() && Metric::named("transitions", none()).is_ok());
    }
}
