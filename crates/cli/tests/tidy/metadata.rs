//! Packages that others can depend on say where they come from and where their documentation is.

use crate::common::markdown::root;
use std::fs;
use std::process::Command;

/// Keys that a search of packages, or a reader of one, looks for.
const KEYS: [&str; 8] =
    ["description", "documentation", "homepage", "keywords", "categories", "license", "readme", "repository"];

#[test]
fn published_packages_say_all_of_themselves() {
    let output = Command::new(root().join("packaging/published.sh")).output().unwrap();
    let published = String::from_utf8(output.stdout).unwrap();
    assert!(published.lines().count() > 5, "{published}");
    let workspace: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let shared = &workspace["workspace"]["package"];
    let mut missing = Vec::new();
    for name in published.lines() {
        let folder = root().join("crates").join(name.strip_prefix("anabranch-").unwrap_or(name));
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let package = manifest["package"].as_table().unwrap();
        for key in KEYS {
            let is_inherited = package.get(key).is_some_and(|it| it.get("workspace").is_some());
            let there = if is_inherited { shared.get(key) } else { package.get(key) };
            let is_empty = |value: &toml::Value| value.as_str().is_some_and(str::is_empty);
            if there.is_none_or(is_empty) {
                missing.push(format!("{name}: {key}"));
            }
        }
        let documentation = package.get("documentation").and_then(toml::Value::as_str);
        assert_eq!(documentation, Some(&*format!("https://docs.rs/{name}")));
        assert!(folder.join("README.md").exists(), "{name} has no README.md");
    }
    assert!(missing.is_empty(), "lacking in Cargo.toml: {missing:?}");
}
