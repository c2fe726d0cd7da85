//! The texts a script is made of: the file and what it includes.

use miette::{NamedSource, SourceSpan};
use std::ops::Range;
use std::sync::Arc;

/// One file's name and text.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

/// One line of a source, with variables replaced.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) source: Source,
    /// Number of the line, from 1.
    pub(crate) number: usize,
    /// Offset of the line in the source.
    pub(crate) start: usize,
    /// Without its comment. Differs from the source if a variable was replaced.
    pub(crate) text: String,
    /// The text is as it stands in the source, so that columns can be pointed at.
    pub(crate) verbatim: bool,
}

/// One word of a line and where it stands there. Parentheses keep what is between them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) at: Range<usize>,
}

impl Line {
    /// `file:line`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.source.name, self.number)
    }

    /// The part of the source that `at` in this line stands for; the whole line if variables moved it.
    pub(crate) fn span(&self, at: &Range<usize>) -> SourceSpan {
        let line = self.source.text[self.start..].lines().next().unwrap_or_default();
        let (start, end) =
            if self.verbatim { (at.start.min(line.len()), at.end.min(line.len())) } else { (0, line.len()) };
        SourceSpan::from(self.start + start..self.start + end.max(start))
    }

    pub(crate) fn named_source(&self) -> NamedSource<String> {
        NamedSource::new(&*self.source.name, self.source.text.to_string())
    }

    /// The words of the line. `Err` holds the place of a parenthesis without its partner.
    pub(crate) fn words(&self) -> Result<Vec<Word>, Range<usize>> {
        let mut words = Vec::new();
        let (mut start, mut depth, mut opened) = (None, 0u32, 0);
        for (at, c) in self.text.char_indices() {
            match c {
                '(' => {
                    depth += 1;
                    opened = at;
                    start.get_or_insert(at);
                }
                ')' => depth = depth.checked_sub(1).ok_or(at..at + 1)?,
                c if c.is_whitespace() && depth == 0 => {
                    if let Some(from) = start.take() {
                        words.push(Word { text: self.text[from..at].to_owned(), at: from..at });
                    }
                }
                _ => {
                    start.get_or_insert(at);
                }
            }
        }
        if depth > 0 {
            return Err(opened..opened + 1);
        }
        if let Some(from) = start {
            words.push(Word { text: self.text[from..].to_owned(), at: from..self.text.len() });
        }
        Ok(words)
    }
}

/// The text before a `#`.
pub(crate) fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        let source = Source { name: "t".into(), text: text.into() };
        Line { source, number: 1, start: 0, text: text.to_owned(), verbatim: true }
    }

    #[test]
    fn parentheses_hold_words_together() {
        let words = line("a < P. dss(ack=1, map) win=3").words().expect("balanced");
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["a", "<", "P.", "dss(ack=1, map)", "win=3"]);
        assert_eq!(words[3].at, 7..22);
        assert_eq!(line("dss(ack").words(), Err(3..4));
        assert_eq!(line("dss)").words(), Err(3..4));
    }
}
