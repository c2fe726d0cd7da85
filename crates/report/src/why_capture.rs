//! Why the transfers of a capture took as long as they did, for a terminal: the sentence, bars over time, tables.

use crate::number::percent;
use crate::why::{Rows, draw, limits};
use crate::{Align, Table, hang, wrap};
use anabranch_why::{CaptureAnswer, JudgedConnection, JudgedDirection, OtherConnection};

/// Formats an answer about captures for lines of `width` characters.
pub fn why_capture(answer: &CaptureAnswer, width: usize) -> String {
    let mut text = wrap(&answer.sentence, width).join("\n") + "\n";
    if let Some(connection) = &answer.connection {
        let about = about(connection);
        text += &format!("\n{}", hang(&format!("Connection {}: ", connection.number), &about, width));
        for direction in &connection.directions {
            text += &format!("\n{}", of_direction(connection, direction, width));
        }
        if !connection.unknown.is_empty() {
            text += "\nWhat this capture does not tell:\n";
            connection.unknown.iter().for_each(|line| text += &hang("  - ", line, width));
        }
    }
    if answer.other_connections > 0 {
        text += &format!("\n{}", others(answer, width));
    }
    for file in &answer.files {
        let troubles = file.error.iter().chain(&file.notes);
        troubles.for_each(|trouble| text += &hang(&format!("{}: ", file.name), trouble, width));
    }
    text
}

/// A connection in a few words.
pub(crate) fn about(connection: &JudgedConnection) -> String {
    let kind = match connection.multipath {
        true => "MPTCP",
        false if !connection.orphan_options.is_empty() => "MPTCP without its handshake",
        false => "plain TCP",
    };
    let [a, b] = &connection.endpoints;
    format!("{kind}, {a} to {b}, captured {}", connection.captured)
}

/// The head of a direction.
pub(crate) fn head(connection: &JudgedConnection, direction: &JudgedDirection) -> String {
    let from = anabranch_inspect::article(&connection.sides[direction.from]);
    let confidence = direction.confidence.name();
    format!("Data from {from}: {} bytes, confidence {confidence}", direction.bytes)
}

fn of_direction(connection: &JudgedConnection, direction: &JudgedDirection, width: usize) -> String {
    let mut text = hang("", &head(connection, direction), width);
    let names = direction.paths.iter().map(|path| path.path.chars().count());
    let label = names.max().unwrap_or(0).max("connection".len());
    let columns = width.saturating_sub(label + 4).clamp(10, 120);
    let rows = Rows {
        from_ns: direction.from_ns,
        time_ns: direction.time_ns,
        connection: &direction.intervals,
        paths: &direction.paths,
    };
    text += &draw(&rows, label, columns, &direction.shares, width);
    text += &format!("\n{}", limits(&direction.shares, 1));
    text += &format!("\n{}", measured(connection, direction));
    text
}

/// The table of paths.
pub(crate) fn measured(connection: &JudgedConnection, direction: &JudgedDirection) -> Table {
    let mut table = Table::new([
        ("path", Align::Left),
        ("packets", Align::Right),
        ("lost", Align::Right),
        ("link [Mbit/s]", Align::Right),
        ("RTT [ms]", Align::Right),
        ("queue [ms]", Align::Right),
    ]);
    let number = |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value:.1}"));
    for path in &direction.measured {
        let rtt = connection.paths.iter().find(|it| it.name == path.path).and_then(|it| it.rtt_ms);
        let lost = if path.packets > 0 { percent(path.lost as f64 / path.packets as f64) } else { String::new() };
        table.row([
            path.path.clone(),
            path.packets.to_string(),
            lost,
            number(path.rate_bps.map(|rate| rate / 1e6)),
            number(rtt),
            number(path.queue_ms),
        ]);
    }
    table
}

/// The connections that are not judged, in one line.
fn others(answer: &CaptureAnswer, width: usize) -> String {
    let one = |it: &OtherConnection| {
        let kind = if it.multipath { "" } else { " plain" };
        format!("{}{kind} ({} bytes)", it.number, it.bytes[0] + it.bytes[1])
    };
    let mut listed: Vec<String> = answer.others.iter().map(one).collect();
    let more = answer.other_connections - answer.others.len();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    hang("Other connections (--connection N): ", &listed.join(", "), width)
}
