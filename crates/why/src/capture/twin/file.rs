//! The scenario file: tables and keys, each with a comment that says how sure it is and what it was seen from.

use super::Twin;
use super::estimate::{Estimate, text};

/// Writes a twin as a scenario file.
pub(super) fn file(twin: &Twin) -> String {
    let [a, b] = &twin.endpoints;
    let kind = if twin.multipath { "MPTCP" } else { "plain TCP" };
    let about = format!("Twin of a captured connection ({kind}, {a} to {b})");
    let mut lines = vec![format!("about = {}", text(&about)), String::new()];
    let seconds = twin.time_ns as f64 / 1e9;
    let end = if twin.finished { "" } else { "; the capture ends before the data does" };
    lines.push(format!("# Captured {}: {} bytes in {seconds:.3} s{end}.", twin.captured, twin.bytes));
    lines.push("# Beside each value: how sure it is, its range, what it was seen from.".to_owned());
    lines.extend(twin.unknown.iter().map(|line| format!("# Not told: {}", plain(line))));
    let mut table = String::new();
    for it in &twin.estimates {
        // Each change is a table of its own, and begins with its time.
        if it.table != table || (it.table == "change" && it.key == "at") {
            table.clone_from(&it.table);
            lines.push(String::new());
            lines.push(match table.as_str() {
                "workload" | "change" => format!("[[{table}]]"),
                _ => format!("[{table}]"),
            });
        }
        lines.push(format!("{} = {}{}", it.key, it.value, comment(it)));
    }
    lines.join("\n") + "\n"
}

fn comment(it: &Estimate) -> String {
    if it.seen.is_empty() {
        return String::new();
    }
    let range = it.range_words();
    let range = if range.is_empty() { String::new() } else { format!(", {range}") };
    format!(" # {}{range}: {}", it.confidence.name(), plain(&it.seen))
}

/// A text on one line, as a comment has to be.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
