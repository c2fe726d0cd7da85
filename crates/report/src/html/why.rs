//! Why transfers took as long as they did, as a page: the sentence, the course of the transfer, limits, what would have
//! helped.

use super::run::{axis, figure, names, series};
use super::trace::{Limits, TraceDrawing};
use super::{Grid, Page, Section};
use crate::{why, why_capture};
use anabranch_scenario::Scenario;
use anabranch_study::figure::{Figure, Mark, Point};
use anabranch_why::{
    Answer, CaptureAnswer, JudgedConnection, JudgedDirection, Measure, PathTime, Trace, Transfer, Tried,
};

impl Page {
    /// A page about captures, made by `command`. `traces` are those of the connection that is judged.
    pub fn of_captures(answer: &CaptureAnswer, traces: &[Trace], command: &str) -> Page {
        let names: Vec<&str> = answer.files.iter().map(|file| file.name.as_str()).collect();
        // A title needs no folders; the facts below have them.
        let short: Vec<&str> = names.iter().map(|name| name.rsplit('/').next().unwrap_or(name)).collect();
        let short = short.join(", ");
        let mut section = Section {
            name: "why".to_owned(),
            title: short.clone(),
            about: answer.sentence.clone(),
            facts: vec![
                ("captures".to_owned(), names.join(", ")),
                ("Anabranch".to_owned(), anabranch_lab::version_with_build()),
            ],
            ..Section::default()
        };
        if let Some(connection) = &answer.connection {
            section.kicker = why_capture::about(connection);
            // A direction with requests only is drawn if there is nothing else.
            let is_judged = |trace: &&Trace| connection.directions.iter().any(|it| it.from == trace.from);
            let drawn = traces.iter().filter(|it| connection.directions.is_empty() || is_judged(it));
            section.traces.extend(drawn.map(|trace| of_capture(connection, trace)));
            for direction in &connection.directions {
                let caption = why_capture::head(connection, direction);
                section.tables.push(Grid::of(why::limits_table(&direction.shares, 1), caption));
                let caption = "Paths, as measured".to_owned();
                section.tables.push(Grid::of(why_capture::measured(connection, direction), caption));
            }
            let unknown = Grid {
                caption: "What this capture does not tell".to_owned(),
                notes: connection.unknown.clone(),
                ..Grid::default()
            };
            section.tables.extend((!connection.unknown.is_empty()).then_some(unknown));
        }
        let troubles = answer.files.iter().flat_map(|file| file.error.iter().chain(&file.notes));
        section.warnings.extend(troubles.cloned());
        made(format!("Why was it slow? {short}"), section, command)
    }

    /// A page about a scenario, made by `command`: its numbers over all repetitions, and the course of the longest
    /// transfer of the first. `trace` is that transfer's.
    pub fn of_why(scenario: &Scenario, answer: &Answer, trace: Option<&Trace>, command: &str) -> Page {
        let mut section = Section {
            name: answer.scenario.clone(),
            title: answer.scenario.clone(),
            about: answer.sentence.clone(),
            scenario: scenario.text.to_string(),
            facts: vec![
                ("scenario".to_owned(), answer.scenario.clone()),
                ("digest (SHA-256)".to_owned(), answer.digest.clone()),
                ("sets".to_owned(), answer.sets.join(", ")),
                ("first seed".to_owned(), answer.seed.to_string()),
                ("repetitions".to_owned(), answer.repeat.to_string()),
                ("Anabranch".to_owned(), anabranch_lab::version_with_build()),
            ],
            ..Section::default()
        };
        section.facts.retain(|(_, fact)| !fact.is_empty());
        if let Some((trace, transfer)) = trace.zip(answer.longest()) {
            let late = scenario.late(answer.seed).as_nanos();
            let limits = of_connection(answer, transfer, late);
            let title = format!("Connection {} of seed {}", transfer.connection, answer.seed);
            let about = format!(
                "The numbers of packets are those of {} that `anabranch run {}{} --seed {} --pcap DIR` writes.",
                trace.files.join(" and "),
                anabranch_scenario::in_shell(&scenario.origin.scenario),
                scenario
                    .origin
                    .sets
                    .iter()
                    .map(|set| format!(" --set {}", anabranch_scenario::in_shell(set)))
                    .collect::<String>(),
                answer.seed,
            );
            section.traces.push(TraceDrawing::of(&title, trace, Some(&limits), &about));
        }
        let caption = "Time of all transfers by limit, for each repetition".to_owned();
        section.tables.push(Grid::of(why::limits_table(&answer.shares, answer.repeat), caption));
        section.figures.extend(changes(answer));
        if !answer.counterfactuals.is_empty() {
            let mut tried =
                Grid::of(why::counterfactuals_table(answer, usize::MAX), "With one thing changed".to_owned());
            let left_out = why::left_out(answer).into_iter();
            tried.notes.extend(left_out.map(|(because, all)| format!("Not tried: {}: {because}.", all.join(", "))));
            let bounds = answer.counterfactuals.iter().any(|tried| tried.at_least);
            tried.notes.extend(bounds.then(|| "≥: the run was ended early, when it had carried so much.".to_owned()));
            section.tables.push(tried);
        }
        made(format!("Why was it slow? {}", answer.scenario), section, command)
    }
}

/// Differences that changes would have made, as dots with intervals, the best first.
fn changes(answer: &Answer) -> Option<Figure> {
    let (scale, unit) = if answer.unit == "s" { (1.0, "s") } else { (1e6, "Mbit/s") };
    let mut tried: Vec<_> = answer.counterfactuals.iter().filter_map(|it| Some((it, it.difference?))).collect();
    let sign = if answer.unit == "s" { 1.0 } else { -1.0 };
    tried.sort_by(|(_, one), (_, other)| (sign * one.mean).total_cmp(&(sign * other.mean)));
    let point = |(tried, it): &(&Tried, Measure)| {
        let end = |sign: f64| it.half.map(|half| (it.mean + sign * half) / scale);
        let (low, high) = (end(-1.0), end(1.0));
        let (category, y) = (Some(tried.what.clone()), Some(it.mean / scale));
        Point { category, y, low, high, n: Some(it.n), unfinished: tried.unfinished_runs, ..Point::default() }
    };
    let points: Vec<Point> = tried.iter().map(point).collect();
    let better = if answer.unit == "s" { "Left of zero is faster" } else { "Right of zero is faster" };
    let label = format!("difference of the {}", answer.measure.replace('-', " "));
    let (x, y, all) = (names(""), axis(&label, unit), vec![series("with one thing changed", points)]);
    let mut drawn = figure("changes", "What each change would have given", Mark::Bar, x, y, all);
    drawn
        .notes
        .push(format!("{better}; whiskers are 95 % intervals over {} seeds, taken seed by seed.", answer.repeat));
    (!tried.is_empty()).then_some(drawn)
}

fn made(title: String, section: Section, command: &str) -> Page {
    Page {
        title,
        lead: String::new(),
        version: anabranch_lab::version_with_build(),
        command: command.to_owned(),
        sections: vec![section],
    }
}

/// The time of a connection by limit: that of a transfer, and of those before and after it.
fn of_connection(answer: &Answer, longest: &Transfer, late: u64) -> Limits {
    let mut taken: Vec<&Transfer> = vec![longest];
    let end = |it: &Transfer| it.from_ns + it.time_ns;
    for it in answer.transfers.iter().filter(|it| it.connection == longest.connection) {
        if taken.iter().all(|other| end(it) <= other.from_ns || it.from_ns >= end(other)) {
            taken.push(it);
        }
    }
    taken.sort_by_key(|it| it.from_ns);
    let of_path = |(path, name): (usize, &String)| PathTime {
        path: name.clone(),
        intervals: taken.iter().filter_map(|it| it.paths.get(path)).flat_map(|it| &it.intervals).copied().collect(),
    };
    Limits {
        begin: anabranch_lab::CAPTURES_BEGIN.as_nanos(),
        from_ns: late,
        connection: taken.iter().flat_map(|it| &it.intervals).copied().collect(),
        paths: answer.paths.iter().enumerate().map(of_path).collect(),
    }
}

/// A direction of a connection of captures.
fn of_capture(connection: &JudgedConnection, trace: &Trace) -> TraceDrawing {
    let judged: Option<&JudgedDirection> = connection.directions.iter().find(|it| it.from == trace.from);
    let limits = judged.map(|direction| Limits {
        begin: connection.begin_unix_ns,
        from_ns: 0,
        connection: direction.intervals.clone(),
        paths: direction.paths.clone(),
    });
    let title = format!("Data from {}", anabranch_inspect::article(&connection.sides[trace.from]));
    let about = match judged {
        Some(_) => "Congestion windows are not on the wire: the dotted lines are estimates from what was in flight.",
        None => {
            "This direction is not judged: it has little data, or packets of one side only were captured. Congestion \
             windows are estimates from what was in flight."
        }
    };
    TraceDrawing::of(&title, trace, limits.as_ref(), about)
}
