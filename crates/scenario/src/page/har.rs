//! HTTP Archives, as saved by a browser's network panel (HAR 1.2, as written by Firefox and Chrome).
//!
//! A HAR has the time of each request and the size of each object, but not the dependencies. If the browser wrote
//! `_initiator` (Chrome), the object waits for the initiator: for its end if that came before the request, or else for
//! its first byte, since then a parser found the reference during the download. Without it, an object waits for the
//! last one that had ended before its request, if any. The time in between is the processing delay and stays as it was;
//! the simulation determines the times of downloads. All objects count as of one origin.

use super::{MOST_BYTES_OF_ONE, MOST_OBJECTS, milliseconds, short};
use anabranch_sim::page::{Activity, After, HEADER, Moment, Object, Page, REQUEST, Work};
use anabranch_units::{Bytes, Duration};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    pages: Vec<PageRecord>,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct PageRecord {
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pageref: Option<String>,
    started_date_time: String,
    /// Time in milliseconds.
    time: f64,
    request: Request,
    response: Response,
    #[serde(default)]
    timings: Timings,
    #[serde(rename = "_initiator")]
    initiator: Option<Value>,
    /// `memory` or `disk` for an object that did not cross the network.
    #[serde(rename = "_fromCache")]
    from_cache: Option<Value>,
}

/// Sizes of a request; -1 if unknown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    url: String,
    headers_size: Option<f64>,
    body_size: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    headers_size: Option<f64>,
    body_size: Option<f64>,
    #[serde(rename = "_transferSize")]
    transfer_size: Option<f64>,
    content: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    size: Option<f64>,
}

/// Times in milliseconds; -1 if absent.
#[derive(Default, Deserialize)]
struct Timings {
    receive: Option<f64>,
}

/// Entry in the order of time.
struct Fetched {
    url: String,
    /// Time since the first request.
    start: Duration,
    first_byte: Duration,
    end: Duration,
    work: Work,
    /// URLs that may have requested it, the likeliest first.
    initiators: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<Page, String> {
    let har: Har = serde_json::from_str(text).map_err(|error| format!("it is not a HAR: {error}"))?;
    let mut entries = har.log.entries;
    // If there are several pages, only the first counts: they were loaded one after the other.
    if let Some(first) = har.log.pages.first().and_then(|page| page.id.as_ref())
        && entries.iter().any(|entry| entry.pageref.as_ref() == Some(first))
    {
        entries.retain(|entry| entry.pageref.as_ref().is_none_or(|page| page == first));
    }
    if entries.len() > MOST_OBJECTS {
        return Err(format!("it has {} entries; accepted are up to {MOST_OBJECTS}", entries.len()));
    }
    let place = |number: usize, problem: String| format!("log.entries[{number}]: {problem}");
    let mut starts = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let text = &entry.started_date_time;
        let problem =
            || format!("`startedDateTime` is \"{}\"; accepted is a time like 2026-01-31T12:00:00.000Z", short(text));
        starts.push(instant(text).ok_or_else(|| place(number, problem()))?);
    }
    let first = starts.iter().copied().min().ok_or("it has no entries")?;
    let mut fetched = Vec::new();
    for (number, (entry, start)) in entries.into_iter().zip(starts).enumerate() {
        fetched.push(fetch(entry, start - first).map_err(|problem| place(number, problem))?);
    }
    // Stable: entries of the same millisecond stay in the order of the file.
    fetched.sort_by_key(|it| it.start);
    Ok(Page { activities: graph(&fetched) })
}

/// Converts an entry; `start` is in milliseconds.
fn fetch(entry: Entry, start: i64) -> Result<Fetched, String> {
    let start = milliseconds(start as f64).ok_or("it was requested more than a day after the first one")?;
    let took = milliseconds(entry.time.max(0.0)).ok_or("`time` is not between 0 and a day in milliseconds")?;
    let receive = entry.timings.receive.unwrap_or(0.0).clamp(0.0, entry.time.max(0.0));
    let receive = milliseconds(receive).unwrap_or(Duration::ZERO);
    let scheme = entry.request.url.split(':').next().unwrap_or_default();
    let local =
        entry.from_cache.as_ref().is_some_and(|value| !value.is_null()) || matches!(scheme, "data" | "blob" | "about");
    let work = if local { Work::Compute(took) } else { Work::Download(object(&entry)?) };
    let end = start + took;
    let first_byte = start + took.saturating_sub(receive);
    let initiators = entry.initiator.as_ref().map(named).unwrap_or_default();
    Ok(Fetched { url: entry.request.url, start, first_byte, end, work, initiators })
}

fn object(entry: &Entry) -> Result<Object, String> {
    let Response { headers_size, body_size, transfer_size, content } = &entry.response;
    let known = |size: &Option<f64>| size.filter(|&size| size >= 0.0);
    let header = known(headers_size).map_or(HEADER.get() as f64, |size| size);
    let body = known(body_size)
        .or_else(|| known(transfer_size).map(|all| (all - header).max(0.0)))
        .or_else(|| known(&content.as_ref().and_then(|content| content.size)))
        .unwrap_or(0.0);
    let request = known(&entry.request.headers_size).filter(|&size| size > 0.0).unwrap_or(REQUEST.get() as f64)
        + known(&entry.request.body_size).unwrap_or(0.0);
    let bytes = |what: &str, size: f64| match size <= MOST_BYTES_OF_ONE as f64 {
        true => Ok(Bytes::new(size.round() as u64)),
        false => Err(format!("{what} has {size} bytes; accepted are up to {MOST_BYTES_OF_ONE}")),
    };
    Ok(Object {
        size: bytes("the response", body)?,
        request: bytes("the request", request)?.max(Bytes::new(1)),
        header: bytes("the response's header", header)?,
    })
}

/// Returns the URLs in an initiator: its own, then those on the stack of the script.
fn named(initiator: &Value) -> Vec<String> {
    let url = |value: &Value| value.get("url").and_then(Value::as_str).map(str::to_owned);
    let mut all: Vec<String> = url(initiator).into_iter().collect();
    let mut stack = initiator.get("stack");
    for _ in 0..MOST_STACKS {
        let Some(frames) = stack else { break };
        all.extend(frames.get("callFrames").and_then(Value::as_array).into_iter().flatten().filter_map(url));
        stack = frames.get("parent");
    }
    all
}

/// Returns the activities with their dependencies.
fn graph(fetched: &[Fetched]) -> Vec<Activity> {
    // If a URL was fetched several times, the last fetch before the object counts: later ones overwrite.
    let mut by_url: BTreeMap<&str, usize> = BTreeMap::new();
    // Ends of earlier entries with their numbers, to find the last one before a time.
    let mut ends: BTreeMap<(Duration, usize), ()> = BTreeMap::new();
    let mut activities = Vec::new();
    for (number, it) in fetched.iter().enumerate() {
        let initiator = it.initiators.iter().find_map(|url| by_url.get(url.as_str())).copied();
        let ended = || ends.range(..=(it.start, number)).next_back().map(|((_, other), ())| *other);
        let (parent, moment, since) = match initiator {
            Some(parent) if fetched[parent].end <= it.start => (Some(parent), Moment::End, fetched[parent].end),
            Some(parent) => (Some(parent), Moment::FirstByte, fetched[parent].first_byte),
            None => match ended() {
                Some(parent) => (Some(parent), Moment::End, fetched[parent].end),
                None => (None, Moment::Begin, Duration::ZERO),
            },
        };
        let gap = it.start.saturating_sub(since);
        let after = parent.map(|activity| After { activity, moment, delay: gap });
        let begin = if parent.is_none() { gap } else { Duration::ZERO };
        activities.push(Activity { begin, after: after.into_iter().collect(), work: it.work });
        by_url.insert(&it.url, number);
        ends.insert((it.end, number), ());
    }
    activities
}

/// Parses an ISO 8601 date and time with its offset; returns milliseconds since 1970.
fn instant(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let zone = time.rfind(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, second) = (digits(parts.next()?)?, digits(parts.next()?)?, parts.next()?);
    let (whole, fraction) = second.split_once('.').unwrap_or((second, ""));
    let millis = match fraction {
        "" => 0,
        _ => digits(format!("{fraction:0<3}").get(..3)?)?,
    };
    let second = digits(whole)?;
    let sensible = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sensible || hour > 24 || minute > 59 || second > 60 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let (sign, hours) = (if zone.starts_with('-') { -1 } else { 1 }, &zone[1..]);
            let (hours, minutes) = hours.split_once(':').or_else(|| hours.split_at_checked(2))?;
            sign * (digits(hours)? * 60 + digits(minutes)?)
        }
    };
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute - offset) * 60 + second;
    Some(seconds * 1000 + millis)
}

fn digits(text: &str) -> Option<i64> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that the leap
/// day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// Maximum number of chained asynchronous stacks.
const MOST_STACKS: usize = 32;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Returns an entry from `start` to `end` milliseconds after noon.
    fn entry(url: &str, start: u64, end: u64, more: &str) -> String {
        format!(
            r#"{{"startedDateTime": "2026-01-31T12:00:{:02}.{:03}Z", "time": {}, "request": {{"url": "{url}"}},
            "response": {{"bodySize": {}}} {more}}}"#,
            start / 1000,
            start % 1000,
            end - start,
            start + 1
        )
    }

    fn read(entries: &[String]) -> Vec<Activity> {
        super::super::parse("x.har", &format!(r#"{{"log": {{"entries": [{}]}}}}"#, entries.join(",")))
            .unwrap()
            .activities
    }

    fn after(activity: usize, moment: Moment, delay: u64) -> Vec<After> {
        vec![After { activity, moment, delay: ms(delay) }]
    }

    #[test]
    fn dates_are_counted_from_1970() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-02T00:00:00.5Z", 86_400_500),
            ("2000-03-01T00:00:00.000Z", 951_868_800_000),
            ("2015-02-22T19:28:12.136-08:00", 1_424_662_092_136),
            ("2024-02-29T12:00:00.1239999+0100", 1_709_204_400_123),
        ] {
            assert_eq!(instant(text), Some(millis), "{text}");
        }
        let odd = [
            "",
            "2015-02-22",
            "2015-02-22T19:28:12",
            "2015-13-22T19:28:12Z",
            "yesterdayTnoonZ",
            "2015-02-22T19:28:-1Z",
            "T::Z",
            "2015-02-22T1:2:3.é4Z",
        ];
        for text in odd {
            assert_eq!(instant(text), None, "{text}");
        }
    }

    /// Without initiators, the first object and one in parallel wait for no other, and one after both waits for the one
    /// that ended last.
    #[test]
    fn without_initiators_an_object_waits_for_the_last_that_had_ended() {
        let page = read(&[
            entry("a", 0, 100, ""),
            entry("b", 40, 90, ""),
            entry("d", 130, 200, ""),
            entry("c", 100, 180, ""),
            entry("e", 185, 190, ""),
        ]);
        let waits: Vec<_> = page.iter().map(|it| (it.begin, it.after.clone())).collect();
        let none = Duration::ZERO;
        assert_eq!(waits[0], (none, Vec::new()));
        assert_eq!(waits[1], (ms(40), Vec::new()));
        assert_eq!(waits[2], (none, after(0, Moment::End, 0)), "c, which began the moment a had ended");
        assert_eq!(waits[3], (none, after(0, Moment::End, 30)), "d");
        assert_eq!(waits[4], (none, after(2, Moment::End, 5)), "e after c");
        let sizes: Vec<u64> = page
            .iter()
            .filter_map(|it| match it.work {
                Work::Download(object) => Some(object.size.get()),
                Work::Compute(_) => None,
            })
            .collect();
        assert_eq!(sizes, [1, 41, 101, 131, 186], "in the order of time");
    }

    #[test]
    fn initiators_name_the_parent() {
        let by = |url: &str| format!(r#", "_initiator": {{"type": "parser", "url": "{url}"}}"#);
        let script = r#", "_initiator": {"type": "script", "stack": {"callFrames": [{"url": "nowhere"}], "parent": {"callFrames": [{"url": "c"}]}}}"#;
        let page = read(&[
            entry("a", 0, 100, r#", "timings": {"receive": 60}"#),
            entry("b", 10, 20, ""),
            entry("c", 70, 120, &by("a")),
            entry("d", 150, 160, script),
            entry("e", 150, 160, r#", "_initiator": {"type": "other"}"#),
        ]);
        assert_eq!(page[2].after, after(0, Moment::FirstByte, 30), "a was still coming, its first byte at 40 ms");
        assert_eq!(page[3].after, after(2, Moment::End, 30), "by the script c");
        assert_eq!(page[4].after, after(2, Moment::End, 30), "by time");
        assert!(page[1].after.is_empty() && page[1].begin == ms(10));
    }

    #[test]
    fn what_did_not_cross_the_network_takes_time_alone() {
        let page = read(&[
            entry("a", 0, 100, ""),
            entry("data:image/png;base64,xyz", 100, 103, ""),
            entry("b", 103, 110, r#", "_fromCache": "memory""#),
            entry("c", 111, 140, ""),
        ]);
        assert_eq!((page[1].work, page[2].work), (Work::Compute(ms(3)), Work::Compute(ms(7))));
        assert_eq!(page[3].after, after(2, Moment::End, 1));
    }

    #[test]
    fn sizes_are_taken_where_they_are_known() {
        let sizes = |response: &str| {
            let text = format!(
                r#"{{"log": {{"entries": [{{"startedDateTime": "2026-01-31T12:00:00Z", "time": 5,
                "request": {{"url": "a", "headersSize": -1, "bodySize": 20}}, "response": {response}}}]}}}}"#
            );
            match parse(&text).unwrap().activities[0].work {
                Work::Download(Object { size, request, header }) => (size.get(), request.get(), header.get()),
                Work::Compute(_) => panic!("it was downloaded"),
            }
        };
        assert_eq!(sizes(r#"{"bodySize": 700, "headersSize": 200, "content": {"size": 3000}}"#), (700, 420, 200));
        assert_eq!(sizes(r#"{"bodySize": -1, "headersSize": -1, "_transferSize": 1000}"#), (650, 420, 350));
        assert_eq!(sizes(r#"{"bodySize": -1, "content": {"size": 3000}}"#), (3000, 420, 350));
        assert_eq!(sizes("{}"), (0, 420, 350));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = |entries: &str| parse(&format!(r#"{{"log": {{"entries": [{entries}]}}}}"#)).unwrap_err();
        let good = entry("a", 0, 10, "");
        assert_eq!(said(""), "it has no entries");
        assert_eq!(
            said(&format!("{good}, {}", good.replace("2026-01-31T", "soon "))),
            "log.entries[1]: `startedDateTime` is \"soon 12:00:00.000Z\"; accepted is a time like \
             2026-01-31T12:00:00.000Z"
        );
        assert_eq!(
            said(&format!("{good}, {}", good.replace("2026", "2027"))),
            "log.entries[1]: it was requested more than a day after the first one"
        );
        assert_eq!(
            said(&good.replace("\"time\": 10", "\"time\": 1e99")),
            "log.entries[0]: `time` is not between 0 and a day in milliseconds"
        );
        assert_eq!(
            said(&good.replace("\"bodySize\": 1", "\"bodySize\": 1e12")),
            "log.entries[0]: the response has 1000000000000 bytes; accepted are up to 1073741824"
        );
        assert!(said("{}").starts_with("it is not a HAR: missing field `startedDateTime` at line 1"));
    }

    #[test]
    fn of_several_pages_the_first_is_taken() {
        let text = format!(
            r#"{{"log": {{"pages": [{{"id": "p1"}}, {{"id": "p2"}}], "entries": [{}, {}]}}}}"#,
            entry("a", 0, 10, r#", "pageref": "p1""#),
            entry("b", 20, 30, r#", "pageref": "p2""#)
        );
        assert_eq!(parse(&text).unwrap().activities.len(), 1);
    }

    /// Texts that are cut off, changed or repeated give a page that can be loaded, or an error.
    #[test]
    fn no_text_makes_it_panic() {
        let by = r#", "_initiator": {"type": "parser", "url": "a"}, "timings": {"receive": -1}"#;
        let entries = [entry("a", 0, 100, ""), entry("b", 40, 90, by), entry("a", 100, 100, by)].join(",");
        let text = format!(r#"{{"log": {{"entries": [{entries}]}}}}"#);
        let mut stream = anabranch_units::Seed(1).stream("har");
        let mut pages = 0;
        for _ in 0..20_000 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + stream.below(3) {
                let at = stream.below(bytes.len() as u64) as usize;
                match stream.below(4) {
                    0 => bytes[at] = b"0123456789-+.eE:\"T,Z{}"[stream.below(22) as usize],
                    1 => bytes.truncate(at + 1),
                    2 => bytes.insert(at, b'9'),
                    _ => {
                        bytes.remove(at);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            if let Ok(page) = super::super::parse("x.har", &String::from_utf8_lossy(&bytes)) {
                assert_eq!(page.check(), Ok(()));
                pages += 1;
            }
        }
        assert!((100..19_900).contains(&pages), "some are still pages: {pages}");
    }
}
