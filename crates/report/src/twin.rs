//! The twin of a captured connection, for a terminal: its values, how sure each is, and what it was seen from.

use crate::{Align, Table, hang, wrap};
use anabranch_why::Twin;

/// Formats a twin for lines of `width` characters.
pub fn twin(twin: &Twin, width: usize) -> String {
    let kind = if twin.multipath { "MPTCP" } else { "plain TCP" };
    let [a, b] = &twin.endpoints;
    let seconds = twin.time_ns as f64 / 1e9;
    let about = format!(
        "Twin of connection {}: {kind}, {a} to {b}, captured {}, {} bytes in {seconds:.3} s.",
        twin.connection, twin.captured, twin.bytes
    );
    let mut text = wrap(&about, width).join("\n") + "\n";
    let columns = [("value", Align::Left), ("", Align::Left), ("sure", Align::Left), ("range", Align::Left)];
    let mut table = Table::new(columns);
    for it in &twin.estimates {
        let value = shorten(&it.value);
        table.row([format!("{}.{}", it.table, it.key), value, it.confidence.name().to_owned(), it.range_words()]);
    }
    text += &format!("\n{table}");
    if !twin.finished {
        text += &wrap("The capture ends before the last of the data arrived: the twin sends what was seen.", width)
            .join("\n");
        text += "\n";
    }
    if !twin.unknown.is_empty() {
        text += "\nWhat this capture does not tell:\n";
        twin.unknown.iter().for_each(|line| text += &hang("  - ", line, width));
    }
    text
}

/// A value without quotes, cut where it is long.
fn shorten(value: &str) -> String {
    let plain: String = value.chars().filter(|c| *c != '"').collect();
    match plain.chars().count() > LONGEST {
        true => plain.chars().take(LONGEST - 1).chain(['…']).collect(),
        false => plain,
    }
}

/// Characters of a value in the table.
const LONGEST: usize = 24;
