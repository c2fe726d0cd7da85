//! The statements of docs/scripts.md about the format hold.
#![allow(clippy::unwrap_used)]

use anabranch_script::run_text;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Both examples of docs/scripts.md are scripts that hold.
#[test]
fn the_examples_hold() {
    let text = document("scripts.md");
    let examples: Vec<&str> = text.split("```script\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 2);
    for (number, example) in examples.iter().enumerate() {
        let passed = run_text(&format!("example {}", number + 1), example).unwrap_or_else(|error| panic!("{error}"));
        assert!(passed.injected >= 4 && passed.expected >= 3, "an example shows something");
    }
}

/// Every statement, field, option and setting of the format is described.
#[test]
fn every_word_is_described() {
    let text = document("scripts.md");
    let names = std::fs::read_to_string(root().join("crates/script/src/names.rs")).unwrap();
    let settings = std::fs::read_to_string(root().join("crates/script/src/settings.rs")).unwrap();
    let lists = [names.split("/// The accepted").next().unwrap(), settings.split("];").next().unwrap()];
    let words = lists.iter().flat_map(|list| list.split('"').skip(1).step_by(2));
    let words: Vec<&str> = words.filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')).collect();
    assert!(words.len() > 60, "the lists were found");
    for word in words {
        assert!(text.contains(word), "docs/scripts.md does not mention `{word}`");
    }
}
