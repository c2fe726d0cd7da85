//! Citations lead somewhere: sections of RFCs, files of the repository, links between documents with their anchors, and
//! code that CONTRIBUTING.md quotes.

use crate::common::markdown::{Document, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders below which texts are read, and to which a path in a text can lead.
const FOLDERS: [&str; 15] = [
    "bench",
    "book",
    "conformance",
    "crates",
    "docs",
    "evaluations",
    "examples",
    "fuzz",
    "interop",
    "packaging",
    "python",
    "scenarios",
    "studies",
    "sweeps",
    ".ci",
];
/// Kinds of texts in which citations stand.
const KINDS: [&str; 5] = ["rs", "md", "py", "script", "toml"];
/// Folders of others, or of builds.
const FOREIGN: [&str; 5] = ["target", "vendor", "node_modules", "venv", "corpus"];

/// Collects the texts below a folder, with their paths from the root.
fn texts(folder: &Path, found: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !FOREIGN.contains(&name) && !name.starts_with('.') {
                texts(&path, found);
            }
        } else if path.extension().and_then(|it| it.to_str()).is_some_and(|kind| KINDS.contains(&kind)) {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), text);
        }
    }
}

/// Returns every text of the repository by its path.
fn repository() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    FOLDERS.iter().for_each(|folder| texts(&root().join(folder), &mut found));
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        found.insert(name.to_owned(), fs::read_to_string(root().join(name)).unwrap());
    }
    found
}

/// Joins lines to one, without the leaders of comments, so that a citation may be broken across lines.
fn joined(text: &str) -> (String, Vec<usize>) {
    let (mut flat, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        starts.push(flat.len());
        flat += line.trim_start().trim_start_matches(['/', '!', '#']).trim();
        flat.push(' ');
    }
    (flat, starts)
}

/// Returns the sections of RFCs that a text cites (`RFC 8684 §3.3.2`): line, number and section.
fn sections_cited(text: &str) -> Vec<(usize, u32, String)> {
    let (flat, starts) = joined(text);
    let mut cited = Vec::new();
    for (at, word) in flat.match_indices("RFC ") {
        let rest = &flat[at + word.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse() else { continue };
        let Some(section) = rest[digits..].trim_start_matches([',', ' ']).strip_prefix('§') else { continue };
        let section: String = section.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
        let line = starts.partition_point(|start| *start <= at);
        cited.push((line, number, section.trim_end_matches('.').to_owned()));
    }
    cited
}

/// Returns the sections that the text of an RFC has, by the numbers before their titles. RFC 6298 has rules with
/// numbers in brackets, which are cited alike.
fn sections_of(text: &str) -> BTreeSet<String> {
    let mut sections = BTreeSet::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("Appendix ");
        let Some((number, title)) = line.split_once(' ') else { continue };
        let number = number.trim_end_matches('.').trim_start_matches('(').trim_end_matches(')');
        let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
            && number.split('.').skip(1).all(|part| part.parse::<u32>().is_ok())
            && number.split('.').next().is_some_and(|first| first.len() == 1 || first.parse::<u32>().is_ok());
        if is_number && title.trim_start().starts_with(|c: char| c.is_alphanumeric() || c == '"') {
            sections.insert(number.to_owned());
        }
    }
    sections
}

#[test]
fn sections_of_rfcs_exist() {
    let library = root().join("../shared/rfc");
    if !library.exists() {
        return eprintln!("SKIPPED: no RFCs are beside the repository");
    }
    let mut known: BTreeMap<u32, Option<BTreeSet<String>>> = BTreeMap::new();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, text) in repository() {
        for (line, number, section) in sections_cited(&text) {
            let sections = known.entry(number).or_insert_with(|| {
                fs::read_to_string(library.join(format!("rfc{number}.txt"))).ok().map(|text| sections_of(&text))
            });
            let Some(sections) = sections else { continue };
            count += 1;
            if !sections.contains(&section) {
                wrong.push(format!("{name}:{line}: RFC {number} has no section {section}"));
            }
        }
    }
    assert!(count > 300, "{count} citations of RFCs at hand");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the paths of files that a text names, from the root of the repository, each with its line. Patterns and
/// names that stand for others (`docs/NAME.md`) are none.
fn paths_named(text: &str, only_comments: bool) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let comment = if only_comments { line.find("//").map(|begin| &line[begin..]) } else { Some(line) };
        let Some(comment) = comment else { continue };
        let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        for word in comment.split(|c: char| !is_part(c) && !"*{}<>$…".contains(c)) {
            let word = word.trim_end_matches(['.', '-', '/']);
            let Some((folder, rest)) = word.split_once('/') else { continue };
            let last = rest.rsplit('/').next().unwrap_or_default();
            let has_kind = last.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind) || kind == "txt");
            let is_name = word.chars().all(is_part) && !rest.split(['/', '.']).any(|part| part == part.to_uppercase());
            if FOLDERS.contains(&folder) && has_kind && is_name {
                named.push((at + 1, word.to_owned()));
            }
        }
    }
    named
}

#[test]
fn named_files_exist() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, text) in repository() {
        // The examples below and those of the other tidy tests.
        if name.starts_with("crates/cli/tests/tidy/") {
            continue;
        }
        let beside = |path: &str| Path::new(&name).ancestors().any(|folder| root().join(folder).join(path).exists());
        for (line, path) in paths_named(&text, name.ends_with(".rs")) {
            count += 1;
            if !beside(&path) {
                wrong.push(format!("{name}:{line}: {path} does not exist"));
            }
        }
    }
    assert!(count > 100, "{count} names of files");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn links_of_documents_lead_somewhere() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, text) in repository().into_iter().filter(|(name, _)| name.ends_with(".md")) {
        let document = Document { name, text };
        for (line, target) in document.links() {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let folder = root().join(Path::new(&document.name).parent().unwrap());
            let path = if path.is_empty() { root().join(&document.name) } else { folder.join(path) };
            let anchors = || {
                let text = fs::read_to_string(&path).unwrap_or_default();
                Document { name: String::new(), text }.anchors()
            };
            let problem = if !path.exists() {
                "leads to no file"
            } else if !anchor.is_empty() && !anchors().iter().any(|it| it == anchor) {
                "leads to no heading"
            } else {
                continue;
            };
            wrong.push(format!("{}:{line}: the link {target} {problem}", document.name));
        }
    }
    assert!(count > 100, "{count} links");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Lines without their indentation.
fn unindented(text: &str) -> String {
    text.lines().map(|line| line.trim().to_owned() + "\n").collect()
}

#[test]
fn the_code_that_contributing_quotes_stands_in_a_source() {
    let all = repository();
    let sources: Vec<String> =
        all.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(_, text)| unindented(text)).collect();
    let blocks: Vec<&str> = all["CONTRIBUTING.md"].split("```rust\n").skip(1).collect();
    assert!(blocks.len() > 3, "{} blocks", blocks.len());
    for block in blocks {
        let code = unindented(block.split_once("```").expect("a block ends").0);
        assert!(sources.iter().any(|source| source.contains(&code)), "no source has this any more:\n{code}");
    }
}

#[test]
fn citations_are_found() {
    let text = "/// See RFC 8684\n/// §3.7. And (RFC 793, §2) and RFC 6298 Eq. (2).\n";
    assert_eq!(sections_cited(text), [(1, 8684, "3.7".to_owned()), (2, 793, "2".to_owned())]);
    let sections = sections_of(
        "1.  Introduction\n   3.3.2.  Data\n   (2.1) Until\nAppendix A.  Notes\nA.1.  More\n  In 1999 it was\n",
    );
    assert_eq!(sections, ["1", "2.1", "3.3.2", "A", "A.1"].map(str::to_owned).into());
    let text = "let x = \"docs/a.md\"; // as crates/sim/tests/x.rs, docs/NAME.md and docs/*.md\n";
    assert_eq!(paths_named(text, true), [(1, "crates/sim/tests/x.rs".to_owned())]);
    assert_eq!(paths_named("`docs/a.md`.", false), [(1, "docs/a.md".to_owned())]);
}
