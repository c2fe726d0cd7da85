//! The drawing in ARCHITECTURE.md has every crate, each above those that it depends on. Inside the engine no modules
//! use each other in a circle.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_drawing_is_that_of_the_manifests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let drawing = text.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let mut lines = BTreeMap::new();
    for (number, line) in drawing.lines().enumerate() {
        for rest in line.split("crates/").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_lowercase()).next().unwrap();
            lines.entry(name.to_owned()).or_insert(number);
        }
    }
    let mut checked = 0;
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let line = *lines.get(&name).unwrap_or_else(|| panic!("ARCHITECTURE.md does not draw crates/{name}"));
        // Crates that are no part of the program are listed below the drawing.
        if line > lines["units"] {
            continue;
        }
        let manifest: toml::Table = fs::read_to_string(folder.path().join("Cargo.toml")).unwrap().parse().unwrap();
        for below in manifest["dependencies"].as_table().unwrap().keys() {
            let Some(below) = below.strip_prefix("anabranch-") else { continue };
            assert!(lines[below] >= line, "ARCHITECTURE.md draws crates/{below} above {name}, which depends on it");
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

/// Modules of the engine, as files and folders of its `src`, each with those that its code outside of tests names.
fn modules_of_the_engine() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src");
    let (mut files, mut folders): (Vec<PathBuf>, _) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let module = |file: &PathBuf| {
        let first = file.strip_prefix(&root).unwrap().components().next().unwrap();
        first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
    };
    let known: BTreeSet<String> = files.iter().map(&module).collect();
    let library = fs::read_to_string(root.join("lib.rs")).unwrap();
    let mut homes: BTreeMap<&str, &str> = known.iter().map(|name| (&**name, &**name)).collect();
    for (home, names) in library.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()?.split_once("::")) {
        homes.extend(words(names).map(|name| (name, home)));
    }
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.ends_with("lib.rs") && !file.to_str().unwrap().contains("tests")) {
        let source = fs::read_to_string(file).unwrap();
        let code: Vec<&str> = without_tests(&source).lines().map(|line| line.split("//").next().unwrap()).collect();
        let of = module(file);
        let named = uses.entry(of.clone()).or_default();
        for rest in code.join("\n").split("crate::").skip(1) {
            let end = if rest.starts_with('{') { rest.find(';') } else { rest.find(|c| !is_of_a_word(c)) };
            let homes = words(&rest[..end.unwrap()]).filter_map(|name| homes.get(name));
            named.extend(homes.filter(|home| **home != of).map(|home| (*home).to_owned()));
        }
    }
    uses
}

/// The source before its module of tests.
fn without_tests(source: &str) -> &str {
    let is_module = |at: usize| source[at..].split('{').next().is_some_and(|head| head.contains("mod tests "));
    let end = source.match_indices("\n#[cfg(").find(|(at, _)| is_module(*at));
    end.map_or(source, |(at, _)| &source[..at])
}

fn is_of_a_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_a_word(c)).filter(|word| !word.is_empty())
}

/// Takes away, again and again, modules that use none of the others; those in a circle are left.
fn circles(mut uses: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let before = uses.len();
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.values_mut().for_each(|used| used.retain(|name| left.contains(name)));
        uses.retain(|_, used| !used.is_empty());
        if uses.len() == before {
            return uses;
        }
    }
}

#[test]
fn the_modules_of_the_engine_use_each_other_in_no_circle() {
    let mut uses = modules_of_the_engine();
    let all: usize = uses.values().map(BTreeSet::len).sum();
    assert!(uses["endpoint"].contains("connection") && uses["connection"].contains("subflow") && all > 100, "{uses:?}");
    assert_eq!(circles(uses.clone()), BTreeMap::new());
    // The check can fail.
    uses.get_mut("subflow").unwrap().insert("connection".to_owned());
    assert_eq!(circles(uses).into_keys().collect::<Vec<_>>(), ["connection", "endpoint", "subflow"]);
}
