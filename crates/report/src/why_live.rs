//! Causes of the slowness of live connections, for a terminal: a sentence and a table of subflows for each.

use crate::number::percent;
use crate::{Align, Table, hang};
use anabranch_why::{LiveAnswer, LiveConnection};

/// Connections that are shown.
const MOST: usize = 5;

/// Formats an answer about live connections for lines of `width` characters.
pub fn why_live(answer: &LiveAnswer, width: usize) -> String {
    let about = match answer.whole {
        true => format!("All {:.1} s", answer.interval_s),
        false => format!("{:.1} s, the last {:.1} s", answer.time_s, answer.interval_s),
    };
    if answer.connections.is_empty() {
        return format!("{about}: no connection\n");
    }
    let mut text = format!("{about}:\n");
    for connection in answer.connections.iter().take(MOST) {
        text += &of_connection(connection, answer.interval_s, width);
    }
    let more = answer.connections.len().saturating_sub(MOST);
    if more > 0 {
        text += &format!("{more} more connections, with less data\n");
    }
    text
}

fn of_connection(connection: &LiveConnection, seconds: f64, width: usize) -> String {
    let rate = |bytes: u64| format!("{:.2}", bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9));
    let kind = if connection.multipath { "MPTCP" } else { "plain TCP" };
    let ended = if connection.ended { ", ended" } else { "" };
    let head = format!(
        "{} > {}, {kind}{ended}: {} Mbit/s sent, {} received",
        connection.local,
        connection.remote,
        rate(connection.sent),
        rate(connection.received)
    );
    let mut text = hang("", &head, width) + &hang("  ", &connection.sentence, width);
    let right = ["Mbit/s", "resent", "RTT [ms]", "least", "cwnd [kB]", "in flight", "window [kB]", "busy"];
    let columns = right.into_iter().map(|name| (name, Align::Right));
    let mut table = Table::new([("subflow", Align::Left)].into_iter().chain(columns).chain([("limit", Align::Left)]));
    for it in &connection.subflows {
        let kilobytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e3);
        table.row([
            format!("{}{}", it.path, if it.backup { " (backup)" } else { "" }),
            rate(if connection.sends { it.sent } else { it.received }),
            it.retransmitted.to_string(),
            format!("{:.1}", it.rtt_ms),
            format!("{:.1}", it.min_rtt_ms),
            kilobytes(it.cwnd),
            kilobytes(it.in_flight),
            kilobytes(it.window),
            percent(it.busy),
            it.limit.map_or("-", anabranch_why::Limit::name).to_owned(),
        ]);
    }
    text += &table.to_string();
    text
}
