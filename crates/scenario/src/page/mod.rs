//! Pages: recorded ones, dependency graphs, and generated ones.

mod generated;
mod graph;
mod har;

pub(crate) use generated::{Generated, SITES, Session, Shape, site};

use anabranch_sim::page::Page;
use anabranch_units::{Bytes, Duration};

/// Parses a page file: a HAR if its name ends in `.har`, a graph of WProf or Epload if in `.json`.
pub(crate) fn parse(name: &str, text: &str) -> Result<Page, String> {
    let page = match name.rsplit_once('.') {
        Some((_, "har")) => har::parse(text)?,
        Some((_, "json")) => graph::parse(text)?,
        _ => return Err("its name ends neither in .har nor in .json".to_owned()),
    };
    if page.total().get() > MOST_BYTES {
        return Err(format!("its objects have {} bytes; accepted are up to {MOST_BYTES}", page.total().get()));
    }
    page.check()?;
    Ok(page)
}

/// Parses a trace of an interactive session: each line has the time at which an object is requested \[s\] and its size
/// in bytes. Empty lines and lines that begin with `#` are skipped.
pub(crate) fn parse_session(text: &str) -> Result<Vec<(Duration, Bytes)>, String> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || {
            format!("line {} holds \"{}\"; accepted is a time in seconds and a size in bytes", number + 1, short(line))
        };
        let mut words = line.split_whitespace();
        let (Some(time), Some(size), None) = (words.next(), words.next(), words.next()) else { return Err(wrong()) };
        let time = time.parse().ok().and_then(seconds).ok_or_else(wrong)?;
        let size = size.parse().ok().filter(|&size| size <= MOST_BYTES_OF_ONE).ok_or_else(wrong)?;
        if all.len() == MOST_OBJECTS {
            return Err(format!("line {} exceeds the limit of {MOST_OBJECTS} objects", number + 1));
        }
        all.push((time, Bytes::new(size)));
    }
    match all.is_empty() {
        true => Err("it has no object".to_owned()),
        false => Ok(all),
    }
}

/// Converts seconds to a span of time; `None` above a day or below zero.
fn seconds(value: f64) -> Option<Duration> {
    (0.0..=86_400.0).contains(&value).then(|| Duration::from_secs_f64(value))
}

/// Converts milliseconds to a span of time; `None` above a day or below zero.
fn milliseconds(value: f64) -> Option<Duration> {
    seconds(value / 1e3)
}

/// Shortens a text for a message.
fn short(text: &str) -> String {
    let mut start: String = text.chars().take(60).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

/// Maximum number of objects of a page; pages have some hundred.
pub(crate) const MOST_OBJECTS: usize = 10_000;
/// Maximum size of an object in bytes.
const MOST_BYTES_OF_ONE: u64 = 1 << 30;
/// Maximum size of a page in bytes.
pub(crate) const MOST_BYTES: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_lines_of_time_and_size() {
        let at = |ms, size| (Duration::from_millis(ms), Bytes::new(size));
        let text = "# time_s size_bytes\n0.5 15000\n\n  1 200\n1.25\t0\n";
        assert_eq!(parse_session(text), Ok(vec![at(500, 15_000), at(1000, 200), at(1250, 0)]));
        for (text, said) in [
            ("", "it has no object"),
            ("1 2\n3\n", "line 2 holds \"3\"; accepted is a time in seconds and a size in bytes"),
            ("-1 2", "line 1 holds \"-1 2\"; accepted is a time in seconds and a size in bytes"),
            ("nan 2", "line 1 holds \"nan 2\"; accepted is a time in seconds and a size in bytes"),
            ("1 2000000000", "line 1 holds \"1 2000000000\"; accepted is a time in seconds and a size in bytes"),
            ("1 2 3", "line 1 holds \"1 2 3\"; accepted is a time in seconds and a size in bytes"),
        ] {
            assert_eq!(parse_session(text), Err(said.to_owned()));
        }
    }

    #[test]
    fn what_is_no_page_is_refused() {
        assert_eq!(parse("x.txt", "{}"), Err("its name ends neither in .har nor in .json".to_owned()));
        for name in ["x.har", "x.json"] {
            for text in ["", "{", "[]", "null", "{}", "\u{0}", "{\"log\": 3}", "{\"log\": {}, \"objs\": 7}"] {
                assert!(parse(name, text).is_err(), "{name} {text}");
            }
            let deep = "[".repeat(100_000);
            assert!(parse(name, &deep).is_err(), "{name}: nesting without end");
        }
    }
}
