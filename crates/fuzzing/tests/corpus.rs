//! The checked-in corpus, and a few thousand inputs more, the same in every run; `FUZZ_COUNT` and `FUZZ_SEED` ask for
//! others.

use anabranch_fuzzing::{Target, seeds};
use std::path::PathBuf;

fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

fn run(target: Target, name: &str, generated: u64) {
    let mut files: Vec<_> = std::fs::read_dir(corpus(name))
        .expect("the corpus is checked in")
        .map(|entry| entry.expect("the corpus can be read").path())
        // Inputs added by a fuzzer are named by their hash and have no hyphen.
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains('-')))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{} files in the corpus of {name}", files.len());
    for file in files {
        let input = std::fs::read(&file).expect("the corpus can be read");
        println!("{}", file.display()); // Shown if it fails.
        target.run(&input);
    }
    let setting = |name| std::env::var(name).ok().and_then(|n: String| n.parse().ok());
    let (generated, seed) = (setting("FUZZ_COUNT").unwrap_or(generated), setting("FUZZ_SEED").unwrap_or(0));
    for (n, input) in seeds(target, generated, seed).iter().enumerate() {
        println!("generated {n}: {input:?}");
        target.run(input);
    }
}

#[test]
fn codec() {
    run(Target::Codec, "codec", 20_000);
}

#[test]
fn listener() {
    run(Target::Listener, "listener", 2_000);
}

#[test]
fn connection() {
    run(Target::Connection, "connection", 2_000);
}
