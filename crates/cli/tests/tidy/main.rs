//! Tidy: rules on the text of the repository that neither the compiler nor `cargo fmt` checks.
//!
//! - A doc comment and each of its paragraphs begin with a verb or a noun, not with one of [`RIDDLES`].
//! - A line has at most 120 columns. Exempt are string literals that cannot be broken: raw ones, and those without a
//!   space before the limit; likewise a single long word in a comment. A line of printed text counts without
//!   indentation.
//! - A paragraph of a comment is filled: the first word of a line does not fit the line before.
//! - A source file has at most 700 lines.
//! - A function of more than 40 lines has a comment that says why: [`reasons`].
//! - A citation leads somewhere: [`citations`].
//! - A dependency is used: [`dependencies`].
//! - A module that a macro names is formatted: [`formatting`].
#![allow(clippy::unwrap_used)]

mod citations;
#[path = "../common/mod.rs"]
mod common;
mod dependencies;
mod formatting;
mod metadata;
mod profiles;
mod reasons;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Words that begin a riddle rather than a description.
const RIDDLES: [&str; 8] = ["What", "How", "Where", "Who", "Which", "Whether", "Whose", "Nothing"];
/// The opening of the paragraph in which a policy tells its differences from its paper.
const DIFFERENCES: &str = "Where we differ";
/// Columns of a line (`max_width` in rustfmt.toml).
const WIDTH: usize = 120;
/// Lines of a source file.
const LONGEST: usize = 700;

/// A rule of this test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rule {
    Opening,
    Width,
    Filling,
    Length,
    Reason,
}

impl Rule {
    fn remedy(self) -> &'static str {
        match self {
            Rule::Opening => "begin with a verb in the third person (\"Returns\", \"Sets\") or a noun",
            Rule::Width => "break the line; a string literal can be broken with a backslash",
            Rule::Filling => "fill the paragraph up to 120 columns",
            Rule::Length => "move a part that has its own name into a module",
            Rule::Reason => {
                "say why where a reader stops (a race, an order, a clause of an RFC), or split the function"
            }
        }
    }
}

/// An offence on a line of a file, counted from 1.
#[derive(PartialEq, Eq, Debug)]
struct Offence {
    line: usize,
    rule: Rule,
    what: String,
}

#[test]
fn sources_are_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["bench", "crates", "examples", "fuzz", "interop", "python"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 500, "{} source files below {}", files.len(), root.display());

    let mut found: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    for path in &files {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let unexplained = if reasons::applies(name) { reasons::offences(&text) } else { Vec::new() };
        for Offence { line, rule, what } in offences(&text).into_iter().chain(unexplained) {
            found.entry(rule).or_default().push(format!("{name}:{line}: {what}"));
        }
    }
    let report = report(&found);
    assert!(report.is_empty(), "\n{report}");
}

/// Doc comments of the pages' scripts and of the BPF programs, whose lines have rules of their own.
#[test]
fn doc_comments_in_other_languages_begin_with_what_they_describe() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["web/src", "web/tests", "crates/report/assets", "crates/report/tests/html", "crates/kernel/bpf"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let ours = |path: &PathBuf| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| ["ts", "mjs", "js", "c", "h"].contains(&extension))
        };
        files.extend(entries.filter(ours));
    }
    assert!(files.len() > 50, "{files:?}");
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = riddles(&text).into_iter();
        found.extend(lines.map(|line| format!("{}:{line}", path.strip_prefix(&root).unwrap().display())));
    }
    assert!(found.is_empty(), "{}:\n{}", Rule::Opening.remedy(), found.join("\n"));
}

/// Lines, counted from 1, on which a doc comment (`///`, or at the margin `/*`) begins with a riddle.
fn riddles(text: &str) -> Vec<usize> {
    let mut before = "";
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let opening = match line.trim_start().strip_prefix("///") {
            Some(text) if !before.trim_start().starts_with("///") => Some(text),
            Some(_) => None,
            None if before == "/*" => line.strip_prefix(" *"),
            None => line.strip_prefix("/* "),
        };
        let word = opening.and_then(|text| text.trim_start().split(|c: char| !c.is_alphanumeric()).next());
        if word.is_some_and(|word| RIDDLES.contains(&word)) {
            found.push(at + 1);
        }
        before = line;
    }
    found
}

#[test]
fn riddles_are_found_in_every_form() {
    let text = "/// Where it is.\nlet a;\n  /// How.\n/* Whether. */\n/*\n * What it is.\n */\n";
    assert_eq!(riddles(text), [1, 3, 4, 6]);
    let fine =
        "/// The place.\n/// Where else?\n\t/* Nothing new. */\n// What now?\n/*\n * A set.\n * What else.\n */\n";
    assert_eq!(riddles(fine), [0; 0]);
}

/// Comments of scripts and unit files, whose code may be wider: a command cannot always be broken.
#[test]
fn comments_of_scripts_are_not_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join(".ci/run")];
    for folder in ["packaging", "packaging/debian", "book"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.is_file()));
    }
    assert!(files.len() > 15, "{files:?}");
    let mut wide = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let comments = text.lines().filter(|line| line.trim_start().starts_with('#'));
        wide.extend(
            comments.filter(|line| line.chars().count() > WIDTH).map(|line| format!("{}: {line}", path.display())),
        );
    }
    assert!(wide.is_empty(), "{}:\n{}", Rule::Width.remedy(), wide.join("\n"));
}

/// Lists the offences by rule, each with its remedy; empty if there are none.
fn report(found: &BTreeMap<Rule, Vec<String>>) -> String {
    let mut report = String::new();
    for (rule, lines) in found {
        writeln!(report, "{} offences; {}:", lines.len(), rule.remedy()).unwrap();
        lines.iter().for_each(|line| writeln!(report, "  {line}").unwrap());
    }
    report
}

/// Collects the Rust files below `folder` in the order of names, without build directories.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Applies the rules to a file.
fn offences(text: &str) -> Vec<Offence> {
    let lines: Vec<&str> = text.lines().collect();
    let literals = literals(text);
    let comments: Vec<Option<Comment<'_>>> =
        lines.iter().zip(&literals).map(|(line, literal)| Comment::of(line, literal)).collect();
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in lines.iter().enumerate() {
        let mut offend = |rule, what: &str| found.push(Offence { line: at + 1, rule, what: what.trim().to_owned() });
        let before = at.checked_sub(1).and_then(|before| comments[before]);
        let comment = comments[at];
        if line.chars().count() > WIDTH && !is_exempt(line, &literals[at], comment) {
            offend(Rule::Width, line);
        }
        let Some(comment) = comment else { continue };
        let begins = before.is_none_or(|before| !before.continues(&comment));
        let text = comment.text.trim_start();
        let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let opens = begins || before.is_some_and(|before| before.text.is_empty());
        if opens && comment.is_doc() && RIDDLES.contains(&word) && !text.starts_with(DIFFERENCES) {
            offend(Rule::Opening, line);
        }
        fenced &= !begins;
        let fence = comment.text.trim_start().starts_with("```");
        if let Some(before) = before.filter(|_| !begins && !fenced && !fence)
            && before.is_short_of(&comment, lines[at - 1].chars().count())
        {
            offend(Rule::Filling, line);
        }
        fenced ^= fence;
    }
    if lines.len() > LONGEST {
        found.push(Offence { line: lines.len(), rule: Rule::Length, what: format!("{} lines", lines.len()) });
    }
    found
}

/// A line that holds nothing but a comment.
#[derive(Clone, Copy)]
struct Comment<'a> {
    indent: usize,
    marker: &'a str,
    /// Behind the marker and one space.
    text: &'a str,
}

impl<'a> Comment<'a> {
    fn of(line: &'a str, literal: &Literal) -> Option<Self> {
        let trimmed = line.trim_start();
        let marker = ["///", "//!", "//"].into_iter().find(|marker| trimmed.starts_with(marker))?;
        let text = &trimmed[marker.len()..];
        let is_comment = literal.opens == Opens::Code && !text.starts_with('/');
        let text = text.strip_prefix(' ').unwrap_or(text);
        is_comment.then_some(Comment { indent: line.len() - trimmed.len(), marker, text })
    }

    fn is_doc(&self) -> bool {
        self.marker != "//"
    }

    /// Returns true if `next` belongs to the same comment.
    fn continues(&self, next: &Comment<'_>) -> bool {
        self.indent == next.indent && self.marker == next.marker
    }

    /// Returns true if this line of prose, `length` columns long, has room for the first word of `next`. A line that
    /// ends a sentence or a clause may be short on purpose, as may one with columns.
    fn is_short_of(&self, next: &Comment<'_>, length: usize) -> bool {
        let word = next.text.split_whitespace().next().unwrap_or_default();
        let is_prose = |text: &str| {
            let text = text.trim_start();
            !text.contains("  ") && !text.starts_with(['#', '|', '>', '[', '`']) && !text.contains(" | ")
        };
        let hangs = |text: &str| text.len() - text.trim_start().len();
        let item = |text: &str| {
            let text = text.trim_start();
            let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
            (text.starts_with("- ") || text.starts_with("* ")).then_some(2).or_else(|| {
                (digits.len() < text.len() && digits.starts_with(". ")).then_some(text.len() - digits.len() + 2)
            })
        };
        let same = hangs(self.text) + item(self.text).unwrap_or(0) == hangs(next.text) && item(next.text).is_none();
        let goes_on = self.text.ends_with(|c: char| c.is_alphanumeric() || c == ',');
        let starts = word.starts_with(|c: char| c.is_lowercase());
        same && goes_on
            && starts
            && is_prose(self.text)
            && is_prose(next.text)
            && length + 1 + word.chars().count() <= WIDTH
    }
}

/// Returns true if a line may be wider than [`WIDTH`]: it cannot be broken, because the limit lies in a raw string, or
/// in a string or a comment without a space before it; or it is a line of printed text, which is narrow enough without
/// the indentation.
fn is_exempt(line: &str, literal: &Literal, comment: Option<Comment<'_>>) -> bool {
    let is_solid = |start: usize| !line.chars().take(WIDTH).skip(start).any(char::is_whitespace);
    if let Some(comment) = comment {
        return is_solid(comment.indent + comment.marker.len() + 1);
    }
    literal.crossing.is_some_and(|(raw, start)| {
        let text = line.trim_end_matches(['\\', '"', ',', ';']).trim_end();
        let is_printed = text.ends_with(r"\n") && text.chars().count() - start <= WIDTH;
        raw || is_solid(start) || is_printed
    })
}

/// State at the beginning of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opens {
    Code,
    Text,
}

/// String literals of a line.
#[derive(Clone, Copy, Debug)]
struct Literal {
    /// State in which the line begins: code, or the inside of a literal or block comment.
    opens: Opens,
    /// Literal that reaches across the limit: true if it is raw, and its first column on this line.
    crossing: Option<(bool, usize)>,
}

/// Finds the string literals of a file, line by line.
fn literals(text: &str) -> Vec<Literal> {
    /// State between two characters; a string knows the number of hashes if it is raw.
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Code,
        Line,
        Block(usize),
        Text(Option<usize>),
    }
    let mut state = State::Code;
    let mut all = Vec::new();
    for line in text.lines() {
        let chars: Vec<char> = line.chars().collect();
        let mut here = Literal { opens: if state == State::Code { Opens::Code } else { Opens::Text }, crossing: None };
        let (mut at, mut start) = (0, chars.iter().take_while(|c| c.is_whitespace()).count());
        let is = |at: usize, c: char| chars.get(at) == Some(&c);
        while at < chars.len() {
            let step = match state {
                State::Code if is(at, '/') && is(at + 1, '/') => {
                    state = State::Line;
                    2
                }
                State::Code if is(at, '/') && is(at + 1, '*') => {
                    state = State::Block(1);
                    2
                }
                State::Code if is(at, '"') => {
                    let hashes = chars[..at].iter().rev().take_while(|c| **c == '#').count();
                    let raw = at > hashes && is(at - hashes - 1, 'r');
                    (state, start) = (State::Text(raw.then_some(hashes)), at);
                    1
                }
                State::Code if is(at, '\'') && is(at + 1, '\\') => {
                    2 + chars[at + 2..].iter().skip(1).take_while(|c| **c != '\'').count() + 2
                }
                State::Code if is(at, '\'') && is(at + 2, '\'') => 3,
                State::Block(depth) if is(at, '*') && is(at + 1, '/') => {
                    state = if depth == 1 { State::Code } else { State::Block(depth - 1) };
                    2
                }
                State::Block(depth) if is(at, '/') && is(at + 1, '*') => {
                    state = State::Block(depth + 1);
                    2
                }
                State::Text(None) if is(at, '\\') => 2,
                State::Text(raw) if is(at, '"') => {
                    let hashes = raw.unwrap_or(0);
                    if chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
                        state = State::Code;
                    }
                    1
                }
                _ => 1,
            };
            at += step;
            if at + 2 > WIDTH // The closing quote and a semicolon may follow.
                && here.crossing.is_none()
                && let State::Text(raw) = state
            {
                here.crossing = Some((raw.is_some(), start));
            }
        }
        if state == State::Line {
            state = State::Code;
        }
        all.push(here);
    }
    all
}

/// Returns the rules that a text breaks, with their lines.
fn broken(text: &str) -> Vec<(usize, Rule)> {
    offences(text).into_iter().map(|offence| (offence.line, offence.rule)).collect()
}

#[test]
fn openings_are_found() {
    assert_eq!(broken("/// What it holds.\nx: u8,\n"), [(1, Rule::Opening)]);
    assert_eq!(broken("//! Whether it rains.\n"), [(1, Rule::Opening)]);
    assert_eq!(broken("    /// Nothing.\n"), [(1, Rule::Opening)]);
    assert_eq!(broken("/// A sum.\n///\n/// What it is good for.\n"), [(3, Rule::Opening)]);
    assert_eq!(broken("//! ECF.\n//!\n//! Where we differ: bytes.\n"), []);
    assert_eq!(broken("/// Whatever it is.\n/// How it goes on.\n// What a plain comment says.\n"), []);
    assert_eq!(broken("const TEXT: &str = r#\"\n/// What a string holds.\n\"#;\n"), []);
}

#[test]
fn wide_lines_are_found() {
    let words = "word ".repeat(30);
    let word = "x".repeat(130);
    assert_eq!(broken(&format!("let x = y; // {words}\n")), [(1, Rule::Width)]);
    assert_eq!(broken(&format!("/// {words}\n")), [(1, Rule::Width)]);
    assert_eq!(broken(&format!("let text = \"{words}\";\n")), [(1, Rule::Width)], "a backslash can break it");
    assert_eq!(broken(&format!("let text = \"{word} {words}\";\n")), []);
    assert_eq!(broken(&format!("let text = r\"{words}\";\n")), []);
    assert_eq!(broken(&format!("let text = r#\"\n{words}\n\"#;\n")), []);
    assert_eq!(broken(&format!("let text = \"\\\n{}{}\\n\";\n", " ".repeat(20), &words[..105])), [], "printed text");
    assert_eq!(broken(&format!("/// {word}\n")), [], "a long address");
    assert_eq!(broken(&format!("let quote = '\"'; call({});\n", "x, ".repeat(40))), [(1, Rule::Width)]);
    assert_eq!(broken(&format!("{}\n", "ä".repeat(WIDTH))), [], "columns, not bytes");
}

#[test]
fn unfilled_paragraphs_are_found() {
    let full = format!("/// {}", "word ".repeat(22).trim_end());
    assert_eq!(broken(&format!("{full}\n/// word goes on.\n")), [(2, Rule::Filling)]);
    assert_eq!(broken(&format!("{full}\n/// exceeding goes on.\n")), []);
    assert_eq!(broken("// A paragraph,\n// too short.\n"), [(2, Rule::Filling)]);
    assert_eq!(broken("/// - an item\n///   of a list.\n"), [(2, Rule::Filling)]);
    assert_eq!(broken("/// - an item\n/// - another\n/// # Heading\n/// ends here.\n///\n/// new\n"), []);
    assert_eq!(broken("/// ```text\n/// a verse\n/// of lines\n/// ```\n"), []);
    assert_eq!(broken("// a sentence.\n// another one\n"), []);
    assert_eq!(broken("// a    column\n// b    column\n"), []);
}

#[test]
fn long_files_are_found() {
    assert_eq!(broken(&"\n".repeat(LONGEST)), []);
    assert_eq!(broken(&"\n".repeat(LONGEST + 1)), [(LONGEST + 1, Rule::Length)]);
}

#[test]
fn the_report_has_places_and_remedies() {
    let line = "crates/x/src/lib.rs:3: ///".to_owned();
    let text = report(&BTreeMap::from([(Rule::Width, vec![line])]));
    assert!(text.contains("crates/x/src/lib.rs:3") && text.contains("break the line"), "{text}");
    assert_eq!(report(&BTreeMap::new()), "");
}
