//! The page of `kernel watch --report`: a sentence, the course of the connection that moved most, tables of all.

use super::{Target, head, subflows};
use anabranch_kernel::watch::{Cause, ConnectionCourse, ConnectionReport, Course, Report, SubflowCourse};
use anabranch_report::html::{Grid, Page, Section, axis, figure, names, series, stack};
use anabranch_report::{Align, Table, bytes, percent};
use anabranch_study::figure::{Figure, Mark, Point, Series};
use std::cmp::Reverse;

/// Connections whose subflows have tables of their own.
const SHOWN: usize = 3;
/// Rows of the table of connections at most.
const ROWS: usize = 500;

/// Makes the page about a watch, by `command`.
pub(super) fn page(target: &Target, report: &Report, course: &Course, command: &str) -> Page {
    let what = match target {
        Target::All => "all connections".to_owned(),
        Target::Process(process) => format!("process {process}"),
        Target::Group(path) => format!("control group {}", path.display()),
    };
    let mut connections: Vec<&ConnectionReport> = report.connections.iter().collect();
    connections.sort_by_key(|it| Reverse(super::data(it)));
    let courses = course.connections();
    let first = courses.first().copied();
    let mut section = Section {
        name: "watch".to_owned(),
        title: what.clone(),
        about: sentence(report, &courses),
        warnings: warnings(report, course),
        figures: first.map(figures).unwrap_or_default(),
        facts: facts(report, course),
        command: command.to_owned(),
        ..Section::default()
    };
    for connection in connections.iter().take(SHOWN) {
        let caption = |what: &str| format!("{what} of connection {}", connection.connection);
        let course = courses.iter().find(|it| it.connection == connection.connection);
        section.tables.push(Grid::of(carried(connection, course.copied()), caption("Data")));
        let mut choices = Grid::of(subflows(connection, report.seconds), caption("Choices"));
        choices.notes.push(head(connection, report.seconds));
        section.tables.push(choices);
    }
    section.tables.push(all(&connections));
    Page {
        title: format!("Decisions of the kernel's MPTCP: {what}"),
        lead: String::new(),
        version: anabranch_lab::version_with_build(),
        command: command.to_owned(),
        sections: vec![section],
    }
}

/// Says in one sentence where data went, what the scheduler chose, and what kept data waiting.
fn sentence(report: &Report, courses: &[&ConnectionCourse]) -> String {
    let Some(it) = courses.first() else {
        return format!("In {:.1} s no data of such a connection was sent or arrived.", report.seconds);
    };
    let of = match report.connections.len() {
        0 | 1 => String::new(),
        all => format!(" (of {all} the one that moved most)"),
    };
    let names = subflow_names(it);
    let mut text = format!("Connection {}{of}: ", it.connection);
    if it.given() == 0 {
        let carried = shares(it, &names, |it| it.arrived);
        return text + &format!("of {} that arrived, {carried}.", bytes(it.arrived() as f64));
    }
    text += &format!(
        "of {} that were sent, {}; the scheduler ",
        bytes(it.given() as f64),
        shares(it, &names, |it| it.sent)
    );
    text += &choices(it, &names);
    let waits: u64 = it.waits.iter().sum();
    if let Some((cause, count)) = most_frequent(it) {
        let part = if count == waits { String::new() } else { format!("in {} ", percent(count as f64 / waits as f64)) };
        text += &format!("; {waits} of {} times no data left, {part}because {}", it.decisions, because(cause));
    }
    let again: u64 = it.subflows.iter().map(|it| it.again).sum();
    text += &match again {
        0 => "; nothing was sent again on another subflow".to_owned(),
        again => {
            let share = percent(again as f64 / it.given() as f64);
            format!("; {} ({share}) were sent again on another subflow", bytes(again as f64))
        }
    };
    if answers(it) {
        let carried = shares(it, &names, |it| it.arrived);
        text += &format!("; of {} that arrived, {carried}", bytes(it.arrived() as f64));
    }
    text + "."
}

/// Says what the scheduler took.
fn choices(it: &ConnectionCourse, names: &[String]) -> String {
    let taken = |it: &SubflowCourse| it.chosen + it.against;
    let all: u64 = it.subflows.iter().map(taken).sum();
    let against: u64 = it.subflows.iter().map(|it| it.against).sum();
    match it.subflows.iter().zip(names).max_by_key(|(it, _)| taken(it)).filter(|_| all > 0) {
        Some((most, name)) => {
            let rule = match against {
                0 => "never".to_owned(),
                1 => "once".to_owned(),
                many => format!("{many} times"),
            };
            let share = percent(taken(most) as f64 / all as f64);
            format!("took {name} in {share} of {all} choices, {rule} against the rule of Linux")
        }
        None => "was not seen to choose".to_owned(),
    }
}

/// Returns true if data of more than a hundredth of those that were sent arrived: a question and its answer, not an
/// acknowledgment of the application alone.
fn answers(course: &ConnectionCourse) -> bool {
    course.arrived() * 100 > course.given()
}

/// Formats `10.0.0.1 carried 53 % and 10.0.1.1 47 %`.
fn shares(course: &ConnectionCourse, names: &[String], of: fn(&SubflowCourse) -> u64) -> String {
    let all: u64 = course.subflows.iter().map(of).sum();
    let share = |it: &SubflowCourse| percent(of(it) as f64 / all.max(1) as f64);
    let verb = |at: usize| if at == 0 { "carried " } else { "" };
    let shares = course.subflows.iter().zip(names).enumerate();
    let parts: Vec<String> = shares.map(|(at, (it, name))| format!("{name} {}{}", verb(at), share(it))).collect();
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, front)) => format!("{} and {last}", front.join(", ")),
        None => String::new(),
    }
}

fn most_frequent(course: &ConnectionCourse) -> Option<(Cause, u64)> {
    let all = Cause::ALL.into_iter().map(|cause| (cause, course.waits[cause as usize]));
    all.max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)
}

fn because(cause: Cause) -> &'static str {
    match cause {
        Cause::NoSubflow => "no subflow could send",
        Cause::Full => "the send buffer of the subflow that was next was full",
        Cause::Window => "the other host's window was closed",
        Cause::Unknown => "of something that the watch does not see",
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::NoSubflow => "no data: no subflow could send",
        Cause::Full => "no data: send buffer full",
        Cause::Window => "no data: the other host's window closed",
        Cause::Unknown => "no data: cause not seen",
    }
}

/// Names of the subflows: the local address where it tells them apart, or both, or both with their ports.
fn subflow_names(course: &ConnectionCourse) -> Vec<String> {
    let forms: [fn(&SubflowCourse) -> Option<String>; 3] = [
        |it| it.ends.map(|(local, _)| local.ip().to_string()),
        |it| it.ends.map(|(local, remote)| format!("{} > {}", local.ip(), remote.ip())),
        |it| it.ends.map(|(local, remote)| format!("{local} > {remote}")),
    ];
    let name = |form: fn(&SubflowCourse) -> Option<String>| -> Vec<String> {
        let all = course.subflows.iter().enumerate();
        all.map(|(at, it)| form(it).unwrap_or_else(|| format!("subflow {}", at + 1))).collect()
    };
    let is_clear = |names: &Vec<String>| (1..names.len()).all(|at| !names[..at].contains(&names[at]));
    let [first, second, third] = forms.map(name);
    [first, second].into_iter().find(is_clear).unwrap_or(third)
}

fn warnings(report: &Report, course: &Course) -> Vec<String> {
    let mut all = Vec::new();
    if report.lost > 0 {
        all.push(format!(
            "{} events were lost, since they came faster than they were read: counts are too low, and decisions may be \
             given to the wrong subflow. A larger --buffer helps.",
            report.lost
        ));
    }
    if report.forgotten > 0 {
        let what = "connections were forgotten to make room for others, and are not in the tables.";
        all.push(format!("{} {what}", report.forgotten));
    }
    if course.dropped() > 0 {
        let what = "connections with little data have no course over time, to make room for others.";
        all.push(format!("{} {what}", course.dropped()));
    }
    all
}

fn facts(report: &Report, course: &Course) -> Vec<(String, String)> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let facts = [
        ("length", format!("{:.1} s", report.seconds)),
        ("connections", report.connections.len().to_string()),
        ("events", course.events().to_string()),
        ("lost events", report.lost.to_string()),
        ("events of unknown connections", report.unassigned.to_string()),
        ("kernel", kernel.trim().to_owned()),
        ("Anabranch", anabranch_lab::version_with_build()),
    ];
    facts.map(|(name, what)| (name.to_owned(), what)).into_iter().filter(|(_, what)| !what.is_empty()).collect()
}

fn figures(course: &ConnectionCourse) -> Vec<Figure> {
    let names = subflow_names(course);
    let time = || axis("time", "s");
    let rate = |count: u64| count as f64 * 8.0 / course.width;
    let mut figures = Vec::new();
    let mut add = |id: &str, title: &str, y, all: Vec<Series>, note: &str| {
        // A figure in which all is zero says nothing.
        let is_drawn = all.iter().any(|it| it.points.iter().any(|point| point.y != Some(0.0)));
        let title = format!("{title}, connection {}", course.connection);
        let mut notes = vec![note.to_owned()];
        notes.retain(|note| !note.is_empty());
        if is_drawn {
            figures.push(Figure { notes, ..figure(id, &title, Mark::Step, time(), y, all) });
        }
    };
    let by_subflow = |value: &dyn Fn(usize, usize) -> f64| -> Vec<Series> {
        let all = names.iter().enumerate();
        all.map(|(number, name)| series(name, steps(course, &|at| value(number, at)))).collect()
    };
    let of = |number: usize, at: usize| course.subflows[number].intervals.get(at).copied().unwrap_or_default();
    let each = format!("Means of {}.", span(course.width));
    let given = by_subflow(&|number, at| rate(of(number, at).sent));
    add("given", "Data given to each subflow", axis("rate", "bit/s"), given, &each);
    let again = by_subflow(&|number, at| rate(of(number, at).again));
    let note = format!("Data that another subflow was given before. {each}");
    add("again", "Data sent again", axis("rate", "bit/s"), again, &note);
    let queued = by_subflow(&|number, at| f64::from(of(number, at).queued_ms) / 1e3);
    let note = format!(
        "Time that the bytes in the send buffer take at the mean pacing rate: the scheduler takes the subflow with the \
         least. The largest of each {}.",
        span(course.width)
    );
    add("queue", "Time in the queue of each subflow", axis("time in the queue", "s"), queued, &note);
    let waits = Cause::ALL.into_iter().filter(|cause| course.waits[*cause as usize] > 0).map(|cause| {
        let value = |at: usize| f64::from(course.intervals[at].waits[cause as usize]) / course.width;
        series(cause_name(cause), steps(course, &value))
    });
    add("waits", "Decisions without data", axis("decisions", "1/s"), waits.collect(), &each);
    let arrived = by_subflow(&|number, at| rate(of(number, at).arrived));
    if answers(course) {
        add("arrived", "Data that arrived on each subflow", axis("rate", "bit/s"), arrived, &each);
    }
    let place = figures.len().min(1);
    figures.splice(place..place, sequence(course, &names));
    figures.extend(decisions(course, &names));
    figures
}

/// Points of a line with a value for each interval.
fn steps(course: &ConnectionCourse, value: &dyn Fn(usize) -> f64) -> Vec<Point> {
    let x = |at: usize| course.begin + at as f64 * course.width;
    let point = |at: usize, y: f64| Point { x: Some(x(at)), y: Some(y), ..Point::default() };
    let all = course.intervals.len();
    let last = all.checked_sub(1).map(|last| point(all, value(last)));
    (0..all).map(|at| point(at, value(at))).chain(last).collect()
}

/// Data over time by subflow, new and again, and what the other host acknowledged.
fn sequence(course: &ConnectionCourse, subflows: &[String]) -> Option<Figure> {
    let point = |x: f64, end: i64| Point { x: Some(x), y: Some(end as f64), ..Point::default() };
    let mut all = Vec::new();
    let named = |number: u32| match (number as usize).checked_sub(1).and_then(|at| subflows.get(at)) {
        Some(name) => name.clone(),
        None => "subflow not seen yet".to_owned(),
    };
    for (samples, word) in [(&course.sent, ""), (&course.again, ", sent again")] {
        let mut numbers: Vec<u32> = samples.kept.iter().map(|it| it.subflow).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            let of = samples.kept.iter().filter(|it| it.subflow == number);
            all.push(series(named(number) + word, of.map(|it| point(it.time, it.end)).collect()));
        }
    }
    if !course.acked.kept.is_empty() {
        all.push(series("DATA_ACK", course.acked.kept.iter().map(|(time, end)| point(*time, *end)).collect()));
    }
    let every = course.sent.every.max(course.acked.every);
    let title = format!("Time and sequence of the data, connection {}", course.connection);
    let mut drawn = figure("sequence", &title, Mark::Point, axis("time", "s"), axis("data sequence", "B"), all);
    let note = "A point is the end of data that a subflow was given, counted from the first byte that was not \
                acknowledged when the watch saw the connection first.";
    drawn.notes.push(note.to_owned());
    if every > 1 {
        drawn.notes.push(format!("One in {every} is drawn."));
    }
    (!drawn.series.is_empty()).then_some(drawn)
}

/// Decisions: those for each subflow, and those that no data followed.
fn decisions(course: &ConnectionCourse, subflows: &[String]) -> Option<Figure> {
    let mut stacks: Vec<Series> =
        ["as the rule gives", "against the rule"].into_iter().map(|name| series(name, Vec::new())).collect();
    stacks.extend(Cause::ALL.map(|cause| series(cause_name(cause), Vec::new())));
    for (it, name) in course.subflows.iter().zip(subflows) {
        let parts = [it.chosen, it.against, 0, 0, 0, 0].map(|count| count as f64);
        stack(&mut stacks, name, &parts, 1);
    }
    let none: Vec<f64> = [0, 0].into_iter().chain(course.waits).map(|count| count as f64).collect();
    stack(&mut stacks, "none", &none, 1);
    stacks.retain(|series| series.points.iter().any(|point| point.x != point.x_end));
    let title = format!("Decisions of the scheduler, connection {}", course.connection);
    let mut drawn = figure("decisions", &title, Mark::Span, axis("decisions", ""), names("subflow"), stacks);
    drawn.notes.push(
        "The rule of Linux: the least time in the queue, of the subflows that are not backups if there is one. A \
         decision is for a burst of data, of up to 64 kB."
            .to_owned(),
    );
    (course.decisions > 0).then_some(drawn)
}

/// Formats the length of an interval.
fn span(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

/// Data of each subflow of a connection: given, sent again, repeated by TCP, arrived.
fn carried(connection: &ConnectionReport, course: Option<&ConnectionCourse>) -> Table {
    let right = ["given [MB]", "share", "again [MB]", "TCP sent [MB]", "TCP repeated", "arrived [MB]", "bad"];
    let columns = right.into_iter().map(|name| (name, Align::Right));
    let mut table = Table::new([("subflow", Align::Left)].into_iter().chain(columns));
    let all: u64 = connection.subflows.iter().map(|it| it.sent).sum();
    for (at, it) in connection.subflows.iter().enumerate() {
        let of = |part: u64, whole: u64| if whole > 0 { percent(part as f64 / whole as f64) } else { "-".to_owned() };
        let again = course.and_then(|course| course.subflows.get(at)).map(|it| megabytes(it.again));
        table.row([
            format!("{} > {}", it.local, it.remote),
            megabytes(it.sent),
            of(it.sent, all),
            again.unwrap_or_else(|| "-".to_owned()),
            megabytes(it.tcp_sent),
            of(it.tcp_repeated, it.tcp_sent),
            megabytes(it.mapped),
            it.mapping_errors.to_string(),
        ]);
    }
    table
}

/// The table of connections, those with most data in front.
fn all(connections: &[&ConnectionReport]) -> Grid {
    let right = [
        "subflows",
        "decisions",
        "no data",
        "against the rule",
        "sent [MB]",
        "acked [MB]",
        "again [MB]",
        "arrived [MB]",
    ];
    let left = ["connection", "first subflow"].map(|name| (name, Align::Left));
    let mut table = Table::new(left.into_iter().chain(right.into_iter().map(|name| (name, Align::Right))));
    for it in connections.iter().take(ROWS) {
        let first = it.subflows.first().map(|it| format!("{} > {}", it.local, it.remote));
        table.row([
            it.connection.clone(),
            first.unwrap_or_default(),
            it.subflows.len().to_string(),
            it.decisions.to_string(),
            it.without_data.to_string(),
            it.unexpected.to_string(),
            megabytes(it.subflows.iter().map(|it| it.sent).sum()),
            megabytes(it.data_acked),
            megabytes(it.sent_again),
            megabytes(it.subflows.iter().map(|it| it.mapped).sum()),
        ]);
    }
    let mut grid = Grid::of(table, "Connections".to_owned());
    let more = connections.len().saturating_sub(ROWS);
    if more > 0 {
        grid.notes.push(format!("{more} more connections, with less data."));
    }
    grid
}

fn megabytes(count: u64) -> String {
    format!("{:.3}", count as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_kernel::watch::Event;
    use std::net::SocketAddr;

    fn subflow(subflow: u32, local: &str, remote: &str) -> Event {
        let [local, remote]: [SocketAddr; 2] = [local, remote].map(|text| text.parse().unwrap());
        Event::Subflow { time: 0.0, connection: "7".to_owned(), namespace: 1, subflow, local, remote }
    }

    fn sent(time: f64, subflow: u32, offset: i64, bytes: u64, again: bool) -> Event {
        Event::Sent { time, connection: "7".to_owned(), subflow: Some(subflow), offset, bytes, again }
    }

    fn decision(chosen: Option<u32>, expected: Option<u32>) -> Event {
        Event::Decision { time: 0.5, connection: "7".to_owned(), chosen, expected, candidates: Vec::new() }
    }

    fn course(events: &[Event]) -> Course {
        let mut course = Course::default();
        events.iter().for_each(|event| course.take(event));
        course
    }

    fn report(lost: u64) -> Report {
        Report { time: 2.0, seconds: 2.0, lost, unassigned: 0, forgotten: 0, connections: Vec::new() }
    }

    #[test]
    fn a_sentence_says_where_data_went_and_what_kept_them() {
        let course = course(&[
            subflow(1, "10.0.1.1:1000", "10.0.0.1:80"),
            subflow(2, "10.0.2.1:1001", "10.0.0.1:80"),
            decision(Some(1), Some(1)),
            decision(Some(1), Some(2)),
            decision(Some(2), Some(2)),
            decision(None, None),
            sent(0.0, 1, 0, 3_000_000, false),
            sent(1.0, 2, 3_000_000, 500_000, false),
            sent(1.0, 2, 0, 500_000, true),
        ]);
        let said = sentence(&report(0), &course.connections());
        let expected = "Connection 7: of 4.00 MB that were sent, 10.0.1.1 carried 75 % and 10.0.2.1 25 %; the \
                        scheduler took 10.0.1.1 in 67 % of 3 choices, once against the rule of Linux; 1 of 4 times \
                        no data left, because no subflow could send; 500 kB (12 %) were sent again on another subflow.";
        assert_eq!(said, expected);
        let nothing = sentence(&report(0), &[]);
        assert_eq!(nothing, "In 2.0 s no data of such a connection was sent or arrived.");
    }

    #[test]
    fn subflows_are_told_apart_by_as_little_as_it_takes() {
        let names = |events: &[Event]| subflow_names(course(events).connections()[0]);
        let one = subflow(1, "10.0.1.1:1000", "10.0.0.1:80");
        assert_eq!(names(&[one.clone(), subflow(2, "10.0.2.1:1", "10.0.0.1:80")]), ["10.0.1.1", "10.0.2.1"]);
        let other = subflow(2, "10.0.1.1:1001", "10.0.9.1:80");
        assert_eq!(names(&[one.clone(), other]), ["10.0.1.1 > 10.0.0.1", "10.0.1.1 > 10.0.9.1"]);
        let same = subflow(3, "10.0.1.1:1001", "10.0.0.1:80");
        let ports = ["10.0.1.1:1000 > 10.0.0.1:80", "subflow 2", "10.0.1.1:1001 > 10.0.0.1:80"];
        assert_eq!(names(&[one, same]), ports);
    }

    /// A page without a connection is one, and one with hostile names of files is not broken.
    #[test]
    fn lost_events_are_said_on_top() {
        let target = Target::Group("/sys/fs/cgroup/</script>".into());
        let page = page(&target, &report(7), &Course::default(), "anabranch kernel watch");
        let text = anabranch_report::html::page(&page);
        assert!(text.contains("<p class=\"warning\">7 events were lost"), "{text}");
        assert!(!text.contains("cgroup/</script>"));
    }
}
