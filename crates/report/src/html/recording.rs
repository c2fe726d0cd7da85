//! Recordings as a page.

use super::run::{axis, figure, series};
use super::{Page, Section};
use crate::recording::{Recordings, WINDOW};
use anabranch_recording::{Levels, Recording};
use anabranch_study::figure::{Figure, Mark, Point};
use anabranch_units::Duration;

impl Page {
    /// A page about recordings, made by `command`: each value over time.
    pub fn of_recordings(all: &Recordings, contents: &[Recording], command: &str) -> Page {
        let names: Vec<&str> = all.recordings.iter().map(|it| it.file.as_str()).collect();
        let mut section = Section {
            name: "recordings".to_owned(),
            title: names.join(", "),
            facts: vec![
                ("recordings".to_owned(), names.join(", ")),
                ("Anabranch".to_owned(), anabranch_lab::version_with_build()),
            ],
            ..Section::default()
        };
        let said =
            all.recordings.iter().flat_map(|it| it.remarks.iter().map(|remark| format!("{}: {remark}", it.file)));
        section.warnings.extend(said);
        let (mut rates, mut delays, mut losses) = (Vec::new(), Vec::new(), Vec::new());
        for (name, content) in names.iter().zip(contents) {
            let mbps = |rate: anabranch_units::Rate| rate.as_bps() as f64 / 1e6;
            rates.extend(content.rates(WINDOW).map(|levels| series(*name, points(&levels, mbps))));
            delays.extend(content.delay.as_ref().map(|it| series(*name, points(it, Duration::as_millis_f64))));
            losses.extend(content.loss.as_ref().map(|it| series(*name, points(it, |share| share * 100.0))));
        }
        let drawn = |id: &str, title: &str, unit: &str, all| -> Option<Figure> {
            let all: Vec<_> = all;
            (!all.is_empty()).then(|| figure(id, title, Mark::Step, axis("time", "s"), axis(id, unit), all))
        };
        section.figures.extend(drawn("rate", "Rate", "Mbit/s", rates));
        section.figures.extend(drawn("delay", "Delay of one direction", "ms", delays));
        section.figures.extend(drawn("loss", "Loss in one direction", "%", losses));
        Page {
            title: format!("Recordings: {}", names.join(", ")),
            lead: String::new(),
            version: anabranch_lab::version_with_build(),
            command: command.to_owned(),
            sections: vec![section],
        }
    }
}

/// Steps of a value over time. More than a picture can show become means over equal times.
fn points<T: Copy + PartialEq>(levels: &Levels<T>, number: impl Fn(T) -> f64) -> Vec<Point> {
    let point = |x: f64, y: f64| Point { x: Some(x), y: Some(y), ..Point::default() };
    let mut from = 0.0;
    let mut held: Vec<(f64, f64, f64)> = Vec::new();
    for level in levels.iter() {
        let until = level.until.as_secs_f64();
        held.push((from, until, number(level.value)));
        from = until;
    }
    let together = held.len().div_ceil(MOST_POINTS);
    let mean = |part: &[(f64, f64, f64)]| {
        let span = part[part.len() - 1].1 - part[0].0;
        part.iter().map(|(from, until, value)| value * (until - from)).sum::<f64>() / span
    };
    let mut points: Vec<Point> = held.chunks(together).map(|part| point(part[0].0, mean(part))).collect();
    let last = points.last().and_then(|last| last.y).unwrap_or(0.0);
    points.push(point(from, last));
    points
}

/// Number of steps at most.
const MOST_POINTS: usize = 3000;
