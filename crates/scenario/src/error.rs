//! Errors in a scenario: problem, place and accepted values.

use miette::{Diagnostic, NamedSource, SourceSpan};
use std::ops::Range;
use std::sync::Arc;

/// Error in a scenario. Its diagnostic points at the place in the file or in the `--set`.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
pub struct ScenarioError {
    problem: String,
    #[help]
    help: Option<String>,
    #[source_code]
    source_code: Option<Arc<NamedSource<String>>>,
    #[label("here")]
    place: Option<SourceSpan>,
}

/// Error in a scenario before the text of its place is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Place in [`Sources`], if there is one.
    pub span: Option<Range<usize>>,
    /// The problem.
    pub problem: String,
    /// Accepted values.
    pub help: Option<String>,
}

/// Texts of a scenario in one sequence of places: the files, then each `--set`.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Number of texts that are files.
    files: usize,
    /// Name, first byte and text.
    texts: Vec<(String, usize, String)>,
}

impl ScenarioError {
    /// Makes an error without a place, such as for a file that cannot be read.
    pub fn plain(problem: impl Into<String>, help: Option<String>) -> Self {
        ScenarioError { problem: problem.into(), help, source_code: None, place: None }
    }

    /// Returns the accepted values.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the name of the text that the error is in, and the line and column of its place, both counted from 1.
    pub fn place(&self) -> Option<(&str, usize, usize)> {
        let (source, place) = (self.source_code.as_ref()?, self.place.as_ref()?);
        let before = source.inner().get(..place.offset())?;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Some((source.name(), before.matches('\n').count() + 1, column))
    }

    /// Returns the text at the place of the error.
    pub fn quoted(&self) -> Option<&str> {
        let (source, place) = (self.source_code.as_ref()?, self.place.as_ref()?);
        source.inner().get(place.offset()..place.offset() + place.len())
    }
}

impl Problem {
    /// Makes an error at a place.
    pub fn at(span: &Range<usize>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Problem { span: Some(span.clone()), problem: problem.into(), help: Some(help.into()) }
    }

    /// Rewords a message of the TOML reader or of serde.
    pub fn from_toml(error: &toml::de::Error) -> Self {
        let (problem, help) = reword(error.message());
        Problem { span: error.span(), problem, help }
    }
}

impl Sources {
    /// Adds a file, before any `--set`, and returns the place of its first byte.
    pub fn push_file(&mut self, name: &str, text: &str) -> usize {
        self.files += 1;
        self.push(name, text)
    }

    /// Adds a text and returns the place of its first byte.
    pub fn push(&mut self, name: &str, text: &str) -> usize {
        let start = self.next();
        self.texts.push((name.to_owned(), start, text.to_owned()));
        start
    }

    /// Returns the place of the first byte of the next text.
    pub fn next(&self) -> usize {
        // One byte lies between texts, so that the end of one is not the beginning of the next.
        self.texts.last().map_or(0, |(_, start, text)| start + text.len() + 1)
    }

    /// Returns true if the place is in a file.
    pub fn is_in_file(&self, span: &Range<usize>) -> bool {
        self.texts.get(self.files).is_none_or(|(_, start, _)| span.start < *start)
    }

    /// Returns the error with the text of its place.
    pub fn error(&self, problem: Problem) -> ScenarioError {
        let found = problem.span.and_then(|span| {
            let (name, start, text) = self.texts.iter().rev().find(|(_, start, _)| *start <= span.start)?;
            let begin = (span.start - start).min(text.len());
            // The place of a table is its header; for a value of several lines the first is enough.
            let end = (span.end.saturating_sub(*start)).clamp(begin, text.len());
            let line = text[begin..end].find('\n').map_or(end, |newline| begin + newline);
            Some((Arc::new(NamedSource::new(name, text.clone())), SourceSpan::from(begin..line)))
        });
        let (source_code, place) = found.unzip();
        ScenarioError { problem: problem.problem, help: problem.help, source_code, place }
    }
}

fn reword(message: &str) -> (String, Option<String>) {
    let unknown = [("unknown field `", "unknown key"), ("unknown variant `", "unknown value")];
    for (prefix, what) in unknown {
        let Some(rest) = message.strip_prefix(prefix) else { continue };
        // `wrong`, expected one of `a`, `b`
        let mut words = rest.split('`');
        let wrong = words.next().unwrap_or_default();
        let accepted: Vec<&str> = words.skip(1).step_by(2).collect();
        return (format!("{what} `{wrong}`"), Some(anabranch_units::suggest(wrong, accepted)));
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        let name = rest.trim_end_matches('`');
        let example = match name {
            "path" => "[path.NAME] with rate = \"25mbit\" and delay = \"10ms\"".to_owned(),
            "workload" => "[[workload]] with kind = \"bulk\" and duration = \"10s\"".to_owned(),
            _ => format!("{name} = …"),
        };
        return (format!("`{name}` is missing"), Some(format!("accepted: {example}")));
    }
    if let Some((held, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        let expected = match expected {
            "a string" if held == "sequence" => "one text in quotes, such as \"x\", without brackets",
            "a boolean" => "true or false",
            "a sequence" => "a list such as [ … ]",
            table if table == "a map" || table.starts_with("struct ") => "a table such as { … }",
            "a string" => "a text in quotes",
            "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number from 0",
            "isize" | "i64" | "i32" | "i16" | "i8" => "a whole number",
            "f64" | "f32" => "a number",
            other => other,
        };
        let held = match held {
            "sequence" => "list",
            "map" => "table",
            other => other,
        };
        let article = if held.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        return (format!("this is {article} {held}"), Some(format!("accepted: {expected}")));
    }
    if message.starts_with("string values must be quoted") {
        return ("a text must be quoted".to_owned(), Some("accepted: a text such as \"10ms\"".to_owned()));
    }
    match message.split_once('\n') {
        Some((problem, help)) => (problem.to_owned(), Some(help.to_owned())),
        None => (message.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_of_the_program_is_named() {
        let (problem, help) = reword("invalid type: integer `1`, expected struct PathTable");
        assert_eq!((&*problem, help.as_deref()), ("this is an integer `1`", Some("accepted: a table such as { … }")));
    }

    #[test]
    fn places_are_found_in_the_text_they_belong_to() {
        let mut sources = Sources::default();
        assert_eq!((sources.push_file("file", "a = 1\nb = 2"), sources.push("--set", "c = 3")), (0, 12));
        let quote = |span: Range<usize>| sources.error(Problem::at(&span, "", "")).quoted().map(str::to_owned);
        assert_eq!(quote(6..7).as_deref(), Some("b"));
        let place = |span: Range<usize>| {
            let error = sources.error(Problem::at(&span, "", ""));
            error.place().map(|(name, line, column)| (name.to_owned(), line, column))
        };
        assert_eq!(place(6..7), Some(("file".to_owned(), 2, 1)));
        assert_eq!(place(16..17), Some(("--set".to_owned(), 1, 5)));
        assert_eq!(quote(0..11).as_deref(), Some("a = 1"));
        assert_eq!(quote(16..17).as_deref(), Some("3"));
        assert!(sources.is_in_file(&(6..7)) && !sources.is_in_file(&(12..13)));
    }
}
