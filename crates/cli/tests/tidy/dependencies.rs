//! Every dependency is used: its name stands in the sources of the package that has it. Crates that would make the
//! first build long stay out of the lock file.

use crate::common::markdown::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Dependencies whose name no source has, with the reason: package, dependency, reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// Crates that are kept out of the lock file, each with its reason and the command that removes it again.
const KEPT_OUT: [(&str, &str, &str); 1] = [(
    "icu_provider",
    "some thirty crates of Unicode tables for breaking lines in errors and for names of hosts; older or other versions \
     of two crates do the same with six",
    "cargo update -p textwrap --precise 0.16.2 && cargo update -p idna_adapter --precise 1.1.0",
)];

/// Finds the manifests of the repository.
fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
            manifests(&path, found);
        } else if name == "Cargo.toml" {
            found.push(path);
        }
    }
}

/// Returns the dependencies of a manifest, of all kinds and targets.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(|all| all.values()).filter_map(toml::Value::as_table);
    for table in targets.chain([manifest]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            names.extend(table.get(kind).and_then(toml::Value::as_table).into_iter().flatten().map(|(k, _)| k.clone()));
        }
    }
    names
}

/// Returns true if a word stands in a text by itself.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Returns the code of a package, without comments: its own sources, tests, benchmarks and build script.
fn code(folder: &Path) -> String {
    let mut files = Vec::new();
    super::sources(folder, &mut files);
    let nested =
        |file: &Path| file.ancestors().skip(1).take_while(|it| *it != folder).any(|it| it.join("Cargo.toml").exists());
    let mut code = String::new();
    for file in files.iter().filter(|file| !nested(file)) {
        let text = fs::read_to_string(file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("// ")) {
            code += line;
            code.push('\n');
        }
    }
    code
}

#[test]
fn crates_that_make_the_first_build_long_stay_out() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for (name, reason, remedy) in KEPT_OUT {
        assert!(!lock.contains(&format!("name = \"{name}\"\n")), "{name} is back: {reason}; remedy: {remedy}");
    }
}

#[test]
fn dependencies_are_used() {
    let mut files = Vec::new();
    manifests(&root(), &mut files);
    assert!(files.len() > 15, "{} manifests", files.len());
    let (mut unused, mut everywhere) = (Vec::new(), BTreeSet::new());
    for file in &files {
        let manifest: toml::Table = fs::read_to_string(file).unwrap().parse().unwrap();
        let folder = file.parent().unwrap();
        let package = folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let code = code(folder);
        for name in dependencies(&manifest) {
            let excepted = EXCEPTIONS.iter().any(|(of, which, _)| *of == package && *which == name);
            let is_used = has_word(&code, &name.replace('-', "_"));
            if !is_used && !excepted {
                unused.push(format!("{package}: {name} stands in no source: remove it, or add it to EXCEPTIONS"));
            }
            assert!(!(is_used && excepted), "{package} uses {name}: remove it from EXCEPTIONS");
            everywhere.insert(name);
        }
    }
    let workspace: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    for name in workspace["workspace"]["dependencies"].as_table().unwrap().keys() {
        if !everywhere.contains(name) {
            unused.push(format!("Cargo.toml: no package has the workspace's dependency {name}"));
        }
    }
    assert!(unused.is_empty(), "\n{}", unused.join("\n"));
}

#[test]
fn words_and_dependencies_are_found() {
    assert!(has_word("use serde::Deserialize;", "serde"));
    assert!(!has_word("use serde_json::Value;", "serde"));
    let manifest: toml::Table =
        "[dependencies]\na = \"1\"\n[target.'cfg(unix)'.dev-dependencies]\nb.workspace = true\n".parse().unwrap();
    assert_eq!(dependencies(&manifest), ["a", "b"].map(str::to_owned).into());
}
