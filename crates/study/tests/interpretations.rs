//! Checks that docs/interpretations.md has an entry for every ambiguity cited in the repository, and that cited
//! documents can be opened by a reader of the repository.
#![allow(clippy::unwrap_used)]

use anabranch_policy::registry::Kind;
use anabranch_policy::{Catalogue, Table};
use anabranch_scenario::{Scenario, named};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const REGISTER: &str = "docs/interpretations.md";
/// Fields of an entry, in this order.
const FIELDS: [&str; 4] = ["source", "unclear", "default", "switch"];
/// Folders without files of ours.
const FOREIGN: [&str; 3] = ["target", "vendor", "node_modules"];
/// Maximum size of a text in bytes; larger files are data.
const LARGEST: usize = 1 << 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Text with its lines joined, to find words that a line break or a comment's leader separates.
struct Flat {
    text: String,
    /// Beginning of each line in `text`.
    lines: Vec<usize>,
}

impl Flat {
    fn new(text: &str) -> Flat {
        let mut flat = Flat { text: String::new(), lines: Vec::new() };
        for line in text.lines() {
            flat.lines.push(flat.text.len());
            let line = line.trim().trim_end_matches('\\');
            let leader = ["//!", "///", "//", "#"].into_iter().find(|leader| line.starts_with(leader));
            flat.text += leader.map_or(line, |leader| &line[leader.len()..]).trim();
            flat.text.push(' ');
        }
        flat
    }

    /// Returns the number of the line that holds this place, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at)
    }
}

/// Returns the labels that a text cites, with their places: `A-PHASE`, `A-LATE-7`, and each of a range.
fn labels(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("A-") {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '[');
        if text[..at].ends_with(inside) {
            continue;
        }
        let end = text[at..].find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'));
        let label = text[at..end.map_or(text.len(), |end| at + end)].trim_end_matches('-');
        let rest = &text[at + label.len()..];
        let word = label["A-".len().min(label.len())..].split('-').next().unwrap_or_default();
        if word.len() < 2 || word.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with(char::is_alphanumeric) {
            continue;
        }
        found.push((at, label.to_owned()));
        let last = ["…", "–", " to "].iter().find_map(|to| number(rest.strip_prefix(to)?));
        if let Some((stem, first)) = label.rsplit_once('-')
            && let (Ok(first), Some(last)) = (first.parse::<u32>(), last)
        {
            found.extend((first + 1..=last).map(|n| (at, format!("{stem}-{n}"))));
        }
    }
    found
}

/// Parses the number that a text begins with.
fn number(text: &str) -> Option<u32> {
    text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
}

/// Returns the places where a text cites a document that is not in the repository: "the reference's", or "reference"
/// with a number.
fn dead_ends(text: &str) -> Vec<usize> {
    let lower = text.to_ascii_lowercase();
    let numbered = lower.match_indices("reference").filter_map(|(at, word)| {
        let behind = &lower[at + word.len()..];
        let rest = behind.trim_start_matches([',', ' ']);
        let section = ["sections", "section", "§"].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
        let numbered = section.trim_start().starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("a-");
        let cites = numbered || behind.starts_with("'s ");
        (cites && !lower[..at].ends_with(char::is_alphanumeric)).then_some(at)
    });
    let files = [concat!("kernel", "-interop"), concat!("shared/", "reference")];
    numbered.chain(files.iter().flat_map(|file| lower.match_indices(file)).map(|(at, _)| at)).collect()
}

/// Returns every text of the repository, by its path from the root. Reads the folder itself, since a source archive has
/// no `.git`.
fn texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if name.starts_with('.') || FOREIGN.contains(&name.as_str()) {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(&path)
                && text.len() <= LARGEST
            {
                let path = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
                texts.insert(path, text);
            }
        }
    }
    texts
}

/// Entry of the register for one label.
struct Entry {
    /// Line of its heading.
    line: usize,
    /// Name and text of each field.
    fields: Vec<(String, String)>,
}

fn entries(register: &str) -> BTreeMap<String, Entry> {
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut open: Option<String> = None;
    for (line, text) in (1..).zip(register.lines()) {
        if text.starts_with('#') {
            open = text.strip_prefix("### ").map(str::to_owned);
            let before = open.clone().and_then(|label| entries.insert(label, Entry { line, fields: Vec::new() }));
            assert!(before.is_none(), "{REGISTER}:{line}: a second entry for this label: {text}");
        }
        let Some(Entry { fields, .. }) = open.as_ref().and_then(|label| entries.get_mut(label)) else { continue };
        if let Some((name, words)) = text.strip_prefix("- ").and_then(|text| text.split_once(": ")) {
            fields.push((name.to_owned(), words.to_owned()));
        } else if let Some((_, words)) = fields.last_mut() {
            *words += " ";
            *words += text.trim();
        }
    }
    entries
}

/// Returns the texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Checks a policy as an entry has it, such as `ecf:beta=0.5`: as the default (`usual`), or as another reading. `None`
/// if no policy of this kind has the name.
fn wrong_in<T: Kind + ?Sized>(table: &Table<T>, text: &str, usual: bool) -> Option<Result<(), String>> {
    let name = text.split(':').next().unwrap_or_default();
    table.names().find(|known| *known == name)?;
    let variant = |text| named(table, "switch", text).map(|(_, variant)| variant);
    Some(match (variant(text), variant(name)) {
        (Ok(it), Ok(default)) if usual && it != default => Err(format!("the default is {default}")),
        (Ok(it), Ok(default)) if !usual && it == default && text != name => Err("it is the default".to_owned()),
        (Err(error), _) => Err(error.to_string()),
        _ => Ok(()),
    })
}

/// Checks a policy of any kind, or a setting such as `run.loss-oracle=true`.
fn wrong(text: &str, usual: bool) -> Result<(), String> {
    let all = Catalogue::default();
    if text.split('=').next().is_some_and(|key| key.contains('.')) {
        let set = [text.to_owned()];
        return Scenario::load(&Arc::new(all), "wlan-lte", &set).map(drop).map_err(|error| error.to_string());
    }
    let kinds = [
        wrong_in(&all.schedulers, text, usual),
        wrong_in(&all.congestion, text, usual),
        wrong_in(&all.windows, text, usual),
        wrong_in(&all.ack_paths, text, usual),
        wrong_in(&all.reinjections, text, usual),
        wrong_in(&all.first_paths, text, usual),
    ];
    let known = kinds.into_iter().flatten().reduce(|one, other| one.or(other));
    known.unwrap_or_else(|| Err("there is no such policy".to_owned()))
}

#[test]
fn every_citation_has_an_entry_and_every_entry_is_cited() {
    let texts = texts();
    let entries = entries(&texts[REGISTER]);
    let mut faults = Vec::new();
    let mut cited = BTreeSet::new();
    for (path, text) in &texts {
        let flat = Flat::new(text);
        for at in dead_ends(&flat.text) {
            let line = flat.line(at);
            faults.push(format!(
                "{path}:{line}: cites a document that is not in the repository; name the RFC, the paper's section or \
                 the kernel's function, or give the matter an entry in {REGISTER}"
            ));
        }
        for (at, label) in labels(&flat.text) {
            if !entries.contains_key(&label) {
                let line = flat.line(at);
                faults.push(format!("{path}:{line}: {label} has no entry in {REGISTER}; add `### {label}` there"));
            } else if path != REGISTER {
                cited.insert(label);
            }
        }
    }
    for (label, Entry { line, .. }) in &entries {
        if !cited.contains(label) {
            faults.push(format!("{REGISTER}:{line}: nothing cites {label}; cite it where it matters, or take it out"));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    assert!(texts.len() > 500 && entries.len() > 40, "{} texts, {} entries", texts.len(), entries.len());
}

#[test]
fn every_entry_is_whole_and_its_switches_are_those_of_the_program() {
    let mut faults = Vec::new();
    for (label, Entry { line, fields }) in entries(&fs::read_to_string(root().join(REGISTER)).unwrap()) {
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        if names[..FIELDS.len().min(names.len())] != FIELDS || !matches!(names[FIELDS.len()..], [] | ["effect"]) {
            faults.push(format!(
                "{REGISTER}:{line}: {label} has {names:?}; it must have {FIELDS:?}, then perhaps effect"
            ));
            continue;
        }
        let [_, _, default, switch] = [0, 1, 2, 3].map(|field: usize| fields[field].1.as_str());
        let settings = quoted(default).filter(|text| text.contains(':') && text.contains('='));
        let claimed = settings.map(|text| (text, true)).chain(quoted(switch).map(|text| (text, false)));
        faults.extend(claimed.filter_map(|(text, usual)| {
            let fault = wrong(text, usual).err()?;
            Some(format!("{REGISTER}:{line}: {label}: `{text}`: {fault}"))
        }));
        if !switch.starts_with("none") && quoted(switch).next().is_none() {
            faults.push(format!("{REGISTER}:{line}: {label}: name the other reading, or say none"));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn citations_are_found_across_lines_and_in_ranges() {
    let label = |rest: &str| format!("A-{rest}");
    let text = format!("//! of the {}\n//! to 4, and\n    /// ({})", label("LATE-2"), label("PHASE"));
    let flat = Flat::new(&text);
    let found: Vec<_> = labels(&flat.text).into_iter().map(|(at, label)| (flat.line(at), label)).collect();
    let expected = [(1, "LATE-2"), (1, "LATE-3"), (1, "LATE-4"), (3, "PHASE")].map(|(line, rest)| (line, label(rest)));
    assert_eq!(found, expected);
    for other in ["[A-Z0-9]", "A-B", "A-Level", "IPv4/A-record", "CUDA-CORE", "A-10"] {
        assert!(labels(other).is_empty(), "{other}");
    }
}

#[test]
fn dead_ends_are_found_across_lines() {
    let word = concat!("refer", "ence");
    for dead in
        ["{} 3.9", "the {}'s vectors", "{},\n// section 1", "{} A-X", "({}\n//! sections 2.5 and 3.5)", "kernel{}"]
    {
        let text = Flat::new(&dead.replace("kernel{}", concat!("kernel", "-interop")).replace("{}", word)).text;
        assert_eq!(dead_ends(&text).len(), 1, "{text}");
    }
    for fine in ["a p{} of 3", "the {} is the first", "{} to RFC 8684"] {
        assert!(dead_ends(&fine.replace("{}", word)).is_empty(), "{fine}");
    }
}
