//! Documents: their blocks of code, headings, links, and comments for the tests.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A Markdown file.
pub struct Document {
    /// Path from the root of the repository.
    pub name: String,
    pub text: String,
}

/// A fenced block of code.
pub struct Block<'a> {
    /// Word behind the opening fence.
    pub language: &'a str,
    /// Line of the opening fence, counted from 1.
    pub line: usize,
    /// Lines between the fences.
    pub body: Vec<&'a str>,
    /// Comments directly above the block, without their brackets.
    pub notes: Vec<&'a str>,
}

impl Document {
    pub fn open(name: &str) -> Document {
        let path = root().join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        Document { name: name.to_owned(), text }
    }

    /// Opens README.md and every document of docs/, in this order.
    pub fn book() -> Vec<Document> {
        let mut names: Vec<String> = fs::read_dir(root().join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".md"))
            .map(|name| format!("docs/{name}"))
            .collect();
        names.sort();
        names.insert(0, "README.md".to_owned());
        names.iter().map(|name| Document::open(name)).collect()
    }

    /// Returns the fenced blocks in order.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut notes = Vec::new();
        let mut open = false;
        for (at, line) in self.text.lines().enumerate() {
            match line.strip_prefix("```") {
                Some(_) if open => open = false,
                Some(language) => {
                    open = true;
                    let notes = std::mem::take(&mut notes);
                    blocks.push(Block { language: language.trim(), line: at + 1, body: Vec::new(), notes });
                }
                None if open => blocks.last_mut().expect("a block is open").body.push(line),
                None => match line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")) {
                    Some(note) => notes.push(note.trim()),
                    None => notes.clear(),
                },
            }
        }
        assert!(!open, "{}: the last block has no end", self.name);
        blocks
    }

    /// Returns the lines outside blocks, each with its number from 1.
    pub fn prose(&self) -> Vec<(usize, &str)> {
        let mut open = false;
        let is_prose = |line: &str| {
            let fence = line.starts_with("```");
            open ^= fence;
            !open && !fence
        };
        let mut is_prose = is_prose;
        self.text.lines().enumerate().filter(|(_, line)| is_prose(line)).map(|(at, line)| (at + 1, line)).collect()
    }

    /// Returns the anchors of its headings, as repositories and the book make them.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for (_, line) in self.prose() {
            let title = line.trim_start_matches('#');
            if title.len() == line.len() || !title.starts_with(' ') {
                continue;
            }
            let slug: String = title
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            anchors.push(slug);
        }
        anchors
    }

    /// Returns the targets of its links in prose, each with its line.
    pub fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (line, text) in self.prose() {
            let text = without_code(text);
            for (at, _) in text.match_indices("](") {
                if let Some(end) = text[at..].find(')') {
                    links.push((line, text[at + 2..at + end].to_owned()));
                }
            }
        }
        links
    }
}

/// Blanks what stands between backquotes.
fn without_code(line: &str) -> String {
    let mut inside = false;
    line.chars()
        .map(|c| {
            inside ^= c == '`';
            if inside && c != '`' { ' ' } else { c }
        })
        .collect()
}
