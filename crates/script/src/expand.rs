//! Loops, variables and included files.

use crate::error::ScriptError;
use crate::text::{Line, Source, without_comment};
use crate::value;
use anabranch_units::input;
use std::path::Path;

/// A script as it nests.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Line(Line),
    /// `repeat COUNT as NAME` … `end`; the number runs from 0.
    Repeat {
        count: u64,
        name: String,
        body: Vec<Item>,
    },
}

/// Greatest depth to which files include each other and loops nest.
const MAX_DEPTH: usize = 8;
/// Turns of one loop.
const MAX_TURNS: u64 = 1_000_000;
/// Bytes of one file.
const MAX_SIZE: usize = 1 << 20;

/// Variables in scope, innermost last.
pub(crate) type Variables = Vec<(String, i128)>;

/// Reads `source` and what it includes from `folder`.
pub(crate) fn items(source: &Source, folder: Option<&Path>, depth: usize) -> Result<Vec<Item>, ScriptError> {
    if source.text.len() > MAX_SIZE {
        return Err(ScriptError::unreadable(&source.name, "a script has at most 1 MiB"));
    }
    let mut open: Vec<(u64, String, Line, Vec<Item>)> = Vec::new();
    let mut items = Vec::new();
    let mut start = 0;
    for (number, raw) in source.text.split_inclusive('\n').enumerate() {
        let text = without_comment(raw.trim_end_matches(['\n', '\r']));
        let line = Line { source: source.clone(), number: number + 1, start, text: text.to_owned(), verbatim: true };
        start += raw.len();
        let words: Vec<&str> = text.split_whitespace().collect();
        let whole = 0..text.len();
        match words.first().copied() {
            None => {}
            Some("include") => {
                let [_, name] = words[..] else {
                    return Err(ScriptError::refused(
                        &line,
                        &whole,
                        "`include` takes a file",
                        "write: include server.inc",
                    ));
                };
                items.extend(included(&line, name, folder, depth)?);
            }
            Some("repeat") => {
                let parsed = match words[..] {
                    [_, count, "as", name] => value::number(count).map(|count| (count, name)),
                    _ => None,
                };
                let Some((count, name)) = parsed.filter(|(count, _)| (0..=i128::from(MAX_TURNS)).contains(count))
                else {
                    let help = format!("write: repeat 100 as i, with at most {MAX_TURNS} turns");
                    return Err(ScriptError::refused(&line, &whole, "`repeat` takes a number and a name", help));
                };
                if open.len() + depth >= MAX_DEPTH {
                    return Err(ScriptError::refused(&line, &whole, "loops are nested too deeply", "at most 8 levels"));
                }
                // Items from here on belong to the body; those before wait in `open` until its `end`.
                open.push((count as u64, name.to_owned(), line, std::mem::take(&mut items)));
            }
            Some("end") => {
                let Some((count, name, _, outer)) = open.pop() else {
                    return Err(ScriptError::refused(&line, &whole, "`end` without `repeat`", "remove it"));
                };
                let body = std::mem::replace(&mut items, outer);
                items.push(Item::Repeat { count, name, body });
            }
            Some(_) => items.push(Item::Line(line)),
        }
    }
    if let Some((_, _, line, _)) = open.pop() {
        let whole = 0..line.text.len();
        return Err(ScriptError::refused(&line, &whole, "`repeat` without `end`", "close it with a line `end`"));
    }
    Ok(items)
}

fn included(line: &Line, name: &str, folder: Option<&Path>, depth: usize) -> Result<Vec<Item>, ScriptError> {
    let whole = 0..line.text.len();
    let Some(folder) = folder else {
        return Err(ScriptError::refused(
            line,
            &whole,
            "a script that is not in a file cannot include others",
            "run it from a file",
        ));
    };
    if depth + 1 >= MAX_DEPTH {
        return Err(ScriptError::refused(line, &whole, "files include each other too deeply", "at most 8 levels"));
    }
    let path = folder.join(name);
    let text = input::text(&path, input::WRITTEN).map_err(|error| {
        let problem = format!("cannot read {}: {error}", path.display());
        ScriptError::refused(line, &whole, problem, "the path counts from the including file's folder")
    })?;
    let source = Source { name: path.display().to_string().into(), text: text.into() };
    items(&source, path.parent(), depth + 1)
}

/// `line` with each `{…}` replaced by its value.
pub(crate) fn substitute(line: &Line, variables: &Variables) -> Result<Line, ScriptError> {
    if !line.text.contains('{') {
        return Ok(line.clone());
    }
    let mut text = String::new();
    let mut rest = line.text.as_str();
    while let Some(open) = rest.find('{') {
        let at = line.text.len() - rest.len() + open;
        text += &rest[..open];
        let Some(length) = rest[open..].find('}') else {
            return Err(ScriptError::refused(line, &(at..at + 1), "`{` without `}`", "close it: {i}"));
        };
        let expression = &rest[open + 1..open + length];
        let value = Sum::evaluate(expression, variables).ok_or_else(|| {
            let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            let known = if names.is_empty() { "none here".to_owned() } else { names.join(", ") };
            let help = format!("numbers and loop variables ({known}) with + - * / % and parentheses");
            ScriptError::refused(line, &(at..at + length + 1), format!("`{expression}` cannot be evaluated"), help)
        })?;
        text += &value.to_string();
        rest = &rest[open + length + 1..];
    }
    text += rest;
    Ok(Line { text, verbatim: false, ..line.clone() })
}

/// A sum of products, read from left to right.
struct Sum<'a> {
    rest: &'a str,
    variables: &'a Variables,
    depth: usize,
}

impl Sum<'_> {
    fn evaluate(text: &str, variables: &Variables) -> Option<i128> {
        let mut sum = Sum { rest: text, variables, depth: 0 };
        let value = sum.sum()?;
        sum.rest.trim().is_empty().then_some(value)
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let next = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.product()?;
            value = if sign == '+' { value.checked_add(next)? } else { value.checked_sub(next)? };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.atom()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.atom()?;
            value = match sign {
                '*' => value.checked_mul(next)?,
                '/' => value.checked_div(next)?,
                _ => value.checked_rem(next)?,
            };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<i128> {
        if self.take(&['(']).is_some() {
            self.depth += 1;
            let value = if self.depth < 16 { self.sum()? } else { return None };
            self.depth -= 1;
            return self.take(&[')']).map(|_| value);
        }
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let known = self.variables.iter().rev().find(|(name, _)| name == word).map(|(_, value)| *value);
        known.or_else(|| value::number(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() {
        let variables = vec![("i".to_owned(), 7)];
        for (text, value) in [
            ("i", Some(7)),
            ("1024+i*2", Some(1038)),
            ("(i+1)*2 % 5", Some(1)),
            ("i/0", None),
            ("j", None),
            ("1 2", None),
        ] {
            assert_eq!(Sum::evaluate(text, &variables), value, "{text}");
        }
    }

    #[test]
    fn loops_nest() {
        let source =
            Source { name: "t".into(), text: "repeat 2 as i\na\nrepeat 3 as j\nb{i+j}\nend\nend\nc # not d\n".into() };
        let items = items(&source, None, 0).expect("a good script");
        assert!(matches!(&items[..], [Item::Repeat { count: 2, body, .. }, Item::Line(line)]
            if body.len() == 2 && line.text == "c" && line.number == 7));
    }
}
