//! Runs of one scenario as a page: how the first went, and what all came to.

use super::{Grid, Page, Section, study};
use crate::rows::Header;
use crate::runs::{links, repeated_table, subflows, transfers};
use anabranch_lab::stats::Estimate;
use anabranch_lab::timeline::{Copied, SentData, Timeline, Traced};
use anabranch_lab::{Measured, Run};
use anabranch_scenario::Scenario;
use anabranch_scenario::file::MeasureName;
use anabranch_sim::{Outcome, Sample};
use anabranch_study::figure::{Axis, Figure, Mark, Point, Scale, Series, SeriesOrigin};
use anabranch_study::study::SystemInfo;
use anabranch_units::Instant;

impl Page {
    /// Builds the page of a run and its repetitions, made by `command`. Diagrams show `run`, the first of `all`.
    pub fn of_runs(scenario: &Scenario, header: &Header, run: &Run, all: &[Measured], command: &str) -> Page {
        let mut section = Section {
            warnings: unfinished(all),
            facts: facts(header),
            systems: vec![system(header)],
            command: run.command.clone(),
            ..Section::of_scenario(scenario, header)
        };
        section.facts.push(("digest of events".to_owned(), run.measured.events_digest.clone()));
        let late = scenario.late(run.measured.seed);
        if !late.is_zero() {
            let seconds = late.as_secs_f64();
            let what = format!("{seconds:.3} s after the links (run.spread); figures count from there");
            section.facts.push(("hosts begin".to_owned(), what));
        }
        // With the seed where there are several.
        let of_seed = |caption: &str| match all.len() {
            0 | 1 => caption.to_owned(),
            _ => format!("{caption} (seed {})", run.measured.seed),
        };
        section.figures = figures(header, run, all, Instant::ZERO + late, &of_seed);
        section.figures.extend(repetitions(scenario.measure, header, all));
        if all.len() > 1 {
            let table = repeated_table(header, scenario.measure, all);
            section.tables.push(Grid::of(table, "Repetitions".to_owned()));
        }
        section.tables.push(Grid::of(transfers(&run.outcome), of_seed("Transfers")));
        for connection in run.outcome.connections.iter().take(SHOWN) {
            let caption = of_seed(&format!("Subflows of {}", connection.label));
            section.tables.push(Grid::of(subflows(header, connection), caption));
        }
        section.tables.push(Grid::of(links(&run.outcome), of_seed("Links")));
        Page {
            title: format!("{}: a run", header.scenario),
            lead: String::new(),
            version: header.version_with_build(),
            command: command.to_owned(),
            sections: vec![section],
        }
    }
}

impl Section {
    /// Builds a section from a scenario's own description.
    pub(super) fn of_scenario(scenario: &Scenario, header: &Header) -> Section {
        Section {
            name: header.scenario.clone(),
            title: header.scenario.clone(),
            about: header.about.clone().unwrap_or_default(),
            scenario: scenario.text.to_string(),
            ..Section::default()
        }
    }
}

impl Grid {
    /// A table of the terminal under these words.
    pub fn of(table: crate::Table, caption: String) -> Grid {
        let (columns, rows) = table.into_parts();
        let columns = columns.into_iter().map(|(head, align)| super::Column::new(head, align)).collect();
        Grid { caption, columns, rows, ..Grid::default() }
    }
}

pub(super) fn facts(header: &Header) -> Vec<(String, String)> {
    let seeds: Vec<u64> = (0..header.repeat as u64).map(|n| header.seed.wrapping_add(n)).collect();
    vec![
        ("scenario".to_owned(), header.scenario.clone()),
        ("digest (SHA-256)".to_owned(), header.digest.clone()),
        ("seeds".to_owned(), study::seeds(&seeds)),
        ("profile".to_owned(), header.policies.profile.clone()),
        ("Anabranch".to_owned(), header.version_with_build()),
    ]
}

/// Policies of the sender, and those that differ at the receiver or change later.
fn system(header: &Header) -> SystemInfo {
    let seams = header.policies.seams();
    let mut policies: Vec<(String, String)> =
        seams.iter().map(|(seam, policy)| ((*seam).to_owned(), policy.to_string())).collect();
    if let Some(receiver) = &header.receiver_policies {
        let differ = receiver.seams().into_iter().filter(|seam| !seams.contains(seam));
        policies.extend(differ.map(|(seam, policy)| (format!("{seam} of the receiver"), policy.to_string())));
    }
    for switched in &header.switched {
        let what = format!("{} from {} s on, {}", switched.policy, switched.at_s, switched.host);
        policies.push((format!("{}, later", switched.seam), what));
    }
    SystemInfo { name: header.policies.scheduler.name.clone(), set: header.sets.clone(), policies, unavailable: None }
}

fn unfinished(all: &[Measured]) -> Vec<String> {
    let count = all.iter().filter(|run| !run.finished).count();
    let text = format!("In {count} of {} runs not all transfers completed.", all.len());
    if count > 0 { vec![text] } else { Vec::new() }
}

/// `begin`: when the hosts begin; time counts from there, as in the scenario.
fn figures(
    header: &Header,
    run: &Run,
    all: &[Measured],
    begin: Instant,
    caption: &dyn Fn(&str) -> String,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some(timeline) = &run.timeline {
        figures.extend(sequence(header, timeline, begin, &caption("Time and sequence of the data")));
    }
    figures.extend(over_time(header, &run.outcome, begin, caption));
    if let Some(timeline) = &run.timeline {
        figures.extend(held(timeline, begin, &caption("Bytes that wait for missing data")));
    }
    figures.push(waiting(all.iter().map(|run| (run.seed.to_string(), vec![run])), "seed"));
    figures
}

/// The measure over the repetitions: mean with interval, each of them, and their distribution.
fn repetitions(measure: MeasureName, header: &Header, all: &[Measured]) -> Vec<Figure> {
    let values: Vec<f64> = all.iter().map(|run| run.value(measure)).filter(|it| it.is_finite()).collect();
    let censored = all.iter().filter(|run| run.is_censored(measure)).count();
    let Some(it) = Estimate::of(&values).filter(|it| it.n > 1) else { return Vec::new() };
    // With lower bounds among them the mean is one, too.
    let end = |sign: f64| it.half.filter(|_| censored == 0).map(|half| it.mean + sign * half);
    let name = header.policies.scheduler.name.clone();
    let point = Point {
        category: Some(name),
        y: Some(it.mean),
        low: end(-1.0),
        high: end(1.0),
        n: Some(it.n),
        unfinished: censored,
        values,
        ..Point::default()
    };
    let unit = if measure == MeasureName::Goodput { "bit/s" } else { "s" };
    let (x, y) = (names("scheduler"), axis(measure.name(), unit));
    let mut means = figure("repetitions", "Repetitions", Mark::Bar, x, y, vec![series("runs", vec![point])]);
    means.notes.push(match it.is_one_sample() {
        true => format!("All {} repetitions are the same run: one sample, which has no interval.", it.n),
        false => "The dot is the mean with its 95 % interval, strokes are the repetitions.".to_owned(),
    });
    if censored > 0 {
        means.notes.push(format!("△: {censored} runs did not finish and count until they were stopped."));
    }
    let distribution = means.distribution(&[]);
    let distribution = distribution.map(|it| Figure { title: "Distribution of the repetitions".to_owned(), ..it });
    [means].into_iter().chain(distribution).collect()
}

/// An axis with numbers on a linear scale.
pub fn axis(label: &str, unit: &str) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale: Scale::Linear }
}

/// An axis with categories.
pub fn names(label: &str) -> Axis {
    Axis { label: label.to_owned(), unit: String::new(), scale: Scale::Category }
}

/// A figure in one panel, without notes.
pub fn figure(id: &str, title: &str, mark: Mark, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    let (id, title) = (id.to_owned(), title.to_owned());
    Figure { id, title, mark, x, y, panels: None, columns: None, series, first: Vec::new(), notes: Vec::new() }
}

/// A series of our own measurements.
pub fn series(name: impl Into<String>, points: Vec<Point>) -> Series {
    Series { name: name.into(), origin: SeriesOrigin::Measured, points }
}

fn point(x: f64, y: f64) -> Point {
    Point { x: Some(x), y: Some(y), ..Point::default() }
}

/// Seconds from `begin` to `at`.
fn seconds(at: Instant, begin: Instant) -> f64 {
    at.since(begin).as_secs_f64()
}

/// The connection that moved most: with many, one is enough to read.
fn largest(timeline: &Timeline) -> Option<(usize, &Traced)> {
    let bytes = |traced: &Traced| traced.sent.iter().map(|sent| sent.from + sent.length).max().unwrap_or(0);
    // Of equals the first.
    timeline.connections.iter().enumerate().rev().max_by_key(|(_, traced)| bytes(traced))
}

/// Time-sequence figure by path: new data, repetitions, losses, and the data that the sender knew to have arrived.
fn sequence(header: &Header, timeline: &Timeline, begin: Instant, title: &str) -> Option<Figure> {
    let (number, traced) = largest(timeline)?;
    let of = |path: usize, copy: Copied| traced.sent.iter().filter(move |sent| sent.path == path && sent.copy == copy);
    let mut all = Vec::new();
    let mut notes = Vec::new();
    let new = traced.sent.iter().filter(|sent| sent.copy == Copied::New && !sent.lost).count();
    let every = new.div_ceil(POINTS).max(1);
    let mut drawn = |name: String, sent: Vec<&SentData>| {
        if !sent.is_empty() {
            all.push(series(
                name,
                sent.into_iter().map(|sent| point(seconds(sent.at, begin), sent.from as f64)).collect(),
            ));
        }
    };
    for (path, name) in header.paths.iter().enumerate() {
        let arrived = of(path, Copied::New).filter(|sent| !sent.lost);
        drawn(name.clone(), arrived.enumerate().filter(|(n, _)| n % every == 0).map(|(_, sent)| sent).collect());
    }
    // Repetitions and losses are few beside new data: thinned by the same factor most of them would vanish.
    let mut left_out = false;
    for (path, name) in header.paths.iter().enumerate() {
        let again = [(Copied::Retransmitted, "retransmitted"), (Copied::Reinjected, "reinjected")];
        for (copy, word) in again {
            let copies: Vec<&SentData> = of(path, copy).collect();
            left_out |= copies.len() > POINTS;
            let every = copies.len().div_ceil(POINTS).max(1);
            drawn(format!("{name}, {word}"), copies.into_iter().step_by(every).collect());
        }
    }
    let lost: Vec<&SentData> = traced.sent.iter().filter(|sent| sent.lost).collect();
    left_out |= lost.len() > POINTS;
    let thin = lost.len().div_ceil(POINTS).max(1);
    drawn("did not arrive".to_owned(), lost.into_iter().step_by(thin).collect());
    if !traced.acked.is_empty() {
        let thin = traced.acked.len().div_ceil(POINTS).max(1);
        let points =
            traced.acked.iter().step_by(thin).map(|(at, byte)| point(seconds(*at, begin), *byte as f64)).collect();
        all.push(series("DATA_ACK at the sender", points));
    }
    if every > 1 {
        let rest = if left_out { "." } else { "; everything sent again and everything lost is drawn." };
        notes.push(format!("Each {every}th segment of new data is drawn{rest}"));
    }
    if timeline.connections.len() > 1 {
        let all = timeline.connections.len();
        notes.push(format!("Connection {} of {all}, the one that moved most.", number + 1));
    }
    notes.push(
        "A point is a segment when it was sent: its first byte, counted from the first of the connection.".to_owned(),
    );
    let (x, y) = (axis("time", "s"), axis("data sequence", "B"));
    Some(Figure { notes, ..figure("sequence", title, Mark::Point, x, y, all) })
}

/// Congestion windows, queues and the out-of-order queue.
fn over_time(header: &Header, outcome: &Outcome, begin: Instant, caption: &dyn Fn(&str) -> String) -> Vec<Figure> {
    // Before the hosts begin and after the last transfer there is silence.
    let within = |sample: &&Sample| sample.at >= begin && sample.at <= outcome.end;
    let samples: Vec<&Sample> = outcome.samples.iter().filter(within).collect();
    if samples.len() < 2 {
        return Vec::new();
    }
    let thin = samples.len().div_ceil(STEPS).max(1);
    let line = |name: &str, value: &dyn Fn(&Sample) -> u64| {
        let most = |span: &[&Sample]| span.iter().map(|sample| value(sample)).max().unwrap_or(0) as f64;
        let points = samples.chunks(thin).map(|span| point(seconds(span[0].at, begin), most(span))).collect();
        series(name, points)
    };
    let notes = match thin {
        1 => Vec::new(),
        _ => {
            let span = seconds(samples[thin].at, samples[0].at);
            vec![format!("The largest value in each {:.0} ms.", span * 1e3)]
        }
    };
    let by_path = |value: fn(&anabranch_sim::PathSample) -> u64| -> Vec<Series> {
        let paths = header.paths.iter().enumerate();
        paths.map(|(path, name)| line(name, &|sample| value(&sample.paths[path]))).collect()
    };
    let time = || axis("time", "s");
    let figures = [
        ("cwnd", "Congestion windows", axis("cwnd", "B"), by_path(|path| path.cwnd)),
        ("queue", "Queues in front of the links", axis("queue", "packets"), by_path(|path| path.queued)),
        (
            "ofo",
            "Out-of-order queue",
            axis("out of order", "segments"),
            vec![line("at the data level", &|sample| sample.ofo_segments)],
        ),
    ];
    let figures = figures.map(|(id, title, y, all)| Figure {
        notes: notes.clone(),
        ..figure(id, &caption(title), Mark::Step, time(), y, all)
    });
    figures.into()
}

/// Bytes held at the receiver behind missing data, over time.
fn held(timeline: &Timeline, begin: Instant, title: &str) -> Option<Figure> {
    let (_, traced) = largest(timeline)?;
    let thin = traced.held.len().div_ceil(STEPS).max(1);
    let span = |span: &[(Instant, u64)]| {
        let most = span.iter().map(|(_, held)| *held).max().unwrap_or(0);
        point(seconds(span[0].0, begin), most as f64)
    };
    let points: Vec<Point> = traced.held.chunks(thin).map(span).collect();
    let note = "Data that came before data in front of it, on whichever subflow that was late or lost.";
    let (x, y) = (axis("time", "s"), axis("waiting", "B"));
    let all = vec![series("at the receiver", points)];
    (!traced.held.is_empty())
        .then(|| Figure { notes: vec![note.to_owned()], ..figure("waiting-data", title, Mark::Step, x, y, all) })
}

/// Waiting time by cause: a bar for each name, means over its runs.
pub(super) fn waiting<'a>(all: impl Iterator<Item = (String, Vec<&'a Measured>)>, label: &str) -> Figure {
    type Cause = (&'static str, fn(&Measured) -> f64);
    const CAUSES: [Cause; 4] = [
        ("full congestion windows", |run| run.counted.seconds("blocked_cwnd_s")),
        ("receive window", |run| run.counted.seconds("blocked_window_s")),
        ("scheduler", |run| run.counted.seconds("blocked_scheduler_s")),
        ("application", |run| run.counted.seconds("blocked_application_s")),
    ];
    let mut stacks = CAUSES.map(|(name, _)| series(name, Vec::new()));
    for (name, runs) in all {
        let n = runs.len();
        let parts = CAUSES.map(|(_, of)| runs.iter().map(|run| of(run)).sum::<f64>() / n.max(1) as f64);
        stack(&mut stacks, &name, &parts, n);
    }
    let mut drawn =
        figure("blocked", "What the sender waited for", Mark::Span, axis("time", "s"), names(label), stacks.into());
    drawn.notes.push(
        "Time in which data or room was missing: all connections of a run together, mean over its repetitions."
            .to_owned(),
    );
    drawn
}

/// Adds a bar made of these parts, one to each of the series, which are of [`Mark::Span`]. It is about `n` runs.
pub fn stack(stacks: &mut [Series], name: &str, parts: &[f64], n: usize) {
    let mut begin = 0.0;
    for (series, part) in stacks.iter_mut().zip(parts) {
        let end = begin + part;
        series.points.push(Point {
            x: Some(begin),
            x_end: Some(end),
            category: Some(name.to_owned()),
            n: (n > 1).then_some(n),
            ..Point::default()
        });
        begin = end;
    }
}

/// Most points of one kind in a time-sequence diagram.
const POINTS: usize = 4000;
/// Most points of a line over time.
const STEPS: usize = 600;
/// Most connections whose subflows are shown.
const SHOWN: usize = 3;
