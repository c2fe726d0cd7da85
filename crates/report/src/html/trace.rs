//! Course of a transfer as the page's script draws it (`assets/trace.js`): data over time, limits as bands, bytes in
//! flight. Long ones are thinned, and the notes below the drawing say how.

use super::compact::share_column;
use anabranch_lab::timeline::Copied;
use anabranch_why::{Interval, LIMITS, Limit, PathTime, Sent, Trace};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Drawing of a transfer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceDrawing {
    /// Title, one line.
    pub title: String,
    /// Words below it.
    pub notes: Vec<String>,
    /// Data as JSON that may stand inside a script element.
    data: String,
}

/// Time of a transfer by limit.
pub(super) struct Limits {
    /// Time of the intervals' zero, in nanoseconds since 1970.
    pub begin: u64,
    /// Time at which the drawing begins, counted from there.
    pub from_ns: u64,
    pub connection: Vec<Interval>,
    pub paths: Vec<PathTime>,
}

/// Time limits of the drawing are microseconds from `begin`.
struct Clock {
    begin: u64,
}

/// Strokes of data that are drawn at most; of those sent again and of those that were lost, half as many each.
const STROKES: usize = 20_000;
/// Steps of a line that are drawn at most.
const STEPS: usize = 4_000;
/// Bands in a row that are drawn at most.
const BANDS: usize = 2_000;
/// Neighbours are joined only as long as a stroke takes less than this part of the whole time.
const SHORT: u64 = 500;

impl TraceDrawing {
    /// Draws a trace with the limits of its time. `about` says where the numbers of packets are to be found.
    pub(super) fn of(title: &str, trace: &Trace, limits: Option<&Limits>, about: &str) -> Self {
        let first = trace.sent.iter().map(|it| it.at).chain(trace.heard.iter().map(|it| it.at)).min().unwrap_or(0);
        let clock = Clock { begin: limits.map_or(first, |limits| (limits.begin + limits.from_ns).min(first)) };
        let mut notes = vec![
            "A stroke is a packet with data when it left: from its first byte to its last. Click on one for the \
             packets that carried its bytes."
                .to_owned(),
        ];
        if !about.is_empty() {
            notes.push(about.to_owned());
        }
        if trace.joined {
            let words =
                "The capture is long: packets of one burst were read together, and have the number of the first.";
            notes.push(words.to_owned());
        }
        let (strokes, thinned, left_out) = strokes(trace);
        notes.extend(thinned);
        let (acked, edge) = answers(trace, &clock, &mut notes);
        let data = json!({
            "paths": trace.paths,
            "files": trace.files,
            "subflows": trace.subflows.iter().map(|it| json!({ "path": it.path, "ends": it.ends, "files": it.files }))
                .collect::<Vec<_>>(),
            "sent": sent(&strokes, &clock),
            "acked": acked,
            "edge": edge,
            "flight": flight(trace, &clock, &mut notes),
            "thinned": left_out,
            "times": limits.map_or(Vec::new(), |limits| times(&limits.connection)),
            "limits": LIMITS.iter().map(|it| json!({ "name": it.name, "meaning": it.meaning })).collect::<Vec<_>>(),
            "rows": limits.map_or(Vec::new(), |limits| rows(limits, &trace.paths, &clock, &mut notes)),
        });
        TraceDrawing { title: title.to_owned(), notes, data: data.to_string().replace('<', "\\u003c") }
    }
}

impl Clock {
    /// Microseconds since the beginning.
    fn micros(&self, at: u64) -> u64 {
        at.saturating_sub(self.begin) / 1000
    }
}

/// Packets that are drawn as one stroke: new data of one subflow, without a gap.
struct Stroke<'a> {
    first: &'a Sent,
    last: &'a Sent,
    count: usize,
}

impl Stroke<'_> {
    fn from(&self) -> u64 {
        self.first.from.unwrap_or(0)
    }

    fn end(&self) -> u64 {
        self.last.from.unwrap_or(0) + self.last.length
    }
}

/// Strokes in the order of time, words about what was joined or left out, and whether any was left out.
fn strokes(trace: &Trace) -> (Vec<Stroke<'_>>, Option<String>, bool) {
    let data: Vec<&Sent> = trace.sent.iter().filter(|it| it.from.is_some() && it.length > 0).collect();
    let plain = |it: &Sent| it.copy == Copied::New && it.arrived.is_some();
    let new = data.iter().filter(|it| plain(it)).count();
    let span = data.last().zip(data.first()).map_or(0, |(last, first)| last.at - first.at);
    let longest = if new > STROKES { span / SHORT } else { 0 };
    let mut strokes: Vec<Stroke<'_>> = Vec::new();
    // The stroke that grows on each subflow.
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    for it in data {
        let grows = open.get(&it.subflow).copied().filter(|index| {
            let stroke = &strokes[*index];
            longest > 0 && plain(it) && it.from == Some(stroke.end()) && it.at - stroke.first.at <= longest
        });
        match grows {
            Some(index) => (strokes[index].last, strokes[index].count) = (it, strokes[index].count + 1),
            None => {
                match plain(it) {
                    true => open.insert(it.subflow, strokes.len()),
                    false => open.remove(&it.subflow),
                };
                strokes.push(Stroke { first: it, last: it, count: 1 });
            }
        }
    }
    // What cannot be joined is thinned; repeats and losses are few beside new data, and are kept as long as they are.
    let kind = |stroke: &Stroke<'_>| (plain(stroke.first), stroke.first.lost);
    let mut counts: BTreeMap<(bool, bool), usize> = BTreeMap::new();
    strokes.iter().for_each(|stroke| *counts.entry(kind(stroke)).or_default() += 1);
    let every = |kind: (bool, bool)| counts[&kind].div_ceil(if kind.0 { STROKES } else { STROKES / 2 }).max(1);
    let said = thinned(new, counts.get(&(true, false)).copied().unwrap_or(0), &counts, &every);
    let left_out = counts.keys().any(|kind| every(*kind) > 1);
    let mut seen: BTreeMap<(bool, bool), usize> = BTreeMap::new();
    strokes.retain(|stroke| {
        let kind = kind(stroke);
        let place = seen.entry(kind).or_default();
        *place += 1;
        (*place - 1).is_multiple_of(every(kind))
    });
    (strokes, said, left_out)
}

/// Words about joined and thinned strokes.
fn thinned(
    new: usize,
    strokes: usize,
    counts: &BTreeMap<(bool, bool), usize>,
    every: &dyn Fn((bool, bool)) -> usize,
) -> Option<String> {
    let mut words = String::new();
    if strokes < new {
        words += &format!("{new} packets of new data are drawn as {strokes} strokes, each without a gap. ");
    }
    for (kind, what) in
        [((true, false), "stroke of new data"), ((false, false), "packet sent again"), ((false, true), "lost packet")]
    {
        if counts.contains_key(&kind) && every(kind) > 1 {
            words += &format!("One {what} in {} is drawn. ", every(kind));
        }
    }
    (!words.is_empty()).then(|| words.trim_end().to_owned())
}

/// Strokes as columns. Times, positions and numbers are differences to the stroke before.
fn sent(strokes: &[Stroke<'_>], clock: &Clock) -> Value {
    let each = |value: &dyn Fn(&Stroke<'_>) -> i64| strokes.iter().map(value).collect::<Vec<i64>>();
    let number = |sent: &Sent, end: usize| i64::from(sent.numbers[end]);
    let numbers = |end: usize| differences(each(&|it| number(it.first, end)));
    let beyond = |end: usize| each(&|it| (number(it.last, end) - number(it.first, end)).max(0));
    // Or that it was lost, or on its way when the capture ended.
    let way = |sent: &Sent| match sent.arrived {
        Some(at) => (at.saturating_sub(sent.at) / 1000) as i64,
        None if sent.lost => -1,
        None => -2,
    };
    let columns = [
        ("t", differences(each(&|it| clock.micros(it.first.at) as i64))),
        ("d", each(&|it| (clock.micros(it.last.at) - clock.micros(it.first.at)) as i64)),
        ("f", differences(each(&|it| it.from() as i64))),
        ("l", each(&|it| it.end().saturating_sub(it.from()) as i64)),
        ("s", each(&|it| it.first.subflow as i64)),
        ("k", each(&|it| it.first.copy as i64)),
        ("a", each(&|it| way(it.first))),
        ("c", each(&|it| it.count as i64)),
        ("n", numbers(0)),
        ("p", beyond(0)),
        ("m", numbers(1)),
        ("q", beyond(1)),
    ];
    object(strokes.len(), columns)
}

/// Steps of DATA_ACK and of the end of the receiver's window, as the sender saw them.
fn answers(trace: &Trace, clock: &Clock, notes: &mut Vec<String>) -> (Value, Value) {
    let mut acked = Vec::new();
    let mut edge: Vec<(u64, u64)> = Vec::new();
    let mut highest = 0;
    for it in &trace.heard {
        let Some(ack) = it.data_ack else { continue };
        if ack > highest {
            acked.push((it.at, ack));
        }
        highest = highest.max(ack);
        let end = it.window.map(|window| ack + window);
        // An old acknowledgment that was overtaken says nothing new.
        if let Some(end) = end.filter(|_| ack == highest)
            && edge.last().is_none_or(|(_, last)| *last != end)
        {
            edge.push((it.at, end));
        }
    }
    let mut said = |of: usize, what: &str| {
        let every = of.div_ceil(STEPS).max(1);
        if every > 1 {
            notes.push(format!("One {what} in {every} is drawn: the lowest of them."));
        }
        every
    };
    let lowest = |steps: &[(u64, u64)], every: usize| -> Value {
        let chunks = steps.chunks(every).filter_map(|some| some.iter().min_by_key(|(_, y)| *y));
        let kept: Vec<&(u64, u64)> = chunks.collect();
        let columns = [
            ("t", differences(kept.iter().map(|it| clock.micros(it.0) as i64).collect())),
            ("y", differences(kept.iter().map(|it| it.1 as i64).collect())),
        ];
        object(kept.len(), columns)
    };
    let every = said(acked.len(), "DATA_ACK");
    let drawn = lowest(&acked, every);
    let every = said(edge.len(), "change of the receiver's window");
    (drawn, lowest(&edge, every))
}

/// Bytes in flight and the window of each subflow: of many changes the largest.
fn flight(trace: &Trace, clock: &Clock, notes: &mut Vec<String>) -> Vec<Value> {
    let mut all = Vec::new();
    let mut most_every = 1;
    for subflow in 0..trace.subflows.len() {
        let steps: Vec<_> = trace.flight.iter().filter(|it| it.subflow == subflow).collect();
        let every = steps.len().div_ceil(STEPS).max(1);
        most_every = most_every.max(every);
        let kept: Vec<(u64, u64, u64)> = steps
            .chunks(every)
            .filter_map(|some| {
                let flight = some.iter().map(|it| it.in_flight).max()?;
                Some((some.first()?.at, flight, some.iter().map(|it| it.window).max()?))
            })
            .collect();
        let columns = [
            ("t", differences(kept.iter().map(|it| clock.micros(it.0) as i64).collect())),
            ("y", kept.iter().map(|it| it.1 as i64).collect()),
            ("w", kept.iter().map(|it| it.2 as i64).collect()),
        ];
        all.push(object(kept.len(), columns));
    }
    if most_every > 1 {
        notes.push(format!("In flight: the largest of up to {most_every} changes in a row."));
    }
    all
}

/// Bands of the connection and of each path.
fn rows(limits: &Limits, paths: &[String], clock: &Clock, notes: &mut Vec<String>) -> Vec<Value> {
    let of_paths = limits.paths.iter().map(|path| (path.path.as_str(), path.intervals.as_slice()));
    let all = [("connection", limits.connection.as_slice())].into_iter().chain(of_paths);
    let mut joined = false;
    let rows = all.map(|(name, intervals)| {
        let bands = bands(intervals);
        joined |= bands.len() < intervals.len();
        let at = |nanos: u64| clock.micros(limits.begin + nanos) as i64;
        let columns = [
            ("t", differences(bands.iter().map(|it| at(it.from_ns)).collect())),
            ("e", bands.iter().map(|it| at(it.to_ns) - at(it.from_ns)).collect()),
            ("k", bands.iter().map(|it| place(it.limit) as i64).collect()),
        ];
        let mut row = object(bands.len(), columns);
        row["name"] = json!(name);
        row["path"] = json!(paths.iter().position(|path| path == name));
        row
    });
    let rows = rows.collect();
    if joined {
        notes
            .push(format!("There are many short limits: a band is the one that took most of a {BANDS}th of the time."));
    }
    rows
}

/// Time of each limit, in the order of the table, in microseconds: exact, however bands are joined.
fn times(intervals: &[Interval]) -> Vec<u64> {
    let mut times = vec![0; LIMITS.len()];
    intervals.iter().for_each(|it| times[place(it.limit)] += it.to_ns - it.from_ns);
    times.into_iter().map(|nanos: u64| nanos / 1000).collect()
}

/// Intervals, or the longest limits of equal parts of the time where there are too many.
fn bands(intervals: &[Interval]) -> Vec<Interval> {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return Vec::new() };
    if intervals.len() <= BANDS {
        return intervals.to_vec();
    }
    let (begin, whole) = (first.from_ns, last.to_ns - first.from_ns);
    let edge = |part: usize| begin + (u128::from(whole) * part as u128 / BANDS as u128) as u64;
    let mut bands: Vec<Interval> = Vec::new();
    for part in 0..BANDS {
        let (from, to) = (edge(part), edge(part + 1));
        let begin = intervals.partition_point(|it| it.to_ns <= from);
        let mut times: BTreeMap<Limit, u64> = BTreeMap::new();
        for it in intervals[begin..].iter().take_while(|it| it.from_ns < to) {
            *times.entry(it.limit).or_default() += it.to_ns.min(to) - it.from_ns.max(from);
        }
        let Some((limit, _)) = times.into_iter().max_by_key(|(_, time)| *time) else { continue };
        match bands.last_mut() {
            Some(last) if last.limit == limit && last.to_ns == from => last.to_ns = to,
            _ => bands.push(Interval { from_ns: from, to_ns: to, limit, path: None }),
        }
    }
    bands
}

fn place(limit: Limit) -> usize {
    LIMITS.iter().position(|it| it.limit == limit).expect("each limit has a line")
}

/// The first number, then each less the one before.
fn differences(values: Vec<i64>) -> Vec<i64> {
    let mut last = 0;
    values.into_iter().map(|value| value - std::mem::replace(&mut last, value)).collect()
}

fn object<const N: usize>(length: usize, columns: [(&str, Vec<i64>); N]) -> Value {
    let mut object = Map::new();
    object.insert("length".to_owned(), json!(length));
    for (name, values) in columns {
        share_column(&mut object, name, values.into_iter().map(Value::from).collect());
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_why::{Heard, TracedFlow};

    /// New data without a gap, one packet of 1000 bytes each 10 µs, on one subflow or turn about on two.
    fn trace(packets: u64, subflows: u64) -> Trace {
        let sent = |n: u64| Sent {
            at: 1_000_000 + n * 10_000,
            arrived: Some(1_000_000 + n * 10_000 + 5_000_000),
            lost: false,
            subflow: (n % subflows) as usize,
            seq: 1 + n * 1000,
            length: 1000,
            from: Some(n * 1000),
            copy: Copied::New,
            flags: anabranch_why::Flags::default(),
            numbers: [n as u32 + 4, n as u32 + 5],
        };
        let ack = |n: u64| Heard {
            at: 11_000_000 + n * 10_000,
            subflow: 0,
            ack: 1 + n * 1000,
            window: Some(50_000),
            sack: None,
            data_ack: Some(n * 1000),
        };
        Trace {
            files: vec!["a.pcap".to_owned()],
            paths: vec!["wlan".to_owned()],
            subflows: vec![TracedFlow::default(); subflows as usize],
            sent: (0..packets).map(sent).collect(),
            heard: (0..packets).map(ack).collect(),
            ..Trace::default()
        }
    }

    fn drawn(trace: &Trace) -> (Value, String) {
        let drawing = TraceDrawing::of("test", trace, None, "");
        (serde_json::from_str(&drawing.data).expect("it is JSON"), drawing.notes.join(" "))
    }

    /// Sum of a column of differences up to each place.
    fn column(value: &Value, length: usize) -> Vec<i64> {
        let one = |n: usize| value.as_array().map_or(value.as_i64(), |all| all[n].as_i64()).unwrap_or(0);
        (0..length).map(one).collect()
    }

    #[test]
    fn every_packet_of_a_short_transfer_is_a_stroke() {
        let mut trace = trace(4, 1);
        trace.sent[2].copy = Copied::Retransmitted;
        (trace.sent[3].arrived, trace.sent[3].lost) = (None, true);
        let (data, notes) = drawn(&trace);
        let sent = &data["sent"];
        assert_eq!(sent["length"], 4);
        assert_eq!(sent["t"], json!([0, 10, 10, 10]));
        assert_eq!(sent["f"], json!([0, 1000, 1000, 1000]));
        assert_eq!((&sent["l"], &sent["c"], &sent["d"]), (&json!(1000), &json!(1), &json!(0)));
        assert_eq!((&sent["k"], &sent["a"]), (&json!([0, 0, 1, 0]), &json!([5000, 5000, 5000, -1])));
        assert_eq!((&sent["n"], &sent["m"]), (&json!([4, 1, 1, 1]), &json!([5, 1, 1, 1])));
        assert_eq!(data["edge"]["y"], json!([50_000, 1000, 1000, 1000]));
        assert!(!notes.contains("drawn"), "{notes}");
    }

    /// Joined strokes hold every byte and every packet; the notes say so.
    #[test]
    fn long_transfers_are_joined_without_losing_a_byte() {
        let (data, notes) = drawn(&trace(60_000, 1));
        let length = data["sent"]["length"].as_u64().expect("a number") as usize;
        assert!((500..=STROKES).contains(&length), "{length}");
        assert_eq!(column(&data["sent"]["l"], length).iter().sum::<i64>(), 60_000_000);
        assert_eq!(column(&data["sent"]["c"], length).iter().sum::<i64>(), 60_000);
        assert!(notes.contains(&format!("60000 packets of new data are drawn as {length} strokes")), "{notes}");
        assert!(notes.contains("One DATA_ACK in 15 is drawn"), "{notes}");
        assert_eq!(data["thinned"], false, "joined, and all there");
    }

    /// Strokes that cannot be joined are left out in equal measure, and losses are kept.
    #[test]
    fn what_cannot_be_joined_is_thinned_and_said() {
        let mut trace = trace(60_000, 2);
        (trace.sent[30_001].arrived, trace.sent[30_001].lost) = (None, true);
        let (data, notes) = drawn(&trace);
        let length = data["sent"]["length"].as_u64().expect("a number") as usize;
        assert!((19_000..=STROKES + 1).contains(&length), "{length}");
        assert_eq!(column(&data["sent"]["a"], length).iter().filter(|way| **way == -1).count(), 1);
        assert!(notes.contains("One stroke of new data in 3 is drawn."), "{notes}");
        assert_eq!(data["thinned"], true);
    }

    #[test]
    fn many_short_bands_become_the_longest_of_each_part() {
        let interval = |n: u64| Interval {
            from_ns: n * 100,
            to_ns: n * 100 + 100,
            limit: if n.is_multiple_of(4) { Limit::Scheduler } else { Limit::PathFull },
            path: None,
        };
        let few: Vec<Interval> = (0..4).map(interval).collect();
        assert_eq!(bands(&few), few);
        let many: Vec<Interval> = (0..40_000).map(interval).collect();
        assert_eq!(times(&many).iter().sum::<u64>(), 4000);
        assert_eq!(times(&many)[place(Limit::Scheduler)], 1000, "a quarter, though no band shows it");
        let joined = bands(&many);
        assert_eq!(joined, [Interval { from_ns: 0, to_ns: 4_000_000, limit: Limit::PathFull, path: None }]);
    }
}
