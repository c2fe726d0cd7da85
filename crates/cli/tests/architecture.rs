//! The drawing in ARCHITECTURE.md has every crate, each above those that it depends on.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
