//! Analysis of a capture, for people.

use crate::number::{bytes, percent, short};
use crate::{Align, Table};
use anabranch_engine::path_use::{Path, PathUse, Subflow};
use anabranch_inspect::{
    ConnectionReport, DirectionReport, EndReport, FallbackReport, PlainReport, Report, SubflowReport, article,
};
use std::fmt::Write;

/// The whole report.
pub fn inspection(report: &Report) -> String {
    let mut text = files(report);
    let (shown, rest) = report.connections.split_at(report.connections.len().min(SHOWN_CONNECTIONS));
    for connection in shown {
        text += &one(connection);
    }
    text += &others(rest);
    if !report.plain_tcp.is_empty() {
        text += &plain(&report.plain_tcp);
    }
    if report.connections.is_empty() && report.capture.mptcp_packets == 0 {
        line(&mut text, "\nNo MPTCP in this capture.");
    }
    text
}

fn files(report: &Report) -> String {
    let mut text = String::new();
    for file in &report.files {
        if !file.is_capture {
            continue;
        }
        line(&mut text, &format!("{}: {}, {} of them TCP", file.name, count(file.packets, "packet"), file.tcp_packets));
        for note in &file.notes {
            line(&mut text, &format!("  {note}"));
        }
        if let Some(error) = &file.error {
            line(&mut text, &format!("  stopped reading: {error}"));
        }
    }
    let capture = &report.capture;
    let of = count(report.connections.len() as u64, "MPTCP connection");
    let plain = count(report.plain_tcp.len() as u64, "other TCP connection");
    line(&mut text, &format!("{}: {of}, {plain}", span(capture.duration_s)));
    let orphans = report.plain_tcp.iter().filter(|one| one.is_orphan()).count();
    if orphans > 0 {
        let of = count(orphans as u64, "TCP connection");
        line(&mut text, &format!("  MPTCP options are in {of} whose MPTCP handshake is not in the capture (below)"));
    }
    for note in &capture.notes {
        line(&mut text, &format!("  {note}"));
    }
    text
}

/// The connections that are not shown one by one, together: a row for each kind of end.
fn others(connections: &[ConnectionReport]) -> String {
    let Some(first) = connections.first() else { return String::new() };
    let mut ends: Vec<(&str, Vec<&ConnectionReport>)> = Vec::new();
    for connection in connections {
        let known = ends.iter().position(|(end, _)| *end == connection.end);
        // Of kinds without end, the last row has the rest.
        match known.or((ends.len() == SHOWN_ENDS).then_some(SHOWN_ENDS - 1)) {
            Some(row) => ends[row].1.push(connection),
            None if ends.len() == SHOWN_ENDS - 1 => ends.push(("otherwise", vec![connection])),
            None => ends.push((&connection.end, vec![connection])),
        }
    }
    let columns = ["connections", "fell back", "subflows", "bytes"].map(|name| (name, Align::Right));
    let mut table = Table::new(columns.into_iter().chain([("end", Align::Left)]));
    for (end, here) in &ends {
        let fallen = here.iter().filter(|connection| connection.fallback.is_some()).count();
        let subflows: usize = here.iter().map(|connection| connection.subflows.len()).sum();
        let sent: u64 = here.iter().flat_map(|connection| &connection.directions).map(|it| it.bytes).sum();
        table.row([
            here.len().to_string(),
            fallen.to_string(),
            subflows.to_string(),
            bytes(sent as f64),
            (*end).to_owned(),
        ]);
    }
    let (count, number) = (count(connections.len() as u64, "more MPTCP connection"), first.number);
    format!("\nAnd {count} (one of them in full: --connection {number}; all of them: --json)\n{table}")
}

fn one(connection: &ConnectionReport) -> String {
    let mut text = String::new();
    let [a, b] = &connection.endpoints;
    let [name_a, name_b] = connection.sides;
    line(&mut text, &format!("\nConnection {}: {a} ({name_a}) to {b} ({name_b})", connection.number));
    line(&mut text, &format!("  {}", facts(connection)));
    let (start, duration) = (time(connection.start_s), span(connection.duration_s));
    let captured = connection.captured.as_ref().map_or(String::new(), |place| format!("; captured {place}"));
    line(&mut text, &format!("  begins at {start}, lasts {duration}; {}{captured}", connection.end));
    if let Some(fallback) = &connection.fallback {
        line(&mut text, &format!("  {}", fell_back(fallback)));
    }
    for remark in unused_paths(connection) {
        line(&mut text, &format!("  {remark}"));
    }
    text += &format!("\n{}", subflows(connection));
    text += &lost_races(connection);
    text += &format!("\n{}", traffic(connection));
    text += &format!("\n{}", directions(connection));
    text += &reinjections(connection);
    text += &gaps(connection);
    text += &signals(connection);
    if !connection.unknown.is_empty() {
        line(&mut text, "\n  What the capture does not show:");
        connection.unknown.iter().for_each(|note| line(&mut text, &format!("  - {note}")));
    }
    text
}

/// Subflows that carried no data, and why as far as the capture shows it.
fn unused_paths(connection: &ConnectionReport) -> Vec<String> {
    let mut path_use = PathUse { connections: 1, ..PathUse::default() };
    for subflow in &connection.subflows {
        let addresses = subflow.endpoints.each_ref().map(|end| end.rsplit_once(':').map_or(end.as_str(), |(ip, _)| ip));
        let is_backup = subflow.backup.contains(&Some(true));
        let was_there =
            ["established", "handshake complete", "in use"].iter().any(|word| subflow.outcome.starts_with(word));
        path_use.add(Path {
            name: addresses.join(" to "),
            bytes: subflow.sent.iter().map(|sent| sent.bytes).sum(),
            subflow: match (is_backup, was_there) {
                (true, _) => Subflow::Backup,
                (false, true) => Subflow::Established,
                (false, false) => Subflow::Failed,
            },
        });
    }
    path_use.remarks()
}

/// Version, checksums, keys.
fn facts(connection: &ConnectionReport) -> String {
    let version = match connection.version {
        Some(0) => "version 0 (RFC 6824)".to_owned(),
        Some(1) => "version 1 (RFC 8684)".to_owned(),
        Some(version) => format!("version {version}"),
        None => "version not known".to_owned(),
    };
    let checksum = match connection.dss_checksum {
        Some(true) => "DSS checksums on",
        Some(false) => "DSS checksums off",
        None => "DSS checksums not known",
    };
    let known = connection.keys.each_ref().map(|key| key.key.is_some());
    let keys = match known {
        [true, true] => "both keys known".to_owned(),
        [false, false] => "keys not known".to_owned(),
        [a, _] => format!("only the key of {} known", article(connection.sides[usize::from(!a)])),
    };
    let tokens: Vec<String> = (connection.keys.iter().zip(connection.sides))
        .filter_map(|(key, side)| Some(format!("{side} {}", key.token.as_ref()?)))
        .collect();
    let tokens = if tokens.is_empty() { String::new() } else { format!(" (tokens: {})", tokens.join(", ")) };
    format!("MPTCP {version}, {checksum}, {keys}{tokens}")
}

fn subflows(connection: &ConnectionReport) -> String {
    let [a, b] = connection.sides;
    let mut table = Table::new([
        ("subflow", Align::Right),
        (a, Align::Left),
        (b, Align::Left),
        ("opened by", Align::Left),
        ("start", Align::Right),
        ("handshake RTT", Align::Right),
        ("data RTT min/median", Align::Right),
        ("ids", Align::Left),
        ("outcome", Align::Left),
        ("end", Align::Left),
    ]);
    for subflow in &connection.subflows {
        let [end_a, end_b] = subflow.endpoints.clone();
        let who = subflow.opened_by.map_or(String::new(), |side| format!("{}, ", connection.sides[side]));
        let by = match subflow.hmac {
            [None, None] => format!("{who}{}", subflow.origin),
            verdicts => format!("{who}{}, HMAC {}", subflow.origin, hmacs(verdicts)),
        };
        table.row([
            subflow.number.to_string(),
            end_a,
            end_b,
            by,
            time(subflow.start_s),
            subflow.handshake_rtt_ms.map_or("not known".to_owned(), ms),
            data_rtt(subflow),
            ids(subflow),
            subflow.outcome.clone(),
            ends(subflow, connection.sides),
        ]);
    }
    table.to_string()
}

/// SYNs on other paths that came second.
fn lost_races(connection: &ConnectionReport) -> String {
    let mut text = String::new();
    for attempt in &connection.lost_races {
        let [client, server] = &attempt.endpoints;
        let answer = match (attempt.answered_after_ms, attempt.reset_s) {
            (Some(after), Some(_)) => format!("answered after {}, and reset", ms(after)),
            (Some(after), None) => format!("answered after {}", ms(after)),
            (None, _) => "no answer in the capture".to_owned(),
        };
        let at = time(attempt.start_s);
        line(&mut text, &format!("  lost the race for subflow 0: SYN from {client} to {server} at {at}, {answer}"));
    }
    text
}

fn hmacs(verdicts: [Option<&'static str>; 2]) -> String {
    match verdicts {
        [Some(a), Some(b)] if a == b => a.to_owned(),
        [a, b] => format!("{}/{}", a.unwrap_or("none"), b.unwrap_or("none")),
    }
}

/// The ways from the capture to both sides and back make a whole round trip. If only one was measured it stands for all
/// if the handshake says that it is most of it.
fn data_rtt(subflow: &SubflowReport) -> String {
    let whole = subflow.data_rtt.iter().filter(|rtt| rtt.whole_path).find_map(|rtt| rtt.min_ms.zip(rtt.median_ms));
    if let Some((min, median)) = whole {
        return format!("{} / {}", ms(min), ms(median));
    }
    let measured = subflow.data_rtt.each_ref().map(|rtt| rtt.min_ms.zip(rtt.median_ms));
    match (measured, subflow.handshake_rtt_ms) {
        ([Some(a), Some(b)], _) => format!("{} / {}", ms(a.0 + b.0), ms(a.1 + b.1)),
        ([Some(one), None] | [None, Some(one)], Some(handshake)) if one.0 > handshake / 2.0 => {
            format!("{} / {}", ms(one.0), ms(one.1))
        }
        // Less than a millisecond is what the near side takes to think.
        ([Some(one), None] | [None, Some(one)], None) if one.0 >= 1.0 => format!("≥ {}", ms(one.0)),
        _ => "not known".to_owned(),
    }
}

/// Address identifiers, with a `b` where the backup flag was set.
fn ids(subflow: &SubflowReport) -> String {
    let side = |side: usize| {
        let id = subflow.address_ids[side].map_or("?".to_owned(), |id| id.to_string());
        let backup = if subflow.backup[side] == Some(true) { " backup" } else { "" };
        format!("{id}{backup}")
    };
    if subflow.address_ids == [None, None] { String::new() } else { format!("{} → {}", side(0), side(1)) }
}

fn ends(subflow: &SubflowReport, sides: [&str; 2]) -> String {
    let text = |end: &EndReport| match (&end.reason, end.fast_close) {
        (_, true) => format!("{} with MP_FASTCLOSE", end.kind),
        (Some(reason), _) => format!("{}: {reason}", end.kind),
        (None, _) => end.kind.to_owned(),
    };
    match &subflow.ends {
        [Some(a), Some(b)] if a.kind == "FIN" && b.kind == "FIN" => "FIN, FIN".to_owned(),
        [a, b] => {
            let of = |end: &Option<EndReport>, side: &str| end.as_ref().map(|end| format!("{side} {}", text(end)));
            [of(a, sides[0]), of(b, sides[1])].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    }
}

fn traffic(connection: &ConnectionReport) -> String {
    let mut table = Table::new([
        ("subflow", Align::Right),
        ("from", Align::Left),
        ("packets", Align::Right),
        ("bytes", Align::Right),
        ("share", Align::Right),
        ("sent again", Align::Right),
        ("repeated data", Align::Right),
        ("overtaken", Align::Right),
        ("not captured", Align::Right),
        ("unmapped", Align::Right),
        ("DSS checksums", Align::Right),
        ("zero windows", Align::Right),
    ]);
    for subflow in &connection.subflows {
        for (sent, side) in subflow.sent.iter().zip(connection.sides) {
            if sent.packets == 0 {
                continue;
            }
            let again = sent.retransmitted_segments + sent.retransmitted_unseen_segments;
            let sums = [
                (sent.dss_checksums_good, "good"),
                (sent.dss_checksums_bad, "bad"),
                (sent.dss_checksums_unverifiable, "not verifiable"),
            ];
            let sums = sums.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
            let zero = match sent.zero_windows {
                0 => "0".to_owned(),
                n => format!("{n} ({})", span(sent.zero_window_s)),
            };
            table.row([
                subflow.number.to_string(),
                side.to_owned(),
                sent.packets.to_string(),
                amount(sent.data_bytes),
                sent.share.map_or(String::new(), percent),
                again.to_string(),
                amount(sent.repeated_data_bytes),
                sent.reordered_segments.to_string(),
                amount(sent.missing_bytes),
                amount(sent.unmapped_bytes),
                sums.collect::<Vec<_>>().join(", "),
                zero,
            ]);
        }
    }
    table.to_string()
}

fn directions(connection: &ConnectionReport) -> String {
    let mut table = Table::new([
        ("from", Align::Left),
        ("bytes", Align::Right),
        ("goodput", Align::Right),
        ("out of order", Align::Right),
        ("depth mean/max", Align::Right),
        ("held at most", Align::Right),
        ("gaps", Align::Right),
        ("blocked", Align::Right),
        ("not captured", Align::Right),
        ("DATA_FIN", Align::Left),
    ]);
    for direction in &connection.directions {
        // A rate over a few segments means nothing.
        let goodput = direction.goodput_mbit_s.filter(|_| direction.segments >= 10);
        let share = direction.out_of_order_segments as f64 / direction.segments.max(1) as f64;
        let depth = match direction.reorder_depth_mean_bytes {
            Some(mean) => format!("{} / {}", bytes(mean), amount(direction.reorder_depth_max_bytes)),
            None => "0".to_owned(),
        };
        let fin = match (direction.data_fin_s, direction.data_fin_acknowledged) {
            (None, _) => "not seen".to_owned(),
            (Some(at), true) => format!("at {}, acknowledged", time(at)),
            (Some(at), false) => format!("at {}, not acknowledged", time(at)),
        };
        let missing = match direction.acknowledged_unseen_bytes {
            Some(unseen) => amount(unseen),
            None => amount(direction.missing_bytes),
        };
        table.row([
            connection.sides[direction.from].to_owned(),
            amount(direction.bytes),
            goodput.map_or(String::new(), |rate| format!("{} Mbit/s", short(rate))),
            format!("{} ({})", count(direction.out_of_order_segments, "segment"), percent(share)),
            depth,
            amount(direction.held_max_bytes),
            direction.gaps.to_string(),
            span(direction.hol_blocked_s),
            missing,
            fin,
        ]);
    }
    table.to_string()
}

fn reinjections(connection: &ConnectionReport) -> String {
    let mut table = Table::new([
        ("from", Align::Left),
        ("first on", Align::Left),
        ("again on", Align::Left),
        ("segments", Align::Right),
        ("bytes", Align::Right),
        ("acknowledged already", Align::Right),
        ("later by", Align::Right),
    ]);
    let all =
        || connection.directions.iter().flat_map(|d: &DirectionReport| d.reinjections.iter().map(move |r| (d, r)));
    for (direction, reinjection) in all() {
        let first = reinjection.first_on.map_or("not remembered".to_owned(), |first| format!("subflow {first}"));
        table.row([
            connection.sides[direction.from].to_owned(),
            first,
            format!("subflow {}", reinjection.again_on),
            reinjection.segments.to_string(),
            amount(reinjection.bytes),
            amount(reinjection.already_acknowledged_bytes),
            ms(reinjection.mean_delay_ms),
        ]);
    }
    if all().next().is_none() {
        String::new()
    } else {
        format!("\n  Reinjections, by what came first to the capture:\n{table}")
    }
}

fn gaps(connection: &ConnectionReport) -> String {
    let mut table = Table::new([
        ("from", Align::Left),
        ("at", Align::Right),
        ("lasted", Align::Right),
        ("relative DSN", Align::Right),
        ("missing", Align::Right),
        ("ended", Align::Left),
    ]);
    let mut any = false;
    for direction in &connection.directions {
        for gap in direction.longest_gaps.iter().take(SHOWN_GAPS) {
            any = true;
            let end = match (gap.end, gap.filled_by) {
                ("filled", Some(subflow)) => format!("filled on subflow {subflow}"),
                ("open", _) => "open when the capture ends".to_owned(),
                _ => "acknowledged, not in the capture".to_owned(),
            };
            table.row([
                connection.sides[direction.from].to_owned(),
                time(gap.at_s),
                ms(gap.duration_ms),
                gap.dsn.to_string(),
                amount(gap.bytes),
                end,
            ]);
        }
    }
    if any {
        format!("\n  Longest gaps in delivery, as seen where the capture was made:\n{table}")
    } else {
        String::new()
    }
}

fn signals(connection: &ConnectionReport) -> String {
    if connection.signals.is_empty() {
        return String::new();
    }
    let columns = ["at", "from", "subflow", "signal", "says", "verified", "times"];
    let mut table = Table::new(columns.map(|name| (name, if name == "at" { Align::Right } else { Align::Left })));
    for signal in &connection.signals {
        table.row([
            time(signal.at_s),
            connection.sides[signal.from].to_owned(),
            signal.subflow.to_string(),
            signal.kind.to_owned(),
            signal.text.clone(),
            signal.verified.unwrap_or("").to_owned(),
            signal.count.to_string(),
        ]);
    }
    format!("\n{table}")
}

fn plain(all: &[PlainReport]) -> String {
    let mut table = Table::new([
        ("from", Align::Left),
        ("to", Align::Left),
        ("start", Align::Right),
        ("lasted", Align::Right),
        ("RTT", Align::Right),
        ("sent", Align::Right),
        ("received", Align::Right),
    ]);
    // Those that tell something about MPTCP come first.
    let tells = |one: &&PlainReport| one.fallback.is_some() || one.join.is_some() || one.is_orphan();
    let (telling, others): (Vec<_>, Vec<_>) = all.iter().partition(tells);
    let mut said = String::new();
    for one in telling.iter().chain(&others).take(SHOWN_PLAIN) {
        let mptcp = match (&one.fallback, &one.join) {
            (Some(fallback), _) => Some(fell_back(fallback)),
            (None, Some(join)) => Some(join.clone()),
            (None, None) if one.options_cut_packets > 0 => {
                Some(format!("{} packets were cut within their options", one.options_cut_packets))
            }
            (None, None) => None,
        };
        if let Some(mptcp) = mptcp {
            line(&mut said, &format!("  {}: {mptcp}", one.endpoints[0]));
        }
        for words in one.orphan_words() {
            line(&mut said, &format!("  {words} (MPTCP whose handshake is not in the capture)"));
        }
        table.row([
            one.endpoints[0].clone(),
            one.endpoints[1].clone(),
            time(one.start_s),
            span(one.duration_s),
            one.handshake_rtt_ms.map_or(String::new(), ms),
            amount(one.bytes[0]),
            amount(one.bytes[1]),
        ]);
    }
    let rest = all.len().saturating_sub(SHOWN_PLAIN);
    let rest = if rest > 0 { format!("  and {rest} more (all of them: --json)\n") } else { String::new() };
    format!("\nOther TCP connections:\n{table}{rest}{said}")
}

fn fell_back(fallback: &FallbackReport) -> String {
    if fallback.reason.starts_with("unknown") {
        return format!("MP_CAPABLE offered, {}", fallback.reason);
    }
    format!("fallback to TCP at the {}: {}", fallback.step, fallback.reason)
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

fn amount(n: u64) -> String {
    bytes(n as f64)
}

fn ms(ms: f64) -> String {
    format!("{} ms", short(ms))
}

/// A time since the beginning, or a span, with the digits that packets need.
fn time(seconds: f64) -> String {
    if seconds == 0.0 { "0 s".to_owned() } else { format!("{seconds:.3} s") }
}

/// Formats a span of time.
fn span(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        s if s < 0.9995 => ms(s * 1e3),
        s => format!("{} s", short(s)),
    }
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

const SHOWN_GAPS: usize = 5;
const SHOWN_PLAIN: usize = 25;
/// Most connections shown one by one.
const SHOWN_CONNECTIONS: usize = 10;
/// Most kinds of end told apart among the others.
const SHOWN_ENDS: usize = 8;
