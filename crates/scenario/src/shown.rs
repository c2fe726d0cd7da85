//! Errors as a terminal shows them: nothing in a file or a name commands it, and no line is endless.

use anabranch_units::{cut, harmless};
use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, Report, Severity, SourceCode, SourceSpan, SpanContents,
};
use std::error::Error;
use std::fmt;

/// A diagnostic whose texts are safe for a terminal and bounded in length.
#[derive(Debug)]
pub struct Shown {
    message: String,
    cause: Option<Box<Shown>>,
    help: Option<String>,
    severity: Option<Severity>,
    excerpt: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
}

/// Lines around the labels.
#[derive(Debug)]
struct Excerpt {
    name: Option<String>,
    text: String,
    /// Number of its first line, from 0.
    line: usize,
}

/// Characters of the longest message and advice, and of the longest line of a file that is quoted.
const LONGEST: usize = 4000;
const LONGEST_LINE: usize = 160;
/// Characters before a label in a line that has more than [`LONGEST_LINE`].
const BEFORE: usize = 40;

impl Shown {
    /// Returns what may be shown of a diagnostic.
    pub fn of(error: &dyn Diagnostic) -> Shown {
        let labels: Vec<LabeledSpan> = error.labels().into_iter().flatten().collect();
        let quoted = error.source_code().and_then(|source| quote(source, &labels));
        let (excerpt, labels) = quoted.unzip();
        Shown {
            message: safe(&error.to_string()),
            cause: error.source().map(|cause| Box::new(Shown::of_cause(cause))),
            help: error.help().map(|help| safe(&help.to_string())),
            severity: error.severity(),
            excerpt,
            labels: labels.unwrap_or_default(),
        }
    }

    /// Returns the report of what may be shown.
    pub fn report(report: &Report) -> Report {
        Report::new(Shown::of(report.as_ref()))
    }

    fn of_cause(error: &(dyn Error + 'static)) -> Shown {
        Shown {
            message: safe(&error.to_string()),
            cause: error.source().map(|cause| Box::new(Shown::of_cause(cause))),
            help: None,
            severity: None,
            excerpt: None,
            labels: Vec::new(),
        }
    }
}

fn safe(text: &str) -> String {
    harmless(&cut(text, LONGEST)).into_owned()
}

/// Quotes the lines of the labels and one to both sides, and moves the labels to where their texts then stand.
fn quote(source: &dyn SourceCode, labels: &[LabeledSpan]) -> Option<(Excerpt, Vec<LabeledSpan>)> {
    let begin = labels.iter().map(LabeledSpan::offset).min()?;
    let end = labels.iter().map(|label| label.offset() + label.len()).max()?;
    let contents = source.read_span(&SourceSpan::from(begin..end), 1, 1).ok()?;
    let first = contents.span().offset();
    let whole = str::from_utf8(contents.data()).ok()?;
    let marks: Vec<usize> = labels.iter().flat_map(|it| [it.offset(), it.offset() + it.len()]).collect();
    let (text, moved) = quoted(whole, &marks.iter().map(|mark| mark - first).collect::<Vec<_>>());
    let spans = labels.iter().zip(moved.chunks(2));
    let labels = spans.map(|(label, at)| {
        let length = at[1].saturating_sub(at[0]);
        LabeledSpan::new(label.label().map(safe), at[0], length)
    });
    let name = contents.name().map(safe);
    Some((Excerpt { name, text, line: contents.line() }, labels.collect()))
}

/// The text with safe characters and the middle of long lines, and the places in it that `marks` have become.
fn quoted(whole: &str, marks: &[usize]) -> (String, Vec<usize>) {
    let mut text = String::new();
    let mut moved = vec![0; marks.len()];
    let mut begin = 0;
    for line in whole.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        let inside = marks.iter().filter(|mark| (begin..=begin + bare.len()).contains(*mark)).min();
        let mark = inside.map_or(0, |mark| bare[..mark - begin].chars().count());
        let skipped = if bare.chars().nth(LONGEST_LINE).is_some() { mark.saturating_sub(BEFORE) } else { 0 };
        text += if skipped > 0 { "…" } else { "" };
        let mut at = begin;
        for (number, c) in bare.chars().enumerate() {
            let here = number >= skipped && number < skipped + LONGEST_LINE;
            marks.iter().zip(&mut moved).filter(|(mark, _)| **mark == at).for_each(|(_, to)| *to = text.len());
            if here {
                text += &harmless(c.encode_utf8(&mut [0; 4]));
            }
            at += c.len_utf8();
        }
        marks.iter().zip(&mut moved).filter(|(mark, _)| **mark == at).for_each(|(_, to)| *to = text.len());
        text += if bare.chars().nth(skipped + LONGEST_LINE).is_some() { "…" } else { "" };
        text += if line.ends_with('\n') { "\n" } else { "" };
        begin += line.len();
    }
    (text, moved)
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Shown {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn severity(&self) -> Option<Severity> {
        self.severity
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        let (line, column, count) = (self.line + inner.line(), inner.column(), inner.line_count());
        let name = self.name.clone();
        Ok(Box::new(match name {
            Some(name) => MietteSpanContents::new_named(name, inner.data(), *inner.span(), line, column, count),
            None => MietteSpanContents::new(inner.data(), *inner.span(), line, column, count),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Problem, Sources};

    fn rendered(name: &str, text: &str, at: std::ops::Range<usize>) -> String {
        let mut sources = Sources::default();
        sources.push_file(name, text);
        let error = sources.error(Problem::at(&at, format!("`{}` is wrong", &text[at.clone()]), "accepted: less"));
        let mut out = String::new();
        miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
            .render_report(&mut out, &Shown::of(&error))
            .expect("writing to a String cannot fail");
        out
    }

    #[test]
    fn an_error_keeps_its_place_and_loses_what_commands_the_terminal() {
        let text = "a = 1\nb = \"\x1b[2J\u{202e}\"\nbad = 3\nc = 2\n";
        let said = rendered("x\x1b]0;t\x07.toml", text, text.find("bad").map_or(0..0, |at| at..at + 3));
        assert!(!said.contains(['\x1b', '\x07', '\u{202e}']), "{said}");
        assert!(said.contains(r"[x\u001b]0;t\u0007.toml:3:1]"), "{said}");
        assert!(said.contains(r#" 2 │ b = "\u001b[2J\u202e""#) && said.contains(" 3 │ bad = 3"), "{said}");
        let columns = |part: &str| said.lines().find_map(|line| Some(line[..line.find(part)?].chars().count()));
        assert_eq!(columns("─┬─"), columns("bad = 3"), "{said}");
    }

    #[test]
    fn an_error_in_an_endless_line_is_short() {
        let text = format!("a = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000));
        let said = rendered("deep.toml", &text, 50_000..50_001);
        assert!(said.chars().count() < 1000, "{} characters", said.chars().count());
        assert!(said.contains("[deep.toml:1:"), "{said}");
        let name = "x".repeat(50_000);
        let said = rendered("long.toml", &format!("{name} = 1"), 0..50_000);
        assert!(said.chars().count() < 20_000, "{} characters", said.chars().count());
    }
}
